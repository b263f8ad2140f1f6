"""Erased texts are in no byte of any file of the store, and the audit chains stay sound."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from memory_mesh import Broken, MemoryMesh, Sound
from memory_mesh.core.errors import KeyReused, NotFound
from memory_mesh.core.model import TOKEN_BYTES, Kind, Memory, Row, Vector, content_hash, iso
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.sqlite import SqliteStore

from .children import Child, bytes_of, url
from .sound import assert_sound

pytestmark = pytest.mark.req("MESH-011")

AT = iso(1_767_225_600_000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store in which others, who stay, have written much the same."""
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        mesh.add_many(
            [
                (f"The aviary keeps finch{n} in cage{n} " + "with seeds " * (n % 30), {"n": n})
                for n in range(60)
            ]
        )
    return file


@pytest.fixture
def mesh(file: Path) -> Iterator[MemoryMesh]:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        yield mesh


def present(file: Path, *words: str) -> set[str]:
    stored = bytes_of(file)
    return {word for word in words if word.encode() in stored}


def column(file: Path, query: str, id_: str) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [row[0] for row in connection.execute(query, (id_,))]


def hidden(file: Path, id_: str) -> list[str]:
    """What no caller is shown, and by which a content could be guessed: salt, fingerprint and
    the hash that its block seals."""
    (salt,), (fingerprint,), (content,) = (
        column(file, f"SELECT {name} FROM memories WHERE id = ?", id_)
        for name in ("salt", "fingerprint", "content")
    )
    return [salt, fingerprint, content_hash(salt, content)]


# --- the bytes ---


def test_no_byte_is_left_of_an_erased_memory(file: Path, mesh: MemoryMesh) -> None:
    notes = {
        "tags": ["plumage"],
        "source": "ornithologist",
        "status": "molting",
        "hypothesis": "iridescence",
    }
    id_ = mesh.add("Quetzals were glittering at dawn", notes).id
    words = [
        "Quetzals",
        "quetzal",
        "glitter",
        "plumage",
        "ornithologist",
        "molting",
        "iridescence",
        *hidden(file, id_),
    ]
    assert present(file, *words) == {*words}
    proof = mesh.erase(id_)
    assert proof.bytes_freed
    assert present(file, *words) == set()
    assert present(file, "finch7", "cage7", id_) == {"finch7", "cage7", id_}
    assert_sound(file)


def test_an_erasure_frees_what_an_earlier_deletion_left(file: Path, mesh: MemoryMesh) -> None:
    by_id, by_key = mesh.add("Quetzals glitter").id, mesh.add("Toucans glitter", key="toucan").id
    for id_, word, erase in (
        (by_id, "Quetzals", lambda: mesh.erase(by_id)),
        (by_key, "Toucans", lambda: mesh.erase(key="toucan")),
        (mesh.add("Motmots glitter").id, "Motmots", lambda: mesh.delete_all(agent_id="nobody")),
    ):
        mesh.delete(id_)
        assert present(file, word) == {word}, "a deletion leaves bytes"
        proof = erase()
        assert (proof.memories, proof.bytes_freed) == ((), True)
        assert present(file, word) == set()


