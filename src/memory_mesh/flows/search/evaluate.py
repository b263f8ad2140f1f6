"""Evaluate a store on the reader's own memories: what questions find, how fast, and hygiene.

Everything is read. Searches are neither counted as uses nor written to the audit chain: the context
has memory switched off, so that a write would raise `MemoryDisabled`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memory_mesh.core import model
from memory_mesh.core.audit import Broken
from memory_mesh.core.errors import AnswerUnreadable, BudgetSpent, CallError, whole_number
from memory_mesh.core.intake import normal_text
from memory_mesh.core.intake.gate import Layer0
from memory_mesh.core.language.prompts import reflection as prompt
from memory_mesh.core.language.safety.injection import detect
from memory_mesh.core.model import (
    Compare,
    In,
    Kind,
    Memory,
    MemoryType,
    Row,
    SearchResult,
    Status,
    all_of,
    batches,
    equals,
    iso,
)
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.search.evaluation import (
    CUTS,
    MAX_IDS,
    Answered,
    Evaluation,
    Finding,
    Question,
    Retrieval,
    absent_questions,
    latency,
    make_question,
    nothing,
    order,
    read_questions,
    retrieval,
    subjects,
)
from memory_mesh.core.search.lexical import query_tokens
from memory_mesh.core.search.passages import versions
from memory_mesh.core.text import is_blank
from memory_mesh.flows.audit.audit import ChainSelection, verify_chains
from memory_mesh.flows.context import Context, intact, paged
from memory_mesh.flows.graph import search as graph_search
from memory_mesh.flows.graph.context import ContextRequest, build
from memory_mesh.flows.lane.capture import REPEATS, junk
from memory_mesh.flows.search import search
from memory_mesh.flows.search.readable import readable
from memory_mesh.flows.upkeep.consolidate import find_duplicates, scope_of
from memory_mesh.flows.write import embed

# --- questions of a language model ---
# They use other words than the memories that answer them.

_AT_ONCE = 10
_CHARS_PER_TOKEN = 4
# Of a memory; a question needs no more, and the evaluation has looked for secrets in these.
_MAX_CHARS = 10_000
_OLDER = (
    "questions by rules, because the store is that of an earlier version, and counting a call of "
    "the model would upgrade it"
)


def paraphrased(context: Context, memories: Sequence[Memory]) -> tuple[dict[str, str], str]:
    """Return the questions that the model wrote, by the id of the memory, and why the others have
    none.

    Without a model there are none. After a failure the model is not asked again: a spent budget or
    a server that is down would fail for every batch.
    """
    found: dict[str, str] = {}
    if context.models.chat is None or not memories:
        return found, ""
    if not context.file.is_prepared():
        return found, _OLDER
    room = min(_CHARS_PER_TOKEN * context.options.llm_input_tokens // _AT_ONCE, _MAX_CHARS)
    for batch in batches(memories, _AT_ONCE):
        texts = [memory.content[:room] for memory in batch]
        asked = prompt.build_question_prompt(
            texts, context.ids.salt(), max_tokens=context.options.answer_tokens
        )
        try:
            questions = prompt.read_questions(context.models.chat.reply(asked), len(batch))
        except (CallError, BudgetSpent, AnswerUnreadable) as error:
            return found, f"questions by rules, because {error}"
        found |= {
            batch[at].id: text for at, text in questions.items() if _is_usable(text, texts[at])
        }
    return found, ""


def _is_usable(question: str, text: str) -> bool:
    """Return whether a question is more than a part of the memory, and does not instruct a
    model."""
    return normal_text(question.rstrip("?？")) not in normal_text(text) and not detect(question)


# --- the evaluation ---

MAX_QUESTIONS = 10_000
_LIMIT = max(CUTS)
_QUERY_CHARS = 300  # of a hidden memory: its own words are the query
_JUDGED_CHARS = 20_000  # redaction takes seconds for a text of a megabyte
_ALL_JUNK = 1_000_000
_HIDDEN = tuple(status for status in Status if status is not Status.ACTIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of an evaluation. `timer` returns seconds."""

    lines: Iterable[str] | None
    count: object
    seed: object
    timer: Callable[[], float]
    progress: Progress = no_progress


