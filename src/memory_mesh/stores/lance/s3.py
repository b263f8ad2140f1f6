"""The LanceDB store in a bucket of S3: the same tables, with a log of numbered objects as journal.

An entry of the log is a change, or the state after a flush, which names the versions of the tables.
A reader lists the log from the entry on that it read last, and sees whole changes only. A flush
writes new versions of the tables first; they count when its entry is in the log. If another writer
was faster, the versions are ignored, and the next flush begins from those that count.
"""

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import uniform
from threading import Event, RLock, Thread
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from memory_mesh.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreUnavailable,
)
from memory_mesh.core.model.background import wait
from memory_mesh.core.ports import Progress, Step, no_step
from memory_mesh.stores.archive_file import ArchivedStore
from memory_mesh.stores.base import (
    Change,
    Moves,
    decode_change,
    encode_change,
    encode_json,
    latest_moves,
    mark_of,
    new_nonce,
)
from memory_mesh.stores.journal import ATTEMPTS, Superseded, sample_forms
from memory_mesh.stores.lance.journal import (
    State,
    decode_moves,
    decode_state,
    encode_moves,
    remote_error,
    versions_in,
)
from memory_mesh.stores.lance.schema import TABLES, Table
from memory_mesh.stores.lance.store import DIRECT_ROWS, FLUSHED_ROWS, TableStore
from memory_mesh.stores.lance.tables import Frame
from memory_mesh.stores.lance.view import View, changed, new_state
from memory_mesh.system import fork_safe

# --- the bucket ---
# The log is a row of numbered objects. Each is created with `If-None-Match: *`, so of all writers
# that try to write the same number one succeeds. Entries before a state are removed, so a writer
# that was stopped for long may create one of them again; before they are removed, a mark with the
# number of the state is written, by which it finds out. These two rules keep the store correct,
# whatever a writer does that was stopped and goes on later. The lease is there so that writers wait
# for each other instead of failing all the time. It has a number, and ends when its holder marks it
# as free, or when others have seen it unchanged for some time.

_OWN = "memory_mesh"  # the folder of our objects, beside the tables
_LOG = f"{_OWN}/log"
LEASE_SECONDS = 10.0
_KEPT_LEASES = 20
_RETRY: Any = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
_PAUSE = 0.03  # seconds, about, between two looks at a lease that another writer holds
_FREE = ".free"
_NAME = re.compile(rf"{_LOG}/(journal|lease|state)-(\d{{16}})({re.escape(_FREE)})?")


class Bucket:
    """Objects under a prefix. The keys come from the environment, as with every S3 client; they
    are never part of an error."""

    fenced = True

    def __init__(
        self, bucket: str, prefix: str, *, endpoint: str | None, region: str | None
    ) -> None:
        self._uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self.options = {"virtual_hosted_style_request": "false"} if endpoint else {}
        self.options |= {
            key: value for key, value in (("endpoint", endpoint), ("region", region)) if value
        }
        plain = endpoint is not None and endpoint.startswith("http://")
        self.options |= {"allow_http": "true"} if plain else {}
        config: Any = {key: value for key, value in self.options.items() if key != "allow_http"}
        client: Any = {"timeout": timedelta(seconds=20)} | ({"allow_http": True} if plain else {})
        self._objects = S3Store(
            bucket, prefix=prefix or None, config=config, client_options=client, retry_config=_RETRY
        )

    @property
    def name(self) -> str:
        return self._uri

    def uri(self, table: Table) -> str:
        return f"{self._uri}/{table.name}.lance"

    def versions(self, table: Table) -> list[int]:
        names = self.list(f"{table.name}.lance/_versions")
        return [version for version, _ in versions_in(name.rpartition("/")[2] for name in names)]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:  # an object that is missing has no code but NoSuchKey
            if "<Code>NoSuchBucket" in str(error):
                raise remote_error(self._uri, error) from None
            raise
        except (AlreadyExistsError, PreconditionError):
            raise FileExistsError from None
        except (BaseError, OSError) as error:
            raise remote_error(self._uri, error) from None

    def list(self, prefix: str, *, after: str | None = None) -> list[str]:
        """Return the names of the objects in a folder, in order, those after a name only."""
        with self._translated():
            return sorted(
                str(one["path"])
                for part in obstore.list(self._objects, prefix, offset=after)
                for one in part
            )

    def get(self, name: str) -> bytes:
        """Return an object. Raises `FileNotFoundError`."""
        with self._translated():
            return bytes(obstore.get(self._objects, name).bytes())

    def put(self, name: str, data: bytes) -> None:
        with self._translated():
            obstore.put(self._objects, name, data, use_multipart=False)

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless it exists. Returns whether this call wrote it, also if the
        response to it was lost."""
        try:
            with self._translated():
                obstore.put(self._objects, name, data, mode="create", use_multipart=False)
        except (FileExistsError, StoreUnavailable) as error:
            with suppress(FileNotFoundError):
                return self.get(name) == data
            if isinstance(error, StoreUnavailable):
                raise
            return False
        return True

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. It need not succeed: the next writer deletes what is left."""
        with suppress(StoreError, FileNotFoundError), self._translated():
            obstore.delete(self._objects, list(names))


