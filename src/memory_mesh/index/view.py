"""What one reader can see of a partition: its statistics, filters, corrections and speakers.

The statistics of keywords are counted by scope (agent or session, with a status) and added up for
the scopes that a reader sees. So no score changes with a memory that the reader cannot see.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeAlias

import numpy as np

from memory_mesh.core.model import (
    And,
    Anything,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Reader,
    Row,
    Value,
    Where,
    iso,
    millis,
)
from memory_mesh.core.search import Corpus, Query
from memory_mesh.core.search.lexical import hidden_stems
from memory_mesh.core.search.mentions import NICKNAME
from memory_mesh.index.arrays import Array, Flags, Floats, GrowingArray, Ints, Model, distinct
from memory_mesh.index.space import Space
from memory_mesh.index.table import MISSING, Table, name_code

# --- views ---

_MAX_NAMES = 256
# The columns that order the memories of a session.
ORDERED_BY = ("turn", "event", "created", "number")
OWN = 2  # the row of the memories themselves in the result of `View.around`


class VisibleVectors:
    """The vectors of a space that belong to the readable memories of a view."""

    def __init__(self, space: Space, readable: Flags, session_of: Ints) -> None:
        self.space = space
        self._rows = GrowingArray(np.zeros(0, np.bool_))
        self._memories = GrowingArray(np.zeros(0, np.bool_))
        # By slot: the length of ½ · previous + own + ½ · next; NaN: not computed yet.
        self._context_lengths = GrowingArray(np.zeros(0, np.float32))
        self._sessions = GrowingArray(np.zeros(0, np.int32))
        self.count, self.memory_count = 0, 0
        self._runs: tuple[Ints, Ints] | None = None
        self._set(np.arange(len(space)), np.arange(len(readable)), readable, session_of)

    @property
    def rows(self) -> Flags:
        """By row: whether the vector belongs to a readable memory."""
        return self._rows.values

    @property
    def memories(self) -> Flags:
        """By slot: whether it is a readable memory with a vector."""
        return self._memories.values

    @property
    def context_lengths(self) -> Floats:
        return self._context_lengths.values

    @property
    def sessions(self) -> Ints:
        """By row: the session of the readable memory; -1: none."""
        return self._sessions.values

    @property
    def runs(self) -> tuple[Ints, Ints]:
        """The first row of each run of rows of one session, and the session of each run; -1:
        none."""
        if self._runs is None:
            starts = np.concatenate(
                ([0], (self.sessions[1:] != self.sessions[:-1]).nonzero()[0] + 1)
            )
            self._runs = starts, self.sessions[starts]
        return self._runs

    def update(self, slots: Ints, readable: Flags, session_of: Ints) -> None:
        """Look at the vectors of these slots again; `readable` and `session_of` are by slot."""
        space = self.space
        rows = space.rows[slots]
        passages = [row for slot in slots.tolist() for row in space.passages.get(slot, ())]
        rows = distinct(rows[rows >= 0], np.array(passages, np.int32))
        owners = space.owners[rows]
        self._set(rows, distinct(slots, owners[owners >= 0]), readable, session_of)

    def _set(self, rows: Ints, slots: Ints, readable: Flags, session_of: Ints) -> None:
        space = self.space
        self._rows.grow(len(space), value=False)
        self._memories.grow(len(readable), value=False)
        self._context_lengths.grow(len(readable), np.nan)
        owners = space.owners[rows]
        seen = (owners >= 0) & readable.take(owners, mode="clip")
        self._sessions.grow(len(space), -1)
        self._runs = None
        self.sessions[rows] = np.where(seen, session_of.take(owners, mode="clip"), -1)
        self.count += int(np.count_nonzero(seen)) - int(np.count_nonzero(self.rows[rows]))
        self.rows[rows] = seen
        has_vector = space.rows[slots] >= 0
        if space.passages:
            has_vector |= np.fromiter(
                (slot in space.passages for slot in slots.tolist()), np.bool_, len(slots)
            )
        has_vector &= readable[slots]
        self.memory_count += int(np.count_nonzero(has_vector)) - int(
            np.count_nonzero(self.memories[slots])
        )
        self.memories[slots] = has_vector


class View:
    """The memories of a table that a reader can see, with some statuses, at one moment; and their
    sessions.

    Every signal is computed from a view, so nothing that the reader may not see influences one. A
    view outlives a query and is updated slot by slot, because building it means looking at every
    slot.
    """

    def __init__(self, table: Table, reader: Reader, statuses: frozenset[str], now: float) -> None:
        self._table, self._reader, self._statuses, self._now = table, reader, statuses, now
        self._scopes: tuple[int, ...] = ()  # codes of the visible ones
        # By scope; the second one: and has one of the statuses.
        self._in_scope, self._with_status = np.zeros((2, 0), np.bool_)
        self._visible = GrowingArray(np.zeros(0, np.bool_))  # by slot: in scope, with any status
        self._readable = GrowingArray(np.zeros(0, np.bool_))
        self._codes = GrowingArray(np.zeros(0, np.int32))
        self._around = GrowingArray(np.zeros((0, 5), np.int32))
        self._scratch = GrowingArray(np.zeros(0, np.int32))
        # By session: keywords in its readable memories.
        self.session_lengths = GrowingArray(np.zeros(0, np.int64))
        # By session: whether its part of `_around` is known.
        self._linked = GrowingArray(np.zeros(0, np.bool_))
        # In scope, with any status; BM25 scores against those with keywords.
        self.memories, self.corpus = 0, Corpus(0, 0)
        self.documents = 0  # readable memories
        self.excluded: dict[str, int] = {}  # by reason: memories in scope that are not readable
        self._alone = Corpus(0, 0)  # memories without a session, each a session by itself
        self.sessions = Corpus(0, 0)
        self._slot_of_speaker: dict[int, int] = {}  # by code: a memory, which was readable
        self._addressed: dict[str, list[int]] = {}  # by name, since the last update
        self._vectors: dict[Model, VisibleVectors] = {}
        self.update(np.arange(len(table)))

    @property
    def readable(self) -> Flags:
        """By slot."""
        return self._readable.values

    @property
    def session_codes(self) -> Ints:
        """By slot: the session of a readable memory; -1: it has none, -2: the slot is not
        readable."""
        return self._codes.values

    @property
    def scratch(self) -> Ints:
        """An array for one query at a time, which leaves -1 everywhere: by slot, with one more
        place at the end."""
        return self._scratch.values

    @property
    def has_memories_alone(self) -> bool:
        """Whether some readable memory with keywords has no session."""
        return self._alone.documents > 0

    def serves(self, reader: Reader, statuses: frozenset[str]) -> bool:
        """Return whether a reader sees exactly the same with these statuses."""
        return self._statuses == statuses and self._table.visible_scopes(
            self._reader
        ) == self._table.visible_scopes(reader)

    def postings(self, word: str) -> tuple[Ints, Array]:
        """Return the memories in the reader's scope that contain a keyword, and how often each
        does."""
        slots, counts = self._table.postings(word)
        if self.memories < self._table.memories and len(slots):
            seen = self._visible.values[slots]
            slots, counts = slots[seen], counts[seen]
        return slots, counts

    def count(self, word: str) -> int:
        """Return how many readable memories contain a keyword."""
        return int(np.count_nonzero(self.readable[self._table.postings(word)[0]]))

    def neighbours(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return the readable memory before and after each of these readable ones in its
        session; -1: none."""
        before, after, *_ = self.around(slots)
        return before, after

    def around(self, slots: Ints) -> Ints:
        """Return the previous and the next of each of these readable memories in its session, in
        row `OWN` the memories themselves, then the ones before the previous and after the next;
        -1: none."""
        codes = self.session_codes.take(slots)
        linked = self._linked.values.take(codes)
        if not linked.all():
            self._link(distinct(codes[~linked]))
        # As the type of indexes: numpy would convert any other for each use.
        return self._around.values.take(slots, axis=0).T.astype(np.intp, order="C")

    def set_around(self, around: Ints) -> None:
        """Set the neighbours of all memories, by slot, in the columns of `around`: the table has
        parts of sessions only."""
        self._around.values[:] = around
        self._linked.values[:] = True

    def has_speaker(self, code: int) -> bool:
        """Return whether a readable memory has this speaker."""
        slot = self._slot_of_speaker.get(code)
        if slot is not None and self.readable[slot]:
            return True
        spoken = (self._table.column("speaker") == code) & self.readable
        if found := bool(spoken.any()):
            self._slot_of_speaker[code] = int(spoken.argmax())
        return found

    def addressed(self, name: str) -> list[int]:
        """Return the codes of the speakers that readable memories address by a name: of each
        session the one who spoke before."""
        if name not in self._addressed:
            if len(self._addressed) >= _MAX_NAMES:
                self._addressed.clear()
            self._addressed[name] = self._find_addressed(name)
        return self._addressed[name]

    def _find_addressed(self, name: str) -> list[int]:
        table = self._table
        slots = ((table.column("addressee") == name_code(name)) & self.readable).nonzero()[0]
        if not len(slots):
            return []
        speakers, (before, after) = table.column("speaker"), self.neighbours(slots)
        own, partners = speakers[slots], np.where(before >= 0, speakers[before], -1)
        partners = np.where(
            (partners >= 0) & (partners != own), partners, np.where(after >= 0, speakers[after], -1)
        )
        codes, votes = np.unique(partners[(partners >= 0) & (partners != own)], return_counts=True)
        # The one that most of them address.
        return [int(code) for code in codes[votes * 2 > votes.sum()]]

    def vectors(self, space: Space) -> VisibleVectors:
        """Return the readable part of a space of this table."""
        if space.model not in self._vectors:
            self._vectors[space.model] = VisibleVectors(
                space, self.readable, self._table.column("session")
            )
        return self._vectors[space.model]

    def move_to(self, now: float) -> None:
        """Set the time, and update the slots whose memories expire between the old and the new
        time."""
        before, self._now = self._now, now
        if self._table.expiring:
            slots = np.array(self._table.expiring, np.int32)
            ends = self._table.column("expires")[slots]
            slots = slots[(ends <= now) != (ends <= before)]
            if len(slots):
                self.update(slots)

    def update(self, changed: Sequence[int] | Array) -> None:
        """Decide again whether these slots, each given once, are readable: they are new, dead or
        expired."""
        table, slots = self._table, np.asarray(changed)
        everything = slots
        self._addressed.clear()
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
        self.memories, with_keywords, length = (
            table.by_scope.values[list(self._scopes)].sum(axis=0).tolist()
        )
        with_status = int(table.by_scope.values[self._with_status, 0].sum())
        self.excluded = {
            "status": self.memories - with_status,
            "expired": with_status - self.documents,
        }
        self.corpus = Corpus(with_keywords, length)
        sessions, lengths = table.column("session")[slots], change * table.column("length")[slots]
        self.session_codes[slots] = np.where(readable, sessions, -2)
        moved = (sessions >= 0) & (change != 0)
        np.add.at(self.session_lengths.values, sessions[moved], lengths[moved])
        self._linked.values[sessions[moved]] = False
        alone = (sessions < 0) & (lengths != 0)
        self._alone += Corpus(int(change[alone].sum()), int(lengths[alone].sum()))
        together = self.session_lengths.values
        self.sessions = self._alone + Corpus(int(np.count_nonzero(together)), int(together.sum()))
        for vectors in self._vectors.values():
            vectors.update(everything, self.readable, table.column("session"))

    def _grow(self) -> None:
        names, slots = self._table.names, len(self._table)
        if len(names.scopes) > len(self._in_scope):
            self._scopes = self._table.visible_scopes(self._reader)
            self._in_scope, self._with_status = np.zeros((2, len(names.scopes)), np.bool_)
            self._in_scope[list(self._scopes)] = True
            self._with_status[
                [code for code in self._scopes if names.scopes[code].status in self._statuses]
            ] = True
        self._visible.grow(slots, value=False)
        self._readable.grow(slots, value=False)
        self._codes.grow(slots, -2)
        self._scratch.grow(slots + 1, -1)
        known = self._around.size
        self._around.grow(slots, -1)
        self._around.values[known:, OWN] = np.arange(known, slots)
        self.session_lengths.grow(len(names.sessions), 0)
        self._linked.values[-1:] = False
        self._linked.grow(len(names.sessions) + 1, value=False)
        self._linked.values[-1] = True  # of memories without a session

    def _link(self, sessions: Ints) -> None:
        slots, groups = self._table.members.of(sessions)
        readable = self.readable[slots]
        slots, groups = slots[readable], groups[readable]
        columns = [self._table.column(name)[slots] for name in ORDERED_BY]
        order = session_order(groups, columns, lambda order: self._table.ids.at(slots[order]))
        slots, groups = slots[order], groups[order]
        around = np.full((len(slots), 5), -1, np.int32)
        around[:, OWN] = slots
        for steps, column in ((1, 0), (2, OWN + 1)):
            together = groups[steps:] == groups[:-steps]
            around[steps:, column] = np.where(together, slots[:-steps], -1)
            around[:-steps, column + 1] = np.where(together, slots[steps:], -1)
        self._around.values[slots] = around
        self._linked.values[sessions] = True
        for vectors in self._vectors.values():
            vectors.context_lengths[slots] = np.nan


