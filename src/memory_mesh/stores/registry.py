"""URLs and paths of stores: parse them, and open the store that one names."""

import re
from os import fsdecode, fsencode
from os.path import isdir
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import parse_qs, parse_qsl, quote, unquote, unquote_to_bytes, urlsplit

from memory_mesh.core import errors
from memory_mesh.core.errors import (
    InvalidInput,
    MemoryMeshError,
    SettingsError,
    StoreUnavailable,
    missing_parts,
    not_installed,
    shown,
)
from memory_mesh.core.ports import STORE_PARTS, Step, Store, StoreFile, no_step
from memory_mesh.core.text import shown_url

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

    from memory_mesh.stores.json import JsonStore
    from memory_mesh.stores.lance import LanceStore
    from memory_mesh.stores.lance.s3 import Bucket, BucketStore
    from memory_mesh.stores.postgres import PostgresStore
    from memory_mesh.stores.sqlite import SqliteStore


_URLS = (
    "a file such as memory.db or ./memory, sqlite:///relative.db, sqlite:////absolute.db, "
    "lancedb:///folder, json:///folder, s3://bucket/prefix, postgresql://user@host/database, "
    "supabase://host/, or memory://"
)
_FILES = ("sqlite", "lancedb", "json")  # the schemes of stores with files
_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def open_store(
    url: str,
    *,
    folder: Path | None = None,
    busy_seconds: float = 30.0,
    key: str | None = None,
    step: Step = no_step,
) -> Store:
    """Open the store that a URL or a path names. No file is created: the first write does.

    Relative paths start at `folder`, by default the working folder. `key` is that of a Supabase
    store.
    """
    url = normal_url(url)
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        from memory_mesh.stores.ram import RamStore

        return RamStore()
    if scheme in _FILES:
        path, read_only = Path(folder or "", _path_of(url)), is_read_only(url)
        return _file_store(scheme, path, url)(
            path,
            read_only=read_only,
            busy_seconds=busy_seconds,
            step=step,
            url=url,
        )
    if scheme in ("postgresql", "postgres"):
        return postgres_store()(url, busy_seconds=busy_seconds, step=step)
    if scheme == "s3":
        bucket, read_only = _bucket_of(url), is_read_only(url, "endpoint", "region")
        return bucket_store()(
            bucket,
            read_only=read_only,
            busy_seconds=busy_seconds,
            step=step,
            url=url,
        )
    if scheme == "supabase":
        return _supabase_store(url, key, busy_seconds, step)
    if scheme and (store := open_package_store(url, scheme)):
        return store
    added = "".join(f", {name}://" for name in schemes())
    what = f"unknown store {shown(shown_url(url), max_length=120)}"
    raise InvalidInput(
        what, expected=_URLS + (f"; of installed packages{added[1:]}" if added else "")
    )


def _file_store(
    scheme: str, path: Path, url: str
) -> "type[SqliteStore] | type[LanceStore] | type[JsonStore]":
    if scheme == "lancedb":
        return lance_store()
    if scheme == "json":
        from memory_mesh.stores.json import JsonStore

        return JsonStore
    # Not `path.is_dir()`, which raises for a name that is too long or a folder without access.
    if isdir(path):
        raise InvalidInput(
            f"store {shown(shown_url(url), max_length=120)} is a folder", expected="a file in it"
        )
    from memory_mesh.stores.sqlite import SqliteStore

    return SqliteStore


def is_store_file(store: Store) -> TypeGuard[StoreFile]:
    """Return whether this is a store of ours with files."""
    if store.url.startswith(("json:", "lancedb:", "s3:")):
        from memory_mesh.stores.journal import JournalStore

        return isinstance(store, JournalStore)
    if store.url.startswith(("postgresql:", "postgres:")):
        return isinstance(store, postgres_store())
    from memory_mesh.stores.sqlite import SqliteStore

    return isinstance(store, SqliteStore)


def lance_store() -> "type[LanceStore]":
    """Return the class of the LanceDB store, or raise `StoreUnavailable` if its packages are not
    installed."""
    try:
        from memory_mesh.stores.lance import LanceStore
    except ModuleNotFoundError as error:
        raise not_installed(StoreUnavailable, error.name, "lance") from error
    return LanceStore


def postgres_store() -> "type[PostgresStore]":
    """Return the class of the PostgreSQL store, or raise `StoreUnavailable` if its packages are
    not installed."""
    try:
        from memory_mesh.stores.postgres import PostgresStore
    except ImportError as error:
        raise not_installed(StoreUnavailable, error.name, "postgres") from error
    return PostgresStore


def bucket_store() -> "type[BucketStore]":
    """Return the class of the store in a bucket, or raise `StoreUnavailable` if its packages are
    not installed."""
    try:
        from memory_mesh.stores.lance.s3 import BucketStore
    except ModuleNotFoundError as error:
        raise not_installed(StoreUnavailable, error.name, "s3") from error
    return BucketStore


