"""Measure every store: its tests, then inserts, searches, memory and disk by size, in one table.

    python -m bench.stores [--sizes 1k,10k,100k] [--stores sqlite,lancedb,…] [--without-tests]
        [--without-figures]
                           [--report build/deep.xml] [--out FILE]

Texts come with vectors computed beforehand, so embedding is not measured. Each figure is from a new
process. Each size, and the tests of each column, is written to the file as soon as it is measured,
beside what the file has of other runs: a run can be done in pieces, and one that is cut off loses
only the piece that it was measuring. A store whose engine is not installed is left out, with the
reason. `--report` counts the tests of all stores in a minute, after a run of all tests at the same
commit.
"""

import argparse
import sys
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from bench.speed import report
from bench.speed.__main__ import parse_size
from bench.speed.measuring import file_bytes, in_fresh_process
from bench.stores import results
from bench.stores.measuring import Times, measure, measure_resident
from bench.stores.places import CASES
from bench.stores.testing import count_tests, run_tests
from memory_mesh.core.errors import MemoryMeshError


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measurements of one store at one size."""

    memories: int
    times: Times
    # Bytes for each memory that a new process holds after it searched; None: not in a process of
    # its own.
    resident: float | None
    disk: float | None  # bytes for each memory; None: the store is in memory
    seconds: float  # that the measurement took as a whole


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.stores", description="Every store: tests, speed, memory and disk"
    )
    parser.add_argument("--sizes", default="1k,10k,100k", help="numbers of memories")
    parser.add_argument("--stores", default=",".join(CASES), help="which stores")
    parser.add_argument("--without-tests", action="store_true", help="measure only")
    parser.add_argument("--without-figures", action="store_true", help="run the tests only")
    parser.add_argument(
        "--report",
        type=Path,
        help="count the tests in this JUnit report of `make test-deep`, and run none",
    )
    parser.add_argument(
        "--out", type=Path, default=report.RESULTS / "stores.json", help="the result file, as JSON"
    )
    given = parser.parse_args()
    stores, sizes = given.stores.split(","), [parse_size(word) for word in given.sizes.split(",")]
    if unknown := {*stores} - {*CASES}:
        raise SystemExit(
            f"--stores: {min(unknown)!r} is unknown; expected some of {', '.join(CASES)}"
        )
    load, failed = report.load_average(), False
    for store in stores:
        for column, arguments in CASES[store].tests.items() if not given.without_tests else ():
            found = count_tests(given.report, arguments) if given.report else run_tests(arguments)
            if not sum(found.values()):
                print(f"{store}, {column}: no test ran; an earlier result is kept", flush=True)
                failed = True
                continue
            results.put(given.out, load, store, "tests", column, found)
            print(
                f"{store}, {column}: {found['passed']} passed, {found['failed']} failed, "
                f"{found['skipped']} skipped",
                flush=True,
            )
            failed = failed or found["failed"] > 0
        for size in (
            (size for size in sizes if size <= CASES[store].max_size)
            if not given.without_figures
            else ()
        ):
            failed = not measure_size(given.out, load, store, size) or failed
    results.draw(given.out)
    sys.exit(int(failed))


def measure_size(out: Path, load: float, store: str, size: int) -> bool:
    """Measure a store at one size, write it to the file and print it. Return whether that was
    possible."""
    print(f"measuring {size:,} memories in {store} …", file=sys.stderr, flush=True)
    started = perf_counter()
    try:
        with CASES[store].opened() as place:
            before = file_bytes(place.folder) if place.folder else 0
            times = in_fresh_process(measure, place, size)
            resident = in_fresh_process(measure_resident, place, size) if place.folder else None
            disk = round((file_bytes(place.folder) - before) / size) if place.folder else None
    except (ImportError, OSError, BrokenExecutor, MemoryMeshError) as error:
        # A process may need more memory than there is.
        reason = f"{type(error).__name__}: {error}"
        print(f"{store} with {size:,} was not measured: {reason}", flush=True)
        results.put(out, load, store, "sizes", size, {"memories": size, "left_out": reason})
        return False
    figures = Figures(
        memories=size,
        resident=resident,
        times=times,
        disk=disk,
        seconds=round(perf_counter() - started, 1),
    )
    results.put(out, load, store, "sizes", size, asdict(figures))
    results.draw(out)
    show(store, figures)
    return True


def show(store: str, one: Figures) -> None:
    """Print the figures of a size."""
    times = ", ".join(
        f"{name} {getattr(one.times, name).p50_ms:.2f} ms" for name in ("add", "search", "filtered")
    )
    bulk = (
        f"bulk {one.times.bulk_per_s:,.0f}/s ({one.times.bulk_cpu_ms:.2f} ms CPU each), compact "
        f"{one.times.compact_s:.1f} s"
    )
    held = f"resident {one.resident}, disk {one.disk} bytes a memory, {one.seconds:.0f} s in all"
    print(f"{store} {one.memories:>9,}: {bulk}, {times}, {held}", flush=True)


if __name__ == "__main__":
    main()
