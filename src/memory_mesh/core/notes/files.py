"""Markdown files of notes: their sections, a folder of them, and the files of coding agents.

A file is one or more sections, each with YAML frontmatter and Markdown below it. `---` between
blank lines separates them. Every section is a note of its own. What cannot be read is a fault of
that section, and the others are read.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol, TypeVar

from memory_mesh.core.errors import InvalidInput, is_number, one_of, shown
from memory_mesh.core.intake import IMPORTANCE, normal_text
from memory_mesh.core.language.frontmatter import quoted, scalar, split_frontmatter
from memory_mesh.core.model import Ingested, Value, parse_time
from memory_mesh.core.ports import NoteFile, NoteFiles
from memory_mesh.core.text import short_repr, shortened

# --- sections ---

SEPARATOR = "\n\n---\n\n"
MAX_WORDS = 2000
EXPECTED = "title, whenToUse, tags, importance, discoveredAt and discoveredBy"
IMPORTANCES = tuple(IMPORTANCE)  # low to critical
# A separator is followed by the frontmatter of the next section, which tells it from a line across
# the page.
_NEXT = re.compile(
    r"\n[ \t]*\n---[ \t]*\n[ \t]*\n(?=---[ \t]*\n[ \t]*(?:#[^\n]*\n[ \t]*)*[A-Za-z][\w-]*:)"
)
# The same in a file with the line ends of Windows.
_NEXT_AS_WRITTEN = re.compile(_NEXT.pattern.replace(r"\n", r"\r?\n"))
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
)
_MAX_NAME_BYTES = 120
_KNOWN = (
    "title", "whenToUse", "tags", "importance", "discoveredAt", "discoveredBy", "discoveredIn",
    "source", "relatedMemories", "validFrom", "validUntil", "deprecated", "claim",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Note:
    """One section of a file: what it says, when it is used, and who found it out. Times are ISO
    8601 texts in UTC."""

    __repr__ = short_repr

    title: str
    when_to_use: tuple[str, ...]
    tags: tuple[str, ...] = ()
    importance: str = "medium"
    discovered_at: str
    discovered_by: str
    discovered_in: str | None = None
    source: str | None = None
    related_memories: tuple[str, ...] = ()
    valid_from: str | None = None
    valid_until: str | None = None
    deprecated: bool = False
    claim: Mapping[str, Value] | None = None
    content: str = ""
    other: Mapping[str, object] = field(default_factory=dict)  # further keys of the frontmatter
    file: str = ""
    section: int = 0
    line: int = 1

    @property
    def text(self) -> str:
        """The whole section as it is written to a file."""
        return f"{_frontmatter(self)}\n{self.content.strip()}\n"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong in a file, and where; line 0 is the whole file. A warning does not keep the
    note from being used."""

    file: str
    line: int
    what: str
    warning: bool = False


