"""Views: each renders the result of one operation of the table as an `Answer`, with a text and the data for JSON."""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from memory_mesh.core.audit import ERASED, WITHHELD, Broken, Sound, Verdict, as_dict, of_recalls, owner_of
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock, Spending
from memory_mesh.core.model import Block, Change, Extraction, Head, MemoryRecord, SearchResult
from memory_mesh.core.search import Explained, Explanation
from memory_mesh.faces.mesh import MemoryStats
from memory_mesh.flows.embed import Reembedded
from memory_mesh.flows.erase import Erasure
from memory_mesh.flows.folders import Gone, Ingested
from memory_mesh.flows.models import Checked
from memory_mesh.interfaces.render import (
    NAME,
    PIPE_CLOSED,
    Answer,
    aligned,
    one_line,
    paint,
    preview,
    safe,
    styled,
    table,
    write,
)  # fmt: skip
from memory_mesh.interfaces.values import Call

_MAX_GONE_LINES = 20
_PAIR = re.compile(r"^  (\w+);(.*);$", flags=re.MULTILINE)
_BLOCK_COLUMNS = ("time", "chain", "block", "operation", "agent", "about")


# --- memories ---


def stored(memory: MemoryRecord, call: Call) -> Answer:
    return Answer(text=f"{NAME} Ingested record {memory.id}{_masked(memory.redactions)}", data=asdict(memory))


def found(results: Sequence[SearchResult], text: str) -> Answer:
    """Render search results in the words of RFC-0011."""
    return _results(results, f"{NAME} Found {len(results)} matches." + (f"\n\n{text}" if results else ""))


def fenced(results: Sequence[SearchResult], text: str) -> Answer:
    return _results(results, text)


def record(memory: MemoryRecord | None, call: Call) -> Answer:
    """Render all fields of a memory."""
    if memory is None:
        raise _unknown(call)
    facts = {
        "Type": memory.metadata.get("type") or memory.memory_type,
        "Source": memory.metadata.get("source") or "unknown",
        "Status": memory.status,
        "Revision": memory.revision,
        "Observed": memory.times_observed,
        "Pinned": "yes" if memory.pinned else "no",
    }
    owner = {"User": memory.user_id, "Agent": memory.agent_id, "Session": memory.session_id, "Created": memory.created_at}
    lines = [f"{NAME} Record {memory.id}", _pairs(facts), _pairs(owner)]
    if memory.metadata:
        lines.append(f"Metadata: {json.dumps(memory.metadata, ensure_ascii=False)}")
    return Answer(text="\n".join([*lines, "", memory.content]), data=asdict(memory))


def listed(memories: Sequence[MemoryRecord], call: Call) -> Answer:
    """Render memories, one on each line."""
    lines = [f"{memory.id}  {memory.created_at}  {memory.memory_type:<10}  {preview(memory.content)}" for memory in memories]
    data = {"count": len(memories), "memories": [asdict(memory) for memory in memories]}
    return Answer(text="\n".join([f"{NAME} Listed {len(memories)} memories.", *lines]), data=data)


def history(changes: Sequence[Change], call: Call) -> Answer:
    """Render the revisions of a memory, oldest first."""
    id_ = call.arguments["id"]
    lines = [f"{NAME} History of {id_}: {len(changes)} revisions."]
    for change in changes:
        why = f": {change.why}" if change.why else ""
        lines.append(f"{change.number:>4}  {change.created_at}  {change.action} by {change.agent_id or 'unknown'}{why}")
        lines += [f"      {name} was {preview(_value(before))}" for name, before in change.before.items()]
    return Answer(text="\n".join(lines), data={"id": id_, "changes": [asdict(change) for change in changes]})


def updated(memory: MemoryRecord, call: Call) -> Answer:
    text = f"{NAME} Updated record {memory.id} to revision {memory.revision}{_masked(memory.redactions)}"
    return Answer(text=text, data=asdict(memory))


