"""The command line searches as Python does. A pipe, which feeds a prompt, gets what is relevant; a
terminal shows the rest below a line."""

import json

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.search import ranker
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.mcp.server import OperationTools

from .test_screens import plain

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


def shown(text: str) -> int:
    """Return how many of the three memories a text contains."""
    return sum(one in text for one in TEXTS)


@pytest.mark.parametrize(("configured", "usual"), [(None, 3), ("recall", 3), ("precise", 1)])
@pytest.mark.parametrize("flags", [[], ["--explain"], ["--for-model"]])
def test_the_configured_mode_counts_unless_another_one_is_given_and_a_prompt_is_precise(
    filled, monkeypatch, configured, usual, flags
):
    if configured:
        monkeypatch.setenv("MEMORY_MESH_SEARCH_MODE", configured)
    rows = "answers" if "--explain" in flags else "results"
    for given, size in (
        ([], 1 if "--for-model" in flags else usual),
        (["--mode", "precise"], 1),
        (["--mode", "recall"], 3),
        (["--min-score", "0"], 3),
    ):
        found = json.loads(filled("search", "deploy", "key", *flags, *given, "--json").out)[rows]
        assert [one["relevant"] for one in found] == [True, False, False][:size]
    assert filled("search", "deploy", "key", "--explain").out.count("Probably not relevant") == (
        usual - 1
    )


@pytest.mark.parametrize("flags", [[], ["--for-model"]])
def test_a_pipe_has_the_relevant_matches_unless_what_is_left_out_is_chosen(filled, flags):
    for given, size in (
        ([], 1),
        (["--mode", "precise"], 1),
        (["--mode", "recall"], 3),
        (["--min-score", "0"], 3),
    ):
        text = filled("search", "deploy", "key", *flags, *given).out
        assert shown(text) == size
        assert flags or text.startswith(f"[MemoryMesh] Found {size} matches.\n\n[ATTENTION")


def test_a_terminal_draws_a_line_below_the_last_relevant_match(filled):
    lines = plain(filled("search", "deploy", "key", terminal=True))
    assert lines[0] == "[MemoryMesh] 1 memory about “deploy key”"
    at = lines.index("— probably not relevant below —")
    assert (shown("\n".join(lines[:at])), shown("\n".join(lines[at:]))) == (1, 2)
    for given in (["--mode", "precise"], ["--limit", "1"]):
        assert "below —" not in filled("search", "deploy", "key", *given, terminal=True).out


def test_without_a_relevant_match_a_terminal_shows_the_weaker_ones_and_a_pipe_counts_them(
    filled, monkeypatch
):
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 11.0, "recall": 0.0})
    lines = plain(filled("search", "deploy", "key", terminal=True))
    assert lines[0] == "[MemoryMesh] Nothing relevant to “deploy key”; weaker matches:"
    assert shown("\n".join(lines)) == 3
    assert "— probably not relevant below —" not in lines
    assert filled("search", "deploy", "key").out == (
        "[MemoryMesh] Found 0 matches.\nWeaker matches: 3; --mode recall shows them.\n"
    )
    assert filled("search", "deploy", "key", "--for-model").out.strip() == ""


def test_rest_has_all_matches_and_texts_for_models_have_the_relevant_ones(filled):
    operations = {one.name: one for one in remote.OPERATIONS}
    with MemoryMesh() as mesh:
        for name, size in (("search", 3), ("explain", 3), ("search-for-model", 1)):
            data = remote.call(mesh, operations[name], {"query": "deploy key"})
            found = data["answers" if name == "explain" else "results"]
            assert [one["relevant"] for one in found] == [True, False, False][:size]
        assert shown(data["text"]) == 1
        for name in ("recall", "search"):
            text = (
                OperationTools(("all",)).call(mesh, name, {"query": "deploy key"}).content[0].text
            )
            assert shown(text) == 1
        results = mesh.search("deploy key")
        assert (len(results), shown(mesh.format_for_model(results))) == (3, 1)
        assert shown(mesh.format_results(results)) == 3
        assert mesh.format_for_model(results[1:]) == mesh.format_for_model([]) == ""


def test_an_explanation_prints_the_mode_its_cut_and_the_number_below_it(filled):
    lines = filled("search", "deploy", "key", "--mode", "precise", "--explain").out.splitlines()
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
    (found,) = json.loads(cli("lessons", "refresh", "token", "--json").out)["results"]
    assert 0 < found["score"] <= 1
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 11.0, "recall": 0.0})
    assert json.loads(cli("lessons", "refresh", "token", "--json").out)["results"] == []
    assert (
        len(
            json.loads(cli("lessons", "refresh", "token", "--mode", "recall", "--json").out)[
                "results"
            ]
        )
        == 1
    )
    (listed,) = json.loads(cli("lessons", "--json").out)["results"]
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