def read_sections(file: str, text: str) -> Iterator[Note | Fault]:
    """Yield the notes of a file and what is wrong in it, in the order of the lines."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    start, line = 0, 1
    for number, end in enumerate((*_NEXT.finditer(plain), None)):
        section = plain[start : end.start() if end else len(plain)]
        if section.strip() or not number:
            yield from _read_section(file, number, section, line)
        if end:
            line += plain.count("\n", start, end.end())
            start = end.end()


def _read_section(file: str, number: int, text: str, line: int) -> Iterator[Note | Fault]:
    lead = len(text) - len(text.lstrip())
    line += text.count("\n", 0, lead)
    text = text[lead:]
    try:
        values, end = split_frontmatter(text, expected=EXPECTED, line=line)
        note = read_note(
            values if end else None, text[end:].strip("\n"), file=file, section=number, line=line
        )
    except InvalidInput as error:
        yield Fault(file, line, str(error))
        return
    yield note
    if (words := len(note.content.split())) > MAX_WORDS:
        yield Fault(
            file,
            line,
            f"the note has {words:,} words; expected at most {MAX_WORDS:,}",
            warning=True,
        )


def read_note(values: Mapping[str, object] | None, content: str, **place: object) -> Note:
    """Return the note of a frontmatter and what is below it, or raise `InvalidInput` for the
    first invalid value."""
    if values is None:
        raise InvalidInput(
            "there is no frontmatter", expected=f"--- on the first line, then {EXPECTED}"
        )
    if missing := [name for name in _KNOWN[:6] if name not in values]:
        raise InvalidInput(f"{' and '.join(missing)} missing in the frontmatter", expected=EXPECTED)
    begin, end = (
        parse_time(values[name], name) if name in values else None
        for name in ("validFrom", "validUntil")
    )
    if begin and end and end < begin:
        raise InvalidInput(f"validUntil {end} is before validFrom {begin}", expected="a later time")
    return Note(
        title=_text(values, "title") or "",
        when_to_use=_texts(values, "whenToUse"),
        tags=_texts(values, "tags"),
        importance=one_of("importance", str(values["importance"]), IMPORTANCES),
        discovered_at=parse_time(values["discoveredAt"], "discoveredAt"),
        discovered_by=_text(values, "discoveredBy") or "",
        discovered_in=_text(values, "discoveredIn"),
        source=_text(values, "source"),
        related_memories=_texts(values, "relatedMemories"),
        valid_from=begin,
        valid_until=end,
        deprecated=_flag(values, "deprecated"),
        claim=_claim(values.get("claim")),
        content=content,
        other={name: value for name, value in values.items() if name not in _KNOWN},
        **place,  # type: ignore[arg-type]
    )


def _text(values: Mapping[str, object], name: str) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is a {type(value).__name__}", expected="text")
    return value.strip()


def _texts(values: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = values.get(name, ())
    if isinstance(value, str) and name == "whenToUse":
        value = (value,)
    if not isinstance(value, list | tuple) or not all(
        isinstance(each, str) and each.strip() for each in value
    ):
        raise InvalidInput(
            f"{name} is not a list of texts", expected="a list such as [auth, login]"
        )
    return tuple(each.strip() for each in value)


def _claim(given: object) -> dict[str, Value] | None:
    """Return a claim of texts, but for `exclusive`, or raise `InvalidInput`."""
    from memory_mesh.core.claims import read_claim  # few notes have one

    if given is None:
        return None
    if isinstance(given, Mapping) and "exclusive" in given:
        given = {**given, "exclusive": _flag(given, "exclusive")}
    claim = read_claim(given, None)
    assert isinstance(given, Mapping)  # noqa: S101  (read_claim accepts nothing else)
    texts = {"subject": claim.subject, "predicate": claim.predicate, "value": claim.value}
    return {
        str(name): texts.get(name, value if isinstance(value, bool) else str(value))
        for name, value in given.items()
    }


def _flag(
    values: Mapping[str, object], name: str, words: Sequence[str] = ("true", "false", "yes", "no")
) -> bool:
    value = str(values.get(name, "false")).lower()
    if value not in words:
        raise InvalidInput(f"{name} is {shown(values[name])}", expected="true or false")
    return value in ("true", "yes")


# --- writing ---


def without_section(data: bytes, section: int) -> bytes:
    """Return the bytes of a file without a section; every other byte stays."""
    text = data.decode()
    marks = list(_NEXT_AS_WRITTEN.finditer(text))
    if section:
        end = marks[section].start() if section < len(marks) else len(text)
        return (text[: marks[section - 1].start()] + text[end:]).encode()
    bom = "\ufeff" if text.startswith("\ufeff") and marks else ""
    return (bom + (text[marks[0].end() :] if marks else "")).encode()


def file_name(title: str) -> str:
    """Return the name of the file of a note: its title in kebab case. It is never empty, too
    long or outside the folder."""
    folded = unicodedata.normalize("NFKD", title.casefold().replace("ß", "ss"))
    letters = unicodedata.normalize(
        "NFC", "".join(char for char in folded if not unicodedata.combining(char))
    )
    slug = re.sub(r"[\W_]+", "-", letters).strip("-")
    while len(slug.encode()) > _MAX_NAME_BYTES:
        slug = slug[:-1].rstrip("-")
    if not slug or slug in _RESERVED:
        slug = f"note-{slug or sha256(title.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{slug}.md"


def _frontmatter(note: Note) -> str:
    related = ", ".join(map(scalar, note.related_memories))
    claim = {
        scalar(name): json.dumps(value) if isinstance(value, bool) else quoted(str(value))
        for name, value in (note.claim or {}).items()
    }
    optional = {
        "discoveredIn": note.discovered_in and quoted(note.discovered_in),
        "source": note.source and quoted(note.source),
        "relatedMemories": related and f"[{related}]",
        "validFrom": note.valid_from,
        "validUntil": note.valid_until,
        "deprecated": "true" if note.deprecated else "",
    }
    other = {
        scalar(name): json.dumps(value, ensure_ascii=False) for name, value in note.other.items()
    }
    lines = [
        "---", f"title: {quoted(note.title)}",
        "whenToUse:", *(f"  - {quoted(pattern)}" for pattern in note.when_to_use),
        f"tags: [{', '.join(map(scalar, note.tags))}]", f"importance: {note.importance}",
        f"discoveredAt: {note.discovered_at}", f"discoveredBy: {scalar(note.discovered_by)}",
        *(f"{name}: {value}" for name, value in optional.items() if value),
        *(["claim:"] if claim else []), *(f"  {name}: {value}" for name, value in claim.items()),
        *(f"{name}: {value}" for name, value in other.items()), "---", "",
    ]  # fmt: skip
    return "\n".join(lines)


# --- a folder of notes ---

Document = TypeVar("Document")
MAX_BYTES = 1_000_000  # of a file
_KEBAB = re.compile(r"[^\W_A-Z]+(-[^\W_A-Z]+)*\.md")
_AGENT = {
    "max_injected": "maxInjected",
    "min_importance": "minImportance",
    "specialty": "specialty",
}


class Documents(list[Document]):
    """What was read from files. `faults` is what cannot be read, with file, line and reason."""

    def __init__(self, documents: Iterable[Document] = (), faults: Iterable[Fault] = ()) -> None:
        super().__init__(documents)
        self.faults = list(faults)


class Notes(Documents[Note]):
    """The notes of a folder, in the order of files and sections. `faults` is what is wrong in
    the files."""


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a note was written: its file, its section from 0, and whether the file is new."""

    file: str
    section: int
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What the index of a folder took over from it: how many sections, and which faults kept
    others out."""

    added: int = 0
    updated: int = 0
    moved: int = 0  # to another file or title, with their feedback
    archived: int = 0  # removed, deprecated or no longer valid
    unchanged: int = 0
    files: tuple[str, ...] = ()  # those with changes
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAgent:
    """What an agent gets of the notes: how many, of which importance, and which tags are its
    specialty."""

    max_injected: int = 5
    min_importance: str | None = None
    specialty: tuple[str, ...] = ()


def as_notes(sections: Iterable[Note | Fault]) -> Notes:
    """Return the notes among what was read, with the faults."""
    every = list(sections)
    faults = (each for each in every if isinstance(each, Fault))
    return Notes((each for each in every if isinstance(each, Note)), faults)


def read_file(name: str, data: bytes) -> Iterator[Note | Fault]:
    """Yield the notes of a file and what is wrong in it."""
    if not _KEBAB.fullmatch(name):
        yield Fault(
            name,
            1,
            "the name of the file is not in kebab case; expected one such as login-rules.md",
            warning=True,
        )
    text = decoded(name, data)
    if isinstance(text, Fault):
        yield text
        return
    yield from read_sections(name, text)


def decoded(name: str, data: bytes) -> str | Fault:
    """Return the text of a file with the line ends of Unix, or that it is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        return Fault(name, 0, f"the file is not UTF-8 text (byte {error.start + 1:,})")


