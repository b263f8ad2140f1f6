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
from dataclasses import dataclass
from enum import StrEnum
from io import TextIOWrapper
from typing import TYPE_CHECKING, NamedTuple, TextIO

from memory_mesh.core import errors
from memory_mesh.core.errors import MemoryMeshError

# Not the records: what only prints a line, such as an error, does not load them.
from memory_mesh.core.text import CONTROL, REORDERING, SURROGATES, without_passwords

if TYPE_CHECKING:
    from rich.text import Text

    from memory_mesh.core.model import MemoryRecord, SearchResult
    from memory_mesh.core.ports import Progress


NAME = "[MemoryMesh]"
ERROR = "[MemoryMesh Error]"


class Outcome(NamedTuple):
    """The exit code of a command and the status of an HTTP response that an error leads to."""

    exit_code: int
    http_status: int


OUTCOMES: Mapping[type[MemoryMeshError], Outcome] = {
    MemoryMeshError: Outcome(1, 500),
    errors.InvalidInput: Outcome(2, 400),
    errors.InvalidFilter: Outcome(2, 400),
    errors.KeyReused: Outcome(2, 409),
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
    rows: str = ""  # the list in `data` that the answer is about
    code: int = 0
    problems: Sequence[str] = ()  # one line each, on standard error
    draw: Callable[[], str] | None = None  # makes the text of a terminal, in colour
    # The first line of a command whose text another program reads: it goes to standard error.
    note: str = ""


# --- streams ---


def prepare_streams() -> None:
    """Read and write every character, whatever the locale. A stream that the caller closed
    (`>&-`) becomes the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (pathlib takes 5 ms; open until the end)
    on_error = (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    )
    for stream, errors_ in on_error:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors_)


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
        _say(answer.note)
    text = _formatted(answer, form)
    try:
        write([text.rstrip("\n") + "\n"] if text else [])
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:  # such as a full disk behind `>`
        return complain(MemoryMeshError(f"the answer cannot be written: {error.strerror}"), form)
    return answer.code


def _formatted(answer: Answer, form: Form) -> str:
    if form is Form.JSONL and answer.rows:
        items = answer.data[answer.rows]
        return (
            "\n".join(to_json(item) for item in items if isinstance(item, Mapping))
            if isinstance(items, Sequence)
            else ""
        )
    if form is not Form.TEXT and answer.data:
        return to_json(answer.data, indent=2 if form is Form.JSON else None)
    if not sys.stdout.isatty():
        return safe(answer.text)
    drawn = answer.draw() if answer.draw else paint(safe(answer.text))
    return drawn if use_colour(sys.stdout) else _COLOUR.sub("", drawn)


def write(pieces: Iterable[str]) -> None:
    """Write to standard output. After a failure standard output is closed for good: Python would
    try again at its end."""
    try:
        for piece in pieces:
            sys.stdout.write(piece)
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def complain(error: MemoryMeshError, form: Form = Form.TEXT) -> int:
    """Write an error to standard error, in one line, and return its exit code."""
    code = outcome(error).exit_code
    line = f"{ERROR} {one_line(str(error))}"
    if form is not Form.TEXT:
        parts = {"what": error.what, "expected": error.expected, "remedy": error.remedy}
        texts = {name: one_line(text) for name, text in parts.items() if text}
        line = to_json({"error": type(error).__name__, **texts, "exit_code": code})
    elif use_colour(sys.stderr):
        line = paint(line)
    _note(line)
    return code


def _say(text: str) -> None:
    """Write a line that begins with the name of the program to standard error."""
    line = f"{NAME} {one_line(text)}"
    _note(paint(line) if use_colour(sys.stderr) else line)


def _note(line: str) -> None:
    """Write a line to standard error. If that is closed or full, only the exit code is left."""
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
            _say(text) if form is Form.TEXT else _note(to_json({"warning": text}))

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
    return _UNSAFE.sub(lambda match: _spelled(match.group()), text.replace("\r\n", "\n"))


def masked(redactions: Mapping[str, int]) -> str:
    """Return the line that says what a write masked, or an empty text."""
    return (
        f"\n{NAME} Masked: {', '.join(f'{count} {kind}' for kind, count in redactions.items())}"
        if redactions
        else ""
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    plural = (
        f"{noun[:-1]}ies"
        if noun.endswith("ry")
        else f"{noun}es"
        if noun.endswith("s")
        else f"{noun}s"
    )
    return f"{number} {noun if number == 1 else plural}"


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


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


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
    from rich.console import Console  # 50 ms that only a terminal pays
    from rich.table import Table
    from rich.text import Text

    grid = Table(*heads, box=None, header_style="bold", pad_edge=False)
    for first, *others in rows:
        grid.add_row(
            Text(safe(first), "cyan"), *(Text(safe(cell), overflow="fold") for cell in others)
        )
    console = Console(force_terminal=True)
    with console.capture() as captured:
        console.print(grid)
    return f"{paint(f'{NAME} {title}')}\n{captured.get()}"


def preview(text: str, length: int = 80) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


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
    marked in its text.

    If nothing is relevant, say so, with the hint.
    """
    from rich.text import Text

    from memory_mesh.core.search.passages import marked

    about, now = f"“{preview(one_line(query))}”", _now()
    summary = (
        f"{counted(len(found), 'memory')} about {about}"
        if found
        else f"Nothing relevant to {about}"
    )
    blocks = [Text.from_ansi(paint(f"{NAME} {summary}"))]
    for result in found:
        text = safe(result.passage.text if result.passage else result.content)
        spans = marked(text, query, language=language)
        blocks.append(Text("\n").join([*_wrapped(_headline(result, now)), *_excerpt(text, spans)]))
    if hint and not found:
        blocks.append(Text(hint, "dim"))
    return _rendered(Text("\n\n" if found else "\n").join(blocks))


def listing(memories: "Sequence[MemoryRecord]", next_page: str) -> str:
    """Return memories, one on each line, cut at the edge of the terminal, and the command for
    the next page."""
    from rich.text import Text

    lines = [Text.from_ansi(paint(f"{NAME} {counted(len(memories), 'memory')}"))]
    now = _now()
    ages = [age(memory.created_at, now) for memory in memories]
    for memory, old in zip(memories, ages, strict=True):
        line = Text.assemble(
            (memory.id, "dim"), "  ", (f"{old:<{max(map(len, ages))}}", "cyan"), "  "
        )
        line.append("" if memory.memory_type == "global" else f"[{memory.memory_type}] ", "dim")
        line.append(safe(" ".join(memory.content.split())))
        line.truncate(_width(), overflow="ellipsis")
        lines.append(line)
    if next_page:
        lines.append(Text(f"More: {safe(next_page)}", "dim"))
    return _rendered(Text("\n").join(lines))


def stored(line: str, memory: "MemoryRecord") -> str:
    """Return the line of `store`, whether the text was new, and what was masked in it."""
    done = "Stored."
    if memory.key and memory.revision > 1 and memory.updated_at == memory.last_observed:
        done = f"Replaced what was stored under the key {one_line(memory.key)}; `history` keeps it."
    elif memory.times_observed > 1:
        done = (
            f"Known already: seen {memory.times_observed} times, first "
            f"{age(memory.created_at, _now())}."
        )
    return written(line, memory.redactions, done)


def written(line: str, redactions: Mapping[str, int], done: str = "") -> str:
    """Return the line of a write, what happened, and what was masked in the text."""
    below = " ".join(filter(None, (done, masked_values(redactions))))
    return paint(line) + (f"\n{below}" if below else "")


def masked_values(redactions: Mapping[str, int]) -> str:
    """Return what was masked, such as `1 e-mail address and 2 phone numbers masked.`, or an
    empty text."""
    parts = [
        counted(count, _KINDS.get(kind, kind.replace("_", " ")))
        for kind, count in redactions.items()
    ]
    return (
        " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) + " masked."
        if parts
        else ""
    )


def age(at: str, now: int) -> str:
    """Return how long ago a time was, such as `3 days ago`; `now` is in Unix milliseconds."""
    from memory_mesh.core.model import millis

    seconds = (now - millis(at)) / 1000
    size, unit = next(((size, unit) for size, unit in _AGES if abs(seconds) >= size), (0, ""))
    if not unit:
        return "just now"
    amount = counted(int(abs(seconds) // size), unit)
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


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


def _headline(result: "SearchResult", now: int) -> "Text":
    """Return the line above the text of a result. What is usual, such as the status active, is
    left out."""
    from rich.text import Text

    source, section = (
        result.metadata.get("source"),
        result.passage.section if result.passage else (),
    )
    parts = [
        age(result.event_time or result.created_at, now),
        " ".join(f"#{tag}" for tag in result.tags),
        " › ".join(map(str, [*([source] if source else []), *section])),
        result.speaker or "",
        "" if result.memory_type == "global" else result.memory_type,
        "" if result.status == "active" else result.status,
        "" if result.copies == 1 else f"{result.copies} copies",
        result.id,
    ]
    line = Text.assemble((f"{result.score:.2f}", "bold green" if result.score >= 0.5 else "green"))
    for part in filter(None, parts):
        line.append("  ").append(one_line(part), "dim" if part == result.id else "cyan")
    return line


def _excerpt(text: str, spans: Sequence[tuple[int, int]]) -> "list[Text]":
    """Return the lines of a text around its first marked word, indented."""
    from rich.text import Text

    whole = Text(text.strip("\n"))
    shift = len(text) - len(text.lstrip("\n"))
    for start, end in spans:
        whole.stylize("bold yellow", start - shift, end - shift)
    lines = [line for line in _wrapped(whole, _INDENT) if line.plain]
    begin = max(0, next((n for n, line in enumerate(lines) if line.spans), 0) - 2)
    kept = lines[begin : begin + _MAX_LINES]
    shown = [
        *([Text("…")] if begin else []),
        *kept,
        *([Text("…")] if begin + len(kept) < len(lines) else []),
    ]
    return [Text(" " * _INDENT).append_text(line) for line in shown]


def _wrapped(text: "Text", indent: int = 0) -> "list[Text]":
    from rich.console import Console

    lines = list(text.wrap(Console(), max(_width() - indent, 10)))
    for line in lines:
        line.rstrip()
    return lines


def _rendered(text: "Text") -> str:
    from rich.console import Console

    console = Console(force_terminal=True, width=_width())
    with console.capture() as captured:
        console.print(text, soft_wrap=True)
    return captured.get()


def _now() -> int:
    return time.time_ns() // 1_000_000


def _width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns
