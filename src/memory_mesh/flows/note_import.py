"""Import the files that people keep for coding agents: their sections become memories, and their skills are stored.

The index is that of notes, under another root: a second run takes over what was edited, and archives what was removed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory_mesh.core.checks import listed, path
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.file_ports import NoteFile
from memory_mesh.core.notes import Fault, Note, Notes
from memory_mesh.core.notes.instructions import Imported, InstructionFiles, read_instructions
from memory_mesh.flows import note_index
from memory_mesh.flows.context import Context
from memory_mesh.flows.skill_folders import read_folder


def import_files(context: Context, paths: object) -> Imported:
    """Bring the memories of the files up to date: of those at these paths, and of those that were imported before."""
    context.check_enabled()
    given = [path("a path", one) for one in listed("paths", paths, expected="a list of paths")]
    files = context.open_instructions()
    own = replace(context, open_notes=lambda: files)
    known = note_index.indexed_files(own)
    found = files.find(given, known)
    every = list(_read(files, [one for one in found if not one.name.endswith("/")]))
    notes = Notes((one for one in every if isinstance(one, Note)), (one for one in every if isinstance(one, Fault)))
    done = note_index.sync(own, notes, [one for one in found if not one.fault or one.name in known])
    skills = [read_folder(context, f"{files.root}/{one.name}") for one in found if one.name.endswith("/")]
    return Imported(files=tuple(dict.fromkeys(note.file for note in notes)), sections=done, skills=tuple(skills))


def _read(files: InstructionFiles, found: Sequence[NoteFile]) -> Iterator[Note | Fault]:
    """Yield the sections of all files. A copy of another file, or a link to it, is left out."""
    texts: dict[bytes, str] = {}
    for file in found:
        fault, data = file.fault, b""
        try:
            data = b"" if fault else files.read(file.name)
        except InvalidInput as error:
            fault = str(error)
        if fault:
            yield Fault(file.name, 0, fault)
        elif (first := texts.setdefault(data, file.name)) != file.name:
            yield Fault(file.name, 1, f"it has the same text as {first}, and is left out", warning=True)
        else:
            yield from read_instructions(file.name, data)
