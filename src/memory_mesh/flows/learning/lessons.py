"""Lessons: store, find, archive and receive them, and distill new ones from recent failures.

The distillation cycle of RFC-0011: SCAN recent blocks for failures → DEDUPLICATE by pattern →
DISTILL lessons → INJECT the most severe ones into the next session.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from memory_mesh.core import learning, model
from memory_mesh.core.audit import Entry, blocks, parse
from memory_mesh.core.audit.blocks import LESSON
from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    InvalidInput,
    NotFound,
    shown,
)
from memory_mesh.core.intake import NewText
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.learning import (
    DerivedScope,
    Distilled,
    LessonBlock,
    LessonContext,
    Skipped,
    by_confidence,
    by_severity,
)
from memory_mesh.core.model import (
    DAY_MS,
    Block,
    Compare,
    FailedLine,
    FileImport,
    In,
    Kind,
    Memory,
    MemoryType,
    Reader,
    Status,
    Value,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Progress
from memory_mesh.flows.audit.chains import new_entry
from memory_mesh.flows.context import (
    Context,
    Plan,
    check_texts,
    commit,
    find_memory,
    intact,
    require_memory,
)
from memory_mesh.flows.learning.reflect import plan_derived
from memory_mesh.flows.learning.skills import redacted_lines
from memory_mesh.flows.search import usage
from memory_mesh.flows.search.readable import readable
from memory_mesh.flows.search.reads import checked_limit
from memory_mesh.flows.search.search import Request, known_mode, search
from memory_mesh.flows.write.embed import Vectors
from memory_mesh.flows.write.prepare import find_replayed, prepare, receipt_rows, request_hash
from memory_mesh.flows.write.revisions import archive

ORDERS = (None, "relevance", "severity DESC")
_CANDIDATES = 50  # relevant lessons among which the most severe are chosen
_LESSON = equals("memory_type", MemoryType.LESSON)
INJECTED = 10  # lessons for the next session
_REQUIRED = ("error_pattern", "preventative_rule")
# What a language model may fill in.
_MODEL_FIELDS = (*_REQUIRED, "oversight", "fix", "inverse_lesson")
_RECENT, _REPEATED, _TIMES = DAY_MS, 7 * DAY_MS, 2
_MAX_TEXT = 2000
_CHARS_PER_TOKEN = 4
_OBSERVATIONS = ("add", "observe")
# A failure may be recorded later; pinning, for instance, is not a report.
_REPORTS = (*_OBSERVATIONS, "update")
_log = logging.getLogger("memory_mesh")


def distill_lesson(context: Context, given: object, *, key: str | None = None) -> LessonBlock:
    """Store a lesson, or return the known one of its pattern if that has at least the same
    confidence."""
    return learn(context, given, key=key)[0]


def learn(
    context: Context, given: object, *, sources: Sequence[Memory] = (), inferred: bool = False,
    key: str | None = None, more: Mapping[str, Value] | None = None,
) -> tuple[LessonBlock, bool]:  # fmt: skip
    """Store a lesson drawn from `sources`, by a language model if `inferred`. Return it and whether
    it is new.

    `more` is the metadata of a lesson that was received from another store: it supersedes only such
    lessons.
    """
    lesson, redact = learning.parse_lesson(given), context.gates.content().redact
    # Its texts are also written into its block.
    texts: dict[str, Any] = {
        name: redact(value)
        for name, value in asdict(lesson).items()
        if isinstance(value, str) and name != "severity"
    }
    lesson = replace(lesson, **texts)
    request = request_hash(
        "distill_lesson", lesson.text, lesson.pattern_id, lesson.confidence, lesson.severity
    )
    metadata = {
        **learning.lesson_metadata(lesson, Source.INFERENCE if inferred else None),
        **(more or {}),
    }
    trust = BASE_TRUST[Source.INFERENCE] if inferred or more else None
    prepared = prepare(context, [NewText(lesson.text, metadata, trust)], request=request)[0]
    vectors = Vectors()

    def decide() -> Plan[tuple[Memory, bool]]:
        if replayed := find_replayed(context, key, request):
            return Plan((require_memory(context, replayed, any_reader=True), False))
        seen = {name: context.store.version(name) for name in model.partitions(context.reader)}
        for source in sources:
            # The lesson must not quote a source that was erased meanwhile.
            require_memory(context, source.id, any_reader=True)
        known = by_pattern(context, lesson.pattern_id)
        # A lesson that fewer readers may see does not prevent a wider one.
        scope = DerivedScope.of(
            sources,
            **{name: prepared.draft.columns.get(name) for name in ("session_id", "project")},
        )
        rank = _rank(prepared.draft.metadata, lesson.confidence)
        for old in known:
            if scope.is_within(old) and _rank(old.metadata, old.confidence) >= rank:
                return Plan((old, False))
        ms = context.clock()
        plan = plan_derived(
            context, prepared, vectors, scope,
            [
                old
                for old in known
                if scope.contains(old) and _rank(old.metadata, old.confidence) <= rank
            ],
            partial(_entry, context, ms, lesson), ms=ms, prefix="lesson", id_name="lesson_id",
            why="superseded by a lesson with more confidence",
            lesson_pattern_id=lesson.pattern_id, sources=[source.id for source in sources],
        )  # fmt: skip
        puts = [*plan.puts, *receipt_rows(context, key, plan.answer.id, request)]
        return Plan((plan.answer, True), puts, seen=seen)

    memory, new = commit(context, decide)
    if not new:
        usage.count(context, [memory.id])  # seen again: its retention starts anew
    return _with_blocks(context, [memory], {})[0], new


def by_pattern(context: Context, pattern_id: object) -> list[Memory]:
    """Return the lessons of a pattern that the reader may see, the highest confidence first."""
    check_texts(lesson_pattern_id=pattern_id)
    rows = context.store.find(
        Kind.MEMORY,
        all_of(readable(context), equals("lesson_pattern_id", str(pattern_id)), _LESSON),
    )
    return by_confidence(Memory.of(row) for row in intact(context, rows))


def query(
    context: Context,
    text: object,
    *,
    limit: int = 10,
    order_by: str | None = None,
    mode: str = "precise",
) -> list[LessonBlock]:
    """Return relevant lessons with enough confidence; an empty text lists all in either mode,
    the most severe first."""
    if order_by not in ORDERS:
        raise InvalidInput(f"order_by is {shown(order_by)}", expected="relevance or severity DESC")
    if not isinstance(text, str):
        raise InvalidInput(f"the query is {shown(text)}", expected="text; empty lists all lessons")
    max_lessons, mode, scores = checked_limit(limit), known_mode(mode), dict[str, float]()
    min_confidence = context.options.lesson_min_confidence
    where = all_of(_LESSON, Compare("confidence", ">=", min_confidence))
    if not text.strip():
        rows = context.store.find(Kind.MEMORY, all_of(readable(context), where))
        memories = by_severity(Memory.of(row) for row in intact(context, rows))
    else:
        severe_first = order_by == "severity DESC"
        count = max(max_lessons, _CANDIDATES) if severe_first else max_lessons
        # The filter as text only appears in the audit chain.
        filter_ = f"memory_type = 'lesson' AND confidence >= {min_confidence}"
        request = Request(query=text, limit=count, filter=filter_, where=where, mode=mode)
        scores = {result.id: result.score for result in search(context, request)}
        stored = context.store.get(Kind.MEMORY, list(scores))
        memories = [Memory.of(stored[id_]) for id_ in scores if id_ in stored]
        memories = by_severity(memories) if severe_first else memories
    return _with_blocks(context, memories[:max_lessons], scores)


def archive_old(context: Context) -> list[str]:
    """Archive this user's lessons that were not seen for `lesson_retention_days`, except pinned
    ones. Return their ids."""
    cutoff = iso(max(0, context.clock() - context.options.lesson_retention_days * DAY_MS))
    old = all_of(
        model.of_user(context.reader),
        _LESSON,
        equals("status", Status.ACTIVE),
        Compare("created_at", "<", cutoff),
    )

    def reason(memory: Memory) -> str | None:
        seen_at = usage.with_counts(context, [memory])[0].last_accessed or memory.created_at
        seen = memory.pinned or max(seen_at, memory.last_observed or "") >= cutoff
        return None if seen else f"not seen for {context.options.lesson_retention_days} days"

    return archive(context, Kind.MEMORY, context.store.ids(Kind.MEMORY, old), reason)


def _rank(metadata: Mapping[str, Value], confidence: float | None) -> tuple[bool, float]:
    """Return by what one of two lessons of a pattern counts: one's own before a received one,
    whose confidence anyone may have stated; then the more confident one."""
    return not learning.is_received(metadata), confidence or 0.0


def _entry(context: Context, ms: int, lesson: LessonContext, memory: Memory) -> Entry:
    lesson_id, confidence = str(memory.metadata["lesson_id"]), lesson.confidence
    write_text = partial(
        blocks.lesson, agent=str(context.reader.agent_id), situation=lesson.situation,
        pattern_id=lesson.pattern_id, severity=lesson.severity, at=iso(ms),
        hypothesis_confidence=confidence, lesson_id=lesson_id, oversight=lesson.oversight,
        rule=lesson.preventative_rule, rule_confidence=confidence, rationale=lesson.fix,
        scope=lesson.applicable_scope, inverse=lesson.inverse_lesson, confidence=confidence,
        memory_id=memory.id,
    )  # fmt: skip
    metadata = {"lesson_id": lesson_id, "pattern_id": lesson.pattern_id}
    return new_entry(context, "lesson", ms, write_text, memory=memory, metadata=metadata)


def _with_blocks(
    context: Context, memories: Sequence[Memory], scores: Mapping[str, float]
) -> list[LessonBlock]:
    """Return lessons with the texts of their blocks."""
    texts = block_texts(context, [memory.id for memory in memories])
    return [
        LessonBlock.of(memory, texts.get(memory.id), scores.get(memory.id)) for memory in memories
    ]


def block_texts(context: Context, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of the blocks of lessons by the ids of their memories."""
    rows = (
        context.store.find(
            Kind.BLOCK, all_of(In("ref", tuple(ids)), equals("operation_type", "lesson"))
        )
        if ids
        else []
    )
    return {str(row.value("ref")): str(row.value("yamo_text")) for row in rows}


