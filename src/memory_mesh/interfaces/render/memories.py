"""Render results about memories, lessons and the lane as answers, and import the other views.

Each function renders the result of one operation of the table as an `Answer`, with a text and the
data for JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from memory_mesh.api.mesh_methods import MemoryStats
from memory_mesh.core.errors import NotFound, shown
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock, Spending
from memory_mesh.core.model import (
    Change,
    Checked,
    EndedSession,
    Erasure,
    Extraction,
    Gone,
    Ingested,
    MemoryRecord,
    Reembedded,
    SearchResult,
    Sighting,
)
from memory_mesh.core.search import Explained, Explanation
from memory_mesh.interfaces.render.graph import claim_outcome as _claim_outcome
from memory_mesh.interfaces.render.graph import (  # noqa: F401  (found by name)  # noqa: F401  (found by name)
    compressed,
    conflicts,
    consolidated,
    context,
    decayed,
    episode_summary,
    episodes,
    explained_memory,
    feedback,
    graph_found,
    graph_stored,
    heritage,
    hooks,
    linked,
    links,
    quarantined,
    reached,
    reflection,
    reviewed,
    skill_ingested,
    skill_used,
    skills_found,
    skills_listed,
    skills_pruned,
    skills_synced,
    unarchived,
    unlinked,
)
from memory_mesh.interfaces.render.graph import heritage_lines as _heritage_lines
from memory_mesh.interfaces.render.graph import with_heritage as _with_heritage
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    aligned,
    counted,
    masked,
    one_line,
    paint,
    preview,
    table,
)
from memory_mesh.interfaces.render.records import (  # noqa: F401  (found by name)
    anchored,
    backed_up,
    blocks,
    decisions_kept,
    exported,
    forgotten,
    heads,
    memories_exported,
    note_added,
    note_extracted,
    notes_imported,
    notes_injected,
    notes_linted,
    notes_listed,
    notes_matched,
    notes_synced,
    rekeyed,
    store_copied,
    store_exported,
    trace_planned,
    trace_recorded,
    trace_shown,
    traces_archived,
    traces_consolidated,
    traces_listed,
    traces_retained,
    traces_similar,
    verdicts,
)
from memory_mesh.interfaces.render.records import check_lines as _check_lines
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.lane import LaneResult, LaneResults
    from memory_mesh.core.language.capture import Judgement, JunkFound
    from memory_mesh.flows.graph.store import Stored


# --- the lane ---

_COLUMNS = ("score", "type", "confidence", "id", "text")


def lane_stored(done: "Stored", call: Call) -> Answer:
    """Render what became of the memory: it is new, was observed before, supersedes others or is
    quarantined."""
    memory = done.memory
    line = f"{NAME} Ingested record {done.id}"
    line += "" if done.is_new else f", observed {counted(memory.times_observed, 'time')}"
    return Answer(text=line + _claim_outcome(memory) + masked(memory.redactions), data=asdict(done))


def lane_found(found: "LaneResults", call: Call) -> Answer:
    """Render results with the parts of their scores; for a terminal as a table."""
    title = f"Found {counted(len(found), 'memory')}" + (
        f" about {' or '.join(found.entities)}" if found.entities else ""
    )
    lines = [f"{NAME} {title}"]
    for one in found:
        lines += [
            f"{one.score:.2f}  {one_line(one.memory_type)}  {one.id}  {_parts(one)}",
            f"      {one_line(one.content)}",
        ]
    rows = [
        (
            f"{one.score:.2f}",
            one.memory_type,
            f"{one.effective_confidence} %",
            one.id,
            preview(one_line(one.content), 160),
        )
        for one in found
    ]
    return Answer(
        text="\n".join(lines),
        data={
            "count": len(found),
            "entities": found.entities,
            "results": [asdict(one) for one in found],
        },
        rows="results",
        draw=lambda: table(title, _COLUMNS, rows) if rows else f"{NAME} {title}",
    )


def lane_rated(memory: MemoryRecord, call: Call) -> Answer:
    score = (
        f"feedback score {memory.feedback_score:.2f} after "
        f"{counted(memory.feedback_count, 'rating')}"
    )
    return Answer(text=f"{NAME} Record {memory.id} has the {score}", data=asdict(memory))


def judged(found: "Judgement", call: Call) -> Answer:
    """Render what would be kept, and the rest with the reasons."""
    lines = [f"{NAME} Would keep {counted(len(found.kept), 'memory')}"]
    lines += [
        f"{one_line(one.memory_type)}: {preview(one_line(one.content))}" for one in found.kept
    ]
    lines += [f"not kept, {one.why}: {preview(one_line(one.text))}" for one in found.not_kept]
    return Answer(text="\n".join(lines), data=asdict(found), rows="kept")


def junk_found(found: "list[JunkFound]", call: Call) -> Answer:
    """Render what should not be in the memory, and how to archive it after a dry run."""
    done = sum(one.archived for one in found)
    lines = [
        f"{NAME} Archived {counted(done, 'memory')}"
        if done
        else f"{NAME} Found {counted(len(found), 'memory')} of junk"
    ]
    lines += [f"{one.id}  {one.why}: {preview(one_line(one.content))}" for one in found]
    if found and not call.arguments.get("archive"):
        lines.append("Nothing was changed; add --archive to archive them")
    data = {"count": len(found), "archived": done, "results": [asdict(one) for one in found]}
    return Answer(text="\n".join(lines), data=data, rows="results")


def _parts(result: "LaneResult") -> str:
    """Return how a score comes about; factors of 1 are left out."""
    parts = result.parts
    factors = {
        "weight": parts.weight,
        "decay": parts.decay_factor,
        "feedback": parts.feedback_score,
        "intent": parts.intent_boost,
    }
    shown = [f"{name} {value:g}" for name, value in factors.items() if value != 1]
    return f"= {' × '.join([f'similarity {parts.similarity:.2f}', *shown])}"


# --- memories ---

_MAX_GONE_LINES = 20


def stored(memory: MemoryRecord, call: Call) -> Answer:
    """Render the line of RFC-0011; a terminal also shows whether the text was new."""

    def draw() -> str:
        from memory_mesh.interfaces.render import output

        return output.stored(line, memory)

    line = f"{NAME} Ingested record {memory.id}" + _claim_outcome(memory)
    return Answer(text=line + masked(memory.redactions), data=asdict(memory), draw=draw)


def stored_many(new: Sequence[MemoryRecord], call: Call) -> Answer:
    data = {"memories": [asdict(memory) for memory in new]}
    return Answer(
        text=f"{NAME} Ingested {counted(len(new), 'new message')}", data=data, rows="memories"
    )


def found(results: Sequence[SearchResult], text: str, call: Call) -> Answer:
    """Render search results in the words of RFC-0011, or for a person at a terminal."""

    def draw() -> str:
        from memory_mesh.api.settings import load
        from memory_mesh.interfaces.render import output

        language = load(call.target.arguments).options.stemmer_language
        return output.results(
            results, str(call.arguments["query"]), language=language, hint=_weaker(call)
        )

    return replace(
        _results(
            results, f"{NAME} Found {len(results)} matches." + (f"\n\n{text}" if results else "")
        ),
        draw=draw,
    )


def fenced(results: Sequence[SearchResult], text: str, call: Call) -> Answer:
    answer = _results(results, text)
    return replace(answer, data={**answer.data, "text": text})


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
    owner = {
        "User": memory.user_id,
        "Agent": memory.agent_id,
        "Session": memory.session_id,
        "Created": memory.created_at,
    }
    lines = [f"{NAME} Record {memory.id}", _pairs(facts), _pairs(owner)]
    if memory.metadata:
        lines.append(f"Metadata: {json.dumps(memory.metadata, ensure_ascii=False)}")
    return _with_heritage(memory, lines, ["", memory.content], asdict(memory))


def listed(memories: Sequence[MemoryRecord], call: Call) -> Answer:
    """Render memories, one on each line. `next` is where another page may begin."""
    more = bool(memories) and len(memories) == call.arguments.get("limit")

    def draw() -> str:
        from memory_mesh.interfaces.render import output

        return output.listing(
            memories, output.next_page(call.typed, memories[-1].id) if more else ""
        )

    lines = [
        f"{memory.id}  {memory.created_at}  {memory.memory_type:<10}  {preview(memory.content)}"
        for memory in memories
    ]
    data = {
        "count": len(memories),
        "memories": [asdict(memory) for memory in memories],
        "next": memories[-1].id if more else None,
    }
    return Answer(
        text="\n".join([f"{NAME} Listed {len(memories)} memories.", *lines]),
        data=data,
        rows="memories",
        draw=draw,
    )


def history(changes: Sequence[Change], call: Call) -> Answer:
    """Render the revisions of a memory, oldest first."""
    id_ = call.arguments["id"]
    lines = [f"{NAME} History of {id_}: {len(changes)} revisions."]
    for change in changes:
        why = f": {change.why}" if change.why else ""
        lines.append(
            f"{change.number:>4}  {change.created_at}  {change.action} by "
            f"{change.agent_id or 'unknown'}{why}"
        )
        lines += [
            f"      {name} was {preview(_value(before))}" for name, before in change.before.items()
        ]
    return Answer(
        text="\n".join(lines),
        data={"id": id_, "changes": [asdict(change) for change in changes]},
        rows="changes",
    )


def sightings(found: Sequence[Sighting], call: Call) -> Answer:
    """Render who stored the text of a memory, oldest first."""
    id_ = call.arguments["id"]
    lines = [f"{NAME} {id_} was stored by {len(found)} agents or sessions."]
    for one in found:
        session = f" in session {one.session_id}" if one.session_id else ""
        times = (
            f"{one.times_observed} times, last {one.last_observed}"
            if one.times_observed > 1
            else "once"
        )
        lines.append(f"  {one.created_at}  {one.agent_id or 'unknown'}{session}: {times}")
    return Answer(
        text="\n".join(lines),
        data={"id": id_, "sightings": [asdict(one) for one in found]},
        rows="sightings",
    )


def updated(memory: MemoryRecord, call: Call) -> Answer:
    def draw() -> str:
        from memory_mesh.interfaces.render import output

        return output.written(line, memory.redactions)

    line = f"{NAME} Updated record {memory.id} to revision {memory.revision}"
    return Answer(text=line + masked(memory.redactions), data=asdict(memory), draw=draw)


def pinned(memory: MemoryRecord, call: Call) -> Answer:
    return Answer(
        text=f"{NAME} {'Pinned' if memory.pinned else 'Unpinned'} record {memory.id}",
        data=asdict(memory),
    )


def ended_session(done: EndedSession, call: Call) -> Answer:
    archived = counted(len(done.archived), "memory")
    return Answer(
        text=f"{NAME} Ended session {one_line(done.session_id)}: {archived} archived",
        data=asdict(done),
    )


def deleted(proof: Erasure, call: Call) -> Answer:
    """Render the ids of the erased memories, the given one first."""
    if not (proof.memories or proof.notes):
        raise _unknown(call)
    ids = sorted(proof.memories, key=lambda id_: id_ != call.arguments.get("id"))
    return _erased(proof, [f"{NAME} Deleted record {id_}" for id_ in ids])


def deleted_all(proof: Erasure, call: Call) -> Answer:
    kept = f"; {len(proof.kept)} kept: others stored them too" if proof.kept else ""
    return _erased(proof, [f"{NAME} Deleted {len(proof.memories)} records{kept}"])


def ingested(done: Ingested, call: Call) -> Answer:
    """Render a summary, the files that failed, and what to do about memories of missing files."""
    counts = (
        f"{done.added} added, {done.updated} updated, {done.unchanged} unchanged, "
        f"{len(done.failed)} failed"
    )
    summary = f"{NAME} Ingested {one_line(done.root)}: {counts}, {len(done.gone)} gone"
    return Answer(
        text="\n".join([summary, *_no_files(done, call), *_gone(done.gone)]),
        data=asdict(done),
        code=1 if done.failed else 0,
        problems=[f"{failed.source}: {failed.reason}" for failed in done.failed],
    )


def extracted(done: Extraction, call: Call) -> Answer:
    """Render the memories extracted from a text."""
    lines = [f"{NAME} {_extraction(done)}{masked(done.redactions)}"]
    if done.stored_whole:
        lines.append(f"{NAME} Stored as it is: {done.stored_whole}")
    if done.flagged:
        lines.append(
            f"{NAME} The text tries to give instructions ({', '.join(done.flagged)}); they were "
            "not followed"
        )
    for memory in done.memories:
        importance = "  – " if memory.importance is None else f"{memory.importance:.2f}"
        lines.append(
            f"{memory.id}  {importance}  {memory.category or '–':<12}  {preview(memory.content)}"
        )
    return Answer(text="\n".join(lines), data={**asdict(done), "count": len(done.memories)})


def explained(explanation: Explanation, call: Call) -> Answer:
    """Render a search with its reasons: the query, the signals of each memory, and what was left
    out."""
    mode = f"mode {explanation.mode}, " if explanation.mode else ""
    vectors = f"vectors of {explanation.model}" if explanation.model else "no vectors"
    left_out = (
        ", ".join(f"{count} ({reason})" for reason, count in sorted(explanation.left_out.items()))
        or "nothing"
    )
    read = f" (read {explanation.read} candidates)" if explanation.read else ""
    corrections = explanation.corrections
    words = [
        f"{word} → {corrections[word]}" if word in corrections else word
        for word in explanation.tokens[:20]
    ]
    lines = [
        f"{NAME} {counted(len(explanation.answers), 'result')} of "
        f"{counted(explanation.candidates, 'candidate')}, among "
        f"{counted(explanation.documents, 'memory')}",
        f"Query: {one_line(explanation.query)[:200]}",
        f"Words: {', '.join(words) or 'none'}",
        (
            f"Ranker: {explanation.ranker}{read}, keywords and {vectors}, {mode}minimum score "
            f"{explanation.min_score:g}"
        ),
        f"Left out: {left_out}",
    ]
    for n, hit in enumerate(explanation.answers, start=1):
        lines += [
            "",
            f"--- MEMORY {n}: {hit.result.id} [IMPORTANCE: {hit.result.score:.2f}] ---",
            *_signals(hit),
        ]
    if explanation.nearly:
        below = counted(explanation.left_out.get("min_score", 0), "memory")
        lines += [
            "",
            f"Below the minimum score of {explanation.min_score:g}: {below}, the best of them:",
        ]
        lines += [
            f"  {hit.result.score:.2f}  {hit.result.id}  {one_line(hit.result.content)[:80]}"
            for hit in explanation.nearly
        ]
    data = asdict(explanation)
    for name, hits in (("answers", explanation.answers), ("nearly", explanation.nearly)):
        data[name] = [_explained_data(hit) for hit in hits]
    return Answer(text="\n".join(lines), data=data, rows="answers")


def compacted(freed: bool, call: Call) -> Answer:  # noqa: FBT001  (the result of the method)
    done = (
        "No deleted bytes are left in the files"
        if freed
        else "Other processes are using the store: try again later"
    )
    return Answer(text=f"{NAME} {done}", data={"bytes_freed": freed}, code=0 if freed else 1)


def reembedded(done: Reembedded, call: Call) -> Answer:
    changed = f"; the store was of {done.changed_from} before" if done.changed_from else ""
    return Answer(
        text=f"{NAME} Embedded {done.embedded} memories with {done.model}{changed}",
        data=asdict(done),
    )


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
        *(
            _spent(spent, today.get((spent.operation, spent.model), 0))
            for spent in counts.spent_in_all
        ),
    ]
    return Answer(text="\n".join(lines), data=data)


def models(checks: Sequence[Checked], call: Call) -> Answer:
    """Render whether each configured model answered; the exit code is 1 if one did not."""
    failed = [check for check in checks if not check.ok]
    rows = [
        ("FAILED" if not check.ok else "ok" if check.model else "-", check.part, _check(check))
        for check in checks
    ]
    summary = (
        f"{len(failed)} of the models gave no answer"
        if failed
        else "Every model that is set answers"
    )
    return Answer(
        text=f"{NAME} {summary}\n{aligned(rows)}",
        data={"ok": not failed, "checks": [asdict(check) for check in checks]},
        rows="checks",
        code=1 if failed else 0,
    )


# --- lessons and maintenance ---


def lessons(found: Sequence[LessonBlock], call: Call) -> Answer:
    """Render lessons, one on each line: severity, confidence, rule, scope."""
    rows = [_lesson_row(one) for one in found]
    columns = ("severity", "sure", "rule", "applies to")

    def draw() -> str:
        if rows:
            return table(f"{len(found)} lessons", columns, rows)
        return "\n".join(
            filter(
                None,
                [paint(f"{NAME} 0 lessons."), _weaker(call) if call.arguments.get("query") else ""],
            )
        )

    return Answer(
        text=f"{NAME} {len(found)} lessons." + (f"\n{aligned(rows)}" if rows else ""),
        data={"count": len(found), "lessons": [asdict(one) for one in found]},
        rows="lessons",
        draw=draw,
    )


def lesson(block: LessonBlock, call: Call) -> Answer:
    """Render the lesson that was stored, or the known one with at least the same confidence."""
    name = (
        f"Lesson {block.lesson_id} of pattern {block.pattern_id}, {block.rule_confidence:.2f} sure"
    )
    return Answer(text=f"{NAME} {name}: {one_line(block.preventative_rule)}", data=asdict(block))


def distilled(done: Distilled, call: Call) -> Answer:
    """Render the result of a distillation cycle."""
    lines = [
        f"{NAME} Scanned {done.scanned} blocks: {done.candidates} candidates, "
        f"{len(done.learnt) + done.unseen} learnt, {done.known} known, {len(done.skipped)} skipped"
    ]
    lines += [f"Learnt: {one_line(one.preventative_rule)}" for one in done.learnt]
    lines += (
        [f"Learnt for other agents, visible to them alone: {done.unseen}"] if done.unseen else []
    )
    lines += [f"Skipped: {one.memory_id}, because {one_line(one.reason)}" for one in done.skipped]
    if done.inject:
        lines += [
            "",
            "To begin the next session with:",
            aligned([_lesson_row(one) for one in done.inject]),
        ]
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
        rows="runs",
        code=0 if beat.ok else 1,
        draw=lambda: table(summary, ("job", "outcome", "what it did"), rows),
    )


def runs(earlier: Sequence[JobRun], call: Call) -> Answer:
    """Render earlier runs, newest first."""
    rows = [(run.began, *_run_row(run)) for run in earlier]
    text = f"{NAME} {len(earlier)} runs." + (f"\n{aligned(rows)}" if rows else "")
    return Answer(
        text=text,
        data={"count": len(earlier), "runs": [asdict(run) for run in earlier]},
        rows="runs",
    )


# --- parts ---


def _results(results: Sequence[SearchResult], text: str) -> Answer:
    return Answer(
        text=text,
        data={"count": len(results), "results": [asdict(result) for result in results]},
        rows="results",
    )


def _unknown(call: Call) -> NotFound:
    if key := call.arguments.get("key"):
        return NotFound(
            f"no memory with the key {shown(key, max_length=80)}",
            remedy="check the key, the user and the project",
        )
    return NotFound(
        f"no memory {shown(call.arguments['id'], max_length=80)}",
        remedy="check the id, the user, the agent and the session",
    )


def _erased(proof: Erasure, lines: list[str]) -> Answer:
    left = (
        []
        if proof.bytes_freed
        else ["Its bytes are still in the store's files: `memory-mesh compact` frees them."]
    )
    lines += [f"{NAME} Removed the note {one_line(place)} from its file" for place in proof.notes]
    lines += (
        [f"{NAME} Removed {one_line(', '.join(proof.traces))} from the files of traces"]
        if proof.traces
        else []
    )
    for place in proof.notes_left:
        # The root of what was imported ends with a dot.
        remedy = (
            "edit the file by hand" if "/./" in place else "`memory-mesh delete --files` removes it"
        )
        lines.append(f"The note {one_line(place)} is still in its file: {remedy}.")
    is_left = proof.check and not (proof.check.clean and proof.bytes_freed)
    return Answer(
        text="\n".join([*lines, *left, *_check_lines(proof.check)]),
        data=asdict(proof),
        code=1 if is_left else 0,
    )


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
        f"Gone: {one_line(one.source)}; its memory stays until `memory-mesh delete {one.id}`"
        for one in gone[:_MAX_GONE_LINES]
    ]
    left = len(gone) - len(lines)
    return [*lines, f"… and {left} more; --json lists them all"] if left else lines


def _extraction(done: Extraction) -> str:
    if done.repeated:
        return f"This call was made before: {len(done.memories)} memories"
    dropped = f"; {done.dropped} of too little importance dropped" if done.dropped else ""
    unusable = f"; {done.unusable} unusable" if done.unusable else ""
    return f"Extracted {len(done.memories)} memories{dropped}{unusable}"


def _signals(hit: Explained) -> list[str]:
    channels = [
        (name, f"rank {placing.rank}", f"{placing.score:.3f}")
        for name, placing in hit.channels.items()
    ]
    features = ", ".join(f"{name} {value:.2f}" for name, value in hit.features.items() if value)
    lines = [
        one_line(hit.result.content)[:200],
        *aligned(channels).splitlines(),
        *_heritage_lines(hit.result),
    ]
    better = (
        "The claim of the asked time has another value"
        if hit.result.claim
        else "A newer memory has another value"
    )
    lines += [f"{better}: {hit.newer}"] if hit.newer else []
    lines += aligned([(f"{one.value:+.2f}", one.meaning) for one in hit.contributions]).splitlines()
    return [*lines, f"Features: {features}"] if features else lines


def _explained_data(hit: Explained) -> dict[str, object]:
    channels = {name: asdict(placing) for name, placing in hit.channels.items()}
    parts = [asdict(one) for one in hit.contributions]
    found = {
        "channels": channels,
        "features": dict(hit.features),
        "contributions": parts,
        "newer": hit.newer,
    }
    return {**asdict(hit.result), **found}


def _spent(spent: Spending, calls_today: int) -> str:
    failed = f" ({spent.failed} failed)" if spent.failed else ""
    cost = "" if spent.cost is None else f", ${spent.cost:.4f}"
    calls = f"{calls_today} today, {spent.calls} in all{failed}"
    used = f"{spent.sent:,} tokens sent, {spent.received:,} received{cost}"
    return f"{NAME} Calls: {spent.operation} by {one_line(spent.model)}, {calls}: {used}"


def _check(check: Checked) -> str:
    named = f"{check.model} {check.detail}" if check.model else check.detail
    return one_line(f"{named}; {check.remedy}" if check.remedy else named)


def _weaker(call: Call) -> str:
    """Return how a search that found nothing shows weaker matches, or an empty text."""
    if "min_score" in call.arguments:
        return "--min-score 0 shows weaker matches." if call.arguments["min_score"] else ""
    return "--mode recall shows weaker matches." if call.arguments.get("mode") == "precise" else ""


def _lesson_row(one: LessonBlock) -> tuple[str, str, str, str]:
    return (
        one.severity,
        f"{one.rule_confidence:.2f}",
        one_line(one.preventative_rule),
        one_line(one.applicable_scope),
    )


def _run_row(run: JobRun) -> tuple[str, str, str]:
    return run.job, str(run.outcome), one_line(run.detail)
