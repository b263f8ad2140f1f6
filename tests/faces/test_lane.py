"""The lane: what it stores, how it scores, what it leaves out, entities, feedback and
supersession."""

import re
from collections.abc import Iterator, Sequence
from math import sqrt
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_mesh import InvalidInput, LaneResult, MemoryLane, NotFound
from memory_mesh.core.lane import scoring
from memory_mesh.core.model import Vector
from memory_mesh.stores import open_store

from .house import House

TYPES = {
    "correction": 1.0, "decision": 1.0, "commitment": 1.0, "insight": 0.7, "learning": 0.7,
    "confidence": 0.7, "pattern_seed": 0.4, "cross_agent": 0.4, "workflow_note": 0.4, "gap": 0.4,
}  # fmt: skip


class Cosines:
    """An embedder: a text that ends with `@0.8` has the cosine 0.8 to every text without such an
    end."""

    model, window = "cosines", 256

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        cosines = [
            float(match[1]) if (match := re.search(r"@([\d.]+)$", text)) else 1.0 for text in texts
        ]
        return [Vector.of(self.model, [cosine, sqrt(1 - cosine**2)]) for cosine in cosines]


@pytest.fixture
def house() -> Iterator[House]:
    store = open_store("memory://")
    yield House(store)
    store.close()


@pytest.fixture
def lane(house: House) -> MemoryLane:
    return house.mesh(embedder=Cosines()).lane


def ids(results: Sequence[LaneResult]) -> list[str]:
    return [result.id for result in results]


# --- storing ---


@pytest.mark.req("LANE-06", "LANE-07", "LANE-09", "LANE-13")
def test_a_memory_has_the_metadata_of_the_document_with_its_defaults(
    lane: MemoryLane, house: House
) -> None:
    stored = lane.store("Ports are opened by the platform team @0.9", memory_type="learning")
    expected = {
        "lane_version": "4.1.0", "memory_type": "learning", "entity_slugs": [], "entities": [],
        "confidence_score": 70, "decay_factor": 1.0, "feedback_score": 1.0, "feedback_count": 0,
        "times_observed": 1, "valid_from": None, "valid_until": None, "supersedes": None,
        "superseded_by": None, "access_count": 0, "last_accessed_at": None,
    }  # fmt: skip
    (found,) = lane.find("ports")
    assert {name: found.metadata.get(name, "missing") for name in expected} == expected
    memory = house.memory(stored.id)
    # What Memory Lane reads.
    assert {name: memory.metadata.get(name, "missing") for name in expected} == expected
    assert (memory.category, memory.memory_type) == ("learning", "global")


@pytest.mark.req("LANE-07")
def test_there_are_ten_types_and_each_is_the_category(lane: MemoryLane, house: House) -> None:
    for type_ in TYPES:
        assert house.memory(lane.store(f"of {type_} @0.9", memory_type=type_).id).category == type_
    with pytest.raises(InvalidInput, match=f"expected one of {', '.join(TYPES)}"):
        lane.store("x @0.9", memory_type="fact")


@pytest.mark.req("LANE-09", "LANE-12")
def test_a_memory_of_another_face_has_the_defaults_too(house: House) -> None:
    mesh = house.mesh(embedder=Cosines())
    added = mesh.add("c @0.9")
    metadata = mesh.lane.find("c")[0].metadata
    assert (metadata["decay_factor"], metadata["confidence_score"], metadata["feedback_score"]) == (
        1.0,
        70,
        1.0,
    )
    assert metadata.get("first_observed_at") == metadata.get("last_observed_at") == added.created_at


@pytest.mark.req("LANE-11")
def test_confidence_is_0_to_100_at_the_face_and_0_to_1_inside(
    lane: MemoryLane, house: House
) -> None:
    stored = lane.store("a @0.9", memory_type="insight", confidence_score=85)
    assert house.memory(stored.id).confidence == 0.85
    assert lane.find("a")[0].metadata["confidence_score"] == 85
    for score, inside in ((0, 0.0), (100, 1.0)):
        stored = lane.store(f"end {score} @0.9", memory_type="insight", confidence_score=score)
        assert house.memory(stored.id).confidence == inside
        (found,) = [each for each in lane.find("end", limit=50) if each.id == stored.id]
        assert (found.metadata["confidence_score"], found.effective_confidence) == (score, score)
    for wrong in (-1, 101):
        with pytest.raises(InvalidInput, match="expected a number from 0 to 100"):
            lane.store("b @0.9", memory_type="insight", confidence_score=wrong)


