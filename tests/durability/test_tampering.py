"""Rows that were edited by hand are found by verification: as a break, or, if they cannot be
read, as damage."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import pytest

from memory_mesh import Broken, MemoryMesh, Sound
from memory_mesh.core.audit import ERASED, text_hash
from memory_mesh.core.audit.chain import block_seal
from memory_mesh.core.errors import StoreCorrupt
from memory_mesh.core.model import Block, Kind, Memory
from memory_mesh.interfaces.cli.doctor import _chains
from memory_mesh.stores import open_store
from memory_mesh.stores.sqlite.tables import UPGRADE

_COPIED = "agent_id, operation_type, yamo_text, timestamp, block_hash, partition, revision, {0}"
ANOTHER = (
    f"INSERT INTO yamo_blocks (id, {_COPIED}) SELECT 'more', {_COPIED} FROM yamo_blocks LIMIT 1"
)
ODD = {
    "a chain that is no text": "UPDATE yamo_blocks SET chain = x'fffe' WHERE number = 2",
    "an id that is no text": "UPDATE yamo_blocks SET id = x'fffe' WHERE number = 2",
    "no id": "UPDATE yamo_blocks SET id = NULL WHERE number = 2",
    "a text that is none": "UPDATE yamo_blocks SET yamo_text = x'fffe' WHERE number = 2",
    "an agent that is no text": "UPDATE yamo_blocks SET agent_id = x'fffe' WHERE number = 2",
    "metadata that is no object": "UPDATE yamo_blocks SET metadata = '7' WHERE number = 2",
    "a number that is none": "UPDATE yamo_blocks SET number = 'x' WHERE number = 3",
    "a block of no chain": ANOTHER.format("number"),
    "a block without a number": ANOTHER.format("chain"),
    "a head whose number is none": "UPDATE records SET number = 'x' WHERE kind = 'head'",
    "a head without a hash": "UPDATE records SET extra = NULL WHERE kind = 'head'",
    "a head whose hash is no text": """UPDATE records SET extra = '{"block_hash": 5}' WHERE kind = \
'head'""",
    "a head of a user": "UPDATE records SET user_id = 'u' WHERE kind = 'head'",
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with MemoryMesh(
        store=f"sqlite:///{tmp_path / 'memory.db'}", agent_id="ann", embedder="none"
    ) as mesh:
        mesh.add_many([("one", None), ("two", None), ("three", None)])
        assert [type(verdict) for verdict in mesh.verify()] == [Sound]
    return tmp_path / "memory.db"


@contextmanager
def editing(file: Path) -> Iterator[sqlite3.Connection]:
    """Another program that writes to the file, and knows how to get past its trigger."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.create_function(UPGRADE, 0, lambda: None)
        yield connection


def opened(file: Path, agent: str = "ann") -> MemoryMesh:
    return MemoryMesh(store=f"sqlite:///{file}", agent_id=agent, embedder="none")


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("odd", ODD)
def test_a_row_that_none_of_ours_wrote_is_told_as_damage(file: Path, odd: str) -> None:
    with editing(file) as connection:
        assert connection.execute(ODD[odd]).rowcount == 1
    with (
        MemoryMesh(store=f"sqlite:///{file}", agent_id="ann", embedder="none") as mesh,
        pytest.raises(StoreCorrupt, match="cannot be"),
    ):
        mesh.verify()
    with (
        closing(open_store(f"sqlite:///{file}")) as store,
        pytest.raises(StoreCorrupt, match="cannot be"),
    ):
        _chains(store)