def double_titles(notes: Sequence[Note]) -> Iterator[Fault]:
    """Yield a warning for each note of another file whose title an earlier one has."""
    first: dict[str, Note] = {}
    for note in notes:
        known = first.setdefault(note.title.casefold(), note)
        if known.file != note.file:
            yield Fault(
                note.file,
                note.line,
                f"the title is also that of {known.file}, line {known.line}",
                warning=True,
            )


def keys_of(notes: Sequence[Note]) -> list[str]:
    """Return a key for each note: its file and its title, so that edits of other sections do not
    change it."""
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for note in notes:
        key = f"{note.file}#{file_name(note.title).removesuffix('.md')}"
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}~{seen[key]}")
    return keys


def digest(note: Note) -> str:
    """Return a digest of all that a section says, whatever its file."""
    return sha256(note.text.encode("utf-8", "replace")).hexdigest()[:16]


def repeats(note: Note, known: Iterable[Note]) -> bool:
    """Return whether a note says only what a known one says, whatever the case and the spaces."""
    title, content = normal_text(note.title), normal_text(note.content)
    for other in known:
        text = normal_text(other.content)
        if content == text or (normal_text(other.title) == title and content in text):
            return True
    return False


def is_current(note: Note, at: str) -> bool:
    """Return whether a note is valid at a time, and not deprecated."""
    return (note.valid_from or at) <= at <= (note.valid_until or at) and not note.deprecated