def _bucket_of(url: str) -> "Bucket":
    bucket_store()
    from memory_mesh.stores.lance.s3 import Bucket

    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    endpoint = options.get("endpoint")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", parts.netloc) or parts.fragment:
        expected = (
            "s3://bucket/prefix; the keys are read from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
        raise InvalidInput("the URL of the store does not name a bucket", expected=expected)
    if endpoint is not None and (
        not endpoint.startswith(("http://", "https://")) or "@" in endpoint
    ):
        raise InvalidInput(
            "the endpoint of the store is not a URL",
            expected="such as endpoint=https://s3.example.org",
        )
    prefix = unquote(parts.path).strip("/")
    return Bucket(parts.netloc, prefix, endpoint=endpoint, region=options.get("region"))


def _supabase_store(url: str, key: str | None, busy_seconds: float, step: Step) -> Store:
    try:
        from memory_mesh.stores.supabase import SupabaseStore
    except ModuleNotFoundError as error:
        raise not_installed(StoreUnavailable, error.name, "supabase") from error
    if not key:
        raise SettingsError(
            "a Supabase store needs a key", remedy="set SUPABASE_KEY or the option store_key"
        )
    return SupabaseStore(url, key, busy_seconds=busy_seconds, step=step)


def normal_url(given: str) -> str:
    """Return the URL of a store that is given as a path; a URL, or what is neither, is returned
    as it is."""
    # A bare word without a suffix of ours may be a mistake, such as `sqlite`.
    is_url = "://" in given or given.startswith(("sqlite:", "memory:"))
    if not is_url and (given.endswith(_SUFFIXES) or "/" in given or "\\" in given):
        return path_url(given)
    try:
        urlsplit(given)
    except ValueError:  # it may contain a password, so it is not quoted
        raise InvalidInput(
            "the URL of the store cannot be read: its host has an unpaired bracket", expected=_URLS
        ) from None
    return given


def path_url(path: str) -> str:
    """Return the URL of the store in a file."""
    return f"sqlite:///{quote(fsencode(errors.path('store', path)))}"


def store_file(url: str) -> Path | None:
    """Return the file or folder that a URL or a path names, or None for a store without files."""
    url = normal_url(url)
    return _path_of(url) if urlsplit(url).scheme in _FILES else None


def is_read_only(url: str, *allowed: str) -> bool:
    """Return whether a URL opens its store for reading only. Other options than the allowed ones
    are refused."""
    options = parse_qs(urlsplit(url).query, keep_blank_values=True)
    if any(
        value not in (["ro"], ["rw"]) if name == "mode" else name not in allowed
        for name, value in options.items()
    ):
        place, expected = (
            shown(shown_url(url.partition("?")[0]), max_length=120),
            ", ".join(("?mode=ro", *allowed)),
        )
        raise InvalidInput(f"store {place} has unknown options", expected=f"none, or {expected}")
    return options.get("mode") == ["ro"]


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    try:
        # The bytes of the name, whatever the locale is.
        path = fsdecode(unquote_to_bytes(parts.path.encode("utf-8", "surrogateescape")))
    except UnicodeEncodeError:
        path = ""  # half a surrogate pair that stands for no byte
    # A bare `#` or a NUL would cut the name: refuse it instead of opening another file.
    if (
        parts.netloc
        or parts.fragment
        or "\0" in path
        or "://" not in url
        or path.endswith("/")
        or not path
    ):
        raise InvalidInput(
            f"store {shown(shown_url(url), max_length=120)} does not name a file", expected=_URLS
        )
    try:
        return Path(path[1:]).expanduser()
    except RuntimeError as error:
        raise InvalidInput(
            f"the folder of {shown(path[1:], max_length=120)} is unknown: {error}", expected=_URLS
        ) from None


# --- stores of other packages ---
# An entry point of the group `memory_mesh.stores` adds a URL scheme. Its name is the scheme, and
# its object a function that opens the store of a URL. A package is imported when a URL of its
# scheme is opened, not before. Schemes of ours are not looked up here, so no package can replace a
# store of ours.

GROUP = "memory_mesh.stores"


def schemes() -> list[str]:
    """Return the schemes that installed packages add. No package is imported."""
    return sorted({entry.name for entry in _installed()})


def open_package_store(url: str, scheme: str) -> Store | None:
    """Open a store with the package that added the scheme, or return None if there is no such
    package."""
    found = [*_installed(scheme)]
    if not found:
        return None
    if len(found) > 1:
        what = f"several packages add {scheme}://: {', '.join(sorted(map(_package, found)))}"
        raise StoreUnavailable(what, remedy="uninstall all but one")
    (entry,) = found
    opener = f"{entry.value} of the package {_package(entry)}, which adds {scheme}://,"
    try:
        store = entry.load()(url)
    except MemoryMeshError:
        raise
    except Exception as error:  # code of others may raise anything
        why = f"{type(error).__name__}: {error}".replace(url, shown_url(url))
        raise StoreUnavailable(
            f"{opener} failed with {why}", remedy="repair or update the package"
        ) from error
    if missing := missing_parts(store, STORE_PARTS):
        what = f"{opener} returned {shown(store)}, which lacks {', '.join(missing)}"
        raise StoreUnavailable(
            what,
            expected="an object of memory_mesh.core.ports.Store",
            remedy="repair or update the package",
        )
    return store  # type: ignore[no-any-return]


def _installed(scheme: str | None = None) -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # it loads the package `email`

    return entry_points(group=GROUP, name=scheme) if scheme else entry_points(group=GROUP)


def _package(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist else "(unknown)"
