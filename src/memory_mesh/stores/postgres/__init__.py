"""The PostgreSQL store: the tables of neolata, searched by SQL functions in the database."""

from memory_mesh.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
