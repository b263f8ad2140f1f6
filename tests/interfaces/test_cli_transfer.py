"""Backup, export and import on the command line."""

import json
from pathlib import Path

import pytest

from memory_mesh.core.model import Forgotten
from memory_mesh.flows.upkeep import forget

from .conftest import Cli


def test_memories_move_to_another_store(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    file, new = tmp_path / "all.jsonl", ("--store", f"sqlite:///{tmp_path / 'new.db'}")
    assert cli("export", "--out", str(file)).out == f"[MemoryMesh] Exported 1 memories to {file}\n"
    assert cli("export").out == file.read_text()
    assert (
        cli("import", str(file), *new).out
        == "[MemoryMesh] Imported 1 memory (format memories), 0 failed\n"
    )
    assert (
        cli("import", str(file), *new).out
        == "[MemoryMesh] Imported 0 memories (format memories), 1 stored already, 0 failed\n"
    )
    assert cli("export", *new).out == file.read_text()


def test_a_bad_line_is_named_and_the_exit_code_is_1(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    (tmp_path / "all.jsonl").write_bytes(cli("export").out.encode() + b'{"id": "\xff"}\n{\n')
    said = cli("import", str(tmp_path / "all.jsonl"), "--store", f"sqlite:///{tmp_path / 'new.db'}")
    assert (said.code, said.out) == (
        1,
        "[MemoryMesh] Imported 1 memory (format memories), 2 failed\n",
    )
    assert "line 3: " in said.err
    assert "line 4: it is not JSON" in said.err


def test_a_file_that_cannot_be_read_is_named(cli: Cli) -> None:
    said = cli("import", "nowhere.jsonl")
    assert (said.code, "nowhere.jsonl cannot be read: No such file" in said.err) == (2, True)


def test_a_backup_names_its_file_and_refuses_to_replace_one(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    assert json.loads(cli("backup", str(tmp_path / "copy.db"), "--json").out)["file"] == str(
        tmp_path / "copy.db"
    )
    again = cli("backup", str(tmp_path / "copy.db"))
    assert (again.code, "exists" in again.err) == (2, True)


def test_a_user_is_forgotten_after_a_confirmation(cli: Cli) -> None:
    cli("store", "The lantern needs oil", "--user", "ana")
    refused = cli("forget", "--user", "ana")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert cli("list", "--user", "ana", "--jsonl").out
    said = cli("forget", "--user", "ana", "--verify", "--yes")
    first, looked, *places, last = said.out.splitlines()
    assert (said.code, first) == (0, "[MemoryMesh] Forgot user ana: 1 memory erased")
    assert looked == f"Looked for 1 text in {len(places)} places:"
    assert places[0].split() == ["memories", "and", "skills", "1", "before,", "0", "after"]
    assert all(place.endswith(" 0 after") for place in places)
    assert last == "Nothing is left."
    assert not cli("list", "--user", "ana", "--jsonl").out.strip()


def test_a_deletion_is_proved_and_the_proof_fails_if_something_is_left(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (
        json.loads(cli("store", f"The lantern {n} needs oil", "--json").out)["id"] for n in range(2)
    )
    said = cli("delete", first, "--verify", "--json")
    check = json.loads(said.out)["check"]
    assert (said.code, check["found"]) == (0, [])
    assert check["places"][0] == {"name": "memories and skills", "before": 1, "after": 0}
    monkeypatch.setattr(forget, "delete", lambda *_, **__: Forgotten(memories=(second,)))
    said = cli("delete", second, "--verify")
    assert said.code == 1
    assert f"Found: {second} in search by words and vectors" in said.out
    assert said.out.endswith("Something is left.\n")


@pytest.mark.parametrize("words", [["--yes"], ["--verify", "--files", "--yes"], []])
def test_forgetting_needs_a_memory_or_a_scope(cli: Cli, words: list[str]) -> None:
    said = cli("forget", *words)
    assert said.code == 2
    assert "forget has nothing to erase; expected one of ID, --key KEY, --user NAME" in said.err


def test_a_memory_is_forgotten_by_id_or_key_without_a_question(cli: Cli) -> None:
    id_ = json.loads(cli("store", "The lantern needs oil", "--json").out)["id"]
    cli("store", "The umbrella stand", "--key", "stand")
    said = cli("forget", id_)
    assert (said.code, said.out) == (0, f"[MemoryMesh] Deleted record {id_}\n")
    said = cli("forget", id_)
    assert (said.code, f"no memory '{id_}'" in said.err) == (4, True)
    assert cli("forget", "--key", "stand", "--verify").out.endswith("Nothing is left.\n")
    assert not cli("list", "--jsonl").out.strip()


def test_with_an_id_the_flags_of_a_scope_say_whose_memory_it_is(cli: Cli) -> None:
    own = ["--agent", "planner", "--user", "ana", "--session", "s1", "--project", "p"]
    words = ["The lantern needs oil", "--type", "agent", *own, "--json"]
    id_ = json.loads(cli("store", *words).out)["id"]
    assert cli("forget", id_, "--user", "ana", "--agent", "writer").code == 4
    said = cli("forget", id_, "--type", "agent", *own)
    assert (said.code, "id and memory_type are given together" in said.err) == (2, True)
    assert cli("forget", id_, *own).out == f"[MemoryMesh] Deleted record {id_}\n"


def test_a_scope_is_forgotten_after_a_confirmation(cli: Cli) -> None:
    for agent in ("planner", "writer"):
        cli("store", f"The lantern of the {agent}", "--user", "ana", "--agent", agent)
    refused = cli("forget", "--user", "ana", "--agent", "planner")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    said = cli("forget", "--user", "ana", "--agent", "planner", "--yes")
    assert said.out == "[MemoryMesh] Forgot user ana, agent planner: 1 memory erased\n"
    assert "of the writer" in cli("list", "--user", "ana").out


def test_a_whole_store_is_copied_exported_and_restored(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    cli("store", "Ana likes tea", "--user", "ana")
    assert cli("backup", str(tmp_path / "copy.db")).code == 0
    target = f"json:///{tmp_path / 'folder'}"
    said = cli("copy", "--from", str(tmp_path / "copy.db"), "--to", target)
    first = (
        "[MemoryMesh] Copied 7 rows, 7 of them now, and verified them: 2 memory, 2 block, 2 "
        "head, 1 meta"
    )
    assert (said.code, said.out.splitlines()[0]) == (0, first)
    assert "2 audit chains verified" in said.out
    file = tmp_path / "all.jsonl"
    assert (
        cli("export", "--all", "--out", str(file), "--store", target).out
        == f"[MemoryMesh] Exported 7 rows to {file}\n"
    )
    assert cli("export", "--all").out == file.read_text()
    new = ("--store", f"sqlite:///{tmp_path / 'new.db'}")
    for command in ("restore", "import"):
        assert json.loads(cli(command, str(file), *new, "--json").out)[
            "skipped" if command == "import" else "written"
        ] in (
            7,
            {"stored already": 7},
        )
    assert cli("export", "--all", *new).out == file.read_text()
    again = cli("restore", str(tmp_path / "copy.db"))
    assert (again.code, "is not empty" in again.err, "Traceback" in again.err) == (2, True, False)


def test_an_import_names_the_format_and_what_was_skipped_and_failed(
    cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text('[{"id": "1", "memory": "Tea"}, {"id": "1", "memory": "Tea"}, {"id": "2"}]')
    said = cli("import", str(file))
    assert (said.code, said.out) == (
        1,
        "[MemoryMesh] Imported 1 memory (format mem0), 1 twice in the file, 1 failed\n",
    )
    assert "item 3: memory is None" in said.err
    wrong = cli("import", str(file), "--format", "mcp")
    assert (wrong.code, "has the format mem0, not 'mcp'" in wrong.err) == (2, True)


def test_a_damaged_store_is_repaired_into_a_new_one(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for text in ("The lantern needs oil", "The wick is trimmed"):
        cli("store", text, "--store", f"json:///{folder}")
    sound = cli("doctor", "--repair", "--store", f"json:///{folder}")
    assert (sound.code, "nothing was done" in sound.out) == (0, True)
    lines = (folder / "memories.json").read_text().splitlines()
    (folder / "memories.json").write_text("\n".join([*lines[:-2], lines[-2][:20]]))
    said = cli("doctor", "--repair", "--store", f"json:///{folder}", "--to", str(tmp_path / "new"))
    assert said.code == 1
    assert f"into {tmp_path / 'new'}" in said.out
    assert "Lost, as far as is known: 1 memory\n" in said.out
    assert "a row of memories.json cannot be read" in said.err
    assert cli("search", "lantern", "--store", f"json:///{tmp_path / 'new'}", "--json").code == 0
