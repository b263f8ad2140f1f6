"""Errors on the command line: one line, the exit code of the table, and an unchanged store."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh.core import errors
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.interfaces.hosts import is_hook
from memory_mesh.interfaces.render.output import OUTCOMES, outcome
from memory_mesh.interfaces.verbs import COMMANDS

STORE = ["store", "--content"]
NOTES = ["store", "--content", "new", "--metadata"]
FIND = ["search", "key", "--filter"]

BAD = {
    # usage
    "unknown command": (["frobnicate"], 2),
    "unknown flag": (["stats", "--frobnicate"], 2),
    "a flag without its value": (["store", "--content"], 2),
    "a missing flag": (["get"], 2),
    "a missing query": (["search"], 2),
    "a word too many": (["stats", "please"], 2),
    "an unknown command of a group": (["config", "sow"], 2),
    # what is stored
    "empty content": ([*STORE, ""], 2),
    "blank content": ([*STORE, " \n\t"], 2),
    "over-long content": ([*STORE, "x" * 101], 2),
    "a NUL": ([*STORE, "a\0b"], 2),
    "half a surrogate pair": ([*STORE, "a\ud800b"], 2),
    "metadata that is no JSON": ([*NOTES, '{"a": 1,'], 2),
    "metadata that is no object": ([*NOTES, "[1]"], 2),
    "metadata with a forbidden key deep inside": ([*NOTES, '{"a": [{"b": {"__proto__": 1}}]}'], 2),
    "metadata with no number": ([*NOTES, '{"a": NaN}'], 2),
    "metadata with a number beyond measure": ([*NOTES, '{"a": 1' + "0" * 5000 + "}"], 2),
    "metadata nested beyond measure": ([*NOTES, "[" * 100_000], 2),
    "metadata nested too deeply": ([*NOTES, '{"a":' * 30 + "1" + "}" * 30], 2),
    "metadata against a flag": ([*NOTES, '{"type": "event"}', "--type", "agent"], 2),
    "a session memory without a session": ([*STORE, "new", "--type", "session"], 2),
    "a key for another request": ([*STORE, "new", "--idempotency-key", "used"], 2),
    "nothing to update": (["update", "--id", "{id}"], 2),
    # what is asked
    "a blank query": (["search", " "], 2),
    "an unknown column": ([*FIND, "colour = 'red'"], 2),
    "a second statement": ([*FIND, "1=1; DROP TABLE memories"], 2),
    "a tautology": ([*FIND, "1=1"], 2),
    "a quote out of place": ([*FIND, "content = '' OR '1'='1'"], 2),
    "a subquery": ([*FIND, "id IN (SELECT id FROM memories)"], 2),
    "a union": ([*FIND, "1=1 UNION SELECT 1"], 2),
    "a function": ([*FIND, "lower(content) = 'x'"], 2),
    "a filter that ends early": ([*FIND, "content ="], 2),
    "a blank filter": ([*FIND, " "], 2),
    "a filter on a list": (["list", "--filter", "1=1; DELETE FROM memories"], 2),
    "limit 0": (["search", "key", "--limit", "0"], 2),
    "limit -1": (["list", "--limit", "-1"], 2),
    "limit abc": (["search", "key", "--limit", "abc"], 2),
    "limit 1.5": (["list", "--limit", "1.5"], 2),
    "limit without digits": (["search", "key", "--limit", ""], 2),
    "limit in other digits": (["search", "key", "--limit", "٣"], 2),
    "limit beyond measure": (["search", "key", "--limit", "1" + "0" * 5000], 2),
    "a score that is no number": (["search", "key", "--min-score", "nan"], 2),
    "a score above 1": (["search", "key", "--min-score", "1.1"], 2),
    "an unknown status": (["list", "--status", "dead"], 2),
    # what is not there
    "get of an unknown id": (["get", "--id", "mem_1_abcdef"], 4),
    "delete of an unknown id": (["delete", "--id", "mem_1_abcdef"], 4),
    "delete with a pattern": (["delete", "--id", "%"], 4),
    "update of an unknown id": (["update", "--id", "mem_1_abcdef", "--content", "x"], 4),
    "history of an unknown id": (["history", "--id", "mem_1_abcdef"], 4),
    "pin of an unknown id": (["pin", "--id", "mem_1_abcdef"], 4),
    # what is erased
    "delete-all without a scope": (["delete-all", "--yes"], 2),
    "delete-all with nobody to ask": (["delete-all", "--agent", "YAMO_AGENT"], 2),
    "delete-all of an unknown type": (["delete-all", "--type", "event", "--yes"], 2),
    # where it is stored
    "an unknown kind of store": (["stats", "--store", "mysql://host/db"], 2),
    "a store that is no URL": (["stats", "--store", "memories"], 2),
    "a store without a file": (["stats", "--store", "sqlite://"], 2),
    "an unknown option of a store": (["stats", "--store", "sqlite:///x.db?mode=wild"], 2),
    "a store whose key is not set": (["stats", "--store", "supabase://host/"], 3),
    "a blank agent": (["stats", "--agent", " "], 3),
}


@pytest.fixture
def filled(cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A memory in the default store; its id."""
    monkeypatch.setenv("MEMORY_MESH_MAX_CONTENT_CHARS", "100")
    return cli("store", "--content", "The deploy key rotates.", "--idempotency-key", "used").id


