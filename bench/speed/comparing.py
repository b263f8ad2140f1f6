"""Compare stores: the same texts, vectors and queries for each, each in a new process, in one
run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from bench.peers import Peer, installed_versions
from bench.speed.embedding import PreparedEmbedder
from bench.speed.goals import MIN_TIMES, Goal
from bench.speed.measuring import Timing, file_bytes, in_fresh_process, seconds, time_calls
from bench.speed.ours import BATCH, CALLS
from bench.speed.peers import OURS, PEERS
from bench.speed.texts import Conversations, Item
from memory_mesh.core.model import batches

_WARM_UP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResult:
    """The figures of one store, or why it could not be measured."""

    name: str
    memories: int
    durable: bool
    versions: dict[str, str] | None = None  # None: not installed
    failure: str | None = None
    ingest_per_s: float | None = None
    add: Timing | None = None
    search: Timing | None = None
    hits: float | None = None
    disk_bytes: float | None = None  # per record

    @property
    def fault(self) -> str | None:
        return "not installed" if self.versions is None else self.failure


def measure_peer(name: str, count: int) -> PeerResult:
    """Measure one store. A store that is missing or fails is reported, never left out."""
    versions, durable = installed_versions(PEERS[name].packages), PEERS[name].durable
    if versions is None:
        return PeerResult(name=name, memories=count, durable=durable)
    try:
        return in_fresh_process(_measure, name, count, versions)
    except Exception as error:  # noqa: BLE001  (any error of another library is reported in its line of the table)
        failure = f"{type(error).__name__}: {error}"[:200]
        return PeerResult(
            name=name, memories=count, durable=durable, versions=versions, failure=failure
        )


def goals_against_peers(results: Sequence[PeerResult]) -> list[Goal]:
    """Compare our times with those of the fastest durable peer."""
    ours = next(result for result in results if result.name == OURS)
    return [
        goal
        for operation in ("search", "add")
        if (goal := _against_fastest(ours, results, operation))
    ]


def _measure(name: str, count: int, versions: dict[str, str]) -> PeerResult:
    conversations = Conversations()
    items = conversations.items(count + CALLS)
    keyed = [(f"m{at:07}", item) for at, item in enumerate(items)]
    queries = conversations.queries(items[:count], CALLS)
    embedder = PreparedEmbedder()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        peer = PEERS[name].make(Path(folder), embedder)
        ingest_s = _ingest(peer, keyed[:count], embedder)
        embedder.prepare([*queries, *(item.text for item in items[count:])])
        hits = mean(len(peer.search(query)) for query in queries[:_WARM_UP])
        search = time_calls(peer.search, queries)
        add = time_calls(lambda one: peer.add([one]), keyed[count:])
        peer.close()
        disk = file_bytes(Path(folder))
    return PeerResult(
        name=name, memories=count, durable=PEERS[name].durable, versions=versions,
        ingest_per_s=round(count / ingest_s, 1), add=add, search=search, hits=round(hits, 1),
        disk_bytes=round(disk / count, 1),
    )  # fmt: skip


def _ingest(peer: Peer, keyed: Sequence[tuple[str, Item]], embedder: PreparedEmbedder) -> float:
    total = 0.0
    for batch in batches(keyed, BATCH):
        embedder.prepare(item.text for _, item in batch)
        total += seconds(lambda batch=batch: peer.add(batch))  # type: ignore[misc]
    return total


def _against_fastest(
    ours: PeerResult, results: Sequence[PeerResult], operation: str
) -> Goal | None:
    own: Timing | None = getattr(ours, operation)
    timings = {
        result.name: getattr(result, operation)
        for result in results
        if result.durable and result.name != OURS
    }
    p50 = {name: timing.p50_ms for name, timing in timings.items() if timing}
    if own is None or not p50:
        return None
    fastest = min(p50, key=lambda name: p50[name])
    ratio = p50[fastest] / own.p50_ms
    what = f"{operation} p50 at {ours.memories:,} against {fastest}, the fastest durable peer"
    return Goal(what, f"≥ {MIN_TIMES:g} times as fast", f"{ratio:.2g} times", ratio >= MIN_TIMES)
