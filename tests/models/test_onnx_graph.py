"""The ONNX graph: the same weights build the same bytes, and its results match the formulas."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from memory_mesh.models import ModelFiles, onnx_graph
from memory_mesh.models.local import Engine
from memory_mesh.models.model_files import TOKENIZER, WEIGHTS
from models.programs import make_the_model

WIDTH, INNER, VOCABULARY = 384, 1536, 200


def random_weights() -> dict[str, np.ndarray]:
    """Weights of the model's shape, but for a small vocabulary, that mean nothing."""
    chance = np.random.default_rng(7)
    made = {
        "embeddings.word_embeddings.weight": chance.normal(0, 0.05, (VOCABULARY, WIDTH)),
        "embeddings.position_embeddings.weight": chance.normal(0, 0.02, (512, WIDTH)),
        "embeddings.token_type_embeddings.weight": chance.normal(0, 0.02, (2, WIDTH)),
        **norm("embeddings.LayerNorm"),
    }
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        parts = (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        )
        shapes = {
            **dict.fromkeys(parts, (WIDTH, WIDTH)),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for part, shape in shapes.items():
            made[f"{name}.{part}.weight"] = chance.normal(0, 0.05, shape)
            made[f"{name}.{part}.bias"] = chance.normal(0, 0.05, shape[0])
        made |= norm(f"{name}.attention.output.LayerNorm") | norm(f"{name}.output.LayerNorm")
    return {name: value.astype(np.float32) for name, value in made.items()}


def norm(name: str) -> dict[str, np.ndarray]:
    return {f"{name}.weight": np.ones(WIDTH), f"{name}.bias": np.zeros(WIDTH)}


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("weights") / WEIGHTS
    file.write_bytes(safetensors(random_weights()))
    return file


def safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    header, numbers = {"__metadata__": {"format": "pt"}}, []
    for name, values in tensors.items():
        start = sum(map(len, numbers))
        header[name] = {
            "dtype": "F32",
            "shape": values.shape,
            "data_offsets": [start, start + values.nbytes],
        }
        numbers.append(values.tobytes())
    encoded = json.dumps(header).encode()
    return b"".join([len(encoded).to_bytes(8, "little"), encoded, *numbers])


@pytest.mark.deep
def test_the_graph_computes_what_the_formulas_say(weights_file: Path, model: ModelFiles) -> None:
    given = random_weights()
    engine = Engine(onnx_graph.build(weights_file.read_bytes(), quantized=False), model.tokenizer)
    for tokens in ([], [7], [5, 6, 7, 8], list(range(3, 40))):
        ids = [101, *tokens, 102]
        found = np.frombuffer(engine.run(tokens)[0], "<f4")
        assert np.abs(found - by_hand(given, ids)).max() < 1e-5


def test_a_change_may_add_a_vector_and_a_weight_for_each_token(
    weights_file: Path, model: ModelFiles
) -> None:
    """Of every token but those around the text, in 8 bits."""
    rng = np.random.default_rng(3)
    change = {
        "tokens.weight": rng.normal(size=(48, 384)).astype(np.float32),
        "weights.weight": np.zeros(384, np.float32),
        "weights.bias": np.ones(1, np.float32),
    }
    plain, with_tokens = (
        Engine(onnx_graph.build(weights_file.read_bytes(), change=each), model.tokenizer)
        for each in ({}, change)
    )
    ids = [5, 6, 7, 8]
    vector, tokens = with_tokens.run(ids)
    assert plain.run(ids) == (vector, b"")
    rows = np.frombuffer(tokens, np.int8).reshape(len(ids), 49)
    assert np.linalg.norm(rows[:, :48].astype(float), axis=1) == pytest.approx(127, rel=0.01)
    # softplus(1) is 1.31, and 16 stands for 1.
    assert [row & 0x7F for row in rows[:, 48].tolist()] == [21] * len(ids)
    assert with_tokens.run([]) == (plain.run([])[0], b"")


@pytest.mark.deep
def test_eight_bits_stay_near_the_formulas(weights_file: Path, model: ModelFiles) -> None:
    given = random_weights()
    engine = Engine(onnx_graph.build(weights_file.read_bytes()), model.tokenizer)
    for tokens in ([7], [5, 6, 7, 8], list(range(3, 40))):
        found = np.frombuffer(engine.run(tokens)[0], "<f4")
        assert float(found @ by_hand(given, [101, *tokens, 102])) > 0.99


@pytest.mark.deep
def test_a_learnt_change_is_added_to_the_weights(model: ModelFiles) -> None:
    weights, chance = random_weights(), np.random.default_rng(5)
    name, tokens = "encoder.layer.3.attention.output.dense", [5, 6, 7, 8]
    up, down = (
        chance.normal(0, 0.2, shape).astype(np.float16) for shape in ((WIDTH, 8), (8, WIDTH))
    )
    product = up.astype(np.float32) @ down.astype(np.float32)
    changed = {**weights, f"{name}.weight": weights[f"{name}.weight"] + product}
    change = {f"{name}.up": up, f"{name}.down": down}
    graph = onnx_graph.build(safetensors(weights), change=change, quantized=False)
    found = np.frombuffer(Engine(graph, model.tokenizer).run(tokens)[0], "<f4")
    with_change, without = (by_hand(some, [101, *tokens, 102]) for some in (changed, weights))
    assert np.abs(found - with_change).max() < 1e-5
    assert np.abs(found - without).max() > 1e-3


def test_the_same_weights_make_the_same_bytes(weights_file: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    first = onnx_graph.build(weights_file.read_bytes(), lambda *step: steps.append(step))
    assert onnx_graph.build(weights_file.read_bytes()) == first
    assert steps == [("building the model", layer, 6) for layer in range(1, 7)]


@pytest.mark.deep
def test_processes_that_make_the_model_at_once_do_no_harm(
    weights_file: Path, model: ModelFiles, tmp_path: Path
) -> None:
    (weights_file.parent / TOKENIZER).write_bytes(model.tokenizer)
    cache = tmp_path / "cache"
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        said = {
            made.result()
            for made in [pool.submit(make_the_model, cache, weights_file.parent) for _ in range(3)]
        }
    (folder,) = {one.split()[0] for one in said}
    assert len(said) == 1
    assert len(list(Path(folder).iterdir())) == 2  # graph, tokenizer, and nothing half-written


# --- the formulas, implemented independently ---


def by_hand(given: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    mean = states(given, ids, [0] * len(ids)).mean(axis=0)
    return mean / np.linalg.norm(mean)


def states(given: dict[str, np.ndarray], ids: list[int], segments: list[int]) -> np.ndarray:
    words = (
        given["embeddings.word_embeddings.weight"][ids]
        + given["embeddings.position_embeddings.weight"][: len(ids)]
        + given["embeddings.token_type_embeddings.weight"][segments]
    )
    hidden = normed(given, "embeddings.LayerNorm", words)
    for layer in range(6):
        name = f"encoder.layer.{layer}."
        attended = linear(
            given,
            f"{name}attention.output.dense",
            attention(given, f"{name}attention.self.", hidden),
        )
        hidden = normed(given, f"{name}attention.output.LayerNorm", attended + hidden)
        inner = gelu(linear(given, f"{name}intermediate.dense", hidden))
        hidden = normed(
            given, f"{name}output.LayerNorm", linear(given, f"{name}output.dense", inner) + hidden
        )
    return hidden


def attention(given: dict[str, np.ndarray], name: str, hidden: np.ndarray) -> np.ndarray:
    query, key, value = (
        np.hsplit(linear(given, name + part, hidden), 12) for part in ("query", "key", "value")
    )
    heads = []
    for head in range(12):
        scores = query[head] @ key[head].T / np.sqrt(32)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        heads.append(shares / shares.sum(axis=1, keepdims=True) @ value[head])
    return np.hstack(heads)


def linear(given: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) @ given[f"{name}.weight"].T + given[f"{name}.bias"]


def normed(given: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return (
        centred
        / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        * given[f"{name}.weight"]
        + given[f"{name}.bias"]
    )


def gelu(x: np.ndarray) -> np.ndarray:
    from math import erf

    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))
