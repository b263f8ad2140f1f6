"""What a redaction pattern is, and the few small tools that all of them share.

A pattern finds spans in linear time on any text: it looks for something cheap (an `@`, a digit, a prefix) and judges a bounded
window around it. None of its expressions nests repeats.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import AnyStr

from memory_mesh.core.text import LazyRegex

Span = tuple[int, int]

_FEWEST_DIGITS, _LONGEST_ID = 6, 24
BEFORE, AFTER = 48, 24  # how far a cue word reaches: most cues stand before what they name
SPACES = " \u00a0\u2009\u202f"
DASHES = "\\-\u2010\u2011\u2012\u2013"  # as part of a character class
DIGIT = "[0-9\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\uff10-\uff19]"  # a set of them is searched faster than \\d


LABELS = (
    "API_KEY",
    "CARD",
    "CREDENTIALS",
    "EMAIL",
    "IBAN",
    "IP",
    "JWT",
    "NATIONAL_ID",
    "PHONE",
    "PRIVATE_KEY",
    "SECRET",
    "TOKEN",
    "US_SSN",
)
MASK = LazyRegex(rf"\[(?:{'|'.join(LABELS)}|REDACTED)(?::[0-9a-f]{{8}})?\]")


class Page:
    """A text, and what several patterns ask about it, worked out once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._places: dict[tuple[str, ...], list[int]] = {}
        self._numbered: dict[tuple[str, ...], list[Span]] = {}

    @cached_property
    def folded(self) -> str:
        """The text in lower case, character by character, so that places in it are places in the text."""
        # The label of a mask is no cue: what stands behind `[PHONE]` is not therefore a phone number.
        text = MASK.sub(lambda mask: "\ufffd" * len(mask[0]), self.text) if "[" in self.text else self.text
        folded = text.casefold()
        return folded if len(folded) == len(text) else _expanding().sub("\ufffd", text).casefold()

    @cached_property
    def shape(self) -> bytes:
        """The text with 0 for each digit and A for each letter, so that a form is found at the speed of C."""
        return self.text.encode("latin-1", "replace").translate(_SHAPES)

    @cached_property
    def digits(self) -> int:
        return self.shape.count(b"0")

    @cached_property
    def long_words(self) -> str:
        """The words long enough for a key, where only spaces part words: in most texts few, and quickly looked through."""
        return "\n".join(found[0] for found in _LONG_WORD.finditer(self.text))

    def holds(self, stems: tuple[str, ...]) -> bool:
        """Does any of the stems (in lower case) occur?"""
        return any(stem in self.folded for stem in stems)

    def places(self, stems: tuple[str, ...]) -> list[int]:
        """Where the stems start, in order."""
        if stems not in self._places:
            self._places[stems] = sorted(place for stem in stems for place in occurrences(self.folded, stem))
        return self._places[stems]

    def near(self, stems: tuple[str, ...], span: Span, *, before: int, after: int) -> bool:
        """Does a stem start within reach?"""
        places = self.places(stems)
        at = bisect_left(places, span[0] - before)
        return at < len(places) and places[at] < span[1] + after

    def numbered(self, stems: tuple[str, ...]) -> list[Span]:
        """The stretches around the stems that hold enough digits for an id."""
        if stems not in self._numbered:
            stretches = self.around(stems, AFTER + _LONGEST_ID, BEFORE + _LONGEST_ID)
            self._numbered[stems] = [span for span in stretches if self.shape.count(b"0", *span) >= _FEWEST_DIGITS]
        return self._numbered[stems]

    def around(self, stems: tuple[str, ...], before: int, after: int) -> Iterator[Span]:
        """The stretches around the stems, joined where they overlap."""
        joint: Span | None = None
        for place in self.places(stems):
            if joint and place - before <= joint[1]:
                joint = joint[0], place + after
                continue
            if joint:
                yield joint
            joint = max(0, place - before), place + after
        if joint:
            yield joint


