"""REST in this process: routes from the table, tokens and their scopes, limits, errors, streams,
metrics and logs."""

import asyncio
import json
import logging
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from faces.house import House
from faces.test_hidden_memories import HIDDEN, QUERY, SHOWN, build
from judging import BERLIN, MUNICH, give_judge
from memory_mesh import MemoryMesh
from memory_mesh.core.errors import SettingsError, StoreUnavailable
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Effect, Interface
from memory_mesh.interfaces.rest import serve
from memory_mesh.interfaces.rest.access import check_public
from memory_mesh.interfaces.rest.connections import JsonLines
from memory_mesh.interfaces.rest.serve import listen
from memory_mesh.interfaces.tokens import FILE, TokenFile
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import FakeClock

from .rest_server import EARLIER, running, token
from .test_remote import minimal

KEY = {"content": "The deploy key rotates on Mondays."}
ASKED = {"query": "when does the deploy key rotate?"}
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


def found(response) -> list[str]:  # type: ignore[no-untyped-def]
    assert response.status_code == 200, response.text
    return [one["content"] for one in response.json()["results"]]


def test_every_remote_operation_has_a_route_with_the_schema_of_its_arguments(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, _):
        spec = client.get("/openapi.json").json()
    paths = spec["paths"]
    for operation in remote.exposed(Interface.REST):
        path = "/v1/" + operation.aliases.get(Interface.REST, operation.name).replace(" ", "/")
        route = paths.pop(path)
        # A query has no objects, which `lane judge` takes.
        reads = operation.effect is Effect.READ and operation.name != "lane judge"
        assert route.keys() == ({"get", "post"} if reads else {"post"})
        schema = route["post"]["requestBody"]["content"]["application/json"]["schema"]
        # The description says more than the table: rules of the core.
        table = json.loads(json.dumps(remote.schema(operation)))
        properties = schema["properties"]
        for name, about in table["properties"].items():
            assert about["description"] == properties.pop(name)["description"]
        assert not properties
        assert schema.keys() >= table.keys()
        if "get" in route:
            names = {one["name"] for one in route["get"]["parameters"] if one["in"] == "query"}
            assert names == {one.name for one in operation.parameters}
    assert paths.keys() == {"/v1/ingest", "/health", "/ready", "/metrics"}


def test_messages_are_stored_as_python_stores_them(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "Ana", "content": "I moved to Rome."},
        {"role": "assistant", "content": [{"type": "text", "text": "Since when?"}]},
    ]
    answered = {"role": "user", "content": "Since May.", "timestamp": "2026-05-01"}
    with running(tmp_path) as (client, server):

        def stored(*further: object) -> list[dict[str, Any]]:
            body = {"messages": [*messages, *further], "tags": ["trip"]}
            answer = client.post("/v1/store", json=body, headers={"Memory-Session": "s1"})
            assert answer.status_code == 200, answer.text
            assert answer.json()["count"] == len(answer.json()["results"])
            return answer.json()["results"]  # type: ignore[no-any-return]

        first = stored()
        assert [one["content"] for one in first] == ["I moved to Rome.", "Since when?"]
        expected = server.mesh.add(messages, {"tags": ["trip"]}, session_id="s2")  # type: ignore[arg-type]
        names = ("content", "metadata", "tags", "memory_type", "agent_id", "trust", "status")
        assert [{name: one[name] for name in names} for one in first] == [
            {name: getattr(one, name) for name in names} for one in expected
        ]
        assert {one["session_id"] for one in first} == {"s1"}
        assert [stored(), [one["content"] for one in stored(answered)]] == [[], ["Since May."]]


