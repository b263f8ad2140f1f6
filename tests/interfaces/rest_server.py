"""A REST server for tests: in this process, over a store in memory, with tokens of its own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from memory_mesh import MemoryMesh
from memory_mesh.api.settings import load
from memory_mesh.core.model import iso
from memory_mesh.interfaces.rest.app import build
from memory_mesh.interfaces.rest.server import Server
from memory_mesh.interfaces.tokens import Token, TokenFile, hash_of, token_text

NOW = time.time_ns() // 1_000_000
LATER, EARLIER = iso(NOW + 86_400_000), iso(NOW - 1000)


@contextmanager
def running(
    home: Path, store: object = "memory://", *, agent: str = "server", **options: Any
) -> Iterator[tuple[TestClient, Server]]:
    """Yield a client of a server without a heartbeat, and the server."""
    given = {"embedder": "hash", "server_heartbeat_seconds": 0.0, **options}
    objects = {name: given.pop(name) for name in ("clock", "ids") if name in given}
    mesh = MemoryMesh(store, agent_id=agent, **given, **objects)  # type: ignore[arg-type]
    server = Server(mesh, load(given).options, TokenFile(home))
    with TestClient(build(server), base_url="http://localhost") as client:
        yield client, server


def token(server: Server, name: str, *, expires_at: str = LATER, **scope: Any) -> dict[str, str]:
    """Create a token, and return the header that presents it."""
    secret = f"secret-of-{name}"
    made = Token(
        id=name,
        name=name,
        sha256=hash_of(secret),
        created_at=EARLIER,
        expires_at=expires_at,
        **{"user_id": None, **scope},
    )
    server.tokens.add(made)
    return {"Authorization": f"Bearer {token_text(name, secret)}"}