class Cue:
    """Words that tell what stands near them. The stems are looked for first: they are parts of all the words."""

    __slots__ = ("stems", "words")

    def __init__(self, stems: tuple[str, ...], alternatives: str) -> None:
        self.stems = stems
        self.words = words(alternatives)

    def near(self, page: Page, span: Span, *, before: int = BEFORE, after: int = AFTER) -> bool:
        """Does a cue word stand near, before or after?"""
        return page.near(self.stems, span, before=before, after=after) and self.said(page.text, span, before=before, after=after)

    def said(self, text: str, span: Span, *, before: int = BEFORE, after: int = AFTER) -> bool:
        """The same, where a stem is known to be near."""
        start, end = span
        found = self.words.search(text, max(0, start - before), start)
        return bool(found or (after and self.words.search(text, end, end + after)))


_LONG_WORD = LazyRegex(r"(?<!\S)\S{16,}")
_SHAPES = bytes(48 if chr(code).isdigit() and code < 128 else 65 if chr(code).isalpha() else code for code in range(256))


@dataclass(frozen=True, slots=True)
class Found:
    """What a pattern found: text[start:end]."""

    pattern: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Example:
    """A text, and the part of it that is masked."""

    text: str
    masked: str


def exact(value: str) -> str:
    """A secret is itself: any other spelling is another secret."""
    return value


def compact(value: str) -> str:
    """Letters and digits only, in capitals: groups and case are only how a number is written."""
    return "".join(filter(str.isalnum, value)).upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One kind of value that is never stored: how it is found, shown, and explained.

    A text that holds none of the hints (in lower case), too few digits or no long word holds nothing for this pattern.
    """

    id: str
    label: str
    why: str
    finds: Callable[[Page], Iterable[Span]]
    examples: tuple[Example, ...]
    counter_examples: tuple[str, ...]
    normal: Callable[[str], str] = exact
    hints: tuple[str, ...] = ()
    digits: int = 0
    long_word: bool = False


def occurrences(text: AnyStr, part: AnyStr) -> Iterator[int]:
    """Every place of the part, also inside another one."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


@cache
def _expanding() -> re.Pattern[str]:
    """The few characters that become several in lower case, such as ß."""
    return re.compile("[" + "".join(char for char in map(chr, range(0x10000)) if len(char.casefold()) > 1) + "]")


def listed(written: str) -> tuple[str, ...]:
    """A list of words, written as a text."""
    return tuple(written.split())


def words(alternatives: str) -> LazyRegex:
    """Whole words, ignoring case. An underscore parts words, so that `phone_number` holds `phone`."""
    return LazyRegex(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])", re.IGNORECASE)


def joined(char: str) -> bool:
    """Would this neighbour make it part of a word? Scripts without spaces between words do not."""
    return char.isalnum() and char < "\u0e00"


def stands_alone(text: str, span: Span) -> bool:
    """Is it a number of its own: no part of a word, of a decimal fraction or of a longer dotted or dashed number?"""
    start, end = span
    head, tail = text[max(0, start - 2) : start], text[end : end + 2]
    if joined(head[-1:]) or joined(tail[:1]) or "_" in (head[-1:], tail[:1]):
        return False
    return not (_glued(head[::-1]) or _glued(tail))


def _glued(neighbour: str) -> bool:
    return len(neighbour) == 2 and neighbour[0] in ".-" and neighbour[1].isalnum()


def luhn(digits: str) -> bool:
    """The check sum of payment cards and of several national ids."""
    total = 0
    for at, digit in enumerate(reversed(digits)):
        value = int(digit) << (at & 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def filler(length: int, alphabet: str = "a1B2c3D4e5F6g7H8i9J0") -> str:
    """Made-up characters for examples: written as prefix and filler, no complete key stands in any file of ours."""
    return (alphabet * (length // len(alphabet) + 1))[:length]
