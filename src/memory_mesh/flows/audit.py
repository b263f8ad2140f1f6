"""Read, export, verify and prune the audit chains of a user."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile

from memory_mesh.core import audit
from memory_mesh.core.audit import ERASED, OPERATIONS, WITHHELD, Broken, Sound, Verdict
from memory_mesh.core.audit.memories import Fault, memory_fault
from memory_mesh.core.checks import number, whole_number
from memory_mesh.core.errors import InvalidInput, StoreBusy, shown
from memory_mesh.core.model import ANYTHING, DAY_MS, Block, Compare, Head, In, Kind, Or, Row, all_of, batches, equals, iso
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.text import shown_url
from memory_mesh.flows import signing, trail
from memory_mesh.flows.chains import audit_rows, blocks, head_of, in_order, new_entry
from memory_mesh.flows.context import Context, Plan, commit, find_rows

_AT_ONCE = 500
_ATTEMPTS = 20
_PRUNED_AT_ONCE = 1000  # blocks removed in one write
_Watch = Callable[[Iterable[Block]], Iterator[Block]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSelection:
    """A selection of a user's chains: of one agent or all, of memories, of searches, or both."""

    agent_id: str | None = None
    recalls: bool | None = None

    def __post_init__(self) -> None:
        if self.agent_id is not None and not isinstance(self.agent_id, str):
            raise InvalidInput(f"agent_id is {shown(self.agent_id)}", expected="the id of an agent, or None for all")
        if self.recalls is not None and not isinstance(self.recalls, bool):
            raise InvalidInput(f"recalls is {shown(self.recalls)}", expected="true, false, or None for all chains")

    def has(self, chain: str) -> bool:
        """Return whether a chain is selected."""
        same_agent = self.agent_id is None or audit.owner_of(chain)[1] == self.agent_id
        return same_agent and self.recalls in (None, audit.of_recalls(chain))


ALL_CHAINS = ChainSelection()


def heads(context: Context, selection: ChainSelection = ALL_CHAINS) -> list[Head]:
    """Return the heads of this user's chains."""
    return [head for head in _heads_of(context, context.reader.user_id) if selection.has(head.id)]


def log(
    context: Context, *, selection: ChainSelection = ALL_CHAINS, operation: str | None = None, limit: int = 20,
    auditor: str | None = None,
) -> list[Block]:  # fmt: skip
    """Return this user's blocks, newest first. Texts that the reader may not see are withheld, unless it is an auditor."""
    if operation is not None and operation not in OPERATIONS:
        raise InvalidInput(f"operation is {shown(operation)}", expected=f"one of {', '.join(OPERATIONS)}")
    whole_number("limit", limit)
    if auditor is not None:
        trail.record_auditor(context, auditor, "audit log")
    where = all_of(
        equals("user_id", context.reader.user_id),
        ANYTHING if selection.agent_id is None else equals("agent_id", selection.agent_id),
        ANYTHING if operation is None else equals("operation_type", operation),
        ANYTHING if selection.recalls is None else Compare("operation_type", "=" if selection.recalls else "<>", "recall"),
    )
    found = [Block.of(row) for row in context.store.find(Kind.BLOCK, where, limit=limit)]
    return found if auditor is not None else trail.within_scope(context, found)


def export(
    context: Context, *, selection: ChainSelection = ALL_CHAINS, as_json: bool = False, auditor: str | None = None,
    progress: Progress = no_progress,
) -> Iterator[str]:  # fmt: skip
    """Yield this user's chains one after another, each from its first block, in the wire format or as lines of JSON, which can be
    verified. Erased and withheld blocks have no text, so only JSON includes them."""
    if auditor is not None:
        trail.record_auditor(context, auditor, "audit export")
    return _pieces(context, selection, as_json=as_json, all_texts=auditor is not None, progress=progress)


def _pieces(context: Context, selection: ChainSelection, *, as_json: bool, all_texts: bool, progress: Progress) -> Iterator[str]:
    chains = _chains(context, selection)
    total = sum(context.store.count(Kind.BLOCK, equals("chain", chain)) for chain in chains)
    every = (block for chain in chains for block in _consistent(context, chain))
    done = 0
    for batch in batches(every, _AT_ONCE):
        for block in batch if all_texts else trail.within_scope(context, batch):
            if as_json:
                yield audit.line(block) + "\n"
            elif block.yamo_text not in (ERASED, WITHHELD):
                yield block.yamo_text
        done += len(batch)
        progress("exporting", done, total)


def _consistent(context: Context, chain: str) -> Iterator[Block]:
    """Yield the blocks of a chain. Raise `StoreBusy` if old blocks are removed meanwhile: the rest would not fit."""
    first = last = None
    for block in in_order(context, chain, head_of(context, chain)):
        if first and last and block.number != last.number + 1 and not context.store.get(Kind.BLOCK, [first.id]):
            raise StoreBusy(f"{shown_url(context.store.url)}: old blocks were removed during the export", remedy="export again")
        first, last = first or block, block
        yield block


# --- verifying ---


