"""Consolidation: each phase does what it should and no more, shows it first, and a second run
finds nothing left to do."""

from array import array
from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.claims import Claim, Window, overlapping
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Kind, Memory, Reader, Status, Vector, equals, iso
from memory_mesh.core.upkeep import Consolidated
from memory_mesh.flows.claims.review import conflicts
from memory_mesh.flows.context import Context
from memory_mesh.flows.learning import heartbeat
from memory_mesh.flows.upkeep import consolidate as consolidating
from memory_mesh.flows.upkeep.consolidate import PHASES, consolidate

from .claiming import change, claimed, conflict, connect, read, stored
from .test_decay import contents, pass_days


def vector(cosine: float = 1.0) -> Vector:
    """A vector with this cosine to `vector()`."""
    return Vector("test", array("f", [cosine, sqrt(1 - cosine**2)]).tobytes())


def note(context: Context, text: str, cosine: float = 1.0, **columns: Any) -> Memory:
    return stored(context, text, vector=vector(cosine), importance=0.9, **columns)


def actions(done: Consolidated) -> dict[str, list[str]]:
    return {
        name: [step.action for step in getattr(done, name)]
        for name in PHASES
        if getattr(done, name)
    }


@pytest.mark.req("GRAPH-39", "MESH-010")
def test_the_phases_run_in_their_order_are_shown_first_and_a_second_run_changes_nothing(
    context: Context,
) -> None:
    pump = [
        stored(context, text, importance=0.9)
        for text in ("The pump is red.", "The pump hums loudly.", "Its oil is new.")
    ]
    for other in pump[1:]:
        connect(context, pump[0], other)
    outdated = stored(context, "The pump is blue.", status=Status.SUPERSEDED.value)
    pass_days(context, 91)
    note(context, "Ana likes the tea.", trust=0.5)
    note(context, "Ana likes tea.", trust=0.5)
    note(context, "On Mondays Bo swims.", metadata={"provenance": {"source": "document"}})
    note(context, "Bo swims on Mondays.", 0.92, metadata={"provenance": {"source": "system"}})
    claimed(context, "500", importance=0.9)
    claimed(context, "700", importance=0.9)
    before, seen = contents(context), list[str]()
    told = consolidate(context, dry_run=True)
    assert contents(context) == before
    expected = {
        "dedupe": ["supersede"], "contradictions": ["supersede"], "corroboration": ["corroborate"],
        "compress": ["digest"], "prune": ["archive"] * 4,
    }  # fmt: skip
    assert actions(told) == expected
    done = consolidate(context, progress=lambda what, *counts: seen.append(what))
    assert (actions(done), seen) == (expected, [*PHASES, "done"])
    assert [getattr(done, name) for name in PHASES[:3]] == [
        getattr(told, name) for name in PHASES[:3]
    ]
    assert read(context, outdated.id).status == "archived"
    kept = {row.value("content") for row in context.store.find(Kind.MEMORY)}
    assert kept >= {
        str(row.value("content")) for name, row in before.items() if name.startswith(Kind.MEMORY)
    }, "nothing is deleted"
    heartbeat.guard(context)
    after = contents(context)
    assert after != before
    assert consolidate(context) == Consolidated()
    assert contents(context) == after


@pytest.mark.req("GRAPH-40", "GRAPH-85")
def test_of_duplicates_the_more_trusted_one_stays_and_at_a_tie_the_earlier_one(
    context: Context,
) -> None:
    first = note(context, "The office is in Rome.", trust=0.6)
    pass_days(context, 20)  # age alone does not make it less trusted
    tie = note(context, "Office is in Rome.", trust=0.6)
    best = note(context, "Hello, office is in Rome.", 0.96, trust=1.0, times_observed=2)
    assert {(step.memory_id, step.other_id) for step in consolidate(context).dedupe} == {
        (first.id, best.id),
        (tie.id, best.id),
    }
    kept = read(context, best.id)
    assert (kept.status, {*kept.supersedes}, kept.times_observed) == (
        "active",
        {first.id, tie.id},
        4,
    )
    assert [
        (read(context, one.id).status, read(context, one.id).superseded_by) for one in (first, tie)
    ] == [("superseded", best.id)] * 2
    other = note(context, "Lunch is at noon.", trust=0.6)
    pass_days(context, 20)
    twin = note(context, "The lunch is at noon.", trust=0.6)
    assert [(step.memory_id, step.other_id) for step in consolidate(context).dedupe] == [
        (twin.id, other.id)
    ]


