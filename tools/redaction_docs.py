"""Writes docs/redaction.md from the patterns in the code, or checks that it is current.

    python tools/redaction_docs.py [--check]

Long examples are shortened in the middle: the page shows what a key looks like and holds no complete one.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from memory_mesh.core.redaction import assignments as redact_assign
from memory_mesh.core.redaction import money as redact_money
from memory_mesh.core.redaction import national_ids as redact_ids
from memory_mesh.core.redaction import network as redact_network
from memory_mesh.core.redaction import phone as redact_phone
from memory_mesh.core.redaction import secrets as redact_secrets
from memory_mesh.core.redaction import vendors as redact_vendors
from memory_mesh.core.redaction.engine import Redactor
from memory_mesh.core.redaction.pattern import Pattern

PAGE = Path(__file__).parents[1] / "docs" / "redaction.md"
_SHOWN = 44  # characters of an example

_INTRO = """\
# Redaction

This page is made by `tools/redaction_docs.py` from the code; a test holds it current. Edit the patterns, not the page.

Whatever is written passes the redactor first: content, metadata (keys too), tags, queries in recall blocks, log lines and error
texts. What a pattern finds is replaced; the rest of the text stays as it was.

| mode | what is stored for `ann@example.org` |
|---|---|
| `mask` | `[EMAIL]` |
| `pseudonym` | `[EMAIL:8 hex digits]`, the start of HMAC-SHA256 under your key |

Under one key the same person stays the same token; another key gives other tokens, and without the key nothing leads back. A
pseudonym does not depend on spelling: e-mail addresses are compared without case, phone numbers in E.164 where libphonenumber
knows them, cards, IBANs and ids without their groups, IP addresses in their shortest form. Secrets are compared as they are.
With 32 bits, two of about 9,000 values of one kind share a token by chance once in a hundred times.

Names given in the settings are replaced by their ids in both modes, as whole words, ignoring case, the longest first.

In structured values a key is a cue: `{"password": "swordfish"}` and `{"phone": 4673395}` are redacted like the sentences
`password: swordfish` and `phone: 4673395`. A number that is redacted becomes a text. Keys that become equal are numbered, so
that no value is lost.

Redacting a redacted text changes nothing. Of two finds that overlap, the longer wins, and of equal ones the more specific. If
masking uncovers more and more (only a text made for that does), nothing of the text is kept but `[REDACTED]`.

## Decisions
"""
_DECISIONS = """\
- **Numbers stay** unless something makes them personal. A bare run of digits is no phone number by itself; a `+`, a
  written form that libphonenumber confirms, or a word such as *phone*, *fax*, *call me on* makes one. Dates, times,
  year ranges and amounts are none even beside such a word. With fewer than seven digits there is none.
- **Phone numbers beside a cue word need not be valid**: numbers in use change faster than any table. Those with a `+`
  must be possible by libphonenumber, those without cue and without `+` must be valid in one of 21 regions.
- **Cards** must pass Luhn. Without a word such as *card* near, only the lengths and first digits of the large
  networks count; with it, any 12 to 19 digits that pass.
- **National ids** count by themselves only in a form that nothing else has (`850715/1235`, `756.1234.5678.97`); plain
  runs of digits need a cue word within 48 characters before or 24 after, and the check sum.
- **IP addresses**: private and documentation addresses are redacted like public ones. Loopback (`127.…`, `::1`), the
  unspecified address, and netmasks (`255.…`) name nobody and stay. Ports stay. Four one-digit parts (`1.2.3.4`) count
  only beside a word such as *ip*, *host* or *ping*, a port, or a mask; after *version*, *release*, *section* and the
  like they never count.
- **E-mail**: `git@host:path` is a repository, not a person, and stays. `name at example dot com` is not read.
- **Long hex** stays without a word such as *key*, *secret* or *token* right before it, and also with one if a word
  for a digest (*commit*, *hash*, *fingerprint*, *id*) stands nearer: hashes of commits and files, digests of images
  and trace ids are what people look for later. UUIDs stay unless called an API key.
- **Passwords and secrets** are known by what they are called. Placeholders (`<token>`, `${TOKEN}`, `****`), types,
  calls and names of variables stay, and so do words that only tell about a secret (*required*, *expired*, *reset*).
- **Stripe's publishable keys and Twilio's account ids** are masked although they are no secrets: they name an
  account.
- **What it does not find**: names of people and places that are not in the settings, street addresses, birthdays,
  passports and driving licences (no check sum, no common form), one-time codes, cookies, keys without any form or
  name (some of Cohere, Fastly, Vercel, Cloudflare and Azure) where nothing calls them a key, secrets that are split,
  spelled out or encoded, and private keys whose first line is missing.
"""
_GROUPS: tuple[tuple[str, tuple[Pattern, ...]], ...] = (
    ("People and machines", (*redact_network.PATTERNS, *redact_phone.PATTERNS)),
    ("Money", redact_money.PATTERNS),
    ("National ids", redact_ids.PATTERNS),
    ("Secrets", (*redact_secrets.PATTERNS, *redact_assign.PATTERNS)),
    ("Keys of vendors", redact_vendors.PATTERNS),
)


def main() -> int:
    """Write the page, or with --check only say whether it is current."""
    parser = argparse.ArgumentParser(description="docs/redaction.md from the code")
    parser.add_argument("--check", action="store_true")
    page = rendered()
    if not parser.parse_args().check:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print("docs/redaction.md is not current: run python tools/redaction_docs.py", file=sys.stderr)
    return 1


def rendered() -> str:
    """The whole page."""
    return "".join((_INTRO, _DECISIONS, *_tables()))


def _tables() -> Iterator[str]:
    for title, patterns in _GROUPS:
        yield f"\n## {title}\n\n| id | masked as | why | redacted | stays |\n|---|---|---|---|---|\n"
        yield from (_row(pattern) for pattern in patterns)


def _row(pattern: Pattern) -> str:
    redactor = Redactor()
    examples = (f"{_code(example.text)} → {_code(redactor.text(example.text))}" for example in pattern.examples)
    stays = "<br>".join(map(_code, pattern.counter_examples))
    return f"| `{pattern.id}` | `[{pattern.label}]` | {pattern.why} | {'<br>'.join(examples)} | {stays} |\n"


def _code(text: str) -> str:
    """As code in a table: one line, shortened in the middle."""
    line = text.replace("\n", "⏎").replace("|", "¦").strip()
    if len(line) > _SHOWN:
        line = f"{line[: _SHOWN - 14]}…{line[-12:]}"
    return f"`` {line} ``" if "`" in line else f"`{line}`"


if __name__ == "__main__":
    sys.exit(main())
