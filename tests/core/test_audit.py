"""The audit chain: any later change to a row is found, and the first broken block is named."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.audit import (
    ERASED,
    OPERATIONS,
    Broken,
    Entry,
    RowsDigest,
    Seal,
    Sound,
    Verdict,
    append,
    blocks,
    chain_name,
    line,
    of_recalls,
    owner_of,
    quotes,
    sealed_content,
    text_hash,
    tombstone,
    verify_chain,
    verify_export,
    withhold,
)
from memory_mesh.core.audit.chain import block_digest, block_seal
from memory_mesh.core.model import Block, Head, Memory, content_hash, iso
from memory_mesh.testing.fakes import NEW_YEAR

CHAIN = chain_name("user", "agent")
SEARCHES = chain_name("user", "agent", recalls=True)


def verify(
    chain: str, blocks: Sequence[Block], head: Head | None, noted: tuple[int, str] | None = None
) -> Verdict:
    return verify_chain(chain, blocks, lambda: head, noted=noted)


def remembered(memory: str, content: str, revision: int = 1) -> Memory:
    at = iso(NEW_YEAR)
    return Memory(
        id=memory, content=content, created_at=at, updated_at=at, salt="salt", revision=revision
    )


@dataclass
class Ledger:
    """A chain in the making, written as the flows write it."""

    blocks: list[Block] = field(default_factory=list)
    head: Head | None = None
    ms: int = NEW_YEAR

    def keep(self, *entries: Entry) -> None:
        made, self.head = append(CHAIN, self.head, entries)
        self.blocks.extend(made)

    def entry(
        self, memory: str, write: Callable[[Seal], str], action: str, recorded: Memory | None
    ) -> Entry:
        number = len(self.blocks) + 1
        return Entry(
            id=f"yamo_retain_{self.ms}_{number:06x}",
            operation_type="retain",
            ms=self.ms,
            write=write,
            memory=recorded,
            ref=memory,
            metadata={"action": action},
        )

    def retain(self, memory: str, revision: int = 1) -> None:
        said = {
            "memory_type": "global",
            "content": f"{memory}, {revision}",
            "hypothesis": "none",
            "revision": revision,
        }
        action = "add" if revision == 1 else "update"
        at = iso(self.ms)
        recorded = remembered(memory, said["content"], revision)
        self.keep(
            self.entry(
                memory,
                lambda seal: blocks.retain(
                    seal, agent="agent", memory_id=memory, at=at, action=action, **said
                ),
                action,
                recorded,
            )
        )

    def erase(self, memory: str) -> None:
        gone = [block for block in self.blocks if block.ref == memory and quotes(block)]
        self.blocks = [tombstone(block) if block in gone else block for block in self.blocks]
        named = [(block.id, block.block_hash) for block in gone]
        at = iso(self.ms)
        write = lambda seal: blocks.erase(  # noqa: E731  (one use)
            seal, agent="agent", memory_id=memory, at=at, tombstones=named
        )
        self.keep(self.entry(memory, write, "erase", None))

    def verdict(self, noted: tuple[int, str] | None = None) -> Sound | Broken:
        return verify(CHAIN, self.blocks, self.head, noted=noted)


def story(*steps: str) -> Ledger:
    """`+a` adds a memory, `~a` changes it, `-a` erases it."""
    ledger = Ledger()
    revisions: dict[str, int] = {}
    for step in steps:
        what, memory = step[0], f"mem_{step[1:]}"
        if what == "-":
            ledger.erase(memory)
        else:
            revisions[memory] = revisions.get(memory, 0) + 1
            ledger.retain(memory, revisions[memory])
        ledger.ms += 1000
    return ledger


# The second block is a tombstone, the fifth its erasure.
LONG = ("+a", "+b", "~a", "+c", "-b", "~c", "+d")


def told(ledger: Ledger) -> Broken:
    verdict = ledger.verdict()
    assert isinstance(verdict, Broken)
    return verdict


# --- appending ---


@pytest.mark.req("MESH-040")
def test_a_block_is_hashed_over_its_text_and_names_the_one_before() -> None:
    blocks = story("+a", "~a", "+b").blocks
    for block in blocks:
        assert (
            block.block_hash
            == sha256(block.yamo_text.encode()).hexdigest()
            == text_hash(block.yamo_text)
        )
    for before, block in pairwise(blocks):
        assert block.prev_hash == before.block_hash


@pytest.mark.req("MESH-041")
def test_the_text_carries_the_hash_of_the_content_and_of_the_block_before() -> None:
    first, second = story("+a", "+b").blocks
    assert first.prev_hash is None
    assert "prev_block" not in first.yamo_text
    assert f"  content_hash;{content_hash('salt', 'mem_a, 1')};\nlog:" in first.yamo_text
    assert (
        f";\n  prev_block;{first.block_hash};\n  prev_seal;{first.seal};\nlog:" in second.yamo_text
    )


def test_blocks_are_numbered_from_one_and_the_head_is_the_last() -> None:
    ledger = story("+a", "+b", "+c")
    assert [block.number for block in ledger.blocks] == [1, 2, 3]
    assert (ledger.head.number, ledger.head.block_hash, ledger.head.revision) == (
        3,
        ledger.blocks[-1].block_hash,
        3,
    )
    assert ledger.head.created_at == ledger.blocks[0].created_at


def test_many_entries_at_once_are_as_many_one_by_one() -> None:
    one_by_one = story("+a", "+b")
    entries = [
        Entry(
            id=block.id,
            operation_type="retain",
            ms=NEW_YEAR + 1000 * at,
            write=lambda seal, text=block.yamo_text: text,
            memory=remembered(block.ref, f"{block.ref}, 1"),
            metadata=block.metadata,
        )
        for at, block in enumerate(one_by_one.blocks)
    ]
    blocks, head = append(CHAIN, None, entries)
    assert blocks == one_by_one.blocks
    assert (head.number, head.block_hash) == (one_by_one.head.number, one_by_one.head.block_hash)


@pytest.mark.req("MESH-038")
@pytest.mark.parametrize("operation", ["delete", "Retain", "", "erase", "supersede"])
def test_only_the_five_operations_make_a_block(operation: str) -> None:
    entry = Entry(id="x", operation_type=operation, ms=0, write=lambda seal: "text")
    with pytest.raises(ValueError, match="is not an operation"):
        append(CHAIN, None, [entry])
    assert OPERATIONS == ("retain", "recall", "reflect", "synthesize", "lesson")


def test_each_user_and_agent_has_a_chain_and_no_two_names_meet() -> None:
    owners = [
        (user, agent) for user in (None, "", "a", 'a", "b') for agent in (None, "", "b", 'a", "b')
    ]
    chains = {chain_name(*owner) for owner in owners}
    assert len(chains) == len(owners)
    assert [owner_of(chain_name(*owner)) for owner in owners] == owners
    assert {
        owner_of(odd) for odd in ("", "chain", "5", "[1]", '{"a": 1}', "[1, 2, 3, 4]", "null")
    } == {(None, None)}


@pytest.mark.req("MESH-041")
def test_searches_have_a_chain_of_their_own() -> None:
    assert SEARCHES != CHAIN
    assert (owner_of(SEARCHES), of_recalls(SEARCHES)) == (("user", "agent"), True)
    assert (owner_of(CHAIN), of_recalls(CHAIN)) == (("user", "agent"), False)
    assert not any(
        of_recalls(odd)
        for odd in ("", "recalls", "5", "[1]", '{"recalls": 1}', '["Recalls", null, null]', "null")
    )


def test_the_hash_of_a_content_cannot_be_tried_without_its_salt() -> None:
    assert content_hash("s", "text") != content_hash("t", "text")
    assert content_hash("s", "text") != text_hash("text")


# --- verifying ---


def test_a_whole_chain_is_sound_and_its_end_is_told() -> None:
    ledger = story(*LONG)
    assert ledger.blocks[1].yamo_text == ERASED
    assert ledger.verdict() == Sound(CHAIN, 7, ledger.blocks[-1].block_hash, ledger.head.seal)
    assert verify(CHAIN, [], None) == Sound(CHAIN, 0, None)


ALTERED = {
    "yamo_text": [
        lambda block: block.yamo_text.replace("medium", "high", 1),
        lambda block: block.yamo_text + "\n",
        lambda _: "",
    ],
    "block_hash": [
        lambda block: block.block_hash[::-1],
        lambda _: "",
        lambda block: block.block_hash.upper(),
    ],
    "prev_hash": [lambda _: "0" * 64, lambda block: None if block.prev_hash else "0" * 64],
    "number": [lambda block: block.number + 100, lambda block: -block.number],
    "chain": [lambda _: chain_name("user", "other")],
    "user_id": [lambda _: "other", lambda _: None],
    "agent_id": [lambda _: "other", lambda _: None],
    "id": [lambda _: "yamo_retain_1_ffffff", lambda block: block.id.replace("retain", "lesson")],
    "operation_type": [lambda _: "lesson", lambda _: "recall"],
    "created_at": [lambda _: iso(0)],
    "ref": [lambda _: "mem_z", lambda _: None],
    "metadata": [lambda _: None, lambda _: {"action": "pin"}, lambda _: {}],
}


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("name", ALTERED)
@pytest.mark.parametrize(
    "at", [0, 2, 3, 4, 6], ids=["first", "changed", "middle", "erasure", "last"]
)
def test_altering_one_field_of_a_block_is_found_there(name: str, at: int) -> None:
    for altered in ALTERED[name]:
        ledger = story(*LONG)
        block = ledger.blocks[at]
        ledger.blocks[at] = replace(block, **{name: altered(block)})
        assert told(ledger).number == at + 1, altered(block)
        assert told(ledger).block_id == ledger.blocks[at].id


@pytest.mark.req("MESH-042", "MESH-012")
@pytest.mark.parametrize(
    "changed",
    [
        {"yamo_text": "erased "},
        {"yamo_text": ""},
        {"block_hash": "0" * 64},
        {"prev_hash": "0" * 64},
        {"prev_hash": None},
        {"number": 9},
        {"id": "yamo_retain_1_ffffff"},
        {"id": "yamo_retain_999999999999999_ffffff"},
        {"chain": chain_name("user", "other")},
        {"agent_id": "other"},
        {"metadata": {"action": "add"}},
        {"operation_type": "lesson"},
        {"operation_type": "recall"},
        {"created_at": iso(0)},
        {"ref": "mem_a"},
        {"ref": None},
    ],
)
def test_altering_a_tombstone_is_found(changed: dict[str, object]) -> None:
    ledger = story(*LONG)
    ledger.blocks[1] = replace(ledger.blocks[1], **changed)
    assert told(ledger).number in (2, 3)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("at", range(7))
def test_removing_a_block_is_found(at: int) -> None:
    ledger = story(*LONG)
    del ledger.blocks[at]
    assert told(ledger).number == (at + 1 if at < 6 else 6)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("at", range(8))
def test_inserting_a_block_is_found(at: int) -> None:
    ledger = story(*LONG)
    forged = replace(ledger.blocks[min(at, 6)], id="yamo_retain_1_ffffff", number=at + 1)
    ledger.blocks.insert(at, forged)
    assert told(ledger).number in (at + 1, at + 2, 7, 8)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 6), (2, 3), (5, 6)])
@pytest.mark.parametrize("renumbered", [True, False])
def test_swapping_two_blocks_is_found(one: int, other: int, renumbered: bool) -> None:
    ledger = story(*LONG)
    blocks = ledger.blocks
    blocks[one], blocks[other] = blocks[other], blocks[one]
    if renumbered:
        ledger.blocks = [
            replace(block, number=number) for number, block in enumerate(blocks, start=1)
        ]
    assert told(ledger).number == one + 1


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("cut", range(1, 8))
def test_cutting_the_end_contradicts_the_head(cut: int) -> None:
    ledger = story("+a", "~a", "+b", "~b", "~b", "+c", "+d")
    ledger.blocks = ledger.blocks[:-cut]
    assert told(ledger).number == 7 - cut
    assert "its head says 7" in told(ledger).reason


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("renumbered", [True, False])
def test_cutting_the_start_is_found(renumbered: bool) -> None:
    ledger = story("+a", "+b", "+c")
    ledger.blocks = [
        replace(block, number=block.number - renumbered) for block in ledger.blocks[1:]
    ]
    assert told(ledger).number == 1


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(
    "changed", [{"number": 6}, {"number": 8}, {"number": 0}, {"block_hash": "0" * 64}]
)
def test_a_forged_head_is_found(changed: dict[str, object]) -> None:
    ledger = story(*LONG)
    ledger.head = replace(ledger.head, **changed)
    assert told(ledger).number == 7


@pytest.mark.req("MESH-042")
def test_a_missing_head_is_found_and_so_is_a_head_without_blocks() -> None:
    ledger = story("+a")
    ledger.head = None
    assert told(ledger).number == 1
    ledger = story("+a")
    ledger.blocks = []
    assert told(ledger).number == 0


def resealed(blocks: Sequence[Block], at: int, text: str) -> list[Block]:
    """A forger's work: one text changed, and its hash and its seal made to fit."""
    block = replace(blocks[at], yamo_text=text, block_hash=text_hash(text))
    return [
        *blocks[:at],
        sealed_after(blocks[at - 1].seal if at else None, block),
        *blocks[at + 1 :],
    ]


