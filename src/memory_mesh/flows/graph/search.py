"""Search as the graph does: rank by relevance, trust, recency and importance together.

Search modes and the learnt ranker play no part. Scope, status, times and the claims of sessions are
conditions; relevance is the cosine of the embedding, or, for a memory without a vector, the
fraction of the query's words that it contains.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memory_mesh.core import model
from memory_mesh.core.claims.updates import NO_UPDATES
from memory_mesh.core.errors import InvalidInput, fraction, listed, shown
from memory_mesh.core.graph import (
    Composite,
    GraphHit,
    GraphResults,
    Retrieved,
    read_weights,
    recency,
)
from memory_mesh.core.model import (
    ANYTHING,
    UNKNOWN_IMPORTANCE,
    Compare,
    In,
    IsNull,
    Kind,
    Memory,
    Or,
    Period,
    Row,
    Status,
    Value,
    Where,
    all_of,
    iso,
    millis,
)
from memory_mesh.core.ports import Snapshot
from memory_mesh.core.search import Placing, Pool, Query
from memory_mesh.core.search.lexical import best_cosines, query_tokens
from memory_mesh.core.search.mentions import time_spans
from memory_mesh.core.search.query import Span
from memory_mesh.core.text import without_masks
from memory_mesh.flows.context import Context, intact
from memory_mesh.flows.search import readable, reads, search, usage
from memory_mesh.flows.search.passages import best_passages, stored_passages
from memory_mesh.flows.search.readable import (
    about,
    count_not_valid,
    is_readable,
    known_statuses,
    periods,
    trusts,
)
from memory_mesh.flows.search.search import mark_changed, read_updates
from memory_mesh.flows.write import embed

MAX_QUERIES = 1_000  # of one call
# How many candidates are reranked: at least so many, and so many times the limit.
_POOL, _TIMES_LIMIT = 100, 5
_CHANNELS = ("vectors", "keywords")
_Placings = Mapping[str, Mapping[str, Placing]]  # by id and channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a search of the graph, as a caller gives them. The session is that of the
    reader."""

    limit: int = 10
    min_similarity: float = 0.0
    before: object = None
    after: object = None
    rerank: object = True  # or False, or weights by name
    include_all: bool = False
    status_filter: Sequence[str] = (Status.ACTIVE,)
    include_superseded: bool = False
    include_disputed: bool = False
    include_quarantined: bool = False
    explain: bool = False
    as_of: object = None
    known_at: object = None


def search_one(context: Context, query: object, request: Request) -> GraphResults:
    """Return the memories that are relevant to a query, highest composite score first."""
    return search_many(context, [query], request)[0]


def search_many(context: Context, queries: object, request: Request) -> list[GraphResults]:
    """Return the results of each query, in the order of the queries. All of them are embedded in
    one batch."""
    given = [
        search.checked_query(query)
        for query in listed("queries", queries, expected="a list of queries")
    ]
    if len(given) > MAX_QUERIES:
        raise InvalidInput(f"{len(given):,} queries", expected=f"at most {MAX_QUERIES:,} in a call")
    answers: list[GraphResults] = []
    for query, prepared in zip(given, prepare(context, given, request), strict=True):
        found = prepared.search()
        usage.count(context, [hit.id for hit in found])
        usage.log_search(
            context,
            query=query,
            limit=prepared.options.limit,
            filter=None,
            ms=context.clock(),
            results=found,
        )
        answers.append(found)
    return answers


def prepare(context: Context, queries: Sequence[str], request: Request) -> "list[Search]":
    """Return a search for each query. What they find does not count as used."""
    options = _Options.of(context, request)
    if not queries:
        return []
    snapshot = context.index.snapshot(context.reader)
    asked = read_queries(
        context,
        snapshot,
        queries,
        at=options.at,
        statuses=options.candidate_statuses,
        where=options.candidate_where,
    )
    when = partial(periods, options.at, options.statuses, options.where)
    return [
        Search(context, snapshot, query, replace(options, valid=when(query.spans)))
        for query in asked
    ]


