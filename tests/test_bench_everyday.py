"""The corpus of everyday memory is what it says, a broken world is refused with its line, and
the figures are right."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.everyday import __main__ as program
from bench.everyday import measuring
from bench.everyday.measuring import Asked, ask, calibration, judged, nothing, table, worst
from bench.everyday.worlds import (
    FOLDER,
    KINDS,
    SPLITS,
    World,
    WorldError,
    agreement,
    authors,
    read_world,
    read_worlds,
    together,
)
from bench.peers import Chroma, Hit, Text
from bench.quality import comparing
from bench.quality.evaluating import OURS, PRECISE
from bench.quality.sets import Question
from bench.quality.vectors import KeptEmbedder

import bench_docs
from memory_mesh.models import HashingEmbedder

MEMORIES = [
    {
        "id": "m1",
        "at": "2026-01-05T10:00:00Z",
        "session": "s1",
        "role": "user",
        "text": "The boiler was serviced by Mr Novak.",
    },
    {
        "id": "m2",
        "at": "2026-02-05T10:00:00Z",
        "session": "s2",
        "role": "user",
        "text": "Violin lessons are on Mondays at six.",
    },
    {
        "id": "m3",
        "at": "2026-03-05T10:00:00Z",
        "session": "s3",
        "role": "user",
        "text": "Violin lessons moved to Fridays at five.",
    },
]
QUESTIONS = [
    {"q": "Who serviced the boiler?", "at": "2026-04-01T12:00:00Z", "kind": "direct",
     "gold": ["m1"], "stale": []},
    {"q": "When are violin lessons?", "at": "2026-04-01T12:00:00Z", "kind": "changed_explicit",
     "gold": ["m3"], "stale": ["m2"]},
    {"q": "What does the boiler cost?", "at": "2026-04-01T12:00:00Z", "kind": "negative",
     "gold": [], "stale": []},
]  # fmt: skip


def written(
    path: Path, change: Callable[[dict[str, Any]], object] = lambda data: None, *, chat: bool = True
) -> Path:
    data: dict[str, Any] = {
        "world": "Ann",
        "author": "a01",
        "area": "private",
        "lang": "en",
        "chat": chat,
    }
    data |= {
        "memories": [dict(one) for one in MEMORIES],
        "questions": [dict(one) for one in QUESTIONS],
    }
    change(data)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return read_world(written(tmp_path / "ann.json"))


def test_the_corpus_is_large_and_two_fifths_of_it_are_about_work() -> None:
    worlds = read_worlds()
    kinds = Counter(question.kind for world in worlds for question in world.questions)
    assert len(worlds) >= 120
    assert sum(kinds.values()) >= 4500
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 100
    assert sum(
        world.area not in ("private", "family", "household") for world in worlds
    ) >= 0.4 * len(worlds)
    assert len({world.language for world in worlds} - {"en"}) == 8
    assert sum(world.language != "en" for world in worlds) >= 10


def test_every_world_is_in_one_split_by_its_author() -> None:
    by_split = {split: {world.author for world in read_worlds([split])} for split in SPLITS}
    assert set().union(*by_split.values()) == set(authors())
    assert sum(map(len, by_split.values())) == len(authors())
    assert len(list((FOLDER / "worlds").glob("*.json"))) == sum(
        author["worlds"] for author in authors().values()
    )


BROKEN = {
    "the kind 'odd'": (lambda data: data["questions"][1].update(kind="odd"), "When are"),
    "no memory m9": (lambda data: data["questions"][0].update(gold=["m9"]), "Who serviced"),
    "asked before": (
        lambda data: data["questions"][0].update(at="2025-12-01T12:00:00Z"),
        "Who serviced",
    ),
    "only a negative question": (
        lambda data: data["questions"][2].update(gold=["m1"]),
        "What does",
    ),
    "names the outdated": (lambda data: data["questions"][1].update(stale=[]), "When are"),
    "two gold memories": (lambda data: data["questions"][0].update(kind="list"), "Who serviced"),
    "gold and stale": (lambda data: data["questions"][1].update(stale=["m3", "m2"]), "When are"),
    "an id of its own": (lambda data: data["memories"][2].update(id="m2"), "Violin lessons are"),
    "at is of another type": (lambda data: data["memories"][1].update(at="soon"), None),
    "text is of another type": (lambda data: data["memories"][1].update(text=1), None),
    "exactly the fields": (lambda data: data["memories"][1].pop("role"), None),
    "`chat` must be there": (lambda data: data.pop("chat"), None),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_world_that_breaks_the_format_is_refused_with_the_line(
    tmp_path: Path, fault: str
) -> None:
    change, words = BROKEN[fault]
    path = written(tmp_path / "broken.json", change)
    with pytest.raises(WorldError, match=fault) as refused:
        read_world(path)
    line = int(str(refused.value).split(":")[1])
    if words:
        assert words in path.read_text(encoding="utf-8").splitlines()[line - 1]


def test_a_file_that_is_not_json_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{", encoding="utf-8")
    with pytest.raises(WorldError, match=r"odd\.json: not JSON"):
        read_world(tmp_path / "odd.json")


def test_a_world_of_an_unknown_author_is_refused(tmp_path: Path) -> None:
    (tmp_path / "worlds").mkdir()
    written(tmp_path / "worlds" / "ann.json")
    (tmp_path / "authors.toml").write_text('[bob]\nsplit = "test"\n', encoding="utf-8")
    with pytest.raises(WorldError, match="does not name the authors of ann of a01"):
        read_worlds(folder=tmp_path)


def test_a_note_stays_a_note_among_chats(tmp_path: Path, world: World) -> None:
    notes = read_world(written(tmp_path / "notes.json", chat=False))
    both = together([world, notes], "both")
    assert {said.session is None for said in both.memories if said.id.startswith("notes/")} == {
        True
    }
    assert {said.session is None for said in both.memories if said.id.startswith("ann/")} == {False}


def test_worlds_that_are_put_together_keep_their_ids_apart(world: World) -> None:
    both = together([world, replace(world, name="bob")], "both")
    assert len({said.id for said in both.memories}) == 2 * len(world.memories)
    assert {id_ for question in both.questions for id_ in question.gold | question.stale} <= {
        said.id for said in both.memories
    }


def test_an_outdated_memory_counts_as_above_if_it_is_before_every_current_one() -> None:
    question = Question(
        text="", gold=frozenset({"new"}), stale=frozenset({"old"}), kind="changed_explicit", at=""
    )
    assert judged(question, ["new", "old"]) == {
        "first": True,
        "in three": True,
        "missing": False,
        "outdated above": False,
    }
    assert judged(question, ["x", "old", "new"]) == {
        "first": False,
        "in three": True,
        "missing": False,
        "outdated above": True,
    }
    assert judged(question, ["old"]) == {
        "first": False,
        "in three": False,
        "missing": True,
        "outdated above": True,
    }


@pytest.mark.parametrize("chat", [True, False], ids=["a chat", "notes"])
def test_the_questions_of_a_world_are_asked_of_its_memories(tmp_path: Path, *, chat: bool) -> None:
    unrelated = [
        Question(
            text="Quelle est la capitale ?",
            gold=frozenset(),
            kind="unrelated",
            at="2026-04-02T12:00:00.000Z",
        )
    ]
    asked = list(
        ask([read_world(written(tmp_path / "ann.json", chat=chat))], HashingEmbedder(), unrelated)
    )
    assert [each.question.kind for each in asked] == [
        "direct",
        "changed_explicit",
        "negative",
        "unrelated",
    ]
    rows = table(asked)
    assert rows["direct"]["rankers"][OURS] == {
        "first": 1,
        "in three": 1,
        "missing": 0,
        "outdated above": 0,
    }
    assert rows["all with an answer"]["questions"] == 2
    assert nothing(asked)["negative"]["questions"] == nothing(asked)["unrelated"]["questions"] == 1
    assert set(nothing(asked)["negative"]["answered"]) == {OURS, PRECISE}
    assert list(calibration(asked)) == ["chats" if chat else "notes"]


def asked_about(world: World, *ids: str, score: float = 0.5, kind: str = "direct") -> Asked:
    """Return a question that m3 answers, for which ours found some memories."""
    question = Question(text=f"{kind} {score}", gold=frozenset({"m3"}), kind=kind, at="")
    return Asked(
        world=world, question=question, found={OURS: ids}, scored=[(id_, score) for id_ in ids]
    )


def test_the_worst_misses_are_missing_memories_then_low_places_then_high_scores(
    world: World,
) -> None:
    right, second, third = (
        asked_about(world, *ids) for ids in (["m3"], ["m1", "m3"], ["m1", "m2", "m3"])
    )
    surest, missing, empty = (
        asked_about(world, "m1", score=0.9),
        asked_about(world, "m1"),
        asked_about(world),
    )
    changed = asked_about(world, "m2", kind="changed_explicit")
    misses = worst([right, second, empty, missing, changed, third, surest])
    assert [(miss["place"], miss["score"]) for miss in misses] == [
        (None, 0.9),
        (None, 0.5),
        (None, 0.0),
        (3, 0.5),
        (2, 0.5),
    ]
    assert misses[0] == {
        "question": "direct 0.9", "kind": "direct", "world": "ann", "gold": MEMORIES[2]["text"],
        "first": MEMORIES[0]["text"], "place": None, "score": 0.9,
    }  # fmt: skip
    assert misses[2]["first"] is None
    assert len(worst([missing] * 11)) == 10


def test_long_texts_of_misses_are_cut_at_120_characters(tmp_path: Path) -> None:
    long = read_world(
        written(tmp_path / "ann.json", lambda data: data["memories"][2].update(text="x" * 121))
    )
    assert worst([asked_about(long, "m1")])[0]["gold"] == "x" * 119 + "…"


def test_agreement_counts_only_worlds_that_a_second_author_answered(tmp_path: Path) -> None:
    checked = 'split = "test"\nworlds = 4\nasked = 40\nequal = 38\nmended = 1\ndropped = 0\n'
    unchecked = '[c]\nsplit = "test"\nworlds = 4\nasked = 40\n'
    (tmp_path / "authors.toml").write_text(
        f"[a]\n{checked}[b]\n{checked}{unchecked}", encoding="utf-8"
    )
    sums = {"authors": 2, "worlds": 8, "asked": 80, "equal": 76, "mended": 2, "dropped": 0}
    assert agreement(tmp_path) == {"test": sums}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that measures one small world and returns the path of the result file."""
    missed = {
        **QUESTIONS[0],
        "q": "Wer reparierte die Heizung?",
        "kind": "paraphrase",
        "gold": ["m2"],
    }
    some = read_world(written(tmp_path / "ann.json", lambda data: data["questions"].append(missed)))
    monkeypatch.setattr(program, "read_worlds", lambda _: [some])
    monkeypatch.setattr(program, "local", lambda _: KeptEmbedder(HashingEmbedder()))

    def measure(*options: str) -> Path:
        monkeypatch.setattr("sys.argv", ["bench.everyday", *options, "--out", str(tmp_path)])
        program.main()
        return tmp_path / "everyday.json"

    return measure


