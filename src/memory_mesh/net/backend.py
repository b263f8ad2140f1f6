"""A network backend for `httpcore2`: connect to checked addresses only, within one deadline.

A host name is resolved once for each connection. Every address that it resolves to is checked, and
a single forbidden address refuses the name. The connection then goes to one of these checked
addresses, so a name that resolves differently the next time (DNS rebinding) gains nothing. TLS
still verifies the certificate against the host name.

`httpcore2` passes the timeouts of a request unchanged to each of its steps. `HttpClient` passes the
deadline of the whole call instead of a number of seconds: every `timeout` here is a moment of
`System.now`. A server that sends one byte a second cannot extend the call.
"""

import re
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from ipaddress import ip_address
from socket import socket
from threading import Thread
from typing import NoReturn

from httpcore2 import (
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    WriteError,
)

from memory_mesh.core.errors import CallError, UnsafeAddress
from memory_mesh.core.language.safety.addresses import address_refusal
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.net.system import (
    ALLOW_LOCAL_REMEDY,
    POLL_SECONDS,
    UNREACHED,
    DeadlineExceeded,
    System,
    remaining,
)

MAX_CONNECT_SECONDS = 10.0  # for one address, so that a dead one leaves time for the next
SocketOptions = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


class GuardedBackend(NetworkBackend):
    """Opens the connections of one client."""

    def __init__(self, system: System, *, allow_local: bool) -> None:
        self._system, self._allow_local = system, allow_local

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions | None = None,
    ) -> "GuardedStream":
        """Connect to the first address that accepts; raise `UnsafeAddress` when any address of
        the host is forbidden."""
        stream = _run_interruptibly(
            lambda: self._connect(host, port, timeout), timeout, self._system.now
        )
        return GuardedStream(stream, self._system.now)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: SocketOptions | None = None
    ) -> NoReturn:
        """Refuse: a Unix socket always leads to this computer."""
        raise UnsafeAddress("calls to Unix sockets are not allowed")

    def _connect(self, host: str, port: int, deadline: float | None) -> NetworkStream:
        addresses = self._resolve(host, port)
        for address in addresses:
            self._check(host, address)
        failure: Exception | None = None
        for address in addresses:
            seconds = min(MAX_CONNECT_SECONDS, remaining(deadline, self._system.now()))
            try:
                return self._system.connect(address, port, seconds)
            except (ConnectError, ConnectTimeout) as error:
                failure = error
        remaining(deadline, self._system.now())
        raise ConnectError(
            f"{UNREACHED}: {re.sub(r'^.Errno [-0-9]+. ', '', str(failure))}"
        ) from failure

    def _resolve(self, host: str, port: int) -> list[str]:
        with suppress(ValueError):
            ip_address(host)
            return [host]
        try:
            addresses = list(self._system.resolve(host, port))
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"its name cannot be resolved: {error}") from error
        if not addresses:
            raise ConnectError("its name has no address")
        return addresses

    def _check(self, host: str, address: str) -> None:
        try:
            reason = address_refusal(address, allow_local=self._allow_local)
            is_local = address_refusal(address, allow_local=True) is None
        except ValueError:
            reason, is_local = "an invalid address", False
        if reason is not None:
            remedy = ALLOW_LOCAL_REMEDY if is_local else ""
            raise UnsafeAddress(
                f"{host} leads to {reason}", expected="a public host", remedy=remedy
            )


class GuardedStream(NetworkStream):
    """A connection on which every operation ends at the deadline of the call or when the call is
    cancelled."""

    def __init__(self, stream: NetworkStream, now: Callable[[], float]) -> None:
        self._stream, self._now = stream, now

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while True:
            try:
                return self._stream.read(max_bytes, self._next_wait(timeout))
            except ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Not `self._stream.write`: after a timeout it cannot say how much it has sent. TLS needs
        # the same bytes again then.
        sock: socket = self._stream.get_extra_info("socket")
        view = memoryview(buffer)
        while view:
            sock.settimeout(self._next_wait(timeout))
            try:
                view = view[sock.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise WriteError(str(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> "GuardedStream":
        """Start TLS and verify the certificate against the name, whatever address was connected
        to."""
        try:
            seconds = None if timeout is None else remaining(timeout, self._now())
            stream = _run_interruptibly(
                lambda: self._stream.start_tls(ssl_context, server_hostname, seconds),
                timeout,
                self._now,
            )
        except ConnectTimeout:
            raise DeadlineExceeded from None
        except ConnectError as error:
            cause = error.__cause__
            if not isinstance(cause, ssl.SSLCertVerificationError):
                raise
            what = (
                f"the certificate of {server_hostname} cannot be trusted: "
                f"{cause.verify_message.rstrip('.')}"
            )
            raise CallError(
                what, remedy="nothing was sent; check the URL and the certificate"
            ) from cause
        except BaseException:
            self.close()
            raise
        return GuardedStream(stream, self._now)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)

    def _next_wait(self, deadline: float | None) -> float:
        check_cancelled()
        return min(POLL_SECONDS, remaining(deadline, self._now()))


def _run_interruptibly(
    work: Callable[[], NetworkStream], deadline: float | None, now: Callable[[], float]
) -> NetworkStream:
    """Run blocking work in a thread, and abandon it at the deadline or on cancellation. A stream
    it opens later is closed."""
    future: Future[NetworkStream] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            future.set_exception(error)

    Thread(target=run, name="memory-mesh-connect", daemon=True).start()
    try:
        while not future.done():
            check_cancelled()
            wait([future], min(POLL_SECONDS, remaining(deadline, now())))
    except BaseException:
        future.add_done_callback(_close_stream)
        raise
    return future.result()


def _close_stream(future: "Future[NetworkStream]") -> None:
    if future.exception() is None:
        future.result().close()
