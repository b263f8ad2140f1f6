"""Vectors for what has none, and for a whole store when its model changes.

Memories of the same model that wait for a vector get it in place. A change of model is staged: the new vectors are written as
passages of their memories, which no search compares with vectors of the old model. When every memory has one, a single row
changes the store's model, and from that moment searches use the new vectors. Then they are folded into their memories. A run
that was stopped goes on where it was; what another process stores meanwhile is picked up before and after the change.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from memory_mesh.core.errors import Conflict, EmbeddingError, ModelMismatch, SettingsError
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Memory
from memory_mesh.core.model.rows import Key, Row, Vector, batches
from memory_mesh.core.model.where import In
from memory_mesh.core.ports import Embedder, Progress
from memory_mesh.flows.context import Context, must_be_enabled
from memory_mesh.flows.embed import (
    NO_VECTOR,
    Embedded,
    embedded,
    model_row,
    over,
    passage_row,
    passage_rows,
    passages,
    store_model,
)

_EMBEDDED = 64  # memories in one batch: what a run that is stopped loses at most
_FILED = 500  # more, for a store may rewrite its file at each deletion of staged passages
_ROUNDS = 100  # each finds only what others wrote during the one before


_Change = tuple[list[Row], list[Key], dict[str, int]]


@dataclass(frozen=True, slots=True)
class Reembedded:
    """What a run did."""

    model: str
    embedded: int  # memories that were given a vector
    changed_from: str | None = None  # the model that the store had before, where it changed


def reembed(context: Context, progress: Progress) -> Reembedded:
    """Give every memory a vector of the embedder's model."""
    must_be_enabled(context)
    if context.embedder is None:
        raise SettingsError("no embedder is set", expected="embedder = local", remedy="set one, then run reembed again")
    before, model = store_model(context), context.embedder.model
    work = _Work(context, context.embedder, progress)
    if before not in (None, model):
        work.stage()
        work.switch(model)
    work.fill()
    return Reembedded(model, work.done, before if before != model else None)


