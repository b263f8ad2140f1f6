"""Views of backups, exports, imports and migrations: each renders the result of one operation of the table as an `Answer`."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from memory_mesh.core.model import BackedUp, Copied, ErasureCheck, FileImport, Forgotten, Imported, Migration, Repaired
from memory_mesh.interfaces.audit_views import write_export
from memory_mesh.interfaces.render import NAME, Answer, counted, one_line, size
from memory_mesh.interfaces.values import Call


def backed_up(done: BackedUp, call: Call) -> Answer:
    return Answer(text=f"{NAME} Backed up to {one_line(done.file)} ({size(done.bytes)})", data=asdict(done))


def memories_exported(lines: Iterable[str], call: Call) -> Answer:
    return write_export(lines, call, "memories", header=1)


def store_exported(lines: Iterable[str], call: Call) -> Answer:
    return write_export(lines, call, "rows", header=2)


def file_imported(done: FileImport, call: Call) -> Answer:
    """Render the format, what was stored, what was skipped and why, and each line or item that failed."""
    if done.copied:
        return store_copied(done.copied, call)
    links = f" and {counted(done.links, 'link')}" if done.links else ""
    skipped = "".join(f", {count} {why}" for why, count in done.skipped.items())
    stored = counted(done.memories, "memory") + links
    return Answer(
        text=f"{NAME} Imported {stored} (format {done.format}){skipped}, {len(done.failed)} failed",
        data=asdict(done),
        code=1 if done.failed else 0,
        problems=[f"{_PLACES.get(done.format, 'line')} {failed.line}: {failed.reason}" for failed in done.failed],
    )


def store_copied(done: Copied, call: Call) -> Answer:
    """Render how many rows of each kind a copy has, and which audit chains do not verify."""
    total = sum(done.rows.values())
    kinds = _kinds(done.rows)
    lines = [
        f"{NAME} Copied {counted(total, 'row')}, {done.written} of them now, and verified them: {kinds or 'the store is empty'}"
    ]
    lines.append(f"{counted(done.chains - len(done.broken), 'audit chain')} verified; the digest is {done.digest[:16]}…")
    lines += [f"{counted(done.reembedded, 'memory')} embedded"] if done.reembedded else []
    problems = [f"the audit chain {one_line(text)}" for text in done.broken]
    return Answer(text="\n".join(lines), data=asdict(done), code=1 if done.broken else 0, problems=problems)


def store_repaired(done: Repaired, call: Call) -> Answer:
    """Render what was saved and what was lost; the exit code is 1 if something was lost."""
    if done.new is None:
        text = "can be read as a whole; nothing was done. memory-mesh doctor also checks the audit chains"
        return Answer(text=f"{NAME} {one_line(done.file)} {text}", data=asdict(done))
    lines = [
        f"{NAME} Saved {_kinds(done.saved)} into {one_line(done.new)}",
        f"Lost, as far as is known: {_kinds(done.lost) or 'nothing'}",
        f"{one_line(done.file)} is as it was. Check the new store, then put it in place of the damaged one.",
    ]
    problems = [*map(one_line, done.reasons), *(f"the audit chain {one_line(text)}" for text in done.broken)]
    return Answer(text="\n".join(lines), data=asdict(done), code=1 if done.lost or done.broken else 0, problems=problems)


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


_PLACES = {"mem0": "item", "memory-lane": "row", "neolata": "item"}


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


def check_lines(check: ErasureCheck | None) -> list[str]:
    """Return what was looked for, what was found in each place before and after, and what is left."""
    if check is None:
        return []
    lines = [f"Looked for {counted(check.texts, 'text')} in {counted(len(check.places), 'place')}:"]
    lines += [f"  {place.name:<46} {place.before} before, {place.after} after" for place in check.places]
    lines += [f"Found: {one_line(id_)} in {one_line(place)}" for id_, place in check.found]
    lines += [f"{counted(check.rows_left, 'row')} of the user left in the store"] if check.rows_left else []
    lines += [f"{check.shared} left in other memories or searches, which have the same words"] if check.shared else []
    lines += [f"{check.too_short} too short to look for"] if check.too_short else []
    return [*lines, "Nothing is left." if check.clean else "Something is left."]


def forgotten(proof: Forgotten, call: Call) -> Answer:
    """Render what was erased, and what was looked for; the exit code is 1 if something is left."""
    lines = [f"{NAME} Forgot user {one_line(str(call.arguments['user_id']))}: {counted(len(proof.memories), 'memory')} erased"]
    lines += [] if proof.bytes_freed else ["The bytes are still in the store's files: `memory-mesh compact` frees them."]
    lines += [f"The chain {one_line(chain)} is broken and keeps its queries; see `audit verify`." for chain in proof.damaged]
    lines += check_lines(proof.check)
    left = proof.damaged or (proof.check and not (proof.check.clean and proof.bytes_freed))
    return Answer(text="\n".join(lines), data=asdict(proof), code=1 if left else 0)
