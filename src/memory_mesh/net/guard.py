"""The guard of outgoing calls: what is connected to is what was checked, and nothing outlives the call.

`httpcore2` speaks HTTP and leaves the sockets to a backend; this is ours. A name is resolved here, once for each connection.
Every address that it stands for is judged, and one bad address refuses the name; then one of those very addresses is connected
to. So a name that changes its mind between the check and the connection gains nothing. TLS still knows the host by its name.

`httpcore2` hands the timeouts of a request on as they are, to each step anew. We put the moment in their place at which the whole
call ends: a server that sends one byte a second cannot stretch it.
"""

import selectors
import ssl
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from socket import socket
from threading import Thread
from typing import NoReturn, Self, TypeVar

from httpcore2 import ConnectError, NetworkBackend, NetworkStream, ReadError, WriteError

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import CallError, UnsafeAddress
from memory_mesh.core.safety.address_ranges import judge
from memory_mesh.net.system import SLICE, System, left_of

T = TypeVar("T")
_OPENS_LOCAL = "allow local addresses for this endpoint if it is meant"
Options = Iterable[tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]]


class Guard(NetworkBackend):
    """Opens the connections of one door."""

    def __init__(self, machine: System, *, allow_local: bool) -> None:
        self._machine, self._allow_local = machine, allow_local

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Options | None = None,
    ) -> "Stream":
        """Connect to the first address that answers; raise `UnsafeAddress` if one of them may not be called."""
        until = _moment(timeout)
        addresses = self._addresses(host, port, until)
        for address in addresses:
            self._check(host, address)
        failed: OSError | None = None
        for address in addresses:
            try:
                return Stream(self._machine.connect(address, port, until), self._machine.now)
            except OSError as error:
                failed = error
        raise ConnectError(f"cannot be reached: {failed}") from failed

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Options | None = None) -> NoReturn:
        """A file of this machine is no address of another."""
        raise UnsafeAddress("a socket of this machine's files is not called")

    def sleep(self, seconds: float) -> None:
        """Nothing waits here: the door retries by itself."""
        self._machine.pause(seconds)

    def _addresses(self, host: str, port: int, until: float) -> list[str]:
        if _is_address(host):
            return [host]
        try:
            found = _in_thread(lambda: list(self._machine.resolve(host, port)), until, self._machine.now)
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"its name cannot be resolved: {error}") from error
        if not found:
            raise ConnectError("its name stands for no address")
        return found

    def _check(self, host: str, address: str) -> None:
        try:
            reason = judge(address, allow_local=self._allow_local)
            opens = judge(address, allow_local=True) is None
        except ValueError:
            reason, opens = "no address", False
        if reason is not None:
            raise UnsafeAddress(f"{host} leads to {reason}", expected="a public host", remedy=_OPENS_LOCAL if opens else "")


class Stream(NetworkStream):
    """A connection whose every step ends with the call: at its last moment, or when it is called off."""

    def __init__(self, sock: socket, now: Callable[[], float]) -> None:
        self._sock, self._now = sock, now

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What has come; nothing at the end."""
        try:
            return self._patiently(lambda: self._sock.recv(max_bytes), timeout)
        except OSError as error:
            raise ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of it."""
        view = memoryview(buffer)
        try:
            while view:
                # A TLS connection wants the same bytes again after a pause, and gets them.
                view = view[self._patiently(lambda rest=view: self._sock.send(rest), timeout) :]  # type: ignore[misc]
        except OSError as error:
            raise WriteError(str(error)) from error

    def start_tls(self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None) -> Self:
        """Go on in TLS; the certificate is checked against the name, whatever address was connected to."""
        # Systems other than Linux check certificates in a context of their own, right after its own handshake; that one can
        # only be left at the last moment.
        sliced = type(ssl_context) is ssl.SSLContext
        try:
            self._sock.settimeout(left_of(_moment(timeout), self._now()))
            secure = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname, do_handshake_on_connect=not sliced)
            self._sock = secure
            if sliced:
                self._patiently(secure.do_handshake, timeout)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise _unproven(server_hostname, error) from error
        except OSError as error:
            self.close()
            raise ConnectError(str(error)) from error
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Let go of the socket."""
        self._sock.close()

    def get_extra_info(self, info: str) -> object:
        """What `httpcore2` asks: whether something has come unasked, and what TLS agreed on."""
        if info == "is_readable":
            return _readable(self._sock)
        if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket):
            return self._sock
        return None

    def _patiently(self, step: Callable[[], T], timeout: float | None) -> T:
        """Do it in short waits, and look around between them. A socket that timed out goes on where it was, in TLS too."""
        until = _moment(timeout)
        while True:
            check_cancelled()
            self._sock.settimeout(min(SLICE, left_of(until, self._now())))
            try:
                return step()
            except TimeoutError:
                continue


def _moment(timeout: float | None) -> float:
    return float("inf") if timeout is None else timeout


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _unproven(host: str | None, error: ssl.SSLCertVerificationError) -> CallError:
    said = error.verify_message.rstrip(".")
    return CallError(f"{host} cannot prove who it is: {said}", remedy="nothing was sent; check the URL and its certificate")


def _readable(sock: socket) -> bool:
    if sock.fileno() < 0:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _in_thread(work: Callable[[], T], until: float, now: Callable[[], float]) -> T:
    """Work that cannot be interrupted; it is left behind when the time is up or nobody wants it any more."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001  (raised again, in the caller's thread)
            failed.append(error)

    thread = Thread(target=run, name="memory-mesh-resolve", daemon=True)
    thread.start()
    while thread.is_alive():
        check_cancelled()
        thread.join(min(SLICE, left_of(until, now())))
    if failed:
        raise failed[0]
    return done[0]
