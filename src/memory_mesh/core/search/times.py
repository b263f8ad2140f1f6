"""The times that the text of a query names: dates in numbers, and English expressions."""

import re
from calendar import monthrange
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime

from memory_mesh.core.search.query import Span

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS_BACK = 10
_MAX_SPANS = 40
_CENTURY_CHANGE = 70  # of two digits: earlier years lie in the 21st century
_MONTH_NAMES = "january|february|march|april|may|june|july|august|september|october|november|december"
_MONTHS = [name[:3] for name in _MONTH_NAMES.split("|")]
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# The first month and the number of months. A winter belongs to two years.
_SEASONS = {
    "spring": [(3, 3)], "summer": [(6, 3)], "autumn": [(9, 3)], "fall": [(9, 3)], "winter": [(1, 2), (12, 3)],
    "q1": [(1, 3)], "q2": [(4, 3)], "q3": [(7, 3)], "q4": [(10, 3)],
}  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "couple of": 2, "few": 3, "several": 4,
}  # fmt: skip
_UNITS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_NEAR_DAYS = {
    "day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0,
    "day after tomorrow": 2, "tomorrow": 1,
}  # fmt: skip

_MONTH = rf"(?P<month>{_MONTH_NAMES}|{'|'.join(_MONTHS)}|sept)\b\.?"
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})\b"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_FOUR_DIGITS = r"(?P<year>(?:19|20)\d\d)\b"
_YEAR = rf"(?:,?\s+(?:of\s+)?{_FOUR_DIGITS})?"
# In order: an expression within one that an earlier pattern has matched is ignored ("May 2023" in "25 May 2023").
_DATES = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?!\d)"),
    # A version such as 1.2.24 is not a date.
    re.compile(
        r"(?<![\w./-])(?<!version )(?P<one>\d{1,2})(?P<sign>[-/.])(?P<other>\d{1,2})(?P=sign)(?P<year>(?:19|20)?\d\d)\b"
        r"(?![./-]\d)"
    ),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}"),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!:){_YEAR}"),
    re.compile(rf"\b{_MONTH},?\s+{_FOUR_DIGITS}"),
    re.compile(rf"\b{_SEASON},?\s+(?:of\s+)?{_FOUR_DIGITS}"),
    # Several months and seasons are also words or names (may, june, fall): without a number they count after a word of time only.
    re.compile(
        rf"\b(?P<which>in|of|since|during|by|until|last|this|early|late|mid|through|from|and|to)[\s-]+(?:the\s+)?(?:{_MONTH}|{_SEASON})"
    ),
    re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)\b(?!-)"),
    re.compile(rf"\b(?:in|of|since|during|by|until|year)\s+{_FOUR_DIGITS}(?!-\d)"),
)
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_AWAY = re.compile(rf"\b{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+(?P<which>ago|from now)\b")
_PERIOD = re.compile(
    rf"\b(?P<which>last|past|previous|this|next|coming)\s+(?:{_COUNT}\s+)?(?P<unit>weekend|day|week|month|year)s?\b"
)
_WEEKDAY = re.compile(
    rf"\b(?P<which>last|past|previous|this|next|coming|on|since|until|by)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
    rf"(?!,?\s+(?:the\s+)?(?:\d|{'|'.join(_MONTHS)}))"  # "on Friday, 3 May": the date says which one
)
_NEAR_DAY = re.compile(rf"\b(?:{'|'.join(_NEAR_DAYS)})\b")
_HINT = re.compile(r"[a-z]+|\d")  # every expression has a digit or one of these words
_UNIT_NAMES = ("weekend", *_UNITS)
_HINTS = frozenset("0123456789").union(
    _MONTH_NAMES.split("|"), _MONTHS, ["sept"], _WEEKDAYS, _SEASONS, _UNIT_NAMES, [f"{unit}s" for unit in _UNIT_NAMES],
    *(words.split() for words in _NEAR_DAYS),
)  # fmt: skip
_PAST, _FUTURE = ("last", "past", "previous"), ("next", "coming")


def time_spans(text: str, at: str) -> tuple[Span, ...]:
    """Return the times that a query names ("on 25 May 2023", "16.01.2024", "in June", "two weeks ago"), each once, in order.

    `at` is the time of the query. A day or a month without a year gives a span in each of the last ten years. A date such as
    3/4/2024 gives the span of each order of day and month.
    """
    if _HINTS.isdisjoint(_HINT.findall(text := text.lower())):
        return ()
    query_day = datetime.fromisoformat(at).date()
    spans = dict.fromkeys([*_calendar_spans(text, query_day), *_relative_spans(text, query_day)])
    return tuple(sorted(spans)[:_MAX_SPANS])


