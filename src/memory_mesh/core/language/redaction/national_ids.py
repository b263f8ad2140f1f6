"""Find national ids by their check sums, and numbers of identity documents by their names.

Many ids are plain runs of digits, and one random run in ten or a hundred passes a check sum. So a
number counts without a cue word only in a written form that nothing else has. Most check sums are
those of python-stdnum; checks of stdnum that depend on today's date are replaced by checks here:
the same text must always give the same result.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from memory_mesh.core.language.redaction.pattern import (
    AFTER,
    BEFORE,
    DASHES,
    MANY,
    Cue,
    Page,
    Pattern,
    Span,
    compact,
    joined,
    luhn,
    present,
    stands_alone,
    stems_of,
)
from memory_mesh.core.language.redaction.phone import names_goods
from memory_mesh.core.text import LazyRegex

_GENERAL = Cue(
    "national identi id_card idcard my_id his_id her_id your_id their_id personal tax "
    "social citizen",
    r"national\s(?:id|identity|identification|insurance|number)|identity\s(?:no|number|card|code)|"
    r"(?:my|his|her|your|their)\sid\s?(?:number|no)?|id\s?card|personal\s(?:id|code|number|"
    r"identification)|tax\s?(?:payer)?\s?(?:id|number|code|file)|social\s(?:security|insurance)|"
    r"citizen(?:ship)?\s(?:id|number)",
)


@dataclass(frozen=True, slots=True, eq=False)
class _Id:
    """One country's id: the check of its number, and one of two forms: `alone` needs no cue
    word, `beside` does."""

    id: str
    label: str
    digits: int
    check: str | Callable[[str], bool]
    cues: Cue
    shapes: tuple[bytes, ...]
    lead: int
    alone: LazyRegex
    beside: LazyRegex | None
    general: bool

    def spans(self, page: Page, named: "_Named") -> Iterator[Span]:
        for start, end in self._candidates(page, named):
            if page.once(self.is_valid, page.text[start:end]):
                yield start, end

    def is_valid(self, number: str) -> bool:
        return _checked(number, self.check)

    def _candidates(self, page: Page, named: "_Named") -> Iterator[Span]:
        for place in (
            place for shape in self.shapes for place in _places(page.shape, shape, self.lead)
        ):
            found = self.alone.match(page.text, max(0, place - self.lead))
            if found is None and self.lead:
                found = self.alone.match(page.text, place)
            if found and named.stands_alone(found.span()) and not names_goods(page, found.start()):
                yield found.span()
        if self.beside is None:
            return
        general, own = self.id in named.general, named.has(self.cues)
        for stretch in [
            *page.numbered(self.cues.stems),
            *(page.numbered(_GENERAL.stems) if general else ()),
        ]:
            for found in self.beside.finditer(page.text, *stretch):
                span = found.span()
                if b"0" in (page.shape[span[0] - 1 : span[0]], page.shape[span[1] : span[1] + 1]):
                    continue  # part of a longer number
                near = (own and named.near(self.cues, span)) or (
                    general and named.near(_GENERAL, span)
                )
                if near and named.stands_alone(span):
                    yield span
        if own and self.check not in (bool, _area_group_serial):
            yield from self._regrouped(page, self.beside, named)

    def _regrouped(self, page: Page, form: LazyRegex, named: "_Named") -> Iterator[Span]:
        """Yield numbers near a cue word whose groups are others than those of the form: `BSN
        123.456.782`."""
        for stretch in page.numbered(self.cues.stems):
            for found in _GROUPS.finditer(page.text, *stretch):
                for span in {found.span(), found.span(1)}:
                    if form.fullmatch(compact(page.text[slice(*span)])) and named.near(
                        self.cues, span
                    ):
                        yield span


class _Named:
    """The words of a text that may name ids. What is the same for all ids is found out once for
    each number, not for each id."""

    def __init__(self, page: Page) -> None:
        self._text, self._lower = page.text, page.text.casefold()
        # The label of a mask may be a cue.
        self._zeroed = page.zeroed if page.unmasked is page.text else page.text
        self._alone: dict[Span, bool] = {}
        self._near: dict[tuple[Cue, str, str], bool] = {}
        self.unchecked = _unchecked(page, self)
        # The ids for which words such as `id card` are cues.
        self.general = (
            () if not page.holds(_GENERAL.stems) else ("us_ssn",) if self.unchecked else _BESIDE
        )

    def has(self, cues: Cue) -> bool:
        return any(stem in self._lower for stem in cues.stems)

    def stands_alone(self, span: Span) -> bool:
        if span not in self._alone:
            self._alone[span] = stands_alone(self._text, span)
        return self._alone[span]

    def near(self, cues: Cue, span: Span) -> bool:
        """Return whether a cue word is near, which depends on no digits."""
        start, end = span
        key = (
            cues,
            self._zeroed[max(0, start - BEFORE - 1) : start],
            self._zeroed[end - 1 : end + AFTER],
        )
        if key not in self._near:
            self._near[key] = cues.confirms(self._text, span)
        return self._near[key]


def _id(
    id_: str, digits: int, check: str | Callable[[str], bool], *, label: str = "NATIONAL_ID",
    stems: str = "", cue: str = "", shapes: str = "", lead: int = 0, alone: str = "",
    beside: str = "", general: bool = True,
) -> _Id:  # fmt: skip
    """Declare an id with at least so many digits. `check` is a module of stdnum or a function.

    `stems` are those of the cue words, by default the words. `shapes` are those of `alone`, with 0
    for digits and A for letters, separated by |; `lead` characters of the form may stand before the
    shape. Without `general`, words such as `id card` are no cues.
    """
    cues = Cue(stems or cue.replace("|", " "), cue)
    all_shapes = tuple(shapes.encode().split(b"|")) if shapes else ()
    return _Id(
        id_,
        label,
        digits,
        check,
        cues,
        all_shapes,
        lead,
        _form(alone),
        _form(beside) if beside else None,
        general,
    )


# Groups of digits with the same kinds of signs between them as in other numbers, and perhaps a
# letter before and after them.
_SEP = rf"(?:[ ]?[ ._/·{DASHES}][ ]?)"
_GROUPS = LazyRegex(
    rf"(?<![A-Za-z0-9])(?:[A-Za-z]{_SEP}?)?([0-9]{{1,9}}(?:{_SEP}[0-9]{{1,9}}){{0,6}})(?:{_SEP}?"
    r"[A-Za-z])?(?![A-Za-z0-9])"
)


def _form(form: str) -> LazyRegex:
    # A regex that starts with a character class instead of a repeat is searched three times as
    # fast.
    return LazyRegex(
        re.sub(
            "d+",
            lambda run: "[0-9]" + (f"[0-9]{{{len(run[0]) - 1}}}" if len(run[0]) > 1 else ""),
            form,
        )
    )


def _valid(number: str, check: str | Callable[[str], bool]) -> bool:
    if callable(check):
        return check(number)
    try:
        return bool(_of_stdnum(check)(number))
    except KeyError:  # it looks a Chinese county up last, and lacks some
        return True


@cache
def _of_stdnum(module: str) -> Callable[[str], bool]:
    # Imported late: stdnum is slow to import, and few texts have a candidate.
    found: Callable[[str], bool] = import_module(f"stdnum.{module}").is_valid
    return found


def _checked(number: str, check: str | Callable[[str], bool]) -> bool:
    """Check a number as it is written, and else without any separators."""
    plain = compact(number) if isinstance(check, str) else number
    return _valid(number, check) or (plain != number and _valid(plain, check))


def _area_group_serial(number: str) -> bool:
    """Check an SSN, which has no check digit, against the ranges never issued."""
    digits = compact(number)
    return (
        digits[:3] not in ("000", "666")
        and digits[0] != "9"
        and digits[3:5] != "00"
        and digits[5:] != "0000"
    )


def _belgian(number: str) -> bool:
    digits = compact(number)
    return any(97 - int(century + digits[:9]) % 97 == int(digits[9:]) for century in ("", "2"))


def _norwegian(number: str) -> bool:
    digits = [int(char) for char in compact(number)]
    first = sum(a * b for a, b in zip((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), digits, strict=False))
    second = sum(a * b for a, b in zip((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), digits, strict=True))
    return first % 11 == 0 and second % 11 == 0


def _sums_to(
    *weights: int, modulus: int, check: Callable[[int], int] = lambda rest: rest
) -> Callable[[str], bool]:
    """Return a check: the weighted sum of the first digits, modulo `modulus`, gives the digit
    after them."""

    def valid(number: str) -> bool:
        digits = [int(char) for char in compact(number) if char.isdigit()]
        return (
            check(sum(a * b for a, b in zip(weights, digits, strict=False)) % modulus)
            == digits[len(weights)]
        )

    return valid


def _luhn(number: str) -> bool:
    return luhn("".join(filter(str.isdigit, number)))


_SINGAPORE = {
    "S": "JZIHGFEDCBA",
    "T": "GFEDCBAJZIH",
    "F": "XWUTRQPNMLK",
    "G": "RQPNMLKXWUT",
    "M": "NPQRTUWXKLJ",
}


def _singapore(number: str) -> bool:
    plain = compact(number)
    total = sum(a * int(b) for a, b in zip((2, 7, 6, 5, 4, 3, 2), plain[1:8], strict=True))
    return plain[8] == _SINGAPORE[plain[0]][total % 11]


def _hong_kong(number: str) -> bool:
    plain = compact(number).rjust(9)
    values = [36 if char == " " else int(char, 36) for char in plain]
    return sum(a * b for a, b in zip(range(9, 0, -1), values, strict=True)) % 11 == 0


def _taiwan(number: str) -> bool:
    plain = compact(number)
    first = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(plain[0]) + 10
    digits = [first // 10, first % 10, *map(int, plain[1:])]
    return (
        sum(a * b for a, b in zip((1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), digits, strict=True)) % 10 == 0
    )


def _snils(number: str) -> bool:
    digits = [int(char) for char in compact(number)]
    rest = sum(a * b for a, b in zip(range(9, 0, -1), digits, strict=False)) % 101 % 100
    return rest == digits[9] * 10 + digits[10]


def _german_insurance(number: str) -> bool:
    plain = compact(number)
    digits = f"{plain[:8]}{ord(plain[8]) - 64:02d}{plain[9:]}"
    products = (
        int(digit) * weight
        for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=False)
    )
    return sum(sum(divmod(product, 10)) for product in products) % 10 == int(digits[12])


def _iranian(number: str) -> bool:
    digits = [int(char) for char in compact(number)]
    rest = sum(a * b for a, b in zip(range(10, 1, -1), digits, strict=False)) % 11
    return digits[9] == (rest if rest < 2 else 11 - rest)


# In a form, d is a digit.
_DD, _MM = "(?:0[1-9]|[12][0-9]|3[01])", "(?:0[1-9]|1[0-2])"
_NINO = "(?i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?<!BG|GB|KN|NK|NT|TN|ZZ))"
_IDS = (
    _id("us_ssn", 8, _area_group_serial, stems="ssn social ss# soc",
        cue=r"ssn|ss#|soc(?:ial)?\.?\ssec\w*", shapes="000-00-0000|000?00?0000",
        alone=f"ddd[{DASHES}]dd[{DASHES}]dddd",
        beside=f"ddd[{DASHES} ._/·]{{0,3}}dd[{DASHES} ._/·]{{0,3}}dddd", label="US_SSN"),
    _id("us_itin", 8, lambda number: _valid(compact(number), "us.itin"),
        stems="itin taxpayer", cue=r"itin|taxpayer", shapes="000-00-0000", alone="9dd-dd-dddd",
        beside="9dd[ -]?dd[ -]?dddd"),
    _id("us_mbi", 4, bool, stems="mbi medicare", cue="mbi|medicare",
        shapes="0AA0-AA0-AA00|0A00-AA0-AA00|0AA0-A00-AA00|0A00-A00-AA00",
        alone="[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]d-[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]d-"
              "[AC-HJKMNP-RT-Y]{2}dd",
        beside="[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]d[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]d"
               "[AC-HJKMNP-RT-Y]{2}dd",
        general=False),
    _id("gb_nino", 5, bool, stems="nin insurance ni_n", cue=r"nino?|insurance|ni\s(?:no|number)",
        shapes="AA 00 00 00 A", alone=f"{_NINO} dd dd dd (?i:[A-D])",
        beside=f"{_NINO}[ -]?dd[ -]?dd[ -]?dd[ -]?(?i:[A-D])"),
    _id("gb_nhs", 9, "gb.nhs", cue="nhs", beside="ddd[ -]?ddd[ -]?dddd"),
    _id("gb_utr", 9, "gb.utr", stems="utr taxpayer", cue=r"utr|unique\staxpayer\sref\w*",
        beside="ddddd ?ddddd", general=False),
    _id("ie_pps", 6, "ie.pps", stems="pps public_service", cue=r"ppsn?|personal\spublic\sservice",
        beside="ddddddd ?[A-Wa-w][A-IWa-iw]?"),
    _id("ca_sin", 8, "ca.sin", cue="sin|nas", beside="ddd[ -]?ddd[ -]?ddd"),
    _id("au_tfn", 8, "au.tfn", cue="tfn", beside="ddd ?ddd ?dd(?:d)?"),
    _id("au_medicare", 9, _sums_to(1, 3, 7, 9, 1, 3, 7, 9, modulus=10), cue="medicare",
        beside="[2-6]ddd[ -]?ddddd[ -]?d(?:[ /-]?d)?",
        general=False),
    _id("nz_ird", 7, "nz.ird", cue="ird", beside="d?dd[ -]?ddd[ -]?ddd", general=False),
    _id("de_idnr", 10, "de.idnr", stems="steuer idnr tin", cue=r"steuer\w*|idnr|tin",
        beside="[1-9]d ?ddd ?ddd ?ddd"),
    _id("de_insurance", 10, _german_insurance, stems="rentenvers sozialvers svnr",
        shapes="00 000000 A 000", cue=r"rentenversicherungs\w*|sozialversicherungs\w*|svnr",
        alone=f"dd {_DD}{_MM}dd [A-Z] ddd", beside=f"dd ?{_DD}{_MM}dd ?[A-Z] ?ddd", general=False),
    _id("at_vnr", 9, "at.vnr", stems="svnr sozialvers vnr", cue=r"svnr|sozialversicherungs\w*|vnr",
        beside="dddd ?dddddd"),
    _id("ch_ahv", 12, "ch.ssn", cue="ahv|avs", shapes="000.0000.0000.00",
        alone=r"756\.dddd\.dddd\.dd", beside="756dddddddddd"),
    _id("fr_nir", 14, "fr.nir", stems="nir insee sécu secu",
        cue=r"nir|insee|s[eé]cu(?:rit[eé])?(?:\ssociale)?",
        shapes="0 00 00 00 000 000 00|0 00 00 0A 000 000 00",
        alone="[12] dd dd d[0-9AB] ddd ddd dd", beside="[12]ddddd[0-9AB]dddddddd"),
    _id("fr_nif", 12, "fr.nif", stems="fiscal spi", cue=r"(?:num[eé]ro|identifiant)\sfiscal|spi",
        beside="[0-3]d ?dd ?ddd ?ddd ?ddd",
        general=False),
    _id("be_nn", 10, _belgian, stems="rijks registre niss insz",
        cue=r"rijksregister\w*|registre\snational|niss|insz", shapes="00.00.00-000",
        alone=r"dd\.dd\.dd-ddd[. ]dd", beside="ddddddddddd"),
    _id("nl_bsn", 8, "nl.bsn", stems="bsn burgerservice sofi",
        cue="bsn|burgerservicenummer|sofi(?:nummer)?", beside="ddddddddd"),
    _id("es_dni", 7, "es.dni", stems="dni nif identidad fiscal",
        cue=r"dni|nif|documento\snacional\sde\sidentidad|identificaci[oó]n\sfiscal",
        shapes="00000000-A", alone="dddddddd-[A-Z]", beside="dddddddd-?[A-Za-z]"),
    _id("es_nie", 6, "es.nie", stems="nie extranjer",
        cue=r"nie|identi(?:dad|ficaci[oó]n)\sde\sextranjer[oa]s?", shapes="A-0000000-A",
        alone="[XYZ]-ddddddd-[A-Z]",
        beside="[XYZxyz]-?ddddddd-?[A-Za-z]"),
    _id("pt_nif", 8, "pt.nif", stems="nif contribuinte fiscal",
        cue=r"nif|contribuinte|identifica[cç][aã]o\sfiscal", beside="[1-3]dd ?ddd ?ddd"),
    _id("it_codice_fiscale", 6, "it.codicefiscale", shapes="AAAAAA00A00A000A",
        alone="[A-Za-z]{6}dd[A-Za-z]dd[A-Za-z]ddd[A-Za-z]"),
    _id("gr_amka", 10, "gr.amka", cue="amka|αμκα", beside="ddddddddddd"),
    _id("gr_afm", 8, "gr.vat", cue="αφμ|afm", beside="ddddddddd", general=False),
    _id("pl_pesel", 10, "pl.pesel", cue="pesel", beside="ddddddddddd"),
    _id("pl_nip", 9, "pl.nip", stems="nip identyfikacji", cue=r"nip|identyfikacji\spodatkowej",
        beside="ddd-?ddd-?dd-?dd", general=False),
    _id("cz_rc", 9, "cz.rc", stems="rodn rč r.č", cue=r"rodn[eé]|r\.?č", shapes="000000/0000",
        alone="dddddd/dddd", beside="dddddd/?ddd(?:d)?"),
    _id("hu_taj", 8, _sums_to(3, 7, 3, 7, 3, 7, 3, 7, modulus=10), cue="taj",
        beside="ddd[ -]?ddd[ -]?ddd", general=False),
    _id("hu_tax", 9, _sums_to(1, 2, 3, 4, 5, 6, 7, 8, 9, modulus=11), stems="adóazon adoazon",
        cue=r"ad[oó]azonos[ií]t[oó]\w*", beside="8ddddddddd", general=False),
    _id("ro_cnp", 12, "ro.cnp", stems="cnp numeric_personal", cue=r"cnp|codul?\snumeric\spersonal",
        beside="[1-8]dddddddddddd"),
    _id("bg_egn", 9, "bg.egn", stems="egn егн граждански", cue=r"egn|егн|единен\sграждански\sномер",
        beside="dddddddddd"),
    _id("yu_jmbg", 12, "si.emso", stems="jmbg emšo emso embg јмбг ембг",
        cue="jmbg|em[šs]o|embg|јмбг|ембг", beside=f"{_DD}{_MM}ddddddddd"),
    _id("hr_oib", 10, "hr.oib", stems="oib identifikacijski",
        cue=r"oib|osobni\sidentifikacijski\sbroj", beside="ddddddddddd"),
    _id("baltic_code", 10, "ee.ik", stems="isikukood asmens", cue=r"isikukood\w*|asmens\skodas",
        beside="[1-6]dddddddddd"),
    _id("lv_code", 10, "lv.pvn", stems="personas_k", cue=r"personas\skod\w*",
        beside="dddddd-?ddddd"),
    _id("fi_hetu", 8, "fi.hetu", shapes="000000-000|000000+000|000000A000",
        alone=f"{_DD}{_MM}dd[-+A-FU-Y]ddd[0-9A-FHJ-NPR-Y]"),
    _id("se_personnummer", 9, lambda number: luhn(compact(number)[-10:]),
        stems="personnummer samordning pnr", cue="personnummer|samordningsnummer|pnr",
        shapes="00000000-0000|00000000+0000|000000+0000",
        alone=f"(?:(?:18|19|20)dd{_MM}{_DD}[-+]|dd{_MM}{_DD}[+])dddd",
        beside=f"(?:18|19|20)?dd{_MM}dd[-+ ]?dddd"),
    _id("dk_cpr", 9, bool, cue="cpr", beside=f"{_DD}{_MM}dd[- ]?dddd"),
    _id("no_fodselsnummer", 10, _norwegian, stems="dselsn personnummer fnr",
        cue=r"f[oø]dselsn\w*|personnummer|fnr", beside="dddddd ?ddddd"),
    _id("is_kennitala", 9, "is_.kennitala", cue="kennitala", beside="dddddd-?dddd"),
    _id("tr_kimlik", 10, "tr.tckimlik", stems="kimlik tckn", cue=r"t\.?c\.?\s?kimlik|kimlik|tckn",
        beside="[1-9]dddddddddd"),
    _id("il_id", 8, "il.idnr", stems="zehut זהות ת.ז", cue=r"teudat\szehut|תעודת\sזהות|ת\.ז",
        beside="ddddddddd"),
    _id("eg_id", 13, bool, stems="قومي egypt",
        cue=r"\w{0,2}القومي|قومي|egyptian\s(?:national\s)?id", beside=f"[23]dd{_MM}{_DD}ddddddd",
        general=False),
    _id("sa_id", 9, _luhn, stems="iqama هوية إقامة saudi",
        cue=r"iqama|\w{0,2}هوية|\w{0,2}إقامة|saudi\s(?:national\s)?id", beside="[12]ddddddddd",
        general=False),
    _id("ae_id", 14, _luhn, stems="emirates هوية", cue=r"emirates\sid|\w{0,2}هوية",
        shapes="000-0000-0000000-0", alone="784-(?:19|20)dd-ddddddd-d",
        beside="784[ -]?(?:19|20)dd[ -]?ddddddd[ -]?d", general=False),
    _id("ir_code", 9, _iranian, stems="ملی melli", cue=r"(?:کد|شماره)\sملی|code?\s?melli",
        beside="dddddddddd", general=False),
    _id("za_id", 12, _luhn, stems="sa_id rsa_id south_africa",
        cue=r"sa\sid|rsa\sid|south\safrican?", beside=f"dd{_MM}{_DD} ?dddd ?[01]dd"),
    _id("ng_nin", 10, bool, stems="nin bvn bank_verif", cue=r"nin|bvn|bank\sverification",
        beside="ddd ?dddd ?dddd", general=False),
    _id("gh_card", 9, bool, shapes="AAA-000000000-0", alone="GHA-ddddddddd-d"),
    _id("in_aadhaar", 11, "in_.aadhaar", stems="aad uidai", cue="aadh?aa?r|uidai",
        beside="[2-9]ddd[ -]?dddd[ -]?dddd"),
    _id("in_pan", 4, "in_.pan", stems="pan", cue=r"pan", shapes="AAAAA0000A",
        alone="[A-Z]{3}P[A-Z]dddd[A-Z]", beside="[A-Za-z]{5}dddd[A-Za-z]", general=False),
    _id("in_vid", 15, "in_.vid", stems="vid aad", cue=r"vid|virtual\sid|aadh?aa?r",
        beside="[2-9]ddd[ -]?dddd[ -]?dddd[ -]?dddd", general=False),
    _id("pk_cnic", 12, "pk.cnic", cue="cnic|nicop", shapes="00000-0000000-0",
        alone="[1-7]dddd-ddddddd-[1-9]", beside="[1-7]dddddddddddd",
        general=False),
    _id("lk_nic", 8, bool, cue="nic", beside="ddddddddd[VvXx]", general=False),
    _id("cn_ric", 17, "cn.ric", shapes="00000000000000000",
        alone=f"[1-9]ddddd(?:19|20)dd{_MM}{_DD}ddd[0-9Xx]"),
    _id("kr_rrn", 12, "kr.rrn", shapes="000000-0000000", alone=f"dd{_MM}{_DD}-[1-8]dddddd"),
    _id("kr_number", 12, bool, stems="주민 외국인등록", cue=r"주민(?:등록)?\s?번호|외국인등록번호",
        beside=f"dd{_MM}{_DD}[ -]?[1-8]dddddd", general=False),
    _id("jp_my_number", 11, "jp.in_", stems="my_number マイナンバー 個人番号",
        cue=r"my\snumber|マイナンバー|個人番号", beside="dddd[ -]?dddd[ -]?dddd"),
    _id("th_pin", 12, "th.pin", stems="บัตร ประจำตัว thai_id thai_nat",
        cue=r"บัตรประชาชน|ประจำตัวประชาชน|ประจำตัว|thai\s(?:national\s)?id",
        shapes="0-0000-00000-00-0|0 0000 00000 00 0",
        alone="[1-8][ -]dddd[ -]ddddd[ -]dd[ -]d", beside="[1-8][ -]?dddd[ -]?ddddd[ -]?dd[ -]?d"),
    _id("my_nric", 11, "my.nric", stems="nric mykad kad_peng ic_",
        cue=r"nric|mykad|kad\spengenalan|ic", shapes="000000-00-0000",
        alone=f"dd{_MM}{_DD}-dd-dddd", beside=f"dd{_MM}{_DD}-?dd-?dddd", general=False),
    _id("sg_nric", 6, _singapore, stems="nric fin", cue="nric|fin", shapes="A0000000A",
        alone="[STFGM]ddddddd[A-Z]", beside="[STFGMstfgm]ddddddd[A-Za-z]", general=False),
    _id("hk_id", 6, _hong_kong, stems="hkid 身份證 身份证", cue="hkid|身份[證证]",
        shapes="A000000(0)|A000000(A)", lead=1, alone=r"[A-Z]{1,2}dddddd\([0-9A]\)",
        beside=r"[A-Za-z]{1,2}dddddd[( ]?[0-9Aa]\)?", general=False),
    _id("tw_id", 8, _taiwan, stems="身分證 身份證 taiwan",
        cue=r"身[分份]證\w{0,4}|taiwan\w{0,3}\s(?:national\s)?id", beside="[A-Za-z][1289]dddddddd",
        general=False),
    _id("id_nik", 15, "id.nik", stems="nik ktp kependudukan", cue="nik|ktp|kependudukan",
        beside="dddddddddddddddd", general=False),
    _id("id_npwp", 14, "id.npwp", stems="npwp wajib_pajak", cue=r"npwp|wajib\spajak",
        shapes="00.000.000.0-000.000", alone=r"dd\.ddd\.ddd\.d-ddd\.ddd",
        beside="ddddddddddddddd",
        general=False),
    _id("vn_id", 8, bool, stems="cccd cmnd căn_cước", cue=r"cccd|cmnd|căn\scước\w*(?:\scông\sdân)?",
        beside="d{9}(?:d{3})?", general=False),
    _id("ph_id", 8, bool, stems="sss philhealth philsys umid pag-ibig",
        cue=r"sss|philhealth|philsys|umid|pag-ibig",
        beside="(?:dd-ddddddd-d|dd-ddddddddd-d|dddd-dddd-dddd(?:-dddd)?|dddd-ddddddd-d)",
        general=False),
    _id("ru_inn", 11, "ru.inn", cue="инн|inn", beside="dddddddddddd", general=False),
    _id("ru_snils", 10, _snils, cue="снилс|snils", shapes="000-000-000 00", alone="ddd-ddd-ddd dd",
        beside="ddd-?ddd-?ddd[ -]?dd",
        general=False),
    _id("ru_passport", 9, bool, stems="паспорт", cue=r"паспорт\w{0,3}(?:\sсерии)?",
        beside="dd ?dd ?(?:№ ?)?dddddd", general=False),
    _id("ua_rntrc", 9, "ua.rntrc", stems="рнокпп іпн ідентифік rnokpp",
        cue=r"рнокпп|іпн|ідентифікаційн\w*|rnokpp", beside="dddddddddd",
        general=False),
    _id("br_cpf", 10, "br.cpf", stems="cpf pessoas", cue=r"cpf|pessoas\sf[ií]sicas",
        shapes="000.000.000-00", alone=r"ddd\.ddd\.ddd-dd", beside="ddddddddd-?dd"),
    _id("cl_rut", 8, "cl.rut", stems="rut run", cue="ru[tn]", shapes="0.000.000-", lead=1,
        alone=r"(?<![0-9])d?d\.ddd\.ddd-[0-9Kk]", beside="ddddddd(?:d)?-[0-9Kk]"),
    _id("ar_cuil", 10, "ar.cuit", cue="cui[tl]", shapes="00-00000000-0", alone="2[0347]-dddddddd-d",
        beside="2[0347]-?dddddddd-?d",
        general=False),
    _id("latin_dni", 6, bool, cue="dni", beside=r"(?:dd?\.ddd\.ddd|ddddddd(?:d)?)", general=False),
    _id("latin_cedula", 6, bool, stems="cédula cedula",
        cue=r"c[eé]dula(?:\sde\s(?:ciudadan[ií]a|identidad))?",
        beside=r"(?:[VE]-?)?(?:d{6,10}|d{1,3}(?:\.ddd){2,3}(?:-d)?|ddd-ddddddd-d)", general=False),
    _id("mx_rfc", 5, "mx.rfc", cue="rfc",
        beside=f"[A-ZÑ&a-zñ]{{4}}-?dd{_MM}{_DD}-?[A-Za-z0-9]{{3}}", general=False),
    _id("mx_curp", 7, "mx.curp", shapes="AAAA000000AAAAAA",
        alone=f"[A-Z]{{4}}dd{_MM}{_DD}[HMX][A-Z]{{5}}[0-9A-Z]d"),
)  # fmt: skip

# --- finding ---
# The words and shapes of all ids are looked for together, because most texts have none of them.

_BY_STEM: dict[str, set[str]] = {}
_BY_SHAPE: dict[bytes, set[str]] = {}
for _one in _IDS:
    for _stem in _one.cues.stems:
        _BY_STEM.setdefault(_stem, set()).add(_one.id)
    for _shape in _one.shapes:
        _BY_SHAPE.setdefault(_shape, set()).add(_one.id)


# Beside words such as `id card`, a number may be one of dozens of ids. The forms of more digits
# come first.
_BESIDE = {
    one.id: one.beside.source
    for one in sorted(_IDS, key=lambda one: -one.digits)
    if one.general and one.beside
}
_NOT_SSN = "|".join(form for id_, form in _BESIDE.items() if id_ != "us_ssn")
_ANY_FORM = LazyRegex(
    rf"(?<![A-Za-z0-9_])(?=[A-Za-z]{{0,2}}[ -]?[0-9])(?=({_NOT_SSN})(?!(?=[\0-\u0dff])\w|"
    r"[.-][^\W_]))"
)


def _unchecked(page: Page, named: _Named) -> list[Span]:
    """Return the numbers beside words such as `id card` that have the form of an id, if they are
    too many to check each."""
    spans, done = list[Span](), 0
    for stretch in page.numbered(_GENERAL.stems) if page.digits > 6 * MANY else ():
        for found in _ANY_FORM.finditer(page.text, *stretch):
            start, end = found.span(1)
            if (
                end > done
                and named.near(_GENERAL, (start, end))
                and stands_alone(page.text, (start, end))
            ):
                spans.append((max(start, done), end))
                done = end
    return spans if len(spans) > MANY else []


# Six digits with single signs between them that are not a date, or one of the forms with more
# letters than digits.
_DATE = rb"(?:00?[./-]00?[./-]0000|0000[./-]00?[./-]00?)(?!0|[./-]0)"
_DENSE = (
    rb"(?<!0)(?<!0[./-])(?!"
    + _DATE
    + rb")(?:0[ ./()+_?\xb7-]?){6}|AAAAA0000A|00A00A000|0A[0A]0-?A[0A]0"
)


@cache
def _dense() -> re.Pattern[bytes]:
    return re.compile(_DENSE)


def _may_have_ids(page: Page) -> bool:
    # The forms with fewer than six digits have a letter right after a digit.
    return (page.digits >= 6 or b"0A" in page.shape) and _dense().search(page.shape) is not None


def _places(shape: bytes, part: bytes, lead: int) -> Iterator[int]:
    """Yield the offsets of a part of the shape, overlapping ones included; without a lead, not
    those inside a word or number."""
    at = 0
    while found := _part(part, lead).search(shape, at):
        yield found.start()
        at = found.start() + 1


@cache
def _part(part: bytes, lead: int) -> re.Pattern[bytes]:
    literal = re.escape(part)
    return re.compile(literal if lead else literal + b"(?<![0A_]" + literal + b")")


def _found(page: Page) -> dict[str, list[Span]]:
    """Return the spans of all ids in a text, by id."""
    if page.ids is None:
        digits, folded, shape = page.digits, page.folded, page.shape
        named = _Named(page)
        wanted = {id_ for stem in present(folded, _BY_STEM) for id_ in _BY_STEM[stem]}
        wanted |= {id_ for known in present(shape, _BY_SHAPE) for id_ in _BY_SHAPE[known]} | set(
            named.general
        )
        ids = [one for one in _IDS if digits >= one.digits and one.id in wanted]
        page.ids = {one.id: list(one.spans(page, named)) for one in ids}
        # Any of them would do: all are masked alike.
        page.ids["gb_nhs"] = [*page.ids.get("gb_nhs", ()), *named.unchecked]
    return page.ids


def _pattern(one: _Id) -> Pattern:
    return Pattern(
        one.id,
        one.label,
        lambda page: _found(page).get(one.id, ()),
        digits=3,
        when=_may_have_ids,
        normal=compact,
    )


NATIONAL_IDS = tuple(map(_pattern, _IDS))


# --- documents ---
# Numbers of passports, driving licences and identity cards have no check sum in common, so they
# count only after their name.

_STEMS = stems_of("""
    passport passeport pasaport passaport reisepass paspoort passnummer paszport driver driving
    führerschein fuhrerschein permis licencia_de patente cnh rijbewijs prawo_jazdy personalausweis
    ausweisn carta_d carte_d identity 护照 護照 パスポート 旅券 여권
