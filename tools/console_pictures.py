"""Make the pictures of the web console for the documentation, from a seeded store.

    python tools/console_pictures.py [FOLDER]     # default: docs/images

It needs what `make .venv/.browser` installs.
"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import console_seed

ROOT = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--hide-scrollbars",
]
WIDE = {"width": 1200, "height": 760}
PHONE = {"width": 360, "height": 640}


def pages(ids: dict[str, str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the address of each picture, and how it is looked at."""
    wide: dict[str, Any] = {"viewport": WIDE}
    return {
        "home": ("/", wide),
        "search": ("/search?query=when+does+the+deploy+key+rotate", wide),
        "memory": (f"/memory/{ids['plain0']}", wide),
        "review": ("/review", wide),
        "time": ("/time", wide),
        "graph": (f"/graph?seed={ids['plain0']}&depth=3", wide),
        "numbers": ("/numbers", wide),
        "audit": ("/audit", wide),
        "dark": (f"/memory/{ids['current']}", {**wide, "color_scheme": "dark"}),
        "phone": ("/search?query=deploy+key", {"viewport": PHONE}),
    }


def main(folder: Path) -> None:
    """Seed a store, start a server, and take every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        seeded = console_seed.seed(Path(home), linked=True, embedder="local")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [sys.executable, "-m", "memory_mesh", "serve", "--port", str(port)]
        server = subprocess.Popen(words, env=seeded.environ, cwd=home, stderr=subprocess.DEVNULL)
        try:
            _take(f"http://127.0.0.1:{port}", folder, seeded)
        finally:
            server.terminate()
            server.wait(30)


def _take(url: str, folder: Path, seeded: console_seed.Seeded) -> None:
    from playwright.sync_api import sync_playwright

    _wait_for(url)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, (path, options) in pages(seeded.ids).items():
            context = browser.new_context(locale="en-GB", reduced_motion="reduce", **options)
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(f"{url}/console/#{path}")
            page.wait_for_load_state("networkidle")
            page.get_by_role("heading", level=1).wait_for()
            page.locator("main .loading").first.wait_for(state="detached")
            if name == "search":
                page.get_by_text("Why this score").first.click()
            page.wait_for_timeout(700)  # the layout of the graph
            page.screenshot(path=folder / f"console-{name}.png")
            context.close()
        browser.close()


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            urlopen(f"{url}/health").close()  # noqa: S310  (our own server)
        except (URLError, OSError):
            time.sleep(0.1)
        else:
            return
    sys.exit("the server did not start")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
