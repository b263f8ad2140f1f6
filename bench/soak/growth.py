"""What is sampled of a process, and whether it grows."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

_MB = 1_000_000
# The share, and the amount, by which each may grow between the second and the last quarter of a
# run. Caches fill, and an allocator keeps what it has freed. Latency is not judged: it is that of
# the machine, CPU time is ours.
LIMITS = {
    "resident_mb": (0.10, 8.0),
    "handles": (0.0, 4.0),
    "threads": (0.0, 2.0),
    "cpu_ms": (0.5, 5.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A process at a moment. The times are those of the calls since the sample before."""

    seconds: float
    resident_mb: float
    anon_mb: float  # of that, what is not a part of a file
    handles: int
    threads: int
    calls: int
    p50_ms: float | None
    p95_ms: float | None
    cpu_ms: float | None


def sample(pid: int, seconds: float, times: Sequence[float], cpu_seconds: float) -> Sample:
    """Return what a process uses now, from Linux; `cpu_seconds` is what it computed since the
    sample before."""
    of = Path(f"/proc/{pid}")
    pages, of_files = (
        int(word) for word in (of / "statm").read_text(encoding="ascii").split()[1:3]
    )
    page_mb, ordered = os.sysconf("SC_PAGE_SIZE") / _MB, sorted(times)
    return Sample(
        seconds=round(seconds, 1),
        resident_mb=round(pages * page_mb, 2),
        anon_mb=round((pages - of_files) * page_mb, 2),
        handles=len(os.listdir(of / "fd")),
        threads=len(os.listdir(of / "task")),
        calls=len(ordered),
        p50_ms=round(median(ordered), 2) if ordered else None,
        p95_ms=round(quantiles(ordered, n=20)[-1], 2) if len(ordered) > 1 else None,
        cpu_ms=round(1000 * cpu_seconds / len(ordered), 2) if ordered else None,
    )


def growth(samples: Sequence[Sample]) -> dict[str, dict[str, float | bool]]:
    """Compare the last quarter of the samples with the second; the first is the start, when
    caches fill."""
    quarter = max(1, len(samples) // 4)
    early, late = samples[quarter : 2 * quarter] or samples[:1], samples[-quarter:]
    compared = {}
    for name, (share, most) in LIMITS.items():
        before, after = (_median(asdict(one)[name] for one in part) for part in (early, late))
        allowed = max(before * share, most)
        compared[name] = {"before": before, "after": after, "grows": after - before > allowed}
    return compared


def growing(found: Mapping[str, Mapping[str, Mapping[str, float | bool]]]) -> list[str]:
    """Name what grows, of all processes."""
    return [
        f"{process}: {name}"
        for process, parts in found.items()
        for name, one in parts.items()
        if one["grows"]
    ]


def _median(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return round(median(known), 2) if known else 0.0
