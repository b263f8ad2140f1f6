"""Where the tables of a LanceDB store are, and which versions of them are there."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memory_mesh.stores.lance.schema import Table


class Place(Protocol):
    """Where the tables of a store are. If it is `fenced`, a writer whose turn is over may still change them: see `Frame`."""

    @property
    def fenced(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def options(self) -> dict[str, str] | None: ...  # with which Lance reaches it
    def uri(self, table: Table) -> str: ...
    def versions(self, table: Table) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Folder:
    """Tables in a folder, whose writers hold a lock. Other programs may write to it too."""

    root: Path
    options: None = None
    fenced: bool = False

    @property
    def name(self) -> str:
        return str(self.root)

    def uri(self, table: Table) -> str:
        return str(folder_of(self.root, table))

    def versions(self, table: Table) -> list[int]:
        return [version for version, _ in _manifests(self.root, table)]


def folder_of(root: Path, table: Table) -> Path:
    return root / f"{table.name}.lance"


def latest_version(root: Path, table: Table) -> int | None:
    """Return the newest version of a table; None without a table."""
    return max((version for version, _ in _manifests(root, table)), default=None)


def _manifests(root: Path, table: Table) -> list[tuple[int, Path]]:
    """Return the versions of a table with their files."""
    folder = folder_of(root, table) / "_versions"
    with suppress(FileNotFoundError, NotADirectoryError):
        return [(version, folder / name) for version, name in versions_in(os.listdir(folder))]
    return []


def versions_in(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the versions that the names of files stand for. Lance names them so, or by the distance to the largest one."""
    for name in names:
        if match := re.fullmatch(r"(\d{1,20})\.manifest", name):
            number = int(match[1])
            yield 2**64 - 1 - number if number >= 2**63 else number, name


def roll_back(root: Path, table: Table, version: int | None) -> None:
    """Remove the versions of a table after this one, which a process that died began; without a version, remove the table."""
    if version is None:
        shutil.rmtree(folder_of(root, table), ignore_errors=True)
        return
    for number, file in _manifests(root, table):
        if number > version:
            file.unlink()
    (folder_of(root, table) / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
