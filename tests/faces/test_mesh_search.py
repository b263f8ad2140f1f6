"""Searching through the mesh: channels, rankers, scores, the cache, explanations and invalid
queries."""

from collections.abc import Sequence

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidFilter, InvalidInput
from memory_mesh.core.model import Vector
from memory_mesh.models import HashingEmbedder
from memory_mesh.testing.fakes import RecordingEmbedder

from .house import House

FACTS = [
    "The deploy key rotates on Mondays.",
    "Ana prefers green tea in the morning.",
    "The harbour quay was built of granite.",
    "Backups run every night at two.",
    "Bob is allergic to peanuts.",
]


@pytest.fixture
def recorder() -> RecordingEmbedder:
    return RecordingEmbedder(HashingEmbedder())


@pytest.fixture
def mesh(house: House, recorder: RecordingEmbedder) -> MemoryMesh:
    filled = house.mesh(embedder=recorder)
    filled.add_many(
        [(fact, {"tags": ["ops"]} if n % 2 == 0 else None) for n, fact in enumerate(FACTS)]
    )
    return filled


# --- words ---


def test_a_misspelt_word_is_found_and_explained(mesh: MemoryMesh) -> None:
    assert mesh.explain("graniet quay", ranker="rrf").corrections == {"graniet": "granit"}
    assert mesh.explain("granite quay", ranker="rrf").corrections == {}
    assert mesh.search("granitte", ranker="rrf")[0].content == FACTS[2]


class Tokenizer(HashingEmbedder):
    """An embedder whose tokenizer has the word "scale"."""

    def count(self, text: str) -> int:
        return 1 if text == "scale" else len(text)


def test_a_word_that_the_embedder_knows_is_not_corrected(house: House) -> None:
    mesh = house.mesh(embedder=Tokenizer())
    mesh.add("The sale at the harbour starts on Monday.")
    assert mesh.explain("a scale, the habrour").corrections == {"habrour": "harbour"}
    assert house.mesh(embedder=HashingEmbedder()).explain("a scale").corrections == {
        "scale": "sale"
    }


def test_emoji_and_each_spelling_of_a_letter_are_found(house: House) -> None:
    mesh = house.mesh(embedder="none")
    mesh.add_many(
        [("Frau Müller feiert 🎉", None), ("Herr Mueller zahlt", None), ("Søren sier hei", None)]
    )

    def found(query: str) -> set[str]:
        return {
            hit.content.split()[1] if "sier" not in hit.content else "Søren"
            for hit in mesh.search(query, min_score=0)
        }

    assert [found(query) for query in ("🎉", "muller", "mueller", "Müller", "soren", "SOEREN")] == [
        {"Müller"}, {"Müller"}, {"Müller", "Mueller"}, {"Müller", "Mueller"}, {"Søren"}, {"Søren"},
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["Caroline", "Carolyne", "Caro", "Carrie", "Kit"])
def test_a_speaker_is_found_by_a_nickname_and_with_a_typo(house: House, name: str) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    talk = [
        ("Caroline", "I paint horses"),
        ("Melanie", "Hey Kit! I paint boats"),
        ("Caroline", "I sing"),
        ("Melanie", "I dance"),
    ]
    mesh.add_many(
        [
            (text, {"speaker": who, "session_id": "s", "turn": at})
            for at, (who, text) in enumerate(talk)
        ]
    )
    assert mesh.search(f"What does {name} paint?")[0].content == "I paint horses"
    assert mesh.search("What does Zebediah paint?")  # an unknown name does not rule out everything


# --- rankers and scores ---


@pytest.mark.req("MESH-028", "MESH-106", "MESH-107")
def test_with_rrf_first_in_both_channels_scores_one(mesh: MemoryMesh) -> None:
    found = mesh.search(FACTS[1], ranker="rrf")
    assert found[0].content == FACTS[1]
    assert found[0].score == pytest.approx(1.0)
    # The others are ranked by vectors only: of the maximum of two channels, 1/61 each, they get
    # 1/62, 1/63, …
    others = [hit.score for hit in found[1:]]
    assert others == pytest.approx([(1 / (61 + rank)) / (2 / 61) for rank in range(1, len(found))])


