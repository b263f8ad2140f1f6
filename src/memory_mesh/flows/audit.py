"""The audit chains as a reader meets them: which there are, where they end, what they say, whether they are whole."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from memory_mesh.core import audit
from memory_mesh.core.audit import ERASED, OPERATIONS, Broken, Entry, Sound, Verdict
from memory_mesh.core.checks import number, whole_number
from memory_mesh.core.errors import InvalidInput, StoreBusy, shown
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Head, Memory
from memory_mesh.core.model.rows import Key, batches
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import ANYTHING, Compare, In, IsNull, Or, Where, all_of, equals
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.flows.context import Context, Plan, check_enabled, commit

_AT_ONCE = 500
_WINDOW = 2000  # blocks read at once: chains grow long
_ATTEMPTS = 20
_DAY_MS = 86_400_000
_PRUNED_AT_ONCE = 1000  # blocks removed in one write


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Some of a user's chains: of one agent or of all, those of memories, those of searches, or both."""

    agent_id: str | None = None
    recalls: bool | None = None

    def has(self, chain: str) -> bool:
        agent_fits = self.agent_id is None or audit.owner_of(chain)[1] == self.agent_id
        return agent_fits and self.recalls in (None, audit.of_recalls(chain))


ALL_CHAINS = Which()


def heads(context: Context, which: Which = ALL_CHAINS) -> list[Head]:
    """Where each chain of the caller's user ends."""
    return [head for head in _heads_of(context, context.reader.user_id) if which.has(head.id)]


def blocks(context: Context, chain: str, where: Where = ANYTHING) -> list[Block]:
    """The blocks of a chain, first block first."""
    found = context.store.find(Kind.BLOCK, all_of(equals("chain", chain), where))
    return sorted((Block.of(row) for row in found), key=lambda block: block.number)


def log(context: Context, *, which: Which = ALL_CHAINS, operation: str | None = None, limit: int = 20) -> list[Block]:
    """The blocks of the caller's user, newest first."""
    if operation is not None and operation not in OPERATIONS:
        raise InvalidInput(f"operation is {shown(operation)}", expected=f"one of {', '.join(OPERATIONS)}")
    whole_number("limit", limit)
    wanted = [equals("user_id", context.reader.user_id)]
    wanted += [equals("agent_id", which.agent_id)] if which.agent_id is not None else []
    wanted += [equals("operation_type", operation)] if operation else []
    if which.recalls is not None:
        wanted.append(Compare("operation_type", "=" if which.recalls else "<>", "recall"))
    return [Block.of(row) for row in context.store.find(Kind.BLOCK, all_of(*wanted), limit=limit)]


def export(
    context: Context, *, which: Which = ALL_CHAINS, as_json: bool = False, progress: Progress = no_progress
) -> Iterator[str]:
    """The chains of the caller's user, one after another, each from its first block: as texts of the wire format, or as lines of
    JSON, which can be verified. An erased block has no text any more, so only JSON has it."""
    chains = [chain for chain in _chains(context) if which.has(chain)]
    total = sum(context.store.count(Kind.BLOCK, equals("chain", chain)) for chain in chains)
    every = (block for chain in chains for block in _of_one_moment(context, chain))
    for done, block in enumerate(every, start=1):
        if as_json:
            yield audit.line(block) + "\n"
        elif block.yamo_text != ERASED:
            yield block.yamo_text
        if done % _AT_ONCE == 0:
            progress("exporting", done, total)


def _of_one_moment(context: Context, chain: str) -> Iterator[Block]:
    """The blocks of a chain. Where old searches are removed meanwhile, what was read no longer fits what follows: no export."""
    first = last = None
    for block in _in_order(context, chain, _head(context, chain)):
        if first and last and block.number != last.number + 1 and not context.store.get(Kind.BLOCK, [first.id]):
            raise StoreBusy(f"{context.store.url}: old blocks were removed during the export", remedy="export again")
        first, last = first or block, block
        yield block


# --- verifying ---


def verify(context: Context, chain: str, *, noted: tuple[int, str] | None = None) -> Verdict:
    """Whether a chain is whole, and whether the contents it speaks of are still those that were sealed.

    Others may write between two reads, so a break counts only if no chain of its user has grown meanwhile.
    """
    user_id, _ = audit.owner_of(chain)
    verdict = _walk(context, chain, noted)
    for attempt in range(_ATTEMPTS if isinstance(verdict, Broken) else 0):
        ends = _heads_of(context, user_id)
        verdict = _walk(context, chain, noted)
        if isinstance(verdict, Sound) or _heads_of(context, user_id) == ends:
            break
        context.pause(attempt)
    return verdict


def verify_all(context: Context, which: Which = ALL_CHAINS, *, noted: tuple[int, str] | None = None) -> list[Verdict]:
    """Every chain of the caller's user; one whose head is gone is found by its blocks. A noted head may be of any of them."""
    chains = [chain for chain in _chains(context) if which.has(chain)]
    holder = _holder(context, chains, noted)
    verdicts = [verify(context, chain, noted=noted if chain == holder else None) for chain in chains]
    if noted and noted[0] and holder is None:
        verdicts.append(audit.noted_missing(chains[0] if len(chains) == 1 else "", noted[0]))
    return verdicts


