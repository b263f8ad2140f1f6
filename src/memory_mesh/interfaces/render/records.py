"""Render results about the audit trail, files that move, notes and traces as answers."""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memory_mesh.core.audit import (
    ERASED,
    WITHHELD,
    Broken,
    Sound,
    Verdict,
    as_dict,
    of_recalls,
    owner_of,
)
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.model import Block, Copied, FileImport, Head, Migration, Repaired
from memory_mesh.core.text import shown_url
from memory_mesh.interfaces.render.output import (
    NAME,
    PIPE_CLOSED,
    Answer,
    aligned,
    answer,
    counted,
    first_20,
    items,
    one_line,
    paint,
    preview,
    safe,
    styled,
    when,
    write,
)
from memory_mesh.interfaces.render.templates import each, fill, rows, view
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.notes import Fault, Note, Relevance
    from memory_mesh.core.notes.extraction import ExtractionOutput
    from memory_mesh.core.notes.files import Imported as ImportedNotes
    from memory_mesh.core.traces import Fault as TraceFault
    from memory_mesh.core.traces import Trace
    from memory_mesh.core.traces.learnings import Consolidation, PlanContext


# --- the audit trail ---


def verdicts(chains: Sequence[Verdict], call: Call) -> Answer:
    """Render whether each chain is sound; the exit code is 1 if one is not."""
    broken = [verdict for verdict in chains if isinstance(verdict, Broken)]
    title = fill("<{:#chain} sound><!?There are no chains yet>", chains)
    if broken:
        title = f"{len(broken)} broken, {len(chains) - len(broken)} sound"
    states = {_owner(one.chain): str(one.signature) for one in chains if isinstance(one, Sound)}
    below = [one_line(f"Signature of {owner}: {state}") for owner, state in states.items()]
    if len(set(states.values())) == 1:
        below = [one_line(f"Signatures: {state}") for state in set(states.values())]
    table = [
        ("BROKEN" if verdict in broken else "sound", _owner(verdict.chain), _end(verdict))
        for verdict in chains
    ]

    def draw() -> str:
        marks = {"sound": styled("✓", "32"), "BROKEN": styled("✗", "1;31")}
        lines = (
            f"{marks[mark]} {styled(safe(owner), '1')}  {safe(end)}" for mark, owner, end in table
        )
        return "\n".join([paint(f"{NAME} {title}"), *lines, *below])

    return answer(
        title,
        items([_verdict_data(verdict) for verdict in chains], ok=not broken),
        [aligned(table), *below],
        failed=broken,
        draw=draw,
    )


def _end(verdict: Verdict) -> str:
    """Return the last block of a chain, what is newer than the noted head, and what could not be
    checked; or the block that is wrong."""
    if isinstance(verdict, Broken):
        return fill("block {number}< ({block_id:raw})>: {reason:raw}", verdict)
    first = verdict.number - (verdict.newer or 0) + 1
    parts = (
        f"{verdict.number}:{verdict.seal or verdict.block_hash or 'no block'}",
        when(verdict.newer, f"{verdict.newer} newer than the noted head, from block {first} on"),
        when(verdict.withheld, f"{verdict.withheld} checked by hash and seal only"),
        verdict.caution,
    )
    return "; ".join(filter(None, parts))


def _kind(chain: str) -> str:
    return "recalls" if of_recalls(chain) else "main"


def _owner(chain: str) -> str:
    user, agent = owner_of(chain)
    name = f"{_kind(chain)} of agent {agent}{when(user, f' of user {user}')}"
    return one_line(name) if chain else "any chain"


def _chain_data(chain: str) -> dict[str, object]:
    user, agent = owner_of(chain)
    return {"chain": chain, "kind": _kind(chain), "user_id": user, "agent_id": agent}


def _verdict_data(verdict: Verdict) -> dict[str, object]:
    data = _chain_data(verdict.chain) | {"ok": isinstance(verdict, Sound)} | asdict(verdict)
    if isinstance(verdict, Sound):
        del data["signature"]
        data["signature_checked"] = verdict.signature.checked
        data["signature"] = str(verdict.signature)
    return data


def _head_data(head: Head) -> dict[str, object]:
    names = ("number", "block_hash", "seal", "key_id", "signature")
    return _chain_data(head.id) | {name: getattr(head, name) for name in names}


# Each chain is written in the form that `audit verify --head` takes.
heads = view(
    "<{:#chain}><!?There are no chains yet>",
    rows("{number}:<{seal:raw}><!seal?{block_hash:raw}>", lambda head: _owner(head.id)),
    data=lambda ends: items([_head_data(head) for head in ends]),
)


