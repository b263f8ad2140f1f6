"""The PostgreSQL store over a bad network: a proxy cuts, garbles or delays what the server
answers."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Thread
from time import sleep

import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import MemoryMeshError, StoreError

pytestmark = pytest.mark.deep


class Proxy:
    """Passes bytes on to a server. Once, after `limit` bytes of answers, an answer is lost, cut,
    garbled or late."""

    def __init__(self, port: int) -> None:
        self._target, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.answered, self.limit, self.fault = 0, 0, ""
        self._open: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def fail_after(self, limit: int, fault: str) -> None:
        self.answered, self.limit, self.fault = 0, limit, fault

    def close(self) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                passed, ends = self._spoilt(data) if is_answer else (data, False)
                target.sendall(passed)
                if ends:
                    break
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _spoilt(self, data: bytes) -> tuple[bytes, bool]:
        """Return the answer as the network passes it on, and whether the connection ends then."""
        before, self.answered = self.answered, self.answered + len(data)
        if not self.fault or not before <= self.limit < self.answered:
            return data, False
        fault, self.fault, at = self.fault, "", self.limit - before
        if fault == "late":
            sleep(0.3)
            return data, False
        garbage = bytes(byte ^ 0x5A for byte in data[at:]) if fault == "garbage" else b""
        return (b"" if fault == "cut" else data[:at] + garbage), True


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with closing(Proxy(server.port)) as proxy:
        yield proxy


@contextmanager
def mesh_over(proxy: Proxy, url: str, server: Server) -> Iterator[MemoryMesh]:
    with MemoryMesh(
        url.replace(f":{server.port}/", f":{proxy.port}/"), agent_id="keeper", embedder="none"
    ) as mesh:
        yield mesh


@pytest.mark.parametrize("fault", ["cut", "half", "garbage", "late"])
def test_a_write_over_a_bad_network_is_done_once_or_is_an_error(
    server: Server, proxy: Proxy, fault: str
) -> None:
    url, errors, done = server.keeper(server.database()), list[MemoryMeshError](), 0
    with mesh_over(proxy, url, server) as mesh:
        mesh.add("The pump is red.")
        proxy.fail_after(10**9, "")
        mesh.add("The lamp is green.")
        size = proxy.answered  # of the answers to one write
        for place in range(0, size, max(1, size // 12)):
            text = f"Note {place} {fault}."
            proxy.fail_after(place, fault)
            try:
                mesh.add(text, idempotency_key=text)
            except MemoryMeshError as error:
                errors.append(error)
            proxy.fault = ""
            mesh.add(text, idempotency_key=text)
            done += 1
            assert [memory.content for memory in mesh.get_all()].count(text) == 1
        assert done >= 10
        assert [
            error
            for error in errors
            if not isinstance(error, StoreError) or len(str(error).splitlines()) > 1
        ] == []
        assert not any("secret" in str(error) for error in errors)
        assert fault != "late" or not errors
    with MemoryMesh(url, agent_id="keeper", embedder="none") as mesh:
        kept = [memory for memory in mesh.get_all() if memory.content.startswith("Note ")]
        assert len(kept) == done
        assert {memory.times_observed for memory in kept} == {1}
        assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []
