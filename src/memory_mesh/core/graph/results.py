"""The results of the graph: of searches, links, traversals and contexts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from memory_mesh.core.graph.composite import Composite
from memory_mesh.core.model import Link, MemoryRecord, SearchResult, Value
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.search import Placing


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Retrieved:
    """How a result was found."""

    __repr__ = short_repr

    by: str  # what its relevance is: `vectors`, the cosine, or `keywords`, the fraction of the query's words that it contains
    relevance: float
    channels: Mapping[str, Placing] = field(default_factory=dict)  # its rank and score by vectors and by keywords


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

    def __init__(self, hits: Iterable[GraphHit] = (), *, meta: Mapping[str, Value] | None = None) -> None:
        super().__init__(hits)
        self.meta: dict[str, Value] = dict(meta or {})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryLink(Link):
    """A link of a memory, seen from it: `memory` is the other end, and `direction` is `outgoing` or `incoming`."""

    __repr__ = short_repr

    direction: str
    memory: MemoryRecord

    @classmethod
    def seen_from(cls, link: Link, memory_id: str, other: MemoryRecord) -> "MemoryLink":
        own = {field.name: getattr(link, field.name) for field in fields(link)}
        return cls(**own, direction="outgoing" if link.ref == memory_id else "incoming", memory=other)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reached:
    """A memory that a traversal reached: how many links away, by the type of the last link, along which memories."""

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
    relevance: float  # the chance that it is relevant; under the packing `composite` the relevance of the search
    value: float
    linked_to: str | None = None  # it was found by a link from or to this memory
    link_type: str | None = None
    tokens: int = 0  # of its lines
    density: float = 0.0  # the value by its cost; the value itself without a limit of tokens
    left_out: str | None = None  # why it was left out: irrelevant, copy, max_memories or budget; None: it is in the text


class GraphContext(str):
    """The text of a context; empty if no memory is relevant, or if none fits.

    `memories` has what it shows, highest density first, and `left_out` the number of other candidates by reason. With `explain`,
    `decisions` has every candidate. `note` says why the text is empty although memories were found.
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
