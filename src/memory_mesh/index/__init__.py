"""The search index of any store: in memory, or over candidates that the engine of a store finds.

`make_index` chooses one for a store.
"""

from memory_mesh.core.ports import ServerStore, Store
from memory_mesh.index.local import LocalIndex
from memory_mesh.index.remote import CandidateIndex

__all__ = ["CandidateIndex", "LocalIndex", "make_index"]


def make_index(store: Store, *, language: str) -> LocalIndex | CandidateIndex:
    """Return the index for a store: a server store is searched in its engine."""
    return (CandidateIndex if isinstance(store, ServerStore) else LocalIndex)(
        store, language=language
    )
