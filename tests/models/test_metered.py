"""Calls behind a meter: what is set aside, what is put in its place, and what a failure costs."""

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

from .posts import StubPost

PROMPT = Prompt(operation="reflect", system="s" * 30, user="水" * 10, schema={"type": "object"}, max_tokens=50)
MOST = Tokens(10 + 10 + 6, 50)  # a third of the bytes, the schema's too


@dataclass
class Book:
    """A meter that writes everything down."""

    lines: list[tuple[object, ...]] = field(default_factory=list)
    spent: bool = False

    def reserve(self, operation: str, model: str, most: Tokens) -> str:
        if self.spent:
            raise BudgetSpent("the cap of 10 tokens is reached")
        self.lines.append(("reserve", operation, model, most))
        return f"ticket {len(self.lines)}"

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None:
        self.lines.append(("settle", ticket, used, failed))


def test_the_most_is_set_aside_first_and_what_was_used_put_in_its_place() -> None:
    book, inner = Book(), ScriptedChat(Reply(text="tea", model="m", tokens=Tokens(9, 2)))
    chat: ChatModel = MeteredChat(inner, book)
    assert chat.reply(PROMPT).text == "tea"
    assert book.lines == [("reserve", "reflect", "scripted", MOST), ("settle", "ticket 1", Tokens(9, 2), False)]
    assert chat.model == inner.model


def test_nothing_is_asked_once_the_budget_is_spent() -> None:
    book, inner = Book(spent=True), ScriptedChat("tea")
    with pytest.raises(BudgetSpent, match="the cap of 10 tokens"):
        MeteredChat(inner, book).reply(PROMPT)
    assert inner.asks == []
    assert book.lines == []


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
def test_a_failure_costs_what_may_be_on_the_bill(kind: type[MemoryMeshError]) -> None:
    book = Book()
    with pytest.raises(kind, match=r"^no$"):
        MeteredChat(ScriptedChat(kind("no")), book).reply(PROMPT)
    assert book.lines[1:] == [("settle", "ticket 1", COSTS[kind](MOST), True)]


def test_an_interrupted_call_is_settled_too() -> None:
    class Interrupted(ScriptedChat):
        def reply(self, prompt: Prompt) -> Reply:
            raise KeyboardInterrupt

    book = Book()
    with pytest.raises(KeyboardInterrupt):
        MeteredChat(Interrupted("x"), book).reply(PROMPT)
    assert book.lines[1:] == [("settle", "ticket 1", Tokens(MOST.sent), True)]


# --- embedding ---


def metered(book: Book, *answers: object) -> tuple[StubPost, RemoteEmbedder]:
    door = StubPost(*answers)  # type: ignore[arg-type]
    post = MeteredClient(door, book, "openai/some-model")
    return door, RemoteEmbedder(post, model="some-model", name="openai/some-model", window=100, batch_size=1)


VECTOR = {"data": [{"index": 0, "embedding": [1.0]}]}


def test_each_batch_of_texts_is_counted_as_the_server_counts_it() -> None:
    book = Book()
    _, remote = metered(book, {**VECTOR, "usage": {"prompt_tokens": 2}}, {**VECTOR, "usage": {"prompt_tokens": -2}})
    remote.embed(["x" * 30, "y" * 12])
    assert book.lines == [
        ("reserve", "embed", "openai/some-model", Tokens(10)),
        ("settle", "ticket 1", Tokens(2), False),
        ("reserve", "embed", "openai/some-model", Tokens(4)),
        ("settle", "ticket 3", Tokens(4), False),
    ]


def test_a_spent_budget_is_an_outage_of_the_embedder() -> None:
    door, remote = metered(Book(spent=True), VECTOR)
    with pytest.raises(EmbeddingError, match="the cap of 10 tokens") as caught:
        remote.embed(["tea"])
    assert isinstance(caught.value.__cause__, BudgetSpent)
    assert door.asked == []


@pytest.mark.parametrize(
    ("error", "used"), [(CallTimedOut("late"), Tokens(1)), (CallError("gone"), Tokens(1)), (Unreachable("nobody"), Tokens())]
)
def test_a_batch_that_fails_is_settled(error: CallError, used: Tokens) -> None:
    book = Book()
    with pytest.raises(EmbeddingError):
        metered(book, error)[1].embed(["tea"])
    assert book.lines[1:] == [("settle", "ticket 1", used, True)]
