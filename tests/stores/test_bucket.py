"""The store in a bucket, here a folder with conditional writes: whatever writers do that stall,
nothing is lost or doubled."""

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pytest
from obstore.store import LocalStore

from memory_mesh.core.errors import (
    Conflict,
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model import TOKEN_BYTES, Key, Kind
from memory_mesh.core.ports import no_progress
from memory_mesh.stores import open_store
from memory_mesh.stores.lance import journal, s3
from memory_mesh.stores.lance.s3 import Bucket, BucketStore, Log
from memory_mesh.stores.lance.schema import MEMORIES
from memory_mesh.stores.lance.view import View
from memory_mesh.testing.rows import memory


class Local(Bucket):
    """A folder in place of a bucket."""

    def __init__(self, folder: Path) -> None:
        self._uri, self.options, self._objects = str(folder), {}, LocalStore(folder, mkdir=True)  # type: ignore[assignment]


Open = Callable[..., BucketStore]


@pytest.fixture
def open_(tmp_path: Path) -> Open:
    def opened(**options: Any) -> BucketStore:
        return BucketStore(
            Local(tmp_path / "bucket"),
            url="s3://test",
            **{"flush_rows": 3, "lease_seconds": 0.05, **options},
        )

    return opened


def ids(store: BucketStore) -> list[str]:
    return sorted(store.ids(Kind.MEMORY))


def in_table(store: BucketStore) -> list[str]:
    return sorted(
        lance.dataset(store._bucket.uri(MEMORIES)).to_table(columns=["id"])["id"].to_pylist()
    )


STEPS = [
    "store.begun", "store.writing", "store.written", "store.committed", "flush.begun",
    "flush.memory_entries.deleted", "flush.memory_entries.appended", "flush.logged",
    "flush.committed", "flush.cut",
]  # fmt: skip


@pytest.mark.req("MESH-015")
@pytest.mark.parametrize("step", STEPS)
def test_a_writer_that_others_overtake_at_any_step_writes_again_and_doubles_nothing(
    open_: Open, step: str
) -> None:
    met: list[str] = []

    def overtaken(name: str) -> None:
        """Let another writer replace a row and flush, once, in the middle of a write."""
        met.append(name)
        if name == step and met.count(name) == 1:
            with closing(open_()) as other:
                other.apply([memory("b1"), memory("x", content="theirs", revision=2, replaces=1)])
                other.apply([memory("b2"), memory("b3")])
                other.compact()

    with closing(open_()) as store:
        store.apply([memory("x", content="first"), memory("y"), memory("z")])
    with closing(open_(step=overtaken, lease_seconds=60.0)) as store:
        store.apply([memory("a1")], [Key(Kind.MEMORY, "y")])
        store.apply([memory("a2")])
        store.apply([memory("a3")])
    assert step in met
    with closing(open_()) as store:
        for _ in range(2):
            assert ids(store) == ["a1", "a2", "a3", "b1", "b2", "b3", "x", "z"]
            assert store.get(Kind.MEMORY, ["x"])["x"].fields["content"] == "theirs"
            assert store.version("p") == 11
            assert store.compact()
        assert in_table(store) == ids(store)
        assert store.damage() == []


def test_rows_that_a_stalled_flush_adds_to_a_table_during_another_one_are_left_out(
    open_: Open,
) -> None:
    def stalled(name: str) -> None:
        """Append to the table as a writer does whose flush was begun before and is never
        committed."""
        if name == "flush.memory_entries.deleted" and not done:
            done.append(name)
            uri = store._bucket.uri(MEMORIES)
            lance.write_dataset(lance.dataset(uri).to_table(), uri, mode="append")

    done: list[str] = []
    with closing(open_()) as store:
        store.apply([memory("x"), memory("y"), memory("z")])
    with closing(open_(step=stalled)) as store:
        store.apply([memory("a1")], [Key(Kind.MEMORY, "y")])
        store.apply([memory("a2")])
        assert done
        assert store.compact()
        assert in_table(store) == ids(store) == ["a1", "a2", "x", "z"]


def test_a_decision_on_an_old_state_is_refused_though_it_stalled_before_its_write(
    open_: Open,
) -> None:
    def overtaken(name: str) -> None:
        if name == "store.writing" and not others:
            others.append(open_())
            others[0].apply([memory("x", revision=2, replaces=1)])

    others: list[BucketStore] = []
    open_().apply([memory("x")])
    with closing(open_(step=overtaken)) as store, pytest.raises(Conflict):
        store.apply([memory("x", content="lost?", revision=2, replaces=1)])
    assert store.url == "s3://test"
    assert others[0].get(Kind.MEMORY, ["x"])["x"].fields["content"] != "lost?"


def test_a_write_whose_response_was_lost_is_known_to_be_done(open_: Open, tmp_path: Path) -> None:
    bucket = Local(tmp_path / "bucket")
    assert bucket.create("one", b"mine")
    assert bucket.create("one", b"mine")  # as a client that sends the request again does
    assert not bucket.create("one", b"theirs")
    assert bucket.get("one") == b"mine"


def test_a_lease_is_waited_for_and_taken_over_when_it_stays_unchanged(
    open_: Open, tmp_path: Path
) -> None:
    log = Log(Local(tmp_path / "bucket"), lease_seconds=60)
    with log.lease("holder", log.listed, busy_seconds=0) as held:
        waiting = open_(lease_seconds=60.0, busy_seconds=0.0)
        with pytest.raises(StoreBusy):
            waiting.apply([memory("m1")])
        assert ids(waiting) == []
        open_().apply([memory("m2")])
        assert log.listed().lease == held.number + 1
    waiting.apply([memory("m1")])
    assert ids(waiting) == ["m1", "m2"]


def test_a_lease_is_renewed_while_a_flush_lasts(tmp_path: Path) -> None:
    log = Log(Local(tmp_path / "bucket"), lease_seconds=0.003)
    with log.lease("holder", log.listed, busy_seconds=0) as held, log.renewing(held):
        while held.number < 3:
            assert not held.lost.is_set()
    assert log.listed().free
    with log.lease("holder", log.listed, busy_seconds=0) as held, log.renewing(held):
        # Another one takes it over, whatever its number is by now.
        for number in range(held.number, held.number + 100):
            log._create(number + 1, "other")
        assert held.lost.wait(10)
    assert not log.listed().free  # it is that of the other one


@pytest.mark.parametrize(
    "damage", [b"{", b'{"state": {"format": 1, "odd": 2}}', b'{"state": {"format": 9}}']
)
def test_a_damaged_log_is_an_error_that_names_it(
    open_: Open, tmp_path: Path, damage: bytes
) -> None:
    open_().apply([memory("m1")])
    entries = sorted((tmp_path / "bucket" / "memory_mesh" / "log").glob("journal-*"))
    entries[-1].write_bytes(damage)
    with pytest.raises(StoreTooNew if b"9" in damage else StoreCorrupt):
        open_()


def test_the_first_write_to_a_bucket_of_the_format_without_tokens_raises_its_format(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_(flush_rows=99)
    write = store._write

    def written(view: View, entry: dict[str, Any]) -> bool:
        return write(view, {key: _of_format_1(value) for key, value in entry.items()})

    with monkeypatch.context() as earlier:
        earlier.setattr(store, "_write", written)
        earlier.setattr(journal, "FORMAT", 1)
        for n in range(3):
            store.apply([memory(f"m{n}")])
    with closing(open_()) as newer:
        assert (ids(newer), newer.is_prepared(), newer._exists()) == (
            ["m0", "m1", "m2"],
            False,
            True,
        )
        row = memory("m3", vector=[1, 0], tokens=bytes(TOKEN_BYTES))
        newer.apply([row])
        assert newer.is_prepared()
    with monkeypatch.context() as earlier:
        earlier.setattr(journal, "FORMAT", 1)
        with pytest.raises(StoreTooNew, match="format 2"):
            store.apply([memory("m4")])
    with closing(open_()) as newer:
        assert ids(newer) == ["m0", "m1", "m2", "m3"]
        assert newer.get(Kind.MEMORY, ["m3"]) == {"m3": row}


def _of_format_1(value: object) -> object:
    return {**value, "format": 1} if isinstance(value, dict) and "format" in value else value


def test_a_gap_in_the_log_is_an_error(open_: Open, tmp_path: Path) -> None:
    store = open_(flush_rows=99)
    for n in range(3):
        store.apply([memory(f"m{n}")])
    sorted((tmp_path / "bucket" / "memory_mesh" / "log").glob("journal-*"))[2].unlink()
    with pytest.raises(StoreCorrupt, match="gaps"):
        open_()


def test_many_logs_of_moves_are_merged_and_lead_on(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_MAX_LOGS", 3)
    with closing(open_(flush_rows=1)) as store:
        marks = []
        for n in range(8):
            store.apply([memory(f"m{n}")])
            marks.append(store.changes("p").mark)
        logs = [*(tmp_path / "bucket" / "memory_mesh" / "moves").iterdir()]
        assert len(logs) <= 4
        assert len([*(tmp_path / "bucket" / "memory_mesh" / "log").glob("journal-*")]) == 1
    with closing(open_()) as store:
        assert [key.id for key in store.changes("p", marks[0]).keys or ()] == [
            f"m{n}" for n in range(1, 8)
        ]


def test_reading_creates_nothing_and_a_closed_or_read_only_store_refuses(
    open_: Open, tmp_path: Path
) -> None:
    with pytest.raises(StoreMissing, match="does not exist"):
        open_(read_only=True)
    with closing(open_()) as store:
        assert ids(store) == []
        with pytest.raises(StoreMissing, match="does not exist"):
            store.require_file()
        assert not [*(tmp_path / "bucket").rglob("*")]
        store.create_file()
        assert store.is_prepared()
        store.apply([memory("m1")])
    with closing(open_(read_only=True)) as store:
        assert ids(store) == ["m1"]
        for write in (lambda: store.apply([memory("m2")]), store.prepare, store.compact):
            with pytest.raises(StoreReadOnly):
                write()
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)
    with closing(open_()) as store:
        assert (
            store.backup(tmp_path / "copy.jsonl", no_progress)
            == (tmp_path / "copy.jsonl").stat().st_size
            > 0
        )


def test_erased_bytes_are_gone_after_the_close(open_: Open) -> None:
    with closing(open_()) as store:
        store.apply([memory("m1", content="the quetzal nests"), memory("m2"), memory("m3")])
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert store.has_deleted_bytes()
        assert store.find_bytes([b"the quetzal nests"])
    with closing(open_()) as store:
        assert not store.has_deleted_bytes()
        assert store.find_bytes([b"the quetzal nests"]) == {}
        assert store.find_bytes([b"content of m2"])


@pytest.mark.req("MESH-020")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3://", "does not name a bucket"),
        ("s3://KEY:hidden-1@bucket/x", "does not name a bucket"),
        ("s3://bucket/x?endpoint=ftp://host", "endpoint"),
        ("s3://bucket/x?endpoint=http://me:hidden-1@host", "endpoint"),
        ("s3://bucket/x?secret_access_key=hidden-1", "unknown options"),
        ("s3://bucket/x?mode=maybe", "unknown options"),
    ],
)
def test_a_wrong_url_is_told_without_what_may_be_a_key(url: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as told:
        open_store(url)
    assert "hidden-1" not in str(told.value)


def test_a_server_that_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_mesh.stores.lance.s3._RETRY", {"max_retries": 0})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-1")
    with pytest.raises(StoreUnavailable, match="s3://bucket/x failed: no response") as told:
        open_store("s3://bucket/x?endpoint=http://127.0.0.1:9&region=here")
    assert "hidden-1" not in str(told.value)


