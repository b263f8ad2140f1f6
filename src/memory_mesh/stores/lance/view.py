"""What one handle of a LanceDB store sees: the tables of a state, with the journal over them."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from memory_mesh.core.errors import StoreCorrupt, StoreError
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    MOVING,
    WITH_VECTOR,
    And,
    Compare,
    Hit,
    In,
    Key,
    Kind,
    Or,
    Row,
    Scalar,
    Sealed,
    Used,
    Vector,
    Where,
    all_of,
)  # fmt: skip
from memory_mesh.core.ports import Step
from memory_mesh.core.search.lexical import best_cosines, keyword_scores
from memory_mesh.stores.base import (
    Change,
    MoveLog,
    Moves,
    Stored,
    copy_row,
    moves_since,
    tallied,
    values_of,
)
from memory_mesh.stores.files import sync
from memory_mesh.stores.journal import append
from memory_mesh.stores.lance import journal, tables
from memory_mesh.stores.lance.journal import (
    FLUSHING,
    LANCE_ERRORS,
    OWN,
    Place,
    S,
    State,
    journal_of,
    latest_version,
    moves_of,
    read_state,
)
from memory_mesh.stores.lance.migration import tables_put_aside
from memory_mesh.stores.lance.schema import (
    MEMORIES,
    RECORDS,
    TABLES,
    Table,
    adopted,
    kinds_of,
    reader_of,
    table_of,
)
from memory_mesh.stores.lance.tables import Frame, Positions

_Moved = dict[str, list[Moves]]  # by partition


class View(MoveLog):
    """One state of the store, to which the changes of its journal are added as they are read or
    written."""

    leaves_bytes = True  # until the files are rewritten

    def __init__(
        self, place: Place, state: State, read_moves: Callable[[], _Moved], before: "View | None"
    ) -> None:
        super().__init__()
        self.state, self._place, self._read_moves = state, place, read_moves
        self.journal_end = 0  # in bytes; in a bucket, the number of the last entry
        # Rows of the journal; None: deleted.
        self.rows: dict[Kind, dict[str, Row | None]] = {kind: {} for kind in Kind}
        self.size = 0  # rows in these changes
        self.partitions |= state.partitions
        self.writes, self.nonce, self.unfreed = state.writes, state.nonce, state.unfreed
        self.has_foreign = state.foreign  # the next write makes the memories of other programs ours
        self._flushed: _Moved | None = None
        kept: Iterable[Frame] = before._frames.values() if before else ()
        self._frames: dict[Table, Frame] = {
            frame.table: frame
            for frame in kept
            if frame.version == state.tables.get(frame.table.name)
        }

    @property
    def is_old(self) -> bool:
        """Whether an earlier version wrote the state. The first write begins one of this version,
        so that earlier versions no longer write."""
        return self.state.format < journal.FORMAT

    def data_version(self) -> Hashable:
        return self.writes, self.nonce

    def replay(self, change: Change) -> None:
        """Add a change."""
        for key in change.deletes:
            self.rows[key.kind][key.id] = None
        for row in change.puts:
            self.rows[row.kind][row.id] = row
        self.size += len(change.deletes) + len(change.puts)
        self.log(change)
        self.writes, self.unfreed = self.writes + 1, self.unfreed or change.frees

    def adopt_foreign(self) -> None:
        """Add the memories that other programs wrote into the table."""
        if self.has_foreign and (found := self.frame(MEMORIES).foreign()):
            data, ours = found
            rows = [*adopted(data, ours, self._next_revisions(data["id"].to_pylist()))]
            moves: defaultdict[str, list[Key]] = defaultdict(list)
            for row in rows:
                if row.kind in MOVING:
                    moves[row.partition].append(row.key)
            # The nonce is the same for every process that reads this table.
            self.replay(
                Change(rows, (), moves, f"{self.state.tables[MEMORIES.name]:016x}", frees=False)
            )
            self.size = 0  # closing a store that was only read writes nothing

    def _next_revisions(self, ids: list[str]) -> dict[str, int]:
        """Return the revision after that of the history and the blocks, for memories that were
        stored before."""
        among = In("ref", tuple(ids))
        at, _ = self._select(Kind.CHANGE, among)
        found = [(str(row.value("ref")), row.number) for row in self.frame(RECORDS).read(at)]
        found += [(id_, sealed.revision) for id_, sealed in self._sealed(tuple(ids)).items()]
        return {id_: revision + 1 for id_, revision in sorted(found)}

    def frame(self, table: Table) -> Frame:
        """Return a table. It is opened when it is first needed."""
        if table not in self._frames:
            self._frames[table] = Frame(self._place, table, self.state.tables.get(table.name))
        return self._frames[table]

    # --- reads ---

    def stored(self, keys: Iterable[Key]) -> dict[Key, Stored]:
        """Return the partitions and revisions of the rows with these keys that exist."""
        found: dict[Key, Stored] = {}
        in_tables: defaultdict[Table, set[Key]] = defaultdict(set)
        for key in keys:
            if key.id not in self.rows[key.kind]:
                in_tables[table_of(key.kind)].add(key)
            elif row := self.rows[key.kind][key.id]:
                found[key] = row.partition, row.revision
        for table, some in in_tables.items():
            frame = self.frame(table)
            at = frame.with_ids({key.id for key in some})
            kinds = (
                frame.values(at, "kind")
                if table is RECORDS
                else [(key.kind,) for key in islice(some, 1)] * len(at)
            )
            for (kind,), (id_, *stored) in zip(
                kinds, frame.values(at, "id", "partition", "revision"), strict=True
            ):
                if (key := Key(Kind(kind), id_)) in some and stored[0] is not None:
                    found[key] = stored[0], stored[1]
        return found

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        changed = self.rows[kind]
        rows = {id_: copy_row(row) for id_ in ids if (row := changed.get(id_))}
        if others := {id_ for id_ in ids if id_ not in changed}:
            frame = self.frame(table_of(kind))
            rows |= {
                row.id: row
                for row in frame.read(frame.with_ids(others))
                if row.kind is kind and row.partition is not None
            }
        complete = {row.id: row for row in self._completed(kind, list(rows.values()))}
        return {id_: complete[id_] for id_ in ids if id_ in complete}

    def find(self, kind: Kind, where: Where, *, limit: int | None, after: Row | None) -> list[Row]:
        if after:
            where = all_of(where, _older(after))
        at, changed = self._select(kind, where)
        frame = self.frame(table_of(kind))
        if limit is not None:
            at = frame.newest(at, limit)
        rows = sorted(
            [*frame.read(at), *map(copy_row, changed)], key=lambda row: row.age_key, reverse=True
        )[:limit]
        return self._completed(kind, rows)

    def count(self, kind: Kind, where: Where) -> int:
        at, changed = self._select(kind, where)
        return len(at) + len(changed)

    def ids(self, kind: Kind, where: Where) -> list[str]:
        at, changed = self._select(kind, where)
        return [*self.frame(table_of(kind)).ids(at), *(row.id for row in changed)]

    def tally(
        self, kind: Kind, columns: Sequence[str], where: Where, *, length: int | None
    ) -> dict[str | None, int]:
        at, changed = self._select(kind, where)
        table, frame = table_of(kind), self.frame(table_of(kind))
        if set(columns) <= set(table.fields):
            stored = frame.values(at, *map(table.physical, columns))
            return tallied([*stored, *values_of(changed, columns)], length)
        return tallied(values_of([*frame.read(at), *changed], columns), length)

    def nearest(self, kind: Kind, vector: Vector, where: Where, *, limit: int) -> list[Hit]:
        if kind not in WITH_VECTOR:
            return []
        vectors = self._vectors(kind, vector, where)
        if kind is Kind.MEMORY:
            owners = set(self.ids(kind, where))
            passages = self._vectors(Kind.PASSAGE, vector, ANYTHING, "ref")
            vectors += [(owner, data) for owner, data in passages if owner in owners]
        return best_cosines(vector.data, vectors, limit)

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where, *, limit: int
    ) -> list[Hit]:
        at, changed = self._select(Kind.MEMORY, visible)
        frame, read = self.frame(table_of(Kind.MEMORY)), reader_of("keywords")
        documents: list[tuple[str, Any]] = [
            (id_, read(words))
            for id_, words in frame.values(at, "id", "keywords")
            if words is not None
        ]
        documents += [(row.id, row.keywords) for row in changed]
        scored = keyword_scores(documents, tokens)
        allowed = set(
            self.ids(Kind.MEMORY, all_of(In("id", tuple(id_ for id_, _ in scored)), where))
        )
        return [Hit(id_, score) for id_, score in scored if id_ in allowed][:limit]

    def moves_since(self, partition: str, mark: str | None) -> list[Moves] | None:
        moves = super().moves_since(partition, mark)
        if moves is None and mark is not None:
            if self._flushed is None:
                self._flushed = self._read_moves()
            flushed = self._flushed.get(partition, ())
            moves = moves_since([*flushed, *self.moves.get(partition, ())], mark)
        return moves

    def with_usage(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows; memories with their usage, which the document's table shows."""
        used = self._used(tuple(row.id for row in rows if row.kind is Kind.MEMORY))
        return [
            replace(row, used=used[row.id]) if row.kind is Kind.MEMORY and row.id in used else row
            for row in rows
        ]

    # --- parts of them ---

    def _select(self, kind: Kind, where: Where) -> tuple[Positions, list[Row]]:
        """Return the rows of a kind that match: positions in the table, and rows of the changes."""
        frame, changes = self.frame(table_of(kind)), self.rows[kind]
        at = frame.select(kind, where)
        if changes and len(at):
            at = at[np.fromiter((id_ not in changes for id_ in frame.ids(at)), bool, len(at))]
        return at, [row for row in changes.values() if row and where.matches(row)]

    def _vectors(
        self, kind: Kind, like: Vector, where: Where, owner: str = "id"
    ) -> list[tuple[str, bytes]]:
        """Return owners and packed vectors of the rows that match, of the same model and
        dimension."""
        frame = self.frame(table_of(kind))
        at, changed = self._select(kind, where)
        at = at[
            np.fromiter(
                (model == like.model for (model,) in frame.values(at, "model")), bool, len(at)
            )
        ]
        found = zip(frame.values(at, owner), frame.vectors(at), strict=True)
        vectors = [(id_, data) for (id_,), data in found if data and len(data) == len(like.data)]
        for row in changed:
            if row.vector and (row.vector.model, len(row.vector.data)) == (
                like.model,
                len(like.data),
            ):
                vectors.append((str(row.value(owner)), row.vector.data))
        return vectors

    def _completed(self, kind: Kind, rows: list[Row]) -> list[Row]:
        """Return the rows; those with contents have what their latest block sealed, and their
        usage."""
        if kind not in CONTENTS or not rows:
            return rows
        ids = tuple(row.id for row in rows)
        sealed, used = self._sealed(ids), self._used(ids)
        return [replace(row, sealed=sealed.get(row.id), used=used.get(row.id)) for row in rows]

    def _sealed(self, ids: tuple[str, ...]) -> dict[str, Sealed]:
        at, changed = self._select(Kind.BLOCK, In("ref", ids))
        blocks = self.frame(table_of(Kind.BLOCK)).values(
            at, "ref", "memory_revision", "content_hash"
        )
        names = ("ref", "memory_revision", "content_hash")
        found: dict[str, Sealed] = {}
        for ref, revision, hash_ in [
            *blocks,
            *(tuple(row.value(name) for name in names) for row in changed),
        ]:
            if isinstance(revision, int) and isinstance(hash_, str):
                one = Sealed(revision, hash_)
                found[ref] = max(one, found.get(ref, one))
        return found

    def _used(self, ids: tuple[str, ...]) -> dict[str, Used]:
        at, changed = self._select(Kind.USAGE, In("id", ids))
        rows = [*self.frame(RECORDS).read(at), *changed]
        return {row.id: used for row in rows if (used := Used.of(row.fields))}


