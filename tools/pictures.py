"""Draw the pictures of docs/images: the life of a memory, the floors, decay and trust from the
code, recall from its result.

    python tools/pictures.py [--check]

The values are the code's own: statuses, import contracts, strength and trust.
`tests/test_pictures.py` makes each transition of the first picture happen. Ink and boxes are
readable on a light and on a dark page.
"""

import argparse
import ast
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # `bench` is beside `tools`, and not installed

from bench.picture import Line, day_chart, rank_chart  # noqa: E402

from memory_mesh.core.claims.rules import compute_trust  # noqa: E402
from memory_mesh.core.language.safety import BASE_TRUST, Source  # noqa: E402
from memory_mesh.core.upkeep.decay import ARCHIVE_BELOW, stability_after, strength  # noqa: E402

FOLDER, RECALL = ROOT / "docs" / "images", ROOT / "bench" / "results" / "recall.json"
_INK, _DAY_MS, _MAX_PURPOSE = "#7a7a7a", 86_400_000, 120
_COLOURS = {
    "new": "#5f6a72", "active": "#00734f", "superseded": "#0072b2", "disputed": "#b04a00",
    "quarantined": "#a23b72", "archived": "#56656f", "erased": "#5f6a72",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transition:
    """An arrow between two statuses: what happens, where the arrow runs, and where its words
    stand."""

    start: str
    end: str
    words: str
    path: tuple[tuple[int, int], ...]
    at: tuple[int, int]
    anchor: str = "middle"


_BOX = (120, 38)  # width and height
PLACES: Mapping[str, tuple[int, int]] = {
    # the centres of the boxes
    "new": (80, 240), "active": (400, 240), "superseded": (730, 350), "disputed": (730, 130),
    "quarantined": (400, 60), "archived": (400, 430), "erased": (80, 430),
}  # fmt: skip
TRANSITIONS = (
    Transition("new", "active", "add, store", ((140, 240), (338, 240)), (275, 232)),
    Transition(
        "new",
        "quarantined",
        "excludes a more trusted claim",
        ((80, 220), (80, 60), (338, 60)),
        (90, 100),
        "start",
    ),
    Transition(
        "quarantined",
        "active",
        "review: activate, keep both",
        ((380, 80), (380, 219)),
        (372, 160),
        "end",
    ),
    Transition(
        "active",
        "quarantined",
        "3 disputes more, or trust below 0.3",
        ((420, 220), (420, 81)),
        (428, 120),
        "start",
    ),
    Transition("disputed", "quarantined", "dispute", ((690, 110), (690, 60), (462, 60)), (575, 52)),
    Transition("active", "disputed", "dispute", ((462, 228), (668, 140)), (620, 144), "end"),
    Transition("disputed", "active", "reinforce", ((700, 150), (463, 244)), (640, 200), "start"),
    Transition(
        "active",
        "superseded",
        "a newer claim, lesson or reflection",
        ((462, 252), (668, 340)),
        (590, 290),
        "start",
    ),
    Transition(
        "superseded", "active", "undo of a review", ((668, 356), (450, 261)), (545, 330), "end"
    ),
    Transition(
        "active",
        "archived",
        "archive, decay, end of session",
        ((420, 260), (420, 409)),
        (428, 385),
        "start",
    ),
    Transition("archived", "active", "unarchive", ((380, 410), (380, 261)), (372, 345), "end"),
    Transition(
        "superseded", "archived", "after 90 days", ((730, 370), (730, 430), (462, 430)), (600, 422)
    ),
    Transition(
        "quarantined",
        "archived",
        "review: reject",
        ((350, 80), (210, 160), (210, 330), (350, 410)),
        (202, 300),
        "end",
    ),
    Transition(
        "archived", "erased", "delete, in every status", ((338, 430), (142, 430)), (240, 422)
    ),
)
_EXCEPT_STATUSES = ("new", "erased")  # before and after the store has it


def life() -> str:
    """Return the picture of statuses and transitions."""
    parts = [_words(24, 28, "The life of a memory", size=16)]
    for one in TRANSITIONS:
        points = " ".join(f"{x},{y}" for x, y in one.path)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{_INK}" stroke-width="1.5" '
            'marker-end="url(#arrow)"/>'
        )
        parts.append(_words(*one.at, one.words, anchor=one.anchor, size=12))
    for name, (x, y) in PLACES.items():
        parts += _box(
            x - _BOX[0] // 2, y - _BOX[1] // 2, *_BOX, name, dashed=name in _EXCEPT_STATUSES
        )
    return _picture(820, 470, parts)


