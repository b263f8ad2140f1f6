"""Which IP addresses may be called. The tables are our own, after IANA's registries of special-purpose addresses.

Python's `is_global` and `is_private` are not asked: they have changed between versions, and know nothing of metadata services.
For IPv4 everything is public that no row names. For IPv6 only 2000::/3 has ever been given out, so only that can be public.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# What a setting can open: this machine, and networks that belong to whoever runs it.
_LOCAL: tuple[tuple[str, str], ...] = (
    ("127.0.0.0/8", "loopback"),
    ("10.0.0.0/8", "a private network"),
    ("172.16.0.0/12", "a private network"),
    ("192.168.0.0/16", "a private network"),
    ("100.64.0.0/10", "a network shared behind a carrier"),
    ("::1/128", "loopback"),
    ("fc00::/7", "a private network"),
)
# What nothing opens. The first row that holds an address gives the reason, so single addresses stand first.
_NEVER: tuple[tuple[str, str], ...] = (
    # Metadata services hand out the machine's credentials to whoever asks. Most are link-local; these stand elsewhere too.
    ("169.254.169.254/32", "a cloud's metadata service"),
    ("169.254.170.2/32", "a cloud's metadata service"),
    ("169.254.170.23/32", "a cloud's metadata service"),
    ("100.100.100.200/32", "a cloud's metadata service"),
    ("168.63.129.16/32", "a cloud's metadata service"),
    ("192.0.0.192/32", "a cloud's metadata service"),
    ("fd00:ec2::/32", "a cloud's metadata service"),
    ("fd20:ce::254/128", "a cloud's metadata service"),
    ("fd00:c1::a9fe:a9fe/128", "a cloud's metadata service"),
    ("fd00:42::42/128", "a cloud's metadata service"),
    ("0.0.0.0/32", "no address at all"),
    ("0.0.0.0/8", "this network"),
    ("169.254.0.0/16", "link-local"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "for documentation only"),
    ("192.88.99.0/24", "a withdrawn relay"),
    ("198.18.0.0/15", "for measurements only"),
    ("198.51.100.0/24", "for documentation only"),
    ("203.0.113.0/24", "for documentation only"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "no address at all"),
    ("::ffff:0:0/96", "an IPv4 address in disguise"),
    ("::ffff:0:0:0/96", "an IPv4 address in disguise"),
    ("64:ff9b:1::/48", "a translation to IPv4 of a network's own"),
    ("100::/64", "where packets are thrown away"),
    ("2001::/23", "reserved for protocols and tunnels"),
    ("2001:db8::/32", "for documentation only"),
    ("2002::/16", "a withdrawn tunnel to IPv4"),
    ("3fff::/20", "for documentation only"),
    ("5f00::/16", "for routing only"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "a withdrawn kind of private network"),
    ("ff00::/8", "multicast"),
)
_PUBLIC_V6 = IPv6Network("2000::/3")
# Networks without IPv4 reach public IPv4 addresses by this prefix, and their resolvers answer with it.
_NAT64 = IPv6Network("64:ff9b::/96")
_V4_LAST = tuple(map(IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96")))
_SIX_TO_FOUR, _TEREDO, _LOCAL_NAT64 = map(IPv6Network, ("2002::/16", "2001::/32", "64:ff9b:1::/48"))
_ISATAP = 0x5EFE  # of the upper half of the interface id; two more of its bits may be set


def judge(address: str | Address, *, allow_local: bool = False) -> str | None:
    """Why this address may not be called, or None. An address that carries another is judged by both."""
    given = ip_address(address) if isinstance(address, str) else address
    reason = _reason(given, allow_local=allow_local)
    if reason is None and (inner := carried(given)) is not None:
        # Whoever wraps a local address in a public one does so to get past a check: no setting opens that.
        reason = _reason(inner, allow_local=False)
    return reason


def carried(address: Address) -> IPv4Address | None:
    """The IPv4 address within an IPv6 address: mapped, compatible, translated, or the end of a tunnel."""
    return next(_carried(address), None) if isinstance(address, IPv6Address) else None


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    bits = int(address)
    if bits > 1 and (address in _NAT64 or any(address in network for network in _V4_LAST)):  # :: and ::1 are themselves
        yield IPv4Address(bits & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        yield IPv4Address(bits >> 80 & 0xFFFFFFFF)
    if address in _TEREDO:  # it is written inverted
        yield IPv4Address(~bits & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:  # sixteen bits, eight of zeros, sixteen bits
        yield IPv4Address((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF)
    if bits >> 32 & 0xFCFFFFFF == _ISATAP:
        yield IPv4Address(bits & 0xFFFFFFFF)


def _reason(address: Address, *, allow_local: bool) -> str | None:
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "bound to one of this machine's interfaces"
    never, local = _found(address, _NEVER_NETWORKS), _found(address, _LOCAL_NETWORKS)
    if never is not None or (local is not None and not allow_local):
        return never or local
    if local is not None or isinstance(address, IPv4Address) or address in _PUBLIC_V6 or address in _NAT64:
        return None
    return "an IPv4 address in disguise" if carried(address) is not None else "not a public address"


def _found(address: Address, table: tuple[tuple[Network, str], ...]) -> str | None:
    return next((reason for network, reason in table if address in network), None)


_LOCAL_NETWORKS = tuple((ip_network(network), reason) for network, reason in _LOCAL)
_NEVER_NETWORKS = tuple((ip_network(network), reason) for network, reason in _NEVER)
