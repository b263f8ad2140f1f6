"""What a text refers to: people, and times."""

import re
from calendar import monthrange
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from functools import cache

from memory_mesh.core.search.lexical import edits, tokens
from memory_mesh.core.search.query import Span

# --- people ---
# Speakers of a chat, names, nicknames and misspelt names.

_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "ai", "bot", "model"})
_US = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves|you|your|yours)\b", re.IGNORECASE
)
_GENERAL = re.compile(
    r"\s*(?:how\s+(?:do|can|should|would)\s+(?:i|you|we)\b|can\s+i\b|is\s+it\b|why\s+(?:do|does|is|"
    r"are)\b"
    r"|what(?:['’]s|\s+is|\s+are)\s+(?:an?|the)\b|what\s+does\b.*\bmean\b)",
    re.IGNORECASE,
)
_I = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
# Not about what "you" said: requests ("Can you recommend a hotel?", but not "Can you remind me …"),
# and what "I" told you.
_NOT_YOU = re.compile(
    r"\b(?:(?:can|could|would|will|do|should|may)\s+you\b(?!\s+(?:please\s+)?(?:remind|remember|"
    r"recall|repeat))"
    r"|(?:thank|tell|told|asked?|gave|give|showed?|sent|send)\s+you\b)",
    re.IGNORECASE,
)
_NAME = re.compile(r"([^\W\d_]+)(?:['’]s?\b)?")
_INNER_WORD = re.compile(r"(?<![.?!:]\s)(?<!^)\b[^\W\d_]{2,}")  # not at the start of a sentence
_POSSESSIVE = re.compile(r"\b([^\W\d_]{2,})['’]s\b")
_BLANKS = re.compile(r"\s+(?=[?.!,;:]|$)|(?<=\s)\s+")
_GREETING = re.compile(
    r"(?=[hdtbcmn])"  # which takes half of the time away
    r"\b(?:hey|hi|hello|thanks|thank you|dear|bye|congrats|congratulations|morning|evening|"
    r"night),?\s+([^\W\d_]{2,})\b",
    re.IGNORECASE,
)

_ALSO_I = 0.5  # the weight of "I" in a query that refers to "you" too
NICKNAME = 0.9  # the closeness of a name and its nickname
_BEGINNING, _MIN_BEGINNING = 0.8, 3  # Mel, Melanie
_MIN_CLOSENESS = 0.5
_MAX_EDITS = 2
# English given names and their nicknames, except those that are the beginning of the name.
_NICKNAMES = """
abigail abby gail|albert bert|alexander sasha xander|alexandra sandra sasha|amanda mandy|andrew \
andy drew|anthony tony|
caroline carrie|catherine kate katie kitty kathy|charles charlie chuck|christine tina|christopher \
kit|cynthia cindy|
deborah debbie|dorothy dot dolly|edward eddie ned ted|eleanor ellie nell nora|elizabeth liz beth \
betty lizzie libby|
emily millie|eugene gene|evelyn evie|frances fran|francis frank|franklin frank|gabriel gabe|gerald \
jerry|
harold harry hal|helen nell|henry harry hank|isabella bella izzy|jacob jake|james jim jimmy \
jamie|jennifer jenny|
joanna jo|john jack johnny|jonathan johnny|joseph joe joey|josephine josie|judith judy|katherine \
kate katie kathy kitty|
kathleen kathy kate|lawrence larry|lillian lily|louis louie|madeline maddie|margaret maggie meg \
peggy greta rita|
melissa missy|michael mike mick|michelle shelly|nancy nan|nathaniel nate|nicholas nick \
nicky|nicole nicky|
patricia patty trish tricia|patrick paddy|peter pete|rebecca becky becca|richard rick dick \
ricky|robert bob bobby robbie|
ronald ronnie|rosemary rosie|samuel sammy|samantha sammy|sarah sally sadie|stephen steve|steven \
steve|susan sue susie|
teresa terry tess|theodore ted teddy|thomas tom tommy|victoria vicky tori|vincent vince|virginia \
ginny|
william bill billy liam|zachary zack
"""


def speaker_roles(text: str) -> dict[str, float]:
    """Return the speakers of a chat, in lower case, that a query refers to as "I" or "you", with a
    weight.

    A query that refers to both rather asks for what "you" said: "I" is in most questions.
    """
    asks_for_you = bool(_YOU.search(text) and _YOU.search(_NOT_YOU.sub(" ", text)))
    user = dict.fromkeys(_USER, _ALSO_I if asks_for_you else 1.0) if _I.search(text) else {}
    return user | dict.fromkeys(_ASSISTANT if asks_for_you else (), 1.0)


def is_personal(text: str) -> bool:
    """Return whether a query is about the one who asks, their people, or the one who is asked."""
    return bool(_US.search(text))


def is_general(text: str) -> bool:
    """Return whether a query has the form of a question that anybody could ask: "How do I …",
    "What is a …"."""
    return bool(_GENERAL.match(text))


