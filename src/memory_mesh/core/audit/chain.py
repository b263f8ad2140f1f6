"""The audit chain: each block seals its text, names the block before it and binds the content it is about.

`block_hash` is the SHA-256 of the text, and the text of each block holds the hash of the one before. Whoever changes, removes,
inserts or reorders a block breaks a link; whoever cuts the end contradicts the head. A block that quoted an erased memory
becomes a tombstone, which only a later erasure block naming its id and hash makes good. Searches have a chain of their own,
whose oldest blocks may be gone where a later checkpoint names the last of them. Without a head noted elsewhere, someone who can
rewrite the whole store can rewrite the chain.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from memory_mesh.core.audit import blocks as yamo_blocks
from memory_mesh.core.audit import wire as yamo
from memory_mesh.core.audit.wire import ERASED, Seal
from memory_mesh.core.model.columns import Value
from memory_mesh.core.model.records import Block, Head
from memory_mesh.core.model.times import iso

OPERATIONS = ("retain", "recall", "reflect", "synthesize", "lesson")

# Which operation a text speaks of.
INTENTS = {
    "store_memory_for_future_retrieval": "retain",
    "erase_memory_for_good": "retain",
    yamo_blocks.RECALL: "recall",
    yamo_blocks.CHECKPOINT: "recall",
    yamo_blocks.REFLECT: "reflect",
    yamo_blocks.SYNTHESIZE: "synthesize",
    yamo_blocks.LESSON: "lesson",
}

_META_PAIR = re.compile(r"^  (content_hash|prev_block);([0-9a-f]{64});$", flags=re.MULTILINE)
_REVISION = re.compile(r"^  revision;([0-9]{1,18});$", flags=re.MULTILINE)
_SAID = re.compile(r"^(?:  (timestamp|action);|(intent): )(.*);$", flags=re.MULTILINE)
_ID = re.compile(r"yamo_([a-z]+)_([0-9]{1,14})_[0-9a-f]{6}")  # more may be beyond the year 9999

_MEMORIES, _RECALLS = "chain", "recalls"


@dataclass(frozen=True, slots=True)
class Sound:
    """Every block is in its place."""

    chain: str
    number: int
    block_hash: str | None


@dataclass(frozen=True, slots=True)
class Broken:
    """The first block that is not as it was sealed, and why."""

    chain: str
    number: int
    block_id: str | None
    reason: str


Verdict = Sound | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a block is to say; `write` gets the seal and gives the text."""

    id: str
    operation_type: str
    ms: int
    write: Callable[[Seal], str]
    content_hash: str | None = None
    ref: str | None = None
    metadata: Mapping[str, Value] | None = None


def chain_name(user_id: str | None, agent_id: str | None, *, recalls: bool = False) -> str:
    """One chain for each user and agent, and one more for what they looked for."""
    return json.dumps([_RECALLS if recalls else _MEMORIES, user_id, agent_id], ensure_ascii=False)


def owner_of(chain: str) -> tuple[str | None, str | None]:
    """The user and agent of a chain; a name that is none of ours is nobody's."""
    _, user_id, agent_id = _parts(chain)
    return user_id, agent_id


def of_recalls(chain: str) -> bool:
    """Whether a chain tells of searches."""
    return _parts(chain)[0] == _RECALLS


def _parts(chain: str) -> tuple[str | None, str | None, str | None]:
    try:
        kind, user_id, agent_id = json.loads(chain)
    except (ValueError, TypeError, RecursionError):
        return None, None, None
    return kind, user_id, agent_id


def content_hash(salt: str, content: str) -> str:
    """Binds the whole content; the salt goes with the memory, so that the hash of an erased text can be tried by nobody."""
    return sha256(f"{salt}\n{content}".encode()).hexdigest()


