"""Signed heads: a key outside the store shows that the end of a chain was written by a program that has the key.

Every block names the key of its writer (`signing_key` in its text), and the head has an HMAC with that key. So someone who can
write to the database, but has no key, can neither append a block, nor replace the key, nor remove the signature unnoticed. A
chain moves to another key only by a rekey block, which holds a proof made with the old key.
"""

import hmac
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from memory_mesh.core.audit.blocks import key_change
from memory_mesh.core.audit.verify import NOT_SIGNED, Broken, Signature
from memory_mesh.core.audit.wire import ERASED, WITHHELD
from memory_mesh.core.model import Block, Head
from memory_mesh.core.reprs import short_repr

KEY_BYTES = 32
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)
_SIGNING_KEY = re.compile(r"^  signing_key;([0-9a-f]{16});$", flags=re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """Heads that were written to a file or sent to a URL."""

    __repr__ = short_repr

    target: str
    time: str
    heads: tuple[Head, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """The new key, and what moved to it."""

    __repr__ = short_repr

    key_id: str
    old_keys: tuple[str, ...]
    chains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs the heads of audit chains."""

    secret: bytes = field(repr=False)
    id: str = field(init=False)  # a hash of the key, which may be public

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", sha256(b"memory-mesh audit key " + self.secret).hexdigest()[:16])

    def sign(self, **parts: str | int | None) -> str:
        """Return the HMAC-SHA256 of the parts."""
        return hmac.digest(self.secret, _ENCODER.encode(parts).encode("ascii"), "sha256").hex()

    def signed(self, head: Head) -> Head:
        """Return the head with its signature."""
        return replace(head, key_id=self.id, signature=self._of_head(head))

    def has_signed(self, head: Head) -> bool:
        """Return whether the head has a valid signature by this key."""
        return head.key_id == self.id and hmac.compare_digest(self._of_head(head).encode(), (head.signature or "").encode())

    def proof(self, *, chain: str, number: int, previous_seal: str | None, new_key: str) -> str:
        """Return the proof that the owner of this key moves a chain to another one with the block `number`."""
        return self.sign(chain=chain, number=number, previous_seal=previous_seal, new_key=new_key)

    def _of_head(self, head: Head) -> str:
        return self.sign(chain=head.id, number=head.number, block_hash=head.block_hash, seal=head.seal)


# Keys by id, the current one last.
Keys = Mapping[str, SigningKey]


def key_of(block: Block) -> str | None:
    """Return the id of the key that the text of a block names."""
    found = _SIGNING_KEY.search(block.yamo_text)
    return found.group(1) if found else None


@dataclass(slots=True)
class KeyWalk:
    """Follows the keys along a chain, block by block, and checks the signature of its head at the end."""

    chain: str
    keys: Keys
    problem: str = ""  # why there are no keys
    key_id: str | None = None  # the key of the latest block with a text
    since: int = 0  # the first block of that key
    first: int = 0  # the first block
    seal: str | None = None  # of the latest block
    broken: Broken | None = None  # the first change of keys without a proof

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks, and take each of them."""
        for block in blocks:
            self.step(block)
            yield block

    def step(self, block: Block) -> None:
        """Take the next block. A block without a text is skipped: every later block names its key too."""
        self.first = self.first or block.number
        if block.yamo_text not in (ERASED, WITHHELD) and (named := key_of(block)) != self.key_id:
            old = self.keys.get(self.key_id or "")
            if old and not self.broken and not self._proven(block, old, named):
                self.broken = Broken(self.chain, block.number, block.id, _appended(old.id))
            self.key_id, self.since = named, block.number
        self.seal = block.seal

    def end(self, head: Head | None) -> Broken | Signature:
        """Return the first break, or whether the signature of the head was checked."""
        if self.broken:
            return self.broken
        if self.key_id is None or head is None:
            return NOT_SIGNED
        key = self.keys.get(self.key_id)
        if key is None:
            return Signature(checked=False, detail=self.problem or f"key {self.key_id} is not in the key file")
        if not key.has_signed(head):
            return Broken(self.chain, head.number, None, _appended(key.id))
        # Someone may have stolen an earlier key, and it still signs: a person must decide whether that is right.
        earlier = "" if [*self.keys][-1] == key.id else f"with the earlier key {key.id}"
        since = f"from block {self.since} on" if self.since > self.first else ""
        return Signature(checked=True, detail=", ".join(filter(None, (since, earlier))))

    def _proven(self, block: Block, old: SigningKey, new: str | None) -> bool:
        change = key_change(block.yamo_text)
        if change is None or new is None or change[:2] != (old.id, new):
            return False
        expected = old.proof(chain=self.chain, number=block.number, previous_seal=self.seal, new_key=new)
        return hmac.compare_digest(expected, change[2])


def _appended(key_id: str) -> str:
    same = "if another program of yours wrote it, set audit_key_file to the same file for all writers"
    return f"written without the key {key_id} that signs this chain; {same}"
