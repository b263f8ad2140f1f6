"""The LanceDB store in a bucket, on a real server: the contract, and writers that stall, die and
meet."""

import json
import signal
import subprocess
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, suppress
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import lance
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import (
    StoreForeign,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model import Kind
from memory_mesh.core.ports import Store
from memory_mesh.stores import open_store
from memory_mesh.stores.lance import journal
from memory_mesh.stores.lance.s3 import Bucket, BucketStore
from memory_mesh.stores.lance.schema import MEMORIES, memories_v2
from memory_mesh.testing import StoreContract, machine_for
from memory_mesh.testing.rows import memory, query
from memory_mesh.testing.state_machine import StoreMachine
from stores.properties import KEPT, READ

from .s3_writer import COUNTER, add
from .seaweed import BUCKET, KEYS, Cluster

pytestmark = pytest.mark.deep
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in KEYS.items():
            patched.setenv(name, value)
        cluster = Cluster()
        try:
            yield cluster
        finally:
            cluster.stop()


def at(cluster: Cluster, prefix: str, **options: Any) -> BucketStore:
    return BucketStore(
        Bucket(BUCKET, prefix, endpoint=cluster.endpoint, region=None),
        url=cluster.url(prefix),
        **options,
    )


def opened(cluster: Cluster, place: Path, **options: Any) -> BucketStore:
    return at(cluster, f"stores/{sha256(str(place).encode()).hexdigest()[:16]}", **options)


class TestBucket(StoreContract):
    @pytest.fixture(autouse=True)
    def _on(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def open(self, place: Path) -> Store:
        return opened(self.cluster, place, flush_rows=6)


# Queries are those of the store in a folder, which is tried with many examples.
for property_ in (*KEPT, *READ):
    assert hasattr(TestBucket, property_)
    setattr(TestBucket, property_, None)


# --- several processes ---


class Writer:
    """A running `s3_writer`."""

    def __init__(self, cluster: Cluster, prefix: str, ids: list[str], **options: object) -> None:
        words = [sys.executable, "-m", "tests.engines.s3_writer"]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert self._process.stdin
        given = {
            "endpoint": cluster.endpoint,
            "prefix": prefix,
            "ids": ids,
            "flush_rows": 4,
            "lease": 0.5,
            **options,
        }
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def until(self, line: str) -> list[str]:
        """Read until it prints this line; return what it printed before."""
        assert self._process.stdout
        printed: list[str] = []
        for text in self._process.stdout:
            if json.loads(text) == line:
                return printed
            printed.append(json.loads(text))
        raise AssertionError(f"it ended with {self._process.wait()} before {line}: {printed}")

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def rest(self) -> list[str]:
        assert self._process.stdout
        printed = [json.loads(line) for line in self._process.stdout if line.endswith("\n")]
        assert self._process.wait() == 0
        return printed


def assert_sound(
    cluster: Cluster, prefix: str, acknowledged: Collection[str], *, unknown: Collection[str] = ()
) -> None:
    """Every acknowledged memory is there once, counted once, in the journal and then in the
    tables too."""
    with closing(at(cluster, prefix, lease_seconds=0.5)) as store:
        for _ in range(2):
            ids = [id_ for id_ in store.ids(Kind.MEMORY) if id_ != COUNTER]
            assert len(ids) == len({*ids})
            assert {*acknowledged} <= {*ids} <= {*acknowledged, *unknown}
            assert store.get(Kind.MEMORY, [COUNTER])[COUNTER].revision == len(ids)
            assert store.version("p") == 2 * len(ids)
            assert len(store.nearest(Kind.MEMORY, query(1, 0), limit=999)) == len(ids)
            assert store.compact()
        assert store.damage() == []
        table = lance.dataset(store._bucket.uri(MEMORIES), storage_options=store._bucket.options)
        assert sorted(table.to_table(columns=["id"])["id"].to_pylist()) == sorted([*ids, COUNTER])


WRITING = ["store.begun", "store.writing", "store.written", "store.committed"]
FLUSHING = [
    "flush.begun", "flush.memory_entries.deleted", "flush.memory_entries.appended", "flush.logged",
    "flush.committed", "flush.cut", "store.freed",
]  # fmt: skip


@pytest.mark.one_in_ci(2)
@pytest.mark.parametrize("step", [*WRITING, *FLUSHING])
@pytest.mark.req("MESH-015")
def test_a_writer_that_stalls_past_its_lease_loses_nothing_and_doubles_nothing(
    cluster: Cluster, step: str
) -> None:
    prefix, mine, theirs = (
        f"stalled/{step}",
        [f"a{n}" for n in range(6)],
        [f"b{n}" for n in range(7)],
    )
    with Writer(cluster, prefix, mine, at=step, nth=2, then="stop") as writer:
        before = writer.until(f"at {step}")
        with closing(at(cluster, prefix, flush_rows=4, lease_seconds=0.5)) as store:
            for id_ in theirs:
                add(store, id_)
            assert store.compact()  # what the other one read, or is about to write again, is gone
        writer.go_on()
        assert [*before, *writer.rest()] == mine
    assert_sound(cluster, prefix, [*mine, *theirs])


@pytest.mark.one_in_ci(2)
@pytest.mark.parametrize("step", [*WRITING, *FLUSHING])
@pytest.mark.req("MESH-015")
def test_a_writer_that_is_killed_at_any_step_leaves_what_it_acknowledged(
    cluster: Cluster, step: str
) -> None:
    prefix, mine = f"killed/{step}", [f"a{n}" for n in range(6)]
    with Writer(cluster, prefix, mine, at=step, nth=2, then="die") as writer:
        before = writer.until(f"at {step}")
    with closing(at(cluster, prefix, flush_rows=4, lease_seconds=0.5)) as store:
        add(store, "b")
    assert_sound(cluster, prefix, [*before, "b"], unknown=mine)


ERASING = ["store.committed", "flush.begun", "flush.logged", "flush.committed", "flush.cut"]


@pytest.mark.parametrize("step", ERASING)
@pytest.mark.req("MESH-011")
def test_an_erasure_that_is_killed_at_any_step_is_finished_by_the_next_user(
    cluster: Cluster, step: str
) -> None:
    prefix, text = f"erased/{step}", b"content of quetzal"
    with closing(at(cluster, prefix, flush_rows=1)) as store:
        store.apply([memory("quetzal"), memory("toucan")])
        assert store.find_bytes([text])
    with Writer(
        cluster, prefix, [], at=step, then="die", erased="quetzal", flush_rows=99
    ) as writer:
        writer.until(f"at {step}")
    with closing(at(cluster, prefix, read_only=True)) as store:
        assert store.has_deleted_bytes()
        assert store.find_bytes([text])
    at(cluster, prefix, lease_seconds=0.5).close()
    with closing(at(cluster, prefix, read_only=True)) as store:
        assert not store.has_deleted_bytes()
        assert store.find_bytes([text]) == {}
        assert store.ids(Kind.MEMORY) == ["toucan"]
        assert store.damage() == []


@pytest.mark.parametrize("killed", [False, True])
def test_four_writers_take_turns_also_if_a_volume_server_dies(
    cluster: Cluster, killed: bool
) -> None:
    prefix = f"four/{killed}"
    ids = {name: [f"{name}{n}" for n in range(12)] for name in "abcd"}
    with ExitStack() as stack:
        writers = [
            stack.enter_context(Writer(cluster, prefix, some, lease=5.0)) for some in ids.values()
        ]
        if killed:
            writers[0].until("a1")
            cluster.kill_volume(1)
        for writer in writers:
            writer.rest()
    try:
        assert_sound(cluster, prefix, [id_ for some in ids.values() for id_ in some])
    finally:
        if killed:
            cluster.start_volume(1)


def test_any_history_in_a_bucket_is_a_history_of_a_dict(cluster: Cluster) -> None:
    effort = settings(StoreMachine.TestCase.settings, max_examples=25, stateful_step_count=20)
    run_state_machine_as_test(
        machine_for(lambda place: opened(cluster, place, flush_rows=5)), settings=effort
    )


# --- faults ---


def test_errors_show_no_key_and_no_answer_of_the_server(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong-key")
    with pytest.raises(
        StoreUnavailable, match="refuses the request: InvalidAccessKeyId"
    ) as refused:
        open_store(cluster.url("faults"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["AWS_ACCESS_KEY_ID"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(StoreUnavailable, match="SignatureDoesNotMatch") as wrong:
        open_store(cluster.url("faults"))
    shown = "".join(
        text for error in (refused, wrong) for text in traceback.format_exception(error.value)
    )
    assert "refuses the request" in shown
    assert not any(
        part in shown for part in ("wrong-key", "wrong-secret", *KEYS.values(), "<Error>")
    )


def test_a_mesh_uses_a_bucket_by_its_url(cluster: Cluster) -> None:
    url = cluster.url("mesh/one")
    for strict in ({"store": url, "must_exist": True}, {"store": f"{url}&mode=ro"}):
        with pytest.raises(StoreMissing), MemoryMesh(**strict):  # type: ignore[arg-type]
            pass
    with MemoryMesh(store=url, agent_id="planner") as mesh:
        assert mesh.get_all() == []
        mesh.add("The deploy key rotates on Mondays")
    with MemoryMesh(store=f"{url}&mode=ro", agent_id="planner") as mesh:
        assert [one.content for one in mesh.search("deploy key")] == [
            "The deploy key rotates on Mondays"
        ]
        with pytest.raises(StoreReadOnly):
            mesh.add("Never written")
    with MemoryMesh(store=url, agent_id="planner") as mesh:
        (found,) = mesh.get_all()
        mesh.erase(found.id)
        assert mesh.get_all() == []
    with closing(open_store(url)) as store:
        assert isinstance(store, BucketStore)
        assert not store.has_deleted_bytes()
        assert store.find_bytes([b"rotates on Mondays"]) == {}
        assert store.find_bytes([b"memory_erased", b"planner"])


def test_a_server_that_goes_away_during_writes_loses_nothing_that_it_acknowledged(
    cluster: Cluster,
) -> None:
    acknowledged, over = list[str](), Event()

    def write() -> None:
        with closing(at(cluster, "gone", lease_seconds=0.5)) as store, suppress(StoreUnavailable):
            for n in range(10_000):
                store.apply([memory(f"t{n}"), memory(f"u{n}")])
                acknowledged.append(f"t{n}")
                if len(acknowledged) > 5:
                    over.set()

    writer = Thread(target=write)
    writer.start()
    assert over.wait(60)
    cluster.kill("filer")
    writer.join(120)
    assert not writer.is_alive()
    with pytest.raises(StoreUnavailable):
        at(cluster, "gone")
    cluster.start_filer()
    with closing(at(cluster, "gone", lease_seconds=0.5)) as store:
        ids = {*store.ids(Kind.MEMORY)}
        assert {*acknowledged} <= ids
        assert {id_[1:] for id_ in ids if id_[0] == "t"} == {
            id_[1:] for id_ in ids if id_[0] == "u"
        }
        assert store.version("p") == len(ids)
        store.apply([memory("after")])


def test_a_store_of_a_newer_version_is_refused_also_by_one_that_is_open(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = at(cluster, "newer")
    store.apply([memory("m1")])
    with monkeypatch.context() as newer:
        newer.setattr(journal, "FORMAT", journal.FORMAT + 1)
        upgraded = at(cluster, "newer")
        write = upgraded._write
        newer.setattr(upgraded, "_write", lambda view, entry: write(view, _of_next_format(entry)))
        upgraded.apply([memory("m2")])
        assert upgraded.compact()
        upgraded.close()
    for use in (
        lambda: store.apply([memory("m3")]),
        lambda: store.find(Kind.MEMORY),
        lambda: at(cluster, "newer"),
    ):
        with pytest.raises(StoreTooNew, match="upgrade memory-mesh"):
            use()
    store.close()


def _of_next_format(entry: dict[str, Any]) -> dict[str, Any]:
    return (
        {**entry, "state": {**entry["state"], "format": journal.FORMAT}}
        if "state" in entry
        else entry
    )


def test_tables_of_another_program_are_refused(cluster: Cluster) -> None:
    bucket = Bucket(BUCKET, "theirs", endpoint=cluster.endpoint, region=None)
    lance.write_dataset(
        memories_v2().empty_table(), bucket.uri(MEMORIES), storage_options=bucket.options
    )
    with pytest.raises(StoreForeign, match="memory_entries"):
        open_store(cluster.url("theirs"))
