"""A PostgreSQL store with a streaming replica: what was acknowledged survives the loss of the
primary."""

import signal
from collections.abc import Iterator
from contextlib import closing
from threading import Event, Thread
from time import monotonic, sleep

import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import StoreReadOnly, StoreUnavailable
from memory_mesh.core.model import Kind
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.testing.rows import memory

pytestmark = pytest.mark.deep


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """A primary, and a replica that has applied each change before the primary acknowledges it."""
    primary = Server()
    replica = Server(source=primary)
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
    primary.execute("SELECT pg_reload_conf()")
    until = monotonic() + 30
    while primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
        assert monotonic() < until
        sleep(0.05)
    yield primary, replica
    replica.remove()
    primary.remove()


def test_a_replica_answers_reads_and_takes_over_without_losing_an_acknowledged_write(
    servers: tuple[Server, Server],
) -> None:
    primary, replica = servers
    database = primary.database()
    acknowledged, over = list[int](), Event()
    with MemoryMesh(store=primary.keeper(database), embedder="hash") as mesh:
        tea = mesh.add("Ann drinks green tea")
    with MemoryMesh(store=f"{replica.keeper(database)}?mode=ro", embedder="hash") as reader:
        assert [hit.id for hit in reader.search("green tea")] == [tea.id]
    with (
        closing(PostgresStore(replica.keeper(database))) as store,
        pytest.raises(StoreReadOnly, match="connect to the primary"),
    ):
        store.apply([memory("m1")])

    def write() -> None:
        with closing(PostgresStore(primary.keeper(database), busy_seconds=0.5)) as store:
            for turn in range(10_000):
                try:
                    store.apply([memory(f"t{turn}"), memory(f"u{turn}")])
                except StoreUnavailable:
                    break
                acknowledged.append(turn)
                if len(acknowledged) > 20:
                    over.set()

    writer = Thread(target=write)
    writer.start()
    assert over.wait(60)
    primary.stop(signal.SIGQUIT)
    writer.join(60)
    replica.execute("SELECT pg_promote()")
    with closing(PostgresStore(replica.keeper(database))) as store:
        ids = {*store.ids(Kind.MEMORY)} - {tea.id}
        assert {f"{half}{turn}" for turn in acknowledged for half in "tu"} <= ids
        assert {id_[1:] for id_ in ids if id_[0] == "t"} == {
            id_[1:] for id_ in ids if id_[0] == "u"
        }
        assert store.version("p") == len(ids)
        store.apply([memory("after")])
    with MemoryMesh(store=replica.keeper(database), embedder="hash") as mesh:
        assert {type(chain) for chain in mesh.verify()} == {Sound}
