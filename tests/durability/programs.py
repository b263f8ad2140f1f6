"""Programs that tests run in separate processes: `python programs.py NAME`, with the options as a
first line of JSON.

A program says what it has done as one JSON value a line, and waits for a line where it is told to.
Nothing is said before it is true: a memory that a line names was acknowledged.
"""

import json
import os
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from operator import attrgetter
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.core.model import Ids
from memory_mesh.core.ports import Step, no_step
from memory_mesh.testing.fakes import crash_at

Call = tuple[str, dict[str, Any]]


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


def wait() -> None:
    """Until the test says go on, or is gone."""
    sys.stdin.readline()


def perform(mesh: MemoryMesh, call: Call) -> list[Any]:
    """Make one call; the ids that it answers with, of a folder what became of its files."""
    name, arguments = call
    answer = attrgetter(name)(mesh)(**arguments)
    if name == "add_many":
        return [record.id for record in answer]
    if name == "ingest_dir":
        return [answer.added, answer.updated, answer.unchanged]
    if name == "lane.on_session_event":
        return [record.id for record in answer.kept]
    if name == "graph.review_quarantine":
        return [answer.memory.id]
    return list(answer.memories) if name == "erase" else [answer.id] if answer else []


@contextmanager
def opened(store: str, agent: str, step: Step = no_step, **options: Any) -> Iterator[MemoryMesh]:
    """A mesh on a store. A LanceDB or JSON store writes into its tables or files after every
    change.

    One of the name `direct.lance` does so without its journal.
    """
    if store.startswith("json:"):
        from memory_mesh.stores.json import JsonStore

        folder = Path(store.removeprefix("json:///"))
        with (
            closing(JsonStore(folder, step=step, flush_bytes=0)) as own,
            MemoryMesh(own, agent_id=agent, step=step, **options) as mesh,
        ):
            yield mesh
        return
    if not store.startswith("lancedb:"):
        with MemoryMesh(store=store, agent_id=agent, step=step, **options) as mesh:
            yield mesh
        return
    from memory_mesh.stores.lance import LanceStore

    path = Path(store.removeprefix("lancedb:///"))
    rows = {"direct_rows": 1} if path.name == "direct.lance" else {"flush_rows": 1}
    with (
        closing(LanceStore(path, step=step, **rows)) as own,
        MemoryMesh(own, agent_id=agent, step=step, **options) as mesh,
    ):
        yield mesh


# --- the programs ---


def calls(
    *,
    store: str,
    agent: str,
    calls: list[Call],
    crash: tuple[str, int] | None = None,
    together: bool = False,
    hold: bool = False,
    paced: bool = False,
) -> None:
    """Make these calls, saying the ids after each; die at the nth time of a step; keep the store
    open until told to go on. If `paced`, each call waits until told to go on."""
    step = crash_at(crash[0], nth=crash[1]) if crash else no_step
    if together:
        say("ready")
        wait()
    with opened(store, agent, step) as mesh:
        for call in calls:
            if paced:
                wait()
            say(perform(mesh, call))
        if hold:
            wait()


def stream(*, store: str, agent: str) -> None:
    """Add, change and erase for ever; say what is about to be done, and then that it was done."""
    with opened(store, agent) as mesh:
        for n in count():
            content = f"{agent} notes item{n}"
            say(["add", content])
            id_ = mesh.add(content, {"n": n}).id
            say(["added", content, id_])
            if n % 3 == 0:
                say(["update", content])
                content = mesh.update(id_, content=f"{content} amended").content
                say(["updated", content, id_])
            if n % 4 == 1:
                say(["erase", content])
                mesh.erase(id_)
                say(["erased", content, id_])


