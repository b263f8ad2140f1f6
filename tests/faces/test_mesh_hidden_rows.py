"""No word oracle: nothing that a reader is told moves with memories that it cannot see, of another
user, agent or session.

The property compares two worlds that differ only in hidden memories: every answer of every read
must be equal, to the last bit. Search is exact at this size.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_mesh import InvalidFilter, MemoryMesh
from memory_mesh.core.model import Kind, Reader, Row, visible
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import DownEmbedder, seeded_ids

from .house import House

WORDS = ("red", "apple", "harbour", "Carol", "zeppelin", "tea?")
WRITERS = (
    *(
        Reader(None, "ann", "s1"),
        Reader(None, "ann", "s2"),
        Reader(None, "ann", "s3"),
        Reader(None, "bob", "s1"),
    ),
    *(Reader("u", "ann", "s1"), Reader("u", "bob", "s2")),
)
QUERIES = ("red apple zeppelin", "Where is Carol?")
STATUSES = (("active",), ("active", "archived", "quarantined"))


@dataclass(frozen=True)
class Step:
    """One write: a writer adds a memory, or does something to the latest one that it added with
    this type."""

    writer: Reader
    action: str
    type: str
    text: str
    ms: int  # since the step before; often none, so that times are equal

    def seen_by(self, reader: Reader) -> bool:
        scope = {
            "user_id": self.writer.user_id,
            "agent_id": self.writer.agent_id,
            "session_id": self.writer.session_id,
        }
        fields = {
            name: value
            for name, value in {**scope, "memory_type": self.type}.items()
            if value is not None
        }
        return visible(
            reader, Row(kind=Kind.MEMORY, id="", partition="", created_at="", fields=fields)
        )


ACTIONS = ("add", "add", "add", "update", "pin", "archive", "erase")
STEPS = st.builds(
    Step,
    st.sampled_from(WRITERS),
    st.sampled_from(ACTIONS),
    st.sampled_from(("global", "agent", "session", "session", "lesson", "reflection")),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    st.sampled_from((0, 0, 1)),
)


class World:
    """A house that steps are taken in. Hidden steps draw their ids from another source, so that
    the others get the same ids."""

    def __init__(self, house: House, reader: Reader, **options: object) -> None:
        self.house, self.reader, self._options = (
            house,
            reader,
            {"embedder": HashingEmbedder(), **options},
        )
        self._hidden_ids = seeded_ids(1)
        self._latest: dict[tuple[Reader, str], str] = {}
        self._meshes: dict[tuple[Reader, bool], MemoryMesh] = {}
        self.mesh(reader).init()  # a read would not create the file

    def mesh(self, owner: Reader, *, hidden: bool = False) -> MemoryMesh:
        if (owner, hidden) not in self._meshes:
            options = {**self._options, "ids": self._hidden_ids if hidden else self.house.ids}
            mesh = self.house.mesh(
                str(owner.agent_id), user_id=owner.user_id, session_id=owner.session_id, **options
            )
            self._meshes[owner, hidden] = mesh
        return self._meshes[owner, hidden]

    def take(
        self, steps: Sequence[Step], *, only: Callable[[Step], bool] = lambda step: True
    ) -> None:
        for step in steps:
            self.house.clock.advance(ms=step.ms)
            if only(step):
                self._take(step)

    def _take(self, step: Step) -> None:
        own = (step.writer, step.type)
        mesh, id_ = (
            self.mesh(step.writer, hidden=not step.seen_by(self.reader)),
            self._latest.get(own),
        )
        if step.action == "add" or id_ is None:
            self._latest[own] = mesh.add(
                step.text, {"type": step.type, "speaker": step.text.split()[0]}
            ).id
        elif step.action == "update":
            mesh.update(id_, content=step.text)
        elif step.action == "pin":
            mesh.pin(id_)
        elif step.action == "archive":
            self.house.change(id_, status="archived")
        else:
            mesh.delete(id_)
            del self._latest[own]

    def answers(self) -> list[object]:
        """Return every answer of every read."""
        mesh = self.mesh(self.reader)
        shown = mesh.get_all(status=("active", "archived"))
        found: list[object] = [
            shown,
            mesh.get_all(2),
            mesh.get_all(filter="content LIKE '%red%'"),
            _counts(mesh),
        ]
        found += [(mesh.get(record.id), mesh.history(record.id)) for record in shown]
        for query in QUERIES:
            for ranker in ("learnt", "rrf"):
                found.append(mesh.search(query, 3, ranker=ranker, min_score=0.0))
                found.append(mesh.explain(query, ranker=ranker, filter="content LIKE '%red%'"))
            found += [mesh.explain(query, status=status) for status in STATUSES]
            found.append(mesh.search(query, use_cache=False))
        return [
            *found,
            mesh.query_lessons(),
            mesh.query_lessons("red apple"),
            mesh.get_memories_by_pattern("p"),
        ]


def _counts(mesh: MemoryMesh) -> object:
    return replace(mesh.stats(), db_path="")


@contextmanager
def houses(kind: str) -> Iterator[list[House]]:
    """Yield two empty houses."""
    with TemporaryDirectory() as folder:
        urls = (
            ["memory://"] * 2
            if kind == "memory"
            else [f"sqlite:///{Path(folder) / name}.db" for name in "ab"]
        )
        stores = [open_store(url) for url in urls]
        try:
            yield [House(store) for store in stores]
        finally:
            for store in stores:
                store.close()


@pytest.mark.req("MESH-025")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data(), reader=st.sampled_from(WRITERS))
def test_hidden_memories_move_no_answer_of_any_read(
    kind: str, data: st.DataObject, reader: Reader
) -> None:
    steps = data.draw(st.lists(STEPS, min_size=1, max_size=10), "steps")
    later = data.draw(
        st.lists(STEPS, max_size=6).map(
            lambda drawn: [step for step in drawn if not step.seen_by(reader)]
        ),
        "later",
    )
    with houses(kind) as (one, other):
        among, alone = World(one, reader), World(other, reader)
        among.take(steps)
        alone.take(steps, only=lambda step: step.seen_by(reader))
        right = alone.answers()
        assert among.answers() == right
        among.take(later)  # the index and the cache are open by now
        alone.take(later, only=lambda step: False)
        assert among.answers() == alone.answers()
        again = [{"type": kind} for kind in ("global", "session")]
        duplicates = [
            world.mesh(reader).add_many([("red apple", given) for given in again])
            for world in (among, alone)
        ]
        assert duplicates[0] == duplicates[1]


# --- attacks, one by one ---

OWN, OTHER = Reader(None, "ann", "s1"), Reader(None, "ann", "s2")
SESSION = {"type": "session"}


@pytest.fixture
def world(house: House) -> World:
    """A session with a few memories."""
    world = World(house, OWN)
    world.mesh(OWN).add_many(
        [
            (f"The {word} stands by the harbour.", SESSION)
            for word in ("crane", "zeppelin", "lighthouse")
        ]
    )
    return world


def keyword_score(mesh: MemoryMesh, word: str, **options: object) -> float:
    return mesh.explain(word, min_score=0.0, **options).answers[0].channels["keywords"].score


ATTACKS = {
    "the same word": [("A zeppelin zeppelin.", SESSION)],
    "another word": [("Nothing of that kind.", SESSION)],
    "many memories": [(f"Filler number {n} of many.", SESSION) for n in range(40)],
    "a long memory": [("zeppelin " * 200, SESSION)],
}


@pytest.mark.req("MESH-025")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_memory_of_another_session_does_not_change_a_score(world: World, attack: str) -> None:
    own, other = world.mesh(OWN), world.mesh(OTHER, hidden=True)
    before, shown = (
        keyword_score(own, "zeppelin"),
        own.search("zeppelin", use_cache=False, min_score=0.0),
    )
    other.add_many(ATTACKS[attack])
    assert other.search("zeppelin") or other.get_all()  # it is there
    after = own.search("zeppelin", use_cache=False, min_score=0.0)
    assert keyword_score(own, "zeppelin") == before
    assert [(hit.id, hit.score, hit.similarity) for hit in after] == [
        (hit.id, hit.score, hit.similarity) for hit in shown
    ]
    own.add_many(ATTACKS[attack])  # memories that the reader sees do count
    assert keyword_score(own, "zeppelin") != before


@pytest.mark.req("MESH-025")
def test_a_filter_does_not_change_a_score(world: World) -> None:
    own = world.mesh(OWN)
    assert keyword_score(
        own, "zeppelin harbour", filter="content LIKE '%zeppelin%'"
    ) == keyword_score(own, "zeppelin harbour")


@pytest.mark.req("MESH-025")
def test_stats_do_not_count_what_is_hidden(world: World) -> None:
    own, other = world.mesh(OWN), world.mesh(OTHER, hidden=True)
    before = own.stats()
    other.add("one more", SESSION)
    assert own.stats() == before
    other.add("one for all")
    assert own.stats().total_memories == before.total_memories + 1


@pytest.mark.req("MESH-025")
def test_a_write_of_another_session_does_not_end_the_life_of_a_cached_answer(world: World) -> None:
    own, other = world.mesh(OWN), world.mesh(OTHER, hidden=True)
    own.search("zeppelin")
    other.add("zeppelin", SESSION)
    own.search("zeppelin")
    assert own.get_cache_stats().hits == 1
    other.add("zeppelin for all")
    assert "zeppelin for all" in [hit.content for hit in own.search("zeppelin")]
    assert own.get_cache_stats().hits == 1


@pytest.mark.req("MESH-025")
def test_the_order_of_equal_times_does_not_tell_how_much_is_hidden(house: House) -> None:
    world = World(house, OWN)
    own, other = world.mesh(OWN), world.mesh(OTHER, hidden=True)
    orders = []
    for hidden in (0, 5):
        other.add_many([(f"hidden {n} {hidden}", SESSION) for n in range(hidden)])
        own.add_many(
            [("mine", SESSION), ("for all", None), ("mine too", SESSION), ("for all too", None)]
        )
        orders.append([record.content for record in own.get_all()])
        own.delete_all(agent_id="ann")
    assert orders[0] == orders[1]
    # Within a partition the later one is newer.
    assert orders[0].index("mine too") < orders[0].index("mine")


@pytest.mark.req("MESH-025")
def test_no_filter_shows_the_number_of_writes(world: World) -> None:
    with pytest.raises(InvalidFilter):
        world.mesh(OWN).get_all(filter="number > 3")


@pytest.mark.req("MESH-025")
def test_the_first_vector_of_a_store_is_not_told_to_other_users(house: House) -> None:
    """A memory without a vector scores and explains the same, whether others have vectors or
    not."""
    world = World(house, OWN, embedder=DownEmbedder(HashingEmbedder().model))
    world.mesh(OWN).add("The zeppelin stands by the harbour.")
    reader = world.house.mesh("ann", session_id="s1", embedder=HashingEmbedder())

    def told() -> object:
        explained = reader.explain("zeppelin", ranker="rrf")
        return explained.model, [
            (each.result.score, each.result.similarity, each.channels) for each in explained.answers
        ]

    before = told()
    house.mesh("bob", user_id="u", embedder=HashingEmbedder()).add("The first vector.")
    assert told() == before
    reader.add("The first vector that the reader sees.")
    assert told() != before