def _older(row: Row) -> Where:
    """Return the condition that a row comes after this one in the order of `find`."""
    cases: list[Where] = []
    same: tuple[Where, ...] = ()
    ages: tuple[Scalar, ...] = row.age_key
    for name, value in zip(("created_at", "partition", "number", "id"), ages, strict=True):
        cases.append(And((*same, Compare(name, "<", value))))
        same = (*same, Compare(name, "=", value))
    return Or(tuple(cases))


# --- flushing ---
# The changes of the journal are written into the tables, and that is undone if it was interrupted.


def flush(root: Path, view: View, *, rewrite: bool, synced: set[str], step: Step) -> None:
    """Write the changes of the journal into the tables, and begin a new journal. `rewrite` also
    frees deleted bytes.

    The caller holds the lock. The new state commits all of it: before that, a failure or the next
    writer undoes it.
    """
    own, old = root / OWN, view.state
    started = {table.name: version for table in TABLES if (version := latest_version(root, table))}
    try:
        journal.write_json(own / FLUSHING, {"generation": old.generation, "tables": started})
        step("flush.begun")
        frames = [
            _written(root, view, table, rewrite=rewrite, synced=synced, step=step)
            for table in TABLES
        ]
        step("flush.synced")
        new = new_state(State, view, frames)
        journal.log_moves(own, new, view.moves)
        append(journal_of(own, new.generation), b"", at=0)
        sync(own)
        # Another program may have written since the view was read, or at this moment.
        new.foreign = any(frame.foreign() for frame in frames if frame.table is MEMORIES)
        step("flush.logged")
        journal.write_state(own, new)
    except (StoreError, *LANCE_ERRORS):
        synced.clear()  # Lance may use the names again
        roll_back(root)
        raise
    step("flush.committed")
    # It is committed; the next writer or flush removes what is left.
    with suppress(OSError, StoreError):
        for file in {*own.glob("journal-*"), *own.glob("moves-*")} - {
            journal_of(own, new.generation),
            moves_of(own, new.moves),
        }:
            file.unlink(missing_ok=True)
        step("flush.cut")
        (own / FLUSHING).unlink()
        for frame in frames:
            if rewrite or frame.has_many_versions:
                frame.remove_old_versions()
                step(f"flush.{frame.table.name}.cleaned")
        if rewrite and new.unfreed:
            journal.write_state(own, replace(new, unfreed=False))
    step("store.freed")


