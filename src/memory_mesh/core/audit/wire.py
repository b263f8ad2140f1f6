"""The wire format of RFC-0011: write a block as text, and parse text into blocks.

The grammar and the examples of the RFC differ in two places, and the parser reads both forms: `meta:` above indented pairs or
on each line (`meta: KEY;VALUE;`), and a constraint as a pair or as `- body;`. Everything else is refused with its line number: a
text that two readers could understand differently must not be accepted.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from memory_mesh.core.errors import InvalidInput, shown

Pair = tuple[str, object]
Constraint = Pair | str  # a text is written as `- body;`
Field = TypeVar("Field", Pair, Constraint)

LEVELS = ("critical", "high", "medium", "low")
PREVIEW = 60
ERASED = "erased"
WITHHELD = "withheld"  # a text that the reader may not see; an export only, never stored

# Besides the newline, every character at which `str.splitlines` starts a line.
_OTHER_BREAKS = r"\r\v\f\x1c-\x1e\x85\u2028\u2029"
_BREAKS = re.compile(rf"[\n{_OTHER_BREAKS}]+")
# No store accepts NUL or half a surrogate pair.
_UNSTORABLE = r"\x00\ud800-\udfff"
_UNSTORABLE_CHAR = re.compile(f"[{_UNSTORABLE}]")
_NAME = re.compile(r"[A-Za-z0-9_]+")
# No space at the ends, which would change the indent, and no `- `, which starts a constraint.
_KEY = re.compile(rf"(?!- )[^\s;{_UNSTORABLE}](?:[^;\n{_OTHER_BREAKS}{_UNSTORABLE}]*[^\s;{_UNSTORABLE}])?")

_ORDER = "agent, intent, [context], [constraints], [priority], [output], meta, log, handoff"
_PAIR = "two spaces, then `KEY;VALUE;` without a semicolon in key or value"
_UNEXPECTED = re.compile(f"[{_OTHER_BREAKS}{_UNSTORABLE}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yamo:
    """The sections of one block, in the order of the grammar; an invalid block cannot be constructed."""

    agent: str  # as written in the text
    intent: str
    context: Sequence[Pair] = ()
    constraints: Sequence[Constraint] = ()
    priority: str | None = None
    output: Sequence[Pair] = ()
    meta: Sequence[Pair]
    log: Sequence[object]
    handoff: str = "End"

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(self.agent) and _NAME.fullmatch(self.intent)):
            what = f"invalid agent {shown(self.agent)} or intent {shown(self.intent)}"
            raise InvalidInput(what, expected="letters, digits and _")
        if self.priority is not None and self.priority not in LEVELS:
            raise InvalidInput(f"invalid priority {shown(self.priority)}", expected=", ".join(LEVELS))
        if not self.meta or not any(map(str, self.log)) or not self.handoff.strip():
            raise InvalidInput("a block lacks meta, log or handoff", expected="all three")
        for pair in (*self.context, *self.constraints, *self.output, *self.meta):
            if not isinstance(pair, str) and not _is_key(pair[0]):
                raise InvalidInput(f"invalid key {shown(pair[0])}", expected="a word without semicolons and line breaks")

    def text(self) -> str:
        """Return the block as text."""
        lines = [f"agent: {self.agent};", f"intent: {self.intent};"]
        lines += _section("context", self.context)
        lines += _section("constraints", self.constraints)
        lines += [f"priority: {self.priority};"] if self.priority else []
        lines += _section("output", self.output)
        lines += _section("meta", self.meta)
        lines += [f"log: {';'.join(map(wire_value, self.log))};", f"handoff: {wire_value(self.handoff)};"]
        return "\n".join(lines) + "\n"


@lru_cache(maxsize=256)  # our own blocks have few keys
def _is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


@lru_cache(maxsize=256)
def agent_name(agent_id: str) -> str:
    """Return the agent in the alphabet of the grammar."""
    return "MemoryMesh_" + re.sub(r"[^A-Za-z0-9_]", "_", agent_id)


def wire_value(raw: object) -> str:
    """Return a value as one field: semicolons become commas and line breaks become spaces."""
    text = str(raw)
    if not text.isprintable():
        text = _UNSTORABLE_CHAR.sub("\ufffd", _BREAKS.sub(" ", text))
    return text.replace(";", ",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The hashes that bind a block to its memory and to the previous block."""

    content_hash: str | None
    prev_block: str | None
    prev_seal: str | None = None
    signing_key: str | None = None  # the id of the key that signs the head

    def pairs(self) -> list[Pair]:
        """Return the hashes as pairs of the `meta` section."""
        names = ("content_hash", "prev_block", "prev_seal", "signing_key")
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]


