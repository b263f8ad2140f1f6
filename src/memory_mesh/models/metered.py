"""Paid models behind a meter: the most that a call may use is set aside, then what it used is put in its place."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memory_mesh.core.errors import AnswerUnreadable, CallRefused, RateLimited, Unreachable, UnsafeAddress
from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import NO_TOKENS, ChatModel, Meter, Prompt, Reply, Tokens
from memory_mesh.models.answers import counted
from memory_mesh.models.calls import Post, careful, most_sent

EMBED = "embed"  # the operation that embedding is accounted under


class MeteredChat:
    """A language model whose calls are counted, each under what it is for."""

    def __init__(self, inner: ChatModel, meter: Meter) -> None:
        self._inner, self._meter = inner, meter

    @property
    def model(self) -> str:
        return self._inner.model

    def reply(self, prompt: Prompt) -> Reply:
        most = Tokens(most_sent(prompt), prompt.max_tokens)
        ticket = self._meter.reserve(prompt.operation, self.model, most)
        with _settled_on_failure(self._meter, ticket, most):
            reply = self._inner.reply(prompt)
        self._meter.commit(ticket, reply.tokens)
        return reply


class MeteredPost:
    """The way to `/embeddings`, counted. It has the shape of a door, for there alone it shows what a server says it used."""

    def __init__(self, door: Post, meter: Meter, model: str) -> None:
        self._door, self._meter, self._model = door, meter, model

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        texts = body.get("input")
        most = Tokens(sum(careful(str(text)) for text in texts) if isinstance(texts, list) else 0)
        ticket = self._meter.reserve(EMBED, self._model, most)
        with _settled_on_failure(self._meter, ticket, most):
            answer = self._door.post(path, body)
        used = counted(answer.get("usage"), "prompt_tokens")
        self._meter.commit(ticket, most if used is None else Tokens(used))
        return answer


@contextmanager
def _settled_on_failure(meter: Meter, ticket: str, most: Tokens) -> Iterator[None]:
    """What fails is settled with what may be on the bill for it."""
    try:
        yield
    except (Unreachable, UnsafeAddress, CallRefused, RateLimited):
        meter.commit(ticket, NO_TOKENS, failed=True)  # it was not read, or turned away
        raise
    except AnswerUnreadable:
        meter.commit(ticket, most, failed=True)  # it did answer; how much is not known here, and the cap is to hold
        raise
    except BaseException:  # too late, broken off, called off: it was read, and perhaps answered to nobody
        meter.commit(ticket, Tokens(most.sent), failed=True)
        raise
