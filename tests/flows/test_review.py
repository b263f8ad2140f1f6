"""Feedback and reviews: what they change and leave alone, and that no decision leaves two claims
that exclude each other."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from memory_mesh.core.claims import Window
from memory_mesh.core.claims.rules import Reviewed
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.model import Change, ClaimConflict, Kind, Memory, Reader, Status, equals
from memory_mesh.flows.audit import audit
from memory_mesh.flows.claims.explain import explain_supersession
from memory_mesh.flows.claims.review import (
    conflicts,
    dispute,
    find_rivals,
    list_quarantined,
    reinforce,
    resolve_conflict,
    review_quarantine,
    undo_review,
)
from memory_mesh.flows.context import Context
from memory_mesh.flows.graph import store as graph
from memory_mesh.flows.graph.store import NewMemory, Stored
from memory_mesh.flows.search import usage

from .claiming import change, claimed, conflict, conflict_row, read, stored

QUARANTINED = Status.QUARANTINED.value


def act_as(context: Context, user: str | None = "u", agent: str = "ann") -> Context:
    return replace(context, reader=Reader(user, agent))


def last_change(context: Context, memory_id: str) -> Change:
    found = [Change.of(row) for row in context.store.find(Kind.CHANGE, equals("ref", memory_id))]
    return max(found, key=lambda one: one.number)


def disputed_case(context: Context) -> tuple[Memory, Memory, ClaimConflict]:
    """An active claim, a quarantined one that excludes it, and their conflict."""
    old, new = claimed(context, "500"), claimed(context, "700", status=QUARANTINED)
    return old, new, conflict(context, new, old)


def store(context: Context, text: str, **options: Any) -> Stored:
    """Store a memory through the gate of claims."""
    return graph.store(context, [NewMemory(text=text, **options).checked()])[0]


def alone(context: Context) -> bool:
    """Whether no active claim excludes another one."""
    rows = context.store.find(Kind.MEMORY, equals("status", "active"))
    return not any(find_rivals(context, Memory.of(row)) for row in rows)


# --- feedback ---


@pytest.mark.req("GRAPH-19")
def test_reinforcing_counts_raises_the_importance_up_to_one_and_counts_as_used(
    context: Context,
) -> None:
    memory = stored(context, "Ana prefers tea.", importance=0.85)
    after = [reinforce(context, memory.id) for _ in range(2)]
    assert [(one.reinforcements, one.importance) for one in after] == [
        (1, pytest.approx(0.95)),
        (2, 1.0),
    ]
    assert reinforce(
        context, stored(context, "Bo prefers coffee.").id, 0.2
    ).importance == pytest.approx(0.7)
    (shown,) = usage.with_counts(context, [read(context, memory.id)])
    assert (shown.access_count, shown.status) == (2, "active")
    assert shown.last_accessed


@pytest.mark.parametrize("boost", [-0.1, 1.5, "much", True, float("nan")])
def test_a_boost_is_a_number_from_0_to_1(context: Context, boost: object) -> None:
    memory = stored(context, "Ana prefers tea.")
    with pytest.raises(InvalidInput, match="boost"):
        reinforce(context, memory.id, boost)
    assert read(context, memory.id) == memory


@pytest.mark.req("GRAPH-20")
def test_a_dispute_counts_and_keeps_its_reason_without_secrets(context: Context) -> None:
    memory = stored(context, "Ana prefers tea.", reinforcements=2)
    assert dispute(context, memory.id, "ana@example.org says coffee").disputes == 1
    assert last_change(context, memory.id).why == "[EMAIL] says coffee"
    assert dispute(context, memory.id).disputes == 2
    assert last_change(context, memory.id).why is None


# status, base trust, reinforcements and disputes before → status after one more dispute
DISPUTES = [
    ("active", 1.0, 0, 0, "disputed"),
    ("active", 1.0, 1, 0, "active"),
    ("active", 1.0, 1, 1, "disputed"),
    ("disputed", 1.0, 0, 1, "disputed"),
    ("disputed", 1.0, 0, 2, "quarantined"),  # three more than reinforcements, whatever the base
    ("disputed", 1.0, 5, 7, "quarantined"),
    ("active", 0.44, 0, 0, "quarantined"),  # a trust of 0.29
    ("active", 0.45, 0, 0, "disputed"),  # a trust of 0.3
    ("active", 0.25, 9, 0, "active"),  # feedback of other people carries it
    ("active", 0.2, 3, 2, "quarantined"),  # even, but hardly trusted
    ("superseded", 1.0, 0, 5, "superseded"),
    ("archived", 1.0, 0, 5, "archived"),
    ("quarantined", 1.0, 9, 0, "quarantined"),
]


@pytest.mark.req("GRAPH-21", "GRAPH-22")
@pytest.mark.parametrize(("status", "base", "reinforcements", "disputes", "after"), DISPUTES)
def test_the_status_after_a_dispute(
    context: Context, status: str, base: float, reinforcements: int, disputes: int, after: str
) -> None:
    memory = stored(
        context, "x", status=status, trust=base, reinforcements=reinforcements, disputes=disputes
    )
    assert dispute(context, memory.id).status == after


@pytest.mark.req("GRAPH-22")
def test_a_disputed_memory_is_active_again_when_the_counts_are_even(context: Context) -> None:
    memory = stored(context, "x", status="disputed", disputes=2)
    assert [reinforce(context, memory.id).status for _ in range(3)] == [
        "disputed",
        "active",
        "active",
    ]
    waiting = stored(context, "y", status="quarantined", disputes=1)
    assert reinforce(context, waiting.id).status == "quarantined"  # only a review releases it


@pytest.mark.req("GRAPH-22")
def test_a_disputed_claim_stays_disputed_while_an_active_one_excludes_it(context: Context) -> None:
    old = claimed(context, "500", status="disputed", disputes=1)
    new = claimed(context, "700")
    assert reinforce(context, old.id).status == "disputed"
    assert last_change(context, old.id).why == f"stays disputed: {new.id} is active and excludes it"
    change(context, new.id, status="archived")
    assert reinforce(context, old.id).status == "active"


# --- the list of what waits ---


@pytest.mark.req("GRAPH-23")
def test_quarantined_memories_are_listed_newest_first_for_every_agent_of_the_user_or_one(
    context: Context,
) -> None:
    names = {}
    for number, (user, agent) in enumerate(
        [("u", "ann"), ("u", "bob"), ("v", "ann"), ("u", "ann")]
    ):
        context.clock.advance(ms=1)  # type: ignore[attr-defined]
        names[number] = stored(
            act_as(context, user, agent), f"text {number}", status=QUARANTINED
        ).id
    stored(context, "an active one")
    assert [one.id for one in list_quarantined(context)] == [names[3], names[1], names[0]]
    assert [one.id for one in list_quarantined(context, agent="bob")] == [names[1]]
    assert [one.id for one in list_quarantined(context, limit=2)] == [names[3], names[1]]
    for wrong in ({"limit": 0}, {"agent": 3}, {"limit": "many"}):
        with pytest.raises(InvalidInput):
            list_quarantined(context, **wrong)  # type: ignore[arg-type]


# --- decisions ---


@pytest.mark.req("GRAPH-24")
def test_a_review_takes_a_known_action_and_a_quarantined_memory(context: Context) -> None:
    old, new, _ = disputed_case(context)
    for action in ("approve", "", None):
        with pytest.raises(InvalidInput, match="one of activate, reject"):
            review_quarantine(context, new.id, action)
    with pytest.raises(InvalidInput, match="is active, not quarantined"):
        review_quarantine(context, old.id, "activate")
    assert read(context, new.id) == new


@pytest.mark.req("GRAPH-25")
def test_activating_supersedes_what_excludes_it_and_resolves_its_conflicts_in_its_favour(
    context: Context,
) -> None:
    old, new, one = disputed_case(context)
    # May become active again: it is superseded too.
    other = claimed(context, "600", status="disputed")
    apart = claimed(context, "900", window=Window(end="2001-01-01T00:00:00.000Z"))
    change(context, new.id, valid_from="2002-01-01T00:00:00.000Z")
    done = review_quarantine(context, new.id, "activate", "checked by phone")
    assert (done.memory.status, sorted(done.memory.supersedes)) == (
        "active",
        sorted([old.id, other.id]),
    )
    for id_ in (old.id, other.id):
        superseded = read(context, id_)
        assert (superseded.status, superseded.superseded_by) == ("superseded", new.id)
        assert superseded.valid_until == "2001-12-31T23:59:59.999Z"
        assert (
            last_change(context, id_).why == f"a review activated {new.id}, which takes its place"
        )
    assert read(context, apart.id).status == "active"
    links = context.store.find(Kind.LINK, equals("ref", new.id))
    assert {(row.value("target"), row.value("link_type")) for row in links} == {
        (old.id, "supersedes"),
        (other.id, "supersedes"),
    }
    resolved = conflict_row(context, one.id)
    assert (resolved.status, resolved.detail["resolution"], resolved.detail["by"]) == (
        "resolved",
        "kept new",
        "ann",
    )
    assert alone(context)
    assert not conflicts(context)


@pytest.mark.req("GRAPH-25")
def test_rejecting_archives_it_and_resolves_its_conflicts_against_it(context: Context) -> None:
    old, new, one = disputed_case(context)
    done = review_quarantine(context, new.id, "reject", "a rumour")
    assert (done.memory.status, done.changed, read(context, old.id)) == ("archived", (), old)
    assert conflict_row(context, one.id).detail["resolution"] == "kept existing"
    assert last_change(context, new.id).why == "a rumour"


@pytest.mark.req("GRAPH-25")
def test_the_policy_keep_both_supersedes_nothing(context: Context) -> None:
    keeping = context.with_options(predicate_schemas={"budget": {"conflict_policy": "keep_both"}})
    old, new, one = disputed_case(keeping)
    assert review_quarantine(keeping, new.id, "activate").memory.status == "active"
    assert (read(context, old.id).status, conflict_row(context, one.id).status) == (
        "active",
        "resolved",
    )


@pytest.mark.req("GRAPH-25")
def test_keeping_both_is_remembered_in_later_decisions(context: Context) -> None:
    old, new, one = disputed_case(context)
    # Excludes both, and has no conflict row with `old`.
    later = claimed(context, "650", status=QUARANTINED)
    conflict(context, later, new)
    assert review_quarantine(context, new.id, "keep_both").memory.status == "active"
    assert read(context, old.id).status == "active"
    assert conflict_row(context, one.id).detail["resolution"] == "kept both"
    assert alone(context)
    assert review_quarantine(context, later.id, "keep_both").memory.status == "active"
    assert alone(context)  # with `old` too: a resolved conflict records it
    change(context, new.id, status="disputed", disputes=1)
    assert reinforce(context, new.id).status == "active"
    undo_review(context, later.id)
    assert [
        row.value("status") for row in context.store.find(Kind.CONFLICT, equals("ref", later.id))
    ] == ["pending"]


@pytest.mark.parametrize(
    ("keep", "new_status", "old_status", "resolution"),
    [
        ("new", "active", "superseded", "kept new"),
        ("existing", "archived", "active", "kept existing"),
        ("both", "active", "active", "kept both"),
    ],
)
@pytest.mark.req("GRAPH-25")
def test_a_conflict_is_resolved_for_one_of_them_or_both(
    context: Context, keep: str, new_status: str, old_status: str, resolution: str
) -> None:
    old, new, one = disputed_case(context)
    assert [each.id for each in conflicts(context)] == [one.id]
    done = resolve_conflict(context, one.id, keep, "because")
    assert (done.memory.status, read(context, new.id).status, read(context, old.id).status) == (
        new_status,
        new_status,
        old_status,
    )
    assert [
        (each.id, each.detail["resolution"], each.detail["reason"]) for each in done.conflicts
    ] == [(one.id, resolution, "because")]
    assert ([], [one.id]) == (
        conflicts(context),
        [each.id for each in conflicts(context, "resolved")],
    )
    with pytest.raises(InvalidInput, match=f"resolved already: {resolution}"):
        resolve_conflict(context, one.id, keep)


def test_of_several_conflicts_keeping_both_settles_one_and_the_memory_waits_for_the_others(
    context: Context,
) -> None:
    old, new, one = disputed_case(context)
    other = claimed(context, "600")
    two = conflict(context, new, other)
    done = resolve_conflict(context, one.id, "both")
    assert (done.memory.status, done.note) == (
        QUARANTINED,
        f"stays quarantined: it also excludes {other.id}",
    )
    assert resolve_conflict(context, two.id, "both").memory.status == "active"
    assert {read(context, each.id).status for each in (old, other)} == {"active"}


def test_a_conflict_must_be_known_pending_and_about_a_memory_that_waits(context: Context) -> None:
    _, new, one = disputed_case(context)
    with pytest.raises(NotFound):
        resolve_conflict(context, "conflict_1_x", "new")
    with pytest.raises(NotFound):
        resolve_conflict(act_as(context, "v"), one.id, "new")
    for wrong in ("older", None):
        with pytest.raises(InvalidInput, match="one of new, existing, both"):
            resolve_conflict(context, one.id, wrong)
    with pytest.raises(InvalidInput, match="one of pending, resolved"):
        conflicts(context, "open")
    with pytest.raises(InvalidInput, match="reason is 5"):
        resolve_conflict(context, one.id, "new", 5)  # type: ignore[arg-type]
    change(context, new.id, status="archived")
    with pytest.raises(InvalidInput, match="is archived by now"):
        resolve_conflict(context, one.id, "new")
    context.store.apply([], [read(context, new.id).row().key])
    assert conflicts(context) == []


# --- whose memories ---

BY_ID: dict[str, Callable[[Context, str], Any]] = {
    "reinforce": reinforce,
    "dispute": dispute,
    "activate": lambda context, id_: review_quarantine(context, id_, "activate"),
    "reject": lambda context, id_: review_quarantine(context, id_, "reject"),
    "undo": undo_review,
}


@pytest.mark.parametrize("name", BY_ID)
def test_any_agent_of_the_user_decides_and_no_other_user(context: Context, name: str) -> None:
    _, new, _ = disputed_case(act_as(context, "u", "bob"))
    if name == "undo":
        review_quarantine(context, new.id, "reject")
    before = read(context, new.id)
    for stranger in ("v", None):
        with pytest.raises(NotFound):
            BY_ID[name](act_as(context, stranger, "bob"), new.id)
    assert read(context, new.id) == before
    BY_ID[name](act_as(context, "u", "carol"), new.id)
    assert read(context, new.id).revision == before.revision + 1
    assert last_change(context, new.id).agent_id == "carol"
    assert read(context, new.id).agent_id == "bob"


@pytest.mark.parametrize("wrong", ["mem_1_unknown", "", 3])
def test_an_unknown_id_is_an_error(context: Context, wrong: Any) -> None:
    for call in BY_ID.values():
        with pytest.raises((NotFound, InvalidInput)):
            call(context, wrong)


def test_every_decision_is_in_the_audit_chain(context: Context) -> None:
    _, new, _ = disputed_case(context)
    review_quarantine(context, new.id, "activate")
    undo_review(context, new.id)
    blocks = audit.log(context, limit=10)
    assert [(block.metadata or {})["action"] for block in blocks][:4] == [
        "undo",
        "undo",
        "supersede",
        "activate",
    ]


# --- undo ---


@pytest.mark.parametrize("decide", ["activate", "reject", "keep_both"])
@pytest.mark.req("GRAPH-25")
def test_undoing_restores_every_status_and_conflict_and_can_be_decided_anew(
    context: Context, decide: str
) -> None:
    old, new, one = disputed_case(context)
    review_quarantine(context, new.id, decide, "a mistake")
    done: Reviewed = undo_review(context, new.id)
    after = [read(context, each.id) for each in (old, new)]
    assert [
        (each.status, each.superseded_by, each.supersedes, each.valid_until) for each in after
    ] == [
        ("active", None, [], None), (QUARANTINED, None, [], None),
    ]  # fmt: skip
    restored = conflict_row(context, one.id)
    assert (restored.status, restored.detail, done.memory.status) == (
        "pending",
        one.detail,
        QUARANTINED,
    )
    assert context.store.find(Kind.LINK) == []
    with pytest.raises(InvalidInput, match="no review decision about"):
        undo_review(context, new.id)
    assert review_quarantine(context, new.id, "activate").memory.status == "active"


def test_a_decision_cannot_be_undone_after_something_it_changed_was_changed_again(
    context: Context,
) -> None:
    old, new, _ = disputed_case(context)
    review_quarantine(context, new.id, "activate")
    reinforce(context, new.id)  # touches nothing that the decision set
    dispute(act_as(context, "u", "bob"), new.id)
    dispute(context, new.id)
    with pytest.raises(InvalidInput, match=f"{new.id} was changed since: status by dispute"):
        undo_review(context, new.id)
    assert read(context, old.id).status == "superseded"


def test_a_decision_cannot_be_undone_if_another_claim_came_since(context: Context) -> None:
    old, new, _ = disputed_case(context)
    review_quarantine(context, new.id, "activate")
    # So that a third one can stand beside it.
    change(context, new.id, status="active", valid_until="2001-01-01T00:00:00.000Z")
    third = claimed(context, "800", window=Window(start="2002-01-01T00:00:00.000Z"))
    with pytest.raises(
        InvalidInput, match=f"{old.id} would be active again, but {third.id} excludes it"
    ):
        undo_review(context, new.id)
    assert read(context, old.id).status == "superseded"


def test_decisions_are_undone_one_after_another_and_erased_memories_stay_erased(
    context: Context,
) -> None:
    old, new, one = disputed_case(context)
    other = claimed(context, "600")
    two = conflict(context, new, other)
    resolve_conflict(context, one.id, "both")
    resolve_conflict(context, two.id, "new")
    assert read(context, other.id).status == "superseded"
    context.store.apply([], [read(context, other.id).row().key])
    undo_review(context, new.id)
    assert [conflict_row(context, each.id).status for each in (one, two)] == ["resolved", "pending"]
    undo_review(context, new.id)
    assert [conflict_row(context, each.id).status for each in (one, two)] == ["pending", "pending"]
    assert (read(context, new.id).status, read(context, old.id).status) == (QUARANTINED, "active")


# --- at the same time ---


@pytest.mark.req("GRAPH-25")
@pytest.mark.parametrize("how", ["activate", "reinforce", "undo"])
def test_of_two_decisions_at_the_same_time_the_second_sees_the_first(
    context: Context, how: str
) -> None:
    """Between reading and writing, another process activates a claim that excludes the one under
    review."""
    rival = claimed(context, "900", status=QUARANTINED)
    if how == "undo":
        old, new, _ = disputed_case(context)
        review_quarantine(context, new.id, "activate")
    else:
        old = new = claimed(
            context, "500", status=QUARANTINED if how == "activate" else "disputed", disputes=1
        )
    waiting = [rival.id]

    def step(name: str) -> None:
        if name == "flow.decided" and waiting:
            # By an agent with an audit chain of its own: only the versions of the partitions tell
            # of it.
            review_quarantine(act_as(context, "u", "carol"), waiting.pop(), "activate")

    racing = replace(context, step=step)
    if how == "undo":
        with pytest.raises(InvalidInput, match="cannot be undone"):
            undo_review(racing, new.id)
    elif how == "activate":
        assert [one.id for one in review_quarantine(racing, old.id, "activate").changed] == [
            rival.id
        ]
    else:
        # By the activation; a reinforcement counts all the same.
        assert reinforce(racing, old.id).status == "superseded"
    assert waiting == []
    assert alone(context)


# --- together with the gate ---


@pytest.mark.req("GRAPH-25")
def test_a_memory_that_waits_after_the_gate_is_released_with_all_that_it_would_have_done(
    context: Context,
) -> None:
    """A less trusted newcomer of each kind: another value, a next version without a claim, and
    an end."""
    claim = {"subject": "Ana", "predicate": "employer", "value": "Acme", "valid_from": "2020-01-01"}
    by_user = {"source": "user_explicit"}
    old = store(context, "Ana works at Acme.", claim=claim, provenance=by_user)
    moved = store(
        context,
        "Ana works at Initech.",
        claim={**claim, "value": "Initech", "valid_from": "2024-01-01"},
    )
    assert (moved.quarantined, [one.status for one in moved.conflicts]) == (True, ["pending"])
    review_quarantine(context, moved.id, "activate")
    superseded = read(context, old.id)
    assert (superseded.status, superseded.valid_until) == ("superseded", "2023-12-31T23:59:59.999Z")
    undo_review(context, moved.id)
    assert (read(context, old.id).status, read(context, old.id).valid_until) == ("active", None)
    # A plain text that says that a claim ended is not exclusive, and names the value that it ends.
    ended = {
        "claim": {**claim, "exclusive": False},
        "claim_key": read(context, old.id).claim_key,
        "status": QUARANTINED,
    }
    end = stored(context, "Ana left Acme.", **ended, valid_until="2025-01-01T00:00:00.000Z")
    conflict(context, end, read(context, old.id))
    review_quarantine(context, end.id, "activate")
    assert (read(context, old.id).status, read(context, old.id).valid_until) == (
        "active",
        "2025-01-01T00:00:00.000Z",
    )
    # The next version of a text without a claim.
    first, second = (
        stored(context, "The plan is A."),
        stored(context, "The plan is B.", status=QUARANTINED),
    )
    conflict(context, second, first)
    assert [one.id for one in review_quarantine(context, second.id, "activate").changed] == [
        first.id
    ]
    assert read(context, first.id).superseded_by == second.id


@pytest.mark.req("GRAPH-25")
def test_a_conflict_of_a_memory_that_stayed_active_is_resolved_by_a_review_too(
    context: Context,
) -> None:
    claim = {"subject": "Ana", "predicate": "employer", "value": "Acme"}
    old = store(context, "Ana works at Acme.", claim=claim, provenance={"source": "user_explicit"})
    new = store(
        context,
        "Ana works at Initech.",
        claim={**claim, "value": "Initech"},
        on_conflict="keep_active",
    )
    assert (new.quarantined, not alone(context)) == (False, True)
    resolve_conflict(context, new.conflicts[0].id, "existing")
    assert (read(context, old.id).status, read(context, new.id).status) == ("active", "archived")
    assert alone(context)


@pytest.mark.parametrize("by_review", [False, True])
def test_the_history_of_a_superseded_memory_has_no_words_of_the_one_that_took_its_place(
    context: Context, by_review: bool
) -> None:
    """Other agents see the history of a shared memory, and it stays when the other one is
    erased."""
    claim = {"subject": "Ana", "predicate": "employer", "value": "Acme"}
    old = store(context, "Ana works at Acme.", claim=claim, metadata={"type": "global"})
    new = store(
        context, "Ana works at Initech.", claim={**claim, "value": "Initech"}, quarantine=by_review
    )
    if by_review:
        review_quarantine(context, new.id, "activate", "Initech said so")
    (step,) = explain_supersession(context, old.id)
    assert step.why
    assert "Initech" in step.why  # to the owner, who sees both
    changes = [Change.of(row) for row in context.store.find(Kind.CHANGE, equals("ref", old.id))]
    assert [one.action for one in changes] == ["supersede"]
    assert "Initech" not in repr([asdict(one) for one in changes])
    context.store.apply([], [read(context, new.id).row().key])
    (step,) = explain_supersession(context, old.id)
    assert step.why
    assert new.id in step.why
