"""Vectors from elsewhere: any server with `/embeddings`. What comes back is checked before it is believed."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, sqrt
from threading import Lock

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import AnswerUnreadable, BudgetSpent, CallError, CallRefused, EmbeddingError
from memory_mesh.core.model.columns import Json
from memory_mesh.core.model.rows import Vector
from memory_mesh.models.answers import whole_characters
from memory_mesh.models.calls import Post, careful

BATCH = 64
_BATCH_BYTES = 256 * 1024
_BYTES_PER_TOKEN = 3  # as `careful` counts
_TOO_LONG = (400, 413, 422)  # how servers refuse a text that does not fit, among much else
_CUTS = 3


class RemoteEmbedder:
    """Texts into vectors of length 1, by a model of another machine or process.

    **model** is its name at the server, **name** the name that vectors carry: `provider/model`. Where no **dimension** is given,
    the first answer says it, and all others have to agree.
    """

    def __init__(
        self, door: Post, *, model: str, name: str, window: int, dimension: int | None = None, batch: int = BATCH
    ) -> None:
        self._door, self._model, self._name, self._window, self._batch = door, model, name, window, batch
        self._dimension = dimension
        self._lock = Lock()

    @property
    def model(self) -> str:
        return self._name

    @property
    def window(self) -> int:
        return self._window

    def count(self, text: str) -> int:
        """Rather too many than too few, so that a passage that is cut by it fits in every script."""
        return careful(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        try:
            return [vector for batch in self._batches(texts) for vector in self._vectors(batch, cuts=_CUTS)]
        except (CallError, BudgetSpent, AnswerUnreadable) as error:
            raise EmbeddingError(f"{self._name} made no vectors: {error.what}", remedy=error.remedy) from error

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            fitted = _start(whole_characters(text), self._window * _BYTES_PER_TOKEN)
            length = len(fitted.encode())
            if batch and (len(batch) == self._batch or size + length > _BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(fitted)
            size += length
        if batch:
            yield batch

    def _vectors(self, batch: list[str], *, cuts: int) -> list[Vector]:
        check_cancelled()
        # Some servers refuse a text without a character.
        body: dict[str, Json] = {"model": self._model, "input": [text or " " for text in batch], "encoding_format": "float"}
        try:
            answer = self._door.post("/embeddings", body)
        except CallRefused as refused:
            if refused.status not in _TOO_LONG:
                raise
            return self._smaller(batch, refused, cuts=cuts)
        return [self._vector(values) for values in self._ordered(answer, len(batch))]

    def _smaller(self, batch: list[str], refused: CallRefused, *, cuts: int) -> list[Vector]:
        """One text that the server does not take must not keep the others from their vectors: ask for less at a time."""
        if len(batch) > 1:
            half = len(batch) // 2
            return self._vectors(batch[:half], cuts=cuts) + self._vectors(batch[half:], cuts=cuts)
        if not cuts or len(batch[0]) < 2:
            raise refused
        return self._vectors([batch[0][: len(batch[0]) // 2]], cuts=cuts - 1)

    def _ordered(self, answer: Mapping[str, Json], wanted: int) -> list[Json]:
        data = answer.get("data")
        items = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
        found = {place: item.get("embedding") for at, item in enumerate(items) if type(place := item.get("index", at)) is int}
        if len(items) != wanted or found.keys() != set(range(wanted)):
            raise self._broken(f"there are {len(found)} vectors for {wanted} texts")
        return [found[at] for at in range(wanted)]

    def _vector(self, values: Json) -> Vector:
        numbers = _numbers(values)
        if numbers is None:
            raise self._broken("a vector holds something else than numbers")
        with self._lock:
            self._dimension = self._dimension or len(numbers)
        if len(numbers) != self._dimension:
            raise self._broken(f"a vector has {len(numbers)} dimensions", expected=f"{self._dimension}")
        length = sqrt(sum(number * number for number in numbers))
        if not length or not isfinite(length):
            raise self._broken("a vector has no direction")
        return Vector.of(self._name, [number / length for number in numbers])

    def _broken(self, why: str, expected: str = "") -> EmbeddingError:
        remedy = "check that the model of the settings is an embedding model, and that the server runs that one"
        return EmbeddingError(f"the answer of {self._name} cannot be used: {why}", expected=expected, remedy=remedy)


def _numbers(values: Json) -> list[float] | None:
    if not isinstance(values, list) or not values:
        return None
    try:
        numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    except OverflowError:  # a whole number of hundreds of digits
        return None
    return numbers if len(numbers) == len(values) and all(map(isfinite, numbers)) else None


def _start(text: str, most: int) -> str:
    """As much of a text as fits: some servers refuse what does not, and others read only the start of it."""
    return text if len(text) * 4 <= most else text.encode()[:most].decode(errors="ignore")
