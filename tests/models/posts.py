"""A door that is none: it answers as it is told, and remembers what it was asked."""

from collections.abc import Mapping

from memory_mesh.core.errors import CallRefused
from memory_mesh.core.model.columns import Json

Said = Mapping[str, Json] | BaseException


class StubPost:
    """Gives the answers in order; the last one is repeated."""

    def __init__(self, *answers: Said) -> None:
        self._answers = answers
        self.asked: list[tuple[str, dict[str, Json]]] = []

    @property
    def bodies(self) -> list[dict[str, Json]]:
        return [body for _, body in self.asked]

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        answer = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append((path, dict(body)))
        if isinstance(answer, BaseException):
            raise answer
        return answer


def refusal(status: int, said: Json) -> CallRefused:
    """A refusal as the door raises it."""
    return CallRefused("it will not", status=status, said=said)
