"""The cache and the fallback of embedders."""

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from memory_mesh.core.errors import EmbeddingError, SettingsError
from memory_mesh.core.model import TOKEN_BYTES
from memory_mesh.models import CachedEmbedder, FallbackEmbedder, HashingEmbedder
from memory_mesh.models.remote_embedder import LmStudioEmbedder
from memory_mesh.models.wrappers import SameModelEmbedder
from memory_mesh.testing import DownEmbedder, RecordingEmbedder

PLAIN = HashingEmbedder(16)


@pytest.fixture
def inner() -> RecordingEmbedder:
    return RecordingEmbedder(PLAIN)


# --- the cache ---


@pytest.mark.req("MESH-136")
def test_a_cached_text_is_not_embedded_again(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    first = cached.embed(["tea", "key"])
    assert cached.embed(["key", "tea"]) == first[::-1] == PLAIN.embed(["key", "tea"])
    assert inner.batches == [["tea", "key"]]


def test_only_missing_texts_are_embedded_each_once(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    cached.embed(["tea"])
    assert cached.embed(["key", "tea", "key", "heron"]) == PLAIN.embed(
        ["key", "tea", "key", "heron"]
    )
    assert inner.batches == [["tea"], ["key", "heron"]]
    assert cached.embed([]) == []
    assert len(inner.batches) == 2


@pytest.mark.req("MESH-136")
def test_a_thousand_texts_are_cached_and_the_least_recently_used_goes_first(
    inner: RecordingEmbedder,
) -> None:
    cached = CachedEmbedder(inner)
    texts = [f"text {n}" for n in range(1000)]
    cached.embed(texts)
    cached.embed([texts[0]])  # used again: now the second is the oldest
    cached.embed(["one more"])
    inner.batches.clear()
    cached.embed([texts[0], *texts[2:], "one more"])
    assert inner.batches == []
    cached.embed([texts[1]])
    assert inner.batches == [[texts[1]]]


def test_a_batch_larger_than_the_cache_is_answered_whole(inner: RecordingEmbedder) -> None:
    texts = [f"text {n}" for n in range(10)]
    assert CachedEmbedder(inner, size=3).embed(texts) == PLAIN.embed(texts)


@pytest.mark.req("MESH-136")
def test_each_cached_embedder_has_its_own_cache(inner: RecordingEmbedder) -> None:
    CachedEmbedder(inner).embed(["tea"])
    CachedEmbedder(inner).embed(["tea"])
    assert inner.batches == [["tea"], ["tea"]]


def test_a_failure_is_not_cached() -> None:
    class Once(RecordingEmbedder):
        def embed(self, texts):
            if not self.batches:
                self.batches.append(list(texts))
                raise EmbeddingError("not yet")
            return super().embed(texts)

    cached = CachedEmbedder(Once(PLAIN))
    with pytest.raises(EmbeddingError):
        cached.embed(["tea"])
    assert cached.embed(["tea"]) == PLAIN.embed(["tea"])


def test_many_threads_share_a_cache(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner, size=5)
    texts = [f"text {n}" for n in range(12)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: cached.embed(texts[n % 5 : n % 5 + 7]), range(200)))
    assert all(vectors == PLAIN.embed(texts[n % 5 : n % 5 + 7]) for n, vectors in enumerate(made))


def test_a_cache_has_the_name_window_and_count_of_its_embedder(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    assert (cached.model, cached.window, cached.count("hello world")) == (
        PLAIN.model,
        PLAIN.window,
        3,
    )


# --- the fallback ---


@pytest.mark.req("MESH-133")
def test_the_first_embedder_that_works_is_used_alone(
    inner: RecordingEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    other = RecordingEmbedder(HashingEmbedder(8))
    with caplog.at_level(logging.WARNING, "memory_mesh"):
        assert FallbackEmbedder([inner, other]).embed(["tea"]) == PLAIN.embed(["tea"])
    assert (inner.texts, other.texts) == (["tea"], [])
    assert caplog.records == []


@pytest.mark.req("MESH-133")
def test_use_of_a_fallback_logs_one_warning(
    inner: RecordingEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    third = RecordingEmbedder(HashingEmbedder(8))
    tried = FallbackEmbedder([DownEmbedder("one"), DownEmbedder("two"), inner, third])
    with caplog.at_level(logging.WARNING, "memory_mesh"):
        vectors = tried.embed(["tea", "key"])
    assert vectors == PLAIN.embed(["tea", "key"])
    assert third.texts == []
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("memory_mesh", "WARNING")
    assert all(part in record.getMessage() for part in ("one", "two", PLAIN.model))


@pytest.mark.req("MESH-133")
def test_when_all_fail_the_error_names_each_reason() -> None:
    tried = FallbackEmbedder([DownEmbedder("one"), DownEmbedder("two")])
    with pytest.raises(EmbeddingError, match=r"one .*; two ") as failed:
        tried.embed(["tea"])
    assert isinstance(failed.value.__cause__, EmbeddingError)


def test_a_reason_contains_no_secret() -> None:
    key = "sk-" + "a1B2c3D4" * 4

    class Leaky(DownEmbedder):
        def embed(self, texts):
            raise EmbeddingError(f"key {key} was refused")

    with pytest.raises(EmbeddingError, match="was refused") as failed:
        FallbackEmbedder([Leaky(), DownEmbedder()]).embed(["tea"])
    assert key not in str(failed.value)


def test_a_fallback_has_the_name_of_its_first_but_vectors_keep_their_own() -> None:
    tried = FallbackEmbedder([DownEmbedder("one", window=7), PLAIN])
    assert (tried.model, tried.window, tried.count("hello world")) == ("one", 7, 3)
    assert tried.embed(["tea"])[0].model == PLAIN.model


def test_every_wrapper_keeps_the_tokens_of_a_vector() -> None:
    class Tokens(HashingEmbedder):
        def embed(self, texts):
            return [replace(one, tokens=bytes(TOKEN_BYTES)) for one in super().embed(texts)]

    inner = Tokens(16)
    for wrapped in (
        CachedEmbedder(inner),
        FallbackEmbedder([DownEmbedder(), inner]),
        LmStudioEmbedder(inner),
        SameModelEmbedder(inner, "another"),
    ):
        for _ in range(2):  # the second one of the cache
            assert wrapped.embed(["tea"])[0].tokens == bytes(TOKEN_BYTES)


def test_other_errors_are_not_swallowed() -> None:
    class Broken(DownEmbedder):
        def embed(self, texts):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        FallbackEmbedder([Broken(), PLAIN]).embed(["tea"])


def test_an_empty_fallback_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="list of embedders is empty"):
        FallbackEmbedder([])