@pytest.mark.req("LANE-12")
def test_optional_metadata_are_kept(lane: MemoryLane) -> None:
    lane.store("b @0.9", memory_type="insight", source_chunk="we saw b", tags=["x", "y"])
    metadata = lane.find("b")[0].metadata
    assert (metadata.get("source_chunk"), metadata["tags"]) == ("we saw b", ["x", "y"])
    assert (
        metadata.get("first_observed_at")
        == metadata.get("last_observed_at")
        == "2026-01-01T00:00:00.000Z"
    )


@pytest.mark.req("LANE-08", "LANE-10")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_type": "fact"}, "memory_type is 'fact'; expected one of correction"),
        ({"memory_type": "decison"}, "did you mean 'decision'"),
        ({"confidence_score": 101}, "expected a number from 0 to 100"),
        ({"confidence_score": -1}, "expected a number from 0 to 100"),
        ({"decay_factor": 1.5}, "expected a number from 0 to 1"),
        (
            {"valid_from": "2026-02-01", "valid_until": "2026-01-01"},
            "valid_until 2026-01-01.* is before valid_from",
        ),
        ({"entity_slugs": ["atlas"]}, "expected its type too, such as project:atlas"),
        ({"entity_slugs": ["planet:mars"]}, "expected `type:slug` with a type of project"),
        ({"tags": "x"}, "expected a list of texts"),
        ({"source_chunk": 3}, "expected a text"),
        ({"collection": " "}, "the name of a collection"),
        ({"supersedes": "mem_1"}, "expected a list of ids"),
    ],
)
def test_wrong_values_are_refused_and_nothing_is_stored(
    lane: MemoryLane, house: House, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        lane.store("c @0.9", **{"memory_type": "gap", **options})  # type: ignore[arg-type]
    assert house.memories() == []
    lane.store("c @0.9", memory_type="gap", confidence_score=100, decay_factor=0)
    assert len(house.memories()) == 1


def test_metadata_of_memory_lane_keep_their_type_and_confidence_when_another_face_stores_them(
    house: House,
) -> None:
    given = {"lane_version": "4.1.0", "memory_type": "decision", "confidence_score": 90}
    memory = house.mesh(embedder="none").add("f", given)
    assert (memory.category, memory.confidence) == ("decision", 0.9)
    assert {name: memory.metadata[name] for name in given} == given
    assert house.mesh(embedder="none").add("g", {**given, "category": "fact"}).category == "fact"


def test_what_is_masked_in_the_text_is_not_an_entity(lane: MemoryLane) -> None:
    key, address = "AKIAIOSFODNN7EXAMPLE", "ann.miller@example.com"
    found = lane.store(
        f"project: {key} and packages/{key}/src and the atlas project @0.9", memory_type="gap"
    ).memory
    named = lane.store(
        "e @0.9", memory_type="gap", entity_slugs=[f"person:{address}", "person:ann"]
    ).memory
    assert (found.entities, named.entities) == (["project:atlas"], ["person:ann"])
    assert named.metadata["entity_slugs"] == ["person:ann"]


@pytest.mark.req("LANE-08", "LANE-19")
def test_a_memory_of_another_face_is_found_with_its_category_and_weighs_0_7(
    lane: MemoryLane, house: House
) -> None:
    house.mesh(embedder=Cosines()).add("Blue is the colour @0.8", {"category": "fact"})
    (found,) = lane.find("colour")
    assert (found.memory_type, found.parts.weight, found.score) == (
        "fact",
        0.7,
        pytest.approx(0.8 * 0.7),
    )


@pytest.mark.req("LANE-14")
def test_a_repeated_observation_is_counted(lane: MemoryLane, house: House) -> None:
    first = lane.store("d @0.9", memory_type="pattern_seed")
    house.clock.advance(days=2)
    again = lane.store("d @0.9", memory_type="pattern_seed")
    assert (again.id, again.is_new) == (first.id, False)
    for metadata in (lane.find("d")[0].metadata, house.memory(first.id).metadata):
        assert metadata["times_observed"] == 2
        assert (metadata["first_observed_at"], metadata["last_observed_at"]) == (
            "2026-01-01T00:00:00.000Z",
            "2026-01-03T00:00:00.000Z",
        )


# --- supersession ---


@pytest.mark.req("LANE-15", "LANE-27")
def test_a_chain_of_supersessions_is_in_columns_and_metadata(
    lane: MemoryLane, house: House
) -> None:
    one = lane.store("Use npm @0.9", memory_type="correction")
    two = lane.store("Use pnpm @0.9", memory_type="correction", supersedes=[one.id])
    three = lane.store("Use bun @0.9", memory_type="correction", supersedes=[two.id])
    assert (two.supersedes, three.supersedes) == ([one.id], [two.id])
    for older, newer in ((one, two), (two, three)):
        old, new = house.memory(older.id), house.memory(newer.id)
        assert old.superseded_by == old.metadata["superseded_by"] == newer.id
        assert new.supersedes == new.metadata.get("supersedes") == [older.id]
    assert ids(lane.find("package manager")) == [three.id]
    assert {*ids(lane.find("package manager", include_superseded=True))} == {
        one.id,
        two.id,
        three.id,
    }
    other = lane.store("Use yarn @0.9", memory_type="correction")
    last = lane.store("Use deno @0.9", memory_type="correction", supersedes=[three.id, other.id])
    assert (
        last.supersedes
        == house.memory(last.id).supersedes
        == house.memory(last.id).metadata["supersedes"]
        == [three.id, other.id]
    )
    for old in (house.memory(three.id), house.memory(other.id)):
        assert old.superseded_by == old.metadata["superseded_by"] == last.id
    assert house.sound()


def test_superseding_an_unknown_or_superseded_memory_is_refused(
    lane: MemoryLane, house: House
) -> None:
    one = lane.store("Use npm @0.9", memory_type="correction")
    two = lane.store("Use pnpm @0.9", memory_type="correction", supersedes=[one.id])
    with pytest.raises(InvalidInput, match=f"is superseded already; name {two.id}"):
        lane.store("Use bun @0.9", memory_type="correction", supersedes=[one.id])
    with pytest.raises(NotFound):
        lane.store("Use bun @0.9", memory_type="correction", supersedes=["mem_0_000000"])
    with pytest.raises(InvalidInput, match="it says the same as"):
        lane.store("use PNPM @0.9", memory_type="correction", supersedes=[two.id])
    assert len(house.memories()) == 2


def test_a_known_memory_supersedes_too(lane: MemoryLane, house: House) -> None:
    kept, other = (
        lane.store(text, memory_type="decision") for text in ("Use bun @0.9", "Use deno @0.9")
    )
    again = lane.store("Use bun @0.9", memory_type="decision", supersedes=[other.id])
    assert (again.id, again.supersedes) == (kept.id, [other.id])
    assert (house.memory(other.id).superseded_by, house.memory(kept.id).supersedes) == (
        kept.id,
        [other.id],
    )
    assert ids(lane.find("runtime")) == [kept.id]


def test_a_less_trusted_memory_does_not_supersede(lane: MemoryLane, house: House) -> None:
    old = lane.store(
        "Use npm @0.9", memory_type="correction", provenance={"source": "user_explicit"}
    )
    new = lane.store("Use bun @0.9", memory_type="correction", supersedes=[old.id])
    assert (new.quarantined, len(new.conflicts), house.memory(old.id).status) == (True, 1, "active")
    assert ids(lane.find("package manager")) == [old.id]


# --- the score ---


@pytest.mark.req("LANE-18", "LANE-20")
def test_each_type_has_its_weight_and_the_heavier_ranks_first(lane: MemoryLane) -> None:
    for type_ in reversed(TYPES):
        lane.store(f"about {type_} @0.8", memory_type=type_)
    found = lane.find("about")
    assert {result.memory_type: result.parts.weight for result in found} == TYPES
    assert [result.parts.weight for result in found] == sorted(TYPES.values(), reverse=True)


@pytest.mark.req("LANE-16", "LANE-21", "LANE-25")
def test_the_score_is_the_product_of_its_five_factors(lane: MemoryLane, house: House) -> None:
    stored = lane.store("We were wrong about ports @0.75", memory_type="gap", confidence_score=90)
    lane.feedback(stored.id, "helpful")
    house.clock.advance(days=45)
    (found,) = lane.find("what was the mistake with ports?")
    assert found.score == pytest.approx(0.75 * 0.4 * 0.6 * 1.1 * 1.15)
    assert (found.id, found.content, found.collection) == (
        stored.id,
        "We were wrong about ports @0.75",
        "memory-lane",
    )
    assert (found.decay_factor, found.effective_confidence) == (0.6, 54)


@pytest.mark.req("LANE-17")
def test_the_effective_confidence_is_rounded(lane: MemoryLane, house: House) -> None:
    lane.store("e @0.9", memory_type="insight", confidence_score=71)
    house.clock.advance(days=10)
    assert lane.find("e")[0].effective_confidence == 57  # 56.8


@pytest.mark.req("LANE-25")
@pytest.mark.parametrize(
    ("days", "factor"),
    [(0, 1), (6.9, 1), (7, 0.8), (29.9, 0.8), (30, 0.6), (89.9, 0.6), (90, 0.4), (4000, 0.4)],
)
def test_the_decay_has_four_bands(
    days: float, factor: float, lane: MemoryLane, house: House
) -> None:
    lane.store("f @0.9", memory_type="decision")
    house.clock.advance(days=days)
    (found,) = lane.find("f")
    assert (found.decay_factor, found.score) == (factor, pytest.approx(0.9 * factor))


@pytest.mark.req("LANE-23", "LANE-25")
def test_being_found_counts_as_an_access_from_which_the_decay_begins_anew(
    lane: MemoryLane, house: House
) -> None:
    lane.store("g @0.9", memory_type="decision")
    house.clock.advance(days=40)
    assert lane.find("g")[0].decay_factor == 0.6
    house.clock.advance(days=1)
    (found,) = lane.find("g")
    assert (found.decay_factor, found.metadata["access_count"]) == (1.0, 1)
    assert found.metadata["last_accessed_at"] == "2026-02-10T00:00:00.000Z"


@pytest.mark.req("LANE-22", "LANE-23")
def test_ten_are_returned_by_default_and_the_best_may_be_behind_many_nearer_ones(
    lane: MemoryLane, house: House
) -> None:
    for number in range(40):
        lane.store(f"note {number} @0.{900 - number}", memory_type="decision")
    house.clock.advance(days=100)
    fresh = lane.store("the fresh one @0.5", memory_type="decision")
    found = lane.find("anything")
    assert len(found) == 10
    assert found[0].id == fresh.id
    assert found[0].score > found[1].score == pytest.approx(0.9 * 0.4)


@pytest.mark.req("LANE-22")
def test_a_memory_with_good_feedback_is_found_behind_many_nearer_ones(lane: MemoryLane) -> None:
    for number in range(110):
        lane.store(f"note {number} @{0.95 if number < 10 else 0.5}", memory_type="decision")
    raised = lane.store("the rated one @0.4", memory_type="decision")
    for _ in range(12):
        lane.feedback(raised.id, "helpful")
    assert [lane.find("anything")[0].id, lane.find("anything")[0].score] == [
        raised.id,
        pytest.approx(0.4 * 3),
    ]


@pytest.mark.deep
@pytest.mark.req("LANE-21", "LANE-22")
def test_what_is_found_is_what_scoring_every_memory_finds(lane: MemoryLane, house: House) -> None:
    random = Random(4)  # noqa: S311  (the same numbers in each run)
    for number in range(400):
        stored = lane.store(
            f"note {number} @{random.uniform(0.1, 0.9):.3f}", memory_type=random.choice([*TYPES])
        )
        for _ in range(random.choice([0, 0, 0, 1, 4, 12])):
            lane.feedback(stored.id, random.choice(["helpful", "helpful", "harmful"]))
        house.clock.advance(days=0.5)
    scores = []
    for memory in house.memories():
        if (cosine := float(memory.content.split("@")[1])) >= 0.2:
            decay = scoring.decay_factor(
                house.clock(), created_at=memory.created_at, last_accessed=None
            )
            boost = 1.15 if memory.category in ("correction", "gap") else 1
            scores.append(
                cosine * TYPES[str(memory.category)] * decay * memory.feedback_score * boost
            )
    found = lane.find("which error?", limit=40)
    assert [result.score for result in found] == pytest.approx(
        sorted(scores, reverse=True)[:40], rel=1e-4
    )


@pytest.mark.req("LANE-26")
def test_the_minimum_is_one_of_the_similarity_and_lower_with_an_entity(
    lane: MemoryLane, house: House
) -> None:
    light = lane.store("h @0.25", memory_type="gap")
    far = lane.store("i @0.17", memory_type="decision", entity_slugs=["project:atlas"])
    lane.store("j @0.14", memory_type="decision", entity_slugs=["project:atlas"])
    assert ids(lane.find("k")) == [light.id]
    assert ids(lane.find("k", entities=["project:atlas"])) == [far.id]
    assert len(lane.find("k", min_score=0.0)) == 3
    lenient = house.mesh(embedder=Cosines(), min_score_threshold=0.1).lane
    assert len(lenient.find("k", entities=["project:atlas"])) == 2


@pytest.mark.req("LANE-28")
@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("which mistakes?", {"correction", "gap"}), ("what is wrong", {"correction", "gap"}),
        ("errors, wrong ones", {"correction", "gap"}), ("what was decided", {"decision"}),
        ("our choices", {"decision"}), ("what we chose", {"decision"}),
        ("usually", {"pattern_seed", "commitment"}), ("a habit", {"pattern_seed", "commitment"}),
        ("patterns", {"pattern_seed", "commitment"}), ("I learned", {"learning", "insight"}),
        ("what we realized", {"learning", "insight"}), ("the weather", set()),
        ("wrongdoing", set()),
    ],
)  # fmt: skip
def test_words_of_the_query_boost_the_types_that_they_ask_for(query: str, types: set[str]) -> None:
    assert scoring.intended_types(query) == types


