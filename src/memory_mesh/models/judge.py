"""The judge of pairs: does a newer statement change an older one?

`LocalJudge` runs all-MiniLM-L6-v2 with a learnt change and a head for four relations
(`data/judge.npz`). It reads `[CLS] older [SEP] newer [SEP]`. The graph is built from the published
weights, as the embedder's is, and stored beside it. If it cannot be used, one warning is logged,
and nothing is judged.

`ModelJudge` asks a language model about the pairs where another judge is unsure.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    EmbeddingError,
    SettingsError,
    StoreError,
)
from memory_mesh.core.ports import ChatModel, Likely, PairJudge
from memory_mesh.models.local import CLS, SEP, Engine, in_parallel
from memory_mesh.models.model_files import JUDGE, ModelPaths, find_model, has_files, show_download
from memory_mesh.system import fork_safe

FIRST, LAST = 48, 16  # tokens of a longer statement that are read
# A text with more characters is cut before it is split into tokens.
_MAX_CHARACTERS = 4000
MIN_UNSURE, MAX_UNSURE = 0.3, 0.9  # probabilities of a change
MAX_ASKED = 3  # pairs of a call that a language model is asked about
_log = logging.getLogger("memory_mesh")
# Of all judges of this process: they work in the background, and leave the other cores to searches.
_one_at_a_time = fork_safe(Lock())


class LocalJudge:
    """The default judge. The first call of `judge` loads the model, and fetches it if it is not on
    this computer. Pairs run one by one and unpadded, as the embedder's texts do, on one core."""

    version = JUDGE.rpartition("/")[2]

    def __init__(self, paths: ModelPaths, *, fetch: bool = True) -> None:
        self._paths, self._fetch = replace(paths, model=JUDGE), fetch
        self._engine: PairEngine | None = None
        self._failed = False
        self._lock = fork_safe(Lock())

    def is_ready(self) -> bool:
        return self._engine is not None or has_files(self._paths)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Likely]:
        engine = self._load() if pairs else None
        if engine is None:
            return []
        try:
            with _one_at_a_time:
                return in_parallel(lambda pair: engine.judge(*pair), pairs, workers=1)
        except EmbeddingError as error:
            _warn(error)
            return []

    def _load(self) -> "PairEngine | None":
        with self._lock:
            if self._engine is None and not self._failed:
                try:
                    model = find_model(self._paths, fetch=self._fetch, progress=show_download)
                    self._engine = PairEngine(model.graph, model.tokenizer)
                except EmbeddingError as error:
                    # Another attempt for each write would read the files, or wait, each time.
                    self._failed = True
                    _warn(error)
            return self._engine


def _warn(error: EmbeddingError) -> None:
    _log.warning("changes of memories are not recognised: %s", error)


class PairEngine(Engine):
    """The tokenizer and the graph of the judge."""

    def judge(self, older: str, newer: str) -> Likely:
        import numpy as np

        first, second = (self._read(text) for text in (older, newer))
        ids = [CLS, *first, SEP, *second, SEP]
        segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        (classes,) = self.call(
            ids=np.array([ids], np.int64), segments=np.array([segments], np.int64)
        )
        return Likely(*map(float, classes[0]))

    def _read(self, text: str) -> list[int]:
        """Return the tokens of a statement that are read."""
        if len(text) <= _MAX_CHARACTERS:
            return cut(self.tokens(text))
        half = _MAX_CHARACTERS // 2
        return self.tokens(text[:half])[:FIRST] + self.tokens(text[-half:])[-LAST:]


def cut(tokens: list[int]) -> list[int]:
    """Return the first and the last tokens of a statement that is too long."""
    return tokens if len(tokens) <= FIRST + LAST else tokens[:FIRST] + tokens[-LAST:]


class ModelJudge:
    """Asks a language model about the first pairs where another judge is unsure. The other pairs,
    those with instructions to a model, and those for which it gives no usable answer keep the
    probabilities of that judge."""

    def __init__(self, inner: PairJudge, chat: ChatModel, new_boundary: Callable[[], str]) -> None:
        self._inner, self._chat, self._new_boundary = inner, chat, new_boundary
        self.version = f"{inner.version}+{chat.model}"

    def is_ready(self) -> bool:
        return self._inner.is_ready()

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Likely]:
        from memory_mesh.core.language.prompts import relation as prompt
        from memory_mesh.core.language.safety.injection import detect  # loads many patterns

        judged = self._inner.judge(pairs)
        unsure = [
            at
            for at, likely in enumerate(judged)
            if MIN_UNSURE <= likely.change <= MAX_UNSURE and not any(map(detect, pairs[at]))
        ]
        for at in unsure[:MAX_ASKED]:
            try:
                reply = self._chat.reply(prompt.build_prompt(*pairs[at], self._new_boundary()))
                judged[at] = prompt.read_reply(reply)
            except AnswerUnreadable as error:
                _log.warning("judged without the language model, because %s", error)
            except (CallError, BudgetSpent, SettingsError, StoreError) as error:
                # The next call would fail too.
                _log.warning("judged without the language model, because %s", error)
                break
        return judged
