"""Files on disk: private files and folders, locks, the key of pseudonyms, and stores in a folder.

A folder of `ingest-dir` is read in a stable order. Hidden files, and links that lead out of the
folder, are never read.
"""

import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EEXIST, EFBIG, ENOSPC, ENOTDIR, EPERM, EROFS
from glob import escape
from itertools import chain, repeat
from pathlib import Path
from stat import S_ISREG

from memory_mesh.core.errors import (
    InvalidInput,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreReplaced,
    StoreUnavailable,
    shown,
)  # fmt: skip
from memory_mesh.core.intake import Selection
from memory_mesh.core.model.background import check_cancelled, wait
from memory_mesh.core.ports import Listed, Progress
from memory_mesh.system import open_regular

# Links are resolved and checked first, so a link means a race: refuse it.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_SURROGATE = re.compile("[\ud800-\udfff]")  # in place of a byte of a name that is not valid UTF-8
OUT = "it leads out of the folder"

KEY_FILE = "pseudonym.key"
_KEY_BYTES = 32
_PART_DIGITS = 16
# Seconds between attempts to lock; the last one repeats.
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
_FULL, _READ_ONLY = (ENOSPC, EDQUOT, EFBIG), (EACCES, EPERM, EROFS)
_READ_AT_ONCE = 8 * 1024 * 1024


# --- reading ---
# Another process may remove a file at any moment: ask once, and let the answer say that it is gone.


def stat_of(path: Path | str) -> os.stat_result | None:
    """Return what the system knows of a file or folder, or None if there is none. Raises
    `OSError`."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.stat(path)
    return None


def read_if_any(path: Path) -> bytes | None:
    """Return the content of a regular file, or None if there is none. Raises `OSError`."""
    with suppress(FileNotFoundError, NotADirectoryError), open_regular(path) as file:
        return file.read()
    return None


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it does not exist. Raises `OSError`."""
    with suppress(FileNotFoundError):
        return sorted(os.listdir(folder))
    return []


