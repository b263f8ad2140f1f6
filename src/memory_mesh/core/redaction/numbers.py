"""Numbers with check sums: payment cards, bank accounts and national ids."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain

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
    luhn,
    marked,
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
_NETWORKS = {
    14: LazyRegex(r"30[0-5]|3095|36|3[89]"),  # Diners Club
    15: LazyRegex(r"3[47]|2131|1800"),  # American Express, old JCB
    # Visa, Mastercard, Discover, JCB, UnionPay
    16: LazyRegex(r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|6011|64[4-9]|65|35(?:2[89]|[3-8])|62"),
}


def _cards(page: Page) -> Iterator[Span]:
    """Match 12 to 19 digits, in one group or in the groups of a card, with a Luhn sum and a known network or a cue word."""
    for run in _RUN.finditer(page.text):
        if len(run[0]) >= _MIN_DIGITS and sum(map(str.isdigit, run[0])) >= _MIN_DIGITS:
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
            if luhn(digits) and _complete(text, span) and (_network(digits) or _called_card(page, span)):
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


def _network(digits: str) -> bool:
    return len(digits) in _NETWORKS and _NETWORKS[len(digits)].match(digits) is not None


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
    turned = plain[4:] + plain[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


CARDS = (
    Pattern(
        id="iban", label="IBAN", finds=_ibans, digits=2, normal=compact, why="An IBAN names a person's bank account.",
        examples=marked("IBAN: «DE89 3704 0044 0532 0130 00»", "pay «gb82west12345698765432» please"),
        counter_examples=("DE89 3704 0044 0532 0130 01", "pod be12-7f9c4d5b6-x2x4z", "FR2024 report"),
    ),
    Pattern(
        id="card", label="CARD", finds=_cards, normal=compact, why="The number of a payment card allows others to pay with it.",
        examples=marked(
            "charged to «4111 1111 1111 1111» yesterday", "Amex «3782-822463-10005»", "my card «4222222222222» expired",
        ),
        counter_examples=(
            "order 4111111111111112", "timestamp 1700000000000000", "0.4111111111111111", "job 4222222222222 is done",
            "ISBN 978-3-16-148410-0",
        ),
    ),
)  # fmt: skip


# --- national ids, with the check sums of python-stdnum ---
# Many are plain runs of digits, and one random run in ten or a hundred passes a check sum. So a number counts without a cue word
# only in a written form that nothing else has. Checks of stdnum that depend on today's date are replaced by checks here: the same
# text must always give the same result.

_GENERAL_CUE = (
    r"national\s(?:id|identity|identification|insurance|number)|identity\s(?:no|number|card|code)|id\s?(?:card|number|no)|personal\s(?:id|code|number"
    r"|identification)|tax\s?(?:payer)?\s?(?:id|number|code|file)|social\s(?:security|insurance)|citizen(?:ship)?\s(?:id|number)"
)

_GENERAL_STEMS = stems_of("national identi id_card idcard id_n idn personal tax social citizen")


@dataclass(frozen=True, slots=True)
class _Id:
    """One country's id. The form `alone` needs no cue word, the form `beside` does."""

    id: str
    what: str
    example: str  # with the id between « and »
    check: str | Callable[[str], bool]  # a module of stdnum, or a function
    stems: str = ""  # of the cue words
    cue: str = ""
    alone: str = ""
    beside: str = ""
    shapes: str = ""  # of `alone`, with 0 for digits and A for letters, separated by |
    lead: int = 0  # how many characters of the form may stand before the shape
    other: str = ""  # a counter-example, where the check sum gives none


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


def _last_ten_luhn(number: str) -> bool:
    return luhn(compact(number)[-10:])


def _any_luhn(number: str) -> bool:
    return luhn(compact(number))


def _as_written(number: str) -> bool:
    return bool(number)


