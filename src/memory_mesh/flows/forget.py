"""Forget a user: erase everything that the store has of one, and look for what was erased in the files of the store."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from memory_mesh.core import audit
from memory_mesh.core.capture.report import CURSOR
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    ErasureCheck,
    Forgotten,
    Key,
    Kind,
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
from memory_mesh.flows.note_index import state_keys

# A part of a text that every place writes the same: rows as they are, history and blocks as JSON and in wire format.
_RUN = re.compile(r'[^"\\;\x00-\x1f]+')
_QUERY = re.compile(r"^  query;(.*);$", flags=re.MULTILINE)
_MAX_SAMPLE, _MIN_BYTES = 32, 8
_OWNED = (*CONTENTS, Kind.CHANGE, Kind.PASSAGE, Kind.LINK, Kind.SIGHTING, Kind.CONFLICT)


def forget(context: Context, user_id: str, *, verify: bool) -> Forgotten:
    """Erase everything of a user. A mesh of another user may not; one without a user may."""
    check_texts(user_id=user_id)
    if context.reader.user_id not in (None, user_id) or not user_id.strip():
        what = f"user {shown(user_id)} is not this mesh's"
        raise InvalidInput(what, remedy="call it on a mesh of that user, or on one without a user")
    context.check_enabled()
    owner = replace(context, reader=Reader(user_id, context.reader.agent_id))
    sampled = [(id_, _sample(text)) for id_, text in _texts(owner)] if verify else []
    samples = {sample: id_ for id_, sample in reversed(sampled) if sample}
    before = context.file.find_bytes(samples)
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
        check=_check(owner, samples, len(before), too_short=sum(not sample for _, sample in sampled)) if verify else None,
    )


# --- looking for what was erased ---


def _texts(context: Context) -> Iterator[tuple[str, str]]:
    """Yield the contents, the older contents and the queries of the user, each with the id of its memory or block."""
    own = equals("user_id", context.reader.user_id)
    for kind in CONTENTS:
        for row in paged(context, kind, own):
            yield row.id, str(row.value("content"))
    for row in paged(context, Kind.CHANGE, own):
        before = row.value("before")
        if isinstance(before, dict) and isinstance(content := before.get("content"), str):
            yield str(row.value("ref")), content
    for row in paged(context, Kind.BLOCK, own):
        if row.value("operation_type") == "recall" and (query := _QUERY.search(str(row.value("yamo_text")))):
            yield row.id, query[1]


def _sample(text: str) -> bytes:
    """Return some characters of a text that are looked for in its place; empty if it is too short for that."""
    sample = max(_RUN.findall(text) or [""], key=len).strip()[:_MAX_SAMPLE].encode()
    return sample if len(sample) >= _MIN_BYTES else b""


def _check(context: Context, samples: dict[bytes, str], found_before: int, *, too_short: int) -> ErasureCheck:
    """Look for the samples again. What rows of other users have too does not count."""
    left = context.file.find_bytes(samples)
    shared = _of_others(context, left) if left else set()
    return ErasureCheck(
        texts=len(samples),
        too_short=too_short,
        found_before=found_before,
        found=tuple((samples[sample], file) for sample, file in left.items() if sample not in shared),
        shared=len(shared),
        rows_left=sum(context.store.count(kind, equals("user_id", context.reader.user_id)) for kind in _OWNED),
    )


def _of_others(context: Context, samples: Collection[bytes]) -> set[bytes]:
    """Return the samples that are in contents, older contents or blocks of other users."""
    columns = (*((kind, "content") for kind in CONTENTS), (Kind.CHANGE, "before"), (Kind.BLOCK, "yamo_text"))
    rows = ((row, column) for kind, column in columns for row in paged(context, kind, ANYTHING))
    others = (row.value(column) for row, column in rows if row.value("user_id") != context.reader.user_id)
    texts = (json.dumps(value, ensure_ascii=False).encode() for value in others)
    return {sample for text in texts for sample in samples if sample in text}
