"""Text basics that several packages share.

Token counts, sentences, regular expressions compiled on first use, URLs without their passwords,
invisible characters, escapes of terminals, the masks of redaction, short reprs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from sys import maxsize
from typing import Any, Generic, Self, TypeVar, overload
from unicodedata import category

TokenCounter = Callable[[str], int]

CHARACTERS_PER_TOKEN = 4
_MONTHS = {
    "01": "Jan", "02": "Feb", "03": "Mar", "04": "Apr", "05": "May", "06": "Jun",
    "07": "Jul", "08": "Aug", "09": "Sep", "10": "Oct", "11": "Nov", "12": "Dec",
}  # fmt: skip


def estimate(text: str) -> int:
    """Return the estimated number of tokens: a quarter of the characters, rounded up. Used when
    no embedder counts tokens."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def shortened(text: str, max_chars: int) -> str:
    """Return the beginning of a text with the mark ` …`, cut after a sentence or a word, in at
    most so many characters."""
    if len(text) <= max_chars:
        return text
    # One character more shows whether a word ends before it.
    room = text[: max(0, max_chars - len(_CUT_MARK)) + 1]
    sentence, word = (
        max((end.start() for end in ends.finditer(room)), default=0)
        for ends in (_SENTENCE_END, _WORD_END)
    )
    cut = sentence if sentence >= len(room) / 2 else word or len(room) - 1
    while cut and (_BELONGS.match(text, cut) or text[cut - 1] == "\u200d"):
        cut -= 1
    return text[:cut] + _CUT_MARK if cut else _CUT_MARK.strip()[:max_chars]


