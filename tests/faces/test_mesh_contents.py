"""A content that was changed in the database, and not by memory-mesh, is not shown as if it were
the stored one."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import ContentAltered, MemoryMesh

STORED, FORGED = "The deploy key rotates on Mondays.", "The deploy key never rotates on Mondays."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def mesh(file: Path) -> Iterator[MemoryMesh]:
    with MemoryMesh(store=f"sqlite:///{file}", agent_id="ann", embedder="hash") as mesh:
        yield mesh


def edit(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def forge(file: Path, id_: str) -> None:
    edit(file, "UPDATE memories SET content = ? WHERE id = ?", FORGED, id_)


def test_get_raises_a_named_error_for_a_content_that_is_not_the_sealed_one(
    mesh: MemoryMesh, file: Path
) -> None:
    stored = mesh.add(STORED)
    assert mesh.get(stored.id) == stored
    assert stored.sealed
    forge(file, stored.id)
    for read in (mesh.get, mesh.history, lambda id_: mesh.update(id_, metadata={"a": 1}), mesh.pin):
        with pytest.raises(ContentAltered, match=stored.id) as error:
            read(stored.id)  # type: ignore[operator]
        assert FORGED not in str(error.value)
        assert "audit verify" in error.value.remedy
    mesh.delete(stored.id)  # what is wrong can be removed
    assert mesh.get(stored.id) is None


def test_search_withholds_an_altered_content_counts_it_and_warns_once(
    mesh: MemoryMesh, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored, other = mesh.add(STORED), mesh.add("The deploy key is in the vault.")
    assert {hit.id for hit in mesh.search("deploy key", min_score=0)} == {stored.id, other.id}
    forge(file, stored.id)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [hit.id for hit in mesh.search("deploy key", min_score=0, use_cache=False)] == [
                other.id
            ]
            assert [record.id for record in mesh.get_all()] == [other.id]
    assert caplog.text.count("changed outside memory-mesh") == 1
    explained = mesh.explain("deploy key", min_score=0)
    assert [answer.result.id for answer in explained.answers] == [other.id]
    assert explained.left_out["altered"] == 1


def test_an_older_copy_of_a_memory_put_back_is_not_shown(mesh: MemoryMesh, file: Path) -> None:
    stored = mesh.add(STORED)
    mesh.update(stored.id, content="The deploy key rotates on Fridays.")
    edit(file, "UPDATE memories SET content = ?, revision = 1 WHERE id = ?", STORED, stored.id)
    with pytest.raises(ContentAltered):
        mesh.get(stored.id)


@pytest.mark.parametrize("salt", [None, "", "00"])
def test_another_salt_makes_no_content_the_sealed_one(
    mesh: MemoryMesh, file: Path, salt: str | None
) -> None:
    stored = mesh.add(STORED)
    edit(file, "UPDATE memories SET content = ?, salt = ? WHERE id = ?", FORGED, salt, stored.id)
    with pytest.raises(ContentAltered):
        mesh.get(stored.id)


def test_adding_the_stored_text_again_does_not_return_the_altered_one(
    mesh: MemoryMesh, file: Path
) -> None:
    stored = mesh.add(STORED)
    forge(file, stored.id)
    again = mesh.add(STORED)
    assert (again.content, again.id != stored.id) == (STORED, True)


def test_a_forged_fingerprint_does_not_make_a_new_text_a_duplicate(
    mesh: MemoryMesh, file: Path
) -> None:
    one, two = mesh.add("one"), mesh.add("two")
    assert mesh.add("two").id == two.id
    edit(file, "UPDATE memories SET status = 'archived' WHERE id = ?", two.id)
    edit(
        file,
        "UPDATE memories SET fingerprint = (SELECT fingerprint FROM memories WHERE id = ?) "
        "WHERE id = ?",
        two.id,
        one.id,
    )
    again = mesh.add("two")
    assert (again.content, again.id not in (one.id, two.id)) == ("two", True)
    assert mesh.add(" Two ").id == again.id


def test_a_lesson_that_was_altered_is_not_shown_to_the_next_agent(
    mesh: MemoryMesh, file: Path
) -> None:
    context = {
        "situation": "a deploy", "error_pattern": "auth_fallback_bypass", "oversight": "no review",
        "fix": "review it", "preventative_rule": "Review every change of the login.",
        "severity": "high", "applicable_scope": "login", "confidence": 0.9,
    }  # fmt: skip
    lesson = mesh.distill_lesson(context)
    assert [found.memory_id for found in mesh.query_lessons()] == [lesson.memory_id]
    forge(file, lesson.memory_id)
    assert mesh.query_lessons() == []
    assert mesh.query_lessons("login review") == []


def test_memories_that_were_never_sealed_are_marked_and_read(file: Path) -> None:
    with MemoryMesh(
        store=f"sqlite:///{file}", agent_id="ann", embedder="none", enable_yamo=False
    ) as quiet:
        unsealed = quiet.add(STORED)
        assert not unsealed.sealed
        edit(file, "UPDATE memories SET content = ? WHERE id = ?", FORGED, unsealed.id)
        found = quiet.get(unsealed.id)
        assert found is not None
        assert (found.content, found.sealed) == (FORGED, False)
        assert [hit.sealed for hit in quiet.search("deploy key", min_score=0)] == [False]