@pytest.mark.req("MESH-019")
def test_what_is_stored_over_rest_is_found_by_every_face_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, server):
        assert client.post("/v1/store", json=KEY).json()["content"] == KEY["content"]
        assert (
            client.post(
                "/v1/lane/store",
                json={"content": "Use pnpm, not npm.", "memory_type": "correction"},
            ).status_code
            == 200
        )
        claim = {"subject": "Ana", "predicate": "works_at", "value": "Acme"}
        assert (
            client.post(
                "/v1/graph/store", json={"text": "Ana works at Acme.", "claim": claim}
            ).json()["quarantined"]
            is False
        )
        mesh = server.mesh
        assert [one.content for one in mesh.search(ASKED["query"])][:1] == [KEY["content"]]
        assert [one.content for one in mesh.graph.search("server", ASKED["query"])][:1] == [
            KEY["content"]
        ]
        assert [one.content for one in mesh.search("pnpm or npm?")][:1] == ["Use pnpm, not npm."]
        mesh.add("The lift is out of order.")
        for path, key in (
            ("/v1/search", "results"),
            ("/v1/lane/find", "results"),
            ("/v1/graph/search", "results"),
        ):
            answer = client.get(path, params={"query": "lift out of order"}).json()
            assert [one["content"] for one in answer[key]][:1] == ["The lift is out of order."], (
                path
            )
        assert (
            found(client.post("/v1/search", json=ASKED))[0]
            == found(client.get("/v1/search", params=ASKED))[0]
            == KEY["content"]
        )


@pytest.mark.req("MESH-009")
def test_a_hidden_memory_reaches_no_route_that_reads(tmp_path: Path) -> None:
    """Quarantined, archived, of another user, agent or session: the same memories as for the
    methods of the faces."""
    house = House(open_store("memory://"))
    build(house)
    scope = {"Memory-Agent": "ann", "Memory-Session": "s1"}
    shown = set()
    folders = {"notes_dir": str(tmp_path / "notes"), "traces_dir": str(tmp_path / "traces")}
    with running(tmp_path, house.store, clock=house.clock.seconds, ids=house.ids, **folders) as (
        client,
        _,
    ):
        (own,) = client.get(
            "/v1/list", params={"filter": "content LIKE 'The zeppelin lands%'"}, headers=scope
        ).json()["results"]
        for operation in remote.exposed(Interface.REST):
            if operation.effect is not Effect.READ or operation.name in (
                "quarantined",
                "explain-memory",
                "audit log",
            ):
                continue  # these show what waits for a review, and what was stored, by name
            given = {name: own["id"] if "id" in name else QUERY for name in minimal(operation)}
            given |= {"id": own["id"]} if operation.name == "get" else {}
            given |= (
                {"messages": [{"role": "user", "content": QUERY}]}
                if operation.name == "lane judge"
                else {}
            )
            given |= (
                {"mode": "recall"}
                if any(one.name == "mode" for one in operation.parameters)
                else {}
            )
            path = "/v1/" + operation.aliases.get(Interface.REST, operation.name).replace(" ", "/")
            answer = client.post(path, json=given, headers=scope)
            assert answer.status_code in (200, 404), answer.text
            assert not [marker for marker in HIDDEN if marker in answer.text], path
            shown |= {operation.name} if SHOWN in answer.text else set()
        # Asked for by name, it is there.
        asked = client.get("/v1/list", params={"status": ["quarantined"]}, headers=scope)
        assert "isquarantined" in asked.text
    assert {
        "search",
        "explain",
        "context",
        "list",
        "get",
        "lessons",
        "search-skills",
        "graph search",
        "search-for-model",
    } <= shown


def test_what_changed_is_shown_confirmed_and_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_judge(monkeypatch)
    clock = FakeClock()
    with running(tmp_path, agent="planner", clock=clock.seconds) as (client, server):
        older = server.mesh.add(BERLIN).id
        clock.advance(days=1)
        newer = client.post("/v1/store", json={"content": MUNICH}).json()["id"]
        pair = {"newer": newer, "older": older}
        [change] = client.get("/v1/changes", params={"about": older}).json()["results"]
        assert (change["newer"]["id"], change["older"]["id"]) == (newer, older)
        assert (change["type"], change["probability"]) == ("updates", 0.98)
        results = client.get("/v1/search", params={"query": "live Berlin"}).json()["results"]
        assert {one["id"]: one.get("updated_by") for one in results} == {newer: None, older: newer}
        confirmed = client.post("/v1/confirm-change", json=pair).json()
        assert confirmed["probability"] == 1.0
        assert client.post("/v1/undo-change", json=pair).json()["type"] == "both_hold"
        assert client.get("/v1/confirm-change", params=pair).status_code == 405
        own, reading = token(server, "own"), token(server, "reading", read_only=True)
        shop, eve = token(server, "shop", project="shop"), token(server, "eve", user_id="eve")
        assert client.post("/v1/undo-change", json=pair, headers=reading).status_code == 403
        assert client.get("/v1/changes", headers=reading).json()["count"] == 1
        assert client.get("/v1/changes", headers=eve).json()["count"] == 0
        assert client.post("/v1/undo-change", json=pair, headers=eve).status_code == 404
        assert client.post("/v1/undo-change", json=pair, headers=shop).status_code == 200
        swapped = {"newer": older, "older": newer}
        assert client.post("/v1/undo-change", json=swapped, headers=own).status_code == 400


