"""The answers of REST and what `/openapi.json` says about them: every operation is called, over
memories that give each record something to say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from judging import BERLIN, MUNICH, give_judge
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Effect, Interface
from memory_mesh.interfaces.rest.openapi import path_of
from memory_mesh.testing.fakes import FakeClock

from .rest_server import running

OPERATIONS = {one.name: one for one in remote.exposed(Interface.REST)}
# A sound store has no broken chain, and the fake embedder no vectors of words.
UNSEEN = {"BrokenChain", "WordPair"}
FAILURE = {
    "status": "error", "error_pattern": "stale_token",
    "preventative_rule": "Refresh the token first.",
}  # fmt: skip
SKILL = """\
name: Deploy
intent: deploy the site
steps:
  - run make deploy
"""


class Calls:
    """Call operations, and check each answer with its schema."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.spec = client.get("/openapi.json").json()
        self.called = set[str]()
        self.seen = set[str]()  # the components that some value had

    def __call__(self, name: str, **arguments: object) -> Any:
        operation = OPERATIONS[name]
        path = path_of(operation)
        answer = self.client.post(path, json=arguments)
        assert answer.status_code == 200, (name, answer.text)
        for method in ("post", *(["get"] if operation.effect is Effect.READ else [])):
            described = self.spec["paths"][path][method]["responses"]["200"]
            schema = described["content"]["application/json"]["schema"]
            assert schema.keys() == {"$ref"}
            whole = {**schema, "components": self.spec["components"]}
            wrong = [
                f"{name}: {error.json_path}: {error.message[:300]}"
                for error in Draft202012Validator(whole).iter_errors(answer.json())
            ]
            assert not wrong, "\n".join(wrong)
        self.called.add(name)
        self.seen |= set(self._used(schema, answer.json()))
        return answer.json()

    def _used(self, schema: Any, value: Any) -> Iterator[str]:
        """Yield the components that the parts of a value are described by."""
        if reference := schema.get("$ref"):
            name = reference.rpartition("/")[2]
            yield name
            schema = self.spec["components"]["schemas"][name]
        for one in schema.get("anyOf", ()):
            whole = {**one, "components": self.spec["components"]}
            if Draft202012Validator(whole).is_valid(value):
                yield from self._used(one, value)
        for item in value if isinstance(value, list) else ():
            yield from self._used(schema.get("items", {}), item)
        for part, item in value.items() if isinstance(value, dict) else ():
            more = schema.get("additionalProperties") or {}
            yield from self._used(schema.get("properties", {}).get(part, more), item)


def test_every_answer_fits_its_schema_and_no_schema_is_only_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_judge(monkeypatch)
    clock = FakeClock()
    folders = {"notes_dir": str(tmp_path / "notes"), "traces_dir": str(tmp_path / "traces")}
    with running(tmp_path, agent="ann", clock=clock.seconds, **folders) as (client, server):
        call = Calls(client)
        server.mesh.heartbeat()
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "bad.md").write_text("---\ntitle: [\n---\nbad")
        memories(call, clock)
        claims(call, clock)
        learning(call, clock)
        notes(call)
        traces(call, clock)
        upkeep(call, clock)
        used = call.spec["components"]["schemas"].keys()
        assert call.called == OPERATIONS.keys()
        assert used - call.seen - UNSEEN == {"Problem"}


def memories(call: Calls, clock: FakeClock) -> None:
    key = call(
        "store",
        content="The deploy key rotates on Mondays. Mail ana@example.com.",
        tags=["ops"],
        key="ops/key",
        metadata={"source": None, "n": 1},
    )
    call("store-many", items=[{"role": "user", "content": "We met Eve in Rome."}])
    call("extract", text="The office moves to Vienna in May. Ana prefers green tea.")
    call("update", id=key["id"], content="The deploy key rotates on Fridays.", why="new plan")
    call("pin", id=key["id"])
    call("heritage", memory_id=key["id"], intent_chain=["ship 1.2"])
    call("store", content="# Plan\n\n" + "The harbour has ships. " * 400 + "The lighthouse is red.")
    call("search", query="is the lighthouse red?")
    call("search", query="when does the deploy key rotate?", mode="recall")
    call("search-for-model", query="deploy key")
    call("explain", query="deploy keys of the office", mode="recall", min_score=0.7)
    call("explain", query="deploy key", mode="recall")
    call("get", id=key["id"])
    assert call("list", limit=2)["next"]
    call("history", id=key["id"])
    call("sightings", id=key["id"])
    call("stats")
    older = call("store", content=BERLIN)["id"]
    clock.advance(days=1)
    newer = call("store", content=MUNICH)["id"]
    assert call("changes")["count"] == 1
    call("confirm-change", newer=newer, older=older)
    call("undo-change", newer=newer, older=older)
    call("store", content="The meeting is short.", type="session", metadata={"session_id": "s1"})
    call("end-session", session_id="s1")
    call("episodes")
    episode = call("episodes")["episodes"][0]["id"]
    call("episode-summary", episode=episode)
    call("episode-digest", episode=episode)
    call("context", query="deploy key", explain=True)
    ids = [one["id"] for one in call("list")["memories"]]
    call("graph link", source_id=ids[0], target_id=ids[1], type="cause")
    call("links", memory_id=ids[0])
    assert call("graph traverse", start_id=ids[0])["count"]
    call("graph search", query="deploy key", explain=True)
    call("graph unlink", source_id=ids[0], target_id=ids[1], type="cause")
    call("archive", memory_id=ids[0])
    call("unarchive", memory_id=ids[0])
    call("reinforce", memory_id=ids[0])
    call("dispute", memory_id=ids[1], reason="wrong")
    call("store", content="[2026-11-19 01:02:03] ERROR worker 17: connection reset by peer")
    call("store", content="What time is the meeting?")
    call("junk")
    assert call("junk-list")["count"]


