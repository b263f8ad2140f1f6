"""Read, export, verify, prune, re-sign and anchor the audit chains of a user."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, takewhile

from memory_mesh.core import audit
from memory_mesh.core.audit import ERASED, OPERATIONS, WITHHELD, Anchored, Broken, Sound, Verdict
from memory_mesh.core.audit import blocks as wire_blocks
from memory_mesh.core.audit.chain import SigningKey
from memory_mesh.core.audit.signing import Rekeyed
from memory_mesh.core.audit.verify import Fault, memory_fault
from memory_mesh.core.errors import (
    InvalidInput,
    SettingsError,
    StoreBusy,
    StoreCorrupt,
    number,
    shown,
    whole_number,
)
from memory_mesh.core.model import (
    ANYTHING,
    BY_NAME,
    DAY_MS,
    Block,
    Compare,
    Head,
    In,
    Json,
    Kind,
    Memory,
    Meta,
    Or,
    Row,
    all_of,
    batches,
    equals,
    fault,
    iso,
    visible_from,
)
from memory_mesh.core.ports import Progress, SigningKeys, no_progress
from memory_mesh.core.text import shown_url
from memory_mesh.flows.audit.chains import (
    audit_rows,
    blocks,
    head_of,
    in_order,
    is_signed,
    key_walk,
    new_entry,
    own_chain,
    with_signature,
)
from memory_mesh.flows.context import Context, Plan, commit, find_rows
from memory_mesh.flows.search.readable import changes_by_id

# --- reading within scope ---
# A named auditor reads everything; that it read is recorded first.

_MAX_NAME = 200


def within_scope(context: Context, blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks; the texts that the reader may not see are withheld."""
    rows = find_rows(context, list(dict.fromkeys(block.ref for block in blocks if block.ref)))
    memories = {id_: Memory.of(row) for id_, row in rows.items() if row.revision > 1}
    changes = changes_by_id(context, memories.values())
    # The first revision of each changed memory from which on the reader could see it.
    first = {
        id_: visible_from(context.reader, memory, changes[id_]) for id_, memory in memories.items()
    }
    return [
        block if audit.may_read(context.reader, block, rows.get(block.ref or ""),
                                first.get(block.ref or "", 0))
        else audit.withhold(block)
        for block in blocks
    ]  # fmt: skip


def record_auditor(context: Context, auditor: object, what: str) -> None:
    """Append a block to the reader's chain that names the auditor. It is durable before any text
    is shown."""
    if (
        not isinstance(auditor, str)
        or not auditor.strip()
        or len(auditor) > _MAX_NAME
        or fault(BY_NAME["agent_id"], auditor)
    ):
        raise InvalidInput(
            f"auditor is {shown(auditor)}",
            expected=f"the name of a person, at most {_MAX_NAME} characters",
        )
    name, agent = context.gates.content().redact(auditor.strip()), str(context.reader.agent_id)

    def decide() -> Plan[None]:
        ms = context.clock()
        write = partial(wire_blocks.audit_read, agent=agent, auditor=name, what=what, at=iso(ms))
        entry = new_entry(context, "retain", ms, write, metadata={"action": wire_blocks.AUDIT_READ})
        # Written even if audit blocks are disabled: every reading of other scopes is recorded.
        return Plan(None, audit_rows(context, own_chain(context), [entry]))

    commit(context, decide)


# --- chains ---

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
            raise InvalidInput(
                f"agent_id is {shown(self.agent_id)}",
                expected="the id of an agent, or None for all",
            )
        if self.recalls is not None and not isinstance(self.recalls, bool):
            raise InvalidInput(
                f"recalls is {shown(self.recalls)}", expected="true, false, or None for all chains"
            )

    def has(self, chain: str) -> bool:
        """Return whether a chain is selected."""
        same_agent = self.agent_id is None or audit.owner_of(chain)[1] == self.agent_id
        return same_agent and self.recalls in (None, audit.of_recalls(chain))


ALL_CHAINS = ChainSelection()


