"""Every method of the mesh has a command, every command has JSON output, and its examples run."""

import io
import json
import re
import shlex
import shutil
import sys
from dataclasses import fields
from datetime import UTC, datetime
from functools import wraps
from inspect import getmembers, isfunction
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.model import Change, Extraction, MemoryRecord, SearchResult
from memory_mesh.interfaces.operation import Kind
from memory_mesh.interfaces.verbs import COMMANDS, GROUPS, parameters
from stores.v1_tables import make

from .conftest import SKILL, archived, contested, learnt

# Each with the reason why no command reaches it.
UNREACHED = {
    "import_memories": "reads standard input",
    "init": "every command opens the mesh by `with`",
    "close": "and closes it so",
    "scoped": "the flags of the target choose the scope",
    "ingest": "another name for add",
    "add_many": "the shell stores one memory at a time, or a folder by ingest-dir",
    "clear_cache": "a command's cache ends with it",
    "get_cache_stats": "and is empty when it begins",
    "delete": (
        "`erase` is `delete` with the proof, which tells the command whether the id was known"
    ),
    "get_memories_by_pattern": "`lessons` tells them with their rules",
    "get_skill": "`get` shows skills too",
}
ID = "mem_1760000000000_3fa9c2"
RULE = {
    "situation": "The login worked without a password.", "error_pattern": "auth_fallback",
    "oversight": "It was not tested.", "fix": "A test.",
    "preventative_rule": "Test every fallback.", "severity": "high", "applicable_scope": "logins",
    "inverse_lesson": "One way to log in.",
}  # fmt: skip
LESSON = shlex.split(
    "--pattern p --rule r --situation s --oversight o --fix f --severity low --scope all"
)


class Keyboard(io.StringIO):
    """Someone at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The methods of the mesh that interfaces call, while the real ones do their work."""
    called: set[str] = set()
    for name in public(Mesh):
        monkeypatch.setattr(Mesh, name, recording(getattr(Mesh, name), called))
    return called


def public(face: type) -> set[str]:
    return {name for name, _ in getmembers(face, isfunction) if not name.startswith("_")}


def recording(method, called):
    @wraps(method)
    def recorded(self, *args, **options):
        if "interfaces" in Path(sys._getframe(1).f_code.co_filename).parts:
            called.add(method.__name__)
        return method(self, *args, **options)

    return recorded


def test_every_method_of_the_mesh_is_reached_by_a_command(cli, reached):
    id_ = cli("store", "--content", "The key rotates.").id
    for words in (
        ["get"],
        ["history"],
        ["history", "--sightings"],
        ["pin"],
        ["update", "--content", "anew"],
        ["delete"],
    ):
        assert cli(*words, "--id", id_).code == 0
    cli("store", "--content", "The key rotates.")
    skill_id, lesson_id = learnt(cli)
    older, newer = (cli("store", text).id for text in ("Ana lives in Rome.", "Ana moved to Bari."))
    Path("notes").mkdir()
    assert cli("ingest-dir", "notes").code == 0
    for words in (
        ["search", "key"],
        ["search", "key", "--explain"],
        ["search", "key", "--for-model"],
        ["extract", "--content", "Ana likes tea."],
        ["model", "check"],
        ["changes"],
        ["changes", "--confirm", newer, older],
        ["changes", "--undo", newer, older],
        ["users"],
        ["lessons"],
        ["distill"],
        ["distill", *LESSON],
        ["reflect"],
        ["synthesize"],
        [
            "heritage",
            "--id",
            cli("store", "The key is new.", "--session", "s1").id,
            "--intent",
            "ship it",
        ],
        ["end-session", "s1"],
        ["skill-feedback", "--id", skill_id, "--success", "true"],
        ["search-skills", "deploy"],
        ["list-skills"],
        ["skill-prune"],
        ["lesson-to-skill", lesson_id],
        ["sync-skills"],
        ["heartbeat"],
        ["heartbeat", "--log"],
        ["audit", "verify"],
        ["audit", "head"],
        ["audit", "log"],
        ["audit", "export"],
        ["audit", "anchor", "--to", "anchors"],
        ["audit", "rekey"],
        ["hooks", "status"],
        ["hooks", "retry"],
        ["reembed"],
        ["list"],
        ["stats"],
        ["eval"],
        ["export", "--out", "memories.jsonl"],
        ["import", "memories.jsonl"],
        ["export", "--all", "--out", "all.jsonl"],
        ["backup", "copy.db"],
        ["restore", "copy.db", "--store", "new.db"],
        ["forget", "--user", "ana", "--yes"],
        ["compact"],
        ["delete-all", "--agent", "YAMO_AGENT", "--yes"],
    ):
        assert cli(*words).code == 0
    assert {"add", "erase"} <= reached
    assert public(Mesh) - reached == set(UNREACHED)


