"""Verifying over a store: chains, contents, heads, and writers that do not stand still."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from memory_mesh.core.audit import chain as audit
from memory_mesh.core.audit.chain import Broken, Sound
from memory_mesh.core.audit.export import verify_export
from memory_mesh.core.audit.parse import parse_many
from memory_mesh.core.audit.search_log import Recalls
from memory_mesh.core.errors import InvalidInput, StoreBusy
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Head, Memory
from memory_mesh.core.model.rows import Key
from memory_mesh.core.model.scope import Reader
from memory_mesh.flows import audit as trail
from memory_mesh.flows import change, erase, write
from memory_mesh.flows import memory_block as retain
from memory_mesh.flows import search_log as recalls
from memory_mesh.flows.audit import Which
from memory_mesh.flows.context import Desk, sealed


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """A desk whose searches leave blocks."""
    return replace(desk, recalls=Recalls())


def add(desk: Desk, *contents: str, **metadata: object) -> list[Memory]:
    return write.add_many(desk, [(content, metadata) for content in contents])


def own_chain(desk: Desk) -> str:
    return audit.chain_name(desk.who.user_id, desk.who.agent_id)


def verdict(desk: Desk) -> Sound | Broken:
    return trail.verify(desk, own_chain(desk))


def tamper(desk: Desk, id_: str, **columns: object) -> None:
    """What somebody with the file in hands might do to a memory."""
    held = Memory.of(desk.store.get(Kind.MEMORY, [id_])[id_])
    desk.store.apply([replace(held, **columns, revision=held.revision + 1).row(replaces=held.revision)])


def test_a_chain_is_read_from_its_first_block(desk: Desk) -> None:
    add(desk, "one", "two", "three")
    assert [block.number for block in trail.blocks(desk, own_chain(desk))] == [1, 2, 3]
    assert isinstance(verdict(desk), Sound)
    assert verdict(desk).number == 3


@pytest.mark.req("MESH-042")
def test_a_content_that_was_changed_behind_the_chains_back_is_found(desk: Desk) -> None:
    one, two = add(desk, "one", "two")
    tamper(desk, one.id, pinned=True)
    assert isinstance(verdict(desk), Sound)  # the content is what is sealed
    tamper(desk, two.id, content="two, forged")
    assert verdict(desk).number == 2
    assert two.id in verdict(desk).reason


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("salt", [None, "", "0" * 32])
def test_taking_the_salt_away_does_not_hide_it(desk: Desk, salt: str | None) -> None:
    (one,) = add(desk, "one")
    tamper(desk, one.id, content="forged", salt=salt)
    assert isinstance(verdict(desk), Broken)


@pytest.mark.req("MESH-042")
def test_putting_an_older_revision_back_is_found(desk: Desk) -> None:
    (one,) = add(desk, "one")
    change.update(desk, one.id, content="changed")
    assert isinstance(verdict(desk), Sound)
    tamper(desk, one.id, content="one")
    assert isinstance(verdict(desk), Broken)


@pytest.mark.req("MESH-042")
def test_a_memory_that_is_gone_without_an_erasure_is_found(desk: Desk) -> None:
    one, two, three = add(desk, "one", "two", "three")
    erase.erase(desk, [three.id])
    assert isinstance(verdict(desk), Sound)
    desk.store.apply((), [Key(Kind.MEMORY, two.id)])
    assert verdict(desk) == Broken(
        own_chain(desk), 2, trail.blocks(desk, own_chain(desk))[1].id, f"{two.id} is gone and no erasure tells of it"
    )
    assert one.id


def test_a_memory_that_another_agent_changed_is_sound_in_both_chains(desk: Desk) -> None:
    bob = replace(desk, who=Reader("u", "bob"))
    (one,) = add(desk, "one")
    change.update(bob, one.id, content="by bob")
    change.update(desk, one.id, content="by ann again")
    assert [type(found) for found in trail.verify_all(desk)] == [Sound, Sound]
    tamper(desk, one.id, content="by bob")
    assert Broken in [type(found) for found in trail.verify_all(desk)]


def test_more_memories_than_are_read_at_once_are_all_looked_at(desk: Desk) -> None:
    kept = add(desk, *(f"text {n}" for n in range(520)))
    assert verdict(desk).number == 520
    tamper(desk, max(memory.id for memory in kept), content="forged")
    assert isinstance(verdict(desk), Broken)


# --- which chains there are ---


@pytest.mark.req("MESH-041")
def test_each_user_and_agent_has_its_own_chain_and_a_reader_meets_those_of_its_user(desk: Desk) -> None:
    for user, agent in (("u", "ann"), ("u", "bob"), ("v", "ann"), (None, "ann")):
        add(replace(desk, who=Reader(user, agent)), f"{user} {agent}")
    assert [audit.owner_of(head.id) for head in trail.heads(desk)] == [("u", "ann"), ("u", "bob")]
    assert [audit.owner_of(found.chain) for found in trail.verify_all(desk)] == [("u", "ann"), ("u", "bob")]
    assert [head.number for head in trail.heads(replace(desk, who=Reader(None, "x")))] == [1]
    assert trail.verify_all(replace(desk, who=Reader("nobody", "x"))) == []


@pytest.mark.req("MESH-042")
def test_a_block_in_a_chain_of_another_user_makes_no_forged_content_good(desk: Desk) -> None:
    (one,) = add(desk, "one")
    tamper(desk, one.id, content="forged")
    forged = replace(desk, who=Reader("mallory", "ann"))
    held = Memory.of(desk.store.get(Kind.MEMORY, [one.id])[one.id])
    chain = audit.chain_name("mallory", "ann")
    desk.store.apply(sealed(forged, chain, [retain.entry(forged, 1_760_000_000_000, held, "update")]))
    assert isinstance(trail.verify(desk, chain), Sound)
    assert isinstance(verdict(desk), Broken)


@pytest.mark.req("MESH-042")
def test_a_chain_whose_head_was_taken_away_is_found_by_its_blocks(desk: Desk) -> None:
    add(desk, "one")
    desk.store.apply((), [Key(Kind.HEAD, own_chain(desk))])
    (found,) = trail.verify_all(desk)
    assert isinstance(found, Broken)


@pytest.mark.req("MESH-042")
def test_a_chain_whose_blocks_were_taken_away_is_found_by_its_head(desk: Desk) -> None:
    add(desk, "one", "two")
    desk.store.apply((), [Key(Kind.BLOCK, block.id) for block in trail.blocks(desk, own_chain(desk))])
    assert trail.verify_all(desk) == [Broken(own_chain(desk), 0, None, "the chain ends at block 0, its head says 2")]


def test_a_head_that_names_no_chain_of_ours_breaks_nothing_else(desk: Desk) -> None:
    add(desk, "one")
    desk.store.apply([Head(id="nonsense", created_at="2026-01-01T00:00:00.000Z", number=3, block_hash="h").row()])
    assert [type(found) for found in trail.verify_all(desk)] == [Sound]
    (forged,) = trail.verify_all(replace(desk, who=Reader(None, "x")))
    assert (type(forged), forged.chain) == (Broken, "nonsense")


@pytest.mark.req("MESH-042")
def test_a_noted_head_is_checked_against_the_store(desk: Desk) -> None:
    add(desk, "one", "two")
    (head,) = trail.heads(desk)
    add(desk, "three")
    assert isinstance(trail.verify(desk, own_chain(desk), noted=(head.number, head.block_hash)), Sound)
    assert isinstance(trail.verify(desk, own_chain(desk), noted=(head.number, "0" * 64)), Broken)
    assert isinstance(trail.verify(desk, own_chain(desk), noted=(9, head.block_hash)), Broken)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("cut", [1, 2])
def test_a_chain_cut_together_with_its_head_is_found_by_a_noted_one(desk: Desk, cut: int) -> None:
    memories = add(desk, "one", "two", "three")
    (head,) = trail.heads(desk)
    walked = trail.blocks(desk, own_chain(desk))
    left = walked[-cut - 1]
    desk.store.apply(
        [replace(head, number=left.number, block_hash=left.block_hash, revision=head.revision + 1).row()],
        [*(Key(Kind.BLOCK, block.id) for block in walked[-cut:]), *(Key(Kind.MEMORY, memory.id) for memory in memories[-cut:])],
    )
    assert isinstance(verdict(desk), Sound)  # by itself it cannot be told
    assert isinstance(trail.verify(desk, own_chain(desk), noted=(head.number, head.block_hash)), Broken)


# --- writers that do not stand still ---


MEDDLING: dict[str, Callable[[Desk, list[Memory]], object]] = {
    "adds": lambda desk, kept: add(desk, f"more {desk.store.count(Kind.BLOCK)}"),
    "changes": lambda desk, kept: change.update(desk, kept[0].id, content=f"changed {desk.store.count(Kind.BLOCK)}"),
    "erases": lambda desk, kept: erase.erase(desk, [kept.pop().id]),
}


@pytest.mark.parametrize("what", MEDDLING)
@pytest.mark.parametrize("agent", ["ann", "bob"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whoever_writes_while_the_chain_is_read_breaks_nothing(desk: Desk, what: str, agent: str, when: str) -> None:
    kept = add(desk, "one", "two", "three", "four")
    writer = replace(desk, who=Reader("u", agent))
    find, left = desk.store.find, [True] * 3

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is Kind.BLOCK and left:
            left.pop()
            desk.store.find = find
            MEDDLING[what](writer, kept)
            desk.store.find = meddled
        return rows if when == "after" else find(kind, *args, **options)

    desk.store.find = meddled
    found = verdict(desk)
    desk.store.find = find
    assert len(left) < 3
    assert isinstance(found, Sound), found


@pytest.mark.parametrize("what", ["adds", "changes"])
@pytest.mark.parametrize("agent", ["ann", "bob"])
def test_a_whole_chain_is_sound_even_while_others_never_stop_writing(desk: Desk, what: str, agent: str) -> None:
    kept = add(desk, "one", "two", "three", "four")
    writer = replace(desk, who=Reader("u", agent))
    find, writes = desk.store.find, []

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is not Kind.HEAD:
            desk.store.find = find
            writes.append(MEDDLING[what](writer, kept))
            desk.store.find = meddled
        return rows

    desk.store.find = meddled
    found = verdict(desk)
    desk.store.find = find
    assert isinstance(found, Sound), found
    assert 3 < len(writes) < 30


def test_a_real_break_is_told_even_while_others_never_stop_writing(desk: Desk) -> None:
    one, two = add(desk, "one", "two")
    tamper(desk, one.id, content="forged")
    find = desk.store.find

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is Kind.BLOCK:
            desk.store.find = find
            change.update(desk, two.id, content=f"changed {desk.store.count(Kind.BLOCK)}")
            desk.store.find = meddled
        return rows

    desk.store.find = meddled
    found = verdict(desk)
    desk.store.find = find
    assert isinstance(found, Broken)


def test_a_tombstone_is_written_over_its_block(desk: Desk) -> None:
    (one,) = add(desk, "one")
    erase.erase(desk, [one.id])
    first = Block.of(desk.store.get(Kind.BLOCK, [trail.blocks(desk, own_chain(desk))[0].id]).popitem()[1])
    assert (first.yamo_text, first.revision) == ("erased", 2)


@pytest.mark.parametrize("shape", ["{} {}", "{};{}", "{}\n{}", "{}\u2028{}", "{}"])
def test_a_tombstone_is_sound_whatever_shape_the_callers_own_ids_have(desk: Desk, shape: str) -> None:
    numbers = count()

    class Odd:
        def new(self, prefix: str, ms: int) -> str:
            return shape.format(next(numbers), prefix)

        def salt(self) -> str:
            return "salt"

    odd = replace(desk, ids=Odd())
    one, _ = add(odd, "one", "two")
    erase.erase(odd, [one.id])
    assert trail.blocks(odd, own_chain(odd))[0].yamo_text == "erased"
    assert isinstance(verdict(odd), Sound)


# --- searches ---


def search(desk: Desk, *queries: str) -> None:
    for query in queries:
        recalls.note(desk, query=query, limit=10, filter=None, ms=desk.clock(), answers=[])
    recalls.flush(desk)


def searches(desk: Desk) -> str:
    return audit.chain_name(desk.who.user_id, desk.who.agent_id, recalls=True)


@pytest.mark.req("MESH-041", "MESH-042")
def test_the_chains_of_searches_are_verified_with_the_others(desk: Desk) -> None:
    add(desk, "one")
    search(desk, "tea", "coffee")
    assert [(found.chain, found.number) for found in trail.verify_all(desk)] == [(own_chain(desk), 1), (searches(desk), 2)]
    block = trail.blocks(desk, searches(desk))[1]
    desk.store.apply((), [Key(Kind.BLOCK, block.id)])
    assert [type(found) for found in trail.verify_all(desk)] == [Sound, Broken]


def test_chains_are_chosen_by_agent_and_kind(desk: Desk) -> None:
    for agent in ("ann", "bob"):
        other = replace(desk, who=Reader("u", agent))
        add(other, agent)
        search(other, "tea")
    chosen = {
        (agent, kind): len(trail.verify_all(desk, Which(agent_id=agent, recalls=kind)))
        for agent in (None, "ann", "nobody")
        for kind in (None, True, False)
    }
    assert chosen == {
        (None, None): 4, (None, True): 2, (None, False): 2,
        ("ann", None): 2, ("ann", True): 1, ("ann", False): 1,
        ("nobody", None): 0, ("nobody", True): 0, ("nobody", False): 0,
    }  # fmt: skip


@pytest.mark.req("MESH-042")
def test_a_noted_head_may_be_of_any_chain(desk: Desk) -> None:
    add(desk, "one")
    search(desk, "tea")
    noted = [(head.number, head.block_hash) for head in trail.heads(desk)]
    add(desk, "two")
    search(desk, "coffee")
    for head in noted:
        assert [type(found) for found in trail.verify_all(desk, noted=head)] == [Sound, Sound]
    assert [type(found) for found in trail.verify_all(desk, noted=(1, "0" * 64))] == [Sound, Sound, Broken]
    (_, missed) = trail.verify_all(desk, Which(recalls=False), noted=noted[1])
    assert (missed.chain, missed.number) == (own_chain(desk), 1)


# --- windows: long chains are read in parts ---


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "_WINDOW", 2)


@pytest.mark.req("MESH-042")
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("number", [None, -5, 0, 10, 11, 500])
@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_a_block_is_missed_and_found_wherever_its_number_puts_it(desk: Desk, at: int, number: int | None) -> None:
    add(desk, *(f"text {n}" for n in range(9)))
    walked = trail.blocks(desk, own_chain(desk))
    assert list(trail._in_order(desk, own_chain(desk), trail.heads(desk)[0])) == walked
    assert verdict(desk).number == 9
    desk.store.apply((), [Key(Kind.BLOCK, walked[at - 1].id)])
    moved = [] if number is None else [replace(walked[at - 1], number=number)]
    desk.store.apply([block.row() for block in moved])
    assert len(list(trail._in_order(desk, own_chain(desk), trail.heads(desk)[0]))) == 8 + len(moved)
    assert isinstance(verdict(desk), Broken)


# --- what the chains say ---


def test_the_log_is_newest_first_and_of_what_is_asked_for(desk: Desk) -> None:
    (one,) = add(desk, "one")
    desk.clock.advance(seconds=1)
    search(desk, "tea")
    desk.clock.advance(seconds=1)
    change.update(desk, one.id, content="changed")
    add(replace(desk, who=Reader("v", "ann")), "another user's")
    assert [block.operation_type for block in trail.log(desk)] == ["retain", "recall", "retain"]
    assert [block.number for block in trail.log(desk, limit=1)] == [2]
    assert len(trail.log(desk, operation="recall")) == len(trail.log(desk, which=Which(recalls=True))) == 1
    assert len(trail.log(desk, operation="retain")) == len(trail.log(desk, which=Which(recalls=False))) == 2
    assert trail.log(desk, operation="lesson") == trail.log(desk, which=Which(agent_id="bob")) == []


@pytest.mark.parametrize("options", [{"operation": "delete"}, {"limit": 0}, {"limit": True}, {"limit": "5"}])
def test_a_log_of_what_there_cannot_be_is_refused(desk: Desk, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        trail.log(desk, **options)


@pytest.mark.usefixtures("narrow")
def test_an_export_is_every_block_of_the_user_and_can_be_verified_alone(desk: Desk) -> None:
    one, *_ = add(desk, "one", "two", "three")
    search(desk, "tea", "coffee", "water")
    erase.erase(desk, [one.id])
    add(replace(desk, who=Reader("v", "ann")), "another user's")
    lines = list(trail.export(desk, as_json=True))
    assert len(lines) == 7
    assert not any("another user" in line for line in lines)
    assert verify_export(lines) == trail.verify_all(desk)


def test_an_export_in_the_wire_format_is_what_the_parser_reads(desk: Desk) -> None:
    one, _ = add(desk, "one", "two")
    search(desk, "tea; or\nnot")
    erase.erase(desk, [one.id])
    text = "".join(trail.export(desk))
    read = parse_many(text)
    assert [block.intent for block in read] == [
        "store_memory_for_future_retrieval", "erase_memory_for_good", "recall_relevant_memories",
    ]  # fmt: skip
    assert "".join(block.text() for block in read) == text


@pytest.mark.usefixtures("narrow")
def test_an_export_during_which_old_searches_go_is_none(desk: Desk) -> None:
    search(desk, *"abcdefgh")
    desk.clock.ms += 91 * 86_400_000
    export = trail.export(desk, as_json=True)
    lines = [next(export)]
    assert recalls.prune(desk).removed == 8
    with pytest.raises(StoreBusy, match="export again"):
        lines.extend(export)
    assert [type(found) for found in verify_export(trail.export(desk, as_json=True))] == [Sound]


def test_an_export_tells_how_far_it_is(desk: Desk) -> None:
    add(desk, *(f"text {n}" for n in range(510)))
    told: list[tuple[str, int, int]] = []
    assert len(list(trail.export(desk, progress=lambda *said: told.append(said)))) == 510
    assert told == [("exporting", 500, 510)]
