"""The pseudonym key: a file in the home folder that its owner alone can read."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from memory_mesh.core.errors import SettingsError

NAME = "pseudonym.key"
_BYTES = 32


def read_key(home: Path) -> bytes | None:
    """The key, if there is one."""
    try:
        key = (home / NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{home / NAME} cannot be read: {error.strerror}", remedy="check its permissions") from error
    if len(key) < _BYTES:
        raise SettingsError(f"{home / NAME} holds {len(key)} bytes", expected=f"a key of {_BYTES}", remedy="restore a backup")
    return key


def made_key(home: Path) -> bytes:
    """The key, made if there is none; of two processes that make one at once, both use the first one's."""
    part = home / f".{NAME}.{os.getpid()}"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(part, home / NAME)  # the whole of it at once, and never over another
        part.unlink()
    except OSError as error:
        raise SettingsError(f"{home / NAME} cannot be made: {error.strerror}", remedy="check the folder") from error
    key = read_key(home)
    return key if key is not None else made_key(home)
