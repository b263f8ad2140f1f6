"""Every kind of server failure, with each client of models: the right error is raised, and no
text contains the key."""

import json
import logging
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import pytest

from memory_mesh.core.errors import (
    AnswerUnreadable,
    CallError,
    CallRefused,
    CallTimedOut,
    EmbeddingError,
    MemoryMeshError,
    RateLimited,
)
from memory_mesh.core.model import Json
from memory_mesh.core.ports import Prompt, Secret
from memory_mesh.models.providers import PROVIDERS, AnthropicChat, OpenAiChat, provider_headers
from memory_mesh.models.remote_embedder import RemoteEmbedder
from memory_mesh.net import HttpClient, System
from net.servers import Answer, FaultServer

KEY = "opensesame4711"  # not a form that redaction knows: only the HTTP client can hide it
PROMPT = Prompt(operation="extract", system="Answer in JSON.", user="What is it?")
GOOD: Json = {
    "choices": [{"message": {"content": "tea"}, "finish_reason": "stop"}],
    "content": [{"type": "text", "text": "tea"}],
    "data": [{"index": 0, "embedding": [1.0, 2.0]}],
}
QUOTING: Json = {"error": {"message": f"the key {KEY} is not one of ours", "sent": f"Bearer {KEY}"}}


@dataclass(frozen=True)
class Fault:
    """What a server does, and the expected error. None: the call succeeds."""

    answers: Sequence[Answer]
    error: type[MemoryMeshError] | None
    requests: int
    timeout: float = 20.0


FAULTS = {
    "no answer at all": Fault([Answer(hang=True)], CallTimedOut, 1, timeout=1.0),
    "a late answer": Fault([Answer(body=GOOD, delay=5.0)], CallTimedOut, 1, timeout=1.0),
    "a slow drip": Fault([Answer(body=GOOD, drip=0.05)], CallTimedOut, 1, timeout=1.0),
    "too many requests": Fault([Answer(status=429, body=QUOTING)], RateLimited, 4),
    "too many requests, come back in an hour": Fault(
        [Answer(status=429, headers={"Retry-After": "3600"})], RateLimited, 1
    ),
    "too many requests, then none": Fault(
        [Answer(status=429, headers={"Retry-After": "1"}), Answer(body=GOOD)], None, 2
    ),
    "overloaded": Fault([Answer(status=529, body=QUOTING)], RateLimited, 4),
    "an error of the server": Fault([Answer(status=500, body=QUOTING)], CallError, 4),
    "errors of the server, then none": Fault(
        [Answer(status=500), Answer(status=502), Answer(body=GOOD)], None, 3
    ),
    "not implemented": Fault([Answer(status=501, body=QUOTING)], CallError, 1),
    "a wrong key": Fault([Answer(status=401, body=QUOTING)], CallRefused, 1),
    "a wrong key, in plain text": Fault(
        [Answer(status=401, body=f"no such key: {KEY}")], CallRefused, 1
    ),
    "no such model": Fault([Answer(status=404, body=QUOTING)], CallRefused, 1),
    "a redirect": Fault(
        [Answer(status=307, headers={"Location": "https://elsewhere.example/v1"})], CallRefused, 1
    ),
    "broken JSON": Fault([Answer(body='{"choices": [')], CallError, 1),
    "JSON of another kind": Fault([Answer(body=[GOOD])], CallError, 1),
    "numbers that JSON has not": Fault(
        [Answer(body='{"data": [{"index": 0, "embedding": [NaN, Infinity]}]}')], CallError, 1
    ),
    "JSON without a bottom": Fault([Answer(body="[" * 100_000)], CallError, 1),
    "a refusal without a bottom": Fault(
        [Answer(status=400, body='{"a":' * 700 + "1" + "}" * 700)], CallRefused, 1
    ),
    "a page for people": Fault(
        [Answer(body="<html>hello</html>", headers={"Content-Type": "text/html"})], CallError, 1
    ),
    "JSON under another name": Fault(
        [Answer(body=GOOD, headers={"Content-Type": "text/plain"})], None, 1
    ),
    "a packed answer": Fault(
        [Answer(body=GOOD, headers={"Content-Encoding": "gzip"})], CallError, 1
    ),
    "a truncated body": Fault([Answer(body=GOOD, cut=10)], CallError, 4),
    "a truncated body, then a whole one": Fault(
        [Answer(body=GOOD, cut=10), Answer(body=GOOD)], None, 2
    ),
    "truncated chunks": Fault([Answer(body=GOOD, chunked=True, cut=40)], CallError, 4),
    "a dropped connection": Fault([Answer(drop=True)], CallError, 4),
    "noise": Fault([Answer(raw=b"\x00\x01 what?\r\n\r\n")], CallError, 4),
    "an empty object": Fault([Answer(body={})], AnswerUnreadable, 1),
}


CLIENTS: dict[str, Callable[[HttpClient], object]] = {
    "openai": lambda client: OpenAiChat(client, PROVIDERS["openai"], "m").reply(PROMPT),
    "anthropic": lambda client: AnthropicChat(client, "m").reply(PROMPT),
    "embedder": lambda client: RemoteEmbedder(client, model="m", name="openai/m", window=100).embed(
        ["tea"]
    ),
}


def opened(server: FaultServer, provider: str, timeout: float) -> HttpClient:
    headers = provider_headers(PROVIDERS[provider], Secret(KEY))
    hurried = replace(System(), pause=lambda seconds: None)
    return HttpClient(
        f"{server.url}/v1", allow_local=True, headers=headers, timeout=timeout, system=hurried
    )


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", CLIENTS)
def test_every_fault_raises_the_right_error_and_never_shows_the_key(
    kind: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    case = FAULTS[fault]
    provider = "anthropic" if kind == "anthropic" else "openai"
    with (
        FaultServer(case.answers) as server,
        closing(opened(server, provider, case.timeout)) as client,
    ):
        error = raised(CLIENTS[kind], client)
    assert_right(error, case.error, embeds=kind == "embedder")
    assert KEY in str(server.requests[0].headers)  # the request carried it
    # That one is repeated with half of the text.
    if fault != "a refusal without a bottom" or kind != "embedder":
        assert len(server.requests) == case.requests
    assert KEY not in caplog.text
    assert KEY not in repr(vars(client))
    assert KEY not in everything_in(error)


def raised(call: Callable[[HttpClient], object], client: HttpClient) -> MemoryMeshError | None:
    try:
        call(client)
    except MemoryMeshError as error:
        return error
    return None


def assert_right(
    error: MemoryMeshError | None, expected: type[MemoryMeshError] | None, *, embeds: bool
) -> None:
    if expected is None or error is None:
        assert error is expected
    elif embeds:
        assert type(error) is EmbeddingError
        assert expected is AnswerUnreadable or isinstance(error.__cause__, expected)
    else:
        assert isinstance(error, expected)
        assert expected is not CallError or type(error) is CallError


def everything_in(error: BaseException | None) -> str:
    """All text in an error: its message, attributes and traceback, and those of its causes."""
    if error is None:
        return ""
    said = [
        str(error),
        repr(error),
        json.dumps(getattr(error, "said", None)),
        *traceback.format_exception(error),
    ]
    return "\n".join(said) + everything_in(error.__cause__) + everything_in(error.__context__)


def test_the_search_for_the_key_would_find_it() -> None:
    assert KEY in everything_in(CallError(f"no such key: {KEY}"))
    assert KEY in everything_in(CallError("no")) + json.dumps(QUOTING)
