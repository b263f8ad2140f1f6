"""Files as memories: which files are meant, and by what one is known again, whatever it says now."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model.scope import MemoryType, Reader

# The fingerprint of a file's memory is not that of its text: two files may say the same, and one says something else tomorrow.
_FILE = "file:"
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files of a folder are meant."""

    extensions: tuple[str, ...] = (".md",)
    recursive: bool = False

    @classmethod
    def of(cls, extension: object, *, recursive: bool) -> "Selection":
        """As a caller says it: one extension or several, the dot optional, capitals or not."""
        given = [extension] if isinstance(extension, str) or not isinstance(extension, Iterable) else list(extension)
        if not given:
            raise InvalidInput("no extension is given", expected="one or more, such as .md")
        return cls(tuple(dict.fromkeys(_extension(each) for each in given)), recursive)

    def covers(self, source: str) -> bool:
        """Whether a path within the folder is that of a file that is meant."""
        return source.lower().endswith(self.extensions) and (self.recursive or "/" not in source)


def folder_print(reader: Reader, root: str, type_: str | None) -> str:
    """How the fingerprints of all memories begin that one agent made of one folder's files.

    Memories of type `session` are seen in their session only, so each session has its own.
    """
    session = reader.session_id if type_ == MemoryType.SESSION else None
    return f"{_FILE}{_digest(reader.user_id, reader.agent_id, session, root)}:"


def file_print(folder: str, source: str) -> str:
    """The fingerprint of a file's memory."""
    return folder + _digest(source)


def is_file_print(fingerprint: str | None) -> bool:
    """Whether a memory is known by the file that it was made of, and not by its text."""
    return fingerprint is not None and fingerprint.startswith(_FILE)


def _extension(given: object) -> str:
    bare = given.strip().removeprefix("*").removeprefix(".").lower() if isinstance(given, str) else ""
    if not bare or "/" in bare or "*" in bare:
        raise InvalidInput(f"extension is {shown(given)}", expected="the end of a file's name, such as .md")
    return f".{bare}"


def _digest(*parts: str | None) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
