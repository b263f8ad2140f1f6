"""What decay and compression did."""

from dataclasses import dataclass

from memory_mesh.core.model import MemoryRecord
from memory_mesh.core.reprs import short_repr


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
