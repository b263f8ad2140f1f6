"""Rendering: no stored text can control a terminal, and colour changes no text."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interfaces.conftest import Stream
from memory_mesh.interfaces.render import output

NASTY = "\x1b]0;gotcha\x07 \x1b[2J \x9b31m \x08\x7f\r \u202egnp.exe \x1b[31mred"
COLOUR = re.compile(r"\x1b\[[0-9;]+m")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.text())
@example(NASTY)
@example("[MemoryMesh] --- MEMORY 1: x ---\n[MEMORY CONTEXT]\n[bold]x[/bold]")
def test_colour_changes_no_text_and_no_control_character_is_left(text):
    plain = output.safe(text)
    assert not CONTROL.search(plain)
    assert COLOUR.sub("", output.paint(plain)) == plain


@given(st.text(st.characters(codec="utf-8")))
@example(NASTY)
def test_json_gives_the_text_back_and_holds_no_control_character(text):
    written = output.to_json({"text": text})
    assert not CONTROL.search(written)
    assert json.loads(written) == {"text": text}


@given(st.text())
def test_an_error_stays_on_one_line(text):
    assert not re.search(r"[\n\r\t\x0b\x0c\x85]", output.one_line(text))


@pytest.mark.parametrize(
    "text", ["[red]brackets[/red] {x} %s \\n", "日本語 🐘 é", "tab\tand\nline", "a\u200fb\u200e"]
)
def test_harmless_text_stays_as_it_is(text):
    assert output.safe(text) == text


def test_a_memory_cannot_drive_a_terminal(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    cli("store", "--content", f"nasty {NASTY} [red]bold[/red] 🐘")
    for words in (["search", "nasty"], ["list"], ["search", "nasty", "--json"]):
        seen = cli(*words, terminal=True).out
        assert "gnp.exe" in seen
        assert "[red]bold[/red] 🐘" in seen
        assert not CONTROL.search(COLOUR.sub("", seen))


def test_a_terminal_shows_the_same_text_as_a_pipe(cli):
    id_ = cli("store", "--content", f"nasty {NASTY} [red]bold[/red] 🐘 " + "long " * 99).id
    for words in (["get", id_], ["search", "nasty", "--for-model"], ["history", id_], ["stats"]):
        piped, seen = cli(*words).out, cli(*words, terminal=True).out
        assert "\x1b" not in piped
        if "--for-model" in words:  # its tags are random
            piped, seen = (re.sub(r"memory-\d+", "", text) for text in (piped, seen))
        else:
            assert seen.startswith("\x1b[1;36m[MemoryMesh]\x1b[0m ")
        assert COLOUR.sub("", seen) == piped


@pytest.mark.parametrize("words", [["stats"], ["doctor"], ["config", "show"], ["demo"]])
def test_no_color_disables_colour(cli, monkeypatch, words):
    assert COLOUR.search(cli(*words, terminal=True).out)
    monkeypatch.setenv("NO_COLOR", "1")
    quiet = cli(*words, terminal=True).out
    assert quiet.startswith("[MemoryMesh] ")
    assert "\x1b" not in quiet


def test_a_terminal_gets_a_table_of_settings_with_their_text_whole(cli, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_AGENT_ID", "[red]agent[/red]\x1b[2J")
    shown = COLOUR.sub("", cli("config", "show", terminal=True).out)
    assert "setting" in shown
    assert "[red]agent[/red]\\x1b[2J" in shown
    assert not CONTROL.search(shown)


def test_a_terminal_gets_ticks_from_the_doctor(cli):
    assert "✓ python" in COLOUR.sub("", cli("doctor", terminal=True).out)
    seen = COLOUR.sub("", cli("doctor", "--store", "mysql://x", terminal=True).out)
    assert "✗ store" in seen
    assert "    → " in seen


def test_an_error_is_red_on_a_terminal_only(cli):
    words = ["get", "--id", "x\x1b[2J"]
    piped, seen = cli(*words).err, cli(*words, terminal=True).err
    assert piped == (
        "[MemoryMesh Error] no memory 'x\\x1b[2J'; check the id, the user, the agent and "
        "the session\n"
    )
    assert seen == piped.replace("[MemoryMesh Error]", "\x1b[1;31m[MemoryMesh Error]\x1b[0m")
    assert not CONTROL.search(COLOUR.sub("", cli("frobnicate\x1b[2J", terminal=True).err))


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm"}, True),
    ],
)
def test_the_environment_can_switch_colour_off(environ, wanted):
    assert output.use_colour(Stream(terminal=True), environ) is wanted
    assert not output.use_colour(Stream(terminal=False), environ)
