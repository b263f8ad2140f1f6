"""Measure the pages of the web console in Chromium, on a large store: from the click to the first
list, and the first search.

    python -m bench.console [--memories 100k] [--repeats 5]
    # 100k, and the figures of docs/console.md
    make bench-console

Memories are generated; the hash of its words is the vector of each. Every view has a server of its
own, so that it is a first one, and the median of the repetitions is shown. `cpu_ms` is what the
server computed meanwhile, whatever else the machine did. The index is deleted before each start:
the first search follows a second after the first view, while the server builds the index in the
background. Needs the browser of the tests: `make .venv/.browser`.
"""

import argparse
import json
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.commit import measured_at
from bench.rest import cpu_seconds, is_ready
from bench.speed.report import load_average
from memory_mesh import MemoryMesh

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "bench" / "results" / "console.json"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
# By page: its route, and what is there when the first list, table or picture is.
PAGES = {
    "home": ("/", ".long-row"),
    "list": ("/search", ".long-row"),
    "memory": ("/memory/{id}", ".content"),
    "review": ("/review", ".card-empty, article.decision"),
    "lessons": ("/lessons", ".card-empty"),
    "skills": ("/skills", ".card-empty"),
    "captures": ("/captures", "main .empty"),
    "junk": ("/junk", ".card-empty"),
    "time": ("/time", "main ul.items li"),
    "graph": ("/graph", ".graph[data-drawn]"),
    "audit": ("/audit", "main table"),
    "numbers": ("/numbers", "main canvas"),
}
QUERIES = ("when does Ana change the deploy key?", "what does Goran change every Friday?")
_HIT = "article.hit, .card-empty"
_BATCH, _LINKS = 5_000, 2_000
_NAMES = ("Ana", "Ben", "Chloe", "Dev", "Elif", "Femi", "Goran", "Hana")
_WORDS = (
    "deploy",
    "key",
    "invoice",
    "server",
    "tea",
    "coffee",
    "release",
    "token",
    "cache",
    "budget",
    "meeting",
    "hotel",
)
_TIMEOUT_MS = 300_000
# It looks at every frame. A locator of Playwright looks every half second after the first moments.
_SHOWN = """sign => new Promise(shown => {
    const look = () => document.querySelector(sign) ? shown() : requestAnimationFrame(look);
    look();
})"""


def main() -> None:
    parser = argparse.ArgumentParser(description="The pages of the console on a large store")
    parser.add_argument("--memories", default="100k", help="such as 2k or 100k")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    memories, load_before = int(given.memories.lower().replace("k", "000")), load_average()
    with tempfile.TemporaryDirectory() as folder:
        newest = fill(Path(folder), memories)
        with chromium() as browser:
            runs = [measure(Path(folder), browser, newest) for _ in range(given.repeats)]
    rows = [
        {
            "what": what,
            **{
                figure: round(median(run[what][figure] for run in runs), 1)
                for figure in ("ms", "cpu_ms")
            },
        }
        for what in runs[0]
    ]
    for row in rows:
        print(row)
    result = {
        "made_by": f"python -m bench.console --memories {given.memories} --repeats {given.repeats}",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": {"before": load_before, "after": load_average()},
        **measured_at(),
        "memories": memories,
        "rows": rows,
    }
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def fill(home: Path, memories: int) -> str:
    """Store generated memories of the last year, and links between some of them. Returns the id
    of the newest memory."""
    words, made = random.Random(1), list[str]()  # noqa: S311  (of texts)
    now = [time.time() - 365 * 86_400]

    def clock() -> float:
        now[0] += 0.4 * 365 * 86_400 / memories
        return min(now[0], time.time())

    with MemoryMesh(
        home / "memory.db", embedder="hash", agent_id="server", clock=clock, deduplicate=False
    ) as mesh:
        for first in range(0, memories, _BATCH):
            texts = [text(number, words) for number in range(first, min(memories, first + _BATCH))]
            made += [memory.id for memory in mesh.add_many(texts)]
        for number in range(min(_LINKS, memories // 2)):
            mesh.graph.link(made[number], made[(number * 7 + 1) % memories], "related")
    return made[-1]


def text(number: int, words: random.Random) -> str:
    return (
        f"{_NAMES[number % len(_NAMES)]} changes number {number}: "
        f"{' '.join(words.choices(_WORDS, k=10))}."
    )


@contextmanager
def chromium() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def serving(home: Path) -> Iterator[tuple[int, int]]:
    """Run a server without an index, and yield its process and port."""
    shutil.rmtree(home / "memory.db-index", ignore_errors=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "HOME": str(home),
        "EMBEDDER": "hash",
        "AGENT_ID": "server",
        "SERVER_HEARTBEAT_SECONDS": "0",
    }
    environ = {**os.environ, **{f"MEMORY_MESH_{name}": value for name, value in settings.items()}}
    words = [sys.executable, "-m", "memory_mesh", "serve", "--port", str(port)]
    with subprocess.Popen(words, env=environ, stderr=subprocess.DEVNULL) as server:
        while server.poll() is None and not is_ready(port):
            time.sleep(0.05)
        try:
            yield server.pid, port
        finally:
            server.send_signal(signal.SIGTERM)


def measure(home: Path, browser: "Browser", newest: str) -> dict[str, dict[str, float]]:
    """Open every page once, each of a server of its own, and search twice after the first one."""
    rows = {}
    for name, (route, sign) in PAGES.items():
        with serving(home) as (pid, port):
            page = browser.new_page()
            page.set_default_timeout(_TIMEOUT_MS)
            url = f"http://127.0.0.1:{port}/console/#"
            rows[name] = timed(page, pid, f"{url}{route.format(id=newest)}", sign)
            if name == "home":
                time.sleep(1)
                for which, query in zip(("first search", "second search"), QUERIES, strict=True):
                    rows[which] = timed(
                        page, pid, f"{url}/search?query={query.replace(' ', '+')}", _HIT
                    )
                    page.goto(f"{url}/audit")  # so that no result is left on the page
                    page.locator(_HIT).first.wait_for(state="detached")
            page.close()
    return rows


def timed(page: "Page", pid: int, url: str, sign: str) -> dict[str, float]:
    """Open an address, and wait until what it shows is there."""
    cpu, began = cpu_seconds(pid), time.perf_counter()
    page.goto(url, wait_until="commit")
    page.evaluate(_SHOWN, sign)
    return {"ms": 1000 * (time.perf_counter() - began), "cpu_ms": 1000 * (cpu_seconds(pid) - cpu)}


if __name__ == "__main__":
    main()
