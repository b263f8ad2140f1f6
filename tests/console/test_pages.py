"""What the pages of the console read beside the verbs: numbers, timeline, graph, one memory,
what an erasure takes along."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from interfaces.rest_server import running, token
from memory_mesh.core.model import iso
from memory_mesh.testing import FakeClock

USER = {"source": "user_explicit"}
ANA = {"subject": "Ana", "predicate": "works_at"}


@pytest.mark.req("MESH-009")
def test_numbers_count_what_the_caller_can_see(tmp_path: Path) -> None:
    clock = FakeClock()
    with running(tmp_path, clock=clock.seconds) as (client, server):
        server.mesh.add("The deploy key rotates on Mondays.")
        clock.advance(days=3)
        server.mesh.add_many(
            [
                "Tea is in the cupboard.",
                {"content": "Only for the server.", "metadata": {"type": "agent"}},
            ]
        )
        server.mesh.scoped(agent_id="other").add("Only for another agent.", {"type": "agent"})
        server.mesh.scoped(user_id="eve").add("Only for Eve.")
        server.mesh.graph.store("server", "Ana works at Acme.", claim={**ANA, "value": "Acme"})
        client.get("/v1/search", params={"query": "deploy key"})
        found = client.get("/console/api/numbers").json()
        assert (found["total"], found["status"], found["kinds"]) == (
            4,
            {"active": 4},
            {"global": 2, "agent": 2},
        )
        assert [number for _, number in found["by_day"]] == [1, 3]
        assert (found["first"], found["last"]) == (found["by_day"][0][0], found["by_day"][-1][0])
        assert (sum(found["trust"]), len(found["trust"])) == (found["trust_of"], 10)
        latency = found["latency_ms"]
        assert (latency["count"], sum(number for _, number in latency["buckets"])) == (1, 1)
        assert found["spending"] == {"today": [], "in_all": []}
        limited = token(server, "limited", project="shop")
        hidden = client.get("/console/api/numbers", headers=limited).json()
        assert not {"spending", "latency_ms"} & hidden.keys()  # of all users
        eve = client.get("/console/api/numbers", headers=token(server, "eve", user_id="eve")).json()
        assert (eve["total"], {"spending", "latency_ms"} & eve.keys()) == (1, set())
        server.mesh.scoped(project="bank").add("A secret of the bank.")
        server.mesh.scoped(project="shop").add("The shop opens at nine.")
        assert (
            client.get("/console/api/numbers", headers=limited).json()["total"]
            == hidden["total"] + 1
        )
        assert (
            client.get("/v1/stats", headers=limited).json()["total_memories"] == hidden["total"] + 1
        )


def test_many_days_are_counted_in_groups(tmp_path: Path) -> None:
    clock = FakeClock()
    with running(tmp_path, clock=clock.seconds) as (client, server):
        for n in range(5):
            server.mesh.add(f"Number {n} of a long time.")
            clock.advance(days=100)
        found = client.get("/console/api/numbers").json()
        assert found["step_days"] == 4
        assert [number for _, number in found["by_day"]] == [1] * 5


def test_the_timeline_shows_what_was_true_and_what_was_known_at_a_time(tmp_path: Path) -> None:
    clock = FakeClock()
    with running(tmp_path, clock=clock.seconds) as (client, server):
        old = server.mesh.graph.store(
            "server", "Ana works at Acme.", claim={**ANA, "value": "Acme"}, provenance=USER
        )
        before = iso(clock.ms)
        clock.advance(days=10)
        new = server.mesh.graph.store(
            "server", "Ana works at Bolt.", claim={**ANA, "value": "Bolt"}, provenance=USER
        )

        def shown(**arguments: str) -> list[str]:
            answer = client.get("/console/api/timeline", params=arguments)
            assert answer.status_code == 200, answer.text
            return [one["id"] for one in answer.json()["results"]]

        assert shown() == [new.id]
        assert shown(known_at=before) == [old.id]
        (one,) = client.get("/console/api/timeline", params={"known_at": before}).json()["results"]
        assert (one["title"], one["status"], one["kind"]) == (
            "Ana works at Acme.",
            "active",
            "agent",
        )
        assert shown(as_of=before) == [new.id]  # as is known now, it was always true
        server.mesh.add_many([f"Number {n} of the list." for n in range(7)])
        first = client.get("/console/api/timeline", params={"limit": 5}).json()
        rest = client.get(
            "/console/api/timeline", params={"limit": 5, "after": first["next"]}
        ).json()
        assert (len(first["results"]), len(rest["results"]), "next" in rest, first["count"]) == (
            5,
            3,
            False,
            8,
        )
        now = {"known_at": server.mesh.get_all(limit=1)[0].created_at}
        pages = [client.get("/console/api/timeline", params={**now, "limit": 5}).json()]
        pages.append(
            client.get(
                "/console/api/timeline", params={**now, "limit": 5, "after": pages[0]["next"]}
            ).json()
        )
        assert len({one["id"] for page in pages for one in page["results"]}) == 8


def test_the_graph_shows_linked_memories_and_groups_of_them_when_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as (client, server):
        ids = [
            memory.id
            for memory in server.mesh.add_many([f"Number {n} of the graph." for n in range(12)])
        ]
        for one, other in pairwise(ids[:6]):
            server.mesh.graph.link(one, other, "cause")
        server.mesh.graph.link(ids[7], ids[8], "related")
        hidden = server.mesh.scoped(agent_id="other").add(
            "Only for another agent.", {"type": "agent"}
        )
        found = client.get("/console/api/graph").json()
        linked = {
            (edge["from"], edge["to"], edge["type"])
            for edge in found["edges"]
            if edge["type"] != "similar"
        }
        assert linked == {
            *((one, other, "cause") for one, other in pairwise(ids[:6])),
            (ids[7], ids[8], "related"),
        }
        names = {node["id"]: node for node in found["nodes"]}
        assert (hidden.id in names, found["aggregated"]) == (False, False)
        assert names[ids[0]]["cluster"] == names[ids[5]]["cluster"]
        near = client.get("/console/api/graph", params={"seed": ids[7], "depth": 1}).json()
        assert near["nodes"][0]["id"] == ids[7]
        assert ids[8] in {node["id"] for node in near["nodes"]}
        few = client.get("/console/api/graph", params={"limit": 3}).json()
        assert few["aggregated"] is True
        assert len(few["nodes"]) <= 3
        assert max(node["count"] for node in few["nodes"]) >= 6
        assert "newest" not in few
        monkeypatch.setattr("memory_mesh.flows.search.overview._MAX_LINKS", 2)
        # Not the picture that is kept.
        cut = client.get("/console/api/graph", params={"limit": 400}).json()
        assert (cut["newest"], len(cut["edges"])) == (2, 2)
        assert client.get("/console/api/graph", params={"seed": hidden.id}).status_code == 404
        assert client.get("/console/api/graph", params={"limit": 9999}).status_code == 400


def test_one_memory_comes_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        memory = server.mesh.add("The deploy key rotates on Mondays. " * 200)
        server.mesh.update(
            memory.id, content="The deploy key rotates on Fridays. " * 200, why="new plan"
        )
        other = server.mesh.add("The key is in the vault.")
        server.mesh.graph.link(memory.id, other.id, "related")
        found = client.get("/console/api/memory", params={"id": memory.id}).json()
        assert found["memory"]["revision"] == 2
        assert [change["action"] for change in found["history"]] == ["add", "update"]
        assert [(block["action"], block["memory_revision"]) for block in found["blocks"]] == [
            ("add", 1),
            ("update", 2),
        ]
        assert all(block["seal"] for block in found["blocks"])
        assert "yamo_text" not in found["blocks"][0]
        assert any(link["memory"]["id"] == other.id for link in found["links"])
        assert (len(found["sightings"]), found["trust"]["value"] > 0) == (1, True)


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("page", ["memory", "erase-preview"])
def test_a_memory_of_another_agent_is_shown_only_to_who_may_see_it(
    page: str, tmp_path: Path
) -> None:
    with running(tmp_path) as (client, server):
        secret = server.mesh.scoped(agent_id="planner").add(
            "Only for the planner.", {"type": "agent"}
        )
        eve = server.mesh.scoped(user_id="eve").add("Only for Eve.")
        path, own = f"/console/api/{page}", token(server, "own")
        limited, narrow = (
            token(server, "limited", agent_id="other"),
            token(server, "planner", agent_id="planner"),
        )
        assert client.get(path, params={"id": secret.id}, headers=narrow).status_code == 200
        assert client.get(path, params={"id": secret.id}, headers=limited).status_code == 404
        assert client.get(path, params={"id": eve.id}, headers=own).status_code == 404
        assert client.get(path, params={"id": secret.id}).status_code == 401
        assert (
            client.get("/console/api/memory", params={"id": secret.id}, headers=own).status_code
            == 200
        )


def test_what_goes_along_with_an_erasure_is_shown_and_nothing_is_erased(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        first, second = server.mesh.add_many(
            ["The deploy key rotates on Mondays.", "The cache is cleared on Mondays."]
        )
        digest = server.mesh.reflect().memory_id
        preview = client.get("/console/api/erase-preview", params={"id": first.id}).json()
        assert [one["id"] for one in preview["erased"]] == [first.id]
        assert [one["id"] for one in preview["changed"]] == [digest]
        assert server.mesh.get(first.id) is not None
        proof = server.mesh.erase(first.id)
        assert (preview["rows"], preview["tombstones"]) == (proof.rows, len(proof.tombstones))
        alone = client.get("/console/api/erase-preview", params={"id": second.id}).json()
        assert [one["id"] for one in alone["erased"]] == [second.id, digest]
        assert client.get("/console/api/erase-preview", params={"id": first.id}).status_code == 404


def test_the_audit_chains_are_read_over_rest_by_the_user_of_the_server_only(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        server.mesh.add("The deploy key rotates on Mondays.")
        own, limited = token(server, "own"), token(server, "limited", agent_id="server")
        for path in (
            "/v1/audit/head",
            "/v1/audit/log",
            "/v1/audit/verify",
            "/v1/heartbeat-log",
            "/console/api/anchors",
        ):
            assert client.get(path, headers=own).status_code == 200, path
            assert client.get(path, headers=limited).status_code == 403, path
        verdict = client.get(
            "/v1/audit/verify", params={"agent_id": "server", "recalls": "false"}, headers=own
        ).json()
        assert (verdict["ok"], len(verdict["results"])) == (True, 1)
        assert (
            client.get("/v1/audit/log", params={"auditor": "Eve"}, headers=own).status_code == 400
        )
        assert client.get("/console/api/anchors", headers=own).json() == {
            "configured": False,
            "heads": [],
        }


def test_the_last_anchor_of_the_heartbeat_is_shown_with_its_time(tmp_path: Path) -> None:
    with running(tmp_path, audit_anchor=str(tmp_path / "anchors.jsonl")) as (client, server):
        server.mesh.add("The deploy key rotates on Mondays.")
        assert client.get("/console/api/anchors").json() == {"configured": True, "heads": []}
        server.mesh.heartbeat(jobs=["anchor"])
        shown = client.get("/console/api/anchors").json()
        (line,) = (tmp_path / "anchors.jsonl").read_text(encoding="utf-8").splitlines()
        written = json.loads(line)
        assert shown["time"] == written["anchored_at"]
        assert shown["heads"] == [
            {"chain": one["chain"], "block_hash": one["block_hash"]} for one in written["heads"]
        ]
        assert "no chain has grown" in str(
            server.mesh.heartbeat(jobs=["anchor"], force=True).runs[-1]
        )


def test_a_page_refuses_arguments_that_it_does_not_know(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        for query in ("graph?seeed=x", "graph?limit=x", "graph?limit=1&limit=2", "graph?limit=-1",
                      "timeline?as_of=soon", "timeline?known_at=2999-01-01", "numbers?x=1",
                      f"memory?id={'x' * 60_000}", "memory"):  # fmt: skip
            answer = client.get(f"/console/api/{query}")
            assert answer.status_code in (400, 404), query
            assert answer.headers["content-type"] == "application/problem+json"


def test_a_caller_is_told_of_the_users_that_it_may_read(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):

        def users(**headers: str) -> tuple[dict[str | None, int], dict[str, object]]:
            answer = client.get("/console/api/users", headers=headers).json()
            counts = {one.get("user_id"): one["memories"] for one in answer["results"]}
            return counts, answer

        assert users()[1]["memories"] == 0
        server.mesh.add("The deploy key rotates on Mondays.")
        ana, eve = server.mesh.scoped(user_id="ana"), server.mesh.scoped(user_id="eve")
        ana.scoped(project="shop").add_many(["The shop opens at nine.", "It closes at six."])
        ana.scoped(project="bank").add("A secret of the bank.")
        ana.scoped(agent_id="other").add("Only for another agent.", {"type": "agent"})
        eve.add("Only for Eve.")
        server.mesh.scoped(user_id="a\u202eb").add("Of a user that no header can name.")
        counts, local = users()
        assert counts == {"ana": 4, None: 1, "eve": 1, "a\u202eb": 1}
        assert [one["readable"] for one in local["results"]].count(False) == 1
        assert (local["every"], local["users"], local["memories"]) == (True, 4, 7)
        assert (local["of_user"], local["visible"], client.get("/console/session").json()[
            "may_switch"]) == (1, 1, True)  # fmt: skip
        counts, chosen = users(**{"Memory-User": "ana"})
        assert (counts["eve"], chosen["user"]) == (1, "ana")
        assert (chosen["of_user"], chosen["visible"]) == (4, 3)
        assert users(**{"Memory-User": "bob"})[1]["of_user"] == 0
        for header, own in (
            (token(server, "ana", user_id="ana"), {"ana": 4}),
            (token(server, "none"), {None: 1}),
            (token(server, "agent", user_id="ana", agent_id="server"), {"ana": 3}),
            (token(server, "shop", user_id="ana", project="shop"), {"ana": 2}),
        ):
            counts, answer = users(**header)
            assert counts == own
            assert (answer["every"], answer["users"], answer["memories"]) == (
                False,
                1,
                *own.values(),
            )
            assert '"eve"' not in json.dumps(answer)
            other = client.get("/console/api/users", headers={**header, "Memory-User": "eve"})
            assert other.status_code == 403
        client.post("/console/login", json={"token": header["Authorization"].split()[1]})
        assert client.get("/console/session").json()["may_switch"] is False


def test_a_server_of_one_user_tells_of_no_other(tmp_path: Path) -> None:
    with running(tmp_path, user_id="ana") as (client, server):
        server.mesh.add("The deploy key rotates on Mondays.")
        server.mesh.scoped(user_id="eve").add("Only for Eve.")
        answer = client.get("/console/api/users").json()
        assert [(one["user_id"], one["memories"]) for one in answer["results"]] == [("ana", 1)]
        assert answer["every"] is False
        assert client.get("/console/session").json()["may_switch"] is False


def test_what_happened_is_counted_and_listed_by_its_own_date(tmp_path: Path) -> None:
    clock = FakeClock()
    today = iso(clock.ms)[:10]
    with running(tmp_path, clock=clock.seconds) as (client, server):
        times = ["2019-05-02", "2019-05-01", None, "2031-01-01"]
        for number, time in enumerate(times):
            given = {"event_time": time} if time else {}
            server.mesh.add(f"Number {number} of what happened.", given)

        def happened(until: str, limit: int = 50) -> tuple[list[str], int]:
            found = client.get(
                "/console/api/timeline", params={"happened": until, "limit": limit}
            ).json()
            assert (found["first"], found["last"]) == ("2019-05-01", "2031-01-01")
            return [one["title"].split()[1] for one in found["results"]], found["count"]

        assert happened("9999-12-31") == (["3", "2", "0", "1"], 4)
        assert happened(f"{today}T23:59:59.999Z") == (["2", "0", "1"], 3)
        assert happened("9999-12-31", limit=2) == (["3", "2"], 4)
        assert happened("2019-05-01T23:00:00Z") == (["1"], 1)
        assert happened("2019-04-30") == ([], 0)
        numbers = client.get("/console/api/numbers").json()
        assert (numbers["first"], numbers["total"]) == ("2019-05-01", 4)
        assert sum(number for _, number in numbers["by_day"]) == 4
        stored = client.get("/console/api/timeline").json()
        assert (stored["first"], stored["last"]) == (today, today)


def test_a_plain_chat_is_linked_by_session_and_by_similarity(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        texts = ["The tea is green.", "Is the tea green?", "Where do penguins sleep at night?"]
        chat = [
            server.mesh.scoped(session_id=name).add({"role": "user", "content": text})
            for text, name in zip(texts, ("s1", "s2", "s1"), strict=True)
        ]
        alone = server.mesh.add("Zebras run.")
        found = client.get("/console/api/graph").json()
        edges = {(frozenset((one["from"], one["to"])), one["type"]) for one in found["edges"]}
        tea, other, penguins = (memory.id for memory in chat)
        assert (frozenset((tea, penguins)), "session") in edges
        assert (frozenset((tea, other)), "similar") in edges
        assert len({ends for ends, _ in edges}) == len(edges) == 2
        nodes = {node["id"]: node for node in found["nodes"]}
        assert nodes.keys() == {tea, other, penguins, alone.id}
        assert nodes[tea]["session"] == "s1"
        around = client.get("/console/api/graph", params={"seed": penguins}).json()
        assert {node["id"] for node in around["nodes"]} >= {tea, penguins}
