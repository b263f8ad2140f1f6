"""Stores of other packages: an entry point of the group `memory_mesh.stores` adds a URL scheme.

Its name is the scheme, and its object a function that opens the store of a URL. A package is imported when a URL of its scheme is
opened, not before. Schemes of ours are not looked up here, so no package can replace a store of ours.
"""

from importlib.metadata import EntryPoint
from importlib.metadata import entry_points as installed

from memory_mesh.core.checks import missing_parts
from memory_mesh.core.errors import MemoryMeshError, StoreUnavailable, shown
from memory_mesh.core.ports import STORE_PARTS, Store
from memory_mesh.core.text import shown_url

GROUP = "memory_mesh.stores"


def schemes() -> list[str]:
    """Return the schemes that installed packages add. No package is imported."""
    return sorted({entry.name for entry in installed(group=GROUP)})


def open_store(url: str, scheme: str) -> Store | None:
    """Open a store with the package that added the scheme, or return None if there is no such package."""
    found = [*installed(group=GROUP, name=scheme)]
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
        raise StoreUnavailable(f"{opener} failed with {why}", remedy="repair or update the package") from error
    if missing := missing_parts(store, STORE_PARTS):
        what = f"{opener} returned {shown(store)}, which lacks {', '.join(missing)}"
        raise StoreUnavailable(what, expected="an object of memory_mesh.core.ports.Store", remedy="repair or update the package")
    return store  # type: ignore[no-any-return]


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "(unknown)"
