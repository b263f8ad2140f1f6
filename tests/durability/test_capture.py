"""A killed capture stores the memories and the cursor together or not at all; long transcripts
need little memory."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from memory_mesh import MemoryMesh

from .children import Child, url
from .programs import opened
from .sound import assert_sound

LINTER = "From now on I want you to always run the linter before you tell me you're done."
MESSAGES = [{"role": "user", "content": "Hi there!"}, {"role": "user", "content": LINTER}]
EVENT = {"event": "session.idle", "transcript": MESSAGES, "session_id": "s"}
STEPS = [
    "flow.captured",
    "flow.embedded",
    "flow.decided",
    "store.begun",
    "store.put",
    "store.counted",
    "store.committed",
    "flow.applied",
]


@pytest.mark.deep
@pytest.mark.req("LANE-35")
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_capture_loses_nothing_and_captures_nothing_twice(
    tmp_path: Path, step: str
) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        mesh.add("The lighthouse keeper counts gulls")
    with Child(
        "calls",
        store=url(file),
        agent="keeper",
        calls=[("lane.on_session_event", EVENT)],
        crash=(step, 1),
    ) as child:
        ended = child.end()
    assert ended == -SIGKILL
    assert_sound(file)
    with opened(url(file), "keeper") as mesh:
        stored = [record.content for record in mesh.get_all()].count(LINTER)
        assert stored == (step in ("store.committed", "flow.applied"))
        report = mesh.lane.on_session_event("session.idle", MESSAGES, session_id="s")
        assert (report.new_messages, len(report.kept)) == ((0, 0) if stored else (2, 1))
        (memory,) = (record for record in mesh.get_all() if record.content == LINTER)
        assert memory.times_observed == 1
    assert_sound(file)


@pytest.mark.deep
def test_a_transcript_of_100_megabytes_is_read_with_little_memory(tmp_path: Path) -> None:
    def messages() -> Iterator[dict[str, str]]:
        for n in range(26_000):
            yield {"role": "tool", "content": f"{n} " + "ab " * 1_330}
            if n % 1_000 == 0:
                yield {"role": "user", "content": f"Hello number {n}{n}!"}
        yield {"role": "user", "content": LINTER}

    with MemoryMesh(store=url(tmp_path / "memory.db"), embedder="none") as mesh:
        tracemalloc.start()
        report = mesh.lane.on_session_event("session.idle", messages(), session_id="s")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [memory.content for memory in report.kept] == [LINTER]
        assert peak < 50_000_000
        again = mesh.lane.on_session_event("session.idle", messages(), session_id="s")
        assert (again.new_messages, again.kept) == (0, [])
