"""Forget a user: erase everything that the store has of one, and look for what was erased in the files of the store."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from memory_mesh.core import audit
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import ANYTHING, Kind, Like, Reader, Row, Where, batches, equals, iso, partition
from memory_mesh.flows import search
from memory_mesh.flows.audit import heads, prune_before
from memory_mesh.flows.context import Context, Plan, check_texts, commit
from memory_mesh.flows.erase import ErasureCheck, Forgotten, erase_all

_AT_ONCE = 500
# A part of a text that every place writes the same: rows as they are, history and blocks as JSON and in wire format.
_RUN = re.compile(r'[^"\\;\x00-\x1f]+')
_QUERY = re.compile(r"^  query;(.*);$", flags=re.MULTILINE)
_MAX_SAMPLE, _MIN_BYTES = 32, 8
_SEARCHES = 20
_OWNED = (Kind.MEMORY, Kind.CHANGE, Kind.PASSAGE, Kind.LINK, Kind.SIGHTING)


@dataclass(slots=True)
class _Samples:
    """Some characters of each text, with the id of the memory or block that has it."""

    ids: dict[str, str] = field(default_factory=dict)
    too_short: int = 0

    def add(self, text: object, id_: str) -> None:
        if not isinstance(text, str):
            return
        sample = max(_RUN.findall(text) or [""], key=len).strip()[:_MAX_SAMPLE]
        if len(sample.encode()) < _MIN_BYTES:
            self.too_short += 1
        else:
            self.ids.setdefault(sample, id_)

    def in_files(self, context: Context) -> dict[str, str]:
        """Return the samples that are in the files of the store, each with the name of a file."""
        return {sample.decode(): file for sample, file in context.file.find_bytes([one.encode() for one in self.ids]).items()}


def forget(context: Context, user_id: str, *, verify: bool) -> Forgotten:
    """Erase everything of a user. A mesh of another user may not; one without a user may."""
    check_texts(user_id=user_id)
    if context.reader.user_id not in (None, user_id) or not user_id.strip():
        what = f"user {shown(user_id)} is not this mesh's"
        raise InvalidInput(what, remedy="call it on a mesh of that user, or on one without a user")
    context.check_enabled()
    owner = replace(context, reader=Reader(user_id, context.reader.agent_id))
    samples = _sampled(owner) if verify else _Samples()
    before = samples.in_files(context)
    proof = erase_all(owner, {"user_id": user_id})
    pruned = prune_before(owner, iso(context.clock() + 1))
    receipts = _delete_receipts(owner)
    agents = {audit.owner_of(head.id)[1] for head in heads(owner)}
    context.index.forget({partition(user_id, agent) for agent in {None, *agents}})
    freed = context.store.compact()
    return Forgotten(
        memories=proof.memories,
        rows=proof.rows + pruned.removed + receipts,
        tombstones=proof.tombstones,
        blocks=(*proof.blocks, *pruned.checkpoints),
        damaged=tuple(broken.chain for broken in pruned.broken),
        bytes_freed=freed,
        check=_check(owner, samples, len(before)) if verify else None,
    )


def _delete_receipts(context: Context) -> int:
    """Delete the idempotency keys of the user. They have no column for it, but their partition names it."""
    user_id, deleted = context.reader.user_id, 0
    # LIKE finds too many if the name has wildcards.
    like = Like("partition", partition(user_id, None).removesuffix("null]") + "%")
    own = [row.key for row in context.store.find(Kind.RECEIPT, like) if json.loads(row.partition)[0] == user_id]
    for keys in batches(own, _AT_ONCE):
        commit(context, lambda keys=keys: Plan(None, deletes=keys))  # type: ignore[misc]
        deleted += len(keys)
    return deleted


# --- looking for what was erased ---


def _sampled(context: Context) -> _Samples:
    """Sample the contents, the older contents and the queries of the user."""
    samples = _Samples()
    for row in _rows(context, Kind.MEMORY):
        samples.add(row.value("content"), row.id)
    for row in _rows(context, Kind.CHANGE):
        before = row.value("before")
        samples.add(before.get("content") if isinstance(before, dict) else None, str(row.value("ref")))
    for row in _rows(context, Kind.BLOCK):
        query = _QUERY.search(str(row.value("yamo_text"))) if row.value("operation_type") == "recall" else None
        samples.add(query and query[1], row.id)
    return samples


def _of_others(context: Context, samples: Iterable[str]) -> set[str]:
    """Return the samples that are in contents, older contents or blocks of other users."""
    return {
        sample
        for kind, column in ((Kind.MEMORY, "content"), (Kind.CHANGE, "before"), (Kind.BLOCK, "yamo_text"))
        for row in _rows(context, kind, ANYTHING)
        if row.value("user_id") != context.reader.user_id
        for text in [json.dumps(row.value(column), ensure_ascii=False)]
        for sample in samples
        if sample in text
    }


def _rows(context: Context, kind: Kind, where: Where | None = None) -> Iterator[Row]:
    """Yield the rows of the user, or those that match a condition."""
    condition, last = where or equals("user_id", context.reader.user_id), None
    while rows := context.store.find(kind, condition, limit=_AT_ONCE, after=last):
        yield from rows
        last = rows[-1]


def _check(context: Context, samples: _Samples, found_before: int) -> ErasureCheck:
    """Look for the samples again. What rows of other users have too does not count."""
    left = samples.in_files(context)
    shared = _of_others(context, left) if left else set()
    rows = sum(context.store.count(kind, equals("user_id", context.reader.user_id)) for kind in _OWNED)
    # Without a model, and without a block: it would quote what was erased.
    reader = replace(context.with_options(audit_recalls=False), embedder=None)
    hits = (search.search(reader, search.Request(query=one), use_cache=False) for one in islice(samples.ids, _SEARCHES))
    return ErasureCheck(
        texts=len(samples.ids),
        too_short=samples.too_short,
        found_before=found_before,
        found=tuple((samples.ids[sample], file) for sample, file in left.items() if sample not in shared),
        shared=len(shared),
        rows_left=rows,
        search_results=sum(map(len, hits)),
    )
