"""Draw how the score of a memory of the lane changes over 120 days: unused, used, and rated.

    python -m bench.lane [--check]

The scores are those of `core/lane/scoring.py`, for a decision with a similarity of 0.8.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.picture import Line, day_chart
from memory_mesh.core.lane.scoring import changed_feedback, score
from memory_mesh.core.model import DAY_MS, iso

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "lane-decay.svg"
DAYS, SIMILARITY = 120, 0.8
# What happens to a memory, by day: it is found, or rated.
LIVES: Mapping[str, Mapping[int, str]] = {
    "unused": {},
    "found on day 45": {45: "found"},
    "helpful on days 20, 50": {20: "helpful", 50: "helpful"},
    "harmful on day 60": {60: "harmful"},
}


def main() -> int:
    """Write the picture, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    lines = [Line(name, list(steps(life))) for name, life in LIVES.items()]
    drawn = day_chart(
        "The score of a memory over time", lines, days=DAYS, y="score (similarity 0.8, weight 1)"
    )
    if parser.parse_args().check:
        return int(PICTURE.read_text(encoding="utf-8") != drawn)
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


def steps(life: Mapping[int, str]) -> Iterator[tuple[float, float]]:
    """Yield the days on which the score changes: the value before, and the new one."""
    last, feedback, before = None, 1.0, None
    for day in range(DAYS + 1):
        last = iso(day * DAY_MS) if life.get(day) == "found" else last
        feedback = (
            changed_feedback(feedback, life[day])
            if life.get(day) in ("helpful", "harmful")
            else feedback
        )
        now = score(
            SIMILARITY, category="decision", intended=(), ms=day * DAY_MS, created_at=iso(0),
            last_accessed=last, feedback_score=feedback,
        ).value  # fmt: skip
        if now != before and before is not None:
            yield day, before
        if now != before or day == DAYS:
            yield day, now
        before = now


if __name__ == "__main__":
    sys.exit(main())
