"""The deep ranker of a process. Its module is imported, and its model loaded, by the first search that reads."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from memory_mesh.core.ports import DeepRanker
from memory_mesh.forks import fork_safe

if TYPE_CHECKING:
    from memory_mesh.models import ModelPaths
    from memory_mesh.models.deep_ranker import LocalDeepRanker

# Kept for the life of the process: a second mesh does not load the model again.
_rankers: "dict[ModelPaths, LocalDeepRanker]" = {}
_lock = fork_safe(Lock())


def make_deep_ranker(paths: "Callable[[], ModelPaths]") -> DeepRanker:
    """Return the deep ranker for these folders. It loads nothing yet."""
    return _SharedDeepRanker(paths)


class _SharedDeepRanker:
    """Uses the one ranker of the process for the same folders. It counts as loaded for the meshes that have used it: what one
    mesh does must not change the searches of another."""

    def __init__(self, paths: "Callable[[], ModelPaths]") -> None:
        self._paths, self._used = paths, False

    @property
    def is_loaded(self) -> bool:
        return self._used and self._ranker().is_loaded

    def load(self) -> None:
        self._used = True
        self._ranker().load()

    def read(self, query: str, pairs: Sequence[tuple[str, str]], *, seconds: float) -> list[float]:
        self._used = True
        return self._ranker().read(query, pairs, seconds=seconds)

    def _ranker(self) -> "LocalDeepRanker":
        from memory_mesh.models.deep_ranker import LocalDeepRanker

        paths = self._paths()
        with _lock:
            if paths not in _rankers:
                _rankers[paths] = LocalDeepRanker(paths)
            return _rankers[paths]
