"""The classes that callers use, and how one is built from settings."""
