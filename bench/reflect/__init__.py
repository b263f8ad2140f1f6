"""Measure how many facts of a reference the reflections without a language model contain."""
