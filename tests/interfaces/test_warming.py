"""Servers load the deep ranker in the background: when, without delaying a search, and with a
clean end."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api import build
from memory_mesh.api.handle import warming
from memory_mesh.interfaces.cli.main import run
from memory_mesh.interfaces.mcp import server as mcp
from memory_mesh.models import ModelPaths
from memory_mesh.models.deep_ranker import LocalDeepRanker

from .rest_server import running
from .test_rest_process import serving

FACTS = [
    f"The {place} opens at {hour}."
    for hour, place in enumerate(("library", "harbour", "bakery", "museum", "pool"), start=6)
]
QUERY = "when can I buy bread?"


class FakeRanker:
    """A ranker whose load takes until `may_load` is set."""

    def __init__(self) -> None:
        self.is_loaded, self.may_load = False, Event()

    def load(self) -> None:
        assert self.may_load.wait(30)
        self.is_loaded = True

    def read(self, query: str, pairs: Sequence[tuple[str, str]], *, seconds: float) -> list[float]:
        return []


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRanker:
    ranker = FakeRanker()
    monkeypatch.setattr(build, "make_deep_ranker", lambda paths: ranker)
    return ranker


@pytest.mark.req("MESH-107")
@pytest.mark.parametrize(
    ("options", "loads"),
    [
        ({}, True),
        ({"ranker": "deep"}, True),
        ({"ranker": "rrf"}, False),
        ({"deep_budget_ms": 0.0}, False),
        ({"embedder": "hash"}, False),  # the process does without the local model
    ],
)
def test_the_settings_decide_whether_it_is_loaded(
    fake: FakeRanker, options: dict[str, object], loads: bool
) -> None:
    fake.may_load.set()
    with MemoryMesh("memory://", **{"embedder": "local", **options}) as mesh, warming(mesh):  # type: ignore[arg-type]
        pass
    assert fake.is_loaded is loads


@contextmanager
def over_rest(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with running(home, embedder="local") as (client, _):
        assert client.get("/ready").status_code == 200
        yield


@contextmanager
def over_mcp(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    served: list[object] = []
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    monkeypatch.setattr(mcp, "_over_stdio", served.append)
    yield
    assert run(["mcp", "--store", "memory://"]) == 0
    assert len(served) == 1


@pytest.mark.req("MESH-107")
@pytest.mark.parametrize("server", [over_rest, over_mcp])
def test_a_server_is_ready_before_it_is_loaded_and_ends_after(
    fake: FakeRanker,
    server: Callable[..., AbstractContextManager[None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with server(tmp_path, monkeypatch):
        assert not fake.is_loaded
        fake.may_load.set()
    assert fake.is_loaded


def test_a_model_that_is_missing_is_not_logged_and_a_later_search_may_find_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ranker = LocalDeepRanker(ModelPaths(cache=tmp_path, package="no_such_package"))
    ranker.load()
    assert (ranker.is_loaded, caplog.records) == (False, [])
    assert ranker.read("query", [("text", "")], seconds=1) == []
    assert len(caplog.records) == 1


@pytest.mark.deep
@pytest.mark.usefixtures("shipped_defaults")
def test_with_the_shipped_defaults_precise_searches_of_a_server_read() -> None:
    with MemoryMesh(deep_budget_ms=60_000.0) as mesh:
        mesh.add_many(FACTS)
        assert mesh.explain(QUERY, mode="precise").ranker == "learnt"
        with warming(mesh):
            pass
        assert mesh.explain(QUERY, mode="precise").ranker == "deep"


@pytest.mark.deep
@pytest.mark.parametrize("seconds", [0.0, 3.0])
def test_a_process_with_the_local_model_ends_cleanly_while_it_loads_and_after(
    tmp_path: Path, seconds: float
) -> None:
    with serving(tmp_path, EMBEDDER="local") as server:
        time.sleep(seconds)
        assert server.end() == 0, server.log
        assert "Traceback" not in server.log