def reviewed(cli, line, id_):
    """Return an example with ids of memories that can be reviewed, and the id that stands for
    the sample."""
    if line.startswith(("review", "conflicts")):
        id_, conflict = contested(f"{len(line)}00")
        line = line.replace("conflict_1760000000000_3fa9c2", conflict)
    if line.startswith("review --undo"):
        cli("review", "--activate", id_)
    if line.startswith("restore"):
        cli("backup", "memory-2026-01-31.db")
        cli("export", "--all", "--out", "all.jsonl")
    if line.startswith("unarchive"):
        id_ = archived()
    if "mem_1750000000000_81b7e0" in line:  # the older of two memories
        line = line.replace("mem_1750000000000_81b7e0", id_)
        id_ = cli("store", "The deploy key rotates on Fridays.").id
    if "trace-1760000000000-3fa9c2" in line:
        made = json.loads(
            cli("trace", "record", "--goal", "Ship", "--decision", "Use tar", "--json").out
        )
        line = line.replace("trace-1760000000000-3fa9c2", made["trace_id"])
    if "--summarize" in line:
        line = line.replace(
            "episode_1760000000000_3fa9c2",
            json.loads(cli("episodes", "--json").out)["results"][0]["id"],
        )
    return line.replace("--known-at 2026-01-31", f"--known-at {datetime.now(UTC).isoformat()}"), id_


