"""The constructors of `MemoryContextManager` and `AsyncMemoryContextManager`.

Their types are generated into `context_manager.pyi`.
"""

from collections.abc import Mapping

from memory_mesh.api.aio import AsyncProxy
from memory_mesh.api.conversations import Conversations
from memory_mesh.api.mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, SettingsError, shown


class MemoryContextManager(Conversations):
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


class AsyncMemoryContextManager(AsyncProxy, face=MemoryContextManager):
    """`MemoryContextManager` for `async` code: the same methods, awaited."""

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        mesh: Mesh | AsyncMemoryMesh | None = None,
    ) -> None:
        own = mesh._face if isinstance(mesh, AsyncMemoryMesh) else mesh  # type: ignore[attr-defined]  # its stub does not show it
        super().__init__(MemoryContextManager(config, mesh=own))