def evaluate(context: Context, request: Request) -> Evaluation:
    """Ask the questions, check what is stored, and return the figures. Nothing is written."""
    count = whole_number("count", request.count, max_=MAX_QUESTIONS)
    seed = whole_number("seed", request.seed, min_=0, max_=2**63 - 1)
    given = None if request.lines is None else read_questions(request.lines)
    context = context.with_options(enable_memory=False)
    found = _scan(context, count, seed)
    made = _made(context, found, count, seed) if given is None else _Made(given)
    questions = made.questions
    asked: list[tuple[Answered, list[SearchResult]]] = []
    # Not measured: the first search of a process reads the index and loads the ranker.
    for question in questions[:1]:
        _ask(context, question, request.timer)
    for at, question in enumerate(questions):
        request.progress("questions", at, len(questions))
        asked.append(_ask(context, question, request.timer))
    answered = [one for one, _ in asked]
    request.progress("questions", len(questions), len(questions))
    figures, median_p95 = retrieval(answered), latency(answered)
    kinds = sorted({one.question.kind for one in answered if one.question.expected})
    return Evaluation(
        memories=found.memories,
        made=given is None,
        by_model=made.by_model,
        note=made.note,
        retrieval=figures,
        by_kind={
            kind: retrieval([one for one in answered if one.question.kind == kind])
            for kind in kinds
        },
        nothing=nothing(answered),
        median_ms=median_p95[0],
        p95_ms=median_p95[1],
        advice=_advice(context, figures),
        hygiene=[
            *_stored(context, found),
            *_hidden(context, count, seed),
            _stale(context, asked, count, seed),
            _chains(context),
        ],
        answered=answered,
    )


# --- one pass over the active memories ---


@dataclass(slots=True)
class _Scan:
    """What one pass over the active memories finds."""

    memories: int = 0
    sample: list[tuple[int, str]] = field(default_factory=list)  # the order of the seed, and the id
    words: set[str] = field(default_factory=set)  # of the subjects of questions about nothing
    # The id of the oldest memory so far, by scope and text.
    texts: dict[object, str] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    long: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    without_vector: list[str] = field(default_factory=list)


def _scan(context: Context, count: int, seed: int) -> _Scan:
    """Read the active memories of the reader a page at a time."""
    found, gate, watched = _Scan(), _redactor(context), subjects()
    embedded_by = context.models.embedder.model if context.models.embedder else None
    for row in paged(context, Kind.MEMORY, _own(context, readable(context))):
        memory = Memory.of(row)
        found.memories += 1
        found.sample.append((order(seed, memory.content), row.id))
        if len(found.sample) > 4 * count + 100:
            found.sample = sorted(found.sample)[: 2 * count]
        found.words |= watched.intersection(query_tokens(memory.content[:_JUDGED_CHARS]))
        _judge(context, memory, found)
        text = memory.content[:_JUDGED_CHARS]
        if gate.redact(text) != text:
            found.secrets.append(row.id)
        if embedded_by and embed.lacks_vector(row, embedded_by):
            found.without_vector.append(row.id)
    return found


def _judge(context: Context, memory: Memory, found: _Scan) -> None:
    """Add a memory to what is empty, too long, or the copy of another."""
    if is_blank(memory.content):
        found.empty.append(memory.id)
    if len(memory.content) > context.limits.content_chars:
        found.long.append(memory.id)
    if (
        memory.speaker is not None
        or memory.turn is not None
        or memory.memory_type == MemoryType.LESSON
    ):
        return  # people say the same twice
    key = (scope_of(context, memory), hash(normal_text(memory.content)))
    # The newest memory comes first; the oldest one is the original.
    if newer := found.texts.get(key):
        found.copies.append(newer)
    found.texts[key] = memory.id


def _redactor(context: Context) -> Layer0:
    """Return what masks secrets; with redaction switched off, that of the default settings."""
    gate = context.gates.query()
    return gate if gate.redactor else Layer0()


def _own(context: Context, *conditions: model.Where) -> model.Where:
    return all_of(
        model.visible_to(context.reader), model.in_project(context.reader.project), *conditions
    )


# --- questions ---


@dataclass(frozen=True, slots=True)
class _Made:
    """The questions of an evaluation, how many of them the language model wrote, and why not
    more."""

    questions: list[Question]
    by_model: int = 0
    note: str = ""


def _made(context: Context, found: _Scan, count: int, seed: int) -> _Made:
    """Return a question for each memory of the sample that has a sentence for one, and as many
    at most about nothing."""
    sample = _read(context, [id_ for _, id_ in sorted(found.sample)])
    by_rules = [
        (memory, text) for memory in sample if (text := make_question(memory.content, seed))
    ][:count]
    by_model, note = paraphrased(
        context, _shown(context, found, [memory for memory, _ in by_rules])
    )
    made = [
        Question(text=by_model.get(memory.id, text), expected=(memory.id,), kind=memory.memory_type)
        for memory, text in by_rules
    ]
    return _Made([*made, *absent_questions(found.words, seed, len(made))], len(by_model), note)


