"""The trust that every read shows is the current one: source, corroboration, feedback and age, as
`explain_memory` says.

What is stored, sealed and exported is the base trust with the counters that change it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, Update
from memory_mesh.core.model import Kind, iso
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store

from .house import House
from .test_hidden_memories import QUERY, READS, manager

CLAIM = {"subject": "zeppelin", "predicate": "place", "value": "harbour"}
TEXT = "The zeppelin lands in the harbour, says shownone."


@pytest.fixture(
    params=[
        "memory",
        *(pytest.param(name, marks=pytest.mark.one_in(4)) for name in ("sqlite", "json")),
    ]
)
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    urls = {
        "memory": "memory://",
        "sqlite": f"sqlite:///{tmp_path / 'm.db'}",
        "json": f"json://{tmp_path / 'folder'}",
    }
    store = open_store(urls[str(request.param)])
    yield House(store)
    store.close()


def told(house: House) -> tuple[MemoryMesh, str]:
    """Return a mesh with one memory that was corroborated, confirmed three times and disputed
    once, a year ago; and its id."""
    mesh = house.mesh("ann", session_id="s1", embedder=HashingEmbedder())
    given = {"claim": CLAIM, "provenance": {"source": "document"}}
    id_ = mesh.graph.store("ann", TEXT, category="event", **given).id
    mesh.graph.store("ann", "The place where the zeppelin lands is the harbour.", **given)
    other = mesh.graph.store("ann", "A second zeppelin waits in the harbour.").id
    mesh.graph.link(other, id_, "related")
    for _ in range(3):
        mesh.graph.reinforce(id_)
    mesh.graph.dispute(id_)
    house.clock.advance(days=365)
    return mesh, id_


def shown(found: object, id_: str) -> Iterator[float]:
    """Yield the trust of a memory wherever a result has it: in a record, or in an object of
    JSON."""
    if isinstance(found, str):
        found = vars_of(found)
    elif is_dataclass(found):
        found = {field.name: getattr(found, field.name) for field in fields(found)}
    if isinstance(found, Mapping):
        if found.get("id") == id_ and isinstance(found.get("trust"), float | None):
            yield found["trust"]
        found = list(found.values())
    if isinstance(found, Sequence) and not isinstance(found, str):
        for part in found:
            yield from shown(part, id_)


def vars_of(text: str) -> dict[str, object]:
    """Return the attributes of the text of a context."""
    return {name: getattr(text, name) for name in getattr(type(text), "__slots__", ())}


def changed(mesh: MemoryMesh, id_: str, about: str | None = None) -> list[Update]:
    """Return what changed, after a newer memory replaced one."""
    newer = mesh.graph.store("ann", "Nothing of that holds any more.")
    mesh.confirm_change(newer.id, id_)
    return mesh.changes(about)


# What shows a memory beside the reads of the other table.
MORE: dict[str, Callable[[MemoryMesh, str], object]] = {
    "mesh.changes": changed,
    "mesh.changes about": lambda mesh, id_: changed(mesh, id_, about=id_),
    "mesh.get": lambda mesh, id_: mesh.get(id_),
    "mesh.update": lambda mesh, id_: mesh.update(id_, metadata={"place": "harbour"}),
    "mesh.pin": lambda mesh, id_: mesh.pin(id_),
    "graph.explain_memory": lambda mesh, id_: mesh.graph.explain_memory(id_),
    "graph.links": lambda mesh, id_: [mesh.graph.links(one.id) for one in mesh.get_all()],
    "graph.traverse": lambda mesh, id_: [mesh.graph.traverse(one.id, 5) for one in mesh.get_all()],
    "graph.reinforce": lambda mesh, id_: mesh.graph.reinforce(id_),
    "graph.dispute": lambda mesh, id_: mesh.graph.dispute(id_),
    "graph.archive": lambda mesh, id_: [mesh.graph.archive(id_), mesh.graph.unarchive(id_)],
    "lane.feedback": lambda mesh, id_: mesh.lane.feedback(id_, "helpful"),
    "manager.recall_memories": lambda mesh, id_: manager(mesh).recall_memories(QUERY),
}
# Reads of the other table that show no memory with its trust: texts of their own, other ids, or
# lessons and skills.
WITHOUT = {
    *(
        "mesh.query_lessons all",
        "mesh.query_lessons",
        "mesh.get_memories_by_pattern",
        "mesh.reflect",
        "mesh.reflect topic",
    ),
    *(
        "mesh.synthesize",
        "mesh.synthesize topic",
        "mesh.search_skills",
        "mesh.list_skills",
        "mesh.format_results",
    ),
    *("mesh.format_for_model", "lane.session_context", "manager.format_memories_for_prompt"),
    *(
        "lane.find",
        "lane.find as_of",
        "graph.episodes titles",
        "graph.summarize_episode",
        "mesh.evaluate",
    ),
}
# Reads of an earlier time, at which the memory was not known or had another trust.
EARLIER = {name for name in READS if "as_of" in name or "known_at" in name}


def reads() -> dict[str, Callable[[MemoryMesh, str], object]]:
    given = {
        name: (lambda mesh, id_, read=read: read(mesh))
        for name, read in READS.items()
        if name not in WITHOUT | EARLIER
    }
    return {
        **{
            name: read
            for name, read in given.items()
            if not name.startswith(("graph.links", "graph.traverse"))
        },
        **MORE,
    }


@pytest.mark.req("GRAPH-61", "MESH-001")
@pytest.mark.sample(12)
@pytest.mark.parametrize("name", reads())
def test_every_read_shows_the_trust_that_the_explanation_says(house: House, name: str) -> None:
    mesh, id_ = told(house)
    before = mesh.graph.explain_memory(id_).trust
    # a second statement, 0.15 × (3 − 1) / 4, and a year
    assert [before.corroboration, before.feedback, before.age] == pytest.approx([0.05, 0.075, -0.1])
    assert (before.base, before.value) == (0.6, pytest.approx(0.625))
    found = list(shown(reads()[name](mesh, id_), id_))
    assert found
    trust = mesh.graph.explain_memory(id_).trust.value
    assert found == [pytest.approx(trust, abs=1e-12)] * len(found)


@pytest.mark.req("GRAPH-61", "MESH-001")
@pytest.mark.parametrize(
    "name", ["mesh.format_for_model", "lane.session_context", "manager.format_memories_for_prompt"]
)
def test_a_prompt_says_of_a_memory_that_it_may_be_wrong_while_its_trust_is_low(
    house: House, name: str
) -> None:
    mesh = house.mesh("ann", session_id="s1", embedder=HashingEmbedder())
    id_ = mesh.graph.store("ann", TEXT, category="event").id
    house.change(id_, trust=0.45)
    shown = []
    for step in (
        lambda: None,
        lambda: house.clock.advance(days=365),
        lambda: mesh.graph.reinforce(id_),
    ):
        step()
        text = str(READS[name](mesh))
        assert ": The zeppelin" in text
        shown.append((mesh.graph.explain_memory(id_).trust.value, ", may be wrong: " in text))
    assert shown == [
        (pytest.approx(0.45), False),
        (pytest.approx(0.35), True),
        (pytest.approx(0.5), False),
    ]


@pytest.mark.req("GRAPH-61")
def test_a_new_memory_shows_the_trust_of_an_inference_unless_it_names_its_source(
    house: House,
) -> None:
    mesh = house.mesh("ann")
    plain, stored = (
        mesh.add("Tea at four."),
        mesh.graph.store("ann", "Milk first.", provenance={"source": "system"}),
    )
    assert (plain.trust, stored.memory.trust) == (0.5, 0.95)
    assert [mesh.get(plain.id), *mesh.get_all(filter="content = 'Tea at four.'")] == [
        plain,
        plain,
    ], "read twice, a memory is the same"
    assert mesh.graph.explain_memory(plain.id).trust.value == 0.5


@pytest.mark.req("GRAPH-61")
def test_a_derived_memory_shows_no_more_trust_than_its_least_source(house: House) -> None:
    mesh = house.mesh("ann", embedder=HashingEmbedder())
    sources = [mesh.add(f"The zeppelin lands in the harbour on day {n}.").id for n in range(3)]
    drawn = str(mesh.reflect("zeppelin").memory_id)
    house.change(drawn, trust=0.9)
    assert [one.trust for one in mesh.search("zeppelin lands", limit=9) if one.id == drawn] == [0.5]
    mesh.graph.dispute(sources[0])
    expected = mesh.graph.explain_memory(drawn).trust.value
    assert expected == pytest.approx(0.35)
    found = [
        mesh.get(drawn),
        *mesh.get_all(filter=f"id = '{drawn}'"),
        *mesh.search("zeppelin lands", limit=9),
    ]
    assert [one.trust for one in found if one and one.id == drawn] == [pytest.approx(expected)] * 3


@pytest.mark.req("GRAPH-61", "MESH-001")
def test_what_is_stored_sealed_exported_and_imported_is_the_base_trust(
    house: House, tmp_path: Path
) -> None:
    mesh, id_ = told(house)
    assert list(shown(mesh.get(id_), id_)) == [pytest.approx(0.625)]
    mesh.update(id_, metadata={"place": "quay"})
    mesh.pin(id_)
    assert house.memory(id_).trust == 0.6
    assert house.sound()
    lines = list(mesh.export())
    assert any('"trust": 0.6,' in line and id_ in line for line in lines)
    copy = House(open_store("memory://"), clock=house.clock)
    copied = copy.mesh("ann", session_id="s1")
    copied.import_memories(lines)
    assert list(shown(copied.get(id_), id_)) == [pytest.approx(0.625)]
    assert copy.memory(id_).trust == 0.6


@pytest.mark.req("GRAPH-61")
def test_a_cached_search_shows_the_trust_of_now(house: House) -> None:
    mesh = house.mesh("ann", embedder=HashingEmbedder())
    id_ = mesh.graph.store("ann", TEXT).id
    first = mesh.search(QUERY)
    house.clock.advance(seconds=299)
    again = mesh.search(QUERY)
    assert mesh.get_cache_stats().hits == 1
    assert [one.trust for one in (*first, *again) if one.id == id_] == [0.5, 0.499999]


@pytest.mark.req("GRAPH-61")
def test_known_at_shows_the_trust_of_then(house: House) -> None:
    mesh, id_ = told(house)
    then = house.clock.ms - 364 * 86_400_000
    [found] = [one for one in mesh.search(QUERY, known_at=iso(then)) if one.id == id_]
    assert (
        found.trust
        == pytest.approx(0.725 - 0.1 / 365)
        == mesh.graph.explain_memory(id_, known_at=iso(then)).trust.value
    )


@pytest.mark.req("GRAPH-61")
def test_a_derived_memory_shows_the_trust_that_its_sources_had_at_known_at(house: House) -> None:
    mesh = house.mesh("ann", embedder=HashingEmbedder())
    source = mesh.add(TEXT)
    mesh.add("A second zeppelin waits in the harbour.")
    mesh.reflect(QUERY)
    house.clock.advance(days=1)
    then, id_ = (
        iso(house.clock.ms),
        next(one.id for one in house.memories() if source.id in one.sources),
    )
    house.clock.advance(days=1)
    for _ in range(2):
        mesh.graph.dispute(source.id)
    told_then = {
        *(one.trust for one in mesh.search(QUERY, known_at=then, min_score=0.0) if one.id == id_),
        *(
            one.trust
            for one in mesh.search(QUERY, known_at=then, filter="memory_type = 'reflection'")
            if one.id == id_
        ),
        *(one.trust for one in mesh.graph.search("ann", QUERY, known_at=then) if one.id == id_),
        mesh.graph.explain_memory(id_, known_at=then).trust.value,
    }
    assert list(told_then) == [pytest.approx(0.5 - 0.1 / 365, abs=1e-6)]
    assert mesh.graph.explain_memory(id_).trust.value < 0.4  # the control: the disputes count now


@pytest.mark.req("GRAPH-61")
def test_the_trust_of_a_search_reads_no_store_unless_a_result_was_derived(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = house.mesh("ann", embedder=HashingEmbedder())
    ids = [mesh.add(f"The zeppelin lands in the harbour on day {n}.").id for n in range(5)]
    calls, get = list[object](), type(house.store).get

    def counted(self: object, kind: Kind, some: Sequence[str]) -> object:
        calls.append(kind)
        return get(self, kind, some)  # type: ignore[arg-type]

    def reads_of_a_search() -> int:
        mesh.search(QUERY, limit=9)  # reads the index
        mesh.clear_cache()
        calls.clear()
        mesh.search(QUERY, limit=9)
        return calls.count(Kind.MEMORY)

    monkeypatch.setattr(type(house.store), "get", counted)
    before = reads_of_a_search()
    house.change(ids[0], sources=[ids[1], "erased"])
    house.change(ids[2], sources=[ids[3], "gone"])
    assert (before, reads_of_a_search()) == (before, before + 1), (
        "one read for all sources together"
    )