def sealed_after(previous: str | None, block: Block) -> Block:
    return replace(block, seal=block_seal(block, previous))


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("at", [0, 2, 3, 5])
def test_a_text_that_is_sealed_anew_breaks_the_block_after_it(at: int) -> None:
    ledger = story(*LONG)
    ledger.blocks = resealed(ledger.blocks, at, ledger.blocks[at].yamo_text.replace("none", "some"))
    assert told(ledger).number == at + 2


@pytest.mark.req("MESH-042")
def test_the_last_text_sealed_anew_contradicts_the_head() -> None:
    ledger = story(*LONG)
    ledger.blocks = resealed(ledger.blocks, 6, ledger.blocks[6].yamo_text.replace("none", "some"))
    assert told(ledger).number == 7


@pytest.mark.req("MESH-042")
def test_the_text_itself_must_name_the_block_before() -> None:
    ledger = story("+a", "+b")
    first = ledger.blocks[0].block_hash
    ledger.blocks = resealed(ledger.blocks, 1, ledger.blocks[1].yamo_text.replace(first, "0" * 64))
    ledger.head = replace(ledger.head, block_hash=ledger.blocks[1].block_hash)
    assert told(ledger) == Broken(
        CHAIN, 2, ledger.blocks[1].id, "its text names another previous block"
    )


