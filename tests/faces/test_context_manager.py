"""`MemoryContextManager`: the methods of RFC-0011 §4.3, and what it stores, recalls and shows."""

import asyncio
from inspect import getmembers, isfunction, signature
from itertools import product

import pytest

from memory_mesh import (
    AsyncMemoryContextManager,
    AsyncMemoryMesh,
    InvalidInput,
    MemoryContextManager,
    MemoryMesh,
    SettingsError,
)
from memory_mesh.core.model import Kind
from memory_mesh.core.search import ranker
from memory_mesh.models import HashingEmbedder
from memory_mesh.testing.fakes import DownEmbedder

from .house import House, texts

LESSON = {
    "situation": "The deploy failed.", "error_pattern": "token_expired",
    "oversight": "Nobody looked at the expiry.", "fix": "A new token.",
    "preventative_rule": "Refresh the deploy token before a deploy.", "severity": "high",
    "applicable_scope": "deploys", "confidence": 0.9,
}  # fmt: skip


class Narrow(HashingEmbedder):
    """An embedder that reads few words of a text."""

    window = 60


@pytest.fixture
def manager(house: House) -> MemoryContextManager:
    return MemoryContextManager(mesh=house.mesh(embedder=HashingEmbedder()))


@pytest.mark.req("MESH-100")
def test_it_has_the_methods_of_the_document() -> None:
    methods = dict(getmembers(MemoryContextManager, isfunction))
    assert methods.keys() >= {
        "initialize", "capture_interaction", "recall_memories", "format_memories_for_prompt",
        "health_check", "dispose",
    }  # fmt: skip
    assert next(iter(signature(MemoryContextManager).parameters)) == "config"
    assert list(signature(methods["capture_interaction"]).parameters)[1:] == [
        "prompt",
        "response",
        "context",
    ]


@pytest.mark.req("MESH-100")
def test_it_makes_a_mesh_of_its_own_or_shares_one(house: House) -> None:
    with MemoryContextManager({"store": "memory.db", "agent_id": "ann", "embedder": "none"}) as own:
        own.initialize()
        stored = own.capture_interaction("Where is the key?", "In the vault.")
        own.dispose()
        assert own.recall_memories("vault")[0].id == stored.id  # a later call opens it again
    mesh = house.mesh(embedder=HashingEmbedder())
    shared = MemoryContextManager(mesh=mesh)
    shared.capture_interaction("Where is the key?", "In the vault.")
    shared.dispose()
    assert texts(mesh.get_all()) == ["Prompt: Where is the key?\nResponse: In the vault."]


def test_config_and_mesh_are_checked(house: House) -> None:
    with pytest.raises(SettingsError, match="both config and mesh"):
        MemoryContextManager({"agent_id": "ann"}, mesh=house.mesh())
    with pytest.raises(SettingsError, match="agent_idd"):
        MemoryContextManager({"agent_idd": "ann"})
    with pytest.raises(InvalidInput, match="mesh=…"):
        MemoryContextManager(house.mesh())
    with pytest.raises(InvalidInput, match="a MemoryMesh"):
        MemoryContextManager(mesh="memory.db")


# --- capturing ---


@pytest.mark.req("MESH-101")
@pytest.mark.parametrize("embedder", ["hash", "none"])
def test_the_same_interaction_is_stored_once_and_an_unrelated_one_too(
    house: House, embedder: str
) -> None:
    manager = MemoryContextManager(mesh=house.mesh(embedder=embedder))
    first = manager.capture_interaction("Which port has the database?", "Port 5432.")
    assert first is not None
    assert first.content == "Prompt: Which port has the database?\nResponse: Port 5432."
    assert manager.capture_interaction("Which port has the database?", "Port 5432.") is None
    assert manager.capture_interaction("which port has database", "Port 5432!") is None
    assert manager.capture_interaction("Which port has the database?", "Port 5433.") is not None
    assert manager.capture_interaction("Which port has the database?", "Not port 5432.") is not None
    assert manager.capture_interaction("Who likes tea?", "Ana does.") is not None
    assert len(house.memories()) == 4
    assert house.memory(first.id).times_observed == 3


@pytest.mark.req("MESH-101")
def test_an_interaction_without_keywords_is_found_again_among_many(house: House) -> None:
    manager = MemoryContextManager(mesh=house.mesh(embedder="none"))
    given = [
        ("am I", f"{first} {second}")
        for first, second in product(("we", "you", "she", "they", "all"), repeat=2)
    ]
    assert all(manager.capture_interaction(*each) for each in given)
    assert [manager.capture_interaction(*given[n]) for n in (0, 12, 24)] == [None] * 3


