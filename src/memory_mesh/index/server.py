"""The index of a server store: in the memory of this process, or in the engine of the store.

The partitions of a reader with up to `max_memories` memories are kept in memory, as `LocalIndex`
keeps those of an embedded store. They are built in the background; until then, and for larger ones,
the engine is asked. Nothing is written to the disk of this computer: the text of an erased memory
must not stay there.
"""

from collections.abc import Hashable, Iterable
from contextlib import suppress
from threading import Lock
from time import monotonic

from memory_mesh.core.errors import MemoryMeshError, StoreCorrupt
from memory_mesh.core.model import In, Kind, Reader, partitions
from memory_mesh.core.model.background import Courier, cancellable
from memory_mesh.core.ports import Snapshot, Store
from memory_mesh.core.search.candidates import CandidateSource
from memory_mesh.index.local import LocalSnapshot, Partition
from memory_mesh.index.remote import CandidateIndex
from memory_mesh.system import fork_safe

MAX_MEMORIES = 100_000
MAX_MEGABYTES = 1024
BUILD_AFTER_SECONDS = 0.5  # a command that has ended by then builds nothing
_AGAIN_SECONDS = 300.0  # before what was too large, could not be read, or was dropped is built
_CLOSE_SECONDS = 10.0  # for the builder to read the page that it has begun
_BYTES = 2000  # of a row, before its partition is built
_MAX_DELAYED = 4096  # partitions of readers that are not tried now

Names = tuple[str, ...]  # of the partitions of a reader


class ServerIndex:
    """The index of a server store."""

    def __init__(
        self,
        store: Store,
        source: CandidateSource,
        *,
        language: str = "english",
        max_memories: int = MAX_MEMORIES,
        max_megabytes: int = MAX_MEGABYTES,
        build_after: float = BUILD_AFTER_SECONDS,
    ) -> None:
        self._store, self._language = store, language
        self._max_memories, self._max_bytes = max_memories, max_megabytes * 1_000_000
        self._build_after = build_after
        self._engine = CandidateIndex(store, source, language=language)
        self._building, self._lock = fork_safe(Lock()), fork_safe(Lock())
        # The second lock protects what follows.
        self._partitions: dict[str, Partition] = {}  # built ones, the least recently used first
        self._bytes: dict[str, int] = {}  # how much memory each takes
        self._total = 0  # their sum
        self._waiting: dict[Names, None] = {}
        self._not_before: dict[str | Names, float] = {}
        self._builder = Courier()

    def snapshot(self, reader: Reader) -> Snapshot:
        """Bring the partitions of a reader up to date, if they are in memory."""
        names, data_version = tuple(sorted(partitions(reader))), self._store.data_version()
        if parts := self._up_to_date(names, data_version):
            return LocalSnapshot(reader, parts, data_version)
        keys: tuple[str | Names, ...] = (names, *names)
        with self._lock:
            # Without a data version the store has no tables yet.
            if is_tried := data_version is not None and all(
                self._not_before.get(key, 0.0) <= monotonic() for key in keys
            ):
                self._waiting[names] = None
        if is_tried:
            with suppress(RuntimeError):  # no thread can be started: the engine still answers
                self._builder.start(self._build_waiting)
        return self._engine.snapshot(reader, data_version)

    def prepare(self, reader: Reader) -> None:
        """Build the partitions of a reader now, unless they are too large or damaged."""
        names, data_version = tuple(sorted(partitions(reader))), self._store.data_version()
        if data_version is not None and not self._up_to_date(names, data_version):
            with suppress(StoreCorrupt):
                self._build(names)

    def forget(self, partitions: Iterable[str]) -> None:
        """Do nothing: there are no files, and what is in memory follows the changes of the store
        before it is read again."""

    def close(self) -> None:
        """Stop building, and drop everything."""
        self._builder.close(_CLOSE_SECONDS)
        with self._lock:
            self._clear()
        self._engine.close()

    def reset_after_fork(self) -> None:
        """Drop everything: a thread of the parent may have been changing it."""
        self._builder = Courier()
        self._clear()
        self._engine.reset_after_fork()

    def _clear(self) -> None:
        self._partitions, self._bytes, self._total, self._waiting = {}, {}, 0, {}

    def _up_to_date(self, names: Names, data_version: Hashable) -> list[Partition]:
        """Return these partitions, up to date. None are returned if one of them has to be built
        first, or if they have become too large."""
        with self._lock:
            parts = [self._partitions.pop(name) for name in names if name in self._partitions]
            self._partitions |= {part.name: part for part in parts}  # at the end
        if len(parts) < len(names):
            return []
        followed: list[Partition] = []
        for part in parts:
            with part.lock, suppress(StoreCorrupt):  # the engine reads other columns
                followed += [part] if part.follow(data_version) else []
        is_large = sum(part.table.memories for part in parts) > self._max_memories
        with self._lock:
            self._measure(parts)
            kept = self._bound(names) and not is_large
            if not kept:
                self._delay(names)
            for part in parts:
                if not kept or part not in followed:
                    self._drop(part.name)
        return parts if kept and len(followed) == len(parts) else []

    # --- what is kept; the caller holds the lock ---

    def _measure(self, parts: Iterable[Partition]) -> None:
        for part in parts:
            if part.name in self._partitions:
                size = part.size_in_bytes
                self._total += size - self._bytes.get(part.name, 0)
                self._bytes[part.name] = size

    def _bound(self, names: Names) -> bool:
        """Drop the least recently used partitions over the bound, and return whether these may
        stay."""
        while self._total > self._max_bytes:
            if (name := next((n for n in self._partitions if n not in names), None)) is None:
                return False
            self._drop(name)
            self._delay(name)  # two readers would push each other out again and again
        return True

    def _drop(self, name: str) -> None:
        self._partitions.pop(name, None)
        self._total -= self._bytes.pop(name, 0)

    def _delay(self, key: str | Names) -> None:
        if len(self._not_before) >= _MAX_DELAYED:
            self._not_before.clear()
        self._not_before[key] = monotonic() + _AGAIN_SECONDS

    # --- building ---

    def _build_waiting(self, waited: bool) -> float | None:  # noqa: FBT001  (called by `Courier`)
        if not waited:
            return self._build_after
        while (names := self._next()) is not None:
            try:
                # The next search meets the error of a store, too.
                with suppress(MemoryMeshError), cancellable(self._builder.closing):
                    self._build(names)
            finally:
                with self._lock:
                    self._waiting.pop(names, None)
                    if any(name not in self._partitions for name in names):
                        self._delay(names)
        return None

    def _next(self) -> Names | None:
        with self._lock:
            return next(iter(self._waiting), None)

    def _build(self, names: Names) -> None:
        """Build those of these partitions that are not in memory, unless they are too large."""
        here = In("partition", names)
        with self._building:
            missing = [name for name in names if name not in self._partitions]
            count = self._store.count(Kind.MEMORY, here) if missing else 0
            rows = count + self._store.count(Kind.PASSAGE, here) if missing else 0
            if count > self._max_memories or rows * _BYTES > self._max_bytes:
                return
            for name in missing:
                part = Partition(
                    name, self._store, self._language, read=self._engine.source.index_rows
                )
                with part.lock:
                    part.refresh(self._store.data_version())
                with self._lock:
                    self._partitions[name] = part
                    self._measure([part])
        with self._lock:
            if not self._bound(names):
                for name in names:
                    self._drop(name)
