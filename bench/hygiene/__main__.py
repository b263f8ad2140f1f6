"""Measure hygiene: what a memory should not keep or do.

    python -m bench.hygiene [--quick] [--checks deleted,hidden] [--systems memory-mesh,chroma]
        [--out FILE]

Each check has a positive control: a check for absence first finds the thing where it is. A row
whose control fails is invalid. The file is written after each check, so that a run that is cut off
keeps what it has; checks that are not run keep their rows. The exit code is 1 if a row of
memory-mesh is invalid or not zero. Other systems run in .venv-peers (`make .venv-peers/.ready`).
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.hygiene.picture import bars
from bench.hygiene.record import OURS, Row, Run, folder
from bench.hygiene.systems import SYSTEMS, available
from bench.peers import ROOT

RESULT = ROOT / "bench" / "results" / "hygiene.json"
CHECKS = (
    "killed", "full_disk", "processes", "supersession", "duplicates", "junk", "hidden", "deleted",
    "redaction", "tampering", "unrelated",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what a memory should not keep or do")
    parser.add_argument("--quick", action="store_true", help="few trials")
    parser.add_argument(
        "--checks", default=",".join(CHECKS), help="the checks, separated by commas"
    )
    parser.add_argument(
        "--systems", default=",".join(SYSTEMS), help="the systems, separated by commas"
    )
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    checks, systems = options.checks.split(","), options.systems.split(",")
    if unknown := [*({*checks} - {*CHECKS}), *({*systems} - SYSTEMS.keys())]:
        parser.error(f"unknown: {', '.join(unknown)}")
    missing = [name for name in systems if not available(name)]
    for name in missing:
        print(f"{name} is not installed here and is left out", file=sys.stderr)
    # For the programs of the tests; other checks name the model that they use.
    os.environ["MEMORY_MESH_EMBEDDER"] = "hash"
    run = Run(options.quick, [name for name in systems if name not in missing])
    with folder() as home:
        os.environ["MEMORY_MESH_HOME"] = str(home)  # for the key of pseudonyms
        rows = [row for name in checks for row in measure(name, run, options.out)]
    return int(any(row.system == OURS and (row.bad or not row.valid) for row in rows))


def measure(
    name: str, run: Run, out: Path, check: Callable[[Run], Iterable[Row]] | None = None
) -> Iterator[Row]:
    """Run one check, print its rows, and put them into the file in the place of its earlier
    ones."""
    started, processor = time.monotonic(), time.process_time()
    rows = list((check or import_module(f"bench.hygiene.{name}").check)(run))
    for row in rows:
        print(line(row), flush=True)
    part = {
        "check": name,
        "command": (
            f"python -m bench.hygiene{' --quick' if run.quick else ''} --checks {name} --systems "
            f"{','.join(run.systems)}"
        ),
        **measured_at(),
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time() - processor, 1),
        "rows": [asdict(row) | {"valid": row.valid} for row in rows],
    }
    keep(out, part)
    yield from rows


def keep(out: Path, part: Mapping[str, Any]) -> None:
    """Write the rows of a check into the result file, at once and whole, in the place of its
    rows of the same systems."""
    kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    parts = [
        one
        for one in kept.get("parts", [])
        if one["check"] != part["check"] or not _systems(one) <= _systems(part)
    ]
    parts = sorted([*parts, part], key=_order)
    result: dict[str, Any] = {
        "made_by": "python -m bench.hygiene",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "commit": part["commit"],
        "clean": all(one["clean"] for one in parts),
        "parts": parts,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    written = out.with_suffix(".tmp")
    written.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    written.replace(out)
    out.with_suffix(".svg").write_text(bars(result["parts"]), encoding="utf-8")


def line(row: Row) -> str:
    state = "" if row.valid else f"  INVALID: {row.control} of {row.controls} controls passed"
    shown = f"{row.check:<13}{row.system:<12}{row.bad:>6} of {row.trials:<6} {row.what}"
    return "\n".join(
        [
            f"{shown}{f' ({row.note})' if row.note else ''}{state}",
            *(f"    {one}" for one in row.examples),
        ]
    )


def _systems(part: Mapping[str, Any]) -> set[str]:
    return {*str(part["command"]).rpartition(" ")[2].split(",")}


def _order(part: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the place of the rows of a check in the table: ours come first."""
    name = part["check"]
    return CHECKS.index(name) if name in CHECKS else len(CHECKS), OURS not in _systems(part)


if __name__ == "__main__":
    sys.exit(main())
