"""The same text from many agents and sessions: one memory that keeps who stored it, and what
remains when a scope is erased."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import InvalidInput, MemoryMesh, NotFound, Sound
from memory_mesh.core.intake import Draft, NewText, fingerprints
from memory_mesh.core.model import Kind, Reader
from memory_mesh.flows.write import write
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import RecordingEmbedder

from .house import House, texts

TEA = "Tea is at four."


class Narrow(HashingEmbedder):
    """As a real model: it sees the first words of a text only."""

    window = 128


def all_text(house: House) -> str:
    """Everything that the store still says, of any kind, besides the names of audit chains."""
    kinds = [kind for kind in Kind if kind is not Kind.HEAD]
    hidden = ("chain", "agent_id")
    rows = [row for kind in kinds for row in house.store.find(kind)]
    return json.dumps(
        [
            [row.id, {name: row.fields[name] for name in row.fields if name not in hidden}]
            for row in rows
        ]
    )


def sound(house: House) -> bool:
    """Whether no chain is broken; without audit blocks there is none."""
    return all(isinstance(verdict, Sound) for verdict in house.mesh().verify())


def said(*found: Any) -> str:
    """Everything that these records say."""
    records = [record for one in found for record in (one if isinstance(one, list) else [one])]
    return json.dumps([asdict(record) for record in records])


def sources(mesh: MemoryMesh, id_: str) -> dict[tuple[str | None, str | None], int]:
    return {(one.agent_id, one.session_id): one.times_observed for one in mesh.sightings(id_)}


# --- what is one memory ---

HOME = {"user_id": "u", "agent_id": "ann", "session_id": "s1", "project": "p"}
# Of each type: what may differ between two authors of one memory.
MAY_DIFFER = {
    "global": {"agent_id", "session_id"},
    "reflection": {"agent_id", "session_id"},
    "event": {"agent_id", "session_id"},
    "agent": {"session_id"},
    "session": set(),
}


def add_as(house: House, text: str, scope: dict[str, str], **metadata: object) -> Any:
    reader = {name: scope[name] for name in ("user_id", "agent_id", "session_id")}
    return house.mesh(**reader).add(text, {"project": scope["project"], **metadata})


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize(
    "differs", [(), *((name,) for name in HOME), ("agent_id", "session_id")], ids=str
)
@pytest.mark.parametrize("type_", MAY_DIFFER)
def test_a_text_is_one_memory_for_all_who_share_its_visibility(
    house: House, type_: str, differs: tuple[str, ...]
) -> None:
    first = add_as(house, TEA, HOME, type=type_)
    again = add_as(
        house, "tea Is at  four.", {**HOME, **dict.fromkeys(differs, "other")}, type=type_
    )
    one = {*differs} <= MAY_DIFFER[type_]
    assert (again.id == first.id) is one
    assert again.times_observed == (2 if one else 1)
    assert len(house.memories()) == (1 if one else 2)
    assert sound(house)


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("turn", [{"speaker": "bob"}, {"turn": 4}, {"turn": "4"}])
def test_turns_of_two_sessions_stay_two(house: House, turn: dict[str, object]) -> None:
    first, second = (house.mesh(session_id=session).add("Thanks", turn) for session in ("s1", "s2"))
    assert first.id != second.id
    assert house.mesh("bob", session_id="s1").add("thanks", turn).id == first.id


def test_a_forged_fingerprint_neither_loses_a_text_nor_crosses_a_scope(
    house: House, mesh: MemoryMesh
) -> None:
    kept = {
        name: house.memory(mesh.add(TEA, given).id)
        for name, given in {"own": {}, "agent": {"type": "agent"}}.items()
    }
    house.change(kept["agent"].id, fingerprint=kept["own"].fingerprint)
    mesh.delete(kept["own"].id)
    assert house.mesh("bob").add(TEA).id != kept["agent"].id


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize(("one", "other"), [("Use -v.", "Use -V."), ("Call us.", "Call US.")])
def test_texts_that_differ_in_case_that_counts_are_found_both(
    house: House, one: str, other: str
) -> None:
    mesh = house.mesh()
    kept = [mesh.add(text).id for text in (one, other, one, other)]
    assert len({*kept}) == 2
    assert {found.content for found in mesh.search(one)} == {one, other}


@pytest.mark.req("MESH-078")
def test_a_fingerprint_that_ignores_case_finds_its_own_text_only(house: House) -> None:
    mesh = house.mesh()
    old = mesh.add("Use -V.")
    ignores_case = fingerprints(
        Reader(old.user_id, old.agent_id), Draft(content="Use -V.", metadata={})
    )[1]
    house.change(old.id, fingerprint=ignores_case)  # as earlier versions stored it
    other = mesh.add("Use -v.")
    assert other.id != old.id
    assert house.memory(other.id).fingerprint == ignores_case
    for _ in range(2):
        assert [mesh.add(text).id for text in ("Use -V.", "use -v.")] == [old.id, other.id]
    assert house.memory(old.id).fingerprint != ignores_case


# --- sightings ---


@pytest.mark.req("MESH-078")
def test_a_memory_keeps_who_stored_it_when_and_how_often(house: House) -> None:
    ann, bob = house.mesh("ann", session_id="s1"), house.mesh("bob", session_id="s2")
    first = ann.add(TEA, {"source": "a.md"})
    assert house.store.count(Kind.SIGHTING) == 0  # the memory itself says it
    assert sources(bob, first.id) == {("ann", "s1"): 1}
    for _ in range(2):
        house.clock.advance(days=1)
        assert bob.add(TEA, {"source": "b.md"}).id == first.id
    house.clock.advance(days=1)
    last = ann.add(TEA)
    assert (last.times_observed, last.agent_id, last.metadata) == (4, "ann", {"source": "a.md"})
    own, other = ann.sightings(first.id)
    assert (own.agent_id, own.session_id, own.times_observed, own.created_at) == (
        "ann",
        "s1",
        2,
        first.created_at,
    )
    assert (other.created_at, other.last_observed) == (
        "2026-01-02T00:00:00.000Z",
        "2026-01-03T00:00:00.000Z",
    )
    assert (own.last_observed, own.metadata, other.metadata) == (
        last.last_observed,
        {"source": "a.md"},
        {"source": "b.md"},
    )
    assert house.store.count(Kind.SIGHTING) == 2
    assert [change.agent_id for change in ann.history(first.id)] == ["ann", "bob", "bob", "ann"]
    assert [len(house.blocks(name)) for name in ("ann", "bob")] == [2, 2]
    assert house.sound()


def test_sightings_of_what_a_reader_cannot_see_are_not_shown(house: House) -> None:
    kept = house.mesh("ann").add(TEA, {"type": "agent"})
    assert sources(house.mesh("ann"), kept.id) == {("ann", None): 1}
    for hidden in (kept.id, "mem_1_ffffff"):
        with pytest.raises(NotFound):
            house.mesh("bob").sightings(hidden)


def test_one_call_counts_every_session_that_it_names(house: House, mesh: MemoryMesh) -> None:
    records = mesh.add_many([(TEA, {"session_id": f"s{n % 2}"}) for n in range(5)])
    assert {record.id for record in records} == {records[0].id}
    assert sources(mesh, records[0].id) == {("ann", "s0"): 3, ("ann", "s1"): 2}
    assert mesh.get(records[0].id).times_observed == 5
    assert house.sound()


def test_a_memory_made_visible_to_all_does_not_show_what_its_sightings_said_before(
    house: House,
) -> None:
    ann = house.mesh("ann", session_id="s1")
    kept = ann.add(TEA, {"type": "agent"})
    house.mesh("ann", session_id="s2").add(TEA, {"type": "agent", "note": "zanzibar"})
    assert "zanzibar" in said(ann.sightings(kept.id))
    ann.update(kept.id, metadata={"type": "global"})
    bob = house.mesh("bob")
    assert sources(bob, kept.id) == {("ann", "s1"): 1}
    assert "zanzibar" not in said(
        bob.get(kept.id), bob.history(kept.id), bob.sightings(kept.id), bob.audit_log(limit=100)
    )
    assert house.sound()


@pytest.mark.parametrize(
    ("stored", "again", "best"),
    [(0.5, 0.85, 0.85), (0.85, 0.5, 0.85), (0.5, None, 0.5), (None, 0.5, None)],
)
def test_the_trust_of_a_memory_is_that_of_its_best_author(
    house: House, stored: float | None, again: float | None, best: float | None
) -> None:
    def add(agent: str, trust: float | None) -> str:
        context = house.mesh(agent)._context()
        prepared = write.prepare(context, [NewText(TEA, trust=trust)], request=agent)
        return write.commit(context, lambda: write.plan_add(context, prepared, write.Vectors()))[
            0
        ].id

    kept = add("ann", stored)
    assert add("bob", again) == kept
    assert house.memory(kept).trust == best
    house.mesh().delete_all(agent_id="ann")
    assert house.memory(kept).trust == again


def test_what_an_author_stores_for_good_does_not_expire_with_what_another_stored(
    house: House,
) -> None:
    first = house.mesh("ann").add(TEA, {"expires_at": "2026-01-03"})
    assert (
        house.mesh("bob").add(TEA, {"expires_at": "2026-01-05"}).expires_at
        == "2026-01-05T00:00:00.000Z"
    )
    assert house.mesh("cid").add(TEA).id == first.id
    house.clock.advance(days=9)
    assert texts(house.mesh("cid").get_all()) == [TEA]


# --- erasing a scope ---

ERASE: dict[str, Callable[[MemoryMesh], Any]] = {
    "session": lambda mesh: mesh.delete_all(session_id="s1"),
    "agent": lambda mesh: mesh.delete_all(agent_id="ann"),
    "agent and session": lambda mesh: mesh.delete_all(agent_id="ann", session_id="s1"),
    "within a type": lambda mesh: mesh.delete_all(agent_id="ann", memory_type="global"),
}


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("audited", [True, False])
@pytest.mark.parametrize("scope", ERASE)
def test_a_memory_passes_to_the_next_who_stored_it(house: House, scope: str, audited: bool) -> None:
    ann = house.mesh("ann", session_id="s1", enable_yamo=audited)
    kept = ann.add(
        TEA, {"source": "zanzibar", "tags": ["zanzibar"], "session_id": "s1"}, idempotency_key="k"
    )
    house.clock.advance(days=1)
    bob = house.mesh("bob", session_id="s2", enable_yamo=audited)
    bob.add(TEA, {"source": "b.md", "importance": "high"})
    ann.update(kept.id, metadata={"note": "zanzibar"}, why="zanzibar")
    ann.add(TEA, {"seen": "zanzibar"})
    assert "zanzibar" in all_text(house)
    proof = ERASE[scope](house.mesh("cid", enable_yamo=audited))
    assert (proof.memories, proof.kept) == ((), (kept.id,))
    assert "zanzibar" not in all_text(house)
    found = bob.get(kept.id)
    assert (found.content, found.agent_id, found.session_id, found.times_observed) == (
        TEA,
        "bob",
        "s2",
        1,
    )
    assert (found.metadata, found.importance, found.tags) == (
        {"source": "b.md", "importance": "high"},
        0.75,
        [],
    )
    assert found.created_at == "2026-01-02T00:00:00.000Z"
    assert sources(bob, kept.id) == {("bob", "s2"): 1}
    assert [hit.id for hit in bob.search("when is tea")] == [kept.id]
    assert [change.action for change in bob.history(kept.id)] == ["add"]
    assert sound(house)
    bob.update(kept.id, content="Tea is at five.")
    assert sound(house)
    assert bob.delete_all(agent_id="bob").memories == (kept.id,)
    assert house.memories() == []
    assert house.store.count(Kind.SIGHTING) == 0
    assert sound(house)


@pytest.mark.req("MESH-078")
def test_erasing_another_scope_takes_only_its_sighting(house: House) -> None:
    ann, bob = house.mesh("ann", session_id="s1"), house.mesh("bob", session_id="s2")
    kept = ann.add(TEA, {"source": "a.md"})
    ann.pin(kept.id)
    last = ann.add(TEA)
    house.clock.advance(days=1)
    for _ in range(3):
        bob.add(TEA, {"note": "zanzibar"})
    assert "zanzibar" in all_text(house)
    assert ann.delete_all(session_id="s2").kept == (kept.id,)
    assert "zanzibar" not in all_text(house)
    found = ann.get(kept.id)
    assert (found.agent_id, found.pinned, found.times_observed, found.last_observed) == (
        "ann",
        True,
        2,
        last.last_observed,
    )
    assert [change.action for change in ann.history(kept.id)][:2] == ["add", "pin"]
    assert sources(ann, kept.id) == {("ann", "s1"): 2}
    assert house.sound()
    assert ann.delete_all(session_id="s2").kept == ()


def test_a_scope_that_names_more_than_its_author_is_kept_apart(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    p, q = (ann.add(TEA, {"project": name}).id for name in ("p", "q"))
    bob.add_many([(TEA, {"project": name}) for name in ("p", "q")])
    assert ann.delete_all(agent_id="ann", project="p").kept == (p,)
    assert [house.memory(id_).agent_id for id_ in (p, q)] == ["bob", "ann"]
    assert ann.delete_all(project="q").memories == (q,)
    assert house.sound()


def test_a_memory_that_is_deleted_goes_with_all_its_sightings(house: House) -> None:
    kept = house.mesh("ann").add(TEA)
    house.mesh("bob").add(TEA)
    assert house.store.count(Kind.SIGHTING) == 2
    house.mesh("bob").delete(kept.id)
    assert (house.memories(), house.store.count(Kind.SIGHTING)) == ([], 0)
    assert house.sound()


def test_a_text_that_was_changed_belongs_to_its_owner_alone(house: House) -> None:
    kept = house.mesh("ann").add(TEA)
    house.mesh("bob").add(TEA)
    house.mesh("ann").update(kept.id, content="Tea is at five.")
    assert sources(house.mesh("bob"), kept.id) == {("ann", None): 1}
    assert house.mesh("ann").delete_all(agent_id="ann").memories == (kept.id,)
    assert house.store.count(Kind.SIGHTING) == 0
    assert house.sound()


def test_a_long_memory_that_passes_on_keeps_its_passages(house: House) -> None:
    long = "\n\n".join(
        f"Paragraph {n} is about hall {n} and its lamps and doors." for n in range(30)
    )
    embedder = RecordingEmbedder(Narrow())
    ann, bob = (house.mesh(name, embedder=embedder) for name in ("ann", "bob"))
    kept = ann.add(long, {"source": "a.md"})
    bob.add(long, {"source": "b.md"})
    before = house.store.count(Kind.PASSAGE)
    assert before > 1
    embedded = len(embedder.texts)
    ann.delete_all(agent_id="ann")
    passages = house.store.find(Kind.PASSAGE)
    assert len(passages) == before
    assert {(row.value("agent_id"), row.value("source")) for row in passages} == {("bob", "b.md")}
    assert len(embedder.texts) == embedded
    assert bob.search("hall lamps doors")[0].id == kept.id


AGENTS, SESSIONS, TEXTS = ("ann", "bob"), ("s1", "s2", None), ("tea", "cake")
STEPS = st.one_of(
    st.tuples(
        st.just("add"), st.sampled_from(AGENTS), st.sampled_from(SESSIONS), st.sampled_from(TEXTS)
    ),
    st.tuples(st.just("agent"), st.sampled_from(AGENTS)),
    st.tuples(st.just("session"), st.sampled_from(SESSIONS[:2])),
)


@pytest.mark.req("MESH-078")
@given(steps=st.lists(STEPS, max_size=14))
def test_what_is_left_is_exactly_what_has_a_sighting_left(steps: list[tuple[Any, ...]]) -> None:
    store = open_store("memory://")
    house, expected = House(store), Counter[tuple[str, str, str | None]]()
    for what, *arguments in steps:
        if what == "add":
            agent, session, text = arguments
            house.mesh(agent, session_id=session).add(text, {"by": f"{agent} {session}"})
            expected[text, agent, session] += 1
        else:
            (name,) = arguments
            house.mesh().delete_all(**{f"{what}_id": name})
            at = 1 if what == "agent" else 2
            expected = Counter({key: times for key, times in expected.items() if key[at] != name})
    found = {
        (record.content, agent, session): times
        for record in house.mesh().get_all()
        for (agent, session), times in sources(house.mesh(), record.id).items()
    }
    assert found == expected
    for record in house.mesh().get_all():
        assert record.times_observed == sum(
            times for key, times in expected.items() if key[0] == record.content
        )
        assert record.metadata == {"by": f"{record.agent_id} {record.session_id}"}
    assert sound(house)
    store.close()


# --- keys ---


def test_a_key_replaces_what_is_stored_under_it(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add(
        "Ana likes tea.", {"source": "a", "tags": ["x"], "importance": "high"}, key="profile"
    )
    house.clock.advance(days=1)
    second = mesh.add("Ana likes coffee.", {"source": "b"}, key="profile")
    assert (second.id, second.key, second.revision, second.times_observed) == (
        first.id,
        "profile",
        2,
        1,
    )
    assert (second.metadata, second.tags, second.importance) == ({"source": "b"}, [], None)
    assert (second.created_at, second.updated_at) == (first.created_at, "2026-01-02T00:00:00.000Z")
    assert [(change.action, change.before.get("content")) for change in mesh.history(first.id)] == [
        ("add", None), ("replace", "Ana likes tea."),
    ]  # fmt: skip
    assert [len(mesh.search(word)) for word in ("coffee", "tea")] == [1, 0]
    assert [block.metadata["action"] for block in house.blocks()] == ["add", "replace"]
    assert house.sound()


def test_the_same_under_a_key_is_counted(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add("Ana likes tea.", {"source": "a"}, key="profile")
    again = mesh.add("Ana likes tea.", {"source": "a"}, key="profile")
    assert (again.id, again.times_observed) == (first.id, 2)
    assert mesh.add("Ana likes tea.", {"source": "b"}, key="profile").metadata == {"source": "b"}


@pytest.mark.req("MESH-078")
def test_a_memory_with_a_key_is_never_merged_with_an_equal_text(
    house: House, mesh: MemoryMesh
) -> None:
    ids = [
        mesh.add(TEA, key="one").id,
        mesh.add(TEA).id,
        mesh.add(TEA, key="two").id,
        mesh.add(TEA, key="ONE").id,
    ]
    assert len({*ids}) == 4
    assert mesh.add(TEA).id == ids[1]
    assert [house.memory(id_).times_observed for id_ in ids] == [1, 2, 1, 1]


@pytest.mark.parametrize("differs", [(), *((name,) for name in HOME)], ids=str)
@pytest.mark.parametrize("type_", ["global", "agent", "session"])
def test_a_key_is_one_within_user_project_and_visibility(
    house: House, type_: str, differs: tuple[str, ...]
) -> None:
    def add(text: str, scope: dict[str, str]) -> str:
        reader = {name: scope[name] for name in ("user_id", "agent_id", "session_id")}
        return (
            house.mesh(**reader).add(text, {"project": scope["project"], "type": type_}, key="k").id
        )

    first = add("one", HOME)
    second = add("two", {**HOME, **dict.fromkeys(differs, "other")})
    assert (first == second) is ({*differs} <= MAY_DIFFER[type_])
    assert texts(house.memories()) == (["two"] if first == second else ["one", "two"])


def test_keys_and_metadata_can_be_filtered_by(mesh: MemoryMesh) -> None:
    mesh.add_many([("plain tea", {"source": "a.md", "count": 3})])
    mesh.add("keyed tea", {"source": "b.md"}, key="profile")
    for filter_, found in {
        "key = 'profile'": ["keyed tea"], "key IS NULL": ["plain tea"],
        "key LIKE 'pro%'": ["keyed tea"], "metadata.source = 'a.md'": ["plain tea"],
        "metadata.count > 2": ["plain tea"], "metadata.none = 'x'": [],
    }.items():  # fmt: skip
        assert texts(mesh.get_all(filter=filter_)) == found
        assert texts(mesh.search("tea", filter=filter_)) == found


def test_a_key_that_would_be_masked_still_tells_two_people_apart(
    house: House, mesh: MemoryMesh
) -> None:
    ana, bob = (
        mesh.add(f"{name} likes tea", key=f"profile of {name}@example.com")
        for name in ("ana", "bob")
    )
    assert ana.id != bob.id
    assert mesh.add("ana likes cake", key="profile of ana@example.com").id == ana.id
    assert mesh.update(ana.id, metadata={"project": "p"}).key == ana.key
    assert (
        mesh.add("ana likes pie", {"project": "p"}, key="profile of ana@example.com").id == ana.id
    )
    assert "example.com" not in all_text(house)


def test_a_memory_is_read_and_erased_by_its_key_in_its_own_scope(house: House) -> None:
    mesh = house.mesh()
    key = "profile of ana@example.com"  # stored masked
    mesh.add("Ana likes tea.", key=key)
    latest = mesh.add("Ana likes coffee.", key=key)
    other = mesh.scoped(project="p").add("Ana plans a trip.", key=key)
    own = mesh.scoped(user_id="ana").add("I like cake.", key=key)
    private = mesh.add("A secret of the agent.", {"type": "agent"}, key="private")
    assert mesh.get(key=key) == latest
    assert mesh.scoped(project="p").get(key=key) == other
    assert mesh.scoped(user_id="ana").get(key=key) == own
    assert mesh.get(key="private") == private
    assert mesh.scoped(agent_id="other").get(key="private") is None
    assert mesh.get(key="unknown") is None
    assert mesh.erase(key="unknown").memories == ()
    assert mesh.erase(key=key).memories == (latest.id,)
    mesh.scoped(project="p").delete(key=key)
    assert (mesh.get(key=key), mesh.get(other.id), mesh.scoped(user_id="ana").get(key=key)) == (
        None,
        None,
        own,
    )


@pytest.mark.parametrize("wrong", [{}, {"id": "mem_1_000000", "key": "k"}, {"key": ""}, {"key": 5}])
def test_a_memory_is_named_by_an_id_or_by_a_key(mesh: MemoryMesh, wrong: dict[str, Any]) -> None:
    for method in (mesh.get, mesh.delete, mesh.erase):
        with pytest.raises(InvalidInput):
            method(**wrong)


def test_items_of_a_batch_may_have_keys(house: House, mesh: MemoryMesh) -> None:
    mesh.add("Ana likes tea.", key="ana")
    items = [
        {"content": text, "key": key}
        for text, key in (("one", "ana"), ("two", "bob"), ("three", "ana"), ("one", "ana"))
    ]
    records = mesh.add_many([*items, "plain"])
    assert [record.key for record in records] == ["ana", "bob", "ana", "ana", None]
    assert texts(mesh.get_all()) == ["one", "plain", "two"]
    assert [change.before.get("content") for change in mesh.history(records[0].id)] == [
        None,
        "Ana likes tea.",
        "one",
        "three",
    ]
    assert mesh.add({"content": "two and a half", "key": "bob"}).id == records[1].id
    assert house.sound()
    for wrong in (
        [{"role": "user", "content": "Hi"}],
        {"role": "user", "content": "Hi"},
        ["one", "two"],
    ):
        with pytest.raises(InvalidInput, match="a key names one memory"):
            mesh.add(wrong, key="ana")
    with pytest.raises(InvalidInput, match="item 1: key is"):
        mesh.add_many(["plain", {"content": "x", "key": 5}])


@pytest.mark.parametrize("key", ["", "  ", 5, "a\0b", "\ud800", "x" * 501, ["k"]])
def test_a_key_that_is_no_key_stores_nothing(house: House, mesh: MemoryMesh, key: object) -> None:
    with pytest.raises(InvalidInput, match=r"^key is"):
        mesh.add(TEA, key=key)
    assert house.memories() == []
    assert mesh.add(TEA, key="x" * 500).key == "x" * 500


def test_an_embedding_is_used_again_if_only_the_metadata_changed(house: House) -> None:
    embedder = RecordingEmbedder(Narrow())
    mesh = house.mesh(embedder=embedder)
    kept = mesh.add(TEA, key="k")
    mesh.add(TEA, {"source": "b"}, key="k")
    assert embedder.texts == [TEA]
    mesh.add("Cake is at five.", key="k")
    assert embedder.texts == [TEA, "Cake is at five."]
    vector = house.memory(kept.id).vector
    assert vector == embedder.embed(["Cake is at five."])[0]


@pytest.mark.parametrize("status", ["archived", "superseded", "quarantined"])
def test_only_an_active_memory_is_replaced(house: House, mesh: MemoryMesh, status: str) -> None:
    first = mesh.add(TEA, key="k")
    house.change(first.id, status=status)
    assert mesh.add("Cake is at five.", key="k").id != first.id


def test_a_repeated_call_does_not_replace_what_came_after_it(mesh: MemoryMesh) -> None:
    first = mesh.add(TEA, key="k", idempotency_key="call 1")
    mesh.add("Cake is at five.", key="k", idempotency_key="call 2")
    assert mesh.add(TEA, key="k", idempotency_key="call 1").content == "Cake is at five."
    assert len(mesh.history(first.id)) == 2


@pytest.mark.parametrize("audited", [True, False])
def test_what_was_stored_under_a_key_goes_with_its_author(house: House, audited: bool) -> None:
    ann, bob = (
        house.mesh(name, session_id=f"of {name}", enable_yamo=audited) for name in ("ann", "bob")
    )
    kept = ann.add("Ana likes zanzibar.", {"source": "zanzibar"}, key="profile")
    assert bob.add("Ana likes tea.", key="profile").agent_id == "bob"
    assert "zanzibar" in said(bob.history(kept.id))
    assert ann.delete_all(session_id="of ann").kept == (kept.id,)
    assert "zanzibar" not in all_text(house)
    assert (bob.get(kept.id).content, sources(bob, kept.id)) == (
        "Ana likes tea.",
        {("bob", "of bob"): 1},
    )
    assert sound(house)
    assert bob.add("Ana likes cake.", key="profile").id == kept.id
    assert ann.delete_all(agent_id="bob").memories == (kept.id,)
    assert (house.memories(), house.store.count(Kind.SIGHTING)) == ([], 0)
    assert sound(house)


def test_what_two_store_under_a_key_passes_to_the_second(house: House) -> None:
    kept = house.mesh("ann").add(TEA, key="k")
    house.mesh("bob").add(TEA, key="k")
    assert house.mesh("ann").delete_all(agent_id="ann").kept == (kept.id,)
    found = house.memory(kept.id)
    assert (found.agent_id, found.key) == ("bob", "k")
    assert house.mesh("cid").add("Cake is at five.", key="k").id == kept.id
    assert house.sound()


def test_a_memory_that_changed_hands_does_not_show_its_private_past(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    kept = ann.add("zanzibar", {"type": "agent"}, key="k")
    ann.update(kept.id, content="Tea", metadata={"type": "global"})
    assert bob.add("Cake", {"type": "global"}, key="k").agent_id == "bob"
    assert "zanzibar" in said(ann.history(kept.id))
    assert "zanzibar" not in said(bob.history(kept.id), bob.audit_log(limit=100))
    assert house.sound()


# --- without counting ---


def test_each_call_stores_anew_without_deduplication(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add(TEA)
    assert mesh.add(TEA, deduplicate=False).id != first.id
    assert (
        len({record.id for record in mesh.add_many([(TEA, None), (TEA, None)], deduplicate=False)})
        == 2
    )
    assert len(house.memories()) == 4
    off = house.mesh(deduplicate=False)
    off.add(TEA)
    assert len(house.memories()) == 5
    assert off.add(TEA, deduplicate=True).times_observed == 2
    assert mesh.add(TEA).times_observed >= 2
    with pytest.raises(InvalidInput, match="deduplicate"):
        mesh.add(TEA, deduplicate="no")
    assert house.sound()


def test_a_key_replaces_also_without_deduplication(mesh: MemoryMesh) -> None:
    first = mesh.add(TEA, key="k", deduplicate=False)
    assert mesh.add("Cake", key="k", deduplicate=False).id == first.id


# --- results ---


def copies(mesh: MemoryMesh, query: str, **options: Any) -> list[tuple[str, int]]:
    return [(hit.content, hit.copies) for hit in mesh.search(query, **options)]


@pytest.mark.parametrize("embedder", ["none", "hash"])
def test_equal_texts_are_one_result_with_their_number(house: House, embedder: str) -> None:
    mesh = house.mesh(embedder=embedder)
    for n in range(3):
        mesh.add("The tea is green.", deduplicate=False, metadata={"n": n})
    mesh.add("the Tea  is green.", {"type": "agent"})
    mesh.add("The tea is black.")
    found = mesh.search("green tea", min_score=0.0)
    assert sorted(hit.copies for hit in found) == [1, 4]
    assert [
        copies(mesh, "green tea", limit=limit, min_score=0.0)[0][1] >= 3 for limit in (1, 2)
    ] == [True, True]
    explained = mesh.explain("green tea", min_score=0.0)
    assert explained.left_out["copies"] == 3
    assert [one.result.copies for one in explained.answers] == [hit.copies for hit in found]


def test_collapsed_results_leave_room_for_others(house: House, mesh: MemoryMesh) -> None:
    for _ in range(6):
        mesh.add("tea tea tea", deduplicate=False)
    for n in range(4):
        mesh.add(f"tea and {n} scones from the shop")
    found = copies(mesh, "tea", limit=4, min_score=0.0)
    assert len(found) == 4
    assert dict(found)["tea tea tea"] == 6


def test_turns_are_never_collapsed(house: House) -> None:
    for n in range(3):
        house.mesh(session_id=f"s{n}").add("Thanks for the tea", {"speaker": "bob", "turn": 7})
    assert copies(house.mesh(), "tea", min_score=0.0) == [("Thanks for the tea", 1)] * 3


def test_a_key_survives_an_export_and_an_import(house: House) -> None:
    with MemoryMesh(store="memory://", agent_id="ann") as other:
        first = other.add("Ana likes tea.", key="ana")
        house.mesh().import_memories(list(other.export()))
    again = house.mesh("bob").add("Ana likes cake.", key="ana")
    assert (again.id, again.revision) == (first.id, 2)