def session_order(
    groups: Ints, columns: Sequence[Ints], ids_at: Callable[[Ints], Sequence[str]]
) -> Ints:
    """Return the order of some memories, session by session.

    `groups` has the session of each, `columns` the columns that `ORDERED_BY` names, and `ids_at`
    returns the ids at places. Within a session by turn if every memory has one, else by the time of
    the event if every one has that, else by creation.
    """
    turn, event, created, number = columns
    lacks_turn = np.bincount(groups, turn == MISSING)[groups] > 0
    lacks_event = np.bincount(groups, event == MISSING)[groups] > 0
    first = np.where(lacks_turn, np.where(lacks_event, created, event), turn)
    keys = (number, created, first, groups)
    order = np.lexsort(keys)
    equal = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
    if equal.any():  # rare: then the ids decide
        columns = [key[order].tolist() for key in reversed(keys)]
        named = sorted(zip(*columns, ids_at(order), order.tolist(), strict=True))
        order = np.array([at for *_, at in named], np.int64)
    return order.astype(np.int32)


# --- filters ---
# The filter of a caller is evaluated for every slot of a table, if its columns suffice;
# `Where.matches` defines the result. A truth is 0 (false), 1 (unknown) or 2 (true): AND is the
# minimum, OR the maximum, and NOT is 2 minus the truth. A condition on one column is decided once
# for each different value, by the condition itself.

