"""Add and change memories: validate, scrub and redact, find duplicates, embed, and write memory, history and audit block at once.

Idempotency keys and the audit entry of a memory are here too: every flow that writes memories needs them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.audit import Entry, blocks
from memory_mesh.core.errors import InvalidInput, KeyReused, shown
from memory_mesh.core.intake import (
    Draft,
    Given,
    draft,
    fingerprint,
    is_file_print,
    is_list,
    normal_text,
    numbered,
    read_content,
    read_items,
    read_metadata,
    read_one,
)
from memory_mesh.core.model import In, Kind, Memory, MemoryType, Reader, Receipt, Row, Status, Value, all_of, equals, iso
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.safety import BASE_TRUST
from memory_mesh.core.search import tokens
from memory_mesh.flows.chains import new_entry, own_audit_rows
from memory_mesh.flows.context import Context, Plan, check_texts, commit, intact, require_memory
from memory_mesh.flows.embed import Embedded, EmbeddedPassage, Vectors, passage_row, passage_rows, replace_passages
from memory_mesh.flows.turns import Said, number_turns

# The metadata that the audit block repeats: distillation looks for failures in blocks.
_METADATA_IN_BLOCK = ("status", "tags", "error_pattern")
_CHECKED_AT_ONCE = 256  # items between two reports of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A valid, cleaned item with everything that can be computed before the store is read."""

    draft: Draft
    fingerprint: str
    keywords: list[str]
    receipt_id: str | None
    request: str
    thread: int | None = None  # of a message: the list that it came in; its turn is decided with the stored turns

    @property
    def deduplicated(self) -> bool:
        """Whether an equal memory makes it a duplicate. Lessons are compared by their pattern instead."""
        return self.draft.memory_type != MemoryType.LESSON


def add(
    context: Context, content: object, metadata: object = None, *, key: str | None = None, progress: Progress = no_progress
) -> list[Memory]:
    """Store one item, or all items of a list, with the metadata."""
    if not is_list(content):
        return _store(context, read_one(content, metadata), key, progress)
    return add_many(context, content, metadata, key=key, progress=progress)


def add_many(
    context: Context, items: object, metadata: object = None, *, key: str | None = None, progress: Progress = no_progress
) -> list[Memory]:
    """Store each item, or count it as observed again if it is known. Writes all of them or none.

    Return the memory of each text, and of each message that is new.
    """
    return _store(context, read_items(items, metadata), key, progress)


def _store(context: Context, given: Sequence[Given], key: str | None, progress: Progress) -> list[Memory]:
    prepared = prepare(context, given, key=key, progress=progress)
    if not prepared:
        return []
    vectors = Vectors(progress)
    return commit(context, lambda: plan_add(context, prepared, vectors))


def prepare(
    context: Context, items: Sequence[Given], *, key: str | None = None, request: str | None = None, trust: float | None = None,
    progress: Progress = no_progress,
) -> list[Prepared]:  # fmt: skip
    """Validate and clean texts and their metadata. Raise `InvalidInput` for the first invalid one.

    A flow that generates the items passes the hash of its own request and the trust; metadata cannot set them.
    """
    prepared: list[Prepared] = []
    for at, item in enumerate(items, start=1):
        prepared.append(_prepare_one(context, item, receipt_id(context, key, *([] if len(items) == 1 else [at - 1]))))
        if at % _CHECKED_AT_ONCE == 0 or at == len(items) > 1:
            progress("checking", at, len(items))
    context.step("flow.validated")
    if request is None:
        return _with_common_request(prepared) if key else prepared
    return [
        replace(item, draft=replace(item.draft, columns={**item.draft.columns, "trust": trust}), request=request)
        for item in prepared
    ]


def _with_common_request(prepared: Sequence[Prepared]) -> list[Prepared]:
    """Give the messages of a list the same request: the list is repeated as a whole."""
    whole = request_hash("messages", [[item.draft.content, item.draft.metadata] for item in prepared if item.thread is not None])
    return [item if item.thread is None else replace(item, request=whole) for item in prepared]


