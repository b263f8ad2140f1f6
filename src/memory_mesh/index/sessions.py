"""Which memories make up a session, and which comes before which."""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from memory_mesh.index.arrays import Array, Ints
from memory_mesh.index.rows import MISSING


class Members:
    """The slots of each session: grouped for what is in the base, lists for what came later."""

    def __init__(self, sessions: Array, count: int) -> None:
        order = np.argsort(sessions, kind="stable").astype(np.int32)
        self._order = order[np.count_nonzero(sessions < 0) :]
        self._starts = np.searchsorted(sessions[self._order], np.arange(count + 1))
        self._later: dict[int, list[int]] = defaultdict(list)

    def add(self, session: int, slot: int) -> None:
        if session >= 0:
            self._later[session].append(slot)

    def of(self, sessions: Ints) -> tuple[Ints, Ints]:
        """The slots of these sessions, dead ones too, and for each the place of its session among those asked."""
        last = len(self._starts) - 1
        first = self._starts[np.minimum(sessions, last)]
        counts = self._starts[np.minimum(sessions + 1, last)] - first
        groups = np.repeat(np.arange(len(sessions), dtype=np.int32), counts)
        slots = self._order[np.arange(len(groups)) + np.repeat(first - (np.cumsum(counts) - counts), counts)]
        if self._later:
            added = [(slot, at) for at, code in enumerate(sessions.tolist()) for slot in self._later.get(code, ())]
            if added:
                more = np.array(added, np.int32)
                slots, groups = np.concatenate((slots, more[:, 0])), np.concatenate((groups, more[:, 1]))
        return slots, groups


def in_order(groups: Ints, column: Callable[[str], Array], id_of: Callable[[int], str]) -> Ints:
    """The places of these memories, session by session, each in its order.

    By turn where every one has a turn, else by the time of the event where every one has that, else by creation. `column` gives
    the values of these memories.
    """
    if not len(groups):
        return np.zeros(0, np.int32)
    turn, event, created, number = (column(name) for name in ("turn", "event", "created", "number"))
    lacks_turn = np.bincount(groups, turn == MISSING)[groups] > 0
    lacks_event = np.bincount(groups, event == MISSING)[groups] > 0
    first = np.where(lacks_turn, np.where(lacks_event, created, event), turn)
    keys = (number, created, first, groups)
    order = np.lexsort(keys)
    alike = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
    if alike.any():  # nearly never: then their ids decide
        named = [(*(int(key[at]) for key in reversed(keys)), id_of(at), at) for at in order.tolist()]
        order = np.array([each[-1] for each in sorted(named)], np.int64)
    return order.astype(np.int32)
