"""The Supabase store: the tables of the PostgreSQL store, over the HTTP interface of PostgREST."""

from memory_mesh.stores.supabase.store import SupabaseStore

__all__ = ["SupabaseStore"]
