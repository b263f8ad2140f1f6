"""Formats of files: our own export and archive, and those of other memory programs."""
