"""Reading blocks: what the document's grammar allows, and what its examples show.

The two differ in two places, and both forms are read there: `meta:` stands over indented pairs or on each line
(`meta: KEY;VALUE;`), mixed as a writer likes, and a constraint is a pair or `- body;`. All else is refused, with the line:
a block that two readers could take for two different things must not pass for either.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memory_mesh.core.audit.wire import LEVELS, OTHER_BREAKS, UNKEPT, Constraint, Pair, Yamo, is_key, is_name
from memory_mesh.core.errors import InvalidInput, shown

ORDER = "agent, intent, [context], [constraints], [priority], [output], meta, log, handoff"

_PAIR = "two spaces, then `KEY;VALUE;` without a semicolon in key or value"
_FOREIGN = re.compile(f"[{OTHER_BREAKS}{UNKEPT}]")


def parse(text: str) -> Yamo:
    """The one block that a text is."""
    blocks = parse_many(text)
    if len(blocks) != 1:
        raise InvalidInput(f"the text holds {len(blocks)} blocks", expected="one")
    return blocks[0]


def parse_many(text: str) -> list[Yamo]:
    """The blocks of a text, one right after another, as an export writes them."""
    lines = _Lines(_lines(text))
    blocks = []
    while lines.at < len(lines.texts):
        blocks.append(_block(lines))
    return blocks


@dataclass(slots=True)
class _Lines:
    """A text's lines, and how far they are read."""

    texts: list[str]
    at: int = 0

    @property
    def next(self) -> str:
        """The line to read, or nothing at the end; no line of a block is empty."""
        return self.texts[self.at] if self.at < len(self.texts) else ""

    def skip(self, line: str) -> bool:
        """Step over this line, if it is the next."""
        found = self.next == line
        self.at += found
        return found

    def fields(self, start: str, expected: str, fits: Callable[[list[str]], bool]) -> list[str]:
        """What stands between `start` and the last semicolon of the next line, parted at the others."""
        line = self.next
        fields = line[len(start) : -1].split(";")
        if not (line.startswith(start) and line.endswith(";") and fits(fields)):
            raise self.fault(expected)
        self.at += 1
        return fields

    def fault(self, expected: str) -> InvalidInput:
        what = shown(self.next) if self.at < len(self.texts) else "missing: the text ends before it"
        return InvalidInput(f"line {self.at + 1} is {what}", expected=f"{expected} (the order is {ORDER})")


def _lines(text: str) -> list[str]:
    if odd := _FOREIGN.search(text):
        line = text.count("\n", 0, odd.start()) + 1
        raise InvalidInput(
            f"line {line} holds the character U+{ord(odd.group()):04X}",
            expected="lines that end in a bare newline, and no other line break, NUL or half surrogate pair within",
        )
    *lines, rest = text.split("\n")
    if rest:
        raise InvalidInput(f"line {len(lines) + 1} is {shown(rest)}, without an end", expected="a newline after each line")
    return lines


def _block(lines: _Lines) -> Yamo:
    """One block; its sections are read in the order in which they are named here."""
    return Yamo(
        agent=_name(lines, "agent"),
        intent=_name(lines, "intent"),
        context=_pairs(lines) if lines.skip("context:") else (),
        constraints=_constraints(lines) if lines.skip("constraints:") else (),
        priority=_priority(lines),
        output=_pairs(lines) if lines.skip("output:") else (),
        meta=_meta(lines),
        log=lines.fields("log: ", "`log: BODY;`", any),
        handoff=_handoff(lines),
    )


def _name(lines: _Lines, section: str) -> str:
    expected = f"`{section}: NAME;` of letters, digits and _"
    return lines.fields(f"{section}: ", expected, lambda fields: len(fields) == 1 and is_name(fields[0]))[0]


def _priority(lines: _Lines) -> str | None:
    if not lines.next.startswith("priority:"):
        return None
    expected = f"`priority: LEVEL;`, one of {', '.join(LEVELS)}"
    return lines.fields("priority: ", expected, lambda fields: len(fields) == 1 and fields[0] in LEVELS)[0]


def _handoff(lines: _Lines) -> str:
    return lines.fields("handoff: ", "`handoff: TARGET;`", lambda fields: len(fields) == 1 and bool(fields[0].strip()))[0]


def _pairs(lines: _Lines) -> list[Pair]:
    """The pairs under a section's name: one or more."""
    pairs = [_pair(lines, "  ", _PAIR)]
    while lines.next.startswith(" "):
        pairs.append(_pair(lines, "  ", _PAIR))
    return pairs


def _pair(lines: _Lines, start: str, expected: str) -> Pair:
    key, said = lines.fields(start, expected, lambda fields: len(fields) == 2 and is_key(fields[0]))
    return key, said


def _constraints(lines: _Lines) -> list[Constraint]:
    constraints = [_constraint(lines)]
    while lines.next.startswith(" "):
        constraints.append(_constraint(lines))
    return constraints


def _constraint(lines: _Lines) -> Constraint:
    if lines.next.startswith("  - "):
        return lines.fields("  - ", "two spaces, then `- BODY;` without a semicolon in it", lambda fields: len(fields) == 1)[0]
    return _pair(lines, "  ", f"{_PAIR}, or `- BODY;`")


def _meta(lines: _Lines) -> list[Pair]:
    pairs: list[Pair] = []
    while lines.next.startswith("meta:") or not pairs:
        pairs += _pairs(lines) if lines.skip("meta:") else [_pair(lines, "meta: ", "`meta:` or `meta: KEY;VALUE;`")]
    return pairs
