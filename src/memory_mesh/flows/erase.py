"""Forgetting for good: the memory, every revision, vector, passage, link and what was drawn from it alone.

Blocks that quoted it keep their number and hash and lose their text. Each chain that held one gets an erasure block that names
them, so that every chain can be verified by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry, Seal, blocks
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Memory, Receipt, revise
from memory_mesh.core.model.rows import Key, Row, batches
from memory_mesh.core.model.scope import MemoryType, may_erase
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import In, Or, Where, all_of, equals
from memory_mesh.flows.context import Context, Plan, commit, must_be_enabled, sealed, texts

_AT_ONCE = 1000
SCOPE_COLUMNS = ("user_id", "agent_id", "session_id", "project", "memory_type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The proof of an erasure: what is gone, what tells of it, and whether the bytes are gone too."""

    memories: tuple[str, ...] = ()
    rows: int = 0
    tombstones: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    bytes_freed: bool = True

    def __add__(self, other: "Erasure") -> "Erasure":
        return Erasure(
            memories=self.memories + other.memories,
            rows=self.rows + other.rows,
            tombstones=self.tombstones + other.tombstones,
            blocks=self.blocks + other.blocks,
            bytes_freed=self.bytes_freed and other.bytes_freed,
        )


def erase(context: Context, memory_ids: Sequence[str]) -> Erasure:
    """Erase these memories; ids that are unknown, or not the caller's to erase, are passed over."""
    for memory_id in memory_ids:
        texts(id=memory_id)
    return _erased(context, memory_ids, anyones=False)


def erase_all(context: Context, scope: Mapping[str, str | None]) -> Erasure:
    """Erase all memories of a scope of the caller's user, of whatever agent."""
    given = {name: value for name, value in scope.items() if value is not None}
    if not given:
        raise InvalidInput("delete_all without a scope", expected=f"one of {', '.join(SCOPE_COLUMNS)}")
    must_be_enabled(context)
    texts(**given)
    if given.get("memory_type", MemoryType.GLOBAL) not in list(MemoryType):
        raise InvalidInput(f"memory_type is {given['memory_type']!r:.60}", expected=f"one of {', '.join(MemoryType)}")
    if given.get("user_id", context.reader.user_id) != context.reader.user_id:
        raise InvalidInput(f"user {given['user_id']!r:.60} is not this mesh's", remedy="open MemoryMesh(user_id=…) as that user")
    where = all_of(equals("user_id", context.reader.user_id), *(equals(name, value) for name, value in given.items()))
    proof = Erasure()
    while found := context.store.ids(Kind.MEMORY, where):
        for ids in batches(found, _AT_ONCE):
            # The scope was named, so whoever may act for the user may erase what other agents wrote in it.
            proof += _erased(context, ids, anyones=True)
    return proof


def _erased(context: Context, memory_ids: Sequence[str], *, anyones: bool) -> Erasure:
    touched: set[str] = set()

    def decide() -> Plan[Erasure]:
        plan = _decide(context, memory_ids, anyones=anyones)
        touched.update(plan.seen)
        # Before the rows go, so that no crash leaves derived files behind; and after, for one that was written meanwhile.
        context.index.forget(plan.seen)
        return plan

    proof, applied = commit(context, decide)
    context.index.forget(touched)
    context.state.cache.clear()
    return replace(proof, bytes_freed=applied.bytes_freed)


def _decide(context: Context, memory_ids: Sequence[str], *, anyones: bool = False) -> Plan[Erasure]:
    seen: dict[str, int] = {}
    gone, staying = _going(context, memory_ids, seen, anyones=anyones)
    if not gone:
        return Plan(Erasure())
    ids = tuple(memory.id for memory in gone)
    blocks = [Block.of(row) for row in context.store.find(Kind.BLOCK, In("ref", ids))]
    tombs = [audit.tombstone(block) for block in blocks if audit.quotes(block)]
    puts = [tomb.row(replaces=tomb.revision - 1) for tomb in tombs]
    puts += [_blank(row) for row in context.store.find(Kind.RECEIPT, In("ref", ids)) if row.value("request")]
    puts += [row for memory in staying for row in _unsourced(context, memory, ids)]
    told = _told(context, gone, tombs)
    deletes = [*(Key(Kind.MEMORY, id_) for id_ in ids), *_owned(context, ids)]
    proof = Erasure(
        memories=ids,
        rows=len(deletes),
        tombstones=tuple(tomb.id for tomb in tombs),
        blocks=tuple(row.id for row in told if row.kind is Kind.BLOCK),
    )
    return Plan(proof, [*puts, *told], deletes, seen)


