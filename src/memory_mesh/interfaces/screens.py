"""Screens: answers for a person at a terminal. A pipe gets the lines of `views` instead.

Each function returns text in colour, made safe, and as wide as the terminal.
"""

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from memory_mesh.core.model import MemoryRecord, SearchResult, millis
from memory_mesh.core.search.marks import marked
from memory_mesh.interfaces.render import NAME, counted, one_line, paint, preview, safe

if TYPE_CHECKING:
    from rich.text import Text

_INDENT = 4
_MAX_LINES = 8  # of the text of a result
_AGES = ((365 * 86_400, "year"), (30 * 86_400, "month"), (7 * 86_400, "week"), (86_400, "day"), (3600, "hour"), (60, "minute"))
_KINDS = {
    "email": "e-mail address", "ip": "IP address", "phone": "phone number", "card": "card number", "api_key": "API key",
    "iban": "IBAN", "jwt": "JWT", "national_id": "national id", "us_ssn": "US social security number", "credentials": "login",
}  # fmt: skip


def results(found: Sequence[SearchResult], query: str, *, language: str, hint: str = "") -> str:
    """Return search results, each with its score, age, tags and source, and the words of the query marked in its text.

    If nothing is relevant, say so, with the hint.
    """
    from rich.text import Text

    about, now = f"“{preview(one_line(query))}”", _now()
    summary = f"{counted(len(found), 'memory')} about {about}" if found else f"Nothing relevant to {about}"
    blocks = [Text.from_ansi(paint(f"{NAME} {summary}"))]
    for result in found:
        text = safe(result.passage.text if result.passage else result.content)
        spans = marked(text, query, language=language)
        blocks.append(Text("\n").join([*_wrapped(_headline(result, now)), *_excerpt(text, spans)]))
    if hint and not found:
        blocks.append(Text(hint, "dim"))
    return _rendered(Text("\n\n" if found else "\n").join(blocks))


def listing(memories: Sequence[MemoryRecord], next_page: str) -> str:
    """Return memories, one on each line, cut at the edge of the terminal, and the command for the next page."""
    from rich.text import Text

    lines = [Text.from_ansi(paint(f"{NAME} {counted(len(memories), 'memory')}"))]
    now = _now()
    ages = [age(memory.created_at, now) for memory in memories]
    for memory, old in zip(memories, ages, strict=True):
        line = Text.assemble((memory.id, "dim"), "  ", (f"{old:<{max(map(len, ages))}}", "cyan"), "  ")
        line.append("" if memory.memory_type == "global" else f"[{memory.memory_type}] ", "dim")
        line.append(safe(" ".join(memory.content.split())))
        line.truncate(_width(), overflow="ellipsis")
        lines.append(line)
    if next_page:
        lines.append(Text(f"More: {safe(next_page)}", "dim"))
    return _rendered(Text("\n").join(lines))


def stored(line: str, memory: MemoryRecord) -> str:
    """Return the line of `store`, whether the text was new, and what was masked in it."""
    done = "Stored."
    if memory.key and memory.revision > 1 and memory.updated_at == memory.last_observed:
        done = f"Replaced what was stored under the key {one_line(memory.key)}; `history` keeps it."
    elif memory.times_observed > 1:
        done = f"Known already: seen {memory.times_observed} times, first {age(memory.created_at, _now())}."
    return written(line, memory.redactions, done)


def written(line: str, redactions: Mapping[str, int], done: str = "") -> str:
    """Return the line of a write, what happened, and what was masked in the text."""
    below = " ".join(filter(None, (done, masked_values(redactions))))
    return paint(line) + (f"\n{below}" if below else "")


def masked_values(redactions: Mapping[str, int]) -> str:
    """Return what was masked, such as `1 e-mail address and 2 phone numbers masked.`, or an empty text."""
    parts = [counted(count, _KINDS.get(kind, kind.replace("_", " "))) for kind, count in redactions.items()]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) + " masked." if parts else ""


def age(at: str, now: int) -> str:
    """Return how long ago a time was, such as `3 days ago`; `now` is in Unix milliseconds."""
    seconds = (now - millis(at)) / 1000
    size, unit = next(((size, unit) for size, unit in _AGES if abs(seconds) >= size), (0, ""))
    if not unit:
        return "just now"
    amount = counted(int(abs(seconds) // size), unit)
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


def next_page(typed: Iterable[str], last: str) -> str:
    """Return the command that continues a list behind its last memory; the words after the command are kept."""
    words, kept = iter(typed), list[str]()
    for word in words:
        if word == "--after":
            next(words, None)
        elif not word.startswith("--after="):
            kept.append(word)
    return shlex.join(["memory-mesh", *kept, "--after", last])


def _headline(result: SearchResult, now: int) -> "Text":
    """Return the line above the text of a result. What is usual, such as the status active, is left out."""
    from rich.text import Text

    source, section = result.metadata.get("source"), result.passage.section if result.passage else ()
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
    shown = [*([Text("…")] if begin else []), *kept, *([Text("…")] if begin + len(kept) < len(lines) else [])]
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
