"""Print the tables, write the JSON result, and draw the chart."""

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.commit import measured_at
from bench.picture import Line, chart
from bench.speed.comparing import PeerResult
from bench.speed.embedding import EmbeddingCost
from bench.speed.goals import MAX_SEARCH_MS, Goal, Run
from bench.speed.measuring import Timing

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
_PACKAGES = ("memory-mesh", "numpy", "onnxruntime", "tokenizers", "PyStemmer")


_FOOTPRINT = (
    ("bytes per record: resident", "resident"),
    ("bytes per record: index files", "index_files"),
    ("bytes per record: database", "database"),
    ("first search of a new process, ms", "first_search_ms"),
)


def show_sizes(runs: Sequence[Run], cost: EmbeddingCost | str) -> None:
    """Print a column for each size."""
    rows: list[tuple[str, list[str]]] = [
        ("engine of the vector channel", [run.figures.engine for run in runs]),
        ("bulk beyond the embedder, texts/s", [f"{run.figures.ingest_per_s:,.0f}" for run in runs]),
        ("first search after the ingest, ms", [f"{run.figures.index_ms:,.0f}" for run in runs]),
        ("add, ms p50 / p95", [_pair(run.figures.add) for run in runs]),
        ("search, ms p50 / p95", [_pair(run.figures.search) for run in runs]),
        ("search after a write, ms p50 / p95", [_pair(run.figures.after_write) for run in runs]),
        ("search with a filter, ms p50 / p95", [_pair(run.figures.filtered) for run in runs]),
        ("update, ms p50 / p95", [_pair(run.figures.update) for run in runs]),
        ("delete, ms p50 / p95", [_pair(run.figures.delete) for run in runs]),
        ("results of a search, mean", [f"{run.figures.hits:g}" for run in runs]),
        ("recall@10 of exact, vector channel", [f"{run.figures.recall_at_10:.1%}" for run in runs]),
        *(
            (
                name,
                [f"{getattr(run.footprint, field):,.0f}" if run.footprint else "–" for run in runs],
            )
            for name, field in _FOOTPRINT
        ),
        *(
            (f"cold {name}, s", [f"{run.cold[name]:.2f}" if run.cold else "–" for run in runs])
            for name in runs[0].cold
        ),
    ]
    _table(["memories", *(run.what for run in runs)], [[name, *cells] for name, cells in rows])
    print(f"\n{_cost_line(cost)}\n")


def show_stores(runs: Mapping[tuple[str, int], Run]) -> None:
    """Print the table of docs/internals/benchmarks.md: a line for each store and size."""
    timed = (
        "open, ms",
        "add, ms p50 / p95",
        "search, ms p50 / p95",
        "bulk, texts/s",
        "delete, ms p50 / p95",
    )
    print(f"| {' | '.join(('store', 'memories', *timed, 'disk, bytes per memory'))} |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for (store, size), run in runs.items():
        figures, footprint = run.figures, run.footprint
        open_ms, disk = (
            (f"{footprint.open_ms:,.0f}", f"{footprint.database:,.0f}") if footprint else ("–", "–")
        )
        bulk = f"{figures.ingest_per_s:,.0f}"
        cells = [
            store,
            f"{size:,}",
            open_ms,
            _pair(figures.add),
            _pair(figures.search),
            bulk,
            _pair(figures.delete),
            disk,
        ]
        print(f"| {' | '.join(cells)} |")
    print()


def show_peers(results: Sequence[PeerResult]) -> None:
    """Print a line for each store, with the reason if it could not be measured."""
    lines = []
    for result in results:
        name = result.name if result.durable else f"{result.name} (not durable)"
        if result.fault or result.ingest_per_s is None:
            lines.append([name, f"{result.memories:,}", str(result.fault)])
            continue
        cells = [
            f"{result.ingest_per_s:,.0f}",
            _pair(result.add),
            _pair(result.search),
            f"{result.hits:g}",
            f"{result.disk_bytes:,.0f}",
        ]
        lines.append([name, f"{result.memories:,}", *cells])
    _table(
        [
            "without the embedding",
            "memories",
            "bulk/s",
            "add ms p50 / p95",
            "search ms p50 / p95",
            "results",
            "disk bytes",
        ],
        lines,
    )
    print()


def show_goals(goals: Sequence[Goal]) -> None:
    """Print each goal with its measurement; nothing if the run covers no goal."""
    if not goals:
        return
    _table(
        ["goal", "target", "measured", ""],
        [[goal.what, goal.target, goal.measured, goal.verdict] for goal in goals],
    )


def write(out: Path, command: str, load_before: float, **result: object) -> None:
    """Write the result to a file, with the command, the commit and the system."""
    content = {
        "made_by": command,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        # About 1 on an idle machine.
        "load_average": {"before": load_before, "after": load_average()},
        **measured_at(),
        "versions": {package: number for package in _PACKAGES if (number := _version(package))},
        **result,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sizes_json(runs: Sequence[Run]) -> list[dict[str, object]]:
    return [
        {
            **asdict(run.figures),
            "bytes_a_record": run.footprint and asdict(run.footprint),
            "cold_s": dict(run.cold),
        }
        for run in runs
    ]


def draw(out: Path, runs: Sequence[Run]) -> None:
    """Draw the time of each operation by the number of memories of one agent."""
    runs = [run for run in runs if run.figures.agents == 1]
    sizes = [run.figures.memories for run in runs]
    lines = [
        Line("search p50", [(run.figures.memories, run.figures.search.p50_ms) for run in runs]),
        Line("search p95", [(run.figures.memories, run.figures.search.p95_ms) for run in runs]),
        Line(
            "search after a write",
            [(run.figures.memories, run.figures.after_write.p50_ms) for run in runs],
        ),
        Line("add p50", [(run.figures.memories, run.figures.add.p50_ms) for run in runs]),
    ]
    if targets := [(size, MAX_SEARCH_MS[size]) for size in sizes if size in MAX_SEARCH_MS]:
        lines.append(Line("goal for search", targets, dashed=True))
    out.write_text(
        chart("Milliseconds per call, without the embedding", lines, x="memories", y="ms"),
        encoding="utf-8",
    )


def load_average() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a table, the first column left-aligned. A shorter line ends with a reason, which
    does not widen its column."""
    lines = [head, *lines]
    complete = [line for line in lines if len(line) == len(head)]
    widths = [
        max(len(line[0]) for line in lines),
        *(max(len(line[at]) for line in complete) for at in range(1, len(head))),
    ]
    for first, *others in lines:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=False)]
        print("  ".join((first.ljust(widths[0]), *cells)).rstrip())


def _pair(timing: Timing | None) -> str:
    return f"{timing.p50_ms:.2f} / {timing.p95_ms:.2f}" if timing else "–"


def _cost_line(cost: EmbeddingCost | str) -> str:
    if isinstance(cost, str):
        return f"The embedding was not measured: {cost}"
    alone = (
        f"The embedding ({cost.model}): one text {_pair(cost.single)} ms, in batches "
        f"{cost.batch_per_s:,.0f} texts/s"
    )
    return (
        f"{alone}; embedded and stored {cost.stored_per_s:,.0f} texts/s, {cost.fraction:.0%} of it"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
