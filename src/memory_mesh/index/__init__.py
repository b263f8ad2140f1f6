"""The search index of any store: in memory, or, for much in a server store, in its engine.

`make_index` chooses one for a store.
"""

from memory_mesh.core.options import Options
from memory_mesh.core.ports import ServerStore, Store
from memory_mesh.index.local import LocalIndex
from memory_mesh.index.remote import CandidateIndex
from memory_mesh.index.server import ServerIndex

__all__ = ["CandidateIndex", "LocalIndex", "ServerIndex", "make_index"]


def make_index(store: Store, options: Options) -> LocalIndex | ServerIndex:
    """Return the index for a store."""
    if not isinstance(store, ServerStore):
        return LocalIndex(store, language=options.stemmer_language)
    return ServerIndex(
        store,
        store.candidate_source,
        language=options.stemmer_language,
        max_memories=options.index_max_memories,
        max_megabytes=options.index_memory_mb,
    )
