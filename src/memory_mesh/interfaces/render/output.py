"""Write answers and errors: as text, as JSON, or as screens, with their exit codes and statuses.

The text is the same on a terminal and in a pipe; a terminal adds colour and tables. Everything is
made safe before it is written: no stored text can control a terminal.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from io import TextIOWrapper
from typing import TYPE_CHECKING, NamedTuple, TextIO

from memory_mesh.core import errors
from memory_mesh.core.errors import MemoryMeshError

# Not the records: what only prints a line, such as an error, does not load them.
from memory_mesh.core.text import CONTROL, REORDERING, SURROGATES, day, without_passwords

if TYPE_CHECKING:
    from _typeshed import DataclassInstance as Record
    from rich.console import RenderableType
    from rich.text import Text

    from memory_mesh.core.model import MemoryRecord, SearchResult
    from memory_mesh.core.ports import Progress


NAME = "[MemoryMesh]"
ERROR = "[MemoryMesh Error]"
RESULTS = "results"  # the name of the list in every answer that is a list


class Outcome(NamedTuple):
    """The exit code of a command and the status of an HTTP response that an error leads to."""

    exit_code: int
    http_status: int


OUTCOMES: Mapping[type[MemoryMeshError], Outcome] = {
    MemoryMeshError: Outcome(1, 500),
    errors.InvalidInput: Outcome(2, 400),
    errors.InvalidFilter: Outcome(2, 400),
    errors.KeyReused: Outcome(2, 409),
    errors.WrongStatus: Outcome(2, 409),
    errors.TooLarge: Outcome(2, 413),
    errors.SettingsError: Outcome(3, 500),
    errors.NotFound: Outcome(4, 404),
    errors.MemoryDisabled: Outcome(6, 503),
    errors.StoreError: Outcome(7, 500),
    errors.StoreUnavailable: Outcome(7, 503),
    errors.StoreMissing: Outcome(7, 404),
    errors.StoreReplaced: Outcome(7, 503),
    errors.StoreClosed: Outcome(7, 503),
    errors.StoreReadOnly: Outcome(8, 403),
    errors.StoreBusy: Outcome(9, 503),
    errors.Conflict: Outcome(9, 409),
    errors.IdTaken: Outcome(9, 409),
    errors.StoreFull: Outcome(10, 507),
    errors.StoreCorrupt: Outcome(11, 500),
    errors.ContentAltered: Outcome(11, 500),
    errors.StoreForeign: Outcome(11, 500),
    errors.StoreTooNew: Outcome(12, 500),
    errors.StoreTooOld: Outcome(12, 500),
    errors.EmbeddingError: Outcome(13, 503),
    errors.ModelMissing: Outcome(13, 503),
    errors.ModelMismatch: Outcome(14, 409),
    errors.CallError: Outcome(15, 502),
    errors.Unreachable: Outcome(15, 502),
    errors.CallRefused: Outcome(15, 502),
    errors.CallTimedOut: Outcome(15, 504),
    errors.RateLimited: Outcome(15, 503),
    errors.AnswerUnreadable: Outcome(15, 502),
    errors.UnsafeAddress: Outcome(16, 403),
    errors.BudgetSpent: Outcome(17, 429),
    errors.Cancelled: Outcome(18, 499),
    errors.AccessDenied: Outcome(19, 403),
    errors.TokenInvalid: Outcome(19, 401),
    errors.TooManyRequests: Outcome(20, 429),
}


EXIT_CODES = """\
Exit codes: 0 success, 1 failure, 2 wrong usage, 3 wrong settings, 4 no such memory, 5 not in this \
version, 6 memory is disabled,
130 interrupted. The store: 7 unavailable, 8 read-only, 9 busy, 10 full, 11 damaged, 12 wrong \
version. The embedder: 13 no vector,
14 another model. Calls to other machines: 15 failed, 16 refused as unsafe, 17 over the budget, 18 \
cancelled.
Servers: 19 access denied, 20 too many requests."""
PIPE_CLOSED = 141  # what shells expect when the reader of a pipe is gone


class Form(StrEnum):
    """The form of an answer."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"  # one object a line: each item of a list, or else the whole answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a command: to people, to programs, and to the shell. With neither text nor
    data nothing is written."""

    text: str
    data: Mapping[str, object]
    rows: str = RESULTS  # the list in `data` that the answer is about, if there is one
    code: int = 0
    problems: Sequence[str] = ()  # one line each, on standard error
    draw: Callable[[], str] | None = None  # makes the text of a terminal, in colour
    # The first line of a command whose text another program reads: it goes to standard error.
    note: str = ""


def answer(
    title: str,
    data: "Record | Mapping[str, object]",
    lines: Iterable[str] = (),
    *,
    rows: str = RESULTS,
    failed: object = False,
    problems: Sequence[str] = (),
    draw: Callable[[], str] | None = None,
) -> Answer:
    """Return an answer whose text is a sentence after the name of the program, and further lines;
    empty ones are left out. The exit code is 1 if something `failed`."""
    return Answer(
        text="\n".join([f"{NAME} {title}", *filter(None, lines)]),
        data=data if isinstance(data, Mapping) else asdict(data),
        rows=rows,
        code=1 if failed else 0,
        problems=problems,
        draw=draw,
    )


def items(records: "Sequence[Record | Mapping[str, object]]", **more: object) -> dict[str, object]:
    """Return records as data: their number, the list, and what else belongs to the answer."""
    parts = [one if isinstance(one, Mapping) else asdict(one) for one in records]
    return {"count": len(parts), RESULTS: parts, **more}


# --- streams ---


def prepare_streams() -> None:
    """Read and write every character, whatever the locale. A stream that the caller closed
    (`>&-`) becomes the null device."""
    for name, mode, on_error in (
        ("stdin", "r", "surrogateescape"),
        ("stdout", "w", "backslashreplace"),
        ("stderr", "w", "backslashreplace"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (pathlib takes 5 ms; open until the end)
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=on_error)


def use_colour(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether to colour what is written to a stream: a terminal, unless NO_COLOR is set
    or it cannot show colours."""
    environ = os.environ if environ is None else environ
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def show(answer: Answer, form: Form = Form.TEXT) -> int:
    """Write an answer and return its exit code."""
    for problem in answer.problems:
        complain(MemoryMeshError(problem), form)
    if answer.note and form is Form.TEXT:
        _note(f"{NAME} {one_line(answer.note)}")
    text = _formatted(answer, form)
    try:
        write([text.rstrip("\n") + "\n"] if text else [])
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:  # such as a full disk behind `>`
        return complain(MemoryMeshError(f"the answer cannot be written: {error.strerror}"), form)
    return answer.code


