"""Run mixed load on one store for many minutes, and draw what memory, handles, threads and latency
do.

    python -m bench.soak [--minutes 20] [--store sqlite|json|lance] [--out FILE]

A REST server with two clients, an MCP server over HTTP and one over standard input and output with
a client each, and two processes that open the store themselves. It exits with 1 if something grows,
a call fails, or an acknowledged write is lost.
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
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from bench.commit import measured_at
from bench.picture import Line, time_chart
from bench.rest import cpu_seconds
from bench.soak.clients import Client, Embedded, HttpLink, Mcp, PipeLink, Rest, Ways, check
from bench.soak.growth import Sample, growing, growth, sample

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "bench" / "results" / "soak.json"
_SUFFIXES = {"sqlite": "memory.db", "json": "memory.json", "lance": "memory.lance"}
_PAUSE = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description="Mixed load on one store for many minutes")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--store", choices=_SUFFIXES, default="sqlite")
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--worker", nargs=2, metavar=("FILE", "NAME"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return work(Path(given.worker[0]), given.worker[1])
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), given.minutes, given.store, given.embedder)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(result, given.out)
    summary = {name: result[name] for name in ("calls", "errors", "growing", "checked")}
    print(json.dumps(summary, indent=2))
    checked = result["checked"]
    return int(
        bool(
            result["errors"]
            or result["growing"]
            or checked["lost"]
            or checked["returned"]
            or checked["broken"]
        )
    )


def run(
    folder: Path, minutes: float, store: str = "sqlite", embedder: str = "local"
) -> dict[str, Any]:
    """Run the servers, the clients and the processes, and return the samples and what they show."""
    file, soak = folder / _SUFFIXES[store], Soak(minutes * 60)
    environment = settings_of(folder, file, embedder)
    with ExitStack() as stack:
        rest = stack.enter_context(running("serve", environment))
        mcp = stack.enter_context(running("mcp", environment, "--http"))
        pipe = PipeLink([sys.executable, "-m", "memory_mesh", "mcp"], environment)
        stack.enter_context(soak.clients("MCP over stdio", pipe.pid, [Mcp(pipe)]))
        stack.enter_context(soak.clients("REST", rest[0], [Rest(rest[1]), Rest(rest[1])]))
        stack.enter_context(soak.clients("MCP over HTTP", mcp[0], [Mcp(HttpLink(mcp[1]))]))
        for number in (1, 2):
            stack.enter_context(soak.process(f"process {number}", file, environment))
        soak.watch(file)
    return {
        "command": f"python -m bench.soak --minutes {minutes:g}"
        + (f" --store {store}" if store != "sqlite" else ""),
        "python": platform.python_version(),
        "system": (
            f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} of "
            f"{os.cpu_count()} cores"
        ),
        **measured_at(),
        **soak.result(),
        "checked": check(file, soak.kept, soak.deleted),
    }


def settings_of(folder: Path, file: Path, embedder: str) -> dict[str, str]:
    """Return the environment of the processes."""
    return {
        **{
            name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
        },
        "MEMORY_MESH_HOME": str(folder / "home"),
        "MEMORY_MESH_STORE": str(file),
        "MEMORY_MESH_EMBEDDER": embedder,
        "MEMORY_MESH_SERVER_REQUESTS_PER_MINUTE": "100000000",
        "MEMORY_MESH_SERVER_HEARTBEAT_SECONDS": "60",
    }


class Soak:
    """The clients of a run, their times and errors, and the samples of the processes."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._stop = seconds, Event()
        self._lock = Lock()
        self._times: dict[str, list[float]] = {}
        self._calls: Counter[str] = Counter()
        self._cpu: dict[str, float] = {}
        self._errors: Counter[str] = Counter()
        self._pids: dict[str, int] = {}
        self._samples: dict[str, list[Sample]] = {}
        self._store: list[tuple[float, int]] = []
        self.kept: dict[str, str] = {}
        self.deleted: list[str] = []

    @contextmanager
    def clients(self, name: str, pid: int, ways: list[Ways]) -> Iterator[None]:
        """Let clients work on a server in threads; wait for them at the end."""
        self._watched(name, pid)
        several = [
            Client(f"{name} {at}", one, lambda ms, error: self._note(name, ms, error), pause=_PAUSE)
            for at, one in enumerate(ways)
        ]
        threads = [Thread(target=client.run, args=(self._stop,)) for client in several]
        for thread in threads:
            thread.start()
        yield
        for thread, client in zip(threads, several, strict=True):
            thread.join()
            self._ended(dict(client.kept), client.deleted)

    @contextmanager
    def process(self, name: str, file: Path, environment: dict[str, str]) -> Iterator[None]:
        """Let a process work on the store by itself; it prints the time of each call, and at the
        end what must be there."""
        words, pipe = (
            [sys.executable, "-m", "bench.soak", "--worker", str(file), name],
            subprocess.PIPE,
        )
        with subprocess.Popen(
            words, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, text=True
        ) as child:
            assert child.stdin is not None  # noqa: S101  (a pipe)
            self._watched(name, child.pid)
            reader = Thread(target=self._read, args=(name, child.stdout))
            reader.start()
            yield
            child.stdin.close()
            reader.join()
        if child.returncode:
            self._errors[f"{name} ended with {child.returncode}"] += 1

    def watch(self, file: Path) -> None:
        """Sample all processes until the end."""
        while not all(self._calls[name] for name in self._pids):  # a process takes a while to start
            time.sleep(0.1)
        began, pause = time.monotonic(), max(1.0, self._seconds / 120)
        for number in range(1, int(self._seconds / pause) + 1):
            time.sleep(max(0.0, began + number * pause - time.monotonic()))
            for name, pid in self._pids.items():
                with self._lock:
                    times, self._times[name] = self._times[name], []
                try:
                    cpu, self._cpu[name] = self._cpu.get(name, 0.0), cpu_seconds(pid)
                    self._samples[name].append(
                        sample(pid, time.monotonic() - began, times, self._cpu[name] - cpu)
                    )
                except FileNotFoundError:  # it has ended
                    continue
            self._store.append((round(time.monotonic() - began, 1), _size(file)))
        self._stop.set()

    def result(self) -> dict[str, Any]:
        found = {name: growth(samples) for name, samples in self._samples.items()}
        return {
            "minutes": round(self._seconds / 60, 2),
            "calls": dict(self._calls),
            "errors": dict(self._errors),
            "growth": found,
            "growing": growing(found),
            "store_bytes": self._store,
            "samples": {
                name: [asdict(one) for one in samples] for name, samples in self._samples.items()
            },
        }

    def _watched(self, name: str, pid: int) -> None:
        self._pids[name], self._samples[name], self._times[name] = pid, [], []

    def _note(self, name: str, ms: float, error: str | None) -> None:
        with self._lock:
            self._times[name].append(ms)
            self._calls[name] += 1
            if error:
                self._errors[f"{name}: {error[:200]}"] += 1

    def _ended(self, kept: dict[str, str], deleted: list[str]) -> None:
        with self._lock:
            self.kept |= kept
            self.deleted += deleted

    def _read(self, name: str, lines: Any) -> None:
        for line in lines:
            said = json.loads(line)
            if "kept" in said:
                self._ended(said["kept"], said["deleted"])
            else:
                self._note(name, said["ms"], said["error"])


