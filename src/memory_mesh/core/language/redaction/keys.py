"""Find keys and credentials that have a form of their own, and the keys of vendors.

Private keys, signed tokens, authorization headers, credentials in URLs, keys beside a cue word.
"""

import re
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from memory_mesh.core.language.packaged import Expressions, Tables, WordLists, WordSets
from memory_mesh.core.language.redaction.pattern import (
    BEFORE,
    Cue,
    Page,
    Pattern,
    Span,
    Surroundings,
    joined,
    occurrences,
)
from memory_mesh.core.language.redaction.values import (
    looks_secret,
    placeholder,
    random_looking,
    variable,
)
from memory_mesh.core.text import LazyRegex

_RE, _WORDS, _LISTS = Expressions(__name__), WordSets(__name__), WordLists(__name__)


def _jwts(page: Page) -> Iterator[Span]:
    """Match base64 of `{"…` with at least two more parts."""
    text = page.text
    for place in occurrences(text, "eyJ"):
        head = text[place - 1 : place]
        found = None if joined(head) or head in tuple("_-") else _RE.jwt.match(text, place)
        if found and found[0].count(".") in (2, 4):
            yield found.span()


_MAX_BLOCK = 64 * 1024


def _private_keys(page: Page) -> Iterator[Span]:
    """Match from BEGIN to END; without an END, as far as the text looks like a key."""
    text = page.text
    begins = [found.span() for found in _RE.begin.finditer(text)]
    for (start, after), (following, _) in pairwise([*begins, (len(text), len(text))]):
        # Searching no further than the next BEGIN keeps the time linear.
        end = _RE.end.search(text, after, min(following, after + _MAX_BLOCK))
        cut_off = _RE.cut_off.match(text, after, following)
        span = start, end.end() if end else after + len(cut_off[0].rstrip() if cut_off else "")
        # Without a line of a key it is only mentioned, as in `_END = "-----END PRIVATE KEY-----"`.
        if _RE.key_line.search(text, after, span[1]) or (end and text[after] not in "\"'`"):
            yield span
    if page.holds(("private-lines",)):
        yield from (
            (found.start(1), found.start(1) + len(found[1].rstrip()))
            for found in _RE.putty.finditer(text)
        )
    if page.holds(('"kty"',)):
        yield from (found.span(1) for found in _RE.jwk.finditer(text))


def _authorizations(page: Page) -> Iterator[Span]:
    """Match the value after `Authorization:`, `Bearer`, `Basic` or `Digest`."""
    for found in page.matches(_RE.authorization, ("authorization", "x-auth-token")):
        scheme, value = (
            (found[1] or "").lower(),
            found[2].rstrip("`.") if "`" in found[2][-2:] else found[2],
        )
        named = (
            len(value) < 4
            or _RE.metavariable.fullmatch(value)
            or ("." not in value and variable(value))
        )
        if (
            not placeholder(value)
            and not named
            and (scheme in ("bearer", "basic") or any(map(str.isdigit, value)))
        ):
            yield found.start(2), found.start(2) + len(value)
    for found in page.matches(_RE.bearer, ("bearer",)):
        value = found[1]
        if not placeholder(value) and (any(map(str.isdigit, value)) or len(value) >= 32):
            yield found.start(1), found.start(1) + len(value.rstrip("."))
    # `Basic` with base64 of `user:password` wherever it stands, and the response of `Digest`.
    basic = page.matches(_RE.basic, ("basic ",))
    yield from (found.span(1) for found in basic if _has_colon(found[1]))
    yield from (found.span(1) for found in page.matches(_RE.digest_response, ("digest ",)))


def _has_colon(value: str) -> bool:
    try:
        return b":" in a2b_base64(value)
    except ValueError:
        return False


