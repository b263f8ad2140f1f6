"""Claims where scopes, masks, windows and erasures meet: what a hostile tester found."""

from collections.abc import Mapping

import pytest

from memory_mesh import InvalidInput, KeyReused, MemoryMesh
from memory_mesh.core.model import Kind

from .house import House, whole

USER = {"source": "user_explicit"}
GLOBAL, SESSION = {"type": "global"}, {"type": "session"}


def home(value: object, **more: object) -> dict[str, object]:
    return {"subject": "Ana", "predicate": "home", "value": value, **more}


# --- scopes ---


@pytest.mark.req("GRAPH-44")
def test_the_claim_of_a_session_memory_holds_in_its_session_only(house: House) -> None:
    mesh = house.mesh(claims="auto")
    first, second = mesh.scoped(session_id="s1"), mesh.scoped(session_id="s2")
    for store in (
        lambda one, value: one.add(f"Ana works at {value}.", metadata=SESSION),
        lambda one, value: one.graph.store(
            "ann", f"flat in {value}", claim=home(value), metadata=SESSION
        ),
    ):
        mine, other = store(first, "Acme"), store(second, "Globex")
        assert house.memory(mine.id).status == house.memory(other.id).status == "active"
        assert store(second, "Acme").id != mine.id, (
            "nor is it merged with one that this session cannot see"
        )
        assert house.memory(other.id).status == "superseded", (
            "in one session the claims do exclude each other"
        )


@pytest.mark.req("GRAPH-44")
def test_claims_of_two_projects_do_not_exclude_each_other(house: House) -> None:
    mesh = house.mesh(claims="auto")
    apollo, zeus = mesh.scoped(project="Apollo"), mesh.scoped(project="Zeus")
    first, other = apollo.add("The deadline is Friday."), zeus.add("The deadline is Monday.")
    assert house.memory(first.id).status == house.memory(other.id).status == "active"
    apollo.add("The deadline is Tuesday.")
    assert house.memory(first.id).status == "superseded"


@pytest.mark.req("GRAPH-49")
def test_the_same_claim_in_another_scope_is_a_memory_of_its_own(
    house: House, mesh: MemoryMesh
) -> None:
    shared = mesh.graph.store("bob", "Ana lives in Lisbon.", claim=home("Lisbon"), metadata=GLOBAL)
    private = mesh.graph.store("ann", "Between us: her flat is in Lisbon.", claim=home("Lisbon"))
    assert (private.is_new, house.memory(shared.id).corroborations) == (True, 2)
    bob = mesh.scoped(agent_id="bob")
    seen = whole(bob.sightings(shared.id), bob.history(shared.id)) + "".join(bob.export())
    assert "Ana lives" in seen
    assert "Between us" not in seen
    eve = mesh.graph.store("ann", "private", claim={**home("Rome"), "subject": "Eve"})
    told = mesh.graph.store(
        "ann", "for all", claim={**home("Rome"), "subject": "Eve"}, metadata=GLOBAL
    )
    assert told.id != eve.id
    assert bob.get(told.id), "a memory that is to be shared is"


def test_a_claim_moves_with_its_memory(house: House, mesh: MemoryMesh) -> None:
    in_s1 = mesh.scoped(session_id="s1")
    moved = mesh.graph.store("ann", "a", claim=home("Lisbon", scope="session", session_id="s1"))
    in_s1.update(moved.id, metadata={"session_id": "s2"})
    later = mesh.graph.store("ann", "b", claim=home("Porto", scope="session", session_id="s2"))
    assert later.supersedes == [moved.id]
    mesh.graph.store("ann", "c", claim=home("Rome"))
    with pytest.raises(InvalidInput, match="excludes it"):
        mesh.scoped(session_id="s2").update(later.id, metadata=GLOBAL)
    assert house.sound()