_FALSE, _UNKNOWN, _TRUE = np.arange(3, dtype=np.int8)
_TIMES = {"created_at": "created", "event_time": "event"}
_ALL_TIMES = range(millis("0001-01-01T00:00:00Z"), millis("9999-12-31T23:59:59.999Z") + 1)


def flags_of(where: Where, table: Table) -> Flags | None:
    """Return by slot whether the memory matches; None if the table lacks a column that the
    filter names."""
    truth = _truth(where, table)
    return None if truth is None else truth == _TRUE


def _truth(where: Where, table: Table) -> Array | None:
    match where:
        case Anything():
            return np.full(len(table), _TRUE, np.int8)
        case Not(part):
            truth = _truth(part, table)
            return None if truth is None else _TRUE - truth
        case And(parts):
            return _joined(np.minimum, _TRUE, (_truth(part, table) for part in parts), len(table))
        case Or(parts):
            return _joined(np.maximum, _FALSE, (_truth(part, table) for part in parts), len(table))
    return _of_column(where, table)


def _joined(
    join: np.ufunc, start: np.int8, truths: Iterable[Array | None], size: int
) -> Array | None:
    joined = np.full(size, start, np.int8)
    for truth in truths:
        if truth is None:
            return None
        join(joined, truth, out=joined)
    return joined