def test_a_duplicate_from_another_agent_is_kept_as_its_sighting(house: House) -> None:
    ann, bob = (
        MemoryContextManager(mesh=house.mesh(agent, embedder=HashingEmbedder()))
        for agent in ("ann", "bob")
    )
    first = ann.capture_interaction("Where is the key?", "In the vault.")
    assert bob.capture_interaction("where is the key", "In the vault!") is None
    mesh = house.mesh("ann", embedder=HashingEmbedder())
    assert {one.agent_id for one in mesh.sightings(first.id)} == {"ann", "bob"}
    assert mesh.delete_all(agent_id="ann").kept == (first.id,)
    assert house.sound()


def test_other_skills_projects_sessions_and_users_have_interactions_of_their_own(
    house: House,
) -> None:
    given = ("Where is the key?", "In the vault.")
    manager = MemoryContextManager(mesh=house.mesh(embedder=HashingEmbedder()))
    contexts = [
        None,
        {"skill_name": "keys"},
        {"project": "p1"},
        *({"type": "session", "session_id": s} for s in ("s1", "s2")),
    ]
    for context in contexts:
        assert manager.capture_interaction(*given, context) is not None, context
        assert manager.capture_interaction(*given, context) is None, context
    assert manager.scoped(user_id="eve").capture_interaction(*given) is not None


@pytest.mark.req("MESH-101")
def test_of_two_writers_with_the_same_interaction_one_stores_it(house: House) -> None:
    given, late = ("Where is the key?", "In the vault."), []
    other = MemoryContextManager(mesh=house.mesh("bob", embedder=HashingEmbedder()))
    other.capture_interaction("Who likes tea?", "Ana does.")

    def step(name: str) -> None:
        # The first has decided to store it, and has not written yet.
        if name == "flow.decided" and not late:
            late.append(other.capture_interaction("where is the key", "In the vault!"))

    first = MemoryContextManager(
        mesh=house.mesh(embedder=HashingEmbedder(), step=step)
    ).capture_interaction(*given)
    assert first is None
    assert len(house.memories()) == 2
    assert house.memory(late[0].id).times_observed == 2


def test_without_deduplication_every_interaction_is_stored(house: House) -> None:
    manager = MemoryContextManager(mesh=house.mesh(embedder=HashingEmbedder(), deduplicate=False))
    assert [manager.capture_interaction("a question", "an answer") is None for _ in range(2)] == [
        False,
        False,
    ]


@pytest.mark.req("MESH-101")
def test_the_lowest_cosine_of_duplicates_is_a_setting(house: House) -> None:
    manager = MemoryContextManager(
        mesh=house.mesh(embedder=HashingEmbedder(), duplicate_similarity=1.0)
    )
    manager.capture_interaction(
        "Where is the key?", "Please look in the vault, it is behind the door of the old office."
    )
    assert manager.capture_interaction(
        "Where is the key?", "Look in the vault, it is behind the door of the old office."
    )


@pytest.mark.parametrize(("prompt", "response"), [("", "x"), ("x", " \n"), (None, "x"), ("x", 5)])
def test_a_blank_prompt_or_response_is_refused(
    manager: MemoryContextManager, prompt: object, response: object
) -> None:
    with pytest.raises(InvalidInput, match=r"the (prompt|response) is .*; expected some text"):
        manager.capture_interaction(prompt, response)


def test_the_context_is_checked_like_metadata(manager: MemoryContextManager) -> None:
    with pytest.raises(InvalidInput, match="metadata is str"):
        manager.capture_interaction("a", "b", "session s1")
    assert manager.capture_interaction("a", "b", {"tags": ["ops"], "type": "event"}).tags == ["ops"]


# --- recalling ---


@pytest.fixture
def filled(house: House) -> MemoryContextManager:
    mesh = house.mesh(embedder="none")
    mesh.add("The deploy runs on Monday.", {"skill_name": "ops"})
    mesh.add("The deploy needs a token.", {"type": "agent"})
    for n in range(6):
        mesh.add(f"A deploy of house {n} went well.", {"session_id": f"s{n}"})
    mesh.distill_lesson(LESSON)
    mesh.distill_lesson(
        {
            **LESSON,
            "error_pattern": "other",
            "preventative_rule": "Maybe deploy twice.",
            "confidence": 0.3,
        }
    )
    return MemoryContextManager(mesh=mesh)


