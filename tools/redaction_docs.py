"""Generate docs/internals/redaction.md from the patterns in the code, or check that it is current.

    python tools/redaction_docs.py [--check]

Long examples are shortened in the middle: the page shows what a key looks like without containing a
complete one.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memory_mesh.core.language.redaction import (
    KINDS,
    Pattern,
    Redactor,
    assignments,
    keys,
    national_ids,
    numbers,
    pairs,
    phone,
)

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "internals" / "redaction.md"
EXAMPLES = (
    ROOT / "src" / "memory_mesh" / "core" / "language" / "redaction" / "data" / "examples.toml"
)
# The made-up characters that <a36> stands for. With prefix and characters apart, no file contains a
# complete key.
_ALPHABETS = {
    "a": "a1B2c3D4e5F6g7H8i9J0", "c": "A2B3C4D5E6F7GHIJKLMN", "d": "7305918264",
    "h": "0a1b2c3d4e5f6789", "k": "QPZRY9X8GF2TVDW0S3JN", "l": "aBcDeFgHiJkLmNoPqRsT",
    "s": "a1B/c3D4e5+F6g7H8i9J", "x": "4f3c2b1a0d9e8f76",
}  # fmt: skip
_SHOWN = 44  # characters of an example

_INTRO = """\
# What redaction masks

Generated from the code by `tools/redaction_docs.py`; a test checks that it is current. Edit the patterns, not this page. How to
use redaction is on [its page](../redaction.md).

A pseudonym is the start of an HMAC-SHA256 of the value under your key. It does not depend on spelling: e-mail addresses are
compared without case, phone numbers in E.164 where libphonenumber knows them, cards, IBANs and ids without grouping, IP addresses
in their shortest form. Secrets are compared exactly. A pseudonym has 32 bits: among about 9,000 values of one kind, the chance that
two share a pseudonym is one percent.

Of two overlapping findings, the longer wins, and of equal ones the more specific. If masking keeps uncovering more (only a text
built for that does), the whole text becomes `[REDACTED]`.

The kinds are
KINDS.

## Decisions
"""
_DECISIONS = """\
- **Numbers stay** unless something makes them personal. A bare run of digits is not a phone number; a `+`, a written form that
  libphonenumber confirms, or a word such as *phone*, *fax*, *call me on* makes it one. Dates, times, year ranges and amounts are
  never phone numbers. A phone number has at least seven digits.
- **Phone numbers near a cue word need not be valid**: numbers in use change faster than any table. Those with a `+` must be
  possible according to libphonenumber; those without cue word and `+` must be valid in one of 21 regions. Of one text,
  libphonenumber checks the first 1,000 such numbers; others need only fit its pattern of a region.
- **The nearest word decides**: `order 0812345678` and `part no. 212-555-0123` stay, `โทร 0812345678` is a phone number. The words
  are those of some forty languages.
- **Cards** must pass Luhn. After a word such as *order*, *invoice* or *tracking*, a number without groups is no card. Near a
  word such as *card*, any 12 to 19 digits that pass count; without one, only the lengths and first digits of the large networks.
- **National ids** count without a cue word only in a form that nothing else has (`850715/1235`, `756.1234.5678.97`). Plain runs
  of digits need the check sum and a cue word within 48 characters before or 24 after. In a text with more than 1,000 numbers
  beside words such as *id card* or *tax number*, each that has the form of an id is masked, whatever its check sum.
- **IP addresses**: private and documentation addresses are redacted like public ones. Loopback (`127.…`, `::1`), the unspecified
  address and netmasks (`255.…`) identify no one and stay. Ports stay. Four one-digit parts (`1.2.3.4`) count only near a word
  such as *ip*, *host* or *ping*, or with a port or mask. The zone of an IPv6 address (`%eth0`) is masked with it; MAC addresses
  stay. After words such as *version*, *release* or *section* they never
  count.
- **E-mail**: `git@host:path` is a repository, not a person, and stays. `name [at] example [dot] com` is masked;
  `name at example dot com` only after a word such as *e-mail*, in capitals, or with a dot or digit in the name.
- **Other scripts**: full-width, mathematical and other scripts' digits and signs count like ASCII's, and invisible characters
  inside a value (zero-width space, soft hyphen) do not hide it.
- **Long hex** is redacted only after a word such as *key*, *secret* or *token*, and not if a word for a digest (*commit*, *hash*,
  *fingerprint*, *id*) is nearer: people search later for hashes of commits and files, image digests and trace ids. UUIDs stay
  unless they are called an API key.
