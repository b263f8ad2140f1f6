"""The results of a search of the graph."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memory_mesh.core.graph.composite import Composite
from memory_mesh.core.model import SearchResult, Value
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

    `score` is the composite, `similarity` the cosine of its vector (None without vectors), and `trust` how far it is trusted now;
    `get` shows the base trust of its source instead.
    """

    __repr__ = short_repr

    retrieved: Retrieved | None = field(default=None, repr=False)  # with `explain`
    rerank: Composite | None = field(default=None, repr=False)  # with `explain`


class GraphResults(list[GraphHit]):
    """The results of a search, best first, and what was counted on the way."""

    def __init__(self, hits: Iterable[GraphHit] = (), *, meta: Mapping[str, Value] | None = None) -> None:
        super().__init__(hits)
        self.meta: dict[str, Value] = dict(meta or {})
