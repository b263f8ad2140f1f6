"""Folders of files that the memory follows."""
