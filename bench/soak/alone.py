"""One kind of call after another on a REST server: whose memory grows, and does it level off?

    python -m bench.soak.alone [--calls 1280] [--embedders hash,local] [--out FILE]

Four clients make so many calls of one kind: adds, searches with ever new queries, deletes, or the
mixture of the soak test. Each kind has a server and a store of its own. It exits with 1 if the
memory of a server grows by more than a tenth, and more than 8 MB, between the second and the last
quarter of the calls, or if a call fails.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.picture import Line, time_chart
from bench.soak.__main__ import ROOT, running, settings_of
from bench.soak.clients import Client, Rest
from bench.soak.growth import growing, growth, sample
from memory_mesh import MemoryMesh

RESULT = ROOT / "bench" / "results" / "soak_alone.json"
KINDS = ("adds", "searches", "deletes", "mixed")
_CLIENTS, _SAMPLES, _STORED, _QUESTIONS = 4, 40, 400, 10_000


def main() -> int:
    parser = argparse.ArgumentParser(
        description="One kind of call after another, and the memory of the server"
    )
    parser.add_argument("--calls", type=int, default=1280)
    parser.add_argument("--embedders", default="hash,local")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    if given.calls < 1 or given.calls % (_CLIENTS * _SAMPLES):
        parser.error(f"--calls is {given.calls}; expected a multiple of {_CLIENTS * _SAMPLES}")
    found: dict[str, list[dict[str, Any]]] = {}
    growths, errors = {}, list[str]()
    for embedder in given.embedders.split(","):
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                samples, faults = run(Path(folder), kind, given.calls, embedder)
            found[f"{kind}, {embedder}"], errors = [asdict(one) for one in samples], errors + faults
            growths[f"{kind}, {embedder}"] = {"resident_mb": growth(samples)["resident_mb"]}
            print(
                f"{kind}, {embedder}: {growths[f'{kind}, {embedder}']['resident_mb']}", flush=True
            )
    result = {
        "command": f"python -m bench.soak.alone --calls {given.calls}",
        "python": platform.python_version(),
        "system": (
            f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} of "
            f"{os.cpu_count()} cores"
        ),
        **measured_at(),
        "calls": given.calls,
        "errors": errors,
        "growth": growths,
        "growing": growing(growths),
        "samples": found,
    }
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    draw(result, given.out)
    return int(bool(errors or result["growing"]))


def draw(result: dict[str, Any], out: Path) -> None:
    """Draw the memory of each server over its calls, beside the result."""
    lines = [
        Line(
            name,
            [
                (at * result["calls"] / _SAMPLES, one["anon_mb"])
                for at, one in enumerate(samples, start=1)
            ],
        )
        for name, samples in result["samples"].items()
    ]
    picture = time_chart(
        "Memory of a server, without files", lines, minutes=result["calls"], y="MB", x="calls"
    )
    out.with_suffix(".svg").write_text(picture, encoding="utf-8")


def run(folder: Path, kind: str, calls: int, embedder: str) -> tuple[list[Any], list[str]]:
    """Make calls of one kind; return the samples of the server, and the errors."""
    file, errors = folder / "memory.db", list[str]()
    number, questions = (
        calls if kind == "deletes" else _STORED,
        _QUESTIONS if kind == "searches" else 0,
    )
    with MemoryMesh(file, embedder=embedder) as mesh:  # what is deleted, or found
        texts = [
            f"Ana changes the deploy key number {at} in week {at % 52}." for at in range(number)
        ]
        ids = [
            one.id
            for start in range(0, number, 200)
            for one in mesh.add_many(texts[start : start + 200])
        ]

    def note(ms: float, error: str | None) -> None:
        errors.extend([error] if error else [])

    with (
        running("serve", settings_of(folder, file, embedder)) as (pid, port),
        ThreadPoolExecutor(_CLIENTS) as pool,
    ):
        several = [
            Client(f"client {at}", Rest(port), note, pause=0, number=questions)
            for at in range(_CLIENTS)
        ]
        for at, client in enumerate(several):
            client.kept.update(dict.fromkeys(ids[at::_CLIENTS], ""))
        began, samples = time.monotonic(), []
        for _ in range(_SAMPLES):
            list(
                pool.map(
                    lambda client: _calls(client, kind, calls // _CLIENTS // _SAMPLES), several
                )
            )
            samples.append(sample(pid, time.monotonic() - began, [], 0.0))
    return samples, errors


def _calls(client: Client, kind: str, number: int) -> None:
    client.steps(kind, number)
    # The server closes a connection that waits for the other clients; the next call opens it again.
    client.close()


if __name__ == "__main__":
    sys.exit(main())
