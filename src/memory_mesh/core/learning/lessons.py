"""Lessons: what a failure taught, checked, and kept as a memory of its own kind.

A lesson is known by its pattern: the error's name and where the rule applies. Of two lessons of one pattern the surer one counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Self

from memory_mesh.core.checks import fraction
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake.drafts import IMPORTANCE
from memory_mesh.core.model.columns import BY_NAME, Value, fault
from memory_mesh.core.model.records import Memory
from memory_mesh.core.model.scope import MemoryType, Reach, reach_of
from memory_mesh.core.safety import Source

TAG = "#lesson_learned"
CANDIDATE = "#lesson_learned_candidate"
SEVERITIES = ("critical", "high", "medium", "low")  # the worst first
USUAL_CONFIDENCE = 0.7
_LONGEST = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonContext:
    """What happened, and what follows from it."""

    situation: str  # what happened
    error_pattern: str  # a name for it that stays the same
    oversight: str  # what was missed
    fix: str  # how it was resolved
    preventative_rule: str  # what to do or leave in future
    severity: str
    applicable_scope: str  # when and where the rule applies
    inverse_lesson: str | None = None  # what succeeds instead
    confidence: float = USUAL_CONFIDENCE  # that the rule is right

    @property
    def pattern_id(self) -> str:
        return pattern_id(self.error_pattern, self.applicable_scope)

    @property
    def text(self) -> str:
        """The lesson as a memory says it: the rule first, for that is what is looked for."""
        lines = [
            self.preventative_rule,
            "",
            f"Applies to: {self.applicable_scope}",
            f"Situation: {self.situation}",
            f"Oversight: {self.oversight}",
            f"Fix: {self.fix}",
        ]
        return "\n".join([*lines, *([f"Instead: {self.inverse_lesson}"] if self.inverse_lesson else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonBlock:
    """A lesson as callers hold it, with the block that told of it."""

    lesson_id: str
    pattern_id: str
    severity: str
    preventative_rule: str
    rule_confidence: float
    applicable_scope: str
    wire_format: str | None  # the block's text; None where none was written
    memory_id: str

    @classmethod
    def of(cls, memory: Memory, wire_format: str | None) -> Self:
        """A lesson from its memory. One that was stored by hand says less; what it does not say is empty."""
        said = {name: str(memory.metadata.get(name) or "") for name in ("lesson_id", "preventative_rule", "applicable_scope")}
        return cls(
            **said,
            pattern_id=memory.lesson_pattern_id or "",
            severity=severity_of(memory),
            rule_confidence=memory.confidence if memory.confidence is not None else 0.0,
            wire_format=wire_format,
            memory_id=memory.id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A candidate that gave no lesson, and why."""

    memory_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """What a cycle did, and which lessons an agent should start its next session with."""

    scanned: int = 0  # blocks of the last day
    candidates: int = 0
    learnt: tuple[LessonBlock, ...] = ()
    known: int = 0  # candidates whose pattern has a lesson that is as good
    skipped: tuple[Skipped, ...] = ()
    inject: tuple[LessonBlock, ...] = ()
    unseen: int = 0  # learnt from what only others may see, and told to them alone


_FIELDS = {field.name for field in fields(LessonContext)}
_TEXTS = ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope")


def read_context(given: object) -> LessonContext:
    """What a caller gave, checked."""
    if isinstance(given, LessonContext):
        given = {name: getattr(given, name) for name in _FIELDS}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the lesson is {shown(given)}", expected=f"an object with {', '.join(_TEXTS)} and severity")
    if unknown := sorted(set(map(str, given)) - _FIELDS):
        raise InvalidInput(f"a lesson has no field {unknown[0]!r:.60}", expected=f"of {', '.join(sorted(_FIELDS))}")
    texts = {name: _text(given.get(name), name) for name in _TEXTS}
    inverse = given.get("inverse_lesson")
    return LessonContext(
        **texts,
        severity=_severity(given.get("severity")),
        inverse_lesson=None if inverse is None else _text(inverse, "inverse_lesson"),
        confidence=fraction("the lesson's confidence", given.get("confidence", USUAL_CONFIDENCE)),
    )


def pattern_id(error_pattern: str, applicable_scope: str) -> str:
    """The name of a pattern: 16 hex digits."""
    return sha256((error_pattern + applicable_scope).encode()).hexdigest()[:16]


def severity_of(memory: Memory) -> str:
    """How bad it was; a lesson that does not say counts as medium."""
    said = memory.metadata.get("severity")
    return str(said) if said in SEVERITIES else "medium"


def worst_first(lessons: Iterable[Memory]) -> list[Memory]:
    """By severity, and among equals the newest first."""
    newest = sorted(lessons, key=lambda memory: (memory.created_at, memory.number, memory.id), reverse=True)
    return sorted(newest, key=lambda memory: SEVERITIES.index(severity_of(memory)))


def best_first(lessons: Iterable[Memory]) -> list[Memory]:
    """By how sure the rule is, and among equals the oldest first: it was there before."""
    oldest = sorted(lessons, key=lambda memory: (memory.created_at, memory.number, memory.id))
    return sorted(oldest, key=lambda memory: -(memory.confidence or 0.0))


def notes(context: LessonContext, source: Source | None = None) -> dict[str, Value]:
    """The metadata of a lesson's memory; `source` is where it comes from, if not from whoever gave it."""
    said: dict[str, Value] = {name: getattr(context, name) for name in _TEXTS}
    optional: dict[str, Value] = {"inverse_lesson": context.inverse_lesson} if context.inverse_lesson else {}
    optional |= {"provenance": {"source": source.value}} if source else {}
    return {
        **said, **optional, "severity": context.severity, "confidence": context.confidence,
        "type": MemoryType.LESSON.value, "tags": [TAG], "importance": IMPORTANCE[context.severity],
    }  # fmt: skip


def narrowest(sources: Sequence[Memory]) -> Memory | None:
    """The memory that reaches least far of those that a lesson is drawn from; None where all reach everybody."""
    narrow = max(sources, key=narrowness, default=None)
    return narrow if narrow and narrowness(narrow) else None


def narrowness(memory: Memory) -> int:
    """How few may see a memory; 0 is everybody."""
    return list(Reach).index(reach_of(memory.memory_type, memory.reach))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip() or fault(BY_NAME["content"], value):
        raise InvalidInput(f"the lesson's {name} is {shown(value)}", expected="a non-empty text without NUL or broken characters")
    if len(value) > _LONGEST:
        raise InvalidInput(f"the lesson's {name} has {len(value):,} characters", expected=f"at most {_LONGEST:,}")
    return value


def _severity(value: object) -> str:
    if value not in SEVERITIES:
        raise InvalidInput(f"the lesson's severity is {shown(value)}", expected=f"one of {', '.join(SEVERITIES)}")
    return str(value)