@pytest.mark.req("MESH-107")
def test_first_in_the_only_channel_in_use_is_one(house: House, mesh: MemoryMesh) -> None:
    found = house.mesh(embedder="none").search("granite", ranker="rrf")
    assert [(hit.content, hit.score) for hit in found] == [(FACTS[2], 1.0)]
    assert found[0].similarity is None


@pytest.mark.req("MESH-107", "MESH-108")
def test_channel_weights_are_a_setting(house: House, mesh: MemoryMesh) -> None:
    words = house.mesh(embedder=HashingEmbedder(), ranker="rrf", channel_weights={"vectors": 0.0})
    assert [hit.content for hit in words.search("granite") if hit.score > 0] == [FACTS[2]]
    assert words.search("granite")[0].score == 1.0
    likeness = house.mesh(
        embedder=HashingEmbedder(), ranker="rrf", channel_weights={"keywords": 0.0}
    )
    assert likeness.search(FACTS[3])[0].score == 1.0


@pytest.mark.req("MESH-110")
def test_a_result_has_a_similarity_beside_its_score(mesh: MemoryMesh) -> None:
    found = {hit.content: hit.similarity for hit in mesh.search(FACTS[0], ranker="rrf")}
    assert found[FACTS[0]] == pytest.approx(1.0, abs=0.01)
    assert all(value is not None and 0 <= value <= 1 for value in found.values())
    assert found[FACTS[4]] < 0.9


