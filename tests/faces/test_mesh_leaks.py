"""Isolation: two users, two agents and two sessions, with every method; no reader reads or
changes the memories of another."""

from itertools import product

import pytest

from memory_mesh import MemoryMesh, MemoryRecord
from memory_mesh.core.errors import InvalidFilter, InvalidInput, NotFound

from .house import House, texts, whole

USERS, AGENTS, SESSIONS = ("u1", "u2", None), ("ann", "bob"), ("s1", "s2")
TYPES = ("global", "agent", "session", "lesson", "reflection")
READERS = list(product(USERS, AGENTS, (*SESSIONS, None)))
WIDE = ("global", "lesson", "reflection")

TRICKS = [
    "agent_id <> 'nobody'",
    "agent_id <> 'ann' OR agent_id = 'ann' OR agent_id IS NULL",
    "user_id <> 'x' OR user_id IS NULL",
    "user_id = 'u2'",
    "session_id IS NULL OR session_id IS NOT NULL",
    "memory_type IN ('global', 'agent', 'session', 'lesson', 'reflection')",
    "id LIKE '%'",
    "NOT (id = 'nothing')",
    "content LIKE '%secret%' OR content LIKE '%'",
    "importance IS NULL OR importance IS NOT NULL",
    "turn = 1 OR (id <> '' AND (user_id = 'u1' OR user_id = 'u2' OR user_id IS NULL))",
]


def secret(user: str | None, agent: str, session: str, memory_type: str) -> str:
    return f"secret of {user} {agent} {session} {memory_type}"


@pytest.fixture
def town(house: House) -> dict[str, MemoryRecord]:
    """One memory of each kind by every user, agent and session."""
    by_content = {}
    for user, agent, session in product(USERS, AGENTS, SESSIONS):
        writer = house.mesh(agent, user_id=user, session_id=session)
        stored = writer.add_many(
            [(secret(user, agent, session, kind), {"type": kind}) for kind in TYPES]
        )
        by_content |= {record.content: record for record in stored}
    return by_content


def own(user: str | None, agent: str, session: str | None) -> list[str]:
    """What the rulings let this reader see, said once more in plain loops."""
    seen = []
    for writer, owner, memory_type in product(AGENTS, SESSIONS, TYPES):
        if (
            memory_type in WIDE
            or (memory_type == "agent" and writer == agent)
            or (memory_type == "session" and writer == agent and owner == session)
        ):
            seen.append(secret(user, writer, owner, memory_type))
    return sorted(seen)


@pytest.mark.req("MESH-025")
def test_a_reader_gets_all_of_its_own_and_nothing_else(
    house: House, town: dict[str, MemoryRecord]
) -> None:
    for user, agent, session in READERS:
        reader = house.mesh(agent, user_id=user, session_id=session)
        seen = own(user, agent, session)
        assert texts(reader.get_all()) == seen
        assert texts(reader.search("secret", limit=100)) == seen
        assert sorted(text for text, record in town.items() if reader.get(record.id)) == seen


@pytest.mark.req("MESH-025")
def test_a_history_is_told_to_those_who_see_the_memory(
    house: House, town: dict[str, MemoryRecord]
) -> None:
    reader = house.mesh("ann", user_id="u1", session_id="s1")
    seen = own("u1", "ann", "s1")
    for text, record in town.items():
        if text in seen:
            assert reader.history(record.id)[0].ref == record.id
        else:
            with pytest.raises(NotFound):
                reader.history(record.id)


@pytest.mark.req("MESH-025")
def test_a_session_named_in_a_call_is_as_good_as_the_meshs_own(
    house: House, town: dict[str, MemoryRecord]
) -> None:
    session = "s2"
    reader = house.mesh("ann", user_id="u1")
    seen = own("u1", "ann", session)
    assert texts(reader.get_all(session_id=session)) == seen
    assert texts(reader.search("secret", limit=100, session_id=session)) == seen
    inside = town[secret("u1", "ann", session, "session")]
    assert reader.get(inside.id) is None
    assert reader.get(inside.id, session_id=session).content == inside.content
    assert reader.history(inside.id, session_id=session)
    with pytest.raises(NotFound):
        house.mesh("bob", user_id="u1").history(inside.id, session_id=session)


@pytest.mark.req("MESH-117")
def test_no_filter_widens_the_scope(house: House, town: dict[str, MemoryRecord]) -> None:
    for (user, agent, session), trick in product(
        [("u1", "ann", "s1"), ("u2", "bob", None), (None, "ann", "s2")], TRICKS
    ):
        reader = house.mesh(agent, user_id=user, session_id=session)
        seen = own(user, agent, session)
        found = texts(reader.get_all(filter=trick))
        assert set(found) <= set(seen)
        assert texts(reader.search("secret", limit=100, filter=trick)) == found
    shown = [
        texts(house.mesh("ann", user_id="u2", session_id="s1").get_all(filter=trick))
        for trick in TRICKS
    ]
    assert all(shown)  # each would show something


