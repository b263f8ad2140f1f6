"""Views of a whole memory for people: numbers, a timeline, the links, and one memory in full.

The web console shows them. They only read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memory_mesh.api.handle import Handle
from memory_mesh.core.claims.rules import MemoryExplanation
from memory_mesh.core.errors import StoreError, StoreReadOnly
from memory_mesh.core.graph import MemoryLink
from memory_mesh.core.model import Block, Change, Memory, Row, Sighting
from memory_mesh.flows.audit import audit
from memory_mesh.flows.claims import explain, review
from memory_mesh.flows.context import find_memory, require_memory
from memory_mesh.flows.graph import links as linking
from memory_mesh.flows.search import overview, readable, reads
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeMemory:
    """A memory with all that belongs to it."""

    explanation: MemoryExplanation
    passages: list[Row]
    history: list[Change]
    sightings: list[Sighting]
    links: list[MemoryLink]
    blocks: list[Block]


class Overview(Handle):
    """What the reader of a mesh can see, counted and grouped."""

    @property
    def store_kind(self) -> str:
        """The kind of the store, such as `sqlite`."""
        return self._source.url.partition(":")[0]

    def is_read_only(self) -> bool:
        """Return whether writes are refused: the store was opened for reading only, or may not be
        written to.

        A store with another fault is not read-only: reading it tells the fault.
        """
        try:
            self._context().file.check_writable()
        except StoreError as error:
            return isinstance(error, StoreReadOnly)
        return False

    def numbers(self) -> overview.Numbers:
        """Return how many memories there are, by day, type, status and trust."""
        return overview.numbers(self._reading())

    def timeline(
        self, *, happened: str | None = None, as_of: str | None = None,
        known_at: str | None = None, limit: int = 50, after: str | None = None
    ) -> overview.Timeline:  # fmt: skip
        """Return a page of what was valid (`as_of`) or believed (`known_at`) at a time, and how
        much was stored by day; or of what `happened` until then, and how much happened by day."""
        return overview.timeline(
            self._reading(),
            happened=happened,
            as_of=as_of,
            known_at=known_at,
            limit=limit,
            after=after,
        )

    def picture(
        self, *, seed: str | None = None, limit: int = 500, depth: int = 2
    ) -> overview.Picture:
        """Return linked memories as nodes and edges, at most `limit` nodes; with `seed`, those
        around a memory."""
        return overview.picture(self._reading(), seed=seed, limit=limit, depth=depth)

    def visible_count(self, *, any_agent: bool) -> overview.Visible:
        """Return how many memories the user has, and how many of them the reader can see."""
        return overview.visible_count(self._reading(), any_agent=any_agent)

    def prepare_search(self) -> None:
        """Build the search index of the reader, so that the first search does not have to."""
        overview.prepare_search(self._reading())

    def memory(self, memory_id: str, *, any_agent: bool = False) -> WholeMemory:
        """Return a memory with all that belongs to it, or raise `NotFound`.

        With `any_agent` also one of another agent, and what its owner can see beside it.
        """
        context = self._reading()
        if any_agent and not find_memory(context, memory_id):
            context = review.acting_for(context, memory_id)
        memory = require_memory(context, memory_id)
        return WholeMemory(
            explanation=explain.explain_memory(context, memory_id, for_owner=any_agent),
            passages=overview.passages_of(context, memory),
            history=reads.history(context, memory_id),
            sightings=prepare.sightings(context, memory_id),
            links=linking.links(context, memory_id),
            blocks=overview.blocks_of(context, memory_id),
        )

    def erase_preview(self, memory_id: str, *, any_agent: bool = False) -> erase.Preview:
        """Return what `forget` would do with a memory; with `any_agent` also with those that the
        reader cannot see."""
        return erase.preview(self._reading(), [memory_id], any_agent=any_agent)

    def anchored(self) -> audit.LastAnchor:
        """Return whether the heads of the audit chains are anchored by the heartbeat, and those
        that were anchored last."""
        return audit.last_anchor(self._reading())

    def trust(self, memories: Sequence[Memory], *, known_at: str | None = None) -> dict[str, float]:
        """Return how far memories are trusted, by id, now or at the time of `known_at`."""
        at = readable.read_known_at(context := self._reading(), known_at)
        return {
            id_: one.value for id_, one in readable.trusts(context, memories, known_at=at).items()
        }

    def title(self, memory: Memory) -> str:
        """Return the first words of a memory, on one line."""
        return overview.title_of(memory)


def overview_of(mesh: Handle) -> Overview:
    """Return the overview of what a mesh can see."""
    return Overview(mesh._source, mesh._scope, mesh._root)
