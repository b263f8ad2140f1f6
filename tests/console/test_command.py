"""`memory-mesh console` as a process, with a browser: the link logs in once, and Ctrl-C ends the
server."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

import console_seed

from .browser import watching

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.deep


@contextmanager
def console(seeded: console_seed.Seeded) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    words = [sys.executable, "-m", "memory_mesh", "console", "--no-browser", "--json"]
    process = subprocess.Popen(
        words,
        env=seeded.environ,
        cwd=seeded.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        text = ""
        while not text.rstrip().endswith("}"):
            text += process.stdout.readline()
        yield json.loads(text)["url"], process
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")


def test_the_link_logs_one_browser_in_and_no_other(
    seeded: console_seed.Seeded, browser: "Browser"
) -> None:
    with console(seeded) as (link, _):
        parts = urlsplit(link)
        url = f"{parts.scheme}://{parts.netloc}"
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"{url}/v1/stats")  # noqa: S310
        with watching(browser, url) as own:
            own.page.goto(link)
            own.page.wait_for_load_state("networkidle")
            own.page.get_by_role("navigation").first.wait_for()
            assert "once=" not in own.page.url
            own.page.goto(f"{url}/console/#/search?query=deploy")
            own.page.get_by_text("The deploy key rotates").first.wait_for()
            (cookie,) = own.page.context.cookies()
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
            assert own.page.evaluate("() => document.cookie") == ""
        with watching(browser, url) as other:
            other.expects("401")
            other.page.goto(link)
            other.page.get_by_text("used already").first.wait_for()
            assert (
                other.page.evaluate("() => fetch('/v1/stats').then((answer) => answer.status)")
                == 401
            )


def test_a_store_that_cannot_be_read_is_an_error_of_the_command(
    seeded: console_seed.Seeded,
) -> None:
    text = seeded.home / "text.db"
    text.write_text("This is a text and not a store.")
    words = [sys.executable, "-m", "memory_mesh", "console", "--no-browser", "--store", str(text)]
    done = subprocess.run(
        words, env=seeded.environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (11, 1, "")