- **Passwords and secrets** are recognised by their names, in the forms of programming languages, configuration files, markup and
  URLs, and in sentences of about twenty languages. Placeholders (`<token>`, `${TOKEN}`, `****`), types, calls and names of
  variables stay, and so do words about a secret (*required*, *expired*, *reset*). A quoted value is masked whole, whatever is in
  it; a bare value ends where its form ends: at a blank, at the next `&name=` or `;name=`, at the enclosing quote.
- **A word without digits or marks** is masked as a password only where nothing but a password can stand: in quotes, alone on its
  line, at the end of a statement. `token: hello` stays.
- **Commands** are in a table with the options that take a password. `mysql -p app` asks for it, and `ssh -p 2222` is a port: both
  stay. User names and hosts stay.
- **Half a key** of a vendor is masked too: the lengths in the table are minima.
- **Stripe's publishable keys and Twilio's account ids** are masked although they are not secret: they identify an account.
- **Not found**: names of people and places that are not in the settings, street addresses, birthdays, numbers of passports and
  driving licences without their name before them (no check sum, no common form), short cookies, keys without a form or a name
  (some of Cohere, Fastly, Vercel, Cloudflare and Azure) when no word calls them a key, secrets that are split, spelled out or
  encoded, and private keys without their first line.
"""
_GROUPS: tuple[tuple[str, tuple[Pattern, ...]], ...] = (
    ("People and machines", (*numbers.PATTERNS, *phone.PATTERNS)),
    ("Money", numbers.CARDS),
    ("National ids", (*national_ids.NATIONAL_IDS, *national_ids.DOCUMENTS)),
    (
        "Secrets",
        (
            *keys.FORMS,
            *keys.GENERAL,
            *assignments.PATTERNS,
            *pairs.COMMAND_PATTERNS,
            *pairs.PATTERNS,
            *pairs.TABLE_PATTERNS,
        ),
    ),
    ("Keys of vendors", keys.VENDORS),
)


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the part of it that is masked."""

    text: str
    masked: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Why a pattern exists, what it masks, and texts that stay."""

    why: str
    examples: tuple[Example, ...]
    stays: tuple[str, ...]


@cache
def load_entries() -> dict[str, Entry]:
    """Read the examples of all patterns, by id."""
    tables = tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))
    return {
        id_: Entry(
            table["why"],
            tuple(map(_example, table["examples"])),
            tuple(map(filled, table["stays"])),
        )
        for id_, table in tables.items()
    }


def _example(marked: str) -> Example:
    before, masked, after = re.split("[«»]", filled(marked))
    return Example(before + masked + after, masked)


def filled(text: str) -> str:
    """Replace `<a36>` by 36 made-up characters."""
    return re.sub(
        r"<([a-z])(\d+)>", lambda run: (_ALPHABETS[run[1]] * int(run[2]))[: int(run[2])], text
    )


def main() -> int:
    """Write the page, or with --check only report whether it is current."""
    parser = argparse.ArgumentParser(
        description="Generate docs/internals/redaction.md from the code"
    )
    parser.add_argument("--check", action="store_true")
    page = rendered()
    if not parser.parse_args().check:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE.relative_to(ROOT)} is not current: run tools/redaction_docs.py", file=sys.stderr)
    return 1


def rendered() -> str:
    """Return the whole page."""
    intro = _INTRO.replace("KINDS", ", ".join(f"`{kind}`" for kind in KINDS))
    return "".join((intro, _DECISIONS, *_tables()))


def _tables() -> Iterator[str]:
    for title, patterns in _GROUPS:
        yield (
            f"\n## {title}\n\n| id | masked as | why | redacted | stays |\n|---|---|---|---|---|\n"
        )
        yield from (_row(pattern) for pattern in patterns)


def _row(pattern: Pattern) -> str:
    redactor, entry = Redactor(), load_entries()[pattern.id]
    examples = (
        f"{_code(example.text)} → {_code(redactor.redact(example.text))}"
        for example in entry.examples
    )
    stays = "<br>".join(map(_code, entry.stays))
    return (
        f"| `{pattern.id}` | `[{pattern.label}]` | {entry.why} | {'<br>'.join(examples)} | "
        f"{stays} |\n"
    )


def _code(text: str) -> str:
    """Format a text as code in a table: one line, shortened in the middle."""
    line = text.replace("\n", "⏎").replace("|", "¦").strip()
    if len(line) > _SHOWN:
        line = f"{line[: _SHOWN - 14]}…{line[-12:]}"
    return f"`` {line} ``" if "`" in line else f"`{line}`"


if __name__ == "__main__":
    sys.exit(main())
