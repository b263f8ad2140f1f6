"""Find the names of secrets, where their values end, and whether a value is really a secret."""

import re
from itertools import pairwise
from string import ascii_lowercase
from typing import NamedTuple

from memory_mesh.core.language.packaged import Expressions, WordLists, WordSets
from memory_mesh.core.language.redaction.pattern import Span

_RE, _WORDS, _LISTS = Expressions(__name__), WordSets(__name__), WordLists(__name__)

# --- secret or not ---

MAX_BARE = 256


def placeholder(value: str) -> bool:
    """Return whether the value only stands for a secret: a variable, a template, stars,
    `<token>`, a mask."""
    short = value.strip("\"'`")
    return not short or bool(_RE.placeholder.fullmatch(short) or _RE.reference.match(short))


def plain_word(value: str) -> bool:
    """Return whether the value is a word about a secret, such as `required`, `str` or `expired`."""
    low = value.lower().rstrip(".,;:!?")
    return low in _WORDS.not_secret or bool(_RE.not_secret_ending.fullmatch(low))


def variable(value: str) -> bool:
    """Return whether the value is the name of a variable that contains a secret."""
    return (
        bool(_RE.variable.fullmatch(value) or _RE.dotted.fullmatch(value))
        and sum(map(str.isdigit, value)) <= 1
    )


def called(value: str) -> bool:
    """Return whether the value is a call or an index, perhaps cut off inside its arguments."""
    return _RE.call.match(value) is not None and (
        value[-1] in ")]" or value.count("(") > value.count(")") or ")." in value
    )


def looks_secret(value: str, *, min_length: int = 6) -> bool:
    """Return whether the characters are not a word: letters with digits, or with marks or
    capitals unlike a word's."""
    if (
        len(value) < min_length
        or placeholder(value)
        or plain_word(value)
        or _is_file(value)
        or not _RE.letter.search(value)
    ):
        return False
    if _RE.marked.search(value):
        return True
    return (
        len(value) >= 12
        and value.isalpha()
        and sum(a.islower() != b.islower() for a, b in pairwise(value)) > 0.4 * len(value)
    )


def _is_file(value: str) -> bool:
    return "." in value[-6:] and _RE.file.fullmatch(value) is not None


def random_looking(value: str, *, min_length: int = 16) -> bool:
    """Return whether the value is a long run of mixed letters and digits, as only a key is."""
    core = value.rstrip("=")
    digits = sum(map(str.isdigit, core))
    return (
        len(core) >= min_length
        and 2 <= digits < len(core)
        and re.fullmatch(r"[A-Za-z0-9+/_~.-]+", core) is not None
    )


def noisy(value: str) -> bool:
    """Return whether sixteen or more characters with several kinds of marks are a generated
    secret."""
    return (
        len(value) >= 16
        and len(value.split()) < 3
        and len(set(value) & set("!@#$%^&*()|<>{}~[]?;")) >= 3
        and any(map(str.isalnum, value))
    )


def quoted_secret(value: str, *, password: bool, token_word: bool = False) -> bool:
    """Return whether a quoted value with a name of a secret is one. `token_word` is set for the
    bare name `token`."""
    if placeholder(value) or plain_word(value) or len(value) < 3 or _is_file(value):
        return False
    if " " in value.strip():
        # Several words may be a passphrase, unless they are a label or a message.
        parts = value.split()
        lower = [part.lower().strip(".,:!?") for part in parts]
        labelled = (
            any(word in _WORDS.labels for word in lower)
            or sum(word in _WORDS.weak_labels for word in lower) > 1
        )
        labelled = labelled or all(map(plain_word, lower))  # "too easy"
        return (
            (password or looks_secret(value))
            and len(parts) <= 8
            and not labelled
            and parts[-1][-1] not in ".?:"
        )
    if looks_secret(value):
        return not (_RE.dotted.fullmatch(value) and variable(value))
    if (
        _RE.dotted.fullmatch(value)
        or variable(value)
        or (not password and _RE.constant.fullmatch(value))
    ):
        return False
    if value.replace("-", "").replace("_", "").isalpha():
        # One word may be a password, and a long one a secret. `token` is also a term of grammars
        # and language models.
        return (
            password or len(value) >= 20 or (len(value) >= 8 and value.isalpha() and not token_word)
        )
    return password or len(value) >= 8


# --- where a value starts ---

_ELSE_CHARS = 192  # how far `_ELSE` reaches


def fallback(text: str, at: int) -> re.Match[str] | None:
    """Match the operator before the literal that an expression falls back to:
    `os.environ.get("X") or "…"`."""
    near = text[at : at + _ELSE_CHARS]
    # `_ELSE` tries every split of what it reads. So first its quote and its mark are looked for.
    if not ('"' in near or "'" in near or "`" in near) or not _RE.else_mark.search(near):
        return None
    return _RE.else_.match(text, at)


