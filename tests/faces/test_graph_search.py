"""`mesh.graph.search`, over what `mesh.graph.store` stored."""

import asyncio
from pathlib import Path

import pytest

from memory_mesh import AsyncMemoryMesh, InvalidInput, MemoryMesh
from memory_mesh.core.model import iso
from memory_mesh.models.local import HashingEmbedder
from memory_mesh.testing.fakes import NEW_YEAR

from .house import House

DAY = 86_400_000
USER = {"source": "user_explicit"}


def job(value: str, **more: object) -> dict[str, object]:
    return {"subject": "Ana", "predicate": "employer", "value": value, **more}


@pytest.mark.req("GRAPH-04", "GRAPH-08")
def test_an_agent_finds_what_it_stored_and_no_other_agent_does(house: House) -> None:
    graph = house.mesh(embedder=HashingEmbedder()).graph
    stored = graph.store(
        "planner", "Ana works at Acme", claim=job("Acme"), provenance=USER, importance=0.9
    )
    hit = graph.search("planner", "Where does Ana work?")[0]
    assert (hit.id, hit.trust, hit.importance) == (stored.id, 1.0, 0.9)
    assert hit.claim["value"] == "Acme"
    assert graph.search("critic", "Where does Ana work?") == []
    assert [each.id for each in house.mesh("planner").search("Where does Ana work?")] == [stored.id]


@pytest.mark.req("GRAPH-05")
def test_what_was_superseded_or_quarantined_is_found_only_if_asked_for(house: House) -> None:
    graph = house.mesh().graph
    ids = [
        graph.store(
            "planner", f"Ana works at {name}", claim=job(name), provenance={"source": source}
        ).id
        for name, source in (
            ("Acme", "document"),
            ("Beta", "user_explicit"),
            ("Gamma", "inference"),
        )
    ]
    found = {
        name: [hit.id for hit in graph.search("planner", "Ana works", **{name: True})]
        for name in ("explain", "include_superseded", "include_quarantined", "include_all")
    }
    assert found["explain"] == [ids[1]]
    assert set(found["include_superseded"]) == set(ids[:2])
    assert set(found["include_quarantined"]) == set(ids[1:])
    assert set(found["include_all"]) == set(ids)


@pytest.mark.req("GRAPH-07")
def test_a_claim_of_a_session_replaces_the_global_one_in_it(house: House) -> None:
    graph = house.mesh().graph
    graph.store("planner", "Ana works at Acme", claim=job("Acme"))
    graph.store(
        "planner", "Ana works at Beta today", claim=job("Beta", scope="session", session_id="s1")
    )

    def employers(session_id: str | None) -> list[str]:
        return [
            hit.claim["value"]
            for hit in graph.search("planner", "Ana works", session_id=session_id)
        ]

    assert [employers(session) for session in (None, "s1", "s2")] == [["Acme"], ["Beta"], ["Acme"]]
    assert [
        hit.claim["value"]
        for hit in house.mesh(session_id="s1").graph.search("planner", "Ana works")
    ] == ["Beta"]


def test_the_two_times_of_claims_that_were_stored(house: House) -> None:
    graph = house.mesh().graph
    graph.store("planner", "Ana works at Acme", claim=job("Acme", valid_from="2020-01-01"))
    house.clock.advance(days=10)
    graph.store("planner", "Ana works at Beta", claim=job("Beta", valid_from="2025-01-01"))

    def employers(**times: str) -> list[str]:
        return [hit.claim["value"] for hit in graph.search("planner", "Ana works", **times)]

    assert employers() == employers(as_of="2025-06-01") == ["Beta"]
    assert employers(as_of="2024-06-01") == ["Acme"]
    assert (
        employers(known_at=iso(NEW_YEAR + DAY))
        == employers(as_of="2025-06-01", known_at=iso(NEW_YEAR + DAY))
        == ["Acme"]
    )
    assert employers(as_of="2019-06-01") == []
    assert [
        hit.content
        for hit in house.mesh("planner").search("Where did Ana work in 2024?", as_of="2024-06-01")
    ] == ["Ana works at Acme"]


@pytest.mark.req("GRAPH-11")
def test_many_queries_get_a_list_each(house: House) -> None:
    graph = house.mesh(embedder=HashingEmbedder()).graph
    graph.store_many("planner", ["Ana works at Acme", "The deploy key rotates on Mondays"])
    queries = ["deploy key", "Ana"]
    many = graph.search_many("planner", queries, limit=1)
    assert [found[0].content for found in many] == [
        "The deploy key rotates on Mondays",
        "Ana works at Acme",
    ]
    assert [[hit.id for hit in found] for found in many] == [
        [hit.id for hit in graph.search("planner", query, limit=1)] for query in queries
    ]
    for wrong in ("deploy", ["deploy", ""], [None], None):
        with pytest.raises(InvalidInput, match="quer"):
            graph.search_many("planner", wrong)


def test_a_graph_is_searched_in_async_code_too(house: House) -> None:
    async def found() -> list[str]:
        async with AsyncMemoryMesh(store=house.store, agent_id="ann") as mesh:
            await mesh.graph.store("planner", "Ana works at Acme")
            return [hit.content for hit in await mesh.graph.search("planner", "Ana")]

    assert asyncio.run(found()) == ["Ana works at Acme"]


def test_a_search_creates_no_store_and_needs_an_agent(house: House, tmp_path: Path) -> None:
    file = tmp_path / "none.db"
    assert MemoryMesh(store=f"sqlite:///{file}").graph.search("planner", "Ana") == []
    assert not file.exists()
    with pytest.raises(InvalidInput, match="agent"):
        house.mesh().graph.search("", "Ana")
