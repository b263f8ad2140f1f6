"""Learning: lessons, reflections, skills, the recurring jobs that distill lessons, and the spending on language models."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.learning.reflection import HeritageChain, added_heritage
from memory_mesh.core.learning.jobs import LEASE_MS, MAX_STORED_RUNS, Heartbeat, JobRun, JobState, Outcome
from memory_mesh.core.learning.lessons import (
    CANDIDATE_TAG,
    DEFAULT_CONFIDENCE,
    LESSON_TAG,
    MAX_BLOCK_LENGTH,
    NOT_RECORDED,
    SEVERITIES,
    WIRE,
    Distilled,
    LessonBlock,
    LessonContext,
    Skipped,
    by_confidence,
    by_severity,
    is_block,
    is_received,
    lesson_metadata,
    parse_lesson,
    pattern_id,
    read_block,
    severity_of,
    wire_text,
)
from memory_mesh.core.learning.reflection import (
    ReflectionResult,
    SourceText,
    Statement,
    as_metadata,
    confidence,
    contradictions,
    extract,
    group,
    is_grounded,
    least_trust,
    render,
    sentences,
    similar,
    without_sources,
)
from memory_mesh.core.learning.reflection import DerivedScope, by_project
from memory_mesh.core.learning.skills import (
    EXTENSIONS,
    FILE,
    PRUNED_BELOW,
    USE,
    PruneResult,
    ReliabilityUpdate,
    SkillRecord,
    SkillResult,
    default_name,
    final_score,
    first_sentence,
    first_use,
    is_pruned,
    is_skill_text,
    keyword_fractions,
    keyword_score,
    lesson_text,
    read_skill,
    reliability_of,
    searched_texts,
    skill_files,
    skill_fingerprint,
    used,
)
from memory_mesh.core.learning.jobs import Accounts, Caps, DailySpending, Price, Spending, totals

__all__ = [
    "CANDIDATE_TAG", "DEFAULT_CONFIDENCE", "EXTENSIONS", "FILE", "LEASE_MS", "LESSON_TAG", "MAX_BLOCK_LENGTH",
    "MAX_STORED_RUNS", "NOT_RECORDED", "PRUNED_BELOW", "SEVERITIES", "USE", "WIRE", "Accounts", "Caps", "DailySpending",
    "DerivedScope", "Distilled", "Heartbeat", "HeritageChain", "JobRun", "JobState", "LessonBlock", "LessonContext",
    "Outcome", "Price", "PruneResult", "ReflectionResult", "ReliabilityUpdate", "SkillRecord", "SkillResult", "Skipped",
    "SourceText", "Spending", "Statement", "added_heritage", "as_metadata", "by_confidence", "by_project", "by_severity",
    "confidence", "contradictions", "default_name", "extract", "final_score", "first_sentence", "first_use", "group",
    "is_block", "is_grounded", "is_pruned", "is_received", "is_skill_text", "keyword_fractions", "keyword_score",
    "least_trust", "lesson_metadata", "lesson_text", "parse_lesson", "pattern_id", "read_block", "read_skill",
    "reliability_of", "render", "searched_texts", "sentences", "severity_of", "similar", "skill_files", "skill_fingerprint",
    "totals", "used", "wire_text", "without_sources",
]
