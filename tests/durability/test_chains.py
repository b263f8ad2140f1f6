"""Several processes that write and search one file: every chain stays whole, and every search is
recorded."""

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.model import Head, Kind
from memory_mesh.stores.sqlite import SqliteStore

PROCESSES, ROUNDS = 4, 12

# Each process adds and searches as one agent of two, so that two of them meet on each chain.
PROGRAM = """
import json, sys
from memory_mesh import MemoryMesh

store, agent, name, rounds = json.loads(sys.argv[1])
sys.stdin.readline()
with MemoryMesh(store=store, agent_id=agent) as mesh:
    for n in range(rounds):
        mesh.add(f"{name} notes comet{n}")
        mesh.search(f"comet{n}")
        mesh.search(f"comet{n}")  # answered from the cache, or not
        if n % 4 == 3:
            mesh.close()  # the next call opens it again
"""

# Adds and searches, and is gone without a word.
KILLED = """
import json, os, signal, sys
from memory_mesh import MemoryMesh

store, agent, name, rounds = json.loads(sys.argv[1])
sys.stdin.readline()
mesh = MemoryMesh(store=store, agent_id=agent)
for n in range(rounds):
    mesh.add(f"{name} notes comet{n}")
    mesh.search(f"comet{n}")
os.kill(os.getpid(), signal.SIGKILL)
"""


def run(file: Path, program: str, names: list[str]) -> list[int]:
    """Start a process for each name, let them go at once, and wait for their ends."""
    options = [
        [f"sqlite:///{file}", f"agent{at % 2}", name, ROUNDS] for at, name in enumerate(names)
    ]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(option)],
            stdin=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
        )
        for option in options
    ]
    for process in started:
        process.stdin.write("go\n")
        process.stdin.close()
    return [process.wait() for process in started]


def chains(file: Path) -> dict[str, list[tuple[int, str, str | None]]]:
    """Number, hash and hash before of the blocks of each chain, in their order."""
    found: dict[str, list[tuple[int, str, str | None]]] = {}
    with closing(sqlite3.connect(file)) as connection:
        query = (
            "SELECT chain, number, block_hash, prev_hash FROM yamo_blocks ORDER BY chain, number"
        )
        for chain, *block in connection.execute(query):
            found.setdefault(chain, []).append(tuple(block))
    return found


def sound(file: Path) -> bool:
    with MemoryMesh(store=f"sqlite:///{file}", agent_id="auditor") as mesh:
        return {type(verdict) for verdict in mesh.verify()} == {Sound}


def unforked(blocks: list[tuple[int, str, str | None]]) -> bool:
    numbers, hashes, before = zip(*blocks, strict=True)
    return list(numbers) == list(range(1, len(blocks) + 1)) and list(before) == [None, *hashes[:-1]]


@pytest.mark.deep
@pytest.mark.req("MESH-041", "MESH-043", "MESH-044")
def test_processes_that_add_and_search_leave_one_block_for_each_search_and_no_chain_forks(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.db"
    assert run(file, PROGRAM, [f"writer{n}" for n in range(PROCESSES)]) == [0] * PROCESSES
    stored = chains(file)
    writers = PROCESSES // 2
    assert {chain: len(blocks) for chain, blocks in stored.items()} == {
        '["chain", null, "agent0"]': writers * ROUNDS,
        '["chain", null, "agent1"]': writers * ROUNDS,
        '["recalls", null, "agent0"]': writers * ROUNDS * 2,
        '["recalls", null, "agent1"]': writers * ROUNDS * 2,
    }
    assert all(unforked(blocks) for blocks in stored.values())
    assert sound(file)


@pytest.mark.deep
@pytest.mark.req("MESH-044")
def test_a_process_that_is_killed_loses_its_last_searches_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    assert run(file, KILLED, ["killed"]) == [-9]
    stored = chains(file)
    assert len(stored['["chain", null, "agent0"]']) == ROUNDS  # durable with their memories
    assert len(stored.get('["recalls", null, "agent0"]', [])) < ROUNDS
    assert sound(file)
    assert run(file, PROGRAM, ["next"]) == [0]
    assert sound(file)


# Searches, forks, searches on both sides; and forks again while somebody writes.
FORKED = """
import json, os, sys
from memory_mesh import MemoryMesh

store, agent, name, rounds = json.loads(sys.argv[1])
sys.stdin.readline()
mesh = MemoryMesh(store=store, agent_id=agent)
mesh.add("notes of a comet")
for n in range(rounds):
    mesh.search(f"comet {n}")
with mesh._context().state.queues.search_log.writing, mesh._context().state.queues.usage.writing:
    child = os.fork()
    if child == 0:
        mesh.search("comet of the child")
        mesh.close()
        os._exit(0)
mesh.search("comet of the parent")
mesh.close()
sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_fork_records_no_search_twice_and_the_child_does_not_block(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    assert run(file, FORKED, ["forked"]) == [0]
    assert len(chains(file)['["recalls", null, "agent0"]']) == ROUNDS + 2
    assert sound(file)
    with MemoryMesh(store=f"sqlite:///{file}", agent_id="agent0") as mesh:
        assert [record.access_count for record in mesh.get_all()] == [ROUNDS + 2]


def test_a_reader_does_not_wait_for_a_thread_that_waits_to_write(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    store = SqliteStore(file, busy_seconds=3)
    store.prepare()
    head = Head(id="chain", created_at="2026-01-01T00:00:00.000Z", number=1, block_hash="h").row()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor() as pool:
            written = pool.submit(store.apply, [head])
            # Each would wait for as long as the writer may; then it would have given up.
            assert [store.count(Kind.HEAD) for _ in range(500)] == [0] * 500
            assert not written.done()
            other.execute("ROLLBACK")
            written.result()
    assert store.count(Kind.HEAD) == 1
    store.close()


PRUNER = """
import json, sys
from memory_mesh import MemoryMesh
from memory_mesh.flows.audit import audit

store, agent, name, rounds = json.loads(sys.argv[1])
sys.stdin.readline()
for n in range(rounds):
    with MemoryMesh(store=store, agent_id=agent) as mesh:
        mesh.search(f"comet{n}")
        audit.prune(mesh._context(), older_than_days=0)
"""


@pytest.mark.deep
@pytest.mark.req("MESH-043")
def test_processes_that_search_and_prune_at_once_keep_one_chain(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=f"sqlite:///{file}", embedder="none") as mesh:
        mesh.init()  # a search creates no store
    assert run(file, PRUNER, ["one", "x", "two", "y"]) == [0] * 4
    assert all(blocks[0][0] > 1 for blocks in chains(file).values())  # something was removed
    assert sound(file)
