"""Lessons: learnt once for each pattern, the surer one in place of the less sure, found by who may see them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry, Seal, blocks, derived_id
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.learning import (
    LessonBlock,
    LessonContext,
    by_confidence,
    by_severity,
    lesson_metadata,
    narrowest,
    narrowness,
    parse_lesson,
)
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Memory, Status, revise
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.scope import MemoryType, Reach, partition_for, partitions, reach_of
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, In, Where, all_of, equals
from memory_mesh.core.safety import BASE_TRUST, Source
from memory_mesh.flows import usage
from memory_mesh.flows.change import plan_revision
from memory_mesh.flows.context import (
    Context,
    Plan,
    audit_rows,
    check_texts,
    commit,
    memory_row,
    not_found,
    own_chain,
    stored_memory,
)
from memory_mesh.flows.embed import Vectors, passage_rows
from memory_mesh.flows.search import Request, checked_limit, readable, search
from memory_mesh.flows.write import Prepared, find_replayed, new_memory, prepare, receipt_rows, request_hash, retain_entry

ORDERS = (None, "relevance", "severity DESC")
_DAY = 86_400_000
_CONSIDERED = 50  # lessons that bear on something, before the worst of them are chosen
_LESSON = equals("memory_type", MemoryType.LESSON)


def distill(context: Context, given: object, *, key: str | None = None) -> LessonBlock:
    """Keep a lesson, or give back the one of its pattern that is at least as sure. The surer one takes the other's place."""
    return learn(context, given, key=key)[0]


def learn(
    context: Context, given: object, *, sources: Sequence[Memory] = (), inferred: bool = False, key: str | None = None
) -> tuple[LessonBlock, bool]:
    """The same with the memories that it is drawn from, and whether a language model drew it; and whether it is new."""
    lesson = _clean(context, parse_lesson(given))
    asked = request_hash("distill_lesson", lesson.text, lesson.pattern_id, lesson.confidence, lesson.severity)
    said = lesson_metadata(lesson, Source.INFERENCE if inferred else None)
    trust = BASE_TRUST[Source.INFERENCE] if inferred else None
    wanted = prepare(context, [(lesson.text, said)], request=asked, trust=trust)[0]
    made = Vectors()

    def decide() -> Plan[tuple[Memory, bool]]:
        if replayed := find_replayed(context, key, asked):
            return Plan((stored_memory(context, replayed), False))
        seen = {name: context.store.version(name) for name in partitions(context.reader)}
        _must_be_there(context, sources)
        known = by_pattern(context, lesson.pattern_id)
        # One that fewer may see does not keep the others from learning it.
        as_wide = next((old for old in known if narrowness(old) <= max(map(narrowness, sources), default=0)), None)
        if as_wide and (as_wide.confidence or 0.0) >= lesson.confidence:
            return Plan((as_wide, False))
        plan = _stored(context, lesson, wanted, known, sources, made)
        puts = [*plan.puts, *receipt_rows(context, key, plan.answer.id, asked)]
        return Plan((plan.answer, True), puts, seen=seen)

    (memory, new), _ = commit(context, decide)
    if not new:
        usage.count(context, [memory.id])  # met again: its time begins anew
    return _told(context, [memory])[0], new


def by_pattern(context: Context, pattern_id: object) -> list[Memory]:
    """The lessons of a pattern that the caller may see, the surest first."""
    check_texts(lesson_pattern_id=pattern_id)
    found = context.store.find(Kind.MEMORY, all_of(readable(context), equals("lesson_pattern_id", str(pattern_id)), _LESSON))
    return by_confidence(Memory.of(row) for row in found)


def query(context: Context, words: object, *, limit: int = 10, order_by: str | None = None) -> list[LessonBlock]:
    """The lessons that bear on something; without words all of them, the worst first. Those that are not sure enough stay out."""
    if order_by not in ORDERS:
        raise InvalidInput(f"order_by is {shown(order_by)}", expected="relevance or severity DESC")
    if not isinstance(words, str):
        raise InvalidInput(f"the query is {shown(words)}", expected="text; empty lists all lessons")
    most = checked_limit(limit)
    if not words.strip():
        sure = all_of(readable(context), _LESSON, Compare("confidence", ">=", context.options.lesson_min_confidence))
        every = [Memory.of(row) for row in context.store.find(Kind.MEMORY, sure)]
        return _told(context, by_severity(every)[:most])
    if order_by == "severity DESC":
        return _told(context, by_severity(_search(context, words, max(most, _CONSIDERED)))[:most])
    return _told(context, _search(context, words, most))


def retire(context: Context) -> list[str]:
    """Archive the lessons of this user that nobody has met for too long; pinned ones stay."""
    cutoff = iso(max(0, context.clock() - context.options.lesson_retention_days * _DAY))
    old = all_of(
        equals("user_id", context.reader.user_id), _LESSON, equals("status", Status.ACTIVE), Compare("created_at", "<", cutoff)
    )
    retired = []
    for id_ in context.store.ids(Kind.MEMORY, old):
        if _archived(context, id_, cutoff):
            retired.append(id_)
    return retired


