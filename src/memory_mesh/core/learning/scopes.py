"""The scope of what is derived from memories: every reader of it sees all of its sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Memory, Reach, Value, reach_of

_WIDEST_FIRST = list(Reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedScope:
    """Who sees a derived memory, besides its user and agent."""

    reach: Reach
    session_id: str | None
    project: str | None

    @classmethod
    def of(cls, sources: Sequence[Memory], *, session_id: Value = None, project: Value = None) -> Self:
        """Return the scope of the narrowest of the sources; `session_id` and `project` are those of the writer, where no source
        restricts them. Raise `InvalidInput` for sources of several projects, which nobody who is limited to one may see."""
        if len(projects := sorted({one.project for one in sources if one.project is not None})) > 1:
            raise InvalidInput(f"the sources belong to {len(projects)} projects", expected="those of one project, or of none")
        narrow = max(sources, key=_narrowness, default=None)
        reach = Reach.GLOBAL if narrow is None else reach_of(narrow.memory_type, narrow.reach)
        session = narrow.session_id if narrow and reach is not Reach.GLOBAL else session_id
        own = projects[0] if projects else project
        return cls(reach=reach, session_id=_text(session), project=_text(own))

    @property
    def columns(self) -> dict[str, Value]:
        """The columns of the derived memory."""
        reach = None if self.reach is Reach.GLOBAL else self.reach.value
        return {"reach": reach, "session_id": self.session_id, "project": self.project}

    def is_within(self, memory: Memory) -> bool:
        """Return whether each reader of this scope sees a memory that the writer sees too."""
        return _narrowness(memory) <= _WIDEST_FIRST.index(self.reach) and memory.project in (None, self.project)

    def contains(self, memory: Memory) -> bool:
        """Return whether each reader of a memory that the writer sees too is within this scope."""
        return _narrowness(memory) >= _WIDEST_FIRST.index(self.reach) and self.project in (None, memory.project)


def by_project(sources: Sequence[Memory]) -> dict[str | None, list[Memory]]:
    """Return the sources for each project that they belong to, those of none in every group; the largest first."""
    projects: list[str | None] = [*sorted({one.project for one in sources if one.project is not None})]
    groups = {name: [one for one in sources if one.project in (None, name)] for name in projects or [None]}
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def _narrowness(memory: Memory) -> int:
    return _WIDEST_FIRST.index(reach_of(memory.memory_type, memory.reach))


def _text(value: Value) -> str | None:
    return None if value is None else str(value)
