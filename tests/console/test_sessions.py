"""Sessions of the console: cookies, login by token and by the one-time link, CSRF, and the ways
in which a session ends."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from interfaces.rest_server import EARLIER, running, token
from memory_mesh import MemoryMesh
from memory_mesh.core.errors import TokenInvalid
from memory_mesh.interfaces.console.sessions import Sessions
from memory_mesh.interfaces.rest.server import Server

STORE = {"content": "The deploy key rotates on Mondays."}
JSON = {"Content-Type": "application/json"}
COOKIE = "memory_mesh_session"
HOUR = 3600.0


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def text_of(header: dict[str, str]) -> str:
    return header["Authorization"].removeprefix("Bearer ")


@contextmanager
def private(home: Path, **options: object) -> Iterator[tuple[TestClient, Server, str]]:
    """A server as `memory-mesh console` starts it, and its one-time secret."""
    with running(home, **options) as (client, server):
        server.private = True
        yield client, server, server.sessions.issue_once()


def test_a_server_without_tokens_begins_a_session_by_itself_and_a_program_needs_none(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, server):
        assert client.post("/v1/store", json=STORE).status_code == 200
        answer = client.get("/console/session")
        session = answer.json()
        assert (session["needs_login"], session["read_only"], session["extent"]) == (
            False,
            False,
            "server",
        )
        (cookie,) = answer.headers.get_list("set-cookie")
        parts = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert parts == {"httponly", "path=/", "samesite=strict"}
        assert session["csrf"] not in cookie
        again = client.get("/console/session")
        assert (again.json()["csrf"], again.headers.get("set-cookie")) == (session["csrf"], None)
        assert client.cookies[COOKIE] not in json.dumps(
            list(map(str, server.sessions._by_hash.items()))
        )


def test_a_session_on_a_store_for_reading_only_only_reads(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with MemoryMesh(url, embedder="hash") as mesh:
        mesh.add("The deploy key rotates on Mondays.")
    for mode, read_only in (("", False), ("?mode=ro", True)):
        with running(tmp_path, f"{url}{mode}") as (client, _):
            assert client.get("/console/session").json()["read_only"] is read_only


@pytest.mark.req("MESH-009")
def test_a_write_with_the_cookie_needs_the_secret_of_the_session(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        csrf = client.get("/console/session").json()["csrf"]
        for wrong in (
            {},
            {"X-CSRF-Token": "x"},
            {"X-CSRF-Token": "é" * 10},
            {"X-CSRF-Token": csrf + "x"},
            {"X-CSRF-Token": ""},
        ):
            headers = {name: value.encode() for name, value in wrong.items()}
            for path in ("/v1/store", "/v1/search", "/console/logout"):
                answer = client.post(path, json={**STORE, "query": "x"}, headers=headers)
                assert (answer.status_code, "X-CSRF-Token" in answer.json()["what"]) == (
                    403,
                    True,
                ), (path, wrong)
        assert server.mesh.stats().total_memories == 0
        assert client.get("/v1/search", params={"query": "deploy"}).status_code == 200
        assert (
            client.post("/v1/store", json=STORE, headers={"X-CSRF-Token": csrf}).status_code == 200
        )
        # Of another session it is wrong, too.
        other = TestClient(client.app, base_url="http://localhost")
        other.get("/console/session")
        assert (
            other.post("/v1/store", json=STORE, headers={"X-CSRF-Token": csrf}).status_code == 403
        )


def test_a_page_of_another_site_reaches_nothing_and_begins_no_session(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        for headers in (
            {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            for path in (
                "/console/",
                "/console/session",
                "/console/api/numbers",
                "/console/vendor/htm.js",
                "/",
            ):
                answer = client.get(path, headers=headers, follow_redirects=False)
                assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), (
                    headers,
                    path,
                )
            assert (
                client.post("/console/login", json={"token": "x"}, headers=headers).status_code
                == 403
            )
        assert not server.sessions._by_hash
        assert client.get("/console/session").status_code == 200
        assert server.sessions._by_hash


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_on_another_site_opens_the_console_and_reads_nothing(
    tmp_path: Path, site: str
) -> None:
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    with running(tmp_path) as (client, _):
        for path in ("/", "/console", "/console/", "/console/index.html"):
            answer = client.get(path, headers=link)
            assert (answer.status_code, "set-cookie" in answer.headers) == (200, False), path
            assert "app.js" in answer.text
        for path in (
            "/console/session",
            "/console/api/numbers",
            "/console/app.js",
            "/v1/list",
            "/v1/stats",
            "/health",
        ):
            assert client.get(path, headers=link).status_code == 403, path
            assert client.get(path).status_code == 200, path
        refused = [
            {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "embed"},
            {"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Mode": "cors"}, {"Host": "evil.example"},
            {"Origin": "http://evil.example"},
        ]  # fmt: skip
        for other in refused:
            assert client.get("/console/", headers={**link, **other}).status_code == 403, other
        assert client.post("/console/login", json={"token": "x"}, headers=link).status_code == 403
        assert client.head("/console/", headers=link).status_code == 403


def test_a_token_logs_in_and_the_session_has_its_rights(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        reader = token(server, "reader", read_only=True, agent_id="planner")
        assert client.get("/console/session").json() == {
            "needs_login": True,
            "version": client.get("/console/session").json()["version"],
        }
        assert "set-cookie" not in client.get("/console/session").headers
        answer = client.post("/console/login", json={"token": text_of(reader)})
        session = answer.json()
        assert (session["name"], session["agent"], session["read_only"], session["extent"]) == (
            "reader",
            "planner",
            True,
            "projects",
        )
        assert text_of(reader) not in answer.text + str(answer.headers)
        write = client.post("/v1/store", json=STORE, headers={"X-CSRF-Token": session["csrf"]})
        assert (write.status_code, "reading only" in write.json()["what"]) == (403, True)
        assert client.get("/v1/list").status_code == 200
        assert client.get("/v1/list", headers={"Memory-Agent": "other"}).status_code == 403
        # A bearer token beside the cookie counts alone, and needs no CSRF token.
        assert (
            client.post("/v1/store", json=STORE, headers=token(server, "writer")).status_code == 200
        )
        out = client.post("/console/logout", json={}, headers={"X-CSRF-Token": session["csrf"]})
        assert (out.json()["needs_login"], COOKIE in client.cookies) == (True, False)
        assert client.get("/v1/list").status_code == 401


def test_wrong_secrets_are_refused_alike(tmp_path: Path) -> None:
    with running(tmp_path, server_requests_per_minute=40) as (client, server):
        expired = token(server, "expired", expires_at=EARLIER)
        good = token(server, "good")
        texts = [
            "",
            "x",
            "mm_good_",
            "mm_good_wrong",
            "mm_unknown_x",
            text_of(expired),
            f"Bearer {text_of(good)}",
            "é\x00",
        ]
        answers = [client.post("/console/login", json={"token": text}) for text in texts]
        answers.append(
            client.post("/console/login", content=b'{"token": "mm_good_\\ud83d"}', headers=JSON)
        )
        assert {(one.status_code, one.json()["detail"]) for one in answers} == {
            (401, answers[0].json()["detail"])
        }
        bodies = [
            {},
            [],
            "x",
            {"token": 3},
            {"token": text_of(good), "once": "x"},
            {"once": None},
            {"private": "x"},
        ]
        assert {client.post("/console/login", json=body).status_code for body in bodies} == {400}
        assert client.post("/console/login", json={"token": "x" * 1_000_000}).status_code == 413
        form = client.post("/console/login", data={"token": text_of(good)})
        assert form.status_code == 415
        assert not server.sessions._by_hash
        guesses = [
            client.post("/console/login", json={"token": "mm_good_guess"}).status_code
            for _ in range(40)
        ]
        assert (guesses[0], guesses[-1]) == (401, 429)


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("end", ["revoked", "expired", "file removed", "first token created"])
def test_a_session_ends_with_its_token(end: str, tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        if end != "first token created":
            client.post("/console/login", json={"token": text_of(token(server, "own"))})
        else:
            client.get("/console/session")
        assert client.get("/v1/stats").status_code == 200
        if end == "revoked":
            server.tokens.revoke("own", EARLIER)
        elif end == "expired":
            server.tokens._change(
                lambda all_: {id_: replace(one, expires_at=EARLIER) for id_, one in all_.items()}
            )
        elif end == "file removed":
            (tmp_path / "tokens.json").unlink()
        else:
            token(server, "own")
        answer = client.get("/v1/stats")
        assert (answer.status_code, "session has ended" in answer.text) == (401, True)
        assert client.get("/console/session").json()["needs_login"] is True


def test_a_session_ends_after_a_time_without_requests_and_after_half_a_day() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    idle, _ = sessions.begin()
    busy, _ = sessions.begin()
    for _ in range(11):
        clock.now += HOUR
        sessions.find(busy)
    with pytest.raises(Exception, match="session has ended"):
        sessions.find(idle)
    clock.now += HOUR
    with pytest.raises(Exception, match="session has ended"):
        sessions.find(busy)
    assert not sessions._by_hash
    kept, _ = sessions.begin()
    for number in range(999):
        sessions.begin(token_id=str(number))
    sessions.find(kept)
    sessions.begin()
    assert len(sessions._by_hash) == 1000
    sessions.find(kept)  # the least recently used one had to go


def test_many_logins_with_one_token_end_no_session_of_another() -> None:
    sessions = Sessions(Clock())
    ana, _ = sessions.begin(token_id="ana")
    owner, _ = sessions.begin(owner=True)
    first, _ = sessions.begin(token_id="bob")
    for _ in range(1500):
        last, _ = sessions.begin(token_id="bob")
    assert [sessions.find(one).token_id for one in (ana, owner, last)] == ["ana", None, "bob"]
    with pytest.raises(TokenInvalid):
        sessions.find(first)


def test_a_login_ends_the_earlier_session_of_the_browser_and_is_counted(tmp_path: Path) -> None:
    with running(tmp_path, server_requests_per_minute=5) as (client, server):
        own = {"token": text_of(token(server, "own"))}
        client.post("/console/login", json=own)
        earlier = client.cookies[COOKIE]
        client.post("/console/login", json=own)
        assert client.cookies[COOKIE] != earlier
        assert len(server.sessions._by_hash) == 1
        assert [client.post("/console/login", json=own).status_code for _ in range(4)] == [
            200,
            200,
            200,
            429,
        ]


def test_a_wrong_cookie_does_not_begin_more_sessions_than_the_limit_allows(tmp_path: Path) -> None:
    with running(tmp_path, server_requests_per_minute=5) as (client, server):
        tries = [
            client.get("/console/session", headers={"Cookie": f"{COOKIE}=wrong{n}"}).status_code
            for n in range(8)
        ]
        assert (tries[0], tries[-1]) == (200, 429)
        assert len(server.sessions._by_hash) <= 5


@pytest.mark.req("MESH-009")
def test_the_one_time_link_logs_in_once_and_only_for_five_minutes(tmp_path: Path) -> None:
    with private(tmp_path) as (client, server, once):
        assert client.get("/console/session").json()["needs_login"] is True
        for path in ("/v1/stats", "/console/api/numbers", "/metrics"):
            assert client.get(path).status_code == 401, path
        assert client.post("/v1/store", json=STORE).status_code == 401
        assert client.get("/console/vendor/htm.js").status_code == 200
        assert client.post("/console/login", json={"once": once[:-1]}).status_code == 401
        session = client.post("/console/login", json={"once": once}).json()
        assert (session["extent"], client.get("/v1/stats").status_code) == ("server", 200)
        stranger = TestClient(client.app, base_url="http://localhost")
        again = stranger.post("/console/login", json={"once": once})
        assert (again.status_code, "used already" in again.text) == (401, True)
        assert stranger.get("/v1/stats").status_code == 401
        # It stays the owner's also when tokens are created, which others log in with.
        assert (
            stranger.post(
                "/console/login", json={"token": text_of(token(server, "own"))}
            ).status_code
            == 200
        )
        assert (
            client.post(
                "/v1/store", json=STORE, headers={"X-CSRF-Token": session["csrf"]}
            ).status_code
            == 200
        )
        clock = Clock()
        server.sessions._clock = clock
        late = server.sessions.issue_once()
        clock.now += 300
        assert client.post("/console/login", json={"once": late}).status_code == 401


@pytest.mark.req("MESH-009")
def test_without_a_session_a_private_server_says_only_whether_it_runs(tmp_path: Path) -> None:
    with private(tmp_path) as (client, server, once):
        open_ = {
            path: client.get(path).status_code
            for path in (
                "/health",
                "/ready",
                "/openapi.json",
                "/metrics",
                "/v1/stats",
                "/console/api/numbers",
            )
        }
        assert {path for path, status in open_.items() if status == 200} == {"/health", "/ready"}
        assert set(open_.values()) == {200, 401}
        client.post("/console/login", json={"once": once})
        assert "/v1/search" in client.get("/openapi.json").json()["paths"]
        client.cookies.clear()
        server.private = False
        assert client.get("/openapi.json").status_code == 200


def test_no_secret_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        private(tmp_path) as (client, _, once),
        caplog.at_level(logging.DEBUG, logger="memory_mesh"),
    ):
        csrf = client.post("/console/login", json={"once": once}).json()["csrf"]
        client.get("/v1/stats")
        client.get("/console/api/memory", params={"id": "mem_of_ana"})
        logged = " ".join(
            f"{record.getMessage()} {getattr(record, 'fields', '')}" for record in caplog.records
        )
        assert "/console/api/memory" in logged
        for secret in (once, csrf, client.cookies[COOKIE], "mem_of_ana"):
            assert secret not in logged


def test_two_servers_on_one_machine_keep_their_sessions_apart(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        names = set()
        for port in (1001, 1002):
            answer = client.get("/console/session", headers={"Host": f"localhost:{port}"})
            names.add(answer.headers["set-cookie"].partition("=")[0])
        assert names == {f"{COOKIE}_1001", f"{COOKIE}_1002"}
        odd = client.get("/console/session", headers={"Host": "localhost:8\u0660".encode()})
        assert odd.status_code in (200, 403)


def test_behind_tls_the_cookie_is_for_tls_only(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        own = text_of(token(server, "own"))
        answer = client.post(
            "/console/login", json={"token": own}, headers={"Origin": "https://localhost"}
        )
        assert "secure" in answer.headers["set-cookie"].lower()


def test_a_store_that_cannot_be_used_is_said_on_the_page(tmp_path: Path) -> None:
    """The pages come from the package and the session from memory, so the console can always say
    what is wrong."""
    store = tmp_path / "memory.db"
    with running(tmp_path, str(store)) as (client, server):
        memory = server.mesh.add("The deploy key rotates on Mondays.")
        routes = (
            "/v1/list",
            "/console/api/numbers",
            "/console/api/timeline",
            "/console/api/graph",
            f"/console/api/memory?id={memory.id}",
        )
        for path in routes:
            assert client.get(path).status_code == 200, path
    (tmp_path / "text.db").write_text("This is a text and not a store. " * 300)
    for bad in (tmp_path / "text.db", f"sqlite:///{tmp_path}/missing.db?mode=ro"):
        with running_lazily(tmp_path, str(bad)) as client:
            assert client.get("/console/session").json()["needs_login"] is False
            for path in routes:
                answer = client.get(path)
                assert answer.headers["content-type"] == "application/problem+json", (bad, path)
                assert (
                    answer.status_code in (404, 500, 503),
                    str(tmp_path) in answer.text,
                    "Traceback" in answer.text,
                ) == (
                    True,
                    False,
                    False,
                )
    with running(tmp_path, f"sqlite:///{store}?mode=ro") as (client, _):
        csrf = client.get("/console/session").json()["csrf"]
        for path in routes:
            assert client.get(path).status_code == 200, path
        answer = client.post("/v1/store", json=STORE, headers={"X-CSRF-Token": csrf})
        assert (answer.status_code, answer.json()["type"].endswith("StoreReadOnly")) == (403, True)


@contextmanager
def running_lazily(home: Path, store: str) -> Iterator[TestClient]:
    """A server whose store broke after it had started."""
    with running(home) as (client, server):
        from memory_mesh import MemoryMesh

        server.mesh = MemoryMesh(store, agent_id="server", embedder="hash")
        yield client


def test_two_people_who_decide_the_same_case_get_one_decision_and_one_answer(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, server):
        price, user, tool = (
            {"subject": "the licence", "predicate": "costs"},
            {"source": "user_explicit"},
            {"source": "tool_output"},
        )
        server.mesh.graph.store(
            "server", "It costs 600.", claim={**price, "value": "600"}, provenance=user
        )
        doubted = server.mesh.graph.store(
            "server", "It costs 650.", claim={**price, "value": "650"}, provenance=tool
        )
        other = TestClient(client.app, base_url="http://localhost")
        first, second = (
            {"X-CSRF-Token": one.get("/console/session").json()["csrf"]} for one in (client, other)
        )
        assert (
            client.post(
                "/v1/review-activate", json={"memory_id": doubted.id}, headers=first
            ).status_code
            == 200
        )
        late = other.post("/v1/review-reject", json={"memory_id": doubted.id}, headers=second)
        assert late.status_code in (400, 404, 409)
        assert late.json()["what"]
        memory = server.mesh.get(doubted.id)
        assert memory is not None
        assert memory.status == "active"
