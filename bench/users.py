"""Measure many users in one process: handles of one mesh, and one `MemoryMesh` for each user, with
the default embedder.

    python -m bench.users [--users 10000] [--active 1000] [--meshes 50]

Each row is measured in a process of its own. A handle is made for every user; `--active` of them
also add one memory and search once. Memory is what the process holds beyond an open mesh that has
loaded the model, or, for the meshes, beyond an empty process.
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from bench.commit import measured_at
from bench.speed.measuring import in_fresh_process, resident_bytes
from bench.speed.report import load_average
from memory_mesh import MemoryMesh

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "users.json"


@dataclass(frozen=True)
class Measured:
    """How long it took, and how much memory it needed."""

    what: str
    number: int
    seconds: float
    megabytes: float


def main() -> None:
    parser = argparse.ArgumentParser(description="Many users in one process")
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--active", type=int, default=1_000)
    parser.add_argument("--meshes", type=int, default=50)
    given = parser.parse_args()
    load_before = load_average()
    rows = [
        *in_fresh_process(measure_handles, given.users, given.active),
        in_fresh_process(measure_meshes, given.meshes),
    ]
    for row in rows:
        print(f"{row.what:<50}{row.number:>8,}{row.seconds:>10.2f} s{row.megabytes:>10.1f} MB")
    save(
        rows,
        load_before,
        f"python -m bench.users --users {given.users} --active {given.active} --meshes "
        f"{given.meshes}",
    )


def measure_handles(users: int, active: int) -> list[Measured]:
    """Make a handle for each user, let each read once, and let some of them add and search."""
    with home() as folder, MemoryMesh(folder / "memory.db") as mesh:
        mesh.add("The deploy key rotates on Mondays.")
        # Loads the code and the model, so that only the users are counted.
        mesh.search("deploy key")
        before = resident_bytes()
        started = perf_counter()
        handles = [mesh.scoped(user_id=f"user{n}") for n in range(users)]
        made = Measured(
            "handles made by scoped", users, perf_counter() - started, _megabytes_since(before)
        )
        started = perf_counter()
        for handle in handles:
            handle.get_all(1)
        read = Measured(
            "handles that read", users, perf_counter() - started, _megabytes_since(before)
        )
        started = perf_counter()
        for n, handle in enumerate(handles[:active]):
            handle.add(f"User {n} prefers tea at {n % 24} o'clock.")
            if len(handle.search("when is tea?")) != 1:
                raise SystemExit(f"user {n} found the memories of others, or not its own")
        taken = perf_counter() - started
        used = Measured(
            "handles that add one memory and search once", active, taken, _megabytes_since(before)
        )
    return [made, read, used]


def measure_meshes(meshes: int) -> Measured:
    """Open a mesh for each user; each adds a memory and searches, as the 50-user script of a
    newcomer does."""
    before = resident_bytes()
    started = perf_counter()
    with home() as folder:
        opened = [MemoryMesh(folder / "memory.db", user_id=f"user{n}") for n in range(meshes)]
        for n, mesh in enumerate(opened):
            mesh.add(f"User {n} prefers tea.")
            mesh.search("tea")
        taken = perf_counter() - started
        measured = Measured(
            "meshes opened, with one add and one search each",
            meshes,
            taken,
            _megabytes_since(before),
        )
        for mesh in opened:
            mesh.close()
    return measured


@contextmanager
def home() -> Iterator[Path]:
    """Use an empty home folder: the settings and keys of the user must not change the result."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_MESH_HOME"] = folder
        yield Path(folder)


def save(rows: list[Measured], load_before: float, command: str) -> None:
    result = {
        "made_by": command,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": {"before": load_before, "after": load_average()},
        **measured_at(),
        "rows": [asdict(row) for row in rows],
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _megabytes_since(before: int) -> float:
    return round((resident_bytes() - before) / 1e6, 1)


if __name__ == "__main__":
    main()