# --- distillation ---


def run_distillation(context: Context) -> Distilled:
    """Distill lessons from the failures of the last day, over all chains of this user, each
    agent's memories as that agent."""
    context.check_enabled()
    scanned, candidates = _scan(context)
    learnt: list[LessonBlock] = []
    skipped: list[Skipped] = []
    for memory in candidates:
        check_cancelled()
        own = replace(
            context,
            reader=Reader(memory.user_id, memory.agent_id, memory.session_id, memory.project),
        )
        try:
            lesson = _lesson(own, memory)
        except (InvalidInput, NotFound) as error:
            skipped.append(Skipped(memory_id=memory.id, reason=error.what))
        else:
            learnt += [lesson] if lesson else []
    visible = tuple(lesson for lesson in learnt if find_memory(context, lesson.memory_id))
    return Distilled(
        scanned=scanned,
        candidates=len(candidates),
        learnt=visible,
        known=len(candidates) - len(learnt) - len(skipped),
        skipped=tuple(skipped),
        inject=tuple(query(context, "", limit=INJECTED, order_by="severity DESC")),
        unseen=len(learnt) - len(visible),
    )


def _scan(context: Context) -> tuple[int, list[Memory]]:
    """Return the number of blocks of the last day, and the memories that may give a lesson,
    newest first."""
    ms, own = context.clock(), equals("user_id", context.reader.user_id)
    this_week = all_of(
        own, Compare("created_at", ">=", iso(ms - _REPEATED)), equals("operation_type", "retain")
    )
    week = [Block.of(row) for row in context.store.find(Kind.BLOCK, this_week)]
    recent = [block for block in week if block.created_at >= iso(ms - _RECENT)]
    patterns = Counter(_pattern(block) for block in week if _action(block) in _OBSERVATIONS)
    chosen = [
        block for block in recent if _action(block) in _REPORTS and _is_candidate(block, patterns)
    ]
    ids = dict.fromkeys(str(block.ref) for block in chosen)
    rows = {
        row.id: row for row in intact(context, context.store.get(Kind.MEMORY, list(ids)).values())
    }
    # Quarantined, archived, expired and erased memories give no lessons, nor do those that are not
    # valid now.
    active = all_of(
        equals("status", Status.ACTIVE),
        model.not_expired(iso(ms)),
        model.valid_in([(iso(ms), iso(ms))]),
    )
    usable = all_of(
        model.of_user(context.reader), Compare("memory_type", "<>", MemoryType.LESSON), active
    )
    return len(recent), [
        Memory.of(rows[id_]) for id_ in ids if id_ in rows and usable.matches(rows[id_])
    ]


