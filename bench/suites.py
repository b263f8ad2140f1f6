"""Run the tests of LangGraph and of the OpenAI Agents SDK with our adapters in the place of the
classes that they test.

    python -m bench.suites --suites DIR [--only openai-agents] [options of pytest]

`DIR` has the unpacked source distributions, and in `deps` what their tests import:
docs/internals/suites.md says how to fill it. Prints why tests failed and how many passed.
A test that makes no adapter tests other code; it is left out.
"""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from memory_mesh import MemoryMesh

# The name of a suite, the folder of its distribution, and its modules of tests.
SUITES = (
    ("openai-agents", "openai_agents-*", "memory/test_session.py memory/test_session_limit.py"),
    ("langgraph", "langgraph_checkpoint-[0-9]*", "test_store.py"),
    ("langgraph-sqlite", "langgraph_checkpoint_sqlite-*",
     "test_store.py test_async_store.py test_ttl.py"),
)  # fmt: skip


def main() -> int:
    """Run each suite that is there in a process of its own; fails if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", choices=[name for name, *_ in SUITES], help="one suite")
    given, options = parser.parse_known_args()
    folder, failed = given.suites.absolute(), False
    parts = [Path(), Path("src"), folder / "deps"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(one.absolute()) for one in parts)}
    for name, pattern, modules in SUITES:
        for source in sorted(folder.glob(pattern)) if given.only in (None, name) else ():
            print(f"\n{source.name}", flush=True)
            command = [
                sys.executable, "-m", "pytest", "-p", "bench.suites", "-p", "no:cacheprovider",
                "-o", "addopts=", "-q", "--no-header", "-W", "ignore", *options,
                *(f"tests/{module}" for module in modules.split()),
            ]  # fmt: skip
            failed |= subprocess.run(command, cwd=source, env=env, check=False).returncode != 0
    return int(failed)


# --- a plugin of pytest ---

_made = list[str]()  # the adapters of the test that runs


def pytest_configure() -> None:
    """Replace the classes before the tests import them."""
    import agents
    from langgraph.store import memory, sqlite

    agents.SQLiteSession = _session_class()
    store, async_store = _store_classes()
    memory.InMemoryStore = sqlite.SqliteStore = store
    sqlite.AsyncSqliteStore = sqlite.aio.AsyncSqliteStore = async_store


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Forget the adapters of the test before."""
    _made.clear()
    return (yield)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Count a test without an adapter as one of other code."""
    if report.when == "call" and not _made:
        return "of other code", "-", "OTHER"
    return None


def _mesh(path: object, index: Mapping[str, Any] | None = None) -> MemoryMesh:
    _made.append(str(path))
    file: Any = path if Path(str(path)).is_absolute() else "memory://"
    embedder = _Embedder(index) if index else "none"
    return MemoryMesh(file, embedder=embedder)


class _Embedder:
    """The embeddings of a test."""

    model, window = "test", 1_000_000

    def __init__(self, index: Mapping[str, Any]) -> None:
        from langgraph.store.base import ensure_embeddings

        self._embeddings = ensure_embeddings(index["embed"])

    def count(self, text: str) -> int:
        return len(text)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embeddings.embed_documents(list(texts))
        return vectors


def _session_class() -> type:
    from memory_mesh.integrations.openai_agents import MemoryMeshSession

    class Session(MemoryMeshSession):
        def __init__(self, session_id: str, db_path: object = ":memory:", **options: Any) -> None:
            self._mesh = _mesh(db_path)
            super().__init__(self._mesh, session_id, **options)

        def close(self) -> None:
            self._mesh.close()

    return Session


def _store_classes() -> tuple[type, type]:
    from memory_mesh.integrations.langgraph import MemoryMeshStore

    class Store(MemoryMeshStore):
        def __init__(self, path: str = "", index: Any = None, ttl: Any = None) -> None:
            fields = (index or {}).get("fields") or (index or {}).get("text_fields") or ()
            super().__init__(_mesh(path, index), fields=fields, ttl=ttl)
            # Nothing has to be set up, and reads leave out what has expired.
            self.setup = self.start_ttl_sweeper = self.stop_ttl_sweeper = MagicMock()

        @classmethod
        @contextmanager
        def from_conn_string(
            cls, path: str, *, index: Any = None, ttl: Any = None, **_: Any
        ) -> Any:
            store = cls(path, index, ttl)
            with store._mesh:
                yield store

    class AsyncStore(Store):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.setup = self.start_ttl_sweeper = self.stop_ttl_sweeper = AsyncMock()

        async def sweep_ttl(self) -> int:  # type: ignore[override]
            return await asyncio.to_thread(super().sweep_ttl)

        @classmethod
        @asynccontextmanager
        async def from_conn_string(  # type: ignore[override]
            cls, path: str, **options: Any
        ) -> Any:
            with super().from_conn_string(path, **options) as store:
                yield store

    return Store, AsyncStore


if __name__ == "__main__":
    sys.exit(main())
