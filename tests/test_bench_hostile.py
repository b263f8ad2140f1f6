"""The benchmark of hostile texts: its options select paths and texts by name, and name what is
unknown."""

import sys

import pytest
from bench.hostile import __main__ as hostile


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[tuple[str, str]]:
    """Return the paths and texts that would be measured."""
    pairs: list[tuple[str, str]] = []
    monkeypatch.setattr(
        hostile,
        "measured",
        lambda path, chosen, *_: pairs.extend((path, name) for name in chosen) or [],
    )
    monkeypatch.setattr(sys, "argv", ["hostile", "--sizes", "10", *words])
    hostile.main()
    return pairs


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["--paths", "add,search"], ["add", "search"]),
        (["--paths", "add, as a tag"], ["add, as a tag"]),
        (
            ["--paths", "redact, pseudonyms", "--paths", "add,search"],
            ["redact, pseudonyms", "add", "search"],
        ),
        ([], list(hostile.PATHS)),
    ],
)
def test_a_path_is_selected_by_its_name_and_several_by_names_without_commas(
    monkeypatch: pytest.MonkeyPatch, words: list[str], paths: list[str]
) -> None:
    assert run(monkeypatch, "--texts", "1 ", *words) == [(path, "1 ") for path in paths]


@pytest.mark.parametrize(
    ("option", "unknown", "known"),
    [("--texts", "no such text", "'password: '"), ("--paths", "add,sing", "'add, as a tag'")],
)
def test_an_unknown_path_or_text_is_an_error_that_names_the_known_ones(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    unknown: str,
    known: str,
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, option, unknown)
    said = capsys.readouterr().err
    assert f"{option}: unknown " in said
    assert unknown.removeprefix("add,") in said.partition(";")[0]
    assert known in said.partition(";")[2]


def test_a_text_of_a_few_characters_is_measured_on_a_path_with_a_comma_in_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        ["hostile", "--sizes", "10", "--paths", "add, as a tag", "--texts", "password: "],
    )
    hostile.main()
    assert capsys.readouterr().out.startswith("add, as a tag, 10: ")
