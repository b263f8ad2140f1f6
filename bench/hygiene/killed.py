"""Processes killed at each named step of each operation, and at any moment: acknowledged writes
are there, the chain is sound."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.hygiene.child import Remote
from bench.hygiene.forked import ForkServer
from bench.hygiene.places import is_sound
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.shared import tests
from bench.hygiene.systems import NO_PROMISE
from bench.peers import ROOT
from memory_mesh import MemoryMesh

NAME = "killed"
_WHAT = "acknowledged writes lost, or a store that is not sound, after a kill"
_TIMES = 20  # that a process is killed at each step
_BEFORE = [f"The lighthouse keeper counts gull{n}" for n in range(5)]
_ERASED = "The tide table hangs by the door"
_PROGRAMS = ROOT / "tests" / "durability"
_STEPS = (
    "store.begun",
    "store.deleted",
    "store.put",
    "store.counted",
    "store.committed",
    "flow.applied",
)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is killed: the program of the tests, its options, its steps, and what it
    starts from."""

    program: tuple[str, str]  # the file and the name
    options: Callable[[Path], dict[str, Any]]
    steps: tuple[str, ...]
    fill: Callable[[Path], None]
    nth: int = 1  # the time of the step at which it is killed
    waits: bool = False  # for a sign before it begins


def check(run: Run) -> Iterator[Row]:
    if OURS in run.systems:
        for name, operation in OPERATIONS.items():
            yield at_steps(run, name, operation)
        if not run.quick:
            yield migration(run)
    for name in run.systems:
        if name != "langgraph":  # it keeps nothing on disk
            yield at_any_moment(run, name)


def at_steps(run: Run, name: str, operation: Operation) -> Row:
    """Kill the operation at each of its steps, in a copy of one store each time."""
    tally = Tally(NAME, _WHAT)
    steps = operation.steps[:2] if run.quick else operation.steps
    times = run.count(_TIMES, 1)
    programs = _PROGRAMS / operation.program[0]
    with folder() as place, ForkServer([programs]) as server:
        (place / "first").mkdir()
        operation.fill(place / "first" / "memory.db")
        for step in steps:
            for _ in range(times):
                shutil.copytree(place / "first", place / "next", dirs_exist_ok=True)
                one_kill(tally, operation, step, place / "next" / "memory.db", server)
                shutil.rmtree(place / "next")
    tally.note = f"{name}, sqlite: {len(steps)} steps, killed {times} times at each"
    return tally.row()


def one_kill(tally: Tally, operation: Operation, step: str, file: Path, server: ForkServer) -> None:
    """Kill one process. The control: it died by the signal, so that the step was reached."""
    before = {id_ for id_, text in texts(file).items() if text != _ERASED}
    name, program = operation.program
    child = server.start(
        _PROGRAMS / name, program, {**operation.options(file), "crash": (step, operation.nth)}
    )
    if operation.waits:
        child.hear()
        child.tell()
    said, ended = child.rest(), child.end()
    acknowledged = [id_ for ids in said if isinstance(ids, list) for id_ in ids]
    stored = texts(file)
    kept = before <= stored.keys() and all(id_ in stored for id_ in acknowledged)
    tally.trial(
        good=kept and is_sound(file),
        example=f"{program} at {step}: {len(before)} before, {len(stored)} after",
    )
    tally.expect(ended < 0)


def texts(file: Path) -> dict[str, str]:
    """Return all memories of a store, of every status, read by plain SQL."""
    return {
        row["id"]: row["content"] for row in tests("durability.sound").contents_of(file).memories
    }


def _filled(file: Path) -> None:
    with MemoryMesh(f"sqlite:///{file}", agent_id="keeper", embedder="hash") as mesh:
        mesh.add_many([(text, None) for text in _BEFORE])


def _failures(file: Path) -> None:
    failed = {"status": "error", "preventative_rule": "Refresh the token first."}
    with MemoryMesh(
        f"sqlite:///{file}",
        agent_id="keeper",
        clock=tests("memory_mesh.testing.fakes").FakeClock().seconds,
    ) as mesh:
        for n in range(3):
            mesh.add(f"Deploy {n} failed.", {**failed, "error_pattern": f"p{n}"})


def _to_import(file: Path) -> None:
    _filled(file)
    rows = [{"id": str(n), "memory": f"The lantern {n} is in room {n * 7}"} for n in range(9)]
    file.with_name("mem0.json").write_text(json.dumps(rows), encoding="utf-8")


