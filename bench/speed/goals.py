"""The performance goals, compared with what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.speed.embedding import EmbeddingCost
from bench.speed.ours import Figures, Footprint

MAX_SEARCH_MS = {10_000: 1.4, 100_000: 3.0, 1_000_000: 10.0}
MIN_FRACTION, MIN_BULK_PER_S = 0.9, 4000  # of the embedder's rate with it, and beyond it
_FROM = 10_000
MIN_RECALL, MAX_ADD_MS, MAX_BYTES, MIN_TIMES = 0.99, 1.2, 1536, 2.0
MAX_TIMES_SEARCH = 2.0  # of a search with a filter, and of the first one after a write
MAX_UPDATE_MS, MAX_DELETE_MS, MAX_DISK_BYTES = 2.0, 10.0, 3000
MAX_ADD_MS_OF_OTHERS, MIN_INGEST_OF_OTHERS = 30.0, 0.9
MAX_COLD_S = {"stats": 0.25, "search, keywords": 0.6, "search, local model": 0.6}


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal, and whether it was met."""

    what: str
    target: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        return "met" if self.met else "NOT MET"


@dataclass(frozen=True, slots=True)
class Run:
    """All measurements at one size."""

    figures: Figures
    footprint: Footprint | None = None
    cold: Mapping[str, float] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The number of memories, and of agents if there are several."""
        agents = f" of {self.figures.agents:,} agents" if self.figures.agents > 1 else ""
        return f"{self.figures.memories:,}{agents}"


def goals(runs: Sequence[Run], cost: EmbeddingCost | str) -> list[Goal]:
    """Return the goals that these runs cover."""
    with_embedder = (
        []
        if isinstance(cost, str)
        else [_at_least("bulk with the embedder, of its own rate", cost.fraction, MIN_FRACTION)]
    )
    by_size = (goal for run in runs for goal in _of_size(run))
    return [*by_size, *with_embedder, *_growth([run.figures for run in runs if run.footprint])]


def _of_size(run: Run) -> Iterator[Goal]:
    figures, size = run.figures, run.what
    if max_ms := MAX_SEARCH_MS.get(figures.memories):
        yield _at_most(f"search p50 at {size}", figures.search.p50_ms, max_ms, "ms")
        yield _at_least(f"recall@10 of exact at {size}", figures.recall_at_10, MIN_RECALL)
    if figures.memories >= _FROM:
        for what, timing in (
            ("search with a filter", figures.filtered),
            ("search after a write", figures.after_write),
        ):
            if timing:
                yield _at_most(
                    f"{what} at {size}",
                    timing.p50_ms / figures.search.p50_ms,
                    MAX_TIMES_SEARCH,
                    "times a search",
                )
        yield _at_most(f"add p50 at {size}", figures.add.p50_ms, MAX_ADD_MS, "ms")
        bulk = figures.ingest_per_s
        yield Goal(
            f"bulk at {size}, beyond the embedder",
            f"≥ {MIN_BULK_PER_S:,}/s",
            f"{bulk:,.0f}/s",
            bulk >= MIN_BULK_PER_S,
        )
    # Below, the constant memory of a process outweighs the records.
    if run.footprint and figures.memories >= _FROM:
        largest = max(run.footprint.resident, run.footprint.index_files)
        yield _at_most(f"memory per record at {size}", largest, MAX_BYTES, "bytes")
        yield _at_most(
            f"database per record at {size}", run.footprint.database, MAX_DISK_BYTES, "bytes"
        )
    if figures.update:
        yield _at_most(f"update p50 at {size}", figures.update.p50_ms, MAX_UPDATE_MS, "ms")
    if figures.delete:
        yield _at_most(f"delete p50 at {size}", figures.delete.p50_ms, MAX_DELETE_MS, "ms")
    for command, duration in run.cold.items():
        yield _at_most(f"cold {command} at {size}", duration, MAX_COLD_S[command], "s")


def store_goals(run: Run, default: Run, store: str) -> list[Goal]:
    """Return the goals of a further store, compared with the default one at the same size."""
    size = f"{run.figures.memories:,}"
    fraction = run.figures.ingest_per_s / default.figures.ingest_per_s
    return [
        _at_most(f"{store}: add p50 at {size}", run.figures.add.p50_ms, MAX_ADD_MS_OF_OTHERS, "ms"),
        _at_least(
            f"{store}: bulk ingest at {size}, fraction of the default store's",
            fraction,
            MIN_INGEST_OF_OTHERS,
        ),
    ]


def _growth(figures: Sequence[Figures]) -> Iterator[Goal]:
    from_10k = [each for each in figures if each.memories >= _FROM]
    if len(from_10k) > 1:
        first, last = from_10k[0], from_10k[-1]
        what = f"growth of search, {first.memories:,} to {last.memories:,}"
        yield _at_most(
            what, last.search.p50_ms / first.search.p50_ms, last.memories / first.memories, "times"
        )


def _at_most(what: str, measured: float, maximum: float, unit: str) -> Goal:
    shown = f"{measured:.3g} {unit}" if measured < 100 else f"{measured:,.0f} {unit}"
    return Goal(what, f"≤ {maximum:g} {unit}", shown, measured <= maximum)


def _at_least(what: str, measured: float, minimum: float) -> Goal:
    return Goal(what, f"≥ {minimum:.0%}", f"{measured:.1%}", measured >= minimum)
