"""Passwords and secrets known by their names: in code, JSON, YAML, environment files, command lines and sentences.

Only the value is masked. How much evidence name and form must give depends on the value: `password = "hunter2"` is clear,
`token = next_token` is code, `the password is required` is a sentence. Placeholders, types, words such as `required` and calls
that fetch a secret stay readable.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from memory_mesh.core.redaction.pattern import Page, Pattern, Span, listed
from memory_mesh.core.text import LazyRegex

# Names of secrets. The value of a password may look like an ordinary word, the value of a token may not.
_PASSWORDS = (
    r"pass[\s_-]?(?:word|phrase|code)|passwd|pwd|(?<=[_-])pass|(?<=[a-z])(?-i:Pass)|passwort|kennwort|contrase[nñ]a|mot\sde\spasse|senha|wachtwoord|has[lł]o"
    r"|пароль|密码|密碼|パスワード|비밀번호"
)
_TOKENS = (
    r"secret(?:[\s_-]?(?:access)?[\s_-]?key)?|token|credentials?"
    r"|(?:api|app|access|auth|private|client|consumer|encryption|signing|master|account|service|shared|storage|license|ssh|deploy|webhook|session|hmac)"
    r"[\s_-]?key"
)
_STEMS = listed(
    "pass pwd secret token key credential kennwort contrase senha wachtwoord haslo hasło пароль 密码 密碼 パスワード 비밀번호"
)

# Values that are not secrets: states, types, keywords, words of sentences. Compared in lower case.
_NOT_SECRET = frozenset(
    listed("""
    none null nil undefined true false yes no on off empty blank unset missing absent n/a na unknown default optional required
    mandatory string str text int integer number float bool boolean bytes bytearray object any dict list array map void char
    varchar varchar2 uuid date datetime secretstr union self this new await async lambda yield not return input process.env
    os.environ env raise pass continue break print assert import try with def class del global exit throw
    password passwd pwd passphrase passcode secret token tokens key apikey api_key credential credentials user username login
    email invalid valid incorrect correct wrong right expired expiring revoked rejected accepted refused blocked leaked exposed
    compromised changed reset updated rotated set saved stored hashed encrypted salted masked hidden shown redacted protected
    too not now also only never always still already here there below above see the a an your my our his her their its it is was
    are be and or but if then so to for from in into at by with without of as that this which who what when where why how
    must should may can could will would has have had needs need weak strong long short safe unsafe secure insecure simple
    complex unique same different important easy hard old current temporary permanent confidential private public shared
    case-sensitive generated stdin prompt file vault keychain keyring environment variable config settings management manager
    policy protection field fields rotation hash hashing strength length based authentication auth oauth bearer basic jwt refresh
    access session cookie csrf bcrypt argon2 argon2i argon2id scrypt pbkdf2 md5 sha1 sha-1 sha256 sha-256 sha512 sha-512 hs256
    rs256 es256 aes-256 aes256 oauth2 oauth2.0 utf-8 utf8 base64 base32 2fa mfa totp ed25519 rsa rsa2048 rsa-2048 x509 x.509
    """)
)
# Words of labels and messages about passwords.
_LABELS = listed("""
    password passwords passwd passphrase your my enter must should required invalid incorrect wrong forgot forgotten reset confirm
    confirmation field is are was the please not too short weak change changed new at least characters here value needed provided
    for with cannot
