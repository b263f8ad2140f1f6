"""Words out: an answer as text or JSON, an error as one line, and the one table that gives each error its codes.

The text is the same on a terminal and in a pipe; a terminal only adds colour. What comes from memories is made safe first:
no stored text can drive a terminal.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from typing import NamedTuple

from memory_mesh.core import errors
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.core.model.records import Change, MemoryRecord
from memory_mesh.core.text import CONTROL, REORDERING, SURROGATES

NAME = "[MemoryMesh]"
ERROR = "[MemoryMesh Error]"


class Outcome(NamedTuple):
    """What an error becomes outside: the exit code of a command, the status of an HTTP answer."""

    exit_code: int
    http_status: int


OUTCOMES: Mapping[type[MemoryMeshError], Outcome] = {
    MemoryMeshError: Outcome(1, 500),
    errors.InvalidInput: Outcome(2, 400),
    errors.InvalidFilter: Outcome(2, 400),
    errors.KeyReused: Outcome(2, 409),
    errors.SettingsError: Outcome(3, 500),
    errors.NotFound: Outcome(4, 404),
    errors.NotYet: Outcome(5, 501),
    errors.MemoryDisabled: Outcome(6, 503),
    errors.StoreError: Outcome(7, 500),
    errors.StoreUnavailable: Outcome(7, 503),
    errors.StoreClosed: Outcome(7, 503),
    errors.StoreReadOnly: Outcome(8, 403),
    errors.StoreBusy: Outcome(9, 503),
    errors.Conflict: Outcome(9, 409),
    errors.IdTaken: Outcome(9, 409),
    errors.StoreFull: Outcome(10, 507),
    errors.StoreCorrupt: Outcome(11, 500),
    errors.StoreTooNew: Outcome(12, 500),
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
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command has to say: to people, to programs, and to the shell."""

    text: str
    data: Mapping[str, object]
    code: int = 0
    drawn: Callable[[], str] | None = None  # how a terminal shows it, where that is more than the text in colour
    as_json: bool = False


# --- streams ---


def speak_utf8() -> None:
    """Every character can be read and written, whatever the locale says."""
    ways = ((sys.stdin, "surrogateescape"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace"))
    for stream, unknown in ways:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=unknown)


def show(answer: Answer, *, colour: bool) -> int:
    """Write an answer to standard output."""
    if answer.as_json:
        written = as_json(answer.data)
    elif colour and sys.stdout.isatty():
        written = answer.drawn() if answer.drawn else paint(safe(answer.text))
    else:
        written = safe(answer.text)
    sys.stdout.write(written.rstrip("\n") + "\n")
    sys.stdout.flush()
    return answer.code


def complain(message: str, code: int, *, colour: bool) -> int:
    """Write an error to standard error, in one line."""
    line = f"{ERROR} {one_line(message)}"
    sys.stderr.write((paint(line) if colour and sys.stderr.isatty() else line) + "\n")
    return code


def outcome(error: MemoryMeshError) -> Outcome:
    """The codes of an error, or of the nearest kind above it."""
    return next(OUTCOMES[kind] for kind in type(error).__mro__ if kind in OUTCOMES)


# --- texts ---

# Everything that moves a terminal's cursor, colours or reading order; a tab and a line break are welcome.
_UNSAFE = re.compile(rf"[{CONTROL}\x0b-\x0d\x85{REORDERING}{SURROGATES}]")
_PASSWORD = re.compile(r"(\w://[^/\s:@]*):[^/\s@]+@")
_STYLES = (
    (re.compile(r"^\[MemoryMesh\]", re.MULTILINE), "1;36"),
    (re.compile(r"^\[MemoryMesh Error\]"), "1;31"),
    (re.compile(r"^\[(?:ATTENTION DIRECTIVE|MEMORY CONTEXT)\]$", re.MULTILINE), "1;33"),
    (re.compile(r"^--- MEMORY \d+: .* ---$", re.MULTILINE), "1"),
    (re.compile(r"^Type: .* \| Source: .*$", re.MULTILINE), "2"),
)


def safe(text: str) -> str:
    """The text with its control characters spelled out."""
    return _UNSAFE.sub(lambda found: _spelled(found.group()), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """A message that stays on its line and tells no password of a URL."""
    return unsecret(safe(" ".join(text.split())))


def unsecret(text: str) -> str:
    """The text without the password of a URL."""
    return _PASSWORD.sub(r"\1:***@", text)


def as_json(data: Mapping[str, object]) -> str:
    """JSON as people can read it; what could drive a terminal is escaped."""
    written = json.dumps(data, ensure_ascii=False, indent=2)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", written)


def paint(text: str, styles: Sequence[tuple[re.Pattern[str], str]] = ()) -> str:
    """The same text in colour."""
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
    """Rows as columns of plain text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows as a terminal shows them best."""
    from rich.console import Console  # 50 ms that only a terminal pays
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*heads, box=None, header_style="bold", pad_edge=False)
    for first, *others in rows:
        drawn.add_row(Text(safe(first), "cyan"), *(Text(safe(cell), overflow="fold") for cell in others))
    console = Console(force_terminal=True)
    with console.capture() as captured:
        console.print(drawn)
    return f"{paint(f'{NAME} {title}')}\n{captured.get()}"


# --- memories ---


def record_text(record: MemoryRecord) -> str:
    """One memory, whole."""
    facts = {
        "Type": record.metadata.get("type") or record.memory_type,
        "Source": record.metadata.get("source") or "unknown",
        "Status": record.status,
        "Revision": record.revision,
        "Observed": record.times_observed,
        "Pinned": "yes" if record.pinned else "no",
    }
    owner = {"User": record.user_id, "Agent": record.agent_id, "Session": record.session_id, "Created": record.created_at}
    lines = [f"{NAME} Record {record.id}", _pairs(facts), _pairs(owner)]
    if record.metadata:
        lines.append(f"Metadata: {json.dumps(record.metadata, ensure_ascii=False)}")
    return "\n".join([*lines, "", record.content])


def list_text(records: Sequence[MemoryRecord]) -> str:
    """Memories, one on a line."""
    lines = [f"{record.id}  {record.created_at}  {record.memory_type:<10}  {preview(record.content)}" for record in records]
    return "\n".join([f"{NAME} Listed {len(records)} memories.", *lines])


def history_text(memory_id: str, changes: Sequence[Change]) -> str:
    """How a memory became what it is, oldest first."""
    lines = [f"{NAME} History of {memory_id}: {len(changes)} revisions."]
    for change in changes:
        why = f": {change.why}" if change.why else ""
        lines.append(f"{change.number:>4}  {change.created_at}  {change.action} by {change.agent_id or 'unknown'}{why}")
        lines += [f"      {name} was {preview(_value(was))}" for name, was in change.before.items()]
    return "\n".join(lines)


def plain(value: MemoryRecord | Change) -> dict[str, object]:
    """A record for JSON."""
    return asdict(value)


def preview(text: str, length: int = 80) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def size(number: float) -> str:
    """A number of bytes as people say it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"


def _pairs(named: Mapping[str, object]) -> str:
    return " | ".join(f"{name}: {value}" for name, value in named.items() if value is not None)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
