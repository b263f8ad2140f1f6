"""Detect instructions to a language model that are embedded in a text.

Detection warns; it does not protect. An attacker who tries will get past a list of words. The
protection is the fence, the fixed form of answers, and the rule that no text decides how far it is
trusted.

The rules and word lists are in `data/injection.toml`, which is read on first use. The text is
searched in several views: as a person sees it, with look-alike letters replaced, decoded, and
reversed.
"""

import re
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from heapq import merge
from itertools import accumulate, chain, islice
from operator import attrgetter
from unicodedata import category, normalize

from memory_mesh.core.language.packaged import read_data
from memory_mesh.core.text import INVISIBLE, TAGS, VARIATION_SELECTORS, ZERO_WIDTH

# --- openings ---
# A text is searched for a list of words only where one of the list's openings stands: the start of
# a word, or a letter of another alphabet. Openings are read from the regular expression of the
# list: letters, groups, classes and optional parts. Any other part yields `ANYWHERE`: the whole
# text is searched.

ANYWHERE = ""
_LENGTH = 4  # characters of a word
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_CLASS = r"\[(?:\\.|[^\]\\])*\]"
_ATOM = re.compile(rf"\\.|{_CLASS}|.")
_PLAIN = re.compile(rf"(?:\\.|{_CLASS}|[^()|])+")
_REPEAT = re.compile(r"[?*+]|\{\d+,\d+\}|")
_ESCAPED = re.compile(r"\\(\W)")
_OPERATORS = frozenset(".^$*+?{}()[]|")
_PLAIN_WORD = re.compile(rf"[a-z0-9]{{{_LENGTH}}}(?![?*+{{])")


class Openings:
    """The openings of several lists, by name. An unbounded list may match within a word, so it
    has no words as openings."""

    def __init__(self, lists: Mapping[str, str], *, unbounded: Collection[str] = ()) -> None:
        found = {name: openings(pattern) for name, pattern in lists.items()}
        found |= {
            name: frozenset({ANYWHERE}) for name in unbounded if any(map(str.isascii, found[name]))
        }
        self.anywhere = frozenset(name for name in found if ANYWHERE in found[name])
        self._lists: defaultdict[str, list[str]] = defaultdict(list)  # with each opening
        for name in found.keys() - self.anywhere:
            for opening in found[name]:
                self._lists[opening].append(name)
        others = "".join(sorted(char for char in self._lists if not char.isascii()))
        self._regex = re.compile(rf"([a-z0-9]{{1,{_LENGTH}}})[a-z0-9]*|([{others}0])")

    def places(self, text: str) -> Mapping[str, list[list[int]]]:
        """Return where each list may match in a text: the places of each of its openings, in
        order."""
        found: dict[str, list[int]] = {}
        for match in self._regex.finditer(text):
            if (opening := match[match.lastindex or 0]) in self._lists:
                found.setdefault(opening, []).append(match.start())
        places: defaultdict[str, list[list[int]]] = defaultdict(list)
        for opening, starts in found.items():
            for name in self._lists[opening]:
                places[name].append(starts)
        return places


def openings(pattern: str) -> frozenset[str]:
    """Return the openings of a regular expression that matches whole words."""
    reader = _Reader(pattern)
    found = reader.read({""}) | reader.found
    return frozenset({ANYWHERE} if ANYWHERE in found else found)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self.found: set[str] = set()  # openings that are complete

    def read(self, begun: set[str]) -> set[str]:
        """Read branches to the end of their group. Return the words that have begun there or
        before, and may continue."""
        ended, words = set[str](), begun
        while self._at < len(self._pattern) and not self._take(")"):
            if self._take("|"):
                ended, words = ended | words, begun
            elif words == {""} and (end := self._end_of(_PLAIN_WORD)) > self._at:  # most branches
                self.found.add(self._pattern[self._at : end])
                words, self._at = set(), end
            elif words:
                words = self._read_part(words)
            elif self._take("("):
                self.read(words)
            else:  # every word of this branch is complete
                self._at = self._end_of(_PLAIN)
        return ended | words

    def _read_part(self, begun: set[str]) -> set[str]:
        """Read a group, a class or a character, with its repeat."""
        words = self.read(begun) if self._take("(?:") else self._read_characters(begun)
        sign = self._pattern[self._at : self._end_of(_REPEAT)]
        self._at += len(sign)
        if sign not in ("", "?") and words:  # words may continue with more of the same
            self.found.add(ANYWHERE)
        return words | begun if sign in ("?", "*") or sign.startswith("{0,") else words

    def _read_characters(self, begun: set[str]) -> set[str]:
        atom = self._pattern[self._at : self._end_of(_ATOM)]
        self._at += len(atom)
        characters = _ESCAPED.sub(r"\1", atom[1:-1] if atom.startswith("[") else atom)
        if (
            atom in _OPERATORS
            or characters.startswith("^")
            or "\\" in characters
            or "-" in characters[1:-1]
        ):
            self.found.add(ANYWHERE)
            return set()
        others = {
            char if char.isalpha() else ANYWHERE for char in characters if char not in _LETTERS
        }
        self.found |= {word or char for word in begun for char in others}
        words = {word + char for word in begun for char in characters if char in _LETTERS}
        self.found |= {word for word in words if len(word) == _LENGTH}
        return {word for word in words if len(word) < _LENGTH}

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._pattern, self._at)
        return found.end() if found else self._at

    def _take(self, sign: str) -> bool:
        taken = self._pattern.startswith(sign, self._at)
        self._at += len(sign) if taken else 0
        return taken