def _action(block: Block) -> Value:
    return (block.metadata or {}).get("action") if block.ref else None


def _is_candidate(block: Block, patterns: Mapping[str | None, int]) -> bool:
    metadata = block.metadata or {}
    tags = metadata.get("tags")
    marked = isinstance(tags, list) and learning.CANDIDATE_TAG in tags
    return (
        metadata.get("status") == "error"
        or marked
        or (_pattern(block) is not None and patterns[_pattern(block)] >= _TIMES)
    )


def _pattern(block: Block) -> str | None:
    pattern = (block.metadata or {}).get("error_pattern")
    return pattern if isinstance(pattern, str) and pattern.strip() else None


def _lesson(context: Context, memory: Memory) -> LessonBlock | None:
    """Store the lesson of a memory; None if it is known. Raise `InvalidInput` if pattern or rule
    are missing."""
    texts = {name: _text(memory.metadata.get(name)) for name in _MODEL_FIELDS}
    missing = [name for name in _REQUIRED if not texts[name]]
    drawn = all_of(equals("user_id", memory.user_id), _LESSON, In("sources", (memory.id,)))
    if missing and context.store.count(Kind.MEMORY, drawn):
        return None  # a model might name the same error differently each time
    proposed = _proposed(context, memory) if missing else {}
    texts |= {name: text for name, text in proposed.items() if not texts[name]}
    for name in (name for name in missing if not texts[name]):
        raise InvalidInput(
            f"{name} is missing", expected="one in its metadata, or a language model that finds one"
        )
    values = {
        **texts,
        "situation": _text(memory.metadata.get("situation")) or memory.content[:_MAX_TEXT],
        "oversight": texts["oversight"] or learning.NOT_RECORDED,
        "fix": texts["fix"] or learning.NOT_RECORDED,
        "severity": learning.severity_of(memory),
        "applicable_scope": _text(memory.metadata.get("applicable_scope")) or "general",
        "inverse_lesson": texts["inverse_lesson"] or None,
        "confidence": learning.DEFAULT_CONFIDENCE
        if memory.confidence is None
        else memory.confidence,
    }
    lesson, new = learn(context, values, sources=[memory], inferred=bool(missing))
    return lesson if new else None


