"""The threads of a server share two heaps: what one has freed, the others use. See docs/soak.md for what it saves."""

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
from memory_mesh.interfaces.main import run
serve.listen = lambda host, port: socket.create_server((host, 0))
assert 0 == run(["serve", "--store", "memory://"])
""",
    "mcp": """
from memory_mesh.interfaces.mcp import serving
serving._over_stdio = lambda _: heaps()
from memory_mesh.interfaces.main import run
assert 0 == run(["mcp", "--store", "memory://"])
""",
    "console": """
from memory_mesh.interfaces.console import command
command.run = lambda *_: heaps()
from memory_mesh.interfaces.main import run
assert 0 == run(["console", "--store", "memory://", "--port", "0", "--no-browser"])
""",
}


def heaps_of(server: str, folder: Path) -> int:
    words = [sys.executable, "-c", COUNT + SERVERS[server], str(folder / f"{server}.xml")]
    environment = {**os.environ, "MEMORY_MESH_HOME": str(folder), "MEMORY_MESH_EMBEDDER": "none"}
    subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return len(re.findall("<heap nr", (folder / f"{server}.xml").read_text()))


@pytest.mark.parametrize("server", ["rest", "mcp", "console"])
def test_the_threads_of_a_server_share_two_heaps(server: str, tmp_path: Path) -> None:
    assert heaps_of("nothing", tmp_path) > 4  # each thread has its own
    assert heaps_of(server, tmp_path) <= 3
