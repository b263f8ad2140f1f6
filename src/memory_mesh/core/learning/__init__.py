"""Learning from failures: lessons, the recurring jobs that distill them, and the spending on language models."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.learning.jobs import LEASE_MS, MAX_STORED_RUNS, Heartbeat, JobRun, JobState, Outcome
from memory_mesh.core.learning.lessons import (
    CANDIDATE_TAG, DEFAULT_CONFIDENCE, SEVERITIES, Distilled, LessonBlock, LessonContext, Skipped, by_confidence, by_severity,
    lesson_metadata, narrowest, narrowness, parse_lesson, pattern_id, severity_of,
)
from memory_mesh.core.learning.spending import Accounts, Caps, DailySpending, Price, Spending, totals

__all__ = [
    "CANDIDATE_TAG", "DEFAULT_CONFIDENCE", "LEASE_MS", "MAX_STORED_RUNS", "SEVERITIES", "Accounts", "Caps", "DailySpending",
    "Distilled", "Heartbeat", "JobRun", "JobState", "LessonBlock", "LessonContext", "Outcome", "Price", "Skipped", "Spending",
    "by_confidence", "by_severity", "lesson_metadata", "narrowest", "narrowness", "parse_lesson", "pattern_id", "severity_of",
    "totals",
]
