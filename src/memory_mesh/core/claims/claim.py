"""Claims: statements that can be false, with their normal values, schemas and times of validity."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput, SettingsError, one_of, shown, suggestion
from memory_mesh.core.intake import folded_text
from memory_mesh.core.model import (
    BY_NAME,
    Compare,
    In,
    IsNull,
    Memory,
    Not,
    Or,
    Row,
    Status,
    Value,
    Where,
    all_of,
    equals,
    fault,
    parse_time,
)
from memory_mesh.core.search.query import Span, period_of

SCOPES = ("global", "session")
MAX_CHARS = 2_000  # of a subject, a predicate or a value
_NAMES = (
    "subject",
    "predicate",
    "value",
    "exclusive",
    "scope",
    "session_id",
    "valid_from",
    "valid_until",
)
_OPEN = "~"  # after every time, as a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When a claim is valid; an end that is None is open, and both ends belong to it."""

    start: str | None = None
    end: str | None = None

    def overlaps(self, other: "Window") -> bool:
        """Return whether there is a moment in both."""
        return _is_before(self.start, other.end) and _is_before(other.start, self.end)

    def contains(self, at: str) -> bool:
        """Return whether a moment is in it."""
        return _is_before(self.start, at) and _is_before(at, self.end)


def overlapping(windows: Mapping[str, Window]) -> set[str]:
    """Return the ids whose windows have a moment in common with that of another one, without
    comparing each with each."""
    found, last, until = set[str](), "", ""
    for start, end, id_ in sorted(
        (each.start or "", each.end or _OPEN, id_) for id_, each in windows.items()
    ):
        if last and start <= until:
            found |= {id_, last}
        if end >= until:
            last, until = id_, end
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement: the value of a predicate of a subject, and how far it reaches."""

    subject: str
    predicate: str
    value: str
    exclusive: bool = True
    session_id: str | None = None  # of a claim that holds in one session only
    project: str | None = None  # that of its memory
    window: Window = Window()
    ended: bool = False  # the claim is no longer valid after the end of its window

    @property
    def key(self) -> str:
        """A text that is equal for claims about the same predicate of the same subject."""
        parts = [folded_text(self.subject), folded_text(self.predicate)]
        return sha256(repr(parts).encode()).hexdigest()

    @property
    def scope(self) -> str:
        """How far it reaches: global, or session."""
        return "global" if self.session_id is None else "session"

    @property
    def columns(self) -> dict[str, Value]:
        """The columns of a memory with this claim."""
        claim: dict[str, Value] = {
            "subject": self.subject, "predicate": self.predicate, "value": self.value,
            "exclusive": self.exclusive, "scope": self.scope,
            **({"session_id": self.session_id} if self.session_id else {}),
        }  # fmt: skip
        return {
            "claim": claim, "claim_key": self.key, "valid_from": self.window.start,
            "valid_until": self.window.end,
        }  # fmt: skip

    @classmethod
    def of(cls, memory: Memory) -> "Claim | None":
        """Return the claim of a memory; None if it has none."""
        stored = memory.claim
        if not stored:
            return None
        session = stored.get("session_id")
        return cls(
            subject=str(stored.get("subject")), predicate=str(stored.get("predicate")),
            value=str(stored.get("value")), exclusive=stored.get("exclusive") is not False,
            session_id=None if session is None else str(session), project=memory.project,
            window=Window(start=memory.valid_from, end=memory.valid_until),
        )  # fmt: skip


def read_claim(given: object, session_id: str | None) -> Claim:
    """Return a claim as a caller gives it, or raise `InvalidInput`. `session_id` is the session
    of the caller."""
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"claim is {shown(given)}", expected="an object with subject, predicate and value"
        )
    for name in given:
        if name not in _NAMES:
            what, remedy = f"claim has the unknown key {shown(name)}", suggestion(name, _NAMES)
            raise InvalidInput(what, expected=f"keys of {', '.join(_NAMES)}", remedy=remedy)
    exclusive = given.get("exclusive", True)
    if not isinstance(exclusive, bool):
        raise InvalidInput(f"claim.exclusive is {shown(exclusive)}", expected="true or false")
    return Claim(
        subject=_text(given, "subject"), predicate=_text(given, "predicate"),
        value=_text(given, "value"), exclusive=exclusive, session_id=_session(given, session_id),
        window=read_window(given),
    )  # fmt: skip


def read_window(given: Mapping[str, object]) -> Window:
    """Return the validity in `valid_from` and `valid_until`, or raise `InvalidInput` if it ends
    before it starts."""
    start, end = (
        None if (at := given.get(name)) is None else parse_time(at, name)
        for name in ("valid_from", "valid_until")
    )
    return check_window(Window(start=start, end=end))


def check_window(window: Window) -> Window:
    """Return a window, or raise `InvalidInput` if it ends before it starts."""
    if not _is_before(window.start, window.end):
        raise InvalidInput(
            f"valid_until {window.end} is before valid_from {window.start}",
            expected="a window that ends after it starts",
        )
    return window


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    if name == "value" and isinstance(value, bool | int | float):
        value = str(value).lower() if isinstance(value, bool) else _digits(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"claim.{name} is {shown(value)}", expected="a non-empty text")
    if fault(BY_NAME["key"], value):
        raise InvalidInput(
            f"claim.{name} is {shown(value)}", expected="text without NUL or half surrogate pairs"
        )
    if len(value) > MAX_CHARS:
        raise InvalidInput(
            f"claim.{name} has {len(value):,} characters", expected=f"at most {MAX_CHARS:,}"
        )
    return value


def _digits(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        raise InvalidInput(
            "claim.value is a number with too many digits", expected=f"at most {MAX_CHARS:,}"
        ) from None


def _session(given: Mapping[str, object], session_id: str | None) -> str | None:
    scope = given.get("scope", "session" if given.get("session_id") else "global")
    one_of("claim.scope", scope, SCOPES)
    if scope == "global":
        if given.get("session_id") is not None:
            raise InvalidInput(
                "a claim of scope 'global' has a session_id",
                expected="scope 'session', or no session_id",
            )
        return None
    own = given.get("session_id", session_id)
    if not isinstance(own, str) or not own.strip() or fault(BY_NAME["session_id"], own):
        raise InvalidInput(
            "a claim of scope 'session' has no session",
            remedy="give claim.session_id, or use mesh.scoped(session_id=…)",
        )
    return own


def _is_before(one: str | None, other: str | None) -> bool:
    """Return whether a moment is not after another one; None is open."""
    return one is None or other is None or one <= other


# --- normal values ---
# Two ways to write one value compare as equal.

_SYMBOLS = {
    "US$": "USD",
    "C$": "CAD",
    "CA$": "CAD",
    "A$": "AUD",
    "AU$": "AUD",
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
}
_ISO_4217 = (
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL "
    "GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF "
    "KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN "
    "MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD "
    "SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH "
    "UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL "
)
_CODES = frozenset(_ISO_4217.split())
_SYMBOL = "|".join(re.escape(symbol) for symbol in sorted(_SYMBOLS, key=len, reverse=True))
_UNIT = rf"(?:{_SYMBOL}|[A-Za-z]{{3}})"
_NUMBER = r"\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,6})?|\d{1,18}(?:\.\d{1,6})?"
_MONEY = re.compile(
    rf"(?P<sign>[-−]?)\s?(?:(?P<before>{_UNIT})\s{{0,3}})?(?P<number>{_NUMBER})(?:\s{{0,3}}(?P"
    rf"<after>{_UNIT}))?"
)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})",
        r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH},?\s(?P<year>\d{{4}})",
        rf"{_MONTH}\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s(?P<year>\d{{4}})",
    )
)

# Each unit with the other ways to write it. Units are never converted: 1 km and 1000 m stay two
# values.
_UNITS = {
    "ms": "millisecond milliseconds", "s": "sec secs second seconds", "min": "mins minute minutes",
    "h": "hr hrs hour hours", "d": "day days", "week": "weeks", "month": "months",
    "year": "yr yrs years", "mm": "millimetre millimetres millimeters",
    "cm": "centimetre centimetres centimeter centimeters", "m": "metre metres meter meters",
    "km": "kilometre kilometres kilometer kilometers", "mi": "mile miles", "g": "gram grams",
    "kg": "kilo kilos kilogram kilograms", "lb": "lbs pound pounds",
    "l": "litre litres liter liters", "%": "percent", "°C": "c °c celsius", "°F": "f °f fahrenheit",
}  # fmt: skip
# Sizes of data keep their case: Mb are bits, MB are bytes.
_AS_WRITTEN = {
    name: name
    for name in (
        "B",
        "KB",
        "kB",
        "MB",
        "GB",
        "TB",
        "PB",
        "KiB",
        "MiB",
        "GiB",
        "TiB",
        "Kb",
        "Mb",
        "Gb",
    )
}
_UNIT_OF = {
    word: unit for unit, words in _UNITS.items() for word in (unit.casefold(), *words.split())
}
_QUANTITY = re.compile(
    rf"(?P<sign>[-−]?)(?P<number>{_NUMBER})\s{{0,3}}(?P<unit>[^\d\s.,-][^\d\s]{{0,14}})"
)


def lowercase_trim(value: str) -> str:
    """Return the value in lower case, without spaces at its ends."""
    return value.strip().lower()


def currency(value: str) -> str:
    """Return an amount of money as `USD 1250.5`; a bare number stays without a currency, and
    other text as it is."""
    found = _MONEY.fullmatch(value.strip())
    if found is None or (found["before"] and found["after"]):
        return value
    unit = found["before"] or found["after"]
    code = _SYMBOLS.get(unit.upper(), unit.upper()) if unit else ""
    if unit and code not in _CODES:
        return value
    return f"{code} {_number(found)}".strip()


def day(value: str) -> str:
    """Return a date as `2024-03-16`, and other text as it is. A date such as 3/4/2024 can be
    read in two ways, and stays."""
    text = " ".join(value.split())
    for pattern in _DATES:
        if found := pattern.fullmatch(text):
            month = found["month"]
            number = int(month) if month.isdecimal() else _MONTHS.index(month[:3].lower()) + 1
            try:
                return date(int(found["year"]), number, int(found["day"])).isoformat()
            except ValueError:
                return value
    return value


def quantity(value: str) -> str:
    """Return a number with its unit as `5 km`, and other text as it is."""
    found = _QUANTITY.fullmatch(value.strip())
    if found is None:
        return value
    written = found["unit"].rstrip(".")
    unit = _AS_WRITTEN.get(written) or _UNIT_OF.get(written.casefold())
    return f"{_number(found)} {unit}" if unit else value


def _number(found: re.Match[str]) -> str:
    whole, _, rest = found["number"].replace(",", "").partition(".")
    rest = rest.rstrip("0")
    number = (whole.lstrip("0") or "0") + (f".{rest}" if rest else "")
    return f"-{number}" if found["sign"] and number != "0" else number


NORMALIZERS: Mapping[str, Callable[[str], str]] = {
    "none": lambda value: value,
    "trim": str.strip,
    "lowercase": str.lower,
    "lowercase_trim": lowercase_trim,
    "currency": currency,
    "date": day,
    "quantity": quantity,
}


# --- schemas of predicates ---

# The values that each part of a schema may have; the first one is the default.
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "cardinality": ("single", "multi"),
    "conflict_policy": ("supersede", "require_review", "keep_both"),
    "normalize": tuple(NORMALIZERS),
    "dedup_policy": ("corroborate", "store"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """How the claims of a predicate are compared."""

    cardinality: str = "single"
    conflict_policy: str = "supersede"
    normalize: str = "none"
    dedup_policy: str = "corroborate"

    def normalized(self, value: str) -> str:
        """Return a value as it is compared."""
        return NORMALIZERS[self.normalize](value)


DEFAULT = Schema()


class Schemas(dict[str, Schema]):
    """The schemas by predicate; case and spaces of a predicate do not matter, and other
    predicates have the default."""

    def __missing__(self, predicate: str) -> Schema:
        return self.get(folded_text(predicate), DEFAULT)


def read_schemas(given: Mapping[str, object] | None) -> Schemas:
    """Return the schemas of the option `predicate_schemas`, or raise `SettingsError`."""
    read = ((predicate, _read(predicate, schema)) for predicate, schema in (given or {}).items())
    return Schemas({folded_text(predicate): schema for predicate, schema in read})


def _read(predicate: object, given: object) -> Schema:
    name = f"predicate_schemas.{predicate}"
    if not isinstance(predicate, str) or not predicate.strip():
        raise SettingsError(
            f"predicate_schemas has the predicate {shown(predicate)}", expected="a non-empty text"
        )
    if not isinstance(given, Mapping):
        raise SettingsError(
            f"{name} is {shown(given)}", expected=f"a table with {', '.join(_CHOICES)}"
        )
    for part, value in given.items():
        if part not in _CHOICES:
            what, expected = (
                f"{name} has the unknown key {shown(part)}",
                f"one of {', '.join(_CHOICES)}",
            )
            raise SettingsError(what, expected=expected, remedy=suggestion(part, _CHOICES))
        if not isinstance(value, str) or value not in _CHOICES[part]:
            raise SettingsError(
                f"{name}.{part} is {shown(value)}", expected=f"one of {', '.join(_CHOICES[part])}"
            )
    return Schema(
        **{each.name: str(given[each.name]) for each in fields(Schema) if each.name in given}
    )


# --- validity ---


def as_of(at: str, statuses: Sequence[str]) -> Where:
    """Return the condition that a memory was valid at a time, as is known now.

    Its validity contains the time, and it has one of the statuses or was superseded by what became
    valid later. One that was superseded without an end of its validity was corrected, and never
    valid.
    """
    outdated = all_of(equals("status", Status.SUPERSEDED), Not(IsNull("valid_until")))
    # The time is in `window_of` the memory.
    no_event = Or((IsNull("claim_key"), IsNull("event_time"), Compare("event_time", "<=", at)))
    started = Or((Compare("valid_from", "<=", at), all_of(IsNull("valid_from"), no_event)))
    lasting = Or((IsNull("valid_until"), Compare("valid_until", ">=", at)))
    return all_of(started, lasting, Or((In("status", tuple(statuses)), outdated)))


def window_of(row: Row) -> Window:
    """Return when a memory is valid. A claim without `valid_from` begins with its event."""
    start = row.value("valid_from") or (row.value("event_time") if row.value("claim_key") else None)
    end = row.value("valid_until")
    return Window(
        start=None if start is None else str(start), end=None if end is None else str(end)
    )


def asked_time(spans: Sequence[Span], present: str) -> Window:
    """Return the time that a question is about: of the times that it names the latest one that
    has begun, else now."""
    windows = [Window(start=first, end=last) for first, last in map(period_of, spans)]
    begun = [each for each in windows if str(each.start) <= present]
    return begun[-1] if begun else windows[0] if windows else Window(start=present, end=present)


def claim_groups(rows: Iterable[Row], asked: Window, schemas: Schemas) -> list[list[Row]]:
    """Return the groups of at least two exclusive claims about one subject and predicate, those
    valid at the asked time first.

    The others follow, and the latest claim comes first among both. A predicate that may have
    several values has no group.
    """
    groups: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        claim = row.value("claim")
        if not isinstance(claim, dict) or claim.get("exclusive") is False:
            continue
        if schemas[str(claim.get("predicate"))].cardinality == "single":
            groups.setdefault((row.value("claim_key"), claim.get("session_id")), []).append(row)

    def order(row: Row) -> tuple[bool, str, tuple[str, str, int, str]]:
        window = window_of(row)
        corrected = row.value("status") == Status.SUPERSEDED and window.end is None
        return (
            window.overlaps(asked) and not corrected,
            str(window.start or row.created_at),
            row.age_key,
        )

    return [sorted(group, key=order, reverse=True) for group in groups.values() if len(group) > 1]
