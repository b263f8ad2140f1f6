"""The PostgreSQL store."""

from memory_mesh.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
