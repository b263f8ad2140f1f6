"""Adapters for agent libraries: LangGraph, LangChain, the OpenAI Agents SDK, and programs that were written for mem0.

Each module needs its library; the class that it offers takes a mesh, and closing the mesh stays the task of the caller.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from memory_mesh.core.errors import SettingsError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Turn the failure to import a library into an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        what = f"the package {error.name} is not installed"
        raise SettingsError(what, remedy=f"install it with pip install 'memory-mesh[{name}]'") from error
