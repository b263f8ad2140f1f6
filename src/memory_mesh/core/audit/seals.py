"""The hashes that bind a block beyond its text.

The `digest` of a block covers its columns, the memory as it was then, and the history row of the change. It is salted with the
salt of the memory, so that nothing can be guessed from it once the memory is erased. The `seal` covers the digest, the hash of
the text and the seal of the previous block. A tombstone keeps both, so the seals before and after it can still be recomputed.
"""

import json
from collections.abc import Iterable
from hashlib import sha256
from operator import attrgetter

from memory_mesh.core.model import Block, Memory, Row, Skill

# The columns of a memory that its digest covers. The content has a separate hash.
SEALED = (
    "metadata", "user_id", "agent_id", "session_id", "project", "memory_type", "reach", "category", "tags", "status",
    "importance", "trust", "confidence", "created_at", "event_time", "valid_from", "valid_until", "expires_at", "last_observed",
    "times_observed", "pinned", "speaker", "turn", "superseded_by", "supersedes", "sources", "heritage_chain",
    "lesson_pattern_id", "source_skill_id", "claim", "corroborations", "reinforcements", "disputes", "key", "revision",
    "entities", "feedback_score", "feedback_count",
)  # fmt: skip
# The others: derived, counted elsewhere, changed without a new revision, in the block itself, or not stored. `claim_key` follows
# from the claim, and is compared with it.
NOT_SEALED = (
    "id", "content", "updated_at", "pending", "access_count", "last_accessed", "number", "fingerprint", "claim_key", "salt",
    "keywords", "vector", "sealed", "redactions",
)  # fmt: skip


# Left out at these values, so that the hashes of versions without these columns stay the same.
_DEFAULTS = {"corroborations": 1, "reinforcements": 0, "disputes": 0, "entities": [], "feedback_score": 1.0, "feedback_count": 0}


def content_hash(salt: str, content: str) -> str:
    """Hash a whole content. The salt is erased with the memory, so that an erased text cannot be guessed from its hash."""
    return sha256(f"{salt}\n{content}".encode()).hexdigest()


def is_altered(row: Row) -> bool:
    """Return whether the content of a memory differs from what its latest block sealed; False if it was never sealed.

    A revision before the sealed one is an older copy of the memory, put back. A later one without a salt was written by Memory
    Lane, which seals nothing.
    """
    sealed, salt = row.sealed, row.fields.get("salt")
    if sealed is None or (salt is None and row.revision > sealed.revision):
        return False
    return row.revision < sealed.revision or content_hash(str(salt or ""), str(row.fields.get("content"))) != sealed.content_hash


def block_digest(block: Block, memory: Memory | None = None, change: Row | None = None) -> str:
    """Hash the columns of a block, the memory that it records and the history row of the change."""
    return digest_of(_DIGESTED(block), memory, change)


def digest_of(columns: Iterable[object], memory: Memory | None, change: Row | None) -> str:
    """Hash what the digest of a block covers: the columns are its agent, session, operation, time and metadata."""
    salt = (memory.salt or "") if memory else ""
    return _hash([salt, *columns, _memory_values(memory) if memory else None, _change_values(change) if change else None])


def block_seal(block: Block, previous: str | None) -> str:
    """Hash a block and the seal of the previous one. Everything in it stays when the text of the block is erased."""
    return seal_of(*_IN_SEAL(block), previous)


def seal_of(*columns: object) -> str:
    """Hash what a seal covers: chain, number, id, operation, time, hash and digest of the block, and the previous seal."""
    return _hash([*columns])


class RowsDigest:
    """The hash of a chain's blocks without seals, over the columns that also a tombstone keeps."""

    def __init__(self, chain: str) -> None:
        self._hash = sha256(chain.encode())
        self.count = 0

    def add(self, block: Block) -> None:
        """Add the next block of the chain."""
        names = ("id", "number", "operation_type", "created_at", "agent_id", "ref", "block_hash", "prev_hash")
        self._hash.update(_canonical([getattr(block, name) for name in names]).encode())
        self.count += 1

    def hexdigest(self) -> str:
        """Return the hash of the blocks so far."""
        return self._hash.hexdigest()


def _memory_values(memory: Memory) -> dict[str, object]:
    skill = [("name", memory.name), ("intent", memory.intent)] if isinstance(memory, Skill) else []
    values = ((name, value) for name, value in zip(SEALED, _SEALED_VALUES(memory), strict=True) if _DEFAULTS.get(name) != value)
    # An empty claim, which no version has written, must differ from none.
    empty = [("claim", [memory.claim])] if memory.claim is not None and not memory.claim else []
    return _with_value([*values, *skill, *empty])


def _change_values(change: Row) -> dict[str, object]:
    return _with_value([*change.fields.items(), ("created_at", change.created_at), ("number", change.number)])


def _with_value(items: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Leave out None, False and empty lists, so that a column of a later version does not change the hashes of this one."""
    return {name: value for name, value in items if value or (value is not None and value is not False and value in (0, ""))}


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
_IN_SEAL = attrgetter("chain", "number", "id", "operation_type", "created_at", "block_hash", "digest")
# What no store of ours returns (bytes, after a change by hand) must differ, not raise.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr, check_circular=False)
