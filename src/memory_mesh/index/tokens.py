"""The token vectors of one model: for each word of a text a small vector of its own.

A query is compared word by word: each of its tokens counts, by its weight, as much as the nearest
token of the memory. A cosine compares whole texts, and one detail of a long one hardly changes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from memory_mesh.core.model import KEPT_TOKEN, TOKEN_BYTES
from memory_mesh.index.arrays import Array, Columns, Flags, Floats, GrowingArray, Ints

try:
    import numkong as simd
except ImportError:
    simd = None  # type: ignore[assignment]  # numpy computes the same numbers, more slowly

_NUMBERS = TOKEN_BYTES - 1
_STEPS = 127.0  # the number that stands for 1
_MAX_ASKED = 64  # tokens of a query that count: those with the highest weights
_AT_ONCE = 20_000  # tokens that are compared together
_WEIGHT = KEPT_TOKEN - 1  # the bits of a token's last byte that are its weight


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """The tokens of a query, and how much each counts: the weights add up to 1."""

    codes: Array
    weights: Floats

    @classmethod
    def of(cls, data: bytes) -> "QueryTokens | None":
        """Return the tokens of a query's vector; None if it has none."""
        rows = np.frombuffer(data, np.int8).reshape(-1, TOKEN_BYTES)
        if len(rows) > _MAX_ASKED:
            rows = rows[np.sort(np.argsort(-(rows[:, -1] & _WEIGHT), kind="stable")[:_MAX_ASKED])]
        weights = (rows[:, -1] & _WEIGHT).astype(np.float32)
        total = float(weights.sum())
        if not total:
            return None
        return cls(np.ascontiguousarray(rows[:, :-1]), weights / np.float32(total * _STEPS**2))


class TokenVectors:
    """The tokens of the rows of a space: a base, perhaps in a mapped file, and later additions."""

    def __init__(self, base: Columns) -> None:
        self._base: Array = base.get("token_codes", np.empty((0, _NUMBERS), np.int8))
        ends = base.get("token_ends", np.zeros(len(base["vector_slots"]), np.int64))
        self._codes = GrowingArray(np.empty((0, _NUMBERS), np.int8))
        # By row, and before them a 0: where its tokens end, in the base and then in the additions.
        self._ends = GrowingArray(np.concatenate(([0], ends)).astype(np.int64))

    @property
    def empty(self) -> bool:
        """Whether no row has tokens."""
        return not self._ends.values[-1]

    def add(self, tokens: Sequence[bytes]) -> None:
        """Add the tokens of new rows."""
        rows = np.frombuffer(b"".join(tokens), np.int8).reshape(-1, TOKEN_BYTES)
        counts = [len(each) // TOKEN_BYTES for each in tokens]
        self._codes.extend(rows[:, :-1])
        self._ends.extend(self._ends.values[-1] + np.cumsum(counts, dtype=np.int64))

    def packed(self, living: Flags) -> Columns:
        """Return the tokens of the living rows as a new base; nothing if there are none."""
        if self.empty:
            return {}
        rows = living.nonzero()[0]
        return {"token_codes": self._take(rows), "token_ends": np.cumsum(self.counts(rows))}

    def nearest(self, rows: Ints, query: QueryTokens) -> Floats:
        """Return for each of these rows, which have tokens, and each token of the query the product
        with the nearest one."""
        nearest = np.empty((len(rows), len(query.codes)), np.float32)
        ends = np.cumsum(self.counts(rows))
        # Of long memories in parts: all products together could fill the memory.
        parts = np.unique(ends // _AT_ONCE, return_index=True)[1].tolist()
        for first, last in pairwise([*parts, len(rows)]):
            some = rows[first:last]
            starts = ends[first:last] - self.counts(some)
            products = _products(self._take(some), query.codes)
            nearest[first:last] = np.maximum.reduceat(products, starts - starts[0], axis=0)
        return nearest

    def counts(self, rows: Ints) -> Ints:
        """Return how many tokens each of these rows has."""
        ends = self._ends.values
        counts: Ints = ends.take(rows + 1) - ends.take(rows)
        return counts

    def _take(self, rows: Ints) -> Array:
        """Return the tokens of these rows, one after the other."""
        counts, old = self.counts(rows), len(self._base)
        starts = self._ends.values.take(rows) - (np.cumsum(counts) - counts)
        places = np.arange(counts.sum()) + np.repeat(starts, counts)
        codes: Array = (self._base if old else self._codes.values).take(places, 0, mode="clip")
        if old and self._codes.size:
            later = (places >= old).nonzero()[0]
            codes[later] = self._codes.values.take(places.take(later) - old, 0)
        return codes


def _products(tokens: Array, query: Array) -> Array:
    """Return the product of each token with each token of the query, by token."""
    if simd:
        return np.asarray(simd.dots_packed(tokens, simd.dots_pack(query, dtype="int8")))
    products: Array = tokens.astype(np.float32) @ query.T.astype(np.float32)
    return products
