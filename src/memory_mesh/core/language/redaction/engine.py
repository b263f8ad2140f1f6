"""Find personal data and secrets in a text and replace them by masks or keyed pseudonyms.

`find` runs all patterns; `Redactor` writes the replacements. Redacting a redacted text changes
nothing, any text is accepted, and the time grows linearly with its length. The page
docs/internals/redaction.md is generated from PATTERNS. This package must not import `core.errors`:
every error masks its own text with `masked`.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Literal

from memory_mesh.core.language.redaction import (
    assignments,
    keys,
    national_ids,
    numbers,
    pairs,
    phone,
)
from memory_mesh.core.language.redaction.pattern import (
    Finding,
    Page,
    Pattern,
    Plain,
    Span,
    merged,
    present,
)
from memory_mesh.core.text import KINDS, MASK, LazyRegex

if TYPE_CHECKING:
    from memory_mesh.core.model import Value

# More specific patterns come first: of two findings that overlap in part, the first pattern's wins.
PATTERNS: tuple[Pattern, ...] = (
    *keys.FORMS, *keys.VENDORS, *numbers.CARDS, *national_ids.NATIONAL_IDS, *national_ids.DOCUMENTS,
    *numbers.PATTERNS, *phone.PATTERNS, *keys.GENERAL,
    *assignments.PATTERNS, *pairs.COMMAND_PATTERNS, *pairs.PATTERNS, *pairs.TABLE_PATTERNS,
)  # fmt: skip
# Patterns with the same precondition (gate), so that it is checked once per text. Gates are
# numbered, to find them by hint.
_GATES: dict[
    tuple[int, bool, tuple[str, ...], Callable[[Page], bool] | None], list[tuple[int, Pattern]]
] = {}
for _rank, _pattern in enumerate(PATTERNS):
    if not _pattern.prefixes:
        _gate = (_pattern.digits, _pattern.long_word, _pattern.hints, _pattern.when)
        _GATES.setdefault(_gate, []).append((_rank, _pattern))
_BY_NUMBER = [(*gate, patterns) for gate, patterns in _GATES.items()]
_WITHOUT_HINTS = [number for number, gate in enumerate(_GATES) if not gate[2]]
_HINTS = {
    hint: {n for n, gate in enumerate(_GATES) if hint in gate[2]}
    for gate in _GATES
    for hint in gate[2]
}
_ASCII_HINTS = [hint for hint in _HINTS if hint.isascii()]
_PREFIXED: dict[str, list[int]] = {}
for _rank, _pattern in enumerate(PATTERNS):
    for _prefix in _pattern.prefixes:
        _PREFIXED.setdefault(_prefix, []).append(_rank)
_BY_ID = {pattern.id: pattern for pattern in PATTERNS}
_MAX_ROUNDS = 12
_AROUND, _EDGE = 2048, 256
_MAX_REMEMBERED_CHARS, _MAX_REMEMBERED = 200, 10_000
# Times are skipped: most metadata has one, few are equal, and no pattern matches a time, with or
# without its key.
_TIME_KEYS = frozenset({"event_time", "valid_from", "valid_until", "expires_at", "timestamp"})
_TIME = LazyRegex(
    r"[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?(?:Z|"
    r"[+-][01][0-9]:[0-5][0-9])?)?"
)
# No secret is so long without a space or a dot, and parts of an image look like one by chance.
_MIN_FILE_CHARS = 4_000
_FILE = LazyRegex(r"(?:data:[^,\s]{1,200};base64,)?[A-Za-z0-9+/_-]*={0,2}")

Mode = Literal["mask", "pseudonym"]


def find(text: str, *, off: frozenset[str] = frozenset()) -> list[Finding]:
    """Return what must be redacted, from left to right. Longer findings win; of equal ones, the
    more specific.

    Patterns of the kinds in `off` are not searched for.
    """
    plain = Plain.of(text)
    page = Page(plain.text)
    folded, digits = page.folded, page.digits
    hints = present(folded, _ASCII_HINTS if folded.isascii() else _HINTS)
    hinted = {number for hint in hints for number in _HINTS[hint]}
    spans = [
        (start, end, rank)
        for min_digits, long_word, _, when, patterns in map(
            _BY_NUMBER.__getitem__, (*_WITHOUT_HINTS, *hinted)
        )
        if digits >= min_digits
        and (page.long_words or not long_word)
        and (when is None or when(page))
        for rank, pattern in patterns
        if not off or pattern.kind not in off
        for start, end in pattern.finds(page)
    ]
    if words := page.long_words:
        prefixed = {rank for prefix in present(words, _PREFIXED) for rank in _PREFIXED[prefix]}
        allowed = [rank for rank in prefixed if PATTERNS[rank].kind not in off]
        spans += [
            (start, end, rank) for rank in allowed for start, end in PATTERNS[rank].finds(page)
        ]
    masks = _masks(page.text) if spans else []
    # A span that is a mask or cuts one is dropped. A span around a mask, as part of a longer
    # secret, stays.
    return [
        Finding(PATTERNS[rank].id, *plain.original(start, end))
        for start, end, rank in _without_overlaps(spans)
        if not masks
        or (
            not _cuts((start, end), masks)
            and MASK.fullmatch(page.text[start:end].strip(" .,;:")) is None
        )
    ]


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces findings by `[EMAIL]`, or in pseudonym mode by `[EMAIL:8 hex digits]`, equal for the
    same value and key.

    `names` maps names of people (or anything else) to the ids that replace them, in both modes.
    Kinds in `off` are not replaced. With `keeps_files`, a value that is a file in base64, such as
    an image, is not searched. Wrong arguments are a ValueError.
    """

    mode: Mode = "mask"
    key: bytes | None = field(default=None, repr=False)
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    off: frozenset[str] = frozenset()
    keeps_files: bool = False
    _names_regex: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _ids: dict[str, str] = field(init=False, repr=False, compare=False)
    _ids_regex: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _clean: set[bytes] = field(init=False, repr=False, compare=False, default_factory=set)

    def __post_init__(self) -> None:
        if self.mode not in ("mask", "pseudonym"):
            raise ValueError(f"redaction mode is {self.mode!r:.40}; expected mask or pseudonym")
        if self.mode == "pseudonym" and not self.key:
            raise ValueError("pseudonyms need a key; pass one, or use mode 'mask'")
        if unknown := sorted(self.off - set(KINDS)):
            raise ValueError(
                f"unknown kind {unknown[0]!r:.40}; expected some of {', '.join(KINDS)}"
            )
        object.__setattr__(self, "_names_regex", _any_of(self.names))
        object.__setattr__(self, "_ids_regex", _any_of(self.names.values()))
        object.__setattr__(self, "_ids", {_folded(name): id_ for name, id_ in self.names.items()})
        for number, (name, id_) in enumerate(self.names.items(), 1):
            if not name.strip() or self.redact(id_) != id_:
                raise ValueError(
                    f"name {number} is blank, or its id would be redacted itself; expected an id "
                    "without names"
                )

    def redact(self, text: str) -> str:
        """Return the text with every finding and name replaced."""
        findings = find(text, off=self.off)
        if not findings and self._names_regex is None:
            return text
        for _ in range(_MAX_ROUNDS):
            masked, masks = self._masked(text, findings)
            renamed = self._renamed(masked)
            if renamed == text:
                return text
            # A mask changes the context of the rest of the text, so the search repeats until it
            # finds nothing.
            findings = (
                _find_near(renamed, masks, self.off)
                if renamed == masked
                else find(renamed, off=self.off)
            )
            text = renamed
        return "[REDACTED]"  # only a text built for this needs so many rounds

    def count(self, before: str, after: str) -> dict[str, int]:
        """Return how many values of each kind were replaced between two versions of a text;
        names have the kind `name`."""
        if before == after:
            return {}
        new = self._replacements(after)
        new.subtract(self._replacements(before))
        return {kind: times for kind, times in sorted(new.items()) if times > 0}

    def _replacements(self, text: str) -> Counter[str]:
        counts = (
            Counter(mask[1].lower() for mask in MASK.finditer(text))
            if "[" in text
            else Counter[str]()
        )
        if self._ids_regex:
            counts["name"] = len(self._ids_regex.findall(text))
        return counts

    def redact_value(self, value: "Value", key: str = "") -> "Value":
        """Redact every text in a JSON value, keys included. A key is a cue for its value, even
        for a number."""
        if isinstance(value, str):
            return self._text_of_key(value, key)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.redact_value(item, key) for item in value]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 999_999:
            redacted = self._text_of_key(str(value), key)
            return value if redacted == str(value) else redacted
        return value

    def _object(self, value: "dict[str, Value]") -> "dict[str, Value]":
        digest = _digest(*value, of=b"keys")
        if digest in self._clean:
            return {key: self.redact_value(item, key) for key, item in value.items()}
        result: dict[str, Value] = {}
        masked = {key: self.redact(key) for key in value}
        taken, numbers = set(masked.values()), Counter[str]()
        for key, item in value.items():
            same = unique = masked[key]
            # A key that became equal to another one by masking is numbered, so that no value is
            # lost.
            while unique in result or (unique != same and unique in taken):
                numbers[same] += 1
                unique = f"{same} {numbers[same] + 1}"
            result[unique] = self.redact_value(item, unique)
        if taken == set(value):
            self._remember(digest)
        return result

    def _text_of_key(self, value: str, key: str) -> str:
        """Redact a value together with its key: `{"password": "hunter2"}` reads like `password:
        hunter2`."""
        if key in _TIME_KEYS and self._names_regex is None and _TIME.fullmatch(value):
            return value
        if (digest := _digest(key, value, of=b"value")) in self._clean:
            return value
        if self.keeps_files and len(value) >= _MIN_FILE_CHARS and _FILE.fullmatch(value):
            return value
        lead, given = f"{key}: ", value
        for _ in range(_MAX_ROUNDS):
            findings = (
                [one for one in find(lead + value, off=self.off) if one.start >= len(lead)]
                if key
                else []
            )
            redacted = self.redact(self._masked(lead + value, findings)[0][len(lead) :])
            if redacted == value:
                if value == given:
                    self._remember(digest)
                return value
            value = redacted
        return "[REDACTED]"

    def _remember(self, digest: bytes | None) -> None:
        """Remember the digest of texts without findings: keys, speakers and tags repeat in every
        call."""
        if len(self._clean) >= _MAX_REMEMBERED:
            self._clean.clear()
        if digest:
            self._clean.add(digest)

    def _masked(self, text: str, findings: list[Finding]) -> tuple[str, list[Span]]:
        """Return the text with a mask for each finding, and the spans of the masks."""
        parts: list[str] = []
        masks: list[Span] = []
        known: dict[tuple[str, str], str] = {}  # a hostile text repeats its values
        at = length = 0
        for one in findings:
            value = one.pattern, text[one.start : one.end]
            mask = known[value] = known.get(value) or self._mask(*value)
            parts += [text[at : one.start], mask]
            length += one.start - at + len(mask)
            masks.append((length - len(mask), length))
            at = one.end
        return "".join((*parts, text[at:])), masks

    def _mask(self, pattern_id: str, value: str) -> str:
        pattern = _BY_ID[pattern_id]
        if self.mode == "mask" or self.key is None:
            return f"[{pattern.label}]"
        import hmac  # it takes milliseconds to load

        # Other spellings of a secret are other secrets, invisible characters included.
        spelling = value if pattern.normal is str else pattern.normal(Plain.of(value).text)
        message = f"{pattern.label}:{spelling}".encode("utf-8", "surrogatepass")
        return f"[{pattern.label}:{hmac.digest(self.key, message, sha256).hex()[:8]}]"

    def _renamed(self, text: str) -> str:
        if self._names_regex is None:
            return text
        masks = _masks(text)

        def replacement(name: re.Match[str]) -> str:
            return (
                name[0]
                if _cuts(name.span(), masks)
                else self._ids.get(_folded(name[0]), "[REDACTED]")
            )

        return self._names_regex.sub(replacement, text)


