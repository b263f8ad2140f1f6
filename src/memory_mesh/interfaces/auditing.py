"""`memory-mesh audit`: where the chains end, what they say and whether they are whole, as people and programs read it."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from memory_mesh.core.audit import ERASED, Broken, Sound, Verdict, as_dict, of_recalls, owner_of, verify_export
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.records import Block, Head
from memory_mesh.interfaces.render import NAME, Answer, aligned, one_line, paint, preview, safe, styled, table

CHAINS = {"main": False, "recalls": True}
FORMATS = ("json", "wire")

_HEAD = re.compile(r"([1-9][0-9]{0,14}):([0-9a-f]{64})")
_PAIR = re.compile(r"^  (\w+);(.*);$", flags=re.MULTILINE)
_PIPE_CLOSED = 141  # what shells expect when the reader of a pipe has gone
_COLUMNS = ("time", "chain", "block", "operation", "agent", "about")


# --- words in ---


def noted(text: str | None) -> tuple[int, str] | None:
    """A head that someone wrote down, as `audit head` prints it."""
    if text is None:
        return None
    found = _HEAD.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidInput(f"--head is {text!r:.80}", expected="NUMBER:HASH, as memory-mesh audit head prints it")
    return int(found[1]), found[2]


def kind(chain: str | None) -> bool | None:
    """Which chains are meant: those of searches, those of memories, or both."""
    if chain is not None and chain not in CHAINS:
        raise InvalidInput(f"--chain {chain!r:.60} is unknown", expected=f"one of {', '.join(CHAINS)}")
    return None if chain is None else CHAINS[chain]


def as_json(form: str) -> bool:
    """Whether an export is to be lines of JSON."""
    if form not in FORMATS:
        raise InvalidInput(f"--format {form!r:.60} is unknown", expected=f"one of {', '.join(FORMATS)}")
    return form == "json"


# --- words out ---


def verdicts(found: Sequence[Verdict]) -> Answer:
    """Whether the chains are whole; exit 1 where one is not."""
    breaks = sum(isinstance(verdict, Broken) for verdict in found)
    well = f"{_many(len(found))} sound" if found else "There are no chains yet"
    summary = f"{NAME} {f'{breaks} broken, {len(found) - breaks} sound' if breaks else well}"
    rows = [("BROKEN" if isinstance(verdict, Broken) else "sound", _owner(verdict.chain), _end(verdict)) for verdict in found]
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={"ok": not breaks, "chains": [_verdict(verdict) for verdict in found]},
        code=1 if breaks else 0,
        drawn=lambda: "\n".join([paint(summary), *(_drawn(*row) for row in rows)]),
    )


def checked(file: str, head: tuple[int, str] | None) -> Answer:
    """The verdicts on an exported file; no store is needed."""
    try:
        with Path(file).open(encoding="utf-8-sig") as lines:  # some programs put a mark before the first line
            return verdicts(verify_export(lines, noted=head))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {_why(error)}", expected="a file of memory-mesh audit export") from None


def heads(found: Sequence[Head]) -> Answer:
    """Where the chains end, in the form that `audit verify --head` takes."""
    rows = [(f"{head.number}:{head.block_hash}", _owner(head.id)) for head in found]
    summary = f"{NAME} {_many(len(rows))}" if rows else f"{NAME} There are no chains yet"
    data = [{**_names(head.id), "number": head.number, "block_hash": head.block_hash} for head in found]
    return Answer(text=f"{summary}\n{aligned(rows)}" if rows else summary, data={"count": len(rows), "heads": data})


def log(blocks: Sequence[Block]) -> Answer:
    """Blocks, newest first."""
    rows = [
        (block.created_at, _kind(block.chain), str(block.number), block.operation_type, block.agent_id or "–", _about(block))
        for block in blocks
    ]
    summary = f"{NAME} {len(rows)} {'block' if len(rows) == 1 else 'blocks'}"
    return Answer(
        text=f"{summary}\n{aligned([_COLUMNS, *rows])}" if rows else summary,
        data={"count": len(rows), "blocks": [as_dict(block) for block in blocks]},
        drawn=lambda: table(summary.removeprefix(f"{NAME} "), _COLUMNS, rows),
    )


def export(pieces: Iterable[str], out: str | None) -> Answer:
    """Write an export into a new file, or on standard output, where nothing else is said."""
    if out is None:
        _print(pieces)
        raise typer.Exit
    try:
        # Blocks quote memories: the file is for its owner's eyes, and takes no other's place.
        opened = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {_why(error)}", expected="a file that is not there yet") from None
    try:
        count = _fill(opened, pieces)
    except BaseException as error:
        Path(out).unlink()  # half an export would pass for a short one
        if isinstance(error, OSError):
            raise InvalidInput(f"{out} cannot be written: {_why(error)}", expected="room for it") from None
        raise
    return Answer(text=f"{NAME} Exported {count} blocks to {out}", data={"blocks": count, "file": out})


def _fill(opened: int, pieces: Iterable[str]) -> int:
    count = 0
    with os.fdopen(opened, "w", encoding="utf-8", newline="\n") as file:
        for piece in pieces:
            file.write(piece)
            count += 1
    return count


def _print(pieces: Iterable[str]) -> None:
    """As it is into a pipe; a terminal is shown nothing that could drive it."""
    shown = safe if sys.stdout.isatty() else str
    try:
        for piece in pieces:
            sys.stdout.write(shown(piece))
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody hears the rest (`| head -1`)
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(_PIPE_CLOSED) from None
        raise InvalidInput(f"the export cannot be written: {_why(error)}", expected="room for it") from None


# --- parts ---


def _many(count: int) -> str:
    return f"{count} {'chain' if count == 1 else 'chains'}"


def _kind(chain: str) -> str:
    return "recalls" if of_recalls(chain) else "main"


def _owner(chain: str) -> str:
    if not chain:
        return "any chain"
    user, agent = owner_of(chain)
    whose = f"agent {agent}" + (f" of user {user}" if user else "")
    return one_line(f"{_kind(chain)} of {whose}")


def _end(verdict: Verdict) -> str:
    if isinstance(verdict, Sound):
        return f"{verdict.number}:{verdict.block_hash or 'no block'}"
    block = f" ({verdict.block_id})" if verdict.block_id else ""
    return f"block {verdict.number}{block}: {verdict.reason}"


def _drawn(mark: str, owner: str, end: str) -> str:
    well = mark == "sound"
    return f"{styled('✓' if well else '✗', '32' if well else '1;31')} {styled(safe(owner), '1')}  {safe(end)}"


def _names(chain: str) -> dict[str, object]:
    user, agent = owner_of(chain)
    return {"chain": chain, "kind": _kind(chain), "user_id": user, "agent_id": agent}


def _verdict(verdict: Verdict) -> dict[str, object]:
    if isinstance(verdict, Sound):
        return {**_names(verdict.chain), "ok": True, "number": verdict.number, "block_hash": verdict.block_hash}
    why = {"block_id": verdict.block_id, "reason": verdict.reason}
    return {**_names(verdict.chain), "ok": False, "number": verdict.number, **why}


def _about(block: Block) -> str:
    """What a block tells, in a few words."""
    if block.yamo_text == ERASED:
        return f"{block.ref or ''} (its text is erased)"
    said = dict(_PAIR.findall(block.yamo_text))
    if "through_block" in said:
        return f"{said['recalls_sealed']} blocks removed, up to number {said['through_block'].split()[0]}"
    if block.operation_type == "recall":
        return preview(f"{said.get('results_found')} found: {said.get('query')}", 60)
    action = (block.metadata or {}).get("action")
    told = next((said[name] for name in ("content_preview", "insight_preview", "preventative_rule") if name in said), "")
    return preview(" ".join(str(part) for part in (action, block.ref, told) if part), 90)


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is no UTF-8"
