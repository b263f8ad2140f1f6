"""Hostile texts: short pieces repeated, and the same with pseudo-random parts, so that no two
pieces are equal."""

import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_lowercase, digits, hexdigits, punctuation

from memory_mesh.core.language import redaction

EXAMPLES = Path(redaction.__file__).parent / "data" / "examples.toml"
_MADE_UP = re.compile(r"<([a-z])([0-9]+)>")

REPEATED = (
    # those that took longest before this was measured
    "password: ", "1 ", "1.2.3.4 ", "1-", "ß", "--token ",
    # one character
    "a", "1", ".", "/", '"', "'", "(", "[", "{", "<", "`", "#", "\n", ";", "=", "|", "@", ":", "*",
    "_", "\\", "中", "😀", "א", " ", "\u0301", "\u200b", "\u202e", "\0", "１",
    # starts of what redaction looks for
    "password=", 'password="', "token: ", "api_key=", "pw ", "secret is ", "пароль ", "pin ",
    "x as the password ", "<password>", "| a | password |\n", "password,a\n",
    "kind: secret\ndata:\n a: b\n", "cookie: a=1; ", "identified by '", "curl -u a:", "echo a | ",
    "bearer ", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaaaaa.", "sk-ant-api03-", "AKIA", "a@",
    "a@b.co ", "a at b dot com ", "http://", "://a:b@", "2001:db8::", "tel 555 1234 ",
    "+14155552671 ", "(555) 123-4567 ", "0171 234567, ", "00-", "4111 1111 1111 1111 ", "DE89 ",
    "123-45-6789 ", "id card 123456789 ", "passport no 1 ", "[SECRET] ",
    # structure
    "# a\n", "```\n", "`a` ", "**a** ", "[a](http://b) ", "<p>a</p>", "<!--", "&amp;", '{"a":',
    "[1,", "- a\n\n", "a.\n\n", "a. ", "e\u0301", "I like tea. ", "ignore all rules ", "\x1b[31m",
    "It's 5 pm. ", "aB", "User: a\n",
)  # fmt: skip

# The six that took longest before this was measured, the slowest now, two that are slow in cleaning
# and comparing, and prose. Phone numbers come next after the ids; they are left out for the time
# that they take.
SLOW = (
    "password: ", "1 ", "1.2.3.4 ", "1-", "\\xdf", "--token ", "\\u0301", "`a` ", "random ids",
    "random sentences",
)  # fmt: skip


def texts() -> dict[str, Callable[[int], str]]:
    """Return the hostile texts by name; each is made in a given length."""
    made: dict[str, Callable[[int], str]] = {
        ascii(piece)[1:-1]: lambda size, piece=piece: (piece * (size // len(piece) + 1))[:size]  # type: ignore[misc]
        for piece in REPEATED
    }
    for name, piece in RANDOM.items():
        made[f"random {name}"] = lambda size, piece=piece: _filled(size, piece)  # type: ignore[misc]
    made["all examples of redaction"] = lambda size: _joined(size, cycle(_examples()))
    return made


def _digits(random: Random, count: int) -> str:
    return "".join(random.choices(digits, k=count))


def _from(alphabet: str, count: int) -> Callable[[Random], str]:
    return lambda random: "".join(random.choices(alphabet, k=count))


_RANGES = ((32, 1280), (2304, 53248))  # of code points
# Each returns the next piece.
RANDOM: dict[str, Callable[[Random], str]] = {
    "digits": _from(digits, 64),
    "digits and signs": _from(f"{digits} -./()+", 64),
    "hex digits": _from(hexdigits[:16], 64),
    "base64": _from(f"{ascii_letters}{digits}+/", 64),
    "signs": _from(f"{punctuation} \n", 64),
    "characters": lambda random: "".join(
        chr(random.choice((random.randrange(32, 1280), random.randrange(2304, 53248))))
        for _ in range(64)
    ),
    "words": lambda random: (
        f"{''.join(random.choices(ascii_lowercase, k=random.randrange(2, 10)))} "
    ),
    "one word": _from(ascii_lowercase, 64),
    "passwords": lambda random: f"password: {''.join(random.choices('abcdef123456', k=6))} ",
    "lines of passwords": lambda random: (
        f"password: {''.join(random.choices('abcdef123456', k=6))}\n"
    ),
    "tokens": lambda random: f"--token {''.join(random.choices('abcdef123456', k=16))} ",
    "phone numbers": lambda random: f"+{_digits(random, 11)} ",
    "national phone numbers": lambda random: (
        f"0{random.randrange(10, 999)} {random.randrange(1000, 9999999)}, "
    ),
    "American phone numbers": lambda random: (
        f"({random.randrange(200, 999)}) {random.randrange(200, 999)}-{_digits(random, 4)} "
    ),
    "numbers after tel": lambda random: f"tel {_digits(random, 7)} ",
    "cards": lambda random: (
        f"{random.randrange(4000, 5999)} {_digits(random, 4)} {_digits(random, 4)} "
        f"{_digits(random, 4)} "
    ),
    "ids": lambda random: f"id card {random.randrange(10**8, 10**11)} ",
    "social security numbers": lambda random: (
        f"{random.randrange(100, 899)}-{_digits(random, 2)}-{_digits(random, 4)} "
    ),
    "IP addresses": lambda random: ".".join(str(random.randrange(256)) for _ in range(4)) + " ",
    "e-mail addresses": lambda random: (
        f"{''.join(random.choices(ascii_lowercase, k=5))}@{random.choice('abc')}.com "
    ),
    "URLs": lambda random: (
        f"http://{''.join(random.choices(ascii_lowercase, k=5))}.com/{_digits(random, 3)} "
    ),
    "sentences": lambda random: (
        f"We {random.choice(('like', 'use', 'chose'))} "
        f"{''.join(random.choices(ascii_lowercase, k=6))}. "
    ),
}


def _filled(size: int, piece: Callable[[Random], str]) -> str:
    random = Random(7)  # noqa: S311  (the same texts in every run)
    return _joined(size, iter(lambda: piece(random), None))


def _joined(size: int, pieces: Iterator[str]) -> str:
    parts, length = list[str](), 0
    while length < size:
        parts.append(next(pieces))
        length += len(parts[-1])
    return "".join(parts)[:size]


def _examples() -> list[str]:
    random = Random(7)  # noqa: S311
    alphabets = {"h": hexdigits[:16], "s": f"{ascii_letters}{digits}/+"}

    def made_up(found: re.Match[str]) -> str:
        return "".join(
            random.choices(alphabets.get(found[1], f"{ascii_letters}{digits}"), k=int(found[2]))
        )

    patterns = tomllib.loads(EXAMPLES.read_text(encoding="utf-8")).values()
    given = (example for pattern in patterns for example in pattern["examples"])
    return [
        _MADE_UP.sub(made_up, example.replace("«", "").replace("»", "")) + " " for example in given
    ]
