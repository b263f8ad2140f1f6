"""What the index keeps of a row, and the names under which it keeps it."""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import inf
from typing import NamedTuple

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Row, Vector
from memory_mesh.core.model.scope import Reach, Reader, reach_of, visible
from memory_mesh.core.model.times import millis

MISSING = -(2**62)  # a place in an order that is not known
_CLOSERS = " \t\r\n\"'”’»)]}*_`"
_MARKS = ("?", "？", "؟", "\u037e")


class Scope(NamedTuple):
    """All that decides who sees a row and under which status. Rows of one partition have few different ones."""

    user_id: str | None
    agent_id: str | None
    memory_type: str | None
    reach: str | None
    session_id: str | None  # only where it decides; otherwise every session would be a scope of its own
    status: str | None

    def visible_to(self, reader: Reader) -> bool:
        """What `core.model.scope.visible` says of a row of this scope; a scope that it cannot read is nobody's."""
        fields = {name: value for name, value in self._asdict().items() if value is not None}
        try:
            return visible(reader, Row(kind=Kind.MEMORY, id="", partition="", created_at="", fields=fields))
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory or a passage, as the index takes it in."""

    key: int
    id: str
    owner: int | None  # the key of the memory that a passage speaks for; None: it is a memory itself
    words: list[str]
    scope: Scope
    session: int | None
    turn: int
    event: int
    created: int
    number: int
    expires: float
    question: bool
    speaker: str | None
    vector: Vector | None


def entry_of(row: Row) -> Entry:
    """The row, as the index takes it in."""
    words, turn, event = row.value("keywords"), row.value("turn"), _text(row, "event_time")
    session, expires = _text(row, "session_id"), _text(row, "expires_at")
    ends = _moment(expires)
    return Entry(
        key=key_of(row.kind, row.id),
        id=row.id,
        owner=key_of(Kind.MEMORY, _text(row, "ref") or "") if row.kind is Kind.PASSAGE else None,
        words=[str(word) for word in words] if isinstance(words, list) else [],
        scope=_scope(row),
        session=None if session is None else hashed(session),
        turn=turn if isinstance(turn, int) else MISSING,
        event=_moment(event),
        created=_moment(row.created_at),
        number=row.number,
        expires=inf if ends == MISSING else float(ends),
        question=asks(_text(row, "content") or ""),
        speaker=_text(row, "speaker"),
        vector=row.vector,
    )


def asks(text: str) -> bool:
    """Whether a text ends as a question."""
    return text.rstrip(_CLOSERS).endswith(_MARKS)


def key_of(kind: Kind, id_: str) -> int:
    """A row's name in 64 bits."""
    return hashed(f"{kind}\0{id_}")


def hashed(text: str) -> int:
    """64 bits of a text, the same in every process: among a billion texts two are alike with a chance of one in forty."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=65536)
def word_key(word: str) -> int:
    """A keyword's name in 64 bits; words come back often."""
    return hashed(word)


def _scope(row: Row) -> Scope:
    type_, reach = _text(row, "memory_type"), _text(row, "reach")
    try:
        decides = reach_of(type_ or None, reach or None) is Reach.SESSION
    except ValueError:
        decides = False
    session = _text(row, "session_id") if decides else None
    return Scope(_text(row, "user_id"), _text(row, "agent_id"), type_, reach, session, _text(row, "status"))


def _text(row: Row, name: str) -> str | None:
    value = row.value(name)
    return value if isinstance(value, str) else None


def _moment(text: str | None) -> int:
    """Milliseconds; a text that is no moment has no place in time."""
    try:
        return MISSING if text is None else millis(text)
    except (ValueError, TypeError):
        return MISSING