@pytest.mark.req("MESH-009")
def test_a_token_opens_its_user_agent_and_project_and_nothing_else(tmp_path: Path) -> None:
    with running(tmp_path, agent="planner") as (client, server):
        mesh = server.mesh
        secret = mesh.scoped(user_id="eve").add("Eve: the vault code is on the moon.").id
        other = (
            mesh.scoped(agent_id="buyer")
            .add("Buyer: the vault code is under the sea.", {"type": "agent"})
            .id
        )
        atlas = mesh.scoped(project="atlas").add("Atlas: the vault code is in the attic.").id
        shop = mesh.scoped(project="shop").add("Shop: the vault code is in the till.").id
        own = token(server, "own")
        limited = token(server, "agent", agent_id="planner")
        project = token(server, "project", project="shop")
        reading = token(server, "reading", read_only=True)
        eve = token(server, "eve", user_id="eve")
        asked = {"query": "where is the vault code?", "mode": "recall", "limit": 50}

        def sees(headers: dict[str, str], id_: str) -> bool:
            answer = client.get("/v1/get", params={"id": id_}, headers=headers)
            listed = client.get("/v1/list", params={"limit": 100}, headers=headers).json()[
                "results"
            ]
            searched = client.post("/v1/search", json=asked, headers=headers).json()["results"]
            by_list = id_ in {one["id"] for one in listed} or id_ in {one["id"] for one in searched}
            assert (answer.status_code == 200) == by_list or headers.get("Memory-Project")
            return answer.status_code == 200

        assert sees(eve, secret)
        assert not any(sees(headers, secret) for headers in (own, limited, project, reading))
        assert sees({**own, "Memory-Agent": "buyer"}, other)
        assert not sees(own, other)
        assert not sees(limited, other)
        assert sees(project, shop)
        assert not sees(project, atlas)
        assert sees(own, atlas)
        for headers, wider in (
            (own, "User"),
            (limited, "Agent"),
            (project, "Project"),
            (eve, "User"),
        ):
            answer = client.get("/v1/list", headers={**headers, f"Memory-{wider}": "somebody"})
            assert answer.status_code == 403, (headers, wider)
            assert "token is not for" in answer.json()["detail"]
        for path, body in (
            ("update", {"id": atlas, "content": "x"}),
            ("pin", {"id": atlas}),
            ("delete", {"id": atlas}),
            ("forget", {"id": atlas}),
        ):
            assert client.post(f"/v1/{path}", json=body, headers=project).status_code == 404, path
            assert client.post(f"/v1/{path}", json=body, headers=reading).status_code == 403, path
        assert client.post("/v1/quarantined", json={}, headers=limited).status_code == 403
        assert client.post("/v1/trace/similar", json={"goal": "x"}, headers=eve).status_code == 403
        assert client.post("/v1/trace/similar", json={"goal": "x"}, headers=own).status_code == 200
        assert client.get("/metrics", headers=eve).status_code == 403
        for headers in (limited, project):
            for scope in ({"agent_id": "planner"}, {"project": "shop"}, {"user_id": "ana"}):
                assert client.post("/v1/forget", json=scope, headers=headers).status_code == 403
        assert client.post("/v1/forget", json={"id": shop}, headers=project).status_code == 200
        assert client.post("/v1/delete", json={"id": atlas}, headers=own).status_code == 200


