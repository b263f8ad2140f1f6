"""Reading by id, by age and by words: status, expiry, and the limits of every argument."""

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidFilter, InvalidInput
from memory_mesh.core.model import Kind, Status

from .house import House, texts

HIDDEN = ["superseded", "disputed", "quarantined", "archived"]


@pytest.fixture
def mesh(house: House) -> MemoryMesh:
    """Return a mesh that searches by keywords only with RRF, whose scores can be predicted
    exactly."""
    return house.mesh(ranker="rrf")


# --- status ---


@pytest.mark.req("MESH-009", "MESH-010")
@pytest.mark.parametrize("status", HIDDEN)
def test_a_memory_that_is_not_active_is_returned_only_if_its_status_is_named(
    house: House, mesh: MemoryMesh, status: str
) -> None:
    id_ = mesh.add("hidden text").id
    mesh.add("open text")
    assert texts(mesh.search("text")) == texts(mesh.get_all()) == ["hidden text", "open text"]
    house.change(id_, status=status)
    assert texts(mesh.search("text")) == texts(mesh.get_all()) == ["open text"]
    assert texts(mesh.get_all(filter=f"status = '{status}'")) == []
    assert texts(mesh.search("text", filter="status <> 'active' OR status = 'active'")) == [
        "open text"
    ]
    assert (
        texts(mesh.search("text", status=(status,)))
        == texts(mesh.get_all(status=[status]))
        == ["hidden text"]
    )
    assert texts(mesh.get_all(status=("active", status))) == ["hidden text", "open text"]
    by_id = mesh.get(id_)
    assert by_id
    assert (by_id.content, by_id.status) == ("hidden text", status)
    assert mesh.history(id_)


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("status", HIDDEN)
def test_a_hidden_memory_never_reaches_a_prompt(
    house: House, mesh: MemoryMesh, status: str
) -> None:
    id_ = mesh.add("hidden text").id
    mesh.add("open text")
    assert "hidden text" in mesh.format_results(mesh.search("text"))
    house.change(id_, status=status)
    assert "hidden text" not in mesh.format_results(mesh.search("text"))


@pytest.mark.req("MESH-009")
def test_naming_a_status_does_not_widen_the_scope(house: House, mesh: MemoryMesh) -> None:
    id_ = house.mesh("bob").add("bob's text", {"type": "agent"}).id
    house.change(id_, status="archived")
    assert house.mesh("bob").get_all(status=("archived",))
    assert mesh.get_all(status=tuple(Status)) == mesh.search("text", status=tuple(Status)) == []


@pytest.mark.parametrize("status", [("gone",), ("active", "ACTIVE"), "archived", (None,), (5,)])
def test_an_unknown_status_is_an_error_that_lists_the_known_ones(
    mesh: MemoryMesh, status: object
) -> None:
    for call in (lambda: mesh.get_all(status=status), lambda: mesh.search("text", status=status)):
        with pytest.raises(
            InvalidInput, match=r"expected .* active, superseded, disputed, quarantined, archived"
        ):
            call()
    assert mesh.get_all(status=()) == []


# --- expiry ---


