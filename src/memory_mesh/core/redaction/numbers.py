"""Numbers with check sums: payment cards, bank accounts and national ids."""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain

from memory_mesh.core.redaction.pattern import (
    DASHES,
    DIGIT,
    SPACES,
    Cue,
    Page,
    Pattern,
    Span,
    compact,
    joined,
    luhn,
    occurrences,
    stands_alone,
    stems_of,
)
from memory_mesh.core.text import LazyRegex

_MIN_DIGITS, _MAX_DIGITS = 12, 19
_RUN = LazyRegex(rf"{DIGIT}(?:[{SPACES}{DASHES}]?{DIGIT})*+")
_GROUP = LazyRegex(r"\d+")
# How cards group their digits; a single group is common too.
_GROUPINGS = LazyRegex(r"4,4,4,[1-4](?:,[1-3])?|4,6,[45]")
_CARD_CUE = Cue(
    "card cc credit visa master amex american discover diners jcb maestro union cvv cvc kart carte tarjeta carta cartao cartão"
    " карт カード 卡号",
    r"(?:credit|debit|bank|payment)?\s?cards?|cc|ccn|credit|visa|master\s?card|amex|american express|discover|diners|jcb|maestro"
    r"|union\s?pay|cvv|cvc|card_?(?:no|num|number)|kreditkarten?(?:nummer)?|karte|carte|tarjeta|carta|cart[aã]o|карт[аыу]|カード|卡号",
)
# First digits by length, of networks that need no cue word. A Visa of 13 or 19 digits, Maestro and similar networks need one,
# because ids and timestamps in milliseconds or nanoseconds have the same length.
_NETWORKS = LazyRegex(
    r"(?=.{14}$)(?:30[0-5]|3095|36|3[89])"  # Diners Club
    r"|(?=.{15}$)(?:3[47]|2131|1800)"  # American Express, old JCB
    # Visa, Mastercard, Discover, JCB, UnionPay
    r"|(?=.{16}$)(?:4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|6011|64[4-9]|65|35(?:2[89]|[3-8])|62)"
)


def _cards(page: Page) -> Iterator[Span]:
    """Match 12 to 19 digits, in one group or in the groups of a card, with a Luhn sum and a known network or a cue word."""
    for run in _RUN.finditer(page.text):
        if len(run[0]) < _MIN_DIGITS or sum(map(str.isdigit, run[0])) < _MIN_DIGITS:
            continue
        groups = [found.span() for found in _GROUP.finditer(page.text, *run.span())]
        at = 0
        while at < len(groups):
            last = _card_from(page, groups, at)
            if last is not None:
                yield groups[at][0], groups[last][1]
            at = at + 1 if last is None else last + 1


def _card_from(page: Page, groups: list[Span], first: int) -> int | None:
    """Return the last group of a card that starts with group `first`; the longest match wins."""
    text, digits, sizes, best = page.text, "", "", None
    for at in range(first, len(groups)):
        start, end = groups[at]
        if len(digits) + end - start > _MAX_DIGITS:
            break
        digits += text[start:end]
        sizes += f"{',' if sizes else ''}{end - start}"
        if len(digits) >= _MIN_DIGITS and (at == first or _GROUPINGS.fullmatch(sizes)):
            span = groups[first][0], end
            if luhn(digits) and _complete(text, span) and (_NETWORKS.match(digits) or _called_card(page, span)):
                best = at
    return best


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
_IBAN_BODIES = {
    length: LazyRegex(rf"(?:[{SPACES}{DASHES}]?[A-Za-z0-9]){{{length - 4}}}(?![A-Za-z0-9])")
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
    Pattern("card", "CARD", _cards, normal=compact),
)


# --- national ids, with the check sums of python-stdnum ---
# Many are plain runs of digits, and one random run in ten or a hundred passes a check sum. So a number counts without a cue word
# only in a written form that nothing else has. Checks of stdnum that depend on today's date are replaced by checks here: the same
# text must always give the same result.

_GENERAL_STEMS = stems_of("national identi id_card idcard id_n idn personal tax social citizen")
_GENERAL_CUE = (
    r"national\s(?:id|identity|identification|insurance|number)|identity\s(?:no|number|card|code)|id\s?(?:card|number|no)|personal\s(?:id|code|number"
    r"|identification)|tax\s?(?:payer)?\s?(?:id|number|code|file)|social\s(?:security|insurance)|citizen(?:ship)?\s(?:id|number)"
)