def _digest(*texts: str, of: bytes) -> bytes | None:
    """Return a digest of a few short texts; None for longer ones, which seldom repeat."""
    joint = "\0".join(texts)
    if len(joint) > _MAX_REMEMBERED_CHARS or joint.count("\0") >= max(1, len(texts)):
        return None
    return blake2b(joint.encode("utf-8", "surrogatepass"), digest_size=16, person=of).digest()


def masked(text: str) -> str:
    """Return the text with a mask for each finding: for errors and log lines, which have neither
    key nor names."""
    return _MASKING.redact(text)


def _find_near(text: str, masks: list[Span], off: frozenset[str]) -> list[Finding]:
    """Find what masking has uncovered. In a long text only the stretches around the new masks
    are searched."""
    if len(text) <= 4 * _AROUND:
        return find(text, off=off) if masks else []
    findings: list[Finding] = []
    for low, high in merged(
        (max(0, start - _AROUND), min(len(text), end + _AROUND)) for start, end in masks
    ):
        for one in find(text[low:high], off=off):
            # At a cut, a part may look like a whole. It is far from any mask and was judged in the
            # first search.
            if (low == 0 or one.start >= _EDGE) and (
                high == len(text) or one.end <= high - low - _EDGE
            ):
                findings.append(Finding(one.pattern, one.start + low, one.end + low))
    return findings


