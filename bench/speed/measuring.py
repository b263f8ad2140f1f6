"""Measure the duration of calls, the memory of a process and the size of files."""

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Argument = TypeVar("Argument")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of several calls in milliseconds: wall clock, and CPU time of this process."""

    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float  # on an idle machine about the wall clock without disk waits
    calls: int


def seconds(call: Callable[[], object]) -> float:
    """Return the duration of one call in seconds."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def time_calls(call: Callable[[Argument], object], arguments: Iterable[Argument]) -> Timing:
    """Time a call with each argument. Producing the arguments is not timed."""
    walls, cpus = list[float](), list[float]()
    for argument in arguments:
        wall, cpu = time.perf_counter(), time.process_time()
        call(argument)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    p95 = quantiles(walls, n=20, method="inclusive")[18]
    return Timing(_ms(median(walls)), _ms(p95), _ms(median(cpus)), len(walls))


def in_fresh_process(
    call: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs
) -> Answer:
    """Run a call in a new process, where nothing is loaded, cached or fragmented by earlier
    measurements."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(call, *args, **options).result()


def resident_bytes() -> int:
    """Return the resident memory of this process, mapped files included; without /proc, its
    maximum so far."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        maximum = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return maximum if sys.platform == "darwin" else maximum * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def file_bytes(path: Path) -> int:
    """Return the size of a file, or of all files in a folder; 0 if it does not exist."""
    if path.is_dir():
        return sum(file_bytes(inner) for inner in path.iterdir())
    return path.stat().st_size if path.exists() else 0


def _ms(duration: float) -> float:
    return round(duration * 1000, 3)
