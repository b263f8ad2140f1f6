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
from memory_mesh.core.learning.jobs import KEPT, Heartbeat, JobRun, Outcome, Turn
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Row, checked
from memory_mesh.core.model.times import iso, millis
from memory_mesh.core.ports import no_progress
from memory_mesh.flows import distill as distil
from memory_mesh.flows import embed, lessons, reembed
from memory_mesh.flows import search_log as recalls
from memory_mesh.flows.context import Desk, Plan, must_be_enabled, settle
from memory_mesh.flows.guard import guard
from memory_mesh.flows.read import within

_HOUR = 3_600_000
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True)
class Job:
    """Something to be done now and then. `run` tells in one line what it did."""

    name: str
    priority: int
    every_ms: int
    run: Callable[[Desk], str]
    wanted: Callable[[Desk], bool] = lambda _: True  # False: the settings want it not


def _distill(desk: Desk) -> str:
    return distil.told(distil.cycle(desk))


def _retain(desk: Desk) -> str:
    retired = lessons.retire(desk)
    pruned = recalls.prune(desk, older_than_days=desk.recall_retention_days)
    broken = f", {len(pruned.broken)} chains left alone because they are broken" if pruned.broken else ""
    return f"{len(retired)} lessons archived, {pruned.removed} recall blocks removed{broken}"


def _reembed(desk: Desk) -> str:
    """Vectors for memories that wait for one. A store of another model is left alone: changing it is for people to say."""
    if desk.embedder is None or embed.store_model(desk) not in (None, desk.embedder.model):
        return "the store's vectors are of another model" if desk.embedder else "no embedder is set"
    return f"{reembed.reembed(desk, no_progress).embedded} memories embedded"


def _compact(desk: Desk) -> str:
    return "nothing deleted is left in the files" if desk.store.compact() else "others are using the store"


# Decay and consolidation come between distillation and retention, with the graph face.
JOBS = (
    Job("guard", 0, 0, guard),
    Job("distillation", 1, 8 * _HOUR, _distill, lambda desk: desk.distilling),
    Job("retention", 4, 24 * _HOUR, _retain),
    Job("reembedding", 5, _HOUR, _reembed),
    Job("compaction", 6, 24 * _HOUR, _compact),
)