def _formatted(answer: Answer, form: Form) -> str:
    listed = answer.data.get(answer.rows)
    if form is Form.JSONL and isinstance(listed, list | tuple):
        return "\n".join(to_json(part) for part in listed if isinstance(part, Mapping))
    if form is not Form.TEXT and answer.data:
        return to_json(answer.data, indent=2 if form is Form.JSON else None)
    if not sys.stdout.isatty():
        return safe(answer.text)
    drawn = answer.draw() if answer.draw else paint(safe(answer.text))
    return drawn if use_colour(sys.stdout) else _COLOUR.sub("", drawn)


def write(pieces: Iterable[str]) -> int:
    """Write to standard output and return the number of pieces. After a failure standard output
    is closed for good: Python would try again at its end."""
    count = 0
    try:
        for count, piece in enumerate(pieces, start=1):  # noqa: B007  (the last number is the count)
            sys.stdout.write(piece)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
    return count


def complain(error: MemoryMeshError, form: Form = Form.TEXT) -> int:
    """Write an error to standard error, in one line, and return its exit code."""
    code = outcome(error).exit_code
    parts = {"what": error.what, "expected": error.expected, "remedy": error.remedy}
    texts = {name: one_line(text) for name, text in parts.items() if text}
    data = {"error": type(error).__name__, **texts, "exit_code": code}
    _note(f"{ERROR} {one_line(str(error))}", data if form is not Form.TEXT else None)
    return code


