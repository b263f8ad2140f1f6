"""The REST server as a process: hostile clients, every route, other programs on the same store,
and a signal amid writes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from memory_mesh import MemoryMesh, Sound
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Effect, Interface, Operation

from .test_remote import minimal

pytestmark = pytest.mark.deep
ROUTES = [*remote.exposed(Interface.REST)]


class Process:
    """A running server and its clients."""

    def __init__(self, home: Path, **settings: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        names = {
            name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
        }
        given = {"HOME": str(home), "EMBEDDER": "hash", "SERVER_HEARTBEAT_SECONDS": "0", **settings}
        self.environ = {**names, **{f"MEMORY_MESH_{name}": value for name, value in given.items()}}
        words = [sys.executable, "-m", "memory_mesh", "serve", "--port", str(self.port)]
        self._log = (home / "server.log").open("wb+")
        self.process = subprocess.Popen(
            words, env=self.environ, cwd=home, stderr=self._log, stdout=self._log
        )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)
        while self.process.poll() is None:
            with suppress(httpx.TransportError):
                self.client.get("/ready")
                return
        raise AssertionError(self.log)

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text(encoding="utf-8")

    def cli(self, *words: str) -> str:
        """Run a command on the same store, in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "memory_mesh", *words],
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.client.close()
        self._log.close()


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Process]:
    home.mkdir(exist_ok=True)
    server = Process(home, **settings)
    try:
        yield server
    finally:
        server.close()


def path_of(operation: Operation) -> str:
    return "/v1/" + remote.name_in(Interface.REST, operation).replace(" ", "/")


@pytest.mark.parametrize("writes", [40, 80])
def test_what_was_acknowledged_before_a_signal_is_stored_and_the_exit_is_clean(
    tmp_path: Path, writes: int
) -> None:
    """Eight clients write while the server is asked to end. Every answer with 200 is in the
    store, and every chain is sound."""
    acknowledged: list[str] = []
    with serving(tmp_path, DEDUPLICATE="false") as server:

        def write(client_number: int) -> None:
            with (
                httpx.Client(base_url=server.client.base_url, timeout=60) as client,
                suppress(httpx.TransportError),
            ):
                for number in range(10_000):
                    answer = client.post(
                        "/v1/store", json={"content": f"Client {client_number}, write {number}."}
                    )
                    if answer.status_code != 200:
                        return
                    acknowledged.append(answer.json()["id"])
                    if len(acknowledged) == writes:
                        server.process.send_signal(signal.SIGTERM)

        with ThreadPoolExecutor(8) as clients:
            list(clients.map(write, range(8)))
        assert server.process.wait(60) == 0, server.log
        assert '"event": "stopped"' in server.log
    with MemoryMesh(tmp_path / "memory.db", embedder="none") as mesh:
        assert len(acknowledged) >= writes
        assert {one.id for one in mesh.get_all()} >= set(acknowledged)
        assert all(isinstance(one, Sound) for one in mesh.verify())


def test_a_server_that_is_killed_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ids = [
            server.client.post("/v1/store", json={"content": f"Write {n} before the end."}).json()[
                "id"
            ]
            for n in range(20)
        ]
        server.process.kill()
        server.process.wait()
    with MemoryMesh(tmp_path / "memory.db", embedder="none") as mesh:
        assert {one.id for one in mesh.get_all()} == set(ids)


@pytest.mark.req("MESH-019")
def test_the_command_line_and_several_clients_use_one_store_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, AGENT_ID="server") as server:

        def over_rest(number: int) -> str:
            text = {"content": f"REST wrote number {number}."}
            answer = httpx.post(f"{server.client.base_url}/v1/store", json=text, timeout=60)
            assert answer.status_code == 200
            return str(answer.json()["id"])

        def by_command(number: int) -> str:
            return str(
                json.loads(
                    server.cli("store", f"The command line wrote number {number}.", "--json")
                )["id"]
            )

        with ThreadPoolExecutor(6) as programs:
            rest = [programs.submit(over_rest, number) for number in range(40)]
            commands = [programs.submit(by_command, number) for number in range(6)]
            ids = {one.result() for one in [*rest, *commands]}
        listed = server.client.get("/v1/list", params={"limit": 100}).json()["results"]
        assert {one["id"] for one in listed} == ids
        found = server.client.get(
            "/v1/search", params={"query": "what did the command line write?"}
        ).json()["results"]
        assert found[0]["content"].startswith("The command line wrote")
        assert "REST wrote number 7" in server.cli("search", "REST wrote number 7", "--json")
        assert "sound" in server.cli("audit", "verify")
        assert server.end() == 0


def made(server: Process, *flags: str) -> dict[str, str]:
    text = json.loads(server.cli("token", "create", "x", *flags, "--json"))["token"]
    return {"Authorization": f"Bearer {text}"}


