"""A memory that is quarantined, superseded, disputed, archived, not valid now or foreign reaches no
reader that did not ask.

Every method of every face that returns contents is in the table of reads; a method that is not is a
failure.
"""

from collections.abc import Callable
from dataclasses import replace
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any

import pytest

from memory_mesh import MemoryContextManager, MemoryMesh
from memory_mesh.api.graph_methods import MemoryGraph
from memory_mesh.api.lane_methods import MemoryLane
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.notes_methods import MemoryNotes
from memory_mesh.api.traces_methods import MemoryTraces
from memory_mesh.core.graph import GraphResults
from memory_mesh.core.model import Kind, Link, Memory, Status
from memory_mesh.interfaces.cli.main import run
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store

from .house import House, whole

SHOWN = "shownone"
HIDDEN_STATUSES = tuple(status.value for status in Status if status is not Status.ACTIVE)
# Each kind of foreign memory: who stored it, of which type, and what narrows a lesson to the same
# readers.
FOREIGN = {
    "otheruser": ({"user_id": "eve"}, "global", None),
    "otheragent": ({"agent_id": "bob"}, "agent", "agent"),
    "othersession": ({"session_id": "s2"}, "session", "session"),
}
# Memories that are not valid now, of the clock of a house and of a computer.
NOT_VALID = {
    "isover": {"valid_until": "2020-01-01T00:00:00.000Z"},
    "iscoming": {"valid_from": "2999-01-01T00:00:00.000Z"},
}
HIDDEN = {*(f"is{status}" for status in HIDDEN_STATUSES), *FOREIGN, *NOT_VALID}
QUERY = "zeppelin landing in the harbour"
NOW = "2026-01-01T00:00:00.000Z"  # of the clock of a house


def build(house: House) -> MemoryMesh:
    """Return a mesh that sees one memory, one lesson and one skill, beside hidden ones that fit
    the same queries."""
    mesh = at(house)
    contents(mesh, SHOWN, "global")
    for status in HIDDEN_STATUSES:
        for kind, id_ in contents(mesh, f"is{status}", "global"):
            put(house, kind, id_, status=status)
    for marker, validity in NOT_VALID.items():
        for kind, id_ in contents(mesh, marker, "global"):
            put(house, kind, id_, **validity)
    for marker, (writer, type_, reach) in FOREIGN.items():
        ids = contents(at(house, **writer), marker, type_)
        put(house, *ids[1], reach=reach)
    link_all(house)
    return mesh


def at(house: House, agent_id: str = "ann", session_id: str = "s1", **scope: str) -> MemoryMesh:
    return house.mesh(agent_id, session_id=session_id, embedder=HashingEmbedder(), **scope)


def contents(mesh: MemoryMesh, marker: str, type_: str) -> list[tuple[Kind, str]]:
    """Store a memory, a lesson and a skill that are marked by a word, and return their ids."""
    memory = mesh.add(f"The zeppelin lands in the harbour, says {marker}.", {"type": type_})
    lesson = mesh.distill_lesson(
        {
            "situation": "The zeppelin missed the harbour.", "error_pattern": f"landing_{marker}",
            "oversight": "No wind check.", "fix": "A second try.",
            ("preventative_rule"): "Check the wind before a zeppelin lands in the "
                                   f"harbour: {marker}.",
            "severity": "high", "applicable_scope": "landing a zeppelin", "confidence": 0.9,
        }
    )  # fmt: skip
    skill = mesh.ingest_skill(
        f"name;land {marker};\nintent;Land a zeppelin in the harbour.;\n", {"type": type_}
    )
    return [(Kind.MEMORY, memory.id), (Kind.MEMORY, str(lesson.memory_id)), (Kind.SKILL, skill.id)]


def put(house: House, kind: Kind, id_: str, **columns: object) -> None:
    stored = Memory.of(house.store.get(kind, [id_])[id_])
    changed = replace(
        stored,
        **{name: value for name, value in columns.items() if value},
        revision=stored.revision + 1,
    )
    house.store.apply([changed.row(replaces=stored.revision)])


