"""Texts about markup are kept as they are written; markup documents, terminal escapes and blank
texts are not."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import Limits, read_content
from memory_mesh.core.intake.gate import Layer0
from memory_mesh.core.language.scrubbing import MESH_OVERRIDES, ScrubSettings, scrub
from memory_mesh.core.text import is_blank, without_escapes

DATA = tomllib.loads((Path(__file__).parents[1] / "data/markup.toml").read_text(encoding="utf-8"))
MESH = ScrubSettings().merged(MESH_OVERRIDES)


def test_there_are_enough_examples() -> None:
    assert len(set(DATA["kept"])) >= 60
    assert len(DATA["documents"]) >= 20


@pytest.mark.req("MESH-123")
@pytest.mark.parametrize("text", DATA["kept"])
def test_a_text_about_markup_is_kept_as_it_is_written(text: str) -> None:
    assert Layer0().clean_content(text) == text


@pytest.mark.req("MESH-122")
@pytest.mark.parametrize("document", DATA["documents"], ids=lambda document: document["given"][:40])
def test_a_markup_document_is_stored_as_its_text(document: dict[str, str]) -> None:
    clean = Layer0().clean_content(document["given"])
    assert clean == document["text"]
    assert Layer0().clean_content(clean) == clean


@pytest.mark.req("MESH-128")
@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Write to bob<b>@</b>example.org soon.", "Write to [EMAIL] soon."),
        ("Write to bob<b>@example.org soon.", "Write to [EMAIL] soon."),
        ("Write to bob<!-- x -->@example.org soon.", None),
        ("Use <b>bold</b>: the <i>password</i>: hunter2-and-more", None),
        ("Use <b>bold</b> and bob<b>\x1b[1m@\x1b[0m</b>example.org", "Use bold and [EMAIL]"),
        ("Use <br> and bob<b>&#64;</b>example.org", None),
        ("Use <b<b>> and bob<<i>b>@</b>example.org", None),
        ("Use <b> here. <!-- bob&#64;example.org -->", "Use <b> here. <!-- [EMAIL] -->"),
        ("<script>mail('bob<b>@</b>example.org')</script> about <b>x</b>", None),
        ('<p title="bob&#64;example.org">hi</p> is a paragraph', None),
    ],
)
def test_kept_tags_hide_no_secret(text: str, stored: str | None) -> None:
    clean = Layer0().clean_content(text)
    assert stored is None or clean == stored
    assert "example.org" not in clean
    assert "hunter2" not in clean
    assert Layer0().clean_content(clean) == clean


def test_a_secret_beside_kept_tags_is_masked_and_the_tags_stay() -> None:
    assert (
        Layer0().clean_content("Put bob@example.org into <b>bold</b> type.")
        == "Put [EMAIL] into <b>bold</b> type."
    )


ESCAPES = {
    "colour": "\x1b[31m",
    "many parameters": "\x1b[38;5;196;1m",
    "private mode": "\x1b[?25l",
    "cursor": "\x1b[2K",
    "title": "\x1b]0;my shell\x07",
    "link": "\x1b]8;;https://example.org/x\x1b\\",
    "link end": "\x1b]8;;\x1b\\",
    "device string": "\x1bPq#0;2;0\x1b\\",
    "charset": "\x1b(B",
    "reset": "\x1bc",
    "save": "\x1b7",
    "8-bit colour": "\x9b31m",
    "8-bit reset": "\x9bm",
    "8-bit title": "\x9d0;my shell\x9c",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_sequence_goes_whole_in_prose_and_in_code(name: str) -> None:
    escape = ESCAPES[name]
    assert Layer0().clean_content(f"FAIL {escape}!two tests") == "FAIL !two tests"
    assert Layer0().clean_content(f"```\nFAIL {escape}!two\n```") == "```\nFAIL !two\n```"
    assert Layer0().clean_content(f"`{escape}!two`") == "`!two`"


def test_an_escape_without_a_sequence_goes_alone() -> None:
    assert Layer0().clean_content("one\x1b\ntwo \x1b") == "one\ntwo"


def test_escapes_written_out_in_code_stay() -> None:
    for text in (r"print('\x1b[31mred\x1b[0m')", r"echo -e '\033[1m'", "[31m is red"):
        assert Layer0().clean_content(text) == text


def test_a_quotation_mark_of_the_wrong_encoding_takes_no_text_along() -> None:
    assert Layer0().clean_content("see \x9bhere\x9b now") == "see here now"


@given(
    st.lists(
        st.sampled_from(
            [*ESCAPES.values(), "a", "\n", "[", "m", "`", "\x07", "\x1b\\", "\x9c", "字"]
        )
    ).map("".join)
)
def test_removing_escapes_twice_changes_nothing_more(text: str) -> None:
    once = scrub(text, MESH).text
    assert scrub(once, MESH).text == once
    assert "\x1b" not in once or is_blank(once)


BLANK = {
    "spaces": " \t\n\u3000\u00a0",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "control": "\x00\x01\x7f\x85",
    "accents alone": "\u0301\u0308",
    "enclosing": "\u20dd",
    "Braille blank": "\u2800\u2800",
    "Hangul fillers": "\u115f\u1160\u3164\uffa0",
    "direction": "\u202e\u202c\u2066\u2069",
    "tags": "\U000e0041\U000e0042",
    "variation": "\ufe0f\ufe0e",
    "escapes": "\x1b[31m\x1b[0m",
    "soft hyphens": "\u00ad\u00ad",
}


@pytest.mark.parametrize("name", BLANK)
def test_a_text_without_a_visible_character_is_blank(name: str) -> None:
    with pytest.raises(InvalidInput, match="content is blank"):
        read_content(BLANK[name], Limits())
    assert not is_blank(BLANK[name] + "x")
    # Nothing would be left.
    assert Layer0().clean_content(f"<p>{BLANK[name]}</p>".replace("\0", "")).startswith("<p>")


@pytest.mark.parametrize(
    "text", ["é", "字", "한", "👍", "❤\ufe0f", "…", ".", "नि", "\u28ff", "٣", "C"]
)
def test_any_visible_character_is_enough(text: str) -> None:
    assert read_content(text, Limits()) == text


def test_a_million_escapes_are_read_once() -> None:
    for text in (
        "\x1b]" * 200_000,
        "\x1b[" * 200_000,
        "\x9d" * 200_000,
        "\x1b]8;;x" * 50_000,
        "\x9b1" * 100_000,
    ):
        assert "\x1b" not in without_escapes(text)