class Directions:
    """An embedder in two dimensions: the first word of a text is its cosine with every text that
    starts with no number."""

    model, window = "directions", 1000

    def count(self, text: str) -> int:
        return len(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        words = [text.split()[0] for text in texts]
        cosines = [1.0 if word.isalpha() else float(word) for word in words]
        return [Vector.of(self.model, [cosine, (1 - cosine**2) ** 0.5]) for cosine in cosines]


@pytest.mark.req("MESH-110")
def test_similarity_is_one_minus_half_the_distance_and_not_rounded(house: House) -> None:
    mesh = house.mesh(embedder=Directions())
    cosines = (1.0, 0.612, 0.5, -0.5, -1.0)
    mesh.add_many([(f"{cosine} is a cosine", None) for cosine in cosines])
    found = {hit.content: hit.similarity for hit in mesh.search("cosine", ranker="rrf")}
    expected = {f"{cosine} is a cosine": 1 - (1 - cosine) / 2 for cosine in cosines}
    assert found == pytest.approx(expected, abs=0.002)


def test_scores_lie_within_zero_and_one_and_fall(mesh: MemoryMesh) -> None:
    for ranker in ("learnt", "rrf"):
        scores = [
            hit.score
            for hit in mesh.search("when does the key rotate?", ranker=ranker, min_score=0)
        ]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert len(scores) >= 1


def test_the_best_keyword_match_comes_first_under_the_learnt_ranker(mesh: MemoryMesh) -> None:
    assert mesh.search("when does the deploy key rotate?", min_score=0)[0].content == FACTS[0]


def test_a_minimum_score_leaves_out_what_scores_below(mesh: MemoryMesh) -> None:
    all_of_them = mesh.search("deploy key", min_score=0)
    least = all_of_them[0].score
    assert [hit.id for hit in mesh.search("deploy key", min_score=least)] == [all_of_them[0].id]
    assert len(all_of_them) > 1


# --- filters and scope, in every channel ---


@pytest.mark.req("MESH-105")
def test_a_filter_applies_to_results_by_vectors_too(mesh: MemoryMesh) -> None:
    query = FACTS[1]
    assert FACTS[1] in [hit.content for hit in mesh.search(query, ranker="rrf")]
    found = [hit.content for hit in mesh.search(query, filter="tags = 'ops'", ranker="rrf")]
    assert sorted(found) == sorted(FACTS[::2])


def test_a_filter_on_a_key_that_no_memory_has_says_so_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    mesh, typo = house.mesh(), {"sorce": "wiki"}
    assert mesh.get_all(filter=typo) == mesh.search("tea", filter=typo) == []
    assert caplog.messages == []  # nothing is stored yet
    mesh.add("Ana likes tea.", {"source": "wiki", "place": {"city": "Rome"}})
    assert mesh.search("tea", filter={"source": "mail"}) == mesh.get_all(filter=typo) == []
    assert mesh.search("tea", filter=typo) == []
    assert mesh.get_all(filter={"place.city": "Rome", "memory_typ": "global"}) == []
    assert sorted(caplog.messages) == [
        "the filter found nothing: no memory has the metadata key 'memory_typ'; did you mean "
        "'memory_type'?",
        "the filter found nothing: no memory has the metadata key 'place.city'",
        "the filter found nothing: no memory has the metadata key 'sorce'; did you mean 'sources'?",
    ]


def test_what_a_filter_says_of_a_key_tells_nothing_of_other_users(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = house.mesh()
    mesh.add("Ana likes tea.", {"city": "Rome"}, user_id="ana")
    mesh.add("Bob likes tea.", user_id="bob")
    assert mesh.get_all(filter={"city": "Rome"}, user_id="bob") == []
    assert "metadata key 'city'" in caplog.text


def test_what_one_user_was_told_of_a_key_is_also_told_to_another(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = house.mesh()
    for user in ("ana", "bob"):
        mesh.add("Someone likes tea.", user_id=user)
    for user in ("ana", "bob", "ana"):
        assert mesh.get_all(filter={"city": "Rome"}, user_id=user) == []
    assert caplog.text.count("metadata key 'city'") == 2


def test_an_explanation_that_found_nothing_names_an_unknown_key_as_a_search_does(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = house.mesh()
    mesh.add("Ana likes tea.")
    assert mesh.explain("tea", mode="recall").answers
    assert caplog.messages == []
    assert mesh.explain("tea", filter={"sorce": "wiki"}).answers == []
    assert "no memory has the metadata key 'sorce'" in caplog.text


@pytest.mark.req("MESH-105")
def test_a_filter_applies_before_candidates_are_counted(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add_many([(f"tea number {n} for Ana", None) for n in range(400)])
    rare = mesh.add("nothing to do with it", {"tags": ["rare"]})
    assert [
        hit.id for hit in mesh.search("tea for Ana", filter="tags = 'rare'", min_score=0, limit=2)
    ] == [rare.id]


@pytest.mark.req("MESH-105")
def test_twice_as_many_candidates_as_results_are_ranked(house: House) -> None:
    mesh = house.mesh(embedder="none")
    mesh.add_many([(f"tea number {n}", None) for n in range(500)])
    assert mesh.explain("tea", limit=240).candidates >= 480


@pytest.mark.req("MESH-105")
def test_each_channel_gives_twice_as_many_candidates_as_results(house: House) -> None:
    mesh = house.mesh(embedder=Directions(), ranker="rrf")
    mesh.add("0 granite granite granite")  # first by keywords, last by vectors
    mesh.add("1 nothing")  # first by vectors, none of the keywords
    second_twice = mesh.add("0.9 granite and more words")
    assert [hit.id for hit in mesh.search("granite", limit=1)] == [second_twice.id]


def test_private_memories_of_others_are_found_by_no_channel(house: House, mesh: MemoryMesh) -> None:
    secret = mesh.add("Ana's locker code is written under the lamp.", {"type": "agent"})
    query = "Ana's locker code is written under the lamp."
    assert mesh.search(query, ranker="rrf")[0].id == secret.id
    for ranker in ("rrf", "learnt"):
        stranger = house.mesh("bob", embedder=HashingEmbedder())
        assert secret.id not in [
            hit.id for hit in stranger.search(query, ranker=ranker, min_score=0, limit=100)
        ]


def test_a_memory_that_is_not_active_is_found_only_if_its_status_is_named(
    house: House, mesh: MemoryMesh
) -> None:
    kept = mesh.search("granite", ranker="rrf")[0]
    house.change(kept.id, status="quarantined")
    assert kept.id not in [hit.id for hit in mesh.search("granite", ranker="rrf", min_score=0)]
    assert [hit.id for hit in mesh.search("granite", ranker="rrf", status=["quarantined"])] == [
        kept.id
    ]


# --- the cache ---


@pytest.mark.req("MESH-113", "MESH-114")
def test_a_repeated_search_is_answered_from_the_cache(
    mesh: MemoryMesh, recorder: RecordingEmbedder
) -> None:
    first = mesh.search("deploy key")
    asked = len(recorder.texts)
    assert [hit.id for hit in mesh.search("deploy key")] == [hit.id for hit in first]
    assert len(recorder.texts) == asked
    assert mesh.get_cache_stats().hits == 1


OTHERWISE: tuple[dict[str, object], ...] = (
    {"query": "key"}, {"limit": 1}, {"filter": "tags = 'ops'"}, {"status": ["archived"]},
    {"min_score": 0.0}, {"ranker": "rrf"},
)  # fmt: skip


@pytest.mark.req("MESH-113")
@pytest.mark.parametrize("other", OTHERWISE, ids=lambda other: next(iter(other)))
def test_another_search_is_not_answered_from_the_cache(
    mesh: MemoryMesh, other: dict[str, object]
) -> None:
    usual = {"query": "deploy key", "limit": 2, "min_score": 0.5}
    mesh.search(**usual)
    found = mesh.search(**{**usual, **other})
    assert mesh.get_cache_stats().hits == 0
    assert [hit.id for hit in mesh.search(**{**usual, **other})] == [hit.id for hit in found]
    assert mesh.get_cache_stats().hits == 1  # so it was cached, under a key of its own


@pytest.mark.req("MESH-114")
def test_a_search_without_the_cache_neither_reads_nor_fills_it(
    mesh: MemoryMesh, recorder: RecordingEmbedder
) -> None:
    mesh.search("deploy key", use_cache=False)
    assert mesh.get_cache_stats().size == 0
    mesh.search("deploy key")
    asked = len(recorder.texts)
    mesh.search("deploy key", use_cache=False)
    assert len(recorder.texts) == asked + 1


@pytest.mark.req("MESH-114")
@pytest.mark.parametrize("by", ["this mesh", "another mesh"])
def test_any_write_invalidates_cached_answers(house: House, mesh: MemoryMesh, by: str) -> None:
    writer = mesh if by == "this mesh" else house.mesh("bob", embedder=HashingEmbedder())
    kept = mesh.search("granite", ranker="rrf")[0]
    mesh.search("granite deploy", ranker="rrf")
    added = writer.add("More granite arrived.")
    assert added.id in [hit.id for hit in mesh.search("granite", ranker="rrf")]
    writer.update(added.id, content="More marble arrived.")
    found = {hit.id: hit.content for hit in mesh.search("granite", ranker="rrf")}
    assert found[added.id] == "More marble arrived."
    house.change(added.id, status="archived")
    assert added.id not in [hit.id for hit in mesh.search("granite", ranker="rrf")]
    writer.delete(kept.id)
    assert kept.id not in [hit.id for hit in mesh.search("granite", ranker="rrf")]


@pytest.mark.req("MESH-114")
def test_the_scope_is_part_of_the_cache_key(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    hidden = mesh.add("the granite of session one", {"type": "session", "session_id": "one"})
    assert [hit.id for hit in mesh.search("granite", session_id="one")] == [hidden.id]
    assert mesh.search("granite", session_id="two") == []
    assert mesh.search("granite") == []


def test_a_cached_answer_is_invalid_once_one_of_its_memories_expires(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add("granite for a minute", {"expires_at": "2026-01-01T00:01:00Z"})
    assert len(mesh.search("granite")) == 1
    house.clock.advance(seconds=59)
    assert len(mesh.search("granite")) == 1
    house.clock.advance(seconds=1)
    assert mesh.search("granite") == []


def test_changing_a_result_does_not_change_the_cache(mesh: MemoryMesh) -> None:
    first = mesh.search("deploy key")
    assert first[0].tags == ["ops"]
    first[0].tags.append("changed")
    first[0].metadata["more"] = "changed"
    first.clear()
    again = mesh.search("deploy key")
    assert (again[0].tags, again[0].metadata) == (["ops"], {"tags": ["ops"]})
    assert mesh.get_cache_stats().hits == 1


def test_an_erased_memory_is_in_no_cached_answer(mesh: MemoryMesh) -> None:
    kept = mesh.search("granite", ranker="rrf")[0]
    assert mesh.get_cache_stats().size == 1
    mesh.delete(kept.id)
    assert mesh.get_cache_stats().size == 0


@pytest.mark.req("MESH-098")
def test_the_cache_can_be_inspected_and_cleared(mesh: MemoryMesh) -> None:
    mesh.search("deploy key")
    stats = mesh.get_cache_stats()
    assert (stats.size, stats.max_size, stats.ttl_seconds) == (1, 500, 300)
    mesh.clear_cache()
    assert mesh.get_cache_stats().size == 0


# --- usage ---


@pytest.mark.req("MESH-034")
def test_a_search_counts_as_use_and_every_reader_sees_the_count(
    house: House, mesh: MemoryMesh
) -> None:
    kept = mesh.search("granite", ranker="rrf", limit=1)[0]
    house.clock.advance(seconds=5)
    mesh.search("granite", ranker="rrf", limit=1)
    now = mesh.get(kept.id)
    assert now
    assert (now.access_count, now.last_accessed) == (2, "2026-01-01T00:00:05.000Z")
    mesh.close()
    other = house.mesh("bob", embedder="none").get(kept.id)
    assert other
    assert (other.access_count, other.last_accessed) == (2, "2026-01-01T00:00:05.000Z")
    assert other.revision == kept.revision


@pytest.mark.req("MESH-034")
def test_every_result_of_a_search_counts_as_used(mesh: MemoryMesh) -> None:
    found = mesh.search(FACTS[1], ranker="rrf", limit=3)
    counts = {
        record.id: (record.access_count, record.last_accessed is not None)
        for record in mesh.get_all()
    }
    assert len(found) == 3
    assert counts == {
        id_: (1, True) if id_ in {hit.id for hit in found} else (0, False) for id_ in counts
    }


@pytest.mark.req("MESH-034")
@pytest.mark.parametrize("cut", [{"limit": 1}, {"min_score": 0.9}, {"max_chars": len(FACTS[1])}])
def test_what_is_cut_off_does_not_count_as_used(mesh: MemoryMesh, cut: dict[str, float]) -> None:
    everything = mesh.explain(FACTS[1], ranker="rrf", min_score=0.0)
    assert len(everything.answers) > 1  # without the cut there are more
    (found,) = mesh.search(FACTS[1], ranker="rrf", **cut)  # type: ignore[arg-type]
    assert [record.id for record in mesh.get_all() if record.access_count] == [found.id]


@pytest.mark.req("MESH-034")
def test_counts_of_several_meshes_add_up_and_go_with_the_memory(
    house: House, mesh: MemoryMesh
) -> None:
    other = house.mesh("bob", embedder=HashingEmbedder())
    kept = mesh.search("granite", ranker="rrf", limit=1)[0]
    other.search("granite", ranker="rrf", limit=1)
    mesh.close()
    other.close()
    again = house.mesh(embedder="none")
    found = again.get(kept.id)
    assert found
    assert found.access_count == 2
    again.delete(kept.id)
    assert again.get(kept.id) is None
    from memory_mesh.core.model import Kind

    assert kept.id not in house.store.ids(Kind.USAGE)


def test_a_memory_erased_before_its_counts_were_written_gets_no_usage_row(
    house: House, mesh: MemoryMesh
) -> None:
    from memory_mesh.core.model import Kind

    kept = mesh.search("granite", ranker="rrf", limit=1)[0]
    house.mesh("bob", embedder="none").delete(kept.id)
    mesh.close()
    assert house.store.ids(Kind.USAGE) == []


# --- explanations ---


def test_an_explanation_shows_the_rank_and_score_of_each_channel(mesh: MemoryMesh) -> None:
    told = mesh.explain("when does the deploy key rotate?", ranker="rrf", min_score=0)
    first = told.answers[0]
    assert first.result.content == FACTS[0]
    assert first.channels["keywords"].rank == 1
    assert first.channels["keywords"].score > 0
    assert first.channels["vectors"].rank >= 1
    assert told.model == "hashing/256"
    assert told.ranker == "rrf"
    assert told.documents == len(FACTS)
    assert "deploy" in told.tokens


def test_an_explanation_of_the_learnt_ranker_shows_its_features(mesh: MemoryMesh) -> None:
    told = mesh.explain("when does the deploy key rotate?", min_score=0)
    assert told.answers[0].features
    assert [found.result.id for found in told.answers] == [
        hit.id for hit in mesh.search("when does the deploy key rotate?", min_score=0)
    ]


def test_an_explanation_says_what_was_left_out_and_why(house: House, mesh: MemoryMesh) -> None:
    house.change(mesh.search("peanuts", ranker="rrf")[0].id, status="archived")
    told = mesh.explain("key", limit=1, filter="tags = 'ops'", ranker="rrf", min_score=0)
    assert told.left_out["status"] == 1
    assert told.left_out["filter"] == 2
    assert told.left_out["limit"] >= 1
    high = mesh.explain("deploy key", min_score=1.0)
    assert high.left_out["min_score"] >= 1
    assert high.nearly[0].result.content == FACTS[0]
    assert high.answers == []


def test_an_explanation_does_not_count_as_use(mesh: MemoryMesh) -> None:
    told = mesh.explain("granite", ranker="rrf")
    found = mesh.get(told.answers[0].result.id)
    assert found
    assert found.access_count == 0


def test_an_explanation_shows_the_query_with_personal_data_masked(mesh: MemoryMesh) -> None:
    told = mesh.explain("who has ann@example.org?", ranker="rrf")
    assert "ann@example.org" not in told.query
    assert "who has" in told.query


# --- bad input ---


@pytest.mark.parametrize("query", ["", "   ", "\n", None, 7])
def test_a_blank_query_is_refused(mesh: MemoryMesh, query: str) -> None:
    expected = "query is blank" if isinstance(query, str) else f"query is {query}; expected a text"
    with pytest.raises(InvalidInput, match=expected):
        mesh.search(query)
    with pytest.raises(InvalidInput, match=expected):
        mesh.explain(query)


def test_a_query_of_a_megabyte_is_refused_and_a_long_one_is_answered(mesh: MemoryMesh) -> None:
    with pytest.raises(InvalidInput, match=r"1,000,000 characters.*at most 100,000"):
        mesh.search("x" * 1_000_000)
    assert mesh.search("granite " * 12_000, ranker="rrf")[0].content == FACTS[2]


@pytest.mark.parametrize(
    "query", ["???", "日本", "🦊", "the of and", "a", "%_'\";--", "\u202e", "ﬀ"]
)
def test_odd_queries_are_answered_or_find_nothing(mesh: MemoryMesh, query: str) -> None:
    for ranker in ("learnt", "rrf"):
        assert len(mesh.search(query, ranker=ranker)) <= len(FACTS)


def test_an_invalid_ranker_minimum_or_limit_is_refused(mesh: MemoryMesh) -> None:
    with pytest.raises(InvalidInput, match=r"ranker is .deep..*learnt, rrf"):
        mesh.search("key", ranker="deep")
    for least in (-0.1, 1.1, "much", True, float("nan")):
        with pytest.raises(InvalidInput, match="min_score"):
            mesh.search("key", min_score=least)
    for limit in (0, -1, 10_001, "ten", True):
        with pytest.raises(InvalidInput, match="limit"):
            mesh.search("key", limit)
    with pytest.raises(InvalidFilter):
        mesh.search("key", filter="content; DROP TABLE memories")


def test_a_search_in_an_empty_store_returns_nothing(house: House) -> None:
    empty = house.mesh(embedder=HashingEmbedder())
    assert empty.search("anything") == []
    assert empty.explain("anything").documents == 0


def test_a_search_with_memory_disabled_returns_nothing() -> None:
    assert MemoryMesh(enable_memory=False, embedder=HashingEmbedder()).search("anything") == []


@pytest.mark.parametrize("status", [None, "active", 7])
def test_statuses_are_a_list(mesh: MemoryMesh, status: object) -> None:
    for call in (lambda: mesh.search("key", status=status), lambda: mesh.get_all(status=status)):
        with pytest.raises(InvalidInput, match=r"status is .*expected a list of active"):
            call()


def test_a_name_that_only_another_session_mentions_is_unknown(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add("Ana prefers tea.", {"speaker": "Ana"})
    query = "what does the neighbour Zebulon think of tea?"

    def told(session: str) -> float:
        return mesh.explain(query, session_id=session, min_score=0).answers[0].features["stranger"]

    assert told("s2") == 0.5
    mesh.add("Zebulon dislikes tea.", {"type": "session", "session_id": "s1"})
    assert told("s2") == 0.5
    assert told("s1") == 0.0


# --- versions of a statement ---


@pytest.mark.req("MESH-109")
def test_an_older_version_of_a_statement_is_below_the_newer_one_and_explained(house: House) -> None:
    mesh = house.mesh(embedder=None)
    # The older text is shorter, so that BM25 prefers it.
    old = mesh.add("The staging database listens on port 5432.")
    new = mesh.add("The staging database listens on port 6543 of the second host.")
    mesh.add_many([f"The harbour has {number} cranes." for number in range(20)])
    for limit in (1, 5):
        assert (
            mesh.search("on which port does the staging database listen?", limit=limit)[0].id
            == new.id
        )
    found = mesh.explain("on which port does the staging database listen?").answers[:2]
    assert [(each.result.id, each.newer) for each in found] == [(new.id, None), (old.id, new.id)]
    assert found[0].result.score > found[1].result.score
    assert (
        mesh.search("on which port does the staging database listen?", ranker="rrf")[0].id == old.id
    )


@pytest.mark.req("MESH-109")
def test_a_reflection_is_no_newer_version_of_the_memory_it_quotes(house: House) -> None:
    mesh, query = house.mesh(), "which port has the staging database?"
    memory = mesh.add("The staging database listens on port 5432.")
    mesh.add("The staging database is backed up at night.")
    reflection = mesh.reflect(topic="port of the staging database")
    assert reflection.content.startswith(memory.content)
    explained = {each.result.id: each.newer for each in mesh.explain(query).answers}
    assert (explained[memory.id], explained[str(reflection.memory_id)]) == (None, None)
    newer = mesh.add("The staging database listens on port 6543.")
    explained = {each.result.id: each.newer for each in mesh.explain(query).answers}
    assert (next(iter(explained)), explained[memory.id]) == (newer.id, newer.id)


def test_a_reflection_with_the_text_of_its_source_does_not_hide_it(house: House) -> None:
    mesh = house.mesh()
    memory = mesh.add("The staging database listens on port 5432.")
    assert mesh.reflect(topic="staging database").content == memory.content
    assert [
        (hit.id, hit.copies) for hit in mesh.search("which port has the staging database?")
    ] == [(memory.id, 2)]


def test_a_newer_version_that_the_reader_cannot_see_changes_nothing(house: House) -> None:
    mine, theirs = (house.mesh(embedder=None, agent_id=agent) for agent in ("one", "two"))
    old = mine.add("The staging database listens on port 5432.", {"type": "agent"})
    theirs.add("The staging database listens on port 6543.", {"type": "agent"})
    [found] = mine.explain("staging database port").answers
    assert (found.result.id, found.newer) == (old.id, None)
