"""A context for each store, with fakes for time, ids and waiting."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_mesh.core.model import Reader
from memory_mesh.core.options import Options
from memory_mesh.flows.context import Context
from memory_mesh.index import LocalIndex
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import FakeClock, no_pause, seeded_ids


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.one_in(4))])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Context]:
    store = open_store(
        "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'memory.db'}"
    )
    yield Context(
        store=store, index=LocalIndex(store, language="english"),
        clock=FakeClock(), ids=seeded_ids(), reader=Reader("u", "ann"), pause=no_pause,
        options=Options(audit_recalls=False),
    )  # fmt: skip
    store.close()
