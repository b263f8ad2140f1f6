"""Notes: Markdown files with frontmatter that people and agents write, and that are injected into prompts when they fit."""

from memory_mesh.core.notes.files import IMPORTANCES, SEPARATOR, Fault, Note, file_name, read_sections
from memory_mesh.core.notes.patterns import matching_pattern
from memory_mesh.core.notes.relevance import MatchContext, Relevance, find_relevant, format_for_prompt, rate, truncated

__all__ = [
    "IMPORTANCES", "SEPARATOR", "Fault", "MatchContext", "Note", "Relevance", "file_name", "find_relevant", "format_for_prompt",
    "matching_pattern", "rate", "read_sections", "truncated",
]  # fmt: skip
