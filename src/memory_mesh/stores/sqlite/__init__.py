"""The SQLite store: one file, several processes, one transaction for each change."""
