"""`webhook_writethrough`: a hook that posts events to a URL, through the guarded client."""

import re
from collections.abc import Mapping
from hashlib import sha256

from memory_mesh.core.errors import CallError
from memory_mesh.core.hooks import HookEvent
from memory_mesh.core.ports import Secret
from memory_mesh.core.safety.addresses import parse_url
from memory_mesh.net.client import HttpClient

_ANSWERED = re.compile(r"( answered \d{3}): .*", re.DOTALL)  # what follows are words of the server, which may quote the memory


class Webhook:
    """Posts each event as a JSON object; implements `core.ports.Hook`. Any answer of 200 to 299 is a success."""

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
    url: str, *, headers: Mapping[str, str] | None = None, timeout: float = 10.0, allow_local: bool = False
) -> Webhook:
    """Return a hook that posts each event to a URL, as `{"id": …, "event": …, "at": …, "memory": {…}}`.

    Addresses of this machine and of private networks are refused without `allow_local`. No redirect is followed. `headers` may
    contain a key. `timeout` is in seconds. Raises `SettingsError` for a URL that is refused.
    """
    secret = {name: Secret(value) for name, value in (headers or {}).items()}
    # The queue repeats what fails, in order.
    client = HttpClient(url, allow_local=allow_local, headers=secret, timeout=timeout, attempts=1)
    # The path may be a secret, so the name has its hash only.
    return Webhook(client, f"webhook {parse_url(url).host} {sha256(url.encode()).hexdigest()[:8]}")
