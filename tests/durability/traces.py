"""A program that applies the retention of traces in a separate process: `python traces.py run`,
options as a line of JSON."""

import json
import sys
from contextlib import closing
from time import time

from memory_mesh import MemoryMesh
from memory_mesh.core.ports import Step, no_step
from memory_mesh.models.local import HashingEmbedder
from memory_mesh.testing.fakes import crash_at

_DAY = 86_400


def opened(store: str, folder: str, *, days_ago: float = 0, step: Step = no_step) -> MemoryMesh:
    return MemoryMesh(
        store=store, agent_id="keeper", clock=lambda: time() - days_ago * _DAY,
        embedder=HashingEmbedder(), step=step, traces_dir=folder,
    )  # fmt: skip


def fill(store: str, folder: str) -> None:
    """Record what a run of retention archives, consolidates again and compresses."""
    for days_ago, project in ((400, "old"), (200, "older"), (2, "idle")):
        with opened(store, folder, days_ago=days_ago) as mesh:
            for number in range(2):  # two make no skill
                mesh.traces.record(
                    f"Deploy the {project} shop", steps=["build"], project=project,
                    tool_results={"make": f"built {number}"}, decisions=["Use make."],
                    learnings=["Build first."], duration_ms=number,
                )  # fmt: skip
            if project != "idle":
                mesh.traces.archive(project)


def run(*, store: str, folder: str, crash: tuple[str, int]) -> None:
    """Apply the retention; die at the nth time of a step."""
    with closing(opened(store, folder, step=crash_at(crash[0], nth=crash[1]))) as mesh:
        mesh.traces.retention()
    print(json.dumps("done"), flush=True)


if __name__ == "__main__":
    run(**json.loads(sys.stdin.readline()))
