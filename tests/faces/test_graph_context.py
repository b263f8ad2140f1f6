"""`mesh.graph.context`: what is retrieved, added by links, packed and reported."""

import asyncio

import pytest

from memory_mesh import AsyncMemoryMesh, GraphContext, InvalidInput, MemoryMesh
from memory_mesh.core.model import iso
from memory_mesh.core.text import estimate
from memory_mesh.flows.graph.context import min_chance
from memory_mesh.models.local import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import NEW_YEAR

from .house import House

QUERY = "When does the deploy key rotate?"
KEY = "The deploy key rotates on Monday"


@pytest.fixture
def house() -> House:
    """One store in memory, without an embedder: hashed vectors would tell the ranker nothing."""
    return House(open_store("memory://"))


@pytest.fixture
def graph(house: House) -> MemoryMesh:
    return house.mesh().graph


def contents(context: GraphContext) -> list[str]:
    return [memory.content for memory in context.memories]


@pytest.mark.req("GRAPH-09", "GRAPH-67")
def test_a_context_is_one_text_with_what_is_relevant(graph: MemoryMesh) -> None:
    for text in (KEY, "Lunch is served at noon", "Ana likes green tea"):
        graph.store("planner", text)
    found = graph.context("planner", QUERY)
    assert isinstance(found, str)
    assert f"\n# fact\n2026-01-01\n- {KEY}\n" in found == found.text
    assert contents(found) == [KEY]
    assert (
        graph.context("planner", "capital of France"),
        graph.context("planner", "capital of France").note,
    ) == ("", None)
    assert graph.context("planner", QUERY, min_score=1.0).left_out == {"irrelevant": 1}
    assert graph.context("critic", QUERY) == ""


@pytest.mark.req("GRAPH-67", "GRAPH-69")
@pytest.mark.parametrize("packing", ["relevance", "composite"])
def test_memories_one_link_away_are_added_within_scope_and_status(
    house: House, graph: MemoryMesh, packing: str
) -> None:
    start = graph.store("planner", KEY)
    others = {
        name: graph.store("planner", f"{name} backups run nightly").id
        for name in ("near", "far", "hidden", "foreign")
    }
    for name in ("near", "hidden", "foreign"):
        graph.link(start.id, others[name], "cause")
    graph.link(others["near"], others["far"], "cause")
    house.change(others["hidden"], status="disputed")
    house.change(others["foreign"], agent_id="critic")
    found = graph.context("planner", QUERY, packing=packing, explain=True)
    linked = {
        each.memory.id: (each.linked_to, each.link_type)
        for each in found.decisions
        if each.linked_to
    }
    if packing == "relevance":
        assert linked == {others["near"]: (start.id, "cause")}
        assert set(contents(found)) == {KEY, "near backups run nightly"}
    assert "near backups" in found
    assert "hidden backups" not in found
    assert "foreign backups" not in found


@pytest.mark.req("GRAPH-69")
def test_a_link_raises_the_chance_of_a_memory_and_each_category_is_printed(
    graph: MemoryMesh,
) -> None:
    first = graph.store("planner", KEY, category="commitment")
    digest = graph.store("planner", "Ana likes green tea", category="digest")
    assert contents(graph.context("planner", QUERY)) == [KEY]
    graph.link(digest.id, first.id, "related")
    found = graph.context("planner", QUERY)
    assert [line for line in found.split("\n") if line.startswith("# ")] == [
        "# commitment",
        "# digest",
    ]


@pytest.mark.req("GRAPH-67")
def test_the_formula_of_the_document_is_one_option_away(house: House) -> None:
    graph = house.mesh(embedder=HashingEmbedder()).graph
    texts = [
        "deploy key",
        "The deploy key rotates on Monday morning, says the handbook",
        "Tea",
        "Ana likes green tea",
    ]
    for text in texts:
        graph.store("planner", text, importance=0.2 if text == "Tea" else 0.9)
    found = graph.context("planner", QUERY, packing="composite", max_tokens=500, explain=True)
    scores = {hit.content: hit.score for hit in graph.search("planner", QUERY)}
    densities = {text: scores[text] / estimate(f"- {text}") for text in texts}
    assert {each.memory.content: each.density for each in found.decisions} == pytest.approx(
        densities
    )
    assert contents(found) == sorted(texts, key=lambda text: -densities[text])
    assert contents(found).index("Tea") < contents(found).index(texts[1]), (
        "irrelevant but short: why it is not the default"
    )


