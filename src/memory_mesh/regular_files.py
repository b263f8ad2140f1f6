"""Open a file that somebody named. What is not a regular file is refused: a pipe might never answer, and a device never end."""

import os
import re
from errno import EINVAL, EISDIR
from io import BufferedReader
from stat import S_ISDIR, S_ISREG

# Opening a pipe must not wait for its writer, and a terminal must not become that of the process.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))
_OPENED = re.compile("/dev/(?:stdin|fd/[0-9]{1,9})")


def open_regular(path: "str | os.PathLike[str]", *, flags: int = 0, typed: bool = False) -> BufferedReader:
    """Open a regular file for reading. Raises `OSError`, also if it is a pipe, a device or a folder.

    A path that somebody `typed` may name a pipe that the shell has opened: `<(zcat export.gz)`.
    """
    if typed and _OPENED.fullmatch(os.fspath(path)):
        return open(path, "rb")
    _check(os.stat(path))  # opening some devices does something
    opened = os.open(path, _FLAGS | flags)
    try:
        _check(os.fstat(opened))  # it may have been replaced
        return open(opened, "rb")
    except OSError:
        os.close(opened)
        raise


def _check(found: os.stat_result) -> None:
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not S_ISREG(found.st_mode):
        raise OSError(EINVAL, "it is not a regular file")
