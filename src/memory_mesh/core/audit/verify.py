"""Verify audit chains and the memories that they seal, and decide who may read a block.

Changing, removing, inserting or reordering a block breaks a hash or a seal; cutting the end
contradicts the head. A tombstone is valid only if a later erasure block names its id and hash.
Blocks of earlier versions have no seal: the first sealed block after them must name them all.
Without a head noted elsewhere, someone who can rewrite the whole store can rewrite the chain.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from memory_mesh.core.audit import blocks as wire_blocks
from memory_mesh.core.audit.blocks import (
    CHECKPOINT,
    ERASED,
    REKEY,
    SEAL_OLD,
    WITHHELD,
    agent_name,
    erased_blocks,
    has_intent,
    wire_value,
)
from memory_mesh.core.audit.chain import (
    RowsDigest,
    block_digest,
    block_seal,
    chain_name,
    of_recalls,
    quotes,
    text_hash,
)
from memory_mesh.core.claims import Claim
from memory_mesh.core.model import (
    Block,
    Head,
    Memory,
    Reader,
    Row,
    change_id,
    content_hash,
    iso,
    visible,
)
from memory_mesh.core.text import ShortRepr

# The operation of each intent. Those of `_ANY_CHAIN` are retain or recall, as the chain needs.
INTENTS = {
    wire_blocks.RETAIN: "retain", wire_blocks.ERASE: "retain", wire_blocks.READ_TRAIL: "retain",
    wire_blocks.RECALL: "recall", wire_blocks.CHECKPOINT: "recall",
    wire_blocks.REFLECT: "reflect", wire_blocks.SYNTHESIZE: "synthesize",
    wire_blocks.LESSON: "lesson",
}  # fmt: skip
_ANY_CHAIN = {wire_blocks.SEAL_OLD: ("retain", "recall"), wire_blocks.REKEY: ("retain", "recall")}

_META_PAIR = re.compile(
    r"^  (content_hash|prev_block|prev_seal);([0-9a-f]{64});$", flags=re.MULTILINE
)
_REVISION = re.compile(r"^  revision;([0-9]{1,18});$", flags=re.MULTILINE)
_COLUMN_LINE = re.compile(r"^(?:  (timestamp|action);|(intent): )(.*);$", flags=re.MULTILINE)
# More digits could be beyond the year 9999.
_ID = re.compile(r"yamo_([a-z]+)_([0-9]{1,14})_[0-9a-f]{6}")


@dataclass(frozen=True, slots=True)
class Signature:
    """Whether the signature of a chain's head was checked, and what limits it."""

    checked: bool
    detail: str = ""

    def __str__(self) -> str:
        state = (
            f"checked{', ' if self.detail else ''}"
            if self.checked
            else f"not checked{': ' if self.detail else ''}"
        )
        return state + self.detail


NOT_SIGNED = Signature(checked=False, detail="the chain is not signed")


@dataclass(frozen=True, slots=True, repr=False)
class Sound(ShortRepr):
    """The chain is intact; `number`, `block_hash` and `seal` are its last block."""

    chain: str
    number: int
    block_hash: str | None
    seal: str | None = field(default=None, repr=False)
    newer: int | None = None  # blocks after the noted head; None if none was given
    # Blocks of an export whose texts are withheld: only hash and seal were checked.
    withheld: int = 0
    caution: str = ""  # what the noted head does not prove
    signature: Signature = NOT_SIGNED


@dataclass(frozen=True, slots=True, repr=False)
class Broken(ShortRepr):
    """The first block that is wrong, and why."""

    chain: str
    number: int
    block_id: str | None
    reason: str


Verdict = Sound | Broken


def verify_chain(
    chain: str,
    blocks: Iterable[Block],
    head: Callable[[], Head | None] | None = None,
    *,
    noted: tuple[int, str] | None = None,
) -> Verdict:
    """Verify the blocks of a chain, given in order. Others may append to it, so its head is read
    after its blocks.

    Without `head`, blocks cut off the end are not noticed. `noted` is a head that was noted
    earlier: its number, and its seal or hash.
    """
    walk = Walk(chain, noted)
    return walk.through(blocks) or (walk.against_heads(head()) if head else None) or walk.sound()