# --- detection ---

MAX_FINDINGS = 64


class InjectionKind(StrEnum):
    """The aim of an embedded instruction."""

    OVERRIDE = "override"  # drop the task and take another
    IMPERSONATION = "impersonation"  # speak as somebody who may give orders
    STEERING = "steering"  # dictate the answer or its rating
    EXFILTRATION = "exfiltration"  # send private data elsewhere
    CONCEALED = "concealed"  # be read by the model and not by people


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """The place and kind of an embedded instruction."""

    start: int
    end: int
    kind: InjectionKind


def detect(text: str) -> tuple[Finding, ...]:
    """Return the embedded instructions in the order of the text. The time grows only with the
    length of the text."""
    view = plain_view(text)
    visible = list(_match_rules(view))
    disguised = {
        found
        for found in visible
        if any(sign.search(text, found.start, found.end) for sign in (INVISIBLE, _STYLED))
    }
    found = sorted(
        chain(visible, map(_hidden, disguised), _concealed(text, view, visible)), key=_ORDER
    )
    return tuple(
        islice(
            _without_overlaps(merge(found, _invisible_characters(text), key=_ORDER)), MAX_FINDINGS
        )
    )


_ORDER = attrgetter("start", "end", "kind")


def _match_rules(view: "View") -> Iterator[Finding]:
    matcher = _Matcher(view.text)
    return (
        Finding(*view.span(*span), rule.kind)
        for rule in load_patterns().rules
        for span in matcher.matches(rule)
    )


def _concealed(text: str, view: "View", visible: list[Finding]) -> Iterator[Finding]:
    """Yield instructions that appear only in another view of the text."""
    visible_kinds = {finding.kind for finding in visible}
    for other in other_views(text, view):
        for finding in _match_rules(other):
            if other.positions is None or finding.kind not in visible_kinds:
                yield _hidden(finding)


def _hidden(finding: Finding) -> Finding:
    return Finding(finding.start, finding.end, InjectionKind.CONCEALED)


# Full-width, mathematical and circled letters.
_STYLED = re.compile(
    "[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u24b6-\u24e9\U0001f130-\U0001f189]{3,}"
)


# Flags of parts of countries are the only ordinary use of tag characters. Direction overrides
# reverse letters. A single soft hyphen, byte order mark or variation selector comes with copied
# text and is ignored.
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_SMUGGLED = re.compile(
    rf"[{TAGS}]{{2,}}|[{VARIATION_SELECTORS}]{{3,}}|[\u202d\u202e]|[{ZERO_WIDTH}]{{4,}}"
)
_WITHIN_WORD = re.compile(rf"(?<=[a-zA-Z])[{ZERO_WIDTH}\ufeff\u034f]{{1,3}}(?=[a-zA-Z])")
_MIN_WITHIN_WORD = 3


def _invisible_characters(text: str) -> Iterator[Finding]:
    if text.isascii():
        return
    rest = _FLAG.sub(lambda flag: " " * len(flag.group()), text)
    within = list(_WITHIN_WORD.finditer(rest))
    spans = (match.span() for match in _SMUGGLED.finditer(rest))
    for span in merge(spans, (match.span() for match in within if len(within) >= _MIN_WITHIN_WORD)):
        yield Finding(*span, InjectionKind.CONCEALED)


