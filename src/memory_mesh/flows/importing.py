"""Import a file: an export or an archive of memory-mesh, or the memories and links of another program.

Memories of other programs go through validation and redaction like every write, keep their ids, and are skipped if they are
stored already. So an import that was stopped can be run again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.foreign import ExportLines, Foreign, ForeignItems, ForeignLink, ForeignMemory, LessonBlocks, Unusable
from memory_mesh.core.graph import link
from memory_mesh.core.model import Copied, FailedLine, FileImport, Imported, Kind, Memory, batches
from memory_mesh.core.ports import Progress
from memory_mesh.core.transfer import Exported, check_id
from memory_mesh.flows import moving, search
from memory_mesh.flows.context import Context, Plan, commit, find_rows
from memory_mesh.flows.lesson_blocks import STORED, import_blocks
from memory_mesh.flows.transfer import import_batch, import_memories

_AT_ONCE = 500
TWICE, NO_END = "twice in the file", "an end of the link is not stored"


def import_file(context: Context, path: str, format_: str | None, progress: Progress) -> FileImport:
    """Import a file or folder; without a format, it is detected."""
    context.check_enabled()
    with context.open_import(path, format_) as file:
        if isinstance(file.content, ExportLines):
            return _of_lines(file.format, import_memories(context, file.content.lines, progress))
        if isinstance(file.content, LessonBlocks):
            return import_blocks(context, file.format, file.content.blocks, progress)
        if isinstance(file.content, ForeignItems):
            return _import_items(context, file.format, file.content.items, progress)
        if file.is_fixed and moving.was_copied(context.store, file.content):
            moving.with_vectors(context, Copied(source=file.content.name), progress)
            return FileImport(format=file.format, skipped={STORED: file.content.count()})
        copied = moving.with_vectors(context, moving.copy(context, file.content, progress), progress)
        return FileImport(format=file.format, memories=copied.rows.get(Kind.MEMORY, 0), copied=copied)


def _of_lines(format_: str, done: Imported) -> FileImport:
    skipped = {STORED: done.skipped} if done.skipped else {}
    return FileImport(format=format_, memories=done.imported, skipped=skipped, failed=done.failed, redactions=done.redactions)


def _import_items(context: Context, format_: str, items: Iterable[Foreign], progress: Progress) -> FileImport:
    memories, links, done = Imported(), 0, 0
    skipped: Counter[str] = Counter()
    failed: list[FailedLine] = []
    for batch in batches(items, _AT_ONCE):
        failed += [FailedLine(item.place, item.reason) for item in batch if isinstance(item, Unusable)]
        found = [item for item in batch if isinstance(item, ForeignMemory)]
        new = _new(context, found, skipped)
        memories += import_batch(context, [(item.place, item.memory) for item in new], lambda memory: _owned(context, memory))
        links += _store_links(context, [item for item in batch if isinstance(item, ForeignLink)], skipped)
        done += len(batch)
        progress("importing", done, done)
    failed = sorted([*failed, *memories.failed], key=lambda one: one.line)
    return FileImport(
        format=format_, memories=memories.imported, links=links, skipped=dict(skipped), failed=tuple(failed),
        redactions=memories.redactions,
    )  # fmt: skip


def _new(context: Context, items: Sequence[ForeignMemory], skipped: Counter[str]) -> list[ForeignMemory]:
    """Return the memories that are not stored yet, each once."""
    usable = [item.memory.id for item in items if item.memory.id.isprintable()]
    stored, new = find_rows(context, usable), dict[str, ForeignMemory]()
    for item in items:
        key = item.memory.key
        known = item.memory.id in stored or (key is not None and search.named(context, None, key) is not None)
        if known or item.memory.id in new:
            skipped[STORED if known else TWICE] += 1
        else:
            new[item.memory.id] = item
    return [*new.values()]


def _owned(context: Context, memory: Memory) -> Exported:
    """Return a memory with the user and agent of the mesh where it has none."""
    reader = context.reader
    check_id(memory.id)
    return Exported(
        replace(memory, user_id=memory.user_id or reader.user_id, agent_id=memory.agent_id or reader.agent_id, vector=None)
    )


def _store_links(context: Context, links: Sequence[ForeignLink], skipped: Counter[str]) -> int:
    """Store links between memories of the mesh's user, and return how many are new."""

    def decide() -> Plan[tuple[int, Counter[str]]]:
        ids = {id_ for one in links for id_ in (one.source_id, one.target_id)}
        rows = find_rows(context, sorted(ids), (Kind.MEMORY,))
        memories = {id_: Memory.of(row) for id_, row in rows.items() if row.value("user_id") == context.reader.user_id}
        seen = {memory.partition: context.store.version(memory.partition) for memory in memories.values()}
        left_out, made = Counter[str](), {}
        for one in links:
            if not {one.source_id, one.target_id} <= memories.keys() or one.source_id == one.target_id:
                left_out[NO_END] += 1
                continue
            source = memories[one.source_id]
            new = link(source, memories[one.target_id], one.link_type, context.clock()).row(source.partition)
            left_out[TWICE] += new.id in made
            made[new.id] = new
        known = context.store.get(Kind.LINK, [*made])
        left_out[STORED] += len(known)
        rows_ = [row for id_, row in made.items() if id_ not in known]
        return Plan((len(rows_), left_out), rows_, seen=seen if rows_ else {})

    if not links:
        return 0
    count, left_out = commit(context, decide)
    skipped.update(+left_out)
    return count


def restore(context: Context, path: str, progress: Progress) -> Copied:
    """Copy an archive, or a backup of a store, into the empty store of the context."""
    with context.open_import(path, None) as file:
        if isinstance(file.content, ExportLines | ForeignItems | LessonBlocks):
            what = f"{path} has the format {file.format}, which is not a whole store"
            raise InvalidInput(what, expected="a backup, or a file of memory-mesh export --all", remedy="use import for it")
        return moving.with_vectors(context, moving.copy(context, file.content, progress), progress)
