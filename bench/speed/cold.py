"""What a command costs from a cold start, on a store of some size: each run is a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bench.speed.measuring import timed

RUNS = 5
_COMMAND = str(Path(sys.executable).with_name("memory-mesh"))


def commands(url: str, query: str, *, with_model: bool) -> dict[str, float]:
    """Seconds of each command, the median of a few runs: `search` by keywords alone for the bare price, and with the model."""
    found = {
        "stats": _seconds(["stats", "--store", url], "none"),
        "search, keywords": _seconds(["search", query, "--store", url], "none"),
    }
    if with_model:
        found["search, local model"] = _seconds(["search", query, "--store", url], "local")
    return found


def _seconds(words: list[str], embedder: str) -> float:
    environment = {**os.environ, "MEMORY_MESH_EMBEDDER": embedder}
    _run(words, environment)  # compiles the bytecode and reads the files once; it is not counted
    return round(median(timed(lambda: _run(words, environment)) for _ in range(RUNS)), 3)


def _run(words: list[str], environment: Mapping[str, str]) -> None:
    subprocess.run([_COMMAND, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
