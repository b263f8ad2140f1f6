"""Measure cold starts: `memory-mesh --version`, `stats` and `search` on a small store, compared with an empty Python.

    python -m bench.coldstart [--runs 20]

Each run is a process of its own. The commands take turns, so that a slow moment of the machine affects all of them.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from bench.commit import measured_at

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "coldstart.json"


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
    }
    with tempfile.TemporaryDirectory() as home:
        # With bytecode, as an installed package has it.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["MEMORY_MESH_HOME"] = home
        # The first runs compile the bytecode and create the store; they are not counted.
        subprocess.run(
            [command, "store", "--content", "The deploy key rotates on Mondays."],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        for words in commands.values():
            run_seconds(words, environment)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs):
            for name, words in commands.items():
                times[name].append(run_seconds(words, environment))
    rows = [{"command": name, "median_ms": ms(median(taken)), "p90_ms": ms(p90(taken))} for name, taken in times.items()]
    show(rows)
    save(rows, runs)


def run_seconds(words: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def p90(taken: list[float]) -> float:
    return quantiles(taken, n=10, method="inclusive")[8] if len(taken) > 1 else taken[0]


def ms(taken: float) -> float:
    return round(taken * 1000, 1)


def show(rows: list[dict[str, object]]) -> None:
    print(f"{'command':<24}{'median ms':>12}{'p90 ms':>12}")
    for row in rows:
        print(f"{row['command']!s:<24}{row['median_ms']:>12}{row['p90_ms']:>12}")


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
