"""Digests: a memory that quotes the main sentences of a group of linked memories.

A digest is a reflection with links to its sources, so it is as narrow as they are, trusted no more than the least trusted one,
and loses the words of a source that is erased. A memory with a digest is not digested again, so a second run makes none.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.checks import whole_number
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.graph import connected, link
from memory_mesh.core.model import (
    In,
    Kind,
    Link,
    Memory,
    MemoryType,
    Reach,
    Reader,
    Status,
    all_of,
    batches,
    equals,
    iso,
    of_user,
    partitions,
    reach_of,
)
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.upkeep import Compressed
from memory_mesh.flows.archive import archive
from memory_mesh.flows.context import Context, Plan, check_texts, commit, intact
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.prepare import prepare
from memory_mesh.flows.reflect import SYNTHESIZE, as_text, check_sources, draw, plan_reflection, source_text
from memory_mesh.flows.trust import records

DIGEST_OF = "digest_of"
METHODS = ("extractive",)
_NOT_RELATED = ("supersedes", DIGEST_OF)
_MAX_CLUSTER = 50  # memories of one digest
_AT_ONCE = 500
_SKIPPED = (MemoryType.LESSON, MemoryType.REFLECTION)


def auto_compress(
    context: Context, *, max_digests: object = 5, min_cluster_size: object = 3, archive_originals: object = False,
    agent: str | None = None, method: object = "extractive", progress: Progress = no_progress,
) -> Compressed:  # fmt: skip
    """Store digests of the largest clusters, of all agents of the user or of one. Archive what has a digest, if asked."""
    most, size = whole_number("max_digests", max_digests), whole_number("min_cluster_size", min_cluster_size, min_=2)
    if not isinstance(archive_originals, bool):
        raise InvalidInput(f"archive_originals is {shown(archive_originals)}", expected="True or False")
    if method not in METHODS:
        raise InvalidInput(f"method is {shown(method)}", expected=f"one of {', '.join(METHODS)}")
    if agent is not None:
        check_texts(agent_id=agent)
    context.check_enabled()
    digests: list[Memory] = []
    for cluster in find_clusters(context, min_size=size, agent=agent):
        check_cancelled()
        if digest := digest_cluster(context, cluster):
            digests.append(digest)
            progress("digesting", len(digests), most)
        if len(digests) == most:
            break
    archived: list[str] = []
    if archive_originals:
        originals = sorted(_digested(context) & _scopes(context, agent).keys())
        archived = archive(context, Kind.MEMORY, originals, lambda memory: None if memory.pinned else "it has a digest")
    return Compressed(digests=tuple(records(context, digests)), archived=tuple(archived))


def find_clusters(context: Context, *, min_size: int, agent: str | None = None) -> list[list[str]]:
    """Return the groups of linked active memories of one scope that have no digest, the largest first."""
    scopes, done = _scopes(context, agent), _digested(context)
    found = (
        (each.ref, each.target, 1.0 if each.similarity is None else each.similarity)
        for each in _links(context)
        if each.link_type not in _NOT_RELATED and done.isdisjoint((each.ref, each.target))
        if (scope := scopes.get(each.ref)) and scope == scopes.get(each.target)
    )
    return [group for group in connected(found, max_size=_MAX_CLUSTER) if len(group) >= min_size]


def _scopes(context: Context, agent: str | None) -> dict[str, tuple[Reach, Reader]]:
    """Return who sees each memory that may be digested, by id: active ones that are valid now, no lessons, no reflections."""
    moment, kept = iso(context.clock()), dict[tuple[Reach, Reader], tuple[Reach, Reader]]()
    own = [of_user(context.reader), equals("status", Status.ACTIVE)]
    ids = context.store.ids(Kind.MEMORY, all_of(*own, *([] if agent is None else [equals("agent_id", agent)])))
    scopes: dict[str, tuple[Reach, Reader]] = {}
    for batch in batches(sorted(ids), _AT_ONCE):
        check_cancelled()
        for memory in map(Memory.of, intact(context, context.store.get(Kind.MEMORY, batch).values())):
            ends = [end for end in (memory.valid_until, memory.expires_at) if end]
            if memory.memory_type not in _SKIPPED and all(end >= moment for end in ends):
                scope = scope_of(context, memory)
                scopes[memory.id] = kept.setdefault(scope, scope)
    return scopes


def scope_of(context: Context, memory: Memory) -> tuple[Reach, Reader]:
    """Return how widely a memory is seen, and who writes a digest of it: its agent, or for a global one the caller."""
    reach = reach_of(memory.memory_type, memory.reach)
    agent = context.reader.agent_id if reach is Reach.GLOBAL else memory.agent_id
    return reach, Reader(memory.user_id, agent, memory.session_id if reach is Reach.SESSION else None, memory.project)


def _digested(context: Context, ids: Sequence[str] | None = None) -> set[str]:
    """Return the memories, of these or of the user, that an active digest is linked to."""
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for each in _links(context, ids):
        if each.link_type == DIGEST_OF:
            targets[each.ref].add(each.target)
    active = equals("status", Status.ACTIVE)
    groups = (all_of(In("id", tuple(batch)), active) for batch in batches(sorted(targets), _AT_ONCE))
    return {target for where in groups for digest in context.store.ids(Kind.MEMORY, where) for target in targets[digest]}


def _links(context: Context, targets: Sequence[str] | None = None) -> Iterator[Link]:
    """Yield the user's links, or those to these memories; some at a time are in memory."""
    if targets is not None:
        yield from map(Link.of, context.store.find(Kind.LINK, In("target", tuple(targets))))
        return
    ids = context.store.ids(Kind.LINK, equals("user_id", context.reader.user_id))
    for batch in batches(sorted(ids), _AT_ONCE):
        check_cancelled()
        yield from map(Link.of, context.store.get(Kind.LINK, batch).values())


def digest_cluster(context: Context, ids: Sequence[str]) -> Memory | None:
    """Store the digest of a cluster. Return None if there is no sentence to quote, or if another process made one."""
    rows = context.store.get(Kind.MEMORY, ids)
    sources = [Memory.of(row) for row in intact(context, rows.values())]
    owner = replace(context, reader=scope_of(context, sources[0])[1], chat=None)
    task = replace(SYNTHESIZE, max_statements=min(SYNTHESIZE.max_statements, ceil(len(sources) / 2)))
    found = [source_text(memory, 1.0) for memory in sources]
    drawn = draw(owner, task, found)
    if not drawn.statements:
        return None
    text = as_text(owner, task, found, drawn, sources)
    metadata = {**(text.metadata if isinstance(text.metadata, dict) else {}), **_columns(sources)}
    prepared, vectors = prepare(owner, [replace(text, metadata=metadata)])[0], Vectors()

    def decide() -> Plan[Memory | None]:
        seen = {name: owner.store.version(name) for name in partitions(owner.reader)}
        check_sources(owner, sources)
        if _digested(owner, ids):
            return Plan(None)
        plan = plan_reflection(owner, task, prepared, sources, frozenset(ids), vectors)
        links = [link(plan.answer, source, DIGEST_OF, owner.clock()).row(plan.answer.partition) for source in sources]
        return Plan(plan.answer, [*plan.puts, *links], seen=seen)

    return commit(owner, decide)


def _columns(sources: Sequence[Memory]) -> dict[str, object]:
    """Return the highest importance of the sources and all their tags."""
    importance = max((one.importance for one in sources if one.importance is not None), default=None)
    tags = list(dict.fromkeys(tag for one in sources for tag in one.tags))
    return {**({} if importance is None else {"importance": importance}), **({"tags": tags} if tags else {})}
