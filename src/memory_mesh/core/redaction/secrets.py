"""Secrets with a form of their own: signed tokens, private keys, authorization headers, credentials in addresses, hex keys."""

import re
from collections.abc import Iterator
from itertools import pairwise

from memory_mesh.core.redaction.pattern import (
    BEFORE,
    Cue,
    Example,
    Page,
    Pattern,
    Span,
    filler,
    joined,
    occurrences,
    words,
)
from memory_mesh.core.redaction.words import placeholder
from memory_mesh.core.text import LazyRegex

_JWT = LazyRegex(
    r"eyJ[A-Za-z0-9_-]{10,16384}+\.[A-Za-z0-9_-]{0,16384}+\.[A-Za-z0-9_-]{0,16384}+(?:\.[A-Za-z0-9_-]{0,16384}+){0,2}"
)


def jwts(page: Page) -> Iterator[Span]:
    """Base64 of `{"…`, and at least two more parts."""
    text = page.text
    for place in occurrences(text, "eyJ"):
        head = text[place - 1 : place]
        found = None if joined(head) or head in tuple("_-") else _JWT.match(text, place)
        if found and found[0].count(".") in (2, 4):
            yield found.span()


_BEGIN = LazyRegex(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = LazyRegex(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_LONGEST_BLOCK = 64 * 1024
# The lines of a block whose end is missing: headers, then base64, with real or escaped line ends.
_BREAK = r"(?:\s|\\[nrt])"
_CUT_OFF = LazyRegex(
    rf"{_BREAK}{{0,64}}+(?:[A-Za-z-]{{2,32}}: [^\n\\]{{0,128}}+{_BREAK}{{1,64}}+){{0,8}}"
    rf"(?:[A-Za-z0-9+/=]{{16,4096}}+{_BREAK}{{0,64}}+){{0,2048}}+(?:[A-Za-z0-9+/]{{1,15}}={{0,2}}(?![^\s\"'\\]))?"
)


def private_keys(page: Page) -> Iterator[Span]:
    """From BEGIN to END; without an END as far as it looks like a key."""
    text = page.text
    begins = [found.span() for found in _BEGIN.finditer(text)]
    for (start, after), (following, _) in pairwise([*begins, (len(text), len(text))]):
        # Looking no further than the next BEGIN keeps the time linear.
        end = _END.search(text, after, min(following, after + _LONGEST_BLOCK))
        cut_off = _CUT_OFF.match(text, after, following)
        yield start, end.end() if end else after + len(cut_off[0].rstrip() if cut_off else "")


_AUTHORIZATION = LazyRegex(
    r"(?i:authorization|x-auth-token)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:(bearer|basic|token|digest|apikey|negotiate)\s{1,3})?([^\s\"',;<>]{4,4096}+)"
)
_BEARER = LazyRegex(r"(?i:bearer)[ \t]{1,3}([A-Za-z0-9._~+/=-]{8,4096}+)")
_USER_FLAG = LazyRegex(r"(?:-u|--user|--proxy-user)[ =]{1,2}[\"']?([^\s\"':]{1,128}:[^\s\"']{1,256})")


def authorizations(page: Page) -> Iterator[Span]:
    """What follows `Authorization:`, `Bearer` or `curl -u`."""
    yield from _headers(page)
    yield from _bearers(page)
    if page.holds(("curl", "wget")):
        yield from _flags(page.text)


def _headers(page: Page) -> Iterator[Span]:
    for found in _matches(_AUTHORIZATION, page, ("authorization", "x-auth-token")):
        scheme, value = (found[1] or "").lower(), found[2]
        if not placeholder(value) and (scheme in ("bearer", "basic") or any(map(str.isdigit, value))):
            yield found.span(2)


def _bearers(page: Page) -> Iterator[Span]:
    for found in _matches(_BEARER, page, ("bearer",)):
        value = found[1]
        if not placeholder(value) and (any(map(str.isdigit, value)) or len(value) >= 32):
            yield found.start(1), found.start(1) + len(value.rstrip("."))


def _matches(expression: LazyRegex, page: Page, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
    for place in page.places(stems):
        found = expression.match(page.text, place)
        if found:
            yield found


def _flags(text: str) -> Iterator[Span]:
    for found in _USER_FLAG.finditer(text):
        name, _, word = found[1].partition(":")
        if not placeholder(word) and not (name.isdigit() and word.isdigit()):
            yield found.span(1)


_USERINFO = LazyRegex(r"://([^\s/@:\"'<>\[\]{}]{0,128}):([^\s/\"'<>]{1,512})@(?=[\w\[.$%{-])")
_DUMMY = frozenset({"pass", "password", "passwd", "pw", "pwd", "secret", "token", "pat", "key"})


def url_credentials(page: Page) -> Iterator[Span]:
    """`user:password` in front of a host."""
    text = page.text
    for found in _USERINFO.finditer(text):
        if found[2].lower() not in _DUMMY and not placeholder(found[2]):
            yield found.start(1), found.end(2)


_LONG_HEX = LazyRegex(r"[0-9a-fA-F][0-9a-fA-F]{31,511}+")
_HEX_STEMS = ("key", "secret", "token", "pass", "credential", "seed", "hmac", "private", "signing", "encryption")
_HEX_CUE = Cue(
    _HEX_STEMS,
    r"\w{0,20}?(?:key|secret|token|passphrase|password|credential|seed|hmac)s?(?:_?(?:hex|base16|value))?|private|signing|encryption",
)
_DIGEST = words(
    r"\w{0,20}?(?:hash|digest|checksum|sum|sha|sha_?\d{1,3}|md5|commit|etag|fingerprint|revision|rev|tree|blob|block|head|parent|object)"
    r"|\w{0,20}?(?:id|uuid)|git|merge|cherry.?pick|image|layer|container|integrity|public"
)
_HEX_REACH = 40


def hex_secrets(page: Page) -> Iterator[Span]:
    """32 hex digits or more beside a word such as key, secret or token, unless a word for a digest stands nearer."""
    text = page.text
    for found in _LONG_HEX.finditer(text):
        start, end = found.span()
        head = text[max(0, start - 2) : start]
        if (joined(head[-1:]) and head != "0x") or joined(text[end : end + 1]):
            continue
        window = max(0, start - _HEX_REACH), start
        if _HEX_CUE.near(page, found.span(), before=_HEX_REACH, after=0) and _last(_HEX_CUE.words, text, window) > _last(
            _DIGEST, text, window
        ):
            yield start, end


def _last(cue: LazyRegex, text: str, window: Span) -> int:
    """Where the last of the words in the window ends, or -1."""
    return max((found.end() for found in cue.finditer(text, *window)), default=-1)


_AWS_SECRET = LazyRegex(r"[A-Za-z0-9/+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=])")
_AWS_STEMS = ("aws", "amazon", "secret")
_AWS_CUE = Cue(_AWS_STEMS, r"aws|amazon|secret(?:_?access)?_?key|secret")


def aws_secrets(page: Page) -> Iterator[Span]:
    """40 characters of base64 beside a word for them. Hex digits alone are a commit's hash."""
    text = page.text
    for stretch in page.around(_AWS_STEMS, 0, BEFORE + 48):
        for found in _AWS_SECRET.finditer(text, *stretch):
            head, value = text[found.start() - 1 : found.start()], found[0]
            mixed = any(map(str.isdigit, value)) and not value.isupper() and not value.islower()
            if mixed and head not in tuple("/+.-_") and not joined(head) and _AWS_CUE.near(page, found.span(), after=0):
                yield found.span()


_UUID_TAIL = LazyRegex(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w-])")
_UUID_HEAD = LazyRegex(r"[0-9a-fA-F]{8}")
_UUID_CUE = Cue(
    ("key", "token", "secret"),
    r"(?:heroku|snyk|api|auth|access|secret)[\s_-]?(?:api)?[\s_-]?(?:key|token)s?|client[\s_-]secret",
)


def uuid_keys(page: Page) -> Iterator[Span]:
    """A UUID is an id, unless what stands before calls it an API key."""
    for tail in _UUID_TAIL.finditer(page.text):
        start = tail.start() - 8
        whole = start >= 0 and _UUID_HEAD.match(page.text, start) and not joined(page.text[start - 1 : start])
        if whole and _UUID_CUE.near(page, (start, tail.end()), before=32, after=0):
            yield start, tail.end()


_HEX = filler(64, "4f3c2b1a0d9e8f76")
_HEADER, _PAYLOAD = "eyJ" + filler(33), "eyJ" + filler(40)
PRIVATE_KEY = Pattern(
    id="private_key",
    label="PRIVATE_KEY",
    why="Who has the private key is the owner. Public keys and certificates stay.",
    finds=private_keys,
    hints=("private key",),
    examples=(
        Example(
            "key:\n-----BEGIN RSA PRIVATE KEY-----\n" + filler(64) + "\n-----END RSA PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\n" + filler(64) + "\n-----END RSA PRIVATE KEY-----",
        ),
        Example(
            "-----BEGIN PRIVATE KEY-----\n" + filler(64) + "\n" + filler(30),
            "-----BEGIN PRIVATE KEY-----\n" + filler(64) + "\n" + filler(30),
        ),
    ),
    counter_examples=("-----BEGIN PUBLIC KEY-----\n" + filler(64) + "\n-----END PUBLIC KEY-----", "keep your private key safe"),
)
JWT = Pattern(
    id="jwt",
    label="JWT",
    why="A signed token logs its bearer in, and its middle part holds personal data in the open.",
    finds=jwts,
    long_word=True,
    hints=("eyj",),
    examples=(Example(f"token {_HEADER}.{_PAYLOAD}.{filler(43)} expired", f"{_HEADER}.{_PAYLOAD}.{filler(43)}"),),
    counter_examples=("eyJhbGciOiJIUzI1NiJ9 alone", "keyJoints.and.more"),
)
AUTHORIZATION = Pattern(
    id="bearer",
    label="TOKEN",
    why="An authorization header or a bearer token is as good as a login.",
    finds=authorizations,
    hints=("bearer", "authorization", "x-auth-token", "curl", "wget"),
    examples=(
        Example("curl -H 'Authorization: Bearer " + filler(24) + "' …", filler(24)),
        Example("Authorization: Basic " + filler(20) + "==", filler(20) + "=="),
        Example("curl -u ann:s3cret! https://example.org", "ann:s3cret!"),
    ),
    counter_examples=(
        "the bearer of good news",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "docker run -u 1000:1000 curl",
    ),
)
URL_CREDENTIALS = Pattern(
    id="url_credentials",
    label="CREDENTIALS",
    why="A user name and password in front of a host open it.",
    finds=url_credentials,
    hints=("://",),
    examples=(Example("postgresql://ann:pa55@db.example.org:5432/app", "ann:pa55"),),
    counter_examples=(
        "https://example.org:8443/a@b",
        "postgresql://user:password@host/db",
        "redis://:${REDIS_PASSWORD}@cache:6379",
    ),
)
HEX_SECRET = Pattern(
    id="hex_secret",
    label="SECRET",
    why="Long hex digits called a key, a secret or a token are one. Without such a word they are a hash or an id.",
    finds=hex_secrets,
    long_word=True,
    hints=_HEX_STEMS,
    examples=(Example(f"the signing key is {_HEX}", _HEX), Example(f"from the seed 0x{_HEX[:32]}", _HEX[:32])),
    counter_examples=(f"commit {_HEX[:40]}", f"sha256:{_HEX}", f"the key's fingerprint is {_HEX[:32]}", f"{_HEX}  secret.txt"),
)
AWS_SECRET = Pattern(
    id="aws_secret_key",
    label="API_KEY",
    why="The secret half of an AWS key: forty characters of base64, beside a word for them.",
    finds=aws_secrets,
    long_word=True,
    hints=_AWS_STEMS,
    examples=(Example("AWS secret access key " + filler(40, "a1B/c3D4e5+F6g7H8i9J"), filler(40, "a1B/c3D4e5+F6g7H8i9J")),),
    counter_examples=("secret of commit " + filler(40, "0a1b2c3d4e5f6789"), "value " + filler(40, "a1B/c3D4e5+F6g7H8i9J")),
)
UUID_KEY = Pattern(
    id="uuid_key",
    label="API_KEY",
    why="Heroku and some others give out UUIDs as keys. A UUID without such a word is an id and stays.",
    finds=uuid_keys,
    long_word=True,
    hints=("key", "token", "secret"),
    examples=(Example("HEROKU_API_KEY is 01234567-89ab-4cde-8f01-23456789abcd", "01234567-89ab-4cde-8f01-23456789abcd"),),
    counter_examples=("request 01234567-89ab-4cde-8f01-23456789abcd", "primary key 01234567-89ab-4cde-8f01-23456789abcd"),
)
SPECIFIC = (PRIVATE_KEY, URL_CREDENTIALS, JWT, AWS_SECRET, UUID_KEY, AUTHORIZATION)
GENERAL = (HEX_SECRET,)
PATTERNS = (*SPECIFIC, *GENERAL)
