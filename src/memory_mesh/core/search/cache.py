"""The search cache of RFC-0011 §5: at most 500 answers, five minutes each, the least recently used out first.

An answer holds for one state of the store. Marks tell states apart, so a write by whatever process makes it unusable.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

MOST = 500
LIFE_MS = 5 * 60 * 1000

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How full the cache is, and how often it helped."""

    size: int
    max_size: int
    ttl_seconds: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Answer]):
    answer: Answer
    marks: Hashable
    born: int
    until: int


class SearchCache(Generic[Answer]):
    """Answers by question, each with the marks that it was given under."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry[Answer]] = OrderedDict()
        self._lock = Lock()
        self._hits = self._misses = 0

    def get(self, key: Hashable, marks: Hashable, at: int) -> Answer | None:
        """The answer, if it was given under these marks and not too long ago. Being used does not make it younger."""
        with self._lock:
            held = self._entries.get(key)
            # A clock that was set back makes the age of an entry unknowable.
            if held is None or held.marks != marks or not held.born <= at < held.until:
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return held.answer

    def put(self, key: Hashable, marks: Hashable, answer: Answer, at: int, *, until: int | None = None) -> None:
        """Keep an answer, for five minutes or until something in it expires."""
        end = at + LIFE_MS if until is None else min(until, at + LIFE_MS)
        with self._lock:
            self._entries[key] = _Entry(answer, marks, at, end)
            self._entries.move_to_end(key)
            while len(self._entries) > MOST:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(len(self._entries), MOST, LIFE_MS // 1000, self._hits, self._misses)
