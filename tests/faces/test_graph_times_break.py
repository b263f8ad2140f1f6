"""Times, reviews and scopes of the graph where they meet: what a hostile tester found."""

import pytest

from memory_mesh import InvalidInput, MemoryMesh

from .house import House

USER = {"source": "user_explicit"}


def job(value: str, **more: object) -> dict[str, object]:
    return {"subject": "Ana", "predicate": "employer", "value": value, **more}


def at(mesh: MemoryMesh, time: str) -> list[str]:
    """Return what both faces find for a time; they agree."""
    found = [hit.content for hit in mesh.search("Where does Ana work?", as_of=time)]
    assert sorted(found) == sorted(
        hit.content for hit in mesh.graph.search("ann", "Where does Ana work?", as_of=time)
    )
    return found


@pytest.mark.req("GRAPH-54")
@pytest.mark.parametrize(
    ("window", "in_2021"),
    [
        ({"valid_from": "2020-01-01", "valid_until": "2023-01-01"}, ["Ana works at Beta."]),
        ({"valid_from": "2019-01-01"}, ["Ana works at Beta."]),
        ({"valid_from": "2022-01-01"}, ["Ana works at Acme."]),  # not a correction: it begins later
        # What is valid now corrects nothing that is over.
        ({}, ["Ana works at Acme.", "Ana works at Beta."]),
    ],
)
def test_a_corrected_claim_with_an_end_of_its_own_was_never_valid(
    mesh: MemoryMesh, window: dict[str, str], in_2021: list[str]
) -> None:
    dated = job("Acme", valid_from="2020-01-01", valid_until="2023-01-01")
    old = mesh.graph.store("ann", "Ana works at Acme.", claim=dated)
    new = mesh.graph.store("ann", "Ana works at Beta.", claim=job("Beta", **window))
    assert new.supersedes == [old.id]
    assert sorted(at(mesh, "2021-01-01")) == in_2021
    assert mesh.graph.explain_memory(old.id, as_of="2021-01-01").valid == (
        "Ana works at Acme." in in_2021
    )


@pytest.mark.req("GRAPH-25")
def test_an_expired_memory_waits_for_no_review_and_replaces_nothing(
    house: House, mesh: MemoryMesh
) -> None:
    known = mesh.graph.store("ann", "Ana works at Acme.", claim=job("Acme"), provenance=USER)
    guess = mesh.graph.store(
        "ann", "Ana works at Beta.", claim=job("Beta"), metadata={"expires_at": "2026-01-02"}
    )
    (conflict,) = mesh.graph.conflicts()
    assert [one.id for one in mesh.graph.list_quarantined()] == [guess.id]
    house.clock.advance(days=3)
    assert (mesh.graph.conflicts(), mesh.graph.list_quarantined()) == ([], [])
    with pytest.raises(InvalidInput, match="expired at 2026-01-02"):
        mesh.graph.review_quarantine(guess.id, action="activate")
    with pytest.raises(InvalidInput, match="expired at 2026-01-02"):
        mesh.graph.resolve_conflict(conflict.id, keep="new")
    assert house.memory(known.id).status == "active"


def test_what_moved_to_another_project_is_not_found_in_the_past_of_the_old_one(
    house: House, mesh: MemoryMesh
) -> None:
    apollo, zeus = mesh.scoped(project="Apollo"), mesh.scoped(project="Zeus")
    moved, kept = apollo.add("The launch code is banana."), apollo.add("The launch pad is red.")
    then = kept.created_at
    house.clock.advance(seconds=1)
    zeus.update(moved.id, metadata={"project": "Zeus"})
    for found in (
        apollo.search("launch", known_at=then),
        apollo.graph.search("ann", "launch", known_at=then),
    ):
        assert [hit.id for hit in found] == [kept.id]


@pytest.mark.req("GRAPH-25")
def test_a_conflict_of_a_memory_that_was_superseded_since_waits_no_longer(mesh: MemoryMesh) -> None:
    mesh.graph.store("ann", "Ana works at Acme.", claim=job("Acme"), provenance=USER)
    mesh.graph.store("ann", "Ana may work at Beta.", claim=job("Beta"), on_conflict="keep_active")
    assert len(mesh.graph.conflicts()) == 1
    newest = mesh.graph.store("ann", "Ana works at Corto.", claim=job("Corto"), provenance=USER)
    assert len(newest.supersedes) == 2
    assert mesh.graph.conflicts() == [], "nobody could resolve it"