def _proposed(context: Context, memory: Memory) -> dict[str, str]:
    """Ask the language model, if there is one, for the missing texts. Agents follow rules, so a
    report or an answer that contains instructions is refused."""
    if context.models.chat is None:
        return {}
    from memory_mesh.core.language.prompts import lesson as prompt
    from memory_mesh.core.language.safety.injection import detect

    report = memory.content[: _CHARS_PER_TOKEN * context.options.llm_input_tokens]
    if detect(report):
        raise InvalidInput("its text contains instructions to a model")
    try:
        reply = context.models.chat.reply(
            prompt.build_prompt(
                report, context.ids.salt(), max_tokens=context.options.answer_tokens
            )
        )
        proposed = asdict(prompt.read_reply(reply))
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        _log.warning("distillation: no lesson from %s: %s", memory.id, error)
        return {}
    if any(detect(text) for text in proposed.values()):
        raise InvalidInput("the model's answer contains instructions to a model")
    return proposed


def _text(value: Value) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) and value.strip() else ""


def summary(done: Distilled) -> str:
    """Describe a distillation cycle in one line."""
    skipped = f", {len(done.skipped)} skipped" if done.skipped else ""
    results = f"{len(done.learnt) + done.unseen} learnt, {done.known} known{skipped}"
    return f"{done.candidates} candidates in {done.scanned} blocks: {results}"


