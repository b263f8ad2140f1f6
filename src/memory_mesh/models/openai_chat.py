"""Language models over the protocol that OpenAI began and most servers speak: `/chat/completions`."""

import re
from collections.abc import Mapping

from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import Prompt, Reply
from memory_mesh.models.answers import counted, reply_of, unreadable
from memory_mesh.models.calls import Adapting, Post
from memory_mesh.models.providers import Provider, SchemaForm
from memory_mesh.models.schemas import without_bounds

_OPTIONAL = frozenset({"temperature", "response_format"})
_LIMIT_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# Models that think aloud: what they thought is not what they answer. A thought that does not end was cut off.
_THOUGHT = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)


class OpenAiChat:
    """A model behind `/chat/completions`."""

    def __init__(self, door: Post, provider: Provider, model: str) -> None:
        self._door = Adapting(door, _OPTIONAL, _LIMIT_NAMES)
        self._provider, self._name = provider, model

    @property
    def model(self) -> str:
        return f"{self._provider.name}/{self._name}"

    def reply(self, prompt: Prompt) -> Reply:
        return read_answer(self._door.post("/chat/completions", self._body(prompt)), prompt, self.model)

    def _body(self, prompt: Prompt) -> dict[str, Json]:
        body: dict[str, Json] = {
            "model": self._name,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "temperature": 0,
            self._provider.limit_name: prompt.max_tokens,
        }
        if prompt.schema is not None:
            schema = dict(prompt.schema) if self._provider.schema_bounds else without_bounds(prompt.schema)
            body["response_format"] = _response_format(self._provider.schema_form, schema, prompt.operation)
        return body


def _response_format(form: SchemaForm, schema: dict[str, Json], name: str) -> dict[str, Json]:
    if form is SchemaForm.JSON_OBJECT:
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def read_answer(answer: Mapping[str, Json], prompt: Prompt, model: str) -> Reply:
    """What the model said, or `AnswerUnreadable`. Nobody else looks into an answer of this protocol."""
    choice = _first(answer.get("choices"), model)
    message, reason = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        raise unreadable(model, "it holds no message")
    if message.get("refusal") or reason == "content_filter":
        raise unreadable(model, "it declined to answer")
    if message.get("tool_calls") or message.get("function_call"):
        raise unreadable(model, "it calls a tool that nobody offered")
    content = message.get("content")
    if not isinstance(content, str):
        raise unreadable(model, "its content is no text")
    thought = _THOUGHT.match(content)
    said, usage = content[thought.end() :] if thought else content, answer.get("usage")
    sent, received = counted(usage, "prompt_tokens"), counted(usage, "completion_tokens")
    return reply_of(said, prompt, model, cut=reason == "length", sent=sent, received=received)


def _first(choices: Json, model: str) -> dict[str, Json]:
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise unreadable(model, "it holds no choices")
    return choices[0]
