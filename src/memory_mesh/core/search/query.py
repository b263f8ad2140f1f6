"""A query and its answer as values, the cache of answers, and what the text of a query says about people and times.

`Query` is what an index receives, `Pool` the candidates it returns, `Explanation` the account of a whole search.
"""

import re
from calendar import monthrange
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from memory_mesh.core.model import ANYTHING, Reader, SearchResult, Vector, Where
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.search.lexical import tokens

if TYPE_CHECKING:  # numpy takes a moment to load, and most commands do not search
    import numpy as np
    from numpy.typing import NDArray

Signal: TypeAlias = "NDArray[np.float32]"  # one entry for each candidate
Span: TypeAlias = tuple[float, float]  # first and last day, counted from 1970-01-01


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, prepared for an index."""

    tokens: Sequence[str]
    vector: Vector | None  # None: there is no embedder, or it failed; only keywords are compared
    reader: Reader
    at: str  # the time of the query; memories that have expired by then are excluded
    statuses: Sequence[str] = ("active",)
    spans: Sequence[Span] = ()  # the times that the text names
    roles: frozenset[str] = frozenset()  # speakers that the text refers to as "I" or "you", in lower case
    names: frozenset[str] = frozenset()  # the tokens that look like names
    where: Where = ANYTHING  # the caller's filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The candidates for a query, in no particular order, and their signals."""

    ids: Sequence[str]
    signals: Mapping[str, Signal]  # by the names in SIGNALS
    documents: int  # memories that the reader can see, with these statuses and this filter
    excluded: Mapping[str, int] = field(default_factory=dict)  # number of memories excluded before scoring, by reason
    without_vector: int = 0  # memories without a vector of the query's model


# A missing neighbour or vector counts as 0; a memory without a session forms a session by itself. A neighbour is the previous or
# the next memory of the same session that the reader can see with the same statuses.
SIGNALS = (
    "keywords",  # BM25 of the memory
    "keywords_before",  # BM25 of the previous neighbour
    "keywords_behind",  # BM25 of the next neighbour
    "keywords_context",  # BM25 of the memory and its neighbours as one document
    "keywords_session",  # BM25 of its whole session as one document among sessions
    "coverage",  # fraction of the query's weight whose words the memory contains, 0–1
    "coverage_context",  # the same for the memory and its neighbours
    "coverage_wide",  # the same for the memory and two neighbours on each side
    "vectors",  # cosine of its best passage
    "vectors_before",
    "vectors_behind",
    "vectors_context",  # cosine of ½ · previous + own + ½ · next
    "vectors_session",  # best cosine within its session
    "length",  # number of keywords
    "question",  # 1 if its text ends as a question
    "question_before",  # 1 if the previous neighbour's text does
    "speaker",  # 1 if the query names its speaker
    "speaker_known",  # 1 if it has a speaker
    "role",  # 1 if the query refers to its speaker as "I" or "you"
    "stranger",  # fraction of the query's names that no memory visible to the reader contains
    "when",  # 1 if its event lies within a time that the query names, less with each day outside, 0 if either is missing
    "when_asked",  # 1 if the query names a time
)


@dataclass(frozen=True, slots=True)
class Placing:
    """The rank and the score that one channel gives to a memory."""

    __repr__ = short_repr

    rank: int  # from 1
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One result with the placings and features that it was ranked by."""

    __repr__ = short_repr

    result: SearchResult
    channels: Mapping[str, Placing] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A search with its results, its near misses, and the number of memories excluded at each step."""

    __repr__ = short_repr

    query: str  # as it was searched: personal data masked
    tokens: Sequence[str]
    ranker: str
    model: str | None  # whose vectors were compared; None: keywords only
    mode: str | None  # the search mode that set the minimum score; None: the caller did
    min_score: float
    documents: int  # memories that could have been results
    candidates: int  # memories that were ranked
    left_out: Mapping[str, int]  # by reason
    answers: Sequence[Explained]
    nearly: Sequence[Explained] = ()  # the best of those below the minimum score


