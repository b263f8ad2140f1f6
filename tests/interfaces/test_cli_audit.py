"""`memory-mesh audit`: the chains on the command line."""

import errno
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memory_mesh.core.audit import Broken, Sound, chain_name, parse_many
from memory_mesh.core.errors import InvalidInput, StoreCorrupt
from memory_mesh.interfaces import values
from memory_mesh.interfaces.render import records
from memory_mesh.interfaces.values import Call
from memory_mesh.interfaces.verbs import COMMANDS

Cli = Callable[..., Any]
VERIFY = Call(operation=COMMANDS["audit verify"][0])
EXPORT = COMMANDS["audit export"][0]


@pytest.fixture
def filled(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Two memories of ann, one of bob, two searches of ann. Commands read as ann."""
    monkeypatch.setenv("MEMORY_MESH_AGENT_ID", "ann")
    for agent, content in (
        ("ann", "Tea is at four."),
        ("ann", "Coffee is at ten."),
        ("bob", "Water is always there."),
    ):
        assert cli("store", "--content", content, "--agent", agent).code == 0
    for query in ("tea", "mail eve@example.com"):
        assert cli("search", query, "--agent", "ann").code == 0
    return cli


def tamper(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "memory.db")) as connection, connection:
        assert connection.execute(statement).rowcount == 1


# --- verify and head ---


@pytest.mark.req("MESH-042")
def test_whole_chains_are_sound_and_a_break_is_named_with_exit_1(filled: Cli, home: Path) -> None:
    said = filled("audit", "verify")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "[MemoryMesh] 3 chains sound"
    assert [line.split("  ")[:2] for line in lines[1:]] == [
        ["sound", "main of agent ann"], ["sound", "main of agent bob"],
        ["sound", "recalls of agent ann"], ["Signatures: checked"],
    ]  # fmt: skip
    tamper(
        home,
        "UPDATE yamo_blocks SET yamo_text = replace(yamo_text, 'tea', 'gin') WHERE yamo_text LIKE "
        "'%query;tea;%'",
    )
    said = filled("audit", "verify")
    assert said.code == 1
    assert said.out.startswith("[MemoryMesh] 1 broken, 2 sound\n")
    assert "BROKEN  recalls of agent ann  block 1 (yamo_recall_" in said.out
    assert said.out.splitlines()[3].endswith("its text does not match its hash")
    assert said.out.splitlines()[4:] == ["Signatures: checked"]


@pytest.mark.req("MESH-042")
def test_verify_as_json_says_the_same(filled: Cli, home: Path) -> None:
    told = json.loads(filled("audit", "verify", "--json", "--chain", "main").out)
    assert told["ok"] is True
    assert [(found["agent_id"], found["kind"], found["number"]) for found in told["results"]] == [
        ("ann", "main", 2),
        ("bob", "main", 1),
    ]
    tamper(
        home,
        "DELETE FROM yamo_blocks WHERE agent_id = 'ann' AND number = 1 AND operation_type "
        "= 'retain'",
    )
    said = filled("audit", "verify", "--json", "--agent", "ann", "--chain", "main")
    (found,) = json.loads(said.out)["results"]
    assert (said.code, found["ok"], found["number"]) == (1, False, 1)
    assert "is missing" in found["reason"]
    assert filled("audit", "verify", "--agent", "bob").code == 0


@pytest.mark.req("MESH-042")
def test_a_head_that_was_noted_is_taken_as_it_was_printed(filled: Cli, home: Path) -> None:
    heads = [line.split()[0] for line in filled("audit", "head").out.splitlines()[1:]]
    assert len(heads) == 3
    assert filled("store", "--content", "Milk is at six.", "--agent", "ann").code == 0
    assert [filled("audit", "verify", "--head", head).code for head in heads] == [0, 0, 0]
    # The end is cut off together with the head: only the noted one tells.
    tamper(home, "DELETE FROM yamo_blocks WHERE agent_id = 'bob'")
    tamper(home, "DELETE FROM records WHERE kind = 'head' AND id LIKE '%bob%'")
    assert filled("audit", "verify").code == 0
    said = filled("audit", "verify", "--head", heads[1])
    assert said.code == 1
    assert "no chain has the noted block" in said.out


@pytest.mark.parametrize(
    "head", ["", "7", "x:y", "1:abc", f"-1:{'0' * 64}", f"0:{'0' * 64}", f"1:{'g' * 64}"]
)
def test_a_head_in_another_form_is_not_understood(cli: Cli, head: str) -> None:
    said = cli("audit", "verify", "--head", head)
    assert said.code == 2
    assert "NUMBER:SEAL" in said.err


def test_where_nothing_was_written_there_are_no_chains(cli: Cli) -> None:
    for command in ("verify", "head"):
        said = cli("audit", command)
        assert (said.code, said.out) == (0, "[MemoryMesh] There are no chains yet\n")
    assert cli("audit", "log").out == "[MemoryMesh] 0 blocks\n"
    assert cli("audit", "export").out == ""


def test_a_terminal_gets_marks_and_no_stored_word_can_drive_it(cli: Cli) -> None:
    cli("store", "--content", "x", "--agent", "a\x1b[2Jb")
    said = cli("audit", "verify", terminal=True)
    assert "✓" in said.out
    assert "\x1b[2J" not in said.out
    for command in ("head", "log", "export"):
        assert "\x1b[2J" not in cli("audit", command, terminal=True).out


# --- log ---


def test_the_log_is_newest_first_and_tells_what_each_block_is_about(filled: Cli) -> None:
    lines = filled("audit", "log").out.splitlines()
    assert lines[0] == "[MemoryMesh] 5 blocks"
    assert lines[1].split() == ["time", "chain", "block", "operation", "agent", "about"]
    assert "recall" in lines[2]
    assert "[EMAIL]" in lines[2]
    assert "add mem_" in lines[6]
    assert lines[6].endswith("Tea is at four.")
    assert "example.com" not in "".join(lines)


@pytest.mark.parametrize(
    ("flags", "count"),
    [(["--limit", "2"], 2), (["--operation", "recall"], 2), (["--operation", "lesson"], 0),
     (["--chain", "main"], 3), (["--chain", "recalls"], 2), (["--agent", "bob"], 1)],
)  # fmt: skip
def test_the_log_is_of_what_is_asked_for(filled: Cli, flags: list[str], count: int) -> None:
    assert json.loads(filled("audit", "log", "--json", *flags).out)["count"] == count


def test_the_log_on_a_terminal_is_a_table(filled: Cli) -> None:
    assert "about" in filled("audit", "log", terminal=True).out


def test_an_erased_block_and_its_erasure_are_told_of(cli: Cli) -> None:
    id_ = cli("store", "--content", "A secret of ours.").id
    cli("delete", "--id", id_)
    out = cli("audit", "log").out
    assert f"erase {id_}" in out
    assert f"{id_} (its text is erased)" in out
    assert "secret" not in out


@pytest.mark.parametrize(
    "flags", [["--operation", "delete"], ["--chain", "side"], ["--limit", "0"], ["--limit", "x"]]
)
def test_a_log_of_what_there_cannot_be_is_not_understood(cli: Cli, flags: list[str]) -> None:
    assert cli("audit", "log", *flags).code == 2


# --- export ---


@pytest.mark.req("MESH-037")
def test_an_export_can_be_verified_without_the_store(
    filled: Cli, home: Path, tmp_path: Path
) -> None:
    said = filled("audit", "export", "--out", "trail.jsonl")
    assert (said.code, said.out) == (0, "[MemoryMesh] Exported 5 blocks to trail.jsonl\n")
    assert filled("audit", "export").out == (tmp_path / "trail.jsonl").read_text(encoding="utf-8")
    sound = filled("audit", "verify").out
    (home / "memory.db").rename(home / "elsewhere.db")
    no_head = sound.replace(
        "Signatures: checked", "Signatures: not checked: an export has no heads"
    )
    assert filled("audit", "verify", "--file", "trail.jsonl").out == no_head
    text = (tmp_path / "trail.jsonl").read_text(encoding="utf-8")
    (tmp_path / "forged.jsonl").write_text(
        text.replace("Tea is at four", "Gin is at four"), encoding="utf-8"
    )
    assert filled("audit", "verify", "--file", "forged.jsonl").code == 1


def test_an_export_in_the_wire_format_is_nothing_but_blocks(filled: Cli) -> None:
    said = filled("audit", "export", "--format", "wire", "--chain", "recalls")
    assert [block.intent for block in parse_many(said.out)] == ["recall_relevant_memories"] * 2


def test_an_export_takes_no_other_files_place_and_is_its_owners_alone(
    filled: Cli, tmp_path: Path
) -> None:
    assert filled("audit", "export", "--out", "trail.jsonl").code == 0
    assert (tmp_path / "trail.jsonl").stat().st_mode & 0o077 == 0
    said = filled("audit", "export", "--out", "trail.jsonl")
    assert said.code == 2
    assert "does not exist yet" in said.err
    assert filled("audit", "export", "--out", "no/such/folder").code == 2
    assert filled("audit", "export", "--format", "xml").code == 2


def test_half_an_export_is_taken_away(tmp_path: Path) -> None:
    def pieces() -> object:
        yield "one\n"
        raise StoreCorrupt("the file is damaged")

    with pytest.raises(StoreCorrupt):
        records.exported(
            pieces(), Call(operation=EXPORT, options={"out": str(tmp_path / "trail.jsonl")})
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"agent: x;\n"])
def test_a_file_that_is_no_export_is_not_understood(
    cli: Cli, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "odd").write_bytes(content)
    assert cli("audit", "verify", "--file", "odd").code == 2


def test_a_mark_before_the_first_line_is_no_break(filled: Cli, tmp_path: Path) -> None:
    said = filled("audit", "export").out
    (tmp_path / "marked").write_text(said, encoding="utf-8-sig")
    assert filled("audit", "verify", "--file", "marked").code == 0


@pytest.mark.parametrize(("reason", "code"), [(errno.EPIPE, 141), (errno.ENOSPC, 2)])
def test_an_export_that_cannot_be_printed_is_an_error(
    tmp_path: Path, reason: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)

        def pieces() -> object:
            yield "one\n"
            raise OSError(reason, "no room")

        if reason == errno.EPIPE:
            assert records.exported(pieces(), Call(operation=EXPORT)).code == code
        else:
            with pytest.raises(InvalidInput, match="the export cannot be written"):
                records.exported(pieces(), Call(operation=EXPORT))


# --- parts ---


def test_verdicts_of_one_chain_are_said_in_the_singular() -> None:
    chain = chain_name("u", "ann", recalls=True)
    assert records.verdicts([Sound(chain, 0, None)], VERIFY).text == (
        "[MemoryMesh] 1 chain sound\nsound  recalls of agent ann of user u  0:no block\n"
        "Signatures: not checked: the chain is not signed"
    )
    broken = records.verdicts([Broken("", 7, None, "no chain has it")], VERIFY)
    assert (broken.code, broken.text.splitlines()[1]) == (
        1,
        "BROKEN  any chain  block 7: no chain has it",
    )


def test_a_head_is_read_as_it_is_printed() -> None:
    head = next(one for one in VERIFY.operation.parameters if one.name == "head")
    assert values.read(head, f" 12:{'A' * 64}\n") == (12, "a" * 64)
    with pytest.raises(InvalidInput):
        values.read(head, "12")


# --- scope ---


def test_the_log_withholds_the_texts_of_other_agents_and_an_auditor_is_recorded(
    filled: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        filled("store", "--content", "The safe is 7-7-7.", "--type", "agent", "--agent", "ann").code
        == 0
    )
    own = filled("audit", "log").out
    assert "The safe is" in own
    assert " found: tea" in own
    monkeypatch.setenv("MEMORY_MESH_AGENT_ID", "bob")
    for command in (["log"], ["log", "--json"], ["export"]):
        said = filled("audit", *command)
        assert said.code == 0
        assert "The safe is" not in said.out
        assert "tea" not in said.out
        assert "withheld" in said.out
        assert "Water is always there." in said.out  # shared by all agents
        assert "The safe is" in filled("audit", *command, "--auditor", "Eve Miller").out
    assert filled("audit", "log").out.count("audit_read Eve Miller") == 3
    assert filled("audit", "verify").code == 0


def test_an_auditor_without_a_name_is_refused_and_leaves_nothing(filled: Cli) -> None:
    for command in ("log", "export"):
        said = filled("audit", command, "--auditor", " ")
        assert (said.code, said.out) == (2, "")
        assert "the name of a person" in said.err
    assert "audit_read" not in filled("audit", "log").out


# --- signatures and anchors ---


def test_without_the_key_verify_says_so_and_exits_with_0(filled: Cli, home: Path) -> None:
    assert filled("audit", "verify").out.endswith("Signatures: checked\n")
    (home / "audit.key").unlink()
    said = filled("audit", "verify")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(
        f"Signatures: not checked: there is no key file {home / 'audit.key'}\n"
    )
    chains = json.loads(filled("audit", "verify", "--json").out)["results"]
    assert [one["signature_checked"] for one in chains] == [False] * 3
    said = filled("doctor")
    assert said.code == 1
    assert "audit.key lacks the key" in said.out


def test_a_head_without_its_signature_exits_with_1(filled: Cli, home: Path) -> None:
    tamper(
        home,
        "UPDATE records SET extra = json_remove(extra, '$.signature') WHERE kind = 'head' AND id "
        "LIKE '%chain%bob%'",
    )
    said = filled("audit", "verify")
    assert said.code == 1
    assert "BROKEN  main of agent bob     block 1: written without the key" in said.out
    assert filled("doctor").code == 1


def test_a_key_file_that_others_can_read_refuses_a_write_in_one_line(
    filled: Cli, home: Path
) -> None:
    (home / "audit.key").chmod(0o644)
    said = filled("store", "--content", "Milk is at six.")
    assert (said.code, said.out) == (3, "")
    assert "chmod 600" in said.err
    assert len(said.err.splitlines()) == 1
    assert "Milk" not in filled("list").out
    assert "chmod 600" in filled("audit", "verify").out
    assert filled("doctor").code == 1


def test_a_new_key_is_told_and_verified(filled: Cli, home: Path) -> None:
    said = filled("audit", "rekey")
    keys = (home / "audit.key").read_text().split()
    assert (said.code, len(keys)) == (0, 2)
    assert said.out.startswith("[MemoryMesh] 3 chains signed with the new key ")
    assert keys[-1] not in said.out
    said = filled("audit", "verify")
    assert said.code == 0
    assert "Signature of main of agent bob: checked, from block 2 on" in said.out
    assert filled("audit", "log").out.count("rekey from ") == 3


def test_an_anchor_finds_what_was_cut_off_with_its_head(filled: Cli, home: Path) -> None:
    copy = (home / "memory.db").read_bytes()
    assert filled("store", "--content", "Milk is at six.").code == 0
    said = filled("audit", "anchor", "--to", "anchors")
    assert said.code == 0
    assert said.out.startswith("[MemoryMesh] 3 chains anchored at ")
    assert filled("audit", "verify", "--anchor", "anchors").code == 0
    (home / "memory.db").write_bytes(copy)
    assert filled("audit", "verify").code == 0
    said = filled("audit", "verify", "--anchor", "anchors")
    assert said.code == 1
    assert "an older copy of the store was put back" in said.out
    assert filled("audit", "verify", "--anchor", "none").code == 2
