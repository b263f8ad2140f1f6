"""Links between memories: which ones a new memory gets, and their types."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_mesh.core.model import Link, Memory, iso

MIN_SIMILARITY = 0.5  # a link needs more
# The types of links that memory-mesh makes, each with what makes it. Callers add others, by any name.
MADE_BY_US: Mapping[str, str] = {
    "similar": "store makes it",
    "supersedes": "use evolve, or store a claim that supersedes",
    "digest_of": "auto_compress makes it",
}
LINK_TYPES = (*MADE_BY_US, "related", "cause")
MAX_LINKS = 5  # similar memories that a memory links to, and that link to it


def link(source: Memory, target: Memory, link_type: str, ms: int, similarity: float | None = None) -> Link:
    """Return a link. There is one of each type from one memory to another."""
    scope: dict[str, Any] = source.scope
    return Link(
        id=f"{source.id}>{target.id}:{link_type}", created_at=iso(ms), ref=source.id, target=target.id, link_type=link_type,
        similarity=similarity, **scope,
    )  # fmt: skip


def choose(
    source: Memory, similar: Iterable[tuple[Memory, float]], incoming: Mapping[str, Sequence[Link]], ms: int
) -> list[Link]:
    """Return the links of a new memory to similar ones, best first.

    `incoming` has the links to each of them so far. A memory with enough of them gets one more only if it is better than the
    worst one, which it replaces (`replaced`).
    """
    enough = [(target, cosine) for target, cosine in similar if cosine > MIN_SIMILARITY]
    links: list[Link] = []
    for target, cosine in sorted(enough, key=lambda pair: (-pair[1], pair[0].id)):
        others = incoming.get(target.id, ())
        if len(others) < MAX_LINKS or cosine > min(each.similarity or 0.0 for each in others):
            links.append(link(source, target, "similar", ms, round(cosine, 6)))
        if len(links) == MAX_LINKS:
            break
    return links


def replaced(incoming: Sequence[Link]) -> list[Link]:
    """Return the links to one memory that better ones replace."""
    best = sorted(incoming, key=lambda each: (-(each.similarity or 0.0), each.id))
    return best[MAX_LINKS:]