def heads(context: Context, selection: ChainSelection = ALL_CHAINS) -> list[Head]:
    """Return the heads of this user's chains."""
    return [head for head in _heads_of(context, context.reader.user_id) if selection.has(head.id)]


def log(
    context: Context, *, selection: ChainSelection = ALL_CHAINS, operation: str | None = None,
    limit: int = 20, auditor: str | None = None,
) -> list[Block]:  # fmt: skip
    """Return this user's blocks, newest first. Texts that the reader may not see are withheld,
    unless it is an auditor."""
    if operation is not None and operation not in OPERATIONS:
        raise InvalidInput(
            f"operation is {shown(operation)}", expected=f"one of {', '.join(OPERATIONS)}"
        )
    whole_number("limit", limit)
    if auditor is not None:
        record_auditor(context, auditor, "audit log")
    where = all_of(
        equals("user_id", context.reader.user_id),
        ANYTHING if selection.agent_id is None else equals("agent_id", selection.agent_id),
        ANYTHING if operation is None else equals("operation_type", operation),
        ANYTHING
        if selection.recalls is None
        else Compare("operation_type", "=" if selection.recalls else "<>", "recall"),
    )
    found = [Block.of(row) for row in context.store.find(Kind.BLOCK, where, limit=limit)]
    return found if auditor is not None else within_scope(context, found)


def export(
    context: Context, *, selection: ChainSelection = ALL_CHAINS, as_json: bool = False,
    auditor: str | None = None, progress: Progress = no_progress,
) -> Iterator[str]:  # fmt: skip
    """Yield this user's chains one after another, each from its first block, in the wire format
    or as lines of JSON, which can be verified. Erased and withheld blocks have no text, so only
    JSON includes them."""
    if auditor is not None:
        record_auditor(context, auditor, "audit export")
    return _pieces(
        context, selection, as_json=as_json, all_texts=auditor is not None, progress=progress
    )


def _pieces(
    context: Context,
    selection: ChainSelection,
    *,
    as_json: bool,
    all_texts: bool,
    progress: Progress,
) -> Iterator[str]:
    chains = _chains(context, selection)
    total = sum(context.store.count(Kind.BLOCK, equals("chain", chain)) for chain in chains)
    every = (block for chain in chains for block in _consistent(context, chain))
    done = 0
    for batch in batches(every, _AT_ONCE):
        for block in batch if all_texts else within_scope(context, batch):
            if as_json:
                yield audit.line(block) + "\n"
            elif block.yamo_text not in (ERASED, WITHHELD):
                yield block.yamo_text
        done += len(batch)
        progress("exporting", done, total)


def _consistent(context: Context, chain: str) -> Iterator[Block]:
    """Yield the blocks of a chain. Raise `StoreBusy` if old blocks are removed meanwhile: the
    rest would not fit."""
    first = last = None
    for block in in_order(context, chain, head_of(context, chain)):
        if (
            first
            and last
            and block.number != last.number + 1
            and not context.store.get(Kind.BLOCK, [first.id])
        ):
            raise StoreBusy(
                f"{shown_url(context.store.url)}: old blocks were removed during the export",
                remedy="export again",
            )
        first, last = first or block, block
        yield block


# --- verifying ---


