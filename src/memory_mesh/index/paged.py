"""Answer what `CandidateIndex` asks of a store through the plain port, page by page.

It reads every memory that a query concerns. Server stores answer in their engine instead; this is
their definition, and what tests compare them with.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

import numpy as np

from memory_mesh.core.model import In, Kind, Or, Reader, Row, Vector, Where, all_of, batches, equals
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Corpus, completed
from memory_mesh.core.search.candidates import (
    Around,
    CandidateMemory,
    Conditions,
    IndexedRows,
    SessionKey,
    SessionTotals,
    Statistics,
    Surroundings,
)
from memory_mesh.core.search.lexical import is_question
from memory_mesh.index.arrays import Array, Flags, GrowingArray, Ints, Model, hash64
from memory_mesh.index.local import rows_of
from memory_mesh.index.space import QueryVector, Space
from memory_mesh.index.table import MISSING, Table, name_code, session_columns, time_of
from memory_mesh.index.view import OWN, View, Views, session_order

PAGE = 1000  # rows read together
_SESSIONS = 100  # in one condition


class PagedSource:
    """A `CandidateSource` over any store."""

    def __init__(self, store: Store, *, language: str = "english") -> None:
        self._store, self._language = store, language

    def statistics(
        self, conditions: Conditions, words: Collection[str], model: tuple[str, int] | None
    ) -> Statistics:
        """Return the counts of memories for a query of these words."""
        of_memories, of_sessions = _Documents(), dict[object, Counter[str]]()
        lengths, numbers = Counter[object](), Counter[str]()
        for rows in self._pages(Kind.MEMORY, conditions.visible):
            allowed = [row for row in rows if conditions.allowed.matches(row)]
            numbers["with_vector"] += len(self._with_vector(allowed, model))
            numbers["allowed"] += len(allowed)
            for row in rows:
                keywords = self._keywords(row)
                found = {word for word in words if word in keywords}
                of_memories.add(len(keywords), found)
                numbers["visible"] += 1
                numbers["with_status"] += conditions.with_status.matches(row)
                if conditions.readable.matches(row):
                    numbers["readable"] += 1
                    key = SessionKey.of(row) or row.id
                    lengths[key] += len(keywords)
                    of_sessions.setdefault(key, Counter()).update(found)
        together = _Documents()
        for session, length in lengths.items():
            together.add(length, of_sessions[session])
        return Statistics(
            **numbers, corpus=of_memories.corpus, counts=of_memories.counts,
            sessions=together.corpus, session_counts=together.counts,
        )  # fmt: skip

    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]:
        """Return how many of the memories that meet a condition contain each word."""
        counts, wanted = Counter[str](), set(words)
        for rows in self._pages(Kind.MEMORY, where):
            for row in rows:
                counts.update(wanted.intersection(self._keywords(row)))
        return counts

    def speakers(self, where: Where) -> Collection[tuple[str, str]]:
        """Return each partition and speaker of the memories that meet a condition."""
        rows = (row for rows in self._pages(Kind.MEMORY, where) for row in rows)
        return {
            (row.partition, speaker)
            for row in rows
            if isinstance(speaker := row.value("speaker"), str)
        }

    def nearest(self, where: Where, vector: Vector, *, count: int, limit: int) -> Sequence[str]:
        """Return the ids of the memories that meet a condition with the nearest vectors, however
        many there are."""
        return [hit.id for hit in self._store.nearest(Kind.MEMORY, vector, where, limit=limit)]

    def memories(
        self, conditions: Conditions, ids: Sequence[str], words: Collection[str],
        model: tuple[str, int] | None,
        *, with_vectors: Collection[str], with_tokens: bool = False,
    ) -> Sequence[CandidateMemory]:  # fmt: skip
        """Return what scoring needs of these memories, newest first."""
        found = [
            row
            for batch in batches(ids, PAGE)
            for row in self._store.get(Kind.MEMORY, batch).values()
        ]
        rows = sorted(
            (row for row in found if conditions.readable.matches(row)),
            key=lambda row: row.age_key,
            reverse=True,
        )
        own, passages, wanted = dict[str, Vector](), dict[str, list[Vector]](), {*with_vectors}
        for row, vector in (
            self._with_passages([row for row in rows if row.id in wanted]) if model else ()
        ):
            if (vector.model, vector.dimension) != model:
                continue
            read = vector if with_tokens else replace(vector, tokens=b"")
            if vector is row.vector:
                own[row.id] = read
            else:
                passages.setdefault(row.id, []).append(read)
        return [
            candidate_of(
                row,
                conditions,
                self._keywords(row),
                words,
                vector=own.get(row.id),
                passages=passages.get(row.id, []),
            )
            for row in rows
        ]

    def around(
        self,
        where: Where,
        ids: Sequence[str],
        *,
        steps: int,
        words: Collection[str] = (),
        vector: Vector | None = None,
    ) -> Surroundings:
        """Return up to `steps` memories on each side of each of these in its session, and the
        totals of these sessions."""
        read = (
            row
            for batch in batches(ids, PAGE)
            for row in self._store.get(Kind.MEMORY, batch).values()
        )
        members: list[tuple[SessionKey, str, Sequence[int]]] = []
        totals: dict[SessionKey, _Totals] = {}
        for rows in self._members(where, {key for row in read if (key := SessionKey.of(row))}):
            for row in rows:
                if key := SessionKey.of(row):
                    members.append((key, row.id, session_columns(row)))
                    totals.setdefault(key, _Totals()).add(self._keywords(row), words)
            for row, cosine in self._cosines(rows, vector) if vector else ():
                if key := SessionKey.of(row):
                    totals[key].cosine = max(
                        cosine, cosine if (best := totals[key].cosine) is None else best
                    )
        return Surroundings(
            neighbours=_neighbours(members, ids, steps),
            sessions={
                key: SessionTotals(length=one.length, counts=one.counts, cosine=one.cosine)
                for key, one in totals.items()
            },
        )

    def index_rows(self, kind: Kind, partition: str) -> Iterator[IndexedRows]:
        """Yield what an index in memory needs of the rows of a kind in a partition, newest
        first."""
        return rows_of(self._store, kind, partition)

    def _pages(self, kind: Kind, where: Where) -> Iterator[list[Row]]:
        last = None
        while rows := self._store.find(kind, where, limit=PAGE, after=last):
            yield rows
            last = rows[-1]

    def _members(self, where: Where, keys: Iterable[SessionKey]) -> Iterator[list[Row]]:
        """Yield the rows of sessions, page by page."""
        for batch in batches(sorted(keys), _SESSIONS):
            each = (
                all_of(equals("partition", key.partition), equals("session_id", key.session_id))
                for key in batch
            )
            yield from self._pages(Kind.MEMORY, all_of(where, Or(tuple(each))))

    def _keywords(self, row: Row) -> list[str]:
        return completed(row.keywords, str(row.value("content") or ""), language=self._language)

    def _with_passages(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Vector]]:
        """Yield each vector of these memories, with the memory."""
        owners = {row.id: row for row in rows}
        yield from ((row, row.vector) for row in rows if row.vector)
        for passages in self._pages(Kind.PASSAGE, In("ref", tuple(owners))):
            for passage in passages:
                owner = owners[str(passage.value("ref"))]
                if passage.vector and passage.partition == owner.partition:
                    yield owner, passage.vector

    def _with_vector(self, rows: Sequence[Row], model: tuple[str, int] | None) -> set[str]:
        vectors = self._with_passages(rows) if rows and model else ()
        return {row.id for row, vector in vectors if (vector.model, vector.dimension) == model}

    def _cosines(self, rows: Sequence[Row], query: Vector) -> Iterator[tuple[Row, float]]:
        model = query.model, query.dimension
        found = [
            (row, vector)
            for row, vector in self._with_passages(rows)
            if (vector.model, vector.dimension) == model
        ]
        if found:
            space = Space(model)
            space.add({at: vector for at, (_, vector) in enumerate(found)})
            cosines = space.cosines(np.arange(len(found)), QueryVector.of(query.data)).tolist()
            yield from zip((row for row, _ in found), cosines, strict=True)


def candidate_of(
    row: Row, conditions: Conditions, keywords: Sequence[str], words: Collection[str],
    *, vector: Vector | None, passages: Sequence[Vector],
) -> CandidateMemory:  # fmt: skip
    """Return what scoring needs of a memory."""
    session_id, speaker, event_time = (
        value if isinstance(value := row.value(name), str) else None
        for name in ("session_id", "speaker", "event_time")
    )
    return CandidateMemory(
        id=row.id, partition=row.partition, session_id=session_id, speaker=speaker,
        event_time=event_time, created_at=row.created_at,
        is_question=is_question(str(row.value("content") or "")),
        is_allowed=conditions.allowed.matches(row),
        length=len(keywords), words=[word for word in keywords if word in words], vector=vector,
        passages=passages,
    )  # fmt: skip


@dataclass(slots=True)
class _Documents:
    corpus: Corpus = Corpus(0, 0)  # noqa: RUF009  (it is frozen)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, length: int, words: Iterable[str]) -> None:
        self.corpus += Corpus(int(length > 0), length)
        self.counts.update(set(words))


@dataclass(slots=True)
class _Totals:
    length: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    cosine: float | None = None

    def add(self, keywords: Sequence[str], words: Collection[str]) -> None:
        self.length += len(keywords)
        self.counts.update({word: keywords.count(word) for word in words})


def _neighbours(
    members: Sequence[tuple[SessionKey, str, Sequence[int]]], ids: Collection[str], steps: int
) -> dict[str, Around]:
    """Return up to `steps` members on each side of each of these ids in its session."""
    wanted, found = set(ids), dict[str, Around]()
    for _, group in groupby(_ordered(members), key=lambda member: member[0]):
        session = [id_ for _, id_, _ in group]
        for at, id_ in enumerate(session):
            if id_ in wanted:
                found[id_] = Around(
                    session[max(0, at - steps) : at][::-1], session[at + 1 : at + 1 + steps]
                )
    return found


def _ordered(
    members: Sequence[tuple[SessionKey, str, Sequence[int]]],
) -> list[tuple[SessionKey, str, Sequence[int]]]:
    """Return the members of sessions, session by session, each in its order."""
    if not members:
        return []
    codes: dict[SessionKey, int] = {}
    groups = np.array([codes.setdefault(key, len(codes)) for key, *_ in members])
    columns = np.array([values for *_, values in members], np.int64).T
    order = session_order(
        groups, list(columns), lambda places: [members[at][1] for at in places.tolist()]
    )
    return [members[at] for at in order.tolist()]


# --- tables of what was read ---
# A table has candidates and their neighbours, all of them readable, and the names of all speakers.

_NO_NAMES: Mapping[str, str] = {}


class PartialTables:
    """The tables of the partitions that a reader sees, and which of their memories are
    neighbours."""

    def __init__(
        self, partitions: Iterable[str], speakers: Iterable[tuple[str, str]], language: str
    ) -> None:
        self.tables = {name: PartialTable(language) for name in partitions}
        for partition, speaker in sorted(speakers):
            self.tables[partition].add_speaker(speaker)
        self._views = [PartialView(table) for table in self.tables.values()]
        self.memories: dict[str, CandidateMemory] = {}
        # By id: the neighbour in its session.
        self._before, self._behind = dict[str, str](), dict[str, str]()

    @property
    def views(self) -> Views:
        return list(zip(self.tables.values(), self._views, strict=True))

    def add(
        self,
        memories: Sequence[CandidateMemory],
        model: Model | None,
        addressees: Mapping[str, str] = _NO_NAMES,
    ) -> None:
        """Add memories, newest first, as an index is built; `addressees` has the names that some
        of them greet, by id."""
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
                pairs = [
                    (slots[id_], slots[other])
                    for id_, other in neighbours.items()
                    if id_ in slots and other in slots
                ]
                if pairs:
                    at, others = zip(*pairs, strict=True)
                    side[list(at)] = others
                around[:, column], around[:, OWN + 1 + column] = side[:-1], side[side[:-1]]
            view.set_around(around)

    def ids_at(self, slots: Iterable[Ints]) -> list[str]:
        """Return the ids of the memories in these slots, given for each partition."""
        return [
            id_
            for table, own in zip(self.tables.values(), slots, strict=True)
            for id_ in table.ids.at(own)
        ]


class PartialTable(Table):
    """A table that memories are added to as a store returns them for scoring. Postings have the
    words of the query only."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.slots: dict[str, int] = {}  # by id
        self._allowed = GrowingArray(np.zeros(0, np.bool_))

    @property
    def allowed(self) -> Flags:
        """By slot: whether it meets the caller's filter."""
        return self._allowed.values

    def add(
        self,
        memories: Sequence[CandidateMemory],
        model: Model | None,
        addressees: Mapping[str, str],
    ) -> Ints:
        """Add memories, and their passages behind them; return the new slots."""
        passages = [(at, each) for at, memory in enumerate(memories) for each in memory.passages]
        first, count, speakers = len(self), len(memories), len(self.names.speakers)
        new = np.arange(first, first + count + len(passages), dtype=np.int32)
        self._alive.grow(first + len(new), value=True)
        self._allowed.grow(
            first + count, np.array([memory.is_allowed for memory in memories], np.bool_)
        )
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
        self._postings.add(new[:count].tolist(), [memory.words for memory in memories])
        self.ids.extend([*(memory.id for memory in memories), *("" for _ in passages)])
        if model:
            own = {
                slot: memory.vector
                for slot, memory in enumerate(memories, start=first)
                if memory.vector
            }
            self._add_space(
                model, own | {first + count + at: each for at, (_, each) in enumerate(passages)}
            )
        return new

    def _columns_of(
        self, memories: Sequence[CandidateMemory], addressees: Mapping[str, str]
    ) -> dict[str, Array]:
        sessions: dict[str | None, int] = {None: -1}
        for memory in memories:
            if memory.session_id not in sessions and memory.session_id is not None:
                sessions[memory.session_id] = self._code(
                    self.names.sessions, hash64(memory.session_id)
                )
        speakers = {
            name: self._code(self.names.speakers, name)
            for name in dict.fromkeys(memory.speaker for memory in memories)
        }
        greeted = (addressees.get(memory.id) for memory in memories) if addressees else ()
        columns = {
            "length": [memory.length for memory in memories],
            "session": [sessions[memory.session_id] for memory in memories],
            "event": [
                MISSING if memory.event_time is None else time_of(memory.event_time)
                for memory in memories
            ],
            "created": [time_of(memory.created_at) for memory in memories],
            "question": [memory.is_question for memory in memories],
            "speaker": [speakers[memory.speaker] for memory in memories],
            "addressee": [name_code(name) if name else 0 for name in greeted],
        }
        return {name: np.array(values) for name, values in columns.items() if values}

    def _add_space(self, model: Model, vectors: Mapping[int, Vector]) -> None:
        self.add_space(model)
        space = self.spaces[model]
        if vectors:
            space.add(vectors)
        space.grow(len(self))
        space.set_new_owners(np.fromiter(vectors, np.int32, len(vectors)), self.column("owner"))


class PartialView(View):
    """A view of a table of which every memory is readable. Other memories of its speakers are in
    the store."""

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
