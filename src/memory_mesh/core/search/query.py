"""What an index is asked, and the candidates that it answers with: raw signals, one array entry for each candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from memory_mesh.core.model.rows import Vector
from memory_mesh.core.model.scope import Reader

if TYPE_CHECKING:  # numpy takes a moment to load, and most commands search nothing
    import numpy as np
    from numpy.typing import NDArray

Signal: TypeAlias = "NDArray[np.float32]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query as an index needs it."""

    tokens: Sequence[str]
    vector: Vector | None  # None: no embedder, or it is down; the answer comes from keywords alone
    reader: Reader
    at: str  # the moment; what has expired by then is left out
    statuses: Sequence[str] = ("active",)
    spans: Sequence[tuple[float, float]] = ()  # the times that it names: first and last, in days since 1970
    roles: frozenset[str] = frozenset()  # speakers that it means without naming them, in lower case
    names: frozenset[str] = frozenset()  # those of its tokens that look like names
    only: frozenset[str] | None = None  # the ids that the caller's own filter allows; None: no filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The candidates, in no order, and what is known of each."""

    ids: Sequence[str]
    signals: Mapping[str, Signal]  # the names of SIGNALS
    documents: int  # how many memories the reader sees, of these statuses, under this filter
    unseen: Mapping[str, int] = field(default_factory=dict)  # left out before scoring, by reason
    foreign: int = 0  # memories whose vector is of another model, or missing


# Missing neighbours and vectors count as 0; a memory without a session is a session of its own. A neighbour is the memory before
# or behind within the same session, of the same reader's scope and the same statuses.
SIGNALS = (
    "keywords",  # BM25 of the memory
    "keywords_before",  # BM25 of the neighbour before it
    "keywords_behind",
    "keywords_context",  # BM25 of the neighbours and itself, as one document
    "keywords_session",  # BM25 of its whole session, as one document among sessions
    "coverage",  # share of the query's rarity that its own words hold, 0–1
    "coverage_context",  # the same of the neighbours and itself
    "coverage_wide",  # the same of two neighbours on each side and itself
    "vectors",  # cosine, of its best passage
    "vectors_before",
    "vectors_behind",
    "vectors_context",  # cosine of ½ · before + own + ½ · behind
    "vectors_session",  # best cosine within its session
    "length",  # keywords in it
    "question",  # 1 where its text ends as a question
    "question_before",  # 1 where the neighbour before it does
    "speaker",  # 1 where its speaker is named in the query
    "speaker_known",  # 1 where it has a speaker
    "role",  # 1 where its speaker is meant without being named
    "stranger",  # the share of the query's names that no memory holds which the reader may be shown
    "when",  # 1 where its event lies within a time that the query names; less with each day outside; 0 without either
    "when_asked",  # 1 where the query names a time
)
