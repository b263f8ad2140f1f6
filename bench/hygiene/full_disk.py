"""A disk without space: what was acknowledged is there, what was refused is not, and the store
is sound."""

from collections.abc import Iterator

from bench.hygiene.places import is_sound
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.shared import tests
from bench.peers import ROOT
from memory_mesh import MemoryMesh

NAME = "full_disk"
_WHAT = "acknowledged writes lost, or refused ones stored, on a full disk"


def check(run: Run) -> Iterator[Row]:
    """Store texts of growing size in a file that may not grow beyond a size, which differs in
    each trial."""
    if OURS not in run.systems:
        return
    children = tests("durability.children")
    children.PROGRAMS = ROOT / "tests" / "durability" / "programs.py"
    times = run.count(40, 2)
    tally = Tally(NAME, _WHAT, note=f"sqlite, {times} sizes of the disk")
    for turn in range(times):
        with folder() as place:
            file = place / "memory.db"
            with MemoryMesh(f"sqlite:///{file}", agent_id="one", embedder="hash") as mesh:
                mesh.add("It was there before.")
            texts = [f"text {n} of turn {turn} " + "and so on " * (400 * n * n) for n in range(8)]
            calls = [("add", {"content": text}) for text in texts]
            most = file.stat().st_size + 4096 * turn
            with children.Child(
                "cramped", store=f"sqlite:///{file}", agent="one", most_bytes=most, calls=calls
            ) as child:
                answers = child.rest()
                child.end()
            with MemoryMesh(f"sqlite:///{file}", agent_id="one", embedder="hash") as mesh:
                stored = {record.content for record in mesh.get_all()}
            tally.expect(any(not one["ok"] for one in answers) and "It was there before." in stored)
            for text, answer in zip(texts, answers, strict=False):
                tally.trial(
                    good=(text.strip() in stored) == answer["ok"],
                    example=f"{answer}: {text[:30]} at {most} bytes",
                )
            tally.trial(
                good=len(answers) == len(texts) and is_sound(file),
                example=f"not sound at {most} bytes",
            )
    yield tally.row()
