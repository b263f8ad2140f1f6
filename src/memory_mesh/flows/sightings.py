"""Read and write the sightings of memories: which agents and sessions stored the same text. They are decided in `core.intake`."""

from collections.abc import Sequence
from dataclasses import replace

from memory_mesh.core.intake import Author, best_trust, every_sighting, own_sighting, retired
from memory_mesh.core.model import In, Kind, Memory, Row, Sighting, Value
from memory_mesh.flows.context import Context, require_memory


def sightings(context: Context, memory_id: str) -> list[Sighting]:
    """Return who stored the text of a memory, oldest first, or raise `NotFound`."""
    memory = require_memory(context, memory_id)
    return every_sighting(memory, sightings_of(context, [memory_id]).get(memory_id, []))


def sightings_of(context: Context, memory_ids: Sequence[str]) -> dict[str, list[Sighting]]:
    """Return the stored sightings of memories, by memory."""
    found: dict[str, list[Sighting]] = {}
    for row in context.store.find(Kind.SIGHTING, In("ref", tuple(memory_ids))) if memory_ids else ():
        found.setdefault(str(row.value("ref")), []).append(Sighting.of(row))
    return found


def retired_sightings(context: Context, before: Memory, memory: Memory) -> list[Row]:
    """Return the rows of the sightings of a memory that has another text or scope now: they saw what the history has."""
    if (before.fingerprint, before.session_id, before.content) == (memory.fingerprint, memory.session_id, memory.content):
        return []
    sightings = Sightings(context, [memory])
    sightings.replace(memory, Author.of(memory), at=memory.updated_at)
    return sightings.rows()


class Sightings:
    """The sightings of the memories that a write observes or replaces."""

    def __init__(self, context: Context, memories: Sequence[Memory]) -> None:
        self._stored = {row.id: row for rows in sightings_of(context, [one.id for one in memories]).values() for row in rows}
        self._partitions = {memory.id: memory.partition for memory in memories}
        self._current = dict(self._stored)

    def add(self, memory: Memory, author: Author, *, at: str, metadata: dict[str, Value], trust: Value) -> None:
        """Count that an author stored the text of a memory once more."""
        own, id_ = own_sighting(memory), author.sighting_id(memory.id)
        self._partitions[memory.id] = memory.partition
        if own.id not in self._current:
            if id_ == own.id:
                return  # the columns of the memory say it all
            self._current[own.id] = own
        first = replace(own, id=id_, agent_id=author.agent_id, session_id=author.session_id, created_at=at, times_observed=0)
        known = self._current.get(id_, first)
        given = trust if isinstance(trust, float) else None
        times, best = known.times_observed + 1, best_trust(known.trust, given) if known.times_observed else given
        self._current[id_] = replace(known, times_observed=times, last_observed=at, trust=best, metadata=metadata)

    def replace(self, memory: Memory, author: Author, *, at: str) -> None:
        """Record that an author replaces a memory: what was stored before is only in its history."""
        if author != Author.of(memory):
            self._current.setdefault(own_sighting(memory).id, own_sighting(memory))
        self._current |= {id_: retired(row) for id_, row in self._current.items() if row.ref == memory.id}
        self.add(memory, author, at=at, metadata={}, trust=None)

    def rows(self) -> list[Row]:
        """Return the rows of the sightings that changed."""
        changed = [(row, self._stored.get(id_)) for id_, row in self._current.items() if row != self._stored.get(id_)]
        revisions = ((row, stored.revision if stored else 0) for row, stored in changed)
        return [
            replace(row, revision=revision + 1).row(self._partitions[row.ref], replaces=revision) for row, revision in revisions
        ]
