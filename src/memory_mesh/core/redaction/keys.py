"""Secrets in a form of their own: private keys, signed tokens, authorization headers, URL credentials, keys beside a cue word."""

import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import pairwise

from memory_mesh.core.redaction.pattern import (
    BEFORE,
    Cue,
    Page,
    Pattern,
    Span,
    Surroundings,
    joined,
    listed,
    occurrences,
    words,
)
from memory_mesh.core.redaction.values import looks_secret, placeholder, random_looking, variable
from memory_mesh.core.text import LazyRegex

_JWT = LazyRegex(
    r"eyJ[A-Za-z0-9_-]{10,16384}+\.[A-Za-z0-9_-]{0,16384}+\.[A-Za-z0-9_-]{0,16384}+(?:\.[A-Za-z0-9_-]{0,16384}+){0,2}"
)


def _jwts(page: Page) -> Iterator[Span]:
    """Match base64 of `{"…` with at least two more parts."""
    text = page.text
    for place in occurrences(text, "eyJ"):
        head = text[place - 1 : place]
        found = None if joined(head) or head in tuple("_-") else _JWT.match(text, place)
        if found and found[0].count(".") in (2, 4):
            yield found.span()


_PUTTY = LazyRegex(r"Private-Lines: \d{1,3}\r?\n((?:[A-Za-z0-9+/=]{1,80}+(?:\r?\n|$)){1,80}+)")
_JWK = LazyRegex(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,2}:\s{0,2}\"([A-Za-z0-9_-]{16,2048})\"")
_BEGIN = LazyRegex(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = LazyRegex(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_MAX_BLOCK = 64 * 1024
_KEY_LINE = LazyRegex(r"[A-Za-z0-9+/=]{16}")
# The lines of a block without an END: headers, then base64, with real or escaped line breaks.
_BREAK = r"(?:\s|\\[nrt])"
_CUT_OFF = LazyRegex(
    rf"{_BREAK}{{0,64}}+(?:[A-Za-z-]{{2,32}}: [^\n\\]{{0,128}}+{_BREAK}{{1,64}}+){{0,8}}"
    rf"(?:[A-Za-z0-9+/=]{{16,4096}}+{_BREAK}{{0,64}}+){{0,2048}}+(?:[A-Za-z0-9+/]{{1,15}}={{0,2}}(?![^\s\"'\\]))?"
)


def _private_keys(page: Page) -> Iterator[Span]:
    """Match from BEGIN to END; without an END, as far as the text looks like a key."""
    text = page.text
    begins = [found.span() for found in _BEGIN.finditer(text)]
    for (start, after), (following, _) in pairwise([*begins, (len(text), len(text))]):
        # Searching no further than the next BEGIN keeps the time linear.
        end = _END.search(text, after, min(following, after + _MAX_BLOCK))
        cut_off = _CUT_OFF.match(text, after, following)
        span = start, end.end() if end else after + len(cut_off[0].rstrip() if cut_off else "")
        # Without a line of a key it is only mentioned, as in `_END = "-----END PRIVATE KEY-----"`.
        if _KEY_LINE.search(text, after, span[1]) or (end and text[after] not in "\"'`"):
            yield span
    if page.holds(("private-lines",)):
        yield from ((found.start(1), found.start(1) + len(found[1].rstrip())) for found in _PUTTY.finditer(text))
    if page.holds(('"kty"',)):
        yield from (found.span(1) for found in _JWK.finditer(text))


_AUTHORIZATION = LazyRegex(
    r"(?i:authorization|x-auth-token)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:(bearer|basic|token|digest|apikey|negotiate)\s{1,3})?((?:[^\s\"',;<>]|;(?=[^\s\"'])){4,4096}+)"
)
_METAVARIABLE = LazyRegex(r"[A-Z_]{0,40}(?:TOKEN|KEY|JWT|SECRET|CREDENTIALS)[A-Z_]{0,40}")
_BEARER = LazyRegex(r"(?i:bearer)[ \t]{1,3}([A-Za-z0-9._~+/=-]{8,4096}+)")


def _authorizations(page: Page) -> Iterator[Span]:
    """Match the value after `Authorization:` or `Bearer`."""
    for found in _matches(_AUTHORIZATION, page, ("authorization", "x-auth-token")):
        scheme, value = (found[1] or "").lower(), found[2].rstrip("`.") if "`" in found[2][-2:] else found[2]
        named = len(value) < 4 or _METAVARIABLE.fullmatch(value) or ("." not in value and variable(value))
        if not placeholder(value) and not named and (scheme in ("bearer", "basic") or any(map(str.isdigit, value))):
            yield found.start(2), found.start(2) + len(value)
    for found in _matches(_BEARER, page, ("bearer",)):
        value = found[1]
        if not placeholder(value) and (any(map(str.isdigit, value)) or len(value) >= 32):
            yield found.start(1), found.start(1) + len(value.rstrip("."))
    yield from _schemes(page)


_BASIC = LazyRegex(r"(?i:basic)[ \t]{1,3}([A-Za-z0-9+/]{8,1024}={0,2})(?![\w+/])")
_DIGEST_RESPONSE = LazyRegex(r"(?i:digest)[ \t][^\n]{0,512}?(?<!\w)response=\"?([0-9a-fA-F]{32,128})")


def _schemes(page: Page) -> Iterator[Span]:
    """Match `Basic` with base64 of `user:password` wherever it stands, and the response of `Digest`."""
    yield from (found.span(1) for found in _matches(_BASIC, page, ("basic ",)) if _has_colon(found[1]))
    yield from (found.span(1) for found in _matches(_DIGEST_RESPONSE, page, ("digest ",)))


def _has_colon(value: str) -> bool:
    try:
        return b":" in b64decode(value)
    except ValueError:
        return False


def _matches(expression: LazyRegex, page: Page, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
    return filter(None, (expression.match(page.text, place) for place in page.places(stems)))


_AT = "[@＠]"
_USERINFO = LazyRegex(rf"[:：](?://|／／)([^\s/@＠:：\"'<>\[\]{{}}]{{0,128}})[:：]([^\s\"<>]{{1,512}}){_AT}(?=[\w\[.$%{{-])")
_TOKEN_AS_USER = LazyRegex(rf"://([A-Za-z0-9_.~%-]{{16,512}}){_AT}(?=[\w.-])")
_BEFORE_HOST = LazyRegex(rf"{_AT}(?=[\w.-])(?<=[^ \n\t'\"(=/<>@]{{3}}.)")
_WITHOUT_SCHEME = LazyRegex(r"(?:[\w.-]{1,40}/)?[\w.%+-]{1,64}:([^/\"'<>@]{3,128})")
_HOST = LazyRegex(
    r"[\w.-]{1,128}(?::[0-9]{2,5}|/)|(?:[A-Za-z][\w-]{0,60}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?![\w.@:/-]\w|[\w@({\[])"
)
_NO_USERS = frozenset(listed("npm workspace jsr mailto pkg docker xmpp sip tag branch commit sha1 sha256 sha512"))
_ORACLE = LazyRegex(r"(?i)jdbc:oracle:\w{2,6}:[\w$#]{1,64}/([^\s@/]{1,128})@")
_GO = LazyRegex(r"(?<![\w.%+-])[\w.%+-]{1,64}:([^\s\"'`]{3,128})$")
_DUMMY = frozenset({"pass", "password", "passwd", "pw", "pwd", "secret", "token", "pat", "key"})


def _url_credentials(page: Page) -> Iterator[Span]:
    """Match `user:password` in front of a host, or a token in the place of the user."""
    surroundings = Surroundings(page, before=0, after=1300)
    yield from filter(None, (surroundings.judge(place, _userinfo) for place in page.places(("://", "：//", "：／／"))))
    for place in page.places(("@tcp(", "@unix(")):  # Go
        if (found := _GO.search(page.text, max(0, place - 200), place)) and _is_password(found[1]):
            yield found.span(1)
    for found in _matches(_ORACLE, page, ("jdbc:oracle",)):
        if _is_password(found[1]):
            yield found.span(1)
    surroundings = Surroundings(page, before=176, after=200)
    hosts = _BEFORE_HOST.finditer(page.text)
    yield from filter(None, (surroundings.judge(found.start(), _without_scheme) for found in hosts))
    yield from _logins(page)


def _userinfo(text: str, place: int) -> Span | None:
    found = _USERINFO.match(text, place)
    if found and _is_password(found[2]):
        return found.start(1), found.end(2)
    token = _TOKEN_AS_USER.match(text, place)
    return token.span(1) if token and random_looking(token[1]) else None


# Commands to which a host is given, so that `user:password@host` is a login. Those of the second list need a path after the host:
# `scp host:notes@old .` copies a file.
_TO_HOST = LazyRegex(
    r"(?<![\w.-])(?:(ssh|sftp|ftp|lftp|telnet|mosh|ncat?|svn|hg|psql|curl|wget|mysql\w{0,6}|mongo\w{0,6}|redis-cli|smbclient)"
    r"|scp|rsync|git|sshfs)[ \t](?=[^\n|;&]{0,160}$)"
)
_LOGIN = LazyRegex(r"[\"']?[\w.+-]{1,64}:([^\s/\"']{1,128})")
_LOGIN_REACH = 384  # characters of a command and its login
_LOGIN_END = LazyRegex(r"@(?=[\w.\[-])(?<=[^\s/\"']@)")
_ANY_HOST, _WITH_PATH = LazyRegex(r"[\w\[]"), LazyRegex(r"[\w.-]{1,128}[:/]")


def _logins(page: Page) -> Iterator[Span]:
    """Yield the passwords of `ssh user:password@host`."""
    surroundings = Surroundings(page, before=_LOGIN_REACH, after=160)
    ends = (found.start() for found in _LOGIN_END.finditer(page.text))
    ends = (at for at in ends if page.text.find(":", max(0, at - 200), at) >= 0)
    return filter(None, (surroundings.judge(at, _login) for at in ends))


def _login(text: str, at: int) -> Span | None:
    low = max(0, at - 200)
    word = max(text.rfind(" ", low, at), text.rfind("\t", low, at), text.rfind("\n", low, at)) + 1
    login = _LOGIN.match(text, word, at)
    if login is None or login.end() < at or login[0].partition(":")[0] in _NO_USERS:
        return None
    command = _TO_HOST.search(text, max(0, word - 160), word)
    host = _ANY_HOST if command and command[1] else _WITH_PATH
    return login.span(1) if command and host.match(text, at + 1) and _is_password(login[1]) else None


def _is_password(value: str) -> bool:
    port = value.partition("/")[0].isdigit() and "/" in value  # https://host:8443/a@b
    return not port and "//" not in value and value.lower() not in _DUMMY and not placeholder(value)


def _without_scheme(text: str, at: int) -> Span | None:
    """Match `user:password` before a host, if the password looks like one."""
    head = text[max(0, at - 170) : at]
    word = head[max(map(head.rfind, (" ", "\n", "\t", "'", '"', "(", "=")), default=-1) + 1 :]
    if ":" not in word or "//" in word or word.partition(":")[0] in _NO_USERS or not _HOST.match(text, at + 1):
        return None
    found = _WITHOUT_SCHEME.fullmatch(word)
    if found is None or not looks_secret(found[1]) or found[1].lower() in _DUMMY:
        return None
    return at - len(found[1]), at


_LONG_HEX = LazyRegex(r"[0-9a-fA-F][0-9a-fA-F]{31,511}+")
_HEX_CUE = Cue(
    "key secret token pass credential seed hmac private signing encryption",
    r"\w{0,20}?(?:key|secret|token|passphrase|password|credential|seed|hmac)s?(?:_?(?:hex|base16|value))?|private|signing|encryption",
)
_DIGEST = words(
    r"\w{0,20}?(?:hash|digest|checksum|sum|sha|sha_?\d{1,3}|md5|commit|etag|fingerprint|revision|rev|tree|blob|block|head|parent|object)"
    r"|\w{0,20}?(?:id|uuid)|git|merge|cherry.?pick|image|layer|container|integrity|public"
)
_HEX_REACH = 40


def _hex_secrets(page: Page) -> Iterator[Span]:
    """Match 32 or more hex digits after a word such as key, secret or token, unless a word for a digest is nearer."""
    text = page.text
    for found in _LONG_HEX.finditer(text):
        start, end = found.span()
        head = text[max(0, start - 2) : start]
        if (joined(head[-1:]) and head != "0x") or joined(text[end : end + 1]):
            continue
        window = max(0, start - _HEX_REACH), start
        near = _HEX_CUE.near(page, found.span(), before=_HEX_REACH, after=0)
        if near and _last(_HEX_CUE.words, text, window) > _last(_DIGEST, text, window):
            yield start, end


def _last(cue: LazyRegex, text: str, window: Span) -> int:
    """Return where the last of the words in the window ends, or -1."""
    return max((found.end() for found in cue.finditer(text, *window)), default=-1)


_AWS_SECRET = LazyRegex(r"[A-Za-z0-9/+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=])")
_AWS_CUE = Cue("aws amazon secret", r"aws|amazon|secret(?:_?access)?_?key|secret")


def _aws_secrets(page: Page) -> Iterator[Span]:
    """Match 40 characters of base64 near a cue word. Hex digits alone are the hash of a commit."""
    text = page.text
    for stretch in page.around(_AWS_CUE.stems, 0, BEFORE + 48):
        for found in _AWS_SECRET.finditer(text, *stretch):
            head, value = text[found.start() - 1 : found.start()], found[0]
            mixed = any(map(str.isdigit, value)) and not value.isupper() and not value.islower()
            if mixed and head not in tuple("/+.-_") and not joined(head) and _AWS_CUE.near(page, found.span(), after=0):
                yield found.span()


_UUID_TAIL = LazyRegex(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w-])")
_UUID_HEAD = LazyRegex(r"[0-9a-fA-F]{8}")
_UUID_CUE = Cue(
    "key token secret", r"(?:heroku|snyk|api|auth|access|secret)[\s_-]?(?:api)?[\s_-]?(?:key|token)s?|client[\s_-]secret"
)


def _uuid_keys(page: Page) -> Iterator[Span]:
    """Match a UUID only if the words before it call it an API key."""
    for tail in _UUID_TAIL.finditer(page.text):
        start = tail.start() - 8
        whole = start >= 0 and _UUID_HEAD.match(page.text, start) and not joined(page.text[start - 1 : start])
        if whole and _UUID_CUE.near(page, (start, tail.end()), before=32, after=0):
            yield start, tail.end()


FORMS = (
    Pattern("private_key", "PRIVATE_KEY", _private_keys, hints=("private key", "private-lines", '"kty"')),
    Pattern("url_credentials", "CREDENTIALS", _url_credentials, hints=("@", "＠")),
    Pattern("jwt", "JWT", _jwts, long_word=True, hints=("eyj",)),
    Pattern("aws_secret_key", "API_KEY", _aws_secrets, long_word=True, hints=_AWS_CUE.stems),
    Pattern("uuid_key", "API_KEY", _uuid_keys, long_word=True, hints=_UUID_CUE.stems),
    Pattern("bearer", "TOKEN", _authorizations, hints=("bearer", "authorization", "x-auth-token")),
)
GENERAL = (Pattern("hex_secret", "SECRET", _hex_secrets, long_word=True, hints=_HEX_CUE.stems),)
