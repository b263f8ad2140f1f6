"""Lessons: learnt once for each pattern, the surer one in place of the less sure, found by who may see them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory_mesh.core.audit import blocks as yamo_blocks
from memory_mesh.core.audit import chain as audit
from memory_mesh.core.audit.blocks import named_after
from memory_mesh.core.audit.chain import Entry
from memory_mesh.core.audit.wire import Seal
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.learning.lessons import (
    LessonBlock,
    LessonContext,
    best_first,
    narrowest,
    narrowness,
    notes,
    read_context,
    worst_first,
)
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.history import revise
from memory_mesh.core.model.records import Memory, Status
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.scope import MemoryType, Reach, home, partitions, reach_of
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, In, Where, both, equals
from memory_mesh.core.safety.trust import BASE, Source
from memory_mesh.flows import filters, receipts, usage
from memory_mesh.flows.change import revised
from memory_mesh.flows.context import Desk, Plan, memory_row, sealed, settle, texts, unknown
from memory_mesh.flows.embed import Vectors, passage_rows
from memory_mesh.flows.memory_block import entry
from memory_mesh.flows.read import readable, within
from memory_mesh.flows.search import Request, search
from memory_mesh.flows.write import Wanted, memory_of, read_items

ORDERS = (None, "relevance", "severity DESC")
_DAY = 86_400_000
_CONSIDERED = 50  # lessons that bear on something, before the worst of them are chosen
_LESSON = equals("memory_type", MemoryType.LESSON)


def distill(desk: Desk, given: object, *, key: str | None = None) -> LessonBlock:
    """Keep a lesson, or give back the one of its pattern that is at least as sure. The surer one takes the other's place."""
    return learn(desk, given, key=key)[0]


def learn(
    desk: Desk, given: object, *, sources: Sequence[Memory] = (), inferred: bool = False, key: str | None = None
) -> tuple[LessonBlock, bool]:
    """The same with the memories that it is drawn from, and whether a language model drew it; and whether it is new."""
    context = _clean(desk, read_context(given))
    asked = receipts.request("distill_lesson", context.text, context.pattern_id, context.confidence, context.severity)
    said = notes(context, Source.INFERENCE if inferred else None)
    trust = BASE[Source.INFERENCE] if inferred else None
    wanted = read_items(desk, [(context.text, said)], request=asked, trust=trust)[0]
    made = Vectors()

    def decide() -> Plan[tuple[Memory, bool]]:
        if receipts.repeated(desk, key, asked):
            return Plan((_kept(desk, str(receipts.receipt_id(desk, key))), False))
        seen = {name: desk.store.version(name) for name in partitions(desk.who)}
        _must_be_there(desk, sources)
        known = by_pattern(desk, context.pattern_id)
        # One that fewer may see does not keep the others from learning it.
        as_wide = next((old for old in known if narrowness(old) <= max(map(narrowness, sources), default=0)), None)
        if as_wide and (as_wide.confidence or 0.0) >= context.confidence:
            return Plan((as_wide, False))
        plan = _stored(desk, context, wanted, known, sources, made)
        puts = [*plan.puts, *receipts.rows(desk, key, plan.answer.id, asked)]
        return Plan((plan.answer, True), puts, seen=seen)

    (memory, new), _ = settle(desk, decide)
    if not new:
        usage.note(desk, [memory.id])  # met again: its time begins anew
    return _told(desk, [memory])[0], new


def by_pattern(desk: Desk, pattern_id: object) -> list[Memory]:
    """The lessons of a pattern that the caller may see, the surest first."""
    texts(lesson_pattern_id=pattern_id)
    found = desk.store.find(Kind.MEMORY, both(readable(desk), equals("lesson_pattern_id", str(pattern_id)), _LESSON))
    return best_first(Memory.of(row) for row in found)


def query(desk: Desk, words: object, *, limit: int = 10, order_by: str | None = None) -> list[LessonBlock]:
    """The lessons that bear on something; without words all of them, the worst first. Those that are not sure enough stay out."""
    if order_by not in ORDERS:
        raise InvalidInput(f"order_by is {shown(order_by)}", expected="relevance or severity DESC")
    if not isinstance(words, str):
        raise InvalidInput(f"the query is {shown(words)}", expected="text; empty lists all lessons")
    most = within(limit)
    if not words.strip():
        sure = both(readable(desk), _LESSON, Compare("confidence", ">=", desk.lesson_min_confidence))
        every = [Memory.of(row) for row in desk.store.find(Kind.MEMORY, sure)]
        return _told(desk, worst_first(every)[:most])
    if order_by == "severity DESC":
        return _told(desk, worst_first(_search(desk, words, max(most, _CONSIDERED)))[:most])
    return _told(desk, _search(desk, words, most))


def retire(desk: Desk) -> list[str]:
    """Archive the lessons of this user that nobody has met for too long; pinned ones stay."""
    cutoff = iso(max(0, desk.clock() - desk.lesson_retention_days * _DAY))
    old = both(equals("user_id", desk.who.user_id), _LESSON, equals("status", Status.ACTIVE), Compare("created_at", "<", cutoff))
    retired = []
    for id_ in desk.store.ids(Kind.MEMORY, old):
        if _archived(desk, id_, cutoff):
            retired.append(id_)
    return retired


