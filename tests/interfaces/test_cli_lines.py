"""The exact output of commands."""

import json
import re
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.verbs import COMMANDS

from .conftest import archived, contested, learnt

ID = r"mem_\d+_[0-9a-f]{6}"


@pytest.mark.req("MESH-150", "MESH-158")
def test_store_takes_the_documents_flags_and_prints_the_id(cli):
    said = cli(
        "store", "--content", "The key rotates.", "--type", "event", "--rationale", "asked twice",
        "--hypothesis", "it is on Mondays", "--metadata", '{"source": "chat"}',
    )  # fmt: skip
    assert re.fullmatch(rf"\[MemoryMesh\] Ingested record {ID}\n", said.out)
    assert (said.code, said.err) == (0, "")
    kept = json.loads(cli("get", "--id", said.id, "--json").out)
    assert kept["content"] == "The key rotates."
    assert kept["metadata"] == {
        "type": "event", "rationale": "asked twice", "hypothesis": "it is on Mondays",
        "source": "chat",
    }  # fmt: skip


@pytest.mark.req("MESH-150")
def test_store_without_content_fails(cli):
    said = cli("store", "--type", "event")
    assert (said.code, said.out) == (2, "")
    assert said.err == ("[MemoryMesh Error] TEXT is missing; see memory-mesh store --help\n")


@pytest.mark.req("MESH-154", "MESH-158")
def test_delete_prints_the_id_and_the_memory_is_gone(cli):
    id_ = cli("store", "--content", "The key rotates.").id
    assert cli("get", "--id", id_).code == 0
    said = cli("delete", "--id", id_)
    assert (said.code, said.out, said.err) == (0, f"[MemoryMesh] Deleted record {id_}\n", "")
    assert cli("get", "--id", id_).code == 4


@pytest.mark.req("MESH-154")
@pytest.mark.parametrize("command", ["get", "delete", "history", "pin"])
def test_an_unknown_id_is_an_error(cli, command):
    cli("store", "--content", "The key rotates.")
    said = cli(command, "--id", "mem_1_abcdef")
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith("[MemoryMesh Error] no memory 'mem_1_abcdef'")


@pytest.mark.req("MESH-151", "MESH-159", "MESH-160", "MESH-161")
def test_search_prints_the_documents_lines(cli):
    first = cli(
        "store",
        "--content",
        "deploy key key",
        "--type",
        "event",
        "--metadata",
        '{"source": "chat"}',
    ).id
    second = cli(
        "store", "--content", "The deploy key\nrotates on Mondays, they say, or on some other day"
    ).id
    said = cli(
        "search",
        "deploy key",
        "--limit",
        "5",
        "--filter",
        "memory_type = 'global'",
        "--ranker",
        "rrf",
    )
    best, next_best = said.out.splitlines()[7], said.out.splitlines()[11]
    assert float(best[-9:-5]) == 1.0 > float(next_best[-9:-5]) > 0
    assert said.out == (
        "[MemoryMesh] Found 2 matches.\n"
        "\n"
        "[ATTENTION DIRECTIVE]\n"
        "- ALIGN attention to entries with [IMPORTANCE >= 0.8]\n"
        "- TREAT entries with [IMPORTANCE <= 0.4] as auxiliary\n"
        "\n"
        "[MEMORY CONTEXT]\n"
        f"--- MEMORY 1: {first} [IMPORTANCE: 1.00] ---\n"
        "Type: event | Source: chat\n"
        "deploy key key\n"
        "\n"
        f"--- MEMORY 2: {second} [IMPORTANCE: {next_best[-9:-5]}] ---\n"
        "Type: global | Source: unknown\n"
        "The deploy key\n"
        "rotates on Mondays, they say, or on some other day\n"
    )


