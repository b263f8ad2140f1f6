"""The deep ranker's model: the shipped change, the graph that is built with it, and what happens
if one of them is wrong."""

import logging
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from memory_mesh.core.errors import EmbeddingError
from memory_mesh.core.ports import no_progress
from memory_mesh.models import ModelFiles, ModelPaths, deep_ranker, onnx_graph
from memory_mesh.models.deep_ranker import MEMORY, LocalDeepRanker, PairEngine
from memory_mesh.models.onnx_graph import DELTA, DELTA_HASH
from models.test_onnx_graph import WIDTH, random_weights, safetensors

IDS, SEGMENTS = [101, 7, 8, 102, 9, 10, 102], [0, 0, 0, 0, 1, 1, 1]
DENSE = "encoder.layer.3.attention.output.dense"


def head() -> dict[str, np.ndarray]:
    chance = np.random.default_rng(3)
    return {
        "head.weight": chance.normal(0, 0.1, 2 * WIDTH).astype(np.float16),
        "head.bias": np.zeros(1, np.float16),
    }


def logit(
    model: ModelFiles,
    weights: dict[str, np.ndarray],
    delta: Mapping[str, np.ndarray],
    segments: list[int],
) -> float:
    graph = onnx_graph.build_reader(safetensors(weights), delta, quantized=False)
    found = PairEngine(graph, model.tokenizer).call(
        ids=np.array([IDS]), segments=np.array([segments])
    )
    return float(found[0][0, 0])


@pytest.mark.deep
def test_the_graph_adds_the_change_to_the_weights_and_tells_the_segments_apart(
    model: ModelFiles,
) -> None:
    weights, chance = random_weights(), np.random.default_rng(5)
    up, down = (
        chance.normal(0, 0.2, shape).astype(np.float16) for shape in ((WIDTH, 8), (8, WIDTH))
    )
    changed = {
        **weights,
        f"{DENSE}.weight": weights[f"{DENSE}.weight"]
        + up.astype(np.float32) @ down.astype(np.float32),
    }
    by_change = logit(
        model, weights, {**head(), f"{DENSE}.up": up, f"{DENSE}.down": down}, SEGMENTS
    )
    assert by_change == pytest.approx(logit(model, changed, head(), SEGMENTS), abs=1e-3)
    assert by_change != pytest.approx(logit(model, weights, head(), SEGMENTS), abs=1e-2)
    assert by_change != pytest.approx(logit(model, changed, head(), [0] * len(SEGMENTS)), abs=1e-3)


def test_the_shipped_change_is_small_and_has_the_known_hash() -> None:
    data = DELTA.read_bytes()
    assert sha256(data).hexdigest() == DELTA_HASH
    assert len(data) < 1_000_000
    with np.load(DELTA) as change:
        assert {str(value.dtype) for value in change.values()} == {"float16"}
        assert change["head.weight"].shape == (2 * WIDTH,)


@pytest.mark.parametrize("wrong", ["missing", "damaged", "of another model"])
def test_a_wrong_change_is_refused_with_one_line_and_nothing_is_read(
    wrong: str,
    empty: ModelPaths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "reader.npz"
    if wrong == "damaged":
        file.write_bytes(DELTA.read_bytes()[:-1])
    elif wrong != "missing":
        np.savez(file, **head())
    monkeypatch.setattr(onnx_graph, "DELTA", file)
    with pytest.raises(EmbeddingError, match="not the known file"):
        onnx_graph.make_graph(b"weights", no_progress)
    monkeypatch.setattr(deep_ranker, "find_package", lambda _: tmp_path)
    monkeypatch.setattr(deep_ranker, "read_file", lambda *_: b"weights")
    ranker = LocalDeepRanker(empty)
    with caplog.at_level(logging.WARNING):
        assert [ranker.read("query", [("text", "")], seconds=1) for _ in range(2)] == [[], []]
    assert [
        record.message.startswith("the deep ranker is not used") for record in caplog.records
    ] == [True]
    assert not ranker.is_loaded


class FakeEngine:
    """Counts the pairs that it reads."""

    def first(self, text: str, count: int) -> list[int]:
        return [len(text), count]

    def logit(self, query: list[int], memory: str, previous: str) -> float:
        return float(len(memory))


@pytest.mark.parametrize(("seconds", "expected"), [(60.0, [1.0, 2.0, 3.0]), (0.0, [])])
@pytest.mark.parametrize("workers", [1, 2])
def test_it_reads_in_order_until_the_time_is_over(
    empty: ModelPaths,
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    expected: list[float],
    workers: int,
) -> None:
    ranker = LocalDeepRanker(empty, workers=workers)
    monkeypatch.setattr(ranker, "_load", FakeEngine)
    assert ranker.read("query", [("a", ""), ("ab", ""), ("abc", "")], seconds=seconds) == expected


def test_of_a_long_text_only_the_part_that_is_read_becomes_tokens(
    model: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PairEngine(model.graph, model.tokenizer)
    split: list[int] = []
    tokens = engine.tokens
    monkeypatch.setattr(engine, "tokens", lambda text: split.append(len(text)) or tokens(text))
    text = "first " + "word " * 20_000 + "last"
    assert tokens("first word")[:2] == engine.first(text, MEMORY)[:2]
    assert tokens("word last") == engine.last(text, MEMORY)[-2:]
    assert (len(engine.first(text, MEMORY)), len(engine.last(text, MEMORY))) == (MEMORY, MEMORY)
    assert max(split) < 5000
