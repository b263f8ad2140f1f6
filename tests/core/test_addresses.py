"""URLs and addresses: what the parser accepts, and which addresses may be called."""

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_mesh.core.errors import UnsafeAddress
from memory_mesh.core.language.safety.addresses import (
    Target,
    address_refusal,
    embedded_ipv4,
    host_refusal,
    parse_path,
    parse_url,
)
from memory_mesh.core.text import address_text

# IANA's registries of special-purpose addresses, written down again by hand: what a setting opens,
# and what nothing does.
LOCAL = (
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "::1/128",
    "fc00::/7",
)
NEVER = (
    *(
        "0.0.0.0/8",
        "169.254.0.0/16",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
    ),
    *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *(
        "::/128",
        "::ffff:0:0/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
    ),
    *("fe80::/10", "fec0::/10", "ff00::/8", "200::/7", "4000::/3", "8000::/2", "e000::/4"),
)
METADATA = (
    *("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"),
)
PUBLIC = (
    *(
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
    ),
    *(
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
    ),
    *("192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15"),
    *("2001:200::1", "2001:4860:4860::8888", "2606:4700::1", "2003::1", "2a00::1", "3ffe:ffff::1"),
)


# --- addresses ---


@pytest.mark.req("GRAPH-82")
@pytest.mark.parametrize("network", NEVER)
def test_addresses_that_belong_to_no_host_are_always_refused(network: str) -> None:
    for address in (ip_network(network)[0], ip_network(network)[-1]):
        assert address_refusal(address) is not None
        assert address_refusal(address, allow_local=True) is not None


@pytest.mark.req("GRAPH-82", "GRAPH-84")
@pytest.mark.parametrize("network", LOCAL)
def test_a_setting_opens_what_is_local(network: str) -> None:
    for address in (ip_network(network)[0], ip_network(network)[-1]):
        assert address_refusal(address) is not None
        assert address_refusal(address, allow_local=True) is None


@pytest.mark.req("GRAPH-82", "GRAPH-84")
@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_are_refused_wherever_they_stand(address: str) -> None:
    assert address_refusal(address, allow_local=True) == "a cloud's metadata service"


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed_up_to_the_edges(address: str) -> None:
    assert address_refusal(address) is None
    assert address_refusal(address, allow_local=True) is None


@pytest.mark.req("GRAPH-82")
@pytest.mark.parametrize(
    ("wrapped", "inner"),
    [
        ("::ffff:{}", True),
        ("::ffff:0:{}", True),
        ("::{}", True),
        ("64:ff9b::{}", False),
        ("2606:4700::5efe:{}", False),
        ("2606:4700::200:5efe:{}", False),
        ("2606:4700::100:5efe:{}", False),
    ],
)
def test_an_address_within_an_address_is_judged_too(wrapped: str, inner: bool) -> None:
    for address in ("10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1"):
        given_one = ip_address(wrapped.format(address))
        assert embedded_ipv4(given_one) == IPv4Address(address)
        assert address_refusal(given_one) is not None
        assert address_refusal(given_one, allow_local=True) is not None
    public = ip_address(wrapped.format("8.8.8.8"))
    assert embedded_ipv4(public) == IPv4Address("8.8.8.8")
    assert (address_refusal(public) is not None) is inner  # a disguise is refused whatever it hides


def test_tunnels_carry_what_they_carry() -> None:
    assert embedded_ipv4(ip_address("2002:a9fe:a9fe::1")) == IPv4Address("169.254.169.254")
    assert embedded_ipv4(ip_address("2001:0:4136:e378:8000:63bf:3fff:fdd2")) == IPv4Address(
        "192.0.2.45"
    )
    assert embedded_ipv4(ip_address("64:ff9b:1:a9fe:a9:fe00::")) == IPv4Address("169.254.169.254")
    assert embedded_ipv4(ip_address("2606:4700::1")) is None
    assert embedded_ipv4(ip_address("::1")) is None
    assert embedded_ipv4(ip_address("10.0.0.1")) is None


def test_an_address_of_one_interface_is_refused() -> None:
    assert address_refusal("2606:4700::1") is None
    assert address_refusal("2606:4700::1%eth0", allow_local=True) is not None


