"""Errors of the system and of Lance, as errors of the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EFBIG, ENAMETOOLONG, ENOSPC, EPERM, EROFS
from pathlib import Path

import pyarrow as pa

from memory_mesh.core.errors import StoreCorrupt
from memory_mesh.stores.files import store_error

# Lance raises its errors as these. A panic in it is not an `Exception`.
LANCE_ERRORS = (OSError, ValueError, RuntimeError, pa.ArrowException)
_QUOTED = (ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, EROFS, ENAMETOOLONG)


@contextmanager
def translated(place: Path | str, errors: type[Exception] | tuple[type[Exception], ...] = LANCE_ERRORS) -> Iterator[None]:
    """Raise errors as those of the store. `place` is the folder or the table that they name."""
    try:
        yield
    except errors as error:
        number = _number(error)
        if number:
            raise store_error(place, number) from error
        why = str(error).partition(", /")[0][:200]  # without the place in the source of Lance
        raise StoreCorrupt(f"{place} is damaged: {why}", remedy="restore a backup; nothing was changed") from error


def _number(error: Exception) -> int | None:
    """Return the error number of the system. Lance has none in its errors, but quotes those of the system."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    return next((one for one in _QUOTED if f"(os error {one})" in str(error)), None)
