"""The project files that the user trusts, each identified by its path and the SHA-256 of its bytes.

Each is recorded by a small file in the folder `trusted` of the home folder, so that concurrent processes do not overwrite each
other's records. Links in the folders of the path are resolved, but not a link at the file itself: a link to a trusted file, or a
copy of it, in another project is not trusted.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memory_mesh.core.errors import SettingsError
from memory_mesh.regular_files import open_regular

FILE = "memory-mesh.toml"
_FOLDER = "trusted"


class Trust(StrEnum):
    """Whether the user trusts a file as it is now."""

    NO = "not trusted"
    YES = "trusted"
    CHANGED = "changed since it was trusted"


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The file of a project, and whether the user trusts it."""

    path: Path
    trust: Trust


def file_at(path: Path) -> Path:
    """Return the full path of a project's file, given the file or its folder."""
    return Path(os.path.realpath(path.parent if path.name == FILE else path)) / FILE


def trust_in(path: Path, data: bytes | None, home: Path) -> Trust:
    """Return whether the user trusts a file that contains `data`; None stands for a file that cannot be read."""
    file = file_at(path)
    known = _read(_record_of(file, home))
    if known.get("path") != str(file):
        return Trust.NO
    return Trust.YES if data is not None and known.get("sha256") == _sha256(data) else Trust.CHANGED


def record(file: Path, data: bytes, home: Path) -> None:
    """Trust a file as long as it contains `data`."""
    from tempfile import NamedTemporaryFile

    target = _record_of(file, home)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        with NamedTemporaryFile(dir=target.parent, delete=False) as part:  # with mode 0600
            part.write(json.dumps({"path": str(file), "sha256": _sha256(data)}).encode())
            part.flush()
            os.fsync(part.fileno())
        Path(part.name).replace(target)
    except OSError as error:
        raise SettingsError(f"{target} cannot be written: {error.strerror}", remedy="check the home folder") from error


def forget(file: Path, home: Path) -> None:
    """End the trust in a file."""
    try:
        _record_of(file, home).unlink()
    except FileNotFoundError:
        raise SettingsError(f"{file} is not trusted", remedy="see memory-mesh config trust --list") from None
    except OSError as error:
        raise SettingsError(f"the trust in {file} cannot be ended: {error.strerror}", remedy="check the home folder") from error


def recorded(home: Path) -> list[ProjectFile]:
    """Return every file that the user trusted, and whether it is still trusted."""
    known = (_read(path).get("path") for path in (home / _FOLDER).glob("*.json"))
    return [ProjectFile(Path(path), trust_in(Path(path), _bytes(path), home)) for path in sorted(map(str, filter(None, known)))]


def _record_of(file: Path, home: Path) -> Path:
    return home / _FOLDER / f"{_sha256(os.fsencode(file))}.json"


def _read(path: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        with open_regular(path) as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    return {}


def _bytes(path: str) -> bytes | None:
    with suppress(OSError, ValueError), open_regular(path) as file:
        return file.read()
    return None


def _sha256(data: bytes) -> str:
    from hashlib import sha256  # most runs have no project file

    return sha256(data).hexdigest()