@pytest.mark.req("MESH-102")
def test_recall_has_the_documents_defaults_and_filters(filled: MemoryContextManager) -> None:
    options = signature(MemoryContextManager.recall_memories).parameters
    assert {name: one.default for name, one in options.items() if one.kind is one.KEYWORD_ONLY} == {
        "limit": 5, "use_cache": True, "memory_type": None, "skill_name": None,
        "include_lessons": False,
    }  # fmt: skip
    assert len(filled.recall_memories("deploy")) == 5
    assert len(filled.recall_memories("deploy", limit=7)) == 7
    assert texts(filled.recall_memories("deploy", memory_type="agent")) == [
        "The deploy needs a token."
    ]
    assert texts(filled.recall_memories("deploy", skill_name="ops")) == [
        "The deploy runs on Monday."
    ]
    assert filled.recall_memories("deploy", skill_name="none of them") == []


@pytest.mark.req("MESH-103")
def test_lessons_are_recalled_only_if_asked_for_and_only_with_enough_confidence(
    filled: MemoryContextManager,
) -> None:
    assert [one.memory_type for one in filled.recall_memories("deploy token", limit=20)].count(
        "lesson"
    ) == 0
    found = filled.recall_memories("the deploy token", limit=20, include_lessons=True)
    assert [one.metadata["error_pattern"] for one in found if one.memory_type == "lesson"] == [
        "token_expired"
    ]
    assert {one.memory_type for one in found} > {"lesson"}
    found = filled.recall_memories(
        "deploy token", limit=20, memory_type="agent", include_lessons=True
    )
    assert {one.memory_type for one in found} == {"agent", "lesson"}
    found = filled.recall_memories("deploy token", memory_type="lesson", include_lessons=True)
    assert {one.memory_type for one in found} == {"lesson"}


@pytest.mark.req("MESH-103")
def test_a_memory_tagged_as_a_lesson_is_one(house: House) -> None:
    mesh = house.mesh(embedder="none")
    mesh.add("Check the deploy twice.", {"tags": ["#lesson_learned"]})
    manager = MemoryContextManager(mesh=mesh)
    assert manager.recall_memories("deploy") == []
    assert texts(manager.recall_memories("deploy", include_lessons=True)) == [
        "Check the deploy twice."
    ]


def test_a_recall_that_could_find_nothing_says_so(filled: MemoryContextManager) -> None:
    with pytest.raises(InvalidInput, match="include_lessons=True"):
        filled.recall_memories("deploy", memory_type="lesson")
    with pytest.raises(InvalidInput, match="expected one of global, session"):
        filled.recall_memories("deploy", memory_type="event")
    for skill in ("", 5, ["ops"], {"ops": 1}):
        with pytest.raises(InvalidInput, match=r"skill_name is .*; expected a non-empty text"):
            filled.recall_memories("deploy", skill_name=skill)
    with pytest.raises(InvalidInput, match="include_lessons is 1; expected True or False"):
        filled.recall_memories("deploy", include_lessons=1)


@pytest.mark.req("MESH-009", "MESH-025")
def test_hidden_and_foreign_memories_are_not_recalled_nor_taken_for_known(house: House) -> None:
    manager = MemoryContextManager(mesh=house.mesh(embedder=HashingEmbedder()))
    given = ("Where is the key?", "In the vault.")
    for status in ("archived", "quarantined", "superseded", "disputed"):
        stored = manager.capture_interaction(*given)
        assert texts(manager.recall_memories("key vault")) == [stored.content]
        house.change(stored.id, status=status)
        assert manager.recall_memories("key vault") == []
    eve = manager.scoped(user_id="eve")
    assert eve.recall_memories("key vault") == []
    assert eve.capture_interaction(*given) is not None
    assert manager.recall_memories("key vault") == []


def test_recall_is_precise(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = house.mesh(embedder="none")
    mesh.add("The deploy key rotates on Mondays.")
    manager, query = MemoryContextManager(mesh=mesh), "when does the deploy key rotate?"
    assert len(manager.recall_memories(query, use_cache=False)) == 1
    # Nothing is relevant enough for precise.
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 11.0, "recall": 0.0})
    assert len(mesh.search(query, mode="recall", use_cache=False)) == 1
    assert manager.recall_memories(query, use_cache=False) == []


# --- showing ---


def unindented(text: str) -> str:
    """Return a prompt with the lines of its memories as they were stored."""
    return text.replace("\n  ", "\n")


