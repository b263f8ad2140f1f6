"""Searching: scope and status → candidates of every channel → one ranker → minimum score → the rows, read again.

The index proposes; what is answered is read from the store under the same condition, so that a wrong index could lose an
answer for a moment, but never show what the reader may not see.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from memory_mesh.core.checks import fraction
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import SearchResult, Status
from memory_mesh.core.model.rows import Row, batches
from memory_mesh.core.model.scope import partitions
from memory_mesh.core.model.times import iso, millis
from memory_mesh.core.model.where import ANYTHING, In, Where, all_of
from memory_mesh.core.search import people as persons
from memory_mesh.core.search.explain import Explained, Explanation, Placing
from memory_mesh.core.search.lexical import tokens
from memory_mesh.core.search.query import Pool, Query
from memory_mesh.core.search.time_expressions import spans
from memory_mesh.flows import embed, usage
from memory_mesh.flows.context import Context
from memory_mesh.flows.read import known_statuses, shown_to, within

if TYPE_CHECKING:
    from memory_mesh.core.search.rankers import Placed, Ranking

RANKERS = ("learnt", "rrf")
LONGEST_QUERY = 100_000
_POOL = 150  # candidates of each channel; in our evaluation they hold 95 % of the evidence
_NEARLY = 3
_FIELDS = tuple(field.name for field in fields(SearchResult))
_CHANNELS = ("keywords", "keywords_context", "keywords_session", "vectors", "vectors_context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for."""

    query: str
    limit: int = 10
    filter: str | None = None  # as the caller wrote it; `where` is its meaning
    where: Where = ANYTHING
    statuses: Sequence[str] = (Status.ACTIVE,)
    min_score: float | None = None  # None: what the ranker thinks is too little
    ranker: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The candidates of a search, ranked."""

    asked: Query
    allowed: Callable[[Row], bool]  # what may be shown: scope, status, expiry and the caller's filter
    query: str
    pool: Pool
    ranker: str
    least: float
    ranking: "Ranking"


def search(context: Context, request: Request, *, use_cache: bool = True) -> list[SearchResult]:
    """The memories that answer a query best."""
    _check(request)
    at = context.clock()
    key = (
        f"search:{request.query}:{request.limit}:{request.filter}",
        request.where, context.reader, tuple(request.statuses), request.min_score, request.ranker,
    )  # fmt: skip
    marks = context.index.marks(partitions(context.reader)) if use_cache else ()
    answers = context.state.cache.get(key, marks, at) if use_cache else None
    if answers is None:
        found = _found(context, request)
        answers = tuple(islice(_answers(context, request, found), request.limit))
        # An answer by keywords alone is for the moment; the embedder may be back before the five minutes are over.
        if use_cache and (found.asked.vector or context.embedder is None):
            ends = [millis(result.expires_at) for result in answers if result.expires_at]
            context.state.cache.put(key, marks, answers, at, until=min(ends, default=None))
    usage.count(context, [result.id for result in answers])
    usage.log_search(context, query=request.query, limit=request.limit, filter=request.filter, ms=at, results=answers)
    return [_apart(result) for result in answers] if use_cache else list(answers)


def explain(context: Context, request: Request) -> Explanation:
    """The same search, with its reasons. It counts as no use of what it finds."""
    _check(request)
    found = _found(context, request)
    best, below = found.ranking.best(found.least), found.ranking.below(found.least)
    answers = list(islice(_answers(context, request, found), request.limit))
    nearly = _read(context, found, below[:_NEARLY])
    reasons = {"min_score": len(below), "limit": len(best) - len(answers)}
    tell = _teller(found)
    return Explanation(
        query=found.query,
        tokens=list(found.asked.tokens),
        ranker=found.ranker,
        model=found.asked.vector.model if found.asked.vector else None,
        min_score=found.least,
        documents=found.pool.documents,
        candidates=len(found.pool.ids),
        left_out={**found.pool.unseen, **{reason: count for reason, count in reasons.items() if count > 0}},
        answers=[tell(result) for result in answers],
        nearly=[tell(result) for result in nearly],
    )


def _check(request: Request) -> None:
    if not isinstance(request.query, str) or not request.query.strip():
        raise InvalidInput("the query is blank", expected="some words to look for")
    if len(request.query) > LONGEST_QUERY:
        what = f"the query has {len(request.query):,} characters"
        raise InvalidInput(what, expected=f"at most {LONGEST_QUERY:,}", remedy="ask with the part that matters")
    if request.min_score is not None:
        fraction("min_score", request.min_score)
    if request.ranker not in (None, *RANKERS):
        raise InvalidInput(f"ranker is {shown(request.ranker)}", expected=f"one of {', '.join(RANKERS)}")
    within(request.limit)
    known_statuses(request.statuses)


def _found(context: Context, request: Request) -> _Found:
    # Contents are kept masked, so a query is masked to meet them; and no embedder is shown what no store may keep.
    query = context.layer0.line(_clean(request.query))
    at = iso(context.clock())
    asked = Query(
        tokens=tokens(query, language=context.options.stemmer_language),
        vector=None,
        reader=context.reader,
        at=at,
        spans=spans(query, at),
        roles=persons.roles(query),
        names=persons.names(query, language=context.options.stemmer_language),
        statuses=tuple(request.statuses),
        only=_only(context, request.where),
    )
    # A name says whose memories are meant, not what about: it would pull towards every text that holds it.
    speakers = context.index.speakers(asked) if context.embedder else frozenset()
    asked = replace(
        asked, vector=embed.asked(context, persons.without(query, speakers, language=context.options.stemmer_language))
    )
    pool = context.index.pool(asked, size=max(_POOL, 2 * request.limit))
    if asked.vector and pool.foreign:
        embed.mention(context, f"{pool.foreign:,} memories have no vector of {asked.vector.model} and are found by keywords")
    return _ranked(context, request, query, asked, pool)


def _clean(query: str) -> str:
    """The query without halves of surrogate pairs, which no store holds and no embedder can read."""
    return query.encode("utf-8", "replace").decode()


def _only(context: Context, where: Where) -> frozenset[str] | None:
    """The ids that the caller's own filter allows; scope is not its business."""
    if where is ANYTHING:
        return None
    return frozenset(context.store.ids(Kind.MEMORY, all_of(In("partition", partitions(context.reader)), where)))