def read_queries(
    context: Context, snapshot: Snapshot, queries: Sequence[str], *, at: str,
    statuses: tuple[str, ...], where: Where, valid: bool | None = None,
) -> list[Query]:  # fmt: skip
    """Return texts as queries of the index. All of them are embedded in one batch, without what is
    masked in them.

    `valid` says whether memories have to be valid at the time that a text is about; None: by the
    rule of `periods`.
    """

    def when(spans: Sequence[Span]) -> tuple[Period, ...]:
        return (
            periods(at, statuses, where, spans)
            if valid is None
            else about(at, spans)
            if valid
            else ()
        )

    texts = [
        context.gates.query().redact(query.encode("utf-8", "replace").decode()) for query in queries
    ]
    plain = [without_masks(text) for text in texts]
    distinct = [text for text in dict.fromkeys(plain) if text.strip()]
    vectors = dict(
        zip(distinct, embed.embed_queries(context, distinct, snapshot.data_version), strict=True)
    )
    return [
        Query(
            tokens=query_tokens(masked, language=context.options.stemmer_language),
            vector=vectors.get(text),
            reader=context.reader,
            at=at,
            statuses=statuses,
            where=where,
            spans=(spans := time_spans(text, at)),
            periods=when(spans),
            is_word=partial(embed.knows_word, context, text),
        )
        for masked, text in zip(texts, plain, strict=True)
    ]


# --- the options ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of a search after they were checked."""

    limit: int
    min_similarity: float
    weights: Mapping[str, float]
    statuses: tuple[str, ...]
    where: Where
    explain: bool
    known_at: str | None
    at: str  # the present of the search: now, or `known_at`
    valid: tuple[Period, ...] = ()  # in one of which a memory has to be valid

    @classmethod
    def of(cls, context: Context, given: Request) -> "_Options":
        for name in (
            "include_all",
            "include_superseded",
            "include_disputed",
            "include_quarantined",
            "explain",
        ):
            if not isinstance(value := getattr(given, name), bool):
                raise InvalidInput(f"{name} is {shown(value)}", expected="True or False")
        known_at, valid = (
            readable.read_known_at(context, given.known_at),
            readable.read_time("as_of", given.as_of),
        )
        where, statuses = readable.narrowed(
            valid, _between(given.after, given.before), _statuses(given)
        )
        return cls(
            limit=reads.checked_limit(given.limit),
            min_similarity=fraction("min_similarity", given.min_similarity),
            weights=read_weights(given.rerank), statuses=statuses, explain=given.explain,
            known_at=known_at, where=all_of(where, model.in_project(context.reader.project)),
            at=known_at or iso(context.clock()),
        )  # fmt: skip

    @property
    def candidate_statuses(self) -> tuple[str, ...]:
        return tuple(Status) if self.known_at else self.statuses

    @property
    def candidate_where(self) -> Where:
        return readable.stored_by(self.known_at) if self.known_at else self.where

    @property
    def pool_size(self) -> int:
        return max(readable.KNOWN_POOL if self.known_at else _POOL, _TIMES_LIMIT * self.limit)


def _statuses(given: Request) -> tuple[str, ...]:
    """Return the statuses to search. Archived memories are returned only if `status_filter`
    names them."""
    named = known_statuses(given.status_filter, "status_filter")
    added = {
        Status.SUPERSEDED: given.include_superseded, Status.DISPUTED: given.include_disputed,
        Status.QUARANTINED: given.include_quarantined, Status.ACTIVE: False,
    }  # fmt: skip
    return tuple(
        dict.fromkeys(
            [
                *named,
                *(status.value for status, wanted in added.items() if wanted or given.include_all),
            ]
        )
    )


def _between(after: object, before: object) -> Where:
    """Return the condition that the event of a memory, or else its creation, lies between two
    times; the ends belong to it."""
    first, last = readable.read_time("after", after), readable.read_time("before", before)
    if first and last and last < first:
        raise InvalidInput(
            f"before {last} is earlier than after {first}", expected="a time after it"
        )

    def within(column: str) -> Where:
        return all_of(
            Compare(column, ">=", first) if first else ANYTHING,
            Compare(column, "<=", last) if last else ANYTHING
        )  # fmt: skip

    if first is None and last is None:
        return ANYTHING
    return Or((within("event_time"), all_of(IsNull("event_time"), within("created_at"))))


# --- one search ---


@dataclass(frozen=True, slots=True)
class Candidate:
    """A readable candidate with its relevance."""

    row: Row
    relevance: float
    similarity: float | None  # None: it has no vector, and its relevance is by keywords


