"""The Supabase store passes the contract on a real server in front of PostgreSQL, and a token
shows the rows of its user only."""

import hashlib
import hmac
import json
import traceback
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Thread
from unittest.mock import patch

import httpx
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from postgrest import SyncPostgrestClient

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import StoreError, StoreTooNew, StoreUnavailable
from memory_mesh.core.model import Key, Kind, equals, partition_for
from memory_mesh.core.ports import Secret, Store
from memory_mesh.core.search.candidates import Conditions
from memory_mesh.index.local import rows_of
from memory_mesh.net import HttpClient
from memory_mesh.stores.postgres import PostgresStore, calls
from memory_mesh.stores.postgres.tables import VERSION
from memory_mesh.stores.supabase import SupabaseStore
from memory_mesh.testing import StoreContract, machine_for
from memory_mesh.testing.rows import memory, passage
from memory_mesh.testing.state_machine import StoreMachine
from stores.properties import KEPT, READ

from .postgres import Server
from .supabase import JWT_SECRET, KEY, PUBLIC_KEY, Project

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module")
def project(server: Server) -> Iterator[Project]:
    project = Project(server)
    yield project
    project.stop()


@pytest.mark.one_in_ci(2)
class TestSupabase(StoreContract):
    """Rows in the tables of a project. Each test begins with empty tables."""

    @pytest.fixture(autouse=True)
    def _on(self, project: Project) -> None:
        self.project, self.place = project, Path()

    def open(self, place: Path) -> Store:
        if place.name == "elsewhere":
            return SupabaseStore(f"{self.project.url}&schema=elsewhere", KEY)
        if place != self.place:  # another place is another, empty store
            self.project.clear()
        self.place = place
        return SupabaseStore(self.project.url, KEY)

    def test_compacting_changes_no_answer(self, store: Store) -> None:
        store.apply([memory("m1")])
        assert not store.compact()  # only the owner of the database can
        assert store.count(Kind.MEMORY) == 1


# The SQL is that of the PostgreSQL store, which is tried with many examples.
for property_ in (*KEPT, *READ):
    assert hasattr(TestSupabase, property_)
    setattr(TestSupabase, property_, None)


def test_any_history_in_supabase_is_a_history_of_a_dict(project: Project) -> None:
    places: list[Path] = []

    def opened(place: Path) -> Store:
        if place not in places:
            project.clear()
            places.append(place)
        return SupabaseStore(project.url, KEY)

    effort = settings(StoreMachine.TestCase.settings, max_examples=6, stateful_step_count=12)
    run_state_machine_as_test(machine_for(opened), settings=effort)


