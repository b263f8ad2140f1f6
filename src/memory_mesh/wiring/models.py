"""Settings into language models and remote embedders, each behind the guard, the accounts and the cap."""

from typing import TYPE_CHECKING

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.learning import Caps, Price
from memory_mesh.core.options import Options
from memory_mesh.core.ports import ChatModel, Embedder, Meter, Prompt, Reply, Secret
from memory_mesh.settings import PREFIX, PROVIDER_KEYS

if TYPE_CHECKING:
    from memory_mesh.models.providers import Provider
    from memory_mesh.net import HttpClient

_AT_HOME = ("local", "hash", "none")
_A_DAY = 86_400.0
_LEAST_READ = 100  # tokens
_USUAL_WINDOW = 510  # small enough for any model that embeds
_WHATEVER_RUNS = "default"  # a server of one model, such as llama.cpp's, takes any name


class KeylessChat:
    """A language model whose key is missing. Whoever asks it is told; commands that need no model are not."""

    def __init__(self, model: str, error: SettingsError) -> None:
        self.model, self.error = model, error

    def reply(self, prompt: Prompt) -> Reply:
        raise self.error


def caps(options: Options) -> Caps:
    """What a day may take."""
    unknown = [name for name in _prices_needed(options) if getattr(options, name) is None]
    if options.llm_daily_cost is not None and unknown:
        what = f"llm_daily_cost is set, and {' and '.join(unknown)} not"
        raise SettingsError(what, expected="dollars for a million tokens, for every model in use")
    return Caps(options.llm_daily_tokens, options.llm_daily_cost)


def prices(options: Options) -> dict[str, Price]:
    """What tokens cost, by model, as far as it was said."""
    known: dict[str, Price] = {}
    if options.llm_provider and options.llm_price_sent is not None:
        known[_chat_name(options)] = Price(options.llm_price_sent, options.llm_price_received or 0.0)
    if options.embedding_price is not None and is_remote(options):
        known[remote_embedder(options, None).model] = Price(options.embedding_price)
    return known


def is_remote(options: Options) -> bool:
    """Whether vectors are made by another program."""
    return options.embedder not in _AT_HOME


def refuse_wrong(options: Options) -> None:
    """Tell at once what cannot work about the models that are set."""
    if options.llm_provider is None and options.llm_model is not None:
        raise SettingsError("llm_model is set, and llm_provider is not", expected="who runs it, such as ollama")
    caps(options)
    if not 0 < options.llm_timeout <= _A_DAY:
        raise SettingsError(f"llm_timeout is {options.llm_timeout:g}", expected=f"seconds above 0, at most {_A_DAY:g}")
    if options.llm_input_tokens < _LEAST_READ:
        what = f"llm_input_tokens is {options.llm_input_tokens}, and each piece of a text is a call of its own"
        raise SettingsError(what, expected=f"at least {_LEAST_READ}")
    if options.enable_llm:
        make_chat(options, None)
    if is_remote(options):
        remote_embedder(options, None)


def make_chat(options: Options, meter: Meter | None) -> ChatModel | None:
    """The language model that the settings name; None where they name none. It connects to nothing yet."""
    if options.llm_provider is None:
        return None
    from memory_mesh.models.providers import provider_named

    provider = provider_named(options.llm_provider)
    if options.llm_model is None and provider.name != "llamacpp":
        what = f"llm_provider is {provider.name}, and llm_model is not set"
        raise SettingsError(what, expected="the name of one of its models")
    if _lacks_key(options, provider, "llm"):
        return KeylessChat(_chat_name(options), _keyless("llm_api_key", provider))
    chat = _speaking(provider, _door(options, provider, "llm"), options.llm_model or _WHATEVER_RUNS)
    return _metered(chat, meter) if meter else chat


def remote_embedder(options: Options, meter: Meter | None) -> Embedder:
    """The embedder behind a provider's address. It connects to nothing yet."""
    from memory_mesh.models.metered import MeteredPost
    from memory_mesh.models.providers import Embedding, provider_named, url_of
    from memory_mesh.models.remote_embedder import RemoteEmbedder

    provider = provider_named(options.embedder)
    if _lacks_key(options, provider, "embedding"):
        raise _keyless("embedding_api_key", provider)
    usual = provider.embedding or Embedding("", 0, _USUAL_WINDOW)
    model = options.embedding_model or usual.model
    known = model == usual.model  # of another model nothing is known but what is set
    name = f"{provider.name}/{model}"
    door = _door(options, provider, "embedding")
    made = RemoteEmbedder(
        MeteredPost(door, meter, name) if meter else door,
        model=model,
        name=name,
        window=options.embedding_window or (usual.window if known else _USUAL_WINDOW),
        dimension=usual.dimension if known else None,
    )
    here = url_of(provider, options.embedding_url) == provider.base_url
    return _started(made) if provider.name == "lmstudio" and here else made


def _started(made: Embedder) -> Embedder:
    from memory_mesh.models.lm_studio import StartingLmStudio

    return StartingLmStudio(made)


def _speaking(provider: "Provider", door: "HttpClient", model: str) -> ChatModel:
    """The client of the protocol that a provider speaks."""
    from memory_mesh.models.anthropic_chat import AnthropicChat
    from memory_mesh.models.openai_chat import OpenAiChat

    return AnthropicChat(door, model) if provider.name == "anthropic" else OpenAiChat(door, provider, model)


def _metered(chat: ChatModel, meter: Meter) -> ChatModel:
    from memory_mesh.models.metered import MeteredChat

    return MeteredChat(chat, meter)


def _door(options: Options, provider: "Provider", what: str) -> "HttpClient":
    """The way to a provider; what cannot be a way is told at once, by the name of the setting."""
    from memory_mesh.models.providers import headers_of, unkeyed, url_of
    from memory_mesh.net import ALLOW_LOCAL_REMEDY, HttpClient

    url, key, local = (getattr(options, f"{what}_{part}") for part in _PARTS[what])
    headers = headers_of(provider, Secret(key)) if key else unkeyed(provider)
    try:
        return HttpClient(
            url_of(provider, url),
            allow_local=provider.local if local is None else local,
            headers=headers,
            timeout=options.llm_timeout,
            per_minute=options.llm_requests_per_minute,
        )
    except SettingsError as error:
        named = f"{what}_{_PARTS[what][0]}"
        remedy = f"set {what}_allow_local = true if it is meant" if error.remedy == ALLOW_LOCAL_REMEDY else error.remedy
        raise SettingsError(f"{named}: {error.what}", expected=error.expected, remedy=remedy) from error


_PARTS = {"llm": ("base_url", "api_key", "allow_local"), "embedding": ("url", "api_key", "allow_local")}


def _lacks_key(options: Options, provider: "Provider", what: str) -> bool:
    """Whether a provider that needs a key was given none. Servers at other addresses know themselves what they need."""
    url, key, _ = (getattr(options, f"{what}_{part}") for part in _PARTS[what])
    return provider.needs_key and key is None and url is None


def _chat_name(options: Options) -> str:
    return f"{options.llm_provider}/{options.llm_model or _WHATEVER_RUNS}"


def _prices_needed(options: Options) -> list[str]:
    chat = ["llm_price_sent", "llm_price_received"] if options.llm_provider and options.enable_llm else []
    return [*chat, *(["embedding_price"] if is_remote(options) else [])]


def _keyless(setting: str, provider: "Provider") -> SettingsError:
    remedy = f"set {PREFIX}{setting.upper()} or {PROVIDER_KEYS[provider.name]}"
    return SettingsError(f"{setting} is not set", expected=f"a key for {provider.name}", remedy=remedy)
