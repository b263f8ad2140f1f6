"""The rows of one partition as arrays, and the part of them that one reader can see.

Each row has a slot. A changed row gets a new slot, and the old one stays dead until everything is packed into a new base.

This module is over 500 lines because a table and its views change together.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import NamedTuple, TypeVar

import numpy as np

from memory_mesh.core.model import Kind, Reach, Reader, Row, Vector, millis, reach_of, visible
from memory_mesh.core.search import Corpus, tokens
from memory_mesh.index.arrays import (
    Array,
    Columns,
    Flags,
    GrowingArray,
    Ints,
    Keys,
    Postings,
    SessionMembers,
    Texts,
    distinct,
    hash64,
    recoded,
    sorted_keys,
)
from memory_mesh.index.vectors import Model, Space, VisibleVectors

T = TypeVar("T")

MISSING = -(2**62)  # an unknown turn or time
_CLOSERS = " \t\r\n\"'”’»)]}*_`"
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")

# One entry per slot.
_COLUMNS: Mapping[str, type] = {
    "key": np.uint64,
    "owner": np.int32,  # the slot itself; of a passage its memory, -1 if that is missing
    "length": np.int32,  # number of keywords
    "scope": np.int32,
    "session": np.int32,  # -1: none
    "turn": np.int64,
    "event": np.int64,
    "created": np.int64,
    "number": np.int64,
    "expires": np.float64,
    "question": np.bool_,
    "speaker": np.int32,  # -1: none
}
_EMPTY: Columns = {name: np.zeros(0, dtype) for name, dtype in _COLUMNS.items()} | {
    "id_bytes": np.zeros(0, np.uint8), "id_ends": np.zeros(0, np.int64),
    "keys": np.zeros(0, np.uint64), "key_slots": np.zeros(0, np.int32),
    "word_keys": np.zeros(0, np.uint64), "word_ends": np.zeros(0, np.int64),
    "word_slots": np.zeros(0, np.int32), "word_times": np.zeros(0, np.uint16),
    "passage_slots": np.zeros(0, np.int32), "passage_refs": np.zeros(0, np.uint64),
}  # fmt: skip


# --- rows ---


class Scope(NamedTuple):
    """The fields that decide who sees a row. The rows of one partition have few different scopes."""

    user_id: str | None
    agent_id: str | None
    memory_type: str | None
    reach: str | None
    session_id: str | None  # only if it decides; otherwise every session would be a scope
    status: str | None

    def visible_to(self, reader: Reader) -> bool:
        """Return what `core.model.visible` returns for a row of this scope; an invalid scope is visible to no reader."""
        fields = {name: value for name, value in self._asdict().items() if value is not None}
        try:
            return visible(reader, Row(kind=Kind.MEMORY, id="", partition="", created_at="", fields=fields))
        except ValueError:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory or a passage, reduced to the values that the index stores."""

    key: int
    id: str
    owner: int | None  # of a passage the key of its memory; None: it is a memory
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
    """Return the entry of a row."""
    turn, session = row.value("turn"), _text(row, "session_id")
    expires = _time(_text(row, "expires_at"))
    return Entry(
        key=key_of(row.kind, row.id),
        id=row.id,
        owner=key_of(Kind.MEMORY, _text(row, "ref") or "") if row.kind is Kind.PASSAGE else None,
        words=row.keywords,
        scope=_scope(row),
        session=None if session is None else hash64(session),
        turn=turn if isinstance(turn, int) else MISSING,
        event=_time(_text(row, "event_time")),
        created=_time(row.created_at),
        number=row.number,
        expires=inf if expires == MISSING else float(expires),
        question=(_text(row, "content") or "").rstrip(_CLOSERS).endswith(_QUESTION_MARKS),
        speaker=_text(row, "speaker"),
        vector=row.vector,
    )


def key_of(kind: Kind, id_: str) -> int:
    """Return the key of a row."""
    return hash64(f"{kind}\0{id_}")


