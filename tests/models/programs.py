"""Functions that tests run in separate processes."""

from pathlib import Path

from memory_mesh.models import ModelPaths, find_model
from memory_mesh.models.model_files import HASHES, file_sha256


def make_the_model(cache: Path, folder: Path) -> str:
    """Build the model from the files of a folder, whatever their hashes are, and return its folder and size."""
    HASHES.update({name: file_sha256(folder / name) for name in HASHES})
    made = find_model(ModelPaths(cache=cache, model_path=folder), fetch=False)
    return f"{made.folder} {len(made.graph)}"