@pytest.mark.req("LANE-28")
def test_the_boost_counts_once_and_its_table_is_a_setting(lane: MemoryLane, house: House) -> None:
    lane.store("l @0.8", memory_type="gap")
    assert lane.find("wrong mistakes and errors")[0].score == pytest.approx(0.8 * 0.4 * 1.15)
    own = house.mesh(embedder=Cosines(), intent_words={"lack": ["gap"]}).lane
    assert own.find("what we lack")[0].parts.intent_boost == 1.15
    assert own.find("mistake")[0].parts.intent_boost == 1.0


# --- what is left out ---


@pytest.mark.req("LANE-24")
def test_a_collection_is_searched_alone_and_all_are_by_default(lane: MemoryLane) -> None:
    none = lane.store("m @0.9", memory_type="decision")
    other = lane.store("n @0.8", memory_type="decision", collection="ops")
    assert ids(lane.find("o")) == [none.id, other.id]
    assert ids(lane.find("o", collection="memory-lane")) == [none.id]
    (found,) = lane.find("o", collection="ops")
    assert (found.id, found.collection) == (other.id, "ops")
    assert lane.find("o", collection="nothing") == []


@pytest.mark.req("LANE-27")
def test_memories_are_found_while_they_are_valid(lane: MemoryLane, house: House) -> None:
    past = lane.store("p @0.9", memory_type="decision", valid_until="2025-06-01")
    future = lane.store("q @0.8", memory_type="decision", valid_from="2026-06-01")
    now = lane.store(
        "r @0.7", memory_type="decision", valid_from="2025-07-01", valid_until="2026-03-01"
    )
    assert ids(lane.find("s")) == [now.id]
    assert ids(lane.find("s", include_expired=True)) == [past.id, future.id, now.id]
    assert ids(lane.find("s", as_of="2025-01-01")) == [past.id]
    assert ids(lane.find("s", as_of="2026-07-01")) == [future.id]
    house.clock.advance(days=200)
    assert ids(lane.find("s")) == [future.id]


