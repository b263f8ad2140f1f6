"""The signals of `core.pool`, for the candidates of one partition."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from memory_mesh.core.pool import SIGNALS, Signal
from memory_mesh.stores.index_arrays import Array, Flags, Floats, Ints
from memory_mesh.stores.index_keywords import Held, Scale, named
from memory_mesh.stores.index_likeness import Likeness
from memory_mesh.stores.index_table import Table
from memory_mesh.stores.index_view import View


@dataclass(frozen=True, slots=True)
class Side:
    """One partition under a query."""

    table: Table
    view: View
    allowed: Flags | None  # by slot, what the caller's filter leaves of the readable; None: all of it
    held: Held
    likeness: Likeness | None  # None: no vector was asked with, or none of its model is here

    @property
    def candidates(self) -> Flags:
        return self.view.readable if self.allowed is None else self.allowed


@dataclass(frozen=True, slots=True)
class Picked:
    """Candidates of a partition, with their neighbours and sessions. Places count within `near`; its end is a memory without
    words or vectors, the neighbour of those that have none."""

    slots: Ints
    near: Ints  # the candidates and their neighbours, ascending
    own: Ints
    before: Ints
    behind: Ints
    before_slots: Ints
    behind_slots: Ints
    sessions: Ints  # codes, each once
    place: Ints  # by session: where among them it is; -1: nowhere
    session: Ints  # of each candidate, among them; their end: none

    @classmethod
    def of(cls, side: Side, slots: Ints) -> "Picked":
        before, behind = side.view.neighbours(slots)
        near = np.unique(np.concatenate((slots, before, behind)))
        near = near[near >= 0]
        codes = side.table.column("session")[slots]
        sessions = np.unique(codes[codes >= 0])
        place = np.full(len(side.table.names.sessions), -1, np.int32)
        place[sessions] = np.arange(len(sessions))
        session = np.where(codes >= 0, place.take(codes, mode="clip"), len(sessions)) if len(place) else np.zeros_like(codes)

        def within(which: Ints) -> Ints:
            return np.where(which >= 0, np.searchsorted(near, which), len(near))

        return cls(slots, near, within(slots), within(before), within(behind), before, behind, sessions, place, session)


def keyword_signals(side: Side, picked: Picked, scale: Scale) -> dict[str, Signal]:
    """By the words of the memory and its neighbours."""
    times = _with_none(side.held.times(picked.near))
    lengths = _with_none(side.table.column("length")[picked.near])
    scores = scale.scores(times, lengths)
    joined, length, parts = (_joined(values, picked) for values in (times, lengths, lengths > 0))
    return {
        "keywords": scores[picked.own],
        "keywords_before": scores[picked.before],
        "keywords_behind": scores[picked.behind],
        "keywords_context": scale.scores(joined, length, np.maximum(parts, 1)),
        "coverage": scale.coverage(times[picked.own]),
        "coverage_context": scale.coverage(joined),
        "length": lengths[picked.own].astype(np.float32),
    }


def session_signal(side: Side, picked: Picked, times: Floats, scale: Scale) -> Signal:
    """By the words of the whole session."""
    lengths = side.view.session_lengths[picked.sessions]
    return _with_none(scale.scores(times, lengths))[picked.session]


def vector_signals(side: Side, picked: Picked) -> dict[str, Signal]:
    """By vectors."""
    likeness = side.likeness
    if likeness is None:
        return {name: np.zeros(len(picked.slots), np.float32) for name in SIGNALS if name.startswith("vectors")}
    best = _with_none(likeness.of(picked.near))
    own = _with_none(likeness.own(picked.near)) if likeness.has_passages else best
    length = likeness.length(picked.slots, picked.before_slots, picked.behind_slots)
    mixed = own[picked.own] + (own[picked.before] + own[picked.behind]) / 2
    sessions = likeness.of_sessions(picked.sessions, picked.place)
    sessions = _with_none(np.where(np.isfinite(sessions), sessions, np.float32(0)))
    return {
        "vectors": best[picked.own],
        "vectors_before": best[picked.before],
        "vectors_behind": best[picked.behind],
        "vectors_context": np.divide(mixed, length, out=np.zeros_like(mixed), where=length > _TINY),
        "vectors_session": sessions[picked.session],
    }


def plain_signals(side: Side, picked: Picked, words: Mapping[str, int]) -> dict[str, Signal]:
    """By who speaks, and how."""
    table = side.table
    question = _with_none(table.column("question")[picked.near].astype(np.float32))
    speakers = table.column("speaker")[picked.slots]
    marks = named(table.called, list(words), len(table.names.speakers))
    return {
        "question": question[picked.own],
        "question_before": question[picked.before],
        "speaker": marks[speakers].astype(np.float32),
        "speaker_known": (speakers >= 0).astype(np.float32),
    }


_TINY = 1e-3  # two neighbours may cancel a memory out but for rounding


def _with_none(values: Array) -> Array:
    """With a row of zeros behind them, for whoever has no such thing."""
    return np.concatenate((values, np.zeros((1, *values.shape[1:]), values.dtype)))


def _joined(values: Array, picked: Picked) -> Array:
    wide = values.astype(np.float32)
    return wide[picked.own] + wide[picked.before] + wide[picked.behind]