def _archived(context: Context, memory_id: str, cutoff: str) -> bool:
    def decide() -> Plan[bool]:
        row = memory_row(context, memory_id)
        if row is None:
            return Plan(answer=False)
        seen = {row.partition: context.store.version(row.partition)}
        memory = Memory.of(row)
        sighted = usage.usage_of(context, [memory_id]).get(memory_id, {}).get("last_accessed") or memory.created_at
        if memory.status != Status.ACTIVE or memory.pinned or max(str(sighted), memory.last_observed or "") >= cutoff:
            return Plan(answer=False)
        why = f"not met for {context.options.lesson_retention_days} days"
        plan = plan_revision(context, memory, action="archive", why=why, status=Status.ARCHIVED.value)
        return Plan(answer=True, puts=plan.puts, deletes=plan.deletes, seen=seen)

    return commit(context, decide)[0]


def _stored(
    context: Context, lesson: LessonContext, wanted: Prepared, known: Sequence[Memory], sources: Sequence[Memory], made: Vectors
) -> Plan[Memory]:
    ms = context.clock()
    narrow = narrowest(sources)
    reach = reach_of(narrow.memory_type, narrow.reach) if narrow else Reach.GLOBAL
    partition = partition_for(context.reader.user_id, context.reader.agent_id, MemoryType.LESSON, reach)
    made.embed(context, [wanted.draft.content])
    vectors = made[wanted.draft.content]
    beaten = [
        old for old in known if narrowness(old) >= list(Reach).index(reach) and (old.confidence or 0.0) <= lesson.confidence
    ]
    memory = new_memory(
        context, wanted, vectors, ms=ms, number=context.store.version(partition) + 1,
        lesson_pattern_id=lesson.pattern_id, supersedes=[old.id for old in beaten], sources=[source.id for source in sources],
        reach=reach.value if narrow else None, session_id=narrow.session_id if narrow else wanted.draft.columns.get("session_id"),
    )  # fmt: skip
    memory = replace(memory, metadata={**memory.metadata, "lesson_id": derived_id(memory.id, "lesson")})
    rows, entries = _superseded(context, beaten, memory, ms)
    entries.append(_entry(context, ms, memory, lesson))
    blocks = audit_rows(context, own_chain(context), entries if context.options.enable_yamo else [])
    return Plan(memory, [memory.row(), *passage_rows(memory, vectors), *rows, *made.model_rows(context), *blocks])


def _superseded(context: Context, beaten: Sequence[Memory], by: Memory, ms: int) -> tuple[list[Row], list[Entry]]:
    rows: list[Row] = []
    entries: list[Entry] = []
    for old in beaten:
        newer, change = revise(
            old, at=iso(ms), by=context.reader.agent_id, action="supersede", why="a surer lesson of the same pattern",
            status=Status.SUPERSEDED.value, superseded_by=by.id,
        )  # fmt: skip
        rows += [newer.row(replaces=old.revision), change.row(newer.partition)]
        entries.append(retain_entry(context, ms, newer, "supersede"))
    return rows, entries


def _entry(context: Context, ms: int, memory: Memory, lesson: LessonContext) -> Entry:
    lesson_id, sure = str(memory.metadata["lesson_id"]), lesson.confidence

    def write(seal: Seal) -> str:
        return blocks.lesson(
            seal, agent=str(context.reader.agent_id), situation=lesson.situation, pattern_id=lesson.pattern_id,
            severity=lesson.severity, at=iso(ms), hypothesis_confidence=sure, lesson_id=lesson_id,
            oversight=lesson.oversight, rule=lesson.preventative_rule, rule_confidence=sure, rationale=lesson.fix,
            scope=lesson.applicable_scope, inverse=lesson.inverse_lesson, confidence=sure, memory_id=memory.id,
        )  # fmt: skip

    return Entry(
        id=context.ids.new("yamo_lesson", ms),
        operation_type="lesson",
        ms=ms,
        write=write,
        content_hash=audit.content_hash(memory.salt or "", memory.content),
        ref=memory.id,
        metadata={"lesson_id": lesson_id, "pattern_id": lesson.pattern_id},
    )


def _must_be_there(context: Context, sources: Sequence[Memory]) -> None:
    """A lesson quotes what it is drawn from: where that was erased meanwhile, it must not come to be."""
    held = context.store.get(Kind.MEMORY, [source.id for source in sources]) if sources else {}
    for source in sources:
        if source.id not in held:
            raise not_found(context, source.id)


def _clean(context: Context, lesson: LessonContext) -> LessonContext:
    """The lesson as it may be kept: its texts stand in the block too."""
    named = ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope", "inverse_lesson")
    clean: dict[str, Any] = {name: context.layer0.redact(text) for name in named if (text := getattr(lesson, name))}
    return replace(lesson, **clean)


def _search(context: Context, words: str, limit: int) -> list[Memory]:
    least = context.options.lesson_min_confidence
    where = all_of(_LESSON, Compare("confidence", ">=", least))
    # The text is for the audit trail alone.
    asked = Request(query=words, limit=limit, filter=f"memory_type = 'lesson' AND confidence >= {least}", where=where)
    ids = [result.id for result in search(context, asked)]
    held = context.store.get(Kind.MEMORY, ids)
    return [Memory.of(held[id_]) for id_ in ids if id_ in held]


def _told(context: Context, memories: Sequence[Memory]) -> list[LessonBlock]:
    """The lessons with the texts of their blocks."""
    ids = tuple(memory.id for memory in memories)
    about: Where = all_of(In("ref", ids), equals("operation_type", "lesson"))
    written = {row.value("ref"): str(row.value("yamo_text")) for row in context.store.find(Kind.BLOCK, about)} if ids else {}
    return [LessonBlock.of(memory, written.get(memory.id)) for memory in memories]
