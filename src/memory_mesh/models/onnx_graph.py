"""The graph that is run: BERT with 6 layers, made once from the model's weights, with weights of 8 bits.

It takes the token ids of one text, unpadded, and gives the sentence vector: the mean over all tokens, of length 1. There is no
mask, because there is never anything to hide.

How it counts in 8 bits: each column of a weight matrix has a scale of its own, fixed here; the activations have one for each
matrix product, found while it runs. That is why a text is run alone: with others beside it, they would set its scale. Weights
use 7 of their 8 bits: the sum of two products then always fits the 16 bits that older processors add them in, so that no
processor cuts anything off.
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
_OURS, _THEIRS = "", "com.microsoft"  # the standard's operators, and those that only this runtime has
_WEIGHT_TOP, _WORD_TOP = 63, 127

Array = npt.NDArray[Any]


def build(weights: Path, progress: Progress = no_progress) -> bytes:
    """The graph with weights of 8 bits, ready to be run."""
    return Graph(load_file(weights), small=True).bytes(progress)


def build_large(weights: Path) -> bytes:
    """The same graph with the weights as they are, to compare with."""
    return Graph(load_file(weights), small=False).bytes()


class Graph:
    """A graph that grows node by node; every method answers with the name of what it computes."""

    def __init__(self, weights: dict[str, Array], *, small: bool) -> None:
        self._weights, self._small = weights, small
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def bytes(self, progress: Progress = no_progress) -> bytes:
        """The whole model, in one file."""
        hidden = self._embeddings()
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.")
            progress("building the model", layer + 1, LAYERS)
        self._sentence(hidden)
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"])
        vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, WIDTH])
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2", [ids], [vector], self._constants)
        versions = [helper.make_opsetid(_OURS, 18), helper.make_opsetid(_THEIRS, 1)]
        # An old number, on purpose: older runtimes read it.
        written: bytes = helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString(deterministic=True)
        return written

    # --- the model ---

    def _embeddings(self) -> str:
        words = self._words(self._weights["embeddings.word_embeddings.weight"])
        # One text is one segment, so its embedding is the same everywhere and can be added beforehand.
        segment = self._weights["embeddings.token_type_embeddings.weight"][0]
        places = self._keep(self._weights["embeddings.position_embeddings.weight"] + segment)
        count = self._do("Shape", "ids", start=1, end=2)
        places = self._do("Slice", places, self._keep(np.array([0])), count)
        return self._do(
            "LayerNormalization", self._do("Add", words, places), *self._norm("embeddings.LayerNorm"), epsilon=_EPSILON
        )

    def _words(self, table: Array) -> str:
        if not self._small:
            return self._do("Gather", self._keep(table), "ids")
        scales = np.maximum(np.abs(table).max(axis=1, keepdims=True) / _WORD_TOP, np.float32(_EPSILON))
        rows = self._do("Gather", self._keep(np.rint(table / scales).astype(np.int8)), "ids")
        return self._do("Mul", self._do("Cast", rows, to=TensorProto.FLOAT), self._do("Gather", self._keep(scales), "ids"))

    def _layer(self, hidden: str, name: str) -> str:
        attended = self._linear(self._attention(hidden, f"{name}attention.self."), f"{name}attention.output.dense")
        hidden = self._joined(attended, hidden, f"{name}attention.output.LayerNorm")
        inner = self._do("Gelu", self._linear(hidden, f"{name}intermediate.dense"), domain=_THEIRS)
        return self._joined(self._linear(inner, f"{name}output.dense"), hidden, f"{name}output.LayerNorm")

    def _attention(self, hidden: str, name: str) -> str:
        together = self._linear(hidden, *(name + part for part in ("query", "key", "value")))
        parts = [f"{together}_{part}" for part in range(3)]
        self._nodes.append(helper.make_node("Split", [together, self._keep(np.array([WIDTH] * 3))], parts, axis=-1))
        return self._do("MultiHeadAttention", *parts, domain=_THEIRS, num_heads=HEADS)

    def _joined(self, new: str, old: str, norm: str) -> str:
        return self._do("SkipLayerNormalization", new, old, *self._norm(norm), domain=_THEIRS, epsilon=_EPSILON)

    def _sentence(self, hidden: str) -> None:
        mean = self._do("ReduceMean", hidden, self._keep(np.array([1])), keepdims=0)
        self._nodes.append(helper.make_node("LpNormalization", [mean], ["vector"], axis=-1, p=2))

    # --- its parts ---

    def _linear(self, x: str, *names: str) -> str:
        weight = np.concatenate([self._weights[f"{name}.weight"] for name in names]).T
        bias = self._keep(np.concatenate([self._weights[f"{name}.bias"] for name in names]))
        if not self._small:
            return self._do("Add", self._do("MatMul", x, self._keep(weight)), bias)
        scales = np.abs(weight).max(axis=0) / np.float32(_WEIGHT_TOP)
        columns, zeros = np.rint(weight / scales).astype(np.int8), np.zeros(scales.shape, np.int8)
        kept = (self._keep(columns), self._keep(scales), self._keep(zeros), bias)
        return self._do("DynamicQuantizeMatMul", x, *kept, domain=_THEIRS)

    def _norm(self, name: str) -> tuple[str, str]:
        return self._keep(self._weights[f"{name}.weight"]), self._keep(self._weights[f"{name}.bias"])

    def _do(self, operator: str, *inputs: str, domain: str = _OURS, **options: Any) -> str:
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [result], domain=domain, **options))
        return result

    def _keep(self, values: Array | np.generic) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name))
        return name
