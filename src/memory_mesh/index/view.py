"""The part of a partition that one reader can see, and its statistics.

The statistics of keywords are counted by scope (agent or session, with a status) and added up for the scopes that a reader sees.
So no score changes with a memory that the reader cannot see.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from memory_mesh.core.model import Reader
from memory_mesh.core.search import Corpus
from memory_mesh.index.arrays import Array, Flags, Floats, GrowingArray, Ints, Model, Space, distinct
from memory_mesh.index.table import MISSING, Table


@dataclass(frozen=True, slots=True)
class VisibleVectors:
    """The vectors of a space that belong to some memories of a view."""

    space: Space
    rows: Ints  # ascending
    memories: int  # the number of those memories
    context_lengths: Floats  # by slot: the length of ½ · previous + own + ½ · next; NaN: not computed yet

    @classmethod
    def of(cls, space: Space, slots: Flags, context_lengths: Floats) -> "VisibleVectors":
        has_vector = space.rows >= 0
        has_vector[list(space.passages)] = True
        memories = int(np.count_nonzero(has_vector & slots))
        owned = (space.owners >= 0) & slots.take(space.owners, mode="clip")
        return cls(space, owned.nonzero()[0], memories, context_lengths)


class View:
    """The memories of a table that a reader can see, with some statuses, at one moment; and their sessions.

    Every signal is computed from a view, so nothing that the reader may not see influences one. A view outlives a query and is
    updated slot by slot, because building it means looking at every slot.
    """

    def __init__(self, table: Table, reader: Reader, statuses: frozenset[str], now: float) -> None:
        self._table, self._reader, self._statuses, self._now = table, reader, statuses, now
        self._scopes: tuple[int, ...] = ()  # codes of the visible ones
        self._in_scope, self._with_status = np.zeros((2, 0), np.bool_)  # by scope; the second one: and has one of the statuses
        self._visible = GrowingArray(np.zeros(0, np.bool_))  # by slot: in scope, with any status
        self._readable = GrowingArray(np.zeros(0, np.bool_))
        self._before, self._after = GrowingArray(np.zeros(0, np.int32)), GrowingArray(np.zeros(0, np.int32))
        self.session_lengths = GrowingArray(np.zeros(0, np.int64))  # by session: keywords in its readable memories
        self._linked = GrowingArray(np.zeros(0, np.bool_))  # by session: whether `_before` and `_after` are known
        self.memories, self.corpus = 0, Corpus(0, 0)  # in scope, with any status; BM25 scores against those with keywords
        self.documents = 0  # readable memories
        self._alone = Corpus(0, 0)  # memories without a session, each a session by itself
        self.sessions = Corpus(0, 0)
        self._vectors: dict[Model, VisibleVectors] = {}
        self._context_lengths: dict[Model, GrowingArray] = {}
        self.update(np.arange(len(table)))

    @property
    def readable(self) -> Flags:
        """By slot."""
        return self._readable.values

    def serves(self, reader: Reader, statuses: frozenset[str]) -> bool:
        """Return whether a reader sees exactly the same with these statuses."""
        return self._statuses == statuses and self._table.visible_scopes(self._reader) == self._table.visible_scopes(reader)

    def postings(self, word: str) -> tuple[Ints, Array]:
        """Return the memories in the reader's scope that contain a keyword, and how often each does."""
        slots, counts = self._table.postings(word)
        if self.memories < self._table.memories and len(slots):
            seen = self._visible.values[slots]
            slots, counts = slots[seen], counts[seen]
        return slots, counts

    def excluded(self) -> dict[str, int]:
        """Return how many memories of the reader's scope are excluded, by reason."""
        with_status = int(self._table.by_scope.values[self._with_status, 0].sum())
        return {"status": self.memories - with_status, "expired": with_status - self.documents}

    def neighbours(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return the readable memory before and after each of these readable ones in its session; -1: none."""
        sessions = self._table.column("session")[slots]
        sessions = sessions[sessions >= 0]
        unlinked = sessions[~self._linked.values[sessions]]
        if len(unlinked):
            self._link(distinct(unlinked))
        return self._before.values[slots], self._after.values[slots]

    def beyond(self, before: Ints, after: Ints) -> tuple[Ints, Ints]:
        """Return the neighbours one step further away."""
        first, last = self._before.values[before], self._after.values[after]
        return np.where(before >= 0, first, -1), np.where(after >= 0, last, -1)

    def speakers(self, words: Iterable[str]) -> list[str]:
        """Return the speakers of readable memories whose names contain one of these keywords."""
        codes = dict.fromkeys(code for word in words for code in self._table.speakers_by_word.get(word, ()))
        column = self._table.column("speaker")
        return [self._table.names.speakers[code] for code in codes if (self.readable & (column == code)).any()]

    def vectors(self, space: Space) -> VisibleVectors:
        """Return the readable part of a space of this table."""
        if space.model not in self._vectors:
            lengths = self._context_lengths.setdefault(space.model, GrowingArray(np.zeros(0, np.float32)))
            lengths.grow(len(self._table), np.nan)
            self._vectors[space.model] = VisibleVectors.of(space, self.readable, lengths.values)
        return self._vectors[space.model]

    def move_to(self, now: float) -> None:
        """Set the time, and update the slots whose memories expire between the old and the new time."""
        before, self._now = self._now, now
        if self._table.expiring:
            slots = np.array(self._table.expiring, np.int32)
            ends = self._table.column("expires")[slots]
            slots = slots[(ends <= now) != (ends <= before)]
            if len(slots):
                self.update(slots)

    def update(self, changed: Sequence[int] | Array) -> None:
        """Decide again whether these slots, each given once, are readable: they are new, dead or expired."""
        table, slots = self._table, np.asarray(changed)
        self._grow()
        in_scope = self._in_scope[table.column("scope")[slots]]
        self._visible.values[slots] = in_scope
        slots = slots[in_scope]  # of a large partition, a session may see a few
        owner, scope = table.column("owner")[slots], table.column("scope")[slots]
        readable = table.alive[slots] & (owner == slots) & self._with_status[scope]
        readable &= table.column("expires")[slots] > self._now
        change = readable.astype(np.int64) - self.readable[slots]
        self.readable[slots] = readable
        self.documents += int(change.sum())
        self.memories, with_keywords, length = table.by_scope.values[list(self._scopes)].sum(axis=0).tolist()
        self.corpus = Corpus(with_keywords, length)
        sessions, lengths = table.column("session")[slots], change * table.column("length")[slots]
        moved = (sessions >= 0) & (change != 0)
        np.add.at(self.session_lengths.values, sessions[moved], lengths[moved])
        self._linked.values[sessions[moved]] = False
        alone = (sessions < 0) & (lengths != 0)
        self._alone += Corpus(int(change[alone].sum()), int(lengths[alone].sum()))
        together = self.session_lengths.values
        self.sessions = self._alone + Corpus(int(np.count_nonzero(together)), int(together.sum()))
        self._vectors.clear()

    def _grow(self) -> None:
        names, slots = self._table.names, len(self._table)
        if len(names.scopes) > len(self._in_scope):
            self._scopes = self._table.visible_scopes(self._reader)
            self._in_scope, self._with_status = np.zeros((2, len(names.scopes)), np.bool_)
            self._in_scope[list(self._scopes)] = True
            self._with_status[[code for code in self._scopes if names.scopes[code].status in self._statuses]] = True
        self._visible.grow(slots, value=False)
        self._readable.grow(slots, value=False)
        self._before.grow(slots, -1)
        self._after.grow(slots, -1)
        self.session_lengths.grow(len(names.sessions), 0)
        self._linked.grow(len(names.sessions), value=False)

    def _link(self, sessions: Ints) -> None:
        slots, groups = self._table.members.of(sessions)
        readable = self.readable[slots]
        slots, groups = slots[readable], groups[readable]
        order = _session_order(self._table, slots, groups)
        slots, groups = slots[order], groups[order]
        together = groups[1:] == groups[:-1]
        self._before.values[slots] = np.concatenate(([-1], np.where(together, slots[:-1], -1)))[: len(slots)]
        self._after.values[slots] = np.concatenate((np.where(together, slots[1:], -1), [-1]))[: len(slots)]
        self._linked.values[sessions] = True
        for lengths in self._context_lengths.values():
            lengths.values[slots[slots < lengths.size]] = np.nan


def _session_order(table: Table, slots: Ints, groups: Ints) -> Ints:
    """Return the order of these slots, session by session.

    Within a session by turn if every memory has one, else by the time of the event if every one has that, else by creation.
    """
    turn, event, created, number = (table.column(name)[slots] for name in ("turn", "event", "created", "number"))
    lacks_turn = np.bincount(groups, turn == MISSING)[groups] > 0
    lacks_event = np.bincount(groups, event == MISSING)[groups] > 0
    first = np.where(lacks_turn, np.where(lacks_event, created, event), turn)
    keys = (number, created, first, groups)
    order = np.lexsort(keys)
    equal = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
    if equal.any():  # rare: then the ids decide
        columns = [key[order].tolist() for key in reversed(keys)]
        named = sorted(zip(*columns, table.ids.at(slots[order]), order.tolist(), strict=True))
        order = np.array([at for *_, at in named], np.int64)
    return order.astype(np.int32)
