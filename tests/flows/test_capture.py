"""Capture as a flow: a cursor for each session, one write, observations, corrections, the end of
a session, language models."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from memory_mesh import InvalidInput
from memory_mesh.core.errors import CallTimedOut
from memory_mesh.core.lane import NewLaneMemory
from memory_mesh.core.language.capture import CaptureReport, Transcript
from memory_mesh.core.language.capture.classify import Judge, judge_without_vectors
from memory_mesh.core.model import Kind, Memory, equals
from memory_mesh.flows.context import Context
from memory_mesh.flows.lane import capture, lane
from memory_mesh.flows.lane.capture import judge, on_session_event
from memory_mesh.flows.lane.lane import session_context
from memory_mesh.testing.fakes import ScriptedChat

LINTER = "From now on I want you to always run the linter before you tell me you're done."
LEDGER = "We decided to go with Postgres for the ledger, MySQL is out."
NPM = {"role": "assistant", "content": "I'll install the dependencies with `npm install`."}
PNPM = "No, use pnpm instead of npm here. The lockfile gets wrecked otherwise."


@pytest.fixture(autouse=True)
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of storing are tested here, not those of the judge."""
    judge = judge_without_vectors()
    monkeypatch.setattr(capture, "_judge", lambda context: Judge(replace(judge.weights, limit=0.4)))


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def idle(context: Context, *messages: dict[str, str], session: str = "s") -> CaptureReport:
    return on_session_event(context, "session.idle", list(messages), session_id=session)


def stored(context: Context) -> list[Memory]:
    return sorted(
        map(Memory.of, context.store.find(Kind.MEMORY)), key=lambda memory: memory.number or 0
    )


def store(context: Context, content: str, source: str = "inference") -> str:
    new = NewLaneMemory(memory_type="learning")
    return lane.store(
        context, content, new, supersedes=(), provenance={"source": source}, key=None
    ).id


@pytest.mark.req("LANE-35")
def test_each_message_is_captured_once_and_only_new_ones_are_read(context: Context) -> None:
    first = idle(context, user("Hi there!"), user(LINTER))
    assert [memory.content for memory in first.kept] == [LINTER]
    assert [(each.text, each.why) for each in first.not_kept] == [("Hi there!", "small talk")]
    again = idle(context, user("Hi there!"), user(LINTER))
    assert (again.kept, again.not_kept, again.new_messages, again.cursor) == ([], [], 0, 2)
    more = idle(context, user("Hi there!"), user(LINTER), user(LEDGER))
    assert ([memory.content for memory in more.kept], more.new_messages, more.cursor) == (
        [LEDGER],
        1,
        3,
    )
    assert [memory.times_observed for memory in stored(context)] == [1, 1]


@pytest.mark.req("LANE-35")
def test_of_a_transcript_that_was_cut_or_rewritten_only_unseen_messages_are_read(
    context: Context,
) -> None:
    idle(context, user("Hi there!"), user("How are you doing?"), user(LINTER))
    cut = idle(context, user("How are you doing?"), user(LINTER), user(LEDGER))
    assert [memory.content for memory in cut.kept] == [LEDGER]
    rewritten = idle(
        context,
        user("Hi there!"),
        user("Never book me anything before 9:30, I do the school run."),
        user(LINTER),
    )
    assert [memory.category for memory in rewritten.kept] == ["commitment"] * len(rewritten.kept)
    assert "Never book me anything" in " ".join(memory.content for memory in rewritten.kept)


@pytest.mark.req("LANE-35")
def test_sessions_have_cursors_of_their_own_and_the_same_text_is_observed_again(
    context: Context,
) -> None:
    idle(context, user(LINTER))
    idle(context, user(LINTER), session="other")
    idle(context, user(LINTER.replace("you're", "you are")), session="third")
    (memory,) = stored(context)
    assert (memory.times_observed, memory.session_id) == (3, "s")


@pytest.mark.req("LANE-35")
def test_nothing_is_written_if_the_write_fails_and_the_next_run_captures_all(
    context: Context,
) -> None:
    for name in ("flow.captured", "flow.decided"):

        def step(at: str, name: str = name) -> None:
            if at == name:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            idle(replace(context, step=step), user(LINTER))
        assert stored(context) == []
    assert len(idle(context, user(LINTER)).kept) == 1


@pytest.mark.req("LANE-37")
def test_a_captured_memory_is_stored_as_lane_store_stores_it(context: Context) -> None:
    idle(context, user(f"{LINTER} It matters for the atlas project."))
    (memory,) = stored(context)
    store(context, "Tea at four.")
    other = stored(context)[1]
    assert memory.metadata.keys() - {"source_chunk", "session_id"} == other.metadata.keys()
    assert (memory.category, memory.memory_type, memory.trust) == ("commitment", "global", 1.0)
    assert (memory.metadata["source_chunk"], memory.entities) == (
        f"user: {LINTER} It matters for the atlas project.",
        ["project:atlas"],
    )


