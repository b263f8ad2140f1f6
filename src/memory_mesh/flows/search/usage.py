"""Record searches in the background: usage counts of what was found, and audit blocks.

Entries wait in memory and are written in groups, by a thread or on closing. A crash loses the
entries that wait; they are the only writes that are not durable when a call returns. A store that
cannot be written to can still be searched.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from memory_mesh.core.audit import Entry, blocks, chain_name
from memory_mesh.core.errors import SettingsError, StoreBusy, StoreClosed, StoreError, StoreReadOnly
from memory_mesh.core.model import In, Kind, MemoryRecord, Row, Usage, batches, iso, partitions
from memory_mesh.core.model.background import Found, SearchEntry, uncancellable
from memory_mesh.core.text import shown_url
from memory_mesh.flows.audit.chains import audit_rows, new_entry
from memory_mesh.flows.context import Context, Plan, commit, forgotten_user

# Readers whose counts are written together: each of their partitions may change meanwhile.
_HOMES = 20

Record = TypeVar("Record", bound=MemoryRecord)
_log = logging.getLogger(__name__)


class Scored(Protocol):
    """A result of a search."""

    @property
    def score(self) -> float: ...


def count(context: Context, ids: Sequence[str]) -> None:
    """Count that memories were found."""
    usage = context.state.queues.usage
    if (
        context.options.enable_memory
        and ids
        and usage.add(ids, iso(context.clock()), partitions(context.reader))
    ):
        usage.write_in_background(lambda: _write_counts(context))


def log_search(
    context: Context,
    *,
    query: str,
    limit: int,
    filter: str | None,
    ms: int,
    results: Sequence[Scored],
) -> None:
    """Queue the audit block of a search."""
    if not (
        context.options.audit_recalls
        and context.options.enable_yamo
        and context.options.enable_memory
    ):
        return
    entry = SearchEntry(
        user_id=context.reader.user_id, agent_id=context.reader.agent_id,
        session_id=context.reader.session_id, query=query, limit=limit, filter=filter, ms=ms,
        results=len(results), top_score=max((result.score for result in results), default=0.0),
    )  # fmt: skip
    log = context.state.queues.search_log
    if log.add(entry):
        log.write_in_background(lambda: _write_log(context))


def flush(context: Context) -> None:
    """Write everything that is pending. What a busy store does not accept waits for the next
    attempt."""
    _write_log(context)
    _write_counts(context)


def close(context: Context) -> None:
    """Write everything for the last time, and log how many searches are lost."""
    flush(context)
    if context.state.ledger:
        with suppress(StoreError):
            context.state.ledger.flush()
    while left := context.state.queues.search_log.take():
        _warn(context, len(left), "others kept the store busy")


# --- usage counts ---


def with_counts(context: Context, records: Sequence[Record]) -> list[Record]:
    """Return the memories with the usage counts that are not written yet added to the stored
    ones."""
    found = context.state.queues.usage.found
    return [
        one.changed(access_count=one.access_count + new.times, last_accessed=new.at)
        if (new := found.get(one.id))
        else one
        for one in records
    ]


def _write_counts(context: Context) -> None:
    usage = context.state.queues.usage
    with usage.writing:
        found = usage.take()
        homes = sorted({one.partitions for one in found.values()})
        for batch in map(set, batches(homes, _HOMES)):
            counts = {id_: one for id_, one in found.items() if one.partitions in batch}
            with suppress(StoreError):
                try:
                    _commit(context, partial(_plan_counts, context, counts))
                except (StoreBusy, StoreClosed):
                    # A search that ends after `close` waits for the next opening.
                    usage.put_back(counts)


def _plan_counts(context: Context, counts: dict[str, Found]) -> Plan[None]:
    """Add counts to the stored ones. Reading under the partitions' versions leaves out memories
    that are erased meanwhile."""
    names = {name for one in counts.values() for name in one.partitions}
    seen = {name: context.store.version(name) for name in names}
    stored = {
        id_: Usage.of(row) for id_, row in context.store.get(Kind.USAGE, list(counts)).items()
    }
    rows: list[Row] = []
    for id_ in context.store.ids(Kind.MEMORY, In("id", tuple(counts))):
        more, at, homes = counts[id_]
        old = stored.get(id_) or Usage(
            id=id_, created_at=at, ref=id_, access_count=0, last_accessed=at, revision=0
        )
        # A row that was edited by hand may lack either.
        total, latest = (old.access_count or 0) + more, max(at, old.last_accessed or at)
        newer = Usage(
            id=id_,
            created_at=old.created_at,
            ref=old.ref,
            access_count=total,
            last_accessed=latest,
            revision=old.revision + 1,
        )  # `replace` takes three times as long
        rows.append(newer.row(homes[0], replaces=old.revision))
    return Plan(None, rows, seen=seen)


# --- the search log ---


def _write_log(context: Context) -> None:
    log = context.state.queues.search_log
    with log.writing:
        while entries := log.take():
            try:
                _append(context, entries)
            except StoreReadOnly:
                continue  # nothing is expected to be written
            except (StoreBusy, StoreClosed) as error:
                _warn(context, log.put_back(entries), error.what)
                return
            except (StoreError, SettingsError) as error:  # such as a key file that cannot be read
                _warn(context, len(entries), error.what)
                return


def _append(context: Context, entries: Sequence[SearchEntry]) -> None:
    def storable(text: str) -> str:
        """Mask a text and replace what no store accepts: NUL, and halves of surrogate pairs."""
        return context.gates.query().redact(
            text.encode("utf-8", "replace").decode().replace("\0", "?")
        )

    # The filter is masked too: it holds values.
    masked = [
        replace(one, query=storable(one.query), filter=one.filter and storable(one.filter))
        for one in entries
    ]
    _commit(context, lambda: _plan_append(context, masked))


def _plan_append(context: Context, entries: Sequence[SearchEntry]) -> Plan[None]:
    chains: dict[str, list[Entry]] = {}
    for entry in _not_forgotten(context, entries):
        write = partial(
            blocks.recall, agent=str(entry.agent_id), query=entry.query, limit=entry.limit,
            filter=entry.filter, at=iso(entry.ms), results=entry.results, top_score=entry.top_score,
        )  # fmt: skip
        chain = chain_name(entry.user_id, entry.agent_id, recalls=True)
        chains.setdefault(chain, []).append(
            new_entry(context, "recall", entry.ms, write, session_id=entry.session_id)
        )
    return Plan(
        None, [row for chain, new in chains.items() for row in audit_rows(context, chain, new)]
    )


def _not_forgotten(context: Context, entries: Sequence[SearchEntry]) -> list[SearchEntry]:
    """Return the searches without those of users who were forgotten since, by any process."""
    users = {entry.user_id for entry in entries} - {None}
    times = {user: str(forgotten_user(context, user).detail.get("at", "")) for user in users}
    return [entry for entry in entries if iso(entry.ms) > times.get(entry.user_id, "")]


def _commit(context: Context, decide: Callable[[], Plan[None]]) -> None:
    """Write what a search left, unless that would create or upgrade the store: a search does
    neither."""
    if not context.file.is_prepared():
        raise StoreReadOnly(f"a search does not create or upgrade {shown_url(context.store.url)}")
    with uncancellable():  # it was left by earlier searches
        commit(context, decide)


def _warn(context: Context, count: int, why: str) -> None:
    if context.state.queues.search_log.lose(count):
        _log.warning(
            "%s searches left no block in the audit chain of %s: %s",
            f"{count:,}",
            shown_url(context.store.url),
            why,
        )