def verify_tail(chain: str, blocks: Sequence[Block], head: Head | None) -> Verdict:
    """Verify only the last blocks of a chain; earlier blocks and the reasons of tombstones are
    not checked."""
    walk = Walk(chain, None, whole=False)
    for at, block in enumerate(blocks):
        if not at:
            walk.begin_at(block)
        if fault := walk.fault(block):
            return Broken(chain, walk.number + 1, block.id, fault)
        walk.step(block)
    return walk.against_heads(head) or walk.sound()


def sealed_content(text: str) -> tuple[int, str] | None:
    """Return the revision of the memory that the text of a block seals, and the hash of its
    content."""
    hashed = _hashes(text).get("content_hash")
    revision = _REVISION.search(text)
    return (int(revision.group(1)) if revision else 1, hashed) if hashed else None


def prev_seal(block: Block) -> str | None:
    """Return the seal of the previous block, as the text of a block names it."""
    return _hashes(block.yamo_text).get("prev_seal")


@dataclass(slots=True)
class Walk:
    """The state of a walk through a chain. It keeps what later blocks may justify, and not the
    blocks: chains are long."""

    chain: str
    noted: tuple[int, str] | None
    whole: bool = True  # False: it does not start at the first block
    withholding: bool = False  # texts may be withheld, as in an export
    number: int = 0
    last: str | None = None
    seal: str | None = None
    # False: the first block of this walk has no text that names the previous seal.
    seal_known: bool = True
    start: Block | None = None  # the first block, if its number is above 1
    checkpointed: bool = False  # a checkpoint names the block before the start
    tombstones: list[Block] = field(default_factory=list)
    erasures: dict[tuple[str, str], tuple[int, str | None]] = field(default_factory=dict)
    found_noted: bool = False
    caution: str = ""
    withheld: int = 0
    unsealed: RowsDigest = field(init=False)

    def __post_init__(self) -> None:
        self.unsealed = RowsDigest(self.chain)

    def through(self, blocks: Iterable[Block]) -> Broken | None:
        """Walk through the blocks, and return the first break."""
        for block in blocks:
            if not self.number and block.number > 1 and of_recalls(self.chain):
                self.begin_at(block)
                self.start = block
            if fault := self.fault(block):
                return Broken(self.chain, self.number + 1, block.id, fault)
            self.step(block)
        return self.unjustified()

    def begin_at(self, block: Block) -> None:
        """Start at a block that is not the first one of the chain."""
        self.whole, self.seal_known = False, block.yamo_text not in (ERASED, WITHHELD)
        self.number, self.last, self.seal = block.number - 1, block.prev_hash, prev_seal(block)

    def step(self, block: Block) -> None:
        """Advance past a block, and keep what later blocks need to know of it."""
        self.seal_known = True
        self.number, self.last, self.seal = block.number, block.block_hash, block.seal
        if block.seal is None:
            self.unsealed.add(block)
        if block.yamo_text == ERASED:
            self.tombstones.append(block)
        self.withheld += block.yamo_text == WITHHELD
        self._compare_noted(block)
        named = erased_blocks(block.yamo_text)
        self.erasures.update(
            dict.fromkeys(named, (block.number, wire_blocks.subject(block.yamo_text)))
        )
        if self.start and self._names_the_start(block):
            self.checkpointed = True

    def _names_the_start(self, checkpoint: Block) -> bool:
        through = wire_blocks.sealed_through(checkpoint.yamo_text)
        if self.start is None or through is None:
            return False
        same = through[:2] == (self.start.number - 1, self.start.prev_hash)
        return same and (
            self.start.seal is None or self.start.seal == block_seal(self.start, through[2])
        )

    def fault(self, block: Block) -> str | None:
        """Return what is wrong with the next block."""
        return (
            _place_fault(self.chain, block, self.number + 1, self.last)
            or self._text_fault(block, _hashes(block.yamo_text))
            or self._seal_fault(block)
        )

    def _text_fault(self, block: Block, hashes: Mapping[str, str]) -> str | None:
        if block.yamo_text == ERASED:
            rest = block.metadata or block.content_hash or block.memory_revision
            return "its text is erased but its metadata is not" if rest else None
        if block.yamo_text == WITHHELD and self.withholding:
            return None
        if text_hash(block.yamo_text) != block.block_hash:
            return "its text does not match its hash"
        if hashes.get("prev_block") != self.last:
            return "its text names another previous block"
        if hashes.get("prev_seal") != self.seal:
            return "its text names another previous seal"
        if _agent_differs(block):
            return "its text names another agent"
        if not _columns_agree(block):
            return "its columns differ from its text"
        if block.seal and block.memory_revision is None and block.digest != block_digest(block):
            return "its columns differ from its digest"
        return None

    def _seal_fault(self, block: Block) -> str | None:
        if block.seal is None:
            return "it has lost its seal" if self.seal or block.digest else None
        if self.seal_known and block.seal != block_seal(block, self.seal):
            return "its seal does not match its columns and the previous seal"
        return (
            self._unsealed_fault(block)
            if self.number and self.seal is None and self.seal_known
            else None
        )

    def _unsealed_fault(self, block: Block) -> str | None:
        """Compare the blocks without a seal with what the first sealed block says about them."""
        named = wire_blocks.sealed_rows(block.yamo_text)
        if named is None:
            return "the blocks before it have no seal, and it does not seal them"
        found = (self.number, self.last, self.unsealed.count, self.unsealed.hexdigest())
        return (
            None
            if named == found or (not self.whole and named[:2] == found[:2])
            else "it seals other blocks than those before it"
        )

    def unjustified(self) -> Broken | None:
        """Return the break if a missing start has no checkpoint, or a tombstone has no erasure
        block."""
        if self.start and not self.checkpointed:
            gone = (
                f"the blocks before number {self.start.number} are missing and no later checkpoint "
                "names the last of them"
            )
            return Broken(self.chain, 1, self.start.id, gone)
        for block in self.tombstones:
            at, memory_id = self.erasures.get((wire_value(block.id), block.block_hash), (0, None))
            if at <= block.number or memory_id != _written(block.ref):
                return Broken(
                    self.chain,
                    block.number,
                    block.id,
                    "its text is missing and no later erasure names it",
                )
        return None

    def against_heads(self, head: Head | None) -> Broken | None:
        """Compare the end of the walk with the stored head, and return the break if the noted
        head was not met."""
        if (
            (head.number, head.block_hash, head.seal) != (self.number, self.last, self.seal)
            if head
            else self.number
        ):
            number = head.number if head else 0
            why = f"the chain ends at block {self.number}, but its head says {number}"
            return Broken(
                self.chain,
                self.number,
                None,
                why if number != self.number else "the last block is not that of the head",
            )
        if self.noted and self.noted[0] and not self.found_noted:
            at = self.noted[0]
            removed = self.start and 0 < at < self.start.number
            why = (
                "was removed behind a checkpoint and cannot be compared"
                if removed
                else "is not the noted one"
            )
            return Broken(self.chain, at, None, f"block {at} {why}")
        return None

    def sound(self) -> Sound:
        """Return the verdict of a walk without a break."""
        newer = (
            self.number - self.noted[0]
            if self.noted and (self.found_noted or not self.noted[0])
            else None
        )
        return Sound(
            self.chain, self.number, self.last, self.seal, newer, self.withheld, self.caution
        )

    def _compare_noted(self, block: Block) -> None:
        if (
            self.noted is None
            or self.noted[0] != self.number
            or self.noted[1] not in (self.last, self.seal)
        ):
            return
        self.found_noted = True
        # The text of a sealed block has the previous seal, and so its hash binds every block before
        # it.
        unbound = (
            "an erased block" if self.tombstones else "a withheld block" if self.withheld else None
        )
        if self.noted[1] != self.seal and unbound and prev_seal(block) is None:
            self.caution = (
                f"the noted hash of block {self.number} does not bind what was before {unbound}; "
                "note the seal"
            )