def _prepare_one(context: Context, item: Given, receipt: str | None) -> Prepared:
    with numbered("item", item.item):
        checked = draft(item.content, item.metadata, context.reader, context.limits, context.gate())
    if item.source:
        checked = replace(checked, columns={**checked.columns, "trust": BASE_TRUST[item.source]})
    return Prepared(
        draft=checked,
        fingerprint=fingerprint(context.reader, checked),
        keywords=tokens(checked.content, language=context.options.stemmer_language),
        receipt_id=receipt,
        request=request_hash("add", checked.content, checked.metadata),
        thread=item.thread,
    )


# --- deciding ---


@dataclass(slots=True)
class _Batch:
    """The decisions made so far for one call."""

    memories: dict[str, Memory] = field(default_factory=dict)
    replaces: dict[str, int] = field(default_factory=dict)  # the stored revision of known memories
    by_fingerprint: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # the last number of each partition
    entries: list[Entry] = field(default_factory=list)
    other_rows: list[Row] = field(default_factory=list)
    answers: list[Memory] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)

    def put(self, memory: Memory) -> None:
        self.memories[memory.id] = memory
        self.by_fingerprint[str(memory.fingerprint)] = memory.id

    def duplicate_of(self, item: Prepared) -> Memory | None:
        """Return the memory with the same fingerprint, stored or earlier in this batch."""
        return self.memories.get(self.by_fingerprint.get(item.fingerprint, "")) if item.deduplicated else None


def plan_add(context: Context, prepared: Sequence[Prepared], vectors: Vectors) -> Plan[list[Memory]]:
    """Decide what to write under the current state of the store. Vectors of an earlier attempt are reused."""
    seen = {name: context.store.version(name) for name in {_partition(context, item) for item in prepared}}
    receipts = context.store.get(Kind.RECEIPT, [item.receipt_id for item in prepared if item.receipt_id])
    prepared = _with_turns(context, prepared, receipts)
    batch = _Batch(numbers=dict(seen))
    for memory in _duplicates(context, {item.fingerprint: item for item in prepared if item.deduplicated}):
        batch.put(memory)
        batch.replaces[memory.id] = memory.revision
    new = [item for item in prepared if batch.duplicate_of(item) is None and item.receipt_id not in receipts]
    vectors.embed(context, [item.draft.content for item in new])
    context.step("flow.embedded")
    for item in prepared:
        _add_one(context, batch, item, receipts.get(item.receipt_id or ""), vectors)
    memories = [batch.memories[id_].row(replaces=batch.replaces.get(id_, 0)) for id_ in sorted(batch.changed)]
    model_rows = vectors.model_rows(context) if memories else []
    puts = [*memories, *batch.other_rows, *model_rows, *own_audit_rows(context, batch.entries)]
    answers = (_reporting(memory, item.draft.redactions) for memory, item in zip(batch.answers, prepared, strict=True))
    return Plan(list(answers), puts, seen=seen if puts else {})


def _with_turns(context: Context, prepared: Sequence[Prepared], receipts: Mapping[str, Row]) -> Sequence[Prepared]:
    """Give each new message the number of its turn, and leave out the messages that are stored already."""
    replayed = {at for at, item in enumerate(prepared) if item.receipt_id in receipts}
    messages = {
        at: Said(item.thread, _partition(context, item), item.draft)
        for at, item in enumerate(prepared)
        if item.thread is not None and item.draft.columns["turn"] is None  # else the caller numbers its turns
    }
    if not messages:
        return prepared
    numbers = number_turns(context, messages, replayed)
    kept = [(item, numbers.get(at)) for at, item in enumerate(prepared) if at not in messages or at in numbers or at in replayed]
    return [item if number is None else _as_turn(context, item, number) for item, number in kept]


def _as_turn(context: Context, item: Prepared, number: int) -> Prepared:
    metadata, columns = {**item.draft.metadata, "turn": number}, {**item.draft.columns, "turn": number}
    turn = replace(item.draft, metadata=metadata, columns=columns)
    return replace(item, draft=turn, fingerprint=fingerprint(context.reader, turn))


