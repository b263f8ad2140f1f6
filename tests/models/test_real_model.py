"""The chat and embedding clients against a real model in the server of llama.cpp."""

import json
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from threading import Event, Timer

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import CallRefused, CallTimedOut, Cancelled, EmbeddingError
from memory_mesh.core.model import Json
from memory_mesh.core.model.background import cancellable
from memory_mesh.core.ports import Likely, Prompt, Tokens
from memory_mesh.core.search.lexical import tokens
from memory_mesh.models import ModelJudge
from memory_mesh.models.providers import PROVIDERS, OpenAiChat, provider_url
from memory_mesh.models.remote_embedder import RemoteEmbedder
from memory_mesh.net import HttpClient

from .llama import llama_server, missing

pytestmark = pytest.mark.deep

LLAMA = PROVIDERS["llamacpp"]
SHORT = Prompt(
    operation="test", system="You are a helpful assistant.", user="Say hello.", max_tokens=6
)
COLOUR: dict[str, Json] = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green", "blue"]},
        "number": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["colour", "number"],
    "additionalProperties": False,
}
# Whatever the model thinks of it, its answer has a thousand numbers and takes many seconds.
ENDLESS = Prompt(
    operation="test",
    system="You answer in JSON.",
    user="Count.",
    schema={"type": "array", "items": {"type": "integer"}, "minItems": 1000},
    max_tokens=1500,
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if why := missing():
        pytest.skip(why)  # in CI that is a failure
    with llama_server() as found:
        yield provider_url(LLAMA, found)


@pytest.fixture
def client(address: str) -> Iterator[HttpClient]:
    with closing(HttpClient(address, allow_local=LLAMA.local, timeout=120, attempts=1)) as opened:
        yield opened


@pytest.fixture
def chat(client: HttpClient) -> OpenAiChat:
    return OpenAiChat(client, LLAMA, "smollm2")


def test_it_answers_the_same_each_time(chat: OpenAiChat) -> None:
    reply = chat.reply(SHORT)
    assert reply.text.strip()
    assert reply.model == "llamacpp/smollm2"
    assert chat.reply(SHORT).text == reply.text


def test_an_answer_that_reaches_its_limit_is_cut_off_there_and_the_tokens_are_the_servers(
    chat: OpenAiChat,
) -> None:
    prompt = Prompt(
        operation="test",
        system="You are a helpful assistant.",
        user="Tell a long story.",
        max_tokens=7,
    )
    reply = chat.reply(prompt)
    assert not reply.complete
    assert reply.tokens.received == 7
    longer = Prompt(
        operation="test", system=prompt.system, user=prompt.user + " Please." * 50, max_tokens=7
    )
    assert chat.reply(longer).tokens == Tokens(
        reply.tokens.sent + 100, 7
    )  # a word and a full stop; we would have guessed another


def test_an_answer_follows_its_schema(chat: OpenAiChat) -> None:
    prompt = Prompt(
        operation="test",
        system="You answer in JSON.",
        user="A colour and a number?",
        schema=COLOUR,
        max_tokens=60,
    )
    reply = chat.reply(prompt)
    assert reply.complete
    answer = json.loads(reply.text)
    assert answer.keys() == {"colour", "number"}
    assert answer["colour"] in ("red", "green", "blue")
    assert 0 <= answer["number"] <= 99


class Unsure:
    """A judge that is unsure of every pair."""

    version = "unsure"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Likely]:
        return [Likely(0.5, 0.0, 0.5, 0.0)] * len(pairs)


def test_a_judge_that_asks_it_gets_one_of_the_four_relations(chat: OpenAiChat) -> None:
    judge = ModelJudge(Unsure(), chat, lambda: "3b1f0c5e9a7d4268")
    [likely] = judge.judge([("Ana lives in Lisbon.", "Ana moved to Porto.")])
    assert sorted(astuple(likely)) == [0.0, 0.0, 0.0, 1.0]


def test_a_cancelled_call_ends_and_the_server_still_works(chat: OpenAiChat) -> None:
    stop = Event()
    timer = Timer(0.5, stop.set)
    timer.start()
    with cancellable(stop), pytest.raises(Cancelled):
        chat.reply(ENDLESS)
    timer.join()
    assert chat.reply(SHORT).text.strip()


