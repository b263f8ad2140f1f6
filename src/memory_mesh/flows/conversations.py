"""Conversations of an agent: store an interaction unless it is known, recall memories for the next prompt, end a session."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from memory_mesh.core import model
from memory_mesh.core.errors import EmbeddingError, InvalidInput, MemoryMeshError, NotFound, shown
from memory_mesh.core.intake import NewText
from memory_mesh.core.learning import LESSON_TAG
from memory_mesh.core.model import (
    CONTENTS,
    Compare,
    EndedSession,
    HealthStatus,
    In,
    Kind,
    Memory,
    MemoryType,
    Not,
    Or,
    SearchResult,
    Status,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.search import Query
from memory_mesh.core.text import shown_url
from memory_mesh.flows import embed, write
from memory_mesh.flows.archive import archive
from memory_mesh.flows.context import Context, Plan, check_texts, commit, count_by_status, intact
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.filters import text_of
from memory_mesh.flows.prepare import prepare
from memory_mesh.flows.readable import is_readable, readable
from memory_mesh.flows.search import Request, search

_NEAREST = 20  # candidates of each channel that are compared with a new interaction
_LESSON = equals("memory_type", MemoryType.LESSON)
_TAGGED = In("tags", (LESSON_TAG,))


# --- interactions ---


def capture(context: Context, interaction: NewText) -> Memory | None:
    """Store an interaction and return its memory. A near-duplicate of a stored one is counted as observed there; then None."""
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
    """Return the stored memory of the same scope and skill that says the same as a new one, or None."""
    from memory_mesh.core.intake.similar import is_near_duplicate  # compiles patterns

    reader, limit = replace(context.reader, session_id=new.session_id), context.options.duplicate_similarity
    where = all_of(equals("memory_type", new.memory_type), equals("project", new.project))
    query = Query(tokens=new.keywords, vector=new.vector, reader=reader, at=iso(context.clock()), where=where)
    pool = context.index.snapshot(reader).candidates(query, size=_NEAREST)
    cosines = {id_: float(cosine) or None for id_, cosine in zip(pool.ids, pool.signals["vectors"], strict=True)}
    similar = [id_ for id_, cosine in cosines.items() if cosine is None or cosine >= limit]
    rows = [*write.find_active(context, [str(new.fingerprint)]), *context.store.get(Kind.MEMORY, similar).values()]
    test = is_readable(replace(context, reader=reader), (Status.ACTIVE,), where)
    for known in map(Memory.of, intact(context, filter(test, rows))):
        same_skill = known.metadata.get("skill_name") == new.metadata.get("skill_name")
        if same_skill and is_near_duplicate(new, known, cosine=cosines.get(known.id), min_cosine=limit):
            return known
    return None


def recall(
    context: Context, query: str, *, limit: int, use_cache: bool, memory_type: str | None, skill_name: str | None,
    include_lessons: bool,
) -> list[SearchResult]:  # fmt: skip
    """Return the memories that are relevant to a query, in precise mode; lessons only with `include_lessons`."""
    _check_recall(memory_type, skill_name, include_lessons)
    given = {"memory_type": memory_type, "metadata.skill_name": skill_name}
    restrictions = [equals(name, value) for name, value in given.items() if value is not None]
    where = all_of(*restrictions, *([] if memory_type == MemoryType.LESSON else [Not(_LESSON), Not(_TAGGED)]))
    if include_lessons:
        where = Or((where, _injectable(context)))
    used = {name: value for name, value in given.items() if value is not None}
    filter_ = text_of({**used, "include_lessons": include_lessons})  # for the audit chain
    return search(context, Request(query=query, limit=limit, filter=filter_, where=where, mode="precise"), use_cache=use_cache)


def _check_recall(memory_type: object, skill_name: object, include_lessons: object) -> None:
    if memory_type is not None and memory_type not in list(MemoryType):
        raise InvalidInput(f"memory_type is {shown(memory_type)}", expected=f"one of {', '.join(MemoryType)}")
    if skill_name is not None and not (isinstance(skill_name, str) and skill_name.strip()):
        raise InvalidInput(f"skill_name is {shown(skill_name)}", expected="a non-empty text")
    if not isinstance(include_lessons, bool):
        raise InvalidInput(f"include_lessons is {shown(include_lessons)}", expected="True or False")
    if memory_type == MemoryType.LESSON and not include_lessons:
        raise InvalidInput("memory_type is 'lesson', and lessons are left out", remedy="set include_lessons=True")


def _injectable(context: Context) -> Where:
    """Return the condition of lessons that an agent may follow."""
    confident = Compare("confidence", ">=", context.options.lesson_min_confidence)
    return all_of(_TAGGED, Or((Not(_LESSON), confident)))


# --- sessions ---


def end_session(context: Context, session_id: str) -> EndedSession:
    """Archive the reader's memories and skills of type `session` of a session, and the reflections and skills drawn from them.
    Raise `NotFound` if nothing was ever stored in it."""
    check_texts(session_id=session_id)
    context.check_enabled()
    own = replace(context, reader=replace(context.reader, session_id=session_id))
    theirs = all_of(equals("session_id", session_id), model.visible_to(own.reader))
    if not any(context.store.count(kind, theirs) for kind in CONTENTS):
        what = f"no memories of session {shown(session_id)} for agent {context.reader.agent_id}"
        raise NotFound(what, remedy="check the name of the session, the agent and the user")
    within = equals("reach", model.Reach.SESSION)
    drawn = {Kind.MEMORY: all_of(equals("memory_type", MemoryType.REFLECTION), within), Kind.SKILL: within}
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
        waiting = context.store.count(Kind.MEMORY, all_of(readable(context), equals("pending", value=True)))
    except MemoryMeshError as error:
        return HealthStatus(status="unhealthy", problems=(str(error),))
    problems = tuple(_problems(context, waiting))
    return HealthStatus(
        status="degraded" if problems else "healthy",
        store=shown_url(context.store.url),
        total_memories=total,
        pending=waiting,
        embedder=context.embedder.model if context.embedder else None,
        problems=problems,
    )


def _problems(context: Context, waiting: int) -> Iterator[str]:
    if waiting:
        yield f"{waiting:,} memories have no vector; run `memory-mesh reembed`"
    if context.embedder is None:
        return
    stored = embed.store_model(context)
    embedder = embed.embedder_for(context, stored)
    if stored and embedder and stored != embedder.model:
        yield f"the store has vectors of {stored}, and the embedder is {context.embedder.model}; run `memory-mesh reembed`"
    try:
        embed.embed_texts(context.embedder, ["health"])
    except EmbeddingError as error:
        yield f"the embedder fails: {error}"
