"""The memories that a query has read from a store, as a small table for each partition.

A table has candidates and their neighbours, all of them readable, and the names of all speakers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from memory_mesh.core.candidate_ports import Around, CandidateMemory
from memory_mesh.core.model import Reader
from memory_mesh.index.arrays import Array, Flags, GrowingArray, Ints, Model, hash64
from memory_mesh.index.readings import Views
from memory_mesh.index.table import MISSING, Table, name_code, time_of
from memory_mesh.index.view import OWN, View

_NO_NAMES: Mapping[str, str] = {}


class PartialTables:
    """The tables of the partitions that a reader sees, and which of their memories are neighbours."""

    def __init__(self, partitions: Iterable[str], speakers: Iterable[tuple[str, str]], language: str) -> None:
        self.tables = {name: PartialTable(language) for name in partitions}
        for partition, speaker in sorted(speakers):
            self.tables[partition].add_speaker(speaker)
        self._views = [PartialView(table) for table in self.tables.values()]
        self.memories: dict[str, CandidateMemory] = {}
        self._before, self._behind = dict[str, str](), dict[str, str]()  # by id: the neighbour in its session

    @property
    def views(self) -> Views:
        return list(zip(self.tables.values(), self._views, strict=True))

    def add(self, memories: Sequence[CandidateMemory], model: Model | None, addressees: Mapping[str, str] = _NO_NAMES) -> None:
        """Add memories, newest first, as an index is built; `addressees` has the names that some of them greet, by id."""
        for (name, table), view in zip(self.tables.items(), self._views, strict=True):
            own = [memory for memory in memories if memory.partition == name]
            if own:
                view.update(table.add(own, model, addressees))
        self.memories |= {memory.id: memory for memory in memories}

    def add_neighbours(self, around: Mapping[str, Around]) -> None:
        """Note which memories follow each other."""
        for id_, (before, behind) in around.items():
            for first, second in pairwise([*reversed(before), id_, *behind]):
                self._before[second], self._behind[first] = first, second

    def near(self, ids: Iterable[str], *, steps: int) -> list[str]:
        """Return memories and their neighbours up to so many steps away."""
        near = dict.fromkeys(ids)
        for side in (self._before, self._behind):
            step: Collection[str] = list(near)
            for _ in range(steps):
                step = [side[id_] for id_ in step if id_ in side]
                near |= dict.fromkeys(step)
        return list(near)

    def link(self) -> None:
        """Tell the views which of the memories that have been read are neighbours."""
        for table, view in zip(self.tables.values(), self._views, strict=True):
            around = np.empty((len(table), OWN + 3), np.int32)
            around[:, OWN] = np.arange(len(table))
            slots = table.slots
            for column, neighbours in enumerate((self._before, self._behind)):
                # By slot, with one more place at the end: -1 is the slot of none.
                side = np.full(len(table) + 1, -1, np.int32)
                pairs = [(slots[id_], slots[other]) for id_, other in neighbours.items() if id_ in slots and other in slots]
                if pairs:
                    at, others = zip(*pairs, strict=True)
                    side[list(at)] = others
                around[:, column], around[:, OWN + 1 + column] = side[:-1], side[side[:-1]]
            view.set_around(around)

    def ids_at(self, slots: Iterable[Ints]) -> list[str]:
        """Return the ids of the memories in these slots, given for each partition."""
        return [id_ for table, own in zip(self.tables.values(), slots, strict=True) for id_ in table.ids.at(own)]


class PartialTable(Table):
    """A table that memories are added to as a store returns them for scoring. Postings have the words of the query only."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.slots: dict[str, int] = {}  # by id
        self._allowed = GrowingArray(np.zeros(0, np.bool_))

    @property
    def allowed(self) -> Flags:
        """By slot: whether it meets the caller's filter."""
        return self._allowed.values

    def add(self, memories: Sequence[CandidateMemory], model: Model | None, addressees: Mapping[str, str]) -> Ints:
        """Add memories, and their passages behind them; return the new slots."""
        passages = [(at, data) for at, memory in enumerate(memories) for data in memory.passages]
        first, count, speakers = len(self), len(memories), len(self.names.speakers)
        new = np.arange(first, first + count + len(passages), dtype=np.int32)
        self._alive.grow(first + len(new), value=True)
        self._allowed.grow(first + count, np.array([memory.is_allowed for memory in memories], np.bool_))
        self._allowed.grow(first + len(new), value=False)
        given = self._columns_of(memories, addressees)
        given["owner"] = np.concatenate((new[:count], [first + at for at, _ in passages]))
        for name, column in self._columns.items():
            if name in given:
                column.extend(np.asarray(given[name], column.values.dtype))
            column.grow(len(self), 0)
        self._add_speakers(speakers)
        for slot, memory in enumerate(memories, start=first):
            self.slots[memory.id] = slot
            self.ids.append(memory.id)
            if memory.words:
                self._postings.add(slot, memory.words)
        for _ in passages:
            self.ids.append("")
        if model:
            own = {slot: memory.vector for slot, memory in enumerate(memories, start=first) if memory.vector}
            self._add_space(model, own | {first + count + at: data for at, (_, data) in enumerate(passages)})
        return new

    def _columns_of(self, memories: Sequence[CandidateMemory], addressees: Mapping[str, str]) -> dict[str, Array]:
        sessions: dict[str | None, int] = {None: -1}
        for memory in memories:
            if memory.session_id not in sessions and memory.session_id is not None:
                sessions[memory.session_id] = self._code(self.names.sessions, hash64(memory.session_id))
        speakers = {name: self._code(self.names.speakers, name) for name in dict.fromkeys(memory.speaker for memory in memories)}
        greeted = (addressees.get(memory.id) for memory in memories) if addressees else ()
        columns = {
            "length": [memory.length for memory in memories],
            "session": [sessions[memory.session_id] for memory in memories],
            "event": [MISSING if memory.event_time is None else time_of(memory.event_time) for memory in memories],
            "created": [time_of(memory.created_at) for memory in memories],
            "question": [memory.is_question for memory in memories],
            "speaker": [speakers[memory.speaker] for memory in memories],
            "addressee": [name_code(name) if name else 0 for name in greeted],
        }
        return {name: np.array(values) for name, values in columns.items() if values}

    def _add_space(self, model: Model, vectors: Mapping[int, bytes]) -> None:
        self.add_space(model)
        space = self.spaces[model]
        if vectors:
            space.add(vectors)
        space.grow(len(self))
        space.set_new_owners(np.fromiter(vectors, np.int32, len(vectors)), self.column("owner"))


class PartialView(View):
    """A view of a table of which every memory is readable. Other memories of its speakers are in the store."""

    def __init__(self, table: PartialTable) -> None:
        super().__init__(table, Reader(), frozenset(), 0.0)
        self._speakers = len(table.names.speakers)

    def has_speaker(self, code: int) -> bool:
        """Return whether a readable memory has this speaker."""
        return code < self._speakers or super().has_speaker(code)

    def update(self, changed: Sequence[int] | Array) -> None:
        """Make new slots readable, except those of passages."""
        table, slots = self._table, np.asarray(changed)
        self._addressed.clear()
        self._grow()
        readable = table.column("owner")[slots] == slots
        self._visible.values[slots] = True
        self.readable[slots] = readable
        self.session_codes[slots] = np.where(readable, table.column("session")[slots], -2)
        for vectors in self._vectors.values():
            vectors.update(slots, self.readable, table.column("session"))
