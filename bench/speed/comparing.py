"""The same texts, vectors and questions for everyone, each in a fresh process, in one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from bench.speed.goals import TIMES, Goal
from bench.speed.measuring import Spread, alone, size_of, spread, timed
from bench.speed.ours import BATCH, CALLS
from bench.speed.peers import OURS, PEERS, Peer, versions
from bench.speed.texts import Item, Speech
from bench.speed.vectors import ReadyEmbedder
from memory_mesh.core.model import batches

_WARM_UP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What one of them took; nothing but a reason where it could not be measured."""

    name: str
    memories: int
    durable: bool
    versions: dict[str, str] | None = None  # None: it is not installed
    failure: str | None = None
    ingest_per_s: float | None = None
    add: Spread | None = None
    search: Spread | None = None
    hits: float | None = None
    disk_bytes: float | None = None  # of a record

    @property
    def fault(self) -> str | None:
        return "not installed" if self.versions is None else self.failure


def compared(name: str, count: int) -> Compared:
    """The figures of one of them, or why there are none: nobody is left out silently."""
    found, durable = versions(name), PEERS[name].durable
    if found is None:
        return Compared(name=name, memories=count, durable=durable)
    try:
        return alone(_measured, name, count, found)
    except Exception as error:  # noqa: BLE001  (whatever another's code raises is its line of the table)
        failure = f"{type(error).__name__}: {error}"[:200]
        return Compared(name=name, memories=count, durable=durable, versions=found, failure=failure)


def against_the_fastest(results: Sequence[Compared]) -> list[Goal]:
    """Our times beside those of the fastest peer that keeps what it is given."""
    ours = next(result for result in results if result.name == OURS)
    return [goal for what in ("search", "add") if (goal := _against(ours, results, what))]


def _measured(name: str, count: int, versions: dict[str, str]) -> Compared:
    speech = Speech()
    items = list(enumerate(speech.items(count + CALLS)))
    keyed = [(f"m{at:07}", item) for at, item in items]
    queries = speech.queries([item for _, item in items[:count]], CALLS)
    embedder = ReadyEmbedder()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        peer = PEERS[name].make(Path(folder), embedder)
        ingested = _ingest(peer, keyed[:count], embedder)
        embedder.ready([*queries, *(item.text for _, item in keyed[count:])])
        hits = mean(peer.search(query) for query in queries[:_WARM_UP])
        search = spread(peer.search, queries)
        add = spread(lambda one: peer.add([one]), keyed[count:])
        peer.close()
        disk = size_of(Path(folder))
    return Compared(
        name=name, memories=count, durable=PEERS[name].durable, versions=versions, ingest_per_s=round(count / ingested, 1),
        add=add, search=search, hits=round(hits, 1), disk_bytes=round(disk / count, 1),
    )  # fmt: skip


def _ingest(peer: Peer, keyed: Sequence[tuple[str, Item]], embedder: ReadyEmbedder) -> float:
    taken = 0.0
    for batch in batches(keyed, BATCH):
        embedder.ready(item.text for _, item in batch)
        taken += timed(lambda batch=batch: peer.add(batch))  # type: ignore[misc]
    return taken


def _against(ours: Compared, results: Sequence[Compared], what: str) -> Goal | None:
    own: Spread | None = getattr(ours, what)
    others = {result.name: getattr(result, what) for result in results if result.durable and result.name != OURS}
    measured = {name: found.p50_ms for name, found in others.items() if found}
    if own is None or not measured:
        return None
    fastest = min(measured, key=lambda name: measured[name])
    ratio = measured[fastest] / own.p50_ms
    named = f"{what} p50 at {ours.memories:,} against {fastest}, the fastest durable peer"
    return Goal(named, f"≥ {TIMES:g} times as fast", f"{ratio:.2g} times", ratio >= TIMES)