def _place_fault(chain: str, block: Block, expected: int, last: str | None) -> str | None:
    recalls = of_recalls(chain)
    if chain_name(block.user_id, block.agent_id, recalls=recalls) != chain or block.chain != chain:
        return "it belongs to another chain"
    if block.number != expected:
        return f"block {expected} is missing: found number {block.number} instead"
    if block.prev_hash != last:
        return "its prev_hash is not the hash of the previous block"
    if (block.operation_type == "recall") != recalls:
        return (
            f"a {block.operation_type} block cannot be in a chain of "
            f"{'searches' if recalls else 'memories'}"
        )
    return "its id names another operation or time" if _id_differs(block) else None


def _id_differs(block: Block) -> bool:
    """Compare operation and time with the id (`yamo_retain_1760000000000_3fa9c2`), which also a
    tombstone keeps."""
    parts = _ID.fullmatch(block.id)
    return parts is not None and (parts[1], iso(int(parts[2]))) != (
        block.operation_type,
        block.created_at,
    )


def _agent_differs(block: Block) -> bool:
    # In earlier versions, an erasure by another agent named that agent.
    exempt = block.seal is None and wire_blocks.has_intent(block.yamo_text, wire_blocks.ERASE)
    return (
        not exempt
        and block.yamo_text.partition("\n")[0] != f"agent: {agent_name(str(block.agent_id))};"
    )


