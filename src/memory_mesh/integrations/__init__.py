"""Adapters for agent libraries: LangGraph, LangChain, the OpenAI Agents SDK, and mem0.

Each module needs its library; the class that it offers takes a mesh, and closing the mesh stays the
task of the caller.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from memory_mesh.core.errors import SettingsError, not_installed


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Turn the failure to import a library into an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(SettingsError, error.name, name) from error
