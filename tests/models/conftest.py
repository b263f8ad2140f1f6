"""The real model, loaded once for all tests, and folders with its files."""

from pathlib import Path

import pytest

from memory_mesh.api.build import model_paths
from memory_mesh.api.settings import load
from memory_mesh.models import LocalEmbedder, ModelFiles, ModelPaths
from memory_mesh.models.model_files import read_model

NO_PACKAGE = "no_package_of_this_name"


@pytest.fixture(scope="session")
def paths() -> ModelPaths:
    """The paths where `make setup` put the model."""
    return model_paths(load({}, environ={}))


@pytest.fixture(scope="session")
def model(paths: ModelPaths) -> ModelFiles:
    found = read_model(paths.built)
    assert found, f"{paths.built} holds no model; run `make setup` or `memory-mesh model fetch`"
    return found


@pytest.fixture(scope="session")
def local(paths: ModelPaths, model: ModelFiles) -> LocalEmbedder:
    return LocalEmbedder(paths, fetch=False)


@pytest.fixture
def empty(tmp_path: Path) -> ModelPaths:
    """An empty cache, and no package."""
    return ModelPaths(cache=tmp_path / "cache", package=NO_PACKAGE)