def work(file: Path, name: str) -> int:
    """Be one of the processes, until standard input is closed."""
    stop = Event()

    def note(ms: float, error: str | None) -> None:
        print(json.dumps({"ms": ms, "error": error}), flush=True)

    client = Client(name, Embedded(file, name.replace(" ", "-")), note, pause=_PAUSE)
    Thread(target=_wait, args=(stop,)).start()
    client.run(stop)
    print(json.dumps({"kept": client.kept, "deleted": client.deleted}), flush=True)
    return 0


def _wait(stop: Event) -> None:
    sys.stdin.read()
    stop.set()


@contextmanager
def running(verb: str, environment: dict[str, str], *words: str) -> Iterator[tuple[int, int]]:
    """Run a server; yield its process and its port once it accepts connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "memory_mesh", verb, *words, "--port", str(port)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
        while server.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield server.pid, port
        server.send_signal(signal.SIGTERM)


def _size(file: Path) -> int:
    total = 0
    for path in (
        one for start in file.parent.glob(f"{file.name}*") for one in (start, *start.rglob("*"))
    ):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # removed by one of the processes
            continue
    return total


def draw(result: dict[str, Any], out: Path) -> None:
    """Draw memory, handles with threads, and latency over the minutes, beside the result."""
    of = result["samples"]
    for part, title, y in (
        ("resident_mb", "Memory of each process", "MB"),
        ("handles", "Open files and sockets of each process", "handles"),
        ("p50_ms", "Median time of a call, beside whatever else the machine did", "ms"),
        ("cpu_ms", "CPU time of a call", "ms"),
    ):
        lines = [
            Line(
                name, [(one["seconds"] / 60, one[part]) for one in samples if one[part] is not None]
            )
            for name, samples in of.items()
        ]
        picture = out.with_name(f"{out.stem}_{part.partition('_')[0]}.svg")
        picture.write_text(
            time_chart(title, lines, minutes=result["minutes"], y=y), encoding="utf-8"
        )


if __name__ == "__main__":
    sys.exit(main())