def test_a_text_that_says_nothing_is_broken_and_no_error() -> None:
    ledger = story("+a")
    ledger.blocks = resealed(ledger.blocks, 0, "nothing")
    ledger.head = replace(ledger.head, block_hash=ledger.blocks[0].block_hash)
    assert told(ledger).number == 1


# --- tombstones ---


@pytest.mark.req("MESH-012", "MESH-042")
@pytest.mark.parametrize("at", range(4))
def test_a_forged_tombstone_is_found(at: int) -> None:
    ledger = story("+a", "+b", "~a", "+c")
    ledger.blocks[at] = tombstone(ledger.blocks[at])
    assert told(ledger) == Broken(
        CHAIN, at + 1, ledger.blocks[at].id, "its text is missing and no later erasure names it"
    )


@pytest.mark.req("MESH-012")
def test_a_tombstone_keeps_id_number_and_hash_and_no_word() -> None:
    block = story("+a").blocks[0]
    tomb = tombstone(block)
    assert (tomb.id, tomb.number, tomb.block_hash, tomb.prev_hash) == (
        block.id,
        block.number,
        block.block_hash,
        block.prev_hash,
    )
    assert (tomb.yamo_text, tomb.metadata, tomb.revision) == ("erased", None, 2)
    assert not quotes(tomb)
    assert quotes(block)