def _chains(context: Context) -> list[str]:
    """The names of the user's chains, those without a head too: found one by one, for a chain has many blocks."""
    named = {head.id for head in heads(context)}
    own = equals("user_id", context.reader.user_id)
    while orphan := context.store.find(Kind.BLOCK, all_of(own, of_none(named)), limit=1):
        named.add(Block.of(orphan[0]).chain)
    return sorted(named)


def of_none(chains: Iterable[str]) -> Where:
    """The blocks of no chain at all, too: nothing compares with what is not there."""
    return Or((IsNull("chain"), IsNull("number"), all_of(*(Compare("chain", "<>", chain) for chain in sorted(chains)))))


def _holder(context: Context, chains: Sequence[str], noted: tuple[int, str] | None) -> str | None:
    """The chain that has the noted block, or has the one behind it where the noted one was removed."""
    if not noted or not noted[0] or not chains:
        return None
    number, hashed = noted
    itself = all_of(equals("number", number), equals("block_hash", hashed))
    behind = all_of(equals("number", number + 1), equals("prev_hash", hashed))
    found = context.store.find(Kind.BLOCK, all_of(In("chain", tuple(chains)), Or((itself, behind))), limit=1)
    return str(found[0].value("chain")) if found else None


def _heads_of(context: Context, user_id: str | None) -> list[Head]:
    every = [Head.of(row) for row in context.store.find(Kind.HEAD)]
    return sorted((head for head in every if audit.owner_of(head.id)[0] == user_id), key=lambda head: head.id)


def _head(context: Context, chain: str) -> Head | None:
    held = context.store.get(Kind.HEAD, [chain]).get(chain)
    return Head.of(held) if held else None


def _in_order(context: Context, chain: str, head: Head | None) -> Iterator[Block]:
    """Every block of a chain by its number, a window at a time. Up to its head a chain has no gap; where one has, all that is
    left is read at once, and whoever verifies will find it."""
    count = context.store.count(Kind.BLOCK, equals("chain", chain))
    at = (head.number if head else count) - count + 1
    yield from blocks(context, chain, Compare("number", "<", at))
    while found := blocks(context, chain, all_of(Compare("number", ">=", at), Compare("number", "<", at + _WINDOW))):
        yield from found
        at += _WINDOW
    yield from blocks(context, chain, Compare("number", ">=", at))


@dataclass(slots=True)
class _Listener:
    """What a walk must remember of a chain's blocks, to look at their memories behind it."""

    head: Head | None = None  # where the chain ended when all its blocks were read
    refs: set[str] = field(default_factory=set)
    quoting: dict[str, tuple[int, str]] = field(default_factory=dict)  # memory → number and id of the last block that quotes it

    def hear(self, walked: Iterator[Block]) -> Iterator[Block]:
        for block in walked:
            if block.ref:
                self.refs.add(block.ref)
                if audit.quotes(block):
                    self.quoting[block.ref] = (block.number, block.id)
            yield block


def _walk(context: Context, chain: str, noted: tuple[int, str] | None) -> Verdict:
    listener = _Listener()
    walked = listener.hear(_to_its_end(context, chain, listener))
    verdict = audit.verify_growing(chain, walked, lambda: listener.head, noted=noted)
    return verdict if isinstance(verdict, Broken) else _contents(context, chain, listener) or verdict


def _to_its_end(context: Context, chain: str, listener: _Listener) -> Iterator[Block]:
    """Every block that is there, and those that came while they were read: others may never stop writing. A block and the head
    that counts it come in one write, so up to a head that is read afterwards none may be missing."""
    number = 0
    for block in _in_order(context, chain, _head(context, chain)):
        number = block.number
        yield block
    listener.head = _head(context, chain)
    if listener.head and listener.head.number > number:
        yield from blocks(context, chain, all_of(Compare("number", ">", number), Compare("number", "<=", listener.head.number)))


# --- what the blocks speak of ---


def _contents(context: Context, chain: str, heard: _Listener) -> Broken | None:
    """The first memory of a chain that is gone, or whose content is not the one that the block of its latest revision sealed."""
    refs = sorted(heard.refs)
    for batch in batches(refs, _AT_ONCE):
        ids = tuple(batch)
        # The memories before the blocks: what was changed or erased in between is told by a block, and can be asked for again.
        held = {id_: Memory.of(row) for id_, row in context.store.get(Kind.MEMORY, ids).items()}
        for gone in (ref for ref in ids if ref in heard.quoting and ref not in held):
            if _still_quotes(context, heard.quoting[gone][1]):
                return Broken(chain, *heard.quoting[gone], f"{gone} is gone and no erasure tells of it")
        sealed = _sealed(context, audit.owner_of(chain)[0], ids)
        for memory in held.values():
            if block := _contradicted(context, memory, sealed.get(memory.id, {})):
                return Broken(chain, block.number, block.id, f"the content of {memory.id} is not the one that was sealed")
    return None