def role_of(speaker: str) -> tuple[bool, bool]:
    """Return whether a speaker is the user of an assistant, and whether it is an assistant."""
    name = speaker.casefold()
    return name in _USER, name in _ASSISTANT


def proper_names(text: str, *, language: str = "english") -> frozenset[str]:
    """Return the tokens of words that look like names: capitalised, within a sentence or in the
    possessive."""
    if text.islower():
        return frozenset()
    words = {*_INNER_WORD.findall(text), *_POSSESSIVE.findall(text)}
    names = (word for word in words if word[0].isupper() and word[1:].islower())
    return frozenset(token for word in names for token in tokens(word, language=language))


def addressee(text: str, *, language: str = "english") -> str | None:
    """Return the token of the name that a text greets or thanks ("Hey Kate"), if there is one."""
    for match in _GREETING.finditer(text):
        word = match[1]
        if word[0].isupper() and word[1:].islower() and (found := tokens(word, language=language)):
            return found[0]
    return None


def closeness(name: str, other: str, *, language: str = "english") -> float:
    """Return how surely two names mean the same person, 0–1, by their tokens: nicknames,
    beginnings and typos."""
    if name == other:
        return 1.0
    groups = _nickname_groups(language)
    if groups.get(name, frozenset()) & groups.get(other, frozenset()):
        return NICKNAME
    shorter, longer = sorted((name, other), key=len)
    if len(shorter) >= _MIN_BEGINNING and longer.startswith(shorter):
        return _BEGINNING
    likeness = 1 - 2 * edits(name, other, _MAX_EDITS) / len(longer) if longer else 0.0
    return likeness if likeness >= _MIN_CLOSENESS else 0.0


def without_speakers(text: str, speakers: Collection[str], *, language: str = "english") -> str:
    """Remove the names of speakers from a query; return it unchanged if no keyword would remain.

    A name says whose memories the query is about. In an embedded query it pulls towards every text
    that contains the name.
    """
    roles = _USER | _ASSISTANT
    words = {
        part
        for name in speakers
        if name.casefold() not in roles
        for part in _NAME.findall(name.casefold())
    }
    if not words:
        return text
    # Stems are compared too: of other names an index has only the stem.
    stems = {token for word in words for token in tokens(word, language=language)}
    # Will, Rose and Mark are also words: if the query has capitals at all, a name starts with one.
    has_capitals = text != text.lower()

    def is_speaker(word: str) -> bool:
        if has_capitals and not word[0].isupper():
            return False
        if word.casefold() in words:
            return True
        word_stems = tokens(word, language=language)
        return bool(word_stems) and stems.issuperset(word_stems)

    rest = _NAME.sub(lambda match: "" if is_speaker(match.group(1)) else match.group(), text)
    if rest == text:
        return text
    rest = _BLANKS.sub("", rest).strip()
    return rest if tokens(rest, language=language) else text


@cache
def _nickname_groups(language: str) -> Mapping[str, frozenset[int]]:
    """Return the numbers of the groups that each name belongs to."""
    groups: dict[str, frozenset[int]] = {}
    for number, names in enumerate(_NICKNAMES.split("|")):
        for token in tokens(names.title(), language=language):
            groups[token] = groups.get(token, frozenset()) | {number}
    return groups


# --- times ---
# Dates in numbers, and English expressions.

_EPOCH = date(1970, 1, 1).toordinal()
_YEARS_BACK = 10
_MAX_SPANS = 40
_CENTURY_CHANGE = 70  # of two digits: earlier years lie in the 21st century
_MONTH_NAMES = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
)
_MONTHS = [name[:3] for name in _MONTH_NAMES.split("|")]
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# The first month and the number of months. A winter belongs to two years.
_SEASONS = {
    "spring": [(3, 3)], "summer": [(6, 3)], "autumn": [(9, 3)], "fall": [(9, 3)],
    "winter": [(1, 2), (12, 3)], "q1": [(1, 3)], "q2": [(4, 3)], "q3": [(7, 3)], "q4": [(10, 3)],
}  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple of": 2, "few": 3,
    "several": 4,
}  # fmt: skip
_UNITS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_NEAR_DAYS = {
    "day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0,
    "this morning": 0, "day after tomorrow": 2, "tomorrow": 1,
}  # fmt: skip

