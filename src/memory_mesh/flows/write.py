"""Remembering: validate → scrub and redact → decide (a duplicate, or new) → one write: memory, history, audit block."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_mesh.core import audit, yamo
from memory_mesh.core.audit import Entry
from memory_mesh.core.columns import Kind, Value
from memory_mesh.core.drafts import Draft, draft, fingerprint, read_content, read_metadata
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.history import revise
from memory_mesh.core.lexical import tokens
from memory_mesh.core.records import Memory, Receipt, Status
from memory_mesh.core.rows import Row
from memory_mesh.core.scope import MemoryType, Reader, home, visible
from memory_mesh.core.times import iso
from memory_mesh.core.where import Compare, In, both
from memory_mesh.flows import receipts
from memory_mesh.flows.desk import Desk, Plan, lasting, memory_row, sealed, settle, texts

# Of the metadata, what the distillation of lessons looks for in blocks.
_CARRIED = ("status", "tags", "error_pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A draft with all that can be worked out before the store is asked."""

    draft: Draft
    fingerprint: str
    keywords: list[str]
    receipt_id: str | None
    request: str

    @property
    def deduplicated(self) -> bool:
        return self.draft.memory_type != MemoryType.LESSON  # of two lessons their patterns decide


def add_many(desk: Desk, items: Sequence[object], *, key: str | None = None) -> list[Memory]:
    """Store each item, or count a sighting where it is known already. All of them, or none."""
    wanted = [_wanted(desk, at, item, key, alone=len(items) == 1) for at, item in enumerate(items)]
    desk.step("flow.validated")
    if not wanted:
        return []
    answer, _ = settle(desk, lambda: _decide_add(desk, wanted))
    return answer


def update(
    desk: Desk, memory_id: str, *, content: object = None, metadata: object = None, why: str | None = None,
    key: str | None = None,
) -> Memory:  # fmt: skip
    """A new revision. Metadata keys given are set, those given as None are removed, the others stay."""
    if content is None and metadata is None:
        raise InvalidInput("nothing to update", expected="content, metadata or both")
    texts(id=memory_id, **({} if why is None else {"why": why}))
    text = None if content is None else desk.layer0.content(read_content(content, desk.limits))
    notes = desk.layer0.notes(read_metadata(metadata, desk.limits))
    request = receipts.request("update", memory_id, text, notes)

    def decide() -> Plan[Memory]:
        known = _known(desk, memory_id)
        if receipts.repeated(desk, key, request):
            return Plan(known)
        plan = _decide_update(desk, known, text, notes, why)
        receipt = receipts.rows(desk, key, memory_id, request)
        # A receipt alone would outlive an erasure that comes in between, so the memory is put with it, as it is.
        held = [known.row(replaces=known.revision)] if receipt and not plan.puts else []
        return replace(plan, puts=[*plan.puts, *held, *receipt])

    answer, _ = settle(desk, decide)
    return answer


def set_columns(desk: Desk, memory_id: str, *, action: str, why: str | None = None, **columns: Any) -> Memory:
    """Change columns of a memory (pin, status, …) with history and block; nothing is written where nothing changes."""

    def decide() -> Plan[Memory]:
        known = _known(desk, memory_id)
        if all(getattr(known, name) == value for name, value in columns.items()):
            return Plan(known)
        return _revised(desk, known, action=action, why=why, **columns)

    answer, _ = settle(desk, decide)
    return answer


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


def _decide_add(desk: Desk, wanted: Sequence[Wanted]) -> Plan[list[Memory]]:
    seen = {name: desk.store.version(name) for name in {_home(desk, item) for item in wanted}}
    batch = _Batch(numbers=dict(seen))
    used = desk.store.get(Kind.RECEIPT, [item.receipt_id for item in wanted if item.receipt_id])
    prints = tuple({item.fingerprint for item in wanted if item.deduplicated})
    active = Compare("status", "=", Status.ACTIVE)
    alike = both(In("fingerprint", prints), active, lasting(desk))
    for row in desk.store.find(Kind.MEMORY, alike) if prints else []:
        memory = Memory.of(row)
        batch.hold(memory)
        batch.replaces[memory.id] = memory.revision
    for item in wanted:
        _take(desk, batch, item, used.get(item.receipt_id or ""))
    written = [batch.memories[id_].row(replaces=batch.replaces.get(id_, 0)) for id_ in sorted(batch.touched)]
    chain = audit.chain_name(desk.who.user_id, desk.who.agent_id)
    puts = [*written, *batch.others, *sealed(desk, chain, batch.entries if desk.audited else [])]
    return Plan(batch.answers, puts, seen=seen if puts else {})


def _take(desk: Desk, batch: _Batch, item: Wanted, receipt: Row | None) -> None:
    if receipt:
        id_ = receipts.stored(Receipt.of(receipt), item.request)
        if id_ not in batch.memories:
            batch.memories[id_] = _kept(desk, id_)
        batch.answers.append(batch.memories[id_])
        return
    known = batch.by_fingerprint.get(item.fingerprint) if item.deduplicated else None
    memory = _observe(desk, batch, batch.memories[known], item) if known else _create(desk, batch, item)
    batch.hold(memory)
    batch.touched.add(memory.id)
    batch.answers.append(memory)
    if item.receipt_id:
        kept = Receipt(id=item.receipt_id, created_at=memory.created_at, ref=memory.id, request=item.request)
        batch.others.append(kept.row(memory.partition))


