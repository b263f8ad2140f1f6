"""Measure the hooks of coding agents on the clock: with the resident process, and without it.

    python -m bench.hooks [--runs 40] [--busy 8] [--memories 1000]

Each run is a process of its own, as a host starts it, on a store with vectors. Then the same beside
`--busy` processes that do nothing but count. A run without an answer in time counts as `empty`. The
result is written if the working tree is clean.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from bench.commit import measured_at
from memory_mesh import MemoryMesh

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "hooks.json"
COMMAND = [sys.executable, "-P", "-m", "memory_mesh", "host"]
GIVEN = json.dumps({"session_id": "s1", "prompt": "When does the deploy key of unit 7 rotate?"})
EVENTS = ("session-start", "user-prompt-submit")
ANSWERS = 100  # looks for a process that is starting


def main() -> None:
    parser = argparse.ArgumentParser(description="Hooks of coding agents")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--busy", type=int, default=8)
    parser.add_argument("--memories", type=int, default=1000)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="mm-") as folder:
        environment = {
            # With bytecode, as an installed package has it.
            **{name: text for name, text in os.environ.items() if "DONTWRITE" not in name},
            "MEMORY_MESH_HOME": f"{folder}/home",
            "XDG_RUNTIME_DIR": folder,
        }
        with MemoryMesh(f"{folder}/home/memory.db", update_judge="off") as mesh:
            mesh.add_many(
                [f"The deploy key of unit {n} rotates on day {n}." for n in range(given.memories)]
            )
        for busy in (0, given.busy):
            with busy_processes(busy):
                for resident in (False, True):
                    rows += measured(environment, given.runs, busy=busy, resident=resident)
        subprocess.run([*COMMAND, "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    save(rows, vars(given))


def measured(
    environment: dict[str, str], runs: int, *, busy: int, resident: bool
) -> Iterator[dict[str, object]]:
    """Yield a row for each event."""
    environment = environment | ({} if resident else {"MEMORY_MESH_HOST_IDLE_SECONDS": "0"})
    if resident:
        hook("session-start", environment)  # starts the process
        words = [*COMMAND, "status"]
        for _ in range(ANSWERS):
            shown = subprocess.run(words, env=environment, capture_output=True, check=False).stdout
            if b"has answered" in shown:
                break
            time.sleep(0.2)
    for event in EVENTS:
        hook(event, environment)
        taken = sorted(hook(event, environment) for _ in range(runs))
        seconds = [one for one, _ in taken]
        yield {
            "busy": busy,
            "resident": resident,
            "event": event,
            "p50_ms": round(median(seconds) * 1000, 1),
            "p95_ms": round(quantiles(seconds, n=20, method="inclusive")[18] * 1000, 1),
            "max_ms": round(seconds[-1] * 1000, 1),
            "empty": sum(not answered for _, answered in taken),
        }


def hook(event: str, environment: dict[str, str]) -> tuple[float, bool]:
    """Return the seconds of a hook on the clock, and whether it added memories."""
    started = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, "claude-code", event],
        env=environment,
        input=GIVEN,
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - started, "additionalContext" in done.stdout


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Let so many processes count meanwhile."""
    words = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(words) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def save(rows: list[dict[str, object]], given: dict[str, int]) -> None:
    """Write the result, unless it is that of code that no commit has."""
    commit = measured_at()
    if not commit["clean"]:
        print("not written: the working tree has changes")
        return
    result = {
        "made_by": "python -m bench.hooks " + " ".join(f"--{k} {v}" for k, v in given.items()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **commit,
        "rows": rows,
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