ODD_MEMORIES = {
    "a column that does not exist": """UPDATE memories SET extra = '{"odd": 1}' WHERE content = \
'two'""",
    "columns that are a list": "UPDATE memories SET extra = '[1]' WHERE content = 'two'",
    "no revision": "UPDATE memories SET revision = NULL WHERE content = 'two'",
    "a revision that is no number": "UPDATE memories SET revision = 'x' WHERE content = 'two'",
    "a status that is no text": "UPDATE memories SET status = x'fffe' WHERE content = 'two'",
    "a history without an action": "UPDATE records SET extra = NULL WHERE kind = 'change'",
    "a history that is a list": (
        "UPDATE records SET extra = json_set(extra, '$.before', json('[1]')) WHERE kind = 'change'"
    ),
    "a history without a number": "UPDATE records SET number = 'x' WHERE kind = 'change'",
}


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("odd", ODD_MEMORIES)
def test_a_memory_or_history_that_none_of_ours_wrote_is_a_named_error_of_every_read(
    file: Path, odd: str
) -> None:
    with opened(file) as mesh:
        (id_,) = (record.id for record in mesh.get_all() if record.content == "two")
        mesh.pin(id_)
        assert len(mesh.history(id_)) == 2
    with editing(file) as connection:
        assert connection.execute(ODD_MEMORIES[odd]).rowcount == 1
    with opened(file) as mesh, pytest.raises(StoreCorrupt, match="cannot be read"):
        mesh.history(id_)


@pytest.mark.req("MESH-042")
def test_a_block_whose_revision_is_no_number_stops_no_read(file: Path) -> None:
    with editing(file) as connection:
        assert (
            connection.execute(
                "UPDATE yamo_blocks SET memory_revision = 'x' WHERE number = 2"
            ).rowcount
            == 1
        )
    with opened(file) as mesh:
        assert [record.sealed for record in mesh.get_all() if record.content == "two"] == [False]
        with pytest.raises(StoreCorrupt):
            mesh.verify()


EDITS = {
    "the status of a memory": "UPDATE memories SET status = 'archived' WHERE content = 'two'",
    "its trust": "UPDATE memories SET trust = 1.0 WHERE content = 'two'",
    "its importance": "UPDATE memories SET importance = 1.0 WHERE content = 'two'",
    "its tags": """UPDATE memories SET tags = '["rule"]' WHERE content = 'two'""",
    "its agent": "UPDATE memories SET agent_id = 'bob' WHERE content = 'two'",
    "its type": "UPDATE memories SET memory_type = 'session' WHERE content = 'two'",
    "its time": "UPDATE memories SET created_at = '2020-01-01T00:00:00.000Z' WHERE content = 'two'",
    "its end": "UPDATE memories SET valid_until = '2020-01-01T00:00:00.000Z' WHERE content = 'two'",
    "its revision": "UPDATE memories SET revision = 2 WHERE content = 'two'",
    "metadata that is no object": "UPDATE memories SET metadata = '7' WHERE content = 'two'",
    "the metadata of a block": """UPDATE yamo_blocks SET metadata = \
'{"action":"add","status":"error"}' WHERE number = 2""",
    "the action of a block": """UPDATE yamo_blocks SET metadata = '{"action":"pin"}' WHERE number \
= 2""",
    "the time of a block": (
        "UPDATE yamo_blocks SET timestamp = '2020-01-01T00:00:00.000Z' WHERE number = 2"
    ),
    "the memory of a block": "UPDATE yamo_blocks SET ref = 'mem_1' WHERE number = 2",
    "the id of a block": "UPDATE yamo_blocks SET id = 'other' WHERE number = 2",
    "the session of a block": "UPDATE yamo_blocks SET session_id = 's' WHERE number = 2",
    "the numbers of two blocks": "UPDATE yamo_blocks SET number = number + 7 WHERE number > 1",
    "the seal of a block": "UPDATE yamo_blocks SET seal = NULL WHERE number = 3",
    "the seal of the head": (
        "UPDATE records SET extra = json_remove(extra, '$.seal') WHERE kind = 'head'"
    ),
}


# Columns of a memory that may be changed without a break, and why.
UNNOTICED = {
    "updated_at": (
        "of the last change, whose history row is sealed with its time; repairs move it without "
        "a revision"
    ),
    "number": (
        "the order among memories of the same millisecond; importing and adopting give new ones"
    ),
    "pending": "whether a vector is missing, which embedding changes without a revision",
    "embedding": "computed from the content; reembed replaces it",
    "model": "the model of the vector",
    "tokens": "computed from the content, with the vector",
    "keywords": "computed from the content, and again when the tokenizer changes",
    "fingerprint": "finds candidates for duplicates, whose texts are then compared",
    "decay_factor": "of Memory Lane; nothing of ours reads it",
    "auto_tags": "of Memory Lane; nothing of ours reads it",
}
FORGED = [
    None,
    "other",
    7,
    0.5,
    b"\0\xff",
    "{}",
    "[]",
    '["x"]',
    '{"a":1}',
    "2020-01-01T00:00:00.000Z",
    "global",
    "archived",
]
SAME_AS_NONE = (None, False, [], {})