HOSTILE: list[Callable[[Operation], dict[str, object]]] = [
    lambda _: {"content": b"{", "headers": {"Content-Type": "application/json"}},
    lambda _: {"content": b"\xff\xfe\x00", "headers": {"Content-Type": "application/json"}},
    lambda _: {"content": b"[" * 200_000, "headers": {"Content-Type": "application/json"}},
    lambda _: {"content": b"null", "headers": {"Content-Type": "application/json"}},
    lambda _: {"json": {"unknown": 1}},
    lambda _: {"json": {"store": "sqlite:////etc/passwd", "auditor": "eve", "user_id": "eve"}},
    lambda operation: {"json": {one.name: [[["x"]]] for one in operation.parameters} or {"x": 1}},
    lambda operation: {"json": {one.name: None for one in operation.parameters} or {"x": None}},
    lambda operation: {
        "json": {one.name: "../../../../etc/passwd\x00" for one in operation.parameters} or {"x": 1}
    },
    lambda operation: {"json": {one.name: 10**400 for one in operation.parameters} or {"x": 1}},
    lambda _: {"content": b"x" * 9_000_000, "headers": {"Content-Type": "application/json"}},
    lambda _: {"content": b"a=b", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
]


@pytest.mark.req("MESH-009")
def test_a_hostile_walk_over_every_route_leaks_nothing_and_ends_nothing(tmp_path: Path) -> None:
    secret = "Eve keeps the vault code under the sea."
    folders = {"NOTES_DIR": str(tmp_path / "notes"), "TRACES_DIR": str(tmp_path / "traces")}
    with serving(tmp_path / "home", SERVER_REQUESTS_PER_MINUTE="1000000", **folders) as server:
        client = server.client
        of_eve = str(json.loads(server.cli("store", secret, "--user", "eve", "--json"))["id"])
        of_agent = str(
            json.loads(server.cli("store", secret, "--agent", "b", "--type", "agent", "--json"))[
                "id"
            ]
        )
        eve, mine = made(server, "--user", "eve"), made(server, "--agent", "a")
        reading, expired = made(server, "--read-only"), made(server, "--expires", "1s")
        revoked = made(server)
        server.cli("token", "revoke", revoked["Authorization"].split("_")[1])
        # Its owner sees it.
        assert secret in client.get("/v1/get", params={"id": of_eve}, headers=eve).text
        assert secret in client.get("/v1/search", params={"query": "vault code"}, headers=eve).text
        while client.get("/v1/stats", headers=expired).status_code == 200:
            pass  # until its second is over
        seen: set[int] = set()
        for operation in ROUTES:
            path = path_of(operation)
            for headers in (
                {},
                expired,
                revoked,
                {"Authorization": "Bearer mm_x_y"},
                {"Authorization": "Bearer " + "a" * 5000},
            ):
                assert client.post(path, json={}, headers=headers).status_code == 401, path
            for attack in HOSTILE:
                sent = attack(operation)
                answer = client.post(
                    path, **{**sent, "headers": {**mine, **sent.get("headers", {})}}
                )  # type: ignore[arg-type, dict-item]
                check(answer, secret, (400, 403, 404, 413, 415), seen)
            if operation.effect is not Effect.READ:
                assert (
                    client.post(path, json=minimal(operation), headers=reading).status_code == 403
                ), path
            for id_ in (of_eve, of_agent):
                given = {
                    name: [id_] if isinstance(value, list) else id_
                    for name, value in minimal(operation).items()
                }
                given |= (
                    {"id": id_}
                    if operation.name in ("get", "delete", "history", "sightings")
                    else {}
                )
                check(
                    client.post(path, json=given, headers=mine),
                    secret,
                    (200, 400, 403, 404, 409),
                    seen,
                )
            for method in ("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "GARBAGE"):
                assert client.request(method, path, headers=mine).status_code == 405, (method, path)
            assert (
                client.get(
                    path + "/" + quote("../../etc/passwd", safe=""), headers=mine
                ).status_code
                == 404
            )
            for trick in (
                {"Memory-User": "eve"},
                {"Memory-Agent": "b"},
                {"Host": "evil.example"},
                {"Origin": "http://evil.example"},
            ):
                assert client.post(path, json={}, headers={**mine, **trick}).status_code == 403, (
                    path,
                    trick,
                )
        assert {400, 403, 404, 413, 415} <= seen
        both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        raw(server.port, b"GET /v1/list HTTP/1.1\r\nHost: localhost\r\n" + both)
        raw(server.port, b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        raw(server.port, b"\x16\x03\x01" * 1000)
        raw(
            server.port, b"POST /v1/store HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n"
        )
        # And it is still there.
        assert secret in client.get("/v1/get", params={"id": of_eve}, headers=eve).text
        assert secret not in server.log
        assert "Traceback" not in server.log
        assert server.end() == 0


def check(answer: httpx.Response, secret: str, statuses: tuple[int, ...], seen: set[int]) -> None:
    assert answer.status_code in statuses, (
        answer.request.url,
        answer.status_code,
        answer.text[:300],
    )
    assert secret not in answer.text
    assert "/home" not in answer.text
    assert "Traceback" not in answer.text
    seen.add(answer.status_code)


def raw(port: int, data: bytes) -> None:
    """Send bytes that are hardly HTTP; the server may answer or hang up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
        except OSError:
            pass


def test_a_url_that_is_too_long_gets_a_problem_as_its_answer(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as client,
    ):
        client.sendall(b"GET /v1/search?query=" + b"x" * 65_600)
        answer = client.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Content-Type: application/problem+json" in head
    assert json.loads(body)["status"] == 400
