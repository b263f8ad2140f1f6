"""The methods of `mesh.graph` for feedback, review and explanations.

Methods that take an id act for the owner of the memory: any agent of the same user may call them, and a memory of another user is
not found. The history and the audit chain name the agent that called.
"""

from typing import TYPE_CHECKING

from memory_mesh.core.claims.reviews import MemoryExplanation, Reviewed, Supersession
from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.model import ClaimConflict, GivenTime, MemoryRecord
from memory_mesh.faces.handle import Handle

if TYPE_CHECKING:
    from memory_mesh.flows import explain_memory as explaining
    from memory_mesh.flows import review, trust, undo
else:
    explaining = LazyModule("memory_mesh.flows.explain_memory")
    review = LazyModule("memory_mesh.flows.review")
    trust = LazyModule("memory_mesh.flows.trust")
    undo = LazyModule("memory_mesh.flows.undo")


class Reviewing(Handle):
    """A mesh whose memories can be confirmed, disputed, reviewed and explained."""

    # --- feedback ---

    def reinforce(self, memory_id: str, boost: float = 0.1) -> MemoryRecord:
        """Count that a memory of this user was confirmed, and return it. Any agent of the user may call this.

        The boost raises its importance, up to 1. A disputed memory is active again when reinforcements and disputes are even,
        unless an active claim excludes it: then it stays disputed, and its history says why. Raises `NotFound` for a memory
        of another user.
        """
        return trust.record(context := self._context(), review.reinforce(context, memory_id, boost))

    def dispute(self, memory_id: str, *, reason: str | None = None) -> MemoryRecord:
        """Count that a memory of this user was disputed, and return it. Any agent of the user may call this.

        With more disputes than reinforcements its status is `disputed`; with three more, or with a trust below 0.3, it is
        `quarantined` and waits for a review. Both are hidden from searches. The reason is kept in the history. Raises `NotFound`
        for a memory of another user.
        """
        return trust.record(context := self._context(), review.dispute(context, memory_id, reason))

    # --- review ---

    def list_quarantined(self, *, agent: str | None = None, limit: int = 50) -> list[MemoryRecord]:
        """Return the quarantined memories of this user, of one agent where given, newest first."""
        return trust.records(context := self._reading(), review.list_quarantined(context, agent, limit))

    def review_quarantine(self, memory_id: str, *, action: str, reason: str | None = None) -> Reviewed:
        """Decide about a quarantined memory of this user. Any agent of the user may call this.

        `activate` makes it active, resolves its conflicts in its favour and supersedes the claims that exclude it, unless the
        policy of the predicate is `keep_both`. `reject` archives it and resolves its conflicts against it. `keep_both` makes it
        active beside the claims that exclude it. All of it is one change, which `undo_review` takes back. Raises `InvalidInput`
        for another action and for a memory that is not quarantined, and `NotFound` for one of another user.
        """
        return review.review_quarantine(self._context(), memory_id, action, reason)

    def conflicts(self, status: str = "pending") -> list[ClaimConflict]:
        """Return the conflicts between claims of this user, `pending` or `resolved`, newest first."""
        return review.conflicts(self._reading(), status)

    def resolve_conflict(self, conflict_id: str, *, keep: str, reason: str | None = None) -> Reviewed:
        """Resolve a pending conflict: keep the `new` memory, the `existing` one or `both`.

        `new` activates the new memory and `existing` rejects it, as `review_quarantine` does, with all its conflicts. `both`
        resolves this conflict only; while others are pending, the new memory stays quarantined, and `note` of the result says
        so. Raises `InvalidInput` for a conflict that is resolved already, and `NotFound` for one of another user.
        """
        return review.resolve_conflict(self._context(), conflict_id, keep, reason)

    def undo_review(self, memory_id: str) -> Reviewed:
        """Take back the last review decision about a memory: every memory and conflict that it changed is as before.

        This is a new change; the history keeps the decision too. Raises `InvalidInput` if no decision is left to undo, if what it
        changed was changed again since, or if a claim that came since excludes one that would be active again.
        """
        return undo.undo_review(self._context(), memory_id)

    # --- explanations ---

    def explain_memory(
        self, memory_id: str, *, as_of: GivenTime | None = None, known_at: GivenTime | None = None
    ) -> MemoryExplanation:
        """Explain a memory of this user: its trust in parts, claim, status, links, conflicts, provenance and supersessions.

        Any agent of the user may call this. What the owner of the memory cannot see is left out. `valid` of the result says
        whether the memory was valid at the time `as_of`, or is now. With `known_at`, everything is as it was known at a time.
        Raises `NotFound` for a memory of another user, and for one that was stored later.
        """
        return explaining.explain_memory(self._reading(), memory_id, as_of=as_of, known_at=known_at)

    def explain_supersession(self, memory_id: str, *, known_at: GivenTime | None = None) -> tuple[Supersession, ...]:
        """Return the chain of supersessions that a memory of this user is part of, oldest first.

        Each step has the time, the reason and the trust of both memories at that time. With `known_at`, the chain is as it was
        known at a time. Raises `NotFound` for a memory of another user, and for one that was stored later.
        """
        return explaining.explain_supersession(self._reading(), memory_id, known_at=known_at)
