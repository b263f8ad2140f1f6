"""Render results about memories, lessons, the lane and maintenance as answers.

Each view renders the result of one operation of the table as an `Answer`: a text, and the data for
JSON. The other views are in `graph` and `records`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.api.mesh_methods import MemoryStats
from memory_mesh.core.errors import NotFound, shown
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock
from memory_mesh.core.model import (
    Change,
    Checked,
    Erasure,
    ErasureCheck,
    Forgotten,
    Ingested,
    MemoryRecord,
    SearchResult,
    Sighting,
    Status,
)
from memory_mesh.core.search import Explained, Explanation
from memory_mesh.interfaces.render import output
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    aligned,
    answer,
    counted,
    excerpt,
    first_20,
    items,
    masked,
    one_line,
    paint,
    preview,
    safe,
    table,
    when,
)
from memory_mesh.interfaces.render.templates import each, fill, rows, view
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.lane import LaneResults
    from memory_mesh.core.language.capture import JunkFound


# --- storing and changing ---


def stored(memory: MemoryRecord, call: Call) -> Answer:
    """Render the line of RFC-0011; a terminal also shows whether the text was new."""
    line = "\n".join([f"Ingested record {memory.id}", *claim_outcome(memory)])
    return _written(line, memory, new=True)


def claim_outcome(memory: MemoryRecord) -> list[str]:
    """Return the lines that say what the claim of a stored memory led to."""
    if memory.status == Status.QUARANTINED:
        return ["It is quarantined. Decide with: memory-mesh review"]
    return [f"It supersedes {id_}" for id_ in memory.supersedes]


stored_many = view(
    "Ingested {:#new message}",
    key="memories",
    data=lambda new: {"memories": [asdict(memory) for memory in new]},
)

lane_stored = view(
    "Ingested record {id}<!is_new?, observed {memory.times_observed:#time}>",
    lambda done: [*claim_outcome(done.memory), masked(done.memory.redactions)],
)


def updated(memory: MemoryRecord, call: Call) -> Answer:
    return _written(f"Updated record {memory.id} to revision {memory.revision}", memory)


def _written(line: str, memory: MemoryRecord, *, new: bool = False) -> Answer:
    def draw() -> str:
        return output.written(f"{NAME} {line}", memory, new=new)

    return answer(line, memory, [masked(memory.redactions)], draw=draw)


pinned = view("{pinned:Pinned|Unpinned} record {id}")

lane_rated = view(
    "Record {id} has the feedback score {feedback_score:.2f} after {feedback_count:#rating}"
)

ended_session = view("Ended session {session_id}: {archived:#memory} archived")

extracted = view(
    "{repeated:This call was made before:|Extracted} {memories:#} memories"
    "<; {dropped} of too little importance dropped><; {unusable} unusable>",
    lambda done: [masked(done.redactions)],
    "<[MemoryMesh] Stored as it is: {stored_whole:raw}>",
    "<[MemoryMesh] The text tries to give instructions ({flagged:list}); they were not followed>",
    each(
        "memories",
        lambda memory: (
            fill("{id}  <{importance:.2f}><!importance?  – >", memory)
            + f"  {memory.category or '–':<12}  {preview(memory.content)}"
        ),
    ),
    data=lambda done: {**asdict(done), "count": len(done.memories)},
)


def ingested(done: Ingested, call: Call) -> Answer:
    """Render a summary, the files that failed, and what to do about memories of missing files."""
    extensions = call.arguments.get("extension")
    endings = ", ".join(extensions) if isinstance(extensions, list) else ".md"
    deeper = when(not call.arguments.get("recursive"), ", --recursive for sub-folders")
    no_files = f"No file here ends with {endings}; use --extension for others{deeper}."
    matched = done.added or done.updated or done.unchanged or done.failed
    return answer(
        f"Ingested {ingest_counts(done)}",
        done,
        [
            when(not matched, no_files),
            *first_20(gone_lines(done, "memory"), "… and {} more; --json lists them all"),
        ],
        failed=done.failed,
        problems=[f"{failed.source}: {failed.reason}" for failed in done.failed],
    )


def ingest_counts(done: Ingested) -> str:
    """Return the folder that was read, and how many of its files were added, updated …"""
    return (
        f"{one_line(done.root)}: {done.added} added, {done.updated} updated, "
        f"{done.unchanged} unchanged, {len(done.failed)} failed, {len(done.gone)} gone"
    )


def gone_lines(done: Ingested, what: str) -> list[str]:
    """Return a line for each file that is missing now."""
    return [
        f"Gone: {one_line(gone.source)}; its {what} stays until `memory-mesh delete {gone.id}`"
        for gone in done.gone
    ]


judged = view(
    "Would keep {kept:#memory}",
    each("kept", "{memory_type}: {content:~}"),
    each("not_kept", "not kept, {why:raw}: {text:~}"),
    key="kept",
)


def junk_found(junk: "list[JunkFound]", call: Call) -> Answer:
    """Render what should not be in the memory, and how to archive it after a dry run."""
    archived = sum(one.archived for one in junk)
    found = f"Found {counted(len(junk), 'memory')} of junk"
    dry_run = junk and not call.arguments.get("archive")
    lines = [
        *(f"{one.id}  {one.why}: {excerpt(one.content)}" for one in junk),
        when(dry_run, "Nothing was changed; add --archive to archive them"),
    ]
    data = {"count": len(junk), "archived": archived} | items("results", junk)
    title = f"Archived {counted(archived, 'memory')}" if archived else found
    return answer(title, data, lines, rows="results")


# --- searching and reading ---


def found(results: Sequence[SearchResult], text: str, call: Call) -> Answer:
    """Render search results in the words of RFC-0011, or for a person at a terminal."""

    def draw() -> str:
        from memory_mesh.api.settings import load

        language = load(call.target.arguments).options.stemmer_language
        query = str(call.arguments["query"])
        return output.results(results, query, language=language, hint=_weaker(call))

    title = f"Found {len(results)} matches." + when(results, f"\n\n{text}")
    return answer(title, items("results", results), rows="results", draw=draw)


def fenced(results: Sequence[SearchResult], text: str, call: Call) -> Answer:
    return Answer(text=text, data=items("results", results, text=text), rows="results")


def _weaker(call: Call) -> str:
    """Return how a search that found nothing shows weaker matches, or an empty text."""
    if "min_score" in call.arguments:
        return when(call.arguments["min_score"], "--min-score 0 shows weaker matches.")
    precise = call.arguments.get("mode") == "precise"
    return when(precise, "--mode recall shows weaker matches.")


def lane_found(results: "LaneResults", call: Call) -> Answer:
    """Render results with the parts of their scores, without factors of 1; for a terminal as a
    table."""
    about = when(results.entities, f" about {' or '.join(results.entities)}")
    title, lines = f"Found {counted(len(results), 'memory')}{about}", []
    for one in results:
        parts = one.parts
        factors = {
            "weight": parts.weight,
            "decay": parts.decay_factor,
            "feedback": parts.feedback_score,
            "intent": parts.intent_boost,
        }
        product = [f"{name} {value:g}" for name, value in factors.items() if value != 1]
        score = " × ".join([f"similarity {parts.similarity:.2f}", *product])
        lines.append(f"{one.score:.2f}  {one_line(one.memory_type)}  {one.id}  = {score}")
        lines.append(f"      {one_line(one.content)}")

    def draw() -> str:
        rows = [
            (
                f"{one.score:.2f}",
                one.memory_type,
                f"{one.effective_confidence} %",
                one.id,
                excerpt(one.content, 160),
            )
            for one in results
        ]
        heads = ("score", "type", "confidence", "id", "text")
        return table(title, heads, rows) if rows else f"{NAME} {title}"

    data = {"count": len(results), "entities": results.entities} | items("results", results)
    return answer(title, data, lines, rows="results", draw=draw)


def explained(explanation: Explanation, call: Call) -> Answer:
    """Render a search with its reasons: the query, the signals of each memory, and what was left
    out."""
    hits, corrections = explanation.answers, explanation.corrections
    vectors = f"vectors of {explanation.model}" if explanation.model else "no vectors"
    left_out = [f"{count} ({reason})" for reason, count in sorted(explanation.left_out.items())]
    words = [
        f"{word} → {corrections[word]}" if word in corrections else word
        for word in explanation.tokens[:20]
    ]
    title = (
        f"{counted(len(hits), 'result')} of {counted(explanation.candidates, 'candidate')}, among "
        f"{counted(explanation.documents, 'memory')}"
    )
    lines = [
        f"Query: {one_line(explanation.query)[:200]}",
        f"Words: {', '.join(words) or 'none'}",
        f"Ranker: {explanation.ranker}"
        f"{when(explanation.read, f' (read {explanation.read} candidates)')}, keywords and "
        f"{vectors}, {when(explanation.mode, f'mode {explanation.mode}, ')}minimum score "
        f"{explanation.min_score:g}",
        f"Left out: {', '.join(left_out) or 'nothing'}",
    ]
    for n, hit in enumerate(hits, start=1):
        score = f"[IMPORTANCE: {hit.result.score:.2f}]"
        lines.append(f"\n--- MEMORY {n}: {hit.result.id} {score} ---")
        lines += _signals(hit)
    if explanation.nearly:
        below = counted(explanation.left_out.get("min_score", 0), "memory")
        score = f"minimum score of {explanation.min_score:g}"
        lines.append(f"\nBelow the {score}: {below}, the best of them:")
    for hit in explanation.nearly:
        text = one_line(hit.result.content)[:80]
        lines.append(f"  {hit.result.score:.2f}  {hit.result.id}  {text}")
    data = asdict(explanation)
    for name in ("answers", "nearly"):
        data[name] = [{**hit.pop("result"), **hit} for hit in data[name]]
    return answer(title, data, lines, rows="answers")


def _signals(hit: Explained) -> list[str]:
    channels = [
        (name, f"rank {placing.rank}", f"{placing.score:.3f}")
        for name, placing in hit.channels.items()
    ]
    better = "The claim of the asked time" if hit.result.claim else "A newer memory"
    features = ", ".join(f"{name} {value:.2f}" for name, value in hit.features.items() if value)
    return [
        one_line(hit.result.content)[:200],
        aligned(channels),
        *_heritage_lines(hit.result),
        when(hit.newer, f"{better} has another value: {hit.newer}"),
        aligned([(f"{one.value:+.2f}", one.meaning) for one in hit.contributions]),
        when(features, f"Features: {features}"),
    ]


def record(memory: MemoryRecord | None, call: Call) -> Answer:
    """Render all fields of a memory; a terminal shows its heritage as a tree."""
    if memory is None:
        raise _unknown(call)
    what = {
        "Type": memory.metadata.get("type") or memory.memory_type,
        "Source": memory.metadata.get("source") or "unknown",
        "Status": memory.status,
        "Revision": memory.revision,
        "Observed": memory.times_observed,
        "Pinned": "yes" if memory.pinned else "no",
    }
    whose = {
        "User": memory.user_id,
        "Agent": memory.agent_id,
        "Session": memory.session_id,
        "Created": memory.created_at,
    }
    metadata = f"Metadata: {json.dumps(memory.metadata, ensure_ascii=False)}"
    title = f"Record {memory.id}"
    above = [_pairs(what), _pairs(whose), when(memory.metadata, metadata)]
    content = f"\n{memory.content}"

    def draw() -> str:
        head = paint(safe(answer(title, {}, above).text))
        return "\n".join([head, *_heritage_tree(memory), safe(content)])

    return answer(title, memory, [*above, *_heritage_lines(memory), content], draw=draw)


def _pairs(named: Mapping[str, object]) -> str:
    return " | ".join(f"{name}: {value}" for name, value in named.items() if value is not None)


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


def _heritage(memory: MemoryRecord) -> dict[str, list[str]]:
    """Return the lists of a heritage that are not empty, by title. Another program may have
    written anything there."""
    titles = {"intentChain": "Intents", "hypotheses": "Hypotheses", "rationales": "Rationales"}
    chain = memory.heritage_chain or {}
    lists = {title: chain.get(key) for key, title in titles.items()}
    return {
        title: [one_line(str(text)) for text in texts]
        for title, texts in lists.items()
        if isinstance(texts, list) and texts
    }


def _heritage_lines(memory: MemoryRecord) -> list[str]:
    """Return the heritage of a memory as indented lines."""
    heritage = _heritage(memory)
    lines = ["Heritage"] if heritage else []
    for title, texts in heritage.items():
        lines += [f"  {title}", *(f"    {text}" for text in texts)]
    return lines


def _heritage_tree(memory: MemoryRecord) -> list[str]:
    """Return the heritage of a memory as a tree for a terminal, if it has one."""
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text("Heritage", "bold"), guide_style="dim")
    for title, texts in _heritage(memory).items():
        branch = tree.add(Text(title, "cyan"))
        for text in texts:
            branch.add(Text(text))
    return [output.drawn(tree).rstrip("\n")] if tree.children else []


def listed(memories: Sequence[MemoryRecord], call: Call) -> Answer:
    """Render memories, one on each line. `next` is where another page may begin."""
    last = memories[-1].id if memories and len(memories) == call.arguments.get("limit") else None
    lines = [
        f"{memory.id}  {memory.created_at}  {memory.memory_type:<10}  {preview(memory.content)}"
        for memory in memories
    ]

    def draw() -> str:
        return output.listing(memories, output.next_page(call.typed, last) if last else "")

    data = items("memories", memories, next=last)
    title = f"Listed {len(memories)} memories."
    return answer(title, data, lines, rows="memories", draw=draw)


def history(changes: Sequence[Change], call: Call) -> Answer:
    """Render the revisions of a memory, oldest first."""
    id_, lines = call.arguments["id"], []
    for change in changes:
        what = f"{change.action} by {change.agent_id or 'unknown'}"
        why = when(change.why, f": {change.why}")
        lines.append(f"{change.number:>4}  {change.created_at}  {what}{why}")
        for name, before in change.before.items():
            text = before if isinstance(before, str) else json.dumps(before, ensure_ascii=False)
            lines.append(f"      {name} was {preview(text)}")
    data = {"id": id_, "changes": [asdict(change) for change in changes]}
    return answer(f"History of {id_}: {len(changes)} revisions.", data, lines, rows="changes")


def sightings(seen: Sequence[Sighting], call: Call) -> Answer:
    """Render who stored the text of a memory, oldest first."""
    id_, lines = call.arguments["id"], []
    for one in seen:
        who = (one.agent_id or "unknown") + when(one.session_id, f" in session {one.session_id}")
        times = f"{one.times_observed} times, last {one.last_observed}"
        lines.append(f"  {one.created_at}  {who}: {times if one.times_observed > 1 else 'once'}")
    data = {"id": id_, "sightings": [asdict(one) for one in seen]}
    title = f"{id_} was stored by {len(seen)} agents or sessions."
    return answer(title, data, lines, rows="sightings")


# --- deleting ---


def deleted(proof: Erasure, call: Call) -> Answer:
    """Render the ids of the erased memories, the given one first."""
    if not (proof.memories or proof.notes):
        raise _unknown(call)
    ids = sorted(proof.memories, key=lambda id_: id_ != call.arguments.get("id"))
    return _erased(proof, [f"{NAME} Deleted record {id_}" for id_ in ids])


def deleted_all(proof: Erasure, call: Call) -> Answer:
    kept = when(proof.kept, f"; {len(proof.kept)} kept: others stored them too")
    return _erased(proof, [f"{NAME} Deleted {len(proof.memories)} records{kept}"])


def _erased(proof: Erasure, lines: list[str]) -> Answer:
    lines += [f"{NAME} Removed the note {one_line(place)} from its file" for place in proof.notes]
    if proof.traces:
        lines.append(f"{NAME} Removed {one_line(', '.join(proof.traces))} from the files of traces")
    for place in proof.notes_left:
        # The root of what was imported ends with a dot.
        by_hand = "/./" in place
        remedy = "edit the file by hand" if by_hand else "`memory-mesh delete --files` removes it"
        lines.append(f"The note {one_line(place)} is still in its file: {remedy}.")
    return _checked(proof, lines, "Its bytes are")


def forgotten(proof: Forgotten, call: Call) -> Answer:
    """Render what was erased, and what was looked for; the exit code is 1 if something is left."""
    user, memories = (
        one_line(str(call.arguments["user_id"])),
        counted(len(proof.memories), "memory"),
    )
    line = f"{NAME} Forgot user {user}: {memories} erased"
    return _checked(proof, [line], "The bytes are", damaged=proof.damaged)


def _checked(
    proof: Erasure | Forgotten, lines: list[str], bytes_are: str, *, damaged: Sequence[str] = ()
) -> Answer:
    """Add what is left in the files and in damaged chains, and what was looked for."""
    unfreed = f"{bytes_are} still in the store's files: `memory-mesh compact` frees them."
    lines += [
        when(not proof.bytes_freed, unfreed),
        *(
            f"The chain {one_line(chain)} is broken and keeps its queries; see `audit verify`."
            for chain in damaged
        ),
        *_check_lines(proof.check),
    ]
    left = damaged or (proof.check and not (proof.check.clean and proof.bytes_freed))
    text = "\n".join(filter(None, lines))
    return Answer(text=text, data=asdict(proof), code=1 if left else 0)


def _check_lines(check: ErasureCheck | None) -> list[str]:
    """Return what was looked for, what was found in each place before and after, and what is
    left."""
    if check is None:
        return []
    rows_left = f"{counted(check.rows_left, 'row')} of the user left in the store"
    shared = f"{check.shared} left in other memories or searches, which have the same words"
    return [
        f"Looked for {counted(check.texts, 'text')} in {counted(len(check.places), 'place')}:",
        *(
            f"  {place.name:<46} {place.before} before, {place.after} after"
            for place in check.places
        ),
        *(f"Found: {one_line(id_)} in {one_line(place)}" for id_, place in check.found),
        when(check.rows_left, rows_left),
        when(check.shared, shared),
        when(check.too_short, f"{check.too_short} too short to look for"),
        "Nothing is left." if check.clean else "Something is left.",
    ]


compacted = view(
    "{:No deleted bytes are left in the files|"
    "Other processes are using the store: try again later}",
    data=lambda freed: {"bytes_freed": freed},
    failed="<!?in use>",
)


# --- maintenance ---


reembedded = view(
    "Embedded {embedded} memories with {model:raw}<; the store was of {changed_from:raw} before>"
)


def stats(counts: MemoryStats, call: Call) -> Answer:
    """Render the four lines of RFC-0011, and a line for each operation that called a model."""
    names = ("total_memories", "total_skills", "db_path", "status", "by_status")
    data = {name: getattr(counts, name) for name in names}
    data["spent_today"] = [asdict(spent) for spent in counts.spent_today]
    data["spent_in_all"] = [asdict(spent) for spent in counts.spent_in_all]
    lines = [
        f"{NAME} Total Skills: {counts.total_skills}",
        f"{NAME} DB Path: {counts.db_path}",
        f"{NAME} Status: {counts.status}",
    ]
    today = {(spent.operation, spent.model): spent.calls for spent in counts.spent_today}
    for spent in counts.spent_in_all:
        called = f"{today.get((spent.operation, spent.model), 0)} today, {spent.calls} in all"
        failed = when(spent.failed, f" ({spent.failed} failed)")
        cost = "" if spent.cost is None else f", ${spent.cost:.4f}"
        lines.append(
            f"{NAME} Calls: {spent.operation} by {one_line(spent.model)}, {called}{failed}: "
            f"{spent.sent:,} tokens sent, {spent.received:,} received{cost}"
        )
    return answer(f"Total Memories: {counts.total_memories}", data, lines)


def models(checks: Sequence[Checked], call: Call) -> Answer:
    """Render whether each configured model answered; the exit code is 1 if one did not."""
    rows, failed = [], sum(not check.ok for check in checks)
    for check in checks:
        state = ("ok" if check.model else "-") if check.ok else "FAILED"
        detail = when(check.model, f"{check.model} ") + check.detail
        rows.append((state, check.part, one_line(detail + when(check.remedy, f"; {check.remedy}"))))
    gave_none = f"{failed} of the models gave no answer"
    title = gave_none if failed else "Every model that is set answers"
    data = {"ok": not failed, "checks": [asdict(check) for check in checks]}
    return answer(title, data, [aligned(rows)], rows="checks", failed=failed)


def heartbeat(beat: Heartbeat, call: Call) -> Answer:
    """Render the outcome of each job; the exit code is 1 if one failed."""
    failed = sum(not run.ok for run in beat.runs)
    done = sum(run.outcome == "done" for run in beat.runs)
    rows = [_run_row(run) for run in beat.runs]
    title = f"Heartbeat: {done} done, {failed} failed, {len(rows) - done - failed} not run"
    data = {"ok": beat.ok, "runs": [asdict(run) for run in beat.runs]}
    return answer(
        title,
        data,
        [aligned(rows)],
        rows="runs",
        failed=not beat.ok,
        draw=lambda: table(title, ("job", "outcome", "what it did"), rows),
    )


runs = view("{:#} runs.", rows("{began}", "{job}", "{outcome}", "{detail}"), key="runs")


def _run_row(run: JobRun) -> tuple[str, str, str]:
    return run.job, str(run.outcome), one_line(run.detail)


# --- lessons ---


lesson = view(
    "Lesson {lesson_id} of pattern {pattern_id}, {rule_confidence:.2f} sure: {preventative_rule}"
)


def lessons(blocks: Sequence[LessonBlock], call: Call) -> Answer:
    """Render lessons, one on each line: severity, confidence, rule, scope."""
    rows = [_lesson_row(block) for block in blocks]

    def draw() -> str:
        if rows:
            return table(f"{len(rows)} lessons", ("severity", "sure", "rule", "applies to"), rows)
        weaker = _weaker(call) if call.arguments.get("query") else ""
        return paint(f"{NAME} 0 lessons.") + when(weaker, f"\n{weaker}")

    title = f"{len(rows)} lessons."
    return answer(title, items("lessons", blocks), [aligned(rows)], rows="lessons", draw=draw)


def _lesson_row(block: LessonBlock) -> tuple[str, str, str, str]:
    rule, scope = one_line(block.preventative_rule), one_line(block.applicable_scope)
    return block.severity, f"{block.rule_confidence:.2f}", rule, scope


def distilled(done: Distilled, call: Call) -> Answer:
    """Render the result of a distillation cycle."""
    next_session = aligned([_lesson_row(block) for block in done.inject])
    lines = [
        *(f"Learnt: {one_line(block.preventative_rule)}" for block in done.learnt),
        when(done.unseen, f"Learnt for other agents, visible to them alone: {done.unseen}"),
        *(f"Skipped: {one.memory_id}, because {one_line(one.reason)}" for one in done.skipped),
        when(done.inject, f"\nTo begin the next session with:\n{next_session}"),
    ]
    title = (
        f"Scanned {done.scanned} blocks: {done.candidates} candidates, "
        f"{len(done.learnt) + done.unseen} learnt, {done.known} known, {len(done.skipped)} skipped"
    )
    return answer(title, done, lines)