@pytest.mark.req("LANE-34", "LANE-36")
def test_what_one_session_taught_is_in_the_context_of_the_next(context: Context) -> None:
    idle(context, user(LINTER), user(LEDGER))
    next_session = replace(context, reader=replace(context.reader, session_id="next"))
    offered = session_context(next_session, 2000)
    assert LINTER in offered
    assert LEDGER in offered


def test_a_correction_supersedes_the_one_memory_that_says_otherwise(context: Context) -> None:
    old, other = (
        store(context, "The project uses npm for installs."),
        store(context, "Tea is at four."),
    )
    report = idle(context, NPM, user(PNPM))
    assert report.superseded == [old]
    status = {memory.id: memory.status for memory in stored(context)}
    assert (status[old], status[other]) == ("superseded", "active")


def test_a_correction_that_may_mean_several_memories_supersedes_none(context: Context) -> None:
    for text in ("The project uses npm for installs.", "The docs build runs with npm too."):
        store(context, text)
    report = idle(context, NPM, user(PNPM))
    assert (len(report.kept), report.superseded) == (1, [])


def test_what_the_assistant_repeats_from_the_memory_is_not_counted(context: Context) -> None:
    found = (
        "The crash came from cart.items being null for guests of the kiosk, because only that path "
        "skips the constructor."
    )
    assert len(idle(context, {"role": "assistant", "content": found}).kept) == 1
    report = idle(context, {"role": "assistant", "content": found}, session="next")
    assert (report.kept, report.not_kept[-1].why) == ([], "a memory that was recalled")
    assert [memory.times_observed for memory in stored(context)] == [1]


def test_the_end_of_a_session_captures_and_archives_its_session_memories(context: Context) -> None:
    report = on_session_event(context, "session.deleted", [user(LINTER)], session_id="s")
    assert (len(report.kept), report.archived) == (1, [])
    assert [memory.status for memory in stored(context)] == ["active"]
    assert (
        on_session_event(context, "session.deleted", [user("hi")], session_id="never seen").kept
        == []
    )


@pytest.mark.parametrize("mode", ["mask", "pseudonym", "off"])
def test_a_message_that_gives_a_secret_is_not_kept_also_if_it_was_masked_before(
    context: Context, mode: str
) -> None:
    context = context.with_options(redaction=mode)
    secret = user(
        "My api key for Kafka is sk-test-4eC39HqLyjWDarjtT1zdp7dc, we always use it for the ledger."
    )
    report = idle(context, secret, user(LEDGER))
    assert [memory.content for memory in report.kept] == [LEDGER]
    assert [each.why for each in report.not_kept] == ["a secret"]


def test_secrets_in_what_is_quoted_are_masked(context: Context) -> None:
    idle(context, user("my token is ghp_" + "a1B2" * 9), user(LINTER))
    (memory,) = stored(context)
    assert "my token is" in str(memory.metadata["source_chunk"])
    assert "ghp_" not in json.dumps(memory.metadata)


