"""The commands of a PostgreSQL store: create its tables, let roles use them, and distribute them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.text import shown_url
from memory_mesh.settings import load
from memory_mesh.stores.registry import postgres_store

if TYPE_CHECKING:
    from memory_mesh.stores.postgres import PostgresStore


def prepare(url: str | None) -> str:
    """Create the tables if they are missing, and return the URL without its password."""
    with _opened(url) as store:
        store.prepare()
        return shown_url(store.url)


def grant(url: str | None, role: str, *, scope: str, user_id: str | None, agent_id: str | None) -> tuple[str, list[str]]:
    """Let a role use the tables. Return the URL without its password, and the statements that an administrator should run."""
    with _opened(url) as store:
        from memory_mesh.stores.postgres import admin

        return shown_url(store.url), admin.grant(store, role, scope=scope, user_id=user_id, agent_id=agent_id)


def distribute(url: str | None) -> str:
    """Distribute the tables with Citus, and return the URL without its password."""
    with _opened(url) as store:
        from memory_mesh.stores.postgres import admin

        admin.distribute(store)
        return shown_url(store.url)


@contextmanager
def _opened(url: str | None) -> "Iterator[PostgresStore]":
    settings = load({"store": url})
    if not settings.store_url.startswith(("postgresql:", "postgres:")):
        what = f"store {shown(shown_url(settings.store_url), max_length=120)} is not a PostgreSQL store"
        raise InvalidInput(what, expected="--store postgresql://user@host/database")
    with closing(postgres_store()(settings.store_url, busy_seconds=settings.options.busy_seconds)) as store:
        yield store
