"""Many meshes in one process: one store and one embedder for all of them, and nothing of one
user in the answers of another."""

import asyncio
import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.api.mesh import MemoryMesh as Built
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.audit import Sound
from memory_mesh.core.errors import InvalidInput, SettingsError, StoreClosed, StoreReplaced
from memory_mesh.core.model import Kind, partition
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.testing.fakes import FakeClock, seeded_ids

from .house import texts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


# --- one store for one file ---


def test_meshes_on_one_file_share_its_store_however_they_name_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    (file.parent / "link.db").symlink_to(file)
    names = [
        "memory.db",
        f"sqlite:///{file}",
        file,
        Path("memory.db"),
        "./link.db",
        "sqlite:///memory.db?mode=rw",
    ]
    meshes = [MemoryMesh(name, user_id=f"u{n}") for n, name in enumerate(names)]
    contexts = [mesh._context() for mesh in meshes]
    assert (
        len({id(context.store) for context in contexts})
        == len({id(context.index) for context in contexts})
        == 1
    )
    assert MemoryMesh(file.parent / "other.db")._context().store is not contexts[0].store
    with MemoryMesh(f"sqlite:///{file}?mode=rw", step=lambda name: None) as private:
        assert private._context().store is not contexts[0].store


def test_equal_options_share_everything_but_the_reader(file: Path) -> None:
    one, other = (MemoryMesh(file, user_id=user, embedder="hash") for user in ("ann", "bob"))
    assert one._context().state is other._context().state
    assert one._context().models.embedder is other._context().models.embedder
    assert (one._context().reader.user_id, other._context().reader.user_id) == ("ann", "bob")


def test_the_local_model_is_loaded_once_for_all_files(tmp_path: Path) -> None:
    meshes = [
        MemoryMesh(tmp_path / f"{n}.db", embedder="local", ranker=ranker)
        for n, ranker in ((1, "rrf"), (2, "learnt"))
    ]
    assert meshes[0]._context().models.embedder is meshes[1]._context().models.embedder
    assert meshes[0]._context().store is not meshes[1]._context().store


def test_the_last_close_closes_the_store(file: Path) -> None:
    one, other = MemoryMesh(file, user_id="ann"), MemoryMesh(file, user_id="bob")
    store = one._context().store
    other.add("text")
    one.close()
    one.close()  # it counts once
    assert store.count(Kind.MEMORY) == 1
    assert other.get_all()
    other.close()
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)
    assert texts(other.get_all()) == ["text"]  # opened again
    other.close()


def test_a_mesh_that_is_garbage_does_not_keep_the_store_open(file: Path) -> None:
    mesh = MemoryMesh(file)
    store = mesh._context().store
    MemoryMesh(file, user_id="ann").add("text")
    mesh.scoped(user_id="bob").add("text")
    gc.collect()
    assert store.count(Kind.MEMORY) == 2
    mesh.close()
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)


@pytest.mark.parametrize("store", ["memory://", None])
def test_a_store_in_memory_and_a_store_object_are_not_shared(store: str | None) -> None:
    given = RamStore()
    one, other = MemoryMesh(store or given), MemoryMesh(store or given)
    one.add("text")
    assert one._context().state is not other._context().state
    assert texts(other.get_all()) == ([] if store else ["text"])
    handle = one.scoped(agent_id="bob")
    assert texts(handle.get_all()) == ["text"]
    assert handle._context().state is one._context().state
    one.close()
    handle.close()
    if not store:
        assert given.count(Kind.MEMORY) == 1  # it is the caller's and stays open


