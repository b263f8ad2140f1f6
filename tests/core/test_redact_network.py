"""Addresses of people and machines: which `@` and which four numbers are one, and which are code
or versions."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.language.redaction import Redactor, find

MASKING = Redactor()


def shown(text: str) -> list[tuple[str, str]]:
    return [(one.pattern, text[one.start : one.end]) for one in find(text)]


@pytest.mark.req("MESH-128")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Mail bob@example.com.", "Mail [EMAIL]."),
        ("<bob@example.com>, (ann@example.org)", "<[EMAIL]>, ([EMAIL])"),
        ("mailto:bob@example.com?subject=Hi", "mailto:[EMAIL]?subject=Hi"),
        ("?email=bob@example.com&x=1", "?email=[EMAIL]&x=1"),
        ("**bob@example.com** and 'ann@example.org'", "**[EMAIL]** and '[EMAIL]'"),
        ("o'brien@example.ie", "[EMAIL]"),
        ("first.last+tag@sub.example.co.uk", "[EMAIL]"),
        ("user@xn--bcher-kva.example", "[EMAIL]"),
        ("jürgen@bücher.example", "[EMAIL]"),
        ("请发邮件到bob@example.com谢谢", "请发邮件到[EMAIL]谢谢"),
        ("用户@例子.广告", "[EMAIL]"),
        ("scp bob@files.example.org:/tmp/x .", "scp [EMAIL]:/tmp/x ."),
        ("bob@example.com(work)", "[EMAIL](work)"),
        ("https://bob@example.com/path", "https://[EMAIL]/path"),
        ("a@example.com,b@example.com;c@example.com", "[EMAIL],[EMAIL];[EMAIL]"),
        ("bob@163.com", "[EMAIL]"),
        ("BOB_SMITH@EXAMPLE.COM", "[EMAIL]"),
        ('not "@example.org', 'not "@example.org'),
    ],
)
def test_an_address_is_masked_and_what_stands_around_stays(text: str, redacted: str) -> None:
    assert MASKING.redact(text) == redacted


LOCAL = st.from_regex(r"[a-z0-9](?:[a-z0-9._+-]{0,20}[a-z0-9])?", fullmatch=True)
DOMAIN = st.from_regex(
    r"(?:[a-z][a-z0-9-]{0,10}[a-z0-9]\.){1,3}(?:com|org|museum|de|io)", fullmatch=True
)


@pytest.mark.req("MESH-128")
@given(LOCAL, DOMAIN)
def test_any_usual_address_is_found_whole(local: str, domain: str) -> None:
    address = f"{local}@{domain}"
    if address.startswith("git@"):
        return
    assert MASKING.redact(f"it is {address}, really") == "it is [EMAIL], really"


@pytest.mark.req("MESH-129")
@given(st.ip_addresses())
def test_any_address_of_a_machine_is_found_unless_it_names_none(
    address: IPv4Address | IPv6Address,
) -> None:
    text = f"the client's ip is {address}, blocked"
    nobody = (
        str(address).startswith(("0.", "127.", "255."))
        or address.is_unspecified
        or address.is_loopback
    )
    # Code has `::` too: with it an address needs four digits in its first group (no other is given
    # out) and one of 0 to 9.
    shortened = address.version == 6 and "::" in str(address)
    if not shortened or (
        len(str(address).partition(":")[0]) == 4 and any(map(str.isdigit, str(address)))
    ):
        assert MASKING.redact(text) == (text if nobody else "the client's ip is [IP], blocked")


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("from 203.0.113.42 port 22", "from [IP] port 22"),
        ("http://10.0.0.7:8080/x", "http://[IP]:8080/x"),
        # A range of private addresses names no machine.
        ("allow 192.168.0.0/16", "allow 192.168.0.0/16"),
        ("allow 192.168.0.7/16", "allow [IP]/16"),
        ("allow 198.51.100.0/24", "allow [IP]/24"),
        ("10.0.0.1-10.0.0.50", "[IP]-[IP]"),
        ("ping 1.1.1.1", "ping [IP]"),
        ("<td>93.184.216.34</td>", "<td>[IP]</td>"),
        ("client_ip == 10.0.0.7", "client_ip == [IP]"),
        ("firewall rule 192.168.1.20", "firewall rule [IP]"),
        ("?%//!%20\\|98.85.59.159|%20/", "?%//!%20\\|[IP]|%20/"),
        ("[2001:db8::7]:443", "[[IP]]:443"),
        ("fe80::1%eth0", "[IP]"),
        ("::ffff:203.0.113.42", "[IP]"),
        ("2001:db8::1: refused", "[IP]: refused"),
        ("feed:dead:beef:cafe:babe:face:fade:added"[:-1], "[IP]"),
        ("6e40:4041:c617:e898:c11:40d2:c669:2eb4", "[IP]"),
    ],
)
def test_addresses_of_machines_are_masked_and_ports_and_masks_stay(
    text: str, redacted: str
) -> None:
    assert MASKING.redact(text) == redacted


@pytest.mark.req("MESH-130")
@given(
    st.lists(st.integers(0, 255), min_size=4, max_size=4),
    st.sampled_from(
        ["version {}", "v{}", "release {} notes", "{} released", "ver. {}", "section {}"]
    ),
)
def test_a_version_number_is_no_address(parts: list[int], said: str) -> None:
    text = said.format(".".join(map(str, parts)))
    assert MASKING.redact(text) == text


@pytest.mark.req("MESH-130")
@pytest.mark.parametrize(
    "text",
    [
        *(
            "version 1.2.3.4 released",
            "from version 1.2.3.4 to 1.2.3.5",
            "versions 10.1.2.3, 10.1.2.4 and 10.1.2.5",
            "1.2.3.4-beta",
        ),
        *(
            "requests==2.31.0.1",
            "foo>=1.2.30.4",
            "lib-10.20.30.40.tar.gz",
            "Chrome/120.0.0.0",
            "upgrade to 12.4.1.9",
            "2.1.3.4 Scope",
            "1.2.3.4.5",
        ),
        *(
            "01.02.03.04",
            "256.1.1.1",
            "1.2.3",
            "127.0.0.1",
            "0.0.0.0",  # noqa: S104 - a text, nothing is bound
            "255.255.255.0",
            "std::chrono::seconds",
            "a[1::2]",
            "12:30:45",
        ),
    ],
)
def test_versions_sections_and_code_are_no_addresses(text: str) -> None:
    assert shown(text) == []
