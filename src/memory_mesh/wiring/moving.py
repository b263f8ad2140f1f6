"""`copy`: all rows of one store into another one, of the same kind or another."""

from contextlib import closing
from os import PathLike
from os.path import realpath
from pathlib import Path

from memory_mesh.core import checks
from memory_mesh.core.archive import StoreRows, snapshot_of
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import Copied, Reader
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.text import shown_url
from memory_mesh.flows import moving
from memory_mesh.settings import Settings, load
from memory_mesh.stores import normal_url, open_store, store_file
from memory_mesh.wiring.build import context_over, file_of, signing_keys


def copy_store(
    source: str | PathLike[str], target: str | PathLike[str], *, progress: Progress | None = None
) -> Copied:  # fmt: skip
    """Copy all rows of all users, audit chains and history included, to an empty store, and verify the copy.

    A copy that was stopped is continued by the next call. The source may be written to meanwhile; it is not changed.
    """
    settings = load({"store": checks.path("target", target)})
    url, to = normal_url(checks.path("source", source)), normal_url(settings.store_url)
    if _place(url, settings) == _place(to, settings):
        raise InvalidInput(f"{shown(shown_url(to), max_length=120)} is both the source and the target", expected="two stores")
    file, busy = store_file(url), settings.options.busy_seconds
    read_only = f"{url}?mode=ro" if file and "?" not in url else url
    key, source_key = settings.options.store_key, load({"store": url}).options.store_key
    with closing(open_store(read_only, folder=settings.cwd, busy_seconds=busy, key=source_key)) as opened:
        file_of(opened).require_file()
        with closing(open_store(to, folder=settings.cwd, busy_seconds=busy, key=key)) as new:
            file_of(new).check_writable()
            context = context_over(new, Reader(), signing=signing_keys(settings, new))
            with snapshot_of(opened) as state:
                return moving.copy(context, StoreRows(state), as_progress(progress))


def _place(url: str, settings: Settings) -> str:
    file = store_file(url)
    return realpath(Path(settings.cwd, file)) if file else url
