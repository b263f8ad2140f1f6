"""What changed: new memories are compared with older ones, and the newer statement stands first."""

from dataclasses import replace

import pytest

from judging import BERLIN, GYM, GYM_ENDED, HAMBURG, KIM, MOVED, MUNICH, ROSSI, ToldJudge
from memory_mesh.core import graph
from memory_mesh.core.audit import Sound
from memory_mesh.core.claims.updates import (
    BOTH_HOLD,
    ENDS,
    MAY_UPDATE,
    UPDATES,
    asks_past,
    stands_above,
)
from memory_mesh.core.errors import InvalidInput, ModelMissing, NotFound
from memory_mesh.core.intake import NewText
from memory_mesh.core.model import Kind, Link, Memory, Reader, Status
from memory_mesh.core.ports import Likely
from memory_mesh.flows.audit import audit
from memory_mesh.flows.claims import updates
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.graph import context as contexts
from memory_mesh.flows.graph import links as graph_links
from memory_mesh.flows.graph import search as graph_search
from memory_mesh.flows.lane import lane
from memory_mesh.flows.search import reads
from memory_mesh.flows.search.search import Request, explain, search
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import write
from memory_mesh.models import HashingEmbedder
from memory_mesh.testing.fakes import FakeClock

from .adding import add_many

CONTEXT = contexts.ContextRequest(search=graph_search.Request(), min_score=0.0)


@pytest.fixture
def judge() -> ToldJudge:
    return ToldJudge()


@pytest.fixture
def mesh(context: Context, judge: ToldJudge) -> Context:
    return context.with_models(embedder=HashingEmbedder(), judge=judge)


def add(context: Context, *texts: object) -> list[Memory]:
    """Store texts, each a second after the other."""
    assert isinstance(context.clock, FakeClock)
    memories = []
    for text in texts:
        memories += add_many(context, [text])
        context.clock.advance(seconds=1)
    return memories


def judged(context: Context, *texts: object) -> list[Memory]:
    """Store texts, judge them and return them as they are stored then."""
    memories = add(context, *texts)
    updates.judge_new(context)
    return [found for each in memories if (found := reads.get(context, each.id))]


def found(context: Context, query: str, **more: object) -> list[str]:
    request = Request(query=query, **{"limit": 10, "min_score": 0.0, **more})  # type: ignore[arg-type]
    return [result.content for result in search(context, request)]


def links(context: Context) -> list[Link]:
    return [Link.of(row) for row in context.store.find(Kind.LINK)]


