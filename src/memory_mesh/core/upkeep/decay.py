"""Decay: the strength of a memory, and what decay and compression report.

Strength fades with age and disuse, and more slowly after each spaced reinforcement.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp2

from memory_mesh.core.model import DAY_MS, UNKNOWN_IMPORTANCE, Change, Memory, MemoryRecord, millis
from memory_mesh.core.text import short_repr

ARCHIVE_BELOW, ERASE_BELOW = 0.15, 0.05
AGE_HALF_LIFE, TOUCH_HALF_LIFE = 30.0, 60.0  # days
REINFORCED, UNARCHIVED = "reinforce", "unarchive"  # the changes that make a memory last longer
ARCHIVED = "archive"  # a decision of a person, unlike decay
_FACTORS = {"decision": 1.3, "preference": 1.4, "insight": 1.1}
_FLOOR = 0.1  # of each fading factor


def strength(
    importance: float, *, age: float = 0.0, touch: float = 0.0, category: str | None = None,
    links: int = 0, accesses: int = 0, stability: float = 1.0,
) -> float:  # fmt: skip
    """Return the strength of a memory, from 0 to 1. `age` and `touch` are the days since it was
    stored and last used.

    Links and accesses add a bonus that fades with disuse, so that links alone keep nothing alive.
    """
    old, unused = (
        exp2(-max(0.0, days) / (half_life * stability))
        for days, half_life in ((age, AGE_HALF_LIFE), (touch, TOUCH_HALF_LIFE))
    )
    faded = importance * max(_FLOOR, old) * max(_FLOOR, unused) * _FACTORS.get(category or "", 1.0)
    bonus = min(0.3, 0.05 * links) + min(0.2, 0.02 * accesses)
    return min(1.0, round(faded + bonus * unused, 9))


def stability_after(times: Iterable[int], since: int) -> float:
    """Return how much longer the half-lives of a memory are, stored at `since` and reinforced at
    these times.

    Each reinforcement multiplies it by up to 2, the more the longer the interval is in comparison
    with the one before.
    """
    stability, previous = 1.0, 0.0
    for at in sorted(times):
        interval = max(0, at - since) / DAY_MS
        stability *= 1 + min(3.0, interval / max(1.0, previous)) / 3
        since, previous = at, interval
    return stability


def strength_of(
    memory: Memory, ms: int, *, links: int = 0, changes: Iterable[Change] = ()
) -> float:
    """Return the strength of a memory at a time. Without links and changes it is at most as high as
    with them.

    Unarchiving begins its age anew: it would be archived again the next day otherwise.
    """
    times = [
        (change.action, millis(change.created_at))
        for change in changes
        if change.action in (REINFORCED, UNARCHIVED)
    ]
    created = millis(memory.created_at)
    began = max([created, *(at for action, at in times if action == UNARCHIVED)])
    used = (
        millis(at) for at in (memory.updated_at, memory.last_accessed, memory.last_observed) if at
    )
    touched = max([began, *used, *(at for _, at in times)])
    return strength(
        UNKNOWN_IMPORTANCE if memory.importance is None else memory.importance,
        age=(ms - began) / DAY_MS,
        touch=(ms - touched) / DAY_MS,
        category=memory.category,
        links=links,
        accesses=memory.access_count,
        stability=stability_after((at for action, at in times if action == REINFORCED), created),
    )


# --- reports ---


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Decayed:
    """What decay did, or with `dry_run` would do."""

    __repr__ = short_repr

    examined: int = 0
    archived: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()  # what was derived from these alone is erased with them
    links: int = 0  # removed, because one of their memories is gone
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Compressed:
    """The digests that were stored, and the memories that were archived because they have one."""

    __repr__ = short_repr

    digests: tuple[MemoryRecord, ...] = ()
    archived: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a consolidation: what is done to a memory, because of another one, and why."""

    action: str  # supersede, quarantine, keep_both, corroborate, digest or archive
    memory_id: str | None  # None: a digest that is not stored yet
    other_id: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Consolidated:
    """What each phase of a consolidation did, or with `dry_run` would do first."""

    __repr__ = short_repr

    dedupe: tuple[Step, ...] = ()
    contradictions: tuple[Step, ...] = ()
    corroboration: tuple[Step, ...] = ()
    compress: tuple[Step, ...] = ()
    prune: tuple[Step, ...] = ()
    dry_run: bool = False
