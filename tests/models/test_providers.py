"""The table of providers, their URLs and headers."""

import pytest

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.ports import Secret
from memory_mesh.models.providers import (
    PROVIDERS,
    Provider,
    find_provider,
    provider_headers,
    provider_url,
)

KEY = "sk-proj-0123456789abcdefghijklmnop"
LOCAL = ("ollama", "lmstudio", "llamacpp")
REMOTE = ("openai", "anthropic", "cohere")


@pytest.mark.req("MESH-133")
@pytest.mark.parametrize("name", ["openai", "ollama", "cohere"])
def test_the_embedding_providers_of_the_document_are_known_with_a_model_each(name: str) -> None:
    provider = find_provider(name)
    assert provider.embedding
    assert provider.embedding.model


@pytest.mark.req("LANE-32")
def test_lm_studio_has_its_model_dimensions_and_address() -> None:
    provider = find_provider("lmstudio")
    assert provider.embedding
    assert (provider.embedding.model, provider.embedding.dimension) == (
        "mixedbread-ai/mxbai-embed-large-v1",
        1024,
    )
    assert provider.base_url == "http://127.0.0.1:1234/v1"


def test_only_local_providers_allow_local_addresses_and_need_no_key() -> None:
    assert {name for name, provider in PROVIDERS.items() if provider.local} == set(LOCAL)
    assert {name for name, provider in PROVIDERS.items() if not provider.local} == set(REMOTE)
    assert all(PROVIDERS[name].base_url.startswith("https://") for name in REMOTE)


def test_an_unknown_provider_is_refused_with_the_list_of_known_ones() -> None:
    with pytest.raises(
        SettingsError,
        match=r"unknown provider 'closedai'.*openai, anthropic, cohere, ollama, lmstudio, llamacpp",
    ):
        find_provider("closedai")


@pytest.mark.parametrize(
    ("name", "given", "url"),
    [
        ("lmstudio", None, "http://127.0.0.1:1234/v1"),
        ("lmstudio", "http://127.0.0.1:1234", "http://127.0.0.1:1234/v1"),
        ("lmstudio", "http://127.0.0.1:1234/", "http://127.0.0.1:1234/v1"),
        ("lmstudio", "http://127.0.0.1:1234/v1/", "http://127.0.0.1:1234/v1"),
        ("ollama", "http://192.168.0.7:9/my/own", "http://192.168.0.7:9/my/own"),
        ("openai", "https://gateway.example", "https://gateway.example"),
        ("ollama", "nonsense", "nonsense"),  # the client says what is wrong with it
    ],
)
def test_a_local_url_without_a_path_gets_the_usual_one(
    name: str, given: str | None, url: str
) -> None:
    assert provider_url(find_provider(name), given) == url


def shown(provider: Provider, key: str | None) -> dict[str, str]:
    headers = provider_headers(provider, None if key is None else Secret(key))
    return {
        name: value.reveal() if isinstance(value, Secret) else value
        for name, value in headers.items()
    }


@pytest.mark.parametrize("name", ["openai", "cohere", *LOCAL])
def test_a_key_goes_into_the_authorization_header(name: str) -> None:
    assert shown(PROVIDERS[name], f" {KEY}\n") == {"authorization": f"Bearer {KEY}"}


def test_anthropic_has_its_own_headers() -> None:
    assert shown(PROVIDERS["anthropic"], KEY) == {
        "x-api-key": KEY,
        "anthropic-version": "2023-06-01",
    }


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_header_shows_the_key_in_its_repr(name: str) -> None:
    headers = provider_headers(PROVIDERS[name], Secret(KEY))
    assert KEY in str([value.reveal() for value in headers.values() if isinstance(value, Secret)])
    assert KEY not in f"{headers!r} {headers}"


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_bare_key_is_hidden_in_a_text_too(name: str) -> None:
    quoting = f"no such key: {KEY}, sent as Bearer {KEY}"
    for value in provider_headers(PROVIDERS[name], Secret(KEY)).values():
        if isinstance(value, Secret):
            quoting = value.hidden_in(quoting)
    assert quoting.startswith("no such key: ***, sent as")
    assert KEY not in quoting


@pytest.mark.parametrize("key", [None, "", "  "])
def test_only_remote_providers_need_a_key(key: str | None) -> None:
    for name in REMOTE:
        with pytest.raises(SettingsError, match=f"{name} needs an API key"):
            shown(PROVIDERS[name], key)
    assert [shown(PROVIDERS[name], key) for name in LOCAL] == [{}, {}, {}]


@pytest.mark.parametrize("key", ["two words", "line\r\nX-Evil: 1", "schlüssel", "\x00"])
def test_an_invalid_key_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(SettingsError, match="is not valid") as caught:
        shown(PROVIDERS["openai"], key)
    assert key not in str(caught.value)


def test_the_limit_on_tokens_has_another_name_at_openai() -> None:
    assert {
        provider.name for provider in PROVIDERS.values() if provider.limit_name != "max_tokens"
    } == {"openai"}
    assert find_provider("cohere").schema_type == "json_object"