def pinned(memory: MemoryRecord, call: Call) -> Answer:
    return Answer(text=f"{NAME} {'Pinned' if memory.pinned else 'Unpinned'} record {memory.id}", data=asdict(memory))


def deleted(proof: Erasure, call: Call) -> Answer:
    """Render the ids of the erased memories, the given one first."""
    if not proof.memories:
        raise _unknown(call)
    ids = sorted(proof.memories, key=lambda id_: id_ != call.arguments["id"])
    return _erased(proof, [f"{NAME} Deleted record {id_}" for id_ in ids])


def deleted_all(proof: Erasure, call: Call) -> Answer:
    return _erased(proof, [f"{NAME} Deleted {len(proof.memories)} records"])


def ingested(done: Ingested, call: Call) -> Answer:
    """Render a summary, the files that failed, and what to do about memories of missing files."""
    counts = f"{done.added} added, {done.updated} updated, {done.unchanged} unchanged, {len(done.failed)} failed"
    summary = f"{NAME} Ingested {one_line(done.root)}: {counts}, {len(done.gone)} gone"
    return Answer(
        text="\n".join([summary, *_no_files(done, call), *_gone(done.gone)]),
        data=asdict(done),
        code=1 if done.failed else 0,
        problems=[f"{failed.source}: {failed.reason}" for failed in done.failed],
    )


def extracted(done: Extraction, call: Call) -> Answer:
    """Render the memories extracted from a text."""
    lines = [f"{NAME} {_extraction(done)}{_masked(done.redactions)}"]
    if done.stored_whole:
        lines.append(f"{NAME} Stored as it is: {done.stored_whole}")
    if done.flagged:
        lines.append(f"{NAME} The text tries to give instructions ({', '.join(done.flagged)}); they were not followed")
    for memory in done.memories:
        importance = "  – " if memory.importance is None else f"{memory.importance:.2f}"
        lines.append(f"{memory.id}  {importance}  {memory.category or '–':<12}  {preview(memory.content)}")
    return Answer(text="\n".join(lines), data={**asdict(done), "count": len(done.memories)})


def explained(explanation: Explanation, call: Call) -> Answer:
    """Render a search with its reasons: the query, the signals of each memory, and what was left out."""
    vectors = f"vectors of {explanation.model}" if explanation.model else "no vectors"
    left_out = ", ".join(f"{count} by {reason}" for reason, count in sorted(explanation.left_out.items())) or "nothing"
    lines = [
        f"{NAME} {len(explanation.answers)} answers of {explanation.candidates} candidates, "
        f"among {explanation.documents} memories",
        f"Query: {one_line(explanation.query)[:200]}",
        f"Words: {', '.join(explanation.tokens[:20]) or 'none'}",
        f"Ranker: {explanation.ranker}, keywords and {vectors}, minimum score {explanation.min_score:.2f}",
        f"Left out: {left_out}",
    ]
    for n, hit in enumerate(explanation.answers, start=1):
        lines += ["", f"--- MEMORY {n}: {hit.result.id} [IMPORTANCE: {hit.result.score:.2f}] ---", *_signals(hit)]
    if explanation.nearly:
        lines += ["", f"Below the minimum score of {explanation.min_score:.2f}:"]
        lines += [f"  {hit.result.score:.2f}  {hit.result.id}  {one_line(hit.result.content)[:80]}" for hit in explanation.nearly]
    data = asdict(explanation)
    for name, hits in (("answers", explanation.answers), ("nearly", explanation.nearly)):
        data[name] = [_explained_data(hit) for hit in hits]
    return Answer(text="\n".join(lines), data=data)


def compacted(freed: bool, call: Call) -> Answer:  # noqa: FBT001  (the result of the method)
    done = "No deleted bytes are left in the files" if freed else "Other processes are using the store: try again later"
    return Answer(text=f"{NAME} {done}", data={"bytes_freed": freed}, code=0 if freed else 1)


