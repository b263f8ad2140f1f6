"""The heartbeat: run the jobs that are due, each in one process, and record every run.

The guard runs first; if it finds damage, no other job runs. A failed job does not stop the others,
and stays due. If a process dies during a job, the job is free again after half an hour at most;
every job may safely run twice.
"""

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from memory_mesh.core.audit import Broken, Verdict, of_recalls, verify_tail
from memory_mesh.core.errors import (
    InvalidInput,
    MemoryMeshError,
    StoreBusy,
    StoreCorrupt,
    listed,
    shown,
)
from memory_mesh.core.learning import MAX_STORED_RUNS, Heartbeat, JobRun, JobState, Outcome
from memory_mesh.core.model import Compare, Head, Kind, Meta, equals, iso, millis
from memory_mesh.core.model.background import check_cancelled, uncancellable
from memory_mesh.core.ports import no_progress
from memory_mesh.flows.audit import audit
from memory_mesh.flows.audit.audit import anchor_if_moved
from memory_mesh.flows.audit.chains import blocks as chain_blocks
from memory_mesh.flows.audit.chains import head_of, key_walk, with_signature
from memory_mesh.flows.claims import updates
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.learning import lessons
from memory_mesh.flows.search.reads import checked_limit
from memory_mesh.flows.traces import learnings as trace_learnings
from memory_mesh.flows.upkeep import consolidate, decay, hooks
from memory_mesh.flows.write import embed

_HOUR = 3_600_000
_GUARDED_BLOCKS = 100  # at the end of each chain; `verify` checks all of them
_GUARD_ATTEMPTS = 5
_JUDGE_SECONDS = 600.0  # shorter than a lease; what is left waits for the next run
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True)
class Job:
    """A recurring task. `run` returns one line about what it did."""

    name: str
    priority: int
    every_ms: int
    run: Callable[[Context], str]
    enabled: Callable[[Context], bool] = lambda _: True
    listed: bool = True  # False: left out of the answer while it is disabled


def guard(context: Context) -> str:
    """Check the ends of all chains and return what was checked; raise `StoreCorrupt` if
    something is wrong."""
    memories = context.store.count(Kind.MEMORY, equals("user_id", context.reader.user_id))
    chains = [head.id for head in audit.heads(context)]
    headless = audit.headless_chain(context, chains)
    for chain in [*chains, *([] if headless is None else [headless])]:
        if broken := _broken(context, chain):
            what = f"block {broken.number} of the chain {broken.chain}: {broken.reason}"
            raise StoreCorrupt(what, remedy="run memory-mesh audit verify")
    return f"{memories} memories, {len(chains)} chains"


def _broken(context: Context, chain: str) -> Broken | None:
    """Return a break at the end of a chain. It counts only if no process wrote to the chain
    between the two reads."""
    for attempt in range(_GUARD_ATTEMPTS):
        before = head_of(context, chain)
        verdict = _tail(context, chain, before)
        if not isinstance(verdict, Broken):
            return None
        if head_of(context, chain) == before:
            return verdict
        context.pause(attempt)
    return None


def _tail(context: Context, chain: str, head: Head | None) -> Verdict:
    last = head.number if head else 0
    blocks = chain_blocks(context, chain, Compare("number", ">", last - _GUARDED_BLOCKS))
    # The first blocks of a chain of searches may be removed behind a checkpoint; `verify` checks
    # that.
    if blocks and blocks[0].number > max(1, last - _GUARDED_BLOCKS + 1) and not of_recalls(chain):
        return Broken(chain, blocks[0].number - 1, None, "block is missing")
    keys = key_walk(context, chain)
    for block in blocks:
        keys.step(block)
    return with_signature(keys, verify_tail(chain, blocks, head), head)


def _decay(context: Context) -> str:
    """Archive weak memories, or report what this and the last phase of consolidation would
    archive."""
    found = decay.decay(context, dry_run=not context.options.decay_enabled)
    links = (
        f"{found.links} links to missing memories {'found' if found.dry_run else 'removed'}"
        if found.links
        else ""
    )
    done = (
        f"{len(found.archived)} of {found.examined} memories "
        f"{'are weak' if found.dry_run else 'archived'}"
    )
    outdated = sum(1 for _ in consolidate.find_outdated(context)) if found.dry_run else 0
    also = (
        f", {outdated} were superseded over {consolidate.OUTDATED_DAYS} days ago"
        if outdated
        else ""
    )
    hint = (
        "; set decay_enabled to archive them"
        if found.dry_run and (found.archived or outdated)
        else ""
    )
    return ", ".join(filter(None, (f"{done}{also}{hint}", links)))


