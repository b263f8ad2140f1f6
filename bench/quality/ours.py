"""memory-mesh itself: memories are added and searched through the public API, with the default
settings."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.quality.measuring import DEPTH
from bench.quality.sets import Question, Space
from memory_mesh import MemoryMesh
from memory_mesh.core.model import batches
from memory_mesh.core.ports import Embedder
from memory_mesh.flows.claims.updates import judge_new

Scored = list[tuple[str, float]]
_BATCH = 500
_NOW = "2026-01-01T00:00:00.000Z"  # of memories without questions


class Ours:
    """The memories of one person, in a separate mesh, compared with each other."""

    def __init__(self, path: Path, space: Space, embedder: Embedder) -> None:
        self._now = space.questions[0].at if space.questions else _NOW
        opened = partial(
            MemoryMesh, store=f"sqlite:///{path}", user_id=space.name, embedder=embedder,
            clock=self._clock,
        )  # fmt: skip
        self._names: dict[str, str] = {}  # by the mesh's id
        with opened(update_judge="off") as mesh:  # they are compared below, not in the background
            for batch in batches(space.memories, _BATCH):
                kept = mesh.add_many([(said.text, said.metadata) for said in batch])
                for record, said in zip(kept, batch, strict=True):
                    # A text that occurs twice is stored once.
                    self._names.setdefault(record.id, said.id)
        self._mesh = opened()
        judge_new(self._mesh._context())

    def ranked(self, question: Question) -> Scored:
        """Return the best ids and their scores at the time of the question, low scores included;
        callers cut them."""
        self._now = question.at
        found = self._mesh.search(question.text, limit=DEPTH, min_score=0.0, use_cache=False)
        return [(self._names[result.id], result.score) for result in found]

    def close(self) -> None:
        self._mesh.close()

    def _clock(self) -> datetime:
        return datetime.fromisoformat(self._now)


@contextmanager
def opened(spaces: Sequence[Space], embedder: Embedder) -> Iterator[list[Ours]]:
    """Open one store in which each person is a user."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as opened_meshes:
        path = Path(folder) / "quality.db"
        yield [
            opened_meshes.enter_context(closing(Ours(path, space, embedder))) for space in spaces
        ]