@pytest.mark.req("GRAPH-67")
def test_trust_and_importance_decide_between_equally_relevant_memories(graph: MemoryMesh) -> None:
    graph.store("planner", "The deploy key rotates on Monday", importance=0.1)
    graph.store(
        "planner",
        "The deploy key rotates on Friday",
        importance=0.9,
        provenance={"source": "user_explicit"},
    )
    found = graph.context("planner", QUERY, explain=True, max_memories=1)
    assert contents(found) == ["The deploy key rotates on Friday"]
    first, second = found.decisions
    assert (first.left_out, second.left_out) == (None, "max_memories")
    assert first.value == pytest.approx(first.relevance * (0.40 + 0.25 * 1.0 + 0.20 + 0.15 * 0.9))
    assert contents(
        graph.context("planner", QUERY, max_memories=1, rerank={"importance": 0, "confidence": 0})
    )


@pytest.mark.req("GRAPH-68", "GRAPH-70")
@pytest.mark.parametrize("budget", [20, 75, 90, 120, 200])
def test_the_text_has_at_most_as_many_tokens_as_the_embedder_counts(
    graph: MemoryMesh, budget: int
) -> None:
    for n in range(12):
        graph.store("planner", f"The deploy key number {n} rotates on Monday" + " and again" * n)
    found = graph.context("planner", QUERY, max_tokens=budget)
    assert found.tokens == estimate(found) <= budget
    assert len(found.memories) + found.left_out.get("budget", 0) == 12
    assert bool(found.memories) == (budget > 50)


@pytest.mark.req("GRAPH-70", "MESH-018")
def test_tokens_are_those_of_the_common_counter(house: House) -> None:
    class Words(HashingEmbedder):
        def count(self, text: str) -> int:
            return len(text.split())

    graph = house.mesh(embedder=Words()).graph
    graph.store("planner", KEY)
    found = graph.context("planner", QUERY, max_tokens=1000)
    assert found.tokens == len(found.split())
    shortest = graph.context("planner", QUERY, max_tokens=found.tokens - 1)  # a short notice
    assert graph.context("planner", QUERY, max_tokens=shortest.tokens).memories
    assert not graph.context("planner", QUERY, max_tokens=shortest.tokens - 1).memories


def test_a_budget_smaller_than_one_memory_says_so(graph: MemoryMesh) -> None:
    graph.store("planner", KEY)
    found = graph.context("planner", QUERY, max_tokens=20)
    assert (found, found.tokens, found.left_out) == ("", 0, {"budget": 1})
    needed = graph.context("planner", QUERY, max_tokens=50).tokens
    assert found.note == f"no relevant memory fits into 20 tokens; the smallest one needs {needed}"
    assert graph.context("planner", QUERY, max_tokens=needed).note is None


@pytest.mark.req("GRAPH-29", "GRAPH-30")
def test_an_explanation_has_every_decision_and_changes_nothing(graph: MemoryMesh) -> None:
    graph.store("planner", KEY)
    graph.store(
        "planner",
        "The deploy key rotates on Monday and then the old deploy key is kept for another week "
        "in the vault",
    )
    plain = graph.context("planner", QUERY, max_tokens=45)
    found = graph.context("planner", QUERY, max_tokens=45, explain=True)
    assert (plain.decisions, plain.memories[0].rerank) == ((), None)
    assert contents(plain) == contents(found) == [KEY]
    chosen, left = found.decisions
    assert (chosen.left_out, left.left_out, found.left_out) == (None, "budget", {"budget": 1})
    assert min(chosen.density, left.density) > 0
    assert chosen.tokens == estimate(f"- {KEY}") < left.tokens
    assert (chosen.memory.rerank.trust.base, chosen.memory.retrieved.by) == (0.5, "keywords")
    assert found.meta == {
        "packing": "relevance",
        "candidates": 2,
        "max_memories": 100,
        "max_tokens": 45,
    }


def test_four_hundred_tokens_hold_fifteen_memories_of_a_line_and_fifty_hold_one(
    graph: MemoryMesh,
) -> None:
    for n in range(20):
        graph.store("planner", f"The deploy key number {n} rotates on Monday.")
    for tokens, most in ((400, 15), (50, 1)):
        found = graph.context("planner", QUERY, max_tokens=tokens)
        assert len(found.memories) >= most
        assert found.tokens <= tokens


