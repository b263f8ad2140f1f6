"""Measure queries over a growing number of traces in SQLite: CPU milliseconds of a call, the median
of several.

    python -m bench.traces [--sizes 10 100 1000 10000 100000]

The goals are made of 60 words, and every tenth run failed. The vectors are those of the hashing
embedder (384 dimensions): the time of embedding a query with the shipped model, which does not
depend on the number of traces, is not part of the figures. Each size is measured in a process of
its own, after one call that loads the index.
"""

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from time import process_time

from bench.commit import measured_at
from bench.picture import Line, chart
from bench.speed.measuring import in_fresh_process
from bench.speed.report import load_average
from memory_mesh import MemoryMesh
from memory_mesh.core.intake import TRACE_KEY
from memory_mesh.core.model import Memory, batches, iso
from memory_mesh.core.search import tokens
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store

ROOT = Path(__file__).parents[1]
RESULT, PICTURE = (ROOT / "bench" / "results" / f"traces.{ending}" for ending in ("json", "svg"))
_VERBS = (
    "deploy",
    "build",
    "test",
    "import",
    "export",
    "migrate",
    "index",
    "clean",
    "archive",
    "publish",
    "repair",
    "measure",
)
_THINGS = (
    "shop",
    "site",
    "orders",
    "users",
    "invoices",
    "images",
    "logs",
    "reports",
    "mails",
    "tickets",
    "prices",
    "stocks",
)
_PLACES = [f"{kind} {number}" for kind in ("server", "region", "branch") for number in range(12)]
_AT_ONCE, _CALLS = 1000, 15


@dataclass(frozen=True)
class Measured:
    """How long a call takes with so many traces."""

    what: str
    traces: int
    cpu_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Queries over a growing number of traces")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1_000, 10_000, 100_000])
    sizes = parser.parse_args().sizes
    load_before, commit = load_average(), measured_at()
    rows = [row for size in sizes for row in in_fresh_process(measure, size)]
    for row in rows:
        print(f"{row.what:<28}{row.traces:>9,}{row.cpu_ms:>10.2f} ms")
    machine = {
        "python": platform.python_version(),
        "platform": sys.platform,
        "load_before": load_before,
    }
    command = f"python -m bench.traces --sizes {' '.join(map(str, sizes))}"
    RESULT.write_text(
        json.dumps(
            {"command": command, **commit, **machine, "rows": [asdict(row) for row in rows]},
            indent=1,
        )
        + "\n"
    )
    names = dict.fromkeys(row.what for row in rows)
    lines = [
        Line(name, [(row.traces, row.cpu_ms) for row in rows if row.what == name]) for name in names
    ]
    PICTURE.write_text(
        chart("Queries over traces", lines, x="traces", y="CPU milliseconds"), encoding="utf-8"
    )


def measure(size: int) -> list[Measured]:
    """Fill a store, and call everything several times."""
    with tempfile.TemporaryDirectory() as folder:
        url, random = f"sqlite:///{folder}/memory.db", Random(2)  # noqa: S311  (predictable on purpose)
        fill(url, size)
        goals = [goal(random) for _ in range(_CALLS)]
        rows: list[Measured] = []
        with MemoryMesh(url, traces_dir=f"{folder}/traces", embedder=HashingEmbedder()) as mesh:
            rows.append(measured("similar", size, goals, lambda text: mesh.traces.similar(text)))
            rows.append(
                measured("plan_context", size, goals, lambda text: mesh.traces.plan_context(text))
            )
            rows.append(
                measured(
                    "record", size, goals, lambda text: mesh.traces.record(text, project="new")
                )
            )
        with MemoryMesh(url, traces_dir=f"{folder}/traces", embedder="none") as mesh:
            rows.append(
                measured(
                    "similar, without vectors",
                    size,
                    goals[:5],
                    lambda text: mesh.traces.similar(text),
                )
            )
    return rows


def measured(what: str, size: int, goals: list[str], call: Callable[[str], object]) -> Measured:
    call("load the index")
    times: list[float] = []
    for text in goals:
        began = process_time()
        call(text)
        times.append(process_time() - began)
    return Measured(what, size, round(1000 * median(times), 3))


def goal(random: Random) -> str:
    return (
        f"{random.choice(_VERBS)} the {random.choice(_THINGS)} of {random.choice(_PLACES)}"
    ).capitalize()


def fill(url: str, size: int) -> None:
    """Store the memories of so many traces, of 50 projects."""
    with MemoryMesh(url, embedder=HashingEmbedder()) as mesh:
        mesh.add("The store has vectors of this model.")
    store = open_store(url)
    for batch in batches(memories(size), _AT_ONCE):
        store.apply([memory.row() for memory in batch])
    store.close()


def memories(size: int) -> Iterator[Memory]:
    random, embedder = Random(1), HashingEmbedder()  # noqa: S311  (predictable on purpose)
    for number in range(size):
        text, ms = goal(random), 1_760_000_000_000 + number * 1000
        at, id_ = iso(ms), f"trace-{ms}-000000"
        status = "failure" if number % 10 == 0 else "success"
        metadata = {
            "category": "trace",
            "trace_id": id_,
            "status": status,
            "duration_ms": number,
            "tools_used": ["make"],
        }
        yield Memory.new(
            id=f"mem_{ms}_000000", content=text, created_at=at, updated_at=at, event_time=at,
            keywords=tokens(text), category="trace", project=f"project-{number % 50}",
            key=f"{TRACE_KEY}{id_}", metadata=metadata, vector=embedder.embed([text])[0],
            number=number + 2, salt="salt",
        )  # fmt: skip


if __name__ == "__main__":
    main()
