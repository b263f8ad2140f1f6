"""`MemoryMesh` and `AsyncMemoryMesh`: the constructors. Their types for editors and checkers are generated into `mesh.pyi`."""

from functools import partial
from inspect import Parameter, Signature
from time import time_ns

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.model import GivenClock, Ids, as_clock
from memory_mesh.core.options import NAMES, checked_name
from memory_mesh.core.ports import ChatModel, IdSource, Step, no_step
from memory_mesh.faces.mesh import Mesh
from memory_mesh.settings import load
from memory_mesh.wiring.aio import AsyncProxy
from memory_mesh.wiring.build import as_embedder, as_store, build_context, check_objects, check_options

# Options that may also be given as a ready-made object.
_OBJECTS = ("store", "embedder")


class MemoryMesh(Mesh):
    """One memory for one agent.

    ```python
    with MemoryMesh(store="sqlite:///memory.db", agent_id="planner") as mesh:
        mesh.add("The deploy key rotates on Mondays.")
        mesh.search("when does the key rotate?")
    ```
    `store` and `embedder` may be objects instead of names. Options that are not given come from the environment,
    `memory-mesh.toml` or the defaults; see `memory-mesh config show`.
    """

    def __init__(
        self,
        *,
        chat: ChatModel | None = None,
        clock: GivenClock | None = None,
        ids: IdSource | None = None,
        step: Step = no_step,
        **options: object,
    ) -> None:
        given = {checked_name(name): value for name, value in options.items() if value is not None}
        objects = {name: given.pop(name) for name in _OBJECTS if not isinstance(given.get(name, ""), str)}
        if {"store", "db_dir"} <= {*given, *objects}:
            raise SettingsError("both store and db_dir are given", expected="one of them")
        check_objects(chat=chat, clock=clock, ids=ids, step=step)
        settings = load(given)
        check_options(settings.options)
        build = partial(
            build_context,
            settings,
            given_store=as_store(objects["store"]) if "store" in objects else None,
            embedder=as_embedder(objects["embedder"]) if "embedder" in objects else None,
            chat=chat,
            clock=as_clock(clock, time_ns),
            ids=Ids() if ids is None else ids,
            step=step,
        )
        super().__init__(build)


# What `help` and `inspect.signature` show: every option by name.
MemoryMesh.__signature__ = Signature(  # type: ignore[attr-defined]
    [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in (*NAMES, "chat", "clock", "ids")]
    + [Parameter("step", Parameter.KEYWORD_ONLY, default=no_step)]
)


class AsyncMemoryMesh(AsyncProxy, face=MemoryMesh):
    """`MemoryMesh` for `async` code: the same options and methods.

    Methods are awaited, iterators are read with `async for`, and the mesh is opened with `async with`.
    """

    def __init__(self, **options: object) -> None:
        super().__init__(MemoryMesh(**options))  # type: ignore[arg-type]


AsyncMemoryMesh.__signature__ = MemoryMesh.__signature__  # type: ignore[attr-defined]