@pytest.mark.req("MESH-117")
def test_the_classic_trick_is_no_filter_at_all(house: House, town: dict[str, MemoryRecord]) -> None:
    reader = house.mesh("ann", user_id="u1")
    for trick in (
        "1=1 OR agent_id <> 'me'",
        "1=1",
        "'a'='a' --",
        "agent_id = 'ann' UNION SELECT * FROM memories",
    ):
        with pytest.raises(InvalidFilter):
            reader.get_all(filter=trick)
        with pytest.raises(InvalidFilter):
            reader.search("secret", filter=trick)


def touch(mesh: MemoryMesh, id_: str) -> None:
    """Everything that changes a memory, each of which must find it first."""
    for change in (
        lambda: mesh.update(id_, content="changed"),
        lambda: mesh.update(id_, metadata={"changed": True}),
        lambda: mesh.pin(id_),
        lambda: mesh.pin(id_, pinned=False),
    ):
        with pytest.raises(NotFound):
            change()


@pytest.mark.req("MESH-025")
def test_nobody_changes_what_it_does_not_see(house: House, town: dict[str, MemoryRecord]) -> None:
    reader = house.mesh("bob", user_id="u1", session_id="s1")
    seen = own("u1", "bob", "s1")
    foreign = [record for text, record in town.items() if text not in seen]
    before = {record.id: house.memory(record.id) for record in foreign}
    assert len(foreign) > 20
    for record in foreign:
        touch(reader, record.id)
    assert {id_: house.memory(id_) for id_ in before} == before
    mine = town[seen[0]]
    assert reader.pin(mine.id).pinned  # the same call on what it sees


@pytest.mark.req("MESH-025")
def test_deleting_what_is_not_the_callers_does_nothing_and_says_nothing(
    house: House, town: dict[str, MemoryRecord]
) -> None:
    ann = house.mesh("ann", user_id="u1", session_id="s1")
    blocks = len(house.blocks("ann", "u1"))
    foreign = [
        *(record for text, record in town.items() if " u2 " in text or " None " in text),
        *(
            town[secret("u1", "bob", session, kind)]
            for session in SESSIONS
            for kind in ("agent", "session")
        ),
    ]
    for record in foreign:
        assert ann.erase(record.id).memories == ()
        assert house.memory(record.id).content == record.content
    assert len(house.blocks("ann", "u1")) == blocks
    own_of_other_session = town[secret("u1", "ann", "s2", "session")]
    assert ann.erase(own_of_other_session.id).memories == (own_of_other_session.id,)


@pytest.mark.req("MESH-025")
def test_delete_all_stays_within_the_user(house: House, town: dict[str, MemoryRecord]) -> None:
    house.mesh("ann", user_id="u1").delete_all(agent_id="bob")
    left = texts(house.memories())
    assert left == sorted(text for text in town if "u1 bob" not in text)


@pytest.mark.parametrize("name", ["user_id", "agent_id"])
def test_nobody_stores_in_anothers_name(house: House, name: str) -> None:
    ann = house.mesh("ann", user_id="u1")
    with pytest.raises(InvalidInput, match=name):
        ann.add("text", {name: "somebody else"})
    assert house.memories() == []
    stored = ann.add("text", {"user_id": "u1", "agent_id": "ann"})
    with pytest.raises(InvalidInput, match=name):
        ann.update(stored.id, metadata={name: "somebody else"})


def test_memories_that_a_reader_cannot_see_do_not_change_its_scores(house: House) -> None:
    ann = house.mesh("ann")
    for text in (
        "the deploy key rotates",
        "the key is kept in the safe by the door",
        "deploy on mondays",
    ):
        ann.add(text, {"type": "agent"})
    before = [(hit.id, hit.score) for hit in ann.search("deploy key")]
    bob = house.mesh("bob")
    for n in range(20):
        bob.add(f"deploy key number {n} deploy deploy key", {"type": "agent"})
    house.mesh("ann", user_id="other").add("deploy key deploy key")
    assert [(hit.id, hit.score) for hit in ann.search("deploy key")] == before
    assert len(before) == 3
    assert len(bob.search("deploy key", limit=100)) == 20


def test_errors_do_not_tell_whether_a_foreign_memory_exists(house: House) -> None:
    stored = house.mesh("bob").add("bob's own", {"type": "agent"})
    ann = house.mesh("ann")

    def outcomes(id_: str) -> list[str]:
        answers = []
        for call in (ann.history, ann.pin, lambda id_: ann.update(id_, content="x")):
            with pytest.raises(NotFound) as refused:
                call(id_)
            answers.append(str(refused.value).replace(id_, "ID"))
        return [*answers, whole(ann.get(id_), ann.erase(id_))]

    assert outcomes(stored.id) == outcomes("mem_1_ffffff")
