"""Conversations: messages become turns of their session, and a history that is sent again is
stored once."""

import asyncio
import runpy
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_mesh import AsyncMemoryMesh, MemoryMesh, MemoryRecord
from memory_mesh.core.errors import InvalidInput, KeyReused
from memory_mesh.core.model import Kind, Row
from memory_mesh.models import HashingEmbedder

from .house import House

TYPED = Path(__file__).parents[1] / "typed" / "user_code.py"


def said(*words: str) -> list[dict[str, str]]:
    """Messages such as `user: hello`."""
    return [dict(zip(("role", "content"), word.split(": ", 1), strict=True)) for word in words]


TALK = said(
    "system: Be kind.",
    "user: My name is Ana.",
    "assistant: Hello Ana!",
    "user: yes",
    "assistant: Good.",
    "user: yes",
)


def talk_of(house: House, session_id: str | None = None) -> list[tuple[int | None, str]]:
    """The turns of a session as they are stored."""
    turns = [
        memory
        for memory in house.memories()
        if memory.turn is not None and memory.session_id == session_id
    ]
    return sorted((memory.turn, memory.content) for memory in turns)


def test_each_message_becomes_a_turn_with_speaker_session_trust_and_provenance(
    house: House,
) -> None:
    mesh = house.mesh(session_id="s1")
    records = mesh.add(
        said("system: x", "user: Where is the key?", "assistant: On the desk.", "tool: desk: 1 key")
    )
    assert [
        (record.turn, record.speaker, record.session_id, record.trust) for record in records
    ] == [
        (1, "user", "s1", 0.7),
        (2, "assistant", "s1", 0.5),
        (3, "tool", "s1", 0.85),
    ]
    sources = [record.metadata["provenance"]["source"] for record in records]
    assert sources == ["user_implicit", "inference", "tool_output"]
    assert mesh.get_all(filter="speaker = 'assistant'")[0].id == records[1].id
    assert house.sound()


def test_a_history_that_is_sent_again_adds_only_what_is_new(house: House, mesh: MemoryMesh) -> None:
    assert [len(mesh.add(TALK[:count])) for count in (1, 3, 3, 6, 4, 6)] == [0, 2, 0, 3, 0, 0]
    texts = ["My name is Ana.", "Hello Ana!", "yes", "Good.", "yes"]
    assert talk_of(house) == [*enumerate(texts, start=1)]
    assert mesh.add([*TALK[:2], *TALK[4:], *said("assistant: Bye.")])[0].turn == 6
    assert {memory.times_observed for memory in house.memories()} == {1}


def test_a_single_message_is_always_a_new_turn(house: House, mesh: MemoryMesh) -> None:
    message = {"role": "user", "content": "yes"}
    assert [mesh.add(message).turn for _ in range(3)] == [1, 2, 3]
    assert mesh.add([message, *said("assistant: ok")])[0].turn == 4
    assert talk_of(house) == [(1, "yes"), (2, "yes"), (3, "yes"), (4, "ok")]


