"""Verification over a store: chains, contents, heads, and concurrent writers."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from itertools import count

import pytest

from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Sound, parse_many, verify_export
from memory_mesh.core.audit.chain import NOT_SEALED, SEALED
from memory_mesh.core.errors import InvalidInput, StoreBusy
from memory_mesh.core.model import Block, Head, Key, Kind, Memory, Reader, Row, equals, iso, revise
from memory_mesh.flows.audit import audit as trail
from memory_mesh.flows.audit import chains
from memory_mesh.flows.audit.audit import ChainSelection
from memory_mesh.flows.audit.chains import audit_rows, retain_entry
from memory_mesh.flows.context import Context
from memory_mesh.flows.search import usage
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import write

from .adding import add_many


@pytest.fixture
def context(context: Context) -> Context:
    """A context whose searches leave blocks."""
    return context.with_options(audit_recalls=True)


def add(context: Context, *contents: str, **metadata: object) -> list[Memory]:
    return add_many(context, [(content, metadata) for content in contents])


def own_chain(context: Context) -> str:
    return audit.chain_name(context.reader.user_id, context.reader.agent_id)


def verdict(context: Context) -> Sound | Broken:
    return trail.verify(context, own_chain(context))


def tamper(context: Context, id_: str, **columns: object) -> None:
    """What somebody with the file in hands might do to a memory."""
    held = Memory.of(context.store.get(Kind.MEMORY, [id_])[id_])
    context.store.apply([replace(held, **columns).row(replaces=held.revision)])


def test_a_chain_is_read_from_its_first_block(context: Context) -> None:
    add(context, "one", "two", "three")
    assert [block.number for block in chains.blocks(context, own_chain(context))] == [1, 2, 3]
    assert isinstance(verdict(context), Sound)
    assert verdict(context).number == 3


@pytest.mark.req("MESH-042")
def test_a_content_that_was_changed_behind_the_chains_back_is_found(context: Context) -> None:
    _, two = add(context, "one", "two")
    assert isinstance(verdict(context), Sound)
    tamper(context, two.id, content="two, forged")
    assert verdict(context).number == 2
    assert two.id in verdict(context).reason


FORGED: dict[str, object] = {
    "metadata": {"source": "forged"}, "user_id": "mallory", "agent_id": "bob", "session_id": "s9",
    "project": "p", "memory_type": "agent", "reach": "agent", "category": "rule",
    "tags": ["ops", "forged"], "status": "archived", "importance": 0.9, "trust": 1.0,
    "confidence": 0.9, "created_at": iso(1), "event_time": iso(1), "valid_from": iso(1),
    "valid_until": iso(1), "expires_at": iso(1), "last_observed": iso(1), "times_observed": 9,
    "pinned": True, "speaker": "Eve", "turn": 7, "superseded_by": "mem_1", "supersedes": ["mem_1"],
    "sources": ["mem_1"], "heritage_chain": {"a": 1}, "claim": {"subject": "ana"},
    "corroborations": 2, "reinforcements": 1, "disputes": 1, "entities": ["project:atlas"],
    "feedback_score": 2.0, "feedback_count": 3,
    "lesson_pattern_id": "0" * 16, "source_skill_id": "skill", "key": "profile", "revision": 9,
}  # fmt: skip


def test_every_column_of_a_memory_is_sealed_or_listed_as_not_sealed() -> None:
    assert sorted({*SEALED, *NOT_SEALED}) == sorted(field.name for field in fields(Memory))
    assert sorted(FORGED) == sorted(SEALED)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("changed", [False, True], ids=["as added", "after an update"])
def test_a_column_that_was_changed_behind_the_chains_back_is_found(
    context: Context, changed: bool
) -> None:
    (one,) = add(context, "one", source="here", tags=["ops"], importance=0.5)
    if changed:
        write.update(context, one.id, metadata={"source": "there"})
        one = write.set_columns(context, one.id, action="trust", trust=0.25)
    for name, forged in FORGED.items():
        assert isinstance(verdict(context), Sound)
        tamper(context, one.id, **{name: forged})
        assert isinstance(verdict(context), Broken), name
        tamper(context, one.id, **{name: getattr(one, name)})


@pytest.mark.req("MESH-042")
def test_columns_that_are_counted_or_derived_may_change_without_a_block(context: Context) -> None:
    (one,) = add(context, "one")
    tamper(
        context,
        one.id,
        pending=True,
        keywords=["one", "uno"],
        updated_at=iso(1),
        number=7,
        fingerprint="other",
    )
    assert isinstance(verdict(context), Sound)


# --- history ---


def changed_twice(context: Context) -> Memory:
    (one,) = add(context, "one", source="first")
    write.update(context, one.id, content="two", why="a correction")
    return write.update(context, one.id, content="three", metadata={"source": "third"})


def history(context: Context, id_: str) -> list[Row]:
    return sorted(context.store.find(Kind.CHANGE, equals("ref", id_)), key=lambda row: row.number)


HISTORY: dict[str, Callable[[Row], Row | None]] = {
    "removed": lambda _: None,
    "an old content": lambda row: edited(
        row, before={**row.value("before"), "content": "never said"}
    ),
    "an old value removed": lambda row: edited(row, before={}),
    "an old value added": lambda row: edited(row, before={**row.value("before"), "trust": 0.1}),
    "an unknown name": lambda row: edited(row, before={**row.value("before"), "colour": "red"}),
    "the reason": lambda row: edited(row, why="no reason"),
    "the action": lambda row: edited(row, action="observe"),
    "the agent": lambda row: edited(row, agent_id="bob"),
    "the user": lambda row: edited(row, user_id="mallory"),
    "a detail": lambda row: edited(row, detail={"a": 1}),
    "the time": lambda row: replace(row, created_at=iso(1), replaces=row.revision),
    "the number": lambda row: replace(row, number=7, replaces=row.revision),
}


def edited(row: Row, **fields: object) -> Row:
    return replace(row, fields={**row.fields, **fields}, replaces=row.revision)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("at", [0, 1], ids=["first change", "last change"])
def test_a_history_row_that_was_edited_or_removed_is_found(context: Context, at: int) -> None:
    row = history(context, changed_twice(context).id)[at]
    for what, edit in HISTORY.items():
        assert isinstance(verdict(context), Sound)
        forged = edit(row)
        context.store.apply([forged] if forged else [], [] if forged else [row.key])
        assert isinstance(verdict(context), Broken), what
        context.store.apply([replace(row, replaces=row.revision if forged else 0)])


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_history_row_that_was_added_is_found(context: Context, number: int) -> None:
    row = history(context, changed_twice(context).id)[0]
    context.store.apply([replace(row, id=f"{row.value('ref')}#{number}x", number=number)])
    assert isinstance(verdict(context), Broken)


@pytest.mark.req("MESH-042")
def test_a_revision_without_a_block_is_found(context: Context) -> None:
    (one,) = add(context, "one")
    newer, change = revise(
        one, at=iso(context.clock()), by="ann", action="update", content="forged"
    )
    context.store.apply([newer.row(replaces=1), change.row(newer.partition)])
    assert verdict(context).reason == f"revision 2 of {one.id} was not sealed"


@pytest.mark.req("MESH-042")
def test_a_memory_with_a_block_gets_blocks_also_while_the_audit_is_off(context: Context) -> None:
    off = context.with_options(enable_yamo=False)
    (one,) = add(context, "one")
    (two,) = add(off, "two")
    add(off, "one", "two")  # observed again
    write.update(off, one.id, content="one, changed")
    write.update(off, two.id, content="two, changed")
    assert [block.ref for block in chains.blocks(context, own_chain(context))] == [one.id] * 3
    assert isinstance(verdict(context), Sound)
    write.update(context, two.id, metadata={"source": "now with the audit"})
    assert isinstance(verdict(context), Sound)
    tamper(context, two.id, content="forged")
    assert isinstance(verdict(context), Broken)


@pytest.mark.req("MESH-042")
def test_a_memory_that_loses_an_erased_source_gets_a_block_for_it(context: Context) -> None:
    one, two = add(context, "one", "two")
    (drawn,) = add(context, "drawn from both")
    write.set_columns(context, drawn.id, action="sources", sources=[one.id, two.id])
    proof = erase.delete(context, [one.id])
    last = chains.blocks(context, own_chain(context))[-2:]
    assert [block.metadata["action"] for block in last] == ["source_erased", "erase"]
    assert proof.blocks == (last[1].id,)
    assert isinstance(verdict(context), Sound)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("salt", [None, "", "0" * 32])
def test_taking_the_salt_away_does_not_hide_it(context: Context, salt: str | None) -> None:
    (one,) = add(context, "one")
    tamper(context, one.id, content="forged", salt=salt)
    assert isinstance(verdict(context), Broken)


@pytest.mark.req("MESH-042")
def test_putting_an_older_revision_back_is_found(context: Context) -> None:
    (one,) = add(context, "one")
    write.update(context, one.id, content="changed")
    assert isinstance(verdict(context), Sound)
    tamper(context, one.id, content="one")
    assert isinstance(verdict(context), Broken)


@pytest.mark.req("MESH-042")
def test_a_memory_that_is_gone_without_an_erasure_is_found(context: Context) -> None:
    one, two, three = add(context, "one", "two", "three")
    erase.delete(context, [three.id])
    assert isinstance(verdict(context), Sound)
    context.store.apply((), [Key(Kind.MEMORY, two.id)])
    assert verdict(context) == Broken(
        own_chain(context),
        2,
        chains.blocks(context, own_chain(context))[1].id,
        f"{two.id} is missing and no erasure block names it",
    )
    assert one.id


@pytest.mark.req("MESH-042", "MESH-012")
def test_an_erased_memory_that_is_put_back_is_found(context: Context) -> None:
    one, _ = add(context, "one", "two")
    copy = context.store.get(Kind.MEMORY, [one.id])[one.id]
    erase.delete(context, [one.id])
    assert isinstance(verdict(context), Sound)
    context.store.apply([copy])
    assert verdict(context).reason == f"{one.id} was erased, but is stored"


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("revised", [False, True])
def test_a_memory_that_was_hidden_in_another_partition_is_found(
    context: Context, revised: bool
) -> None:
    (one,) = add(context, "one")
    if revised:
        write.update(context, one.id, metadata={"type": "agent"})
    assert isinstance(verdict(context), Sound)
    row = context.store.get(Kind.MEMORY, [one.id])[one.id]
    context.store.apply([replace(row, partition='["u", "nobody"]', replaces=row.revision)])
    assert verdict(context).reason == f"{one.id} is stored in a partition of another scope"


def test_a_memory_that_another_agent_changed_is_sound_in_both_chains(context: Context) -> None:
    bob = replace(context, reader=Reader("u", "bob"))
    (one,) = add(context, "one")
    write.update(bob, one.id, content="by bob")
    write.update(context, one.id, content="by ann again")
    assert [type(found) for found in trail.verify_all(context)] == [Sound, Sound]
    tamper(context, one.id, content="by bob")
    assert Broken in [type(found) for found in trail.verify_all(context)]


def test_more_memories_than_are_read_at_once_are_all_looked_at(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail, "_AT_ONCE", 20)
    kept = add(context, *(f"text {n}" for n in range(30)))
    assert verdict(context).number == 30
    tamper(context, max(memory.id for memory in kept), content="forged")
    assert isinstance(verdict(context), Broken)


# --- which chains there are ---


@pytest.mark.req("MESH-041")
def test_each_user_and_agent_has_its_own_chain_and_a_reader_meets_those_of_its_user(
    context: Context,
) -> None:
    for user, agent in (("u", "ann"), ("u", "bob"), ("v", "ann"), (None, "ann")):
        add(replace(context, reader=Reader(user, agent)), f"{user} {agent}")
    assert [audit.owner_of(head.id) for head in trail.heads(context)] == [
        ("u", "ann"),
        ("u", "bob"),
    ]
    assert [audit.owner_of(found.chain) for found in trail.verify_all(context)] == [
        ("u", "ann"),
        ("u", "bob"),
    ]
    assert [head.number for head in trail.heads(replace(context, reader=Reader(None, "x")))] == [1]
    assert trail.verify_all(replace(context, reader=Reader("nobody", "x"))) == []


@pytest.mark.req("MESH-042")
def test_a_block_in_a_chain_of_another_user_makes_no_forged_content_good(context: Context) -> None:
    (one,) = add(context, "one")
    tamper(context, one.id, content="forged")
    forged = replace(context, reader=Reader("mallory", "ann"))
    held = Memory.of(context.store.get(Kind.MEMORY, [one.id])[one.id])
    chain = audit.chain_name("mallory", "ann")
    context.store.apply(
        audit_rows(forged, chain, [retain_entry(forged, 1_760_000_000_000, held, "update")])
    )
    assert isinstance(trail.verify(context, chain), Sound)
    assert isinstance(verdict(context), Broken)


@pytest.mark.req("MESH-042")
def test_a_chain_whose_head_was_taken_away_is_found_by_its_blocks(context: Context) -> None:
    add(context, "one")
    context.store.apply((), [Key(Kind.HEAD, own_chain(context))])
    (found,) = trail.verify_all(context)
    assert isinstance(found, Broken)


@pytest.mark.req("MESH-042")
def test_a_chain_whose_blocks_were_taken_away_is_found_by_its_head(context: Context) -> None:
    add(context, "one", "two")
    context.store.apply(
        (), [Key(Kind.BLOCK, block.id) for block in chains.blocks(context, own_chain(context))]
    )
    assert trail.verify_all(context) == [
        Broken(own_chain(context), 0, None, "the chain ends at block 0, but its head says 2")
    ]


def test_a_head_that_names_no_chain_of_ours_breaks_nothing_else(context: Context) -> None:
    add(context, "one")
    context.store.apply(
        [Head(id="nonsense", created_at="2026-01-01T00:00:00.000Z", number=3, block_hash="h").row()]
    )
    assert [type(found) for found in trail.verify_all(context)] == [Sound]
    (forged,) = trail.verify_all(replace(context, reader=Reader(None, "x")))
    assert (type(forged), forged.chain) == (Broken, "nonsense")


@pytest.mark.req("MESH-042")
def test_a_noted_head_is_checked_against_the_store(context: Context) -> None:
    add(context, "one", "two")
    (head,) = trail.heads(context)
    add(context, "three")
    assert isinstance(
        trail.verify(context, own_chain(context), noted=(head.number, head.block_hash)), Sound
    )
    assert isinstance(
        trail.verify(context, own_chain(context), noted=(head.number, "0" * 64)), Broken
    )
    assert isinstance(trail.verify(context, own_chain(context), noted=(9, head.block_hash)), Broken)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("cut", [1, 2])
def test_a_chain_cut_together_with_its_head_is_found_by_a_noted_one(
    context: Context, cut: int
) -> None:
    memories = add(context, "one", "two", "three")
    (head,) = trail.heads(context)
    walked = chains.blocks(context, own_chain(context))
    left = walked[-cut - 1]
    context.store.apply(
        [
            replace(
                head,
                number=left.number,
                block_hash=left.block_hash,
                seal=left.seal,
                revision=head.revision + 1,
            ).row()
        ],
        [
            *(Key(Kind.BLOCK, block.id) for block in walked[-cut:]),
            *(Key(Kind.MEMORY, memory.id) for memory in memories[-cut:]),
        ],
    )
    assert isinstance(verdict(context), Sound)  # by itself it cannot be told
    assert isinstance(
        trail.verify(context, own_chain(context), noted=(head.number, head.block_hash)), Broken
    )


# --- writers that do not stand still ---


MEDDLING: dict[str, Callable[[Context, list[Memory]], object]] = {
    "adds": lambda context, kept: add(context, f"more {context.store.count(Kind.BLOCK)}"),
    "changes": lambda context, kept: write.update(
        context, kept[0].id, content=f"changed {context.store.count(Kind.BLOCK)}"
    ),
    "erases": lambda context, kept: erase.delete(context, [kept.pop().id]),
}


@pytest.mark.parametrize("what", MEDDLING)
@pytest.mark.parametrize("agent", ["ann", "bob"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_writes_during_verification_are_not_reported_as_breaks(
    context: Context, what: str, agent: str, when: str
) -> None:
    kept = add(context, "one", "two", "three", "four")
    writer = replace(context, reader=Reader("u", agent))
    find, left = context.store.find, [True] * 3

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is Kind.BLOCK and left:
            left.pop()
            context.store.find = find
            MEDDLING[what](writer, kept)
            context.store.find = meddled
        return rows if when == "after" else find(kind, *args, **options)

    context.store.find = meddled
    found = verdict(context)
    context.store.find = find
    assert len(left) < 3
    assert isinstance(found, Sound), found


@pytest.mark.parametrize("what", ["adds", "changes"])
@pytest.mark.parametrize("agent", ["ann", "bob"])
def test_a_whole_chain_is_sound_even_while_others_never_stop_writing(
    context: Context, what: str, agent: str
) -> None:
    kept = add(context, "one", "two", "three", "four")
    writer = replace(context, reader=Reader("u", agent))
    find, writes = context.store.find, []

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is not Kind.HEAD:
            context.store.find = find
            writes.append(MEDDLING[what](writer, kept))
            context.store.find = meddled
        return rows

    context.store.find = meddled
    found = verdict(context)
    context.store.find = find
    assert isinstance(found, Sound), found
    assert 3 < len(writes) < 30


@pytest.mark.deep
def test_a_real_break_is_told_even_while_others_never_stop_writing(context: Context) -> None:
    one, two = add(context, "one", "two")
    tamper(context, one.id, content="forged")
    find = context.store.find

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is Kind.BLOCK:
            context.store.find = find
            write.update(context, two.id, content=f"changed {context.store.count(Kind.BLOCK)}")
            context.store.find = meddled
        return rows

    context.store.find = meddled
    found = verdict(context)
    context.store.find = find
    assert isinstance(found, Broken)


def test_a_tombstone_is_written_over_its_block(context: Context) -> None:
    (one,) = add(context, "one")
    erase.delete(context, [one.id])
    first = Block.of(
        context.store.get(Kind.BLOCK, [chains.blocks(context, own_chain(context))[0].id]).popitem()[
            1
        ]
    )
    assert (first.yamo_text, first.revision) == ("erased", 2)


@pytest.mark.parametrize("shape", ["{} {}", "{};{}", "{}\n{}", "{}\u2028{}", "{}"])
def test_a_tombstone_is_sound_whatever_shape_the_callers_own_ids_have(
    context: Context, shape: str
) -> None:
    numbers = count()

    class Odd:
        def new(self, prefix: str, ms: int) -> str:
            return shape.format(next(numbers), prefix)

        def salt(self) -> str:
            return "salt"

    odd = replace(context, ids=Odd())
    one, _ = add(odd, "one", "two")
    erase.delete(odd, [one.id])
    assert chains.blocks(odd, own_chain(odd))[0].yamo_text == "erased"
    assert isinstance(verdict(odd), Sound)


# --- searches ---


def search(context: Context, *queries: str) -> None:
    for query in queries:
        usage.log_search(
            context, query=query, limit=10, filter=None, ms=context.clock(), results=[]
        )
    usage.flush(context)


def searches(context: Context) -> str:
    return audit.chain_name(context.reader.user_id, context.reader.agent_id, recalls=True)


@pytest.mark.req("MESH-041", "MESH-042")
def test_the_chains_of_searches_are_verified_with_the_others(context: Context) -> None:
    add(context, "one")
    search(context, "tea", "coffee")
    assert [(found.chain, found.number) for found in trail.verify_all(context)] == [
        (own_chain(context), 1),
        (searches(context), 2),
    ]
    block = chains.blocks(context, searches(context))[1]
    context.store.apply((), [Key(Kind.BLOCK, block.id)])
    assert [type(found) for found in trail.verify_all(context)] == [Sound, Broken]


def test_chains_are_chosen_by_agent_and_kind(context: Context) -> None:
    for agent in ("ann", "bob"):
        other = replace(context, reader=Reader("u", agent))
        add(other, agent)
        search(other, "tea")
    chosen = {
        (agent, kind): len(trail.verify_all(context, ChainSelection(agent_id=agent, recalls=kind)))
        for agent in (None, "ann", "nobody")
        for kind in (None, True, False)
    }
    assert chosen == {
        (None, None): 4, (None, True): 2, (None, False): 2,
        ("ann", None): 2, ("ann", True): 1, ("ann", False): 1,
        ("nobody", None): 0, ("nobody", True): 0, ("nobody", False): 0,
    }  # fmt: skip


@pytest.mark.req("MESH-042")
def test_a_noted_head_may_be_of_any_chain(context: Context) -> None:
    add(context, "one")
    search(context, "tea")
    noted = [(head.number, head.block_hash) for head in trail.heads(context)]
    add(context, "two")
    search(context, "coffee")
    for head in noted:
        assert [type(found) for found in trail.verify_all(context, noted=head)] == [Sound, Sound]
    assert [type(found) for found in trail.verify_all(context, noted=(1, "0" * 64))] == [
        Sound,
        Sound,
        Broken,
    ]
    (_, missed) = trail.verify_all(context, ChainSelection(recalls=False), noted=noted[1])
    assert (missed.chain, missed.number) == (own_chain(context), 1)


@pytest.mark.req("MESH-042")
def test_a_forged_checkpoint_does_not_stand_for_a_noted_block(context: Context) -> None:
    """The chain of the noted block is removed, and a new chain of searches pretends that it
    began after that block."""
    add(context, "one", "two")
    (head,) = trail.heads(context)
    for noted in (head.block_hash, str(head.seal)):
        assert [type(found) for found in trail.verify_all(context, noted=(2, noted))] == [Sound]
    ms, chain = context.clock(), audit.chain_name("u", "mallory", recalls=True)
    through = {
        "through": 2,
        "through_hash": head.block_hash,
        "through_seal": head.seal,
        "removed": 2,
    }
    write = partial(audit.checkpoint, agent="mallory", at=iso(ms), **through)  # type: ignore[arg-type]
    entry = chains.new_entry(context, "recall", ms, write)
    (forged,), end = audit.append(chain, replace(head, id=chain), [entry])
    kinds = (Kind.MEMORY, Kind.BLOCK, Kind.HEAD)
    gone = [Key(kind, id_) for kind in kinds for id_ in context.store.ids(kind)]
    context.store.apply([forged.row(), replace(end, revision=1).row()], gone)
    # By itself it cannot be told.
    assert [type(found) for found in trail.verify_all(context)] == [Sound]
    for noted in (head.block_hash, str(head.seal)):
        assert Broken in [type(found) for found in trail.verify_all(context, noted=(2, noted))]


# --- windows: long chains are read in parts ---


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_WINDOW", 2)


@pytest.mark.sample(16)
@pytest.mark.req("MESH-042")
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("number", [None, -5, 0, 10, 11, 500])
@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_a_block_is_missed_and_found_wherever_its_number_puts_it(
    context: Context, at: int, number: int | None
) -> None:
    add(context, *(f"text {n}" for n in range(9)))
    walked = chains.blocks(context, own_chain(context))
    assert list(chains.in_order(context, own_chain(context), trail.heads(context)[0])) == walked
    assert verdict(context).number == 9
    context.store.apply((), [Key(Kind.BLOCK, walked[at - 1].id)])
    moved = [] if number is None else [replace(walked[at - 1], number=number)]
    context.store.apply([block.row() for block in moved])
    assert len(
        list(chains.in_order(context, own_chain(context), trail.heads(context)[0]))
    ) == 8 + len(moved)
    assert isinstance(verdict(context), Broken)


# --- what the chains say ---


def test_the_log_is_newest_first_and_of_what_is_asked_for(context: Context) -> None:
    (one,) = add(context, "one")
    context.clock.advance(seconds=1)
    search(context, "tea")
    context.clock.advance(seconds=1)
    write.update(context, one.id, content="changed")
    add(replace(context, reader=Reader("v", "ann")), "another user's")
    assert [block.operation_type for block in trail.log(context)] == ["retain", "recall", "retain"]
    assert [block.number for block in trail.log(context, limit=1)] == [2]
    assert (
        len(trail.log(context, operation="recall"))
        == len(trail.log(context, selection=ChainSelection(recalls=True)))
        == 1
    )
    assert (
        len(trail.log(context, operation="retain"))
        == len(trail.log(context, selection=ChainSelection(recalls=False)))
        == 2
    )
    assert (
        trail.log(context, operation="lesson")
        == trail.log(context, selection=ChainSelection(agent_id="bob"))
        == []
    )


@pytest.mark.parametrize(
    "options", [{"operation": "delete"}, {"limit": 0}, {"limit": True}, {"limit": "5"}]
)
def test_a_log_of_what_there_cannot_be_is_refused(
    context: Context, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        trail.log(context, **options)


@pytest.mark.usefixtures("narrow")
def test_an_export_is_every_block_of_the_user_and_can_be_verified_alone(context: Context) -> None:
    one, *_ = add(context, "one", "two", "three")
    search(context, "tea", "coffee", "water")
    erase.delete(context, [one.id])
    add(replace(context, reader=Reader("v", "ann")), "another user's")
    lines = list(trail.export(context, as_json=True))
    assert len(lines) == 7
    assert not any("another user" in line for line in lines)
    assert verify_export(lines) == trail.verify_all(context)


def test_an_export_in_the_wire_format_is_what_the_parser_reads(context: Context) -> None:
    one, _ = add(context, "one", "two")
    search(context, "tea; or\nnot")
    erase.delete(context, [one.id])
    text = "".join(trail.export(context))
    read = parse_many(text)
    assert [block.intent for block in read] == [
        "store_memory_for_future_retrieval", "erase_memory_for_good", "recall_relevant_memories",
    ]  # fmt: skip
    assert "".join(block.text() for block in read) == text


@pytest.mark.usefixtures("narrow")
def test_an_export_during_which_old_searches_go_is_none(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail, "_AT_ONCE", 2)
    search(context, *"abcdefgh")
    context.clock.ms += 91 * 86_400_000
    export = trail.export(context, as_json=True)
    lines = [next(export)]
    assert trail.prune(context).removed == 8
    with pytest.raises(StoreBusy, match="export again"):
        lines.extend(export)
    assert [type(found) for found in verify_export(trail.export(context, as_json=True))] == [Sound]


def test_an_export_tells_how_far_it_is(context: Context) -> None:
    add(context, *(f"text {n}" for n in range(510)))
    told: list[tuple[str, int, int]] = []
    assert len(list(trail.export(context, progress=lambda *said: told.append(said)))) == 510
    assert told == [("exporting", 500, 510), ("exporting", 510, 510)]