def _url_credentials(page: Page) -> Iterator[Span]:
    """Match `user:password` in front of a host, or a token in the place of the user."""
    surroundings = Surroundings(page, before=0, after=1300)
    yield from filter(
        None,
        (surroundings.judge(place, _userinfo) for place in page.places(("://", "：//", "：／／"))),
    )
    for place in page.places(("@tcp(", "@unix(")):  # Go
        if (found := _RE.go.search(page.text, max(0, place - 200), place)) and _is_password(
            found[1]
        ):
            yield found.span(1)
    for found in page.matches(_RE.oracle, ("jdbc:oracle",)):
        if _is_password(found[1]):
            yield found.span(1)
    surroundings = Surroundings(page, before=176, after=200)
    hosts = _RE.before_host.finditer(page.text)
    yield from filter(None, (surroundings.judge(found.start(), _without_scheme) for found in hosts))
    # ssh user:password@host
    surroundings = Surroundings(page, before=_LOGIN_REACH, after=160)
    ends = (found.start() for found in _RE.login_end.finditer(page.text))
    ends = (at for at in ends if page.text.find(":", max(0, at - 200), at) >= 0)
    yield from filter(None, (surroundings.judge(at, _login) for at in ends))


def _userinfo(text: str, place: int) -> Span | None:
    found = _RE.userinfo.match(text, place)
    if found and _is_password(found[2]):
        return found.start(1), found.end(2)
    token = _RE.token_as_user.match(text, place)
    return token.span(1) if token and random_looking(token[1]) else None


_LOGIN_REACH = 384  # characters of a command and its login


def _login(text: str, at: int) -> Span | None:
    low = max(0, at - 200)
    word = max(text.rfind(" ", low, at), text.rfind("\t", low, at), text.rfind("\n", low, at)) + 1
    login = _RE.login.match(text, word, at)
    if login is None or login.end() < at or login[0].partition(":")[0] in _WORDS.no_users:
        return None
    command = _RE.to_host.search(text, max(0, word - 160), word)
    host = _RE.any_host if command and command[1] else _RE.with_path
    return (
        login.span(1) if command and host.match(text, at + 1) and _is_password(login[1]) else None
    )


def _is_password(value: str) -> bool:
    port = value.partition("/")[0].isdigit() and "/" in value  # https://host:8443/a@b
    return (
        not port
        and "//" not in value
        and value.lower() not in _WORDS.dummy
        and not placeholder(value)
    )


def _without_scheme(text: str, at: int) -> Span | None:
    """Match `user:password` before a host, if the password looks like one."""
    head = text[max(0, at - 170) : at]
    word = head[max(map(head.rfind, (" ", "\n", "\t", "'", '"', "(", "=")), default=-1) + 1 :]
    if (
        ":" not in word
        or "//" in word
        or word.partition(":")[0] in _WORDS.no_users
        or not _RE.host.match(text, at + 1)
    ):
        return None
    found = _RE.without_scheme.fullmatch(word)
    if found is None or not looks_secret(found[1]) or found[1].lower() in _WORDS.dummy:
        return None
    return at - len(found[1]), at


_HEX_CUE = Cue(_LISTS.hex_cue_stems, _RE.hex_cue)
_HEX_REACH = 40


def _hex_secrets(page: Page) -> Iterator[Span]:
    """Match 32 or more hex digits after a word such as key, secret or token, unless a word for a
    digest is nearer."""
    text = page.text
    for found in _RE.long_hex.finditer(text):
        start, end = found.span()
        head = text[max(0, start - 2) : start]
        if (joined(head[-1:]) and head != "0x") or joined(text[end : end + 1]):
            continue
        window = max(0, start - _HEX_REACH), start
        near = _HEX_CUE.near(page, found.span(), before=_HEX_REACH, after=0)
        if near and _last(_HEX_CUE.words, text, window) > _last(_RE.digest, text, window):
            yield start, end


def _last(cue: LazyRegex, text: str, window: Span) -> int:
    """Return where the last of the words in the window ends, or -1."""
    return max((found.end() for found in cue.finditer(text, *window)), default=-1)


_AWS_CUE = Cue(_LISTS.aws_cue_stems, _RE.aws_cue)


def _aws_secrets(page: Page) -> Iterator[Span]:
    """Match 40 characters of base64 near a cue word. Hex digits alone are the hash of a commit."""
    text = page.text
    for stretch in page.around(_AWS_CUE.stems, 0, BEFORE + 48):
        for found in _RE.aws_secret.finditer(text, *stretch):
            head, value = text[found.start() - 1 : found.start()], found[0]
            mixed = any(map(str.isdigit, value)) and not value.isupper() and not value.islower()
            if (
                mixed
                and head not in tuple("/+.-_")
                and not joined(head)
                and _AWS_CUE.near(page, found.span(), after=0)
            ):
                yield found.span()