anchored = view(
    lambda done: fill("{heads:#chain} anchored at {time} to ", done) + shown_url(done.target),
    data=lambda done: {
        "target": done.target,
        "time": done.time,
        "heads": [_head_data(head) for head in done.heads],
    },
)

rekeyed = view("{chains:#chain} signed with the new key {key_id} from now on")


def _about(block: Block) -> str:
    """Describe a block in a few words."""
    hidden = {
        ERASED: "(its text is erased)",
        WITHHELD: "(withheld: of another agent or session)",
    }
    if block.yamo_text in hidden:
        return f"{block.ref or ''} {hidden[block.yamo_text]}".lstrip()
    pairs = dict(re.findall(r"^  (\w+);(.*);$", block.yamo_text, flags=re.MULTILINE))
    if "new_key" in pairs:
        return f"rekey from {pairs['old_key']} to {pairs['new_key']}"
    if "through_block" in pairs:
        last = pairs["through_block"].split()[0]
        return f"{pairs['recalls_sealed']} blocks removed, up to number {last}"
    if block.operation_type == "recall":
        return preview(f"{pairs.get('results_found')} found: {pairs.get('query')}", 60)
    action = (block.metadata or {}).get("action")
    names = ("content_preview", "insight_preview", "preventative_rule", "auditor")
    text = next((pairs[name] for name in names if name in pairs), "")
    return preview(" ".join(str(part) for part in (action, block.ref, text) if part), 90)


blocks = view(
    "{:#block}",
    columns={
        "time": "{created_at}",
        "chain": lambda block: _kind(block.chain),
        "block": "{number}",
        "operation": "{operation_type}",
        "agent": "{agent_id:or –}",
        "about": _about,
    },
    with_heads=True,
    data=lambda latest: items([as_dict(block) for block in latest]),
)


# --- exports ---


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
        raise _unwritable(out, error, "a file that does not exist yet") from None
    count = -header
    try:
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as opened:
            for piece in pieces:
                opened.write(piece)
                count += 1
    except BaseException as error:
        Path(out).unlink()  # half an export would pass for a short one
        if isinstance(error, OSError):
            raise _unwritable(out, error, "enough space") from None
        raise
    return answer(f"Exported {count} {what} to {out}", {what: count, "file": out})


def _printed(pieces: Iterable[str], what: str, header: int) -> Answer:
    make_safe = safe if sys.stdout.isatty() else str
    try:
        count = write(map(make_safe, pieces)) - header
    except BrokenPipeError:
        return Answer(text="", data={}, code=PIPE_CLOSED)
    except OSError as error:
        raise _unwritable("the export", error, "enough space") from None
    return Answer(text="", data={}, note=f"Exported {max(count, 0)} {what}")


def _unwritable(what: str, error: OSError, expected: str) -> InvalidInput:
    reason = error.strerror or str(error)
    return InvalidInput(f"{what} cannot be written: {reason}", expected=expected)


exported = partial(write_export, what="blocks")
memories_exported = partial(write_export, what="memories", header=1)
store_exported = partial(write_export, what="rows", header=2)


# --- backups, imports and migrations ---

backed_up = view("Backed up to {file} ({bytes:size})")

imported = view(
    "Imported {imported} memories, {skipped} stored already, {failed:#} failed",
    failed=lambda done: done.failed,
    problems=each("failed", "line {line}: {reason:raw}"),
)

_PLACES = {"mem0": "item", "memory-lane": "row", "neolata": "item"}


def file_imported(done: FileImport, call: Call) -> Answer:
    """Render the format, what was stored, what was skipped and why, and each line or item that
    failed."""
    if done.copied:
        return store_copied(done.copied, call)
    skipped = "".join(f", {count} {why}" for why, count in done.skipped.items())
    place = _PLACES.get(done.format, "line")
    title = fill("Imported {memories:#memory}< and {links:#link}> (format {format})", done)
    return answer(
        f"{title}{skipped}, {len(done.failed)} failed",
        done,
        failed=done.failed,
        problems=[f"{place} {failed.line}: {failed.reason}" for failed in done.failed],
    )


_broken = each("broken", "the audit chain {}")


def store_copied(done: Copied, call: Call) -> Answer:
    """Render how many rows of each kind a copy has, and which audit chains do not verify."""
    total = counted(sum(done.rows.values()), "row")
    verified = counted(done.chains - len(done.broken), "audit chain")
    kinds = fill("<{rows:counts}><!rows?the store is empty>", done)
    return answer(
        f"Copied {total}, {done.written} of them now, and verified them: {kinds}",
        done,
        [
            f"{verified} verified; the digest is {done.digest[:16]}…",
            fill("<{reembedded:#memory} embedded>", done),
        ],
        failed=done.broken,
        problems=_broken(done),
    )