def test_an_update_by_another_agent_is_compared_with_the_claims_of_the_owner(
    house: House, mesh: MemoryMesh
) -> None:
    shared = mesh.graph.store(
        "bob", "a", claim=home("Lisbon", valid_until="2012-01-01"), metadata=GLOBAL
    )
    mesh.graph.store("bob", "b", claim=home("Rome", valid_from="2015-01-01"))
    with pytest.raises(InvalidInput, match="excludes it"):
        mesh.scoped(agent_id="ann").update(
            shared.id, metadata={"valid_until": None, "type": "agent"}
        )
    assert house.memory(shared.id).revision == 1


# --- masks ---


@pytest.mark.req("MESH-049")
def test_claims_about_masked_subjects_are_not_taken_for_claims_about_one(house: House) -> None:
    mesh = house.mesh(claims="auto")
    roles = ("ana@example.org", "admin"), ("bo@example.net", "viewer")
    first, second = (
        mesh.graph.store(
            "ann", f"one is {role}", claim={"subject": who, "predicate": "role", "value": role}
        )
        for who, role in roles
    )
    assert house.memory(first.id).status == "active"
    assert (second.supersedes, second.is_new) == ([], True)
    acme, globex = (
        mesh.add(text)
        for text in ("ana@example.org works at Acme.", "bo@example.net works at Globex.")
    )
    assert house.memory(acme.id).status == house.memory(globex.id).status == "active"
    assert "example" not in repr([row for kind in Kind for row in house.store.find(kind)])


def test_the_value_of_a_secret_predicate_is_masked_as_in_metadata(
    house: House, mesh: MemoryMesh
) -> None:
    for predicate in ("password", "API key"):
        claim = {"subject": "Ana", "predicate": predicate, "value": "hunter2xyz"}
        assert mesh.graph.store("ann", f"her {predicate}", claim=claim).memory.claim
    assert "her password" in repr(house.memories()[-1].row())
    assert "hunter2xyz" not in repr([row for kind in Kind for row in house.store.find(kind)])


# --- windows ---


@pytest.mark.req("GRAPH-54")
def test_an_update_of_something_else_keeps_the_window_of_a_claim(
    house: House, mesh: MemoryMesh
) -> None:
    given = {"valid_from": "2001-01-01", "valid_until": "2090-01-01"}
    old = mesh.graph.store("ann", "a", claim=home("Lisbon"), metadata=given)
    new = mesh.graph.store(
        "ann",
        "b",
        claim=home("Porto", valid_from="2020-01-01"),
        metadata={"valid_from": "1999-01-01"},
    )
    for id_ in (old.id, new.id):
        mesh.update(id_, metadata={"seen": True})
    assert house.memory(old.id).valid_until == "2019-12-31T23:59:59.999Z"
    assert house.memory(new.id).valid_from == "2020-01-01T00:00:00.000Z"
    mesh.update(new.id, content="Ana has a cat.")
    assert house.memory(new.id).valid_from == "1999-01-01T00:00:00.000Z", (
        "the window of the claim goes with the claim"
    )


@pytest.mark.req("GRAPH-54")
def test_a_claim_whose_first_author_is_erased_keeps_its_window(
    house: House, mesh: MemoryMesh
) -> None:
    past = {"claim": home("Lisbon", valid_until="2012-01-01"), "metadata": GLOBAL}
    first = mesh.graph.store("ann", "Ana lived in Lisbon.", **past)  # type: ignore[arg-type]
    assert mesh.graph.store("bob", "She was in Lisbon.", **past).id == first.id  # type: ignore[arg-type]
    mesh.graph.store("bob", "now", claim=home("Porto", valid_from="2013-01-01"), metadata=GLOBAL)
    mesh.delete_all(agent_id="ann")
    memory = house.memory(first.id)
    assert (memory.agent_id, memory.valid_until, memory.status) == (
        "bob",
        "2012-01-01T00:00:00.000Z",
        "active",
    )