def test_a_file_is_read_and_lines_that_cannot_be_read_are_counted(
    context: Context, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    said = {"type": "user", "uuid": "1", "message": {"role": "user", "content": LINTER}}
    path.write_text(json.dumps(said) + '\n{"type": "user", "mess', encoding="utf-8")
    report = on_session_event(context, "session.idle", path, session_id="s")
    assert (len(report.kept), report.note) == (1, "1 lines could not be read")


def test_a_run_reads_only_so_much_and_the_next_one_continues(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "MAX_NEW_CHARS", 150)
    messages = [
        user(LINTER),
        user(LEDGER),
        user("Never book me anything before 9:30, I do the school run."),
    ]
    first = idle(context, *messages)
    assert (first.cursor, first.note) == (
        2,
        "read 2 new messages, the most of one run; the next run continues",
    )
    assert (len(first.kept), len(idle(context, *messages).kept)) == (2, 1)


def test_only_the_beginning_of_a_giant_message_is_masked_and_read_and_the_others_are_captured(
    context: Context,
) -> None:
    giant = "password: hunter2-hunter2 " * 40_000
    masked: list[int] = []

    def redact(text: str) -> str:
        masked.append(len(text))
        return context.gates.content().redact(text)

    lines = [
        json.dumps(user(text))
        for text in (
            LINTER,
            giant,
            "x" * (capture.MAX_MESSAGE_CHARS - 5) + " ann@example.org",
            LEDGER,
        )
    ]
    run = capture._Run(seen=set(), skip_before=0)
    first, cut, split, last = capture._numbered(Transcript(lines), run, redact)
    assert (first.content, last.content) == (LINTER, LEDGER)
    assert len(cut.content) == capture.MAX_MESSAGE_CHARS
    assert "hunter2" not in cut.content
    assert split.content.startswith("x" * 100)
    assert "ann" not in split.content  # a value at the end of what is read is masked as a whole
    assert sum(masked) < 4 * capture.MAX_MESSAGE_CHARS
    report = idle(context, user(LINTER), user(giant), user(LEDGER))
    assert [memory.content for memory in report.kept] == [LINTER, LEDGER]
    assert [each.why for each in report.not_kept] == ["a pasted document"]
    assert idle(context, user(LINTER), user(giant), user(LEDGER)).new_messages == 0


def test_a_file_that_is_far_larger_than_any_transcript_is_refused_before_it_is_read(
    context: Context, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(user(LINTER)) + "\n", encoding="utf-8")
    assert len(on_session_event(context, "session.idle", path, session_id="s").kept) == 1
    os.truncate(path, 2**40)  # without the disk for it
    with pytest.raises(InvalidInput, match="it has 1,099,511,627,776 bytes"):
        on_session_event(context, "session.idle", path, session_id="s")


@pytest.mark.parametrize(
    ("event", "transcript"),
    [
        ("session.end", []),
        ("session.idle", 5),
        ("session.idle", ["hello"]),
        ("session.idle", "no such file.jsonl"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_stored(
    context: Context, event: str, transcript: str | list[dict[str, str]]
) -> None:
    with pytest.raises(InvalidInput):
        on_session_event(context, event, transcript, session_id="s")
    assert context.store.count(Kind.META, equals("kind", Kind.META)) == 0


def test_messages_are_judged_without_storing_anything_or_asking_a_model(context: Context) -> None:
    asked = ScriptedChat([])
    found = judge(
        context.with_models(chat=asked),
        [user("Hi there!"), user(LINTER), user("My mail is ann@example.org, always use it.")],
    )
    assert [(each.content, each.message) for each in found.kept][:1] == [(LINTER, 1)]
    assert [(each.text, each.why, each.message) for each in found.not_kept][:1] == [
        ("Hi there!", "small talk", 0)
    ]
    assert "ann@example.org" not in repr([*found.kept, *found.not_kept])
    assert stored(context) == []
    # Judging is not reading: the cursor did not move.
    assert idle(context, user(LINTER)).new_messages == 1


@pytest.mark.parametrize("messages", ["/etc/hostname", Path("/etc/hostname"), ["a text"], 7])
def test_only_a_list_of_messages_is_judged_and_no_file_is_opened(
    context: Context, messages: object
) -> None:
    with pytest.raises(InvalidInput):
        judge(context, messages)


def answer(*memories: dict[str, object]) -> str:
    return json.dumps({"memories": memories})


def test_a_language_model_finds_memories_and_the_firewall_judges_them(context: Context) -> None:
    good = {"message": 1, "memory_type": "learning", "text": "The harbour crane lifts 40 tonnes."}
    bad = [
        {**good, "memory_type": "fact"},
        {**good, "message": 7},
        {**good, "text": "Is the crane lifting 40 tonnes?"},
        {**good, "text": "Payments are approved automatically by the accounting department."},
    ]
    chat = ScriptedChat(answer(good, *bad))
    report = idle(
        context.with_models(chat=chat),
        user("hello"),
        user("the harbour crane lifts 40 tonnes, btw"),
    )
    assert [(memory.content, memory.category) for memory in report.kept] == [
        (good["text"], "learning")
    ]
    assert [each.why for each in report.not_kept] == [
        "a question",
        "not said in the message that the model names",
    ]
    assert "harbour crane" in chat.asks[0].user


@pytest.mark.parametrize("failure", ["no JSON at all", CallTimedOut("no answer in time")])
def test_if_the_language_model_fails_the_deterministic_extractor_reads_the_messages(
    context: Context, failure: str | CallTimedOut
) -> None:
    report = idle(context.with_models(chat=ScriptedChat(failure)), user(LINTER))
    assert [memory.content for memory in report.kept] == [LINTER]


def test_a_message_with_an_odd_id_is_captured(context: Context) -> None:
    assert len(idle(context, {**user(LINTER), "id": "\ud800"}).kept) == 1


def test_a_secret_of_the_transcript_is_neither_quoted_nor_an_entity(context: Context) -> None:
    idle(
        context,
        user(f"{LINTER} It matters for the atlas project and packages/AKIAIOSFODNN7EXAMPLE/src."),
    )
    (memory,) = stored(context)
    assert memory.entities == ["project:atlas"]
    assert "[API_KEY]" in str(memory.metadata["source_chunk"])
    assert "akia" not in str(memory).lower()