def _id(
    id_: str, digits: int, check: str | Callable[[str], bool], *, label: str = "NATIONAL_ID", stems: str = "", cue: str = "",
    shapes: str = "", lead: int = 0, alone: str = "", beside: str = "",
) -> Pattern:  # fmt: skip
    """Return the pattern of one country's id: at least so many digits in the text, and one of two forms.

    The form `alone` needs no cue word, the form `beside` does. `check` is a module of stdnum or a function. `stems` are those of
    the cue words, by default the words. `shapes` are those of `alone`, with 0 for digits and A for letters, separated by |;
    `lead` characters of the form may stand before the shape.
    """
    alone_form, beside_form = _form(alone), _form(beside)
    all_shapes = shapes.encode().split(b"|") if shapes else ()
    cues = Cue(stems or cue.replace("|", " "), f"{cue}|{_GENERAL_CUE}")

    def candidates(page: Page) -> Iterator[Span]:
        for shape in all_shapes:
            for place in occurrences(page.shape, shape):
                if found := alone_form.match(page.text, max(0, place - lead)):
                    yield found.span()
        for stretch in chain(page.numbered(cues.stems), page.numbered(_GENERAL_STEMS)) if beside else ():
            for found in beside_form.finditer(page.text, *stretch):
                if cues.confirms(page.text, found.span()):
                    yield found.span()

    def find(page: Page) -> Iterator[Span]:
        text = page.text
        return filter(lambda span: stands_alone(text, span) and _valid(text[slice(*span)], check), candidates(page))

    return Pattern(id_, label, find, digits=digits, normal=compact)


def _form(form: str) -> LazyRegex:
    # A regex that starts with a character class instead of a repeat is searched three times as fast.
    return LazyRegex(re.sub("d+", lambda run: "[0-9]" + (f"[0-9]{{{len(run[0]) - 1}}}" if len(run[0]) > 1 else ""), form))


def _valid(number: str, check: str | Callable[[str], bool]) -> bool:
    # Imported late: stdnum is slow to import, and few texts have a candidate.
    return check(number) if callable(check) else bool(import_module(f"stdnum.{check}").is_valid(number))


def _area_group_serial(number: str) -> bool:
    """Check an SSN, which has no check digit, against the ranges never issued."""
    digits = compact(number)
    return digits[:3] not in ("000", "666") and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"


def _belgian(number: str) -> bool:
    digits = compact(number)
    return any(97 - int(century + digits[:9]) % 97 == int(digits[9:]) for century in ("", "2"))


def _norwegian(number: str) -> bool:
    digits = [int(char) for char in compact(number)]
    first = sum(a * b for a, b in zip((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), digits, strict=False))
    second = sum(a * b for a, b in zip((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), digits, strict=True))
    return first % 11 == 0 and second % 11 == 0


