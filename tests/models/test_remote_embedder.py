"""The remote embedder: requests, the order of vectors, and answers that are refused."""

import math
import struct
from collections.abc import Mapping
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    CallTimedOut,
    Cancelled,
    EmbeddingError,
    RateLimited,
    UnsafeAddress,
)
from memory_mesh.core.model import Json, Vector
from memory_mesh.core.model.background import cancellable
from memory_mesh.models import FallbackEmbedder, HashingEmbedder
from memory_mesh.models.providers import PROVIDERS
from memory_mesh.models.remote_embedder import RemoteEmbedder

from .clients import StubClient, refusal

NAME = "openai/some-model"


class Lengths:
    """A server whose vectors contain the length of their text. It returns them in the wrong
    order, as servers may."""

    def __init__(self, longest: int | None = None) -> None:
        self.batches: list[list[str]] = []
        self._longest = longest

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        texts = body["input"]
        assert isinstance(texts, list)
        self.batches.append([str(text) for text in texts])
        if self._longest is not None and max(len(str(text)) for text in texts) > self._longest:
            raise refusal(400, {"error": "the input is too long"})
        items: list[Json] = [
            {"index": at, "embedding": [len(str(text)), 1]} for at, text in enumerate(texts)
        ]
        return {"data": items[::-1]}


def embedder(
    client: object, *, window: int = 1000, dimension: int | None = None, batch: int = 64
) -> RemoteEmbedder:
    return RemoteEmbedder(
        client, model="some-model", name=NAME, window=window, dimension=dimension, batch_size=batch
    )  # type: ignore[arg-type]


def answered(*embeddings: Json) -> dict[str, Json]:
    return {"data": [{"index": at, "embedding": values} for at, values in enumerate(embeddings)]}


def values(vector: Vector) -> tuple[float, ...]:
    return struct.unpack(f"<{vector.dimension}f", vector.data)


def length_of(vector: Vector) -> int:
    first, second = values(vector)
    return round(first / second)


# --- requests ---


def test_texts_are_posted_and_vectors_carry_the_full_name_of_the_model() -> None:
    client = StubClient(answered([3.0, 4.0]))
    made = embedder(client).embed(["tea"])
    assert client.requests == [
        ("/embeddings", {"model": "some-model", "input": ["tea"], "encoding_format": "float"})
    ]
    assert made == [Vector.of(NAME, [0.6, 0.8])]
    assert made[0].model == embedder(client).model == NAME


def test_vectors_are_in_the_order_of_their_texts() -> None:
    assert [length_of(vector) for vector in embedder(Lengths()).embed(["a", "bb", "ccc"])] == [
        1,
        2,
        3,
    ]


def test_many_texts_go_in_batches() -> None:
    client = Lengths()
    made = embedder(client, batch=3).embed(["x" * n for n in range(1, 8)])
    assert [len(batch) for batch in client.batches] == [3, 3, 1]
    assert [length_of(vector) for vector in made] == [1, 2, 3, 4, 5, 6, 7]


def test_long_texts_go_in_smaller_batches() -> None:
    client = Lengths()
    embedder(client, window=100_000).embed(["x" * 100_000] * 5)
    assert [len(batch) for batch in client.batches] == [2, 2, 1]


def test_an_empty_list_sends_no_request() -> None:
    client = Lengths()
    assert embedder(client).embed([]) == []
    assert client.batches == []


@pytest.mark.parametrize("text", ["x" * 50, "ж" * 50, "水" * 50, "🍵" * 50, "aж水🍵" * 20])
def test_a_longer_text_is_cut_to_the_window_between_characters(text: str) -> None:
    client = Lengths()
    remote = embedder(client, window=10)
    remote.embed([text])
    (sent,) = client.batches[0]
    assert text.startswith(sent)
    assert remote.count(sent) <= 10
    assert remote.count(text[: len(sent) + 1]) > 10


def test_empty_texts_and_lone_surrogates_are_replaced() -> None:
    client = Lengths()
    embedder(client).embed(["", "half \ud83c of one"])
    assert client.batches == [[" ", "half ? of one"]]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("hello", 2), ("水が飲みたい", 6), ("\ud800", 1)]
)
def test_three_bytes_count_as_one_token(text: str, tokens: int) -> None:
    assert embedder(Lengths()).count(text) == tokens


def test_one_text_that_is_too_long_does_not_affect_the_others() -> None:
    client = Lengths(longest=10)
    made = embedder(client).embed(["a", "x" * 30, "bb", "ccc"])
    assert [length_of(vector) for vector in made] == [1, 7, 2, 3]  # 30, 15, then 7 characters of it


def test_a_text_that_is_refused_however_short_is_an_error() -> None:
    client = Lengths(longest=0)
    with pytest.raises(EmbeddingError, match="returned no vectors: it will not"):
        embedder(client).embed(["some text"] * 8)
    assert len(client.batches) == 7  # 8, 4, 2, then one alone, cut three times


@pytest.mark.parametrize("status", [401, 403, 404])
def test_any_other_refusal_is_not_repeated(status: int) -> None:
    client = StubClient(refusal(status, "no"))
    with pytest.raises(EmbeddingError):
        embedder(client).embed(["a", "b"])
    assert len(client.requests) == 1


# --- answers that are refused ---

