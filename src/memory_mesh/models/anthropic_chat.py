"""Language models over Anthropic's protocol: `/messages`."""

from collections.abc import Mapping

from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import Prompt, Reply
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

    def reply(self, prompt: Prompt) -> Reply:
        return read_answer(self._door.post("/messages", self._body(prompt)), prompt, self.model)

    def _body(self, prompt: Prompt) -> dict[str, Json]:
        body: dict[str, Json] = {
            "model": self._name,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
            "max_tokens": prompt.max_tokens,
            "temperature": 0,
        }
        if prompt.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": without_bounds(prompt.schema)}}
        return body


def read_answer(answer: Mapping[str, Json], prompt: Prompt, model: str) -> Reply:
    """What the model said, or `AnswerUnreadable`. Nobody else looks into an answer of this protocol."""
    reason, usage = answer.get("stop_reason"), answer.get("usage")
    if reason == "refusal":
        raise unreadable(model, "it declined to answer")
    said = "".join(_texts(answer.get("content"), model))
    sent, received = counted(usage, "input_tokens"), counted(usage, "output_tokens")
    return reply_of(
        said, prompt, model, cut=reason in ("max_tokens", "model_context_window_exceeded"), sent=sent, received=received
    )


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