@pytest.mark.req("MESH-009")
def test_what_others_stored_and_what_is_quarantined_is_not_found_whatever_its_feedback(
    lane: MemoryLane, house: House
) -> None:
    mine = lane.store("ee @0.9", memory_type="decision", provenance={"source": "user_explicit"})
    rival = lane.store(
        "ff @0.9", memory_type="decision", provenance={"source": "inference"}, supersedes=[mine.id]
    )
    bob, eve = (house.mesh(embedder=Cosines(), **{key: "x"}) for key in ("agent_id", "user_id"))
    hidden = [
        bob.add("gg @0.9", {"type": "agent"}).id,
        eve.lane.store("hh @0.9", memory_type="decision").id,
    ]
    for mesh, id_ in ((bob, hidden[0]), (eve, hidden[1])):
        mesh.lane.feedback(id_, "helpful")
    assert rival.quarantined
    assert ids(lane.find("ii", include_superseded=True, include_expired=True)) == [mine.id]
    assert ids(bob.lane.find("ii")) == [mine.id, hidden[0]]
    assert ids(eve.lane.find("ii")) == [hidden[1]]


@pytest.mark.req("LANE-31")
def test_an_entity_filter_finds_what_is_about_one_of_them(lane: MemoryLane) -> None:
    atlas = lane.store("t @0.9", memory_type="decision", entity_slugs=["project:atlas"])
    maria = lane.store(
        "u @0.8", memory_type="decision", entity_slugs=["person:maria", "project:other"]
    )
    lane.store("v @0.95", memory_type="decision")
    assert ids(lane.find("w", entities=["project:atlas"])) == [atlas.id]
    assert ids(lane.find("w", entities=["Atlas", "person:maria"])) == [atlas.id, maria.id]
    assert lane.find("w", entities=["atlas"]).entities == ["project:atlas"]