def _duplicates(context: Context, items: Mapping[str, Prepared]) -> list[Memory]:
    """Return the active memories with the fingerprint and the text of an item."""
    if not items:
        return []
    active = all_of(equals("status", Status.ACTIVE), model.not_expired(iso(context.clock())))
    rows = intact(context, context.store.find(Kind.MEMORY, all_of(In("fingerprint", tuple(items)), active)))
    # No block seals a fingerprint: with a forged one, a new text would be lost.
    return [
        memory for memory in map(Memory.of, rows)
        if normal_text(memory.content) == normal_text(items[str(memory.fingerprint)].draft.content)
    ]  # fmt: skip


def _reporting(memory: Memory, redactions: dict[str, int]) -> Memory:
    """Return the memory with what the write masked, for its caller."""
    return replace(memory, redactions=redactions) if redactions else memory


def _add_one(context: Context, batch: _Batch, item: Prepared, receipt: Row | None, vectors: Vectors) -> None:
    if receipt:
        id_ = replayed_id(Receipt.of(receipt), item.request)
        # A caller may write memories for a session that it cannot read, and repeats such a call too: visibility is not checked.
        if id_ not in batch.memories:
            batch.memories[id_] = require_memory(context, id_, any_reader=True)
        batch.answers.append(batch.memories[id_])
        return
    ms = context.clock()
    if known := batch.duplicate_of(item):
        # Metadata of the duplicate that differs is kept in the history.
        differs = {key: value for key, value in item.draft.metadata.items() if known.metadata.get(key) != value}
        memory, change, entry = revise(
            context, ms, known, action="observe", detail=differs or None, times_observed=known.times_observed + 1,
            last_observed=iso(ms),
        )  # fmt: skip
        batch.other_rows.append(change)
    else:
        name, embedded = _partition(context, item), vectors[item.draft.content]
        batch.numbers[name] += 1
        memory = new_memory(context, item, embedded, ms=ms, number=batch.numbers[name])
        batch.other_rows += passage_rows(memory, embedded)
        entry = retain_entry(context, ms, memory, "add")
    batch.entries.append(entry)
    batch.put(memory)
    batch.changed.add(memory.id)
    batch.answers.append(memory)
    if item.receipt_id:
        used = Receipt(id=item.receipt_id, created_at=memory.created_at, ref=memory.id, request=item.request)
        batch.other_rows.append(used.row(memory.partition))


def new_memory(context: Context, item: Prepared, vectors: Embedded, *, ms: int, number: int, **more: Any) -> Memory:
    """Return the memory of a prepared item; `more` sets further columns."""
    at = iso(ms)
    columns: dict[str, Any] = {name: value for name, value in item.draft.columns.items() if value is not None}
    return Memory(
        id=context.ids.new("mem", ms),
        content=item.draft.content,
        metadata=item.draft.metadata,
        created_at=at,
        updated_at=at,
        user_id=context.reader.user_id,
        agent_id=context.reader.agent_id,
        last_observed=at,
        number=number,
        fingerprint=item.fingerprint,
        salt=context.ids.salt(),
        keywords=item.keywords,
        vector=vectors.own,
        pending=vectors.pending,
        sealed=context.options.enable_yamo,
        **{**columns, **more},
    )


def _partition(context: Context, item: Prepared) -> str:
    return model.partition_for(context.reader.user_id, context.reader.agent_id, item.draft.memory_type, None)


# --- changing ---


def update(
    context: Context, memory_id: str, *, content: object = None, metadata: object = None, why: str | None = None,
    key: str | None = None,
) -> Memory:  # fmt: skip
    """Change the content, the metadata or both. Metadata keys with the value None are removed; keys not given are kept."""
    if content is None and metadata is None:
        raise InvalidInput("nothing to update", expected="content, metadata or both")
    check_texts(id=memory_id, **({} if why is None else {"why": why}))
    gate, given = context.gate(), None if content is None else read_content(content, context.limits)
    text, keys = None if given is None else gate.clean_content(given), read_metadata(metadata, context.limits)
    changed = gate.clean_metadata(keys)
    request = request_hash("update", memory_id, text, changed)
    vectors = Vectors()

    def decide() -> Plan[Memory]:
        memory, seen = _read(context, memory_id)
        if find_replayed(context, key, request):
            return Plan(memory)
        plan = _plan_update(context, memory, text, changed, why, vectors)
        receipt = receipt_rows(context, key, memory_id, request)
        # A receipt alone would survive a concurrent erasure, so the unchanged memory is written with it.
        unchanged = [memory.row(replaces=memory.revision)] if receipt and not plan.puts else []
        return replace(plan, puts=[*plan.puts, *unchanged, *receipt], seen=seen)

    return _reporting(commit(context, decide), gate.count((given, text), (keys, changed)))


