"""The heartbeat: jobs in the order of their priority, each run by one process when it is due, with a record of each run.

The guard comes first; where it finds damage, no other job runs. A job that fails does not keep the others from running, and stays
due. A process that dies in the middle of one holds it for half an hour at most; every job may safely be run twice.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import InvalidInput, MemoryMeshError, StoreBusy, shown
from memory_mesh.core.learning import MAX_STORED_RUNS, Heartbeat, JobRun, JobState, Outcome
from memory_mesh.core.model import Meta, Row, iso, millis
from memory_mesh.core.ports import no_progress
from memory_mesh.flows import audit, embed, lessons
from memory_mesh.flows import distill as distil
from memory_mesh.flows.context import Context, Plan, check_enabled, commit
from memory_mesh.flows.guard import guard
from memory_mesh.flows.search import checked_limit

_HOUR = 3_600_000
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done now and then. `run` tells in one line what it did."""

    name: str
    priority: int
    every_ms: int
    run: Callable[[Context], str]
    wanted: Callable[[Context], bool] = lambda _: True  # False: the settings want it not


def _distill(context: Context) -> str:
    return distil.told(distil.cycle(context))


def _retain(context: Context) -> str:
    retired = lessons.retire(context)
    pruned = audit.prune(context, older_than_days=context.options.recall_retention_days)
    broken = f", {len(pruned.broken)} chains left alone because they are broken" if pruned.broken else ""
    return f"{len(retired)} lessons archived, {pruned.removed} recall blocks removed{broken}"


def _reembed(context: Context) -> str:
    """Vectors for memories that wait for one. A store of another model is left alone: changing it is for people to say."""
    if context.embedder is None or embed.store_model(context) not in (None, context.embedder.model):
        return "the store's vectors are of another model" if context.embedder else "no embedder is set"
    return f"{embed.reembed(context, no_progress).embedded} memories embedded"


def _compact(context: Context) -> str:
    return "nothing deleted is left in the files" if context.store.compact() else "others are using the store"


# Decay and consolidation come between distillation and retention, with the graph face.
JOBS = (
    Job("guard", 0, 0, guard),
    Job("distillation", 1, 8 * _HOUR, _distill, lambda context: context.options.enable_wisdom_distillation),
    Job("retention", 4, 24 * _HOUR, _retain),
    Job("reembedding", 5, _HOUR, _reembed),
    Job("compaction", 6, 24 * _HOUR, _compact),
)


