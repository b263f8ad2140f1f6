"""Read memories by a query.

A search goes: scope and status → candidates of every channel → one ranker → minimum score → the
rows, read again. The index only proposes. Results are read from the store under the reader's
condition, so a wrong index could miss a memory for a moment, but never show one that the reader may
not see.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from memory_mesh.core import model
from memory_mesh.core.claims.claim import asked_time
from memory_mesh.core.claims.updates import (
    DECIDED,
    MAY_UPDATE,
    NO_UPDATES,
    Result,
    Updates,
    asks_past,
    stands_above,
)
from memory_mesh.core.errors import InvalidInput, fraction, one_of, shown, whole_number
from memory_mesh.core.intake import normal_text
from memory_mesh.core.model import (
    ANYTHING,
    DAY_MS,
    Compare,
    Filter,
    In,
    Kind,
    Link,
    MemoryType,
    Row,
    SearchResult,
    Status,
    Where,
    all_of,
    equals,
    in_project,
    iso,
    partitions,
    visible,
    visible_to,
)
from memory_mesh.core.options import SEARCH_MODES
from memory_mesh.core.ports import Snapshot
from memory_mesh.core.search import Explained, Explanation, Placing, Pool, Query
from memory_mesh.core.search.lexical import query_tokens
from memory_mesh.core.search.mentions import (
    is_general,
    is_personal,
    proper_names,
    speaker_roles,
    time_spans,
    without_speakers,
)
from memory_mesh.core.text import without_masks
from memory_mesh.flows.context import Context, intact, read_once
from memory_mesh.flows.search import usage
from memory_mesh.flows.search.filters import text_of, where_of
from memory_mesh.flows.search.passages import best_passages, within, word_pairs
from memory_mesh.flows.search.readable import (
    KNOWN_POOL,
    count_not_valid,
    is_readable,
    known_statuses,
    narrowed,
    periods,
    read_known_at,
    read_time,
    rewind,
    stored_by,
    with_trust,
)
from memory_mesh.flows.search.reads import checked_limit
from memory_mesh.flows.write import embed

if TYPE_CHECKING:
    from memory_mesh.core.search.ranker import Ranking, ScoredCandidate

RANKERS = ("learnt", "rrf")
MAX_QUERY_LENGTH = 100_000
_POOL = 150  # candidates of each channel; in our evaluation they contain 95 % of the evidence
_NEAR_MISSES = 3
_SPELLED = 3  # memories that are read, if all scores are low
_MAX_LINKS = 10_000  # of changes that one reader's searches look at, the newest
# A link that a caller added, or another program wrote, has no probability.
_OF_CHANGES = all_of(In("link_type", DECIDED), Compare("similarity", ">", 0.0))
_POSSIBLE = equals("link_type", MAY_UPDATE)
_MAX_ADDED = 100  # newer memories that are added to those of a search, the newest
_COMPARED = 12  # candidates above which others may stand that may have changed them
_CHANNELS = (
    "keywords",
    "keywords_context",
    "keywords_session",
    "vectors",
    "vectors_context",
    "tokens",
)


def known_mode(mode: object) -> str:
    """Return the search mode, or raise InvalidInput if it does not exist."""
    return one_of("mode", mode, SEARCH_MODES)


# --- by a query ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of a search."""

    query: str
    limit: int = 10
    filter: str | None = None  # the text of the caller's filter; `where` is the parsed condition
    where: Where = ANYTHING
    statuses: Sequence[str] = (Status.ACTIVE,)
    mode: str | None = None  # None: the option `search_mode`
    min_score: float | None = None  # None: that of the mode
    ranker: str | None = None
    max_chars: int | None = None  # of the texts of all results together
    as_of: object = None  # a time: what was valid then
    known_at: object = None  # a time: what was believed then

    def with_filter(self, given: Filter | None) -> "Request":
        """Return the same request with a filter. Raise `InvalidFilter` if it is not valid."""
        return (
            self if given is None else replace(self, where=where_of(given), filter=text_of(given))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """The ranked candidates of a search."""

    text: str  # the query as it was searched: personal data masked
    query: Query
    pool: Pool
    ranker: str
    ranking: "Ranking"
    by_vector: bool  # whether vectors were compared
    min_score: float
    readable: Callable[[Row], bool]  # scope, status, expiry and the caller's filter
    as_of: str | None = None  # the time that the question is about, if the caller named one
    known_at: str | None = None  # rows are shown as they were then
    # Readable ones that have been read already.
    rows: Mapping[str, Row] = field(default_factory=dict)
    # The best ones, as many as the caller asked for, if they are known already.
    first: "Sequence[ScoredCandidate] | None" = None
    changed: Updates = NO_UPDATES


def search(context: Context, request: Request, *, use_cache: bool = True) -> list[SearchResult]:
    """Return the memories that answer a query, best first."""
    _check(request)
    request = _narrowed(context, request)
    at = context.clock()
    key = (
        f"search:{request.query}:{request.limit}:{request.filter}",
        request.where, context.reader, tuple(request.statuses), request.min_score, request.ranker,
        request.max_chars,
        request.mode,
        request.as_of, request.known_at,
    )  # fmt: skip
    snapshot = context.index.snapshot(context.reader)
    changed = read_updates(context, snapshot.data_version)
    mark = snapshot.mark, changed.version
    results = context.state.cache.get(key, mark, at) if use_cache else None
    if results is None:
        ranked = rank_candidates(context, snapshot, request)
        results = tuple(_results(context, request, ranked))
        if request.max_chars is not None:
            results = tuple(within(context, results, request.max_chars, ranked.query.tokens))
        # Results by keywords only, because the embedder failed, are not cached: it may be back
        # within the five minutes.
        if use_cache and (ranked.query.vector or context.models.embedder is None):
            context.state.cache.put(
                key, mark, results, at,
                until=_until(context, snapshot, ranked.query, results, changed, at),
            )  # fmt: skip
    usage.count(context, [result.id for result in results])
    usage.log_search(
        context,
        query=request.query,
        limit=request.limit,
        filter=request.filter,
        ms=at,
        results=results,
    )
    return with_trust(context, results, known_at=request.known_at)


def _until(
    context: Context,
    snapshot: Snapshot,
    query: Query,
    results: Sequence[SearchResult],
    changed: Updates,
    at: int,
) -> int | None:
    """Return when the same search may find something else though nothing was written: a result, or
    what changed it, expires; the validity of one of these or of another memory begins or ends; or
    another day begins, by which a query names times ("yesterday")."""
    newer = changed.newer_than(result.id for result in results)
    rows = context.store.get(Kind.MEMORY, sorted(newer)).values() if newer else ()
    records = [*results, *map(model.Memory.of, rows)]
    times = [changed.begins[id_] for id_ in newer]
    times += [time for one in records for time in (one.expires_at, one.valid_from) if time]
    # Its end belongs to it.
    ends = [model.millis(one.valid_until) + 1 for one in records if one.valid_until]
    begins = snapshot.next_valid(query) if query.periods else None
    midnight = at - at % DAY_MS + DAY_MS if query.spans else None
    every = (*map(model.millis, times), *ends, begins, midnight)
    return min((ms for ms in every if ms and ms > at), default=None)


def explain(context: Context, request: Request) -> Explanation:
    """Run the same search and return it with its reasons. It does not count as a use of the
    results."""
    _check(request)
    request = _narrowed(context, request)
    ranked = rank_candidates(context, context.index.snapshot(context.reader), request)
    best, below = ranked.ranking.best(ranked.min_score), ranked.ranking.below(ranked.min_score)
    results = _results(context, request, ranked)
    shown_ = with_trust(
        context,
        [*results, *_read(context, ranked, below[:_NEAR_MISSES])],
        known_at=request.known_at,
    )
    explained = _explain(context, ranked, shown_)
    ids = [each.id for each in best]
    altered = sum(row.is_altered for row in context.store.get(Kind.MEMORY, ids).values())
    excluded = {
        "min_score": len(below),
        "altered": altered,
        "copies": sum(result.copies - 1 for result in results),
    }
    if ranked.known_at:  # what it was then is known only after it was read
        excluded["known_at"] = (
            len(best) - altered - len(_rows(context, ranked, ids).keys() & set(ids))
        )
    excluded["limit"] = len(best) - len(results) - sum(excluded.values()) + excluded["min_score"]
    if hidden := count_not_valid(context, ranked.query):
        excluded |= {"not_valid": hidden, "filter": ranked.pool.excluded.get("filter", 0) - hidden}
    if ranked.known_at:  # the only filter of its candidates
        excluded["known_at"], excluded["filter"] = (
            excluded["known_at"] + ranked.pool.excluded.get("filter", 0),
            0,
        )
    return Explanation(
        query=ranked.text,
        tokens=list(ranked.query.tokens),
        corrections=dict(ranked.pool.corrections),
        ranker=ranked.ranker,
        model=ranked.query.vector.model if ranked.query.vector and ranked.by_vector else None,
        mode=_mode(context, request) if request.min_score is None else None,
        min_score=ranked.min_score,
        documents=ranked.pool.documents,
        candidates=len(ranked.pool.ids),
        left_out={
            reason: count
            for reason, count in {**ranked.pool.excluded, **excluded}.items()
            if count > 0
        },
        answers=explained[: len(results)],
        nearly=explained[len(results) :],
    )


def checked_query(query: object) -> str:
    """Return the query, or raise InvalidInput."""
    if not isinstance(query, str):
        raise InvalidInput(f"the query is {shown(query)}", expected="a text")
    if not query.strip():
        raise InvalidInput("the query is blank", expected="some words to look for")
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidInput(
            f"the query has {len(query):,} characters",
            expected=f"at most {MAX_QUERY_LENGTH:,}",
            remedy="shorten it to the part that matters",
        )
    return query


def _check(request: Request) -> None:
    checked_query(request.query)
    if request.min_score is not None:
        fraction("min_score", request.min_score)
    if request.mode is not None:
        known_mode(request.mode)
    if request.max_chars is not None:
        whole_number("max_chars", request.max_chars)
    if request.ranker is not None:
        one_of("ranker", request.ranker, RANKERS)
    checked_limit(request.limit)
    known_statuses(request.statuses)


def _narrowed(context: Context, request: Request) -> Request:
    """Return the request with its times read, and its condition narrowed to the reader's project
    and to what was valid."""
    if request.as_of is not None or request.known_at is not None:
        at, known_at = read_time("as_of", request.as_of), read_known_at(context, request.known_at)
        where, statuses = narrowed(at, request.where, request.statuses)
        request = replace(request, as_of=at, known_at=known_at, where=where, statuses=statuses)
    if (project := context.reader.project) is None:
        return request
    return replace(request, where=all_of(request.where, model.in_project(project)))


def rank_candidates(context: Context, snapshot: Snapshot, request: Request) -> _Ranked:
    """Return the candidates of a search with their scores, and the minimum score of its mode."""
    from memory_mesh.core.search.ranker import rank  # it needs numpy, which only searches use

    # An embedder sees nothing that a store may not keep: neither what is redacted nor unpaired
    # surrogates.
    text = context.gates.query().redact(request.query.encode("utf-8", "replace").decode())
    query = _query(
        context,
        snapshot,
        request,
        query_tokens(text, language=context.options.stemmer_language),
        without_masks(text),
    )
    as_of, known_at = (
        at if isinstance(at, str) else None for at in (request.as_of, request.known_at)
    )
    pool = snapshot.candidates(
        query, size=max(KNOWN_POOL if known_at else _POOL, 2 * request.limit)
    )
    # What was believed then knows nothing of later changes.
    changed = NO_UPDATES if known_at else read_updates(context, snapshot.data_version)
    if missing := changed.newest_than(pool.ids, _MAX_ADDED):
        only = replace(query, where=all_of(query.where, In("id", tuple(sorted(missing)))))
        pool = pool.joined(snapshot.candidates(only, size=len(missing)))
    embed.warn_without_vectors(context, query, pool, snapshot.data_version)
    # Without a vector among the visible memories, vectors count for nothing, whatever others have
    # stored.
    by_vector = query.vector is not None and pool.without_vector < pool.documents
    ranker = request.ranker or context.options.ranker
    spelled = by_vector and embed.is_spelled(context, text)
    ranking = rank(
        ranker,
        pool,
        depth=2 * request.limit,
        by_vector=by_vector,
        spelled=spelled,
        weights=context.options.channel_weights,
    )
    valid = periods(query.at, request.statuses, request.where, query.spans)
    test = is_readable(context, request.statuses, request.where, at=query.at, valid=valid)
    by_mode = ranking.min_scores.get(_mode(context, request), 0.0)
    ranked = _Ranked(
        text=text, query=query, pool=pool, ranker=ranker, ranking=ranking, by_vector=by_vector,
        min_score=by_mode if request.min_score is None else request.min_score,
        readable=test, as_of=as_of, known_at=known_at, changed=changed,
    )  # fmt: skip
    if request.min_score is None and _mode(context, request) == "recall":
        ranked = _not_silent(context, ranked)
    return _current_first(context, _newest_first(context, ranked, request.limit))


def _not_silent(context: Context, ranked: _Ranked) -> _Ranked:
    """Return the same without a minimum score, if none reaches it and the embedder only spells the
    best memories: in another script than the query's, low scores do not mean that nothing fits."""
    best = ranked.ranking.best(0, _SPELLED)
    if best and ranked.by_vector and best[0].score < ranked.min_score:
        rows = _rows(context, ranked, [each.id for each in best])
        contents = [str(row.value("content")) for row in rows.values()]
        if contents and all(embed.is_spelled(context, text) for text in contents):
            return replace(ranked, rows=rows, min_score=0.0)
    return ranked


def _newest_first(context: Context, ranked: _Ranked, limit: int) -> _Ranked:
    """Return the same candidates with the newest of several versions of a statement, or the
    valid claim, above the others."""
    from memory_mesh.core.search.passages import versions

    if ranked.ranking.found is None:  # ranked by a formula
        return ranked
    alike = ranked.ranking.alike(limit)
    candidates = {each.id: each for group in alike for each in group}
    # Whatever the minimum score: it leaves results out, and never changes their order.
    nearest = ranked.ranking.best(0.0, limit)
    rows = _rows(
        context, ranked, list(dict.fromkeys([*candidates, *(each.id for each in nearest)]))
    )
    first = ranked.ranking.best(ranked.min_score, limit)
    in_groups = [[rows[each.id] for each in group if each.id in rows] for group in alike]
    found = [version for group in in_groups for version in versions(group, ranked.query.tokens)]
    ordered = [[candidates[row.id] for row in version] for version in found]
    ranked = _reordered(replace(ranked, rows=rows, first=first), ordered)
    keys = {str(key) for row in rows.values() if (key := row.fields.get("claim_key"))}
    return _valid_first(context, ranked, tuple(sorted(keys))) if keys else ranked


def links_of_changes(context: Context) -> list[Link]:
    """Return the links that the reader can see which say what a newer memory changed."""
    condition = all_of(visible_to(context.reader), _OF_CHANGES)
    return [Link.of(row) for row in context.store.find(Kind.LINK, condition, limit=_MAX_LINKS)]


def read_updates(context: Context, data_version: Hashable) -> Updates:
    """Return the changes whose links the reader can see."""
    reader, store, homes = context.reader, context.store, partitions(context.reader)
    here = In("partition", homes)

    def read() -> tuple[list[Row], bool, Hashable]:
        rows = store.find(Kind.LINK, all_of(here, _OF_CHANGES), limit=_MAX_LINKS)
        possible = store.ids(Kind.LINK, all_of(here, _POSSIBLE))
        known = (*((row.id, row.revision) for row in rows), *sorted(possible))
        return rows, bool(possible), hash(known)

    # The sessions of an agent read them once.
    rows, possible, version = read_once(context, data_version, (Kind.LINK, homes), read)
    if not rows:
        return Updates(possible=possible, version=version) if possible else NO_UPDATES
    return read_once(
        context, data_version, (Kind.LINK, reader),
        lambda: Updates.of(
            (Link.of(row) for row in rows if visible(reader, row)),
            possible=possible,
            version=version,
        ),
    )  # fmt: skip


def mark_changed(context: Context, changed: Updates, results: Sequence[Result]) -> Sequence[Result]:
    """Return results that say what replaced or ended them, if the reader can see that and it is
    active, not expired and valid."""
    known = known_newer(context, changed, [result.id for result in results])
    present = iso(context.clock())
    return [changed.marked(result, known, present) for result in results] if known else results


def known_newer(context: Context, changed: Updates, ids: Iterable[str]) -> set[str]:
    """Return the memories that changed these and that the reader can see now."""
    if not (newer := changed.newer_than(ids)):
        return set()
    test = is_readable(context, (Status.ACTIVE,), in_project(context.reader.project))
    rows = context.store.get(Kind.MEMORY, sorted(newer)).values()
    return {row.id for row in intact(context, rows) if test(row)}


def _current_first(context: Context, ranked: _Ranked) -> _Ranked:
    """Return the same candidates with what held at the time of the question above what it replaced
    later, or had replaced."""
    changed = ranked.changed
    if not changed.possible and not changed.newer:
        return ranked
    places = {id_: at for at, id_ in enumerate(ranked.pool.ids)}
    ids = set(places)
    if {*ranked.query.statuses} != {Status.ACTIVE}:
        # What was asked for by its status is shown, and changes nothing.
        newer = changed.newer_than(ids)
        ids -= newer - known_newer(context, changed, ids)
    spans = () if ranked.as_of else ranked.query.spans
    present = ranked.as_of or ranked.query.at
    asked = asked_time(spans, present) if spans or ranked.as_of else None
    past, of_doubt = asks_past(ranked.text), changed.possible and asked is None
    possible = _possibly_changed(context, ranked, past=past) if of_doubt else []
    decided = [
        (places[right], places[other])
        for right, other in changed.pairs(ids, asked, ranked.query.at, past=past)
    ]
    if not possible and not decided:
        return ranked
    return replace(ranked, ranking=ranked.ranking.lifted(possible, decided), first=None)


def _possibly_changed(context: Context, ranked: _Ranked, *, past: bool) -> list[tuple[int, int]]:
    """Return the places of two candidates, of which one may have changed the other, and which fit
    the question about equally well: first the one that is right for the time of the question."""
    places, scores = {id_: at for at, id_ in enumerate(ranked.pool.ids)}, ranked.ranking.scores
    best = tuple(each.id for each in ranked.ranking.best(0.0, _COMPARED))
    where = all_of(visible_to(context.reader), _POSSIBLE, In("target", best))
    links = [
        link for link in map(Link.of, context.store.find(Kind.LINK, where)) if link.ref in places
    ]
    rows = context.store.get(Kind.MEMORY, [link.target for link in links])
    texts = {id_: str(row.value("content")) for id_, row in rows.items()}
    pairs = list[tuple[int, int]]()
    links.sort(key=lambda link: (link.created_at, best.index(link.target)), reverse=past)
    for link in links:
        pair = places[link.ref], places[link.target]
        right, other = pair[::-1] if past else pair
        text = texts.get(link.target, "")  # it may have just been erased
        if stands_above(link.similarity or 0.0, float(scores[right]), float(scores[other]), text):
            pairs.append((right, other))
    return pairs


def _valid_first(context: Context, ranked: _Ranked, keys: tuple[str, ...]) -> _Ranked:
    """Return the same candidates with the claim that is valid at the time of the question above
    others with the same key."""
    from memory_mesh.core.claims import read_schemas
    from memory_mesh.core.claims.claim import claim_groups
    from memory_mesh.core.search.ranker import ScoredCandidate

    pool, scores = {id_: at for at, id_ in enumerate(ranked.pool.ids)}, ranked.ranking.scores
    about = context.store.ids(
        Kind.MEMORY, all_of(model.visible_to(context.reader), In("claim_key", keys))
    )
    rows = _rows(context, ranked, [id_ for id_ in about if id_ in pool])
    asked = asked_time(() if ranked.as_of else ranked.query.spans, ranked.as_of or ranked.query.at)
    groups = claim_groups(rows.values(), asked, read_schemas(context.options.predicate_schemas))
    ordered = [
        [ScoredCandidate(float(scores[pool[row.id]]), row.id, pool[row.id]) for row in group]
        for group in groups
    ]
    return _reordered(replace(ranked, rows=rows), ordered)


def _reordered(ranked: _Ranked, ordered: Sequence[Sequence["ScoredCandidate"]]) -> _Ranked:
    """Return the same with these candidates in their order."""
    return (
        replace(ranked, ranking=ranked.ranking.newest_first(ordered), first=None)
        if ordered
        else ranked
    )


def _mode(context: Context, request: Request) -> str:
    return request.mode or context.options.search_mode


def _query(
    context: Context, snapshot: Snapshot, request: Request, keywords: list[str], text: str
) -> Query:
    """Return the query of a text without masks: a mask would match the masks of other people's
    values."""
    at, language = str(request.known_at or iso(context.clock())), context.options.stemmer_language
    # What a memory was then decides; its present columns do not.
    statuses = tuple(Status) if request.known_at else tuple(request.statuses)
    where, spans = stored_by(at) if request.known_at else request.where, time_spans(text, at)
    query_with = partial(
        Query,
        tokens=keywords,
        reader=context.reader,
        at=at,
        spans=spans,
        periods=periods(at, statuses, where, spans),
        roles=speaker_roles(text),
        names=proper_names(text, language=language),
        personal=is_personal(text),
        general=is_general(text),
        statuses=statuses,
        where=where,
        is_word=partial(embed.knows_word, context, text),
    )
    by_keywords = query_with(vector=None)
    if not text.strip():
        return by_keywords
    speakers = snapshot.speakers(by_keywords) if context.models.embedder else frozenset()
    spoken = without_speakers(text, speakers, language=language)
    vector = embed.embed_query(context, spoken, snapshot.data_version)
    return query_with(vector=vector, text=spoken)


def _results(context: Context, request: Request, ranked: _Ranked) -> list[SearchResult]:
    """Return what reaches the minimum score, best first; of equal texts that are not turns the best
    one, with their number.

    Rows are read in batches: the first one nearly always suffices.
    """
    first = (
        ranked.ranking.best(ranked.min_score, request.limit)
        if ranked.first is None
        else ranked.first
    )
    found, at = dict[str, SearchResult](), request.limit
    for result in _read(context, ranked, first):
        _collapse(found, result, add=True)
    if len(first) < request.limit or (
        len(found) == request.limit and all(map(_is_distinct, found.values()))
    ):
        return list(found.values())
    best = ranked.ranking.best(ranked.min_score)
    while len(found) < request.limit and at < len(best):
        batch = _read(context, ranked, best[at : at + request.limit])
        at += request.limit
        for result in batch:
            _collapse(found, result, add=len(found) < request.limit)
    # Copies of the results among the candidates that were not read.
    shown = {result.id for result in found.values() if not _is_distinct(result)}
    unread, read = best[at:], [each for each in best[:at] if each.id in shown]
    if unread and read and (twins := ranked.ranking.twins(unread, read)):
        for result in _read(context, ranked, twins):
            _collapse(found, result, add=False)
    return list(found.values())


def _collapse(found: dict[str, SearchResult], result: SearchResult, *, add: bool) -> None:
    """Count a result whose text was found already; if `add` is set, add another one. A
    reflection does not hide its source."""
    key = (
        f"id:{result.id}"
        if _is_distinct(result)
        else f"{result.status}:{normal_text(result.content)}"
    )
    if first := found.get(key):
        # A source below the minimum score of `precise` does not replace a reflection above it.
        source = result.id in first.sources and result.relevant >= first.relevant
        found[key] = replace(result if source else first, copies=first.copies + 1)
    elif add:
        found[key] = result


def _is_distinct(result: SearchResult) -> bool:
    """Return whether a result is shown besides others of the same text: a turn of a
    conversation, a lesson of its pattern, or a memory with a key of the caller's own."""
    return (
        result.key or result.speaker or result.turn
    ) is not None or result.memory_type == MemoryType.LESSON


def _read(
    context: Context, ranked: _Ranked, candidates: Sequence["ScoredCandidate"]
) -> list[SearchResult]:
    rows = _rows(context, ranked, [each.id for each in candidates])
    shown = [(rows[each.id], each) for each in candidates if each.id in rows]
    passages = best_passages(context, ranked.query, [row for row, _ in shown])
    similarities = _similarities(ranked, [each.at for _, each in shown])
    results = [
        SearchResult.of(
            row,
            each.score,
            similarity,
            passages.get(row.id),
            relevant=ranked.ranking.is_relevant(each.at),
        )
        for (row, each), similarity in zip(shown, similarities, strict=True)
    ]
    return usage.with_counts(context, mark_changed(context, ranked.changed, results))


def _rows(context: Context, ranked: _Ranked, ids: Sequence[str]) -> dict[str, Row]:
    """Return the readable rows of these ids. They are checked again: a row may have changed
    since the index proposed it."""
    missing = [id_ for id_ in ids if id_ not in ranked.rows]
    rows = context.store.get(Kind.MEMORY, missing).values() if missing else ()
    if ranked.known_at is None:
        return {
            **ranked.rows,
            **{row.id: row for row in intact(context, filter(ranked.readable, rows))},
        }
    then = rewind(context, intact(context, rows), ranked.known_at)
    return {**ranked.rows, **{row.id: row for row in filter(ranked.readable, then)}}


def _similarities(ranked: _Ranked, places: list[int]) -> list[float | None]:
    """Return the document's similarity of these candidates: 1 − distance ÷ 2, where distance is
    1 − cosine."""
    if not ranked.by_vector:
        return [None] * len(places)
    cosines: list[float] = ranked.pool.signals["vectors"].take(places).tolist()
    # Exactly 0: it has no vector of this model.
    return [max(0.0, min(1.0, (1 + cosine) / 2)) if cosine else None for cosine in cosines]


def _explain(context: Context, ranked: _Ranked, results: Sequence[SearchResult]) -> list[Explained]:
    from memory_mesh.core.search.ranker import contributions, order

    pool, explained = ranked.pool, list[Explained]()
    channels = [
        name
        for name in _CHANNELS
        if name in pool.signals and (ranked.by_vector or not name.startswith("vectors"))
    ]
    positions = {id_: at for at, id_ in enumerate(pool.ids)}
    ranks = {
        name: {id_: rank for rank, id_ in enumerate(order(pool, name), start=1)}
        for name in channels
    }
    pairs = word_pairs(context, ranked.query, results) if ranked.by_vector else iter(())
    for id_, at, result in ((result.id, positions[result.id], result) for result in results):
        placings = {
            name: Placing(rank[id_], float(pool.signals[name][at]))
            for name, rank in ranks.items()
            if id_ in rank
        }
        features = {name: float(values[at]) for name, values in ranked.ranking.features.items()}
        parts, newer = contributions(ranked.ranking, at), ranked.ranking.newer.get(id_)
        explained.append(
            Explained(
                result=result,
                channels=placings,
                features=features,
                contributions=parts,
                word_pairs=next(pairs, ()),
                newer=newer,
            )
        )
    return explained