def text_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def append(chain: str, head: Head | None, entries: Sequence[Entry]) -> tuple[list[Block], Head]:
    """The next blocks of a chain, and its new head."""
    user_id, agent_id = owner_of(chain)
    number, last, first_seen = (head.number, head.block_hash, head.created_at) if head else (0, None, iso(entries[0].ms))
    blocks: list[Block] = []
    for entry in entries:
        if entry.operation_type not in OPERATIONS:
            raise ValueError(f"{entry.operation_type!r} is no operation of the chain: {OPERATIONS}")
        text = entry.write(Seal(content_hash=entry.content_hash, prev_block=last))
        number += 1
        block = Block(
            id=entry.id,
            created_at=iso(entry.ms),
            chain=chain,
            number=number,
            operation_type=entry.operation_type,
            yamo_text=text,
            block_hash=text_hash(text),
            prev_hash=last,
            user_id=user_id,
            agent_id=agent_id,
            ref=entry.ref,
            metadata=dict(entry.metadata) if entry.metadata else None,
        )
        blocks.append(block)
        last = block.block_hash
    assert last is not None  # noqa: S101  (there was an entry)
    revision = head.revision + 1 if head else 1
    return blocks, Head(id=chain, created_at=first_seen, number=number, block_hash=last, revision=revision)


def quotes(block: Block) -> bool:
    """Whether a block tells of a content; tombstones no longer do, and erasure blocks never did."""
    return block.yamo_text != ERASED and (block.metadata or {}).get("action") != "erase"


def tombstone(block: Block) -> Block:
    """The block without what it said; its number and hash stay."""
    return replace(block, yamo_text=ERASED, metadata=None, revision=block.revision + 1)


def verify(chain: str, blocks: Iterable[Block], head: Head | None, *, noted: tuple[int, str] | None = None) -> Verdict:
    """Walk a chain in the order of its numbers; `noted` is a head (number, hash) that someone wrote down earlier."""
    return growing(chain, blocks, lambda: head, noted=noted)


def growing(
    chain: str, blocks: Iterable[Block], head: Callable[[], Head | None], *, noted: tuple[int, str] | None = None
) -> Verdict:
    """The same for a chain that others append to meanwhile: where it ends is asked once its blocks are read."""
    walk = _Walk(chain, noted)
    return walk.through(blocks) or walk.against_heads(head()) or Sound(chain, walk.number, walk.last)


def linked(chain: str, blocks: Iterable[Block]) -> Verdict:
    """The same where the head is not at hand: what was cut off the end is not found."""
    walk = _Walk(chain, None)
    return walk.through(blocks) or Sound(chain, walk.number, walk.last)


def tail(chain: str, blocks: Sequence[Block], head: Head | None) -> Verdict:
    """The same for the last blocks of a chain alone. What was before them, and what explains a tombstone, is not asked."""
    walk = _Walk(chain, None)
    if blocks:
        walk.number, walk.last = blocks[0].number - 1, blocks[0].prev_hash
    for block in blocks:
        if fault := _fault(chain, block, walk.number + 1, walk.last):
            return Broken(chain, walk.number + 1, block.id, fault)
        walk.number, walk.last = block.number, block.block_hash
    return walk.against_heads(head) or Sound(chain, walk.number, walk.last)


def sealed_content(block: Block) -> tuple[int, str] | None:
    """The revision of its memory that a block seals, and the hash of the content."""
    hashed = dict(_META_PAIR.findall(block.yamo_text)).get("content_hash")
    revision = _REVISION.search(block.yamo_text)
    return (int(revision.group(1)) if revision else 1, hashed) if hashed else None


