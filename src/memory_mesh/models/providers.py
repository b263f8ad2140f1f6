"""The providers that are known by name: where they are, and in what they differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.ports import Secret

ANTHROPIC_VERSION = "2023-06-01"


class SchemaForm(StrEnum):
    """How a provider is asked for an answer of a schema."""

    JSON_SCHEMA = "json_schema"  # response_format with a named, strict schema
    JSON_OBJECT = "json_object"  # response_format with the schema beside its type
    OUTPUT_CONFIG = "output_config"  # Anthropic's own


@dataclass(frozen=True, slots=True)
class Embedding:
    """The embedding model that is taken where the settings name none. The window is in tokens as `careful` counts them."""

    model: str
    dimension: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider. A local one carries the setting that lets calls go to this machine and its network."""

    name: str
    base_url: str
    local: bool = False
    needs_key: bool = True
    schema_form: SchemaForm = SchemaForm.JSON_SCHEMA
    schema_bounds: bool = False  # whether a schema may bound lengths and numbers; those that may not refuse all of it
    limit_name: str = "max_tokens"
    embeds: bool = True
    embedding: Embedding | None = None


_KNOWN = (
    Provider(
        name="openai",
        base_url="https://api.openai.com/v1",
        limit_name="max_completion_tokens",
        embedding=Embedding("text-embedding-3-small", 1536, 8191),
    ),
    Provider(
        name="anthropic",
        base_url="https://api.anthropic.com/v1",
        schema_form=SchemaForm.OUTPUT_CONFIG,
        embeds=False,
    ),
    Provider(
        name="cohere",
        base_url="https://api.cohere.ai/compatibility/v1",
        schema_form=SchemaForm.JSON_OBJECT,
        embedding=Embedding("embed-v4.0", 1536, 128_000),
    ),
    Provider(
        name="ollama",
        base_url="http://127.0.0.1:11434/v1",
        local=True,
        needs_key=False,
        schema_bounds=True,
        embedding=Embedding(
            "nomic-embed-text", 768, 2046
        ),  # 2048 unless the server is told otherwise, less the two that frame a text
    ),
    Provider(
        name="lmstudio",
        base_url="http://127.0.0.1:1234/v1",
        local=True,
        needs_key=False,
        schema_bounds=True,
        embedding=Embedding("mixedbread-ai/mxbai-embed-large-v1", 1024, 510),
    ),
    Provider(
        name="llamacpp",
        base_url="http://127.0.0.1:8080/v1",
        local=True,
        needs_key=False,
        schema_bounds=True,
    ),
)
PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _KNOWN}


def provider_named(name: str) -> Provider:
    """The provider of that name."""
    try:
        return PROVIDERS[name]
    except KeyError:
        raise SettingsError(f"there is no provider called {name!r:.60}", expected=f"one of {', '.join(PROVIDERS)}") from None


def url_of(provider: Provider, given: str | None = None) -> str:
    """Where a provider is called: at the given URL, else at its own.

    Local servers are often named without the path of their API, as in `http://127.0.0.1:1234`; all of them have it at `/v1`.
    """
    url = (given or provider.base_url).rstrip("/")
    _, _, rest = url.partition("://")
    return f"{url}/v1" if provider.local and rest and "/" not in rest else url


def headers_of(provider: Provider, key: Secret | None) -> Mapping[str, str | Secret]:
    """What every request to a provider carries. The key stands nowhere else."""
    if key is None or not key.reveal().strip():
        if provider.needs_key:
            raise SettingsError(f"{provider.name} needs an API key", remedy="set the key, or choose a provider on this machine")
        return unkeyed(provider)
    bare = key.reveal().strip()
    if not (bare.isascii() and bare.isprintable() and " " not in bare):
        raise SettingsError(
            f"the API key for {provider.name} cannot be one", expected="printable ASCII characters without blanks"
        )
    if provider.schema_form is SchemaForm.OUTPUT_CONFIG:
        return {"x-api-key": Secret(bare), **unkeyed(provider)}
    return {"authorization": Bearer(bare)}


def unkeyed(provider: Provider) -> dict[str, str | Secret]:
    """The headers without a key, for a server at another address that asks for none."""
    return {"anthropic-version": ANTHROPIC_VERSION} if provider.schema_form is SchemaForm.OUTPUT_CONFIG else {}


class Bearer(Secret):
    """A key as the header wants it. A server that quotes the key alone is not to give it away either."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        super().__init__(f"Bearer {key}")
        self._key = Secret(key)

    def hidden_in(self, text: str) -> str:
        """A text without the key, with or without the word before it."""
        return self._key.hidden_in(super().hidden_in(text))
