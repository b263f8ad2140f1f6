"""The command line searches precisely, unless `--mode recall` is given."""

import json

import pytest

from memory_mesh.core.search import ranker

TEXTS = ["The deploy key rotates on Mondays.", "A deploy takes an hour.", "Ana prefers green tea."]


@pytest.fixture
def filled(cli, monkeypatch):
    """The command line over three memories, of which one is above the precise minimum score and
    all above that of recall."""
    for text in TEXTS:
        cli("store", text)
    scores = [
        hit["score"]
        for hit in json.loads(cli("search", "deploy", "key", "--min-score", "0", "--json").out)[
            "results"
        ]
    ]
    assert len(scores) == len(TEXTS)
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 0.0, "recall": 0.0})
    cuts = {"precise": (scores[0] + scores[1]) / 2, "recall": scores[2] / 2}
    monkeypatch.setattr(ranker, "FRACTIONS", {mode: cut / scores[0] for mode, cut in cuts.items()})
    return cli


@pytest.mark.parametrize("configured", [None, "recall"])
@pytest.mark.parametrize("flags", [[], ["--explain"], ["--for-model"]])
def test_a_search_is_precise_whatever_is_configured_unless_recall_is_given(
    filled, monkeypatch, configured, flags
):
    if configured:
        monkeypatch.setenv("MEMORY_MESH_SEARCH_MODE", configured)
    rows = "answers" if "--explain" in flags else "results"
    for given, size in (
        ([], 1),
        (["--mode", "precise"], 1),
        (["--mode", "recall"], 3),
        (["--min-score", "0"], 3),
    ):
        assert (
            len(json.loads(filled("search", "deploy", "key", *flags, *given, "--json").out)[rows])
            == size
        )


def test_an_explanation_prints_the_mode_its_cut_and_the_number_below_it(filled):
    lines = filled("search", "deploy", "key", "--explain").out.splitlines()
    best = json.loads(filled("search", "deploy", "key", "--json").out)["results"][0]["score"]
    cut = f"{ranker.FRACTIONS['precise'] * best:g}"
    assert lines[3].endswith(f", mode precise, minimum score {cut}")
    assert f"Below the minimum score of {cut}: 2 memories, the best of them:" in lines
    given = filled("search", "deploy", "key", "--explain", "--min-score", "1").out.splitlines()
    assert given[3].endswith(" vectors of hashing/256, minimum score 1")


def test_lessons_are_cut_by_the_mode_and_show_their_scores(cli, monkeypatch):
    flags = {
        "pattern": "p", "rule": "Refresh the token.", "situation": "s", "oversight": "o",
        "fix": "f", "severity": "low", "scope": "deploys",
    }  # fmt: skip
    cli("distill", *(word for name, value in flags.items() for word in (f"--{name}", value)))
    (found,) = json.loads(cli("lessons", "refresh", "token", "--json").out)["lessons"]
    assert 0 < found["score"] <= 1
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 11.0, "recall": 0.0})
    assert json.loads(cli("lessons", "refresh", "token", "--json").out)["lessons"] == []
    assert (
        len(
            json.loads(cli("lessons", "refresh", "token", "--mode", "recall", "--json").out)[
                "lessons"
            ]
        )
        == 1
    )
    (listed,) = json.loads(cli("lessons", "--json").out)["lessons"]
    assert "score" not in listed
    told = cli("lessons", "refresh", "token", terminal=True).out
    assert told.endswith("0 lessons.\n--mode recall shows weaker matches.\n")
    assert "weaker" not in cli("lessons", "refresh", "token", "--mode", "recall", terminal=True).out


@pytest.mark.parametrize("command", ["search", "lessons"])
def test_an_unknown_mode_is_refused_with_the_nearest_one(cli, command):
    said = cli(command, "key", "--mode", "precis")
    assert said.code == 2
    assert "precise" in said.err


def test_an_unknown_ranker_is_refused_with_the_known_ones(cli):
    said = cli("search", "key", "--ranker", "deep")
    assert (said.code, said.err) == (
        2,
        "[MemoryMesh Error] unknown value 'deep' of --ranker; expected one of learnt, rrf\n",
    )