def _without_overlaps(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Drop spans inside another one; of two that overlap in part, drop the less specific."""
    result: list[tuple[int, int, int]] = []
    for start, minus_end, rank in sorted([(start, -end, rank) for start, end, rank in spans]):
        if result and start < result[-1][1]:
            if -minus_end <= result[-1][1] or rank >= result[-1][2]:
                continue
            result.pop()
        result.append((start, -minus_end, rank))
    return result


def _masks(text: str) -> list[Span]:
    return [mask.span() for mask in MASK.finditer(text)] if "[" in text else []


def _cuts(span: Span, masks: list[Span]) -> bool:
    """Return whether the span starts or ends inside a mask."""
    for place in span:
        at = bisect_left(masks, (place, 0)) - 1
        if at >= 0 and place < masks[at][1]:
            return True
    return False


def _any_of(names: Iterable[str]) -> re.Pattern[str] | None:
    """Compile the names as whole words, longest first, with any spacing and in both Unicode
    compositions."""
    written = {
        unicodedata.normalize(form, name)
        for name in names
        for form in ("NFC", "NFD")
        if name.strip()
    }
    if not written:
        return None
    ordered = sorted(written, key=lambda name: (-len(name), name))
    forms = (r"\s{1,8}".join(map(re.escape, name.split())) for name in ordered)
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", re.IGNORECASE)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


_MASKING = Redactor()