def read_agent_file(name: str, text: str) -> NoteAgent:
    """Return the configuration of an agent in a YAML file: `memory` with `maxInjected` and
    `minImportance`, and `specialty`."""
    import yaml  # slow to load

    try:
        values = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  (makes texts, lists and mappings only)
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):  # without its text, which may be that of any file
        raise InvalidInput(
            f"the file of agent {shown(name)} is not valid YAML with keys",
            expected="name and memory",
        )
    memory = values.get("memory") or {}
    if isinstance(memory, dict) and "specialty" in values:
        memory = {"specialty": values["specialty"], **memory}
    return read_agent(name, memory)


def read_agent(name: str, given: object) -> NoteAgent:
    """Return the configuration of an agent: a table of our names, or the document's with a table
    `memory`."""
    what = f"the notes of agent {shown(name, max_length=80)}"
    table = given.get("memory", given) if isinstance(given, Mapping) else given
    if not isinstance(table, Mapping):
        raise InvalidInput(
            f"{what} are {shown(given)}", expected=f"a table with {', '.join(_AGENT)}"
        )
    values = {
        ours: table[own]
        for ours, theirs in _AGENT.items()
        for own in (theirs, ours)
        if own in table
    }
    if unknown := table.keys() - {*_AGENT, *_AGENT.values()}:
        raise InvalidInput(
            f"{what} have the key {shown(min(map(str, unknown)))}", expected=", ".join(_AGENT)
        )
    most, least, tags = (
        values.get("max_injected", 5),
        values.get("min_importance"),
        values.get("specialty", []),
    )
    # YAML is read as texts.
    most = int(most) if isinstance(most, str) and most.isdecimal() else most
    if not isinstance(most, int) or not is_number(most, min_=0, max_=1000):
        raise InvalidInput(
            f"max_injected of agent {shown(name)} is {shown(most)}",
            expected="a whole number from 0 to 1000",
        )
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidInput(
            f"specialty of agent {shown(name)} is {shown(tags)}", expected="a list of tags"
        )
    importance = None if least is None else one_of("min_importance", least, IMPORTANCES)
    return NoteAgent(max_injected=most, min_importance=importance, specialty=tuple(tags))


