"""Exports, imports, backups and whole stores."""
