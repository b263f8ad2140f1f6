"""Memories of named agents: store, link, search, and pack into a context."""
