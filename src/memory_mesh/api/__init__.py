"""The public classes: `MemoryMesh`, its faces, and how they are built from settings.

This is the only package that names concrete stores, indexes and models.
"""
