"""Build the ONNX graphs of the local models: BERT with 6 layers and 8-bit weights.

The input is the token ids of one unpadded text, the output its vector: the mean over all tokens, of
length 1. A change of the weights may add two outputs: for each token a small vector of length 1,
and its weight as a part of a question. There is no attention mask, because there is no padding to
hide. A change with a head makes the graph of a judge (`JudgeGraph`), which reads two texts.

Each column of a weight matrix has its own scale, computed here. The activations have one scale for
each matrix product, computed at run time; that is why a text runs alone: other texts in the batch
would change its scale. Weights use 7 of their 8 bits: the sum of two products then always fits into
the 16 bits in which older processors add them, and no processor saturates.

The same weights make the same bytes everywhere, so that the graph has a known hash: the arithmetic
is exact or correctly rounded (IEEE 754), and the graph is encoded here (`_message`), not by a
library whose next version may write it differently.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memory_mesh.core.ports import Progress, no_progress

Array = npt.NDArray[Any]
_Bytes = bytes  # a method of `Graph` has this name
LAYERS, HEADS, WIDTH = 6, 12, 384
_NAME = "all-MiniLM-L6-v2"
_EPSILON = 1e-12
# Operators of the ONNX standard, and those of ONNX Runtime only.
_STANDARD, _MICROSOFT = "", "com.microsoft"
_MAX_WEIGHT, _MAX_EMBEDDING = 63, 127


def build(
    weights: bytes, progress: Progress = no_progress, *, change: Mapping[str, Array] | None = None,
    quantized: bool = True
) -> bytes:  # fmt: skip
    """Return the graph of a safetensors file, with 8-bit weights, or with 32-bit weights for
    comparison. `change` is learnt."""
    changed = _changed(tensors(weights), change or {})
    kind = JudgeGraph if "head.weight" in changed else Graph
    return kind(changed, quantized=quantized).bytes(progress)


def _changed(weights: dict[str, Array], delta: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights with a change: products of two thin matrices are added, other tensors
    are replaced."""
    found = {**weights, **{name: value.astype(np.float32) for name, value in delta.items()}}
    for name in (name.removesuffix(".down") for name in delta if name.endswith(".down")):
        up, down = (found.pop(f"{name}.{part}") for part in ("up", "down"))
        weight = weights[f"{name}.weight"]
        # One by one: a matrix product is rounded differently by each library.
        for column, row in zip(up.T, down, strict=True):
            weight = weight + column[:, None] * row
        found[f"{name}.weight"] = weight
    return found


def tensors(file: bytes) -> dict[str, Array]:
    """Return the 32-bit tensors of a safetensors file: the length of a JSON header, the header,
    and the numbers."""
    start = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:start])
    found = {name: about for name, about in header.items() if about.get("dtype") == "F32"}
    return {
        name: np.frombuffer(memoryview(file)[start:][slice(*about["data_offsets"])], "<f4").reshape(
            about["shape"]
        )
        for name, about in found.items()
    }