def _scope(row: Row) -> Scope:
    type_, reach = _text(row, "memory_type"), _text(row, "reach")
    try:
        by_session = reach_of(type_ or None, reach or None) is Reach.SESSION
    except ValueError:
        by_session = False
    session = _text(row, "session_id") if by_session else None
    return Scope(_text(row, "user_id"), _text(row, "agent_id"), type_, reach, session, _text(row, "status"))


def _text(row: Row, name: str) -> str | None:
    value = row.value(name)
    return value if isinstance(value, str) else None


def _time(text: str | None) -> int:
    """Return milliseconds; MISSING if the text is not a time."""
    try:
        return MISSING if text is None else millis(text)
    except (ValueError, TypeError):
        return MISSING


# --- the table ---


@dataclass(frozen=True, slots=True)
class Names:
    """The values that the codes of a table stand for."""

    scopes: list[Scope] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)


class Table:
    """The slots of a partition."""

    def __init__(self, language: str, base: Columns | None = None, names: Names | None = None) -> None:
        self._language = language
        self.names = names or Names()
        base = base or _EMPTY
        self._columns = {name: GrowingArray(np.array(base[name], dtype)) for name, dtype in _COLUMNS.items()}
        self.base_size = self._columns["key"].size
        self._alive = GrowingArray(np.ones(self.base_size, np.bool_))
        self.dead = 0
        self.ids = Texts(base["id_bytes"], base["id_ends"])
        self._keys = Keys(base["keys"], base["key_slots"])
        self._postings = Postings(base)
        self._codes: dict[object, int] = {}  # of scopes, sessions and speakers, whose types differ
        for values in (self.names.scopes, self.names.sessions, self.names.speakers):
            self._codes |= {value: code for code, value in enumerate(values)}
        self.speakers_by_word: dict[str, list[int]] = defaultdict(list)  # by keyword of their name
        for code, speaker in enumerate(self.names.speakers):
            self._add_speaker(code, speaker)
        self._refs: dict[int, int] = dict(zip(base["passage_slots"].tolist(), base["passage_refs"].tolist(), strict=True))
        self._passages: dict[int, list[int]] = defaultdict(list)  # by the key of the memory: slots of its passages
        for slot, ref in self._refs.items():
            self._passages[ref].append(slot)
        self.spaces = {model: Space(model, _part(base, at)) for at, model in enumerate(self.names.models)}
        for space in self.spaces.values():
            space.set_owners(self.column("owner"))
        self.members = SessionMembers(self.column("session"), len(self.names.sessions))
        self.expiring: list[int] = np.flatnonzero(np.isfinite(self.column("expires"))).tolist()
        self.documents = int(np.count_nonzero(self.column("length")))  # memories with keywords
        self.length = int(self.column("length").sum())
        scopes = np.delete(self.column("scope"), list(self._refs))
        self._by_scope = GrowingArray(np.bincount(scopes, minlength=len(self.names.scopes)))

    def __len__(self) -> int:
        return self._alive.size

    @property
    def alive(self) -> Flags:
        return self._alive.values

    @property
    def by_scope(self) -> Array:
        """By scope: the number of living memories."""
        return self._by_scope.values

    @property
    def unpacked(self) -> int:
        """The number of slots added or dead since the base was packed."""
        return len(self) - self.base_size + self.dead

    def column(self, name: str) -> Array:
        return self._columns[name].values

    def slots_of(self, keys: Sequence[int]) -> Ints:
        """Return the slots of those keys that exist."""
        return self._keys.places(keys)

    def postings(self, word: str) -> tuple[Ints, Array]:
        """Return the living memories that contain a keyword, and how often each does."""
        slots, counts = self._postings.of(word)
        if self.dead and len(slots):
            living = self.alive[slots]
            slots, counts = slots[living], counts[living]
        return slots, counts

    def put(self, entries: Iterable[Entry]) -> list[int]:
        """Add entries, replacing those with the same keys. Return the slots that changed."""
        changed, new, vectors = list[int](), list[int](), defaultdict[Model, list[tuple[int, bytes]]](list)
        for entry in entries:
            changed += self.drop([entry.key])
            slot = self._append(entry)
            new.append(slot)
            if entry.vector:
                vectors[entry.vector.model, entry.vector.dimension].append((slot, entry.vector.data))
        for model, added in vectors.items():
            if model not in self.spaces:
                self.spaces[model] = Space(model)
            self.spaces[model].add([slot for slot, _ in added], [data for _, data in added])
        for space in self.spaces.values():
            space.grow(len(self))
        for slot in new:
            self._set_owner(slot, int(self.column("owner")[slot]))
            if slot not in self._refs:
                for passage in self._passages.get(int(self.column("key")[slot]), ()):
                    self._set_owner(passage, slot)
        return changed + new

    def drop(self, keys: Iterable[int]) -> list[int]:
        """Remove the rows of these keys. Return their slots."""
        dropped = []
        for key in keys:
            slot = self._keys.get(key)
            if slot < 0:
                continue
            dropped.append(slot)
            self._keys.set(key, -1)
            self.alive[slot] = False
            self.dead += 1
            if slot in self._refs:
                self._passages[self._refs.pop(slot)].remove(slot)
            else:
                self._count(slot, -1)
                for passage in self._passages.get(key, ()):
                    self._set_owner(passage, -1)
            self._set_owner(slot, -1)
        return dropped

    def packed(self) -> tuple[Columns, Names]:
        """Return everything as a new base, without dead slots and unused names."""
        keep = self.alive
        new_slots = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        columns = {name: self.column(name)[keep] for name in _COLUMNS}
        used: dict[str, Array] = {}
        for name in ("scope", "session", "speaker"):
            used[name], columns[name] = recoded(columns[name])
        owners = columns["owner"]
        columns["owner"] = np.where(owners >= 0, new_slots.take(owners, mode="clip"), -1).astype(np.int32)
        columns["id_bytes"], columns["id_ends"] = self.ids.packed(keep)
        columns["keys"], columns["key_slots"] = sorted_keys(columns["key"])
        columns |= self._postings.packed(keep, new_slots)
        columns["passage_slots"] = new_slots[np.array(list(self._refs), np.int64)]
        columns["passage_refs"] = np.array(list(self._refs.values()), np.uint64)
        models = [model for model, space in self.spaces.items() if keep[space.slots].any()]
        for at, model in enumerate(models):
            columns |= {f"{at}.{name}": column for name, column in self.spaces[model].packed(keep, new_slots).items()}
        names = Names(
            scopes=[self.names.scopes[code] for code in used["scope"]],
            sessions=[self.names.sessions[code] for code in used["session"]],
            speakers=[self.names.speakers[code] for code in used["speaker"]],
            models=models,
        )
        return columns, names

    def _append(self, entry: Entry) -> int:
        slot = len(self)
        scope, session = self._code(self.names.scopes, entry.scope), self._code(self.names.sessions, entry.session)
        new_speaker = entry.speaker is not None and entry.speaker not in self._codes
        speaker = self._code(self.names.speakers, entry.speaker)
        if new_speaker:
            self._add_speaker(speaker, str(entry.speaker))
        owner = slot if entry.owner is None else self._keys.get(entry.owner)
        values = (
            entry.key, owner, len(entry.words), scope, session, entry.turn, entry.event, entry.created, entry.number,
            entry.expires, entry.question, speaker,
        )  # fmt: skip
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self._alive.append(True)
        self.ids.append(entry.id)
        self._keys.set(entry.key, slot)
        self._by_scope.grow(len(self.names.scopes), 0)
        if entry.owner is None:
            self._postings.add(slot, entry.words)
            self._count(slot, 1)
            self.members.add(session, slot)
        else:
            self._refs[slot] = entry.owner
            self._passages[entry.owner].append(slot)
        if isfinite(entry.expires):
            self.expiring.append(slot)
        return slot

    def _count(self, slot: int, by: int) -> None:
        length = int(self.column("length")[slot])
        self.documents += by * (length > 0)
        self.length += by * length
        self.by_scope[self.column("scope")[slot]] += by

    def _set_owner(self, slot: int, owner: int) -> None:
        self.column("owner")[slot] = owner
        for space in self.spaces.values():
            space.set_owner(slot, owner)

    def _code(self, values: list[T], value: T | None) -> int:
        """Return the code of a value, a new one if needed; -1 for None."""
        if value is None:
            return -1
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(values)
            values.append(value)
        return code

    def _add_speaker(self, code: int, speaker: str) -> None:
        for word in set(tokens(speaker, language=self._language)):
            self.speakers_by_word[word].append(code)


