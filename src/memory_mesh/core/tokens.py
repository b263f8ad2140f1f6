"""Tokens of the server: what each allows, and which one a request presents.

A token is `mm_ID_SECRET`. Only the SHA-256 of the secret, 32 random bytes, is stored.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from memory_mesh.core.errors import TokenInvalid

PREFIX = "mm"
_REMEDY = "create one with memory-mesh token create, and send it as Authorization: Bearer TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a token allows: a user, and optionally one agent, one project, and reading only."""

    id: str
    name: str
    sha256: str
    user_id: str | None
    agent_id: str | None = None
    project: str | None = None
    read_only: bool = False
    created_at: str
    expires_at: str
    revoked_at: str | None = None

    def state(self, at: str) -> str:
        """Return whether it is valid at a time: `valid`, `expired` or `revoked`."""
        return "revoked" if self.revoked_at else "expired" if self.expires_at <= at else "valid"


def token_text(id_: str, secret: str) -> str:
    """Return a token as its owner keeps it."""
    return f"{PREFIX}_{id_}_{secret}"


def hash_of(secret: str) -> str:
    """Return what is stored of a secret. It is random and long, so a plain hash cannot be reversed."""
    return sha256(secret.encode()).hexdigest()


def find_token(tokens: Mapping[str, Token], header: str | None, at: str) -> Token:
    """Return the token that the header `Authorization` presents. Raises `TokenInvalid` without a valid one.

    The error is the same for an unknown, an expired and a revoked token: it tells a stranger nothing.
    """
    if header is None:
        raise TokenInvalid("the request has no token", remedy=_REMEDY)
    kind, _, text = header.strip().partition(" ")
    prefix, _, rest = text.strip().partition("_")
    id_, _, secret = rest.partition("_")
    token = tokens.get(id_)
    # Compared even if there is no such token, so that the time says nothing about it.
    right = hmac.compare_digest(hash_of(secret), token.sha256 if token else hash_of(""))
    if kind.lower() != "bearer" or prefix != PREFIX or token is None or not right or token.state(at) != "valid":
        raise TokenInvalid("the token is not valid", remedy=_REMEDY)
    return token
