"""Numbers of money with check sums: payment cards and bank accounts."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from memory_mesh.core.redaction.pattern import DASHES, DIGIT, SPACES, Cue, Page, Pattern, Span, compact, joined, luhn
from memory_mesh.core.redaction.phone_words import Evidence, evidence_before
from memory_mesh.core.text import LazyRegex

_MIN_DIGITS, _MAX_DIGITS = 12, 19
_RUN = LazyRegex(rf"{DIGIT}(?<!{DIGIT}{DIGIT})(?:[{SPACES}{DASHES}]?{DIGIT}){{{_MIN_DIGITS - 1},}}+")
_GAP = rf"(?:[\s{DASHES}._/·:•]{{1,3}}|&(?:nbsp|#160|#32|#45|#x20|#xa0);)"
_GAPS = LazyRegex(f"({_GAP})")
_ODD_RUN = LazyRegex(rf"(?<!{DIGIT})({DIGIT}{{4,8}})(?:{_GAP}{DIGIT}{{3,10}}){{1,4}}(?!{DIGIT})")
_GROUP = LazyRegex(r"\d+")
# How cards group their digits, in sizes of groups as characters; a single group is common too.
_IN_GROUPS = "\4\4\4[\1-\4][\1-\3]?|\4\6[\4\5]"
_GROUPINGS, _GROUPINGS_OR_ONE = LazyRegex(_IN_GROUPS), LazyRegex(f"{_IN_GROUPS}|[{chr(_MIN_DIGITS)}-{chr(_MAX_DIGITS)}]")
_CARD_CUE = Cue(
    "card cc credit visa master amex american discover diners jcb maestro union cvv cvc kart carte tarjeta carta cartao cartão"
    " карт カード 卡 카드",
    r"(?:credit|debit|bank|payment)?\s?cards?|cc|ccn|credit|visa|master\s?card|amex|american express|discover|diners|jcb|maestro"
    r"|union\s?pay|cvv|cvc|card_?(?:no|num|number)|kreditkarten?(?:nummer)?|(?:kredit|bank|debit)karte|karte|carte|tarjeta|carta|cart[aã]o|карт[аыу]|\w{0,6}カード\w{0,2}|\w{0,4}卡号?|카드\s?번호",
)
# After these, a number that is called an id or an account may be a card.
_MONEY_CUE = Cue(
    "card kart cart tarjet карт カード 卡 카드 acc konto pay paid charge",
    r"cards?|karte|carte|tarjeta|carta|cart[aã]o|карт[аыу]|\w{0,6}カード|\w{0,4}卡号?|카드|accounts?|acct|konto|pay(?:ment)?|paid|charged?",
)
_NEAR = 32
# First digits by length, of networks that need no cue word. A Visa of 13 or 19 digits, Maestro and similar networks need one,
# because ids and timestamps in milliseconds or nanoseconds have the same length.
_MIN_NETWORK = 14
_NETWORKS = LazyRegex(
    r"(?=.{14}$)(?:30[0-5]|3095|36|3[89])"  # Diners Club
    r"|(?=.{15}$)(?:3[47]|2131|1800)"  # American Express, old JCB
    # Visa, Mastercard, Discover, JCB, UnionPay
    r"|(?=.{16}$)(?:4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|6011|64[4-9]|65|35(?:2[89]|[3-8])|62)"
)


def _cards(page: Page) -> Iterator[Span]:
    """Match 12 to 19 digits, in one group or in the groups of a card, with a Luhn sum and a known network or a cue word."""
    called = page.holds(_CARD_CUE.stems)
    for run in _RUN.finditer(page.text):
        start, end = run.span()
        # Every grouping of a card has a group of four digits or more.
        if page.shape.find(b"0000", start, end) < 0:
            continue
        groups = [found.span() for found in _GROUP.finditer(page.text, *run.span())]
        sizes, at = _sizes(end - start for start, end in groups), 0
        while found := _GROUPINGS_OR_ONE.search(sizes, at):
            last = _card_from(page, groups, *found.span(), called=called)
            if last is not None:
                yield groups[found.start()][0], groups[last][1]
            at = found.start() + 1 if last is None else last + 1
    if page.digits >= _MIN_DIGITS and page.shape.count(b"0000") > 1:
        yield from _oddly_grouped(page, called=called)


def _oddly_grouped(page: Page, *, called: bool) -> Iterator[Span]:
    """Match a card whose digits are separated by dots, underscores, line breaks or wide gaps."""
    at = 0
    while found := _ODD_RUN.search(page.text, at):
        at = found.end(1)
        if "&" not in found[0] and not _MIN_NETWORK <= page.shape.count(b"0", *found.span()) <= _MAX_DIGITS:
            continue  # an entity has digits too
        parts = _GAPS.split(found[0])
        digits = "".join(parts[::2])
        right = len(digits) <= _MAX_DIGITS and _NETWORKS.match(digits) and luhn(digits) and _complete(page.text, found.span())
        if right and (
            _in_groups(page.text, found.span(), parts[::2], parts[1::2]) or (called and _CARD_CUE.near(page, found.span()))
        ):
            at = found.end()
            yield found.span()


def _in_groups(text: str, span: Span, groups: list[str], gaps: list[str]) -> bool:
    """Return whether groups and gaps are those of one card, so that it needs no cue word, and not those of a list."""
    if not _GROUPINGS.fullmatch(_sizes(map(len, groups))):
        return False
    if (
        all(a < b for a, b in pairwise(groups))
        or all(a > b for a, b in pairwise(groups))
        or {group[-1] for group in groups} == {"0"}
    ):
        return False
    signs = {gap.strip(" \t\r") for gap in gaps}
    head, tail = text[max(0, span[0] - 4) : span[0]].rstrip(" \t\r"), text[span[1] : span[1] + 4].lstrip(" \t\r")
    if signs == {"\n"} and (head.rstrip()[-1:].isdigit() or tail.lstrip()[:1].isdigit()):
        return False  # more lines with numbers
    if "\n" in "".join(signs):
        return all(len(gap) == 1 or "\n" in gap for gap in gaps)
    return len(signs) == 1 and signs != {""} and not {head[-1:], tail[:1]} & signs


def _sizes(lengths: Iterable[int]) -> str:
    return "".join(chr(min(length, _MAX_DIGITS + 1)) for length in lengths)


def _card_from(page: Page, groups: list[Span], first: int, after: int, *, called: bool) -> int | None:
    """Return the last group of a card that starts with group `first`; the longest match wins, and the fifth group may be none."""
    for last in (after - 1, after - 2) if after - first == 5 else (after - 1,):
        digits = "".join([page.text[start:end] for start, end in groups[first : last + 1]])
        span = groups[first][0], groups[last][1]
        if (called or _NETWORKS.match(digits)) and luhn(digits) and _complete(page.text, span) and _is_card(page, span, digits):
            return last
    return None


def _is_card(page: Page, span: Span, digits: str) -> bool:
    """Accept a number of a known network, or any near a word for cards. A bare run after a word such as `order` is rejected."""
    longer = page.text[span[1] : span[1] + 1] in ("-", "–") and page.text[span[1] + 1 : span[1] + 2].isdigit()
    if longer or not _NETWORKS.match(digits):
        return _called_card(page, span)
    grouped = span[1] - span[0] > len(digits)
    return grouped or evidence_before(page, span[0]) != Evidence.OTHER or _MONEY_CUE.near(page, span, before=_NEAR, after=0)


def _complete(text: str, span: Span) -> bool:
    """Return whether the number is not part of a word or of a decimal fraction."""
    head, tail = text[max(0, span[0] - 2) : span[0]], text[span[1] : span[1] + 2]
    if joined(head[-1:]) or joined(tail[:1]):
        return False
    fraction = len(head) == 2 and head[1] == "." and head[0].isdigit()
    return not fraction and not (len(tail) == 2 and tail[0] == "." and tail[1].isdigit())


def _called_card(page: Page, span: Span) -> bool:
    """Return whether a cue word is near. Ids of memories have 13 digits between underscores; one in ten passes Luhn."""
    return "_" not in page.text[max(0, span[0] - 1) : span[1] + 1] and _CARD_CUE.near(page, span)


# The length of IBANs by country, as registered for ISO 13616.
_IBAN_LENGTHS = {
    country: int(length)
    for length, *countries in map(str.split, (
        "15 NO", "16 BE", "18 DK FI FK FO GL NL SD", "19 MK SI", "20 AT BA EE KZ LT LU MN XK", "21 CH HR LI LV",
        "22 BG BH CR DE GB GE IE ME RS VA", "23 AE GI IL IQ OM SO TL", "24 AD CZ ES MD PK RO SA SE SK TN VG", "25 LY PT ST",
        "26 IS TR", "27 BI DJ FR GR IT MC MR SM", "28 AL AZ BY CY DO GT HN HU LB NI PL SV", "29 BR EG PS QA UA", "30 JO KW MU YE",
        "31 MT SC", "32 LC", "33 RU",
    ))
    for country in countries
}  # fmt: skip
_IBAN_HEAD = LazyRegex(r"[0-9][0-9](?<=[A-Za-z]{2}[0-9]{2})")
# In groups of four, other signs may stand between them.
_IBAN_GAP = r"(?:[._/·]|[ \t]{1,3}|[ \t]{0,2}\r?\n[ \t]{0,2})"
_IBAN_BODIES = {
    length: LazyRegex(
        rf"(?:(?:[{SPACES}{DASHES}]?[A-Za-z0-9]){{{length - 4}}}"
        rf"|(?:{_IBAN_GAP}[A-Za-z0-9]{{4}}){{{(length - 4) // 4}}}{_IBAN_GAP}[A-Za-z0-9]{{{length % 4}}})(?![A-Za-z0-9])"
    )
    for length in set(_IBAN_LENGTHS.values())
}


def _ibans(page: Page) -> Iterator[Span]:
    """Match a country, two check digits and the country's number of characters, in any case and grouping."""
    text, done = page.text, 0
    for head in _IBAN_HEAD.finditer(text):
        start = head.start() - 2
        length = _IBAN_LENGTHS.get(text[start : start + 2].upper())
        if length is None or start < done or (start and joined(text[start - 1])):
            continue
        body = _IBAN_BODIES[length].match(text, head.end())
        if body and _mod97(text[start : body.end()]):
            done = body.end()
            yield start, done


def _mod97(iban: str) -> bool:
    plain = compact(iban)
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


CARDS = (
    Pattern("iban", "IBAN", _ibans, digits=2, normal=compact),
    Pattern("card", "CARD", _cards, digits=_MIN_DIGITS, normal=compact),
)
