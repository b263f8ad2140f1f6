"""The result file of the stores: each measured part is written at once, beside those of earlier
runs, with its own commit."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.picture import Line, chart
from bench.speed import report
from bench.stores.places import CASES

Result = dict[str, Any]

# The charts: what they show, the unit, and the value at one size.
CHARTS: Mapping[str, tuple[str, str, Callable[[Result], float | None]]] = {
    "insert": (
        "Memories stored per second, in batches of 500",
        "per second",
        lambda one: one["times"]["bulk_per_s"],
    ),
    "search": ("Milliseconds per search", "ms", lambda one: one["times"]["search"]["p50_ms"]),
    "filtered": (
        "Milliseconds per search with a filter",
        "ms",
        lambda one: one["times"]["filtered"]["p50_ms"],
    ),
    "memory": (
        "Memory of a process that searches, bytes per memory",
        "bytes",
        lambda one: one["resident"],
    ),
    "disk": ("Disk, bytes per memory", "bytes", lambda one: one["disk"]),
}


def read(file: Path) -> list[Result]:
    """Return the results of each store in a file; without a file there are none."""
    return list(json.loads(file.read_text(encoding="utf-8"))["stores"]) if file.exists() else []


def put(
    file: Path, load_before: float, store: str, part: str, name: str | int, value: Mapping[str, Any]
) -> None:
    """Write a part of a store: a size, or the tests of a column. It replaces an earlier one; all
    others stay."""
    results = read(file)
    result = next((one for one in results if one["store"] == store), None)
    if result is None:
        result = {"store": store, "tests": {}, "sizes": []}
        results.append(result)
    measured = {
        **value,
        **measured_at(),
        "load_average": {"before": load_before, "after": report.load_average()},
    }
    if part == "tests":
        result["tests"][str(name)] = measured
    else:
        sizes = [one for one in result["sizes"] if one["memories"] != name]
        result["sizes"] = sorted([*sizes, measured], key=lambda one: int(one["memories"]))
    results.sort(key=lambda one: list(CASES).index(one["store"]))
    whole = file.with_suffix(".part")
    report.write(whole, "python -m bench.stores", load_before, stores=results)
    whole.replace(file)  # a run that is cut off leaves the old file or the new one


def draw(file: Path) -> None:
    """Draw a chart of each figure by the number of memories, beside the result file."""
    results = read(file)
    for name, (title, unit, value) in CHARTS.items():
        lines = [Line(result["store"], list(_points(result["sizes"], value))) for result in results]
        if lines := [line for line in lines if line.points]:
            picture = file.with_name(f"{file.stem}_{name}.svg")
            picture.write_text(chart(title, lines, x="memories", y=unit), encoding="utf-8")


def _points(
    sizes: Sequence[Result], value: Callable[[Result], float | None]
) -> list[tuple[float, float]]:
    """Return the points of a line. Its axes are logarithmic, so a process that did not grow has
    no point."""
    found = [(float(one["memories"]), value(one)) for one in sizes if "times" in one]
    return [(size, number) for size, number in found if number is not None and number > 0]
