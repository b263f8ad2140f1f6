"""Measure memory-mesh at one size, on a durable file: writes, searches, bytes per memory, cold
start of commands."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np

from bench.speed.embedding import Floats, PreparedEmbedder
from bench.speed.measuring import Timing, file_bytes, resident_bytes, seconds, time_calls
from bench.speed.texts import Conversations, Item
from memory_mesh import MemoryMesh
from memory_mesh.core.model import Reader, Vector, batches, iso
from memory_mesh.core.options import Options
from memory_mesh.core.search.query import Query
from memory_mesh.index import LocalIndex
from memory_mesh.index.space import MAX_EXACT
from memory_mesh.stores import open_store

BATCH = 500
CALLS = 200  # of each timed operation
_AFTER_WRITES = 100
_DELETES = 50
WARM_UP = 20
_RECALLS = 100
LIMIT = 10
_POOL = 150  # the number of candidates that a search requests
_CHANGED_FROM = 10_000  # the size from which changes and filters are measured
_COLD_RUNS = 5
STORES = {
    "sqlite": "memory.db",
    "lancedb": "memory.lance",
    "json": "memory.json",
}  # the scheme, and the name of the file or folder
_COMMAND = str(Path(sys.executable).with_name("memory-mesh"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measurements at one size, without the cost of embedding."""

    memories: int
    agents: int  # that they are spread over
    engine: str
    ingest_per_s: float
    index_ms: float  # the first search, which builds the index of everything ingested
    search: Timing
    hits: float  # results of a search, on average
    recall_at_10: float  # of the vector channel, compared with an exact scan
    after_write: Timing  # a search directly after an add
    add: Timing
    filtered: Timing | None = None
    update: Timing | None = None
    delete: Timing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Bytes per memory."""

    resident: float  # growth of a new process that opens the store and searches
    index_files: float
    database: float
    open_ms: float  # of the new process: open the store and count its memories
    first_search_ms: float  # after that


class Subject:
    """A mesh under measurement, with texts to add and queries."""

    def __init__(self, folder: Path, count: int, store: str) -> None:
        self.embedder = PreparedEmbedder()
        self.mesh = MemoryMesh(store=url(folder, store), embedder=self.embedder)
        conversations = Conversations()
        items = conversations.items(count + CALLS + _AFTER_WRITES)
        self.bulk, self._spare = items[:count], iter(items[count:])
        self.queries = conversations.queries(self.bulk, CALLS)
        self.ids: list[str] = []

    def ingest(self) -> float:
        """Add all texts in batches, and return the seconds."""
        total = 0.0
        for batch in batches(self.bulk, BATCH):
            self.embedder.prepare(item.text for item in batch)
            total += seconds(lambda batch=batch: self._add_many(batch))  # type: ignore[misc]
        self.embedder.prepare([])
        return total

    def search(self, query: str) -> int:
        return len(self.mesh.search(query, LIMIT, use_cache=False))

    def filtered(self, query: str) -> int:
        return len(
            self.mesh.search(query, LIMIT, "speaker = 'Mara' AND turn < 12", use_cache=False)
        )

    def new_items(self, count: int) -> Iterator[Item]:
        """Yield texts that are not stored yet, with their vectors prepared."""
        for _ in range(count):
            item = next(self._spare)
            self.embedder.prepare([item.text])
            yield item

    def queries_after_writes(self) -> Iterator[str]:
        """Yield queries, each directly after an add."""
        for item, query in zip(self.new_items(_AFTER_WRITES), self.queries, strict=False):
            self.add(item)
            self.embedder.prepare([query])
            yield query

    def add(self, item: Item) -> None:
        self.mesh.add(item.text, dict(item.metadata))

    def _add_many(self, batch: Sequence[Item]) -> None:
        records = self.mesh.add_many([(item.text, dict(item.metadata)) for item in batch])
        self.ids += [record.id for record in records]


def url(folder: Path, store: str = "sqlite") -> str:
    return f"{store}:///{folder / STORES[store]}"


def measure(
    count: int, folder: Path, store: str = "sqlite", *, changes_from: int = _CHANGED_FROM
) -> Figures:
    """Measure everything that one process can measure at a size. The store is left in the
    folder."""
    subject = Subject(folder, count, store)
    with subject.mesh:
        ingest_s = subject.ingest()
        subject.embedder.prepare(subject.queries)
        index_s = seconds(lambda: subject.search(subject.queries[0]))
        hits = mean(subject.search(query) for query in subject.queries[:WARM_UP])
        search = time_calls(subject.search, subject.queries)
        recall = _recall(subject, url(folder, store))
        changes = _changes(subject) if count >= changes_from else {}
        return Figures(
            memories=count,
            agents=1,
            engine=engine(count),
            ingest_per_s=round(count / ingest_s, 1),
            index_ms=round(index_s * 1000, 1),
            search=search,
            hits=round(hits, 1),
            recall_at_10=round(recall, 4),
            add=time_calls(subject.add, subject.new_items(CALLS)),
            after_write=time_calls(subject.search, subject.queries_after_writes()),
            **changes,
        )


def engine(count: int) -> str:
    """Return how the vector channel finds its candidates in a partition of this size."""
    if count <= MAX_EXACT:
        return "bytes, all"
    return "bits, then bytes"


def measure_footprint(folder: Path, store: str = "sqlite") -> Footprint:
    """Measure the bytes per memory of the store in a folder. Call it in a new process."""
    conversations = Conversations()
    items = conversations.items(1000)
    queries = conversations.queries(items, WARM_UP)
    embedder = PreparedEmbedder()
    embedder.prepare(queries)
    # Loads the code, so that only the data is counted below.
    with MemoryMesh(store="memory://", embedder=embedder) as small:
        small.add(items[0].text, dict(items[0].metadata))
        small.search(queries[0], use_cache=False)
    before = resident_bytes()
    with MemoryMesh(store=url(folder, store), embedder=embedder) as mesh:
        opened = seconds(mesh.stats)
        first = seconds(lambda: mesh.search(queries[0], use_cache=False))
        for query in queries:
            mesh.search(query, use_cache=False)
        growth, count = resident_bytes() - before, mesh.stats().total_memories
    index = sum(
        file_bytes(path)
        for path in (folder / "memory.db-index", folder / "memory.lance" / "memory_mesh" / "index")
    )
    return Footprint(
        resident=round(growth / count, 1),
        index_files=round(index / count, 1),
        database=round((file_bytes(folder) - index) / count, 1),
        open_ms=round(opened * 1000, 1),
        first_search_ms=round(first * 1000, 1),
    )


def _changes(subject: Subject) -> dict[str, Timing]:
    """Time searches with a filter, updates and deletions."""
    timings = {"filtered": time_calls(subject.filtered, subject.queries)}
    newer = [f"{item.text} On second thought, no." for item in subject.bulk[:CALLS]]
    subject.embedder.prepare(newer)
    timings["update"] = time_calls(
        lambda at: subject.mesh.update(subject.ids[at], content=newer[at]), range(CALLS)
    )
    timings["delete"] = time_calls(subject.mesh.delete, subject.ids[CALLS : CALLS + _DELETES])
    return timings


def _recall(subject: Subject, address: str) -> float:
    """Return the fraction of the ten nearest vectors that the index finds when called as a
    search calls it."""
    everything = np.stack([subject.embedder.floats(item.text) for item in subject.bulk])
    store = open_store(address)
    index = LocalIndex(store)
    try:
        return mean(
            recall_of(
                index,
                Reader(None, Options().agent_id, None),
                vector,
                _nearest(subject, everything, query),
            )
            for query in subject.queries[:_RECALLS]
            for vector in subject.embedder.embed([query])
        )
    finally:
        store.close()


def _nearest(subject: Subject, everything: Floats, query: str) -> set[str]:
    nearest = np.argsort(-(everything @ subject.embedder.floats(query)), kind="stable")[:LIMIT]
    return {subject.ids[at] for at in nearest}


def recall_of(index: LocalIndex, reader: Reader, vector: Vector, nearest: set[str]) -> float:
    """Return the fraction of the nearest memories that the index finds first by vector."""
    pool = index.snapshot(reader).candidates(
        Query(tokens=(), vector=vector, reader=reader, at=iso(time.time_ns() // 1_000_000)),
        size=_POOL,
    )
    best = np.argsort(-pool.signals["vectors"], kind="stable")[:LIMIT].tolist()
    return len({pool.ids[at] for at in best} & nearest) / LIMIT


# --- cold start ---


def measure_cold_start(url: str, query: str, *, with_model: bool) -> dict[str, float]:
    """Return the median seconds of each command, every run a new process: `search` with keywords
    only, and with the model."""
    timings = {
        "stats": _cold_seconds(["stats", "--store", url], "none"),
        "search, keywords": _cold_seconds(["search", query, "--store", url], "none"),
    }
    if with_model:
        timings["search, local model"] = _cold_seconds(["search", query, "--store", url], "local")
    return timings


def _cold_seconds(words: list[str], embedder: str) -> float:
    environment = {**os.environ, "MEMORY_MESH_EMBEDDER": embedder}
    _run(words, environment)  # not counted: compiles the bytecode and fills the file cache
    return round(median(seconds(lambda: _run(words, environment)) for _ in range(_COLD_RUNS)), 3)


def _run(words: list[str], environment: Mapping[str, str]) -> None:
    subprocess.run([_COMMAND, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