@pytest.mark.req("GRAPH-09")
def test_without_a_budget_fifteen_memories_are_the_most(graph: MemoryMesh) -> None:
    for n in range(20):
        graph.store("planner", f"The deploy key number {n} rotates on Monday")
    found = graph.context("planner", QUERY)
    assert (len(found.memories), found.left_out) == (15, {"max_memories": 5})
    assert len(graph.context("planner", QUERY, max_memories=3).memories) == 3
    assert len(graph.context("planner", QUERY, max_tokens=5000).memories) == 20


@pytest.mark.req("GRAPH-67")
@pytest.mark.parametrize(
    ("best", "documents", "least"),
    [
        (0.32, 0, 0.33),
        (0.34, 0, 0.017),
        (0.34, 10, 0.017),
        (0.02, 160, 0.033),
        (0.04, 160, 0.0002),
        (0.02, 10**6, 0.00003),
    ],
)
def test_the_less_likely_fill_a_budget_if_the_best_is_likely_and_there_are_many_memories(
    best: float, documents: int, least: float
) -> None:
    assert min_chance([best], documents) == pytest.approx(least)
    assert min_chance([best * 2 / 3, best / 3], documents) == pytest.approx(
        least if least > best else least * 2 / 3
    )


@pytest.mark.req("GRAPH-09")
def test_times_and_sessions_are_those_of_the_search(house: House, graph: MemoryMesh) -> None:
    def key(day: str, **more: object) -> dict[str, object]:
        return {"subject": "deploy key", "predicate": "day", "value": day, **more}

    def days(**options: object) -> list[str]:
        return [
            memory.claim["value"] for memory in graph.context("planner", QUERY, **options).memories
        ]

    graph.store(
        "planner", "The deploy key rotates on Monday", claim=key("Monday", valid_from="2020-01-01")
    )
    house.clock.advance(days=10)
    graph.store(
        "planner", "The deploy key rotates on Friday", claim=key("Friday", valid_from="2025-01-01")
    )
    graph.store(
        "planner",
        "The deploy key rotates on Sunday",
        claim=key("Sunday", scope="session", session_id="s1"),
    )
    assert days() == days(as_of="2025-06-01") == ["Friday"]
    assert days(session_id="s1") == ["Sunday"]
    assert days(as_of="2024-06-01") == days(known_at=iso(NEW_YEAR + 86_400_000)) == ["Monday"]
    assert days(before="2026-01-05") == days(after="2026-02-01") == []
    assert days(before="2026-02-01", after="2026-01-05") == ["Friday"]


def test_equal_texts_are_shown_once_and_only_what_is_shown_counts_as_used(house: House) -> None:
    mesh = house.mesh("planner")
    mesh.add("The deploy key rotates on Monday")
    mesh.add("The deploy key rotates on Monday", {"type": "agent"})
    mesh.add("Ana likes green tea")
    found = mesh.graph.context("planner", QUERY)
    assert (len(found.memories), found.left_out) == (1, {"copy": 1})
    used = {memory.id: memory.access_count for memory in mesh.get_all()}
    assert used.pop(found.memories[0].id) == 1
    assert list(used.values()) == [0, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens is 0; expected a whole number from 1"),
        ({"max_tokens": -5}, "max_tokens"), ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_memories": 0}, "max_memories is 0"), ({"max_memories": 1001}, "to 1,000"),
        ({"packing": "dense"}, "relevance, composite"), ({"packing": None}, "packing"),
        ({"explain": 1}, "explain"), ({"min_score": 2}, "min_score"),
        ({"rerank": {"recency": -1}}, "weight of recency is -1"), ({"rerank": {"x": 1}}, "x"),
        ({"before": "soon"}, "before"), ({"known_at": "2999-01-01"}, "future"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_an_error_that_names_it(
    graph: MemoryMesh, options: dict[str, object], words: str
) -> None:
    graph.store("planner", KEY)
    with pytest.raises(InvalidInput, match=words):
        graph.context("planner", QUERY, **options)
    for query in ("", None):
        with pytest.raises(InvalidInput, match="query"):
            graph.context("planner", query)
    with pytest.raises(InvalidInput, match="agent"):
        graph.context(" ", QUERY)


def test_a_context_is_built_in_async_code_too(house: House) -> None:
    async def found() -> GraphContext:
        async with AsyncMemoryMesh(store=house.store, agent_id="ann") as mesh:
            await mesh.graph.store("planner", KEY)
            return await mesh.graph.context("planner", QUERY)

    assert contents(asyncio.run(found())) == [KEY]
