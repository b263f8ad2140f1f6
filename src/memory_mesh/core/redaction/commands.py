"""Passwords in command lines: `mysql -pX`, `sshpass -p X`, `curl -u user:X`, `echo X | sudo -S`, by a table of commands.

Options with a long name, such as `--password X`, are found by their name (see `assignments`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from memory_mesh.core.redaction.pattern import Page, Pattern, Span, Surroundings, listed, merged, occurrences
from memory_mesh.core.redaction.values import looks_secret, placeholder
from memory_mesh.core.text import LazyRegex


@dataclass(frozen=True, slots=True)
class _Command:
    """Which words of a command contain its password."""

    separate: tuple[str, ...] = ()  # options whose next word is the password
    glued: tuple[str, ...] = ()  # options followed by the password without a blank
    pairs: tuple[str, ...] = ()  # options whose word is `user`, the separator and the password
    separator: str = ":"
    only_with: str = ""  # a word that must occur in the command
    last: bool = False  # the last word that is not an option


_TABLE: tuple[tuple[str, _Command], ...] = (
    ("mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlpump mycli mariadb mariadb-dump mariadb-admin",
     _Command(glued=("-p",))),
    ("sshpass", _Command(separate=("-p",), glued=("-p",))),
    ("redis-cli valkey-cli keydb-cli", _Command(separate=("-a", "--pass"))),
    ("docker podman nerdctl buildah helm oras crane az oc cf ibmcloud registry", _Command(separate=("-p",), only_with="login")),
    ("curl wget aria2c", _Command(pairs=("-u", "--user", "-U", "--proxy-user"), glued=("-u", "-U"))),
    ("http https xh httpie", _Command(pairs=("-a", "--auth"))),
    ("skopeo ctr regctl", _Command(pairs=("--creds", "--src-creds", "--dest-creds", "-u"))),
    ("ldapsearch ldapmodify ldapadd ldapdelete ldappasswd ldapwhoami", _Command(separate=("-w", "-s"), glued=("-w",))),
    ("mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat", _Command(separate=("-p",))),
    ("twine psexec psexec64 cypher-shell cqlsh influx rabbitmqadmin racadm smbmap crackmapexec nxc netexec evil-winrm rdesktop "
     "useradd usermod clickhouse-client neo4j-admin vncviewer ncftpput ncftpget", _Command(separate=("-p",))),
    ("sqlcmd bcp isql osql tsql mosquitto_pub mosquitto_sub ipmitool zip unzip", _Command(separate=("-P",), glued=("-P",))),
    ("7z 7za 7zr 7zz rar unrar", _Command(glued=("-p", "-hp"))),
    ("openssl", _Command(separate=("-k", "-pass", "-1", "-5", "-6", "-apr1"), glued=("pass:",))),
    ("snmpwalk snmpget snmpset snmpbulkwalk snmptrap", _Command(separate=("-A", "-X"))),
    ("ssh-keygen", _Command(separate=("-N", "-P"))),
    ("plink pscp psftp putty winscp klink", _Command(separate=("-pw",))),
    ("winexe smbclient rpcclient smbget smbcacls smbcquotas", _Command(pairs=("-U", "--user"), separator="%", glued=("-U",))),
    ("lftp", _Command(pairs=("-u", "--user"), separator=",")),
    ("xfreerdp wfreerdp xfreerdp3 freerdp", _Command(glued=("/p:", "-p:"))),
    ("cmdkey", _Command(glued=("/pass:",))),
    ("htpasswd", _Command(last=True, only_with="b")),
    ("sqlplus sqlldr expdp impdp rman", _Command(pairs=("",), separator="/")),
    ("wpa_passphrase", _Command(last=True)),
    ("rabbitmqctl", _Command(last=True, only_with="add_user")),
    ("net net1", _Command(last=True, only_with="use")),
    ("security", _Command(separate=("-w",), glued=("-w",))),
    ("rclone", _Command(separate=("pass",))),
    ("gh glab", _Command(separate=("--body", "-b", "--value"), only_with="secret")),
    ("doctl", _Command(separate=("-t", "--access-token"))),
)  # fmt: skip
_COMMANDS = {name: command for names, command in _TABLE for name in names.split()}
_STEMS = (*(f"{name} " for name in _COMMANDS), "mysql.exe ", "mysqldump.exe ", "sqlcmd.exe ", "psexec.exe ")
_CALL = LazyRegex(r"(?<![\w.@-])([\w-]{2,20})(?:\.exe)?(?=[ \t]{1,4}\S)")
_WORD = LazyRegex(r"(?:[^\s'\"\\|;&<>]|\\[\s\S]|[;&](?=[^\s;&|])|'[^'\n]{0,256}'|\"(?:[^\"\\\n]|\\.){0,256}\")++")
_GAP = LazyRegex(r"(?:[ \t]|\\\r?\n){1,40}")
_MAX_WORDS = 48
_NOT_GIVEN = frozenset(
    listed("password passwd pass pw secret token key flag option options argument parameter switch stdin and or with the")
)


def find_commands(page: Page) -> Iterator[Span]:
    """Yield the passwords in calls of the commands in the table, and those piped into a command that reads one."""
    text, done = page.text, 0
    for found in filter(None, (_CALL.match(text, place) for place in page.places(_STEMS))):
        if found.start() >= done and found[1] in _COMMANDS:
            words = list(_words(text, found.end()))
            done = words[-1][1] if words else found.end()
            yield from _passwords(text, found[1], words)
    if "|" in text:
        piped = (_PIPED.match(text, place) for place in page.places(("echo ", "printf ", "print ")))
        yield from chain.from_iterable(map(_piped, filter(None, piped)))
    stems = (
        "auth ", "convertto-securestring", "expect ", "ftp> user", "server community", "enable ", "username ", "rootpw ", "user ",
        "331 ",
    )  # fmt: skip
    typed = (_TYPED.match(text, place) for place in page.places(stems))
    yield from (found.span(1) for found in typed if found and _is_typed(found[0], found[1]))
    yield from _here_strings(page)


def _is_typed(line: str, value: str) -> bool:
    """Return whether the value is a password. Lines that may also be sentences need a value that looks like one."""
    return not placeholder(value) and (not line.startswith(("enable", "username", "rootpw")) or looks_secret(value))


_HERE = LazyRegex(r"<<<[ \t]{0,4}(\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s|'\"]{1,256})")
_READER = r"(?:passw|kinit|cryptsetup|--?stdin|-S\s|--with-token|--passphrase-fd)"
_READERS, _READS = LazyRegex(_READER), LazyRegex(rf"{_READER}[^\n]{{0,100}}$")
_MAX_READER, _MAX_HERE = 140, 272  # characters


def _here_strings(page: Page) -> Iterator[Span]:
    """Yield what a shell gives to a command that reads a password: `kinit bob <<< "…"`."""
    text = page.text
    surroundings = Surroundings(page, before=_MAX_READER, after=2 * _MAX_HERE)
    readers = _READERS.finditer(text) if "<<<" in text else ()
    for start, end in merged((found.start(), found.start() + _MAX_READER) for found in readers):
        here = (surroundings.judge(start + place, _here_string) for place in occurrences(text[start:end], "<<<"))
        yield from filter(None, here)


def _here_string(text: str, place: int) -> Span | None:
    found = _HERE.match(text, place)
    if found is None or not _READS.search(text, max(0, place - 120), place):
        return None
    return next(_given(text, _unquoted(text, found.span(1)), plain=False), None)


def _words(text: str, at: int) -> Iterator[Span]:
    """Yield the words of a command, up to the end of its line or the next operator."""
    for _ in range(_MAX_WORDS):
        gap = _GAP.match(text, at)
        word = _WORD.match(text, gap.end()) if gap else None
        if word is None:
            return
        at = word.end()
        yield word.span()


def _passwords(text: str, name: str, words: list[Span]) -> Iterator[Span]:
    command = _COMMANDS[name]
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
    glued = max((flag for flag in command.glued if value.startswith(flag, quote)), key=len, default="")
    pair = next((flag for flag in command.pairs if flag and value.startswith(f"{flag}=")), "")
    if glued and len(value) > len(glued) + 2 * quote:
        inside = (start + len(glued) + quote, end - quote) if quote else _unquoted(text, (start + len(glued), end))
        yield from _after(text, inside, command.separator) if command.pairs else _given(text, inside)
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
    """Yield the last word that is not an option, a share, a drive or a name that the command requires before the password."""
    plain = [word for word in words if text[word[0]] not in "-/\\*" and text[word[1] - 1] != ":"]
    min_length = {"htpasswd": 2, "rabbitmqctl": 3, "wpa_passphrase": 2}.get(name, 2)
    if name.startswith("net") and text[slice(*words[0])] == "user":
        min_length = 3
    if len(plain) >= min_length:
        yield from _given(text, _unquoted(text, plain[-1]), plain=False)


def _given(text: str, span: Span, *, plain: bool = True) -> Iterator[Span]:
    """Yield the password unless it is a placeholder or, apart from a glued one, a word such as `password`."""
    value = text[slice(*span)]
    if value and not placeholder(value) and (plain or value.lower() not in _NOT_GIVEN):
        yield span


def _after(text: str, span: Span, separator: str) -> Iterator[Span]:
    """Yield what follows the separator in `user:password`, or a token that stands in the place of the user name."""
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
    return (start + 1, end - 1) if end - start > 1 and text[start] in "\"'" and text[end - 1] == text[start] else span


_PIPED = LazyRegex(
    r"(?i:echo|printf|print)[ \t]{1,4}(?:-[neE]{1,3}[ \t]{1,4}|['\"]?%s(?:\\n)?['\"]?[ \t]{1,4})?"
    r"(\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s|'\"]{1,256})[ \t]{0,4}\|[ \t]{0,4}"
    r"(?=[^\n|]{0,120}?(?:sudo[ \t](?:[^\n|]{0,20}?)-S|stdin|chpasswd|--with-token|--passphrase-fd|cryptsetup|passwd[ \t]))"
)
# `AUTH secret` typed at the prompt of a server, and a script that answers a question for a password.
_TYPED = LazyRegex(
    r"(?:(?<![^\n>])AUTH[ \t]|(?<=> )AUTH[ \t]|ConvertTo-SecureString[ \t]{1,4}(?:-String[ \t]{1,4})?"
    r"|ftp> user[ \t]\S{1,40}[ \t]|server community[ \t]"
    r"|(?:enable|username[ \t]\S{1,40}(?:[ \t]privilege[ \t]\d{1,2})?)[ \t](?:secret|password)[ \t](?:[0-9][ \t])?"  # a router
    r"|rootpw[ \t](?:--[a-z]{1,12}[ \t]){0,2}"
    r"|(?:USER[ \t]\S{1,64}|331[ \t][^\n]{1,80})\r?\n(?:[^\n]{0,80}\n)?PASS[ \t]"  # FTP, POP3
    r"|expect[^\n]{0,40}assword[^\n]{0,20}\n\s{0,8}send[ \t](?:--[ \t])?)"
    r"[\"']?([^\s\"'\\$-][^\s\"'\\]{3,128})"
)


def _piped(found: re.Match[str]) -> Iterator[Span]:
    text, span = found.string, _unquoted(found.string, found.span(1))
    value = text[slice(*span)]
    if "chpasswd" in text[found.end(1) : found.end() + 40] and ":" in value:
        span = span[0] + value.index(":") + 1, span[1]
    yield from _given(text, span, plain=False)


PATTERNS = (
    Pattern("command_password", "SECRET", find_commands,
            hints=(" -", " /", "|", "pass", "auth ", "securestring", "add_user", "net use", "sqlplus", "expdp", "impdp",
                   "ftp>", "community", "assword", "secret", "<<<")),
)  # fmt: skip
