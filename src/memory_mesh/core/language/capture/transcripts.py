"""Read the transcript of a coding agent as plain messages.

Three forms are read: the JSON lines of Claude Code, the messages of opencode (one on each line, or
an export), and plain messages with a role and a content. Each line is parsed on its own, so that a
transcript of any size needs little memory. What cannot be read is skipped and counted: the host may
be writing the last line at this moment.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from memory_mesh.core.errors import is_number
from memory_mesh.core.model import iso

Message = dict[str, str]  # role, content and, if known, id and timestamp

_MAX_TOOL_CHARS = 4_000  # of the output of a tool: nothing is learnt from it
_MAX_RECORD_CHARS = 2**24  # of a message that takes several lines
_MAX_MS = 253_402_300_799_000  # the end of the year 9999
_ROLES = ("user", "assistant", "system", "tool")
_TEXT_PARTS = ("text", "input_text", "output_text")
# Lines of Claude Code that are no messages: notes of the program, subagents, summaries of earlier
# messages, and failed calls.
_UNSAID = (
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isApiErrorMessage",
)
_RECALLED = "recalled-by-memory-mesh"
_RECALLED_BLOCK = re.compile(rf"<{_RECALLED}>.*?(?:</{_RECALLED}>|\Z)", re.DOTALL)
# Blocks that Claude Code adds to the words of the user.
_HOST_BLOCK = re.compile(
    r"<(system-reminder|command-(?:name|message|args|contents)|local-command-(?:stdout|stderr|"
    r"caveat)|bash-(?:input|stdout|stderr)"
    r"|user-prompt-submit-hook|task-notification|ide_[a-z_]+)>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]*\]")


def recalled_block(text: str) -> str:
    """Return recalled memories between marks, so that they are not learnt again from the
    transcript. The text contains no `<`."""
    return f"<{_RECALLED}>\n{text}\n</{_RECALLED}>"


class Transcript:
    """The messages of a transcript, read while they are iterated, once. `skipped` counts what
    could not be read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.skipped = 0
        self._lines = lines

    def __iter__(self) -> Iterator[Message]:
        for value in self._values():
            for record in _records(value):
                yield from self._messages(record)

    def _values(self) -> Iterator[object]:
        """Yield each JSON value: that of a line, or of an element in the list of a document of
        several lines."""
        lines = (line.rstrip("\r\n") for line in self._lines)
        first = next(lines, "").lstrip("\ufeff")
        for text in (
            _elements(lines, nested=first == "{") if first in ("[", "{") else chain([first], lines)
        ):
            if text and not text.isspace():
                try:
                    yield json.loads(text)
                except (ValueError, RecursionError):
                    self.skipped += 1

    def _messages(self, record: object) -> Iterator[Message]:
        """Yield the messages of a record, and count a record that should have one and is not
        readable."""
        if not isinstance(record, Mapping):
            self.skipped += 1
        elif "parts" in record:
            yield from _opencode(record)
        elif "message" in record or record.get("type") in ("user", "assistant"):
            said = record.get("message")
            if not isinstance(said, Mapping):
                self.skipped += 1
            elif not any(record.get(name) for name in _UNSAID):
                yield from _said(said, record.get("uuid"), record.get("timestamp"))
        elif "role" in record:
            yield from _said(record, record.get("id"), record.get("timestamp"))


def _elements(lines: Iterable[str], *, nested: bool) -> Iterator[str]:
    """Yield the elements of the list that a document is or, `nested`, has under a key; also one
    that is cut off at the end.

    JSON escapes line breaks within texts, so a line of nothing but a bracket belongs to the
    document.
    """
    piece, size, indent = list[str](), 0, None
    for line in lines:
        if indent is None:
            indent = line[: len(line) - len(line.lstrip())] * (2 if nested else 1)
        if line == f"{indent}{{":
            piece, size = [line], 0
        elif piece:
            size += len(line)
            piece.append(line if size <= _MAX_RECORD_CHARS else "")
            if line.rstrip(",") == f"{indent}}}":
                yield "\n".join(piece).rstrip(",")
                piece = []
    yield "\n".join(piece)


def _records(value: object) -> Sequence[object]:
    """Return the messages of a JSON value: of a list, of an export of opencode in one line, or
    the value itself."""
    inner = value.get("messages") if isinstance(value, Mapping) else value
    return inner if isinstance(inner, list) else [value]


def _said(message: Mapping[str, object], id_: object, timestamp: object) -> Iterator[Message]:
    """Yield the outputs of tools in a message of Claude Code or of a chat API, then its text."""
    content, role = message.get("content"), message.get("role")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    known = [part for part in parts if isinstance(part, Mapping)]
    for part in known:
        if part.get("type") == "tool_result":
            yield from _message(
                "tool", _text(part.get("content")), part.get("tool_use_id"), timestamp
            )
    text = "\n\n".join(_text(part.get("text")) for part in known if part.get("type") in _TEXT_PARTS)
    yield from _message(role, text, id_, timestamp)


def _opencode(message: Mapping[str, object]) -> Iterator[Message]:
    """Yield the text of a message of opencode, then the outputs of its tools. Parts that a
    program added are left out."""
    info = message.get("info")
    info = info if isinstance(info, Mapping) else {}
    parts = message["parts"] if isinstance(message["parts"], list) else []
    known = [
        part
        for part in parts
        if isinstance(part, Mapping) and not (part.get("synthetic") or part.get("ignored"))
    ]
    time = info.get("time")
    created = time.get("created") if isinstance(time, Mapping) else None
    at = (
        iso(int(created))
        if isinstance(created, int | float) and is_number(created, min_=0, max_=_MAX_MS)
        else None
    )
    if info.get("summary") is not True:  # a summary of earlier messages
        text = "\n\n".join(_text(part.get("text")) for part in known if part.get("type") == "text")
        yield from _message(info.get("role"), text, info.get("id"), at)
    for part in known:
        state = part.get("state")
        if part.get("type") == "tool" and isinstance(state, Mapping):
            yield from _message(
                "tool", _text(state.get("output") or state.get("error")), part.get("callID"), at
            )


def _text(content: object) -> str:
    """Return the text of a content: a text, or a list of parts."""
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _message(role: object, text: str, id_: object, timestamp: object) -> Iterator[Message]:
    """Yield the message, unless its role is unknown or nothing is left of its text."""
    content = _RECALLED_BLOCK.sub("", text)
    if role == "user":
        content = _INTERRUPTED.sub("", _HOST_BLOCK.sub("", content))
    content = (content[:_MAX_TOOL_CHARS] if role == "tool" else content).strip()
    if isinstance(role, str) and role in _ROLES and content:
        # No store can hold half a surrogate pair or NUL.
        content = content.encode("utf-8", "replace").decode().replace("\0", "?")
        known = {"id": id_, "timestamp": timestamp}
        yield {"role": role, "content": content} | {
            name: value for name, value in known.items() if isinstance(value, str)
        }
