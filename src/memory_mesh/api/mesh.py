"""`MemoryMesh` and `AsyncMemoryMesh`: their constructors, which take every option by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from os import PathLike
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from memory_mesh.api.aio import AsyncProxy, awaited, iterated
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
from memory_mesh.core.options import NAMES, SCOPE_NAMES, Options, by_option
from memory_mesh.core.ports import ChatModel, Embedder, Hooks, IdSource, Step, Store, no_step
from memory_mesh.stores import path_url

if TYPE_CHECKING:
    from memory_mesh.api.asynchronous import (
        AsyncMemoryGraph,
        AsyncMemoryLane,
        AsyncMemoryNotes,
        AsyncMemoryTraces,
    )

    @dataclass(frozen=True, kw_only=True)
    class Arguments(Options):
        """The arguments of a mesh, as type checkers see them: the options, and what may be given
        as an object."""

        store: str | PathLike[str] | Store | None = field(default=None, kw_only=False)  # type: ignore[assignment]
        agent_id: str | None = None  # type: ignore[assignment]
        embedder: str | Embedder | None = None  # type: ignore[assignment]
        writethrough: Hooks | None = None  # type: ignore[assignment]
        chat: ChatModel | None = None
        clock: GivenClock | None = None
        ids: IdSource | None = None
        step: Step = no_step
else:
    Arguments = Options

# Options that may also be given as a ready-made object.
_OBJECTS = ("store", "embedder")
# What `help` and `inspect.signature` show: every option by name.
_SIGNATURE = Signature(
    [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    + [Parameter("store", Parameter.POSITIONAL_OR_KEYWORD, default=None)]
    + [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None)
        for name in (*NAMES, "chat", "clock", "ids")
        if name != "store"
    ]
    + [Parameter("step", Parameter.KEYWORD_ONLY, default=no_step)]
)
Given = ParamSpec("Given")


def takes(
    arguments: Callable[Given, object],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, Given], None]]:
    """Declare that a constructor takes the arguments of a mesh."""

    def declare(constructor: Any) -> Any:
        constructor.__signature__ = _SIGNATURE
        return constructor

    return declare


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

    @takes(Arguments)
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


class AsyncMemoryMesh(AsyncProxy[MemoryMesh]):
    """`MemoryMesh` for `async` code: the same options and methods.

    Methods are awaited, iterators are read with `async for`, and the mesh is opened with `async
    with`.
    """

    @takes(Arguments)
    def __init__(self, store: str | PathLike[str] | Store | None = None, **options: Any) -> None:
        super().__init__(MemoryMesh(store, **options))

    @property
    def graph(self) -> "AsyncMemoryGraph":
        """The memories as a graph: claims that do not contradict each other, trust, conflicts
        and links."""
        from memory_mesh.api.asynchronous import AsyncMemoryGraph  # most meshes do not use it

        return AsyncMemoryGraph(self._face.graph)

    @property
    def lane(self) -> "AsyncMemoryLane":
        """The memories as a lane of learnings: ten types, decay, feedback and entities, filled
        at the end of sessions."""
        from memory_mesh.api.asynchronous import AsyncMemoryLane

        return AsyncMemoryLane(self._face.lane)

    @property
    def notes(self) -> "AsyncMemoryNotes":
        """The notes of a folder: Markdown files that are injected into the prompts of agents
        when they fit the task."""
        from memory_mesh.api.asynchronous import AsyncMemoryNotes

        return AsyncMemoryNotes(self._face.notes)

    @property
    def traces(self) -> "AsyncMemoryTraces":
        """The traces of executions and the experience log: what was done, how it went, and what
        was done for similar goals."""
        from memory_mesh.api.asynchronous import AsyncMemoryTraces

        return AsyncMemoryTraces(self._face.traces)

    add = awaited(Mesh.add)
    ingest = add
    add_many = awaited(Mesh.add_many)
    ingest_dir = awaited(Mesh.ingest_dir)
    extract = awaited(Mesh.extract)
    update = awaited(Mesh.update)
    pin = awaited(Mesh.pin)
    forget = awaited(Mesh.forget)
    erase = awaited(Mesh.erase)
    delete = awaited(Mesh.delete)
    delete_all = awaited(Mesh.delete_all)
    end_session = awaited(Mesh.end_session)
    get = awaited(Mesh.get)
    get_all = awaited(Mesh.get_all)
    history = awaited(Mesh.history)
    sightings = awaited(Mesh.sightings)
    search = awaited(Mesh.search)
    explain = awaited(Mesh.explain)
    changes = awaited(Mesh.changes)
    confirm_change = awaited(Mesh.confirm_change)
    undo_change = awaited(Mesh.undo_change)
    reembed = awaited(Mesh.reembed)
    stats = awaited(Mesh.stats)
    users = awaited(Mesh.users)
    check_models = awaited(Mesh.check_models)
    clear_cache = awaited(Mesh.clear_cache)
    get_cache_stats = awaited(Mesh.get_cache_stats)
    compact = awaited(Mesh.compact)
    export = iterated(Mesh.export)
    import_memories = awaited(Mesh.import_memories)
    export_store = iterated(Mesh.export_store)
    import_file = awaited(Mesh.import_file)
    restore = awaited(Mesh.restore)
    backup = awaited(Mesh.backup)
    format_results = awaited(Mesh.format_results)
    format_for_model = awaited(Mesh.format_for_model)
    distill_lesson = awaited(Mesh.distill_lesson)
    query_lessons = awaited(Mesh.query_lessons)
    get_memories_by_pattern = awaited(Mesh.get_memories_by_pattern)
    reflect = awaited(Mesh.reflect)
    synthesize = awaited(Mesh.synthesize)
    insert_heritage = awaited(Mesh.insert_heritage)
    heartbeat = awaited(Mesh.heartbeat)
    heartbeat_log = awaited(Mesh.heartbeat_log)
    hooks_status = awaited(Mesh.hooks_status)
    retry_hooks = awaited(Mesh.retry_hooks)
    distill = awaited(Mesh.distill)
    ingest_skill = awaited(Mesh.ingest_skill)
    sync_skills = awaited(Mesh.sync_skills)
    search_skills = awaited(Mesh.search_skills)
    list_skills = awaited(Mesh.list_skills)
    get_skill = awaited(Mesh.get_skill)
    update_skill_reliability = awaited(Mesh.update_skill_reliability)
    prune_skills = awaited(Mesh.prune_skills)
    lesson_to_skill = awaited(Mesh.lesson_to_skill)
    verify = awaited(Mesh.verify)
    audit_heads = awaited(Mesh.audit_heads)
    audit_anchor = awaited(Mesh.audit_anchor)
    audit_rekey = awaited(Mesh.audit_rekey)
    audit_log = awaited(Mesh.audit_log)
    audit_export = iterated(Mesh.audit_export)
    evaluate = awaited(Mesh.evaluate)
