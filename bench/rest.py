"""Measure recall over REST: a server process, and clients with 1, 8 and 32 connections at once.

    python -m bench.rest [--memories 2000] [--requests 1000]

Each connection stays open and asks one question after another. A wrong status or a broken
connection counts as an error. `cpu_ms` is the time that the server computed for one request,
whatever else the machine did.
"""

import argparse
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median, quantiles

from bench.commit import measured_at
from bench.speed.report import load_average
from memory_mesh import MemoryMesh

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "rest.json"
CONNECTIONS = (1, 8, 32)
_NAMES = ("Ana", "Ben", "Chloe", "Dev", "Elif", "Femi", "Goran", "Hana")
_THINGS = (
    "the deploy key",
    "the staging server",
    "the release notes",
    "the billing report",
    "the design review",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall over REST")
    parser.add_argument("--memories", type=int, default=2000)
    parser.add_argument("--requests", type=int, default=1000)
    given = parser.parse_args()
    load_before = load_average()
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), given.memories)
        rows = measure(Path(folder), given.requests)
    for row in rows:
        print(row)
    result = {
        "made_by": f"python -m bench.rest --memories {given.memories} --requests {given.requests}",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": {"before": load_before, "after": load_average()},
        **measured_at(),
        "memories": given.memories,
        "rows": rows,
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def fill(home: Path, memories: int) -> None:
    """Store distinct sentences, by which each question has an answer."""
    with MemoryMesh(home / "memory.db") as mesh:
        mesh.add_many([text(number) for number in range(memories)])


def text(number: int) -> str:
    name, thing = _NAMES[number % len(_NAMES)], _THINGS[number // len(_NAMES) % len(_THINGS)]
    return f"{name} changes {thing} number {number} every {_DAYS[number % len(_DAYS)]}."


def measure(home: Path, requests: int) -> list[dict[str, object]]:
    """Run the server, and ask it with each number of connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"MEMORY_MESH_HOME": str(home), "MEMORY_MESH_SERVER_HEARTBEAT_SECONDS": "0"}
    settings["MEMORY_MESH_SERVER_REQUESTS_PER_MINUTE"] = "100000000"
    words = [sys.executable, "-m", "memory_mesh", "serve", "--port", str(port)]
    with subprocess.Popen(
        words, env={**os.environ, **settings}, stderr=subprocess.DEVNULL
    ) as server:
        while server.poll() is None and not is_ready(port):
            time.sleep(0.05)
        ask(port, range(100))  # loads the model
        rows = [asked(server.pid, port, connections, requests) for connections in CONNECTIONS]
        server.send_signal(signal.SIGTERM)
    if server.returncode:
        raise SystemExit(f"the server ended with {server.returncode}")
    return rows


def asked(pid: int, port: int, connections: int, requests: int) -> dict[str, object]:
    """Ask by so many connections at once, and return the figures."""
    parts = [range(number, requests, connections) for number in range(connections)]
    cpu, began = cpu_seconds(pid), time.perf_counter()
    with ThreadPoolExecutor(connections) as clients:
        answers = [
            answer
            for part in clients.map(lambda numbers: ask(port, numbers), parts)
            for answer in part
        ]
    seconds, computed = time.perf_counter() - began, cpu_seconds(pid) - cpu
    times = [ms for ms in answers if ms is not None]
    return {
        "connections": connections,
        "requests": requests,
        "errors": requests - len(times),
        "per_second": round(requests / seconds, 1),
        "p50_ms": round(median(times), 2),
        "p95_ms": round(quantiles(times, n=20)[-1], 2),
        "cpu_ms": round(1000 * computed / requests, 2),
    }


def ask(port: int, numbers: range) -> list[float | None]:
    """Ask one question for each number over one connection; None stands for an error."""
    connection, times = HTTPConnection("127.0.0.1", port, timeout=60), list[float | None]()
    for number in numbers:
        name, thing = _NAMES[number % len(_NAMES)], _THINGS[number // len(_NAMES) % len(_THINGS)]
        body = json.dumps({"query": f"when does {name} change {thing} number {number}?"})
        began = time.perf_counter()
        try:
            connection.request("POST", "/v1/search", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            found = json.loads(answer.read()).get("count", 0)
            times.append(
                1000 * (time.perf_counter() - began) if answer.status == 200 and found else None
            )
        except (OSError, HTTPException, ValueError):
            connection.close()
            times.append(None)
    connection.close()
    return times


def is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def cpu_seconds(pid: int) -> float:
    """Return the time that a process has computed, of Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