def test_a_newer_memory_is_linked_to_the_one_that_it_replaces(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    [link] = links(mesh)
    assert (link.ref, link.target, link.link_type, link.similarity) == (
        newer.id, older.id, UPDATES, 0.98,
    )  # fmt: skip
    assert link.created_at == newer.created_at


def test_the_history_and_the_audit_chain_record_a_link(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    change = reads.history(mesh, newer.id)[-1]
    assert change.action == "changes"
    assert change.detail == {
        "links": [{"link": UPDATES, "target": older.id, "probability": 0.98, "judge": "told"}]
    }
    verdicts = audit.verify_all(mesh)
    assert verdicts
    assert all(isinstance(each, Sound) for each in verdicts)


@pytest.mark.parametrize("ranker", ["learnt", "rrf"])
@pytest.mark.parametrize("limit", [1, 10])
def test_the_newer_one_stands_above_under_every_ranker_and_limit(
    mesh: Context, ranker: str, limit: int
) -> None:
    add(mesh, BERLIN, MUNICH, "Tea is in the left drawer")
    query = "in Berlin I live"  # the words of the older one
    assert found(mesh, query, ranker=ranker, limit=limit)[0] == BERLIN
    updates.judge_new(mesh)
    assert found(mesh, query, ranker=ranker, limit=limit)[0] == MUNICH


def test_a_newer_one_that_shares_no_word_is_brought_in(mesh: Context, judge: ToldJudge) -> None:
    flat, munich = "I live in Berlin with Ada", "Ada and I moved to Munich"
    judge.says[flat, munich] = MOVED
    others = [f"Berlin has {number} bridges" for number in range(200)]
    add_many(mesh, others)
    judged(mesh, flat, munich)
    assert found(mesh, "live Berlin", limit=2) == [munich, flat]


def test_the_older_one_says_what_replaced_it_and_since_when(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    results = {one.id: one for one in search(mesh, Request(query="live", min_score=0.0))}
    assert (results[older.id].updated_by, results[older.id].until) == (newer.id, newer.created_at)
    assert (results[newer.id].updated_by, results[newer.id].until) == (None, None)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Where do I live?", HAMBURG), ("Where do I live now?", HAMBURG),
        ("Where did I live before?", MUNICH), ("Where did I use to live previously?", MUNICH),
        ("How old is the house where I live?", HAMBURG),
    ],
)  # fmt: skip
def test_a_question_about_the_past_asks_for_what_does_not_hold_any_more(
    mesh: Context, query: str, first: str
) -> None:
    judged(mesh, BERLIN, MUNICH, HAMBURG)
    assert found(mesh, query)[0] == first


def test_a_question_about_a_time_asks_for_what_held_then(mesh: Context) -> None:
    berlin, munich, _ = judged(mesh, BERLIN, MUNICH, HAMBURG)
    assert found(mesh, "Where do I live?", as_of=berlin.created_at)[0] == BERLIN
    assert found(mesh, "Where do I live?", as_of=munich.created_at)[0] == MUNICH


def test_what_was_believed_then_knows_no_later_change(mesh: Context) -> None:
    _, munich = judged(mesh, BERLIN, MUNICH)
    assert set(found(mesh, "in Berlin I live", known_at=munich.created_at)) == {BERLIN, MUNICH}
    assert found(mesh, "in Berlin I live", known_at=munich.created_at)[0] == BERLIN
    assert found(mesh, "in Berlin I live")[0] == MUNICH


def test_a_chain_ends_with_the_newest(mesh: Context) -> None:
    judged(mesh, BERLIN, MUNICH, HAMBURG)
    assert found(mesh, "in Berlin I live")[:3] == [HAMBURG, MUNICH, BERLIN]


def test_what_does_not_hold_any_more_is_not_compared_again(mesh: Context, judge: ToldJudge) -> None:
    judged(mesh, BERLIN, MUNICH, HAMBURG)
    assert (MUNICH, HAMBURG) in judge.asked
    assert (BERLIN, HAMBURG) not in judge.asked


def test_an_end_stands_above_what_is_over(mesh: Context) -> None:
    older, newer = judged(mesh, GYM, GYM_ENDED)
    assert [link.link_type for link in links(mesh)] == [ENDS]
    assert found(mesh, GYM)[0] == newer.content
    assert search(mesh, Request(query="gym"))[1].until == newer.created_at
    assert older.status == "active"


STRIPE = "I started a new job at Stripe."


@pytest.mark.parametrize(
    ("older", "newer", "type_"),
    [
        ("I live in Lisbon.", "I now live in Porto.", UPDATES),
        ("The user works at Google.", "The user works at Stripe now.", UPDATES),
        ("My sister Ana lives in Porto.", "Ana moved to Lisbon in May.", UPDATES),
        ("I work at Google.", "I no longer work at Google.", ENDS),
        ("I work at Google.", "I no longer work at Acme.", None),
        ("I live in Lisbon.", "I live in lisbon!", None),
        ("Ana lives in Porto.", STRIPE, None),
        ("My sister Eva lives in Porto.", "Ana moved to Lisbon in May.", None),
        ("I like tea.", "I like coffee.", None),
    ],
)
def test_of_two_plain_statements_that_cannot_both_hold_the_newer_one_counts_whatever_a_judge_finds(
    mesh: Context, judge: ToldJudge, older: str, newer: str, type_: str | None
) -> None:
    judged(mesh, older, newer)
    assert judge.says.get((older, newer)) is None
    assert [link.link_type for link in links(mesh)] == ([type_] if type_ else [])


def test_what_an_assistant_says_of_itself_changes_nothing(mesh: Context) -> None:
    said = [{"role": "user", "content": "I live in Lisbon."}]
    said += [{"role": "assistant", "content": "I live in Porto."}]
    judged(mesh, *said)
    assert links(mesh) == []


def test_what_is_not_likely_enough_is_not_linked(mesh: Context) -> None:
    judged(mesh, "I have a dog, Rex", "I have a second dog, Ada")
    assert links(mesh) == []


def test_what_may_have_changed_stands_below_if_both_fit_a_question(mesh: Context) -> None:
    older, newer = judged(mesh, ROSSI, KIM)
    assert found(mesh, "At whose place is lunch great?")[0] == KIM
    assert found(mesh, "lunch at the usual place")[0] == KIM
    [link] = links(mesh)
    assert (link.ref, link.target, link.link_type) == (newer.id, older.id, MAY_UPDATE)
    explained = explain(mesh, Request(query="lunch at the usual place", min_score=0.0))
    assert {one.result.id: one.newer for one in explained.answers}[older.id] == newer.id
    assert found(mesh, "Rossi's lunch, at first")[0] == ROSSI  # the past


@pytest.mark.parametrize(
    ("likely", "newer", "above"),
    [(0.45, 0.79, False), (0.46, 0.79, True), (0.9, 0.06, True), (0.9, 0.04, False),
     (0.96, 0.0, False), (0.46, 0.8, True), (0.44, 0.9, False)],
)  # fmt: skip
def test_a_newer_one_that_fits_a_question_less_must_be_more_likely(
    likely: float, newer: float, above: bool
) -> None:
    assert stands_above(likely, newer, 0.8, " ".join(["long"] * 13)) is above


def test_a_short_statement_has_one_thing_to_change() -> None:
    assert stands_above(0.9, 0.001, 0.8, " ".join(["short"] * 12))
    assert not stands_above(0.8, 0.001, 0.8, " ".join(["short"] * 12))


@pytest.mark.parametrize(
    ("question", "past"),
    [("Where did Ada sleep before she got the attic?", True), ("Where was I until May?", True),
     ("Where do I live now?", False), ("What must be done before Friday?", False)],
)  # fmt: skip
def test_a_question_about_the_past_is_recognised(question: str, past: bool) -> None:
    assert asks_past(question) is past


def test_nobody_is_shown_what_may_have_changed(mesh: Context) -> None:
    older, newer = judged(mesh, ROSSI, KIM)
    assert updates.changes(mesh) == []
    assert graph_links.links(mesh, newer.id) == []
    assert graph_links.traverse(mesh, newer.id) == []
    assert graph_links.clusters(mesh) == []
    results = search(mesh, Request(query="lunch", min_score=0.0))
    assert {result.id for result in results} == {older.id, newer.id}
    assert [result.until for result in results] == [None, None]
    assert reads.history(mesh, newer.id)[-1].action != "changes"
    updates.confirm(mesh, newer.id, older.id)
    assert [one.link_type for one in links(mesh)] == [UPDATES]


@pytest.mark.parametrize("text", ["Is Munich nice?", "Munich it"])
def test_a_question_and_a_few_words_change_nothing(
    mesh: Context, judge: ToldJudge, text: str
) -> None:
    judge.says["Munich is nice", text] = MOVED
    judged(mesh, "Munich is nice", text)
    assert links(mesh) == []
    judged(mesh, "Munich it is not")
    assert judge.asked  # a positive control


def test_memories_of_another_session_are_compared_if_both_see_them(mesh: Context) -> None:
    judged(mesh, (BERLIN, {"session_id": "s1"}), (MUNICH, {"session_id": "s2"}))
    assert len(links(mesh)) == 1


def test_memories_of_others_are_not_compared(mesh: Context, judge: ToldJudge) -> None:
    others = replace(mesh, reader=Reader("u", "bob"))
    add(mesh, (BERLIN, {"type": "session", "session_id": "s1"}))
    add(mesh, (BERLIN, {"type": "agent"}), (BERLIN, {"type": "global", "project": "p"}))
    add(replace(mesh, reader=Reader("v", "ann")), BERLIN)
    judged(others, (MUNICH, {"type": "agent"}))
    judged(mesh, MUNICH)
    assert links(mesh) == []
    assert (BERLIN, MUNICH) not in judge.asked
    judged(mesh, (MUNICH, {"type": "agent"}))  # its own one is found
    assert len(links(mesh)) == 1


def test_a_less_trusted_memory_changes_nothing(mesh: Context) -> None:
    assert isinstance(mesh.clock, FakeClock)
    for text, trust in ((BERLIN, 0.9), (MUNICH, 0.4), (HAMBURG, 0.95)):
        write.add(mesh, [NewText(text, trust=trust)])
        mesh.clock.advance(seconds=1)
    updates.judge_new(mesh)
    found = {(row.value("ref"), row.value("target")) for row in mesh.store.find(Kind.LINK)}
    texts = {row.id: row.value("content") for row in mesh.store.find(Kind.MEMORY)}
    assert {(texts[newer], texts[older]) for newer, older in found} == {
        (HAMBURG, MUNICH), (HAMBURG, BERLIN),
    }  # fmt: skip


def test_erasing_the_newer_one_frees_the_older(mesh: Context) -> None:
    _, newer = judged(mesh, BERLIN, MUNICH)
    assert found(mesh, "in Berlin I live")[0] == MUNICH
    erase.delete(mesh, [newer.id])
    assert links(mesh) == []
    [result] = search(mesh, Request(query="in Berlin I live", min_score=0.0))
    assert (result.content, result.until) == (BERLIN, None)


def test_a_changed_text_is_judged_again(mesh: Context) -> None:
    _, other = judged(mesh, BERLIN, "I like tea")
    assert links(mesh) == []
    write.update(mesh, other.id, content=MUNICH)
    updates.judge_new(mesh)
    assert [link.ref for link in links(mesh)] == [other.id]
    write.update(mesh, other.id, content="I like tea")
    updates.judge_new(mesh)
    assert links(mesh) == []


def test_a_changed_text_of_the_older_one_is_compared_again(mesh: Context) -> None:
    older, _ = judged(mesh, BERLIN, MUNICH)
    assert len(links(mesh)) == 1
    assert isinstance(mesh.clock, FakeClock)
    mesh.clock.advance(seconds=1)
    write.update(mesh, older.id, content="I live in a house with a garden")
    updates.judge_new(mesh)
    assert links(mesh) == []


def test_an_edit_keeps_what_a_person_decided(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    updates.confirm(mesh, newer.id, older.id)
    write.update(mesh, newer.id, content="I live in Munich with a cat")
    updates.judge_new(mesh)
    assert [link.similarity for link in links(mesh)] == [1.0]


def test_each_memory_is_judged_once(mesh: Context, judge: ToldJudge) -> None:
    judged(mesh, BERLIN, MUNICH)
    asked = len(judge.asked)
    assert asked > 0
    assert updates.judge_new(mesh) == 0
    reads.get(mesh, judged(mesh, "I like tea")[0].id)
    assert [newer for _, newer in judge.asked[asked:]] == ["I like tea"] * (
        len(judge.asked) - asked
    )


def test_a_run_that_is_stopped_goes_on_where_it_was(
    mesh: Context, judge: ToldJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "_AT_ONCE", 2)
    add(mesh, *(f"Fact {number} about tea" for number in range(7)))
    left = iter([True] * 5 + [False] * 100)
    assert updates.judge_new(mesh, lambda: next(left)) == 5
    judged_before = {newer for _, newer in judge.asked}
    judge.asked.clear()
    add(mesh, "Another fact about tea")
    updates.judge_new(mesh)
    judged_after = {newer for _, newer in judge.asked}
    # The first two batches were stored; the fifth memory is judged twice.
    assert judged_before & judged_after == {"Fact 4 about tea"}
    assert "Another fact about tea" in judged_after
    assert updates.judge_new(mesh) == 0


def test_a_person_undoes_a_change_and_it_is_not_made_again(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    assert updates.undo(mesh, newer.id, older.id).type == BOTH_HOLD
    assert [link.link_type for link in links(mesh)] == [BOTH_HOLD]
    assert found(mesh, "in Berlin I live")[0] == BERLIN
    write.update(mesh, newer.id, metadata={"source": "x"})
    updates.judge_new(mesh)
    assert [link.link_type for link in links(mesh)] == [BOTH_HOLD]


def test_a_person_confirms_a_change(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    for _ in range(2):  # the second time nothing is left to do
        assert updates.confirm(mesh, newer.id, older.id).probability == 1.0
    [link] = links(mesh)
    assert (link.similarity, link.revision) == (1.0, 2)
    assert updates.changes(mesh)[0].probability == 1.0


def test_a_person_may_name_a_change_that_was_not_recognised(mesh: Context) -> None:
    one, other = judged(mesh, "My dentist is Dr Lee", "Dr Ray looks after my teeth")
    updates.confirm(mesh, other.id, one.id)
    assert found(mesh, "My dentist is Dr Lee")[0] == other.content


def test_a_search_sees_at_once_what_a_person_decided(mesh: Context) -> None:
    one, other = judged(mesh, "My dentist is Dr Lee", "Dr Ray looks after my teeth")
    query = "My dentist is Dr Lee"
    assert found(mesh, query)[0] == one.content
    updates.confirm(mesh, other.id, one.id)
    assert found(mesh, query)[0] == other.content
    updates.undo(mesh, other.id, one.id)
    assert found(mesh, query)[0] == one.content


def test_an_end_that_a_person_confirms_stays_an_end(mesh: Context) -> None:
    older, newer = judged(mesh, GYM, GYM_ENDED)
    assert updates.confirm(mesh, newer.id, older.id).type == ENDS
    assert [(link.link_type, link.similarity) for link in links(mesh)] == [(ENDS, 1.0)]


def test_an_undone_change_can_be_confirmed(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    updates.undo(mesh, newer.id, older.id)
    assert updates.confirm(mesh, newer.id, older.id).type == UPDATES
    assert [link.link_type for link in links(mesh)] == [UPDATES]


def test_a_memory_that_is_in_doubt_changes_nothing(mesh: Context) -> None:
    _, newer = judged(mesh, BERLIN, MUNICH)
    assert found(mesh, "in Berlin I live")[0] == MUNICH
    write.set_columns(mesh, newer.id, action="dispute", status=Status.DISPUTED)
    [result] = search(mesh, Request(query="in Berlin I live", min_score=0.0))
    assert (result.content, result.until) == (BERLIN, None)


def test_a_link_of_another_program_is_no_change(mesh: Context) -> None:
    older, newer = add(mesh, BERLIN, "Tea is in the left drawer")
    link = graph.link(newer, older, UPDATES, mesh.clock())
    commit(mesh, lambda: Plan(None, [link.row(newer.partition)]))
    assert updates.changes(mesh) == []
    assert found(mesh, "in Berlin I live")[0] == BERLIN


def test_wrong_ids_are_refused(mesh: Context) -> None:
    [one] = judged(mesh, BERLIN)
    with pytest.raises(InvalidInput, match="both memories"):
        updates.confirm(mesh, one.id, one.id)
    with pytest.raises(NotFound):
        updates.confirm(mesh, one.id, "mem_missing")
    [newer] = judged(mesh, MUNICH)
    with pytest.raises(InvalidInput, match="was said before"):
        updates.confirm(mesh, one.id, newer.id)


def test_changes_shows_the_line_of_a_memory_and_of_a_subject(mesh: Context) -> None:
    berlin, munich, hamburg = judged(mesh, BERLIN, MUNICH, HAMBURG)
    gym, over = judged(mesh, GYM, GYM_ENDED)

    def pairs(about: str | None = None) -> list[tuple[str, str]]:
        return [(one.newer.id, one.older.id) for one in updates.changes(mesh, about)]

    moves = [(hamburg.id, munich.id), (munich.id, berlin.id)]
    assert pairs() == [(over.id, gym.id), *moves]
    assert pairs(berlin.id) == moves
    assert pairs("gym") == [(over.id, gym.id)]


def test_changes_shows_so_many_and_judges_for_some_seconds(
    mesh: Context, judge: ToldJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(mesh, BERLIN, MUNICH, HAMBURG)
    clock = mesh.clock

    def slow_clock() -> int:
        assert isinstance(clock, FakeClock)
        clock.advance(seconds=3)
        return clock()

    monkeypatch.setattr(updates, "_AT_ONCE", 1)
    updates.changes(replace(mesh, clock=slow_clock))
    assert HAMBURG not in {newer for _, newer in judge.asked}
    assert [one.newer.content for one in updates.changes(mesh, limit=1)] == [HAMBURG]
    assert len(updates.changes(mesh)) == 2
    with pytest.raises(InvalidInput, match="limit"):
        updates.changes(mesh, limit=-1)


def test_changes_of_others_are_not_shown(mesh: Context) -> None:
    shop = replace(mesh, reader=replace(mesh.reader, project="shop"))
    own, others = (replace(mesh, reader=Reader("u", name)) for name in ("ann", "bob"))
    judged(shop, *((text, {"project": "shop"}) for text in (BERLIN, MUNICH)))
    judged(own, *((text, {"type": "agent"}) for text in (GYM, GYM_ENDED)))
    assert {one.newer.content for one in updates.changes(own)} == {MUNICH, GYM_ENDED}
    assert [one.newer.content for one in updates.changes(others)] == [MUNICH]
    bank = replace(mesh, reader=replace(mesh.reader, project="bank"))
    assert [one.newer.content for one in updates.changes(bank)] == [GYM_ENDED]
    only = replace(mesh, reader=replace(bank.reader, only_project=True))
    assert [one.newer.content for one in updates.changes(only)] == [GYM_ENDED]


def test_a_change_whose_memory_is_not_active_is_not_shown(mesh: Context) -> None:
    older, newer = judged(mesh, BERLIN, MUNICH)
    assert len(updates.changes(mesh)) == 1
    for memory, status in ((newer, Status.QUARANTINED), (older, Status.ARCHIVED)):
        write.set_columns(mesh, memory.id, action="review", status=status)
        assert updates.changes(mesh) == []
        write.set_columns(mesh, memory.id, action="review", status=Status.ACTIVE)
    assert len(updates.changes(mesh)) == 1


def test_a_judge_that_fails_is_reported_once(
    mesh: Context, judge: ToldJudge, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(pairs: object) -> list[Likely]:
        raise ModelMissing("no judge is there", remedy="fetch it")

    add(mesh, BERLIN, MUNICH)
    judge.judge = fail  # type: ignore[method-assign, assignment]
    for _ in range(2):
        updates.judge_quietly(mesh, lambda: True)
    assert [record.getMessage() for record in caplog.records] == [
        "changes are not recognised: no judge is there; fetch it"
    ]


# --- contexts for prompts ---


def test_a_context_says_until_when_a_memory_held(mesh: Context) -> None:
    judged(mesh, BERLIN, MUNICH)
    text = contexts.build(mesh, "Where do I live?", CONTEXT)
    assert text.splitlines()[-3:-1] == [f"- until 1 Jan 2026: {BERLIN}", f"- {MUNICH}"]
    assert [hit.until is None for hit in text.memories] == [True, False]


def test_a_context_does_not_follow_a_change_back_to_what_was(mesh: Context) -> None:
    older, newer = judged(mesh, "Our flat: 12 Elm Street, Berlin", "We moved to Munich")
    updates.confirm(mesh, newer.id, older.id)
    by_words = mesh.with_models(embedder=None)
    about_now = contexts.build(by_words, "moved Munich", CONTEXT).memories
    assert [hit.id for hit in about_now] == [newer.id]
    about_then = contexts.build(by_words, "flat Elm Street", CONTEXT).memories
    assert {hit.id for hit in about_then} == {older.id, newer.id}


def test_a_session_does_not_begin_with_what_was(mesh: Context) -> None:
    _, munich = judged(mesh, BERLIN, MUNICH)
    text = lane.session_context(mesh, 1000)
    assert MUNICH in text
    assert BERLIN not in text
    write.set_columns(mesh, munich.id, action="archive", status=Status.ARCHIVED)
    assert BERLIN in lane.session_context(mesh, 1000)


def test_without_a_judge_nothing_is_compared(mesh: Context) -> None:
    judged(mesh.with_models(judge=None), BERLIN, MUNICH)
    assert links(mesh) == []
    updates.judge_new(mesh)  # a later process has one
    assert len(links(mesh)) == 1


# --- what testers found ---


def test_a_backlog_is_judged_in_pieces(mesh: Context, judge: ToldJudge) -> None:
    judged(mesh, "I like green tea")
    add(mesh, *(f"Fact {number} about tea" for number in range(50)))
    for _ in range(4):
        left = iter([True] * 30 + [False] * 1000)
        updates.judge_new(mesh, lambda left=left: next(left))
    asked = {one for _, one in judge.asked}
    assert {f"Fact {number} about tea" for number in range(1, 50)} <= asked
    assert updates.judge_new(mesh) == 0


def test_a_cached_search_notices_links_that_come_and_go(mesh: Context) -> None:
    _, munich = add(mesh, BERLIN, MUNICH)
    request = Request(query="in Berlin I live", min_score=0.0)
    assert search(mesh, request)[0].content == BERLIN
    updates.judge_new(mesh)
    assert search(mesh, request)[0].content == MUNICH
    write.update(mesh, munich.id, content="I like green tea")
    search(mesh, request)
    updates.judge_new(mesh)
    assert search(mesh, request)[0].content == BERLIN
    assert search(mesh, request)[0].until is None


def test_a_cached_search_notices_what_may_have_changed(mesh: Context) -> None:
    add(mesh, ROSSI, KIM)
    request = Request(query="I eat lunch at the usual place", min_score=0.0)
    assert search(mesh, request)[0].content == ROSSI
    updates.judge_new(mesh)
    assert search(mesh, request)[0].content == KIM


@pytest.mark.parametrize("metadata", [{"type": "agent"}, {"type": "session", "session_id": "s1"}])
def test_a_mark_names_no_memory_that_the_reader_does_not_see(
    mesh: Context, metadata: dict[str, object]
) -> None:
    berlin, munich = judged(mesh, BERLIN, MUNICH)
    updates.confirm(mesh, munich.id, berlin.id)
    bob = replace(mesh, reader=Reader(mesh.reader.user_id, "bob"))
    query = Request(query="where do I live", min_score=0.0)
    assert munich.id in {result.updated_by for result in search(bob, query)}
    write.update(mesh, munich.id, metadata=metadata)
    assert [(one.id, one.until) for one in search(bob, query)] == [(berlin.id, None)]


def test_memories_of_other_readers_cannot_be_confirmed(mesh: Context) -> None:
    berlin, munich = add(mesh, BERLIN, (MUNICH, {"project": "secret"}))
    with pytest.raises(InvalidInput, match="same agents, sessions and projects"):
        updates.confirm(mesh, munich.id, berlin.id)


def test_what_does_not_hold_yet_changes_nothing_yet(mesh: Context) -> None:
    assert isinstance(mesh.clock, FakeClock)
    judged(mesh, BERLIN, (MUNICH, {"event_time": "2030-01-01"}))
    request = Request(query="in Berlin I live now", min_score=0.0)
    assert (search(mesh, request)[0].content, search(mesh, request)[0].until) == (BERLIN, None)
    mesh.clock.advance(days=5 * 365)
    assert search(mesh, request)[0].content == MUNICH


@pytest.mark.parametrize(
    "metadata", [{"expires_at": "2026-01-02"}, {"valid_until": "2026-01-02"}, {}]
)
def test_the_older_one_holds_again_when_the_newer_one_is_over(
    mesh: Context, metadata: dict[str, object]
) -> None:
    assert isinstance(mesh.clock, FakeClock)
    _, munich = judged(mesh, BERLIN, (MUNICH, metadata))
    request = Request(query="in Berlin I live", min_score=0.0)
    assert [result.until is None for result in search(mesh, request)] == [True, False]
    if not metadata:
        write.set_columns(mesh, munich.id, action="archive", status=Status.ARCHIVED)
    mesh.clock.advance(days=3)
    [result] = search(mesh, request)
    assert (result.content, result.until) == (BERLIN, None)


def test_the_last_one_of_a_chain_counts_if_the_middle_is_gone(mesh: Context) -> None:
    _, munich, hamburg = judged(mesh, BERLIN, MUNICH, HAMBURG)
    write.set_columns(mesh, munich.id, action="archive", status=Status.ARCHIVED)
    first, second = search(mesh, Request(query="in Berlin I live", min_score=0.0))
    assert (first.content, second.content) == (HAMBURG, BERLIN)
    assert second.updated_by == hamburg.id


def test_only_a_person_is_certain(mesh: Context, judge: ToldJudge) -> None:
    judge.says[BERLIN, MUNICH] = Likely(1.0, 0.0, 0.0, 0.0)
    _, munich = judged(mesh, BERLIN, MUNICH)
    assert [link.similarity for link in links(mesh)] == [0.9999]
    write.update(mesh, munich.id, content="I like green tea")
    updates.judge_new(mesh)
    assert links(mesh) == []


def test_a_memory_that_changes_two_things_does_not_join_them(mesh: Context) -> None:
    job, home, both = add(
        mesh, "My job is at Acme Bank", "I live in Berlin near the park",
        "I quit Acme Bank and left Berlin",
    )  # fmt: skip
    updates.confirm(mesh, both.id, job.id)
    updates.confirm(mesh, both.id, home.id)
    assert found(mesh, "Where was my job at before?")[0] == job.content
    assert found(mesh, "my job") == [both.content, job.content, home.content]


def test_a_change_is_confirmed_in_one_direction(mesh: Context) -> None:
    one, other = add_many(mesh, [BERLIN, MUNICH])  # at the same time
    updates.confirm(mesh, other.id, one.id)
    updates.confirm(mesh, one.id, other.id)
    assert [(link.ref, link.target) for link in links(mesh)] == [(one.id, other.id)]
    assert BERLIN in lane.session_context(mesh, 1000)


@pytest.mark.parametrize("confirmed", [False, True])
def test_a_link_begins_when_the_newer_one_does(mesh: Context, confirmed: bool) -> None:
    berlin, munich = judged(
        mesh, (BERLIN, {"event_time": "2025-01-01"}), (MUNICH, {"event_time": "2025-06-01"})
    )
    if confirmed:
        updates.confirm(mesh, munich.id, berlin.id)
    assert found(mesh, "in Berlin I live", as_of="2025-04-01")[0] == BERLIN
    write.update(mesh, munich.id, metadata={"event_time": "2025-03-01"})
    updates.judge_new(mesh)
    [link] = links(mesh)
    assert link.created_at == "2025-03-01T00:00:00.000Z"
    assert found(mesh, "in Berlin I live", as_of="2025-04-01")[0] == MUNICH


def test_a_link_without_a_probability_gets_one(mesh: Context) -> None:
    berlin, munich, tea = add(mesh, BERLIN, MUNICH, "I like green tea")
    foreign = [graph.link(munich, berlin, UPDATES, 0), graph.link(tea, berlin, ENDS, 0)]
    commit(mesh, lambda: Plan(None, [one.row(munich.partition) for one in foreign]))
    updates.judge_new(mesh)
    write.update(mesh, tea.id, content="I like black tea")
    updates.judge_new(mesh)
    assert {one.link_type: one.similarity for one in links(mesh)} == {UPDATES: 0.98, ENDS: None}


def test_a_correction_in_one_conversation_is_recognised(mesh: Context) -> None:
    add_many(mesh, [BERLIN, MUNICH])
    updates.judge_new(mesh)
    assert len(links(mesh)) == 1


def test_a_guessed_id_of_another_user_is_a_subject(mesh: Context) -> None:
    other = replace(mesh, reader=Reader("eve", "eve"))
    [secret] = add(mesh, BERLIN)
    one, two = add(other, f"{secret.id} one", f"{secret.id} two")
    updates.confirm(other, two.id, one.id)
    assert len(updates.changes(other, secret.id)) == 1
