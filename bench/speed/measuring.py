"""Clocks and scales: how long a call takes, how much memory a process holds, how large files are."""

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
Thing = TypeVar("Thing")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Spread:
    """How long calls took, in milliseconds by the clock on the wall; and how long this process worked meanwhile."""

    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float  # on a machine that does nothing else, about the same, less what the disk takes
    calls: int


def timed(call: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def spread(call: Callable[[Thing], object], things: Iterable[Thing]) -> Spread:
    """How long a call takes, for each of these things; what it takes to come by a thing is not counted."""
    walls, works = list[float](), list[float]()
    for thing in things:
        wall, work = time.perf_counter(), time.process_time()
        call(thing)
        walls.append(time.perf_counter() - wall)
        works.append(time.process_time() - work)
    high = quantiles(walls, n=20, method="inclusive")[18]
    return Spread(_ms(median(walls)), _ms(high), _ms(median(works)), len(walls))


def alone(work: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs) -> Answer:
    """The answer of work that is done in a fresh process: nothing that ran before it is loaded, cached or fragmented there."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(work, *args, **options).result()


def resident() -> int:
    """Bytes of memory that this process holds, mapped files included; where the system cannot tell, the most it ever held."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; 0 where there is none."""
    if path.is_dir():
        return sum(size_of(inner) for inner in path.iterdir())
    return path.stat().st_size if path.exists() else 0


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