def verify(context: Context, chain: str, *, noted: tuple[int, str] | None = None, watch: _Watch = iter) -> Verdict:
    """Verify a chain and the contents that it seals. Its blocks pass through `watch`.

    Others may write between two reads, so a break counts only if no chain of the user has grown meanwhile.
    """
    user_id, _ = audit.owner_of(chain)
    verdict = _walk(context, chain, noted, watch)
    for attempt in range(_ATTEMPTS if isinstance(verdict, Broken) else 0):
        before = _heads_of(context, user_id)
        verdict = _walk(context, chain, noted, watch)
        if isinstance(verdict, Sound) or _heads_of(context, user_id) == before:
            break
        context.pause(attempt)
    return verdict


def verify_all(
    context: Context, selection: ChainSelection = ALL_CHAINS, *, noted: tuple[int, str] | None = None,
    progress: Progress = no_progress,
) -> list[Verdict]:  # fmt: skip
    """Verify this user's chains, also those without a head. A noted head may belong to any of them."""
    if noted is not None:
        noted = _checked_head(noted)
    chains = _chains(context, selection)
    chain_of_noted = _chain_of(context, chains, noted) if noted and noted[0] and chains else None
    watch = _reporting(progress, sum(head.number for head in heads(context, selection)))
    verdicts = [verify(context, chain, noted=noted if chain == chain_of_noted else None, watch=watch) for chain in chains]
    if noted and noted[0] and chain_of_noted is None:
        verdicts.append(audit.noted_missing(chains[0] if len(chains) == 1 else "", noted[0]))
    return verdicts


def _checked_head(noted: object) -> tuple[int, str]:
    if isinstance(noted, tuple | list) and len(noted) == 2 and isinstance(noted[0], int) and isinstance(noted[1], str):
        return noted[0], noted[1]
    raise InvalidInput(f"head is {shown(noted)}", expected="a number and a hash or seal, from audit_heads")


def _chains(context: Context, selection: ChainSelection) -> list[str]:
    """Return the names of the selected chains. Chains without a head are found one by one, because a chain has many blocks."""
    chains = {head.id for head in heads(context)}
    while (chain := headless_chain(context, chains)) is not None:
        chains.add(chain)
    return sorted(filter(selection.has, chains))


def headless_chain(context: Context, others: Iterable[str]) -> str | None:
    """Return a chain of the user that has blocks and is not among the others, or None."""
    other = all_of(*(Compare("chain", "<>", chain) for chain in sorted(others)))
    unnamed = Or((equals("chain", None), equals("number", None), other))
    rows = context.store.find(Kind.BLOCK, all_of(equals("user_id", context.reader.user_id), unnamed), limit=1)
    return Block.of(rows[0]).chain if rows else None


def _chain_of(context: Context, chains: Sequence[str], noted: tuple[int, str]) -> str | None:
    """Return the chain that has the noted block."""
    number, hash_ = noted
    found = context.store.find(Kind.BLOCK, all_of(In("chain", tuple(chains)), equals("number", number)))
    return next((block.chain for block in map(Block.of, found) if hash_ in (block.block_hash, block.seal)), None)


def _heads_of(context: Context, user_id: str | None) -> list[Head]:
    every = [Head.of(row) for row in context.store.find(Kind.HEAD)]
    return sorted((head for head in every if audit.owner_of(head.id)[0] == user_id), key=lambda head: head.id)


@dataclass(slots=True)
class _Watcher:
    """What verification keeps of the blocks, to check their memories afterwards."""

    head: Head | None = None  # the head after all blocks were read
    refs: set[str] = field(default_factory=set)
    quoting: dict[str, tuple[int, str]] = field(default_factory=dict)  # memory → number and id of its last quoting block

    def watch(self, walked: Iterator[Block]) -> Iterator[Block]:
        for block in walked:
            if block.ref:
                self.refs.add(block.ref)
                if audit.quotes(block):
                    self.quoting[block.ref] = (block.number, block.id)
            yield block


def _reporting(progress: Progress, total: int) -> _Watch:
    """Return a function that passes blocks on and reports how many there were."""
    numbers = count(1)

    def watch(blocks: Iterable[Block]) -> Iterator[Block]:
        for block in blocks:
            if (number := next(numbers)) % _AT_ONCE == 0 or number == total:
                progress("verifying", min(number, total), total)
            yield block

    return watch


def _walk(context: Context, chain: str, noted: tuple[int, str] | None, watch: _Watch) -> Verdict:
    watcher, keys = _Watcher(), signing.key_walk(context, chain)
    walked = keys.watch(watcher.watch(watch(_with_new_blocks(context, chain, watcher))))
    verdict = audit.verify_chain(chain, walked, lambda: watcher.head, noted=noted)
    verdict = signing.with_signature(keys, verdict, watcher.head)
    return verdict if isinstance(verdict, Broken) else _contents(context, chain, watcher) or verdict


