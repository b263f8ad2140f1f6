"""Recognise a memory that is stored already: normal texts, fingerprints and sightings.

A fingerprint is that of a text, of the caller's own key, or of a file. It holds the scope, so that
a memory is never taken for one of another user, project or visibility. No audit block seals it, so
a memory that was found by it is compared itself too (`has_own_print`).
"""

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake.drafts import Draft, columns_of
from memory_mesh.core.model import (
    BY_NAME,
    Memory,
    MemoryType,
    Reach,
    Reader,
    Sighting,
    Value,
    fault,
    reach_of,
)
from memory_mesh.core.text import LazyRegex

# --- normal texts ---
# Equal texts are one memory, so what is ignored here is lost. The capital of an ordinary word is
# ignored (Mondays and mondays), and so are the capitals of an emphasised word (NEVER) or of a whole
# text. All other capitals count: units (100 Mb and 100 MB), flags (-v and -V), acronyms (US and
# us), code and file names (getItem, README.md), single letters, and names that are also words (May,
# Polish). `similar` decides about near-duplicates, and may ignore more.

_DISTINCT = LazyRegex("([¹²³¼-¾⅐-⅞⁰-⁹₀-₉ß]+)")
_JOINTS = str.maketrans("-’", "''")  # that join parts of a word, as the apostrophe does
_AROUND = ".,;:!?…\"'’‘“”„«»¿¡()[]{}*"
_CLOSING = "\"'’”»)]}*"
_ENDS_SENTENCE = (".", "!", "?", ":", "…")
_PRONOUN = frozenset({"I", "I'm", "I'd", "I’m", "I’d"})
_HOURS = frozenset({"am", "pm"})
_UNIT_LENGTH = 3
# fmt: off
# Names that are also words, and whose capital is the only difference.
NAMES = frozenset({
    "may", "march", "august", "polish", "turkey", "china", "mark", "bill", "frank", "rose", "will",
    "word", "teams", "slack", "go",
})
# fmt: on
_ACRONYM_LENGTH = 3
_LONG_ACRONYMS = frozenset({"AIDS"})  # that are also words


def folded_text(content: str) -> str:
    """Return a text without differences of case, spaces and forms of characters.

    Raised and lowered digits, fractions and ß stay: 10² is not 102, and Maßen are not Massen.
    """
    return " ".join(_plain(content, fold=True).split())


@lru_cache(maxsize=1024)  # a write reads that of each text three times
def normal_text(content: str) -> str:
    """Return a text without the differences that duplicates may have; `folded_text` if it has no
    case that counts."""
    if content == content.lower():
        return folded_text(content)
    words = _plain(content, fold=False).split()
    shouted = content.isupper() and len(words) > 1
    folded = _plain(" ".join(words), fold=True).split(" ")
    cased = {
        (word, before)
        for word, before, low in zip(words, [".", *words], folded, strict=False)
        if word != low
    }
    kept = {pair for pair in cased if _has_case(*pair, shouted=shouted)}
    if not kept:
        return " ".join(folded)
    trios = zip(words, [".", *words], folded, strict=False)
    return " ".join(
        word if word != low and (word, before) in kept else low for word, before, low in trios
    )


def _has_case(word: str, before: str, *, shouted: bool) -> bool:
    """Return whether the capitals of a word carry meaning. A text that is `shouted` is in
    capitals as a whole."""
    core = word.strip(_AROUND)
    if core == core.lower() or core in _PRONOUN:
        return False
    starts = before.rstrip(_CLOSING).endswith(_ENDS_SENTENCE)
    parts = core.translate(_JOINTS).split("'")
    if not all(map(str.isalpha, parts)) or _is_unit(core, before):
        return True
    if shouted or (core == "A" and starts):
        return False
    return (
        len(core) == 1
        or not all(map(_is_ordinary, parts))
        or (core.lower() in NAMES and not starts)
    )


def _is_ordinary(part: str) -> bool:
    """Return whether a word begins with a capital at most, or is emphasised by capitals and too
    long for an acronym."""
    emphasised = part.isupper() and len(part) > _ACRONYM_LENGTH and part not in _LONG_ACRONYMS
    return emphasised or part[1:] == part[1:].lower()


def _is_unit(core: str, before: str) -> bool:
    """Return whether a word is short and stands behind a number; hours are no units."""
    return before[-1:].isdigit() and len(core) <= _UNIT_LENGTH and core.lower() not in _HOURS


