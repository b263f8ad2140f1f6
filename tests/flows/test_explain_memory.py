"""What an explanation of a memory tells, and what it keeps to itself."""

from dataclasses import replace
from itertools import pairwise

import pytest

from memory_mesh.core.claims import Window
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.model import Link, Reader, iso
from memory_mesh.flows.claims.explain import explain_memory, explain_supersession
from memory_mesh.flows.claims.review import dispute, reinforce, review_quarantine
from memory_mesh.flows.context import Context

from .adding import add_many
from .claiming import change, claimed, conflict, stored


def link(context: Context, one: str, other: str, similarity: float, agent: str = "ann") -> None:
    about = Link(
        id=f"{one}>{other}", created_at=iso(context.clock()), ref=one, target=other,
        similarity=similarity, user_id="u", agent_id=agent, memory_type="agent",
    )  # fmt: skip
    context.store.apply([about.row('["u", "ann"]')])


@pytest.mark.req("GRAPH-26", "GRAPH-30")
def test_the_parts_of_the_trust_add_up_and_a_derived_memory_is_trusted_no_more_than_any_source(
    context: Context,
) -> None:
    source = stored(context, "a source", trust=0.5)
    memory = stored(
        context, "a digest", trust=0.85, corroborations=3, reinforcements=3, disputes=1,
        sources=[source.id],
    )  # fmt: skip
    context.clock.advance(ms=365 * 86_400_000 // 2)  # type: ignore[attr-defined]
    trust = explain_memory(context, memory.id).trust
    parts = (trust.base, trust.corroboration, trust.feedback, trust.age)
    assert parts == pytest.approx((0.85, 0.1, 0.075, -0.05), abs=1e-4)
    assert sum(parts) == pytest.approx(0.975, abs=1e-4)
    assert (trust.least_source, trust.value) == (pytest.approx(0.45, abs=1e-4),) * 2


@pytest.mark.req("GRAPH-26", "GRAPH-30")
def test_an_explanation_names_claim_links_conflicts_provenance_status_and_sightings(
    context: Context,
) -> None:
    window = Window(start="2001-01-01T00:00:00.000Z")
    old, new = (
        claimed(context, "500"),
        claimed(context, "700", window=window, metadata={"provenance": {"source": "document"}}),
    )
    one = conflict(context, new, old)
    link(context, new.id, old.id, 0.6)
    other = stored(context, "linked to it")
    link(context, other.id, new.id, 0.9)
    add_many(
        replace(context, reader=Reader("u", "ann", "s9")), [(other.content, {"type": "agent"})]
    )
    dispute(context, new.id, "the invoice says 650")
    found = explain_memory(context, new.id)
    assert found.claim
    assert (found.claim.value, found.claim.window, found.provenance) == (
        "700",
        window,
        {"source": "document"},
    )
    assert [(each.ref, each.target) for each in found.links] == [
        (other.id, new.id),
        (new.id, old.id),
    ]
    assert [each.id for each in found.conflicts] == [one.id]
    assert (found.status, found.memory.disputes) == ("disputed", 1)
    assert found.status_change
    assert (found.status_change.action, found.status_change.why) == (
        "dispute",
        "the invoice says 650",
    )
    assert found.excluded_by == (old.id,)
    assert found.contents == {old.id: old.content, other.id: other.content}
    assert explain_memory(context, old.id).status_change is None
    assert [explain_memory(context, each.id).sightings for each in (other, old)] == [2, 1]


def test_what_the_owner_cannot_see_is_left_out_and_another_user_finds_nothing(
    context: Context,
) -> None:
    mine, theirs = (
        claimed(context, "500"),
        claimed(replace(context, reader=Reader("u", "bob")), "700"),
    )
    shared = stored(context, "shared", memory_type="global")
    conflict(context, theirs, mine)
    conflict(context, mine, shared)
    link(context, mine.id, theirs.id, 0.9)
    link(context, mine.id, shared.id, 0.8)
    change(context, mine.id, superseded_by=theirs.id)
    for asking in (context, replace(context, reader=Reader("u", "carol"))):
        found = explain_memory(asking, mine.id)
        assert [each.target for each in found.links] == [shared.id]
        assert [each.target for each in found.conflicts] == [shared.id]
        (step,) = found.supersessions
        assert (step.newer, step.newer_content, step.newer_trust) == (theirs.id, None, None)
    for stranger in (Reader("v", "ann"), Reader(None, "ann")):
        for explain in (explain_memory, explain_supersession):
            with pytest.raises(NotFound):
                explain(replace(context, reader=stranger), mine.id)
    with pytest.raises(InvalidInput):
        explain_memory(context, 3)  # type: ignore[arg-type]


@pytest.mark.req("GRAPH-27")
def test_a_chain_of_supersessions_is_told_from_every_memory_of_it_with_reasons_and_trusts(
    context: Context,
) -> None:
    values = [
        claimed(context, "500", trust=0.6),
        *(claimed(context, value, status="quarantined") for value in ("600", "700")),
    ]
    for memory, reason in zip(values[1:], ("the board said so", None), strict=True):
        context.clock.advance(ms=86_400_000)  # type: ignore[attr-defined]
        review_quarantine(context, memory.id, "activate", reason)
    ids = [memory.id for memory in values]
    for id_ in ids:
        first, second = explain_supersession(context, id_)
        assert [(step.older, step.newer) for step in (first, second)] == [
            (ids[0], ids[1]),
            (ids[1], ids[2]),
        ]
        assert (first.why, second.why) == (
            "the board said so",
            f"a review activated {ids[2]}, which takes its place",
        )
        assert (first.older_trust, first.newer_trust) == (
            pytest.approx(0.6, abs=1e-3),
            pytest.approx(0.5, abs=1e-3),
        )
        assert (first.older_content, second.newer_content) == (values[0].content, values[2].content)
        assert first.at
        assert second.at
        assert first.at < second.at
        assert explain_memory(context, id_).supersessions == (first, second)
    assert explain_supersession(context, stored(context, "alone").id) == ()


@pytest.mark.req("GRAPH-27")
def test_a_chain_of_one_moment_is_in_the_order_of_the_supersessions(context: Context) -> None:
    values = [
        claimed(context, "0"),
        *(claimed(context, str(number), status="quarantined") for number in range(1, 6)),
    ]
    # The last one stored takes the place of the first.
    ids = [memory.id for memory in (values[0], *values[:0:-1])]
    for id_ in ids[1:]:
        review_quarantine(context, id_, "activate")
    for id_ in ids:
        steps = explain_supersession(context, id_)
        assert len({step.at for step in steps}) == 1
        assert [(step.older, step.newer) for step in steps] == list(pairwise(ids))


@pytest.mark.req("GRAPH-27")
def test_a_chain_that_runs_in_a_circle_or_into_nothing_ends(context: Context) -> None:
    one, two = stored(context, "one"), stored(context, "two")
    change(context, one.id, superseded_by=two.id, supersedes=[two.id])
    change(context, two.id, superseded_by=one.id, supersedes=["mem_1_gone"])
    steps = {(step.older, step.newer): step for step in explain_supersession(context, one.id)}
    assert steps.keys() == {(one.id, two.id), (two.id, one.id), ("mem_1_gone", two.id)}
    gone = steps["mem_1_gone", two.id]
    assert (gone.older_content, gone.older_trust, gone.at, gone.newer_content) == (
        None,
        None,
        None,
        "two",
    )


# --- at another time ---


@pytest.mark.req("GRAPH-26", "GRAPH-27")
def test_an_explanation_tells_what_was_known_at_a_time(context: Context) -> None:
    old, new = claimed(context, "500", trust=1.0), claimed(context, "700", status="quarantined")
    one = conflict(context, new, old)
    times = [iso(context.clock())]
    for step in (
        lambda: dispute(context, old.id, "hm"),
        lambda: review_quarantine(context, new.id, "activate", "checked"),
        lambda: reinforce(context, old.id),
    ):
        context.clock.advance(ms=1000)  # type: ignore[attr-defined]
        step()
        times.append(iso(context.clock()))
    found = [explain_memory(context, old.id, known_at=at) for at in times]
    assert [each.status for each in found] == ["active", "disputed", "superseded", "superseded"]
    assert [each.memory.disputes for each in found] == [0, 1, 1, 1]
    assert [round(each.trust.value, 2) for each in found] == [1.0, 0.85, 0.85, 1.0]
    assert [len(each.supersessions) for each in found] == [0, 0, 1, 1]
    assert [len(each.links) for each in found] == [0, 0, 1, 1]
    assert [each.conflicts[0].status for each in found] == [
        "pending",
        "pending",
        "resolved",
        "resolved",
    ]
    assert (found[1].conflicts[0].detail, found[2].conflicts[0].detail["resolution"]) == (
        one.detail,
        "kept new",
    )
    assert [each.status_change and each.status_change.why for each in found] == [
        None, "hm", *[f"a review activated {new.id}, which takes its place"] * 2,
    ]  # fmt: skip
    assert found[-1].supersessions[0].why == "checked"
    assert found[-1] == replace(explain_memory(context, old.id), excluded_by=())
    (step_,) = explain_supersession(context, new.id)
    # At the time of the decision: the reinforcement came later.
    assert step_.older_trust == pytest.approx(0.85)
    assert explain_supersession(context, new.id, known_at=times[1]) == ()
    for too_early in (explain_memory, explain_supersession):
        with pytest.raises(NotFound, match="was not known at 2000-01-01"):
            too_early(context, old.id, known_at="2000-01-01")
    with pytest.raises(InvalidInput, match="is in the future"):
        explain_memory(context, old.id, known_at="2999-01-01")


@pytest.mark.parametrize(
    ("columns", "as_of", "valid"),
    [
        ({}, None, True),
        ({"status": "quarantined"}, None, False),
        ({"valid_until": "2020-12-31T00:00:00.000Z"}, None, False),
        ({"valid_until": "2020-12-31T00:00:00.000Z"}, "2020-06-01", True),
        ({"valid_until": "2020-12-31T00:00:00.000Z", "status": "superseded"}, "2020-06-01", True),
        ({"status": "superseded"}, "2020-06-01", False),  # corrected, not outdated
        ({"valid_from": "2020-12-31T00:00:00.000Z"}, "2020-06-01", False),
    ],
)
def test_an_explanation_says_whether_the_memory_was_valid_at_a_time(
    context: Context, columns: dict[str, str], as_of: str | None, valid: bool
) -> None:
    memory = change(context, claimed(context, "500").id, **columns)
    assert explain_memory(context, memory.id, as_of=as_of).valid is valid
