"""The tokens of the server: what each allows, the private file of them, and its commands."""

import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from memory_mesh.api.settings import load
from memory_mesh.core.errors import (
    InvalidInput,
    NotFound,
    SettingsError,
    StoreBusy,
    TokenInvalid,
    shown,
)
from memory_mesh.core.model import iso
from memory_mesh.core.options import validate
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    aligned,
    counted,
    items,
    one_line,
    table,
)
from memory_mesh.interfaces.values import Call
from memory_mesh.stores.files import create_folder, lock_file, replace_file

# --- tokens ---
# A token is `mm_ID_SECRET`. Only the SHA-256 of the secret, 32 random bytes, is stored.

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
    """Return what is stored of a secret. It is random and long, so a plain hash cannot be
    reversed."""
    return sha256(secret.encode()).hexdigest()


def find_token(tokens: Mapping[str, Token], header: str | None, at: str) -> Token:
    """Return the token that the header `Authorization` presents. Raises `TokenInvalid` without a
    valid one.

    The error is the same for an unknown, an expired and a revoked token: it tells a stranger
    nothing.
    """
    if header is None:
        raise TokenInvalid("the request has no token", remedy=_REMEDY)
    kind, _, text = header.strip().partition(" ")
    prefix, _, rest = text.strip().partition("_")
    id_, _, secret = rest.partition("_")
    token = tokens.get(id_)
    # Compared even if there is no such token, so that the time says nothing about it.
    right = hmac.compare_digest(hash_of(secret), token.sha256 if token else hash_of(""))
    if (
        kind.lower() != "bearer"
        or prefix != PREFIX
        or token is None
        or not right
        or token.state(at) != "valid"
    ):
        raise TokenInvalid("the token is not valid", remedy=_REMEDY)
    return token


# --- the file and its commands ---

FILE = "tokens.json"
_LOCK_SECONDS = 10.0
_MAX_NAME = 100


class TokenFile:
    """The file of all tokens. It is read again when another process has changed it."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._read: tuple[object, dict[str, Token]] = (None, {})
        self._had_tokens = False

    def tokens(self) -> Mapping[str, Token]:
        """Return all tokens by id, also expired and revoked ones. Raises `SettingsError` if the
        file cannot be read."""
        try:
            state = os.stat(self._path)
        except FileNotFoundError:
            return {}
        mark = state.st_mtime_ns, state.st_size, state.st_ino
        if mark != self._read[0]:
            self._read = mark, self._load()
        self._had_tokens = self._had_tokens or bool(self._read[1])
        return self._read[1]

    def is_required(self) -> bool:
        """Return whether a request needs a token: there is one, or this object has read one
        before the file was removed."""
        return bool(self.tokens()) or self._had_tokens

    def add(self, token: Token) -> None:
        """Store a new token."""
        self._change(lambda known: {**known, token.id: token})

    def revoke(self, id_: str, at: str) -> Token:
        """End a token for good, and return it. Raises `NotFound` if there is none with this id."""

        def change(known: dict[str, Token]) -> dict[str, Token]:
            if id_ not in known:
                raise NotFound(f"no token {shown(id_)}", remedy="see memory-mesh token list")
            return {**known, id_: replace(known[id_], revoked_at=known[id_].revoked_at or at)}

        return self._change(change)[id_]

    def _change(self, change: Callable[[dict[str, Token]], dict[str, Token]]) -> dict[str, Token]:
        try:
            create_folder(self._path.parent)
            with lock_file(self._path.with_name(f".{FILE}.lock"), seconds=_LOCK_SECONDS) as locked:
                if not locked:
                    raise StoreBusy(
                        f"{self._path} is locked by another process", remedy="try again"
                    )
                tokens = change(self._load())
                data = json.dumps({"tokens": [asdict(one) for one in tokens.values()]}, indent=2)
                replace_file(self._path, data.encode())
                return tokens
        except OSError as error:
            raise SettingsError(
                f"{self._path} cannot be written: {error.strerror}", remedy="check the home folder"
            ) from error

    def _load(self) -> dict[str, Token]:
        try:
            listed = json.loads(self._path.read_bytes())["tokens"]
            return {one["id"]: Token(**one) for one in listed}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            what = f"{self._path} cannot be read: {type(error).__name__}"
            raise SettingsError(
                what, remedy="restore the file, or remove it and create new tokens"
            ) from error


def create(call: Call) -> Answer:
    """Create a token and show it, this once."""
    given, settings = call.arguments, load({})
    name = str(given["name"])
    if len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInput(
            f"the name is {shown(name)}", expected=f"a line of at most {_MAX_NAME} characters"
        )
    now, secret = time.time(), secrets.token_urlsafe(32)
    token = Token(
        id=secrets.token_hex(4),
        name=name,
        sha256=hash_of(secret),
        user_id=_named("user_id", given.get("user")) or settings.options.user_id,
        agent_id=_named("agent_id", given.get("agent")),
        project=_named("project", given.get("project")),
        read_only=bool(given.get("read_only")),
        created_at=iso(int(now * 1000)),
        expires_at=iso(int((now + float(str(given["expires"]))) * 1000)),
    )
    TokenFile(settings.home).add(token)
    text = token_text(token.id, secret)
    line = f"{NAME} Created token {token.id} for {_scope(token)}, until {token.expires_at[:10]}"
    return Answer(
        text=f"{line}\n{text}\nIt is not shown again.", data={**_data(token), "token": text}
    )


def listed(call: Call) -> Answer:
    """List the tokens, without their secrets."""
    tokens, now = list(TokenFile(load({}).home).tokens().values()), iso(time.time_ns() // 1_000_000)
    columns = ("id", "name", "for", "state", "created", "expires")
    rows = [
        (
            one.id,
            one_line(one.name),
            _scope(one),
            one.state(now),
            one.created_at[:10],
            one.expires_at[:10],
        )
        for one in tokens
    ]
    title = counted(len(rows), "token")
    return Answer(
        text="\n".join([f"{NAME} {title}", *([aligned([columns, *rows])] if rows else [])]),
        data=items([{**_data(one), "state": one.state(now)} for one in tokens]),
        draw=lambda: table(title, columns, rows),
    )


def revoke(call: Call) -> Answer:
    """End a token."""
    token = TokenFile(load({}).home).revoke(
        str(call.arguments["id"]), iso(time.time_ns() // 1_000_000)
    )
    return Answer(
        text=f"{NAME} Revoked token {token.id} ({one_line(token.name)})", data=_data(token)
    )


def _named(option: str, value: object) -> str | None:
    return None if value is None else str(validate(option, value))


def _data(token: Token) -> dict[str, object]:
    return {name: value for name, value in asdict(token).items() if name != "sha256"}


def _scope(token: Token) -> str:
    parts = [f"user {token.user_id or '-'}"]
    parts += [
        f"{name} {value}"
        for name, value in (("agent", token.agent_id), ("project", token.project))
        if value
    ]
    return one_line(", ".join(parts) + (", read-only" if token.read_only else ""))