def _with_new_blocks(context: Context, chain: str, watcher: _Watcher) -> Iterator[Block]:
    """Yield all blocks, and those appended meanwhile. A block and its head are written together, so no block may be missing up to
    a head that is read afterwards."""
    number = 0
    for block in in_order(context, chain, head_of(context, chain)):
        number = block.number
        yield block
    watcher.head = head_of(context, chain)
    if watcher.head and watcher.head.number > number:
        yield from blocks(context, chain, all_of(Compare("number", ">", number), Compare("number", "<=", watcher.head.number)))


# --- contents ---


def _contents(context: Context, chain: str, watched: _Watcher) -> Broken | None:
    """Return the first memory that is missing, or that differs from what its blocks sealed."""
    for ids in batches(sorted(watched.refs), _AT_ONCE):
        # Memories before history and blocks: a change or erasure in between has left a block, and is looked up again.
        stored = find_rows(context, ids)
        for gone in (ref for ref in ids if ref in watched.quoting and ref not in stored):
            number, block_id = watched.quoting[gone]
            # A concurrent erasure removes the text of the block with the memory.
            if any(audit.quotes(Block.of(row)) for row in context.store.get(Kind.BLOCK, [block_id]).values()):
                return Broken(chain, number, block_id, f"{gone} is missing and no erasure block names it")
        about = In("ref", tuple(stored))
        history = _by_ref(context.store.find(Kind.CHANGE, about)) if stored else {}
        # Many agents may change a shared memory. Chains of other users are not verified here, so they are not used.
        own = all_of(equals("user_id", audit.owner_of(chain)[0]), about)
        blocks = _by_ref(context.store.find(Kind.BLOCK, own)) if stored else {}
        for id_, row in stored.items():
            if fault := _fault(context, row, history.get(id_, []), [Block.of(row) for row in blocks.get(id_, [])]):
                return Broken(chain, fault.block.number, fault.block.id, fault.reason)
    return None


def _by_ref(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row.value("ref")), []).append(row)
    return groups


def _fault(context: Context, memory: Row, history: Sequence[Row], blocks: Sequence[Block]) -> Fault | None:
    """Return how a memory differs from what was sealed. If it was changed after it was read, what is newer does not count."""
    fault = memory_fault(memory, history, blocks)
    if fault is None:
        return None
    row = find_rows(context, [memory.id]).get(memory.id)
    if row is None or row.revision == memory.revision:
        return fault if row else None
    known = [block for block in blocks if (audit.sealed_content(block.yamo_text) or (0, ""))[0] <= memory.revision]
    return memory_fault(memory, [change for change in history if change.number <= memory.revision], known)


# --- retention of recall blocks ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """The result of pruning recall blocks."""

    removed: int = 0
    checkpoints: tuple[str, ...] = ()  # the blocks that record it
    broken: tuple[Broken, ...] = ()  # broken chains are not pruned: that would hide the break


def prune(context: Context, *, older_than_days: float = 90) -> Pruned:
    """Remove this user's recall blocks that are older, and append a checkpoint for each group."""
    context.check_enabled()
    days = number("older_than_days", older_than_days, min_=0, max_=1e6, expected="a number of days, 0 or more")
    return prune_before(context, iso(max(0, context.clock() - round(days * DAY_MS))))


def prune_before(context: Context, before: str) -> Pruned:
    """Remove this user's recall blocks from before a time."""
    removed = 0
    checkpoints: list[str] = []
    broken: list[Broken] = []
    for chain in (head.id for head in heads(context) if audit.of_recalls(head.id)):
        if not context.store.count(Kind.BLOCK, all_of(equals("chain", chain), Compare("created_at", "<", before))):
            continue
        if isinstance(verdict := verify(context, chain), Broken):
            broken.append(verdict)
            continue
        while pruned := commit(context, partial(_plan_prune, context, chain, before)):
            removed += pruned[0]
            checkpoints.append(pruned[1])
    return Pruned(removed=removed, checkpoints=tuple(checkpoints), broken=tuple(broken))


def _plan_prune(context: Context, chain: str, before: str) -> Plan[tuple[int, str] | None]:
    """Remove the oldest blocks and append a checkpoint. The answer is the number of removed blocks and the id of the checkpoint.

    The new head derives from the one read first, so a concurrent append or removal is a conflict.
    """
    head = Head.of(context.store.get(Kind.HEAD, [chain])[chain])
    first = head.number - context.store.count(Kind.BLOCK, equals("chain", chain)) + 1  # a sound chain has no gap
    oldest = blocks(context, chain, Compare("number", "<", first + _PRUNED_AT_ONCE))
    old = list(takewhile(lambda block: block.created_at < before, oldest))
    if all(audit.sealed_through(block.yamo_text) for block in old):
        return Plan(None)  # only checkpoints are left: another one would add nothing
    ms, agent = context.clock(), str(audit.owner_of(chain)[1])
    last = old[-1]
    write = partial(
        audit.checkpoint, agent=agent, at=iso(ms), removed=len(old), through=last.number, through_hash=last.block_hash,
        through_seal=last.seal,
    )  # fmt: skip
    entry = new_entry(context, "recall", ms, write)
    puts = audit_rows(context, chain, [entry], head=head)
    return Plan((len(old), entry.id), puts, [block.row().key for block in old])
