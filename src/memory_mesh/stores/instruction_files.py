"""The files for coding agents in a project, such as `CLAUDE.md`. They are only read, and nothing outside the project is."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from stat import S_ISREG

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.file_ports import NoteFile
from memory_mesh.core.intake import Selection
from memory_mesh.core.learning import FILE
from memory_mesh.core.notes.instructions import MARKDOWN, NAMES, RULE, RULES, SKILLS
from memory_mesh.stores.files import OUT, DiskFolder, is_within
from memory_mesh.stores.note_files import DiskNotes

_RULES = Selection((RULE,), recursive=True)


class DiskInstructions(DiskNotes):
    """The files for coding agents in a folder; implements `core.notes.instructions.InstructionFiles`."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, cwd=project)

    @property
    def root(self) -> str:
        # Another name of the folder: what is imported from it is apart from its notes, which erasures may edit.
        return f"{super().root}/."

    def find(self, paths: Sequence[str], known: Collection[str]) -> Sequence[NoteFile]:
        found: dict[str, NoteFile] = {}
        for path in paths or (".",):
            name = self._name(path)
            listed = list(self._listed(name))
            if not listed and name != "." and not any(one == name or one.startswith(f"{name}/") for one in known):
                what = f"nothing to import at {shown(path, max_length=200)}"
                raise InvalidInput(
                    what, expected="a Markdown file, or a folder with CLAUDE.md, AGENTS.md, .cursor/rules or skills"
                )
            found |= {one.name: one for one in listed}
        for name in known:
            found |= {one.name: one for one in self._at(name.rstrip("/"), self._directory if name.endswith("/") else self._file)}
        # A file comes before the links to it, which are left out.
        return [found[name] for name in sorted(found, key=lambda name: (os.path.islink(self._path(name)), name))]

    def change(self, name: str, make: Callable[[bytes | None], bytes | None]) -> None:
        raise InvalidInput(f"{shown(name, max_length=200)} is only read", remedy="edit it by hand")

    def _name(self, path: str) -> str:
        """Return the path from the project."""
        root = os.path.realpath(self._folder)
        full = os.path.normpath(os.path.join(root, os.path.expanduser(path)))
        if "\0" in path or not is_within(full, root):
            raise InvalidInput(f"{shown(path, max_length=200)} is outside the project", expected=f"a path within {root}")
        return Path(os.path.relpath(full, root)).as_posix()

    def _listed(self, name: str) -> Iterator[NoteFile]:
        """Yield the file of this name, or what a folder of this name has."""
        if not os.path.isdir(self._path(name)):
            yield from self._at(name, self._file) if name.endswith(MARKDOWN) else ()
            return
        if name != ".":
            yield from self._at(name, self._skills)
        yield from self._at(name, self._rules) if f"/{name}".endswith(f"/{RULES}") else ()
        places = [(one, self._file) for one in NAMES] + [(RULES, self._rules)] + [(one, self._skills) for one in SKILLS]
        for place, listed in places:
            yield from self._at(Path(name, place).as_posix(), listed)

    def _at(self, name: str, listed: Callable[[str], Iterator[NoteFile]]) -> Iterator[NoteFile]:
        """Yield what is at a place; nothing if it does not exist, and a fault if it is outside the project."""
        path = os.path.join(self.root, name)
        if os.path.lexists(path) and not is_within(os.path.realpath(path), os.path.realpath(self._folder)):
            yield NoteFile(name, fault=OUT)
            return
        try:
            os.stat(path)
            yield from listed(name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            yield NoteFile(name, fault=f"it cannot be read: {error.strerror}")

    def _file(self, name: str) -> Iterator[NoteFile]:
        is_regular = S_ISREG(os.stat(self._path(name)).st_mode)
        yield NoteFile(name, fault=None if is_regular else "it is not a regular file")

    def _directory(self, name: str) -> Iterator[NoteFile]:
        yield NoteFile(f"{name}/")

    def _skills(self, name: str) -> Iterator[NoteFile]:
        folder = self._path(name)
        if any(one.is_file() for one in (folder / FILE, *folder.glob(f"*/{FILE}"))):
            yield from self._directory(name)

    def _rules(self, name: str) -> Iterator[NoteFile]:
        try:
            listed = list(DiskFolder(str(self._path(name))).files(_RULES))
        except InvalidInput as error:
            yield NoteFile(name, fault=str(error))
            return
        for one in listed:
            yield NoteFile(f"{name}/{one.source.rstrip('/')}", fault=one.fault)

    def _path(self, name: str) -> Path:
        return Path(self.root, name)
