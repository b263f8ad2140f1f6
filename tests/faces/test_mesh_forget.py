"""Forgetting a memory, a scope or a user: nothing of it is left, in any row, file or search, and
everything of others is."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import Forgotten, InvalidInput, MemoryMesh, Sound, StoreMissing
from memory_mesh.core.model import Status
from memory_mesh.flows.upkeep import forget

WORDS = (
    "lantern needs oil", "lantern needs paraffin", "umbrella stand", "secret of the session",
    "where is my umbrella", "heard in the hall", "name of a session",
)  # fmt: skip


def opened(tmp_path: Path, **options: object) -> MemoryMesh:
    return MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}", embedder="hash", **options)


def fill(tmp_path: Path, user_id: str) -> None:
    """Memories of two agents, a revision, a session, a search, an idempotency key, a text that
    both agents stored."""
    with opened(tmp_path, user_id=user_id, agent_id="planner", session_id="s1") as mesh:
        id_ = mesh.add(f"The {WORDS[0]}, says {user_id}", idempotency_key="once").id
        mesh.update(id_, content=f"The {WORDS[1]}, says {user_id}")
        mesh.add(f"A {WORDS[3]} of {user_id}", {"type": "session"})
        mesh.search(f"{WORDS[4]}, asks {user_id}")
        mesh.lane.on_session_event(
            "session.idle",
            [{"role": "user", "content": "Hi!"}],
            session_id=f"{WORDS[6]} of {user_id}",
        )
    with opened(tmp_path, user_id=user_id, agent_id="tester") as mesh:
        mesh.add(f"The {WORDS[2]} of {user_id}", {"type": "agent"})
        mesh.add(f"The {WORDS[1]}, says {user_id}", {"where": f"{WORDS[5]} of {user_id}"})


def left(tmp_path: Path, user_id: str) -> set[str]:
    """The words of a user that are in any byte of any file; read when the store is closed."""
    data = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    return {
        words
        for words in WORDS
        if any(
            f"{words}{link}{user_id}".encode() in data for link in (", says ", " of ", ", asks ")
        )
    }


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("caller", [None, "ana"])
def test_everything_of_the_user_goes_and_everything_of_others_stays(
    tmp_path: Path, caller: str | None
) -> None:
    fill(tmp_path, "ana")
    fill(tmp_path, "bob")
    assert left(tmp_path, "ana") == left(tmp_path, "bob") == set(WORDS)
    with opened(tmp_path, user_id=caller, agent_id="keeper") as mesh:
        proof = mesh.forget(user_id="ana", verify=True)
    assert left(tmp_path, "ana") == set()
    assert left(tmp_path, "bob") == set(WORDS)
    assert len(proof.memories) == 3
    assert proof.bytes_freed
    assert proof.check is not None
    assert (proof.check.texts, proof.check.found_before, proof.check.found) == (5, 5, ())
    assert proof.check.clean
    for user_id in ("ana", "bob"):
        with opened(tmp_path, user_id=user_id, agent_id="auditor") as mesh:
            assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        rows = connection.execute(
            "SELECT kind, count(*) FROM records WHERE partition LIKE '[\"ana\"%' GROUP BY kind"
        ).fetchall()
        assert rows == []


def test_looking_at_the_bytes_of_the_file_keeps_the_locks_of_the_open_store(tmp_path: Path) -> None:
    fill(tmp_path, "ana")
    program = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode "
        "= DELETE')"
    )

    def changes_mode() -> bool:
        command = [sys.executable, "-c", program, str(tmp_path / "memory.db")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    with opened(tmp_path) as mesh:
        assert mesh.forget(user_id="ana", verify=True).check is not None
        assert not changes_mode()  # SQLite allows it only without other connections
    assert changes_mode()


def test_the_check_finds_a_text_that_was_left_behind(tmp_path: Path) -> None:
    fill(tmp_path, "ana")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute("CREATE TABLE copies AS SELECT content FROM memories")
        connection.commit()
    with opened(tmp_path) as mesh:
        check = mesh.forget(user_id="ana", verify=True).check
        assert check is not None
        assert len(check.found) == 3
        assert {file for _, file in check.found} == {"memory.db"}
        assert not check.clean


def test_the_words_of_another_user_are_not_taken_for_those_of_the_forgotten_one(
    tmp_path: Path,
) -> None:
    for user_id in ("ana", "bob"):
        with opened(tmp_path, user_id=user_id) as mesh:
            mesh.add("The weather is fine today")
            mesh.add("Hi")
    with opened(tmp_path) as mesh:
        check = mesh.forget(user_id="ana", verify=True).check
    assert check is not None
    assert (check.texts, check.too_short, check.shared, check.clean) == (1, 1, 1, True)
    with opened(tmp_path, user_id="bob") as mesh:
        assert len(mesh.get_all()) == 2


@pytest.mark.parametrize("name", ["a%", "a_", "a", '"', "ana bob", "é", "[x]"])
def test_a_user_whose_name_looks_like_anothers_is_the_only_one_forgotten(
    tmp_path: Path, name: str
) -> None:
    others = {"ab", "a%b", "aa", "a1"} - {name}
    for user_id in (name, *others):
        with opened(tmp_path, user_id=user_id) as mesh:
            mesh.add(f"The umbrella of {user_id}", idempotency_key="once")
    with opened(tmp_path) as mesh:
        assert len(mesh.forget(user_id=name).memories) == 1
    for user_id in others:
        with opened(tmp_path, user_id=user_id) as mesh:
            repeated = mesh.add(f"The umbrella of {user_id}", idempotency_key="once")
            assert repeated.times_observed == 1  # the key is known
    with opened(tmp_path, user_id=name) as mesh:
        assert mesh.get_all() == []
        assert mesh.add("Another text", idempotency_key="once").revision == 1  # the key is free


def test_the_mesh_of_another_user_forgets_nobody(tmp_path: Path) -> None:
    fill(tmp_path, "ana")
    with opened(tmp_path, user_id="bob") as mesh:
        with pytest.raises(InvalidInput, match="user_id is not the user of this mesh"):
            mesh.forget(user_id="ana")
        with pytest.raises(InvalidInput):
            mesh.forget(user_id="")
    assert left(tmp_path, "ana") == set(WORDS)
    with pytest.raises(StoreMissing):
        opened(tmp_path / "elsewhere").forget(user_id="ana")


def test_a_user_of_whom_nothing_is_stored_is_forgotten_too() -> None:
    with MemoryMesh(store="memory://", embedder="hash") as mesh:
        mesh.add("The umbrella")
        proof = mesh.forget(user_id="ana", verify=True)
        assert (proof.memories, proof.rows) == ((), 0)
        assert proof.check is not None
        assert proof.check.clean
        assert len(mesh.get_all()) == 1


def test_a_broken_chain_of_searches_keeps_its_queries_and_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "ana")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        connection.execute(
            "UPDATE yamo_blocks SET yamo_text = yamo_text || ' ' WHERE operation_type = 'recall'"
        )
        connection.commit()
    with opened(tmp_path) as mesh:
        proof = mesh.forget(user_id="ana", verify=True)
    assert proof.damaged == ('["recalls", "ana", "planner"]',)
    assert proof.check is not None
    assert len({id_ for id_, _ in proof.check.found}) == 1
    assert left(tmp_path, "ana") == {WORDS[4]}


# --- one memory, or a scope ---


@pytest.mark.parametrize("by", ["id", "key"])
def test_a_memory_is_forgotten_by_its_id_or_its_key_and_its_bytes_are_freed(
    tmp_path: Path, by: str
) -> None:
    with opened(tmp_path, agent_id="planner") as mesh:
        gone = mesh.add("The lantern needs oil", key="lantern")
        mesh.add("The umbrella stand")
        proof = mesh.forget(gone.id) if by == "id" else mesh.forget(key="lantern")
        assert (proof.memories, proof.bytes_freed, proof.check) == ((gone.id,), True, None)
        assert [memory.content for memory in mesh.get_all()] == ["The umbrella stand"]
        assert not any(b"needs oil" in file.read_bytes() for file in tmp_path.rglob("*.db*"))
        assert mesh.forget(gone.id).memories == mesh.forget(key="lantern").memories == ()
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({}, "no id, key or scope is given"),
        ({"files": True, "verify": True}, "no id, key or scope is given"),
        ({"id": "ID", "key": "k"}, "id and key are given together"),
        ({"id": "ID", "user_id": "ana"}, "id and user_id are given together"),
        ({"key": "k", "agent_id": "a", "project": "p"}, "key and agent_id and project are given"),
    ],
)
def test_what_to_forget_is_named_in_exactly_one_way(given: dict[str, object], what: str) -> None:
    with MemoryMesh("memory://", embedder="none") as mesh:
        kept = mesh.add("The lantern needs oil", key="k")
        with pytest.raises(InvalidInput) as refused:
            mesh.forget(**{name: kept.id if one == "ID" else one for name, one in given.items()})
        assert str(refused.value).startswith(what)
        assert "expected an id, a key, or a scope: user_id, agent_id" in str(refused.value)
        assert len(mesh.get_all()) == 1


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("caller", [None, "ana"])
def test_a_user_is_narrowed_by_what_else_is_given(tmp_path: Path, caller: str | None) -> None:
    fill(tmp_path, "ana")
    fill(tmp_path, "bob")
    with opened(tmp_path, user_id=caller, agent_id="keeper") as mesh:
        proof = mesh.forget(user_id="ana", agent_id="tester", verify=True)
    assert left(tmp_path, "ana") == set(WORDS) - {WORDS[2], WORDS[5]}
    assert left(tmp_path, "bob") == set(WORDS)
    assert (len(proof.memories), len(proof.kept), proof.bytes_freed) == (1, 1, True)
    assert proof.check is not None
    assert (proof.check.texts, proof.check.found_before, proof.check.clean) == (1, 1, True)
    with opened(tmp_path, user_id="ana") as mesh:
        with pytest.raises(InvalidInput, match="user_id is not the user of this mesh"):
            mesh.forget(user_id="bob", agent_id="tester")
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


@pytest.mark.req("MESH-011")
def test_the_check_of_a_scope_finds_what_was_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "ana")
    monkeypatch.setattr(forget, "delete_all", lambda *_, **__: Forgotten())
    with opened(tmp_path, user_id="ana") as mesh:
        check = mesh.forget(session_id="s1", verify=True).check
    assert check is not None
    assert not check.clean
    places = {place for _, place in check.found}
    assert {"memories and skills", "cached search", "texts of rows and audit blocks"} <= places


def test_deleting_all_of_a_user_forgets_the_user(tmp_path: Path) -> None:
    fill(tmp_path, "ana")
    with opened(tmp_path, user_id="ana") as mesh:
        assert len(mesh.delete_all(user_id="ana").memories) == 3
    assert left(tmp_path, "ana") == set()


def test_a_handle_of_one_project_forgets_no_id_of_another_but_a_scope_that_it_names(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, agent_id="planner") as mesh:
        other = mesh.add("The lantern needs oil", {"project": "atlas", "session_id": "s1"})
        handle = mesh.scoped(project="shop", only_project=True)
        assert handle.forget(other.id).memories == ()
        assert handle.forget(session_id="s1").memories == (other.id,)


# --- names and stores that are not there ---

EVERY_FORM = [
    {"id": "mem_1_ffffff"}, {"key": "k"}, {"user_id": "ana"}, {"agent_id": "planner"},
    {"session_id": "s1"}, {"project": "shop"}, {"memory_type": "agent"},
]  # fmt: skip


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("given", EVERY_FORM, ids=str)
def test_no_form_of_forget_makes_a_store_that_does_not_exist(
    tmp_path: Path, given: dict[str, str]
) -> None:
    with opened(tmp_path) as mesh:
        with pytest.raises(StoreMissing):
            mesh.forget(**given)
        if given.keys() & {"id", "key"}:
            with pytest.raises(StoreMissing):
                mesh.delete(**given)
        assert not [file for file in tmp_path.rglob("*") if file.is_file()]
        mesh.add("The umbrella stand")  # with a store, the same call is none
        assert mesh.forget(**given).memories == ()


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000"])
@pytest.mark.parametrize("caller", [None, "ana"])
def test_an_empty_name_is_refused_and_forgets_nothing(
    tmp_path: Path, caller: str | None, blank: str
) -> None:
    fill(tmp_path, "ana")
    with opened(tmp_path, user_id=caller, agent_id="planner") as mesh:
        mesh.add("The stand of nobody")
        for given in EVERY_FORM:
            name = next(iter(given))
            with pytest.raises(InvalidInput, match=f"{name} is empty; nothing was erased"):
                mesh.forget(**{name: blank})
        with pytest.raises(InvalidInput, match="user_id is empty"):
            mesh.forget(user_id=blank, agent_id="planner")
        with pytest.raises(InvalidInput, match="agent_id is empty"):
            mesh.delete_all(user_id="ana", agent_id=blank)
        for name in ("id", "key"):
            with pytest.raises(InvalidInput, match=f"{name} is empty"):
                mesh.delete(**{name: blank})
        kept = mesh.get_all(status=tuple(Status))
        assert "The stand of nobody" in [memory.content for memory in kept]
    assert left(tmp_path, "ana") == set(WORDS)


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("how", ["forget", "delete"])
@pytest.mark.parametrize("state", ["archived", "expired", "replaced"])
def test_the_key_of_a_memory_that_is_not_read_any_more_forgets_it(
    tmp_path: Path, state: str, how: str
) -> None:
    with opened(tmp_path, agent_id="planner") as mesh:
        past = {"expires_at": "2020-01-01"} if state == "expired" else {}
        hidden = mesh.add("The lantern needs oil", past, key="lantern").id
        if state != "expired":
            mesh.graph.archive(hidden)
        if state == "replaced":
            assert mesh.add("The lantern needs paraffin", key="lantern").id != hidden
        mesh.add("The umbrella stand", key="stand")
        others = mesh.scoped(agent_id="tester", project="shop")
        others.add("The lantern of the shop", key="lantern")
        getattr(mesh, how)(key="lantern")
        mesh.compact()
        assert len(others.get_all()) == 2
    data = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"The lantern needs" not in data
    assert data.count(b"The umbrella stand") > 0
    assert data.count(b"The lantern of the shop") > 0


# --- searches of another process ---

SEARCHING = """
import sys
from memory_mesh import MemoryMesh
for user_id in ("ana", "bob"):
    mesh = MemoryMesh(sys.argv[1], embedder="hash", user_id=user_id, agent_id="planner")
    mesh.search(f"where is my umbrella, asks {user_id}")
    globals()[user_id] = mesh  # its queue is written when it is closed
print("searched", flush=True)
sys.stdin.readline()
ana.close()
bob.close()
"""


@pytest.mark.req("MESH-011")
def test_searches_that_another_process_writes_later_bring_nothing_of_a_forgotten_user_back(
    tmp_path: Path,
) -> None:
    for user_id in ("ana", "bob"):
        with opened(tmp_path, user_id=user_id, agent_id="planner") as mesh:
            mesh.add(f"The umbrella stand of {user_id}")
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with subprocess.Popen(
        [sys.executable, "-c", SEARCHING, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "searched\n"
        with opened(tmp_path) as mesh:
            assert len(mesh.forget(user_id="ana").memories) == 1
        other.communicate("\n", timeout=60)
    assert other.returncode == 0
    assert left(tmp_path, "ana") == set()
    assert left(tmp_path, "bob") == {WORDS[2], WORDS[4]}
    with opened(tmp_path, user_id="bob", agent_id="planner") as mesh:
        assert mesh.get_all()[0].access_count == 1
    with opened(tmp_path, user_id="ana", agent_id="planner") as mesh:
        mesh.search("where is my lantern")  # a later search is logged as before
    assert b"where is my lantern" in (tmp_path / "memory.db").read_bytes()
