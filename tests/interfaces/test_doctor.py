"""The doctor finds faults, says what to do, and changes nothing in the store."""

import json
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api.build import model_paths
from memory_mesh.api.settings import load
from memory_mesh.models import PUBLISHED_MODEL, LocalEmbedder
from stores.files import lane_file, older_file, snapshot

PLANNER = ["--agent", "planner", "--user", "ana"]


@pytest.fixture
def store(cli, home: Path) -> Path:
    """A store with memories of two users; the first is private, changed and deleted."""
    id_ = cli("store", "--content", "The vault opens.", "--type", "agent", *PLANNER).id
    cli("update", "--id", id_, "--content", "The vault opens wide.", *PLANNER)
    cli("delete", "--id", id_, *PLANNER)
    cli("store", "--content", "The deploy key rotates.", *PLANNER)
    cli("store", "--content", "Tea at five.")
    return home / "memory.db"


def failed(said) -> dict[str, dict]:
    answer = json.loads(said.out)
    broken = {check["name"]: check for check in answer["results"] if not check["ok"]}
    assert answer["ok"] is not bool(broken)
    assert said.code == (1 if broken else 0)
    assert all(check["remedy"] for check in broken.values())
    return broken


def sql(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, statement


def test_a_sound_store_passes_every_check(cli, store):
    said = cli("doctor")
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert lines[0] == "[MemoryMesh] Doctor: 17 checks, all passed."
    assert [line.split()[:2] for line in lines[1:]] == [
        ["ok", name]
        for name in (
            "python",
            "sqlite",
            "settings",
            "home",
            "permissions",
            "model",
            "llm",
            "process",
            "space",
            "store",
            "pseudonyms",
            "file",
            "keywords",
            "audit",
            "signatures",
            "bytes",
            "pending",
        )
    ]
    assert "2 sound, 5 blocks" in said.out
    assert f"sqlite:///{store}" in said.out
    assert failed(cli("doctor", "--json")) == {}


def test_the_doctor_changes_nothing(cli, store, home):
    def state() -> dict[str, bytes]:
        return {
            file.name: file.read_bytes()
            for file in home.iterdir()
            if not file.name.endswith("-shm")
        }

    cli("doctor")
    before = state()
    assert b"deploy key" in before["memory.db"]
    cli("doctor")
    assert state() == before


def test_a_store_that_is_not_made_yet_is_well_and_stays_unmade(cli, home):
    said = cli("doctor")
    assert said.code == 0
    assert "does not exist yet" in said.out
    assert not home.exists()


@pytest.mark.parametrize(
    ("forgery", "reason"),
    [
        (
            "UPDATE memories SET content = 'The deploy key never rotates.' WHERE user_id = 'ana'",
            "differs from what was sealed",
        ),
        (
            (
                "UPDATE yamo_blocks SET yamo_text = replace(yamo_text, 'deploy', 'daploy') WHERE "
                "user_id = 'ana'"
            ),
            "its text does not match its hash",
        ),
        ("DELETE FROM yamo_blocks WHERE user_id = 'ana' AND number = 2", "missing"),
        ("DELETE FROM yamo_blocks WHERE user_id = 'ana' AND number = 4", "its head says"),
        ("DELETE FROM records WHERE kind = 'head' AND id LIKE '%ana%'", "its head says"),
    ],
)
def test_a_forged_store_fails_the_audit_and_the_block_is_named(cli, store, forgery, reason):
    sql(store, forgery)
    broken = failed(cli("doctor", "--json"))
    assert broken.keys() == {"audit"}
    assert "the chain of agent planner of user ana breaks at block " in broken["audit"]["detail"]
    assert reason in broken["audit"]["detail"]
    assert cli("doctor").out.startswith("[MemoryMesh] Doctor: 17 checks, 1 failed.\n")


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (
            "UPDATE memories SET keywords = NULL WHERE user_id = 'ana'",
            "memories with unreadable keywords",
        ),
        ("DELETE FROM partitions", "memories in partitions without a version"),
        ("UPDATE partitions SET nonce = 'f'", "partitions whose log does not end at their version"),
    ],
)
def test_tables_that_disagree_with_the_memories_are_found(cli, store, loss, told):
    # Otherwise it would count as a change by Memory Lane, and be taken up.
    ours = "INSERT INTO mesh_meta VALUES ('writing', '')"
    sql(store, ours, loss, "DELETE FROM mesh_meta WHERE key = 'writing'")
    broken = failed(cli("doctor", "--json"))
    assert broken.keys() == {"keywords"}
    assert told in broken["keywords"]["detail"]