def reembedded(done: Reembedded, call: Call) -> Answer:
    changed = f"; the store was of {done.changed_from} before" if done.changed_from else ""
    return Answer(text=f"{NAME} Embedded {done.embedded} memories with {done.model}{changed}", data=asdict(done))


def stats(counts: MemoryStats, call: Call) -> Answer:
    """Render the four lines of RFC-0011, and a line for each operation that called a model."""
    data = {
        "total_memories": counts.total_memories, "total_skills": counts.total_skills,
        "db_path": counts.db_path, "status": counts.status, "by_status": counts.by_status,
        "spent_today": [asdict(spent) for spent in counts.spent_today],
        "spent_in_all": [asdict(spent) for spent in counts.spent_in_all],
    }  # fmt: skip
    today = {(spent.operation, spent.model): spent.calls for spent in counts.spent_today}
    lines = [
        f"{NAME} Total Memories: {data['total_memories']}",
        f"{NAME} Total Skills: {data['total_skills']}",
        f"{NAME} DB Path: {data['db_path']}",
        f"{NAME} Status: {data['status']}",
        *(_spent(spent, today.get((spent.operation, spent.model), 0)) for spent in counts.spent_in_all),
    ]
    return Answer(text="\n".join(lines), data=data)


def models(checks: Sequence[Checked], call: Call) -> Answer:
    """Render whether each configured model answered; the exit code is 1 if one did not."""
    failed = [check for check in checks if not check.ok]
    rows = [("FAILED" if not check.ok else "ok" if check.model else "-", check.part, _check(check)) for check in checks]
    summary = f"{len(failed)} of the models gave no answer" if failed else "Every model that is set answers"
    return Answer(
        text=f"{NAME} {summary}\n{aligned(rows)}",
        data={"ok": not failed, "checks": [asdict(check) for check in checks]},
        code=1 if failed else 0,
    )


# --- lessons and maintenance ---


def lessons(found: Sequence[LessonBlock], call: Call) -> Answer:
    """Render lessons, one on each line: severity, confidence, rule, scope."""
    rows = [_lesson_row(one) for one in found]
    heads = ("severity", "sure", "rule", "applies to")
    return Answer(
        text=f"{NAME} {len(found)} lessons." + (f"\n{aligned(rows)}" if rows else ""),
        data={"count": len(found), "lessons": [asdict(one) for one in found]},
        draw=(lambda: table(f"{len(found)} lessons", heads, rows)) if rows else None,
    )


def lesson(block: LessonBlock, call: Call) -> Answer:
    """Render the lesson that was stored, or the known one with at least the same confidence."""
    name = f"Lesson {block.lesson_id} of pattern {block.pattern_id}, {block.rule_confidence:.2f} sure"
    return Answer(text=f"{NAME} {name}: {one_line(block.preventative_rule)}", data=asdict(block))


def distilled(done: Distilled, call: Call) -> Answer:
    """Render the result of a distillation cycle."""
    lines = [
        f"{NAME} Scanned {done.scanned} blocks: {done.candidates} candidates, {len(done.learnt) + done.unseen} learnt, "
        f"{done.known} known, {len(done.skipped)} skipped"
    ]
    lines += [f"Learnt: {one_line(one.preventative_rule)}" for one in done.learnt]
    lines += [f"Learnt for other agents, visible to them alone: {done.unseen}"] if done.unseen else []
    lines += [f"Skipped: {one.memory_id}, because {one_line(one.reason)}" for one in done.skipped]
    if done.inject:
        lines += ["", "To begin the next session with:", aligned([_lesson_row(one) for one in done.inject])]
    return Answer(text="\n".join(lines), data=asdict(done))