def test_without_its_packages_the_store_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "memory_mesh.stores.lance.s3")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'memory-mesh\[s3\]'"):
        open_store("s3://bucket/x")


DAMAGED = {
    "empty": b"", "half": b"{", "a list": b"[]", "null": b"null", "no change": b"{}",
    "no base": b'{"change": {}}',
    ("another base"): b'{"change": {"moves": {}, "deletes": [], "puts": [], "nonce": "", "frees": '
                      b'false}, "base": "x"}',
    "a state": b'{"state": 1}', "bytes": b"\xff",
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_entry_of_the_log_is_an_error_of_the_store(
    open_: Open, tmp_path: Path, what: str
) -> None:
    with closing(open_(flush_rows=100)) as store:
        store.apply([memory("a")])
    file = max((tmp_path / "bucket/memory_mesh/log").glob("journal-*"))
    assert b'"a"' in file.read_bytes()
    file.write_bytes(DAMAGED[what])
    with pytest.raises(StoreCorrupt, match="damaged"):
        open_()


def test_copies_beside_the_log_are_ignored_and_a_log_that_is_gone_is_an_error(
    open_: Open, tmp_path: Path
) -> None:
    with closing(open_(flush_rows=1)) as store:
        store.apply([memory("a")])
        store.apply([memory("b")])
    log = tmp_path / "bucket/memory_mesh/log"
    for name in (
        "journal-0000000000000001.bak",
        "journal-x",
        "journal-",
        "lease-x",
        "state-x",
        "notes",
    ):
        (log / name).write_text("{}")
    with closing(open_()) as store:
        assert ids(store) == ["a", "b"]
        store.apply([memory("c")])
        assert ids(store) == ["a", "b", "c"]
    for file in log.glob("journal-*"):
        file.unlink()
    with pytest.raises(StoreCorrupt, match="lacks its log"):
        open_()
