"""Copies of whole stores: equal rows on every kind of store, continued when stopped, of one
moment, and verified."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import InvalidInput, MemoryMesh, StoreBusy, StoreCorrupt, StoreError
from memory_mesh.api.admin import copy_store
from memory_mesh.api.build import context_over
from memory_mesh.core.model import Copied, Key, Kind, Reader, Row
from memory_mesh.core.ports import Applied, RowSource, Store, no_progress
from memory_mesh.core.transfer import archive
from memory_mesh.core.transfer.archive import AT_ONCE, PAGE, StoreRows, archive_lines
from memory_mesh.flows.transfer import moving
from memory_mesh.stores import open_store
from memory_mesh.stores.archive_file import ArchiveFile
from memory_mesh.stores.ram import RamStore
from memory_mesh.testing.rows import full, memory, rows


def copy(source: Store | RowSource, target: Store) -> Copied:
    given = StoreRows(source) if isinstance(source, RamStore) else source
    return moving.copy(context_over(target, Reader()), given, no_progress)  # type: ignore[arg-type]


def lines(store: Store, *, vectors: bool = True) -> list[str]:
    return [*archive_lines(store, vectors=vectors, progress=no_progress)]


def filled() -> RamStore:
    """A store with two users, history, links, a search and vectors."""
    store = RamStore()
    with MemoryMesh(store, agent_id="planner", embedder="hash") as mesh:
        first = mesh.add("The lantern needs oil", {"importance": 1, "any": {"n": [1, 1.5, None]}})
        mesh.update(first.id, content="The lantern needs lamp oil")
        mesh.graph.link(first.id, mesh.add("The wick is trimmed").id, "cause")
        mesh.scoped(user_id="ana").add("Ana likes tea", idempotency_key="once")
        mesh.search("lantern")
    return store


def numbered(count: int) -> RamStore:
    store = RamStore()
    store.apply([memory(f"m{n:04}", partition=f'["u{n % 3}", null]') for n in range(count)])
    return store


class Failing(RamStore):
    """Refuses every write after some."""

    writes_left = 10**9
    largest = 0
    users: set[frozenset[str]]

    def __init__(self) -> None:
        super().__init__()
        self.users, self.read = set(), 0

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied:
        if self.writes_left == 0:
            raise StoreError("the process died")
        self.writes_left -= 1
        self.largest = max(self.largest, len(puts) + len(deletes))
        self.users.add(frozenset(row.partition for row in puts))
        return super().apply(puts, deletes, seen=seen)

    def find(self, *args: object, **options: object) -> list[Row]:
        found = super().find(*args, **options)  # type: ignore[arg-type]
        self.read = max(self.read, len(found))
        return found


# --- the rows ---


@given(st.lists(rows(), max_size=4))
def test_every_row_comes_back_from_its_line(some: list[Row]) -> None:
    for row in some:
        assert archive.decode(json.loads(archive.encode(row))) == row


@pytest.mark.parametrize("url", ["sqlite:///{0}/b.db", "json:///{0}/b", "memory://"])
def test_a_copy_in_another_store_is_exported_as_the_same_bytes(url: str, tmp_path: Path) -> None:
    source = filled()
    source.apply([full(kind) for kind in Kind if kind is not Kind.HEAD])
    expected = lines(source)
    with closing(open_store(url.format(tmp_path))) as target:
        done = copy(source, target)
        assert lines(target) == expected
        assert (sum(done.rows.values()), done.written) == (len(expected) - 2,) * 2
        assert json.loads(expected[-1])["end"] == {"rows": done.rows, "digest": done.digest}
        assert (copy(source, target).written, lines(target)) == (0, expected)
    if "memory" not in url:  # what was written is there when it is opened again
        with closing(open_store(url.format(tmp_path))) as again:
            assert lines(again) == expected


@pytest.mark.deep
def test_a_copy_in_lancedb_and_back_is_the_same(tmp_path: Path) -> None:
    source = filled()
    with closing(open_store(f"lancedb:///{tmp_path}/b")) as target:
        copy(source, target)
    copy_store(f"lancedb:///{tmp_path}/b", f"sqlite:///{tmp_path}/c.db")
    with closing(open_store(f"sqlite:///{tmp_path}/c.db")) as back:
        assert lines(back) == lines(source)


def test_a_copied_store_is_used_like_the_first() -> None:
    target = RamStore()
    copy(filled(), target)
    with MemoryMesh(target, agent_id="planner", embedder="hash") as mesh:
        first = mesh.search("lamp oil")[0]
        assert [one.action for one in mesh.history(first.id)] == ["add", "update"]
        assert mesh.scoped(user_id="ana").add("Ana likes tea", idempotency_key="once").revision == 1
        mesh.add("Stored after the copy")
        assert all(verdict for verdict in mesh.verify())


# --- stopped copies ---


@pytest.mark.req("MESH-007")
def test_a_copy_that_was_stopped_at_any_write_continues_and_stores_nothing_twice() -> None:
    source, target = filled(), Failing()
    expected, stops = lines(source), 0
    for allowed in range(1, 100):
        target.writes_left = 1 + stops % 3  # one, two or three writes in each run
        try:
            done = copy(source, target)
            break
        except StoreError:
            stops = allowed
    assert stops > 5
    assert lines(target) == expected
    assert done.written < len(expected) - 2
    whole = Failing()
    copy(source, whole)
    assert all(
        whole.version(row.partition) == target.version(row.partition)
        for row in source.find(Kind.MEMORY)
    )


@pytest.mark.req("MESH-007")
def test_the_rest_of_a_stopped_copy_has_what_changed_in_the_source_meanwhile() -> None:
    source, target = numbered(30), Failing()
    target.writes_left = 3  # the mark, and two of three users
    with pytest.raises(StoreError):
        copy(source, target)
    assert 0 < target.count(Kind.MEMORY) < 30
    (old,) = source.get(Kind.MEMORY, ["m0005"]).values()
    assert target.get(Kind.MEMORY, ["m0005"])
    source.apply([replace(old, revision=2, replaces=1), memory("new", partition='["u1", null]')])
    target.writes_left = 100
    copy(source, target)
    assert lines(target) == lines(source)


# --- sources that are written to ---


class Live(RamStore):
    """Others write to it between the pages that are read."""

    change: Callable[[RamStore], object] | None = None
    times = 1

    def find(self, kind: Kind, *args: object, **options: object) -> list[Row]:
        found = super().find(kind, *args, **options)  # type: ignore[arg-type]
        if self.change and kind is Kind.BLOCK and self.times:
            self.times -= 1
            self.change(self)
        return found


def _move(store: RamStore) -> None:
    (row,) = RamStore.get(store, Kind.MEMORY, ["m0002"]).values()
    store.apply(
        [
            replace(
                row,
                partition='["u9", null]',
                number=7,
                revision=row.revision + 1,
                replaces=row.revision,
            )
        ]
    )


@pytest.mark.req("MESH-044")
@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.apply([memory(f"new{store.times}", partition="p")]),
        lambda store: store.apply(deletes=[Key(Kind.MEMORY, f"m000{store.times}")]),
        _move,
    ],
    ids=["add", "delete", "move"],
)
def test_a_copy_of_a_store_that_is_written_to_has_one_moment_of_it(
    change: Callable[[RamStore], object],
) -> None:
    source, target = Live(), RamStore()
    source.apply([memory(f"m{n:04}", partition="p") for n in range(20)])
    source.change, source.times = change, 2
    copy(source, target)
    assert lines(target) == lines(source)
    assert source.times == 0


def test_a_source_that_never_rests_is_an_error_and_the_copy_can_be_continued() -> None:
    source, target = Live(), RamStore()
    source.change, source.times = (lambda store: store.apply([memory(f"new{source.times}")])), 50
    with pytest.raises(StoreBusy, match="backup"):
        copy(source, target)
    with pytest.raises(StoreBusy, match="written to during the export"):
        lines(source)
    source.times = 0
    copy(source, target)
    assert lines(target) == lines(source)


# --- targets ---


@pytest.mark.req("MESH-007")
@pytest.mark.parametrize("write", [0, 1])
def test_two_copies_into_one_store_at_once_are_an_error_that_says_so(write: int) -> None:
    source, writes = numbered(10), count()

    class Overtaken(RamStore):
        """Lets another process copy the same source before one of its writes."""

        def apply(self, *args: object, **options: object) -> Applied:
            if next(writes) == write:
                copy(source, self)
            return super().apply(*args, **options)  # type: ignore[arg-type]

    overtaken = Overtaken()
    with pytest.raises(StoreBusy, match="another process writes"):
        copy(source, overtaken)
    assert copy(source, overtaken).written == 0
    assert lines(overtaken) == lines(source)


@pytest.mark.req("MESH-007")
def test_a_target_with_other_rows_is_refused_and_not_changed() -> None:
    for store in (numbered(1), filled()):
        before = lines(store)
        with pytest.raises(InvalidInput, match="is not empty"):
            copy(numbered(3), store)
        assert lines(store) == before


def test_a_part_of_another_copy_is_refused() -> None:
    class Other(RamStore):
        url = "memory://other"

    target, other = Failing(), Other()
    other.apply([memory("x")])
    target.writes_left = 2
    with pytest.raises(StoreError):
        copy(numbered(30), target)
    before = lines(target)
    target.writes_left = 100
    with pytest.raises(InvalidInput, match=r"has a part of 'memory://'"):
        copy(other, target)
    assert lines(target) == before


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_finished_copy_that_was_changed_since_is_never_overwritten(side: str) -> None:
    source, target = numbered(3), RamStore()
    copy(source, target)
    {"source": source, "target": target}[side].apply([memory("later")])
    before = lines(target)
    with pytest.raises(InvalidInput, match="changed since"):
        copy(source, target)
    assert lines(target) == before


@pytest.mark.req("MESH-007")
def test_what_was_written_to_a_part_of_a_copy_is_not_deleted() -> None:
    source, target = numbered(30), Failing()
    target.writes_left = 2
    with pytest.raises(StoreError):
        copy(source, target)
    target.writes_left = 100
    target.apply([memory("mine", partition='["u0", null]')])
    with pytest.raises(InvalidInput, match="changed since"):
        copy(source, target)
    assert target.get(Kind.MEMORY, ["mine"])


# --- verification ---


@pytest.mark.req("MESH-044")
def test_a_copy_that_differs_is_found_by_its_digest_and_by_its_count() -> None:
    class Loses(RamStore):
        def __init__(self, edit: Callable[[Row], Iterator[Row]]) -> None:
            super().__init__()
            self._edit = edit

        def apply(self, puts: Sequence[Row] = (), *args: object, **options: object) -> Applied:  # type: ignore[override]
            return super().apply([new for row in puts for new in self._edit(row)])

    def without(row: Row) -> Iterator[Row]:
        yield from () if row.id == "m0002" else (row,)

    def edited(row: Row) -> Iterator[Row]:
        yield (
            replace(row, fields={**row.fields, "content": "Another"}) if row.id == "m0002" else row
        )

    for edit, what in ((without, "2 of 3 rows of kind memory"), (edited, "the contents of rows")):
        with pytest.raises(StoreCorrupt, match=what):
            copy(numbered(3), Loses(edit))


def test_an_audit_chain_that_is_broken_in_the_source_is_copied_and_named() -> None:
    source = filled()
    assert copy(source, RamStore()).broken == ()
    block = max(source.find(Kind.BLOCK), key=lambda row: (row.partition, row.number))
    source.apply(deletes=[block.key])
    done = copy(source, RamStore())
    assert len(done.broken) == 1
    assert done.chains > 1
    assert block.partition in done.broken[0]


def test_a_change_has_rows_of_one_user_and_no_more_than_a_page() -> None:
    source, target = Failing(), Failing()
    source.apply([memory(f"m{n:05}", partition=f'["u{n % 3}", null]') for n in range(PAGE + 1)])
    copy(source, target)
    [*archive_lines(source, vectors=True, progress=no_progress)]
    assert (source.read, target.largest) == (PAGE, AT_ONCE)
    assert all(len(partitions) == 1 for partitions in target.users)


# --- archives ---


def written(store: Store, file: Path) -> Path:
    file.write_text("".join(lines(store)))
    return file


def test_an_archive_is_read_a_line_at_a_time(tmp_path: Path) -> None:
    target, source = Failing(), numbered(2 * AT_ONCE)
    done = copy(ArchiveFile(written(source, tmp_path / "all.jsonl")), target)
    assert (lines(target), target.largest <= AT_ONCE) == (lines(source), True)
    assert done.rows == {"memory": 2 * AT_ONCE}


def _without(name: str) -> Callable[[list[str]], list[str]]:
    return lambda some: [
        json.dumps({k: v for k, v in json.loads(one).items() if k != name}) + "\n" for one in some
    ]


NAN = '{"created_at":"2026","id":"x","kind":"usage","number":NaN,"partition":"p","revision":1}\n'
DAMAGE: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "cut": (lambda some: some[:-1], "was cut"),
    "cut in a line": (lambda some: [*some[:3], some[3][:9]], "line 4 of .*not JSON"),
    "a row less": (lambda some: [*some[:2], *some[3:]], "was changed"),
    "a row twice": (lambda some: [*some[:2], some[1], *some[2:]], "line 3 .*twice"),
    "another order": (lambda some: [some[0], some[2], some[1], *some[3:]], "line 3 .*not in order"),
    "another text": (
        lambda some: [one.replace("content", "c0ntent") for one in some],
        "line 2 .*no field",
    ),
    "another value": (
        lambda some: [one.replace("u1", "u7") for one in some],
        "was changed|not in order",
    ),
    "no partition": (_without("partition"), "line 2 .*not a row"),
    "NaN": (lambda some: [some[0], NAN, some[-1]], "line 2 .*number must be"),
    "half a surrogate pair": (
        lambda some: [some[0], some[1].replace('"id":"m', '"id":"\\ud800'), *some[2:]],
        "line 2 .*id must be",
    ),
    "deep": (lambda some: [some[0], "[" * 5000 + "\n", *some[1:]], "line 2 .*not JSON"),
    "a list": (lambda some: [some[0], "[]\n", *some[1:]], "line 2 .*it is list"),
    "a line after the end": (
        lambda some: [*some, some[-2]],
        "twice|not in order|was cut|was changed",
    ),
    "newer": (
        lambda some: [some[0].replace('"version":1', '"version":2'), *some[1:]],
        "version 2; expected version 1; upgrade",
    ),
}


@pytest.mark.req("MESH-044")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_archive_is_refused_before_anything_is_written(
    damage: str, tmp_path: Path
) -> None:
    edit, message = DAMAGE[damage]
    file = tmp_path / "all.jsonl"
    file.write_text("".join(edit(lines(numbered(5)))))
    with MemoryMesh("memory://") as mesh:
        with pytest.raises((InvalidInput, StoreError), match=message):
            mesh.restore(file)
        assert lines(mesh._context().store)[1:-1] == []


def test_a_line_that_is_too_long_is_refused_and_not_read_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.stores.archive_file.MAX_LINE", 1000)
    file = tmp_path / "all.jsonl"
    file.write_text("".join([lines(numbered(1))[0], "x" * 5000 + "\n"]))
    with MemoryMesh("memory://") as mesh, pytest.raises(InvalidInput, match=r"line 2 .*too long"):
        mesh.restore(file)


def test_an_archive_without_vectors_is_embedded_by_the_import(tmp_path: Path) -> None:
    source = filled()
    file = tmp_path / "all.jsonl"
    file.write_text("".join(lines(source, vectors=False)))
    assert '"vector"' not in file.read_text()
    with MemoryMesh("memory://", agent_id="planner", embedder="hash") as mesh:
        done = mesh.import_file(file)
        assert (done.format, done.copied and done.copied.reembedded) == ("archive", 3)
        rows = mesh._context().store.find(Kind.MEMORY)
        assert all(row.vector and not row.value("pending") for row in rows)
        assert {row.vector for row in rows} == {row.vector for row in source.find(Kind.MEMORY)}
        mesh.add("Stored since")
        again = mesh.import_file(file)
        assert (again.memories, again.skipped) == (
            0,
            {"stored already": len(lines(source, vectors=False)) - 2},
        )
        assert len(mesh._context().store.find(Kind.MEMORY)) == 4


def test_vectors_of_another_model_are_computed_anew(tmp_path: Path) -> None:
    source = RamStore()
    with MemoryMesh(source, agent_id="planner", embedder="hash") as mesh:
        mesh.add("The lantern needs oil")
    for row in source.find(Kind.MEMORY):
        source.apply(
            [replace(row, vector=replace(row.vector, model="other"), replaces=row.revision)]
        )  # type: ignore[type-var]
    (meta,) = source.get(Kind.META, ["embedding"]).values()
    source.apply(
        [
            replace(
                meta,
                fields={"detail": {**meta.fields["detail"], "model": "other"}},
                replaces=meta.revision,
            )
        ]
    )  # type: ignore[dict-item]
    with MemoryMesh("memory://", agent_id="planner", embedder="hash") as mesh:
        done = mesh.restore(written(source, tmp_path / "all.jsonl"))
        assert done.reembedded == 1
        assert mesh.search("lantern oil")[0].similarity


# --- backups ---


def test_a_store_without_a_file_is_backed_up_as_an_archive_and_restored(tmp_path: Path) -> None:
    source = filled()
    with MemoryMesh(source, agent_id="planner", embedder="hash") as mesh:
        done = mesh.backup(tmp_path / "all.jsonl")
        assert done.bytes == (tmp_path / "all.jsonl").stat().st_size
        with pytest.raises(InvalidInput, match="exists"):
            mesh.backup(tmp_path / "all.jsonl")
    for url in (f"sqlite:///{tmp_path}/new.db", f"json:///{tmp_path}/new"):
        with MemoryMesh(url, agent_id="planner", embedder="hash") as mesh:
            mesh.restore(tmp_path / "all.jsonl")
            assert lines(mesh._context().store) == lines(source)
            mesh.add("Not in the backup")
            with pytest.raises(InvalidInput, match="changed since"):
                mesh.restore(tmp_path / "all.jsonl")
    (tmp_path / "memories.jsonl").write_text('{"format": "memory-mesh memories", "version": 1}\n')
    with (
        MemoryMesh("memory://") as mesh,
        pytest.raises(InvalidInput, match=r"not a whole store; .*use import"),
    ):
        mesh.restore(tmp_path / "memories.jsonl")


@pytest.mark.parametrize("name", ["a.db", "folder"])
def test_the_backup_of_a_file_or_folder_is_restored_into_another_kind_of_store(
    name: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / name}" if name.endswith("db") else f"json:///{tmp_path / name}"
    with MemoryMesh(url, agent_id="planner", embedder="hash") as mesh:
        mesh.add("The lantern needs oil")
        mesh.backup(tmp_path / f"copy-{name}")
        expected = lines(mesh._context().store)
    with MemoryMesh("memory://", agent_id="planner", embedder="hash") as mesh:
        mesh.restore(tmp_path / f"copy-{name}")
        assert lines(mesh._context().store) == expected


# --- stores by URL ---


def test_a_store_cannot_be_copied_to_itself_or_from_nowhere(tmp_path: Path) -> None:
    with MemoryMesh(f"sqlite:///{tmp_path}/a.db") as mesh:
        mesh.add("The lantern needs oil")
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    for source, target, message in (
        ("a.db", "a.db", "both the source and the target"),
        ("link.db", "a.db", "both the source and the target"),
        ("none.db", "new.db", "does not exist"),
        ("a.db", "a.db/below", "Not a directory"),
        ("a.db", "new.db?mode=ro", "read-only|does not exist"),
    ):
        with pytest.raises((InvalidInput, StoreError), match=message):
            copy_store(f"sqlite:///{tmp_path}/{source}", f"sqlite:///{tmp_path}/{target}")
    assert not (tmp_path / "new.db").exists()