def _section(name: str, fields: Sequence[Constraint]) -> list[str]:
    if not fields:
        return []
    lines = [f"  - {wire_value(one)};" if isinstance(one, str) else f"  {one[0]};{wire_value(one[1])};" for one in fields]
    return [f"{name}:", *lines]


# --- parsing ---


def parse(text: str) -> Yamo:
    """Parse a text of exactly one block."""
    blocks = parse_many(text)
    if len(blocks) != 1:
        raise InvalidInput(f"the text has {len(blocks)} blocks", expected="one")
    return blocks[0]


def parse_many(text: str) -> list[Yamo]:
    """Parse a text of several blocks, as an export writes them."""
    lines = _Lines(_lines(text))
    blocks = []
    while lines.at < len(lines.texts):
        blocks.append(_block(lines))
    return blocks


@dataclass(slots=True)
class _Lines:
    """The lines of a text and the current position."""

    texts: list[str]
    at: int = 0

    @property
    def next(self) -> str:
        """The current line, or "" at the end; no line of a block is empty."""
        return self.texts[self.at] if self.at < len(self.texts) else ""

    def skip(self, line: str) -> bool:
        """Advance past the current line if it is `line`."""
        found = self.next == line
        self.at += found
        return found

    def field(self, start: str, expected: str, fits: Callable[[str], object] = lambda field: True) -> str:
        """Return the current line between `start` and its only semicolon."""
        return self.fields(start, expected, lambda fields: len(fields) == 1 and fits(fields[0]))[0]

    def fields(self, start: str, expected: str, fits: Callable[[list[str]], object]) -> list[str]:
        """Return the current line between `start` and its last semicolon, split at the other semicolons."""
        line = self.next
        fields = line[len(start) : -1].split(";")
        if not (line.startswith(start) and line.endswith(";") and fits(fields)):
            raise self.fault(expected)
        self.at += 1
        return fields

    def fault(self, expected: str) -> InvalidInput:
        what = shown(self.next) if self.at < len(self.texts) else "missing: the text ends before it"
        return InvalidInput(f"line {self.at + 1} is {what}", expected=f"{expected} (the order is {_ORDER})")


def _lines(text: str) -> list[str]:
    if found := _UNEXPECTED.search(text):
        line = text.count("\n", 0, found.start()) + 1
        expected = "lines that end in a newline, without other line breaks, NUL or half surrogate pairs"
        raise InvalidInput(f"line {line} has the character U+{ord(found.group()):04X}", expected=expected)
    *lines, rest = text.split("\n")
    if rest:
        raise InvalidInput(f"line {len(lines) + 1} is {shown(rest)}, without a newline", expected="a newline after each line")
    return lines


def _block(lines: _Lines) -> Yamo:
    """Read one block; arguments are evaluated in order, and so are the sections."""
    name, level = "of letters, digits and _", f"`priority: LEVEL;`, one of {', '.join(LEVELS)}"
    return Yamo(
        agent=lines.field("agent: ", f"`agent: NAME;` {name}", _NAME.fullmatch),
        intent=lines.field("intent: ", f"`intent: NAME;` {name}", _NAME.fullmatch),
        context=_several(lines, _pair) if lines.skip("context:") else (),
        constraints=_several(lines, _constraint) if lines.skip("constraints:") else (),
        priority=lines.field("priority: ", level, LEVELS.__contains__) if lines.next.startswith("priority:") else None,
        output=_several(lines, _pair) if lines.skip("output:") else (),
        meta=_meta(lines),
        log=lines.fields("log: ", "`log: BODY;`", any),
        handoff=lines.field("handoff: ", "`handoff: TARGET;`", str.strip),
    )


def _several(lines: _Lines, read: Callable[[_Lines], Field]) -> list[Field]:
    """Read one or more indented lines."""
    fields = [read(lines)]
    while lines.next.startswith(" "):
        fields.append(read(lines))
    return fields


def _pair(lines: _Lines, start: str = "  ", expected: str = _PAIR) -> Pair:
    key, value = lines.fields(start, expected, lambda fields: len(fields) == 2 and _KEY.fullmatch(fields[0]))
    return key, value


def _constraint(lines: _Lines) -> Constraint:
    if lines.next.startswith("  - "):
        return lines.field("  - ", "two spaces, then `- BODY;` without a semicolon in it")
    return _pair(lines, expected=f"{_PAIR}, or `- BODY;`")


def _meta(lines: _Lines) -> list[Pair]:
    pairs: list[Pair] = []
    while lines.next.startswith("meta:") or not pairs:
        pairs += _several(lines, _pair) if lines.skip("meta:") else [_pair(lines, "meta: ", "`meta:` or `meta: KEY;VALUE;`")]
    return pairs
