"""Write the changes of the journal into the tables, and undo that if it was interrupted."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memory_mesh.core.errors import StoreCorrupt, StoreError
from memory_mesh.core.model import Kind
from memory_mesh.core.ports import Step
from memory_mesh.stores.changes import append
from memory_mesh.stores.files import sync
from memory_mesh.stores.lance import journal, places, tables
from memory_mesh.stores.lance.errors import LANCE_ERRORS
from memory_mesh.stores.lance.journal import FLUSHING, OWN, S, State, journal_of, moves_of, read_state
from memory_mesh.stores.lance.migration import tables_put_aside
from memory_mesh.stores.lance.places import latest_version
from memory_mesh.stores.lance.schema import MEMORIES, TABLES, Table, kinds_of
from memory_mesh.stores.lance.tables import Frame
from memory_mesh.stores.lance.view import View


def flush(root: Path, view: View, *, rewrite: bool, synced: set[str], step: Step) -> None:
    """Write the changes of the journal into the tables, and begin a new journal. `rewrite` also frees deleted bytes.

    The caller holds the lock. The new state commits all of it: before that, a failure or the next writer undoes it.
    """
    own, old = root / OWN, view.state
    started = {table.name: version for table in TABLES if (version := latest_version(root, table))}
    try:
        journal.write_json(own / FLUSHING, {"generation": old.generation, "tables": started})
        step("flush.begun")
        frames = [_written(root, view, table, rewrite=rewrite, synced=synced, step=step) for table in TABLES]
        step("flush.synced")
        new = _prepared(own, view, frames)
        # Another program may have written since the view was read, or at this moment.
        new.foreign = any(frame.foreign() for frame in frames if frame.table is MEMORIES)
        step("flush.logged")
        journal.write_state(own, new)
    except (StoreError, *LANCE_ERRORS):
        synced.clear()  # Lance may use the names again
        roll_back(root)
        raise
    step("flush.committed")
    with suppress(OSError, StoreError):  # it is committed; the next writer or flush removes what is left
        for file in {*own.glob("journal-*"), *own.glob("moves-*")} - {journal_of(own, new.generation), moves_of(own, new.moves)}:
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
    """Undo a flush that a process began and did not commit. Its changes are in the journal. The caller holds the lock."""
    try:
        begun = json.loads((root / OWN / FLUSHING).read_bytes())
        generation, started = int(begun["generation"]), {name: int(version) for name, version in begun["tables"].items()}
    except FileNotFoundError:
        return
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreCorrupt(f"{root / OWN / FLUSHING} is damaged", remedy="restore a backup") from error
    state = read_state(root / OWN) or State()
    if generation == state.generation:
        for table in TABLES:
            places.roll_back(root, table, started.get(table.name))
        # The next flush writes these files anew.
        journal_of(root / OWN, state.generation + 1).unlink(missing_ok=True)
    else:
        journal_of(root / OWN, generation).unlink(missing_ok=True)
    (root / OWN / FLUSHING).unlink()


def _written(root: Path, view: View, table: Table, *, rewrite: bool, synced: set[str], step: Step) -> Frame:
    """Write the changes of one table, durably."""
    frame = view.frame(table)
    if table is MEMORIES and view.has_foreign:
        frame.delete_foreign()
    frame = changed(view, frame, step)
    if table is MEMORIES and (erased := [id_ for id_, row in view.changes[Kind.MEMORY].items() if row is None]):
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
    puts = [row for kind in kinds for row in view.changes[kind].values() if row]
    gone = {kind: frame.having(kind, view.changes[kind]) for kind in kinds if view.changes[kind]}
    if not puts and not any(gone.values()):
        return frame
    frame = frame.restored() if frame.fenced else frame
    return frame.write(view.with_usage(puts), {kind: ids for kind, ids in gone.items() if ids}, step)


def new_state(form: type[S], view: View, frames: Sequence[Frame]) -> S:
    """Return the state that names the tables as they are now. Its log of moves is still that of the old one.

    Deleted bytes are in the files until a rewrite has removed the old versions, whatever happens before.
    """
    old = view.state
    return form(
        generation=old.generation + 1, tables={frame.table.name: frame.version for frame in frames if frame.version},
        partitions=view.partitions, moves=old.moves, moves_length=old.moves_length, moves_trimmed=old.moves_trimmed,
        writes=view.writes, nonce=view.nonce, unfreed=view.unfreed,
    )  # fmt: skip


def _prepared(own: Path, view: View, frames: Sequence[Frame]) -> State:
    """Return the state that names the tables as they are now, and write the files that belong to it."""
    new = new_state(State, view, frames)
    journal.log_moves(own, new, view.recent)
    append(journal_of(own, new.generation), b"", at=0)
    sync(own)
    return new
