"""The distillation cycle: SCAN recent blocks for failures → DEDUPLICATE by pattern → DISTILL lessons → tell which to INJECT."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import AnswerUnreadable, BudgetSpent, CallError, InvalidInput, NotFound
from memory_mesh.core.learning import CANDIDATE_TAG, DEFAULT_CONFIDENCE, SEVERITIES, Distilled, LessonBlock, Skipped
from memory_mesh.core.model.columns import Kind, Value
from memory_mesh.core.model.records import Block, Memory, Status
from memory_mesh.core.model.scope import MemoryType, Reader, visible
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, In, all_of, equals
from memory_mesh.flows import lessons
from memory_mesh.flows.context import Context, check_enabled, memory_row, not_expired

INJECTED = 10
_NEEDED = ("error_pattern", "preventative_rule")
_ASKED = (*_NEEDED, "oversight", "fix", "inverse_lesson")
_DAY = 86_400_000
_RECENT, _REPEATED, _TIMES = _DAY, 7 * _DAY, 2
_LONGEST = 2000
_SIGHTINGS = ("add", "observe")
_CHARACTERS = 4  # of a token, as budgets count them
_TELLING = (*_SIGHTINGS, "update")  # that something failed may be noted later; to be pinned, say, is no failure
_log = logging.getLogger("memory_mesh")


def cycle(context: Context) -> Distilled:
    """Run the cycle over the chains of the caller's user, each agent's memories as that agent."""
    check_enabled(context)
    scanned, candidates = _scan(context)
    learnt: list[LessonBlock] = []
    skipped: list[Skipped] = []
    for memory in candidates:
        check_cancelled()
        own = replace(context, reader=Reader(memory.user_id, memory.agent_id, memory.session_id))
        try:
            lesson = _lesson(own, memory)
        except (InvalidInput, NotFound) as error:
            skipped.append(Skipped(memory_id=memory.id, reason=error.what))
        else:
            learnt += [lesson] if lesson else []
    told = tuple(lesson for lesson in learnt if _is_seen(context, lesson))
    return Distilled(
        scanned=scanned,
        candidates=len(candidates),
        learnt=told,
        known=len(candidates) - len(learnt) - len(skipped),
        skipped=tuple(skipped),
        inject=tuple(lessons.query(context, "", limit=INJECTED, order_by="severity DESC")),
        unseen=len(learnt) - len(told),
    )


def _scan(context: Context) -> tuple[int, list[Memory]]:
    """How many blocks the last day has, and the memories in them that a lesson may be drawn from, the newest first."""
    ms = context.clock()
    week = _blocks(context, iso(ms - _REPEATED))
    recent = [block for block in week if block.created_at >= iso(ms - _RECENT)]
    patterns = Counter(_pattern(block) for block in week if _action(block) in _SIGHTINGS)
    chosen = [block for block in recent if _action(block) in _TELLING and _is_candidate(block, patterns)]
    return len(recent), _memories(context, dict.fromkeys(str(block.ref) for block in chosen))


def _memories(context: Context, ids: Iterable[str]) -> list[Memory]:
    """Those that may teach: what is quarantined, archived, expired or erased does not."""
    own = all_of(equals("user_id", context.reader.user_id), Compare("memory_type", "<>", MemoryType.LESSON))
    fit = all_of(own, equals("status", Status.ACTIVE), not_expired(context))
    rows = [memory_row(context, id_) for id_ in ids]
    return [Memory.of(row) for row in rows if row and fit.matches(row)]


def _blocks(context: Context, since: str) -> list[Block]:
    found = all_of(
        equals("user_id", context.reader.user_id), Compare("created_at", ">=", since), equals("operation_type", "retain")
    )
    return [Block.of(row) for row in context.store.find(Kind.BLOCK, found)]


def _action(block: Block) -> Value:
    return (block.metadata or {}).get("action") if block.ref else None


def _is_candidate(block: Block, patterns: Mapping[str | None, int]) -> bool:
    said = block.metadata or {}
    tags = said.get("tags")
    marked = isinstance(tags, list) and CANDIDATE_TAG in tags
    return said.get("status") == "error" or marked or (_pattern(block) is not None and patterns[_pattern(block)] >= _TIMES)


def _is_seen(context: Context, lesson: LessonBlock) -> bool:
    row = memory_row(context, lesson.memory_id)
    return row is not None and visible(context.reader, row)


def _pattern(block: Block) -> str | None:
    said = (block.metadata or {}).get("error_pattern")
    return said if isinstance(said, str) and said.strip() else None


def _lesson(context: Context, memory: Memory) -> LessonBlock | None:
    """The lesson that a memory taught, or None where it is known; `InvalidInput` where there is not enough to learn from."""
    texts = {name: _text(memory.metadata.get(name)) for name in _ASKED}
    missing = [name for name in _NEEDED if not texts[name]]
    if missing and _taught(context, memory):
        return None  # a model might call the same error by another name each time
    proposed = _proposed(context, memory) if missing else {}
    texts |= {name: text for name, text in proposed.items() if not texts[name]}
    for name in (name for name in missing if not texts[name]):
        raise InvalidInput(f"it has no {name}", expected="one in its metadata, or a language model that finds one")
    lesson, new = lessons.learn(context, _context(memory, texts), sources=[memory], inferred=bool(missing))
    return lesson if new else None


def _taught(context: Context, memory: Memory) -> bool:
    drawn = all_of(equals("user_id", memory.user_id), equals("memory_type", MemoryType.LESSON), In("sources", (memory.id,)))
    return context.store.count(Kind.MEMORY, drawn) > 0


def _context(memory: Memory, texts: Mapping[str, str]) -> dict[str, object]:
    said = memory.metadata
    severity = said.get("severity")
    return {
        "situation": _text(said.get("situation")) or memory.content[:_LONGEST],
        "error_pattern": texts["error_pattern"],
        "oversight": texts["oversight"] or "not recorded",
        "fix": texts["fix"] or "not recorded",
        "preventative_rule": texts["preventative_rule"],
        "severity": severity if severity in SEVERITIES else "medium",
        "applicable_scope": _text(said.get("applicable_scope")) or "general",
        "inverse_lesson": texts["inverse_lesson"] or None,
        "confidence": DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence,
    }


def _proposed(context: Context, memory: Memory) -> dict[str, str]:
    """What a language model makes of it, where there is one. Rules are followed, so a text that tries to make them is not asked
    about, nor is what it made of the model taken."""
    if context.chat is None:
        return {}
    from memory_mesh.core.prompts import lesson as prompt
    from memory_mesh.core.safety.injection import detect

    report = memory.content[: _CHARACTERS * context.options.llm_input_tokens]
    if detect(report):
        raise InvalidInput("its text gives instructions to a model")
    try:
        reply = context.chat.reply(prompt.build_prompt(report, context.ids.salt(), max_tokens=context.options.answer_tokens))
        found = asdict(prompt.read_reply(reply))
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        _log.warning("distillation: no lesson from %s, because %s", memory.id, error)
        return {}
    if any(detect(text) for text in found.values()):
        raise InvalidInput("what the model made of it gives instructions to a model")
    return found


def _text(value: Value) -> str:
    return value[:_LONGEST] if isinstance(value, str) and value.strip() else ""


def told(done: Distilled) -> str:
    """A cycle in one line."""
    parts = [f"{len(done.learnt) + done.unseen} learnt", f"{done.known} known"] + (
        [f"{len(done.skipped)} skipped"] if done.skipped else []
    )
    return f"{done.candidates} candidates in {done.scanned} blocks: {', '.join(parts)}"