def test_an_expired_memory_is_hidden_from_searches_and_still_returned_by_id(
    house: House, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("text", {"expires_at": "2026-01-02"}).id
    house.clock.advance(days=1, ms=-1)
    assert texts(mesh.get_all()) == texts(mesh.search("text")) == ["text"]
    house.clock.advance(ms=1)
    assert mesh.get_all() == mesh.search("text") == mesh.get_all(status=tuple(Status)) == []
    assert mesh.get(id_).content == "text"
    mesh.update(id_, metadata={"expires_at": None})
    assert texts(mesh.get_all()) == ["text"]


# --- by age ---


@pytest.mark.req("MESH-081")
def test_get_all_returns_the_newest_first_up_to_the_limit(house: House, mesh: MemoryMesh) -> None:
    for n in range(5):
        mesh.add(f"text {n}")
        house.clock.advance(seconds=1)
    found = [record.content for record in mesh.get_all()]
    assert found == ["text 4", "text 3", "text 2", "text 1", "text 0"]
    assert [record.content for record in mesh.get_all(2)] == found[:2]
    assert (
        [record.content for record in mesh.get_all(limit=5)]
        == [record.content for record in mesh.get_all(10_000)]
        == found
    )


@pytest.mark.req("MESH-081")
def test_memories_of_one_millisecond_keep_the_order_of_insertion(mesh: MemoryMesh) -> None:
    for n in range(12):
        mesh.add(f"text {n}")
    assert [record.content for record in mesh.get_all()] == [
        f"text {n}" for n in reversed(range(12))
    ]


@pytest.mark.parametrize(
    "limit", [0, -1, 10_001, 1.5, "5", True, [], 10**5000], ids=lambda limit: type(limit).__name__
)
def test_a_limit_is_a_whole_number_within_bounds(mesh: MemoryMesh, limit: object) -> None:
    mesh.add("text")
    for call in (lambda: mesh.get_all(limit), lambda: mesh.search("text", limit)):
        with pytest.raises(InvalidInput, match="limit is"):
            call()


# --- by words ---


@pytest.mark.req("MESH-083", "MESH-109")
def test_search_returns_the_best_first_with_scores_within_zero_and_one(mesh: MemoryMesh) -> None:
    mesh.add_many(
        [
            (text, None)
            for text in (
                "deploy key key",
                "deploy",
                "key of the house",
                "nothing of it",
                "deploy key",
            )
        ]
    )
    hits = mesh.search("deploy key")
    assert texts(hits) == ["deploy", "deploy key", "deploy key key", "key of the house"]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1.0)
    assert all(0 < score <= 1 for score in scores)
    assert {hit.content for hit in hits[:2]} == {"deploy key key", "deploy key"}
    for two in (mesh.search("deploy key", 2), mesh.search("deploy key", limit=2)):
        assert [hit.id for hit in two] == [hit.id for hit in hits[:2]]


@pytest.mark.req("MESH-083")
def test_a_search_without_a_limit_returns_ten(mesh: MemoryMesh) -> None:
    mesh.add_many([(f"deploy key {number}", None) for number in range(12)])
    assert len(mesh.search("deploy key", 12)) == 12
    assert len(mesh.search("deploy key")) == 10


@pytest.mark.req("MESH-107")
def test_with_keywords_only_the_scores_follow_the_rfc(mesh: MemoryMesh) -> None:
    mesh.add_many([(f"word {'and more ' * n}", None) for n in range(4)])
    assert [hit.score for hit in mesh.search("word")] == pytest.approx(
        [1.0, 61 / 62, 61 / 63, 61 / 64]
    )


def test_equal_scores_have_a_stable_order(mesh: MemoryMesh) -> None:
    mesh.add_many([("the same words", {"turn": n}) for n in range(10)])
    found = [hit.id for hit in mesh.search("words")]
    assert found == sorted(found, reverse=True)
    assert [hit.id for hit in mesh.search("words", limit=3)] == found[:3]


@pytest.mark.parametrize("query", ["", "   ", "\n\t", None, 5, b"text", ["text"]])
def test_a_query_is_a_text_that_is_not_blank(mesh: MemoryMesh, query: object) -> None:
    with pytest.raises(InvalidInput, match=r"the query is blank|the query is .*; expected a text"):
        mesh.search(query)


@pytest.mark.parametrize(
    "query",
    [
        "the and of",
        "a",
        "...!?",
        "\U0001f600",
        "half \ud800 pair",
        "\0",
        "%",
        "'; DROP TABLE",
        "zzz",
    ],
)
def test_a_query_without_matching_keywords_finds_nothing(mesh: MemoryMesh, query: str) -> None:
    mesh.add("some text with words")
    assert mesh.search(query) == []


def test_a_query_as_long_as_allowed_is_answered(mesh: MemoryMesh) -> None:
    mesh.add("needle in the haystack")
    mesh.add("hay")
    assert [hit.content for hit in mesh.search("straw " * 16_000 + "needle")] == [
        "needle in the haystack"
    ]


@pytest.mark.parametrize(
    ("min_score", "found"), [(0, 3), (0.0, 3), (0.97, 2), (0.99, 1), (1, 1), (1.0, 1)]
)
def test_no_result_is_below_the_minimum_score(
    mesh: MemoryMesh, min_score: float, found: int
) -> None:
    mesh.add_many([("word", {"turn": n}) for n in range(3)])
    assert len(mesh.search("word", min_score=min_score)) == found
    least = mesh.search("word")[-1].score
    assert len(mesh.search("word", min_score=least)) == 3