def _plain(text: str, *, fold: bool) -> str:
    """Return a text in one form of characters, and in lower case if `fold` is set."""
    if text.isascii():
        return text.lower() if fold else text
    parts = _DISTINCT.split(unicodedata.normalize("NFC", text))
    # Every other part has the distinct characters.
    plain = [unicodedata.normalize("NFKC", part) for part in parts[::2]]
    parts[::2] = [part.casefold() for part in plain] if fold else plain
    return "".join(parts)


# --- files of a folder ---

# Derived from the path, not from the text: two files may have the same text, and the text of one
# may change.
_FILE = "file:"
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Selection:
    """The files of a folder to ingest."""

    extensions: tuple[str, ...] = (".md",)
    recursive: bool = False

    @classmethod
    def of(cls, extension: object, *, recursive: bool) -> "Selection":
        """Build a selection from one extension or several. The dot is optional and case does not
        matter."""
        given = (
            [extension]
            if isinstance(extension, str) or not isinstance(extension, Iterable)
            else list(extension)
        )
        if not given:
            raise InvalidInput("no extension given", expected="one or more, such as .md")
        return cls(tuple(dict.fromkeys(_extension(each) for each in given)), recursive)

    def covers(self, source: str) -> bool:
        """Return whether a path within the folder is selected."""
        return source.lower().endswith(self.extensions) and (self.recursive or "/" not in source)


def folder_print(reader: Reader, root: str, type_: str | None) -> str:
    """Return the common prefix of the fingerprints of all memories that an agent made from a
    folder.

    Memories of type `session` are visible in their session only, so each session has its own
    prefix, and so has each project.
    """
    session = reader.session_id if type_ == MemoryType.SESSION else None
    project = [reader.project] if reader.project else []
    return f"{_FILE}{_file_digest(reader.user_id, reader.agent_id, session, root, *project)}:"


def file_print(folder: str, source: str) -> str:
    """Return the fingerprint of a file's memory."""
    return folder + _file_digest(source)


def is_file_print(fingerprint: str | None) -> bool:
    """Return whether a memory's fingerprint is that of a file."""
    return fingerprint is not None and fingerprint.startswith(_FILE)


def _extension(given: object) -> str:
    bare = (
        given.strip().removeprefix("*").removeprefix(".").lower() if isinstance(given, str) else ""
    )
    if not bare or "/" in bare or "*" in bare:
        raise InvalidInput(f"extension is {shown(given)}", expected="a file extension, such as .md")
    return f".{bare}"


def _file_digest(*parts: str | None) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]


# --- fingerprints ---

MAX_KEY_LENGTH = 500
# Begins the keys of the memories of notes, whose files decide how long they are kept.
NOTE_KEY = "note:"
# Of the memories of traces, likewise.
TRACE_KEY, EXPERIENCE_KEY, LEARNING_KEY = "trace:", "exp:", "learning:"
# With their categories.
_OF_TRACES = {TRACE_KEY: "trace", EXPERIENCE_KEY: "experience", LEARNING_KEY: "insight"}
_TEXT, _KEY = "text:", "key:"
_COLUMNS = ("session_id", "project", "memory_type", "event_time", "speaker")
_CLAIM = ("claim", "valid_from", "valid_until")


def fingerprint(reader: Reader, draft: Draft, key: str | None = None) -> str:
    """Return a digest that is equal for texts that are one memory: in one scope and, in
    conversations, at one place.

    With a key of the caller's own, what is stored under the key in one scope is one memory.
    """
    return (
        fingerprints(reader, draft)[0]
        if key is None
        else _scoped_key(reader, draft, _digest([key]))
    )


def fingerprints(reader: Reader, draft: Draft) -> tuple[str, ...]:
    """Return the fingerprint, and those that earlier versions stored: they may be equal for texts
    that are not.

    They ignored the case of every word, and versions up to 0.2 counted a text within its agent and
    session.
    """
    columns, folded = draft.columns, folded_text(draft.content)
    time, speaker, turn = (
        columns.get("event_time"),
        columns.get("speaker"),
        draft.metadata.get("turn"),
    )
    # The same words in another session are another turn.
    session = None if speaker is None and turn is None else columns.get("session_id")
    old = [reader.user_id, reader.agent_id, *map(columns.get, _COLUMNS), turn, folded]
    # Texts with different claims are different memories.
    claim = [columns.get(name) for name in _CLAIM] if columns.get("claim") else []
    # Most texts have no case that counts.
    texts = dict.fromkeys((normal_text(draft.content), folded))
    prints = (
        _TEXT + _digest([*_scope(reader, draft), session, time, speaker, turn, normal, *claim])
        for normal in texts
    )
    return *prints, _digest(old)


