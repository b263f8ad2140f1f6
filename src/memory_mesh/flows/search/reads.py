"""Read memories: by id, by key, newest first, and their history."""

import logging
from collections.abc import Sequence

from memory_mesh.core import model
from memory_mesh.core.errors import InvalidInput, NotFound, shown, suggestion, whole_number
from memory_mesh.core.intake import key_prefix
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    FILTERABLE,
    METADATA,
    Change,
    Compare,
    IsNull,
    Kind,
    Memory,
    Not,
    Reach,
    Row,
    Status,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.flows.context import (
    Context,
    check_names,
    check_texts,
    find_memory,
    intact,
    require_memory,
)
from memory_mesh.flows.search import usage
from memory_mesh.flows.search.readable import changes_of, readable

MAX_LIMIT = 10_000
_MAX_WARNED = 100
_log = logging.getLogger("memory_mesh")


def checked_limit(limit: object) -> int:
    """Return the limit, or raise InvalidInput."""
    return whole_number("limit", limit, max_=MAX_LIMIT)


def get(context: Context, memory_id: str) -> Memory | None:
    """Return a memory or skill of any status by its id, or None if the reader cannot see it."""
    memory = find_memory(context, memory_id, kinds=CONTENTS)
    return usage.with_counts(context, [memory])[0] if memory else None


def named(context: Context, memory_id: str | None, key: str | None) -> str | None:
    """Return the id that the caller gives, or that of the memory with the caller's own key in the
    reader's project.

    A memory that fewer agents see comes first: what others store under the key for all hides it
    from no reader, and an erasure takes the reader's own.
    """
    if (memory_id is None) == (key is None):
        raise InvalidInput(
            "id and key are both given" if key is not None else "no id is given",
            expected="an id or a key",
        )
    if key is None:
        return memory_id
    current = all_of(equals("status", Status.ACTIVE), model.not_expired(iso(context.clock())))
    narrowest = _narrowest(_with_key(context, key, current))
    return narrowest.id if narrowest else None


def to_erase(context: Context, memory_id: str | None, key: str | None) -> list[str]:
    """Return the ids that an erasure by id or by key takes.

    A key takes the memory that `named` returns, and those of the same scope with this key that are
    not read any more: archived, superseded and expired ones.
    """
    check_names(id=memory_id, key=key)
    given = named(context, memory_id, key)
    if key is None:
        check_texts(id=given)
        return [str(given)]
    memories = _with_key(context, key)
    chosen = next((one for one in memories if one.id == given), _narrowest(memories))
    return [one.id for one in memories if chosen and one.fingerprint == chosen.fingerprint]


def _with_key(context: Context, key: str, where: Where = ANYTHING) -> list[Memory]:
    """Return the memories of the reader's project with the caller's own key."""
    # By its fingerprint: the key itself may be stored masked.
    prefix = key_prefix(key)
    here = all_of(
        model.visible_to(context.reader),
        equals("project", context.reader.project),
        Compare("fingerprint", ">=", prefix),
        Compare("fingerprint", "<", f"{prefix}~"),
        where,
    )
    return [Memory.of(row) for row in intact(context, context.store.find(Kind.MEMORY, here))]


def _narrowest(memories: Sequence[Memory]) -> Memory | None:
    return max(
        memories,
        key=lambda memory: list(Reach).index(model.reach_of(memory.memory_type, memory.reach)),
        default=None,
    )


def get_all(
    context: Context, *, limit: int | None, where: Where = ANYTHING,
    statuses: Sequence[str] = (Status.ACTIVE,), after: str | None = None,
) -> list[Memory]:  # fmt: skip
    """Return the memories visible to the reader, newest first; with `after`, those behind the
    memory with this id."""
    missing = None if limit is None else checked_limit(limit)
    condition = all_of(readable(context, statuses, where), model.in_project(context.reader.project))
    last, found = _position(context, after), list[Row]()
    while missing is None or missing > 0:
        rows = context.store.find(Kind.MEMORY, condition, limit=missing, after=last)
        found += (sound := intact(context, rows))
        if len(sound) == len(rows) or missing is None:
            break
        missing, last = missing - len(sound), rows[-1]  # a page is only short at the end
    return usage.with_counts(context, [Memory.of(row) for row in found])


def log_unknown_keys(context: Context, where: Where) -> None:
    """Log once for each user each metadata key of a filter that found nothing, if no visible
    memory has it.

    It is no error: the first memory with the key may be stored tomorrow.
    """
    visible = model.visible_to(context.reader)
    warned = context.state.unknown_keys[context.reader.user_id]
    columns = [one for one in model.columns_in(where) - warned if one.startswith(METADATA)]
    if not columns or len(warned) > _MAX_WARNED or context.is_program_data:
        return
    if not context.store.find(Kind.MEMORY, visible, limit=1):
        return
    for column in columns:
        warned.add(column)  # to look for it takes as long as a search
        if not context.store.find(Kind.MEMORY, all_of(visible, Not(IsNull(column))), limit=1):
            key = column.removeprefix(METADATA)
            parts = (f"no memory has the metadata key {shown(key)}", suggestion(key, FILTERABLE))
            _log.warning("the filter found nothing: %s", "; ".join(filter(None, parts)))


def expired(context: Context, where: Where) -> list[str]:
    """Return the ids of the visible memories that have expired and meet the condition."""
    past = Compare("expires_at", "<=", iso(context.clock()))
    condition = all_of(model.visible_to(context.reader), past, where)
    return list(context.store.ids(Kind.MEMORY, condition))


def _position(context: Context, memory_id: str | None) -> Row | None:
    """Return the row to continue behind. If the memory was erased, continue from the millisecond
    in its id."""
    if memory_id is None:
        return None
    check_texts(id=memory_id)
    row = context.store.get(Kind.MEMORY, [memory_id]).get(memory_id)
    if row and model.visible(context.reader, row):
        return row
    ms = model.time_of_id(memory_id)
    if ms is None:
        raise NotFound(
            f"no memory {shown(memory_id)} to continue after",
            remedy="check the id, or list from the start",
        )
    return Row(kind=Kind.MEMORY, id="", partition="", created_at=iso(ms + 1))


def history(context: Context, memory_id: str) -> list[Change]:
    """Return the changes of a memory or skill, oldest first, or raise `NotFound`."""
    memory = require_memory(context, memory_id, kinds=CONTENTS)
    return [
        model.creation(memory),
        *model.since_visible(context.reader, memory, changes_of(context, memory_id)),
    ]
