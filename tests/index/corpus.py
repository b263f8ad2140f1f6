"""A generated corpus for comparing stores: users, agents, sessions, speakers, dates, long texts,
and questions with typos.

The same seed gives the same rows. The texts come from lists of words, so that memories share some
words and differ in others.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from memory_mesh import MemoryMesh
from memory_mesh.api.overview import overview_of
from memory_mesh.core.model import Kind, Row, SearchResult, batches
from memory_mesh.core.ports import Store
from memory_mesh.models.local import HashingEmbedder
from memory_mesh.stores.ram import RamStore
from memory_mesh.testing import FakeClock, seeded_ids
from memory_mesh.testing.fakes import NEW_YEAR

SPEAKERS = ("Katherine", "Melanie", "Jonathan", "Priya")
_SUBJECTS = [
    "garden",
    "kitchen",
    "bicycle",
    "violin",
    "passport",
    "holiday",
    "telescope",
    "marathon",
    "orchestra",
    "greenhouse",
    "laptop",
    "neighbour",
]
_VERBS = [
    "painted",
    "repaired",
    "borrowed",
    "measured",
    "forgot",
    "planned",
    "cleaned",
    "photographed",
    "compared",
    "cancelled",
]
_OBJECTS = [
    "fence",
    "recipe",
    "schedule",
    "contract",
    "tuning",
    "ticket",
    "battery",
    "lantern",
    "shelf",
    "invoice",
    "curtain",
    "notebook",
]
_PLACES = ["Lisbon", "Oslo", "Kyoto", "Turin", "Zagreb", "Bergen"]
_OWNERS = (("ann", "planner"), ("ann", "coder"), (None, "planner"), ("bob", None))


class ShortEmbedder(HashingEmbedder):
    """Hashed vectors with a short window, so that a longer text has passages."""

    window = 40

    def __init__(self) -> None:
        super().__init__(48)


@dataclass(frozen=True)
class Question:
    """A search by one reader."""

    text: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def ask(self, mesh: MemoryMesh) -> list[SearchResult]:
        handle = mesh.scoped(
            user_id=self.user_id, agent_id=self.agent_id, session_id=self.session_id
        )
        overview_of(handle).prepare_search()  # otherwise a server store may still build its index
        return handle.search(self.text, min_score=0, use_cache=False, **self.options)  # type: ignore[arg-type]


_ANN = {"user_id": "ann", "agent_id": "planner"}
QUESTIONS = (
    Question("Who painted the fence in Lisbon?", **_ANN),
    Question("What did Katherine repair in the greenhouse?", **_ANN),
    Question("What did Kate plan with the telescope?", **_ANN),  # a nickname
    Question("the bicyle contract that Melanie forgto", **_ANN),  # typos
    Question("How did Bartholomew measure the violin?", **_ANN),  # an unknown name
    Question("the passport in March 2026", **_ANN),
    Question("What did I tell you about the invoice?", user_id="ann", agent_id="coder"),
    Question("orchestra schedule", user_id="ann", agent_id="planner", session_id="ann-planner-1"),
    Question("the long report about the marathon battery", **_ANN),
    Question("laptop curtain", **_ANN, options={"filter": "importance >= 0.5 AND speaker IS NULL"}),
    Question("garden lantern", **_ANN, options={"filter": "session_id = 'ann-planner-2'"}),
    Question("kitchen shelf", **_ANN, options={"status": ["active", "archived"]}),
    Question("holiday ticket in Oslo", agent_id="planner"),
    Question("holiday ticket", user_id="bob"),
    Question("neighbour notebook", **_ANN, options={"as_of": "2026-02-01"}),
    Question("neighbour notebook", **_ANN, options={"known_at": "2026-01-01T00:00:15Z"}),
    Question("a question without any of the words", **_ANN, options={"limit": 3}),
    Question("telescope recipe", **_ANN, options={"ranker": "rrf"}),
)


def open_mesh(
    store: Store, clock: FakeClock | None = None, *, index_max_memories: int = 100_000
) -> MemoryMesh:
    """Open a mesh on a store; without a clock, an hour after the corpus was written."""
    clock = clock or FakeClock(NEW_YEAR + 3_600_000)
    return MemoryMesh(
        store=store, embedder=ShortEmbedder(), clock=clock.seconds, ids=seeded_ids(clock.ms),
        index_max_memories=index_max_memories,
    )  # fmt: skip


def make_rows(*, sessions: int, turns: int) -> list[Row]:
    """Return the rows of the corpus: for each owner so many sessions of so many turns, and as
    many other memories."""
    random, clock, store = Random(7), FakeClock(), RamStore()  # noqa: S311  (the same in every run)
    with open_mesh(store, clock) as mesh:
        for user_id, agent_id in _OWNERS:
            for session in range(sessions):
                name = f"{user_id or 'any'}-{agent_id or 'any'}-{session}"
                handle = mesh.scoped(user_id=user_id, agent_id=agent_id, session_id=name)
                handle.add_many(list(_talk(random, turns)))
                stored = handle.add_many(list(_notes(random, turns, session)))
                clock.advance(seconds=10)
                if session == 1:
                    handle.update(stored[0].id, content=_sentence(random))
                    handle.delete(stored[1].id)
        rows = [row for kind in Kind for row in store.find(kind)]
    return [
        _archived(row) if row.kind is Kind.MEMORY and at % 11 == 0 else row
        for at, row in enumerate(rows)
    ]


def fill(store: Store, rows: Iterable[Row]) -> None:
    """Write the rows as new ones."""
    for batch in batches(list(rows), 500):
        store.apply(batch)


def _archived(row: Row) -> Row:
    return replace(row, fields={**row.fields, "status": "archived"})


def _sentence(random: Random) -> str:
    parts = (random.choice(words) for words in (_SUBJECTS, _VERBS, _OBJECTS, _PLACES))
    subject, verb, what, place = parts
    return f"The {subject} person {verb} the {what} number {random.randrange(40)} in {place}."


def _talk(random: Random, turns: int) -> Iterator[tuple[str, dict[str, object]]]:
    for turn in range(turns):
        speaker, other = random.sample(SPEAKERS, 2)
        nickname = {"Katherine": "Kit", "Melanie": "Mel"}.get(other, other)
        text = random.choice((f"Hey {nickname}! ", "", "")) + _sentence(random)
        text += random.choice(("", "", " What do you think?"))
        day = f"2026-{random.randrange(1, 6):02}-{random.randrange(1, 28):02}T10:00:00Z"
        yield text, {"speaker": speaker, "turn": turn, "event_time": day, "type": "event"}


def _notes(random: Random, count: int, session: int) -> Iterator[tuple[str, dict[str, object]]]:
    for at in range(count):
        metadata: dict[str, object] = {"importance": round(random.random(), 2)}
        text = _sentence(random)
        if at % 7 == 0:
            text = "A long report. " + " ".join(_sentence(random) for _ in range(8))
        if at % 5 == 0:
            metadata["memory_type"] = ("session", "agent")[session % 2]
        if at % 6 == 0:
            metadata["expires_at"] = "2026-01-01T00:00:05Z" if at % 12 else "2030-01-01T00:00:00Z"
        yield text, metadata
