"""Backup, export and import on the command line."""

import json
from pathlib import Path

from .conftest import Cli


def test_memories_move_to_another_store(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    file, new = tmp_path / "all.jsonl", ("--store", f"sqlite:///{tmp_path / 'new.db'}")
    assert cli("export", "--out", str(file)).out == f"[MemoryMesh] Exported 1 memories to {file}\n"
    assert cli("export").out == file.read_text()
    assert cli("import", str(file), *new).out == "[MemoryMesh] Imported 1 memories, 0 stored already, 0 failed\n"
    assert cli("import", str(file), *new).out == "[MemoryMesh] Imported 0 memories, 1 stored already, 0 failed\n"
    assert cli("export", *new).out == file.read_text()


def test_a_bad_line_is_named_and_the_exit_code_is_1(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    (tmp_path / "all.jsonl").write_bytes(cli("export").out.encode() + b'{"id": "\xff"}\n{\n')
    said = cli("import", str(tmp_path / "all.jsonl"), "--store", f"sqlite:///{tmp_path / 'new.db'}")
    assert (said.code, said.out) == (1, "[MemoryMesh] Imported 1 memories, 0 stored already, 2 failed\n")
    assert "line 3: " in said.err
    assert "line 4: it is not JSON" in said.err


def test_a_file_that_cannot_be_read_is_named(cli: Cli) -> None:
    said = cli("import", "nowhere.jsonl")
    assert (said.code, "nowhere.jsonl cannot be read: No such file" in said.err) == (2, True)


def test_a_backup_names_its_file_and_refuses_to_replace_one(cli: Cli, tmp_path: Path) -> None:
    cli("store", "The lantern needs oil")
    assert json.loads(cli("backup", str(tmp_path / "copy.db"), "--json").out)["file"] == str(tmp_path / "copy.db")
    again = cli("backup", str(tmp_path / "copy.db"))
    assert (again.code, "exists" in again.err) == (2, True)


def test_a_user_is_forgotten_after_a_confirmation(cli: Cli) -> None:
    cli("store", "The lantern needs oil", "--user", "ana")
    refused = cli("forget", "--user", "ana")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert cli("list", "--user", "ana", "--jsonl").out
    said = cli("forget", "--user", "ana", "--verify", "--yes")
    assert (said.code, said.out) == (
        0,
        "[MemoryMesh] Forgot user ana: 1 memory erased\n"
        "Looked for 1 erased text in the files (1 were there before): 0 found now\n",
    )
    assert not cli("list", "--user", "ana", "--jsonl").out.strip()


def test_forgetting_needs_a_user(cli: Cli) -> None:
    said = cli("forget", "--yes")
    assert (said.code, "--user" in said.err) == (2, True)
