"""Call the method of a mesh that an operation names, with arguments that an interface has read."""

from collections import ChainMap
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING

from memory_mesh.interfaces.render import graph, memories, records
from memory_mesh.interfaces.render.output import Answer
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.api.mesh_methods import Mesh
    from memory_mesh.core.ports import Progress


VIEWS: ChainMap[str, Callable[..., Answer]] = ChainMap(vars(memories), vars(graph), vars(records))


def perform(mesh: "Mesh", call: Call, progress: "Progress") -> Answer:
    """Call the method of the mesh that an operation names, and render its result."""
    operation = call.operation
    view = VIEWS[operation.view]
    arguments = {name: getattr(mesh.reader, column) for name, column in operation.reader.items()}
    arguments |= {**operation.fixed, **call.arguments}
    if operation.progress:
        arguments["progress"] = progress
    result = attrgetter(operation.method)(mesh)(**arguments)
    if operation.formatter:
        shown = memories.for_prompt(result, call.arguments)
        return view(result, getattr(mesh, operation.formatter)(shown, **call.options), call)
    return view(result, call)
