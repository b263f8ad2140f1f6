"""Markdown files of notes: read their sections, write a new one, and check what people wrote.

A file is one or more sections, each with YAML frontmatter and Markdown below it. `---` between blank lines separates them. Every
section is a note of its own. What cannot be read is a fault of that section, and the others are read.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from memory_mesh.core.checks import one_of
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.frontmatter import quoted, scalar, split_frontmatter
from memory_mesh.core.intake import IMPORTANCE
from memory_mesh.core.model import Value, parse_time
from memory_mesh.core.reprs import short_repr

SEPARATOR = "\n\n---\n\n"
MAX_WORDS = 2000
EXPECTED = "title, whenToUse, tags, importance, discoveredAt and discoveredBy"
IMPORTANCES = tuple(IMPORTANCE)  # low to critical
# A separator is followed by the frontmatter of the next section, which tells it from a line across the page.
_NEXT = re.compile(r"\n[ \t]*\n---[ \t]*\n[ \t]*\n(?=---[ \t]*\n[ \t]*(?:#[^\n]*\n[ \t]*)*[A-Za-z][\w-]*:)")
# The same in a file with the line ends of Windows.
_NEXT_AS_WRITTEN = re.compile(_NEXT.pattern.replace(r"\n", r"\r?\n"))
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))})
_MAX_NAME_BYTES = 120
_KNOWN = (
    "title", "whenToUse", "tags", "importance", "discoveredAt", "discoveredBy", "discoveredIn", "source", "relatedMemories",
    "validFrom", "validUntil", "deprecated", "claim",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Note:
    """One section of a file: what it says, when it is used, and who found it out. Times are ISO 8601 texts in UTC."""

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
    """What is wrong in a file, and where; line 0 is the whole file. A warning does not keep the note from being used."""

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
        note = read_note(values if end else None, text[end:].strip("\n"), file=file, section=number, line=line)
    except InvalidInput as error:
        yield Fault(file, line, str(error))
        return
    yield note
    if (words := len(note.content.split())) > MAX_WORDS:
        yield Fault(file, line, f"the note has {words:,} words; expected at most {MAX_WORDS:,}", warning=True)


def read_note(values: Mapping[str, object] | None, content: str, **place: object) -> Note:
    """Return the note of a frontmatter and what is below it, or raise `InvalidInput` for the first invalid value."""
    if values is None:
        raise InvalidInput("there is no frontmatter", expected=f"--- on the first line, then {EXPECTED}")
    if missing := [name for name in _KNOWN[:6] if name not in values]:
        raise InvalidInput(f"{' and '.join(missing)} missing in the frontmatter", expected=EXPECTED)
    begin, end = _time(values, "validFrom"), _time(values, "validUntil")
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
    given = (value,) if isinstance(value, str) and name == "whenToUse" else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and each.strip() for each in given):
        raise InvalidInput(f"{name} is not a list of texts", expected="a list such as [auth, login]")
    return tuple(each.strip() for each in given)


def _time(values: Mapping[str, object], name: str) -> str | None:
    return None if name not in values else parse_time(values[name], name)


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
    return {str(name): texts.get(name, value if isinstance(value, bool) else str(value)) for name, value in given.items()}


def _flag(values: Mapping[str, object], name: str) -> bool:
    value = str(values.get(name, "false")).lower()
    if value not in ("true", "false", "yes", "no"):
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
    """Return the name of the file of a note: its title in kebab case. It is never empty, too long or outside the folder."""
    folded = unicodedata.normalize("NFKD", title.casefold().replace("ß", "ss"))
    letters = unicodedata.normalize("NFC", "".join(char for char in folded if not unicodedata.combining(char)))
    slug = re.sub(r"[\W_]+", "-", letters).strip("-")
    while len(slug.encode()) > _MAX_NAME_BYTES:
        slug = slug[:-1].rstrip("-")
    if not slug or slug in _RESERVED:
        slug = f"note-{slug or sha256(title.encode('utf-8', 'replace')).hexdigest()[:8]}"
    return f"{slug}.md"


def _frontmatter(note: Note) -> str:
    lines = [f"title: {quoted(note.title)}", "whenToUse:", *(f"  - {quoted(pattern)}" for pattern in note.when_to_use)]
    lines += [f"tags: [{', '.join(map(scalar, note.tags))}]", f"importance: {note.importance}"]
    lines += [f"discoveredAt: {note.discovered_at}", f"discoveredBy: {scalar(note.discovered_by)}"]
    more = {"discoveredIn": note.discovered_in, "source": note.source}
    lines += [f"{name}: {quoted(value)}" for name, value in more.items() if value is not None]
    if note.related_memories:
        lines.append(f"relatedMemories: [{', '.join(map(scalar, note.related_memories))}]")
    times = {"validFrom": note.valid_from, "validUntil": note.valid_until}
    lines += [f"{name}: {value}" for name, value in times.items() if value is not None]
    if note.deprecated:
        lines.append("deprecated: true")
    if note.claim:
        lines += [
            "claim:",
            *(
                f"  {scalar(name)}: {json.dumps(value) if isinstance(value, bool) else quoted(str(value))}"
                for name, value in note.claim.items()
            ),
        ]
    lines += [f"{scalar(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in note.other.items()]
    return "\n".join(["---", *lines, "---", ""])