def files_under(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files of a folder and of those inside it, sorted. `Path.rglob` fails if a
    folder is removed meanwhile.

    Raises `OSError` for a folder that cannot be read.
    """

    def check(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    for place, folders, names in os.walk(folder, onerror=check):
        folders.sort()
        for path in (Path(place, name) for name in sorted(names)):
            if (found := stat_of(path)) and S_ISREG(found.st_mode):
                yield path, found


# --- writing ---


def create_folder(folder: Path) -> None:
    """Create a folder and the missing ones above it, each durable and for its owner only. Raises
    `OSError`."""
    for one in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        with suppress(FileExistsError):  # another process was faster
            one.mkdir(mode=0o700)
            sync(one.parent)
    if not folder.is_dir():
        raise NotADirectoryError(ENOTDIR, "a file, or a link that leads nowhere, is in the way")


def create_file(path: Path) -> None:
    """Create an empty file for its owner only, unless it exists. Follows no link that leads
    nowhere. Raises `OSError`."""
    create_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        _refuse_broken_link(path)


def create_once(path: Path, data: bytes) -> None:
    """Create a private file with its whole content, durable and at once, unless it exists.
    Raises `OSError`."""
    with suppress(FileExistsError), whole_file(path) as part:
        part.write_bytes(data)
    _refuse_broken_link(path)


def remove_parts(path: Path) -> None:
    """Remove what processes that died left of a file. One that still writes it raises
    `FileNotFoundError` at its end."""
    for part in path.parent.glob(f".{escape(path.name)}.{'[0-9a-f]' * _PART_DIGITS}"):
        with suppress(OSError):  # of another user
            part.unlink()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield an empty private file to write; at the end, make it durable and give it its name.
    Raises `OSError`.

    A file that exists is never replaced: `FileExistsError`.
    """
    if os.path.lexists(path):
        raise FileExistsError(EEXIST, "it exists")
    create_folder(path.parent)
    part = path.with_name(f".{path.name}.{secrets.token_hex(_PART_DIGITS // 2)}")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield part
        sync(part)
        os.link(part, path)  # atomic, and never replaces an existing file
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def replace_file(path: Path, data: bytes, *, unless: Callable[[], bool] = lambda: False) -> bool:
    """Replace a file as a whole, or create it for its owner only, durable when this returns. Raises
    `OSError`.

    A file that exists keeps its permissions. `unless` is asked last: if it returns True, the file
    stays as it is, and this returns False.
    """
    remove_parts(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(_PART_DIGITS // 2)}")
    try:
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
        with suppress(FileNotFoundError):
            part.chmod(path.stat().st_mode & 0o777)
        sync(part)
        if unless():
            return False
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)
    return True


def append_durably(opened: int, data: bytes) -> None:
    """Append to a file that is open for appending, durable when this returns. If it fails, the file
    is as it was.

    Raises `OSError`.
    """
    size, written = os.fstat(opened).st_size, 0
    try:
        while written < len(data):  # a disk that is nearly full takes a part
            written += os.write(opened, data[written:])
        os.fsync(opened)
    except OSError:
        with suppress(OSError):
            if os.fstat(opened).st_size == size + written:  # another process may have appended too
                os.ftruncate(opened, size)
        raise


def copy_folder(files: Sequence[Path], source: Path, target: Path, progress: Progress) -> int:
    """Copy files of a folder to a new one, durably; it gets its name when it is complete.
    Returns its size. Raises `OSError`."""
    create_folder(target.parent)
    part = target.with_name(f".{target.name}.{secrets.token_hex(_PART_DIGITS // 2)}")
    size = 0
    try:
        for done, path in enumerate(files):
            check_cancelled()
            progress("backing up", done, len(files))
            copy = part / path.relative_to(source)
            create_folder(copy.parent)
            create_file(copy)
            shutil.copyfile(path, copy)
            sync(copy)
            size += copy.stat().st_size
        for folder in {path.parent for path in part.rglob("*")}:
            sync(folder)
        os.rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    sync(target.parent)
    return size


def store_error(place: Path | str, number: int) -> StoreError:
    """Return the error of a store for an error number of the system."""
    if number in _FULL:
        return StoreFull(
            f"{place} cannot grow: the disk is full", remedy="free some space; nothing was changed"
        )
    if number in _READ_ONLY:
        return StoreReadOnly(f"{place} is not writable", remedy="check its permissions")
    what = f"{str(place)[:200]} could not be read or written: {os.strerror(number)}"
    return StoreUnavailable(what, remedy="check the path, the disk and its free space")


def sync(path: Path) -> None:
    """Write what the system still has in memory of a file or folder to the disk. Raises
    `OSError`."""
    is_folder = path.is_dir()
    try:
        opened = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    except PermissionError:
        if is_folder:  # Windows opens no folders
            return
        raise
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def lock_file(path: Path, *, seconds: float) -> Iterator[bool]:
    """Hold the lock of a file, which is created; yield False if others have it for so long. It ends
    with the process.

    Raises `OSError`.
    """
    opened, until = os.open(path, os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + seconds
    try:
        is_locked = _try_lock(opened)
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            if is_locked or time.monotonic() >= until:
                break
            wait(pause)
            is_locked = _try_lock(opened)
        try:
            yield is_locked
        finally:
            if is_locked:
                _unlock(opened)
    finally:
        os.close(opened)


_try_lock: Callable[[int], bool]
_unlock: Callable[[int], None]
if sys.platform == "win32":
    import msvcrt

    def _try_lock(opened: int) -> bool:
        try:
            msvcrt.locking(opened, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(opened: int) -> None:
        os.lseek(opened, 0, os.SEEK_SET)
        msvcrt.locking(opened, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try_lock(opened: int) -> bool:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(opened: int) -> None:
        # Also for the child of a fork that inherited the descriptor.
        fcntl.flock(opened, fcntl.LOCK_UN)


def find_bytes(descriptor: int, samples: Collection[bytes]) -> set[bytes]:
    """Return which samples, of at least eight bytes each, occur in an open file, which is read in
    pieces.

    Every place is compared with the beginnings of all samples at once, so the time hardly depends
    on their number.
    """
    import numpy as np  # slow to load, and only this function needs it

    by_start: dict[bytes, list[bytes]] = {}
    for sample in samples:
        by_start.setdefault(sample[:8], []).append(sample)
    starts, overlap = np.frombuffer(b"".join(by_start), "<u8"), max(map(len, samples)) - 1
    found: set[bytes] = set()
    at, text = 0, b""
    while piece := os.pread(descriptor, _READ_AT_ONCE, at):
        at, text = at + len(piece), text[-overlap:] + piece
        for shift in range(min(8, len(text) - 7)):
            words = np.frombuffer(text, "<u8", (len(text) - shift) // 8, shift)
            places = np.nonzero(np.isin(words, starts))[0] * 8 + shift
            found |= {
                one
                for place in places.tolist()
                for one in by_start[text[place : place + 8]]
                if text.startswith(one, place)
            }
    return found


def _refuse_broken_link(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise FileExistsError(EEXIST, "it is a link that leads nowhere")


class DiskFolder:
    """The folder at a path; implements `core.ports.Folder`."""

    def __init__(self, path: str) -> None:
        try:
            self._root = os.path.realpath(os.path.expanduser(path), strict=True)
            os.scandir(self._root).close()
        except NotADirectoryError:
            raise InvalidInput(
                f"{shown(path, max_length=200)} is a file", expected="a folder"
            ) from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            why = error.strerror if isinstance(error, OSError) else error
            raise InvalidInput(
                f"the folder {shown(path, max_length=200)} cannot be read: {why}",
                expected="a folder",
            ) from None

    @property
    def root(self) -> str:
        return Path(self._root).as_posix()

    def files(self, selection: Selection) -> Iterator[Listed]:
        """Yield the files of a folder by name, then the files of each folder inside it."""
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, folder)) as found:
                    entries = sorted(
                        (entry for entry in found if not entry.name.startswith(".")),
                        key=lambda entry: entry.name,
                    )
            except FileNotFoundError:  # removed meanwhile
                continue
            except OSError as error:
                yield Listed(folder, f"it cannot be read: {error.strerror}")
                continue
            inner = [
                f"{folder}{entry.name}/"
                for entry in entries
                if selection.recursive and entry.is_dir(follow_symlinks=False)
            ]
            waiting += reversed(inner)
            for entry in entries:
                source = folder + entry.name
                if entry.is_symlink():
                    yield from self._link(entry.path, source, selection)
                elif selection.covers(source) and not entry.is_dir():
                    other = None if entry.is_file() else "it is not a regular file"
                    yield Listed(source, _name_fault(source) or other)

    def read(self, source: str, *, max_bytes: int) -> bytes:
        try:
            path = os.path.realpath(os.path.join(self._root, source), strict=True)
            if not is_within(path, self._root):
                raise InvalidInput(OUT)
            with open_regular(path, flags=_NO_LINK) as file:
                data = file.read(max_bytes + 1)
        except OSError as error:
            raise InvalidInput(f"it cannot be read: {error.strerror}") from error
        if len(data) > max_bytes:
            raise InvalidInput(
                "it is too long",
                expected=f"at most {max_bytes:,} bytes",
                remedy="split it, or raise `max_content_chars`",
            )
        return data

    def _link(self, path: str, source: str, selection: Selection) -> Iterator[Listed]:
        """Treat a link to a file of the folder like a file. Skip a link to a folder inside it,
        which is read at its own place."""
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            if selection.covers(source):
                yield Listed(source, f"it is a broken link: {error.strerror}")
            return
        if not os.path.isdir(real):
            if selection.covers(source):
                yield Listed(
                    source, _name_fault(source) or (None if is_within(real, self._root) else OUT)
                )
        elif selection.recursive and is_within(path, real):
            yield Listed(f"{source}/", "it leads back to a folder that contains it")
        elif selection.recursive and not is_within(real, self._root):
            yield Listed(f"{source}/", OUT)


def is_within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or inside it. Links are not followed."""
    return path == folder or path.startswith(os.path.join(folder, ""))


def _name_fault(source: str) -> str | None:
    return "its name is not valid UTF-8" if _SURROGATE.search(source) else None


def read_key(home: Path) -> bytes | None:
    """Return the pseudonym key of a home folder, or None if there is none."""
    try:
        key = (home / KEY_FILE).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(
            f"{home / KEY_FILE} cannot be read: {error.strerror}", remedy="check its permissions"
        ) from error
    if len(key) < _KEY_BYTES:
        raise SettingsError(
            f"{home / KEY_FILE} has {len(key)} bytes",
            expected=f"{_KEY_BYTES}",
            remedy="restore a backup",
        )
    return key


def make_key(home: Path) -> bytes:
    """Return the pseudonym key, and create it if there is none. Two processes that create it at
    once use the same key."""
    try:
        create_once(home / KEY_FILE, secrets.token_bytes(_KEY_BYTES))
    except OSError as error:
        raise SettingsError(
            f"{home / KEY_FILE} cannot be created: {error.strerror}", remedy="check the folder"
        ) from error
    key = read_key(home)
    return key if key is not None else make_key(home)


# --- stores ---


@contextmanager
def locked(root: Path, lock: Path, *, busy_seconds: float) -> Iterator[None]:
    """Hold the lock that every writer of any process takes. Raises `StoreBusy` if it is not free
    in time."""
    with lock_file(lock, seconds=busy_seconds) as is_locked:
        if not is_locked:
            raise StoreBusy(
                f"{root} is locked by another process",
                remedy="try again, or stop the process that holds it",
            )
        yield


def missing(place: Path | str) -> StoreMissing:
    """Return the error for a store that does not exist."""
    return StoreMissing(
        f"the store {place} does not exist",
        remedy="check the name; without must_exist and mode=ro, `memory-mesh store`, `mesh.add` or "
        "`mesh.init` create it",
    )


def replaced(place: Path, how: str) -> StoreReplaced:
    """Return the error for a file or folder that is not the one that was opened."""
    return StoreReplaced(
        f"{place} was {how} while it was open",
        remedy="nothing was written; close the store and open it again",
    )


def check_permission(path: Path) -> None:
    """Raise `StoreReadOnly` if there is a file or folder that may not be written to."""
    # In this order: others may create it meanwhile.
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise StoreReadOnly(f"{path} is not writable", remedy="check its permissions")
