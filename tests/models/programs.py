"""Functions that tests run in separate processes."""

from hashlib import sha256
from pathlib import Path

from memory_mesh.models import ModelPaths, find_model
from memory_mesh.models.model_files import GRAPHS, HASHES, MODEL, PUBLISHED, WEIGHTS, read_change
from memory_mesh.models.onnx_graph import build


def make_the_model(cache: Path, folder: Path) -> str:
    """Build the model from the files of a folder, whatever their hashes are, and return its
    folder and size."""
    HASHES.update({name: sha256((folder / name).read_bytes()).hexdigest() for name in PUBLISHED})
    HASHES[GRAPHS[MODEL]] = sha256(
        build((folder / WEIGHTS).read_bytes(), change=read_change())
    ).hexdigest()
    made = find_model(ModelPaths(cache=cache, model_path=folder), fetch=False)
    return f"{made.folder} {len(made.graph)}"
