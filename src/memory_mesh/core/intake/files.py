"""Files as memories: which files of a folder are ingested, and the fingerprint by which a file's memory is found again."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import MemoryType, Reader

# Derived from the path, not from the text: two files may have the same text, and the text of one may change.
_FILE = "file:"
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Selection:
    """The files of a folder to ingest."""

    extensions: tuple[str, ...] = (".md",)
    recursive: bool = False

    @classmethod
    def of(cls, extension: object, *, recursive: bool) -> "Selection":
        """Build a selection from one extension or several. The dot is optional and case does not matter."""
        given = [extension] if isinstance(extension, str) or not isinstance(extension, Iterable) else list(extension)
        if not given:
            raise InvalidInput("no extension given", expected="one or more, such as .md")
        return cls(tuple(dict.fromkeys(_extension(each) for each in given)), recursive)

    def covers(self, source: str) -> bool:
        """Return whether a path within the folder is selected."""
        return source.lower().endswith(self.extensions) and (self.recursive or "/" not in source)


def folder_print(reader: Reader, root: str, type_: str | None) -> str:
    """Return the common prefix of the fingerprints of all memories that an agent made from a folder.

    Memories of type `session` are visible in their session only, so each session has its own prefix, and so has each project.
    """
    session = reader.session_id if type_ == MemoryType.SESSION else None
    project = [reader.project] if reader.project else []
    return f"{_FILE}{_digest(reader.user_id, reader.agent_id, session, root, *project)}:"


def file_print(folder: str, source: str) -> str:
    """Return the fingerprint of a file's memory."""
    return folder + _digest(source)


def is_file_print(fingerprint: str | None) -> bool:
    """Return whether a memory's fingerprint is that of a file."""
    return fingerprint is not None and fingerprint.startswith(_FILE)


def _extension(given: object) -> str:
    bare = given.strip().removeprefix("*").removeprefix(".").lower() if isinstance(given, str) else ""
    if not bare or "/" in bare or "*" in bare:
        raise InvalidInput(f"extension is {shown(given)}", expected="a file extension, such as .md")
    return f".{bare}"


def _digest(*parts: str | None) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
