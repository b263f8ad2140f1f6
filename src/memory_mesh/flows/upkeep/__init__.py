"""Upkeep: decay, consolidation, hooks, and erasure with its proof."""
