"""The ports of the Markdown files that people edit too: notes and traces."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Never, Protocol

from memory_mesh.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A file of notes: its name, a mark that changes when the file does, and why it cannot be read, if so."""

    name: str
    mark: str = ""
    fault: str | None = None


class NoteFiles(Protocol):
    """The Markdown files directly inside a folder, **root**. Nothing outside it is read or written.

    **files** lists them by name; none without a folder. **read** returns the bytes of a file, or raises `InvalidInput`.
    **change** replaces a file by what `make` returns for its bytes (None: there is none), all or nothing, one process at a time.
    If it returns None the file stays, and if it returns no bytes the file is removed. **agent** returns the text of the file that
    configures an agent.
    """

    @property
    def root(self) -> str: ...
    def files(self) -> Sequence[NoteFile]: ...
    def read(self, name: str) -> bytes: ...
    def change(self, name: str, make: Callable[[bytes | None], bytes | None]) -> None: ...
    def agent(self, path: str) -> str: ...


class TraceFiles(Protocol):
    """The files of the traces of one user, below a folder, **root**. Nothing outside it is read or written; no link is followed.

    A name is a path below the root. **names** lists the files of a folder, or with `folders` the folders in it; hidden ones are
    left out. **mark** changes when a file does, and is empty without one. **read** returns the bytes of a file, none without one;
    what ends in `.gz` is compressed, and read uncompressed. **append**, and **write**, which replaces a file as a whole, are
    durable when they return. **remove** removes a file, or a folder with all that is in it. **locked** keeps other threads and
    processes from a folder; a thread that has the lock may take it again. All may raise
    `InvalidInput`, and `locked` also `StoreBusy`.
    """

    @property
    def root(self) -> str: ...
    def names(self, folder: str, *, folders: bool = False) -> list[str]: ...
    def mark(self, name: str) -> str: ...
    def read(self, name: str) -> bytes: ...
    def create_folder(self, name: str) -> None: ...
    def append(self, name: str, data: bytes) -> None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def locked(self, folder: str) -> AbstractContextManager[None]: ...


def no_traces(user_id: str | None) -> Never:
    """Refuse every use."""
    raise InvalidInput("there is no folder of traces", expected="a mesh that can read files")


def no_notes() -> Never:
    """Refuse every use."""
    raise InvalidInput("there is no folder of notes", expected="a mesh that can read files")
