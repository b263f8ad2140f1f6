"""Finds what in a text speaks to a language model instead of about the world.

It warns; it does not protect. Whoever wants to get past a list of words will. What protects is the fence, the fixed form of
answers, and that no text decides how far it is trusted.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from memory_mesh.core.safety.views import View, hidden, plain
from memory_mesh.core.safety.words import RULES, InjectionKind, Rule, words
from memory_mesh.core.text import INVISIBLE, TAGS, VARIATION_SELECTORS, ZERO_WIDTH

__all__ = ["Finding", "InjectionKind", "detect"]

MOST_FINDINGS = 64


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """What kind of instruction stands where."""

    start: int
    end: int
    kind: InjectionKind


def detect(text: str) -> tuple[Finding, ...]:
    """Instructions that are embedded in a text, in its order. The time that it takes grows with the length only."""
    seen = plain(text)
    open_ = list(_findings(seen))
    found = {*open_, *_covered(text, open_), *_unseen(text), *_concealed(text, seen, {finding.kind for finding in open_})}
    return tuple(sorted(_apart(found))[:MOST_FINDINGS])


def _findings(view: View) -> Iterator[Finding]:
    page = _Page(view.text)
    for rule in RULES:
        for start, end in page.rows(rule):
            yield Finding(*view.span(start, end), rule.kind)


def _concealed(text: str, seen: View, open_: set[InjectionKind]) -> Iterator[Finding]:
    """What shows only when the text is read in another way."""
    for view in hidden(text, seen):
        for found in _findings(view):
            if view.places is None or found.kind not in open_:
                yield Finding(found.start, found.end, InjectionKind.CONCEALED)


def _covered(text: str, found: list[Finding]) -> Iterator[Finding]:
    """Instructions with invisible characters between their letters, or with letters that no keyboard has."""
    for finding in found:
        if INVISIBLE.search(text, finding.start, finding.end) or _FANCY.search(text, finding.start, finding.end):
            yield Finding(finding.start, finding.end, InjectionKind.CONCEALED)


# Full-width, mathematical and circled letters.
_FANCY = re.compile("[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u24b6-\u24e9\U0001f130-\U0001f189]{3,}")

# Flags of parts of countries are written with tag characters; nothing else is. Direction overrides turn letters round. A lone
# soft hyphen, byte order mark or variation selector comes with text that was copied from somewhere, and says nothing.
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_SMUGGLED = re.compile(rf"[{TAGS}]{{2,}}|[{VARIATION_SELECTORS}]{{3,}}|[\u202d\u202e]|[{ZERO_WIDTH}]{{4,}}")
_WITHIN = re.compile(rf"(?<=[a-zA-Z])[{ZERO_WIDTH}\ufeff\u034f]{{1,3}}(?=[a-zA-Z])")
_FEWEST_WITHIN = 3


def _unseen(text: str) -> Iterator[Finding]:
    if text.isascii():
        return
    rest = _FLAG.sub(lambda flag: " " * len(flag.group()), text)
    within = list(_WITHIN.finditer(rest))
    for found in chain(_SMUGGLED.finditer(rest), within if len(within) >= _FEWEST_WITHIN else ()):
        yield Finding(*found.span(), InjectionKind.CONCEALED)


def _apart(found: set[Finding]) -> Iterator[Finding]:
    """Of findings of one kind that overlap, the first."""
    ends: dict[InjectionKind, int] = {}
    for finding in sorted(found):
        if finding.start >= ends.get(finding.kind, 0):
            ends[finding.kind] = finding.end
            yield finding


# --- rows of words ---

_STOP = re.compile(r"[.!?](?=\s|$)|\n\s|[。！？]")


class _Page:
    """A text, and where the words of each list stand in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, tuple[list[int], list[int]]] = {}
        self._stops = [stop.start() for stop in _STOP.finditer(text)]

    def rows(self, rule: Rule) -> Iterator[tuple[int, int]]:
        """Where one word of each list follows the one before, near enough and in one sentence."""
        first, *others = rule.lists
        for start, end in zip(*self._words(first), strict=True):
            last = self._last(others, end, rule.reach)
            if last is not None and not (rule.order and told_of(self._text, start)):
                yield start, last

    def _last(self, names: list[str], after: int, reach: int) -> int | None:
        last: int | None = after
        for name in names:
            last = None if last is None else self._next(name, last, reach)
        return last

    def _words(self, name: str) -> tuple[list[int], list[int]]:
        if name not in self._found:
            spans = [found.span() for found in words(name).finditer(self._text)]
            self._found[name] = [start for start, _ in spans], [end for _, end in spans]
        return self._found[name]

    def _next(self, name: str, after: int, reach: int) -> int | None:
        starts, ends = self._words(name)
        at = bisect_left(starts, after)
        if at == len(starts) or starts[at] - after > reach:
            return None
        stop = bisect_left(self._stops, after)
        return None if stop < len(self._stops) and self._stops[stop] < starts[at] else ends[at]


# --- an order, or a tale of one ---

_CLAUSE = re.compile(r"[.!?:;,\n\"'()<>\[\]{}*#|\-–—。！？：，]")
_WORD = re.compile(r"[^\W_]+")
_LOOK_BACK = 60
_URGING = frozenset(
    {
        *("please", "now", "then", "and", "so", "just", "instead", "also", "first", "simply", "kindly", "always"),
        *("therefore", "but", "immediately", "next", "or", "finally", "hereby", "ok", "okay", "hey", "hi", "hello", "yes"),
        *("dear", "important", "urgent", "note", "attention", "assistant", "ai", "model", "llm", "do", "go", "again"),
        *("thus", "once", "done", "afterwards"),
    }
)
_AUX = frozenset(
    {
        *("must", "should", "shall", "will", "to", "are", "have", "need", "can", "may", "want", "required", "going"),
        *("would", "like", "ask", "asked", "told", "order", "expected", "not", "be"),
    }
)
_ADDRESSED = frozenset(
    {
        *("you", "assistant", "model", "ai", "llm", "agent", "extractor", "summarizer", "summariser", "reader", "system"),
        *("bot", "u", "chatgpt", "claude"),
    }
)


def told_of(text: str, start: int) -> bool:
    """Whether the verb has somebody else for its subject: "we ignore", "it returns", "decided to send"."""
    before = _CLAUSE.split(text[max(0, start - _LOOK_BACK) : start])[-1]
    said = _WORD.findall(before)
    helped = False
    while said and said[-1] in _URGING | _AUX and not (helped and said[-1] in _ADDRESSED):
        helped = helped or said[-1] in _AUX
        said.pop()
    if not said:
        return helped
    return said[-1] not in _ADDRESSED
