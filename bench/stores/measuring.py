"""Measure one store at one size, through `MemoryMesh`; each function runs in a process of its
own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from time import process_time

from bench.speed.embedding import PreparedEmbedder
from bench.speed.measuring import Timing, resident_bytes, seconds, time_calls
from bench.speed.texts import Conversations, Item
from bench.stores.places import Place
from memory_mesh import MemoryMesh
from memory_mesh.api.overview import overview_of

_BATCH, _CALLS, _WARM_UP, _ADDED = 500, 100, 5, 50
_ASKED = 10_000  # the queries ask for memories among the first so many
_LIMIT = 10
_FILTER = "speaker = 'Mara' AND turn < 12"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The durations of calls in one process."""

    bulk_per_s: float
    bulk_cpu_ms: float  # for each memory, of the program alone
    compact_s: float  # one call of `compact` after it; PostgreSQL creates the index of vectors then
    add: Timing
    search: Timing
    filtered: Timing


def measure(place: Place, size: int) -> Times:
    """Fill a store, compact it, then time single adds and searches with and without a filter."""
    conversations, embedder = Conversations(), PreparedEmbedder()
    turns, total, cpu, first = conversations.turns(), 0.0, 0.0, list[Item]()
    with MemoryMesh(store=place.url, embedder=embedder) as mesh:
        for start in range(0, size, _BATCH):
            batch = [*islice(turns, min(_BATCH, size - start))]
            first += batch if start < _ASKED else []
            embedder.prepare(item.text for item in batch)
            before = process_time()
            total += seconds(
                lambda batch=batch: mesh.add_many(  # type: ignore[misc]
                    [(item.text, dict(item.metadata)) for item in batch]
                )
            )
            cpu += process_time() - before
        compact = seconds(mesh.compact)
        overview_of(mesh).prepare_search()  # a server store would build its index meanwhile
        queries, spare = conversations.queries(first, _CALLS), [*islice(turns, _ADDED)]
        embedder.prepare([*queries, *(item.text for item in spare)])
        queries = queries[
            : _affordable(lambda query: mesh.search(query, _LIMIT, use_cache=False), queries)
        ]
        return Times(
            bulk_per_s=round(size / total, 1),
            bulk_cpu_ms=round(cpu / size * 1000, 3),
            compact_s=round(compact, 2),
            search=time_calls(lambda query: mesh.search(query, _LIMIT, use_cache=False), queries),
            filtered=time_calls(
                lambda query: mesh.search(query, _LIMIT, _FILTER, use_cache=False), queries
            ),
            add=time_calls(lambda item: mesh.add(item.text, dict(item.metadata)), spare),
        )


def _affordable(call: Callable[[str], object], queries: Sequence[str]) -> int:
    """Call with a few queries, which loads what a search needs; return how many calls fit into a
    minute, but at least 20."""
    spent = [seconds(lambda query=query: call(query)) for query in queries[:_WARM_UP]]  # type: ignore[misc]
    return max(20, min(len(queries), round(60 / median(spent))))


def measure_resident(place: Place, size: int) -> float:
    """Return the bytes for each memory that a new process needs to search a store."""
    conversations, embedder = Conversations(), PreparedEmbedder()
    queries = conversations.queries(conversations.items(1000), _WARM_UP)
    embedder.prepare(queries)
    # Loads the code, so that only the data is counted below.
    with MemoryMesh(store="memory://", embedder=embedder) as small:
        small.add("The first text.")
        small.search(queries[0], use_cache=False)
    before = resident_bytes()
    with MemoryMesh(store=place.url, embedder=embedder) as mesh:
        overview_of(mesh).prepare_search()
        for query in queries:
            mesh.search(query, use_cache=False)
        return round((resident_bytes() - before) / size, 1)
