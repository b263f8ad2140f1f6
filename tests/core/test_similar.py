"""Near-duplicates: what two texts may differ in and still say the same. The pairs are in
tests/data/near_duplicates.txt."""

import re
from array import array
from collections import Counter
from collections.abc import Sequence
from operator import mul
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, MemoryRecord
from memory_mesh.core.intake.similar import is_near_duplicate, same_words, says_the_same
from memory_mesh.core.model import Vector
from memory_mesh.models.local import HashingEmbedder

PAIRS = Path(__file__).parents[1] / "data" / "near_duplicates.txt"


def pairs(kind: str) -> list[tuple[str, str, str]]:
    """The pairs of one kind, each with its heading."""
    found, heading = [], ""
    for line in PAIRS.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line):
            heading = match[1]
        elif " | " in line and not line.startswith("#") and heading.startswith(kind):
            found.append((heading, *line.split(" | ")))
    return found


def record(content: str, **fields: object) -> MemoryRecord:
    at = "2026-01-01T00:00:00.000Z"
    return MemoryRecord(id="mem_1_000001", content=content, created_at=at, updated_at=at, **fields)


DISTINCT, SAME = pairs("distinct"), pairs("same")


def test_there_are_enough_pairs_of_each_kind() -> None:
    assert len({frozenset(pair) for _, *pair in DISTINCT}) >= 200
    assert len({frozenset(pair) for _, *pair in SAME}) >= 60
    assert min(Counter(heading for heading, *_ in DISTINCT).values()) >= 20


@pytest.mark.req("MESH-101")
def test_no_pair_that_differs_in_meaning_is_merged_however_similar_the_vectors() -> None:
    merged = [
        pair
        for _, *pair in DISTINCT
        if any(
            is_near_duplicate(record(a), record(b), cosine=1.0, min_cosine=0.85)
            for a, b in (pair, pair[::-1])
        )
    ]
    assert merged == []


@pytest.mark.req("MESH-101")
def test_most_pairs_that_say_the_same_are_merged_in_both_directions() -> None:
    merged = [pair for _, *pair in SAME if says_the_same(*pair)]
    # Consolidation compares no others.
    assert [pair for pair in merged if same_words(pair[0]) != same_words(pair[1])] == []
    assert [pair for pair in merged if not says_the_same(*pair[::-1])] == []
    assert len(merged) / len(SAME) >= 0.9


def test_every_text_says_the_same_as_itself() -> None:
    assert [text for _, *pair in DISTINCT for text in pair if not says_the_same(text, text)] == []


@pytest.mark.req("MESH-101")
def test_a_text_with_another_digit_or_a_negation_more_is_another_text() -> None:
    texts = {text for _, *pair in [*DISTINCT, *SAME] for text in pair}
    digits = [
        (text, text[: at.start()] + str((int(at[0]) + 1) % 10) + text[at.end() :])
        for text in texts
        for at in re.finditer(r"[0-9]", text)
    ]
    negated = [
        (text, f"{text[: at.start()]} not {text[at.end() :]}")
        for text in texts
        for at in re.finditer(" ", text)
    ]
    assert len(digits) > 100
    assert len(negated) > 1000
    assert [pair for pair in [*digits, *negated] if says_the_same(*pair)] == []


@pytest.mark.parametrize("text", ["", "!", "Please", "Thanks!", "…", "No.", "a", "(the)"])
def test_a_text_without_content_words_is_compared_as_it_is(text: str) -> None:
    assert says_the_same(text, text)
    assert not says_the_same(text, "Hello!")


@pytest.mark.req("MESH-101")
def test_similar_words_with_dissimilar_vectors_are_not_merged() -> None:
    one, other = record("The key rotates."), record("the key rotates")
    assert is_near_duplicate(one, other, cosine=0.9, min_cosine=0.9)
    assert not is_near_duplicate(one, other, cosine=0.89, min_cosine=0.9)
    # Without vectors the words decide.
    assert is_near_duplicate(one, other, cosine=None, min_cosine=0.85)


@pytest.mark.parametrize(
    "fields",
    [
        {"speaker": "ann"},
        {"turn": 0},
        {"key": "k"},
        {"memory_type": "lesson"},
        {"event_time": "2026-01-01T00:00:00.000Z"},
    ],
)
def test_turns_lessons_keys_and_other_times_are_never_merged(fields: dict[str, object]) -> None:
    text = "Thanks, that works."
    assert is_near_duplicate(record(text), record(text), cosine=1.0, min_cosine=0.85)
    assert not is_near_duplicate(record(text), record(text, **fields), cosine=1.0, min_cosine=0.85)
    assert not is_near_duplicate(record(text, **fields), record(text), cosine=1.0, min_cosine=0.85)


@pytest.mark.deep
@pytest.mark.req("MESH-101")
def test_with_the_default_model_most_pairs_that_say_the_same_are_merged(
    shipped_defaults: Path,
) -> None:
    with MemoryMesh("memory://") as mesh:
        embedder, limit = (
            mesh._context().models.embedder,
            mesh._context().options.duplicate_similarity,
        )
    vectors = [
        [memoryview(each.data).cast("f") for each in embedder.embed(pair)] for _, *pair in SAME
    ]
    cosines = [sum(map(mul, *pair)) for pair in vectors]  # of length 1
    merged = [
        is_near_duplicate(record(one), record(other), cosine=cosine, min_cosine=limit)
        for (_, one, other), cosine in zip(SAME, cosines, strict=True)
    ]
    assert sum(merged) / len(SAME) >= 0.84


class OneVector(HashingEmbedder):
    """Gives every text the same vector."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [Vector(self.model, array("f", [1.0, 0.0]).tobytes()) for _ in texts]


@pytest.mark.deep
@pytest.mark.req("MESH-101", "GRAPH-38", "GRAPH-40")
def test_consolidation_and_digests_merge_no_pair_of_different_meaning_with_equal_vectors() -> None:
    with MemoryMesh("memory://", agent_id="ann", embedder=OneVector(), redaction="off") as mesh:
        stored = {
            (kind, at): {
                one.id
                for one in mesh.graph.store_many(f"{kind} {at}", [{"text": text} for text in texts])
            }
            for kind, some in (("distinct", DISTINCT), ("same", SAME))
            for at, (_, *texts) in enumerate(some)
        }
        # Others differ in case alone.
        pairs_ = {frozenset(ids): kind for (kind, _), ids in stored.items() if len(ids) == 2}
        assert Counter(pairs_.values())["distinct"] >= 200
        digests = mesh.graph.auto_compress(max_digests=1000, min_cluster_size=2).digests
        # Others have no sentence to quote.
        assert Counter(pairs_[frozenset(one.sources)] for one in digests)["distinct"] >= 100
        done = mesh.graph.consolidate(max_digests=1000)
        merged = [pairs_[frozenset((step.memory_id, step.other_id))] for step in done.dedupe]
        assert set(merged) == {"same"}
        assert len(merged) / Counter(pairs_.values())["same"] >= 0.85
        assert (done.contradictions, done.corroboration, done.compress, done.prune) == (
            (),
            (),
            (),
            (),
        )
        superseded = {step.memory_id for step in done.dedupe}
        for id_ in {id_ for ids in stored.values() for id_ in ids}:
            assert mesh.graph.explain_memory(id_).status == (
                "superseded" if id_ in superseded else "active"
            )
