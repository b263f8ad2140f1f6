"""The plain form of a text, in which patterns search: digits and signs of other scripts as ASCII, without invisible characters.

`０８１`, or `081` with a zero-width space inside, reads as `081`. Spans of the plain form are converted to spans of the text.
"""

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache

from memory_mesh.core.text import REDUNDANT, REORDERING, TAGS, VARIATION_SELECTORS, ZERO_WIDTH, LazyRegex

# Invisible characters, and the frame of a keycap.
_REMOVED = rf"{REDUNDANT}{ZERO_WIDTH}{REORDERING}{TAGS}{VARIATION_SELECTORS}\u034f\u061c\u180e\u206a-\u206f\u20e3"
_SPACES = r"\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HYPHENS = r"\u2010\u2011\u2212\ufe58\ufe63\uff0d"
# Compatibility forms: small, full-width, mathematical.
_FORMS = r"\ufe50-\ufe6b\uff01-\uff5e\U0001d400-\U0001d7ff"
# The zeros of the scripts in use; nine more digits follow each.
_ZEROS = "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u0f20\u1040\u17e0\u1810"
_DIGITS = "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS)

_ODD = LazyRegex(f"[{_REMOVED}{_SPACES}{_HYPHENS}{_FORMS}{_DIGITS}]|%(?:40|2B|2b)")
_ENCODED = {"%40": "@", "%2B": "+", "%2b": "+"}  # in URLs
_INVISIBLE, _SPACE, _HYPHEN = LazyRegex(f"[{_REMOVED}]"), LazyRegex(f"[{_SPACES}]"), LazyRegex(f"[{_HYPHENS}]")


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain form of a text. `cuts` are the places in it where a character of the text was removed."""

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