@pytest.mark.req("MESH-164")
@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_with_its_code_and_changes_nothing(cli, home, filled, case):
    words, code = BAD[case]
    before = dump(home / "memory.db")
    assert filled in before
    said = cli(*(word.format(id=filled) if word == "{id}" else word for word in words))
    assert (said.code, said.out) == (code, "")
    assert_one_error_line(said.err)
    assert dump(home / "memory.db") == before


@pytest.mark.req("MESH-164")
@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        ("folder", 7),
        ("read-only", 8),
        ("locked", 9),
        ("no database", 11),
        ("damaged", 11),
        ("too new", 12),
        ("off", 6),
    ],
)
def test_trouble_with_a_store_is_one_line_with_its_code(
    cli, home, filled, monkeypatch, tmp_path, trouble, code
):
    with in_trouble(trouble, home / "memory.db", monkeypatch, tmp_path) as url:
        said = cli("store", "--content", "new", *url)
    assert (said.code, said.out) == (code, "")
    assert_one_error_line(said.err)


@pytest.mark.req("MESH-164")
@pytest.mark.parametrize("words", [["stats"], ["config", "show"]])
def test_a_settings_file_that_cannot_be_read_is_one_line(cli, home, words):
    home.mkdir()
    (home / "memory-mesh.toml").write_text("agent_id = \n")
    said = cli(*words)
    assert (said.code, said.out) == (3, "")
    assert_one_error_line(said.err)
    assert "memory-mesh.toml" in said.err


@pytest.mark.req("MESH-164")
def test_an_error_tells_no_secret(cli, monkeypatch):
    said = cli("stats", "--store", "mysql://bob:hunter2@host/db")
    assert "@host/db" in said.err
    assert "hunter2" not in said.err
    for name, value in (("API_KEY", "sk hunter2"), ("PROVIDER", "openai"), ("MODEL", "m")):
        monkeypatch.setenv(f"MEMORY_MESH_LLM_{name}", value)
    said = cli("stats")
    assert "API key for openai" in said.err
    assert "hunter2" not in said.err


@pytest.mark.req("MESH-149")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("word", ['{"content": "x", "query": "x", "id": "x"}', '["x"]'])
def test_json_in_place_of_flags_is_refused(cli, home, command, word):
    said = cli(*command.split(), word)
    assert (said.code, said.out) == (
        0 if is_hook(command.split()) else 2,
        "",
    )  # a host takes 2 for a veto
    assert_one_error_line(said.err)
    assert "named flags" in said.err
    assert not home.exists()


@pytest.mark.req("MESH-149")
def test_the_refusal_of_json_teaches_the_flags(cli):
    assert cli("store", '{"content": "x", "type": "event"}').err == (
        "[MemoryMesh Error] JSON is given instead of flags; expected named flags; write "
        "memory-mesh store --content … --type …\n"
    )
    assert cli("store", "--content", "x", "--metadata", '{"a": 1}').code == 0
    assert cli("store", "--content", '{"a": 1}').code == 0


def test_metadata_that_is_no_json_shows_where(cli):
    said = cli("store", "--content", "x", "--metadata", '{"a": 1, b: 2}')
    assert "at character 9, near 'b: 2}'" in said.err
    assert "at its end" in cli("store", "--content", "x", "--metadata", '{"a": 1').err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serch", "search"), ("delete_all", "delete-all"), ("store --contnt x", "--content"),
        ("search x --exp", "--explain"), ("store --con x", "--content"),
        ("list -limit 3", "--limit"), ("list --status Active", "active"),
        ("audit ver", "audit verify"),
    ],
)  # fmt: skip
def test_a_typing_mistake_gets_a_suggestion(cli, typed, meant):
    said = cli(*typed.split())
    assert said.code == 2
    assert said.err.endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("get mem_1 mem_2", "unexpected word 'mem_2'; see memory-mesh get --help"),
        ("get mem_1 --id mem_2", "ID is given twice: as 'mem_1' and by --id; expected one of them"),
        (
            "store one --content two",
            "TEXT is given twice: as 'one' and by --content; expected one of them",
        ),
        (
            "update --id mem_1 text",
            "ID is given twice: as 'text' and by --id; expected one of them",
        ),
        (
            "store Ana prefers tea",
            "unexpected word 'prefers'; write a text of several words in quotes",
        ),
        (
            "update mem_1 new text",
            "unexpected word 'text'; write a text of several words in quotes",
        ),
        ("get", "no id is given; expected an id or a key"),
        ("pin", "ID is missing; see memory-mesh pin --help"),
        ("get --id", "--id has no value; see memory-mesh get --help"),
        ("search --limit 3", "QUERY is missing; see memory-mesh search --help"),
        ("ingest-dir a b", "unexpected word 'b'; see memory-mesh ingest-dir --help"),
        (
            "export out.jsonl",
            "unexpected word 'out.jsonl'; write --out before the name of the file",
        ),
        ("export --out out.jsonl more", "unexpected word 'more'; see memory-mesh export --help"),
        ("stats --json=yes", "--json takes no value; expected --json"),
        ("stats --bogus", "unknown flag '--bogus'; see memory-mesh stats --help"),
        ("stats --debug", "unknown flag '--debug'; write it before the command"),
        (
            "--limit 3",
            "unknown flag '--limit'; flags stand behind their command; see memory-mesh --help",
        ),
        (
            "audit --limit",
            (
                "unknown flag '--limit'; flags stand behind their command; see memory-mesh "
                "audit --help"
            ),
        ),
        ("audit bogus", "unknown command 'audit bogus'; see memory-mesh audit --help"),
        ("audit reflect", "unknown command 'audit reflect'; see memory-mesh audit --help"),
    ],
)
def test_wrong_usage_is_told_what_to_type(cli, typed, message):
    said = cli(*typed.split())
    assert (said.code, said.out, said.err) == (2, "", f"[MemoryMesh Error] {message}\n")


