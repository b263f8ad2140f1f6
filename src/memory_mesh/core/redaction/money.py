"""Payment cards by their Luhn sum and network, bank accounts by the check digits of their IBAN."""

import re
from collections.abc import Iterator

from memory_mesh.core.redaction.pattern import (
    DASHES,
    DIGIT,
    SPACES,
    Cue,
    Example,
    Page,
    Pattern,
    Span,
    compact,
    joined,
    listed,
    luhn,
)
from memory_mesh.core.text import LazyRegex

_SHORTEST, _LONGEST = 12, 19
_RUN = LazyRegex(rf"{DIGIT}(?:[{SPACES}{DASHES}]?{DIGIT})*+")
_GROUP = LazyRegex(r"\d+")
# How the digits are set in groups on a card; all in one is usual too.
_GROUPINGS = LazyRegex(r"4,4,4,[1-4](?:,[1-3])?|4,6,[45]")
_CARD_CUE = Cue(
    listed(
        "card cc credit visa master amex american discover diners jcb maestro union cvv cvc kart carte tarjeta carta cartao"
        " cartão карт カード 卡号"
    ),
    r"(?:credit|debit|bank|payment)?\s?cards?|cc|ccn|credit|visa|master\s?card|amex|american express|discover|diners|jcb|maestro"
    r"|union\s?pay|cvv|cvc|card_?(?:no|num|number)|kreditkarten?(?:nummer)?|karte|carte|tarjeta|carta|cart[aã]o|карт[аыу]|カード|卡号",
)
# Network, first digits, length: those that are told from other numbers without a cue word. A Visa of 13 or 19 digits, Maestro and
# the like need the cue, since ids and time stamps in milli- and nanoseconds are as long.
_NETWORKS = (
    ("Visa", LazyRegex(r"4"), (16,)),
    ("Mastercard", LazyRegex(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    ("American Express", LazyRegex(r"3[47]"), (15,)),
    ("Discover", LazyRegex(r"6011|64[4-9]|65"), (16,)),
    ("Diners Club", LazyRegex(r"30[0-5]|3095|36|3[89]"), (14,)),
    ("JCB", LazyRegex(r"35(?:2[89]|[3-8])"), (16,)),
    ("JCB (old)", LazyRegex(r"2131|1800"), (15,)),
    ("UnionPay", LazyRegex(r"62"), (16,)),
)


def cards(page: Page) -> Iterator[Span]:
    """Runs of 12 to 19 digits, in one or in the groups of a card, that pass Luhn and are a network's, or have a cue word near."""
    for run in _RUN.finditer(page.text):
        if len(run[0]) >= _SHORTEST and sum(map(str.isdigit, run[0])) >= _SHORTEST:
            yield from _cards_in(page, run)


def _cards_in(page: Page, run: re.Match[str]) -> Iterator[Span]:
    groups = [found.span() for found in _GROUP.finditer(page.text, *run.span())]
    at = 0
    while at < len(groups):
        last = _card_from(page, groups, at)
        if last is not None:
            yield groups[at][0], groups[last][1]
        at = at + 1 if last is None else last + 1


def _card_from(page: Page, groups: list[Span], first: int) -> int | None:
    """The last group of a card that starts with group `first`; the longest reading wins."""
    text, digits, sizes, best = page.text, "", "", None
    for at in range(first, len(groups)):
        start, end = groups[at]
        if len(digits) + end - start > _LONGEST:
            break
        digits += text[start:end]
        sizes += f"{',' if sizes else ''}{end - start}"
        if len(digits) >= _SHORTEST and (at == first or _GROUPINGS.fullmatch(sizes)):
            span = groups[first][0], end
            if luhn(digits) and _whole(text, span) and (_network(digits) or _called_card(page, span)):
                best = at
    return best


def _whole(text: str, span: Span) -> bool:
    """No part of a word or of a decimal fraction."""
    head, tail = text[max(0, span[0] - 2) : span[0]], text[span[1] : span[1] + 2]
    if joined(head[-1:]) or joined(tail[:1]):
        return False
    fraction = len(head) == 2 and head[1] == "." and head[0].isdigit()
    return not fraction and not (len(tail) == 2 and tail[0] == "." and tail[1].isdigit())


def _called_card(page: Page, span: Span) -> bool:
    """Our own ids hold thirteen digits between underscores, and one in ten passes Luhn."""
    return "_" not in page.text[max(0, span[0] - 1) : span[1] + 1] and _CARD_CUE.near(page, span)


def _network(digits: str) -> bool:
    return any(len(digits) in lengths and first.match(digits) for _, first, lengths in _NETWORKS)


# Country and the length of its account numbers, as registered for ISO 13616.
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}
_IBAN_HEAD = LazyRegex(r"[0-9][0-9](?<=[A-Za-z]{2}[0-9]{2})")
_IBAN_BODIES = {
    length: LazyRegex(rf"(?:[{SPACES}{DASHES}]?[A-Za-z0-9]){{{length - 4}}}(?![A-Za-z0-9])")
    for length in set(_IBAN_LENGTHS.values())
}


def ibans(page: Page) -> Iterator[Span]:
    """Country, two check digits, and as many more as the country has, in any case, grouped or not."""
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
    turned = plain[4:] + plain[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


CARD = Pattern(
    id="card",
    label="CARD",
    why="The number of a payment card lets others pay with it.",
    finds=cards,
    normal=compact,
    examples=(
        Example("charged to 4111 1111 1111 1111 yesterday", "4111 1111 1111 1111"),
        Example("Amex 3782-822463-10005", "3782-822463-10005"),
        Example("my card 4222222222222 expired", "4222222222222"),
    ),
    counter_examples=(
        "order 4111111111111112",
        "timestamp 1700000000000000",
        "0.4111111111111111",
        "job 4222222222222 is done",
        "ISBN 978-3-16-148410-0",
    ),
)
IBAN = Pattern(
    id="iban",
    label="IBAN",
    why="An IBAN names a person's bank account.",
    finds=ibans,
    digits=2,
    normal=compact,
    examples=(
        Example("IBAN: DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00"),
        Example("pay gb82west12345698765432 please", "gb82west12345698765432"),
    ),
    counter_examples=("DE89 3704 0044 0532 0130 01", "pod be12-7f9c4d5b6-x2x4z", "FR2024 report"),
)
PATTERNS = (IBAN, CARD)