@pytest.mark.parametrize("options", ["--splits choose --sizes one", "--splits test --sizes ten"])
def test_a_run_without_the_split_test_and_the_size_one_writes_no_result(
    run: Callable[..., Path], options: str
) -> None:
    assert not run(*options.split()).exists()


def test_the_result_has_what_was_run_and_the_page_shows_it(
    run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        program, "measured_at", lambda: {"commit": "0123456789abcdef", "clean": True}
    )
    file = run("--splits", "test", "--sizes", "one,ten")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert result["made_by"] == "python -m bench.everyday --splits test --sizes one,ten"
    assert {split: list(sizes) for split, sizes in result["splits"].items()} == {
        "test": ["one", "ten"]
    }
    assert result["agreement"] == agreement()
    assert result["worst"][0]["question"] == "Wer reparierte die Heizung?"
    assert (file.parent / "everyday_reliability.svg").exists()
    monkeypatch.setattr(bench_docs, "RESULTS", file.parent)
    page, second = bench_docs.page(), agreement()["test"]
    for text in (
        "`python -m bench.everyday --splits test --sizes one,ten`, commit 0123456.",
        f"{second['equal']:,} of {second['asked']:,} questions (",
        "**Each world alone**", "**Ten worlds in one store**",
        "| direct (1) | 100.0 / 100.0 / 0.0 |", "| without change (2) |",
        "Ours minus the best plain ranker without change",
        "What `precise` mode loses, of all 3 questions with an answer", "| chats |",
        "everyday_reliability.svg", "| negative (1) |",
        "| paraphrase, ann | Wer reparierte die Heizung? |",
    ):  # fmt: skip
        assert text in page


