"""Learning: lessons, reflections, the recurring jobs that distill them, and the spending on language models."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.learning.heritage import HeritageChain, added_heritage
from memory_mesh.core.learning.jobs import LEASE_MS, MAX_STORED_RUNS, Heartbeat, JobRun, JobState, Outcome
from memory_mesh.core.learning.lessons import (
    CANDIDATE_TAG, DEFAULT_CONFIDENCE, LESSON_TAG, SEVERITIES, Distilled, LessonBlock, LessonContext, Skipped, by_confidence,
    by_severity, lesson_metadata, narrowest, narrowness, parse_lesson, pattern_id, severity_of,
)
from memory_mesh.core.learning.reflection import (
    ReflectionResult, SourceText, Statement, as_metadata, confidence, extract, group, is_grounded, least_trust, render, sentences,
    similar, without_sources,
)
from memory_mesh.core.learning.spending import Accounts, Caps, DailySpending, Price, Spending, totals

__all__ = [
    "CANDIDATE_TAG", "DEFAULT_CONFIDENCE", "LEASE_MS", "LESSON_TAG", "MAX_STORED_RUNS", "SEVERITIES", "Accounts", "Caps",
    "DailySpending", "Distilled", "Heartbeat", "HeritageChain", "JobRun", "JobState", "LessonBlock", "LessonContext",
    "Outcome", "Price", "ReflectionResult", "Skipped", "SourceText", "Spending", "Statement", "added_heritage",
    "as_metadata", "by_confidence", "by_severity", "confidence", "extract", "group", "is_grounded", "least_trust",
    "lesson_metadata", "narrowest", "narrowness", "parse_lesson", "pattern_id", "render", "sentences", "severity_of",
    "similar", "totals", "without_sources",
]