class _Work:
    """One run."""

    def __init__(self, context: Context, embedder: Embedder, progress: Progress) -> None:
        self._context, self._embedder, self._progress = context, embedder, progress
        self._staged = sha256(embedder.model.encode()).hexdigest()[:12]
        self.done = 0

    def stage(self) -> None:
        """A passage of the new model for every memory that has none, until a round finds nothing to do."""
        for _ in range(_ROUNDS):
            missing = self._unstaged()
            for batch in self._told("embedding", batches(missing, _EMBEDDED), len(missing)):
                self._each(batch, self._staging)
            if not missing:
                return

    def switch(self, model: str) -> None:
        """From now on the store is of the new model."""
        self._context.store.apply([model_row(self._context, model)])
        self._context.step("reembed.switched")

    def fill(self) -> None:
        """Bring every memory's own vector up to date: from its staged passages, or embedded now."""
        for _ in range(_ROUNDS):
            waiting = [row.id for row in self._memories() if not self._current(row)]
            for batch in self._told("filing", batches(waiting, _FILED), len(waiting)):
                self.done += self._each(batch, self._filing)
            if not waiting:
                return

    def _each(self, ids: Sequence[str], decide: Callable[[Sequence[str]], _Change]) -> int:
        """Write what is decided for some memories; where others change or erase one of them meanwhile, one at a time. The next
        round looks again at those that could not be written."""
        try:
            puts, deletes, seen = decide(ids)
            self._context.store.apply(puts, deletes, seen=seen)
        except Conflict:
            return sum(self._each([id_], decide) for id_ in ids) if len(ids) > 1 else 0
        return len(ids)

    def _staging(self, ids: Sequence[str]) -> _Change:
        rows, seen = self._read(ids)
        made = self._embedded([Memory.of(row) for row in rows])
        puts = [
            passage_row(memory, self._stage_id(memory.id, n), vector)
            for memory, vectors in made
            for n, vector in enumerate(vectors.all)
        ]
        return puts, [], seen

    def _filing(self, ids: Sequence[str]) -> _Change:
        rows, seen = self._read(ids)
        held = _by_ref(self._context.store.find(Kind.PASSAGE, In("ref", tuple(ids))))
        staged = {row.id: self._from_staged(row.id, held.get(row.id, ())) for row in rows}
        unstaged = [Memory.of(row) for row in rows if not staged[row.id].own]
        made = {**staged, **{memory.id: vectors for memory, vectors in self._embedded(unstaged)}}
        puts: list[Row] = [] if self._is_ours() else [model_row(self._context, self._embedder.model)]
        deletes: list[Key] = []
        for row in rows:
            # Its revision stays: a vector is worked out from the content, and tells nothing new.
            memory = replace(Memory.of(row), vector=made[row.id].own, pending=False)
            new = {passage.id: passage for passage in passage_rows(memory, made[row.id])}
            old = {passage.id: passage for passage in held.get(row.id, ())}
            puts += [memory.row(replaces=row.revision), *(over(passage, old.get(id_)) for id_, passage in new.items())]
            deletes += [passage.key for id_, passage in old.items() if id_ not in new]
        return puts, deletes, seen

    def _read(self, ids: Sequence[str]) -> tuple[list[Row], dict[str, int]]:
        """Memories, and the versions they were read under: a vector of what was erased meanwhile must not be written."""
        homes = {row.partition for row in self._context.store.get(Kind.MEMORY, ids).values()}
        seen = {name: self._context.store.version(name) for name in homes}
        rows = self._context.store.get(Kind.MEMORY, ids).values()
        return [row for row in rows if row.partition in seen], seen

    def _embedded(self, memories: Sequence[Memory]) -> list[tuple[Memory, Embedded]]:
        pieces = [passages(self._context, memory.content) for memory in memories]
        vectors = iter(embedded(self._embedder, [piece for parts in pieces for piece in parts]) if memories else ())
        found = [(memory, [next(vectors) for _ in parts]) for memory, parts in zip(memories, pieces, strict=True)]
        if any(vector.model != self._embedder.model for _, made in found for vector in made):
            what = f"{self._embedder.model} is down, and its fallback is another model"
            raise EmbeddingError(what, remedy="run reembed again later: it goes on where it was")
        return [(memory, Embedded(made[0], tuple(made[1:]))) for memory, made in found]

    def _is_ours(self) -> bool:
        """Whether the store is of this run's model; False: of none yet. Another run may have changed it to a third."""
        held, model = store_model(self._context), self._embedder.model
        if held not in (None, model):
            what = f"another run changed the store to {held}, while this one changed it to {model}"
            raise ModelMismatch(what, remedy="run reembed again with the model that the store is to have")
        return held is not None

    def _from_staged(self, id_: str, held: Sequence[Row]) -> Embedded:
        found: dict[str, Vector] = {row.id: row.vector for row in held if row.vector}
        ordered = [found[name] for n in range(len(held)) if (name := self._stage_id(id_, n)) in found]
        return Embedded(ordered[0], tuple(ordered[1:])) if ordered else NO_VECTOR

    def _stage_id(self, memory_id: str, n: int) -> str:
        return f"{memory_id}.{self._staged}.{n}"

    def _unstaged(self) -> list[str]:
        staged = set(self._context.store.ids(Kind.PASSAGE))
        return [row.id for row in self._memories() if not self._current(row) and self._stage_id(row.id, 0) not in staged]

    def _current(self, row: Row) -> bool:
        return row.vector is not None and row.vector.model == self._embedder.model

    def _memories(self) -> Iterator[Row]:
        """Every memory of the store, whosever it is, a page at a time."""
        page = self._context.store.find(Kind.MEMORY, limit=1000)
        while page:
            yield from page
            page = self._context.store.find(Kind.MEMORY, limit=1000, after=page[-1])

    def _told(self, what: str, batches: Iterator[Sequence[str]], of: int) -> Iterator[Sequence[str]]:
        done = 0
        for batch in batches:
            yield batch
            done += len(batch)
            self._progress(what, done, of)
            self._context.step(f"reembed.{what}")


def _by_ref(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row.value("ref")), []).append(row)
    return found
