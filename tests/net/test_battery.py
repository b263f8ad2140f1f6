"""Every trick of tests/data/ssrf.toml against the client, and proof that each would work without
the guard."""

import subprocess
import sys
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from memory_mesh.core.errors import SettingsError, UnsafeAddress
from memory_mesh.core.language.safety.addresses import address_refusal
from memory_mesh.net import HttpClient, System
from memory_mesh.net.backend import GuardedBackend

from .servers import FaultServer

TOOL = Path(__file__).parents[2] / "tools" / "ssrf_battery.py"


def loaded() -> ModuleType:
    spec = spec_from_file_location("ssrf_battery", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for their module
    spec.loader.exec_module(module)
    return module


battery = loaded()
TRICKS, ALLOWED = battery.tricks(), battery.allowed()
NAIVE = [trick for trick in TRICKS if trick.naive]


def name(trick: object) -> str:
    return ascii(getattr(trick, "url", trick))


def test_the_battery_is_as_large_as_it_says() -> None:
    assert len(TRICKS) == len({(trick.url, *trick.answers) for trick in TRICKS}) >= 100
    assert {trick.kind for trick in TRICKS} == {
        *("plain", "metadata", "notation", "IPv6", "reading", "scheme", "name", "rebinding"),
    }
    assert len(NAIVE) >= 80


@pytest.mark.req("GRAPH-82", "GRAPH-83")
@pytest.mark.parametrize("trick", TRICKS, ids=name)
def test_a_trick_reaches_nothing(trick: object) -> None:
    outcome = battery.try_trick(trick)
    assert battery.is_blocked(trick, outcome), outcome


@pytest.mark.parametrize("trick", ALLOWED, ids=name)
def test_a_harmless_url_is_connected(trick: object) -> None:
    outcome = battery.try_trick(trick, allow_local=trick.allow_local)  # type: ignore[attr-defined]
    assert outcome.verdict == battery.THROUGH
    assert outcome.connected
    assert all(
        address_refusal(address, allow_local=trick.allow_local) is None
        for address in outcome.connected
    )  # type: ignore[attr-defined]


@pytest.mark.req("GRAPH-84")
@pytest.mark.parametrize("trick", TRICKS, ids=name)
def test_allow_local_permits_local_addresses_and_nothing_else(trick: object) -> None:
    outcome = battery.try_trick(trick, allow_local=True)
    if trick.opens:  # type: ignore[attr-defined]
        # The address that was refused before: the guard refused it, and not some other failure.
        assert trick.naive in outcome.connected  # type: ignore[attr-defined]
    else:
        assert battery.is_blocked(trick, outcome), outcome


@pytest.mark.parametrize("trick", NAIVE, ids=name)
def test_without_the_guard_it_would_lead_there(trick: object) -> None:
    assert battery.READERS[trick.by](trick) == trick.naive  # type: ignore[attr-defined]
    assert trick.naive == "localhost" or address_refusal(trick.naive) is not None  # type: ignore[attr-defined]


@pytest.mark.req("GRAPH-82")
@pytest.mark.parametrize("address", sorted({trick.naive for trick in NAIVE} - {"localhost"}))
def test_the_backend_alone_refuses_the_address_too(address: str) -> None:
    """A URL that passes the parser is checked again at the connection."""
    called: list[str] = []
    system = System(
        resolve=lambda host, port: [address], connect=lambda *where: called.append(where[0])
    )  # type: ignore[arg-type, func-returns-value]
    for host in (address, "name.example"):
        with pytest.raises(UnsafeAddress):
            GuardedBackend(system, allow_local=False).connect_tcp(host, 80)
    assert called == []
    GuardedBackend(system, allow_local=False).connect_tcp("8.8.8.8", 80)
    assert called == ["8.8.8.8"]


@pytest.mark.req("GRAPH-84")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "mesh.test"]
)
def test_a_local_server_is_reached_with_the_setting_and_never_without(host: str) -> None:
    system = System(resolve=lambda name, port: ["127.0.0.1"])
    with FaultServer() as server:
        url = f"http://{host}:{server.port}"
        with pytest.raises((SettingsError, UnsafeAddress)) as caught:
            HttpClient(url, system=system).post("a", {})
        assert "allow local" in caught.value.remedy
        assert server.connections == 0
        with closing(HttpClient(url, system=system, allow_local=True)) as client:
            assert client.post("a", {}) == {}
        assert server.connections == 1


@pytest.mark.req("GRAPH-82")
@pytest.mark.parametrize(
    "trick", [trick for trick in TRICKS if trick.kind == "metadata" and trick.answers], ids=name
)
def test_names_of_metadata_services_are_refused_whatever_they_resolve_to(trick: object) -> None:
    public = {"answers": ("93.184.216.34",), "why": "", "kind": ""}
    for allow_local in (False, True):
        outcome = battery.try_trick(battery.Trick(url=trick.url, **public), allow_local=allow_local)  # type: ignore[attr-defined]
        assert (outcome.verdict, outcome.connected) == (battery.AT_ONCE, [])
    other = battery.try_trick(battery.Trick(url="http://api.example/", **public))
    assert other.connected == ["93.184.216.34"] * 2


def test_no_refusal_quotes_a_possible_secret() -> None:
    for url in (
        "http://user:swordfish@10.0.0.1/",
        "http://example.com/?key=swordfish",
        "http://example.com/#swordfish",
    ):
        with pytest.raises(SettingsError) as caught:
            HttpClient(url)
        assert "swordfish" not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.deep
@pytest.mark.parametrize("flags", [[], ["--markdown"]])
def test_the_tool_prints_every_trick_and_says_that_none_got_through(flags: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), *flags],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(TRICKS)} tricks: {len(TRICKS)} blocked" in done.stdout
    rows = [line for line in done.stdout.splitlines() if "refused" in line]
    assert len(rows) == len(TRICKS) + 1


def test_the_tool_notices_a_guard_without_checks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "memory_mesh.net.backend.address_refusal", lambda address, *, allow_local: None
    )
    monkeypatch.setattr(sys, "argv", ["ssrf_battery.py"])
    assert battery.main() == 1
    assert "GOT THROUGH to 169.254.169.254" in capsys.readouterr().out
