"""Anchors: the heads of the audit chains, written outside the store.

A signature does not show that the store was replaced by an older copy of itself. A head that was noted elsewhere does: the block
with its number is missing then, or is another one.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_mesh.core import audit
from memory_mesh.core.audit import Anchored, Broken, Sound, Verdict
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import BY_NAME, Block, Head, In, Json, Kind, Meta, all_of, batches, equals, fault, iso
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.flows.audit import ChainSelection, heads, verify_all
from memory_mesh.flows.context import Context, Plan, commit

_AT_ONCE = 500
_COLUMNS = ("number", "block_hash", "seal", "key_id", "signature")
_MISSING = "the anchored block is missing: an older copy of the store was put back, or the end was cut off"
_EXPECTED = "a file of memory-mesh audit anchor"

# The anchored heads of a chain: number → the hashes and seals that were noted.
_Noted = dict[int, set[tuple[str, str | None]]]


def anchor(context: Context, target: str | None) -> Anchored:
    """Write the heads of this user's chains to a file or a URL; without one, to the target in the options."""
    target = target or context.options.audit_anchor
    if target is None:
        raise InvalidInput("no target is given", expected="a file or a URL, or the setting audit_anchor")
    ends, at = heads(context), iso(context.clock())
    if not ends:
        raise InvalidInput("there are no chains yet", remedy="store something first")
    context.open_anchor(target).write(_record(ends, at))
    return Anchored(target=target, time=at, heads=tuple(ends))


def anchor_if_moved(context: Context) -> str:
    """Write the heads to the target in the options, unless they are the ones that were written last."""
    meta = Meta.read(context.store, f"anchor {json.dumps(context.reader.user_id)}")
    ends = heads(context)
    state: dict[str, Json] = {"target": context.options.audit_anchor, "heads": {head.id: head.block_hash for head in ends}}
    if not ends or {name: meta.detail.get(name) for name in state} == state:
        return "no chain has grown since the last anchor"
    done = anchor(context, None)
    commit(
        context, lambda: Plan(None, [Meta.read(context.store, meta.id).row({**state, "anchored_at": done.time}, at=done.time)])
    )
    return f"{len(done.heads)} heads anchored"


@dataclass(frozen=True, slots=True)
class LastAnchor:
    """Whether the settings name a target, and what the heartbeat anchored last: the block hash of each chain, and when."""

    configured: bool
    heads: Mapping[str, str]
    time: str | None = None


def last_anchor(context: Context) -> LastAnchor:
    """Return what the heartbeat anchored last for this user."""
    detail = Meta.read(context.store, f"anchor {json.dumps(context.reader.user_id)}").detail
    written, time = detail.get("heads"), detail.get("anchored_at")
    known = {chain: str(hash_) for chain, hash_ in written.items()} if isinstance(written, dict) else {}
    return LastAnchor(context.options.audit_anchor is not None, known, time if isinstance(time, str) else None)


def _record(ends: Sequence[Head], at: str) -> dict[str, Json]:
    listed: list[Json] = [{"chain": head.id, **{name: getattr(head, name) for name in _COLUMNS}} for head in ends]
    return {"anchored_at": at, "heads": listed}


# --- verifying ---


def verify(
    context: Context, selection: ChainSelection, *, noted: tuple[int, str] | None, file: str | None,
    progress: Progress = no_progress,
) -> list[Verdict]:  # fmt: skip
    """Verify chains, and compare them with every head in an anchor file."""
    if file is None:
        return verify_all(context, selection, noted=noted, progress=progress)
    anchored = {
        chain: numbers
        for chain, numbers in _read(context.open_anchor(file).lines(), file).items()
        if audit.owner_of(chain)[0] == context.reader.user_id and selection.has(chain)
    }
    if not anchored:
        raise InvalidInput(f"{file} has no head of these chains", expected=_EXPECTED)
    verdicts = verify_all(context, selection, noted=noted, progress=progress)
    signed = {one.chain: one.number for one in verdicts if isinstance(one, Sound) and one.signature.checked}
    compared = ((chain, _compare(context, chain, numbers, signed.get(chain, 0))) for chain, numbers in sorted(anchored.items()))
    broken = {chain: fault for chain, fault in compared if fault}
    found = [broken.pop(one.chain, one) if isinstance(one, Sound) else one for one in verdicts]
    known = {verdict.chain for verdict in verdicts}
    return [*found, *(fault for chain, fault in broken.items() if chain not in known)]


def _compare(context: Context, chain: str, noted: _Noted, signed: int) -> Broken | None:
    """Return the first anchored block that the chain does not have. `signed` is the last block, if its signature was checked."""
    numbers = sorted(noted)
    found: dict[int, Block] = {}
    for batch in batches(numbers, _AT_ONCE):
        rows = context.store.find(Kind.BLOCK, all_of(equals("chain", chain), In("number", tuple(batch))))
        found |= {row.number: Block.of(row) for row in rows}
    # The oldest searches may be removed behind a checkpoint, which `verify` checks. It is ours if the chain is signed, or if a
    # later block is an anchored one.
    kept = max((signed, *found)) if audit.of_recalls(chain) else 0
    for number in numbers:
        block = found.get(number)
        if block is None and number >= kept:
            return Broken(chain, number, None, _MISSING)
        if block and {(block.block_hash, block.seal)} != noted[number]:
            return Broken(chain, number, block.id, "it is not the anchored block")
    return None


def _read(lines: Iterable[str], file: str) -> dict[str, _Noted]:
    anchored: dict[str, _Noted] = {}
    for at, line in enumerate(lines, start=1):
        for head in _heads_in(line) if line.strip() else ():
            if wrong := [name for name in ("chain", "number", "block_hash") if fault(BY_NAME[name], head.get(name))]:
                raise InvalidInput(f"{file}: line {at} is not an anchor: no {wrong[0]}", expected=_EXPECTED)
            seal = head.get("seal")
            numbers = anchored.setdefault(str(head["chain"]), {})
            numbers.setdefault(int(str(head["number"])), set()).add((str(head["block_hash"]), seal and str(seal)))  # type: ignore[arg-type]
    return anchored


def _heads_in(line: str) -> list[Mapping[str, Json]]:
    """Return the heads in a line; one without any columns for a line in another format."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return [{}]
    found = record.get("heads") if isinstance(record, dict) else None
    return [head if isinstance(head, dict) else {} for head in found] if isinstance(found, list) else [{}]
