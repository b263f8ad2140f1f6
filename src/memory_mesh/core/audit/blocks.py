"""The blocks that tell of searches, reflections and lessons, as the document's examples write them.

The examples of lesson and reflection have no place for the id of the memory that holds them. So a lesson or a reflection bears
its memory's id under another prefix (`named_after`), and whoever reads the text knows the memory (`subject`): a block cannot be
turned to another memory without breaking its seal, and an erasure finds every block that quotes what is erased.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_mesh.core.audit.wire import LEVELS, PREVIEW, Constraint, Seal, Yamo, agent_name
from memory_mesh.core.checks import fraction
from memory_mesh.core.errors import InvalidInput, shown

RECALL, CHECKPOINT = "recall_relevant_memories", "seal_recalls_kept_long_enough"
REFLECT, SYNTHESIZE = "synthesize_beliefs_from_memories", "synthesize_knowledge_from_memories"
LESSON, REFLECTOR = "distill_wisdom_from_execution", "SubconsciousReflector"

_NEEDED = {
    "context": ("original_context", "error_pattern", "severity"),
    "output": ("lesson_id", "preventative_rule", "rule_confidence"),
    "meta": ("applicability_scope",),
}
_CONFIDENCES = {"constraints": "hypothesis_confidence", "output": "rule_confidence", "meta": "confidence"}
_SHARE = re.compile(r"0(?:\.[0-9]+)?|1(?:\.0+)?")

_DIGITS = 4
_MEMORY, _WHOLE = "mem_", "of_"
_PATTERN_ID = re.compile(r"[0-9a-f]{16}")
_NAMED = re.compile(r"^  (memory_id|lesson_id|reflection_id|synthesis_id);(.*);$", flags=re.MULTILINE)
# A number of thousands of digits would be an error of its own, and no chain is that long.
_THROUGH = re.compile(r"^  through_block;([0-9]{1,18}) ([0-9a-f]{64});$", flags=re.MULTILINE)


def share(number: float) -> str:
    """A confidence as text: `0.7`, `0.85`, `1.0`; four digits at most, never an exponent."""
    return str(round(fraction("the confidence", number), _DIGITS) + 0.0)  # the sum makes a negative zero a plain one


def named_after(memory_id: str, prefix: str) -> str:
    """The id of a lesson or reflection: `mem_1760000000000_3fa9c2` makes `lesson_1760000000000_3fa9c2`. An id of another shape,
    as a caller's own source of ids may give, is kept whole: `lesson_of_7`."""
    usual = memory_id.startswith(_MEMORY) and not memory_id.startswith(_MEMORY + _WHOLE)
    return f"{prefix}_{memory_id.removeprefix(_MEMORY)}" if usual else f"{prefix}_{_WHOLE}{memory_id}"


def subject(text: str) -> str | None:
    """The memory that a block's text is about; a reflection that was not kept is about none."""
    named = _NAMED.search(text)
    if named is None or named.group(1) == "memory_id":
        return named.group(2) if named else None
    return _memory_of(named.group(2)) if "\n  content_hash;" in text else None


def recall(seal: Seal, *, agent: str, query: str, limit: int, filter: str | None, at: str, results: int, top_score: float) -> str:
    """Memories were searched for."""
    top = f"{top_score if results else 0.0:.2f}"
    return Yamo(
        agent=agent_name(agent),
        intent=RECALL,
        context=[("query", query), ("limit", limit), ("filter", _or_none(filter)), ("timestamp", at)],
        output=[("results_found", results), ("top_score", top)],
        meta=[
            ("rationale", "Retrieved most semantically relevant memories for current context"),
            ("confidence", top),
            *seal.pairs(),
        ],
        log=["memory_recalled", "timestamp", at, "query", query, "results", results],
    ).text()


def checkpoint(seal: Seal, *, agent: str, at: str, through: int, through_hash: str, removed: int) -> str:
    """Recall blocks were kept long enough and are gone, up to this one: what follows it is still a whole chain."""
    return Yamo(
        agent=agent_name(agent),
        intent=CHECKPOINT,
        context=[("timestamp", at)],
        output=[("recalls_sealed", removed), ("through_block", f"{through} {through_hash}")],
        meta=[("rationale", "Recalls removed at the end of their retention"), ("confidence", "1.0"), *seal.pairs()],
        log=["recalls_sealed", "timestamp", at, "through", through, "removed", removed],
    ).text()


