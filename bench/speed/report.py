"""Tables for the terminal, a JSON file for the record, and a picture of the curve."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.picture import Line, chart
from bench.speed.comparing import Compared
from bench.speed.embedding import Price
from bench.speed.goals import SEARCH_MS, Goal, Run
from bench.speed.measuring import Spread

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
_PACKAGES = ("memory-mesh", "numpy", "onnxruntime", "tokenizers", "PyStemmer")


def show_sizes(runs: Sequence[Run], price: Price | str) -> None:
    """A column for each size."""
    rows: list[tuple[str, list[str]]] = [
        ("engine of the vector channel", [run.figures.engine for run in runs]),
        ("bulk ingest, texts/s", [f"{run.figures.ingest_per_s:,.0f}" for run in runs]),
        ("… share of the embedder's batch rate left", [_share(run, price) for run in runs]),
        ("first search after it, ms", [f"{run.figures.index_ms:,.0f}" for run in runs]),
        ("add, ms p50 / p95", [_pair(run.figures.add) for run in runs]),
        ("search, ms p50 / p95", [_pair(run.figures.search) for run in runs]),
        ("search after a write, ms p50 / p95", [_pair(run.figures.after_write) for run in runs]),
        ("search with a filter, ms p50 / p95", [_pair(run.figures.filtered) for run in runs]),
        ("update, ms p50 / p95", [_pair(run.figures.update) for run in runs]),
        ("delete, ms p50 / p95", [_pair(run.figures.delete) for run in runs]),
        ("answers to a search, mean", [f"{run.figures.hits:g}" for run in runs]),
        ("recall@10 of exact, vector channel", [f"{run.figures.recall_at_10:.1%}" for run in runs]),
        ("bytes a record: resident", [f"{run.weight.resident:,.0f}" for run in runs]),
        ("bytes a record: index files", [f"{run.weight.index_files:,.0f}" for run in runs]),
        ("bytes a record: database", [f"{run.weight.database:,.0f}" for run in runs]),
        ("first search of a fresh process, ms", [f"{run.weight.first_search_ms:,.0f}" for run in runs]),
        *((f"cold {name}, s", [f"{run.cold[name]:.2f}" for run in runs]) for name in runs[0].cold),
    ]
    _table(["memories", *(f"{run.figures.memories:,}" for run in runs)], [[name, *cells] for name, cells in rows])
    print(f"\n{_priced(price)}\n")


def show_peers(results: Sequence[Compared]) -> None:
    """A line for each peer; one that could not be measured says why."""
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
        ["beyond the embedding", "memories", "bulk/s", "add ms p50 / p95", "search ms p50 / p95", "answers", "disk bytes"], lines
    )
    print()


def show_goals(goals: Sequence[Goal]) -> None:
    """Each aim beside what was measured; nothing where the run can tell about none."""
    if not goals:
        return
    _table(["goal", "wanted", "measured", ""], [[goal.what, goal.wanted, goal.measured, goal.verdict] for goal in goals])


def keep(out: Path, made_by: str, load_before: float, **result: object) -> None:
    """Write what was found, and how, to a file."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    kept = {
        "made_by": made_by,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": {"before": load_before, "after": load()},  # about 1 where nothing else ran
        "commit": commit or "unknown",
        "versions": {package: found for package in _PACKAGES if (found := _version(package))},
        **result,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sizes_json(runs: Sequence[Run]) -> list[dict[str, object]]:
    return [{**asdict(run.figures), "bytes_a_record": asdict(run.weight), "cold_s": dict(run.cold)} for run in runs]


def draw(out: Path, runs: Sequence[Run]) -> None:
    """How the price of each call grows with the number of memories."""
    sizes = [run.figures.memories for run in runs]
    lines = [
        Line("search p50", [(run.figures.memories, run.figures.search.p50_ms) for run in runs]),
        Line("search p95", [(run.figures.memories, run.figures.search.p95_ms) for run in runs]),
        Line("search after a write", [(run.figures.memories, run.figures.after_write.p50_ms) for run in runs]),
        Line("add p50", [(run.figures.memories, run.figures.add.p50_ms) for run in runs]),
    ]
    if aims := [(size, SEARCH_MS[size]) for size in sizes if size in SEARCH_MS]:
        lines.append(Line("goal for search", aims, dashed=True))
    out.write_text(chart("Milliseconds a call, beyond the embedding", lines, x="memories", y="ms"), encoding="utf-8")


def load() -> float:
    """How busy the machine was in the last minute, in processes."""
    return round(os.getloadavg()[0], 2)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """The first column to the left, the others to the right; a line that ends early says why in its last cell."""
    lines = [head, *lines]
    whole = [line for line in lines if len(line) == len(head)]
    widths = [max(len(line[0]) for line in lines), *(max(len(line[at]) for line in whole) for at in range(1, len(head)))]
    for first, *others in lines:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=False)]
        print("  ".join((first.ljust(widths[0]), *cells)).rstrip())


def _pair(spread: Spread | None) -> str:
    return f"{spread.p50_ms:.2f} / {spread.p95_ms:.2f}" if spread else "–"


def _share(run: Run, price: Price | str) -> str:
    return f"{price.remaining(run.figures.ingest_per_s):.0%}" if isinstance(price, Price) else "–"


def _priced(price: Price | str) -> str:
    if isinstance(price, str):
        return f"The embedding itself was not measured: {price}"
    single = _pair(price.single)
    return f"The embedding itself ({price.model}): one text {single} ms, in a batch {price.batch_per_s:,.0f} texts/s"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
