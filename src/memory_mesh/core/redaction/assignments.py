"""Passwords and secrets by how they are called: in code, JSON, YAML, environment files, command lines and sentences.

Only the value is masked. How sure the name and the form must make us depends on the value: `password = "hunter2"` is clear,
`token = next_token` is code, `the password is required` is a sentence.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from memory_mesh.core.redaction.pattern import Example, Page, Pattern, Span, filler
from memory_mesh.core.redaction.words import LABELS, PASSWORDS, STEMS, TOKENS, placeholder, plain_word
from memory_mesh.core.text import LazyRegex

_NAME = LazyRegex(rf"(?P<pw>{PASSWORDS})|(?P<tk>{TOKENS})", re.IGNORECASE)
_NOT_A_NAME = LazyRegex(
    r"(?:pad|eos|bos|unk|sep|cls|mask|max|min|num|next|prev|previous|page|continuation|sync|stop|special)[_-]?$", re.IGNORECASE
)
_LONGEST = 256
_LEAD = 24

# What stands between a name and its value.
_ASSIGNED = LazyRegex(
    r"(?:_(?:value|string|hex|b64|base64|plain))?[0-9]{0,2}(?:\\{0,3}[\"'`]|\]|\*\*){0,2}[ \t]{0,8}"
    r"(?:(?::[ \t]{0,2}(?:str|string|bytes|SecretStr|Optional\[\w{1,20}\]|\w{1,20} \| None|Text)[ \t]{0,2})?(?:={1,3}(?!>)|=>|:=)"
    r"|:(?![:/])|：)"
    r"\*{0,2}[ \t]{0,8}(?:[bruf]{1,2}(?=[\"']))?"
)
_SAID = LazyRegex(
    r"(?:\s{1,3}(?:for|to|of|on)\s[^.\n:=?!]{1,40}?)?"
    r"(?:\s{1,3}(?:is|was|are|will\sbe|ist|est|es|to|as|equals)(?:\snow|\sset\sto|\sstill)?:?\s{1,3}|['’]s\s{1,3}|是|为|は)"
)
_BESIDE = LazyRegex(r"(?:\\{0,3}[\"'])?[ \t]{1,4}(?:[-–—(][ \t]{0,2})?")
_FLAG = LazyRegex(r"(?:^|\s)--?[\w-]{0,30}$")
_NEXT_LINE = LazyRegex(r":[ \t]{0,4}\n[ \t]{0,8}")
_TAG = LazyRegex(r">[ \t]{0,4}([^<>\n]{1,256})</")
_QUOTED = LazyRegex(r"(\\{0,3})([\"'`])((?:(?!\2)[^\n\\]|\\(?![\"'`])){1,8192})\1\2")
_BARE = LazyRegex(r"(?:[^\s\"'`,;&<>|]|,(?!\s|$|\w{1,40}\s?[=:])){1,256}")
_REST = LazyRegex(r"[^\s\"'`,;&<>|]*+")
_CODE_AFTER = LazyRegex(r"[(\[]|\s{0,2}(?:\?|\|\||&&|\bor\b|\band\b|\bif\b)\s")
_DOTTED = LazyRegex(r"[A-Za-z_]\w{0,30}(?:(?:\.|->|::)[A-Za-z_]\w{0,30}){1,8}")
_FILE = LazyRegex(r".{1,120}\.(?:py|js|ts|json|ya?ml|toml|txt|md|pem|key|crt|env|cfg|ini|conf|sh|html?|go|rs|java)")
_UNIT = LazyRegex(
    r"\s{0,2}(?:-|–|to|characters?|chars?|letters?|digits?|symbols?|words?|bits?|bytes?|minutes?|days?|hours?|seconds?|times?|%)",
    re.IGNORECASE,
)
_LETTER = LazyRegex(r"[^\W\d_]")
_MARKED = LazyRegex(r"\d|[!@#$%^&*~?](?!$)")
_LINE_END = LazyRegex(r"[.,;]{0,2}[ \t]{0,8}(?:\r?\n|$|[\"'`)}\]])")
_SENTENCE_END = LazyRegex(r"[.!]?[ \t]{0,4}(?:\r?\n|$|[.!;)])")


def assignments(page: Page) -> Iterator[Span]:
    """The value behind each name of a secret, where it looks like one."""
    done = 0
    for name in _names(page):
        span = _value(page.text, name) if name.start() >= done else None
        if span is not None:
            done = span[1]
            yield span


def _names(page: Page) -> Iterator[re.Match[str]]:
    """The names, looked for only where a part of one was seen."""
    for start, end in page.around(STEMS, _LEAD, _LEAD):
        yield from _NAME.finditer(page.text, start, end)


def _value(text: str, name: re.Match[str]) -> Span | None:
    end = name.end()
    if _NOT_A_NAME.search(text, max(0, name.start() - 16), name.start()):
        return None
    for link, judge in ((_NEXT_LINE, _alone), (_ASSIGNED, _assigned), (_SAID, _said), (_BESIDE, _beside)):
        found = link.match(text, end)
        if found:
            return judge(text, name, found.end())
    tag = _TAG.match(text, end)
    return tag.span(1) if tag and not placeholder(tag[1]) and not plain_word(tag[1]) else None


def _assigned(text: str, name: re.Match[str], at: int) -> Span | None:
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted.span(3) if _quoted_secret(quoted[3], name) else None
    bare = _bare(text, at)
    if bare is None:
        return None
    value = text[bare[0] : bare[1]]
    if looks_secret(value) and not _code(text, value, bare[1]):
        return _whole(text, bare)
    if value.isdigit():
        enough = len(value) >= (4 if name["pw"] else 8) and name[0].lower() != "token"
        return bare if enough and not _UNIT.match(text, bare[1]) else None
    return _whole(text, bare) if _word_as_secret(text, name, at, bare) else None


def _word_as_secret(text: str, name: re.Match[str], at: int, span: Span) -> bool:
    """A value of letters only: in an environment file it is one; elsewhere only a password alone on its line."""
    value = text[span[0] : span[1]]
    if len(value) < 4 or plain_word(value) or _code(text, value, span[1]) or not any(char.isalpha() for char in value):
        return False
    if _environment(text, name, at):
        return True
    typed = value[:1].isupper() and name[0].islower()  # password: Password
    identifier = text[at - 2 : at].endswith("= ") or "_" in value
    return bool(name["pw"]) and not typed and not identifier and _LINE_END.match(text, span[1]) is not None


def _environment(text: str, name: re.Match[str], at: int) -> bool:
    return name[0].isupper() and text[at - 1] == "="


def _said(text: str, name: re.Match[str], at: int) -> Span | None:
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted.span(3) if _quoted_secret(quoted[3], name) else None
    bare = _bare(text, at)
    if bare is None:
        return None
    value = text[bare[0] : bare[1]]
    if looks_secret(value) and not _code(text, value, bare[1]):
        return _whole(text, bare)
    ends = bool(name["pw"]) and _SENTENCE_END.match(text, bare[1])
    if value.isdigit():
        return bare if ends and len(value) >= 4 else None
    return bare if ends and len(value) >= 5 and value.isalpha() and not plain_word(value) else None


def _alone(text: str, name: re.Match[str], at: int) -> Span | None:
    """On a line of its own below the name."""
    bare = _bare(text, at)
    if bare is None or not _LINE_END.match(text, bare[1]):
        return None
    value = text[bare[0] : bare[1]]
    return _whole(text, bare) if looks_secret(value) and not _code(text, value, bare[1]) else None


def _beside(text: str, name: re.Match[str], at: int) -> Span | None:
    """A flag of a command line, or a quoted or clearly secret value right behind the name."""
    flag = _FLAG.search(text, max(0, name.start() - 32), name.start()) is not None
    quoted = _QUOTED.match(text, at)
    if quoted:
        return quoted.span(3) if looks_secret(quoted[3]) or (flag and not placeholder(quoted[3])) else None
    bare = _bare(text, at)
    if bare is None:
        return None
    value = text[bare[0] : bare[1]]
    stands_for_one = value.isupper() and not any(char.isdigit() for char in value)  # --password PASSWORD
    if flag and value[0] != "-" and len(value) >= 4 and not plain_word(value) and not stands_for_one:
        return _whole(text, bare)
    shortest = 6 if name["pw"] else 12
    return _whole(text, bare) if len(value) >= shortest and looks_secret(value) and not _code(text, value, bare[1]) else None


def _bare(text: str, at: int) -> Span | None:
    """An unquoted value without what only ends it, or None where it stands for something else."""
    found = _BARE.match(text, at)
    if found is None:
        return None
    value = found[0].rstrip(".,:?…*")
    for opening, closing in ("()", "[]", "{}"):
        if value.endswith(closing) and opening not in value:
            value = value[:-1].rstrip(".,:?")
    return None if placeholder(value) else (at, at + len(value))


def _whole(text: str, span: Span) -> Span:
    """A value longer than we look at is still masked to its end."""
    if span[1] - span[0] < _LONGEST:
        return span
    rest = _REST.match(text, span[1])
    return span[0], rest.end() if rest else span[1]


def _quoted_secret(value: str, name: re.Match[str]) -> bool:
    if placeholder(value) or plain_word(value) or len(value) < 3 or _FILE.fullmatch(value):
        return False
    if " " in value.strip():
        return bool(name["pw"]) and _passphrase(value.split())
    if looks_secret(value):
        return True
    if _DOTTED.fullmatch(value):
        return False
    if value.replace("-", "").replace("_", "").isalpha():
        # One word may be a password, and a long one a secret; `token` is also a word of grammars and of language models.
        return bool(name["pw"]) or len(value) >= 20 or (len(value) >= 8 and value.isalpha() and name[0].lower() != "token")
    return bool(name["pw"]) or len(value) >= 8


def _passphrase(parts: list[str]) -> bool:
    """Several words in quotes, unless they are a label or a message."""
    return len(parts) <= 8 and LABELS.isdisjoint(part.lower().strip(".,:!?") for part in parts) and parts[-1][-1] not in ".?"


def looks_secret(value: str) -> bool:
    """Six characters or more that are no word: letters with digits, or with marks or capitals as words do not have them."""
    if len(value) < 6 or placeholder(value) or plain_word(value) or _FILE.fullmatch(value):
        return False
    if not _LETTER.search(value):
        return False
    if _MARKED.search(value):
        return True
    return len(value) >= 12 and value.isalpha() and sum(a.islower() != b.islower() for a, b in pairwise(value)) > 0.4 * len(value)


def _code(text: str, value: str, end: int) -> bool:
    """A call, an index or a dotted name fetches the secret; it is not the secret."""
    if "(" in value or "[" in value or _CODE_AFTER.match(text, end):
        return True
    return bool(_DOTTED.fullmatch(value)) and sum(char.isdigit() for char in value) <= 1


PASSWORD_ASSIGNMENT = Pattern(
    id="password_assignment",
    label="SECRET",
    why="What is called a password, a secret, a token or a key is one, whoever made it.",
    finds=assignments,
    hints=STEMS,
    examples=(
        Example('password = "hunter2"', "hunter2"),
        Example("my password is hunter2.", "hunter2"),
        Example('{"api_key": "' + filler(20) + '"}', filler(20)),
        Example("export DB_PASSWORD=swordfish", "swordfish"),
        Example("mysql --password s3same -h db", "s3same"),
        Example("?token=" + filler(16) + "&page=2", filler(16)),
        Example("<password>hunter2</password>", "hunter2"),
    ),
    counter_examples=(
        "Send a password reset",
        "secret: none",
        'password = os.environ["DB_PASSWORD"]',
        "def login(user: str, password: str) -> None:",
        "password: <password>",
        "TOKEN=${TOKEN}",
        "password: ****",
        "token = next_token()",
        "The password is required.",
        "max_tokens: 4096",
        "The secret is patience",
    ),
)
PATTERNS = (PASSWORD_ASSIGNMENT,)