@pytest.mark.req("LANE-31")
def test_an_unknown_entity_is_an_error_and_an_ambiguous_one_lists_the_candidates(
    lane: MemoryLane, house: House
) -> None:
    lane.store("x @0.9", memory_type="decision", entity_slugs=["project:atlas"])
    with pytest.raises(NotFound, match="no memory is about the entity 'zeus'"):
        lane.find("y", entities=["zeus"])
    with pytest.raises(NotFound, match="use one of project:atlas"):
        lane.find("y", entities=["atl"])
    with pytest.raises(NotFound):  # of another user
        house.mesh(embedder=Cosines(), user_id="eve").lane.find("y", entities=["atlas"])
    lane.store("z @0.9", memory_type="decision", entity_slugs=["person:atlas"])
    with pytest.raises(InvalidInput, match="may be project:atlas or person:atlas"):
        lane.find("y", entities=["atlas"])


@pytest.mark.req("LANE-29")
def test_entities_are_found_in_the_text_by_default(lane: MemoryLane) -> None:
    lane.store(
        "Tests of the atlas project live in packages/billing/tests @0.9", memory_type="learning"
    )
    assert lane.find("tests", entities=["project:billing"])[0].metadata["entity_slugs"] == [
        "project:atlas",
        "project:billing",
    ]


