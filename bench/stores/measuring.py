"""Measure one store at one size, through `MemoryMesh`; each function runs in a process of its own."""

from dataclasses import dataclass

from bench.speed.embedding import PreparedEmbedder
from bench.speed.measuring import Timing, resident_bytes, seconds, time_calls
from bench.speed.texts import Conversations
from bench.stores.places import Place
from memory_mesh import MemoryMesh
from memory_mesh.core.model import batches

_BATCH, _CALLS, _WARM_UP, _ADDED = 500, 100, 20, 50
_LIMIT = 10
_FILTER = "speaker = 'Mara' AND turn < 12"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The durations of calls in one process."""

    bulk_per_s: float
    add: Timing
    search: Timing
    filtered: Timing


def measure(place: Place, size: int) -> Times:
    """Fill a store, then time single adds and searches with and without a filter."""
    conversations, embedder = Conversations(), PreparedEmbedder()
    items = conversations.items(size + _ADDED)
    bulk, spare, total = items[:size], items[size:], 0.0
    queries = conversations.queries(bulk, _CALLS)
    with MemoryMesh(store=place.url, embedder=embedder) as mesh:
        for batch in batches(bulk, _BATCH):
            embedder.prepare(item.text for item in batch)
            total += seconds(lambda batch=batch: mesh.add_many([(item.text, dict(item.metadata)) for item in batch]))  # type: ignore[misc]
        embedder.prepare([*queries, *(item.text for item in spare)])
        for query in queries[:_WARM_UP]:
            mesh.search(query, _LIMIT, use_cache=False)
        return Times(
            bulk_per_s=round(size / total, 1),
            search=time_calls(lambda query: mesh.search(query, _LIMIT, use_cache=False), queries),
            filtered=time_calls(lambda query: mesh.search(query, _LIMIT, _FILTER, use_cache=False), queries),
            add=time_calls(lambda item: mesh.add(item.text, dict(item.metadata)), spare),
        )


def measure_resident(place: Place, size: int) -> float:
    """Return the bytes for each memory that a new process needs to search a store."""
    conversations, embedder = Conversations(), PreparedEmbedder()
    queries = conversations.queries(conversations.items(1000), _WARM_UP)
    embedder.prepare(queries)
    with MemoryMesh(store="memory://", embedder=embedder) as small:  # loads the code, so that only the data is counted below
        small.add("The first text.")
        small.search(queries[0], use_cache=False)
    before = resident_bytes()
    with MemoryMesh(store=place.url, embedder=embedder) as mesh:
        for query in queries:
            mesh.search(query, use_cache=False)
        return round((resident_bytes() - before) / size, 1)
