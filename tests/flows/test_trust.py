"""The trust of memories that were derived from others."""

from collections.abc import Sequence

import pytest

from memory_mesh.core.model import Memory, iso
from memory_mesh.flows.context import Context
from memory_mesh.flows.search import readable

AT = iso(1_767_225_600_000)


def memory(id_: str, base: float | None, *sources: str, disputes: int = 0) -> Memory:
    return Memory(
        id=id_,
        content=id_,
        created_at=AT,
        updated_at=AT,
        user_id="u",
        trust=base,
        sources=list(sources),
        disputes=disputes,
    )


def trusted(context: Context, *memories: Memory) -> list[float]:
    """Store the memories and return their trusts."""
    context.store.apply([each.row() for each in memories])
    found = readable.trusts(context, memories)
    return [round(found[each.id].value, 6) for each in memories]


@pytest.mark.req("GRAPH-61")
@pytest.mark.parametrize(
    ("memories", "expected"),
    [
        ([memory("a", 0.9), memory("b", None)], [0.9, 0.5]),
        ([memory("a", 0.9), memory("b", 0.6), memory("c", 1.0, "a", "b")], [0.9, 0.6, 0.6]),
        ([memory("a", 0.6), memory("b", 1.0, "a"), memory("c", 1.0, "b")], [0.6, 0.6, 0.6]),
        ([memory("a", 0.9, disputes=1), memory("b", 1.0, "a")], [0.75, 0.75]),
        ([memory("a", 0.7), memory("b", 0.5, "a")], [0.7, 0.5]),  # a source raises nothing
        # A cycle ends.
        ([memory("a", 0.7, "b"), memory("b", 0.6, "c"), memory("c", 0.9, "a")], [0.6, 0.6, 0.6]),
        ([memory("a", 0.9, "erased")], [0.9]),
    ],
)
def test_a_memory_is_trusted_no_more_than_the_least_of_its_sources(
    context: Context, memories: Sequence[Memory], expected: list[float]
) -> None:
    assert trusted(context, *memories) == expected


@pytest.mark.req("GRAPH-61")
def test_sources_that_are_not_read_count_as_inferences(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = [memory("m0", 0.9), *(memory(f"m{n}", 0.9, f"m{n - 1}") for n in range(1, 5))]
    context.store.apply([each.row() for each in chain])
    assert readable.trusts(context, chain[-1:])["m4"].value == 0.9
    monkeypatch.setattr(readable, "_MAX_LEVELS", 2)
    assert readable.trusts(context, chain[-1:])["m4"].value == 0.5
    monkeypatch.setattr(readable, "_MAX_LEVELS", 16)
    monkeypatch.setattr(readable, "_MAX_SOURCES", 1)
    assert readable.trusts(context, chain[-1:])["m4"].value == 0.5


@pytest.mark.req("GRAPH-61")
def test_age_lowers_the_trust_of_sources_at_the_time_that_is_asked_for(context: Context) -> None:
    source, digest = memory("a", 0.8), memory("b", 1.0, "a")
    context.store.apply([source.row(), digest.row()])
    year = 365 * 86_400_000
    assert readable.trusts(context, [digest])["b"].least_source == 0.8
    assert readable.trusts(context, [digest], ms=context.clock() + year)[
        "b"
    ].value == pytest.approx(0.7)
