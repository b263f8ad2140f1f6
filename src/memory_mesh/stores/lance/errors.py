"""Errors of the system and of Lance, as errors of the store."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EDQUOT, EFBIG, ENAMETOOLONG, ENOSPC, EPERM, EROFS
from pathlib import Path

import pyarrow as pa

from memory_mesh.core.errors import StoreCorrupt, StoreError, StoreMissing, StoreUnavailable
from memory_mesh.stores.files import store_error

# Lance raises its errors as these. A panic in it is not an `Exception`.
LANCE_ERRORS = (OSError, ValueError, RuntimeError, pa.ArrowException)
_QUOTED = (ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, EROFS, ENAMETOOLONG)
_STATUS, _CODE = re.compile(r"status code: (\d{3})"), re.compile(r"<Code>(\w{1,60})</Code>")


class Superseded(Exception):
    """Another writer wrote first; what was decided must be decided again."""


@contextmanager
def translated(place: Path | str, errors: type[Exception] | tuple[type[Exception], ...] = LANCE_ERRORS) -> Iterator[None]:
    """Raise errors as those of the store. `place` is the folder or the table that they name."""
    try:
        yield
    except errors as error:
        if "S3 error" in str(error) or "Error performing" in str(error):
            raise remote_error(place, error) from None
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


def remote_error(place: Path | str, error: Exception) -> StoreError:
    """Return the error of a store in a bucket. The server's own text may contain keys and signatures, so it is not quoted."""
    status, code = _STATUS.search(str(error)), _CODE.search(str(error))
    why = code[1] if code else f"status {status[1]}" if status else "no response"
    if code and code[1] == "NoSuchBucket":
        return StoreMissing(f"the bucket of {place} does not exist", remedy="create it; a store does not create buckets")
    if status and status[1] in ("401", "403"):
        remedy = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do in the bucket"
        return StoreUnavailable(f"the server of {place} refuses the request: {why}", remedy=remedy)
    remedy = "check the endpoint, the region and the network; then try again"
    return StoreUnavailable(f"the server of {place} failed: {why}", remedy=remedy)
