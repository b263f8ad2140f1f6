"""`mesh.graph.episodes` and `summarize_episode`: which memories count, options, and summaries
that follow their sources."""

import asyncio
import json

import pytest

from memory_mesh import AsyncMemoryMesh, Episode, InvalidInput, MemoryMesh, NotFound
from memory_mesh.flows.graph import episodes
from memory_mesh.interfaces.cli.main import run
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import ScriptedChat

from .house import House

TRIP = [
    "I want to see the old castle of Lisbon.",
    "The train to Sintra leaves Lisbon at nine.",
    "Is it cold?",
]
WORK = "The deploy key rotates on Mondays."


@pytest.fixture
def house() -> House:
    return House(open_store("memory://"))


def talk(
    house: House, texts: list[str] = TRIP, session: str = "s1", **options: object
) -> MemoryMesh:
    """Store a conversation, one turn a minute."""
    mesh = house.mesh("ann", **options)
    for place, text in enumerate(texts):
        mesh.add(
            [{"role": "user", "content": text, "name": "Bob" if place % 2 else "Ana"}],
            {"session_id": session},
        )
        house.clock.advance(seconds=60)
    return mesh


def test_conversations_are_listed_newest_first_with_who_spoke_and_what_about(house: House) -> None:
    mesh = talk(house)
    house.clock.advance(seconds=7200)
    mesh.add(WORK)
    work, trip = mesh.graph.episodes("ann")
    assert (trip.speakers, trip.agents, trip.session_id, trip.count) == (
        ("Ana", "Bob"),
        ("ann",),
        "s1",
        3,
    )
    assert [mesh.get(id_).content for id_ in trip.memory_ids] == TRIP
    assert "Lisbon" in trip.title
    assert (trip.start, trip.end) == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:02:00.000Z")
    assert (work.session_id, work.title) == (None, "deploy, key, rotates, Mondays")
    assert mesh.graph.episodes("ann") == [work, trip]


OPTIONS: dict[str, tuple[dict[str, object], list[int]]] = {
    "all": ({}, [1, 1, 3]),
    "a shorter gap": ({"gap": 30}, [1, 1, 1, 1, 1]),
    "a longer gap": ({"gap": 8000}, [4, 1]),
    "a session": ({"session_id": "s1"}, [1, 3]),
    "another session": ({"session_id": "s2"}, []),
    "at most": ({"limit": 1}, [1]),
    "an episode that goes on is whole": (
        {"since": "2026-01-01T00:02:00Z", "until": "2026-01-01T01:00:00Z"},
        [3],
    ),
    "until then": ({"until": "2025-12-31"}, []),
    "since then": ({"since": "2026-01-01T02:00:00Z"}, [1, 1]),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_select_episodes_and_set_their_ends(house: House, option: str) -> None:
    mesh = talk(house)
    house.clock.advance(seconds=7200)
    mesh.add("Back from Sintra now.", {"session_id": "s1"})
    mesh.add(WORK)
    given, counts = OPTIONS[option]
    assert sorted(one.count for one in mesh.graph.episodes("ann", **given)) == sorted(counts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"gap": 0}, {"gap": -1}, {"gap": True}, {"gap": "30m"}, {"gap": float("nan")}, {"gap": 1e9},
        {"limit": 0}, {"min_similarity": 2}, {"since": "soon"}, {"until": 5},
        {"since": "2026-02-01", "until": "2026-01-01"},
    ],
)  # fmt: skip
def test_a_wrong_option_is_an_error_that_names_it(house: House, wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(reversed(wrong))):
        house.mesh().graph.episodes("ann", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="agent"):
        house.mesh().graph.episodes(" ")


