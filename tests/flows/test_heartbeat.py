"""The heartbeat: due jobs run in order, once, after the guard; a failed job does not stop the
others."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from judging import BERLIN, MUNICH, ToldJudge
from memory_mesh.core import audit
from memory_mesh.core.errors import (
    CallError,
    InvalidInput,
    MemoryDisabled,
    StoreBusy,
    StoreReadOnly,
)
from memory_mesh.core.learning import LEASE_MS, MAX_STORED_RUNS, Heartbeat
from memory_mesh.core.model import Block, Key, Kind, Memory, Reader
from memory_mesh.flows.context import Context
from memory_mesh.flows.learning import heartbeat, lessons
from memory_mesh.flows.learning.heartbeat import Job, beat, log
from memory_mesh.flows.search import usage
from memory_mesh.flows.search.search import Request, search
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import embed, write
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import DownEmbedder, FakeClock, no_pause, seeded_ids
from stores.files import prepare

from .adding import add_many

NAMES = ["guard", "distillation", "decay", "retention", "reembedding", "compaction"]
FAILED = {
    "status": "error",
    "error_pattern": "token_expired",
    "preventative_rule": "Refresh the token first.",
}
LESSON: dict[str, object] = {
    "situation": "x", "error_pattern": "token_expired", "oversight": "x", "fix": "x",
    "preventative_rule": "Refresh the token first.", "severity": "high",
    "applicable_scope": "deploys",
}  # fmt: skip
DAY = 24


@pytest.fixture
def context(context: Context) -> Context:
    return context.with_options(enable_wisdom_distillation=True)


def pass_time(context: Context, *, hours: float = 0) -> None:
    assert isinstance(context.clock, FakeClock)
    context.clock.advance(seconds=hours * 3600)


def outcomes(done: Heartbeat) -> dict[str, str]:
    return {run.job: str(run.outcome) for run in done.runs}


def memory(context: Context, id_: str) -> Memory:
    return Memory.of(context.store.get(Kind.MEMORY, [id_])[id_])


def with_job(monkeypatch: pytest.MonkeyPatch, name: str, run: Callable[[Context], str]) -> None:
    """Let a job do something else."""
    jobs = tuple(
        Job(job.name, job.priority, job.every_ms, run) if job.name == name else job
        for job in heartbeat.JOBS
    )
    monkeypatch.setattr(heartbeat, "JOBS", jobs)


# --- order and time ---


@pytest.mark.req("MESH-138")
def test_jobs_run_in_the_order_of_their_priority_the_guard_first(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    for job in heartbeat.JOBS:
        with_job(monkeypatch, job.name, lambda _, name=job.name: ran.append(name) or "")  # type: ignore[misc]
    done = beat(context)
    assert (
        ran
        == [
            *("guard", "anchor", "hooks", "changes", *NAMES[1:3], "consolidation", "traces"),
            *NAMES[3:],
        ]
        == [run.job for run in done.runs]
    )
    assert [run.priority for run in done.runs] == sorted(run.priority for run in done.runs)
    assert (done.runs[0].priority, done.runs[1].priority) == (0, 1)
    assert done.ok


def test_a_beat_judges_what_changed_every_hour_if_there_is_a_judge(context: Context) -> None:
    judging = context.with_models(judge=ToldJudge())
    add_many(judging, [BERLIN])
    pass_time(judging, hours=1)
    add_many(judging, [MUNICH])
    assert "changes" not in outcomes(beat(context))
    # The memory that got a link is looked at once more.
    for detail in ("3 memories judged", "0 memories judged"):
        [run] = [run for run in beat(judging).runs if run.job == "changes"]
        assert (run.outcome, run.detail) == ("done", detail)
        assert outcomes(beat(judging))["changes"] == "not due"
        pass_time(judging, hours=1)
    assert judging.store.count(Kind.LINK) == 1


@pytest.mark.req("MESH-138")
def test_a_beat_does_what_is_due_and_tells_what_it_did(context: Context) -> None:
    add_many(context, [("The deploy failed.", FAILED)])
    done = beat(context)
    assert set(outcomes(done).values()) == {"done"}
    assert {run.job: run.detail for run in done.runs} == {
        "guard": "1 memories, 1 chains",
        "distillation": "1 candidates in 1 blocks: 1 learnt, 0 known",
        "decay": "0 of 1 memories are weak",
        "retention": "0 lessons archived, 0 recall blocks removed",
        "reembedding": "no embedder is set",
        "compaction": "no deleted bytes are left in the files",
    }
    assert [lesson.preventative_rule for lesson in lessons.query(context, "")] == [
        "Refresh the token first."
    ]


@pytest.mark.req("MESH-138", "MESH-139")
def test_in_a_day_of_hourly_beats_every_job_runs_as_often_as_it_should(context: Context) -> None:
    counts = dict.fromkeys(NAMES, 0)
    for _ in range(DAY):
        for job, outcome in outcomes(beat(context)).items():
            assert outcome in ("done", "not due")
            counts[job] += outcome == "done"
        pass_time(context, hours=1)
    assert 2 <= counts["distillation"] <= 4
    assert counts == {
        "guard": 24,
        "distillation": 3,
        "decay": 1,
        "retention": 1,
        "reembedding": 24,
        "compaction": 1,
    }


@pytest.mark.req("MESH-139")
@pytest.mark.parametrize("every", [0.5, 1, 3, 5, 7.999, 8])
def test_distillation_comes_round_two_to_four_times_a_day_whatever_the_pulse(
    context: Context, every: float
) -> None:
    beats, ran = round(DAY * 4 / every), 0
    for _ in range(beats):
        ran += outcomes(beat(context, jobs=["distillation"]))["distillation"] == "done"
        pass_time(context, hours=every)
    assert 2 <= ran / 4 <= 4


def test_force_runs_what_is_not_due(context: Context) -> None:
    beat(context)
    assert set(outcomes(beat(context)).values()) == {"done", "not due"}
    assert set(outcomes(beat(context, force=True)).values()) == {"done"}


def test_named_jobs_run_alone_behind_the_guard(context: Context) -> None:
    assert outcomes(beat(context, jobs=["compaction", "retention"])) == {
        "guard": "done",
        "retention": "done",
        "compaction": "done",
    }
    for only in (["guard"], []):
        assert outcomes(beat(context, jobs=only)) == {"guard": "done"}
    assert outcomes(beat(context))["distillation"] == "done", "the others are still due"


@pytest.mark.parametrize(
    "jobs", [["decays"], ["guard", "x"], "guard", 5, [["guard"]], [None]], ids=repr
)
def test_a_job_that_is_unknown_is_refused_before_anything_runs(
    context: Context, jobs: object
) -> None:
    with pytest.raises(InvalidInput, match=r"jobs is|unknown job") as refused:
        beat(context, jobs=jobs)  # type: ignore[arg-type]
    assert "distillation" in str(refused.value)
    assert log(context) == []


@pytest.mark.req("MESH-071", "MESH-068")
def test_distillation_is_off_unless_the_settings_want_it_even_by_force(context: Context) -> None:
    add_many(context, [("The deploy failed.", FAILED)])
    off = context.with_options(enable_wisdom_distillation=False)
    for force in (False, True):
        done = beat(off, force=force)
        assert (outcomes(done)["distillation"], done.ok) == ("off", True)
    assert lessons.query(context, "") == []
    assert outcomes(beat(context))["distillation"] == "done", "it was not counted as run"
    assert len(lessons.query(context, "")) == 1


def test_a_clock_set_back_makes_everything_due_once(context: Context) -> None:
    beat(context)
    pass_time(context, hours=-1000)
    assert set(outcomes(beat(context)).values()) == {"done"}
    assert outcomes(beat(context))["distillation"] == "not due"
    pass_time(context, hours=8)
    assert outcomes(beat(context))["distillation"] == "done"


def test_each_user_has_a_heartbeat_of_its_own(context: Context) -> None:
    other = replace(context, reader=Reader("v", "ann"))
    nobody = replace(context, reader=Reader(None, "ann"))
    for one in (context, other, nobody):
        assert outcomes(beat(one))["distillation"] == "done"
        assert len(log(one, limit=100)) == 6
    assert (
        outcomes(beat(replace(context, reader=Reader("u", "bob"))))["distillation"] == "not due"
    ), "agents of a user share it"


# --- the guard ---


def tampered(context: Context, how: str) -> None:
    chain = audit.chain_name("u", "ann")
    blocks = sorted(
        (Block.of(row) for row in context.store.find(Kind.BLOCK)), key=lambda block: block.number
    )
    last = blocks[-1]
    match how:
        case "a text":
            changed = replace(
                last, yamo_text=last.yamo_text.replace("deploy", "depots"), revision=2
            )
            context.store.apply([changed.row(replaces=1)])
        case "the last block":
            context.store.apply([], [Key(Kind.BLOCK, last.id)])
        case "a block within":
            context.store.apply([], [Key(Kind.BLOCK, blocks[1].id)])
        case "the first block":
            context.store.apply([], [Key(Kind.BLOCK, blocks[0].id)])
        case "the head":
            context.store.apply([], [Key(Kind.HEAD, chain)])


@pytest.mark.req("MESH-139")
@pytest.mark.parametrize(
    "how", ["a text", "the last block", "a block within", "the first block", "the head"]
)
def test_where_the_guard_finds_damage_nothing_else_runs_and_says_so(
    context: Context, how: str
) -> None:
    add_many(
        context,
        [(f"The deploy {n} failed.", {**FAILED, "error_pattern": f"p{n}"}) for n in range(3)],
    )
    assert beat(context, jobs=["guard"]).ok
    tampered(context, how)
    before = context.store.count(Kind.MEMORY), context.store.count(Kind.BLOCK)
    done = beat(context, force=True)
    assert outcomes(done) == {"guard": "failed", **dict.fromkeys(NAMES[1:], "blocked")}
    assert not done.ok
    assert "audit verify" in done.runs[0].detail
    assert {run.detail for run in done.runs[1:]} == {"the guard found damage"}
    assert (context.store.count(Kind.MEMORY), context.store.count(Kind.BLOCK)) == before
    assert next(run for run in log(context) if run.job == "guard").outcome == "failed"


@pytest.mark.req("MESH-139")
def test_damage_in_the_chain_of_another_agent_or_of_searches_stops_the_beat_too(
    context: Context,
) -> None:
    bob = replace(context.with_options(audit_recalls=True), reader=Reader("u", "bob"))
    add_many(bob, [("The deploy failed.", FAILED)])
    search(bob, Request(query="deploy"))
    usage.flush(bob)
    assert beat(context, jobs=["guard"]).runs[0].detail == "1 memories, 2 chains"
    block = next(
        Block.of(row)
        for row in context.store.find(Kind.BLOCK)
        if row.value("operation_type") == "recall"
    )
    context.store.apply([replace(block, yamo_text="changed", revision=2).row(replaces=1)])
    assert outcomes(beat(context))["distillation"] == "blocked"


def test_damage_in_the_chain_of_another_user_is_that_users_concern(context: Context) -> None:
    add_many(context, [("The deploy failed.", FAILED)])
    tampered(context, "the head")
    assert not beat(context).ok
    assert beat(replace(context, reader=Reader("v", "ann"))).ok


class _Busily:
    """A store to which somebody else writes whenever a head was read."""

    def __init__(self, context: Context, times: int) -> None:
        self._context, self._inner, self.left = context, context.store, times

    def get(self, kind: Kind, ids: list[str]) -> object:
        found = self._inner.get(kind, ids)
        if kind is Kind.HEAD and self.left:
            self.left -= 1
            add_many(self._context, [(f"Meanwhile {self.left}.", None)])
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_a_chain_that_grows_while_the_guard_looks_is_not_damage(context: Context) -> None:
    add_many(context, [("The deploy failed.", None)])
    for times in (1, 2, 5, 1000):
        assert beat(replace(context, store=_Busily(context, times)), jobs=["guard"]).ok  # type: ignore[arg-type]


def test_the_guard_is_content_with_erasures_and_long_chains(context: Context) -> None:
    ids = [made.id for made in add_many(context, [(f"Note {n}", None) for n in range(150)])]
    erase.delete(context, ids[140:])
    erase.delete(context, ids[:1])
    assert beat(context).ok
    assert beat(context).runs[0].detail == "139 memories, 1 chains"


def test_when_the_damage_is_mended_everything_is_due_again(context: Context) -> None:
    add_many(context, [("The deploy failed.", FAILED)])
    (row,) = context.store.find(Kind.BLOCK)
    sound = Block.of(row)
    context.store.apply([replace(sound, yamo_text="changed", revision=2).row(replaces=1)])
    assert not beat(context).ok
    context.store.apply([replace(sound, revision=3).row(replaces=2)])
    assert set(outcomes(beat(context)).values()) == {"done"}


# --- what fails ---


@pytest.mark.parametrize(
    "error",
    [
        CallError("it is down"),
        ValueError("The heron sat here"),
        KeyError("heron"),
        OSError(5, "heron"),
    ],
)
def test_a_job_that_fails_keeps_no_other_from_running_and_stays_due(
    context: Context,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    def fail(_: Context) -> str:
        raise error

    own, sound = isinstance(error, CallError), heartbeat.JOBS
    with_job(monkeypatch, "distillation", fail)
    with caplog.at_level(logging.INFO, "memory_mesh"):
        done = beat(context)
    assert outcomes(done) == {**dict.fromkeys(NAMES, "done"), "distillation": "failed"}
    assert not done.ok
    detail = done.runs[1].detail
    assert detail == ("it is down" if own else f"unexpected {type(error).__name__}")
    assert "heron" not in caplog.text
    assert own or "distillation failed" in caplog.text
    assert outcomes(beat(context)) == {
        "guard": "done",
        "distillation": "failed",
        **dict.fromkeys(NAMES[2:], "not due"),
    }
    monkeypatch.setattr(heartbeat, "JOBS", sound)
    assert outcomes(beat(context))["distillation"] == "done"
    assert [run.outcome for run in log(context) if run.job == "distillation"] == [
        "done",
        "failed",
        "failed",
    ]


def test_an_interrupt_ends_the_beat_and_frees_the_job(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Context) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupting:
        with_job(interrupting, "distillation", interrupted)
        with pytest.raises(KeyboardInterrupt):
            beat(context)
    assert [(run.job, run.detail) for run in log(context)] == [("distillation", "interrupted")]
    assert outcomes(beat(context))["distillation"] == "done", "it is free at once"


class _Busy:
    """A store that cannot be written to for a while."""

    def __init__(self, context: Context, times: int) -> None:
        self._inner, self.left = context.store, times

    def apply(self, *arguments: object, **named: object) -> object:
        if self.left:
            self.left -= 1
            raise StoreBusy("others hold it", remedy="try again")
        return self._inner.apply(*arguments, **named)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_a_busy_store_fails_one_job_and_not_the_beat(context: Context) -> None:
    done = beat(replace(context, store=_Busy(context, 1)))  # type: ignore[arg-type]
    assert outcomes(done) == {**dict.fromkeys(NAMES, "done"), "distillation": "failed"}
    assert outcomes(beat(context))["distillation"] == "done"


def test_a_store_that_stays_busy_fails_every_job_and_still_gives_an_answer(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    done = beat(replace(context, store=_Busy(context, 99)))  # type: ignore[arg-type]
    assert outcomes(done) == {"guard": "done", **dict.fromkeys(NAMES[1:], "failed")}
    assert "the run of guard was not recorded: others hold it" in caplog.text
    assert log(context) == []


def test_a_job_whose_end_could_not_be_written_was_done_and_is_free_when_its_lease_ends(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = _Busy(context, 0)

    def work(_: Context) -> str:
        busy.left = 1
        return "worked"

    with_job(monkeypatch, "distillation", work)
    done = beat(replace(context, store=busy))  # type: ignore[arg-type]
    assert set(outcomes(done).values()) == {"done"}
    assert outcomes(beat(context))["distillation"] == "held by another"
    pass_time(context, hours=0.5)
    assert outcomes(beat(context))["distillation"] == "done"


def test_a_store_that_is_only_read_has_no_heartbeat(tmp_path: Path, context: Context) -> None:
    url = f"sqlite:///{tmp_path / 'read.db'}"
    prepare(tmp_path / "read.db")
    store = open_store(f"{url}?mode=ro")
    with pytest.raises(StoreReadOnly):
        beat(replace(context, store=store))
    assert log(replace(context, store=store)) == []
    store.close()


def test_without_memory_there_is_no_heartbeat(context: Context) -> None:
    with pytest.raises(MemoryDisabled):
        beat(context.with_options(enable_memory=False))


# --- one at a time ---


def test_a_job_that_another_runs_at_the_moment_is_left_to_it(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[dict[str, str]] = []

    def during(_: Context) -> str:
        with monkeypatch.context() as inner:
            inner.setattr(heartbeat, "JOBS", sound)
            met.append(outcomes(beat(context, force=True)))
        return "worked"

    sound = heartbeat.JOBS
    with_job(monkeypatch, "distillation", during)
    assert outcomes(beat(context))["distillation"] == "done"
    assert met == [{**dict.fromkeys(NAMES, "done"), "distillation": "held by another"}]


class Died(BaseException):
    """As if the process had ended there."""


def test_what_died_in_the_middle_of_a_job_holds_it_for_half_an_hour(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> str:
        raise Died

    with monkeypatch.context() as dying:
        with_job(dying, "distillation", die)
        dying.setattr(heartbeat, "_release", die)
        with pytest.raises(Died):
            beat(context)
    assert outcomes(beat(context))["distillation"] == "held by another"
    assert outcomes(beat(context, force=True))["distillation"] == "held by another"
    pass_time(context, hours=LEASE_MS / 3_600_000)
    assert outcomes(beat(context))["distillation"] == "done"


def test_a_clock_set_back_does_not_let_the_dead_hold_a_job(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> str:
        raise Died

    with monkeypatch.context() as dying:
        with_job(dying, "distillation", die)
        dying.setattr(heartbeat, "_release", die)
        with pytest.raises(Died):
            beat(context)
    pass_time(context, hours=-100)
    assert outcomes(beat(context))["distillation"] == "done"


def test_a_job_that_outlives_its_lease_is_recorded_beside_the_one_that_took_over(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = heartbeat.JOBS

    def slow(_: Context) -> str:
        pass_time(context, hours=1)
        with monkeypatch.context() as inner:
            inner.setattr(heartbeat, "JOBS", sound)
            assert outcomes(beat(context, jobs=["distillation"]))["distillation"] == "done"
        return "late"

    with_job(monkeypatch, "distillation", slow)
    beat(context, jobs=["distillation"])
    runs = [run for run in log(context) if run.job == "distillation"]
    assert [run.detail for run in runs] == ["0 candidates in 0 blocks: 0 learnt, 0 known", "late"]
    monkeypatch.setattr(heartbeat, "JOBS", sound)
    assert outcomes(beat(context))["distillation"] == "not due"


# --- what is remembered ---


def test_the_log_tells_the_latest_runs_newest_first(context: Context) -> None:
    beat(context)
    pass_time(context, hours=1)
    beat(context)
    runs = log(context)
    assert [(run.job, str(run.outcome)) for run in runs] == [
        ("guard", "done"), ("reembedding", "done"), *((name, "done") for name in NAMES),
    ]  # fmt: skip
    assert [run.began for run in runs] == ["2026-01-01T01:00:00.000Z"] * 2 + [
        "2026-01-01T00:00:00.000Z"
    ] * 6
    assert log(context, limit=2) == runs[:2]
    with pytest.raises(InvalidInput):
        log(context, limit=0)


@pytest.mark.parametrize("every", [1.0, 8.0, 1 / 3600])
def test_the_runs_that_are_remembered_are_many_and_bounded(context: Context, every: float) -> None:
    for _ in range(MAX_STORED_RUNS + 15):
        beat(context, jobs=["reembedding"], force=True)
        pass_time(context, hours=every)
    runs = log(context, limit=1000)
    assert {name: sum(run.job == name for run in runs) for name in ("guard", "reembedding")} == {
        "guard": MAX_STORED_RUNS,
        "reembedding": MAX_STORED_RUNS,
    }
    assert len({run.began for run in runs}) == MAX_STORED_RUNS, (
        "the latest ones, and none of them twice"
    )
    assert context.store.count(Kind.META) <= 2 * (MAX_STORED_RUNS + 1)


def test_a_record_that_somebody_spoilt_is_passed_over(context: Context) -> None:
    beat(context)
    row = next(
        row
        for row in context.store.find(Kind.META)
        if row.id.startswith("run") and "retention" in row.id
    )
    turn = next(
        row
        for row in context.store.find(Kind.META)
        if row.id.startswith("job") and "retention" in row.id
    )
    for spoilt in (row, turn):
        context.store.apply(
            [
                replace(
                    spoilt,
                    fields={"detail": {"outcome": "odd", "until": "x"}},
                    revision=9,
                    replaces=spoilt.revision,
                )
            ]
        )
    assert "retention" not in [run.job for run in log(context)]
    assert outcomes(beat(context))["retention"] == "done"


# --- the jobs ---


@pytest.mark.req("MESH-090")
def test_a_lesson_not_seen_for_a_year_is_archived(context: Context) -> None:
    lesson = lessons.distill_lesson(context, LESSON)
    pass_time(context, hours=365 * DAY)
    assert beat(context).runs[3].detail.startswith("0 lessons archived")
    pass_time(context, hours=DAY)
    assert beat(context).runs[3].detail.startswith("1 lessons archived")
    assert memory(context, lesson.memory_id).status == "archived"
    assert lessons.query(context, "") == []
    latest = max(
        (Block.of(row) for row in context.store.find(Kind.BLOCK)), key=lambda block: block.number
    )
    assert latest.metadata == {
        "action": "archive",
        "tags": ["#lesson_learned"],
        "error_pattern": "token_expired",
    }
    assert beat(context).ok


@pytest.mark.req("MESH-090")
@pytest.mark.parametrize(
    "how", ["searched for", "learnt again", "learnt again and written down", "found among memories"]
)
def test_a_lesson_that_was_met_stays_for_another_year(context: Context, how: str) -> None:
    lesson = lessons.distill_lesson(context, LESSON)
    pass_time(context, hours=300 * DAY)
    match how:
        case "searched for":
            assert lessons.query(context, "refresh token")
        case "found among memories":
            assert search(context, Request(query="refresh token"))
        case _:
            lessons.distill_lesson(context, LESSON)
    if how.endswith("down"):
        usage.flush(context)
    pass_time(context, hours=300 * DAY)
    assert lessons.archive_old(context) == []
    pass_time(context, hours=66 * DAY)
    assert lessons.archive_old(context) == [lesson.memory_id]


@pytest.mark.req("MESH-090")
def test_listing_all_lessons_is_not_meeting_them(context: Context) -> None:
    lesson = lessons.distill_lesson(context, LESSON)
    pass_time(context, hours=300 * DAY)
    assert lessons.query(context, "")
    pass_time(context, hours=66 * DAY)
    assert lessons.archive_old(context) == [lesson.memory_id]


@pytest.mark.req("MESH-090")
def test_a_pinned_lesson_and_memories_that_are_no_lessons_stay(context: Context) -> None:
    pinned = lessons.distill_lesson(context, LESSON)
    write.set_columns(context, pinned.memory_id, action="pin", pinned=True)
    add_many(context, [("An old memory.", None)])
    narrow = lessons.learn(
        context,
        {**LESSON, "error_pattern": "own"},
        sources=add_many(context, [("Own.", {"type": "agent"})]),
    )[0]
    other = lessons.distill_lesson(replace(context, reader=Reader("v", "ann")), LESSON)
    pass_time(context, hours=1000 * DAY)
    assert lessons.archive_old(replace(context, reader=Reader("u", "bob"))) == [narrow.memory_id], (
        "of whatever agent of the user"
    )
    assert memory(context, other.memory_id).status == "active"
    assert lessons.archive_old(context) == []


def test_a_lesson_that_is_erased_meanwhile_is_not_archived(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = lessons.distill_lesson(context, LESSON)
    pass_time(context, hours=1000 * DAY)
    ids = context.store.ids(Kind.MEMORY)
    erase.delete(context, ids)
    monkeypatch.setattr(type(context.store), "ids", lambda *_: ids)
    assert (ids, lessons.archive_old(context)) == ([lesson.memory_id], [])


@pytest.mark.req("MESH-090", "MESH-068")
@pytest.mark.parametrize(("days", "archived"), [(1, 1), (30, 1), (31, 0), (30_000, 0), (10**12, 0)])
def test_how_long_lessons_are_kept_is_a_setting(context: Context, days: int, archived: int) -> None:
    lessons.distill_lesson(context, LESSON)
    pass_time(context, hours=30.5 * DAY)
    assert len(lessons.archive_old(context.with_options(lesson_retention_days=days))) == archived


def test_blocks_of_searches_are_removed_after_ninety_days(context: Context) -> None:
    listening = context.with_options(audit_recalls=True)
    add_many(context, [("The deploy failed.", FAILED)])
    for days in (0, 80):
        pass_time(context, hours=days * DAY)
        search(listening, Request(query="deploy"))
        usage.flush(listening)
    pass_time(context, hours=20 * DAY)
    assert beat(context).runs[3].detail == "0 lessons archived, 1 recall blocks removed"
    assert beat(context).ok, "what is left is still a whole chain"


def test_memories_that_wait_for_a_vector_get_it(context: Context) -> None:
    down = context.with_models(embedder=DownEmbedder(HashingEmbedder().model))
    (waiting,) = add_many(down, [("The deploy failed.", None)])
    assert memory(context, waiting.id).pending
    up = context.with_models(embedder=HashingEmbedder())
    assert beat(up).runs[4].detail == "1 memories embedded"
    assert not memory(context, waiting.id).pending
    assert memory(context, waiting.id).vector


def test_an_embedder_that_is_down_fails_one_job_until_it_is_back(context: Context) -> None:
    down = context.with_models(embedder=DownEmbedder(HashingEmbedder().model))
    add_many(down, [("The deploy failed.", None)])
    done = beat(down)
    assert outcomes(done) == {**dict.fromkeys(NAMES, "done"), "reembedding": "failed"}
    assert outcomes(beat(context.with_models(embedder=HashingEmbedder())))["reembedding"] == "done"


def test_a_beat_never_changes_the_model_of_a_store(context: Context) -> None:
    first, second = (
        context.with_models(embedder=HashingEmbedder()),
        context.with_models(embedder=HashingEmbedder(128)),
    )
    (kept,) = add_many(first, [("The deploy failed.", None)])
    vector = memory(context, kept.id).vector
    done = beat(second, force=True)
    assert done.runs[4].detail == "the store has vectors of another model"
    assert (embed.store_model(context), memory(context, kept.id).vector) == ("hashing/256", vector)
    embed.reembed(second, lambda *_: None)
    assert embed.store_model(context) == "hashing/128", "who asks for it by name changes it"


def test_the_heartbeat_of_an_empty_store_is_well(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'empty.db'}")
    context = Context(
        store=store, index=None, clock=FakeClock(), ids=seeded_ids(),
        reader=Reader(), pause=no_pause
    )  # type: ignore[arg-type]  # fmt: skip
    assert beat(context).ok
    store.close()