# --- lessons from other stores ---
# They are received as text: blocks of RFC-0011.

STORED, NOT_LESSON = "stored already", "not a lesson"


def received(context: Context, texts: Sequence[NewText], key: str | None) -> list[Memory]:
    """Return the memory of the lesson if the only text is one whole block of a lesson; else
    nothing, and nothing is stored."""
    (given,) = texts
    metadata = given.metadata if isinstance(given.metadata, Mapping) else {}
    if (
        given.key is not None
        or given.thread is not None
        or metadata.get("type", MemoryType.LESSON) != MemoryType.LESSON
    ):
        return []
    try:
        return [_receive(context, str(given.content).rstrip("\n") + "\n", metadata, key)[0]]
    except InvalidInput:  # an ordinary memory, if it is valid as one
        return []


def import_blocks(
    context: Context,
    format_: str,
    blocks: Iterable[tuple[int, str | InvalidInput]],
    progress: Progress,
) -> FileImport:
    """Store the lessons of a file of blocks, each with the number of its first line."""
    new, skipped, failed = 0, Counter[str](), list[FailedLine]()
    for done, (line, text) in enumerate(blocks, start=1):
        check_cancelled()
        try:
            if isinstance(text, InvalidInput):
                raise text
            if parse(text).intent != LESSON:
                skipped[NOT_LESSON] += 1
                continue
            is_new = _receive(context, text, {}, None)[1]
            new += is_new
            skipped[STORED] += not is_new
        except InvalidInput as error:
            failed.append(FailedLine(line, str(error)))
        progress("importing", done, done)
    return FileImport(format=format_, memories=new, skipped=dict(+skipped), failed=tuple(failed))


def _receive(
    context: Context, text: str, metadata: Mapping[str, object], key: str | None
) -> tuple[Memory, bool]:
    """Store the lesson of a block with its text, and return its memory and whether it is new.

    It is trusted as little as a conclusion of a language model: agents follow rules, and anyone may
    write a block. One that contains instructions to a model is refused.
    """
    from memory_mesh.core.language.safety.injection import detect  # loads many patterns

    wire = redacted_lines(context.gates.content().redact, text)
    lesson = learning.read_block(wire)
    # Agents read the text of the block too, which has parts that the lesson has not; a semicolon
    # ends a part.
    if detect(lesson.text) or detect(wire.replace(";", "\n")):
        raise InvalidInput("the lesson contains instructions to a model")
    tags = metadata.get("tags")
    own: dict[str, Value] = {
        learning.WIRE: wire,
        "provenance": {"source": Source.INFERENCE.value, "extracted_by": learning.WIRE},
        "tags": [
            learning.LESSON_TAG,
            *(str(tag) for tag in (tags if isinstance(tags, list) else ())),
        ],
    }
    fixed = learning.lesson_metadata(lesson).keys()
    more = {**{name: value for name, value in metadata.items() if name not in fixed}, **own}
    block, is_new = learn(context, lesson, key=key, more=more)  # type: ignore[arg-type]
    return require_memory(context, block.memory_id, any_reader=True), is_new
