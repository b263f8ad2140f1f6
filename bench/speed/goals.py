"""What was aimed at, beside what was measured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.speed.embedding import Price
from bench.speed.ours import Figures, Weight

SEARCH_MS = {10_000: 1.0, 100_000: 5.0, 1_000_000: 15.0}
REMAINING = {10_000: 0.9, 100_000: 0.7}
_FROM = 10_000
RECALL, ADD_MS, BYTES, TIMES = 0.95, 3.0, 1536, 2.0
COLD_S = {"stats": 0.3, "search, keywords": 1.0, "search, local model": 1.0}


@dataclass(frozen=True, slots=True)
class Goal:
    """One aim, and whether it was met."""

    what: str
    wanted: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        return "met" if self.met else "NOT MET"


@dataclass(frozen=True, slots=True)
class Run:
    """All that was measured at one size."""

    figures: Figures
    weight: Weight
    cold: Mapping[str, float]


def goals(runs: Sequence[Run], price: Price | str) -> list[Goal]:
    """The goals that these runs can tell about."""
    return [*(goal for run in runs for goal in _of_size(run, price)), *_growth([run.figures for run in runs])]


def _of_size(run: Run, price: Price | str) -> Iterator[Goal]:
    figures, at = run.figures, f"{run.figures.memories:,}"
    if most := SEARCH_MS.get(figures.memories):
        yield _at_most(f"search p50 at {at}", figures.search.p50_ms, most, "ms")
        yield _at_least(f"recall@10 of exact at {at}", figures.recall_at_10, RECALL)
    if figures.memories == 100_000:
        yield _at_most(f"add p50 at {at}", figures.add.p50_ms, ADD_MS, "ms")
    if (least := REMAINING.get(figures.memories)) and isinstance(price, Price):
        yield _at_least(f"bulk ingest at {at}, share of the embedder's rate", price.remaining(figures.ingest_per_s), least)
    if figures.memories >= _FROM:  # below, what every process holds anyway outweighs the records
        yield _at_most(f"memory a record at {at}", max(run.weight.resident, run.weight.index_files), BYTES, "bytes")
    for command, seconds in run.cold.items():
        yield _at_most(f"cold {command} at {at}", seconds, COLD_S[command], "s")


def _growth(figures: Sequence[Figures]) -> Iterator[Goal]:
    from_10k = [each for each in figures if each.memories >= _FROM]
    if len(from_10k) > 1:
        first, last = from_10k[0], from_10k[-1]
        what = f"growth of search, {first.memories:,} to {last.memories:,}"
        yield _at_most(what, last.search.p50_ms / first.search.p50_ms, last.memories / first.memories, "times")


def _at_most(what: str, measured: float, most: float, unit: str) -> Goal:
    return Goal(
        what, f"≤ {most:g} {unit}", f"{measured:.3g} {unit}" if measured < 100 else f"{measured:,.0f} {unit}", measured <= most
    )


def _at_least(what: str, measured: float, least: float) -> Goal:
    return Goal(what, f"≥ {least:.0%}", f"{measured:.1%}", measured >= least)
