"""A program that decays, compresses or consolidates in a separate process: `python upkeep.py
run`, options as a line of JSON."""

import json
import sys
from array import array
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from math import sqrt
from operator import attrgetter
from time import time
from typing import Any

from memory_mesh import MemoryMesh
from memory_mesh.core.model import Vector
from memory_mesh.core.ports import Step, no_step
from memory_mesh.models.local import HashingEmbedder
from memory_mesh.testing.fakes import crash_at

_DAY = 86_400
GARDEN = (
    "Ana planted tomatoes in the garden in March.",
    "The tomatoes in the garden need water each morning.",
    "Ana harvested nine ripe tomatoes in the garden.",
)


class TiltedEmbedder(HashingEmbedder):
    """Vectors of words, but of texts that begin with `At`, which have a cosine of about 0.92 to
    others with the same words."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = zip(texts, super().embed(texts), strict=True)
        return [_tilted(vector) if text.startswith("At ") else vector for text, vector in vectors]


def _tilted(vector: Vector) -> Vector:
    values = array("f", vector.data)
    length = sqrt(sum(value**2 for value in values))
    free = min(range(len(values)), key=lambda at: abs(values[at]))
    values[free] = length * sqrt(1 / 0.92**2 - 1)
    return Vector(vector.model, values.tobytes())


def opened(store: str, *, days_ago: int = 0, step: Step = no_step, **options: Any) -> MemoryMesh:
    return MemoryMesh(
        store=store,
        agent_id="keeper",
        clock=lambda: time() - days_ago * _DAY,
        embedder=TiltedEmbedder(),
        step=step,
        **options,
    )


def fill(store: str) -> None:
    """Store what gives each phase of a consolidation, decay and compression something to do."""
    with opened(store, days_ago=100) as mesh:
        garden = mesh.graph.store_many(
            "keeper",
            [{"text": text, "category": "preference", "importance": 1.0} for text in GARDEN],
        )
        for one, other in pairwise(garden):
            mesh.graph.link(one.id, other.id, "related")
        for value in ("500", "700"):
            mesh.graph.store(
                "keeper",
                f"The rent is {value}.",
                claim={"subject": "flat", "predicate": "rent", "value": value},
            )
    both = {"budget": {"cardinality": "multi"}}
    with opened(store, predicate_schemas=both) as mesh:
        for text, source in (
            ("The office is in Rome.", "document"), ("Office is in Rome.", "document"),
            ("Lunch is served in the hall at noon.", "document"),
            ("At noon lunch is served in the hall.", "system"),
        ):  # fmt: skip
            mesh.graph.store("keeper", text, importance=0.9, provenance={"source": source})
        for value in ("500", "700"):
            claim = {"subject": "Apollo", "predicate": "budget", "value": value}
            mesh.graph.store("keeper", f"The budget is {value}.", importance=0.9, claim=claim)
        mesh.graph.store("keeper", "A cloud passed.", importance=0.01)
        mesh.graph.store("keeper", "Seven gulls slept on chimneys.", importance=0.1)


def run(
    *, store: str, call: tuple[str, dict[str, Any]], crash: tuple[str, int] | None = None
) -> None:
    """Make one call; die at the nth time of a step."""
    name, arguments = call
    with closing(
        opened(store, step=crash_at(crash[0], nth=crash[1]) if crash else no_step)
    ) as mesh:
        attrgetter(name)(mesh)(**arguments)
    print(json.dumps("done"), flush=True)


if __name__ == "__main__":
    run(**json.loads(sys.stdin.readline()))