# In a form, d is a digit.
_DD, _MM = "(?:0[1-9]|[12][0-9]|3[01])", "(?:0[1-9]|1[0-2])"
_IDS = (
    _Id("us_ssn", "US social security number", "SSN «512-34-6789»", _area_group_serial, stems="ssn social",
        cue=r"ssn|social\ssec\w*", shapes="000-00-0000|000?00?0000", alone=f"ddd[{DASHES}]dd[{DASHES}]dddd",
        beside="ddd ?dd ?dddd", other="part 000-12-3456"),
    _Id("us_itin", "US individual taxpayer number", "ITIN «912-70-1234»", "us.itin", shapes="000-00-0000", alone="9dd-dd-dddd",
        other="part 912-49-1234"),
    _Id("gb_nino", "UK national insurance number", "my NI number is «AB123456C»", _as_written, stems="nin insurance ni_n",
        cue=r"nino?|insurance|ni\s(?:no|number)", shapes="AA 00 00 00 A",
        alone="(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] dd dd dd [A-D]",
        beside="(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?dd ?dd ?dd ?[A-D]", other="part AB123456C"),
    _Id("gb_nhs", "UK health service number", "NHS «485 777 3457»", "gb.nhs", stems="nhs", cue="nhs",
        beside="ddd[ -]?ddd[ -]?dddd"),
    _Id("ie_pps", "Irish personal public service number", "PPS «4567891O»", "ie.pps", stems="pps", cue="ppsn?",
        beside="ddddddd[A-W][A-IW]?"),
    _Id("ca_sin", "Canadian social insurance number", "SIN: «412-736-589»", "ca.sin", stems="sin nas", cue="sin|nas",
        beside="ddd[ -]?ddd[ -]?ddd"),
    _Id("au_tfn", "Australian tax file number", "TFN «876 543 210»", "au.tfn", stems="tfn", cue="tfn",
        beside="ddd ?ddd ?dd(?:d)?"),
    _Id("de_idnr", "German tax id", "Steuer-ID «86 025 741 906»", "de.idnr", stems="steuer idnr tin", cue=r"steuer\w*|idnr|tin",
        beside="[1-9]d ?ddd ?ddd ?ddd"),
    _Id("at_vnr", "Austrian social insurance number", "SVNR «1239 150785»", "at.vnr", stems="svnr sozialvers vnr",
        cue=r"svnr|sozialversicherungs\w*|vnr", beside="dddd ?dddddd"),
    _Id("ch_ahv", "Swiss social insurance number", "«756.1234.5678.97»", "ch.ssn", stems="ahv avs", cue="ahv|avs",
        shapes="000.0000.0000.00", alone=r"756\.dddd\.dddd\.dd", beside="756dddddddddd"),
    _Id("fr_nir", "French social security number", "«1 85 05 78 006 084 91»", "fr.nir", stems="nir insee sécu secu",
        cue=r"nir|insee|s[eé]cu(?:rit[eé])?(?:\ssociale)?", shapes="0 00 00 00 000 000 00|0 00 00 0A 000 000 00",
        alone="[12] dd dd d[0-9AB] ddd ddd dd", beside="[12]ddddd[0-9AB]dddddddd"),
    _Id("be_nn", "Belgian national number", "«85.07.30-123.35»", _belgian, stems="rijks registre niss insz",
        cue=r"rijksregister\w*|registre\snational|niss|insz", shapes="00.00.00-000", alone=r"dd\.dd\.dd-ddd[. ]dd",
        beside="ddddddddddd", other="85.07.30-123.36"),
    _Id("nl_bsn", "Dutch citizen service number", "BSN «123456782»", "nl.bsn", stems="bsn burgerservice sofi",
        cue="bsn|burgerservicenummer|sofi(?:nummer)?", beside="ddddddddd"),
    _Id("es_dni", "Spanish identity number", "DNI «45678912S»", "es.dni", stems="dni nif", cue="dni|nif", shapes="00000000-A",
        alone="dddddddd-[A-Z]", beside="dddddddd-?[A-Za-z]"),
    _Id("es_nie", "Spanish foreigner's number", "NIE «X4567891E»", "es.nie", stems="nie", cue="nie", shapes="A-0000000-A",
        alone="[XYZ]-ddddddd-[A-Z]", beside="[XYZxyz]-?ddddddd-?[A-Za-z]"),
    _Id("pt_nif", "Portuguese tax number", "NIF «245678913»", "pt.nif", stems="nif contribuinte", cue="nif|contribuinte",
        beside="[1-3]dd ?ddd ?ddd"),
    _Id("it_codice_fiscale", "Italian tax code", "cf «RSSMRA85M01H501Q»", "it.codicefiscale", shapes="AAAAAA00A00A000A",
        alone="[A-Za-z]{6}dd[A-Za-z]dd[A-Za-z]ddd[A-Za-z]"),
    _Id("gr_amka", "Greek social security number", "AMKA «15078512348»", "gr.amka", stems="amka αμκα", cue="amka|αμκα",
        beside="ddddddddddd"),
    _Id("pl_pesel", "Polish personal number", "PESEL: «85073012341»", "pl.pesel", stems="pesel", cue="pesel",
        beside="ddddddddddd"),
    _Id("cz_rc", "Czech and Slovak birth number", "«850715/1235»", "cz.rc", stems="rodn rč r.č", cue=r"rodn[eé]|r\.?č",
        shapes="000000/0000", alone="dddddd/dddd", beside="dddddd/?ddd(?:d)?"),
    _Id("ro_cnp", "Romanian personal code", "CNP «1850715123451»", "ro.cnp", stems="cnp", cue="cnp", beside="[1-8]dddddddddddd"),
    _Id("bg_egn", "Bulgarian civil number", "EGN «8507151233»", "bg.egn", stems="egn егн", cue="egn|егн", beside="dddddddddd"),
    _Id("hr_oib", "Croatian personal number", "OIB «85071512348»", "hr.oib", stems="oib", cue="oib", beside="ddddddddddd"),
    _Id("baltic_code", "Estonian and Lithuanian personal code", "isikukood «38507151237»", "ee.ik", stems="isikukood asmens",
        cue=r"isikukood\w*|asmens\skodas", beside="[1-6]dddddddddd"),
    _Id("fi_hetu", "Finnish personal code", "hetu «150785-456Y»", "fi.hetu", shapes="000000-000|000000+000|000000A000",
        alone=f"{_DD}{_MM}dd[-+A-FU-Y]ddd[0-9A-FHJ-NPR-Y]"),
    _Id("se_personnummer", "Swedish personal number", "personnummer «850715-1234»", _last_ten_luhn,
        stems="personnummer samordning pnr", cue="personnummer|samordningsnummer|pnr", beside=f"(?:19|20)?dd{_MM}dd[-+]?dddd"),
    _Id("dk_cpr", "Danish personal number", "CPR «150785-1234»", _as_written, stems="cpr", cue="cpr",
        beside=f"{_DD}{_MM}dd[- ]?dddd"),
    _Id("no_fodselsnummer", "Norwegian birth number", "fødselsnummer «15078510150»", _norwegian, stems="dselsn personnummer fnr",
        cue=r"f[oø]dselsn\w*|personnummer|fnr", beside="dddddd ?ddddd"),
    _Id("is_kennitala", "Icelandic id", "kennitala «150785-2359»", "is_.kennitala", stems="kennitala", cue="kennitala",
        beside="dddddd-?dddd"),
    _Id("tr_kimlik", "Turkish identity number", "TC Kimlik «12345678950»", "tr.tckimlik", stems="kimlik tckn",
        cue=r"t\.?c\.?\s?kimlik|kimlik|tckn", beside="[1-9]dddddddddd"),
    _Id("il_id", "Israeli identity number", "teudat zehut «234567899»", "il.idnr", stems="zehut זהות ת.ז",
        cue=r"teudat\szehut|תעודת\sזהות|ת\.ז", beside="ddddddddd"),
    _Id("za_id", "South African identity number", "SA ID «8507155123082»", _any_luhn, stems="sa_id south_africa",
        cue=r"sa\sid|rsa\sid|south\safrican?", beside=f"dd{_MM}{_DD}dddd[01]dd"),
    _Id("in_aadhaar", "Indian Aadhaar number", "Aadhaar «4821 7391 0568»", "in_.aadhaar", stems="aad uidai",
        cue="aadh?aa?r|uidai", beside="[2-9]ddd[ -]?dddd[ -]?dddd"),
    _Id("cn_ric", "Chinese resident identity number", "身份证 «110105198507151238»", "cn.ric", shapes="00000000000000000",
        alone=f"[1-9]ddddd(?:19|20)dd{_MM}{_DD}ddd[0-9Xx]"),
    _Id("kr_rrn", "Korean resident number", "«850715-1234568»", "kr.rrn", shapes="000000-0000000",
        alone=f"dd{_MM}{_DD}-[1-8]dddddd"),
    _Id("jp_my_number", "Japanese individual number", "マイナンバー «1234 5678 9018»", "jp.in_",
        stems="my_number マイナンバー 個人番号", cue=r"my\snumber|マイナンバー|個人番号", beside="dddd[ -]?dddd[ -]?dddd"),
    _Id("th_pin", "Thai identity number", "«1-1234-56789-01-4»", "th.pin", stems="บัตร", cue="บัตรประชาชน",
        shapes="0-0000-00000-00-0", alone="[1-8]-dddd-ddddd-dd-d", beside="[1-8]dddddddddddd"),
    _Id("br_cpf", "Brazilian taxpayer number", "CPF «123.456.789-09»", "br.cpf", stems="cpf", cue="cpf", shapes="000.000.000-00",
        alone=r"ddd\.ddd\.ddd-dd", beside="ddddddddd-?dd"),
    _Id("cl_rut", "Chilean identity number", "RUT «12.345.678-5»", "cl.rut", stems="rut run", cue="ru[tn]", shapes="0.000.000-",
        lead=1, alone=r"(?<![0-9])d?d\.ddd\.ddd-[0-9Kk]", beside="ddddddd(?:d)?-[0-9Kk]"),
    _Id("mx_curp", "Mexican population code", "CURP «LOPM850715HDFPRR09»", "mx.curp", shapes="AAAA000000AAAAAA",
        alone=f"[A-Z]{{4}}dd{_MM}{_DD}[HMX][A-Z]{{5}}[0-9A-Z]d"),
)  # fmt: skip