@pytest.mark.req("GRAPH-40")
@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("The port is not 5432.", {}),
        ("The port is 5433.", {}),
        ("The port is 5432 in Rome.", {}),
        ("Port is 5432.", {"vector": vector(0.9)}),
        ("Port is 5432.", {"vector": None}),
        ("Port is 5432.", {"pinned": True, "trust": 0.1}),
        ("Port is 5432.", {"speaker": "Ana"}),
        ("Port is 5432.", {"event_time": "2026-01-01T00:00:00.000Z"}),
        ("Port is 5432.", {"status": Status.QUARANTINED.value}),
        ("Port is 5432.", {"memory_type": "session", "session_id": "s"}),
        ("Port is 5432.", Claim(subject="port", predicate="is", value="5432").columns),
    ],
    ids=[
        "negation",
        "number",
        "place",
        "cosine",
        "no vector",
        "pinned",
        "turn",
        "time",
        "status",
        "scope",
        "claim",
    ],
)
def test_what_is_not_the_same_is_never_merged(
    context: Context, text: str, columns: dict[str, Any]
) -> None:
    note(context, "The port is 5432.")
    change(context, note(context, text).id, **columns)
    assert consolidate(context).dedupe == ()
    note(context, "Hello, the port is 5432.")  # the control
    assert len(consolidate(context).dedupe) == 1


@pytest.mark.req("GRAPH-40")
@pytest.mark.parametrize(
    ("cosine", "source", "counted"),
    [(0.92, "system", 1), (0.92, "document", 0), (0.89, "system", 0), (0.96, "system", 0)],
)
def test_a_memory_is_corroborated_once_by_another_source_within_the_band(
    context: Context, cosine: float, source: str, counted: int
) -> None:
    one = note(
        context, "On Mondays Bo swims.", metadata={"provenance": {"source": "document"}}, trust=0.6
    )
    note(
        context,
        "Bo swims on Mondays.",
        cosine,
        metadata={"provenance": {"source": source}},
        trust=0.6,
    )
    assert len(consolidate(context).corroboration) == counted
    assert consolidate(context).corroboration == ()
    assert read(context, one.id).corroborations == 1 + counted


@pytest.mark.req("GRAPH-41", "GRAPH-85")
@pytest.mark.parametrize(
    ("trusts", "policy", "statuses", "conflict_status"),
    [
        ((0.5, 0.5), "supersede", ("superseded", "active"), "resolved"),
        ((1.0, 0.5), "supersede", ("active", "quarantined"), "pending"),
        ((0.5, 1.0), "require_review", ("active", "quarantined"), "pending"),
        ((0.5, 1.0), "keep_both", ("active", "active"), "resolved"),
    ],
    ids=["equal trust", "less trust", "review", "keep both"],
)
def test_contradictions_meet_the_rules_of_store(
    context: Context,
    trusts: tuple[float, float],
    policy: str,
    statuses: tuple[str, str],
    conflict_status: str,
) -> None:
    context = context.with_options(predicate_schemas={"budget": {"conflict_policy": policy}})
    old, new = (
        claimed(context, value, trust=trust)
        for value, trust in zip(("500", "700"), trusts, strict=True)
    )
    assert len(consolidate(context).contradictions) == 1
    assert tuple(read(context, one.id).status for one in (old, new)) == statuses
    assert [(one.ref, one.target) for one in conflicts(context, conflict_status)] == [
        (new.id, old.id)
    ]
    assert consolidate(context).contradictions == ()
    heartbeat.guard(context)


@pytest.mark.req("GRAPH-41")
def test_a_contradiction_that_is_recorded_already_is_left_to_its_review(context: Context) -> None:
    old, new = claimed(context, "500"), claimed(context, "700")
    conflict(context, new, old)
    assert consolidate(context).contradictions == ()


