"""Decay: archive memories that have become weak, and remove links to memories that are gone.

Everything is decided first and written in batches, each of them one change of the store, so a run
that was interrupted is continued by the next one. A memory that was changed or used since it was
judged is left alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memory_mesh.core.errors import InvalidInput, WrongStatus, shown
from memory_mesh.core.intake import is_note, is_of_traces
from memory_mesh.core.model import (
    CONTENTS,
    Change,
    Forgotten,
    In,
    Key,
    Kind,
    Link,
    Memory,
    MemoryType,
    Reader,
    Status,
    all_of,
    batches,
    change_id,
    equals,
    of_user,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.upkeep import ARCHIVE_BELOW, ERASE_BELOW, Decayed, strength_of
from memory_mesh.core.upkeep.decay import ARCHIVED, REINFORCED, UNARCHIVED
from memory_mesh.flows.claims.claims import check_alone
from memory_mesh.flows.claims.review import Case, owner_of
from memory_mesh.flows.context import Context, Plan, commit, intact
from memory_mesh.flows.search import usage
from memory_mesh.flows.upkeep.erase import delete as erase_rows
from memory_mesh.flows.upkeep.erase import free
from memory_mesh.flows.write.revisions import archive

_AT_ONCE = 500
ACTION = "decay"  # in the history of a memory that decay archived


@dataclass(frozen=True, slots=True)
class Weak:
    """A weak memory as it was judged."""

    strength: float
    revision: int
    accesses: int
    owner: Reader
    status: str


def decay(
    context: Context,
    *,
    dry_run: object = False,
    delete: object = False,
    progress: Progress = no_progress,
) -> Decayed:
    """Archive the user's memories that are too weak, erase the weakest if `delete` is set, and
    remove broken links."""
    for name, value in (("dry_run", dry_run), ("delete", delete)):
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} is {shown(value)}", expected="True or False")
    context.check_enabled()
    weak, examined = find_weak(context, erases=bool(delete), progress=progress)
    doomed = {id_: one for id_, one in weak.items() if delete and one.strength < ERASE_BELOW}
    fading = {
        id_: one for id_, one in weak.items() if id_ not in doomed and one.status == Status.ACTIVE
    }
    links = _broken_links(context)
    if dry_run:
        return Decayed(
            examined=examined,
            archived=(*fading,),
            erased=(*doomed,),
            links=len(links),
            dry_run=True,
        )
    removed = sum(
        commit(context, partial(_plan_links, context, batch)) for batch in batches(links, _AT_ONCE)
    )
    archived = archive_weak(context, fading, progress)
    return Decayed(
        examined=examined,
        archived=tuple(archived),
        erased=_erase(context, doomed, progress),
        links=removed,
    )


def archive_one(context: Context, memory_id: str, reason: str | None = None) -> Memory:
    """Archive an active or disputed memory of the user, also a pinned one."""

    def decide() -> Plan[Memory]:
        case = Case.read(context, memory_id, reason)
        if case.memory.status not in (Status.ACTIVE, Status.DISPUTED):
            expected = "an active or disputed memory"
            raise WrongStatus(
                f"{memory_id} is {case.memory.status}",
                expected=expected,
                remedy="a review rejects a quarantined one",
            )
        case.revise(case.memory, ARCHIVED, why=case.reason, status=Status.ARCHIVED.value)
        return case.plan(case.changed[0])

    return commit(context, decide)


def unarchive(context: Context, memory_id: str) -> Memory:
    """Make an archived memory of the user active again, unless an active claim excludes it. Its
    age begins anew."""

    def decide() -> Plan[Memory]:
        case = Case.read(context, memory_id)
        if case.memory.status != Status.ARCHIVED:
            raise WrongStatus(
                f"{memory_id} is {case.memory.status}, not archived",
                remedy="history shows what became of it",
            )
        active = replace(case.memory, status=Status.ACTIVE.value)
        check_alone(replace(context, reader=owner_of(active)), active)
        case.revise(case.memory, UNARCHIVED, why=None, status=active.status)
        return case.plan(case.changed[0])

    return commit(context, decide)


# --- judging ---


def find_weak(
    context: Context, *, erases: bool = False, progress: Progress = no_progress
) -> tuple[dict[str, Weak], int]:
    """Return the user's memories that are too weak to keep, and how many were examined.

    Pinned memories, and notes, traces and lessons, which have a retention of their own, are not
    examined. To erase, those that decay archived earlier are examined too.
    """
    statuses = (Status.ACTIVE, Status.ARCHIVED) if erases else (Status.ACTIVE,)
    ids = context.store.ids(Kind.MEMORY, all_of(of_user(context.reader), In("status", statuses)))
    weak: dict[str, Weak] = {}
    examined = 0
    for batch in batches(sorted(ids), _AT_ONCE):
        check_cancelled()
        found = _examined(context, batch)
        examined += len(found)
        progress("judging", examined, len(ids))
        weak |= _judge(context, found)
    return weak, examined


def _examined(context: Context, ids: Sequence[str]) -> list[Memory]:
    rows = intact(context, context.store.get(Kind.MEMORY, ids).values())
    every = [
        one
        for one in map(Memory.of, rows)
        if not one.pinned and one.memory_type != MemoryType.LESSON
    ]
    every = [one for one in every if not is_note(one) and not is_of_traces(one)]
    last = [
        change_id(memory.id, memory.revision)
        for memory in every
        if memory.status == Status.ARCHIVED
    ]
    faded = {
        row.value("ref")
        for row in context.store.get(Kind.CHANGE, last).values()
        if row.value("action") == ACTION
    }
    return usage.with_counts(
        context, [one for one in every if one.status == Status.ACTIVE or one.id in faded]
    )


def _judge(context: Context, memories: Sequence[Memory]) -> dict[str, Weak]:
    """Return those that are too weak. Links and history can only make one stronger, so they are
    read for the others alone."""
    ms = context.clock()
    doubtful = [memory for memory in memories if strength_of(memory, ms) < ARCHIVE_BELOW]
    links, changes = _count_links(context, doubtful), _lasting(context, doubtful)
    strengths = {
        one.id: strength_of(one, ms, links=links[one.id], changes=changes[one.id])
        for one in doubtful
    }
    return {
        one.id: Weak(strengths[one.id], one.revision, one.access_count, owner_of(one), one.status)
        for one in doubtful
        if strengths[one.id] < ARCHIVE_BELOW
    }


def _lasting(context: Context, memories: Sequence[Memory]) -> Mapping[str, Sequence[Change]]:
    """Return the changes that make memories last longer, by memory."""
    found: defaultdict[str, list[Change]] = defaultdict(list)
    changed = tuple(memory.id for memory in memories if memory.revision > 1)
    where = all_of(In("ref", changed), In("action", (REINFORCED, UNARCHIVED)))
    for row in context.store.find(Kind.CHANGE, where) if changed else ():
        found[str(row.value("ref"))].append(Change.of(row))
    return found


# --- links ---


def _count_links(context: Context, memories: Sequence[Memory]) -> Mapping[str, int]:
    """Return how many other memories each one is linked with, in either direction."""
    linked: defaultdict[str, set[str]] = defaultdict(set)
    ids = tuple(memory.id for memory in memories)
    # Each of the two queries uses an index; one query with an `Or` reads every link.
    rows = (
        [row for end in ("ref", "target") for row in context.store.find(Kind.LINK, In(end, ids))]
        if ids
        else []
    )
    for link in _without_broken(context, map(Link.of, rows)):
        linked[link.ref].add(link.target)
        linked[link.target].add(link.ref)
    return defaultdict(int, {id_: len(others) for id_, others in linked.items()})


def _broken_links(context: Context) -> list[str]:
    """Return the user's links from or to a memory that is gone."""
    broken: list[str] = []
    for batch in batches(
        sorted(context.store.ids(Kind.LINK, equals("user_id", context.reader.user_id))), _AT_ONCE
    ):
        check_cancelled()
        broken += _broken(context, batch)
    return broken


