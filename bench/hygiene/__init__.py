"""Measure what a memory should not keep or do: lost writes, leaks, duplicates, and traces of
what was deleted."""