def beat(desk: Desk, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
    """Run what is due; `jobs` names the only ones to think of, `force` makes them due. The guard is always asked."""
    must_be_enabled(desk)
    chosen = _chosen(jobs)
    first = _tried(desk, JOBS[0], desk.clock())
    runs = [first]
    for job in chosen:
        check_cancelled()
        runs.append(_turn(desk, job, force=force) if first.ok else _passed(desk, job, Outcome.BLOCKED, "the guard found damage"))
    _record(desk, first)
    return Heartbeat(runs=tuple(runs))


def log(desk: Desk, *, limit: int = 20) -> list[JobRun]:
    """The latest runs of this user's jobs, newest first."""
    prefix = _run_id(desk, "", "")
    most = within(limit)
    rows = [row for row in desk.store.find(Kind.META) if row.id.startswith(prefix)]
    runs = [run for row in rows if (run := _run_of(row))]
    return sorted(runs, key=lambda run: (run.began, -run.priority), reverse=True)[:most]


def _chosen(names: Sequence[str] | None) -> list[Job]:
    known = [job.name for job in JOBS]
    fits = isinstance(names, Iterable) and not isinstance(names, str) and all(name in known for name in names)
    if names is not None and not fits:
        raise InvalidInput(f"jobs is {shown(names)}", expected=f"a list of {', '.join(known)}")
    return [job for job in JOBS[1:] if names is None or job.name in names]


def _turn(desk: Desk, job: Job, *, force: bool) -> JobRun:
    if not job.wanted(desk):
        return _passed(desk, job, Outcome.OFF, "the settings want it not")
    began, holder = desk.clock(), desk.ids.salt()
    try:
        refused = _take(desk, job, holder, began, force=force)
    except StoreBusy as error:
        return _passed(desk, job, Outcome.FAILED, str(error))
    if refused:
        return _passed(desk, job, refused)
    try:
        run = _tried(desk, job, began)
    except BaseException:
        # Whoever interrupts it and starts again shall not have to wait for the lease to end.
        _give_back(desk, job, holder, began, _passed(desk, job, Outcome.FAILED, "interrupted"))
        raise
    try:
        _give_back(desk, job, holder, began, run)
    except StoreBusy as error:
        _log.warning("heartbeat: no record of %s, because %s", job.name, error)
    return run


def _tried(desk: Desk, job: Job, began: int) -> JobRun:
    try:
        outcome, detail = Outcome.DONE, job.run(desk)
    except MemoryMeshError as error:
        outcome, detail = Outcome.FAILED, str(error)
    except Exception as error:  # noqa: BLE001  (one job's mistake must not keep the others from running)
        # By its type alone: what it says may quote a memory.
        _log.error("heartbeat: %s failed: unexpected %s", job.name, type(error).__name__)
        _log.debug("heartbeat: %s failed", job.name, exc_info=error)
        outcome, detail = Outcome.FAILED, f"unexpected {type(error).__name__}"
    return JobRun(
        job=job.name, priority=job.priority, outcome=outcome, began=iso(began), ended=iso(desk.clock()), detail=detail
    )  # fmt: skip


def _passed(desk: Desk, job: Job, outcome: Outcome, detail: str = "") -> JobRun:
    ms = iso(desk.clock())
    return JobRun(job=job.name, priority=job.priority, outcome=outcome, began=ms, ended=ms, detail=detail)


# --- what the store remembers of them ---


def _take(desk: Desk, job: Job, holder: str, ms: int, *, force: bool) -> Outcome | None:
    def decide() -> Plan[Outcome | None]:
        row, turn = _held(desk, job)
        refused = turn.refused(ms, job.every_ms, force=force)
        return Plan(refused, [] if refused else [_row(desk, _turn_id(desk, job), turn.taken(holder, ms).detail(), row)])

    return settle(desk, decide)[0]


def _give_back(desk: Desk, job: Job, holder: str | None, began: int, run: JobRun) -> None:
    def decide() -> Plan[None]:
        row, turn = _held(desk, job)
        newer = turn.given_back(holder, began, done=run.ok)
        return Plan(None, [_row(desk, _turn_id(desk, job), newer.detail(), row), *_kept(desk, job.name, turn.count, run)])

    settle(desk, decide)


def _record(desk: Desk, run: JobRun) -> None:
    """The guard's own record; on a damaged store it may be the last thing that can be written, or not even that."""
    try:
        _give_back(desk, JOBS[0], None, millis(run.began), run)
    except MemoryMeshError as error:
        _log.warning("heartbeat: no record of %s, because %s", run.job, error)


def _kept(desk: Desk, name: str, count: int, run: JobRun) -> list[Row]:
    """The record of a run, in the place of the oldest one: replacing is cheaper than deleting."""
    id_ = _run_id(desk, name, str(count % KEPT))
    held = desk.store.get(Kind.META, [id_]).get(id_)
    return [_row(desk, id_, asdict(run), held)]


def _held(desk: Desk, job: Job) -> tuple[Row | None, Turn]:
    id_ = _turn_id(desk, job)
    row = desk.store.get(Kind.META, [id_]).get(id_)
    return row, Turn.of(row.value("detail") if row else None)


def _row(desk: Desk, id_: str, detail: Mapping[str, Any], held: Row | None) -> Row:
    revision = held.revision if held else 0
    created = held.created_at if held else iso(desk.clock())
    plain = {name: str(value) if isinstance(value, Outcome) else value for name, value in detail.items()}
    return checked(
        Row(
            kind=Kind.META, id=id_, partition="", created_at=created, revision=revision + 1, replaces=revision,
            fields={"detail": plain},
        )
    )  # fmt: skip


def _run_of(row: Row) -> JobRun | None:
    detail = row.value("detail")
    try:
        said: dict[str, Any] = detail if isinstance(detail, dict) else {}
        return JobRun(**{**said, "outcome": Outcome(str(said.get("outcome")))})
    except (TypeError, ValueError):
        return None


def _turn_id(desk: Desk, job: Job) -> str:
    return f"job {json.dumps(desk.who.user_id)} {job.name}"


def _run_id(desk: Desk, name: str, place: str) -> str:
    return f"run {json.dumps(desk.who.user_id)} {name}" + (f" {place}" if place else "")
