"""Anchors sent to a URL: one POST through the guarded client."""

import pytest

from memory_mesh.core.errors import CallError, InvalidInput, MemoryMeshError
from memory_mesh.net.uses import AnchorUrl

from .servers import Answer, FaultServer

RECORD = {"anchored_at": "2026-01-01T00:00:00.000Z", "heads": [{"chain": "c", "number": 1}]}


def test_a_record_is_posted_to_exactly_the_url() -> None:
    with FaultServer() as server:
        AnchorUrl(f"{server.url}/anchors/mine", allow_local=True).write(RECORD)  # type: ignore[arg-type]
        (request,) = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/anchors/mine", RECORD)


REDIRECT = Answer(status=302, headers={"location": "/other"})


@pytest.mark.parametrize("answer", [REDIRECT, Answer(status=403), Answer(body="no JSON")])
def test_a_redirect_or_a_refusal_is_an_error(answer: Answer) -> None:
    with FaultServer([answer]) as server:
        with pytest.raises(CallError):
            AnchorUrl(f"{server.url}/anchors", allow_local=True).write(RECORD)  # type: ignore[arg-type]
        assert {request.path for request in server.requests} == {"/anchors"}


def test_a_local_address_is_refused_and_nothing_is_sent() -> None:
    with FaultServer() as server:
        with pytest.raises(MemoryMeshError):
            AnchorUrl(f"{server.url}/anchors").write(RECORD)  # type: ignore[arg-type]
        assert server.requests == []


def test_a_url_has_no_lines_to_read() -> None:
    with pytest.raises(InvalidInput, match=r"anchors cannot be read from https://example\.com"):
        AnchorUrl("https://example.com/x").lines()
