"""Upkeep: how strong a memory still is, and what decay did."""

from memory_mesh.core.upkeep.decay import ARCHIVE_BELOW, ERASE_BELOW, Decayed, strength, strength_of

__all__ = ["ARCHIVE_BELOW", "ERASE_BELOW", "Decayed", "strength", "strength_of"]