def _without_overlaps(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the first of the findings of one kind that overlap."""
    ends: dict[InjectionKind, int] = {}
    for finding in findings:
        if finding.start >= ends.get(finding.kind, 0):
            ends[finding.kind] = finding.end
            yield finding


# --- rules and word lists ---


@dataclass(frozen=True, slots=True)
class Rule:
    """Word lists that match in a row. An imperative rule matches orders, not reports of them."""

    kind: InjectionKind
    lists: Sequence[str]
    max_gap: int = 40  # characters between one word and the next
    imperative: bool = False


@dataclass(frozen=True, slots=True)
class Patterns:
    """The content of `data/injection.toml`."""

    rules: tuple[Rule, ...]
    lists: Mapping[str, str]  # each one a regular expression
    unbounded: frozenset[str]  # lists that are matched without word boundaries
    urging: frozenset[str]
    auxiliary: frozenset[str]
    addressee: frozenset[str]
    lookalikes: Mapping[int, int]
    keywords: tuple[str, ...]
    vocabulary: re.Pattern[str]


@cache
def load_patterns() -> Patterns:
    """Read the packaged data file once."""
    import tomllib  # most commands detect nothing

    data = tomllib.loads(read_data("memory_mesh.core.language.safety", "injection.toml"))
    concealed = data["concealed"]
    return Patterns(
        rules=tuple(Rule(**rule | {"kind": InjectionKind(rule["kind"])}) for rule in data["rules"]),
        lists={name: re.sub(r"\n *", "", "|".join(words)) for name, words in data["lists"].items()},
        unbounded=frozenset(data["unbounded"]),
        **{name: frozenset(words) for name, words in data["before_verb"].items()},
        lookalikes=str.maketrans(concealed["lookalikes"], concealed["latin"]),
        keywords=tuple(concealed["keywords"]),
        vocabulary=re.compile("|".join(concealed["vocabulary"])),
    )


@cache
def word_pattern(name: str) -> re.Pattern[str]:
    """Return the compiled list of this name."""
    patterns = load_patterns()
    words = f"(?:{_without_accents(patterns.lists[name])})"
    bounded = words if name in patterns.unbounded else f"(?<![a-z0-9]){words}(?![a-z0-9])"
    return re.compile(bounded, re.MULTILINE)


@cache
def list_openings() -> Openings:
    """Return the openings of all lists."""
    patterns = load_patterns()
    lists = {name: _without_accents(words) for name, words in patterns.lists.items()}
    return Openings(lists, unbounded=patterns.unbounded)


_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n\s|[。！？]")


class _Matcher:
    """A text with the positions of the words of each list."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: dict[str, tuple[list[int], list[int]]] = {}
        self._places = list_openings().places(text)
        self._possible = list_openings().anywhere | self._places.keys()
        self._sentence_ends = [end.start() for end in _SENTENCE_END.finditer(text)]

    def matches(self, rule: Rule) -> Iterator[tuple[int, int]]:
        """Yield the spans where one word of each list follows the one before, near enough and in
        one sentence."""
        if not self._possible.issuperset(rule.lists):
            return
        first, *others = rule.lists
        for start, end in zip(*self._find(first), strict=True):
            last: int | None = end
            for name in others:
                last = None if last is None else self._next(name, last, rule.max_gap)
            if last is not None and not (rule.imperative and is_reported(self._text, start)):
                yield start, last

    def _find(self, name: str) -> tuple[list[int], list[int]]:
        if name not in self._words:
            spans = [match.span() for match in self._search(name)]
            self._words[name] = [start for start, _ in spans], [end for _, end in spans]
        return self._words[name]

    def _search(self, name: str) -> Iterator[re.Match[str]]:
        """Yield the matches of a list, as `finditer` does."""
        if name in list_openings().anywhere:
            yield from word_pattern(name).finditer(self._text)
        end = 0
        for at in sorted(chain(*self._places.get(name, ()))):
            if at >= end and (match := word_pattern(name).match(self._text, at)):
                end = match.end()
                yield match

    def _next(self, name: str, after: int, max_gap: int) -> int | None:
        starts, ends = self._find(name)
        at = bisect_left(starts, after)
        if at == len(starts) or starts[at] - after > max_gap:
            return None
        same_sentence = bisect_left(self._sentence_ends, after) == bisect_left(
            self._sentence_ends, starts[at]
        )
        return ends[at] if same_sentence else None


_CLAUSE_END = re.compile(r"[.!?:;,\n\"'()<>\[\]{}*#|\-–—。！？：，]")
_WORD = re.compile(r"[^\W_]+")
_LOOK_BACK = 60


def is_reported(text: str, start: int) -> bool:
    """Return whether the verb at `start` has another subject than the reader: "we ignore", "it
    returns", "decided to send"."""
    patterns = load_patterns()
    words = _WORD.findall(_CLAUSE_END.split(text[max(0, start - _LOOK_BACK) : start])[-1])
    auxiliary = False
    while (
        words
        and words[-1] in patterns.urging | patterns.auxiliary
        and not (auxiliary and words[-1] in patterns.addressee)
    ):
        auxiliary = auxiliary or words[-1] in patterns.auxiliary
        words.pop()
    return words[-1] not in patterns.addressee if words else auxiliary


# --- views: other ways to read the text ---

Span = tuple[int, int]
Run = tuple[str, Span]  # a part of the text as it reads in another way


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a text.

    `positions` gives the origin of each character. Without it, the view consists of runs, and a
    match belongs to its whole run.
    """

    text: str
    positions: Sequence[int] | None = None
    run_starts: tuple[int, ...] = ()
    run_spans: tuple[Span, ...] = ()

    def span(self, start: int, end: int) -> Span:
        """Map a span of the view to the text itself."""
        if self.positions is None:
            return self.run_spans[bisect_right(self.run_starts, start) - 1]
        first, last = self.positions[start], self.positions[max(start, end - 1)]
        return min(first, last), max(first, last) + 1


def plain_view(text: str) -> View:
    """Read the text as a person sees it: lower case, no accents, one form for each character,
    nothing invisible."""
    if text.isascii():
        return View(text.lower(), range(len(text)))
    folds = {char: _fold(char) for char in set(text)}
    shown = _without_spans(range(len(text)), [match.span() for match in INVISIBLE.finditer(text)])
    pieces = [
        folds[char] for char in (text if len(shown) == len(text) else map(text.__getitem__, shown))
    ]
    folded = "".join(pieces)
    if all(len(fold) == 1 for fold in folds.values()):
        return View(folded, shown)
    return View(folded, [at for at, piece in zip(shown, pieces, strict=True) for _ in piece])


def _without_spans(places: range, spans: Sequence[Span]) -> Sequence[int]:
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(places)]
    return (
        [at for start, end in zip(starts, ends, strict=True) for at in places[start:end]]
        if spans
        else places
    )


def other_views(text: str, plain: View) -> Iterator[View]:
    """Yield every other reading for which the text contains a sign."""
    yield from _lookalike_views(plain)
    yield from _reversed_views(plain)
    # All runs form one view: a text may contain a hundred thousand of them, and each view is
    # searched for every list of words.
    if runs := [*_spelled_out(plain), *_broken_words(plain), *_decoded(text)]:
        contents, spans = zip(*runs, strict=True)
        starts = accumulate(
            (len(content) + len(_RUN_SEPARATOR) for content in contents[:-1]), initial=0
        )
        yield View(_RUN_SEPARATOR.join(contents), run_starts=tuple(starts), run_spans=spans)


_RUN_SEPARATOR = "\n\n"  # no sentence continues from one run to the next


@lru_cache(maxsize=65_536)
def _fold(char: str) -> str:
    return _without_accents(normalize("NFKC", char).casefold())


def _without_accents(text: str) -> str:
    return normalize(
        "NFC", "".join(char for char in normalize("NFKD", text) if category(char) != "Mn")
    )


_DIGITS = str.maketrans("013457@$", "oieastas")
_LETTERS_AND_DIGITS = re.compile(
    r"[a-z]{1,20}[013457@$][a-z013457@$]{1,20}|[013457@$]{1,3}[a-z][a-z013457@$]{1,20}"
)


def _lookalike_views(plain: View) -> Iterator[View]:
    """Replace Cyrillic, Greek and other twins of Latin letters, and digits within words, by the
    letters they stand for."""
    if (
        not plain.text.isascii()
        and (latin := plain.text.translate(load_patterns().lookalikes)) != plain.text
    ):
        yield View(latin, plain.positions)
    without_digits = _LETTERS_AND_DIGITS.sub(
        lambda word: word.group().translate(_DIGITS), plain.text
    )
    if without_digits != plain.text:
        yield View(without_digits, plain.positions)


_SPELLED_OUT = re.compile(r"(?<![^\W_])[a-z](?:[ .\-_*·|/,+~]{1,3}[a-z]){5,}(?![^\W_])")
_SEPARATORS = " .-_*·|/,+~"
_LETTER_OR_GAP = re.compile(r"[a-z]|[ ]{2,3}|[ ]?[/|][ ]?")


def _spelled_out(plain: View) -> Iterator[Run]:
    """Join letters that are set apart. Wide gaps separate words; without them the known words
    are separated again."""
    for run in _SPELLED_OUT.finditer(plain.text):
        letters = "".join(
            match.group().strip(_SEPARATORS) or " "
            for match in _LETTER_OR_GAP.finditer(run.group())
        )
        joined = letters if letters.count(" ") * 2 < len(letters) else letters.replace(" ", "")
        yield joined if " " in joined else _separate_words(joined), plain.span(*run.span())


_BROKEN_WORDS = re.compile(r"(?<![^\W_])(?:[a-z]{1,4} ){8,}[a-z]{1,4}")


def _broken_words(plain: View) -> Iterator[Run]:
    """Join words that are broken into short pieces."""
    for run in _BROKEN_WORDS.finditer(plain.text):
        yield _separate_words(run.group().replace(" ", "")), plain.span(*run.span())


def _separate_words(text: str) -> str:
    return " ".join(load_patterns().vocabulary.sub(lambda word: f" {word.group()} ", text).split())


_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")


def _reversed_views(plain: View) -> Iterator[View]:
    """Read the text in ROT13 and backwards, if a keyword appears that way."""
    keywords = load_patterns().keywords
    if any(word.translate(_ROT13) in plain.text for word in keywords):
        yield View(plain.text.translate(_ROT13), plain.positions)
    if any(word[::-1] in plain.text for word in keywords):
        yield View(plain.text[::-1], None if plain.positions is None else plain.positions[::-1])


_ESCAPES = re.compile(
    r"%([0-9a-fA-F]{2})|&#(\d{2,6});|&#x([0-9a-fA-F]{2,5});|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})"
)
_MIN_ESCAPES = 6
_MIN_DECODED = 8  # characters


def _decoded(text: str) -> Iterator[Run]:
    """Decode Base64, hex, lists of character codes, bits, tag characters and escapes."""
    for pattern, decode in _ENCODINGS:
        for run in pattern.finditer(text):
            try:
                decoded = decode(run.group())
            except ValueError:
                continue
            if decoded.isprintable() and len(decoded) >= _MIN_DECODED:
                yield plain_view(decoded).text, run.span()
    if len(_ESCAPES.findall(text)) >= _MIN_ESCAPES:
        yield plain_view(_ESCAPES.sub(_unescape, text)).text, (0, len(text))


def _base64(run: str) -> str:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    return _words(b64decode(body + "=" * (-len(body) % 4)))


def _hex(run: str) -> str:
    digits = re.sub(r"0x|\\x|[ :,]", "", run)
    return _words(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _words(utf8: bytes) -> str:
    return " ".join(utf8.decode().split())


_ENCODINGS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    (re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}"), _base64),
    (re.compile(r"(?<![0-9a-fA-F])(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,]?){12,}"), _hex),
    (
        re.compile(r"(?<!\d)(?:\d{2,3}[ ,;]{1,2}){11,}\d{2,3}"),
        lambda run: "".join(map(chr, map(int, re.findall(r"\d+", run)))),
    ),
    (
        re.compile(r"(?:[01]{8} ?){10,}"),
        lambda run: "".join(chr(int(byte, 2)) for byte in re.findall(r"[01]{8}", run)),
    ),
    (
        re.compile("[\U000e0020-\U000e007e]{3,}"),
        lambda run: "".join(chr(ord(char) - 0xE0000) for char in run),
    ),
)


def _unescape(match: re.Match[str]) -> str:
    percent, decimal, *hexadecimal = match.groups()
    code = int(decimal) if decimal else int(percent or next(filter(None, hexadecimal)), 16)
    return chr(code) if code < 0x110000 else match.group()