def _broken(context: Context, ids: Sequence[str]) -> list[str]:
    links = [Link.of(row) for row in context.store.get(Kind.LINK, ids).values()]
    whole = {link.id for link in _without_broken(context, links)}
    return [link.id for link in links if link.id not in whole]


def _without_broken(context: Context, links: Iterable[Link]) -> list[Link]:
    every = list(links)
    ends = tuple(sorted({id_ for link in every for id_ in (link.ref, link.target)}))
    known = {
        id_
        for batch in batches(ends, _AT_ONCE)
        for kind in CONTENTS
        for id_ in context.store.ids(kind, In("id", tuple(batch)))
    }
    return [link for link in every if {link.ref, link.target} <= known]


def _plan_links(context: Context, ids: Sequence[str]) -> Plan[int]:
    """Return the plan that removes the links of a batch that are still broken."""
    seen = {
        row.partition: context.store.version(row.partition)
        for row in context.store.get(Kind.LINK, ids).values()
    }
    broken = _broken(context, ids)
    return Plan(len(broken), deletes=[Key(Kind.LINK, id_) for id_ in broken], seen=seen)


# --- writing ---


def archive_weak(
    context: Context, weak: Mapping[str, Weak], progress: Progress = no_progress
) -> list[str]:
    """Archive weak memories that were not changed or used since they were judged, and return
    their ids."""

    def reason(memory: Memory) -> str | None:
        return (
            f"strength {weak[memory.id].strength:.3f}"
            if _is_as_judged(context, memory, weak)
            else None
        )

    archived: list[str] = []
    for batch in batches(weak, _AT_ONCE):
        check_cancelled()
        archived += archive(context, Kind.MEMORY, batch, reason, action=ACTION)
        progress("archiving", len(archived), len(weak))
    return archived


def _erase(context: Context, doomed: Mapping[str, Weak], progress: Progress) -> tuple[str, ...]:
    by_owner: defaultdict[Reader, list[str]] = defaultdict(list)
    for id_, judged in doomed.items():
        by_owner[judged.owner].append(id_)
    proof = Forgotten()
    for owner, ids in by_owner.items():
        for batch in batches(ids, _AT_ONCE):
            check_cancelled()
            as_judged = partial(_is_as_judged, context, judged=doomed)
            proof += erase_rows(replace(context, reader=owner), batch, only=as_judged)
            progress("erasing", len(proof.memories), len(doomed))
    if doomed:
        free(context, proof)
    return tuple(id_ for id_ in proof.memories if id_ in doomed)


def _is_as_judged(context: Context, memory: Memory, judged: Mapping[str, Weak]) -> bool:
    """Return whether a memory was neither changed nor used since it was judged."""
    before, (used,) = judged[memory.id], usage.with_counts(context, [memory])
    return (memory.revision, used.access_count) == (before.revision, before.accesses)
