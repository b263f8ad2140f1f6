"""One PostgreSQL server for each worker of a test run."""

from collections.abc import Iterator

import pytest

from engines.postgres import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.remove()
