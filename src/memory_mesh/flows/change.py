"""Changing what is remembered: a new revision, what it was in the history, a block that tells of it. One write."""

from dataclasses import replace
from typing import Any

from memory_mesh.core import audit
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake.drafts import Draft, draft, fingerprint, read_content, read_metadata
from memory_mesh.core.intake.files import is_file_print
from memory_mesh.core.model.columns import Kind, Value
from memory_mesh.core.model.records import Memory, revise
from memory_mesh.core.model.scope import Reader
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import equals
from memory_mesh.core.search import tokens
from memory_mesh.flows import receipts
from memory_mesh.flows.context import Context, Plan, commit, sealed, texts, visible_memory
from memory_mesh.flows.embed import Embedded, Vectors, over, passage_row, passage_rows
from memory_mesh.flows.memory_block import entry


def update(
    context: Context, memory_id: str, *, content: object = None, metadata: object = None, why: str | None = None,
    key: str | None = None,
) -> Memory:  # fmt: skip
    """A new revision. Metadata keys given are set, those given as None are removed, the others stay."""
    if content is None and metadata is None:
        raise InvalidInput("nothing to update", expected="content, metadata or both")
    texts(id=memory_id, **({} if why is None else {"why": why}))
    text = None if content is None else context.layer0.content(read_content(content, context.limits))
    notes = context.layer0.notes(read_metadata(metadata, context.limits))
    request = receipts.request("update", memory_id, text, notes)
    made = Vectors()

    def decide() -> Plan[Memory]:
        known, seen = _read(context, memory_id)
        if receipts.repeated(context, key, request):
            return Plan(known)
        plan = _decide_update(context, known, text, notes, why, made)
        receipt = receipts.rows(context, key, memory_id, request)
        # A receipt alone would outlive an erasure that comes in between, so the memory is put with it, as it is.
        held = [known.row(replaces=known.revision)] if receipt and not plan.puts else []
        return replace(plan, puts=[*plan.puts, *held, *receipt], seen=seen)

    answer, _ = commit(context, decide)
    return answer


def set_columns(context: Context, memory_id: str, *, action: str, why: str | None = None, **columns: Any) -> Memory:
    """Change columns of a memory (pin, status, …) with history and block; nothing is written where nothing changes."""

    def decide() -> Plan[Memory]:
        known, seen = _read(context, memory_id)
        if all(getattr(known, name) == value for name, value in columns.items()):
            return Plan(known)
        return replace(revised(context, known, action=action, why=why, **columns), seen=seen)

    answer, _ = commit(context, decide)
    return answer


def _read(context: Context, memory_id: str) -> tuple[Memory, dict[str, int]]:
    """A memory and the version that it was read under. Its revision is not enough: `reembed` gives it another vector without a
    new revision, and a change that was decided before must not put the old one back."""
    seen: dict[str, int] = {}
    while (known := visible_memory(context, memory_id)).partition not in seen:
        seen = {known.partition: context.store.version(known.partition)}
    return known, seen


def _decide_update(
    context: Context, known: Memory, content: str | None, metadata: dict[str, Value], why: str | None, made: Vectors
) -> Plan[Memory]:
    gone = {name for name, value in metadata.items() if value is None}
    merged = {name: value for name, value in {**known.metadata, **metadata}.items() if name not in gone}
    # The memory stays whose it was, whoever changes it; a session named in the change replaces the old one.
    session_id = None if "session_id" in metadata else known.session_id
    reader = Reader(known.user_id, known.agent_id, session_id)
    read = draft(known.content if content is None else content, merged, reader, context.limits, context.layer0)
    columns: dict[str, Any] = {name: value for name, value in read.columns.items() if _spoken(name, value, metadata)}
    columns |= {"content": read.content, "metadata": read.metadata}
    if all(getattr(known, name) == value for name, value in columns.items()):
        return Plan(known)
    read = replace(read, columns={**{name: getattr(known, name) for name in read.columns}, **columns})
    columns |= {
        "keywords": tokens(read.content, language=context.options.stemmer_language),
        "fingerprint": _fingerprint(known, reader, read),
    }
    if read.content != known.content:
        made.add(context, [read.content])
        columns |= {"vector": made[read.content].own, "pending": made[read.content].pending}
    plan = revised(context, known, action="update", why=why, updated_at=iso(context.clock()), **columns)
    plan = replace(plan, puts=[*plan.puts, *(made.claim(context) if made else [])])
    return _with_passages(context, known, plan, made.get(read.content))


def _fingerprint(known: Memory, reader: Reader, read: Draft) -> str | None:
    """That of the new text; a file's memory stays that file's, whatever it says."""
    return known.fingerprint if is_file_print(known.fingerprint) else fingerprint(reader, read)


def _with_passages(context: Context, before: Memory, plan: Plan[Memory], vectors: Embedded | None) -> Plan[Memory]:
    """The passages follow their memory: replaced with its text, moved with its scope."""
    memory = plan.answer
    if vectors is None and memory.scope == before.scope:
        return plan
    held = context.store.get(Kind.PASSAGE, context.store.ids(Kind.PASSAGE, equals("ref", memory.id)))
    if vectors:
        new = {row.id: row for row in passage_rows(memory, vectors)}
    else:
        new = {id_: passage_row(memory, id_, row.vector) for id_, row in held.items() if row.vector}
    # Replaced where there is one already: deleting makes a store free bytes, and the old text is kept in the history anyway.
    puts = [over(row, held.get(id_)) for id_, row in new.items()]
    return replace(plan, puts=[*plan.puts, *puts], deletes=[row.key for id_, row in held.items() if id_ not in new])


def _spoken(name: str, value: Value, metadata: dict[str, Value]) -> bool:
    """Whether an update speaks of a column; the others stay as they are."""
    if name == "memory_type":
        return "type" in metadata
    return name in metadata or (value is not None and value != [])


def revised(context: Context, known: Memory, *, action: str, why: str | None, **updates: Any) -> Plan[Memory]:
    """A memory's next revision, with its history and the block that tells of it."""
    ms = context.clock()
    reason = context.layer0.line(why) if why else None
    newer, change = revise(known, at=iso(ms), by=context.reader.agent_id, action=action, why=reason, **updates)
    chain = audit.chain_name(context.reader.user_id, context.reader.agent_id)
    blocks = sealed(context, chain, [entry(context, ms, newer, action)] if context.options.enable_yamo else [])
    return Plan(newer, [newer.row(replaces=known.revision), change.row(newer.partition), *blocks])
