"""An embedder that remembers what it was asked last."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from memory_mesh.core.model.rows import Vector
from memory_mesh.core.ports import Embedder

MOST = 1000


class CachedEmbedder:
    """Keeps the vectors of the texts used last, for as long as the process lives; nothing is written anywhere.

    Only what is not kept goes to the inner embedder, each text once.
    """

    def __init__(self, inner: Embedder, most: int = MOST) -> None:
        self._inner, self._most = inner, most
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def window(self) -> int:
        return self._inner.window

    def count(self, text: str) -> int:
        return self._inner.count(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        found = self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            # Outside of the lock: who asks for what is known need not wait for a model.
            made = dict(zip(missing, self._inner.embed(missing), strict=True))
            self._keep(made)
            found |= made
        return [found[text] for text in texts]

    def _known(self, texts: Sequence[str]) -> dict[str, Vector]:
        with self._lock:
            found = {text: self._kept[text] for text in texts if text in self._kept}
            for text in found:
                self._kept.move_to_end(text)
        return found

    def _keep(self, made: dict[str, Vector]) -> None:
        with self._lock:
            for text, vector in made.items():
                self._kept[text] = vector
                self._kept.move_to_end(text)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
