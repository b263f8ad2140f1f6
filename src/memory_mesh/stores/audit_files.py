"""The files of the audit chains outside the store: anchors and signing keys."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from stat import S_IMODE, S_ISREG

from memory_mesh.core.audit.chain import KEY_BYTES, SigningKey
from memory_mesh.core.errors import InvalidInput, SettingsError
from memory_mesh.core.model import Json
from memory_mesh.stores.files import append_durably, create_once, sync
from memory_mesh.system import open_regular

# --- anchors ---
# One line of JSON for each time the heads were written, appended and never changed.

_START = b'{"anchored_at": "'
_EXPECTED = "a new file outside the store, or a file of memory-mesh audit anchor"
# Opening a pipe must not wait for its reader.
_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class AnchorFile:
    """The anchors in a file; implements `core.ports.AnchorLog`. It refuses to write to a file or
    folder in `store_files`."""

    def __init__(self, path: str, *, store_files: Sequence[Path] = ()) -> None:
        self._path = Path(path).expanduser()
        self._store_files = [os.path.realpath(file) for file in store_files]

    def write(self, record: Mapping[str, Json]) -> None:
        """Append a record. It is durable when the call returns."""
        line = json.dumps(dict(record)).encode("ascii") + b"\n"
        real = os.path.realpath(self._path)
        if any(
            real == file or real.startswith((f"{file}-", f"{file}{os.sep}"))
            for file in self._store_files
        ):
            raise self._refusal("it belongs to the store")
        try:
            if self._path.is_symlink() and not self._path.exists():
                raise self._refusal("it is a link to a file that does not exist")
            with open(os.open(self._path, _FLAGS | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
                self._check(file.fileno(), file.read(len(_START)))
                is_new = not os.fstat(file.fileno()).st_size
                append_durably(file.fileno(), line)
            if is_new:
                sync(self._path.parent)
        except OSError as error:
            raise self._refusal(str(error.strerror)) from error

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file."""
        try:
            with TextIOWrapper(open_regular(self._path, typed=True), "utf-8-sig") as file:
                yield from file
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InvalidInput(
                f"{str(self._path)[:200]} cannot be read: {reason}",
                expected="a file of memory-mesh audit anchor",
            ) from None

    def _check(self, file: int, start: bytes) -> None:
        if not S_ISREG(os.fstat(file).st_mode):
            raise self._refusal("it is not a regular file")
        if start not in (b"", _START):
            raise self._refusal("it has other contents than anchors")

    def _refusal(self, why: str) -> InvalidInput:
        return InvalidInput(
            f"the anchor cannot be written to {str(self._path)[:200]}: {why}", expected=_EXPECTED
        )


# --- signing keys ---
# One key on each line in hexadecimal digits, the last one is current. Earlier keys stay, so that
# older proofs can be checked. Only its owner may read the file. The first durable write creates it;
# a read never does.

_MAX_BYTES = 1024 * 1024
_KEY_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_RESTORE = "restore a backup, or set audit_key_file to another file"


class AuditKeyFile:
    """The keys in a file; implements `core.ports.SigningKeys`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cached: tuple[tuple[int, ...], dict[str, SigningKey]] | None = None

    @property
    def place(self) -> str:
        return str(self._path)

    def by_id(self) -> Mapping[str, SigningKey]:
        """Return the keys by id; empty if there is no file. Raise `SettingsError` for a file
        that cannot be used."""
        try:
            stat = os.stat(self._path)
            if not S_ISREG(stat.st_mode):
                raise self._fault("is not a regular file", _RESTORE)
            if os.name == "posix" and S_IMODE(stat.st_mode) & 0o077:
                raise self._fault("can be read by others", f"run chmod 600 {self._path}")
            state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
            # Another process may add a key at any time.
            if self._cached is None or self._cached[0] != state:
                self._cached = (state, _read(self._path))
        except FileNotFoundError:
            if self._path.is_symlink():
                raise self._fault(
                    "is a link to a file that does not exist",
                    "remove the link, or restore the file",
                ) from None
            return {}
        except OSError as error:
            raise self._fault(f"cannot be read: {error.strerror}", _RESTORE) from error
        except ValueError as error:
            raise self._fault(str(error), _RESTORE) from None
        return self._cached[1]

    def current(self) -> SigningKey:
        """Return the current key, and create the file if there is none. Two processes at once
        agree on one key."""
        if not self.by_id():
            try:
                create_once(self._path, _line())
            except OSError as error:
                raise self._fault(
                    f"cannot be created: {error.strerror}",
                    "check the folder, or set audit_key_file",
                ) from error
        return [*self.by_id().values()][-1]

    def add(self) -> SigningKey:
        """Append a new key, which becomes the current one."""
        self.current()
        line = _line()
        try:
            with open(os.open(self._path, os.O_RDWR | os.O_APPEND), "r+b", buffering=0) as file:
                file.seek(-1, os.SEEK_END)
                # Another process may append too. A part of a line would make the whole file
                # unusable.
                append_durably(file.fileno(), line if file.read(1) == b"\n" else b"\n" + line)
        except OSError as error:
            raise self._fault(
                f"cannot be written: {error.strerror}", "check its permissions"
            ) from error
        return _key(line)

    def _fault(self, what: str, remedy: str) -> SettingsError:
        return SettingsError(f"the audit key file {self._path} {what}", remedy=remedy)


def _read(path: Path) -> dict[str, SigningKey]:
    with open(os.open(path, _KEY_FLAGS), "rb") as file:
        lines = file.read(_MAX_BYTES).split(b"\n")
    keys = [_key(line) for line in lines if line.strip()]
    if not keys:
        raise ValueError("has no key")
    return {key.id: key for key in keys}


def _key(line: bytes) -> SigningKey:
    try:
        secret = bytes.fromhex(line.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise ValueError(f"has a line that is not a key of {2 * KEY_BYTES} hexadecimal digits")
    return SigningKey(secret)


def _line() -> bytes:
    return secrets.token_hex(KEY_BYTES).encode("ascii") + b"\n"
