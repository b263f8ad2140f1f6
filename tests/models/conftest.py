"""The real model, once for all tests, and folders that hold its files."""

from pathlib import Path

import pytest

from memory_mesh.models import model_files as built
from memory_mesh.models.local import LocalEmbedder
from memory_mesh.models.model_files import Built
from memory_mesh.models.weights import Places
from memory_mesh.settings import load
from memory_mesh.wiring.build import model_places

NO_PACKAGE = "no_package_of_this_name"


@pytest.fixture(scope="session")
def places() -> Places:
    """Where `make setup` put the model."""
    return model_places(load({}, environ={}))


@pytest.fixture(scope="session")
def model(places: Places) -> Built:
    found = built.read(places.made)
    assert found, f"{places.made} holds no model; `make setup` or `memory-mesh model fetch` puts it there"
    return found


@pytest.fixture(scope="session")
def local(places: Places, model: Built) -> LocalEmbedder:
    return LocalEmbedder(places, fetch=False)


@pytest.fixture
def empty(tmp_path: Path) -> Places:
    """A cache with nothing in it, and no package."""
    return Places(cache=tmp_path / "cache", package=NO_PACKAGE)
