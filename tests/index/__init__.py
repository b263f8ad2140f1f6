"""The local index, compared with a slow reference that is written with rows and dicts."""
