"""Redaction: what must not be stored is found and replaced, by a mask or by a keyed pseudonym.

`find` is the whole list of patterns at work; `Redactor` writes what is stored. A redacted text stays as it is when it is redacted
again, any text is accepted, and the time grows with its length only. docs/redaction.md is made from PATTERNS.
"""

import hmac
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.columns import Value
from memory_mesh.core.redaction import assignments as redact_assign
from memory_mesh.core.redaction import money as redact_money
from memory_mesh.core.redaction import national_ids as redact_ids
from memory_mesh.core.redaction import network as redact_network
from memory_mesh.core.redaction import phone as redact_phone
from memory_mesh.core.redaction import secrets as redact_secrets
from memory_mesh.core.redaction import vendors as redact_vendors
from memory_mesh.core.redaction.pattern import MASK, Found, Page, Pattern, Span

__all__ = ["PATTERNS", "Found", "Pattern", "Redactor", "find", "masked"]

# The more specific come first: of two that overlap in part, the first wins.
PATTERNS: tuple[Pattern, ...] = (
    *redact_secrets.SPECIFIC,
    *redact_vendors.PATTERNS,
    *redact_money.PATTERNS,
    *redact_ids.PATTERNS,
    *redact_network.PATTERNS,
    *redact_phone.PATTERNS,
    *redact_secrets.GENERAL,
    *redact_assign.PATTERNS,
)
# Patterns that ask the same of a text before it is worth looking are asked once.
_GATES: dict[tuple[int, bool, tuple[str, ...]], list[tuple[int, Pattern]]] = {}
for _rank, _pattern in enumerate(PATTERNS):
    _GATES.setdefault((_pattern.digits, _pattern.long_word, _pattern.hints), []).append((_rank, _pattern))
_BY_ID = {pattern.id: pattern for pattern in PATTERNS}
_MOST_ROUNDS = 12
_AROUND, _EDGE = 2048, 256

Mode = Literal["mask", "pseudonym"]


def find(text: str) -> list[Found]:
    """What is to be redacted, from left to right. The longer of two wins, and of equal ones the more specific."""
    page = Page(text)
    spans = [
        (start, end, rank)
        for (digits, long_word, hints), patterns in _GATES.items()
        if page.digits >= digits and (page.long_words or not long_word) and (not hints or page.holds(hints))
        for rank, pattern in patterns
        for start, end in pattern.finds(page)
    ]
    if not spans:
        return []
    return [Found(PATTERNS[rank].id, start, end) for start, end, rank in _outside_masks(text, _apart(spans))]


# Keys, speakers and sessions come again and again. Only what holds nothing to redact is remembered, and only short texts.
_CLEAN: set[str] = set()
_SHORT, _MOST_CLEAN = 64, 10_000


def _find_again(text: str) -> list[Found]:
    if text in _CLEAN:
        return []
    found = find(text)
    if not found and len(text) <= _SHORT:
        if len(_CLEAN) >= _MOST_CLEAN:
            _CLEAN.clear()
        _CLEAN.add(text)
    return found


