"""The audit chain: its name, hashes, seals and signatures, and how the next blocks are appended.

`block_hash` is the SHA-256 of a block's text, and the text has the hash and the seal of the
previous block and the hash of the memory's content. A block that quoted an erased memory becomes a
tombstone, which keeps its hashes and its seal. Searches have a separate chain, whose oldest blocks
may be removed if a later checkpoint names the last of them. `verify` says what is checked.
"""

import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter

from memory_mesh.core.audit.blocks import ERASED, Seal
from memory_mesh.core.model import Block, Head, Memory, Row, Skill, Value, content_hash, iso

# --- digests and seals ---
# The `digest` of a block covers its columns, the memory as it was then, and the history row of the
# change. It is salted with the salt of the memory, so that nothing can be guessed from it once the
# memory is erased. The `seal` covers the digest, the hash of the text and the seal of the previous
# block. A tombstone keeps both, so the seals before and after it can still be recomputed.

# The columns of a memory that its digest covers. The content has a separate hash.
SEALED = (
    "metadata", "user_id", "agent_id", "session_id", "project", "memory_type", "reach", "category",
    "tags", "status", "importance", "trust", "confidence", "created_at", "event_time", "valid_from",
    "valid_until", "expires_at", "last_observed", "times_observed", "pinned", "speaker", "turn",
    "superseded_by", "supersedes", "sources", "heritage_chain", "lesson_pattern_id",
    "source_skill_id", "claim", "corroborations", "reinforcements", "disputes", "key", "revision",
    "entities", "feedback_score", "feedback_count",
)  # fmt: skip
# The others: derived, counted elsewhere, changed without a new revision, in the block itself, or
# not stored. `claim_key` follows from the claim, and is compared with it.
NOT_SEALED = (
    "id", "content", "updated_at", "pending", "access_count", "last_accessed", "number",
    "fingerprint", "claim_key", "salt", "keywords", "vector", "sealed", "redactions",
)  # fmt: skip


# Left out at these values, so that the hashes of versions without these columns stay the same.
_DEFAULTS = {
    "corroborations": 1,
    "reinforcements": 0,
    "disputes": 0,
    "entities": [],
    "feedback_score": 1.0,
    "feedback_count": 0,
}


def block_digest(block: Block, memory: Memory | None = None, change: Row | None = None) -> str:
    """Hash the columns of a block, the memory that it records and the history row of the change."""
    return digest_of(_DIGESTED(block), memory, change)


def digest_of(columns: Iterable[object], memory: Memory | None, change: Row | None) -> str:
    """Hash what the digest of a block covers: the columns are its agent, session, operation,
    time and metadata."""
    salt, changed = (memory.salt or "") if memory else "", None
    if change:
        times = [("created_at", change.created_at), ("number", change.number)]
        changed = _with_value([*change.fields.items(), *times])
    return _hash([salt, *columns, _memory_values(memory) if memory else None, changed])


def block_seal(block: Block, previous: str | None) -> str:
    """Hash a block and the seal of the previous one. Everything in it stays when the text of the
    block is erased."""
    return seal_of(*_IN_SEAL(block), previous)


def seal_of(*columns: object) -> str:
    """Hash what a seal covers: chain, number, id, operation, time, hash and digest of the block,
    and the previous seal."""
    return _hash([*columns])


class RowsDigest:
    """The hash of a chain's blocks without seals, over the columns that also a tombstone keeps."""

    def __init__(self, chain: str) -> None:
        self._hash = sha256(chain.encode())
        self.count = 0

    def add(self, block: Block) -> None:
        """Add the next block of the chain."""
        names = (
            "id",
            "number",
            "operation_type",
            "created_at",
            "agent_id",
            "ref",
            "block_hash",
            "prev_hash",
        )
        self._hash.update(_canonical([getattr(block, name) for name in names]).encode())
        self.count += 1

    def hexdigest(self) -> str:
        """Return the hash of the blocks so far."""
        return self._hash.hexdigest()


def _memory_values(memory: Memory) -> dict[str, object]:
    skill = [("name", memory.name), ("intent", memory.intent)] if isinstance(memory, Skill) else []
    values = (
        (name, value)
        for name, value in zip(SEALED, _SEALED_VALUES(memory), strict=True)
        if _DEFAULTS.get(name) != value
    )
    # An empty claim, which no version has written, must differ from none.
    empty = [("claim", [memory.claim])] if memory.claim is not None and not memory.claim else []
    return _with_value([*values, *skill, *empty])


