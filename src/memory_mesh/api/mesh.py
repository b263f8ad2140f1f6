"""The constructors of `MemoryMesh` and `AsyncMemoryMesh`.

Their types for editors and checkers are generated into `mesh.pyi`.
"""

import re
from inspect import Parameter, Signature
from os import PathLike
from typing import TYPE_CHECKING

from memory_mesh.api.aio import AsyncProxy
from memory_mesh.api.build import (
    as_embedder,
    as_store,
    check_objects,
    check_options,
    checked_hooks,
    is_texts,
)
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.settings import load
from memory_mesh.api.shared import Objects, Source
from memory_mesh.core import errors
from memory_mesh.core.errors import SettingsError, shown
from memory_mesh.core.model import GivenClock
from memory_mesh.core.options import NAMES, SCOPE_NAMES, by_option
from memory_mesh.core.ports import ChatModel, IdSource, Step, Store, no_step
from memory_mesh.stores import path_url

if TYPE_CHECKING:
    from memory_mesh.api.asynchronous import (
        AsyncMemoryGraph,
        AsyncMemoryLane,
        AsyncMemoryNotes,
        AsyncMemoryTraces,
    )

# Options that may also be given as a ready-made object.
_OBJECTS = ("store", "embedder")


class MemoryMesh(Mesh):
    """Memory for AI agents, in a file or in the process.

    ```python
    with MemoryMesh("memory.db", agent_id="planner") as mesh:
        mesh.add("The deploy key rotates on Mondays.")
        mesh.search("when does the key rotate?")
    ```
    `store` is a path or a URL. `store` and `embedder` may also be objects. All meshes of a process
    on one file share the open store and the embedder. Options that are not given come from the
    environment, `memory-mesh.toml` or the defaults; see `memory-mesh config show`.
    """

    def __init__(
        self,
        store: str | PathLike[str] | Store | None = None,
        *,
        chat: ChatModel | None = None,
        clock: GivenClock | None = None,
        ids: IdSource | None = None,
        step: Step = no_step,
        **options: object,
    ) -> None:
        options["store"] = _path_url(store) if isinstance(store, PathLike) else store
        given = by_option({name: value for name, value in options.items() if value is not None})
        objects = {
            name: given.pop(name) for name in _OBJECTS if not isinstance(given.get(name, ""), str)
        }
        if {"store", "db_dir"} <= {*given, *objects}:
            raise SettingsError("both store and db_dir are given", expected="one of them")
        check_objects(chat=chat, clock=clock, ids=ids, step=step)
        listed = given.get("writethrough")
        hooks = None if is_texts(listed) else given.pop("writethrough")
        settings = load(given)
        check_options(settings.options)
        made = Objects(
            store=as_store(objects["store"]) if "store" in objects else None,
            embedder=as_embedder(objects["embedder"]) if "embedder" in objects else None,
            chat=chat,
            clock=clock,
            ids=ids,
            step=step,
            hooks=checked_hooks(hooks, settings),
        )
        super().__init__(
            Source(settings, made), {name: getattr(settings.options, name) for name in SCOPE_NAMES}
        )


def _path_url(path: PathLike[str]) -> str:
    text = errors.path("store", path)
    if re.match(r"\w+:/", text):  # pathlib makes sqlite:/x.db of sqlite:///x.db
        raise SettingsError(
            f"store is the path {shown(text, max_length=120)}",
            expected="a path of a file, or a URL as a text",
        )
    return path_url(text)


# What `help` and `inspect.signature` show: every option by name.
MemoryMesh.__signature__ = Signature(  # type: ignore[attr-defined]
    [Parameter("store", Parameter.POSITIONAL_OR_KEYWORD, default=None)]
    + [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None)
        for name in (*NAMES, "chat", "clock", "ids")
        if name != "store"
    ]
    + [Parameter("step", Parameter.KEYWORD_ONLY, default=no_step)]
)


class AsyncMemoryMesh(AsyncProxy, face=MemoryMesh):
    """`MemoryMesh` for `async` code: the same options and methods.

    Methods are awaited, iterators are read with `async for`, and the mesh is opened with `async
    with`.
    """

    def __init__(self, store: str | PathLike[str] | Store | None = None, **options: object) -> None:
        super().__init__(MemoryMesh(store, **options))  # type: ignore[arg-type]

    @property
    def graph(self) -> "AsyncMemoryGraph":
        """The memories as a graph: claims that do not contradict each other, trust, conflicts
        and links."""
        from memory_mesh.api.asynchronous import AsyncMemoryGraph  # most meshes do not use it

        return AsyncMemoryGraph(self._face.graph)  # type: ignore[attr-defined]  # the face is a mesh

    @property
    def lane(self) -> "AsyncMemoryLane":
        """The memories as a lane of learnings: ten types, decay, feedback and entities, filled
        at the end of sessions."""
        from memory_mesh.api.asynchronous import AsyncMemoryLane

        return AsyncMemoryLane(self._face.lane)  # type: ignore[attr-defined]

    @property
    def notes(self) -> "AsyncMemoryNotes":
        """The notes of a folder: Markdown files that are injected into the prompts of agents
        when they fit the task."""
        from memory_mesh.api.asynchronous import AsyncMemoryNotes

        return AsyncMemoryNotes(self._face.notes)  # type: ignore[attr-defined]

    @property
    def traces(self) -> "AsyncMemoryTraces":
        """The traces of executions and the experience log: what was done, how it went, and what
        was done for similar goals."""
        from memory_mesh.api.asynchronous import AsyncMemoryTraces

        return AsyncMemoryTraces(self._face.traces)  # type: ignore[attr-defined]


AsyncMemoryMesh.__signature__ = MemoryMesh.__signature__  # type: ignore[attr-defined]
