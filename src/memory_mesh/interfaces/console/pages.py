"""What the pages of the console read beside the verbs of `/v1`."""

from collections.abc import Awaitable, Callable

from fastapi import Request
from starlette.responses import Response

from memory_mesh.interfaces.rest.server import Server

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(server: Server) -> list[tuple[str, str, Endpoint]]:
    """Return the method, the path and the endpoint of each."""
    return []
