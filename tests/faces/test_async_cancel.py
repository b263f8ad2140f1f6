"""Cancelled calls of the async mesh: they store nothing, or a note of the error lists what they
stored."""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from time import sleep

import pytest

from memory_mesh import AsyncMemoryMesh, Cancelled, MemoryMesh, MemoryRecord, cancellable

_TEXTS = ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope")
Call = Callable[[AsyncMemoryMesh, MemoryRecord], Awaitable[object]]

BEFORE = ("flow.validated", "flow.embedded", "flow.decided")
AFTER = (
    "store.begun",
    "store.deleted",
    "store.put",
    "store.counted",
    "store.committed",
    "flow.applied",
)
LESSON: dict[str, object] = dict.fromkeys(_TEXTS, "a text") | {"severity": "low"}
WRITES: dict[str, Call] = {
    "add": lambda mesh, _: mesh.add("one text"),
    "add_many": lambda mesh, _: mesh.add_many([("one text", None), ("two text", None)]),
    "update": lambda mesh, known: mesh.update(known.id, content="a changed text"),
    "pin": lambda mesh, known: mesh.pin(known.id),
    "erase": lambda mesh, known: mesh.erase(known.id),
    "delete_all": lambda mesh, _: mesh.delete_all(agent_id="ann"),
    "distill_lesson": lambda mesh, _: mesh.distill_lesson(LESSON),
    "extract": lambda mesh, _: mesh.extract("a text to extract from"),
}


class CancelledAt:
    """The `step` of a mesh: it cancels the task that calls, when a step is reached for the first
    time, and goes on."""

    def __init__(self, name: str) -> None:
        self.name, self.reached = name, Event()
        self.loop: asyncio.AbstractEventLoop
        self.task: asyncio.Task[object] | None = None

    def __call__(self, name: str) -> None:
        if name == self.name and self.task and not self.reached.is_set():
            self.reached.set()
            arrived = Event()
            self.loop.call_soon_threadsafe(self.task.cancel)
            # The task handles the cancellation in one of the next rounds of the loop.
            self.loop.call_soon_threadsafe(self._later, 5, arrived)
            arrived.wait()

    def _later(self, rounds: int, arrived: Event) -> None:
        if rounds:
            self.loop.call_soon(self._later, rounds - 1, arrived)
        else:
            arrived.set()


async def cancelled(file: Path, step: CancelledAt, call: Call) -> list[str]:
    """Cancel a call at a step, and return the notes of the error."""
    async with AsyncMemoryMesh(
        store=f"sqlite:///{file}", agent_id="ann", embedder="none", step=step
    ) as mesh:
        known = await mesh.add("a known text")
        step.loop = asyncio.get_running_loop()
        step.task = asyncio.ensure_future(call(mesh, known))
        with pytest.raises(asyncio.CancelledError) as caught:
            await step.task
        step.task = None
        return getattr(caught.value, "__notes__", [])


def stored(file: Path) -> dict[str, int]:
    """Return the revision of each memory."""
    with MemoryMesh(store=f"sqlite:///{file}", agent_id="ann", embedder="none") as mesh:
        return {memory.id: memory.revision for memory in mesh.get_all()}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("step", [BEFORE[-1], AFTER[0], AFTER[-1]])
@pytest.mark.sample(12)
def test_a_cancelled_write_writes_nothing_or_lists_what_it_wrote(
    tmp_path: Path, name: str, step: str
) -> None:
    check(tmp_path / "memory.db", step, WRITES[name])


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_add_many_cancelled_at_any_step_stores_nothing_or_lists_what_it_stored(
    tmp_path: Path, step: str
) -> None:
    check(tmp_path / "memory.db", step, WRITES["add_many"])


def check(file: Path, step: str, call: Call) -> None:
    hook = CancelledAt(step)
    notes = asyncio.run(cancelled(file, hook, call))
    assert hook.reached.is_set()
    now = stored(file)
    changed = {id_ for id_, revision in now.items() if revision > 1} | (
        now.keys() - {sorted(now)[0]} if len(now) > 1 else set()
    )
    if step in BEFORE:
        assert (len(now), changed, notes) == (1, set(), [])
    else:
        (note,) = notes
        named = set(re.findall(r"mem_\d+_\w+", note))
        assert changed <= named
        assert named - now.keys() == (named if "erased" in note else set())
        assert named, note


