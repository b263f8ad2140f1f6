"""The audit chain: append blocks, verify and export them.

`block_hash` is the SHA-256 of a block's text, and the text holds the hash of the previous block and of the memory's content.
Changing, removing, inserting or reordering a block breaks a link; cutting the end contradicts the head. A block that quoted an
erased memory becomes a tombstone, which is valid only if a later erasure block names its id and hash. Searches have a separate
chain, whose oldest blocks may be removed if a later checkpoint names the last of them. Without a head noted elsewhere, someone
who can rewrite the whole store can rewrite the chain.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby
from typing import Any

from memory_mesh.core.audit import blocks as wire_blocks
from memory_mesh.core.audit.blocks import erased_blocks
from memory_mesh.core.audit.wire import ERASED, Seal, wire_value
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import BY_NAME, Block, Head, Value, fault, iso

OPERATIONS = ("retain", "recall", "reflect", "synthesize", "lesson")

# The operation of each intent.
INTENTS = {
    wire_blocks.RETAIN: "retain", wire_blocks.ERASE: "retain", wire_blocks.READ_TRAIL: "retain",
    wire_blocks.RECALL: "recall", wire_blocks.CHECKPOINT: "recall",
    wire_blocks.REFLECT: "reflect", wire_blocks.SYNTHESIZE: "synthesize", wire_blocks.LESSON: "lesson",
}  # fmt: skip

_META_PAIR = re.compile(r"^  (content_hash|prev_block);([0-9a-f]{64});$", flags=re.MULTILINE)
_REVISION = re.compile(r"^  revision;([0-9]{1,18});$", flags=re.MULTILINE)
_COLUMN_LINE = re.compile(r"^(?:  (timestamp|action);|(intent): )(.*);$", flags=re.MULTILINE)
_ID = re.compile(r"yamo_([a-z]+)_([0-9]{1,14})_[0-9a-f]{6}")  # more digits could be beyond the year 9999

_MEMORIES, _RECALLS = "chain", "recalls"


@dataclass(frozen=True, slots=True)
class Sound:
    """The chain is intact; `number` and `block_hash` are its last block."""

    chain: str
    number: int
    block_hash: str | None


@dataclass(frozen=True, slots=True)
class Broken:
    """The first block that is wrong, and why."""

    chain: str
    number: int
    block_id: str | None
    reason: str


Verdict = Sound | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A block to append; `write` turns its seal into its text."""

    id: str
    operation_type: str
    ms: int
    write: Callable[[Seal], str]
    content_hash: str | None = None
    ref: str | None = None
    session_id: str | None = None  # of a search
    metadata: Mapping[str, Value] | None = None


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


def _parts(chain: str) -> tuple[str | None, str | None, str | None]:
    try:
        kind, user_id, agent_id = json.loads(chain)
    except (ValueError, TypeError, RecursionError):
        return None, None, None
    return kind, user_id, agent_id


def content_hash(salt: str, content: str) -> str:
    """Hash a whole content. The salt is erased with the memory, so that an erased text cannot be guessed from its hash."""
    return sha256(f"{salt}\n{content}".encode()).hexdigest()


def text_hash(text: str) -> str:
    """Hash the text of a block."""
    return sha256(text.encode()).hexdigest()


def append(chain: str, head: Head | None, entries: Sequence[Entry]) -> tuple[list[Block], Head]:
    """Return the next blocks of a chain and its new head."""
    user_id, agent_id = owner_of(chain)
    number, last, first_seen = (head.number, head.block_hash, head.created_at) if head else (0, None, iso(entries[0].ms))
    blocks: list[Block] = []
    for entry in entries:
        if entry.operation_type not in OPERATIONS:
            raise ValueError(f"{entry.operation_type!r} is not an operation: {OPERATIONS}")
        text = entry.write(Seal(content_hash=entry.content_hash, prev_block=last))
        number += 1
        block = Block(
            id=entry.id, created_at=iso(entry.ms), chain=chain, number=number, operation_type=entry.operation_type,
            yamo_text=text, block_hash=text_hash(text), prev_hash=last, user_id=user_id, agent_id=agent_id,
            session_id=entry.session_id, ref=entry.ref,
            metadata=dict(entry.metadata) if entry.metadata else None,
        )  # fmt: skip
        blocks.append(block)
        last = block.block_hash
    assert last is not None  # noqa: S101  (there was an entry)
    revision = head.revision + 1 if head else 1
    return blocks, Head(id=chain, created_at=first_seen, number=number, block_hash=last, revision=revision)


def quotes(block: Block) -> bool:
    """Return whether a block quotes a content; tombstones and erasure blocks do not."""
    return block.yamo_text != ERASED and (block.metadata or {}).get("action") != "erase"