# --- feedback ---


@pytest.mark.req("LANE-38", "LANE-39")
def test_feedback_changes_the_rank_and_neither_trust_nor_importance(
    lane: MemoryLane, house: House
) -> None:
    one = lane.store("aa @0.80", memory_type="decision")
    two = lane.store("bb @0.79", memory_type="decision")
    before = house.memory(two.id)
    assert ids(lane.find("cc")) == [one.id, two.id]
    rated = lane.feedback(two.id, "helpful")
    assert (rated.feedback_score, rated.feedback_count) == (1.1, 1)
    assert ids(lane.find("cc")) == [two.id, one.id]
    lane.feedback(two.id, "harmful")
    found = lane.find("cc")[1]
    assert (found.id, found.metadata["feedback_score"], found.metadata["feedback_count"]) == (
        two.id,
        0.55,
        2,
    )
    after = house.memory(two.id)
    assert (after.trust, after.importance) == (before.trust, before.importance)
    assert after.metadata["feedback_score"] == 0.55
    assert house.sound()


@pytest.mark.req("LANE-38")
@given(st.lists(st.sampled_from(sorted(scoring.FEEDBACK)), max_size=40))
@example(["helpful"] * 13)
@example(["harmful"] * 5)
def test_feedback_stays_between_0_1_and_3(signals: list[str]) -> None:
    score = 1.0
    for signal in signals:
        changed = scoring.changed_feedback(score, signal)
        expected = score * 1.1 if signal == "helpful" else score * 0.5
        assert changed == pytest.approx(min(3.0, max(0.1, expected)))
        score = changed


@pytest.mark.req("LANE-38")
def test_feedback_on_an_unknown_id_or_with_another_signal_is_refused(
    lane: MemoryLane, house: House
) -> None:
    stored = lane.store("dd @0.9", memory_type="decision")
    with pytest.raises(NotFound):
        lane.feedback("mem_0_000000", "helpful")
    with pytest.raises(InvalidInput, match="expected one of helpful, harmful"):
        lane.feedback(stored.id, "good")
    assert house.memory(stored.id).feedback_count == 0


def test_a_memory_without_a_vector_is_found_by_its_words(house: House) -> None:
    lane = house.mesh(embedder="none").lane
    stored = lane.store("The billing service uses PostgreSQL", memory_type="decision")
    lane.store("Nothing of the kind", memory_type="decision")
    (found,) = lane.find("billing database postgresql")
    assert found.id == stored.id
    assert 0.2 < found.parts.similarity < 1  # the weighted fraction of the words of the query