# --- options ---


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        ({"embedder": "hash"}, {"embedder": "none"}, "embedder"),
        (
            {"embedder": HashingEmbedder()},
            {"embedder": HashingEmbedder(64)},
            "embedder hashing/256",
        ),
        ({"embedder": "hash"}, {"embedder": HashingEmbedder(64)}, "embedder hash"),
        ({"embedding_window": 100}, {}, "embedding_window 100"),
        ({"embedding_api_key": "sk-one"}, {"embedding_api_key": "sk-two"}, "embedding_api_key"),
        ({}, {"model_path": "models"}, "model_path"),
        ({"busy_seconds": 3}, {"busy_seconds": 4}, "busy_seconds"),
        ({}, {"stemmer_language": "german"}, "stemmer_language english"),
    ],
)
def test_another_embedder_or_store_option_on_an_open_file_is_an_error_that_names_it(
    file: Path, first: dict[str, object], second: dict[str, object], name: str
) -> None:
    with MemoryMesh(file, **first) as mesh:
        other = MemoryMesh(file, **second)
        with pytest.raises(SettingsError, match=f"is open in this process with {name}") as refused:
            other.add("text")
        assert "sk-" not in str(refused.value)
        assert "close the other meshes first" in str(refused.value)
        mesh.init()
        assert mesh.get_all() == []
    with other:  # nobody else has it open now
        assert other.add("text").content == "text"


def test_two_embedder_objects_of_one_model_may_be_used_on_one_file(file: Path) -> None:
    with (
        MemoryMesh(file, embedder=HashingEmbedder()) as one,
        MemoryMesh(file, embedder=HashingEmbedder()) as other,
    ):
        one.add("tea in the morning")
        assert texts(other.search("morning tea")) == ["tea in the morning"]
        assert one._context().store is other._context().store


def test_meshes_that_rank_redact_and_limit_differently_share_the_store_and_no_answer(
    file: Path,
) -> None:
    with (
        MemoryMesh(file) as plain,
        MemoryMesh(file, ranker="rrf", max_content_chars=30, redaction="off") as other,
    ):
        plain.add("the deploy key rotates on mondays")
        plain.add("mail to ann@example.org")
        with pytest.raises(InvalidInput, match="max_content_chars"):
            other.add("the deploy key rotates on mondays too")
        other.add("mail to bob@example.org")
        assert texts(plain.get_all())[:2] == ["mail to [EMAIL]", "mail to bob@example.org"]
        scores = [
            [hit.score for hit in mesh.search("deploy key")]
            for mesh in (plain, other, plain, other)
        ]
        assert scores[0] == scores[2] != scores[1] == scores[3]
        assert plain._context().store is other._context().store


def test_a_query_is_masked_by_the_mesh_that_searched(file: Path) -> None:
    plain, careful = (
        MemoryMesh(file, user_id="ann", redaction="off"),
        MemoryMesh(file, user_id="bob"),
    )
    plain.add("text")
    plain.search("who is one@example.org")
    careful.search("who is two@example.org")
    plain.close()
    careful.close()
    written = b"".join(path.read_bytes() for path in file.parent.glob("memory.db*"))
    assert b"one@example.org" in written
    assert b"two@example.org" not in written
    assert b"who is [EMAIL]" in written


# --- threads, files and forks ---


@pytest.mark.deep
def test_threads_open_use_and_close_fifty_meshes_on_one_file(file: Path) -> None:
    def visit(n: int) -> list[str]:
        with MemoryMesh(file, user_id=f"u{n}", embedder="hash") as mesh:
            mesh.add(f"the number of user {n}")
            hits = texts(mesh.search("number of the user"))
            handle = mesh.scoped(session_id="s")
        with handle:  # opened again, perhaps
            handle.add("session note", {"type": "session"})
        return hits

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(visit, range(50)))
    assert found == [[f"the number of user {n}"] for n in range(50)]
    with MemoryMesh(file, embedder="hash") as mesh:
        for n in (0, 49):
            handle = mesh.scoped(user_id=f"u{n}", session_id="s")
            assert len(handle.get_all()) == 2
            assert all(isinstance(verdict, Sound) for verdict in handle.verify())
            assert len(handle.audit_log(recalls=True)) == 1
            assert handle.search("number")[0].access_count == 1