def _note(line: str, data: Mapping[str, object] | None = None) -> None:
    """Write a line, or data as JSON, to standard error. If that is closed or full, only the exit
    code is left."""
    if data:
        line = to_json(data)
    elif use_colour(sys.stderr):
        line = paint(line)
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@contextmanager
def warnings_shown(form: Form) -> Iterator[None]:
    """Write the warnings that are logged meanwhile to standard error, one line each, in the form
    of the answer."""
    from logging import WARNING, Handler, LogRecord, getLogger  # 10 ms that help does not pay

    class Lines(Handler):
        def emit(self, record: LogRecord) -> None:
            text = one_line(record.getMessage())
            _note(f"{NAME} {text}", {"warning": text} if form is not Form.TEXT else None)

    log, lines = getLogger("memory_mesh"), Lines(WARNING)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)


def outcome(error: MemoryMeshError) -> Outcome:
    """Return the codes of an error, or of the nearest class above it."""
    return next(OUTCOMES[kind] for kind in type(error).__mro__ if kind in OUTCOMES)


@contextmanager
def progress(style: str = "bar") -> Iterator["Progress"]:
    """Show progress on standard error: a bar on a terminal; elsewhere nothing, or with the style
    `lines` a line a batch."""
    from memory_mesh.core.ports import no_progress

    if not style or not sys.stderr.isatty():
        yield _progress_line if style == "lines" else no_progress
        return
    from rich.console import Console  # 50 ms that only a terminal pays
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def update(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=of)
            bar.update(tasks[what], completed=done, total=of)

        yield update


def _progress_line(what: str, done: int, of: int) -> None:
    if 0 < done < of:  # the summary follows the last batch anyway
        sys.stderr.write(f"{NAME} {done} of {of} {what}\n")
        sys.stderr.flush()


# --- texts ---

STORED_VALUES = frozenset({"metadata", "before", "detail"})  # fields whose nulls are the caller's
_PLURALS = (("ry", "ries"), ("s", "ses"), ("", "s"))  # the end of a noun, and of its plural
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Everything that moves the cursor of a terminal or changes its colours or reading order, except tab
# and line break.
_UNSAFE = re.compile(rf"[{CONTROL}\x0b-\x0d\x85{REORDERING}{SURROGATES}]")
_STYLES = (
    (re.compile(r"^\[MemoryMesh\]", re.MULTILINE), "1;36"),
    (re.compile(r"^\[MemoryMesh Error\]"), "1;31"),
    (re.compile(r"^\[(?:ATTENTION DIRECTIVE|MEMORY CONTEXT)\]$", re.MULTILINE), "1;33"),
    (re.compile(r"^--- MEMORY \d+: .* ---$", re.MULTILINE), "1"),
    (re.compile(r"^Type: .* \| Source: .*$", re.MULTILINE), "2"),
)


def safe(text: str) -> str:
    """Return the text with its control characters spelled out."""

    def spelled(match: re.Match[str]) -> str:
        code = ord(match.group())
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _UNSAFE.sub(spelled, text.replace("\r\n", "\n"))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    ending, plural = next(pair for pair in _PLURALS if noun.endswith(pair[0]))
    return f"{number} {noun if number == 1 else noun.removesuffix(ending) + plural}"


def when(condition: object, text: str) -> str:
    """Return a text if the condition holds, else an empty one."""
    return text if condition else ""


def first_20(lines: Sequence[str], more: str = "… and {} more; --json shows all") -> list[str]:
    """Return at most 20 lines, and how many more there are."""
    return [*lines[:20], when(lines[20:], more.format(len(lines) - 20))]


def one_line(text: str) -> str:
    """Return a message as one line, without the passwords of URLs."""
    return without_passwords(safe(" ".join(text.split())))


