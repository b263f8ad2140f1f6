"""Links between memories, groups of linked ones, and the score and the results of the graph."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import exp, isfinite
from typing import Any

from memory_mesh.core.claims.rules import Trust
from memory_mesh.core.errors import InvalidInput, is_number, shown, suggestion
from memory_mesh.core.model import DAY_MS, Link, Memory, MemoryRecord, SearchResult, Value, iso
from memory_mesh.core.search import Placing
from memory_mesh.core.text import short_repr

# --- new links ---

MIN_SIMILARITY = 0.5  # a link needs more
# The types of links that memory-mesh makes, each with what makes it. Callers add others, by any
# name.
MADE_BY_US: Mapping[str, str] = {
    "similar": "store makes it",
    "supersedes": "use evolve, or store a claim that supersedes",
    "digest_of": "auto_compress makes it",
    "updates": "use confirm_change",
    "ends": "use confirm_change",
    "both_hold": "use undo_change",
    "may_update": "the judge of changes makes it",
}
LINK_TYPES = (*MADE_BY_US, "related", "cause")
MAX_LINKS = 5  # similar memories that a memory links to, and that link to it


def link(
    source: Memory, target: Memory, link_type: str, ms: int, similarity: float | None = None
) -> Link:
    """Return a link. There is one of each type from one memory to another."""
    scope: dict[str, Any] = source.scope
    return Link(
        id=f"{source.id}>{target.id}:{link_type}", created_at=iso(ms), ref=source.id,
        target=target.id, link_type=link_type, similarity=similarity, **scope,
    )  # fmt: skip


def choose(
    source: Memory,
    similar: Iterable[tuple[Memory, float]],
    incoming: Mapping[str, Sequence[Link]],
    ms: int,
) -> list[Link]:
    """Return the links of a new memory to similar ones, best first.

    `incoming` has the links to each of them so far. A memory with enough of them gets one more only
    if it is better than the worst one, which it replaces (`replaced`).
    """
    enough = [(target, cosine) for target, cosine in similar if cosine > MIN_SIMILARITY]
    links: list[Link] = []
    for target, cosine in sorted(enough, key=lambda pair: (-pair[1], pair[0].id)):
        others = incoming.get(target.id, ())
        if len(others) < MAX_LINKS or cosine > min(each.similarity or 0.0 for each in others):
            links.append(link(source, target, "similar", ms, round(cosine, 6)))
        if len(links) == MAX_LINKS:
            break
    return links


def replaced(incoming: Sequence[Link]) -> list[Link]:
    """Return the links to one memory that better ones replace."""
    best = sorted(incoming, key=lambda each: (-(each.similarity or 0.0), each.id))
    return best[MAX_LINKS:]


# --- groups of linked memories ---


def connected(
    links: Iterable[tuple[str, str, float]], *, max_size: int | None = None
) -> list[list[str]]:
    """Return the groups of connected ids, each sorted, the largest first. A link is two ids and how
    strong it is.

    Strong links count first. One that would make a group larger than `max_size` is left out, so
    that a chain of weak similarities does not put everything into one group.
    """
    groups: dict[str, list[str]] = {}
    for one, other, _ in sorted(links, key=lambda link: (-link[2], link[0], link[1])):
        first, second = (groups.setdefault(id_, [id_]) for id_ in (one, other))
        if first is second or (max_size is not None and len(first) + len(second) > max_size):
            continue
        larger, smaller = (first, second) if len(first) >= len(second) else (second, first)
        larger += smaller
        groups.update(dict.fromkeys(smaller, larger))
    distinct = {id(group): sorted(group) for group in groups.values()}
    return sorted(
        (group for group in distinct.values() if len(group) > 1),
        key=lambda group: (-len(group), group),
    )


# --- the composite score ---

WEIGHTS: Mapping[str, float] = {
    "relevance": 0.40,
    "confidence": 0.25,
    "recency": 0.20,
    "importance": 0.15,
}
_BY_RELEVANCE: Mapping[str, float] = {**dict.fromkeys(WEIGHTS, 0.0), "relevance": 1.0}
_FADING = 0.01  # of the recency in a day


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Composite:
    """The four numbers of a result, each from 0 to 1, and their weights."""

    __repr__ = short_repr

    relevance: float
    confidence: float  # the trust alone
    recency: float
    importance: float
    weights: Mapping[str, float]
    trust: Trust  # the parts of the confidence

    @property
    def parts(self) -> dict[str, float]:
        """What each number adds to the score."""
        return {name: weight * float(getattr(self, name)) for name, weight in self.weights.items()}

    @property
    def score(self) -> float:
        """The sum of the parts."""
        return sum(self.parts.values())


def recency(updated_ms: int, ms: int) -> float:
    """Return 1 for a memory that was just updated, and less with each day since."""
    return exp(-_FADING * max(0, ms - updated_ms) / DAY_MS)


def read_weights(rerank: object) -> Mapping[str, float]:
    """Return the weights of the option `rerank`, or raise `InvalidInput`.

    True gives the defaults, and False counts relevance alone. A mapping replaces the weights that
    it names.
    """
    if isinstance(rerank, bool):
        return WEIGHTS if rerank else _BY_RELEVANCE
    if not isinstance(rerank, Mapping):
        raise InvalidInput(
            f"rerank is {shown(rerank)}",
            expected="True, False, or weights such as {'relevance': 0.5}",
        )
    for name, weight in rerank.items():
        if name not in WEIGHTS:
            what, remedy = f"rerank has the unknown weight {shown(name)}", suggestion(name, WEIGHTS)
            raise InvalidInput(what, expected=", ".join(WEIGHTS), remedy=remedy)
        if not (is_number(weight, min_=0) and isfinite(weight)):
            raise InvalidInput(
                f"the weight of {name} is {shown(weight)}", expected="a number from 0"
            )
    return {**WEIGHTS, **{name: float(weight) for name, weight in rerank.items()}}


# --- results ---


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Retrieved:
    """How a result was found."""

    __repr__ = short_repr

    # What its relevance is: `vectors`, the cosine, or `keywords`, the fraction of the query's words
    # that it contains.
    by: str
    relevance: float
    # Its rank and score by vectors and by keywords.
    channels: Mapping[str, Placing] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, repr=False)
class GraphHit(SearchResult):
    """A memory that a search of the graph found.

    `score` is the composite, and `similarity` the cosine of its vector (None without vectors).
    """

    __repr__ = short_repr

    retrieved: Retrieved | None = field(default=None, repr=False)  # with `explain`
    rerank: Composite | None = field(default=None, repr=False)  # with `explain`


class GraphResults(list[GraphHit]):
    """The results of a search, best first, and what was counted on the way."""

    def __init__(
        self, hits: Iterable[GraphHit] = (), *, meta: Mapping[str, Value] | None = None
    ) -> None:
        super().__init__(hits)
        self.meta: dict[str, Value] = dict(meta or {})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryLink(Link):
    """A link of a memory, seen from it: `memory` is the other end, and `direction` is `outgoing`
    or `incoming`."""

    __repr__ = short_repr

    direction: str
    memory: MemoryRecord

    @classmethod
    def seen_from(cls, link: Link, memory_id: str, other: MemoryRecord) -> "MemoryLink":
        own = {field.name: getattr(link, field.name) for field in fields(link)}
        return cls(
            **own, direction="outgoing" if link.ref == memory_id else "incoming", memory=other
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reached:
    """A memory that a traversal reached: how many links away, by the type of the last link,
    along which memories."""

    __repr__ = short_repr

    memory: MemoryRecord
    distance: int
    link_type: str
    path: tuple[str, ...]  # the ids from the start to the memory before it

    @property
    def id(self) -> str:
        """The id of the memory."""
        return self.memory.id


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Candidate:
    """A memory that may go into a context, and what becomes of it."""

    __repr__ = short_repr

    memory: GraphHit
    # The chance that it is relevant; under the packing `composite` the relevance of the search.
    relevance: float
    value: float
    linked_to: str | None = None  # it was found by a link from or to this memory
    link_type: str | None = None
    tokens: int = 0  # of its lines
    density: float = 0.0  # the value by its cost; the value itself without a limit of tokens
    # Why it was left out: irrelevant, copy, max_memories or budget; None: it is in the text.
    left_out: str | None = None


class GraphContext(str):
    """The text of a context; empty if no memory is relevant, or if none fits.

    `memories` has what it shows, highest density first, and `left_out` the number of other
    candidates by reason. With `explain`, `decisions` has every candidate. `note` says why the text
    is empty although memories were found.
    """

    __slots__ = ("decisions", "left_out", "memories", "meta", "note", "tokens")

    memories: list[GraphHit]
    left_out: dict[str, int]
    tokens: int
    note: str | None
    decisions: tuple[Candidate, ...]
    meta: dict[str, Value]

    @property
    def text(self) -> str:
        """The text as a plain `str`."""
        return str.__str__(self)
