"""Build a mesh from settings, with its store, index and models."""
