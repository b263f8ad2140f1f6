"""Consolidation: merge duplicates, settle contradictions, make digests, archive what is outdated.

Each phase first lists its steps, which a dry run returns. A step is one change of the store,
decided again when it is written, so a run may be interrupted, and a second run finds nothing left
to do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from math import ceil
from typing import Any

from memory_mesh.core.audit import Entry
from memory_mesh.core.claims import Claim, Outcome, Trust, Verdict, Window, overlapping
from memory_mesh.core.errors import InvalidInput, shown, whole_number
from memory_mesh.core.graph import connected, link
from memory_mesh.core.intake import Terms
from memory_mesh.core.intake.similar import is_near_duplicate, same_words
from memory_mesh.core.model import (
    DAY_MS,
    Change,
    In,
    IsNull,
    Kind,
    Link,
    Memory,
    MemoryType,
    Not,
    Reach,
    Reader,
    Row,
    Status,
    all_of,
    batches,
    change_id,
    equals,
    iso,
    of_user,
    partitions,
    reach_of,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.upkeep import Compressed, Consolidated, Step
from memory_mesh.flows.audit.chains import own_audit_rows
from memory_mesh.flows.claims.claims import Claims, schemas
from memory_mesh.flows.claims.review import owner_of, rows_about
from memory_mesh.flows.context import Context, Plan, check_texts, commit, intact
from memory_mesh.flows.graph.links import cosine
from memory_mesh.flows.learning.reflect import (
    SYNTHESIZE,
    as_text,
    check_sources,
    draw,
    plan_reflection,
    source_text,
)
from memory_mesh.flows.search.readable import records, trusts
from memory_mesh.flows.upkeep.decay import archive_weak, find_weak
from memory_mesh.flows.write.embed import Vectors
from memory_mesh.flows.write.prepare import prepare
from memory_mesh.flows.write.revisions import archive, revise

# --- digests ---
# A digest quotes the main sentences of a group of linked memories. It is a reflection with links to
# its sources, so it is as narrow as they are, trusted no more than the least trusted one, and loses
# the words of a source that is erased. A memory with a digest is not digested again, so a second
# run makes none.

DIGEST_OF = "digest_of"
METHODS = ("extractive",)
_NOT_RELATED = ("supersedes", DIGEST_OF)
_MAX_CLUSTER = 50  # memories of one digest
_AT_ONCE = 500
_SKIPPED = (MemoryType.LESSON, MemoryType.REFLECTION)


def auto_compress(
    context: Context, *, max_digests: object = 5, min_cluster_size: object = 3,
    archive_originals: object = False, agent: str | None = None, method: object = "extractive",
    progress: Progress = no_progress,
) -> Compressed:  # fmt: skip
    """Store digests of the largest clusters, of all agents of the user or of one. Archive what
    has a digest, if asked."""
    most, size = (
        whole_number("max_digests", max_digests),
        whole_number("min_cluster_size", min_cluster_size, min_=2),
    )
    if not isinstance(archive_originals, bool):
        raise InvalidInput(
            f"archive_originals is {shown(archive_originals)}", expected="True or False"
        )
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
        archived = archive(
            context,
            Kind.MEMORY,
            originals,
            lambda memory: None if memory.pinned else "it has a digest",
        )
    return Compressed(digests=tuple(records(context, digests)), archived=tuple(archived))


def find_clusters(context: Context, *, min_size: int, agent: str | None = None) -> list[list[str]]:
    """Return the groups of linked active memories of one scope that have no digest, the largest
    first."""
    scopes, done = _scopes(context, agent), _digested(context)
    found = (
        (each.ref, each.target, 1.0 if each.similarity is None else each.similarity)
        for each in _links(context)
        if each.link_type not in _NOT_RELATED and done.isdisjoint((each.ref, each.target))
        if (scope := scopes.get(each.ref)) and scope == scopes.get(each.target)
    )
    return [group for group in connected(found, max_size=_MAX_CLUSTER) if len(group) >= min_size]


def _scopes(context: Context, agent: str | None) -> dict[str, tuple[Reach, Reader]]:
    """Return who sees each memory that may be digested, by id: active ones that are valid now,
    no lessons, no reflections."""
    moment, kept = iso(context.clock()), dict[tuple[Reach, Reader], tuple[Reach, Reader]]()
    own = [of_user(context.reader), equals("status", Status.ACTIVE)]
    ids = context.store.ids(
        Kind.MEMORY, all_of(*own, *([] if agent is None else [equals("agent_id", agent)]))
    )
    scopes: dict[str, tuple[Reach, Reader]] = {}
    for batch in batches(sorted(ids), _AT_ONCE):
        check_cancelled()
        for memory in map(
            Memory.of, intact(context, context.store.get(Kind.MEMORY, batch).values())
        ):
            ends = [end for end in (memory.valid_until, memory.expires_at) if end]
            if memory.memory_type not in _SKIPPED and all(end >= moment for end in ends):
                scope = scope_of(context, memory)
                scopes[memory.id] = kept.setdefault(scope, scope)
    return scopes


def scope_of(context: Context, memory: Memory) -> tuple[Reach, Reader]:
    """Return how widely a memory is seen, and who writes a digest of it: its agent, or for a
    global one the caller."""
    reach = reach_of(memory.memory_type, memory.reach)
    agent = context.reader.agent_id if reach is Reach.GLOBAL else memory.agent_id
    return reach, Reader(
        memory.user_id, agent, memory.session_id if reach is Reach.SESSION else None, memory.project
    )


def _digested(context: Context, ids: Sequence[str] | None = None) -> set[str]:
    """Return the memories, of these or of the user, that an active digest is linked to."""
    targets: defaultdict[str, set[str]] = defaultdict(set)
    for each in _links(context, ids):
        if each.link_type == DIGEST_OF:
            targets[each.ref].add(each.target)
    active = equals("status", Status.ACTIVE)
    groups = (
        all_of(In("id", tuple(batch)), active) for batch in batches(sorted(targets), _AT_ONCE)
    )
    return {
        target
        for where in groups
        for digest in context.store.ids(Kind.MEMORY, where)
        for target in targets[digest]
    }


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
    """Store the digest of a cluster. Return None if there is no sentence to quote, or if another
    process made one."""
    rows = context.store.get(Kind.MEMORY, ids)
    sources = [Memory.of(row) for row in intact(context, rows.values())]
    owner = replace(context.with_models(chat=None), reader=scope_of(context, sources[0])[1])
    task = replace(
        SYNTHESIZE, max_statements=min(SYNTHESIZE.max_statements, ceil(len(sources) / 2))
    )
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
        links = [
            link(plan.answer, source, DIGEST_OF, owner.clock()).row(plan.answer.partition)
            for source in sources
        ]
        return Plan(plan.answer, [*plan.puts, *links], seen=seen)

    return commit(owner, decide)


def _columns(sources: Sequence[Memory]) -> dict[str, object]:
    """Return the highest importance of the sources and all their tags."""
    importance = max(
        (one.importance for one in sources if one.importance is not None), default=None
    )
    tags = list(dict.fromkeys(tag for one in sources for tag in one.tags))
    return {
        **({} if importance is None else {"importance": importance}),
        **({"tags": tags} if tags else {}),
    }


# --- the phases ---

PHASES = ("dedupe", "contradictions", "corroboration", "compress", "prune")
# The lowest cosines of duplicates, and of memories that corroborate each other.
SAME, ALIKE = 0.95, 0.90
_OLD_DAYS, OUTDATED_DAYS = 30, 90
_CORROBORATES = "corroborates"
_MAX_COMPARED = 20  # memories with the same words that one is compared with


def consolidate(
    context: Context, *, dry_run: object = False, max_digests: object = 5,
    min_cluster_size: object = 3, progress: Progress = no_progress,
) -> Consolidated:  # fmt: skip
    """Run the five phases in their order on the memories of the user, or return what each would
    do now."""
    if not isinstance(dry_run, bool):
        raise InvalidInput(f"dry_run is {shown(dry_run)}", expected="True or False")
    most, size = (
        whole_number("max_digests", max_digests),
        whole_number("min_cluster_size", min_cluster_size, min_=2),
    )
    context.check_enabled()
    phases: dict[str, Callable[[], Iterator[Step]]] = {
        "dedupe": lambda: _dedupe(context, write=not dry_run),
        "contradictions": lambda: _contradictions(context, write=not dry_run),
        "corroboration": lambda: _corroboration(context, write=not dry_run),
        "compress": lambda: _compress(context, most, size, write=not dry_run),
        "prune": lambda: _prune(context, write=not dry_run),
    }
    steps: dict[str, tuple[Step, ...]] = {}
    for at, (phase, run) in enumerate(phases.items()):
        progress(phase, at, len(phases))
        steps[phase] = tuple(run())
    progress("done", len(phases), len(phases))
    return Consolidated(**steps, dry_run=dry_run)


def find_duplicates(context: Context) -> Iterator[Step]:
    """Yield the merges that the first phase would make now."""
    return _dedupe(context, write=False)


# --- duplicates and corroborations ---


def _dedupe(context: Context, *, write: bool) -> Iterator[Step]:
    """Yield the merges of memories of one scope that say the same: the more trusted one stays,
    at a tie the earlier one."""
    for kept, other, likeness in _pairs(context):
        if likeness >= SAME and not other.pinned:
            why = f"says the same as {kept.id}, with a cosine of {likeness:.3f}"
            made = link(kept, other, "supersedes", context.clock()).row(kept.partition)
            step = Step("supersede", other.id, kept.id, why)
            yield from _write_pair(context, kept, other, made, step) if write else [step]


def _corroboration(context: Context, *, write: bool) -> Iterator[Step]:
    """Yield the corroborations of memories by others that say the same and come from another
    source."""
    for kept, other, likeness in _pairs(context):
        mark = link(other, kept, _CORROBORATES, context.clock())
        known = context.store.get(
            Kind.LINK, [mark.id, link(kept, other, _CORROBORATES, context.clock()).id]
        )
        if ALIKE <= likeness < SAME and _source(kept) != _source(other) and not known:
            why = f"{other.id} says the same, from another source"
            step = Step("corroborate", kept.id, other.id, why)
            yield from (
                _write_pair(context, kept, other, mark.row(other.partition), step)
                if write
                else [step]
            )


def _pairs(context: Context) -> Iterator[tuple[Memory, Memory, float]]:
    """Yield each memory with the one that it repeats, which is trusted at least as much, and their
    cosine.

    Texts that say the same consist of the same words, so only memories with the same words are
    compared.
    """
    groups: defaultdict[bytes, list[str]] = defaultdict(list)
    for memory in _active(context):
        if memory.vector and memory.memory_type not in (MemoryType.LESSON, MemoryType.REFLECTION):
            words = repr((scope_of(context, memory), same_words(memory.content)))
            groups[sha256(words.encode()).digest()].append(memory.id)
    for ids in groups.values():
        if len(ids) > 1:
            yield from _repeated(context, ids)


def _repeated(context: Context, ids: Sequence[str]) -> Iterator[tuple[Memory, Memory, float]]:
    rows = [
        row
        for batch in batches(ids, _AT_ONCE)
        for row in context.store.get(Kind.MEMORY, batch).values()
    ]
    memories = [one for one in map(Memory.of, intact(context, rows)) if one.status == Status.ACTIVE]
    known = trusts(context, memories)
    kept: list[Memory] = []
    for memory in sorted(
        memories, key=lambda one: (-_rank(known[one.id]), one.created_at, one.number, one.id)
    ):
        for first in kept[:_MAX_COMPARED]:
            likeness = cosine(first.vector, memory.vector)
            same_claim = _claim(first) == _claim(memory)
            if (
                likeness >= ALIKE
                and same_claim
                and is_near_duplicate(first, memory, cosine=likeness, min_cosine=ALIKE)
            ):
                yield first, memory, likeness
                break
        else:
            kept.append(memory)


def _rank(trust: Trust) -> float:
    """Return the trust without regard to age: of two memories of one source, neither is trusted
    less for being older."""
    return round(replace(trust, age=0.0).value, 6)


def _claim(memory: Memory) -> tuple[object, ...]:
    return memory.claim, memory.valid_from, memory.valid_until


def _source(memory: Memory) -> tuple[object, ...]:
    return memory.agent_id, memory.metadata.get("provenance")


def _compared(memory: Memory) -> tuple[object, ...]:
    """Return what decides about a pair, besides the corroborations and mergers of this run."""
    return memory.content, memory.status, memory.pinned, memory.trust, memory.disputes, memory.claim


def _write_pair(context: Context, kept: Memory, other: Memory, made: Row, step: Step) -> list[Step]:
    """Write a merge or a corroboration with its link, unless one of the two was changed since
    they were compared."""

    def decide() -> Plan[list[Step]]:
        seen = {name: context.store.version(name) for name in {kept.partition, other.partition}}
        stored = context.store.get(Kind.MEMORY, [kept.id, other.id])
        if stored.keys() != {kept.id, other.id}:
            return Plan([])
        first, second = (Memory.of(stored[one.id]) for one in (kept, other))
        if any(
            _compared(one) != _compared(before) for one, before in ((first, kept), (second, other))
        ):
            return Plan([])
        changed: list[tuple[Memory, dict[str, Any]]] = [
            (first, {"corroborations": first.corroborations + 1})
        ]
        if step.action == "supersede":
            times = first.times_observed + second.times_observed
            changed = [
                (first, {"supersedes": [*first.supersedes, second.id], "times_observed": times})
            ]
            changed.append((second, {"status": Status.SUPERSEDED.value, "superseded_by": first.id}))
        rows, entries = _revised(context, changed, step.action, step.why)
        return Plan([step], [*rows, made, *own_audit_rows(context, entries)], seen=seen)

    return commit(context, decide)


def _revised(
    context: Context, changed: Sequence[tuple[Memory, dict[str, Any]]], action: str, why: str
) -> tuple[list[Row], list[Entry]]:
    rows, entries = list[Row](), list[Entry]()
    for memory, columns in changed:
        newer, change, entry = revise(
            context, context.clock(), memory, action=action, why=why, **columns
        )
        rows += [newer.row(replaces=memory.revision), change]
        entries.append(entry)
    return rows, entries


# --- contradictions ---


def _contradictions(context: Context, *, write: bool) -> Iterator[Step]:
    """Yield what follows from active claims that exclude each other, by the rules and policies
    of `store`."""
    groups: defaultdict[tuple[str | None, ...], dict[str, tuple[tuple[str, int, str], Window]]] = (
        defaultdict(dict)
    )
    known = schemas(context)
    for memory in _active(context, Not(IsNull("claim_key"))):
        claim = Claim.of(memory)
        if claim is None or not claim.exclusive or known[claim.predicate].cardinality == "multi":
            continue
        groups[memory.claim_key, claim.session_id, claim.project][memory.id] = (
            _order(memory),
            claim.window,
        )
    for group in groups.values():
        # A history of many claims that were valid one after the other needs no judgement.
        clashing = overlapping({id_: window for id_, (_, window) in group.items()})
        for memory_id in sorted(clashing, key=lambda id_: group[id_][0])[1:]:
            check_cancelled()
            if write:
                yield from commit(context, partial(_judge_again, context, memory_id))
            else:
                yield from _judge_again(context, memory_id).answer


def _judge_again(context: Context, memory_id: str) -> Plan[list[Step]]:
    """Return the plan that treats a memory as if it was stored now, after those that were stored
    before it.

    Pairs with a recorded conflict are decided already: by a policy, by a review, or by one that is
    still to come.
    """
    row = context.store.get(Kind.MEMORY, [memory_id]).get(memory_id)
    if row is None:
        return Plan([])
    owner = replace(context, reader=owner_of(Memory.of(row)))
    seen = {
        name: context.store.version(name) for name in {row.partition, *partitions(owner.reader)}
    }
    memory = Memory.of(context.store.get(Kind.MEMORY, [memory_id])[memory_id])
    claim = Claim.of(memory)
    if claim is None or memory.status != Status.ACTIVE:
        return Plan([])
    claims, ms = Claims(owner, [claim]), context.clock()
    memories = {one.id: one for one in claims.stored}
    recorded = {
        one.value(end)
        for one in rows_about(context, Kind.CONFLICT, memory_id)
        for end in ("ref", "target")
    }
    earlier = {
        id_ for id_, one in memories.items() if _order(one) < _order(memory) and id_ not in recorded
    }
    others = {
        id_: one if id_ in earlier else replace(one, status="") for id_, one in memories.items()
    }
    verdict = claims.judge(claim, trusts(context, [memory], ms=ms)[memory_id].value, others, ms)
    verdict = Verdict(verdict.of(Outcome.SUPERSEDE, Outcome.QUARANTINE, Outcome.KEEP_BOTH))
    if not verdict.judgements:
        return Plan([])
    effects = claims.effects(context, memory, verdict, memories, Terms(), ms)
    first = verdict.judgements[0]
    changed = [] if effects.status == memory.status and not effects.superseded else [
        (memory,
         {"status": effects.status, "supersedes": [*memory.supersedes, *effects.superseded]})
    ]  # fmt: skip
    action = "quarantine" if effects.status == Status.QUARANTINED else "consolidate"
    rows, entries = _revised(context, changed, action, first.why)
    rows += [one.row(replaces=one.revision - 1) for one in effects.memories]
    puts = [*rows, *effects.rows, *own_audit_rows(context, [*entries, *effects.entries])]
    steps = [Step(str(one.outcome.value), memory_id, one.id, one.why) for one in verdict.judgements]
    return Plan(steps, puts, seen=seen)


def _order(memory: Memory) -> tuple[str, int, str]:
    return memory.created_at, memory.number, memory.id


# --- digests and pruning ---


def _compress(context: Context, most: int, size: int, *, write: bool) -> Iterator[Step]:
    """Yield the digests of the largest groups that are wholly older than 30 days."""
    cutoff = iso(max(0, context.clock() - _OLD_DAYS * DAY_MS))
    made = 0
    for group in find_clusters(context, min_size=size):
        check_cancelled()
        rows = context.store.get(Kind.MEMORY, group).values()
        if made == most or any(row.created_at >= cutoff for row in rows):
            continue
        digest = digest_cluster(context, group) if write else None
        if digest or not write:
            made += 1
            yield Step(
                "digest",
                digest.id if digest else None,
                None,
                f"of {len(group)} memories: {', '.join(group)}",
            )


def _prune(context: Context, *, write: bool) -> Iterator[Step]:
    """Yield what is archived: memories superseded over 90 days ago that are not part of the
    past, and those too weak to keep."""
    outdated = {memory.id: memory.superseded_by for memory in find_outdated(context)}
    why = f"superseded over {OUTDATED_DAYS} days ago"
    archived = (
        archive(context, Kind.MEMORY, outdated, lambda _: why, status=Status.SUPERSEDED)
        if write
        else list(outdated)
    )
    yield from (Step("archive", id_, outdated[id_], why) for id_ in archived)
    weak, _ = find_weak(context)
    done = archive_weak(context, weak) if write else list(weak)
    yield from (Step("archive", id_, None, f"strength {weak[id_].strength:.3f}") for id_ in done)


def find_outdated(context: Context) -> Iterator[Memory]:
    """Yield memories superseded over 90 days ago. A claim that was true until then stays,
    because `as_of` returns it."""
    cutoff = iso(max(0, context.clock() - OUTDATED_DAYS * DAY_MS))
    for batch in batches(_memories(context, Status.SUPERSEDED), _AT_ONCE):
        last = context.store.get(
            Kind.CHANGE, [change_id(memory.id, memory.revision) for memory in batch]
        )
        times = {str(row.value("ref")): Change.of(row).created_at for row in last.values()}
        for memory in batch:
            if times.get(memory.id, memory.updated_at) < cutoff and not (
                memory.pinned or memory.valid_until
            ):
                yield memory


def _active(context: Context, *conditions: Any) -> Iterator[Memory]:
    return _memories(context, Status.ACTIVE, *conditions)


def _memories(context: Context, status: Status, *conditions: Any) -> Iterator[Memory]:
    """Yield the memories of the user with a status; some at a time are in memory."""
    own = all_of(of_user(context.reader), equals("status", status), *conditions)
    for batch in batches(sorted(context.store.ids(Kind.MEMORY, own)), _AT_ONCE):
        check_cancelled()
        yield from map(Memory.of, intact(context, context.store.get(Kind.MEMORY, batch).values()))
