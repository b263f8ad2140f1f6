"""The local search index, derived from any store."""
