"""Views of the audit trail: each renders the result of one operation of the table as an `Answer`."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from memory_mesh.core.audit import ERASED, WITHHELD, Anchored, Broken, Rekeyed, Sound, Verdict, as_dict, of_recalls, owner_of
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Block, Head
from memory_mesh.core.text import shown_url
from memory_mesh.interfaces.render import NAME, PIPE_CLOSED, Answer, aligned, one_line, paint, preview, safe, styled, table, write
from memory_mesh.interfaces.values import Call

_PAIR = re.compile(r"^  (\w+);(.*);$", flags=re.MULTILINE)
_BLOCK_COLUMNS = ("time", "chain", "block", "operation", "agent", "about")


def verdicts(chains: Sequence[Verdict], call: Call) -> Answer:
    """Render whether each chain is sound; the exit code is 1 if one is not."""
    breaks = sum(isinstance(verdict, Broken) for verdict in chains)
    sound = f"{_count(len(chains))} sound" if chains else "There are no chains yet"
    summary = f"{NAME} {f'{breaks} broken, {len(chains) - breaks} sound' if breaks else sound}"
    rows = [("BROKEN" if isinstance(verdict, Broken) else "sound", _owner(verdict.chain), _end(verdict)) for verdict in chains]
    signatures = [one_line(line) for line in _signatures(chains)]
    return Answer(
        text="\n".join([summary, aligned(rows), *signatures]) if rows else summary,
        data={"ok": not breaks, "chains": [_verdict_data(verdict) for verdict in chains]},
        rows="chains",
        code=1 if breaks else 0,
        draw=lambda: "\n".join([paint(summary), *(_marked(*row) for row in rows), *signatures]),
    )


def heads(ends: Sequence[Head], call: Call) -> Answer:
    """Render the end of each chain, in the form that `audit verify --head` takes."""
    rows = [(f"{head.number}:{head.seal or head.block_hash}", _owner(head.id)) for head in ends]
    summary = f"{NAME} {_count(len(rows))}" if rows else f"{NAME} There are no chains yet"
    data = [_head_data(head) for head in ends]
    return Answer(text=f"{summary}\n{aligned(rows)}" if rows else summary, data={"count": len(rows), "heads": data}, rows="heads")


def anchored(done: Anchored, call: Call) -> Answer:
    """Render where the heads were written."""
    data = {"target": done.target, "time": done.time, "heads": [_head_data(head) for head in done.heads]}
    return Answer(text=f"{NAME} {_count(len(done.heads))} anchored at {done.time} to {shown_url(done.target)}", data=data)


def rekeyed(done: Rekeyed, call: Call) -> Answer:
    """Render the new key and the number of chains that it signs."""
    return Answer(text=f"{NAME} {_count(len(done.chains))} signed with the new key {done.key_id} from now on", data=asdict(done))


def blocks(latest: Sequence[Block], call: Call) -> Answer:
    """Render audit blocks, newest first."""
    rows = [
        (block.created_at, _kind(block.chain), str(block.number), block.operation_type, block.agent_id or "–", _about(block))
        for block in latest
    ]
    summary = f"{len(rows)} {'block' if len(rows) == 1 else 'blocks'}"
    return Answer(
        text=f"{NAME} {summary}\n{aligned([_BLOCK_COLUMNS, *rows])}" if rows else f"{NAME} {summary}",
        data={"count": len(rows), "blocks": [as_dict(block) for block in latest]},
        rows="blocks",
        draw=lambda: table(summary, _BLOCK_COLUMNS, rows),
    )


def exported(pieces: Iterable[str], call: Call) -> Answer:
    return write_export(pieces, call, "blocks")


def write_export(pieces: Iterable[str], call: Call, what: str, *, header: int = 0) -> Answer:
    """Write an export to a new file, or to standard output without anything else. `header` is the number of its first lines."""
    out = call.options.get("out")
    if not isinstance(out, str):
        return _printed(pieces, what, header)
    try:
        # It quotes memories: only the owner may read the file, and it must not replace another.
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {_reason(error)}", expected="a file that does not exist yet") from None
    count = 0
    try:
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as opened:
            for count, piece in enumerate(pieces, start=1):  # noqa: B007  (the last number is the count)
                opened.write(piece)
    except BaseException as error:
        Path(out).unlink()  # half an export would pass for a short one
        if isinstance(error, OSError):
            raise InvalidInput(f"{out} cannot be written: {_reason(error)}", expected="enough space") from None
        raise
    count -= header
    return Answer(text=f"{NAME} Exported {count} {what} to {out}", data={what: count, "file": out})


def _printed(pieces: Iterable[str], what: str, header: int) -> Answer:
    make_safe, count = safe if sys.stdout.isatty() else str, -header

    def counted() -> Iterator[str]:
        nonlocal count
        for piece in pieces:
            yield make_safe(piece)
            count += 1

    try:
        write(counted())
    except BrokenPipeError:
        return Answer(text="", data={}, code=PIPE_CLOSED)
    except OSError as error:
        raise InvalidInput(f"the export cannot be written: {_reason(error)}", expected="enough space") from None
    return Answer(text="", data={}, note=f"Exported {max(count, 0)} {what}")


# --- parts ---


def _count(chains: int) -> str:
    return f"{chains} {'chain' if chains == 1 else 'chains'}"


def _kind(chain: str) -> str:
    return "recalls" if of_recalls(chain) else "main"


def _owner(chain: str) -> str:
    if not chain:
        return "any chain"
    user, agent = owner_of(chain)
    return one_line(f"{_kind(chain)} of agent {agent}" + (f" of user {user}" if user else ""))


def _end(verdict: Verdict) -> str:
    if isinstance(verdict, Sound):
        return "; ".join([f"{verdict.number}:{verdict.seal or verdict.block_hash or 'no block'}", *_remarks(verdict)])
    block = f" ({verdict.block_id})" if verdict.block_id else ""
    return f"block {verdict.number}{block}: {verdict.reason}"


def _remarks(sound: Sound) -> list[str]:
    """Return what else a verdict says: what is newer than the noted head, and what could not be checked."""
    first = sound.number - (sound.newer or 0) + 1
    return [
        *([f"{sound.newer} newer than the noted head, from block {first} on"] if sound.newer else []),
        *([f"{sound.withheld} checked by hash and seal only"] if sound.withheld else []),
        *([sound.caution] if sound.caution else []),
    ]


def _marked(mark: str, owner: str, end: str) -> str:
    sound = mark == "sound"
    return f"{styled('✓' if sound else '✗', '32' if sound else '1;31')} {styled(safe(owner), '1')}  {safe(end)}"


def _chain_data(chain: str) -> dict[str, object]:
    user, agent = owner_of(chain)
    return {"chain": chain, "kind": _kind(chain), "user_id": user, "agent_id": agent}


def _head_data(head: Head) -> dict[str, object]:
    names = ("number", "block_hash", "seal", "key_id", "signature")
    return {**_chain_data(head.id), **{name: getattr(head, name) for name in names}}


def _signatures(chains: Sequence[Verdict]) -> list[str]:
    """Say whether the signatures of the sound chains were checked: in one line, if it is the same for all."""
    states = {_owner(one.chain): str(one.signature) for one in chains if isinstance(one, Sound)}
    if len(set(states.values())) == 1:
        return [f"Signatures: {next(iter(states.values()))}"]
    return [f"Signature of {owner}: {state}" for owner, state in states.items()]


def _verdict_data(verdict: Verdict) -> dict[str, object]:
    if isinstance(verdict, Sound):
        checked = {name: getattr(verdict, name) for name in ("number", "block_hash", "seal", "newer", "withheld", "caution")}
        signature = {"signature_checked": verdict.signature.checked, "signature": str(verdict.signature)}
        return {**_chain_data(verdict.chain), "ok": True, **checked, **signature}
    why = {"block_id": verdict.block_id, "reason": verdict.reason}
    return {**_chain_data(verdict.chain), "ok": False, "number": verdict.number, **why}


def _about(block: Block) -> str:
    """Describe a block in a few words."""
    if block.yamo_text == ERASED:
        return f"{block.ref or ''} (its text is erased)".lstrip()
    if block.yamo_text == WITHHELD:
        return f"{block.ref or ''} (withheld: of another agent or session)".lstrip()
    pairs = dict(_PAIR.findall(block.yamo_text))
    if "new_key" in pairs:
        return f"rekey from {pairs['old_key']} to {pairs['new_key']}"
    if "through_block" in pairs:
        return f"{pairs['recalls_sealed']} blocks removed, up to number {pairs['through_block'].split()[0]}"
    if block.operation_type == "recall":
        return preview(f"{pairs.get('results_found')} found: {pairs.get('query')}", 60)
    action = (block.metadata or {}).get("action")
    names = ("content_preview", "insight_preview", "preventative_rule", "auditor")
    text = next((pairs[name] for name in names if name in pairs), "")
    return preview(" ".join(str(part) for part in (action, block.ref, text) if part), 90)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