@pytest.mark.deep
@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(
    "claim", [None, {"subject": "ana", "predicate": "lamp", "value": "red"}], ids=["plain", "claim"]
)
def test_a_change_of_any_column_of_a_memory_is_a_break_or_has_a_reason_not_to_be(
    tmp_path: Path, claim: object
) -> None:
    sound, copy = tmp_path / "sound.db", tmp_path / "copy.db"
    with opened(sound) as mesh:
        id_ = mesh.graph.store("ann", "Ana has a lamp", claim=claim).memory.id
        mesh.update(id_, metadata={"source": "seen"})
    with closing(sqlite3.connect(sound)) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(memories)")]
    before, unnoticed = read_values(sound, id_), set[str]()
    for name, forged in product(names, FORGED):
        shutil.copy(sound, copy)
        with suppress(sqlite3.IntegrityError), editing(copy) as connection:
            connection.execute(f"UPDATE memories SET {name} = ? WHERE id = ?", (forged, id_))
        if is_sound(copy) and (name in UNNOTICED or read_values(copy, id_) != before):
            unnoticed.add(name)
    assert unnoticed - UNNOTICED.keys() == set()
    assert unnoticed >= {
        "updated_at",
        "number",
        "pending",
        "model",
        "fingerprint",
        "decay_factor",
        "auto_tags",
    }


def is_sound(file: Path) -> bool:
    with opened(file) as mesh:
        try:
            return all(isinstance(verdict, Sound) for verdict in mesh.verify())
        except StoreCorrupt:
            return False


def read_values(file: Path, id_: str) -> dict[str, object]:
    """The columns of a memory as they are read, without those that are empty. Only of a claim,
    empty and none differ."""
    with closing(open_store(f"sqlite:///{file}?mode=ro")) as store:
        memory = Memory.of(store.get(Kind.MEMORY, [id_])[id_])
    found = {field.name: getattr(memory, field.name) for field in fields(memory)}
    return {
        name: value for name, value in found.items() if name == "claim" or value not in SAME_AS_NONE
    }


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(
    ("content", "column", "forged"),
    [
        ("Ana has a lamp", "claim_key", None), ("Ana has a lamp", "claim_key", "0"),
        ("two", "claim_key", "0"), ("Ana has a lamp", "claim", None),
        ("Ana has a lamp", "claim", "{}"), ("two", "claim", "{}"),
    ],
)  # fmt: skip
def test_a_changed_claim_or_its_key_is_a_break(
    file: Path, content: str, column: str, forged: str | None
) -> None:
    with opened(file) as mesh:
        mesh.graph.store(
            "ann", "Ana has a lamp", claim={"subject": "ana", "predicate": "lamp", "value": "red"}
        )
        assert [type(verdict) for verdict in mesh.verify()] == [Sound]
    with editing(file) as connection:
        connection.execute(f"UPDATE memories SET {column} = ? WHERE content = ?", (forged, content))
    with opened(file) as mesh:
        assert [type(verdict) for verdict in mesh.verify()] == [Broken]


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_column_is_a_break(file: Path, edit: str) -> None:
    with editing(file) as connection:
        assert connection.execute(EDITS[edit]).rowcount > 0
    with opened(file) as mesh:
        assert [type(verdict) for verdict in mesh.verify()] == [Broken]


# --- erasure must not cut the chain ---


def blocks(file: Path) -> list[Block]:
    with closing(open_store(f"sqlite:///{file}")) as store:
        return sorted(
            (Block.of(row) for row in store.find(Kind.BLOCK)), key=lambda block: block.number
        )


def write_back(file: Path, forged: list[Block]) -> None:
    with editing(file) as connection:
        for block in forged:
            values = (block.yamo_text, block.block_hash, block.prev_hash, block.seal, block.id)
            connection.execute(
                "UPDATE yamo_blocks SET (yamo_text, block_hash, prev_hash, seal) = (?, ?, ?, ?) "
                "WHERE id = ?",
                values,
            )


