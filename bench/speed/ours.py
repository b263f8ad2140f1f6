"""memory-mesh at one size: what a write, a search and a memory cost, on a durable file."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from bench.speed.measuring import Spread, resident, size_of, spread, timed
from bench.speed.texts import Item, Speech
from bench.speed.vectors import Floats, ReadyEmbedder
from memory_mesh import MemoryMesh
from memory_mesh.core.model import Reader, iso
from memory_mesh.core.options import Options
from memory_mesh.core.search.query import Query
from memory_mesh.index import LocalIndex
from memory_mesh.index.vectors import COARSE, MAX_EXACT
from memory_mesh.stores import open_store

BATCH = 500
CALLS = 200  # of each measured call
_AFTER_WRITES = 100
_DELETES = 50  # each may free the whole file of a small store
_WARM_UP = 20
_RECALLS = 100
_LIMIT = 10
_POOL = 150  # as a search asks for
_CHANGED_AT = 10_000  # the size at which changes and filters are measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured at one size. Nothing of it includes the price of an embedding."""

    memories: int
    engine: str
    ingest_per_s: float
    index_ms: float  # the first search, which makes the index of all that was ingested
    search: Spread
    hits: float  # answers of a search, on average
    recall_at_10: float  # of the vector channel, against comparing all
    after_write: Spread  # a search right after an add
    add: Spread
    filtered: Spread | None = None
    update: Spread | None = None
    delete: Spread | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What a memory weighs, in bytes."""

    resident: float  # growth of a fresh process that opens the store and searches
    index_files: float
    database: float
    first_search_ms: float  # of the fresh process


class Subject:
    """A mesh under measurement, with texts to feed it and questions to ask."""

    def __init__(self, folder: Path, count: int) -> None:
        self.count = count
        self.embedder = ReadyEmbedder()
        self.mesh = MemoryMesh(store=url(folder), embedder=self.embedder)
        speech = Speech()
        items = speech.items(count + CALLS + _AFTER_WRITES)
        self.bulk, self._spare = items[:count], iter(items[count:])
        self.queries = speech.queries(self.bulk, CALLS)
        self.ids: list[str] = []

    def ingest(self) -> float:
        """Seconds that it takes to add all, in batches."""
        taken = 0.0
        for at in range(0, self.count, BATCH):
            batch = self.bulk[at : at + BATCH]
            self.embedder.ready(item.text for item in batch)
            taken += timed(lambda batch=batch: self._add_many(batch))  # type: ignore[misc]
        self.embedder.ready([])
        return taken

    def search(self, query: str) -> int:
        return len(self.mesh.search(query, _LIMIT, use_cache=False))

    def filtered(self, query: str) -> int:
        return len(self.mesh.search(query, _LIMIT, "speaker = 'Mara' AND turn < 12", use_cache=False))

    def new(self, count: int) -> Iterator[Item]:
        """Texts that it does not hold yet, each with its vector at hand."""
        for _ in range(count):
            item = next(self._spare)
            self.embedder.ready([item.text])
            yield item

    def asked_after_writes(self) -> Iterator[str]:
        """Queries, each right behind an add."""
        for item, query in zip(self.new(_AFTER_WRITES), self.queries, strict=False):
            self.add(item)
            self.embedder.ready([query])
            yield query

    def add(self, item: Item) -> None:
        self.mesh.add(item.text, dict(item.metadata))

    def _add_many(self, batch: Sequence[Item]) -> None:
        records = self.mesh.add_many([(item.text, dict(item.metadata)) for item in batch])
        self.ids += [record.id for record in records]


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'memory.db'}"


def measured(count: int, folder: Path) -> Figures:
    """Everything about a size that one process can tell. Leaves the store in the folder."""
    subject = Subject(folder, count)
    with subject.mesh:
        ingested = subject.ingest()
        subject.embedder.ready(subject.queries)
        index_s = timed(lambda: subject.search(subject.queries[0]))
        hits = mean(subject.search(query) for query in subject.queries[:_WARM_UP])
        search = spread(subject.search, subject.queries)
        recall = _recall(subject, folder)
        changes = _changes(subject) if count == _CHANGED_AT else {}
        return Figures(
            memories=count,
            engine=engine(count),
            ingest_per_s=round(count / ingested, 1),
            index_ms=round(index_s * 1000, 1),
            search=search,
            hits=round(hits, 1),
            recall_at_10=round(recall, 4),
            add=spread(subject.add, subject.new(CALLS)),
            after_write=spread(subject.search, subject.asked_after_writes()),
            **changes,
        )


def engine(count: int) -> str:
    """How the vector channel finds its candidates in a partition of this size."""
    if count <= MAX_EXACT:
        return "bytes, all"
    return "bits, then bytes" if count <= COARSE else "some bits, all bits, then bytes"


def weighed(folder: Path) -> Weight:
    """What the store of a folder weighs; to be asked in a fresh process."""
    speech = Speech()
    items = speech.items(1000)
    queries = speech.queries(items, _WARM_UP)
    embedder = ReadyEmbedder()
    embedder.ready(queries)
    with MemoryMesh(store="memory://", embedder=embedder) as small:  # loads the code, so that only the data is left to weigh
        small.add(items[0].text, dict(items[0].metadata))
        small.search(queries[0], use_cache=False)
    before = resident()
    with MemoryMesh(store=url(folder), embedder=embedder) as mesh:
        first = timed(lambda: mesh.search(queries[0], use_cache=False))
        for query in queries:
            mesh.search(query, use_cache=False)
        grown, count = resident() - before, mesh.stats().total_memories
    files = {path.name: size_of(path) for path in folder.iterdir()}
    index = sum(found for name, found in files.items() if name.endswith("-index"))
    return Weight(
        resident=round(grown / count, 1),
        index_files=round(index / count, 1),
        database=round((sum(files.values()) - index) / count, 1),
        first_search_ms=round(first * 1000, 1),
    )


def _changes(subject: Subject) -> dict[str, Spread]:
    """Searches with a filter, updates and deletions."""
    found = {"filtered": spread(subject.filtered, subject.queries)}
    newer = [f"{item.text} On second thought, no." for item in subject.bulk[:CALLS]]
    subject.embedder.ready(newer)
    found["update"] = spread(lambda at: subject.mesh.update(subject.ids[at], content=newer[at]), range(CALLS))
    found["delete"] = spread(subject.mesh.delete, subject.ids[CALLS : CALLS + _DELETES])
    return found


def _recall(subject: Subject, folder: Path) -> float:
    """The share of the ten nearest vectors that the index finds, as a search asks it."""
    everything = np.stack([subject.embedder.floats(item.text) for item in subject.bulk])
    store = open_store(url(folder))
    index = LocalIndex(store)
    try:
        return mean(_found(subject, index, everything, query) for query in subject.queries[:_RECALLS])
    finally:
        store.close()


def _found(subject: Subject, index: LocalIndex, everything: Floats, query: str) -> float:
    (vector,) = subject.embedder.embed([query])
    reader = Reader(None, Options().agent_id, None)
    pool = index.candidates(Query(tokens=(), vector=vector, reader=reader, at=iso(time.time_ns() // 1_000_000)), size=_POOL)
    best = np.argsort(-pool.signals["vectors"], kind="stable")[:_LIMIT]
    nearest = np.argsort(-(everything @ subject.embedder.floats(query)), kind="stable")[:_LIMIT]
    return len({pool.ids[at] for at in best} & {subject.ids[at] for at in nearest}) / _LIMIT
