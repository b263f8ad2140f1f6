"""The audit chains as a reader meets them: which there are, where they end, whether they are whole."""

from collections.abc import Iterator

from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Sound, Verdict
from memory_mesh.core.columns import Kind
from memory_mesh.core.records import Block, Head, Memory
from memory_mesh.core.where import In, equals
from memory_mesh.flows.desk import Desk

_AT_ONCE = 500
_ATTEMPTS = 20


def heads(desk: Desk) -> list[Head]:
    """Where each chain of the caller's user ends."""
    every = [Head.of(row) for row in desk.store.find(Kind.HEAD)]
    own = [head for head in every if audit.owner_of(head.id)[0] == desk.who.user_id]
    return sorted(own, key=lambda head: head.id)


def blocks(desk: Desk, chain: str) -> list[Block]:
    """A chain, first block first."""
    return sorted(_read(desk, chain), key=lambda block: block.number)


def verify(desk: Desk, chain: str, *, noted: tuple[int, str] | None = None) -> Verdict:
    """Whether a chain is whole, and whether the contents it speaks of are still those that were sealed.

    Others may write between two reads, so a break counts only if no chain has grown meanwhile.
    """
    for attempt in range(_ATTEMPTS):
        ends = heads(desk)
        verdict = _walk(desk, chain, noted)
        if isinstance(verdict, Sound) or heads(desk) == ends:
            break
        desk.pause(attempt)
    return verdict


def verify_all(desk: Desk) -> list[Verdict]:
    """Every chain of the caller's user; one whose head is gone is found by its blocks."""
    orphans = {str(row.value("chain")) for row in desk.store.find(Kind.BLOCK, equals("user_id", desk.who.user_id))}
    return [verify(desk, chain) for chain in sorted(orphans | {head.id for head in heads(desk)})]


def _walk(desk: Desk, chain: str, noted: tuple[int, str] | None) -> Verdict:
    held = desk.store.get(Kind.HEAD, [chain]).get(chain)
    walked = blocks(desk, chain)
    verdict = audit.verify(chain, walked, Head.of(held) if held else None, noted=noted)
    return verdict if isinstance(verdict, Broken) else _contents(desk, chain, walked) or verdict


def _read(desk: Desk, chain: str) -> Iterator[Block]:
    return (Block.of(row) for row in desk.store.find(Kind.BLOCK, equals("chain", chain)))


def _contents(desk: Desk, chain: str, walked: list[Block]) -> Broken | None:
    """The first memory of a chain that is gone, or whose content is not the one that the block of its latest revision sealed."""
    quoting = {block.ref: block for block in walked if audit.quotes(block)}
    refs = sorted({block.ref for block in walked if block.ref})
    for at in range(0, len(refs), _AT_ONCE):
        ids = tuple(refs[at : at + _AT_ONCE])
        latest = _latest(desk, ids)
        held = desk.store.get(Kind.MEMORY, ids)
        for gone in (quoting[ref] for ref in ids if ref in quoting and ref not in held):
            return Broken(chain, gone.number, gone.id, f"{gone.ref} is gone and no erasure tells of it")
        for row in held.values():
            memory = Memory.of(row)
            _, hashed, block = latest.get(memory.id, (0, None, None))
            if block and audit.content_hash(memory.salt or "", memory.content) != hashed:
                return Broken(chain, block.number, block.id, f"the content of {memory.id} is not the one that was sealed")
    return None


def _latest(desk: Desk, ids: tuple[str, ...]) -> dict[str, tuple[int, str, Block]]:
    """The latest sealed revision of each memory, in whichever chain: a shared memory is changed by many agents."""
    latest: dict[str, tuple[int, str, Block]] = {}
    for row in desk.store.find(Kind.BLOCK, In("ref", ids)):
        block = Block.of(row)
        if sealed := audit.sealed_content(block):
            ref = str(block.ref)
            latest[ref] = max(latest.get(ref, (0, "", block)), (*sealed, block), key=lambda known: known[0])
    return latest
