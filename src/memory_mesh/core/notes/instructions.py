"""Files that people keep for coding agents, such as `CLAUDE.md`, `AGENTS.md` and the rules of Cursor: each section is a note.

They are only read, and have none of the keys of a note: no pattern matches them, and they are found by searches.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.file_ports import NoteFile, NoteFiles
from memory_mesh.core.frontmatter import split_frontmatter
from memory_mesh.core.model import Ingested
from memory_mesh.core.notes.files import Fault, Note
from memory_mesh.core.notes.folder import Synced, decoded
from memory_mesh.core.text import shortened

NAMES = ("CLAUDE.md", "AGENTS.md")
RULES, RULE = ".cursor/rules", ".mdc"
MARKDOWN = (".md", RULE)
SKILLS = (".claude/skills", "skills")
_MAX_TITLE = 120
EXPECTED = "description, globs and alwaysApply"
_JOINT = " › "  # between the headings of a section
# Cursor accepts `globs: *.ts` and `description: API: errors` without quotes, which is not YAML.
_BARE = re.compile(r"^(description:[ \t]*|globs:[ \t]*|[ \t]*-[ \t]+)([^\s\"'\[|>][^\n]*)$", re.MULTILINE)
_COMMA = re.compile(r",(?![^{}]{0,200}\})")  # not within braces


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Instruction(Note):
    """A section of such a file. `other` is what the frontmatter of a rule says: `description`, `globs` and `always_apply`."""

    when_to_use: tuple[str, ...] = ()
    discovered_at: str = ""
    discovered_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was taken over from the files for coding agents: their names, how many sections, and the skills of each folder."""

    files: tuple[str, ...]
    sections: Synced
    skills: tuple[Ingested, ...] = ()


class InstructionFiles(NoteFiles, Protocol):
    """The files for coding agents in the working folder, which are only read.

    **find** lists those at these paths, or else where hosts expect them, and those that are `known` and still there. A name that
    ends with a slash is a folder of skills. A path that does not exist and is not known, or is outside, raises `InvalidInput`.
    """

    def find(self, paths: Sequence[str], known: Collection[str]) -> Sequence[NoteFile]: ...


def read_instructions(file: str, data: bytes) -> Iterator[Instruction | Fault]:
    """Yield the sections of a file, and what is wrong in it. A section that is only a heading is left out."""
    from memory_mesh.core.scrubbing import heading_sections, is_heading  # notes do not need it

    text = decoded(file, data)
    if isinstance(text, Fault):
        yield text
        return
    try:
        rule, start = _frontmatter(text)
    except InvalidInput as error:
        yield Fault(file, 1, str(error))
        return
    number, line, at, top = 0, 1, 0, shortened(str(rule.get("description", "")), _MAX_TITLE)
    for begin, end, path in heading_sections(text[start:]):
        whole = text[start + begin : start + end]
        line, at = line + text.count("\n", at, start + begin), start + begin
        if whole.strip() and not is_heading(whole):
            title = _JOINT.join(filter(None, (top, *path))) or file.rpartition("/")[2]
            content = (whole.partition("\n")[2] if path else whole).strip()
            yield Instruction(title=title, content=content, other=rule, file=file, section=number, line=line)
            number += 1


def _frontmatter(text: str) -> tuple[Mapping[str, object], int]:
    """Return what the frontmatter says, and where it ends in the text."""
    values, end = _values(text)
    description, globs = values.get("description"), values.get("globs", [])
    always = str(values.get("alwaysApply", "false")).lower()
    if description is not None and not isinstance(description, str):
        raise InvalidInput(f"description is a {type(description).__name__}", expected="text")
    if always not in ("true", "false"):
        raise InvalidInput(f"alwaysApply is {shown(values['alwaysApply'])}", expected="true or false")
    given = _COMMA.split(globs) if isinstance(globs, str) else globs
    if not isinstance(given, list) or not all(isinstance(glob, str) for glob in given):
        raise InvalidInput("globs is not a list of texts", expected="patterns such as src/*.ts, *.tsx")
    patterns = [glob.strip() for glob in given if glob.strip()]
    rule = {"description": description and description.strip(), "globs": patterns, "always_apply": always == "true"}
    return {name: value for name, value in rule.items() if value}, end


def _values(text: str) -> tuple[Mapping[str, object], int]:
    try:
        return split_frontmatter(text, expected=EXPECTED)
    except InvalidInput:
        head = text[: text.find("\n---", 3) + 1]
        quoted = _BARE.sub(lambda found: found[1] + "'" + found[2].rstrip().replace("'", "''") + "'", head)
        if quoted == head:
            raise
        values, end = split_frontmatter(quoted + text[len(head) :], expected=EXPECTED)
        return values, end - len(quoted) + len(head)
