"""API keys go only to their own provider, whatever the file of a project says."""

from pathlib import Path

import pytest

from memory_mesh.core.errors import SettingsError
from memory_mesh.settings import FILE, PREFIX, Settings, load


class Place:
    """A home, a project and an environment of a test's own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        for made in (self.home, self.project):
            made.mkdir()
        self.environ = {PREFIX + "HOME": str(self.home)}

    def load(self, **arguments: object) -> Settings:
        return load(arguments, environ=self.environ, cwd=self.project)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("setting", "key", "other"),
    [
        ("llm_provider", "llm_api_key", "llamacpp"),
        ("llm_provider", "llm_api_key", "cohere"),
        ("embedder", "embedding_api_key", "ollama"),
    ],
)
def test_a_projects_file_cannot_have_a_key_sent_to_another_provider(place: Place, setting: str, key: str, other: str) -> None:
    (place.home / FILE).write_text(f'{setting} = "openai"\n{key} = "k"\n')
    (place.project / FILE).write_text(f'{setting} = "openai"\n')
    assert getattr(place.load().options, key) == "k"
    (place.project / FILE).write_text(f'{setting} = "{other}"\n')
    with pytest.raises(SettingsError, match=f"{setting} {other} would receive your {key}.*{PREFIX}{setting.upper()}"):
        place.load()
    place.environ[PREFIX + setting.upper()] = other
    assert getattr(place.load().options, setting) == other


def test_a_local_embedder_gets_no_key_and_may_be_chosen(place: Place) -> None:
    (place.home / FILE).write_text('embedder = "openai"\nembedding_api_key = "k"\n')
    (place.project / FILE).write_text('embedder = "hash"\n')
    assert place.load().options.embedder == "hash"


@pytest.mark.parametrize("key", ["llm_api_key", "embedding_api_key"])
def test_a_projects_file_cannot_set_an_api_key(place: Place, key: str) -> None:
    (place.project / FILE).write_text(f'{key} = "theirs"\n')
    with pytest.raises(SettingsError, match=f"{key} decides where your texts are sent") as refused:
        place.load()
    assert "theirs" not in str(refused.value)


@pytest.mark.parametrize(
    ("provider", "key", "url"),
    [("llm_provider", "llm_api_key", "llm_base_url"), ("embedder", "embedding_api_key", "embedding_url")],
)
def test_the_key_of_a_provider_does_not_go_to_another_address(place: Place, provider: str, key: str, url: str) -> None:
    place.environ["OPENAI_API_KEY"] = "k"
    assert getattr(place.load(**{provider: "openai"}).options, key) == "k"
    elsewhere = {provider: "openai", url: "https://api.example.com/v1"}
    assert getattr(place.load(**elsewhere).options, key) is None
    assert getattr(place.load(**elsewhere, **{key: "own"}).options, key) == "own"


@pytest.mark.parametrize("way", [".", "../project", "link"])
def test_a_home_folder_is_recognised_by_any_path_to_it(place: Place, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    (place.project / FILE).write_text('llm_base_url = "https://api.example.com/v1"\n')
    with pytest.raises(SettingsError, match="llm_base_url"):
        place.load()
    (place.project / "link").symlink_to(place.project)
    monkeypatch.chdir(place.project)
    place.environ[PREFIX + "HOME"] = way
    assert place.load().options.llm_base_url == "https://api.example.com/v1"
