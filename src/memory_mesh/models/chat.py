"""Clients of language models, for OpenAI's protocol (`/chat/completions`) and Anthropic's (`/messages`).

Only `parse_openai` and `parse_anthropic` look into the answer of a protocol.
"""

import re
from collections.abc import Mapping

from memory_mesh.core.errors import AnswerUnreadable, SettingsError
from memory_mesh.core.model import Json
from memory_mesh.core.ports import Prompt, Reply, Tokens
from memory_mesh.core.text import estimate
from memory_mesh.models.providers import AdaptiveClient, JsonClient, Provider, replace_surrogates, reported_tokens

_LIMIT_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# Some models write down their reasoning first. Without an end it was cut off.
_REASONING = re.compile(r"\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_BOUNDS = {
    *("minLength", "maxLength", "pattern", "format"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
}


class OpenAiChat:
    """A model behind `/chat/completions`, the protocol that most servers speak."""

    def __init__(self, client: JsonClient, provider: Provider, model: str) -> None:
        self._client = AdaptiveClient(client, frozenset({"temperature", "response_format"}), _LIMIT_NAMES)
        self._provider, self._name, self.model = provider, model, f"{provider.name}/{model}"

    def reply(self, prompt: Prompt) -> Reply:
        """Send the prompt, and return the reply of the model."""
        body: dict[str, Json] = {
            "model": self._name,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "temperature": 0,
            self._provider.limit_name: prompt.max_tokens,
        }
        if prompt.schema is not None:
            form: dict[str, Json] = {"schema": dict(prompt.schema) if self._provider.local else without_bounds(prompt.schema)}
            if self._provider.schema_type == "json_schema":
                form = {"json_schema": {"name": prompt.operation, "strict": True, **form}}
            body["response_format"] = {"type": self._provider.schema_type, **form}
        return parse_openai(self._client.post("/chat/completions", body), prompt, self.model)


class AnthropicChat:
    """A model behind `/messages`."""

    def __init__(self, client: JsonClient, model: str) -> None:
        # Older models refuse `output_config`, and some newer ones refuse `temperature`.
        self._client = AdaptiveClient(client, frozenset({"output_config", "temperature"}))
        self._name, self.model = model, f"anthropic/{model}"

    def reply(self, prompt: Prompt) -> Reply:
        """Send the prompt, and return the reply of the model."""
        body: dict[str, Json] = {
            "model": self._name,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
            "max_tokens": prompt.max_tokens,
            "temperature": 0,
        }
        if prompt.schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": without_bounds(prompt.schema)}}
        return parse_anthropic(self._client.post("/messages", body), prompt, self.model)


class KeylessChat:
    """A language model without its key. Only a call raises the error, so commands that need no model still work."""

    def __init__(self, model: str, error: SettingsError) -> None:
        self.model, self.error = model, error

    def reply(self, prompt: Prompt) -> Reply:
        raise self.error


def parse_openai(answer: Mapping[str, Json], prompt: Prompt, model: str) -> Reply:
    """Return the reply in an answer of `/chat/completions`, or raise `AnswerUnreadable`."""
    choices, usage = answer.get("choices"), answer.get("usage")
    if not isinstance(choices, list) or not choices or not isinstance(choice := choices[0], dict):
        raise _unreadable(model, "it has no choices")
    message, reason = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        raise _unreadable(model, "it has no message")
    if message.get("refusal") or reason == "content_filter":
        raise _unreadable(model, "the model declined to answer")
    if message.get("tool_calls") or message.get("function_call"):
        raise _unreadable(model, "it calls a tool, and none was offered")
    content = message.get("content")
    if not isinstance(content, str):
        raise _unreadable(model, "its content is not a text")
    if reasoning := _REASONING.match(content):
        content = content[reasoning.end() :]
    sent, received = reported_tokens(usage, "prompt_tokens"), reported_tokens(usage, "completion_tokens")
    return _make_reply(content, prompt, model, cut=reason == "length", sent=sent, received=received)


def parse_anthropic(answer: Mapping[str, Json], prompt: Prompt, model: str) -> Reply:
    """Return the reply in an answer of `/messages`, or raise `AnswerUnreadable`."""
    reason, usage, content = answer.get("stop_reason"), answer.get("usage"), answer.get("content")
    if reason == "refusal":
        raise _unreadable(model, "the model declined to answer")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if not blocks:
        raise _unreadable(model, "it has no content")
    if any(block.get("type") == "tool_use" for block in blocks):
        raise _unreadable(model, "it calls a tool, and none was offered")
    # Reasoning has blocks of another type.
    texts = [text for block in blocks if block.get("type") == "text" and isinstance(text := block.get("text"), str)]
    if not texts:
        raise _unreadable(model, "its content is not a text")
    sent, received = reported_tokens(usage, "input_tokens"), reported_tokens(usage, "output_tokens")
    cut = reason in ("max_tokens", "model_context_window_exceeded")
    return _make_reply("".join(texts), prompt, model, cut=cut, sent=sent, received=received)


def without_bounds(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema without its limits on lengths and numbers, which remote providers refuse.

    Nothing is lost: the caller validates the answer in any case.
    """
    return {word: _without_bounds_below(word, value) for word, value in schema.items() if word not in _BOUNDS}


def _without_bounds_below(word: str, value: Json) -> Json:
    if word in ("properties", "$defs") and isinstance(value, dict):  # the keys are names of ours, not words of JSON Schema
        return {name: without_bounds(below) if isinstance(below, dict) else below for name, below in value.items()}
    if word in ("items", "additionalProperties") and isinstance(value, dict):
        return without_bounds(value)
    if word in ("anyOf", "allOf", "oneOf") and isinstance(value, list):
        return [without_bounds(below) if isinstance(below, dict) else below for below in value]
    return value


def _make_reply(text: str, prompt: Prompt, model: str, *, cut: bool, sent: int | None, received: int | None) -> Reply:
    """Return the reply if it is not empty. Tokens that the server did not report are estimated."""
    if not text.strip():
        raise _unreadable(model, "it was cut off before its first word" if cut else "it is empty")
    sent = estimate(prompt.system) + estimate(prompt.user) if sent is None else sent
    received = estimate(text) if received is None else received
    return Reply(text=replace_surrogates(text), model=model, tokens=Tokens(sent, received), complete=not cut)


def _unreadable(model: str, why: str) -> AnswerUnreadable:
    """Return the error for an answer without use. It quotes nothing: an answer may contain private text."""
    remedy = "try again, raise the limit on tokens, or choose another model"
    return AnswerUnreadable(f"the answer of {model} cannot be used: {why}", expected="a text", remedy=remedy)