_sound = view(
    "{file} can be read as a whole; nothing was done. memory-mesh doctor also checks the audit "
    "chains"
)
_saved = view(
    "Saved {saved:counts} into {new}",
    "Lost, as far as is known: <{lost:counts}><!lost?nothing>",
    "{file} is as it was. Check the new store, then put it in place of the damaged one.",
    failed=lambda done: done.lost or done.broken,
    problems=lambda done: [*map(one_line, done.reasons), *_broken(done)],
)


def store_repaired(done: Repaired, call: Call) -> Answer:
    """Render what was saved and what was lost; the exit code is 1 if something was lost."""
    return (_sound if done.new is None else _saved)(done, call)


_MIGRATED = {
    "none": ("Nothing to migrate: the table has schema V2, with {rows:#memory}",) * 2,
    "migrate": ("Migrated {rows:#memory} to V2", "Would migrate {rows:#memory} to V2"),
    "roll back": ("Rolled back to V1: {rows:#memory}", "Would roll back to V1: {rows:#memory}"),
}
_KEPT = {"roll back": "V2 table is kept as {backup:raw}"}
_V1_KEPT = "V1 table is kept as memory_entries_v1_backup"


def migrated(done: Migration, call: Call) -> Answer:
    """Render what a migration did, or would do, and the damaged rows that it copied as they are."""
    table = _KEPT.get(done.action, _V1_KEPT)
    until = " until {backup_until:.10}; memory-mesh migrate and the heartbeat remove it then>"
    by_keywords = (
        "Searches are by keywords until memory-mesh reembed computes new vectors: the model of the "
        "old ones is unknown"
    )
    return answer(
        fill(_MIGRATED[done.action][done.dry_run], done),
        done,
        [
            fill("<{damaged:#damaged row}, copied as they are:>", done),
            *first_20(each("damaged", "row {row} (<{id}><!id?no id>): {reason:raw}")(done)),
            fill("<{left_behind:#memory} stored since the migration: only in the V2 table>", done),
            fill(f"<backup_until?The {table}{until}", done),
            when(done.action == "migrate" and not done.dry_run, by_keywords),
            *(f"Removed {name}, which was put aside 30 days ago" for name in done.removed),
        ],
    )


# --- notes ---

note_added = view("Added to {file:raw}<, section {section}><created? (a new file)>")


_no_note = view("No note: {reasoning}")
_note = view(
    "<saved?Added to {saved.file:raw}><!saved?Would add>: {reasoning}",
    lambda found: f"\n{found.content}",
)


def note_extracted(found: "ExtractionOutput", call: Call) -> Answer:
    """Render the note and why it is worth one, or why there is none."""
    return (_note if found.should_create_memory else _no_note)(found, call)


def _place(note: "Note") -> str:
    return f"{one_line(note.file)}#{note.section}"


def _title(note: "Note") -> str:
    """Return the title of a note, and when it is used, if not always."""
    times = fill("<from {valid_from:.10}>< until {valid_until:.10}>", note).strip()
    times = "deprecated" if note.deprecated else times
    return one_line(note.title) + when(times, f" ({times})")


def _faults(faults: "Sequence[Fault]") -> str:
    errors = sum(not fault.warning for fault in faults)
    return when(errors, f"; {counted(errors, 'fault')}, see memory-mesh notes lint")


notes_listed = view(
    lambda notes: counted(len(notes), "note") + _faults(notes.faults),
    rows(_place, "{importance:raw}", _title),
)


def _match(match: "Relevance") -> str:
    """Return a note that matched, with the pattern and the points of each part."""
    names = ("importance", "recency", "keyword", "specialty", "discoverer")
    points = [f"{name} {getattr(match, name)}" for name in names if getattr(match, name)]
    changed = when(match.feedback != 1, f", feedback × {match.feedback:g}")
    return (
        f"{match.rank:g}  {_place(match.note)}: {one_line(match.note.title)}\n"
        f"    by {one_line(match.pattern)!r}; {', '.join(points)}{changed}"
    )


notes_matched = view(
    "{:#note} matched",
    each("", _match),
    data=lambda found: items(
        [{**asdict(one), "score": one.score, "rank": one.rank} for one in found]
    ),
)


def notes_injected(prompt: str, call: Call) -> Answer:
    note = f"A prompt of {counted(len(prompt), 'character')}" if prompt else "No note fits the task"
    return Answer(text=prompt, data={"prompt": prompt}, note=note)


