"""What is done to whole stores: migrate, copy, repair, and prepare a PostgreSQL database."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from os import PathLike
from os.path import isdir, realpath
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from memory_mesh.api.build import context_over, file_of, signing_keys
from memory_mesh.api.settings import Settings, load
from memory_mesh.core import errors
from memory_mesh.core.audit import ERASED, of_recalls
from memory_mesh.core.errors import (
    InvalidInput,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreMissing,
    shown,
)
from memory_mesh.core.model import (
    Block,
    Copied,
    Head,
    Kind,
    Migration,
    Reader,
    Repaired,
    Row,
    batches,
    checked,
    equals,
)
from memory_mesh.core.ports import Progress, Store, as_progress
from memory_mesh.core.text import shown_url
from memory_mesh.core.transfer.archive import AT_ONCE, KINDS, StoreRows, snapshot_of
from memory_mesh.flows.context import Context, find_rows, paged
from memory_mesh.flows.transfer import moving
from memory_mesh.flows.transfer.moving import broken_chains
from memory_mesh.stores import lance_store, normal_url, open_store, store_file
from memory_mesh.stores.files import create_folder, store_error, sync
from memory_mesh.stores.registry import postgres_store
from memory_mesh.stores.salvage import Found, Lost, salvage

if TYPE_CHECKING:
    from memory_mesh.stores.postgres import PostgresStore


# --- migration ---


def migrate(
    store: str | PathLike[str] | None = None,
    *,
    rollback: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Migration:
    """Migrate `memory_entries` in a LanceDB folder from schema V1 of RFC-0011 to V2; with
    `rollback`, restore V1 from its backup.

    `store` is the folder or its URL, by default the configured store. A dry run changes nothing.
    Stop other programs that write to the folder first.
    """
    settings = load({"store": None if store is None else errors.path("store", store)})
    url = normal_url(settings.store_url)
    file = store_file(url)
    folder = settings.cwd / file if file else None
    if (
        folder is None
        or url.startswith("json:")
        or not (url.startswith("lancedb:") or isdir(folder))
    ):
        what = f"store {shown(shown_url(url), max_length=120)} is not a LanceDB folder"
        raise InvalidInput(
            what,
            expected="lancedb:///FOLDER",
            remedy="a SQLite file is upgraded by its first write",
        )
    open_lance = lance_store()
    from memory_mesh.stores.lance.migration import migrate_folder

    if rollback and not dry_run:
        # A V1 table, or a run that was interrupted.
        with suppress(StoreError), closing(open_lance(folder)) as opened:
            opened.flush()
    return migrate_folder(
        folder, rollback=rollback, dry_run=dry_run, now=time.time_ns() // 1_000_000,
        busy_seconds=settings.options.busy_seconds, progress=as_progress(progress),
    )  # fmt: skip


# --- copying ---


def copy_store(
    source: str | PathLike[str], target: str | PathLike[str], *, progress: Progress | None = None
) -> Copied:  # fmt: skip
    """Copy all rows of all users, audit chains and history included, to an empty store, and verify
    the copy.

    A copy that was stopped is continued by the next call. The source may be written to meanwhile;
    it is not changed.
    """
    settings = load({"store": errors.path("target", target)})
    url, to = normal_url(errors.path("source", source)), normal_url(settings.store_url)
    if _place(url, settings) == _place(to, settings):
        raise InvalidInput(
            f"{shown(shown_url(to), max_length=120)} is both the source and the target",
            expected="two stores",
        )
    file, busy = store_file(url), settings.options.busy_seconds
    read_only = f"{url}?mode=ro" if file and "?" not in url else url
    key, source_key = settings.options.store_key, load({"store": url}).options.store_key
    with closing(
        open_store(read_only, folder=settings.cwd, busy_seconds=busy, key=source_key)
    ) as opened:
        file_of(opened).require_file()
        with closing(open_store(to, folder=settings.cwd, busy_seconds=busy, key=key)) as new:
            file_of(new).check_writable()
            context = context_over(new, Reader(), signing=signing_keys(settings, new))
            with snapshot_of(opened) as state:
                return moving.copy(context, StoreRows(state), as_progress(progress))


def _place(url: str, settings: Settings) -> str:
    file = store_file(url)
    return realpath(Path(settings.cwd, file)) if file else url


# --- PostgreSQL ---


def prepare(url: str | None) -> str:
    """Create the tables if they are missing, and return the URL without its password."""
    with _opened(url) as store:
        store.prepare()
        return shown_url(store.url)


def grant(
    url: str | None, role: str, *, scope: str, user_id: str | None, agent_id: str | None
) -> tuple[str, list[str]]:
    """Let a role use the tables. Return the URL without its password, and the statements that an
    administrator should run."""
    with _opened(url) as store:
        from memory_mesh.stores.postgres import roles

        return shown_url(store.url), roles.grant(
            store, role, scope=scope, user_id=user_id, agent_id=agent_id
        )


def distribute(url: str | None) -> str:
    """Distribute the tables with Citus, and return the URL without its password."""
    with _opened(url) as store:
        from memory_mesh.stores.postgres import roles

        roles.distribute(store)
        return shown_url(store.url)


@contextmanager
def _opened(url: str | None) -> "Iterator[PostgresStore]":
    settings = load({"store": url})
    if not settings.store_url.startswith(("postgresql:", "postgres:")):
        what = (
            f"store {shown(shown_url(settings.store_url), max_length=120)} is not a "
            "PostgreSQL store"
        )
        raise InvalidInput(what, expected="--store postgresql://user@host/database")
    with closing(
        postgres_store()(settings.store_url, busy_seconds=settings.options.busy_seconds)
    ) as store:
        yield store


# --- repair ---

_MAX_REASONS = 20


def repair_store(
    store: str | PathLike[str] | None = None,
    *,
    to: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Repaired:
    """Copy all rows of a damaged store that can be read into a new store, and return what was saved
    and what was lost.

    `to` is the new file or folder; by default it stands beside the damaged one, with `.repaired` in
    its name. Nothing is done to a store that is sound. Stop the programs that use the store first.
    Raises `StoreCorrupt` if nothing can be read.
    """
    settings = load({"store": None if store is None else errors.path("store", store)})
    url = normal_url(settings.store_url).partition("?")[0]
    found = store_file(url)
    if found is None:
        raise InvalidInput(
            f"{shown(shown_url(url), max_length=120)} has no files to repair",
            expected="a store with files",
        )
    file = (settings.cwd / found).absolute()
    if not file.exists():
        raise StoreMissing(f"the store {file} does not exist", remedy="check the name")
    if _is_sound(f"{url}?mode=ro", settings.cwd):
        return Repaired(file=str(file))
    new = (
        Path(errors.path("to", to)).expanduser().absolute()
        if to
        else file.with_name(f"{file.stem}.repaired{file.suffix}")
    )
    if os.path.lexists(new):
        expected = "a file or folder that does not exist yet"
        raise InvalidInput(f"{new} exists", expected=expected, remedy="name another one with --to")
    scratch = new.with_name(f".{new.name}.repair")
    try:
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was stopped
        create_folder(scratch)
        run = _Repair(as_progress(progress))
        broken = run.save(
            file, f"{url.partition(':')[0]}:///{quote(str(scratch / new.name))}", scratch, settings
        )
        os.rename(scratch / new.name, new)
        sync(new.parent)
    except OSError as error:
        raise store_error(new, error.errno or 0) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Repaired(
        file=str(file),
        new=str(new),
        saved=_by_name(run.saved),
        lost=_by_name(run.lost),
        reasons=(*run.reasons,),
        broken=broken,
    )


class _Repair:
    """Writes what was found into a new store, and counts it."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.saved, self.lost, self.chains = Counter[str](), Counter[str](), set[str]()
        self.reasons: dict[str, None] = {}
        self._gone = set[str]()  # memories that blocks name
        self._blocks_gone = self._heads_gone = 0

    def save(self, file: Path, url: str, scratch: Path, settings: Settings) -> tuple[str, ...]:
        """Write all rows that can be read, and return what is wrong with the audit chains."""
        with closing(open_store(url)) as target:
            for batch in batches(self._rows(salvage(file, scratch)), AT_ONCE):
                self._write(target, batch)
                self._progress("repairing", sum(self.saved.values()), sum(self.saved.values()))
            context = context_over(target, Reader(), signing=signing_keys(settings, target))
            for chain in sorted(self.chains):
                self._mend(context, chain)
            for kind, count in (
                (Kind.MEMORY, len(self._gone)),
                (Kind.BLOCK, self._blocks_gone),
                (Kind.HEAD, self._heads_gone),
            ):
                self.lost[kind] = max(self.lost[kind], count)
            broken = tuple(broken_chains(context, self.chains))
        if not self.saved:
            what = f"nothing of {file} can be read: {'; '.join(self.reasons) or 'it has no rows'}"
            raise StoreCorrupt(what[:500], remedy="restore a backup; the store is as it was")
        return broken

    def _rows(self, found: Iterable[Found]) -> Iterator[Row]:
        for one in found:
            if isinstance(one, Row):
                yield one
            else:
                self._note(one)

    def _write(self, target: Store, rows: list[Row]) -> None:
        """Write rows at once; if one of them cannot be stored beside the others, one by one."""
        try:
            target.apply(rows)
        except StoreFull:
            raise
        except (StoreError, InvalidInput) as error:
            if len(rows) == 1:
                self._note(Lost(rows[0].kind, 1, str(error)))
                return
            for row in rows:
                self._write(target, [row])
            return
        self.saved.update(row.kind for row in rows)
        self.chains |= {row.partition for row in rows if row.kind in (Kind.BLOCK, Kind.HEAD)}

    def _mend(self, context: Context, chain: str) -> None:
        """Count what the blocks of a chain name and is gone. Let the head name the last block,
        or the chain could not go on."""
        store, head = context.store, context.store.get(Kind.HEAD, [chain]).get(chain)
        last, blocks = None, 0
        for batch in batches(paged(context, Kind.BLOCK, equals("chain", chain)), AT_ONCE):
            blocks += len(batch)
            last = max([*batch, *([last] if last else [])], key=lambda row: row.number)
            sealed = {
                str(row.value("ref"))
                for row in batch
                if row.value("content_hash") and row.value("yamo_text") != ERASED
            }
            self._gone |= sealed - find_rows(context, sorted(sealed)).keys()
        # The oldest blocks of searches are removed after some time.
        if head and not of_recalls(chain):
            self._blocks_gone += max(head.number - blocks, 0)
        self._heads_gone += head is None
        if last and (head is None or head.number < last.number):
            self._note(
                Lost(
                    Kind.HEAD,
                    0,
                    f"the head of {chain} was behind its last block, and is not signed",
                )
            )
            block, revision = Block.of(last), head.revision + 1 if head else 1
            new = Head(
                id=chain, created_at=block.created_at, number=block.number,
                block_hash=block.block_hash, seal=block.seal, revision=revision,
            )  # fmt: skip
            store.apply([new.row()])

    def _note(self, lost: Lost) -> None:
        self.lost[lost.kind] += lost.count
        if len(self.reasons) < _MAX_REASONS:
            self.reasons[lost.reason] = None


def _by_name(counts: Counter[str]) -> dict[str, int]:
    return {str(kind): count for kind, count in counts.items() if count}


def _is_sound(url: str, folder: Path) -> bool:
    """Return whether every row can be read and the files are intact."""
    try:
        with closing(open_store(url, folder=folder)) as store:
            for kind in KINDS:
                for row in StoreRows(store).rows(kind):
                    checked(row)
            return not file_of(store).damage()
    except StoreForeign:
        raise
    except (StoreCorrupt, InvalidInput):
        return False