def _of_column(where: Compare | In | Like | IsNull, table: Table) -> Array | None:
    if where.column in _TIMES:
        return (
            None
            if where.column in table.names.odd_times
            else _of_time(where, table.column(_TIMES[where.column]))
        )
    if where.column == "session_id":
        return _of_session(where, table)
    if (coded := table.coded(where.column)) is None:
        return None
    codes, values = coded
    return _decided(where, values).take(codes)  # -1, for no value, is the last place


def _decided(where: Compare | In | Like | IsNull, values: Sequence[Value]) -> Array:
    """Return the truth of a condition for each of these values, and for a missing value."""
    fields: dict[str, Value] = {}
    row = Row(kind=Kind.MEMORY, id="", partition="", created_at="", fields=fields)
    truths = np.empty(len(values) + 1, np.int8)
    for at, value in enumerate((*values, None)):
        fields[where.column] = value
        truth = where.truth(row)
        truths[at] = _UNKNOWN if truth is None else _TRUE if truth else _FALSE
    return truths


def _of_session(where: Compare | In | Like | IsNull, table: Table) -> Array | None:
    """Only equality can be decided: the table has hashes of the ids."""
    match where:
        case Compare(_, "=", str(id_)):
            ids: tuple[object, ...] = (id_,)
        case In(_, ids):
            pass
        case IsNull():
            ids = ()
        case _:
            return None
    codes = [table.session_code(id_) for id_ in ids if isinstance(id_, str)]
    truths = np.zeros(len(table.names.sessions) + 1, np.int8)
    truths[-1] = _TRUE if isinstance(where, IsNull) else _UNKNOWN if ids else _FALSE
    if not all(isinstance(id_, str) for id_ in ids):
        truths[:-1] = _UNKNOWN
    truths[[code for code in codes if code >= 0]] = _TRUE
    return truths.take(table.column("session"))