def _shown(context: Context, found: _Scan, memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories that the language model may read: without a secret, and as their audit
    blocks sealed them."""
    if context.models.chat is None:
        return []
    rows = context.store.get(Kind.MEMORY, [memory.id for memory in memories])
    shown = {row.id for row in intact(context, rows.values())} - set(found.secrets)
    return [memory for memory in memories if memory.id in shown]


def _read(context: Context, ids: Sequence[str]) -> list[Memory]:
    rows = context.store.get(Kind.MEMORY, ids)
    return [Memory.of(rows[id_]) for id_ in ids if id_ in rows]


def _ask(
    context: Context, question: Question, timer: Callable[[], float]
) -> tuple[Answered, list[SearchResult]]:
    """Search as a caller would, without the cache, and return the ranks of the expected memories
    with the results."""
    mode = None if question.expected else "precise"
    start = timer()
    results = search.search(
        context, search.Request(query=question.text, limit=_LIMIT, mode=mode), use_cache=False
    )
    ms = (timer() - start) * 1000
    stored = {memory.id: memory.content for memory in _read(context, question.expected)}
    ranks = tuple(_rank(results, one, stored.get(one, one)) for one in question.expected)
    precise = sum(result.relevant for result in results)
    return Answered(question=question, ranks=ranks, precise=precise, ms=ms), results


def _rank(results: Sequence[SearchResult], id_: str, text: str) -> int | None:
    """Return the rank of a memory from 1. Of equal texts a search shows one, which counts for
    all of them."""
    wanted = normal_text(text)
    matches = (
        at
        for at, one in enumerate(results, 1)
        if one.id == id_ or normal_text(one.content) == wanted
    )
    return next(matches, None)


def _advice(context: Context, figures: Retrieval) -> dict[str, str]:
    """Return what would improve the figures of retrieval that are not perfect."""
    if figures.mrr is None:
        return {
            "recall": "Store memories of a whole sentence, or give questions with --questions FILE."
        }
    better = {
        "recall": (
            "Store each statement on its own (memory-mesh extract), and remove copies (memory-mesh "
            "consolidate)."
        ),
        "mrr": (
            "Archive what is outdated: run memory-mesh consolidate --dry-run, then "
            "memory-mesh junk."
        ),
    }
    if context.models.embedder is None:
        better["recall"] = (
            "Searches compare keywords only: run memory-mesh model fetch, then memory-mesh reembed."
        )
    perfect = {"recall": figures.recall[_LIMIT] == 1, "mrr": figures.mrr == 1}
    return {name: text for name, text in better.items() if not perfect[name]}


# --- hygiene ---


def _finding(
    name: str, ids: Sequence[str], of: int, remedy: str, *, fails: bool = False, detail: str = ""
) -> Finding:
    return Finding(
        name=name,
        count=len(ids),
        of=of,
        ids=tuple(ids[:MAX_IDS]),
        remedy=remedy if ids else "",
        fails=fails,
        detail=detail,
    )


def _stored(context: Context, found: _Scan) -> Iterator[Finding]:
    """Yield what the active memories are like."""
    bad = junk(context, apply=False, limit=_ALL_JUNK)
    repeated = {one.id for one in bad if one.why.startswith(REPEATS)} | {
        str(step.memory_id) for step in find_duplicates(context)
    }
    near = sorted(repeated - set(found.copies))
    worthless = [one.id for one in bad if not one.why.startswith(REPEATS)]
    finding = partial(_finding, of=found.memories)
    # Consolidation compares vectors.
    merge = (
        "Merge them: memory-mesh consolidate."
        if context.models.embedder
        else "Archive them: memory-mesh junk --archive."
    )
    yield finding("exact duplicates", found.copies, remedy=merge)
    yield finding("near duplicates", near, remedy=merge)
    yield finding(
        "junk",
        worthless,
        remedy="Look at it, then archive it: memory-mesh junk, memory-mesh junk --archive.",
    )
    if context.models.embedder:
        yield finding(
            "without a vector", found.without_vector, remedy="Embed them: memory-mesh reembed."
        )
    yield finding("empty", found.empty, remedy="Erase them: memory-mesh delete ID.")
    yield finding(
        "over-long", found.long, remedy="Store the parts instead, or raise max_content_chars."
    )
    yield finding(
        "secrets in the text", found.secrets, fails=context.options.redaction != "off",
        remedy="Store them again redacted: memory-mesh update ID --content TEXT, or memory-mesh "
               "delete ID.",
    )  # fmt: skip


def _hidden(context: Context, count: int, seed: int) -> Iterator[Finding]:
    """Yield how many hidden memories a search or a context shows that asks in their own words.

    The control asks the same with every status: it says how many of them the words would find.
    """
    expired = all_of(
        equals("status", Status.ACTIVE), Compare("expires_at", "<=", iso(context.clock()))
    )
    rows = [
        row
        for where in (In("status", _HIDDEN), expired)
        for row in paged(context, Kind.MEMORY, _own(context, where))
    ]
    hidden = [
        one for one in map(Memory.of, _sample(rows, count, seed)) if not is_blank(one.content)
    ]
    found: list[str] = []
    shown: list[str] = []
    control = 0
    for memory in hidden:
        request = search.Request(query=memory.content[:_QUERY_CHARS], limit=_LIMIT)
        found += (
            [memory.id] if _has(search.search(context, request, use_cache=False), memory) else []
        )
        everything = search.search(
            context, replace(request, statuses=tuple(Status)), use_cache=False
        )
        control += _has(everything, memory)
        text = build(context, request.query, ContextRequest(search=graph_search.Request()))
        leaked = memory.content in text and not any(
            memory.content in one.content for one in text.memories
        )
        shown += [memory.id] if leaked or _has(text.memories, memory) else []
    remedy = "This is a bug of memory-mesh; erase them (memory-mesh delete ID) and report it."
    detail = f"{control} of them are found if every status is asked for" if hidden else ""
    yield _finding("hidden memories found", found, len(hidden), remedy, fails=True, detail=detail)
    yield _finding("hidden memories in a context", shown, len(hidden), remedy, fails=True)


def _sample(rows: Sequence[Row], count: int, seed: int) -> list[Row]:
    return sorted(rows, key=lambda row: order(seed, str(row.value("content"))))[:count]


def _has(results: "Sequence[model.MemoryRecord]", memory: Memory) -> bool:
    return any(one.id == memory.id for one in results)


def _stale(
    context: Context, asked: Sequence[tuple[Answered, list[SearchResult]]], count: int, seed: int
) -> Finding:
    """Return the older versions that stand above the current one: in the results of the
    questions, and of superseded texts."""
    above = [
        id_
        for answered, results in asked
        for id_ in _above(context, answered.question.text, results)
    ]
    rows = list(paged(context, Kind.MEMORY, _own(context, equals("status", Status.SUPERSEDED))))
    superseded = _sample(rows, count, seed)
    for old in map(Memory.of, superseded):
        current = _current(context, old)
        if current is None or is_blank(old.content):
            continue
        question = make_question(old.content, seed) or old.content[:_QUERY_CHARS]
        results = search.search(
            context, search.Request(query=question, limit=_LIMIT), use_cache=False
        )
        stale, right = (
            _rank(results, old.id, old.content),
            _rank(results, current.id, current.content),
        )
        if stale and (right is None or stale < right):
            above.append(old.id)
    remedy = (
        "Archive the older text: memory-mesh archive ID, or state it as a claim (docs/claims.md)."
    )
    return _finding(
        "stale above current", list(dict.fromkeys(above)), len(asked) + len(superseded), remedy
    )


def _above(context: Context, question: str, results: Sequence[SearchResult]) -> Iterator[str]:
    """Yield the results that stand above a newer version of the same statement."""
    places = {one.id: at for at, one in enumerate(results)}
    rows = context.store.get(Kind.MEMORY, list(places))
    for newest, *older in versions(list(rows.values()), query_tokens(question)):
        yield from (row.id for row in older if places[row.id] < places[newest.id])


def _current(context: Context, old: Memory) -> Memory | None:
    """Return the active memory that took the place of a superseded one, after any number of
    steps."""
    seen = {old.id}
    memory: Memory | None = old
    while (
        memory
        and memory.status == Status.SUPERSEDED
        and memory.superseded_by
        and memory.superseded_by not in seen
    ):
        seen.add(memory.superseded_by)
        memory = next(iter(_read(context, [memory.superseded_by])), None)
    return (
        memory
        if memory and memory.status == Status.ACTIVE and model.visible(context.reader, memory.row())
        else None
    )


def _chains(context: Context) -> Finding:
    verdicts = verify_chains(context, ChainSelection(), noted=None, file=None)
    broken = [one.chain for one in verdicts if isinstance(one, Broken)]
    remedy = "See which block: memory-mesh audit verify; then restore a backup."
    return _finding("broken audit chains", broken, len(verdicts), remedy, fails=True)
