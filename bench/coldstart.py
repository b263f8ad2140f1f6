"""Measure cold starts: `memory-mesh --version`, `stats`, `search` and the hooks of a coding agent
on a small store, compared with an empty Python.

    python -m bench.coldstart [--runs 20]

Each run is a process of its own. The commands take turns, so that a slow moment of the machine
affects all of them. The processor time is that of the process and of what it starts.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from bench.commit import measured_at

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "coldstart.json"
HOOKS = ("session-start", "user-prompt-submit", "stop")
HOOK_INPUT = {
    "session_id": "s1",
    "cwd": str(ROOT),
    "prompt": "When does the deploy key rotate?",
    "transcript_path": os.devnull,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Cold-start times")
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    command = str(Path(sys.executable).with_name("memory-mesh"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "memory-mesh --version": [command, "--version"],
        "memory-mesh stats": [command, "stats"],
        "memory-mesh search": [command, "search", "deploy key"],
        **{
            f"memory-mesh host … {event}": [command, "host", "claude-code", event]
            for event in HOOKS
        },
    }
    with tempfile.TemporaryDirectory() as home:
        # With bytecode, as an installed package has it.
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        environment["MEMORY_MESH_HOME"] = home
        # How long they take, not how soon they give up.
        environment["MEMORY_MESH_HOST_SECONDS"] = "60"
        # The first runs compile the bytecode and create the store; they are not counted.
        subprocess.run(
            [command, "store", "--content", "The deploy key rotates on Mondays."],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for words in commands.values():
            run_seconds(words, environment)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, words in commands.items():
                times[name].append(run_seconds(words, environment))
    rows = [row(name, *zip(*taken, strict=True)) for name, taken in times.items()]
    show(rows)
    save(rows, runs)


def run_seconds(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds of a run on the clock, and of the processor."""
    started, used = time.perf_counter(), cpu_seconds()
    text = json.dumps(HOOK_INPUT)
    subprocess.run(
        words, env=environment, check=True, input=text, text=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started, cpu_seconds() - used


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(name: str, taken: tuple[float, ...], used: tuple[float, ...]) -> dict[str, object]:
    parts = quantiles(taken, n=20, method="inclusive") if len(taken) > 1 else [taken[0]] * 19
    figures = {
        "median_ms": median(taken),
        "p90_ms": parts[17],
        "p95_ms": parts[18],
        "median_cpu_ms": median(used),
    }
    return {"command": name, **{figure: ms(value) for figure, value in figures.items()}}


def ms(taken: float) -> float:
    return round(taken * 1000, 1)


def show(rows: list[dict[str, object]]) -> None:
    print(f"{'command':<40}{'median ms':>12}{'p90 ms':>12}{'p95 ms':>12}{'cpu ms':>12}")
    for row in rows:
        print(
            f"{row['command']!s:<40}{row['median_ms']:>12}{row['p90_ms']:>12}{row['p95_ms']:>12}"
            f"{row['median_cpu_ms']:>12}"
        )


def save(rows: list[dict[str, object]], runs: int) -> None:
    result = {
        "made_by": f"python -m bench.coldstart --runs {runs}",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **measured_at(),
        "rows": rows,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
