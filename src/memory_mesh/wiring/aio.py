"""Run a synchronous face from `async` code: every call in a thread, so that a slow disk does not block the event loop."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from inspect import getmembers, isfunction
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar, get_origin

from memory_mesh.core.cancel import cancellable

if TYPE_CHECKING:
    from memory_mesh.faces.mesh import Mesh

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
_END = object()


async def to_thread(call: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs) -> Answer:
    """Run a call in a thread. If the task is cancelled, a running call to a language model is stopped too."""
    import asyncio  # 25 ms, and asynchronous programs have loaded it already

    stop = Event()

    def run() -> Answer:
        with cancellable(stop):
            return call(*args, **options)

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        stop.set()
        raise


class AsyncProxy:
    """A face whose methods are awaited and whose iterators are asynchronous. A subclass names the class of its `face`.

    `tools/stubs.py` writes the signatures of the public subclass into a `.pyi` file.
    """

    def __init_subclass__(cls, *, face: type | None = None) -> None:
        # Real methods, not `__getattr__`: `super().add(…)`, `help` and mocks with a spec look them up on the class.
        for name, method in getmembers(face, isfunction) if face else ():
            if not name.startswith("_"):
                returns: object = get_origin(method.__annotations__["return"])
                setattr(cls, name, _iterating(method) if returns is Iterator else _awaiting(method))

    def __init__(self, face: "Mesh") -> None:
        self._face = face

    async def __aenter__(self) -> Self:
        await to_thread(self._face.__enter__)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await to_thread(self._face.close)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # also a copy in the making, which has no face yet
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._face, name)  # the face raises the right error, such as `NotYet`


def _awaiting(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    async def call(self: AsyncProxy, *args: object, **options: object) -> object:
        return await to_thread(method, self._face, *args, **options)

    return call


def _iterating(method: Callable[..., Iterator[object]]) -> Callable[..., object]:
    @wraps(method)
    async def iterate(self: AsyncProxy, *args: object, **options: object) -> AsyncIterator[object]:
        items = await to_thread(method, self._face, *args, **options)
        while (item := await to_thread(next, items, _END)) is not _END:
            yield item

    return iterate
