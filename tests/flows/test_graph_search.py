"""The search of the graph: its options, the composite score and its explanation."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, sqrt

import pytest

from memory_mesh.core.claims import Claim
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.graph import GraphResults
from memory_mesh.core.model import Change, Kind, Memory, Reader, Vector, iso, revise
from memory_mesh.core.search import tokens
from memory_mesh.flows.context import Context
from memory_mesh.flows.graph import search as graph_search
from memory_mesh.flows.graph.search import Request
from memory_mesh.flows.search import usage
from memory_mesh.flows.write import embed
from memory_mesh.testing.fakes import NEW_YEAR

DAY = 86_400_000


class OneDirection:
    """An embedder whose queries all have the vector (1, 0). The cosine of a memory is the first
    number of its vector."""

    model, window = "plane", 256

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(list(texts))
        return [Vector.of(self.model, [1.0, 0.0]) for _ in texts]


@pytest.fixture
def plane(context: Context) -> Context:
    """A context with the embedder of the plane, which is also the model of the store."""
    context.store.apply([embed.model_row(context, OneDirection.model)])
    return context.with_models(embedder=OneDirection())


def put(
    context: Context,
    id_: str,
    cosine: float | None = 0.5,
    *,
    text: str | None = None,
    at: int = NEW_YEAR,
    **columns,
) -> Memory:
    """Store a memory of the agent with this cosine to every query."""
    claim = columns.pop("claim", None)
    if claim:
        columns |= {**claim.columns, **columns}
    content = text or f"note {id_}"
    memory = Memory(
        id=id_, content=content, keywords=tokens(content), created_at=iso(at), **{
            "updated_at": iso(at), "user_id": "u", "agent_id": "ann", "memory_type": "agent",
            "importance": 0.5, "trust": 0.8,
            "vector": None if cosine is None else Vector.of("plane", [cosine, sqrt(1 - cosine**2)]),
            **columns,
        }
    )  # fmt: skip
    context.store.apply([memory.row()])
    return memory


def change(context: Context, memory: Memory, at: int, **columns) -> Memory:
    newer, made = revise(memory, at=iso(at), by="ann", action="update", **columns)
    context.store.apply([newer.row(replaces=memory.revision), made.row(newer.partition)])
    return newer


def ids(context: Context, query: str = "q", **options) -> list[str]:
    return [hit.id for hit in search(context, query, **options)]


def search(context: Context, query: str = "q", **options) -> GraphResults:
    return graph_search.search_one(context, query, Request(**options))


# --- ranking ---


@pytest.mark.req("GRAPH-62", "GRAPH-63", "GRAPH-64", "GRAPH-65")
def test_the_score_is_the_weighted_sum_of_the_document(plane: Context) -> None:
    put(
        plane,
        "m",
        0.637,
        importance=0.9,
        trust=0.7,
        at=NEW_YEAR - 40 * DAY,
        updated_at=iso(NEW_YEAR - 30 * DAY),
    )
    hit = search(plane)[0]
    trust = 0.7 - 0.1 * 40 / 365
    assert hit.score == pytest.approx(
        0.40 * 0.637 + 0.25 * trust + 0.20 * exp(-0.3) + 0.15 * 0.9, abs=1e-6
    )
    assert (hit.similarity, hit.trust) == (pytest.approx(0.637), pytest.approx(trust))


@pytest.mark.req("GRAPH-65")
def test_given_weights_replace_single_ones_and_false_orders_by_relevance(plane: Context) -> None:
    put(plane, "near", 0.9, importance=0.0)
    put(plane, "important", 0.5, importance=1.0)
    assert ids(plane) == ["near", "important"]
    assert ids(plane, rerank={"importance": 0.5}) == ["important", "near"]
    assert search(plane, rerank={"importance": 0.5})[0].score == pytest.approx(
        0.4 * 0.5 + 0.25 * 0.8 + 0.2 + 0.5, abs=1e-6
    )
    plain = search(plane, rerank=False)
    assert [(hit.id, round(hit.score, 6)) for hit in plain] == [("near", 0.9), ("important", 0.5)]


@pytest.mark.req("GRAPH-66")
def test_a_memory_outside_the_first_by_similarity_can_come_up(plane: Context) -> None:
    for n in range(12):
        put(plane, f"near{n}", 0.60 + n / 1000, importance=0.0, trust=0.5)
    put(plane, "trusted", 0.5, importance=1.0, trust=1.0)
    assert "trusted" not in ids(plane, limit=3, rerank=False)
    assert ids(plane, limit=3)[0] == "trusted"


@pytest.mark.req("GRAPH-61")
def test_a_digest_ranks_with_the_trust_of_its_least_trusted_source(plane: Context) -> None:
    put(plane, "source", 0.1, trust=0.5)
    put(plane, "digest", 0.7, trust=1.0, sources=["source"])
    assert {hit.id: hit.trust for hit in search(plane)} == {"source": 0.5, "digest": 0.5}


def test_without_vectors_relevance_is_the_fraction_of_the_words_of_the_query(
    context: Context,
) -> None:
    put(context, "both", None, text="the deploy key rotates")
    put(context, "one", None, text="the deploy failed")
    put(context, "none", None, text="lunch at noon")
    found = search(context, "deploy key", explain=True, rerank=False)
    assert [hit.id for hit in found] == ["both", "one"]
    assert found[0].score == 1.0 > found[1].score > 0
    assert [(hit.similarity, hit.retrieved.by) for hit in found] == [(None, "keywords")] * 2
    assert found.meta["model"] is None


def test_a_memory_that_waits_for_its_vector_is_found_by_its_words(plane: Context) -> None:
    put(plane, "pending", None, text="the deploy key rotates", pending=True)
    put(plane, "ready", 0.4, text="something else")
    found = search(plane, "deploy key", explain=True)
    assert {hit.id: hit.retrieved.by for hit in found} == {
        "pending": "keywords",
        "ready": "vectors",
    }


# --- options ---


@pytest.mark.req("GRAPH-04", "GRAPH-05")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"active"}),
        ({"include_superseded": True}, {"active", "superseded"}),
        ({"include_disputed": True}, {"active", "disputed"}),
        ({"include_quarantined": True}, {"active", "quarantined"}),
        ({"include_all": True}, {"active", "superseded", "disputed", "quarantined"}),
        ({"status_filter": ["archived"]}, {"archived"}),
        (
            {"status_filter": ["archived"], "include_all": True},
            {"active", "superseded", "disputed", "quarantined", "archived"},
        ),
        ({"status_filter": ["disputed"], "include_superseded": True}, {"disputed", "superseded"}),
    ],
)
def test_each_option_adds_its_status(
    plane: Context, options: dict[str, object], expected: set[str]
) -> None:
    for status in ("active", "superseded", "disputed", "quarantined", "archived"):
        put(plane, status, status=status)
    assert set(ids(plane, **options)) == expected


@pytest.mark.req("GRAPH-04")
def test_limit_and_least_similarity_bound_the_results(plane: Context) -> None:
    for n in range(12):
        put(plane, f"m{n:02}", 0.3 + n / 20)
    assert len(ids(plane)) == 10
    assert ids(plane, limit=2, rerank=False) == ["m11", "m10"]
    assert ids(plane, min_similarity=0.79, rerank=False) == ["m11", "m10"]
    put(plane, "opposite", -0.5)
    assert "opposite" not in ids(plane, limit=50)


@pytest.mark.req("GRAPH-06")
def test_times_bound_the_event_or_else_the_creation_and_the_ends_belong(plane: Context) -> None:
    days = [iso(NEW_YEAR - n * DAY) for n in range(5)]
    put(plane, "created", at=NEW_YEAR - 2 * DAY)
    put(plane, "happened", at=NEW_YEAR, event_time=days[3])
    assert set(ids(plane, after=days[3], before=days[2])) == {"created", "happened"}
    assert ids(plane, before=days[3]) == ["happened"]
    assert ids(plane, after=days[2]) == ["created"]
    assert ids(plane, after=days[1]) == []


def said(value: str, **columns) -> Claim:
    return Claim(subject="Ana", predicate="employer", value=value, **columns)


@pytest.mark.req("GRAPH-07")
def test_claims_of_a_session_are_found_in_it_only_and_replace_global_ones(plane: Context) -> None:
    put(plane, "global", 0.9, claim=said("Acme"))
    put(plane, "mine", 0.3, claim=said("Beta", session_id="s1"))
    put(plane, "theirs", 0.8, claim=said("Gamma", session_id="s2"))
    put(plane, "other", 0.2, claim=Claim(subject="Ana", predicate="city", value="Bonn"))
    in_session = replace(plane, reader=replace(plane.reader, session_id="s1"))
    assert set(ids(plane)) == {"global", "other"}
    assert set(ids(in_session)) == {"mine", "other"}
    assert search(in_session).meta["left_out"] == {"other_sessions": 1, "replaced_in_session": 1}


@pytest.mark.req("GRAPH-07")
def test_a_claim_of_the_session_replaces_also_if_it_was_not_a_candidate_itself(
    plane: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_search, "_POOL", 1)
    put(plane, "global", 0.9, claim=said("Acme"))
    put(plane, "mine", 0.3, claim=said("Beta", session_id="s1"))
    in_session = replace(plane, reader=replace(plane.reader, session_id="s1"))
    assert ids(in_session, limit=1) == ["mine"]
    assert ids(in_session, limit=1, min_similarity=0.4) == []


def test_claims_of_many_other_sessions_do_not_crowd_out_the_others(
    plane: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_search, "_POOL", 4)
    for n in range(40):
        put(plane, f"s{n}", 0.9, claim=said(f"v{n}", session_id=f"s{n}"))
    put(plane, "global", 0.3, claim=said("Acme"))
    assert ids(plane, limit=1) == ["global"]


@pytest.mark.req("GRAPH-08")
def test_an_agent_finds_its_own_memories_and_global_ones(plane: Context) -> None:
    put(plane, "own")
    put(plane, "global", agent_id="bob", memory_type="global")
    put(plane, "foreign", agent_id="bob")
    put(plane, "user", user_id="v", memory_type="global")
    for options in (
        {},
        {"include_all": True},
        {"rerank": False},
        {"as_of": iso(NEW_YEAR)},
        {"known_at": iso(NEW_YEAR)},
    ):
        assert set(ids(plane, **options)) == {"own", "global"}
    assert set(ids(replace(plane, reader=Reader("u", "bob")))) == {"global", "foreign"}


@pytest.mark.req("GRAPH-11")
def test_many_searches_return_what_single_ones_do_and_embed_once(plane: Context) -> None:
    for n in range(4):
        put(plane, f"m{n}", None if n % 2 else 0.2 * (n + 1), text=f"topic{n} and more")
    queries = ["topic1", "topic2", "topic3 more", "topic1"]
    single = [search(plane, query, limit=3) for query in queries]
    plane.models.embedder.batches.clear()
    many = graph_search.search_many(plane, queries, Request(limit=3))
    assert plane.models.embedder.batches == [["topic1", "topic2", "topic3 more"]]
    assert [[(hit.id, hit.score) for hit in found] for found in many] == [
        [(hit.id, hit.score) for hit in one] for one in single
    ]
    assert [found.meta for found in many] == [found.meta for found in single]
    assert graph_search.search_many(plane, [], Request()) == []


@pytest.mark.req("GRAPH-28", "GRAPH-30")
def test_an_explanation_names_ranks_scores_weights_and_trust_and_changes_no_result(
    plane: Context,
) -> None:
    put(plane, "m", 0.6, text="the deploy key", importance=0.9, reinforcements=1)
    put(plane, "n", 0.7, text="something else")
    put(plane, "far", 0.1, text="nothing")
    plain = search(plane, "deploy key", min_similarity=0.2, limit=1)
    found = search(plane, "deploy key", min_similarity=0.2, limit=1, explain=True)
    assert [(hit.id, hit.score) for hit in plain] == [(hit.id, hit.score) for hit in found]
    assert plain[0].retrieved is plain[0].rerank is None
    hit = found[0]
    assert hit.retrieved.by == "vectors"
    assert {name: (each.rank, round(each.score, 3) > 0) for name,
            each in hit.retrieved.channels.items()} == {
                "vectors": (2, True), "keywords": (1, True),
            }  # fmt: skip
    assert sum(hit.rerank.parts.values()) == pytest.approx(hit.score)
    assert (
        hit.rerank.trust.base + hit.rerank.trust.feedback
        == pytest.approx(0.95)
        == hit.rerank.confidence
    )
    counts = {"documents": 3, "candidates": 3, "reranked": 2, "returned": 1}
    assert {name: found.meta[name] for name in counts} == counts
    assert found.meta["left_out"] == {"min_similarity": 1, "limit": 1}
    assert (found.meta["model"], found.meta["statuses"]) == ("plane", ["active"])


@pytest.mark.parametrize(
    "options",
    [
        {"rerank": {"relevence": 1}}, {"rerank": {"recency": -0.1}}, {"rerank": {"recency": "1"}},
        {"rerank": {"recency": True}}, {"rerank": {"recency": float("nan")}},
        {"rerank": {"recency": float("inf")}}, {"rerank": "yes"}, {"rerank": None}, {"limit": 0},
        {"limit": True}, {"min_similarity": 1.1}, {"min_similarity": "0"},
        {"status_filter": ["gone"]}, {"status_filter": "active"}, {"include_all": "yes"},
        {"explain": 1}, {"before": "soon"}, {"after": 3},
        {"after": "2026-02-01", "before": "2026-01-01"}, {"as_of": "soon"}, {"known_at": "soon"},
        {"known_at": "2026-01-02"},
    ],
)  # fmt: skip
@pytest.mark.req("GRAPH-04", "GRAPH-65")
def test_a_wrong_option_is_an_error_that_names_it(
    context: Context, options: dict[str, object]
) -> None:
    with pytest.raises(
        InvalidInput,
        match=r"rerank|recency|relev|limit|similarity|status|include|explain|before|after|as_of|"
        r"known",
    ):
        search(context, **options)
    for query in ("", " ", None, "x" * 100_001):
        with pytest.raises(InvalidInput, match="query"):
            search(context, query)


def test_a_search_counts_as_a_use_and_leaves_a_block(plane: Context) -> None:
    context = replace(plane, options=replace(plane.options, audit_recalls=True))
    put(context, "m", 0.6)
    search(context, "the first words")
    assert search(context, "other words")[0].access_count == 1
    usage.flush(context)
    blocks = [str(row.value("yamo_text")) for row in context.store.find(Kind.BLOCK)]
    assert sum("the first words" in text for text in blocks) == 1


# --- two times ---


def day(n: int) -> str:
    return iso(NEW_YEAR + n * DAY)


@pytest.mark.parametrize(
    ("columns", "valid_on"),
    [
        ({}, [-9, 0, 9]),
        ({"valid_from": day(0)}, [0, 9]),
        ({"valid_until": day(0)}, [-9, 0]),
        ({"valid_from": day(0), "valid_until": day(0)}, [0]),
        ({"status": "superseded"}, []),  # corrected: it was never true
        ({"status": "superseded", "valid_until": day(0)}, [-9, 0]),
        ({"status": "superseded", "valid_from": day(0), "valid_until": day(0)}, [0]),
        ({"status": "quarantined"}, []),
        ({"status": "archived", "valid_until": day(0)}, []),
        ({"event_time": day(0)}, [-9, 0, 9]),  # an event does not bound what is not a claim
        ({"event_time": day(0), "claim": said("Acme")}, [0, 9]),
        ({"event_time": day(0), "claim": said("Acme"), "valid_from": day(-9)}, [-9, 0, 9]),
    ],
)
def test_as_of_returns_what_was_valid_then_as_is_known_now(
    plane: Context, columns: dict[str, object], valid_on: list[int]
) -> None:
    put(plane, "m", **columns)
    assert [n for n in (-9, 0, 9) if ids(plane, as_of=day(n))] == valid_on


def test_known_at_returns_what_was_believed_then(plane: Context) -> None:
    first = put(plane, "old", text="Ana works at Acme", at=NEW_YEAR, claim=said("Acme"))
    plane.clock.advance(days=20)
    change(
        plane,
        first,
        NEW_YEAR + 10 * DAY,
        status="superseded",
        superseded_by="new",
        valid_until=day(9),
    )
    put(plane, "new", text="Ana works at Beta", at=NEW_YEAR + 10 * DAY, claim=said("Beta"))
    assert ids(plane) == ["new"]
    assert ids(plane, known_at=day(10)) == ["new"]
    then = search(plane, known_at=day(5))
    assert [(hit.id, hit.status, hit.superseded_by, hit.valid_until) for hit in then] == [
        ("old", "active", None, None)
    ]
    assert ids(plane, known_at=day(-1)) == []
    # What we believe now of day 5, and what we believed then of day 15.
    assert ids(plane, as_of=day(5)) == ["new", "old"]
    assert ids(plane, as_of=day(15), known_at=day(5)) == ["old"]


def test_known_at_shows_the_text_and_the_trust_of_then(plane: Context) -> None:
    memory = put(plane, "m", text="the port is 5432")
    plane.clock.advance(days=20)
    change(
        plane,
        memory,
        NEW_YEAR + 10 * DAY,
        content="the port is 5433",
        importance=1.0,
        disputes=2,
        updated_at=day(10),
    )
    now, then = search(plane)[0], search(plane, known_at=day(5))[0]
    assert (now.content, now.importance, now.revision) == ("the port is 5433", 1.0, 2)
    assert (then.content, then.importance, then.revision, then.updated_at) == (
        "the port is 5432",
        0.5,
        1,
        day(0),
    )
    assert then.trust == pytest.approx(0.8 - 0.1 * 5 / 365)
    assert now.trust < 0.7


def test_known_at_never_shows_what_was_hidden_from_the_reader_then(plane: Context) -> None:
    private = put(plane, "m", text="the secret plan", agent_id="bob")
    plane.clock.advance(days=20)
    shared = change(
        plane, private, NEW_YEAR + 10 * DAY, memory_type="global", content="the public plan"
    )
    change(plane, shared, NEW_YEAR + 12 * DAY, content="the final plan")
    assert [search(plane, known_at=day(n))[:1] == [] for n in (5, 10, 13)] == [True, False, False]
    assert search(plane, known_at=day(11))[0].content == "the public plan"
    bob = replace(plane, reader=Reader("u", "bob"))
    assert search(bob, known_at=day(5))[0].content == "the secret plan"


def test_a_change_at_the_very_time_is_known(plane: Context) -> None:
    memory = put(plane, "m")
    plane.clock.advance(days=20)
    change(plane, memory, NEW_YEAR + 10 * DAY, status="archived")
    assert ids(plane, known_at=iso(NEW_YEAR + 10 * DAY - 1)) == ["m"]
    assert ids(plane, known_at=day(10)) == []
    assert ids(plane, known_at=day(10), status_filter=["archived"]) == ["m"]
    assert [Change.of(row).action for row in plane.store.find(Kind.CHANGE)] == ["update"]
