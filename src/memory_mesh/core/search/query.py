"""A query and its answer as values, and the cache of answers.

`Query` is what an index receives, `Pool` the candidates it returns, `Explanation` the account of a
whole search.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from memory_mesh.core.model import (
    ANYTHING,
    DAY_MS,
    Period,
    Reader,
    SearchResult,
    Vector,
    Where,
    iso,
)
from memory_mesh.core.text import ShortRepr

if TYPE_CHECKING:  # numpy takes a moment to load, and most commands do not search
    import numpy as np
    from numpy.typing import NDArray

Signal: TypeAlias = "NDArray[np.float32]"  # one entry for each candidate
Span: TypeAlias = tuple[float, float]  # first and last day, counted from 1970-01-01


def period_of(span: Span) -> Period:
    """Return the first and the last moment of a span of days."""
    return iso(round(span[0] * DAY_MS)), iso(round((span[1] + 1) * DAY_MS) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, prepared for an index."""

    tokens: Sequence[str]
    # Of `text`; None: there is no embedder, or it failed; only keywords are compared.
    vector: Vector | None
    reader: Reader
    at: str  # the time of the query; memories that have expired by then are excluded
    statuses: Sequence[str] = ("active",)
    spans: Sequence[Span] = ()  # the times that the text names
    # Speakers, in lower case, that the text refers to as "I" or "you".
    roles: Mapping[str, float] = field(default_factory=dict)
    names: frozenset[str] = frozenset()  # the tokens that look like names
    personal: bool = False  # see SIGNALS
    general: bool = False
    where: Where = ANYTHING  # the caller's filter
    text: str = field(default="", compare=False)  # what was embedded
    # In one of which a memory has to be valid; none: whenever it is valid.
    periods: Sequence[Period] = ()
    # Whether a token stands for a word that the embedder knows. Such a word is not corrected,
    # though no memory contains it.
    is_word: Callable[[str], bool] = field(default=lambda _: False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The candidates for a query, in no particular order, and their signals."""

    ids: Sequence[str]
    signals: Mapping[str, Signal]  # by the names in SIGNALS
    documents: int  # memories that the reader can see, with these statuses and this filter
    # Number of memories excluded before scoring, by reason.
    excluded: Mapping[str, int] = field(default_factory=dict)
    without_vector: int = 0  # memories without a vector of the query's model
    # By misspelt word of the query: the word that was searched.
    corrections: Mapping[str, str] = field(default_factory=dict)

    def joined(self, other: "Pool") -> "Pool":
        """Return the same pool with the candidates of another one, for the same query."""
        import numpy as np

        return replace(
            self,
            ids=[*self.ids, *other.ids],
            signals={
                name: np.concatenate([values, other.signals[name]])
                for name, values in self.signals.items()
            },
        )


# A missing neighbour or vector counts as 0; a memory without a session forms a session by itself. A
# neighbour is the previous or the next memory of the same session that the reader can see with the
# same statuses.
SIGNALS = (
    "keywords_before",  # BM25 of the previous neighbour
    "keywords_behind",  # BM25 of the next neighbour
    "keywords",  # BM25 of the memory
    "keywords_context",  # BM25 of the memory and its neighbours as one document
    "keywords_session",  # BM25 of its whole session as one document among sessions
    "coverage",  # fraction of the query's weight whose words the memory contains, 0–1
    "coverage_context",  # the same for the memory and its neighbours
    "coverage_wide",  # the same for the memory and two neighbours on each side
    "vectors_before",
    "vectors_behind",
    "vectors",  # cosine of its best passage
    "vectors_context",  # cosine of ½ · previous + own + ½ · next
    "vectors_session",  # best cosine within its session
    # How well the tokens of its best passage match those of the query: the sum over these of weight
    # times the product with the nearest one.
    "tokens",
    # The same for all its passages, and its previous neighbour, whose tokens count 0.94.
    "tokens_context",
    "length",  # number of keywords
    "question",  # 1 if its text ends as a question
    "question_before",  # 1 if the previous neighbour's text does
    "speaker",  # 1 if the query names its speaker, less if by a nickname or with a typo
    "speaker_known",  # 1 if it has a speaker
    # 1 if the query refers to its speaker as "I" or "you"; ½ for "I" if the query refers to both.
    "role",
    # The names of the query that no readable memory contains, less if they are close to a known
    # one, divided by one more than all its names: one unknown name weakens a query, and only
    # several make it one about others.
    "stranger",
    # 1 if its event lies within a time that the query names, less with each day outside, 0 if
    # either is missing.
    "when",
    "by_user",  # 1 if the user of an assistant said it
    "by_assistant",  # 1 if an assistant said it
    "day",  # of its event, or else of its writing, counted from 1970-01-01
    "personal",  # 1 if the query is about "me", "us" or "you"
    "general",  # 1 if the query asks how something is done or what something is, whoever asks
)


@dataclass(frozen=True, slots=True, repr=False)
class Placing(ShortRepr):
    """The rank and the score that one channel gives to a memory."""

    rank: int  # from 1
    score: float


@dataclass(frozen=True, slots=True, repr=False)
class Contribution(ShortRepr):
    """What one signal added to the score of a memory, or took from it."""

    signal: str
    meaning: str  # in plain words
    value: float  # in log-odds; under `rrf` a part of the score itself


@dataclass(frozen=True, slots=True, repr=False)
class WordPair(ShortRepr):
    """A word of the question, and the word of a memory that is nearest to it in meaning."""

    question: str
    memory: str
    value: float  # its part of the signal `tokens`


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explained(ShortRepr):
    """One result with the placings and features that it was ranked by."""

    result: SearchResult
    channels: Mapping[str, Placing] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict, repr=False)
    # Largest first; their sum is the log-odds of the score, under `rrf` the score.
    contributions: Sequence[Contribution] = ()
    # Those that count most, best first; none without token vectors.
    word_pairs: Sequence[WordPair] = ()
    # The id of a newer memory that says the same with another value, or changed what this one says,
    # or of the one that held at the time of the question. It has a higher score.
    newer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation(ShortRepr):
    """A search with its results, its near misses, and the number of memories excluded at each
    step."""

    query: str  # as it was searched: personal data masked
    tokens: Sequence[str]
    # By misspelt token: the word of a memory that was searched instead.
    corrections: Mapping[str, str]
    ranker: str
    model: str | None  # whose vectors were compared; None: keywords only
    mode: str | None  # the search mode that set the minimum score; None: the caller did
    min_score: float
    documents: int  # memories that could have been results
    candidates: int  # memories that were ranked
    left_out: Mapping[str, int]  # by reason
    answers: Sequence[Explained]
    nearly: Sequence[Explained] = ()  # the best of those below the minimum score


# --- the cache of RFC-0011 §5 ---
# At most 500 entries, kept for five minutes; the least recently used is evicted first.

MAX_SIZE = 500
TTL_MS = 5 * 60 * 1000

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Size and hit counts of the search cache."""

    size: int
    max_size: int
    ttl_seconds: int
    hits: int
    misses: int


class SearchCache(Generic[Answer]):
    """Answers by key, each with the mark of what its reader could see: a write to that, by any
    process, invalidates it."""

    def __init__(self) -> None:
        # Answer, mark, life.
        self._entries: OrderedDict[Hashable, tuple[Answer, Hashable, range]] = OrderedDict()
        self._lock = Lock()
        self._hits = self._misses = 0

    def get(self, key: Hashable, mark: Hashable, at: int) -> Answer | None:
        """Return the answer if it has the same mark and has not expired; a hit does not extend
        its life."""
        with self._lock:
            answer, known_mark, life = self._entries.get(key, (None, None, range(0)))
            # If the clock was set back, the age of an entry is unknown.
            if known_mark != mark or at not in life:
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return answer

    def put(
        self, key: Hashable, mark: Hashable, answer: Answer, at: int, *, until: int | None = None
    ) -> None:
        """Store an answer for five minutes, or until `until` if that comes first."""
        expires = at + TTL_MS if until is None else min(until, at + TTL_MS)
        with self._lock:
            self._entries[key] = answer, mark, range(at, expires)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_SIZE:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(
                len(self._entries), MAX_SIZE, TTL_MS // 1000, self._hits, self._misses
            )
