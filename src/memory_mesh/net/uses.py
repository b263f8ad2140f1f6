"""Uses of the guarded client: webhooks, anchors sent to a URL, a session for other libraries."""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256

import httpx

from memory_mesh.core.errors import CallError, InvalidInput, Unreachable, UnsafeAddress
from memory_mesh.core.language.safety.addresses import parse_url
from memory_mesh.core.model import Json
from memory_mesh.core.ports import Secret
from memory_mesh.core.upkeep.hooks import HookEvent
from memory_mesh.net.client import HttpClient, Response

# --- webhooks ---

# What follows are words of the server, which may quote the memory.
_ANSWERED = re.compile(r"( answered \d{3}): .*", re.DOTALL)


class Webhook:
    """Posts each event as a JSON object; implements `core.ports.Hook`. Any answer of 200 to 299
    is a success."""

    folder = None

    def __init__(self, client: HttpClient, name: str) -> None:
        self._client, self.name = client, name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def deliver(self, event: HookEvent) -> None:
        try:
            self._client.send(event.as_dict())
        except CallError as error:
            what = _ANSWERED.sub(r"\1", error.what).replace(self._client.address, self.name)
            raise CallError(what, remedy=error.remedy) from None


def webhook_writethrough(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    allow_local: bool = False,
) -> Webhook:
    """Return a hook that posts each event to a URL, as `{"id": …, "event": …, "at": …, "memory":
    {…}}`.

    Addresses of this machine and of private networks are refused without `allow_local`. No redirect
    is followed. `headers` may contain a key. `timeout` is in seconds. Raises `SettingsError` for a
    URL that is refused.
    """
    secret = {name: Secret(value) for name, value in (headers or {}).items()}
    # The queue repeats what fails, in order.
    client = HttpClient(url, allow_local=allow_local, headers=secret, timeout=timeout, attempts=1)
    # The path may be a secret, so the name has its hash only.
    return Webhook(client, f"webhook {parse_url(url).host} {sha256(url.encode()).hexdigest()[:8]}")


# --- anchors ---

_SECONDS = 30.0


class AnchorUrl:
    """Posts anchors to a URL; implements `core.ports.AnchorLog`. The server answers with a JSON
    object."""

    def __init__(self, url: str, *, allow_local: bool = False) -> None:
        self._client = HttpClient(url, allow_local=allow_local, timeout=_SECONDS)

    def write(self, record: Mapping[str, Json]) -> None:
        try:
            self._client.post("", record)
        finally:
            self._client.close()

    def lines(self) -> Iterator[str]:
        raise InvalidInput(
            f"anchors cannot be read from {self._client.address}", expected="the path of a file"
        )


# --- a session of httpx ---
# For client libraries: our HTTP client sends the requests, checks every address and adds the key.

_BUSY = 429
_MAX_BYTES = 256 * 1024 * 1024


def guarded_session(client: HttpClient) -> httpx.Client:
    """Return a session that posts through the client. It follows no redirects and ignores the
    proxies of the environment."""
    return httpx.Client(
        transport=GuardedTransport(client), base_url=client.address, trust_env=False
    )


class Failed(Exception):
    """A request that may succeed when it is repeated: the error to raise otherwise, and when to try
    again, in seconds.

    `is_done` is None if the server may have done what was asked for.
    """

    def __init__(
        self, error: CallError, *, is_done: bool | None, after: float | None = None
    ) -> None:
        super().__init__(str(error))
        self.error, self.is_done, self.after = error, is_done, after


class GuardedTransport(httpx.BaseTransport):
    """Sends each request once. The headers are those of the client: the key is not part of the
    request."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix(httpx.URL(self._client.address).path)
        try:
            response = self._client.exchange(path, request.read(), max_bytes=_MAX_BYTES)
        except UnsafeAddress:
            raise
        except CallError as error:
            raise Failed(error, is_done=False if isinstance(error, Unreachable) else None) from None
        if response.status == _BUSY or response.status >= 500:
            raise self._failed(response)
        return httpx.Response(
            response.status, headers={"content-type": "application/json"}, content=response.body
        )

    def _failed(self, response: Response) -> Failed:
        what = f"{self._client.address} answered {response.status}"
        after = self._client.retry_after(response)
        return Failed(
            CallError(what, remedy="try again later"),
            is_done=False if response.status == _BUSY else None,
            after=after,
        )

    def close(self) -> None:
        self._client.close()
