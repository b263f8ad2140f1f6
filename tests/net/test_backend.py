"""The guarded backend: it connects to the checked address, TLS verifies the name, and nothing
outlives a call."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from select import select
from threading import Event, Thread

import pytest
from httpcore2 import ConnectError, NetworkStream

from memory_mesh.core.errors import CallError, CallTimedOut, Cancelled, UnsafeAddress
from memory_mesh.core.model.background import cancellable
from memory_mesh.net import HttpClient, System, backend
from memory_mesh.net.backend import GuardedBackend, GuardedStream
from memory_mesh.net.system import Connect, Resolve
from memory_mesh.net.system import connect as system_connect
from memory_mesh.net.system import resolve as system_resolve

from .servers import Answer, FaultServer

PUBLIC, OTHER, METADATA = "93.184.216.34", "2606:4700:4700::1111", "169.254.169.254"
CERTIFICATE = Path(__file__).with_name("mesh_test.pem")


class RecordedAddresses(list[str]):
    """Connects to a local server whatever the address, and records the address."""

    def to(self, server: FaultServer, *, dead: tuple[str, ...] = ()) -> Connect:
        def connect(address: str, port: int, timeout: float) -> NetworkStream:
            self.append(address)
            if address in dead:
                raise ConnectError("connection refused")
            return system_connect("127.0.0.1", server.port, timeout)

        return connect


def scripted(*answers: list[str]) -> tuple[Resolve, list[str]]:
    """A resolver with scripted results, the last one repeated, and the list of names that it
    resolved."""
    resolved: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        resolved.append(host)
        return answers[min(len(resolved), len(answers)) - 1]

    return resolve, resolved


def client(url: str, *, resolve: Resolve, connect: Connect, **options: object) -> HttpClient:
    system = System(resolve=resolve, connect=connect, pause=lambda _: None, jitter=lambda _: 0.0)
    return HttpClient(url, system=system, **options)  # type: ignore[arg-type]


# --- addresses ---


@pytest.mark.req("GRAPH-83")
def test_a_name_is_resolved_once_and_the_checked_address_is_connected() -> None:
    resolve, resolved = scripted([PUBLIC], [METADATA])  # the second result is forbidden
    called = RecordedAddresses()
    with (
        FaultServer() as server,
        closing(client("http://api.example", resolve=resolve, connect=called.to(server))) as there,
    ):
        there.post("a", {})
        assert (resolved, called) == (["api.example"], [PUBLIC])
        assert server.requests[0].headers["host"] == "api.example"


@pytest.mark.req("GRAPH-83")
def test_a_name_that_resolves_differently_is_refused_at_the_next_connection() -> None:
    resolve, resolved = scripted([PUBLIC], [METADATA])
    called = RecordedAddresses()
    with FaultServer([Answer(headers={"Connection": "close"})]) as server:
        with closing(
            client("http://api.example", resolve=resolve, connect=called.to(server))
        ) as there:
            there.post("a", {})
            with pytest.raises(UnsafeAddress, match="metadata service"):
                there.post("a", {})
        assert (len(resolved), called, len(server.requests)) == (2, [PUBLIC], 1)


@pytest.mark.req("GRAPH-83")
def test_a_name_that_resolves_differently_in_a_retry_is_refused() -> None:
    resolve, _ = scripted([PUBLIC], ["127.0.0.1"])
    called = RecordedAddresses()
    with FaultServer() as server:
        connect = called.to(server, dead=(PUBLIC,))
        with (
            closing(client("http://api.example", resolve=resolve, connect=connect)) as there,
            pytest.raises(UnsafeAddress),
        ):
            there.post("a", {})
        assert (called, server.connections) == ([PUBLIC], 0)


@pytest.mark.req("GRAPH-82")
@pytest.mark.parametrize(
    "answers",
    [[PUBLIC, METADATA], [METADATA, PUBLIC], [PUBLIC, OTHER, "::1"], [PUBLIC, "no address"]],
)
def test_one_bad_address_refuses_the_name(answers: list[str]) -> None:
    called = RecordedAddresses()
    with FaultServer() as server:
        connect = called.to(server)
        bad = client("http://api.example", resolve=scripted(answers)[0], connect=connect)
        with closing(bad), pytest.raises(UnsafeAddress, match=r"api\.example leads to"):
            bad.post("a", {})
        assert called == []
        with closing(
            client("http://api.example", resolve=scripted([PUBLIC])[0], connect=connect)
        ) as good:
            good.post("a", {})
        assert called == [PUBLIC]


def test_when_one_address_does_not_answer_the_next_is_tried() -> None:
    called = RecordedAddresses()
    with FaultServer() as server:
        connect = called.to(server, dead=(OTHER,))
        with closing(
            client("http://api.example", resolve=scripted([OTHER, PUBLIC])[0], connect=connect)
        ) as there:
            assert there.post("a", {}) == {}
        assert called == [OTHER, PUBLIC]


def test_a_name_without_an_address_is_retried_and_then_an_error() -> None:
    resolved: list[str] = []

    def unknown(host: str, port: int) -> list[str]:
        resolved.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    there = client("http://no.example", resolve=unknown, connect=system_connect)
    with closing(there), pytest.raises(CallError, match="cannot be resolved"):
        there.post("a", {})
    assert resolved == ["no.example"] * 4
    with pytest.raises(ConnectError, match="no address"):
        GuardedBackend(System(resolve=lambda host, port: []), allow_local=False).connect_tcp(
            "no.example", 80
        )


@pytest.mark.req("GRAPH-82")
def test_a_unix_socket_is_refused() -> None:
    with pytest.raises(UnsafeAddress):
        GuardedBackend(System(), allow_local=True).connect_unix_socket("/var/run/docker.sock")


def test_a_client_uses_the_systems_resolver_and_connection() -> None:
    with FaultServer() as server:
        assert "127.0.0.1" in system_resolve("localhost", server.port)
        with closing(HttpClient(f"http://localhost:{server.port}", allow_local=True)) as there:
            assert there.post("a", {}) == {}
        assert server.requests[0].headers["host"] == f"localhost:{server.port}"


# --- time ---


def test_a_resolver_that_never_answers_times_out() -> None:
    over = Event()

    def never(host: str, port: int) -> list[str]:
        over.wait()
        return []

    there = client("http://slow.example", resolve=never, connect=system_connect, timeout=0.3)
    with closing(there), pytest.raises(CallTimedOut):
        there.post("a", {})
    over.set()


@pytest.fixture
def full() -> Iterator[int]:
    """The port of a server whose queue is full: new connections wait."""
    with (
        socket.socket() as listening,
        socket.socket() as first,
        socket.socket() as second,
        socket.socket() as third,
    ):
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for one in (first, second, third):
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def test_a_host_that_does_not_answer_times_out(full: int) -> None:
    with (
        closing(HttpClient(f"http://127.0.0.1:{full}", allow_local=True, timeout=0.3)) as there,
        pytest.raises(CallTimedOut),
    ):
        there.post("a", {})


def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    full: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "MAX_CONNECT_SECONDS", 0.1)
    called: list[str] = []

    def connect(address: str, port: int, timeout: float) -> NetworkStream:
        called.append(address)
        return system_connect("127.0.0.1", full if address == OTHER else port, timeout)

    with FaultServer() as server:
        url = f"http://api.example:{server.port}"
        with closing(client(url, resolve=scripted([OTHER, PUBLIC])[0], connect=connect)) as there:
            assert there.post("a", {}) == {}
        assert called == [OTHER, PUBLIC]


@contextmanager
def cancelled(when: Callable[[], object]) -> Iterator[None]:
    """Cancel the calls in the block as soon as `when` is true."""
    stop = Event()

    def watch() -> None:
        while not when():
            stop.wait(0.01)
        stop.set()

    watcher = Thread(target=watch)
    watcher.start()
    with cancellable(stop):
        yield
    watcher.join()


def test_a_call_can_be_cancelled_while_it_connects(full: int) -> None:
    began = Event()

    def connect(address: str, port: int, timeout: float) -> NetworkStream:
        began.set()
        return system_connect(address, port, timeout)

    there = client(
        f"http://127.0.0.1:{full}", resolve=system_resolve, connect=connect, allow_local=True
    )
    with closing(there), cancelled(began.is_set), pytest.raises(Cancelled):
        there.post("a", {})
    assert began.is_set()


def test_a_connection_that_opens_after_the_call_has_ended_is_closed() -> None:
    ended, closed = Event(), Event()

    class Late(NetworkStream):
        def close(self) -> None:
            closed.set()

    def connect(address: str, port: int, timeout: float) -> NetworkStream:
        ended.wait()
        return Late()

    there = client(
        "http://api.example", resolve=scripted([PUBLIC])[0], connect=connect, timeout=0.1
    )
    with closing(there), pytest.raises(CallTimedOut):
        there.post("a", {})
    assert not closed.is_set()
    ended.set()
    assert closed.wait(10)


# --- TLS ---


def trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(CERTIFICATE)
    return context


def serving() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def secure(server: FaultServer, host: str, **options: object) -> HttpClient:
    system = System(resolve=lambda name, port: ["127.0.0.1"], tls=trusting, pause=lambda _: None)
    return HttpClient(
        f"https://{host}:{server.port}/v1", allow_local=True, system=system, **options
    )  # type: ignore[arg-type]


@pytest.mark.req("GRAPH-83")
def test_a_certificate_is_checked_against_the_name_not_the_address() -> None:
    names: list[str | None] = []
    context = serving()
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    with FaultServer([Answer(body={"long": "x" * 300_000})], tls=context) as server:
        with closing(secure(server, "mesh.test")) as there:
            for _ in range(2):
                assert len(str(there.post("a", {"long": "y" * 1_000_000})["long"])) == 300_000
        assert (names, server.connections) == (["mesh.test"], 1)


@pytest.mark.parametrize("host", ["other.test", "127.0.0.1"])
def test_a_certificate_of_another_name_is_refused_before_anything_is_sent(host: str) -> None:
    with FaultServer(tls=serving()) as server, closing(secure(server, host)) as there:
        with pytest.raises(CallError, match=r"certificate of .* cannot be trusted"):
            there.post("a", {})
        assert (server.connections, server.requests) == (1, [])


def test_a_certificate_that_the_system_does_not_trust_is_refused() -> None:
    system = System(resolve=lambda name, port: ["127.0.0.1"])
    with FaultServer(tls=serving()) as server:
        there = HttpClient(f"https://mesh.test:{server.port}", allow_local=True, system=system)
        with closing(there), pytest.raises(CallError, match=r"certificate of .* cannot be trusted"):
            there.post("a", {})
        assert server.requests == []


def test_a_server_without_tls_is_refused_for_https() -> None:
    with FaultServer([Answer(raw=b"HTTP/1.1 400 No\r\n\r\n")], greeting=b"220 mail\r\n") as server:
        there = secure(server, "mesh.test", attempts=2)
        with closing(there), pytest.raises(CallError, match=r"gave no answer: .*SSL"):
            there.post("a", {})
        assert (server.connections, server.requests) == (2, [])


@pytest.mark.parametrize(
    "slow", [Answer(hang=True), Answer(body={"a": "x" * 1000}, drip=0.02)], ids=["hangs", "drips"]
)
def test_time_and_cancellation_hold_within_tls(slow: Answer) -> None:
    with FaultServer([slow], tls=serving()) as server:
        with (
            closing(secure(server, "mesh.test", timeout=0.5)) as there,
            pytest.raises(CallTimedOut),
        ):
            there.post("a", {})
        there = secure(server, "mesh.test")
        with closing(there), cancelled(lambda: len(server.requests) == 2), pytest.raises(Cancelled):
            there.post("a", {})


def test_a_hanging_handshake_times_out_and_can_be_cancelled() -> None:
    connected = Event()

    def connect(address: str, port: int, timeout: float) -> NetworkStream:
        made = system_connect(address, port, timeout)
        connected.set()
        return made

    system = System(resolve=lambda name, port: ["127.0.0.1"], tls=trusting, connect=connect)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://mesh.test:{silent.getsockname()[1]}"
        with (
            closing(HttpClient(url, allow_local=True, system=system, timeout=0.3)) as there,
            pytest.raises(CallTimedOut),
        ):
            there.post("a", {})
        connected.clear()
        there = HttpClient(url, allow_local=True, system=system)
        with closing(there), cancelled(connected.is_set), pytest.raises(Cancelled):
            there.post("a", {})
        assert connected.is_set()


def test_an_ssl_context_may_do_its_own_handshake() -> None:
    """On macOS and Windows the context verifies the certificate in `wrap_socket`, right after
    the handshake."""

    class Own(ssl.SSLContext):
        handshake_done: bool

        def wrap_socket(self, *args: object, **options: object) -> ssl.SSLSocket:
            wrapped = super().wrap_socket(*args, **options)  # type: ignore[arg-type]
            self.handshake_done = wrapped.version() is not None
            return wrapped

    context = Own(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(CERTIFICATE)
    system = System(resolve=lambda name, port: ["127.0.0.1"], tls=lambda: context)
    with FaultServer(tls=serving()) as server:
        there = HttpClient(f"https://mesh.test:{server.port}", allow_local=True, system=system)
        with closing(there):
            assert there.post("a", {}) == {}
    assert context.handshake_done


def test_a_connection_that_was_closed_counts_as_readable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stream = GuardedStream(
            system_connect("127.0.0.1", listening.getsockname()[1], 5.0), System().now
        )
        there, _ = listening.accept()
    with there:
        assert stream.get_extra_info("is_readable") is False
        assert stream.get_extra_info("ssl_object") is None
        there.send(b"x")
        assert select([stream.get_extra_info("socket")], [], [], 5.0)[0]
        assert stream.get_extra_info("is_readable") is True
        stream.close()
        assert stream.get_extra_info("is_readable") is True