def link_all(house: House) -> None:
    """Link the shown memory to every other one, in both directions; a hidden one also replaces
    it, and the other way round."""
    rows = house.store.find(Kind.MEMORY)
    shown = Memory.of(
        next(
            row
            for row in rows
            if str(row.value("content")).endswith(f"{SHOWN}.") and not row.value("reach")
        )
    )
    links = []
    for row in rows:
        for ref, target in ((shown, Memory.of(row)), (Memory.of(row), shown)):
            if ref.id != target.id:
                scope: dict[str, Any] = ref.scope
                link = Link(
                    id=f"{ref.id}>{target.id}",
                    created_at=ref.created_at,
                    ref=ref.id,
                    target=target.id,
                    **scope,
                )
                links.append(link.row(ref.partition))
                if SHOWN not in str(row.value("content")):
                    change = replace(
                        link, id=f"{link.id}:updates", link_type="updates", similarity=0.95
                    )
                    links.append(change.row(ref.partition))
    house.store.apply(links)


def shown_id(mesh: MemoryMesh) -> str:
    return mesh.get_all(filter="content LIKE 'The zeppelin lands%'")[0].id


def manager(mesh: MemoryMesh) -> MemoryContextManager:
    return MemoryContextManager(mesh=mesh)


def explained(results: GraphResults) -> list[object]:
    return [list(results), results.meta]


