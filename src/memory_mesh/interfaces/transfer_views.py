"""Views of backups, exports and imports: each renders the result of one operation of the table as an `Answer`."""

from dataclasses import asdict

from memory_mesh.flows.transfer import BackedUp
from memory_mesh.interfaces.render import NAME, Answer, one_line, size
from memory_mesh.interfaces.values import Call


def backed_up(done: BackedUp, call: Call) -> Answer:
    return Answer(text=f"{NAME} Backed up to {one_line(done.file)} ({size(done.bytes)})", data=asdict(done))