@pytest.mark.parametrize(
    "name",
    sorted(
        COMMANDS.keys()
        - {
            "model status",
            "model fetch",
            "migrate",
            "notes watch",
            "mcp",
            "serve",
            "console",
            "host status",
            "token revoke",
        }
        - {"postgres prepare", "postgres grant", "postgres distribute"}
    ),
)  # they need a model, old tables, a token, a server or a process, or do not end
def test_the_examples_in_the_help_run(cli, monkeypatch, name):
    examples = COMMANDS[name][0].examples
    assert examples
    scope = ["--agent", "planner", "--session", "s42"]
    Path("notes").mkdir()
    for file in (Path("packages/api/AGENTS.md"), Path("docs/conventions.md")):
        file.parent.mkdir(parents=True)
        file.write_text("Use pnpm.")
    Path("Makefile").write_text("test:\n\t@echo ok\n")
    chat = {"mapping": {"1": {"message": None, "parent": None}}, "current_node": "1", "id": "c1"}
    Path("conversations.json").write_text(json.dumps([chat]))
    for line in examples:
        id_ = cli("store", "--content", "The deploy key rotates.", *scope).id
        cli("store", "--content", "The deploy key rotates.", "--store", "sqlite:///memory.db")
        head = cli("audit", "head", "--agent", "planner").out.splitlines()[1].split()[0]
        cli("store", "Ana is on holiday.", "--key", "ana/status")
        skill_id, lesson_id = learnt(cli)
        if "--file" in line:
            cli("audit", "export", "--out", "trail.jsonl")
        if "--messages" in line:
            Path("chat.jsonl").write_text('{"role": "user", "content": "Hello"}')
        if "trust" in line:
            Path("memory-mesh.toml").touch()
        if "untrust" in line:
            cli("config", "trust", ".")
        if line.startswith("import"):
            Path("mem0.json").write_text(
                '{"results": [{"id": "1", "memory": "Ana likes tea", "user_id": "ana"}]}'
            )
            Path("memories.jsonl").write_text(cli("export", "--user", "ana").out)
            with MemoryMesh("memory://", agent_id="bob") as other:
                Path("lessons.yamo").write_text(str(other.distill_lesson(RULE).wire_format))
        Path("questions.jsonl").write_text(
            '{"question": "When does the key rotate?", "expect": ["The deploy key rotates."]}'
        )
        if line.startswith("migrate"):
            shutil.rmtree("yamo", ignore_errors=True)
            make(Path("yamo"))
        if "--rollback" in line:
            cli("migrate", "--store", "lancedb:///yamo")
        typed_in = Path("memories.jsonl").read_text() if line.startswith("import") else "yes\n"
        typed_in = SKILL if line.startswith("ingest-skill") else typed_in
        monkeypatch.setattr(sys, "stdin", Keyboard(typed_in))
        line, id_ = reviewed(cli, line, id_)
        typed = line.split(" < ")[0].split(" > ")[0].replace(ID, id_).replace("12:9ca0…", head)
        typed = re.sub(r"skill_\d\w+", skill_id, re.sub(r"lesson_\d\w+", lesson_id, typed))
        assert cli(*shlex.split(typed)).code == 0, line


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_flag_is_explained(cli, flag):
    for name in COMMANDS:
        # A line may end within a flag and its value.
        help_ = " ".join(cli(*name.split(), flag).out.split())
        assert "Examples:" in help_
        for one in parameters(name):
            assert one.word in help_
            assert one.help
            assert (
                one.positional
                or one.kind is Kind.SWITCH
                or f"{one.word} {one.shown_metavar}" in help_
            )


