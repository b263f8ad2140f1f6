"""Measure the processor time of hostile texts on every path that reads a text.

    python -m bench.hostile [--slow] [--sizes 100000,1000000] [--paths add,search]
        [--paths "add, as a tag"]
        [--texts "password: "] [--limit 60] [--out FOLDER]

Each text is given to each path once, in a new store without an embedder, so that no time of a model
is counted. A path that refuses a text (too long, blank) is measured too: it has to read it. A path
that takes more than `--limit` seconds for a text of one size does not get it in a larger one. A run
of everything takes hours; `--slow` takes ten of the texts, half an hour. Prints the slowest texts
of each path; a run of all paths and sizes, with all or the slow texts, writes its result.
"""

import argparse
import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.hostile.paths import PATHS, place
from bench.hostile.texts import SLOW, texts
from memory_mesh import MemoryMeshError

RESULTS = Path(__file__).parents[1] / "results"
SIZES = (100_000, 1_000_000)
_SHOWN = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.hostile", description="Processor time of hostile texts"
    )
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(size) for size in text.split(",")],
        default=list(SIZES),
        help="in characters",
    )
    parser.add_argument(
        "--paths",
        action="append",
        help="a path, or several without commas in their names; may be repeated",
    )
    parser.add_argument("--texts", action="append", help="one of the texts; may be repeated")
    parser.add_argument(
        "--limit",
        type=float,
        default=60.0,
        help="seconds of one text, above which no larger one is tried",
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    parser.add_argument("--slow", action="store_true", help="only ten texts, mostly slow ones")
    given = parser.parse_args()
    made = texts()
    paths = [
        path
        for value in given.paths or PATHS
        for path in ([value] if value in PATHS else value.split(","))
    ]
    names = given.texts or (SLOW if given.slow else made)
    for option, values, known in (("--paths", paths, PATHS), ("--texts", names, made)):
        if unknown := [value for value in values if value not in known]:
            parser.error(
                f"{option}: unknown {shlex.join(unknown)}; the known ones are {shlex.join(known)}"
            )
    chosen = {name: made[name] for name in names}
    rows = [
        row for path in paths for row in measured(path, chosen, sorted(given.sizes), given.limit)
    ]
    if (sorted(given.sizes), paths, given.texts) == (list(SIZES), list(PATHS), None):
        keep(rows, given.out, f"python -m bench.hostile{' --slow' if given.slow else ''}")


def measured(
    path: str, chosen: dict[str, Callable[[int], str]], sizes: Sequence[int], limit: float
) -> list[dict[str, Any]]:
    """Return the seconds of each text in each size on one path, and print the slowest."""
    rows: list[dict[str, Any]] = []
    slow: set[str] = set()
    for size in sizes:
        of_size = [row(path, name, make(size)) for name, make in chosen.items() if name not in slow]
        slow |= {one["text"] for one in of_size if one["cpu_seconds"] > limit}
        worst = sorted(of_size, key=lambda one: -one["cpu_seconds"])[:_SHOWN]
        print(
            f"{path}, {size:,}: "
            + ", ".join(f"{one['cpu_seconds']:.2f} s {one['text']!r}" for one in worst),
            flush=True,
        )
        rows += of_size
    return rows


def row(path: str, name: str, text: str) -> dict[str, Any]:
    """Return the processor time of one text on one path. Every time is that of a new store."""
    with place() as here:
        work = PATHS[path](here)
        refused = None
        started = time.process_time()
        try:
            work(text)
        except MemoryMeshError as error:
            refused = type(error).__name__
        seconds = time.process_time() - started
    return {
        "path": path,
        "text": name,
        "characters": len(text),
        "cpu_seconds": round(seconds, 3),
        "refused": refused,
    }


def keep(rows: Sequence[dict[str, Any]], folder: Path, command: str) -> None:
    result = {
        "made_by": command,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **measured_at(),
        "rows": list(rows),
    }
    (folder / "hostile.json").write_text(
        json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
