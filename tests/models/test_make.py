"""The embedder that the settings select, with its cache and folder."""

from pathlib import Path

import pytest

from memory_mesh.core.errors import ModelMissing, SettingsError
from memory_mesh.settings import Settings, load
from memory_mesh.wiring.build import make_embedder, model_paths


def loaded(folder: Path, **arguments: object) -> Settings:
    return load(arguments, environ={"MEMORY_MESH_HOME": str(folder / "home")}, cwd=folder)


@pytest.mark.req("MESH-134")
def test_the_local_model_is_the_default(tmp_path: Path) -> None:
    embedder = make_embedder(loaded(tmp_path))
    assert embedder is not None
    assert (embedder.model, embedder.window) == ("Xenova/all-MiniLM-L6-v2", 256)


def test_hashing_and_none_are_chosen_by_name(tmp_path: Path) -> None:
    embedder = make_embedder(loaded(tmp_path, embedder="hash"))
    assert embedder is not None
    assert embedder.embed(["tea"])[0].model == embedder.model == "hashing/256"
    assert make_embedder(loaded(tmp_path, embedder="none")) is None
    with pytest.raises(SettingsError, match="local, hash, none"):
        loaded(tmp_path, embedder="nobody")


def test_a_wrong_model_path_is_refused_at_the_first_use(tmp_path: Path) -> None:
    embedder = make_embedder(loaded(tmp_path, model_path=str(tmp_path / "nowhere")))
    assert embedder is not None
    with pytest.raises(ModelMissing, match="nowhere"):
        embedder.embed(["tea"])


def test_the_cache_folder_is_that_of_the_setting_or_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    def cache(environ: dict[str, str], **arguments: object) -> Path:
        found = load(arguments, environ=environ, cwd=tmp_path)
        assert model_paths(found).cache == found.cache
        return found.cache

    assert cache({}) == tmp_path / "me" / ".cache" / "memory-mesh"
    assert cache({"XDG_CACHE_HOME": str(tmp_path / "xdg")}) == tmp_path / "xdg" / "memory-mesh"
    assert cache({"XDG_CACHE_HOME": "relative"}) == tmp_path / "me" / ".cache" / "memory-mesh"
    assert cache({"XDG_CACHE_HOME": str(tmp_path / "xdg")}, cache_dir="~/mine") == tmp_path / "me" / "mine"
    assert cache({"MEMORY_MESH_CACHE_DIR": str(tmp_path / "env")}) == tmp_path / "env"
    with pytest.raises(SettingsError, match="cache_dir"):
        cache({}, cache_dir="~nobody-of-that-name/x")


def test_without_a_user_folder_the_cache_is_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(self: Path) -> Path:
        if str(self).startswith("~"):
            raise RuntimeError("no home")
        return self

    monkeypatch.setattr(Path, "expanduser", nowhere)
    assert loaded(tmp_path).cache == tmp_path / "home" / "cache" / "memory-mesh"
