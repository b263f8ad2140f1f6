"""The port of a store that is searched in its own engine, and the values that cross it.

A store with a `candidate_source` (`core.ports.ServerStore`) is searched by `index.CandidateIndex`,
every other store by `index.LocalIndex`. Both compute the same signals. `index.paged.PagedSource`
implements this port over any store, slowly.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


class CandidateMemory(NamedTuple):
    """What the scores of a memory are computed from."""

    id: str
    partition: str
    session_id: str | None
    speaker: str | None
    event_time: str | None
    created_at: str
    is_question: bool
    is_allowed: bool  # meets the caller's filter
    length: int  # keywords
    words: Sequence[str]  # its keywords that are words of the query, repeats included
    vector: Vector | None = None  # of the query's model and dimension
    passages: Sequence[Vector] = ()  # such vectors of its passages
    # If some of its keywords may not be stored: then `words` has all stored ones.
    text: str | None = None


class Around(NamedTuple):
    """The ids of the memories before and behind one in its session, the nearest first."""

    before: Sequence[str] = ()
    behind: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTotals:
    """What the memories of one session add up to."""

    length: int = 0  # keywords
    # By word: how often it occurs, repeats included.
    counts: Mapping[str, int] = field(default_factory=dict)
    # The best, of passages too; None: the session has no vector of the query's model and dimension.
    cosine: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The neighbours of memories, by id, and the totals of the sessions of these memories."""

    neighbours: Mapping[str, Around] = field(default_factory=dict)
    sessions: Mapping[SessionKey, SessionTotals] = field(default_factory=dict)


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


class CandidateSource(Protocol):
    """Answers about memories, each from one query in the engine of a store. A word that is missing
    in a result has the count 0.

    **statistics** returns the counts of memories for a query of these words; `model` is the name
    and the dimension of its vector. **count_words** returns how many of the memories that meet a
    condition contain each word; up to about a thousand words. **speakers** returns each partition
    and speaker that a memory has which meets the condition. **nearest** returns the ids of the
    memories that meet a condition whose vectors, or whose passages' vectors, are nearest; `count`
    is the number of memories that meet it and have a vector of the model, as **statistics**
    returned it. **memories** returns the readable ones of these ids, newest first; the vectors of
    `with_vectors` only, with their tokens if these are wanted. **around** returns for each of these
    ids up to `steps` memories on each side, among those of its session that meet the condition. A
    memory without a session, or that does not meet the condition, is left out of the result. A
    session is ordered by `turn` if every such memory of it has one, else by `event_time` if every
    one has that, else by `created_at`; then by `created_at`, `number` and `id`. It also returns the
    totals of the memories of these sessions that meet the condition.

    **index_rows** yields what an index in memory needs of the rows of a kind in a partition, newest
    first, some thousand rows at a time. A row that is written meanwhile may be missing.
    """

    def statistics(
        self, conditions: Conditions, words: Collection[str], model: tuple[str, int] | None
    ) -> Statistics: ...
    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]: ...
    def speakers(self, where: Where) -> Collection[tuple[str, str]]: ...
    def nearest(self, where: Where, vector: Vector, *, count: int, limit: int) -> Sequence[str]: ...
    def memories(
        self, conditions: Conditions, ids: Sequence[str], words: Collection[str],
        model: tuple[str, int] | None,
        *, with_vectors: Collection[str], with_tokens: bool = False,
    ) -> Sequence[CandidateMemory]: ...  # fmt: skip
    def around(
        self,
        where: Where,
        ids: Sequence[str],
        *,
        steps: int,
        words: Collection[str] = (),
        vector: Vector | None = None,
    ) -> Surroundings: ...
    def index_rows(self, kind: Kind, partition: str) -> Iterator[IndexedRows]: ...
