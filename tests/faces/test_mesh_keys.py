"""Idempotency keys: a call repeated with its key is done once."""

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput, KeyReused, NotFound
from memory_mesh.core.model import Kind

from .house import House


def test_a_repeated_add_stores_once_and_counts_no_sighting(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add("text", {"a": 1}, idempotency_key="k")
    house.clock.advance(days=1)
    older = first.changed(trust=0.499726)  # of a day later
    assert mesh.add("text", {"a": 1}, idempotency_key="k") == older
    assert mesh.ingest("text", {"a": 1}, idempotency_key="k") == older
    assert mesh.get(first.id).times_observed == 1
    assert len(house.memories()) == len(house.blocks()) == 1
    assert mesh.add("text", {"a": 1}, idempotency_key="other").times_observed == 2


@pytest.mark.parametrize(
    ("content", "metadata"),
    [("other", {"a": 1}), ("text", {"a": 2}), ("text", None), ("Text", {"a": 1})],
)
def test_another_request_under_the_same_key_is_an_error(
    house: House, mesh: MemoryMesh, content: str, metadata: dict[str, object] | None
) -> None:
    mesh.add("text", {"a": 1}, idempotency_key="k")
    with pytest.raises(KeyReused, match="another request"):
        mesh.add(content, metadata, idempotency_key="k")
    assert len(house.memories()) == len(house.blocks()) == 1


def test_the_order_of_keys_in_the_metadata_makes_no_other_request(mesh: MemoryMesh) -> None:
    first = mesh.add("text", {"a": 1, "b": {"c": 1, "d": 2}}, idempotency_key="k")
    assert mesh.add("text", {"b": {"d": 2, "c": 1}, "a": 1}, idempotency_key="k") == first


def test_keys_of_two_agents_or_users_never_meet(house: House) -> None:
    writers = [
        house.mesh("ann"),
        house.mesh("bob"),
        house.mesh("ann", user_id="u"),
        house.mesh("u"),
    ]
    ids = {writer.add(f"text {n}", idempotency_key="k").id for n, writer in enumerate(writers)}
    assert len(ids) == 4


@pytest.mark.parametrize("key", ["", "  ", 5, b"k", ["k"], True])
def test_a_key_is_text_that_is_not_blank(house: House, mesh: MemoryMesh, key: object) -> None:
    for call in (
        lambda: mesh.add("text", idempotency_key=key),
        lambda: mesh.add_many([("a", None), ("b", None)], idempotency_key=key),
    ):
        with pytest.raises(InvalidInput, match="idempotency_key"):
            call()
    assert house.memories() == []


@pytest.mark.parametrize(
    "key", ["k", "k" * 10_000, "'; DROP TABLE records; --", "\ud800 half", "\0", "#0"]
)
def test_any_other_text_is_a_key(mesh: MemoryMesh, key: str) -> None:
    assert mesh.add("text", idempotency_key=key) == mesh.add("text", idempotency_key=key)


# --- many ---


def test_each_of_many_has_a_key_of_its_own(house: House, mesh: MemoryMesh) -> None:
    items = [("one", None), ("two", None), ("one", None)]
    first = mesh.add_many(items, idempotency_key="k")
    again = mesh.add_many(items, idempotency_key="k")
    assert [record.id for record in again] == [record.id for record in first]
    assert {memory.content: memory.times_observed for memory in house.memories()} == {
        "one": 2,
        "two": 1,
    }
    with pytest.raises(KeyReused):
        mesh.add_many([("one", None), ("other", None)], idempotency_key="k")
    assert len(house.memories()) == 2


def test_a_batch_that_grew_stores_only_what_is_new(house: House, mesh: MemoryMesh) -> None:
    mesh.add_many([("one", None), ("two", None)], idempotency_key="k")
    mesh.add_many([("one", None), ("two", None), ("three", None)], idempotency_key="k")
    assert sorted(memory.content for memory in house.memories()) == ["one", "three", "two"]
    assert {memory.times_observed for memory in house.memories()} == {1}


def test_one_bad_key_in_a_batch_stores_nothing(house: House, mesh: MemoryMesh) -> None:
    mesh.add_many([("one", None), ("two", None)], idempotency_key="k")
    with pytest.raises(KeyReused):
        mesh.add_many([("new", None), ("two", None), ("three", None)], idempotency_key="k")
    assert sorted(memory.content for memory in house.memories()) == ["one", "two"]


def test_what_a_key_stored_is_no_duplicate_of_what_came_after_it_ended(
    house: House, mesh: MemoryMesh
) -> None:
    items = [("soon gone", {"expires_at": "2026-01-02"}), ("stays", None)]
    first = mesh.add_many(items, idempotency_key="k")
    house.clock.advance(days=2)
    again = mesh.add_many([*items, ("soon gone", None)], idempotency_key="k")
    assert [record.id for record in again[:2]] == [record.id for record in first]
    assert again[2].id != first[0].id
    assert house.memory(first[0].id).times_observed == 1


# --- what has become of it since ---


def test_a_repeated_call_answers_with_what_the_memory_is_now(mesh: MemoryMesh) -> None:
    first = mesh.add("text", idempotency_key="k")
    mesh.update(first.id, content="changed")
    assert mesh.add("text", idempotency_key="k").content == "changed"


def test_a_key_is_answered_even_where_its_memory_is_out_of_sight(
    house: House, mesh: MemoryMesh
) -> None:
    inside = house.mesh(session_id="s1")
    first = mesh.add("text", {"type": "session", "session_id": "s1"}, idempotency_key="k")
    assert mesh.get(first.id) is None
    inside.update(first.id, content="changed")
    assert (
        mesh.add("text", {"type": "session", "session_id": "s1"}, idempotency_key="k").id
        == first.id
    )


def test_after_an_erasure_a_key_brings_nothing_back(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add("text", idempotency_key="k")
    mesh.delete(first.id)
    with pytest.raises(KeyReused, match="erased"):
        mesh.add("text", idempotency_key="k")
    assert house.memories() == []
    (receipt,) = house.store.find(Kind.RECEIPT)
    assert receipt.value("request") is None  # what was asked is forgotten too
    assert mesh.add("text", idempotency_key="new").id != first.id


def test_a_receipt_that_names_nothing_kept_is_no_answer(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add("text", idempotency_key="k")
    house.store.apply((), [house.memory(first.id).row().key])
    with pytest.raises(NotFound):
        mesh.add("text", idempotency_key="k")


# --- updates ---


def test_a_repeated_update_is_done_once(house: House, mesh: MemoryMesh) -> None:
    id_ = mesh.add("text").id
    mesh.update(id_, content="one", idempotency_key="k")
    mesh.update(id_, content="two")
    assert mesh.update(id_, content="one", idempotency_key="k").content == "two"
    assert mesh.get(id_).revision == 3


def test_another_update_under_the_same_key_is_an_error(mesh: MemoryMesh) -> None:
    one, other = mesh.add("one").id, mesh.add("other").id
    mesh.update(one, content="changed", idempotency_key="k")
    for call in (
        lambda: mesh.update(other, content="changed", idempotency_key="k"),
        lambda: mesh.update(one, content="changed otherwise", idempotency_key="k"),
        lambda: mesh.update(one, content="changed", metadata={"a": 1}, idempotency_key="k"),
        lambda: mesh.add("changed", idempotency_key="k"),
    ):
        with pytest.raises(KeyReused):
            call()


def test_an_update_that_changed_nothing_has_used_its_key_all_the_same(mesh: MemoryMesh) -> None:
    id_ = mesh.add("text").id
    mesh.update(id_, content="text", idempotency_key="k")
    mesh.update(id_, content="other")
    assert mesh.update(id_, content="text", idempotency_key="k").content == "other"


def test_an_update_under_a_key_of_what_is_erased_finds_nothing(mesh: MemoryMesh) -> None:
    id_ = mesh.add("text").id
    mesh.update(id_, content="changed", idempotency_key="k")
    mesh.delete(id_)
    with pytest.raises(NotFound):
        mesh.update(id_, content="changed", idempotency_key="k")


def test_a_session_learns_nothing_of_the_keys_of_another(house: House) -> None:
    mine, theirs = house.mesh(session_id="s1"), house.mesh(session_id="s2")
    hidden = theirs.add("the door code is blue horse", {"type": "session"}, idempotency_key="k")
    assert (
        theirs.add("the door code is blue horse", {"type": "session"}, idempotency_key="k").id
        == hidden.id
    )
    with pytest.raises(KeyReused):
        theirs.add("another text", idempotency_key="k")
    guess = mine.add("the door code is blue horse", {"type": "session"}, idempotency_key="k")
    assert (guess.id == hidden.id, guess.session_id, guess.times_observed) == (False, "s1", 1)
    assert (
        mine.update(guess.id, content="a text of my own", idempotency_key="u").content
        == "a text of my own"
    )
    theirs.delete(hidden.id)
    assert (
        mine.add("the door code is blue horse", {"type": "session"}, idempotency_key="k").id
        == guess.id
    )
