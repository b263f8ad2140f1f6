"""Erase memories for good: every revision, vector, passage and link, and the memories derived from them alone.

Audit blocks that quote an erased memory keep their number and hash and lose their text. Each chain with such a block gets an
erasure block that names it, so that every chain can be verified by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry, blocks
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import Block, In, Key, Kind, Memory, MemoryType, Row, all_of, batches, equals, iso, may_erase
from memory_mesh.core.reprs import short_repr
from memory_mesh.flows.chains import audit_rows, needed_entries, new_entry, own_chain
from memory_mesh.flows.context import Context, Plan, check_texts, write_plan
from memory_mesh.flows.write import revise

_AT_ONCE = 1000
_ERASE = {"action": "erase"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The proof of an erasure: the ids of what was erased and of the blocks that record it."""

    __repr__ = short_repr

    memories: tuple[str, ...] = ()
    rows: int = 0  # deleted rows: memories, revisions, passages, links, counters
    tombstones: tuple[str, ...] = ()  # blocks that lost their text
    blocks: tuple[str, ...] = ()  # erasure blocks that were written
    bytes_freed: bool = True  # False: the bytes stay in the files until `compact`

    def __add__(self, other: "Erasure") -> "Erasure":
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("memories", "rows", "tombstones", "blocks")}
        return Erasure(**sums, bytes_freed=self.bytes_freed and other.bytes_freed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCheck:
    """What was looked for after an erasure, by some characters of each text, and what was found."""

    texts: int  # different texts: contents, older contents, queries
    too_short: int = 0  # texts that are too short to be looked for
    found_before: int  # of them in the files before the erasure: the control
    found: tuple[tuple[str, str], ...] = ()  # the ids of texts that are still in a file, and the names of the files
    shared: int = 0  # texts that are still in the files because memories of others have the same words
    rows_left: int = 0  # rows of the user that the store still has
    search_results: int = 0  # memories that a search for the texts still finds

    @property
    def clean(self) -> bool:
        return not (self.found or self.rows_left or self.search_results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten(Erasure):
    """The proof that a user was forgotten."""

    damaged: tuple[str, ...] = ()  # chains of searches that are broken, and so keep their queries
    check: ErasureCheck | None = None  # with `verify`


def erase(context: Context, memory_ids: Sequence[str]) -> Erasure:
    """Erase these memories. Ids that are unknown, or that the reader may not erase, are ignored."""
    for memory_id in memory_ids:
        check_texts(id=memory_id)
    return _erase(context, memory_ids, any_agent=False)


def erase_all(context: Context, scope: Mapping[str, str | None]) -> Erasure:
    """Erase all memories of a scope within the reader's user, of every agent. Raise `InvalidInput` for an empty scope."""
    given = {name: value for name, value in scope.items() if value is not None}
    if not given:
        raise InvalidInput("delete_all without a scope", expected=f"one of {', '.join(scope)}")
    context.check_enabled()
    check_texts(**given)
    if given.get("memory_type", MemoryType.GLOBAL) not in list(MemoryType):
        raise InvalidInput(f"memory_type is {shown(given['memory_type'])}", expected=f"one of {', '.join(MemoryType)}")
    user_id = context.reader.user_id
    if given.get("user_id", user_id) != user_id:
        raise InvalidInput(f"user {shown(given['user_id'])} is not this mesh's", remedy="open MemoryMesh(user_id=…) as that user")
    where = all_of(*(equals(name, value) for name, value in {**given, "user_id": user_id}.items()))
    proof = Erasure()
    while ids := context.store.ids(Kind.MEMORY, where):
        for batch in batches(ids, _AT_ONCE):
            proof += _erase(context, batch, any_agent=True)  # a scope includes all agents of the user
    return proof


def _erase(context: Context, memory_ids: Sequence[str], *, any_agent: bool) -> Erasure:
    context.check_enabled()
    partitions: set[str] = set()

    def decide() -> Plan[Erasure]:
        plan = _plan_erasure(context, memory_ids, any_agent=any_agent)
        partitions.update(plan.seen)
        # Before the rows are deleted, so that a crash leaves no derived files; and again after, for files written meanwhile.
        context.index.forget(plan.seen)
        return plan

    proof, bytes_freed = write_plan(context.store, decide, pause=context.pause, step=context.step)
    context.index.forget(partitions)
    context.state.cache.clear()
    return replace(proof, bytes_freed=bytes_freed)


def _plan_erasure(context: Context, memory_ids: Sequence[str], *, any_agent: bool) -> Plan[Erasure]:
    seen: dict[str, int] = {}
    erased, derived = _select(context, memory_ids, seen, any_agent=any_agent)
    if not erased:
        return Plan(Erasure())
    ids = tuple(memory.id for memory in erased)
    about = In("ref", ids)
    quoting = [Block.of(row) for row in context.store.find(Kind.BLOCK, about)]
    tombstones = [audit.tombstone(block) for block in quoting if audit.quotes(block)]
    puts = [tombstone.row(replaces=tombstone.revision - 1) for tombstone in tombstones]
    puts += [_clear_receipt(row) for row in context.store.find(Kind.RECEIPT, about) if row.value("request")]
    revised = [_without_sources(context, memory, ids) for memory in derived]
    puts += [row for rows, _ in revised for row in rows]
    erasure_rows = _erasure_rows(context, erased, tombstones, [entry for _, entry in revised])
    deletes = [Key(Kind.MEMORY, id_) for id_ in ids]
    deletes += [Key(kind, id_) for kind in (Kind.CHANGE, Kind.PASSAGE, Kind.USAGE) for id_ in context.store.ids(kind, about)]
    links = {*context.store.ids(Kind.LINK, about), *context.store.ids(Kind.LINK, In("target", ids))}
    deletes += [Key(Kind.LINK, id_) for id_ in links]
    proof = Erasure(
        memories=ids,
        rows=len(deletes),
        tombstones=tuple(tombstone.id for tombstone in tombstones),
        blocks=tuple(row.id for row in erasure_rows if row.value("metadata") == _ERASE),
    )
    return Plan(proof, [*puts, *erasure_rows], deletes, seen)


def _select(
    context: Context, memory_ids: Sequence[str], seen: dict[str, int], *, any_agent: bool
) -> tuple[list[Memory], list[Memory]]:
    """Return the memories to erase, with those derived from them alone, and the memories that have other sources too.

    Adds to `seen` the versions under which all of them were read.
    """
    erased: dict[str, Memory] = {}
    derived: dict[str, Memory] = {}
    rows = _read(context, In("id", tuple(memory_ids)), seen) if memory_ids else []
    rows = [row for row in rows if any_agent or may_erase(context.reader, row)]
    while rows:
        erased |= {row.id: Memory.of(row) for row in rows}
        next_rows = _read(context, In("sources", tuple(row.id for row in rows)), seen)
        derived |= {row.id: Memory.of(row) for row in next_rows}
        rows = [row for row in next_rows if row.id not in erased and set(derived[row.id].sources) <= erased.keys()]
    return list(erased.values()), [memory for id_, memory in derived.items() if id_ not in erased]


def _read(context: Context, where: In, seen: dict[str, int]) -> list[Row]:
    """Return the user's memories that match, all read under the versions in `seen`.

    A memory that was changed, or moved to another partition, during the read would survive the erasure, so rows are read again
    until no new partition appears.
    """
    own = all_of(equals("user_id", context.reader.user_id), where)
    # Counting is cheaper than reading rows, and a slow erasure loses every race against concurrent writers.
    if not context.store.count(Kind.MEMORY, own):
        return []
    rows = context.store.find(Kind.MEMORY, own)
    while new := {row.partition for row in rows} - seen.keys():
        seen.update({name: context.store.version(name) for name in new})
        rows = context.store.find(Kind.MEMORY, own)
    return rows


def _without_sources(context: Context, memory: Memory, ids: Sequence[str]) -> tuple[list[Row], Entry]:
    """Return the rows and the audit entry that remove erased sources from a memory. Once its last source is erased, it is erased
    too."""
    left = [source for source in memory.sources if source not in ids]
    newer, change, entry = revise(context, context.clock(), memory, action="source_erased", sources=left)
    return [newer.row(replaces=memory.revision), change], entry


def _clear_receipt(row: Row) -> Row:
    """Return a receipt without its request. The key stays used, so that a late retry does not store the memory again."""
    fields = {name: value for name, value in row.fields.items() if name != "request"}
    return replace(row, fields=fields, revision=row.revision + 1, replaces=row.revision)


def _erasure_rows(context: Context, erased: Sequence[Memory], tombstones: Sequence[Block], revised: Sequence[Entry]) -> list[Row]:
    """Return the erasure blocks for the reader's chain and for every chain with a tombstone, and the blocks of `revised`."""
    own = own_chain(context)
    rows: list[Row] = []
    for chain in sorted({own, *(tombstone.chain for tombstone in tombstones)}):
        here = [tombstone for tombstone in tombstones if tombstone.chain == chain]
        named = {memory.id: [(block.id, block.block_hash) for block in here if block.ref == memory.id] for memory in erased}
        # A tombstone without its erasure block looks like tampering, so it gets one even if audit blocks are disabled.
        every = chain == own and (bool(here) or context.options.enable_yamo)
        entries = [_erasure_entry(context, chain, id_, lost) for id_, lost in named.items() if lost or every]
        more = needed_entries(context, revised) if chain == own else []
        rows += audit_rows(context, chain, [*more, *entries])
    return rows


def _erasure_entry(context: Context, chain: str, memory_id: str, tombstones: list[tuple[str, str]]) -> Entry:
    ms = context.clock()
    write = partial(
        blocks.erase, agent=str(audit.owner_of(chain)[1]), erased_by=str(context.reader.agent_id), memory_id=memory_id,
        at=iso(ms), tombstones=tombstones,
    )  # fmt: skip
    return new_entry(context, "retain", ms, write, ref=memory_id, metadata=_ERASE)
