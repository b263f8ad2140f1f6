"""The audit chain: each block seals its text, names the block before it and binds the content it is about.

`block_hash` is the SHA-256 of the text, and the text of each block holds the hash of the one before. Whoever changes, removes,
inserts or reorders a block breaks a link; whoever cuts the end contradicts the head. A block that quoted an erased memory
becomes a tombstone, which only a later erasure block naming its id and hash makes good. Without a head noted elsewhere,
someone who can rewrite the whole store can rewrite the chain.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from memory_mesh.core import yamo
from memory_mesh.core.columns import Value
from memory_mesh.core.records import Block, Head
from memory_mesh.core.times import iso
from memory_mesh.core.yamo import ERASED, Seal

OPERATIONS = ("retain", "recall", "reflect", "synthesize", "lesson")

# Which operation a text speaks of.
INTENTS = {"store_memory_for_future_retrieval": "retain", "erase_memory_for_good": "retain"}

_META_PAIR = re.compile(r"^  (content_hash|prev_block);([0-9a-f]{64});$", flags=re.MULTILINE)
_REVISION = re.compile(r"^  revision;(\d+);$", flags=re.MULTILINE)
_SAID = re.compile(r"^(?:  (memory_id|timestamp|action);|(intent): )(.*);$", flags=re.MULTILINE)


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


def chain_name(user_id: str | None, agent_id: str | None) -> str:
    """One chain for each user and agent."""
    return json.dumps(["chain", user_id, agent_id], ensure_ascii=False)


def owner_of(chain: str) -> tuple[str | None, str | None]:
    """The user and agent of a chain; a name that is none of ours is nobody's."""
    try:
        _, user_id, agent_id = json.loads(chain)
    except (ValueError, TypeError):
        return None, None
    return user_id, agent_id


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
    """Walk a chain from its first block; `noted` is a head (number, hash) that someone wrote down earlier."""
    pardoned = {}
    walked: list[Block] = []
    last: str | None = None
    for expected, block in enumerate(blocks, start=1):
        if fault := _fault(chain, block, expected, last):
            return Broken(chain, expected, block.id, fault)
        pardoned.update(dict.fromkeys(yamo.tombs(block.yamo_text), expected))
        walked.append(block)
        last = block.block_hash
    for block in walked:
        if block.yamo_text == ERASED and pardoned.get((block.id, block.block_hash), 0) <= block.number:
            return Broken(chain, block.number, block.id, "its text is gone and no later erasure names it")
    return _against_heads(chain, walked, head, noted)


def sealed_content(block: Block) -> tuple[int, str] | None:
    """The revision of its memory that a block seals, and the hash of the content."""
    hashed = dict(_META_PAIR.findall(block.yamo_text)).get("content_hash")
    revision = _REVISION.search(block.yamo_text)
    return (int(revision.group(1)) if revision else 1, hashed) if hashed else None


def _fault(chain: str, block: Block, expected: int, last: str | None) -> str | None:
    if chain_name(block.user_id, block.agent_id) != chain or block.chain != chain:
        return "it is of another chain"
    if block.number != expected:
        return f"block {expected} is missing: number {block.number} stands in its place"
    if block.prev_hash != last:
        return "it does not follow the block before it"
    if block.yamo_text == ERASED:
        return "its text is gone and yet it says something" if block.metadata else None
    if text_hash(block.yamo_text) != block.block_hash:
        return "its text is not the one that was sealed"
    if dict(_META_PAIR.findall(block.yamo_text)).get("prev_block") != last:
        return "its text names another block as the one before it"
    return "its columns are not what its text says" if _columns(block) != _said(block.yamo_text) else None


def _columns(block: Block) -> tuple[object, ...]:
    action = (block.metadata or {}).get("action")
    return block.operation_type, yamo.value(block.ref), block.created_at, action


def _said(text: str) -> tuple[object, ...]:
    """What a text says of its own columns; nothing of the content can look like one of these lines."""
    said = {pair or intent: value for pair, intent, value in _SAID.findall(text)}
    return INTENTS.get(said.get("intent", "")), said.get("memory_id", "None"), said.get("timestamp"), said.get("action", "add")


def _against_heads(chain: str, blocks: list[Block], head: Head | None, noted: tuple[int, str] | None) -> Verdict:
    number, last = (blocks[-1].number, blocks[-1].block_hash) if blocks else (0, None)
    if (head.number, head.block_hash) != (number, last) if head else number:
        held = head.number if head else 0
        return Broken(chain, number, None, f"the chain ends at block {number}, its head says {held}")
    if noted:
        at, wanted = noted
        if not 0 <= at <= number or (at and blocks[at - 1].block_hash != wanted):
            return Broken(chain, at, None, f"block {at} is not the one that was noted")
    return Sound(chain, number, last)