def heartbeat(beat: Heartbeat, call: Call) -> Answer:
    """Render the outcome of each job; the exit code is 1 if one failed."""
    failed = sum(not run.ok for run in beat.runs)
    done = sum(run.outcome == "done" for run in beat.runs)
    rows = [_run_row(run) for run in beat.runs]
    summary = f"Heartbeat: {done} done, {failed} failed, {len(beat.runs) - done - failed} not run"
    return Answer(
        text=f"{NAME} {summary}\n{aligned(rows)}",
        data={"ok": beat.ok, "runs": [asdict(run) for run in beat.runs]},
        code=0 if beat.ok else 1,
        draw=lambda: table(summary, ("job", "outcome", "what it did"), rows),
    )


def runs(earlier: Sequence[JobRun], call: Call) -> Answer:
    """Render earlier runs, newest first."""
    rows = [(run.began, *_run_row(run)) for run in earlier]
    text = f"{NAME} {len(earlier)} runs." + (f"\n{aligned(rows)}" if rows else "")
    return Answer(text=text, data={"count": len(earlier), "runs": [asdict(run) for run in earlier]})


# --- the audit trail ---


def verdicts(chains: Sequence[Verdict], call: Call) -> Answer:
    """Render whether each chain is sound; the exit code is 1 if one is not."""
    breaks = sum(isinstance(verdict, Broken) for verdict in chains)
    sound = f"{_count(len(chains))} sound" if chains else "There are no chains yet"
    summary = f"{NAME} {f'{breaks} broken, {len(chains) - breaks} sound' if breaks else sound}"
    rows = [("BROKEN" if isinstance(verdict, Broken) else "sound", _owner(verdict.chain), _end(verdict)) for verdict in chains]
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={"ok": not breaks, "chains": [_verdict_data(verdict) for verdict in chains]},
        code=1 if breaks else 0,
        draw=lambda: "\n".join([paint(summary), *(_marked(*row) for row in rows)]),
    )


def heads(ends: Sequence[Head], call: Call) -> Answer:
    """Render the end of each chain, in the form that `audit verify --head` takes."""
    rows = [(f"{head.number}:{head.seal or head.block_hash}", _owner(head.id)) for head in ends]
    summary = f"{NAME} {_count(len(rows))}" if rows else f"{NAME} There are no chains yet"
    data = [{**_chain_data(head.id), "number": head.number, "block_hash": head.block_hash, "seal": head.seal} for head in ends]
    return Answer(text=f"{summary}\n{aligned(rows)}" if rows else summary, data={"count": len(rows), "heads": data})


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
        draw=lambda: table(summary, _BLOCK_COLUMNS, rows),
    )


def exported(pieces: Iterable[str], call: Call) -> Answer:
    """Write an export to a new file, or to standard output without anything else."""
    out = call.options.get("out")
    if not isinstance(out, str):
        return Answer(text="", data={}, code=_print_export(pieces))
    try:
        # Blocks quote memories: only the owner may read the file, and it must not replace another.
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
    return Answer(text=f"{NAME} Exported {count} blocks to {out}", data={"blocks": count, "file": out})


def _print_export(pieces: Iterable[str]) -> int:
    make_safe = safe if sys.stdout.isatty() else str
    try:
        write(make_safe(piece) for piece in pieces)
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:
        raise InvalidInput(f"the export cannot be written: {_reason(error)}", expected="enough space") from None
    return 0


# --- parts ---


def _results(results: Sequence[SearchResult], text: str) -> Answer:
    return Answer(text=text, data={"count": len(results), "results": [asdict(result) for result in results]})


def _unknown(call: Call) -> NotFound:
    return NotFound(f"no memory {call.arguments['id']!r:.80}", remedy="check the id, the agent and the session")


def _erased(proof: Erasure, lines: list[str]) -> Answer:
    left = [] if proof.bytes_freed else ["Its bytes are still in the store's files: `memory-mesh compact` frees them."]
    return Answer(text="\n".join([*lines, *left]), data=asdict(proof))


