"""The heartbeat: what is due runs in its order, once, behind a guard; what fails keeps nothing else from running."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memory_mesh.core.audit import chain as audit
from memory_mesh.core.audit.search_log import Recalls
from memory_mesh.core.errors import CallError, InvalidInput, MemoryDisabled, StoreBusy, StoreReadOnly
from memory_mesh.core.learning.jobs import KEPT, LEASE_MS, Heartbeat
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Memory
from memory_mesh.core.model.rows import Key
from memory_mesh.core.model.scope import Reader
from memory_mesh.flows import change, embed, erase, heartbeat, lessons, reembed, usage, write
from memory_mesh.flows import search_log as recalls
from memory_mesh.flows.context import Desk
from memory_mesh.flows.heartbeat import Job, beat, log
from memory_mesh.flows.search import Request, search
from memory_mesh.models.hashing import HashingEmbedder
from memory_mesh.testing.fakes import DownEmbedder, FakeClock, no_pause, seeded_ids
from memory_mesh.wiring.open_store import open_store

NAMES = ["guard", "distillation", "retention", "reembedding", "compaction"]
FAILED = {"status": "error", "error_pattern": "token_expired", "preventative_rule": "Refresh the token first."}
LESSON: dict[str, object] = {
    "situation": "x", "error_pattern": "token_expired", "oversight": "x", "fix": "x",
    "preventative_rule": "Refresh the token first.", "severity": "high", "applicable_scope": "deploys",
}  # fmt: skip
DAY = 24


@pytest.fixture
def desk(desk: Desk) -> Desk:
    return replace(desk, distilling=True)


def pass_time(desk: Desk, *, hours: float = 0) -> None:
    assert isinstance(desk.clock, FakeClock)
    desk.clock.advance(seconds=hours * 3600)


def outcomes(done: Heartbeat) -> dict[str, str]:
    return {run.job: str(run.outcome) for run in done.runs}


def memory(desk: Desk, id_: str) -> Memory:
    return Memory.of(desk.store.get(Kind.MEMORY, [id_])[id_])


def with_job(monkeypatch: pytest.MonkeyPatch, name: str, run: Callable[[Desk], str]) -> None:
    """Let a job do something else."""
    jobs = tuple(Job(job.name, job.priority, job.every_ms, run) if job.name == name else job for job in heartbeat.JOBS)
    monkeypatch.setattr(heartbeat, "JOBS", jobs)


# --- order and time ---


@pytest.mark.req("MESH-138")
def test_jobs_run_in_the_order_of_their_priority_the_guard_first(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    for job in heartbeat.JOBS:
        with_job(monkeypatch, job.name, lambda _, name=job.name: ran.append(name) or "")  # type: ignore[misc]
    done = beat(desk)
    assert ran == NAMES == [run.job for run in done.runs]
    assert [run.priority for run in done.runs] == sorted(run.priority for run in done.runs)
    assert (done.runs[0].priority, done.runs[1].priority) == (0, 1)
    assert done.ok


@pytest.mark.req("MESH-138")
def test_a_beat_does_what_is_due_and_tells_what_it_did(desk: Desk) -> None:
    write.add_many(desk, [("The deploy failed.", FAILED)])
    done = beat(desk)
    assert set(outcomes(done).values()) == {"done"}
    assert {run.job: run.detail for run in done.runs} == {
        "guard": "1 memories, 1 chains",
        "distillation": "1 candidates in 1 blocks: 1 learnt, 0 known",
        "retention": "0 lessons archived, 0 recall blocks removed",
        "reembedding": "no embedder is set",
        "compaction": "nothing deleted is left in the files",
    }
    assert [lesson.preventative_rule for lesson in lessons.query(desk, "")] == ["Refresh the token first."]


@pytest.mark.req("MESH-138", "MESH-139")
def test_in_a_day_of_hourly_beats_every_job_runs_as_often_as_it_should(desk: Desk) -> None:
    counts = dict.fromkeys(NAMES, 0)
    for _ in range(DAY):
        for job, outcome in outcomes(beat(desk)).items():
            assert outcome in ("done", "not due")
            counts[job] += outcome == "done"
        pass_time(desk, hours=1)
    assert 2 <= counts["distillation"] <= 4
    assert counts == {"guard": 24, "distillation": 3, "retention": 1, "reembedding": 24, "compaction": 1}


@pytest.mark.req("MESH-139")
@pytest.mark.parametrize("every", [0.1, 1, 3, 5, 7.999, 8])
def test_distillation_comes_round_two_to_four_times_a_day_whatever_the_pulse(desk: Desk, every: float) -> None:
    beats, ran = round(DAY * 4 / every), 0
    for _ in range(beats):
        ran += outcomes(beat(desk, jobs=["distillation"]))["distillation"] == "done"
        pass_time(desk, hours=every)
    assert 2 <= ran / 4 <= 4


def test_force_runs_what_is_not_due(desk: Desk) -> None:
    beat(desk)
    assert set(outcomes(beat(desk)).values()) == {"done", "not due"}
    assert set(outcomes(beat(desk, force=True)).values()) == {"done"}


def test_named_jobs_run_alone_behind_the_guard(desk: Desk) -> None:
    assert outcomes(beat(desk, jobs=["compaction", "retention"])) == {"guard": "done", "retention": "done", "compaction": "done"}
    for only in (["guard"], []):
        assert outcomes(beat(desk, jobs=only)) == {"guard": "done"}
    assert outcomes(beat(desk))["distillation"] == "done", "the others are still due"


@pytest.mark.parametrize("jobs", [["decay"], ["guard", "x"], "guard", 5, [["guard"]], [None]], ids=repr)
def test_a_job_that_is_unknown_is_refused_before_anything_runs(desk: Desk, jobs: object) -> None:
    with pytest.raises(InvalidInput, match="jobs is") as refused:
        beat(desk, jobs=jobs)  # type: ignore[arg-type]
    assert "distillation" in str(refused.value)
    assert log(desk) == []


@pytest.mark.req("MESH-071", "MESH-068")
def test_distillation_is_off_unless_the_settings_want_it_even_by_force(desk: Desk) -> None:
    write.add_many(desk, [("The deploy failed.", FAILED)])
    off = replace(desk, distilling=False)
    for force in (False, True):
        done = beat(off, force=force)
        assert (outcomes(done)["distillation"], done.ok) == ("off", True)
    assert lessons.query(desk, "") == []
    assert outcomes(beat(desk))["distillation"] == "done", "it was not counted as run"
    assert len(lessons.query(desk, "")) == 1


def test_a_clock_set_back_makes_everything_due_once(desk: Desk) -> None:
    beat(desk)
    pass_time(desk, hours=-1000)
    assert set(outcomes(beat(desk)).values()) == {"done"}
    assert outcomes(beat(desk))["distillation"] == "not due"
    pass_time(desk, hours=8)
    assert outcomes(beat(desk))["distillation"] == "done"


def test_each_user_has_a_heartbeat_of_its_own(desk: Desk) -> None:
    other = replace(desk, who=Reader("v", "ann"))
    nobody = replace(desk, who=Reader(None, "ann"))
    for one in (desk, other, nobody):
        assert outcomes(beat(one))["distillation"] == "done"
        assert len(log(one, limit=100)) == 5
    assert outcomes(beat(replace(desk, who=Reader("u", "bob"))))["distillation"] == "not due", "agents of a user share it"


# --- the guard ---


def tampered(desk: Desk, how: str) -> None:
    chain = audit.chain_name("u", "ann")
    blocks = sorted((Block.of(row) for row in desk.store.find(Kind.BLOCK)), key=lambda block: block.number)
    last = blocks[-1]
    match how:
        case "a text":
            changed = replace(last, yamo_text=last.yamo_text.replace("deploy", "depots"), revision=2)
            desk.store.apply([changed.row(replaces=1)])
        case "the last block":
            desk.store.apply([], [Key(Kind.BLOCK, last.id)])
        case "a block within":
            desk.store.apply([], [Key(Kind.BLOCK, blocks[1].id)])
        case "the first block":
            desk.store.apply([], [Key(Kind.BLOCK, blocks[0].id)])
        case "the head":
            desk.store.apply([], [Key(Kind.HEAD, chain)])


@pytest.mark.req("MESH-139")
@pytest.mark.parametrize("how", ["a text", "the last block", "a block within", "the first block", "the head"])
def test_where_the_guard_finds_damage_nothing_else_runs_and_says_so(desk: Desk, how: str) -> None:
    write.add_many(desk, [(f"The deploy {n} failed.", {**FAILED, "error_pattern": f"p{n}"}) for n in range(3)])
    assert beat(desk, jobs=["guard"]).ok
    tampered(desk, how)
    before = desk.store.count(Kind.MEMORY), desk.store.count(Kind.BLOCK)
    done = beat(desk, force=True)
    assert outcomes(done) == {"guard": "failed", **dict.fromkeys(NAMES[1:], "blocked")}
    assert not done.ok
    assert "audit verify" in done.runs[0].detail
    assert {run.detail for run in done.runs[1:]} == {"the guard found damage"}
    assert (desk.store.count(Kind.MEMORY), desk.store.count(Kind.BLOCK)) == before
    assert next(run for run in log(desk) if run.job == "guard").outcome == "failed"


@pytest.mark.req("MESH-139")
def test_damage_in_the_chain_of_another_agent_or_of_searches_stops_the_beat_too(desk: Desk) -> None:
    bob = replace(desk, who=Reader("u", "bob"), recalls=Recalls())
    write.add_many(bob, [("The deploy failed.", FAILED)])
    search(bob, Request(query="deploy"))
    recalls.flush(bob)
    assert beat(desk, jobs=["guard"]).runs[0].detail == "1 memories, 2 chains"
    block = next(Block.of(row) for row in desk.store.find(Kind.BLOCK) if row.value("operation_type") == "recall")
    desk.store.apply([replace(block, yamo_text="changed", revision=2).row(replaces=1)])
    assert outcomes(beat(desk))["distillation"] == "blocked"


def test_damage_in_the_chain_of_another_user_is_that_users_concern(desk: Desk) -> None:
    write.add_many(desk, [("The deploy failed.", FAILED)])
    tampered(desk, "the head")
    assert not beat(desk).ok
    assert beat(replace(desk, who=Reader("v", "ann"))).ok


class _Busily:
    """A store to which somebody else writes whenever a head was read."""

    def __init__(self, desk: Desk, times: int) -> None:
        self._desk, self._inner, self.left = desk, desk.store, times

    def get(self, kind: Kind, ids: list[str]) -> object:
        found = self._inner.get(kind, ids)
        if kind is Kind.HEAD and self.left:
            self.left -= 1
            write.add_many(self._desk, [(f"Meanwhile {self.left}.", None)])
        return found

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_a_chain_that_grows_while_the_guard_looks_is_not_damage(desk: Desk) -> None:
    write.add_many(desk, [("The deploy failed.", None)])
    for times in (1, 2, 5, 1000):
        assert beat(replace(desk, store=_Busily(desk, times)), jobs=["guard"]).ok  # type: ignore[arg-type]


def test_the_guard_is_content_with_erasures_and_long_chains(desk: Desk) -> None:
    ids = [made.id for made in write.add_many(desk, [(f"Note {n}", None) for n in range(150)])]
    erase.erase(desk, ids[140:])
    erase.erase(desk, ids[:1])
    assert beat(desk).ok
    assert beat(desk).runs[0].detail == "139 memories, 1 chains"


def test_when_the_damage_is_mended_everything_is_due_again(desk: Desk) -> None:
    write.add_many(desk, [("The deploy failed.", FAILED)])
    (row,) = desk.store.find(Kind.BLOCK)
    sound = Block.of(row)
    desk.store.apply([replace(sound, yamo_text="changed", revision=2).row(replaces=1)])
    assert not beat(desk).ok
    desk.store.apply([replace(sound, revision=3).row(replaces=2)])
    assert set(outcomes(beat(desk)).values()) == {"done"}


# --- what fails ---


@pytest.mark.parametrize(
    "error", [CallError("it is down"), ValueError("The heron sat here"), KeyError("heron"), OSError(5, "heron")]
)
def test_a_job_that_fails_keeps_no_other_from_running_and_stays_due(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(_: Desk) -> str:
        raise error

    own, sound = isinstance(error, CallError), heartbeat.JOBS
    with_job(monkeypatch, "distillation", fail)
    with caplog.at_level(logging.INFO, "memory_mesh"):
        done = beat(desk)
    assert outcomes(done) == {**dict.fromkeys(NAMES, "done"), "distillation": "failed"}
    assert not done.ok
    detail = done.runs[1].detail
    assert detail == ("it is down" if own else f"unexpected {type(error).__name__}")
    assert "heron" not in caplog.text
    assert own or "distillation failed" in caplog.text
    assert outcomes(beat(desk)) == {"guard": "done", "distillation": "failed", **dict.fromkeys(NAMES[2:], "not due")}
    monkeypatch.setattr(heartbeat, "JOBS", sound)
    assert outcomes(beat(desk))["distillation"] == "done"
    assert [run.outcome for run in log(desk) if run.job == "distillation"] == ["done", "failed", "failed"]


def test_an_interrupt_ends_the_beat_and_frees_the_job(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Desk) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupting:
        with_job(interrupting, "distillation", interrupted)
        with pytest.raises(KeyboardInterrupt):
            beat(desk)
    assert [(run.job, run.detail) for run in log(desk)] == [("distillation", "interrupted")]
    assert outcomes(beat(desk))["distillation"] == "done", "it is free at once"


class _Busy:
    """A store that cannot be written to for a while."""

    def __init__(self, desk: Desk, times: int) -> None:
        self._inner, self.left = desk.store, times

    def apply(self, *arguments: object, **named: object) -> object:
        if self.left:
            self.left -= 1
            raise StoreBusy("others hold it", remedy="try again")
        return self._inner.apply(*arguments, **named)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_a_busy_store_fails_one_job_and_not_the_beat(desk: Desk) -> None:
    done = beat(replace(desk, store=_Busy(desk, 1)))  # type: ignore[arg-type]
    assert outcomes(done) == {**dict.fromkeys(NAMES, "done"), "distillation": "failed"}
    assert outcomes(beat(desk))["distillation"] == "done"


def test_a_store_that_stays_busy_fails_every_job_and_still_gives_an_answer(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    done = beat(replace(desk, store=_Busy(desk, 99)))  # type: ignore[arg-type]
    assert outcomes(done) == {"guard": "done", **dict.fromkeys(NAMES[1:], "failed")}
    assert "no record of guard, because others hold it" in caplog.text
    assert log(desk) == []


def test_a_job_whose_end_could_not_be_written_was_done_and_is_free_when_its_lease_ends(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = _Busy(desk, 0)

    def work(_: Desk) -> str:
        busy.left = 1
        return "worked"

    with_job(monkeypatch, "distillation", work)
    done = beat(replace(desk, store=busy))  # type: ignore[arg-type]
    assert set(outcomes(done).values()) == {"done"}
    assert outcomes(beat(desk))["distillation"] == "held by another"
    pass_time(desk, hours=0.5)
    assert outcomes(beat(desk))["distillation"] == "done"


def test_a_store_that_is_only_read_has_no_heartbeat(tmp_path: Path, desk: Desk) -> None:
    url = f"sqlite:///{tmp_path / 'read.db'}"
    open_store(url).close()
    store = open_store(f"{url}?mode=ro")
    with pytest.raises(StoreReadOnly):
        beat(replace(desk, store=store))
    assert log(replace(desk, store=store)) == []
    store.close()


def test_without_memory_there_is_no_heartbeat(desk: Desk) -> None:
    with pytest.raises(MemoryDisabled):
        beat(replace(desk, enabled=False))


# --- one at a time ---


def test_a_job_that_another_runs_at_the_moment_is_left_to_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[dict[str, str]] = []

    def during(_: Desk) -> str:
        with monkeypatch.context() as inner:
            inner.setattr(heartbeat, "JOBS", sound)
            met.append(outcomes(beat(desk, force=True)))
        return "worked"

    sound = heartbeat.JOBS
    with_job(monkeypatch, "distillation", during)
    assert outcomes(beat(desk))["distillation"] == "done"
    assert met == [{**dict.fromkeys(NAMES, "done"), "distillation": "held by another"}]


class Died(BaseException):
    """As if the process had ended there."""


def test_what_died_in_the_middle_of_a_job_holds_it_for_half_an_hour(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> str:
        raise Died

    with monkeypatch.context() as dying:
        with_job(dying, "distillation", die)
        dying.setattr(heartbeat, "_give_back", die)
        with pytest.raises(Died):
            beat(desk)
    assert outcomes(beat(desk))["distillation"] == "held by another"
    assert outcomes(beat(desk, force=True))["distillation"] == "held by another"
    pass_time(desk, hours=LEASE_MS / 3_600_000)
    assert outcomes(beat(desk))["distillation"] == "done"


def test_a_clock_set_back_does_not_let_the_dead_hold_a_job(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> str:
        raise Died

    with monkeypatch.context() as dying:
        with_job(dying, "distillation", die)
        dying.setattr(heartbeat, "_give_back", die)
        with pytest.raises(Died):
            beat(desk)
    pass_time(desk, hours=-100)
    assert outcomes(beat(desk))["distillation"] == "done"


def test_who_takes_longer_than_the_lease_is_recorded_beside_the_one_that_took_over(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = heartbeat.JOBS

    def slow(_: Desk) -> str:
        pass_time(desk, hours=1)
        with monkeypatch.context() as inner:
            inner.setattr(heartbeat, "JOBS", sound)
            assert outcomes(beat(desk, jobs=["distillation"]))["distillation"] == "done"
        return "late"

    with_job(monkeypatch, "distillation", slow)
    beat(desk, jobs=["distillation"])
    runs = [run for run in log(desk) if run.job == "distillation"]
    assert [run.detail for run in runs] == ["0 candidates in 0 blocks: 0 learnt, 0 known", "late"]
    monkeypatch.setattr(heartbeat, "JOBS", sound)
    assert outcomes(beat(desk))["distillation"] == "not due"


# --- what is remembered ---


def test_the_log_tells_the_latest_runs_newest_first(desk: Desk) -> None:
    beat(desk)
    pass_time(desk, hours=1)
    beat(desk)
    runs = log(desk)
    assert [(run.job, str(run.outcome)) for run in runs] == [
        ("guard", "done"), ("reembedding", "done"), *((name, "done") for name in NAMES),
    ]  # fmt: skip
    assert [run.began for run in runs] == ["2026-01-01T01:00:00.000Z"] * 2 + ["2026-01-01T00:00:00.000Z"] * 5
    assert log(desk, limit=2) == runs[:2]
    with pytest.raises(InvalidInput):
        log(desk, limit=0)


@pytest.mark.parametrize("every", [1.0, 8.0, 1 / 3600])
def test_the_runs_that_are_remembered_are_many_and_bounded(desk: Desk, every: float) -> None:
    for _ in range(KEPT + 15):
        beat(desk, jobs=["reembedding"], force=True)
        pass_time(desk, hours=every)
    runs = log(desk, limit=1000)
    assert {name: sum(run.job == name for run in runs) for name in ("guard", "reembedding")} == {
        "guard": KEPT,
        "reembedding": KEPT,
    }
    assert len({run.began for run in runs}) == KEPT, "the latest ones, and none of them twice"
    assert desk.store.count(Kind.META) <= 2 * (KEPT + 1)


def test_a_record_that_somebody_spoilt_is_passed_over(desk: Desk) -> None:
    beat(desk)
    row = next(row for row in desk.store.find(Kind.META) if row.id.startswith("run") and "retention" in row.id)
    turn = next(row for row in desk.store.find(Kind.META) if row.id.startswith("job") and "retention" in row.id)
    for spoilt in (row, turn):
        desk.store.apply(
            [replace(spoilt, fields={"detail": {"outcome": "odd", "until": "x"}}, revision=9, replaces=spoilt.revision)]
        )
    assert "retention" not in [run.job for run in log(desk)]
    assert outcomes(beat(desk))["retention"] == "done"


# --- the jobs ---


@pytest.mark.req("MESH-090")
def test_a_lesson_that_nobody_met_for_a_year_is_archived(desk: Desk) -> None:
    lesson = lessons.distill(desk, LESSON)
    pass_time(desk, hours=365 * DAY)
    assert beat(desk).runs[2].detail.startswith("0 lessons archived")
    pass_time(desk, hours=DAY)
    assert beat(desk).runs[2].detail.startswith("1 lessons archived")
    assert memory(desk, lesson.memory_id).status == "archived"
    assert lessons.query(desk, "") == []
    latest = max((Block.of(row) for row in desk.store.find(Kind.BLOCK)), key=lambda block: block.number)
    assert latest.metadata == {"action": "archive", "tags": ["#lesson_learned"], "error_pattern": "token_expired"}
    assert beat(desk).ok


@pytest.mark.req("MESH-090")
@pytest.mark.parametrize("how", ["searched for", "learnt again", "learnt again and written down", "found among memories"])
def test_a_lesson_that_was_met_stays_for_another_year(desk: Desk, how: str) -> None:
    lesson = lessons.distill(desk, LESSON)
    pass_time(desk, hours=300 * DAY)
    match how:
        case "searched for":
            assert lessons.query(desk, "refresh token")
        case "found among memories":
            assert search(desk, Request(query="refresh token"))
        case _:
            lessons.distill(desk, LESSON)
    if how.endswith("down"):
        usage.flush(desk)
    pass_time(desk, hours=300 * DAY)
    assert lessons.retire(desk) == []
    pass_time(desk, hours=66 * DAY)
    assert lessons.retire(desk) == [lesson.memory_id]


@pytest.mark.req("MESH-090")
def test_listing_all_lessons_is_not_meeting_them(desk: Desk) -> None:
    lesson = lessons.distill(desk, LESSON)
    pass_time(desk, hours=300 * DAY)
    assert lessons.query(desk, "")
    pass_time(desk, hours=66 * DAY)
    assert lessons.retire(desk) == [lesson.memory_id]


@pytest.mark.req("MESH-090")
def test_a_pinned_lesson_and_memories_that_are_no_lessons_stay(desk: Desk) -> None:
    pinned = lessons.distill(desk, LESSON)
    change.set_columns(desk, pinned.memory_id, action="pin", pinned=True)
    write.add_many(desk, [("An old memory.", None)])
    narrow = lessons.learn(desk, {**LESSON, "error_pattern": "own"}, sources=write.add_many(desk, [("Own.", {"type": "agent"})]))[
        0
    ]
    other = lessons.distill(replace(desk, who=Reader("v", "ann")), LESSON)
    pass_time(desk, hours=1000 * DAY)
    assert lessons.retire(replace(desk, who=Reader("u", "bob"))) == [narrow.memory_id], "of whatever agent of the user"
    assert memory(desk, other.memory_id).status == "active"
    assert lessons.retire(desk) == []


def test_a_lesson_that_is_erased_meanwhile_is_not_archived(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = lessons.distill(desk, LESSON)
    pass_time(desk, hours=1000 * DAY)
    ids = desk.store.ids(Kind.MEMORY)
    erase.erase(desk, ids)
    monkeypatch.setattr(type(desk.store), "ids", lambda *_: ids)
    assert (ids, lessons.retire(desk)) == ([lesson.memory_id], [])


@pytest.mark.req("MESH-090", "MESH-068")
@pytest.mark.parametrize(("days", "archived"), [(1, 1), (30, 1), (31, 0), (30_000, 0), (2**53, 0)])
def test_how_long_lessons_are_kept_is_a_setting(desk: Desk, days: int, archived: int) -> None:
    lessons.distill(desk, LESSON)
    pass_time(desk, hours=30.5 * DAY)
    assert len(lessons.retire(replace(desk, lesson_retention_days=days))) == archived


def test_blocks_of_searches_are_removed_after_ninety_days(desk: Desk) -> None:
    listening = replace(desk, recalls=Recalls())
    write.add_many(desk, [("The deploy failed.", FAILED)])
    for days in (0, 80):
        pass_time(desk, hours=days * DAY)
        search(listening, Request(query="deploy"))
        recalls.flush(listening)
    pass_time(desk, hours=20 * DAY)
    assert beat(desk).runs[2].detail == "0 lessons archived, 1 recall blocks removed"
    assert beat(desk).ok, "what is left is still a whole chain"


def test_memories_that_wait_for_a_vector_get_it(desk: Desk) -> None:
    down = replace(desk, embedder=DownEmbedder(HashingEmbedder().model))
    (waiting,) = write.add_many(down, [("The deploy failed.", None)])
    assert memory(desk, waiting.id).pending
    up = replace(desk, embedder=HashingEmbedder())
    assert beat(up).runs[3].detail == "1 memories embedded"
    assert not memory(desk, waiting.id).pending
    assert memory(desk, waiting.id).vector


def test_an_embedder_that_is_down_fails_one_job_until_it_is_back(desk: Desk) -> None:
    down = replace(desk, embedder=DownEmbedder(HashingEmbedder().model))
    write.add_many(down, [("The deploy failed.", None)])
    done = beat(down)
    assert outcomes(done) == {**dict.fromkeys(NAMES, "done"), "reembedding": "failed"}
    assert outcomes(beat(replace(desk, embedder=HashingEmbedder())))["reembedding"] == "done"


def test_a_beat_never_changes_the_model_of_a_store(desk: Desk) -> None:
    first, second = replace(desk, embedder=HashingEmbedder()), replace(desk, embedder=HashingEmbedder(128))
    (kept,) = write.add_many(first, [("The deploy failed.", None)])
    vector = memory(desk, kept.id).vector
    done = beat(second, force=True)
    assert done.runs[3].detail == "the store's vectors are of another model"
    assert (embed.store_model(desk), memory(desk, kept.id).vector) == ("hashing/256", vector)
    reembed.reembed(second, lambda *_: None)
    assert embed.store_model(desk) == "hashing/128", "who asks for it by name changes it"


def test_the_heartbeat_of_an_empty_store_is_well(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'empty.db'}")
    desk = Desk(
        store=store, index=None, embedder=None, clock=FakeClock(), ids=seeded_ids(), who=Reader(), pause=no_pause
    )  # type: ignore[arg-type]  # fmt: skip
    assert beat(desk).ok
    store.close()
