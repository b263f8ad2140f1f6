"""Several processes on one file: nothing is lost or doubled, and no process sees half a change."""

import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import IN_CI
from memory_mesh import MemoryMesh, MemoryRecord, Sound

from .children import Child, together, url
from .sound import assert_sound, contents_of, faults


@pytest.fixture(
    params=[
        "memory.db",
        *(pytest.param(f"memory.{kind}", marks=pytest.mark.deep) for kind in ("lance", "json")),
    ]
)
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The file or folder of a store that does not exist yet."""
    return tmp_path / "new" / str(request.param)


@pytest.fixture
def writers(deep: bool) -> int:
    """The number of processes that write at the same time."""
    return (4 if IN_CI else 8) if deep else 2


def acknowledged(children: list[Child]) -> list[Any]:
    """All that the children say, once all have ended well."""
    ids = [id_ for child in children for id_ in child.rest()]
    assert [child.end() for child in children] == [0] * len(children)
    return ids


def everything(file: Path) -> list[MemoryRecord]:
    with MemoryMesh(store=url(file), agent_id="reader") as mesh:
        return mesh.get_all()


def chains(file: Path) -> dict[str, list[tuple[str, str | None, str]]]:
    """Of each agent: hash, hash before and time of its blocks, in their order."""
    found: dict[str, list[tuple[str, str | None, str]]] = {}
    for block in sorted(
        contents_of(file).blocks, key=lambda block: (block["chain"], block["number"])
    ):
        found.setdefault(block["agent_id"], []).append(
            (block["block_hash"], block.get("prev_hash"), block["timestamp"])
        )
    return found


@pytest.mark.req("MESH-015", "MESH-043")
def test_what_several_processes_store_in_a_file_that_none_had_made_is_all_there(
    file: Path, writers: int
) -> None:
    with ExitStack() as stack:
        texts = {
            f"agent{n}": [f"agent{n} saw comet{n}x{at}" for at in range(4)] for n in range(writers)
        }
        children = together(
            stack,
            [{"store": url(file), "agent": agent, "texts": own} for agent, own in texts.items()],
        )
        ids = acknowledged(children)
    stored = everything(file)
    assert {record.id for record in stored} == set(ids)
    assert {
        agent: sorted(r.content for r in stored if r.agent_id == agent) for agent in texts
    } == texts
    assert {agent: len(chain) for agent, chain in chains(file).items()} == dict.fromkeys(texts, 4)
    assert_sound(file)


@pytest.mark.deep
@pytest.mark.req("MESH-043")
def test_processes_of_one_agent_write_one_chain_though_some_clocks_are_set_back(
    file: Path, writers: int
) -> None:
    with MemoryMesh(store=url(file), agent_id="one", clock=lambda: time.time() + 86_400) as mesh:
        mesh.add("written by a clock that all others are behind")
    with ExitStack() as stack:
        options = [
            {
                "store": url(file),
                "agent": "one",
                "texts": [f"item{n}x{at}" for at in range(4)],
                "behind": 86_400.0 * (n % 2),
            }
            for n in range(writers)
        ]
        ids = acknowledged(together(stack, options))
    assert len(set(ids)) == writers * 4
    (chain,) = chains(file).values()
    assert len(chain) == writers * 4 + 1
    assert chain[0][1] is None
    assert [before for _, before, _ in chain[1:]] == [hashed for hashed, _, _ in chain[:-1]]
    # Some clock was set back.
    assert any(later < earlier for (_, _, earlier), (_, _, later) in pairwise(chain))
    assert_sound(file)


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("audited", [True, False])
def test_one_text_from_several_processes_is_one_memory_that_counts_them_all(
    file: Path, writers: int, audited: bool
) -> None:
    options = {
        "store": url(file),
        "agent": "one",
        "texts": ["Tea is at four."] * 3,
        "audited": audited,
    }
    with ExitStack() as stack:
        ids = acknowledged(together(stack, [options] * writers))
    (record,) = everything(file)
    assert set(ids) == {record.id}
    assert record.times_observed == len(ids) == writers * 3
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        assert [change.action for change in mesh.history(record.id)] == ["add"] + ["observe"] * (
            writers * 3 - 1
        )


@pytest.mark.deep
@pytest.mark.req("MESH-078")
def test_one_text_from_several_agents_and_one_key_end_in_one_memory_each(
    file: Path, writers: int
) -> None:
    with ExitStack() as stack:
        options = []
        for n in range(writers):
            told = [
                ("add", {"content": "Tea is at four.", "metadata": {"session_id": f"s{at}"}})
                for at in range(2)
            ]
            keyed = [
                ("add", {"content": f"agent{n} says {at}", "key": "latest"}) for at in range(2)
            ]
            calls = [call for pair in zip(told, keyed, strict=True) for call in pair]
            options.append(
                {"store": url(file), "agent": f"agent{n}", "calls": calls, "together": True}
            )
        acknowledged(together(stack, options, "calls"))
    keyed, told = sorted(everything(file), key=lambda record: record.key is None)
    assert (told.content, told.times_observed, keyed.key, keyed.revision) == (
        "Tea is at four.",
        writers * 2,
        "latest",
        writers * 2,
    )
    with MemoryMesh(store=url(file)) as mesh:
        authors = {
            (one.agent_id, one.session_id): one.times_observed for one in mesh.sightings(told.id)
        }
        assert authors == {(f"agent{n}", f"s{at}"): 1 for n in range(writers) for at in range(2)}
        mesh.delete_all(session_id="s0")
        assert {one.session_id for one in mesh.sightings(told.id)} == {"s1"}
    assert_sound(file)


@pytest.mark.deep
def test_one_call_repeated_by_several_processes_under_its_key_stores_once(
    file: Path, writers: int
) -> None:
    call = (
        "add_many",
        {
            "items": [["Tea is at four.", None], ["Cake is at five.", None]],
            "idempotency_key": "tea",
        },
    )
    with ExitStack() as stack:
        options = [
            {"store": url(file), "agent": "one", "calls": [call], "together": True}
        ] * writers
        answers = acknowledged(together(stack, options, "calls"))
    stored = {record.content: record for record in everything(file)}
    assert answers == [[stored["Tea is at four."].id, stored["Cake is at five."].id]] * writers
    assert [record.times_observed for record in stored.values()] == [1, 1]
    assert_sound(file)


@pytest.mark.deep
@pytest.mark.req("MESH-007")
def test_processes_whose_ids_clash_all_store_and_no_memory_takes_the_place_of_another(
    file: Path,
) -> None:
    with ExitStack() as stack:
        options = [
            {
                "store": url(file),
                "agent": f"agent{n}",
                "texts": [f"stone{n}x{at}" for at in range(3)],
                "alike": True,
            }
            for n in range(4)
        ]
        ids = acknowledged(together(stack, options))
    assert len(set(ids)) == len(ids) == 12
    assert {record.content for record in everything(file)} == {
        f"stone{n}x{at}" for n in range(4) for at in range(3)
    }
    assert_sound(file)


@pytest.mark.deep
@pytest.mark.req("MESH-043")
def test_processes_of_one_agent_that_change_memories_of_their_own_write_one_chain(
    file: Path, writers: int
) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        ids = [mesh.add(f"The kettle{n} is cold").id for n in range(writers)]
    with ExitStack() as stack:
        options = []
        for n, id_ in enumerate(ids):
            calls = [
                ("update", {"id": id_, "content": f"The kettle{n} is at {at}"}) for at in range(3)
            ]
            calls += [
                ("pin", {"id": id_}),
                ("add", {"content": f"Tea{n}", "metadata": {"type": "agent"}}),
            ]
            options.append({"store": url(file), "agent": "one", "calls": calls, "together": True})
        acknowledged(together(stack, options, "calls"))
    (chain,) = chains(file).values()
    assert len(chain) == writers * 6
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        assert {len(mesh.history(id_)) for id_ in ids} == {5}
    assert_sound(file)


@pytest.mark.req("MESH-044")
def test_a_reader_never_sees_half_a_change(file: Path) -> None:
    calls: list[Any] = []
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        ids = [mesh.add(f"The garden has bed{n}").id for n in range(6)]
    for n, id_ in enumerate(ids):
        calls += [
            ("add", {"content": f"A new tree{n}"}),
            ("update", {"id": id_, "content": f"The garden has path{n}"}),
        ]
        calls += [("pin", {"id": id_}), ("erase", {"id": id_})]
    seen = set()
    with Child("calls", store=url(file), agent="one", calls=calls, paced=True) as child:
        child.tell()
        for at, _ in enumerate(calls, start=1):
            child.hear()
            if at < len(calls):
                child.tell()  # the next call is made while this process looks
            found = contents_of(file)
            assert list(faults(found)) == []
            seen.add(sum(partition["version"] for partition in found.partitions))
        assert child.end() == 0
    assert len(seen) > 2  # it did look while others wrote


@pytest.mark.deep
@pytest.mark.req("MESH-042")
def test_a_chain_that_grows_while_it_is_verified_is_not_taken_for_a_broken_one(file: Path) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        id_ = mesh.add("The counter stands at 0").id
        calls = [
            ("update", {"id": id_, "content": f"The counter stands at {n}"}) for n in range(1, 61)
        ]
        with Child("calls", store=url(file), agent="one", calls=calls) as child:
            for _ in calls:
                child.hear()
                assert [type(verdict) for verdict in mesh.verify()] == [Sound]
            assert child.end() == 0
        assert [verdict.number for verdict in mesh.verify() if isinstance(verdict, Sound)] == [61]


def test_a_process_that_forks_goes_on_writing_on_both_sides(file: Path) -> None:
    with Child("forked", store=url(file), agent="one") as child:
        ids = child.rest()
        assert child.end() == 0
    assert len(ids) == 6
    assert {record.id for record in everything(file)} == set(ids)
    assert_sound(file)


@pytest.mark.deep
def test_processes_that_send_one_history_at_once_store_each_turn_once(
    file: Path, writers: int
) -> None:
    roles = ("user", "assistant")
    talk = [
        {"role": roles[n % 2], "content": ("yes", "ok", f"message {n}")[n % 3]} for n in range(9)
    ]
    # Every process sends a growing history: some are ahead of what others have stored, some behind.
    steps = [
        ["add_many", {"items": talk[:count], "metadata": {"session_id": "s"}}]
        for count in (2, 5, 5, 9)
    ]
    with ExitStack() as stack:
        options = [
            {"store": url(file), "agent": "one", "calls": steps, "together": True}
            for _ in range(writers)
        ]
        stored = [id_ for ids in acknowledged(together(stack, options, "calls")) for id_ in ids]
    turns = sorted((record.turn, record.content, record.id) for record in everything(file))
    assert [(number, text) for number, text, _ in turns] == [
        (n, one["content"]) for n, one in enumerate(talk, start=1)
    ]
    assert sorted(stored) == sorted(id_ for _, _, id_ in turns)
    assert_sound(file)
