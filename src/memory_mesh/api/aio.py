"""Run a synchronous face from `async` code: every call in a thread.

So a slow disk does not block the event loop.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from copy import copy
from functools import wraps
from inspect import getmembers, isfunction
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar, get_origin

from memory_mesh.core.model.background import Written, cancellable, check_cancelled

if TYPE_CHECKING:
    from memory_mesh.api.handle import Handle

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
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


class AsyncProxy:
    """A face whose methods are awaited and whose iterators are asynchronous. A subclass names the
    class of its `face`.

    A context manager is entered with `async with`. A method that returns another face, such as
    `scoped`, is not awaited: it opens nothing.

    `tools/stubs.py` writes the signatures of the public subclass into a `.pyi` file.
    """

    def __init_subclass__(cls, *, face: type | None = None) -> None:
        # Real methods, not `__getattr__`: `super().add(…)`, `help` and mocks with a spec look them
        # up on the class.
        for name, method in getmembers(face, isfunction) if face else ():
            if not name.startswith("_"):
                returns: object = method.__annotations__["return"]
                wrapped = (
                    _handing if returns is Self else _BY_RESULT.get(get_origin(returns), _awaiting)
                )
                setattr(cls, name, wrapped(method))

    def __init__(self, face: "Handle") -> None:
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

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # also a copy in the making, which has no face yet
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._face, name)  # the face knows the method for a name of another library


def _awaiting(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    async def call(self: AsyncProxy, *args: object, **options: object) -> object:
        return await to_thread(method, self._face, *args, **options)

    return call


def _handing(method: Callable[..., "Handle"]) -> Callable[..., object]:
    @wraps(method)
    def call(self: AsyncProxy, *args: object, **options: object) -> AsyncProxy:
        handle = copy(self)
        handle._face = method(self._face, *args, **options)
        return handle

    return call


def _iterating(method: Callable[..., Iterator[object]]) -> Callable[..., object]:
    @wraps(method)
    async def iterate(self: AsyncProxy, *args: object, **options: object) -> AsyncIterator[object]:
        items = await to_thread(method, self._face, *args, **options)
        while (item := await to_thread(next, items, _END)) is not _END:
            yield item

    return iterate


def _entering(method: Callable[..., AbstractContextManager[object]]) -> Callable[..., object]:
    @wraps(method)
    @asynccontextmanager
    async def enter(self: AsyncProxy, *args: object, **options: object) -> AsyncIterator[object]:
        manager = await to_thread(method, self._face, *args, **options)
        entered = await to_thread(manager.__enter__)
        try:
            yield entered
        except BaseException as error:
            if not await to_thread(manager.__exit__, type(error), error, error.__traceback__):
                raise
        else:
            await to_thread(manager.__exit__, None, None, None)

    return enter


_BY_RESULT: "dict[object, Callable[..., Callable[..., object]]]" = {
    Iterator: _iterating,
    AbstractContextManager: _entering,
}