def test_one_mesh_may_be_closed_by_one_thread_while_others_use_it(file: Path) -> None:
    mesh = MemoryMesh(file)
    keeper = MemoryMesh(file, user_id="keeper")
    keeper.init()

    def use(n: int) -> None:
        if n % 10 == 0:
            mesh.close()
        else:
            mesh.add(f"text {n}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(100)))
    assert len(mesh.get_all()) == 90
    mesh.close()
    keeper.close()


def test_a_mesh_opened_after_the_file_was_replaced_uses_the_new_one(
    file: Path, tmp_path: Path
) -> None:
    with MemoryMesh(tmp_path / "backup.db") as backup:
        backup.add("from the backup")
    stale, closed = MemoryMesh(file), MemoryMesh(file)
    stale.add("lost with the old file")
    closed.get_all()
    closed.close()
    for path in file.parent.glob("memory.db*"):  # with its log
        path.rename(path.with_name(f"old {path.name}"))
    (tmp_path / "backup.db").rename(file)
    assert texts(MemoryMesh(file).get_all()) == texts(closed.get_all()) == ["from the backup"]
    with pytest.raises(StoreReplaced, match="close the store"):
        stale.add("text")
    stale.close()
    assert texts(stale.get_all()) == ["from the backup"]


# Forks while other threads search and open; the child uses the parent's mesh, a new handle and a
# new mesh.
FORKED = """
import os, sys, threading, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # that \
is what is tried here
from memory_mesh import MemoryMesh

file, = sys.argv[1:]
mesh = MemoryMesh(file, user_id="ann", embedder="hash")
mesh.add("notes of a comet")
private = MemoryMesh("memory://")
private.add("only here")
mesh.scoped(user_id="bob").search("comet")  # a fork during an import may block the child, in \
every program
stop = threading.Event()

def work():
    while not stop.is_set():
        mesh.scoped(user_id="bob").search("comet", use_cache=False)
        MemoryMesh(file, user_id="eve", embedder="hash").get_all()

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for n in range(8):
    state = mesh._context().state
    child = os.fork()
    if child == 0:
        assert mesh._context().state is not state
        assert [hit.content for hit in mesh.search("comet")] == ["notes of a comet"]
        mesh.scoped(user_id=f"child{n}").add("written by a child")
        with MemoryMesh(file, user_id="ann", embedder="hash") as other:
            assert other._context().store is mesh._context().store
            assert len(other.get_all()) == 1
        mesh.close()
        assert [record.content for record in private.get_all()] == ["only here"]
        os._exit(0)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
stop.set()
for thread in threads:
    thread.join()
mesh.search("comet")
mesh.close()
sys.exit(any(codes))
"""


@pytest.mark.deep
def test_a_fork_shares_no_queue_with_its_parent(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(file)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with MemoryMesh(file, user_id="ann", embedder="hash") as mesh:
        assert len(mesh.audit_log(limit=100, recalls=True)) == 9  # of each child, and of the parent
        assert mesh.get_all()[0].access_count == 9
        for n in range(8):
            assert texts(mesh.scoped(user_id=f"child{n}").get_all()) == ["written by a child"]
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


# --- the same answers ---

USERS = ("ann", "bob")
TEXTS, CALLS = ("tea", "green tea", "coffee"), ("add", "search", "list")
STEPS = st.lists(st.tuples(*map(st.sampled_from, (USERS, CALLS, TEXTS))), min_size=1, max_size=8)


def play(mesh: Mesh, name: str, text: str) -> list[tuple[str, float | None, int]]:
    if name == "add":
        return [(mesh.add(text).content, None, 0)]
    if name == "list":
        return [(record.content, None, record.times_observed) for record in mesh.get_all()]
    return [(hit.content, hit.score, hit.access_count) for hit in mesh.search(text)]


@settings(max_examples=10)
@given(steps=STEPS)
def test_answers_are_the_same_shared_or_alone(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    options = {"clock": FakeClock().seconds, "ids": seeded_ids(), "embedder": "hash"}
    root = MemoryMesh(folder / "shared.db", **options)
    root.init()
    handles = {user: root.scoped(user_id=user) for user in USERS}
    alone = {user: MemoryMesh(folder / f"{user}.db", user_id=user, **options) for user in USERS}
    for mesh in alone.values():
        mesh.init()
    for user, name, text in steps:
        assert play(handles[user], name, text) == play(alone[user], name, text)
    for mesh in (root, *handles.values(), *alone.values()):
        mesh.close()


# --- scoped handles ---


def test_a_handle_inherits_what_is_not_given(file: Path) -> None:
    mesh = MemoryMesh(file, agent_id="planner", user_id="ann", session_id="s", max_content_chars=9)
    handle = mesh.scoped(user_id="bob").scoped(project="apollo")
    assert type(handle) is Built
    assert repr(handle) == (
        f"MemoryMesh('sqlite:///{file}', agent_id='planner', user_id='bob', session_id='s', "
        "project='apollo')"
    )
    record = handle.add("text")
    assert (record.user_id, record.agent_id, record.session_id) == ("bob", "planner", "s")
    with pytest.raises(InvalidInput, match="max_content_chars"):
        handle.add("more than nine")
    assert mesh.get(record.id) is None
    assert handle.get(record.id) == record


@pytest.mark.parametrize("name", ["user_id", "agent_id", "session_id", "project"])
@pytest.mark.parametrize("wrong", ["", " ", 5])
def test_a_handle_for_a_blank_name_is_refused(name: str, wrong: object) -> None:
    mesh = MemoryMesh("memory://")
    with pytest.raises(SettingsError, match=name):
        mesh.scoped(**{name: wrong})
    assert mesh.scoped(**{name: "right"}).add("text").content == "text"


def test_closing_a_handle_closes_nothing_that_others_use_and_either_opens_again(file: Path) -> None:
    mesh = MemoryMesh(file)
    with mesh.scoped(user_id="ann") as ann:
        ann.add("of ann")
        ann.search("ann")
    mesh.add("of nobody")
    store = mesh._context().store
    assert len(mesh.scoped(user_id="ann").audit_log(recalls=True)) == 1  # closing wrote it
    ann.get_all()
    mesh.close()
    assert store.count(Kind.MEMORY) == 2
    ann.close()
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)
    assert texts(ann.get_all()) == ["of ann"]
    assert texts(mesh.get_all()) == ["of nobody"]
    ann.close()
    mesh.close()


def test_a_handle_of_a_subclass_is_of_the_subclass() -> None:
    class Counting(MemoryMesh):
        def __init__(self, name: str) -> None:
            super().__init__("memory://")
            self.name = name

    handle = Counting("mine").scoped(user_id="ann")
    assert isinstance(handle, Counting)
    assert handle.name == "mine"


def test_an_async_handle_is_made_without_waiting(file: Path) -> None:
    async def run() -> tuple[str, list[str], list[str]]:
        async with AsyncMemoryMesh(file, agent_id="planner") as mesh:
            ann = mesh.scoped(user_id="ann")
            async with ann:
                await ann.add("of ann")
            await mesh.add("of nobody")
            return repr(ann), texts(await ann.get_all()), texts(await mesh.get_all())

    shown, own, others = asyncio.run(run())
    assert shown == f"AsyncMemoryMesh('sqlite:///{file}', agent_id='planner', user_id='ann')"
    assert (own, others) == (["of ann"], ["of nobody"])


def test_a_handle_takes_few_calls_and_less_than_ten_kilobytes(file: Path) -> None:
    """Counted, not timed: 37 calls took about 30 microseconds."""
    import tracemalloc

    mesh = MemoryMesh(file)
    mesh.init()

    def handles(number: int) -> list[MemoryMesh]:
        return [mesh.scoped(user_id=f"u{n}") for n in range(number)]

    handles(1)
    assert 0 < _calls(lambda: handles(100)) / 100 < 60
    tracemalloc.start()
    kept = handles(100)
    for handle in kept:
        handle._context()
    size = tracemalloc.get_traced_memory()[0] / len(kept)
    tracemalloc.stop()
    assert size < 10_000
    mesh.close()


def _calls(run: Callable[[], object]) -> int:
    """Return how many functions of Python and of C are called."""
    events: Counter[str] = Counter()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _argument: events.update([event]))
    try:
        run()
    finally:
        sys.setprofile(before)
    return events["call"] + events["c_call"]


SCOPES = list(product(("u1", "u2", None), ("ann", "bob"), ("s1", None), ("apollo", "gemini", None)))


@pytest.mark.req("MESH-025")
def test_handles_with_one_cache_give_each_reader_its_own_answers(file: Path) -> None:
    mesh = MemoryMesh(file, embedder="hash")
    handles = {}
    for scope in SCOPES:
        user, agent, session, project = scope
        handles[scope] = handle = mesh.scoped(
            user_id=user, agent_id=agent, session_id=session, project=project
        )
        handle.add(f"secret of {scope}", {"type": "session" if session else "agent"})
    expected = {}
    for scope, handle in handles.items():
        user, agent, session, project = scope
        seen = [
            f"secret of {other}" for other in SCOPES
            if other[:2] == (user, agent) and other[2] in (session, None) and (
                project is None or other[3] in (project, None)
            )
        ]  # fmt: skip
        expected[scope] = sorted(seen)
        assert texts(handle.search("secret", limit=100)) == sorted(seen)
        assert texts(handle.get_all()) == sorted(seen)
    assert len({tuple(seen) for seen in expected.values()}) == len(SCOPES)
    hits = mesh.get_cache_stats().hits
    for scope, handle in [*handles.items()][::-1]:
        assert texts(handle.search("secret", limit=100)) == expected[scope]
        assert texts(handle.search("secret", limit=100, session_id="s2")) == texts(
            handle.get_all(session_id="s2")
        )
    assert mesh.get_cache_stats().hits >= hits + len(SCOPES)


def test_usage_counts_of_several_users_are_written_where_their_memories_are(file: Path) -> None:
    mesh = MemoryMesh(file)
    handles = [mesh.scoped(user_id=f"u{n}") for n in range(25)]
    for handle in handles:
        handle.add("tea")
        handle.search("tea")
    mesh.close()
    for handle in handles:
        handle.close()
    with closing(SqliteStore(file)) as store:
        rows = store.find(Kind.USAGE)
        assert sorted(row.partition for row in rows) == sorted(
            partition(f"u{n}", None) for n in range(25)
        )
    assert {handle.get_all()[0].access_count for handle in handles} == {1}


# --- projects ---


def test_a_project_gets_new_memories_and_selects_what_is_shown(file: Path) -> None:
    mesh = MemoryMesh(file, embedder="hash")
    apollo, gemini = mesh.scoped(project="apollo"), mesh.scoped(project="gemini")
    apollo.add("launch of apollo")
    of_gemini = gemini.add("launch of gemini")
    mesh.add("launch checklist")
    elsewhere = apollo.add("launch of mercury", {"project": "mercury"})
    mine = ["launch checklist", "launch of apollo"]
    assert texts(apollo.get_all()) == texts(apollo.search("launch")) == mine
    assert texts(answer.result for answer in apollo.explain("launch").answers) == mine
    assert texts(apollo.search("launch", filter="content LIKE '%apollo'")) == ["launch of apollo"]
    assert texts(gemini.search("launch")) == ["launch checklist", "launch of gemini"]
    assert len(mesh.search("launch")) == len(mesh.get_all()) == 4
    # A project selects, it does not protect.
    assert apollo.get(of_gemini.id).content == "launch of gemini"
    assert texts(mesh.get_all(filter="project = 'mercury'")) == [elsewhere.content]
    changed = gemini.update(elsewhere.id, content="launch of mercury two")
    assert texts(mesh.get_all(filter="project = 'mercury'")) == [changed.content]


def test_a_folder_ingested_in_two_projects_is_in_both(file: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("text of a file")
    mesh = MemoryMesh(file)
    for project in ("apollo", "gemini"):
        handle = mesh.scoped(project=project)
        assert handle.ingest_dir(tmp_path / "notes").added == 1
        assert texts(handle.get_all()) == ["text of a file"]


# --- what a mesh says about itself ---


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"store": "memory.db"}, "('sqlite:///memory.db', agent_id='YAMO_AGENT')"),
        ({"store": Path("memory.db"), "agent_id": "planner", "user_id": "ann"},
         "('sqlite:///memory.db', agent_id='planner', user_id='ann')"),
        ({"store": "postgresql://ann:hunter2@host/db"},
         "('postgresql://ann:***@host/db', agent_id='YAMO_AGENT')"),
        ({"store": RamStore(), "session_id": "it's"},
         "('memory://', agent_id='YAMO_AGENT', session_id=\"it's\")"),
    ],
)  # fmt: skip
def test_a_mesh_shows_its_store_and_scope_and_opens_nothing(
    nothing_set: Path, options: dict[str, object], shown: str
) -> None:
    assert repr(MemoryMesh(**options)) == f"MemoryMesh{shown}"
    assert repr(AsyncMemoryMesh(**options)) == f"AsyncMemoryMesh{shown}"
    assert list((nothing_set / "work").iterdir()) == []
