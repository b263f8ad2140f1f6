"""What the LanceDB stores share: the methods of the port, over a view of the current state."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from memory_mesh.core.errors import Conflict, IdTaken, StoreBusy, StoreError
from memory_mesh.core.model import ANYTHING, MOVING, Hit, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Applied, Changes, Step
from memory_mesh.stores.base import check_unique
from memory_mesh.stores.changes import Change, erases, new_nonce
from memory_mesh.stores.lance.errors import Superseded
from memory_mesh.stores.lance.view import View

T = TypeVar("T")

FLUSHED_ROWS = 512  # in the journal; more are written into the tables
DIRECT_ROWS = 256  # in one change; such a change is written into the tables without the journal
ATTEMPTS = 20  # to read a state that others replace meanwhile, or to write while others write


class ViewStore(ABC):
    """Rows in Lance tables and a journal. Subclasses say where they are, and how writers take turns."""

    _flush_rows: int
    _flush_at: int
    _direct_rows: int
    _view: View | None
    _wrote: bool
    _step: Step

    @abstractmethod
    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store was opened for reading only, or has no permission to write."""

    @abstractmethod
    def _reading(self, read: Callable[[View], T]) -> T:
        """Return what a function reads from the current state; again, if others replaced it meanwhile."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[View]:
        """Yield the current state while no other process or thread writes."""

    @abstractmethod
    def _append(self, view: View, change: Change) -> None:
        """Write a change to the journal and add it to the view."""

    @abstractmethod
    def _flush(self, view: View, *, rewrite: bool = False) -> None:
        """Write the changes of the journal into the tables, and begin a new journal. `rewrite` also frees deleted bytes."""

    def _moved(self, versions: Mapping[str, int]) -> None:  # noqa: B027
        """Do what a store does when partitions got these versions; by default nothing."""

    def apply(self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None) -> Applied:
        check_unique(puts, deletes)
        self.check_writable()
        for _ in range(ATTEMPTS):
            with suppress(Superseded), self._writing() as view:
                return self._applied(view, puts, deletes, seen or {})
        raise StoreBusy("others wrote to the store at the same time", remedy="try again; nothing was written")

    def _applied(self, view: View, puts: Sequence[Row], deletes: Sequence[Key], seen: Mapping[str, int]) -> Applied:
        before = view.data_version
        self._step("store.begun")
        for partition, version in seen.items():
            if view.partitions.get(partition, (0, ""))[0] != version:
                raise Conflict(f"partition {partition} has changed")
        change = _decided(view, puts, deletes)
        if len(change.puts) + len(change.deletes) >= self._direct_rows:
            self._write_directly(view, change)
        else:
            self._append(view, change)
        self._wrote = True
        self._step("store.committed")
        versions = {name: view.partitions[name][0] for name in change.moves}
        self._moved(versions)
        if view is self._view and view.size >= self._flush_at:
            self._flush_if_possible(view)
        leaves_bytes = change.deletes or any(row.replaces for row in puts)
        return Applied(not leaves_bytes, before, view.data_version, versions)

    def version(self, partition: str) -> int:
        return self._reading(lambda view: view.partitions.get(partition, (0, ""))[0])

    def data_version(self) -> Hashable:
        return self._reading(lambda view: view.data_version)

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        return self._reading(lambda view: view.get(kind, ids)) if ids else {}

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]:
        return self._reading(lambda view: view.find(kind, where, limit, after))

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return self._reading(lambda view: view.count(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return self._reading(lambda view: view.ids(kind, where))

    def changes(self, partition: str, since: str | None = None) -> Changes:
        return self._reading(lambda view: view.moved(partition, since))

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        return self._reading(lambda view: view.nearest(kind, vector, where, limit))

    def matching(self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        return self._reading(lambda view: view.matching(tokens, visible, where, limit))

    def has_deleted_bytes(self) -> bool:
        """Return whether bytes of deleted rows are still in the files."""
        return self._reading(lambda view: view.unfreed)

    def _write_directly(self, view: View, change: Change) -> None:
        """Write a large change into the tables at once. The state commits it, so it needs no journal."""
        self._view = None  # to be read again, also if this fails
        view.replay(change)
        self._flush(view)

    def _flush_if_possible(self, view: View) -> None:
        """Flush; if it fails, try again when there is more to flush. The change itself is durable."""
        try:
            self._flush(view)
            self._flush_at = self._flush_rows
        except (StoreError, Superseded, OSError):
            self._flush_at = 2 * view.size


def _decided(view: View, puts: Sequence[Row], deletes: Sequence[Key]) -> Change:
    """Return the change that these puts and deletes are, or raise `Conflict`."""
    stored = view.stored([*deletes, *(row.key for row in puts)])
    gone = [key for key in deletes if key in stored]
    moves: defaultdict[str, list[Key]] = defaultdict(list)
    for key in gone:
        if key.kind in MOVING:
            moves[stored[key][0]].append(key)
    for row in puts:
        known = stored.get(row.key)
        if row.replaces == 0 and known:
            raise IdTaken(f"{row.kind} {row.id} already exists")
        if row.replaces and (known is None or known[1] != row.replaces):
            raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")
        for partition in {row.partition, known[0] if known else row.partition} if row.kind in MOVING else ():
            moves[partition].append(row.key)
    return Change(puts, gone, moves, new_nonce(), erases(puts, gone))