def floors() -> str:
    """Return the picture of the floors, as import-linter checks them, with what each package is
    for."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        one["layers"]
        for one in settings["tool"]["importlinter"]["contracts"]
        if one["type"] == "layers"
    )
    parts, y = [_words(24, 28, "The floors: each imports only from those below it", size=16)], 44
    for floor in layers:
        names = floor.split(" | ")
        height = 22 * len(names) + 12
        parts.append(
            f'<rect x="24" y="{y}" width="792" height="{height}" rx="6" fill="{_INK}" '
            'fill-opacity="0.14"/>'
        )
        for at, name in enumerate(names):
            parts.append(_words(40, y + 22 + 22 * at, name, size=13, bold=True))
            parts.append(_words(150, y + 22 + 22 * at, _purpose(name), size=12))
        y += height + 8
    return _picture(840, y + 8, parts)


def decay() -> str:
    """Return the picture of the strength of memories over time."""
    lives: Mapping[str, tuple[str | None, tuple[int, ...], tuple[int, ...]]] = {
        "unused": (None, (), ()),
        "unused, a decision": ("decision", (), ()),
        "found on days 30, 60, 90": (None, (30, 60, 90), ()),
        "reinforced, days 10, 40": (None, (10, 40), (10, 40)),
    }
    lines = [Line(name, list(_strengths(*life_))) for name, life_ in lives.items()]
    lines.append(
        Line("archived below this", [(0, ARCHIVE_BELOW), (120, ARCHIVE_BELOW)], dashed=True)
    )
    return day_chart("The strength of a memory of importance 0.7", lines, days=120, y="strength")


def trust() -> str:
    """Return the picture of trust: what each source begins with, and one memory in parts."""
    parts = [_words(24, 28, "Trust = base + corroboration + feedback + age, from 0 to 1", size=16)]
    for row, (source, base) in enumerate(BASE_TRUST.items()):
        parts += _bar(56 + 28 * row, source.value, 0.0, base, f"{base:.2f}", _COLOURS["superseded"])
    parts.append(
        _words(
            24,
            254,
            "A statement of a document, stored by two more sources, reinforced twice and disputed "
            "once, after a year:",
        )
    )
    example = compute_trust(
        BASE_TRUST[Source.DOCUMENT], corroborations=3, reinforcements=2, disputes=1, age_days=365
    )
    at = 0.0
    for row, name in enumerate(("base", "corroboration", "feedback", "age")):
        part = getattr(example, name)
        colour = _COLOURS["active"] if part >= 0 else _COLOURS["disputed"]
        parts += _bar(
            270 + 28 * row, name, min(at, at + part), max(at, at + part), f"{part:+.2f}", colour
        )
        at += part
    parts += _bar(
        270 + 28 * 4, "trust", 0.0, example.value, f"{example.value:.2f}", _COLOURS["quarantined"]
    )
    limits = (
        "at most +0.20 for corroboration, ±0.15 for feedback, −0.10 for age; a derived memory: its "
        "least trusted source"
    )
    parts.append(_words(24, 434, limits, size=12))
    return _picture(840, 452, parts)


def recall() -> str:
    """Return the picture of recall by the number of results, as it was measured."""
    result = json.loads(RECALL.read_text(encoding="utf-8"))
    named = {
        "ours": "memory-mesh",
        "BM25": "keywords alone (BM25)",
        "cosine": "vectors alone (cosine)",
        "RRF": "both, by rank fusion",
    }
    lines = [
        Line(
            named.get(name, name.partition(" (")[0]),
            [(rank, value / 100) for rank, value in enumerate(curve, start=1)],
        )
        for name, curve in sorted(result["curves"].items(), key=lambda one: -one[1][-1])
    ]
    title = (
        f"The fraction of the evidence in the first results ({result['questions']:,} questions "
        "of LoCoMo)"
    )
    return rank_chart(title, lines, ranks=len(lines[0].points), y="recall")


def _strengths(
    category: str | None, used: tuple[int, ...], reinforced: tuple[int, ...]
) -> Iterator[tuple[float, float]]:
    for day in range(0, 121, 5):
        touched = max([0, *(at for at in used if at <= day)])
        found = len([at for at in used if at <= day and at not in reinforced])
        stability = stability_after((at * _DAY_MS for at in reinforced if at <= day), 0)
        now = strength(
            0.7,
            age=day,
            touch=day - touched,
            category=category,
            accesses=found,
            stability=stability,
        )
        yield day, round(now, 4)


def _purpose(name: str) -> str:
    """Return the first sentence of the docstring of a package or module."""
    folder = ROOT / "src" / "memory_mesh"
    file = folder / name / "__init__.py"
    module = ast.parse(
        (file if file.exists() else folder / f"{name}.py").read_text(encoding="utf-8")
    )
    first = " ".join((ast.get_docstring(module) or "").split("\n\n")[0].split())
    sentence = first.split(". ")[0].rstrip(".").replace("`", "")
    return sentence if len(sentence) <= _MAX_PURPOSE else sentence.rpartition(": ")[0]


def _bar(y: int, name: str, start: float, end: float, figure: str, colour: str) -> Iterator[str]:
    left, width = 150, 560
    yield _words(left - 10, y + 14, name, anchor="end")
    yield (
        f'<line x1="{left}" y1="{y}" x2="{left}" y2="{y + 20}" stroke="{_INK}" '
        'stroke-opacity="0.4"/>'
    )
    yield (
        f'<rect x="{left + start * width:.1f}" y="{y}" width="{(end - start) * width:.1f}" '
        f'height="20" rx="2" fill="{colour}"/>'
    )
    yield _words(round(left + end * width + 8), y + 14, figure)


def _box(x: int, y: int, width: int, height: int, name: str, *, dashed: bool) -> Iterator[str]:
    look = (
        f'fill="none" stroke="{_INK}" stroke-dasharray="5 4"'
        if dashed
        else f'fill="{_COLOURS[name]}"'
    )
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" {look}/>'
    yield _words(
        x + width // 2,
        y + height // 2 + 5,
        name,
        anchor="middle",
        colour=_INK if dashed else "#ffffff",
        bold=True,
    )


def _words(
    x: int,
    y: int,
    words: str,
    *,
    anchor: str = "start",
    size: int = 13,
    colour: str = _INK,
    bold: bool = False,
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{colour}"{weight}>{escape(words)}</text>'
    )


def _picture(width: int, height: int, parts: list[str]) -> str:
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 L10 5 L0 10 z" '
        f'fill="{_INK}"/></marker></defs>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, arrow, *parts, "</svg>"]) + "\n"


PICTURES = {"life.svg": life, "floors.svg": floors, "decay.svg": decay, "trust.svg": trust}
PICTURES |= {"recall.svg": recall} if RECALL.exists() else {}


def main() -> int:
    """Write the pictures, or with --check name those that are stale."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/images.")
    parser.add_argument("--check", action="store_true", help="only compare")
    check, stale = parser.parse_args().check, []
    for name, draw in PICTURES.items():
        file, drawn = FOLDER / name, draw()
        if check and (not file.exists() or file.read_text(encoding="utf-8") != drawn):
            stale.append(name)
        elif not check:
            file.write_text(drawn, encoding="utf-8")
    if stale:
        sys.stderr.write(
            f"docs/images: {', '.join(stale)} is stale: run python tools/pictures.py\n"
        )
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
