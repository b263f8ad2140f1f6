"""Build the ONNX graph of the local model: BERT with 6 layers and 8-bit weights, from the published 32-bit weights.

The input is the token ids of one unpadded text, the output its vector: the mean over all tokens, of length 1. There is no
attention mask, because there is no padding to hide.

Each column of a weight matrix has its own scale, computed here. The activations have one scale for each matrix product, computed
at run time; that is why a text runs alone: other texts in the batch would change its scale. Weights use 7 of their 8 bits: the
sum of two products then always fits into the 16 bits in which older processors add them, and no processor saturates.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from memory_mesh.core.ports import Progress, no_progress

LAYERS, HEADS, WIDTH = 6, 12, 384
_EPSILON = 1e-12
_STANDARD, _MICROSOFT = "", "com.microsoft"  # operators of the ONNX standard, and those of ONNX Runtime only
_MAX_WEIGHT, _MAX_EMBEDDING = 63, 127

Array = npt.NDArray[Any]


def build(weights: Path, progress: Progress = no_progress, *, quantized: bool = True) -> bytes:
    """Return the graph with 8-bit weights, or with 32-bit weights for comparison."""
    return Graph(load_file(weights), quantized=quantized).bytes(progress)


class Graph:
    """A graph under construction. Every method adds nodes and returns the name of their result."""

    def __init__(self, weights: dict[str, Array], *, quantized: bool) -> None:
        self._weights, self._quantized = weights, quantized
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def bytes(self, progress: Progress) -> bytes:
        """Build and serialize the model."""
        hidden = self._embeddings()
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
            progress("building the model", layer + 1, LAYERS)
        mean = self._node("ReduceMean", hidden, self._constant(np.array([1])), keepdims=0)
        self._nodes.append(helper.make_node("LpNormalization", [mean], ["vector"], axis=-1, p=2))
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"])
        vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, WIDTH])
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2", [ids], [vector], self._constants)
        versions = [helper.make_opsetid(_STANDARD, 18), helper.make_opsetid(_MICROSOFT, 1)]
        # An old IR version on purpose: older runtimes can read it.
        serialized: bytes = helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString(deterministic=True)
        return serialized

    # --- the layers of the model ---

    def _embeddings(self) -> str:
        words = self._words(self._weights["embeddings.word_embeddings.weight"])
        # A text is a single segment, so the segment embedding is constant and is added to the positions here.
        segment = self._weights["embeddings.token_type_embeddings.weight"][0]
        positions = self._constant(self._weights["embeddings.position_embeddings.weight"] + segment)
        count = self._node("Shape", "ids", start=1, end=2)
        positions = self._node("Slice", positions, self._constant(np.array([0])), count)
        summed = self._node("Add", words, positions)
        return self._node("LayerNormalization", summed, *self._norm_weights("embeddings.LayerNorm"), epsilon=_EPSILON)

    def _words(self, table: Array) -> str:
        if not self._quantized:
            return self._node("Gather", self._constant(table), "ids")
        scales = np.maximum(np.abs(table).max(axis=1, keepdims=True) / _MAX_EMBEDDING, np.float32(_EPSILON))
        rows = self._node("Gather", self._constant(np.rint(table / scales).astype(np.int8)), "ids")
        values = self._node("Cast", rows, to=TensorProto.FLOAT)
        return self._node("Mul", values, self._node("Gather", self._constant(scales), "ids"))

    def _layer(self, hidden: str, name: str) -> str:
        attended = self._linear(self._attention(hidden, f"{name}attention.self."), f"{name}attention.output.dense")
        hidden = self._add_and_normalize(attended, hidden, f"{name}attention.output.LayerNorm")
        inner = self._node("Gelu", self._linear(hidden, f"{name}intermediate.dense"), domain=_MICROSOFT)
        return self._add_and_normalize(self._linear(inner, f"{name}output.dense"), hidden, f"{name}output.LayerNorm")

    def _attention(self, hidden: str, name: str) -> str:
        projected = self._linear(hidden, *(name + part for part in ("query", "key", "value")))
        parts = [f"{projected}_{part}" for part in range(3)]
        self._nodes.append(helper.make_node("Split", [projected, self._constant(np.array([WIDTH] * 3))], parts, axis=-1))
        return self._node("MultiHeadAttention", *parts, domain=_MICROSOFT, num_heads=HEADS)

    def _add_and_normalize(self, new: str, old: str, norm: str) -> str:
        return self._node("SkipLayerNormalization", new, old, *self._norm_weights(norm), domain=_MICROSOFT, epsilon=_EPSILON)

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
        return self._constant(self._weights[f"{name}.weight"]), self._constant(self._weights[f"{name}.bias"])

    def _node(self, operator: str, *inputs: str, domain: str = _STANDARD, **options: Any) -> str:
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [result], domain=domain, **options))
        return result

    def _constant(self, values: Array | np.generic) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name))
        return name