def day(at: str) -> str:
    """Return the day of a stored time, such as `26 Sep 2026`."""
    return f"{at[8:10].lstrip('0')} {_MONTHS.get(at[5:7], at[5:7])} {at[:4]}"


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with the quotes and brackets that close it. A line is
    a sentence too."""
    start = 0
    for end in _BETWEEN_SENTENCES.finditer(text):
        yield text[start : end.start()] + end.group().rstrip()
        start = end.end()
    yield text[start:]


class LazyRegex:
    """A regular expression that is compiled on first use. Compiling all of redaction's at import
    would take 60 ms.

    The first call replaces the methods of the object by those of the compiled pattern, which cost a
    third.
    """

    def __init__(self, source: str, flags: int = 0) -> None:
        self.source, self._flags = source, flags

    def _compiled(self) -> re.Pattern[str]:
        compiled = re.compile(self.source, self._flags)
        names = ("finditer", "search", "match", "fullmatch", "split", "sub", "findall")
        self.__dict__ |= {name: getattr(compiled, name) for name in names}
        return compiled

    def finditer(self, text: str, start: int = 0, end: int = maxsize) -> Iterator[re.Match[str]]:
        return self._compiled().finditer(text, start, end)

    def search(self, text: str, start: int = 0, end: int = maxsize) -> re.Match[str] | None:
        return self._compiled().search(text, start, end)

    def match(self, text: str, start: int = 0, end: int = maxsize) -> re.Match[str] | None:
        return self._compiled().match(text, start, end)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled().fullmatch(text)

    def split(self, text: str) -> list[str]:
        return self._compiled().split(text)

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str) -> str:
        return self._compiled().sub(replacement, text)


_CUT_MARK = " …"
_SENTENCE_END = LazyRegex(r"(?<=[.!?])(?=\s)|(?<=[。！？])(?!\Z)|(?=\n)")
_BETWEEN_SENTENCES = LazyRegex(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=\S)|(?<=[。！？])|\n+")
_WORD_END = LazyRegex(r"(?<=\S)(?=\s)")
# What belongs to the character before it: accents, variation selectors, joiners, skin tones.
_BELONGS = LazyRegex(r"[\u0300-\u036f\u20e3\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff]")

# Up to the last `@`: a password may contain `@` and `/`. A name alone may be a token.
_URL_PASSWORD = LazyRegex(r"(\w://[^/\s:@]*:)\S+@|(\w://)[^/\s:@]+@")
_URL_SECRET = LazyRegex(
    r"(?i)([?&;][\w.%-]*(?:pass|pwd|pw|secret|token|key|auth|cred|sig)[\w.%-]*=)[^&#\s]+"
)
_SPACE = LazyRegex(r"\s")


def address_text(value: str) -> str:
    """Return the usual text of an IP address, the same in every Python: 3.13 writes a mapped one as
    `::ffff:1.2.3.4`.

    Raises `ValueError`.
    """
    from ipaddress import IPv6Address, ip_address  # few texts have one

    address = ip_address(value)
    if not isinstance(address, IPv6Address) or address.ipv4_mapped is None:
        return str(address)
    bits, zone = int(address), f"%{address.scope_id}" if address.scope_id else ""
    return f"::ffff:{bits >> 16 & 0xFFFF:x}:{bits & 0xFFFF:x}{zone}"


def shown_url(url: str) -> str:
    """Return a URL for display, without its passwords."""
    return without_passwords(_SPACE.sub("%20", url))


def without_passwords(text: str) -> str:
    """Return the text without the passwords of the URLs in it."""
    return _URL_SECRET.sub(r"\1***", _URL_PASSWORD.sub(r"\1\2***@", text))


# --- invisible characters ---
# Each constant is the inside of a character class, for use in `[...]`.

# Control characters other than tab and line breaks.
CONTROL = r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
# Embeddings, overrides and isolates: they change the order in which the text around them is
# displayed.
REORDERING = r"\u202a-\u202e\u2066-\u2069"
# Soft hyphen, zero-width space, direction marks, word joiner, byte order mark. No script needs them
# to be readable.
REDUNDANT = r"\u00ad\u200b\u200e\u200f\u2060\ufeff"
ZERO_WIDTH = r"\u200b-\u200d\u2060-\u2064"
TAGS = r"\U000e0000-\U000e007f"
VARIATION_SELECTORS = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
SURROGATES = r"\ud800-\udfff"

# Unicode's "default ignorable" characters, and blanks that are not spaces, such as fillers. Some
# scripts and emoji need a few of them; those are allowed by context, see `_NEEDED`.
_IGNORABLE = (
    rf"{REORDERING}{REDUNDANT}{ZERO_WIDTH}{TAGS}{VARIATION_SELECTORS}\u034f\u061c\u115f\u1160\u17b4"
    r"\u17b5\u180b-\u180f\u2065\u206a-\u206f\u2800\u3164\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U"
    r"0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
# Private use, surrogates and noncharacters mean nothing to a human reader, but a model may react to
# them.
_UNASSIGNED = rf"{SURROGATES}\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff" + "".join(
    rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(1, 15)
)

# Scripts that need joiners: Arabic, its neighbours and those of India. A joiner may also end a
# word.
_JOINING = r"[\u0600-\u061b\u061d-\u0dff]"
# Characters displayed as emoji, also several of them as one picture: a couple, a profession.
_PICTURE = (
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001"
    r"f000-\U0001faff]"
)
# England, Scotland and Wales. Any other sequence of tag characters after a black flag would be
# hidden text.
_FLAGS = [
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(char)) for char in f"{name}\x7f")
    for name in ("gbeng", "gbsct", "gbwls")
]
# A character is allowed because of what stands right before it, which is itself allowed: so
# `visible` is idempotent.
_NEEDED = (
    rf"(?<={_JOINING}[\u200c\u200d])",
    rf"(?<=[0-9A-Za-z]\u200c){_JOINING}",  # a foreign word with an ending
    rf"(?<={_PICTURE}\u200d){_PICTURE}",
    rf"(?<={_PICTURE}\ufe0f\u200d){_PICTURE}",
    rf"(?<={_PICTURE}[\ufe0e\ufe0f])",
    r"(?<=[0-9#*]\ufe0f)\u20e3",  # a keycap
    r"(?<=[\u1820-\u18aa][\u180b-\u180f])",  # variants of Mongolian letters
    *(f"(?<={flag[:at]}){flag[at:]}" for flag in _FLAGS for at in range(2, len(flag) + 1)),
)

# The characters that may be needed. Of others no context is read: a text may consist of them.
_SOMETIMES_NEEDED = r"\u180b-\u180f\u200c\u200d\ufe0e\ufe0f\U000e0061-\U000e007f"

# The list is explicit instead of `unicodedata.category`: a Python that does not know a new script
# or emoji must not remove it.
INVISIBLE = LazyRegex(
    f"[{_IGNORABLE}{_UNASSIGNED}{CONTROL}](?:(?<![{_SOMETIMES_NEEDED}])|(?!{'|'.join(_NEEDED)}))"
)
_PRINTABLE = LazyRegex("[!-~]")
# Ends a passage: what follows has a vector of its own, however short it is.
PASSAGE_BREAK = "\n\u241e\n"
_LINE_BREAKS = LazyRegex("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")


def visible(text: str) -> str:
    """Return the text as a reader sees it: without invisible characters, every line break a
    newline."""
    return INVISIBLE.sub("", _LINE_BREAKS.sub("\n", text))


def is_blank(text: str) -> bool:
    """Return whether no character of the text is displayed: spaces, control characters, fillers,
    accents without a letter."""
    text = without_escapes(text)
    return _PRINTABLE.search(text) is None and all(
        char.isspace() or category(char)[0] == "M" for char in visible(text)
    )


# --- escape sequences of terminals ---

# Colours and cursor movements (CSI), titles and hyperlinks (OSC, up to BEL or ST), device strings,
# and the short ones. The 8-bit form of CSI needs a parameter, or ends with `m`, `J` or `K`: the
# byte is also a quotation mark in a text of the wrong encoding.
_ESCAPES = LazyRegex(
    r"(?:\x1b\[|\x9b(?=[0-?]|[mJK](?![a-z])))[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9b-\x9f\n]{0,4096}+(?:\x07|\x1b\\|"
    r"\x9c)"
    r"|\x1b(?:[ -/]{1,8}[0-~]|[\]PX^_\[]|[0-~])?"
)


def without_escapes(text: str) -> str:
    """Return the text without the escape sequences of terminals."""
    return text if text.isascii() and "\x1b" not in text else _ESCAPES.sub("", text)


# --- masks ---
# What redaction writes into a text, such as `[EMAIL]` or `[EMAIL:1a2b3c4d]`. They are here because
# search and the options need the masks, but not the patterns that find values.

LABELS = (
    "API_KEY", "CARD", "CREDENTIALS", "EMAIL", "IBAN", "IP", "JWT", "NATIONAL_ID", "PHONE",
    "PRIVATE_KEY", "SECRET", "TOKEN", "US_SSN",
)  # fmt: skip
KINDS = tuple(label.lower() for label in LABELS)  # as options and reports name them
# The other labels are personal data.
_SECRETS = frozenset({"API_KEY", "CREDENTIALS", "JWT", "PRIVATE_KEY", "SECRET", "TOKEN"})
PERSONAL_KINDS = frozenset(label.lower() for label in LABELS if label not in _SECRETS)
MASK = LazyRegex(rf"\[({'|'.join(LABELS)}|REDACTED)(?::([0-9a-f]{{8}}))?\]")


def hides_value(text: str) -> bool:
    """Return whether a mask replaces a value of the text that can no longer be told from other
    values."""
    return "[" in text and any(mask[2] is None for mask in MASK.finditer(text))


def hides_secret(text: str) -> bool:
    """Return whether a mask or pseudonym replaces a secret of the text."""
    return "[" in text and any(mask[1] in _SECRETS for mask in MASK.finditer(text))


def without_masks(text: str, *, keep_pseudonyms: bool = False) -> str:
    """Return the text without its masks: they replace what was written, and are not words of it.

    A pseudonym stands for one value, so `keep_pseudonyms` leaves its digits.
    """
    if "[" not in text:
        return text
    return MASK.sub(lambda mask: f" {mask[2] or ''} " if keep_pseudonyms else " ", text)


# --- reprs of records ---

_MAX_CHARS = 60
_MAX_ITEMS = 3


def short_repr(record: Any) -> str:
    """Return the `repr` of a dataclass. Fields that are declared with `repr=False` are left out.

    A class uses it as `__repr__ = short_repr`; so does each of its subclasses, or the dataclass
    decorator writes another.
    """
    values = ((field, getattr(record, field.name)) for field in fields(record) if field.repr)
    shown = [
        f"{field.name}={_short(value)}"
        for field, value in values
        if not (_is_empty(value) or value == _default(field))
    ]
    return f"{type(record).__name__}({', '.join(shown)})"


class ShortRepr:
    """The base of records that show their `repr` as `short_repr` does; their dataclass decorator
    has `repr=False`."""

    __slots__ = ()
    __repr__ = short_repr


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | Mapping | Sequence) and not value)


def _default(field: Any) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _short(value: object) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_CHARS else value[: _MAX_CHARS - 1] + "…")
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Mapping):
        pairs = [
            f"{_short(name)}: {_nested(part)}" for name, part in list(value.items())[:_MAX_ITEMS]
        ]
        return "{" + _listed(pairs, len(value)) + "}"
    if isinstance(value, list | tuple):
        if all(is_dataclass(item) for item in value):
            return f"<{len(value):,} × {type(value[0]).__name__}>"
        return "[" + _listed([_nested(item) for item in value[:_MAX_ITEMS]], len(value)) + "]"
    return repr(value)


def _nested(value: object) -> str:
    """Return the `repr` of a value inside a list or mapping: what is inside of that is only
    counted."""
    if isinstance(value, Mapping | list | tuple):
        return f"<{len(value):,} item{'s' * (len(value) != 1)}>"
    return _short(value)


def _listed(shown: list[str], count: int) -> str:
    return ", ".join([*shown, *([f"… {count:,} in all"] if count > len(shown) else [])])


# --- computed on first use ---

Value = TypeVar("Value")


class lazy_property(Generic[Value]):  # noqa: N801 - used like `property`
    """`functools.cached_property` without its lock.

    Before Python 3.12 all objects of a class share the lock: threads wait for each other, and a
    process that forks while another thread has it leaves a child that waits forever. Without it,
    two threads may both compute the value.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> Self | Value:
        if instance is None:
            return self
        value: Value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
