"""Why a search answered as it did: what each channel said of each memory, and what was left out, and for what reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory_mesh.core.model.records import SearchResult


@dataclass(frozen=True, slots=True)
class Placing:
    """Where one channel put a memory."""

    rank: int  # from 1
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One answer and what speaks for it."""

    result: SearchResult
    channels: Mapping[str, Placing] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A search, told in full."""

    query: str  # as it was searched for: personal data masked
    tokens: Sequence[str]
    ranker: str
    model: str | None  # whose vectors were compared; None: keywords alone
    min_score: float
    documents: int  # memories that could have been answers
    candidates: int  # those that were ranked
    left_out: Mapping[str, int]  # by reason
    answers: Sequence[Explained]
    nearly: Sequence[Explained] = ()  # the best of those that the minimum score left out