def _columns_agree(block: Block) -> bool:
    """Return whether the columns match the text."""
    # No content can look like one of these lines.
    columns = {
        pair or intent: value for pair, intent, value in _COLUMN_LINE.findall(block.yamo_text)
    }
    intent = columns.get("intent", "")
    operations = _ANY_CHAIN.get(intent, (INTENTS.get(intent),))
    if block.operation_type not in operations or columns.get("timestamp") != block.created_at:
        return False
    if (
        block.operation_type == "recall"
        and block.metadata is not None
        and {*block.metadata} != {"action"}
    ):
        return False
    if (block.metadata or {}).get("action") != columns.get(
        "action", "add" if block.operation_type == "retain" else None
    ):
        return False
    sealed = (block.memory_revision, block.content_hash)
    if sealed != (sealed_content(block.yamo_text) or (None, None)) and (
        block.seal or sealed != (None, None)
    ):
        return False
    return wire_blocks.subject(block.yamo_text) == _written(block.ref)


def _hashes(text: str) -> dict[str, str]:
    return dict(_META_PAIR.findall(text))


def _written(ref: str | None) -> str | None:
    """Return a memory's id as a text writes it."""
    return None if ref is None else wire_value(ref)


# --- memories and their history ---
# The history is walked back from the current revision: each row has the values that a revision
# replaced. So the content and the columns of every revision can be compared with the block of that
# revision.


@dataclass(frozen=True, slots=True)
class Fault:
    """A memory that differs from what a block sealed, and how."""

    block: Block
    reason: str


def memory_fault(row: Row, history: Sequence[Row], blocks: Sequence[Block]) -> Fault | None:
    """Return the first difference, from the current revision back; `blocks` are those of this
    memory, of every chain."""
    memory, sealed = Memory.of(row), _by_revision(blocks)
    if not sealed:
        erased = (block for block in blocks if (block.metadata or {}).get("action") == "erase")
        return next(
            (Fault(block, f"{memory.id} was erased, but is stored") for block in erased), None
        )
    latest = sealed[max(sealed)][0][0]
    if max(sealed) > memory.revision:
        return Fault(
            latest, f"{memory.id} is at revision {memory.revision}, but a later one was sealed"
        )
    if reason := _history_fault(memory, history):
        return Fault(latest, reason)
    # Earlier versions did not write a block for every revision.
    since = min(
        (block.memory_revision or 0 for block in blocks if block.digest and block.memory_revision),
        default=None,
    )
    for revision, change in _revisions(memory, history):
        found = sealed.get(revision.revision, [])
        if not found and since is not None and revision.revision > since:
            return Fault(latest, f"revision {revision.revision} of {memory.id} was not sealed")
        faults = (
            Fault(block, reason)
            for block, hash_ in found
            if (reason := _revision_fault(revision, change, block, hash_))
        )
        if fault := next(faults, None):
            return fault
    reason = _derived_fault(row, memory)
    return Fault(latest, reason) if reason else None