def _archived(desk: Desk, memory_id: str, cutoff: str) -> bool:
    def decide() -> Plan[bool]:
        row = memory_row(desk, memory_id)
        if row is None:
            return Plan(answer=False)
        seen = {row.partition: desk.store.version(row.partition)}
        memory = Memory.of(row)
        sighted = usage.counted(desk, [memory_id]).get(memory_id, {}).get("last_accessed") or memory.created_at
        if memory.status != Status.ACTIVE or memory.pinned or max(str(sighted), memory.last_observed or "") >= cutoff:
            return Plan(answer=False)
        why = f"not met for {desk.lesson_retention_days} days"
        plan = revised(desk, memory, action="archive", why=why, status=Status.ARCHIVED.value)
        return Plan(answer=True, puts=plan.puts, deletes=plan.deletes, seen=seen)

    return settle(desk, decide)[0]


def _stored(
    desk: Desk, context: LessonContext, wanted: Wanted, known: Sequence[Memory], sources: Sequence[Memory], made: Vectors
) -> Plan[Memory]:
    ms = desk.clock()
    narrow = narrowest(sources)
    reach = reach_of(narrow.memory_type, narrow.reach) if narrow else Reach.GLOBAL
    partition = home(desk.who.user_id, desk.who.agent_id, MemoryType.LESSON, reach)
    made.add(desk, [wanted.draft.content])
    vectors = made[wanted.draft.content]
    beaten = [
        old for old in known if narrowness(old) >= list(Reach).index(reach) and (old.confidence or 0.0) <= context.confidence
    ]
    memory = memory_of(
        desk, wanted, vectors, ms=ms, number=desk.store.version(partition) + 1,
        lesson_pattern_id=context.pattern_id, supersedes=[old.id for old in beaten], sources=[source.id for source in sources],
        reach=reach.value if narrow else None, session_id=narrow.session_id if narrow else wanted.draft.columns.get("session_id"),
    )  # fmt: skip
    memory = replace(memory, metadata={**memory.metadata, "lesson_id": named_after(memory.id, "lesson")})
    rows, entries = _superseded(desk, beaten, memory, ms)
    chain = audit.chain_name(desk.who.user_id, desk.who.agent_id)
    blocks = sealed(desk, chain, [*entries, _entry(desk, ms, memory, context)] if desk.audited else [])
    return Plan(memory, [memory.row(), *passage_rows(memory, vectors), *rows, *made.claim(desk), *blocks])


def _superseded(desk: Desk, beaten: Sequence[Memory], by: Memory, ms: int) -> tuple[list[Row], list[Entry]]:
    rows: list[Row] = []
    entries: list[Entry] = []
    for old in beaten:
        newer, change = revise(
            old, at=iso(ms), by=desk.who.agent_id, action="supersede", why="a surer lesson of the same pattern",
            status=Status.SUPERSEDED.value, superseded_by=by.id,
        )  # fmt: skip
        rows += [newer.row(replaces=old.revision), change.row(newer.partition)]
        entries.append(entry(desk, ms, newer, "supersede"))
    return rows, entries


def _entry(desk: Desk, ms: int, memory: Memory, context: LessonContext) -> Entry:
    lesson_id, sure = str(memory.metadata["lesson_id"]), context.confidence

    def write(seal: Seal) -> str:
        return yamo_blocks.lesson(
            seal, agent=str(desk.who.agent_id), situation=context.situation, pattern_id=context.pattern_id,
            severity=context.severity, at=iso(ms), hypothesis_confidence=sure, lesson_id=lesson_id,
            oversight=context.oversight, rule=context.preventative_rule, rule_confidence=sure, rationale=context.fix,
            scope=context.applicable_scope, inverse=context.inverse_lesson, confidence=sure, memory_id=memory.id,
        )  # fmt: skip

    return Entry(
        id=desk.ids.new("yamo_lesson", ms),
        operation_type="lesson",
        ms=ms,
        write=write,
        content_hash=audit.content_hash(memory.salt or "", memory.content),
        ref=memory.id,
        metadata={"lesson_id": lesson_id, "pattern_id": context.pattern_id},
    )


def _must_be_there(desk: Desk, sources: Sequence[Memory]) -> None:
    """A lesson quotes what it is drawn from: where that was erased meanwhile, it must not come to be."""
    held = desk.store.get(Kind.MEMORY, [source.id for source in sources]) if sources else {}
    for source in sources:
        if source.id not in held:
            raise unknown(desk, source.id)


def _clean(desk: Desk, context: LessonContext) -> LessonContext:
    """The lesson as it may be kept: its texts stand in the block too."""
    named = ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope", "inverse_lesson")
    clean: dict[str, Any] = {name: desk.layer0.line(text) for name in named if (text := getattr(context, name))}
    return replace(context, **clean)


def _search(desk: Desk, words: str, limit: int) -> list[Memory]:
    wanted = f"memory_type = 'lesson' AND confidence >= {desk.lesson_min_confidence}"
    asked = Request(query=words, limit=limit, filter=wanted, where=filters.parse(wanted))
    ids = [result.id for result in search(desk, asked)]
    held = desk.store.get(Kind.MEMORY, ids)
    return [Memory.of(held[id_]) for id_ in ids if id_ in held]


def _told(desk: Desk, memories: Sequence[Memory]) -> list[LessonBlock]:
    """The lessons with the texts of their blocks."""
    ids = tuple(memory.id for memory in memories)
    about: Where = both(In("ref", ids), equals("operation_type", "lesson"))
    written = {row.value("ref"): str(row.value("yamo_text")) for row in desk.store.find(Kind.BLOCK, about)} if ids else {}
    return [LessonBlock.of(memory, written.get(memory.id)) for memory in memories]


def _kept(desk: Desk, receipt_id: str) -> Memory:
    memory_id = str(desk.store.get(Kind.RECEIPT, [receipt_id])[receipt_id].value("ref"))
    row = memory_row(desk, memory_id)
    if row is None:
        raise unknown(desk, memory_id)
    return Memory.of(row)
