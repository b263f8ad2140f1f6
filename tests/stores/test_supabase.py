"""The Supabase store: what it does when the server is busy, fails, refuses or quotes a key. Its
contract runs on a real one."""

import json
import sys
import traceback
from typing import Any

import pytest

from memory_mesh.api.settings import load
from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    InvalidInput,
    SettingsError,
    StoreBusy,
    StoreClosed,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    UnsafeAddress,
)
from memory_mesh.core.model import Kind
from memory_mesh.stores import open_store, store_file
from memory_mesh.stores.postgres.tables import VERSION
from memory_mesh.stores.supabase import SupabaseStore
from memory_mesh.testing.rows import memory, plain
from net.servers import Answer, FaultServer

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"
KEY = "sb_secret_hidden-0123456789"
DONE, NONE_YET = Answer(body=json.dumps('{"versions": {}}')), Answer(body='"0"')
UNAVAILABLE = [
    Answer(status=429, headers={"retry-after": "0.01"}),
    Answer(status=503),
    Answer(drop=True),
]


def opened(server: FaultServer, **options: Any) -> SupabaseStore:
    return SupabaseStore(f"supabase://127.0.0.1:{server.port}/?local=true", KEY, **options)


def payloads(server: FaultServer) -> list[Any]:
    return [json.loads(request.json["payload"]) for request in server.requests]


@pytest.mark.req("GRAPH-73")
def test_a_read_is_one_call_of_a_function_with_the_key_in_the_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with FaultServer([NONE_YET]) as server:
        assert opened(server).count(Kind.MEMORY) == 0
    (request,) = server.requests
    assert request.path == "/rest/v1/rpc/mesh_read"
    assert (request.headers.get("apikey"), request.headers.get("authorization")) == (
        KEY,
        f"Bearer {KEY}",
    )
    assert payloads(server) == [{"kind": "memory", "where": True, "schema": VERSION}]


def test_vectors_are_sent_as_text() -> None:
    with FaultServer([DONE]) as server:
        opened(server).apply([memory("m1", vector=[0.5, 1])])
    (sent,) = payloads(server)[0]["puts"]
    assert sent["embedding"] == "[0.5,1.0]"


@pytest.mark.req("GRAPH-75")
@pytest.mark.parametrize("busy", UNAVAILABLE, ids=["429", "503", "dropped"])
def test_a_read_is_repeated_when_the_server_is_busy_or_fails(busy: Answer) -> None:
    with FaultServer([busy, busy, NONE_YET]) as server:
        assert opened(server).count(Kind.MEMORY) == 0
    assert len(server.requests) == 3


@pytest.mark.req("GRAPH-75")
def test_the_server_says_when_to_try_again_and_a_wait_that_is_too_long_is_an_error() -> None:
    with FaultServer([Answer(status=429, headers={"retry-after": "60"})]) as server:
        for use in (
            lambda store: store.count(Kind.MEMORY),
            lambda store: store.apply([memory("m1")]),
        ):
            with pytest.raises(StoreUnavailable, match="answered 429"):
                use(opened(server, busy_seconds=1.0))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("first", "retry"),
    list(zip(UNAVAILABLE, (False, True, True), strict=True)),
    ids=["429", "503", "dropped"],
)
def test_a_write_is_repeated_and_tells_whether_the_first_one_may_have_been_done(
    first: Answer, retry: bool
) -> None:
    with FaultServer([first, Answer(body=json.dumps('{"versions": {"p": 1}}'))]) as server:
        assert opened(server).apply([memory("m1")]).versions == {"p": 1}
    one, other = payloads(server)
    assert (one["retry"], other["retry"]) == (False, retry)
    assert one["nonce"] == other["nonce"]


def test_a_write_that_the_log_does_not_name_is_not_repeated_when_its_outcome_is_unknown() -> None:
    with (
        FaultServer([Answer(status=500), DONE]) as server,
        pytest.raises(StoreUnavailable, match="may have been done or not"),
    ):
        opened(server).apply([plain(Kind.USAGE, "u1")])
    assert len(server.requests) == 1


def test_a_change_that_another_one_blocked_is_repeated() -> None:
    blocked = Answer(status=423, body={"code": "PT423", "message": "a row moved meanwhile"})
    with FaultServer([blocked, DONE]) as server:
        opened(server).apply([memory("m1")])
        with FaultServer([blocked]) as other, pytest.raises(StoreBusy):
            opened(other, busy_seconds=0.0).apply([memory("m1")])
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("PT409", IdTaken),
        ("PT412", Conflict),
        ("PT422", InvalidInput),
        ("PT426", StoreTooNew),
        ("42501", StoreReadOnly),
        ("PGRST202", StoreMissing),
        ("PGRST301", StoreUnavailable),
        (None, StoreUnavailable),
    ],
)
@pytest.mark.req("GRAPH-74")
def test_an_error_of_the_server_is_one_of_ours_and_shows_no_token(
    code: str | None, kind: type[Exception]
) -> None:
    message = f"refused: Authorization: Bearer abc.def, token {JWT}, key {KEY}, lantern"
    with (
        FaultServer([Answer(status=400, body={"code": code, "message": message})]) as server,
        pytest.raises(kind) as error,
    ):
        opened(server).apply([memory("m1")])
    assert type(error.value) is kind
    text = "".join(traceback.format_exception(error.value))
    assert "refused" in text
    assert not any(part in text for part in ("abc.def", JWT, "eyJ", KEY, "hidden-0123456789"))


