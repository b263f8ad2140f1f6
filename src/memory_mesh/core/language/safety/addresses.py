"""Decide which URLs and IP addresses may be called.

This is the only URL parser for outgoing calls, so the URL that is checked and the URL that is
called cannot differ. It is stricter than the standards: the URL of a model's endpoint is a scheme,
a host, and perhaps a port and a path; tricks use the other parts. No error quotes the URL, because
user names and queries may contain keys.

The address tables follow IANA's registries of special-purpose addresses. Python's `is_global` and
`is_private` are not used: they have changed between versions and do not know metadata services. An
IPv4 address is public unless a table lists it. For IPv6 only 2000::/3 has ever been allocated, so
only that range can be public.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import NoReturn

from memory_mesh.core.errors import UnsafeAddress
from memory_mesh.core.text import address_text

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_METADATA_SERVICE = "a cloud's metadata service"
_DISGUISED_IPV4 = "an IPv4 address in disguise"

# --- URLs ---

_EXPECTED = "a URL like https://api.example.com/v1"
_PORTS = {"http": 80, "https": 443}
_MAX_URL_LENGTH, _MAX_HOST_LENGTH = 2048, 253
_URL = re.compile(r"(https?)://([^/]*)(.*)", re.IGNORECASE | re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*")
# A host whose last label is a number is an address, as in libc:
# https://url.spec.whatwg.org/#ends-in-a-number-checker
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

# Names of metadata services; every name below one of these belongs to it.
_METADATA_DOMAINS = (
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "instance-data.ec2.internal",
)
_METADATA_HOSTS = frozenset(
    {
        "metadata",
        "instance-data",
        "rancher-metadata",
        "metadata.google",
        "metadata.tencentyun.com",
        "metadata.packet.net",
    }
    | {
        "metadata.platformequinix.com",
        "api.metadata.cloud.ibm.com",
        "metadata.internal",
        "metadata.local",
        "metadata.svc",
    }
)
_LOCALHOST = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. The host is in lower case, without a trailing dot; an address is in its
    usual notation."""

    scheme: str
    host: str
    port: int
    path: str  # empty, or with a leading slash and no trailing one

    @property
    def literal(self) -> Address | None:
        """The host as an address, or None if it is a name."""
        if ":" in self.host:
            return IPv6Address(self.host)
        return IPv4Address(self.host) if _ends_in_number(self.host) else None

    @property
    def authority(self) -> str:
        """Host and port as in the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse_url(url: str) -> Target:
    """Parse a URL or raise `UnsafeAddress`. `host_refusal` and `address_refusal` decide whether
    its host may be called."""
    _check_characters(url)
    match = _URL.fullmatch(url)
    if match is None:
        _refuse("the URL does not start with http:// or https://")
    scheme, authority, path = match[1].lower(), match[2], match[3]
    if "@" in authority:
        _refuse(
            "the URL contains a user name or a password", remedy="give the key by its own setting"
        )
    parts = _HOST_AND_PORT.fullmatch(authority)
    if parts is None:
        _refuse("the host of the URL cannot be read")
    return Target(
        scheme,
        _parse_host(parts[1].lower()),
        _parse_port(parts[2], _PORTS[scheme]),
        parse_path(path),
    )


def parse_path(path: str) -> str:
    """Return the path of a URL without a trailing slash, or raise `UnsafeAddress`."""
    if not _PATH.fullmatch(path):
        _refuse("the path of the URL contains characters that a path cannot have")
    return path.rstrip("/")


def host_refusal(target: Target, *, allow_local: bool = False) -> str | None:
    """Return why this host may not be called whatever it resolves to, or None."""
    if (literal := target.literal) is not None:
        return address_refusal(literal, allow_local=allow_local)
    host = target.host
    if host in _METADATA_HOSTS or _is_below(host, _METADATA_DOMAINS):
        return _METADATA_SERVICE
    if not allow_local and _is_below(host, _LOCALHOST):
        return "this machine"
    return None


def _is_below(host: str, names: tuple[str, ...]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)


def _check_characters(url: str) -> None:
    if len(url) > _MAX_URL_LENGTH:
        _refuse(f"the URL is longer than {_MAX_URL_LENGTH} characters")
    if not url.isascii():
        # Full-width digits, circled letters and the like become another host in programs that fold
        # them.
        _refuse("the URL is not in ASCII", remedy="write an international name in its xn-- form")
    if any(char.isspace() or not char.isprintable() for char in url):
        _refuse("the URL contains spaces or invisible characters")
    if "\\" in url:
        _refuse("the URL contains a backslash, which some programs read as a slash")
    if "?" in url or "#" in url:
        _refuse("the URL contains a query or a fragment")


def _parse_port(digits: str | None, default: int) -> int:
    if digits is None:
        return default
    if not digits or len(digits) > 5 or not 1 <= int(digits) <= 65535:
        _refuse("the port of the URL is not valid", expected="a number from 1 to 65535")
    return int(digits)


def _parse_host(host: str) -> str:
    if host.startswith("["):
        return _parse_ipv6(host[1:-1])
    host = host.removesuffix(".")
    labels = host.split(".")
    if not host or len(host) > _MAX_HOST_LENGTH or not all(map(_LABEL.fullmatch, labels)):
        _refuse("the URL has no valid host")
    return str(_parse_ipv4(labels)) if _ends_in_number(host) else host


def _ends_in_number(host: str) -> bool:
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None


def _parse_ipv6(text: str) -> str:
    if "%" in text:
        _refuse(
            "the host of the URL is bound to one of this machine's interfaces",
            expected="an address without a zone",
        )
    try:
        return address_text(str(IPv6Address(text)))
    except AddressValueError:
        _refuse("the host of the URL is not a valid IPv6 address")


def _parse_ipv4(labels: list[str]) -> IPv4Address:
    """Parse as libc does: one to four decimal, octal or hexadecimal numbers; the last one fills
    the remaining bytes."""
    *first, last = map(_parse_number, labels) if len(labels) <= 4 else [-1]
    room = 256 ** (4 - len(first))
    if not all(0 <= number < 256 for number in first) or not 0 <= last < room:
        _refuse("the host of the URL is not a valid IPv4 address")
    return IPv4Address(int.from_bytes(bytes(first)) * room + last)


def _parse_number(label: str) -> int:
    """Return the number, or -1 if it is not one. A leading zero makes it octal; some systems
    read a bare 0x as zero."""
    if label in ("0", "0x"):
        return 0
    base = 16 if label.startswith("0x") else 8 if label.startswith("0") else 10
    try:
        return (
            int(label.removeprefix("0x") if base == 16 else label, base) if label.isalnum() else -1
        )
    except ValueError:
        return -1


def _refuse(what: str, *, expected: str = _EXPECTED, remedy: str = "") -> NoReturn:
    raise UnsafeAddress(what, expected=expected, remedy=remedy)


# --- addresses ---


def _networks(table: Mapping[str, str]) -> tuple[tuple[Network, str], ...]:
    return tuple(
        (ip_network(network), reason)
        for reason, networks in table.items()
        for network in networks.split()
    )


# `allow_local` opens these: this machine, and the networks of its owner.
_LOCAL = _networks(
    {
        "loopback": "127.0.0.0/8 ::1/128",
        "a private network": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
        "a network shared behind a carrier": "100.64.0.0/10",
    }
)
# No setting opens these. The first row that contains an address gives the reason, so single
# addresses come first.
_FORBIDDEN = _networks(
    {
        # Metadata services give the machine's credentials to every caller. Most are link-local,
        # some have other addresses.
        _METADATA_SERVICE: (
            "169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 168.63.129.16 192.0.0.192"
            " fd00:ec2::/32 fd20:ce::254 fd00:c1::a9fe:a9fe fd00:42::42"
        ),
        "the unspecified address": "0.0.0.0 ::",
        "this network": "0.0.0.0/8",
        "link-local": "169.254.0.0/16 fe80::/10",
        "reserved for protocols": "192.0.0.0/24",
        "for documentation only": (
            "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"
        ),
        "a withdrawn relay": "192.88.99.0/24",
        "for measurements only": "198.18.0.0/15",
        "multicast": "224.0.0.0/4 ff00::/8",
        "broadcast": "255.255.255.255",
        "reserved": "240.0.0.0/4",
        _DISGUISED_IPV4: "::ffff:0:0/96 ::ffff:0:0:0/96",
        "a network's own translation to IPv4": "64:ff9b:1::/48",
        "an address that discards packets": "100::/64",
        "reserved for protocols and tunnels": "2001::/23",
        "a withdrawn tunnel to IPv4": "2002::/16",
        "for routing only": "5f00::/16",
        "a withdrawn kind of private network": "fec0::/10",
    }
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
# Networks without IPv4 reach public IPv4 addresses through this prefix, and their resolvers return
# it.
_NAT64 = IPv6Network("64:ff9b::/96")
_IPV4_IN_LAST_BITS = tuple(
    map(IPv6Network, ("64:ff9b::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96"))
)
_SIX_TO_FOUR, _TEREDO, _LOCAL_NAT64 = map(IPv6Network, ("2002::/16", "2001::/32", "64:ff9b:1::/48"))
_ISATAP = 0x5EFE  # the upper half of the interface id; two more of its bits may be set


def address_refusal(address: str | Address, *, allow_local: bool = False) -> str | None:
    """Return why this address may not be called, or None. An address that contains another must
    pass with both."""
    outer = ip_address(address) if isinstance(address, str) else address
    reason = _reason(outer, allow_local=allow_local)
    if reason is None and (inner := embedded_ipv4(outer)) is not None:
        # A local address inside a public one is an attempt to get past a check: no setting opens
        # it.
        reason = _reason(inner, allow_local=False)
    return reason


def embedded_ipv4(address: Address) -> IPv4Address | None:
    """Return the IPv4 address inside an IPv6 address: mapped, compatible, translated, or the end
    of a tunnel."""
    return next(_embedded(address), None) if isinstance(address, IPv6Address) else None


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    bits = int(address)
    # :: and ::1 contain no IPv4 address.
    if bits > 1 and any(address in network for network in _IPV4_IN_LAST_BITS):
        yield IPv4Address(bits & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        yield IPv4Address(bits >> 80 & 0xFFFFFFFF)
    if address in _TEREDO:  # stored inverted
        yield IPv4Address(~bits & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:  # sixteen bits, eight zeros, sixteen bits
        yield IPv4Address((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF)
    if bits >> 32 & 0xFCFFFFFF == _ISATAP:
        yield IPv4Address(bits & 0xFFFFFFFF)


def _reason(address: Address, *, allow_local: bool) -> str | None:
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "bound to one of this machine's interfaces"
    forbidden, local = _look_up(address, _FORBIDDEN), _look_up(address, _LOCAL)
    if forbidden is not None or (local is not None and not allow_local):
        return forbidden or local
    if (
        local is not None
        or isinstance(address, IPv4Address)
        or address in _PUBLIC_IPV6
        or address in _NAT64
    ):
        return None
    return _DISGUISED_IPV4 if embedded_ipv4(address) is not None else "not a public address"


def _look_up(address: Address, table: tuple[tuple[Network, str], ...]) -> str | None:
    return next((reason for network, reason in table if address in network), None)
