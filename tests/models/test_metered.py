"""Metered calls: what is reserved, what is committed, and what a failure costs."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    CallRefused,
    CallTimedOut,
    Cancelled,
    EmbeddingError,
    MemoryMeshError,
    RateLimited,
    Unreachable,
    UnsafeAddress,
)
from memory_mesh.core.ports import ChatModel, Prompt, Reply, Tokens
from memory_mesh.models import MeteredChat, MeteredClient
from memory_mesh.models.remote_embedder import RemoteEmbedder
from memory_mesh.testing.fakes import ScriptedChat

from .clients import StubClient

PROMPT = Prompt(
    operation="reflect", system="s" * 30, user="水" * 10, schema={"type": "object"}, max_tokens=50
)
LIMIT = Tokens(10 + 10 + 6, 50)  # a third of the bytes, the schema's too


@dataclass
class RecordingMeter:
    """A meter that records everything."""

    lines: list[tuple[object, ...]] = field(default_factory=list)
    spent: bool = False

    def reserve(self, operation: str, model: str, most: Tokens) -> str:
        if self.spent:
            raise BudgetSpent("the cap of 10 tokens is reached")
        self.lines.append(("reserve", operation, model, most))
        return f"ticket {len(self.lines)}"

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None:
        self.lines.append(("commit", ticket, used, failed))


def test_the_maximum_is_reserved_first_and_then_replaced_by_the_actual_use() -> None:
    meter, inner = RecordingMeter(), ScriptedChat(Reply(text="tea", model="m", tokens=Tokens(9, 2)))
    chat: ChatModel = MeteredChat(inner, meter)
    assert chat.reply(PROMPT).text == "tea"
    assert meter.lines == [
        ("reserve", "reflect", "scripted", LIMIT),
        ("commit", "ticket 1", Tokens(9, 2), False),
    ]
    assert chat.model == inner.model


def test_nothing_is_sent_once_the_budget_is_spent() -> None:
    meter, inner = RecordingMeter(spent=True), ScriptedChat("tea")
    with pytest.raises(BudgetSpent, match="the cap of 10 tokens"):
        MeteredChat(inner, meter).reply(PROMPT)
    assert inner.asks == []
    assert meter.lines == []


COSTS: dict[type[MemoryMeshError], Callable[[Tokens], Tokens]] = {
    CallError: lambda most: Tokens(most.sent),
    CallRefused: lambda most: Tokens(),
    RateLimited: lambda most: Tokens(),
    UnsafeAddress: lambda most: Tokens(),
    CallTimedOut: lambda most: Tokens(most.sent),
    Cancelled: lambda most: Tokens(most.sent),
    AnswerUnreadable: lambda most: most,
}


@pytest.mark.parametrize("kind", COSTS)
def test_a_failure_costs_what_the_provider_may_charge(kind: type[MemoryMeshError]) -> None:
    meter = RecordingMeter()
    with pytest.raises(kind, match=r"^no$"):
        MeteredChat(ScriptedChat(kind("no")), meter).reply(PROMPT)
    assert meter.lines[1:] == [("commit", "ticket 1", COSTS[kind](LIMIT), True)]


def test_an_interrupted_call_is_committed_too() -> None:
    class Interrupted(ScriptedChat):
        def reply(self, prompt: Prompt) -> Reply:
            raise KeyboardInterrupt

    meter = RecordingMeter()
    with pytest.raises(KeyboardInterrupt):
        MeteredChat(Interrupted("x"), meter).reply(PROMPT)
    assert meter.lines[1:] == [("commit", "ticket 1", Tokens(LIMIT.sent), True)]


# --- embedding ---


def metered(meter: RecordingMeter, *answers: object) -> tuple[StubClient, RemoteEmbedder]:
    client = StubClient(*answers)  # type: ignore[arg-type]
    post = MeteredClient(client, meter, "openai/some-model")
    return client, RemoteEmbedder(
        post, model="some-model", name="openai/some-model", window=100, batch_size=1
    )


VECTOR = {"data": [{"index": 0, "embedding": [1.0]}]}


def test_each_batch_of_texts_has_the_token_count_of_the_server() -> None:
    meter = RecordingMeter()
    _, remote = metered(
        meter, {**VECTOR, "usage": {"prompt_tokens": 2}}, {**VECTOR, "usage": {"prompt_tokens": -2}}
    )
    remote.embed(["x" * 30, "y" * 12])
    assert meter.lines == [
        ("reserve", "embed", "openai/some-model", Tokens(10)),
        ("commit", "ticket 1", Tokens(2), False),
        ("reserve", "embed", "openai/some-model", Tokens(4)),
        ("commit", "ticket 3", Tokens(4), False),
    ]


def test_a_spent_budget_is_an_embedding_error() -> None:
    client, remote = metered(RecordingMeter(spent=True), VECTOR)
    with pytest.raises(EmbeddingError, match="the cap of 10 tokens") as caught:
        remote.embed(["tea"])
    assert isinstance(caught.value.__cause__, BudgetSpent)
    assert client.requests == []


@pytest.mark.parametrize(
    ("error", "used"),
    [
        (CallTimedOut("late"), Tokens(1)),
        (CallError("gone"), Tokens(1)),
        (Unreachable("nobody"), Tokens()),
    ],
)
def test_a_failed_batch_is_committed(error: CallError, used: Tokens) -> None:
    meter = RecordingMeter()
    with pytest.raises(EmbeddingError):
        metered(meter, error)[1].embed(["tea"])
    assert meter.lines[1:] == [("commit", "ticket 1", used, True)]