class Graph:
    """A graph under construction. Every method adds nodes and returns the name of their result."""

    inputs: Sequence[str] = ("ids",)

    def __init__(self, weights: dict[str, Array], *, quantized: bool) -> None:
        self._weights, self._quantized = weights, quantized
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def bytes(self, progress: Progress) -> bytes:
        """Build and serialize the model."""
        hidden = self._embeddings()
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
            progress("building the model", layer + 1, LAYERS)
        outputs = self._outputs(hidden)
        inputs = [_value(name, _INT64, 1, "tokens") for name in self.inputs]
        graph = _message({1: self._nodes, 2: _NAME, 5: self._constants, 11: inputs, 12: outputs})
        versions = [
            _message({1: domain, 2: version})
            for domain, version in ((_STANDARD, 18), (_MICROSOFT, 1))
        ]
        # An old IR version on purpose: older runtimes can read it.
        return _message({1: 8, 7: graph, 8: versions})

    def _outputs(self, hidden: str) -> list[_Bytes]:
        """Return the outputs, which are computed from the last layer."""
        self._nodes.append(_node("LpNormalization", [self._mean(hidden)], ["vector"], axis=-1, p=2))
        outputs = [_value("vector", _FLOAT, 1, WIDTH)]
        if "tokens.weight" in self._weights:
            small, weight, bias = (
                self._weights[name] for name in ("tokens.weight", "weights.weight", "weights.bias")
            )
            tokens = self._node("MatMul", hidden, self._constant(small.T))
            raw = self._node("MatMul", hidden, self._constant(weight.reshape(-1, 1)))
            raw = self._node("Add", raw, self._constant(bias))
            self._nodes += [
                _node("LpNormalization", [tokens], ["tokens"], axis=-1, p=2),
                _node("Softplus", [raw], ["weights"]),
            ]
            outputs += [
                _value("tokens", _FLOAT, 1, "tokens", len(small)),
                _value("weights", _FLOAT, 1, "tokens", 1),
            ]
        return outputs

    def _mean(self, hidden: str) -> str:
        return self._node("ReduceMean", hidden, self._constant(np.array([1])), keepdims=0)

    # --- the layers of the model ---

    def _embeddings(self) -> str:
        words = self._words(self._weights["embeddings.word_embeddings.weight"])
        # A text is a single segment, so the embedding of its segment is constant.
        segments = self._weights["embeddings.token_type_embeddings.weight"]
        positions = self._constant(
            self._weights["embeddings.position_embeddings.weight"] + segments[0]
        )
        count = self._node("Shape", "ids", start=1, end=2)
        positions = self._node("Slice", positions, self._constant(np.array([0])), count)
        summed = self._node("Add", words, positions)
        if "segments" in self.inputs:
            # What a token of the second text gets instead.
            added = self._constant(segments - segments[0])
            summed = self._node("Add", summed, self._node("Gather", added, "segments"))
        return self._node(
            "LayerNormalization",
            summed,
            *self._norm_weights("embeddings.LayerNorm"),
            epsilon=_EPSILON,
        )

    def _words(self, table: Array) -> str:
        if not self._quantized:
            return self._node("Gather", self._constant(table), "ids")
        scales = np.maximum(
            np.abs(table).max(axis=1, keepdims=True) / _MAX_EMBEDDING, np.float32(_EPSILON)
        )
        rows = self._node("Gather", self._constant(np.rint(table / scales).astype(np.int8)), "ids")
        values = self._node("Cast", rows, to=_FLOAT)
        return self._node("Mul", values, self._node("Gather", self._constant(scales), "ids"))

    def _layer(self, hidden: str, name: str) -> str:
        attended = self._linear(
            self._attention(hidden, f"{name}attention.self."), f"{name}attention.output.dense"
        )
        hidden = self._add_and_normalize(attended, hidden, f"{name}attention.output.LayerNorm")
        inner = self._node(
            "Gelu", self._linear(hidden, f"{name}intermediate.dense"), domain=_MICROSOFT
        )
        return self._add_and_normalize(
            self._linear(inner, f"{name}output.dense"), hidden, f"{name}output.LayerNorm"
        )

    def _attention(self, hidden: str, name: str) -> str:
        projected = self._linear(hidden, *(name + part for part in ("query", "key", "value")))
        parts = [f"{projected}_{part}" for part in range(3)]
        self._nodes.append(
            _node("Split", [projected, self._constant(np.array([WIDTH] * 3))], parts, axis=-1)
        )
        return self._node("MultiHeadAttention", *parts, domain=_MICROSOFT, num_heads=HEADS)

    def _add_and_normalize(self, new: str, old: str, norm: str) -> str:
        return self._node(
            "SkipLayerNormalization",
            new,
            old,
            *self._norm_weights(norm),
            domain=_MICROSOFT,
            epsilon=_EPSILON,
        )

    # --- parts of a layer ---

    def _linear(self, x: str, *names: str) -> str:
        weight = np.concatenate([self._weights[f"{name}.weight"] for name in names]).T
        bias = self._constant(np.concatenate([self._weights[f"{name}.bias"] for name in names]))
        if not self._quantized:
            return self._node("Add", self._node("MatMul", x, self._constant(weight)), bias)
        scales = np.abs(weight).max(axis=0) / np.float32(_MAX_WEIGHT)
        columns, zeros = np.rint(weight / scales).astype(np.int8), np.zeros(scales.shape, np.int8)
        quantized = (self._constant(columns), self._constant(scales), self._constant(zeros), bias)
        return self._node("DynamicQuantizeMatMul", x, *quantized, domain=_MICROSOFT)

    def _norm_weights(self, name: str) -> tuple[str, str]:
        return self._constant(self._weights[f"{name}.weight"]), self._constant(
            self._weights[f"{name}.bias"]
        )

    def _node(self, operator: str, *inputs: str, domain: str = _STANDARD, **options: float) -> str:
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(_node(operator, inputs, [result], domain=domain, **options))
        return result

    def _constant(self, values: Array) -> str:
        name = f"constant_{len(self._constants)}"
        data = values.astype(values.dtype.newbyteorder("<")).tobytes()
        self._constants.append(
            _message({1: list(values.shape), 2: _TYPES[values.dtype.str[1:]], 8: name, 9: data})
        )
        return name


