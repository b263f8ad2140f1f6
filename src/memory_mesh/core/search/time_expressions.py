"""Which times a query names: "on 25 May 2023", "in June", "two weeks ago". English, and ISO dates in any language.

A time is a span of days, counted from 1970-01-01. A day or a month without its year is meant in each of the last ten years.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import TypeAlias

# The first and the last day.
Span: TypeAlias = tuple[float, float]

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS_BACK = 10
_MOST = 40  # spans; a query that names more is no question
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "couple of": 2, "few": 3,
}  # fmt: skip
_UNITS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}

_MONTH = rf"(?P<month>{'|'.join(f'{name}|{name[:3]}' for name in _MONTHS)}|sept)\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?:of\s+)?(?P<year>(?:19|20)\d\d)\b)?"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
_DAY_FIRST = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}")
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!:){_YEAR}")
# Many a month is a word or a name as well (may, march, june): without a number it counts behind words of time.
_BARE_MONTH = re.compile(rf"\b(?:in|of|since|during|by|until|last|this|early|late|mid|through|from|and|to)[\s-]+{_MONTH}{_YEAR}")
_MONTH_OF_YEAR = re.compile(rf"\b{_MONTH},?\s+(?P<year>(?:19|20)\d\d)\b")
_BARE_YEAR = re.compile(r"\b(?:in|of|since|during|by|until|year)\s+(?P<year>(?:19|20)\d\d)\b(?!-\d)")
_AGO = re.compile(rf"\b(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month|year)s?\s+ago\b")
_LAST = re.compile(
    r"\b(?P<which>last|past|this)\s+(?:(?P<count>\d{1,3}|two|three|four|five|six|few)\s+)?(?P<unit>week|month|year|day)s?\b"
)
_WEEKDAY = re.compile(rf"\b(?:last|past)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})\b")
_NEAR = {"today": 0, "tonight": 0, "yesterday": 1}
_NEAR_WORD = re.compile(rf"\b(?:{'|'.join(_NEAR)})\b")


def spans(query: str, at: str) -> tuple[Span, ...]:
    """The times that a query names, asked at a moment, each once."""
    text = query.lower()
    asked_on = datetime.fromisoformat(at).date()
    found = dict.fromkeys([*_dates(text, asked_on), *_relative(text, asked_on)])
    return tuple(sorted(found)[:_MOST])


def _dates(text: str, asked_on: date) -> Iterator[Span]:
    taken: list[tuple[int, int]] = []
    for pattern in (_ISO, _DAY_FIRST, _MONTH_FIRST, _MONTH_OF_YEAR, _BARE_MONTH, _BARE_YEAR):
        for match in pattern.finditer(text):
            # "25 May 2023" is no "May 2023" as well.
            if not any(match.start() < end and start < match.end() for start, end in taken):
                taken.append(match.span())
                yield from _calendar(match.groupdict(), asked_on)


def _calendar(parts: dict[str, str | None], asked_on: date) -> Iterator[Span]:
    year, month, day = parts.get("year"), parts.get("month"), parts.get("day")
    years = [int(year)] if year else range(asked_on.year - _YEARS_BACK + 1, asked_on.year + 1)
    for one in years:
        if span := _span(one, _month(month) if month else None, int(day) if day else None):
            yield span


def _month(name: str) -> int:
    return int(name) if name.isdigit() else 1 + [known[:3] for known in _MONTHS].index(name[:3])


def _span(year: int, month: int | None, day: int | None) -> Span | None:
    try:
        first = date(year, month or 1, day or 1)
    except ValueError:  # 31 June
        return None
    if month is None:
        last = date(year, 12, 31)
    elif day is None:
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    else:
        last = first
    return _number(first), _number(last)


def _relative(text: str, asked_on: date) -> Iterator[Span]:
    day = _number(asked_on)
    for match in _NEAR_WORD.finditer(text):
        yield day - _NEAR[match.group()], day - _NEAR[match.group()]
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
        back = (asked_on.weekday() - _WEEKDAYS.index(match["weekday"]) - 1) % 7 + 1
        yield day - back, day - back


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _number(day: date) -> float:
    return float(day.toordinal() - _EPOCH)