# Every read, by the method that it calls.
READS: dict[str, Callable[[MemoryMesh], object]] = {
    "mesh.search recall": lambda mesh: mesh.search(QUERY, limit=50),
    "mesh.search precise": lambda mesh: mesh.search(QUERY, limit=50, mode="precise"),
    "mesh.search rrf": lambda mesh: mesh.search(QUERY, limit=50, ranker="rrf", min_score=0.0),
    "mesh.search cached": lambda mesh: [mesh.search(QUERY, limit=50) for _ in range(2)],
    "mesh.search filtered": lambda mesh: mesh.search(
        QUERY, limit=50, filter="content LIKE '%zeppelin%'",
    ),
    "mesh.search as_of": lambda mesh: mesh.search(QUERY, limit=50, as_of=NOW),
    "mesh.search known_at": lambda mesh: mesh.search(QUERY, limit=50, known_at=NOW),
    "mesh.explain": lambda mesh: mesh.explain(QUERY, limit=50, min_score=0.0),
    "mesh.get_all": lambda mesh: mesh.get_all(),
    "mesh.get_all filtered": lambda mesh: mesh.get_all(filter="content LIKE '%zeppelin%'"),
    "mesh.query_lessons all": lambda mesh: mesh.query_lessons(limit=50),
    "mesh.query_lessons": lambda mesh: mesh.query_lessons(QUERY, limit=50, mode="recall"),
    "mesh.get_memories_by_pattern": lambda mesh: [
        mesh.get_memories_by_pattern(lesson.pattern_id) for lesson in mesh.query_lessons(limit=50)
    ] + [mesh.get_memories_by_pattern(f"landing_{marker}") for marker in HIDDEN],
    "mesh.reflect": lambda mesh: mesh.reflect(lookback=50),
    "mesh.reflect topic": lambda mesh: mesh.reflect(QUERY, lookback=50),
    "mesh.synthesize": lambda mesh: mesh.synthesize(),
    "mesh.synthesize topic": lambda mesh: mesh.synthesize(QUERY, include_reflections=True),
    "mesh.search_skills": lambda mesh: mesh.search_skills(QUERY, 50),
    "mesh.list_skills": lambda mesh: mesh.list_skills(),
    "mesh.format_results": lambda mesh: mesh.format_results(mesh.search(QUERY, limit=50)),
    "mesh.format_for_model": lambda mesh: mesh.format_for_model(
        [hit.copied(relevant=True) for hit in mesh.search(QUERY, limit=50)]
    ),
    "mesh.evaluate": lambda mesh: [
        (one.question.text, [mesh.get(id_) for id_ in one.question.expected])
        for one in mesh.evaluate().answered
    ],
    "lane.find": lambda mesh: mesh.lane.find(QUERY, limit=50, min_score=0.0),
    "lane.find as_of": lambda mesh: mesh.lane.find(QUERY, limit=50, min_score=0.0, as_of=NOW),
    "lane.session_context": lambda mesh: mesh.lane.session_context(max_tokens=9000),
    "graph.search": lambda mesh: mesh.graph.search("ann", QUERY, limit=50),
    "graph.search by relevance": lambda mesh: mesh.graph.search(
        "ann", QUERY, limit=50, rerank=False,
    ),
    "graph.search explained": lambda mesh: explained(
        mesh.graph.search("ann", QUERY, limit=50, explain=True)
    ),
    "graph.search as_of": lambda mesh: mesh.graph.search("ann", QUERY, limit=50, as_of=NOW),
    "graph.search known_at": lambda mesh: mesh.graph.search("ann", QUERY, limit=50, known_at=NOW),
    "graph.search_many": lambda mesh: mesh.graph.search_many("ann", [QUERY, "zeppelin"], limit=50),
    "mesh.changes": lambda mesh: [SHOWN, mesh.changes()],
    "mesh.changes about": lambda mesh: [SHOWN, mesh.changes(shown_id(mesh)), mesh.changes(QUERY)],
    "graph.links": lambda mesh: [SHOWN, mesh.graph.links(shown_id(mesh))],
    "graph.traverse": lambda mesh: [SHOWN, mesh.graph.traverse(shown_id(mesh), 5)],
    "graph.clusters": lambda mesh: mesh.graph.clusters(),
    "graph.episodes": lambda mesh: [
        mesh.get(id_) for one in mesh.graph.episodes("ann") for id_ in one.memory_ids
    ],
    "graph.episodes titles": lambda mesh: mesh.graph.episodes("ann", gap=9e6, min_similarity=0.9),
    "graph.summarize_episode": lambda mesh: [
        mesh.graph.summarize_episode("ann", one, store=store)
        for store in (False, True)
        for one in mesh.graph.episodes("ann")
    ],
    "graph.context": lambda mesh: mesh.graph.context("ann", QUERY, min_score=0.0),
    "graph.context explained": lambda mesh: list(
        mesh.graph.context("ann", QUERY, packing="composite", explain=True).decisions
    ),
    "graph.context as_of": lambda mesh: mesh.graph.context(
        "ann", QUERY, as_of=NOW, known_at=NOW, max_tokens=5000,
    ),
    "manager.recall_memories": lambda mesh: manager(mesh).recall_memories(
        QUERY, limit=50, include_lessons=True,
    ),
    "manager.format_memories_for_prompt": lambda mesh: manager(mesh).format_memories_for_prompt(
        manager(mesh).recall_memories(QUERY, limit=50)
    ),
}  # fmt: skip
# What may return hidden memories, each with the reason; the tests of scope are elsewhere.
ASKED_FOR = {
    "mesh.get": "by its id", "mesh.get_skill": "by its id", "mesh.history": "by its id",
    "mesh.sightings": "by its id", "mesh.export": "exports every status, of what the reader sees",
    "mesh.users": "counts every status",
    "mesh.audit_log": "blocks of every status", "mesh.export_store": "the whole store",
    "mesh.audit_export": "likewise", "mesh.lesson_to_skill": "by its id",
    "graph.list_quarantined": "is about them", "graph.conflicts": "is about them, and returns ids",
    "graph.explain_memory": "by its id", "graph.explain_supersession": "by its id",
    "lane.junk": "see below",
    "lane.judge": "reads only what it is given",
    "notes.load": "reads files", "notes.extract": "reads what is given",
    "notes.lint": "reads files", "notes.format_for_prompt": "what the caller gives",
    "traces.get_all": "reads files", "traces.get": "by its id", "traces.experiences": "reads files",
    "traces.similar": "finds archived traces by default, see test_traces.py",
    "traces.plan_context": "likewise", "notes.match": "see test_notes.py",
    "notes.find_relevant": "likewise", "notes.build_agent_prompt": "likewise",
}  # fmt: skip
# What writes or counts, and returns only what the caller gave or named.
WRITES = {
    "mesh": (
        "add add_many ingest ingest_dir extract update pin delete erase delete_all end_session "
        "forget init close scoped stats reembed check_models clear_cache get_cache_stats compact "
        "import_memories import_file backup restore verify audit_heads audit_anchor audit_rekey "
        "hooks_status retry_hooks "
        "distill_lesson distill insert_heritage heartbeat heartbeat_log ingest_skill sync_skills "
        "update_skill_reliability prune_skills confirm_change undo_change"
    ),
    "graph": (
        "link unlink "
        "init close scoped store store_many evolve extract ingest reinforce dispute "
        "review_quarantine resolve_conflict undo_review decay archive unarchive auto_compress "
        "consolidate"
    ),
    "lane": "init close scoped store feedback on_session_event",
    "notes": "init close scoped append save sync feedback extract_and_save import_files refresh",
    "traces": (
        "init close scoped record run log_experience consolidate retention archive keep_decisions"
    ),
    "manager": "init close scoped initialize capture_interaction health_check dispose",
}


def test_every_method_of_every_face_is_a_read_of_this_test_or_excused() -> None:
    known = {name.split()[0] for name in READS} | ASKED_FOR.keys()
    known |= {f"{face}.{name}" for face, names in WRITES.items() for name in names.split()}
    faces = {
        "mesh": Mesh,
        "graph": MemoryGraph,
        "lane": MemoryLane,
        "notes": MemoryNotes,
        "traces": MemoryTraces,
        "manager": MemoryContextManager,
    }
    every = {
        f"{face}.{name}"
        for face, cls in faces.items()
        for name, _ in getmembers(cls, isfunction)
        if name[0] != "_"
    }
    assert every == known