def _consolidate(context: Context) -> str:
    done = consolidate.consolidate(context)
    return ", ".join(f"{len(getattr(done, phase))} {phase}" for phase in consolidate.PHASES)


def _deliver(context: Context) -> str:
    """Deliver what waits for hooks, but not before its time."""
    for hook in context.hooks.listed:
        hooks.deliver(context, hook, wait_seconds=hooks.RETRY_SECONDS)
    return f"{sum(one.waiting for one in hooks.status(context))} events wait"


def _apply_retention(context: Context) -> str:
    archived = lessons.archive_old(context)
    pruned = audit.prune(context, older_than_days=context.options.recall_retention_days)
    broken = f", {len(pruned.broken)} broken chains not touched" if pruned.broken else ""
    has_traces = trace_learnings.has_projects(context)
    moved = len(trace_learnings.retention(context).moves) if has_traces else 0
    moves = f", {moved} parts of traces archived or consolidated" if moved else ""
    return (
        f"{len(archived)} lessons archived, {pruned.removed} recall blocks removed{broken}{moves}"
    )


def _consolidate_traces(context: Context) -> str:
    done = trace_learnings.consolidate_all(context)
    learnings, written = (
        sum(len(getattr(one, name)) for one in done) for name in ("patterns", "written")
    )
    return f"{learnings} learnings in {len(done)} projects, {written} new or changed"


def _reembed(context: Context) -> str:
    """Embed memories that wait for a vector. A store of another model is not changed: only a
    person decides that."""
    if context.models.embedder is None or embed.store_model(context) not in (
        None,
        context.models.embedder.model,
    ):
        return (
            "the store has vectors of another model"
            if context.models.embedder
            else "no embedder is set"
        )
    return f"{embed.reembed(context, no_progress).embedded} memories embedded"


JOBS = (
    Job("guard", 0, 0, guard),
    Job(
        "anchor",
        1,
        _HOUR,
        anchor_if_moved,
        lambda context: context.options.audit_anchor is not None,
        listed=False,
    ),
    Job("hooks", 1, 0, _deliver, lambda context: bool(context.hooks.listed), listed=False),
    Job(
        "changes",
        1,
        _HOUR,
        lambda context: f"{updates.judge_for(context, _JUDGE_SECONDS)} memories judged",
        lambda context: context.models.judge is not None,
        listed=False,
    ),
    Job(
        "distillation",
        1,
        8 * _HOUR,
        lambda context: lessons.summary(lessons.run_distillation(context)),
        lambda context: context.options.enable_wisdom_distillation,
    ),
    Job("decay", 2, 24 * _HOUR, _decay),
    Job(
        "consolidation",
        3,
        24 * _HOUR,
        _consolidate,
        lambda context: context.options.decay_enabled,
        listed=False,
    ),
    Job(
        "traces", 4, 7 * 24 * _HOUR, _consolidate_traces, trace_learnings.has_projects, listed=False
    ),
    Job("retention", 4, 24 * _HOUR, _apply_retention),
    Job("reembedding", 5, _HOUR, _reembed),
    Job(
        "compaction",
        6,
        24 * _HOUR,
        lambda context: (
            "no deleted bytes are left in the files"
            if context.store.compact()
            else "the store is in use by others"
        ),
    ),
)


