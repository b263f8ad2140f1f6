"""Passwords and secrets in tables: the column says what they are, in CSV, in values separated by tabs and in Markdown."""

from collections.abc import Iterator

from memory_mesh.core.redaction.pattern import Page, Pattern, Span, listed, stems_of
from memory_mesh.core.redaction.values import looks_secret, placeholder, plain_word, random_looking, variable
from memory_mesh.core.text import LazyRegex

_PASSWORD_COLUMNS = frozenset(listed("""
    password passwd pwd pass pw passphrase passcode passwort kennwort contraseña senha wachtwoord hasło пароль 密码
    パスワード 비밀번호 user_password login_password db_password wifi_password temp_password initial_password root_password
"""))  # fmt: skip
_SECRET_COLUMNS = frozenset(
    listed("secret token api_key apikey api-key access_token secret_key client_secret access_key refresh_token private_key")
)
_PIN_COLUMNS = frozenset(listed("pin cvv cvc otp"))
_STEMS = stems_of("""
    passw passwd pwd passphrase passcode kennwort contraseña senha wachtwoord hasło пароль 密码 パスワード 비밀번호
    ,pass ;pass |_pass ,pw |_pw secret token key pin cvv cvc otp
""")
_LINE = LazyRegex(r"[^\r\n]{0,2048}")
_BREAK = LazyRegex(r"\r?\n")
_CELLS = {
    mark: LazyRegex(rf"[ \t]{{0,16}}(\"(?:[^\"\n]|\"\")*+\"|[^{mark}\r\n]*+)(?:{mark}|$|(?=\r?\n))")
    for mark in (r"\|", "\t", ";", ",")
}
_RULE = LazyRegex(r"[|:\s-]{3,}")
_MAX_ROWS, _MAX_COLUMNS = 256, 32


def _tables(page: Page) -> Iterator[Span]:
    """Yield the cells below a header such as `password`, as long as the rows have as many cells as the header."""
    text, done = page.text, 0
    for place in page.places(_STEMS):
        start = text.rfind("\n", max(0, place - 512), place) + 1 if place >= done else -1
        header = _LINE.match(text, start) if start >= 0 else None
        if header is None or not _BREAK.match(text, header.end()):
            continue
        done = header.end()
        mark = next((mark for mark in _CELLS if mark[-1] in header[0]), None)
        columns = _columns(text, header.span(), mark) if mark else {}
        if mark and columns:
            spans, done = _below(text, header.end(), mark, columns)  # a row is not a header of its own: the time stays linear
            yield from spans
    yield from _copied(page)


_COPY = LazyRegex(r"(?i:copy)\s{1,4}[^\s(]{1,80}\s{0,4}\(([^()]{1,400})\)\s{1,4}(?i:from\s{1,4}stdin)[^\r\n]{0,80}")


def _copied(page: Page) -> Iterator[Span]:
    """Yield the secrets in the rows that a dump of PostgreSQL copies into a table."""
    for found in filter(None, (_COPY.match(page.text, place) for place in page.places(("copy ",)))):
        names = [name.strip(' "').lower() for name in found[1].split(",")]
        yield from _below(page.text, found.end(), "\t", columns)[0] if (columns := _called(names)) else ()


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
    names = [text[slice(*cell)].strip(" *_").lower().replace(" ", "_") for cell in _cells(text, span, mark)]
    if not 2 <= len([name for name in names if name]) <= _MAX_COLUMNS or any(len(name) > 40 for name in names):
        return {}
    return _called(names)


def _called(names: list[str]) -> dict[int, frozenset[str]]:
    lists = (_PASSWORD_COLUMNS, _SECRET_COLUMNS, _PIN_COLUMNS)
    return {at: one for at, name in enumerate(names) for one in lists if name in one}


def _below(text: str, at: int, mark: str, columns: dict[int, frozenset[str]]) -> tuple[list[Span], int]:
    """Return the secrets in the rows after a header, and where the rows end."""
    spans: list[Span] = []
    for _ in range(_MAX_ROWS):
        gap = _BREAK.match(text, at)
        line = _LINE.match(text, gap.end()) if gap else None
        if line is None or not line[0].strip() or mark[-1] not in line[0]:
            break
        at = line.end()
        cells = [] if _RULE.fullmatch(line[0]) else _cells(text, line.span(), mark)
        spans += (
            cells[column]
            for column, names in columns.items()
            if column < len(cells) and _is_secret(text[slice(*cells[column])], names, loose=mark != r"\|")
        )
    return spans, at


def _is_secret(value: str, names: frozenset[str], *, loose: bool) -> bool:
    """Return whether a cell holds a secret. In a file of values, any one word is a password; in a text it must look like one."""
    if placeholder(value) or plain_word(value) or variable(value):
        return False
    if names is _PIN_COLUMNS:
        return value.isdigit() and 3 <= len(value) <= 8
    if names is _SECRET_COLUMNS:
        return random_looking(value, min_length=12)
    return (looks_secret(value, min_length=5) and " " not in value) or (loose and len(value) >= 4 and " " not in value)


PATTERNS = (Pattern("table_password", "SECRET", _tables, hints=("\n",), when=lambda page: page.holds(_STEMS)),)