def _valid(number: str, check: str | Callable[[str], bool]) -> bool:
    if callable(check):
        return check(number)
    # Imported late: stdnum is slow to import, and few texts have a candidate.
    return bool(import_module(f"stdnum.{check}").is_valid(number))


def _finder(row: _Id) -> Callable[[Page], Iterator[Span]]:
    def find(page: Page) -> Iterator[Span]:
        for span in chain(_alone(page, row), _beside(page, row)):
            if stands_alone(page.text, span) and _valid(page.text[slice(*span)], row.check):
                yield span

    return find


def _alone(page: Page, row: _Id) -> Iterator[Span]:
    """Match the form wherever the text has its shape."""
    for shape in filter(None, row.shapes.encode().split(b"|")):
        for place in occurrences(page.shape, shape):
            found = _form(row.alone).match(page.text, max(0, place - row.lead))
            if found:
                yield found.span()


def _beside(page: Page, row: _Id) -> Iterator[Span]:
    if not row.beside:
        return
    for stems in (_cue(row).stems, _GENERAL_STEMS):
        for start, end in page.numbered(stems):
            for found in _form(row.beside).finditer(page.text, start, end):
                if _cue(row).confirms(page.text, found.span()):
                    yield found.span()


@cache
def _form(form: str) -> LazyRegex:
    # A regex that starts with a character class instead of a repeat is searched three times as fast.
    return LazyRegex(re.sub("d+", lambda run: "[0-9]" + (f"[0-9]{{{len(run[0]) - 1}}}" if len(run[0]) > 1 else ""), form))


@cache
def _cue(row: _Id) -> Cue:
    return Cue(row.stems, f"{row.cue}|{_GENERAL_CUE}")


def _pattern(row: _Id) -> Pattern:
    (example,) = marked(row.example)
    needs = "this form or a cue word" if row.alone and row.beside else "this form" if row.alone else "a cue word"
    return Pattern(
        id=row.id,
        label="US_SSN" if row.id == "us_ssn" else "NATIONAL_ID",
        why=f"{row.what}; requires {needs}.",
        finds=_finder(row),
        digits=sum(map(str.isdigit, example.masked)) - 1,  # some forms have one digit fewer than the example
        normal=compact,
        examples=(example,),
        counter_examples=tuple(_counter_examples(row, example)),
    )


def _counter_examples(row: _Id, example: Example) -> Iterator[str]:
    if row.other:
        yield row.other
    elif not row.alone:
        yield f"part {example.masked}"  # no cue word
    if isinstance(row.check, str) and not row.other:
        wrong = "7" if example.masked[-1] != "7" else "3"
        yield example.text.replace(example.masked, example.masked[:-1] + wrong)


NATIONAL_IDS = tuple(_pattern(row) for row in _IDS)
PATTERNS = (*CARDS, *NATIONAL_IDS)