@pytest.mark.req("MESH-151")
def test_search_heeds_limit_and_filter(cli):
    cli("store", "--content", "deploy key one", "--tag", "ops")
    cli("store", "--content", "deploy key two")
    assert cli("search", "deploy").out.startswith("[MemoryMesh] Found 2 matches.")
    assert cli("search", "deploy", "--limit", "1").out.startswith("[MemoryMesh] Found 1 matches.")
    filtered = cli("search", "deploy", "--filter", "tags = 'ops'").out
    assert filtered.startswith("[MemoryMesh] Found 1 matches.")
    assert filtered.endswith("deploy key one\n")


@pytest.mark.req("MESH-161")
def test_a_search_without_a_match_prints_one_line(cli, monkeypatch):
    # By likeness, everything is a little like everything.
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "none")
    cli("store", "--content", "The key rotates.")
    said = cli("search", "zeppelin")
    assert (said.code, said.out, said.err) == (0, "[MemoryMesh] Found 0 matches.\n", "")


@pytest.mark.req("MESH-099")
def test_format_results_is_the_search_output_from_the_directive_on(cli, home):
    for content in ("deploy key", "the deploy key of another house"):
        cli("store", "--content", content)
    printed = cli("search", "deploy key").out
    with MemoryMesh() as mesh:
        text = mesh.format_results(mesh.search("deploy key"))
    assert text.startswith("[ATTENTION DIRECTIVE]\n")
    assert printed == f"[MemoryMesh] Found 2 matches.\n\n{text}\n"


@pytest.mark.req("MESH-162")
def test_stats_prints_four_lines(cli, home):
    cli("store", "--content", "one thing")
    cli("store", "--content", "another thing")
    assert cli("stats").out == (
        "[MemoryMesh] Total Memories: 2\n"
        "[MemoryMesh] Total Skills: 0\n"
        f"[MemoryMesh] DB Path: sqlite:///{home / 'memory.db'}\n"
        "[MemoryMesh] Status: connected\n"
    )


@pytest.mark.parametrize("words", [["stats"], ["search", "tea"], ["list"]])
def test_an_empty_answer_says_when_only_users_have_memories(cli, words):
    hint = (
        "[MemoryMesh] the store has memories of other users only; add --user NAME to read those "
        "of one\n"
    )
    assert hint not in cli(*words).err
    cli("store", "Ana likes tea.", "--user", "ana")
    said = cli(*words)
    assert (said.code, said.err) == (0, hint)
    assert cli(*words, "--user", "ana").err == ""
    assert cli(*words, "--user", "bob").err == "", "a user is not told about others"
    cli("store", "The office opens at eight.")
    assert cli(*words).err == ""


