"""Above `index_max_memories` one statement in the database finds what comparing all memories
would."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from unittest.mock import patch

import pytest

from index.corpus import open_mesh
from memory_mesh import MemoryMesh
from memory_mesh.api.overview import overview_of
from memory_mesh.core.model import Kind, Reader, partition_for, visible_to
from memory_mesh.core.ports import Store
from memory_mesh.core.search import tokens
from memory_mesh.index.local import LocalSnapshot
from memory_mesh.index.remote import CandidateSnapshot
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres.calls import FunctionStore
from memory_mesh.stores.supabase import SupabaseStore
from memory_mesh.testing.rows import memory

from .postgres import Server
from .supabase import KEY, Project

pytestmark = pytest.mark.deep

COUNT = 2400
WORDS = [first + last for first in ("bar", "cel", "dom", "fen", "gul", "hap", "jor", "kil", "lum",
         "nev") for last in ("ton", "ric", "mas", "den", "lok", "vin", "sar", "pol", "gat", "bur",
         "zim", "wex")]  # fmt: skip
QUERIES = [
    f"{WORDS[at * 7 % 120]} {WORDS[at * 13 % 120]} {WORDS[at * 29 % 120]}" for at in range(40)
]
SECRET = "The barton celric was hidden under number 7"
FILTER = "speaker = 'Mara' AND turn < 12"


def text(at: int) -> str:
    """Return a sentence of words of which some are common and some are rare."""
    words = (WORDS[at * step * step // 5 % (30 * step)] for step in (1, 2, 3, 4))
    return f"The {' '.join(words)} {WORDS[at * 31 % 120]} number {at} was found"


@pytest.fixture(scope="module")
def project(server: Server) -> Iterator[Project]:
    project = Project(server)
    with closing(PostgresStore(project.database_url)) as store, open_mesh(store) as mesh:
        for user in ("ann", "bob"):
            handle = mesh.scoped(user_id=user, agent_id="planner")
            for first in range(0, COUNT if user == "ann" else 300, 300):
                handle.add_many([
                    (
                        text(at),
                        {
                            "session_id": f"{user}{at // 20}", "turn": at % 20,
                            "speaker": ("Mara", "Piotr")[at % 2],
                        },
                    )
                    for at in range(first, first + 300)
                ])  # fmt: skip
        store.apply([
            memory(
                "secret", partition=partition_for("ann", "planner", "session", None),
                user_id="ann", agent_id="planner", session_id="mine", memory_type="session",
                content=SECRET, keywords=tokens(SECRET), status="active",
            )
        ])  # fmt: skip
    yield project
    project.stop()


@pytest.fixture(scope="module", params=["postgresql", "supabase"])
def store(request: pytest.FixtureRequest, project: Project) -> Iterator[FunctionStore]:
    made = PostgresStore(project.database_url) if request.param == "postgresql" else SupabaseStore(
        project.url, KEY
    )  # fmt: skip
    with closing(made) as store:
        yield store


def opened(store: Store, *, above: bool) -> MemoryMesh:
    """Open a mesh in which memories are above the bound, or all in memory."""
    return open_mesh(store, index_max_memories=50 if above else 100_000)


def answers(mesh: MemoryMesh, *given: str) -> list[list[str]]:
    """Return the ids of the best ten of each query, of the memories of one user."""
    handle = mesh.scoped(user_id="ann", agent_id="planner")
    return [
        [hit.id for hit in handle.search(text, 10, *given, min_score=0, use_cache=False)]
        for text in QUERIES
    ]


@pytest.mark.parametrize("given", [(), (FILTER,)], ids=["all", "filtered"])
def test_above_the_bound_a_search_finds_nearly_what_comparing_all_memories_finds(
    store: FunctionStore, given: tuple[str, ...]
) -> None:
    with opened(store, above=False) as mesh:
        handle = mesh.scoped(user_id="ann", agent_id="planner")
        overview_of(handle).prepare_search()
        exact = answers(mesh, *given)
    with opened(store, above=True) as mesh:
        found = answers(mesh, *given)
    assert sum(map(len, exact)) == 10 * len(QUERIES)
    same = sum(len({*right}.intersection(ids)) for ids, right in zip(found, exact, strict=True))
    assert same >= 0.97 * 10 * len(QUERIES)


def test_the_bound_decides_where_a_search_runs(store: FunctionStore) -> None:
    for above, kind in ((True, CandidateSnapshot), (False, LocalSnapshot)):
        with opened(store, above=above) as mesh:
            handle = mesh.scoped(user_id="ann", agent_id="planner")
            overview_of(handle).prepare_search()
            context = handle._context()
            assert isinstance(context.index.snapshot(context.reader), kind)


def test_a_search_above_the_bound_is_one_statement(store: FunctionStore) -> None:
    """Two others ask for the state of the store, and for the rows of the results."""
    with (
        patch.object(store, "_call", wraps=store._call) as call,
        opened(store, above=True) as mesh,
    ):
        handle = mesh.scoped(user_id="ann", agent_id="planner")
        handle.search(QUERIES[0], use_cache=False)
        for given in ((), (FILTER,)):
            call.reset_mock()
            assert handle.search(QUERIES[1], 10, *given, use_cache=False)
            asked = Counter(one.args[0] for one in call.call_args_list)
            asked.pop("mesh_count", None)  # in the background: how many memories there are
            assert asked == {"mesh_data_version": 1, "mesh_search": 1, "mesh_find": 1}


def test_a_search_above_the_bound_finds_no_memory_of_another_scope(store: FunctionStore) -> None:
    with opened(store, above=True) as mesh:
        for user, other in (("ann", "bob"), ("bob", "ann")):
            handle = mesh.scoped(user_id=user, agent_id="planner")
            found = {hit.id for text in QUERIES for hit in handle.search(text, 20, min_score=0)}
            assert len(found) > 100
            rows = store.get(Kind.MEMORY, sorted(found)).values()
            assert {row.value("user_id") for row in rows} == {user}
            pool = store.candidate_source
            assert pool.speakers(visible_to(Reader(other, "planner")))
        for session, is_seen in (("mine", True), (None, False), ("another", False)):
            reader = mesh.scoped(user_id="ann", agent_id="planner", session_id=session)
            hits = reader.search(SECRET, 10, min_score=0, use_cache=False)
            assert hits
            assert (SECRET in {hit.content for hit in hits}) is is_seen


def test_a_misspelt_word_is_corrected_above_the_bound(store: FunctionStore) -> None:
    with opened(store, above=True) as mesh:
        handle = mesh.scoped(user_id="ann", agent_id="planner")
        explanation = handle.explain("bartno found")
        assert explanation.corrections == {"bartno": "barton"}


def test_a_search_above_the_bound_finds_as_many_as_are_asked_for(store: FunctionStore) -> None:
    with opened(store, above=True) as mesh:
        handle = mesh.scoped(user_id="ann", agent_id="planner")
        assert len(handle.search("found", 400, min_score=0, use_cache=False)) == 400
