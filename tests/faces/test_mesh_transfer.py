"""Export and import: the same memories in another store, nothing lost and nothing overwritten."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import InvalidInput, MemoryMesh, Sound

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=30)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["global", "agent", "reflection", "free"]),
        "tags": st.lists(TEXTS, max_size=2), "importance": st.floats(0, 1),
        "session_id": st.sampled_from(["s1", "s2"]), "project": st.just("p"),
        "event_time": st.just("2025-05-01T10:00:00Z"), "speaker": st.just("Ana"),
        "turn": st.integers(1, 9),
        "any": st.recursive(TEXTS | st.integers(-5, 5) | st.none(),
                            lambda inner: st.lists(inner, max_size=3), max_leaves=4),
    },
)  # fmt: skip
CHANGES = st.sampled_from(["update", "pin", "sight", "search", "nothing"])


@contextmanager
def opened(**options: Any) -> Iterator[MemoryMesh]:
    with MemoryMesh(**{"store": "memory://", "embedder": "hash", **options}) as mesh:
        yield mesh


def change(mesh: MemoryMesh, id_: str, what: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "update": lambda: mesh.update(id_, metadata={"any": "changed"}, why="it changed"),
        "pin": lambda: mesh.pin(id_),
        "sight": lambda: mesh.scoped(agent_id="tester").add(
            mesh.get(id_).content, {"from": "another"}
        ),  # type: ignore[union-attr]
        "search": lambda: mesh.search("note"),
        "nothing": lambda: None,
    }
    calls[what]()


@given(
    st.lists(st.tuples(TEXTS, METADATA, st.sampled_from([None, "k1", "k2"]), CHANGES), max_size=6)
)
def test_an_export_imported_into_an_empty_store_is_exported_the_same(
    items: list[tuple[str, dict[str, object], str | None, str]],
) -> None:
    with (
        opened(user_id="ana", agent_id="planner") as mesh,
        opened(user_id="ana", agent_id="planner") as other,
    ):
        for text, metadata, key, what in items:
            change(mesh, mesh.add(f"note {text}", metadata, key=key).id, what)
        lines = [*mesh.export()]
        done = other.import_memories(lines)
        assert (done.imported, done.skipped, done.failed) == (len(lines) - 1, 0, ())
        assert [*other.export()] == lines
        assert all(isinstance(verdict, Sound) for verdict in other.verify())
        again = other.import_memories(lines)
        assert (again.imported, again.skipped, again.failed) == (0, len(lines) - 1, ())
        assert [one.content for one in other.get_all()] == [one.content for one in mesh.get_all()]


def test_memories_of_the_lane_survive_an_export_with_their_entities_and_feedback() -> None:
    with opened() as mesh, opened() as other:
        old = mesh.lane.store(
            "Atlas ships on Friday",
            memory_type="decision",
            entity_slugs=["project:atlas", "person:マリア"],
        )
        new = mesh.lane.store(
            "Atlas ships on Monday", memory_type="correction", supersedes=[old.id]
        )
        for signal in ("helpful", "helpful", "helpful"):
            mesh.lane.feedback(new.id, signal)
        lines = [*mesh.export()]
        assert other.import_memories(lines).failed == ()
        assert [*other.export()] == lines
        assert (
            other.lane.find("ships", entities=["マリア"], include_superseded=True)[0].id == old.id
        )
        assert other.lane.feedback(new.id, "harmful").feedback_score == pytest.approx(1.331 / 2)
        assert all(isinstance(verdict, Sound) for verdict in other.verify())


def test_imported_memories_are_found_and_keep_their_history() -> None:
    with opened() as mesh, opened() as other:
        id_ = mesh.add("The lantern needs oil").id
        mesh.update(id_, content="The lantern needs paraffin")
        other.import_memories(mesh.export())
        assert [hit.id for hit in other.search("lantern paraffin")] == [id_]
        assert [one.before.get("content") for one in other.history(id_)] == [
            None,
            "The lantern needs oil",
        ]
        assert other.get(id_).revision == 2  # type: ignore[union-attr]
        assert other.audit_log(1, recalls=False)[0].metadata == {"action": "import"}


def test_an_export_has_only_what_its_reader_sees() -> None:
    from memory_mesh.stores.ram import RamStore

    store = RamStore()
    with opened(store=store, user_id="ana", agent_id="planner", session_id="s1") as mesh:
        mesh.add("for all", {"type": "global"})
        mesh.add("for the agent", {"type": "agent"})
        mesh.add("for the session", {"type": "session"})
        assert len([*mesh.export()]) == 4
    with opened(store=store, user_id="ana", agent_id="tester") as mesh:
        assert [json.loads(line)["content"] for line in [*mesh.export()][1:]] == ["for all"]
    with opened(store=store, user_id="bob", agent_id="planner") as mesh:
        assert len([*mesh.export()]) == 1


def test_lines_of_another_user_are_refused() -> None:
    with opened(user_id="ana") as mesh, opened(user_id="bob") as other:
        mesh.add("The lantern needs oil", {"user_id": "ana"})
        failed = other.import_memories(mesh.export()).failed
        assert [one.line for one in failed] == [2]
        assert "user 'ana'" in failed[0].reason
        assert other.get_all() == []


def test_an_imported_memory_is_found_again_by_its_text_and_by_its_key() -> None:
    with opened(agent_id="planner") as mesh, opened(agent_id="planner") as other:
        text, keyed = mesh.add("The lantern needs oil"), mesh.add("Ana likes tea", key="profile")
        other.import_memories(mesh.export())
        again = other.add("The lantern needs oil"), other.add("Ana likes coffee", key="profile")
        assert [(one.id, one.revision) for one in again] == [(text.id, 2), (keyed.id, 2)]
        assert len(other.get_all()) == 2


def test_a_key_that_another_memory_has_is_not_imported() -> None:
    with opened() as mesh, opened() as other:
        mesh.add("Ana likes tea", key="profile")
        stored = other.add("Ana likes coffee", key="profile")
        failed = other.import_memories(mesh.export()).failed
        assert "another memory has the key 'profile'" in failed[0].reason
        assert [one.id for one in other.get_all()] == [stored.id]
        first = next(other.export())
        assert [
            one.line
            for one in other.import_memories(
                [first, line(key="a"), line(id="mem_2", key="a")]
            ).failed
        ] == [3]


def test_an_import_keeps_who_stored_the_same_text() -> None:
    with opened(agent_id="planner") as mesh, opened(agent_id="planner") as other:
        id_ = mesh.add("The lantern needs oil").id
        mesh.scoped(agent_id="tester", session_id="s2").add(
            "The lantern needs oil", {"from": "tester"}
        )
        other.import_memories(mesh.export())
        assert len(other.sightings(id_)) == 2
        assert other.sightings(id_) == mesh.sightings(id_)
        assert other.delete_all(agent_id="planner").kept == (id_,)
        assert other.get(id_).agent_id == "tester"  # type: ignore[union-attr]


def test_an_imported_memory_of_a_file_is_found_again(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("The lantern needs oil")
    with opened(project="p") as mesh, opened(project="p") as other:
        for options in ({}, {"type": "session"}):
            assert mesh.scoped(session_id="s1").ingest_dir(tmp_path, **options).added == 1
        other.import_memories(mesh.scoped(session_id="s1").export())
        for options in ({}, {"type": "session"}):
            assert other.scoped(session_id="s1").ingest_dir(tmp_path, **options).unchanged == 1


def line(**values: object) -> str:
    at = "2026-01-01T00:00:00.000Z"
    return json.dumps(
        {"id": "mem_1", "content": "The lantern", "created_at": at, "updated_at": at, **values}
    )


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "it is list"),
        (line(content=None), "content is missing"),
        (line(content=""), "content is blank"),
        (line(content="\u2800"), "content is blank"),
        (line(content=5), "content must be text"),
        (line(content="\ud800"), "content must be text"),
        (line(colour="red"), "unknown field 'colour'"),
        (line(id=""), "id is ''"),
        (line(id="x" * 600), "id is"),
        (line(created_at="yesterday"), "created_at 'yesterday' is not a time"),
        (line(status="great"), "status is 'great'"),
        (line(memory_type="mine"), "memory_type is 'mine'"),
        (line(reach="world"), "reach is 'world'"),
        (line(trust=7), "trust is 7"),
        (line(importance=float("nan")), "importance must be a number"),
        (line(times_observed=-1), "times_observed is -1"),
        (line(feedback_score=3.5), "feedback_score is 3.5"),
        (line(feedback_count=-1), "feedback_count is -1"),
        (line(metadata={"__proto__": 1}), "forbidden key"),
        (line(tags="x"), "tags must be a list"),
        (line(revision=2), "unknown field 'revision'"),
        (line(history={}), "history or sightings is not a list"),
        (line(history=[7]), "7 is not an object"),
        (line(history=[{"created_at": "2026-01-01"}]), "action is missing"),
        (
            line(history=[{"action": "x", "created_at": "2026-01-01", "before": {"x": 1}}]),
            "unknown field 'x'",
        ),
        (
            line(history=[{"action": "x", "created_at": "2026-01-01", "before": {"tags": 1}}]),
            "tags must be",
        ),
        (line(sightings=[{"agent_id": "planner"}]), "created_at is missing"),
        (
            line(sightings=[{"created_at": "2026-01-01", "times_observed": -1}]),
            "times_observed is -1",
        ),
    ],
)
def test_a_broken_line_is_named_and_loses_no_other(broken: str, reason: str) -> None:
    with opened() as mesh:
        first = next(mesh.export())
        done = mesh.import_memories(
            [first, line(id="mem_2"), "\n", broken, line(id="mem_3", content="Another")]
        )
        assert (done.imported, done.skipped) == (2, 0)
        assert [one.line for one in done.failed] == [4]
        assert reason in done.failed[0].reason
        assert {one.id for one in mesh.get_all()} == {"mem_2", "mem_3"}


def test_a_memory_that_differs_from_the_stored_one_is_reported_and_not_changed() -> None:
    with opened() as mesh:
        first = next(mesh.export())
        assert (
            mesh.import_memories([first, line(), line(), line(content="Another text")])
            .failed[0]
            .line
            == 4
        )
        done = mesh.import_memories([first, line(content="Another text"), line()])
        assert (done.imported, done.skipped, [one.line for one in done.failed]) == (0, 1, [2])
        assert "stored with other values" in done.failed[0].reason
        assert [one.content for one in mesh.get_all()] == ["The lantern"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: it is not JSON"),
        ([line()], "line 1: it is not the first line of an export"),
        (
            [json.dumps({"format": "memory-mesh memories", "version": 2})],
            "version 2; expected version 1; .*newer",
        ),
    ],
)
def test_what_is_not_an_export_of_this_version_is_refused(lines: list[str], message: str) -> None:
    with opened() as mesh:
        with pytest.raises(InvalidInput, match=message):
            mesh.import_memories(lines)
        assert mesh.get_all() == []


def test_a_memory_that_another_program_changed_is_neither_exported_nor_replaced(
    tmp_path: Path,
) -> None:
    with opened(store=f"sqlite:///{tmp_path / 'memory.db'}") as mesh:
        id_ = mesh.add("The lantern needs oil").id
        lines = [*mesh.export()]
        with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
            connection.execute("UPDATE memories SET content = 'The lantern needs water'")
            connection.commit()
        assert (len(lines), len([*mesh.export()])) == (2, 1)
        assert f"{id_} is stored with other values" in mesh.import_memories(lines).failed[0].reason


def test_an_import_is_redacted_like_every_write() -> None:
    with opened() as mesh:
        done = mesh.import_memories(
            [next(mesh.export()), line(content="Ask bob@example.org", tags=["bob@example.org"])]
        )
        record = mesh.get_all()[0]
        assert (record.content, record.tags, done.redactions) == (
            "Ask [EMAIL]",
            ["[EMAIL]"],
            {"email": 1},
        )


def test_a_memory_that_was_erased_can_be_imported_again_and_the_chain_stays_sound() -> None:
    with opened() as mesh:
        id_ = mesh.add("The lantern needs oil").id
        lines = [*mesh.export()]
        mesh.delete(id_)
        assert mesh.import_memories(lines).imported == 1
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())
