"""The signals of `core.search.query`, for the candidates of one partition."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_mesh.core.search import SIGNALS, Query, Signal
from memory_mesh.index.arrays import Array, Flags, Floats, Ints, distinct
from memory_mesh.index.keywords import Held, Scale, named
from memory_mesh.index.rows import MISSING
from memory_mesh.index.similarity import Likeness
from memory_mesh.index.table import Table
from memory_mesh.index.view import View

_CONTEXT = 3  # memories in a context: itself and two neighbours
_TINY = 1e-3  # neighbours may cancel a memory out but for rounding
_DAY = 86_400_000.0  # milliseconds
_FADING = 2.0  # days outside of a named time that divide what it gives by e


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
    """Candidates of a partition, with their neighbours (-1: none) and sessions."""

    slots: Ints
    before: Ints
    behind: Ints
    sessions: Ints  # codes, each once
    place: Ints  # by session: where among them it is; -1: nowhere
    session: Ints  # of each candidate, where among them it is; -1: it has none

    @classmethod
    def of(cls, side: Side, slots: Ints) -> "Picked":
        codes = side.table.column("session")[slots]
        there = codes >= 0
        sessions = distinct(codes[there])
        place = np.full(len(side.table.names.sessions), -1, np.int32)
        place[sessions] = np.arange(len(sessions))
        session = np.full(len(slots), -1, np.int32)
        session[there] = place[codes[there]]
        return cls(slots, *side.view.neighbours(slots), sessions, place, session)


@dataclass(frozen=True, slots=True)
class Read:
    """The candidates, their neighbours and theirs, each once, and how often each holds the words of the query. The last one is
    none of them: it has no words and no vector, and is the neighbour of whoever has none."""

    slots: Ints
    times: Floats
    lengths: Floats
    own: Ints  # where in it each candidate is, and its neighbours, and theirs
    before: Ints
    behind: Ints
    beyond: tuple[Ints, Ints]

    @classmethod
    def of(cls, side: Side, picked: Picked) -> "Read":
        groups = (picked.slots, picked.before, picked.behind, *side.view.beyond(picked.before, picked.behind))
        slots = distinct(*groups)
        slots = slots[slots.searchsorted(0) :]
        place = np.full(len(side.table) + 1, len(slots), np.int32)  # -1, which is no slot, finds the last
        place[slots] = np.arange(len(slots))
        lengths = np.zeros(len(slots) + 1, np.float32)
        lengths[:-1] = side.table.column("length")[slots]
        own, before, behind, *beyond = (place[group] for group in groups)
        return cls(slots, side.held.times(place, len(slots)), lengths, own, before, behind, (beyond[0], beyond[1]))


def keyword_signals(read: Read, scale: Scale) -> dict[str, Signal]:
    """By the words of the memory and its neighbours."""
    times, lengths = read.times, read.lengths
    scores = scale.scores(times, lengths)
    own, *near = (times.take(places, axis=0) for places in (read.own, read.before, read.behind, *read.beyond))
    joined = own + near[0] + near[1]
    length = lengths[read.own] + lengths[read.before] + lengths[read.behind]
    return {
        "keywords": scores[read.own],
        "keywords_before": scores[read.before],
        "keywords_behind": scores[read.behind],
        "keywords_context": scale.scores(joined, length / _CONTEXT),
        "coverage": scale.coverage(own),
        "coverage_context": scale.coverage(joined),
        "coverage_wide": scale.coverage(joined + near[2] + near[3]),
        "length": lengths[read.own],
    }


def session_signal(side: Side, picked: Picked, read: Read, times: Floats, scale: Scale) -> Signal:
    """By the words of the whole session; a memory without one is a session of its own."""
    scores = _with_none(scale.scores(times, side.view.session_lengths[picked.sessions]))[picked.session]
    alone = (picked.session < 0).nonzero()[0]
    if len(alone):
        own = read.own[alone]
        scores[alone] = scale.scores(read.times[own], read.lengths[own])
    return scores


def vector_signals(side: Side, picked: Picked, read: Read) -> dict[str, Signal]:
    """By vectors."""
    likeness = side.likeness
    if likeness is None:
        return {name: np.zeros(len(picked.slots), np.float32) for name in SIGNALS if name.startswith("vectors")}
    best, plain = likeness.of(read.slots, (read.own, read.before, read.behind))
    mixed = plain[read.own] + (plain[read.before] + plain[read.behind]) / 2
    length = likeness.length(picked.slots, picked.before, picked.behind)
    alike = best[read.own]
    sessions = _with_none(likeness.of_sessions(picked.sessions, picked.place))
    return {
        "vectors": alike,
        "vectors_before": best[read.before],
        "vectors_behind": best[read.behind],
        "vectors_context": np.divide(mixed, length, out=np.zeros_like(mixed), where=length > _TINY),
        "vectors_session": np.where(picked.session >= 0, sessions[picked.session], alike),
    }


def plain_signals(asked: Query, side: Side, picked: Picked) -> dict[str, Signal]:
    """By who speaks, and how, and when."""
    table = side.table
    questions = table.column("question")
    speakers = table.column("speaker")[picked.slots]
    marks = named(table.called, asked.tokens, len(table.names.speakers))
    return {
        "question": questions[picked.slots].astype(np.float32),
        "question_before": (questions[picked.before] & (picked.before >= 0)).astype(np.float32),
        "speaker": marks[speakers].astype(np.float32),
        "speaker_known": (speakers >= 0).astype(np.float32),
        "role": _marked(table.names.speakers, asked.roles)[speakers],
        "when": _when(asked.spans, table.column("event")[picked.slots]),
        "when_asked": np.full(len(picked.slots), bool(asked.spans), np.float32),
    }


def _marked(speakers: Sequence[str], meant: frozenset[str]) -> Signal:
    """By speaker: whether it is one of those; and one more for nobody."""
    marks = np.zeros(len(speakers) + 1, np.float32)
    if meant:
        marks[:-1] = [speaker.casefold() in meant for speaker in speakers]
    return marks


def _when(spans: Sequence[tuple[float, float]], events: Array) -> Signal:
    days = events / _DAY
    fits = np.zeros(len(events), np.float32)
    for first, last in spans:
        outside = np.maximum(np.maximum(first - days, days - last), 0)
        fits = np.maximum(fits, np.exp(-outside / _FADING))
    return np.where(events == MISSING, 0, fits).astype(np.float32)


def _with_none(values: Array) -> Array:
    """With a row of zeros behind them, for whoever has no such thing."""
    return np.concatenate((values, np.zeros((1, *values.shape[1:]), values.dtype)))