@pytest.mark.req("MESH-009")
def test_a_token_for_a_project_writes_into_no_other_one(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        own, project = token(server, "own"), token(server, "project", project="shop")
        id_ = client.post("/v1/store", json=KEY, headers=project).json()["id"]
        elsewhere: dict[str, Any] = {"metadata": {"project": "atlas"}}
        writes: dict[str, dict[str, Any]] = {
            "store": {**KEY, **elsewhere},
            "store-many": {"items": [{**KEY, **elsewhere}]},
            "update": {"id": id_, **elsewhere},
            "graph/store": {"text": "Ana works at Acme.", **elsewhere},
            "lane/store": {
                "content": "Use pnpm.",
                "memory_type": "correction",
                "collection": "atlas",
            },
            "ingest-skill": {
                "yamo_text": "---\nname: deploy\ndescription: deploy it\n---\nbody",
                **elsewhere,
            },
        }
        for path, body in writes.items():
            assert client.post(f"/v1/{path}", json=body, headers=project).status_code == 400, path
        assert (
            "event: error"
            in client.post(
                "/v1/ingest", json={**KEY, **elsewhere}, headers={**project, **LINES}
            ).text
        )
        assert [
            one["project"] for one in client.get("/v1/list", headers=own).json()["results"]
        ] == ["shop"]
        for path, body in writes.items():
            assert client.post(f"/v1/{path}", json=body, headers=own).status_code == 200, path


def test_a_server_that_had_a_token_stays_closed_when_the_file_of_tokens_is_removed(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, server):
        own = token(server, "own")
        assert client.get("/v1/stats", headers=own).status_code == 200
        (tmp_path / FILE).unlink()
        assert client.get("/v1/stats").status_code == 401
        assert client.get("/v1/stats", headers=own).status_code == 401
        assert client.get("/v1/stats", headers=token(server, "new")).status_code == 200


@pytest.mark.req("MESH-009")
def test_a_wrong_expired_or_revoked_token_opens_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        # Without tokens, a program of this machine may call.
        assert client.get("/v1/stats").status_code == 200
        right = token(server, "right")
        expired = token(server, "expired", expires_at=EARLIER)
        revoked = token(server, "revoked")
        server.tokens.revoke("revoked", EARLIER)
        secret = right["Authorization"].removeprefix("Bearer ")
        wrong = [
            {}, expired, revoked, {"Authorization": f"Basic {secret}"}, {"Authorization": secret},
            {"Authorization": "Bearer"}, {"Authorization": f"Bearer {secret}x"},
            {"Authorization": "Bearer mm_right_"}, {"Authorization": "Bearer mm__"},
            {"Authorization": f"Bearer {secret.replace('right_', 'expired_')}"},
            {"X-Authorization": f"Bearer {secret}"},
        ]  # fmt: skip
        details = set()
        for headers in wrong:
            answer = client.get("/v1/stats", headers=headers)
            assert answer.status_code == 401, headers
            assert answer.headers["www-authenticate"] == "Bearer"
            details.add(answer.json()["detail"])
        assert len(details) == 2  # none, or not valid: nothing else is told
        twice = client.get("/v1/stats", headers=[("Authorization", right["Authorization"])] * 2)
        assert twice.status_code == 401
        assert client.get("/v1/stats?token=" + secret).status_code == 401
        assert client.get("/v1/stats", headers=right).status_code == 200
        text = (tmp_path / "tokens.json").read_text()
        assert secret.rpartition("_")[2] not in text
        assert oct((tmp_path / "tokens.json").stat().st_mode)[-3:] == "600"
        assert client.get("/health").status_code == 200


def test_only_programs_that_name_the_server_may_call_it(tmp_path: Path) -> None:
    cases = [
        ({"Host": "localhost:8710"}, 200), ({"Host": "[::1]:8710"}, 200),
        ({"Host": "memory.example.org"}, 200), ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example"}, 403), ({"Host": "evil.example:localhost"}, 403),
        ({"Host": ""}, 403), ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost"}, 200), ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "none"}, 200),
    ]  # fmt: skip
    with running(tmp_path, server_names=["memory.example.org"]) as (client, _):
        for headers, status in cases:
            answer = client.get("/v1/stats", headers=headers)
            assert answer.status_code == status, headers
            assert "access-control-allow-origin" not in answer.headers
        assert (
            client.options(
                "/v1/stats", headers={"Access-Control-Request-Method": "GET"}
            ).status_code
            == 405
        )


def test_a_server_that_others_can_reach_needs_a_token(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        check_public(host, {})
    for host in ("0.0.0.0", "::", "192.168.1.5", "memory.example.org", "127.0.0.1.example.org"):  # noqa: S104
        with pytest.raises(SettingsError, match="there is no token"):
            check_public(host, {})
        check_public(host, {"x": None})  # type: ignore[dict-item]


MALFORMED: list[tuple[str, dict[str, Any], int, str]] = [
    ("/v1/store", {"content": b"{", "headers": JSON}, 400, "not valid at character 1"),
    ("/v1/store", {"content": b'{"content": "\xff"}', "headers": JSON}, 400, "JSON in UTF-8"),
    ("/v1/store", {"content": b'{"content": NaN}', "headers": JSON}, 400, "not valid"),
    ("/v1/store", {"content": b'{"content": "one", "content": "two"}', "headers": JSON}, 400,
     "a name stands twice"),
    ("/v1/store", {"content": b"[" * 100_000, "headers": JSON}, 400, "not valid"),
    ("/v1/store", {"content": b'{"content": ' + b"9" * 5000 + b"}", "headers": JSON}, 400,
     "not valid"),
    ("/v1/store", {"content": b'["x"]', "headers": JSON}, 400, "not a JSON object"),
    ("/v1/store", {"content": b'{"content": "\\ud800"}', "headers": JSON}, 400, "content"),
    ("/v1/store", {"json": {"content": "x" * 300_000}}, 413, "more than 200,000 bytes"),
    ("/v1/store", {"content": b'{"content": "x"}', "headers": {"Content-Type": "text/plain"}}, 415,
     "Unsupported Media Type: send JSON with the header Content-Type: application/json"),
    ("/v1/store", {"json": {"content": 3}}, 400, "a text"),
    ("/v1/store", {"json": {"content": "x", "store": "sqlite:////etc/x.db"}}, 400,
     "unknown argument 'store'"),
    ("/v1/pin", {"json": {"id": "x"}, "headers": {"Idempotency-Key": "k"}}, 400,
     "takes no Idempotency-Key"),
    ("/v1/get", {"json": {"id": "../../etc/passwd"}}, 404, "no memory"),
    ("/v1/search", {"json": {"query": "x", "filter": "1=1; DROP TABLE memories"}}, 400, "filter"),
    ("/v1/search", {"json": {"query": "x", "ranker": "deep"}}, 400, "one of learnt, rrf"),
    ("/v1/../etc/passwd", {"json": {}}, 404, "Not Found"),
    ("/v1/backup", {"json": {"file": "x"}}, 404, "Not Found"),
    ("/v1/stats", {"json": {}, "headers": {"Memory-Agent": "x" * 300}}, 403, "at most 200"),
]  # fmt: skip


def test_a_malformed_request_gets_its_status_and_nothing_is_stored(tmp_path: Path) -> None:
    with running(tmp_path, server_max_body=200_000) as (client, server):
        for path, sent, status, detail in MALFORMED:
            answer = client.post(path, **sent)
            assert (answer.status_code, answer.headers["content-type"]) == (
                status,
                "application/problem+json",
            ), sent
            problem = answer.json()
            assert problem["status"] == status
            assert detail in problem["detail"], sent
            assert "Traceback" not in answer.text
        assert server.mesh.stats().total_memories == 0
        assert client.post("/v1/store", json={"content": "It goes on."}).status_code == 200


def test_an_error_of_the_server_shows_neither_its_text_nor_its_files(tmp_path: Path) -> None:
    with running(tmp_path, tmp_path / "memory.db") as (client, server):
        client.post("/v1/store", json=KEY)

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("the vault code is 4711")

        def refuse(*_: object, **__: object) -> None:
            raise StoreUnavailable("/srv/private/memory.db cannot be read")

        server.mesh.__class__ = type("Failing", (MemoryMesh,), {"stats": fail})
        answer = client.get("/v1/stats")
        assert (answer.status_code, "4711" in answer.text) == (500, False)
        server.mesh.__class__ = type("Broken", (MemoryMesh,), {"stats": refuse})
        answer = client.get("/v1/stats")
        assert (answer.status_code, answer.json()["title"]) == (
            503,
            "The store cannot be opened, read or written.",
        )
        assert "/srv/private" not in answer.text
        assert client.get("/v1/list").status_code == 200
    with running(tmp_path, f"sqlite:///{tmp_path}/memory.db?mode=ro") as (client, _):
        answer = client.post("/v1/store", json=KEY)
        assert (answer.status_code, "memory.db" in answer.text) == (403, False)


def test_a_repeated_request_with_the_same_key_stores_once(tmp_path: Path) -> None:
    key = {"Idempotency-Key": "k1"}
    with running(tmp_path, deduplicate=False) as (client, server):
        first, again = (
            client.post("/v1/store", json=KEY, headers=key).json()["id"] for _ in range(2)
        )
        assert first == again
        assert (
            client.post("/v1/store", json={"content": "Another."}, headers=key).status_code == 409
        )
        assert client.post("/v1/store", json=KEY).json()["id"] != first
        assert server.mesh.stats().total_memories == 2


def test_a_list_is_read_page_by_page(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        ids = [
            memory.id
            for memory in server.mesh.add_many([f"Number {n} of the list." for n in range(7)])
        ]
        pages, url = [], "/v1/list?limit=3&filter=content LIKE 'Number%25'"
        while url:
            answer = client.get(url)
            pages.append([one["id"] for one in answer.json()["results"]])
            url = answer.links["next"]["url"] if "next" in answer.links else ""
        assert [len(page) for page in pages] == [3, 3, 1]
        assert sorted(id_ for page in pages for id_ in page) == sorted(ids)


@pytest.mark.parametrize("path", ["/v1/store", "/v1/ingest"])
def test_a_blank_key_is_refused_and_nothing_is_stored(tmp_path: Path, path: str) -> None:
    with running(tmp_path) as (client, server):
        kind = LINES if path == "/v1/ingest" else {"Content-Type": "application/json"}
        for key in ("", " "):
            answer = client.post(
                path, content='{"content": "Fine."}', headers={**kind, "Idempotency-Key": key}
            )
            assert (answer.status_code, "blank" in answer.json()["detail"]) == (400, True)
        assert server.mesh.stats().total_memories == 0


def test_lines_are_stored_while_they_arrive_with_progress(tmp_path: Path) -> None:
    with running(tmp_path, deduplicate=False) as (client, server):
        lines = [
            json.dumps({"content": f"Line {n} of the stream.", "metadata": {"source": "log"}})
            for n in range(150)
        ]
        lines[7] = json.dumps("A plain text.")
        body = "\n".join(["", *lines])
        for _ in range(2):  # the key makes the second stream store nothing
            answer = client.post(
                "/v1/ingest", content=body, headers={**LINES, "Idempotency-Key": "s1"}
            )
            events = [part.splitlines() for part in answer.text.strip().split("\n\n")]
            assert [name for name, _ in events] == ["event: progress"] * 2 + ["event: done"]
            assert json.loads(events[-1][1].removeprefix("data: ")) == {"lines": 151, "stored": 150}
        assert server.mesh.stats().total_memories == 150
        for bad, why in (
            ('{"content": 3}', "content"),
            ("[1]", "line 2"),
            ("{", "line 2"),
            ('"' + "x" * 9_000_000, "more than"),
        ):
            answer = client.post(
                "/v1/ingest", content=f'{{"content": "Fine."}}\n{bad}\n', headers=LINES
            )
            name, data = answer.text.strip().splitlines()[-2:]
            assert (name, why in json.loads(data.removeprefix("data: "))["detail"]) == (
                "event: error",
                True,
            ), data
        refused = client.post("/v1/ingest", content="x", headers=JSON)
        assert (
            refused.status_code,
            "Content-Type: application/x-ndjson" in refused.json()["detail"],
        ) == (415, True)
        server.stopping.set()
        assert "event: error" in client.post("/v1/ingest", content=body, headers=LINES).text
        assert client.get("/ready").status_code == 503
        assert server.mesh.stats().total_memories == 150


def test_limits_of_requests_and_of_writes_are_per_caller(tmp_path: Path) -> None:
    with running(tmp_path, server_requests_per_minute=5, server_agent_writes_per_day=2) as (
        client,
        server,
    ):
        server.rate._clock = server.quota._clock = lambda: 0.0
        one, other = token(server, "one"), token(server, "other")
        statuses = [client.get("/v1/stats", headers=one).status_code for _ in range(6)]
        assert statuses == [200] * 5 + [429]
        assert client.get("/v1/stats", headers=one).headers["retry-after"] == "60"
        writes = [
            client.post("/v1/store", json={"content": f"Write {n}."}, headers=other).status_code
            for n in range(3)
        ]
        assert writes == [200, 200, 429]
        assert server.mesh.stats().total_memories == 2
        assert (
            client.post("/v1/store", json=KEY, headers={**other, "Memory-Agent": "b"}).status_code
            == 200
        )
        three = [{"role": "user", "content": f"Item {n}."} for n in range(3)]
        third = {**token(server, "third"), "Memory-Agent": "c"}
        for path, name in (("store-many", "items"), ("store", "messages")):
            answer = client.post(f"/v1/{path}", json={name: three}, headers=third)
            assert answer.status_code == 429
        server.rate._clock = server.quota._clock = lambda: 86_400.0
        assert client.post("/v1/store", json=KEY, headers=one).status_code == 200


@pytest.mark.req("MESH-138")
def test_the_server_runs_the_heartbeat_of_every_user_in_the_background(tmp_path: Path) -> None:
    with running(tmp_path, server_heartbeat_seconds=3600.0) as (client, server):
        pass
    token(server, "eve", user_id="eve")
    with running(
        tmp_path, server.mesh._source.objects.store or "memory://", server_heartbeat_seconds=0.01
    ) as (client, server):
        own = {"Authorization": token(server, "own")["Authorization"]}
        for _ in range(500):
            if server.metrics._counts["heartbeats"] >= 3:
                break
            client.get("/health")
        assert "memory_mesh_heartbeats_total" in client.get("/metrics", headers=own).text
        assert {run.job for run in server.mesh.heartbeat_log(limit=50)} >= {
            "guard",
            "decay",
            "retention",
        }
        assert server.mesh.scoped(user_id="eve").heartbeat_log(limit=50)
        assert not server.mesh.scoped(user_id="nobody-with-a-token").heartbeat_log(limit=50)


def test_the_heartbeat_goes_on_and_the_store_is_closed_when_the_file_of_tokens_cannot_be_read(
    tmp_path: Path,
) -> None:
    closed = list[bool]()
    (tmp_path / FILE).write_text('{"tokens": []}')
    with running(tmp_path, server_heartbeat_seconds=0.01) as (client, server):
        server.mesh.close = lambda close=server.mesh.close: closed.append(close() is None)  # type: ignore[method-assign]
        (tmp_path / FILE).write_text("damaged")
        failed = 0
        for _ in range(500):
            if (failed := server.metrics._counts["heartbeat_failures"]) >= 2:
                break
            client.get("/health")
        assert failed >= 2
    assert closed == [True]


def test_metrics_and_logs_say_what_happened_and_no_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path) as (client, server), caplog.at_level(logging.INFO, logger="memory_mesh"):
        own = token(server, "own")
        client.post("/v1/store", json={"content": "The vault code is on the moon."}, headers=own)
        client.get(
            "/v1/search",
            params={"query": "vault on the moon"},
            headers={**own, "Memory-Agent": "spy"},
        )
        client.get("/v1/stats")
        metrics = client.get("/metrics", headers=own).text
    assert 'memory_mesh_requests_total{route="/v1/search",status="200"} 1' in metrics
    assert 'memory_mesh_requests_total{route="/v1/stats",status="401"} 1' in metrics
    assert 'memory_mesh_request_seconds_count{route="/v1/store"} 1' in metrics
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    requests = [line for line in lines if "route" in line]
    assert [(line["route"], line["status"]) for line in requests[:3]] == [
        ("/v1/store", 200),
        ("/v1/search", 200),
        ("/v1/stats", 401),
    ]
    assert requests[0]["caller"] == "token:own"
    for word in ("moon", "vault", "secret-of-own", "spy"):
        assert word not in json.dumps(lines) + metrics
    record = logging.LogRecord(
        "memory_mesh", logging.ERROR, "", 1, "the key is AKIAIOSFODNN7EXAMPLE", None, None
    )
    assert "AKIAIOSFODNN7EXAMPLE" not in JsonLines().format(record)


@pytest.mark.deep  # only the deep tests install the library
def test_a_request_is_a_span_of_open_telemetry(tmp_path: Path) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with running(tmp_path) as (client, server):
        server.telemetry._tracer = provider.get_tracer("memory_mesh")
        client.get("/v1/search", params={"query": "vault on the moon"})
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/search"
    assert span.attributes is not None
    assert (span.attributes["http.route"], span.attributes["http.response.status_code"]) == (
        "/v1/search",
        200,
    )
    assert "moon" not in span.to_json()


def test_tokens_are_created_listed_and_revoked_on_the_command_line(cli, home: Path) -> None:  # type: ignore[no-untyped-def]
    made = json.loads(
        cli(
            "token", "create", "laptop", "--user", "ana", "--agent", "a", "--read-only", "--json"
        ).out
    )
    assert made["token"].startswith(f"mm_{made['id']}_")
    listed = cli("token", "list")
    assert "user ana, agent a, read-only  valid" in listed.out
    assert made["token"].split("_", 2)[2] not in listed.out + (home / "tokens.json").read_text()
    assert cli("token", "revoke", made["id"]).code == 0
    assert "revoked" in cli("token", "list").out
    assert cli("token", "revoke", "nothing").code == 4
    assert cli("token", "create", "x", "--expires", "soon").code == 2
    (home / "tokens.json").write_text("{")
    assert cli("token", "list").code == 3
    with pytest.raises(SettingsError, match="cannot be read"):
        TokenFile(home).tokens()


def test_the_server_says_what_is_missing_before_it_starts(cli, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    said = cli("serve", "--host", "0.0.0.0")  # noqa: S104
    assert (said.code, "there is no token" in said.err) == (3, True)
    assert cli("serve", "--port", "99999").code == 3
    text = tmp_path / "text.db"
    text.write_text("This is a text and not a store.")
    for store, code in ((text, 11), (text / "memory.db", 7)):
        said = cli("serve", "--store", str(store))
        assert (said.code, said.err.count("\n")) == (code, 1), said.err


def test_a_terminal_gets_a_line_about_the_console_and_a_pipe_only_the_log(
    cli, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(serve.connections, "write_json_lines", lambda: None)
    monkeypatch.setattr(serve, "run", lambda *_: None)  # ends at once
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    said = cli("serve", "--port", str(port), terminal=True)
    assert f"Console: http://127.0.0.1:{port}/console/ (Ctrl-C ends the server)\n" in re.sub(
        r"\x1b\[[\d;]*m", "", said.out
    )
    assert said.out.count("\n") == 1
    assert cli("serve", "--port", str(port)).out == ""
    assert "http://[::1]:8710/console/" in serve.console_line("::1", 8710)
    assert "http://localhost:8710/console/" in serve.console_line("0.0.0.0", 8710)  # noqa: S104


def test_answers_are_sent_at_once_and_do_not_wait_for_the_client() -> None:
    def is_sent_at_once(listening: socket.socket) -> bool:
        async def accept() -> bool:
            accepted = asyncio.get_running_loop().create_future()
            serving = await asyncio.start_server(
                lambda _, writer: accepted.set_result(writer), sock=listening
            )
            _, client = await asyncio.open_connection(*listening.getsockname()[:2])
            writer = await accepted
            found = writer.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            client.close()
            writer.close()
            serving.close()
            return bool(found)

        return asyncio.run(accept())

    assert is_sent_at_once(listen("127.0.0.1", 0))
    # Otherwise the line in `listen` can go.
    assert not is_sent_at_once(socket.create_server(("127.0.0.1", 0)))


def test_the_description_says_which_arguments_exclude_each_other_and_what_a_time_is(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]

    def body(path: str) -> dict[str, Any]:
        post = paths[path]["post"]
        return post["requestBody"]["content"]["application/json"]["schema"]  # type: ignore[no-any-return]

    assert body("/v1/delete")["allOf"] == [{"oneOf": [{"required": ["id"]}, {"required": ["key"]}]}]
    formats = body("/v1/episodes")["properties"]["since"]["anyOf"]
    assert [one["format"] for one in formats] == ["date", "date-time"]
    assert "similar" in body("/v1/graph/link")["properties"]["type"]["not"]["enum"]
    assert body("/v1/graph/store")["properties"]["claim"]["required"] == [
        "subject",
        "predicate",
        "value",
    ]


def test_what_the_status_of_a_memory_does_not_allow_is_a_conflict_and_an_unknown_id_is_not_found(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, _):
        id_ = client.post("/v1/store", json={"content": "Ana prefers tea."}).json()["id"]
        answer = client.post("/v1/unarchive", json={"memory_id": id_})
        assert (answer.status_code, answer.json()["type"]) == (
            409,
            "urn:memory-mesh:error:WrongStatus",
        )
        link = {"source_id": "x", "target_id": "x", "type": "cause"}
        assert client.post("/v1/graph/link", json=link).status_code == 404
        assert (
            client.post("/v1/confirm-change", json={"newer": "x", "older": "x"}).status_code == 404
        )
        same = {"source_id": id_, "target_id": id_, "type": "cause"}
        assert client.post("/v1/graph/link", json=same).status_code == 400
