"""`doctor --repair`: save what can be read of a damaged store into a new one. The damaged files stay as they are."""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from os import PathLike
from pathlib import Path
from urllib.parse import quote

from memory_mesh.core import checks
from memory_mesh.core.archive import AT_ONCE, KINDS, StoreRows
from memory_mesh.core.audit import ERASED, of_recalls
from memory_mesh.core.errors import InvalidInput, StoreCorrupt, StoreError, StoreForeign, StoreFull, StoreMissing, shown
from memory_mesh.core.model import Block, Head, Kind, Reader, Repaired, Row, batches, checked, equals
from memory_mesh.core.ports import Progress, Store, as_progress
from memory_mesh.core.text import shown_url
from memory_mesh.flows.context import Context, find_rows, paged
from memory_mesh.flows.moving import broken_chains
from memory_mesh.settings import Settings, load
from memory_mesh.stores import normal_url, open_store, store_file
from memory_mesh.stores.files import create_folder, store_error, sync
from memory_mesh.stores.salvage import Found, Lost, salvage
from memory_mesh.wiring.build import context_over, file_of, signing_keys

_MAX_REASONS = 20


def repair_store(
    store: str | PathLike[str] | None = None, *, to: str | PathLike[str] | None = None, progress: Progress | None = None
) -> Repaired:
    """Copy all rows of a damaged store that can be read into a new store, and return what was saved and what was lost.

    `to` is the new file or folder; by default it stands beside the damaged one, with `.repaired` in its name. Nothing is done to
    a store that is sound. Stop the programs that use the store first. Raises `StoreCorrupt` if nothing can be read.
    """
    settings = load({"store": None if store is None else checks.path("store", store)})
    url = normal_url(settings.store_url).partition("?")[0]
    found = store_file(url)
    if found is None:
        raise InvalidInput(f"{shown(shown_url(url), max_length=120)} has no files to repair", expected="a store with files")
    file = (settings.cwd / found).absolute()
    if not file.exists():
        raise StoreMissing(f"the store {file} does not exist", remedy="check the name")
    if _is_sound(f"{url}?mode=ro", settings.cwd):
        return Repaired(file=str(file))
    new = Path(checks.path("to", to)).expanduser().absolute() if to else file.with_name(f"{file.stem}.repaired{file.suffix}")
    if os.path.lexists(new):
        expected = "a file or folder that does not exist yet"
        raise InvalidInput(f"{new} exists", expected=expected, remedy="name another one with --to")
    scratch = new.with_name(f".{new.name}.repair")
    try:
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was stopped
        create_folder(scratch)
        run = _Repair(as_progress(progress))
        broken = run.save(file, f"{url.partition(':')[0]}:///{quote(str(scratch / new.name))}", scratch, settings)
        os.rename(scratch / new.name, new)
        sync(new.parent)
    except OSError as error:
        raise store_error(new, error.errno or 0) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Repaired(
        file=str(file), new=str(new), saved=_by_name(run.saved), lost=_by_name(run.lost), reasons=(*run.reasons,), broken=broken
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
            for kind, count in ((Kind.MEMORY, len(self._gone)), (Kind.BLOCK, self._blocks_gone), (Kind.HEAD, self._heads_gone)):
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
        """Count what the blocks of a chain name and is gone. Let the head name the last block, or the chain could not go on."""
        store, head = context.store, context.store.get(Kind.HEAD, [chain]).get(chain)
        last, blocks = None, 0
        for batch in batches(paged(context, Kind.BLOCK, equals("chain", chain)), AT_ONCE):
            blocks += len(batch)
            last = max([*batch, *([last] if last else [])], key=lambda row: row.number)
            sealed = {str(row.value("ref")) for row in batch if row.value("content_hash") and row.value("yamo_text") != ERASED}
            self._gone |= sealed - find_rows(context, sorted(sealed)).keys()
        if head and not of_recalls(chain):  # the oldest blocks of searches are removed after some time
            self._blocks_gone += max(head.number - blocks, 0)
        self._heads_gone += head is None
        if last and (head is None or head.number < last.number):
            self._note(Lost(Kind.HEAD, 0, f"the head of {chain} was behind its last block, and is not signed"))
            block, revision = Block.of(last), head.revision + 1 if head else 1
            new = Head(
                id=chain, created_at=block.created_at, number=block.number, block_hash=block.block_hash, seal=block.seal,
                revision=revision,
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