# --- where a value ends ---

_PAIRS = {
    "«": "»",
    "“": "”",
    "„": "“",
    "‘": "’",
    "「": "」",
    "『": "』",
    "‹": "›",
    "&quot;": "&quot;",
}
_PAIRS |= {
    opening: opening[-1:].translate(str.maketrans("({[", ")}]"))
    for opening in ("q(", "q{", "q[", "qq(", "qq{", "qq[")
}
_PAIRS |= {"[[": "]]", '<<"': '">>'}  # Lua, Erlang
OPENING_QUOTES = tuple("\"'`«“„‘「『")
_MAX_QUOTED = 8192


def quoted(text: str, at: int) -> tuple[Span, int] | None:
    """Return the span inside a quoted value and the offset behind its closing quote.

    Quotes that are escaped or doubled inside belong to the value, and so do further parts joined to
    it.
    """
    opening = _RE.opening.match(text, at)
    if opening is None:
        return None
    start, end = opening.end(), _closing(text, opening)
    if end is None or end == start:
        return None
    after = end + len(opening[1]) + len(_PAIRS.get(opening[2], opening[2]))
    for _ in range(16):
        link = _RE.joined.match(text, after)
        glued = link is not None and link[0] in ("'", '"')
        part = _RE.opening.match(text, after if glued else link.end()) if link else None
        stop = _closing(text, part) if part else None
        if part is None or stop is None:
            break
        end, after = stop, stop + len(part[1]) + len(_PAIRS.get(part[2], part[2]))
    return (start, end), after


def _closing(text: str, opening: re.Match[str]) -> int | None:
    """Return where the closing quote is, or None. Only marks of three characters may enclose
    several lines."""
    escape, quote = opening[1], opening[2]
    close, at = escape + _PAIRS.get(quote, quote), opening.end()
    limit = min(len(text), at + _MAX_QUOTED)
    line = text.find("\n", at, limit) if len(quote) != 3 else -1
    limit = line if line >= 0 else limit
    while True:
        end = text.find(close, at, limit)
        if end < 0:
            return None
        before = text[max(at, end - 8) : end]
        slashes = len(before) - len(before.rstrip("\\"))
        if slashes % 2 if not escape else slashes:  # an escaped quote
            at = end + len(close)
        elif (
            not escape
            and quote in "'\""
            and text[end + 1 : end + 2] == quote
            and _doubled(text, end, limit)
        ):
            at = end + 2
        elif (
            text[end + len(close) : end + len(close) + 1].isalnum()
            and quote in "'\""
            and _closed_later(text, end + 1, close, limit)
        ):
            at = end + 1  # a quote inside the value that is not escaped
        else:
            return end


def _closed_later(text: str, at: int, close: str, limit: int) -> bool:
    """Return whether a quote follows that can be the closing one, because no letter or digit
    stands behind it."""
    end = text.find(close, at, limit)
    return (
        end >= 0
        and not text[end + len(close) : end + len(close) + 1].isalnum()
        and not _RE.separator.search(text, at, end)
    )


def _doubled(text: str, end: int, limit: int) -> bool:
    """Return whether a doubled quote stands for one quote: something of the value follows, and
    then a quote."""
    following = text[end + 2 : end + 3]
    return (
        following not in ("", "\n", " ", ",", ";", ")", text[end])
        and text.find(text[end], end + 2, limit) > 0
    )


_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


def bare(text: str, at: int, name_start: int) -> Span | None:
    """Return the span of an unquoted value, or None for a placeholder.

    It ends at a blank, at the next `&name=` or `;name=`, at the quote that encloses the whole
    assignment, or at closing marks.
    """
    found = _RE.word.match(text, at)
    if found is None:
        return None
    value = found[0]
    if value.isalnum() and value.isascii():
        return None if placeholder(value) else found.span()
    head = text[line_start(text, name_start) : name_start]
    for quote in "\"'`":
        if quote in value and is_open(head, quote):
            value = value[: value.index(quote)].rstrip("\\")
    if head[-1:] in ("?", "&"):
        value = re.split("[&#]", value, maxsplit=1)[0]
    if _RE.next_part.search(value) and _RE.equals.match(
        text, at + len(value)
    ):  # Password=x;User Id=y
        value = value[: value.rindex(";")]
    value = _cut(value, head)
    if not value.isascii() and value[:1] < "\u3000" and (wide := _RE.wide.search(value)):
        value = value[: wide.start()]
    value = _trimmed(value)
    if placeholder(value) or _RE.literal.fullmatch(value):
        return None
    # Behind `name = value` it ends a statement. A line of prose or of YAML does not end with it, so
    # that it belongs to the value.
    assigned = text[max(0, at - 8) : at].rstrip(" \t").endswith("=")
    more = (
        not assigned and _RE.digit.search(value) and _RE.last_of_line.match(text, at + len(value))
    )
    return at, at + len(value) + bool(more)


