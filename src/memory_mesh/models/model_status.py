"""How it stands with the local model, told without loading or fetching anything."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memory_mesh.core.errors import EmbeddingError
from memory_mesh.models.find_model import ready, weights_folder
from memory_mesh.models.model_files import MANIFEST
from memory_mesh.models.weights import SUMS, Places, checked


class State(StrEnum):
    """What the first embedding would find."""

    READY = "ready"
    UNMADE = "unmade"  # its files are here; the model is made of them once
    MISSING = "missing"
    WRONG = "wrong"  # what is here cannot be used


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is there, where, and what to do about it."""

    state: State
    folder: Path
    size: int = 0
    detail: str = ""
    remedy: str = ""

    @property
    def usable(self) -> bool:
        """Whether the model can be had without a network."""
        return self.state in (State.READY, State.UNMADE)


_FETCH = "run `memory-mesh model fetch`"


def look(places: Places) -> Standing:
    """Where the model is, and whether it is the right one."""
    try:
        return _looked(places)
    except EmbeddingError as error:
        return Standing(state=State.WRONG, folder=places.given or places.made, detail=error.what, remedy=error.remedy)


def _looked(places: Places) -> Standing:
    if found := ready(places):
        return Standing(state=State.READY, folder=found.folder, size=found.size)
    if folder := weights_folder(places):
        size = sum((checked(folder) / name).stat().st_size for name in SUMS)
        return Standing(state=State.UNMADE, folder=folder, size=size, detail="made ready by its first use", remedy=_FETCH)
    if (places.made / MANIFEST).exists():
        return Standing(state=State.WRONG, folder=places.made, detail="damaged, or of another version", remedy=_FETCH)
    return Standing(state=State.MISSING, folder=places.made, detail="not here yet; its first use fetches 84 MB", remedy=_FETCH)