_UUID_CUE = Cue(_LISTS.uuid_cue_stems, _RE.uuid_cue)


def _uuid_keys(page: Page) -> Iterator[Span]:
    """Match a UUID only if the words before it call it an API key."""
    for tail in _RE.uuid_tail.finditer(page.text):
        start = tail.start() - 8
        whole = (
            start >= 0
            and _RE.uuid_head.match(page.text, start)
            and not joined(page.text[start - 1 : start])
        )
        if whole and _UUID_CUE.near(page, (start, tail.end()), before=32, after=0):
            yield start, tail.end()


FORMS = (
    Pattern(
        "private_key", "PRIVATE_KEY", _private_keys, hints=("private key", "private-lines", '"kty"')
    ),
    Pattern("url_credentials", "CREDENTIALS", _url_credentials, hints=("@", "＠")),
    Pattern("jwt", "JWT", _jwts, long_word=True, hints=("eyj",)),
    Pattern("aws_secret_key", "API_KEY", _aws_secrets, long_word=True, hints=_AWS_CUE.stems),
    Pattern("uuid_key", "API_KEY", _uuid_keys, long_word=True, hints=_UUID_CUE.stems),
    Pattern("bearer", "TOKEN", _authorizations, hints=("bearer", "authorization", "x-auth-token")),
)
GENERAL = (Pattern("hex_secret", "SECRET", _hex_secrets, long_word=True, hints=_HEX_CUE.stems),)


# --- keys of vendors ---
# Each row of the table has the prefixes and the form of one vendor's keys. The engine searches the
# prefixes first, so that a row costs one substring search per prefix.

_CLASSES = {
    "<a>": "[A-Za-z0-9]", "<w>": "[A-Za-z0-9_-]", "<b>": "[A-Za-z0-9+/_=-]", "<h>": "[0-9a-fA-F]",
    "<u>": "[A-Z0-9]", "<id>": "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}  # fmt: skip
_SIMPLE = re.compile(r"([awbhu])(\d+)")


def _vendor(id_: str, prefixes: str, form: str, *options: str) -> Pattern:
    """Return the pattern of a row of the table."""
    starts = tuple(prefixes.split())
    lead = sum(int(option[5:]) for option in options if option.startswith("lead="))
    is_key = _varied if "capitals" in options else _random

    def find(page: Page) -> Iterator[Span]:
        regex = _vendor_form(form, starts)
        for prefix in starts:
            if prefix in page.long_words:
                yield from _with_prefix(page.text, prefix, regex, lead, is_key)

    return Pattern(id_, "API_KEY", find, prefixes=starts)


@cache
def _vendor_form(form: str, prefixes: tuple[str, ...]) -> re.Pattern[str]:
    if simple := _SIMPLE.fullmatch(form):
        form = rf"(?:{'|'.join(map(re.escape, prefixes))})<{simple[1]}>{{{simple[2]},}}+"
    for name, characters in _CLASSES.items():
        form = form.replace(name, characters)
    # No letter or digit may follow: a key inside a longer run of letters is something else, such as
    # base64.
    return re.compile(rf"{form}(?![A-Za-z0-9])")


def _with_prefix(
    text: str, prefix: str, form: re.Pattern[str], lead: int, is_key: Callable[[str], bool]
) -> Iterator[Span]:
    done = 0
    for place in occurrences(text, prefix):
        # A long run of prefixes is one key and is judged once.
        if place < done or (not lead and joined(text[place - 1 : place])):
            continue
        if match := form.match(text, max(0, place - lead)):
            start, done = match.span(match.lastindex or 0)
            if not joined(text[start - 1 : start]) and is_key(
                text[start:done][0 if lead else len(prefix) :]
            ):
                yield start, done


def _random(body: str) -> bool:
    """Return whether these characters are a key rather than the words of a name such as
    `npm_config_user_agent`."""
    return (
        any(map(str.isdigit, body))
        or sum(a.islower() != b.islower() for a, b in pairwise(body) if (a + b).isalpha()) > 3
    )


def _varied(body: str) -> bool:
    """Return whether these characters are not a row of crosses, which stands for a key."""
    return len(set(body)) > 3


VENDORS = tuple(_vendor(*row) for row in Tables(__name__).vendors)
