"""Tests of what callers hold: the mesh and the async mesh."""
