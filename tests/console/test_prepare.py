"""The search index is built in the background: after the first request, and while no other one
is worked on."""

import time
from pathlib import Path
from threading import Event

import pytest

from interfaces.rest_server import running
from memory_mesh import MemoryMesh
from memory_mesh.api.overview import Overview, overview_of
from memory_mesh.core.errors import StoreUnavailable
from memory_mesh.index.local import Partition
from memory_mesh.interfaces.rest import app


def test_a_search_after_the_preparation_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryMesh(tmp_path / "memory.db", embedder="hash") as writer:
        writer.add("The deploy key rotates on Mondays.")
    built, build = list[Partition](), Partition._build
    monkeypatch.setattr(Partition, "_build", lambda self: (built.append(self), build(self))[1])
    with MemoryMesh(tmp_path / "memory.db", embedder="hash") as mesh:
        overview_of(mesh).prepare_search()
        number = len(built)
        assert number > 0
        assert mesh.search("deploy key")
        assert len(built) == number


def test_a_server_prepares_searches_after_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = Event()
    monkeypatch.setattr(app, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(Overview, "prepare_search", lambda _: prepared.set())
    with running(tmp_path) as (client, _):
        assert not prepared.wait(0.3)  # the first page is not to wait for it
        assert client.get("/health").status_code == 200
        assert prepared.wait(10)


def test_no_request_is_worked_on_when_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as (client, server):
        assert server.metrics.idle_seconds() == 0
        client.get("/health")
        time.sleep(0.01)
        assert server.metrics.idle_seconds() > 0
        with server.metrics.in_flight():
            assert server.metrics.idle_seconds() == 0


def test_an_index_that_cannot_be_built_ends_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Event()

    def fail(_: Overview) -> None:
        failed.set()
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(app, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(Overview, "prepare_search", fail)
    with running(tmp_path) as (client, _):
        client.get("/health")
        assert failed.wait(10)
        assert client.get("/ready").status_code == 200
