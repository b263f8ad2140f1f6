"""Views of backups, exports and imports: each renders the result of one operation of the table as an `Answer`."""

from collections.abc import Iterable
from dataclasses import asdict

from memory_mesh.core.model import BackedUp, Imported
from memory_mesh.interfaces.audit_views import write_export
from memory_mesh.interfaces.render import NAME, Answer, one_line, size
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
