"""Any text, file or body: it is read, or refused with an error of memory-mesh, in a time that grows
with its length only.

`make test` tries a few examples, the same in every run; `make fuzz EXAMPLES=20000` many random
ones.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from interfaces.rest_server import running
from interfaces.test_remote import minimal
from memory_mesh import MemoryMesh, MemoryMeshError, Sound
from memory_mesh.core.audit.blocks import parse, parse_many
from memory_mesh.core.claims.patterns import find_statement
from memory_mesh.core.language.capture.classify import why_not
from memory_mesh.core.language.capture.extract import sentences
from memory_mesh.core.language.frontmatter import split_frontmatter
from memory_mesh.core.language.prompts.answers import read_object
from memory_mesh.core.language.redaction import Redactor
from memory_mesh.core.language.safety.fence import escape, unescape
from memory_mesh.core.language.safety.injection import detect
from memory_mesh.core.language.scrubbing import MESH_OVERRIDES, ScrubSettings, scrub
from memory_mesh.core.learning import read_block
from memory_mesh.core.learning.skills import read_skill
from memory_mesh.core.model import parse_time
from memory_mesh.core.notes.extraction import statements
from memory_mesh.core.notes.files import Note, read_instructions, read_sections
from memory_mesh.core.notes.relevance import matching_pattern
from memory_mesh.core.search.mentions import proper_names, time_spans
from memory_mesh.core.traces.schema import read_experiences, read_traces
from memory_mesh.core.transfer.export import read_line
from memory_mesh.core.transfer.foreign import (
    read_blocks,
    read_chatgpt,
    read_mcp_entities,
    read_mcp_relations,
    read_mem0,
)
from memory_mesh.flows.search import filters
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.mcp.server import Caller, MemoryServer, OperationTools
from memory_mesh.interfaces.operation import Interface

NOW = "2026-03-01T10:00:00.000Z"
REDACTOR = Redactor(mode="pseudonym", key=b"k", names={"Ann Lee": "user-1"})
SCRUBBING = ScrubSettings().merged(MESH_OVERRIDES)
# For 20,000 characters, which take well below a second: only what does not end meets it.
CPU_SECONDS = 20.0
LONG = 20_000


def from_pieces(text: str) -> Callable[[int], str]:
    """Return a function that reads a text in pieces, as a file is read."""
    rest = iter([text])
    return lambda _: next(rest, "")


# What reads a text, and the words that it knows.
READERS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "redaction": (REDACTOR.redact,
        ('password¦=¦:¦"¦token¦a@b.¦org¦+1¦415 ¦5552671¦eyJ¦sk-¦-----BEGIN ¦://¦@¦Bearer '
         '¦[[EMAIL]]¦4111 ')),
    "scrubber": (lambda text: scrub(text, SCRUBBING),
                 "<p>¦</p>¦<!--¦-->¦**¦`¦```\n¦# ¦- ¦[a](¦)¦&lt;¦|¦\n\n¦<script>¦_¦> "),
    "filter": (filters.parse,
        "tags¦ = ¦'a'¦ AND ¦ OR ¦NOT ¦(¦)¦ IN ¦importance¦>¦0.5¦ LIKE ¦'%_'¦metadata['k']¦,¦ "
        "BETWEEN ¦ IS NULL¦--¦/*"),
    "yamo": (parse,
        "agent: A;\n¦intent: b;\n¦context:\n¦  k;v;\n¦constraints:\n¦  - a;\n¦meta: x;\n¦log: ;\n"
        "¦handoff: End;\n¦; ¦\n"),
    "several yamo blocks": (
        parse_many, "agent: A;\n¦intent: b;\n¦context:\n¦  k;v;\n¦log: ;\n¦handoff: End;\n¦\n",
    ),
    "a lesson as a block": (read_block,
        "agent: A;\nintent: distill_wisdom_from_execution;\n¦context:\n¦  original_context;a;\n"
        "¦  error_pattern;b;\n¦  severity;low;\n¦output:\n¦  lesson_id;c;\n  preventative_rule;d;\n"
        "  rule_confidence;0.5;\n¦meta:\n¦"
        "  applicability_scope;e;\n¦  rationale;f;\n¦log: a;\n¦handoff: SubconsciousReflector;\n"),
    "a file of blocks": (lambda text: [*read_blocks(text.splitlines(keepends=True))],
                         "agent: A;\n¦handoff: End;\n¦\r\n¦a;¦\n"),
    "frontmatter": (lambda text: split_frontmatter(text, expected="a key"),
        '---\n¦a: ¦b\n¦- c\n¦[¦]¦{¦}¦&x ¦*x¦!!python/object ¦|\n¦\'¦"¦? ¦  ¦<<: ¦...\n¦%YAML¦\t'),
    "notes": (lambda text: [*read_sections("a.md", text)],
        "---\n¦\n\n---\n\n¦title: a\n¦whenToUse: [a]\n¦tags: []\n¦importance: high\n"
        "¦discoveredAt: 2026-01-01\n¦discoveredBy: b\n¦claim: {a: b}\n¦text\n¦# x\n¦\r\n"),
    "instructions": (lambda text: [
        *read_instructions("a.mdc", text.encode(errors="surrogatepass"))
    ],
        "---\n¦globs: *.py\n¦description: a\n¦alwaysApply: true\n¦# A\n¦## B\n¦text\n¦```\n¦\n"),
    "patterns": (lambda text: matching_pattern([text], text * 2), "a¦*¦.*¦|¦when ¦(¦[¦+¦\\"),
    "skill": (lambda text: read_skill(text, {}),
              "---\n¦name: a\n¦description: b\n¦tags: [a]\n¦# A\n¦text. ¦\n"),
    "trace": (lambda text: [*read_traces(text)],
        "---\n¦trace_id: t\n¦goal: g\n¦status: success\n¦## Steps\n¦1. a (success)\n¦- b\n¦\\¦\n"),
    "experience": (lambda text: [*read_experiences(text)],
        "---\n¦experience_id: 1\n¦primary_goal: g\n¦final_outcome: success\n¦\n"),
    "exported line": (
        read_line, '{"id": "¦mem_1"¦, "content": "a"¦}¦[¦1e999¦NaN¦"revision": 1¦:¦null¦\\ud800',
    ),
    "mem0": (lambda text: [*read_mem0(from_pieces(text), NOW)],
        '{"results": [¦{"id": "a", "memory": "b"}¦,¦]¦}¦[¦"created_at": "x"¦null¦1e999'),
    "chatgpt": (lambda text: [*read_chatgpt(from_pieces(text), NOW)],
        '[{"id":"c",¦"current_node":"1",¦"mapping":{¦"1":{"message":{"id":"m","author":{"role":'
        '"user"},¦"content":{"content_type":"text",¦"parts":["a"]¦}},¦"parent":null}¦}}¦]¦null¦{'),
    "mcp": (lambda text: [*read_mcp_entities(text.split("\n"), NOW),
                          *read_mcp_relations(text.split("\n"))],
        '{"type":"entity",¦"name":"a",¦"entityType":"b",¦"observations":["c"]}¦{"type":"relation",¦'
        '"from":"a","to":"b","relationType":"c"}¦\n¦[¦null'),
    "answer of a model": (read_object, '{¦}¦[¦"a": ¦1¦,¦```json\n¦```¦<think>¦</think>¦"¦\\'),
    "claim": (find_statement,
        ("Ann ¦lives in ¦Rome¦moved ¦from ¦to ¦not ¦my ¦favourite ¦is ¦'s ¦used to ¦, ¦since "
         "¦2024 ¦and ")),
    "injection": (
        detect,
        "ignore ¦previous ¦instructions¦system¦:¦a-¦aWdub3Jl¦%69¦\u200b¦<¦>¦\u202e¦i g n o r e ",
    ),
    "fence": (lambda text: unescape(escape(text)), "<¦>¦&¦&amp;¦&#60;¦&lt¦;¦</untrusted>"),
    "time in a query": (lambda text: time_spans(text, NOW),
                        "last ¦year ¦2024¦-¦/¦May ¦3 ¦weeks ¦ago ¦between ¦and ¦31¦Feb "),
    "time": (lambda text: parse_time(text, "at"), "2026¦-¦03¦T¦:¦10¦Z¦+¦.5¦9999¦24"),
    "names": (proper_names, "Ann ¦O'¦Lee¦-¦Mc¦, ¦\xe9¦\u200d"),
    "small talk": (why_not, "hi ¦ok ¦error: ¦Traceback ¦?¦$ ¦{¦|¦\n¦password ¦\t"),
    "sentences": (sentences, "a. ¦b? ¦e.g. ¦\n¦- ¦...¦!¦\u3002"),
    "report": (statements, "- ¦# A\n¦because ¦must ¦`a` ¦. ¦\n¦```\n¦1. "),
}  # fmt: skip


def texts_of(words: str) -> st.SearchStrategy[str]:
    """Texts of the words that a reader knows, in any order, and of any others."""
    word = st.sampled_from(words.split("¦")) | st.text(max_size=3)
    return st.lists(word, max_size=30).map("".join) | st.text(max_size=60)


def long_texts_of(words: str) -> st.SearchStrategy[str]:
    """A few words repeated to 20,000 characters: what makes a reader slow that tries its ways
    again and again."""
    known = st.sampled_from(words.split("¦"))
    unit = st.lists(known | st.characters(codec="utf-8").map(str), min_size=1, max_size=4).map(
        "".join
    )
    few = st.lists(known, max_size=3).map("".join)
    return st.builds(
        lambda before, unit, after: before + unit * (LONG // len(unit)) + after, few, unit, few
    )


def within_time(read: Callable[[str], object], text: str) -> None:
    """Read a text; only errors of memory-mesh may be raised, each one line, and the time is
    limited."""
    began = time.process_time()
    refused = ""
    try:
        read(text)
    except MemoryMeshError as error:
        refused = str(error)
    assert "\n" not in refused
    assert len(refused) < 1000
    assert time.process_time() - began < CPU_SECONDS


@pytest.mark.parametrize("name", READERS)
def test_any_text_is_read_or_refused(name: str) -> None:
    read, words = READERS[name]

    @given(texts_of(words))
    def one(text: str) -> None:
        within_time(read, text)

    one()


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", READERS)
def test_a_long_text_is_read_or_refused_in_time(name: str) -> None:
    read, words = READERS[name]

    @given(long_texts_of(words))
    def one(text: str) -> None:
        within_time(read, text)

    one()


# --- round trips ---


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_note_is_read_as_it_was_written(title: str, content: str) -> None:
    kept = " ".join(title.replace("\x00", "").split())
    note = Note(
        title=kept or "a",
        when_to_use=("a|b",),
        discovered_at=NOW,
        discovered_by="x",
        content=content,
    )
    with suppress(MemoryMeshError, UnicodeEncodeError):
        found = [one for one in read_sections("a.md", note.text) if isinstance(one, Note)]
        if len(found) == 1:
            assert found[0].title == note.title


@given(texts_of(READERS["yamo"][1]))
def test_a_block_that_can_be_read_is_written_as_it_is_read(text: str) -> None:
    with suppress(MemoryMeshError):
        block = parse(text)
        assert parse(block.text()) == block


# --- JSON import ---

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just("x" * 5000),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def exported() -> list[str]:
    with MemoryMesh("memory://", embedder="none") as mesh:
        mesh.add("The deploy key rotates on Mondays.", {"tags": ["ops"], "n": 1})
        mesh.add("The deploy key rotates on Mondays.", {"tags": ["ops"], "n": 1})
        mesh.update(mesh.get_all()[0].id, content="The deploy key rotates on Tuesdays.")
        return [*mesh.export()]


@given(st.data())
def test_a_changed_export_is_imported_or_refused(exported: list[str], data: st.DataObject) -> None:
    header, line = exported[0], json.loads(exported[1])
    for name in data.draw(st.lists(st.sampled_from(sorted(line)), max_size=3, unique=True)):
        line[name] = data.draw(JSON)
    if data.draw(st.booleans()):
        line[data.draw(st.text(max_size=6))] = data.draw(JSON)
    with MemoryMesh("memory://", embedder="none") as mesh:
        mesh.add("Here before.")
        within_time(lambda text: mesh.import_memories([header, text]), json.dumps(line))
        assert "Here before." in {memory.content for memory in mesh.get_all()}
        assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []


@given(st.lists(texts_of(READERS["exported line"][1]) | texts_of(READERS["mem0"][1]), max_size=4))
def test_any_lines_are_imported_or_refused(lines: list[str]) -> None:
    with MemoryMesh("memory://", embedder="none") as mesh:
        within_time(lambda text: mesh.import_memories(text.split("\n")), "\n".join(lines))


def test_any_file_is_imported_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "import"

    @given(
        st.binary(max_size=200)
        | texts_of(f"{READERS['mem0'][1]}¦{READERS['mcp'][1]}").map(
            lambda text: text.encode(errors="replace")
        )
    )
    def one(data: bytes) -> None:
        file.write_bytes(data)
        with MemoryMesh("memory://", embedder="none") as mesh:
            within_time(lambda _: mesh.import_file(file), "")

    one()


# --- bodies ---


def bodies(operation: Any) -> st.SearchStrategy[dict[str, object]]:
    """Arguments of an operation, some of them of any kind."""
    names = [one.name for one in operation.parameters] or ["x"]
    odd = st.dictionaries(st.sampled_from(names) | st.text(max_size=5), JSON, max_size=3)
    return odd.map(lambda given: {**minimal(operation), **given})


def finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(8))
def test_any_body_gets_an_answer_that_rest_describes(part: int, tmp_path: Path) -> None:
    folders = {"notes_dir": str(tmp_path / "notes"), "traces_dir": str(tmp_path / "traces")}
    with running(tmp_path, server_requests_per_minute=10**9, **folders) as (client, _):
        for operation in remote.exposed(Interface.REST)[part::8]:
            path = "/v1/" + operation.aliases.get(Interface.REST, operation.name).replace(" ", "/")
            for body in examples(bodies(operation).filter(finite) | JSON.filter(finite)):
                answer = client.post(path, json=body)
                assert answer.status_code < 500, (path, body, answer.text[:500])
                assert (
                    answer.status_code == 200
                    or answer.headers["content-type"] == "application/problem+json"
                )


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", range(8))
def test_any_arguments_get_an_answer_of_a_tool(part: int, tmp_path: Path) -> None:
    folders = {"notes_dir": str(tmp_path / "notes"), "traces_dir": str(tmp_path / "traces")}
    toolbox = OperationTools(("all",))
    operations = {one.name: one for one in remote.exposed(Interface.MCP)}
    offers = [*toolbox._offers.items()][part::8]

    async def run() -> None:
        with MemoryMesh("memory://", agent_id="planner", embedder="none", **folders) as mesh:  # type: ignore[arg-type]
            server = MemoryServer(toolbox, lambda _: Caller(mesh=mesh)).build()
            async with Client(server) as client:
                for name, (_, operation) in offers:
                    for body in examples(bodies(operations[operation.name]).filter(finite)):
                        await called(client, name, body)

    asyncio.run(run())


def examples(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """The examples of a strategy, for a loop."""
    found: list[Any] = []

    @given(strategy)
    def collect(example: object) -> None:
        found.append(example)

    collect()
    return found


async def called(client: Client, name: str, body: dict[str, object]) -> None:
    refused = ""
    try:
        await client.call_tool(name, body)
    except MCPError as error:
        refused = str(error)
    assert "this is a bug" not in refused, (name, body, refused)
