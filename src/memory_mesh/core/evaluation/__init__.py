"""Evaluation of a user's own store: the questions are in `questions`, the figures and the report here."""

from memory_mesh.core.evaluation.report import (
    Answered,
    Evaluation,
    Finding,
    Nothing,
    Question,
    Retrieval,
    latency,
    nothing,
    retrieval,
)

__all__ = ["Answered", "Evaluation", "Finding", "Nothing", "Question", "Retrieval", "latency", "nothing", "retrieval"]