@pytest.mark.req("MESH-012")
def test_an_earlier_erasure_pardons_nothing_later() -> None:
    ledger = story("+a", "-a", "+b")
    pardon = ledger.blocks[1]
    later = sealed_after(
        pardon.seal, tombstone(replace(ledger.blocks[0], number=3, prev_hash=pardon.block_hash))
    )
    head = replace(ledger.head, number=3, block_hash=later.block_hash, seal=later.seal)
    # Named by id and hash in block 2, but standing behind it.
    broken = verify(CHAIN, [ledger.blocks[0], pardon, later], head)
    assert broken == Broken(CHAIN, 3, later.id, "its text is missing and no later erasure names it")


@pytest.mark.req("MESH-012")
def test_taking_the_erasure_away_leaves_the_tombstone_unexplained() -> None:
    ledger = story("+a", "+b", "-a")
    ledger.blocks.pop()
    ledger.head = replace(ledger.head, number=2, block_hash=ledger.blocks[1].block_hash)
    assert told(ledger).number == 1


# --- a head noted elsewhere ---


@pytest.mark.req("MESH-042")
def test_a_noted_head_holds_while_the_chain_grows() -> None:
    ledger = story("+a", "+b")
    noted = (ledger.head.number, ledger.head.block_hash)
    ledger.retain("mem_c")
    assert isinstance(ledger.verdict(noted), Sound)
    assert isinstance(ledger.verdict((0, "")), Sound)


@pytest.mark.req("MESH-042")
def test_rewriting_everything_is_found_by_a_noted_head() -> None:
    honest = story("+a", "+b", "+c")
    noted = (honest.head.number, honest.head.block_hash)
    rewritten = story("+a", "+x", "+c")
    assert isinstance(rewritten.verdict(), Sound)  # by itself it cannot be told
    assert rewritten.verdict(noted) == Broken(CHAIN, 3, None, "block 3 is not the noted one")
    assert isinstance(story("+a", "+b").verdict(noted), Broken)


@pytest.mark.parametrize("noted", [(-1, "x"), (-3, "x"), (2, "x"), (10**9, "x")])
def test_a_noted_number_that_is_not_there_is_a_break_and_no_error(noted: tuple[int, str]) -> None:
    assert isinstance(story("+a").verdict(noted), Broken)
    assert isinstance(verify(CHAIN, [], None, noted=noted), Broken)


# --- searches ---


def recall(ms: int, query: str = "tea") -> Entry:
    said = {
        "agent": "agent",
        "query": query,
        "limit": 10,
        "filter": None,
        "results": 1,
        "top_score": 0.5,
    }
    return Entry(
        id=f"yamo_recall_{ms}_aaaaaa",
        operation_type="recall",
        ms=ms,
        write=lambda seal: blocks.recall(seal, at=iso(ms), **said),
    )


def checkpoint(ms: int, last: Block, removed: int) -> Entry:
    named = {
        "agent": "agent",
        "through": last.number,
        "through_hash": last.block_hash,
        "through_seal": last.seal,
    }
    named["removed"] = removed
    return Entry(
        id=f"yamo_recall_{ms}_bbbbbb",
        operation_type="recall",
        ms=ms,
        write=lambda seal: blocks.checkpoint(seal, at=iso(ms), **named),
    )


def searched(count: int, *, through: int = 0) -> tuple[list[Block], Head]:
    """A chain of searches, its first blocks removed behind a checkpoint."""
    blocks, head = append(SEARCHES, None, [recall(NEW_YEAR + n) for n in range(count)])
    if through:
        more, head = append(
            SEARCHES, head, [checkpoint(NEW_YEAR + count, blocks[through - 1], through)]
        )
        blocks = [*blocks[through:], *more]
    return blocks, head


@pytest.mark.req("MESH-041", "MESH-042")
def test_a_chain_of_searches_is_sound() -> None:
    blocks, head = searched(3)
    assert verify(SEARCHES, blocks, head) == Sound(
        SEARCHES, 3, blocks[-1].block_hash, blocks[-1].seal
    )
    assert [block.prev_hash for block in blocks] == [
        None,
        blocks[0].block_hash,
        blocks[1].block_hash,
    ]
    assert (
        f"  prev_block;{blocks[0].block_hash};\n  prev_seal;{blocks[0].seal};\nlog:"
        in blocks[1].yamo_text
    )
    assert not any("content_hash" in block.yamo_text for block in blocks)


