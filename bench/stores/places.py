"""Where each store is measured, and the tests of each. Engines are started by the code that
tests start them with."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
_CONTRACT, _PROCESSES, _CRASH = (
    "tests/stores/test_contract.py", "tests/durability/test_processes.py",
    "tests/durability/test_crash.py",
)  # fmt: skip

# Of PostgreSQL, as docs/postgres.md advises for large stores.
_SETTINGS = "maintenance_work_mem = '1GB'\nmax_wal_size = '4GB'\n"


@dataclass(frozen=True, slots=True)
class Place:
    """The URL of an empty store, and the folder with its bytes; None: it is in memory."""

    url: str
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class StoreCase:
    """How a store is opened, and the arguments of pytest for the tests of its contract, of
    several processes and of crashes."""

    opened: Callable[[], AbstractContextManager[Place]]
    tests: Mapping[str, Sequence[str]] = field(default_factory=dict)
    max_size: int = 1_000_000  # a store for small collections is not measured beyond it


@contextmanager
def _in_memory() -> Iterator[Place]:
    yield Place("memory://")


@contextmanager
def _in_files(scheme: str) -> Iterator[Place]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Place(f"{scheme}:///{folder}/memory", Path(folder))


@contextmanager
def _in_postgresql() -> Iterator[Place]:
    _find_engines()
    from engines.postgres import Server  # type: ignore[import-not-found,unused-ignore]

    server = Server(settings=_SETTINGS, buffers="1GB")
    try:
        yield Place(server.url(server.database()), server.data / "base")
    finally:
        server.remove()


@contextmanager
def _in_bucket() -> Iterator[Place]:
    _find_engines()
    from engines.seaweed import KEYS, Cluster  # type: ignore[import-not-found,unused-ignore]

    os.environ.update(KEYS)
    cluster = Cluster()
    try:
        yield Place(cluster.url("memory"), cluster.folder)
    finally:
        cluster.stop()


@contextmanager
def _in_supabase() -> Iterator[Place]:
    _find_engines()
    from engines.postgres import Server  # type: ignore[import-not-found,unused-ignore]
    from engines.supabase import KEY, Project  # type: ignore[import-not-found,unused-ignore]

    os.environ["SUPABASE_KEY"] = KEY
    server = Server(settings=_SETTINGS, buffers="1GB")
    try:
        project = Project(server)
        try:
            yield Place(project.url, server.data / "base")
        finally:
            project.stop()
    finally:
        server.remove()


def _find_engines() -> None:
    """Make the code that starts engines importable."""
    if str(ROOT / "tests") not in sys.path:
        sys.path.insert(0, str(ROOT / "tests"))


def _of_files(contract: str, place: str) -> dict[str, Sequence[str]]:
    return {
        "contract": (_CONTRACT, "-k", contract), "processes": (_PROCESSES, "-k", place),
        "crash": (_CRASH, "-k", place),
    }  # fmt: skip


_POSTGRES: Mapping[str, Sequence[str]] = {
    "contract": ("tests/engines/test_postgres_contract.py",),
    "processes": ("tests/engines/test_postgres_faults.py", "-k", "processes"),
    "crash": (
        "tests/engines/test_postgres_faults.py", "tests/engines/test_postgres_replica.py",
        "-k", "killed or restart or lost or replica",
    ),
}  # fmt: skip
_BUCKET: Mapping[str, Sequence[str]] = {
    "contract": ("tests/engines/test_s3.py", "-k", "TestBucket or history"),
    "processes": ("tests/engines/test_s3.py", "-k", "writers or stalls"),
    "crash": (
        "tests/engines/test_s3.py",
        "tests/engines/test_moving.py",
        "-k",
        "(killed or goes_away) and not supabase",
    ),
}
_SUPABASE: Mapping[str, Sequence[str]] = {
    "contract": ("tests/engines/test_supabase.py", "-k", "TestSupabase or history"),
    "crash": (
        "tests/engines/test_supabase.py",
        "tests/engines/test_moving.py",
        "-k",
        "goes_away or (killed and supabase)",
    ),
}

CASES: Mapping[str, StoreCase] = {
    "memory": StoreCase(_in_memory, {"contract": (_CONTRACT, "-k", "TestRam")}),
    "json": StoreCase(
        partial(_in_files, "json"), _of_files("TestJson", "memory.json"), max_size=10_000
    ),
    "sqlite": StoreCase(partial(_in_files, "sqlite"), _of_files("TestSqlite", "memory.db")),
    "lancedb": StoreCase(partial(_in_files, "lancedb"), _of_files("TestLance", "memory.lance")),
    "postgresql": StoreCase(_in_postgresql, _POSTGRES),
    "supabase": StoreCase(_in_supabase, _SUPABASE, max_size=100_000),
    "s3": StoreCase(_in_bucket, _BUCKET, max_size=10_000),
}
