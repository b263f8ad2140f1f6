"""Move memories between stores: a backup of the file, and memories as lines of JSON (`core.transfer`).

An import stores memories under their own ids and times. It runs through validation and redaction like every write, writes a batch
at once, and never changes a memory that is stored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memory_mesh.core import transfer
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.intake import Draft, draft, fingerprint, key_print, read_key
from memory_mesh.core.model import (
    BackedUp,
    Change,
    FailedLine,
    Imported,
    Kind,
    Memory,
    Reader,
    Row,
    Usage,
    batches,
    change_id,
    partition,
    visible_to,
)
from memory_mesh.core.ports import Progress
from memory_mesh.core.search import tokens
from memory_mesh.core.transfer import Line
from memory_mesh.flows import search, usage
from memory_mesh.flows.chains import own_audit_rows
from memory_mesh.flows.context import Context, Plan, commit, intact
from memory_mesh.flows.embed import Vectors, passage_rows
from memory_mesh.flows.write import retain_entry

_AT_ONCE = 500
# Texts that a memory has beside its content and its metadata.
_TEXTS = ("tags", "category", "speaker", "heritage_chain", "key")


def backup(context: Context, file: str, progress: Progress) -> BackedUp:
    """Copy the file of the store to a new file."""
    target = Path(file).expanduser().absolute()
    return BackedUp(file=str(target), bytes=context.file.backup(target, progress))


# --- export ---


def export(context: Context, *, history: bool, progress: Progress) -> Iterator[str]:
    """Yield the lines of all visible memories, of every status, oldest first."""
    yield transfer.header() + "\n"
    ids = [row.id for row in _newest_first(context)]
    for done, batch in enumerate(batches(reversed(ids), _AT_ONCE)):
        found = context.store.get(Kind.MEMORY, batch)
        rows = intact(context, [found[id_] for id_ in batch if id_ in found])
        for memory in usage.with_counts(context, [Memory.of(row) for row in rows]):
            with suppress(NotFound):  # erased meanwhile
                changes = search.history(context, memory.id)[1:] if history else None
                yield transfer.line_of(memory, changes) + "\n"
        progress("exporting", min((done + 1) * _AT_ONCE, len(ids)), len(ids))


def _newest_first(context: Context) -> Iterator[Row]:
    last: Row | None = None
    while rows := context.store.find(Kind.MEMORY, visible_to(context.reader), limit=_AT_ONCE, after=last):
        yield from rows
        last = rows[-1]


# --- import ---


@dataclass(frozen=True, slots=True)
class _Item:
    """A memory to import, with its history and the number of its line."""

    line: int
    memory: Memory
    changes: tuple[Change, ...]
    with_history: bool


def import_memories(context: Context, lines: Iterable[str], *, reassign: bool, progress: Progress) -> Imported:
    """Store the memories of an export. Raise `InvalidInput` if the first line is not that of an export."""
    context.check_enabled()
    if isinstance(lines, str | bytes | Mapping) or not isinstance(lines, Iterable):
        raise InvalidInput(f"lines is {shown(lines)}", expected="the lines of an export, such as an open file")
    numbered = ((at, text) for at, text in enumerate(lines, start=1) if not isinstance(text, str) or text.strip())
    at, first = next(numbered, (1, ""))
    try:
        transfer.check_header(first)
    except InvalidInput as error:
        raise InvalidInput(f"line {at}: {error.what}", expected=error.expected, remedy=error.remedy) from None
    done, total = 0, Imported()
    for batch in batches(numbered, _AT_ONCE):
        total = _import_batch(context, batch, total, reassign=reassign)
        done += len(batch)
        progress("importing", done, done)
    return total


def _import_batch(context: Context, batch: Sequence[tuple[int, str]], total: Imported, *, reassign: bool) -> Imported:
    items: list[_Item] = []
    failed: list[FailedLine] = []
    masked = dict(total.redactions)
    for line, text in batch:
        try:
            item, redactions = _item(context, line, transfer.read_line(text), reassign=reassign)
        except InvalidInput as error:
            failed.append(FailedLine(line, str(error)))
            continue
        items.append(item)
        masked |= {kind: masked.get(kind, 0) + count for kind, count in redactions.items()}
    vectors = Vectors()
    stored, skipped, differing = commit(context, lambda: _plan_import(context, items, vectors))
    every = sorted([*failed, *differing], key=lambda one: one.line)
    return Imported(
        imported=total.imported + stored, skipped=total.skipped + skipped, failed=(*total.failed, *every), redactions=masked
    )


def _item(context: Context, line: int, given: Line, *, reassign: bool) -> tuple[_Item, dict[str, int]]:
    values = dict(given.values)
    owner = Reader(context.reader.user_id, values.get("agent_id"), values.get("session_id"))
    if values.get("user_id") != owner.user_id and not reassign:
        what = f"it belongs to user {shown(values.get('user_id'))}, and this mesh to {shown(owner.user_id)}"
        raise InvalidInput(what, remedy="open the mesh of that user, or reassign the memories to this one")
    metadata = values.get("metadata", {})
    if reassign and "user_id" in metadata:
        metadata = {**metadata, "user_id": owner.user_id}
    gate = context.gate()
    checked = draft(values["content"], metadata, owner, context.limits, gate)
    key = read_key(values["key"]) if "key" in values else None
    values |= gate.clean_metadata({name: values[name] for name in _TEXTS if name in values})
    values |= {"content": checked.content, "metadata": checked.metadata, "user_id": owner.user_id}
    as_draft = Draft(content=checked.content, metadata=checked.metadata, columns=values)
    memory = Memory(
        **values,
        fingerprint=key_print(owner, as_draft, key) if key else fingerprint(owner, as_draft),
        keywords=tokens(checked.content, language=context.options.stemmer_language),
        salt=context.ids.salt(),
        revision=len(given.history or ()) + 1,
        sealed=context.options.enable_yamo,
    )
    memory.row()  # raises for what no store accepts
    changes = tuple(_change(context, memory, one) for one in given.history or ())
    return _Item(line, memory, changes, given.history is not None), checked.redactions


def _change(context: Context, memory: Memory, values: Mapping[str, Any]) -> Change:
    gate, names = context.gate(), ("before", "detail")
    masked = {name: gate.clean_metadata(values[name]) for name in names if values.get(name) is not None}
    why = gate.redact(values["why"]) if values.get("why") else None
    kept = {**values, **masked, "why": why, "user_id": memory.user_id}
    return Change(**kept, id=change_id(memory.id, values["number"]), ref=memory.id)


def _plan_import(context: Context, items: Sequence[_Item], vectors: Vectors) -> Plan[tuple[int, int, list[FailedLine]]]:
    """Store the items that are new. The answer counts them and the equal ones, and names the different ones."""
    seen = {name: context.store.version(name) for name in {item.memory.partition for item in items}}
    known = {id_: Memory.of(row) for id_, row in context.store.get(Kind.MEMORY, [item.memory.id for item in items]).items()}
    new: dict[str, _Item] = {}
    skipped, failed = 0, list[FailedLine]()
    for item in items:
        other = known.get(item.memory.id) or (new[item.memory.id].memory if item.memory.id in new else None)
        if other is None:
            new[item.memory.id] = item
        elif _same(item, other):
            skipped += 1
        else:
            failed.append(FailedLine(item.line, f"{item.memory.id} is stored with other values; nothing was changed"))
    vectors.embed(context, [item.memory.content for item in new.values()])
    return Plan((len(new), skipped, failed), _rows(context, list(new.values()), vectors, seen), seen=seen if new else {})


def _same(item: _Item, stored: Memory) -> bool:
    ours, theirs = (transfer.values_of(replace(one, access_count=0, last_accessed=None)) for one in (item.memory, stored))
    return ours == theirs and (not item.with_history or item.memory.revision == stored.revision)


def _rows(context: Context, items: Sequence[_Item], vectors: Vectors, versions: Mapping[str, int]) -> list[Row]:
    numbers, ms = dict(versions), context.clock()
    rows: list[Row] = []
    entries = []
    for item in items:
        embedded = vectors[item.memory.content]
        numbers[item.memory.partition] += 1
        memory = replace(item.memory, number=numbers[item.memory.partition], vector=embedded.own, pending=embedded.pending)
        changes = [change.row(memory.partition) for change in item.changes]
        rows += [memory.row(), *changes, *passage_rows(memory, embedded), *_usage_rows(memory)]
        entries.append(retain_entry(context, ms, memory, "import", changes[-1] if changes else None))
    return [*rows, *(vectors.model_rows(context) if items else []), *own_audit_rows(context, entries)]


def _usage_rows(memory: Memory) -> list[Row]:
    if not memory.access_count:
        return []
    at = memory.last_accessed or memory.created_at
    counted = Usage(id=memory.id, created_at=at, ref=memory.id, access_count=memory.access_count, last_accessed=at)
    return [counted.row(partition(memory.user_id, None))]