@pytest.mark.deep
@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_no_special_ipv4_address_is_taken_for_public(address: IPv4Address) -> None:
    if address_refusal(address) is None:
        assert not any(
            (
                address.is_loopback,
                address.is_link_local,
                address.is_multicast,
                address.is_unspecified,
            )
        )
        assert not any(address in ip_network(network) for network in (*LOCAL, *NEVER))


@given(st.integers(0, 2**128 - 1).map(IPv6Address), st.booleans())
def test_only_addresses_that_were_ever_given_out_are_public(
    address: IPv6Address, allow_local: bool
) -> None:
    if address_refusal(address, allow_local=allow_local) is None:
        opened = ("2000::/3", "64:ff9b::/96", *(("::1/128", "fc00::/7") if allow_local else ()))
        assert any(address in ip_network(network) for network in opened)


# --- URLs ---


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://api.example.com/v1", Target("https", "api.example.com", 443, "/v1")),
        ("HTTP://API.Example.com.:8080/v1/", Target("http", "api.example.com", 8080, "/v1")),
        ("http://127.1:80", Target("http", "127.0.0.1", 80, "")),
        ("http://[::FFFF:127.0.0.1]:1/", Target("http", "::ffff:7f00:1", 1, "")),
        ("https://my_box/a/b@c:d;e=f%20g", Target("https", "my_box", 443, "/a/b@c:d;e=f%20g")),
        (
            "https://xn--bcher-kva.example:65535",
            Target("https", "xn--bcher-kva.example", 65535, ""),
        ),
        ("http://010.0.0.1", Target("http", "8.0.0.1", 80, "")),
        ("http://0x", Target("http", "0.0.0.0", 80, "")),  # noqa: S104
        ("http://3com.example", Target("http", "3com.example", 80, "")),
        ("http://0xcafe.example", Target("http", "0xcafe.example", 80, "")),
    ],
)
def test_a_url_is_read_in_one_way(url: str, target: Target) -> None:
    assert parse_url(url) == target
    assert parse_url(str(target)) == target


def test_a_target_shows_itself_as_a_url() -> None:
    assert str(parse_url("http://[::1]:8080/v1/")) == "http://[::1]:8080/v1"
    assert parse_url("http://[::1]:80").authority == "[::1]"
    assert parse_url("https://example.com:80").authority == "example.com:80"
    assert parse_url("http://127.1").literal == IPv4Address("127.0.0.1")
    assert parse_url("http://[::1]").literal == IPv6Address("::1")
    assert parse_url("http://example.com").literal is None


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("", "does not start"),
        ("ftp://example.com", "does not start"),
        ("http\u017f://example.com", "not in ASCII"),  # a letter that equals s when case is ignored
        ("http://\u212aube.example", "not in ASCII"),  # a letter whose lower case is k
        ("http://ex ample.com", "spaces"),
        ("http://example.com/\x00", "spaces"),
        ("http://example.com\\a", "backslash"),
        ("http://example.com/a?b", "query"),
        ("http://example.com/#a", "fragment"),
        ("http://a:swordfish@example.com", "user name"),
        ("http://@example.com", "user name"),
        ("http://", "no valid host"),
        ("http://.", "no valid host"),
        ("http://a..b", "no valid host"),
        ("http://-a.b", "no valid host"),
        ("http://a-.b", "no valid host"),
        ("http://a$b", "no valid host"),
        ("http://" + "a" * 64, "no valid host"),
        ("http://" + "a." * 128, "no valid host"),
        ("http://example.com:", "port"),
        ("http://example.com:0", "port"),
        ("http://example.com:65536", "port"),
        ("http://example.com:000080", "port"),
        ("http://example.com:8a", "cannot be read"),
        ("http://::1", "cannot be read"),
        ("http://[::1", "cannot be read"),
        ("http://[::1]a", "cannot be read"),
        ("http://[]", "not a valid IPv6"),
        ("http://[1.2.3.4]", "not a valid IPv6"),
        ("http://[::1%25lo]", "interfaces"),
        ("http://1.2.3.256", "not a valid IPv4"),
        ("http://256.1", "not a valid IPv4"),
        ("http://1.2.3.4.5", "not a valid IPv4"),
        ("http://1.2.3.08", "not a valid IPv4"),
        ("http://example.1", "not a valid IPv4"),
        ("http://1_0.1", "not a valid IPv4"),
        ("http://4294967296", "not a valid IPv4"),
        ("http://example.com/a b", "spaces"),
        ("http://example.com/<a>", "path"),
        ("http://example.com/" + "a" * 2048, "longer"),
    ],
)
def test_what_is_more_than_scheme_host_port_and_path_is_refused(url: str, wrong: str) -> None:
    with pytest.raises(UnsafeAddress, match=wrong) as caught:
        parse_url(url)
    assert "swordfish" not in str(caught.value)


