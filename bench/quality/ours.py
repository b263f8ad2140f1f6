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
    """One person's memories in a mesh of their own."""

    def __init__(self, mesh: MemoryMesh, space: Space) -> None:
        self._mesh = mesh
        self._names: dict[str, str] = {}  # by the mesh's id
        for batch in batches(space.memories, _BATCH):
            kept = mesh.add_many([(said.text, said.metadata) for said in batch])
            for record, said in zip(kept, batch, strict=True):
                self._names.setdefault(record.id, said.id)  # what was said twice is kept once

    def ranked(self, question: Question) -> Scored:
        """The best ids and their scores, the hopeless included: who wants none of them cuts at the default `min_score`."""
        found = self._mesh.search(question.text, limit=DEPTH, min_score=0.0, use_cache=False)
        return [(self._names[result.id], result.score) for result in found]


@contextmanager
def opened(spaces: Sequence[Space], embedder: Embedder) -> Iterator[list[Ours]]:
    """Each person as a user of one store."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        meshes = [_mesh(Path(folder) / "quality.db", space, embedder) for space in spaces]
        try:
            yield [Ours(mesh, space) for mesh, space in zip(meshes, spaces, strict=True)]
        finally:
            for mesh in meshes:
                mesh.close()


def _mesh(path: Path, space: Space, embedder: Embedder) -> MemoryMesh:
    # The questions of one person are asked at one time; LongMemEval's people have a single question each.
    now = datetime.fromisoformat(space.questions[0].at)
    return MemoryMesh(store=f"sqlite:///{path}", user_id=space.name, embedder=embedder, clock=lambda: now)
