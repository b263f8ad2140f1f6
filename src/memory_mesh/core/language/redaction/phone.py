"""Find phone numbers: by their `+`, by separators and libphonenumber, or by a cue word.

A bare run of digits is never enough. Dates, times, versions and prices are not phone numbers, even
near a cue word.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from typing import Any

from memory_mesh.core.language.packaged import Expressions, WordLists, WordSets
from memory_mesh.core.language.redaction.pattern import (
    APART,
    SPACES,
    Page,
    Pattern,
    Span,
    joined,
)

_RE, _WORDS, _LISTS = Expressions(__name__), WordSets(__name__), WordLists(__name__)

# --- cue words ---
# They say that a number is a phone number, perhaps one, or something else, in the languages of the
# larger countries.

REACH = 64


class Evidence(IntEnum):
    """What the words before a number say."""

    OTHER = 0  # an order, an invoice, a part …
    NONE = 1
    FAR = 2  # a word about calling, and other words between
    LIKELY = 3  # a word about calling, and nothing but small words after it
    CLEAR = 4  # the same with a word for phone numbers


def evidence_before(page: Page, start: int) -> Evidence:
    """Return what the words before a number say. The nearest word that says something decides."""
    before = page.zeroed[max(0, start - REACH) : start]
    if _RE.zip.match(page.text, start) and _RE.state_before.search(before):
        return Evidence.OTHER
    return page.once(_evidence, before)


def _evidence(before: str) -> Evidence:
    if _RE.sign_before.search(before, max(0, len(before) - 8)):
        return Evidence.OTHER
    if not _has_words(before):
        return Evidence.NONE
    east = _last_east(before)
    if east is not None:
        return east
    before = _RE.camel_case.sub(" ", before)
    words = [(found[0].casefold(), found.end()) for found in _RE.word.finditer(before)][::-1]
    return Evidence.OTHER if _names_thing(before, words, _WORDS.things) else _nearest(before, words)


def names_goods(page: Page, start: int) -> bool:
    """Return whether the word before a number says that it is one of an order, a part or another
    thing in trade."""
    return page.once(_is_goods, page.zeroed[max(0, start - REACH) : start])


def _is_goods(before: str) -> bool:
    words = [(found[0].casefold(), found.end()) for found in _RE.word.finditer(before)][::-1]
    return _names_thing(before, words, _WORDS.goods)


def without_words(page: Page, start: int) -> bool:
    """Return whether no words stand before a number."""
    return not _has_words(page.unmasked[max(0, start - REACH) : start])


def _has_words(text: str) -> bool:
    return text.swapcase() != text if text.isascii() else _RE.word.search(text) is not None


def names_phone(word: str) -> bool:
    """Return whether a word is one for phone numbers, or for a place with a phone."""
    low = word.casefold()
    return low in _WORDS.names_phone or low.startswith(_LISTS.clear_starts)


def _last_east(before: str) -> Evidence | None:
    """Return what the last word of a script without spaces says, if it stands right before the
    number."""
    tail = _RE.east_script.search(before)
    if tail is None:
        return None
    lists = (
        (_WORDS.east_clear, Evidence.CLEAR),
        (_WORDS.east_likely, Evidence.LIKELY),
        (_WORDS.east_other, Evidence.OTHER),
    )
    matches = [
        (tail[0].rfind(word) + len(word), len(word), evidence)
        for words, evidence in lists
        for word in words
        if word in tail[0]
    ]
    generic = Evidence.LIKELY if any(word in tail[0] for word in _WORDS.east_number) else None
    return max(matches)[2] if matches else generic


def _names_thing(before: str, words: list[tuple[str, int]], things: frozenset[str]) -> bool:
    """Return whether the nearest word is one for something else with a number, such as an order."""
    for word, end in words:
        if word in things or word.startswith(_LISTS.thing_starts) or _RE.compound.fullmatch(word):
            return _RE.break_.search(before, end) is None
        if word not in _WORDS.beside_things:
            return False
    return False


def _nearest(before: str, words: list[tuple[str, int]]) -> Evidence:
    """Return what the nearest word about phones says; only small words may stand between a clear
    one and the number."""
    adjacent, numbered, evidence = True, False, Evidence.NONE
    for word, end in words:
        if word in _WORDS.clear or word.startswith(_LISTS.clear_starts):
            return Evidence.CLEAR if adjacent else max(evidence, Evidence.FAR)
        pointed = adjacent and (numbered or _RE.points.search(before, end) is not None)
        if pointed and (word in _WORDS.mobile or (numbered and word in _WORDS.possessive)):
            return Evidence.CLEAR
        if pointed and word in _WORDS.place and (numbered or _RE.signs.search(before, end)):
            return Evidence.CLEAR  # but "the office is at 17031 Main St"
        if word in _WORDS.mobile or word in _WORDS.likely:
            evidence = max(evidence, Evidence.LIKELY if adjacent else Evidence.FAR)
        numbered = numbered or word in _WORDS.number
        adjacent = adjacent and word in _WORDS.between
    return evidence


# --- numbers ---

_MIN_DIGITS, _MAX_DIGITS, _MAX_GROUPS = 7, 15, 8
_MIN_FAR_DIGITS = 9  # "ring size 52 53 54 55"
_GAPS = tuple(" -.")

# Whether numbers with the code of a country may have so many digits.
_POSSIBLE: dict[tuple[str, int], bool] = {}


def find_phones(page: Page) -> Iterator[Span]:
    """Judge each run of digit groups once, from left to right."""
    for run in _RE.run.finditer(page.text):
        start, end = run.span()
        before = page.text[start - 1 : start]
        if before == "(" or not page.text[start:end].isdigit():
            yield from _phones_in(page, run)
        elif end - start <= _MAX_DIGITS and _is_group(page, start := start - (before == "+"), end):
            yield _whole(page.text, start, end)


def _is_group(page: Page, start: int, end: int) -> bool:
    """Return whether a single group of digits is a phone number."""
    evidence = Evidence.NONE if page.text[start] == "+" else evidence_before(page, start)
    if (
        evidence <= Evidence.NONE
        and page.text[start] != "+"
        and _phone_word_after(page, end) is None
    ):
        return False
    return _starts(page.text, start) and _is_phone(page, start, end, evidence)


def _whole(text: str, start: int, end: int) -> Span:
    """Return the span of a number with its extension and with a bracket that is closed inside
    it."""
    extension = _RE.extension.match(text, end)
    return start - _opened(text, start, end), extension.end() if extension else end


def _phone_word_after(page: Page, end: int) -> re.Match[str] | None:
    after = _RE.word_after.match(page.text, end)
    return after if after and page.once(names_phone, after[1]) else None


def _phones_in(page: Page, run: re.Match[str]) -> Iterator[Span]:
    text = page.text
    head = text[max(0, run.start() - 2) : run.start()]
    opening = len(head) - len(head.rstrip("+("))
    groups = [found.span() for found in _RE.group.finditer(text, run.start() - opening, run.end())]
    at, done = 0, 0
    other = evidence_before(page, run.start()) == Evidence.OTHER
    # From here on no words stand before a group, and up to there none after it: only a written form
    # makes it a phone number.
    alone = run.start() + (1 if without_words(page, run.start()) else REACH)
    last_alone = len(groups) - 1 - (_MAX_GROUPS if _phone_word_after(page, run.end()) else 0)
    while at < len(groups):
        start = groups[at][0]
        in_middle = at <= last_alone and start >= alone
        following = min(_next(text, groups, at), last_alone + 1) if in_middle else at
        if following > at or (other and text[start] not in "+("):
            at = max(following, at + 1)
            continue
        date = _RE.date.match(text, start) if start >= done else None
        formless = in_middle and not _has_form(text, start)
        last = (
            _phone_from(page, groups, at) if start >= done and not date and not formless else None
        )
        if last is not None:
            yield _whole(text, start, groups[last][1])
            at = last
        done = date.end() if date else done
        at += 1


def _next(text: str, groups: list[Span], at: int) -> int:
    """Return the first group from this one on with which a date or a written form may start."""
    found = _RE.date_or_form.search(text, groups[at][0], groups[-1][1])
    place = found.start() if found else groups[-1][1]
    return at if place == groups[at][0] else bisect_left(groups, (place,), at)


def _has_form(text: str, start: int) -> bool:
    """Return whether a written form may start in the middle of a run of groups. After a group,
    it has no spaces."""
    follows = text[start] != "(" and text[start - 1] in _GAPS and text[start - 2].isdigit()
    if follows and not _RE.tight.match(text, start):
        return False
    return _RE.form.match(text, start) is not None


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
    if (
        evidence == Evidence.NONE
        and page.text[start] not in "+(0"
        and not _RE.nanp.match(page.text, start)
    ):
        # Only a word after it can still make it a phone number.
        ends = [at for at in ends if at == len(groups) - 1]
    return next(
        (at for at in reversed(ends) if _is_phone(page, start, groups[at][1], evidence)), None
    )


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
    if evidence == Evidence.OTHER or _RE.amount_after.match(text, end):
        return False
    likely = evidence == Evidence.LIKELY or (
        evidence == Evidence.FAR and sum(map(str.isdigit, number)) >= _MIN_FAR_DIGITS
    )
    return (
        evidence == Evidence.CLEAR
        or (likely and _likely_form(page, start, end))
        or _is_requested(page, start, end, evidence)
    )


def _is_requested(page: Page, start: int, end: int, evidence: Evidence) -> bool:
    """Accept a number that someone is called on, that a word follows, or in a written form that
    libphonenumber knows."""
    text = page.text
    if _formed(page, start, end) or (
        evidence >= Evidence.FAR and _RE.request.search(text, max(0, start - REACH), start)
    ):
        return True
    after = _phone_word_after(page, end)
    if after is None:
        return False
    return _separated(text[start:end]) or "(" in after[0] or not after[0][0].isspace()


def _likely_form(page: Page, start: int, end: int) -> bool:
    """Accept, near a likely word, separators that do not group thousands, or a trunk 0 and eight
    to ten digits."""
    text, number = page.text, page.text[start:end]
    pointed = _RE.pointed.search(text, max(0, start - 12), start) is not None
    if not _separated(number):
        known = pointed and len(number) >= 9 and _is_known(page, number)
        return known or _RE.with_trunk.fullmatch(number) is not None
    if _RE.quad.fullmatch(number) or _RE.decimals.fullmatch(number):
        return False
    return not _RE.thousands.fullmatch(number) or (pointed and _isolated(text, start, end))


def _opened(text: str, start: int, end: int) -> bool:
    """Return whether a bracket before the number is closed inside it, as in `(+33) 6 12 34 56
    78`."""
    return text[start - 1 : start] == "(" and text.count(")", start, end) > text.count(
        "(", start, end
    )


def _formed(page: Page, start: int, end: int) -> bool:
    """Accept a number without a cue word in one of the written forms, if libphonenumber knows
    it."""
    number = page.text[start:end]
    if not _separated(number) or (SPACES in number and not _isolated(page.text, start, end)):
        return False
    known = _in_form(number) and _is_known(page, number)
    return known or (
        number.startswith("00") and page.once(_international, number, quicker=_is_possible)
    )


def _ends(text: str, end: int) -> bool:
    tail = text[end : end + 2]
    if tail[:1] in APART:
        return True
    if joined(tail[:1]) or tail[:1] == "_":
        return _RE.extension.match(text, end) is not None
    return not (len(tail) == 2 and tail[0] in ".:,/+-" and tail[1].isdigit())


def _isolated(text: str, start: int, end: int) -> bool:
    """Return whether no further digit groups stand before or after: part of a longer number is
    not a phone number."""
    head, tail = text[max(0, start - 2) : start], text[end : end + 2]
    follows = head[:1].isdigit() and head[1:] in _GAPS and text[start] != "("
    return not (follows or (tail[1:].isdigit() and tail[0] in _GAPS))


def _separated(number: str) -> bool:
    return not number.strip("()").isdigit()


def _in_form(number: str) -> bool:
    return _RE.national.fullmatch(number) is not None and 9 <= sum(map(str.isdigit, number)) <= 11


def _is_known(page: Page, number: str) -> bool:
    return (
        page.once(_region, number, quicker=lambda value: next(_likely_regions(value), None))
        is not None
    )


def _likely_regions(number: str) -> Iterator[str]:
    """Yield the regions whose patterns in libphonenumber fit the number. To parse and check it
    for all takes far longer."""
    digits = "".join(filter(str.isdigit, number))
    regions = _LISTS.regions if number[0] in "0(" else _LISTS.without_trunk
    if _RE.nanp.fullmatch(number):
        regions = ("US",)
    return (region for region in regions if _of_region(region).fullmatch(digits))


@cache
def _of_region(region: str) -> re.Pattern[str]:
    """Match a call abroad, or a number of the region, perhaps with the code of the country and
    prefixes before it."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    own: Any = PhoneMetadata.metadata_for_region(region)
    several = map(PhoneMetadata.metadata_for_region, COUNTRY_CODE_TO_REGION_CODE[own.country_code])
    kinds = (getattr(one, kind) for one in several for kind in _WORDS.kinds)
    numbers = "|".join(
        {kind.national_number_pattern for kind in kinds if kind and kind.national_number_pattern}
    )
    # A prefix that is replaced by other digits may be followed by anything.
    number = r"\d+" if own.national_prefix_transform_rule else f"(?:{numbers})"
    prefix = f"(?:{own.country_code})?(?:{own.national_prefix_for_parsing or ''}){{0,2}}"
    return re.compile(rf"(?:{own.international_prefix})\d+|{prefix}{number}")