@pytest.mark.req("GRAPH-22")
def test_what_is_hidden_private_or_derived_is_in_no_episode(house: House) -> None:
    mesh = talk(house)
    mesh.reflect()
    mesh.graph.store(
        "eve", "The castle of Lisbon is closed on Mondays.", metadata={"session_id": "s1"}
    )
    gone = [house.change(
        mesh.add(f"The {status} castle of Lisbon.", {"session_id": "s1"}).id, status=status,
    ).id
            for status in ("archived", "superseded", "quarantined", "disputed")]  # fmt: skip
    (trip,) = mesh.graph.episodes("ann")
    assert (trip.count, trip.speakers) == (3, ("Ana", "Bob"))
    assert [one.count for one in mesh.graph.episodes("bea")] == [3]
    assert [one.count for one in mesh.graph.episodes("eve")] == [4]
    forged = Episode(**{**_fields(trip), "memory_ids": tuple(gone)})
    with pytest.raises(NotFound):
        mesh.graph.summarize_episode("ann", forged)
    house.change(gone[0], status="active")  # the control
    assert mesh.graph.summarize_episode("ann", forged).sources == (gone[0],)


def _fields(episode: Episode) -> dict[str, object]:
    return {name: getattr(episode, name) for name in Episode.__slots__}


def test_the_memories_of_a_session_are_shown_in_it_only(house: House) -> None:
    mesh = house.mesh("ann", session_id="s1")
    mesh.add("The castle of Lisbon is a secret.", {"type": "session"})
    outside = house.mesh("ann").graph
    assert outside.episodes("ann") == []
    (one,) = outside.episodes("ann", session_id="s1")
    assert outside.summarize_episode("ann", one).content == "The castle of Lisbon is a secret."
    with pytest.raises(NotFound, match="session"):
        outside.summarize_episode("ann", one.id)
    stored = outside.summarize_episode("ann", one.id, session_id="s1", store=True)
    assert house.memory(str(stored.memory_id)).reach == "session"


# --- summaries ---


def test_a_summary_quotes_in_the_order_of_time_names_its_sources_and_stores_nothing(
    house: House,
) -> None:
    mesh = talk(house)
    before = house.memories()
    (trip,) = mesh.graph.episodes("ann")
    summary = mesh.graph.summarize_episode("ann", trip)
    assert summary == mesh.graph.summarize_episode("ann", trip.id)
    assert [(one.text, one.sources) for one in summary.statements] == [
        (f"Ana: {TRIP[0]}", trip.memory_ids[:1]), (f"Bob: {TRIP[1]}", trip.memory_ids[1:2]),
    ]  # fmt: skip
    assert (summary.memory_id, summary.method, summary.sources) == (
        None,
        "extractive",
        trip.memory_ids[:2],
    )
    assert house.memories() == before


@pytest.mark.req("GRAPH-49")
def test_a_stored_summary_is_a_digest_that_replaces_the_last_and_follows_its_sources(
    house: House,
) -> None:
    mesh = talk(house)
    (trip,) = mesh.graph.episodes("ann")
    first = mesh.graph.summarize_episode("ann", trip, store=True)
    # It says the same.
    assert mesh.graph.summarize_episode("ann", trip.id, store=True).memory_id == first.memory_id
    digest = mesh.get(str(first.memory_id))
    assert (digest.category, digest.metadata["episode"], digest.sources) == (
        "digest",
        trip.id,
        list(trip.memory_ids[:2]),
    )
    mesh.add(
        [{"role": "user", "content": "The palace of Sintra opens at ten."}], {"session_id": "s1"}
    )
    second = mesh.graph.summarize_episode("ann", trip.id, store=True)
    assert mesh.get(str(first.memory_id)).superseded_by == second.memory_id
    assert "palace of Sintra" in mesh.get(str(second.memory_id)).content
    mesh.erase(trip.memory_ids[1])
    left = mesh.get(str(second.memory_id))
    assert "train" not in left.content
    assert "castle" in left.content
    assert house.sound()
    # The digest is not a part of it.
    assert [one.count for one in mesh.graph.episodes("ann")] == [3]