def _of_time(where: Compare | In | Like | IsNull, times: Ints) -> Array | None:
    """The texts of times sort as the times do, so a comparison of texts is one of numbers."""
    missing = times == MISSING
    match where:
        case IsNull():
            return np.where(missing, _TRUE, _FALSE)
        case Compare(_, op, str(text)):
            first, last = (
                _ALL_TIMES[0] + find(_ALL_TIMES, text, key=iso)
                for find in (bisect_left, bisect_right)
            )
            earlier, later = times < first, times >= last
            holds = {
                "<": earlier,
                "<=": ~later,
                ">": later,
                ">=": ~earlier,
                "=": ~(earlier | later),
                "<>": earlier | later,
            }[op]
            return np.where(missing, _UNKNOWN, np.where(holds, _TRUE, _FALSE))
        case Compare():  # a time is a text, and compares with texts only
            return np.full(len(times), _UNKNOWN, np.int8)
        case In(column, values):
            return _joined(
                np.maximum,
                _FALSE,
                (_of_time(Compare(column, "=", value), times) for value in values),
                len(times),
            )
    return None


# --- corrections and speakers ---

Views: TypeAlias = Sequence[tuple[Table, View]]  # of each partition

MAX_UNKNOWN = 16  # words and names of a query that are looked up: a long text as a query has many
CORRECTED = 0.8  # the weight of a word that is one edit away from the word of the query


class Words(Protocol):
    """The words of all readable memories.

    **near** returns words that are one likely typo away, of which some may be in none of them.
    **count** returns the number of memories that contain a word.
    """

    def near(self, word: str) -> Collection[str]: ...
    def count(self, word: str) -> int: ...
    @property
    def language(self) -> str: ...


