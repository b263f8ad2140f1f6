"""`copy --from URL --to URL` between a bucket, a Supabase project and files, in both directions,
also if it is killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from engines.postgres import Server
from engines.seaweed import KEYS, Cluster
from engines.supabase import KEY, Project
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import StoreBusy
from memory_mesh.core.model import Kind
from memory_mesh.core.ports import no_progress
from memory_mesh.core.transfer.archive import archive_lines
from memory_mesh.interfaces.cli.main import run
from memory_mesh.stores import open_store

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def project(server: Server) -> Iterator[Project]:
    project = Project(server)
    yield project
    project.stop()


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**KEYS, "SUPABASE_KEY": KEY}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def places(cluster: Cluster, project: Project, server: Server, tmp_path: Path) -> dict[str, str]:
    """The URL of a full file and of empty stores."""
    project.clear()
    places = {
        "file": f"sqlite:///{tmp_path}/source.db",
        "s3": cluster.url(f"moving/{tmp_path.name}"),
        "supabase": project.url,
        "postgresql": server.keeper(server.database()),
        "s3 again": cluster.url(f"moving/{tmp_path.name}-again"),
        "file again": f"sqlite:///{tmp_path}/again.db",
        "folder": f"lancedb:///{tmp_path}/folder",
    }
    with MemoryMesh(places["file"], agent_id="planner", embedder="hash") as mesh:
        first, *_ = mesh.add_many(
            [(f"The lantern {n} is in room {n * 7}", {"any": [n, n / 3, None]}) for n in range(12)]
        )
        mesh.update(first.id, content="The lantern 0 needs oil")
        for user in ("ana", "bob"):
            mesh.scoped(user_id=user).add(f"{user} likes tea")
        mesh.search("lantern")
    return places


def lines(url: str) -> list[str]:
    with closing(open_store(url, key=KEY if url.startswith("supabase") else None)) as store:
        while True:
            # What a killed program sent to a server may be written after its end.
            with suppress(StoreBusy):
                return [*archive_lines(store, vectors=True, progress=no_progress)]


@pytest.mark.req("MESH-020")
def test_a_store_moves_through_every_engine_and_comes_back_as_the_same_bytes(
    places: dict[str, str],
) -> None:
    right = lines(places["file"])
    assert len(right) > 20
    for source, target in (
        ("file", "s3"), ("s3", "supabase"), ("supabase", "s3 again"), ("s3 again", "postgresql"),
        ("supabase", "folder"), ("s3", "file again"),
    ):  # fmt: skip
        assert run(["copy", "--from", places[source], "--to", places[target]]) == 0, (
            source,
            target,
        )
        assert lines(places[target]) == right, (source, target)
    for name in ("s3", "supabase", "file again"):
        with MemoryMesh(places[name], agent_id="planner", embedder="hash") as mesh:
            assert all(isinstance(verdict, Sound) for verdict in mesh.verify())
            assert mesh.search("lantern oil")[0].content == "The lantern 0 needs oil"


# Kills itself after so many batches of three rows.
PROGRAM = """
import os, signal, sys
from memory_mesh import copy_store
from memory_mesh.flows.transfer import moving

moving.AT_ONCE, left = 3, int(sys.argv[3])

def count(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

copy_store(sys.argv[1], sys.argv[2], progress=count)
"""


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("file", "s3"),
        ("file", "postgresql"),
        ("s3", "supabase"),
        ("supabase", "s3 again"),
        ("supabase", "file again"),
    ],
)
@pytest.mark.req("MESH-020")
def test_a_copy_that_is_killed_goes_on_where_it_was(
    places: dict[str, str], source: str, target: str
) -> None:
    if source != "file":
        assert run(["copy", "--from", places["file"], "--to", places[source]]) == 0
    counts = []
    for batches in (3, 4):
        killed = [sys.executable, "-c", PROGRAM, places[source], places[target], str(batches)]
        assert subprocess.run(killed, check=False).returncode == -9
        with closing(open_store(places[target], key=KEY)) as store:
            counts.append(sum(store.count(kind) for kind in Kind))
    assert 0 < counts[0] < counts[1] < len(lines(places["file"]))
    assert run(["copy", "--from", places[source], "--to", places[target]]) == 0
    assert lines(places[target]) == lines(places["file"])
