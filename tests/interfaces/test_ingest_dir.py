"""`ingest-dir` on the command line: output, exit codes, and a second run."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("The deploy key rotates on Mondays.")
    (folder / "b.md").write_text("Staging runs on the old cluster.")
    (folder / "sub" / "c.md").write_text("Ana prefers tea.")
    (folder / "d.txt").write_text("Dogs bark.")
    return folder


def memories(cli) -> dict[str, dict]:
    held = json.loads(cli("list", "--json").out)["results"]
    return {memory["metadata"]["source"]: memory for memory in held}


@pytest.mark.req("MESH-152", "MESH-163")
def test_each_file_becomes_a_memory_that_is_found_with_its_path(cli, notes):
    said = cli("ingest-dir", "notes")
    assert (said.code, said.err) == (0, "")
    assert (
        said.out
        == f"[MemoryMesh] Ingested {notes}: 2 added, 0 updated, 0 unchanged, 0 failed, 0 gone\n"
    )
    assert memories(cli).keys() == {"a.md", "b.md"}
    assert "Source: a.md\nThe deploy key rotates on Mondays." in cli("search", "deploy key").out


@pytest.mark.req("MESH-152")
def test_sub_folders_are_read_only_with_recursive(cli, notes):
    cli("ingest-dir", "notes")
    assert "sub/c.md" not in memories(cli)
    assert "1 added, 0 updated, 2 unchanged" in cli("ingest-dir", "notes", "--recursive").out
    assert memories(cli).keys() == {"a.md", "b.md", "sub/c.md"}


@pytest.mark.req("MESH-152")
@pytest.mark.parametrize("extension", [".txt", "txt"])
def test_another_extension_is_taken_with_its_dot_or_without(cli, notes, extension):
    assert cli("ingest-dir", "notes", "--extension", extension).code == 0
    assert memories(cli).keys() == {"d.txt"}


def test_several_extensions_can_be_given(cli, notes):
    cli("ingest-dir", str(notes), "--extension", "md", "--extension", "txt")
    assert memories(cli).keys() == {"a.md", "b.md", "d.txt"}


@pytest.mark.req("MESH-152")
def test_the_type_is_that_of_the_flag(cli, notes):
    cli("ingest-dir", "notes", "--type", "agent", "--agent", "planner")
    held = json.loads(cli("list", "--json", "--agent", "planner").out)["results"]
    assert {(memory["memory_type"], memory["agent_id"]) for memory in held} == {
        ("agent", "planner")
    }


def test_a_second_run_takes_up_what_changed_and_names_what_is_gone(cli, notes):
    cli("ingest-dir", "notes")
    id_ = memories(cli)["b.md"]["id"]
    (notes / "a.md").write_text("The deploy key rotates on Fridays.")
    (notes / "b.md").unlink()
    said = cli("ingest-dir", str(notes))
    assert said.code == 0
    assert said.out.splitlines() == [
        f"[MemoryMesh] Ingested {notes}: 0 added, 1 updated, 0 unchanged, 0 failed, 1 gone",
        f"Gone: b.md; its memory stays until `memory-mesh forget {id_}`",
    ]
    assert memories(cli)["a.md"]["revision"] == 2
    assert cli("delete", "--id", id_).code == 0
    assert cli("ingest-dir", "notes").out.endswith(
        "0 added, 0 updated, 1 unchanged, 0 failed, 0 gone\n"
    )


@pytest.mark.req("MESH-164")
def test_files_that_fail_are_named_on_standard_error_and_the_exit_code_tells(cli, notes):
    (notes / "bad.md").write_bytes(b"\xff\xfe\x00")
    (notes / "broken.md").symlink_to("nothing.md")
    (notes / "empty.md").write_text("")
    (notes / "odd\x1b[31m\nname.md").write_bytes(b"\xff")
    said = cli("ingest-dir", "notes")
    assert said.code == 1
    assert said.out.startswith(
        f"[MemoryMesh] Ingested {notes}: 2 added, 0 updated, 0 unchanged, 4 failed, 0 gone\n"
    )
    assert said.err.splitlines() == [
        "[MemoryMesh Error] bad.md: it is not UTF-8 text (byte 1)",
        "[MemoryMesh Error] broken.md: it is a broken link: No such file or directory",
        "[MemoryMesh Error] empty.md: content is blank; expected some text",
        r"[MemoryMesh Error] odd\x1b[31m name.md: it is not UTF-8 text (byte 1)",
    ]
    assert memories(cli).keys() == {"a.md", "b.md"}


def test_json_says_the_same_to_programs(cli, notes):
    (notes / "bad.md").write_bytes(b"\xff")
    cli("ingest-dir", "notes")
    id_ = memories(cli)["b.md"]["id"]
    (notes / "b.md").unlink()
    said = cli("ingest-dir", "notes", "--json")
    assert said.code == 1
    assert json.loads(said.out) == {
        "root": str(notes),
        "added": 0,
        "updated": 0,
        "unchanged": 1,
        "failed": [{"source": "bad.md", "reason": "it is not UTF-8 text (byte 1)"}],
        "gone": [{"source": "b.md", "id": id_}],
    }


def test_many_that_are_gone_are_not_all_listed(cli, notes):
    for n in range(25):
        (notes / f"old{n:02}.md").write_text(f"Old {n}")
    cli("ingest-dir", "notes")
    for n in range(25):
        (notes / f"old{n:02}.md").unlink()
    lines = cli("ingest-dir", "notes").out.splitlines()
    assert len(lines) == 22
    assert lines[-1] == "… and 5 more; --json lists them all"


def test_a_run_without_matching_files_names_the_flags_to_use(cli, notes):
    said = cli("ingest-dir", "notes", "--extension", "rst")
    assert said.code == 0
    assert (
        said.out.splitlines()[1]
        == "No file here ends with rst; use --extension for others, --recursive for sub-folders."
    )
    assert "--recursive" not in cli("ingest-dir", "notes", "--extension", "rst", "--recursive").out


def test_a_pipe_hears_how_far_it_has_come_and_a_terminal_sees_a_bar(cli, notes):
    for n in range(100):
        (notes / f"n{n}.md").write_text(f"Note {n}")
    said = cli("ingest-dir", "notes")
    assert said.err == "[MemoryMesh] 64 of 102 files\n"
    assert said.out.count("\n") == 1
    (notes / "new.md").write_text("New.")
    drawn = cli("ingest-dir", "notes", terminal=True)
    assert "103/103" in drawn.err
    assert "1 added" in drawn.out


@pytest.mark.req("MESH-164")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "PATH is missing"),
        (
            ["nowhere"],
            "the folder 'nowhere' cannot be read: No such file or directory; expected a folder",
        ),
        (["notes/a.md"], "'notes/a.md' is a file; expected a folder"),
        (["notes", "--extension", ""], "extension is ''; expected a file extension, such as .md"),
        (
            ["notes", "--type", "session"],
            "a memory of type 'session' has no session_id; give metadata.session_id",
        ),
        (["notes", "more"], "unexpected word 'more'"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_nothing_is_stored(cli, notes, words, told):
    said = cli("ingest-dir", *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("[MemoryMesh Error] ")
    assert told in said.err
    assert said.err.count("\n") == 1
    assert memories(cli) == {}


@pytest.mark.req("MESH-149")
def test_json_in_place_of_the_folder_is_refused(cli, notes):
    said = cli("ingest-dir", '{"path": "notes"}')
    assert said.code == 2
    assert "JSON is given instead of flags" in said.err