@pytest.mark.req("MESH-041", "MESH-042")
def test_a_block_in_a_chain_of_the_other_kind_is_a_break() -> None:
    found, head = append(CHAIN, None, [recall(NEW_YEAR)])
    assert verify(CHAIN, found, head).reason == "a recall block cannot be in a chain of memories"
    write = lambda seal: blocks.erase(  # noqa: E731  (one use)
        seal, agent="agent", memory_id="mem_a", at=iso(NEW_YEAR), tombstones=[]
    )
    entry = replace(Ledger().entry("mem_a", write, "erase", None), id="x")
    found, head = append(SEARCHES, None, [entry])
    assert verify(SEARCHES, found, head).reason == "a retain block cannot be in a chain of searches"


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("through", range(1, 5))
def test_the_first_blocks_may_be_gone_where_a_checkpoint_names_the_last_of_them(
    through: int,
) -> None:
    blocks, head = searched(4, through=through)
    assert blocks[0].number == through + 1
    assert verify(SEARCHES, blocks, head) == Sound(
        SEARCHES, 5, blocks[-1].block_hash, blocks[-1].seal
    )


@pytest.mark.req("MESH-042")
def test_a_cut_without_a_checkpoint_is_found() -> None:
    blocks, head = searched(4)
    for cut in (1, 2, 3):
        broken = verify(SEARCHES, blocks[cut:], head)
        assert (type(broken), broken.number, broken.block_id) == (Broken, 1, blocks[cut].id)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("named", [(1, 1), (3, 3), (2, 1), (1, 2), (2, 3)])
def test_a_checkpoint_pardons_exactly_the_block_it_names(named: tuple[int, int]) -> None:
    blocks, head = searched(4)
    number, hashed = named
    told = replace(blocks[number - 1], block_hash=blocks[hashed - 1].block_hash)
    more, head = append(SEARCHES, head, [checkpoint(NEW_YEAR, told, 2)])
    assert isinstance(verify(SEARCHES, [*blocks[2:], *more], head), Broken)
    right, head = append(SEARCHES, searched(4)[1], [checkpoint(NEW_YEAR, blocks[1], 2)])
    assert isinstance(verify(SEARCHES, [*blocks[2:], *right], head), Sound)


@pytest.mark.req("MESH-042")
def test_a_checkpoint_pardons_no_gap_behind_it() -> None:
    blocks, head = searched(6, through=2)
    for at in range(len(blocks)):
        assert isinstance(verify(SEARCHES, blocks[:at] + blocks[at + 1 :], head), Broken)


@pytest.mark.req("MESH-042")
def test_the_beginning_of_a_chain_of_memories_is_never_pardoned() -> None:
    ledger = story("+a", "+b", "+c")
    forged = blocks.checkpoint(
        Seal(content_hash=None, prev_block=ledger.head.block_hash), agent="agent", at=iso(NEW_YEAR),
        through=1, through_hash=ledger.blocks[0].block_hash, through_seal=ledger.blocks[0].seal,
        removed=1,
    )  # fmt: skip
    entry = Entry(id="x", operation_type="retain", ms=NEW_YEAR, write=lambda seal: forged)
    more, head = append(CHAIN, ledger.head, [entry])
    assert verify(CHAIN, [*ledger.blocks[1:], *more], head).number == 1


@pytest.mark.req("MESH-042")
def test_a_noted_head_behind_a_checkpoint_holds_only_where_it_can_be_compared() -> None:
    whole, _ = searched(4)
    blocks, head = searched(4, through=2)
    assert isinstance(verify(SEARCHES, blocks, head, noted=(3, whole[2].block_hash)), Sound)
    assert isinstance(verify(SEARCHES, blocks, head, noted=(3, whole[1].block_hash)), Broken)
    # Anybody could write the hash of the latter into a checkpoint.
    for removed in (whole[0], whole[1]):
        assert (
            "cannot be compared"
            in verify(SEARCHES, blocks, head, noted=(removed.number, removed.block_hash)).reason
        )


SEARCH_ALTERED = {
    **ALTERED,
    "ref": [lambda _: "mem_z"],
    "metadata": [lambda _: {"action": "add"}, lambda _: {}],
}


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("name", SEARCH_ALTERED)
@pytest.mark.parametrize("at", [0, 1, 3, 4], ids=["first", "second", "last search", "checkpoint"])
def test_altering_one_field_of_a_search_is_found(name: str, at: int) -> None:
    for altered in SEARCH_ALTERED[name]:
        blocks, head = searched(6, through=2)
        value = altered(blocks[at])
        if value == getattr(blocks[at], name):
            continue  # it is a search already
        blocks[at] = replace(blocks[at], **{name: value})
        assert isinstance(
            verify(SEARCHES, sorted(blocks, key=lambda block: block.number), head), Broken
        ), value


def test_without_a_head_all_but_the_end_is_looked_at() -> None:
    blocks, _ = searched(4)
    assert verify_chain(SEARCHES, blocks) == Sound(
        SEARCHES, 4, blocks[-1].block_hash, blocks[-1].seal
    )
    assert isinstance(verify_chain(SEARCHES, blocks[:2]), Sound)
    assert isinstance(verify_chain(SEARCHES, blocks[:1] + blocks[2:]), Broken)


# --- seals: what an attacker can recompute ---

PREV = re.compile(r"(prev_block|prev_seal);[0-9a-f]{64};")