def test_a_path_behind_the_base_is_read_as_strictly() -> None:
    assert parse_path("/chat/completions/") == "/chat/completions"
    assert parse_path("") == ""
    for path in ("chat", "/a b", "/a?b", "/a#b", "/é", "/a\\b", "/a\r\nb"):
        with pytest.raises(UnsafeAddress):
            parse_path(path)


def notations(value: int) -> st.SearchStrategy[str]:
    """Every way that libc knows to write an address: one to four parts, each in a base of its
    own."""
    parts = st.integers(1, 4).map(
        lambda count: [*value.to_bytes(4, "big")[: count - 1], value & (256 ** (5 - count) - 1)]
    )
    bases = st.lists(
        st.sampled_from(["{:d}", "0x{:x}", "0X{:X}", "0{:o}", "00{:o}"]), min_size=4, max_size=4
    )
    return st.builds(lambda numbers, forms: ".".join(map(str.format, forms, numbers)), parts, bases)


@given(st.integers(0, 2**32 - 1).flatmap(lambda value: st.tuples(st.just(value), notations(value))))
def test_an_address_is_read_as_libc_reads_it(case: tuple[int, str]) -> None:
    value, host = case
    assert socket.inet_aton(host) == value.to_bytes(4, "big")
    assert parse_url(f"http://{host}").literal == IPv4Address(value)


@given(st.text(alphabet="0123456789abcdefx.:[]%@/-_AX ", max_size=24))
@example("0x.0x.0x.0x")
def test_any_host_is_read_or_refused_and_reads_the_same_again(host: str) -> None:
    try:
        target = parse_url(f"http://{host}")
    except UnsafeAddress:
        return
    assert parse_url(str(target)) == target
    host_refusal(target)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(url: str) -> None:
    with suppress(UnsafeAddress):
        assert parse_url(url)


# --- names ---


@pytest.mark.req("GRAPH-82")
@pytest.mark.parametrize(
    "host",
    [
        "metadata.google.internal",
        "METADATA.GOOGLE.INTERNAL.",
        "metadata.goog",
        "a.metadata.goog",
        "metadata",
        "instance-data",
    ],
)
def test_names_of_metadata_services_are_known(host: str) -> None:
    for allow_local in (False, True):
        assert (
            host_refusal(parse_url(f"http://{host}/"), allow_local=allow_local)
            == "a cloud's metadata service"
        )


@pytest.mark.req("GRAPH-84")
@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost.", "a.localhost", "ip6-loopback", "127.1", "[::1]", "10.1"]
)
def test_this_machine_is_opened_by_the_setting_alone(host: str) -> None:
    assert host_refusal(parse_url(f"http://{host}")) is not None
    assert host_refusal(parse_url(f"http://{host}"), allow_local=True) is None


@pytest.mark.parametrize(
    "host",
    ["example.com", "metadata.example.com", "notlocalhost", "localhost.example.com", "8.8.8.8"],
)
def test_other_hosts_are_allowed(host: str) -> None:
    assert host_refusal(parse_url(f"https://{host}")) is None


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("::FFFF:1.2.3.4", "::ffff:102:304"),
        ("0:0:0:0:0:ffff:0:1", "::ffff:0:1"),
        ("::ffff:1.2.3.4%eth0", "::ffff:102:304%eth0"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("10.1.2.3", "10.1.2.3"),
    ],
)
def test_an_address_has_the_same_text_in_every_python(address: str, text: str) -> None:
    """Python 3.13 writes mapped addresses differently; a pseudonym that is made from the text
    must not change with it."""
    assert address_text(address) == text
