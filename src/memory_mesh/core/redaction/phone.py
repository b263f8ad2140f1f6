"""Phone numbers: international ones by their `+`, national ones by separators and libphonenumber, any by a cue word.

A bare run of digits is never enough. Dates, times, versions and prices are not phone numbers, even near a cue word.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Any

from memory_mesh.core.redaction.pattern import APART, DASHES, DIGIT, SPACES, Page, Pattern, Span, joined, listed
from memory_mesh.core.redaction.phone_words import REACH, Evidence, evidence_before, names_phone, without_words
from memory_mesh.core.text import LazyRegex

_MIN_DIGITS, _MAX_DIGITS, _MAX_GROUPS = 7, 15, 8
_MIN_FAR_DIGITS = 9  # "ring size 52 53 54 55"
_SEP = rf"[{SPACES}{DASHES}./()]"
# A run of enough digits in groups, consumed whole so that the time is linear.
_RUN = LazyRegex(rf"{DIGIT}(?<!{DIGIT}{DIGIT})(?:{_SEP}{{0,3}}+{DIGIT}){{{_MIN_DIGITS - 1},}}+")
_GROUP = LazyRegex(rf"(?:\+\(?|\()?{DIGIT}+")
_EXTENSION = LazyRegex(r"[ ,;]{0,2}(?:x|ext\.?|extension|#)[ .:]{0,2}\d{1,6}(?!\w)", re.IGNORECASE)

_REQUEST = LazyRegex(
    r"(?<![^\W_])(?:call|ring|phone|text|reach|dial|contact|message)(?:ed|ing|s)?\s(?:my\s\w{1,12}|\w{1,20})\s(?:on|at|under)\s{1,3}$",
    re.IGNORECASE,
)
_WORD_AFTER = LazyRegex(rf"[\s,({DASHES}]{{1,3}}([^\W\d_]{{2,16}})")
_POINTED = LazyRegex(r"(?:(?<![^\W_])(?:at|on|to|under|number|is|auf|unter|au|al|på)|[:=])\s{0,3}$", re.IGNORECASE)
_THOUSANDS = LazyRegex(rf"\d{{1,3}}(?:[{SPACES}.]\d{{3}}){{2,4}}")
_QUAD = LazyRegex(r"(?!0)\d{1,3}(?:\.(?:0|[1-9]\d{0,2})){3}")  # an IP address or a version
_DECIMALS = LazyRegex(r"\d{1,4}\.\d{1,4}(?:[ -]{1,3}\d{1,4}\.\d{1,4}){1,6}")
_WITH_TRUNK = LazyRegex(r"0[1-9]\d{7,9}")
_GAPS = tuple(" -.")

# Written forms that need no cue word, if libphonenumber accepts the number in one of the regions.
_NANP_FORM = (
    rf"(?:(?:\+|00)?1[{SPACES}{DASHES}.]{{0,2}})?(?:\([2-9]\d\d\) ?|[2-9]\d\d([{DASHES}.]))[2-9]\d\d(?(1)\1|[{DASHES}. ])\d{{4}}"
)
_AREA_FORM = rf"\((?!(?:19|20)\d\d\))0?\d{{1,4}}\)[{SPACES}{DASHES}]?\d{{2,8}}(?:[{SPACES}{DASHES}.]\d{{2,5}}){{0,4}}"
_TRUNK_FORM = rf"0[1-9]\d{{0,3}}(?:[{SPACES}{DASHES}./]\d{{2,8}}){{1,5}}"
_NANP, _NATIONAL = LazyRegex(_NANP_FORM), LazyRegex(rf"{_NANP_FORM}|{_AREA_FORM}|{_TRUNK_FORM}")
_FORM = LazyRegex(rf"\+|00|{_NATIONAL.source}")
_TIGHT = LazyRegex(rf"[0-9{DASHES}./()]{{{_MIN_DIGITS + 1}}}")
_REGIONS = listed("GB DE FR IT AU NZ CH AT BE NL SE IE ZA JP IN TR BR KR PT PL TH PH")
_POSSIBLE: dict[tuple[str, int], bool] = {}  # whether numbers with the code of a country may have so many digits
_KINDS = listed("fixed_line mobile toll_free premium_rate shared_cost personal_number voip pager uan voicemail")  # of numbers
_WITHOUT_TRUNK = listed("US IT ES IN PL PT GR MX CO CZ SK CL")  # whose numbers start without a 0

_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:1[5-9]|20)\d\d"
_DATE_FORM = (
    rf"(?:{_YEAR}[-./ ]{_MONTH}[-./ ]{_DAY}|{_DAY}[-./ ]{_DAY}[-./ ]{_YEAR}|{_YEAR}[{SPACES}{DASHES}/]{{1,3}}{_YEAR})(?!\d)"
)
_DATE, _DATE_OR_FORM = LazyRegex(_DATE_FORM), LazyRegex(rf"{_DATE_FORM}|(?<!\d[-./])(?:{_FORM.source})")
_AMOUNT_AFTER = LazyRegex(
    r"(?i)\s?(?:[$€£¥₹%]|(?:usd|eur|gbp|chf|bytes|kb|mb|gb|ns|us|µs|ms|sec|seconds|rows|tokens|years|people|users|times|won|yen|baht|rupees|rupien|euros?|dollars?)(?![^\W_]))"
)


def find_phones(page: Page) -> Iterator[Span]:
    """Judge each run of digit groups once, from left to right."""
    for run in _RUN.finditer(page.text):
        start, end = run.span()
        before = page.text[start - 1 : start]
        if before == "(" or not page.text[start:end].isdigit():
            yield from _phones_in(page, run)
        elif end - start <= _MAX_DIGITS and _is_group(page, start := start - (before == "+"), end):
            yield _whole(page.text, start, end)


def _is_group(page: Page, start: int, end: int) -> bool:
    """Return whether a single group of digits is a phone number."""
    evidence = Evidence.NONE if page.text[start] == "+" else evidence_before(page, start)
    if evidence <= Evidence.NONE and page.text[start] != "+" and _phone_word_after(page, end) is None:
        return False
    return _starts(page.text, start) and _is_phone(page, start, end, evidence)


def _whole(text: str, start: int, end: int) -> Span:
    """Return the span of a number with its extension and with a bracket that is closed inside it."""
    extension = _EXTENSION.match(text, end)
    return start - _opened(text, start, end), extension.end() if extension else end


def _phone_word_after(page: Page, end: int) -> re.Match[str] | None:
    after = _WORD_AFTER.match(page.text, end)
    return after if after and page.once(names_phone, after[1]) else None


def _phones_in(page: Page, run: re.Match[str]) -> Iterator[Span]:
    text = page.text
    head = text[max(0, run.start() - 2) : run.start()]
    opening = len(head) - len(head.rstrip("+("))
    groups = [found.span() for found in _GROUP.finditer(text, run.start() - opening, run.end())]
    at, done = 0, 0
    other = evidence_before(page, run.start()) == Evidence.OTHER
    # From here on no words stand before a group, and up to there none after it: only a written form makes it a phone number.
    alone = run.start() + (1 if without_words(page, run.start()) else REACH)
    last_alone = len(groups) - 1 - (_MAX_GROUPS if _phone_word_after(page, run.end()) else 0)
    while at < len(groups):
        start = groups[at][0]
        in_middle = at <= last_alone and start >= alone
        following = min(_next(text, groups, at), last_alone + 1) if in_middle else at
        if following > at or (other and text[start] not in "+("):
            at = max(following, at + 1)
            continue
        date = _DATE.match(text, start) if start >= done else None
        formless = in_middle and not _has_form(text, start)
        last = _phone_from(page, groups, at) if start >= done and not date and not formless else None
        if last is not None:
            yield _whole(text, start, groups[last][1])
            at = last
        done = date.end() if date else done
        at += 1


def _next(text: str, groups: list[Span], at: int) -> int:
    """Return the first group from this one on with which a date or a written form may start."""
    found = _DATE_OR_FORM.search(text, groups[at][0], groups[-1][1])
    place = found.start() if found else groups[-1][1]
    return at if place == groups[at][0] else bisect_left(groups, (place,), at)


def _has_form(text: str, start: int) -> bool:
    """Return whether a written form may start in the middle of a run of groups. After a group, it has no spaces."""
    follows = text[start] != "(" and text[start - 1] in _GAPS and text[start - 2].isdigit()
    return not (follows and not _TIGHT.match(text, start)) and _FORM.match(text, start) is not None


def _phone_from(page: Page, groups: list[Span], first: int) -> int | None:
    """Return the last group of a number that starts with group `first`; the longest match wins."""
    start, digits, ends = groups[first][0], 0, list[int]()
    if not _starts(page.text, start):
        return None
    for at in range(first, min(first + _MAX_GROUPS, len(groups))):
        digits += groups[at][1] - groups[at][0] - (page.text[groups[at][0]] in "+(")
        if digits > _MAX_DIGITS:
            break
        if digits >= _MIN_DIGITS:
            ends.append(at)
    evidence = evidence_before(page, start) if ends else Evidence.NONE
    if evidence == Evidence.NONE and page.text[start] not in "+(0" and not _NANP.match(page.text, start):
        ends = [at for at in ends if at == len(groups) - 1]  # only a word after it can still make it a phone number
    return next((at for at in reversed(ends) if _is_phone(page, start, groups[at][1], evidence)), None)


def _starts(text: str, start: int) -> bool:
    head = text[max(0, start - 2) : start]
    if head[-1:] in APART:
        return True
    if joined(head[-1:]) or head[-1:] in ("_", "+", "@", "%"):
        return False
    if head[-1:] in (":", "."):
        return not head[0].isdigit()
    return not (len(head) == 2 and head[1] in "-/" and joined(head[0]) and text[start] != "+")


def _is_phone(page: Page, start: int, end: int, evidence: Evidence) -> bool:
    text, number = page.text, page.text[start:end]
    if not _ends(text, end) or number.count("(") + _opened(text, start, end) != number.count(")"):
        return False
    if number[0] == "+":
        return page.once(_international, number, quicker=_is_possible)
    if evidence == Evidence.OTHER or _AMOUNT_AFTER.match(text, end):
        return False
    likely = evidence == Evidence.LIKELY or (evidence == Evidence.FAR and sum(map(str.isdigit, number)) >= _MIN_FAR_DIGITS)
    return evidence == Evidence.CLEAR or (likely and _likely_form(page, start, end)) or _is_requested(page, start, end, evidence)


def _is_requested(page: Page, start: int, end: int, evidence: Evidence) -> bool:
    """Accept a number that someone is called on, that a word follows, or in a written form that libphonenumber knows."""
    text = page.text
    if _formed(page, start, end) or (evidence >= Evidence.FAR and _REQUEST.search(text, max(0, start - REACH), start)):
        return True
    after = _phone_word_after(page, end)
    if after is None:
        return False
    return _separated(text[start:end]) or "(" in after[0] or not after[0][0].isspace()


def _likely_form(page: Page, start: int, end: int) -> bool:
    """Accept, near a likely word, separators that do not group thousands, or a trunk 0 and eight to ten digits."""
    text, number = page.text, page.text[start:end]
    pointed = _POINTED.search(text, max(0, start - 12), start) is not None
    if not _separated(number):
        known = pointed and len(number) >= 9 and _is_known(page, number)
        return known or _WITH_TRUNK.fullmatch(number) is not None
    if _QUAD.fullmatch(number) or _DECIMALS.fullmatch(number):
        return False
    return not _THOUSANDS.fullmatch(number) or (pointed and _isolated(text, start, end))


def _opened(text: str, start: int, end: int) -> bool:
    """Return whether a bracket before the number is closed inside it, as in `(+33) 6 12 34 56 78`."""
    return text[start - 1 : start] == "(" and text.count(")", start, end) > text.count("(", start, end)


def _formed(page: Page, start: int, end: int) -> bool:
    """Accept a number without a cue word in one of the written forms, if libphonenumber knows it."""
    number = page.text[start:end]
    if not _separated(number) or (SPACES in number and not _isolated(page.text, start, end)):
        return False
    known = _in_form(number) and _is_known(page, number)
    return known or (number.startswith("00") and page.once(_international, number, quicker=_is_possible))


def _ends(text: str, end: int) -> bool:
    tail = text[end : end + 2]
    if tail[:1] in APART:
        return True
    if joined(tail[:1]) or tail[:1] == "_":
        return _EXTENSION.match(text, end) is not None
    return not (len(tail) == 2 and tail[0] in ".:,/+-" and tail[1].isdigit())


def _isolated(text: str, start: int, end: int) -> bool:
    """Return whether no further digit groups stand before or after: part of a longer number is not a phone number."""
    head, tail = text[max(0, start - 2) : start], text[end : end + 2]
    follows = head[:1].isdigit() and head[1:] in _GAPS and text[start] != "("
    return not (follows or (tail[1:].isdigit() and tail[0] in _GAPS))


def _separated(number: str) -> bool:
    return not number.strip("()").isdigit()


def _in_form(number: str) -> bool:
    return _NATIONAL.fullmatch(number) is not None and 9 <= sum(map(str.isdigit, number)) <= 11


def _is_known(page: Page, number: str) -> bool:
    return page.once(_region, number, quicker=lambda value: next(_likely_regions(value), None)) is not None


def _likely_regions(number: str) -> Iterator[str]:
    """Yield the regions whose patterns in libphonenumber fit the number. To parse and check it for all takes far longer."""
    digits = "".join(filter(str.isdigit, number))
    regions = ("US",) if _NANP.fullmatch(number) else _REGIONS if number[0] in "0(" else _WITHOUT_TRUNK
    return (region for region in regions if _of_region(region).fullmatch(digits))


@cache
def _of_region(region: str) -> re.Pattern[str]:
    """Match a call abroad, or a number of the region, perhaps with the code of the country and prefixes before it."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    own: Any = PhoneMetadata.metadata_for_region(region)
    several = map(PhoneMetadata.metadata_for_region, COUNTRY_CODE_TO_REGION_CODE[own.country_code])
    kinds = (getattr(one, kind) for one in several for kind in _KINDS)
    numbers = "|".join({kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern})
    # A prefix that is replaced by other digits may be followed by anything.
    number = r"\d+" if own.national_prefix_transform_rule else f"(?:{numbers})"
    prefix = f"(?:{own.country_code})?(?:{own.national_prefix_for_parsing or ''}){{0,2}}"
    return re.compile(rf"(?:{own.international_prefix})\d+|{prefix}{number}")