def _going(
    context: Context, memory_ids: Sequence[str], seen: dict[str, int], *, anyones: bool
) -> tuple[list[Memory], list[Memory]]:
    """The memories to erase with those drawn from them alone, and those drawn from others too, which stay.

    All are read under the versions that go into `seen`.
    """
    gone: dict[str, Memory] = {}
    touched: dict[str, Memory] = {}
    wave = list(_read(context, In("id", tuple(memory_ids)), seen)) if memory_ids else []
    wave = [row for row in wave if anyones or may_erase(context.reader, row)]
    while wave:
        gone |= {row.id: Memory.of(row) for row in wave}
        drawn = _read(context, In("sources", tuple(row.id for row in wave)), seen)
        touched |= {row.id: Memory.of(row) for row in drawn}
        wave = [row for row in drawn if row.id not in gone and set(touched[row.id].sources) <= gone.keys()]
    return list(gone.values()), [memory for id_, memory in touched.items() if id_ not in gone]


def _read(context: Context, where: Where, seen: dict[str, int]) -> list[Row]:
    """Rows, read again until all are read under the versions of their partitions: what was changed, or moved to another
    partition, in between would outlive the erasure."""
    own = all_of(equals("user_id", context.reader.user_id), where)
    # Counted first, for which a store need not read rows: an erasure that takes long loses every race against those who write.
    if not context.store.count(Kind.MEMORY, own):
        return []
    rows = context.store.find(Kind.MEMORY, own)
    while new := {row.partition for row in rows} - seen.keys():
        seen.update({name: context.store.version(name) for name in new})
        rows = context.store.find(Kind.MEMORY, own)
    return rows


def _unsourced(context: Context, memory: Memory, ids: Sequence[str]) -> list[Row]:
    """A memory without the sources that are erased: when the last of them goes, it goes too."""
    left = [source for source in memory.sources if source not in ids]
    newer, change = revise(memory, at=iso(context.clock()), by=context.reader.agent_id, action="source_erased", sources=left)
    return [newer.row(replaces=memory.revision), change.row(newer.partition)]


def _owned(context: Context, ids: tuple[str, ...]) -> Iterator[Key]:
    for kind in (Kind.CHANGE, Kind.PASSAGE, Kind.USAGE):
        yield from (Key(kind, id_) for id_ in context.store.ids(kind, In("ref", ids)))
    yield from (Key(Kind.LINK, id_) for id_ in context.store.ids(Kind.LINK, Or((In("ref", ids), In("target", ids)))))


def _blank(row: Row) -> Row:
    """A used key stays used, so that a late repetition does not bring the memory back; what was asked is forgotten."""
    receipt = Receipt.of(row)
    return replace(receipt, request=None, revision=receipt.revision + 1).row(row.partition, replaces=receipt.revision)


def _told(context: Context, gone: Sequence[Memory], tombs: Sequence[Block]) -> list[Row]:
    """Erasure blocks: in the caller's chain, and in every chain that lost a text."""
    own = audit.chain_name(context.reader.user_id, context.reader.agent_id)
    rows: list[Row] = []
    for chain in sorted({own, *(tomb.chain for tomb in tombs)}):
        entries = []
        for memory in gone:
            named = [(tomb.id, tomb.block_hash) for tomb in tombs if (tomb.chain, tomb.ref) == (chain, memory.id)]
            if named or chain == own:
                entries.append(_entry(context, memory.id, named))
        # Without its erasure block a tombstone could not be told from tampering, so a chain that lost a text gets one even
        # where the mesh writes no others.
        rows += (
            sealed(context, chain, entries) if context.options.enable_yamo or any(tomb.chain == chain for tomb in tombs) else []
        )
    return rows


def _entry(context: Context, memory_id: str, named: list[tuple[str, str]]) -> Entry:
    ms = context.clock()

    def write(seal: Seal) -> str:
        return blocks.erase(seal, agent=str(context.reader.agent_id), memory_id=memory_id, at=iso(ms), tombstones=named)

    return Entry(
        id=context.ids.new("yamo_retain", ms),
        operation_type="retain",
        ms=ms,
        write=write,
        ref=memory_id,
        metadata={"action": "erase"},
    )
