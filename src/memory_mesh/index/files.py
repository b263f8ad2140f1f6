"""The place of index files, and how they are deleted. A file contains words and vectors, so erasing deletes it first.

Does not need numpy: a command that erases does not search.
"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from memory_mesh.core.errors import StoreUnavailable

_SUFFIX, _PARTIAL = ".index", ".part"


def file_of(folder: Path, partition: str) -> Path:
    """Return the index file of a partition; its name does not reveal the partition."""
    return folder / (sha256(partition.encode()).hexdigest()[:32] + _SUFFIX)


def forget(folder: Path | None, partitions: Iterable[str]) -> None:
    """Delete the index files of these partitions, partly written ones included."""
    if folder is None:
        return
    for partition in partitions:
        path = file_of(folder, partition)
        for file in (path, *folder.glob(f"{path.stem}*{_PARTIAL}")):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise StoreUnavailable(f"cannot delete {file}: {error.strerror}", remedy="delete it by hand") from error


def write(path: Path, parts: Iterable[bytes | memoryview]) -> bool:
    """Replace a file atomically; return False if that fails."""
    partial = path.with_name(f"{path.stem}-{secrets.token_hex(8)}{_PARTIAL}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:  # a full disk, a deleted or read-only folder: the file only makes the next start faster
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True
