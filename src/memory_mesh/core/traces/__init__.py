"""Traces: what was executed, how it went, and what to learn from it."""

from memory_mesh.core.traces.schema import (
    DECISION,
    DONE,
    OUTCOMES,
    STATUSES,
    Experience,
    PatternMatch,
    Step,
    Trace,
    checked_experience,
    checked_trace,
    cut_at,
    digest,
    documents,
    normalised,
    read_experiences,
    read_traces,
    summarised_goal,
    with_texts,
    word_similarity,
)  # fmt: skip

__all__ = [
    "DECISION", "DONE", "OUTCOMES", "STATUSES", "Experience", "PatternMatch", "Step", "Trace", "checked_experience",
    "checked_trace", "cut_at", "digest", "documents", "normalised", "read_experiences", "read_traces", "summarised_goal",
    "with_texts", "word_similarity",
]  # fmt: skip
