"""Pages of `get_all`: each memory once, newest first, whatever is stored, changed or erased
between two pages."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_mesh import InvalidInput, MemoryMesh, MemoryRecord, NotFound
from memory_mesh.testing.fakes import FakeClock

SCOPES = ({"type": "global"}, {"type": "agent"}, {"type": "session", "session_id": "s1"})


def pages(mesh: MemoryMesh, limit: int, **options: object) -> list[list[MemoryRecord]]:
    found: list[list[MemoryRecord]] = []
    while page := mesh.get_all(limit, after=found[-1][-1].id if found else None, **options):
        found.append(page)
    return found


def ids(found: list[list[MemoryRecord]]) -> list[str]:
    return [memory.id for page in found for memory in page]


def fill(house, mesh: MemoryMesh, count: int) -> None:
    """Memories of several partitions, many of them of the same millisecond."""
    for number in range(count):
        mesh.add(f"note {number}", {**SCOPES[number % 3], "importance": number % 4 / 4})
        if number % 5 == 4:
            house.clock.advance(ms=1)


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 31])
def test_pages_hold_every_memory_once_in_the_order_of_the_whole_list(house, limit):
    mesh = house.mesh(session_id="s1")
    fill(house, mesh, 30)
    whole = [memory.id for memory in mesh.get_all()]
    assert len(whole) == 30
    found = pages(mesh, limit)
    assert ids(found) == whole
    assert [len(page) for page in found[:-1]] == [limit] * (len(found) - 1)


def test_a_filter_and_statuses_apply_to_every_page(house):
    mesh = house.mesh(session_id="s1")
    fill(house, mesh, 30)
    hidden = mesh.get_all()[3]
    house.change(hidden.id, status="archived")
    options = {"filter": "importance >= 0.5", "status": ("active", "archived")}
    whole = [memory.id for memory in mesh.get_all(**options)]
    assert 10 < len(whole) < 20
    assert ids(pages(mesh, 4, **options)) == whole
    assert hidden.id not in ids(pages(mesh, 4))
    # The cursor itself need not match the filter, nor be active.
    assert [memory.id for memory in mesh.get_all(2, after=hidden.id)] == [
        memory.id for memory in mesh.get_all()[3:5]
    ]


def test_what_is_stored_between_two_pages_is_newer_and_moves_nothing(house):
    mesh = house.mesh(session_id="s1")
    fill(house, mesh, 12)
    whole = [memory.id for memory in mesh.get_all()]
    first = mesh.get_all(5)
    house.clock.advance(seconds=1)
    fill(house, house.mesh("bob"), 3)
    mesh.update(whole[7], content="another text")
    mesh.update(first[-1].id, content="one more text")
    assert [memory.id for memory in mesh.get_all(after=first[-1].id)] == whole[5:]


def test_erasing_while_paging_loses_nothing(house):
    mesh = house.mesh(session_id="s1")
    fill(house, mesh, 30)
    seen, cursor = [], None
    while page := mesh.get_all(7, after=cursor):
        seen += [memory.id for memory in page]
        cursor = page[-1].id
        for memory in page:
            mesh.delete(memory.id)
    assert len(seen) == len(set(seen)) == 30


def test_a_cursor_of_someone_else_tells_nothing_but_its_own_time(house):
    mesh, other = house.mesh("ann"), house.mesh("bob")
    mesh.add("older")
    house.clock.advance(seconds=1)
    private = other.add("private", {"type": "agent"})
    house.clock.advance(seconds=1)
    newer = mesh.add("newer")
    assert [memory.content for memory in mesh.get_all(after=newer.id)] == ["older"]
    seen = mesh.get_all(after=private.id)
    other.delete(private.id)
    assert mesh.get_all(after=private.id) == seen
    assert [memory.content for memory in seen] == ["older"]


@pytest.mark.parametrize(
    ("cursor", "error"),
    [("tuesday", NotFound), ("", NotFound), ("a\0b", InvalidInput), (5, InvalidInput)],
)
def test_a_cursor_that_is_no_id_is_an_error(mesh, cursor, error):
    mesh.add("a text")
    assert mesh.get_all(after=mesh.get_all()[0].id) == []
    with pytest.raises(error):
        mesh.get_all(after=cursor)


def test_a_page_is_full_though_altered_memories_are_left_out(tmp_path):
    file = tmp_path / "altered.db"
    with MemoryMesh(store=f"sqlite:///{file}", clock=FakeClock().seconds) as mesh:
        written = [mesh.add(f"note {number}").id for number in range(9)]
        with closing(sqlite3.connect(file)) as other, other:
            other.executemany(
                "UPDATE memories SET content = 'forged' WHERE id = ?",
                [[id_] for id_ in written[3:6]],
            )
        assert sorted(memory.id for memory in mesh.get_all()) == sorted(written[:3] + written[6:])
        assert [len(page) for page in pages(mesh, 4)] == [4, 2]
        assert [len(page) for page in pages(mesh, 1)] == [1] * 6


@settings(max_examples=25)
@given(st.data())
def test_any_change_between_two_pages_leaves_each_old_memory_once(data):
    clock = FakeClock()
    with MemoryMesh(
        store="memory://", embedder="none", clock=clock.seconds, session_id="s1"
    ) as mesh:

        def write(count: int) -> None:
            for _ in range(count):
                mesh.add(
                    f"note {data.draw(st.integers(0, 10**9))}",
                    dict(data.draw(st.sampled_from(SCOPES))),
                )
                clock.advance(ms=data.draw(st.sampled_from((0, 0, 1))))

        write(data.draw(st.integers(1, 9)))
        lasting, seen, cursor = {memory.id for memory in mesh.get_all()}, [], None
        while page := mesh.get_all(data.draw(st.integers(1, 4)), after=cursor):
            seen += [memory.id for memory in page]
            cursor = seen[-1]
            clock.advance(ms=data.draw(st.sampled_from((0, 1))))
            write(data.draw(st.integers(0, 1)))
            unread = sorted(lasting - set(seen))
            if unread and data.draw(st.booleans()):
                mesh.delete(erased := data.draw(st.sampled_from(unread)))
                lasting.discard(erased)
        assert [seen.count(id_) for id_ in sorted(lasting)] == [1] * len(lasting)
