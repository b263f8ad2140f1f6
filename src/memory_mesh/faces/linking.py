"""The methods of `mesh.graph` for links between memories."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_mesh.core.graph import MemoryLink, Reached
from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.model import Link, MemoryRecord
from memory_mesh.faces.handle import Handle
from memory_mesh.flows.graph import acting_as

if TYPE_CHECKING:
    from memory_mesh.flows import linking, trust
else:
    linking = LazyModule("memory_mesh.flows.linking")
    trust = LazyModule("memory_mesh.flows.trust")


class Linking(Handle):
    """A mesh whose memories are linked.

    A memory that the agent of the mesh cannot see is read for its owner, an agent of the same user.
    """

    def links(self, memory_id: str) -> list[MemoryLink]:
        """Return the links from and to a memory, most similar first, each with the memory at its other end.

        Links to memories that are not active, or that the reader cannot see, are left out. Raises `NotFound` for a memory of
        another user.
        """
        return linking.links(self._reading(), memory_id)

    def traverse(self, start_id: str, max_hops: int = 2, *, types: Sequence[str] | None = None) -> list[Reached]:
        """Return the active memories within so many links of a memory, nearest first, each once with its distance.

        Links are followed in both directions, with `types` only those of these types. A memory that is not active, or that the
        reader cannot see, is not returned and leads nowhere. Raises `InvalidInput` for an unknown type and for more than 20
        hops, and `NotFound` for a memory of another user.
        """
        return linking.traverse(self._reading(), start_id, max_hops, types)

    def clusters(self, min_size: int = 2, *, agent: str | None = None) -> list[list[MemoryRecord]]:
        """Return the groups of linked active memories that an agent can see, by default that of the mesh, largest first.

        In each group the memory with the most links comes first.
        """
        context = self._reading() if agent is None else acting_as(self._reading(), agent)
        groups = linking.clusters(context, min_size)
        known = {one.id: one for one in trust.records(context, [memory for group in groups for memory in group])}
        return [[known[memory.id] for memory in group] for group in groups]

    def link(self, source_id: str, target_id: str, type: str) -> Link:
        """Link two memories, and return the link; one that exists already is returned.

        The type is `related`, `cause` or another name. `similar`, `supersedes` and `digest_of` are refused: the methods that
        store memories make them. Raises `NotFound` if the reader of the source cannot see the target.
        """
        return linking.add_link(self._context(), source_id, target_id, type)

    def unlink(self, source_id: str, target_id: str, type: str) -> bool:
        """Remove a link that `link` added, and return whether there was one."""
        return linking.remove_link(self._context(), source_id, target_id, type)
