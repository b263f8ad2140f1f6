"""What the MCP server offers beside tools: memories as resources, and prompts that begin with what is known.

Every text of a memory is fenced as data.
"""

from collections.abc import Mapping
from secrets import token_hex

from mcp_types import Prompt, PromptArgument, Resource, ResourceTemplate

from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.model import Status
from memory_mesh.core.safety.fence import fence_memories
from memory_mesh.faces.mesh import Mesh
from memory_mesh.interfaces.mcp.tools import NOTHING, fenced

MIME_TYPE = "text/plain"
NOT_FOUND = -32002  # the protocol's code of an unknown resource
_MEMORY, _RECENT = "memory-mesh://memory/", "memory-mesh://recent"
_LISTED = 20
TEMPLATE = ResourceTemplate(
    uri_template=f"{_MEMORY}{{id}}", name="memory", description="One memory, by its id.", mime_type=MIME_TYPE
)
PROMPTS = [
    Prompt(
        name="lessons",
        description="Begin a task with the lessons of earlier mistakes that apply to it.",
        arguments=[PromptArgument(name="task", description="what is to be done", required=True)],
    ),
    Prompt(name="session_start", description="Begin a session with the most important memories.", arguments=[]),
]


def listed(mesh: Mesh) -> list[Resource]:
    """Return the latest memories as resources. They are named by id, since a name is not shown as data."""
    about = f"The {_LISTED} latest memories."
    recent = Resource(uri=_RECENT, name="recent", title="Recent memories", description=about, mime_type=MIME_TYPE)
    memories = mesh.get_all(_LISTED)
    return [recent, *(Resource(uri=_MEMORY + one.id, name=one.id, mime_type=MIME_TYPE) for one in memories)]


def read(mesh: Mesh, uri: str) -> str:
    """Return the text of a resource. Raises `NotFound` if there is none, or if it is not visible."""
    if uri == _RECENT:
        return fence_memories(mesh.get_all(_LISTED), token_hex(8)) or NOTHING
    memory = mesh.get(uri.removeprefix(_MEMORY)) if uri.startswith(_MEMORY) else None
    if memory is None or memory.status != Status.ACTIVE:  # what is quarantined or archived reaches no prompt
        raise NotFound(f"there is no resource {shown(uri)}")
    return fence_memories([memory], token_hex(8))


def prompt(mesh: Mesh, name: str, arguments: Mapping[str, str]) -> str:
    """Return the text of a prompt. Raises `InvalidInput` for an unknown one, and without the task that it is about."""
    if name == "session_start":
        return mesh.lane.session_context() or NOTHING
    if name != "lessons":
        raise InvalidInput(f"unknown prompt {shown(name)}", expected=", ".join(one.name for one in PROMPTS))
    if not arguments.get("task", "").strip():
        raise InvalidInput("task is missing", expected="what is to be done")
    lessons = mesh.query_lessons(arguments["task"])
    lines = [f"- {one.preventative_rule} (applies to: {one.applicable_scope}; severity: {one.severity})" for one in lessons]
    known = f"Lessons of earlier mistakes:\n{fenced(chr(10).join(lines))}" if lines else "There are no lessons about this yet."
    return f"Task: {arguments['task']}\n\n{known}"