def test_a_timeout_carries_what_was_stored(tmp_path: Path) -> None:
    go_on = Event()

    async def run() -> BaseException | None:
        loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

        def expire() -> None:
            limit.reschedule(loop.time())
            loop.call_later(0.2, go_on.set)

        def step(name: str) -> None:
            if name == "flow.applied":  # now the time is over, however long it took to come here
                loop.call_soon_threadsafe(expire)
                go_on.wait()

        mesh = AsyncMemoryMesh(
            store=f"sqlite:///{tmp_path / 'memory.db'}", embedder="none", step=step
        )
        with pytest.raises(TimeoutError) as caught:
            async with limit:
                await mesh.add("one text")
        await mesh.close()
        return caught.value.__cause__

    cause = asyncio.run(run())
    assert go_on.is_set()
    (id_,) = stored(tmp_path / "memory.db") or [""]
    assert cause
    assert id_ in cause.__notes__[0]


def test_a_call_that_waits_for_another_writer_is_cancelled_at_once(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"

    async def run() -> None:
        async with AsyncMemoryMesh(
            store=f"sqlite:///{file}", embedder="none", busy_seconds=60
        ) as mesh:
            await mesh.add("a known text")
            other = sqlite3.connect(file, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(mesh.add("one text"), 0.1)
            other.execute("ROLLBACK")
            other.close()
            assert len(await mesh.get_all()) == 1

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_call_that_was_not_started_is_cancelled_at_once(tmp_path: Path) -> None:
    async def run() -> int:
        from concurrent.futures import ThreadPoolExecutor

        pool, go_on = ThreadPoolExecutor(1), Event()
        asyncio.get_running_loop().set_default_executor(pool)
        async with AsyncMemoryMesh(store="memory://", embedder="none") as mesh:
            busy = asyncio.get_running_loop().run_in_executor(None, go_on.wait)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(mesh.add("one text"), 0.05)
            go_on.set()
            await busy
            return len(await mesh.get_all())

    assert asyncio.run(run()) == 0


def test_a_task_that_is_cancelled_twice_still_knows_what_was_stored(tmp_path: Path) -> None:
    go_on, reached = Event(), Event()

    def step(name: str) -> None:
        if name == "flow.applied":
            reached.set()
            go_on.wait()

    async def run() -> list[str]:
        mesh = AsyncMemoryMesh(store="memory://", embedder="none", step=step)
        task = asyncio.ensure_future(mesh.add("one text"))
        await asyncio.to_thread(reached.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value.__notes__

    assert "stored mem_" in asyncio.run(run())[0]


def test_a_call_that_is_cancelled_with_all_other_tasks_knows_what_was_stored(
    tmp_path: Path,
) -> None:
    reached, notes = Event(), list[str]()

    def step(name: str) -> None:
        if name == "store.put":
            reached.set()
            sleep(0.2)  # the loop cancels its tasks meanwhile

    async def add(mesh: AsyncMemoryMesh) -> None:
        try:
            await mesh.add_many(["one text", "two text"])
        except asyncio.CancelledError as error:
            notes.extend(getattr(error, "__notes__", []))
            raise

    async def run() -> asyncio.Task[None]:
        task = asyncio.create_task(add(mesh))
        await asyncio.to_thread(reached.wait)
        return task  # the end of the loop cancels all tasks that are left

    mesh = AsyncMemoryMesh(tmp_path / "memory.db", embedder="none", step=step)
    assert asyncio.run(run()).cancelled()
    asyncio.run(mesh.close())
    assert len(notes) == 1
    assert notes[0].count("mem_") == 2


def test_the_calls_of_a_cancellable_block_are_listed_and_cancelled() -> None:
    stop = Event()
    with MemoryMesh(store="memory://", embedder="none") as mesh, cancellable(stop) as written:
        first = mesh.add("one text")
        mesh.delete(first.id)
        stop.set()
        with pytest.raises(Cancelled):
            mesh.add("two text")
        assert (written.stored, written.erased) == ([first.id], [first.id])
    assert not mesh.get_all()


def test_closing_writes_the_searches_of_a_cancelled_task(tmp_path: Path) -> None:
    stop = Event()
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    with MemoryMesh(store=store, embedder="none") as mesh, cancellable(stop):
        mesh.add("one text")
        mesh.search("text")
        stop.set()
        mesh.close()
        assert len(mesh.audit_log(recalls=True)) == 1