def roll_back(root: Path) -> None:
    """Undo a flush that a process began and did not commit. Its changes are in the journal. The
    caller holds the lock."""
    try:
        begun = json.loads((root / OWN / FLUSHING).read_bytes())
        generation, started = (
            int(begun["generation"]),
            {name: int(version) for name, version in begun["tables"].items()},
        )
    except FileNotFoundError:
        return
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreCorrupt(
            f"{root / OWN / FLUSHING} is damaged", remedy="restore a backup"
        ) from error
    state = read_state(root / OWN) or State()
    if generation == state.generation:
        for table in TABLES:
            journal.roll_back(root, table, started.get(table.name))
        # The next flush writes these files anew.
        journal_of(root / OWN, state.generation + 1).unlink(missing_ok=True)
    else:
        journal_of(root / OWN, generation).unlink(missing_ok=True)
    (root / OWN / FLUSHING).unlink()


def _written(
    root: Path, view: View, table: Table, *, rewrite: bool, synced: set[str], step: Step
) -> Frame:
    """Write the changes of one table, durably."""
    frame = view.frame(table)
    if table is MEMORIES and view.has_foreign:
        frame.delete_foreign()
    frame = changed(view, frame, step)
    if table is MEMORIES and (
        erased := [id_ for id_, row in view.rows[Kind.MEMORY].items() if row is None]
    ):
        for aside in tables_put_aside(root):
            tables.erase(aside, erased)
    if rewrite:
        frame = frame.compacted()
        step(f"flush.{table.name}.rewritten")
    tables.sync_table(root, table, synced)
    return frame


def changed(view: View, frame: Frame, step: Step) -> Frame:
    """Write the changes of one table, which is at the version of the view, into it."""
    kinds = kinds_of(frame.table)
    puts = [row for kind in kinds for row in view.rows[kind].values() if row]
    gone = {kind: frame.having(kind, view.rows[kind]) for kind in kinds if view.rows[kind]}
    if not puts and not any(gone.values()):
        return frame
    frame = frame.restored() if frame.fenced else frame
    return frame.write(
        view.with_usage(puts), {kind: ids for kind, ids in gone.items() if ids}, step
    )


def new_state(form: type[S], view: View, frames: Sequence[Frame]) -> S:
    """Return the state that names the tables as they are now. Its log of moves is still that of the
    old one.

    Deleted bytes are in the files until a rewrite has removed the old versions, whatever happens
    before.
    """
    old = view.state
    return form(
        generation=old.generation + 1,
        tables={frame.table.name: frame.version for frame in frames if frame.version},
        partitions=view.partitions, moves=old.moves, moves_length=old.moves_length,
        moves_trimmed=old.moves_trimmed, writes=view.writes, nonce=view.nonce, unfreed=view.unfreed,
    )  # fmt: skip
