"""Traces and entries of the experience log: check them, write them as Markdown, and read them.

A file holds any number of documents, each with YAML frontmatter. What cannot be read is a fault of
that document, and the others are read. Every record that was checked is read back equal from its
text. Below are the places of the files of a project, and the rules by which they move to archives.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from typing import Any, TypeVar

from memory_mesh.core.errors import InvalidInput, iterable, one_of, shown, whole_number
from memory_mesh.core.language.frontmatter import quoted, scalar, split_frontmatter
from memory_mesh.core.model import DAY_MS, iso, parse_time
from memory_mesh.core.notes import Fault
from memory_mesh.core.text import short_repr, shortened, split_sentences

STATUSES = ("success", "failure")
OUTCOMES = ("success", "failure", "success_with_recovery")
DONE = "done"
DECISION = "Decision: "
MAX_GOAL_CHARS = 100_000  # of a request; what is kept of it is `summarised_goal`
MAX_SUMMARY_CHARS = 200
_MAX_ENTRY_CHARS = 50_000  # of a text or list of the frontmatter, which must be read back
_MAX_FRONTMATTER = 1_000_000
_HEADINGS = ("Plan", "Steps Executed", "Results", "Learnings")
_TRACE_KEYS = (
    "trace_id",
    "timestamp",
    "goal",
    "status",
    "duration_ms",
    "tools_used",
    "files_created",
)
_LOG_KEYS = (
    "experience_id", "project_name", "primary_goal", "final_outcome", "components_used",
    "files_created", "output_summary", "execution_time_ms", "learnings_or_issues", "timestamp",
)  # fmt: skip
_LISTS = ("tools_used", "files_created", "components_used")
_NUMBERS = ("duration_ms", "execution_time_ms", "files_created")
_TRACE_ID = re.compile(r"trace[-_]\w[\w.:+-]{0,99}")  # of other programs too: with an ISO time
_EXPERIENCE_ID = re.compile(r"exp_[1-9][0-9]{0,17}")
_STATUS = re.compile(r"\w[^\n]{0,39}")
_STEP, _BULLET = re.compile(r"[0-9]+\. (.*)"), re.compile(r"- (.*)")
Record = TypeVar("Record", "Trace", "Experience")
_OWN_ID = re.compile(r"(?m)^(?:trace_id|experience_id)[ \t]*:[ \t]*['\"]?([\w.:+-]+)")
# Before the first document; also as bytes that were decoded one by one.
_BOM = "(?:\ufeff|\xef\xbb\xbf)?"
_BEGUN = re.compile(r"(?m)^(?:--?|---(?:\r?\n[a-z_]*)?)\Z")  # of a document, not even its first key
_ASCII_PUNCTUATION = {
    code: None for code in range(128) if unicodedata.category(chr(code))[0] == "P"
}
_ESCAPED = re.compile(r"#|---|\\")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an execution, and how it ended."""

    text: str
    status: str = DONE


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trace:
    """One execution: what was wanted, what was done, and what came of it. Make one with
    `checked_trace`."""

    __repr__ = short_repr

    trace_id: str
    timestamp: str
    goal: str
    status: str = "success"
    duration_ms: int = 0
    tools_used: tuple[str, ...] = ()
    files_created: tuple[str, ...] = ()
    plan: str = ""
    steps: tuple[Step, ...] = ()
    results: str = ""
    learnings: tuple[str, ...] = ()

    @property
    def decisions(self) -> tuple[str, ...]:
        """The learnings that are decisions, without the word."""
        return tuple(
            each.removeprefix(DECISION) for each in self.learnings if each.startswith(DECISION)
        )

    @property
    def text(self) -> str:
        """The document of the trace, as it is written to a file."""
        steps = [
            _item(f"{n}. ", f"{step.text} - {step.status}") for n, step in enumerate(self.steps, 1)
        ]
        parts = (escaped(self.plan), "\n".join(steps), escaped(self.results))
        lines = [
            "---", f"trace_id: {self.trace_id}", f'timestamp: "{self.timestamp}"',
            f"goal: {quoted(self.goal)}",
            f"status: {self.status}", f"duration_ms: {self.duration_ms}",
            *_list("tools_used", self.tools_used), *_list("files_created", self.files_created),
            "---", "", f"# Execution Trace: {self.goal}", "",
            *(f"## {name}\n{part}\n" for name, part in zip(_HEADINGS, parts, strict=False)),
            "## Learnings", *(_item("- ", each) for each in self.learnings), "", "",
        ]  # fmt: skip
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Experience:
    """One entry of the experience log. Make one with `checked_experience`."""

    __repr__ = short_repr

    experience_id: str
    project_name: str
    primary_goal: str
    final_outcome: str = "success"
    components_used: tuple[str, ...] = ()
    files_created: int = 0
    output_summary: str = ""
    execution_time_ms: int = 0
    learnings_or_issues: str = ""
    timestamp: str

    @property
    def number(self) -> int:
        return int(self.experience_id.removeprefix("exp_"))

    @property
    def text(self) -> str:
        """The entry between its `---` lines, as it is written to the log."""
        lines = [
            "---", f"experience_id: {self.experience_id}",
            f"project_name: {scalar(self.project_name)}",
            f"primary_goal: {quoted(self.primary_goal)}", f"final_outcome: {self.final_outcome}",
            *_list("components_used", self.components_used),
            f"files_created: {self.files_created}",
            f"output_summary: {quoted(self.output_summary)}",
            f"execution_time_ms: {self.execution_time_ms}", *_block(self.learnings_or_issues),
            f'timestamp: "{self.timestamp}"', "---", "", "",
        ]  # fmt: skip
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PatternMatch:
    """An earlier execution whose goal is similar."""

    __repr__ = short_repr

    goal: str
    similarity: float
    suggested_approach: str | None
    tools_used: tuple[str, ...]
    success: bool
    trace_id: str