def _region(number: str) -> str | None:
    """Return the first region in which libphonenumber considers the number valid."""
    # Takes 25 ms, and few texts have a candidate.
    from phonenumbers import NumberParseException, is_valid_number, parse

    for region in _likely_regions(number):
        try:
            if is_valid_number(parse(number, region)):
                return region
        except NumberParseException:
            continue
    return None


def _is_possible(number: str) -> bool:
    """Return the same as `_international` sooner: without a national prefix, country and length
    decide."""
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
    """Match the national prefix, which some people write after the code of a country. None:
    there is no such code."""
    from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneMetadata

    regions = COUNTRY_CODE_TO_REGION_CODE.get(int(code)) if code[:1] > "0" else None
    country = (
        PhoneMetadata.metadata_for_region_or_calling_code(int(code), regions[0])
        if regions
        else None
    )
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

    extension = _RE.extension.search(value)
    number = value[: extension.start()] if extension else value
    abroad = number.startswith(("+", "00")) and _is_possible(number)
    region = _region(number) if not abroad and _in_form(number) else None
    if not abroad and region is None:
        return "".join(str(int(char)) for char in number if char.isdigit())
    return format_number(
        parse("+" + number.lstrip("+0") if abroad else number, region), PhoneNumberFormat.E164
    )


PATTERNS = (Pattern("phone", "PHONE", find_phones, digits=_MIN_DIGITS, normal=_e164),)
