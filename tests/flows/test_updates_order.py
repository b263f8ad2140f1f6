"""What changed, when several changes, readers, times and edits meet."""

from dataclasses import replace
from itertools import pairwise

import pytest

from judging import BERLIN, HAMBURG, KIM, MOVED, MUNICH, ROSSI, ToldJudge
from memory_mesh.core.claims.updates import BOTH_HOLD, UPDATES, asks_past
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Memory, Status
from memory_mesh.flows.claims import updates
from memory_mesh.flows.context import Context
from memory_mesh.flows.search.search import Request, search
from memory_mesh.flows.write import write
from memory_mesh.models import HashingEmbedder
from memory_mesh.testing.fakes import FakeClock

from .adding import add_many
from .test_updates import add, found, judged, links

HOUSE, TOWN = "I moved house to Munich", "I moved house to Hamburg"


@pytest.fixture
def judge() -> ToldJudge:
    return ToldJudge()


@pytest.fixture
def mesh(context: Context, judge: ToldJudge) -> Context:
    return context.with_models(embedder=HashingEmbedder(), judge=judge)


def archive(mesh: Context, memory: Memory) -> None:
    write.set_columns(mesh, memory.id, action="archive", status=Status.ARCHIVED)


def pairs(mesh: Context) -> list[tuple[str, str]]:
    return [(link.ref, link.target) for link in links(mesh)]


# --- questions about the past ---


@pytest.mark.parametrize(
    ("question", "is_past"),
    [
        ("Where did I work before Acme?", True), ("What was the old password?", True),
        ("Where did I use to live?", True), ("I used to run with which app?", True),
        ("Which app do I use to track my runs?", False), ("What am I used to eating?", False),
        ("What is the knife used to cut?", False), ("What's it used to cut?", False),
        ("What did the doctor tell me to take before bed?", False),
        ("Where did I live before now?", False), ("What was due before 10:00?", False),
    ],
)  # fmt: skip
def test_words_of_the_past_that_ask_for_the_present_are_told_apart(
    question: str, is_past: bool
) -> None:
    assert asks_past(question) is is_past


