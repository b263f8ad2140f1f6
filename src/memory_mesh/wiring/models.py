"""Makes language models and remote embedders from the options: with the HTTP client, metering and the daily limits."""

from typing import TYPE_CHECKING

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.learning import Caps, Price
from memory_mesh.core.options import Options
from memory_mesh.core.ports import ChatModel, Embedder, Meter, Prompt, Reply, Secret
from memory_mesh.settings import PREFIX, PROVIDER_KEYS

if TYPE_CHECKING:
    from memory_mesh.models.providers import Provider
    from memory_mesh.net import HttpClient

_LOCAL_EMBEDDERS = ("local", "hash", "none")
_DEFAULT_WINDOW = 510  # tokens; small enough for every embedding model
_DEFAULT_MODEL = "default"  # a server with a single model, such as llama.cpp's, accepts any name
# The names of the options for URL, key and local addresses.
_CONNECTION_OPTIONS = {
    "llm": ("llm_base_url", "llm_api_key", "llm_allow_local"),
    "embedding": ("embedding_url", "embedding_api_key", "embedding_allow_local"),
}


class KeylessChat:
    """A language model without its key. Only a call raises the error, so commands that need no model still work."""

    def __init__(self, model: str, error: SettingsError) -> None:
        self.model, self.error = model, error

    def reply(self, prompt: Prompt) -> Reply:
        raise self.error


def caps(options: Options) -> Caps:
    """Return the daily limits on tokens and cost."""
    chat = ["llm_price_sent", "llm_price_received"] if options.llm_provider and options.enable_llm else []
    needed = [*chat, "embedding_price"] if is_remote(options) else chat
    missing = [name for name in needed if getattr(options, name) is None]
    if options.llm_daily_cost is not None and missing:
        what = f"llm_daily_cost is set, but {' and '.join(missing)} is not"
        raise SettingsError(what, expected="dollars for a million tokens, for every model in use")
    return Caps(options.llm_daily_tokens, options.llm_daily_cost)


def prices(options: Options) -> dict[str, Price]:
    """Return the configured prices of tokens, by model."""
    known: dict[str, Price] = {}
    if options.llm_provider and options.llm_price_sent is not None:
        known[_chat_name(options)] = Price(options.llm_price_sent, options.llm_price_received or 0.0)
    if options.embedding_price is not None and is_remote(options):
        known[remote_embedder(options, None).model] = Price(options.embedding_price)
    return known


def is_remote(options: Options) -> bool:
    """Return whether another program makes the vectors."""
    return options.embedder not in _LOCAL_EMBEDDERS


def check_models(options: Options) -> None:
    """Raise `SettingsError` if the options of the models cannot work."""
    if options.llm_provider is None and options.llm_model is not None:
        raise SettingsError("llm_model is set, but llm_provider is not", expected="a provider, such as ollama")
    caps(options)
    if options.enable_llm:
        make_chat(options, None)
    if is_remote(options):
        remote_embedder(options, None)


def make_chat(options: Options, meter: Meter | None) -> ChatModel | None:
    """Return the configured language model, or None. It does not connect yet."""
    if options.llm_provider is None:
        return None
    from memory_mesh.models import MeteredChat
    from memory_mesh.models.chat import AnthropicChat, OpenAiChat
    from memory_mesh.models.providers import find_provider

    provider = find_provider(options.llm_provider)
    if options.llm_model is None and provider.name != "llamacpp":
        what = f"llm_provider is {provider.name}, but llm_model is not set"
        raise SettingsError(what, expected="the name of one of its models")
    if error := _missing_key(options, provider, "llm"):
        return KeylessChat(_chat_name(options), error)
    client, model = _http_client(options, provider, "llm"), options.llm_model or _DEFAULT_MODEL
    chat = AnthropicChat(client, model) if provider.name == "anthropic" else OpenAiChat(client, provider, model)
    return MeteredChat(chat, meter) if meter else chat


def remote_embedder(options: Options, meter: Meter | None) -> Embedder:
    """Return the configured remote embedder. It does not connect yet."""
    from memory_mesh.models import MeteredClient
    from memory_mesh.models.providers import EmbeddingModel, find_provider, provider_url
    from memory_mesh.models.remote_embedder import LmStudioEmbedder, RemoteEmbedder

    provider = find_provider(options.embedder)
    if error := _missing_key(options, provider, "embedding"):
        raise error
    default = provider.embedding or EmbeddingModel("", 0, _DEFAULT_WINDOW)
    model = options.embedding_model or default.model
    is_default = model == default.model  # window and dimension of any other model are unknown
    name = f"{provider.name}/{model}"
    client = _http_client(options, provider, "embedding")
    embedder = RemoteEmbedder(
        MeteredClient(client, meter, name) if meter else client,
        model=model,
        name=name,
        window=options.embedding_window or (default.window if is_default else _DEFAULT_WINDOW),
        dimension=default.dimension if is_default else None,
    )
    is_local = provider_url(provider, options.embedding_url) == provider.base_url
    return LmStudioEmbedder(embedder) if provider.name == "lmstudio" and is_local else embedder


def _http_client(options: Options, provider: "Provider", kind: str) -> "HttpClient":
    """Return the client for a provider. An error names the option that is wrong."""
    from memory_mesh.models.providers import headers_without_key, provider_headers, provider_url
    from memory_mesh.net import ALLOW_LOCAL_REMEDY, HttpClient

    url_option, _, local_option = _CONNECTION_OPTIONS[kind]
    url, key, allow_local = (getattr(options, name) for name in _CONNECTION_OPTIONS[kind])
    headers = provider_headers(provider, Secret(key)) if key else headers_without_key(provider)
    try:
        return HttpClient(
            provider_url(provider, url),
            allow_local=provider.local if allow_local is None else allow_local,
            headers=headers,
            timeout=options.llm_timeout,
            per_minute=options.llm_requests_per_minute,
        )
    except SettingsError as error:
        is_local = error.remedy == ALLOW_LOCAL_REMEDY
        remedy = f"set {local_option} = true if that is intended" if is_local else error.remedy
        raise SettingsError(f"{url_option}: {error.what}", expected=error.expected, remedy=remedy) from error


def _missing_key(options: Options, provider: "Provider", kind: str) -> SettingsError | None:
    """Return the error if the provider needs a key and has none. A server at another address may need none."""
    url_option, key_option, _ = _CONNECTION_OPTIONS[kind]
    if not provider.needs_key or getattr(options, key_option) is not None or getattr(options, url_option) is not None:
        return None
    remedy = f"set {PREFIX}{key_option.upper()} or {PROVIDER_KEYS[provider.name]}"
    return SettingsError(f"{key_option} is not set", expected=f"a key for {provider.name}", remedy=remedy)


def _chat_name(options: Options) -> str:
    return f"{options.llm_provider}/{options.llm_model or _DEFAULT_MODEL}"