@pytest.mark.parametrize(
    "min_score",
    [-0.1, 1.1, "0.5", True, float("nan"), float("inf"), [], 10**5000],
    ids=lambda given: type(given).__name__,
)
def test_a_minimum_score_is_a_fraction(mesh: MemoryMesh, min_score: object) -> None:
    with pytest.raises(InvalidInput, match="min_score is"):
        mesh.search("word", min_score=min_score)


# --- filters ---


@pytest.mark.req("MESH-117")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("project = 'x'", "b"),
        ("project <> 'x'", "c"),
        ("NOT project = 'x'", "c"),
        ("project IS NULL", "a"),
        ("content LIKE '%ALPHA%'", ""),
        ("content LIKE '%alpha%'", "a"),
        ("content NOT LIKE '%alpha%'", "bc"),
        ("content NOT LIKE 'a%' AND project = 'x'", "b"),
        ("tags = 'red'", "ab"),
        ("tags <> 'red'", "c"),
        ("tags IN ('blue', 'green')", "bc"),
        ("importance >= 0.5", "bc"),
        ("importance_score BETWEEN 0.2 AND 0.6", "ab"),
        ("importance NOT BETWEEN 0.2 AND 0.6", "c"),
        ("turn > -1 OR collection = 'y'", "bc"),
        ("metadata.source = 'cli'", "a"),
        ("metadata.count > 1", "b"),
        ("metadata.count = '2'", ""),
        ("metadata.source IS NOT NULL", "ac"),
        ("event_time > '2025-06-01'", "c"),
        ("event_time = '2025-01-01T01:00:00+01:00'", "a"),
        ("created_at >= '2026-01-01' AND pinned = FALSE", "abc"),
        ("memory_type = 'global' AND NOT (turn = 3)", "b"),
        ("speaker = 'x'' OR 1=1 --'", ""),
    ],
)
def test_a_filter_gives_the_same_results_on_every_store_in_search_and_get_all(
    mesh: MemoryMesh, text: str, found: str
) -> None:
    mesh.add(
        "a word alpha",
        {"tags": ["red"], "importance": "low", "source": "cli", "event_time": "2025-01-01"},
    )
    mesh.add(
        "b word beta",
        {"tags": ["red", "blue"], "importance": 0.5, "project": "x", "turn": 1, "count": 2},
    )
    mesh.add(
        "c word",
        {
            "tags": ["green"],
            "importance": 1,
            "project": "y",
            "turn": 3,
            "source": "web",
            "event_time": "2025-12-01",
        },
    )
    assert "".join(sorted(record.content[0] for record in mesh.get_all(filter=text))) == found
    assert "".join(sorted(hit.content[0] for hit in mesh.search("word", filter=text))) == found


@pytest.mark.req("MESH-116")
def test_a_bad_filter_is_an_error_and_nothing_runs(mesh: MemoryMesh) -> None:
    for bad in ("", "nonsense", "source = 'x'", "turn = 1; DROP TABLE memories"):
        for call in (
            lambda bad=bad: mesh.get_all(filter=bad),
            lambda bad=bad: mesh.search("word", filter=bad),
        ):
            with pytest.raises(InvalidFilter):
                call()
    assert mesh.add("still there").content


def test_the_filter_applies_before_the_limit(mesh: MemoryMesh) -> None:
    mesh.add_many([(f"word {n}", {"turn": n}) for n in range(60)])
    assert [hit.content for hit in mesh.search("word", limit=1, filter="turn = 7")] == ["word 7"]
    assert [record.content for record in mesh.get_all(1, filter="turn = 7")] == ["word 7"]


def test_a_pattern_full_of_wildcards_does_not_stop_the_search(mesh: MemoryMesh) -> None:
    mesh.add("word " + "a" * 20_000)
    assert mesh.search("word", filter="content LIKE '" + "%a" * 200 + "%b'") == []
    assert len(mesh.get_all(filter="content LIKE '" + "%a" * 200 + "%'")) == 1


@pytest.mark.parametrize("session", ["half \ud800", "nul \0", 5, ["s"]])
def test_a_session_id_is_a_text(mesh: MemoryMesh, session: object) -> None:
    for call in (
        lambda: mesh.get_all(session_id=session),
        lambda: mesh.search("word", session_id=session),
        lambda: mesh.get("mem_1_ffffff", session_id=session),
    ):
        with pytest.raises(InvalidInput, match="session_id"):
            call()