def claims(call: Calls, clock: FakeClock) -> None:
    def stored(value: str, source: str) -> Any:
        clock.advance(days=1)
        claim = {"subject": "Ana", "predicate": "works_at", "value": value}
        return call(
            "graph store", text=f"Ana works at {value}.", claim=claim, provenance={"source": source}
        )

    acme = stored("Acme", "user_explicit")
    stored("Bolt", "inference")
    assert call("quarantined")["count"]
    [conflict] = call("conflicts")["conflicts"]
    call("explain-memory", memory_id=acme["id"])
    call("resolve-conflict", conflict_id=conflict["id"], keep="new")
    call("explain-memory", memory_id=acme["id"])
    for action in ("activate", "reject", "keep-both"):
        id_ = call("graph store", text=f"Maybe {action}.", quarantine=True)["id"]
        call(f"review-{action}", memory_id=id_)
    call("review-undo", memory_id=id_)
    lane = call("lane store", content="Use pnpm, not npm.", memory_type="correction")
    call("lane find", query="pnpm")
    call("lane feedback", id=lane["id"], signal="helpful")
    call(
        "lane judge",
        messages=[
            {
                "role": "user",
                "content": "We decided to go with Postgres for the ledger, MySQL is out.",
            },
            {"role": "user", "content": "What time is it?"},
        ],
    )


def learning(call: Calls, clock: FakeClock) -> None:
    lesson = call(
        "distill-lesson",
        error_pattern="token_expired",
        preventative_rule="Refresh the token.",
        situation="The deploy failed.",
        oversight="Nobody looked.",
        fix="A new token.",
        severity="high",
        applicable_scope="deploys",
    )
    call("store", content="The deploy failed.", metadata=FAILURE)
    call("store", content="The release failed.", metadata={"status": "error"})
    assert call("distill")["candidates"]
    call("lessons")
    call("reflect")
    call("synthesize", topic="deploys")
    skill = call("ingest-skill", yamo_text=SKILL)
    call("lesson-to-skill", lesson_id=lesson["lesson_id"])
    call("search-skills", query="deploy the site")
    call("list-skills")
    call("skill-feedback", id=skill["id"], success=False)
    call("skill-prune", threshold=0.9)
    call("heartbeat-log")
    call("audit head")
    call("audit log")
    call("audit-verify")


def notes(call: Calls) -> None:
    call(
        "notes add",
        title="Login rules",
        content="Sessions end after 15 minutes.",
        when_to_use=["login|session"],
        importance="high",
    )
    call(
        "notes extract",
        agent_output="I found that the import fails without UTF-8.",
        task="fix the import",
        agent="developer",
    )
    call("notes list")
    assert call("notes match", task="add a login page")["count"]
    call("notes inject", task="add a login page")
    call("notes lint")
    call("notes sync")


def traces(call: Calls, clock: FakeClock) -> None:
    for status in ("success", "success", "success", "failure"):
        made = call(
            "trace-record",
            goal="Deploy the shop",
            status=status,
            duration_ms=10,
            steps=["build", "push"],
            learnings=["The token had expired"],
            decisions=["Use blue-green because it is safe"],
            tools_used=["make"],
        )
        clock.advance(days=1 / 24)
    call("trace show", trace_id=made["trace_id"])
    call("trace list")
    call("trace-similar", goal="Deploy the shop")
    call("trace consolidate")
    call("trace plan", goal="Deploy the shop")
    call("trace decisions", trace_id=made["trace_id"])
    call("trace archive")
    clock.advance(days=200)
    call("trace retention")


def upkeep(call: Calls, clock: FakeClock) -> None:
    for n in range(6):
        call("store", content=f"The backup of server {n} runs at night and is checked by Ana.")
    call("consolidate", min_cluster_size=2)
    call("compress", min_cluster_size=2)
    call("decay")
    id_ = call("list")["memories"][0]["id"]
    call("delete", id=id_)
    call("forget", id=call("list")["memories"][0]["id"], verify=True)
    call("delete-all", session_id="s1")