class LastFirst:
    """A store that returns its memories in the reversed order, whatever is asked."""

    def __init__(self, folder: Path, embedder: object) -> None:
        self._ids: list[str] = []

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._ids += [id_ for id_, _ in items]

    def search(self, query: str) -> list[Hit]:
        return [Hit(id_, "") for id_ in reversed(self._ids)]

    def close(self) -> None:
        self._ids.clear()


class Broken(LastFirst):
    """A store that cannot be searched."""

    def search(self, query: str) -> list[Hit]:
        raise OSError("no index")


MISSING = ("package-that-nobody-has",)


@pytest.fixture
def use_stores(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that puts other stores in place of those that are measured."""

    def put(**stores: tuple[tuple[str, ...], Callable[..., Any]]) -> None:
        for module in (measuring, comparing):
            monkeypatch.setattr(module, "RETRIEVAL", stores)

    return put


def test_other_stores_are_judged_as_ours_and_the_page_shows_them(
    run: Callable[..., Path], use_stores: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        program, "measured_at", lambda: {"commit": "0123456789abcdef", "clean": True}
    )
    use_stores(Last=(("numpy",), LastFirst), Faulty=(("numpy",), Broken), Absent=(MISSING, Chroma))
    folder = run("--peers").parent
    assert not (folder / "everyday.json").exists()
    result = json.loads((folder / "everyday_peers.json").read_text(encoding="utf-8"))
    assert result["made_by"] == "python -m bench.everyday --peers --splits test --sizes one,ten"
    assert result["commit"] == "0123456789abcdef"
    alone = result["splits"]["test"]["one"]
    assert alone["stores"]["Faulty"] == {"failure": "OSError: no index"}
    assert alone["stores"]["Absent"] == {"failure": "not installed"}
    assert list(alone["table"]["direct"]["rankers"]) == [OURS, "Last"]
    right_first = {"first": 1, "in three": 1, "missing": 0, "outdated above": 0}
    assert alone["table"]["changed_explicit"]["rankers"]["Last"] == right_first
    assert alone["table"]["direct"]["rankers"]["Last"] == {**right_first, "first": 0}
    assert alone["table"]["direct"]["ahead"]["first"] == ["Last", 100.0, 100.0]
    assert "negative" not in alone["table"]

    run("--splits", "test", "--sizes", "one")
    monkeypatch.setattr(bench_docs, "RESULTS", folder)
    page = bench_docs.page()
    for text in (
        "`python -m bench.everyday --peers --splits test --sizes one,ten`, commit 0123456.",
        "**Each world alone, other stores**", "**Ten worlds in one store, other stores**",
        f"| questions | ours | Last {alone['stores']['Last']['versions']['numpy']} |",
        "| direct (1) | 100.0 / 100.0 / 0.0 | 0.0 / 100.0 / 0.0 |",
        "Ours minus the best other store without change",
        "Not measured: Faulty (OSError: no index); Absent (not installed).",
    ):  # fmt: skip
        assert text in page


def test_a_run_in_which_every_other_store_fails_writes_no_result(
    run: Callable[..., Path], use_stores: Callable[..., None], tmp_path: Path
) -> None:
    use_stores(Absent=(MISSING, Chroma))
    with pytest.raises(SystemExit, match="no other store could be measured"):
        run("--peers", "--sizes", "one")
    assert not (tmp_path / "everyday_peers.json").exists()


def test_what_precise_mode_loses_and_what_is_outdated_is_said_in_percent() -> None:
    counts = {"first": 8, "in three": 9, "missing": 1, "outdated above": 2}
    fewer = {"first": 7, "in three": 7, "missing": 3, "outdated above": 1}
    row = {
        "questions": 10,
        "rankers": {OURS: counts, PRECISE: fewer},
        "ahead": {"first": ("RRF", -1.5, 4.0)},
    }
    names = ("direct", "changed_implicit", "without change", "all with an answer")
    section = "\n".join(bench_docs._everyday_size("one", dict.fromkeys(names, row)))
    assert "| direct (10) | 80.0 / 90.0 / 10.0 | 70.0 / 70.0 / 30.0 |" in section
    assert (
        "| changed_implicit (10) | 80.0 / 90.0 / 10.0, outdated 20.0 | 70.0 / 70.0 / 30.0, "
        "outdated 10.0 |"
    ) in section
    assert "first -1.5 to +4.0 (against RRF)" in section
    assert (
        "10.0 % are no longer right first and 20.0 % no longer right in three; 20.0 % more "
        "are missing."
    ) in section


def test_the_text_of_a_miss_is_no_markup_in_the_page() -> None:
    miss = {
        "question": "a | b",
        "kind": "date",
        "world": "ann",
        "gold": "<b>x</b>\n*y*",
        "first": None,
        "place": None,
        "score": 0.0,
    }
    section = "\n".join(bench_docs._everyday_misses([miss]))
    assert "| date, ann | a \\| b | &lt;b&gt;x&lt;/b&gt; \\*y\\* | nothing | – | 0.00 |" in section


def test_without_a_result_the_page_has_no_section_of_everyday_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_docs, "RESULTS", tmp_path)
    assert "## Everyday memory" not in bench_docs.page()
