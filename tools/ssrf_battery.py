"""Try every trick of tests/data/ssrf.toml on the HTTP client, and print the verdicts.

    python tools/ssrf_battery.py [--markdown]

Each trick goes through `HttpClient(...).post` with a resolver that answers as the file says, and
connections that are only recorded. No network is used. "Reads as" is the address that a program
without the guard (libc, urllib, …) would have called. The exit code is 1 if a trick got through, or
if a harmless URL was refused.
"""

import argparse
import socket
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from httpcore2 import ConnectError

from memory_mesh.core.errors import CallError, SettingsError, UnsafeAddress
from memory_mesh.core.language.safety.addresses import address_refusal, embedded_ipv4
from memory_mesh.net import HttpClient, System

TRICKS = Path(__file__).parents[1] / "tests" / "data" / "ssrf.toml"
AT_ONCE, LATER, THROUGH = "refused when configured", "refused before connecting", "connected"


@dataclass(frozen=True, kw_only=True)
class Trick:
    """A URL that leads to a forbidden address, or an allowed one that only looks similar."""

    url: str
    why: str
    kind: str = "allowed"
    naive: str = ""
    by: str = ""
    answers: Sequence[str] = ()
    later: Sequence[str] = ()
    opens: bool = False
    allow_local: bool = False


@dataclass
class Outcome:
    """The result of a call: the verdict, the reason, and every address that was connected to."""

    verdict: str = THROUGH
    reason: str = ""
    connected: list[str] = field(default_factory=list)


def tricks() -> list[Trick]:
    """Return the tricks of the file."""
    return [Trick(**entry) for entry in tomllib.loads(TRICKS.read_text(encoding="utf-8"))["trick"]]


def allowed() -> list[Trick]:
    """Return the URLs that must not be refused."""
    return [
        Trick(**entry) for entry in tomllib.loads(TRICKS.read_text(encoding="utf-8"))["allowed"]
    ]


def try_trick(trick: Trick, *, allow_local: bool = False) -> Outcome:
    """Make the call with two attempts; every connection fails here."""
    outcome = Outcome()
    answers = iter([trick.answers])

    def connect(address: str, port: int, timeout: float) -> NoReturn:
        outcome.connected.append(address)
        raise ConnectError("only recorded")

    system = System(
        resolve=lambda host, port: next(answers, trick.later or trick.answers),
        connect=connect,
        pause=lambda seconds: None,
        jitter=lambda most: 0.0,
    )
    try:
        HttpClient(trick.url, allow_local=allow_local, attempts=2, system=system).post(
            "/v1/chat", {}
        )
    except SettingsError as error:
        outcome.verdict, outcome.reason = AT_ONCE, error.what
    except UnsafeAddress as error:
        outcome.verdict, outcome.reason = LATER, error.what
    except CallError as error:
        outcome.reason = error.what
    return outcome


def is_blocked(trick: Trick, outcome: Outcome) -> bool:
    """Return whether only the checked public addresses were called."""
    called = list(trick.answers) if trick.later else []
    return (
        outcome.verdict != THROUGH
        and outcome.connected == called
        and not any(map(address_refusal, outcome.connected))
    )


def _host(trick: Trick) -> str:
    return urlsplit(trick.url).hostname or ""


# How programs without the guard read the host.
READERS: dict[str, Callable[[Trick], str]] = {
    "libc": lambda trick: socket.inet_ntoa(socket.inet_aton(_host(trick))),
    "dots": lambda trick: socket.inet_ntoa(socket.inet_aton(_host(trick).rstrip("."))),
    "address": lambda trick: str(IPv6Address(_host(trick))),
    "zone": lambda trick: str(IPv6Address(_host(trick).partition("%")[0])),
    "carried": lambda trick: str(embedded_ipv4(IPv6Address(_host(trick)))),
    "urllib": _host,
    "browser": lambda trick: urlsplit(trick.url.replace("\\", "/")).hostname or "",
    "percent": lambda trick: unquote(_host(trick)),
    "idna": lambda trick: _host(trick).encode("idna").decode("ascii"),
    "resolver": lambda trick: next(
        (address for address in trick.answers if address_refusal(address)), ""
    ),
    "rebinding": lambda trick: next(
        (address for address in trick.later if address_refusal(address)), ""
    ),
}


def main() -> int:
    """Print the table and the summary; return 1 if a trick got through or a harmless URL was
    refused."""
    parser = argparse.ArgumentParser(description="tricks against the address guard")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    markdown: bool = parser.parse_args().markdown
    outcomes = [(trick, try_trick(trick)) for trick in tricks()]
    passed = [trick for trick, outcome in outcomes if not is_blocked(trick, outcome)]
    wrongly = [
        trick
        for trick in allowed()
        if not try_trick(trick, allow_local=trick.allow_local).connected
    ]
    print("\n".join(_markdown(outcomes) if markdown else _plain(outcomes)))
    print(_summary(outcomes, passed, wrongly))
    return 1 if passed or wrongly else 0


def _summary(
    outcomes: Sequence[tuple[Trick, Outcome]], passed: Sequence[Trick], wrongly: Sequence[Trick]
) -> str:
    verdicts = Counter(outcome.verdict for _, outcome in outcomes)
    counts = ", ".join(
        f"{verdicts[verdict]} {verdict}" for verdict in (AT_ONCE, LATER) if verdicts[verdict]
    )
    named = "".join(f"\n  {trick.url!r}: {trick.why}" for trick in (*passed, *wrongly))
    harmless = len(allowed())
    return (
        f"\n{len(outcomes)} tricks: {len(outcomes) - len(passed)} blocked ({counts}), "
        f"{len(passed)} got through. {harmless} harmless URLs: {harmless - len(wrongly)} "
        f"connected, {len(wrongly)} refused.{named}"
    )


def _plain(outcomes: Sequence[tuple[Trick, Outcome]]) -> Iterator[str]:
    yield f"{'trick':<52} {'kind':<10} {'reads as':<26} verdict"
    for trick, outcome in outcomes:
        yield (
            f"{_shown(trick.url):<52} {trick.kind:<10} {trick.naive or '–':<26} "
            f"{_verdict(trick, outcome)}"
        )


def _markdown(outcomes: Sequence[tuple[Trick, Outcome]]) -> Iterator[str]:
    yield "| trick | what it is | kind | reads as | verdict |"
    yield "|---|---|---|---|---|"
    for trick, outcome in outcomes:
        reads = f"`{trick.naive}`" if trick.naive else "–"
        yield (
            f"| `{_shown(trick.url)}` | {trick.why} | {trick.kind} | {reads} | "
            f"{_verdict(trick, outcome)} |"
        )


def _verdict(trick: Trick, outcome: Outcome) -> str:
    if not is_blocked(trick, outcome):
        return f"GOT THROUGH to {', '.join(outcome.connected) or 'nothing'}"
    return f"{outcome.verdict} again" if trick.later else outcome.verdict


def _shown(url: str) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in url)


if __name__ == "__main__":
    sys.exit(main())
