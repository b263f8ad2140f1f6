"""A program that runs the heartbeat in a separate process: `python beats.py beat`, with the
options as one line of JSON."""

import json
import sys

from memory_mesh import MemoryMesh
from memory_mesh.core.ports import no_step
from memory_mesh.testing.fakes import FakeClock, crash_at


def beat(*, store: str, agent: str, ms: int, crash: tuple[str, int] | None = None) -> None:
    """Beat once at a sign, and say what became of each job; die at the nth time of a step."""
    step = crash_at(crash[0], nth=crash[1]) if crash else no_step
    clock = FakeClock(ms)
    with MemoryMesh(
        store=store, agent_id=agent, clock=clock.seconds, step=step, enable_wisdom_distillation=True
    ) as mesh:
        mesh.init()
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        print(json.dumps({run.job: run.outcome for run in mesh.heartbeat().runs}), flush=True)


if __name__ == "__main__":
    beat(**json.loads(sys.stdin.readline()))
