"""A session of httpx, for client libraries, whose requests our HTTP client sends: it checks every address and adds the key."""

import httpx

from memory_mesh.core.errors import CallError, Unreachable, UnsafeAddress
from memory_mesh.net.client import HttpClient, Response

_BUSY = 429
_MAX_BYTES = 256 * 1024 * 1024


def guarded_session(client: HttpClient) -> httpx.Client:
    """Return a session that posts through the client. It follows no redirects and ignores the proxies of the environment."""
    return httpx.Client(transport=GuardedTransport(client), base_url=client.address, trust_env=False)


class Failed(Exception):
    """A request that may succeed when it is repeated: the error to raise otherwise, and when to try again, in seconds.

    `is_done` is None if the server may have done what was asked for.
    """

    def __init__(self, error: CallError, *, is_done: bool | None, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.is_done, self.after = error, is_done, after


class GuardedTransport(httpx.BaseTransport):
    """Sends each request once. The headers are those of the client: the key is not part of the request."""

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
        return httpx.Response(response.status, headers={"content-type": "application/json"}, content=response.body)

    def _failed(self, response: Response) -> Failed:
        what = f"{self._client.address} answered {response.status}"
        after = self._client.retry_after(response)
        return Failed(CallError(what, remedy="try again later"), is_done=False if response.status == _BUSY else None, after=after)

    def close(self) -> None:
        self._client.close()
