"""A folder of notes: what its files hold, what is wrong in them, the keys of their sections, and what agents get of them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from memory_mesh.core.checks import is_number, one_of
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake import normal_text
from memory_mesh.core.notes.files import IMPORTANCES, Fault, Note, file_name, read_sections

MAX_BYTES = 1_000_000  # of a file
_KEBAB = re.compile(r"[^\W_A-Z]+(-[^\W_A-Z]+)*\.md")
_AGENT = {"max_injected": "maxInjected", "min_importance": "minImportance", "specialty": "specialty"}


class Notes(list[Note]):
    """The notes of a folder, in the order of files and sections. `faults` is what is wrong in the files."""

    def __init__(self, notes: Iterable[Note] = (), faults: Iterable[Fault] = ()) -> None:
        super().__init__(notes)
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a note was written: its file, its section from 0, and whether the file is new."""

    file: str
    section: int
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What the index of a folder took over from it: how many sections, and which faults kept others out."""

    added: int = 0
    updated: int = 0
    moved: int = 0  # to another file or title, with their feedback
    archived: int = 0  # removed, deprecated or no longer valid
    unchanged: int = 0
    files: tuple[str, ...] = ()  # those with changes
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAgent:
    """What an agent gets of the notes: how many, of which importance, and which tags are its specialty."""

    max_injected: int = 5
    min_importance: str | None = None
    specialty: tuple[str, ...] = ()


def read_file(name: str, data: bytes) -> Iterator[Note | Fault]:
    """Yield the notes of a file and what is wrong in it."""
    if not _KEBAB.fullmatch(name):
        yield Fault(name, 1, "the name of the file is not in kebab case; expected one such as login-rules.md", warning=True)
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
            yield Fault(note.file, note.line, f"the title is also that of {known.file}, line {known.line}", warning=True)


def keys_of(notes: Sequence[Note]) -> list[str]:
    """Return a key for each note: its file and its title, so that edits of other sections do not change it."""
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
    begun, lasting = (note.valid_from or at) <= at, at <= (note.valid_until or at)
    return begun and lasting and not note.deprecated


def read_agent_file(name: str, text: str) -> NoteAgent:
    """Return the configuration of an agent in a YAML file: `memory` with `maxInjected` and `minImportance`, and `specialty`."""
    import yaml  # slow to load

    try:
        values = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  (makes texts, lists and mappings only)
    except (yaml.YAMLError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):  # without its text, which may be that of any file
        raise InvalidInput(f"the file of agent {shown(name)} is not valid YAML with keys", expected="name and memory")
    memory, own = values.get("memory") or {}, {key: value for key, value in values.items() if key == "specialty"}
    return read_agent(name, {**own, **memory} if isinstance(memory, dict) else memory)


def read_agent(name: str, given: object) -> NoteAgent:
    """Return the configuration of an agent: a table of our names, or the document's with a table `memory`."""
    what = f"the notes of agent {shown(name, max_length=80)}"
    table = given.get("memory", given) if isinstance(given, Mapping) else given
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{what} are {shown(given)}", expected=f"a table with {', '.join(_AGENT)}")
    values = {ours: table[own] for ours, theirs in _AGENT.items() for own in (theirs, ours) if own in table}
    if unknown := table.keys() - {*_AGENT, *_AGENT.values()}:
        raise InvalidInput(f"{what} have the key {shown(min(map(str, unknown)))}", expected=", ".join(_AGENT))
    most, least, tags = values.get("max_injected", 5), values.get("min_importance"), values.get("specialty", [])
    most = int(most) if isinstance(most, str) and most.isdecimal() else most  # YAML is read as texts
    if not isinstance(most, int) or not is_number(most, min_=0, max_=1000):
        raise InvalidInput(f"max_injected of agent {shown(name)} is {shown(most)}", expected="a whole number from 0 to 1000")
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise InvalidInput(f"specialty of agent {shown(name)} is {shown(tags)}", expected="a list of tags")
    importance = None if least is None else one_of("min_importance", least, IMPORTANCES)
    return NoteAgent(max_injected=most, min_importance=importance, specialty=tuple(tags))
