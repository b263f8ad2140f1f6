"""The methods of `mesh.graph` for the life of memories: decay, back from the archive, digests and consolidation."""

from typing import TYPE_CHECKING

from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.model import MemoryRecord
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.upkeep import Compressed, Consolidated, Decayed
from memory_mesh.faces.handle import Handle

if TYPE_CHECKING:
    from memory_mesh.flows import compress, trust
    from memory_mesh.flows import consolidate as consolidating
    from memory_mesh.flows import decay as decaying
else:
    compress = LazyModule("memory_mesh.flows.compress")
    consolidating = LazyModule("memory_mesh.flows.consolidate")
    decaying = LazyModule("memory_mesh.flows.decay")
    trust = LazyModule("memory_mesh.flows.trust")


class Lifecycle(Handle):
    """A mesh whose memories fade unless they are used."""

    def decay(self, *, dry_run: bool = False, delete: bool = False, progress: Progress | None = None) -> Decayed:
        """Archive the memories of this user, of all agents, that have become weak, and remove links to memories that are gone.

        The strength of a memory is importance × max(0.1, 0.5^(age / 30 days)) × max(0.1, 0.5^(days since last use / 60)) × a
        factor of its category, and a bonus for links and uses. Below 0.15 it is archived; `unarchive` brings it back. With
        `delete`, those below 0.05 are erased for good instead, also those that decay archived earlier. Pinned memories and
        lessons stay. With `dry_run` nothing is changed, and the result has the same counts.
        """
        return decaying.decay(self._context(), dry_run=dry_run, delete=delete, progress=as_progress(progress))

    def archive(self, memory_id: str, reason: str | None = None) -> MemoryRecord:
        """Archive an active or disputed memory of this user, and return it.

        Searches no longer find it; `unarchive` brings it back. Raises `InvalidInput` for a memory of another status,
        and `NotFound` for a memory of another user.
        """
        return trust.record(context := self._context(), decaying.archive_one(context, memory_id, reason))

    def unarchive(self, memory_id: str) -> MemoryRecord:
        """Make an archived memory of this user active again, and return it. For decay, its age begins anew.

        Raises `InvalidInput` if it is not archived, or if an active claim excludes it, and `NotFound` for a memory of another
        user.
        """
        return trust.record(context := self._context(), decaying.unarchive(context, memory_id))

    def auto_compress(
        self, *, max_digests: int = 5, min_cluster_size: int = 3, archive_originals: bool = False, agent: str | None = None,
        method: str = "extractive", progress: Progress | None = None,
    ) -> Compressed:  # fmt: skip
        """Store digests of the largest groups of linked memories of this user, of all agents or of one.

        A digest quotes the main sentences of its sources and adds nothing. It has the category `digest`, their highest
        importance, all their tags and links of the type `digest_of`, is seen by those who see them, and is trusted no more than
        the least trusted one. What has a digest is not digested again. The originals stay active; with `archive_originals`,
        those that have a digest are archived, except pinned ones. `extractive` is the only method.
        """
        return compress.auto_compress(
            self._context(), max_digests=max_digests, min_cluster_size=min_cluster_size, archive_originals=archive_originals,
            agent=agent, method=method, progress=as_progress(progress),
        )  # fmt: skip

    def consolidate(
        self, *, dry_run: bool = False, max_digests: int = 5, min_cluster_size: int = 3, progress: Progress | None = None
    ) -> Consolidated:
        """Tidy up the memories of this user, of all agents, in five phases, and return what each of them did.

        dedupe: of memories of one scope that say the same (a cosine of at least 0.95, and the same words but for articles,
        polite words and the like) the more trusted one stays, the earlier one at a tie, and supersedes the other.
        contradictions: active claims that exclude each other meet the rules and policies of `store`. corroboration: a memory
        that one from another source repeats (a cosine from 0.90 to 0.95) is corroborated. compress: groups wholly older than 30
        days get a digest. prune: memories superseded over 90 days ago, and those that are too weak, are archived.

        With `dry_run` nothing is changed; each phase says what it would do if it came first. A second run changes nothing, and
        continues one that was interrupted.
        """
        return consolidating.consolidate(
            self._context(), dry_run=dry_run, max_digests=max_digests, min_cluster_size=min_cluster_size,
            progress=as_progress(progress),
        )  # fmt: skip