FAULTS: dict[str, dict[str, Json]] = {
    "nothing": {},
    "no list": {"data": {"0": [1.0]}},
    "items of another kind": {"data": [[1.0], [1.0]]},
    "one too few": answered([1.0]),
    "one too many": answered([1.0], [1.0], [1.0]),
    "one place twice": {
        "data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]
    },
    "a place that is none": {
        "data": [{"index": 0, "embedding": [1.0]}, {"index": "1", "embedding": [1.0]}]
    },
    "a place that is a truth value": {
        "data": [{"index": False, "embedding": [1.0]}, {"index": True, "embedding": [1.0]}]
    },
    "no vector": answered([1.0], None),
    "a text": answered([1.0], "AACAPw=="),
    "an empty vector": answered([], []),
    "texts in a vector": answered([1.0], ["1.0"]),
    "truth in a vector": answered([1.0], [True]),
    "not a number": answered([1.0], [math.nan]),
    "no end": answered([1.0], [math.inf]),
    "a number beyond all": answered([1.0], [10**400]),
    "a length beyond all": answered([1.0], [1e200]),
    "no direction": answered([1.0, 0.0], [0.0, 0.0]),
    "two dimensions": answered([1.0], [1.0, 2.0]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_of_another_shape_is_an_embedding_error(fault: str) -> None:
    with pytest.raises(EmbeddingError, match="the answer of openai/some-model cannot be used"):
        embedder(StubClient(FAULTS[fault])).embed(["a", "b"])


def test_vectors_without_an_index_are_in_order() -> None:
    client = StubClient({"data": [{"embedding": [1.0, 0.0]}, {"embedding": [0, 2]}]})
    assert [values(vector) for vector in embedder(client).embed(["a", "b"])] == [
        (1.0, 0.0),
        (0.0, 1.0),
    ]


def test_the_dimension_stays_what_it_was() -> None:
    remote = embedder(StubClient(answered([1.0, 0.0]), answered([1.0, 0.0, 0.0])))
    remote.embed(["a"])
    with pytest.raises(EmbeddingError, match="3 dimensions; expected 2"):
        remote.embed(["a"])


@pytest.mark.req("LANE-32")
def test_the_model_of_lm_studio_has_1024_dimensions_and_no_other_number() -> None:
    preset = PROVIDERS["lmstudio"].embedding
    assert preset
    remote = embedder(
        StubClient(answered([1.0] * 1024), answered([1.0] * 768)), dimension=preset.dimension
    )
    assert remote.embed(["a"])[0].dimension == 1024
    with pytest.raises(EmbeddingError, match="768 dimensions; expected 1024"):
        remote.embed(["a"])


NUMBERS = st.lists(
    st.floats(-1e6, 1e6).filter(lambda number: abs(number) > 1e-6), min_size=3, max_size=3
)


@given(NUMBERS)
def test_every_vector_has_length_one(numbers: list[float]) -> None:
    (vector,) = embedder(StubClient(answered(list(numbers)))).embed(["a"])
    assert math.hypot(*values(vector)) == pytest.approx(1, abs=1e-5)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
    ),
    max_leaves=10,
)
ITEM = (
    st.fixed_dictionaries(
        {}, optional={"index": st.integers(0, 2) | ANY_JSON, "embedding": NUMBERS | ANY_JSON}
    )
    | ANY_JSON
)


@given(st.fixed_dictionaries({}, optional={"data": st.lists(ITEM, max_size=3) | ANY_JSON}))
def test_any_object_is_vectors_or_an_embedding_error(answer: dict[str, Json]) -> None:
    try:
        made = embedder(StubClient(answer)).embed(["a", "b"])
    except EmbeddingError:
        return
    assert [math.isfinite(number) for vector in made for number in values(vector)] == [
        True
    ] * 2 * made[0].dimension


# --- failures ---


@pytest.mark.parametrize(
    "kind", [CallError, UnsafeAddress, CallTimedOut, RateLimited, BudgetSpent, AnswerUnreadable]
)
def test_every_failure_is_an_embedding_error_with_its_cause_and_remedy(
    kind: type[CallError],
) -> None:
    cause = kind("it is gone", remedy="call it back")
    with pytest.raises(
        EmbeddingError, match=f"{NAME} returned no vectors: it is gone; call it back"
    ) as caught:
        embedder(StubClient(cause)).embed(["a"])
    assert caught.value.__cause__ is cause


def test_a_cancellation_is_raised_unchanged() -> None:
    with pytest.raises(Cancelled):
        embedder(StubClient(Cancelled("off"))).embed(["a"])


def test_it_can_be_cancelled_between_two_batches() -> None:
    stop = Event()

    class Stopping(Lengths):
        def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
            stop.set()
            return super().post(path, body)

    client = Stopping()
    with cancellable(stop), pytest.raises(Cancelled):
        embedder(client, batch=1).embed(["a", "b"])
    assert len(client.batches) == 1


@pytest.mark.req("MESH-133")
@pytest.mark.parametrize("name", ["openai", "ollama", "cohere"])
def test_the_fallback_replaces_a_provider_that_fails(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    preset = PROVIDERS[name].embedding
    assert preset
    remote = RemoteEmbedder(
        StubClient(CallError("gone")),
        model=preset.model,
        name=f"{name}/{preset.model}",
        window=preset.window,
    )
    plain = HashingEmbedder(16)
    assert FallbackEmbedder([remote, plain]).embed(["tea"]) == plain.embed(["tea"])
    assert "embedded by the fallback hashing/16" in caplog.text
    with pytest.raises(EmbeddingError):
        FallbackEmbedder([remote, remote]).embed(["tea"])
