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
