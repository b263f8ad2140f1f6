"""What the clients of remote models share: how they ask, and what that may take.

Providers that speak one protocol still differ in what they take. So what is optional is asked for, and left out where a server
says that it does not take it.
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Protocol

from memory_mesh.core.errors import CallRefused
from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import Prompt

_BYTES_PER_TOKEN = 3
_NOT_TAKEN = (400, 422)
_UNKNOWN = re.compile(
    r"unsupported|not.supported|unknown|unrecogni[sz]ed|unexpected|not.permitted|not.allowed|extra", re.IGNORECASE
)


class Post(Protocol):
    """A JSON object to a path, and one back. `net.client.Door` is one; it raises `CallError` or `Cancelled`."""

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]: ...


@dataclass(slots=True)
class Adapting:
    """Posts, and remembers for as long as it lives which parameters the server does not take.

    **optional** are left out where they are refused by name. **renamed** are asked for by their other name instead: a limit is
    never left out, for somebody pays.
    """

    door: Post
    optional: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    _changed: dict[str, str | None] = field(default_factory=dict)

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """Ask, and at once again without what is refused. A change is remembered once it has helped."""
        changed = dict(self._changed)
        while True:
            try:
                answer = self.door.post(path, _fitted(body, changed))
            except CallRefused as refused:
                name = self._refused_name(refused, body.keys() - changed.keys())
                if name is None:
                    raise
                changed[name] = self.renamed.get(name)
            else:
                self._changed = changed  # one assignment: other threads see the old or the new
                return answer

    def _refused_name(self, refused: CallRefused, sent: Set[str]) -> str | None:
        if refused.status not in _NOT_TAKEN:
            return None
        said = json.dumps(refused.said)
        named = [name for name in sorted(sent) if re.search(rf"(?<!\w){name}(?!\w)", said)]
        if left_out := [name for name in named if name in self.optional]:
            return left_out[0]
        # That a limit is too high names it too; the other name would not make it lower.
        return next((name for name in named if name in self.renamed and _UNKNOWN.search(said)), None)


def _fitted(body: Mapping[str, Json], changed: Mapping[str, str | None]) -> dict[str, Json]:
    return {wanted: value for name, value in body.items() if (wanted := changed.get(name, name)) is not None}


def careful(text: str) -> int:
    """How many tokens a text may be, rather too many than too few: a third of its UTF-8 bytes.

    A quarter of the characters is right for English. In scripts without blanks each character is a token or more, and is written
    in three bytes; whoever counts characters there sends four times what fits, or what the cap allows.
    """
    return -(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN)


def most_sent(prompt: Prompt) -> int:
    """What an ask may take to be read. A schema is read by the model too."""
    schema = json.dumps(prompt.schema) if prompt.schema else ""
    return careful(prompt.system) + careful(prompt.user) + careful(schema)
