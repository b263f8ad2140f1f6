"""Who makes a request, and what it may read and write: tokens, hosts, origins and scope."""

import hmac
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from starlette.datastructures import Headers

from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import AccessDenied, SettingsError, TokenInvalid, shown
from memory_mesh.core.options import Options
from memory_mesh.interfaces.console.sessions import Session
from memory_mesh.interfaces.operation import Extent, Operation
from memory_mesh.interfaces.remote import refusal
from memory_mesh.interfaces.tokens import Token, TokenFile, find_token

# The headers that choose the scope of a request, and the names of its parts.
SCOPE_HEADERS = {
    "Memory-User": "user_id", "Memory-Agent": "agent_id", "Memory-Session": "session_id",
    "Memory-Project": "project",
}  # fmt: skip
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"(\[[^\[\]\s/@,]+\]|[^\[\]\s/@,:?#]+)(?::[0-9]{0,5})?")
_PORTS = {"http": ":80", "https": ":443"}  # what browsers leave out
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a request: the owner of a token, or a program on this machine if there are no
    tokens."""

    name: str  # for logs and limits
    token: Token | None = None

    def extent(self, server: Mesh) -> Extent:
        """Return how far the operations may reach that it calls."""
        token = self.token
        if token is None:
            return Extent.SERVER
        if token.project is not None:
            return Extent.READER
        if token.agent_id is not None:
            return Extent.PROJECTS
        return Extent.SERVER if token.user_id == server.reader.user_id else Extent.USER

    def check(self, operation: Operation, server: Mesh, arguments: Collection[str] = ()) -> None:
        """Raise `AccessDenied` if the caller may not call an operation with these arguments."""
        read_only = self.token is not None and self.token.read_only
        if why := refusal(operation, arguments, read_only=read_only, limit=self.extent(server)):
            raise AccessDenied(
                f"{operation.name} is not allowed: {why}", remedy="use a token with more rights"
            )

    def mesh(self, server: Mesh, headers: Headers) -> Mesh:
        """Return a handle for the scope of a request: that of the token, narrowed by headers."""
        asked: dict[str, Any] = {
            part: _header(headers, name) for name, part in SCOPE_HEADERS.items()
        }
        if self.token is None:
            return server.scoped(**asked)
        fixed = {"agent_id": self.token.agent_id, "project": self.token.project}
        for part, value in {
            "user_id": self.token.user_id,
            **{name: one for name, one in fixed.items() if one},
        }.items():
            if asked[part] not in (None, value):
                raise AccessDenied(
                    f"the token is not for the {part} {shown(asked[part])}",
                    expected="that of the token, or none",
                )
            asked[part] = value
        if asked["user_id"] is None and server.reader.user_id is not None:
            raise AccessDenied(
                "the token is for no user, and the server has one",
                remedy="create a token for the user",
            )
        return server.scoped(**asked, only_project=self.token.project is not None)


def caller_of(
    tokens: TokenFile, headers: Headers, client: str, now: str, *, private: bool = False
) -> Caller:
    """Return who makes a request without a session. Raises `TokenInvalid` if a token is required
    and it has no valid one.

    On a private server a token is required also if there are none.
    """
    if not private and not tokens.is_required():
        return Caller(name=f"local:{client}")
    presented = headers.getlist("authorization")
    token = find_token(tokens.tokens(), presented[0] if len(presented) == 1 else None, now)
    return Caller(name=f"token:{token.id}", token=token)


def caller_in(session: Session, tokens: TokenFile, client: str, now: str) -> Caller:
    """Return the caller that is logged in. Raises `TokenInvalid` if the token of the session is
    not valid any more."""
    if session.owner:
        return Caller(name=f"session:{session.id}")
    if session.token_id is None and not tokens.is_required():
        return Caller(name=f"local:{client}")
    token = tokens.tokens().get(session.token_id or "")
    if token is None or token.state(now) != "valid":
        raise TokenInvalid(
            "the session has ended: its token is not valid any more",
            remedy="log in with another token",
        )
    return Caller(name=f"token:{token.id}", token=token)


def check_csrf(headers: Headers, session: Session) -> None:
    """Raise `AccessDenied` if a request does not repeat the secret of its session: a page of
    another site may have made it."""
    if not hmac.compare_digest(headers.get("x-csrf-token", "").encode(), session.csrf.encode()):
        raise AccessDenied(
            "the header X-CSRF-Token is missing or wrong", remedy="read it from /console/session"
        )


def cookie_name(headers: Headers) -> str:
    """Return the name of the cookie of the console. Browsers send cookies to every port of a
    host, so it names the port."""
    port = headers.get("host", "").rpartition(":")[2]
    return (
        f"memory_mesh_session_{port}"
        if port.isascii() and port.isdecimal()
        else "memory_mesh_session"
    )


def check_origin(headers: Headers, names: frozenset[str], *, without_data: bool = False) -> None:
    """Raise `AccessDenied` for a request to another host name, or from a page of another site.

    Both are ways by which a page in a browser could reach a server on the machine of its reader. A
    link on another site may open a page `without_data`: the other site sees nothing of it.
    """
    hosts, sites = headers.getlist("host"), headers.getlist("sec-fetch-site")
    if len(hosts) != 1 or host_name(hosts[0]) not in names:
        raise AccessDenied(
            "the header Host names another server",
            remedy="add the name to the setting server_names",
        )
    # The browser opens a page in a tab or window: not in a frame, and not as a part of another.
    is_link = (
        headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest", "document") == "document"
    )
    is_own = all(site in ("none", "same-origin") for site in sites) or (without_data and is_link)
    if not is_own or not _is_own_page(
        headers.getlist("origin"), hosts[0], names, is_vouched="same-origin" in sites
    ):
        raise AccessDenied(
            "the request comes from a page of another site", remedy="call the server from a program"
        )


def _is_own_page(origins: list[str], host: str, names: frozenset[str], *, is_vouched: bool) -> bool:
    """Return whether a request comes from no page, or from a page of the server.

    Its name and port are those of the header Host. Behind a proxy they may differ; then the browser
    has to vouch for the page.
    """
    if not origins:
        return True
    scheme, mark, place = origins[0].lower().partition("://")
    if len(origins) > 1 or not mark or scheme not in _PORTS:
        return False
    default = _PORTS[scheme]
    is_same = place.removesuffix(default) == host.strip().lower().removesuffix(default)
    return host_name(place) in names and (is_same or is_vouched)


def host_name(host: str) -> str:
    """Return a host without its port, in lower case; "" if it is not a host."""
    found = _HOST.fullmatch(host.strip().lower())
    return found[1] if found else ""


def server_names(options: Options) -> frozenset[str]:
    """Return the names that the header Host may have."""
    given = options.server_names or []
    listed = [given] if isinstance(given, str) else given
    host = f"[{options.server_host}]" if ":" in options.server_host else options.server_host
    return frozenset({*_LOOPBACK_NAMES, host_name(host), *map(host_name, listed)} - {""})


def check_public(host: str, tokens: Mapping[str, Token]) -> None:
    """Raise `SettingsError` if others could reach the server and there is no token."""
    if not tokens and not _is_loopback(host):
        what = f"the server would listen on {host}, which others can reach, and there is no token"
        raise SettingsError(
            what, remedy="create one with memory-mesh token create, or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_name(value: str) -> bool:
    """Return whether a header may name a part of the scope so."""
    return bool(value.strip()) and len(value) <= _MAX_NAME and value.isprintable()


def _header(headers: Headers, name: str) -> str | None:
    values = headers.getlist(name)
    if len(values) > 1:
        raise AccessDenied(f"the header {name} is given {len(values)} times", expected="one value")
    if not values:
        return None
    try:  # HTTP headers are Latin-1 on the wire; clients send UTF-8
        value = values[0].encode("latin-1").decode("utf-8")
    except UnicodeError:
        value = ""
    if not is_name(value):
        raise AccessDenied(
            f"the header {name} is {shown(values[0])}",
            expected=f"a name of at most {_MAX_NAME} characters",
        )
    return value