def rewritten(
    blocks: Sequence[Block], edit: Callable[[Block], Block], *, through: int
) -> list[Block]:
    """A forger's work on the blocks up to `through`: each edited, and every hash and seal in it
    made to fit."""
    forged: list[Block] = []
    for block in blocks[:through]:
        last = forged[-1] if forged else None
        new = replace(edit(block), prev_hash=last.block_hash if last else None)
        if block.yamo_text != ERASED:
            names = {"prev_block": last.block_hash, "prev_seal": last.seal} if last else {}
            text = PREV.sub(
                lambda found, names=names: f"{found[1]};{names[found[1]]};", new.yamo_text
            )
            new = replace(new, yamo_text=text, block_hash=text_hash(text))
        forged.append(sealed_after(last.seal if last else None, new))
    return [*forged, *blocks[through:]]


def said_otherwise(block: Block) -> Block:
    return replace(block, yamo_text=block.yamo_text.replace("hypothesis;none", "hypothesis;forged"))


@pytest.mark.req("MESH-042", "MESH-012")
def test_what_was_before_an_erased_block_cannot_be_rewritten() -> None:
    ledger = story(*LONG)
    noted = [
        (head.number, hash_) for head in [ledger.head] for hash_ in (head.block_hash, head.seal)
    ]
    assert ledger.blocks[1].yamo_text == ERASED
    for through in range(1, 7):
        forged = rewritten(ledger.blocks, said_otherwise, through=through)
        assert "hypothesis;forged" in forged[0].yamo_text
        found = [
            verify(CHAIN, forged, ledger.head),
            *(verify(CHAIN, forged, ledger.head, noted=one) for one in noted),
        ]
        assert {(type(verdict), verdict.number) for verdict in found} == {(Broken, through + 1)}


@pytest.mark.req("MESH-042")
def test_a_chain_rewritten_to_its_end_is_found_only_by_a_noted_head() -> None:
    ledger = story(*LONG)
    forged = rewritten(ledger.blocks, said_otherwise, through=7)
    head = replace(ledger.head, block_hash=forged[-1].block_hash, seal=forged[-1].seal)
    assert isinstance(verify(CHAIN, forged, head), Sound)
    for at, block in enumerate(ledger.blocks, start=1):
        hashes = [block.seal] if block.yamo_text == ERASED else [block.seal, block.block_hash]
        assert {
            type(verify(CHAIN, ledger.blocks, ledger.head, noted=(at, hash_))) for hash_ in hashes
        } == {Sound}
        assert {type(verify(CHAIN, forged, head, noted=(at, hash_))) for hash_ in hashes} == {
            Broken
        }


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(
    "changed",
    [{"seal": None}, {"seal": "0" * 64}, {"digest": None}, {"digest": "0" * 64}, {"id": "other"},
     {"content_hash": None}, {"content_hash": "0" * 64}, {"memory_revision": None},
     {"memory_revision": 9}, {"seal": None, "digest": None}],
)  # fmt: skip
@pytest.mark.parametrize("at", [0, 1, 2, 6], ids=["first", "erased", "changed", "last"])
def test_a_changed_seal_or_digest_is_found(changed: dict[str, object], at: int) -> None:
    ledger = story(*LONG)
    block = replace(ledger.blocks[at], **changed)
    same = block == ledger.blocks[at]
    ledger.blocks[at] = block
    assert isinstance(ledger.verdict(), Sound) == same


@pytest.mark.req("MESH-042")
def test_taking_every_seal_away_does_not_make_a_chain_of_an_earlier_version() -> None:
    ledger = story(*LONG)
    bare = [
        replace(block, seal=None, digest=None, content_hash=None, memory_revision=None)
        for block in ledger.blocks
    ]
    assert (
        verify(CHAIN, bare, replace(ledger.head, seal=None)).reason
        == "its text names another previous seal"
    )


@pytest.mark.req("MESH-042")
def test_an_agent_in_the_text_that_is_not_that_of_the_chain_is_found() -> None:
    ledger = story("+a", "+b", "-a")
    other = lambda block: replace(  # noqa: E731  (one use)
        block, yamo_text=block.yamo_text.replace("MemoryMesh_agent", "MemoryMesh_other")
    )
    assert "MemoryMesh_other" in other(ledger.blocks[1]).yamo_text
    forged = rewritten(ledger.blocks, other, through=3)
    head = replace(ledger.head, block_hash=forged[-1].block_hash, seal=forged[-1].seal)
    assert verify(CHAIN, forged, head).reason == "its text names another agent"


@pytest.mark.req("MESH-012")
def test_an_erasure_by_another_agent_names_it_and_keeps_the_agent_of_the_chain() -> None:
    text = blocks.erase(
        Seal(content_hash=None, prev_block=None),
        agent="ann",
        erased_by="bob",
        memory_id="m",
        at=iso(0),
        tombstones=[],
    )
    assert text.startswith("agent: MemoryMesh_ann;\n")
    assert "  erased_by;bob;\n" in text


@pytest.mark.req("MESH-042")
def test_a_noted_head_tells_how_many_blocks_are_newer() -> None:
    early, late = story(*LONG[:4]), story(*LONG)
    assert late.verdict((4, early.head.seal)).newer == 3
    assert late.verdict((4, early.head.block_hash)).newer == 3
    assert late.verdict((7, late.head.seal)).newer == 0
    assert late.verdict((0, "")).newer == 7
    assert late.verdict().newer is None