# --- files for coding agents ---
# `CLAUDE.md`, `AGENTS.md`, the rules of Cursor: each section is a note. They are only read, and
# have none of the keys of a note: no pattern matches them, and they are found by searches.

NAMES = ("CLAUDE.md", "AGENTS.md")
RULES, RULE = ".cursor/rules", ".mdc"
MARKDOWN = (".md", RULE)
SKILLS = (".claude/skills", "skills")
_MAX_TITLE = 120
_RULE_KEYS = "description, globs and alwaysApply"
_JOINT = " › "  # between the headings of a section
# Cursor accepts `globs: *.ts` and `description: API: errors` without quotes, which is not YAML.
_BARE = re.compile(
    r"^(description:[ \t]*|globs:[ \t]*|[ \t]*-[ \t]+)([^\s\"'\[|>][^\n]*)$", re.MULTILINE
)
_COMMA = re.compile(r",(?![^{}]{0,200}\})")  # not within braces


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Instruction(Note):
    """A section of such a file. `other` is what the frontmatter of a rule says: `description`,
    `globs` and `always_apply`."""

    when_to_use: tuple[str, ...] = ()
    discovered_at: str = ""
    discovered_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What was taken over from the files for coding agents: their names, how many sections, and
    the skills of each folder."""

    files: tuple[str, ...]
    sections: Synced
    skills: tuple[Ingested, ...] = ()


class InstructionFiles(NoteFiles, Protocol):
    """The files for coding agents in the working folder, which are only read.

    **find** lists those at these paths, or else where hosts expect them, and those that are `known`
    and still there. A name that ends with a slash is a folder of skills. A path that does not exist
    and is not known, or is outside, raises `InvalidInput`.
    """

    def find(self, paths: Sequence[str], known: Collection[str]) -> Sequence[NoteFile]: ...


def read_instructions(file: str, data: bytes) -> Iterator[Instruction | Fault]:
    """Yield the sections of a file, and what is wrong in it. A section that is only a heading is
    left out."""
    # Notes do not need it.
    from memory_mesh.core.language.scrubbing import heading_sections, is_heading

    text = decoded(file, data)
    if isinstance(text, Fault):
        yield text
        return
    try:
        rule, start = _rule_frontmatter(text)
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
            yield Instruction(
                title=title, content=content, other=rule, file=file, section=number, line=line
            )
            number += 1


def _rule_frontmatter(text: str) -> tuple[Mapping[str, object], int]:
    """Return what the frontmatter says, and where it ends in the text."""
    values, end = _values(text)
    description, globs = values.get("description"), values.get("globs", [])
    if description is not None and not isinstance(description, str):
        raise InvalidInput(f"description is a {type(description).__name__}", expected="text")
    always = _flag(values, "alwaysApply", ("true", "false"))
    given = _COMMA.split(globs) if isinstance(globs, str) else globs
    if not isinstance(given, list) or not all(isinstance(glob, str) for glob in given):
        raise InvalidInput(
            "globs is not a list of texts", expected="patterns such as src/*.ts, *.tsx"
        )
    patterns = [glob.strip() for glob in given if glob.strip()]
    rule = {
        "description": description and description.strip(),
        "globs": patterns,
        "always_apply": always,
    }
    return {name: value for name, value in rule.items() if value}, end


def _values(text: str) -> tuple[Mapping[str, object], int]:
    try:
        return split_frontmatter(text, expected=_RULE_KEYS)
    except InvalidInput:
        head = text[: text.find("\n---", 3) + 1]
        quoted = _BARE.sub(
            lambda found: found[1] + "'" + found[2].rstrip().replace("'", "''") + "'", head
        )
        if quoted == head:
            raise
        values, end = split_frontmatter(quoted + text[len(head) :], expected=_RULE_KEYS)
        return values, end - len(quoted) + len(head)