def test_a_language_model_writes_the_summary_and_cites_what_it_read(house: House) -> None:
    chat = ScriptedChat(
        json.dumps(
            {"statements": [{"text": "Ana wants to see the castle of Lisbon.", "sources": [1]}]}
        )
    )
    mesh = talk(house, chat=chat)
    (trip,) = mesh.graph.episodes("ann")
    summary = mesh.graph.summarize_episode("ann", trip)
    assert (summary.content, summary.method) == ("Ana wants to see the castle of Lisbon.", "model")
    assert (summary.statements[0].sources, summary.sources) == (
        trip.memory_ids[:1],
        trip.memory_ids,
    )


def test_what_is_no_episode_is_an_error(house: House) -> None:
    graph = talk(house, ["Hm.", "Yes?"]).graph
    (one,) = graph.episodes("ann")
    assert (
        graph.summarize_episode("ann", one, store=True).note
        == "the memories have no sentence to quote"
    )
    for wrong in (None, 7, [one]):
        with pytest.raises(InvalidInput, match="episode"):
            graph.summarize_episode("ann", wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="store"):
        graph.summarize_episode("ann", one, store="yes")  # type: ignore[arg-type]
    for unknown in ("episode_1_000000", "", one.memory_ids[0]):
        with pytest.raises(NotFound, match="no episode"):
            graph.summarize_episode("ann", unknown)


def test_long_episodes_are_read_in_part(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episodes, "_MAX_MEMORIES", 20)
    mesh = house.mesh("ann")
    mesh.add_many(
        [(f"Gull number {n} sat on the harbour wall.", {"session_id": "s1"}) for n in range(21)],
        deduplicate=False,
    )
    (one,) = mesh.graph.episodes("ann")
    summary = mesh.graph.summarize_episode("ann", one)
    assert (one.count, len(summary.statements)) == (21, 5)
    assert {one.memory_ids.index(id_) % 2 for id_ in summary.sources} == {0}


def test_without_a_place_to_count_tokens_no_model_is_asked(house: House) -> None:
    with MemoryMesh("memory.db", agent_id="ann") as mesh:
        mesh.add(WORK)
    with MemoryMesh(
        "sqlite:///memory.db?mode=ro", agent_id="ann", chat=ScriptedChat("never")
    ) as reader:
        (one,) = reader.graph.episodes("ann")
        summary = reader.graph.summarize_episode("ann", one)
    assert (summary.content, summary.note) == (
        WORK,
        "sentences are quoted, because the store is read-only",
    )


def test_it_can_be_awaited(house: House) -> None:
    async def listed() -> list[Episode]:
        async with AsyncMemoryMesh(
            store=house.store, agent_id="ann", clock=house.clock.seconds
        ) as mesh:
            await mesh.add("The castle of Lisbon is old.")
            found = await mesh.graph.episodes("ann")
            assert (
                await mesh.graph.summarize_episode("ann", found[0])
            ).content == "The castle of Lisbon is old."
            return found

    assert [one.count for one in asyncio.run(listed())] == [1]


def test_the_command_lists_summarises_and_stores(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--store", "memory.db", "--agent", "ann")
    assert run(["store", WORK, "--session", "s1", *words]) == 0
    capsys.readouterr()
    assert run(["episodes", "--gap", "2h", *words, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["results"]
    assert (one["count"], one["session_id"], one["title"]) == (
        1,
        "s1",
        "deploy, key, rotates, Mondays",
    )
    assert run(["episodes", *words]) == 0
    assert "[MemoryMesh] 1 episode\nid" in (out := capsys.readouterr().out)
    assert "deploy, key, rotates, Mondays" in out
    assert run(["episodes", "--session", "s2", *words]) == 0
    assert capsys.readouterr().out == "[MemoryMesh] 0 episodes\n"
    quoted = f"- {WORK} [{one['memory_ids'][0]}]\n"
    assert run(["episodes", "--summarize", one["id"], *words]) == 0
    assert capsys.readouterr().out == f"[MemoryMesh] 1 statement, extractive\n{quoted}"
    assert run(["episodes", "--digest", one["id"], *words]) == 0
    assert "stored as mem_" in capsys.readouterr().out
    assert run(["episodes", "--summarize", "episode_1", *words]) > 0
    assert "no episode" in capsys.readouterr().err
