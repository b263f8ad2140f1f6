"""Folders of files that the memory follows: texts and skills."""
