"""The scope of what is derived is the narrowest of its sources, by the rule of visibility
itself."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.learning import DerivedScope, by_project
from memory_mesh.core.model import Memory, Reach, Reader, visible

AT = "2026-01-01T00:00:00.000Z"
WRITER = Reader(None, "ann", "s1")
READERS = [
    Reader(None, agent, session, project, only_project=project is not None)
    for agent, session, project in product(("ann", "bob"), (None, "s1", "s2"), (None, "p1", "p2"))
]


def memory(type_: str = "global", project: str | None = None, reach: str | None = None) -> Memory:
    more = {"agent_id": "ann", "session_id": "s1", "project": project, "reach": reach}
    return Memory(
        id=f"{type_} {project} {reach}",
        content="x",
        created_at=AT,
        updated_at=AT,
        memory_type=type_,
        **more,
    )


MEMORIES = st.builds(memory,
                     st.sampled_from(["global", "agent", "session", "reflection", "lesson"]),
                     st.sampled_from([None, "p1", "p2"]),
                     st.sampled_from([None, *Reach]))  # fmt: skip


@pytest.mark.req("MESH-025")
@given(sources=st.lists(MEMORIES, max_size=5), known=MEMORIES)
def test_a_derived_memory_is_seen_by_those_who_see_all_sources_in_every_group(
    sources: list[Memory], known: Memory
) -> None:
    groups = by_project(sources)
    assert {one.id for group in groups.values() for one in group} == {one.id for one in sources}
    for project, group in groups.items():
        scope = DerivedScope.of(group, session_id="s1")
        assert scope.project == project
        derived = replace(memory("reflection"), **scope.columns)
        for reader in READERS:
            assert visible(reader, derived.row()) == all(
                visible(reader, one.row()) for one in group
            )
        sees = {name: {at for at, reader in enumerate(READERS) if visible(reader, one.row())}
                for name, one in (("derived", derived), ("known", known))}  # fmt: skip
        assert scope.is_within(known) == (sees["derived"] <= sees["known"])
        assert scope.contains(known) == (sees["known"] <= sees["derived"])


def test_the_session_and_the_project_of_the_writer_count_where_no_source_restricts_them() -> None:
    assert DerivedScope.of([], session_id="s2", project="p1").columns == {
        "reach": None,
        "session_id": "s2",
        "project": "p1",
    }
    assert DerivedScope.of([memory("agent", "p2")], session_id="s2", project="p1").columns == {
        "reach": "agent", "session_id": "s1", "project": "p2",
    }  # fmt: skip


def test_sources_of_several_projects_have_no_common_scope() -> None:
    with pytest.raises(InvalidInput, match="2 projects"):
        DerivedScope.of([memory(project="p1"), memory(project="p2")])
