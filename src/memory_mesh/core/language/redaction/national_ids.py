"""Find national ids by their check sums, and numbers of identity documents by their names.

Many ids are plain runs of digits, and one random run in ten or a hundred passes a check sum. So a
number counts without a cue word only in a written form that nothing else has. The ids and their
forms are in `data/national_ids.toml`. Most check sums are those of python-stdnum; checks of stdnum
that depend on today's date are replaced by checks here: the same text must always give the same
result.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from operator import mul

from memory_mesh.core.language.packaged import Expressions, Tables, WordLists
from memory_mesh.core.language.redaction.pattern import (
    AFTER,
    BEFORE,
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
)
from memory_mesh.core.language.redaction.phone import names_goods
from memory_mesh.core.text import LazyRegex

_RE, _LISTS = Expressions(__name__), WordLists(__name__)
_ROWS = Tables(__name__).ids
_Check = Callable[[str], bool]


# --- check sums ---


def _digits(number: str) -> list[int]:
    return [int(char) for char in number if char.isdigit()]


def _weighted(weights: Iterable[int], digits: Iterable[int]) -> int:
    """Return the sum of the digits times their weights, as far as there are weights."""
    return sum(map(mul, weights, digits))


def _ends_with_sum(*weights: int, modulus: int) -> _Check:
    """Return a check: the weighted sum of the first digits, modulo `modulus`, gives the digit
    after them."""

    def valid(number: str) -> bool:
        digits = _digits(number)
        return _weighted(weights, digits) % modulus == digits[len(weights)]

    return valid


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
    digits = _digits(number)
    first = _weighted((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), digits)
    second = _weighted((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), digits)
    return first % 11 == 0 and second % 11 == 0


_SINGAPORE = {
    "S": "JZIHGFEDCBA",
    "T": "GFEDCBAJZIH",
    "F": "XWUTRQPNMLK",
    "G": "RQPNMLKXWUT",
    "M": "NPQRTUWXKLJ",
}


def _singapore(number: str) -> bool:
    plain = compact(number)
    total = _weighted((2, 7, 6, 5, 4, 3, 2), _digits(plain))
    return plain[8] == _SINGAPORE[plain[0]][total % 11]


def _hong_kong(number: str) -> bool:
    values = [36 if char == " " else int(char, 36) for char in compact(number).rjust(9)]
    return _weighted(range(9, 0, -1), values) % 11 == 0


def _taiwan(number: str) -> bool:
    plain = compact(number)
    first = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(plain[0]) + 10
    digits = [first // 10, first % 10, *map(int, plain[1:])]
    return _weighted((1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), digits) % 10 == 0


def _snils(number: str) -> bool:
    digits = _digits(number)
    return _weighted(range(9, 0, -1), digits) % 101 % 100 == digits[9] * 10 + digits[10]


def _german_insurance(number: str) -> bool:
    plain = compact(number)
    digits = _digits(f"{plain[:8]}{ord(plain[8]) - 64:02d}{plain[9:]}")
    products = map(mul, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), digits)
    return sum(sum(divmod(product, 10)) for product in products) % 10 == digits[12]


def _iranian(number: str) -> bool:
    digits = _digits(number)
    rest = _weighted(range(10, 1, -1), digits) % 11
    return digits[9] == (rest if rest < 2 else 11 - rest)


@cache
def _of_stdnum(module: str) -> _Check:
    """Return the check of a module of stdnum, for a number as it is written or without any
    separators."""
    # Imported late: stdnum is slow to import, and few texts have a candidate.
    is_valid: _Check = import_module(f"stdnum.{module}").is_valid

    def valid(number: str) -> bool:
        try:
            return bool(is_valid(number))
        except KeyError:  # it looks a Chinese county up last, and lacks some
            return True

    return lambda number: valid(number) or (compact(number) != number and valid(compact(number)))


_CHECKS: Mapping[str, _Check] = {
    "any": bool,
    "area_group_serial": _area_group_serial,
    "itin": lambda number: _of_stdnum("us.itin")(compact(number)),
    "luhn": lambda number: luhn("".join(filter(str.isdigit, number))),
    "last_ten_luhn": lambda number: luhn(compact(number)[-10:]),
    "medicare": _ends_with_sum(1, 3, 7, 9, 1, 3, 7, 9, modulus=10),
    "taj": _ends_with_sum(3, 7, 3, 7, 3, 7, 3, 7, modulus=10),
    "hu_tax": _ends_with_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, modulus=11),
    "german_insurance": _german_insurance,
    "belgian": _belgian,
    "norwegian": _norwegian,
    "iranian": _iranian,
    "singapore": _singapore,
    "hong_kong": _hong_kong,
    "taiwan": _taiwan,
    "snils": _snils,
}


def _valid(number: str, check: str) -> bool:
    return (_CHECKS.get(check) or _of_stdnum(check))(number)


# --- ids ---


@dataclass(frozen=True, slots=True, eq=False)
class _Id:
    """One country's id: the check of its number, and one of two forms: `alone` needs no cue
    word, `beside` does."""

    id: str
    digits: int
    check: str
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
        return _valid(number, self.check)

    def _candidates(self, page: Page, named: "_Named") -> Iterator[Span]:
        for place in (
            place for shape in self.shapes for place in _places(page.shape, shape, self.lead)
        ):
            match = self.alone.match(page.text, max(0, place - self.lead))
            if match is None and self.lead:
                match = self.alone.match(page.text, place)
            if match and named.stands_alone(match.span()) and not names_goods(page, match.start()):
                yield match.span()
        if self.beside is None:
            return
        general, own = self.id in named.general, named.has(self.cues)
        for stretch in [
            *page.numbered(self.cues.stems),
            *(page.numbered(_GENERAL.stems) if general else ()),
        ]:
            for match in self.beside.finditer(page.text, *stretch):
                span = match.span()
                if b"0" in (page.shape[span[0] - 1 : span[0]], page.shape[span[1] : span[1] + 1]):
                    continue  # part of a longer number
                near = (own and named.near(self.cues, span)) or (
                    general and named.near(_GENERAL, span)
                )
                if near and named.stands_alone(span):
                    yield span
        if own and self.check not in ("any", "area_group_serial"):
            yield from self._regrouped(page, self.beside, named)

    def _regrouped(self, page: Page, form: LazyRegex, named: "_Named") -> Iterator[Span]:
        """Yield numbers near a cue word whose groups are others than those of the form: `BSN
        123.456.782`."""
        for stretch in page.numbered(self.cues.stems):
            for match in _RE.groups.finditer(page.text, *stretch):
                for span in {match.span(), match.span(1)}:
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
        self.general: Iterable[str] = ()
        if page.holds(_GENERAL.stems):
            self.general = ("us_ssn",) if self.unchecked else _catalog().general

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


class _Catalog:
    """All ids, by the stems of their cue words and by their shapes. Most texts have none of them,
    so they are looked for together."""

    def __init__(self) -> None:
        self.ids = [_read_id(*row) for row in _ROWS]
        self.by_stem: dict[str, set[str]] = {}
        self.by_shape: dict[bytes, set[str]] = {}
        for one in self.ids:
            for stem in one.cues.stems:
                self.by_stem.setdefault(stem, set()).add(one.id)
            for shape in one.shapes:
                self.by_shape.setdefault(shape, set()).add(one.id)
        # Beside words such as `id card`, a number may be one of dozens of ids. The forms of more
        # digits come first.
        self.general = {
            one.id: one.beside.source
            for one in sorted(self.ids, key=lambda one: -one.digits)
            if one.general and one.beside
        }
        forms = "|".join(form for id_, form in self.general.items() if id_ != "us_ssn")
        self.any_form = LazyRegex(
            rf"(?<![A-Za-z0-9_])(?=[A-Za-z]{{0,2}}[ -]?[0-9])(?=({forms})(?!(?=[\0-\u0dff])\w|"
            r"[.-][^\W_]))"
        )


@cache
def _catalog() -> _Catalog:
    return _Catalog()


def _read_id(id_: str, digits: str, check: str, *columns: str) -> _Id:
    """Return the id of a row of the table."""
    fields = dict(column.partition("=")[::2] for column in columns)
    cue, shapes = fields.get("cue", ""), fields.get("shapes")
    stems = fields.get("stems") or cue.replace("|", " ")
    return _Id(
        id=id_,
        digits=int(digits),
        check=check,
        cues=Cue(
            tuple(stem.replace("_", " ") for stem in stems.split()),
            LazyRegex(rf"(?i)(?<![^\W_])(?:{cue})(?![^\W_])"),
        ),
        shapes=tuple(shapes.encode().split(b"|")) if shapes else (),
        lead=int(fields.get("lead", 0)),
        alone=_form(fields.get("alone", "")),
        beside=_form(fields["beside"]) if "beside" in fields else None,
        general="own" not in fields,
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


_GENERAL = Cue(_LISTS.general_stems, _RE.general)


def _unchecked(page: Page, named: _Named) -> list[Span]:
    """Return the numbers beside words such as `id card` that have the form of an id, if they are
    too many to check each."""
    spans, done = list[Span](), 0
    for stretch in page.numbered(_GENERAL.stems) if page.digits > 6 * MANY else ():
        for match in _catalog().any_form.finditer(page.text, *stretch):
            start, end = match.span(1)
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
    while match := _part(part, lead).search(shape, at):
        yield match.start()
        at = match.start() + 1


@cache
def _part(part: bytes, lead: int) -> re.Pattern[bytes]:
    literal = re.escape(part)
    return re.compile(literal if lead else literal + b"(?<![0A_]" + literal + b")")


def _find_ids(page: Page) -> dict[str, list[Span]]:
    """Return the spans of all ids in a text, by id."""
    if page.ids is None:
        catalog, named = _catalog(), _Named(page)
        stems, shapes = present(page.folded, catalog.by_stem), present(page.shape, catalog.by_shape)
        possible = set(named.general).union(
            *(catalog.by_stem[stem] for stem in stems),
            *(catalog.by_shape[shape] for shape in shapes),
        )
        page.ids = {
            one.id: list(one.spans(page, named))
            for one in catalog.ids
            if page.digits >= one.digits and one.id in possible
        }
        # Any of them would do: all are masked alike.
        page.ids["gb_nhs"] = [*page.ids.get("gb_nhs", ()), *named.unchecked]
    return page.ids


def _pattern(id_: str) -> Pattern:
    return Pattern(
        id_,
        "US_SSN" if id_ == "us_ssn" else "NATIONAL_ID",
        lambda page: _find_ids(page).get(id_, ()),
        digits=3,
        when=_may_have_ids,
        normal=compact,
    )


# --- documents ---
# Numbers of passports, driving licences and identity cards have no check sum in common, so they
# count only after their name.

_DOCUMENT_SHAPES = re.compile(rb"00000|0A0|0AAA?0|000[ -]0|00 00 00")


def _documents(page: Page) -> Iterator[Span]:
    """Match letters and at least five digits after the name of a document and words such as
    `number` or `is`."""
    for match in page.matches(_RE.numbered, _LISTS.document_stems):
        if not joined(page.text[match.start() - 1 : match.start()]):
            yield match.span(1)


def _may_have_documents(page: Page) -> bool:
    return _DOCUMENT_SHAPES.search(page.shape) is not None and page.holds(_LISTS.document_stems)


NATIONAL_IDS = tuple(_pattern(row[0]) for row in _ROWS)
DOCUMENTS = (
    Pattern(
        "identity_document",
        "NATIONAL_ID",
        _documents,
        digits=5,
        when=_may_have_documents,
        normal=compact,
    ),
)