def tree(kind: type[MemoryMeshError]) -> Iterator[type[MemoryMeshError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from tree(below)


def test_every_error_has_its_codes():
    ours = {kind for kind in tree(MemoryMeshError) if kind.__module__ == errors.__name__}
    assert errors.IdTaken in ours
    assert set(OUTCOMES) == ours
    for exit_code, http_status in OUTCOMES.values():
        assert 1 <= exit_code < 128
        assert 400 <= http_status < 600


def test_an_error_of_a_new_kind_has_the_codes_of_the_kind_above():
    class Odd(errors.StoreFull):
        pass

    assert outcome(Odd("odd")) == OUTCOMES[errors.StoreFull]


def assert_one_error_line(err: str) -> None:
    assert err.startswith("[MemoryMesh Error] ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err


def dump(file: Path) -> str:
    with closing(sqlite3.connect(file)) as connection:
        return "\n".join(connection.iterdump())


class in_trouble:  # noqa: N801  (reads as a word)
    """A store of which something is wrong; entering gives the flags that name it."""

    def __init__(
        self, trouble: str, file: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
    ) -> None:
        self.trouble, self.file, self.monkeypatch, self.folder = trouble, file, monkeypatch, folder

    def __enter__(self) -> list[str]:
        self.held = sqlite3.connect(self.file)
        match self.trouble:
            case "folder":
                return ["--store", f"sqlite:///{self.file}/inside.db"]
            case "read-only":
                return ["--store", f"sqlite:///{self.file}?mode=ro"]
            case "locked":
                self.held.execute("BEGIN IMMEDIATE")
                self.monkeypatch.setenv("MEMORY_MESH_BUSY_SECONDS", "0")
            case "no database":
                other = self.folder / "other.db"
                other.write_bytes(
                    b"this is a letter, not a database, and it is long enough to be looked at" * 9
                )
                return ["--store", str(other)]
            case "damaged":
                damaged = self.folder / "damaged.db"
                with closing(sqlite3.connect(damaged)) as copy:
                    self.held.backup(copy)
                whole = damaged.read_bytes()
                damaged.write_bytes(whole[:200] + b"\xff" * (len(whole) - 200))
                return ["--store", str(damaged)]
            case "too new":
                self.held.execute("UPDATE mesh_meta SET value = '999' WHERE key = 'schema'")
                self.held.commit()
            case "off":
                self.monkeypatch.setenv("MEMORY_MESH_ENABLE_MEMORY", "false")
        return []

    def __exit__(self, *error: object) -> None:
        self.held.close()


def test_the_settings_show_where_they_come_from_and_no_secret(cli, home, monkeypatch):
    home.mkdir()
    (home / "memory-mesh.toml").write_text(
        'agent_id = "filed"\nstore = "mysql://bob:hunter2@host/db"\n'
    )
    monkeypatch.setenv("MEMORY_MESH_LLM_API_KEY", "sk-hunter2")
    monkeypatch.setenv("MEMORY_MESH_USER_ID", "ana")
    said = cli("config", "show", "--session", "s1")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in said.out.splitlines()[1:]}
    assert rows["agent_id"] == ["filed", f"file ({home / 'memory-mesh.toml'})"]
    assert rows["user_id"] == ["ana", "environment (MEMORY_MESH_USER_ID)"]
    assert rows["session_id"] == ["s1", "argument"]
    assert rows["busy_seconds"] == ["30.0", "default"]
    assert rows["store"][0] == "mysql://bob:***@host/db"
    assert "(set, not shown)" in said.out
    shown = json.loads(cli("config", "show", "--json").out)["results"]
    assert {
        "name": "user_id",
        "value": "ana",
        "origin": "environment (MEMORY_MESH_USER_ID)",
    } in shown
    assert "hunter2" not in said.out + json.dumps(shown)
