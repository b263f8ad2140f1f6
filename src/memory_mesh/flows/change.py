"""Change a memory: write the next revision, the old values in its history and an audit block at once."""

from dataclasses import replace
from typing import Any

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import Draft, draft, fingerprint, is_file_print, read_content, read_metadata
from memory_mesh.core.model import Kind, Memory, Reader, Value, equals, iso, revise
from memory_mesh.core.search import tokens
from memory_mesh.flows.context import Context, Plan, audit_rows, check_texts, commit, own_chain, visible_memory
from memory_mesh.flows.embed import Embedded, Vectors, passage_row, passage_rows, replacing
from memory_mesh.flows.write import find_replayed, receipt_rows, request_hash, retain_entry


def update(
    context: Context, memory_id: str, *, content: object = None, metadata: object = None, why: str | None = None,
    key: str | None = None,
) -> Memory:  # fmt: skip
    """Change the content, the metadata or both. Metadata keys with the value None are removed; keys not given are kept."""
    if content is None and metadata is None:
        raise InvalidInput("nothing to update", expected="content, metadata or both")
    check_texts(id=memory_id, **({} if why is None else {"why": why}))
    text = None if content is None else context.layer0.clean_content(read_content(content, context.limits))
    changed = context.layer0.clean_metadata(read_metadata(metadata, context.limits))
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

    return commit(context, decide)[0]


def set_columns(context: Context, memory_id: str, *, action: str, why: str | None = None, **columns: Any) -> Memory:
    """Set columns of a memory (pinned, status, …). Nothing is written if they have these values already."""

    def decide() -> Plan[Memory]:
        memory, seen = _read(context, memory_id)
        if _has(memory, columns):
            return Plan(memory)
        return replace(plan_revision(context, memory, action=action, why=why, **columns), seen=seen)

    return commit(context, decide)[0]


def plan_revision(context: Context, memory: Memory, *, action: str, why: str | None, **updates: Any) -> Plan[Memory]:
    """Return the plan that writes the next revision of a memory with its history and its audit block."""
    ms = context.clock()
    reason = context.layer0.redact(why) if why else None
    newer, change = revise(memory, at=iso(ms), by=context.reader.agent_id, action=action, why=reason, **updates)
    entries = [retain_entry(context, ms, newer, action)] if context.options.enable_yamo else []
    blocks = audit_rows(context, own_chain(context), entries)
    return Plan(newer, [newer.row(replaces=memory.revision), change.row(newer.partition), *blocks])


def _read(context: Context, memory_id: str) -> tuple[Memory, dict[str, int]]:
    """Return a memory and the version of its partition.

    The revision is not enough: `reembed` replaces the vector without a new revision, and a concurrent change must not undo that.
    """
    seen: dict[str, int] = {}
    while (memory := visible_memory(context, memory_id)).partition not in seen:
        seen = {memory.partition: context.store.version(memory.partition)}
    return memory, seen


def _plan_update(
    context: Context, memory: Memory, content: str | None, metadata: dict[str, Value], why: str | None, vectors: Vectors
) -> Plan[Memory]:
    removed = {name for name, value in metadata.items() if value is None}
    merged = {name: value for name, value in {**memory.metadata, **metadata}.items() if name not in removed}
    # The owner stays the same, also when another agent makes the change. A session_id in the metadata replaces the old one.
    owner = Reader(memory.user_id, memory.agent_id, None if "session_id" in metadata else memory.session_id)
    new = draft(memory.content if content is None else content, merged, owner, context.limits, context.layer0)
    columns: dict[str, Any] = {name: value for name, value in new.columns.items() if _is_set(name, value, metadata)}
    columns |= {"content": new.content, "metadata": new.metadata}
    if _has(memory, columns):
        return Plan(memory)
    new = replace(new, columns={**{name: getattr(memory, name) for name in new.columns}, **columns})
    columns["keywords"] = tokens(new.content, language=context.options.stemmer_language)
    columns["fingerprint"] = _fingerprint(memory, owner, new)
    if new.content != memory.content:
        vectors.embed(context, [new.content])
        columns |= {"vector": vectors[new.content].own, "pending": vectors[new.content].pending}
    plan = plan_revision(context, memory, action="update", why=why, updated_at=iso(context.clock()), **columns)
    plan = replace(plan, puts=[*plan.puts, *(vectors.model_rows(context) if vectors else [])])
    return _with_passages(context, memory, plan, vectors.get(new.content))


def _fingerprint(memory: Memory, owner: Reader, new: Draft) -> str | None:
    """Return the fingerprint of the new text. The memory of a file keeps the fingerprint of the file."""
    return memory.fingerprint if is_file_print(memory.fingerprint) else fingerprint(owner, new)


def _with_passages(context: Context, before: Memory, plan: Plan[Memory], vectors: Embedded | None) -> Plan[Memory]:
    """Add the memory's passages to the plan: replaced if the text changed, with the new scope if the scope changed."""
    memory = plan.answer
    if vectors is None and memory.scope == before.scope:
        return plan
    old = context.store.get(Kind.PASSAGE, context.store.ids(Kind.PASSAGE, equals("ref", memory.id)))
    if vectors:
        new = {row.id: row for row in passage_rows(memory, vectors)}
    else:
        new = {id_: passage_row(memory, id_, row.vector) for id_, row in old.items() if row.vector}
    # Replace rows where possible: a delete makes the store free bytes, and the history keeps the old text anyway.
    puts = [replacing(old.get(id_), row) for id_, row in new.items()]
    return replace(plan, puts=[*plan.puts, *puts], deletes=[row.key for id_, row in old.items() if id_ not in new])


def _has(memory: Memory, columns: dict[str, Any]) -> bool:
    return all(getattr(memory, name) == value for name, value in columns.items())


def _is_set(name: str, value: Value, metadata: dict[str, Value]) -> bool:
    """Return whether the update sets this column; the others keep their values."""
    if name == "memory_type":
        return "type" in metadata
    return name in metadata or (value is not None and value != [])
