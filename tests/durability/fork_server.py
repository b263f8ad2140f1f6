"""Starts the programs of the tests in milliseconds: one process has imported what they use, and is
forked for each.

It is started by `children.py`, with a socket as its input. A request is a file of programs, the
name of a program, a folder and an environment, with four descriptors: input, output and errors of
the program, and where its process id and, at its end, its exit code are written. Before a fork no
file is open and no thread runs, so that a program begins as in a new process.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path
from types import CodeType

from memory_mesh import MemoryMesh
from memory_mesh.testing import fakes as _fakes  # noqa: F401  (the programs import it)

_MOST_BYTES = 1 << 18  # of a request


def serve(requests: socket.socket) -> CodeType | None:
    """Fork for each request; return the code of a program in the process that is to run it, and
    nothing at the end of the requests."""
    programs: dict[str, CodeType] = {}
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for those that watch
    while True:
        request, streams, *_ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not request:
            return None
        file, name, folder, environ = json.loads(request)
        if file not in programs:
            programs[file] = compile(Path(file).read_bytes(), file, "exec")
            exec(programs[file], {"__name__": "imported", "__file__": file})  # noqa: S102
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            watch(streams)
            os.environ.clear()
            os.environ.update(environ)
            os.chdir(folder)
            sys.argv = [file, name]
            return programs[file]
        for stream in streams:
            os.close(stream)


def watch(streams: list[int]) -> None:
    """Fork again and return in the new process, with these streams; this one waits for its end and
    writes down its exit code."""
    *standard, status = streams
    if child := os.fork():
        for stream in standard:
            os.close(stream)
        os.write(status, f"{child}\n".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(status, f"{code}\n".encode())
        os._exit(0)
    os.close(status)
    for number, stream in enumerate(standard):
        os.dup2(stream, number)
        os.close(stream)


def main() -> None:
    # Compiles the patterns of redaction, and loads the modules that a first call loads.
    with MemoryMesh("memory://", agent_id="first", enable_yamo=False) as mesh:
        mesh.add("Ann met bob@example.org.")
        mesh.search("Whom did Ann meet?")
        mesh.erase(mesh.add("This is erased.").id)
    with socket.socket(fileno=os.dup(0)) as requests:
        program = serve(requests)
    if program:
        exec(program, {"__name__": "__main__", "__file__": sys.argv[0]})  # noqa: S102


if __name__ == "__main__":
    main()