def key_prefix(key: object) -> str:
    """Return the beginning of the fingerprints of all memories with this key, whatever their
    scope."""
    return f"{_KEY}{_digest([read_key(key)])}:"


def updated_print(old: str | None, reader: Reader, draft: Draft) -> str:
    """Return the fingerprint of a changed memory. One with a key keeps the key, and the memory
    of a file the file."""
    if old and old.startswith(_KEY):
        return _scoped_key(reader, draft, old.split(":")[1])
    return old if old and is_file_print(old) else fingerprint(reader, draft)


def has_own_print(memory: Memory) -> bool:
    """Return whether the fingerprint is that of the memory's own text and scope."""
    columns: dict[str, Value] = {name: getattr(memory, name) for name in (*_COLUMNS, *_CLAIM)}
    own = Draft(content=memory.content, metadata=memory.metadata, columns=columns)
    reader = Reader(memory.user_id, memory.agent_id)
    known = (
        (updated_print(memory.fingerprint, reader, own),)
        if memory.key
        else fingerprints(reader, own)
    )
    return memory.fingerprint in known and not memory.reach


def found_by(memory: Memory) -> tuple[str, str | None]:
    """Return what a memory is found again by: its fingerprint, with its text unless it has a
    key."""
    return str(memory.fingerprint), None if memory.key else normal_text(memory.content)


def is_note(memory: Memory) -> bool:
    """Return whether a memory is that of a section of a file of notes."""
    return (memory.key or "").startswith(NOTE_KEY)


def is_of_traces(memory: Memory) -> bool:
    """Return whether a memory is that of a trace, of an entry of the experience log, or of a
    learning in their files."""
    return any(
        (memory.key or "").startswith(key) and memory.category == category
        for key, category in _OF_TRACES.items()
    )


def companion_key(memory: Memory) -> str | None:
    """Return the key of the entry of the log that a trace has, or of the trace of an entry; they
    are erased together."""
    kind, _, place = (memory.key or "").partition(":")
    other, name = (
        (EXPERIENCE_KEY, "experience_id") if f"{kind}:" == TRACE_KEY else (TRACE_KEY, "trace_id")
    )
    known = is_of_traces(memory) and f"{kind}:" != LEARNING_KEY and memory.metadata.get(name)
    return f"{other}{place.partition('/')[0]}/{known}" if known else None


def read_key(key: object) -> str:
    """Return the caller's own key of a memory if it is valid."""
    if (
        not isinstance(key, str)
        or not key.strip()
        or len(key) > MAX_KEY_LENGTH
        or fault(BY_NAME["key"], key)
    ):
        raise InvalidInput(
            f"key is {shown(key)}",
            expected=f"a non-empty text of at most {MAX_KEY_LENGTH} characters",
        )
    return key


def _scope(reader: Reader, draft: Draft) -> list[Value]:
    """Return the user, the project, and what decides who sees the memory."""
    memory_type = draft.columns.get("memory_type") or MemoryType.GLOBAL.value
    reach = reach_of(memory_type, None)
    agent = [] if reach is Reach.GLOBAL else [reader.agent_id]
    session = [draft.columns.get("session_id")] if reach is Reach.SESSION else []
    return [reader.user_id, draft.columns.get("project"), memory_type, *agent, *session]


def _scoped_key(reader: Reader, draft: Draft, key_digest: str) -> str:
    # The digest of the key is a part of its own: the key itself may be stored masked.
    return f"{_KEY}{key_digest}:{_digest(_scope(reader, draft))}"


# Making one takes longer than using it.
_ENCODER = json.JSONEncoder(sort_keys=True, check_circular=False)


def _digest(parts: list[Value]) -> str:
    return sha256(_ENCODER.encode(parts).encode()).hexdigest()


# --- sightings ---
# Agents and sessions that store the same text share one memory, which keeps a sighting of each. Its
# owner is the agent and session in its columns. A memory that only its owner stored has no rows of
# sightings.