@pytest.mark.req("GRAPH-74")
@pytest.mark.parametrize(
    "body", [f"<html>{JWT} {KEY}</html>", {"message": f"Bearer {KEY}"}], ids=["page", "json"]
)
@pytest.mark.parametrize("status", [401, 500])
def test_a_page_in_place_of_an_answer_shows_no_token_either(status: int, body: Any) -> None:
    with (
        FaultServer([Answer(status=status, body=body)]) as server,
        pytest.raises(StoreUnavailable) as error,
    ):
        opened(server, busy_seconds=0.0).count(Kind.MEMORY)
    text = "".join(traceback.format_exception(error.value))
    assert "127.0.0.1" in text
    assert not any(part in text for part in (JWT, "eyJ", KEY))


@pytest.mark.parametrize("body", [f"<html>{KEY}</html>", "null", "[]", '"[1,"', "{}", ""])
def test_an_answer_that_is_not_one_of_our_functions_is_an_error_of_the_store(body: str) -> None:
    with FaultServer([Answer(body=body)]) as server:
        with pytest.raises(StoreUnavailable, match="check the URL") as read:
            opened(server, busy_seconds=0.0).count(Kind.MEMORY)
        with pytest.raises(StoreUnavailable, match="may have been done or not"):
            opened(server, busy_seconds=0.0).apply([memory("m1")])
    assert KEY not in "".join(traceback.format_exception(read.value))


def test_a_database_without_our_tables_reads_as_empty_and_a_write_names_the_remedy() -> None:
    missing = Answer(
        status=404,
        body={"code": "PGRST202", "message": "Could not find the function public.mesh_read"},
    )
    with FaultServer([missing]) as server:
        store = opened(server)
        assert (store.find(Kind.MEMORY), store.count(Kind.MEMORY), store.version("p")) == ([], 0, 0)
        with pytest.raises(StoreMissing, match="memory-mesh postgres prepare"):
            store.apply([memory("m1")])


@pytest.mark.req("GRAPH-81")
@pytest.mark.parametrize("host", ["127.0.0.1:9", "169.254.169.254", "localhost", "10.0.0.1"])
def test_an_address_of_this_computer_or_network_needs_permission(host: str) -> None:
    with pytest.raises((SettingsError, UnsafeAddress), match="leads to"):
        SupabaseStore(f"supabase://{host}/", KEY).count(Kind.MEMORY)


WRONG = [
    "",
    f"{KEY}@host/",
    "host/path",
    "host/?key=hidden-1",
    "host/?local=no",
    "host/?schema=",
    "host/#hidden-1",
]


@pytest.mark.parametrize("rest", WRONG, ids=range(len(WRONG)))
def test_a_wrong_url_is_an_error_without_what_may_be_a_key(rest: str) -> None:
    with pytest.raises(InvalidInput, match="not one of a Supabase store") as error:
        open_store(f"supabase://{rest}", key=KEY)
    assert "hidden-" not in str(error.value)


@pytest.mark.parametrize("scheme", ["supabase", "postgresql", "s3", "sqlite"])
def test_a_host_that_cannot_be_read_is_an_error_without_what_may_be_a_key(scheme: str) -> None:
    for read in (open_store, store_file):
        with pytest.raises(InvalidInput, match="URL of the store cannot be read") as error:
            read(f"{scheme}://name:{KEY}@[::1/")
        assert "hidden-" not in "".join(traceback.format_exception(error.value))


def test_the_key_comes_from_the_settings_or_from_the_variable_of_supabase() -> None:
    url = "supabase://project.supabase.co/"
    with pytest.raises(SettingsError, match="SUPABASE_KEY"):
        open_store(url)
    environ = {"SUPABASE_KEY": KEY}
    assert load({"store": url}, environ=environ).options.store_key == KEY
    assert load({"store": url, "store_key": "own"}, environ=environ).options.store_key == "own"
    assert load({"store": "memory.db"}, environ=environ).options.store_key is None


def test_a_closed_store_refuses_and_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = SupabaseStore("supabase://project.supabase.co/", KEY)
    store.close()
    store.close()
    for use in (
        lambda: store.count(Kind.MEMORY),
        lambda: store.apply([memory("m1")]),
        store.compact,
    ):
        with pytest.raises(StoreClosed):
            use()
    for name in [name for name in sys.modules if name.startswith("memory_mesh.stores.supabase")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "postgrest", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'memory-mesh\[supabase\]'"):
        open_store("supabase://project.supabase.co/", key=KEY)