""")
_NAMES = (
    r"(?:passe?port|pasaporte?|passaport[eo]|reisepass|paspoort|pass(?=nummer)|paszportu?)"
    r"|driver['’]?s?['’]?[\s_-]?licen[cs]e|driving[\s_-]licen[cs]e|f(?:ü|u)hrerschein|"
    r"permis\sde\sconduire|licencia\sde\sconduc\w{2,4}|patente(?:\sdi\sguida)?|cnh|rijbewijs|"
    r"prawo\sjazdy|personalausweis|ausweis|cart[ae]\sd['’]identit[àaé]|identity\scard|护照|護照|"
    r"パスポート|旅券|여권"
)
_DOCUMENT_SHAPES = re.compile(rb"00000|0A0|0AAA?0|000[ -]0|00 00 00")
_LINK = (
    r"no|nr|num|number|nummer|num[eé]ro|número|номер|id|is|was|ist|est|es|è|é|号码?|號碼?|番号|"
    r"번호|は|是|는|n°|nº|№"
)
_NUMBERED = LazyRegex(
    rf"(?i:{_NAMES})(?![a-z](?!ummer))(?:[\s:=#.\"'(’_-]{{0,3}}(?i:{_LINK})(?![A-Za-z])){{0,3}}"
    rf"[\s:=#.\"'(’_-]{{0,4}}"
    r"((?!(?:19|20)[0-9]{2}[- ][0-9]{2}[- ])(?=(?:[A-Za-z -]{0,6}[0-9]){5})[A-Z0-9](?:[ "
    r"-]?[A-Z0-9]){5,18})(?![A-Za-z0-9])"
)


def _documents(page: Page) -> Iterator[Span]:
    """Match letters and at least five digits after the name of a document and words such as
    `number` or `is`."""
    text = page.text
    for found in filter(None, (_NUMBERED.match(text, place) for place in page.places(_STEMS))):
        if not joined(text[found.start() - 1 : found.start()]):
            yield found.span(1)


def _may_have(page: Page) -> bool:
    return _DOCUMENT_SHAPES.search(page.shape) is not None and page.holds(_STEMS)


DOCUMENTS = (
    Pattern(
        "identity_document", "NATIONAL_ID", _documents, digits=5, when=_may_have, normal=compact
    ),
)
