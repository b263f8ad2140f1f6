"""What all redaction patterns share: their type, their tools, and the plain form that they search.

A pattern finds its spans in linear time on any text: it searches for something cheap (an `@`, a
digit, a prefix) and then judges a bounded window around it. Its regular expressions never nest
repeats.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, AnyStr, TypeVar

from memory_mesh.core.text import (
    MASK,
    REDUNDANT,
    REORDERING,
    TAGS,
    VARIATION_SELECTORS,
    ZERO_WIDTH,
    LazyRegex,
    lazy_property,
)

# --- the plain form of a text ---
# Digits and signs of other scripts are written as ASCII, and invisible characters are left out:
# `０８１`, or `081` with a zero-width space inside, reads as `081`. Spans of the plain form are
# converted to spans of the text.

# Invisible characters, and the frame of a keycap.
_REMOVED = (
    rf"{REDUNDANT}{ZERO_WIDTH}{REORDERING}{TAGS}{VARIATION_SELECTORS}\u034f\u061c\u180e\u206a-\u206"
    r"f\u20e3"
)
_SPACES = r"\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HYPHENS = r"\u2010\u2011\u2212\ufe58\ufe63\uff0d"
# Compatibility forms: small, full-width, mathematical.
_FORMS = r"\ufe50-\ufe6b\uff01-\uff5e\U0001d400-\U0001d7ff"
# The zeros of the scripts in use; nine more digits follow each.
_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u0f20"
    "\u1040\u17e0\u1810"
)
_DIGITS = "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS)

_ODD = LazyRegex(f"[{_REMOVED}{_SPACES}{_HYPHENS}{_FORMS}{_DIGITS}]|%(?:40|2B|2b)")
_ENCODED = {"%40": "@", "%2B": "+", "%2b": "+"}  # in URLs
_INVISIBLE, _SPACE, _HYPHEN = (
    LazyRegex(f"[{_REMOVED}]"),
    LazyRegex(f"[{_SPACES}]"),
    LazyRegex(f"[{_HYPHENS}]"),
)


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain form of a text. `cuts` are the places in it where a character of the text was
    removed."""

    text: str
    cuts: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str) -> "Plain":
        if (text.isascii() and "%" not in text) or not _ODD.search(text):
            return cls(text)
        plain, cuts = _ODD.sub(lambda odd: _replacement(odd[0]), text), list[int]()
        for odd in _ODD.finditer(text) if len(plain) < len(text) else ():
            kept = odd.start() + len(_replacement(odd[0]))
            cuts += [kept - len(cuts)] * (odd.end() - kept)
        return cls(plain, tuple(cuts))

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the text that became this span of the plain form."""
        if not self.cuts:
            return start, end
        return start + bisect_right(self.cuts, start), end + bisect_right(self.cuts, end - 1)


@cache
def _replacement(char: str) -> str:
    if char in _ENCODED:
        return _ENCODED[char]
    if _INVISIBLE.match(char):
        return ""
    if _SPACE.match(char):
        return " "
    if _HYPHEN.match(char):
        return "-"
    digit = unicodedata.decimal(char, None)
    plain = unicodedata.normalize("NFKC", char) if digit is None else str(digit)
    return plain if len(plain) == 1 else char


# --- patterns ---

Span = tuple[int, int]
Judgement = TypeVar("Judgement")

# Characters (or none) beside a number that never make it part of something longer.
APART = frozenset(("", *" \n\t;()[]\"'=|"))
_MIN_DIGITS, _MAX_ID_CHARS = 4, 24
_MIN_LONG_WORD = 16  # characters of a key
_LONG = 10_000  # characters of a text
MANY = 1000  # numbers of a text that a library checks one by one
_MAX_JUDGED = 1000  # surroundings that are remembered
BEFORE, AFTER = 48, 24  # how far a cue word reaches: most cues stand before the value
# Parts of character classes. Patterns search the plain form of a text, which has only ASCII digits
# and one kind of space.
# An explicit class is searched faster than \\d.
SPACES, DASHES, DIGIT = " ", "\\-\u2012\u2013", "[0-9]"


class Page:
    """A text in plain form, with the derived facts that several patterns need, each computed
    once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._places: dict[tuple[str, ...], list[int]] = {}
        self._numbered: dict[tuple[str, ...], list[Span]] = {}
        self._judged: dict[Callable[[str], Any], dict[str, Any]] = {}
        # The spans of national ids, which are searched together.
        self.ids: dict[str, list[Span]] | None = None

    @lazy_property
    def unmasked(self) -> str:
        """The text with masks blanked. The label of a mask is not a cue: what follows `[PHONE]`
        need not be a phone number."""
        return (
            MASK.sub(lambda mask: "\ufffd" * len(mask[0]), self.text)
            if "[" in self.text
            else self.text
        )

    @lazy_property
    def zeroed(self) -> str:
        """The text without masks and with 0 for each digit. What words say about a number
        depends on no digits near it."""
        return (
            self.unmasked.encode("utf-8", "surrogatepass")
            .translate(_DIGITS_AS_ZEROS)
            .decode("utf-8", "surrogatepass")
        )

    @lazy_property
    def folded(self) -> str:
        """The text without masks and in lower case, character by character, so that offsets in
        it are offsets in the text."""
        text = self.unmasked
        folded = text.casefold()
        return folded if len(folded) == len(text) else _expanding().sub("\ufffd", text).casefold()

    @lazy_property
    def shape(self) -> bytes:
        """The text with 0 for each digit and A for each letter, so that `bytes.find` can search
        for a form."""
        return self.text.encode("latin-1", "replace").translate(_SHAPES)

    @lazy_property
    def digits(self) -> int:
        return self.shape.count(b"0")

    @lazy_property
    def long_words(self) -> str:
        """The words that are long enough for a key. Most texts have few, so searching them is
        quick."""
        # A mask is not part of a key.
        text = self.text if self.unmasked is self.text else self.unmasked.replace("\ufffd", " ")
        return "\n".join(word for word in text.split() if len(word) >= _MIN_LONG_WORD)

    def once(
        self,
        judge: Callable[[str], Judgement],
        value: str,
        quicker: Callable[[str], Judgement] | None = None,
    ) -> Judgement:
        """Return the judgement of a part of the text. Equal parts are judged once, those after
        `MANY` by the quicker judge."""
        judged = self._judged.setdefault(judge, {})
        if value not in judged:
            judged[value] = (quicker if quicker and len(judged) >= MANY else judge)(value)
        return judged[value]  # type: ignore[no-any-return]

    def holds(self, stems: tuple[str, ...]) -> bool:
        """Return whether any of the stems (in lower case) occurs."""
        if stems in self._places:
            return bool(self._places[stems])
        folded = self.folded
        for stem in ascii_part(stems) if folded.isascii() else stems:  # noqa: SIM110 - a loop is twice as fast as `any`
            if stem in folded:
                return True
        return False

    def places(self, stems: tuple[str, ...]) -> list[int]:
        """Return where the stems start, in order."""
        if stems not in self._places:
            folded = self.folded
            # All at once is twice as fast as one loop with the next.
            stems_here = present(folded, ascii_part(stems) if folded.isascii() else stems)
            self._places[stems] = (
                sorted(place for stem in stems_here for place in occurrences(folded, stem))
                if stems_here
                else []
            )
        return self._places[stems]

    def matches(self, regex: LazyRegex, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
        """Yield the matches that start with a stem."""
        return filter(None, (regex.match(self.text, place) for place in self.places(stems)))

    def near(self, stems: tuple[str, ...], span: Span, *, before: int, after: int) -> bool:
        """Return whether a stem starts within reach of the span."""
        places = self.places(stems)
        at = bisect_left(places, span[0] - before)
        return at < len(places) and places[at] < span[1] + after

    def numbered(self, stems: tuple[str, ...]) -> list[Span]:
        """Return the stretches around the stems that have enough digits for an id."""
        if stems not in self._numbered:
            stretches = self.around(stems, AFTER + _MAX_ID_CHARS, BEFORE + _MAX_ID_CHARS)
            self._numbered[stems] = [
                span for span in stretches if self.shape.count(b"0", *span) >= _MIN_DIGITS
            ]
        return self._numbered[stems]

    def around(self, stems: tuple[str, ...], before: int, after: int) -> Iterator[Span]:
        """Yield the stretches around the stems, merged where they overlap."""
        return merged((max(0, place - before), place + after) for place in self.places(stems))


class Surroundings:
    """Judge places of a long text by what stands around them. A hostile text repeats itself: equal
    surroundings are judged once.

    They are `before` characters before a place and `after` behind it. If one of the characters
    `far` is among the latter, the judgement may depend on more of the text, and is not remembered.
    The brackets of a mask do not count.
    """

    def __init__(
        self, page: Page, *, before: int, after: int, far: LazyRegex | None = None
    ) -> None:
        self._text, self._before, self._after, self._judged = (
            page.text,
            before,
            after,
            dict[tuple[int, str], Span | None](),
        )
        self._long = len(page.text) > _LONG
        self._far = (
            [found.start() for found in far.finditer(page.unmasked)] if far and self._long else []
        )

    def judge(self, place: int, judge: Callable[[str, int], Span | None]) -> Span | None:
        """Return the span that belongs to the place."""
        if not self._long or self._is_far(place):
            return judge(self._text, place)
        start = max(0, place - self._before)
        key = place - start, self._text[start : place + self._after]
        if key in self._judged:
            span = self._judged[key]
            return (span[0] + place, span[1] + place) if span else None
        span = judge(self._text, place)
        if span is None or span[1] - place < self._after // 2:
            if len(self._judged) >= _MAX_JUDGED:
                self._judged.clear()
            self._judged[key] = (span[0] - place, span[1] - place) if span else None
        return span

    def _is_far(self, place: int) -> bool:
        at = bisect_left(self._far, place)
        return at < len(self._far) and self._far[at] < place + self._after


def merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield spans, given in order, with those joined that overlap or touch."""
    joint: Span | None = None
    for start, end in spans:
        if joint and start > joint[1]:
            yield joint
            joint = None
        joint = joint[0] if joint else start, end
    if joint:
        yield joint


class Cue:
    """Words that say what a value near them is. `stems` are parts of all the words and are
    searched first."""

    __slots__ = ("stems", "words")

    def __init__(self, stems: tuple[str, ...], words: LazyRegex) -> None:
        self.stems, self.words = stems, words

    def near(self, page: Page, span: Span, *, before: int = BEFORE, after: int = AFTER) -> bool:
        """Return whether a cue word stands near the span, before or after it."""
        return page.near(self.stems, span, before=before, after=after) and self.confirms(
            page.text, span, before, after
        )

    def confirms(self, text: str, span: Span, before: int = BEFORE, after: int = AFTER) -> bool:
        """Return the same as `near` when a stem is known to be near."""
        start, end = span
        found = self.words.search(text, max(0, start - before), start)
        return bool(found or (after and self.words.search(text, end, end + after)))


_VALUES = bytes.maketrans(b"0123456789", bytes(range(10)))
# Twice each digit, and of two digits their sum.
_DOUBLED = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ALL_BYTES = bytes(range(256))
_SHAPES = bytes(
    48 if chr(code).isdigit() and code < 128 else 65 if chr(code).isalpha() else code
    for code in range(256)
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The id of a pattern and the span `text[start:end]` it found."""

    pattern: str
    start: int
    end: int


def compact(value: str) -> str:
    """Return only the letters and digits, in capitals. Grouping and case do not change a number."""
    return "".join(filter(str.isalnum, value)).upper()


@dataclass(frozen=True, slots=True)
class Pattern:
    """One kind of value that is never stored: how to find it, and its label. `data/examples.toml`
    says why, with examples.

    `finds` runs only on texts that pass `when`, with one of the hints (in lower case), at least
    `digits` digits and, if asked, a long word; with prefixes, only on texts with a long word that
    contains one of them.
    """

    id: str
    label: str
    finds: Callable[[Page], Iterable[Span]]
    _: KW_ONLY
    hints: tuple[str, ...] = ()
    digits: int = 0
    long_word: bool = False
    when: Callable[[Page], bool] | None = None
    prefixes: tuple[str, ...] = ()
    # One spelling of equal values; another spelling of a secret is another secret.
    normal: Callable[[str], str] = str

    @property
    def kind(self) -> str:
        """The label as options and reports name it."""
        return self.label.lower()


def present(text: AnyStr, parts: Iterable[AnyStr]) -> list[AnyStr]:
    """Return the parts that occur. Many parts of a long text have a byte that it lacks, as
    hostile texts have few."""
    if len(text) > _LONG:
        missing = frozenset(_ALL_BYTES.translate(None, _encoded(text)))
        parts = [part for part in parts if missing.isdisjoint(_encoded(part))] if missing else parts
    return [part for part in parts if part in text]


def _encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def occurrences(text: AnyStr, part: AnyStr) -> Iterator[int]:
    """Yield every offset of the part, overlapping ones included."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


@cache
def _expanding() -> re.Pattern[str]:
    """Return the few characters that become several in lower case, such as ß."""
    return re.compile(
        "[" + "".join(char for char in map(chr, range(0x10000)) if len(char.casefold()) > 1) + "]"
    )


@cache
def ascii_part(stems: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stems that an ASCII text may contain: most texts are, and many stems are not."""
    return tuple(stem for stem in stems if stem.isascii())


def joined(char: str) -> bool:
    """Return whether this neighbour makes a value part of a word. In scripts without spaces
    between words it does not."""
    return char.isalnum() and char < "\u0e00"


def stands_alone(text: str, span: Span) -> bool:
    """Return whether a number is not part of a word, a decimal fraction or a longer dotted or
    dashed number."""
    start, end = span
    head, tail = text[max(0, start - 2) : start], text[end : end + 2]
    if head[-1:] in APART and tail[:1] in APART:
        return True
    if joined(head[-1:]) or joined(tail[:1]) or "_" in (head[-1:], tail[:1]):
        return False
    return not any(
        len(pair) == 2 and pair[0] in ".-" and pair[1].isalnum() for pair in (head[::-1], tail)
    )


def luhn(digits: str) -> bool:
    """Check the Luhn sum of payment cards and of several national ids."""
    plain = digits.encode()
    return (sum(plain[::-2].translate(_VALUES)) + sum(plain[-2::-2].translate(_DOUBLED))) % 10 == 0