@pytest.mark.parametrize("source", ["claim", "metadata"])
def test_a_window_that_ends_before_it_starts_is_refused(
    house: House, mesh: MemoryMesh, source: str
) -> None:
    window = {"valid_from": "2020-01-01", "valid_until": "2010-01-01"}
    with pytest.raises(InvalidInput, match="before valid_from"):
        mesh.graph.store(
            "ann", "a", claim=home("x", **(window if source == "claim" else {})), metadata=window
        )
    stored = mesh.graph.store("ann", "a", claim=home("x", valid_from="2020-01-01"))
    with pytest.raises(InvalidInput, match="before valid_from"):
        mesh.update(stored.id, metadata={"valid_until": "2010-01-01"})
    assert house.memory(stored.id).revision == 1


def test_a_claim_valid_since_the_first_moment_supersedes_without_an_end(
    house: House, mesh: MemoryMesh
) -> None:
    old = mesh.graph.store("ann", "a", claim=home("Lisbon"))
    mesh.graph.store("ann", "b", claim=home("Porto", valid_from="0001-01-01T00:00:00Z"))
    assert (house.memory(old.id).status, house.memory(old.id).valid_until) == ("superseded", None)


def test_what_is_said_again_after_it_ended_is_valid_again(house: House) -> None:
    mesh = house.mesh(claims="auto")
    first = mesh.add("Ana works at Acme.")
    house.clock.advance(days=1)
    mesh.add("Ana no longer works at Acme.")
    house.clock.advance(days=1)
    again, other = (mesh.add(text) for text in ("Ana works at Acme.", "Ana is employed by Acme."))
    assert first.id != again.id == other.id
    assert (house.memory(again.id).status, house.memory(again.id).valid_until) == ("active", None)
    assert house.memory(first.id).valid_until, "the first time is over"


# --- reviews, retries, erasures ---


@pytest.mark.req("GRAPH-18")
def test_activating_a_claim_does_not_supersede_a_memory_that_has_another_text_by_now(
    house: House, mesh: MemoryMesh
) -> None:
    old = mesh.graph.store("ann", "a", claim=home("Lisbon"), provenance=USER)
    new = mesh.graph.store("ann", "b", claim=home("Porto"))
    mesh.update(old.id, content="Trees grow in the park.")
    assert mesh.graph.review_quarantine(new.id, action="activate").memory.status == "active"
    assert house.memory(old.id).status == "active"


def test_an_idempotency_key_is_that_of_one_claim(house: House, mesh: MemoryMesh) -> None:
    def store(value: str) -> str:
        return mesh.graph.store("ann", "a", claim=home(value), idempotency_key="k").id

    assert store("Lisbon") == store("Lisbon")
    with pytest.raises(KeyReused):
        store("Porto")


def test_the_value_of_an_erased_claim_is_left_nowhere(house: House, mesh: MemoryMesh) -> None:
    old = mesh.graph.store("ann", "a", claim=home("Lisbon"))
    new = mesh.graph.store("ann", "b", claim=home("Portimao"))

    def stored() -> str:
        return repr([row for kind in Kind for row in house.store.find(kind)])

    assert "Portimao" in stored()
    mesh.erase(new.id)
    assert "Portimao" not in stored()
    assert "takes its place" in str(mesh.history(old.id)[-1].why)
    assert house.sound()


# --- invalid values ---


@pytest.mark.parametrize(
    "claim",
    [
        home(10**5000),
        home("x", valid_from=10**5000),
        home("a\0b"),
        home("\ud800"),
        home("x", subject="\0"),
        home("x", scope="session", session_id="\ud800"),
    ],
    ids=[
        "huge number",
        "huge time",
        "NUL",
        "half a surrogate pair",
        "NUL in the subject",
        "session",
    ],
)
def test_a_claim_that_cannot_be_stored_is_refused_by_its_name(
    house: House, mesh: MemoryMesh, claim: Mapping[str, object]
) -> None:
    with pytest.raises(InvalidInput, match=r"claim\.|of scope 'session'|valid_from"):
        mesh.graph.store("ann", "text", claim=claim)
    assert house.memories() == []
