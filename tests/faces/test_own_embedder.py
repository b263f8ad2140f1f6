"""An embedder of the user's own: it may return vectors as lists, tuples or arrays, and a wrong
answer loses no memory."""

from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from memory_mesh.models import CachedEmbedder, FallbackEmbedder
from memory_mesh.testing.fakes import DownEmbedder

from .house import House

Rows = list[list[float]]


class Letters:
    """A small real embedder: it counts some letters, and returns the counts in the form that it
    is given."""

    model, window = "letters", 256

    def __init__(
        self, form: Callable[[Rows], Iterable[Iterable[float]]], model: str = "letters"
    ) -> None:
        self._form, self.model = form, model

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> Iterable[Iterable[float]]:
        return self._form(
            [[1.0, *(float(text.count(letter)) for letter in "aeiout")] for text in texts]
        )


FORMS: dict[str, Callable[[Rows], Iterable[Iterable[float]]]] = {
    "lists": lambda rows: rows,
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "whole numbers": lambda rows: [[int(number) for number in row] for row in rows],
    "an array of 32 bits": lambda rows: np.array(rows, dtype=np.float32),
    "an array of 64 bits": lambda rows: np.array(rows, dtype=np.float64),
    "an array of 16 bits": lambda rows: np.array(rows, dtype=np.float16),
    "a list of arrays": lambda rows: [np.array(row) for row in rows],
    "arrays of the standard library": lambda rows: [array("d", row) for row in rows],
    "a generator": lambda rows: (row for row in rows),
}
WRONG: dict[str, Callable[[Rows], Iterable[Iterable[float]]]] = {
    "one flat list": lambda rows: rows[0],  # type: ignore[return-value]
    "one vector too few": lambda rows: rows[1:],
    "numbers that are not finite": lambda rows: [[float("nan"), *row[1:]] for row in rows],
    "numbers too large for 32 bits": lambda rows: np.array(rows) * 1e300,
    "empty lists": lambda rows: [[] for _ in rows],
    "texts": lambda rows: ["123" for _ in rows],  # type: ignore[misc]
    "bytes": lambda rows: [b"12345678" for _ in rows],
    "three dimensions": lambda rows: np.array([[row] for row in rows]),
    "none": lambda rows: [None for _ in rows],  # type: ignore[misc]
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_vectors_may_be_lists_tuples_or_arrays(
    house: House, form: Callable[[Rows], Iterable[Iterable[float]]]
) -> None:
    mesh = house.mesh(embedder=Letters(form))
    memory = mesh.add("aaa aaa aaa")
    mesh.add("uuu tttt uuu")
    vector = house.memory(memory.id).vector
    assert vector
    assert (vector.model, list(array("f", vector.data))) == ("letters", [1, 9, 0, 0, 0, 0, 0])
    assert mesh.search("aa aa")[0].content == "aaa aaa aaa"


@pytest.mark.parametrize("form", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_named_in_one_line_and_the_memory_is_kept(
    house: House,
    form: Callable[[Rows], Iterable[Iterable[float]]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    mesh = house.mesh(embedder=Letters(form))
    memory = mesh.add("aaa aaa aaa")
    assert house.memory(memory.id).vector is None
    assert [one.content for one in mesh.search("aaa")] == ["aaa aaa aaa"]
    (line,) = [one.getMessage() for one in caplog.records if "letters returned" in one.getMessage()]
    assert (
        "expected for each text a Vector, or a list or an array of finite numbers, all of "
        "one length"
    ) in line
    assert "\n" not in line


def test_vectors_of_two_lengths_in_one_answer_are_refused(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = house.mesh(embedder=Letters(lambda rows: [row[: 3 + at] for at, row in enumerate(rows)]))
    memories = mesh.add_many(["aaa", "ooo"])
    assert [house.memory(one.id).vector for one in memories] == [None, None]
    assert "letters returned 2 vectors for 2 texts, 1 invalid" in caplog.text


def test_lists_of_a_fallback_have_the_name_of_its_own_model() -> None:
    other = FallbackEmbedder([DownEmbedder("first"), Letters(FORMS["lists"], "second")])
    assert {vector.model for vector in other.embed(["aaa", "ooo"])} == {"second"}
    assert CachedEmbedder(Letters(FORMS["tuples"])).embed(["aaa"])[0].dimension == 7