def test_no_byte_is_left_of_older_revisions_or_of_what_later_sightings_said(
    file: Path, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("Quetzals nest in hollow trunks", {"place": "Monteverde"}).id
    mesh.add("Quetzals nest in hollow trunks", {"place": "Monteverde", "observer": "Humboldt"})
    secrets = hidden(file, id_)
    mesh.update(
        id_,
        content="Toucans nest in hollow trunks",
        metadata={"place": "Tikal"},
        why="misidentified",
    )
    mesh.update(id_, content="Motmots nest in burrows")
    mesh.pin(id_)
    words = [
        "Quetzals",
        "Monteverde",
        "Humboldt",
        "Toucans",
        "Tikal",
        "misidentified",
        "Motmots",
        "motmot",
        "burrow",
    ]
    assert present(file, *words) == {*words}
    mesh.erase(id_)
    assert present(file, *words, *secrets) == set()
    assert_sound(file)


@pytest.mark.deep
def test_no_byte_is_left_of_a_long_memory(file: Path, mesh: MemoryMesh) -> None:
    words = [f"quetzal{n:04d}" for n in range(400)]
    text = " ".join(f"{word} {'x' * 480}" for word in words)
    assert len(text) > 190_000
    id_ = mesh.add(text, {"summary": "y" * 50_000 + "Monteverde"}).id
    mesh.update(id_, content=text[::-1])
    backwards = [word[::-1] for word in words]
    # A page may end in the midst of a word, so not every word stands in one piece; nearly all do.
    assert len(present(file, *words, *backwards, "Monteverde")) > 790
    mesh.erase(id_)
    assert present(file, *words, *backwards, "Monteverde", "x" * 40, "y" * 40) == set()
    assert_sound(file)


@pytest.mark.deep
@pytest.mark.parametrize(("memories", "changed"), [(40, 3), (80, 1000)])
def test_no_byte_is_left_on_pages_that_were_split_and_filled_anew(
    tmp_path: Path, memories: int, changed: int
) -> None:
    # Where SQLite moves rows to a neighbouring page it leaves copies behind; overwriting what is
    # deleted is not enough. With these words in this order it does so.
    file, written = tmp_path / "pages.db", dict[str, list[str]]()
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        for n in range(memories):
            words = [f"{'afkpuzejotydinsxchmr'[at]}quetzal{n:04d}x{at}" for at in range(20)]
            id_ = mesh.add(" ".join(words), {"note": words[0]}).id
            if n % changed == 0:
                mesh.update(id_, content=" ".join(f"{word}u" for word in words) + " again" * n)
            written[id_] = words
        erased, left = list(written)[::2], list(written)[1::2]
        assert present(file, *words_of(written, *written)) == {*words_of(written, *written)}
        for id_ in erased:
            mesh.erase(id_)
        assert present(file, *words_of(written, *written)) == {*words_of(written, *left)}
    assert_sound(file)


def words_of(written: dict[str, list[str]], *ids: str) -> list[str]:
    return [word for id_ in ids for word in written[id_]]


def test_no_byte_is_left_of_a_scope(file: Path, mesh: MemoryMesh) -> None:
    mesh.add_many([(f"Quetzal number{n} flew by", {"session_id": "walk"}) for n in range(5)])
    mesh.add("Toucan flew by", {"session_id": "drive"})
    assert present(file, "Quetzal", "Toucan", "number3") == {"Quetzal", "Toucan", "number3"}
    proof = mesh.delete_all(session_id="walk")
    assert (len(proof.memories), proof.bytes_freed) == (5, True)
    assert present(file, "Quetzal", "quetzal", "Toucan", "number3") == {"Toucan"}
    assert_sound(file)


def test_no_byte_is_left_though_other_processes_have_it_open_and_in_mind(
    file: Path, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("Quetzals sleep").id
    with Child("sit", store=url(file), agent="two", query="quetzals") as other:
        assert other.hear() == [id_]
        assert mesh.erase(id_).bytes_freed
        assert present(file, "Quetzals", "quetzal") == set()
        other.tell()
        assert other.hear() == []
        written = other.hear()
        assert mesh.get(written) is not None
        assert present(file, "Quetzals", "quetzal") == set()
        other.tell()
        assert other.end() == 0
    assert_sound(file)


def test_an_erasure_while_another_reads_says_that_bytes_remain_and_the_next_opening_frees_them(
    file: Path,
) -> None:
    with (
        MemoryMesh(store=url(file), agent_id="one", busy_seconds=0.05) as mesh,
        Child("hold", file=str(file), begin="BEGIN") as reader,
    ):
        id_ = mesh.add("Quetzals sleep").id
        assert reader.hear() == "held"
        assert not mesh.erase(id_).bytes_freed
        assert mesh.get(id_) is None
        reader.tell()
        assert reader.hear() == "let go"
    with MemoryMesh(store=url(file), agent_id="one"):
        assert present(file, "Quetzals", "quetzal") == set()
    assert_sound(file)


# --- what hangs on it ---


def test_what_was_drawn_from_it_alone_goes_with_it_and_so_do_its_links_passages_and_vectors(
    file: Path, mesh: MemoryMesh
) -> None:
    source, other = mesh.add("Quetzals eat avocados").id, mesh.add("Toucans eat figs").id
    vectors = [
        Vector.of("unit", [n + 0.123, 0.456, 0.789], bytes([65 + n]) * TOKEN_BYTES)
        for n in range(3)
    ]
    rows = [
        drawn("lesson_1_aaaaaa", "Avocadoes feed trogons", [source], vectors[0]),
        drawn("lesson_1_bbbbbb", "Trogonlore sums it up", ["lesson_1_aaaaaa"]),
        drawn("lesson_1_cccccc", "Fruitlore of the forest", [source, other], vectors[1]),
        Row(
            kind=Kind.PASSAGE,
            id="p1",
            partition="p",
            created_at=AT,
            fields={"ref": source},
            vector=vectors[2],
        ),
        Row(
            kind=Kind.LINK,
            id="l1",
            partition="p",
            created_at=AT,
            fields={"ref": source, "target": other, "link_type": "eats_as"},
        ),
        Row(
            kind=Kind.LINK,
            id="l2",
            partition="p",
            created_at=AT,
            fields={"ref": other, "target": source, "link_type": "eaten_by"},
        ),
    ]
    with closing(SqliteStore(file)) as store:
        store.apply(rows)
        words = ["Quetzals", "Avocadoes", "Trogonlore", "eats_as", "eaten_by"]
        assert present(file, *words) == {*words}
        assert [vector.data in bytes_of(file) for vector in vectors] == [True, True, True]
        assert [vector.tokens in bytes_of(file) for vector in vectors] == [True, True, True]
        proof = mesh.erase(source)
        assert {*proof.memories} == {source, "lesson_1_aaaaaa", "lesson_1_bbbbbb"}
        assert present(file, *words) == set()
        assert [vector.data in bytes_of(file) for vector in vectors] == [False, True, False]
        assert [vector.tokens in bytes_of(file) for vector in vectors] == [False, True, False]
        assert {*store.get(Kind.MEMORY, ["lesson_1_cccccc", other])} == {"lesson_1_cccccc", other}
        assert store.count(Kind.PASSAGE) == store.count(Kind.LINK) == 0


def drawn(id_: str, content: str, sources: list[str], vector: Vector | None = None) -> Row:
    return Memory(
        id=id_, content=content, created_at=AT, updated_at=AT, memory_type="lesson",
        sources=sources, vector=vector
    ).row()  # fmt: skip


def test_a_key_whose_memory_is_erased_stays_used_and_forgets_what_was_asked(
    file: Path, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("Quetzals sing", idempotency_key="k1").id
    mesh.update(id_, content="Quetzals sing low", idempotency_key="k2")
    extras = column(file, "SELECT extra FROM records WHERE kind = 'receipt' AND ref = ?", id_)
    requests = [json.loads(extra)["request"] for extra in extras]
    assert len(requests) == 2
    assert present(file, *requests) == {*requests}
    mesh.erase(id_)
    assert present(file, *requests) == set()
    with pytest.raises(KeyReused, match="erased"):
        mesh.add("Quetzals sing", idempotency_key="k1")
    assert mesh.search("quetzals") == []
    assert mesh.add("Quetzals sing").id != id_


# --- others in between ---


@contextmanager
def interrupted(
    file: Path, meanwhile: Callable[[], object], *, audited: bool
) -> Iterator[MemoryMesh]:
    """A mesh whose first decision is followed by something that another does, before it is
    written."""
    waiting = [meanwhile]

    def step(name: str) -> None:
        if name == "flow.decided" and waiting:
            waiting.pop()()

    with MemoryMesh(store=url(file), agent_id="two", step=step, enable_yamo=audited) as mesh:
        yield mesh
    assert not waiting


@pytest.fixture(params=[True, False], ids=["audited", "unaudited"])
def audited(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def one(file: Path, audited: bool) -> Iterator[MemoryMesh]:
    with MemoryMesh(store=url(file), agent_id="one", enable_yamo=audited) as mesh:
        yield mesh


CHANGES: dict[str, Callable[[MemoryMesh, str], object]] = {
    "changing it": lambda mesh, id_: mesh.update(id_, content="Motmots sing"),
    "changing nothing, under a key": lambda mesh, id_: mesh.update(
        id_, content="Quetzals sing", idempotency_key="k"
    ),
    "pinning it": lambda mesh, id_: mesh.pin(id_),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_meets_an_erasure_brings_nothing_back(
    file: Path, one: MemoryMesh, change: str, audited: bool
) -> None:
    id_ = one.add("Quetzals sing").id
    with interrupted(file, lambda: one.erase(id_), audited=audited) as two, pytest.raises(NotFound):
        CHANGES[change](two, id_)
    assert present(file, "Quetzals", "quetzal", "Motmots", "motmot") == set()
    assert_sound(file)


MEANWHILE: dict[str, Callable[[MemoryMesh, str], object]] = {
    "changed": lambda mesh, id_: mesh.update(id_, content="Motmots sing", idempotency_key="k"),
    "seen again": lambda mesh, id_: mesh.add(
        "Quetzals sing", {"where": "Motmots"}, idempotency_key="k"
    ),
}


@pytest.mark.parametrize("change", MEANWHILE)
def test_an_erasure_that_meets_a_change_takes_it_along(
    file: Path, one: MemoryMesh, change: str, audited: bool
) -> None:
    id_ = one.add("Quetzals sing").id
    with interrupted(file, lambda: MEANWHILE[change](one, id_), audited=audited) as two:
        assert two.erase(id_).memories == (id_,)
    assert present(file, "Quetzals", "quetzal", "Motmots", "motmot") == set()
    assert_sound(file)


# --- the chains ---


def blocks(file: Path, *, agent: str = "one") -> list[tuple[int, str, str, str]]:
    query = (
        "SELECT number, id, block_hash, yamo_text FROM yamo_blocks WHERE agent_id = ? ORDER "
        "BY number"
    )
    with closing(sqlite3.connect(file)) as connection:
        return [tuple(row) for row in connection.execute(query, (agent,))]


@pytest.mark.req("MESH-012", "MESH-039")
def test_a_block_that_told_of_it_keeps_id_number_and_hash_and_loses_its_text(
    file: Path, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("Quetzals preen").id
    mesh.update(id_, content="Quetzals preen often")
    before = blocks(file)
    proof = mesh.erase(id_)
    after = blocks(file)
    assert [block[:3] for block in after[:-1]] == [block[:3] for block in before]
    texts = {block_id: text for _, block_id, _, text in after}
    assert len(proof.tombstones) == 2
    assert {texts[block_id] for block_id in proof.tombstones} == {"erased"}
    assert [text for _, block_id, _, text in before if block_id not in proof.tombstones] == [
        text
        for block_id, text in texts.items()
        if block_id not in {*proof.tombstones, *proof.blocks}
    ]
    assert proof.blocks == (after[-1][1],)
    assert all(block_id in after[-1][3] for block_id in proof.tombstones)
    assert [type(verdict) for verdict in mesh.verify()] == [Sound]


@pytest.mark.req("MESH-012")
def test_a_text_that_is_gone_without_an_erasure_breaks_the_chain(
    file: Path, mesh: MemoryMesh
) -> None:
    mesh.erase(mesh.add("Quetzals preen").id)
    assert [type(verdict) for verdict in mesh.verify()] == [Sound]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "UPDATE yamo_blocks SET yamo_text = 'erased', metadata = NULL, content_hash = NULL, "
            "memory_revision = NULL WHERE number = 7"
        )
        connection.commit()
    (verdict,) = mesh.verify()
    assert isinstance(verdict, Broken)
    assert (verdict.number, verdict.reason) == (
        7,
        "its text is missing and no later erasure names it",
    )


@pytest.mark.req("MESH-012")
def test_an_erasure_by_another_agent_leaves_the_chains_of_both_whole(
    file: Path, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("Quetzals preen").id
    with MemoryMesh(store=url(file), agent_id="two") as other:
        other.add("Toucans preen")
        proof = other.erase(id_)
    assert len(proof.blocks) == 2
    assert [
        text.count(id_) > 0 for *_, text in (blocks(file)[-1], blocks(file, agent="two")[-1])
    ] == [True, True]
    assert [type(verdict) for verdict in mesh.verify()] == [Sound, Sound]
    assert present(file, "Quetzals", "quetzal") == set()


def test_an_erased_memory_is_in_no_file_of_the_index(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    with MemoryMesh(store=store, embedder=HashingEmbedder()) as mesh:
        kept = mesh.add_many(
            [(f"the quay number {n} was built of granite", None) for n in range(1200)]
        )
        assert mesh.search("quay of granite")
    gone = kept[700].id

    def stored() -> list[Path]:
        return [
            path
            for path in tmp_path.rglob("*")
            if path.is_file() and gone.encode() in path.read_bytes()
        ]

    assert [path for path in stored() if "-index" in path.parent.name], (
        "the file of the index holds the id"
    )
    with MemoryMesh(store=store, embedder=HashingEmbedder()) as mesh:
        mesh.delete(gone)
        assert not [path for path in stored() if "-index" in path.parent.name]
        assert len(mesh.search("quay of granite", limit=5)) == 5
    assert not [path for path in stored() if "-index" in path.parent.name]
