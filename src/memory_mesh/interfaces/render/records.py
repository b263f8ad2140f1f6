"""Render results about the audit trail, files that move, notes and traces as answers."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memory_mesh.core.audit import (
    ERASED,
    WITHHELD,
    Anchored,
    Broken,
    Rekeyed,
    Sound,
    Verdict,
    as_dict,
    of_recalls,
    owner_of,
)
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.model import (
    BackedUp,
    Block,
    Copied,
    ErasureCheck,
    FileImport,
    Forgotten,
    Head,
    Imported,
    MemoryRecord,
    Migration,
    Repaired,
)
from memory_mesh.core.text import shown_url
from memory_mesh.interfaces.render.output import (
    NAME,
    PIPE_CLOSED,
    Answer,
    aligned,
    counted,
    one_line,
    paint,
    preview,
    safe,
    size,
    styled,
    table,
    write,
)
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.notes import Appended, Fault, Note, Notes, Relevance, Synced
    from memory_mesh.core.notes.extraction import ExtractionOutput
    from memory_mesh.core.notes.files import Imported as ImportedNotes
    from memory_mesh.core.traces import Fault as TraceFault
    from memory_mesh.core.traces import PatternMatch, Trace
    from memory_mesh.core.traces.learnings import Consolidation, PlanContext
    from memory_mesh.core.traces.schema import Retention
    from memory_mesh.flows.traces.traces import Traces


# --- the audit trail ---

_PAIR = re.compile(r"^  (\w+);(.*);$", flags=re.MULTILINE)
_BLOCK_COLUMNS = ("time", "chain", "block", "operation", "agent", "about")


def verdicts(chains: Sequence[Verdict], call: Call) -> Answer:
    """Render whether each chain is sound; the exit code is 1 if one is not."""
    breaks = sum(isinstance(verdict, Broken) for verdict in chains)
    sound = f"{_count(len(chains))} sound" if chains else "There are no chains yet"
    summary = f"{NAME} {f'{breaks} broken, {len(chains) - breaks} sound' if breaks else sound}"
    rows = [
        ("BROKEN" if isinstance(verdict, Broken) else "sound", _owner(verdict.chain), _end(verdict))
        for verdict in chains
    ]
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
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={"count": len(rows), "heads": data},
        rows="heads",
    )


def anchored(done: Anchored, call: Call) -> Answer:
    """Render where the heads were written."""
    data = {
        "target": done.target,
        "time": done.time,
        "heads": [_head_data(head) for head in done.heads],
    }
    return Answer(
        text=f"{NAME} {_count(len(done.heads))} anchored at {done.time} to "
        f"{shown_url(done.target)}",
        data=data,
    )


def rekeyed(done: Rekeyed, call: Call) -> Answer:
    """Render the new key and the number of chains that it signs."""
    return Answer(
        text=f"{NAME} {_count(len(done.chains))} signed with the new key {done.key_id} from now on",
        data=asdict(done),
    )


def blocks(latest: Sequence[Block], call: Call) -> Answer:
    """Render audit blocks, newest first."""
    rows = [
        (
            block.created_at,
            _kind(block.chain),
            str(block.number),
            block.operation_type,
            block.agent_id or "–",
            _about(block),
        )
        for block in latest
    ]
    summary = f"{len(rows)} {'block' if len(rows) == 1 else 'blocks'}"
    return Answer(
        text=f"{NAME} {summary}\n{aligned([_BLOCK_COLUMNS, *rows])}"
        if rows
        else f"{NAME} {summary}",
        data={"count": len(rows), "blocks": [as_dict(block) for block in latest]},
        rows="blocks",
        draw=lambda: table(summary, _BLOCK_COLUMNS, rows),
    )


def exported(pieces: Iterable[str], call: Call) -> Answer:
    return write_export(pieces, call, "blocks")


def write_export(pieces: Iterable[str], call: Call, what: str, *, header: int = 0) -> Answer:
    """Write an export to a new file, or to standard output without anything else. `header` is
    the number of its first lines."""
    out = call.options.get("out")
    if not isinstance(out, str):
        return _printed(pieces, what, header)
    try:
        # It quotes memories: only the owner may read the file, and it must not replace another.
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(
            f"{out} cannot be written: {_reason(error)}", expected="a file that does not exist yet"
        ) from None
    count = 0
    try:
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as opened:
            for count, piece in enumerate(pieces, start=1):  # noqa: B007  (the last number is the count)
                opened.write(piece)
    except BaseException as error:
        Path(out).unlink()  # half an export would pass for a short one
        if isinstance(error, OSError):
            raise InvalidInput(
                f"{out} cannot be written: {_reason(error)}", expected="enough space"
            ) from None
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
        raise InvalidInput(
            f"the export cannot be written: {_reason(error)}", expected="enough space"
        ) from None
    return Answer(text="", data={}, note=f"Exported {max(count, 0)} {what}")


# --- parts of the audit trail ---


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
        return "; ".join(
            [
                f"{verdict.number}:{verdict.seal or verdict.block_hash or 'no block'}",
                *_remarks(verdict),
            ]
        )
    block = f" ({verdict.block_id})" if verdict.block_id else ""
    return f"block {verdict.number}{block}: {verdict.reason}"


def _remarks(sound: Sound) -> list[str]:
    """Return what else a verdict says: what is newer than the noted head, and what could not be
    checked."""
    first = sound.number - (sound.newer or 0) + 1
    return [
        *(
            [f"{sound.newer} newer than the noted head, from block {first} on"]
            if sound.newer
            else []
        ),
        *([f"{sound.withheld} checked by hash and seal only"] if sound.withheld else []),
        *([sound.caution] if sound.caution else []),
    ]


def _marked(mark: str, owner: str, end: str) -> str:
    sound = mark == "sound"
    return (
        f"{styled('✓' if sound else '✗', '32' if sound else '1;31')} {styled(safe(owner), '1')}  "
        f"{safe(end)}"
    )


def _chain_data(chain: str) -> dict[str, object]:
    user, agent = owner_of(chain)
    return {"chain": chain, "kind": _kind(chain), "user_id": user, "agent_id": agent}


def _head_data(head: Head) -> dict[str, object]:
    names = ("number", "block_hash", "seal", "key_id", "signature")
    return {**_chain_data(head.id), **{name: getattr(head, name) for name in names}}


def _signatures(chains: Sequence[Verdict]) -> list[str]:
    """Say whether the signatures of the sound chains were checked: in one line, if it is the
    same for all."""
    states = {_owner(one.chain): str(one.signature) for one in chains if isinstance(one, Sound)}
    if len(set(states.values())) == 1:
        return [f"Signatures: {next(iter(states.values()))}"]
    return [f"Signature of {owner}: {state}" for owner, state in states.items()]


def _verdict_data(verdict: Verdict) -> dict[str, object]:
    if isinstance(verdict, Sound):
        checked = {
            name: getattr(verdict, name)
            for name in ("number", "block_hash", "seal", "newer", "withheld", "caution")
        }
        signature = {
            "signature_checked": verdict.signature.checked,
            "signature": str(verdict.signature),
        }
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
        return (
            f"{pairs['recalls_sealed']} blocks removed, up to number "
            f"{pairs['through_block'].split()[0]}"
        )
    if block.operation_type == "recall":
        return preview(f"{pairs.get('results_found')} found: {pairs.get('query')}", 60)
    action = (block.metadata or {}).get("action")
    names = ("content_preview", "insight_preview", "preventative_rule", "auditor")
    text = next((pairs[name] for name in names if name in pairs), "")
    return preview(" ".join(str(part) for part in (action, block.ref, text) if part), 90)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


# --- backups, exports, imports and migrations ---


def backed_up(done: BackedUp, call: Call) -> Answer:
    return Answer(
        text=f"{NAME} Backed up to {one_line(done.file)} ({size(done.bytes)})", data=asdict(done)
    )


def memories_exported(lines: Iterable[str], call: Call) -> Answer:
    return write_export(lines, call, "memories", header=1)


def store_exported(lines: Iterable[str], call: Call) -> Answer:
    return write_export(lines, call, "rows", header=2)


def file_imported(done: FileImport, call: Call) -> Answer:
    """Render the format, what was stored, what was skipped and why, and each line or item that
    failed."""
    if done.copied:
        return store_copied(done.copied, call)
    links = f" and {counted(done.links, 'link')}" if done.links else ""
    skipped = "".join(f", {count} {why}" for why, count in done.skipped.items())
    stored = counted(done.memories, "memory") + links
    return Answer(
        text=f"{NAME} Imported {stored} (format {done.format}){skipped}, {len(done.failed)} failed",
        data=asdict(done),
        code=1 if done.failed else 0,
        problems=[
            f"{_PLACES.get(done.format, 'line')} {failed.line}: {failed.reason}"
            for failed in done.failed
        ],
    )


def store_copied(done: Copied, call: Call) -> Answer:
    """Render how many rows of each kind a copy has, and which audit chains do not verify."""
    total = sum(done.rows.values())
    kinds = _kinds(done.rows)
    lines = [
        (
            f"{NAME} Copied {counted(total, 'row')}, {done.written} of them now, and verified "
            f"them: {kinds or 'the store is empty'}"
        )
    ]
    lines.append(
        f"{counted(done.chains - len(done.broken), 'audit chain')} verified; the digest is "
        f"{done.digest[:16]}…"
    )
    lines += [f"{counted(done.reembedded, 'memory')} embedded"] if done.reembedded else []
    problems = [f"the audit chain {one_line(text)}" for text in done.broken]
    return Answer(
        text="\n".join(lines), data=asdict(done), code=1 if done.broken else 0, problems=problems
    )


def store_repaired(done: Repaired, call: Call) -> Answer:
    """Render what was saved and what was lost; the exit code is 1 if something was lost."""
    if done.new is None:
        text = (
            "can be read as a whole; nothing was done. memory-mesh doctor also checks the "
            "audit chains"
        )
        return Answer(text=f"{NAME} {one_line(done.file)} {text}", data=asdict(done))
    lines = [
        f"{NAME} Saved {_kinds(done.saved)} into {one_line(done.new)}",
        f"Lost, as far as is known: {_kinds(done.lost) or 'nothing'}",
        (
            f"{one_line(done.file)} is as it was. Check the new store, then put it in place of the "
            "damaged one."
        ),
    ]
    problems = [
        *map(one_line, done.reasons),
        *(f"the audit chain {one_line(text)}" for text in done.broken),
    ]
    return Answer(
        text="\n".join(lines),
        data=asdict(done),
        code=1 if done.lost or done.broken else 0,
        problems=problems,
    )


def _kinds(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


_PLACES = {"mem0": "item", "memory-lane": "row", "neolata": "item"}


def imported(done: Imported, call: Call) -> Answer:
    """Render how many memories were stored and skipped, and each line that failed."""
    return Answer(
        text=f"{NAME} Imported {done.imported} memories, {done.skipped} stored already, "
        f"{len(done.failed)} failed",
        data=asdict(done),
        code=1 if done.failed else 0,
        problems=[f"line {failed.line}: {failed.reason}" for failed in done.failed],
    )


_MAX_DAMAGED_LINES = 20
_MIGRATED = {
    "migrate": ("Migrated", "Would migrate"),
    "roll back": ("Rolled back to V1:", "Would roll back to V1:"),
}


def migrated(done: Migration, call: Call) -> Answer:
    """Render what a migration did, or would do, and the damaged rows that it copied as they are."""
    memories = counted(done.rows, "memory")
    if done.action == "none":
        lines = [f"{NAME} Nothing to migrate: the table has schema V2, with {memories}"]
    else:
        lines = [
            (
                f"{NAME} {_MIGRATED[done.action][done.dry_run]} "
                f"{memories}{' to V2' if done.action == 'migrate' else ''}"
            )
        ]
    if done.damaged:
        lines.append(f"{counted(len(done.damaged), 'damaged row')}, copied as they are:")
        lines += [
            f"row {one.row} ({one_line(one.id or 'no id')}): {one.reason}"
            for one in done.damaged[:_MAX_DAMAGED_LINES]
        ]
        more = len(done.damaged) - _MAX_DAMAGED_LINES
        lines += [f"… and {more} more; --json shows all"] if more > 0 else []
    if done.left_behind:
        lines.append(
            f"{counted(done.left_behind, 'memory')} stored since the migration: only in the "
            "V2 table"
        )
    if done.backup_until:
        table = (
            f"V2 table is kept as {done.backup}"
            if done.action == "roll back"
            else "V1 table is kept as memory_entries_v1_backup"
        )
        lines.append(
            f"The {table} until {done.backup_until[:10]}; memory-mesh migrate and the heartbeat "
            "remove it then"
        )
    if done.action == "migrate" and not done.dry_run:
        lines.append(
            "Searches are by keywords until memory-mesh reembed computes new vectors: the model of "
            "the old ones is unknown"
        )
    lines += [f"Removed {name}, which was put aside 30 days ago" for name in done.removed]
    return Answer(text="\n".join(lines), data=asdict(done))


def check_lines(check: ErasureCheck | None) -> list[str]:
    """Return what was looked for, what was found in each place before and after, and what is
    left."""
    if check is None:
        return []
    lines = [f"Looked for {counted(check.texts, 'text')} in {counted(len(check.places), 'place')}:"]
    lines += [
        f"  {place.name:<46} {place.before} before, {place.after} after" for place in check.places
    ]
    lines += [f"Found: {one_line(id_)} in {one_line(place)}" for id_, place in check.found]
    lines += (
        [f"{counted(check.rows_left, 'row')} of the user left in the store"]
        if check.rows_left
        else []
    )
    lines += (
        [f"{check.shared} left in other memories or searches, which have the same words"]
        if check.shared
        else []
    )
    lines += [f"{check.too_short} too short to look for"] if check.too_short else []
    return [*lines, "Nothing is left." if check.clean else "Something is left."]


def forgotten(proof: Forgotten, call: Call) -> Answer:
    """Render what was erased, and what was looked for; the exit code is 1 if something is left."""
    lines = [
        (
            f"{NAME} Forgot user {one_line(str(call.arguments['user_id']))}: "
            f"{counted(len(proof.memories), 'memory')} erased"
        )
    ]
    lines += (
        []
        if proof.bytes_freed
        else ["The bytes are still in the store's files: `memory-mesh compact` frees them."]
    )
    lines += [
        f"The chain {one_line(chain)} is broken and keeps its queries; see `audit verify`."
        for chain in proof.damaged
    ]
    lines += check_lines(proof.check)
    left = proof.damaged or (proof.check and not (proof.check.clean and proof.bytes_freed))
    return Answer(text="\n".join(lines), data=asdict(proof), code=1 if left else 0)


# --- notes ---


def note_added(done: "Appended", call: Call) -> Answer:
    where = f"{done.file}, section {done.section}" if done.section else done.file
    return Answer(
        text=f"{NAME} Added to {where}{' (a new file)' if done.created else ''}", data=asdict(done)
    )


def note_extracted(found: "ExtractionOutput", call: Call) -> Answer:
    """Render the note and why it is worth one, or why there is none."""
    if not found.should_create_memory:
        return Answer(text=f"{NAME} No note: {one_line(found.reasoning)}", data=asdict(found))
    where = f"Added to {found.saved.file}" if found.saved else "Would add"
    return Answer(
        text=f"{NAME} {where}: {one_line(found.reasoning)}\n\n{found.content}", data=asdict(found)
    )


def notes_listed(found: "Notes", call: Call) -> Answer:
    """Render the notes by file, and how many faults there are."""
    errors = [fault for fault in found.faults if not fault.warning]
    summary = f"{NAME} {counted(len(found), 'note')}"
    summary += f"; {counted(len(errors), 'fault')}, see memory-mesh notes lint" if errors else ""
    rows = [
        (_place(note), note.importance, f"{one_line(note.title)}{_validity(note)}")
        for note in found
    ]
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={"count": len(found), "notes": [asdict(note) for note in found]},
        rows="notes",
    )


def notes_matched(found: "Sequence[Relevance]", call: Call) -> Answer:
    """Render what matched, with the pattern and the points of each part."""
    lines = [f"{NAME} {counted(len(found), 'note')} matched"]
    for one in found:
        parts = ", ".join(f"{name} {points}" for name, points in _parts(one).items() if points)
        changed = f", feedback × {one.feedback:g}" if one.feedback != 1 else ""
        lines.append(f"{one.rank:g}  {_place(one.note)}: {one_line(one.note.title)}")
        lines.append(f"    by {one_line(one.pattern)!r}; {parts}{changed}")
    data = [{**asdict(one), "score": one.score, "rank": one.rank} for one in found]
    return Answer(text="\n".join(lines), data={"count": len(found), "notes": data}, rows="notes")


def notes_injected(prompt: str, call: Call) -> Answer:
    note = f"A prompt of {counted(len(prompt), 'character')}" if prompt else "No note fits the task"
    return Answer(text=prompt, data={"prompt": prompt}, note=note)


def notes_linted(faults: "Sequence[Fault]", call: Call) -> Answer:
    """Render what is wrong, one line each. The exit code is 1 if a note cannot be used."""
    errors = sum(not fault.warning for fault in faults)
    lines = [f"{NAME} {counted(errors, 'fault')}, {counted(len(faults) - errors, 'warning')}"]
    lines += [one_line(_fault(one)) for one in faults]
    data = {"count": len(faults), "faults": [asdict(one) for one in faults]}
    return Answer(text="\n".join(lines), data=data, rows="faults", code=1 if errors else 0)


def notes_synced(done: "Synced", call: Call) -> Answer:
    files = f" ({one_line(', '.join(done.files))})" if done.files else ""
    errors = sum(not fault.warning for fault in done.faults)
    more = f"; {counted(errors, 'fault')}, see memory-mesh notes lint" if errors else ""
    return Answer(text=f"{NAME} Notes: {_counts(done)}{files}{more}", data=asdict(done))


def notes_imported(done: "ImportedNotes", call: Call) -> Answer:
    """Render how many sections and skills were taken over. The exit code is 1 if a file cannot
    be used."""
    lines = [
        f"{NAME} Imported {counted(len(done.files), 'file')}: {_counts(done.sections)}",
        *map(one_line, done.files),
    ]
    for one in done.skills:
        lines.append(
            one_line(
                f"{one.root}: {counted(one.added, 'skill')} added, {one.updated} updated, "
                f"{one.unchanged} unchanged"
            )
        )
    if not (done.files or done.skills or done.sections.faults):
        lines.append("There is no CLAUDE.md, AGENTS.md, .cursor/rules or folder of skills here.")
    faults = [_fault(one) for one in done.sections.faults if not one.warning]
    faults += [
        f"{one.root}/{failed.source}: {failed.reason}"
        for one in done.skills
        for failed in one.failed
    ]
    lines += [one_line(_fault(one)) for one in done.sections.faults if one.warning]
    return Answer(
        text="\n".join(lines), data=asdict(done), code=1 if faults else 0, problems=faults
    )


def _fault(one: "Fault") -> str:
    return (
        f"{one.file}{f':{one.line}' if one.line else ''}: "
        f"{'warning: ' if one.warning else ''}{one.what}"
    )


def _counts(done: "Synced") -> str:
    names = ("added", "updated", "moved", "archived", "unchanged")
    return ", ".join(f"{getattr(done, name)} {name}" for name in names)


def _place(note: "Note") -> str:
    return f"{one_line(note.file)}#{note.section}"


def _validity(note: "Note") -> str:
    """Return when a note is used, if not always."""
    times = [
        f"{word} {at[:10]}"
        for word, at in (("from", note.valid_from), ("until", note.valid_until))
        if at
    ]
    return " (deprecated)" if note.deprecated else f" ({' '.join(times)})" if times else ""


def _parts(one: "Relevance") -> dict[str, int]:
    names = ("importance", "recency", "keyword", "specialty", "discoverer")
    return {name: getattr(one, name) for name in names}


# --- traces ---


def traces_listed(found: "Traces", call: Call) -> Answer:
    """Render traces, one line each, and what is wrong in the files."""
    rows = [
        (
            each.trace_id,
            each.timestamp[:19],
            each.status,
            f"{each.duration_ms:,} ms",
            one_line(each.goal),
        )
        for each in found
    ]
    summary = f"{NAME} {counted(len(found), 'trace')}"
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={
            "count": len(found), "traces": [asdict(each) for each in found],
            "faults": [asdict(each) for each in found.faults],
        },
        rows="traces",
        problems=fault_lines(found.faults),
    )  # fmt: skip


def trace_shown(trace: "Trace | None", call: Call) -> Answer:
    """Render a trace as it is written to its file."""
    if trace is None:
        what = f"no trace {shown(call.arguments['trace_id'], max_length=80)}"
        raise NotFound(what, remedy="see memory-mesh trace list, and check the user")
    return Answer(text=f"{NAME} {trace.trace_id}\n{trace.text.rstrip()}", data=asdict(trace))


def trace_recorded(trace: "Trace", call: Call) -> Answer:
    text = f"{NAME} Recorded {trace.trace_id}: {trace.status}, {one_line(trace.goal)}"
    return Answer(text=text, data=asdict(trace))


def traces_similar(found: "Sequence[PatternMatch]", call: Call) -> Answer:
    """Render what was done for similar goals, the most similar first."""
    lines = [f"{NAME} {counted(len(found), 'similar trace')}"]
    for each in found:
        lines.append(
            f"{each.similarity:.2f}  {each.trace_id}  {'success' if each.success else 'failure'}  "
            f"{one_line(each.goal)}"
        )
        lines += [f"      tools: {one_line(', '.join(each.tools_used))}"] if each.tools_used else []
        lines += (
            [f"      approach: {one_line(each.suggested_approach)}"]
            if each.suggested_approach
            else []
        )
    data = {"count": len(found), "matches": [asdict(each) for each in found]}
    return Answer(text="\n".join(lines), data=data, rows="matches")


def trace_planned(found: "PlanContext", call: Call) -> Answer:
    note = (
        f"A plan of {counted(len(found.text), 'character')}"
        if found.text
        else "No trace is similar to the goal"
    )
    return Answer(text=found.text, data=asdict(found), note=note)


def traces_consolidated(done: "Consolidation", call: Call) -> Answer:
    """Render the learnings of a project, with the new and changed ones marked."""
    would = "Would write" if done.dry_run else "Wrote"
    skills = f", {counted(len(done.skills), 'skill')}" if done.skills else ""
    more = (
        f"{counted(len(done.written), 'learning')}, {counted(done.decisions, 'decision')}{skills}"
    )
    lines = [
        f"{NAME} {would} {more} from {counted(done.traces, 'trace')} of {one_line(done.project)}"
    ]
    for each in done.patterns:
        new = "*" if each.learning_id in done.written else " "
        rate = f"{each.learning.rate}% of {each.learning.count}"
        lines.append(f"{new} {each.learning_id}  {rate:>12}  {one_line(each.learning.name)}")
    return Answer(text="\n".join(lines), data=asdict(done))


def traces_archived(done: "Consolidation", call: Call) -> Answer:
    """Render that the short-term memory of a project moved, and what was drawn from it."""
    answer = traces_consolidated(done, call)
    return replace(
        answer,
        text=f"{answer.text}\nThe short-term memory of {one_line(done.project)} is archived.",
    )


def traces_retained(done: "Retention", call: Call) -> Answer:
    """Render what moved, or would move, and why."""
    lines = [
        (
            f"{NAME} {counted(len(done.moves), 'move')} "
            f"{'planned; nothing was changed' if done.dry_run else 'done'}"
        )
    ]
    lines += [
        f"{each.action} {each.count} of {one_line(each.project)}: {each.reason}"
        for each in done.moves
    ]
    return Answer(
        text="\n".join(lines), data=asdict(done), rows="moves", problems=fault_lines(done.faults)
    )


def fault_lines(faults: "Sequence[TraceFault]") -> list[str]:
    return [one_line(f"{each.file}:{each.line}: {each.what}") for each in faults]


def decisions_kept(kept: Sequence[MemoryRecord], call: Call) -> Answer:
    lines = [
        f"{NAME} {counted(len(kept), 'decision')}",
        *(f"{each.id}: {one_line(each.content)}" for each in kept),
    ]
    data = {"count": len(kept), "memories": [asdict(each) for each in kept]}
    return Answer(text="\n".join(lines), data=data, rows="memories")
