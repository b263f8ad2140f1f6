"""Cosine over packed vectors. Numpy is loaded by the first comparison, not by the first command."""

from collections.abc import Sequence

from memory_mesh.core.model.rows import Hit


def cosines(query: bytes, rows: Sequence[tuple[str, bytes]]) -> list[Hit]:
    """The cosine of each row with the query, best per id; a vector of length zero is near nothing (0)."""
    if not rows:
        return []
    import numpy as np

    asked = np.frombuffer(query, "<f4").astype(np.float64)
    matrix = np.frombuffer(b"".join(data for _, data in rows), "<f4").reshape(len(rows), -1).astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(asked)
    # Row by row, so that a vector's score does not depend on which others were compared with it.
    dots = np.einsum("ij,j->i", matrix, asked)
    scores = np.divide(dots, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    found: dict[str, float] = {}
    for (id_, _), score in zip(rows, scores.tolist(), strict=True):
        found[id_] = max(score, found.get(id_, -1.0))
    return [Hit(id_, score) for id_, score in found.items()]


def ranked(hits: Sequence[Hit], limit: int) -> list[Hit]:
    """Best first; equal scores by id, descending."""
    return sorted(hits, key=lambda hit: (hit.score, hit.id), reverse=True)[:limit]
