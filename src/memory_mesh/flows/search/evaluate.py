"""Evaluate a store on the reader's own memories: what questions find, how fast, and hygiene.

Everything is read. Searches are neither counted as uses nor written to the audit chain: the context
has memory switched off, so that a write would raise `MemoryDisabled`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memory_mesh.core import model
from memory_mesh.core.audit import Broken
from memory_mesh.core.claims.updates import ENDS, MAY_UPDATE, UPDATES, asks_past
from memory_mesh.core.errors import AnswerUnreadable, BudgetSpent, CallError, whole_number
from memory_mesh.core.intake import normal_text
from memory_mesh.core.intake.gate import Layer0
from memory_mesh.core.language.prompts import reflection as prompt
from memory_mesh.core.language.safety.injection import detect
from memory_mesh.core.model import (
    Compare,
    In,
    Kind,
    Link,
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
from memory_mesh.core.ports import ChatModel, Progress, no_progress
from memory_mesh.core.search.evaluation import (
    CUTS,
    GIVEN,
    KNOWN,
    MAX_IDS,
    MODEL,
    POSSIBLE,
    RULES,
    Answered,
    Comparison,
    Evaluation,
    Finding,
    Pair,
    Question,
    absent_questions,
    compare,
    latency,
    make_question,
    nothing,
    order,
    read_questions,
    reciprocal,
    retrieval,
    subjects,
)
from memory_mesh.core.search.lexical import query_tokens, tokens
from memory_mesh.core.text import is_blank
from memory_mesh.flows.audit.audit import ChainSelection, verify_chains
from memory_mesh.flows.context import Context, intact, paged
from memory_mesh.flows.graph import search as graph_search
from memory_mesh.flows.graph.context import ContextRequest, build
from memory_mesh.flows.graph.links import read_active
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
# Of the keywords of a question, those that its memory has, too. It leaves room for a name; of the
# questions of bench.everyday, nine in ten that need an inference are below it.
_MAX_REUSED = 1 / 3
_OLDER = (
    "no questions of the model, because the store is that of an earlier version, and counting a "
    "call would upgrade it"
)


@dataclass(slots=True)
class Written:
    """The questions that the model wrote, by the id of the memory, how many others were in words
    of their memory, and why there are no more."""

    questions: dict[str, str] = field(default_factory=dict)
    dropped: int = 0
    note: str = ""


def paraphrased(context: Context, memories: Sequence[Memory]) -> Written:
    """Return questions about the memories in other words than theirs.

    Without a model there are none. The model is asked a second time for those that reuse words of
    their memory. After a failure it is not asked again: a spent budget or a server that is down
    would fail for every batch.
    """
    written, chat = Written(), context.models.chat
    if chat is None or not memories:
        return written
    if not context.file.is_prepared():
        written.note = _OLDER
        return written
    try:
        for batch in batches(memories, _AT_ONCE):
            reused = _write(context, chat, batch, written)
            if again := [memory for memory in batch if memory.id in reused]:
                words = sorted({word for one in reused.values() for word in one})
                _write(context, chat, again, written, words)
                written.dropped += sum(one.id not in written.questions for one in again)
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        written.note = f"no more questions of the model, because {error}"
    return written


def _write(
    context: Context,
    chat: ChatModel,
    memories: Sequence[Memory],
    written: Written,
    avoided: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Add what the model writes about the memories, and return the words that others of its
    questions reuse."""
    room = min(_CHARS_PER_TOKEN * context.options.llm_input_tokens // _AT_ONCE, _MAX_CHARS)
    texts = [memory.content[:room] for memory in memories]
    asked = prompt.build_question_prompt(
        texts, context.ids.salt(), max_tokens=context.options.answer_tokens, avoided=avoided
    )
    reused: dict[str, list[str]] = {}
    answers = prompt.read_questions(chat.reply(asked), len(texts))
    for at, question in answers.items():
        words = _reused(question, texts[at], context.options.stemmer_language)
        if words:
            reused[memories[at].id] = words
        elif not detect(question):  # it instructs no model
            written.questions[memories[at].id] = question
    return reused


def _reused(question: str, text: str, language: str) -> list[str]:
    """Return the words of a question that its memory has, too, if they are too many."""
    keywords = set(query_tokens(question, language=language))
    shared = keywords.intersection(tokens(text, language=language))
    if len(shared) <= _MAX_REUSED * len(keywords):
        return []
    words = [word.strip(".,;:!?") for word in question.split()]
    return [word for word in words if shared & {*tokens(word, language=language)}]


# --- the evaluation ---

MAX_QUESTIONS = 10_000
_LIMIT = max(CUTS)
_QUERY_CHARS = 300  # of a hidden memory: its own words are the query
_JUDGED_CHARS = 20_000  # redaction takes seconds for a text of a megabyte
_ALL_JUNK = 1_000_000
_MAX_LINKS = 10_000
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
    changed = _changed(context, count, seed)
    sample = [] if given else _read(context, [id_ for _, id_ in sorted(found.sample)])
    about = {memory.id: memory for memory in sample[:count]}
    if about:  # the model is not asked beside given questions
        about |= {one.id: one for _, one, _ in changed if one.status == Status.ACTIVE}
    written = paraphrased(context, _shown(context, found, [*about.values()]))
    questions = given or _made(found, sample, written.questions, count, seed)
    asked: list[tuple[Answered, list[SearchResult]]] = []
    # Not measured: the first search of a process reads the index and loads the ranker.
    for question in questions[:1]:
        _ask(context, question, request.timer)
    for at, question in enumerate(questions):
        request.progress("questions", at, len(questions))
        asked.append(_ask(context, question, request.timer))
    answered = [one for one, _ in asked]
    request.progress("questions", len(questions), len(questions))
    by_rules = [one for one in answered if one.question.source == RULES]
    others = [one for one in answered if one.question.expected and one.question.source != RULES]
    median_ms, p95_ms = latency(answered)
    return Evaluation(
        memories=found.memories,
        made=given is None,
        by_model=sum(one.question.source == MODEL for one in answered),
        dropped=written.dropped,
        note=written.note,
        retrieval=retrieval(others),
        own_words=retrieval(by_rules),
        by_kind={
            kind: retrieval([one for one in others if one.question.kind == kind])
            for kind in sorted({one.question.kind for one in others})
        },
        nothing=nothing(answered),
        median_ms=median_ms,
        p95_ms=p95_ms,
        pairs=[
            *_pairs_of(context, asked),
            *_ask_pairs(context, changed, written.questions, seed),
        ],
        compared=_compared(context, others),
        hygiene=[
            *_stored(context, found),
            *_hidden(context, count, seed),
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


def _made(
    found: _Scan, sample: Sequence[Memory], written: Mapping[str, str], count: int, seed: int
) -> list[Question]:
    """Return the questions that the model wrote about the sample, those by rules for each memory
    that has a sentence for one, and as many of the larger number at most about nothing."""
    by_model = [
        Question(text=written[one.id], expected=(one.id,), kind=one.memory_type, source=MODEL)
        for one in sample[:count]
        if one.id in written
    ]
    by_rules = [
        Question(text=text, expected=(one.id,), kind=one.memory_type, source=RULES)
        for one in sample
        if (text := make_question(one.content, seed))
    ][:count]
    absent = absent_questions(found.words, seed, max(len(by_model), len(by_rules)))
    return [*by_model, *by_rules, *absent]


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
    precise = sum(result.relevant for result in results)
    ranks = _ranks(context, results, question.expected)
    return Answered(question=question, ranks=ranks, precise=precise, ms=ms), results


def _ranks(
    context: Context, results: Sequence[SearchResult], memories: Sequence[str]
) -> tuple[int | None, ...]:
    """Return the ranks of memories that are named by id or text."""
    stored = {memory.id: memory.content for memory in _read(context, memories)}
    return tuple(_rank(results, one, stored.get(one, one)) for one in memories)


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


def _compared(context: Context, answered: Sequence[Answered]) -> list[Comparison]:
    """Ask the same questions with the other ranker."""
    other = next(name for name in search.RANKERS if name != context.options.ranker)
    differences = list[float]()
    for one in answered:
        request = search.Request(query=one.question.text, limit=_LIMIT, ranker=other)
        results = search.search(context, request, use_cache=False)
        ranks = _ranks(context, results, one.question.expected)
        differences.append(reciprocal(ranks) - reciprocal(one.ranks))
    return [compare(f"ranker = {other}", differences)] if differences else []


# --- what changed ---

_Changed = tuple[str, Memory, Memory]  # the kind of a pair, the older memory, the newer one


def _changed(context: Context, count: int, seed: int) -> list[_Changed]:
    """Return the pairs of which a link or a supersession says that the newer one changed the
    older one, and those of which the judge finds it possible; at most `count` of each."""
    where = all_of(
        model.visible_to(context.reader),
        In("link_type", (UPDATES, ENDS, MAY_UPDATE)),
        Compare("similarity", ">", 0.0),
        Compare("created_at", "<=", iso(context.clock())),
    )
    links = [Link.of(row) for row in context.store.find(Kind.LINK, where, limit=_MAX_LINKS)]
    active = read_active(context, [id_ for one in links for id_ in (one.ref, one.target)])
    pairs = [
        (POSSIBLE if one.link_type == MAY_UPDATE else KNOWN, active[one.target], active[one.ref])
        for one in links
        if active.keys() >= {one.ref, one.target}
    ]
    rows = paged(context, Kind.MEMORY, _own(context, equals("status", Status.SUPERSEDED)))
    for old in map(Memory.of, _sample(list(rows), count, seed)):
        if not is_blank(old.content) and (current := _current(context, old)):
            pairs.append((KNOWN, old, current))
    pairs.sort(key=lambda pair: (order(seed, pair[1].content), pair[2].id))
    return [
        pair
        for kind in (KNOWN, POSSIBLE)
        for pair in [one for one in pairs if one[0] == kind][:count]
    ]


def _ask_pairs(
    context: Context, changed: Sequence[_Changed], written: Mapping[str, str], seed: int
) -> Iterator[Pair]:
    """Ask about each older statement, in words of the model, or else in its own."""
    for kind, older, newer in changed:
        question = written.get(older.id) or make_question(older.content, seed)
        question = question or older.content[:_QUERY_CHARS]
        if asks_past(question):
            continue  # it may be the answer
        request = search.Request(query=question, limit=_LIMIT)
        results = search.search(context, request, use_cache=False)
        old, new = (reciprocal([_rank(results, one.id, one.content)]) for one in (older, newer))
        yield Pair(newer=newer.id, older=older.id, kind=kind, question=question, is_stale=old > new)


def _pairs_of(
    context: Context, asked: Sequence[tuple[Answered, list[SearchResult]]]
) -> Iterator[Pair]:
    """Yield, of each given question that names outdated memories, the best of these."""
    for answered, results in asked:
        question = answered.question
        ranks = dict(zip(question.stale, _ranks(context, results, question.stale), strict=True))
        if not ranks:
            continue
        older = max(ranks, key=lambda one: reciprocal([ranks[one]]))
        is_stale = reciprocal([ranks[older]]) > reciprocal(answered.ranks)
        newer = question.expected[0]
        yield Pair(newer=newer, older=older, kind=GIVEN, question=question.text, is_stale=is_stale)


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
