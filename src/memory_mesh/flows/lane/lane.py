"""Store, find and rate the memories of the lane, and choose those that begin a session."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from memory_mesh.core import model
from memory_mesh.core.claims import base_trust
from memory_mesh.core.errors import (
    InvalidInput,
    NotFound,
    fraction,
    listed,
    one_of,
    shown,
    suggestion,
)
from memory_mesh.core.intake import NewText, Terms
from memory_mesh.core.lane import (
    DEFAULT_COLLECTION,
    LaneResult,
    LaneResults,
    LaneScore,
    NewLaneMemory,
    scoring,
)
from memory_mesh.core.lane.entities import ENTITY_TYPES, parse_entity
from memory_mesh.core.model import (
    ANYTHING,
    Compare,
    In,
    IsNull,
    Kind,
    Memory,
    Not,
    Or,
    Status,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.search import Pool, Query
from memory_mesh.core.text import shortened
from memory_mesh.flows.context import Context, Plan, commit, intact, paged
from memory_mesh.flows.graph import store as storing
from memory_mesh.flows.graph.search import (
    Candidate,
    covered,
    proposed,
    read_queries,
    with_relevance,
)
from memory_mesh.flows.search import reads, search, usage
from memory_mesh.flows.search.readable import is_readable, narrowed, read_time, readable, records
from memory_mesh.flows.write import embed
from memory_mesh.flows.write.embed import warn_without_vectors
from memory_mesh.flows.write.revisions import plan_revision
from memory_mesh.flows.write.write import read_current

_POOL = 30  # candidates of each weight that are read first
_ROUNDING = 0.02  # how far the cosines of the index may be from the exact ones
_MAX_SUGGESTED = 5


def store(
    context: Context,
    content: object,
    new: NewLaneMemory,
    *,
    supersedes: object,
    provenance: object,
    key: str | None,
) -> storing.Stored:
    """Store a memory, or count it as observed again, and let it supersede others."""
    ids = listed("supersedes", supersedes, expected="a list of ids")
    source = storing.read_provenance(provenance)
    metadata = {**new.checked(content, context.gates.content().redact), "provenance": source}
    text = NewText(
        content, metadata, base_trust(source), terms=Terms(supersedes=tuple(dict.fromkeys(ids)))
    )
    return storing.store(context, [text], key=key)[0]


def feedback(context: Context, memory_id: str, signal: object) -> Memory:
    """Raise or lower the feedback score of a memory. Neither its trust nor its importance
    changes."""
    given = one_of("signal", signal, scoring.FEEDBACK)

    def decide() -> Plan[Memory]:
        memory, seen, current = read_current(context, memory_id)
        columns = {"feedback_score": scoring.changed_feedback(memory.feedback_score, given)}
        columns |= {"feedback_count": memory.feedback_count + 1}
        return replace(
            plan_revision(context, memory, current, action="feedback", why=given, **columns),
            seen=seen,
        )

    return commit(context, decide)


# --- finding ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of `find`, not checked."""

    limit: object = 10
    collection: object = None
    entities: object = ()
    min_score: object = None
    memory_types: object = ()
    include_superseded: object = False
    include_expired: object = False
    as_of: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of `find` after they were checked."""

    limit: int
    min_similarity: float
    statuses: tuple[str, ...]
    filter: Where  # on columns of the index
    valid: Where  # at the time of `as_of`
    valid_now: bool
    entities: tuple[str, ...]
    ms: int

    @classmethod
    def of(cls, context: Context, given: Request) -> "_Options":
        for name in ("include_superseded", "include_expired"):
            if not isinstance(value := getattr(given, name), bool):
                raise InvalidInput(f"{name} is {shown(value)}", expected="True or False")
        ms, entities = context.clock(), resolve(context, given.entities)
        usual = context.options.min_score_threshold
        least = min(usual, scoring.MIN_SIMILARITY_OF_ENTITY) if entities else usual
        statuses = (
            Status.ACTIVE.value,
            *([Status.SUPERSEDED.value] if given.include_superseded else []),
        )
        at = read_time("as_of", given.as_of)
        valid, statuses = narrowed(at, ANYTHING, statuses)
        types = tuple(listed("memory_types", given.memory_types, expected="a list of types"))
        return cls(
            limit=reads.checked_limit(given.limit),
            min_similarity=least
            if given.min_score is None
            else fraction("min_score", given.min_score),
            statuses=statuses,
            filter=all_of(
                _in_collection(context, given.collection),
                In("entities", entities) if entities else ANYTHING,
                In("category", types) if types else ANYTHING,
            ),
            valid=valid,
            valid_now=at is None and not given.include_expired,
            entities=entities,
            ms=ms,
        )


def find(context: Context, query: object, request: Request) -> LaneResults:
    """Return the memories with the highest scores.

    The score depends on more than the similarity, so candidates of each weight are read until no
    other memory can have a higher one. Those with good feedback are candidates of every query.
    """
    text, snapshot = search.checked_query(query), context.index.snapshot(context.reader)
    options = _Options.of(context, request)
    (asked,) = read_queries(
        context,
        snapshot,
        [text],
        at=iso(options.ms),
        statuses=options.statuses,
        where=options.filter,
        valid=options.valid_now,
    )
    intended = scoring.intended_types(text, context.options.intent_words or scoring.INTENTS)
    found = _Found(context, asked, options, intended)
    found.add(_raised(context), {})
    for factor, types in _by_weight(intended):
        size, query = max(_POOL, options.limit), replace(asked, where=all_of(options.filter, types))
        while True:
            pool = snapshot.candidates(query, size=size)
            warn_without_vectors(context, asked, pool, snapshot.data_version)
            found.add(proposed(query, pool), covered(pool))
            if size >= pool.documents or found.is_complete(_least(pool, size), factor):
                break
            size *= 4
    results = found.best()
    usage.count(context, [result.id for result in results])
    usage.log_search(
        context, query=text, limit=options.limit, filter=None, ms=options.ms, results=results
    )
    return LaneResults(results, entities=options.entities)


class _Found:
    """The memories that a query has read so far, with their scores."""

    def __init__(
        self, context: Context, query: Query, options: _Options, intended: Collection[str]
    ) -> None:
        self._context, self._query, self._options, self._intended = (
            context,
            query,
            options,
            intended,
        )
        where = all_of(options.filter, options.valid)
        self._may_return = is_readable(
            context, options.statuses, where, at=iso(options.ms), valid=query.periods
        )
        self._read: set[str] = set()
        self._scored: list[tuple[LaneScore, Memory]] = []

    def add(self, ids: Iterable[str], covered: Mapping[str, float]) -> None:
        """Read and score the memories that were not read before."""
        new = [id_ for id_ in ids if id_ not in self._read]
        self._read.update(new)
        rows = (
            intact(self._context, self._context.store.get(Kind.MEMORY, new).values()) if new else []
        )
        kept = [row for row in rows if self._may_return(row)]
        found = [
            each
            for each in with_relevance(self._context, self._query, covered, kept)
            if self._is_similar(each)
        ]
        memories = usage.with_counts(self._context, [Memory.of(each.row) for each in found])
        self._scored += (
            (self._score(each.relevance, memory), memory)
            for each, memory in zip(found, memories, strict=True)
        )
        self._scored.sort(key=lambda pair: (-pair[0].value, -pair[0].similarity, pair[1].id))

    def _is_similar(self, candidate: Candidate) -> bool:
        return candidate.relevance >= max(
            self._options.min_similarity, 0 if candidate.similarity is not None else 1e-9
        )

    def _score(self, similarity: float, memory: Memory) -> LaneScore:
        return scoring.score(
            similarity, category=memory.category, intended=self._intended, ms=self._options.ms,
            created_at=memory.created_at, last_accessed=memory.last_accessed,
            feedback_score=memory.feedback_score,
        )  # fmt: skip

    def is_complete(self, similarity: float, factor: float) -> bool:
        """Return whether no memory of at most this similarity, with at most this factor of its
        score, can be among the best."""
        most, limit = similarity + _ROUNDING, self._options.limit
        if most < self._options.min_similarity:
            return True
        return len(self._scored) >= limit and self._scored[limit - 1][0].value >= most * factor

    def best(self) -> list[LaneResult]:
        """Return the memories with the highest scores."""
        return [
            LaneResult.of(memory, score) for score, memory in self._scored[: self._options.limit]
        ]


def _least(pool: Pool, size: int) -> float:
    """Return the similarity that no memory outside a pool exceeds."""
    cosines = sorted(pool.signals["vectors"].tolist(), reverse=True)
    return cosines[size - 1] if len(cosines) >= size else 1.0


def _raised(context: Context) -> list[str]:
    """Return the memories that feedback made more relevant than the others, of any scope of the
    user."""
    own = equals("user_id", context.reader.user_id)
    return context.store.ids(Kind.MEMORY, all_of(own, Compare("feedback_score", ">", 1.0)))


def _by_weight(intended: Collection[str]) -> Iterator[tuple[float, Where]]:
    """Yield the conditions that divide the memories by weight, heaviest first, each with the
    most that its factors can be."""
    boost = scoring.BOOST if intended else 1.0
    for weight in sorted({*scoring.WEIGHTS.values()}, reverse=True):
        types = tuple(type_ for type_, own in scoring.WEIGHTS.items() if own == weight)
        others = tuple(type_ for type_, own in scoring.WEIGHTS.items() if own != weight)
        other = Or((IsNull("category"), Not(In("category", others))))
        yield weight * boost, other if weight == scoring.OTHER_WEIGHT else In("category", types)


def _in_collection(context: Context, collection: object) -> Where:
    own = model.in_project(context.reader.project)
    if collection is None:
        return own
    if not isinstance(collection, str) or not collection.strip():
        raise InvalidInput(
            f"collection is {shown(collection)}", expected="the name of a collection"
        )
    named = equals("project", collection)
    return all_of(
        own, Or((IsNull("project"), named)) if collection == DEFAULT_COLLECTION else named
    )


# --- entities ---


def resolve(context: Context, given: object) -> tuple[str, ...]:
    """Return entities as `type:slug`. Raise `NotFound` for one that no memory has, and
    `InvalidInput` for an ambiguous one."""
    return tuple(
        dict.fromkeys(
            _resolve(context, each)
            for each in listed("entities", given, expected="a list of entities")
        )
    )


def _resolve(context: Context, given: str) -> str:
    type_, slug = parse_entity(given)
    candidates = [f"{each}:{slug}" for each in ([type_] if type_ else ENTITY_TYPES)]
    found = [each for each in candidates if _is_known(context, each)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(
            f"entity {shown(given)} may be {' or '.join(found)}",
            expected="its type too",
            remedy=f"use {found[0]}",
        )
    known = known_entities(context)
    similar = [each for each in known if slug in each.partition(":")[2]][:_MAX_SUGGESTED]
    remedy = f"use one of {', '.join(similar)}" if similar else suggestion(candidates[0], known)
    raise NotFound(
        f"no memory is about the entity {shown(given)}",
        remedy=remedy or "see the entities of what was stored",
    )


def _is_known(context: Context, entity: str) -> bool:
    """Return whether a memory that the reader can see, of any status, is about an entity."""
    query = Query(
        tokens=[], vector=None, reader=context.reader, at=iso(context.clock()),
        statuses=tuple(Status), where=equals("entities", entity),
    )  # fmt: skip
    return context.index.snapshot(context.reader).candidates(query, size=1).documents > 0


def known_entities(context: Context) -> list[str]:
    """Return the entities of the memories that the reader can see."""
    where = all_of(model.visible_to(context.reader), Compare("entities", ">=", ""))
    return sorted(
        {entity for row in paged(context, Kind.MEMORY, where) for entity in Memory.of(row).entities}
    )


# --- the beginning of a session ---

_NEWEST = 300  # memories of each group that are compared
_MOST = 40  # memories of one context
_MAX_CHARS = 2000  # of one memory: a long one must not take the place of all others


def session_context(context: Context, max_tokens: int) -> str:
    """Return the memories that matter most as data for a language model, without what newer ones
    replaced or ended. Without memories the text is empty."""
    from memory_mesh.core.language.safety.fence import fence_memories  # loads many patterns

    version = context.index.snapshot(context.reader).data_version
    updates, found = search.read_updates(context, version), most_important(context)
    ids, present = [memory.id for memory in found], iso(context.clock())
    known = search.known_newer(context, updates, ids)
    current = [memory for memory in found if not updates.changed_by(memory.id, known, present)]
    every = records(context, current[:_MOST])
    offered = [replace(record, content=shortened(record.content, _MAX_CHARS)) for record in every]
    return fence_memories(
        offered, context.ids.salt(), max_tokens=max_tokens, count=embed.token_counter(context)
    )


def most_important(context: Context) -> list[Memory]:
    """Return memories that are valid now, pinned ones first, then by weight of the type × decay ×
    feedback, then newest first.

    Of a large memory these are compared: the newest, the newest of the heaviest types, and those
    that are pinned or were helpful. Turns of conversations are left out. Reading them here does not
    count as a use: what is offered in every session must fade.
    """
    ms = context.clock()
    valid = all_of(readable(context), model.in_project(context.reader.project), IsNull("turn"))
    heavy = tuple(
        type_
        for type_, weight in scoring.WEIGHTS.items()
        if weight == max(scoring.WEIGHTS.values())
    )
    raised = Or((equals("pinned", True), Compare("feedback_score", ">", 1.0)))  # noqa: FBT003  (a value)
    rows = {
        row.id: row
        for group in (ANYTHING, In("category", heavy), raised)
        for row in context.store.find(Kind.MEMORY, all_of(valid, group), limit=_NEWEST)
    }
    found = usage.with_counts(context, [Memory.of(row) for row in intact(context, rows.values())])
    newest = sorted(found, key=lambda memory: (memory.created_at, memory.id), reverse=True)
    return sorted(newest, key=lambda memory: (not memory.pinned, -_worth(memory, ms)))


def _worth(memory: Memory, ms: int) -> float:
    decay = scoring.decay_factor(
        ms, created_at=memory.created_at, last_accessed=memory.last_accessed
    )
    return scoring.weight_of(memory.category) * decay * memory.feedback_score
