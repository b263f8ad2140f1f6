"""`end_session` archives the memories of type session of one agent in one session, and nothing
else."""

import pytest

from memory_mesh import Broken, InvalidInput, MemoryDisabled, NotFound, Sound

from .house import House, texts


@pytest.mark.req("MESH-010", "MESH-026")
def test_ending_a_session_archives_its_session_memories_and_keeps_all_others(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    turns = [mesh.add(f"turn {n}", {"type": "session"}).id for n in range(3)]
    for type_ in ("global", "agent", "event", "reflection"):
        mesh.add(f"a memory of type {type_}", {"type": type_})
    ended = mesh.end_session("s1")
    assert (ended.session_id, sorted(ended.archived)) == ("s1", sorted(turns))
    assert texts(mesh.get_all()) == [
        f"a memory of type {type_}" for type_ in ("agent", "event", "global", "reflection")
    ]
    assert mesh.search("turn") == []
    assert texts(mesh.search("turn", status=["archived"])) == ["turn 0", "turn 1", "turn 2"]
    archived = mesh.get(turns[0])
    assert (archived.content, archived.status) == ("turn 0", "archived")
    last = mesh.history(turns[0])[-1]
    assert (last.action, last.why, last.before["status"]) == (
        "archive",
        "the session ended",
        "active",
    )


@pytest.mark.req("MESH-026")
def test_a_reflection_that_quotes_session_memories_ends_with_the_session(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    draft = mesh.add("The draft of the letter lies in folder seven.", {"type": "session"})
    quoted = mesh.reflect("draft of the letter").memory_id
    # Equal texts are shown once.
    assert (mesh.get(quoted).status, len(mesh.search("draft folder"))) == ("active", 1)
    assert set(mesh.end_session("s1").archived) == {draft.id, quoted}
    assert mesh.search("draft folder", min_score=0) == []
    assert house.sound()


@pytest.mark.req("MESH-026")
def test_skills_of_the_session_end_with_it_and_others_stay(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    kept = [
        mesh.ingest_skill(f"name;{type_};\nintent;Deploy the site.;", {"type": type_}).id
        for type_ in ("global", "agent")
    ]
    other = house.mesh(session_id="s2").ingest_skill(
        "name;other;\nintent;Deploy the site.;", {"type": "session"}
    )
    own = mesh.ingest_skill("name;own;\nintent;Deploy the site.;", {"type": "session"})
    assert {skill.id for skill in mesh.list_skills()} == {own.id, *kept}
    assert mesh.end_session("s1").archived == (own.id,)
    assert {skill.id for skill in mesh.list_skills()} == {*kept}
    assert [
        skill.id for skill in house.mesh(session_id="s2").list_skills() if skill.id not in kept
    ] == [other.id]
    assert mesh.get_skill(own.id).status == "archived"
    assert mesh.history(own.id)[-1].why == "the session ended"
    assert house.sound()


@pytest.mark.req("MESH-026")
def test_each_archived_memory_has_a_block_and_the_chain_is_sound(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    turns = {mesh.add(f"turn {n}", {"type": "session"}).id for n in range(3)}
    mesh.end_session("s1")
    blocks = [block for block in house.blocks() if block.metadata["action"] == "archive"]
    assert {block.ref for block in blocks} == turns
    assert {block.operation_type for block in blocks} == {"retain"}
    assert house.sound()
    house.change(next(iter(turns)), status="active")  # as an intruder would
    assert [type(verdict) for verdict in house.mesh().verify()] != [Sound]
    assert any(isinstance(verdict, Broken) for verdict in house.mesh().verify())


@pytest.mark.req("MESH-026")
def test_ending_a_session_again_does_nothing_and_an_unknown_one_is_an_error(house: House) -> None:
    mesh = house.mesh()
    mesh.add("turn 0", {"type": "session", "session_id": "s1"})
    mesh.add("a note", {"session_id": "s2"})
    assert len(mesh.end_session("s1").archived) == 1
    blocks = len(house.blocks())
    assert mesh.end_session("s1").archived == ()
    assert mesh.end_session("s2").archived == ()  # only a global memory: it stays
    assert len(house.blocks()) == blocks
    with pytest.raises(
        NotFound, match="no memories of session 's9' for agent ann; check the name of the session"
    ):
        mesh.end_session("s9")
    for wrong in (None, 5, "a\0b"):
        with pytest.raises(InvalidInput):
            mesh.end_session(wrong)


@pytest.mark.req("MESH-026")
def test_sessions_of_other_agents_users_and_names_go_on(house: House) -> None:
    meshes = [house.mesh(), house.mesh("bob"), house.mesh(user_id="eve"), house.mesh()]
    for mesh, session in zip(meshes, ("s1", "s1", "s1", "s2"), strict=True):
        mesh.add("turn 0", {"type": "session", "session_id": session})
    assert len(house.mesh().end_session("s1").archived) == 1
    assert [memory.status for memory in house.memories()].count("active") == 3
    with pytest.raises(NotFound):
        house.mesh("carl").end_session("s1")


@pytest.mark.req("MESH-026")
def test_a_text_said_again_after_the_end_is_a_new_memory(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    first = mesh.add("turn 0", {"type": "session"})
    mesh.end_session("s1")
    assert mesh.add("turn 0", {"type": "session"}).id != first.id
    assert len(mesh.end_session("s1").archived) == 1


def test_a_long_session_ends_in_several_writes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.flows.write.revisions._AT_ONCE", 2)
    mesh = house.mesh(session_id="s1")
    mesh.add_many([f"turn {n}" for n in range(5)], {"type": "session"})
    assert len(mesh.end_session("s1").archived) == 5
    assert house.sound()


def test_a_memory_that_is_switched_off_has_no_sessions(house: House) -> None:
    with pytest.raises(MemoryDisabled):
        house.mesh(enable_memory=False).end_session("s1")
