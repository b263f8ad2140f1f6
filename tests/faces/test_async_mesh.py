"""The mesh for `async` code: the same names, signatures and results."""

import asyncio
import copy
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory_mesh import (
    AsyncMemoryContextManager,
    AsyncMemoryGraph,
    AsyncMemoryLane,
    AsyncMemoryMesh,
    AsyncMemoryNotes,
    AsyncMemoryTraces,
    MemoryContextManager,
    MemoryGraph,
    MemoryLane,
    MemoryMesh,
    MemoryNotes,
    MemoryRecord,
    MemoryTraces,
)
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.ports import no_progress
from memory_mesh.testing.fakes import FakeClock, seeded_ids

ROOT = Path(__file__).parents[2]


FACES = {
    "graph": (AsyncMemoryGraph, MemoryGraph),
    "lane": (AsyncMemoryLane, MemoryLane),
    "notes": (AsyncMemoryNotes, MemoryNotes),
    "traces": (AsyncMemoryTraces, MemoryTraces),
}
PAIRS = [
    (AsyncMemoryMesh, Mesh),
    (AsyncMemoryContextManager, MemoryContextManager),
    *FACES.values(),
]


@pytest.mark.req("MESH-022")
@pytest.mark.parametrize(("face", "plain"), PAIRS)
def test_an_async_face_lists_every_method_with_its_parameters_and_documentation(face, plain):
    methods = {
        name: method
        for name, method in inspect.getmembers(plain, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(methods) > 5
    listed = inspect.getmembers(face, inspect.isfunction)
    assert methods.keys() == {name for name, _ in listed if not name.startswith("_")}
    for name, method in methods.items():
        own = getattr(face, name)
        assert own.__doc__ == method.__doc__
        assert len(method.__doc__ or "") > 20, name
        assert inspect.signature(own) == inspect.signature(method)
        assert own.__wrapped__ is method


# Each line with a comment is an error for a type checker; the others are right.
PROGRAM = """
from memory_mesh import AsyncMemoryMesh, MemoryMesh, MemoryRecord

def plain() -> None:
    with MemoryMesh(store="memory://", busy_seconds=3) as mesh:
        kept: MemoryRecord = mesh.add("x", {"a": 1})
        mesh.add(3)  # call-overload
        mesh.serach("x")  # attr-defined
    MemoryMesh(agent="x")  # call-arg
    MemoryMesh(agent_id=3)  # arg-type
    MemoryMesh(embedder=object())  # arg-type

async def awaited() -> None:
    async with AsyncMemoryMesh(embedder="none") as mesh:
        kept: MemoryRecord = await mesh.add("x")
        async for piece in mesh.audit_export():
            piece.upper()
        for record in await mesh.graph.clusters():
            record[0].content.upper()
        lost: MemoryRecord = mesh.add("x")  # assignment
        mesh.serach("x")  # attr-defined
        await mesh.search(3)  # arg-type
        await mesh.lane.junk(limit="x")  # arg-type
        async with mesh.scoped(agent_id="x").traces.run("a goal") as run:
            run.step("x")
    AsyncMemoryMesh(agent="x")  # call-arg
"""


@pytest.mark.deep
def test_a_type_checker_finds_wrong_options_arguments_and_names(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        str(tmp_path / "program.py"),
    ]
    said = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240
    ).stdout
    errors = dict(
        re.findall(r"program.py:(\d+): error: .*\[([a-z-]+)\]$", said, flags=re.MULTILINE)
    )
    lines = enumerate(PROGRAM.splitlines(), start=1)
    assert errors == {
        str(number): line.partition("  # ")[2] for number, line in lines if "  # " in line
    }, said


@pytest.mark.req("MESH-022")
def test_every_method_is_awaited_or_iterated() -> None:
    mesh = AsyncMemoryMesh(store="memory://")
    iterated = []
    for name in (name for name in dir(Mesh) if not name.startswith("_")):
        method = getattr(mesh, name)
        if name == "scoped":  # it opens nothing
            assert isinstance(method(user_id="ann"), AsyncMemoryMesh)
            continue
        if name == "reader":  # whose memories it reads
            assert method.user_id is None
            continue
        if name in FACES:
            assert isinstance(method, FACES[name][0])
            continue
        assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
        iterated += [name] if inspect.isasyncgenfunction(method) else []
    assert iterated == ["audit_export", "export", "export_store"]


def test_a_subclass_can_extend_a_method() -> None:
    class InSession(AsyncMemoryMesh):
        async def get(self, id: str, *, session_id: str | None = None) -> MemoryRecord | None:
            return await super().get(id, session_id=session_id or "s")

    async def run() -> MemoryRecord | None:
        async with InSession(store="memory://", session_id="s") as mesh:
            return await mesh.get((await mesh.add("one text", {"type": "session"})).id)

    found = asyncio.run(run())
    assert found
    assert found.content == "one text"


def test_an_iteration_may_end_early_and_other_calls_go_on() -> None:
    async def run() -> list[int]:
        async with AsyncMemoryMesh(store="memory://") as mesh:
            await mesh.add_many([(f"text {n}", None) for n in range(5)])
            async for _ in mesh.audit_export():
                break
            with pytest.raises(InvalidInput):
                [await mesh.add("") async for _ in mesh.audit_export()]
            with pytest.raises(TypeError, match="colour"):
                [line async for line in mesh.audit_export(colour=True)]  # type: ignore[call-arg]
            return [json.loads(line)["number"] async for line in mesh.audit_export()]

    assert asyncio.run(run()) == [1, 2, 3, 4, 5]


@pytest.mark.req("MESH-022")
def test_an_iterator_is_read_with_async_for(tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with AsyncMemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}") as mesh:
            await mesh.add_many([("one", None), ("two", None)])
            return [line async for line in mesh.audit_export(recalls=False)]

    assert [json.loads(line)["number"] for line in asyncio.run(run())] == [1, 2]


@pytest.mark.req("MESH-022")
def test_both_give_the_same_answers(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("text of a file")

    def options(name: str) -> dict[str, object]:
        return {
            "store": f"sqlite:///{tmp_path / name}",
            "agent_id": "ann",
            "clock": FakeClock().seconds,
            "ids": seeded_ids(),
        }

    def plainly() -> list[object]:
        with MemoryMesh(**options("plain.db")) as mesh:
            mesh.init()
            one = mesh.add("one text", {"a": 1}, idempotency_key="k")
            answers = [
                one,
                mesh.ingest("two text"),
                mesh.add_many(
                    iter([("three text", None), ("one text", {"b": 2})]), idempotency_key="m"
                ),
                mesh.update(
                    one.id,
                    content="one changed",
                    metadata={"a": None},
                    why="so",
                    idempotency_key="u",
                ),
                mesh.ingest_dir(
                    tmp_path / "notes",
                    extension=["md"],
                    type="event",
                    recursive=True,
                    progress=no_progress,
                ),
                mesh.pin(one.id),
                mesh.pin(one.id, pinned=False),
                mesh.get(one.id, session_id="s"),
                mesh.get_all(
                    2,
                    filter="pinned = FALSE",
                    status=("active", "archived"),
                    after=one.id,
                    session_id="s",
                ),
                mesh.history(one.id, session_id="s"),
                mesh.search(
                    "text",
                    5,
                    "id <> 'x'",
                    use_cache=False,
                    mode="precise",
                    status=("active",),
                    session_id="s",
                ),
                mesh.format_results(mesh.search("text")),
                mesh.erase(one.id),
                mesh.delete(one.id),
                mesh.delete_all(agent_id="ann", memory_type="agent"),
                mesh.verify(),
                mesh.stats().by_status,
            ]
        mesh.close()
        return answers

    async def awaited() -> list[object]:
        async with AsyncMemoryMesh(**options("async.db")) as mesh:
            await mesh.init()
            one = await mesh.add("one text", {"a": 1}, idempotency_key="k")
            answers = [
                one,
                await mesh.ingest("two text"),
                await mesh.add_many(
                    iter([("three text", None), ("one text", {"b": 2})]), idempotency_key="m"
                ),
                await mesh.update(
                    one.id,
                    content="one changed",
                    metadata={"a": None},
                    why="so",
                    idempotency_key="u",
                ),
                await mesh.ingest_dir(
                    tmp_path / "notes",
                    extension=["md"],
                    type="event",
                    recursive=True,
                    progress=no_progress,
                ),
                await mesh.pin(one.id),
                await mesh.pin(one.id, pinned=False),
                await mesh.get(one.id, session_id="s"),
                await mesh.get_all(
                    2,
                    filter="pinned = FALSE",
                    status=("active", "archived"),
                    after=one.id,
                    session_id="s",
                ),
                await mesh.history(one.id, session_id="s"),
                await mesh.search(
                    "text",
                    5,
                    "id <> 'x'",
                    use_cache=False,
                    mode="precise",
                    status=("active",),
                    session_id="s",
                ),
                await mesh.format_results(await mesh.search("text")),
                await mesh.erase(one.id),
                await mesh.delete(one.id),
                await mesh.delete_all(agent_id="ann", memory_type="agent"),
                await mesh.verify(),
                (await mesh.stats()).by_status,
            ]
        await mesh.close()
        return answers

    assert asyncio.run(awaited()) == plainly()


@pytest.mark.req("MESH-022")
def test_many_calls_at_once_are_all_done(tmp_path: Path) -> None:
    async def run() -> int:
        async with AsyncMemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}") as mesh:
            await asyncio.gather(*(mesh.add(f"text {n}") for n in range(20)))
            return len(await mesh.search("text", limit=100))

    assert asyncio.run(run()) == 20


def test_errors_come_through_as_they_are() -> None:
    async def run() -> None:
        async with AsyncMemoryMesh(store="memory://") as mesh:
            with pytest.raises(InvalidInput):
                await mesh.add("")
            with pytest.raises(NotFound):
                await mesh.history("mem_1_ffffff")

    asyncio.run(run())


def test_a_wrong_name_is_named_here_too() -> None:
    mesh = AsyncMemoryMesh(store="memory://")
    with pytest.raises(AttributeError, match=r"no attribute 'upsert'; use add\(…, key=…\)"):
        mesh.upsert  # type: ignore[attr-defined]  # noqa: B018
    for private in ("nonsense", "_context", "_face2"):
        with pytest.raises(AttributeError, match=private):
            getattr(mesh, private)


def test_a_copy_of_an_async_mesh_is_made_without_asking_itself_for_ever() -> None:
    mesh = AsyncMemoryMesh(store="memory://")
    assert isinstance(copy.copy(mesh), AsyncMemoryMesh)
    with pytest.raises(AttributeError, match="_face"):
        AsyncMemoryMesh.__new__(AsyncMemoryMesh).add_nothing  # noqa: B018  (asking is what it is about)