def verify(
    context: Context, chain: str, *, noted: tuple[int, str] | None = None, watch: _Watch = iter
) -> Verdict:
    """Verify a chain and the contents that it seals. Its blocks pass through `watch`.

    Others may write between two reads, so a break counts only if no chain of the user has grown
    meanwhile.
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
    context: Context, selection: ChainSelection = ALL_CHAINS, *,
    noted: tuple[int, str] | None = None, progress: Progress = no_progress,
) -> list[Verdict]:  # fmt: skip
    """Verify this user's chains, also those without a head. A noted head may belong to any of
    them."""
    match noted:
        case None | [int(), str()]:
            pass
        case _:
            raise InvalidInput(
                f"head is {shown(noted)}", expected="a number and a hash or seal, from audit_heads"
            )
    chains, chain_of_noted = _chains(context, selection), None
    if noted and noted[0] and chains:
        same_number = all_of(In("chain", tuple(chains)), equals("number", noted[0]))
        found = map(Block.of, context.store.find(Kind.BLOCK, same_number))
        noted_blocks = (block for block in found if noted[1] in (block.block_hash, block.seal))
        chain_of_noted = next((block.chain for block in noted_blocks), None)
    watch = _reporting(progress, sum(head.number for head in heads(context, selection)))
    verdicts = [
        verify(context, chain, noted=noted if chain == chain_of_noted else None, watch=watch)
        for chain in chains
    ]
    if noted and noted[0] and chain_of_noted is None:
        verdicts.append(audit.noted_missing(chains[0] if len(chains) == 1 else "", noted[0]))
    return verdicts


def _chains(context: Context, selection: ChainSelection) -> list[str]:
    """Return the names of the selected chains. Chains without a head are found one by one,
    because a chain has many blocks."""
    chains = {head.id for head in heads(context)}
    while (chain := headless_chain(context, chains)) is not None:
        chains.add(chain)
    return sorted(filter(selection.has, chains))


def headless_chain(context: Context, others: Iterable[str]) -> str | None:
    """Return a chain of the user that has blocks and is not among the others, or None."""
    other = all_of(*(Compare("chain", "<>", chain) for chain in sorted(others)))
    unnamed = Or((equals("chain", None), equals("number", None), other))
    rows = context.store.find(
        Kind.BLOCK, all_of(equals("user_id", context.reader.user_id), unnamed), limit=1
    )
    return Block.of(rows[0]).chain if rows else None


def _heads_of(context: Context, user_id: str | None) -> list[Head]:
    every = [Head.of(row) for row in context.store.find(Kind.HEAD)]
    return sorted(
        (head for head in every if audit.owner_of(head.id)[0] == user_id), key=lambda head: head.id
    )


@dataclass(slots=True)
class _Watcher:
    """What verification keeps of the blocks, to check their memories afterwards."""

    head: Head | None = None  # the head after all blocks were read
    refs: set[str] = field(default_factory=set)
    # Memory → number and id of its last quoting block.
    quoting: dict[str, tuple[int, str]] = field(default_factory=dict)

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
    watcher, keys = _Watcher(), key_walk(context, chain)
    walked = keys.watch(watcher.watch(watch(_with_new_blocks(context, chain, watcher))))
    verdict = audit.verify_chain(chain, walked, lambda: watcher.head, noted=noted)
    verdict = with_signature(keys, verdict, watcher.head)
    return verdict if isinstance(verdict, Broken) else _contents(context, chain, watcher) or verdict


def _with_new_blocks(context: Context, chain: str, watcher: _Watcher) -> Iterator[Block]:
    """Yield all blocks, and those appended meanwhile. A block and its head are written together,
    so no block may be missing up to a head that is read afterwards."""
    number = 0
    for block in in_order(context, chain, head_of(context, chain)):
        number = block.number
        yield block
    watcher.head = head_of(context, chain)
    if watcher.head and watcher.head.number > number:
        yield from blocks(
            context,
            chain,
            all_of(Compare("number", ">", number), Compare("number", "<=", watcher.head.number)),
        )


# --- contents ---


def _contents(context: Context, chain: str, watched: _Watcher) -> Broken | None:
    """Return the first memory that is missing, or that differs from what its blocks sealed."""
    for ids in batches(sorted(watched.refs), _AT_ONCE):
        # Memories before history and blocks: a change or erasure in between has left a block, and
        # is looked up again.
        stored = find_rows(context, ids)
        for gone in (ref for ref in ids if ref in watched.quoting and ref not in stored):
            number, block_id = watched.quoting[gone]
            # A concurrent erasure removes the text of the block with the memory.
            if any(
                audit.quotes(Block.of(row))
                for row in context.store.get(Kind.BLOCK, [block_id]).values()
            ):
                return Broken(
                    chain, number, block_id, f"{gone} is missing and no erasure block names it"
                )
        about = In("ref", tuple(stored))
        history = _by_ref(context.store.find(Kind.CHANGE, about)) if stored else {}
        # Many agents may change a shared memory. Chains of other users are not verified here, so
        # they are not used.
        own = all_of(equals("user_id", audit.owner_of(chain)[0]), about)
        blocks = _by_ref(context.store.find(Kind.BLOCK, own)) if stored else {}
        for id_, row in stored.items():
            if fault := _fault(
                context, row, history.get(id_, []), [Block.of(row) for row in blocks.get(id_, [])]
            ):
                return Broken(chain, fault.block.number, fault.block.id, fault.reason)
    return None


def _by_ref(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row.value("ref")), []).append(row)
    return groups


def _fault(
    context: Context, memory: Row, history: Sequence[Row], blocks: Sequence[Block]
) -> Fault | None:
    """Return how a memory differs from what was sealed. If it was changed after it was read,
    what is newer does not count."""
    fault = memory_fault(memory, history, blocks)
    if fault is None:
        return None
    row = find_rows(context, [memory.id]).get(memory.id)
    if row is None or row.revision == memory.revision:
        return fault if row else None
    known = [
        block
        for block in blocks
        if (audit.sealed_content(block.yamo_text) or (0, ""))[0] <= memory.revision
    ]
    return memory_fault(
        memory, [change for change in history if change.number <= memory.revision], known
    )


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
    days = number(
        "older_than_days", older_than_days, min_=0, max_=1e6, expected="a number of days, 0 or more"
    )
    return prune_before(context, iso(max(0, context.clock() - round(days * DAY_MS))))


def prune_before(context: Context, before: str) -> Pruned:
    """Remove this user's recall blocks from before a time."""
    removed = 0
    checkpoints: list[str] = []
    broken: list[Broken] = []
    for chain in (head.id for head in heads(context) if audit.of_recalls(head.id)):
        if not context.store.count(
            Kind.BLOCK, all_of(equals("chain", chain), Compare("created_at", "<", before))
        ):
            continue
        if isinstance(verdict := verify(context, chain), Broken):
            broken.append(verdict)
            continue
        while pruned := commit(context, partial(_plan_prune, context, chain, before)):
            removed += pruned[0]
            checkpoints.append(pruned[1])
    return Pruned(removed=removed, checkpoints=tuple(checkpoints), broken=tuple(broken))