# --- the cache of RFC-0011 §5: at most 500 entries, kept for five minutes, the least recently used evicted first ---

MAX_SIZE = 500
TTL_MS = 5 * 60 * 1000

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Size and hit counts of the search cache."""

    size: int
    max_size: int
    ttl_seconds: int
    hits: int
    misses: int


class SearchCache(Generic[Answer]):
    """Answers by key, each with the mark of what its reader could see: a write to that, by any process, invalidates it."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, tuple[Answer, Hashable, range]] = OrderedDict()  # answer, mark, life
        self._lock = Lock()
        self._hits = self._misses = 0

    def get(self, key: Hashable, mark: Hashable, at: int) -> Answer | None:
        """Return the answer if it has the same mark and has not expired; a hit does not extend its life."""
        with self._lock:
            answer, known_mark, life = self._entries.get(key, (None, None, range(0)))
            # If the clock was set back, the age of an entry is unknown.
            if known_mark != mark or at not in life:
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return answer

    def put(self, key: Hashable, mark: Hashable, answer: Answer, at: int, *, until: int | None = None) -> None:
        """Store an answer for five minutes, or until `until` if that comes first."""
        expires = at + TTL_MS if until is None else min(until, at + TTL_MS)
        with self._lock:
            self._entries[key] = answer, mark, range(at, expires)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_SIZE:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(len(self._entries), MAX_SIZE, TTL_MS // 1000, self._hits, self._misses)


# --- people ---

_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "ai", "bot", "model"})
_I = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_NAME = re.compile(r"([^\W\d_]+)(?:['’]s?\b)?")
_PROPER_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][a-z]+")
_BLANKS = re.compile(r"\s+(?=[?.!,;:]|$)|(?<=\s)\s+")


def speaker_roles(text: str) -> frozenset[str]:
    """Return the speakers of a chat, in lower case, that a query refers to as "I" or "you"."""
    user = _USER if _I.search(text) else frozenset()
    return user | _ASSISTANT if _YOU.search(text) else user


def proper_names(text: str, *, language: str = "english") -> frozenset[str]:
    """Return the tokens of words that look like names: capitalised, and not at the start of a sentence."""
    return frozenset(token for word in _PROPER_NAME.findall(text) for token in tokens(word, language=language))


def without_speakers(text: str, speakers: Collection[str], *, language: str = "english") -> str:
    """Remove the names of speakers from a query; return it unchanged if no keyword would remain.

    A name says whose memories the query is about. In an embedded query it pulls towards every text that contains the name.
    """
    roles = _USER | _ASSISTANT
    words = {part for name in speakers if name.casefold() not in roles for part in _NAME.findall(name.casefold())}
    # Stems are compared too: of other names an index has only the stem.
    stems = {token for word in words for token in tokens(word, language=language)}
    # Will, Rose and Mark are also words: if the query has capitals at all, a name starts with one.
    has_capitals = text != text.lower()

    def is_speaker(word: str) -> bool:
        if has_capitals and not word[0].isupper():
            return False
        word_stems = tokens(word, language=language)
        return word.casefold() in words or (bool(word_stems) and stems.issuperset(word_stems))

    rest = _NAME.sub(lambda match: "" if is_speaker(match.group(1)) else match.group(), text)
    if rest == text:
        return text
    rest = _BLANKS.sub("", rest).strip()
    return rest if tokens(rest, language=language) else text


# --- times: English expressions, and ISO dates in any language ---

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS_BACK = 10
_MAX_SPANS = 40
_MONTH_NAMES = "january|february|march|april|may|june|july|august|september|october|november|december"
_MONTHS = [name[:3] for name in _MONTH_NAMES.split("|")]
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "couple of": 2, "few": 3,
}  # fmt: skip
_UNITS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}

