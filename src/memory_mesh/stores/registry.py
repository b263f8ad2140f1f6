"""URLs of stores: parse them, and open the store that one names."""

from os import fsdecode, fsencode
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote_to_bytes, urlsplit

from memory_mesh.core import checks
from memory_mesh.core.errors import NOT_YET, InvalidInput, not_yet, shown
from memory_mesh.core.ports import Step, Store, no_step
from memory_mesh.core.text import shown_url

_URLS = "sqlite:///relative.db, sqlite:////absolute.db, a path ending in .db, or memory://"


def open_store(url: str, *, must_exist: bool = True, busy_seconds: float = 30.0, step: Step = no_step) -> Store:
    """Open the store that a URL names. No file is created: the first write does. See `StoreFile` for `must_exist`."""
    if _is_path(url):
        url = f"sqlite:///{quote(fsencode(checks.path('store', url)))}"
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        from memory_mesh.stores.ram import RamStore

        return RamStore()
    if scheme == "sqlite":
        from memory_mesh.stores.sqlite import SqliteStore

        path, read_only = _path_of(url), _is_read_only(url)
        return SqliteStore(path, read_only=read_only, must_exist=must_exist, busy_seconds=busy_seconds, step=step, url=url)
    if scheme in NOT_YET:
        raise not_yet(scheme)
    raise InvalidInput(f"unknown store {shown(shown_url(url), max_length=120)}", expected=_URLS)


def store_file(url: str) -> Path | None:
    """Return the file that a URL names, or None for a store without a file."""
    if _is_path(url):
        return _expanded(url)
    return _path_of(url) if urlsplit(url).scheme == "sqlite" else None


def _is_path(url: str) -> bool:
    return url.endswith(".db") and "://" not in url and not url.startswith("sqlite:")


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    # The bytes of the name, whatever the locale is.
    path = fsdecode(unquote_to_bytes(parts.path.encode("utf-8", "surrogateescape")))
    # A bare `#` or a NUL would cut the name: refuse it instead of opening another file.
    if parts.netloc or parts.fragment or "\0" in path or "://" not in url or path in ("", "/"):
        raise InvalidInput(f"store {shown(shown_url(url), max_length=120)} does not name a file", expected=_URLS)
    return _expanded(path[1:])


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInput(f"the folder of {shown(path, max_length=120)} is unknown: {error}", expected=_URLS) from None


def _is_read_only(url: str) -> bool:
    options = parse_qs(urlsplit(url).query, keep_blank_values=True)
    if any(name != "mode" or value not in (["ro"], ["rw"]) for name, value in options.items()):
        raise InvalidInput(f"store {shown(shown_url(url), max_length=120)} has unknown options", expected="none, or ?mode=ro")
    return options.get("mode") == ["ro"]