def _plan_prune(context: Context, chain: str, before: str) -> Plan[tuple[int, str] | None]:
    """Remove the oldest blocks and append a checkpoint. The answer is the number of removed blocks
    and the id of the checkpoint.

    The new head derives from the one read first, so a concurrent append or removal is a conflict.
    """
    head = Head.of(context.store.get(Kind.HEAD, [chain])[chain])
    # A sound chain has no gap.
    first = head.number - context.store.count(Kind.BLOCK, equals("chain", chain)) + 1
    oldest = blocks(context, chain, Compare("number", "<", first + _PRUNED_AT_ONCE))
    old = list(takewhile(lambda block: block.created_at < before, oldest))
    if all(audit.sealed_through(block.yamo_text) for block in old):
        return Plan(None)  # only checkpoints are left: another one would add nothing
    ms, agent = context.clock(), str(audit.owner_of(chain)[1])
    last = old[-1]
    write = partial(
        audit.checkpoint, agent=agent, at=iso(ms), removed=len(old), through=last.number,
        through_hash=last.block_hash, through_seal=last.seal,
    )  # fmt: skip
    entry = new_entry(context, "recall", ms, write)
    puts = audit_rows(context, chain, [entry], head=head)
    return Plan((len(old), entry.id), puts, [block.row().key for block in old])


# --- a new signing key ---


