"""URLs that may be called: the only reader of them, so that what is checked and what is called cannot be read in two ways.

It is stricter than the standards. A URL of a model's endpoint is a scheme, a host, perhaps a port and a path; whatever else a
URL can hold is what tricks are made of. No error quotes the URL: keys hide in user names and queries.
"""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NoReturn

from memory_mesh.core.errors import UnsafeAddress
from memory_mesh.core.safety.address_ranges import Address, judge

_EXPECTED = "a URL like https://api.example.com/v1"
_PORTS = {"http": 80, "https": 443}
_LONGEST_URL, _LONGEST_HOST = 2048, 253
_START = re.compile(r"(https?)://([^/]*)(.*)", re.IGNORECASE | re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")
# A last label that is a number is no name: https://url.spec.whatwg.org/#ends-in-a-number-checker, as libc does.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

# Names of metadata services; what ends in one of them belongs to it.
_METADATA = ("metadata.google.internal", "metadata.goog", "metadata.azure.internal", "instance-data.ec2.internal")
_METADATA_EXACT = frozenset(
    {"metadata", "instance-data", "rancher-metadata", "metadata.google", "metadata.tencentyun.com", "metadata.packet.net"}
    | {"metadata.platformequinix.com", "api.metadata.cloud.ibm.com", "metadata.internal", "metadata.local", "metadata.svc"}
)
_THIS_MACHINE = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL names. The host is in lower case, without a last dot, and an address in its usual notation."""

    scheme: str
    host: str
    port: int
    path: str  # empty, or with a slash in front and none at the end

    @property
    def literal(self) -> Address | None:
        """The host where it is an address and no name."""
        if ":" in self.host:
            return IPv6Address(self.host)
        return IPv4Address(self.host) if _ends_in_number(self.host) else None

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def read_url(url: str) -> Target:
    """Read a URL, or raise `UnsafeAddress`. Whether its host may be called is for `refusal` and `judge` to say."""
    found = _START.fullmatch(_clean(url))
    if found is None:
        _refuse("the URL does not start with http:// or https://")
    scheme, authority, path = found[1].lower(), found[2], found[3]
    if "@" in authority:
        _refuse("the URL holds a user name or a password", remedy="give the key by its own setting")
    parts = _HOST_AND_PORT.fullmatch(authority)
    if parts is None:
        _refuse("the host of the URL cannot be read")
    return Target(scheme, _host(parts[1].lower()), _port(parts[2], _PORTS[scheme]), read_path(path))


def read_path(path: str) -> str:
    """The path of a URL, or what is put behind it: without a last slash."""
    if not _PATH.fullmatch(path):
        _refuse("the path of the URL holds what does not belong in one")
    return path.rstrip("/")


def refusal(target: Target, *, allow_local: bool = False) -> str | None:
    """Why this host may not be called whatever it resolves to, or None."""
    if (literal := target.literal) is not None:
        return judge(literal, allow_local=allow_local)
    host = target.host
    if host in _METADATA_EXACT or _within(host, _METADATA):
        return "a cloud's metadata service"
    if not allow_local and _within(host, _THIS_MACHINE):
        return "this machine"
    return None


def _within(host: str, names: tuple[str, ...]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)


def _clean(url: str) -> str:
    if len(url) > _LONGEST_URL:
        _refuse(f"the URL is longer than {_LONGEST_URL} characters")
    if not url.isascii():
        # Full-width digits, circled letters and the like become another host in programs that fold them.
        _refuse("the URL is not in ASCII", remedy="write an international name in its xn-- form")
    if any(char.isspace() or not char.isprintable() for char in url):
        _refuse("the URL holds spaces or characters that cannot be seen")
    if "\\" in url:
        _refuse("the URL holds a backslash, which some programs read as a slash")
    if "?" in url or "#" in url:
        _refuse("the URL holds a query or a fragment")
    return url


def _port(digits: str | None, default: int) -> int:
    if digits is None:
        return default
    if not digits or len(digits) > 5 or not 1 <= int(digits) <= 65535:
        _refuse("the port of the URL is none", expected="a number from 1 to 65535")
    return int(digits)


def _host(host: str) -> str:
    if host.startswith("["):
        return _ipv6(host[1:-1])
    host = host.removesuffix(".")
    labels = host.split(".")
    if not host or len(host) > _LONGEST_HOST or not all(map(_LABEL.fullmatch, labels)):
        _refuse("the URL names no host")
    return str(_ipv4(labels)) if _ends_in_number(host) else host


def _ends_in_number(host: str) -> bool:
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _ipv6(text: str) -> str:
    if "%" in text:
        _refuse("the host of the URL is bound to one of this machine's interfaces", expected="an address without a zone")
    try:
        return str(IPv6Address(text))
    except AddressValueError:
        _refuse("the host of the URL is no IPv6 address")


def _ipv4(labels: list[str]) -> IPv4Address:
    """As libc reads it: one to four numbers, decimal, octal or hexadecimal; the last one fills what the others left open."""
    *first, last = map(_number, labels) if len(labels) <= 4 else [-1]
    room = 256 ** (4 - len(first))
    if not all(0 <= number < 256 for number in first) or not 0 <= last < room:
        _refuse("the host of the URL is no IPv4 address")
    value = 0
    for number in first:
        value = value * 256 + number
    return IPv4Address(value * room + last)


def _number(label: str) -> int:
    """-1 where it is none. A zero in front makes it octal; some systems read a bare 0x as zero."""
    if label in ("0", "0x"):
        return 0
    base = 16 if label.startswith("0x") else 8 if label.startswith("0") else 10
    try:
        return int(label.removeprefix("0x") if base == 16 else label, base) if label.isalnum() else -1
    except ValueError:
        return -1


def _refuse(what: str, *, expected: str = _EXPECTED, remedy: str = "") -> NoReturn:
    raise UnsafeAddress(what, expected=expected, remedy=remedy)