# --- checking ---


def checked_trace(**values: Any) -> Trace:
    """Return a trace of valid values, its texts without outer blank lines. Raises `InvalidInput`
    for the first invalid one."""
    trace = Trace(**{"trace_id": "trace-0", "timestamp": "1970-01-01"} | values)
    if not isinstance(trace.trace_id, str) or not _TRACE_ID.fullmatch(trace.trace_id):
        raise InvalidInput(
            f"trace_id is {shown(trace.trace_id)}", expected="trace-{milliseconds}-{six hex digits}"
        )
    return Trace(
        trace_id=trace.trace_id,
        timestamp=parse_time(trace.timestamp, "timestamp"),
        goal=_goal("goal", trace.goal),
        status=one_of("status", trace.status, STATUSES),
        duration_ms=_count("duration_ms", trace.duration_ms),
        tools_used=_texts("tools_used", trace.tools_used),
        files_created=_texts("files_created", trace.files_created),
        plan=_text("plan", trace.plan),
        steps=tuple(
            map(
                _step,
                iterable("steps", trace.steps, expected="a list of texts, or of (text, status)"),
            )
        ),
        results=_text("results", trace.results),
        learnings=_texts("learnings", trace.learnings),
    )


def checked_experience(**values: Any) -> Experience:
    """Return an entry of valid values. Raises `InvalidInput` for the first invalid one."""
    entry = Experience(
        **{"experience_id": "exp_1", "project_name": "default", "timestamp": "1970-01-01"} | values
    )
    if not isinstance(entry.experience_id, str) or not _EXPERIENCE_ID.fullmatch(
        entry.experience_id
    ):
        raise InvalidInput(
            f"experience_id is {shown(entry.experience_id)}", expected="exp_ and a number"
        )
    return Experience(
        experience_id=entry.experience_id,
        project_name=_goal("project_name", entry.project_name),
        primary_goal=_goal("primary_goal", entry.primary_goal),
        final_outcome=one_of("final_outcome", entry.final_outcome, OUTCOMES),
        components_used=_texts("components_used", entry.components_used),
        files_created=_count("files_created", entry.files_created),
        output_summary=" ".join(_limited("output_summary", entry.output_summary).split()),
        execution_time_ms=_count("execution_time_ms", entry.execution_time_ms),
        learnings_or_issues=_limited("learnings_or_issues", entry.learnings_or_issues),
        timestamp=parse_time(entry.timestamp, "timestamp"),
    )


