"""Visibility: the one rule that every read applies. A breach of it leaks memories.

A reader sees only rows of its own user; a reader without a user sees only rows without one. Within
that, the `memory_type` of a row decides who sees it, and its `reach` may narrow this (a lesson
derived from narrower memories):

| reach    | visible to                     | memory types               |
|----------|--------------------------------|----------------------------|
| global   | every agent of the user        | global, reflection, lesson |
| agent    | the same agent                 | agent                      |
| session  | the same agent, same session   | session                    |
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.rows import BY_NAME, Row, Value, fault
from memory_mesh.core.model.where import ANYTHING, Compare, In, IsNull, Or, Where, all_of, equals


class MemoryType(StrEnum):
    """The type of a memory, from RFC-0011."""

    GLOBAL = "global"
    SESSION = "session"
    AGENT = "agent"
    LESSON = "lesson"
    REFLECTION = "reflection"


class Reach(StrEnum):
    """How widely a row is visible, widest first."""

    GLOBAL = "global"
    AGENT = "agent"
    SESSION = "session"


_ORDER = list(Reach)
_BY_TYPE: dict[str, Reach] = {
    **dict.fromkeys(MemoryType, Reach.GLOBAL), MemoryType.AGENT: Reach.AGENT,
    MemoryType.SESSION: Reach.SESSION,
}  # fmt: skip
_BY_NAME: dict[str, Reach] = {reach: reach for reach in Reach}


@dataclass(frozen=True, slots=True)
class Reader:
    """The user, agent and session on whose behalf memories are read and written.

    The project is not part of visibility: it selects what searches and lists show, and new memories
    belong to it. A reader with `only_project` sees no memory of another project, by no method.
    """

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    only_project: bool = False

    def __post_init__(self) -> None:
        for name in ("user_id", "agent_id", "session_id", "project"):
            value = getattr(self, name)
            if value is not None and (wrong := fault(BY_NAME[name], value)):
                raise InvalidInput(wrong)


def reach_of(memory_type: Value, reach: Value) -> Reach:
    """Return the narrower of the reach of the type and the reach of the row. An unknown value,
    which only another program can have written, is the narrowest."""
    by_type = _BY_TYPE.get(str(memory_type), Reach.SESSION) if memory_type else Reach.GLOBAL
    if not reach:
        return by_type
    own = _BY_NAME.get(str(reach), Reach.SESSION)
    return max(by_type, own, key=_ORDER.index)


def visible(reader: Reader, row: Row) -> bool:
    """Return whether the reader may see the row."""
    fields = row.fields
    if fields.get("user_id") != reader.user_id or not _in_only_project(
        reader, fields.get("project")
    ):
        return False
    reach = reach_of(fields.get("memory_type"), fields.get("reach"))
    if reach is Reach.GLOBAL:
        return True
    same_agent = reader.agent_id is not None and fields.get("agent_id") == reader.agent_id
    if reach is Reach.AGENT:
        return same_agent
    return (
        same_agent
        and reader.session_id is not None
        and fields.get("session_id") == reader.session_id
    )


def may_erase(reader: Reader, row: Row) -> bool:
    """Return whether the reader may erase the row: it is visible, or it belongs to the same
    agent in any session."""
    own = row.value("user_id") == reader.user_id and row.value("agent_id") == reader.agent_id
    return (own and _in_only_project(reader, row.value("project"))) or visible(reader, row)


def visible_to(reader: Reader) -> Where:
    """Return `visible` as a condition for stores. A test compares the two in every cell of the
    table."""
    wide_type = Or(
        (
            IsNull("memory_type"),
            In("memory_type", (MemoryType.GLOBAL, MemoryType.REFLECTION, MemoryType.LESSON)),
        )
    )
    cases: list[Where] = [all_of(wide_type, _reaches(Reach.GLOBAL))]
    if reader.agent_id is not None:
        mine = Compare("agent_id", "=", reader.agent_id)
        not_session = Or((wide_type, Compare("memory_type", "=", MemoryType.AGENT)))
        cases.append(all_of(mine, not_session, _reaches(Reach.GLOBAL, Reach.AGENT)))
        if reader.session_id is not None:
            cases.append(all_of(mine, Compare("session_id", "=", reader.session_id)))
    own = equals("user_id", reader.user_id)
    return all_of(In("partition", partitions(reader)), own, Or(tuple(cases)), _only_project(reader))


def _only_project(reader: Reader) -> Where:
    """Return the condition that a memory is of no project that the reader must not see."""
    return in_project(reader.project) if reader.only_project else ANYTHING


def of_user(reader: Reader) -> Where:
    """Return the condition that a memory is of the reader's user, whatever its agent and
    session, and of no project that the reader must not see. Reviews and upkeep act on these."""
    return all_of(equals("user_id", reader.user_id), _only_project(reader))


def in_project(project: str | None) -> Where:
    """Return the condition that a memory belongs to a project or to none; without a project,
    every memory meets it."""
    return (
        ANYTHING if project is None else Or((IsNull("project"), Compare("project", "=", project)))
    )


def not_expired(at: str) -> Where:
    """Return the condition that a memory has not expired at a time."""
    return Or((IsNull("expires_at"), Compare("expires_at", ">", at)))


Period = tuple[str, str]  # the first and the last moment


def valid_in(periods: Sequence[Period]) -> Where:
    """Return the condition that a memory is valid at some moment of one of these periods;
    without periods, every one is."""
    return Or(tuple(_overlaps(*period) for period in periods)) if periods else ANYTHING


def is_valid_in(periods: Sequence[Period], row: Row) -> bool:
    """Return `valid_in` of one row, which is faster than evaluating the condition."""
    begins, ends = row.fields.get("valid_from"), row.fields.get("valid_until")
    if (begins is None and ends is None) or not periods:
        return True
    return any(
        (begins is None or str(begins) <= last) and (ends is None or str(ends) >= first)
        for first, last in periods
    )


def _overlaps(first: str, last: str) -> Where:
    begun, lasting = Compare("valid_from", "<=", last), Compare("valid_until", ">=", first)
    return all_of(Or((IsNull("valid_from"), begun)), Or((IsNull("valid_until"), lasting)))


@lru_cache(maxsize=1024)
def partitions(reader: Reader) -> tuple[str, ...]:
    """Return the partitions that the reader can see: the shared one of the user and the one of
    the agent."""
    shared = partition(reader.user_id, None)
    return (
        (shared,)
        if reader.agent_id is None
        else (shared, partition(reader.user_id, reader.agent_id))
    )


@lru_cache(maxsize=1024)
def partition(user_id: str | None, agent_id: str | None) -> str:
    """Return the name of the partition of a user's agent, or of the partition that all agents of
    the user share."""
    return json.dumps([user_id, agent_id], ensure_ascii=False)


def partition_for(
    user_id: str | None, agent_id: str | None, memory_type: str | None, reach: str | None
) -> str:
    """Return the partition that stores a row of this scope."""
    shared = reach_of(memory_type, reach) is Reach.GLOBAL
    return partition(user_id, None if shared else agent_id)


def _in_only_project(reader: Reader, project: Value) -> bool:
    return not reader.only_project or project in (None, reader.project)


def _reaches(*reaches: Reach) -> Where:
    return Or((IsNull("reach"), In("reach", reaches)))