def notes_linted(faults: "Sequence[Fault]", call: Call) -> Answer:
    """Render what is wrong, one line each. The exit code is 1 if a note cannot be used."""
    errors = sum(not fault.warning for fault in faults)
    title = f"{counted(errors, 'fault')}, {counted(len(faults) - errors, 'warning')}"
    lines = [one_line(_fault(fault)) for fault in faults]
    return answer(title, items(faults), lines, failed=errors)


def _fault(fault: "Fault") -> str:
    return fill("{file:raw}<:{line}>: <warning?warning: >{what:raw}", fault)


_COUNTS = (
    "{added} added, {updated} updated, {moved} moved, {archived} archived, {unchanged} unchanged"
)

notes_synced = view(
    lambda done: fill(f"Notes: {_COUNTS}< ({{files:list}})>", done) + _faults(done.faults)
)


def notes_imported(done: "ImportedNotes", call: Call) -> Answer:
    """Render how many sections and skills were taken over. The exit code is 1 if a file cannot
    be used."""
    nothing = not (done.files or done.skills or done.sections.faults)
    skills = "{root:raw}: {added:#skill} added, {updated} updated, {unchanged} unchanged"
    problems = [_fault(fault) for fault in done.sections.faults if not fault.warning]
    for folder in done.skills:
        problems += [f"{folder.root}/{failed.source}: {failed.reason}" for failed in folder.failed]
    return answer(
        f"Imported {counted(len(done.files), 'file')}: {fill(_COUNTS, done.sections)}",
        done,
        [
            *map(one_line, done.files),
            *(one_line(fill(skills, folder)) for folder in done.skills),
            when(
                nothing, "There is no CLAUDE.md, AGENTS.md, .cursor/rules or folder of skills here."
            ),
            *(one_line(_fault(fault)) for fault in done.sections.faults if fault.warning),
        ],
        failed=problems,
        problems=problems,
    )


# --- traces ---


def fault_lines(faults: "Sequence[TraceFault]") -> list[str]:
    return [one_line(f"{fault.file}:{fault.line}: {fault.what}") for fault in faults]


traces_listed = view(
    "{:#trace}",
    rows("{trace_id}", "{timestamp:.19}", "{status}", "{duration_ms:,} ms", "{goal}"),
    data=lambda traces: items(traces, faults=[asdict(fault) for fault in traces.faults]),
    problems=lambda traces: fault_lines(traces.faults),
)


def trace_shown(trace: "Trace | None", call: Call) -> Answer:
    """Render a trace as it is written to its file."""
    if trace is None:
        what = f"no trace {shown(call.arguments['trace_id'], max_length=80)}"
        raise NotFound(what, remedy="see memory-mesh trace list, and check the user")
    return answer(trace.trace_id, trace, [trace.text.rstrip()])


trace_recorded = view("Recorded {trace_id}: {status}, {goal}")

traces_similar = view(
    "{:#similar trace}",
    each(
        "",
        "{similarity:.2f}  {trace_id}  {success:success|failure}  {goal}"
        "<\n      tools: {tools_used:list}><\n      approach: {suggested_approach}>",
    ),
)


def trace_planned(found: "PlanContext", call: Call) -> Answer:
    characters = counted(len(found.text), "character")
    note = f"A plan of {characters}" if found.text else "No trace is similar to the goal"
    return Answer(text=found.text, data=asdict(found), note=note)


def _learnings(done: "Consolidation") -> list[str]:
    """Return the learnings of a project, with the new and changed ones marked."""
    lines = []
    for pattern in done.patterns:
        new = "*" if pattern.learning_id in done.written else " "
        rate = f"{pattern.learning.rate}% of {pattern.learning.count}"
        lines.append(f"{new} {pattern.learning_id}  {rate:>12}  {one_line(pattern.learning.name)}")
    return lines


_CONSOLIDATED = (
    "{dry_run:Would write|Wrote} {written:#learning}, {decisions:#decision}<, {skills:#skill}> "
    "from {traces:#trace} of {project}"
)

traces_consolidated = view(_CONSOLIDATED, _learnings)

traces_archived = view(_CONSOLIDATED, _learnings, "The short-term memory of {project} is archived.")

traces_retained = view(
    "{moves:#move} {dry_run:planned; nothing was changed|done}",
    each("moves", "{action:raw} {count} of {project}: {reason:raw}"),
    key="moves",
    problems=lambda done: fault_lines(done.faults),
)

decisions_kept = view("{:#decision}", each("", "{id}: {content}"))