def test_a_short_list_reads_only_the_ends_of_a_long_conversation(
    house: House, mesh: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = said(*(f"user: message {n}" for n in range(1, 101)))
    records = mesh.add(history)
    mesh.delete(records[40].id)
    find, rows = house.store.find, []

    def counting(kind: Kind, *args: Any, **options: Any) -> list[Row]:
        found = find(kind, *args, **options)
        rows.extend(row for row in found if kind is Kind.MEMORY)
        return found

    monkeypatch.setattr(house.store, "find", counting)
    assert [
        record.turn for record in mesh.add([*history[:2], *history[-2:], *said("user: new")])
    ] == [101]
    assert [
        mesh.add(said("user: newer"))[0].turn,
        mesh.add({"role": "user", "content": "newest"}).turn,
    ] == [102, 103]
    assert 0 < len(rows) < 25
    rows.clear()
    assert mesh.add(history) == []
    assert len(rows) > 99


def test_sessions_projects_and_visibilities_are_conversations_of_their_own(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    scopes = [None, {"session_id": "s2"}, {"project": "p"}, {"type": "agent"}, {"type": "session"}]
    for metadata in scopes[:4]:
        assert [record.turn for record in mesh.add(TALK, metadata)] == [1, 2, 3, 4, 5]
        assert mesh.add(TALK, metadata) == []
    assert (
        mesh.add_many([(TALK, {"session_id": "s2"}), (TALK, {"session_id": "s3"}), TALK])[
            0
        ].session_id
        == "s3"
    )
    assert mesh.add(TALK) == []


def test_another_agent_that_takes_over_a_global_conversation_adds_what_is_new(house: House) -> None:
    house.mesh("ann", session_id="s").add(TALK)
    assert [
        record.turn
        for record in house.mesh("bob", session_id="s").add([*TALK, *said("assistant: Bye.")])
    ] == [6]
    assert len(house.mesh("bob", session_id="s", user_id="other").add(TALK)) == 5


def test_an_erased_turn_does_not_come_back_with_the_history(house: House, mesh: MemoryMesh) -> None:
    records = mesh.add(TALK)
    mesh.delete(records[1].id)
    assert mesh.add(TALK) == []
    assert [record.turn for record in mesh.add([*TALK, *said("assistant: Bye.")])] == [6]
    assert [number for number, _ in talk_of(house)] == [1, 3, 4, 5, 6]


def test_a_turn_that_was_updated_or_archived_is_still_known(house: House, mesh: MemoryMesh) -> None:
    records = mesh.add(TALK)
    mesh.update(records[0].id, content="The user is Ana.")
    house.change(records[2].id, status="archived")
    assert mesh.add(TALK) == []
    assert mesh.get(records[0].id).turn == 1


def test_masked_values_are_compared_as_they_are_stored(house: House, mesh: MemoryMesh) -> None:
    history = said("user: Write to bob@example.com", "assistant:   Done")
    assert [record.content for record in mesh.add(history)] == ["Write to [EMAIL]", "Done"]
    assert mesh.add(history) == []


def test_a_turn_that_the_caller_numbers_keeps_its_number(house: House, mesh: MemoryMesh) -> None:
    numbered = {"role": "user", "content": "hello", "metadata": {"turn": 7}}
    assert [mesh.add(numbered).turn, mesh.add(numbered).times_observed, len(house.memories())] == [
        7,
        2,
        1,
    ]
    assert mesh.add({"role": "user", "content": "hello"}).turn == 8


def test_a_list_may_mix_texts_and_messages(house: House, mesh: MemoryMesh) -> None:
    items = ["a fact", *TALK[:2], ("another fact", {"tags": ["x"]}), {"content": "a third"}]
    assert [record.turn for record in mesh.add(items)] == [None, 1, None, None]
    assert [(record.content, record.times_observed) for record in mesh.add_many(items)] == [
        ("a fact", 2),
        ("another fact", 2),
        ("a third", 2),
    ]


@pytest.mark.parametrize(
    "bad",
    [{"role": "robot", "content": "x"}, {"role": "user"}, 5, {"role": "user", "content": "a\0b"}],
)
def test_nothing_is_stored_if_one_message_is_wrong(
    house: House, mesh: MemoryMesh, bad: object
) -> None:
    for call in (mesh.add, mesh.add_many):
        with pytest.raises(InvalidInput, match=r"^item 6: "):
            call([*TALK, bad])
    assert house.memories() == house.blocks() == []
    assert len(mesh.add(TALK)) == 5


def test_a_message_that_is_not_stored_is_refused_by_itself(mesh: MemoryMesh) -> None:
    with pytest.raises(InvalidInput, match=r"system messages .* not stored; leave it out"):
        mesh.add({"role": "system", "content": "Be kind."})


def test_a_list_is_repeated_as_a_whole_under_its_idempotency_key(
    house: House, mesh: MemoryMesh
) -> None:
    mesh.add(TALK[:3])
    window = TALK[2:5]
    first = mesh.add(window, idempotency_key="k")
    assert [record.turn for record in first] == [3, 4]
    mesh.add(said("user: Later", "assistant: Yes?"))
    assert mesh.add(window, idempotency_key="k") == first
    assert len(talk_of(house)) == 6
    with pytest.raises(KeyReused):
        mesh.add(TALK, idempotency_key="k")
    one = mesh.add({"role": "user", "content": "yes"}, idempotency_key="one")
    assert mesh.add({"role": "user", "content": "yes"}, idempotency_key="one") == one


def test_times_may_be_datetimes_and_dates(mesh: MemoryMesh) -> None:
    times = {
        "event_time": datetime(2026, 3, 1, 9, 30),  # noqa: DTZ001  (UTC)
        "valid_from": date(2026, 3, 1),
        "expires_at": datetime(2030, 1, 1, tzinfo=UTC),
    }
    record = mesh.add("The key rotates.", {**times, "checked": [date(2026, 3, 2)]})
    assert (record.event_time, record.valid_from) == (
        "2026-03-01T09:30:00.000Z",
        "2026-03-01T00:00:00.000Z",
    )
    assert record.expires_at == "2030-01-01T00:00:00.000Z"
    assert record.metadata["checked"] == ["2026-03-02"]
    assert (
        mesh.update(record.id, metadata={"event_time": date(2026, 4, 1)}).event_time
        == "2026-04-01T00:00:00.000Z"
    )


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_session_sent_in_all_ways_is_stored_as_it_was(
    nothing_set: Path, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, 8))
    texts = [data.draw(st.sampled_from(["yes", "no", "Thanks"])) for _ in range(size)]
    roles = ["user", "assistant"] * 4
    talk = [
        {"role": roles[n], "content": text, "timestamp": 1_760_000_000 + n}
        for n, text in enumerate(texts)
    ]
    with MemoryMesh(store="memory://", session_id="s") as mesh:
        done = 0
        while done < size:
            way = data.draw(st.sampled_from(["single", "all", "window", "trimmed"]))
            if way == "single":
                mesh.add(talk[done])
                done += 1
                continue
            end = data.draw(st.integers(done, size))
            start = 0 if way == "all" else data.draw(st.integers(0, max(done - 1, 0)))
            head = talk[: data.draw(st.integers(0, start))] if way == "trimmed" else []
            assert len(mesh.add([*head, *talk[start:end]])) == end - done
            done = end
        turns = sorted(
            (record.turn, record.content, record.event_time) for record in mesh.get_all()
        )
        assert [(number, text) for number, text, _ in turns] == [*enumerate(texts, start=1)]


# --- progress ---


def test_long_calls_report_their_progress(house: House) -> None:
    reports: list[tuple[str, int, int]] = []

    def progress(what: str, done: int, of: int) -> None:
        reports.append((what, done, of))

    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add_many((f"text {n}" for n in range(300)), progress=progress)
    assert reports == [
        ("checking", 256, 300),
        ("checking", 300, 300),
        ("embedding", 256, 300),
        ("embedding", 300, 300),
    ]
    reports.clear()
    mesh.add("a single text", progress=progress)
    assert reports == [("embedding", 1, 1)]
    reports.clear()
    assert house.sound()
    mesh.verify(progress=progress)
    assert reports == [("verifying", 301, 301)]
    reports.clear()
    mesh.extract("Ana likes tea.", progress=progress)
    assert reports == []  # there is no model to ask


def test_a_progress_that_fails_stops_the_call_and_nothing_is_stored(house: House) -> None:
    def progress(what: str, done: int, of: int) -> None:
        if what == "embedding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        house.mesh(embedder=HashingEmbedder()).add_many(["one", "two"], progress=progress)
    assert house.memories() == house.blocks() == []


# --- as a user writes it ---


def test_typed_code_of_a_user_runs(mesh: MemoryMesh) -> None:
    remember: Callable[[MemoryMesh], list[MemoryRecord]] = runpy.run_path(str(TYPED))["remember"]
    records = remember(mesh)
    speakers = [record.speaker for record in records if record.turn]
    assert speakers == ["user", "user", "assistant", "user", "user", "assistant"]


def test_the_asynchronous_mesh_takes_the_same(house: House) -> None:
    async def run() -> list[MemoryRecord]:
        async with AsyncMemoryMesh(store=house.store, agent_id="ann") as mesh:
            await mesh.add_many(["a", "b"])
            return await mesh.ingest(TALK)

    assert [record.turn for record in asyncio.run(run())] == [1, 2, 3, 4, 5]
