"""What a PostgreSQL server lacks is named in one line, with the command that mends it.

No server runs here: a connection that refuses what such a server refuses stands for one.
"""

from types import SimpleNamespace

import psycopg
import pytest

from memory_mesh.core.errors import StoreError, StoreReadOnly, StoreUnavailable
from memory_mesh.stores.postgres.store import PostgresStore, check_server, no_pgvector

WHERE = "postgresql://db.example.org/memory"


def test_a_server_that_is_too_old_is_named_with_its_version() -> None:
    with pytest.raises(StoreUnavailable) as raised:
        check_server(WHERE, 15_00_04)
    assert str(raised.value) == (
        f"{WHERE} is PostgreSQL 15; expected 16 or later; upgrade the server with `pg_upgrade`, or "
        "name another one"
    )
    for version in (16_00_00, 18_00_01):
        check_server(WHERE, version)


@pytest.mark.parametrize(
    ("error", "kind", "command"),
    [
        (
            psycopg.errors.FeatureNotSupported,
            StoreUnavailable,
            "apt install postgresql-17-pgvector",
        ),
        (psycopg.errors.UndefinedFile, StoreUnavailable, "apt install postgresql-17-pgvector"),
        (psycopg.errors.InsufficientPrivilege, StoreReadOnly, "CREATE EXTENSION vector"),
        (psycopg.errors.LockNotAvailable, StoreError, "try again"),
    ],
)
def test_a_missing_pgvector_is_named_with_the_command_that_adds_it(
    error: type[psycopg.Error], kind: type[StoreError], command: str
) -> None:
    found = no_pgvector(WHERE, 17_00_02, error('extension "vector" is not available'))
    assert isinstance(found, kind)
    assert command in str(found)
    assert "\n" not in str(found)


class Refusing:
    """A connection to an empty database without pgvector."""

    def __init__(self, version: int) -> None:
        self.info = SimpleNamespace(server_version=version)

    def execute(self, query: object, _: object = None) -> SimpleNamespace:
        if "EXTENSION" in str(query):
            raise psycopg.errors.FeatureNotSupported('extension "vector" is not available')
        return SimpleNamespace(fetchone=lambda: None)


@pytest.mark.parametrize(("version", "text"), [(15_00_04, "16 or later"), (16_00_01, "pgvector")])
def test_tables_are_not_created_on_a_server_that_lacks_something(version: int, text: str) -> None:
    store = PostgresStore(WHERE)
    with pytest.raises(StoreUnavailable, match=text):
        store._upgrade(Refusing(version))  # type: ignore[arg-type]
    store.close()
