"""Values without their flags, beside the flags of RFC-0011: `store TEXT`, `get ID`."""

import io
import json
import sys

import pytest

from memory_mesh.interfaces.cli import parser as cli_module
from memory_mesh.interfaces.operation import Kind
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.verbs import COMMANDS, parameters


def content(cli, id_: str) -> str:
    return json.loads(cli("get", id_, "--json").out)["content"]


@pytest.mark.req("MESH-150", "MESH-154")
def test_a_text_and_an_id_need_no_flag(cli):
    id_ = cli("store", "The key rotates.", "--tag", "ops").id
    assert content(cli, id_) == "The key rotates."
    assert cli("update", id_, "The key rotates on Fridays.", "--why", "new plan").code == 0
    assert content(cli, id_) == "The key rotates on Fridays."
    assert cli("update", id_, "--metadata", '{"source": "chat"}').code == 0
    assert cli("pin", "--off", id_).out == f"[MemoryMesh] Unpinned record {id_}\n"
    assert cli("history", id_).out == cli("history", "--id", id_).out
    assert cli("get", id_).out == cli("get", "--id", id_).out
    assert cli("delete", id_).out == f"[MemoryMesh] Deleted record {id_}\n"
    assert cli("get", id_).code == 4


def test_a_key_names_a_memory_too(cli):
    id_ = cli("store", "Ana is on holiday.", "--key", "ana/status").id
    assert cli("get", "--key", "ana/status").out == cli("get", id_).out
    assert (cli("get", id_, "--key", "ana/status").code, cli("get").code) == (2, 2)
    assert cli("delete", "--key", "ana/status").out == f"[MemoryMesh] Deleted record {id_}\n"
    gone = cli("delete", "--key", "ana/status")
    assert (gone.code, gone.err) == (
        4,
        ("[MemoryMesh Error] no memory with the key 'ana/status'; check the key, the user and "
         "the project\n"),
    )  # fmt: skip


def test_help_is_also_a_command(cli):
    assert cli("help").out == cli("--help").out
    assert cli("help", "audit").out == cli("audit").out
    assert cli("help", "audit", "log").out == cli("audit", "log", "--help").out
    assert (
        cli("help", "stor").err
        == "[MemoryMesh Error] unknown command 'stor'; did you mean store?\n"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("add", "store"),
        ("remember", "store"),
        ("find", "search"),
        ("rm", "forget"),
        ("erase", "forget"),
    ],
)
def test_words_of_other_programs_are_understood_as_mistakes(cli, typed, meant):
    said = cli(typed, "x")
    assert (said.code, said.err) == (
        2,
        f"[MemoryMesh Error] unknown command '{typed}'; did you mean {meant}?\n",
    )


def test_every_word_of_other_programs_leads_to_a_command():
    assert set(cli_module._SYNONYMS.values()) - {"--version"} <= COMMANDS.keys()
    assert not cli_module._SYNONYMS.keys() & COMMANDS.keys()


def test_a_dash_reads_standard_input(cli, monkeypatch):
    for words in (["store", "-"], ["update", cli("store", "x").id, "-"], ["extract", "-"]):
        monkeypatch.setattr(sys, "stdin", io.StringIO("first line\nsecond line\n"))
        said = cli(*words, "--json")
        assert said.code == 0, said.err
        assert "first line\\nsecond line" in said.out


def test_a_text_that_is_not_utf_8_is_an_error_that_says_where(cli, monkeypatch):
    expected = (
        "[MemoryMesh Error] the text is not UTF-8 (byte 6); convert it, for example with iconv "
        "-t utf-8\n"
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("café\udce9 au lait"))
    assert (cli("store", "-").err, cli("store", "café\udce9").err) == (expected, expected)


def test_a_text_that_begins_with_a_dash_stands_behind_two_dashes(cli):
    said = cli("store", "- buy milk")
    assert (said.code, said.err) == (
        2,
        ("[MemoryMesh Error] unknown flag '- buy milk'; write -- before a text that begins with "
         "a dash\n"),
    )  # fmt: skip
    assert content(cli, cli("store", "--tag", "home", "--", "- buy milk").id) == "- buy milk"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_what_needs_no_flag_as_an_argument(cli, name):
    help_ = cli(*name.split(), "--help").out
    bare = [one for one in parameters(name) if one.bare]
    assert ("Arguments:" in help_) == any(one.bare or one.positional for one in parameters(name))
    for one in bare:
        assert " ".join(f"also {one.word} {one.shown_metavar}".split()) in " ".join(help_.split())


def test_only_texts_and_ids_need_no_flag():
    bare = {
        (operation.name, one.name)
        for operation in OPERATIONS
        for one in operation.parameters
        if one.bare
    }
    assert {("store", "content"), ("get", "id"), ("update", "id"), ("update", "content")} <= bare
    kinds = {one.kind for operation in OPERATIONS for one in operation.parameters if one.bare}
    assert kinds == {Kind.TEXT, Kind.INPUT}