def _region(number: str) -> str | None:
    """Return the first region in which libphonenumber considers the number valid."""
    from phonenumbers import NumberParseException, is_valid_number, parse  # takes 25 ms, and few texts have a candidate

    for region in _likely_regions(number):
        try:
            if is_valid_number(parse(number, region)):
                return region
        except NumberParseException:
            continue
    return None


def _is_possible(number: str) -> bool:
    """Return the same as `_international` sooner: without a national prefix, country and length decide."""
    digits = "".join(filter(str.isdigit, number.lstrip("+0")))
    code = next((digits[:length] for length in (1, 2, 3) if _prefix(digits[:length])), "")
    prefix = _prefix(code)
    found = prefix.match(digits, len(code)) if prefix else None
    if prefix is None or (found and found.end() > len(code)):
        return prefix is not None and _international(number)
    if (code, len(digits)) not in _POSSIBLE:
        _POSSIBLE[code, len(digits)] = _international(number)
    return _POSSIBLE[code, len(digits)]


@cache
def _prefix(code: str) -> re.Pattern[str] | None:
    """Match the national prefix, which some people write after the code of a country. None: there is no such code."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    regions = COUNTRY_CODE_TO_REGION_CODE.get(int(code)) if code[:1] > "0" else None
    country = PhoneMetadata.metadata_for_region_or_calling_code(int(code), regions[0]) if regions else None
    return re.compile(country.national_prefix_for_parsing or "") if country else None


def _international(number: str) -> bool:
    from phonenumbers import NumberParseException, is_possible_number, parse

    try:
        return is_possible_number(parse("+" + number.lstrip("+0"), None))
    except NumberParseException:
        return False


def _e164(value: str) -> str:
    """Return one spelling for each number: E.164 where libphonenumber knows it, else its digits."""
    from phonenumbers import PhoneNumberFormat, format_number, parse

    extension = _EXTENSION.search(value)
    number = value[: extension.start()] if extension else value
    abroad = number.startswith(("+", "00")) and _is_possible(number)
    region = _region(number) if not abroad and _in_form(number) else None
    if not abroad and region is None:
        return "".join(str(int(char)) for char in number if char.isdigit())
    return format_number(parse("+" + number.lstrip("+0") if abroad else number, region), PhoneNumberFormat.E164)


PATTERNS = (Pattern("phone", "PHONE", find_phones, digits=_MIN_DIGITS, normal=_e164),)
