"""Forget a user: erase everything that the store has of one, and look for what was erased in the files of the store."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory_mesh.core import audit
from memory_mesh.core.capture.report import CURSOR
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    Forgotten,
    Key,
    Kind,
    Memory,
    Meta,
    Reader,
    equals,
    iso,
    partition,
)
from memory_mesh.flows import trace_index
from memory_mesh.flows.audit import heads, prune_before
from memory_mesh.flows.context import Context, Plan, check_texts, commit, paged
from memory_mesh.flows.erase import delete_all
from memory_mesh.flows.erasure_check import Target, check, look, older_content, target
from memory_mesh.flows.note_index import state_keys

_QUERY = re.compile(r"^  query;(.*);$", flags=re.MULTILINE)
_OWNED = (*CONTENTS, Kind.CHANGE, Kind.PASSAGE, Kind.LINK, Kind.SIGHTING, Kind.CONFLICT)


def forget(context: Context, user_id: str, *, verify: bool) -> Forgotten:
    """Erase everything of a user. A mesh of another user may not; one without a user may."""
    check_texts(user_id=user_id)
    if context.reader.user_id not in (None, user_id) or not user_id.strip():
        what = f"user {shown(user_id)} is not this mesh's"
        raise InvalidInput(what, remedy="call it on a mesh of that user, or on one without a user")
    context.check_enabled()
    owner = replace(context, reader=Reader(user_id, context.reader.agent_id))
    wanted = _target(owner) if verify else None
    before = look(owner, wanted) if wanted else None
    proof = delete_all(owner, {"user_id": user_id})
    pruned = prune_before(owner, iso(context.clock() + 1))
    # Idempotency keys have no column for the user, but their partition names it.
    receipts = [row.key for row in paged(owner, Kind.RECEIPT, ANYTHING) if json.loads(row.partition)[0] == user_id]
    cursors = Meta.with_prefix(context.store, f"{CURSOR}{json.dumps([user_id])[:-1]},")
    if owner.open_traces().mark(""):
        owner.open_traces().remove("")
    states = [*state_keys(owner), *trace_index.state_keys(owner), *(Key(Kind.META, meta.id) for meta in cursors)]
    commit(owner, lambda: Plan(None, deletes=[*receipts, *states]))
    agents = {audit.owner_of(head.id)[1] for head in heads(owner)}
    context.index.forget({partition(user_id, agent) for agent in {None, *agents}})
    freed = context.store.compact()
    return Forgotten(
        memories=proof.memories,
        rows=proof.rows + pruned.removed + len(receipts) + len(states),
        tombstones=proof.tombstones,
        blocks=(*proof.blocks, *pruned.checkpoints),
        notes=proof.notes,
        notes_left=proof.notes_left,
        traces=proof.traces,
        damaged=tuple(broken.chain for broken in pruned.broken),
        bytes_freed=freed,
        check=check(owner, wanted, before, rows_left=_rows_left(owner)) if wanted and before else None,
    )


# --- looking for what was erased ---


def _target(context: Context) -> Target:
    """Return everything of the user: memories and skills, their contents and older contents, and the queries."""
    own = equals("user_id", context.reader.user_id)
    memories = [Memory.of(row) for kind in CONTENTS for row in paged(context, kind, own)]
    ids = {memory.id for memory in memories}
    return target(
        memories,
        _texts(context, memories),
        lambda row: row.fields.get("user_id") == context.reader.user_id or row.fields.get("ref") in ids,
    )


def _texts(context: Context, memories: Sequence[Memory]) -> Iterator[tuple[str, str]]:
    """Yield the contents, the older contents and the queries of the user, each with the id of its memory or block."""
    own = equals("user_id", context.reader.user_id)
    yield from ((memory.id, memory.content) for memory in memories)
    for row in paged(context, Kind.CHANGE, own):
        yield from older_content(row)
    for row in paged(context, Kind.BLOCK, own):
        if row.value("operation_type") == "recall" and (query := _QUERY.search(str(row.value("yamo_text")))):
            yield row.id, query[1]


def _rows_left(context: Context) -> int:
    return sum(context.store.count(kind, equals("user_id", context.reader.user_id)) for kind in _OWNED)
