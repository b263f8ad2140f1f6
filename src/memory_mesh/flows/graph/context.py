"""Build the context of a query: retrieve, add linked memories, rank them, and pack what fits.

The document ranks by the composite and divides it by the tokens. Trust, recency and importance do
not depend on the query, so this prefers short memories whatever they say. The default therefore
multiplies them with the chance that the memory is relevant, which the learnt ranker estimates;
`bench.context` measures both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memory_mesh.core.claims.updates import ENDS, UPDATES
from memory_mesh.core.errors import InvalidInput, fraction, nearest, shown, whole_number
from memory_mesh.core.graph import Candidate, GraphContext, GraphHit
from memory_mesh.core.graph.packing import Limits, Page, pack, reasons
from memory_mesh.core.intake import normal_text
from memory_mesh.core.language.safety.fence import MIN_BOUNDARY_DIGITS, notice_within
from memory_mesh.core.model import Link
from memory_mesh.core.search.weights import FRACTIONS, MIN_EXPECTED
from memory_mesh.flows.context import Context
from memory_mesh.flows.graph import search as graph_search
from memory_mesh.flows.graph.links import links_of
from memory_mesh.flows.search import readable, search, usage
from memory_mesh.flows.write import embed

PACKINGS = ("relevance", "composite")
# The most, and the defaults without and with a budget of tokens.
MAX_MEMORIES, WITHOUT_TOKENS, WITH_TOKENS = 1_000, 15, 100
_RETRIEVED = 100  # candidates before links are followed, at least
_EXPANDED = 15  # the best ones, whose links are followed
# With a budget of tokens, the minimum chances of a precise search are lowered by the number of
# memories: of n, one picked at random is relevant with a chance of about 1/n. Chosen on LoCoMo's
# conversations 1–5, where precise contexts have 12 to 22 % less of the evidence.
_FEW, _LOWEST = 16, 0.03
# The chance of a linked memory by that of the memory it is linked to: links with a meaning raise
# it. A link of similarity counts only for a memory that the ranker did not see; raising the chance
# of the others made contexts worse.
_BY_SIMILARITY, _BY_TYPE = 0.01, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """The options of a context, as a caller gives them."""

    max_memories: object = None
    max_tokens: object = None
    min_score: object = None
    packing: object = "relevance"
    search: graph_search.Request  # its limit and `explain` are not used
    explain: object = False


def build(context: Context, query: object, request: ContextRequest) -> GraphContext:
    """Return the memories that are relevant to a query as one text within the limits."""
    asked, packing = search.checked_query(query), _packing(request.packing)
    if not isinstance(request.explain, bool):
        raise InvalidInput(f"explain is {shown(request.explain)}", expected="True or False")
    min_score = None if request.min_score is None else fraction("min_score", request.min_score)
    limits = _limits(context, request)
    given = replace(request.search, limit=max(_RETRIEVED, limits.max_memories), explain=True)
    [found] = graph_search.prepare(context, [asked], given)
    if packing == "composite":
        candidates, below = _by_composite(context, found, min_score or 0.0)
    else:
        candidates, below = _by_relevance(
            context, found, asked, given, min_score, fill=limits.max_tokens is not None
        )
    page = Page(
        [each.memory for each in candidates],
        context.ids.salt()[:MIN_BOUNDARY_DIGITS],
        notice=notice_within(limits.max_tokens, limits.count),
    )
    decided = pack(
        candidates,
        limits,
        page,
        cost=_tokens if packing == "composite" and limits.max_tokens else None,
    )
    text = _text(decided, limits, page, below, explain=request.explain)
    text.meta["packing"] = packing
    usage.count(context, [hit.id for hit in text.memories])
    usage.log_search(
        context, query=asked, limit=limits.max_memories, filter=None, ms=context.clock(),
        results=text.memories
    )  # fmt: skip
    return text


def _text(
    decided: Sequence[Candidate], limits: Limits, page: Page, below: int, *, explain: bool
) -> GraphContext:
    """Return the text of the chosen memories, and what was left out; `below` more are irrelevant
    than were read."""
    chosen = [each.memory for each in decided if each.left_out is None]
    text = GraphContext(page.text(chosen))
    text.tokens, text.note = limits.count(text.text) if chosen else 0, None
    text.left_out = {
        reason: count for reason, count in reasons(decided, irrelevant=below).items() if count
    }
    if not chosen and (too_long := [each for each in decided if each.left_out == "budget"]):
        needed = min(limits.count(page.text([each.memory])) for each in too_long)
        text.note = (
            f"no relevant memory fits into {limits.max_tokens:,} tokens; the smallest one needs "
            f"{needed:,}"
        )
    text.memories = (
        chosen if explain else [each.copied(retrieved=None, rerank=None) for each in chosen]
    )
    text.decisions = tuple(decided) if explain else ()
    text.meta = {
        "candidates": len(decided),
        "max_memories": limits.max_memories,
        "max_tokens": limits.max_tokens,
    }
    return text


def _tokens(tokens: int) -> float:
    """Return the cost of a memory by the document: its tokens."""
    return max(tokens, 1)


# --- the options ---


def _packing(given: object) -> str:
    if not isinstance(given, str) or given not in PACKINGS:
        near = nearest(given, PACKINGS) if isinstance(given, str) else ""
        remedy = f"did you mean {near!r}?" if near else ""
        raise InvalidInput(
            f"packing is {shown(given)}", expected=f"one of {', '.join(PACKINGS)}", remedy=remedy
        )
    return given


def _limits(context: Context, request: ContextRequest) -> Limits:
    tokens = None if request.max_tokens is None else whole_number("max_tokens", request.max_tokens)
    by_default = WITHOUT_TOKENS if tokens is None else WITH_TOKENS
    given = by_default if request.max_memories is None else request.max_memories
    most = whole_number("max_memories", given, max_=MAX_MEMORIES)
    return Limits(max_memories=most, max_tokens=tokens, count=embed.token_counter(context))


# --- candidates ---


def _by_composite(
    context: Context, found: graph_search.Search, min_score: float
) -> tuple[list[Candidate], int]:
    """Return what a search of the graph returns, and what is linked to the best of it, by the
    composite."""
    hits = list(found.search())
    every = [Candidate(memory=hit, relevance=_relevance(hit), value=hit.score) for hit in hits]
    known = {hit.id for hit in hits}
    for hit, source, link in _linked(context, found, hits):
        if hit.id not in known:
            linked = Candidate(memory=hit, relevance=_relevance(hit), value=hit.score)
            every.append(replace(linked, linked_to=source.id, link_type=link.link_type))
    cut = [
        each if each.value >= min_score else replace(each, left_out="irrelevant") for each in every
    ]
    return _without_copies(cut), 0


def _by_relevance(
    context: Context,
    found: graph_search.Search,
    query: str,
    given: graph_search.Request,
    min_score: float | None,
    *,
    fill: bool,
) -> tuple[list[Candidate], int]:
    """Return what is relevant by the learnt ranker, and what is linked to the best of it; and
    how many others there are."""
    options = found.options
    request = search.Request(
        query=query, limit=given.limit, where=options.where, statuses=options.statuses,
        mode="precise", ranker="learnt" if context.options.ranker == "rrf" else None,
        as_of=readable.read_time("as_of", given.as_of), known_at=options.known_at,
    )  # fmt: skip
    ranked = search.rank_candidates(context, found.snapshot, request)
    chances = {each.id: each.score for each in ranked.ranking.best(0.0)}
    least = (
        min_chance(list(chances.values()), ranked.pool.documents if fill else 0)
        if min_score is None
        else min_score
    )
    ids = [id_ for id_, chance in chances.items() if chance >= least][: given.limit]
    hits = sorted(found.read(ids), key=lambda hit: (-chances.get(hit.id, 0.0), hit.id))
    every = {hit.id: _candidate(hit, chances.get(hit.id, 0.0)) for hit in hits}
    for hit, source, link in _linked(context, found, hits):
        by_link = chances.get(source.id, 0.0) * (
            _BY_SIMILARITY if link.link_type == "similar" else _BY_TYPE
        )
        own = chances.get(hit.id)
        chance = (
            by_link if own is None else own if link.link_type == "similar" else max(own, by_link)
        )
        if hit.id not in every or chance > every[hit.id].relevance:
            linked = _candidate(hit, chance)
            every[hit.id] = replace(linked, linked_to=source.id, link_type=link.link_type)
    cut = [
        each if each.relevance >= least else replace(each, left_out="irrelevant")
        for each in every.values()
    ]
    return _without_copies(cut), len(chances.keys() - every.keys())


def min_chance(chances: Sequence[float], documents: int) -> float:
    """Return the minimum chance of a memory: that of a precise search, lowered for many
    memories, which fill the budget."""
    from memory_mesh.core.search.ranker import expected_right

    lowered = min(1.0, max(_LOWEST, _FEW / documents)) if documents else 1.0
    least = MIN_EXPECTED["precise"] * lowered
    return (
        max(chances, default=0.0) * FRACTIONS["precise"] * lowered
        if expected_right(chances) >= least
        else least
    )


def _candidate(hit: GraphHit, chance: float) -> Candidate:
    """Return a candidate whose value is what the composite of a fully relevant memory would be,
    times the chance that it is."""
    composite = hit.rerank
    full = hit.score if composite is None else replace(composite, relevance=1.0).score
    return Candidate(memory=hit, relevance=chance, value=chance * full)


def _relevance(hit: GraphHit) -> float:
    return 0.0 if hit.retrieved is None else hit.retrieved.relevance


def _linked(
    context: Context, found: graph_search.Search, hits: Sequence[GraphHit]
) -> list[tuple[GraphHit, GraphHit, Link]]:
    """Return the memories one link away from the best hits, each with the best hit and link that
    lead to it.

    They are read under the same conditions as the hits: scope, status and times.
    """
    rank = {hit.id: at for at, hit in enumerate(hits[:_EXPANDED])}
    known, ways = {hit.id: hit for hit in hits}, dict[str, tuple[GraphHit, Link]]()
    for link in sorted(
        links_of(context, list(rank)),
        key=lambda link: (link.link_type == "similar", -(link.similarity or 0.0)),
    ):
        # What changed leads to the newer memory, and not back to what does not hold any more.
        both = ((link.ref, link.target), (link.target, link.ref))
        for here, there in both[1:] if link.link_type in (UPDATES, ENDS) else both:
            if here in rank and (there not in ways or rank[here] < rank[ways[there][0].id]):
                ways[there] = known[here], link
    read = found.read([id_ for id_ in ways if id_ not in known])
    return [(hit, *ways[hit.id]) for hit in (*read, *hits) if hit.id in ways]


def _without_copies(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Mark the candidates that repeat the text of a more valuable one. Turns of a conversation
    are no copies."""
    texts, found = set[str](), list[Candidate]()
    for each in sorted(candidates, key=lambda each: -each.value):
        is_turn = each.memory.speaker is not None or each.memory.turn is not None
        key = each.memory.id if is_turn else normal_text(each.memory.content)
        found.append(replace(each, left_out=each.left_out or ("copy" if key in texts else None)))
        texts.add(key)
    return found
