"""Print the tables, write the JSON result, and draw the chart."""

import json
import platform
from collections.abc import Mapping
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.quality.evaluating import Evaluation
from bench.quality.measuring import FIGURES
from bench.quality.reliability import diagram
from memory_mesh.core.search.weights import MIN_EXPECTED

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
_PACKAGES = ("memory-mesh", "numpy", "onnxruntime", "tokenizers", "PyStemmer")
# Distinguishable for colour-blind readers.
_COLOURS = ("#56b4e9", "#e69f00", "#cc79a7", "#0072b2", "#009e73", "#d55e00")
_INK = "#7a7a7a"
_LEFT, _TOP, _BAR, _GAP, _FULL = 170, 60, 18, 22, 460

Table = Mapping[str, Mapping[str, float]]  # by ranker, by figure


def show(name: str, result: Mapping[str, Any]) -> None:
    """Print one data set: the total, its parts, and the confidence of the difference."""
    for part, table in result["parts"].items():
        print(f"\n{name}, {part}: {table['questions']:,} questions")
        print(f"{'':28s}" + "".join(f"{figure:>11s}" for figure in FIGURES))
        for ranker, figures in table["rankers"].items():
            print(f"{ranker:28s}" + "".join(f"{figures[figure]:11.1f}" for figure in FIGURES))
        for figure, (best, low, high) in table["ahead"].items():
            print(f"  ours − {best} ({figure}): {low:+.1f} to {high:+.1f}")


def violations(sets: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return where ours is below a baseline by more than chance: set, part, figure, baseline and
    95 % interval."""
    return [
        {"set": name, "part": part, "figure": figure, "baseline": best, "low": low, "high": high}
        for name, result in sets.items()
        for part, table in result["parts"].items()
        for figure, (best, low, high) in table["ahead"].items()
        if high < 0
    ]


def show_violations(sets: Mapping[str, Any]) -> None:
    """Print where ours is below a baseline by more than chance."""
    found = violations(sets)
    print(f"\nBelow BM25, cosine or RRF by more than chance: {'' if found else 'nowhere'}")
    for each in found:
        print(
            "  {set}, {part}: {figure}, ours − {baseline} {low:+.1f} to {high:+.1f}".format(**each)
        )


def show_nothing(nothing: Mapping[str, Any]) -> None:
    """Print what questions get that no memory answers."""
    for part, rows in nothing.items():
        for name, row in (
            rows.items()
            if part != "mixed"
            else ((f"{row['memories']} memories", row) for row in rows)
        ):
            shown = {key: row[key] for key in row if key != "kinds"}
            print(f"{part}, {name}: {json.dumps(shown, ensure_ascii=False)}")


def keep(evaluation: Evaluation, command: str, folder: Path = RESULTS) -> None:
    """Write the result that later runs are compared with, and its charts."""
    tables = {name: result["parts"]["all"]["rankers"] for name, result in evaluation.sets.items()}
    _write(
        folder / "quality.json", command, sets=evaluation.sets, min_scores=MIN_EXPECTED,
        nothing=evaluation.nothing, reliability=evaluation.reliability,
        violations=violations(evaluation.sets),
    )  # fmt: skip
    (folder / "quality.svg").write_text(picture(tables, "recall@10"), encoding="utf-8")
    (folder / "reliability.svg").write_text(diagram(evaluation.reliability), encoding="utf-8")


def keep_peers(sets: Mapping[str, Any], command: str, folder: Path = RESULTS) -> None:
    """Print and write the figures of other stores."""
    for name, result in sets.items():
        print(f"\n{name}: {result['questions']:,} questions")
        for store, row in result["stores"].items():
            print(f"{store:42s} {row.get('figures') or row['failure']}")
    _write(folder / "quality_peers.json", command, sets=sets)


def _write(path: Path, command: str, **result: object) -> None:
    head = {
        "command": command,
        **measured_at(),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in _PACKAGES},
    }
    path.write_text(
        json.dumps({**head, **result}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def picture(tables: Mapping[str, Table], figure: str) -> str:
    """Draw the bars of one figure, a group for each data set."""
    parts: list[str] = []
    at = _TOP
    for name, table in tables.items():
        parts.append(_text(_LEFT, at - 8, name, size=14))
        for colour, (ranker, figures) in zip(_COLOURS, table.items(), strict=False):
            long = _FULL * figures[figure] / 100
            parts.append(
                f'<rect x="{_LEFT}" y="{at}" width="{long:.1f}" height="{_BAR - 4}" '
                f'fill="{colour}"/>'
            )
            parts.append(_text(_LEFT - 8, at + _BAR - 7, ranker, anchor="end"))
            parts.append(_text(_LEFT + long + 6, at + _BAR - 7, f"{figures[figure]:.1f}"))
            at += _BAR
        at += _GAP + 12
    size = f"0 0 {_LEFT + _FULL + 70} {at}"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
        'font-size="12">'
    )
    return (
        "\n".join([head, _text(_LEFT, 24, f"{figure}, in hundredths", size=16), *parts, "</svg>"])
        + "\n"
    )


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{_INK}">{escape(words)}</text>'
    )
