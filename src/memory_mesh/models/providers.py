"""The providers known by name, and the clients of their language models.

Providers of one protocol differ in the parameters that they accept. So optional parameters are
sent, and left out when a server refuses them.
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from memory_mesh.core.errors import AnswerUnreadable, CallRefused, SettingsError, shown
from memory_mesh.core.model import Json
from memory_mesh.core.ports import Prompt, Reply, Secret, Tokens
from memory_mesh.core.text import estimate

BYTES_PER_TOKEN = 3
_MAX_TOKENS = 10**9  # a server that reports more for one call is wrong
_PARAMETER_REFUSED = (400, 422)
_UNKNOWN = re.compile(
    r"unsupported|not.supported|unknown|unrecogni[sz]ed|unexpected|not.permitted|not.allowed|extra",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model of a provider. The window is in tokens as `overestimate_tokens` counts
    them."""

    model: str
    dimension: int | None  # None: unknown
    window: int


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Calls to a local one may go to this computer and its network. It needs no key, and its schemas
    may limit lengths and numbers; remote providers refuse such a schema as a whole.
    """

    name: str
    base_url: str
    local: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)  # of every request, beside the key
    # A named, strict schema; in a "json_object" the schema stands beside its type.
    schema_type: str = "json_schema"
    limit_name: str = "max_tokens"
    embedding: EmbeddingModel | None = None  # the default one


_KNOWN = (
    Provider(
        "openai", "https://api.openai.com/v1", limit_name="max_completion_tokens",
        embedding=EmbeddingModel("text-embedding-3-small", 1536, 8191),
    ),
    Provider("anthropic", "https://api.anthropic.com/v1",
             headers={"anthropic-version": "2023-06-01"}),
    Provider(
        "cohere", "https://api.cohere.ai/compatibility/v1", schema_type="json_object",
        embedding=EmbeddingModel("embed-v4.0", 1536, 128_000),
    ),
    # The window is 2048 unless the server is configured otherwise, minus the two tokens around a
    # text.
    Provider("ollama", "http://127.0.0.1:11434/v1", local=True,
             embedding=EmbeddingModel("nomic-embed-text", 768, 2046)),
    Provider(
        "lmstudio", "http://127.0.0.1:1234/v1", local=True,
        embedding=EmbeddingModel("mixedbread-ai/mxbai-embed-large-v1", 1024, 510),
    ),
    Provider("llamacpp", "http://127.0.0.1:8080/v1", local=True),
)  # fmt: skip
# Without the owner before a slash. Ollama's other sizes of `all-minilm` are other models.
_PUBLISHED_MODEL = frozenset(
    ("all-minilm-l6-v2", "all-minilm", "all-minilm:22m", "all-minilm:l6-v2")
)
PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _KNOWN}


def find_provider(name: str) -> Provider:
    """Return the provider of that name, or raise `SettingsError`."""
    try:
        return PROVIDERS[name]
    except KeyError:
        raise SettingsError(
            f"unknown provider {shown(name)}", expected=f"one of {', '.join(PROVIDERS)}"
        ) from None


def provider_url(provider: Provider, url: str | None = None) -> str:
    """Return the given URL, or the provider's own.

    Users often give a local server without the path of its API, such as `http://127.0.0.1:1234`;
    all local ones use `/v1`.
    """
    url = (url or provider.base_url).rstrip("/")
    _, _, rest = url.partition("://")
    return f"{url}/v1" if provider.local and rest and "/" not in rest else url


def provider_headers(provider: Provider, key: Secret | None) -> dict[str, str | Secret]:
    """Return the headers of every request to a provider. The key is nowhere else."""
    text = key.reveal().strip() if key else ""
    if not text and not provider.local:
        raise SettingsError(
            f"{provider.name} needs an API key", remedy="set the key, or choose a local provider"
        )
    if not text:
        return dict(provider.headers)
    if not (text.isascii() and text.isprintable() and " " not in text):
        what = f"the API key for {provider.name} is not valid"
        raise SettingsError(what, expected="printable ASCII characters without spaces")
    if provider.name == "anthropic":
        return {"x-api-key": Secret(text), **provider.headers}
    return {"authorization": Secret(text, prefix="Bearer "), **provider.headers}


class JsonClient(Protocol):
    """Posts a JSON object to a path and returns another, or raises `CallError` or `Cancelled`.
    `HttpClient` is one."""

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]: ...


@dataclass(slots=True)
class AdaptiveClient:
    """Posts, and remembers as long as it lives which parameters the server refused.

    A refused parameter in `optional` is left out. One in `renamed` is sent under its other name: a
    limit on tokens is never left out, because tokens cost money.
    """

    client: JsonClient
    optional: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    _changes: dict[str, str | None] = field(default_factory=dict)

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """Post, and repeat the request without refused parameters. A change is remembered after
        it has worked."""
        changes = dict(self._changes)
        while True:
            names = {name: changes.get(name, name) for name in body}
            try:
                answer = self.client.post(
                    path, {name: body[old] for old, name in names.items() if name is not None}
                )
            except CallRefused as error:
                name = self._find_refused(error, body.keys() - changes.keys())
                if name is None:
                    raise
                changes[name] = self.renamed.get(name)
            else:
                self._changes = changes  # a single assignment: other threads see the old or the new
                return answer

    def _find_refused(self, error: CallRefused, names: Set[str]) -> str | None:
        if error.status not in _PARAMETER_REFUSED:
            return None
        message = json.dumps(error.body)
        mentioned = [name for name in sorted(names) if re.search(rf"(?<!\w){name}(?!\w)", message)]
        if optional := [name for name in mentioned if name in self.optional]:
            return optional[0]
        # A limit that is too high is mentioned as well; its other name would not help.
        return next(
            (name for name in mentioned if name in self.renamed and _UNKNOWN.search(message)), None
        )


def is_published_model(name: str | None) -> bool:
    """Return whether that is one of the names under which servers offer the published model that
    also runs here."""
    return (
        name is not None
        and name.rpartition("/")[2].lower().removesuffix(":latest") in _PUBLISHED_MODEL
    )


def overestimate_tokens(text: str) -> int:
    """Return how many tokens a text may have: a third of its UTF-8 bytes, rather too many than too
    few.

    A quarter of the characters is right for English. In scripts without spaces each character, of
    three bytes, is a token or more: a count of characters would send four times what the window or
    the daily limit allows.
    """
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def reported_tokens(usage: Json, name: str) -> int | None:
    """Return the number of tokens that a server reports, or None if it reports none that can be
    true."""
    count = usage.get(name) if isinstance(usage, dict) else None
    # Booleans are integers in Python. Zero is wrong too: no request and no answer is empty.
    return (
        count
        if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= _MAX_TOKENS
        else None
    )


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can express and UTF-8 cannot, with question marks."""
    return text.encode(errors="replace").decode()


