"""What one reader sees of a partition. Nothing that a reader may not see reaches a signal, for all of them are made from this.

A view outlives a query: it follows the few slots that change, for working it out anew means to look at every slot.
"""

from collections.abc import Sequence

import numpy as np

from memory_mesh.core.model.scope import Reader
from memory_mesh.core.search import Corpus
from memory_mesh.index.arrays import Array, Flags, Floats, Grown, Ints, distinct
from memory_mesh.index.sessions import in_order
from memory_mesh.index.table import Table
from memory_mesh.index.vectors import Space


class View:
    """The memories of a table that a reader sees, of some statuses, at a moment; and their sessions."""

    def __init__(self, table: Table, reader: Reader, statuses: frozenset[str], now: float) -> None:
        self.reader, self.statuses = reader, statuses
        self._table, self._now = table, now
        self._scope_seen, self._scope_read = Grown(np.zeros(0, np.bool_)), Grown(np.zeros(0, np.bool_))
        self._readable = Grown(np.zeros(0, np.bool_))
        self._before, self._behind = Grown(np.zeros(0, np.int32)), Grown(np.zeros(0, np.int32))
        self._session_lengths = Grown(np.zeros(0, np.int64))
        self._linked = Grown(np.zeros(0, np.bool_))
        self.documents = 0
        self._alone = Corpus(0, 0)  # a memory without a session is a session of its own
        self.sessions = Corpus(0, 0)
        self._rows_seen: dict[int, Flags] = {}
        self._comparable: dict[int, int] = {}
        self._mixed_lengths: dict[int, Grown] = {}
        self.refresh(np.arange(len(table)))

    # --- questions ---

    @property
    def readable(self) -> Flags:
        """By slot."""
        return self._readable.all

    @property
    def session_lengths(self) -> Array:
        """By session: how many keywords its readable memories hold."""
        return self._session_lengths.all

    def serves(self, reader: Reader, statuses: frozenset[str]) -> bool:
        """Whether another reader sees exactly the same, as long as no new scope comes."""
        scopes = self._table.names.scopes
        same = self.statuses == statuses and len(scopes) == self._scope_seen.size
        return same and self._scope_seen.all.tolist() == [scope.visible_to(reader) for scope in scopes]

    def unseen(self) -> dict[str, int]:
        """How many memories of the reader's scope are left out, by reason."""
        by_scope = self._table.by_scope
        in_scope, read = int(by_scope[self._scope_seen.all].sum()), int(by_scope[self._scope_read.all].sum())
        return {"status": in_scope - read, "expired": read - self.documents}

    def neighbours(self, slots: Ints) -> tuple[Ints, Ints]:
        """The readable memory before and behind each of these readable ones within its session; -1 where there is none."""
        sessions = self._table.column("session")[slots]
        sessions = sessions[sessions >= 0]
        unlinked = sessions[~self._linked.all[sessions]]
        if len(unlinked):
            self._link(distinct(unlinked))
        return self._before.all[slots], self._behind.all[slots]

    def beyond(self, before: Ints, behind: Ints) -> tuple[Ints, Ints]:
        """The neighbours of neighbours, one more step away."""
        return (
            np.where(before >= 0, self._before.all[before], -1),
            np.where(behind >= 0, self._behind.all[behind], -1),
        )

    def speaking(self, codes: Sequence[int]) -> list[str]:
        """Those of some speakers of whom a readable memory is."""
        heard = self._table.column("speaker")
        return [self._table.names.speakers[code] for code in codes if (self.readable & (heard == code)).any()]

    def rows_seen(self, space: Space) -> Flags | None:
        """Which vectors speak for a readable memory; None: all of them."""
        held = self._rows_seen.get(id(space))
        if held is None:
            held = self._rows_seen[id(space)] = rows_of(space, self.readable)
        return None if held.all() else held

    def comparable(self, space: Space) -> int:
        """How many readable memories have a vector of this model."""
        if id(space) not in self._comparable:
            self._comparable[id(space)] = speaking(space, self.readable)
        return self._comparable[id(space)]

    def mixed_lengths(self, space: Space) -> Floats:
        """By slot: how long its vector mixed with its neighbours' is; NaN: not known. Whoever works it out writes it here."""
        held = self._mixed_lengths.setdefault(id(space), Grown(np.empty(0, np.float32)))
        held.fill(len(self._table), np.nan)
        return held.all

    # --- change ---

    def at(self, now: float) -> None:
        """Move to another moment."""
        if now == self._now:
            return
        if self._table.expiring:
            slots = np.array(self._table.expiring, np.int32)
            ends = self._table.column("expires")[slots]
            slots = slots[(ends <= now) != (ends <= self._now)]
            self._now = now
            if len(slots):
                self.refresh(slots)
        self._now = now

    def refresh(self, slots: Array) -> None:
        """Look at these slots again: they are new, or dead, or expired."""
        table = self._table
        self._grow()
        owner, scope = table.column("owner")[slots], table.column("scope")[slots]
        seen = table.alive[slots] & (owner == slots) & self._scope_read.all[scope]
        seen &= table.column("expires")[slots] > self._now
        change = seen.astype(np.int64) - self.readable[slots]
        self.readable[slots] = seen
        self.documents += int(change.sum())
        sessions, lengths = table.column("session")[slots], change * table.column("length")[slots]
        moved = (sessions >= 0) & (change != 0)
        np.add.at(self.session_lengths, sessions[moved], lengths[moved])
        self._linked.all[sessions[moved]] = False
        alone = (sessions < 0) & (lengths != 0)
        self._alone += Corpus(int(change[alone].sum()), int(lengths[alone].sum()))
        together = self.session_lengths
        self.sessions = self._alone + Corpus(int(np.count_nonzero(together)), int(together.sum()))
        self._rows_seen.clear()
        self._comparable.clear()

    def _grow(self) -> None:
        names, slots = self._table.names, len(self._table)
        for scope in names.scopes[self._scope_seen.size :]:
            seen = scope.visible_to(self.reader)
            self._scope_seen.append(seen)
            self._scope_read.append(seen and scope.status in self.statuses)
        self._readable.fill(slots, value=False)
        self._before.fill(slots, -1)
        self._behind.fill(slots, -1)
        self._session_lengths.fill(len(names.sessions), 0)
        self._linked.fill(len(names.sessions), value=False)

    def _link(self, sessions: Ints) -> None:
        slots, groups = self._table.members.of(sessions)
        seen = self.readable[slots]
        slots, groups = slots[seen], groups[seen]
        order = in_order(groups, lambda name: self._table.column(name)[slots], lambda at: self._table.ids[int(slots[at])])
        slots, groups = slots[order], groups[order]
        together = groups[1:] == groups[:-1]
        self._before.all[slots[1:]] = np.where(together, slots[:-1], -1)
        self._before.all[slots[:1]] = -1
        self._behind.all[slots[:-1]] = np.where(together, slots[1:], -1)
        self._behind.all[slots[-1:]] = -1
        self._linked.all[sessions] = True
        for held in self._mixed_lengths.values():
            held.fill(len(self._table), np.nan)
            held.all[slots] = np.nan


def rows_of(space: Space, slots: Flags) -> Flags:
    """Which vectors speak for one of these slots."""
    return (space.owners >= 0) & slots.take(space.owners, mode="clip")


def speaking(space: Space, slots: Flags) -> int:
    """How many of these slots some vector speaks for."""
    held = space.rows >= 0
    held[list(space.further)] = True
    return int(np.count_nonzero(held & slots))
