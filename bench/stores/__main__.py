"""Measure every store: its tests, then inserts, searches, memory and disk by size, in one table.

    python -m bench.stores [--sizes 1k,10k,100k] [--stores sqlite,lancedb,…] [--without-tests] [--add] [--out FILE]

Texts come with vectors computed beforehand, so embedding is not measured. Each figure is from a new process. A store whose engine
is not installed is left out, with the reason. With `--add`, the file keeps its results of other stores, with their commits.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from bench.commit import measured_at
from bench.picture import Line, chart
from bench.speed import report
from bench.speed.__main__ import parse_size
from bench.speed.measuring import file_bytes, in_fresh_process
from bench.stores.measuring import Times, measure, measure_resident
from bench.stores.places import CASES, ROOT
from memory_mesh.core.errors import MemoryMeshError

COLUMNS = ("contract", "processes", "crash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measurements of one store at one size."""

    memories: int
    times: Times
    resident: float | None  # bytes for each memory that a new process holds after it searched; None: not in a process of its own
    disk: float | None  # bytes for each memory; None: the store is in memory


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description="Every store: tests, speed, memory and disk")
    parser.add_argument("--sizes", default="1k,10k,100k", help="numbers of memories")
    parser.add_argument("--stores", default=",".join(CASES), help="which stores")
    parser.add_argument("--without-tests", action="store_true", help="measure only")
    parser.add_argument("--add", action="store_true", help="keep the results of other stores in the file")
    parser.add_argument("--out", type=Path, default=report.RESULTS / "stores.json", help="the result file, as JSON")
    given = parser.parse_args()
    stores = given.stores.split(",")
    if unknown := {*stores} - {*CASES}:
        raise SystemExit(f"--stores: {min(unknown)!r} is unknown; expected some of {', '.join(CASES)}")
    load_before, results = report.load_average(), earlier(given.out, stores) if given.add else []
    for store in stores:
        tests = {} if given.without_tests else {column: run_tests(arguments) for column, arguments in CASES[store].tests.items()}
        figures, reason = measure_sizes(store, [parse_size(word) for word in given.sizes.split(",")])
        sizes = [asdict(one) for one in figures]
        results.append({"store": store, **measured_at(), "tests": tests, "sizes": sizes, "left_out": reason})
        show(store, tests, figures, reason)
    results.sort(key=lambda result: list(CASES).index(str(result["store"])))
    command = f"python -m bench.stores --sizes {given.sizes} --stores {given.stores}"
    report.write(given.out, command, load_before, stores=results)
    draw(given.out.with_suffix(".svg"), results)


def earlier(file: Path, stores: Sequence[str]) -> list[dict[str, object]]:
    """Return the results of other stores in a file, each with the commit that it was measured at."""
    if not file.exists():
        return []
    found = json.loads(file.read_text(encoding="utf-8"))
    measured = {name: found[name] for name in ("commit", "clean")}
    return [{**measured, **result} for result in found["stores"] if result["store"] not in stores]


def run_tests(arguments: Sequence[str]) -> dict[str, int]:
    """Run tests, the slow ones too, with few examples; return how many passed, failed and were skipped."""
    with TemporaryDirectory() as folder:
        found = Path(folder, "results.xml")
        options = ("-q", "-n", "0", "--deep", "--hypothesis-profile=quick", "-p", "no:cacheprovider", f"--junitxml={found}")
        subprocess.run([sys.executable, "-m", "pytest", *options, *arguments], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        suite = ElementTree.parse(found).getroot().find("testsuite") if found.exists() else None  # noqa: S314  (pytest's file)
    counts = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")} if suite is not None else {}
    failed = counts.get("failures", 0) + counts.get("errors", 0)
    skipped = counts.get("skipped", 0)
    return {"passed": counts.get("tests", 0) - failed - skipped, "failed": failed, "skipped": skipped}


def measure_sizes(store: str, sizes: Sequence[int]) -> tuple[list[Figures], str | None]:
    """Return the figures of a store at each size, and why it was left out."""
    case, figures = CASES[store], list[Figures]()
    for size in (size for size in sizes if size <= case.max_size):
        print(f"measuring {size:,} memories in {store} …", file=sys.stderr)
        try:
            with case.opened() as place:
                before = file_bytes(place.folder) if place.folder else 0
                measured = in_fresh_process(measure, place, size)
                resident = in_fresh_process(measure_resident, place, size) if place.folder else None
                disk = (file_bytes(place.folder) - before) / size if place.folder else None
        except (ImportError, OSError, MemoryMeshError) as error:
            return figures, f"{type(error).__name__}: {error}"
        figures.append(Figures(memories=size, resident=resident, times=measured, disk=disk and round(disk)))
    return figures, None


def show(store: str, tests: Mapping[str, Mapping[str, int]], figures: Sequence[Figures], reason: str | None) -> None:
    """Print a store."""
    print(
        f"{store}: "
        + ", ".join(f"{column} {found['passed']} passed, {found['failed']} failed" for column, found in tests.items())
    )
    for one in figures:
        times = ", ".join(f"{name} {getattr(one.times, name).p50_ms:.2f} ms" for name in ("add", "search", "filtered"))
        held = f"resident {one.resident}, disk {one.disk} bytes a memory"
        print(f"  {one.memories:>9,}: bulk {one.times.bulk_per_s:,.0f}/s, {times}, {held}")
    if reason:
        print(f"  left out: {reason}")


def draw(out: Path, results: Sequence[Mapping[str, object]]) -> None:
    """Draw the duration of a search by the number of memories."""
    lines = [
        Line(str(result["store"]), [(one["memories"], one["times"]["search"]["p50_ms"]) for one in result["sizes"]])  # type: ignore[attr-defined]
        for result in results
        if result["sizes"]
    ]
    if lines:
        out.write_text(chart("Milliseconds per search, by store", lines, x="memories", y="ms"), encoding="utf-8")


if __name__ == "__main__":
    main()