_MONTH = rf"(?P<month>{_MONTH_NAMES}|{'|'.join(_MONTHS)}|sept)\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?:of\s+)?(?P<year>(?:19|20)\d\d)\b)?"
# In order: an expression within one that an earlier pattern has matched is ignored ("May 2023" in "25 May 2023").
_DATES = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}"),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!:){_YEAR}"),
    re.compile(rf"\b{_MONTH},?\s+(?P<year>(?:19|20)\d\d)\b"),
    # Several months are also words or names (may, march, june): without a number they count after a word of time only.
    re.compile(rf"\b(?:in|of|since|during|by|until|last|this|early|late|mid|through|from|and|to)[\s-]+{_MONTH}{_YEAR}"),
    re.compile(r"\b(?:in|of|since|during|by|until|year)\s+(?P<year>(?:19|20)\d\d)\b(?!-\d)"),
)
_AGO = re.compile(rf"\b(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month|year)s?\s+ago\b")
_LAST = re.compile(
    r"\b(?P<which>last|past|this)\s+(?:(?P<count>\d{1,3}|two|three|four|five|six|few)\s+)?(?P<unit>week|month|year|day)s?\b"
)
_WEEKDAY = re.compile(rf"\b(?:last|past)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})\b")
_DAYS_BACK = {"today": 0, "tonight": 0, "yesterday": 1}
_NEAR_DAY = re.compile(rf"\b(?:{'|'.join(_DAYS_BACK)})\b")


def time_spans(text: str, at: str) -> tuple[Span, ...]:
    """Return the times that a query names ("on 25 May 2023", "in June", "two weeks ago"), each once, in order.

    `at` is the time of the query. A day or a month without a year gives a span in each of the last ten years.
    """
    text, query_day = text.lower(), datetime.fromisoformat(at).date()
    spans = dict.fromkeys([*_calendar_spans(text, query_day), *_relative_spans(text, query_day)])
    return tuple(sorted(spans)[:_MAX_SPANS])


def _calendar_spans(text: str, query_day: date) -> Iterator[Span]:
    matched: list[tuple[int, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if not any(match.start() < end and start < match.end() for start, end in matched):
                matched.append(match.span())
                yield from _years(match.groupdict(), query_day)


def _years(parts: Mapping[str, str | None], query_day: date) -> Iterator[Span]:
    year, month, day = parts.get("year"), parts.get("month"), parts.get("day")
    number = None if month is None else int(month) if month.isdigit() else 1 + _MONTHS.index(month[:3])
    for each in [int(year)] if year else range(query_day.year - _YEARS_BACK + 1, query_day.year + 1):
        with suppress(ValueError):  # 31 June
            first, last = (1, 12) if number is None else (number, number)
            days = (1, monthrange(each, last)[1]) if day is None else (int(day), int(day))
            yield _day_number(date(each, first, days[0])), _day_number(date(each, last, days[1]))


def _relative_spans(text: str, query_day: date) -> Iterator[Span]:
    day = _day_number(query_day)
    for match in _NEAR_DAY.finditer(text):
        yield day - _DAYS_BACK[match.group()], day - _DAYS_BACK[match.group()]
    for match in _AGO.finditer(text):
        unit = _UNITS[match["unit"]]
        back = unit * _count(match["count"])
        # "Three weeks ago" is any day about then.
        yield day - back - unit / 3, day - back + unit / 3
    for match in _LAST.finditer(text):
        unit = _UNITS[match["unit"]]
        back = unit * (_count(match["count"]) if match["count"] else 1 if match["which"] == "this" else 2)
        yield day - back, day
    for match in _WEEKDAY.finditer(text):
        back = (query_day.weekday() - _WEEKDAYS.index(match["weekday"]) - 1) % 7 + 1
        yield day - back, day - back


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _day_number(day: date) -> float:
    return float(day.toordinal() - _EPOCH)
