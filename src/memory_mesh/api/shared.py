"""What the meshes of a process share: open stores, and what belongs to equal options.

Meshes on one file share its store and index. If all their options but the scope are equal, they
also share the embedder, caches, queues and counters. The first mesh opens, and the last one that is
closed closes. What only garbage used is closed when another mesh is opened, or at the end of the
program: until then a mesh with equal options can use it again. A mesh on a store in memory, on a
store object or with steps of its own shares with its scoped handles only.

Nothing that depends on an option crosses between meshes whose options differ: no cached answer, no
query that waits to be masked, no count against a daily limit.
"""

import atexit
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import RLock
from time import time_ns
from typing import Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

from memory_mesh.api.build import build_context, file_of, open_configured
from memory_mesh.api.settings import Settings
from memory_mesh.core.errors import InvalidInput, SettingsError, StoreError
from memory_mesh.core.model import GivenClock, Ids, as_clock
from memory_mesh.core.model.background import Judging
from memory_mesh.core.options import EMBEDDING_NAMES, NAMES, SCOPE_NAMES, Options
from memory_mesh.core.ports import ChatModel, Embedder, Hook, IdSource, Step, Store, no_step
from memory_mesh.core.text import lazy_property, shown_url
from memory_mesh.flows.context import Context, Queues, State
from memory_mesh.flows.search import usage
from memory_mesh.index import LocalIndex, ServerIndex, make_index
from memory_mesh.stores import normal_url, store_file
from memory_mesh.stores.registry import is_read_only
from memory_mesh.system import fork_safe

# Options of the store and its index. Meshes on one file must agree on them and on the embedder.
_STORE_NAMES = ("busy_seconds", "stemmer_language", "index_max_memories", "index_memory_mb")
_DEFAULTS = Options()
_CLOSING_SECONDS = 5.0  # how long closing waits for a comparison of memories

Value = TypeVar("Value")