@pytest.mark.req("MESH-104")
def test_memories_stand_in_the_prompt_in_their_order_and_nothing_without_memories(
    manager: MemoryContextManager,
) -> None:
    assert manager.format_memories_for_prompt([]) == ""
    stored = [
        manager.capture_interaction(f"Question {name}?", "Yes.") for name in ("one", "two", "three")
    ]
    found = manager.recall_memories("question", limit=2)
    for memories in (stored, stored[::-1], found):
        text = unindented(manager.format_memories_for_prompt(memories))
        places = [text.index(memory.content) for memory in memories]
        assert places == sorted(places)
        assert len(set(places)) == len(memories)


@pytest.mark.req("MESH-104")
def test_a_long_memory_is_shown_whole_or_within_the_budget_by_its_passage(house: House) -> None:
    mesh = house.mesh(embedder=Narrow())
    long = "\n\n".join(
        f"Paragraph {n} is about the number {n} and nothing else at all." for n in range(40)
    )
    mesh.add(long)
    manager = MemoryContextManager(mesh=mesh)
    found = manager.recall_memories("paragraph number 17")
    assert found[0].passage is not None
    assert long in unindented(manager.format_memories_for_prompt(found))
    short = manager.format_memories_for_prompt(found, max_tokens=250)
    assert "Paragraph 17" in short
    assert "Paragraph 39" not in short


def test_only_memories_can_be_shown(manager: MemoryContextManager) -> None:
    for wrong in ("text", ["text"], None):
        with pytest.raises(InvalidInput, match="memor"):
            manager.format_memories_for_prompt(wrong)


# --- health ---


@pytest.mark.req("MESH-100")
def test_health_is_told_and_never_raised(house: House) -> None:
    manager = MemoryContextManager(mesh=house.mesh(embedder=HashingEmbedder()))
    manager.capture_interaction("a question", "an answer")
    healthy = manager.health_check()
    assert (healthy.ok, healthy.status, healthy.total_memories, healthy.problems) == (
        True,
        "healthy",
        1,
        (),
    )
    assert healthy.embedder == HashingEmbedder().model
    missing = MemoryContextManager({"store": "missing.db", "must_exist": True}).health_check()
    assert (missing.ok, missing.status) == (False, "unhealthy")
    assert "missing.db" in missing.problems[0]
    disabled = MemoryContextManager(mesh=house.mesh(enable_memory=False)).health_check()
    assert disabled.problems[0].startswith("memory is disabled")


@pytest.mark.req("MESH-100")
def test_a_failing_embedder_and_foreign_vectors_degrade_health(house: House) -> None:
    broken = MemoryContextManager(mesh=house.mesh(embedder=DownEmbedder("hashing/256")))
    assert broken.capture_interaction("a question", "an answer").pending
    ill = broken.health_check()
    assert (ill.status, ill.pending, len(ill.problems)) == ("degraded", 1, 2)
    assert ill.problems[0].startswith("1 memories have no vector; ")
    assert ill.problems[1].startswith("the embedder fails: ")
    house.mesh(embedder=HashingEmbedder()).add("with a vector")
    other = HashingEmbedder(64)
    assert other.model != HashingEmbedder().model
    foreign = MemoryContextManager(mesh=house.mesh(embedder=other)).health_check()
    assert foreign.problems[1].startswith(
        "the store has vectors of hashing/256, and the embedder is hashing/64; run"
    )


def test_while_the_embedder_is_down_duplicates_are_found_by_words(house: House) -> None:
    manager = MemoryContextManager(mesh=house.mesh(embedder=DownEmbedder("hashing/256")))
    assert manager.capture_interaction("Where is the key?", "In the vault.")
    assert manager.capture_interaction("Where is the key?", "in vault") is None
    assert manager.capture_interaction("Where is the key?", "In the drawer.")
    assert house.store.count(Kind.MEMORY) == 2


# --- async ---


@pytest.mark.req("MESH-022", "MESH-100")
def test_the_asynchronous_manager_does_the_same(house: House) -> None:
    async def loop() -> None:
        async with AsyncMemoryMesh(
            store=house.store, agent_id="ann", embedder=HashingEmbedder()
        ) as mesh:
            manager = AsyncMemoryContextManager(mesh=mesh)
            stored = await manager.capture_interaction("Where is the key?", "In the vault.")
            assert await manager.capture_interaction("where is the key", "in the vault") is None
            found = await manager.recall_memories("key")
            assert [one.id for one in found] == [stored.id]
            text = await manager.format_memories_for_prompt(found)
            assert stored.content in unindented(text)
            assert (await manager.health_check()).ok
            assert await manager.scoped(user_id="eve").recall_memories("key") == []
            await manager.dispose()

    asyncio.run(loop())
    assert isinstance(house.mesh(), MemoryMesh)
