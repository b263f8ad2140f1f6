"""A server on a seeded store, and Debian's Chromium that looks at it. A page that reports an error
fails its test.

    def test_the_page_shows_it(console: Console, page: Watched) -> None:
        page.open("/search?query=deploy")
        expect(page.page.get_by_role("heading", name="Search")).to_be_visible()

`console.ids` has the ids of records, `console.token(...)` makes a token, `page.expects("403")`
allows an error that a test provokes, and `page.check_accessible()` runs axe-core. `PICTURES=folder`
keeps a picture of what each test saw last.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import console_seed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
AXE = Path(__file__).parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
_START_SECONDS = 60


class Console:
    """A server in a process of its own, on a store with every kind of record."""

    def __init__(
        self, seeded: console_seed.Seeded, url: str, process: "subprocess.Popen[bytes]"
    ) -> None:
        self.seeded, self.url, self.process, self.ids = seeded, url, process, seeded.ids

    def cli(self, *words: str) -> str:
        """Run a command on the same store, and return what it prints."""
        command = [sys.executable, "-m", "memory_mesh", *words]
        done = subprocess.run(
            command,
            env=self.seeded.environ,
            cwd=self.seeded.home,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def token(self, name: str, *flags: str) -> str:
        """Create a token. From then on the server needs one."""
        return str(json.loads(self.cli("token", "create", name, *flags, "--json"))["token"])


@contextmanager
def serving(seeded: console_seed.Seeded, *words: str, **settings: str) -> Iterator[Console]:
    """Run `memory-mesh serve` on a seeded store until the end of the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {
        **seeded.environ,
        **{f"MEMORY_MESH_{name.upper()}": value for name, value in settings.items()},
    }
    command = [sys.executable, "-m", "memory_mesh", "serve", "--port", str(port), *words]
    with (seeded.home / "server.log").open("ab") as log:
        process = subprocess.Popen(command, env=environ, cwd=seeded.home, stderr=log, stdout=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, process)
        yield Console(seeded, url, process)
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            urlopen(f"{url}/health", timeout=5).close()  # noqa: S310  (a server of this test)
        except (URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server did not start")


class Watched:
    """A page that remembers every error, and every request to another host."""

    def __init__(self, context: "BrowserContext", url: str) -> None:
        self.url, self.problems, self._expected = url, list[str](), list[str]()
        context.add_init_script(path=AXE)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", lambda request: self._on_request(request.url))

    def open(self, path: str = "/", **arguments: str) -> "Page":
        """Show a page of the console, such as `/search?query=tea`, and wait until it has loaded."""
        self.page.goto(f"{self.url}/console/#{path}")
        self.page.wait_for_load_state("networkidle")
        return self.page

    def expects(self, *patterns: str) -> None:
        """Allow errors that match, such as `401`: Chromium reports every response with such a
        status."""
        self._expected += patterns

    def check_accessible(self) -> None:
        """Fail if axe-core finds something serious."""
        found: Any = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        serious = [
            f"{one['id']}: {one['help']} ({node['html'][:200]})"
            for one in found["violations"] if one["impact"] in SERIOUS for node in one["nodes"]
        ]  # fmt: skip
        assert not serious, "\n".join(serious)

    def check(self) -> None:
        """Fail if the page reported an error that the test does not expect, or ran a script of a
        memory."""
        left = [
            one
            for one in self.problems
            if not any(re.search(pattern, one) for pattern in self._expected)
        ]
        assert not left, "\n".join(left)
        assert self.page.evaluate("() => window.broken") is None

    def picture(self, name: str) -> None:
        """Keep a picture, if the environment names a folder for pictures."""
        if folder := os.environ.get("PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{folder}/{re.sub(r'[^a-z0-9-]+', '_', name)}.png")

    def _on_console(self, message: "ConsoleMessage") -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _on_request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and f"{parts.scheme}://{parts.netloc}" != self.url:
            self.problems.append(f"a request to another host: {url[:200]}")


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Run Chromium until the end of the block. Playwright's event loop ends with it, so other
    tests may use their own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watching(browser: "Browser", url: str, **options: Any) -> Iterator[Watched]:
    """Open a page in a context of its own, with its own cookies, and check it at the end."""
    context = browser.new_context(
        locale="en-GB", **{"viewport": {"width": 1280, "height": 800}, **options}
    )
    try:
        watched = Watched(context, url)
        yield watched
        watched.check()
    finally:
        context.close()