def tombstone(block: Block) -> Block:
    """Return the block without its text; number and hash stay."""
    return replace(block, yamo_text=ERASED, metadata=None, revision=block.revision + 1)


def verify_chain(
    chain: str, blocks: Iterable[Block], head: Callable[[], Head | None] | None = None, *, noted: tuple[int, str] | None = None
) -> Verdict:
    """Verify the blocks of a chain, given in order. Others may append to it, so its head is read after its blocks.

    Without `head`, blocks cut off the end are not noticed. `noted` is a head (number, hash) that was noted earlier.
    """
    walk = _Walk(chain, noted)
    broken = walk.through(blocks) or (walk.against_heads(head()) if head else None)
    return broken or Sound(chain, walk.number, walk.last)


def verify_tail(chain: str, blocks: Sequence[Block], head: Head | None) -> Verdict:
    """Verify only the last blocks of a chain; earlier blocks and the reasons of tombstones are not checked."""
    walk = _Walk(chain, None)
    if blocks:
        walk.number, walk.last = blocks[0].number - 1, blocks[0].prev_hash
    for block in blocks:
        if fault := _fault(chain, block, walk.number + 1, walk.last):
            return Broken(chain, walk.number + 1, block.id, fault)
        walk.number, walk.last = block.number, block.block_hash
    return walk.against_heads(head) or Sound(chain, walk.number, walk.last)


def sealed_content(block: Block) -> tuple[int, str] | None:
    """Return the revision that a block seals and the hash of its content."""
    hashed = dict(_META_PAIR.findall(block.yamo_text)).get("content_hash")
    revision = _REVISION.search(block.yamo_text)
    return (int(revision.group(1)) if revision else 1, hashed) if hashed else None


@dataclass(slots=True)
class _Walk:
    """The state of a walk through a chain. It keeps what later blocks may justify, and not the blocks: chains are long."""

    chain: str
    noted: tuple[int, str] | None
    number: int = 0
    last: str | None = None
    start: Block | None = None  # the first block, if its number is above 1
    checkpointed: bool = False  # a checkpoint names the block before the start
    tombstones: list[Block] = field(default_factory=list)
    erasures: dict[tuple[str, str], tuple[int, str | None]] = field(default_factory=dict)
    at_noted: str | None = None

    def through(self, blocks: Iterable[Block]) -> Broken | None:
        for block in blocks:
            if not self.number and block.number > 1 and of_recalls(self.chain):
                self.start, self.number, self.last = block, block.number - 1, block.prev_hash
                self._compare_noted()
            if fault := _fault(self.chain, block, self.number + 1, self.last):
                return Broken(self.chain, self.number + 1, block.id, fault)
            self.step(block)
        return self.unjustified()

    def step(self, block: Block) -> None:
        self.number, self.last = block.number, block.block_hash
        self._compare_noted()
        if block.yamo_text == ERASED:
            self.tombstones.append(block)
        named = erased_blocks(block.yamo_text)
        self.erasures.update(dict.fromkeys(named, (block.number, wire_blocks.subject(block.yamo_text))))
        if self.start and wire_blocks.sealed_through(block.yamo_text) == (self.start.number - 1, self.start.prev_hash):
            self.checkpointed = True

    def unjustified(self) -> Broken | None:
        if self.start and not self.checkpointed:
            gone = f"the blocks before number {self.start.number} are missing and no later checkpoint names the last of them"
            return Broken(self.chain, 1, self.start.id, gone)
        for block in self.tombstones:
            at, memory_id = self.erasures.get((wire_value(block.id), block.block_hash), (0, None))
            if at <= block.number or memory_id != _written(block.ref):
                return Broken(self.chain, block.number, block.id, "its text is missing and no later erasure names it")
        return None

    def against_heads(self, head: Head | None) -> Broken | None:
        if (head.number, head.block_hash) != (self.number, self.last) if head else self.number:
            number = head.number if head else 0
            return Broken(self.chain, self.number, None, f"the chain ends at block {self.number}, but its head says {number}")
        at, noted_hash = self.noted or (0, "")
        if at and self.at_noted != noted_hash:
            removed = self.start and 0 < at < self.start.number - 1
            why = "was removed behind a checkpoint and cannot be compared" if removed else "is not the noted one"
            return Broken(self.chain, at, None, f"block {at} {why}")
        return None

    def _compare_noted(self) -> None:
        if self.noted and self.noted[0] == self.number:
            self.at_noted = self.last


