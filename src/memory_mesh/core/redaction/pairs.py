"""Secrets without a name directly beside them: rows of SQL, arguments after a user name, Kubernetes secrets, cookies."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from memory_mesh.core.redaction.pattern import Page, Pattern, Span
from memory_mesh.core.redaction.values import (
    bare,
    looks_secret,
    placeholder,
    plain_word,
    quoted,
    quoted_secret,
    random_looking,
    variable,
)  # fmt: skip
from memory_mesh.core.text import LazyRegex

_IDENTIFIED = LazyRegex(
    r"(?i)identified\s{1,4}(?:with\s{1,4}[\w']{1,40}\s{1,4})?(?:by|as)\s{1,4}(?:password\s{1,4})?(?:values\s{1,4})?"
)
_COLUMNS = LazyRegex(r"(?i)\(([^()]{1,400})\)\s{0,8}values\s{0,8}")
_SECRET_COLUMN = LazyRegex(r"(?i)[\w`\"\[.]{0,40}(?:password|passwd|pwd|passphrase|secret|token|api_?key)[`\"\]]?")
_FIELD = LazyRegex(r"\s{0,8}('(?:[^'\\\n]|''|\\.){0,512}'|\"(?:[^\"\\\n]|\\.){0,512}\"|[^,()'\"\n]{0,128})\s{0,8}([,)])")
_NEXT_ROW = LazyRegex(r"\s{0,8},\s{0,8}(?=\()")
_MAX_ROWS = 64


def _sql(page: Page) -> Iterator[Span]:
    """Match `IDENTIFIED BY '…'`, and the values of columns such as `password` in an INSERT."""
    text = page.text
    for place in page.places(("identified",)):
        found = _IDENTIFIED.match(text, place)
        inside = quoted(text, found.end()) if found else None
        span = inside[0] if inside else bare(text, found.end(), place) if found else None
        value = text[slice(*span)] if span else ""
        if span and value and not placeholder(value) and (inside or text[place] == "I" or looks_secret(value)):
            yield span
    for start, end in page.around(("values",), 420, 20):
        for found in _COLUMNS.finditer(text, start, end):
            columns = [name.strip() for name in found[1].split(",")]
            secret_columns = {at for at, name in enumerate(columns) if _SECRET_COLUMN.fullmatch(name)}
            yield from _rows(text, found.end(), secret_columns) if secret_columns else ()


def _rows(text: str, at: int, secret_columns: set[int]) -> Iterator[Span]:
    column = -1
    for _ in range(_MAX_ROWS * 8):
        if column < 0:
            if text[at : at + 1] != "(":
                return
            at, column = at + 1, 0
        field = _FIELD.match(text, at)
        if field is None:
            return
        value = field[1].strip("'\"")
        if column in secret_columns and field[1][:1] in ("'", '"') and not placeholder(value) and not plain_word(value):
            yield field.start(1) + 1, field.end(1) - 1
        at, column = field.end(), column + 1
        if field[2] == ")":
            following = _NEXT_ROW.match(text, at)
            at, column = (following.end(), -1) if following else (len(text), -1)


_AFTER_USER = LazyRegex(
    r"(?:(?<!\w)auth\s{0,2}[=:]\s{0,2}[(\[]|(?:[Bb]asic_?[Aa]uth\w{0,12}|[Cc]redentials?(?:::new)?|[Ll]ogin|authenticate|PasswordAuthentication|setAuth|sign_?[iI]n)\(|sp_addlogin\s)"
    r"\s{0,4}(?:[\w.]{1,20}\s?[=:]\s?)?(?=[\"'])"
)
_CONNECT = LazyRegex(
    r"(?:mysqli(?:_connect|_real_connect)?|PDO|getConnection|(?:mysql|pg|odbc|oci|ftp|ssh2)_?\w{0,8}connect)\(\s{0,4}(?=[\"'])"
)
_NEXT = LazyRegex(r"(?:\.\w{2,12}\(\))?\s{0,4},\s{0,8}(?:[\w.]{1,20}\s?[=:]\s?)?(?=[bru@]?[\"'])")
_LOGIN = LazyRegex(
    r"(?i)(?<![^\W_])(?:logins?|creds?|credentials?|account|zugangsdaten|wi-?fi|wlan)(?:\s(?:for|to|of|on|für)\s[\w-]{1,20})?"
    r"(?:\s(?:is|are|->))?\s?[:=]?\s{1,3}[\w.@+-]{2,40}\s?[/:|](?!:)\s?"
)
_WIFI_KEY = LazyRegex(r"(?i)(?:wi-?fi|wlan|ssid)[^\n]{0,40}?(?<!\w)key\s?[:=]\s?[\"']?([^\s\"']{8,63})")


_LOGIN_STEMS = ("auth", "login", "cred", "account", "sign_in", "signin", "zugangsdaten")
_CONNECT_STEMS = ("connect", "mysqli", "new pdo")
_WIFI_STEMS = ("wifi", "wi-fi", "wlan", "ssid")


def _after_user(page: Page) -> Iterator[Span]:
    """Match the password after a user name: the second or third argument of a call, and `login: user / password`."""
    for calls, stems, position in ((_AFTER_USER, _LOGIN_STEMS, 2), (_CONNECT, _CONNECT_STEMS, 3)):
        for start, end in page.around(stems, 12, 80):
            spans = (_quoted_argument(page.text, found.end(), position) for found in calls.finditer(page.text, start, end))
            yield from (span for span in spans if span and quoted_secret(page.text[slice(*span)], password=True))
    yield from _in_notes(page)


def _in_notes(page: Page) -> Iterator[Span]:
    text = page.text
    for place in page.places((*_LOGIN_STEMS, *_WIFI_STEMS)):
        login = _LOGIN.match(text, place)
        span = bare(text, login.end(), place) if login else None
        if span and looks_secret(text[slice(*span)]) and not variable(text[slice(*span)]):
            yield span
    for place in page.places(_WIFI_STEMS):
        key = _WIFI_KEY.match(text, place)
        if key and looks_secret(key[1]):
            yield key.span(1)


def _quoted_argument(text: str, at: int, position: int) -> Span | None:
    """Return the span of the argument in this position, if it and all before it are quoted."""
    for number in range(1, position + 1):
        argument = quoted(text, at)
        if argument is None or number == position:
            return argument[0] if argument else None
        link = _NEXT.match(text, argument[1])
        if link is None:
            return None
        at = link.end()
    return None


_KIND = LazyRegex(r"(?i)(?:^|\n)[ \t]{0,16}[\"']?kind[\"']?:[ \t]{0,4}[\"']?secret[\"']?[ \t]{0,4}(?:,|\r?\n|$)")
_DATA = LazyRegex(r"(?:^|\n)([ \t]{0,16})(?:data|stringData):[ \t]{0,4}\r?\n")
_ENTRY = LazyRegex(r"([ \t]{1,24})[\"']?[\w.-]{1,80}[\"']?:[ \t]{0,4}([^\s#|>][^\n]{0,4096})?(?:\r?\n|$)")
_MANIFEST = 20_000


def _kubernetes(page: Page) -> Iterator[Span]:
    """Match every value under `data` or `stringData` of a manifest of the kind Secret."""
    text = page.text
    kinds = [found.start() for found in _KIND.finditer(text)]
    blocks = list(_DATA.finditer(text)) if kinds else []
    for block in blocks:
        near = bisect_left(kinds, block.start() - _MANIFEST)
        if near == len(kinds) or kinds[near] > block.start() + _MANIFEST:
            continue
        at = block.end()
        while (entry := _ENTRY.match(text, at)) and len(entry[1]) > len(block[1]):
            at = entry.end()
            value = (entry[2] or "").rstrip().strip("\"'")
            if value and not placeholder(value):
                start = entry.start(2) + (entry[2] or "").index(value)
                yield start, start + len(value)


_PASSWORD_FILE = LazyRegex(r"(?<![^\n])[ \t]{0,8}[\w.*-]{1,128}:(?:5432|5433|6432|\*):[^\s:]{1,64}:[^\s:]{1,64}:([^\s]{3,128})")
_RELAY = LazyRegex(r"\]:(?:25|465|587|2525)[ \t]{1,8}[\w.@+-]{1,80}:(\S{3,128})")  # Postfix: [mail.example.org]:587 user:password
_COOKIES = LazyRegex(r"(?i)cookie[\"']?[ \t]{0,2}:[ \t]{0,2}[\"']?([^\n\"']{8,4096})")
_SESSION = LazyRegex(r"(?i)(?:sessid|sessionid|_session)=([^\s;&\"']{10,512})")


def _files(page: Page) -> Iterator[Span]:
    """Match the last field of a line of `.pgpass`, and the values of cookies that are long enough to be a session."""
    text = page.text
    for start, end in page.around((":5432:", ":5433:", ":*:"), 140, 260):
        yield from (found.span(1) for found in _PASSWORD_FILE.finditer(text, start, end) if not placeholder(found[1]))
    relays = (_RELAY.match(text, place) for place in page.places(("]:",))) if "]:" in text else ()
    yield from (found.span(1) for found in relays if found and not placeholder(found[1]))
    done = 0
    for place in page.places(("cookie",)):
        header = _COOKIES.match(text, place) if place >= done else None
        if header:
            done = header.end()
            yield from _cookies(text, header)
    for place in page.places(("sessid", "sessionid", "_session=")):
        session = _SESSION.match(text, place)
        if session and random_looking(session[1], min_length=10):
            yield session.span(1)


def _cookies(text: str, header: re.Match[str]) -> Iterator[Span]:
    cuts = [header.start(1) - 1, *(header.start(1) + at for at, char in enumerate(header[1]) if char == ";"), header.end(1)]
    for before, after in pairwise(cuts):
        name, _, value = text[before + 1 : after].partition("=")
        if random_looking(value.strip().replace("%", "").replace(":", ""), min_length=16):
            start = before + 2 + len(name)
            yield start, start + len(value.rstrip())


# A variable named after a server of gems, with __ for dots, or the command that stores the same. Sidekiq sells such pairs.
_GEMS = LazyRegex(
    r"(?i)bundle(?:_(?!mirror|build|local)[\w-]{1,80}?__[a-z]{2,12}(?:[\"']?\s{0,3}[:=]\s{0,3}|[ \t])"
    r"|[ \t]config[ \t](?:set[ \t]|--[a-z]{1,12}[ \t]){0,3}(?:https?://)?[\w-]{1,60}(?:\.[\w-]{1,60}){1,4}/?[ \t])"
    r"[\"']?([^\s\"']{6,256})"
)


def _gem_servers(page: Page) -> Iterator[Span]:
    """Match `user:password` or a token for a server of gems."""
    for found in filter(None, (_GEMS.match(page.text, place) for place in page.places(("bundle",)))):
        user, pair, password = found[1].partition(":")
        login = pair and user and password.lower() not in ("password", "pass") and not password.startswith("/")
        if not placeholder(found[1]) and not placeholder(password or user) and (login or random_looking(user, min_length=12)):
            yield found.span(1)


_SEED = LazyRegex(
    r"(?i)(?:(?:seed|recovery|backup|secret)[\s_-](?:phrase|words)|mnemonic)[^\n:=]{0,24}?[\s:=\"']{1,4}"
    r"((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?!\w)"
)


def _seed_phrases(page: Page) -> Iterator[Span]:
    """Match the twelve or more words from which a wallet can be restored."""
    places = page.places(("seed", "recovery", "backup", "secret", "mnemonic"))
    return (found.span(1) for found in filter(None, (_SEED.match(page.text, place) for place in places)))


PATTERNS = (
    Pattern("sql_password", "SECRET", _sql, hints=("identified", "values")),
    Pattern("login_pair", "SECRET", _after_user, hints=(*_LOGIN_STEMS, *_CONNECT_STEMS, *_WIFI_STEMS)),
    Pattern("kubernetes_secret", "SECRET", _kubernetes, hints=("kind: secret", "kind: 'secret", 'kind: "secret')),
    Pattern("session_cookie", "SECRET", _files,
            hints=("cookie", ":5432:", ":5433:", ":*:", "sessid", "sessionid", "_session=", "]:")),
    Pattern("gem_server", "CREDENTIALS", _gem_servers, hints=("bundle_", "bundle config")),
    Pattern("seed_phrase", "SECRET", _seed_phrases, hints=("phrase", "seed words", "recovery words", "mnemonic")),
)  # fmt: skip
