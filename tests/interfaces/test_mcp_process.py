"""The MCP server as a process of its own, over standard input and output and over HTTP, with the
client of the official SDK."""

import asyncio
import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from jsonschema import validate
from mcp import Client, StdioServerParameters, stdio_client

from memory_mesh import MemoryMesh
from memory_mesh.core.audit import Sound

pytestmark = pytest.mark.deep
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "memory_mesh"]
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
    }
    return {**kept, "MEMORY_MESH_HOME": str(tmp_path / "home"), "MEMORY_MESH_EMBEDDER": "none"}


def over_stdio(environment: dict[str, str], *words: str) -> Client:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", *words], env=environment
    )
    return Client(stdio_client(parameters))


@contextmanager
def over_http(
    environment: dict[str, str], *words: str, command: Sequence[str] = COMMAND
) -> Iterator[int]:
    """A server over HTTP; yields its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*command, "mcp", "--http", "--port", str(port), *words],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stderr is not None
        assert f"http://127.0.0.1:{port}/mcp" in server.stderr.readline()
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
        yield port
    finally:
        server.terminate()
        rest = server.communicate(timeout=60)[1]
        # It closed the store and ended by itself.
        assert ("Traceback" in rest, server.returncode) == (False, 0)


async def talk(client: Client, name: str) -> list[str]:
    """Store and read as one agent, and return what it recalls."""
    async with client:
        for at in range(5):
            await client.call_tool("remember", {"content": f"Agent {name} opened door {at}."})
        found = [
            await client.call_tool("recall", {"query": f"agent {name} door {at}", "limit": 1})
            for at in range(5)
        ]
        return [result.content[0].text for result in found]


async def ten(clients: list[Client]) -> list[list[str]]:
    return await asyncio.gather(*(talk(client, f"n{at}") for at, client in enumerate(clients)))


def check_all(answers: list[list[str]], file: Path) -> None:
    for at, texts in enumerate(answers):
        assert all(f"Agent n{at} opened door {door}." in text for door, text in enumerate(texts))
    with MemoryMesh(f"sqlite:///{file}", embedder="none") as mesh:
        assert len(mesh.get_all()) == 50
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


def test_ten_clients_over_http_at_once(environment, tmp_path) -> None:
    file = tmp_path / "m.db"
    with over_http(environment, "--store", f"sqlite:///{file}") as port:
        answers = asyncio.run(ten([Client(f"http://127.0.0.1:{port}/mcp") for _ in range(10)]))
    check_all(answers, file)


def test_ten_servers_over_stdio_on_one_store_at_once(environment, tmp_path) -> None:
    file = tmp_path / "m.db"
    answers = asyncio.run(
        ten([over_stdio(environment, "--store", f"sqlite:///{file}") for _ in range(10)])
    )
    check_all(answers, file)


def test_two_servers_and_the_command_line_share_one_store(environment, tmp_path) -> None:
    file = f"sqlite:///{tmp_path}/m.db"

    def command(*words: str) -> str:
        done = subprocess.run(
            [*COMMAND, *words, "--store", file],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    async def use(port: int) -> None:
        http = Client(f"http://127.0.0.1:{port}/mcp")
        async with http, over_stdio(environment, "--store", file, "--toolset", "all") as stdio:

            async def recalled(client: Client, query: str) -> str:
                return (await client.call_tool("recall", {"query": query})).content[0].text

            stored = (
                (await http.call_tool("remember", {"content": "The kiln is at 900 degrees."}))
                .content[0]
                .text
            )
            assert "900 degrees" in await recalled(stdio, "kiln degrees")
            assert "900 degrees" in await asyncio.to_thread(command, "search", "kiln degrees")
            await asyncio.to_thread(command, "store", "The glaze is cobalt blue.")
            for client in (http, stdio):
                assert "cobalt blue" in await recalled(client, "which glaze? cobalt")
            given = {"content": "Use the small kiln for tests.", "memory_type": "correction"}
            await stdio.call_tool("memory_lane_store", given)
            assert "small kiln" in await recalled(http, "small kiln tests")
            graph = {
                "text": "Ana owns the pottery.",
                "claim": {"subject": "pottery", "predicate": "owner", "value": "Ana"},
            }
            await stdio.call_tool("graph_store", graph)
            assert "Ana owns the pottery" in await recalled(http, "pottery owner Ana")
            await asyncio.to_thread(command, "delete", stored.split()[-1])
            for client in (http, stdio):
                assert "900 degrees" not in await recalled(client, "kiln degrees")
            writes = [
                client.call_tool("remember", {"content": f"{kind} note {at}"})
                for at in range(20) for kind, client in (("web", http), ("pipe", stdio))
            ]  # fmt: skip
            results = await asyncio.gather(
                *writes,
                *(asyncio.to_thread(command, "store", f"shell note {at}") for at in range(3)),
            )
            assert not any(getattr(result, "is_error", False) for result in results)

    with over_http(environment, "--store", file) as port:
        asyncio.run(use(port))
    with MemoryMesh(file, embedder="none") as mesh:
        texts = {memory.content for memory in mesh.get_all()}
        assert {f"{kind} note {at}" for kind in ("web", "pipe") for at in range(20)} <= texts
        assert {f"shell note {at}" for at in range(3)} <= texts
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


# --- what the tools declare ---

# A value for each parameter that a tool requires, by its name.
GIVEN = {
    "content": "The deploy key rotates on Mondays.", "text": "The deploy key rotates on Mondays.",
    "memory_type": "decision", "type": "related", "query": "deploy key", "task": "deploy",
    "goal": "deploy with a token", "signal": "helpful", "error_pattern": "token_expired",
    "preventative_rule": "Refresh the token before a deploy.", "situation": "It failed.",
    "oversight": "The expiry was not read.", "fix": "A new token.", "severity": "high",
    "applicable_scope": "deploys", "session_id": "mine", "items": [{"content": "one of many"}],
    "messages": [{"role": "user", "content": "I prefer tea."}], "keep": "new",
    "title": "Deploys", "success": True, "agent_output": "Done.", "rationales": ["It is needed."],
}  # fmt: skip
FURTHER = {
    "forget": ["id"], "get": ["id"], "update": ["content"], "heritage": ["rationales"],
}  # fmt: skip
# They need what is not in this store, such as a conflict, or would write into the working folder.
REFUSED = {
    "episode_digest", "episode_summary", "ingest_skill", "lesson_to_skill",
    "resolve_conflict", "review_activate", "review_keep_both", "review_reject", "review_undo",
    "confirm_change", "skill_feedback", "trace_decisions", "trace_show", "undo_change",
}  # fmt: skip


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_every_tool_answers_with_data_that_its_schema_allows(environment, tmp_path, way) -> None:
    words = ("--store", f"sqlite:///{tmp_path}/m.db", "--session", "mine", "--toolset", "all")
    environment = {**environment, "MEMORY_MESH_NOTES_DIR": str(tmp_path / "notes")}
    seen, refused = set[str](), set[str]()

    async def use(client: Client) -> None:
        async with client:  # it refuses data that the schema of the tool does not allow
            ids = [
                (await client.call_tool("remember", {"content": f"Memory {at}."}))
                .structured_content["ids"][0]
                for at in range(2)
            ]  # fmt: skip
            tools = (await client.list_tools()).tools
            for tool in sorted(tools, key=lambda tool: tool.name == "forget"):
                names = [*tool.input_schema.get("required", []), *FURTHER.get(tool.name, ())]
                others = dict.fromkeys(("target_id", "older"), ids[1])
                given = {name: others.get(name, GIVEN.get(name, ids[0])) for name in names}
                result = await client.call_tool(tool.name, given)
                seen.add(tool.name)
                if result.is_error:
                    refused.add(tool.name)
                else:
                    validate(result.structured_content, tool.output_schema)

    if way == "stdio":
        asyncio.run(use(over_stdio(environment, *words)))
    else:
        with over_http(environment, *words) as port:
            asyncio.run(use(Client(f"http://127.0.0.1:{port}/mcp")))
    assert len(seen) > 75
    assert refused == REFUSED


SUITE = ROOT / "build" / "mcp-conformance" / "node_modules" / ".bin" / "conformance"
EXPECTED = Path(__file__).with_name("mcp_conformance") / "expected_failures.yaml"


def test_the_conformance_suite_of_the_protocol_passes_in_what_the_server_declares(
    environment, tmp_path
) -> None:
    with over_http(environment, "--store", f"sqlite:///{tmp_path}/m.db") as port:
        done = subprocess.run(
            [SUITE, "server", "--url", f"http://127.0.0.1:{port}/mcp", "--expected-failures",
             EXPECTED],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    # Each of those that pass, so that the suite did run.
    for name in ("server-initialize", "ping", "tools-list", "resources-list", "prompts-list"):
        assert f"✓ {name}: 1 passed, 0 failed" in done.stdout


ADAPTERS = ROOT / "build" / "mcp-adapters" / "bin" / "python"
PROGRAM = Path(__file__).with_name("mcp_adapters") / "use.py"


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_adapters_that_need_version_1_of_the_sdk_use_the_server_in_their_own_environment(
    environment, way
) -> None:
    command = [str(ADAPTERS), "-m", "memory_mesh"]

    def used(connection: dict[str, object]) -> dict[str, object]:
        done = subprocess.run(
            [ADAPTERS, PROGRAM, json.dumps(connection)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    if way == "stdio":
        mcp = [*command[1:], "mcp"]
        seen = used({"transport": way, "command": command[0], "args": mcp, "env": environment})
    else:
        secret = subprocess.run(
            [*command, "token", "create", "agent", "--json"],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        headers = {"Authorization": f"Bearer {json.loads(secret.stdout)['token']}"}
        with over_http(environment, command=command) as port:
            url = f"http://127.0.0.1:{port}/mcp"
            seen = used({"transport": "streamable_http", "url": url, "headers": headers})
    fact = "The deploy key rotates on Mondays."
    assert str(seen.pop("version")).startswith("1.")
    assert str(seen.pop("remembered")).startswith("Ingested record mem_")
    for name in ("recalled", "prompt", "resource"):
        text = str(seen.pop(name))
        assert "<memory" in text, text
        assert fact in text, text
    assert seen == {
        "tools": ["context", "feedback", "forget", "learn", "recall", "remember"],
        "empty": "Nothing found.",
        "refused": "no memory 'mem_0'; check the id, the user, the agent and the session",
        "templates": ["memory-mesh://memory/{id}"],
        "prompts": ["lessons", "session_start", "what_do_you_know", "remember_session"],
        "count": 1,
        "errors": [-32602, -32602, -32602],
    }


# --- malformed requests ---

GARBAGE = [
    b"this is not JSON", b"[]", b"{}", b"null", b"42", b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "1.0", "id": 7, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 8, "method": 3}', b"\xff\xfe\x00\x01",
    b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": "x"}', b"[" * 100_000,
    b'{"a":' * 20_000,
    b'{"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {"name": 3, "arguments": []}}',
    b'"\\ud800"', b"", b'{"jsonrpc": "2.0", "id": 11, "method": "no/such/method"}',
    b'{"jsonrpc": "2.0", "id": 12, "method": "tools/call"}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}}',
    (b'{"jsonrpc": "2.0", "id": 13, "method": "tools/call", "params": {"name": "recall", '
     b'"arguments": {"query": "%s"}}}')
    % (b"x" * 2_000_000),
]  # fmt: skip


def test_malformed_messages_on_standard_input_are_answered_or_ignored_and_the_server_goes_on(
    environment, tmp_path
) -> None:
    call = {"name": "remember", "arguments": {"content": "The server still works."}}
    last = {"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": call}
    lines = [
        json.dumps(HELLO).encode(),
        json.dumps(READY).encode(),
        *GARBAGE,
        json.dumps(last).encode(),
    ]
    store = f"sqlite:///{tmp_path}/m.db"
    server = subprocess.Popen([*COMMAND, "mcp", "--store", store], env=environment,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b"\n".join(lines) + b"\n")
    server.stdin.flush()
    answers: dict[object, dict[str, object]] = {}
    while "last" not in answers:
        answer = json.loads(server.stdout.readline())
        answers[str(answer.get("id"))] = answer
    errors = server.communicate(timeout=60)[1].decode()
    assert server.returncode == 0
    assert "Traceback" not in errors
    assert "The server still works" not in errors
    assert not answers["last"]["result"]["isError"]  # type: ignore[index]
    codes = {id_: answer["error"]["code"] for id_, answer in answers.items() if "error" in answer}  # type: ignore[index]
    assert {id_: codes.get(id_) for id_ in ("10", "11", "12")} == {
        "10": -32602,
        "11": -32601,
        "12": -32602,
    }
    assert not any("result" in answers.get(id_, {}) for id_ in ("7", "8", "9"))
    assert answers["13"]["result"]["isError"]  # type: ignore[index]
    with MemoryMesh(store, embedder="none") as mesh:
        assert [memory.content for memory in mesh.get_all()] == ["The server still works."]


def test_hostile_requests_over_http_are_refused_and_the_server_goes_on(
    environment, tmp_path
) -> None:
    def post(port: int, body: bytes, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        kinds = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        connection.request(
            "POST",
            "/mcp",
            body,
            {**kinds, **{key.replace("_", "-"): value for key, value in headers.items()}},
        )
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        connection.close()
        return response.status, text

    hello = json.dumps(HELLO).encode()
    with over_http(environment, "--store", f"sqlite:///{tmp_path}/m.db") as port:
        for body in GARBAGE[:12]:
            status, text = post(port, body)
            # 202: read as a notification.
            assert 400 <= status < 500 or (status, text) == (202, ""), (body[:50], status)
            assert "Traceback" not in text
        assert post(port, b"x" * (5 * 1024 * 1024))[0] == 413
        assert post(port, hello, Host="evil.example")[0] in (403, 421)
        assert post(port, hello, Origin="http://evil.example")[0] == 403
        assert post(port, hello, Content_Type="text/plain")[0] in (400, 415)
        # It has no meaning.
        assert post(port, hello, Mcp_Session_Id="../../etc/passwd")[0] in (200, 400, 404)
        assert post(port, hello)[0] == 200
        texts = asyncio.run(talk(Client(f"http://127.0.0.1:{port}/mcp"), "n0"))
        assert "Agent n0 opened door 4." in texts[4]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", ""])
def test_a_client_cannot_hold_a_stream_open_on_which_nothing_will_be_sent(
    environment, tmp_path, version
) -> None:
    """Such streams would use up the connections: they are not idle, so nobody takes their place."""
    kinds = {
        "Accept": "text/event-stream",
        **({"Mcp-Protocol-Version": version} if version else {}),
    }
    with over_http(environment, "--store", f"sqlite:///{tmp_path}/m.db") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/mcp", headers=kinds)
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Allow")) == (405, "POST")
        connection.close()


def test_a_client_that_begins_again_and_again_opens_no_session(environment, tmp_path) -> None:
    with over_http(environment, "--store", f"sqlite:///{tmp_path}/m.db") as port:
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            kinds = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            }
            connection.request("POST", "/mcp", json.dumps(HELLO), kinds)
            answer = connection.getresponse()
            assert (answer.status, answer.headers.get("mcp-session-id")) == (200, None)
            assert "memory-mesh" in answer.read().decode()
            connection.close()


def test_with_tokens_each_request_needs_one_and_sees_only_its_user(environment, tmp_path) -> None:
    from httpx2 import AsyncClient
    from mcp.client.streamable_http import streamable_http_client

    def token(*words: str) -> str:
        done = subprocess.run(
            [*COMMAND, "token", "create", *words, "--json"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return str(json.loads(done.stdout)["token"])

    ann, bob, reader = (
        token("a", "--user", "ann"),
        token("b", "--user", "bob"),
        token("r", "--user", "ann", "--read-only"),
    )

    async def call(port: int, secret: str, name: str, **arguments: object) -> tuple[bool, str]:
        web = AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60)
        async with (
            web,
            Client(
                streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=web)
            ) as client,
        ):
            result = await client.call_tool(name, arguments)
            return result.is_error, result.content[0].text

    with over_http(environment, "--store", f"sqlite:///{tmp_path}/m.db") as port:
        for headers in (
            {},
            {"Authorization": "Bearer mm_x_y"},
            {"Authorization": f"Bearer {ann}x"},
        ):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(
                "POST", "/mcp", json.dumps(HELLO), {"Content-Type": "application/json", **headers}
            )
            assert connection.getresponse().status == 401
            connection.close()
        assert not asyncio.run(call(port, ann, "remember", content="The vault word is heron."))[0]
        assert "heron" in asyncio.run(call(port, ann, "recall", query="vault word"))[1]
        assert "heron" in asyncio.run(call(port, reader, "recall", query="vault word"))[1]
        assert "heron" not in asyncio.run(call(port, bob, "recall", query="vault word"))[1]
        assert asyncio.run(call(port, reader, "remember", content="x")) == (
            True,
            "the token is for reading only",
        )


# --- compat, read-only, errors at the start ---


def test_the_official_tools_over_stdio_by_a_flag(environment) -> None:
    async def use() -> tuple[int, object]:
        async with over_stdio(environment, "--compat", "server-memory") as client:
            entity = {"name": "Ana", "entityType": "person", "observations": ["likes tea"]}
            await client.call_tool("create_entities", {"entities": [entity]})
            return len((await client.list_tools()).tools), (
                await client.call_tool("read_graph", {})
            ).structured_content

    count, graph = asyncio.run(use())
    assert count == 9
    assert graph == {
        "entities": [{"name": "Ana", "entityType": "person", "observations": ["likes tea"]}],
        "relations": [],
    }


def test_a_read_only_server_offers_no_tool_that_writes_and_creates_no_store(
    environment, tmp_path
) -> None:
    async def use() -> tuple[list[str], str]:
        async with over_stdio(
            environment, "--read-only", "--store", f"sqlite:///{tmp_path}/none.db"
        ) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            answer = await client.call_tool("recall", {"query": "x"})
            return names, answer.content[0].text

    assert asyncio.run(use()) == (["recall", "context"], "Nothing found.")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("way", ["end of the input", "interrupt"])
def test_at_a_terminal_the_server_says_what_it_waits_for_and_ends(environment, way: str) -> None:
    terminal, client_side = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "mcp"],
        env=environment,
        stdin=client_side,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        assert "waiting for a client on standard input" in server.stderr.readline()
        if way == "interrupt":
            server.send_signal(signal.SIGINT)
        else:
            os.write(terminal, b"\x04")
        assert server.wait(60) == (130 if way == "interrupt" else 0)
    os.close(terminal)
    os.close(client_side)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--toolset", "nonsense"), "unknown value 'nonsense' of --toolset"),
        (("--compat", "server-memory", "--toolset", "lane"), "both --compat and --toolset"),
        (("--http", "--host", "0.0.0.0"), "0.0.0.0"),  # noqa: S104
        (("--store", "nonsense://x"), "nonsense"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_line(environment, words, expected) -> None:
    done = subprocess.run(
        [*COMMAND, "mcp", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        input="",
    )
    assert done.returncode
    assert done.stdout == ""
    assert expected in done.stderr
    assert re.fullmatch(r"\[MemoryMesh Error\] .*\n", done.stderr)
