"""Erasing: the memory, its revisions, memories derived from it alone, and every text that quoted
it."""

import json
from dataclasses import replace

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.audit import Broken
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Kind, Row, Vector
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import write

from .house import House

SECRET = "zanzibar"


def all_text(house: House) -> str:
    """Everything that the store still says, of any kind."""
    return json.dumps(
        [[row.id, dict(row.fields)] for kind in Kind for row in house.store.find(kind)]
    )


@pytest.mark.req("MESH-082")
def test_delete_answers_nothing_and_a_repeated_call_writes_nothing(
    house: House, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("text").id
    assert mesh.delete(id_) is None
    assert mesh.get(id_) is None
    blocks = house.blocks()
    assert mesh.delete(id_) is None
    assert mesh.delete("mem_1_ffffff") is None
    assert house.blocks() == blocks
    assert len(blocks) == 2


@pytest.mark.req("MESH-011", "MESH-012")
def test_nothing_of_an_erased_memory_is_found_in_any_row(house: House, mesh: MemoryMesh) -> None:
    record = mesh.add(
        f"{SECRET} one", {"note": SECRET, "tags": [SECRET], "status": SECRET, "hypothesis": SECRET}
    )
    mesh.update(
        record.id,
        content=f"{SECRET} two",
        metadata={"more": SECRET},
        why=SECRET,
        idempotency_key=SECRET,
    )
    mesh.add(f"{SECRET} two", {"seen": SECRET})
    mesh.pin(record.id)
    passage = Row(
        kind=Kind.PASSAGE,
        id="p1",
        partition="p",
        created_at=record.created_at,
        fields={"ref": record.id},
        vector=Vector.of("m", [1.0]),
    )
    links = [
        Row(
            kind=Kind.LINK,
            id="l1",
            partition="p",
            created_at=record.created_at,
            fields={"ref": record.id, "target": "x", "link_type": SECRET},
        ),
        Row(
            kind=Kind.LINK,
            id="l2",
            partition="p",
            created_at=record.created_at,
            fields={"ref": "x", "target": record.id, "link_type": SECRET},
        ),
        Row(
            kind=Kind.LINK,
            id="l3",
            partition="p",
            created_at=record.created_at,
            fields={"ref": record.id, "target": record.id, "link_type": SECRET},
        ),
    ]
    house.store.apply([passage, *links])
    other = mesh.add("something else")
    assert all_text(house).count(SECRET) > 20
    proof = mesh.erase(record.id)
    assert SECRET not in all_text(house)
    assert proof.memories == (record.id,)
    assert proof.rows == 1 + 3 + 1 + 3
    assert len(proof.tombstones) == 4
    assert len(proof.blocks) == 1
    assert mesh.get_all() == [other]
    assert house.sound()


@pytest.mark.req("MESH-012", "MESH-039")
def test_blocks_keep_id_number_and_hash_and_lose_their_text(house: House, mesh: MemoryMesh) -> None:
    record = mesh.add(f"{SECRET} text")
    other = mesh.add("other")
    before = house.blocks()
    proof = mesh.erase(record.id)
    first, second, erasure = house.blocks()
    assert (first.id, first.number, first.block_hash, first.yamo_text) == (
        before[0].id,
        1,
        before[0].block_hash,
        "erased",
    )
    assert second == before[1]
    assert second.ref == other.id
    assert (erasure.operation_type, erasure.metadata) == ("retain", {"action": "erase"})
    assert f"block_erased;{first.id} {first.block_hash};" in erasure.yamo_text
    assert record.id in erasure.yamo_text
    assert (proof.tombstones, proof.blocks) == ((first.id,), (erasure.id,))


@pytest.mark.req("MESH-039")
def test_no_call_but_an_erasure_changes_a_block(house: House, mesh: MemoryMesh) -> None:
    record = mesh.add("text", {"a": 1})
    kept = {block.id: block for block in house.blocks()}
    for call in (
        lambda: mesh.add("text"),
        lambda: mesh.update(record.id, content="changed", metadata={"a": None}),
        lambda: mesh.pin(record.id),
        lambda: mesh.add_many([("x", None), ("y", None)]),
        lambda: mesh.search("text"),
        lambda: mesh.history(record.id),
        lambda: mesh.verify(),
        lambda: mesh.delete("mem_1_ffffff"),
        lambda: mesh.delete(mesh.add("other").id),
    ):
        call()
        now = {block.id: block for block in house.blocks()}
        assert {id_: now[id_] for id_ in kept} == kept


@pytest.mark.req("MESH-012")
def test_blocks_of_other_agents_lose_their_text_too_and_every_chain_verifies_by_itself(
    house: House,
) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    record = ann.add(f"{SECRET} text")
    bob.update(record.id, content=f"{SECRET} changed")
    cat = house.mesh("cat")
    proof = cat.erase(record.id)
    assert SECRET not in all_text(house)
    assert [block.yamo_text == "erased" for block in house.blocks("ann")] == [True, False]
    assert [block.yamo_text == "erased" for block in house.blocks("bob")] == [True, False]
    assert [block.metadata for block in house.blocks("cat")] == [{"action": "erase"}]
    assert len(proof.blocks) == 3
    assert house.sound()
    assert len(house.mesh().verify()) == 3


def test_erasing_twice_in_one_chain_keeps_it_whole(house: House, mesh: MemoryMesh) -> None:
    ids = [mesh.add(f"text {n}").id for n in range(4)]
    for id_ in ids[::2]:
        mesh.delete(id_)
        assert house.sound()
    assert sorted(record.id for record in mesh.get_all()) == sorted(ids[1::2])
    assert mesh.add("text 0").id not in ids


# --- what was drawn from it ---


def drawn(mesh: MemoryMesh, text: str, *sources: str) -> str:
    record = mesh.add(text, {"type": "reflection"})
    # Through the flow, so that the change is sealed.
    return write.set_columns(mesh._context(), record.id, action="draw", sources=list(sources)).id


@pytest.mark.req("MESH-011")
def test_what_was_drawn_from_it_alone_goes_with_it_all_the_way_down(
    house: House, mesh: MemoryMesh
) -> None:
    source = mesh.add("source").id
    lesson = drawn(house.mesh("bob"), "lesson", source)
    digest = drawn(mesh, "digest", lesson)
    both = drawn(mesh, "of both", source, digest)
    apart = drawn(mesh, "apart", "elsewhere")
    proof = mesh.erase(source)
    assert set(proof.memories) == {source, lesson, digest, both}
    assert [record.id for record in mesh.get_all()] == [apart]
    assert house.sound()


@pytest.mark.req("MESH-011")
def test_what_was_drawn_from_others_too_stays_until_the_last_of_them_goes(
    house: House, mesh: MemoryMesh
) -> None:
    one, other = mesh.add("one").id, mesh.add("other").id
    digest = drawn(mesh, "digest", one, other)
    assert mesh.erase(one).memories == (one,)
    kept = mesh.get(digest)
    assert (kept.content, kept.sources) == ("digest", [other])
    change = mesh.history(digest)[-1]
    assert (change.action, change.before) == ("source_erased", {"sources": [one, other]})
    assert set(mesh.erase(other).memories) == {other, digest}
    assert mesh.get_all() == []
    assert house.sound()


def test_memories_drawn_from_each_other_are_no_endless_loop(house: House, mesh: MemoryMesh) -> None:
    one, other = mesh.add("one").id, mesh.add("other").id
    house.change(one, sources=[other])
    house.change(other, sources=[one])
    itself = drawn(mesh, "itself")
    house.change(itself, sources=[itself])
    assert set(mesh.erase(one).memories) == {one, other}
    assert mesh.erase(itself).memories == (itself,)


def test_what_another_user_drew_is_not_touched(house: House, mesh: MemoryMesh) -> None:
    source = mesh.add("source").id
    foreign = drawn(house.mesh("ann", user_id="u"), "foreign", source)
    assert mesh.erase(source).memories == (source,)
    assert house.memory(foreign).sources == [source]


# --- all of a scope ---


@pytest.fixture
def full(house: House) -> House:
    ann, bob, other = house.mesh("ann"), house.mesh("bob"), house.mesh("ann", user_id="u")
    for mesh, name in ((ann, "ann"), (bob, "bob"), (other, "other")):
        mesh.add_many(
            [
                (f"{name} open", None),
                (f"{name} own", {"type": "agent"}),
                (f"{name} said", {"type": "session", "session_id": "s1"}),
                (f"{name} grouped", {"session_id": "s1", "project": "p"}),
                (f"{name} lesson", {"type": "lesson", "project": "q"}),
            ]
        )
    return house


SCOPES = {
    "agent": (
        {"agent_id": "bob"},
        ["bob grouped", "bob lesson", "bob open", "bob own", "bob said"],
    ),
    "session": ({"session_id": "s1"}, ["ann grouped", "ann said", "bob grouped", "bob said"]),
    "project": ({"project": "p"}, ["ann grouped", "bob grouped"]),
    "type": ({"memory_type": "agent"}, ["ann own", "bob own"]),
    "two": ({"agent_id": "ann", "memory_type": "lesson"}, ["ann lesson"]),
    "all three": ({"agent_id": "ann", "session_id": "s1", "project": "p"}, ["ann grouped"]),
    "nobody": ({"agent_id": "nobody"}, []),
}


@pytest.mark.parametrize("what", SCOPES)
def test_delete_all_erases_the_scope_of_whatever_agent_and_no_more(full: House, what: str) -> None:
    scope, gone = SCOPES[what]
    everything = {memory.content: memory.id for memory in full.memories()}
    proof = full.mesh("ann").delete_all(**scope)
    left = {memory.content for memory in full.memories()}
    assert sorted(everything.keys() - left) == gone
    assert set(proof.memories) == {everything[text] for text in gone}
    assert proof.rows >= len(gone)
    assert len(proof.tombstones) == len(gone)
    assert proof.bytes_freed
    assert full.sound()


def test_delete_all_of_the_user_leaves_other_users_alone(full: House) -> None:
    full.mesh("cat", user_id="u").delete_all(user_id="u")
    assert {memory.user_id for memory in full.memories()} == {None}
    assert len(full.memories()) == 10
    assert all(
        not isinstance(verdict, Broken) for verdict in full.mesh("cat", user_id="u").verify()
    )


def test_delete_all_refuses_an_empty_scope_and_another_user(full: House) -> None:
    mesh = full.mesh("ann")
    for refused in ({}, {"agent_id": None, "project": None}):
        with pytest.raises(InvalidInput, match="no id, key or scope is given; expected an id"):
            mesh.delete_all(**refused)
    for refused in ({"user_id": "v"}, {"user_id": "v", "agent_id": "ann"}, {"user_id": " "}):
        with pytest.raises(InvalidInput, match=r"user_id is (empty|not the user of this mesh)"):
            full.mesh("ann", user_id="u").delete_all(**refused)
    assert len(full.memories()) == 15


@pytest.mark.parametrize(
    "scope",
    [
        {"agent_id": 5},
        {"project": "half \ud800"},
        {"session_id": ["s1"]},
        {"memory_type": "agnet"},
        {"memory_type": ""},
        {"agent_id": False},
    ],
)
def test_a_scope_that_cannot_be_meant_is_an_error_and_no_empty_proof(
    full: House, scope: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        full.mesh("ann").delete_all(**scope)
    assert len(full.memories()) == 15


def test_delete_all_takes_every_status_and_what_has_expired(house: House, mesh: MemoryMesh) -> None:
    ids = [mesh.add(f"text {n}", {"project": "p", "expires_at": "2026-01-02"}).id for n in range(3)]
    house.change(ids[0], status="archived")
    house.change(ids[1], status="quarantined")
    house.clock.advance(days=9)
    assert set(mesh.delete_all(project="p").memories) == set(ids)


def test_delete_all_goes_on_until_nothing_is_left(
    house: House, mesh: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "_AT_ONCE", 10)
    ids = [
        record.id for record in mesh.add_many([(f"text {n}", {"project": "p"}) for n in range(45)])
    ]
    # Drawn from the oldest and the newest, which are not erased in the same step.
    digest = drawn(mesh, "digest", ids[0], ids[-1])
    proof = mesh.delete_all(project="p")
    assert set(proof.memories) == {*ids, digest}
    assert house.memories() == []
    assert house.sound()


# --- without audit blocks ---


def test_a_mesh_that_writes_no_blocks_still_tells_of_the_tombstones_it_makes(house: House) -> None:
    audited, quiet = house.mesh("ann"), house.mesh("bob", enable_yamo=False)
    record = audited.add(f"{SECRET} text")
    own = quiet.add("never told")
    assert quiet.erase(own.id).blocks == ()
    quiet.delete(record.id)
    assert SECRET not in all_text(house)
    assert [block.metadata for block in house.blocks("ann")] == [None, {"action": "erase"}]
    assert house.blocks("bob") == []
    assert house.sound()


# --- races ---


def test_a_revision_made_while_erasing_does_not_outlive_it(house: House, mesh: MemoryMesh) -> None:
    """Another agent changes the memory, and moves it, between the reading and the writing of the
    erasure."""
    id_ = mesh.add(f"{SECRET} text").id
    other = house.mesh("ann")
    find, met = house.store.find, []

    def meddled(kind: Kind, *args: object, **options: object) -> list[Row]:
        rows = find(kind, *args, **options)
        if kind is Kind.MEMORY and len(met) < 4 and any(row.id == id_ for row in rows):
            met.append(kind)
            wanted = "agent" if len(met) % 2 else "global"
            house.store.find = find
            other.update(id_, content=f"{SECRET} changed {len(met)}", metadata={"type": wanted})
            house.store.find = meddled
        return rows

    house.store.find = meddled
    mesh.delete(id_)
    house.store.find = find
    assert len(met) == 4
    assert SECRET not in all_text(house)
    assert house.sound()


def test_two_erasures_at_once_are_one(house: House, mesh: MemoryMesh) -> None:
    id_ = mesh.add("text").id
    apply, met = house.store.apply, []

    def meddled(*args: object, **options: object) -> object:
        if not met:
            met.append(True)
            house.mesh("ann").delete(id_)
        return apply(*args, **options)

    house.store.apply = meddled
    assert mesh.erase(id_).memories == ()
    assert len(house.blocks()) == 2
    assert house.sound()


def test_a_proof_adds_up() -> None:
    from memory_mesh import Forgotten

    one = Forgotten(memories=("a",), rows=2, tombstones=("t",), blocks=("b",))
    assert one + replace(one, bytes_freed=False) == Forgotten(
        memories=("a", "a"), rows=4, tombstones=("t", "t"), blocks=("b", "b"), bytes_freed=False
    )
