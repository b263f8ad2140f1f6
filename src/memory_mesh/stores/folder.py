"""A folder on a disk: its files in a stable order, and their bytes. Nothing outside of it is read, and nothing hidden."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake.files import Selection
from memory_mesh.core.ports import Listed

# Opening a pipe would wait for whoever writes to it; a link is resolved, and looked at, before it is opened.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_OUT = "it leads out of the folder"


class DiskFolder:
    """The folder at a path."""

    def __init__(self, path: str) -> None:
        self._root = _folder(path)

    @property
    def root(self) -> str:
        return Path(self._root).as_posix()

    def files(self, selection: Selection) -> Iterator[Listed]:
        """The files of a folder by name, then those of the folders in it, in turn."""
        waiting = [""]
        while waiting:
            inside = waiting.pop()
            try:
                entries = self._entries(inside)
            except OSError as error:
                yield Listed(inside, f"it cannot be read: {error.strerror}")
                continue
            deeper = [
                f"{inside}{entry.name}/" for entry in entries if selection.recursive and entry.is_dir(follow_symlinks=False)
            ]
            waiting += reversed(deeper)
            for entry in entries:
                yield from self._listed(entry, inside + entry.name, selection)

    def read(self, source: str, *, max_bytes: int) -> bytes:
        try:
            path = os.path.realpath(os.path.join(self._root, source), strict=True)
            if not self._holds(path):
                raise InvalidInput(_OUT)
            with open(os.open(path, _FLAGS), "rb") as file:
                if not S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise InvalidInput("it is no regular file")
                data = file.read(max_bytes + 1)
        except OSError as error:
            raise InvalidInput(f"it cannot be read: {error.strerror}") from error
        if len(data) > max_bytes:
            raise InvalidInput(
                "it is too long", expected=f"at most {max_bytes:,} bytes", remedy="split it, or raise `max_content_chars`"
            )
        return data

    def _entries(self, inside: str) -> list["os.DirEntry[str]"]:
        with os.scandir(os.path.join(self._root, inside)) as found:
            return sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda entry: entry.name)

    def _listed(self, entry: "os.DirEntry[str]", source: str, selection: Selection) -> Iterator[Listed]:
        if entry.is_symlink():
            yield from self._link(entry.path, source, selection)
        elif selection.covers(source) and not entry.is_dir():
            yield Listed(source, _unnameable(source) or (None if entry.is_file() else "it is no regular file"))

    def _link(self, path: str, source: str, selection: Selection) -> Iterator[Listed]:
        """A link to a file within the folder is read like a file. One to a folder within it is passed over: what lies there is
        read at its own place."""
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            if selection.covers(source):
                yield Listed(source, f"it is a link that leads nowhere: {error.strerror}")
            return
        if not os.path.isdir(real):
            if selection.covers(source):
                yield Listed(source, _unnameable(source) or (None if self._holds(real) else _OUT))
        elif selection.recursive and _within(path, real):
            yield Listed(f"{source}/", "it leads back to a folder that it lies in")
        elif selection.recursive and not self._holds(real):
            yield Listed(f"{source}/", _OUT)

    def _holds(self, real: str) -> bool:
        return _within(real, self._root)


def _folder(path: str) -> str:
    expanded = os.path.expanduser(path)
    try:
        real = os.path.realpath(expanded, strict=True)
        os.scandir(real).close()
    except NotADirectoryError:
        raise InvalidInput(f"{path!r:.200} is a file", expected="a folder") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"the folder {path!r:.200} cannot be read: {why}", expected="a folder") from None
    return real


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _unnameable(source: str) -> str | None:
    try:
        source.encode()
    except UnicodeEncodeError:
        return "its name is no UTF-8 text"
    return None
