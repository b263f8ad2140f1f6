"""The deep ranker in searches: when and what it reads, how its logits change the order, and that
it never breaks a search."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api import build
from memory_mesh.core.errors import SettingsError
from memory_mesh.models import ModelPaths, deep_ranker

from .house import House

TURNS = ("Bob: Where did you move to?", "Ana: To Lisbon, last spring.",
         "Bob: Lisbon has nice weather.", "Ana: I have two dogs.", "Bob: Dogs like Lisbon.",
         "Ana: Lisbon likes dogs.")  # fmt: skip
LESSON = {
    "situation": "The deploy failed with 401.", "error_pattern": "token_expired",
    "oversight": "The expiry was not checked.", "fix": "A new token.",
    "preventative_rule": "Refresh the token before a deploy.", "severity": "high",
    "applicable_scope": "deploys",
}  # fmt: skip
QUERY = "Where does Ana live: Lisbon?"


class FakeRanker:
    """Gives each text its logit, and records what it was asked to read."""

    def __init__(
        self, logits: Callable[[str], float], *, loaded: bool = False, count: int = 100
    ) -> None:
        self._logits, self.is_loaded, self._count = logits, loaded, count
        self.read_texts: list[tuple[str, str]] = []
        self.seconds = 0.0

    def load(self) -> None:
        self.is_loaded = True

    def read(self, query: str, pairs: Sequence[tuple[str, str]], *, seconds: float) -> list[float]:
        self.is_loaded, self.seconds = True, seconds
        self.read_texts = list(pairs)
        return [self._logits(text) for text, _ in pairs][: self._count]


def prefers(part: str) -> Callable[[str], float]:
    return lambda text: 6.0 if part in text else -6.0


@pytest.fixture
def with_ranker(house: House, monkeypatch: pytest.MonkeyPatch) -> Callable[..., MemoryMesh]:
    def make(fake: FakeRanker, **options: object) -> MemoryMesh:
        monkeypatch.setattr(build, "make_deep_ranker", lambda paths: fake)
        mesh = house.mesh(embedder="hash", **options)
        if not mesh.get_all():
            mesh.add_many(
                [
                    (text, {"session_id": "s", "turn": n, "speaker": text[:3]})
                    for n, text in enumerate(TURNS, start=1)
                ]
            )
        return mesh

    return make


Make = Callable[..., MemoryMesh]


@pytest.mark.req("MESH-107")
def test_what_the_model_prefers_comes_first_and_explain_names_the_ranker(with_ranker: Make) -> None:
    mesh = with_ranker(FakeRanker(prefers("two dogs")))
    assert mesh.search(QUERY)[0].content == TURNS[1]
    assert mesh.search(QUERY, ranker="deep")[0].content == TURNS[3]
    found = mesh.explain(QUERY, ranker="deep")
    assert (found.ranker, found.read) == ("deep", len(TURNS))
    assert found.answers[0].features["deep"] == 6.0
    assert mesh.explain(QUERY, mode="recall").ranker == "learnt"


@pytest.mark.req("MESH-107")
def test_it_reads_speaker_and_text_with_the_turn_before_and_gets_the_budget(
    with_ranker: Make,
) -> None:
    ranker = FakeRanker(prefers("Lisbon"))
    with_ranker(ranker, deep_budget_ms=40).search(QUERY, ranker="deep")
    assert dict(ranker.read_texts)[TURNS[1]] == TURNS[0]
    assert dict(ranker.read_texts)[TURNS[0]] == ""
    assert ranker.seconds == pytest.approx(0.04)


def test_a_turn_of_another_agent_is_not_read(house: House, with_ranker: Make) -> None:
    ranker = FakeRanker(prefers("Lisbon"))
    mesh = with_ranker(ranker)
    house.mesh("eve", embedder="hash").add(
        "Eve: the secret of Lisbon", {"session_id": "s", "turn": 0, "type": "agent"}
    )
    mesh.search(QUERY, ranker="deep")
    assert ranker.read_texts
    assert not any("secret" in text for pair in ranker.read_texts for text in pair)


@pytest.mark.parametrize(
    ("loaded", "mode", "options", "reads"),
    [
        (True, "precise", {}, True),
        (False, "precise", {}, False),  # loading it would cost more than the search
        (True, "recall", {}, False),
        (False, "recall", {"ranker": "deep"}, True),
        (True, "precise", {"ranker": "rrf"}, False),
        (True, "precise", {"deep_budget_ms": 0}, False),
        (True, "precise", {"deep_budget_ms": 0, "ranker": "deep"}, False),
    ],
)
@pytest.mark.req("MESH-107")
def test_when_a_search_reads(
    with_ranker: Make, loaded: bool, mode: str, options: dict[str, object], reads: bool
) -> None:
    ranker = FakeRanker(prefers("Lisbon"), loaded=loaded)
    with_ranker(ranker, **options).search(QUERY, mode=mode)
    assert bool(ranker.read_texts) == reads


def test_context_and_lessons_read_too(with_ranker: Make) -> None:
    ranker = FakeRanker(prefers("Lisbon"), loaded=True)
    mesh = with_ranker(ranker)
    mesh.graph.context("ann", QUERY)
    assert ranker.read_texts
    ranker.read_texts = []
    mesh.distill_lesson(LESSON)
    mesh.query_lessons("The deploy failed with 401.")
    assert ranker.read_texts


def test_with_too_few_logits_the_fast_order_stays(with_ranker: Make) -> None:
    fast = [hit.id for hit in with_ranker(FakeRanker(prefers("two dogs"))).search(QUERY)]
    for count in (0, 4):
        mesh = with_ranker(FakeRanker(prefers("two dogs"), count=count))
        assert [hit.id for hit in mesh.search(QUERY, ranker="deep")] == fast
        assert mesh.explain(QUERY, ranker="deep").ranker == "learnt"


@pytest.mark.req("MESH-107")
def test_what_was_not_read_does_not_pass_what_was_read_and_found_weak(with_ranker: Make) -> None:
    mesh = with_ranker(FakeRanker(lambda _: -30.0, count=5))
    fast, deep = mesh.search(QUERY, min_score=0.0), mesh.search(QUERY, ranker="deep", min_score=0.0)
    assert [hit.id for hit in deep] == [hit.id for hit in fast]


@pytest.mark.req("MESH-107")
def test_where_the_fast_ranker_expects_no_answer_the_best_score_stays_as_low(
    with_ranker: Make,
) -> None:
    mesh = with_ranker(FakeRanker(prefers("two dogs")))
    fast, deep = (
        mesh.explain("What does a plumber charge?", ranker=ranker, min_score=0.0)
        for ranker in ("learnt", "deep")
    )
    assert deep.ranker == "deep"
    assert (
        max(each.result.score for each in deep.answers)
        <= max(each.result.score for each in fast.answers) + 1e-6
    )


def test_without_the_model_a_deep_search_is_a_fast_one_with_one_line(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A stored graph is not used either.
    monkeypatch.setattr(deep_ranker, "GRAPH_HASH", "of no file")
    mesh = house.mesh(embedder="hash", model_path=str(tmp_path))
    mesh.add_many([(text, {}) for text in TURNS])
    fast = [hit.id for hit in mesh.search(QUERY)]
    assert [
        [hit.id for hit in mesh.search(QUERY, ranker="deep", limit=limit)] for limit in (10, 9)
    ] == [fast, fast]
    assert [record.message.count("the deep ranker is not used") for record in caplog.records].count(
        1
    ) == 1


def test_what_one_mesh_loads_does_not_change_the_searches_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ModelPaths(cache=tmp_path)
    monkeypatch.setattr(build, "_rankers", {paths: FakeRanker(prefers("Lisbon"), loaded=True)})
    one, other = (build.make_deep_ranker(lambda: paths) for _ in range(2))
    assert one.read("query", [("text", "")], seconds=1)
    assert (one.is_loaded, other.is_loaded) == (True, False)


def test_a_wrong_budget_is_refused(house: House) -> None:
    with pytest.raises(SettingsError, match="deep_budget_ms"):
        house.mesh(deep_budget_ms=-1)