def _cut(value: str, head: str) -> str:
    if _RE.cut_char.search(value) and (cut := _RE.cut.search(value)):
        value = value[: cut.start()]
    if "](" in value and "[" in head + value[:1]:  # [password: x](https://example.org)
        value = value[: value.index("](")]
    return value


def line_start(text: str, at: int) -> int:
    """Return where the line of this offset starts, at most 256 characters before it."""
    low = max(0, at - 256)
    return max(low, text.rfind("\n", low, at) + 1)


def is_open(head: str, quote: str) -> bool:
    """Return whether a quote was opened in the line before the name and not closed. Apostrophes
    do not count."""
    if quote == "'":
        head = re.sub(r"(?<=\w)'(?=\w)", "", head)
    return head.count(quote) % 2 == 1


def _trimmed(value: str) -> str:
    value = value.rstrip(".,:?…*;")
    for opening, closing in _BRACKETS:
        while value.endswith(closing) and value.count(opening) < value.count(closing):
            value = value[:-1].rstrip(".,:?;")
    if value[-1:] in ("'", '"', "`") and value.count(value[-1]) % 2:
        value = value[:-1]
    return value


def extended(text: str, span: Span) -> Span:
    """Extend a value that is longer than `bare` reads to its end."""
    if span[1] - span[0] < MAX_BARE:
        return span
    rest = _RE.rest.match(text, span[1])
    return span[0], rest.end() if rest else span[1]


# --- names ---
# `DB_PASSWORD`, `clientSecret`, `api key`, `Passwort`, `密码`

# `key` and `code` are names of secrets only after one of these words.
# `dbpass=` is a password, `lowpass=` is a filter.
STEMS = _LISTS.stems


class Name(NamedTuple):
    """The name of a secret in a text. `longer` and `plural` say how it goes on after the
    secret's word."""

    kind: str
    word: str
    start: int
    end: int
    longer: bool
    plural: bool

    @property
    def is_password(self) -> bool:
        return self.kind == "pw"

    @property
    def is_key(self) -> bool:
        """Return whether it is only called a key, which many harmless values are."""
        return self.word in ("key", "auth", "salt")

    @property
    def is_vague(self) -> bool:
        """Return whether only a value that looks random belongs to it."""
        return self.is_key or (self.longer and not self.is_password)


def name_at(text: str, place: int) -> Name | None:
    """Return the name of a secret that starts at a place."""
    found = _RE.name.match(text, place)
    return _named(text, found) if found else None


def _named(text: str, found: re.Match[str]) -> Name | None:
    """Return the name, or None if the words before or after it say that it is something else."""
    start, word = found.start(), found[0].lower()
    before = text[max(0, start - 16) : start].lower()
    stripped = before.rstrip(" _-")
    if (
        word == "pass"
        and found[0].islower() == before[-1:].islower()
        and before[-1:].isalpha()
        and not before.endswith(_LISTS.glued)
    ):
        return None
    if word in ("key", "code", "combination"):
        owner = stripped.endswith(_LISTS.keys if word == "key" else _LISTS.codes)
        if not owner and not (found[0] == "KEY" and before[-1:] == "_"):
            return None
        word = f"api {word}" if owner else word
    last = stripped[len(stripped.rstrip(ascii_lowercase)) :]
    # But "change token to …".
    other_token = last in _WORDS.other_tokens and found[0].lower() == "token"
    if (
        last in _WORDS.other
        or (last in _WORDS.other_start and stripped == before)
        or (other_token and not text.startswith(" to ", found.end()))
    ):
        return None
    if (
        word == "secret" and before[-1:] == ":" and before[-2:-1].isdigit()
    ):  # arn:aws:secretsmanager:eu-west-1:123456789012:secret:name
        return None
    tail = _RE.tail.match(text, found.end()) if word.isascii() else None  # 密码123789
    rest, end = (tail[0], tail.end()) if tail else ("", found.end())
    parts = [part[0] for part in _RE.tail_word.finditer(rest)]
    if any(part.lower() in _WORDS.about for part in parts) or (
        text[end : end + 1].isalpha() and text[end] < "\u0e00"
    ):
        return None
    longer = any(part != "s" and not part.isdigit() for part in parts)
    return Name(found.lastgroup or "", word, start, end, longer, rest[:1] == "s")
