"""What outgoing calls need of this machine, in one value, so that tests can put their own in its place."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_mesh.core.cancel import check_cancelled, wait

if TYPE_CHECKING:
    import socket
    import ssl


class TimeIsUp(Exception):
    """The last moment of a call has come. No OSError, which would be one address that does not answer."""


SLICE = 0.2  # seconds between two looks at whether the caller still wants it
_ONE_ADDRESS = 10.0  # seconds for one address to answer, so that a dead one leaves time for the next

# A host and a port into the addresses that stand for them; OSError where there are none.
Resolve = Callable[[str, int], Sequence[str]]
# Connects to an address and a port, until a moment of `now` at the latest; OSError where it cannot.
Connect = Callable[[str, int, float], "socket.socket"]


def resolve(host: str, port: int) -> list[str]:
    """As the system does it. It may take its time: it runs in a thread that can be left behind."""
    import socket

    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


def connect(address: str, port: int, until: float) -> "socket.socket":
    """Connect to an address, which is never a name, and look now and then whether that is still wanted."""
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(0.0)
        _start(sock, address, port)
        _await(sock, min(until, time.monotonic() + _ONE_ADDRESS), final=until)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def _start(sock: "socket.socket", address: str, port: int) -> None:
    try:
        sock.connect((address, port))
    except BlockingIOError:
        return


def _await(sock: "socket.socket", until: float, *, final: float) -> None:
    import os
    import selectors
    import socket

    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_WRITE)
        while not selector.select(min(SLICE, max(0.0, until - time.monotonic()))):
            check_cancelled()
            left_of(final, time.monotonic())
            if time.monotonic() >= until:
                raise TimeoutError("it does not answer")
    if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        raise OSError(error, os.strerror(error))


def left_of(until: float, now: float) -> float:
    """The seconds that are left, or `TimeIsUp`."""
    if now >= until:
        raise TimeIsUp
    return until - now


def jitter(most: float) -> float:
    """Any time up to the most: calls that failed together do not come back together."""
    import random

    return random.uniform(0.0, most)  # noqa: S311  (no secret)


def tls() -> "ssl.SSLContext":
    """Certificates are checked against those that the system trusts, or `SSL_CERT_FILE` and `SSL_CERT_DIR` where they are set."""
    from httpcore2 import default_ssl_context

    return default_ssl_context()


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Names, connections, time and chance."""

    resolve: Resolve = resolve
    connect: Connect = connect
    now: Callable[[], float] = time.monotonic  # seconds that only grow
    clock: Callable[[], float] = time.time  # seconds since 1970
    pause: Callable[[float], None] = wait
    jitter: Callable[[float], float] = jitter
    tls: Callable[[], "ssl.SSLContext"] = tls