def set_columns(context: Context, memory_id: str, *, action: str, **columns: Any) -> Memory:
    """Set columns of a memory (pinned, status, …). Nothing is written if they have these values already."""

    def decide() -> Plan[Memory]:
        memory, seen = _read(context, memory_id)
        if _has(memory, columns):
            return Plan(memory)
        return replace(plan_revision(context, memory, action=action, **columns), seen=seen)

    return commit(context, decide)


def plan_revision(context: Context, memory: Memory, *, action: str, why: str | None = None, **updates: Any) -> Plan[Memory]:
    """Return the plan that writes the next revision of a memory with its history and its audit block."""
    ms = context.clock()
    reason = context.gate().redact(why) if why else None
    newer, change, entry = revise(context, ms, memory, action=action, why=reason, **updates)
    return Plan(newer, [newer.row(replaces=memory.revision), change, *own_audit_rows(context, [entry])])


def revise(context: Context, ms: int, memory: Memory, *, action: str, **given: Any) -> tuple[Memory, Row, Entry]:
    """Return the next revision of a memory, its history row and its audit entry. All three must be written together."""
    # Without a salt, erased columns could be guessed from the hashes in the block. Memory Lane's rows have none.
    salt = memory.salt or context.ids.salt()
    newer, change = model.revise(memory, at=iso(ms), by=context.reader.agent_id, action=action, salt=salt, **given)
    row = change.row(newer.partition)
    return newer, row, retain_entry(context, ms, newer, action, row)


def _read(context: Context, memory_id: str) -> tuple[Memory, dict[str, int]]:
    """Return a memory and the version of its partition.

    The revision is not enough: `reembed` replaces the vector without a new revision, and a concurrent change must not undo that.
    """
    seen: dict[str, int] = {}
    while (memory := require_memory(context, memory_id)).partition not in seen:
        seen = {memory.partition: context.store.version(memory.partition)}
    return memory, seen


def _plan_update(
    context: Context, memory: Memory, content: str | None, metadata: dict[str, Value], why: str | None, vectors: Vectors
) -> Plan[Memory]:
    removed = {name for name, value in metadata.items() if value is None}
    merged = {name: value for name, value in {**memory.metadata, **metadata}.items() if name not in removed}
    # The owner stays the same, also when another agent makes the change. A session_id in the metadata replaces the old one.
    owner = Reader(memory.user_id, memory.agent_id, None if "session_id" in metadata else memory.session_id)
    new = draft(memory.content if content is None else content, merged, owner, context.limits, context.gate())
    columns: dict[str, Any] = {name: value for name, value in new.columns.items() if _is_set(name, value, metadata)}
    columns |= {"content": new.content, "metadata": new.metadata}
    if _has(memory, columns):
        return Plan(memory)
    new = replace(new, columns={**{name: getattr(memory, name) for name in new.columns}, **columns})
    columns["keywords"] = tokens(new.content, language=context.options.stemmer_language)
    # The memory of a file keeps the fingerprint of the file.
    columns["fingerprint"] = memory.fingerprint if is_file_print(memory.fingerprint) else fingerprint(owner, new)
    if new.content != memory.content:
        vectors.embed(context, [new.content])
        columns |= {"vector": vectors[new.content].own, "pending": vectors[new.content].pending}
    plan = plan_revision(context, memory, action="update", why=why, updated_at=iso(context.clock()), **columns)
    plan = replace(plan, puts=[*plan.puts, *(vectors.model_rows(context) if vectors else [])])
    return _with_passages(context, memory, plan, vectors.get(new.content))