# What the metadata of a sighting fills when a memory passes to it. The other columns are equal in
# all sightings of a text.
_FROM_METADATA = ("category", "tags", "importance", "confidence", "valid_from", "valid_until")


@dataclass(frozen=True, slots=True)
class Author:
    """The agent and session that store a text."""

    agent_id: str | None
    session_id: str | None

    @classmethod
    def of(cls, record: Memory | Sighting) -> "Author":
        """Return the owner of a memory, or the author of a sighting."""
        return cls(record.agent_id, record.session_id)

    def sighting_id(self, memory_id: str) -> str:
        """Return the id of the sighting of a memory by this author."""
        return (
            f"{memory_id}@"
            f"{sha256(repr((self.agent_id, self.session_id)).encode()).hexdigest()[:32]}"
        )

    def within(self, scope: Mapping[str, str]) -> bool:
        """Return whether it has the agent and the session that a scope names."""
        return all(getattr(self, name) == value for name, value in scope.items())


def own_sighting(memory: Memory) -> Sighting:
    """Return the sighting of the owner, as the columns of the memory have it."""
    return Sighting(
        id=Author.of(memory).sighting_id(memory.id), ref=memory.id, user_id=memory.user_id,
        agent_id=memory.agent_id, session_id=memory.session_id, created_at=memory.created_at,
        times_observed=memory.times_observed, last_observed=memory.last_observed,
        trust=memory.trust,
    )  # fmt: skip


def every_sighting(memory: Memory, rows: Iterable[Sighting]) -> list[Sighting]:
    """Return the sightings of the present text, the owner's own among them, oldest first."""
    own = own_sighting(memory)
    current = {own.id: own, **{row.id: row for row in rows if row.times_observed}}
    current[own.id] = replace(current[own.id], metadata=memory.metadata)
    return sorted(current.values(), key=lambda row: (row.created_at, row.id))


def retired(row: Sighting) -> Sighting:
    """Return a sighting whose text was replaced."""
    return replace(row, times_observed=0, metadata={}, trust=None)


def best_trust(first: float | None, *later: float | None) -> float | None:
    """Return the trust of the best author. A memory that was stored without a trust keeps none."""
    return None if first is None else max([first, *(trust or 0.0 for trust in later)])


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that stays when the sightings of a scope are removed."""

    memory: Memory
    updates: dict[str, Any]  # the columns that change
    removed: Sequence[Sighting]
    purged: bool  # the past of the memory came from the removed sightings too, and is erased


def keep_without(memory: Memory, rows: Sequence[Sighting], scope: Mapping[str, str]) -> Kept | None:
    """Decide what remains of a memory without the sightings of a scope: None if no other
    sighting has its text."""
    left = [row for row in every_sighting(memory, rows) if not Author.of(row).within(scope)]
    if not left:
        return None
    columns = [
        columns_of(row.metadata, Reader(row.user_id, row.agent_id, row.session_id)) for row in left
    ]
    expiries = [each["expires_at"] for each in columns]
    updates: dict[str, Any] = {
        "expires_at": None if None in expiries else max(map(str, expiries)),
        "times_observed": sum(row.times_observed for row in left),
        "last_observed": max(row.last_observed or row.created_at for row in left),
        "trust": best_trust(*(row.trust for row in left)),
        "corroborations": min(memory.corroborations, sum(row.times_observed for row in left)),
    }
    own = Author.of(memory)
    if own.within(scope):  # it passes to the oldest sighting
        updates |= {
            name: getattr(left[0], name)
            for name in ("agent_id", "session_id", "metadata", "created_at")
        }
        names = [
            name
            for name in _FROM_METADATA
            if not (memory.claim and name in ("valid_from", "valid_until"))
        ]
        # The window of a claim is that of the same claim.
        updates |= {name: columns[0][name] for name in names}
        if "content" in left[0].metadata:  # it said the same in other words
            metadata = dict(left[0].metadata)
            updates |= {"content": metadata.pop("content"), "metadata": metadata}
    within = [row for row in rows if Author.of(row).within(scope)]
    purged = own.within(scope) or any(
        not row.times_observed for row in within if Author.of(row) != own
    )
    # Without its past, a memory has nothing left of sightings of earlier texts.
    past = [row for row in rows if purged and not row.times_observed and row not in within]
    return Kept(memory, updates, [*within, *past], purged)