@pytest.mark.parametrize("words", ["what did ", "used to ", "is ", "before, ", "did use to be "])
def test_a_long_question_is_read_in_one_go(words: str) -> None:
    asks_past(words * (100_000 // len(words)))


# --- several changes at once ---


def test_each_memory_of_a_chain_stands_below_those_that_came_later(mesh: Context) -> None:
    chain = add(mesh, BERLIN, HOUSE, TOWN, *(f"I live in town {at}" for at in range(9)))
    for older, newer in pairwise(chain):
        updates.confirm(mesh, newer.id, older.id)
    texts = [memory.content for memory in chain]
    assert found(mesh, BERLIN, limit=20) == texts[::-1]
    assert found(mesh, "Where did I live in Berlin before?", limit=20)[0] == texts[-2]


def test_of_two_newer_ones_the_latest_stands_first(mesh: Context) -> None:
    berlin, house, town = add(mesh, BERLIN, HOUSE, TOWN)
    for newer in (house, town):
        updates.confirm(mesh, newer.id, berlin.id)
    assert found(mesh, BERLIN) == [TOWN, HOUSE, BERLIN]


@pytest.mark.parametrize("limit", [1, 2])
def test_rrf_returns_the_newer_one_even_if_it_is_far_behind(mesh: Context, limit: int) -> None:
    near = f"{BERLIN} near the river"
    older, newer = add(mesh, near, "We moved to Munich")
    add_many(mesh, [f"I live in dream {at} near the lake" for at in range(10)])
    assert found(mesh, near, ranker="rrf", limit=limit)[0] == near
    updates.confirm(mesh, newer.id, older.id)
    assert found(mesh, near, ranker="rrf", limit=limit) == [newer.content, near][:limit]


def test_what_may_have_changed_is_compared_with_any_score(mesh: Context) -> None:
    mesh = replace(mesh, options=replace(mesh.options, channel_weights={"vectors": 0.0}))
    judged(mesh, ROSSI, KIM)
    add_many(mesh, [f"I eat lunch at place {at} before noon" for at in range(10)])
    for question in ("Where did I eat lunch before?", "great"):
        assert found(mesh, question, ranker="rrf", limit=1)


# --- readers and times ---


def test_an_archived_memory_that_was_asked_for_changes_nothing(mesh: Context) -> None:
    _, munich = judged(mesh, BERLIN, MUNICH)
    archive(mesh, munich)
    statuses = [Status.ACTIVE, Status.ARCHIVED]
    request = Request(query="in Berlin I live", min_score=0.0, statuses=statuses)
    first, second = search(mesh, request)
    assert (first.content, first.until, second.content) == (BERLIN, None, MUNICH)


@pytest.mark.parametrize(
    "metadata", [{"expires_at": "2026-01-01T00:02:00Z"}, {"valid_until": "2026-01-01T00:02:00Z"}]
)
def test_a_cached_search_ends_with_the_newer_one_that_it_does_not_show(
    mesh: Context, metadata: dict[str, object]
) -> None:
    assert isinstance(mesh.clock, FakeClock)
    judged(mesh, (BERLIN, {"tags": ["home"]}), (MUNICH, metadata))
    request = Request(query="in Berlin I live", min_score=0.0).with_filter("tags = 'home'")
    assert [result.until is None for result in search(mesh, request)] == [False]
    mesh.clock.advance(seconds=130)
    assert [result.until is None for result in search(mesh, request)] == [True]


def test_a_cached_search_ends_when_a_change_begins(mesh: Context) -> None:
    assert isinstance(mesh.clock, FakeClock)
    judged(mesh, BERLIN, (MUNICH, {"event_time": "2026-01-01T00:02:00Z"}))
    request = Request(query="in Berlin I live", min_score=0.0)
    assert search(mesh, request)[0].content == BERLIN
    mesh.clock.advance(seconds=130)
    assert search(mesh, request)[0].content == MUNICH


# --- edits ---


def test_an_undone_change_does_not_come_back_the_other_way_round(
    mesh: Context, judge: ToldJudge
) -> None:
    judge.says[MUNICH, BERLIN] = MOVED
    berlin, munich = judged(mesh, BERLIN, MUNICH)
    updates.undo(mesh, munich.id, berlin.id)
    write.update(mesh, berlin.id, metadata={"event_time": "2026-05-01"})
    updates.judge_new(mesh)
    assert (MUNICH, BERLIN) in judge.asked
    assert [link.link_type for link in links(mesh)] == [BOTH_HOLD]


def test_a_change_turns_round_with_the_times_of_its_memories(
    mesh: Context, judge: ToldJudge
) -> None:
    judge.says[MUNICH, BERLIN] = MOVED
    berlin, munich = judged(mesh, BERLIN, MUNICH)
    assert pairs(mesh) == [(munich.id, berlin.id)]
    write.update(mesh, berlin.id, metadata={"event_time": "2026-05-01"})
    updates.judge_new(mesh)
    assert pairs(mesh) == [(berlin.id, munich.id)]


def test_changes_of_equal_times_are_not_confirmed_in_a_circle(mesh: Context) -> None:
    one, two, three = add_many(mesh, [BERLIN, MUNICH, HAMBURG])
    updates.confirm(mesh, two.id, one.id)
    updates.confirm(mesh, three.id, two.id)
    with pytest.raises(InvalidInput, match="by other changes"):
        updates.confirm(mesh, one.id, three.id)


def test_without_a_judge_a_change_follows_the_time_of_the_newer_one(mesh: Context) -> None:
    mesh = mesh.with_models(embedder=HashingEmbedder(), judge=None)
    berlin, munich = add(
        mesh, (BERLIN, {"event_time": "2025-03-01"}), (MUNICH, {"event_time": "2025-06-01"})
    )
    updates.confirm(mesh, munich.id, berlin.id)
    question = "Where did I live in July 2025?"
    assert found(mesh, question)[0] == MUNICH
    write.update(mesh, munich.id, metadata={"event_time": "2025-09-01"})
    assert found(mesh, question)[0] == BERLIN
    write.update(mesh, munich.id, metadata={"colour": "red"})
    assert [link.created_at[:10] for link in links(mesh)] == ["2025-09-01"]


def test_a_possible_change_goes_with_an_edit_of_the_older_one(mesh: Context) -> None:
    rossi, _ = judged(mesh, ROSSI, KIM)
    assert len(links(mesh)) == 1
    write.update(mesh, rossi.id, content="Lunch at noon suits me")
    updates.judge_new(mesh)
    assert links(mesh) == []


def test_an_edit_keeps_a_change_of_what_another_one_changed_too(
    mesh: Context, judge: ToldJudge
) -> None:
    rossi, kim, noon = judged(mesh, ROSSI, KIM, "Lunch at noon suits me")
    for newer in (kim, noon):
        updates.confirm(mesh, newer.id, rossi.id)
    write.update(mesh, kim.id, metadata={"colour": "red"})
    updates.judge_new(mesh)
    assert sorted(pairs(mesh)) == sorted([(kim.id, rossi.id), (noon.id, rossi.id)])


def test_an_edit_keeps_a_change_of_what_is_archived_now(mesh: Context) -> None:
    berlin, munich = judged(mesh, BERLIN, MUNICH)
    archive(mesh, berlin)
    write.update(mesh, munich.id, metadata={"colour": "red"})
    updates.judge_new(mesh)
    write.set_columns(mesh, berlin.id, action="unarchive", status=Status.ACTIVE)
    assert pairs(mesh) == [(munich.id, berlin.id)]


def test_what_holds_again_is_compared_with_what_comes_next(mesh: Context) -> None:
    berlin, munich = judged(mesh, BERLIN, MUNICH)
    archive(mesh, munich)
    [hamburg] = judged(mesh, HAMBURG)
    assert {link.ref for link in links(mesh) if link.link_type == UPDATES} == {
        munich.id, hamburg.id,
    }  # fmt: skip
    assert (hamburg.id, berlin.id) in pairs(mesh)


def test_what_one_thread_judges_no_other_judges_too(mesh: Context, judge: ToldJudge) -> None:
    add(mesh, BERLIN, MUNICH)
    running = mesh.state.queues.changes.running
    with running:
        assert updates.judge_for(mesh, 0.01) == 0
    assert judge.asked == []
    assert updates.judge_for(mesh, 5) == 2
    assert not running.locked()


@pytest.mark.parametrize("with_assistant", [False, True])
def test_what_people_say_to_each_other_is_not_compared(
    mesh: Context, judge: ToldJudge, with_assistant: bool
) -> None:
    def said(text: str, speaker: str, turn: int) -> tuple[str, dict[str, object]]:
        return text, {"session_id": "s1", "speaker": speaker, "turn": turn}

    listener = "assistant" if with_assistant else "Tim"
    named = (f"John: {BERLIN}", f"John: {MUNICH}")
    judge.says[named] = MOVED
    judged(mesh, said(BERLIN, "John", 1), said("Nice there, is it?", listener, 2),
           said(MUNICH, "John", 3), "I like green tea in Berlin")  # fmt: skip
    assert (named in judge.asked) is with_assistant
    assert len(links(mesh)) == with_assistant
    assert any(older == named[0] for older, _ in judge.asked) is with_assistant


@pytest.mark.parametrize(
    ("older", "newer", "sessions", "number"),
    [
        (ROSSI, KIM, ("s1", "s1"), 0), (ROSSI, KIM, ("s1", "s2"), 1), (ROSSI, KIM, (None, None), 1),
        (BERLIN, MUNICH, ("s1", "s1"), 1),
    ],
)  # fmt: skip
def test_what_is_said_next_in_a_session_is_a_change_only_if_that_is_certain(
    mesh: Context, older: str, newer: str, sessions: tuple[str | None, str | None], number: int
) -> None:
    texts = zip((older, newer), sessions, strict=True)
    judged(mesh, *((text, {"session_id": one} if one else {}) for text, one in texts))
    assert len(links(mesh)) == number


@pytest.mark.parametrize(("characters", "is_compared"), [(400, True), (401, False)])
@pytest.mark.parametrize("is_newer", [False, True])
def test_a_long_text_neither_changes_another_one_nor_is_changed(
    mesh: Context, judge: ToldJudge, characters: int, is_compared: bool, is_newer: bool
) -> None:
    texts = [BERLIN, MUNICH]
    texts[is_newer] = texts[is_newer].ljust(characters, "!")
    pair = (texts[0], texts[1])
    judge.says[pair] = MOVED
    judged(mesh, *pair)
    assert (pair in judge.asked) is is_compared
    assert len(links(mesh)) == is_compared


@pytest.mark.parametrize("is_newer", [False, True])
def test_a_change_of_a_text_that_becomes_long_is_taken_back(
    mesh: Context, judge: ToldJudge, is_newer: bool
) -> None:
    long = (MUNICH if is_newer else BERLIN).ljust(401, "!")
    judge.says[(BERLIN, long) if is_newer else (long, MUNICH)] = MOVED
    edited = judged(mesh, BERLIN, MUNICH)[is_newer]
    assert len(links(mesh)) == 1
    write.update(mesh, edited.id, content=long)
    updates.judge_new(mesh)
    assert links(mesh) == []


def test_a_note_of_a_named_speaker_is_compared(mesh: Context, judge: ToldJudge) -> None:
    judge.says[f"John: {BERLIN}", f"John: {MUNICH}"] = MOVED
    judged(mesh, (BERLIN, {"speaker": "John"}), (MUNICH, {"speaker": "John"}))
    assert len(links(mesh)) == 1
