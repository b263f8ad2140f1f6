"""What a process keeps of freed memory: the threads of a server share two heaps, and erasing
leaves no copy of the file."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Twelve threads allocate at the same time; then the C library is asked how many heaps it has made.
COUNT = """
import ctypes, socket, sys, threading
def threads():
    barrier = threading.Barrier(12)
    def work():
        barrier.wait(60)
        blocks = [bytes(5000) for _ in range(100)]
        barrier.wait(60)
    started = [threading.Thread(target=work) for _ in range(12)]
    for thread in started: thread.start()
    for thread in started: thread.join()
def heaps():
    threads()
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
"""
SERVERS = {
    "nothing": "heaps()",
    "rest": """
from memory_mesh.interfaces.rest import serve
serve.run = lambda *_: heaps()
from memory_mesh.interfaces.cli.main import run
serve.listen = lambda host, port: socket.create_server((host, 0))
assert 0 == run(["serve", "--store", "memory://"])
""",
    "mcp": """
from memory_mesh.interfaces.mcp import server
server.over_stdio = lambda *_: heaps()
from memory_mesh.interfaces.cli.main import run
assert 0 == run(["mcp", "--store", "memory://"])
""",
    "console": """
from memory_mesh.interfaces.rest import serve
serve.run = lambda *_: heaps()
from memory_mesh.interfaces.cli.main import run
assert 0 == run(["console", "--store", "memory://", "--port", "0", "--no-browser"])
""",
}


def heaps_of(server: str, folder: Path) -> int:
    words = [sys.executable, "-c", COUNT + SERVERS[server], str(folder / f"{server}.xml")]
    environment = {**os.environ, "MEMORY_MESH_HOME": str(folder), "MEMORY_MESH_EMBEDDER": "none"}
    subprocess.run(
        words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    return len(re.findall("<heap nr", (folder / f"{server}.xml").read_text()))


@pytest.mark.parametrize("server", ["rest", "mcp", "console"])
def test_the_threads_of_a_server_share_two_heaps(server: str, tmp_path: Path) -> None:
    assert heaps_of("nothing", tmp_path) > 4  # each thread has its own
    assert heaps_of(server, tmp_path) <= 3


# Eight threads, which live until the end, erase a memory each, one after another. SQLite makes the
# new file in memory.
ERASE = """
import os, sys, threading
from pathlib import Path
from memory_mesh import MemoryMesh

def private():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1000

def work(turn):
    turn.acquire()
    try:
        mesh.erase(ids.pop())
    finally:
        done.release()
    end.wait()

file = Path(sys.argv[1])
with MemoryMesh(file, embedder="none") as mesh:
    texts = [" ".join(f"w{number * n % 4001}" for n in range(1, 5000)) for number in range(1, 151)]
    ids = [memory.id for memory in mesh.add_many(texts)]
    mesh.erase(ids.pop())
    before, done, end = private(), threading.Semaphore(0), threading.Event()
    turns = [threading.Semaphore(0) for _ in range(8)]
    for turn in turns:
        threading.Thread(target=work, args=[turn]).start()
    for turn in turns:
        turn.release()
        done.acquire()
    print(file.stat().st_size // 1_000_000, len(ids), before, private())
    end.set()
"""


@pytest.mark.deep
def test_threads_that_erase_keep_no_copies_of_the_file(tmp_path: Path) -> None:
    words = [sys.executable, "-c", ERASE, str(tmp_path / "memory.db")]
    environment = {**os.environ, "MEMORY_MESH_HOME": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    size, left, before, after = map(int, done.stdout.split())
    assert left == 150 - 9
    assert size >= 8  # megabytes
    assert after - before < 2 * size
