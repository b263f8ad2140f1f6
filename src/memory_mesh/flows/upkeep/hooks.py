"""Call hooks after every change.

Events are written together with the change that they are about, and delivered afterwards. So a
crash loses no event, and no write waits for a hook. The events of a hook are delivered one after
the other, by one thread of all processes. An event that was delivered is deleted; after a crash in
between it is delivered again.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from memory_mesh.core.errors import MemoryMeshError, StoreClosed, StoreError
from memory_mesh.core.model import (
    CONTENTS,
    Compare,
    In,
    Json,
    Key,
    Kind,
    Memory,
    Meta,
    QueuedEvent,
    Row,
    all_of,
    batches,
    iso,
)
from memory_mesh.core.model.background import Courier, uncancellable
from memory_mesh.core.ports import Hook
from memory_mesh.core.upkeep.hooks import DELETE, HookEvent, HookState, HookStatus, events_of
from memory_mesh.flows.context import Answer, Context, Hooks, Plan, commit, find_rows
from memory_mesh.flows.search.readable import trusts

_AT_ONCE = 50  # events that are deleted together; after a crash they may be delivered again
_ERASING_SECONDS = 1.0  # how long a delivery waits for another process, which may erase memories
_CLOSING_SECONDS = 2.0  # how long closing waits for events to be delivered
RETRY_SECONDS = 5.0  # how long a retry waits for a delivery that is running
_PREFIX = "hook "
_log = logging.getLogger("memory_mesh")


# --- queueing ---


def run_hooks(hooks: Sequence[Hook]) -> Hooks:
    """Return the hooks of a context, with this flow."""
    return Hooks(listed=hooks, with_events=with_events, deliver=start_written)


def start_written(context: Context, plan: Plan[Any]) -> None:
    """Start the delivery of the events that were written."""
    queued = {str(row.value("hook")) for row in plan.puts if row.kind is Kind.EVENT}
    context.state.couriers.registered.update(queued)
    start(context, queued)


def with_events(context: Context, plan: Plan[Answer]) -> Plan[Answer]:
    """Return a plan with its events added."""
    happened = events_of(plan.puts, plan.deletes)
    if not happened:
        return plan
    erased = tuple(one.memory_id for one in happened if one.event == DELETE)
    known = (
        {meta.id.removeprefix(_PREFIX) for meta in _registered(context)}
        if erased
        else context.state.couriers.registered
    )
    own = {hook.name: hook for hook in context.hooks.listed}
    if not (known or own):
        return plan
    memories = [Memory.of(row) for row in plan.puts if row.kind in CONTENTS]
    trust = {id_: one.value for id_, one in trusts(context, memories).items()}
    # A hook of another program gets erasures too: what it knows of the memory is to be erased.
    receivers = {DELETE: sorted({*known, *own})}
    puts, ms = list[Row](), context.clock()
    for one in happened:
        event_id = context.ids.new("event", context.state.couriers.number(ms))
        for hook in receivers.get(one.event, own):
            event = QueuedEvent(
                id=f"{hook} {event_id}",
                created_at=iso(ms),
                ref=one.memory_id,
                hook=hook,
                action=one.event,
                detail={**one.memory, "trust": trust[one.memory_id]}
                if "content" in one.memory
                else one.memory,
            )
            puts.append(event.row(one.partition))
    for name in own.keys() - known:
        if not (meta := Meta.read(context.store, _PREFIX + name)).revision:
            puts.append(meta.row(asdict(HookState(own[name].folder)), at=iso(ms)))
    old = context.store.ids(Kind.EVENT, In("ref", erased)) if erased else []
    return replace(
        plan,
        puts=[*plan.puts, *puts],
        deletes=[*plan.deletes, *(Key(Kind.EVENT, id_) for id_ in old)],
    )


@contextmanager
def no_entries(context: Context) -> Iterator[None]:
    """Let no process write to Markdown files: what is removed after a write must not be an entry
    about that write."""
    with ExitStack() as stack:
        for name, folder in folders(context).items():
            stack.enter_context(
                context.files.open_hook_files().turn(
                    name, folder, seconds=RETRY_SECONDS, create=False
                )
            )
        yield
    start(context)


def forget(context: Context, memory_ids: Collection[str]) -> None:
    """Remove erased memories from the files of hooks. What fails is repeated when the hook gets
    the erasure."""
    for folder in folders(context).values():
        try:
            context.files.open_hook_files().forget(folder, memory_ids)
        except StoreError as error:
            _log.warning("erased memories may still be in the files of hooks: %s", error)
    try:
        _forget_letters(context, memory_ids)
    except StoreError as error:
        _log.warning("erased memories may still be in the dead letters of hooks: %s", error)


def _forget_letters(context: Context, memory_ids: Collection[str]) -> None:
    context.files.open_hook_files().keep_dead_letters(
        lambda letter: _memory_of(letter) not in memory_ids
    )


# --- delivering ---


def start(context: Context, names: Collection[str] | None = None) -> None:
    """Deliver what waits for the hooks of these names, or for all of them, in the background."""
    for hook in context.hooks.listed:
        if names is None or hook.name in names:
            courier = context.state.couriers.by_hook.setdefault(hook.name, Courier())
            courier.start(partial(_deliver_quietly, context, hook))


def resume(context: Context) -> None:
    """Deliver what an earlier process left. A store that has no file yet, or is only read, is
    left alone."""
    with suppress(StoreError):  # what is wrong with the store is an error of the next call
        context.file.check_writable()
        if context.options.enable_memory and context.file.is_prepared():
            start(
                context,
                {hook.name for hook in context.hooks.listed if _waiting(context, hook.name)},
            )


def close(context: Context) -> None:
    """Let the deliveries end that can end soon; what is left stays queued."""
    couriers = context.state.couriers
    for courier in couriers.by_hook.values():
        courier.closing.set()
    for hook in context.hooks.listed:
        if (one := couriers.by_hook.get(hook.name)) and not one.close(
            _CLOSING_SECONDS / len(couriers.by_hook)
        ):
            # Otherwise a series of short programs would each send the same event and end before the
            # answer.
            with suppress(StoreError):
                _record(context, hook, [], "the program ended before the hook did")
    couriers.stopped = True


def _deliver_quietly(context: Context, hook: Hook, forced: bool) -> float | None:  # noqa: FBT001  (called by `Courier`)
    try:
        return deliver(context, hook, force=forced, wait_seconds=_ERASING_SECONDS)
    except StoreClosed:
        return None
    except MemoryMeshError as error:
        _log.warning("events wait for the hook %s: %s", hook.name, error)
        return None


def deliver(
    context: Context, hook: Hook, *, force: bool = False, wait_seconds: float = 0.0
) -> float | None:
    """Deliver what waits for a hook. Return the seconds until the next attempt; None if nothing
    waits, or others deliver it.

    After a failure nothing is delivered until its time, unless `force` is set. `wait_seconds` is
    how long to wait for others.
    """
    # Looked up again after the last turn: who queued an event during it did not get the turn.
    while waiting := _waiting(context, hook.name):
        for ids in batches(waiting, _AT_ONCE):
            if context.state.couriers.stopped:
                return None
            with context.files.open_hook_files().turn(
                hook.name, hook.folder, seconds=wait_seconds
            ) as is_ours:
                if not is_ours:
                    return None
                delay = _deliver_some(context, hook, ids, force=force)
            if delay is not None:
                return delay
    return None


def _deliver_some(context: Context, hook: Hook, ids: Sequence[str], *, force: bool) -> float | None:
    ms, state = context.clock(), _state(context, hook)[1]
    if (wait := state.wait_ms(ms)) and not force:
        return wait / 1000
    done: list[Row] = []
    for row in context.store.get(Kind.EVENT, ids).values():
        if context.state.couriers.stopped:
            break
        event = HookEvent.of(row)
        try:
            if event.event == DELETE:
                _forget_letters(context, [str(event.memory["id"])])
            hook.deliver(event)
        except (Exception, SystemExit) as error:  # noqa: BLE001  (a hook is the code of others)
            # The message of an unknown error may quote the memory.
            why = (
                str(error)
                if isinstance(error, MemoryMeshError)
                else _os_error(error) or f"unexpected {type(error).__name__}"
            )
            _log.debug("the hook %s failed", hook.name, exc_info=error)
            if (delay := _fail(context, hook, done, row, why)) is not None:
                return delay
            done = []
        else:
            done.append(row)
    _record(context, hook, done, None)
    return None


def _os_error(error: BaseException) -> str:
    return str(error.strerror or "") if isinstance(error, OSError) else ""


def _fail(context: Context, hook: Hook, done: list[Row], row: Row, why: str) -> float | None:
    state = _record(context, hook, done, why)
    if not state.gives_up:
        return state.wait_ms(context.clock()) / 1000
    letter = {
        "hook": hook.name,
        "error": why,
        "failed_at": iso(context.clock()),
        **HookEvent.of(row).as_dict(),
    }
    context.files.open_hook_files().add_dead_letter(
        letter, lambda: bool(context.store.get(Kind.EVENT, [row.id]))
    )
    _commit(context, lambda: Plan(None, deletes=[row.key]))
    _log.warning(
        "the hook %s failed %s times: %s; see memory-mesh hooks status",
        hook.name,
        state.failures,
        why,
    )
    return None


def _record(context: Context, hook: Hook, done: Sequence[Row], error: str | None) -> HookState:
    """Delete what was delivered, and write the state of the hook if it changed. Return the
    state."""
    result: list[HookState] = []

    def decide() -> Plan[None]:
        meta, state = _state(context, hook)
        after = state.after(None, 0) if done else state
        after = after if error is None else after.after(error, context.clock())
        result[:] = [after]
        puts = [] if after == state else [meta.row(asdict(after), at=iso(context.clock()))]
        return Plan(None, puts, [row.key for row in done])

    _commit(context, decide)
    return result[0]


def _commit(context: Context, decide: Callable[[], Plan[None]]) -> None:
    with uncancellable():
        commit(context, decide)


# --- status and retry ---


def status(context: Context) -> list[HookStatus]:
    """Return the hooks of this mesh, and those that other programs use on the store, by name."""
    states = {
        meta.id.removeprefix(_PREFIX): HookState.of(meta.detail) for meta in _registered(context)
    }
    own = {hook.name for hook in context.hooks.listed}
    dead = [letter.get("hook") for letter in context.files.open_hook_files().dead_letters()]
    return [
        HookStatus(
            name=name, configured=name in own, waiting=len(_waiting(context, name)),
            dead_letters=dead.count(name), failures=state.failures,
            next_attempt=iso(state.next_at) if state.failures and state.next_at else None,
            error=state.error,
        )
        for name in sorted({*states, *own})
        for state in (states.get(name, HookState()),)
    ]  # fmt: skip


def retry(context: Context) -> list[HookStatus]:
    """Queue the dead letters of this mesh's hooks again, deliver what waits now, and return the
    status."""
    context.check_enabled()
    for hook in context.hooks.listed:
        _queue_letters(context, hook)
        with uncancellable():  # a cancelled call is no failure of the hook
            deliver(context, hook, force=True, wait_seconds=RETRY_SECONDS)
    return status(context)


def _queue_letters(context: Context, hook: Hook) -> None:
    every = context.files.open_hook_files().dead_letters()
    letters = [letter for letter in every if letter.get("hook") == hook.name and _is_whole(letter)]

    def decide() -> Plan[None]:
        ids = sorted({_memory_of(letter) for letter in letters})
        seen = {
            row.partition: context.store.version(row.partition)
            for row in find_rows(context, ids).values()
        }
        # After the versions: a memory that is erased meanwhile is not queued again.
        known = find_rows(context, ids)
        events = [
            _queued(letter)
            for letter in letters
            if _memory_of(letter) in known or letter.get("event") == DELETE
        ]
        stored = context.store.get(Kind.EVENT, [event.id for event in events])
        puts = [event.row("") for event in events if event.id not in stored]
        meta, state = _state(context, hook)
        if state.failures:
            puts.append(meta.row(asdict(HookState(state.folder)), at=iso(context.clock())))
        return Plan(None, puts, seen={name: version for name, version in seen.items() if puts})

    _commit(context, decide)
    if letters:
        queued = [letter.get("id") for letter in letters]
        context.files.open_hook_files().keep_dead_letters(
            lambda one: one.get("hook") != hook.name or one.get("id") not in queued
        )


def _queued(letter: Mapping[str, Any]) -> QueuedEvent:
    name = letter["hook"]
    return QueuedEvent(
        id=f"{name} {letter['id']}", created_at=letter["at"], ref=_memory_of(letter), hook=name,
        action=letter["event"], detail=letter["memory"],
    )  # fmt: skip


def _is_whole(letter: Mapping[str, Json]) -> bool:
    """Return whether a letter has all that an event needs. People can edit the file."""
    return all(isinstance(letter.get(name), str) for name in ("id", "at", "event")) and bool(
        _memory_of(letter)
    )


def _memory_of(letter: Mapping[str, Json]) -> str:
    memory = letter.get("memory")
    return str(memory.get("id")) if isinstance(memory, dict) else ""


def _waiting(context: Context, name: str) -> list[str]:
    """Return the ids of the events that wait for a hook, oldest first."""
    # Ids are indexed. Those of a hook whose name begins with this one are among them.
    found = context.store.ids(
        Kind.EVENT,
        all_of(Compare("id", ">", f"{name} event_"), Compare("id", "<", f"{name} event`")),
    )
    return sorted(id_ for id_ in found if id_.rpartition(" ")[0] == name)


def _registered(context: Context) -> list[Meta]:
    return Meta.with_prefix(context.store, _PREFIX)


def folders(context: Context) -> dict[str, str]:
    """Return the folders of the hooks that the store knows, by the name of the hook."""
    states = {
        meta.id.removeprefix(_PREFIX): HookState.of(meta.detail) for meta in _registered(context)
    }
    return {name: state.folder for name, state in states.items() if state.folder}


def _state(context: Context, hook: Hook) -> tuple[Meta, HookState]:
    meta = Meta.read(context.store, _PREFIX + hook.name)
    return meta, HookState.of(meta.detail) if meta.revision else HookState(hook.folder)
