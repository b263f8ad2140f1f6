"""Move whole stores, of every kind to every other.

All rows of all users are copied, and the copy is verified by counts and digests. Only the port is
used. Source and target are read side by side in the order of `find`, a page at a time, so that a
copy that was stopped continues where it was, and a source that is written to meanwhile is caught up
with.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from memory_mesh.core.audit import Broken
from memory_mesh.core.errors import Conflict, InvalidInput, StoreBusy, StoreCorrupt, shown
from memory_mesh.core.model import Copied, Key, Kind, Meta, Row, batches, iso
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Progress, RowSource, Store
from memory_mesh.core.text import shown_url
from memory_mesh.core.transfer import archive
from memory_mesh.core.transfer.archive import AT_ONCE, KINDS, MARK, StoreRows, Tally, snapshot_of
from memory_mesh.flows.audit import audit
from memory_mesh.flows.context import Context
from memory_mesh.flows.write import embed

_MAX_PASSES = 10  # over a source that others write to
_REMEDY = "copy into another store, or remove this one first; nothing was changed"

_Pair = tuple[Row | None, Row | None]


def export(context: Context, vectors: bool, progress: Progress) -> Iterator[str]:  # noqa: FBT001
    """Yield all rows of a store as the lines of an archive."""
    with snapshot_of(context.store) as state:
        yield from archive.archive_lines(state, vectors=vectors, progress=progress)


def copy(context: Context, source: RowSource, progress: Progress) -> Copied:
    """Copy all rows into the store of the context, which is empty or has a part of them, and
    verify the copy."""
    context.check_enabled()
    run = _Copying(context, source, progress)
    try:
        tally = run.copy()
    except Conflict as error:
        what = f"another process writes to {shown_url(context.store.url)} during the copy"
        raise StoreBusy(what, remedy="wait until it is done, then copy again") from error
    found, chains = _tally(StoreRows(context.store), progress)
    if found.values() != tally.values():
        what = (
            f"{shown_url(context.store.url)} differs from {source.name}: "
            f"{_differences(found, tally)}"
        )
        raise StoreCorrupt(
            what, remedy="another program wrote to it during the copy; remove it and copy again"
        )
    broken = broken_chains(context, chains)
    run.finish(tally)
    rows = {str(kind): count for kind, count in tally.counts.items()}
    return Copied(
        source=source.name, rows=rows, written=run.written, digest=tally.digest,
        chains=len(chains), broken=tuple(broken),
    )  # fmt: skip


def was_copied(store: Store, source: RowSource) -> bool:
    """Return whether a store has a complete copy of a source, whatever was stored in it since."""
    detail = Meta.read(store, MARK).detail
    return bool(detail.get("done")) and detail.get("from") == source.name


def with_vectors(context: Context, done: Copied, progress: Progress) -> Copied:
    """Compute the vectors of a copied store, unless it has those of the embedder's model."""
    if (
        context.models.embedder is None
        or embed.store_model(context) == context.models.embedder.model
    ):
        return done
    return replace(done, reembedded=embed.reembed(context, progress).embedded)


