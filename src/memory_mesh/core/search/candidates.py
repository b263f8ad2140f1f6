"""The port of a store that is searched in its own engine, and the values that cross it.

A store with a `candidate_source` (`core.ports.ServerStore`) is searched by `index.CandidateIndex`,
every other store by `index.LocalIndex`. Both compute the same signals; an engine returns fewer
memories to compute them from.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol, cast

from memory_mesh.core.model import BASE, Kind, Row, Value, Vector, Where
from memory_mesh.core.search import Corpus

NO_DOCUMENTS = Corpus(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The memories that a query concerns. Each condition includes the one before."""

    visible: Where  # in the scope of the reader, with any status
    with_status: Where  # with one of the query's statuses
    readable: Where  # not expired
    allowed: Where  # meets the caller's filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts of memories. A memory without keywords is not a document of a corpus."""

    visible: int = 0
    with_status: int = 0
    readable: int = 0
    allowed: int = 0
    # Allowed ones with a vector of the query's model and dimension, of their own or of a passage.
    with_vector: int = 0
    corpus: Corpus = NO_DOCUMENTS  # of the visible memories
    # By word: visible memories that contain it.
    counts: Mapping[str, int] = field(default_factory=dict)
    # Of the readable memories, all of one session as one document; a memory without a session is
    # one by itself.
    sessions: Corpus = NO_DOCUMENTS
    # By word: such documents that contain it.
    session_counts: Mapping[str, int] = field(default_factory=dict)


class SessionKey(NamedTuple):
    """A session. It lies within one partition."""

    partition: str
    session_id: str

    @classmethod
    def of(cls, row: Row) -> "SessionKey | None":
        """Return the session of a memory; None: it has none."""
        session_id = row.value("session_id")
        return cls(row.partition, session_id) if isinstance(session_id, str) else None


class SessionTotals(NamedTuple):
    """What the memories of one session add up to."""

    length: int = 0  # keywords
    # By word: how often it occurs, repeats included.
    counts: Mapping[str, int] = MappingProxyType({})
    # The best one of its memories, without their passages; None: they have no vector.
    cosine: float | None = None


# The columns that an index in memory reads.
INDEXED = (
    "id", "created_at", "number", "content", "keywords", "user_id", "agent_id", "session_id",
    "memory_type", "reach", "status", "project", "ref", "speaker", "turn", "event_time",
    "expires_at", "valid_from", "valid_until", "category", "importance", "confidence", "trust",
    "pinned", "tags", "entities",
)  # fmt: skip


class IndexedRows(NamedTuple):
    """What an index in memory needs of rows of one kind."""

    columns: Mapping[str, Sequence[Value]]  # the values of each column of `INDEXED`, row by row
    vectors: Sequence[Vector | None]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "IndexedRows":
        fields = [row.fields for row in rows]
        columns: dict[str, Sequence[Value]] = {
            name: [getattr(row, name) for row in rows]
            if name in BASE
            else [each.get(name) for each in fields]
            for name in INDEXED
        }
        return cls(columns, [row.vector for row in rows])

    def texts(self, name: str) -> Sequence[str | None]:
        """Return the values of a column of texts."""
        return cast("Sequence[str | None]", self.columns[name])


class FoundRows(NamedTuple):
    """The memories of one partition that a search found, newest first, and their passages."""

    memories: IndexedRows
    passages: IndexedRows
    places: Sequence[int | None]  # of each memory: its place in its session
    allowed: Sequence[bool]  # whether it meets the caller's filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of an engine to a search."""

    statistics: Statistics = field(default_factory=Statistics)
    rows: Mapping[str, FoundRows] = field(default_factory=dict)  # by partition
    # Of the sessions of the best memories.
    sessions: Mapping[SessionKey, SessionTotals] = field(default_factory=dict)


class CandidateSource(Protocol):
    """Answers about memories, each from one query in the engine of a store. A word that is missing
    in a result has the count 0.

    **search** returns the best `limit` memories for words, given with their weights in the query,
    and the best for a vector; both among those that meet the condition `allowed`. It adds their
    neighbours in their sessions: up to two readable memories on each side. `names` are counted as
    the words are. A session is ordered by `turn` if every readable memory of it has one, else by
    `event_time` if every one has that, else by `created_at`; then by `created_at`, `number` and
    `id`. **count_words** returns how many of the memories that meet a condition contain each word;
    up to about a thousand words. **speakers** returns each partition and speaker that a memory has
    which meets the condition.

    **index_rows** yields what an index in memory needs of the rows of a kind in a partition, newest
    first, some thousand rows at a time. A row that is written meanwhile may be missing.
    """

    def search(
        self,
        conditions: Conditions,
        words: Mapping[str, float],
        names: Collection[str],
        vector: Vector | None,
        *,
        limit: int,
    ) -> Found: ...
    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]: ...
    def speakers(self, where: Where) -> Collection[tuple[str, str]]: ...
    def index_rows(self, kind: Kind, partition: str) -> Iterator[IndexedRows]: ...