# In a form, d is a digit.
_DD, _MM = "(?:0[1-9]|[12][0-9]|3[01])", "(?:0[1-9]|1[0-2])"
_NINO = "(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"
NATIONAL_IDS = (
    _id("us_ssn", 8, _area_group_serial, stems="ssn social", cue=r"ssn|social\ssec\w*", shapes="000-00-0000|000?00?0000",
        alone=f"ddd[{DASHES}]dd[{DASHES}]dddd", beside="ddd ?dd ?dddd", label="US_SSN"),
    _id("us_itin", 8, "us.itin", shapes="000-00-0000", alone="9dd-dd-dddd"),
    _id("gb_nino", 5, bool, stems="nin insurance ni_n", cue=r"nino?|insurance|ni\s(?:no|number)", shapes="AA 00 00 00 A",
        alone=f"{_NINO} dd dd dd [A-D]",
        beside=f"{_NINO} ?dd ?dd ?dd ?[A-D]"),
    _id("gb_nhs", 9, "gb.nhs", cue="nhs", beside="ddd[ -]?ddd[ -]?dddd"),
    _id("ie_pps", 6, "ie.pps", stems="pps", cue="ppsn?", beside="ddddddd[A-W][A-IW]?"),
    _id("ca_sin", 8, "ca.sin", cue="sin|nas", beside="ddd[ -]?ddd[ -]?ddd"),
    _id("au_tfn", 8, "au.tfn", cue="tfn", beside="ddd ?ddd ?dd(?:d)?"),
    _id("de_idnr", 10, "de.idnr", stems="steuer idnr tin", cue=r"steuer\w*|idnr|tin", beside="[1-9]d ?ddd ?ddd ?ddd"),
    _id("at_vnr", 9, "at.vnr", stems="svnr sozialvers vnr", cue=r"svnr|sozialversicherungs\w*|vnr", beside="dddd ?dddddd"),
    _id("ch_ahv", 12, "ch.ssn", cue="ahv|avs", shapes="000.0000.0000.00", alone=r"756\.dddd\.dddd\.dd", beside="756dddddddddd"),
    _id("fr_nir", 14, "fr.nir", stems="nir insee sécu secu", cue=r"nir|insee|s[eé]cu(?:rit[eé])?(?:\ssociale)?",
        shapes="0 00 00 00 000 000 00|0 00 00 0A 000 000 00", alone="[12] dd dd d[0-9AB] ddd ddd dd",
        beside="[12]ddddd[0-9AB]dddddddd"),
    _id("be_nn", 10, _belgian, stems="rijks registre niss insz", cue=r"rijksregister\w*|registre\snational|niss|insz",
        shapes="00.00.00-000", alone=r"dd\.dd\.dd-ddd[. ]dd", beside="ddddddddddd"),
    _id("nl_bsn", 8, "nl.bsn", stems="bsn burgerservice sofi", cue="bsn|burgerservicenummer|sofi(?:nummer)?",
        beside="ddddddddd"),
    _id("es_dni", 7, "es.dni", cue="dni|nif", shapes="00000000-A", alone="dddddddd-[A-Z]", beside="dddddddd-?[A-Za-z]"),
    _id("es_nie", 6, "es.nie", cue="nie", shapes="A-0000000-A", alone="[XYZ]-ddddddd-[A-Z]",
        beside="[XYZxyz]-?ddddddd-?[A-Za-z]"),
    _id("pt_nif", 8, "pt.nif", cue="nif|contribuinte", beside="[1-3]dd ?ddd ?ddd"),
    _id("it_codice_fiscale", 6, "it.codicefiscale", shapes="AAAAAA00A00A000A",
        alone="[A-Za-z]{6}dd[A-Za-z]dd[A-Za-z]ddd[A-Za-z]"),
    _id("gr_amka", 10, "gr.amka", cue="amka|αμκα", beside="ddddddddddd"),
    _id("pl_pesel", 10, "pl.pesel", cue="pesel", beside="ddddddddddd"),
    _id("cz_rc", 9, "cz.rc", stems="rodn rč r.č", cue=r"rodn[eé]|r\.?č", shapes="000000/0000", alone="dddddd/dddd",
        beside="dddddd/?ddd(?:d)?"),
    _id("ro_cnp", 12, "ro.cnp", cue="cnp", beside="[1-8]dddddddddddd"),
    _id("bg_egn", 9, "bg.egn", cue="egn|егн", beside="dddddddddd"),
    _id("hr_oib", 10, "hr.oib", cue="oib", beside="ddddddddddd"),
    _id("baltic_code", 10, "ee.ik", stems="isikukood asmens", cue=r"isikukood\w*|asmens\skodas", beside="[1-6]dddddddddd"),
    _id("fi_hetu", 8, "fi.hetu", shapes="000000-000|000000+000|000000A000", alone=f"{_DD}{_MM}dd[-+A-FU-Y]ddd[0-9A-FHJ-NPR-Y]"),
    _id("se_personnummer", 9, lambda number: luhn(compact(number)[-10:]), stems="personnummer samordning pnr",
        cue="personnummer|samordningsnummer|pnr", beside=f"(?:19|20)?dd{_MM}dd[-+]?dddd"),
    _id("dk_cpr", 9, bool, cue="cpr", beside=f"{_DD}{_MM}dd[- ]?dddd"),
    _id("no_fodselsnummer", 10, _norwegian, stems="dselsn personnummer fnr", cue=r"f[oø]dselsn\w*|personnummer|fnr",
        beside="dddddd ?ddddd"),
    _id("is_kennitala", 9, "is_.kennitala", cue="kennitala", beside="dddddd-?dddd"),
    _id("tr_kimlik", 10, "tr.tckimlik", stems="kimlik tckn", cue=r"t\.?c\.?\s?kimlik|kimlik|tckn", beside="[1-9]dddddddddd"),
    _id("il_id", 8, "il.idnr", stems="zehut זהות ת.ז", cue=r"teudat\szehut|תעודת\sזהות|ת\.ז", beside="ddddddddd"),
    _id("za_id", 12, lambda number: luhn(compact(number)), stems="sa_id south_africa", cue=r"sa\sid|rsa\sid|south\safrican?",
        beside=f"dd{_MM}{_DD}dddd[01]dd"),
    _id("in_aadhaar", 11, "in_.aadhaar", stems="aad uidai", cue="aadh?aa?r|uidai", beside="[2-9]ddd[ -]?dddd[ -]?dddd"),
    _id("cn_ric", 17, "cn.ric", shapes="00000000000000000", alone=f"[1-9]ddddd(?:19|20)dd{_MM}{_DD}ddd[0-9Xx]"),
    _id("kr_rrn", 12, "kr.rrn", shapes="000000-0000000", alone=f"dd{_MM}{_DD}-[1-8]dddddd"),
    _id("jp_my_number", 11, "jp.in_", stems="my_number マイナンバー 個人番号", cue=r"my\snumber|マイナンバー|個人番号",
        beside="dddd[ -]?dddd[ -]?dddd"),
    _id("th_pin", 12, "th.pin", stems="บัตร", cue="บัตรประชาชน", shapes="0-0000-00000-00-0", alone="[1-8]-dddd-ddddd-dd-d",
        beside="[1-8]dddddddddddd"),
    _id("br_cpf", 10, "br.cpf", cue="cpf", shapes="000.000.000-00", alone=r"ddd\.ddd\.ddd-dd", beside="ddddddddd-?dd"),
    _id("cl_rut", 8, "cl.rut", stems="rut run", cue="ru[tn]", shapes="0.000.000-", lead=1,
        alone=r"(?<![0-9])d?d\.ddd\.ddd-[0-9Kk]", beside="ddddddd(?:d)?-[0-9Kk]"),
    _id("mx_curp", 7, "mx.curp", shapes="AAAA000000AAAAAA", alone=f"[A-Z]{{4}}dd{_MM}{_DD}[HMX][A-Z]{{5}}[0-9A-Z]d"),
)  # fmt: skip
