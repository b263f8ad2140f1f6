"""Notes: Markdown files with frontmatter, and which of them belong into a prompt."""

from memory_mesh.core.notes.files import (
    IMPORTANCES,
    MAX_BYTES,
    SEPARATOR,
    Appended,
    Fault,
    Note,
    NoteAgent,
    Notes,
    Synced,
    file_name,
    read_agent,
    read_note,
    read_sections,
)
from memory_mesh.core.notes.relevance import (
    MatchContext,
    Relevance,
    find_relevant,
    format_for_prompt,
    matching_pattern,
    rate,
    truncated,
)

__all__ = [
    "IMPORTANCES", "MAX_BYTES", "SEPARATOR", "Appended", "Fault", "MatchContext", "Note",
    "NoteAgent", "Notes", "Relevance", "Synced", "file_name", "find_relevant", "format_for_prompt",
    "matching_pattern", "rate", "read_agent", "read_note", "read_sections", "truncated",
]  # fmt: skip