def test_a_call_that_takes_too_long_times_out(address: str) -> None:
    with (
        closing(HttpClient(address, allow_local=True, timeout=0.5)) as hurried,
        pytest.raises(CallTimedOut, match=r"within 0\.5 s"),
    ):
        OpenAiChat(hurried, LLAMA, "smollm2").reply(ENDLESS)


def test_a_refusal_of_the_server_quotes_its_message(address: str, chat: OpenAiChat) -> None:
    with (
        closing(HttpClient(f"{address}/nowhere", allow_local=True)) as nowhere,
        pytest.raises(CallRefused, match="404: File Not Found"),
    ):
        OpenAiChat(nowhere, LLAMA, "smollm2").reply(SHORT)
    with pytest.raises(CallRefused, match="400"):
        chat.reply(Prompt(operation="test", system="", user="word " * 5000, max_tokens=5))


def test_the_same_server_makes_vectors(client: HttpClient) -> None:
    remote = RemoteEmbedder(client, model="smollm2", name="llamacpp/smollm2", window=400)
    texts = [
        "The heron stands in the reeds.",
        "Tea is served at four.",
        "The heron stands in the reeds.",
    ]
    first, second, again = remote.embed(texts)
    assert (first.model, first.dimension) == ("llamacpp/smollm2", 576)
    for vector in (first, second):
        assert math.hypot(*struct.unpack("<576f", vector.data)) == pytest.approx(1, abs=1e-5)
    assert nearness(first.data, again.data) == pytest.approx(1, abs=1e-3)
    assert nearness(first.data, second.data) < 0.95


def test_vectors_of_an_unexpected_dimension_are_refused(client: HttpClient) -> None:
    with pytest.raises(EmbeddingError, match="576 dimensions; expected 1024"):
        RemoteEmbedder(
            client, model="smollm2", name="llamacpp/smollm2", window=400, dimension=1024
        ).embed(["tea"])


def nearness(one: bytes, other: bytes) -> float:
    return sum(
        a * b
        for a, b in zip(struct.unpack("<576f", one), struct.unpack("<576f", other), strict=True)
    )


def test_a_mesh_extracts_with_it_and_counts_the_tokens(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path))
    few = {
        "llm_provider": "llamacpp",
        "llm_base_url": address,
        "llm_timeout": 120.0,
        "llm_max_tokens": 24,
    }
    with MemoryMesh(store="memory://", embedder="none", **few) as mesh:
        assert [checked.ok for checked in mesh.check_models()] == [True, True]
        done = mesh.extract("Ana lives in Lisbon.")
        # So few tokens hold no whole answer: the text itself is kept, and the call is counted all
        # the same.
        assert [memory.content for memory in done.memories] == ["Ana lives in Lisbon."]
        assert done.stored_whole == "the model's answer was cut off"
        spent = {one.operation: one for one in mesh.stats().spent_today}
    assert spent.keys() == {"check", "extract"}
    assert (spent["extract"].calls, spent["extract"].received) == (1, 24)
    assert spent["extract"].sent > 300


def test_an_evaluation_asks_a_real_model_and_keeps_no_question_in_the_words_of_its_memory(
    address: str,
) -> None:
    texts = ("Ana Keller approves every deploy on Fridays.", "The staging database has port 5433.")
    few = {"llm_provider": "llamacpp", "llm_base_url": address, "llm_timeout": 120.0}
    with MemoryMesh(store="memory://", embedder="none", llm_max_tokens=120, **few) as mesh:
        stored = {memory.id: memory.content for memory in mesh.add_many([*texts])}
        found = mesh.evaluate()
        spent = {one.operation: one.calls for one in mesh.stats().spent_today}
    written = [one.question for one in found.answered if one.question.source == "model"]
    assert spent.keys() == {"evaluate"}
    assert spent["evaluate"] in (1, 2)
    assert found.by_model == len(written) == found.retrieval.questions
    assert written or found.dropped or found.note
    for question in written:
        [memory_id] = question.expected
        words, known = set(tokens(question.text)), set(tokens(stored[memory_id]))
        assert len(words & known) <= len(words) / 2
    assert (found.own_words.questions, found.own_words.mrr) == (2, 1.0)