def _ranked(context: Context, request: Request, query: str, asked: Query, pool: Pool) -> _Found:
    from memory_mesh.core.search.rankers import ranked  # it brings numpy, which only searches need

    ranker = request.ranker or context.options.ranker
    by_vector = asked.vector is not None
    ranking = ranked(ranker, pool, depth=2 * request.limit, by_vector=by_vector, weights=(context.options.channel_weights or {}))
    least = ranking.default_min_score if request.min_score is None else request.min_score
    return _Found(
        asked=asked, allowed=shown_to(context, request.statuses, request.where), query=query, pool=pool, ranker=ranker,
        least=least, ranking=ranking,
    )  # fmt: skip


def _answers(context: Context, request: Request, found: _Found) -> Iterator[SearchResult]:
    """What is good enough, best first. Rows are read in batches, for the first ones nearly always are the answer."""
    good = found.ranking.best(found.least)
    for placed in batches(good, request.limit):
        yield from _read(context, found, placed)


def _read(context: Context, found: _Found, placed: Sequence["Placed"]) -> list[SearchResult]:
    # Read again under the same condition: a row may have changed since it was proposed.
    rows = context.store.get(Kind.MEMORY, [one.id for one in placed])
    kept = [(rows[one.id], one) for one in placed if one.id in rows and found.allowed(rows[one.id])]
    counts = usage.usage_of(context, [row.id for row, _ in kept])
    return [SearchResult.of(row, one.score, _likeness(found, one.at), **counts.get(row.id, {})) for row, one in kept]


def _apart(result: SearchResult) -> SearchResult:
    """An answer by itself: what its owner does to it later does not reach who asks the same again."""
    return SearchResult(**{name: _copied(getattr(result, name)) for name in _FIELDS})


def _copied(value: Any) -> Any:
    """A copy of what JSON can hold; `deepcopy` takes several times as long."""
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def _likeness(found: _Found, at: int) -> float | None:
    """The document's similarity: 1 − distance ÷ 2, where distance is 1 − cosine."""
    cosine = float(found.pool.signals["vectors"][at])
    if found.asked.vector is None or cosine == 0:  # exactly 0: it has no vector that could be compared
        return None
    return max(0.0, min(1.0, (1 + cosine) / 2))


def _teller(found: _Found) -> Callable[[SearchResult], Explained]:
    from memory_mesh.core.search.rankers import order

    names = [name for name in _CHANNELS if name in found.pool.signals and (found.asked.vector or not name.startswith("vectors"))]
    places = {id_: at for at, id_ in enumerate(found.pool.ids)}
    ranks = {name: {id_: rank for rank, id_ in enumerate(order(found.pool, name), start=1)} for name in names}

    def tell(result: SearchResult) -> Explained:
        at = places[result.id]
        channels = {
            name: Placing(ranks[name][result.id], float(found.pool.signals[name][at]))
            for name in names
            if result.id in ranks[name]
        }
        features = {name: float(values[at]) for name, values in found.ranking.features.items()}
        return Explained(result=result, channels=channels, features=features)

    return tell
