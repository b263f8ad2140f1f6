"""The rows of one partition as arrays.

Each row has a slot. A changed row gets a new slot, and the old one stays dead until everything is
packed into a new base.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, TypeVar, cast

import numpy as np

from memory_mesh.core.errors import StoreCorrupt
from memory_mesh.core.model import (
    Kind,
    Period,
    Reach,
    Reader,
    Row,
    Value,
    Vector,
    millis,
    reach_of,
    visible,
)
from memory_mesh.core.search import completed, tokens
from memory_mesh.core.search.candidates import IndexedRows
from memory_mesh.core.search.lexical import is_question
from memory_mesh.core.search.mentions import addressee, closeness
from memory_mesh.index.arrays import (
    Array,
    Columns,
    Flags,
    GrowingArray,
    Ints,
    Keys,
    Model,
    SessionMembers,
    Texts,
    hash64,
)  # fmt: skip
from memory_mesh.index.space import Space
from memory_mesh.index.words import Postings, Vocabulary

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)

MISSING = -(2**62)  # an unknown turn or time
_MAX_READERS = 256
_NAME_CODES = 2**32 - 1
# A time of this form is what `iso` writes, which takes longer than looking at it.
_USUAL_TIME = re.compile(r"\d{4}-\d\d-\d\dT(?!24)\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)

# One entry per slot.
_COLUMNS: Mapping[str, type] = {
    "key": np.uint64,
    "owner": np.int32,  # the slot itself; of a passage its memory, -1 if that is missing
    "length": np.int32,  # number of keywords
    "scope": np.int32,
    "session": np.int32,  # -1: none
    "turn": np.int64,
    "event": np.int64,
    "created": np.int64,
    "number": np.int64,
    "expires": np.float64,
    "begins": np.float64,  # its validity; infinite without a bound
    "ends": np.float64,
    "question": np.bool_,
    "speaker": np.int32,  # -1: none
    "addressee": np.uint32,  # the code of the name that it greets or thanks; 0: none
}
# Further columns that filters often name. One code per slot for each; -1: none.
FACETS = (
    "agent_id",
    "category",
    "project",
    "importance",
    "confidence",
    "trust",
    "pinned",
    "tags",
    "entities",
)
_EMPTY: Columns = {name: np.zeros(0, dtype) for name, dtype in _COLUMNS.items()} | {
    "id_bytes": np.zeros(0, np.uint8), "id_ends": np.zeros(0, np.int64),
    "keys": np.zeros(0, np.uint64), "key_slots": np.zeros(0, np.int32),
    "word_keys": np.zeros(0, np.uint64), "word_ends": np.zeros(0, np.int64),
    "word_slots": np.zeros(0, np.int32), "word_times": np.zeros(0, np.uint16),
    "word_letters": np.zeros(0, np.uint8), "word_lengths": np.zeros(0, np.uint8),
    "passage_slots": np.zeros(0, np.int32), "passage_refs": np.zeros(0, np.uint64),
    "facets": np.zeros((0, len(FACETS)), np.int32),
}  # fmt: skip


# --- rows ---


class Scope(NamedTuple):
    """The fields that decide who sees a row, and its status. Fields that do not decide are None,
    so that scopes are few."""

    user_id: str | None
    agent_id: str | None
    memory_type: str | None
    reach: str | None
    session_id: str | None
    status: str | None

    @classmethod
    def of(cls, row: Row) -> "Scope":
        return cls(*(_text(row, name) for name in cls._fields)).decisive

    @property
    def decisive(self) -> "Scope":
        """The same without the fields that do not decide."""
        reach = reach_of(self.memory_type, self.reach)
        return self._replace(
            session_id=self.session_id if reach is Reach.SESSION else None,
            agent_id=None if reach is Reach.GLOBAL else self.agent_id,
        )

    def visible_to(self, reader: Reader) -> bool:
        """Return what `core.model.visible` returns for a row of this scope."""
        fields = {name: value for name, value in self._asdict().items() if value is not None}
        return visible(
            reader, Row(kind=Kind.MEMORY, id="", partition="", created_at="", fields=fields)
        )


def _text(row: Row, name: str) -> str | None:
    value = row.value(name)
    return value if isinstance(value, str) else None


def time_of(text: str | None) -> int:
    """Return milliseconds; MISSING if the text is not a time."""
    try:
        return MISSING if text is None else millis(text)
    except StoreCorrupt:
        return MISSING


def _each(values: Iterable[H], of: Callable[[H], T]) -> list[T]:
    """Return what a function returns for each value. It is called once for equal ones: most rows
    have the sessions, speakers and times of others."""
    listed = list(values)
    results = {value: of(value) for value in dict.fromkeys(listed)}
    return [results[value] for value in listed]


def _bounds(texts: Iterable[str | None], missing: float) -> list[float]:
    return _each(texts, lambda text: missing if (ms := time_of(text)) == MISSING else ms)


def _lists(values: Iterable[Value]) -> Iterator[list[str]]:
    return (cast("list[str]", value) if isinstance(value, list) else [] for value in values)


def _hashable(value: Value) -> Hashable:
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def _renumbered(codes: Ints) -> tuple[Ints, Ints]:
    """Return the codes in use, and the place of each code among them; -1 stays -1."""
    used, places = np.unique(codes, return_inverse=True)
    negative = np.count_nonzero(used < 0)
    return used[negative:], (places - negative).astype(np.int32)


def name_code(name: str) -> int:
    """Return a number for the token of a name; not 0."""
    return hash64(name) % _NAME_CODES + 1


def _keys_of(kind: Kind, ids: Iterable[str]) -> list[int]:
    return [hash64(f"{kind}\0{id_}") for id_ in ids]


# --- the table ---


@dataclass(frozen=True, slots=True)
class Names:
    """The values that the codes of a table stand for."""

    scopes: list[Scope] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    facets: list[list[Value]] = field(default_factory=lambda: [[] for _ in FACETS])
    # Columns with a text that is not the usual form of its time.
    odd_times: list[str] = field(default_factory=list)


class Table:
    """The slots of a partition."""

    def __init__(
        self, language: str, base: Columns | None = None, names: Names | None = None
    ) -> None:
        self.language = language
        self.names = names or Names()
        base = base or _EMPTY
        self._columns = {
            name: GrowingArray(np.array(base[name], dtype)) for name, dtype in _COLUMNS.items()
        }
        self.base_size = self._columns["key"].size
        self._alive = GrowingArray(np.ones(self.base_size, np.bool_))
        self.dead = 0
        self.ids = Texts(base["id_bytes"], base["id_ends"])
        self._keys = Keys(base["keys"], base["key_slots"])
        self._postings = Postings(base)
        self._codes: dict[object, int] = {}  # of scopes, sessions and speakers, whose types differ
        for values in (self.names.scopes, self.names.sessions, self.names.speakers):
            self._codes |= {value: code for code, value in enumerate(values)}
        self._facets = GrowingArray(np.array(base["facets"], np.int32))
        self._facet_codes = [
            {_hashable(value): code for code, value in enumerate(values)}
            for values in self.names.facets
        ]
        self.speakers_by_word: dict[str, list[int]] = defaultdict(list)  # by keyword of their name
        self._speakers_like: dict[str, Mapping[int, float]] = {}
        self._add_speakers(0)
        self._refs: dict[int, int] = dict(
            zip(base["passage_slots"].tolist(), base["passage_refs"].tolist(), strict=True)
        )
        # By the key of the memory: slots of its passages.
        self._passages: dict[int, list[int]] = defaultdict(list)
        for slot, ref in self._refs.items():
            self._passages[ref].append(slot)
        self.spaces: dict[Model, Space] = {}
        for at, model in enumerate(self.names.models):
            prefix = f"{at}."
            columns = {
                name.removeprefix(prefix): column
                for name, column in base.items()
                if name.startswith(prefix)
            }
            self.spaces[model] = Space(model, columns)
            self.spaces[model].set_owners(self.column("owner"))
        self.members = SessionMembers(self.column("session"), len(self.names.sessions))
        self.expiring: list[int] = np.flatnonzero(np.isfinite(self.column("expires"))).tolist()
        # Slots whose validity begins or ends.
        self.bounded = np.flatnonzero(self._is_bounded(slice(None))).astype(np.int32)
        # By scope: living memories, those with keywords, and the number of their keywords.
        self.by_scope = GrowingArray(np.zeros((len(self.names.scopes), 3), np.int64))
        self.memories = 0  # living ones
        self._scopes_of_session: dict[str | None, list[int]] = defaultdict(list)
        self._visible_scopes: dict[Reader, tuple[int, ...]] = {}
        self._add_scopes(0)
        self._count(np.delete(np.arange(len(self)), list(self._refs)), 1)

    def __len__(self) -> int:
        return self._alive.size

    @property
    def alive(self) -> Flags:
        return self._alive.values

    @property
    def unpacked(self) -> int:
        """The number of slots added or dead since the base was packed."""
        return len(self) - self.base_size + self.dead

    def column(self, name: str) -> Array:
        return self._columns[name].values

    def coded(self, column: str) -> tuple[Ints, Sequence[Value]] | None:
        """Return the codes of a column by slot, -1 for none, and the value of each code; None if
        the table lacks the column."""
        if column in FACETS:
            at = FACETS.index(column)
            return self._facets.values[:, at], self.names.facets[at]
        # The fields of a scope that are never left out.
        if column in ("user_id", "memory_type", "reach", "status"):
            return self.column("scope"), [getattr(scope, column) for scope in self.names.scopes]
        return (self.column("speaker"), self.names.speakers) if column == "speaker" else None

    def session_code(self, session_id: str) -> int:
        """Return the code of a session; -1: unknown."""
        return self._codes.get(hash64(session_id), -1)

    def slots_of(self, kind: Kind, ids: Iterable[str]) -> Ints:
        """Return the slots of those rows that exist."""
        slots = self._keys.places(_keys_of(kind, ids))
        return slots[slots >= 0]

    def visible_scopes(self, reader: Reader) -> tuple[int, ...]:
        """Return the codes of the scopes that the reader sees. Only scopes of its own session
        and of none are looked at."""
        if (visible := self._visible_scopes.get(reader)) is None:
            if len(self._visible_scopes) >= _MAX_READERS:
                self._visible_scopes.clear()
            own = (
                self._scopes_of_session.get(reader.session_id, [])
                if reader.session_id is not None
                else []
            )
            codes = [*self._scopes_of_session.get(None, []), *own]
            visible = self._visible_scopes[reader] = tuple(
                code for code in codes if self.names.scopes[code].visible_to(reader)
            )
        return visible

    def not_valid(self, periods: Sequence[Period]) -> Ints:
        """Return the slots of the memories that are valid in none of these periods; without
        periods, none."""
        slots = self.bounded if periods else self.bounded[:0]
        begins, ends = self.column("begins")[slots], self.column("ends")[slots]
        hidden = np.ones(len(slots), np.bool_)
        for first, last in periods:
            hidden &= (begins > millis(last)) | (ends < millis(first))
        return slots[hidden]

    def next_valid(self, now: float, readable: Flags) -> float:
        """Return when the next of the readable memories becomes valid; infinite: none does."""
        begins = self.column("begins")[self.bounded[readable[self.bounded]]]
        return float(begins[begins > now].min(initial=inf))

    def _is_bounded(self, slots: Ints | slice) -> Flags:
        return np.isfinite(self.column("begins")[slots]) | np.isfinite(self.column("ends")[slots])

    def postings(self, word: str) -> tuple[Ints, Array]:
        """Return the living memories that contain a keyword, and how often each does."""
        slots, counts = self._postings.of(word)
        if self.dead and len(slots):
            living = self.alive[slots]
            slots, counts = slots[living], counts[living]
        return slots, counts

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of letters, those of dead memories included."""
        return self._postings.vocabulary

    def put(self, kind: Kind, rows: IndexedRows) -> list[int]:
        """Add rows of one kind, replacing those with the same ids. Return the slots that
        changed."""
        ids, contents = (
            [text or "" for text in rows.texts("id")],
            [text or "" for text in rows.texts("content")],
        )
        keys = _keys_of(kind, ids)
        changed, first = self._drop(kind, keys), len(self)
        new = np.arange(first, first + len(keys))
        scopes, speakers = len(self.names.scopes), len(self.names.speakers)
        keywords = [
            completed(words, text, language=self.language)
            for words, text in zip(_lists(rows.columns["keywords"]), contents, strict=True)
        ]
        for name, values in self._values(kind, rows, new, keywords, contents).items():
            self._columns[name].extend(np.asarray(values, _COLUMNS[name]))
        self._columns["key"].extend(np.array(keys, np.uint64))
        facets = [self._facet(at, rows.columns[name]) for at, name in enumerate(FACETS)]
        self._facets.extend(np.array(facets, np.int32).T)
        self._alive.grow(first + len(keys), value=True)
        self.by_scope.grow(len(self.names.scopes), 0)
        self._add_scopes(scopes)
        self._add_speakers(speakers)
        self._add_vectors(first, rows.vectors)
        self.ids.extend(ids)
        slots = new.tolist()
        self._keys.set(zip(keys, slots, strict=True))
        if kind is Kind.MEMORY:
            self._postings.add(slots, keywords)
            self.members.add(self.column("session")[new].tolist(), slots)
            self._count(new, 1)
            for key, slot in zip(keys, slots, strict=True) if self._passages else ():
                for passage in self._passages.get(key, ()):
                    self._set_owner(passage, slot)
        self.expiring += new[np.isfinite(self.column("expires")[new])].tolist()
        if len(bounded := new[self._is_bounded(new)]):
            self.bounded = np.concatenate((self.bounded, bounded), dtype=np.int32)
        return changed + slots

    def drop(self, kind: Kind, ids: Iterable[str]) -> list[int]:
        """Remove the rows of these ids. Return their slots, and those of the passages or the
        memory that belong to them."""
        return self._drop(kind, _keys_of(kind, ids))

    def _drop(self, kind: Kind, keys: Sequence[int]) -> list[int]:
        slots, touched = self._keys.places(keys), list[int]()
        slots = slots[slots >= 0]
        if not len(slots):
            return touched
        self.alive[slots] = False
        self.dead += len(slots)
        for slot, key in zip(slots.tolist(), self.column("key")[slots].tolist(), strict=True):
            self._keys.set([(key, -1)])
            if kind is Kind.PASSAGE:
                self._passages[self._refs.pop(slot)].remove(slot)
                touched += [owner for owner in (int(self.column("owner")[slot]),) if owner >= 0]
            else:
                touched += self._passages.get(key, ())
                for passage in self._passages.get(key, ()):
                    self._set_owner(passage, -1)
            self._set_owner(slot, -1)
        if kind is Kind.MEMORY:
            self._count(slots, -1)
        return [*slots.tolist(), *touched]

    def packed(self) -> tuple[Columns, Names]:
        """Return everything as a new base, without dead slots and unused names."""
        keep = self.alive
        new_slots = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        columns = {name: self.column(name)[keep] for name in _COLUMNS}
        used: dict[str, Array] = {}
        for name in ("scope", "session", "speaker"):
            used[name], columns[name] = _renumbered(columns[name])
        owners = columns["owner"]
        columns["owner"] = np.where(owners >= 0, new_slots.take(owners, mode="clip"), -1).astype(
            np.int32
        )
        columns["id_bytes"], columns["id_ends"] = self.ids.packed(keep)
        columns["facets"], facets = self._packed_facets(keep)
        order = np.argsort(columns["key"], kind="stable")
        columns["keys"], columns["key_slots"] = columns["key"][order], order.astype(np.int32)
        columns |= self._postings.packed(keep, new_slots)
        columns["passage_slots"] = new_slots[np.array(list(self._refs), np.int64)]
        columns["passage_refs"] = np.array(list(self._refs.values()), np.uint64)
        models = [model for model, space in self.spaces.items() if keep[space.slots].any()]
        for at, model in enumerate(models):
            columns |= {
                f"{at}.{name}": column
                for name, column in self.spaces[model].packed(keep, new_slots).items()
            }
        return columns, Names(
            scopes=[self.names.scopes[code] for code in used["scope"]],
            sessions=[self.names.sessions[code] for code in used["session"]],
            speakers=[self.names.speakers[code] for code in used["speaker"]],
            models=models,
            facets=facets,
            odd_times=self.names.odd_times,
        )

    def _packed_facets(self, keep: Flags) -> tuple[Array, list[list[Value]]]:
        codes, kept = self._facets.values[keep], list[list[Value]]()
        for at, values in enumerate(self.names.facets):
            used, codes[:, at] = _renumbered(codes[:, at])
            kept.append([values[code] for code in used.tolist()])
        return codes, kept

    def _values(
        self,
        kind: Kind,
        rows: IndexedRows,
        slots: Ints,
        keywords: Sequence[Sequence[str]],
        contents: Sequence[str],
    ) -> dict[str, Sequence[object] | Array]:
        """Return the values of the columns for new rows, without their keys."""
        owners = slots
        if kind is Kind.PASSAGE:
            refs = _keys_of(Kind.MEMORY, [text or "" for text in rows.texts("ref")])
            owners = self._keys.places(refs)
            for slot, ref in zip(slots.tolist(), refs, strict=True):
                self._refs[slot] = ref
                self._passages[ref].append(slot)
        speakers = rows.texts("speaker")
        scopes = zip(*(rows.texts(name) for name in Scope._fields), strict=True)
        return {
            "owner": owners,
            "length": [len(words) for words in keywords],
            "scope": _each(
                scopes, lambda values: self._code(self.names.scopes, Scope(*values).decisive)
            ),
            "session": _each(
                rows.texts("session_id"),
                lambda text: self._code(
                    self.names.sessions, None if text is None else hash64(text)
                ),
            ),
            "turn": [MISSING if turn is None else turn for turn in rows.columns["turn"]],
            "event": self._times("event_time", rows),
            "created": self._times("created_at", rows),
            "number": rows.columns["number"],
            "expires": _bounds(rows.texts("expires_at"), inf),
            "begins": _bounds(rows.texts("valid_from"), -inf),
            "ends": _bounds(rows.texts("valid_until"), inf),
            "question": [is_question(text) for text in contents],
            "speaker": _each(speakers, lambda text: self._code(self.names.speakers, text)),
            "addressee": [
                self._addressee(text) if speaker else 0
                for text, speaker in zip(contents, speakers, strict=True)
            ],
        }

    def _times(self, column: str, rows: IndexedRows) -> list[int]:
        def time(text: str | None) -> int:
            ms = time_of(text)
            is_usual = text is None or (ms != MISSING and _USUAL_TIME.fullmatch(text))
            if not is_usual and column not in self.names.odd_times:
                self.names.odd_times.append(column)
            return ms

        return _each(rows.texts(column), time)

    def _facet(self, at: int, column: Sequence[Value]) -> list[int]:
        """Return the codes of the values of a facet."""
        values, known = self.names.facets[at], self._facet_codes[at]

        def code(value: Hashable) -> int:
            code = -1 if value is None else known.setdefault(value, len(values))
            if code == len(values):
                values.append(list(value) if isinstance(value, tuple) else value)  # type: ignore[arg-type]
            return code

        has_lists = list in {*map(type, column)}
        return _each(
            map(_hashable, column) if has_lists else cast("Sequence[Hashable]", column), code
        )

    def _addressee(self, content: str) -> int:
        name = addressee(content, language=self.language)
        return name_code(name) if name else 0

    def _add_vectors(self, first: int, added: Sequence[Vector | None]) -> None:
        vectors: dict[Model, dict[int, Vector]] = defaultdict(dict)
        for slot, vector in enumerate(added, start=first):
            if vector:
                vectors[vector.model, vector.dimension][slot] = vector
        for model, own in vectors.items():
            if model not in self.spaces:
                self.spaces[model] = Space(model)
            self.spaces[model].add(own)
            self.spaces[model].set_new_owners(
                np.fromiter(own, np.int32, len(own)), self.column("owner")
            )
        for space in self.spaces.values():
            space.grow(len(self))

    def _add_scopes(self, first: int) -> None:
        for code, scope in enumerate(self.names.scopes[first:], start=first):
            self._scopes_of_session[scope.session_id].append(code)
            self._visible_scopes.clear()

    def add_speaker(self, name: str) -> None:
        """Add the name of a speaker, of whom the table may have no memory."""
        first = len(self.names.speakers)
        self._code(self.names.speakers, name)
        self._add_speakers(first)

    def speakers_like(self, name: str) -> Mapping[int, float]:
        """Return the codes of the speakers whose names are close to a name, and how close;
        hidden ones included."""
        if name not in self._speakers_like:
            if len(self._speakers_like) >= _MAX_READERS:
                self._speakers_like.clear()
            words = {
                word: closeness(name, word, language=self.language)
                for word in self.speakers_by_word
            }
            close = sorted(
                (grade, code)
                for word, grade in words.items()
                if grade
                for code in self.speakers_by_word[word]
            )
            self._speakers_like[name] = {code: grade for grade, code in close}
        return self._speakers_like[name]

    def _add_speakers(self, first: int) -> None:
        for code, speaker in enumerate(self.names.speakers[first:], start=first):
            for word in set(tokens(speaker, language=self.language)):
                self.speakers_by_word[word].append(code)
            self._speakers_like.clear()

    def _count(self, slots: Ints, by: int) -> None:
        """Count memories that are new (`by` is 1) or gone (-1)."""
        lengths = self.column("length")[slots]
        counted = np.stack((np.ones_like(lengths), lengths > 0, lengths), axis=1)
        np.add.at(self.by_scope.values, self.column("scope")[slots], by * counted)
        self.memories += by * len(slots)

    def _set_owner(self, slot: int, owner: int) -> None:
        self.column("owner")[slot] = owner
        for space in self.spaces.values():
            space.set_owner(slot, owner)

    def _code(self, values: list[T], value: T | None) -> int:
        """Return the code of a value, a new one if needed; -1 for None."""
        if value is None:
            return -1
        code = self._codes.setdefault(value, len(values))
        if code == len(values):
            values.append(value)
        return code