def _part(base: Columns, at: int) -> Columns:
    prefix = f"{at}."
    return {name.removeprefix(prefix): column for name, column in base.items() if name.startswith(prefix)}


# --- views ---


class View:
    """The memories of a table that a reader can see, with some statuses, at one moment; and their sessions.

    Every signal is computed from a view, so nothing that the reader may not see influences one. A view outlives a query and is
    updated slot by slot, because building it means looking at every slot.
    """

    def __init__(self, table: Table, reader: Reader, statuses: frozenset[str], now: float) -> None:
        self.reader, self.statuses = reader, statuses
        self._table, self._now = table, now
        self._in_scope, self._with_status = GrowingArray(np.zeros(0, np.bool_)), GrowingArray(np.zeros(0, np.bool_))  # by scope
        self._readable = GrowingArray(np.zeros(0, np.bool_))
        self._before, self._after = GrowingArray(np.zeros(0, np.int32)), GrowingArray(np.zeros(0, np.int32))
        self._session_lengths = GrowingArray(np.zeros(0, np.int64))
        self._linked = GrowingArray(np.zeros(0, np.bool_))  # by session: whether `_before` and `_after` are known
        self.documents = 0
        self._alone = Corpus(0, 0)  # memories without a session, each a session by itself
        self.sessions = Corpus(0, 0)
        self._vectors: dict[Model, VisibleVectors] = {}
        self.update(np.arange(len(table)))

    @property
    def readable(self) -> Flags:
        """By slot."""
        return self._readable.values

    @property
    def session_lengths(self) -> Array:
        """By session: the number of keywords in its readable memories."""
        return self._session_lengths.values

    def serves(self, reader: Reader, statuses: frozenset[str]) -> bool:
        """Return whether another reader sees exactly the same; valid until a new scope appears."""
        scopes = self._table.names.scopes
        same = self.statuses == statuses and len(scopes) == self._in_scope.size
        return same and self._in_scope.values.tolist() == [scope.visible_to(reader) for scope in scopes]

    def excluded(self) -> dict[str, int]:
        """Return how many memories of the reader's scope are excluded, by reason."""
        by_scope = self._table.by_scope
        in_scope, with_status = int(by_scope[self._in_scope.values].sum()), int(by_scope[self._with_status.values].sum())
        return {"status": in_scope - with_status, "expired": with_status - self.documents}

    def neighbours(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return the readable memory before and after each of these readable ones in its session; -1: none."""
        sessions = self._table.column("session")[slots]
        sessions = sessions[sessions >= 0]
        unlinked = sessions[~self._linked.values[sessions]]
        if len(unlinked):
            self._link(distinct(unlinked))
        return self._before.values[slots], self._after.values[slots]

    def beyond(self, before: Ints, after: Ints) -> tuple[Ints, Ints]:
        """Return the neighbours one step further away."""
        return (
            np.where(before >= 0, self._before.values[before], -1),
            np.where(after >= 0, self._after.values[after], -1),
        )

    def speakers(self, words: Iterable[str]) -> list[str]:
        """Return the speakers of readable memories whose names contain one of these keywords."""
        codes = dict.fromkeys(code for word in words for code in self._table.speakers_by_word.get(word, ()))
        column = self._table.column("speaker")
        return [self._table.names.speakers[code] for code in codes if (self.readable & (column == code)).any()]

    def vectors(self, space: Space) -> VisibleVectors:
        """Return the readable part of a space of this table."""
        visible_vectors = self._vectors.get(space.model)
        if visible_vectors is None:
            visible_vectors = self._vectors[space.model] = VisibleVectors(space)
        return visible_vectors

    def move_to(self, now: float) -> None:
        """Set the time, and update the slots whose memories expire between the old and the new time."""
        if now == self._now:
            return
        if self._table.expiring:
            slots = np.array(self._table.expiring, np.int32)
            ends = self._table.column("expires")[slots]
            slots = slots[(ends <= now) != (ends <= self._now)]
            self._now = now
            if len(slots):
                self.update(slots)
        self._now = now

    def update(self, slots: Array) -> None:
        """Decide again whether these slots are readable: they are new, dead or expired."""
        table = self._table
        self._grow()
        owner, scope = table.column("owner")[slots], table.column("scope")[slots]
        readable = table.alive[slots] & (owner == slots) & self._with_status.values[scope]
        readable &= table.column("expires")[slots] > self._now
        change = readable.astype(np.int64) - self.readable[slots]
        self.readable[slots] = readable
        self.documents += int(change.sum())
        sessions, lengths = table.column("session")[slots], change * table.column("length")[slots]
        moved = (sessions >= 0) & (change != 0)
        np.add.at(self.session_lengths, sessions[moved], lengths[moved])
        self._linked.values[sessions[moved]] = False
        alone = (sessions < 0) & (lengths != 0)
        self._alone += Corpus(int(change[alone].sum()), int(lengths[alone].sum()))
        together = self.session_lengths
        self.sessions = self._alone + Corpus(int(np.count_nonzero(together)), int(together.sum()))
        for vectors in self._vectors.values():
            vectors.forget_rows()

    def _grow(self) -> None:
        names, slots = self._table.names, len(self._table)
        for scope in names.scopes[self._in_scope.size :]:
            in_scope = scope.visible_to(self.reader)
            self._in_scope.append(in_scope)
            self._with_status.append(in_scope and scope.status in self.statuses)
        self._readable.grow(slots, value=False)
        self._before.grow(slots, -1)
        self._after.grow(slots, -1)
        self._session_lengths.grow(len(names.sessions), 0)
        self._linked.grow(len(names.sessions), value=False)

    def _link(self, sessions: Ints) -> None:
        slots, groups = self._table.members.of(sessions)
        readable = self.readable[slots]
        slots, groups = slots[readable], groups[readable]
        order = _session_order(self._table, slots, groups)
        slots, groups = slots[order], groups[order]
        together = groups[1:] == groups[:-1]
        self._before.values[slots[1:]] = np.where(together, slots[:-1], -1)
        self._before.values[slots[:1]] = -1
        self._after.values[slots[:-1]] = np.where(together, slots[1:], -1)
        self._after.values[slots[-1:]] = -1
        self._linked.values[sessions] = True
        for vectors in self._vectors.values():
            vectors.forget_lengths(slots, len(self._table))


def _session_order(table: Table, slots: Ints, groups: Ints) -> Ints:
    """Return the order of these slots, session by session.

    Within a session by turn if every memory has one, else by the time of the event if every one has that, else by creation.
    """
    if not len(groups):
        return np.zeros(0, np.int32)
    turn, event, created, number = (table.column(name)[slots] for name in ("turn", "event", "created", "number"))
    lacks_turn = np.bincount(groups, turn == MISSING)[groups] > 0
    lacks_event = np.bincount(groups, event == MISSING)[groups] > 0
    first = np.where(lacks_turn, np.where(lacks_event, created, event), turn)
    keys = (number, created, first, groups)
    order = np.lexsort(keys)
    equal = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
    if equal.any():  # rare: then the ids decide
        named = [(*(int(key[at]) for key in reversed(keys)), table.ids[int(slots[at])], at) for at in order.tolist()]
        order = np.array([each[-1] for each in sorted(named)], np.int64)
    return order.astype(np.int32)
