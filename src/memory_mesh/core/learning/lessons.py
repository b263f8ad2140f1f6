"""Lessons: rules learnt from failures, stored as memories of their own type.

A lesson is identified by its pattern: the name of the error and where the rule applies. Of two
lessons of one pattern the more confident one counts.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Self

from memory_mesh.core.audit.blocks import check_lesson, parse
from memory_mesh.core.errors import InvalidInput, fraction, shown
from memory_mesh.core.intake import IMPORTANCE
from memory_mesh.core.language.safety import Source
from memory_mesh.core.model import BY_NAME, Memory, MemoryType, Value, fault
from memory_mesh.core.text import short_repr

LESSON_TAG = "#lesson_learned"
CANDIDATE_TAG = "#lesson_learned_candidate"
SEVERITIES = ("critical", "high", "medium", "low")
DEFAULT_CONFIDENCE = 0.7
MAX_BLOCK_LENGTH = 40_000  # of a block of another program: room for nine texts
NOT_RECORDED = "not recorded"
# The key of the metadata, and of the provenance, of a lesson that was read from a block.
WIRE = "wire_format"
_MAX_TEXT_LENGTH = 4000
_PATTERN_ID = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonContext:
    """A failure and the rule that follows from it."""

    __repr__ = short_repr

    situation: str  # what happened
    error_pattern: str  # a stable name of the error
    oversight: str  # what was missed
    fix: str  # how it was resolved
    preventative_rule: str  # what to do or to avoid in future
    severity: str
    applicable_scope: str  # when and where the rule applies
    inverse_lesson: str | None = None  # what succeeds instead
    confidence: float = DEFAULT_CONFIDENCE  # that the rule is right

    @property
    def pattern_id(self) -> str:
        return pattern_id(self.error_pattern, self.applicable_scope)

    @property
    def text(self) -> str:
        """The content of the lesson's memory. The rule comes first, because searches look for
        it."""
        instead = f"\nInstead: {self.inverse_lesson}" if self.inverse_lesson else ""
        return (
            f"{self.preventative_rule}\n\nApplies to: {self.applicable_scope}\n"
            f"Situation: {self.situation}\nOversight: {self.oversight}\nFix: {self.fix}{instead}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonBlock:
    """A stored lesson with the text of its audit block."""

    __repr__ = short_repr

    lesson_id: str
    pattern_id: str
    severity: str
    preventative_rule: str
    rule_confidence: float
    applicable_scope: str
    wire_format: str | None = field(repr=False)  # the text of the block; None: no block was written
    memory_id: str
    # The estimated probability that it is relevant to the query; None without one. The same lesson
    # is equal whatever the query.
    score: float | None = field(default=None, compare=False)

    @classmethod
    def of(cls, memory: Memory, wire_format: str | None, score: float | None = None) -> Self:
        """Read a lesson from its memory. A lesson that was stored as a plain memory may lack
        fields; these are empty.

        The text of a block that another store wrote is kept in the metadata.
        """
        texts = {
            name: str(memory.metadata.get(name) or "")
            for name in ("lesson_id", "preventative_rule", "applicable_scope")
        }
        return cls(
            **texts, pattern_id=memory.lesson_pattern_id or "", severity=severity_of(memory),
            memory_id=memory.id, rule_confidence=memory.confidence or 0.0,
            wire_format=wire_text(memory) or wire_format, score=score,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A candidate that gave no lesson, and why."""

    __repr__ = short_repr

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """The result of a distillation cycle, and the lessons for an agent's next session."""

    __repr__ = short_repr

    scanned: int = 0  # blocks of the last day
    candidates: int = 0
    learnt: tuple[LessonBlock, ...] = ()
    known: int = 0  # candidates whose pattern already has a lesson that is as good
    skipped: tuple[Skipped, ...] = ()
    inject: tuple[LessonBlock, ...] = ()
    # Lessons from memories that the caller may not see; only their readers see them.
    unseen: int = 0


_FIELDS = {field.name for field in fields(LessonContext)}
_TEXTS = ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope")


def parse_lesson(given: object) -> LessonContext:
    """Check the caller's lesson and return it, or raise `InvalidInput`."""
    if isinstance(given, LessonContext):
        given = {name: getattr(given, name) for name in _FIELDS}
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"the lesson is {shown(given)}",
            expected=f"an object with {', '.join(_TEXTS)} and severity",
        )
    if unknown := sorted(set(map(str, given)) - _FIELDS):
        raise InvalidInput(
            f"unknown field {shown(unknown[0])} in the lesson",
            expected=f"of {', '.join(sorted(_FIELDS))}",
        )
    if missing := [name for name in (*_TEXTS, "severity") if given.get(name) is None]:
        raise InvalidInput(f"the lesson has no {', '.join(missing)}", expected="all of them")
    texts = {name: _check_text(given[name], name) for name in _TEXTS}
    severity, inverse = given.get("severity"), given.get("inverse_lesson")
    if severity not in SEVERITIES:
        raise InvalidInput(
            f"the lesson's severity is {shown(severity)}",
            expected=f"one of {', '.join(SEVERITIES)}",
        )
    return LessonContext(
        **texts,
        severity=str(severity),
        inverse_lesson=None if inverse is None else _check_text(inverse, "inverse_lesson"),
        confidence=fraction("the lesson's confidence", given.get("confidence", DEFAULT_CONFIDENCE)),
    )


