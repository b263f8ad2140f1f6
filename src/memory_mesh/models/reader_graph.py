"""The graph of the deep ranker: the published weights with the change of the package, and the hashes of change and graph.

`python -m bench.train_reader.ship` writes the change and the hashes.
"""

import hashlib
import io
from pathlib import Path

from memory_mesh.core.errors import EmbeddingError
from memory_mesh.core.ports import Progress

DELTA = Path(__file__).parent / "data" / "reader.npz"
DELTA_HASH = "491189bfb07d46a0bd8819463bd6c888bbd0c2782054e2e0edc6f7192cf14a72"
GRAPH_HASH = "c7ddab1fbb59badc0df55a43139c551563f5df9c7a1ddedab949e4e3949e8c98"
GRAPH = f"reader-{GRAPH_HASH[:12]}.onnx"


def make_graph(weights: bytes, progress: Progress) -> bytes:
    """Build the graph from the published weights."""
    import numpy as np

    from memory_mesh.models.onnx_graph import build_reader

    delta = read_known(DELTA, DELTA_HASH)
    if delta is None:
        raise EmbeddingError(f"{DELTA.name} is missing, or not the known file", remedy="install memory-mesh again")
    with np.load(io.BytesIO(delta)) as change:
        return build_reader(weights, dict(change), progress)


def read_known(file: Path, known: str) -> bytes | None:
    """Return the content of a file, or None if it is missing or has another hash."""
    try:
        data = file.read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == known else None
