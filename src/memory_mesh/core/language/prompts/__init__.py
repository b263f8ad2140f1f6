"""Prompts for language models, each beside the type and the reader of its answer."""
