"""The benchmark of quality measures what it says, shown on small made-up data."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.peers import Hit
from bench.quality import __main__ as command
from bench.quality import curves as measured_curves
from bench.quality import evaluating
from bench.quality.evaluating import Evaluation
from bench.quality.measuring import figures, recalls
from bench.quality.nothing import Mixed, read_mixed, separation, swapped
from bench.quality.reliability import diagram, reliability
from bench.quality.sets import (
    Question,
    Said,
    Space,
    facts_of,
    longmemeval_oracle_turns,
    newest_fact,
)
from bench.quality.vectors import KeptEmbedder

import bench_docs
from memory_mesh.core.search.weights import MIN_EXPECTED
from memory_mesh.models import HashingEmbedder

AT = "2025-03-01T10:00:00.000Z"
FACTS = [
    "Ada plays chess.",
    "Ada lives in the city of Bern.",
    "Bo lives in the city of Oslo.",
    "Ada lives in the city of Rome.",
]


def question(text: str, *gold: str, kind: str = "single-hop") -> Question:
    return Question(text=text, gold=frozenset(gold), kind=kind, at=AT)


def conversation(
    name: str, speakers: tuple[str, str], texts: list[str], *questions: Question
) -> Space:
    memories = [
        Said(
            id=f"D1:{turn}", text=f"{speakers[turn % 2]}: {text}", at=AT, session="1",
            speaker=speakers[turn % 2], turn=turn
        )
        for turn, text in enumerate(texts)
    ]  # fmt: skip
    return Space(name=name, memories=memories, questions=questions)


@pytest.fixture
def conversations() -> list[Space]:
    ann = [
        "I adopted a grey kitten called Pepper",
        "Lovely! I bake rye bread on Sundays",
        "My flight to Lisbon leaves in May",
    ]
    bread = question("What does Bob bake?", "D1:1")
    kim = [
        "The violin lessons start on Monday",
        "I repaired the old tractor",
        "We painted the kitchen yellow",
    ]
    return [
        conversation(
            "one", ("Ann", "Bob"), ann, question("Which kitten did Ann adopt?", "D1:0"), bread
        ),
        conversation(
            "two",
            ("Kim", "Lou"),
            kim,
            question("When do Kim's violin lessons start?", "D1:0", kind="temporal"),
        ),
    ]


def mixed() -> Mixed:
    texts = [
        "The boiler was serviced in October",
        "Deploys run on Fridays",
        "The pie needs six apples",
        "The bike is locked",
    ]
    memories = [Said(id=f"m{at}", text=text, at=AT) for at, text in enumerate(texts)]
    unrelated = [
        question("Quelle est la capitale du Pérou ?", kind="trivia:fr"),
        question("zzyzx qwrtp", kind="noise"),
    ]
    return Mixed(
        memories=memories,
        unrelated=unrelated,
        controls=[question("When was the boiler serviced?", "m0")],
    )


def test_the_turns_of_all_evidence_sessions_are_one_store_and_turns_with_the_answer_are_gold(
    tmp_path: Path,
) -> None:
    turns = [
        {"role": "user", "content": "I got a dog", "has_answer": True},
        {"role": "assistant", "content": "Congratulations!"},
    ]
    row = {
        "question_id": "q1", "question_type": "single-session-user", "question": "Which pet?",
        "question_date": "2023/05/20 (Sat) 02:21",
        "haystack_dates": ["2023/05/01 (Mon) 10:00"], "haystack_session_ids": ["s1"],
        "haystack_sessions": [turns],
    }  # fmt: skip
    (tmp_path / "longmemeval_oracle").mkdir()
    rows = [row, {**row, "question_id": "q2"}, {**row, "question_id": "q3_abs"}]
    (tmp_path / "longmemeval_oracle" / "longmemeval_oracle.json").write_text(json.dumps(rows))
    (space,) = longmemeval_oracle_turns(tmp_path)
    assert [said.text for said in space.memories] == [
        "user: I got a dog",
        "assistant: Congratulations!",
    ]
    assert [each.gold for each in space.questions] == [frozenset({"s1:0"})] * 2, (
        "no question without an answer"
    )


def test_the_gold_of_a_question_is_the_last_fact_with_its_answer() -> None:
    row = {
        "context": "Here is a list of facts:\n"
        + "\n".join(f"{at}. {fact}" for at, fact in enumerate(FACTS)),
        "questions": ["Which city does Ada live in?"], "answers": [["Rome"]],
        "metadata": {"source": "factconsolidation_sh_6k"},
    }  # fmt: skip
    space = facts_of(row)
    assert [said.text for said in space.memories] == FACTS
    assert [(each.gold, each.kind) for each in space.questions] == [
        (frozenset({space.memories[3].id}), "6k tokens")
    ]
    assert newest_fact([*FACTS, FACTS[3]], "Which city does Ada live in?", ["Rome"]) == 4
    assert newest_fact(FACTS, "Which city does Ada live in?", ["Paris"]) is None
    assert newest_fact(FACTS, "Which city does Ada live in?", ["Bern"]) is None, (
        "a later fact contradicts this label"
    )


def test_the_figure_first_looks_at_the_first_result_only() -> None:
    assert figures(["a", "b"], frozenset({"a"}))["first"] == 1
    assert figures(["b", "a"], frozenset({"a"}))["first"] == 0
    assert figures([], frozenset({"a"}))["first"] == 0


def test_swapped_names_replace_whole_words_only() -> None:
    asked = question("Did Ann's sister Anna meet Bob?", "D1:0")
    found = swapped(asked, ["Ann", "Bob"], ["Kim", "Lou"])
    assert found.text == "Did Kim's sister Anna meet Lou?"
    assert not found.gold
    assert swapped(asked, [], ["Kim"]).text == asked.text


def test_a_question_is_empty_if_its_scores_together_are_below_the_cut_of_the_mode() -> None:
    recall, precise = MIN_EXPECTED["recall"], MIN_EXPECTED["precise"]
    wrong = [recall / 2, (recall + precise) / 2, precise, 0.99]
    found = separation(
        [[("a", 0.9)], [("a", 0.8)]], [[("b", score / 2), ("c", score / 2)] for score in wrong], 500
    )
    assert found["empty"] == {"recall": 25.0, "precise": 50.0}
    assert found["auc"] == 1.0


def test_scores_that_are_probabilities_have_no_calibration_error() -> None:
    judged = [(0.25, at % 4 == 0) for at in range(400)] + [(1.0, True)] * 30
    found = reliability(judged)
    assert (found["results"], found["error"]) == (430, 0)
    assert sum(each["results"] for each in found["bins"]) == 430, "a score of 1 is in the last bin"
    assert reliability([(0.75, False)] * 10)["error"] == 0.75
    drawn = diagram({"real": found})
    assert drawn.count("<polyline") == 2
    assert "perfectly calibrated" in drawn


def test_mixed_memories_and_questions_are_read_with_their_kinds(tmp_path: Path) -> None:
    (tmp_path / "mixed_memories.jsonl").write_text('{"id": "m1", "text": "The boiler is old"}\n')
    rows = [
        {"text": "Who won?", "kind": "sport"},
        {"text": "How old is the boiler?", "answer": "m1"},
    ]
    (tmp_path / "unrelated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_mixed(tmp_path)
    assert [said.id for said in found.memories] == ["m1"]
    assert [(each.text, each.kind) for each in found.unrelated] == [("Who won?", "sport")]
    assert [each.gold for each in found.controls] == [frozenset({"m1"})]


def test_mixed_questions_are_asked_of_stores_of_every_size() -> None:
    evaluation = Evaluation(HashingEmbedder())
    evaluation.measure_mixed(mixed(), sizes=(2, 4))
    rows = evaluation.nothing["mixed"]
    assert [(row["memories"], row["stores"], row["questions"]) for row in rows] == [
        (2, 2, 2),
        (4, 1, 2),
    ]
    assert [row["controls"]["questions"] for row in rows] == [1, 1]
    assert set(rows[0]["kinds"]) == {
        "trivia:fr",
        "noise",
        "all in English",
        "all in other languages",
    }


@pytest.mark.deep
def test_the_two_commands_write_results_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversations: list[Space]
) -> None:
    monkeypatch.setattr(command, "SETS", {"locomo": lambda folder: conversations})
    monkeypatch.setattr(command, "local", lambda path: KeptEmbedder(HashingEmbedder(), path))
    monkeypatch.setattr(command, "read_mixed", mixed)
    monkeypatch.setattr(evaluating, "SIZES", (4,))
    given = [
        "bench.quality",
        "--data",
        "unused",
        "--vectors",
        str(tmp_path / "vectors.npz"),
        "--out",
        str(tmp_path),
    ]
    for words in (given, [*given, "--peers"]):
        monkeypatch.setattr("sys.argv", words)
        command.main()
    for name in ("quality", "quality_peers"):  # as if measured at a commit
        path = tmp_path / f"{name}.json"
        path.write_text(
            json.dumps(
                {**json.loads(path.read_text()), "commit": "0123456789abcdef", "clean": True}
            )
        )

    result = json.loads((tmp_path / "quality.json").read_text())
    assert result["sets"]["locomo"]["parts"]["all"]["rankers"][evaluating.UNCUT]["recall@5"] == 100
    assert result["nothing"]["all"]["wrong conversation"]["questions"] == 3
    assert (tmp_path / "reliability.svg").exists()
    (tmp_path / "tried.md").write_text("- wider windows\n")
    monkeypatch.setattr(bench_docs, "RESULTS", tmp_path)
    monkeypatch.setattr(bench_docs, "TRIED", tmp_path / "tried.md")
    page = bench_docs.page()
    rows = (
        "| Chroma",
        "| locomo | temporal | 1 |",
        "| trivia:fr | 1 |",
        "| all in other languages | 1 |",
    )
    for text in (
        *rows,
        "reliability.svg",
        "commit 0123456",
        "names swapped: AUC",
        "- wider windows",
    ):
        assert text in page


def test_a_loss_beyond_chance_is_bold_in_the_table_of_kinds() -> None:
    rankers = {"BM25": {"recall@5": 50.0}, "ours": {"recall@5": 40.0}}
    losing = {"rankers": rankers, "ahead": {"recall@5": ("BM25", -15.0, -5.0)}}
    level = {"rankers": rankers, "ahead": {"recall@5": ("BM25", -15.0, 0.5)}}
    assert bench_docs._against(losing, "recall@5") == "**40.0, BM25 50.0 (-15.0 to -5.0)**"
    assert bench_docs._against(level, "recall@5") == "40.0, BM25 50.0 (-15.0 to +0.5)"


class LastFirst:
    """A store that returns its memories in the reversed order, whatever is asked."""

    def __init__(self, folder: Path, embedder: object) -> None:
        self._ids: list[str] = []

    def add(self, items: Sequence[tuple[str, object]]) -> None:
        self._ids += [id_ for id_, _ in items]

    def search(self, query: str) -> list[Hit]:
        return [Hit(id_, "") for id_ in reversed(self._ids)]

    def close(self) -> None:
        self._ids.clear()


def test_a_curve_has_the_recall_of_each_number_of_results(
    conversations: list[Space], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recalls(["b", "x", "a"], frozenset("abc"))[:4] == [1 / 3, 1 / 3, 2 / 3, 2 / 3]
    monkeypatch.setattr(measured_curves, "RETRIEVAL", {"last first": ("last first", LastFirst)})
    monkeypatch.setattr(measured_curves, "installed_versions", lambda _: {})
    found = measured_curves.curves(conversations, HashingEmbedder())
    assert {*found} == {"ours", "BM25", "cosine", "RRF", "last first"}
    assert [*map(len, found.values())] == [10] * 5
    assert found["ours"][0] == 100.0
    assert found["last first"][:4] == [0.0, 33.3, 100.0, 100.0]