def to_json(data: Mapping[str, object], *, indent: int | None = None) -> str:
    """Return JSON without null fields, with every character escaped that could control a
    terminal."""
    written = json.dumps(without_nulls(data), ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", written)


def without_nulls(value: object) -> object:
    """Remove the null fields of records. What the caller stored, and what it replaced, stays as
    it is."""
    if isinstance(value, Mapping):
        pairs = ((name, part) for name, part in value.items() if part is not None)
        return {
            name: part if name in STORED_VALUES else without_nulls(part) for name, part in pairs
        }
    return [without_nulls(part) for part in value] if isinstance(value, list | tuple) else value


def paint(text: str, styles: Sequence[tuple[re.Pattern[str], str]] = ()) -> str:
    """Return the same text in colour."""
    for pattern, style in (*_STYLES, *styles):
        text = pattern.sub(styled(r"\g<0>", style), text)
    return text


def styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


# --- tables ---


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns of plain text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(*heads, box=None, header_style="bold", pad_edge=False)
    for first, *others in rows:
        cells = (Text(safe(cell), overflow="fold") for cell in others)
        grid.add_row(Text(safe(first), "cyan"), *cells)
    return f"{paint(f'{NAME} {title}')}\n{drawn(grid)}"


def drawn(what: "RenderableType", *, width: int | None = None) -> str:
    """Return what a terminal shows, in colour. With a width, lines are not broken."""
    from rich.console import Console  # 50 ms that only a terminal pays

    console = Console(force_terminal=True, width=width)
    with console.capture() as captured:
        console.print(what, soft_wrap=width is not None)
    return captured.get()


def preview(text: str, length: int = 80) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def excerpt(text: str, length: int = 80) -> str:
    """Return the beginning of a text on one line, without control characters and passwords."""
    return preview(one_line(text), length)


def size(number: float) -> str:
    """Return a number of bytes in a readable unit."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"


# --- screens ---
# Answers for a person at a terminal; a pipe gets plain lines instead. Each function returns text in
# colour, made safe, and as wide as the terminal.

_INDENT = 4
_MAX_LINES = 8  # of the text of a result
_AGES = (
    (365 * 86_400, "year"),
    (30 * 86_400, "month"),
    (7 * 86_400, "week"),
    (86_400, "day"),
    (3600, "hour"),
    (60, "minute"),
)
_KINDS = {
    "email": "e-mail address", "ip": "IP address", "phone": "phone number", "card": "card number",
    "api_key": "API key", "iban": "IBAN", "jwt": "JWT", "national_id": "national id",
    "us_ssn": "US social security number", "credentials": "login",
}  # fmt: skip


def results(found: "Sequence[SearchResult]", query: str, *, language: str, hint: str = "") -> str:
    """Return search results, each with its score, age, tags and source, and the words of the query
    marked in its text. A line stands below the last relevant one.

    If nothing is relevant, say so, with the hint if nothing was found.
    """
    from rich.text import Text

    from memory_mesh.core.search.passages import marked

    relevant = sum(result.relevant for result in found)
    summary = f"{counted(relevant, 'memory')} about" if relevant else "Nothing relevant to"
    summary += f" “{excerpt(query)}”" + when(found and not relevant, "; weaker matches:")
    blocks = [Text.from_ansi(paint(f"{NAME} {summary}"))]
    for at, result in enumerate(found):
        if at and at == relevant:
            blocks.append(Text("— probably not relevant below —", "dim"))
        text = safe(result.passage.text if result.passage else result.content)
        spans = marked(text, query, language=language)
        blocks.append(Text("\n").join([*_wrapped(_headline(result)), *_marked_lines(text, spans)]))
    if hint and not found:
        blocks.append(Text(hint, "dim"))
    return drawn(Text("\n\n" if found else "\n").join(blocks), width=_width())


def listing(memories: "Sequence[MemoryRecord]", next_page: str) -> str:
    """Return memories, one on each line, cut at the edge of the terminal, and the command for
    the next page."""
    from rich.text import Text

    lines = [Text.from_ansi(paint(f"{NAME} {counted(len(memories), 'memory')}"))]
    ages = [age(memory.created_at) for memory in memories]
    widest = max(map(len, ages), default=0)
    for memory, old in zip(memories, ages, strict=True):
        line = Text.assemble(
            (memory.id, "dim"),
            "  ",
            (f"{old:<{widest}}", "cyan"),
            "  ",
            (when(memory.memory_type != "global", f"[{memory.memory_type}] "), "dim"),
            safe(" ".join(memory.content.split())),
        )
        line.truncate(_width(), overflow="ellipsis")
        lines.append(line)
    if next_page:
        lines.append(Text(f"More: {safe(next_page)}", "dim"))
    return drawn(Text("\n").join(lines), width=_width())


def written(line: str, memory: "MemoryRecord", *, new: bool = False) -> str:
    """Return the line of a write, for a new memory whether its text was stored before, and what
    was masked in it."""
    done = when(new, "Stored.")
    if new and memory.key and memory.revision > 1 and memory.updated_at == memory.last_observed:
        done = f"Replaced what was stored under the key {one_line(memory.key)}; `history` keeps it."
    elif new and memory.times_observed > 1:
        done = f"Known already: seen {memory.times_observed} times, first {age(memory.created_at)}."
    below = " ".join(filter(None, (done, masked_values(memory.redactions))))
    return paint(line) + when(below, f"\n{below}")


def masked_values(redactions: Mapping[str, int]) -> str:
    """Return what was masked, such as `1 e-mail address and 2 phone numbers masked.`, or an
    empty text."""
    parts = [
        counted(count, _KINDS.get(kind, kind.replace("_", " ")))
        for kind, count in redactions.items()
    ]
    together = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
    return when(parts, f"{together} masked.")


def age(at: str, now: int | None = None) -> str:
    """Return how long ago a time was, such as `3 days ago`; `now` is in Unix milliseconds."""
    from memory_mesh.core.model import millis

    seconds = ((time.time_ns() // 1_000_000 if now is None else now) - millis(at)) / 1000
    for size, unit in _AGES:
        if abs(seconds) >= size:
            amount = counted(int(abs(seconds) // size), unit)
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return "just now"


def next_page(typed: Iterable[str], last: str) -> str:
    """Return the command that continues a list behind its last memory; the words after the
    command are kept."""
    words, kept = iter(typed), list[str]()
    for word in words:
        if word == "--after":
            next(words, None)
        elif not word.startswith("--after="):
            kept.append(word)
    return shlex.join(["memory-mesh", *kept, "--after", last])


def _headline(result: "SearchResult") -> "Text":
    """Return the line above the text of a result. What is usual, such as the status active, is
    left out."""
    from rich.text import Text

    section = result.passage.section if result.passage else ()
    source = result.metadata.get("source")
    parts = [
        age(result.event_time or result.created_at),
        " ".join(f"#{tag}" for tag in result.tags),
        " › ".join(map(str, [*([source] if source else []), *section])),
        result.speaker or "",
        when(result.memory_type != "global", result.memory_type),
        when(result.status != "active", result.status),
        when(result.copies != 1, f"{result.copies} copies"),
        f"until {day(result.until)}" if result.until else "",
        result.id,
    ]
    line = Text.assemble((f"{result.score:.2f}", "bold green" if result.score >= 0.5 else "green"))
    for part in filter(None, parts):
        line.append("  ").append(one_line(part), "dim" if part == result.id else "cyan")
    return line


def _marked_lines(text: str, spans: Sequence[tuple[int, int]]) -> "list[Text]":
    """Return the lines of a text around its first marked word, indented."""
    from rich.text import Text

    whole = Text(text.strip("\n"))
    shift = len(text) - len(text.lstrip("\n"))
    for start, end in spans:
        whole.stylize("bold yellow", start - shift, end - shift)
    lines = [line for line in _wrapped(whole, _INDENT) if line.plain]
    begin = max(0, next((n for n, line in enumerate(lines) if line.spans), 0) - 2)
    kept = lines[begin : begin + _MAX_LINES]
    if begin:
        kept.insert(0, Text("…"))
    if begin + _MAX_LINES < len(lines):
        kept.append(Text("…"))
    return [Text(" " * _INDENT).append_text(line) for line in kept]


def _wrapped(text: "Text", indent: int = 0) -> "list[Text]":
    from rich.console import Console

    lines = list(text.wrap(Console(), max(_width() - indent, 10)))
    for line in lines:
        line.rstrip()
    return lines


def _width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns
