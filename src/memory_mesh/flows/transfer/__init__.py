"""Move memories: exports, imports, backups, and whole stores."""
