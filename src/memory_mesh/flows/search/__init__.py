"""Read memories: by id, newest first, by a query, or counted."""
