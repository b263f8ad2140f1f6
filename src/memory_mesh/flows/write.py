"""Remembering: validate → scrub and redact → decide (a duplicate, or new) → embed → one write: memory, history, audit block."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake.drafts import Draft, draft, fingerprint
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Memory, Receipt, Status, revise
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.scope import MemoryType, partition_for
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, In, all_of
from memory_mesh.core.search import tokens
from memory_mesh.flows import receipts
from memory_mesh.flows.context import Context, Plan, commit, lasting, memory_row, sealed, unknown
from memory_mesh.flows.embed import Embedded, Vectors, passage_rows
from memory_mesh.flows.memory_block import entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A draft with all that can be worked out before the store is asked."""

    draft: Draft
    fingerprint: str
    keywords: list[str]
    receipt_id: str | None
    request: str

    def made(self, request: str, trust: float | None) -> "Prepared":
        """The same, of a flow's making."""
        trusted = replace(self.draft, columns={**self.draft.columns, "trust": trust})
        return replace(self, draft=trusted, request=request)

    @property
    def deduplicated(self) -> bool:
        return self.draft.memory_type != MemoryType.LESSON  # of two lessons their patterns decide


def add_many(context: Context, items: Sequence[object], *, key: str | None = None) -> list[Memory]:
    """Store each item, or count a sighting where it is known already. All of them, or none."""
    wanted = read_items(context, items, key=key)
    if not wanted:
        return []
    made = Vectors()
    answer, _ = commit(context, lambda: decide_add(context, wanted, made))
    return answer


def read_items(
    context: Context, items: Sequence[object], *, key: str | None = None, request: str | None = None, trust: float | None = None
) -> list[Prepared]:
    """What is to be stored, checked and cleaned. A flow that makes the items says what was asked for, and how far it trusts them;
    nothing within an item can."""
    wanted = [_wanted(context, at, item, key, alone=len(items) == 1) for at, item in enumerate(items)]
    context.step("flow.validated")
    return [item.made(request, trust) for item in wanted] if request else wanted


@dataclass(slots=True)
class _Batch:
    """What a run of adds has decided so far."""

    memories: dict[str, Memory] = field(default_factory=dict)
    replaces: dict[str, int] = field(default_factory=dict)
    by_fingerprint: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    others: list[Row] = field(default_factory=list)
    answers: list[Memory] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)

    def hold(self, memory: Memory) -> None:
        self.memories[memory.id] = memory
        self.by_fingerprint[str(memory.fingerprint)] = memory.id


def decide_add(context: Context, wanted: Sequence[Prepared], made: Vectors) -> Plan[list[Memory]]:
    """What to write, as the store stands now; vectors that an earlier decision made are used again."""
    seen = {name: context.store.version(name) for name in {_home(context, item) for item in wanted}}
    batch = _Batch(numbers=dict(seen))
    used = context.store.get(Kind.RECEIPT, [item.receipt_id for item in wanted if item.receipt_id])
    prints = tuple({item.fingerprint for item in wanted if item.deduplicated})
    active = Compare("status", "=", Status.ACTIVE)
    alike = all_of(In("fingerprint", prints), active, lasting(context))
    for row in context.store.find(Kind.MEMORY, alike) if prints else []:
        memory = Memory.of(row)
        batch.hold(memory)
        batch.replaces[memory.id] = memory.revision
    fresh = [item for item in wanted if not _isknown(batch, item) and item.receipt_id not in used]
    made.add(context, [item.draft.content for item in fresh])
    context.step("flow.embedded")
    for item in wanted:
        _take(context, batch, item, used.get(item.receipt_id or ""), made)
    written = [batch.memories[id_].row(replaces=batch.replaces.get(id_, 0)) for id_ in sorted(batch.touched)]
    chain = audit.chain_name(context.reader.user_id, context.reader.agent_id)
    claimed = made.claim(context) if written else []
    puts = [*written, *batch.others, *claimed, *sealed(context, chain, batch.entries if context.options.enable_yamo else [])]
    return Plan(batch.answers, puts, seen=seen if puts else {})


def _isknown(batch: _Batch, item: Prepared) -> bool:
    return item.deduplicated and item.fingerprint in batch.by_fingerprint


def _take(context: Context, batch: _Batch, item: Prepared, receipt: Row | None, made: Vectors) -> None:
    if receipt:
        id_ = receipts.stored(Receipt.of(receipt), item.request)
        if id_ not in batch.memories:
            batch.memories[id_] = _kept(context, id_)
        batch.answers.append(batch.memories[id_])
        return
    if _isknown(batch, item):
        memory = _observe(context, batch, batch.memories[batch.by_fingerprint[item.fingerprint]], item)
    else:
        memory = _create(context, batch, item, made[item.draft.content])
    batch.hold(memory)
    batch.touched.add(memory.id)
    batch.answers.append(memory)
    if item.receipt_id:
        kept = Receipt(id=item.receipt_id, created_at=memory.created_at, ref=memory.id, request=item.request)
        batch.others.append(kept.row(memory.partition))


def _create(context: Context, batch: _Batch, item: Prepared, vectors: Embedded) -> Memory:
    ms = context.clock()
    partition_ = _home(context, item)
    batch.numbers[partition_] += 1
    memory = memory_of(context, item, vectors, ms=ms, number=batch.numbers[partition_])
    batch.others.extend(passage_rows(memory, vectors))
    batch.entries.append(entry(context, ms, memory, "add"))
    return memory


def memory_of(context: Context, item: Prepared, vectors: Embedded, *, ms: int, number: int, **more: Any) -> Memory:
    """A new memory; `more` are columns that a flow fills."""
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
        **{**columns, **more},
    )


def _observe(context: Context, batch: _Batch, memory: Memory, item: Prepared) -> Memory:
    ms = context.clock()
    at = iso(ms)
    # What the second sighting said beyond the first is kept where it can be looked up: in the history.
    differs = {key: value for key, value in item.draft.metadata.items() if memory.metadata.get(key) != value}
    newer, change = revise(
        memory, at=at, by=context.reader.agent_id, action="observe", detail=differs or None,
        times_observed=memory.times_observed + 1, last_observed=at,
    )  # fmt: skip
    batch.others.append(change.row(memory.partition))
    batch.entries.append(entry(context, ms, newer, "observe"))
    return newer


def _wanted(context: Context, at: int, item: object, key: str | None, *, alone: bool) -> Prepared:
    try:
        read = draft(*_pair(item), context.reader, context.limits, context.layer0)
    except InvalidInput as error:
        if alone:
            raise
        raise type(error)(f"item {at}: {error.what}", expected=error.expected, remedy=error.remedy) from None
    place = () if alone else (at,)
    return Prepared(
        draft=read,
        fingerprint=fingerprint(context.reader, read),
        keywords=tokens(read.content, language=context.options.stemmer_language),
        receipt_id=receipts.receipt_id(context, key, *place),
        request=receipts.request("add", read.content, read.metadata),
    )


def _pair(item: object) -> tuple[object, object]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InvalidInput(f"it is {shown(item)}", expected="a pair of text and metadata")
    return item[0], item[1]


def _home(context: Context, item: Prepared) -> str:
    return partition_for(context.reader.user_id, context.reader.agent_id, item.draft.memory_type, None)


def _kept(context: Context, memory_id: str) -> Memory:
    """What this agent stored under a key. It is told again to whoever repeats the call, of whatever session it is."""
    row = memory_row(context, memory_id)
    if row is None:
        raise unknown(context, memory_id)
    return Memory.of(row)