def test_help_begins_with_few_commands_and_the_topics_and_fits_a_screen(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = cli()
    assert (said.code, said.out) == (0, cli("--help").out)
    assert len(said.out.splitlines()) <= 24
    for words in (
        "First commands:",
        "  store ",
        "  search ",
        "  console ",
        "Topics:",
        "  maintaining ",
        "memory-mesh demo",
        "memory-mesh help TOPIC",
    ):
        assert words in said.out
    assert "memory-mesh help --all" in " ".join(said.out.split())
    assert "lane judge" not in said.out


def test_every_command_is_in_the_help_of_one_topic(cli):
    topics = cli().out.partition("Topics:\n")[2].partition("\n\n")[0].splitlines()
    shown = [
        command
        for topic in topics
        for command in COMMANDS
        if f"\n  {command} " in cli("help", topic.split()[0]).out
    ]
    assert sorted(shown) == sorted(COMMANDS)
    assert "did you mean reading?" in cli("help", "readin").err
    assert cli("reading").code == 2


def test_help_names_every_command_in_its_group(cli):
    for said in (cli("help", "--all"), cli("--help", "--all")):
        assert said.code == 0
        for words in (
            "Store:",
            "Search and read:",
            "Change:",
            "Delete:",
            "Maintain:",
            *COMMANDS,
            "Exit codes",
        ):
            assert words in said.out


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_a_command_lists_its_commands(cli, group):
    for words in ([group], [group, "--help"]):
        said = cli(*words)
        assert (said.code, said.err) == (0, "")
        assert GROUPS[group] in said.out
        assert [
            c for c in COMMANDS if c.startswith(f"{group} ") and f"  {c} " not in said.out
        ] == []


@pytest.mark.parametrize("width", [120, 80, 40])
def test_help_fits_the_terminal(cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for words in (
        [],
        ["help", "--all"],
        ["help", "maintaining"],
        *([group] for group in GROUPS),
        *([*command.split(), "--help"] for command in COMMANDS),
    ):
        # Usage lines are not broken within a flag, and examples are to be copied.
        _, _, explained = cli(*words).out.partition("\nExamples:")[0].partition("\n\n")
        assert [line for line in explained.splitlines() if len(line) > width] == []


def test_help_on_a_terminal_has_the_same_text(cli):
    for words in (
        ["--help"],
        ["help", "--all"],
        ["help", "setup"],
        ["audit"],
        ["search", "--help"],
    ):
        piped, seen = cli(*words).out, cli(*words, terminal=True).out
        assert "\x1b[1musage:" in seen
        assert re.sub(r"\x1b\[[0-9;]+m", "", seen) == piped


def test_flags_may_stand_between_words_and_values_may_begin_with_a_dash(cli):
    id_ = cli("store", "--content", "-5 degrees at the depot", '--metadata={"source": "log"}').id
    found = cli("search", "degrees", "--limit", "1", "at", "--", "-5").out
    assert id_ in found
    assert "Source: log" in found
    for text in ("--help", "--", "--content", "-x", "a=b"):
        assert cli("get", "--id", cli("store", "--content", text).id).out.endswith(f"\n\n{text}\n")
    assert cli("update", "--id", id_, "--metadata", '{"a": 1}', "--why", "--").code == 0
    assert cli("history", "--id", id_).out.count(": --\n") == 1
    assert cli("--", "stats").code == 0


def assert_fields(shown: dict, kind: type) -> None:
    """JSON has every field of a record but those that are null."""
    assert None not in shown.values()
    assert (
        {f.name for f in fields(kind) if f.default is not None}
        <= shown.keys()
        <= {f.name for f in fields(kind)}
    )


def test_json_has_stable_keys(cli):
    def answer(*words: str) -> dict:
        said = cli(*words, "--json")
        assert said.err == ""
        return json.loads(said.out)

    stored = answer(
        "store", "--content", "The key rotates. 🐘", "--metadata", r'{"note": "\u001b[31m"}'
    )
    assert_fields(stored, MemoryRecord)
    assert (stored["content"], stored["metadata"]) == ("The key rotates. 🐘", {"note": "\x1b[31m"})
    id_ = ["--id", stored["id"]]
    assert answer("get", *id_) == stored
    found = answer("search", "key")
    assert found.keys() == {"count", "results"}
    assert_fields(found["results"][0], SearchResult)
    assert answer("search", "key", "--explain").keys() == {
        "query", "tokens", "corrections", "ranker", "model", "mode", "min_score", "documents",
        "candidates", "left_out", "answers", "nearly",
    }  # fmt: skip
    assert answer("reembed").keys() == {"model", "embedded"}
    listed = answer("list")
    assert (listed["count"], listed["results"][0]["id"]) == (1, stored["id"])
    assert_fields(listed["results"][0], MemoryRecord)
    # Found by the search, and told of by the next command.
    assert listed["results"][0]["access_count"] == 1
    assert answer("update", *id_, "--content", "anew")["revision"] == 2
    assert answer("pin", *id_)["pinned"] is True
    told = answer("history", *id_)
    assert_fields(told["results"][0], Change)
    assert answer("stats").keys() == {
        "total_memories", "total_skills", "db_path", "status", "by_status", "spent_today",
        "spent_in_all",
    }  # fmt: skip
    extracted = answer("extract", "--content", "Ana likes tea.")
    memories = extracted.pop("results")
    assert extracted.pop("count") == 1
    assert_fields({**extracted, "memories": memories}, Extraction)
    assert_fields(memories[0], MemoryRecord)
    assert answer("model", "check").keys() == {"ok", "count", "results"}
    erasure = {
        "memories",
        "rows",
        "tombstones",
        "blocks",
        "kept",
        "notes",
        "notes_left",
        "traces",
        "damaged",
        "bytes_freed",
    }
    assert answer("delete", *id_).keys() == erasure
    assert answer("delete-all", "--agent", "x", "--yes").keys() == erasure
    assert answer("config", "show")["results"][0].keys() == {"name", "value", "origin"}
    Path("notes").mkdir()
    assert answer("ingest-dir", "notes").keys() == {
        "root",
        "added",
        "updated",
        "unchanged",
        "failed",
        "gone",
    }
    assert answer("doctor").keys() == {"ok", "count", "results"}
    assert answer("demo").keys() == {"ok", "story"}


@pytest.mark.parametrize(
    ("typed", "left"), [("y\n", 0), ("YES\n", 0), ("n\n", 1), ("\n", 1), ("", 1)]
)
def test_delete_all_asks_first(cli, monkeypatch, typed, left):
    cli("store", "--content", "of the planner", "--agent", "planner")
    cli("store", "--content", "of the writer", "--agent", "writer")
    monkeypatch.setattr(sys, "stdin", Keyboard(typed))
    said = cli("delete-all", "--agent", "planner")
    assert said.err.startswith("[MemoryMesh] Erase all memories of agent planner for good? [y/N] ")
    kept = [memory["content"] for memory in json.loads(cli("list", "--json").out)["results"]]
    assert kept == ["of the writer", "of the planner"][: left + 1]
    done = "[MemoryMesh] Forgot agent planner: 1 memory erased\n"
    assert (said.code, said.out) == ((1, "") if left else (0, done))


def test_delete_all_is_narrowed_by_each_flag(cli):
    for number, flags in enumerate(
        (["--session", "s1"], ["--metadata", '{"project": "p1"}'], ["--type", "lesson"], [])
    ):
        cli("store", "--content", f"thing {number}", *flags)
    cli("store", "--content", "of Ana", "--user", "ana")
    for flags in (
        ["--session", "s1"],
        ["--project", "p1"],
        ["--type", "lesson"],
        ["--user", "ana"],
    ):
        said = f"[MemoryMesh] Forgot {flags[0][2:]} {flags[1]}: 1 memory erased\n"
        assert cli("delete-all", "--yes", *flags).out == said
    assert cli("list").out.splitlines()[1].endswith("thing 3")


def test_content_can_come_from_standard_input(cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("first line\nsecond line\n"))
    id_ = cli("store", "--content", "-").id
    assert json.loads(cli("get", "--id", id_, "--json").out)["content"] == "first line\nsecond line"
    monkeypatch.setattr(sys, "stdin", io.StringIO("another text\n"))
    cli("update", "--id", id_, "--content", "-")
    assert json.loads(cli("get", "--id", id_, "--json").out)["content"] == "another text"


def test_an_update_sets_and_removes_keys(cli):
    id_ = cli("store", "--content", "x", "--metadata", '{"source": "chat", "kept": 1}').id
    cli("update", "--id", id_, "--metadata", '{"source": null, "added": 2}')
    assert json.loads(cli("get", "--id", id_, "--json").out)["metadata"] == {"kept": 1, "added": 2}


def test_a_project_is_named_like_the_agent_and_the_session(cli):
    for words in (["--project", "apollo"], ["--project", "gemini"], []):
        cli("store", "--content", f"launch notes {' '.join(words)}.", *words)
    for words in (["list"], ["search", "launch notes"]):
        assert "gemini" in cli(*words).out
        shown = cli(*words, "--project", "apollo").out
        assert "apollo" in shown
        assert "launch notes ." in shown
        assert "gemini" not in shown


def test_a_filter_on_a_key_that_no_memory_has_is_named_on_the_command_line(cli):
    cli("store", "Ana likes tea.", "--store", "tea.db")
    for words in (("search", "tea"), ("list",)):
        said = cli(*words, "--filter", "metadata.sorce = 'wiki'", "--store", "tea.db")
        assert (said.code, "no memory has the metadata key 'sorce'" in said.err) == (0, True)
