"""What the tests start as processes of their own."""

from pathlib import Path

from memory_mesh.models import weights
from memory_mesh.models.find_model import supply
from memory_mesh.models.weights import Places


def make_the_model(cache: Path, folder: Path) -> str:
    """Make the model from the files of a folder, whatever their sums are, and say what was made."""
    weights.SUMS.update({name: weights.sum_of(folder / name) for name in weights.SUMS})
    made = supply(Places(cache=cache, given=folder), fetch=False)
    return f"{made.folder} {len(made.graph)}"