class JudgeGraph(Graph):
    """The graph of a judge. It reads the tokens of two texts, whose segments are 0 and 1, and
    gives a probability for each class, from the first token and the mean of all."""

    inputs = ("ids", "segments")

    def _outputs(self, hidden: str) -> list[_Bytes]:
        weight, bias = (self._weights[f"head.{part}"] for part in ("weight", "bias"))
        first = self._node("Gather", hidden, self._constant(np.array(0)), axis=1)
        both = self._node("Concat", first, self._mean(hidden), axis=-1)
        product = self._node("MatMul", both, self._constant(weight.T))
        logits = self._node("Add", product, self._constant(bias))
        self._nodes.append(_node("Softmax", [logits], ["classes"], axis=-1))
        return [_value("classes", _FLOAT, 1, len(weight))]


# --- the encoding ---
# Protocol buffers, with the field numbers of onnx.proto.

_FLOAT, _INT8, _INT64 = 1, 3, 7
_TYPES = {"f4": _FLOAT, "i1": _INT8, "i8": _INT64}
_A_FLOAT, _AN_INT = 1, 2  # types of attributes

_Field = int | float | str | bytes


def _node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    domain: str | None = None,
    **options: float,
) -> bytes:
    attributes = [
        _message(
            {
                1: name,
                **(
                    {2: value, 20: _A_FLOAT}
                    if isinstance(value, float)
                    else {3: value, 20: _AN_INT}
                ),
            }
        )
        for name, value in sorted(options.items())
    ]
    return _message(
        {1: inputs, 2: outputs, 4: operator, 5: attributes, 7: [] if domain is None else domain}
    )


def _value(name: str, kind: int, *shape: int | str) -> bytes:
    dimensions = [_message({1: size} if isinstance(size, int) else {2: size}) for size in shape]
    return _message({1: name, 2: _message({1: _message({1: kind, 2: _message({1: dimensions})})})})


def _message(fields: Mapping[int, _Field | Sequence[_Field]]) -> bytes:
    """Encode fields by number. A list is a field that repeats."""
    pairs = [
        (number, [value] if isinstance(value, _Field) else value)
        for number, value in fields.items()
    ]
    return b"".join(_field(number, value) for number, values in pairs for value in values)


def _field(number: int, value: _Field) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % 2**64)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Encode a number in groups of seven bits, the lowest first."""
    *low, last = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 128 for group in low), last])
