"""The audit chain: its name, its blocks, and how the next blocks are appended.

`block_hash` is the SHA-256 of a block's text, and the text has the hash and the seal of the previous block and the hash of the
memory's content. A block that quoted an erased memory becomes a tombstone, which keeps its hashes and its seal. Searches have a
separate chain, whose oldest blocks may be removed if a later checkpoint names the last of them. `seals` says what a seal covers,
and `verify` what is checked.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

from memory_mesh.core.audit.seals import content_hash, digest_of, seal_of
from memory_mesh.core.audit.wire import ERASED, Seal
from memory_mesh.core.model import Block, Head, Memory, Row, Value, iso

OPERATIONS = ("retain", "recall", "reflect", "synthesize", "lesson")

_MEMORIES, _RECALLS = "chain", "recalls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A block to append; `write` turns its seal into its text."""

    id: str
    operation_type: str
    ms: int
    write: Callable[[Seal], str]
    memory: Memory | None = None  # the memory that it records, in its new revision
    change: Row | None = None  # the history row of that revision
    ref: str | None = None  # the memory that it names, if it records none
    session_id: str | None = None  # of a search
    metadata: Mapping[str, Value] | None = None


@lru_cache(maxsize=256)  # verification asks for each block
def chain_name(user_id: str | None, agent_id: str | None, *, recalls: bool = False) -> str:
    """Return the name of a chain: each user and agent has one for memories and one for searches."""
    return json.dumps([_RECALLS if recalls else _MEMORIES, user_id, agent_id], ensure_ascii=False)


def owner_of(chain: str) -> tuple[str | None, str | None]:
    """Return the user and agent of a chain; both are None if the name cannot be read."""
    _, user_id, agent_id = _parts(chain)
    return user_id, agent_id


def of_recalls(chain: str) -> bool:
    """Return whether a chain records searches."""
    return _parts(chain)[0] == _RECALLS


@lru_cache(maxsize=256)
def _parts(chain: str) -> tuple[str | None, str | None, str | None]:
    try:
        kind, user_id, agent_id = json.loads(chain)
    except (ValueError, TypeError, RecursionError):
        return None, None, None
    return kind, user_id, agent_id


def text_hash(text: str) -> str:
    """Hash the text of a block."""
    return sha256(text.encode()).hexdigest()


def append(chain: str, head: Head | None, entries: Sequence[Entry], *, key_id: str | None = None) -> tuple[list[Block], Head]:
    """Return the next blocks of a chain, which name the key that signs the head, and the new head without a signature."""
    blocks: list[Block] = []
    number, last, seal = (head.number, head.block_hash, head.seal) if head else (0, None, None)
    for entry in entries:
        number += 1
        block = _next_block(chain, number, last, seal, key_id, entry)
        blocks.append(block)
        last, seal = block.block_hash, block.seal
    assert last is not None  # noqa: S101  (there was an entry)
    first_seen, revision = (head.created_at, head.revision + 1) if head else (iso(entries[0].ms), 1)
    return blocks, Head(id=chain, created_at=first_seen, number=number, block_hash=last, seal=seal, revision=revision)


def _next_block(chain: str, number: int, prev_hash: str | None, prev_seal: str | None, key_id: str | None, entry: Entry) -> Block:
    if entry.operation_type not in OPERATIONS:
        raise ValueError(f"{entry.operation_type!r} is not an operation: {OPERATIONS}")
    user_id, agent_id = owner_of(chain)
    memory, metadata = entry.memory, dict(entry.metadata) if entry.metadata else None
    hashed = content_hash(memory.salt or "", memory.content) if memory else None
    text = entry.write(Seal(content_hash=hashed, prev_block=prev_hash, prev_seal=prev_seal, signing_key=key_id))
    at, operation, block_hash = iso(entry.ms), entry.operation_type, text_hash(text)
    digest = digest_of((agent_id, entry.session_id, operation, at, metadata), memory, entry.change)
    return Block(
        id=entry.id, created_at=at, chain=chain, number=number, operation_type=operation, yamo_text=text, block_hash=block_hash,
        prev_hash=prev_hash, user_id=user_id, agent_id=agent_id, session_id=entry.session_id, metadata=metadata,
        ref=memory.id if memory else entry.ref, content_hash=hashed, memory_revision=memory.revision if memory else None,
        digest=digest, seal=seal_of(chain, number, entry.id, operation, at, block_hash, digest, prev_seal),
    )  # fmt: skip


def quotes(block: Block) -> bool:
    """Return whether a block quotes a content; tombstones and erasure blocks do not."""
    return block.yamo_text != ERASED and (block.metadata or {}).get("action") != "erase"


def tombstone(block: Block) -> Block:
    """Return the block without its text; number, hashes and seal stay."""
    return replace(block, yamo_text=ERASED, metadata=None, content_hash=None, memory_revision=None, revision=block.revision + 1)
