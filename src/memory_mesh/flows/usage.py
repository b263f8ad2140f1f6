"""How often memories are found. Counted in memory, added up in the store now and then and on closing; no search waits for it."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Thread
from typing import Any

from memory_mesh.core.errors import StoreBusy, StoreClosed, StoreError
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Memory, Usage
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.scope import partitions
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import In
from memory_mesh.core.search.usage import UsageCounter
from memory_mesh.flows.context import Context, Plan, write_plan

_FLUSH_AT = 2000  # sightings that are not written yet
_ATTEMPTS = 20


def note(context: Context, ids: Sequence[str]) -> None:
    """These memories were answers."""
    if not context.options.enable_memory or not ids or context.state.usage.add(ids, iso(context.clock())) < _FLUSH_AT:
        return
    context.state.usage.start(Thread(target=_write, args=(context,), name="memory-mesh usage", daemon=True))


def flush(context: Context) -> None:
    """Write what was counted, now."""
    _write(context)


def _write(context: Context) -> None:
    with context.state.usage.writing:
        _flushed(context)


def _flushed(context: Context) -> None:
    """A store that cannot be written to is searched all the same, without counting."""
    taken = context.state.usage.take()
    if not taken:
        return
    try:
        write_plan(context.store, lambda: _added(context, taken), pause=context.pause, attempts=_ATTEMPTS)
    except (StoreBusy, StoreClosed):
        context.state.usage.put_back(taken)  # others kept writing, or it is closed: the next flush tries again
    except StoreError:
        return


def merged(context: Context, memories: Sequence[Memory]) -> list[Memory]:
    """The memories with their counts, those of this process that are not written yet included."""
    known = counted(context, [memory.id for memory in memories])
    return [replace(memory, **known[memory.id]) if memory.id in known else memory for memory in memories]


def counted(context: Context, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How often memories were found, and when last, as the fields of a record; those that never were are left out."""
    held = {id_: Usage.of(row) for id_, row in context.store.get(Kind.USAGE, ids).items()} if ids else {}
    known = {id_: _fields(held.get(id_), id_, context.state.usage) for id_ in ids}
    return {id_: found for id_, found in known.items() if found["access_count"]}


def _fields(held: Usage | None, id_: str, usage_counter: UsageCounter) -> dict[str, Any]:
    count = (held.access_count if held else 0) + usage_counter.counts.get(id_, 0)
    return {"access_count": count, "last_accessed": usage_counter.latest.get(id_) or (held.last_accessed if held else None)}


def _added(context: Context, taken: dict[str, tuple[int, str]]) -> Plan[None]:
    """The rows that add the sightings up, and what they were read under: a memory that is erased meanwhile gets none."""
    homes = partitions(context.reader)
    seen = {name: context.store.version(name) for name in homes}
    held = {id_: Usage.of(row) for id_, row in context.store.get(Kind.USAGE, list(taken)).items()}
    rows: list[Row] = []
    for id_ in context.store.ids(Kind.MEMORY, In("id", tuple(taken))):
        count, at = taken[id_]
        old = held.get(id_) or Usage(id=id_, created_at=at, ref=id_, access_count=0, last_accessed=at, revision=0)
        total, latest = old.access_count + count, max(at, old.last_accessed)
        newer = replace(old, access_count=total, last_accessed=latest, revision=old.revision + 1)
        rows.append(newer.row(homes[0], replaces=old.revision))
    return Plan(None, rows, seen=seen)
