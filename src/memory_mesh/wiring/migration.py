"""`migrate`: bring the tables of a LanceDB folder to the version that memory-mesh reads, or back."""

import time
from contextlib import closing, suppress
from os import PathLike
from os.path import isdir

from memory_mesh.core import checks
from memory_mesh.core.errors import InvalidInput, StoreError, shown
from memory_mesh.core.model import Migration
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.text import shown_url
from memory_mesh.settings import load
from memory_mesh.stores import lance_store, normal_url, store_file


def migrate(
    store: str | PathLike[str] | None = None, *, rollback: bool = False, dry_run: bool = False, progress: Progress | None = None
) -> Migration:
    """Migrate `memory_entries` in a LanceDB folder from schema V1 of RFC-0011 to V2; with `rollback`, restore V1 from its backup.

    `store` is the folder or its URL, by default the configured store. A dry run changes nothing. Stop other programs that write
    to the folder first.
    """
    settings = load({"store": None if store is None else checks.path("store", store)})
    url = normal_url(settings.store_url)
    file = store_file(url)
    folder = settings.cwd / file if file else None
    if folder is None or url.startswith("json:") or not (url.startswith("lancedb:") or isdir(folder)):
        what = f"store {shown(shown_url(url), max_length=120)} is not a LanceDB folder"
        raise InvalidInput(what, expected="lancedb:///FOLDER", remedy="a SQLite file is upgraded by its first write")
    open_lance = lance_store()
    from memory_mesh.stores.lance.migration import migrate_folder

    if rollback and not dry_run:
        with suppress(StoreError), closing(open_lance(folder)) as opened:  # a V1 table, or a run that was interrupted
            opened.flush()
    return migrate_folder(
        folder, rollback=rollback, dry_run=dry_run, now=time.time_ns() // 1_000_000, busy_seconds=settings.options.busy_seconds,
        progress=as_progress(progress),
    )  # fmt: skip