def test_memories_changed_during_a_search_are_not_returned(house: House, mesh: MemoryMesh) -> None:
    ids = [mesh.add("some words", {"turn": n}).id for n in range(3)]
    read = house.store.get

    def meddled(kind: Kind, wanted: list[str]) -> object:
        house.store.get = read
        if len(wanted) == 3:  # the candidates are chosen and will be read next
            house.change(ids[0], status="quarantined")
            house.mesh().delete(ids[1])
        else:
            house.store.get = meddled
        return read(kind, wanted)

    house.store.get = meddled
    assert [hit.id for hit in mesh.search("words")] == [ids[2]]


# --- the text for a prompt ---


@pytest.mark.req("MESH-099")
def test_results_are_formatted_as_the_document_prints_them(mesh: MemoryMesh) -> None:
    mesh.add("first word", {"type": "event", "source": "cli"})
    mesh.add("second word of\nmore lines")
    one, two = mesh.search("word")
    assert mesh.format_results([one, two]) == (
        "[ATTENTION DIRECTIVE]\n"
        "- ALIGN attention to entries with [IMPORTANCE >= 0.8]\n"
        "- TREAT entries with [IMPORTANCE <= 0.4] as auxiliary\n"
        "\n"
        "[MEMORY CONTEXT]\n"
        f"--- MEMORY 1: {one.id} [IMPORTANCE: 1.00] ---\n"
        "Type: event | Source: cli\n"
        "first word\n"
        "\n"
        f"--- MEMORY 2: {two.id} [IMPORTANCE: 0.98] ---\n"
        "Type: global | Source: unknown\n"
        "second word of\nmore lines"
    )
    assert mesh.format_results([]).endswith("[MEMORY CONTEXT]\n")


# --- stats ---


@pytest.mark.req("MESH-097")
def test_stats_count_what_the_reader_sees_and_name_the_place(
    house: House, mesh: MemoryMesh
) -> None:
    empty = mesh.stats()
    assert (empty.total_memories, empty.total_skills, empty.connected, empty.status) == (
        0,
        0,
        True,
        "connected",
    )
    ids = [mesh.add(f"text {n}").id for n in range(3)]
    house.mesh("bob").add("bob's", {"type": "agent"})
    house.mesh("ann", user_id="other").add("not counted")
    house.change(ids[0], status="archived")
    stats = mesh.stats()
    assert (stats.total_memories, stats.by_status) == (3, {"active": 2, "archived": 1})
    assert stats.db_path == house.store.url


@pytest.mark.req("MESH-001")
def test_relevance_importance_trust_and_confidence_are_never_written_into_each_other(
    house: House, mesh: MemoryMesh
) -> None:
    id_ = mesh.add("some words", {"importance": 0.3, "confidence": 0.6}).id
    house.change(id_, trust=0.9)

    def numbers() -> tuple[float | None, ...]:
        kept = mesh.get(id_)
        return kept.importance, kept.trust, kept.confidence

    assert mesh.search("words")[0].score == 1.0
    mesh.pin(id_)
    mesh.update(id_, content="other words")
    mesh.add("other words")
    assert numbers() == (0.3, 0.9, 0.6)
    mesh.update(id_, metadata={"importance": "critical"})
    assert numbers() == (1.0, 0.9, 0.6)
    mesh.update(id_, metadata={"confidence": 0})
    assert numbers() == (1.0, 0.9, 0.0)
    assert mesh.search("words")[0].score == 1.0


@pytest.mark.req("MESH-003", "MESH-031")
def test_the_conventional_keys_come_back_from_the_store(mesh: MemoryMesh) -> None:
    metadata = {
        "type": "event",
        "source": "cli",
        "tags": ["a", "b"],
        "rationale": "why",
        "hypothesis": "what for",
        "skill_name": "s",
        "session_id": "s1",
        "other": {"deep": [1, None, True]},
    }
    record = mesh.add("some words", metadata)
    assert mesh.get(record.id).metadata == mesh.search("words")[0].metadata == metadata
    assert mesh.get(record.id).memory_type == "global"