def _create(desk: Desk, batch: _Batch, item: Wanted) -> Memory:
    ms = desk.clock()
    at = iso(ms)
    partition_ = _home(desk, item)
    batch.numbers[partition_] += 1
    columns: dict[str, Any] = {name: value for name, value in item.draft.columns.items() if value is not None}
    memory = Memory(
        id=desk.ids.new("mem", ms),
        content=item.draft.content,
        metadata=item.draft.metadata,
        created_at=at,
        updated_at=at,
        user_id=desk.who.user_id,
        agent_id=desk.who.agent_id,
        last_observed=at,
        number=batch.numbers[partition_],
        fingerprint=item.fingerprint,
        salt=desk.ids.salt(),
        keywords=item.keywords,
        **columns,
    )
    batch.entries.append(_entry(desk, ms, memory, "add"))
    return memory


def _observe(desk: Desk, batch: _Batch, memory: Memory, item: Wanted) -> Memory:
    ms = desk.clock()
    at = iso(ms)
    # What the second sighting said beyond the first is kept where it can be looked up: in the history.
    differs = {key: value for key, value in item.draft.metadata.items() if memory.metadata.get(key) != value}
    newer, change = revise(
        memory, at=at, by=desk.who.agent_id, action="observe", detail=differs or None,
        times_observed=memory.times_observed + 1, last_observed=at,
    )  # fmt: skip
    batch.others.append(change.row(memory.partition))
    batch.entries.append(_entry(desk, ms, newer, "observe"))
    return newer


def _decide_update(desk: Desk, known: Memory, content: str | None, metadata: dict[str, Value], why: str | None) -> Plan[Memory]:
    gone = {name for name, value in metadata.items() if value is None}
    merged = {name: value for name, value in {**known.metadata, **metadata}.items() if name not in gone}
    # The memory stays whose it was, whoever changes it; a session named in the change replaces the old one.
    session_id = None if "session_id" in metadata else known.session_id
    who = Reader(known.user_id, known.agent_id, session_id)
    read = draft(known.content if content is None else content, merged, who, desk.limits, desk.layer0)
    columns: dict[str, Any] = {name: value for name, value in read.columns.items() if _spoken(name, value, metadata)}
    columns |= {"content": read.content, "metadata": read.metadata}
    if all(getattr(known, name) == value for name, value in columns.items()):
        return Plan(known)
    read = replace(read, columns={**{name: getattr(known, name) for name in read.columns}, **columns})
    columns |= {"keywords": tokens(read.content, language=desk.language), "fingerprint": fingerprint(who, read)}
    return _revised(desk, known, action="update", why=why, updated_at=iso(desk.clock()), **columns)


def _spoken(name: str, value: Value, metadata: dict[str, Value]) -> bool:
    """Whether an update speaks of a column; the others stay as they are."""
    if name == "memory_type":
        return "type" in metadata
    return name in metadata or (value is not None and value != [])


def _revised(desk: Desk, known: Memory, *, action: str, why: str | None, **updates: Any) -> Plan[Memory]:
    ms = desk.clock()
    reason = desk.layer0.line(why) if why else None
    newer, change = revise(known, at=iso(ms), by=desk.who.agent_id, action=action, why=reason, **updates)
    chain = audit.chain_name(desk.who.user_id, desk.who.agent_id)
    blocks = sealed(desk, chain, [_entry(desk, ms, newer, action)] if desk.audited else [])
    return Plan(newer, [newer.row(replaces=known.revision), change.row(newer.partition), *blocks])


def _entry(desk: Desk, ms: int, memory: Memory, action: str) -> Entry:
    carried = {name: memory.metadata[name] for name in _CARRIED if name in memory.metadata}
    return Entry(
        id=desk.ids.new("yamo_retain", ms),
        operation_type="retain",
        ms=ms,
        write=lambda seal: yamo.retain(
            seal,
            agent=str(desk.who.agent_id),
            memory_id=memory.id,
            memory_type=memory.memory_type,
            at=iso(ms),
            content=memory.content,
            hypothesis=str(memory.metadata.get("hypothesis") or "none"),
            action=action,
            revision=memory.revision,
        ),
        content_hash=audit.content_hash(memory.salt, memory.content) if memory.salt else None,
        ref=memory.id,
        metadata={"action": action, **carried},
    )


def _wanted(desk: Desk, at: int, item: object, key: str | None, *, alone: bool) -> Wanted:
    try:
        read = draft(*_pair(item), desk.who, desk.limits, desk.layer0)
    except InvalidInput as error:
        if alone:
            raise
        raise type(error)(f"item {at}: {error.what}", expected=error.expected, remedy=error.remedy) from None
    place = () if alone else (at,)
    return Wanted(
        draft=read,
        fingerprint=fingerprint(desk.who, read),
        keywords=tokens(read.content, language=desk.language),
        receipt_id=receipts.receipt_id(desk, key, *place),
        request=receipts.request("add", read.content, read.metadata),
    )


def _pair(item: object) -> tuple[object, object]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise InvalidInput(f"it is {shown(item)}", expected="a pair of text and metadata")
    return item[0], item[1]


def _home(desk: Desk, item: Wanted) -> str:
    return home(desk.who.user_id, desk.who.agent_id, item.draft.memory_type, None)


def _known(desk: Desk, memory_id: str) -> Memory:
    row = memory_row(desk, memory_id)
    if row is None or not visible(desk.who, row):
        raise _unknown(desk, memory_id)
    return Memory.of(row)


def _kept(desk: Desk, memory_id: str) -> Memory:
    """What this agent stored under a key. It is told again to whoever repeats the call, of whatever session it is."""
    row = memory_row(desk, memory_id)
    if row is None:
        raise _unknown(desk, memory_id)
    return Memory.of(row)


def _unknown(desk: Desk, memory_id: str) -> NotFound:
    what = f"no memory {memory_id!r:.80} for agent {desk.who.agent_id}"
    return NotFound(what, remedy="check the id, the agent and the session")
