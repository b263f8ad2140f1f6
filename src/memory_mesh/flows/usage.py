"""How often memories are found. Counted in memory, added up in the store now and then and on closing; no search waits for it."""

from collections.abc import Sequence
from dataclasses import replace

from memory_mesh.core.columns import Kind
from memory_mesh.core.errors import Conflict, StoreError
from memory_mesh.core.records import Memory, Usage
from memory_mesh.core.rows import Row
from memory_mesh.core.scope import partitions
from memory_mesh.core.sightings import Sightings
from memory_mesh.core.times import iso
from memory_mesh.core.where import In
from memory_mesh.flows.desk import Desk

_FLUSH_AT = 500  # sightings that are not written yet
_ATTEMPTS = 20


def note(desk: Desk, ids: Sequence[str]) -> None:
    """These memories were answers."""
    if desk.enabled and ids and desk.sightings.add(ids, iso(desk.clock())) >= _FLUSH_AT:
        flush(desk)


def flush(desk: Desk) -> None:
    """Write what was counted. A store that cannot be written to is searched all the same, without counting."""
    taken = desk.sightings.take()
    for _ in range(_ATTEMPTS if taken else 0):
        try:
            puts, seen = _added(desk, taken)
            if puts:
                desk.store.apply(puts, seen=seen)
        except Conflict:
            continue
        except StoreError:
            return
        else:
            return
    desk.sightings.put_back(taken)  # others kept writing: the next flush tries again


def merged(desk: Desk, memories: Sequence[Memory]) -> list[Memory]:
    """The memories with their counts, those of this process that are not written yet included."""
    if not memories:
        return []
    held = {id_: Usage.of(row) for id_, row in desk.store.get(Kind.USAGE, [memory.id for memory in memories]).items()}
    return [_with(memory, held.get(memory.id), desk.sightings) for memory in memories]


def _with(memory: Memory, held: Usage | None, sightings: Sightings) -> Memory:
    count = (held.access_count if held else 0) + sightings.counts.get(memory.id, 0)
    latest = sightings.latest.get(memory.id) or (held.last_accessed if held else None)
    return replace(memory, access_count=count, last_accessed=latest) if count else memory


def _added(desk: Desk, taken: dict[str, tuple[int, str]]) -> tuple[list[Row], dict[str, int]]:
    """The rows that add the sightings up, and what they were read under: a memory that is erased meanwhile gets none."""
    homes = partitions(desk.who)
    seen = {name: desk.store.version(name) for name in homes}
    held = {id_: Usage.of(row) for id_, row in desk.store.get(Kind.USAGE, list(taken)).items()}
    rows: list[Row] = []
    for id_ in desk.store.ids(Kind.MEMORY, In("id", tuple(taken))):
        count, at = taken[id_]
        old = held.get(id_) or Usage(id=id_, created_at=at, ref=id_, access_count=0, last_accessed=at, revision=0)
        total, latest = old.access_count + count, max(at, old.last_accessed)
        newer = replace(old, access_count=total, last_accessed=latest, revision=old.revision + 1)
        rows.append(newer.row(homes[0], replaces=old.revision))
    return rows, seen