@dataclass(frozen=True, slots=True)
class Search:
    """One query with its options."""

    context: Context
    snapshot: Snapshot
    query: Query
    options: "_Options"

    def search(self) -> GraphResults:
        """Return the best candidates of the index, highest composite score first."""
        options, size, vector = self.options, self.options.pool_size, self.query.vector
        while True:
            pool = self.snapshot.candidates(self.query, size=size)
            found, left_out = _candidates(self.context, self.query, pool, options, size)
            # The index knows neither sessions of claims nor earlier times: where these leave too
            # few results, look further.
            crowded = (
                left_out["other_sessions"] + left_out["unreadable"] > 0
                and len(found) < options.limit
            )
            if not crowded or size >= pool.documents:
                break
            size *= 4
        scored = self._scored(found)
        hits = self._hits(
            scored[: options.limit], explained=_placings(pool) if options.explain else None
        )
        left_out["limit"] = len(scored) - len(hits)
        if options.explain:
            left_out["not_valid"] = count_not_valid(self.context, self.query)
        meta: dict[str, Value] = {
            "documents": pool.documents, "candidates": len(pool.ids), "reranked": len(scored),
            "returned": len(hits),
            "left_out": {reason: count for reason, count in left_out.items() if count},
            "model": vector.model if vector and any(each.similarity is not None for each in found)
            else None,
            "weights": dict(options.weights), "statuses": list(options.statuses), "at": options.at,
        }  # fmt: skip
        return GraphResults(hits, meta=meta)

    def read(self, ids: Sequence[str]) -> list[GraphHit]:
        """Return those of these memories that the search may return, with their scores and
        reasons, highest score first."""
        kept, _ = _of_session(self.context, _rows(self.context, ids, self.options), self.options)
        found = with_relevance(self.context, self.query, {}, list(kept.values()))
        return self._hits(self._scored(found), explained={})

    def _hits(
        self, scored: "Sequence[tuple[Candidate, Composite]]", *, explained: _Placings | None
    ) -> list[GraphHit]:
        known_at = self.options.known_at
        changed = NO_UPDATES if known_at else read_updates(self.context, self.snapshot.data_version)
        hits = _hits(self.context, self.query, scored, explained=explained)
        return list(mark_changed(self.context, changed, hits))

    def _scored(self, found: Sequence["Candidate"]) -> "list[tuple[Candidate, Composite]]":
        scored = list(zip(found, _composites(self.context, found, self.options), strict=True))
        return sorted(
            scored,
            key=lambda pair: (pair[1].score, pair[0].relevance, pair[0].row.id),
            reverse=True,
        )


def _candidates(
    context: Context, query: Query, pool: Pool, options: _Options, size: int
) -> tuple[list[Candidate], dict[str, int]]:
    """Return the readable candidates, and how many were left out by reason."""
    ids = proposed(query, pool)
    rows = _rows(context, ids[:size], options)
    kept, left_out = _of_session(context, rows, options)
    scored = with_relevance(context, query, covered(pool), list(kept.values()))
    found = [each for each in scored if each.similarity is not None or each.relevance > 0]
    relevant = [each for each in found if each.relevance >= options.min_similarity]
    unread = max(0, len(ids) - size)
    return relevant, {
        "not_reranked": unread, "unreadable": len(ids) - unread - len(rows), **left_out,
        "min_similarity": len(found) - len(relevant),
    }  # fmt: skip


def covered(pool: Pool) -> dict[str, float]:
    """Return by candidate which fraction of the query's words it contains."""
    return dict(zip(pool.ids, pool.signals["coverage"].tolist(), strict=True))


def _of_session(
    context: Context, rows: Mapping[str, Row], options: _Options
) -> tuple[dict[str, Row], dict[str, int]]:
    """Return the memories without claims of other sessions, and with those of the reader's
    session instead of others about the same; and how many were left out by reason."""
    here = {
        id_: row
        for id_, row in rows.items()
        if _session_of(row) in (None, context.reader.session_id)
    }
    own = _session_claims(context, here.values(), options)
    keys = {row.value("claim_key") for row in own.values()}
    kept = {
        id_: row
        for id_, row in here.items()
        if _session_of(row) or row.value("claim_key") not in keys
    }
    left_out = {
        "other_sessions": len(rows) - len(here),
        "replaced_in_session": len(here) - len(kept),
    }
    return {**kept, **own}, left_out  # a claim that replaces what was found is found itself


def proposed(query: Query, pool: Pool) -> list[str]:
    """Return the candidates that are near by vector, or have a word of the query, nearest first."""
    cosines, covered = pool.signals["vectors"].tolist(), pool.signals["coverage"].tolist()
    by_vector = query.vector is not None
    pairs = zip(
        (
            cosine or words if by_vector else words
            for cosine, words in zip(cosines, covered, strict=True)
        ),
        pool.ids,
        strict=True,
    )
    return [id_ for value, id_ in sorted(pairs, reverse=True) if by_vector or value > 0]