def beat(context: Context, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
    """Run what is due; `jobs` names the only ones to think of, `force` makes them due. The guard is always asked."""
    check_enabled(context)
    chosen = _chosen(jobs)
    first = _tried(context, JOBS[0], context.clock())
    runs = [first]
    for job in chosen:
        check_cancelled()
        runs.append(
            _turn(context, job, force=force) if first.ok else _passed(context, job, Outcome.BLOCKED, "the guard found damage")
        )
    _record(context, first)
    return Heartbeat(runs=tuple(runs))


def log(context: Context, *, limit: int = 20) -> list[JobRun]:
    """The latest runs of this user's jobs, newest first."""
    prefix = _run_id(context, "", "")
    most = checked_limit(limit)
    runs = [run for meta in Meta.with_prefix(context.store, prefix) if (run := _run_of(meta))]
    return sorted(runs, key=lambda run: (run.began, -run.priority), reverse=True)[:most]


def _chosen(names: Sequence[str] | None) -> list[Job]:
    known = [job.name for job in JOBS]
    fits = isinstance(names, Iterable) and not isinstance(names, str) and all(name in known for name in names)
    if names is not None and not fits:
        raise InvalidInput(f"jobs is {shown(names)}", expected=f"a list of {', '.join(known)}")
    return [job for job in JOBS[1:] if names is None or job.name in names]


def _turn(context: Context, job: Job, *, force: bool) -> JobRun:
    if not job.wanted(context):
        return _passed(context, job, Outcome.OFF, "the settings want it not")
    began, holder = context.clock(), context.ids.salt()
    try:
        refused = _take(context, job, holder, began, force=force)
    except StoreBusy as error:
        return _passed(context, job, Outcome.FAILED, str(error))
    if refused:
        return _passed(context, job, refused)
    try:
        run = _tried(context, job, began)
    except BaseException:
        # Whoever interrupts it and starts again shall not have to wait for the lease to end.
        _give_back(context, job, holder, began, _passed(context, job, Outcome.FAILED, "interrupted"))
        raise
    try:
        _give_back(context, job, holder, began, run)
    except StoreBusy as error:
        _log.warning("heartbeat: no record of %s, because %s", job.name, error)
    return run


def _tried(context: Context, job: Job, began: int) -> JobRun:
    try:
        outcome, detail = Outcome.DONE, job.run(context)
    except MemoryMeshError as error:
        outcome, detail = Outcome.FAILED, str(error)
    except Exception as error:  # noqa: BLE001  (one job's mistake must not keep the others from running)
        # By its type alone: what it says may quote a memory.
        _log.error("heartbeat: %s failed: unexpected %s", job.name, type(error).__name__)
        _log.debug("heartbeat: %s failed", job.name, exc_info=error)
        outcome, detail = Outcome.FAILED, f"unexpected {type(error).__name__}"
    return JobRun(
        job=job.name, priority=job.priority, outcome=outcome, began=iso(began), ended=iso(context.clock()), detail=detail
    )  # fmt: skip


def _passed(context: Context, job: Job, outcome: Outcome, detail: str = "") -> JobRun:
    ms = iso(context.clock())
    return JobRun(job=job.name, priority=job.priority, outcome=outcome, began=ms, ended=ms, detail=detail)


# --- what the store remembers of them ---


def _take(context: Context, job: Job, holder: str, ms: int, *, force: bool) -> Outcome | None:
    def decide() -> Plan[Outcome | None]:
        meta, turn = _held(context, job)
        refused = turn.refusal(ms, job.every_ms, force=force)
        return Plan(refused, [] if refused else [_row(context, meta, turn.acquire(holder, ms).detail())])

    return commit(context, decide)[0]


def _give_back(context: Context, job: Job, holder: str | None, began: int, run: JobRun) -> None:
    def decide() -> Plan[None]:
        meta, turn = _held(context, job)
        newer = turn.release(holder, began, done=run.ok)
        return Plan(None, [_row(context, meta, newer.detail()), *_kept(context, job.name, turn.count, run)])

    commit(context, decide)


def _record(context: Context, run: JobRun) -> None:
    """The guard's own record; on a damaged store it may be the last thing that can be written, or not even that."""
    try:
        _give_back(context, JOBS[0], None, millis(run.began), run)
    except MemoryMeshError as error:
        _log.warning("heartbeat: no record of %s, because %s", run.job, error)


def _kept(context: Context, name: str, count: int, run: JobRun) -> list[Row]:
    """The record of a run, in the place of the oldest one: replacing is cheaper than deleting."""
    id_ = _run_id(context, name, str(count % MAX_STORED_RUNS))
    return [_row(context, Meta.read(context.store, id_), asdict(run))]


def _held(context: Context, job: Job) -> tuple[Meta, JobState]:
    meta = Meta.read(context.store, _turn_id(context, job))
    return meta, JobState.of(meta.detail)


def _row(context: Context, meta: Meta, detail: Mapping[str, Any]) -> Row:
    plain = {name: str(value) if isinstance(value, Outcome) else value for name, value in detail.items()}
    return meta.row(plain, at=iso(context.clock()))


def _run_of(meta: Meta) -> JobRun | None:
    fields: dict[str, Any] = meta.detail
    try:
        return JobRun(**{**fields, "outcome": Outcome(str(fields.get("outcome")))})
    except (TypeError, ValueError):
        return None


def _turn_id(context: Context, job: Job) -> str:
    return f"job {json.dumps(context.reader.user_id)} {job.name}"


def _run_id(context: Context, name: str, place: str) -> str:
    return f"run {json.dumps(context.reader.user_id)} {name}" + (f" {place}" if place else "")
