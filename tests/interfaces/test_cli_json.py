"""JSON on the command line: errors, lines, and fields that are null."""

import json

import pytest

from memory_mesh.interfaces.render.output import OUTCOMES, to_json
from memory_mesh.interfaces.verbs import COMMANDS, parameters

LISTS = [
    "list", "search key", "search key --for-model", "history {id}", "lessons", "heartbeat",
    "heartbeat --log", "audit log", "audit head", "audit verify", "doctor", "config show",
    "model check", "config trust --list", "token list", "hooks status", "review", "init --dry-run",
    "sync-skills", "notes list", "trace list",
]  # fmt: skip
OTHER_LISTS = {"search key --explain": "answers", "context key": "memories"}


@pytest.mark.parametrize("form", ["--json", "--jsonl"])
@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (["get", "mem_1_abcdef"], "NotFound", 4),
        (["search", "key", "--filter", "length(content) > 3"], "InvalidFilter", 2),
        (["store", "new", "--store", "mysql://bob:hunter2@host/db"], "InvalidInput", 2),
        (["list", "--bogus"], "InvalidInput", 2),
        (["frobnicate"], "InvalidInput", 2),
        (["list", "--store", "supabase://host/"], "SettingsError", 3),
        (["store", "a\0b\x1b[2J"], "InvalidInput", 2),
    ],
)
def test_an_error_is_one_json_object_on_standard_error(cli, form, words, kind, code):
    said = cli(*words, form)
    assert (said.code, said.out) == (code, "")
    error = json.loads(said.err)
    assert said.err.count("\n") == 1
    assert (error["error"], error["exit_code"]) == (kind, code)
    assert kind in {known.__name__ for known in OUTCOMES}
    line = "; ".join(
        [error["what"], *(f"expected {text}" for text in [error.get("expected")] if text)]
    )
    assert cli(*words).err.startswith(f"[MemoryMesh Error] {line}")
    assert "" not in error.values()
    assert "hunter2" not in said.err
    assert "\x1b" not in said.err


def test_a_flag_behind_two_dashes_is_a_word(cli):
    assert cli("get", "--", "--json").err.startswith("[MemoryMesh Error] no memory '--json'")


def test_a_warning_is_one_line_with_our_name_or_a_json_object(cli, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_MODEL_PATH", "/none")
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    said = cli("store", "The key rotates.")
    assert (said.code, said.err.count("\n")) == (0, 1)
    assert said.err.startswith("[MemoryMesh] stored without vectors")
    warned = cli("store", "Another key.", "--json")
    assert said.err.startswith(f"[MemoryMesh] {json.loads(warned.err)['warning'][:40]}")
    assert json.loads(warned.out)["pending"] is True


def test_files_that_failed_are_json_too(cli, tmp_path):
    (tmp_path / "broken.md").write_bytes(b"\xff")
    said = cli("ingest-dir", str(tmp_path), "--json")
    assert said.code == 1
    assert json.loads(said.err)["what"].startswith("broken.md: it is not UTF-8")
    assert json.loads(said.out)["failed"]


@pytest.mark.parametrize("words", [*LISTS, *OTHER_LISTS])
def test_json_lines_are_the_items_of_the_list(cli, words):
    id_ = cli("store", "The deploy key rotates.").id
    cli("store", "Another key.")
    typed = words.format(id=id_).split()
    cli(*typed)  # the first search sets `last_accessed`
    whole, lines = cli(*typed, "--json"), cli(*typed, "--jsonl")
    assert lines.code == whole.code
    items = [json.loads(line) for line in lines.out.splitlines()]
    expected = json.loads(whole.out)[OTHER_LISTS.get(words, "results")]
    assert [item.keys() for item in items][: len(expected)] == [item.keys() for item in expected]
    if words in ("list", "search key", "audit head"):
        assert len(items) == len(expected) > 0


def test_json_lines_of_one_answer_are_one_line_and_of_an_empty_list_none(cli):
    said = cli("store", "The key\nrotates.", "--jsonl")
    assert said.out.count("\n") == 1
    assert json.loads(said.out)["content"] == "The key\nrotates."
    assert cli("list", "--jsonl").out != ""
    assert cli("list", "--status", "archived", "--jsonl").out == ""


def test_one_form_at_a_time(cli):
    said = cli("list", "--json", "--jsonl")
    assert json.loads(said.err) == {
        "error": "InvalidInput", "what": "--json and --jsonl are both given",
        "expected": "one of them", "exit_code": 2,
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_both_forms(name):
    assert {"--json", "--jsonl"} <= {one.word for one in parameters(name)}


def test_null_fields_are_left_out_and_stored_nulls_stay(cli):
    id_ = cli("store", "x", "--metadata", '{"gone": null, "deep": [{"a": null}]}').id
    kept = json.loads(cli("get", id_, "--json").out)
    assert "category" not in kept
    assert kept["metadata"] == {"gone": None, "deep": [{"a": None}]}
    assert (
        to_json({"a": None, "b": [{"c": None, "d": 0}], "before": {"e": None}})
        == '{"b": [{"d": 0}], "before": {"e": null}}'
    )
