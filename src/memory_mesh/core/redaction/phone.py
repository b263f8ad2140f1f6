"""Phone numbers: international ones by their `+`, national ones by separators and libphonenumber, any by a cue word.

A bare run of digits is never enough. Dates, times, versions and prices are not phone numbers, even near a cue word.
"""

import re
from collections.abc import Iterator

from memory_mesh.core.redaction.pattern import DASHES, DIGIT, SPACES, Page, Pattern, Span, joined, listed
from memory_mesh.core.redaction.phone_words import REACH, Evidence, evidence_before, names_phone, without_words
from memory_mesh.core.text import LazyRegex

_MIN_DIGITS, _MAX_DIGITS, _MAX_GROUPS = 7, 15, 8
_MIN_FAR_DIGITS = 9  # "ring size 52 53 54 55"
_SEP = rf"[{SPACES}{DASHES}./()]"
# A run of digit groups, consumed whole so that the time is linear.
_RUN = LazyRegex(rf"{DIGIT}(?:{_SEP}{{0,3}}+{DIGIT})*+")
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
_NANP, _AREA, _TRUNK = map(LazyRegex, (_NANP_FORM, _AREA_FORM, _TRUNK_FORM))
_FORM = LazyRegex(rf"\+|00|{_NANP_FORM}|{_AREA_FORM}|{_TRUNK_FORM}")
_TIGHT = LazyRegex(rf"[0-9{DASHES}./()]{{{_MIN_DIGITS + 1}}}")
_REGIONS = listed("GB DE FR IT AU NZ CH AT BE NL SE IE ZA JP IN TR BR KR PT PL TH PH")
_WITHOUT_TRUNK = listed("US IT ES IN PL PT GR MX CO CZ SK CL")  # whose numbers start without a 0

_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:1[5-9]|20)\d\d"
_DATE = LazyRegex(
    rf"(?:{_YEAR}[-./ ]{_MONTH}[-./ ]{_DAY}|{_DAY}[-./ ]{_DAY}[-./ ]{_YEAR}|{_YEAR}[{SPACES}{DASHES}/]{{1,3}}{_YEAR})(?!\d)"
)
_AMOUNT_AFTER = LazyRegex(
    r"(?i)\s?(?:[$€£¥₹%]|(?:usd|eur|gbp|chf|bytes|kb|mb|gb|ns|us|µs|ms|sec|seconds|rows|tokens|years|people|users|times|won|yen|baht|rupees|rupien|euros?|dollars?)(?![^\W_]))"
)


def find_phones(page: Page) -> Iterator[Span]:
    """Judge each run of digit groups once, from left to right."""
    for run in _RUN.finditer(page.text):
        start, end = run.span()
        if end - start >= _MIN_DIGITS and page.shape.count(b"0", start, end) >= _MIN_DIGITS:
            yield from _phones_in(page, run)


def _phones_in(page: Page, run: re.Match[str]) -> Iterator[Span]:
    text = page.text
    head = text[max(0, run.start() - 2) : run.start()]
    opening = len(head) - len(head.rstrip("+("))
    groups = [found.span() for found in _GROUP.finditer(text, run.start() - opening, run.end())]
    at, done = 0, 0
    other = evidence_before(page, run.start()) == Evidence.OTHER
    # From here on no words stand before a group, and up to there others follow it: only a written form makes it a phone number.
    alone, last_alone = run.start() + (1 if without_words(page, run.start()) else REACH), len(groups) - _MAX_GROUPS - 1
    while at < len(groups):
        start = groups[at][0]
        if other and text[start] not in "+(":
            at += 1
            continue
        date = _DATE.match(text, start) if start >= done else None
        formless = at <= last_alone and start >= alone and not _has_form(text, start)
        last = _phone_from(page, groups, at) if start >= done and not date and not formless else None
        if last is not None:
            extension = _EXTENSION.match(text, groups[last][1])
            opened = _opened(text, start, groups[last][1])
            yield start - opened, extension.end() if extension else groups[last][1]
            at = last
        done = date.end() if date else done
        at += 1


def _has_form(text: str, start: int) -> bool:
    """Return whether a written form may start in the middle of a run of groups. After a group, it has no spaces."""
    follows = text[start] != "(" and text[start - 1] in _GAPS and text[start - 2].isdigit()
    return not (follows and not _TIGHT.match(text, start)) and _FORM.match(text, start) is not None


