"""memory-mesh itself: memories are added and searched through the public API, with the default settings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.quality.measuring import DEPTH
from bench.quality.sets import Question, Space
from memory_mesh import MemoryMesh
from memory_mesh.core.model import batches
from memory_mesh.core.ports import Embedder

Scored = list[tuple[str, float]]
_BATCH = 500


class Ours:
    """The memories of one person, in a separate mesh."""

    def __init__(self, mesh: MemoryMesh, space: Space) -> None:
        self._mesh = mesh
        self._names: dict[str, str] = {}  # by the mesh's id
        for batch in batches(space.memories, _BATCH):
            kept = mesh.add_many([(said.text, said.metadata) for said in batch])
            for record, said in zip(kept, batch, strict=True):
                self._names.setdefault(record.id, said.id)  # a text that occurs twice is stored once

    def ranked(self, question: Question) -> Scored:
        """Return the best ids and their scores, low ones included; callers can cut at the default `min_score`."""
        found = self._mesh.search(question.text, limit=DEPTH, min_score=0.0, use_cache=False)
        return [(self._names[result.id], result.score) for result in found]


@contextmanager
def opened(spaces: Sequence[Space], embedder: Embedder) -> Iterator[list[Ours]]:
    """Open one store in which each person is a user."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        meshes = [_mesh(Path(folder) / "quality.db", space, embedder) for space in spaces]
        try:
            yield [Ours(mesh, space) for mesh, space in zip(meshes, spaces, strict=True)]
        finally:
            for mesh in meshes:
                mesh.close()


def _mesh(path: Path, space: Space, embedder: Embedder) -> MemoryMesh:
    # All questions of a person are searched at one time; in LongMemEval each person has a single question.
    now = datetime.fromisoformat(space.questions[0].at)
    return MemoryMesh(store=f"sqlite:///{path}", user_id=space.name, embedder=embedder, clock=lambda: now)
