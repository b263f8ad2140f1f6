"""The store of a mesh whose memory is switched off: it answers empty and refuses to keep anything."""

from collections.abc import Mapping, Sequence
from typing import Never

from memory_mesh.core.errors import MemoryDisabled
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Hit, Key, Row, Vector
from memory_mesh.core.model.where import ANYTHING, Where
from memory_mesh.core.ports import Changes
from memory_mesh.stores.marks import BEGINNING


class DisabledStore:
    """Nothing, kept by nobody."""

    url = "none"
    index_folder = None

    def apply(self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None) -> Never:
        raise MemoryDisabled("memory is switched off", remedy="open the mesh with enable_memory=True to store")

    def version(self, partition: str) -> int:
        return 0

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        return {}

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]:
        return []

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return 0

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return []

    def changes(self, partition: str, since: str | None = None) -> Changes:
        return Changes(BEGINNING, () if since == BEGINNING else None)

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        return []

    def matching(self, tokens: Sequence[str], partitions: Sequence[str], where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        return []

    def compact(self) -> bool:
        return True

    def close(self) -> None:
        """There is nothing to close."""