def _derived_fault(row: Row, memory: Memory) -> str | None:
    """Compare columns that are not sealed with those that they follow from. By them a read finds
    a memory, or does not."""
    if row.partition != memory.partition:
        return f"{memory.id} is stored in a partition of another scope"
    claim = Claim.of(memory)
    if memory.claim_key != (claim.key if claim else None):
        return f"the claim_key of {memory.id} is not that of its claim"
    return None


def _by_revision(blocks: Sequence[Block]) -> dict[int, list[tuple[Block, str]]]:
    """Return the blocks with the hash of the content that they sealed, by revision of the
    memory."""
    sealed: dict[int, list[tuple[Block, str]]] = {}
    for block in blocks:
        if content := sealed_content(block.yamo_text):
            sealed.setdefault(content[0], []).append((block, content[1]))
    return sealed


def _history_fault(memory: Memory, history: Sequence[Row]) -> str | None:
    expected = {change_id(memory.id, number): number for number in range(2, memory.revision + 1)}
    found = {row.id: row.number for row in history}
    if missing := expected.keys() - found.keys():
        return f"the history of {memory.id} lacks revision {min(expected[id_] for id_ in missing)}"
    if found != expected or len(history) != len(expected):
        return f"the history of {memory.id} has rows that were never written"
    known = {field.name for field in fields(memory)}
    unreadable = (row for row in history if not known.issuperset(_before(row)))
    return next(
        (
            f"the history of {memory.id} cannot be read at revision {row.number}"
            for row in unreadable
        ),
        None,
    )


def _revisions(memory: Memory, history: Sequence[Row]) -> Iterator[tuple[Memory, Row | None]]:
    """Yield each revision of a memory with the history row that it was written with, the current
    one first."""
    for change in sorted(history, key=lambda row: row.number, reverse=True):
        yield memory, change
        memory = replace(memory, **{**_before(change), "revision": change.number - 1})  # type: ignore[arg-type]
    yield memory, None


def _before(change: Row) -> dict[str, object]:
    before = change.value("before")
    return dict(before) if isinstance(before, dict) else {} if before is None else {"": before}


def _revision_fault(memory: Memory, change: Row | None, block: Block, hash_: str) -> str | None:
    if content_hash(memory.salt or "", memory.content) != hash_:
        return (
            f"the content of {memory.id} (revision {memory.revision}) differs from what was sealed"
        )
    if block.digest is not None and block_digest(block, memory, change) != block.digest:
        return (
            f"the columns or the history of {memory.id} (revision {memory.revision}) differ from "
            "what was sealed"
        )
    return None


# --- who may read a block ---
# A block quotes the memory or lesson that it records, or the query of a search. Readers who may not
# see what it quotes get it without its text: id, number and hashes stay, so that an export can
# still be verified.


def withhold(block: Block) -> Block:
    """Return the block without its text and metadata.

    Also without the hash of the content: it is the only part of the text that cannot be guessed, so
    with it a guess of the rest could be tested against the hash of the block.
    """
    return replace(block, yamo_text=WITHHELD, metadata=None, session_id=None, content_hash=None)


def may_read(reader: Reader, block: Block, memory: Row | None, first_revision: int) -> bool:
    """Return whether the reader may see the text of a block.

    `memory` is the row that it refers to, and `first_revision` the first revision from which on the
    reader could see it.
    """
    if block.user_id != reader.user_id:
        return False
    if not quotes(block) or _is_bookkeeping(block):
        return True
    if block.ref is None:
        # A search of an earlier version has no seal, and its session is not known.
        known = block.seal is not None and block.session_id in (None, reader.session_id)
        return known and block.agent_id == reader.agent_id
    revision, _ = sealed_content(block.yamo_text) or (0, "")
    return memory is not None and visible(reader, memory) and revision >= first_revision


def _is_bookkeeping(block: Block) -> bool:
    """Return whether a block records no memory and no search, such as a checkpoint or the
    reading of an auditor."""
    named = block.operation_type == "retain" or has_intent(
        block.yamo_text, CHECKPOINT, REKEY, SEAL_OLD
    )
    return block.ref is None and named
