"""`MemoryContextManager`, for conversation loops: recall before each answer, capture after it."""

from collections.abc import Mapping, Sequence

from memory_mesh.api.aio import AsyncProxy, awaited
from memory_mesh.api.handle import Handle
from memory_mesh.api.mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core import errors
from memory_mesh.core.errors import InvalidInput, SettingsError, shown, whole_number
from memory_mesh.core.intake import Metadata, read_interaction
from memory_mesh.core.model import HealthStatus, MemoryRecord, SearchResult
from memory_mesh.flows.search import readable
from memory_mesh.flows.write import conversations, embed


class MemoryContextManager(Handle):
    """The memory of an agent's conversation loop: recall before each answer, capture after it.

    ```python
    with MemoryContextManager({"store": "memory.db", "agent_id": "MyAgent"}) as manager:
        known = manager.recall_memories("when does the key rotate?")
        manager.capture_interaction("When does the key rotate?", "On Mondays.")
    ```
    `config` has the options of `MemoryMesh` and its arguments. Or give the `mesh` to use: the
    manager has its scope and shares its store, and disposing of it leaves the mesh open.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, *, mesh: Mesh | None = None
    ) -> None:
        if config is not None and not isinstance(config, Mapping):
            raise InvalidInput(
                f"config is {shown(config)}",
                expected="a mapping of options; a mesh is given as mesh=…",
            )
        if mesh is not None and not isinstance(mesh, Mesh):
            raise InvalidInput(f"mesh is {shown(mesh)}", expected="a MemoryMesh")
        if config and mesh is not None:
            raise SettingsError("both config and mesh are given", expected="one of them")
        own = MemoryMesh(**config or {}) if mesh is None else mesh  # type: ignore[arg-type]
        super().__init__(own._source, own._scope, None if mesh is None else mesh._root)

    def initialize(self) -> None:
        """Open the store now instead of at the first use, and create its file if there is none."""
        self.init()

    def capture_interaction(
        self, prompt: str, response: str, context: Metadata | None = None
    ) -> MemoryRecord | None:
        """Store a prompt and its response as one memory and return it, or None if it is stored
        already.

        An interaction is stored already if one of the same scope and skill says the same: it
        differs at most in case, punctuation, articles, contractions or polite words. That one is
        counted as observed again. `context` becomes the metadata: `session_id`, `skill_name`,
        `type`, `tags`, … Raises `InvalidInput` for a blank text or invalid metadata.
        """
        here = self._context()
        memory = conversations.capture(here, read_interaction(prompt, response, context))
        return readable.record(here, memory) if memory else None

    def recall_memories(
        self, query: str, *, limit: int = 5, use_cache: bool = True, memory_type: str | None = None,
        skill_name: str | None = None, include_lessons: bool = False,
    ) -> list[SearchResult]:  # fmt: skip
        """Return the memories that are relevant to a query, best first, without those that are
        probably irrelevant.

        `memory_type` and `skill_name` restrict them. Lessons are left out unless `include_lessons`
        is set; then also those that are relevant and have enough confidence are returned, whatever
        the restrictions.
        """
        return conversations.recall(
            self._reading(), query, limit=limit, use_cache=use_cache, memory_type=memory_type,
            skill_name=skill_name, include_lessons=include_lessons,
        )  # fmt: skip

    def format_memories_for_prompt(
        self, memories: Sequence[MemoryRecord], *, max_tokens: int | None = None
    ) -> str:
        """Return memories in their order as data for a language model; an empty text without any.

        They are written as by `MemoryMesh.format_for_model`, with their whole contents. With
        `max_tokens` the text has at most so many tokens, and a long memory is shown by its passage.
        """
        from memory_mesh.core.language.safety.fence import fence_memories  # loads many patterns

        given = errors.listed("memories", memories, expected="a list of memories")
        for memory in given:
            if not isinstance(memory, MemoryRecord):
                raise InvalidInput(
                    f"a memory is {type(memory).__name__}",
                    expected="a memory, as recall_memories returns it",
                )
        budget = None if max_tokens is None else whole_number("max_tokens", max_tokens)
        if not budget:
            given = [
                memory.copied(passage=None) if isinstance(memory, SearchResult) else memory
                for memory in given
            ]
        context = self._context()
        return fence_memories(
            given, context.ids.salt(), max_tokens=budget, count=embed.token_counter(context)
        )

    def health_check(self) -> HealthStatus:
        """Return whether memories can be stored and found, and the problems. A failing store is
        reported, not raised."""
        return conversations.check_health(self._reading)

    def dispose(self) -> None:
        """Write what is pending and close the store, unless others use it. A later call opens it
        again."""
        self.close()


class AsyncMemoryContextManager(AsyncProxy[MemoryContextManager]):
    """`MemoryContextManager` for `async` code: the same methods, awaited."""

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        mesh: Mesh | AsyncMemoryMesh | None = None,
    ) -> None:
        own = mesh._face if isinstance(mesh, AsyncMemoryMesh) else mesh
        super().__init__(MemoryContextManager(config, mesh=own))

    initialize = awaited(MemoryContextManager.initialize)
    capture_interaction = awaited(MemoryContextManager.capture_interaction)
    recall_memories = awaited(MemoryContextManager.recall_memories)
    format_memories_for_prompt = awaited(MemoryContextManager.format_memories_for_prompt)
    health_check = awaited(MemoryContextManager.health_check)
    dispose = awaited(MemoryContextManager.dispose)