@dataclass(frozen=True, slots=True)
class Redactor:
    """How found values are written: `[EMAIL]`, or in pseudonym mode `[EMAIL:8 hex digits]`, the same for the same value and key.

    `names` are names of people (or anything else) and the ids that replace them, in both modes.
    """

    mode: Mode = "mask"
    key: bytes | None = field(default=None, repr=False)
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    _named: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _ids: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in ("mask", "pseudonym"):
            raise InvalidInput(f"redaction mode is {self.mode!r:.40}", expected="mask or pseudonym")
        if self.mode == "pseudonym" and not self.key:
            raise InvalidInput("pseudonyms need a key", remedy="give one, or use mode 'mask'")
        object.__setattr__(self, "_named", _alternatives(self.names))
        object.__setattr__(self, "_ids", {_folded(name): given for name, given in self.names.items()})
        for number, (name, given) in enumerate(self.names.items(), 1):
            if not name.strip() or self.text(given) != given:
                raise InvalidInput(f"name {number} has an id that would be redacted itself", expected="an id without names in it")

    def text(self, text: str, *, look: Callable[[str], list[Found]] = find) -> str:
        """The text as it may be stored."""
        found = look(text)
        for _ in range(_MOST_ROUNDS):
            masked, masks = self._masked(text, found)
            renamed = self._renamed(masked)
            if renamed == text:
                return text
            # What is masked changes what stands around the rest, so we look until nothing is found.
            found = find_near(renamed, masks) if renamed == masked else find(renamed)
            text = renamed
        return "[REDACTED]"  # a text made to keep us busy; nothing of it is kept

    def value(self, value: Value) -> Value:
        """The same for every text in a value, keys too. A key is a cue for its value, even if that is a number."""
        return self._value(value, "")

    def _value(self, value: Value, key: str) -> Value:
        if isinstance(value, str):
            return self._beside(value, key)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 999_999:
            shown = self._beside(str(value), key)
            return value if shown == str(value) else shown
        return value

    def _object(self, value: dict[str, Value]) -> dict[str, Value]:
        kept: dict[str, Value] = {}
        masked = {key: self.text(key, look=_find_again) for key in value}
        taken, numbers = set(masked.values()), Counter[str]()
        for key, item in value.items():
            shown = _unused(masked[key], kept, taken, numbers)
            kept[shown] = self._value(item, shown)
        return kept

    def _beside(self, value: str, key: str) -> str:
        """A value read with its key: `{"password": "hunter2"}` says as much as `password: hunter2`."""
        lead = f"{key}: "
        for _ in range(_MOST_ROUNDS):
            found = [one for one in _find_again(lead + value) if one.start >= len(lead)] if key else []
            redacted = self.text(self._masked(lead + value, found)[0][len(lead) :], look=_find_again)
            if redacted == value:
                return value
            value = redacted
        return "[REDACTED]"

    def _masked(self, text: str, found: list[Found]) -> tuple[str, list[Span]]:
        """The text with a mask for each find, and where the masks are."""
        parts: list[str] = []
        masks: list[Span] = []
        at = length = 0
        for one in found:
            mask = self._mask(one.pattern, text[one.start : one.end])
            parts += [text[at : one.start], mask]
            length += one.start - at + len(mask)
            masks.append((length - len(mask), length))
            at = one.end
        return "".join((*parts, text[at:])), masks

    def _mask(self, pattern_id: str, value: str) -> str:
        pattern = _BY_ID[pattern_id]
        if self.mode == "mask" or self.key is None:
            return f"[{pattern.label}]"
        message = f"{pattern.label}:{pattern.normal(value)}".encode("utf-8", "surrogatepass")
        return f"[{pattern.label}:{hmac.digest(self.key, message, sha256).hex()[:8]}]"

    def _renamed(self, text: str) -> str:
        if self._named is None:
            return text
        masks = _masks(text)
        return self._named.sub(lambda found: found[0] if _cuts(found.span(), masks) else self._id_of(found[0]), text)

    def _id_of(self, written: str) -> str:
        return self._ids.get(_folded(written), "[REDACTED]")


def find_near(text: str, masks: list[Span]) -> list[Found]:
    """What masking has uncovered. In a long text only the stretches around the new masks are looked at again."""
    if len(text) <= 4 * _AROUND:
        return find(text) if masks else []
    found: list[Found] = []
    for low, high in _stretches(masks, len(text)):
        for one in find(text[low:high]):
            # At a cut a part may look like a whole. What stands there is far from any mask, and was judged before.
            if (low == 0 or one.start >= _EDGE) and (high == len(text) or one.end <= high - low - _EDGE):
                found.append(Found(one.pattern, one.start + low, one.end + low))
    return found


def _stretches(masks: list[Span], length: int) -> Iterator[Span]:
    low = high = 0
    for start, end in masks:
        if start - _AROUND > high:
            if high:
                yield low, high
            low = start - _AROUND
        high = min(length, end + _AROUND)
    if high:
        yield low, high


def _apart(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Without overlaps: what lies inside another goes; of two that overlap in part, the less specific goes."""
    kept: list[tuple[int, int, int]] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        if kept and span[0] < kept[-1][1]:
            if span[1] <= kept[-1][1] or span[2] >= kept[-1][2]:
                continue
            kept.pop()
        kept.append(span)
    return kept


def _outside_masks(text: str, spans: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Our own masks are no finds: not whole, not in part. Around one, as part of a longer secret, they may be."""
    masks = _masks(text)
    for start, end, rank in spans:
        if not _cuts((start, end), masks) and MASK.fullmatch(text[start:end].strip(" .,;:")) is None:
            yield start, end, rank


def _masks(text: str) -> list[Span]:
    return [found.span() for found in MASK.finditer(text)] if "[" in text else []


def _cuts(span: Span, masks: list[Span]) -> bool:
    """Does the span start or end within a mask?"""
    return any(_within(place, masks) for place in span)


def _within(place: int, masks: list[Span]) -> bool:
    at = bisect_left(masks, (place, 0)) - 1
    return at >= 0 and masks[at][0] < place < masks[at][1]


def _alternatives(names: Mapping[str, str]) -> re.Pattern[str] | None:
    """Any of the names as whole words, the longest first, however it is spaced and composed."""
    written = {
        form
        for name in names
        for form in (unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name))
        if form.strip()
    }
    if not written:
        return None
    ordered = sorted(written, key=lambda name: (-len(name), name))
    forms = (r"\s{1,8}".join(map(re.escape, name.split())) for name in ordered)
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", re.IGNORECASE)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _unused(key: str, kept: Mapping[str, Value], taken: set[str], numbers: Counter[str]) -> str:
    """Two addresses as keys become one mask; the second is numbered, since no value may be lost."""
    free = key
    while free in kept or (free != key and free in taken):
        numbers[key] += 1
        free = f"{key} {numbers[key] + 1}"
    return free


def masked(text: str) -> str:
    """The text with a mask for each find: for errors and log lines, where neither key nor names are at hand."""
    return _MASKING.text(text)


_MASKING = Redactor()
