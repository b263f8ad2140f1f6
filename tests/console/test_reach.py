"""What a limited token sees on the pages of the console: nothing that belongs to another agent,
project or user."""

from pathlib import Path

import pytest

from interfaces.rest_server import running, token
from memory_mesh.flows.search import overview

USER = {"source": "user_explicit"}
JOB = {"subject": "Ana", "predicate": "works_at"}
PAGES = ("memory", "erase-preview")


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize(
    "limits",
    [{"agent_id": "reader"}, {"agent_id": "server", "project": "shop"}, {"project": "shop"}],
)
def test_a_limited_token_reads_no_text_through_a_memory_that_is_linked_to_it(
    limits: dict[str, str], tmp_path: Path
) -> None:
    with running(tmp_path) as (client, server):
        bank = server.mesh.scoped(project="bank")
        shared = server.mesh.add("The deploy key rotates on Mondays.")
        secret = bank.add("VAULT: the deploy key is 1234.", {"type": "agent"})
        server.mesh.graph.link(shared.id, secret.id, "cause")
        digest = bank.reflect().memory_id
        assert digest
        texts = {}
        for name, header in {
            "whole": token(server, "whole"),
            "limited": token(server, "limited", **limits),
        }.items():
            answers = [
                client.get(f"/console/api/{page}", params={"id": shared.id}, headers=header)
                for page in PAGES
            ]
            assert [one.status_code for one in answers] == [200, 200], name
            texts[name] = [one.text for one in answers]
            preview = answers[1].json()
            assert (
                len(preview["erased"]) + len(preview["changed"]) + preview["hidden"],
                preview["hidden"] > 0,
            ) == (
                2,
                name == "limited",
            )
        assert all("VAULT" in text for text in texts["whole"])
        for text in texts["limited"]:
            assert "The deploy key" in text
            assert not [one for one in ("VAULT", secret.id, digest) if one in text]


@pytest.mark.req("MESH-009")
def test_a_limited_token_reads_no_rival_and_no_successor_of_another_project(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        bank = server.mesh.scoped(project="bank")
        old = server.mesh.graph.store(
            "server", "Ana works at Acme.", claim={**JOB, "value": "Acme"}, provenance=USER
        )
        bank.graph.store(
            "server", "Ana works at VAULT.", claim={**JOB, "value": "VAULT"}, provenance=USER
        )
        path, asked = "/console/api/memory", {"id": old.id}
        assert "VAULT" in client.get(path, params=asked, headers=token(server, "whole")).text
        answer = client.get(
            path, params=asked, headers=token(server, "limited", agent_id="server", project="shop")
        )
        assert (answer.status_code, "Acme" in answer.text, "VAULT" in answer.text) == (
            200,
            True,
            False,
        )


def test_the_pages_follow_the_writes_of_the_server_itself(tmp_path: Path) -> None:
    with running(tmp_path, str(tmp_path / "memory.db")) as (client, server):
        memories = []
        for number in range(1, 4):
            memories.append(server.mesh.add(f"Number {number} of a list."))
            if number > 1:
                server.mesh.graph.link(memories[-2].id, memories[-1].id, "cause")
            days = client.get("/console/api/timeline").json()["days"]
            assert (
                client.get("/console/api/numbers").json()["total"],
                sum(one for _, one in days),
            ) == (number, number)
            picture = client.get("/console/api/graph").json()
            linked = [edge for edge in picture["edges"] if edge["type"] == "cause"]
            assert (len(picture["nodes"]), len(linked)) == (number, number - 1)
        server.mesh.graph.archive(memories[0].id)
        assert memories[0].id not in client.get("/console/api/graph").text


def test_only_a_few_views_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller chooses seed, limits and session, so everything that is kept for them would
    fill the memory of the server."""
    with running(tmp_path) as (client, server):
        one, other = server.mesh.add_many(["The first one.", "Something else."])
        server.mesh.graph.link(one.id, other.id, "cause")
        drawn = []
        draw = overview._picture
        monkeypatch.setattr(
            overview, "_picture", lambda *given: drawn.append(given) or draw(*given)
        )
        for limit in (1, 1, *range(2, 40), 1):
            assert client.get("/console/api/graph", params={"limit": limit}).status_code == 200
        assert len(drawn) == 40  # the second one was kept, and the last one was not