@pytest.mark.req("MESH-162")
def test_stats_of_a_memory_that_is_switched_off_say_disconnected(cli, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_ENABLE_MEMORY", "false")
    assert cli("stats").out.splitlines()[0::3] == [
        "[MemoryMesh] Total Memories: 0",
        "[MemoryMesh] Status: disconnected",
    ]


@pytest.mark.req("MESH-163")
def test_the_first_line_of_every_command_bears_the_name(cli):
    id_ = cli("store", "--content", "The key rotates.").id
    kept = cli("store", "--content", "The door is green.").id
    skill_id, lesson_id = learnt(cli)
    words = {
        "ingest-skill": ["--file", "skills/deploy.yamo"], "search-skills": ["deploy"],
        "list-skills": [], "sync-skills": [],
        "skill-feedback": ["--id", skill_id, "--success", "true"], "skill-prune": [],
        "lesson-to-skill": [lesson_id], "store": ["--content", "one more"], "search": ["key"],
        "get": ["--id", id_], "list": [], "stats": [], "doctor": [], "compact": [], "reembed": [],
        "lessons": [], "distill": [], "heartbeat": [], "ingest-dir": ["notes"],
        "extract": ["--content", "Ana likes tea."],
        "history": ["--id", id_], "update": ["--id", id_, "--content", "anew"],
        "pin": ["--id", id_], "demo": [], "end-session": ["s0"], "reflect": [], "synthesize": [],
        "heritage": ["--id", id_, "--intent", "ship it"], "delete": ["--id", id_],
        "delete-all": ["--session", "none", "--yes"], "config show": [], "model check": [],
        "config trust": ["."], "config untrust": ["."],
        "audit verify": [], "audit head": [], "audit log": [],
        "audit export": ["--out", "trail.jsonl"], "audit anchor": ["--to", "anchors"],
        "audit rekey": [], "hooks status": [], "hooks retry": [], "backup": ["copy.db"],
        "export": ["--out", "memories.jsonl"], "import": ["memories.jsonl"],
        "restore": ["copy.db", "--store", "new.db"],
        "copy": ["--from", "copy.db", "--to", "newer.db"], "forget": ["--user", "ana", "--yes"],
        "review": ["--activate", contested()[0]], "quarantined": [], "conflicts": [],
        "changes": [],
        "explain": [kept], "reinforce": [kept], "dispute": [kept], "decay": [], "junk": [],
        "eval": [], "unarchive": [archived()], "archive": [kept], "compress": [], "consolidate": [],
        "links": [kept], "episodes": [], "init": [], "host stop": [], "users": [],
        "notes add": ["Login", "--content", "Sessions end.", "--when", "login"], "notes list": [],
        "notes match": ["login"], "notes lint": [], "notes sync": [], "notes import": [],
        "notes extract": ["Done.", "--task", "x", "--agent-name", "a"],
        "trace record": ["--goal", "Ship it"], "trace list": [], "trace similar": ["ship"],
        "trace consolidate": [], "trace retention": ["--dry-run"], "trace archive": [],
        "lane store": ["Use pnpm.", "--type", "correction"], "lane find": ["pnpm"],
        "lane feedback": [kept, "helpful"], "token create": ["laptop"], "token list": [],
    }  # fmt: skip
    # The model commands, the migration and those of a server have tests of their own. A host and a
    # client of MCP read a protocol. A watch and a server do not end. Another program reads what the
    # last ones print: see the next tests.
    others = {
        "model status", "model fetch", "migrate", "postgres prepare", "postgres grant",
        "postgres distribute", "notes watch", "host claude-code", "host opencode", "host status",
        "mcp", "trace show", "trace decisions", "serve", "console", "token revoke",
        "completion", "context", "notes inject", "trace plan",
    }  # fmt: skip
    assert words.keys() == COMMANDS.keys() - others
    cli("store", "a turn", "--session", "s0")
    Path("notes").mkdir()
    Path("memory-mesh.toml").touch()
    for name, flags in words.items():
        said = cli(*name.split(), *flags)
        assert (said.code, said.err) == (0, ""), name
        assert said.out.startswith("[MemoryMesh] "), name


@pytest.mark.req("MESH-163")
def test_where_a_program_reads_the_output_it_is_the_data_alone_and_the_first_line_is_on_stderr(cli):
    cli("store", "The deploy key rotates on Mondays.")
    cli("notes", "add", "Login", "--content", "Sessions end.", "--when", "login")
    trace = (
        cli("trace", "record", "--goal", "Ship it", "--decision", "Use make.")
        .out.split()[2]
        .rstrip(":")
    )
    for name, words, start in (
        ("context", ["deploy key"], "Records from a memory"),
        ("notes inject", ["add a login"], "## Background"), ("trace plan", ["ship it"], "Records"),
        ("export", [], "{"), ("export --all", [], "{"), ("audit export", [], "{"),
        ("audit export --format wire", [], "agent: "),
    ):  # fmt: skip
        said = cli(*name.split(), *words)
        assert (said.code, said.out[: len(start)]) == (0, start), (name, said.out[:80])
        assert re.fullmatch(r"\[MemoryMesh\] .+\n", said.err), (name, said.err)
        assert "[MemoryMesh]" not in said.out, name
        assert cli(*name.split(), *words, "--json").err == "", name
    for words in (["notes", "inject", "paint the door"], ["trace", "plan", "paint the door"]):
        assert cli(*words).out == ""
        assert cli(*words).err.startswith("[MemoryMesh] No ")
    for words in (["trace", "show", trace], ["trace", "decisions", trace]):
        assert cli(*words).out.startswith("[MemoryMesh] ")


@pytest.mark.req("MESH-163")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_begins_with_the_name_as_a_comment(cli, shell):
    said = cli("completion", shell)
    assert (said.err, said.out.splitlines()[0]) == ("", f"# [MemoryMesh] Completion for {shell}")
    assert cli("completion", shell, "--", "sta").out == "stats\n", (
        "words for the shell are words alone"
    )


@pytest.mark.deep
def test_traces_are_consolidated_planned_with_retained_and_archived(cli):
    for _ in range(3):
        words = ("--step", "build", "--decision", "Use make.", "--project", "shop")
        id_ = cli("trace", "record", "--goal", "Deploy the shop", *words).out.split()[2].rstrip(":")
    done = cli("trace", "consolidate", "--project", "shop").out
    assert done.startswith(
        "[MemoryMesh] Wrote 1 learning, 1 decision, 1 skill from 3 traces of shop\n* learning-"
    )
    assert done.endswith(" 100% of 3  Deploy the shop\n")
    plan = cli("trace", "plan", "deploy the shop", "--project", "shop").out
    assert "# Learnings\n- Deploy the shop: 3 runs, 100% successful [trace-" in plan
    assert cli("trace", "decisions", id_).out.startswith("[MemoryMesh] 1 decision\nmem_")
    assert cli("trace", "retention").out == "[MemoryMesh] 0 moves done\n"
    cli("trace", "archive", "--project", "shop")
    assert cli("trace", "list", "--project", "shop").out == "[MemoryMesh] 0 traces\n"
    assert cli("trace", "list", "--project", "shop", "--archived").out.startswith(
        "[MemoryMesh] 3 traces\n"
    )


@pytest.mark.req("MESH-165")
def test_a_store_is_named_by_its_url_and_else_lies_in_the_home(cli, home, tmp_path):
    cli("store", "--content", "at home")
    assert (home / "memory.db").is_file()
    elsewhere = ["--store", f"sqlite:///{tmp_path}/there/else.db"]
    cli("store", "--content", "elsewhere", *elsewhere)
    assert (tmp_path / "there" / "else.db").is_file()
    assert "at home" in cli("list").out
    assert "elsewhere" not in cli("list").out
    assert "elsewhere" in cli("list", *elsewhere).out
    assert "at home" not in cli("list", *elsewhere).out


@pytest.mark.req("MESH-165")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sample(len(COMMANDS))
def test_every_command_takes_a_store(cli, command):
    said = cli(*command.split(), "--store", "memory://", "--no-such-flag")
    assert said.err.startswith("[MemoryMesh Error] unknown flag '--no-such-flag'")
    assert "--store URL" in cli(*command.split(), "--help").out


@pytest.mark.req("MESH-165")
def test_a_command_that_uses_no_store_takes_one_says_so_and_leaves_it_alone(cli, tmp_path):
    there = ("--store", f"sqlite:///{tmp_path}/there.db")
    Path("memory-mesh.toml").touch()
    for words in (("token", "list"), ("completion", "bash"), ("config", "trust", "."), ("demo",)):
        assert cli(*words, *there).code == 0, words
        assert "this command uses no store" in " ".join(cli(*words[:2], "--help").out.split()), (
            words
        )
    said = cli("init", *there)
    assert "! The hooks use the store of the settings, not that of --store" in said.out
    assert "The hooks use the store" not in cli("init").out
    assert not (tmp_path / "there.db").exists()


@pytest.mark.req("MESH-165")
def test_copy_reads_the_store_or_that_of_the_settings_unless_from_names_one(cli, tmp_path):
    cli("store", "at home")
    cli("store", "elsewhere", "--store", "else.db")
    cli("copy", "--to", "one.db")
    cli("copy", "--to", "two.db", "--store", "else.db")
    assert "at home" in cli("list", "--store", "one.db").out
    assert "elsewhere" in cli("list", "--store", "two.db").out
    said = cli("copy", "--to", "three.db", "--store", "else.db", "--from", "one.db")
    assert (
        said.err == "[MemoryMesh Error] --from and --store are both given; expected one of them\n"
    )
    assert not (tmp_path / "three.db").exists()


@pytest.mark.req("MESH-165")
def test_without_a_home_the_store_lies_under_the_users_folder(cli, monkeypatch, tmp_path):
    monkeypatch.delenv("MEMORY_MESH_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    cli("store", "--content", "at home")
    assert (tmp_path / "user" / ".memory-mesh" / "memory.db").is_file()


def test_the_version_is_said(cli):
    assert cli("--version").out == "[MemoryMesh] memory-mesh 0.1.0\n"


def test_an_update_a_pin_and_a_history_tell_what_happened(cli):
    id_ = cli("store", "--content", "on Mondays").id
    assert cli("update", "--id", id_, "--content", "on Fridays", "--why", "a new plan").out == (
        f"[MemoryMesh] Updated record {id_} to revision 2\n"
    )
    assert cli("pin", "--id", id_).out == f"[MemoryMesh] Pinned record {id_}\n"
    assert cli("pin", "--id", id_, "--off").out == f"[MemoryMesh] Unpinned record {id_}\n"
    lines = cli("history", "--id", id_).out.splitlines()
    assert lines[0] == f"[MemoryMesh] History of {id_}: 4 revisions."
    assert [line.split("  ")[-1] for line in lines if "by " in line] == [
        "add by YAMO_AGENT", "update by YAMO_AGENT: a new plan", "pin by YAMO_AGENT",
        "unpin by YAMO_AGENT",
    ]  # fmt: skip
    assert "      content was on Mondays" in lines


def test_a_repeated_key_stores_once_and_the_same_words_are_counted(cli):
    first = cli("store", "--content", "one", "--idempotency-key", "k1").id
    assert cli("store", "--content", "one", "--idempotency-key", "k1").id == first
    assert json.loads(cli("get", "--id", first, "--json").out)["times_observed"] == 1
    assert cli("store", "--content", "one").id == first
    assert json.loads(cli("get", "--id", first, "--json").out)["times_observed"] == 2


def test_a_key_replaces_and_the_history_shows_who_stored_a_text(cli):
    first = cli("store", "tea at four", "--key", "tea").id
    assert cli("store", "tea at five", "--key", "tea").id == first
    assert json.loads(cli("get", first, "--json").out)["content"] == "tea at five"
    shared = cli("store", "cake at six").id
    assert cli("store", "cake at six", "--agent", "bob", "--session", "s1").id == shared
    assert cli("store", "cake at six", "--deduplicate", "no").id != shared
    lines = cli("history", shared, "--sightings").out.splitlines()
    assert lines[0] == f"[MemoryMesh] {shared} was stored by 2 agents or sessions."
    assert [line.split("Z  ")[1] for line in lines[1:]] == [
        "YAMO_AGENT: once",
        "bob in session s1: once",
    ]
    found = json.loads(cli("history", shared, "--sightings", "--json").out)["results"]
    assert [one["agent_id"] for one in found] == ["YAMO_AGENT", "bob"]
    assert (
        cli("delete-all", "--agent", "bob", "--yes")
        .out.splitlines()[0]
        .endswith("1 kept: others stored them too")
    )


def test_flags_say_who_reads_and_writes(cli):
    private = cli(
        "store", "--content", "the vault code", "--type", "agent", "--agent", "planner"
    ).id
    assert cli("get", "--id", private, "--agent", "planner").code == 0
    assert cli("get", "--id", private, "--agent", "writer").code == 4
    mine = cli("store", "--content", "of Ana", "--user", "ana").id
    assert cli("get", "--id", mine, "--user", "ana").code == 0
    assert cli("get", "--id", mine, "--user", "bob").code == 4
    turn = cli("store", "--content", "a turn", "--type", "session", "--session", "s1").id
    assert cli("get", "--id", turn, "--session", "s1").code == 0
    assert cli("get", "--id", turn, "--session", "s2").code == 4


def test_search_and_list_can_ask_for_another_status_and_a_least_score(cli):
    cli("store", "--content", "deploy key")
    cli("store", "--content", "deploy something else entirely")
    assert cli("list", "--status", "archived").out == "[MemoryMesh] Listed 0 memories.\n"
    assert cli("list", "--status", "archived", "--status", "active").out.startswith(
        "[MemoryMesh] Listed 2 memories."
    )
    assert cli("search", "deploy key", "--min-score", "1", "--ranker", "rrf").out.startswith(
        "[MemoryMesh] Found 1 matches."
    )


def test_add_update_and_extract_say_what_they_masked_and_json_has_the_counts(cli):
    said = cli(
        "store", "--content", "mail ann@example.org, bob@example.org or call +44 20 7946 0958"
    )
    assert said.out.splitlines()[1:] == ["[MemoryMesh] Masked: 2 email, 1 phone"]
    assert "ann@" not in said.out
    record = json.loads(cli("store", "--content", "host 203.0.113.42", "--json").out)
    assert record["redactions"] == {"ip": 1}
    updated = cli(
        "update", "--id", record["id"], "--content", "host 203.0.113.43 of ann@example.org"
    )
    assert updated.out.splitlines()[1:] == ["[MemoryMesh] Masked: 1 email, 1 ip"]
    assert "Masked: 1 email" in cli("extract", "--content", "ann@example.org wrote").out


@pytest.mark.req("MESH-026")
def test_end_session_says_how_many_memories_it_archived(cli):
    for n in range(2):
        cli("store", f"turn {n}", "--type", "session", "--session", "s1")
    assert (
        cli("end-session", "--session", "s1").out
        == "[MemoryMesh] Ended session s1: 2 memories archived\n"
    )
    again = cli("end-session", "s1", "--json")
    assert json.loads(again.out) == {"session_id": "s1", "archived": []}
    unknown = cli("end-session", "s2")
    assert (unknown.code, unknown.out) == (4, "")
    assert unknown.err.startswith("[MemoryMesh Error] no memories of session 's2'")


@pytest.mark.req("LANE-16", "LANE-38")
def test_the_lane_stores_finds_and_rates(cli):
    said = cli(
        "lane",
        "store",
        "Use pnpm, not npm.",
        "--type",
        "correction",
        "--entity",
        "project:atlas",
        "--confidence",
        "90",
    )
    assert (said.code, said.out) == (0, f"[MemoryMesh] Ingested record {said.id}\n")
    assert cli("lane", "store", "Use pnpm, not npm.", "--type", "correction").out.endswith(
        ", observed 2 times\n"
    )
    new = cli(
        "lane", "store", "Use yarn for packages.", "--type", "gap", "--supersedes", said.id
    ).id
    assert (
        cli("lane", "feedback", new, "helpful").out
        == f"[MemoryMesh] Record {new} has the feedback score 1.10 after 1 rating\n"
    )
    found = cli("lane", "find", "packages", "yarn")
    assert re.fullmatch(
        r"\[MemoryMesh\] Found 1 memory\n"
        rf"([\d.]+)  gap  {new}  = similarity [\d.]+ × weight 0.4 × feedback 1.1\n      Use yarn "
        r"for packages.\n",
        found.out,
    )
    (first,) = json.loads(
        cli("lane", "find", "npm", "--entity", "atlas", "--include-superseded", "--json").out
    )["results"]
    assert (first["id"], first["metadata"]["superseded_by"], first["effective_confidence"]) == (
        said.id,
        new,
        90,
    )
    assert "score  type" in re.sub(
        r"\x1b\[[0-9;]*m", "", cli("lane", "find", "yarn", terminal=True).out
    )
    wrong = cli("lane", "store", "x", "--type", "fact")
    assert (wrong.code, wrong.out) == (2, "")
    assert "correction" in wrong.err
    assert cli("lane", "find", "npm", "--entity", "zeus").code == 4
    assert cli("lane", "feedback", "mem_1_abcdef", "helpful").code == 4