class Shared(ABC, Generic[Value]):
    """A value that its first user opens and its last user closes. A user that is garbage does
    not count."""

    def __init__(self) -> None:
        self.value: Value | None = None  # None: closed
        # By id: a user need not be hashable.
        self._users: WeakValueDictionary[int, object] = WeakValueDictionary()
        self._lock = fork_safe(RLock())

    def use(self, user: object) -> Value:
        """Return the value; open it first if it is closed."""
        with self._lock:
            if self.value is None:
                self.value = self._open()
            self._users[id(user)] = user
            return self.value

    def release(self, user: object = None) -> None:
        """End the use of a user, and close the value if it has no other user."""
        with self._lock:
            self._users.pop(id(user), None)
            if self.value is not None and not self._users:
                value, self.value = self.value, None
                self._close(value)

    @property
    def is_abandoned(self) -> bool:
        """Whether it is open and all its users are garbage."""
        return self.value is not None and not self._users

    @abstractmethod
    def _open(self) -> Value: ...

    @abstractmethod
    def _close(self, value: Value) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The objects that the caller made, instead of what the options would name."""

    store: Store | None = None
    embedder: Embedder | None = None
    chat: ChatModel | None = None
    clock: GivenClock | None = None
    ids: IdSource | None = None
    step: Step = no_step
    hooks: tuple[Hook, ...] = ()


class Source:
    """Where a mesh and its scoped handles get their context from."""

    def __init__(self, settings: Settings, objects: Objects) -> None:
        # Each handle has its own.
        no_scope = {name: getattr(_DEFAULTS, name) for name in SCOPE_NAMES}
        self.settings = replace(settings, options=replace(settings.options, **no_scope))
        self.objects = objects
        self._own: SharedContext | None = None  # if it is not shared with other meshes

    @property
    def url(self) -> str:
        """The URL of the store for display, without its passwords."""
        if self.objects.store is not None:
            return shown_url(self.objects.store.url)
        try:
            return shown_url(normal_url(self.settings.store_url))
        except InvalidInput:  # an impossible path, which is refused when it is opened
            return self.settings.store_url

    def find(self) -> "SharedContext":
        """Return the context of these settings, shared with other meshes of the process. It may
        be open or closed."""
        # The place is found each time: a link may lead to another file than before.
        place = self._file and (os.path.realpath(self._file[0]), *self._file[1:])
        with _lock:
            if place is None:
                self._own = self._own or SharedContext(self, SharedStore(), None)
                return self._own
            store = _stores.get(place)
            if store is None or store.was_replaced():
                store = _stores[place] = SharedStore()
            context = store.contexts.get(self._key) or SharedContext(self, store, self._key)
        for other in list(_opened):
            if other is not context and other.is_abandoned:
                other.release()
        return context

    @lazy_property
    def _file(self) -> tuple[str, bool] | None:
        """The file of the store and how it is opened; None if the store is not shared with other
        meshes."""
        settings, private = (
            self.settings,
            self.objects.store is not None or self.objects.step is not no_step,
        )
        file = (
            None
            if private or not settings.options.enable_memory
            else store_file(settings.store_url)
        )
        if file is None:
            return None
        return str(settings.cwd / file), is_read_only(normal_url(settings.store_url))

    @lazy_property
    def _key(self) -> Hashable:
        """What is equal for meshes that share a context: all options but the scope, and the
        objects of the caller."""
        options = [getattr(self.settings.options, name) for name in NAMES]
        given = (
            self.objects.embedder,
            self.objects.chat,
            self.objects.clock,
            self.objects.ids,
            *self.objects.hooks,
        )
        folders = (self.settings.home, self.settings.caches, self.settings.cwd)
        return json.dumps(options, sort_keys=True, default=repr), *folders, *map(id, given)


class SharedStore(Shared[tuple[Store, LocalIndex | ServerIndex]]):
    """A store and its index, and the contexts over it."""

    _source: Source

    def __init__(self) -> None:
        super().__init__()
        self.contexts: WeakValueDictionary[Hashable, SharedContext] = WeakValueDictionary()
        with _lock:
            _all.add(self)

    def use_with(self, user: object, source: Source) -> tuple[Store, LocalIndex | ServerIndex]:
        """Return the store and its index. Raise `SettingsError` if they are open with other
        options."""
        with self._lock:
            if self.value is None:
                self._source = source
            elif source is not self._source:
                _check_equal(self._source, source)
            return self.use(user)

    def was_replaced(self) -> bool:
        """Return whether another file is now at the place of the open one. Its users get an
        error until they close it."""
        value = self.value
        return value is not None and file_of(value[0]).was_replaced()

    def flush(self) -> None:
        """Write what the searches of all contexts left."""
        with _lock:
            contexts = [context.value for context in self.contexts.values()]
        for context in contexts:
            if context is not None:
                usage.flush(context)

    def reset_after_fork(self) -> None:
        """Replace the locks of the index and the queues of the contexts."""
        if self.value is not None:
            self.value[1].reset_after_fork()
        for context in self.contexts.values():
            context.reset_after_fork()

    def _open(self) -> tuple[Store, LocalIndex | ServerIndex]:
        source = self._source
        store = source.objects.store if source.settings.options.enable_memory else None
        store = open_configured(source.settings, source.objects.step) if store is None else store
        return store, make_index(store, source.settings.options)

    def _close(self, value: tuple[Store, LocalIndex | ServerIndex]) -> None:
        store, index = value
        try:
            index.close()
        finally:
            if store is not self._source.objects.store:
                store.close()


class SharedContext(Shared[Context]):
    """The context of meshes with equal options; only the reader differs from mesh to mesh."""

    def __init__(self, source: Source, store: SharedStore, key: Hashable) -> None:
        super().__init__()
        self._source, self._store, self._key = source, store, key
        store.contexts[key] = self
        # Outlives a close: a search that ends later is recorded by the next opening.
        self._queues = Queues()

    def reset_after_fork(self) -> None:
        """Start with empty queues and caches: the parent writes its own entries, and their locks
        may be held forever."""
        self._queues = Queues()
        if self.value is not None:
            state = State(ledger=self.value.state.ledger, queues=self._queues)
            self.value = replace(self.value, state=state)

    def flush(self) -> None:
        """Write what the searches of all meshes on the store left."""
        self._store.flush()

    def _open(self) -> Context:
        objects = self._source.objects
        store, index = self._store.use_with(self, self._source)
        try:
            context = build_context(
                self._source.settings,
                store=store,
                index=index,
                embedder=objects.embedder,
                chat=objects.chat,
                clock=as_clock(objects.clock, time_ns),
                ids=Ids() if objects.ids is None else objects.ids,
                step=objects.step,
                hooks=objects.hooks,
            )
            if context.options.must_exist:
                context.file.require_file()
            # The thread of an earlier opening was stopped.
            self._queues = replace(self._queues, changes=Judging())
            context.state.queues = self._queues
            if context.hooks.listed:
                from memory_mesh.flows.upkeep import hooks  # most meshes have none

                hooks.resume(context)
        except BaseException:
            self._store.release(self)
            raise
        if self._key is not None:
            _opened.add(self)
        return context

    def _close(self, value: Context) -> None:
        _opened.discard(self)
        try:
            _close_queues(value)
        finally:
            self._store.release(self)


class GivenContext:
    """The source of meshes over a context that the caller made and keeps open."""

    def __init__(self, context: Context) -> None:
        self.value: Context | None = context
        self._context, self.url = context, shown_url(context.store.url)

    def find(self) -> "GivenContext":
        return self

    def use(self, user: object) -> Context:
        return self._context

    def release(self, user: object) -> None:
        """Do nothing."""

    def flush(self) -> None:
        usage.flush(self._context)


def _close_queues(context: Context) -> None:
    """Write what searches left, and end the threads."""
    context.state.queues.changes.courier.close(_CLOSING_SECONDS)
    usage.close(context)
    if context.hooks.listed:
        from memory_mesh.flows.upkeep import hooks

        hooks.close(context)


def _check_equal(first: Source, second: Source) -> None:
    for name in (*_STORE_NAMES, *EMBEDDING_NAMES):
        (one, shown_one), (other, shown_other) = _option(first, name), _option(second, name)
        if one != other:
            what = (
                f"{second.url} is open in this process with {name} {shown_one}, and is opened "
                f"again with {name} {shown_other}"
            )
            raise SettingsError(
                what,
                expected=f"one {name} for all meshes on a store",
                remedy="close the other meshes first",
            )


def _option(source: Source, name: str) -> tuple[object, str]:
    """Return the value of an option and its text for display. An embedder object counts as the
    name of its model."""
    embedder, options = source.objects.embedder, source.settings.options
    if embedder is None or name not in EMBEDDING_NAMES:
        return getattr(options, name), options.shown(name)
    return (
        (embedder.model, embedder.model) if name == "embedder" else (getattr(_DEFAULTS, name), "-")
    )


# --- the resources of this process ---

_lock = fork_safe(RLock())
_stores: WeakValueDictionary[Hashable, SharedStore] = WeakValueDictionary()
_all: WeakSet[SharedStore] = WeakSet()
# Those that meshes may share, so that garbage does not take their queues with it.
_opened: set[SharedContext] = set()


@atexit.register
def _flush_all() -> None:
    """Write what the searches of meshes left that were never closed, unless their file is gone."""
    for value in [context.value for context in _opened]:
        with suppress(StoreError):
            if value is not None and not value.file.was_replaced():
                _close_queues(value)


def _reset_after_fork() -> None:
    """Keep stores and models in a forked child, without the locks of the parent's threads.
    Stores connect again by themselves."""
    for store in list(_all):
        store.reset_after_fork()


if sys.platform != "win32":  # Windows has no fork
    os.register_at_fork(after_in_child=_reset_after_fork)
