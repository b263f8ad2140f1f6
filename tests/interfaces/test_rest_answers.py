"""The answers of REST and what `/openapi.json` says about them: every operation is called, over
memories that give each record something to say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from judging import BERLIN, MUNICH, give_judge
from memory_mesh import InvalidInput, MemoryMesh, MemoryMeshError, TooLarge
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Interface, Kind, Operation, Parameter
from memory_mesh.interfaces.rest import app, openapi
from memory_mesh.interfaces.rest.openapi import path_of
from memory_mesh.testing.fakes import FakeClock

from .rest_server import running, token
from .test_remote import minimal

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
        for method in self.spec["paths"][path].values():
            described = method["responses"]["200"]
            schema = described["content"]["application/json"]["schema"]
            assert schema.keys() in ({"$ref"}, {"anyOf"})
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
        assert used - call.seen - UNSEEN == {"Problem", "ServerStatus"}


def memories(call: Calls, clock: FakeClock) -> None:
    key = call(
        "store",
        content="The deploy key rotates on Mondays. Mail ana@example.com.",
        tags=["ops"],
        key="ops/key",
        metadata={"source": None, "n": 1},
    )
    call("store-many", items=[{"role": "user", "content": "We met Eve in Rome."}])
    call("store", messages=[{"role": "user", "content": "We met Ian in Bonn."}])
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
    episode = call("episodes")["results"][0]["id"]
    call("episode-summary", episode=episode)
    call("episode-digest", episode=episode)
    call("context", query="deploy key", explain=True)
    ids = [one["id"] for one in call("list")["results"]]
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
    [conflict] = call("conflicts")["results"]
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
    id_ = call("list")["results"][0]["id"]
    call("delete", id=id_)
    call("forget", id=call("list")["results"][0]["id"], verify=True)
    call("delete-all", session_id="s1")


# --- the name of the list ---

# An answer that is a record of its own has the names of its fields; these have one list of records.
OWN_LISTS = {
    "compress": ("digests", "neolata-mem notes, §1: autoCompress"),
    "notes sync": ("faults", "SPEC-0009: what is wrong in the files, beside the counts"),
    "trace show": ("steps", "LLMos memory schema: Steps Executed"),
    "trace-record": ("steps", "LLMos memory schema: Steps Executed"),
    "trace consolidate": ("patterns", "LLMos memory schema: common patterns"),
    "trace archive": ("patterns", "LLMos memory schema: common patterns"),
}


def lists_of_records(schema: Any, components: Any) -> list[str]:
    """The fields of an answer that are lists of records."""
    whole = components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    own = [
        name
        for name, part in whole.get("properties", {}).items()
        if {"$ref", "anyOf"} & part.get("items", {}).keys()
    ]
    return own + [
        name for one in whole.get("anyOf", ()) for name in lists_of_records(one, components)
    ]


def test_the_list_of_every_answer_is_called_results_and_has_its_number_beside_it() -> None:
    named = dict[str, str]()
    for operation in OPERATIONS.values():
        components: dict[str, Any] = {}
        answer: Any = openapi.answer(operation, components)
        lists = lists_of_records(answer, components)
        if len(lists) == 1:
            named[operation.name] = lists[0]
        if "results" in lists:
            assert lists[0] == "results"  # before what else belongs to the answer
            whole = answer.get("anyOf", [answer])[-1]["$ref"].rpartition("/")[2]
            assert {"count", "results"} <= {*components[whole]["required"]}
    others = {name: one for name, one in named.items() if one != "results"}
    assert others == {name: one for name, (one, _) in OWN_LISTS.items()}
    assert len(named) - len(others) >= 30


def test_an_answer_whose_list_has_another_name_is_found() -> None:
    record = {"$ref": "#/components/schemas/MemoryRecord"}
    answer = {"properties": {"hits": {"type": "array", "items": record}, "count": {}}}
    assert lists_of_records(answer, {}) == ["hits"]
    either = {"anyOf": [record, {"$ref": "#/components/schemas/Answer"}]}
    assert lists_of_records(either, {"MemoryRecord": {}, "Answer": answer}) == ["hits"]


# --- the rest of the description ---

BOUNDED = [
    (operation, parameter)
    for one in OPERATIONS.values()
    for operation in one.variants
    for parameter in operation.parameters
    if parameter.kind is Kind.INTEGER or parameter.max_ is not None or not parameter.blank
]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryMesh]:
    folder = tmp_path_factory.mktemp("folders")
    folders = {"notes_dir": str(folder / "notes"), "traces_dir": str(folder / "traces")}
    with MemoryMesh("memory://", embedder="none", **folders) as mesh:  # type: ignore[arg-type]
        mesh.add("The deploy key rotates.")
        mesh.ingest_skill(SKILL)
        yield mesh


@pytest.mark.parametrize(
    ("operation", "parameter"), BOUNDED, ids=lambda one: one.name.replace(" ", "-")
)
def test_a_value_beyond_its_bounds_is_refused_and_one_at_them_is_not(
    mesh: MemoryMesh, operation: Operation, parameter: Parameter
) -> None:
    described: Any = remote.schema(operation)["properties"]
    bounds = described[parameter.name].get("items", described[parameter.name])
    inside, outside = list[object](), list[object]()
    for name, step in (("minimum", -1), ("maximum", 1)):
        if name in bounds:
            inside.append(bounds[name])
            outside.append(bounds[name] + step)
    if "maxLength" in bounds:
        inside.append("x" * bounds["maxLength"])
        outside.append("x" * (bounds["maxLength"] + 1))
    outside += [" "] if "pattern" in bounds else []
    assert outside
    given = {**minimal(operation), **VALID.get(operation.name, {})}
    of_skill = operation.name == "skill-feedback"
    stored = mesh.list_skills()[0].id if of_skill else mesh.get_all()[0].id
    given |= {name: stored for name in given if name in ("id", "memory_id")}
    for value in outside:
        with pytest.raises((InvalidInput, TooLarge)):
            remote.call(mesh, operation, _with(given, parameter, value))
    for value in inside:
        error = _error(mesh, operation, _with(given, parameter, value))
        assert not error.startswith(f"{parameter.name} "), (operation.name, error)


def test_a_text_of_invisible_characters_is_refused_as_the_description_says(tmp_path: Path) -> None:
    folders = {"notes_dir": str(tmp_path / "notes"), "traces_dir": str(tmp_path / "traces")}
    with running(tmp_path, **folders) as (client, _):
        about = client.get("/openapi.json").json()["info"]["description"]
        assert "has a character that is displayed" in about
        for text in ("\u200b\ufeff", "\ue000", " \u2800 "):
            for path, given in (
                ("/v1/store", {"content": text}),
                ("/v1/graph/store", {"text": text, "category": "fact"}),
                ("/v1/notes/add", {"title": "Keys", "content": text}),
                ("/v1/trace/record", {"goal": text, "status": "success"}),
            ):
                assert client.post(path, json=given).status_code == 400, (path, text)


def test_the_longest_content_is_described_as_the_options_say(tmp_path: Path) -> None:
    folders = {"notes_dir": str(tmp_path / "notes"), "traces_dir": str(tmp_path / "traces")}
    with running(tmp_path, max_content_chars=100, **folders) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        id_ = client.post("/v1/store", json={"content": "The key rotates."}).json()["id"]
        skill = "name;keys;\nintent;Rotate keys.;\n"
        for path, name, given, text in (
            ("/v1/store", "content", {}, ""),
            ("/v1/update", "content", {"id": id_}, ""),
            ("/v1/lane/store", "content", {"memory_type": "decision"}, ""),
            ("/v1/notes/add", "content", {"title": "Keys"}, ""),
            ("/v1/graph/store", "text", {"category": "decision"}, ""),
            ("/v1/extract", "text", {}, ""),
            ("/v1/ingest-skill", "yamo_text", {}, skill),
        ):
            schema = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            longest = schema["properties"][name]["maxLength"]
            assert longest == 100
            statuses = [
                client.post(path, json={**given, name: text.ljust(size, "x")}).status_code
                for size in (longest, longest + 1)
            ]
            assert statuses == [200, 400], path


def test_a_duration_is_described_as_it_is_read(mesh: MemoryMesh) -> None:
    described: Any = remote.schema(OPERATIONS["episodes"])
    check = Draft202012Validator(described["properties"]["gap"])
    for gap in ("1s", "999999s", "366d", " 08H\n", "0d", "367d", "8785h", "1000000s", "8", "x", ""):
        refused = "gap" in _error(mesh, OPERATIONS["episodes"], {"gap": gap})
        assert check.is_valid(gap) == (not refused), gap


def _error(mesh: MemoryMesh, operation: Operation, given: dict[str, object]) -> str:
    try:
        remote.call(mesh, operation, given)
    except MemoryMeshError as error:
        return str(error)
    return ""


VALID: dict[str, dict[str, object]] = {
    "store-many": {"items": [{"content": "x"}]},
    "lane judge": {"messages": [{"role": "user", "content": "x"}]},
    "ingest-skill": {"yamo_text": SKILL},
}


def _with(given: dict[str, object], parameter: Parameter, value: object) -> dict[str, object]:
    return {**given, parameter.name: [value] if parameter.repeated else value}


def test_a_wrong_method_is_answered_with_all_methods_of_the_path(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        for path, methods in paths.items():
            answer = client.delete(path)
            assert answer.status_code == 405
            assert answer.headers["allow"] == ", ".join(sorted(map(str.upper, methods)))


def test_a_token_is_described_as_optional_until_there_is_one(tmp_path: Path) -> None:
    with running(tmp_path) as (client, server):
        spec = client.get("/openapi.json").json()
        assert spec["security"] == [{}, {"bearer": []}]
        token(server, "own")
        spec = client.get("/openapi.json").json()
        assert spec["security"] == [{"bearer": []}]
        own = {
            path for path, one in spec["paths"].items() if one.get("get", {}).get("security") == []
        }
        assert own == {"/health", "/ready"}
        assert all("security" not in one.get("post", {}) for one in spec["paths"].values())


def test_every_route_has_a_description_and_a_tag_that_is_described(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        spec = client.get("/openapi.json").json()
    tags = {one["name"] for one in spec["tags"] if one["description"]}
    routes = [one for path in spec["paths"].values() for one in path.values()]
    assert {tag for one in routes for tag in one["tags"]} == tags
    assert all(one["description"].startswith(one["summary"]) for one in routes)
    assert spec["servers"]
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    assert all(
        one["responses"]["default"]["content"] == {"application/problem+json": problem}
        for one in routes
    )


def test_the_page_of_the_description_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, page = list[str](), app.page
    monkeypatch.setattr(app, "page", lambda spec: made.append(page(spec)) or made[-1])
    with running(tmp_path) as (client, _):
        assert made == []
        assert {client.get("/docs").text for _ in range(3)} == {*made}
    assert len(made) == 1
    fields = re.search(r"/v1/store</code></h3>(.*)", made[0])
    assert fields
    assert [one in fields[1] for one in ("<b>content</b>", "<b>messages</b>")] == [True] * 2


def test_the_page_of_the_description_needs_no_script_and_names_every_route_and_record(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (client, _):
        spec, answer = client.get("/openapi.json").json(), client.get("/docs")
        assert client.get("/console/style.css").status_code == 200
    page = answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert set(re.findall(r" (/[^<]*)</code>", page)) == spec["paths"].keys()
    links, names = set(re.findall(r"href=#(\w+)", page)), re.findall(r"<h3 id=(\w+)>", page)
    assert sorted(spec["components"]["schemas"]) == sorted(names)
    assert links <= set(names)
    assert "<script" not in page
    assert "://" not in page