def test_a_damaged_file_fails(cli, store):
    # The root page of an index is overwritten: the file opens, and the damage shows when it is
    # walked.
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'blocks_by_memory'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with store.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert "file" in failed(cli("doctor", "--json"))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--store", "mysql://bob:hunter2@host/db"], "store"),
        (["--store", "postgresql://bob:hunter2@127.0.0.1:1/db"], "store"),
        (["--store", "letter.db"], "store"),
        (["--store", "letter.db/inside.db"], "store"),
        (["--agent", " "], "settings"),
    ],
)
def test_what_cannot_be_opened_fails_with_a_remedy_and_no_secret(cli, tmp_path, words, name):
    (tmp_path / "letter.db").write_text("a letter, not a database " * 99)
    said = cli("doctor", "--json", *words)
    assert "FAILED" in cli("doctor", *words).out
    assert name in {check["name"] for check in json.loads(said.out)["results"] if not check["ok"]}
    assert said.code == 1
    assert "hunter2" not in said.out


def test_a_home_that_is_no_folder_fails(cli, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "file" / "home"))
    assert failed(cli("doctor", "--json"))["home"]["remedy"].startswith(
        f"make {tmp_path / 'file'} a folder"
    )


def test_too_little_space_fails(cli, store, monkeypatch):
    usage = shutil.disk_usage(store)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    assert "976.6 KiB free" in failed(cli("doctor", "--json"))["space"]["detail"]


def test_a_newer_store_and_a_memory_switched_off_are_told(cli, store, monkeypatch):
    sql(store, "UPDATE mesh_meta SET value = '999' WHERE key = 'schema'")
    assert "upgrade" in failed(cli("doctor", "--json"))["store"]["remedy"]
    monkeypatch.setenv("MEMORY_MESH_ENABLE_MEMORY", "false")
    said = cli("doctor")
    assert said.code == 0
    assert "disabled by environment" in said.out


def test_memories_that_wait_for_a_decision_are_counted(cli, store):
    sql(store, "UPDATE memories SET status = 'quarantined' WHERE content LIKE 'Tea%'")
    assert "1 quarantined" in cli("doctor").out


