"""The model at work: ONNX Runtime and the tokenizer. Whoever imports this module loads both."""

import numpy as np
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf, RuntimeException
from tokenizers import Tokenizer

from memory_mesh.core.errors import EmbeddingError

_START, _END = 101, 102  # [CLS] and [SEP], which frame every text
_FAILURES = (Fail, InvalidGraph, InvalidProtobuf, RuntimeException, ValueError)


class Engine:
    """Tokens of a text, and the vector of tokens. Both may be called by many threads at once."""

    def __init__(self, graph: bytes, tokenizer: bytes) -> None:
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True  # a text that says [SEP] does not end there
        try:
            self._session = ort.InferenceSession(graph, _options(), providers=["CPUExecutionProvider"])
        except _FAILURES as error:
            raise EmbeddingError(f"the model cannot be loaded: {error}", remedy="upgrade onnxruntime") from error

    def tokens(self, text: str) -> list[int]:
        """All tokens of a text, without the two that frame it."""
        try:
            given = text.encode()
        except UnicodeEncodeError:  # half a character, which the tokenizer would refuse
            given = text.encode(errors="replace")
        # The batch form does not trace where each token came from: half the time.
        ids: list[int] = self._tokenizer.encode_batch_fast([given.decode()], add_special_tokens=False)[0].ids
        return ids

    def run(self, tokens: list[int]) -> bytes:
        """The vector, as packed little-endian 32-bit floats."""
        ids = np.array([[_START, *tokens, _END]], np.int64)
        try:
            (vectors,) = self._session.run(None, {"ids": ids})
        except _FAILURES as error:
            raise EmbeddingError(f"the model failed: {error}") from error
        packed: bytes = np.asarray(vectors[0], "<f4").tobytes()
        return packed


def _options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts run side by side instead
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # the graph is made as it should be run
    options.log_severity_level = 3  # errors; they are raised as well
    return options
