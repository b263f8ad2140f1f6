"""Find payment cards, bank accounts, e-mail addresses and IP addresses."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise

from memory_mesh.core.language.packaged import Expressions, WordLists, WordSets
from memory_mesh.core.language.redaction.pattern import (
    DASHES,
    SPACES,
    Cue,
    Page,
    Pattern,
    Span,
    Surroundings,
    compact,
    joined,
    luhn,
)
from memory_mesh.core.language.redaction.phone import Evidence, evidence_before
from memory_mesh.core.text import LazyRegex, address_text

_RE, _WORDS, _LISTS = Expressions(__name__), WordSets(__name__), WordLists(__name__)

# --- payment cards and bank accounts ---

_MIN_DIGITS, _MAX_DIGITS = 12, 19
# How cards group their digits, in sizes of groups as characters; a single group is common too.
_CARD_CUE = Cue(_LISTS.card_cue_stems, _RE.card_cue)
# After these, a number that is called an id or an account may be a card.
_MONEY_CUE = Cue(_LISTS.money_cue_stems, _RE.money_cue)
_NEAR = 32
# First digits by length, of networks that need no cue word. A Visa of 13 or 19 digits, Maestro and
# similar networks need one, because ids and timestamps in milliseconds or nanoseconds have the same
# length.
_MIN_NETWORK = 14


def _cards(page: Page) -> Iterator[Span]:
    """Match 12 to 19 digits, in one group or in the groups of a card, with a Luhn sum and a
    known network or a cue word."""
    called = page.holds(_CARD_CUE.stems)
    for run in _RE.run.finditer(page.text):
        start, end = run.span()
        # Every grouping of a card has a group of four digits or more.
        if page.shape.find(b"0000", start, end) < 0:
            continue
        groups = [found.span() for found in _RE.group.finditer(page.text, *run.span())]
        sizes, at = _sizes(end - start for start, end in groups), 0
        while found := _RE.groupings_or_one.search(sizes, at):
            last = _card_from(page, groups, *found.span(), called=called)
            if last is not None:
                yield groups[found.start()][0], groups[last][1]
            at = found.start() + 1 if last is None else last + 1
    if page.digits >= _MIN_DIGITS and page.shape.count(b"0000") > 1:
        yield from _oddly_grouped(page, called=called)


def _oddly_grouped(page: Page, *, called: bool) -> Iterator[Span]:
    """Match a card whose digits are separated by dots, underscores, line breaks or wide gaps."""
    at = 0
    while found := _RE.odd_run.search(page.text, at):
        at = found.end(1)
        if (
            "&" not in found[0]
            and not _MIN_NETWORK <= page.shape.count(b"0", *found.span()) <= _MAX_DIGITS
        ):
            continue  # an entity has digits too
        parts = _RE.gaps.split(found[0])
        digits = "".join(parts[::2])
        right = (
            len(digits) <= _MAX_DIGITS
            and _RE.networks.match(digits)
            and luhn(digits)
            and _complete(page.text, found.span())
        )
        if right and (
            _in_groups(page.text, found.span(), parts[::2], parts[1::2])
            or (called and _CARD_CUE.near(page, found.span()))
        ):
            at = found.end()
            yield found.span()


def _in_groups(text: str, span: Span, groups: list[str], gaps: list[str]) -> bool:
    """Return whether groups and gaps are those of one card, so that it needs no cue word, and
    not those of a list."""
    if not _RE.groupings.fullmatch(_sizes(map(len, groups))):
        return False
    if (
        all(a < b for a, b in pairwise(groups))
        or all(a > b for a, b in pairwise(groups))
        or {group[-1] for group in groups} == {"0"}
    ):
        return False
    signs = {gap.strip(" \t\r") for gap in gaps}
    head, tail = (
        text[max(0, span[0] - 4) : span[0]].rstrip(" \t\r"),
        text[span[1] : span[1] + 4].lstrip(" \t\r"),
    )
    if signs == {"\n"} and (head.rstrip()[-1:].isdigit() or tail.lstrip()[:1].isdigit()):
        return False  # more lines with numbers
    if "\n" in "".join(signs):
        return all(len(gap) == 1 or "\n" in gap for gap in gaps)
    return len(signs) == 1 and signs != {""} and not {head[-1:], tail[:1]} & signs


def _sizes(lengths: Iterable[int]) -> str:
    return "".join(chr(min(length, _MAX_DIGITS + 1)) for length in lengths)


def _card_from(
    page: Page, groups: list[Span], first: int, after: int, *, called: bool
) -> int | None:
    """Return the last group of a card that starts with group `first`; the longest match wins,
    and the fifth group may be none."""
    for last in (after - 1, after - 2) if after - first == 5 else (after - 1,):
        digits = "".join([page.text[start:end] for start, end in groups[first : last + 1]])
        span = groups[first][0], groups[last][1]
        if (
            (called or _RE.networks.match(digits))
            and luhn(digits)
            and _complete(page.text, span)
            and _is_card(page, span, digits)
        ):
            return last
    return None


def _is_card(page: Page, span: Span, digits: str) -> bool:
    """Accept a number of a known network, or any near a word for cards. A bare run after a word
    such as `order` is rejected."""
    longer = (
        page.text[span[1] : span[1] + 1] in ("-", "–")
        and page.text[span[1] + 1 : span[1] + 2].isdigit()
    )
    if longer or not _RE.networks.match(digits):
        return _called_card(page, span)
    grouped = span[1] - span[0] > len(digits)
    return (
        grouped
        or evidence_before(page, span[0]) != Evidence.OTHER
        or _MONEY_CUE.near(page, span, before=_NEAR, after=0)
    )


def _complete(text: str, span: Span) -> bool:
    """Return whether the number is not part of a word or of a decimal fraction."""
    head, tail = text[max(0, span[0] - 2) : span[0]], text[span[1] : span[1] + 2]
    if joined(head[-1:]) or joined(tail[:1]):
        return False
    fraction = len(head) == 2 and head[1] == "." and head[0].isdigit()
    return not fraction and not (len(tail) == 2 and tail[0] == "." and tail[1].isdigit())


def _called_card(page: Page, span: Span) -> bool:
    """Return whether a cue word is near. Ids of memories have 13 digits between underscores; one
    in ten passes Luhn."""
    return "_" not in page.text[max(0, span[0] - 1) : span[1] + 1] and _CARD_CUE.near(page, span)


# The length of IBANs by country, as registered for ISO 13616.
_IBAN_LENGTHS = {
    country: int(length)
    for length, *countries in map(str.split, (
        "15 NO", "16 BE", "18 DK FI FK FO GL NL SD", "19 MK SI", "20 AT BA EE KZ LT LU MN XK",
        "21 CH HR LI LV", "22 BG BH CR DE GB GE IE ME RS VA", "23 AE GI IL IQ OM SO TL",
        "24 AD CZ ES MD PK RO SA SE SK TN VG", "25 LY PT ST", "26 IS TR",
        "27 BI DJ FR GR IT MC MR SM", "28 AL AZ BY CY DO GT HN HU LB NI PL SV", "29 BR EG PS QA UA",
        "30 JO KW MU YE", "31 MT SC", "32 LC", "33 RU",
    ))
    for country in countries
}  # fmt: skip
# In groups of four, other signs may stand between them.
_IBAN_GAP = r"(?:[._/·]|[ \t]{1,3}|[ \t]{0,2}\r?\n[ \t]{0,2})"
_IBAN_BODIES = {
    length: LazyRegex(
        rf"(?:(?:[{SPACES}{DASHES}]?[A-Za-z0-9]){{{length - 4}}}"
        rf"|(?:{_IBAN_GAP}[A-Za-z0-9]{{4}}){{{(length - 4) // 4}}}{_IBAN_GAP}[A-Za-z0-9]{{"
        rf"{length % 4}}})(?![A-Za-z0-9])"
    )
    for length in set(_IBAN_LENGTHS.values())
}


def _ibans(page: Page) -> Iterator[Span]:
    """Match a country, two check digits and the country's number of characters, in any case and
    grouping."""
    text, done = page.text, 0
    for head in _RE.iban_head.finditer(text):
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


# --- e-mail and IP addresses ---
# E-mail is matched outwards from its `@` or a spelled one, IPv6 from a colon, IPv4 from its digits.
# The context decides whether four numbers with dots are an address or a version.

_MAX_LOCAL, _MAX_DOMAIN, _LOOK = 254, 255, 64

_FORGES = ("github.com", "gitlab.com", "bitbucket.org", "ssh.dev.azure.com", "codeberg.org")


def _emails(page: Page) -> Iterator[Span]:
    """Match every `@` with a local part before it and a domain that ends in letters after it."""
    text = page.text
    for at in _RE.at.finditer(text):
        domain = _RE.domain.match(text, at.end(), at.end() + _MAX_DOMAIN) or _RE.literal.match(
            text, at.end()
        )
        if domain is None or _RE.no_domain.match(domain[0]):
            continue  # lodash@4.17.21-rc.one, logo@2x.png
        if text.startswith("(", domain.end()) and not _RE.common_ending.search(domain[0]):
            continue  # weights@inputs.transpose(…)
        reversed_ = text[max(0, at.start() - _MAX_LOCAL) : at.start()][::-1]
        local = (
            _RE.quoted_local.match(reversed_)
            or _RE.latin_local.match(reversed_)
            or _RE.east_local.match(reversed_)
        )
        start = at.start() - len(local[0].rstrip(".-!#$&'*^~") if local else "")
        # git@host:path names a repository.
        remote = text.startswith("git@", start) and (
            text.startswith((":", "/"), domain.end()) or domain[0].lower() in _FORGES
        )
        algorithm = "-" in text[start : at.start()] and _RE.algorithm.fullmatch(
            text[start : domain.end()]
        )
        if start < at.start() and not remote and not algorithm:
            yield start, domain.end()


_ESCAPES = ("&#", "&commat;", "&period;", "#64;", "\\u0040", "\\x40")


def _spelled(page: Page) -> Iterator[Span]:
    """Match addresses that are spelled to hide them from programs."""
    text = page.text
    if page.holds(_ESCAPES):
        yield from _escaped(page)
    for at in _RE.sign_at.finditer(text):
        yield from _spelled_at(text, at)
    for at in _RE.word_at.finditer(text) if " dot " in page.folded or " @ " in text else ():
        for start, end in _spelled_at(text, at):
            local, spoken = text[start : at.start()], text[at.end() : end]
            shouted = at[0].isupper() and " DOT " in spoken
            line = max(0, start - _LOOK, text.rfind("\n", max(0, start - _LOOK), start))
            clear = shouted or not local.isalpha() or _RE.mail.search(text, line, start)
            if (
                clear
                and ("@" in at[0] or " dot " in spoken.lower())
                and local.lower() not in _WORDS.no_local
            ):
                yield start, end


def _escaped(page: Page) -> Iterator[Span]:
    """Match addresses with entities or escapes: `ann&#64;example.org`."""
    for word in _RE.escaped_word.finditer(page.text):
        if not _RE.escaped.search(word[0]):
            continue
        plain, starts, at = "", list[int](), word.start()
        while at < word.end():
            escape = _RE.escaped.match(page.text, at)
            starts.append(at)
            plain += _unescaped(escape[0]) if escape else page.text[at]
            at = escape.end() if escape else at + 1
        starts.append(at)
        yield from ((starts[start], starts[end]) for start, end in _emails(Page(plain)))


def _unescaped(escape: str) -> str:
    """Return the character of an entity or escape; a control character for one that is none or
    not a single one."""
    from html import unescape  # few texts have entities

    plain = chr(int(escape[-2:], 16)) if escape[0] == "\\" else unescape(unescape(escape))
    return plain if len(plain) == 1 else "\0"


def _spelled_at(text: str, at: re.Match[str]) -> Iterator[Span]:
    domain = _RE.spelled_domain.match(text, at.end(), at.end() + _MAX_DOMAIN)
    local = (
        _RE.spelled_local.match(text[max(0, at.start() - _MAX_LOCAL) : at.start()][::-1])
        if domain
        else None
    )
    if domain and local:
        yield at.start() - local.end(), domain.end()


def _unspelled(value: str) -> str:
    """Return a spelled address as it is written otherwise."""
    value = _RE.escaped.sub(lambda escape: _unescaped(escape[0]), value)
    at = _RE.sign_at.search(value) or _RE.word_at.search(value)
    parts = (value[: at.start()], value[at.end() :]) if at else (value,)
    return "@".join(_RE.any_dot.sub(".", part) for part in parts).casefold()


_ADDRESS = Cue(_LISTS.address_cue_stems, _RE.address_cue)
_PINNED = ("==", "~=", ">=", "<=", "!=", "^", "~")


def _ipv4(page: Page) -> Iterator[Span]:
    """Match four numbers up to 255 with dots, unless the context makes them a version, a section
    or a longer number."""
    surroundings = Surroundings(page, before=96, after=48)
    spans = (
        surroundings.judge(found.start(), partial(_address, page))
        for found in _RE.v4.finditer(page.text)
    )
    return filter(None, spans)


def _address(page: Page, text: str, place: int) -> Span | None:
    found = _RE.v4.match(text, place)
    parts = found[0].split(".") if found else []
    if found is None or any(int(part) > 255 or (part[0] == "0" and part != "0") for part in parts):
        return None
    is_address = (
        _bounded(text, *found.span())
        and parts[0] not in ("0", "127", "255")
        and not _version(page, found, parts)
    )
    return found.span() if is_address and not _is_private_range(text, found.span()) else None


def _is_private_range(text: str, span: Span) -> bool:
    """Return whether it is a range of private addresses, which are the same everywhere, and not
    one address: 10.0.0.0/8."""
    prefix = _RE.prefix.match(text, span[1])
    if prefix is None:
        return False
    from ipaddress import ip_network

    try:
        network = ip_network(text[span[0] : prefix.end()])
    except ValueError:  # one address of a range
        return False
    shared = network.is_multicast or (
        network.is_private and not network.is_global and not _RE.for_examples.match(text, span[0])
    )
    return shared and network.num_addresses > 2


def _bounded(text: str, start: int, end: int) -> bool:
    head, tail = text[max(0, start - 2) : start], text[end : end + 2]
    if joined(head[-1:]) or head[-1:] in ("_", ".") or joined(tail[:1]) or tail[:1] == "_":
        return False
    if head[-1:] == "-" and head[:1].isalpha():  # pkg-1.2.3.4.tar.gz
        return False
    return not (len(tail) == 2 and tail[0] == "." and tail[1].isalnum())


def _version(page: Page, found: re.Match[str], parts: list[str]) -> bool:
    text, (start, end) = page.text, found.span()
    before, after = text[max(0, start - _LOOK) : start], text[end : end + 24]
    service = re.match(r"[:/]\d", after) is not None
    if _called_version(
        before, sure=service or _RE.private.match(found[0]) is not None
    ) or _RE.version_after.match(after):
        return True
    if before.endswith(_PINNED) or (before.endswith("/") and _RE.product.search(before)):
        return True
    if (
        _RE.heading_after.match(after)
        and _RE.heading_before.search(before)
        and all(0 < int(part) < 30 for part in parts)
    ):
        return True
    small = all(len(part) == 1 for part in parts) or parts[1:] == ["0", "0", "0"]
    return small and not (service or before.endswith("//") or _ADDRESS.near(page, found.span()))


def _called_version(before: str, *, sure: bool) -> bool:
    """Return whether the words to the left, skipping `to`, `and` and other numbers, lead to a
    word such as `version`."""
    if before.isascii() and before.swapcase() == before:  # without letters
        return False
    reversed_, at = before[::-1], 0
    for _ in range(8):
        step = _RE.back.match(reversed_, at)
        if step is None:
            return False
        word, at = step[1][::-1].lower(), step.end()
        if word in _WORDS.version_words or (not sure and word in _WORDS.perhaps_version):
            return True
        if word not in _WORDS.links and not word[0].isdigit() and word[0] != ".":
            return False
    return False


def _ipv6(page: Page) -> Iterator[Span]:
    """Match eight groups, or `::` after a group of four digits; not `std::vector`, `x[1::2]` or
    `12:30:45`. `::1` stays."""
    text, done = page.text, 0
    for anchor in _RE.colons.finditer(text):
        if anchor.start() < done:
            continue
        left = _RE.v6_left.match(text[max(done, anchor.start() - 40) : anchor.start()][::-1])
        start = anchor.start() - (left.end() if left else 0)
        done = _v6_end(text, anchor.end())
        head, tail = text[max(0, start - 1) : start], text[done : done + 1]
        inside_word = joined(head) or joined(tail) or head in ("_", ":") or tail == "_"
        if (
            not inside_word
            and _is_v6(text[start:done])
            and not _is_private_range(text, (start, done))
        ):
            zone = _RE.zone.match(text, done)
            done = zone.end() if zone else done
            yield start, done


def _v6_end(text: str, at: int) -> int:
    found = _RE.v6_right.match(text, at)
    end = found.end() if found else at
    mapped = _RE.v6_mapped.match(text, end)
    if mapped:
        return mapped.end()
    while end > at and text[end - 1] == ":" and text[end - 2] != ":":  # "…::1: refused"
        end -= 1
    return end


def _is_v6(token: str) -> bool:
    compressed, embedded = "::" in token, "." in token
    if not compressed and token.count(":") != 7 - embedded:
        return False
    first = token.partition(":")[0]
    if (
        compressed
        and len(first) != 4
        and not embedded
        and not token.lower().startswith(("::ffff:", "64:ff9b::"))
    ):
        return False
    if compressed and not any(map(str.isdigit, token)):
        return False
    from ipaddress import AddressValueError, IPv6Address  # few texts have a candidate

    try:
        return bool(IPv6Address(token))
    except AddressValueError:
        return False


PATTERNS = (
    Pattern("email", "EMAIL", _emails, hints=("@",), normal=str.casefold),
    Pattern(
        "email_spelled",
        "EMAIL",
        _spelled,
        hints=("at]", "at)", "at}", "at>", "ät", "arroba", " dot ", " @ ", *_ESCAPES),
        normal=_unspelled,
    ),
    Pattern("ipv6", "IP", _ipv6, hints=(":",), normal=address_text),
    Pattern("ipv4", "IP", _ipv4, digits=4, hints=(".",), normal=address_text),
)