def with_relevance(
    context: Context, query: Query, covered: Mapping[str, float], rows: Sequence[Row]
) -> list[Candidate]:  # fmt: skip
    """Return memories with their relevance: the cosine of the best passage, or the fraction of the
    query's words without one.

    The cosines of an index are rounded, so they are computed again.
    """
    cosines = dict[str, float]()
    if (asked := query.vector) is not None:
        passages = [each for stored in stored_passages(context, rows).values() for each in stored]
        own = [(str(row.value("ref") or row.id), row.vector) for row in (*rows, *passages)]
        same = [
            (id_, each.data)
            for id_, each in own
            if each and (each.model, each.dimension) == (asked.model, asked.dimension)
        ]
        cosines = dict(best_cosines(asked.data, same, len(same)))
    words, found = set(query.tokens), list[Candidate]()
    for row in rows:
        cosine = cosines.get(row.id)
        fraction_of_words = covered.get(row.id) or len(words.intersection(row.keywords)) / max(
            len(words), 1
        )
        found.append(Candidate(row, fraction_of_words if cosine is None else cosine, cosine))
    return found


def _rows(context: Context, ids: Sequence[str], options: _Options) -> dict[str, Row]:
    """Return the readable memories of these ids, as they are, or as they were at `known_at`."""
    rows = intact(context, context.store.get(Kind.MEMORY, ids).values()) if ids else []
    if options.known_at:
        rows = readable.rewind(context, rows, options.known_at)
    test = is_readable(context, options.statuses, options.where, at=options.at, valid=options.valid)
    return {row.id: row for row in rows if test(row)}


def _session_claims(context: Context, rows: Iterable[Row], options: _Options) -> dict[str, Row]:
    """Return the claims of the reader's session about the same subjects and predicates as these
    memories."""
    session, keys = (
        context.reader.session_id,
        {str(key) for row in rows if (key := row.value("claim_key"))},
    )
    if session is None or not keys:
        return {}
    same = all_of(model.visible_to(context.reader), In("claim_key", tuple(sorted(keys))))
    found = _rows(context, context.store.ids(Kind.MEMORY, same), options)
    return {id_: row for id_, row in found.items() if _session_of(row) == session}


def _session_of(row: Row) -> str | None:
    """Return the session that a claim holds in; None for other claims, and without a claim."""
    claim = row.value("claim")
    session = claim.get("session_id") if isinstance(claim, dict) else None
    return None if session is None else str(session)


# --- the results ---


def _composites(
    context: Context, found: Sequence[Candidate], options: _Options
) -> Iterator[Composite]:
    ms, memories = millis(options.at), [Memory.of(each.row) for each in found]
    trusted = trusts(context, memories, ms=ms, known_at=options.known_at)
    for each, memory in zip(found, memories, strict=True):
        trust = trusted[memory.id]
        yield Composite(
            relevance=each.relevance, confidence=trust.value,
            recency=recency(millis(memory.updated_at), ms),
            importance=UNKNOWN_IMPORTANCE if memory.importance is None else memory.importance,
            weights=options.weights, trust=trust,
        )  # fmt: skip


def _hits(
    context: Context,
    query: Query,
    scored: Sequence[tuple[Candidate, Composite]],
    *,
    explained: _Placings | None,
) -> list[GraphHit]:
    passages = best_passages(context, query, [each.row for each, _ in scored])
    hits: list[GraphHit] = []
    for each, composite in scored:
        hit = GraphHit.of(each.row, composite.score, each.similarity, passages.get(each.row.id))
        reasons: dict[str, object] = {}
        if explained is not None:
            by = "keywords" if each.similarity is None else "vectors"
            found = Retrieved(
                by=by, relevance=each.relevance, channels=explained.get(each.row.id, {})
            )
            reasons = {"retrieved": found, "rerank": composite}
        hits.append(hit.copied(trust=composite.confidence, **reasons))
    return usage.with_counts(context, hits)


def _placings(pool: Pool) -> dict[str, dict[str, Placing]]:
    """Return by id the rank and score of each candidate in each channel."""
    from memory_mesh.core.search.ranker import order

    found: dict[str, dict[str, Placing]] = {}
    for channel in _CHANNELS:
        scores = dict(zip(pool.ids, pool.signals[channel].tolist(), strict=True))
        for rank, id_ in enumerate(
            (id_ for id_ in order(pool, channel) if scores[id_] != 0), start=1
        ):
            found.setdefault(id_, {})[channel] = Placing(rank, scores[id_])
    return found
