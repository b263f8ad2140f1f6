"""Normalise the values of claims, so that two ways to write one value compare as equal."""

import re
from collections.abc import Callable, Mapping
from datetime import date

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
    "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP CNY "
    "COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS "
    "INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP "
    "MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR "
    "SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV "
    "WST XAF XCD XOF XPF YER ZAR ZMW ZWL "
)
_CODES = frozenset(_ISO_4217.split())
_SYMBOL = "|".join(re.escape(symbol) for symbol in sorted(_SYMBOLS, key=len, reverse=True))
_UNIT = rf"(?:{_SYMBOL}|[A-Za-z]{{3}})"
_NUMBER = r"\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,6})?|\d{1,18}(?:\.\d{1,6})?"
_MONEY = re.compile(rf"(?P<sign>[-−]?)\s?(?:(?P<before>{_UNIT})\s{{0,3}})?(?P<number>{_NUMBER})(?:\s{{0,3}}(?P<after>{_UNIT}))?")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
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

# Each unit with the other ways to write it. Units are never converted: 1 km and 1000 m stay two values.
_UNITS = {
    "ms": "millisecond milliseconds", "s": "sec secs second seconds", "min": "mins minute minutes", "h": "hr hrs hour hours",
    "d": "day days", "week": "weeks", "month": "months", "year": "yr yrs years", "mm": "millimetre millimetres millimeters",
    "cm": "centimetre centimetres centimeter centimeters", "m": "metre metres meter meters",
    "km": "kilometre kilometres kilometer kilometers", "mi": "mile miles", "g": "gram grams",
    "kg": "kilo kilos kilogram kilograms", "lb": "lbs pound pounds", "l": "litre litres liter liters", "%": "percent",
    "°C": "c °c celsius", "°F": "f °f fahrenheit",
}  # fmt: skip
# Sizes of data keep their case: Mb are bits, MB are bytes.
_AS_WRITTEN = {name: name for name in ("B", "KB", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "Kb", "Mb", "Gb")}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in (unit.casefold(), *words.split())}
_QUANTITY = re.compile(rf"(?P<sign>[-−]?)(?P<number>{_NUMBER})\s{{0,3}}(?P<unit>[^\d\s.,-][^\d\s]{{0,14}})")


def lowercase_trim(value: str) -> str:
    """Return the value in lower case, without spaces at its ends."""
    return value.strip().lower()


def currency(value: str) -> str:
    """Return an amount of money as `USD 1250.5`; a bare number stays without a currency, and other text as it is."""
    found = _MONEY.fullmatch(value.strip())
    if found is None or (found["before"] and found["after"]):
        return value
    unit = found["before"] or found["after"]
    code = _SYMBOLS.get(unit.upper(), unit.upper()) if unit else ""
    if unit and code not in _CODES:
        return value
    return f"{code} {_number(found)}".strip()


def day(value: str) -> str:
    """Return a date as `2024-03-16`, and other text as it is. A date such as 3/4/2024 can be read in two ways, and stays."""
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
    digits = found["number"].replace(",", "")
    whole, _, rest = digits.partition(".")
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
