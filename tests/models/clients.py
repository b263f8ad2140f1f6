"""A fake of the HTTP client, with fixed answers."""

from collections.abc import Mapping

from memory_mesh.core.errors import CallRefused
from memory_mesh.core.model import Json

Scripted = Mapping[str, Json] | BaseException


class StubClient:
    """Returns or raises the answers in order, the last one repeatedly, and records the requests."""

    def __init__(self, *answers: Scripted) -> None:
        self._answers = answers
        self.requests: list[tuple[str, dict[str, Json]]] = []

    @property
    def bodies(self) -> list[dict[str, Json]]:
        return [body for _, body in self.requests]

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append((path, dict(body)))
        if isinstance(answer, BaseException):
            raise answer
        return answer


def refusal(status: int, said: Json) -> CallRefused:
    """A refusal as the HTTP client raises it."""
    return CallRefused("it will not", status=status, body=said)