@pytest.mark.req("MESH-042")
def test_a_noted_hash_of_a_block_that_was_erased_later_is_sound_with_a_caution() -> None:
    noted = story("+a", "+b")
    ledger = story(*LONG)
    assert ledger.blocks[1].block_hash == noted.head.block_hash
    assert "note the seal" in ledger.verdict((2, noted.head.block_hash)).caution
    assert ledger.verdict((2, noted.head.seal)).caution == ""
    assert ledger.verdict((3, ledger.blocks[2].block_hash)).caution == ""


def test_a_digest_does_not_depend_on_how_a_store_returns_a_number() -> None:
    one, block = remembered("mem_a", "text"), story("+a").blocks[0]
    same = [
        block_digest(
            replace(block, metadata={"n": number, "list": [number]}),
            replace(one, importance=number),
        )
        for number in (1, 1.0)
    ]
    assert len({*same}) == 1
    for different in (
        {"importance": 0.0},
        {"importance": 0},
        {"session_id": ""},
        {"salt": "other"},
    ):
        assert block_digest(block, replace(one, **different)) != block_digest(block, one)


# --- chains of earlier versions ---


def unsealed(ledger: Ledger) -> Ledger:
    """The same chain as an earlier version wrote it: without seals, and an erasure names the
    agent that erased."""
    forged: list[Block] = []
    for block in ledger.blocks:
        last = forged[-1].block_hash if forged else None
        text = re.sub(
            r"  prev_seal;.*\n",
            "",
            PREV.sub(lambda found, last=last: f"{found[1]};{last};", block.yamo_text),
        )
        old = {
            "seal": None,
            "digest": None,
            "content_hash": None,
            "memory_revision": None,
            "prev_hash": last,
        }
        if text != ERASED:
            old |= {"yamo_text": text, "block_hash": text_hash(text)}
        forged.append(replace(block, **old))
    named = {old.block_hash: new.block_hash for old, new in zip(ledger.blocks, forged, strict=True)}
    assert len(named) == len(forged)
    return replace(
        ledger,
        blocks=forged,
        head=replace(ledger.head, seal=None, block_hash=forged[-1].block_hash),
    )


def sealing(ledger: Ledger, **changed: object) -> Entry:
    rows = RowsDigest(CHAIN)
    for block in ledger.blocks:
        rows.add(block)
    said = {
        "agent": "agent",
        "at": iso(ledger.ms),
        "last": (ledger.head.number, ledger.head.block_hash),
        "count": rows.count,
    }
    said |= {"digest": rows.hexdigest(), "verdict": "sound"} | changed
    write = lambda seal: blocks.seal_old(seal, **said)  # noqa: E731  (one use)
    return replace(ledger.entry("", write, "seal_old_blocks", None), ref=None)


def upgraded(**changed: object) -> Ledger:
    ledger = unsealed(story("+a", "+b", "~a", "+c"))
    ledger.keep(sealing(ledger, **changed))
    ledger.retain("mem_d")
    return ledger


@pytest.mark.req("MESH-042")
def test_one_block_seals_the_blocks_of_an_earlier_version() -> None:
    old = unsealed(story("+a", "+b", "~a", "+c"))
    assert old.verdict() == Sound(CHAIN, 4, old.head.block_hash)
    ledger = upgraded()
    assert isinstance(ledger.verdict(), Sound)
    assert [block.seal is None for block in ledger.blocks] == [True] * 4 + [False] * 2
    ledger.erase("mem_b")
    assert ledger.blocks[1].yamo_text == ERASED
    assert isinstance(ledger.verdict(), Sound)


@pytest.mark.req("MESH-042")
def test_an_old_block_that_changed_after_the_upgrade_is_found() -> None:
    for name in (
        "id",
        "operation_type",
        "created_at",
        "agent_id",
        "ref",
        "block_hash",
        "prev_hash",
    ):
        for at in range(4):
            ledger = upgraded()
            ledger.erase("mem_b")
            ledger.blocks[at] = replace(
                ledger.blocks[at], **{name: "0" * 64 if "hash" in name else iso(0)}
            )
            assert isinstance(ledger.verdict(), Broken), name


@pytest.mark.req("MESH-042", "MESH-012")
def test_what_was_before_an_old_erased_block_cannot_be_rewritten() -> None:
    ledger = upgraded()
    ledger.erase("mem_b")
    first = said_otherwise(ledger.blocks[0])
    first = replace(first, block_hash=text_hash(first.yamo_text))
    forged = [first, replace(ledger.blocks[1], prev_hash=first.block_hash), *ledger.blocks[2:]]
    found = verify(CHAIN, forged, ledger.head)
    assert (found.number, found.reason) == (5, "it seals other blocks than those before it")


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(
    "changed", [{"count": 3}, {"digest": "0" * 64}, {"digest": None}, {"last": (3, "0" * 64)}]
)
def test_a_block_that_seals_other_blocks_is_found(changed: dict[str, object]) -> None:
    assert upgraded(**changed).verdict().number == 5


