"""Digests quote groups of linked memories within one scope, once, and nothing of the originals
is lost."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.graph import connected
from memory_mesh.core.model import Kind, Link, Memory, Reader, Status, equals, iso
from memory_mesh.flows.context import Context
from memory_mesh.flows.learning import heartbeat
from memory_mesh.flows.search.readable import trusts
from memory_mesh.flows.upkeep import consolidate, erase
from memory_mesh.flows.upkeep.consolidate import auto_compress

from .claiming import change, connect, read, stored

TEXTS = (
    "Ana planted tomatoes in March.",
    "The tomatoes need water each morning.",
    "Bo harvested nine ripe tomatoes.",
)


def group(context: Context, texts: tuple[str, ...] = TEXTS, **columns: Any) -> list[Memory]:
    """Memories that are linked one to the next."""
    every = [stored(context, text, **columns) for text in texts]
    for one, other in pairwise(every):
        connect(context, one, other)
    return every


def ids(memories: list[Memory]) -> set[str]:
    return {memory.id for memory in memories}


@pytest.mark.parametrize(
    ("links", "max_size", "expected"),
    [
        ([], None, []),
        ([("a", "b", 0.6), ("c", "d", 0.9), ("b", "e", 0.7)], None, [["a", "b", "e"], ["c", "d"]]),
        (
            [("a", "b", 0.9), ("b", "c", 0.6), ("c", "d", 0.8), ("a", "a", 1.0)],
            2,
            [["a", "b"], ["c", "d"]],
        ),
        ([("a", "b", 0.9), ("b", "a", 0.9), ("b", "c", 0.6)], 3, [["a", "b", "c"]]),
    ],
    ids=["none", "two", "weak links are cut first", "both ways"],
)
def test_connected_ids_are_groups_of_bounded_size(
    links: Any, max_size: int | None, expected: list[list[str]]
) -> None:
    assert connected(links, max_size=max_size) == expected


@pytest.mark.req("GRAPH-37", "GRAPH-38")
def test_a_digest_quotes_its_sources_and_has_their_highest_importance_all_tags_and_least_trust(
    context: Context,
) -> None:
    members = group(context)
    for memory, columns in zip(
        members, ({"trust": 0.9}, {"trust": 0.6}, {"trust": 0.95}), strict=True
    ):
        change(
            context,
            memory.id,
            **columns,
            importance=columns["trust"],
            tags=["garden", f"t{columns['trust']}"],
        )
    done = auto_compress(context)
    (digest,) = done.digests
    lines = digest.content.splitlines()
    assert 1 <= len(lines) <= 2
    assert {*lines} <= {*TEXTS}
    assert (digest.category, digest.importance, {*digest.sources}) == ("digest", 0.95, ids(members))
    assert digest.tags == [
        "garden",
        *(f"t{read(context, id_).trust}" for id_ in sorted(ids(members))),
    ]
    least = min(
        trust.value
        for trust in trusts(context, [read(context, memory.id) for memory in members]).values()
    )
    assert trusts(context, [read(context, digest.id)])[digest.id].value == pytest.approx(least)
    links = [Link.of(row) for row in context.store.find(Kind.LINK, equals("ref", digest.id))]
    assert {(one.target, one.link_type) for one in links} == {
        (id_, "digest_of") for id_ in ids(members)
    }
    assert {read(context, id_).status for id_ in ids(members)} == {"active"}  # the originals stay
    heartbeat.guard(context)


@pytest.mark.req("GRAPH-37", "GRAPH-38")
def test_a_second_run_makes_no_digest_and_new_memories_get_their_own(context: Context) -> None:
    members = group(context)
    (first,) = auto_compress(context).digests
    assert auto_compress(context).digests == ()
    more = group(
        context,
        (
            "Cy sold tomatoes at the market.",
            "The market opens at nine.",
            "The stall costs ten euros.",
        ),
    )
    connect(context, members[0], more[0])
    assert [{*one.sources} for one in auto_compress(context).digests] == [ids(more)]
    # Without its digest, a group is digested again.
    change(context, first.id, status=Status.ARCHIVED.value)
    assert [{*one.sources} for one in auto_compress(context).digests] == [ids(members)]


@pytest.mark.req("GRAPH-38")
def test_by_default_at_most_five_digests_of_at_least_three_memories_the_largest_first(
    context: Context,
) -> None:
    pair = group(context, ("The pump hums loudly.", "The pump needs oil."))
    large = group(context, tuple(f"Note {n} is about the harvest of week {n}." for n in range(4)))
    for n in range(5):
        group(context, tuple(f"Part {part} of plan {n} is ready." for part in range(3)))
    done = auto_compress(context)
    assert [len(one.sources) for one in done.digests] == [4, 3, 3, 3, 3]
    assert {*done.digests[0].sources} == ids(large)
    assert [len(one.sources) for one in auto_compress(context, max_digests=9).digests] == [3]
    assert [{*one.sources} for one in auto_compress(context, min_cluster_size=2).digests] == [
        ids(pair)
    ]


@pytest.mark.req("GRAPH-38")
def test_only_active_valid_memories_of_one_scope_are_digested_together(context: Context) -> None:
    now, bob = context.clock(), replace(context, reader=Reader("u", "bob"))
    for columns in (
        {"status": Status.QUARANTINED.value},
        {"memory_type": "lesson"},
        {"valid_until": iso(now - 1)},
        {"expires_at": iso(now - 1)},
    ):
        members = group(context, tuple(f"{text} {columns}" for text in TEXTS))
        change(context, members[1].id, **columns)
    mixed = group(context, ("Ann keeps bees.", "The bees like lavender."))
    connect(context, mixed[0], stored(bob, "Bob keeps bees too."))
    assert auto_compress(context).digests == ()
    of_bob = group(bob, tuple(text.replace("tomatoes", "beans") for text in TEXTS))
    assert auto_compress(context, agent="ann").digests == ()
    (digest,) = auto_compress(context, agent="bob").digests
    assert (digest.agent_id, {*digest.sources}) == ("bob", ids(of_bob))
    assert read(context, digest.id).partition == of_bob[0].partition


@pytest.mark.req("GRAPH-37")
def test_originals_are_archived_only_if_asked_and_pinned_ones_never(context: Context) -> None:
    members = group(context)
    change(context, members[0].id, pinned=True)
    auto_compress(context)
    done = auto_compress(context, archive_originals=True)  # also those of an earlier run
    assert (done.digests, {*done.archived}) == ((), ids(members[1:]))
    assert [read(context, memory.id).status for memory in members] == [
        "active",
        "archived",
        "archived",
    ]
    assert auto_compress(context, archive_originals=True) == consolidate.Compressed()


@pytest.mark.req("GRAPH-38")
def test_a_digest_loses_the_words_of_an_erased_source(context: Context) -> None:
    members = group(context)
    (digest,) = auto_compress(context).digests
    quoted = next(memory for memory in members if memory.content in digest.content)
    erase.delete(context, [quoted.id])
    assert quoted.content not in read(context, digest.id).content
    assert quoted.id not in read(context, digest.id).sources


def test_of_two_processes_one_makes_the_digest(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    group(context)
    clusters = consolidate.find_clusters(context, min_size=3)
    (digest,) = auto_compress(context).digests
    monkeypatch.setattr(consolidate, "find_clusters", lambda *args, **options: clusters)
    assert auto_compress(context).digests == ()
    assert context.store.count(Kind.MEMORY, equals("category", "digest")) == 1
    assert read(context, digest.id).status == "active"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_digests": 0},
        {"min_cluster_size": 1},
        {"archive_originals": "yes"},
        {"method": "llm"},
        {"method": []},
        {"agent": 5},
    ],
    ids=str,
)
def test_an_option_that_is_not_valid_is_refused(context: Context, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        auto_compress(context, **wrong)
