"""A bucket of S3 or of a server like it: its objects, the log of a store in it, and the lease by which writers take turns.

The log is a row of numbered objects. Each is created with `If-None-Match: *`, so of all writers that try to write the same number
one succeeds. Entries before a state are removed, so a writer that was stopped for long may create one of them again; before they
are removed, a mark with the number of the state is written, by which it finds out. These two rules keep the store correct,
whatever a writer does that was stopped and goes on later. The lease is there so that writers wait for each other instead of
failing all the time. It has a number, and ends when its holder marks it as free, or when others have seen it unchanged for some
time.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from random import uniform
from threading import Event, Thread
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from memory_mesh.core.cancel import wait
from memory_mesh.core.errors import StoreBusy, StoreError, StoreUnavailable
from memory_mesh.core.ports import Step, no_step
from memory_mesh.stores.lance.errors import Superseded, remote_error
from memory_mesh.stores.lance.places import versions_in
from memory_mesh.stores.lance.schema import Table

_OWN = "memory_mesh"  # the folder of our objects, beside the tables
_LOG = f"{_OWN}/log"
LEASE_SECONDS = 10.0
_KEPT_LEASES = 20
_RETRY: Any = {"max_retries": 4, "retry_timeout": timedelta(seconds=30)}
_PAUSE = 0.03  # seconds, about, between two looks at a lease that another writer holds
_FREE = ".free"
_NAME = re.compile(rf"{_LOG}/(journal|lease|state)-(\d{{16}})({re.escape(_FREE)})?")


class Bucket:
    """Objects under a prefix. The keys come from the environment, as with every S3 client; they are never part of an error."""

    fenced = True

    def __init__(self, bucket: str, prefix: str, *, endpoint: str | None, region: str | None) -> None:
        self._uri = f"s3://{bucket}/{prefix}".rstrip("/")
        self.options = {"virtual_hosted_style_request": "false"} if endpoint else {}
        self.options |= {key: value for key, value in (("endpoint", endpoint), ("region", region)) if value}
        plain = endpoint is not None and endpoint.startswith("http://")
        self.options |= {"allow_http": "true"} if plain else {}
        config: Any = {key: value for key, value in self.options.items() if key != "allow_http"}
        client: Any = {"timeout": timedelta(seconds=20)} | ({"allow_http": True} if plain else {})
        self._objects = S3Store(bucket, prefix=prefix or None, config=config, client_options=client, retry_config=_RETRY)

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
            return sorted(str(one["path"]) for part in obstore.list(self._objects, prefix, offset=after) for one in part)

    def get(self, name: str) -> bytes:
        """Return an object. Raises `FileNotFoundError`."""
        with self._translated():
            return bytes(obstore.get(self._objects, name).bytes())

    def put(self, name: str, data: bytes) -> None:
        with self._translated():
            obstore.put(self._objects, name, data, use_multipart=False)

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless it exists. Returns whether this call wrote it, also if the response to it was lost."""
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


def entry_name(number: int) -> str:
    return f"{_LOG}/journal-{number:016d}"


def moves_name(number: int, nonce: str) -> str:
    return f"{_OWN}/moves/{number:016d}-{nonce}"


def _lease_name(number: int) -> str:
    return f"{_LOG}/lease-{number:016d}"


def _state_name(number: int) -> str:
    return f"{_LOG}/state-{number:016d}"


class Log:
    """The log of a store in a bucket."""

    def __init__(self, bucket: Bucket, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self.bucket, self._lease_seconds = bucket, lease_seconds

    def listed(self, since: int = 0) -> Listed:
        """Return the numbers of the entries from `since` on, and the newest lease. One request."""
        names = self.bucket.list(_LOG, after=entry_name(since - 1) if since else None)
        found = [match.groups() for name in names if (match := _NAME.fullmatch(name))]  # others may keep copies beside them
        entries, states = ([int(number) for kind, number, _ in found if kind == one] for one in ("journal", "state"))
        lease, free = max(((int(number), bool(free)) for kind, number, free in found if kind == "lease"), default=(0, True))
        return Listed(entries, lease, free, max(states, default=0))

    def write(self, number: int, data: bytes, *, step: Step = no_step) -> bool:
        """Write the entry with this number. Returns False if it may be one that others wrote before and removed since.

        Raises `Superseded` if it exists: another writer was faster.
        """
        if not self.bucket.create(entry_name(number), data):
            raise Superseded(f"another process wrote to {self.bucket.name} first")
        step("store.written")
        return self.listed(number).state <= number

    def remove_before(self, number: int) -> None:
        """Remove the entries before a state, and older marks."""
        self.bucket.put(_state_name(number), b"")
        entries = [one for one in self.listed().entries if one < number]
        marks = [name for name in self.bucket.list(_LOG, after=_state_name(0)) if name < _state_name(number)]
        self.bucket.delete([*(entry_name(one) for one in entries), *marks])

    @contextmanager
    def lease(self, nonce: str, listed: Callable[[], Listed], *, busy_seconds: float) -> Iterator[Lease]:
        """Hold the lease. `listed` lists the log anew. Raises `StoreBusy` if others hold the lease for too long."""
        lease = self._taken(nonce, listed, time.monotonic() + busy_seconds)
        try:
            yield lease
        finally:
            if not lease.lost.is_set():
                with suppress(StoreError):  # others take it when it has expired
                    self.bucket.put(_lease_name(lease.number) + _FREE, b"")

    def _taken(self, nonce: str, listed: Callable[[], Listed], until: float) -> Lease:
        seen, seen_at = -1, time.monotonic()
        while True:
            found = listed()
            if found.lease != seen:
                seen, seen_at = found.lease, time.monotonic()
            if (found.free or time.monotonic() - seen_at >= self._lease_seconds) and self._create(found.lease + 1, nonce):
                old = found.lease - _KEPT_LEASES
                if old > 0:
                    self.bucket.delete([_lease_name(old), _lease_name(old) + _FREE])
                return Lease(found.lease + 1, nonce, found)
            if time.monotonic() >= until:
                raise StoreBusy(f"other processes write to {self.bucket.name}", remedy="try again, or stop one of them")
            wait(uniform(0.5, 1.5) * _PAUSE)  # noqa: S311

    def _create(self, number: int, nonce: str) -> bool:
        return self.bucket.create(_lease_name(number), nonce.encode())

    @contextmanager
    def renewing(self, lease: Lease) -> Iterator[None]:
        """Renew the lease while the block runs: each time with the next number, so that others see that it is in use."""
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