@pytest.mark.req("GRAPH-41")
def test_only_claims_that_overlap_another_one_are_judged(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = [
        Window(start=f"2026-01-0{day}T00:00:00.000Z", end=f"2026-01-0{day}T23:00:00.000Z")
        for day in range(1, 9)
    ]
    every = [claimed(context, str(n), window=window) for n, window in enumerate(days)]
    late = claimed(
        context,
        "late",
        window=Window(start="2026-01-03T12:00:00.000Z", end="2026-01-04T12:00:00.000Z"),
    )
    judged, judge = list[str](), consolidating._judge_again
    monkeypatch.setattr(
        consolidating,
        "_judge_again",
        lambda context, id_: judged.append(id_) or judge(context, id_),
    )
    done = consolidate(context).contradictions
    assert [(step.memory_id, step.other_id) for step in done] == [
        (late.id, every[2].id),
        (late.id, every[3].id),
    ]
    assert set(judged) <= {every[2].id, every[3].id, late.id}
    judged.clear()
    assert consolidate(context).contradictions == ()
    assert judged == []


@given(
    st.lists(
        st.tuples(st.sampled_from([None, *"abcdef"]), st.sampled_from([None, *"abcdef"])),
        max_size=8,
    )
)
def test_overlapping_windows_are_found_without_comparing_all_pairs(
    ends: list[tuple[str | None, str | None]],
) -> None:
    windows = {
        str(n): Window(start=a, end=b) for n, (a, b) in enumerate(ends) if not (a and b) or a <= b
    }
    pairs = [
        (one, other)
        for one in windows
        for other in windows
        if one != other and windows[one].overlaps(windows[other])
    ]
    assert overlapping(windows) == {one for one, _ in pairs}


@pytest.mark.req("GRAPH-40")
def test_only_groups_wholly_older_than_thirty_days_are_digested(context: Context) -> None:
    one, other = note(context, "The pump is red."), note(context, "The pump hums loudly.")
    pass_days(context, 20)
    third = note(context, "Its oil is changed in May.")
    connect(context, one, other)
    connect(context, other, third)
    pass_days(context, 20)
    assert consolidate(context).compress == ()
    pass_days(context, 11)
    (step,) = consolidate(context).compress
    assert {*read(context, str(step.memory_id)).sources} == {one.id, other.id, third.id}


@pytest.mark.req("GRAPH-40")
def test_memories_superseded_over_ninety_days_ago_are_archived_but_not_what_was_true_until_then(
    context: Context,
) -> None:
    ended = stored(
        context,
        "Ana lived in Rome.",
        status=Status.SUPERSEDED.value,
        valid_until=iso(context.clock()),
    )
    pinned = stored(context, "Ana likes tea.", status=Status.SUPERSEDED.value, pinned=True)
    first, second = note(context, "Lunch is at noon."), note(context, "The lunch is at noon.")
    consolidate(context)
    pass_days(context, 89)
    assert second.id not in {step.memory_id for step in consolidate(context).prune}
    pass_days(context, 2)
    assert second.id in {step.memory_id for step in consolidate(context).prune}
    assert [read(context, one.id).status for one in (ended, pinned, second)] == [
        "superseded",
        "superseded",
        "archived",
    ]
    assert first.id != second.id


@pytest.mark.req("GRAPH-39")
def test_an_interrupted_run_is_continued_and_a_change_in_between_is_respected(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [note(context, f"Room {n} is blue.") for n in range(3)]
    second = [note(context, f"The room {n} is blue.") for n in range(3)]
    written, commit = list[str](), consolidating.commit

    def interrupted(*args: Any) -> Any:
        if written:
            change(context, second[2].id, content="Room 2 is red.")
            raise KeyboardInterrupt
        written.append("one")
        return commit(*args)

    monkeypatch.setattr(consolidating, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consolidate(context)
    monkeypatch.undo()
    assert context.store.count(Kind.MEMORY, equals("status", "superseded")) == 1
    left = consolidate(context).dedupe
    superseded = {memory.id for memory in second if read(context, memory.id).status == "superseded"}
    assert superseded == {one.id for one in second[:2]}
    assert len(left) == len(superseded) - 1
    assert all(read(context, memory.id).status == "active" for memory in first)


@pytest.mark.req("GRAPH-39")
def test_a_memory_that_is_changed_after_it_was_compared_is_not_merged(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    note(context, "Lunch is at noon.")
    other, commit = note(context, "The lunch is at noon."), consolidating.commit

    def meanwhile(*args: Any) -> Any:
        change(context, other.id, content="The lunch is at one.")
        return commit(*args)

    monkeypatch.setattr(consolidating, "commit", meanwhile)
    assert consolidate(context) == Consolidated()
    assert read(context, other.id).status == "active"


@pytest.mark.req("MESH-138")
def test_the_heartbeat_consolidates_after_decay_and_only_when_switched_on(context: Context) -> None:
    for text in ("Lunch is at noon.", "The lunch is at noon."):
        note(context, text)
    assert "consolidation" not in {run.job for run in heartbeat.beat(context).runs}
    runs = {
        run.job: run.detail
        for run in heartbeat.beat(context.with_options(decay_enabled=True), force=True).runs
    }
    assert (
        runs["consolidation"] == "1 dedupe, 0 contradictions, 0 corroboration, 0 compress, 0 prune"
    )
    assert [job for job in runs if job in ("decay", "consolidation", "retention")] == [
        "decay",
        "consolidation",
        "retention",
    ]


def test_memories_of_another_user_are_not_touched(context: Context) -> None:
    foreign = replace(context, reader=Reader("v", "ann"))
    for text in ("Lunch is at noon.", "The lunch is at noon."):
        note(foreign, text)
    assert consolidate(context) == Consolidated()
    assert len(consolidate(foreign).dedupe) == 1


@pytest.mark.parametrize(
    "wrong", [{"dry_run": "no"}, {"max_digests": 0}, {"min_cluster_size": 1}], ids=str
)
def test_an_option_that_is_not_valid_is_refused(context: Context, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        consolidate(context, **wrong)
