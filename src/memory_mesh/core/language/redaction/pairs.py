"""Find secrets without a name beside them: in SQL, arguments, manifests, commands and tables."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

from memory_mesh.core.language.packaged import Expressions, Tables, WordLists, WordSets
from memory_mesh.core.language.redaction.pattern import (
    Page,
    Pattern,
    Span,
    Surroundings,
    merged,
    occurrences,
)
from memory_mesh.core.language.redaction.values import (
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

_RE, _WORDS, _LISTS = Expressions(__name__), WordSets(__name__), WordLists(__name__)

# --- rows, arguments, manifests and cookies ---

_MAX_ROWS = 64


def _sql(page: Page) -> Iterator[Span]:
    """Match `IDENTIFIED BY '…'`, and the values of columns such as `password` in an INSERT."""
    text = page.text
    for place in page.places(("identified",)):
        found = _RE.identified.match(text, place)
        inside = quoted(text, found.end()) if found else None
        span = inside[0] if inside else bare(text, found.end(), place) if found else None
        value = text[slice(*span)] if span else ""
        if (
            span
            and value
            and not placeholder(value)
            and (inside or text[place] == "I" or looks_secret(value))
        ):
            yield span
    for start, end in page.around(("values",), 420, 20):
        for found in _RE.columns.finditer(text, start, end):
            columns = [name.strip() for name in found[1].split(",")]
            secret_columns = {
                at for at, name in enumerate(columns) if _RE.secret_column.fullmatch(name)
            }
            yield from _rows(text, found.end(), secret_columns) if secret_columns else ()


def _rows(text: str, at: int, secret_columns: set[int]) -> Iterator[Span]:
    column = -1
    for _ in range(_MAX_ROWS * 8):
        if column < 0:
            if text[at : at + 1] != "(":
                return
            at, column = at + 1, 0
        field = _RE.field.match(text, at)
        if field is None:
            return
        value = field[1].strip("'\"")
        if (
            column in secret_columns
            and field[1][:1] in ("'", '"')
            and not placeholder(value)
            and not plain_word(value)
        ):
            yield field.start(1) + 1, field.end(1) - 1
        at, column = field.end(), column + 1
        if field[2] == ")":
            following = _RE.next_row.match(text, at)
            at, column = (following.end(), -1) if following else (len(text), -1)


_LOGIN_STEMS = ("auth", "login", "cred", "account", "sign_in", "signin", "zugangsdaten")
_CONNECT_STEMS = ("connect", "mysqli", "new pdo")
_WIFI_STEMS = ("wifi", "wi-fi", "wlan", "ssid")


def _after_user(page: Page) -> Iterator[Span]:
    """Match the password after a user name: the second or third argument of a call, and `login:
    user / password`."""
    for calls, stems, position in (
        (_RE.after_user, _LOGIN_STEMS, 2),
        (_RE.connect, _CONNECT_STEMS, 3),
    ):
        for start, end in page.around(stems, 12, 80):
            spans = (
                _quoted_argument(page.text, found.end(), position)
                for found in calls.finditer(page.text, start, end)
            )
            yield from (
                span
                for span in spans
                if span and quoted_secret(page.text[slice(*span)], password=True)
            )
    for login in page.matches(_RE.login, (*_LOGIN_STEMS, *_WIFI_STEMS)):
        bare_span = bare(page.text, login.end(), login.start())
        value = page.text[slice(*bare_span)] if bare_span else ""
        if bare_span and looks_secret(value) and not variable(value):
            yield bare_span
    keys = page.matches(_RE.wifi_key, _WIFI_STEMS)
    yield from (key.span(1) for key in keys if looks_secret(key[1]))


def _quoted_argument(text: str, at: int, position: int) -> Span | None:
    """Return the span of the argument in this position, if it and all before it are quoted."""
    for number in range(1, position + 1):
        argument = quoted(text, at)
        if argument is None or number == position:
            return argument[0] if argument else None
        link = _RE.next.match(text, argument[1])
        if link is None:
            return None
        at = link.end()
    return None


_MANIFEST = 20_000


def _kubernetes(page: Page) -> Iterator[Span]:
    """Match every value under `data` or `stringData` of a manifest of the kind Secret."""
    text = page.text
    kinds = [found.start() for found in _RE.kind.finditer(text)]
    blocks = list(_RE.data.finditer(text)) if kinds else []
    for block in blocks:
        near = bisect_left(kinds, block.start() - _MANIFEST)
        if near == len(kinds) or kinds[near] > block.start() + _MANIFEST:
            continue
        at = block.end()
        while (entry := _RE.entry.match(text, at)) and len(entry[1]) > len(block[1]):
            at = entry.end()
            value = (entry[2] or "").rstrip().strip("\"'")
            if value and not placeholder(value):
                start = entry.start(2) + (entry[2] or "").index(value)
                yield start, start + len(value)


def _files(page: Page) -> Iterator[Span]:
    """Match the last field of a line of `.pgpass`, and the values of cookies that are long
    enough to be a session."""
    text = page.text
    for start, end in page.around((":5432:", ":5433:", ":*:"), 140, 260):
        yield from (
            found.span(1)
            for found in _RE.password_file.finditer(text, start, end)
            if not placeholder(found[1])
        )
    relays = (
        (_RE.relay.match(text, place) for place in page.places(("]:",))) if "]:" in text else ()
    )
    yield from (found.span(1) for found in relays if found and not placeholder(found[1]))
    done = 0
    for place in page.places(("cookie",)):
        header = _RE.cookies.match(text, place) if place >= done else None
        if header:
            done = header.end()
            yield from _cookies(text, header)
    for place in page.places(("sessid", "sessionid", "_session=")):
        session = _RE.session.match(text, place)
        if session and random_looking(session[1], min_length=10):
            yield session.span(1)


def _cookies(text: str, header: re.Match[str]) -> Iterator[Span]:
    cuts = [
        header.start(1) - 1,
        *(header.start(1) + at for at, char in enumerate(header[1]) if char == ";"),
        header.end(1),
    ]
    for before, after in pairwise(cuts):
        name, _, value = text[before + 1 : after].partition("=")
        if random_looking(value.strip().replace("%", "").replace(":", ""), min_length=16):
            start = before + 2 + len(name)
            yield start, start + len(value.rstrip())


def _gem_servers(page: Page) -> Iterator[Span]:
    """Match `user:password` or a token for a server of gems."""
    for found in page.matches(_RE.gems, ("bundle",)):
        user, pair, password = found[1].partition(":")
        login = (
            pair
            and user
            and password.lower() not in ("password", "pass")
            and not password.startswith("/")
        )
        if (
            not placeholder(found[1])
            and not placeholder(password or user)
            and (login or random_looking(user, min_length=12))
        ):
            yield found.span(1)


def _seed_phrases(page: Page) -> Iterator[Span]:
    """Match the twelve or more words from which a wallet can be restored."""
    stems = ("seed", "recovery", "backup", "secret", "mnemonic")
    return (found.span(1) for found in page.matches(_RE.seed, stems))


PATTERNS = (
    Pattern("sql_password", "SECRET", _sql, hints=("identified", "values")),
    Pattern("login_pair", "SECRET", _after_user,
            hints=(*_LOGIN_STEMS, *_CONNECT_STEMS, *_WIFI_STEMS)),
    Pattern("kubernetes_secret", "SECRET", _kubernetes,
            hints=("kind: secret", "kind: 'secret", 'kind: "secret')),
    Pattern("session_cookie", "SECRET", _files,
            hints=("cookie", ":5432:", ":5433:", ":*:", "sessid", "sessionid", "_session=", "]:")),
    Pattern("gem_server", "CREDENTIALS", _gem_servers, hints=("bundle_", "bundle config")),
    Pattern("seed_phrase", "SECRET", _seed_phrases,
            hints=("phrase", "seed words", "recovery words", "mnemonic")),
)  # fmt: skip


# --- command lines ---
# `mysql -pX`, `sshpass -p X`, `curl -u user:X`, `echo X | sudo -S`. Options with a long name, such
# as `--password X`, are found by their name (see `assignments`).


class _Command(NamedTuple):
    """Which words of a command contain its password."""

    separate: tuple[str, ...] = ()  # options whose next word is the password
    glued: tuple[str, ...] = ()  # options followed by the password without a blank
    pairs: tuple[str, ...] = ()  # options whose word is `user`, the separator and the password
    separator: str = ":"
    only_with: str = ""  # a word that must occur in the command
    last: bool = False  # the last word that is not an option


@cache
def _commands() -> Mapping[str, _Command]:
    """Return the commands of the table by name."""
    commands: dict[str, _Command] = {}
    for names, *columns in Tables(__name__).commands:
        fields = {
            name: tuple(value.split(" "))
            for name, _, value in (column.partition("=") for column in columns)
        }
        command = _Command(
            separate=fields.get("separate", ()),
            glued=fields.get("glued", ()),
            pairs=fields.get("pairs", ()),
            separator="".join(fields.get("separator", ":")),
            only_with="".join(fields.get("only_with", "")),
            last="last" in fields,
        )
        commands |= dict.fromkeys(names.split(), command)
    return commands


@cache
def _command_stems() -> tuple[str, ...]:
    windows = ("mysql.exe ", "mysqldump.exe ", "sqlcmd.exe ", "psexec.exe ")
    return (*(f"{name} " for name in _commands()), *windows)


_MAX_WORDS = 48


def find_commands(page: Page) -> Iterator[Span]:
    """Yield the passwords in calls of the commands in the table, and those piped into a command
    that reads one."""
    text, done = page.text, 0
    for found in page.matches(_RE.call, _command_stems()):
        if found.start() >= done and found[1] in _commands():
            words = list(_words(text, found.end()))
            done = words[-1][1] if words else found.end()
            yield from _passwords(text, found[1], words)
    if "|" in text:
        piped = page.matches(_RE.piped, ("echo ", "printf ", "print "))
        yield from chain.from_iterable(map(_piped, piped))
    stems = (
        "auth ", "convertto-securestring", "expect ", "ftp> user", "server community", "enable ",
        "username ", "rootpw ", "user ", "331 ",
    )  # fmt: skip
    for typed in page.matches(_RE.typed, stems):
        # Lines that may also be sentences need a value that looks like a password.
        may_be_sentence = typed[0].startswith(("enable", "username", "rootpw"))
        if not placeholder(typed[1]) and (not may_be_sentence or looks_secret(typed[1])):
            yield typed.span(1)
    yield from _here_strings(page)


_MAX_READER, _MAX_HERE = 140, 272  # characters


def _here_strings(page: Page) -> Iterator[Span]:
    """Yield what a shell gives to a command that reads a password: `kinit bob <<< "…"`."""
    text = page.text
    surroundings = Surroundings(page, before=_MAX_READER, after=2 * _MAX_HERE)
    readers = _RE.readers.finditer(text) if "<<<" in text else ()
    for start, end in merged((found.start(), found.start() + _MAX_READER) for found in readers):
        here = (
            surroundings.judge(start + place, _here_string)
            for place in occurrences(text[start:end], "<<<")
        )
        yield from filter(None, here)


def _here_string(text: str, place: int) -> Span | None:
    found = _RE.here.match(text, place)
    if found is None or not _RE.reads.search(text, max(0, place - 120), place):
        return None
    return next(_given(text, _unquoted(text, found.span(1)), plain=False), None)


def _words(text: str, at: int) -> Iterator[Span]:
    """Yield the words of a command, up to the end of its line or the next operator."""
    for _ in range(_MAX_WORDS):
        gap = _RE.gap.match(text, at)
        word = _RE.word.match(text, gap.end()) if gap else None
        if word is None:
            return
        at = word.end()
        yield word.span()


def _passwords(text: str, name: str, words: list[Span]) -> Iterator[Span]:
    command = _commands()[name]
    values = [text[slice(*word)] for word in words]
    if command.only_with and not _has(values, command.only_with, name):
        return
    for at, word in enumerate(words):
        yield from _option(text, command, word, values[at - 1] if at else "")
    if command.last:
        yield from _last(text, name, words)


def _option(text: str, command: _Command, word: Span, before: str) -> Iterator[Span]:
    """Yield the password in one word of a command; `before` is the word before it."""
    value, (start, end) = text[slice(*word)], word
    quote = 1 if value[:1] in ("'", '"') else 0
    glued = max(
        (flag for flag in command.glued if value.startswith(flag, quote)), key=len, default=""
    )
    pair = next((flag for flag in command.pairs if flag and value.startswith(f"{flag}=")), "")
    if glued and len(value) > len(glued) + 2 * quote:
        inside = (
            (start + len(glued) + quote, end - quote)
            if quote
            else _unquoted(text, (start + len(glued), end))
        )
        yield from (
            _after(text, inside, command.separator) if command.pairs else _given(text, inside)
        )
    elif before in command.separate and not value.startswith("-"):
        yield from _given(text, _unquoted(text, word), plain=False)
    elif before in command.pairs:  # an empty option stands for the first word
        yield from _after(text, _unquoted(text, word), command.separator)
    elif pair:
        yield from _after(text, _unquoted(text, (start + len(pair) + 1, end)), command.separator)


def _has(values: list[str], word: str, name: str) -> bool:
    if name == "htpasswd":
        return any(value.startswith("-") and word in value for value in values)
    return word in values or (name.startswith("net") and "user" in values[:1])


def _last(text: str, name: str, words: list[Span]) -> Iterator[Span]:
    """Yield the last word that is not an option, a share, a drive or a name that the command
    requires before the password."""
    plain = [word for word in words if text[word[0]] not in "-/\\*" and text[word[1] - 1] != ":"]
    min_length = {"htpasswd": 2, "rabbitmqctl": 3, "wpa_passphrase": 2}.get(name, 2)
    if name.startswith("net") and text[slice(*words[0])] == "user":
        min_length = 3
    if len(plain) >= min_length:
        yield from _given(text, _unquoted(text, plain[-1]), plain=False)


def _given(text: str, span: Span, *, plain: bool = True) -> Iterator[Span]:
    """Yield the password unless it is a placeholder or, apart from a glued one, a word such as
    `password`."""
    value = text[slice(*span)]
    if value and not placeholder(value) and (plain or value.lower() not in _WORDS.not_given):
        yield span


def _after(text: str, span: Span, separator: str) -> Iterator[Span]:
    """Yield what follows the separator in `user:password`, or a token that stands in the place
    of the user name."""
    value = text[slice(*span)]
    user, found, password = value.partition(separator)
    if separator == "/":  # user/password@database
        password = password.rpartition("@")[0] or password
    if found and not password and looks_secret(user, min_length=12):
        yield span[0], span[0] + len(user)
    elif found and user and password and not (user.isdigit() and password.isdigit()):
        start = span[0] + len(user) + 1
        yield from _given(text, (start, start + len(password)), plain=False)


def _unquoted(text: str, span: Span) -> Span:
    start, end = span
    return (
        (start + 1, end - 1)
        if end - start > 1 and text[start] in "\"'" and text[end - 1] == text[start]
        else span
    )


def _piped(found: re.Match[str]) -> Iterator[Span]:
    text, span = found.string, _unquoted(found.string, found.span(1))
    value = text[slice(*span)]
    if "chpasswd" in text[found.end(1) : found.end() + 40] and ":" in value:
        span = span[0] + value.index(":") + 1, span[1]
    yield from _given(text, span, plain=False)


COMMAND_PATTERNS = (
    Pattern("command_password", "SECRET", find_commands,
            hints=(" -", " /", "|", "pass", "auth ", "securestring", "add_user", "net use",
                   "sqlplus", "expdp", "impdp", "ftp>", "community", "assword", "secret", "<<<")),
)  # fmt: skip


# --- tables ---
# The column says what a value is, in CSV, in values separated by tabs and in Markdown.

_CELLS = {
    mark: LazyRegex(rf"[ \t]{{0,16}}(\"(?:[^\"\n]|\"\")*+\"|[^{mark}\r\n]*+)(?:{mark}|$|(?=\r?\n))")
    for mark in (r"\|", "\t", ";", ",")
}
_MAX_TABLE_ROWS, _MAX_COLUMNS = 256, 32


def _tables(page: Page) -> Iterator[Span]:
    """Yield the cells below a header such as `password`, as long as the rows have as many cells
    as the header."""
    text, done = page.text, 0
    for place in page.places(_LISTS.column_stems):
        start = text.rfind("\n", max(0, place - 512), place) + 1 if place >= done else -1
        header = _RE.line.match(text, start) if start >= 0 else None
        if header is None or not _RE.break_.match(text, header.end()):
            continue
        done = header.end()
        mark = next((mark for mark in _CELLS if mark[-1] in header[0]), None)
        columns = _columns(text, header.span(), mark) if mark else {}
        if mark and columns:
            # A row is not a header of its own: the time stays linear.
            spans, done = _below(text, header.end(), mark, columns)
            yield from spans
    # The rows that a dump of PostgreSQL copies into a table.
    for copy in page.matches(_RE.copy, ("copy ",)):
        if columns := _called([name.strip(' "').lower() for name in copy[1].split(",")]):
            yield from _below(text, copy.end(), "\t", columns)[0]


def _cells(text: str, span: Span, mark: str) -> list[Span]:
    """Return the cells of a line, without quotes and blanks."""
    start, end = span
    if mark == r"\|" and text[start : start + 1] == "|":
        start += 1
    cells = [found.span(1) for found in _CELLS[mark].finditer(text, start, end)][: _MAX_COLUMNS + 1]
    return [_stripped(text, cell) for cell in cells]


def _stripped(text: str, span: Span) -> Span:
    value = text[slice(*span)].rstrip()
    quote = 1 if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`" else 0
    return span[0] + quote, span[0] + len(value) - quote


def _columns(text: str, span: Span, mark: str) -> dict[int, frozenset[str]]:
    """Return which columns of a header contain secrets, each with the list that has its name."""
    names = [
        text[slice(*cell)].strip(" *_").lower().replace(" ", "_")
        for cell in _cells(text, span, mark)
    ]
    if not 2 <= len([name for name in names if name]) <= _MAX_COLUMNS or any(
        len(name) > 40 for name in names
    ):
        return {}
    return _called(names)


def _called(names: list[str]) -> dict[int, frozenset[str]]:
    lists = (_WORDS.password_columns, _WORDS.secret_columns, _WORDS.pin_columns)
    return {at: one for at, name in enumerate(names) for one in lists if name in one}


def _below(
    text: str, at: int, mark: str, columns: dict[int, frozenset[str]]
) -> tuple[list[Span], int]:
    """Return the secrets in the rows after a header, and where the rows end."""
    spans: list[Span] = []
    for _ in range(_MAX_TABLE_ROWS):
        gap = _RE.break_.match(text, at)
        line = _RE.line.match(text, gap.end()) if gap else None
        if line is None or not line[0].strip() or mark[-1] not in line[0]:
            break
        at = line.end()
        cells = [] if _RE.rule.fullmatch(line[0]) else _cells(text, line.span(), mark)
        spans += (
            cells[column]
            for column, names in columns.items()
            if column < len(cells)
            and _is_secret(text[slice(*cells[column])], names, loose=mark != r"\|")
        )
    return spans, at


def _is_secret(value: str, names: frozenset[str], *, loose: bool) -> bool:
    """Return whether a cell holds a secret. In a file of values, any one word is a password; in
    a text it must look like one."""
    if placeholder(value) or plain_word(value) or variable(value):
        return False
    if names is _WORDS.pin_columns:
        return value.isdigit() and 3 <= len(value) <= 8
    if names is _WORDS.secret_columns:
        return random_looking(value, min_length=12)
    return (looks_secret(value, min_length=5) and " " not in value) or (
        loose and len(value) >= 4 and " " not in value
    )


TABLE_PATTERNS = (
    Pattern(
        "table_password",
        "SECRET",
        _tables,
        hints=("\n",),
        when=lambda page: page.holds(_LISTS.column_stems),
    ),
)
