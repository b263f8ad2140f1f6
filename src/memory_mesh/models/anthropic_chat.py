"""Language models over Anthropic's protocol: `/messages`."""

from collections.abc import Mapping

from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import Ask, Reply
from memory_mesh.models.answers import counted, reply_of, unreadable
from memory_mesh.models.calls import Adapting, Post
from memory_mesh.models.schemas import without_bounds

# Models that came before structured answers refuse the one, and some that came after refuse the other.
_OPTIONAL = frozenset({"output_config", "temperature"})


class AnthropicChat:
    """A model behind `/messages`."""

    def __init__(self, door: Post, model: str) -> None:
        self._door, self._name = Adapting(door, _OPTIONAL), model

    @property
    def model(self) -> str:
        return f"anthropic/{self._name}"

    def reply(self, ask: Ask) -> Reply:
        return read_answer(self._door.post("/messages", self._body(ask)), ask, self.model)

    def _body(self, ask: Ask) -> dict[str, Json]:
        body: dict[str, Json] = {
            "model": self._name,
            "system": ask.system,
            "messages": [{"role": "user", "content": ask.user}],
            "max_tokens": ask.max_tokens,
            "temperature": 0,
        }
        if ask.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": without_bounds(ask.schema)}}
        return body


def read_answer(answer: Mapping[str, Json], ask: Ask, model: str) -> Reply:
    """What the model said, or `AnswerUnreadable`. Nobody else looks into an answer of this protocol."""
    reason, usage = answer.get("stop_reason"), answer.get("usage")
    if reason == "refusal":
        raise unreadable(model, "it declined to answer")
    said = "".join(_texts(answer.get("content"), model))
    sent, received = counted(usage, "input_tokens"), counted(usage, "output_tokens")
    return reply_of(said, ask, model, cut=reason in ("max_tokens", "model_context_window_exceeded"), sent=sent, received=received)


def _texts(content: Json, model: str) -> list[str]:
    """The blocks of text. What a model thought stands in blocks of its own, and is no answer."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if not blocks:
        raise unreadable(model, "it holds no content")
    if any(block.get("type") == "tool_use" for block in blocks):
        raise unreadable(model, "it calls a tool that nobody offered")
    texts = [text for block in blocks if block.get("type") == "text" and isinstance(text := block.get("text"), str)]
    if not texts:
        raise unreadable(model, "its content is no text")
    return texts