def rekey(context: Context) -> Rekeyed:
    """Make a new key, and append to every chain of the user a block with a proof made with its old
    key.

    All heads are checked first. If the process dies after the key was made, the chains that are
    left keep their old key.
    """
    context.check_enabled()
    if context.files.signing is None:
        raise InvalidInput("chains of this store are not signed", expected="a store in a file")
    ends = heads(context)
    for head in ends:
        _check(context, context.files.signing, head)
    new = context.files.signing.add()
    for head in ends:
        commit(context, partial(_plan, context, context.files.signing, head.id, new))
    old = dict.fromkeys(head.key_id for head in ends if head.key_id)
    return Rekeyed(key_id=new.id, old_keys=tuple(old), chains=tuple(head.id for head in ends))


def _check(context: Context, signing: SigningKeys, head: Head) -> None:
    if head.key_id and head.key_id not in signing.by_id():
        raise SettingsError(
            f"the chain {head.id} is signed with key {head.key_id}, which is not in "
            f"{signing.place}",
            remedy="add that key to the file, as an earlier line",
        )
    if not is_signed(context, head):
        raise StoreCorrupt(
            f"the head of the chain {head.id} has a wrong signature",
            remedy="run memory-mesh audit verify",
        )


def _plan(context: Context, signing: SigningKeys, chain: str, new: SigningKey) -> Plan[None]:
    head = head_of(context, chain)
    if head is None or head.key_id == new.id:
        return Plan(None)
    _check(context, signing, head)
    old, ms = signing.by_id().get(head.key_id or ""), context.clock()
    proof = (
        old.proof(chain=chain, number=head.number + 1, previous_seal=head.seal, new_key=new.id)
        if old
        else None
    )
    write = partial(
        wire_blocks.rekey, agent=str(audit.owner_of(chain)[1]), old_key=head.key_id, new_key=new.id,
        proof=proof, at=iso(ms),
    )  # fmt: skip
    operation = "recall" if audit.of_recalls(chain) else "retain"
    entry = new_entry(context, operation, ms, write, metadata={"action": "rekey"})
    return Plan(None, audit_rows(context, chain, [entry], head=head, new_key=new))


# --- anchors ---
# An anchor is the head of a chain, written outside the store. A signature does not show that the
# store was replaced by an older copy of itself. A head that was noted elsewhere does: the block
# with its number is missing then, or is another one.

_COLUMNS = ("number", "block_hash", "seal", "key_id", "signature")
_MISSING = (
    "the anchored block is missing: an older copy of the store was put back, or the end was cut off"
)
_EXPECTED = "a file of memory-mesh audit anchor"

# The anchored heads of a chain: number → the hashes and seals that were noted.
_Noted = dict[int, set[tuple[str, str | None]]]


def anchor(context: Context, target: str | None) -> Anchored:
    """Write the heads of this user's chains to a file or a URL; without one, to the target in
    the options."""
    target = target or context.options.audit_anchor
    if target is None:
        raise InvalidInput(
            "no target is given", expected="a file or a URL, or the setting audit_anchor"
        )
    ends, at = heads(context), iso(context.clock())
    if not ends:
        raise InvalidInput("there are no chains yet", remedy="store something first")
    listed: list[Json] = [
        {"chain": head.id, **{name: getattr(head, name) for name in _COLUMNS}} for head in ends
    ]
    context.files.open_anchor(target).write({"anchored_at": at, "heads": listed})
    return Anchored(target=target, time=at, heads=tuple(ends))


def anchor_if_moved(context: Context) -> str:
    """Write the heads to the target in the options, unless they are the ones that were written
    last."""
    meta = Meta.read(context.store, f"anchor {json.dumps(context.reader.user_id)}")
    ends = heads(context)
    state: dict[str, Json] = {
        "target": context.options.audit_anchor,
        "heads": {head.id: head.block_hash for head in ends},
    }
    if not ends or {name: meta.detail.get(name) for name in state} == state:
        return "no chain has grown since the last anchor"
    done = anchor(context, None)
    state["anchored_at"] = done.time
    commit(
        context, lambda: Plan(None, [Meta.read(context.store, meta.id).row(state, at=done.time)])
    )
    return f"{len(done.heads)} heads anchored"