def sealed_through(text: str) -> tuple[int, str] | None:
    """The last removed block (number, hash) that a checkpoint's text names."""
    named = _THROUGH.findall(text) if f"\nintent: {CHECKPOINT};\n" in text else []
    return (int(named[0][0]), named[0][1]) if len(named) == 1 else None


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The words in which a reflection and a synthesis differ."""

    intent: str
    id_name: str
    rationale: str
    logged: str


_REFLECTION = _Drawn(REFLECT, "reflection_id", "Aggregated high-signal patterns from recent memory", "memory_reflected")
# The document has no example of it, so it is the reflection's in other words.
_SYNTHESIS = _Drawn(SYNTHESIZE, "synthesis_id", "Combined what related memories say", "memory_synthesized")


def reflect(
    seal: Seal, *, agent: str, topic: str | None, source_count: int, at: str, reflection_id: str, insight: str, confidence: float,
    memory_id: str | None = None,
) -> str:  # fmt: skip
    """Beliefs were drawn from memories."""
    _must_fit(reflection_id, memory_id)
    return _drawn(_REFLECTION, seal, agent, _or_none(topic), source_count, at, reflection_id, insight, share(confidence))


def synthesize(
    seal: Seal, *, agent: str, topic: str | None, source_count: int, at: str, synthesis_id: str, insight: str, confidence: float,
    memory_id: str | None = None,
) -> str:  # fmt: skip
    """Knowledge was put together from memories."""
    _must_fit(synthesis_id, memory_id)
    return _drawn(_SYNTHESIS, seal, agent, _or_none(topic), source_count, at, synthesis_id, insight, share(confidence))


def _drawn(
    words: _Drawn, seal: Seal, agent: str, topic: str, sources: int, at: str, id_: str, insight: str, sure: str
) -> str:  # fmt: skip
    return Yamo(
        agent=agent_name(agent),
        intent=words.intent,
        context=[("topic", topic), ("source_count", sources), ("timestamp", at)],
        output=[(words.id_name, id_), ("insight_preview", insight[:PREVIEW]), ("confidence", sure)],
        meta=[("rationale", words.rationale), ("confidence", sure), *seal.pairs()],
        log=[words.logged, "timestamp", at, "topic", topic, "sources", sources],
    ).text()


def lesson(
    seal: Seal, *, agent: str, situation: str, pattern_id: str, severity: str, at: str, hypothesis_confidence: float,
    lesson_id: str, oversight: str, rule: str, rule_confidence: float, rationale: str, scope: str, inverse: str | None,
    confidence: float, memory_id: str,
) -> str:  # fmt: skip
    """Wisdom was drawn from a failure."""
    _must_fit(lesson_id, memory_id)
    if not _PATTERN_ID.fullmatch(pattern_id):
        raise ValueError(f"{pattern_id!r} is no pattern id: 16 hex digits")
    block = Yamo(
        agent=agent_name(agent),
        intent=LESSON,
        context=[("original_context", situation), ("error_pattern", pattern_id), ("severity", severity), ("timestamp", at)],
        constraints=[
            ("hypothesis", "This lesson prevents recurrence of similar failures"),
            ("hypothesis_confidence", share(hypothesis_confidence)),
        ],
        priority="high",
        output=[
            ("lesson_id", lesson_id),
            ("oversight_description", oversight),
            ("preventative_rule", rule),
            ("rule_confidence", share(rule_confidence)),
        ],
        meta=[
            ("rationale", rationale),
            ("applicability_scope", scope),
            ("inverse_lesson", _or_none(inverse)),
            ("confidence", share(confidence)),
            *seal.pairs(),
        ],
        log=["lesson_learned", "timestamp", at, "pattern", pattern_id, "severity", severity, "id", lesson_id],
        handoff=REFLECTOR,
    )
    check_lesson(block)
    return block.text()


def check_lesson(block: Yamo) -> None:
    """Refuse a lesson that lacks what the document requires of one."""
    if (block.intent, block.handoff) != (LESSON, REFLECTOR):
        raise InvalidInput(f"no lesson: intent {block.intent}, handoff {shown(block.handoff)}", expected=f"{LESSON}, {REFLECTOR}")
    sections = {"context": block.context, "constraints": block.constraints, "output": block.output, "meta": block.meta}
    for section, keys in _NEEDED.items():
        for key in keys:
            if [bool(said.strip()) for said in _said(sections[section], key)] != [True]:
                raise InvalidInput(f"a lesson without one {section}.{key}", expected="each required field once, and not empty")
    for severity in _said(block.context, "severity"):
        if severity not in LEVELS:
            raise InvalidInput(f"a lesson of severity {shown(severity)}", expected=", ".join(LEVELS))
    for section, key in _CONFIDENCES.items():
        for sure in _said(sections[section], key):
            if not _SHARE.fullmatch(sure):
                raise InvalidInput(f"a lesson whose {section}.{key} is {shown(sure)}", expected="a number from 0.0 to 1.0")


def _said(fields: Sequence[Constraint], key: str) -> list[str]:
    return [str(field[1]) for field in fields if not isinstance(field, str) and field[0] == key]


def _or_none(text: str | None) -> str:
    return "none" if text is None else text


def _must_fit(id_: str, memory_id: str | None) -> None:
    if memory_id is not None and _memory_of(id_) != memory_id:
        raise ValueError(f"{id_} does not name {memory_id}: `named_after` makes such ids")


def _memory_of(id_: str) -> str:
    named = id_.partition("_")[2]
    return named.removeprefix(_WHOLE) if named.startswith(_WHOLE) else _MEMORY + named
