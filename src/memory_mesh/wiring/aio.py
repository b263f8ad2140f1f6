"""Run a synchronous face from `async` code: every call in a thread, so that a slow disk does not block the event loop."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from inspect import signature
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, get_origin

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
    """A face whose methods are awaited and whose iterators are asynchronous.

    `tools/stubs.py` writes the signatures of the public subclass into a `.pyi` file.
    """

    def __init__(self, face: "Mesh") -> None:
        self._face = face

    async def __aenter__(self) -> Self:
        await to_thread(self._face.init)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await to_thread(self._face.close)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):  # also a copy in the making, which has no face yet
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        method = getattr(self._face, name)  # for what is missing, the face raises the right error
        iterates = get_origin(signature(method).return_annotation) is Iterator
        return partial(_iterate if iterates else to_thread, method)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._face) if not name.startswith("_"))})


async def _iterate(method: Callable[..., Iterator[Answer]], *args: object, **options: object) -> AsyncIterator[Answer]:
    items = await to_thread(method, *args, **options)
    while (item := await to_thread(next, items, _END)) is not _END:
        yield item  # type: ignore[misc]
