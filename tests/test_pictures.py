"""The pictures of the documentation are current, and the life of a memory is as the first of
them shows it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import Status
from pictures import FOLDER, PICTURES, PLACES, TRANSITIONS

HOME = {"subject": "Ana", "predicate": "home"}
USER = {"source": "user_explicit"}


class Life:
    """A mesh with a clock, and the memory whose status is watched."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.mesh = MemoryMesh(
            store="memory://", agent_id="a", session_id="s", embedder="none", clock=lambda: self.now
        )
        self.id = ""

    @property
    def status(self) -> str:
        found = self.mesh.get(self.id) if self.id else None
        return found.status if found else "erased" if self.id else "new"

    def store(self, value: str, **options: object) -> str:
        claim = {**HOME, "value": value}
        return self.mesh.graph.store("a", f"Ana lives in {value}.", claim=claim, **options).id  # type: ignore[arg-type]

    def active(self) -> None:
        self.id = self.store("Lisbon", importance=0.1)

    def quarantined(self) -> None:
        self.store("Porto", provenance=USER)
        self.id = self.store("Rome")

    def disputed(self) -> None:
        self.active()
        self.mesh.graph.dispute(self.id)

    def archived(self) -> None:
        self.active()
        self.decay()

    def superseded(self) -> None:
        """Supersede by a review, which can be undone."""
        self.id = self.store("Porto", provenance=USER)
        self.newer = self.store("Rome")
        self.mesh.graph.review_quarantine(self.newer, action="activate")

    def dispute(self, times: int) -> None:
        for _ in range(times):
            self.mesh.graph.dispute(self.id)

    def decay(self) -> None:
        self.now += timedelta(days=100)
        self.mesh.graph.decay()

    def prune(self) -> None:
        self.now += timedelta(days=100)
        self.mesh.graph.consolidate()


STEPS: dict[tuple[str, str], tuple[Callable[[Life], object], Callable[[Life], object]]] = {
    ("new", "active"): (lambda life: None, Life.active),
    ("new", "quarantined"): (lambda life: None, Life.quarantined),
    ("quarantined", "active"): (
        Life.quarantined,
        lambda life: life.mesh.graph.review_quarantine(life.id, action="activate"),
    ),
    ("active", "quarantined"): (Life.active, lambda life: life.dispute(3)),
    ("disputed", "quarantined"): (Life.disputed, lambda life: life.dispute(2)),
    ("active", "disputed"): (Life.active, lambda life: life.dispute(1)),
    ("disputed", "active"): (Life.disputed, lambda life: life.mesh.graph.reinforce(life.id)),
    ("active", "superseded"): (Life.active, lambda life: life.store("Porto", provenance=USER)),
    ("superseded", "active"): (
        Life.superseded,
        lambda life: life.mesh.graph.undo_review(life.newer),
    ),
    ("active", "archived"): (Life.active, Life.decay),
    ("archived", "active"): (Life.archived, lambda life: life.mesh.graph.unarchive(life.id)),
    ("superseded", "archived"): (Life.superseded, Life.prune),
    ("quarantined", "archived"): (
        Life.quarantined,
        lambda life: life.mesh.graph.review_quarantine(life.id, action="reject"),
    ),
    ("archived", "erased"): (Life.archived, lambda life: life.mesh.delete(life.id)),
}


def test_the_picture_of_a_life_has_every_status_and_the_transitions_that_are_tested() -> None:
    assert set(PLACES) == {*(status.value for status in Status), "new", "erased"}
    assert {(one.start, one.end) for one in TRANSITIONS} == set(STEPS)


@pytest.mark.parametrize(("start", "end"), STEPS)
def test_a_transition_of_the_picture_happens(start: str, end: str) -> None:
    life = Life()
    before, step = STEPS[start, end]
    before(life)
    assert life.status == start
    step(life)
    assert life.status == end
    life.mesh.close()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PICTURES[name]()