def _with_value(items: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Leave out None, False and empty lists, so that a column of a later version does not change
    the hashes of this one."""
    return {
        name: value
        for name, value in items
        if value or (value is not None and value is not False and value in (0, ""))
    }


def _hash(value: object) -> str:
    return sha256(_canonical(value).encode()).hexdigest()


def _canonical(value: object) -> str:
    """Return equal values as the same text: a store may return 1.0 as 1."""
    text = _ENCODER.encode(value)
    whole_float = ".0," in text or ".0}" in text or ".0]" in text or "e+" in text
    return _ENCODER.encode(_plain(value)) if whole_float else text


def _plain(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: item if type(item) is str else _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


_SEALED_VALUES = attrgetter(*SEALED)
_DIGESTED = attrgetter("agent_id", "session_id", "operation_type", "created_at", "metadata")
_IN_SEAL = attrgetter(
    "chain", "number", "id", "operation_type", "created_at", "block_hash", "digest"
)
# What no store of ours returns (bytes, after a change by hand) must differ, not raise.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), default=repr, check_circular=False
)


# --- chains and their blocks ---

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


def append(
    chain: str, head: Head | None, entries: Sequence[Entry], *, key_id: str | None = None
) -> tuple[list[Block], Head]:
    """Return the next blocks of a chain, which name the key that signs the head, and the new
    head without a signature."""
    blocks: list[Block] = []
    number, last, seal = (head.number, head.block_hash, head.seal) if head else (0, None, None)
    for entry in entries:
        number += 1
        block = _next_block(chain, number, last, seal, key_id, entry)
        blocks.append(block)
        last, seal = block.block_hash, block.seal
    assert last is not None  # noqa: S101  (there was an entry)
    first_seen, revision = (head.created_at, head.revision + 1) if head else (iso(entries[0].ms), 1)
    return blocks, Head(
        id=chain,
        created_at=first_seen,
        number=number,
        block_hash=last,
        seal=seal,
        revision=revision,
    )


def _next_block(
    chain: str,
    number: int,
    prev_hash: str | None,
    prev_seal: str | None,
    key_id: str | None,
    entry: Entry,
) -> Block:
    if entry.operation_type not in OPERATIONS:
        raise ValueError(f"{entry.operation_type!r} is not an operation: {OPERATIONS}")
    user_id, agent_id = owner_of(chain)
    memory, metadata = entry.memory, dict(entry.metadata) if entry.metadata else None
    hashed = content_hash(memory.salt or "", memory.content) if memory else None
    text = entry.write(
        Seal(content_hash=hashed, prev_block=prev_hash, prev_seal=prev_seal, signing_key=key_id)
    )
    at, operation, block_hash = iso(entry.ms), entry.operation_type, text_hash(text)
    digest = digest_of((agent_id, entry.session_id, operation, at, metadata), memory, entry.change)
    return Block(
        id=entry.id, created_at=at, chain=chain, number=number, operation_type=operation,
        yamo_text=text, block_hash=block_hash, prev_hash=prev_hash, user_id=user_id,
        agent_id=agent_id, session_id=entry.session_id, metadata=metadata,
        ref=memory.id if memory else entry.ref, content_hash=hashed,
        memory_revision=memory.revision if memory else None, digest=digest,
        seal=seal_of(chain, number, entry.id, operation, at, block_hash, digest, prev_seal),
    )  # fmt: skip


def quotes(block: Block) -> bool:
    """Return whether a block quotes a content; tombstones and erasure blocks do not."""
    return block.yamo_text != ERASED and (block.metadata or {}).get("action") != "erase"


def tombstone(block: Block) -> Block:
    """Return the block without its text; number, hashes and seal stay."""
    return replace(
        block,
        yamo_text=ERASED,
        metadata=None,
        content_hash=None,
        memory_revision=None,
        revision=block.revision + 1,
    )


# --- signatures ---
# `signing` says what they are for.

KEY_BYTES = 32
_SIGNING_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs the heads of audit chains."""

    secret: bytes = field(repr=False)
    id: str = field(init=False)  # a hash of the key, which may be public

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "id", sha256(b"memory-mesh audit key " + self.secret).hexdigest()[:16]
        )

    def sign(self, **parts: str | int | None) -> str:
        """Return the HMAC-SHA256 of the parts."""
        return hmac.digest(
            self.secret, _SIGNING_ENCODER.encode(parts).encode("ascii"), "sha256"
        ).hex()

    def signed(self, head: Head) -> Head:
        """Return the head with its signature."""
        return replace(head, key_id=self.id, signature=self._of_head(head))

    def has_signed(self, head: Head) -> bool:
        """Return whether the head has a valid signature by this key."""
        return head.key_id == self.id and hmac.compare_digest(
            self._of_head(head).encode(), (head.signature or "").encode()
        )

    def proof(self, *, chain: str, number: int, previous_seal: str | None, new_key: str) -> str:
        """Return the proof that the owner of this key moves a chain to another one with the
        block `number`."""
        return self.sign(chain=chain, number=number, previous_seal=previous_seal, new_key=new_key)

    def _of_head(self, head: Head) -> str:
        return self.sign(
            chain=head.id, number=head.number, block_hash=head.block_hash, seal=head.seal
        )


# Keys by id, the current one last.
Keys = Mapping[str, SigningKey]
