"""Parts that stores share: rows as JSON, changes, the log of moves, and values of other
programs."""

import json
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

from memory_mesh.core.errors import Conflict, IdTaken, InvalidInput, StoreCorrupt
from memory_mesh.core.model import (
    BY_NAME,
    INT_MAX,
    MOVING,
    Key,
    Kind,
    Row,
    Scalar,
    Type,
    Value,
    Vector,
    as_read,
    copied_json,
    parse_time,
)
from memory_mesh.core.ports import Changes

BEGINNING = "0:"  # the mark of a partition without any write
KEPT_MOVES = 20_000  # for each partition; a reader with an older mark reads the whole partition

_MARK = re.compile(r"(\d{1,16}):[0-9a-f]*", re.ASCII)
_KINDS = frozenset(kind.value for kind in Kind)
_VECTOR = ("model", "data", "tokens")  # the last one only if there are some

# Making an encoder takes longer than using it.
encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_read_json = json.JSONDecoder().raw_decode


def decode_json(text: str) -> Any:
    """Return what `json.loads` does, in half the time for a text that has nothing before and
    after the value, as ours."""
    try:
        value, end = _read_json(text)
    except (ValueError, TypeError):
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def dumped_texts(texts: list[str]) -> str:
    """Return a list of texts as JSON. Most need no escapes, and to join them is much faster than
    an encoder."""
    joint = '","'.join(texts)
    if not joint.isprintable() or "\\" in joint or joint.count('"') != 2 * max(len(texts) - 1, 0):
        return encode_json(texts)
    return f'["{joint}"]' if texts else "[]"


def encode_row(row: Row) -> list[object]:
    """Return a row as a list that JSON can represent."""
    vector = [*row.vector.as_json().values()] if row.vector else None
    return [
        row.kind,
        row.id,
        row.partition,
        row.created_at,
        row.revision,
        row.number,
        row.fields,
        vector,
    ]


def decode_row(given: Sequence[Any]) -> Row:
    """Return the row that `encode_row` made a list of."""
    kind, id_, partition, created_at, revision, number, fields, vector = given
    return Row(
        kind=Kind(kind), id=id_, partition=partition, created_at=created_at, revision=revision,
        number=number, fields=fields,
        vector=Vector.from_json(dict(zip(_VECTOR, vector, strict=False))) if vector else None,
    )  # fmt: skip


def decode_key(given: Sequence[str]) -> Key:
    """Return the key that JSON represents as a list."""
    return Key(Kind(given[0]), given[1])


def copy_row(row: Row) -> Row:
    """Return a deep copy: later changes to the lists of a caller must not change the store."""
    return replace(row, fields=copied_json(dict(row.fields)), replaces=0)


def comparable(column: str, value: Scalar) -> bool:
    """Return whether a column has the type of the literal; if not, the condition is unknown for
    every row."""
    kind = BY_NAME[column].type
    if isinstance(value, bool):
        return kind is Type.BOOL
    if isinstance(value, str):
        return kind in (Type.TEXT, Type.TIME, Type.TEXTS)
    return kind in (Type.INT, Type.REAL)


def mark_of(version: int, nonce: str) -> str:
    """Return the mark of a state.

    The nonce tells apart two states with the same version, which occur when a backup is restored
    and then written to.
    """
    return f"{version}:{nonce}" if version else BEGINNING


def version_in(mark: str | None) -> int | None:
    """Return the version that a mark contains, or None for an invalid mark."""
    match = _MARK.fullmatch(mark) if mark else None
    return int(match[1]) if match else None


def check_unique(puts: Sequence[Row], deletes: Sequence[Key]) -> None:
    """Raise `InvalidInput` if a change names the same row twice."""
    ids = [*(row.id for row in puts), *(key.id for key in deletes)]
    if len(set(ids)) == len(ids):  # hashing a key is slow
        return
    for key, times in Counter([*(row.key for row in puts), *deletes]).most_common(1):
        if times == 1:
            return
        raise InvalidInput(f"{key} occurs {times} times in one change", expected="once")


# --- changes ---

