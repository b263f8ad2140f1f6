"""Anchors sent to a URL, through the guarded client: no redirects, no private addresses."""

from collections.abc import Iterator, Mapping

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Json
from memory_mesh.net.client import HttpClient

_SECONDS = 30.0


class AnchorUrl:
    """Posts anchors to a URL; implements `core.ports.AnchorLog`. The server answers with a JSON object."""

    def __init__(self, url: str, *, allow_local: bool = False) -> None:
        self._client = HttpClient(url, allow_local=allow_local, timeout=_SECONDS)

    def write(self, record: Mapping[str, Json]) -> None:
        try:
            self._client.post("", record)
        finally:
            self._client.close()

    def lines(self) -> Iterator[str]:
        raise InvalidInput(f"anchors cannot be read from {self._client.address}", expected="the path of a file")