@dataclass(slots=True)
class Listed:
    """What the log contains from a number on."""

    entries: list[int]
    lease: int  # the highest number
    free: bool
    state: int  # entries before this one are being removed


@dataclass(slots=True)
class Lease:
    """The right to write, until it is freed or lost."""

    number: int
    nonce: str
    listed: Listed  # the log at the moment when it was taken
    lost: Event = field(default_factory=Event)


def entry_name(number: int, kind: str = "journal") -> str:
    return f"{_LOG}/{kind}-{number:016d}"


class Log:
    """The log of a store in a bucket."""

    def __init__(self, bucket: Bucket, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self.bucket, self._lease_seconds = bucket, lease_seconds

    def listed(self, since: int = 0) -> Listed:
        """Return the numbers of the entries from `since` on, and the newest lease. One request."""
        names = self.bucket.list(_LOG, after=entry_name(since - 1) if since else None)
        # Others may keep copies beside them.
        found = [match.groups() for name in names if (match := _NAME.fullmatch(name))]
        entries, states = (
            [int(number) for kind, number, _ in found if kind == one]
            for one in ("journal", "state")
        )
        lease, free = max(
            ((int(number), bool(free)) for kind, number, free in found if kind == "lease"),
            default=(0, True),
        )
        return Listed(entries, lease, free, max(states, default=0))

    def write(self, number: int, data: bytes, *, step: Step = no_step) -> bool:
        """Write the entry with this number. Returns False if it may be one that others wrote before
        and removed since.

        Raises `Superseded` if it exists: another writer was faster.
        """
        if not self.bucket.create(entry_name(number), data):
            raise Superseded(f"another process wrote to {self.bucket.name} first")
        step("store.written")
        return self.listed(number).state <= number

    def remove_before(self, number: int) -> None:
        """Remove the entries before a state, and older marks."""
        state = entry_name(number, "state")
        self.bucket.put(state, b"")
        entries = [one for one in self.listed().entries if one < number]
        marks = self.bucket.list(_LOG, after=entry_name(0, "state"))
        self.bucket.delete([*map(entry_name, entries), *(name for name in marks if name < state)])

    @contextmanager
    def lease(
        self, nonce: str, listed: Callable[[], Listed], *, busy_seconds: float
    ) -> Iterator[Lease]:
        """Hold the lease. `listed` lists the log anew. Raises `StoreBusy` if others hold the
        lease for too long."""
        lease = self._taken(nonce, listed, time.monotonic() + busy_seconds)
        try:
            yield lease
        finally:
            if not lease.lost.is_set():
                with suppress(StoreError):  # others take it when it has expired
                    self.bucket.put(entry_name(lease.number, "lease") + _FREE, b"")

    def _taken(self, nonce: str, listed: Callable[[], Listed], until: float) -> Lease:
        seen, seen_at = -1, time.monotonic()
        while True:
            found = listed()
            if found.lease != seen:
                seen, seen_at = found.lease, time.monotonic()
            if (found.free or time.monotonic() - seen_at >= self._lease_seconds) and self._create(
                found.lease + 1, nonce
            ):
                old = found.lease - _KEPT_LEASES
                if old > 0:
                    self.bucket.delete([entry_name(old, "lease"), entry_name(old, "lease") + _FREE])
                return Lease(found.lease + 1, nonce, found)
            if time.monotonic() >= until:
                raise StoreBusy(
                    f"other processes write to {self.bucket.name}",
                    remedy="try again, or stop one of them",
                )
            wait(uniform(0.5, 1.5) * _PAUSE)  # noqa: S311

    def _create(self, number: int, nonce: str) -> bool:
        return self.bucket.create(entry_name(number, "lease"), nonce.encode())

    @contextmanager
    def renewing(self, lease: Lease) -> Iterator[None]:
        """Renew the lease while the block runs: each time with the next number, so that others
        see that it is in use."""
        done = Event()

        def renew() -> None:
            while not done.wait(self._lease_seconds / 3):
                with suppress(StoreError):
                    if not self._create(lease.number + 1, lease.nonce):
                        lease.lost.set()
                        return
                    lease.number += 1

        thread = Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


# --- the store ---

_READ_AT_ONCE = 16  # objects
_MAX_LOGS = 32  # of moves; more are merged


@dataclass(slots=True)
class BucketState(State):
    """The state of a store in a bucket."""

    logs: list[str] = field(default_factory=list)  # of moves, oldest first


class BucketStore(TableStore):
    """Rows in the Lance tables of a bucket."""

    index_folder = None
    _flushed_on_closing = 64  # rows in the journal; fewer stay there

    def __init__(
        self,
        bucket: Bucket,
        *,
        url: str,
        read_only: bool = False,
        busy_seconds: float = 30.0,
        step: Step = no_step,
        flush_rows: int = FLUSHED_ROWS,
        direct_rows: int = DIRECT_ROWS,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self.url, self._bucket, self._name = url, bucket, bucket.name
        self._log = Log(bucket, lease_seconds=lease_seconds)
        self._read_only, self._busy_seconds, self._step = read_only, busy_seconds, step
        self._turn = fork_safe(RLock())
        self._flush_size, self._direct_rows = flush_rows, direct_rows
        self._lease: Lease  # of the write that is under way
        super().__init__()
        self._reading(lambda view: None)
        if read_only:
            self.require_file()

    def compact(self) -> bool:
        self.check_writable()
        if not self._exists():
            return True
        return self._flushed(rewrite=True) and not self.has_deleted_bytes()

    def _free(self) -> None:
        self._flushed(rewrite=self.has_deleted_bytes())

    # --- writing ---

    @contextmanager
    def _writing(self) -> Iterator[View]:
        with self._turn:
            self._check_open()
            with (
                self._log.lease(
                    new_nonce(), self._listed, busy_seconds=self._busy_seconds
                ) as self._lease,
                self._lock,
            ):
                view = self._refreshed(self._lease.listed)
                if not view.journal_end:
                    self._write(view, {"state": asdict(BucketState())})
                    self._state = None
                    view = self._refreshed()
                elif view.is_old:
                    self._flush(view)
                    view = self._refreshed()
                try:
                    yield view
                except (StoreCorrupt, FileNotFoundError):
                    # Others removed what it read.
                    if self._log.listed(view.journal_end).entries != [view.journal_end]:
                        raise Superseded(f"another process wrote to {self._name} first") from None
                    raise

    def _append(self, view: View, change: Change) -> None:
        record, before = (
            encode_change(change),
            {name: mark_of(*view.partitions.get(name, (0, ""))) for name in change.moves},
        )
        if not self._write(view, {"change": record, "base": view.state.generation}):
            self._look_up(change, before)
        # The view gets a copy: later changes to the lists of the caller must not change it.
        view.replay(decode_change(json.loads(encode_json(record))))

    def _look_up(self, change: Change, before: Mapping[str, str]) -> None:
        """Raise `Superseded` if a change is not among those after these marks of the partitions."""
        self._state = None
        view = self._refreshed()
        for partition, mark in before.items():
            if (moves := view.moves_since(partition, mark)) is not None:
                if not any(one.nonce == change.nonce for one in moves):
                    raise Superseded(f"another process wrote to {self._name} first")
                return
        raise self._unknown()

    def _write(self, view: View, entry: dict[str, object]) -> bool:
        """Write the next entry of the log, or raise `Superseded`. See `Log.write`."""
        entry |= {"lease": self._lease.number, "nonce": self._lease.nonce}
        self._step("store.writing")
        is_known = self._log.write(
            view.journal_end + 1, encode_json(entry).encode(), step=self._step
        )
        view.journal_end += 1
        return is_known

    def _unknown(self) -> StoreUnavailable:
        what = f"others wrote so much to {self._name} during a write that its outcome is unknown"
        return StoreUnavailable(what, remedy="read again whether it was written")

    def _flush(self, view: View, *, rewrite: bool = False) -> None:
        if not (view.size or rewrite or view.is_old):
            return
        self._state = None  # to be read again, also if this fails
        with self._log.renewing(self._lease):
            self._step("flush.begun")
            frames = [changed(view, view.frame(table), self._step) for table in TABLES]
            if rewrite:
                frames = [frame.restored().compacted() if frame.rows else frame for frame in frames]
            for frame in frames:
                if frame.version != view.state.tables.get(frame.table.name):
                    frame.tag()
            state = new_state(BucketState, view, frames)
            state.generation = view.journal_end + 1
            state.logs = self._logged(view, state.generation)
            self._step("flush.logged")
            if not self._write(view, {"state": asdict(state)}):
                raise self._unknown()
            self._state = self._viewed(state, view)
            self._step("flush.committed")
            self._cut(state, frames, rewrite=rewrite)
        self._step("store.freed")

    def _logged(self, view: View, number: int) -> list[str]:
        """Write the moves of a flush, and return the logs of all moves. Many of them are merged."""
        logs = view.state.logs if isinstance(view.state, BucketState) else []
        recent = dict(view.moves)
        if len(logs) >= _MAX_LOGS:
            recent = {name: latest_moves(some) for name, some in self._moves(logs, recent).items()}
            logs = []
        name = f"{_OWN}/moves/{number:016d}-{new_nonce()}"
        self._bucket.put(name, encode_moves(recent))
        return [*logs, name]

    def _cut(self, state: BucketState, frames: list[Frame], *, rewrite: bool) -> None:
        """Remove what this state does not need. It is committed: the next flush removes what is
        left."""
        with suppress(StoreError, OSError):
            self._log.remove_before(state.generation)
            old = [
                name for name in self._bucket.list("memory_mesh/moves") if name < min(state.logs)
            ]
            self._bucket.delete(old)
            self._step("flush.cut")
            for frame in frames:
                if rewrite or frame.has_many_versions:
                    frame.remove_old_versions()
                    self._step(f"flush.{frame.table.name}.cleaned")
            if rewrite and state.unfreed and self._state:
                freed = replace(state, unfreed=False, generation=state.generation + 1)
                if self._write(self._state, {"state": asdict(freed)}):
                    self._state = self._viewed(freed, self._state)
                    self._log.remove_before(freed.generation)

    # --- reading ---

    def _is_current(self, view: View) -> bool:
        return self._refreshed().state is view.state

    def _listed(self) -> Listed:
        view = self._state
        return self._log.listed(view.journal_end if view else 0)

    def _refreshed(self, listed: Listed | None = None) -> View:
        """Return the view with all that is committed."""
        self._check_open()
        for _ in range(ATTEMPTS):
            view, listed = self._state, listed or self._listed()
            if (
                view
                and (not view.journal_end or view.journal_end in listed.entries)
                and self._follow(view, listed.entries)
            ):
                return view
            listed = self._log.listed()
            with suppress(FileNotFoundError):  # it was removed after a flush
                self._state = self._loaded(listed)
        raise StoreCorrupt(f"the log of {self._name} has gaps", remedy="restore a backup")

    def _follow(self, view: View, numbers: list[int]) -> bool:
        """Add the entries after those of the view. Returns False if there is a newer state;
        those before it are removed."""
        with suppress(FileNotFoundError):
            for number, entry in self._entries(
                [number for number in numbers if number > view.journal_end]
            ):
                if "state" in entry or number != view.journal_end + 1:
                    return False
                view.replay(entry["change"])
                view.journal_end = number
            return True
        return False

    def _loaded(self, listed: Listed) -> View:
        """Read the newest state. The last entry tells which it is."""
        state = BucketState()
        if numbers := listed.entries:
            ((number, entry),) = self._entries(numbers[-1:])
            if "state" not in entry:
                ((number, entry),) = self._entries([entry["base"]])
            try:
                state = decode_state(entry["state"], BucketState, self._name)
            except (TypeError, KeyError, ValueError, AttributeError) as error:
                raise StoreCorrupt(
                    f"{entry_name(number)} is damaged", remedy="restore a backup"
                ) from error
            state.generation = number
        elif listed.state:
            raise StoreCorrupt(f"{self._name} lacks its log", remedy="restore a backup")
        for table in () if state.generation else TABLES:
            if self._bucket.versions(table):
                what = f"{self._name} has the table {table.name} of another program"
                raise StoreForeign(
                    what,
                    remedy="name another prefix, or copy the tables to a folder and open it with "
                    "lancedb:///",
                )
        return self._viewed(state, self._state)

    def _viewed(self, state: BucketState, before: View | None) -> View:
        view = View(self._bucket, state, lambda: self._moves(state.logs, {}), before)
        view.journal_end = state.generation
        return view

    def _entries(self, numbers: Collection[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read entries of the log, several at once. Raises `FileNotFoundError`."""
        if len(numbers) < 2:
            found = [self._bucket.get(entry_name(number)) for number in numbers]
        else:
            with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
                found = list(pool.map(lambda number: self._bucket.get(entry_name(number)), numbers))
        for number, data in zip(numbers, found, strict=True):
            yield number, _decoded(number, data)

    def _moves(self, logs: list[str], recent: dict[str, list[Moves]]) -> dict[str, list[Moves]]:
        found: dict[str, list[Moves]] = {}
        for part in (*(decode_moves(self._bucket.get(name), name) for name in logs), recent):
            for partition, moves in part.items():
                found.setdefault(partition, []).extend(moves)
        return found

    # --- the objects ---

    def is_prepared(self) -> bool:
        return self._reading(lambda view: view.journal_end > 0 and not view.is_old)

    def _exists(self) -> bool:
        return self._reading(lambda view: view.journal_end > 0)

    def was_replaced(self) -> bool:
        return False

    def backup(self, target: Path, progress: Progress) -> int:
        """Write the rows to an archive file, as for a store without files."""
        return ArchivedStore(self).backup(target, progress)

    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]:
        """Return the samples that are in the objects, each with the name of an object."""
        found, forms = dict[bytes, str](), sample_forms(samples)
        for name in self._bucket.list("") if samples else ():
            with suppress(FileNotFoundError):
                data = self._bucket.get(name)
                found |= {sample: name for form, sample in forms.items() if form in data}
        return found


def _decoded(number: int, data: bytes) -> dict[str, Any]:
    """Return an entry of the log: a state, or a change with the number of the state before it."""
    try:
        entry = json.loads(data)
        if "state" in entry:
            return {"state": entry["state"]}
        return {"change": decode_change(entry["change"]), "base": int(entry["base"])}
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreCorrupt(f"{entry_name(number)} is damaged", remedy="restore a backup") from error
