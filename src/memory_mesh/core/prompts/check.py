"""The smallest thing that can be asked of a language model: does it answer, and in the form that it was asked for?"""

from memory_mesh.core.errors import AnswerUnreadable
from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import Prompt, Reply
from memory_mesh.core.prompts.answers import read_object

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}


def build_prompt() -> Prompt:
    """A question that takes a few tokens."""
    return Prompt(
        operation="check",
        system='You check a connection. Answer with JSON and nothing else: {"ready": true}',
        user="Are you ready?",
        schema=SCHEMA,
        max_tokens=256,  # a model that thinks first takes more than the answer
    )


def read(reply: Reply) -> bool:
    """What it said of itself."""
    ready = read_object(reply.text).get("ready")
    if not isinstance(ready, bool):
        raise AnswerUnreadable("the model answered in another form than it was asked for", expected='{"ready": true}')
    return ready