def _phone_from(page: Page, groups: list[Span], first: int) -> int | None:
    """Return the last group of a number that starts with group `first`; the longest match wins."""
    start, digits, ends = groups[first][0], 0, []
    if not _starts(page.text, start):
        return None
    for at in range(first, min(first + _MAX_GROUPS, len(groups))):
        digits += groups[at][1] - groups[at][0] - (page.text[groups[at][0]] in "+(")
        if _MIN_DIGITS <= digits <= _MAX_DIGITS:
            ends.append(at)
    evidence = evidence_before(page, start) if ends else Evidence.NONE
    if evidence == Evidence.NONE and page.text[start] not in "+(0" and not _NANP.match(page.text, start):
        ends = [at for at in ends if at == len(groups) - 1]  # only a word after it can still make it a phone number
    return next((at for at in reversed(ends) if _is_phone(page, start, groups[at][1], evidence)), None)


def _starts(text: str, start: int) -> bool:
    head = text[max(0, start - 2) : start]
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
        return page.once(_international, number)
    if evidence == Evidence.OTHER or _AMOUNT_AFTER.match(text, end):
        return False
    digits = sum(map(str.isdigit, number))
    likely = evidence == Evidence.LIKELY or (evidence == Evidence.FAR and digits >= _MIN_FAR_DIGITS)
    return evidence == Evidence.CLEAR or (likely and _likely_form(page, start, end)) or _is_requested(page, start, end, evidence)


def _is_requested(page: Page, start: int, end: int, evidence: Evidence) -> bool:
    """Accept a number that someone is called on, that a word follows, or in a written form that libphonenumber knows."""
    text = page.text
    if _formed(page, start, end) or (evidence >= Evidence.FAR and _REQUEST.search(text, max(0, start - REACH), start)):
        return True
    after = _WORD_AFTER.match(text, end)
    if after is None or not names_phone(after[1]):
        return False
    return _separated(text[start:end]) or "(" in after[0] or not after[0][0].isspace()


def _likely_form(page: Page, start: int, end: int) -> bool:
    """Accept, near a likely word, separators that do not group thousands, or a trunk 0 and eight to ten digits."""
    text, number = page.text, page.text[start:end]
    pointed = _POINTED.search(text, max(0, start - 12), start) is not None
    if not _separated(number):
        known = pointed and len(number) >= 9 and page.once(_region, number) is not None
        return known or _WITH_TRUNK.fullmatch(number) is not None
    if _QUAD.fullmatch(number) or _DECIMALS.fullmatch(number):
        return False
    return not _THOUSANDS.fullmatch(number) or (pointed and _isolated(text, start, end))


def _opened(text: str, start: int, end: int) -> bool:
    """Return whether a bracket before the number is closed inside it, as in `(+33) 6 12 34 56 78`."""
    return text[max(0, start - 1) : start] == "(" and text.count(")", start, end) > text.count("(", start, end)


def _formed(page: Page, start: int, end: int) -> bool:
    """Accept a number without a cue word in one of the written forms, if libphonenumber knows it."""
    number = page.text[start:end]
    if not _separated(number) or (SPACES in number and not _isolated(page.text, start, end)):
        return False
    known = _in_form(number) and page.once(_region, number) is not None
    return known or (number.startswith("00") and page.once(_international, number))


def _ends(text: str, end: int) -> bool:
    tail = text[end : end + 2]
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
    return 9 <= sum(map(str.isdigit, number)) <= 11 and any(form.fullmatch(number) for form in (_NANP, _AREA, _TRUNK))


def _region(number: str) -> str | None:
    """Return the first region in which libphonenumber considers the number valid."""
    from phonenumbers import NumberParseException, is_valid_number, parse  # takes 25 ms, and few texts have a candidate

    for region in ("US",) if _NANP.fullmatch(number) else _REGIONS if number[0] in "0(" else _WITHOUT_TRUNK:
        try:
            if is_valid_number(parse(number, region)):
                return region
        except NumberParseException:
            continue
    return None


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
    abroad = number.startswith(("+", "00")) and _international(number)
    region = _region(number) if not abroad and _in_form(number) else None
    if not abroad and region is None:
        return "".join(str(int(char)) for char in number if char.isdigit())
    return format_number(parse("+" + number.lstrip("+0") if abroad else number, region), PhoneNumberFormat.E164)


PATTERNS = (Pattern("phone", "PHONE", find_phones, digits=_MIN_DIGITS, normal=_e164),)