Stored = tuple[str, int]  # the partition and the revision of a row


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a store."""

    puts: Sequence[Row]
    deletes: Sequence[Key]
    moves: Mapping[str, Sequence[Key]]  # by partition
    nonce: str
    frees: bool  # it leaves bytes that must be freed: see `erases`


def decide(stored: Mapping[Key, Stored], puts: Sequence[Row], deletes: Sequence[Key]) -> Change:
    """Return the change that these puts and deletes are; `stored` has those of their rows that
    exist. Raises `Conflict` if a put does not fit."""
    gone = [key for key in deletes if key in stored]
    moves: defaultdict[str, list[Key]] = defaultdict(list)
    for key in gone:
        if key.kind in MOVING:
            moves[stored[key][0]].append(key)
    for row in puts:
        partition, revision = stored.get(row.key, (row.partition, 0))
        if row.replaces == 0 and revision:
            raise IdTaken(f"{row.kind} {row.id} already exists")
        if row.replaces and revision != row.replaces:
            raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")
        for name in {row.partition, partition} if row.kind in MOVING else ():
            moves[name].append(row.key)
    return Change(puts, gone, moves, new_nonce(), erases(puts, gone))


def erases(puts: Sequence[Row], deletes: Sequence[Key]) -> bool:
    """Return whether the bytes of what a change deletes must be freed: it deletes rows, or the text
    of an audit block.

    Events of hooks come and go, and say what their memory says: an erasure of that frees their
    bytes too.
    """
    tombstones = any(row.replaces and row.kind is Kind.BLOCK for row in puts)
    return tombstones or any(key.kind is not Kind.EVENT for key in deletes)


def new_nonce() -> str:
    return secrets.token_hex(8)


def encode_change(change: Change) -> dict[str, object]:
    """Return a change as an object that JSON can represent."""
    return {
        "puts": [encode_row(row) for row in change.puts],
        "deletes": change.deletes,
        "moves": change.moves,
        "nonce": change.nonce,
        "frees": change.frees,
    }


def decode_change(given: Mapping[str, Any]) -> Change:
    """Return the change that `encode_change` made an object of. Raises `StoreCorrupt` for
    another one."""
    try:
        moves = {name: [decode_key(key) for key in keys] for name, keys in given["moves"].items()}
        deletes = [decode_key(key) for key in given["deletes"]]
        rows = [as_read(decode_row(row)) for row in given["puts"]]
        return Change(rows, deletes, moves, str(given["nonce"]), bool(given["frees"]))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreCorrupt(
            "a change in the journal is damaged", remedy="restore a backup"
        ) from error


# --- the log of moves ---
# A move is a put or a delete of a row that affects searches (`MOVING`). Each move raises the
# version of its partition by one.


class Moves(NamedTuple):
    """The moves of one change in a partition, whose version they raised to `version`."""

    version: int
    nonce: str
    keys: Sequence[Key]

    @property
    def mark(self) -> str:
        return mark_of(self.version, self.nonce)


class MoveLog:
    """The version of each partition, and the moves that led to it."""

    def __init__(self) -> None:
        # The version, and the nonce of the last change.
        self.partitions: dict[str, tuple[int, str]] = {}
        self.moves: defaultdict[str, list[Moves]] = defaultdict(list)  # by partition, oldest first
        self.nonce = ""  # of the last change of any partition

    def log(self, change: Change) -> None:
        for name, keys in change.moves.items():
            version = self._version(name) + len(keys)
            self.partitions[name] = version, change.nonce
            self.moves[name].append(Moves(version, change.nonce, keys))
        self.nonce = change.nonce

    def version(self, partition: str) -> int:
        return self._version(partition)

    def _version(self, partition: str) -> int:
        return self.partitions.get(partition, (0, ""))[0]

    def check_seen(self, seen: Mapping[str, int] | None) -> None:
        """Raise `Conflict` if a partition has another version than the writer has seen."""
        for partition, version in (seen or {}).items():
            if self._version(partition) != version:
                raise Conflict(f"partition {partition} has changed")

    def changes(self, partition: str, since: str | None = None) -> Changes:
        now = mark_of(*self.partitions.get(partition, (0, "")))
        moves = [] if since == now else self.moves_since(partition, since)
        return Changes(now, None if moves is None else [key for some in moves for key in some.keys])

    def moves_since(self, partition: str, mark: str | None) -> list[Moves] | None:
        """Return the moves in a partition after a mark; None if they are not known."""
        return moves_since(self.moves.get(partition, ()), mark)


def moves_since(moves: Sequence[Moves], mark: str | None) -> list[Moves] | None:
    """Return the moves after a mark, or None if these do not lead on from it."""
    if mark == BEGINNING and moves and moves[0].version == len(moves[0].keys):
        return list(moves)
    for place in reversed(range(len(moves))):
        if moves[place].mark == mark:
            return list(moves[place + 1 :])
    return None


def latest_moves(moves: Sequence[Moves]) -> list[Moves]:
    """Return the last moves, about as many as a partition must remember."""
    oldest = moves[-1].version - KEPT_MOVES
    return [some for some in moves if some.version > oldest]


def moves_after(now: str, since: str | None, moves: Sequence[Sequence[Any]]) -> Changes:
    """Return the changes since a mark. `moves` are rows of a table, from that mark on: version,
    nonce, kind and id."""
    if since == now:
        return Changes(now, ())
    if since == BEGINNING and moves and moves[0][0] == 1:
        new = moves
    elif moves and mark_of(*moves[0][:2]) == since:
        new = moves[1:]
    else:
        return Changes(now, None)
    if any(kind not in _KINDS for _, _, kind, _ in new):  # edited by hand
        return Changes(now, None)
    return Changes(mark_of(*moves[-1][:2]), [Key(Kind(kind), id_) for _, _, kind, id_ in new])


# --- values of other programs ---


def parse_foreign(text: str) -> Value:
    """Parse JSON of another program. What no row can have is replaced: large numbers by their
    digits, NUL by U+FFFD.

    Raises `ValueError` or `RecursionError`.
    """

    def number(digits: str) -> Value:
        return int(digits) if len(digits) < 17 and abs(int(digits)) <= INT_MAX else digits

    def real(digits: str) -> Value:
        return value if isfinite(value := float(digits)) else digits

    value: Value = json.loads(text, parse_int=number, parse_float=real, parse_constant=str)
    clean = (
        json.dumps(value, ensure_ascii=False)
        .encode("utf-8", "surrogatepass")
        .decode("utf-8", "replace")
    )
    return _clean(value) if "\\u0000" in clean or "\ufffd" in clean else value


def _clean(value: Any) -> Value:
    """Return a value with U+FFFD in place of NUL and half surrogate pairs."""
    if isinstance(value, str):
        return readable(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict):
        return {str(_clean(name)): _clean(part) for name, part in value.items()}
    return [_clean(part) for part in value] if isinstance(value, list) else value


def readable(data: bytes) -> str:
    """Return the text of bytes, with U+FFFD in place of NUL and of what is not UTF-8."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def json_or_text(text: str) -> Value:
    """Parse JSON as `parse_foreign` does, or return the text."""
    try:
        return parse_foreign(text)
    except (ValueError, RecursionError):
        return text


def text_of(value: object) -> str | None:
    """Return a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def texts_of(value: object) -> list[Value]:
    """Return the texts in a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def number_of(value: object, maximum: float = 1) -> float | None:
    """Return a number from 0 to a maximum, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= maximum:
        return None
    return float(value)


def values_of(rows: Iterable[Row], columns: Sequence[str]) -> list[list[Value]]:
    return [[row.value(name) for name in columns] for row in rows]


def tallied(rows: Iterable[Sequence[Value]], length: int | None) -> dict[str | None, int]:
    """Return how often each text, or its beginning, is the first text of a row; None stands for
    rows without one."""
    texts = (next((value for value in row if isinstance(value, str)), None) for row in rows)
    return dict(Counter(text if text is None else text[:length] for text in texts))


def count_of(value: object) -> int:
    """Return a whole number from 1 on that a row can have, else 0."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= INT_MAX
    return value if is_count else 0  # type: ignore[return-value]


def time_of(value: object) -> str | None:
    """Parse a time, or return None if it cannot be read."""
    with suppress(InvalidInput):
        return parse_time(value, "created_at")
    return None
