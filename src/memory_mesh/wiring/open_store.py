"""A URL into a store."""

from pathlib import Path
from urllib.parse import quote, urlsplit

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.not_yet import NOT_YET, not_yet
from memory_mesh.core.ports import Step, Store, no_step
from memory_mesh.stores.urls import URLS, expanded, is_path, path_of, read_only, url_shown


def open_store(url: str, *, busy_seconds: float = 30.0, step: Step = no_step) -> Store:
    """The store that a URL names."""
    if is_path(url):
        url = f"sqlite:///{quote(url)}"
    parts = urlsplit(url)
    if parts.scheme == "memory":
        from memory_mesh.stores.ram import RamStore

        return RamStore()
    if parts.scheme == "sqlite":
        return _sqlite(path_of(url), url=url, read_only=read_only(url), busy_seconds=busy_seconds, step=step)
    if parts.scheme in NOT_YET:
        raise not_yet(parts.scheme)
    raise InvalidInput(f"store {url_shown(url)} is unknown", expected=URLS)


def store_file(url: str) -> Path | None:
    """The file that a URL names; None for a store that is no file."""
    if is_path(url):
        return expanded(url)
    return path_of(url) if urlsplit(url).scheme == "sqlite" else None


def _sqlite(path: Path, *, url: str, read_only: bool, busy_seconds: float, step: Step) -> Store:
    from memory_mesh.stores.sqlite.store import SqliteStore

    return SqliteStore(path, read_only=read_only, busy_seconds=busy_seconds, step=step, url=url)