def with_texts(record: Record, change: Callable[[str], str]) -> Record:
    """Return a checked record with every free text changed, such as redacted. A text of a list
    that becomes empty is left out."""
    kept = {"trace_id", "experience_id", "timestamp", "status", "final_outcome"}
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    values |= {name: _changed(value, change) for name, value in values.items() if name not in kept}
    return checked_trace(**values) if isinstance(record, Trace) else checked_experience(**values)


def _changed(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Step):
        status = change(value.status)
        return Step(change(value.text), status if _is_status(status) else DONE)
    if isinstance(value, tuple):
        made = (_changed(each, change) for each in value)
        return tuple(
            each for each in made if (each.text if isinstance(each, Step) else str(each)).strip()
        )
    return value


def _plain(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {shown(value)}", expected="a text")
    text = value.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
    return text.replace("\0", "\ufffd")  # which stores refuse


def _text(name: str, value: object) -> str:
    return _plain(name, value).strip("\n").rstrip()


def _limited(name: str, value: object) -> str:
    return _at_most(_MAX_ENTRY_CHARS, name, _text(name, value).strip())


def _at_most(most: int, name: str, text: str) -> str:
    if len(text) > most:
        raise InvalidInput(
            f"{name} has {len(text):,} characters",
            expected=f"at most {most:,}",
            remedy="summarise it",
        )
    return text


def _goal(name: str, value: object) -> str:
    goal = " ".join(_plain(name, value).split())
    if not goal:
        raise InvalidInput(f"{name} is empty", expected="a text")
    return _at_most(MAX_GOAL_CHARS, name, goal)


def _texts(name: str, value: object) -> tuple[str, ...]:
    found = tuple(
        _plain(name, each).strip() for each in iterable(name, value, expected="a list of texts")
    )
    if not all(found):
        raise InvalidInput(f"{name} has an empty text", expected="a list of texts")
    if name in _LISTS:
        _at_most(_MAX_ENTRY_CHARS, name, "".join(found))
    return found


def _count(name: str, value: object) -> int:
    return whole_number(name, value, min_=0, max_=10**15)


def _step(value: object) -> Step:
    parts = value
    if isinstance(value, Step):
        parts = value.text, value.status
    elif isinstance(value, str):
        parts = value, DONE
    if not isinstance(parts, tuple | list) or len(parts) != 2:
        raise InvalidInput(f"a step is {shown(value)}", expected="a text, or (text, status)")
    ((text,), status) = _texts("steps", parts[:1]), _text("the status of a step", parts[1])
    if not _is_status(status):
        raise InvalidInput(
            f"the status of a step is {shown(status)}",
            expected="one to five words, such as done or failed",
        )
    return Step(text, status)


def _is_status(text: str) -> bool:
    return bool(_STATUS.fullmatch(text)) and " - " not in text and text == text.strip()


# --- writing ---


def _list(name: str, values: tuple[str, ...]) -> list[str]:
    return [f"{name}:", *(f"  - {scalar(each)}" for each in values)] if values else [f"{name}: []"]


def _item(mark: str, text: str) -> str:
    """Return an item of a list; its further lines are indented."""
    return mark + text.replace("\n", "\n" + " " * len(mark))


def _block(text: str) -> list[str]:
    # YAML refuses or changes some characters in a block, so such a text is quoted.
    if not all(char.isprintable() or char in "\n\t" for char in text):
        return [f"learnings_or_issues: {quoted(text)}"]
    return ["learnings_or_issues: |", *(f"  {line}" for line in text.split("\n") if text)]


def escaped(text: str) -> str:
    """Return a text in which no line looks like a heading or like the beginning of a document."""
    return "\n".join(f"\\{line}" if _ESCAPED.match(line) else line for line in text.split("\n"))


def unescaped(text: str) -> str:
    return "\n".join(
        line[1:] if line[:1] == "\\" and _ESCAPED.match(line, 1) else line
        for line in text.split("\n")
    )


# --- reading ---


def read_traces(text: str, file: str = "") -> Iterator[Trace | Fault]:
    """Yield the traces of a file and what is wrong in it, in the order of the lines. Of two with
    one id, the first counts."""
    return _read_all(text, file, _TRACE_KEYS, _trace)


def read_experiences(text: str, file: str = "") -> Iterator[Experience | Fault]:
    """Yield the entries of a log and what is wrong in it, in the order of the lines. Of two with
    one id, the first counts."""
    return _read_all(
        text,
        file,
        _LOG_KEYS,
        lambda part, line: checked_experience(**_front(part, line, _LOG_KEYS)[0]),
    )


def _read_all(
    text: str, file: str, keys: tuple[str, ...], make: Callable[[str, int], Record]
) -> Iterator[Record | Fault]:
    seen: set[str] = set()
    for line, part in documents(text, keys):
        try:
            found = make(part, line)
        except InvalidInput as error:
            yield Fault(file, line, str(error))
            continue
        id_ = str(getattr(found, keys[0]))
        if id_ not in seen:
            yield found
        seen.add(id_)


def documents(
    text: str, keys: tuple[str, ...] = (*_TRACE_KEYS, *_LOG_KEYS)
) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each document: it begins with `---` and a known key on the
    next line."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    starts = _starts(plain, keys)
    if plain[: starts[0] if starts else None].strip():
        starts.insert(0, 0)
    line, at = 1, 0
    for start, end in pairwise((*starts, len(plain))):
        line, at = line + plain.count("\n", at, start), start
        yield line, plain[start:end]


def without_documents(data: bytes, ids: Collection[str]) -> bytes:
    """Return the bytes of a file without the traces or entries with these ids; every other byte
    stays."""
    text = data.decode("latin-1")  # one character for each byte
    starts = _starts(text, (*_TRACE_KEYS, *_LOG_KEYS))
    kept = [text[: starts[0] if starts else None]]
    for start, end in pairwise((*starts, len(text))):
        found = _OWN_ID.search(text, start, end)
        kept += [] if found and found[1] in ids else [text[start:end]]
    return "".join(kept).encode("latin-1")


def cut_at(text: str) -> int | None:
    """Return where the last document begins if it lacks its end, because a crash came while it
    was written, or else None."""
    starts = _starts(text, (*_TRACE_KEYS, *_LOG_KEYS))
    start = starts[-1] if starts else 0
    is_entry = bool(re.match(rf"{_BOM}---[ \t]*\r?\nexperience_id", text[start:]))
    end = re.compile(r"(?m)^---[ \t]*\r?$" if is_entry else r"(?m)^## Learnings[ \t]*\r?$").search(
        text, start + 3
    )
    if starts and end is None:
        return start
    begun = _BEGUN.search(text, end.end() if end else 0)
    return begun.start() if begun else None


def _starts(text: str, keys: tuple[str, ...]) -> list[int]:
    return [
        found.start()
        for found in re.finditer(rf"(?m)^{_BOM}---[ \t]*\r?\n(?=(?:{'|'.join(keys)})[ \t]*:)", text)
    ]


def _front(text: str, line: int, keys: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    expected = ", ".join(keys)
    values, end = split_frontmatter(
        text, expected=expected, line=line, max_chars=_MAX_FRONTMATTER, keep_empty=True
    )
    if missing := [key for key in keys if key not in values and key not in _LISTS]:
        raise InvalidInput(f"{' and '.join(missing)} missing in the frontmatter", expected=expected)
    return {key: _value(key, values[key]) for key in keys if key in values}, end


def _value(key: str, value: object) -> object:
    if key in _LISTS and value == "":
        return ()
    is_number = key in _NUMBERS and isinstance(value, str) and re.fullmatch(r"[0-9]{1,16}", value)
    return int(str(value)) if is_number else value


def _trace(text: str, line: int) -> Trace:
    values, end = _front(text, line, _TRACE_KEYS)
    parts: dict[str, list[str]] = {"": []}
    current = ""
    for each in text[end:].split("\n"):
        name = each[3:].rstrip() if each.startswith("## ") else ""
        if name in _HEADINGS and name not in parts:
            current, parts[name] = name, []
        else:
            parts[current].append(each)
    plan, steps, results, learnings = (parts.get(name, []) for name in _HEADINGS)
    return checked_trace(
        **values,
        plan=unescaped("\n".join(plan)),
        steps=[_read_step(each) for each in _items(steps, _STEP)],
        results=unescaped("\n".join(results)),
        learnings=_items(learnings, _BULLET),
    )


def _items(lines: list[str], mark: re.Pattern[str]) -> list[str]:
    """Return the items of a list, each with its further lines, which are indented; empty lines
    are ignored."""
    items: list[str] = []
    indent = 0
    for line in filter(None, lines):
        if found := mark.fullmatch(line):
            items.append(found[1])
            indent = found.start(1)
        elif items:
            items[-1] += "\n" + (line[indent:] if not line[:indent].strip() else line.lstrip())
        else:
            items.append(line)
    return [item.strip() for item in items if item.strip()]


def _read_step(text: str) -> tuple[str, str]:
    head, mark, status = text.rpartition(" - ")
    return (head, status) if mark and head.strip() and _is_status(status) else (text, DONE)


# --- goals ---


def summarised_goal(text: str) -> str:
    """Return the first sentence of a request, at most 200 characters; the rest is not kept."""
    first = next((sentence for sentence in split_sentences(text.strip()) if sentence.strip()), "")
    return shortened(" ".join(first.split()), MAX_SUMMARY_CHARS)


def normalised(query: str) -> str:
    """Return a text in lower case without punctuation, its words separated by one space."""
    text = query.lower()
    if text.isascii():  # most goals are, and this is much faster
        return " ".join(text.translate(_ASCII_PUNCTUATION).split())
    return " ".join("".join(char for char in text if unicodedata.category(char)[0] != "P").split())


def word_similarity(query: str, goal: str) -> float:
    """Return the fraction of the words of a query that are words of a goal; 1.0 for equal
    normalised texts."""
    words, known = set(normalised(query).split()), set(normalised(goal).split())
    return len(words & known) / len(words) if words else 0.0


def digest(record: Trace | Experience) -> str:
    """Return a digest of all that a record holds."""
    return sha256(record.text.encode()).hexdigest()[:16]


# --- the layout of a project ---

DEFAULT_PROJECT = "default"
PROJECTS = "projects"
SYSTEM = "system"
SYSTEM_LOG = "system/memory_log.md"
SYSTEM_ARCHIVE = "system/archive"
ID_LENGTH = 16
# Tells the traces of two folders in one store apart, also after the folder was moved.
FOLDER_ID = "system/.id"
LAST_NUMBER = "system/.last_experience"  # the last number of an entry; it never falls
MAX_ENTRIES = 1000  # of the live log
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}(?<!\.)")
IS_HASHED = re.compile(r".*-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Project:
    """A project by its name, and the paths of its files."""

    name: str

    @property
    def folder(self) -> str:
        if _SAFE.fullmatch(self.name):
            return f"{PROJECTS}/{self.name}"
        slug = re.sub(r"[^A-Za-z0-9_]+", "-", self.name)[:60].strip("-")
        return f"{PROJECTS}/{slug or 'project'}-{sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def short_term(self) -> str:
        return f"{self.folder}/memory/short_term"

    @property
    def long_term(self) -> str:
        return f"{self.folder}/memory/long_term"

    @property
    def archive(self) -> str:
        return f"{self.folder}/memory/archive"

    @property
    def log(self) -> str:
        return f"{self.short_term}/execution_log.md"

    @property
    def cache(self) -> str:
        return f"{self.short_term}/context_cache.md"

    @property
    def tool_results(self) -> str:
        return f"{self.short_term}/tool_results"

    @property
    def context(self) -> str:
        return f"{self.folder}/context.md"

    @property
    def files(self) -> dict[str, str]:
        """The files that the first use of a project creates, with their texts."""
        empty = (
            self.log,
            self.cache,
            *(f"{self.long_term}/{name}.md" for name in ("learnings", "patterns", "decisions")),
        )
        return {**dict.fromkeys(empty, ""), self.context: f"# {self.name}\n"}

    @classmethod
    def of_folder(cls, name: str, context: str) -> "Project":
        """Return the project of a folder. A name that is not valid for a folder is the title of
        its context file."""
        title = cls(context.partition("\n")[0].removeprefix("# ").strip())
        return title if title.folder == f"{PROJECTS}/{name}" else cls(name)


def archive_of(number: int) -> str:
    """Return the archive of the log that an entry belongs to, of a thousand numbers each."""
    first = (number - 1) // MAX_ENTRIES * MAX_ENTRIES + 1
    return f"{SYSTEM_ARCHIVE}/memory_log-{first}-{first + MAX_ENTRIES - 1}.md.gz"


# --- retention ---
# Nothing is deleted: what leaves the live files moves to compressed archives.

IDLE_MS = DAY_MS  # short-term memory without activity for so long is pruned
# Of long-term memory, since the last run that it is drawn from.
CONSOLIDATE_DAYS, COMPRESS_DAYS = 180, 365


class Action(StrEnum):
    """What happens to something that is old."""

    ARCHIVE = "archive"  # traces: to the archive of their project
    CONSOLIDATE = "consolidate"  # learnings: drawn again from all traces of their project
    COMPRESS = "compress"  # learnings: to the archive of long-term memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a run of retention does, or would do, to a project."""

    action: Action
    project: str
    count: int
    ids: tuple[str, ...] = field(default=(), repr=False)
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Retention:
    """The result of a run of retention, and what is wrong in the experience log. With `dry_run`
    nothing was changed."""

    __repr__ = short_repr

    moves: tuple[Move, ...]
    dry_run: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectState:
    """What decides about the files of a project. Times are ISO 8601 texts."""

    project: str
    trace_ids: Sequence[str]  # of short-term memory
    last_activity: str | None
    learnings: Mapping[str, str]  # by id: when the last of its runs was
    # The lines of decisions.md by digest, with their days.
    decisions: Mapping[str, str] = field(default_factory=dict)
    regrouped_at: str = ""  # when long-term memory was consolidated again


def planned_moves(state: ProjectState, ms: int, *, reopened: bool = False) -> Iterator[Move]:
    """Yield what is due for a project, in the order in which it is done. `reopened` says that
    another session begins in it."""

    def move(action: Action, ids: Sequence[str], reason: str) -> Move:
        return Move(
            action=action, project=state.project, count=len(ids), ids=tuple(ids), reason=reason
        )

    # A session ended if nothing happened in it for 24 hours.
    last_activity = state.last_activity
    is_idle = last_activity is not None and last_activity <= iso(ms - IDLE_MS)
    if state.trace_ids and (reopened or is_idle):
        reason = f"no activity since {last_activity}"
        if reopened:
            reason = "the project was reopened by another session"
        yield move(Action.ARCHIVE, state.trace_ids, reason)
    half_year, year = (iso(ms - days * DAY_MS) for days in (CONSOLIDATE_DAYS, COMPRESS_DAYS))
    old = [id_ for id_, at in state.learnings.items() if year < at <= half_year]
    if old and state.regrouped_at <= half_year:
        yield move(Action.CONSOLIDATE, old, f"older than {CONSOLIDATE_DAYS} days")
    past = [id_ for id_, at in (*state.learnings.items(), *state.decisions.items()) if at <= year]
    if past:
        yield move(Action.COMPRESS, past, f"older than {COMPRESS_DAYS} days")