# --- language models ---
# OpenAI's protocol (`/chat/completions`) and Anthropic's (`/messages`). Only `parse_openai` and
# `parse_anthropic` look into the answer of a protocol.

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
        self._client = AdaptiveClient(
            client, frozenset({"temperature", "response_format"}), _LIMIT_NAMES
        )
        self._provider, self._name, self.model = provider, model, f"{provider.name}/{model}"

    def reply(self, prompt: Prompt) -> Reply:
        """Send the prompt, and return the reply of the model."""
        body: dict[str, Json] = {
            "model": self._name,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "temperature": 0,
            self._provider.limit_name: prompt.max_tokens,
        }
        if prompt.schema is not None:
            form: dict[str, Json] = {
                "schema": dict(prompt.schema)
                if self._provider.local
                else without_bounds(prompt.schema)
            }
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
            body["output_config"] = {
                "format": {"type": "json_schema", "schema": without_bounds(prompt.schema)}
            }
        return parse_anthropic(self._client.post("/messages", body), prompt, self.model)


class KeylessChat:
    """A language model without its key. Only a call raises the error, so commands that need no
    model still work."""

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
    sent, received = (
        reported_tokens(usage, "prompt_tokens"),
        reported_tokens(usage, "completion_tokens"),
    )
    return _make_reply(content, prompt, model, cut=reason == "length", sent=sent, received=received)


def parse_anthropic(answer: Mapping[str, Json], prompt: Prompt, model: str) -> Reply:
    """Return the reply in an answer of `/messages`, or raise `AnswerUnreadable`."""
    reason, usage, content = answer.get("stop_reason"), answer.get("usage"), answer.get("content")
    if reason == "refusal":
        raise _unreadable(model, "the model declined to answer")
    blocks = (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
    if not blocks:
        raise _unreadable(model, "it has no content")
    if any(block.get("type") == "tool_use" for block in blocks):
        raise _unreadable(model, "it calls a tool, and none was offered")
    # Reasoning has blocks of another type.
    texts = [
        text
        for block in blocks
        if block.get("type") == "text" and isinstance(text := block.get("text"), str)
    ]
    if not texts:
        raise _unreadable(model, "its content is not a text")
    sent, received = reported_tokens(usage, "input_tokens"), reported_tokens(usage, "output_tokens")
    cut = reason in ("max_tokens", "model_context_window_exceeded")
    return _make_reply("".join(texts), prompt, model, cut=cut, sent=sent, received=received)


def without_bounds(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema without its limits on lengths and numbers, which remote providers refuse.

    Nothing is lost: the caller validates the answer in any case.
    """
    return {
        word: _without_bounds_below(word, value)
        for word, value in schema.items()
        if word not in _BOUNDS
    }


def _without_bounds_below(word: str, value: Json) -> Json:
    # The keys are names of ours, not words of JSON Schema.
    if word in ("properties", "$defs") and isinstance(value, dict):
        return {
            name: without_bounds(below) if isinstance(below, dict) else below
            for name, below in value.items()
        }
    if word in ("items", "additionalProperties") and isinstance(value, dict):
        return without_bounds(value)
    if word in ("anyOf", "allOf", "oneOf") and isinstance(value, list):
        return [without_bounds(below) if isinstance(below, dict) else below for below in value]
    return value


def _make_reply(
    text: str, prompt: Prompt, model: str, *, cut: bool, sent: int | None, received: int | None
) -> Reply:
    """Return the reply if it is not empty. Tokens that the server did not report are estimated."""
    if not text.strip():
        raise _unreadable(model, "it was cut off before its first word" if cut else "it is empty")
    sent = estimate(prompt.system) + estimate(prompt.user) if sent is None else sent
    received = estimate(text) if received is None else received
    return Reply(
        text=replace_surrogates(text), model=model, tokens=Tokens(sent, received), complete=not cut
    )


def _unreadable(model: str, why: str) -> AnswerUnreadable:
    """Return the error for an answer without use. It quotes nothing: an answer may contain
    private text."""
    remedy = "try again, raise the limit on tokens, or choose another model"
    return AnswerUnreadable(
        f"the answer of {model} cannot be used: {why}", expected="a text", remedy=remedy
    )
