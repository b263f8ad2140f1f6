"""Views of backups, exports, imports and migrations: each renders the result of one operation of the table as an `Answer`."""

from collections.abc import Iterable
from dataclasses import asdict

from memory_mesh.core.model import BackedUp, Forgotten, Imported, Migration
from memory_mesh.interfaces.audit_views import write_export
from memory_mesh.interfaces.render import NAME, Answer, counted, one_line, size
from memory_mesh.interfaces.values import Call


def backed_up(done: BackedUp, call: Call) -> Answer:
    return Answer(text=f"{NAME} Backed up to {one_line(done.file)} ({size(done.bytes)})", data=asdict(done))


def memories_exported(lines: Iterable[str], call: Call) -> Answer:
    return write_export(lines, call, "memories", header=1)


def imported(done: Imported, call: Call) -> Answer:
    """Render how many memories were stored and skipped, and each line that failed."""
    return Answer(
        text=f"{NAME} Imported {done.imported} memories, {done.skipped} stored already, {len(done.failed)} failed",
        data=asdict(done),
        code=1 if done.failed else 0,
        problems=[f"line {failed.line}: {failed.reason}" for failed in done.failed],
    )


_MAX_DAMAGED_LINES = 20
_MIGRATED = {"migrate": ("Migrated", "Would migrate"), "roll back": ("Rolled back to V1:", "Would roll back to V1:")}


def migrated(done: Migration, call: Call) -> Answer:
    """Render what a migration did, or would do, and the damaged rows that it copied as they are."""
    memories = counted(done.rows, "memory")
    if done.action == "none":
        lines = [f"{NAME} Nothing to migrate: the table has schema V2, with {memories}"]
    else:
        lines = [f"{NAME} {_MIGRATED[done.action][done.dry_run]} {memories}{' to V2' if done.action == 'migrate' else ''}"]
    if done.damaged:
        lines.append(f"{counted(len(done.damaged), 'damaged row')}, copied as they are:")
        lines += [f"row {one.row} ({one_line(one.id or 'no id')}): {one.reason}" for one in done.damaged[:_MAX_DAMAGED_LINES]]
        more = len(done.damaged) - _MAX_DAMAGED_LINES
        lines += [f"… and {more} more; --json shows all"] if more > 0 else []
    if done.left_behind:
        lines.append(f"{counted(done.left_behind, 'memory')} stored since the migration: only in the V2 table")
    if done.backup_until:
        table = (
            f"V2 table is kept as {done.backup}" if done.action == "roll back" else "V1 table is kept as memory_entries_v1_backup"
        )
        lines.append(f"The {table} until {done.backup_until[:10]}; memory-mesh migrate and the heartbeat remove it then")
    if done.action == "migrate" and not done.dry_run:
        lines.append(
            "Searches are by keywords until memory-mesh reembed computes new vectors: the model of the old ones is unknown"
        )
    lines += [f"Removed {name}, which was put aside 30 days ago" for name in done.removed]
    return Answer(text="\n".join(lines), data=asdict(done))


def forgotten(proof: Forgotten, call: Call) -> Answer:
    """Render what was erased, and what was looked for; the exit code is 1 if something is left."""
    lines = [f"{NAME} Forgot user {one_line(str(call.arguments['user_id']))}: {counted(len(proof.memories), 'memory')} erased"]
    lines += [] if proof.bytes_freed else ["The bytes are still in the store's files: `memory-mesh compact` frees them."]
    lines += [f"The chain {one_line(chain)} is broken and keeps its queries; see `audit verify`." for chain in proof.damaged]
    if check := proof.check:
        before = f"{check.found_before} were there before"
        lines.append(f"Looked for {counted(check.texts, 'erased text')} in the files ({before}): {len(check.found)} found now")
        lines += [f"Found: {one_line(id_)} in {one_line(file)}" for id_, file in check.found]
        lines += [f"{check.shared} are left in memories of other users, who stored the same words"] if check.shared else []
        lines += [f"{check.too_short} are too short to look for"] if check.too_short else []
    left = proof.damaged or (proof.check and not (proof.check.clean and proof.bytes_freed))
    return Answer(text="\n".join(lines), data=asdict(proof), code=1 if left else 0)