def _still_quotes(context: Context, block_id: str) -> bool:
    """An erasure that came meanwhile has taken the block's text with the memory."""
    row = context.store.get(Kind.BLOCK, [block_id]).get(block_id)
    return row is not None and audit.quotes(Block.of(row))


def _sealed(context: Context, user_id: str | None, ids: tuple[str, ...]) -> dict[str, dict[int, tuple[str, Block]]]:
    """The contents that were sealed of each memory, by revision and in whichever chain: a shared memory is changed by many
    agents. Of another user's chains nobody asks here whether they are whole, so they tell nothing."""
    sealed: dict[str, dict[int, tuple[str, Block]]] = {}
    for row in context.store.find(Kind.BLOCK, all_of(equals("user_id", user_id), In("ref", ids))):
        block = Block.of(row)
        if told := audit.sealed_content(block):
            revision, hashed = told
            sealed.setdefault(str(block.ref), {})[revision] = (hashed, block)
    return sealed


def _contradicted(context: Context, memory: Memory, sealed: dict[int, tuple[str, Block]]) -> Block | None:
    """The block that tells of another content than the memory has now."""
    hashed = audit.content_hash(memory.salt or "", memory.content)
    told, block = sealed[max(sealed)] if sealed else (hashed, None)
    if told == hashed:
        return None
    once = any(hashed == earlier for earlier, _ in sealed.values())
    return None if once and _revision(context, memory.id) != memory.revision else block  # it was changed after it was read


def _revision(context: Context, memory_id: str) -> int | None:
    """The revision that a memory has by now; one that was erased has none."""
    row = context.store.get(Kind.MEMORY, [memory_id]).get(memory_id)
    return row.revision if row else None


# --- how long they are kept ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What became of old recall blocks."""

    removed: int = 0
    checkpoints: tuple[str, ...] = ()  # the blocks that tell of it
    broken: tuple[Broken, ...] = ()  # chains that were left alone: what is wrong with them must not be swept away

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            removed=self.removed + other.removed,
            checkpoints=self.checkpoints + other.checkpoints,
            broken=self.broken + other.broken,
        )


def prune(context: Context, *, older_than_days: float = 90) -> Pruned:
    """Remove the recall blocks of the caller's user that are older, each run of them behind a checkpoint."""
    check_enabled(context)
    days = number("older_than_days", older_than_days, min_=0, max_=1e6, expected="a number of days, 0 or more")
    before = iso(max(0, context.clock() - round(days * _DAY_MS)))
    done = Pruned()
    for chain in (head.id for head in heads(context) if audit.of_recalls(head.id)):
        if context.store.count(Kind.BLOCK, all_of(equals("chain", chain), Compare("created_at", "<", before))):
            done += _pruned(context, chain, before)
    return done


def _pruned(context: Context, chain: str, before: str) -> Pruned:
    verdict = verify(context, chain)
    if isinstance(verdict, Broken):
        return Pruned(broken=(verdict,))
    done = Pruned()
    while step := commit(context, lambda: _decide_prune(context, chain, before))[0]:
        done += step
    return done


def _decide_prune(context: Context, chain: str, before: str) -> Plan[Pruned | None]:
    """Remove the next blocks, and say so at the end of the chain. The new head is made from the one that was read first: whoever
    else appends or removes meanwhile makes it a conflict."""
    head = Head.of(context.store.get(Kind.HEAD, [chain])[chain])
    old = list(takewhile(lambda block: block.created_at < before, _oldest(context, chain, head)))
    if all(audit.sealed_through(block.yamo_text) for block in old):
        return Plan(None)  # a checkpoint alone is never removed: the next would only say the same
    entry = _checkpoint(context, chain, old)
    blocks, newer = audit.append(chain, head, [entry])
    gone = [Key(Kind.BLOCK, block.id) for block in old]
    return Plan(Pruned(removed=len(old), checkpoints=(entry.id,)), [newer.row(), *(block.row() for block in blocks)], gone)


def _oldest(context: Context, chain: str, head: Head) -> list[Block]:
    """The first blocks of a chain; up to its head it has no gap."""
    first = head.number - context.store.count(Kind.BLOCK, equals("chain", chain)) + 1
    return blocks(context, chain, Compare("number", "<", first + _PRUNED_AT_ONCE))


def _checkpoint(context: Context, chain: str, old: Sequence[Block]) -> Entry:
    ms = context.clock()
    agent = str(audit.owner_of(chain)[1])
    last = old[-1]
    return Entry(
        id=context.ids.new("yamo_recall", ms),
        operation_type="recall",
        ms=ms,
        write=lambda seal: audit.checkpoint(
            seal, agent=agent, at=iso(ms), through=last.number, through_hash=last.block_hash, removed=len(old)
        ),
    )  # fmt: skip
