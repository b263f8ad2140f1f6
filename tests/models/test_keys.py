"""API keys go only to their own provider; tests/test_project_file.py holds what a project cannot
decide."""

from pathlib import Path

import pytest

from memory_mesh.api.settings import FILE, PREFIX, Settings, load
from memory_mesh.core.errors import SettingsError


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
    ("provider", "key", "url"),
    [
        ("llm_provider", "llm_api_key", "llm_base_url"),
        ("embedder", "embedding_api_key", "embedding_url"),
    ],
)
def test_the_key_of_a_provider_does_not_go_to_another_address(
    place: Place, provider: str, key: str, url: str
) -> None:
    place.environ["OPENAI_API_KEY"] = "k"
    assert getattr(place.load(**{provider: "openai"}).options, key) == "k"
    elsewhere = {provider: "openai", url: "https://api.example.com/v1"}
    assert getattr(place.load(**elsewhere).options, key) is None
    assert getattr(place.load(**elsewhere, **{key: "own"}).options, key) == "own"


@pytest.mark.parametrize("way", [".", "../project", "link"])
def test_a_home_folder_is_recognised_by_any_path_to_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    (place.project / FILE).write_text('llm_base_url = "https://api.example.com/v1"\n')
    with pytest.raises(SettingsError, match="llm_base_url"):
        place.load()
    (place.project / "link").symlink_to(place.project)
    monkeypatch.chdir(place.project)
    place.environ[PREFIX + "HOME"] = way
    assert place.load().options.llm_base_url == "https://api.example.com/v1"