@dataclass(frozen=True, slots=True)
class LastAnchor:
    """Whether the settings name a target, and what the heartbeat anchored last: the block hash
    of each chain, and when."""

    configured: bool
    heads: Mapping[str, str]
    time: str | None = None


def last_anchor(context: Context) -> LastAnchor:
    """Return what the heartbeat anchored last for this user."""
    detail = Meta.read(context.store, f"anchor {json.dumps(context.reader.user_id)}").detail
    written, time = detail.get("heads"), detail.get("anchored_at")
    known = (
        {chain: str(hash_) for chain, hash_ in written.items()} if isinstance(written, dict) else {}
    )
    return LastAnchor(
        context.options.audit_anchor is not None, known, time if isinstance(time, str) else None
    )


# --- verifying with anchors ---


def verify_chains(
    context: Context, selection: ChainSelection, *, noted: tuple[int, str] | None, file: str | None,
    progress: Progress = no_progress,
) -> list[Verdict]:  # fmt: skip
    """Verify chains, and compare them with every head in an anchor file."""
    if file is None:
        return verify_all(context, selection, noted=noted, progress=progress)
    anchored = {
        chain: numbers
        for chain, numbers in _read(context.files.open_anchor(file).lines(), file).items()
        if audit.owner_of(chain)[0] == context.reader.user_id and selection.has(chain)
    }
    if not anchored:
        raise InvalidInput(f"{file} has no head of these chains", expected=_EXPECTED)
    verdicts = verify_all(context, selection, noted=noted, progress=progress)
    signed = {
        one.chain: one.number
        for one in verdicts
        if isinstance(one, Sound) and one.signature.checked
    }
    compared = (
        (chain, _compare(context, chain, numbers, signed.get(chain, 0)))
        for chain, numbers in sorted(anchored.items())
    )
    broken = {chain: fault for chain, fault in compared if fault}
    found = [broken.pop(one.chain, one) if isinstance(one, Sound) else one for one in verdicts]
    known = {verdict.chain for verdict in verdicts}
    return [*found, *(fault for chain, fault in broken.items() if chain not in known)]


def _compare(context: Context, chain: str, noted: _Noted, signed: int) -> Broken | None:
    """Return the first anchored block that the chain does not have. `signed` is the last block,
    if its signature was checked."""
    numbers = sorted(noted)
    found: dict[int, Block] = {}
    for batch in batches(numbers, _AT_ONCE):
        rows = context.store.find(
            Kind.BLOCK, all_of(equals("chain", chain), In("number", tuple(batch)))
        )
        found |= {row.number: Block.of(row) for row in rows}
    # The oldest searches may be removed behind a checkpoint, which `verify` checks. It is ours if
    # the chain is signed, or if a later block is an anchored one.
    kept = max((signed, *found)) if audit.of_recalls(chain) else 0
    for place in numbers:
        block = found.get(place)
        if block is None and place >= kept:
            return Broken(chain, place, None, _MISSING)
        if block and {(block.block_hash, block.seal)} != noted[place]:
            return Broken(chain, place, block.id, "it is not the anchored block")
    return None


def _read(lines: Iterable[str], file: str) -> dict[str, _Noted]:
    anchored: dict[str, _Noted] = {}
    for at, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        listed = record.get("heads") if isinstance(record, dict) else None
        for each in listed if isinstance(listed, list) else [None]:
            head = each if isinstance(each, dict) else {}
            if wrong := [
                name
                for name in ("chain", "number", "block_hash")
                if fault(BY_NAME[name], head.get(name))
            ]:
                raise InvalidInput(
                    f"{file}: line {at} is not an anchor: no {wrong[0]}", expected=_EXPECTED
                )
            seal = head.get("seal")
            numbers = anchored.setdefault(str(head["chain"]), {})
            numbers.setdefault(int(str(head["number"])), set()).add(
                (str(head["block_hash"]), seal and str(seal))
            )
    return anchored
