"""Killed processes: acknowledged writes are there and whole; others are there whole or not at
all."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.testing.fakes import Recorder

from .children import Child, bytes_of, url
from .programs import Call, opened, perform
from .sound import assert_sound, contents_in, faults

BEFORE: Call = (
    "add",
    {"content": "The lighthouse keeper counts gulls", "metadata": {"tags": ["coast"]}},
)


@dataclass(frozen=True)
class Write:
    """A write that is cut short: the call, and what tells that it happened. `{id}` is the memory
    that was there before.

    Each can be repeated and is then done once: under its idempotency key, or by what it is.
    """

    call: Call
    done: Callable[[MemoryMesh, str], bool]

    def on(self, id_: str) -> Call:
        name, arguments = self.call
        return name, {key: id_ if value == "{id}" else value for key, value in arguments.items()}


WRITES = {
    "add": Write(
        (
            "add",
            {
                "content": "The tide table hangs by the door",
                "metadata": {"tags": ["harbour"]},
                "idempotency_key": "one",
            },
        ),
        lambda mesh, _: found(mesh, "tide table") == ["The tide table hangs by the door"],
    ),
    "add_many": Write(
        (
            "add_many",
            {
                "items": [["A red buoy drifts", None], ["A green buoy drifts", None]],
                "idempotency_key": "two",
            },
        ),
        lambda mesh, _: found(mesh, "buoy") == ["A green buoy drifts", "A red buoy drifts"],
    ),
    "observe": Write(
        ("add", {**BEFORE[1], "idempotency_key": "three"}),
        lambda mesh, id_: [change.action for change in mesh.history(id_)] == ["add", "observe"],
    ),
    "update": Write(
        (
            "update",
            {
                "id": "{id}",
                "content": "The lighthouse keeper counts terns",
                "idempotency_key": "four",
            },
        ),
        lambda mesh, id_: (
            found(mesh, "terns") == ["The lighthouse keeper counts terns"]
            and not found(mesh, "gulls")
        ),
    ),
    "pin": Write(("pin", {"id": "{id}"}), lambda mesh, id_: stored(mesh, id_).pinned),
    "erase": Write(
        ("erase", {"id": "{id}"}),
        lambda mesh, id_: mesh.get(id_) is None and not found(mesh, "lighthouse"),
    ),
}


def found(mesh: MemoryMesh, query: str) -> list[str]:
    return sorted(result.content for result in mesh.search(query))


def stored(mesh: MemoryMesh, id_: str) -> Any:
    record = mesh.get(id_)
    assert record
    return record


@cache
def steps(name: str, file: str = "memory.db") -> tuple[list[str], list[str]]:
    """The steps of what comes before, and those of the write."""
    with TemporaryDirectory() as folder:
        recorder = Recorder()
        with opened(url(Path(folder) / file), "keeper", recorder) as mesh:
            (id_,) = perform(mesh, BEFORE)
            first = [*recorder.names]
            perform(mesh, WRITES[name].on(id_))
            return first, recorder.names[len(first) :]


def test_the_recorder_hears_of_every_step_of_a_write() -> None:
    inside = ["store.begun", "store.deleted", "store.put", "store.counted", "store.committed"]
    assert steps("add")[1] == [
        "flow.validated",
        "flow.embedded",
        "flow.decided",
        *inside,
        "flow.applied",
    ]
    assert steps("erase")[1] == [
        "flow.decided",
        *inside,
        "flow.applied",
        "store.rewritten",
        "store.truncated",
        "store.freed",
    ]


KILLED = [("memory.db", name, step) for name in WRITES for step in dict.fromkeys(steps(name)[1])]
# The steps of LanceDB are written down: to find them takes Lance, which is slow to load. A test
# below compares them.
FLUSH = [
    "flush.begun", "flush.memory_entries.deleted", "flush.memory_entries.appended",
    "flush.yamo_blocks.deleted", "flush.yamo_blocks.appended", "flush.mesh_records.deleted",
    "flush.mesh_records.appended", "flush.synced", "flush.logged", "flush.committed", "flush.cut",
]  # fmt: skip
LANCE = ["store.begun", "store.committed", *FLUSH, "flow.applied"]
KILLED_IN_LANCE = [
    ("memory.lance", name, step)
    for name in WRITES
    for step in LANCE
    if name != "erase" or "memory_entries.app" not in step
]
KILLED_IN_LANCE += [("direct.lance", name, step) for name in ("add", "update") for step in LANCE]

# Those of the JSON store, with the files that every write changes.
JSON = [
    "store.begun",
    "store.committed",
    "flush.begun",
    "flush.memories.json",
    "flush.audit.json",
    "flush.committed",
    "store.freed",
]
KILLED_IN_JSON = [("memory.json", name, step) for name in WRITES for step in JSON]
KILLED_IN_JSON += [
    ("memory.json", name, "flush.history.json") for name in ("observe", "update", "pin")
]


@pytest.mark.deep
def test_the_steps_of_the_json_store_are_those_at_which_it_is_killed() -> None:
    for name in WRITES:
        assert {step for _, killed, step in KILLED_IN_JSON if killed == name} <= {
            *steps(name, "memory.json")[1]
        }


@pytest.mark.deep
def test_the_steps_of_lance_are_those_at_which_it_is_killed() -> None:
    for name in WRITES:
        wanted = {
            step
            for place, killed, step in KILLED_IN_LANCE
            if (place, killed) == ("memory.lance", name)
        }
        assert wanted <= {*steps(name, "memory.lance")[1]}
        assert {*FLUSH} <= {*steps("update", "memory.lance")[1]}


@pytest.mark.one_in_ci(3)
@pytest.mark.sample(3)
@pytest.mark.req("MESH-015", "MESH-044")
@pytest.mark.parametrize(
    ("place", "name", "step"),
    [
        *KILLED,
        *(
            pytest.param(*one, marks=pytest.mark.deep)
            for one in (*KILLED_IN_LANCE, *KILLED_IN_JSON)
        ),
    ],
)
def test_a_write_killed_at_any_step_is_there_whole_or_not_at_all(
    tmp_path: Path, place: str, name: str, step: str
) -> None:
    write, file = WRITES[name], tmp_path / place
    with opened(url(file), "keeper") as mesh:
        (id_,) = perform(mesh, BEFORE)
    acknowledged: Call = (
        "add",
        {"content": "The foghorn sounds twice", "metadata": {"tags": ["sound"]}},
    )
    nth = steps("add", place)[1].count(step) + 1
    with Child(
        "calls",
        store=url(file),
        agent="keeper",
        calls=[acknowledged, write.on(id_)],
        crash=(step, nth),
    ) as child:
        heard, ended = child.rest(), child.end()
    assert ended == -SIGKILL
    assert len(heard) == 1  # the first call was acknowledged, the second was not
    assert_sound(file)
    behind = (
        "store.committed",
        "store.rewritten",
        "store.truncated",
        "store.freed",
        "flow.applied",
    )
    committed = step in (*behind, "flush.committed", "flush.cut")
    # The journal has it.
    committed |= place in ("memory.lance", "memory.json") and step.startswith("flush.")
    with opened(url(file), "keeper") as mesh:
        assert stored(mesh, heard[0][0]).content == "The foghorn sounds twice"
        assert found(mesh, "foghorn") == ["The foghorn sounds twice"]
        assert write.done(mesh, id_) is committed
        assert committed or found(mesh, "lighthouse") == ["The lighthouse keeper counts gulls"]
        perform(mesh, write.on(id_))
        assert write.done(mesh, id_)
        perform(mesh, write.on(id_))
        assert write.done(mesh, id_)
        assert {record.times_observed for record in mesh.get_all()} == (
            {1, 2} if name == "observe" else {1}
        )
    assert_sound(file)


REWRITE = [
    f"flush.{table}.{done}"
    for table in ("memory_entries", "yamo_blocks", "mesh_records")
    for done in ("rewritten", "cleaned")
]
KILLED_ERASURES = [
    ("memory.db", step, 1)
    for step in ("store.committed", "flow.applied", "store.rewritten", "store.truncated")
]
KILLED_ERASURES_IN_FOLDERS = [("memory.json", step, 1) for step in [*JSON[1:], "flow.applied"]]
KILLED_ERASURES_IN_FOLDERS += [
    ("memory.lance", step, 1) for step in (*LANCE[1:], *REWRITE) if "memory_entries.app" not in step
]
# LanceDB writes the change into its tables first, and then frees the bytes.
KILLED_ERASURES_IN_FOLDERS += [
    ("memory.lance", f"flush.{step}", 2)
    for step in ("begun", "synced", "logged", "committed", "cut")
]


@pytest.mark.one_in_ci(3)
@pytest.mark.sample(2)
@pytest.mark.req("MESH-011")
@pytest.mark.parametrize(
    ("place", "step", "nth"),
    [
        *KILLED_ERASURES,
        *(pytest.param(*one, marks=pytest.mark.deep) for one in KILLED_ERASURES_IN_FOLDERS),
    ],
)
def test_an_erasure_killed_before_the_bytes_were_freed_is_finished_by_the_next_opening(
    tmp_path: Path, place: str, step: str, nth: int
) -> None:
    file = tmp_path / place
    with opened(url(file), "keeper") as mesh:
        (id_,) = perform(mesh, BEFORE)
    assert b"lighthouse keeper" in bytes_of(file)
    with Child(
        "calls", store=url(file), agent="keeper", calls=[("erase", {"id": id_})], crash=(step, nth)
    ) as child:
        assert child.end() == -SIGKILL
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        assert b"lighthouse keeper" not in bytes_of(file)
        assert b"gulls" not in bytes_of(file)
        assert mesh.get(id_) is None
        assert not mesh._context().store.has_deleted_bytes()
    assert_sound(file)


@dataclass
class Ledger:
    """What a stream of writes said that it had done, and what it was about to do when it was
    killed."""

    there: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    open: tuple[str, str] = ("", "")

    def note(self, line: list[str]) -> None:
        match line:
            case ["added" | "updated", content, id_]:
                self.there[id_] = content
            case ["erased", _, id_]:
                del self.there[id_]
                self.gone.add(id_)
            case [what, content]:
                self.open = what, content
                return
        self.open = ("", "")

    def agrees_with(self, stored: dict[str, str]) -> None:
        """Every acknowledged memory is as it was said to be, but for the one write that was
        under way."""
        what, content = self.open
        for id_, written in self.there.items():
            under_way = (
                {"update": f"{written} amended"}.get(what) if written == content else written
            )
            assert stored.get(id_) in (written, under_way)
        assert not self.gone & stored.keys()
        assert {text for id_, text in stored.items() if id_ not in self.there} <= (
            {content} if what == "add" else set()
        )


@pytest.mark.one_in_ci(2)
@pytest.mark.sample(1)
@pytest.mark.req("MESH-015")
@pytest.mark.parametrize(
    "place",
    [
        "memory.db",
        *(pytest.param(f"memory.{kind}", marks=pytest.mark.deep) for kind in ("lance", "json")),
    ],
)
@pytest.mark.parametrize("lines", [3, 11, 20, 28, 37])
def test_a_process_killed_at_any_moment_loses_nothing_that_it_acknowledged(
    tmp_path: Path, lines: int, place: str
) -> None:
    file, ledgers = tmp_path / place, [Ledger(), Ledger()]
    with (
        Child("stream", store=url(file), agent="ada") as ada,
        Child("stream", store=url(file), agent="bob") as bob,
    ):
        for child, ledger, heard in zip((ada, bob), ledgers, (lines, 40 - lines), strict=True):
            for _ in range(heard):
                ledger.note(child.hear())
        for child, ledger in zip((ada, bob), ledgers, strict=True):
            child.kill()
            for line in child.rest():
                ledger.note(line)
    assert_sound(file)
    for agent, ledger in zip(("ada", "bob"), ledgers, strict=True):
        assert ledger.there
        with MemoryMesh(store=url(file), agent_id=agent) as mesh:
            ledger.agrees_with(
                {record.id: record.content for record in mesh.get_all() if record.agent_id == agent}
            )


HALVES = {
    "a memory without its block": "DELETE FROM yamo_blocks WHERE number = 1",
    "a memory without its history": "DELETE FROM records WHERE kind = 'change'",
    "a memory without its keywords": "UPDATE memories SET keywords = '[]'",
    "a version of another moment": "UPDATE partitions SET version = version + 1",
    "a mark of another moment": "UPDATE partitions SET nonce = 'f'",
    "a move that is not logged": (
        "DELETE FROM moves WHERE version = (SELECT max(version) FROM moves)"
    ),
    "a gap in the log": "DELETE FROM moves WHERE version = 1 + (SELECT min(version) FROM moves)",
    "a memory that moved nothing": "UPDATE moves SET id = 'nobody'",
    "a chain without its end": "DELETE FROM records WHERE kind = 'head'",
    "a receipt without its memory": "UPDATE records SET ref = 'nobody' WHERE kind = 'receipt'",
    "a block without its memory": "DELETE FROM memories",
}


@pytest.mark.parametrize("half", HALVES)
def test_the_check_of_these_tests_finds_what_is_there_by_half(tmp_path: Path, half: str) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        (id_,) = perform(mesh, BEFORE)
        mesh.add("The lighthouse keeper sleeps", idempotency_key="one")
        mesh.pin(id_)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        assert list(faults(contents_in(connection))) == []
        connection.execute(HALVES[half])
        assert list(faults(contents_in(connection))) != []