class ViewWords:
    """The words of views."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def near(self, word: str) -> set[str]:
        return {other for table, _ in self._views for other in table.vocabulary.near(word)}

    def count(self, word: str) -> int:
        return sum(view.count(word) for _, view in self._views)

    @property
    def language(self) -> str:
        return self._views[0][0].language


def find_corrections(
    unknown: Iterable[str], known: Words, is_word: Callable[[str], bool]
) -> dict[str, str]:
    """Return the most frequent of the readable memories' words that each misspelt word may stand
    for."""
    corrections: dict[str, str] = {}
    for word in islice(unknown, MAX_UNKNOWN):
        found = _most_frequent(known.near(word), known) or _most_frequent(
            hidden_stems(word, language=known.language), known
        )
        if found and not is_word(word):
            corrections[word] = found
    return corrections


def _most_frequent(words: Iterable[str], known: Words) -> str | None:
    """Return the word that most readable memories contain; None if they contain none of the
    words."""
    count, word = max(((known.count(word), word) for word in words), default=(0, ""))
    return word if count else None


def with_corrections(
    words: Mapping[str, float], corrections: Mapping[str, str]
) -> dict[str, float]:
    """Replace the misspelt words of a query, given with their counts; a correction counts less
    than a word. Of several spellings of one word the most frequent one counts."""
    kept = {word: count for word, count in words.items() if word not in corrections}
    right: dict[str, float] = {}
    for word in words.keys() & corrections.keys():
        weight = CORRECTED * words[word]
        right[corrections[word]] = max(weight, right.get(corrections[word], 0.0))
    return dict(sorted((right | kept).items()))


@dataclass(frozen=True, slots=True)
class People:
    """The people that a query names."""

    # By partition: how surely it names a speaker, by the code of the speaker.
    speakers: Sequence[Mapping[int, float]]
    nicknames: frozenset[str]  # tokens of the query that stand for a speaker of another name
    stranger: float  # see `SIGNALS`

    def names(self, views: Views) -> frozenset[str]:
        """Return the names of the speakers as they are stored, and the nicknames."""
        known = (
            table.names.speakers[code]
            for (table, _), codes in zip(views, self.speakers, strict=True)
            for code in codes
        )
        return self.nicknames.union(known)


def find_people(
    query: Query, views: Views, known: Words, corrections: Mapping[str, str] | None = None
) -> People:
    """Return the people that a query names, among the speakers of readable memories."""
    speakers = [_exact(query.tokens, table, view) for table, view in views]
    if not query.names:
        return People(speakers, frozenset(), 0.0)
    exact = {word for word in query.names for (table, _), codes in zip(views, speakers, strict=True)
             if not codes.keys().isdisjoint(table.speakers_by_word.get(word, ()))}  # fmt: skip
    others = sorted(query.names - exact)[:MAX_UNKNOWN]  # each is compared with all speakers
    nicknames, unknown = set[str](), 0.0
    for name in others:
        is_known, surest = known.count(name) > 0, 0.0
        for (table, view), codes in zip(views, speakers, strict=True):
            close = dict.fromkeys(view.addressed(name), NICKNAME) or (
                {} if is_known else table.speakers_like(name)
            )
            for code, grade in close.items():
                if view.has_speaker(code):
                    codes[code], surest = max(codes.get(code, 0.0), grade), max(surest, grade)
        if surest:
            nicknames.add(name)
        if not is_known:
            unknown += 1 - max(surest, CORRECTED if name in (corrections or {}) else 0.0)
    return People(speakers, frozenset(nicknames), unknown / (len(exact) + len(others) + 1))


def _exact(words: Iterable[str], table: Table, view: View) -> dict[int, float]:
    codes = (code for word in words for code in table.speakers_by_word.get(word, ()))
    return {code: 1.0 for code in codes if view.has_speaker(code)}
