"""All that the index knows of a partition: a slot for each row, its keywords, its vectors, its session.

A row that changes gets a new slot, and its old one is dead until all is packed into a new base.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np

from memory_mesh.core.search import tokens
from memory_mesh.index.arrays import Array, Columns, Flags, Grown, Ints, Keys, Texts, recoded, sorted_keys
from memory_mesh.index.rows import Entry, Scope
from memory_mesh.index.sessions import Members
from memory_mesh.index.vectors import Space
from memory_mesh.index.words import Words

Model: TypeAlias = tuple[str, int]
T = TypeVar("T")

# One entry a slot.
_COLUMNS: Mapping[str, type] = {
    "key": np.uint64,
    "owner": np.int32,  # itself; of a passage the memory that it speaks for, -1 where that is not here
    "length": np.int32,  # keywords in it
    "scope": np.int32,
    "session": np.int32,  # -1: none
    "turn": np.int64,
    "event": np.int64,
    "created": np.int64,
    "number": np.int64,
    "expires": np.float64,
    "question": np.bool_,
    "speaker": np.int32,  # -1: none
}
_NOTHING: Columns = {name: np.zeros(0, dtype) for name, dtype in _COLUMNS.items()} | {
    "id_bytes": np.zeros(0, np.uint8), "id_ends": np.zeros(0, np.int64),
    "keys": np.zeros(0, np.uint64), "key_slots": np.zeros(0, np.int32),
    "word_keys": np.zeros(0, np.uint64), "word_ends": np.zeros(0, np.int64),
    "word_slots": np.zeros(0, np.int32), "word_times": np.zeros(0, np.uint16),
    "passage_slots": np.zeros(0, np.int32), "passage_refs": np.zeros(0, np.uint64),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """What the codes of a table stand for."""

    scopes: list[Scope] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)
    speakers: list[str] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)


class Table:
    """The slots of a partition."""

    def __init__(self, language: str, base: Columns | None = None, names: Names | None = None) -> None:
        self._language = language
        self.names = names or Names()
        base = base or _NOTHING
        self._columns = {name: Grown(np.array(base[name], dtype)) for name, dtype in _COLUMNS.items()}
        self.based = self._columns["key"].size
        self._alive = Grown(np.ones(self.based, np.bool_))
        self.dead = 0
        self.ids = Texts(base["id_bytes"], base["id_ends"])
        self._keys = Keys(base["keys"], base["key_slots"])
        self._words = Words(base)
        self._codes: dict[object, int] = {}  # of scopes, sessions and speakers: they are of different types
        for names_ in (self.names.scopes, self.names.sessions, self.names.speakers):
            self._codes |= {name: code for code, name in enumerate(names_)}
        self.called: dict[str, list[int]] = defaultdict(list)  # by keyword: the speakers whose name holds it
        for code, speaker in enumerate(self.names.speakers):
            self._call(code, speaker)
        self._refs: dict[int, int] = dict(zip(base["passage_slots"].tolist(), base["passage_refs"].tolist(), strict=True))
        self._passages: dict[int, list[int]] = defaultdict(list)  # by the key of the memory: slots of its passages
        for slot, ref in self._refs.items():
            self._passages[ref].append(slot)
        self.spaces = {model: Space(model[1], _part(base, at)) for at, model in enumerate(self.names.models)}
        for space in self.spaces.values():
            space.attach(self.column("owner"))
        self.members = Members(self.column("session"), len(self.names.sessions))
        self.expiring: list[int] = np.flatnonzero(np.isfinite(self.column("expires"))).tolist()
        self.documents = int(np.count_nonzero(self.column("length")))  # memories with keywords
        self.length = int(self.column("length").sum())
        scopes = np.delete(self.column("scope"), list(self._refs))
        self._by_scope = Grown(np.bincount(scopes, minlength=len(self.names.scopes)))

    # --- questions ---

    def __len__(self) -> int:
        return self._alive.size

    @property
    def alive(self) -> Flags:
        return self._alive.all

    @property
    def by_scope(self) -> Array:
        """How many living memories each scope has."""
        return self._by_scope.all

    @property
    def unsettled(self) -> int:
        """How much has happened since it was packed."""
        return len(self) - self.based + self.dead

    def column(self, name: str) -> Array:
        return self._columns[name].all

    def slots_of(self, keys: Sequence[int]) -> Ints:
        """The slots of those of these keys that are here."""
        return self._keys.of(keys)

    def holding(self, word: str) -> tuple[Ints, Array]:
        """The living memories that hold a keyword, and how often each does."""
        slots, times = self._words.of(word)
        if self.dead and len(slots):
            living = self.alive[slots]
            slots, times = slots[living], times[living]
        return slots, times

    def called_by(self, words: Iterable[str]) -> list[int]:
        """The speakers whose names hold one of these keywords."""
        return list(dict.fromkeys(code for word in words for code in self.called.get(word, ())))

    # --- change ---

    def put(self, entries: Iterable[Entry]) -> list[int]:
        """Take these in, in the place of what they replace. Gives the slots that changed."""
        touched, fresh, vectors = list[int](), list[int](), defaultdict[Model, list[tuple[int, bytes]]](list)
        for entry in entries:
            touched += self.drop([entry.key])
            slot = self._append(entry)
            fresh.append(slot)
            if entry.vector:
                vectors[entry.vector.model, entry.vector.dimension].append((slot, entry.vector.data))
        for model, held in vectors.items():
            if model not in self.spaces:
                self.spaces[model] = Space(model[1])
            self.spaces[model].add([slot for slot, _ in held], [data for _, data in held])
        for space in self.spaces.values():
            space.reach(len(self))
        for slot in fresh:
            self._speak(slot, int(self.column("owner")[slot]))
            if slot not in self._refs:
                for passage in self._passages.get(int(self.column("key")[slot]), ()):
                    self._speak(passage, slot)
        return touched + fresh

    def drop(self, keys: Iterable[int]) -> list[int]:
        """Forget the rows of these keys. Gives the slots that died."""
        died = []
        for key in keys:
            slot = self._keys.get(key)
            if slot < 0:
                continue
            died.append(slot)
            self._keys.set(key, -1)
            self.alive[slot] = False
            self.dead += 1
            if slot in self._refs:
                self._passages[self._refs.pop(slot)].remove(slot)
            else:
                self._count(slot, -1)
                for passage in self._passages.get(key, ()):
                    self._speak(passage, -1)
            self._speak(slot, -1)
        return died

    def packed(self) -> tuple[Columns, Names]:
        """All of it as one base: without the dead, and without names that nobody bears any more."""
        keep = self.alive
        fresh = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
        columns = {name: self.column(name)[keep] for name in _COLUMNS}
        used: dict[str, Array] = {}
        for name in ("scope", "session", "speaker"):
            used[name], columns[name] = recoded(columns[name])
        owners = columns["owner"]
        columns["owner"] = np.where(owners >= 0, fresh.take(owners, mode="clip"), -1).astype(np.int32)
        columns["id_bytes"], columns["id_ends"] = self.ids.packed(keep)
        columns["keys"], columns["key_slots"] = sorted_keys(columns["key"])
        columns |= self._words.packed(keep, fresh)
        columns["passage_slots"] = fresh[np.array(list(self._refs), np.int64)]
        columns["passage_refs"] = np.array(list(self._refs.values()), np.uint64)
        models = [model for model, space in self.spaces.items() if keep[space.slots].any()]
        for at, model in enumerate(models):
            columns |= {f"{at}.{name}": held for name, held in self.spaces[model].packed(keep, fresh).items()}
        names = Names(
            scopes=[self.names.scopes[code] for code in used["scope"]],
            sessions=[self.names.sessions[code] for code in used["session"]],
            speakers=[self.names.speakers[code] for code in used["speaker"]],
            models=models,
        )
        return columns, names

    def _append(self, entry: Entry) -> int:
        slot = len(self)
        scope, session = self._code(self.names.scopes, entry.scope), self._code(self.names.sessions, entry.session)
        new_speaker = entry.speaker is not None and entry.speaker not in self._codes
        speaker = self._code(self.names.speakers, entry.speaker)
        if new_speaker:
            self._call(speaker, str(entry.speaker))
        owner = slot if entry.owner is None else self._keys.get(entry.owner)
        values = (
            entry.key, owner, len(entry.words), scope, session, entry.turn, entry.event, entry.created, entry.number,
            entry.expires, entry.question, speaker,
        )  # fmt: skip
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self._alive.append(True)
        self.ids.append(entry.id)
        self._keys.set(entry.key, slot)
        self._by_scope.fill(len(self.names.scopes), 0)
        if entry.owner is None:
            self._words.add(slot, entry.words)
            self._count(slot, 1)
            self.members.add(session, slot)
        else:
            self._refs[slot] = entry.owner
            self._passages[entry.owner].append(slot)
        if np.isfinite(entry.expires):
            self.expiring.append(slot)
        return slot

    def _count(self, slot: int, by: int) -> None:
        length = int(self.column("length")[slot])
        self.documents += by * (length > 0)
        self.length += by * length
        self.by_scope[self.column("scope")[slot]] += by

    def _speak(self, slot: int, owner: int) -> None:
        self.column("owner")[slot] = owner
        for space in self.spaces.values():
            space.speak(slot, owner)

    def _code(self, names: list[T], name: T | None) -> int:
        """The number of a name; -1 for none."""
        if name is None:
            return -1
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(names)
            names.append(name)
        return code

    def _call(self, code: int, speaker: str) -> None:
        for word in set(tokens(speaker, language=self._language)):
            self.called[word].append(code)


def _part(base: Columns, at: int) -> Columns:
    prefix = f"{at}."
    return {name.removeprefix(prefix): column for name, column in base.items() if name.startswith(prefix)}
