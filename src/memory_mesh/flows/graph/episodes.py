"""List the episodes of an agent's memories, and summarise one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory_mesh.core.errors import (
    InvalidInput,
    NotFound,
    StoreReadOnly,
    fraction,
    number,
    shown,
    whole_number,
)
from memory_mesh.core.graph.episodes import GAP_SECONDS, Episode, Moment, split, title
from memory_mesh.core.learning import ReflectionResult
from memory_mesh.core.model import (
    Compare,
    Kind,
    Memory,
    MemoryType,
    Row,
    Where,
    all_of,
    batches,
    equals,
    in_project,
)
from memory_mesh.flows.context import Context, intact, paged
from memory_mesh.flows.graph.links import read_active
from memory_mesh.flows.learning import reflect
from memory_mesh.flows.search.readable import read_time, readable

_AT_ONCE = 500
_MAX_GAP = 366 * 86_400  # seconds
_MAX_MEMORIES, _MAX_TITLED = 300, 100  # that a summary and a title read
_TASK = replace(reflect.SYNTHESIZE, max_statements=5)
# What is derived from memories is not a part of what happened.
_HAPPENED = all_of(
    *(Compare("memory_type", "<>", type_) for type_ in (MemoryType.LESSON, MemoryType.REFLECTION))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """Where an episode ends, as the caller gives it."""

    gap: object = GAP_SECONDS
    min_similarity: object = None

    def split(self, moments: Sequence[Moment]) -> list[Episode]:
        """Return the episodes, newest first, or raise `InvalidInput`."""
        expected = "a number of seconds above 0, at most a year"
        gap = number("gap", self.gap, min_=0.001, max_=_MAX_GAP, expected=expected)
        least = (
            None if self.min_similarity is None else fraction("min_similarity", self.min_similarity)
        )
        return split(moments, gap_ms=round(gap * 1000), min_similarity=least)


def episodes(
    context: Context,
    boundaries: Boundaries,
    *,
    since: object,
    until: object,
    session_id: str | None,
    limit: object,
) -> list[Episode]:
    """Return the episodes that overlap a time, newest first, with titles."""
    most = whole_number("limit", limit)
    first, last = read_time("since", since), read_time("until", until)
    if first and last and last < first:
        raise InvalidInput(
            f"until {last} is earlier than since {first}", expected="a time after it"
        )
    moments, frequency = _read(context, boundaries, session_id)
    found = [
        one
        for one in boundaries.split(moments)
        if (first is None or one.end >= first) and (last is None or one.start <= last)
    ][:most]
    return [_titled(context, one, frequency, len(moments)) for one in found]


def _read(
    context: Context, boundaries: Boundaries, session_id: str | None
) -> tuple[list[Moment], Counter[str]]:
    """Return the readable memories as points in time, and the number of memories with each
    keyword."""
    boundaries.split([])  # a wrong option is an error before anything is read
    session: list[Where] = [] if session_id is None else [equals("session_id", session_id)]
    where = all_of(readable(context), in_project(context.reader.project), _HAPPENED, *session)
    moments: list[Moment] = []
    frequency: Counter[str] = Counter()
    for row in _intact(context, where):
        memory = Memory.of(row)
        vector = memory.vector if boundaries.min_similarity is not None else None
        moments.append(
            Moment(
                id=row.id, at=memory.event_time or row.created_at, session_id=memory.session_id,
                agent_id=memory.agent_id, speaker=memory.speaker, turn=memory.turn or 0,
                number=row.number, vector=vector,
            )
        )  # fmt: skip
        frequency.update(set(row.keywords))
    return moments, frequency


def _intact(context: Context, where: Where) -> Iterator[Row]:
    for rows in batches(paged(context, Kind.MEMORY, where), _AT_ONCE):
        yield from intact(context, rows)


def _titled(context: Context, episode: Episode, frequency: Counter[str], total: int) -> Episode:
    texts = [
        memory.content
        for memory in read_active(context, _sampled(episode.memory_ids, _MAX_TITLED)).values()
    ]
    return replace(
        episode, title=title(texts, frequency, total, language=context.options.stemmer_language)
    )


def _sampled(ids: Sequence[str], most: int) -> Sequence[str]:
    """Return the ids of a short episode; of a long one every second, third, … of them."""
    return ids[:: -(-len(ids) // most)]


# --- summaries ---


def summarize(
    context: Context, given: object, boundaries: Boundaries, *, store: object
) -> ReflectionResult:
    """Return what an episode says, sentence by sentence with its sources, and store it as a
    digest if asked."""
    if not isinstance(store, bool):
        raise InvalidInput(f"store is {shown(store)}", expected="True or False")
    id_, ids = _members(context, given, boundaries)
    memories = list(read_active(context, _sampled(ids, _MAX_MEMORIES)).values())
    if not memories:
        raise NotFound(f"no memory of {shown(id_)} can be read", remedy="list the episodes again")
    task = replace(_TASK, episode=id_)
    found = [reflect.source_text(memory, 1.0) for memory in memories]
    places = {memory.id: place for place, memory in enumerate(memories)}

    def in_time(drawn: reflect.Drawn) -> reflect.Drawn:
        if drawn.method != "extractive":
            return drawn
        return replace(
            drawn,
            statements=sorted(
                drawn.statements, key=lambda one: (one.contradiction, places[one.sources[0]])
            ),
        )

    nothing = ReflectionResult(note="the memories have no sentence to quote")
    if store:
        return reflect.derive(context, task, memories, found, arrange=in_time) or nothing
    drawn = in_time(reflect.state(asking := _asking(context), task, memories, found))
    if not drawn.statements:
        return nothing
    note = (
        drawn.note if asking is context else "sentences are quoted, because the store is read-only"
    )
    return reflect.unstored(context, found, replace(drawn, note=note))


def _members(context: Context, given: object, boundaries: Boundaries) -> tuple[str, Sequence[str]]:
    """Return the id of an episode and its memories."""
    if isinstance(given, Episode):
        return given.id, given.memory_ids
    if not isinstance(given, str):
        raise InvalidInput(f"episode is {shown(given)}", expected="an episode, or the id of one")
    moments, _ = _read(context, boundaries, None)
    for one in boundaries.split(moments):
        if one.id == given:
            return one.id, one.memory_ids
    raise NotFound(
        f"no episode {shown(given)}",
        remedy="list the episodes with the same gap, min_similarity and session",
    )


def _asking(context: Context) -> Context:
    """Return the context; without its language model if tokens cannot be counted, because the
    store is read-only."""
    try:
        context.file.check_writable()
    except StoreReadOnly:
        return context.with_models(chat=None) if context.models.chat else context
    return context
