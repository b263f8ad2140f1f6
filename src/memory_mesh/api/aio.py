"""Run a synchronous face from `async` code: every call in a thread.

So a slow disk does not block the event loop.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    suppress,
)
from contextvars import copy_context
from copy import copy
from functools import wraps
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from memory_mesh.api.handle import Handle
from memory_mesh.core.model.background import Written, cancellable, check_cancelled

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Proxy = TypeVar("Proxy", bound="AsyncProxy[Any]")
Face = TypeVar("Face", bound=Handle)
_END = object()


async def to_thread(
    call: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs
) -> Answer:
    """Run a call in a thread. If the task is cancelled, the call is stopped before its next write.

    The `CancelledError` is raised when the thread has ended, and a note of it lists what had been
    written by then.
    """
    import asyncio  # 25 ms, and asynchronous programs have loaded it already

    stop, running = Event(), Event()
    written = Written()

    def run() -> Answer:
        nonlocal written
        running.set()
        with cancellable(stop) as written:
            check_cancelled()
            return call(*args, **options)

    # Not `asyncio.to_thread` in a task: who cancels all tasks would cancel it too, and the thread
    # would go on unseen.
    thread = asyncio.get_running_loop().run_in_executor(None, copy_context().run, run)
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError as error:
        stop.set()
        if not running.is_set():  # it waits for a free thread; if it gets one now, it stops at once
            thread.cancel()
        while not thread.done():
            # Cancelled again: what is written is known only when the thread has ended.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([thread])
        if not thread.cancelled():
            thread.exception()  # the caller is told of the cancellation only
        parts = (("stored", written.stored), ("erased", written.erased))
        if listed := [f"{verb} {', '.join(dict.fromkeys(ids))}" for verb, ids in parts if ids]:
            error.add_note(f"memory-mesh had {' and '.join(listed)} before the call was cancelled")
        raise


# --- methods ---
# Each makes the asynchronous form of a method of a face. Checkers read the types of both.


def awaited(
    method: Callable[Concatenate[Any, Given], Answer],
) -> Callable[Concatenate[Any, Given], Coroutine[Any, Any, Answer]]:
    """Return a method that is awaited."""

    @wraps(method)
    async def call(
        self: "AsyncProxy[Any]", /, *args: Given.args, **options: Given.kwargs
    ) -> Answer:
        return await to_thread(method, self._face, *args, **options)

    return call


def handed(
    method: Callable[Concatenate[Any, Given], Handle],
) -> Callable[Concatenate[Proxy, Given], Proxy]:
    """Return a method that makes another handle. It is not awaited: it opens nothing."""

    @wraps(method)
    def call(self: Proxy, /, *args: Given.args, **options: Given.kwargs) -> Proxy:
        handle = copy(self)
        handle._face = method(self._face, *args, **options)
        return handle

    return call


def iterated(
    method: Callable[Concatenate[Any, Given], Iterator[Answer]],
) -> Callable[Concatenate[Any, Given], AsyncIterator[Answer]]:
    """Return a method that is read with `async for`."""

    @wraps(method)
    async def iterate(
        self: "AsyncProxy[Any]", /, *args: Given.args, **options: Given.kwargs
    ) -> AsyncIterator[Answer]:
        items = await to_thread(method, self._face, *args, **options)
        while (item := await to_thread(next, items, _END)) is not _END:
            yield item  # type: ignore[misc]  # it is not the end

    return iterate


def entered(
    method: Callable[Concatenate[Any, Given], AbstractContextManager[Answer]],
) -> Callable[Concatenate[Any, Given], AbstractAsyncContextManager[Answer]]:
    """Return a method that is entered with `async with`."""

    @wraps(method)
    @asynccontextmanager
    async def enter(
        self: "AsyncProxy[Any]", /, *args: Given.args, **options: Given.kwargs
    ) -> AsyncIterator[Answer]:
        manager = await to_thread(method, self._face, *args, **options)
        inner = await to_thread(manager.__enter__)
        try:
            yield inner
        except BaseException as error:
            if not await to_thread(manager.__exit__, type(error), error, error.__traceback__):
                raise
        else:
            await to_thread(manager.__exit__, None, None, None)

    return enter


# --- faces ---


class AsyncProxy(Generic[Face]):
    """A face whose methods are awaited and whose iterators are asynchronous.

    A subclass lists the methods of its face. They are real methods, not found by `__getattr__`:
    `super().add(…)`, `help`, type checkers and mocks with a spec look them up on the class.
    """

    def __init__(self, face: Face) -> None:
        self._face = face

    def __repr__(self) -> str:
        return f"{type(self).__name__}{repr(self._face).removeprefix(type(self._face).__name__)}"

    async def __aenter__(self) -> Self:
        await to_thread(self._face.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await to_thread(self._face.close)

    if not TYPE_CHECKING:  # otherwise type checkers would accept every misspelt method

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):  # also a copy in the making, which has no face yet
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            # The face knows the method for a name of another library.
            return getattr(self._face, name)

    scoped = handed(Handle.scoped)
    init = awaited(Handle.init)
    close = awaited(Handle.close)