def beat(context: Context, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
    """Run the guard and the jobs that are due; only those in `jobs`, if given, and also those
    not due with `force`."""
    context.check_enabled()
    known = [job.name for job in JOBS]
    jobs = None if jobs is None else listed("jobs", jobs, expected=f"a list of {', '.join(known)}")
    if unknown := [name for name in jobs or () if not isinstance(name, str) or name not in known]:
        raise InvalidInput(
            f"unknown job {shown(unknown[0])}", expected=f"one of {', '.join(known)}"
        )
    first = _run(context, JOBS[0], context.clock())
    runs = [first]
    for job in (
        job
        for job in JOBS[1:]
        if (job.listed or job.enabled(context) if jobs is None else job.name in jobs)
    ):
        check_cancelled()
        blocked = (
            None if first.ok else _not_run(context, job, Outcome.BLOCKED, "the guard found damage")
        )
        runs.append(blocked or _run_if_due(context, job, force=force))
    try:
        _release(context, JOBS[0], None, millis(first.began), first)
    except MemoryMeshError as error:  # a damaged store may not accept it
        _log.warning("heartbeat: the run of %s was not recorded: %s", first.job, error)
    return Heartbeat(runs=tuple(runs))


def log(context: Context, *, limit: int = 20) -> list[JobRun]:
    """Return the latest runs of this user's jobs, newest first."""
    max_runs = checked_limit(limit)
    runs: list[JobRun] = []
    for meta in Meta.with_prefix(context.store, _id(context, "run", "")):
        fields: dict[str, Any] = meta.detail
        with suppress(TypeError, ValueError):  # of another version
            runs.append(JobRun(**{**fields, "outcome": Outcome(str(fields.get("outcome")))}))
    return sorted(runs, key=lambda run: (run.began, -run.priority), reverse=True)[:max_runs]


def _run_if_due(context: Context, job: Job, *, force: bool) -> JobRun:
    if not job.enabled(context):
        return _not_run(context, job, Outcome.OFF, "disabled in settings")
    began, holder = context.clock(), context.ids.salt()

    def take() -> Plan[Outcome | None]:
        meta, state = _stored_state(context, job)
        refused = state.refusal(began, job.every_ms, force=force)
        return Plan(
            refused,
            []
            if refused
            else [meta.row(state.acquire(holder, began).detail(), at=iso(context.clock()))],
        )

    try:
        refused = commit(context, take)
    except StoreBusy as error:
        return _not_run(context, job, Outcome.FAILED, str(error))
    if refused:
        return _not_run(context, job, refused)
    try:
        run = _run(context, job, began)
    except BaseException:
        # Someone who interrupts a job and starts it again need not wait for the lease to end.
        _release(context, job, holder, began, _not_run(context, job, Outcome.FAILED, "interrupted"))
        raise
    try:
        _release(context, job, holder, began, run)
    except StoreBusy as error:
        _log.warning("heartbeat: the run of %s was not recorded: %s", job.name, error)
    return run


def _run(context: Context, job: Job, began: int) -> JobRun:
    try:
        outcome, detail = Outcome.DONE, job.run(context)
    except MemoryMeshError as error:
        outcome, detail = Outcome.FAILED, str(error)
    except Exception as error:  # noqa: BLE001  (an error in one job must not stop the others)
        # Only its type: the message may quote a memory.
        _log.error("heartbeat: %s failed: unexpected %s", job.name, type(error).__name__)
        _log.debug("heartbeat: %s failed", job.name, exc_info=error)
        outcome, detail = Outcome.FAILED, f"unexpected {type(error).__name__}"
    return replace(_not_run(context, job, outcome, detail), began=iso(began))


def _not_run(context: Context, job: Job, outcome: Outcome, detail: str = "") -> JobRun:
    at = iso(context.clock())
    return JobRun(
        job=job.name, priority=job.priority, outcome=outcome, began=at, ended=at, detail=detail
    )


# --- stored state ---


def _release(context: Context, job: Job, holder: str | None, began: int, run: JobRun) -> None:
    def decide() -> Plan[None]:
        meta, state = _stored_state(context, job)
        state_row = meta.row(
            state.release(holder, began, done=run.ok).detail(), at=iso(context.clock())
        )
        # The row of a run replaces the oldest one, which is cheaper than deleting.
        place = Meta.read(
            context.store, _id(context, "run", f"{job.name} {state.count % MAX_STORED_RUNS}")
        )
        return Plan(
            None,
            [
                state_row,
                place.row({**asdict(run), "outcome": str(run.outcome)}, at=iso(context.clock())),
            ],
        )

    with uncancellable():
        commit(context, decide)


def _stored_state(context: Context, job: Job) -> tuple[Meta, JobState]:
    meta = Meta.read(context.store, _id(context, "job", job.name))
    return meta, JobState.of(meta.detail)


def _id(context: Context, kind: str, name: str) -> str:
    return f"{kind} {json.dumps(context.reader.user_id)} {name}"