def _to_erase(file: Path) -> None:
    _filled(file)
    with MemoryMesh(f"sqlite:///{file}", agent_id="keeper", embedder="hash") as mesh:
        mesh.add(_ERASED, key="gone")


def _url(file: Path) -> dict[str, Any]:
    return {"store": f"sqlite:///{file}", "agent": "keeper"}


def _messages() -> dict[str, Any]:
    capture = tests("durability.test_capture")
    return dict(capture.EVENT)


OPERATIONS: dict[str, Operation] = {
    "store": Operation(
        ("programs.py", "calls"),
        lambda file: {
            **_url(file),
            "calls": [("add", {"content": f"The foghorn sounds {n} times"}) for n in range(3)],
        },
        ("flow.validated", "flow.embedded", "flow.decided", *_STEPS),
        _filled,
        nth=2,  # the first text is acknowledged
    ),
    "consolidate": Operation(
        ("upkeep.py", "run"),
        lambda file: {"store": f"sqlite:///{file}", "call": ("graph.consolidate", {})},
        _STEPS,
        lambda file: tests("durability.upkeep").fill(f"sqlite:///{file}"),
    ),
    "import": Operation(
        ("programs.py", "import_file"),
        lambda file: {
            "store": f"sqlite:///{file}",
            "file": str(file.with_name("mem0.json")),
            "batch": 2,
        },
        (
            "flow.decided",
            "store.begun",
            "store.put",
            "store.counted",
            "store.committed",
            "flow.applied",
        ),
        _to_import,
    ),
    "compaction": Operation(
        ("programs.py", "calls"),
        lambda file: {**_url(file), "calls": [("erase", {"key": "gone"})]},
        ("flow.decided", *_STEPS, "store.freed"),
        _to_erase,
    ),
    "heartbeat": Operation(
        ("beats.py", "beat"),
        lambda file: {**_url(file), "ms": tests("memory_mesh.testing.fakes").NEW_YEAR},
        ("flow.validated", *_STEPS),
        _failures,
        waits=True,
    ),
    "capture": Operation(
        ("programs.py", "calls"),
        lambda file: {**_url(file), "calls": [("lane.on_session_event", _messages())]},
        (
            "flow.captured",
            "flow.embedded",
            "flow.decided",
            "store.begun",
            "store.put",
            "store.counted",
            *_STEPS[-2:],
        ),
        _filled,
    ),
}


def migration(run: Run) -> Row:
    """Kill the migration of a LanceDB folder at each step; the next run must complete it with
    every row."""
    v1, moved, programs = (
        tests("stores.v1_tables"),
        tests("durability.test_migration"),
        _PROGRAMS / "programs.py",
    )
    times = run.count(_TIMES, 1)
    tally = Tally(
        NAME,
        _WHAT,
        note=f"migrate, lancedb: {len(moved.STEPS)} steps, killed {times} times at each",
    )
    with folder() as place, ForkServer([programs]) as server:
        first = v1.make(place / "first", moved.ROWS)
        before = v1.values(first)
        for step, nth in moved.STEPS * times:
            lance = Path(shutil.copytree(first, place / "next" / first.name))
            tally.expect(
                server.start(
                    programs, "migrate", {"folder": str(lance), "crash": [f"migration.{step}", nth]}
                ).end()
                < 0
            )
            child = server.start(programs, "migrate", {"folder": str(lance)})
            (done,), _ = child.rest(), child.end()
            tally.trial(
                good=bool(done["ok"]) and moved.v1_part(lance) == before,
                example=f"migrate at {step} {nth}: {done}",
            )
            shutil.rmtree(place / "next")
    return tally.row()


def at_any_moment(run: Run, name: str) -> Row:
    """Kill a process that stores one text after another, and count the acknowledged texts that
    are gone."""
    tally = Tally(
        NAME,
        "acknowledged writes lost after a kill at any moment",
        name,
        note=NO_PROMISE.get((name, NAME), ""),
    )
    for turn in range(run.count(_TIMES, 1)):
        with folder() as place:
            wanted = 5 + 7 * turn % 40
            with Remote(name, place) as system:
                system.send(("add", f"key{n}", f"The foghorn sounds {n} times") for n in range(200))
                heard = len(system.answers(wanted))
                system.kill()
                heard += len(system.rest())
            tally.expect(heard >= wanted)
            with Remote(name, place) as system:
                stored = {*system.texts()}
            for n in range(heard):
                tally.trial(
                    good=f"The foghorn sounds {n} times" in stored,
                    example=f"text {n} of {heard} after kill {turn}",
                )
    return tally.row()