_MONTH = rf"(?P<month>{_MONTH_NAMES}|{'|'.join(_MONTHS)}|sept)\b\.?"
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})\b"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_FOUR_DIGITS = r"(?P<year>(?:19|20)\d\d)\b"
_YEAR = rf"(?:,?\s+(?:of\s+)?{_FOUR_DIGITS})?"
# In order: an expression within one that an earlier pattern has matched is ignored ("May 2023" in
# "25 May 2023").
_DATES = (
    re.compile(
        r"\b(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?!\d)"
    ),
    # A version such as 1.2.24 is not a date.
    re.compile(
        r"(?<![\w./-])(?<!version )(?P<one>\d{1,2})(?P<sign>[-/.])(?P<other>\d{1,2})(?P=sign)(?P"
        r"<year>(?:19|20)?\d\d)\b(?![./-]\d)"
    ),
    re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}"),
    re.compile(rf"\b{_MONTH}\s+{_DAY}\b(?!:){_YEAR}"),
    re.compile(rf"\b{_MONTH},?\s+{_FOUR_DIGITS}"),
    re.compile(rf"\b{_SEASON},?\s+(?:of\s+)?{_FOUR_DIGITS}"),
    # Several months and seasons are also words or names (may, june, fall): without a number they
    # count after a word of time only.
    re.compile(
        r"\b(?P<which>in|of|since|during|by|until|last|this|early|late|mid|through|from|and|"
        rf"to)[\s-]+(?:the\s+)?(?:{_MONTH}|{_SEASON})"
    ),
    re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)\b(?!-)"),
    re.compile(rf"\b(?:in|of|since|during|by|until|year)\s+{_FOUR_DIGITS}(?!-\d)"),
)
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_AWAY = re.compile(rf"\b{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+(?P<which>ago|from now)\b")
_PERIOD = re.compile(
    rf"\b(?P<which>last|past|previous|this|next|coming)\s+(?:{_COUNT}\s+)?(?P<unit>weekend|day|"
    r"week|month|year)s?\b"
)
_WEEKDAY = re.compile(
    r"\b(?P<which>last|past|previous|this|next|coming|on|since|until|"
    rf"by)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
    # "on Friday, 3 May": the date says which one.
    rf"(?!,?\s+(?:the\s+)?(?:\d|{'|'.join(_MONTHS)}))"
)
_NEAR_DAY = re.compile(rf"\b(?:{'|'.join(_NEAR_DAYS)})\b")
_HINT = re.compile(r"[a-z]+|\d")  # every expression has a digit or one of these words
_UNIT_NAMES = ("weekend", *_UNITS)
_HINTS = frozenset("0123456789").union(
    _MONTH_NAMES.split("|"), _MONTHS, ["sept"], _WEEKDAYS, _SEASONS, _UNIT_NAMES,
    [f"{unit}s" for unit in _UNIT_NAMES], *(words.split() for words in _NEAR_DAYS),
)  # fmt: skip
_PAST, _FUTURE = ("last", "past", "previous"), ("next", "coming")


def time_spans(text: str, at: str) -> tuple[Span, ...]:
    """Return the times that a query names ("on 25 May 2023", "16.01.2024", "in June", "two weeks
    ago"), each once, in order.

    `at` is the time of the query. A day or a month without a year gives a span in each of the last
    ten years. A date such as 3/4/2024 gives the span of each order of day and month.
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
    # The latest that is over, or that has begun.
    if (which := parts.get("which")) in ("last", "this"):
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
    """Return the first month, the number of months, and the day. Numbers with dots have the day
    first, others either order."""
    if (one := parts.get("one")) and (other := parts.get("other")):
        day_first, month_first = (int(other), 1, int(one)), (int(one), 1, int(other))
        return (
            [day_first]
            if parts["sign"] == "." and int(other) <= len(_MONTHS)
            else [month_first, day_first]
        )
    if season := parts.get("season"):
        return [(month, months, None) for month, months in _SEASONS[season]]
    if (month := parts.get("month")) is None:
        return [(1, len(_MONTHS), None)]
    day = parts.get("day")
    return [
        (
            int(month) if month.isdigit() else 1 + _MONTHS.index(month[:3]),
            1,
            int(day) if day else None,
        )
    ]


def _span(year: int, month: int, months: int, day: int | None) -> Span:
    first, last = date(year, month, day or 1), month + months - 2
    end_year, end_month = year + last // 12, last % 12 + 1
    return _day_number(first), _day_number(
        first if day else date(end_year, end_month, monthrange(end_year, end_month)[1])
    )


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
        first, last = (
            _weekend(match["which"], weekday) if match["unit"] == "weekend" else _period(match)
        )
        yield day + first, day + last
    for match in _WEEKDAY.finditer(text):
        wanted = _WEEKDAYS.index(match["weekday"])
        before, after = (weekday - wanted - 1) % 7 + 1, (wanted - weekday - 1) % 7 + 1
        # Without last or next: the days before and after, or today and a week ago.
        days = (
            {-before}
            if match["which"] in _PAST
            else {after}
            if match["which"] in _FUTURE
            else {-before, before % 7 and after}
        )
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
    return (
        (saturday if saturday > 0 else saturday + 7.0, saturday + 8.0)
        if which in _FUTURE
        else (saturday, saturday + 1.0)
    )


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _day_number(day: date) -> float:
    return float(day.toordinal() - _EPOCH)
