"""The keys along an audit chain, and exports that can be verified without a store.

A key outside the store shows that the end of a chain was written by a program that has the key.
Every block names the key of its writer (`signing_key` in its text), and the head has an HMAC with
that key. So someone who can write to the database, but has no key, can neither append a block, nor
replace the key, nor remove the signature unnoticed. A chain moves to another key only by a rekey
block, which holds a proof made with the old key.
"""

import hmac
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from memory_mesh.core.audit.blocks import ERASED, WITHHELD, key_change
from memory_mesh.core.audit.chain import Keys, SigningKey, owner_of
from memory_mesh.core.audit.verify import NOT_SIGNED, Broken, Signature, Sound, Verdict, Walk
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import BY_NAME, Block, Head, Value, fault
from memory_mesh.core.text import ShortRepr

_SIGNING_KEY = re.compile(r"^  signing_key;([0-9a-f]{16});$", flags=re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Anchored(ShortRepr):
    """Heads that were written to a file or sent to a URL."""

    target: str
    time: str
    heads: tuple[Head, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rekeyed(ShortRepr):
    """The new key, and what moved to it."""

    key_id: str
    old_keys: tuple[str, ...]
    chains: tuple[str, ...]


def key_of(block: Block) -> str | None:
    """Return the id of the key that the text of a block names."""
    found = _SIGNING_KEY.search(block.yamo_text)
    return found.group(1) if found else None


@dataclass(slots=True)
class KeyWalk:
    """Follows the keys along a chain, block by block, and checks the signature of its head at
    the end."""

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
        """Take the next block. A block without a text is skipped: every later block names its
        key too."""
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
            return Signature(
                checked=False, detail=self.problem or f"key {self.key_id} is not in the key file"
            )
        if not key.has_signed(head):
            return Broken(self.chain, head.number, None, _appended(key.id))
        # Someone may have stolen an earlier key, and it still signs: a person must decide whether
        # that is right.
        earlier = "" if [*self.keys][-1] == key.id else f"with the earlier key {key.id}"
        since = f"from block {self.since} on" if self.since > self.first else ""
        return Signature(checked=True, detail=", ".join(filter(None, (since, earlier))))

    def _proven(self, block: Block, old: SigningKey, new: str | None) -> bool:
        change = key_change(block.yamo_text)
        if change is None or new is None or change[:2] != (old.id, new):
            return False
        expected = old.proof(
            chain=self.chain, number=block.number, previous_seal=self.seal, new_key=new
        )
        return hmac.compare_digest(expected, change[2])


def _appended(key_id: str) -> str:
    same = (
        "if another program of yours wrote it, set audit_key_file to the same file for all writers"
    )
    return f"written without the key {key_id} that signs this chain; {same}"


# --- exports ---
# Blocks are exported as lines of JSON.

# The columns of RFC-0011, then ours. `timestamp` is our `created_at`.
EXPORT_NAMES = (
    "id", "agent_id", "operation_type", "yamo_text", "timestamp", "block_hash", "prev_hash",
    "metadata", "chain", "number", "ref", "session_id", "content_hash", "memory_revision", "digest",
    "seal",
)  # fmt: skip
_NULLABLE = {
    "agent_id",
    "prev_hash",
    "metadata",
    "ref",
    "session_id",
    "content_hash",
    "memory_revision",
    "digest",
    "seal",
}
_EXPECTED = "a line of memory-mesh audit export --json"


def as_dict(block: Block) -> dict[str, Value]:
    """Return a block under the column names of the export."""
    return {name: getattr(block, _column(name)) for name in EXPORT_NAMES}


def line(block: Block) -> str:
    """Return a block as one line of JSON. ASCII only: some readers end a line at certain Unicode
    characters."""
    return json.dumps(as_dict(block))


def verify_export(lines: Iterable[str], *, noted: tuple[int, str] | None = None) -> list[Verdict]:
    """Verify hashes, seals and columns of an export. Raise `InvalidInput` if it has no block.

    Memories and their history can only be verified with the store, and a cut end only with a noted
    head, which may belong to any of the chains.
    """
    blocks = (_block(text, at) for at, text in enumerate(lines, start=1) if text.strip())
    verdicts: dict[str, Verdict] = {}
    found = noted is None or noted[0] == 0
    for chain, group in groupby(blocks, key=lambda block: block.chain):
        walk, keys = Walk(chain, noted, withholding=True), KeyWalk(chain, {})
        twice = Broken(chain, 1, None, "the chain is given twice") if chain in verdicts else None
        verdicts[chain] = (
            twice or walk.through(keys.watch(group)) or _without_head(walk.sound(), keys)
        )
        found = found or walk.found_noted
    if not verdicts:
        raise InvalidInput("the export is empty: there is nothing to verify", expected=_EXPECTED)
    return [*verdicts.values(), *([] if found or noted is None else [noted_missing("", noted[0])])]


def _without_head(sound: Sound, keys: KeyWalk) -> Sound:
    return (
        sound
        if keys.key_id is None
        else replace(sound, signature=Signature(checked=False, detail="an export has no heads"))
    )


def noted_missing(chain: str, number: int) -> Broken:
    """Return the verdict for a noted block that no chain has; `chain` is empty if it could be
    any."""
    return Broken(chain, number, None, "no chain has the noted block")


def _block(text: str, at: int) -> Block:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"line {at} is not JSON", expected=_EXPECTED) from None
    columns: dict[str, Any] = (
        {name: values.get(name) for name in EXPORT_NAMES} if isinstance(values, dict) else {}
    )
    nullable = {name for name in _NULLABLE if columns.get(name) is None}
    if wrong := [
        name
        for name in EXPORT_NAMES
        if name not in nullable and fault(BY_NAME[_column(name)], columns.get(name))
    ]:
        raise InvalidInput(
            f"line {at} is not a block: missing or invalid {', '.join(wrong)}", expected=_EXPECTED
        )
    user_id, _ = owner_of(columns["chain"])
    return Block(**{_column(name): value for name, value in columns.items()}, user_id=user_id)


def _column(name: str) -> str:
    return "created_at" if name == "timestamp" else name
