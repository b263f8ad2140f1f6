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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Id:
    """One country's id. The form `alone` needs no cue word, the form `beside` does."""

    id: str
    what: str
    cue: str = ""
    alone: str = ""
    beside: str = ""
    check: str | Callable[[str], bool] = ""
    stems: str = ""  # of the cue words
    shapes: tuple[str, ...] = ()  # of `alone`, with 0 for digits and A for letters
    lead: int = 0  # how many characters of the form may stand before the shape
    example: str
    masked: str
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
    _Id(id="us_ssn", shapes=("000-00-0000", "000?00?0000"), stems="ssn social", what="US social security number",
        cue=r"ssn|social\ssec\w*", alone=rf"ddd[{DASHES}]dd[{DASHES}]dddd", beside="ddd ?dd ?dddd", check=_area_group_serial,
        example="SSN 512-34-6789", masked="512-34-6789", other="part 000-12-3456"),
    _Id(id="us_itin", shapes=("000-00-0000",), what="US individual taxpayer number", alone="9dd-dd-dddd", check="us.itin",
        example="ITIN 912-70-1234", masked="912-70-1234", other="part 912-49-1234"),
    _Id(id="gb_nino", shapes=("AA 00 00 00 A",), stems="nin insurance ni_n", what="UK national insurance number",
        cue=r"nino?|insurance|ni\s(?:no|number)", check=_as_written,
        alone="(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] dd dd dd [A-D]",
        beside="(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?dd ?dd ?dd ?[A-D]",
        example="my NI number is AB123456C", masked="AB123456C", other="part AB123456C"),
    _Id(id="gb_nhs", stems="nhs", what="UK health service number", cue="nhs", beside="ddd[ -]?ddd[ -]?dddd", check="gb.nhs",
        example="NHS 485 777 3457", masked="485 777 3457"),
    _Id(id="ie_pps", stems="pps", what="Irish personal public service number", cue="ppsn?", beside="ddddddd[A-W][A-IW]?",
        check="ie.pps", example="PPS 4567891O", masked="4567891O"),
    _Id(id="ca_sin", stems="sin nas", what="Canadian social insurance number", cue="sin|nas", beside="ddd[ -]?ddd[ -]?ddd",
        check="ca.sin", example="SIN: 412-736-589", masked="412-736-589"),
    _Id(id="au_tfn", stems="tfn", what="Australian tax file number", cue="tfn", beside="ddd ?ddd ?dd(?:d)?", check="au.tfn",
        example="TFN 876 543 210", masked="876 543 210"),
    _Id(id="de_idnr", stems="steuer idnr tin", what="German tax id", cue=r"steuer\w*|idnr|tin", beside="[1-9]d ?ddd ?ddd ?ddd",
        check="de.idnr", example="Steuer-ID 86 025 741 906", masked="86 025 741 906"),
    _Id(id="at_vnr", stems="svnr sozialvers vnr", what="Austrian social insurance number",
        cue=r"svnr|sozialversicherungs\w*|vnr", beside="dddd ?dddddd", check="at.vnr", example="SVNR 1239 150785",
        masked="1239 150785"),
    _Id(id="ch_ahv", shapes=("000.0000.0000.00",), stems="ahv avs", what="Swiss social insurance number", cue="ahv|avs",
        alone=r"756\.dddd\.dddd\.dd", beside="756dddddddddd", check="ch.ssn", example="756.1234.5678.97",
        masked="756.1234.5678.97"),
    _Id(id="fr_nir", shapes=("0 00 00 00 000 000 00", "0 00 00 0A 000 000 00"), stems="nir insee sécu secu",
        what="French social security number", cue=r"nir|insee|s[eé]cu(?:rit[eé])?(?:\ssociale)?",
        alone="[12] dd dd d[0-9AB] ddd ddd dd", beside="[12]ddddd[0-9AB]dddddddd", check="fr.nir",
        example="1 85 05 78 006 084 91", masked="1 85 05 78 006 084 91"),
    _Id(id="be_nn", shapes=("00.00.00-000",), stems="rijks registre niss insz", what="Belgian national number",
        cue=r"rijksregister\w*|registre\snational|niss|insz", check=_belgian, alone=r"dd\.dd\.dd-ddd[. ]dd",
        beside="ddddddddddd", example="85.07.30-123.35", masked="85.07.30-123.35", other="85.07.30-123.36"),
    _Id(id="nl_bsn", stems="bsn burgerservice sofi", what="Dutch citizen service number",
        cue="bsn|burgerservicenummer|sofi(?:nummer)?", beside="ddddddddd", check="nl.bsn", example="BSN 123456782",
        masked="123456782"),
    _Id(id="es_dni", shapes=("00000000-A",), stems="dni nif", what="Spanish identity number", cue="dni|nif",
        alone="dddddddd-[A-Z]", beside="dddddddd-?[A-Za-z]", check="es.dni", example="DNI 45678912S", masked="45678912S"),
    _Id(id="es_nie", shapes=("A-0000000-A",), stems="nie", what="Spanish foreigner's number", cue="nie",
        alone="[XYZ]-ddddddd-[A-Z]", beside="[XYZxyz]-?ddddddd-?[A-Za-z]", check="es.nie", example="NIE X4567891E",
        masked="X4567891E"),
    _Id(id="pt_nif", stems="nif contribuinte", what="Portuguese tax number", cue="nif|contribuinte", beside="[1-3]dd ?ddd ?ddd",
        check="pt.nif", example="NIF 245678913", masked="245678913"),
    _Id(id="it_codice_fiscale", shapes=("AAAAAA00A00A000A",), what="Italian tax code", check="it.codicefiscale",
        alone="[A-Za-z]{6}dd[A-Za-z]dd[A-Za-z]ddd[A-Za-z]", example="cf RSSMRA85M01H501Q", masked="RSSMRA85M01H501Q"),
    _Id(id="gr_amka", stems="amka αμκα", what="Greek social security number", cue="amka|αμκα", beside="ddddddddddd",
        check="gr.amka", example="AMKA 15078512348", masked="15078512348"),
    _Id(id="pl_pesel", stems="pesel", what="Polish personal number", cue="pesel", beside="ddddddddddd", check="pl.pesel",
        example="PESEL: 85073012341", masked="85073012341"),
    _Id(id="cz_rc", shapes=("000000/0000",), stems="rodn rč r.č", what="Czech and Slovak birth number", cue=r"rodn[eé]|r\.?č",
        alone="dddddd/dddd", beside="dddddd/?ddd(?:d)?", check="cz.rc", example="850715/1235", masked="850715/1235"),
    _Id(id="ro_cnp", stems="cnp", what="Romanian personal code", cue="cnp", beside="[1-8]dddddddddddd", check="ro.cnp",
        example="CNP 1850715123451", masked="1850715123451"),
    _Id(id="bg_egn", stems="egn егн", what="Bulgarian civil number", cue="egn|егн", beside="dddddddddd", check="bg.egn",
        example="EGN 8507151233", masked="8507151233"),
    _Id(id="hr_oib", stems="oib", what="Croatian personal number", cue="oib", beside="ddddddddddd", check="hr.oib",
        example="OIB 85071512348", masked="85071512348"),
    _Id(id="baltic_code", stems="isikukood asmens", what="Estonian and Lithuanian personal code",
        cue=r"isikukood\w*|asmens\skodas", beside="[1-6]dddddddddd", check="ee.ik", example="isikukood 38507151237",
        masked="38507151237"),
    _Id(id="fi_hetu", shapes=("000000-000", "000000+000", "000000A000"), what="Finnish personal code",
        alone=rf"{_DD}{_MM}dd[-+A-FU-Y]ddd[0-9A-FHJ-NPR-Y]", check="fi.hetu", example="hetu 150785-456Y", masked="150785-456Y"),
    _Id(id="se_personnummer", stems="personnummer samordning pnr", what="Swedish personal number",
        cue="personnummer|samordningsnummer|pnr", beside=rf"(?:19|20)?dd{_MM}dd[-+]?dddd", check=_last_ten_luhn,
        example="personnummer 850715-1234", masked="850715-1234"),
    _Id(id="dk_cpr", stems="cpr", what="Danish personal number", cue="cpr", beside=rf"{_DD}{_MM}dd[- ]?dddd", check=_as_written,
        example="CPR 150785-1234", masked="150785-1234"),
    _Id(id="no_fodselsnummer", stems="dselsn personnummer fnr", what="Norwegian birth number",
        cue=r"f[oø]dselsn\w*|personnummer|fnr", beside="dddddd ?ddddd", check=_norwegian, example="fødselsnummer 15078510150",
        masked="15078510150"),
    _Id(id="is_kennitala", stems="kennitala", what="Icelandic id", cue="kennitala", beside="dddddd-?dddd",
        check="is_.kennitala", example="kennitala 150785-2359", masked="150785-2359"),
    _Id(id="tr_kimlik", stems="kimlik tckn", what="Turkish identity number", cue=r"t\.?c\.?\s?kimlik|kimlik|tckn",
        beside="[1-9]dddddddddd", check="tr.tckimlik", example="TC Kimlik 12345678950", masked="12345678950"),
    _Id(id="il_id", stems="zehut זהות ת.ז", what="Israeli identity number", cue=r"teudat\szehut|תעודת\sזהות|ת\.ז",
        beside="ddddddddd", check="il.idnr", example="teudat zehut 234567899", masked="234567899"),
    _Id(id="za_id", stems="sa_id south_africa", what="South African identity number", cue=r"sa\sid|rsa\sid|south\safrican?",
        beside=rf"dd{_MM}{_DD}dddd[01]dd", check=_any_luhn, example="SA ID 8507155123082", masked="8507155123082"),
    _Id(id="in_aadhaar", stems="aad uidai", what="Indian Aadhaar number", cue="aadh?aa?r|uidai",
        beside="[2-9]ddd[ -]?dddd[ -]?dddd", check="in_.aadhaar", example="Aadhaar 4821 7391 0568", masked="4821 7391 0568"),
    _Id(id="cn_ric", shapes=("00000000000000000",), what="Chinese resident identity number",
        alone=rf"[1-9]ddddd(?:19|20)dd{_MM}{_DD}ddd[0-9Xx]", check="cn.ric", example="身份证 110105198507151238",
        masked="110105198507151238"),
    _Id(id="kr_rrn", shapes=("000000-0000000",), what="Korean resident number", alone=rf"dd{_MM}{_DD}-[1-8]dddddd",
        check="kr.rrn", example="850715-1234568", masked="850715-1234568"),
    _Id(id="jp_my_number", stems="my_number マイナンバー 個人番号", what="Japanese individual number",
        cue=r"my\snumber|マイナンバー|個人番号",
        beside="dddd[ -]?dddd[ -]?dddd", check="jp.in_", example="マイナンバー 1234 5678 9018", masked="1234 5678 9018"),
    _Id(id="th_pin", shapes=("0-0000-00000-00-0",), stems="บัตร", what="Thai identity number", cue="บัตรประชาชน",
        alone="[1-8]-dddd-ddddd-dd-d", beside="[1-8]dddddddddddd", check="th.pin", example="1-1234-56789-01-4",
        masked="1-1234-56789-01-4"),
    _Id(id="br_cpf", shapes=("000.000.000-00",), stems="cpf", what="Brazilian taxpayer number", cue="cpf",
        alone=r"ddd\.ddd\.ddd-dd", beside="ddddddddd-?dd", check="br.cpf", example="CPF 123.456.789-09",
        masked="123.456.789-09"),
    _Id(id="cl_rut", shapes=("0.000.000-",), lead=1, stems="rut run", what="Chilean identity number", cue="ru[tn]",
        alone=r"(?<![0-9])d?d\.ddd\.ddd-[0-9Kk]", beside="ddddddd(?:d)?-[0-9Kk]", check="cl.rut", example="RUT 12.345.678-5",
        masked="12.345.678-5"),
    _Id(id="mx_curp", shapes=("AAAA000000AAAAAA",), what="Mexican population code",
        alone=rf"[A-Z]{{4}}dd{_MM}{_DD}[HMX][A-Z]{{5}}[0-9A-Z]d", check="mx.curp", example="CURP LOPM850715HDFPRR09",
        masked="LOPM850715HDFPRR09"),
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
    for shape in row.shapes:
        for place in occurrences(page.shape, shape.encode()):
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
    return Pattern(
        id=row.id,
        label="US_SSN" if row.id == "us_ssn" else "NATIONAL_ID",
        why=f"{row.what}; requires {_needs(row)}.",
        finds=_finder(row),
        digits=sum(map(str.isdigit, row.masked)) - 1,  # some forms have one digit fewer than the example
        normal=compact,
        examples=marked(row.example.replace(row.masked, f"«{row.masked}»")),
        counter_examples=tuple(_wrong(row)),
    )


def _needs(row: _Id) -> str:
    return "this form or a cue word" if row.alone and row.beside else "this form" if row.alone else "a cue word"


def _wrong(row: _Id) -> Iterator[str]:
    if row.other:
        yield row.other
    elif not row.alone:
        yield f"part {row.masked}"  # no cue word
    if isinstance(row.check, str) and not row.other:
        wrong = "7" if row.masked[-1] != "7" else "3"
        yield row.example.replace(row.masked, row.masked[:-1] + wrong)


NATIONAL_IDS = tuple(_pattern(row) for row in _IDS)
PATTERNS = (*CARDS, *NATIONAL_IDS)