# --- the calendar ---


def _calendar_spans(text: str, query_day: date) -> Iterator[Span]:
    matched: list[tuple[int, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if len(matched) == _MAX_SPANS:  # no query of a person names so many
                return
            if not any(match.start() < end and start < match.end() for start, end in matched):
                matched.append(match.span())
                yield from _dates(match.groupdict(), query_day)


def _dates(parts: Mapping[str, str | None], query_day: date) -> list[Span]:
    spans: list[Span] = []
    for year in _years(parts.get("year"), query_day):
        for month, months, day in _readings(parts):
            with suppress(ValueError):  # 31 June
                spans.append(_span(year, month, months, day))
    if (which := parts.get("which")) in ("last", "this"):  # the latest that is over, or that has begun
        at, end = _day_number(query_day), 1 if which == "last" else 0
        return sorted(span for span in spans if span[end] <= at)[-1:]
    return spans


def _years(year: str | None, query_day: date) -> range:
    if year is None:
        return range(query_day.year - _YEARS_BACK + 1, query_day.year + 1)
    number = int(year)
    full = number if len(year) > 2 else number + (2000 if number < _CENTURY_CHANGE else 1900)
    return range(full, full + 1)


def _readings(parts: Mapping[str, str | None]) -> list[tuple[int, int, int | None]]:
    """Return the first month, the number of months, and the day. Numbers with dots have the day first, others either order."""
    if (one := parts.get("one")) and (other := parts.get("other")):
        day_first, month_first = (int(other), 1, int(one)), (int(one), 1, int(other))
        return [day_first] if parts["sign"] == "." and int(other) <= len(_MONTHS) else [month_first, day_first]
    if season := parts.get("season"):
        return [(month, months, None) for month, months in _SEASONS[season]]
    if (month := parts.get("month")) is None:
        return [(1, len(_MONTHS), None)]
    day = parts.get("day")
    return [(int(month) if month.isdigit() else 1 + _MONTHS.index(month[:3]), 1, int(day) if day else None)]


def _span(year: int, month: int, months: int, day: int | None) -> Span:
    first, last = date(year, month, day or 1), month + months - 2
    end_year, end_month = year + last // 12, last % 12 + 1
    return _day_number(first), _day_number(first if day else date(end_year, end_month, monthrange(end_year, end_month)[1]))


# --- relative to the query ---


def _relative_spans(text: str, query_day: date) -> Iterator[Span]:
    day, weekday = _day_number(query_day), query_day.weekday()
    for match in _NEAR_DAY.finditer(text):
        near = day + _NEAR_DAYS[match.group()]
        yield near, near
    for match in _AWAY.finditer(text):
        unit = _UNITS[match["unit"]]
        away = day + unit * _count(match["count"]) * (-1 if match["which"] == "ago" else 1)
        yield away - unit / 3, away + unit / 3  # "three weeks ago" is any day about then
    for match in _PERIOD.finditer(text):
        first, last = _weekend(match["which"], weekday) if match["unit"] == "weekend" else _period(match)
        yield day + first, day + last
    for match in _WEEKDAY.finditer(text):
        wanted = _WEEKDAYS.index(match["weekday"])
        before, after = (weekday - wanted - 1) % 7 + 1, (wanted - weekday - 1) % 7 + 1
        # Without last or next: the days before and after, or today and a week ago.
        days = {-before} if match["which"] in _PAST else {after} if match["which"] in _FUTURE else {-before, before % 7 and after}
        yield from ((day + each, day + each) for each in days)


def _period(match: re.Match[str]) -> Span:
    """Return the first and the last day, counted from the day of the query."""
    unit, which = _UNITS[match["unit"]], match["which"]
    if which not in (*_PAST, *_FUTURE):
        return -unit, unit
    length = unit * (_count(match["count"]) if match["count"] else 2)
    return (-length, 0.0) if which in _PAST else (0.0, length)


def _weekend(which: str, weekday: int) -> Span:
    saturday = _WEEKDAYS.index("saturday") - weekday
    if which in _PAST:
        return saturday - 7.0, saturday - 6.0
    return (saturday if saturday > 0 else saturday + 7.0, saturday + 8.0) if which in _FUTURE else (saturday, saturday + 1.0)


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _day_number(day: date) -> float:
    return float(day.toordinal() - _EPOCH)