def _pairs(named: Mapping[str, object]) -> str:
    return " | ".join(f"{name}: {value}" for name, value in named.items() if value is not None)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _no_files(done: Ingested, call: Call) -> list[str]:
    """Name the flags to use when no file matched."""
    if done.added or done.updated or done.unchanged or done.failed:
        return []
    given = call.arguments.get("extension")
    endings = ", ".join(given) if isinstance(given, list) else ".md"
    deeper = "" if call.arguments.get("recursive") else ", --recursive for sub-folders"
    return [f"No file here ends with {endings}; use --extension for others{deeper}."]


def _gone(gone: Sequence[Gone]) -> list[str]:
    lines = [
        f"Gone: {one_line(one.source)}; its memory stays until `memory-mesh delete --id {one.id}`"
        for one in gone[:_MAX_GONE_LINES]
    ]
    left = len(gone) - len(lines)
    return [*lines, f"… and {left} more; --json lists them all"] if left else lines


def _masked(redactions: Mapping[str, int]) -> str:
    return f"\n{NAME} Masked: {', '.join(f'{count} {kind}' for kind, count in redactions.items())}" if redactions else ""


def _extraction(done: Extraction) -> str:
    if done.repeated:
        return f"This call was made before: {len(done.memories)} memories"
    dropped = f"; {done.dropped} of too little importance dropped" if done.dropped else ""
    unusable = f"; {done.unusable} unusable" if done.unusable else ""
    return f"Extracted {len(done.memories)} memories{dropped}{unusable}"


def _signals(hit: Explained) -> list[str]:
    channels = [(name, f"rank {placing.rank}", f"{placing.score:.3f}") for name, placing in hit.channels.items()]
    features = ", ".join(f"{name} {value:.2f}" for name, value in hit.features.items() if value)
    lines = [one_line(hit.result.content)[:200], *aligned(channels).splitlines()]
    return [*lines, f"Features: {features}"] if features else lines


def _explained_data(hit: Explained) -> dict[str, object]:
    channels = {name: asdict(placing) for name, placing in hit.channels.items()}
    return {**asdict(hit.result), "channels": channels, "features": dict(hit.features)}


def _spent(spent: Spending, calls_today: int) -> str:
    failed = f" ({spent.failed} failed)" if spent.failed else ""
    cost = "" if spent.cost is None else f", ${spent.cost:.4f}"
    calls = f"{calls_today} today, {spent.calls} in all{failed}"
    used = f"{spent.sent:,} tokens sent, {spent.received:,} received{cost}"
    return f"{NAME} Calls: {spent.operation} by {one_line(spent.model)}, {calls}: {used}"


def _check(check: Checked) -> str:
    named = f"{check.model} {check.detail}" if check.model else check.detail
    return one_line(f"{named}; {check.remedy}" if check.remedy else named)


def _lesson_row(one: LessonBlock) -> tuple[str, str, str, str]:
    return one.severity, f"{one.rule_confidence:.2f}", one_line(one.preventative_rule), one_line(one.applicable_scope)


def _run_row(run: JobRun) -> tuple[str, str, str]:
    return run.job, str(run.outcome), one_line(run.detail)


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


def _verdict_data(verdict: Verdict) -> dict[str, object]:
    if isinstance(verdict, Sound):
        checked = {name: getattr(verdict, name) for name in ("number", "block_hash", "seal", "newer", "withheld", "caution")}
        return {**_chain_data(verdict.chain), "ok": True, **checked}
    why = {"block_id": verdict.block_id, "reason": verdict.reason}
    return {**_chain_data(verdict.chain), "ok": False, "number": verdict.number, **why}


def _about(block: Block) -> str:
    """Describe a block in a few words."""
    if block.yamo_text == ERASED:
        return f"{block.ref or ''} (its text is erased)".lstrip()
    if block.yamo_text == WITHHELD:
        return f"{block.ref or ''} (withheld: of another agent or session)".lstrip()
    pairs = dict(_PAIR.findall(block.yamo_text))
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
