"""Where the index of a partition lies between two runs. A file holds words and vectors, so whoever erases removes it first.

Nothing here needs numpy: a command that erases does not search.
"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from memory_mesh.core.errors import StoreUnavailable

_SUFFIX, _PART = ".index", ".part"


def file_of(folder: Path, partition: str) -> Path:
    """The file of a partition; its name tells nobody whose it is."""
    return folder / (sha256(partition.encode()).hexdigest()[:32] + _SUFFIX)


def forget(folder: Path | None, partitions: Iterable[str]) -> None:
    """Remove what lies in files of these partitions, half-written ones too."""
    if folder is None:
        return
    for partition in partitions:
        path = file_of(folder, partition)
        for found in (path, *folder.glob(f"{path.stem}*{_PART}")):
            try:
                found.unlink(missing_ok=True)
            except OSError as error:
                raise StoreUnavailable(f"{found} cannot be removed: {error.strerror}", remedy="remove it by hand") from error


def write(path: Path, parts: Iterable[bytes | memoryview]) -> bool:
    """Write a file whole, in the place of what was there; False where that cannot be done."""
    part = path.with_name(f"{path.stem}-{secrets.token_hex(8)}{_PART}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:  # a full disk, a folder that went, one that is for reading only: it is but a file to start faster with
        with suppress(OSError):
            part.unlink(missing_ok=True)
        return False
    return True
