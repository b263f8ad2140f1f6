"""The links of memories: seen from one of them, followed over several, grouped, and added by
hand."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from memory_mesh import InvalidInput, MemoryMesh, NotFound
from memory_mesh.core.model import Kind
from memory_mesh.models.local import HashingEmbedder

from .house import House


def chain(
    graph: MemoryMesh, names: str, type_: str = "related", agent: str = "planner"
) -> dict[str, str]:
    """Store a memory for each letter, linked to the next one, and return their ids."""
    ids = {name: graph.store(agent, f"{name * 5} alone").id for name in names}
    for one, other in pairwise(names):
        graph.link(ids[one], ids[other], type_)
    return ids


def reached(
    graph: MemoryMesh, ids: dict[str, str], start: str, *args: object, **options: object
) -> dict[str, int]:
    names = {id_: name for name, id_ in ids.items()}
    return {names[one.id]: one.distance for one in graph.traverse(ids[start], *args, **options)}


@pytest.mark.req("GRAPH-13")
def test_the_links_of_a_memory_come_in_both_directions_with_type_similarity_and_the_other_end(
    house: House,
) -> None:
    graph = house.mesh(embedder=HashingEmbedder()).graph
    first = graph.store("planner", "the deploy key rotates on monday")
    second = graph.store("planner", "the deploy key rotates on monday night")
    third = graph.store("planner", "lunch at noon")
    graph.link(third.id, first.id, "cause")
    found = [
        (one.memory.id, one.link_type, one.direction, one.memory.content)
        for one in graph.links(first.id)
    ]
    assert found == [
        (second.id, "similar", "incoming", "the deploy key rotates on monday night"),
        (third.id, "cause", "incoming", "lunch at noon"),
    ]
    assert graph.links(first.id)[0].similarity == second.links[0].similarity > 0.5
    assert [(one.memory.id, one.direction, one.similarity) for one in graph.links(third.id)] == [
        (first.id, "outgoing", None)
    ]


@pytest.mark.req("GRAPH-13", "GRAPH-16")
@pytest.mark.parametrize("hide", ["status", "agent", "session", "user", "expired"])
def test_a_memory_that_is_not_readable_is_no_end_of_a_link_and_leads_nowhere(
    house: House, hide: str
) -> None:
    graph = house.mesh().graph
    ids = chain(graph, "abc")
    assert reached(graph, ids, "a") == {"b": 1, "c": 2}
    columns = {
        "status": {"status": "quarantined"}, "agent": {"agent_id": "critic"},
        "user": {"user_id": "eve"}, "session": {"memory_type": "session", "session_id": "s9"},
        "expired": {"expires_at": "2020-01-01T00:00:00.000Z"},
    }  # fmt: skip
    house.change(ids["b"], **columns[hide])
    assert reached(graph, ids, "a") == {}
    assert graph.links(ids["a"]) == []
    assert graph.clusters(agent="planner") == []


@pytest.mark.req("GRAPH-15", "GRAPH-16")
def test_a_traversal_returns_each_memory_once_with_its_distance_and_ends_in_a_cycle(
    house: House,
) -> None:
    graph = house.mesh().graph
    ids = chain(graph, "abcde")
    graph.link(ids["e"], ids["a"], "cause")
    assert reached(graph, ids, "a") == {"b": 1, "e": 1, "c": 2, "d": 2}
    assert reached(graph, ids, "a", 1) == {"b": 1, "e": 1}
    assert reached(graph, ids, "a", 20) == {"b": 1, "e": 1, "c": 2, "d": 2}
    assert reached(graph, ids, "a", 3, types=["related"]) == {"b": 1, "c": 2, "d": 3}
    assert reached(graph, ids, "a", types=["cause", "similar"]) == {"e": 1}
    path = {one.id: one.path for one in graph.traverse(ids["a"])}
    assert path[ids["d"]] == (ids["a"], ids["e"])


@pytest.mark.req("GRAPH-15")
def test_further_types_have_any_name_and_are_followed_by_it(house: House) -> None:
    graph = house.mesh().graph
    ids = chain(graph, "ab", "part_of")
    assert reached(graph, ids, "a", types=["part_of"]) == {"b": 1}
    first = graph.link(ids["a"], ids["b"], "part_of")
    assert house.store.count(Kind.LINK) == 1, "one of each type"
    assert (first.ref, first.target, first.link_type) == (ids["a"], ids["b"], "part_of")
    assert graph.unlink(ids["a"], ids["b"], "part_of") is True
    assert graph.unlink(ids["a"], ids["b"], "part_of") is False
    assert graph.links(ids["a"]) == []


@pytest.mark.req("GRAPH-17")
def test_clusters_are_the_connected_groups_largest_first(house: House) -> None:
    graph = house.mesh("planner").graph
    pair, three = chain(graph, "xy"), chain(graph, "abc")
    graph.store("planner", "alone")
    found = [{memory.content[0] for memory in group} for group in graph.clusters()]
    assert found == [{"a", "b", "c"}, {"x", "y"}]
    assert graph.clusters()[0][0].id == three["b"], "the most linked one first"
    assert [len(group) for group in graph.clusters(3)] == [3]
    assert graph.clusters(agent="critic") == []
    graph.link(pair["x"], three["a"], "related")
    assert [len(group) for group in graph.clusters()] == [5]


def test_a_global_memory_shows_the_caller_no_private_memory_of_its_owner(house: House) -> None:
    ann = house.mesh("ann")
    shared, private = ann.add("shared by all"), ann.add("only for ann", {"type": "agent"})
    ann.graph.link(shared.id, private.id, "related")
    assert [one.memory.id for one in ann.graph.links(shared.id)] == [private.id]
    bob = house.mesh("bob").graph
    assert (bob.links(shared.id), bob.traverse(shared.id)) == ([], [])


REFUSED: dict[str, tuple[type[Exception], str, Callable[[MemoryMesh, dict[str, str]], object]]] = {
    "unknown type": (
        InvalidInput,
        "did you mean 'similar'",
        lambda graph, ids: graph.traverse(ids["a"], types=["simlar"]),
    ),
    "no type": (
        InvalidInput,
        "types is empty",
        lambda graph, ids: graph.traverse(ids["a"], types=[]),
    ),
    "a text": (
        InvalidInput,
        "a list of link types",
        lambda graph, ids: graph.traverse(ids["a"], types="cause"),
    ),
    "negative hops": (
        InvalidInput,
        "max_hops is -1",
        lambda graph, ids: graph.traverse(ids["a"], -1),
    ),
    "no hops": (InvalidInput, "from 1 to 20", lambda graph, ids: graph.traverse(ids["a"], 0)),
    "huge hops": (InvalidInput, "from 1 to 20", lambda graph, ids: graph.traverse(ids["a"], 10**9)),
    "unknown start": (NotFound, "no memory 'mem_0'", lambda graph, ids: graph.traverse("mem_0")),
    "unknown memory": (NotFound, "no memory 'mem_0'", lambda graph, ids: graph.links("mem_0")),
    "not an id": (InvalidInput, "id", lambda graph, ids: graph.links(7)),
    "of another user": (NotFound, "no memory", lambda graph, ids: graph.links(ids["eve"])),
    "start of another user": (NotFound, "no memory", lambda graph, ids: graph.traverse(ids["eve"])),
    "a link to another user's": (
        NotFound,
        "no memory",
        lambda graph, ids: graph.link(ids["a"], ids["eve"], "related"),
    ),
    "small clusters": (InvalidInput, "min_size is 1", lambda graph, ids: graph.clusters(1)),
    "one of ours": (
        InvalidInput,
        "use evolve",
        lambda graph, ids: graph.link(ids["a"], ids["b"], "supersedes"),
    ),
    "a bad name": (
        InvalidInput,
        "lower-case",
        lambda graph, ids: graph.link(ids["a"], ids["b"], "Part of"),
    ),
    "unlinked for another user": (
        NotFound,
        "no memory",
        lambda graph, ids: graph.unlink(ids["eve"], ids["a"], "related"),
    ),
    "unlinked by a bad name": (
        InvalidInput,
        "lower-case",
        lambda graph, ids: graph.unlink(ids["a"], ids["b"], "Part of"),
    ),
    "itself": (
        InvalidInput,
        "both ends",
        lambda graph, ids: graph.link(ids["a"], ids["a"], "related"),
    ),
}


@pytest.mark.req("GRAPH-13", "GRAPH-16")
@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_and_nothing_changes(house: House, name: str) -> None:
    graph = house.mesh().graph
    ids = chain(graph, "ab")
    ids["eve"] = house.mesh(user_id="eve").graph.store("planner", "hers").id
    error, words, call = REFUSED[name]
    with pytest.raises(error, match=words):
        call(graph, ids)
    assert house.store.count(Kind.LINK) == 1