def forged_before(known: list[Block], tombstone: int) -> list[Block]:
    """Rewrite the blocks up to an erased one as somebody would who knows how: every hash and
    seal in them fits again."""
    new: list[Block] = []
    for block in known[:tombstone]:
        last, seal = (new[-1].block_hash, new[-1].seal) if new else (None, None)
        text = block.yamo_text.replace("hypothesis;none", "hypothesis;forged")
        text = re.sub(
            "prev_block;[0-9a-f]+",
            f"prev_block;{last}",
            re.sub("prev_seal;[0-9a-f]+", f"prev_seal;{seal}", text),
        )
        hash_ = block.block_hash if text == ERASED else text_hash(text)
        block = replace(block, yamo_text=text, prev_hash=last, block_hash=hash_)
        new.append(replace(block, seal=block_seal(block, seal)) if block.seal else block)
    return new


@pytest.mark.req("MESH-042", "MESH-012")
def test_after_an_erasure_what_was_before_it_cannot_be_rewritten(file: Path) -> None:
    with opened(file) as mesh:
        (third,) = (record for record in mesh.get_all() if record.content == "three")
        mesh.erase(third.id)
        (head,) = mesh.audit_heads()
        noted = [(head.number, head.block_hash), (head.number, str(head.seal))]
        assert [type(verdict) for one in noted for verdict in mesh.verify(head=one)] == [
            Sound,
            Sound,
        ]
    known = blocks(file)
    assert [block.yamo_text == ERASED for block in known] == [False, False, True, False]
    write_back(file, forged_before(known, 3))
    assert "hypothesis;forged" in blocks(file)[0].yamo_text
    with opened(file) as mesh:
        for one in (None, *noted):
            (verdict,) = mesh.verify(head=one)
            assert (type(verdict), verdict.number) == (Broken, 4)


@pytest.mark.req("MESH-042")
def test_an_erasure_by_another_agent_leaves_both_chains_sound_and_names_it(file: Path) -> None:
    with opened(file, "bob") as mesh:
        mesh.delete_all(agent_id="ann")
        assert [type(verdict) for verdict in mesh.verify()] == [Sound, Sound]
    erasure = [block for block in blocks(file) if block.agent_id == "ann"][-1]
    assert erasure.yamo_text.startswith("agent: MemoryMesh_ann;\n")
    assert "  erased_by;bob;\n" in erasure.yamo_text


# --- code in the file ---

DROP = "BEFORE INSERT ON yamo_blocks BEGIN SELECT RAISE(IGNORE); END"
COPY = "AFTER INSERT ON memories BEGIN INSERT INTO mesh_meta VALUES (NEW.id, NEW.content); END"
TRIGGERS = {
    "one that drops blocks": f"CREATE TRIGGER t {DROP}",
    "one that copies texts": f"CREATE TRIGGER t {COPY}",
    "another one under our name": f"CREATE TRIGGER blocks_need_a_seal {DROP}",
}


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_trigger_that_could_drop_audit_blocks_or_copy_contents_is_refused(
    file: Path, trigger: str
) -> None:
    with editing(file) as connection:
        connection.execute("DROP TRIGGER blocks_need_a_seal")
        connection.execute(TRIGGERS[trigger])
    with editing(file) as connection:  # the trigger works
        if "memories" in TRIGGERS[trigger]:
            connection.execute(
                "INSERT INTO memories (id, content, created_at, updated_at) VALUES ('x', "
                "'copied', '', '')"
            )
            assert connection.execute("SELECT 1 FROM mesh_meta WHERE value = 'copied'").fetchone()
            connection.rollback()
        else:
            connection.execute(ANOTHER.format("number"))
            assert connection.execute("SELECT count(*) FROM yamo_blocks").fetchone() == (3,)
    for call in (
        lambda mesh: mesh.add("four"),
        lambda mesh: mesh.verify(),
        lambda mesh: mesh.get_all(),
    ):
        with pytest.raises(StoreCorrupt, match="has the trigger"), opened(file) as mesh:
            call(mesh)
    with editing(file) as connection:
        connection.execute(
            f"DROP TRIGGER {'t' if ' t ' in TRIGGERS[trigger] else 'blocks_need_a_seal'}"
        )
    with opened(file) as mesh:
        mesh.add("four")
        assert [type(verdict) for verdict in mesh.verify()] == [Sound]
