"""Measure decay and consolidation over a growing SQLite store: CPU seconds and the peak of memory.

    python -m bench.upkeep [--sizes 1000 10000 100000]

One memory in twenty repeats the one before it, ten in five hundred are linked, and after 31 days
nearly half are too weak to keep. Vectors are random, with 384 dimensions. Each size is measured in
a process of its own.
"""

import argparse
import json
import platform
import resource
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from time import process_time

from bench.commit import measured_at
from bench.picture import Line, chart
from bench.speed.measuring import in_fresh_process
from bench.speed.report import load_average
from memory_mesh.core.graph import link
from memory_mesh.core.model import Memory, Reader, Vector, iso
from memory_mesh.flows.context import Context
from memory_mesh.flows.upkeep.consolidate import consolidate
from memory_mesh.flows.upkeep.decay import decay
from memory_mesh.index import LocalIndex
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import FakeClock, no_pause, seeded_ids

ROOT = Path(__file__).parents[1]
RESULT, PICTURE = (ROOT / "bench" / "results" / f"upkeep.{ending}" for ending in ("json", "svg"))
_AT_ONCE = 1000
_GROUP, _EVERY, _REPEATED = 10, 500, 20


@dataclass(frozen=True)
class Measured:
    """How long a run took, what it changed, and the most memory that the process has needed so
    far."""

    what: str
    memories: int
    cpu_seconds: float
    changes: int
    peak_megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Decay and consolidation at growing sizes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    sizes = parser.parse_args().sizes
    load_before, commit = load_average(), measured_at()
    rows = [row for size in sizes for row in in_fresh_process(measure, size)]
    for row in rows:
        print(
            f"{row.what:<24}{row.memories:>9,}{row.cpu_seconds:>9.2f} "
            f"s{row.changes:>9,}{row.peak_megabytes:>9.0f} MB"
        )
    command = f"python -m bench.upkeep --sizes {' '.join(map(str, sizes))}"
    machine = {
        "python": platform.python_version(),
        "platform": sys.platform,
        "load_before": load_before,
    }
    RESULT.write_text(
        json.dumps(
            {"command": command, **commit, **machine, "rows": [asdict(row) for row in rows]},
            indent=1,
        )
        + "\n"
    )
    names = dict.fromkeys(row.what for row in rows)
    lines = [
        Line(name, [(row.memories, row.cpu_seconds) for row in rows if row.what == name])
        for name in names
    ]
    PICTURE.write_text(
        chart("Decay and consolidation", lines, x="memories", y="CPU seconds"), encoding="utf-8"
    )


def measure(size: int) -> list[Measured]:
    """Fill a store, and run everything once."""
    with tempfile.TemporaryDirectory() as folder:
        store, clock = open_store(f"sqlite:///{folder}/memory.db"), FakeClock()
        context = Context(
            store=store, index=LocalIndex(store, language="english"), clock=clock,
            ids=seeded_ids(), reader=Reader("ana", "planner"), pause=no_pause,
        )  # fmt: skip
        fill(context, size)
        clock.advance(days=31)
        rows = [
            measured("decay, dry run", size, lambda: len(decay(context, dry_run=True).archived)),
            measured("consolidate", size, lambda: changes(context)),
            measured("consolidate again", size, lambda: changes(context)),
            measured("decay", size, lambda: len(decay(context).archived)),
        ]
        store.close()
    return rows


def measured(what: str, size: int, run: Callable[[], int]) -> Measured:
    began = process_time()
    count = run()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(what, size, round(process_time() - began, 3), count, round(peak, 1))


def changes(context: Context) -> int:
    """Consolidate, and return the number of changes. All groups get their digest, so that a
    second run has nothing to do."""
    done = consolidate(context, max_digests=10**6)
    return sum(
        map(len, (done.dedupe, done.contradictions, done.corroboration, done.compress, done.prune))
    )


def fill(context: Context, size: int) -> None:
    random, at = Random(1), context.clock()  # noqa: S311  (predictable on purpose)
    batch: list[Memory] = []
    for memory in memories(context, size, random):
        batch.append(memory)
        if len(batch) == _AT_ONCE or memory.number == size - 1:
            ends = [
                (one, batch[n - 1])
                for n, one in enumerate(batch)
                if 0 < one.number % _EVERY < _GROUP
            ]
            links = [
                link(one, before, "similar", at, 0.7).row(one.partition) for one, before in ends
            ]
            context.store.apply([*(one.row() for one in batch), *links])
            batch = []


def memories(context: Context, size: int, random: Random) -> Iterator[Memory]:
    data = b""
    for number in range(size):
        repeats = number % _REPEATED == 1
        text = (
            f"The room {number - 1} is painted blue."
            if repeats
            else f"Room {number} is painted blue."
        )
        data = (
            data if repeats else array("f", (random.random() - 0.5 for _ in range(384))).tobytes()
        )
        at = iso(context.clock() + number)
        yield Memory.new(
            id=f"mem_{number:08d}", content=text, created_at=at, updated_at=at,
            keywords=text.lower().split(), user_id="ana", agent_id="planner", memory_type="agent",
            importance=random.random(), vector=Vector("random", data), number=number, salt="salt",
        )  # fmt: skip


if __name__ == "__main__":
    main()