class _Copying:
    """One run of `copy`. The row `MARK` of the target says what is copied into it, and whether
    the copy is complete."""

    def __init__(self, context: Context, source: RowSource, progress: Progress) -> None:
        self._target, self._source, self._progress, self._step = (
            context.store,
            source,
            progress,
            context.step,
        )
        self._at = iso(context.clock())
        self.written = 0
        self._mark = Meta.read(self._target, MARK)
        self._is_empty = not StoreRows(self._target).count() - bool(self._mark.revision)
        self._is_done = bool(self._mark.detail.get("done")) and not self._is_empty
        begun, place = self._mark.detail.get("from"), shown_url(self._target.url)
        if not self._is_empty and begun != self._source.name:
            what = (
                f"{place} has a part of {shown(begun, max_length=200)}"
                if begun
                else f"{place} is not empty"
            )
            raise InvalidInput(
                what, expected="an empty store, or one with a part of the same copy", remedy=_REMEDY
            )

    def copy(self) -> Tally:
        """Copy until the target has what the source had at one moment, and return what that is."""
        if not self._is_done:
            self._write_mark({"from": self._source.name, "done": False})
        for number in range(_MAX_PASSES):
            state, written, tally = self._source.state(), self.written, Tally()
            for kind in KINDS:
                self._copy_kind(kind, tally, is_first=number == 0)
            # If a whole pass finds what the one before found, then the source was in this state
            # between the two.
            if self._source.state() == state or (number and self.written == written):
                return tally
        what = f"{self._source.name} was written to during each of {_MAX_PASSES} passes"
        raise StoreBusy(
            what, remedy="make a backup of it, and copy that; the next copy continues this one"
        )

    def finish(self, tally: Tally) -> None:
        if not self._is_done:
            self._write_mark({"from": self._source.name, "done": True, **tally.values()})

    def _write_mark(self, detail: dict[str, object]) -> None:
        self._target.apply([self._mark.row(detail, at=self._at)])  # type: ignore[arg-type]
        self._mark = Meta.read(self._target, MARK)

    def _copy_kind(self, kind: Kind, tally: Tally, *, is_first: bool) -> None:
        skip_target = is_first and self._is_empty
        there = iter(()) if skip_target else StoreRows(self._target).rows(kind)
        total, changed = self._source.count(), _changed(self._source.rows(kind), there, tally)
        for batch in batches(changed, AT_ONCE):
            check_cancelled()
            self._refuse_others(batch, is_first=is_first)
            self._apply(kind, batch, is_new=skip_target)
            self._progress("copying", min(sum(tally.counts.values()), total), total)
            self._step("copy.applied")

    def _refuse_others(self, batch: Sequence[_Pair], *, is_first: bool) -> None:
        """Raise `InvalidInput` if the target was used by itself since it was copied to."""
        own = [
            there
            for row, there in batch
            if there and (row is None or there.revision > row.revision)
        ]
        if self._is_done or (own and is_first):
            what = (
                f"{shown_url(self._target.url)} has a copy of {self._source.name}, and one of them "
                "was changed since"
            )
            raise InvalidInput(
                what, expected="an empty store, or one with a part of the same copy", remedy=_REMEDY
            )

    def _apply(self, kind: Kind, batch: Sequence[_Pair], *, is_new: bool) -> None:
        """Write one batch. A change contains rows of one user only, because some stores keep
        users apart."""
        rows = [row for row, _ in batch if row]
        gone = [there for row, there in batch if there and row is None]
        known = {} if is_new else self._target.get(kind, [row.id for row in rows])
        kept = self._source.present(kind, [row.id for row in gone]) if gone else ()
        puts, deletes = (
            defaultdict[str | None, list[Row]](list),
            defaultdict[str | None, list[Key]](list),
        )
        for row in rows:
            puts[_user_of(row)].append(
                replace(row, replaces=known[row.id].revision if row.id in known else 0)
            )
        for row in gone:
            if row.id not in kept:
                deletes[_user_of(row)].append(row.key)
        for user in {**puts, **deletes}:
            self._target.apply(puts[user], deletes[user])
            self.written += len(puts[user]) + len(deletes[user])


def _changed(rows: Iterator[Row], there: Iterator[Row], tally: Tally) -> Iterator[_Pair]:
    """Yield the rows that differ, with what the target has in their place; both are sorted by
    age, newest first."""
    row, other = next(rows, None), next(there, None)
    while row or other:
        line = archive.encode(row) if row else ""
        if other is None or (row and row.age_key > other.age_key):
            pair: _Pair = row, None
        elif row is None or row.age_key < other.age_key:
            pair = None, other
        else:
            pair = row, other
        if pair[0]:
            tally.add(pair[0], line)
            row = next(rows, None)
        if pair[1]:
            other = next(there, None)
        if not (pair[0] and pair[1] and line == archive.encode(pair[1])):
            yield pair


def _user_of(row: Row) -> str | None:
    """Return the user of a row. Partitions and chains are lists of texts, the agent last."""
    if user := row.value("user_id"):
        return str(user)
    with suppress(ValueError, LookupError, TypeError):
        found = json.loads(row.partition)[-2]
        return found if isinstance(found, str) else None
    return None


def _tally(source: StoreRows, progress: Progress) -> tuple[Tally, set[str]]:
    """Return the tally of all rows, and the audit chains among them."""
    tally, total, chains = Tally(), source.count(), set[str]()
    for done, row in enumerate(row for kind in KINDS for row in source.rows(kind)):
        tally.add(row)
        if row.kind in (Kind.BLOCK, Kind.HEAD):
            chains.add(row.partition)
        if done % AT_ONCE == 0:
            progress("verifying", done, total)
    return tally, chains


def _differences(found: Tally, expected: Tally) -> str:
    counts = [
        f"{found.counts[kind]} of {expected.counts[kind]} rows of kind {kind}"
        for kind in KINDS
        if found.counts[kind] != expected.counts[kind]
    ]
    return ", ".join(counts) or "the contents of rows"


def broken_chains(context: Context, chains: Iterable[str]) -> Iterator[str]:
    """Verify audit chains of all users, and yield what is wrong with each that is broken."""
    for chain in sorted(chains):
        verdict = audit.verify(context, chain)
        if isinstance(verdict, Broken):
            yield f"{chain} breaks at block {verdict.number}: {verdict.reason}"
