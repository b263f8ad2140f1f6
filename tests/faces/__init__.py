"""Tests of the public classes: the mesh and the async mesh."""