@pytest.mark.req("MESH-042")
def test_a_sealed_block_after_others_must_seal_them() -> None:
    ledger = unsealed(story("+a", "+b"))
    ledger.retain("mem_c")
    assert ledger.verdict().reason == "the blocks before it have no seal, and it does not seal them"


@pytest.mark.req("MESH-042")
def test_a_withheld_block_behind_a_checkpoint_is_bound_by_the_seal_in_the_checkpoint() -> None:
    found, _ = searched(4, through=2)
    given = [line(block) for block in (withhold(found[0]), *found[1:])]
    (verdict,) = verify_export(given)
    assert (type(verdict), verdict.withheld) == (Sound, 1)
    forged = [line(replace(withhold(found[0]), digest="0" * 64)), *given[1:]]
    assert isinstance(verify_export(forged)[0], Broken)


# --- lessons and reflections, whose texts have no memory_id ---


def lesson(memory: str) -> Entry:
    id_ = blocks.derived_id(memory, "lesson")
    said = {
        "situation": "s",
        "oversight": "o",
        "rule": "r",
        "rationale": "f",
        "scope": "everywhere",
        "inverse": None,
    }
    said |= dict.fromkeys(("hypothesis_confidence", "rule_confidence", "confidence"), 0.8)
    said |= {"agent": "agent", "at": iso(NEW_YEAR), "pattern_id": "0" * 16, "severity": "high"}
    return Entry(
        id=f"yamo_lesson_{NEW_YEAR}_cccccc",
        operation_type="lesson",
        ms=NEW_YEAR,
        write=lambda seal: blocks.lesson(seal, lesson_id=id_, memory_id=memory, **said),
        memory=remembered(memory, "c"),
        metadata={"lesson_id": id_},
    )


def reflection(memory: str | None) -> Entry:
    id_ = blocks.derived_id(memory or "mem_0", "reflect")
    said = {
        "agent": "agent",
        "topic": "t",
        "source_count": 2,
        "id_": id_,
        "insight": "i",
        "confidence": 0.5,
    }
    return Entry(
        id=f"yamo_reflect_{NEW_YEAR}_dddddd",
        operation_type="reflect",
        ms=NEW_YEAR,
        memory=remembered(memory, "c") if memory else None,
        write=lambda seal: blocks.reflect(seal, at=iso(NEW_YEAR), memory_id=memory, **said),
    )


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize(
    "entry",
    [lesson("mem_a"), reflection("mem_a"), reflection(None)],
    ids=["lesson", "reflection", "unkept"],
)
@pytest.mark.parametrize(
    "changed",
    [{"ref": "mem_b"}, {"ref": None}, {"operation_type": "retain"},
     {"operation_type": "synthesize"}, {"created_at": iso(0)}, {"metadata": {"action": "add"}}],
)  # fmt: skip
def test_altering_a_column_of_a_lesson_or_reflection_is_found(
    entry: Entry, changed: dict[str, object]
) -> None:
    ledger = Ledger()
    ledger.keep(entry)
    assert isinstance(ledger.verdict(), Sound)
    (block,) = ledger.blocks
    ledger.blocks = [replace(block, **changed)]
    assert isinstance(ledger.verdict(), Sound) == (ledger.blocks == [block])


# --- any chain, any meddling ---

STEPS = st.lists(
    st.sampled_from(["+", "~", "-"]).flatmap(lambda what: st.sampled_from("abc").map(what.__add__)),
    min_size=2,
    max_size=7,
)


@given(STEPS, st.data())
def test_any_chain_is_sound_and_any_meddling_is_found(
    steps: list[str], data: st.DataObject
) -> None:
    ledger = story(*steps)
    assert isinstance(ledger.verdict(), Sound)
    blocks = list(ledger.blocks)
    at = data.draw(st.integers(0, len(blocks) - 1))
    meddling = data.draw(st.sampled_from(["remove", "repeat", "move", "blank", "text", "hash"]))
    if meddling == "remove":
        del blocks[at]
    elif meddling == "repeat":
        blocks.insert(data.draw(st.integers(0, len(blocks))), blocks[at])
    elif meddling == "move":
        blocks.append(blocks.pop(at)) if at < len(blocks) - 1 else blocks.insert(0, blocks.pop(at))
    elif meddling == "blank":
        blocks[at] = replace(blocks[at], yamo_text="" if blocks[at].yamo_text == ERASED else ERASED)
    elif meddling == "text":
        blocks[at] = replace(
            blocks[at], yamo_text=blocks[at].yamo_text + data.draw(st.text("a;\n", min_size=1))
        )
    else:
        blocks[at] = replace(blocks[at], block_hash=text_hash(data.draw(st.text())))
    assert isinstance(verify(CHAIN, blocks, ledger.head), Broken)


# --- what a block seals ---


def test_a_block_tells_which_revision_it_seals() -> None:
    first, second, erased, erasure = story("+a", "~a", "+b", "-b").blocks
    assert sealed_content(first.yamo_text) == (1, content_hash("salt", "mem_a, 1"))
    assert sealed_content(second.yamo_text) == (2, content_hash("salt", "mem_a, 2"))
    assert sealed_content(erased.yamo_text) is None
    assert sealed_content(erasure.yamo_text) is None
