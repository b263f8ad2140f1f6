"""Upkeep: how strong a memory still is, and what decay and compression did."""

from memory_mesh.core.upkeep.decay import (
    ARCHIVE_BELOW,
    ERASE_BELOW,
    Compressed,
    Consolidated,
    Decayed,
    Step,
    strength,
    strength_of,
)

__all__ = [
    "ARCHIVE_BELOW",
    "ERASE_BELOW",
    "Compressed",
    "Consolidated",
    "Decayed",
    "Step",
    "strength",
    "strength_of",
]
