"""The last failure of a hook: a line in the home folder, which `memory-mesh doctor` shows. A hook that works again removes it."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.settings import home_folder
from memory_mesh.stores.files import create_file

FILE = "host-fault.txt"


def record(hook: str, what: str) -> None:
    """Write the failure of a hook. If that is not possible, nothing is recorded."""
    with suppress(OSError, MemoryMeshError):
        create_file(path := _path())
        path.write_text(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {hook}: {what}\n", encoding="utf-8")


def clear(hook: str) -> None:
    """Remove the failure if it is one of this hook."""
    if f" {hook}: " in last():
        with suppress(OSError):
            _path().unlink()


def last() -> str:
    """Return the last failure, or an empty text."""
    with suppress(OSError, MemoryMeshError):
        return _path().read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _path() -> Path:
    return home_folder() / FILE
