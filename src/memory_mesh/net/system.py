"""The functions of the system that outgoing calls use, in one value that tests can replace."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from memory_mesh.core.model.background import wait

if TYPE_CHECKING:
    import ssl

    from httpcore2 import NetworkStream

POLL_SECONDS = 0.2  # how often a waiting call checks whether it was cancelled
UNREACHED = "cannot be reached"  # begins the error of a connection that was not made
ALLOW_LOCAL_REMEDY = "allow local addresses for this endpoint if that is intended"

# Returns the IP addresses of a host and port, or raises OSError.
Resolve = Callable[[str, int], Sequence[str]]
# Connects to an IP address and port within some seconds, or raises `httpcore2.ConnectError` or
# `ConnectTimeout`.
Connect = Callable[[str, int, float], "NetworkStream"]


class DeadlineExceeded(Exception):
    """The time for the whole call is over. Not an OSError, which would only mean that one
    address failed."""


def remaining(deadline: float | None, now: float) -> float:
    """Return the seconds until the deadline, infinite without one, or raise `DeadlineExceeded`."""
    if deadline is None:
        return inf
    if now >= deadline:
        raise DeadlineExceeded
    return deadline - now


def resolve(host: str, port: int) -> list[str]:
    """Resolve a name with the system's resolver, which may block for a long time."""
    import socket

    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def connect(address: str, port: int, timeout: float) -> "NetworkStream":
    """Connect to an IP address."""
    from httpcore2 import SyncBackend

    return SyncBackend().connect_tcp(address, port, timeout)


def tls() -> "ssl.SSLContext":
    """Return a context that trusts the system's certificates, or those of `SSL_CERT_FILE` or
    `SSL_CERT_DIR` when set."""
    from httpcore2 import default_ssl_context

    return default_ssl_context()


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Name resolution, connections, clocks and randomness."""

    resolve: Resolve = resolve
    connect: Connect = connect
    now: Callable[[], float] = time.monotonic
    clock: Callable[[], float] = time.time  # seconds since 1970
    pause: Callable[[float], None] = wait
    # A random time up to a maximum, so that calls that failed together are not repeated together.
    jitter: Callable[[float], float] = lambda maximum: random.uniform(0.0, maximum)  # noqa: S311  (no secret depends on it)
    tls: Callable[[], "ssl.SSLContext"] = tls