def _check_text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or fault(BY_NAME["content"], value):
        raise InvalidInput(
            f"the lesson's {name} is {shown(value)}",
            expected="a non-empty text without NUL or broken characters",
        )
    if len(value) > _MAX_TEXT_LENGTH:
        raise InvalidInput(
            f"the lesson's {name} has {len(value):,} characters",
            expected=f"at most {_MAX_TEXT_LENGTH:,}",
        )
    return value


def pattern_id(error_pattern: str, applicable_scope: str) -> str:
    """Return the id of a pattern: 16 hex digits. Such an id, which is what a block has, stays as
    it is."""
    if _PATTERN_ID.fullmatch(error_pattern):
        return error_pattern
    return sha256((error_pattern + applicable_scope).encode()).hexdigest()[:16]


def is_block(text: object) -> bool:
    """Return whether a text begins as a block."""
    return isinstance(text, str) and text.startswith("agent: ") and len(text) <= MAX_BLOCK_LENGTH


def read_block(text: str) -> LessonContext:
    """Return the lesson of a text that is one whole block of RFC-0011, §3.5; raise
    `InvalidInput` for another text."""
    if len(text) > MAX_BLOCK_LENGTH:
        raise InvalidInput(
            f"the block has {len(text):,} characters", expected=f"at most {MAX_BLOCK_LENGTH:,}"
        )
    block = parse(text)
    check_lesson(block)
    pairs = {str(key): str(value) for key, value in (*block.context, *block.output, *block.meta)}
    inverse = pairs.get("inverse_lesson", "none")
    given = {
        "situation": pairs["original_context"], "error_pattern": pairs["error_pattern"],
        "severity": pairs["severity"],
        "oversight": pairs.get("oversight_description") or NOT_RECORDED,
        "fix": pairs.get("rationale") or NOT_RECORDED,
        "preventative_rule": pairs["preventative_rule"],
        "applicable_scope": pairs["applicability_scope"],
        "confidence": float(pairs["rule_confidence"]),
        "inverse_lesson": None if inverse in ("", "none") else inverse,
    }  # fmt: skip
    return parse_lesson(given)


def wire_text(memory: Memory) -> str | None:
    """Return the text of the block that another store wrote for a lesson."""
    text = memory.metadata.get(WIRE)
    return text if isinstance(text, str) else None


def is_received(metadata: Mapping[str, Value]) -> bool:
    """Return whether a lesson with this metadata was read from the block of another store."""
    provenance = metadata.get("provenance")
    return isinstance(provenance, dict) and provenance.get("extracted_by") == WIRE


def severity_of(memory: Memory) -> str:
    """Return the severity of a lesson; without a valid one it is medium."""
    severity = memory.metadata.get("severity")
    return str(severity) if severity in SEVERITIES else "medium"


def by_severity(lessons: Iterable[Memory]) -> list[Memory]:
    """Sort by severity, the worst first, and then the newest first."""
    newest = sorted(lessons, key=_age, reverse=True)
    return sorted(newest, key=lambda memory: SEVERITIES.index(severity_of(memory)))


def by_confidence(lessons: Iterable[Memory]) -> list[Memory]:
    """Sort by confidence, the highest first, and then the oldest first."""
    return sorted(sorted(lessons, key=_age), key=lambda memory: -(memory.confidence or 0.0))


def _age(memory: Memory) -> tuple[str, int, str]:
    return memory.created_at, memory.number, memory.id


def lesson_metadata(context: LessonContext, source: Source | None = None) -> dict[str, Value]:
    """Return the metadata of a lesson's memory. `source` is its provenance, if it does not come
    from the caller."""
    texts: dict[str, Value] = {name: getattr(context, name) for name in _TEXTS}
    optional: dict[str, Value] = (
        {"inverse_lesson": context.inverse_lesson} if context.inverse_lesson else {}
    )
    optional |= {"provenance": {"source": source.value}} if source else {}
    return {
        **texts, **optional, "severity": context.severity, "confidence": context.confidence,
        "type": MemoryType.LESSON.value, "tags": [LESSON_TAG],
        "importance": IMPORTANCE[context.severity],
    }  # fmt: skip
