"""Fixtures of the browser tests; see `browser`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import console_seed

from .browser import Console, Watched, chromium, serving, watching

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> console_seed.Seeded:
    """A store with every kind of record and hostile texts, of this module alone."""
    home: Path = tmp_path_factory.mktemp("console")
    return console_seed.seed(home, hostile=True, embedder="local")


@pytest.fixture(scope="module")
def console(seeded: console_seed.Seeded) -> Iterator[Console]:
    """A server on the seeded store, without tokens."""
    with serving(seeded) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as running:
        yield running


@pytest.fixture
def page(console: Console, browser: "Browser", request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A page on the console; the test fails if it reports an error."""
    with watching(browser, console.url) as watched:
        yield watched
        watched.picture(request.node.name)