def _with_passages(context: Context, before: Memory, plan: Plan[Memory], vectors: Embedded | None) -> Plan[Memory]:
    """Add the memory's passages to the plan: replaced if the text changed, with the new scope or source if that changed."""
    memory = plan.answer
    same_source = memory.metadata.get("source") == before.metadata.get("source")
    if vectors is None and same_source and memory.scope == before.scope:
        return plan
    old = context.store.get(Kind.PASSAGE, context.store.ids(Kind.PASSAGE, equals("ref", memory.id)))
    if vectors:
        new = passage_rows(memory, vectors)
    else:
        new = [passage_row(memory, id_, passage) for id_, row in old.items() if (passage := EmbeddedPassage.of(row))]
    puts, deletes = replace_passages(old, new)
    return replace(plan, puts=[*plan.puts, *puts], deletes=deletes)


def _has(memory: Memory, columns: dict[str, Any]) -> bool:
    return all(getattr(memory, name) == value for name, value in columns.items())


def _is_set(name: str, value: Value, metadata: dict[str, Value]) -> bool:
    """Return whether the update sets this column; the others keep their values."""
    if name == "memory_type":
        return "type" in metadata
    return name in metadata or (value is not None and value != [])


# --- idempotency keys: a receipt, written with the memory, records the key and the request ---


def receipt_id(context: Context, key: str | None, *position: int) -> str | None:
    """Return the id of a key's receipt; None without a key.

    It differs by agent, session and position in a batch: else a session could find out the keys and texts of another.
    """
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip():
        raise InvalidInput(f"idempotency_key is {shown(key)}", expected="a non-empty text")
    reader = context.reader
    session = [] if reader.session_id is None else [[reader.session_id]]
    parts = [reader.user_id, reader.agent_id, *session, key, *position]
    return "receipt_" + sha256(json.dumps(parts).encode()).hexdigest()


def request_hash(*parts: object) -> str:
    """Return a hash of a request, by which another request under the same key is detected."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def replayed_id(receipt: Receipt, request: str) -> str:
    """Return the id of the memory that a key stored. Raise `KeyReused` if the request was another one or is erased."""
    if receipt.request is None:
        raise KeyReused("the memory stored under this idempotency_key has been erased", remedy="use a new key to store it again")
    if receipt.request != request:
        raise KeyReused("this idempotency_key was used for another request", remedy="use a new key for a new request")
    return receipt.ref


def find_replayed(context: Context, key: str | None, request: str) -> str | None:
    """Return the id of the memory that an earlier call with this key stored; None for a first call."""
    id_ = receipt_id(context, key)
    row = context.store.get(Kind.RECEIPT, [id_]).get(id_) if id_ else None
    return replayed_id(Receipt.of(row), request) if row else None


def receipt_rows(context: Context, key: str | None, memory_id: str, request: str) -> list[Row]:
    """Return the receipt of a call, to be written in the same transaction; empty without a key."""
    id_ = receipt_id(context, key)
    if id_ is None:
        return []
    receipt = Receipt(id=id_, created_at=iso(context.clock()), ref=memory_id, request=request)
    return [receipt.row(model.partition(context.reader.user_id, context.reader.agent_id))]


# --- audit ---


def retain_entry(context: Context, ms: int, memory: Memory, action: str, change: Row | None = None) -> Entry:
    """Return the audit entry that records an action on a memory: add, observe, update, …"""
    repeated = {name: memory.metadata[name] for name in _METADATA_IN_BLOCK if name in memory.metadata}
    write = partial(
        blocks.retain,
        agent=str(context.reader.agent_id),
        memory_id=memory.id,
        memory_type=memory.memory_type,
        at=iso(ms),
        content=memory.content,
        hypothesis=str(memory.metadata.get("hypothesis") or "none"),
        action=action,
        revision=memory.revision,
    )
    return new_entry(context, "retain", ms, write, memory=memory, change=change, metadata={"action": action, **repeated})