""")
_NOT_SECRET_ENDING = LazyRegex(r"[a-z]{2,}(?:ed|ing|able|ible|ful|less|ously|ly|ment|tion|ness|ive|ous|ant|ent)")
_PLACEHOLDER = LazyRegex(
    r"<.{0,64}>|\$[A-Za-z_]+|\$[({].{0,200}|\{[{%].{0,200}|\{.{0,200}\}|\[.{0,200}\]|\(.{0,200}\)"
    r"|%s|%\(\w{1,40}\)s|%[A-Z_]{1,40}%|[*x•·.…#_X?-]{3,64}|[!@&][a-z_]{1,40}|\\.{0,4}"
    r"|(?:your|insert|enter|put|replace|example|placeholder|dummy|todo|redacted|fake|sample)(?:[-_. ].{0,64}|[A-Z].{0,64})?"
    r"|.{0,64}[-_](?:here|placeholder|example)",
    re.DOTALL,
)
# Expressions that fetch a secret or point to it.
_REFERENCE = LazyRegex(
    r"(?i)os\.|process\.env|env[.:(\[]|environ|getenv|config[.\[(]|settings[.\[(]|secrets?[.\[(]|vars?\.|data\.|self\.|this\.|ctx\.|params?[.\[]"
    r"|request\.|req\.|vault:|op://|arn:|ref\+|file:|secret://|sm://|projects/|/|\./|~/|https?://"
)

_NAME = LazyRegex(rf"(?P<pw>{_PASSWORDS})|(?P<tk>{_TOKENS})", re.IGNORECASE)
_NOT_A_NAME = LazyRegex(
    r"(?i)(?:pad|eos|bos|unk|sep|cls|mask|max|min|num|next|prev|previous|page|continuation|sync|stop|special)[_-]?$"
)
_MAX_BARE = 256
_LEAD = 24

# Between a name and its value.
_ASSIGNED = LazyRegex(
    r"(?:_(?:value|string|hex|b64|base64|plain))?[0-9]{0,2}(?:\\{0,3}[\"'`]|\]|\*\*){0,2}[ \t]{0,8}"
    r"(?:(?::[ \t]{0,2}(?:str|string|bytes|SecretStr|Optional\[\w{1,20}\]|\w{1,20} \| None|Text)[ \t]{0,2})?(?:={1,3}(?!>)|=>|:=)"
    r"|:(?![:/])|：)"
    r"\*{0,2}[ \t]{0,8}(?:[bruf]{1,2}(?=[\"']))?"
)
_STATED = LazyRegex(
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
    r"(?i)\s{0,2}(?:-|–|to|characters?|chars?|letters?|digits?|symbols?|words?|bits?|bytes?|minutes?|days?|hours?|seconds?|times?|%)"
)
_LETTER = LazyRegex(r"[^\W\d_]")
_MARKED = LazyRegex(r"\d|[!@#$%^&*~?](?!$)")
_LINE_END = LazyRegex(r"[.,;]{0,2}[ \t]{0,8}(?:\r?\n|$|[\"'`)}\]])")
_SENTENCE_END = LazyRegex(r"[.!]?[ \t]{0,4}(?:\r?\n|$|[.!;)])")
_Accepts = Callable[[str, re.Match[str], int, Span], Span | None]


def find_assignments(page: Page) -> Iterator[Span]:
    """Yield the value after each name of a secret, if it looks like a secret."""
    done = 0
    for start, end in page.around(_STEMS, _LEAD, _LEAD):
        for name in _NAME.finditer(page.text, start, end):
            span = _value(page.text, name) if name.start() >= done else None
            if span is not None:
                done = span[1]
                yield span


def _value(text: str, name: re.Match[str]) -> Span | None:
    end = name.end()
    if _NOT_A_NAME.search(text, max(0, name.start() - 16), name.start()):
        return None
    if link := _NEXT_LINE.match(text, end):
        bare = _bare(text, link.end())  # a clear secret alone on the line below the name
        return _extended(text, bare) if bare and _LINE_END.match(text, bare[1]) and _clear_secret(text, bare) else None
    if link := _ASSIGNED.match(text, end):
        return _secret(text, name, link.end(), _accept_assigned)
    if link := _STATED.match(text, end):
        return _secret(text, name, link.end(), _accept_stated)
    if link := _BESIDE.match(text, end):
        return _beside(text, name, link.end())
    tag = _TAG.match(text, end)
    return tag.span(1) if tag and not placeholder(tag[1]) and not plain_word(tag[1]) else None


def _secret(text: str, name: re.Match[str], at: int, accept: _Accepts) -> Span | None:
    """Return the span of a quoted secret, of a bare value that looks like one, or of one that `accept` takes by its context."""
    if quoted := _QUOTED.match(text, at):
        return quoted.span(3) if _quoted_secret(quoted[3], name) else None
    if not (bare := _bare(text, at)):
        return None
    return _extended(text, bare) if _clear_secret(text, bare) else accept(text, name, at, bare)


def _accept_assigned(text: str, name: re.Match[str], at: int, span: Span) -> Span | None:
    value = text[slice(*span)]
    if value.isdigit():
        enough = len(value) >= (4 if name["pw"] else 8) and name[0].lower() != "token"
        return span if enough and not _UNIT.match(text, span[1]) else None
    return _extended(text, span) if _word_as_secret(text, name, at, span) else None


def _accept_stated(text: str, name: re.Match[str], at: int, span: Span) -> Span | None:
    value, ends = text[slice(*span)], bool(name["pw"]) and _SENTENCE_END.match(text, span[1])
    if value.isdigit():
        return span if ends and len(value) >= 4 else None
    return span if ends and len(value) >= 5 and value.isalpha() and not plain_word(value) else None


def _word_as_secret(text: str, name: re.Match[str], at: int, span: Span) -> bool:
    """Accept a value of letters only in an environment file, or as a password alone on its line."""
    value = text[slice(*span)]
    if len(value) < 4 or plain_word(value) or _code(text, value, span[1]) or not any(char.isalpha() for char in value):
        return False
    if name[0].isupper() and text[at - 1] == "=":
        return True
    typed = value[:1].isupper() and name[0].islower()  # password: Password
    identifier = text[at - 2 : at].endswith("= ") or "_" in value
    return bool(name["pw"]) and not typed and not identifier and _LINE_END.match(text, span[1]) is not None


def _beside(text: str, name: re.Match[str], at: int) -> Span | None:
    """Accept a value after the name without any sign between them: `--password s3same`, `key (abc123)`."""
    flag = _FLAG.search(text, max(0, name.start() - 32), name.start()) is not None
    if quoted := _QUOTED.match(text, at):
        return quoted.span(3) if looks_secret(quoted[3]) or (flag and not placeholder(quoted[3])) else None
    if not (bare := _bare(text, at)):
        return None
    value = text[slice(*bare)]
    metavar = value.isupper() and not any(map(str.isdigit, value))  # --password PASSWORD
    argument = flag and value[0] != "-" and len(value) >= 4 and not plain_word(value) and not metavar
    if argument or (len(value) >= (6 if name["pw"] else 12) and _clear_secret(text, bare)):
        return _extended(text, bare)
    return None


def _bare(text: str, at: int) -> Span | None:
    """Return the span of an unquoted value without closing punctuation, or None for a placeholder."""
    if not (found := _BARE.match(text, at)):
        return None
    value = found[0].rstrip(".,:?…*")
    for opening, closing in ("()", "[]", "{}"):
        if value.endswith(closing) and opening not in value:
            value = value[:-1].rstrip(".,:?")
    return None if placeholder(value) else (at, at + len(value))


def _extended(text: str, span: Span) -> Span:
    """Extend a value that is longer than `_BARE` reads to its end."""
    if span[1] - span[0] < _MAX_BARE:
        return span
    rest = _REST.match(text, span[1])
    return span[0], rest.end() if rest else span[1]


def _quoted_secret(value: str, name: re.Match[str]) -> bool:
    if placeholder(value) or plain_word(value) or len(value) < 3 or _FILE.fullmatch(value):
        return False
    if " " in value.strip():
        # Several words may be a passphrase, unless they are a label or a message.
        parts = value.split()
        unlabelled = not any(part.lower().strip(".,:!?") in _LABELS for part in parts)
        return bool(name["pw"]) and len(parts) <= 8 and unlabelled and parts[-1][-1] not in ".?"
    if looks_secret(value):
        return True
    if _DOTTED.fullmatch(value):
        return False
    if value.replace("-", "").replace("_", "").isalpha():
        # One word may be a password, and a long one a secret. `token` is also a term of grammars and language models.
        return bool(name["pw"]) or len(value) >= 20 or (len(value) >= 8 and value.isalpha() and name[0].lower() != "token")
    return bool(name["pw"]) or len(value) >= 8


def looks_secret(value: str) -> bool:
    """Return whether six or more characters are not a word: letters with digits, or with marks or capitals unlike a word's."""
    if len(value) < 6 or placeholder(value) or plain_word(value) or _FILE.fullmatch(value) or not _LETTER.search(value):
        return False
    if _MARKED.search(value):
        return True
    return len(value) >= 12 and value.isalpha() and sum(a.islower() != b.islower() for a, b in pairwise(value)) > 0.4 * len(value)


def _clear_secret(text: str, span: Span) -> bool:
    value = text[slice(*span)]
    return looks_secret(value) and not _code(text, value, span[1])


def _code(text: str, value: str, end: int) -> bool:
    """Return whether the value is a call, an index or a dotted name, which fetches the secret."""
    if "(" in value or "[" in value or _CODE_AFTER.match(text, end):
        return True
    return bool(_DOTTED.fullmatch(value)) and sum(char.isdigit() for char in value) <= 1


def placeholder(value: str) -> bool:
    """Return whether the value only stands for a secret: a variable, a template, stars, `<token>`, a mask."""
    short = value.strip("\"'`")
    return not short or bool(_PLACEHOLDER.fullmatch(short) or _REFERENCE.match(short))


def plain_word(value: str) -> bool:
    """Return whether the value is a word about a secret, such as `required`, `str` or `expired`."""
    low = value.lower().rstrip(".,;:!?")
    return low in _NOT_SECRET or bool(_NOT_SECRET_ENDING.fullmatch(low))


PATTERNS = (Pattern("password_assignment", "SECRET", find_assignments, hints=_STEMS),)