@pytest.mark.req("GRAPH-22", "LANE-27")
@pytest.mark.parametrize("name", READS)
def test_no_read_returns_a_hidden_memory(name: str) -> None:
    mesh = build(House(open_store("memory://")))
    found = whole(READS[name](mesh))
    assert SHOWN in found
    assert [marker for marker in HIDDEN if marker in found] == []


@pytest.mark.parametrize("status", HIDDEN_STATUSES)
def test_a_status_that_is_asked_for_is_returned_and_no_other(status: str) -> None:
    """The control: the hidden memories are there, and would be found."""
    house = House(open_store("memory://"))
    mesh = build(house)
    by_graph = mesh.graph.search("ann", QUERY, limit=50, status_filter=[status])
    for found in (
        mesh.search(QUERY, limit=50, status=(status,)),
        mesh.get_all(status=(status,)),
        by_graph,
    ):
        assert [marker for marker in (SHOWN, *sorted(HIDDEN)) if marker in whole(found)] == [
            f"is{status}"
        ]
    ids = {memory.id for memory in mesh.graph.list_quarantined()}
    assert ids == {memory.id for memory in house.memories() if memory.status == "quarantined"}


@pytest.mark.req("GRAPH-22")
@pytest.mark.parametrize("explain", [False, True])
def test_include_disputed_shows_what_is_disputed_and_nothing_else_that_is_hidden(
    explain: bool,
) -> None:
    mesh = build(House(open_store("memory://")))

    def shown(**options: bool) -> list[str]:
        found = whole(mesh.graph.search("ann", QUERY, limit=50, explain=explain, **options))
        return [marker for marker in (SHOWN, *sorted(HIDDEN)) if marker in found]

    assert shown() == [SHOWN]
    assert shown(include_disputed=True) == [SHOWN, "isdisputed"]
    (many,) = mesh.graph.search_many("ann", [QUERY], limit=50, include_disputed=True)
    assert "isdisputed" in whole(many)


@pytest.mark.parametrize("marker", FOREIGN)
def test_a_foreign_memory_is_returned_to_its_own_reader(marker: str) -> None:
    """The control for the other scopes."""
    house = House(open_store("memory://"))
    build(house)
    found = whole(at(house, **FOREIGN[marker][0]).search(QUERY, limit=50))
    assert marker in found


def test_an_explanation_names_nothing_that_the_owner_cannot_see() -> None:
    house = House(open_store("memory://"))
    mesh = build(house)
    found = mesh.graph.explain_memory(shown_id(mesh))
    # Of every status: it was asked for by its id.
    assert len(found.links) > 2 * len(HIDDEN_STATUSES)
    assert [marker for marker in FOREIGN if marker in whole(found)] == []
    assert "isquarantined" in whole(found)


COMMANDS = {
    "search": ("search", QUERY, "--limit", "50", "--mode", "recall"),
    "search --explain": ("search", QUERY, "--limit", "50", "--explain", "--min-score", "0"),
    "search --for-model": ("search", QUERY, "--limit", "50", "--for-model"),
    "context": ("context", QUERY),
    "list": ("list", "--limit", "100"),
    "lessons": ("lessons",),
    "list-skills": ("list-skills",),
    "reflect": ("reflect", "--lookback", "50"),
    "episodes": ("episodes",),
}


def test_no_command_prints_a_hidden_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    store = open_store(url)
    build(House(store))
    store.close()
    target = ("--store", url, "--agent", "ann", "--session", "s1")
    for name, words in COMMANDS.items():
        for form in ((), ("--json",)):
            assert run([*words, *target, *form]) == 0
            found = capsys.readouterr().out
            assert SHOWN in found, name
            assert [marker for marker in HIDDEN if marker in found] == [], name
    assert run(["list", "--status", "archived", *target]) == 0
    assert "isarchived" in capsys.readouterr().out


def test_junk_of_other_users_agents_and_sessions_is_not_shown(house: House) -> None:
    for marker, (writer, type_, _) in {SHOWN: ({}, "global", None), **FOREIGN}.items():
        at(house, **writer).add(f"Thanks a lot, {marker}!", {"type": type_})
    assert [found.content for found in at(house).lane.junk()] == [f"Thanks a lot, {SHOWN}!"]