def write(
    *,
    store: str,
    agent: str,
    texts: list[str],
    behind: float = 0.0,
    alike: bool = False,
    audited: bool = True,
) -> None:
    """Open at a sign, together with others, and add the texts one by one; the clock may be
    behind, the ids those of others."""
    ids = (
        Ids(lambda bits: 1 if bits == 24 else int.from_bytes(os.urandom(bits // 8)))
        if alike
        else Ids()
    )
    clock: Callable[[], float] = (
        (lambda: 1_767_225_600.0) if alike else (lambda: time.time() - behind)
    )
    say("ready")
    wait()
    with opened(store, agent, clock=clock, ids=ids, enable_yamo=audited) as mesh:
        for text in texts:
            say(mesh.add(text).id)


def backup(*, store: str, target: str) -> None:
    """Copy a store, and stop in the middle: say so, and wait."""

    def halt(what: str, done: int, of: int) -> None:
        say([what, done, of])
        wait()

    MemoryMesh(store=store).backup(target, progress=halt)


def import_file(*, store: str, file: str, crash: tuple[str, int], batch: int) -> None:
    """Import a file in small batches, and die at the nth time of a step."""
    from memory_mesh.core.transfer import archive
    from memory_mesh.flows.transfer import moving, transfer

    archive.AT_ONCE = moving.AT_ONCE = transfer._AT_ONCE = batch
    with opened(store, "planner", crash_at(crash[0], nth=crash[1]), embedder="hash") as mesh:
        mesh.import_file(file)
    say("done")


def unprivileged(*, store: str, warm: str, calls: list[Call], slowly: bool = False) -> None:
    """Give up all rights over files of others, make these calls, and say what each found or
    which error it met."""
    # Loads all modules: an unprivileged process may not reach them.
    with MemoryMesh(store=warm) as mesh:
        mesh.add("The lantern needs oil")
        for name, arguments in calls:
            getattr(mesh, name)(**arguments)
        mesh._context().gates.content().redact("load the patterns, which mask errors")
    keys = mkdtemp()
    os.chmod(keys, 0o777)  # noqa: S103  (the process may write its key after it gave up its rights)
    # Reads the settings; the first call opens the store.
    mesh = MemoryMesh(store=store, audit_key_file=f"{keys}/audit.key")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    for name, arguments in calls:
        try:
            found = getattr(mesh, name)(**arguments)
            say({"ok": True, "found": len(found) if isinstance(found, list) else None})
        except MemoryMeshError as error:
            say({"ok": False, "error": type(error).__name__, "text": str(error)})
        if slowly:
            wait()
    mesh.close()


def hold(*, file: str, begin: str) -> None:
    """Hold a lock, or a view of the file, until told to let go."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute(begin)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    say("held")
    wait()
    connection.execute("ROLLBACK")
    connection.close()
    say("let go")


def sit(*, store: str, agent: str, query: str) -> None:
    """Keep the store open, with what a search finds in mind; then add something, and sit on."""
    with MemoryMesh(store=store, agent_id=agent) as mesh:
        say([result.id for result in mesh.search(query)])
        wait()
        say([result.id for result in mesh.search(query)])
        say(mesh.add("something else was written by the one who sat there").id)
        wait()


def cramped(
    *, store: str, agent: str, most_bytes: int, calls: list[Call], from_step: str | None = None
) -> None:
    """Make calls where no file may grow beyond a size, from the start or from a step on."""

    def step(name: str) -> None:
        if name == from_step:
            _limit(most_bytes)

    with opened(store, agent, step) as mesh:
        mesh.init()
        if from_step is None:
            _limit(most_bytes)
        for call in calls:
            try:
                name, arguments = call
                answer = getattr(mesh, name)(**arguments)
                say({"ok": True, "bytes_freed": answer.bytes_freed if name == "erase" else None})
            except MemoryMeshError as error:
                say({"ok": False, "error": type(error).__name__})


def forked(*, store: str, agent: str) -> None:
    """Write on both sides of a fork; the parent closes first, and the child dies without
    closing."""
    mesh = MemoryMesh(store=store, agent_id=agent)
    say(mesh.add("written before the fork").id)
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        say(mesh.add("written by the child").id)
        os.write(to_parent[1], b".")
        os.read(to_child[0], 1)
        for n in range(3):
            say(mesh.add(f"written by the child after the parent closed {n}").id)
        os.kill(os.getpid(), signal.SIGKILL)
    os.read(to_parent[0], 1)
    say(mesh.add("written by the parent").id)
    mesh.close()
    os.write(to_child[1], b".")
    os.waitpid(child, 0)


def migrate(
    *,
    folder: str,
    rollback: bool = False,
    crash: tuple[str, int] | None = None,
    halt: str = "",
    most_bytes: int = 0,
) -> None:
    """Migrate a LanceDB folder; die at the nth time of a step, or wait at one; or where no file
    may grow beyond a size."""
    from memory_mesh.stores.lance.migration import migrate_folder

    def step(name: str) -> None:
        if name == halt:
            say(name)
            wait()
        if crash:
            crash_step(name)

    crash_step = crash_at(crash[0], nth=crash[1]) if crash else no_step
    if most_bytes:
        _limit(most_bytes)
    try:
        done = migrate_folder(
            Path(folder), rollback=rollback, now=1_800_000_000_000, busy_seconds=0.1, step=step
        )
        say({"ok": True, "action": done.action, "rows": done.rows})
    except MemoryMeshError as error:
        say({"ok": False, "error": type(error).__name__, "text": str(error)})


def lane_program(*, file: str, count: int) -> None:
    """Memory Lane itself: insert, change, supersede and delete rows with plain SQL, and say at
    the end what is left."""
    at, left = "2026-01-01T00:00:00.000Z", dict[str, tuple[str, str | None]]()
    with closing(sqlite3.connect(file, timeout=60, isolation_level=None)) as connection:
        say("ready")
        wait()
        for number in range(count):
            id_, text = f"theirs-{number}", f"theirs lantern word{number}"
            connection.execute(
                "INSERT INTO memories (id, content, metadata, created_at, updated_at) VALUES (?, "
                "?, ?, ?, ?)",
                (
                    id_,
                    text,
                    json.dumps({"lane_version": "4.1.0", "memory_type": "decision"}),
                    at,
                    at,
                ),
            )
            left[id_] = (text, None)
            other = f"theirs-{number // 2}"
            if number % 4 == 1:
                left[other] = (f"theirs lantern changed{number}", left.get(other, ("", None))[1])
                connection.execute(
                    "UPDATE memories SET content = ? WHERE id = ?", (left[other][0], other)
                )
            elif number % 4 == 2 and other in left:
                left[other] = (left[other][0], id_)
                connection.execute(
                    "UPDATE memories SET superseded_by = ? WHERE id = ?", (id_, other)
                )
            elif number % 4 == 3:
                left.pop(other, None)
                connection.execute("DELETE FROM memories WHERE id = ?", (other,))
    say(left)


def _limit(most_bytes: int) -> None:
    # A module compiled now would be cut off too, and break every later run.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))


def hooked(
    *, store: str, agent: str, hook: str, texts: list[str], crash: tuple[str, int] | None = None,
    die: bool = False, erase: str = "",
) -> None:  # fmt: skip
    """Add the texts to a mesh with a hook; die at the nth time of a step, or as soon as the last
    one is stored.

    Or erase a memory, and die before it is removed from the files of the hook.
    """
    from memory_mesh.flows.upkeep import hooks

    step = crash_at(crash[0], nth=crash[1]) if crash else no_step
    with MemoryMesh(
        store, agent_id=agent, step=step, writethrough=hook, writethrough_allow_local=True
    ) as mesh:
        for text in texts:
            say(mesh.add(text).id)
        if die:
            os.kill(os.getpid(), signal.SIGKILL)
        if erase:
            hooks.forget = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            mesh.delete(erase)


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program
    for program in (
        calls,
        stream,
        write,
        backup,
        import_file,
        unprivileged,
        hold,
        sit,
        cramped,
        forked,
        hooked,
        migrate,
        lane_program,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](**json.loads(sys.stdin.readline()))