def test_a_lost_pseudonym_key_is_named(cli, home, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_REDACTION", "pseudonym")
    cli("store", "--content", "ask bob@example.org")
    assert failed(cli("doctor", "--json")) == {}
    (home / "pseudonym.key").unlink()
    broken = failed(cli("doctor", "--json"))
    assert broken.keys() == {"pseudonyms"}
    assert "lost" in broken["pseudonyms"]["detail"]
    assert "pseudonym.key" in broken["pseudonyms"]["remedy"]


def test_bytes_that_wait_to_be_freed_are_named(cli, store, monkeypatch):
    id_ = cli("store", "--content", "The heron nests here.").id
    monkeypatch.setattr("memory_mesh.stores.sqlite.store._MAX_REWRITTEN_ON_OPENING", 0)
    with MemoryMesh(store=f"sqlite:///{store}") as mesh:
        monkeypatch.setattr("memory_mesh.stores.sqlite.store._MAX_REWRITTEN_ON_CLOSING", 0)
        mesh.delete(id_)
    assert failed(cli("doctor", "--json")).keys() == {"bytes"}
    assert cli("compact").code == 0
    assert failed(cli("doctor", "--json")) == {}


def test_a_language_model_without_its_key_is_told(cli, monkeypatch):
    assert "none is set, and none is needed" in cli("doctor").out
    for name, value in (("PROVIDER", "openai"), ("MODEL", "gpt")):
        monkeypatch.setenv(f"MEMORY_MESH_LLM_{name}", value)
    said = cli("doctor")
    assert said.code == 1
    assert "FAILED  llm" in said.out
    assert "MEMORY_MESH_LLM_API_KEY" in said.out
    monkeypatch.setenv("MEMORY_MESH_LLM_API_KEY", "sk-abc")
    assert "openai/gpt is set" in cli("doctor").out


def test_a_store_of_the_published_model_is_told_of_the_newer_one_until_it_is_changed(
    cli, home, monkeypatch
):
    def advice() -> list[str]:
        said = cli("doctor", "--json")
        assert failed(said) == {}
        return [
            check["remedy"]
            for check in json.loads(said.out)["results"]
            if check["name"] == "vectors"
        ]

    with MemoryMesh(
        embedder=LocalEmbedder(model_paths(load({}))).of_model(PUBLISHED_MODEL)
    ) as mesh:
        mesh.add("Tea at five.")
    assert advice() == []  # the embedder is not the local one
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    assert advice() == ["run memory-mesh reembed to change the store to it"]
    said = cli("doctor")
    assert said.out.startswith("[MemoryMesh] Doctor: 18 checks, all passed.\n")
    assert (
        f"vectors      of {PUBLISHED_MODEL}, which still works; memory-mesh/MiniLM-everyday-2 "
        "finds more; run"
    ) in said.out
    assert cli("reembed").code == 0
    assert advice() == []


def test_a_store_of_another_embedder_gets_no_advice_about_the_local_model(cli, store, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    assert "finds more" not in cli("doctor").out


def test_a_record_of_the_model_that_cannot_be_read_fails_one_check_and_the_others_are_shown(
    cli, store, monkeypatch
):
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    sql(store, "UPDATE records SET extra = '{' WHERE kind = 'meta' AND id = 'embedding'")
    assert failed(cli("doctor", "--json")).keys() == {"vectors"}


# --- permissions ---

LOOSE = [
    "",
    "memory.db",
    "memory.db-wal",
    "memory.db-shm",
    "memory.db-index",
    "memory.db-index/a.index",
    "audit.key",
]


@pytest.mark.parametrize(
    "name", [*LOOSE, "pseudonym.key", "memory-mesh.toml", "dead-letters.jsonl"]
)
@pytest.mark.parametrize("mode", [0o040, 0o004, 0o022])
@pytest.mark.sample(12)
def test_what_others_can_reach_is_named_with_the_command_that_closes_it(
    cli, store, home, name, mode
):
    assert "permissions" not in failed(cli("doctor", "--json"))
    with closing(sqlite3.connect(store)) as other:
        # The log is there as long as someone reads.
        other.execute("SELECT 1 FROM sqlite_master").fetchone()
        path = home / name
        if path.suffix == ".index":
            path.parent.mkdir(mode=0o700)
        if name == "memory.db-index":
            path.mkdir(mode=0o700)
        elif not path.exists():
            path.touch(mode=0o600)
            path.write_bytes(b"k" * 32 if path.suffix == ".key" else b"")
        path.chmod(path.stat().st_mode | mode)
        broken = failed(cli("doctor", "--json"))["permissions"]
        assert str(path) in broken["detail"]
        command = broken["remedy"].removeprefix("run ")
        assert shlex.quote(str(path)) in command.removeprefix("chmod go-rwx ").split()
        subprocess.run(shlex.split(command), check=True)
        if name == "memory.db":
            # SQLite gave its log the same rights; the next reader to close makes it anew.
            cli("doctor", "--json")
        assert "permissions" not in failed(cli("doctor", "--json"))


def test_files_outside_the_home_are_checked_too(cli, home, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_AUDIT_KEY_FILE", str(tmp_path / "keys" / "my audit.key"))
    cli("store", "--content", "Tea at five.", "--store", "my memory.db")
    tmp_path.chmod(0o755)  # the folder of a project may be open
    assert failed(cli("doctor", "--json", "--store", "my memory.db")) == {}
    for name in ("my memory.db", "keys/my audit.key"):
        (tmp_path / name).chmod(0o644)
        broken = failed(cli("doctor", "--json", "--store", "my memory.db"))["permissions"]
        assert name in broken["detail"]
        subprocess.run(shlex.split(broken["remedy"].removeprefix("run ")), cwd=tmp_path, check=True)
    assert failed(cli("doctor", "--json", "--store", "my memory.db")) == {}


def test_a_link_that_leads_nowhere_is_named_and_not_followed(cli, store, home, tmp_path):
    (home / "pseudonym.key").symlink_to(tmp_path / "stick" / "pseudonym.key")
    (home / "memory.db").rename(tmp_path / "away.db")
    (home / "memory.db").symlink_to(tmp_path / "nowhere.db")
    broken = failed(cli("doctor", "--json"))["permissions"]
    assert (
        f"{home / 'memory.db'} and {home / 'pseudonym.key'} are links that lead nowhere"
        in broken["detail"]
    )
    assert not (tmp_path / "nowhere.db").exists()
    assert not (tmp_path / "stick").exists()


def test_a_file_of_memory_lane_or_of_an_older_version_is_checked_as_it_is(cli, home, tmp_path):
    lane_file(tmp_path / "lane.db").chmod(0o600)
    older_file(tmp_path / "older.db", "0.1-foundation.db")[0].chmod(0o600)
    before = snapshot(tmp_path)
    for name in ("lane.db", "older.db"):
        said = cli("doctor", "--store", name)
        assert "the next write upgrades it" in said.out
    assert snapshot(tmp_path) == before