@dataclass(slots=True)
class _Walk:
    """Where a walk through a chain has come. It keeps what later blocks may explain, and not the blocks: chains grow long."""

    chain: str
    noted: tuple[int, str] | None
    number: int = 0
    last: str | None = None
    start: Block | None = None  # the first block, where the chain begins later than with number 1
    explained: bool = False  # a checkpoint names what was before the start
    tombs: list[Block] = field(default_factory=list)
    pardons: dict[tuple[str, str], tuple[int, str | None]] = field(default_factory=dict)
    at_noted: str | None = None

    def through(self, blocks: Iterable[Block]) -> Broken | None:
        for block in blocks:
            if fault := self.fault(block):
                return Broken(self.chain, self.number + 1, block.id, fault)
            self.step(block)
        return self.unexplained()

    def fault(self, block: Block) -> str | None:
        if not self.number and block.number > 1 and of_recalls(self.chain):
            self.start, self.number, self.last = block, block.number - 1, block.prev_hash
            self._meet_noted()
        return _fault(self.chain, block, self.number + 1, self.last)

    def step(self, block: Block) -> None:
        self.number, self.last = block.number, block.block_hash
        self._meet_noted()
        if block.yamo_text == ERASED:
            self.tombs.append(block)
        named = yamo.tombs(block.yamo_text)
        self.pardons.update(dict.fromkeys(named, (block.number, yamo_blocks.subject(block.yamo_text))))
        if self.start and yamo_blocks.sealed_through(block.yamo_text) == (self.start.number - 1, self.start.prev_hash):
            self.explained = True

    def unexplained(self) -> Broken | None:
        if self.start and not self.explained:
            gone = f"the blocks before number {self.start.number} are gone and no later checkpoint names the last of them"
            return Broken(self.chain, 1, self.start.id, gone)
        for block in self.tombs:
            at, memory_id = self.pardons.get((yamo.value(block.id), block.block_hash), (0, None))
            if at <= block.number or memory_id != _named(block.ref):
                return Broken(self.chain, block.number, block.id, "its text is gone and no later erasure names it")
        return None

    def against_heads(self, head: Head | None) -> Broken | None:
        if (head.number, head.block_hash) != (self.number, self.last) if head else self.number:
            held = head.number if head else 0
            return Broken(self.chain, self.number, None, f"the chain ends at block {self.number}, its head says {held}")
        at, wanted = self.noted or (0, "")
        if at and self.at_noted != wanted:
            behind = self.start and 0 < at < self.start.number - 1
            why = "is gone behind a checkpoint, and can be compared no more" if behind else "is not the one that was noted"
            return Broken(self.chain, at, None, f"block {at} {why}")
        return None

    def _meet_noted(self) -> None:
        if self.noted and self.noted[0] == self.number:
            self.at_noted = self.last


def _fault(chain: str, block: Block, expected: int, last: str | None) -> str | None:
    recalls = of_recalls(chain)
    if chain_name(block.user_id, block.agent_id, recalls=recalls) != chain or block.chain != chain:
        return "it is of another chain"
    if block.number != expected:
        return f"block {expected} is missing: number {block.number} stands in its place"
    if block.prev_hash != last:
        return "it does not follow the block before it"
    if (block.operation_type == "recall") != recalls:
        return f"a {block.operation_type} block has no place in a chain of {'searches' if recalls else 'memories'}"
    if _otherwise_named(block):
        return "its id names another operation or moment"
    if block.yamo_text == ERASED:
        return "its text is gone and yet it says something" if block.metadata else None
    if text_hash(block.yamo_text) != block.block_hash:
        return "its text is not the one that was sealed"
    if dict(_META_PAIR.findall(block.yamo_text)).get("prev_block") != last:
        return "its text names another block as the one before it"
    return None if _agrees(block) else "its columns are not what its text says"


def _otherwise_named(block: Block) -> bool:
    """An id of ours (`yamo_retain_1760000000000_3fa9c2`) tells operation and moment; of a tombstone nothing else does."""
    named = _ID.fullmatch(block.id)
    return named is not None and (named[1], iso(int(named[2]))) != (block.operation_type, block.created_at)


def _agrees(block: Block) -> bool:
    """Whether the columns are what the text says of them."""
    said = _pairs(block.yamo_text)
    if (INTENTS.get(said.get("intent", "")), said.get("timestamp")) != (block.operation_type, block.created_at):
        return False
    if block.operation_type == "recall" and block.metadata is not None:
        return False
    if (block.metadata or {}).get("action") != said.get("action", "add" if block.operation_type == "retain" else None):
        return False
    return yamo_blocks.subject(block.yamo_text) == _named(block.ref)


def _named(ref: str | None) -> str | None:
    """A memory's id as texts write it."""
    return None if ref is None else yamo.value(ref)


def _pairs(text: str) -> dict[str, str]:
    """What a text says of its own columns; nothing of the content can look like one of these lines."""
    return {pair or intent: value for pair, intent, value in _SAID.findall(text)}