def signed(user: str) -> str:
    """Return a token of a user, as Supabase issues it."""
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": user, "role": "authenticated", "aud": "authenticated", "exp": 4102444800},
    )
    text = b".".join(urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = urlsafe_b64encode(hmac.digest(JWT_SECRET.encode(), text, hashlib.sha256)).rstrip(
        b"="
    )
    return (text + b"." + signature).decode()


def store_of(project: Project, user: str) -> SupabaseStore:
    token = signed(user)
    headers: dict[str, str | Secret] = {
        "apikey": Secret(PUBLIC_KEY),
        "authorization": Secret(token, prefix="Bearer "),
    }
    client = HttpClient(project.address, headers=headers, allow_local=True)
    return SupabaseStore(project.url, token, client=client)


@pytest.mark.req("GRAPH-73")
def test_a_token_shows_and_writes_the_rows_of_its_user_only(project: Project) -> None:
    project.clear()
    ann, bob = (partition_for(user, "planner", "global", None) for user in ("ann", "bob"))
    with (
        closing(SupabaseStore(project.url, KEY)) as owner,
        closing(store_of(project, "ann")) as store,
    ):
        owner.apply([memory("a", partition=ann, user_id="ann")])
        owner.apply([memory("b", partition=bob, user_id="bob")])
        assert sorted(owner.ids(Kind.MEMORY)) == ["a", "b"]
        assert store.ids(Kind.MEMORY) == ["a"]
        store.apply([memory("a2", partition=ann, user_id="ann")])
        with pytest.raises(StoreError) as refused:
            store.apply([memory("b2", partition=bob, user_id="bob")])
        store.apply(deletes=[Key(Kind.MEMORY, "b")])  # for this user there is no such row
        assert sorted(owner.ids(Kind.MEMORY)) == ["a", "a2", "b"]
    assert signed("ann") not in "".join(traceback.format_exception(refused.value))


def test_a_server_that_goes_away_during_writes_loses_nothing_that_it_acknowledged(
    project: Project,
) -> None:
    project.clear()
    acknowledged, over = list[str](), Event()

    def write() -> None:
        with (
            closing(SupabaseStore(project.url, KEY, busy_seconds=0.5)) as store,
            suppress(StoreUnavailable),
        ):
            for n in range(10_000):
                store.apply([memory(f"t{n}"), memory(f"u{n}")])
                acknowledged.append(f"t{n}")
                if len(acknowledged) > 10:
                    over.set()

    writer = Thread(target=write)
    writer.start()
    assert over.wait(60)
    project.kill()
    writer.join(60)
    assert not writer.is_alive()
    project.start()
    with closing(SupabaseStore(project.url, KEY)) as store:
        ids = {*store.ids(Kind.MEMORY)}
        assert {*acknowledged} <= ids
        assert {id_[1:] for id_ in ids if id_[0] == "t"} == {
            id_[1:] for id_ in ids if id_[0] == "u"
        }
        assert store.version("p") == len(ids)
        store.apply([memory("after")])


def test_tables_of_a_newer_version_are_refused_by_an_open_store(
    project: Project, server: Server
) -> None:
    project.clear()
    with closing(SupabaseStore(project.url, KEY)) as store:
        store.apply([memory("m1")])
        check = "SELECT pg_get_functiondef('public.mesh_check'::regproc)"
        ours = str(server.execute(check, database=project.database)[0][0])
        server.execute(ours.replace(f"'{VERSION}'", f"'{VERSION + 1}'"), database=project.database)
        try:
            for use in (lambda: store.apply([memory("m2")]), lambda: store.find(Kind.MEMORY)):
                with pytest.raises(StoreTooNew, match="upgrade memory-mesh"):
                    use()
        finally:
            server.execute(ours, database=project.database)
        assert store.ids(Kind.MEMORY) == ["m1"]


@pytest.mark.req("GRAPH-73", "GRAPH-89")
def test_the_tables_and_functions_of_the_document_answer_over_http(project: Project) -> None:
    project.clear()
    with closing(SupabaseStore(project.url, KEY)) as store:
        rated = memory("m1", vector=[1, 0], status="active", trust=0.6, confidence=0.2, disputes=1)
        store.apply([rated, memory("m2", vector=[0, 1], status="archived")])
        stored = store.get(Kind.MEMORY, ["m1"])["m1"]
        assert (stored.value("trust"), stored.value("confidence")) == (0.6, 0.2)
    with SyncPostgrestClient(
        project.address, headers={"apikey": KEY}, http_client=httpx.Client()
    ) as client:
        columns = (
            client.from_("memories")
            .select("confidence", "base_trust", "author_confidence")
            .eq("id", "m1")
            .execute()
            .data
        )
        assert columns == [{"confidence": 0.6 - 0.15, "base_trust": 0.6, "author_confidence": 0.2}]
        assert [
            row["id"] for row in client.from_("memory_archive").select("id").execute().data
        ] == ["m2"]
        assert client.from_("memory_links").select("id").execute().data == []
        for function in ("search_memories_semantic", "search_memories_global"):
            found = (
                client.rpc(function, {"query_embedding": "[0.9,0.1]", "match_count": 5})
                .execute()
                .data
            )
            assert [row["id"] for row in found] == ["m1"]


def test_what_a_search_finds_comes_over_http_with_its_vectors(project: Project) -> None:
    project.clear()
    everything = equals("partition", "p")
    same = Conditions(
        visible=everything, with_status=everything, readable=everything, allowed=everything
    )
    with closing(SupabaseStore(project.url, KEY)) as store:
        rows = [
            memory(f"m{at}", content="red?", keywords=["red"], vector=[1.0, at], tags=["a"])
            for at in range(40)
        ]
        store.apply([*rows, passage("p1", "m1", vector=[0.0, 1.0])])
        given = same, {"red": 1.0}, ["red"], rows[1].vector
        found = store.candidate_source.search(*given, limit=80)
        with closing(PostgresStore(project.database_url)) as direct:
            right = direct.candidate_source.search(*given, limit=80)
        assert found.statistics == right.statistics
        assert found.statistics.with_vector == 40
        (own,), (expected,) = found.rows.values(), right.rows.values()
        assert len(own.places) == 40
        assert own.places == expected.places
        assert own.allowed == expected.allowed
        for part in ("memories", "passages"):
            mine, others = getattr(own, part), getattr(expected, part)
            assert mine.vectors == others.vectors
            assert any(mine.vectors)
            for name, column in mine.columns.items():
                assert [*column] == [*others.columns[name]], name


def test_an_index_gets_the_same_rows_over_http_as_from_reading_all_of_them(
    project: Project,
) -> None:
    project.clear()
    rows = [
        memory(f"m{at}", vector=[1.0, at] if at else None, tags=["a"], number=at, trust=0.5)
        for at in range(5)
    ]
    with closing(SupabaseStore(project.url, KEY)) as store, patch.object(calls, "_PAGE", 2):
        store.apply([*rows, passage("p1", "m1", vector=[0.0, 1.0])])
        for kind, count in ((Kind.MEMORY, 5), (Kind.PASSAGE, 1)):
            pages = [*store.candidate_source.index_rows(kind, rows[0].partition)]
            (right,) = rows_of(store, kind, rows[0].partition)
            assert sum(len(page.vectors) for page in pages) == count
            assert [vector for page in pages for vector in page.vectors] == right.vectors
            for name, column in right.columns.items():
                assert [value for page in pages for value in page.columns[name]] == column


def test_an_add_is_one_request(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.clear()
    monkeypatch.setenv("SUPABASE_KEY", KEY)
    sent, real = list[str](), SupabaseStore._sent

    def counted(store, function, arguments):  # type: ignore[no-untyped-def]
        sent.append(function)
        return real(store, function, arguments)

    with MemoryMesh(store=project.url) as mesh:
        mesh.add("The first text.")
        mesh.add("The second text.")
        with patch.object(SupabaseStore, "_sent", counted):
            mesh.add("The third text.", idempotency_key="third")
            mesh.add("The fourth text.")
            assert sent == ["mesh_write", "mesh_write"]
            assert mesh.add("The fourth text.").times_observed == 2
        assert len(mesh.get_all()) == 4


@pytest.mark.req("MESH-020")
def test_a_mesh_uses_a_project_by_its_url(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.clear()
    monkeypatch.setenv("SUPABASE_KEY", KEY)
    with MemoryMesh(store=project.url, agent_id="planner") as mesh:
        mesh.add("The deploy key rotates on Mondays")
        assert [one.content for one in mesh.search("deploy key")] == [
            "The deploy key rotates on Mondays"
        ]
    with MemoryMesh(
        store=project.url, store_key="sb_secret_wrong-key-0123456789", agent_id="planner"
    ) as mesh:
        with pytest.raises(StoreError, match="Invalid API key") as refused:
            mesh.get_all()
        assert "sb_secret_wrong" not in "".join(traceback.format_exception(refused.value))
