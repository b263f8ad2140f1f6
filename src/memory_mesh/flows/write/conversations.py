"""Memories from conversations and texts: store interactions, recall for a prompt, extract, end."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_mesh.core import errors, model
from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    CallRefused,
    EmbeddingError,
    InvalidInput,
    MemoryMeshError,
    NotFound,
    fraction,
    shown,
)
from memory_mesh.core.intake import PLAIN, NewText, Terms, read_metadata
from memory_mesh.core.language.prompts import extraction
from memory_mesh.core.language.prompts.extraction import Extracted, Item
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.language.safety.injection import InjectionKind, detect
from memory_mesh.core.language.scrubbing import split_chunks
from memory_mesh.core.learning import LESSON_TAG
from memory_mesh.core.model import (
    CONTENTS,
    MIN_IMPORTANCE,
    Compare,
    EndedSession,
    Extraction,
    HealthStatus,
    In,
    Kind,
    Memory,
    MemoryRecord,
    MemoryType,
    Not,
    Or,
    Receipt,
    SearchResult,
    Status,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import ChatModel, Progress, no_progress
from memory_mesh.core.search import Query
from memory_mesh.core.text import estimate, shown_url
from memory_mesh.flows.context import (
    Context,
    Plan,
    check_texts,
    commit,
    count_by_status,
    intact,
    require_memory,
)
from memory_mesh.flows.search.filters import text_of
from memory_mesh.flows.search.readable import is_readable, readable, records
from memory_mesh.flows.search.search import Request, search
from memory_mesh.flows.write import embed, write
from memory_mesh.flows.write.embed import Vectors
from memory_mesh.flows.write.prepare import (
    Prepared,
    find_replayed,
    prepare,
    receipt_id,
    replayed_id,
    request_hash,
)
from memory_mesh.flows.write.revisions import archive
from memory_mesh.flows.write.write import plan_add

# --- extraction ---
# The model gets the redacted text behind a fence, and its answer is validated like any input. If
# there is no model, if it fails or if its answer is unusable, the text is stored unchanged instead,
# so nothing is lost.

# Of a text that is stored unchanged.
_DOCUMENT: Mapping[str, object] = {
    "importance": 0.5,
    "provenance": {"source": Source.DOCUMENT.value},
}
# Errors after which the model is not called again.
_PERMANENT = (
    errors.Unreachable,
    errors.UnsafeAddress,
    errors.CallTimedOut,
    errors.RateLimited,
    BudgetSpent,
)
_PAGE = 100  # receipts read at once
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The validated arguments of one call."""

    content: str
    metadata: Mapping[str, object]  # added to each memory
    min_importance: float
    hash: str
    redactions: Mapping[str, int]
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One part of the text: the memories extracted from it, or why it is stored unchanged."""

    text: str
    memories: tuple[Prepared, ...] = ()
    dropped: int = 0
    unusable: int = 0
    failed: str | None = None
    give_up: bool = False  # the other parts would fail for the same reason


def extract(
    context: Context, text: object, *, min_importance: object = MIN_IMPORTANCE,
    metadata: object = None, key: str | None = None, progress: Progress = no_progress,
    terms: Terms = PLAIN,
) -> Extraction:  # fmt: skip
    """Extract memories from a text and store them, all or none. Memories below `min_importance`
    are dropped."""
    context.check_enabled()
    request = _validate(context, text, min_importance, metadata, terms)
    if stored := _stored_under(context, key, request):
        return Extraction(memories=_records(context, stored), repeated=True)
    parts = _extract_parts(context, request, progress)
    prepared = [
        *(memory for part in parts for memory in part.memories),
        *_prepare_unchanged(context, parts, request),
    ]
    memories, repeated = _store(context, prepared, key, request)
    return Extraction(
        memories=_records(context, memories),
        dropped=sum(part.dropped for part in parts),
        unusable=sum(part.unusable for part in parts),
        stored_whole=next((part.failed for part in parts if part.failed), None),
        flagged=_flags(str(text), request.content),
        redactions=dict(request.redactions),
        repeated=repeated,
    )


def _validate(
    context: Context, text: object, min_importance: object, metadata: object, terms: Terms
) -> _Request:
    """Raise `InvalidInput` for anything that is wrong with the arguments, before a model is paid
    to read them."""
    minimum = fraction("min_importance", min_importance)
    draft = prepare(context, [NewText(text, metadata)])[0].draft
    read_metadata({**_DOCUMENT, **draft.metadata, "flagged": list(InjectionKind)}, context.limits)
    hash_ = request_hash("extract", draft.content, draft.metadata, minimum)
    return _Request(
        content=draft.content, metadata=draft.metadata, min_importance=minimum, hash=hash_,
        redactions=draft.redactions, terms=terms,
    )  # fmt: skip


# --- asking the model ---


def _extract_parts(context: Context, request: _Request, progress: Progress) -> list[_Part]:
    if context.models.chat is None:
        return [_Part(text=request.content, failed="no language model is set")]
    parts: list[_Part] = []
    texts = _split(context, request.content)
    for text in texts:
        # After a permanent failure the model is not called again: a long text may have a hundred
        # parts.
        give_up = parts and parts[-1].give_up
        parts.append(
            replace(parts[-1], text=text)
            if give_up
            else _extract_part(context, context.models.chat, text, request)
        )
        progress("extracting", len(parts), len(texts))
    # If every part failed, the text is stored as one memory.
    return (
        [replace(parts[0], text=request.content)] if all(part.failed for part in parts) else parts
    )


def _split(context: Context, text: str) -> list[str]:
    """Split a text into parts that the model can read at once. Nearly every text is a single
    part."""
    max_tokens = context.options.llm_input_tokens
    if estimate(text) <= max_tokens:
        return [text]
    rules = context.gates.content().scrub.chunking
    rules = replace(
        rules, heading_aware=False, min_tokens=1, max_tokens=max_tokens, hard_max_tokens=max_tokens
    )
    return [chunk.text for chunk in split_chunks(text, rules, estimate)]


def _extract_part(context: Context, chat: ChatModel, text: str, request: _Request) -> _Part:
    check_cancelled()
    try:
        reply = chat.reply(
            extraction.build_prompt(
                text, context.ids.salt(), max_tokens=context.options.answer_tokens
            )
        )
        return _accept(context, text, extraction.read_reply(reply), request)
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        _log.warning("extract: stored unchanged, because %s", error)
        permanent = isinstance(error, _PERMANENT)
        # 401, 403, 404: a wrong key, address or model
        permanent |= isinstance(error, CallRefused) and error.status in (401, 403, 404)
        return _Part(text=text, failed=error.what, give_up=permanent)


def _accept(context: Context, text: str, extracted: Extracted, request: _Request) -> _Part:
    """Return the usable memories of an answer. Raise `AnswerUnreadable` if there are items and
    none is usable."""
    important = [item for item in extracted.items if item.importance >= request.min_importance]
    memories = tuple(
        prepared for item in important if (prepared := _prepare_item(context, item, request))
    )
    unusable = extracted.skipped + len(important) - len(memories)
    if unusable and not memories:
        raise AnswerUnreadable(
            "nothing in the model's answer could be used", expected="memories in the requested form"
        )
    return _Part(
        text=text,
        memories=memories,
        dropped=len(extracted.items) - len(important),
        unusable=unusable,
    )


# --- preparing and storing ---


def _prepare_item(context: Context, item: Item, request: _Request) -> Prepared | None:
    """Prepare an extracted item; None if it is invalid, so that the others are stored all the
    same."""
    provenance = {"source": Source.INFERENCE.value}
    metadata = {
        **request.metadata,
        "category": item.category,
        "importance": item.importance,
        "provenance": provenance,
    }
    tags = request.metadata.get("tags")
    if item.tags or tags:
        metadata["tags"] = list(
            dict.fromkeys([*(tags if isinstance(tags, list) else []), *item.tags])
        )
    given = NewText(
        item.text,
        _with_flags(item.text, metadata),
        BASE_TRUST[Source.INFERENCE],
        terms=request.terms,
    )
    try:
        return prepare(context, [given], request=request.hash)[0]
    except InvalidInput:
        return None


def _prepare_unchanged(
    context: Context, parts: Sequence[_Part], request: _Request
) -> list[Prepared]:
    """Prepare the parts that failed, as they are."""
    pairs = [
        (part.text, _with_flags(part.text, {**_DOCUMENT, **request.metadata}))
        for part in parts
        if part.failed
    ]
    # They were valid before. A mask may be longer than the text it replaced, so the limit is
    # raised.
    max_chars = max([context.limits.content_chars, *(len(text) for text, _ in pairs)])
    context = context.with_options(max_content_chars=max_chars)
    trust = BASE_TRUST[Source.DOCUMENT]
    return prepare(
        context,
        [NewText(*pair, trust, terms=request.terms) for pair in pairs],
        request=request.hash,
    )


def _with_flags(text: str, metadata: dict[str, object]) -> dict[str, object]:
    flags = _flags(text)
    return {**metadata, "flagged": list(flags)} if flags else metadata


def _flags(*texts: str) -> tuple[str, ...]:
    """Return the kinds of prompt injection in a text. Cleaning removes some and uncovers others,
    so callers pass both forms."""
    return tuple(sorted({str(finding.kind) for text in set(texts) for finding in detect(text)}))


def _store(
    context: Context, prepared: Sequence[Prepared], key: str | None, request: _Request
) -> tuple[list[Memory], bool]:
    """Store the memories. Return them, or those of an earlier call with this key and True."""
    items = [
        replace(item, receipt_id=receipt_id(context, key, at)) for at, item in enumerate(prepared)
    ]
    vectors = Vectors()

    def decide() -> Plan[tuple[list[Memory], bool]]:
        # A concurrent call with the same key may have stored other memories: its model may have
        # answered differently.
        if stored := _stored_under(context, key, request):
            return Plan((stored, True))
        plan = plan_add(context, items, vectors)
        return Plan((plan.answer, False), plan.puts, plan.deletes, plan.seen)

    return commit(context, decide)


def _stored_under(context: Context, key: str | None, request: _Request) -> list[Memory]:
    """Return the memories that an earlier call with this key stored."""
    if key is None:
        return []
    find_replayed(context, key, request.hash)  # raises if the key was used for another kind of call
    memories: list[Memory] = []
    while True:
        ids = [
            str(receipt_id(context, key, at)) for at in range(len(memories), len(memories) + _PAGE)
        ]
        receipts = context.store.get(Kind.RECEIPT, ids)
        page = [
            replayed_id(Receipt.of(receipts[id_]), request.hash) for id_ in ids if id_ in receipts
        ]
        memories += [require_memory(context, memory_id, any_reader=True) for memory_id in page]
        if len(page) < _PAGE:
            return memories


def _records(context: Context, memories: Sequence[Memory]) -> tuple[MemoryRecord, ...]:
    """Return each memory once: two items of an answer may become the same memory."""
    return tuple(records(context, list({memory.id: memory for memory in memories}.values())))


# --- interactions ---

_NEAREST = 20  # candidates of each channel that are compared with a new interaction
_LESSON = equals("memory_type", MemoryType.LESSON)
_TAGGED = In("tags", (LESSON_TAG,))


def capture(context: Context, interaction: NewText) -> Memory | None:
    """Store an interaction and return its memory. A near-duplicate of a stored one is counted as
    observed there; then None."""
    # Words and vectors decide what is known, not the fingerprint alone.
    prepared = prepare(context.with_options(deduplicate=False), [interaction])
    vectors = Vectors()

    def decide() -> Plan[Memory | None]:
        plan = write.plan_add(context, prepared, vectors)
        new = plan.answer[0]
        known = near_duplicate(context, new) if context.options.deduplicate else None
        if known is None:
            return Plan(new, plan.puts, plan.deletes, plan.seen)
        observed = write.plan_observation(context, prepared[0], known)
        return Plan(None, observed.puts, observed.deletes, plan.seen)

    return commit(context, decide)


def near_duplicate(context: Context, new: Memory) -> Memory | None:
    """Return the stored memory of the same scope and skill that says the same as a new one, or
    None."""
    from memory_mesh.core.intake.similar import is_near_duplicate  # compiles patterns

    reader, limit = (
        replace(context.reader, session_id=new.session_id),
        context.options.duplicate_similarity,
    )
    where = all_of(equals("memory_type", new.memory_type), equals("project", new.project))
    query = Query(
        tokens=new.keywords, vector=new.vector, reader=reader, at=iso(context.clock()), where=where
    )
    pool = context.index.snapshot(reader).candidates(query, size=_NEAREST)
    cosines = {
        id_: float(cosine) or None
        for id_, cosine in zip(pool.ids, pool.signals["vectors"], strict=True)
    }
    similar = [id_ for id_, cosine in cosines.items() if cosine is None or cosine >= limit]
    rows = [
        *write.find_active(context, [str(new.fingerprint)], query.at),
        *context.store.get(Kind.MEMORY, similar).values(),
    ]
    test = is_readable(replace(context, reader=reader), (Status.ACTIVE,), where)
    for known in map(Memory.of, intact(context, filter(test, rows))):
        same_skill = known.metadata.get("skill_name") == new.metadata.get("skill_name")
        if same_skill and is_near_duplicate(
            new, known, cosine=cosines.get(known.id), min_cosine=limit
        ):
            return known
    return None


def recall(
    context: Context, query: str, *, limit: int, use_cache: bool, memory_type: str | None,
    skill_name: str | None, include_lessons: bool,
) -> list[SearchResult]:  # fmt: skip
    """Return the memories that are relevant to a query, in precise mode; lessons only with
    `include_lessons`."""
    _check_recall(memory_type, skill_name, include_lessons)
    given = {"memory_type": memory_type, "metadata.skill_name": skill_name}
    restrictions = [equals(name, value) for name, value in given.items() if value is not None]
    where = all_of(
        *restrictions, *([] if memory_type == MemoryType.LESSON else [Not(_LESSON), Not(_TAGGED)])
    )
    if include_lessons:
        confident = Compare("confidence", ">=", context.options.lesson_min_confidence)
        where = Or((where, all_of(_TAGGED, Or((Not(_LESSON), confident)))))
    used = {name: value for name, value in given.items() if value is not None}
    filter_ = text_of({**used, "include_lessons": include_lessons})  # for the audit chain
    return search(
        context,
        Request(query=query, limit=limit, filter=filter_, where=where, mode="precise"),
        use_cache=use_cache,
    )


def _check_recall(memory_type: object, skill_name: object, include_lessons: object) -> None:
    if memory_type is not None and memory_type not in list(MemoryType):
        raise InvalidInput(
            f"memory_type is {shown(memory_type)}", expected=f"one of {', '.join(MemoryType)}"
        )
    if skill_name is not None and not (isinstance(skill_name, str) and skill_name.strip()):
        raise InvalidInput(f"skill_name is {shown(skill_name)}", expected="a non-empty text")
    if not isinstance(include_lessons, bool):
        raise InvalidInput(f"include_lessons is {shown(include_lessons)}", expected="True or False")
    if memory_type == MemoryType.LESSON and not include_lessons:
        raise InvalidInput(
            "memory_type is 'lesson', and lessons are left out", remedy="set include_lessons=True"
        )


# --- sessions ---


def end_session(context: Context, session_id: str) -> EndedSession:
    """Archive the reader's memories and skills of type `session` of a session, and the
    reflections and skills drawn from them. Raise `NotFound` if nothing was ever stored in it."""
    check_texts(session_id=session_id)
    context.check_enabled()
    own = replace(context, reader=replace(context.reader, session_id=session_id))
    theirs = all_of(equals("session_id", session_id), model.visible_to(own.reader))
    if not any(context.store.count(kind, theirs) for kind in CONTENTS):
        raise NotFound(
            f"no memories of session {shown(session_id)} for agent {context.reader.agent_id}",
            remedy="check the name of the session, the agent and the user",
        )
    within = equals("reach", model.Reach.SESSION)
    drawn = {
        Kind.MEMORY: all_of(equals("memory_type", MemoryType.REFLECTION), within),
        Kind.SKILL: within,
    }
    archived: list[str] = []
    for kind in CONTENTS:
        ending = Or((equals("memory_type", MemoryType.SESSION), drawn[kind]))
        ids = context.store.ids(kind, all_of(theirs, ending, equals("status", Status.ACTIVE)))
        archived += archive(own, kind, ids, lambda memory: "the session ended")
    return EndedSession(session_id=session_id, archived=tuple(archived))


# --- health ---


def check_health(open_: Callable[[], Context]) -> HealthStatus:
    """Open the store, count its memories and embed one word. Problems are reported, not raised."""
    try:
        context = open_()
        context.check_enabled()
        total = sum(count_by_status(context).values())
        waiting = context.store.count(
            Kind.MEMORY, all_of(readable(context), equals("pending", value=True))
        )
    except MemoryMeshError as error:
        return HealthStatus(status="unhealthy", problems=(str(error),))
    problems = tuple(_problems(context, waiting))
    return HealthStatus(
        status="degraded" if problems else "healthy",
        store=shown_url(context.store.url),
        total_memories=total,
        pending=waiting,
        embedder=context.models.embedder.model if context.models.embedder else None,
        problems=problems,
    )


def _problems(context: Context, waiting: int) -> Iterator[str]:
    if waiting:
        yield f"{waiting:,} memories have no vector; run `memory-mesh reembed`"
    if context.models.embedder is None:
        return
    stored = embed.store_model(context)
    embedder = embed.embedder_for(context, stored)
    if stored and embedder and stored != embedder.model:
        yield (
            f"the store has vectors of {stored}, and the embedder is "
            f"{context.models.embedder.model}; run `memory-mesh reembed`"
        )
    try:
        embed.embed_texts(context.models.embedder, ["health"])
    except EmbeddingError as error:
        yield f"the embedder fails: {error}"
