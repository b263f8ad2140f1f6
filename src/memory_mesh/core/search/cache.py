"""The search cache of RFC-0011 §5: at most 500 entries, kept for five minutes, the least recently used evicted first.

An entry is valid for one state of the store. Marks identify states, so a write by any process invalidates it.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

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


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Answer]):
    answer: Answer
    marks: Hashable
    created: int
    expires: int


class SearchCache(Generic[Answer]):
    """Answers by key, each with the marks of the state it was computed from."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry[Answer]] = OrderedDict()
        self._lock = Lock()
        self._hits = self._misses = 0

    def get(self, key: Hashable, marks: Hashable, at: int) -> Answer | None:
        """Return the answer if it has the same marks and has not expired; a hit does not extend its life."""
        with self._lock:
            entry = self._entries.get(key)
            # If the clock was set back, the age of an entry is unknown.
            if entry is None or entry.marks != marks or not entry.created <= at < entry.expires:
                self._entries.pop(key, None)
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry.answer

    def put(self, key: Hashable, marks: Hashable, answer: Answer, at: int, *, until: int | None = None) -> None:
        """Store an answer for five minutes, or until `until` if that comes first."""
        expires = at + TTL_MS if until is None else min(until, at + TTL_MS)
        with self._lock:
            self._entries[key] = _Entry(answer, marks, at, expires)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_SIZE:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        with self._lock:
            return CacheStats(len(self._entries), MAX_SIZE, TTL_MS // 1000, self._hits, self._misses)