def _fault(chain: str, block: Block, expected: int, last: str | None) -> str | None:
    recalls = of_recalls(chain)
    if chain_name(block.user_id, block.agent_id, recalls=recalls) != chain or block.chain != chain:
        return "it belongs to another chain"
    if block.number != expected:
        return f"block {expected} is missing: found number {block.number} instead"
    if block.prev_hash != last:
        return "its prev_hash is not the hash of the previous block"
    if (block.operation_type == "recall") != recalls:
        return f"a {block.operation_type} block cannot be in a chain of {'searches' if recalls else 'memories'}"
    if _id_differs(block):
        return "its id names another operation or time"
    if block.yamo_text == ERASED:
        return "its text is erased but its metadata is not" if block.metadata else None
    if text_hash(block.yamo_text) != block.block_hash:
        return "its text does not match its hash"
    if dict(_META_PAIR.findall(block.yamo_text)).get("prev_block") != last:
        return "its text names another previous block"
    return None if _columns_agree(block) else "its columns differ from its text"


def _id_differs(block: Block) -> bool:
    """Compare operation and time with the id (`yamo_retain_1760000000000_3fa9c2`), which also a tombstone keeps."""
    parts = _ID.fullmatch(block.id)
    return parts is not None and (parts[1], iso(int(parts[2]))) != (block.operation_type, block.created_at)


def _columns_agree(block: Block) -> bool:
    """Return whether the columns match the text."""
    # No content can look like one of these lines.
    columns = {pair or intent: value for pair, intent, value in _COLUMN_LINE.findall(block.yamo_text)}
    if (INTENTS.get(columns.get("intent", "")), columns.get("timestamp")) != (block.operation_type, block.created_at):
        return False
    if block.operation_type == "recall" and block.metadata is not None:
        return False
    if (block.metadata or {}).get("action") != columns.get("action", "add" if block.operation_type == "retain" else None):
        return False
    return wire_blocks.subject(block.yamo_text) == _written(block.ref)


def _written(ref: str | None) -> str | None:
    """Return a memory's id as a text writes it."""
    return None if ref is None else wire_value(ref)


# --- export: blocks as lines of JSON, and the verification of such a file without a store ---

# The columns of RFC-0011, then ours. `timestamp` is our `created_at`.
EXPORT_NAMES = (
    "id", "agent_id", "operation_type", "yamo_text", "timestamp", "block_hash", "prev_hash", "metadata", "chain", "number", "ref",
)  # fmt: skip
_NULLABLE = {"agent_id", "prev_hash", "metadata", "ref"}
_EXPECTED = "a line of memory-mesh audit export --json"


def as_dict(block: Block) -> dict[str, Value]:
    """Return a block under the column names of the export."""
    return {name: getattr(block, _column(name)) for name in EXPORT_NAMES}


def line(block: Block) -> str:
    """Return a block as one line of JSON. ASCII only: some readers end a line at certain Unicode characters."""
    return json.dumps(as_dict(block))


def verify_export(lines: Iterable[str], *, noted: tuple[int, str] | None = None) -> list[Verdict]:
    """Verify hashes, links and columns of an export. Memory contents can only be verified with the store, and a cut end only with
    a noted head, which may belong to any of the chains."""
    found = noted is None or noted[0] == 0

    def watched() -> Iterator[Block]:
        nonlocal found
        for block in (_block(text, at) for at, text in enumerate(lines, start=1) if text.strip()):
            found = found or noted in ((block.number, block.block_hash), (block.number - 1, block.prev_hash))
            yield block

    verdicts = [verify_chain(chain, blocks) for chain, blocks in groupby(watched(), key=lambda block: block.chain)]
    return verdicts if found or noted is None else [*verdicts, noted_missing("", noted[0])]


def noted_missing(chain: str, number: int) -> Broken:
    """Return the verdict for a noted block that no chain has; `chain` is empty if it could be any."""
    return Broken(chain, number, None, "no chain has the noted block")


def _block(text: str, at: int) -> Block:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"line {at} is not JSON", expected=_EXPECTED) from None
    columns: dict[str, Any] = {name: values.get(name) for name in EXPORT_NAMES} if isinstance(values, dict) else {}
    nullable = {name for name in _NULLABLE if columns.get(name) is None}
    if wrong := [name for name in EXPORT_NAMES if name not in nullable and fault(BY_NAME[_column(name)], columns.get(name))]:
        raise InvalidInput(f"line {at} is not a block: missing or invalid {', '.join(wrong)}", expected=_EXPECTED)
    user_id, _ = owner_of(columns["chain"])
    return Block(**{_column(name): value for name, value in columns.items()}, user_id=user_id)


def _column(name: str) -> str:
    return "created_at" if name == "timestamp" else name
