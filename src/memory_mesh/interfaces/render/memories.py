"""Render results about memories, lessons, the lane and maintenance as answers.

Each view renders the result of one operation of the table as an `Answer`: a text, and the data for
JSON. The other views are in `graph` and `records`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from memory_mesh.api.mesh_methods import MemoryStats
from memory_mesh.core.errors import NotFound, shown
from memory_mesh.core.learning import Heartbeat, LessonBlock
from memory_mesh.core.model import (
    Change,
    Checked,
    Forgotten,
    Ingested,
    MemoryRecord,
    SearchResult,
    Sighting,
    Status,
)
from memory_mesh.core.search import Explained, Explanation
from memory_mesh.core.text import day
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
    one_line,
    paint,
    preview,
    safe,
    table,
    when,
)
from memory_mesh.interfaces.render.templates import MASKED, each, fill, filled, grid, rows, view
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.lane import LaneResult, LaneResults
    from memory_mesh.core.language.capture import JunkFound


# --- storing and changing ---


def stored(memory: MemoryRecord | list[MemoryRecord], call: Call) -> Answer:
    """Render the line of RFC-0011; a terminal also shows whether the text was new. Of messages,
    render the new ones."""
    if isinstance(memory, list):
        return stored_many(memory, call)
    line = "\n".join([f"Ingested record {memory.id}", *claim_outcome(memory)])
    return _written(line, memory, new=True)


def claim_outcome(memory: MemoryRecord) -> list[str]:
    """Return the lines that say what the claim of a stored memory led to."""
    if memory.status == Status.QUARANTINED:
        return ["It is quarantined. Decide with: memory-mesh review"]
    return [f"It supersedes {id_}" for id_ in memory.supersedes]


stored_many = view("Ingested {:#new message}")

lane_stored = view(
    "Ingested record {id}<!is_new?, observed {memory.times_observed:#time}>",
    lambda done: claim_outcome(done.memory),
    "<[MemoryMesh] Masked: {memory.redactions:counts}>",
)


def updated(memory: MemoryRecord, call: Call) -> Answer:
    return _written(f"Updated record {memory.id} to revision {memory.revision}", memory)


def _written(line: str, memory: MemoryRecord, *, new: bool = False) -> Answer:
    def draw() -> str:
        return output.written(f"{NAME} {line}", memory, new=new)

    return answer(line, memory, [fill(MASKED, memory)], draw=draw)


pinned = view("{pinned:Pinned|Unpinned} record {id}")

lane_rated = view(
    "Record {id} has the feedback score {feedback_score:.2f} after {feedback_count:#rating}"
)

ended_session = view("Ended session {session_id}: {archived:#memory} archived")

extracted = view(
    "{repeated:This call was made before:|Extracted} {memories:#} memories"
    "<; {dropped} of too little importance dropped><; {unusable} unusable>",
    MASKED,
    "<[MemoryMesh] Stored as it is: {stored_whole:raw}>",
    "<[MemoryMesh] The text tries to give instructions ({flagged:list}); they were not followed>",
    each(
        "memories",
        lambda memory: (
            fill("{id}  <{importance:.2f}><!importance?  – >  ", memory)
            + f"{memory.category or '–':<12}  {preview(memory.content)}"
        ),
    ),
    data=lambda done: items(
        done.memories,
        **{name: part for name, part in asdict(done).items() if name != "memories"},
    ),
)


INGESTED = (
    "{root}: {added} added, {updated} updated, {unchanged} unchanged, {failed:#} failed, "
    "{gone:#} gone"
)


def ingested(done: Ingested, call: Call) -> Answer:
    """Render a summary, the files that failed, and what to do about memories of missing files."""
    extensions = call.arguments.get("extension")
    endings = ", ".join(extensions) if isinstance(extensions, list) else ".md"
    deeper = when(not call.arguments.get("recursive"), ", --recursive for sub-folders")
    no_files = f"No file here ends with {endings}; use --extension for others{deeper}."
    matched = done.added or done.updated or done.unchanged or done.failed
    return answer(
        f"Ingested {fill(INGESTED, done)}",
        done,
        [
            when(not matched, no_files),
            *first_20(gone_lines(done, "memory"), "… and {} more; --json lists them all"),
        ],
        failed=done.failed,
        problems=[f"{failed.source}: {failed.reason}" for failed in done.failed],
    )


def gone_lines(done: Ingested, what: str) -> list[str]:
    """Return a line for each file that is missing now."""
    return [
        f"Gone: {one_line(gone.source)}; its {what} stays until `memory-mesh forget {gone.id}`"
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
    title = f"Archived {counted(archived, 'memory')}" if archived else found
    lines = [
        *(f"{one.id}  {one.why}: {excerpt(one.content)}" for one in junk),
        when(
            junk and not call.arguments.get("archive"),
            "Nothing was changed; add --archive to archive them",
        ),
    ]
    return answer(title, items(junk, archived=archived), lines)


# --- searching and reading ---


def found(results: Sequence[SearchResult], text: str, call: Call) -> Answer:
    """Render the results for a prompt in the words of RFC-0011, or all for a person at a
    terminal."""

    def draw() -> str:
        from memory_mesh.api.settings import load

        options = load(call.target.arguments).options
        query, hint = str(call.arguments["query"]), _weaker(call, options.search_mode)
        return output.results(results, query, language=options.stemmer_language, hint=hint)

    count = len(for_prompt(results, call.arguments))
    weaker = when(results, f"\nWeaker matches: {len(results)}; --mode recall shows them.")
    title = f"Found {count} matches." + (f"\n\n{text}" if count else weaker)
    return answer(title, items(results), draw=draw)


def for_prompt(
    results: Sequence[SearchResult], arguments: Mapping[str, object]
) -> list[SearchResult]:
    """Return the results that belong into the text for a prompt: the relevant ones, or all, as if
    they were relevant, if the caller chose what is left out."""
    if {"mode", "min_score"} & arguments.keys():
        return [replace(result, relevant=True) for result in results]
    return [result for result in results if result.relevant]


def fenced(results: Sequence[SearchResult], text: str, call: Call) -> Answer:
    return Answer(text=text, data=items(results, text=text))


def _weaker(call: Call, mode: str) -> str:
    """Return how a search that found nothing shows weaker matches, or an empty text. `mode` is
    the default."""
    if "min_score" in call.arguments:
        return when(call.arguments["min_score"], "--min-score 0 shows weaker matches.")
    precise = call.arguments.get("mode", mode) == "precise"
    return when(precise, "--mode recall shows weaker matches.")


def lane_found(results: "LaneResults", call: Call) -> Answer:
    """Render results with the parts of their scores; for a terminal as a table."""
    about = when(results.entities, f" about {' or '.join(results.entities)}")
    title = f"Found {counted(len(results), 'memory')}{about}"
    cells = {
        "score": "{score:.2f}",
        "type": "{memory_type:raw}",
        "confidence": "{effective_confidence} %",
        "id": "{id}",
        "text": "{content:~160}",
    }

    def draw() -> str:
        shown = grid(cells.values(), results)
        return table(title, tuple(cells), shown) if shown else f"{NAME} {title}"

    lines = each("", _product, "      {content}")(results)
    return answer(title, items(results, entities=results.entities), lines, draw=draw)


def _product(result: "LaneResult") -> str:
    """Return a result with its score as a product; factors of 1 are left out."""
    parts = result.parts
    factors = {
        "weight": parts.weight,
        "decay": parts.decay_factor,
        "feedback": parts.feedback_score,
        "intent": parts.intent_boost,
    }
    product = "".join(f" × {name} {value:g}" for name, value in factors.items() if value != 1)
    line = "{score:.2f}  {memory_type}  {id}  = similarity {parts.similarity:.2f}"
    return fill(line, result) + product


def _explained_data(explanation: Explanation) -> dict[str, object]:
    data = asdict(explanation)
    for name in ("answers", "nearly"):
        data[name] = [{**hit.pop("result"), **hit} for hit in data[name]]
    return data


def _words(explanation: Explanation) -> str:
    corrected = explanation.corrections
    words = [
        word + when(word in corrected, f" → {corrected.get(word)}") for word in explanation.tokens
    ]
    return f"Words: {', '.join(words[:20]) or 'none'}"


def _left_out(explanation: Explanation) -> str:
    reasons = sorted(explanation.left_out.items())
    counts = ", ".join(f"{count} ({reason})" for reason, count in reasons)
    return f"Left out: {counts or 'nothing'}"


def _signals(hit: Explained) -> list[str]:
    channels = [
        (name, f"rank {placing.rank}", f"{placing.score:.3f}")
        for name, placing in hit.channels.items()
    ]
    features = ", ".join(f"{name} {value:.2f}" for name, value in hit.features.items() if value)
    pairs = ", ".join(f"{pair.question} – {pair.memory}" for pair in hit.word_pairs)
    return [
        one_line(hit.result.content)[:200],
        when(not hit.result.relevant, "Probably not relevant"),
        aligned(channels),
        *_heritage_lines(hit.result),
        _better(hit),
        aligned([(f"{one.value:+.2f}", one.meaning) for one in hit.contributions]),
        when(pairs, f"Nearest words: {pairs}"),
        when(features, f"Features: {features}"),
    ]


def _better(hit: Explained) -> str:
    """Return why another memory stands above a result, if one does."""
    result = hit.result
    if result.until:
        changed = f"It held until {day(result.until)}, then {result.updated_by} changed it"
        other = hit.newer not in (None, result.updated_by)
        return changed + when(other, f"; above it stands {hit.newer}")
    if result.claim:
        return when(hit.newer, f"The claim of the asked time has another value: {hit.newer}")
    return when(hit.newer, f"Above it stands what is newer, or held at the asked time: {hit.newer}")


explained = view(
    "{answers:#result} of {candidates:#candidate}, among {documents:#memory}",
    "Query: {query:cut 200}",
    _words,
    "Ranker: {ranker:raw}, keywords and <vectors of {model:raw}>"
    "<!model?no vectors>, <mode {mode:raw}, >minimum score {min_score:g}",
    _left_out,
    each("answers", "\n--- MEMORY {n}: {result.id} [IMPORTANCE: {result.score:.2f}] ---", _signals),
    "<nearly?\nBelow the minimum score of {min_score:g}: {left_out.min_score:#memory}, the best of "
    "them:>",
    each("nearly", "  {result.score:.2f}  {result.id}  {result.content:cut 80}"),
    key="answers",
    data=_explained_data,
)


def record(memory: MemoryRecord | None, call: Call) -> Answer:
    """Render all fields of a memory; a terminal shows its heritage as a tree."""
    if memory is None:
        raise _unknown(call)
    title, above, content = f"Record {memory.id}", filled(_FIELDS, memory), f"\n{memory.content}"

    def draw() -> str:
        head = paint(safe("\n".join([f"{NAME} {title}", *above])))
        return "\n".join([head, *_heritage_tree(memory), safe(content)])

    return answer(title, memory, [*above, *_heritage_lines(memory), content], draw=draw)


_FIELDS = (
    "Type: <{metadata.type:raw}><!metadata.type?{memory_type:raw}> | "
    "Source: {metadata.source:or unknown} | Status: {status} | Revision: {revision} | "
    "Observed: {times_observed} | Pinned: {pinned:yes|no}",
    "<User: {user_id:raw} | ><Agent: {agent_id:raw} | ><Session: {session_id:raw} | >"
    "Created: {created_at}",
    "<Metadata: {metadata:json}>",
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

    return answer(f"Listed {len(memories)} memories.", items(memories, next=last), lines, draw=draw)


def history(changes: Sequence[Change], call: Call) -> Answer:
    """Render the revisions of a memory, oldest first."""
    id_ = call.arguments["id"]
    lines = each(
        "", "{number:>4}  {created_at}  {action:raw} by {agent_id:or unknown}<: {why:raw}>", _before
    )
    return answer(
        f"History of {id_}: {len(changes)} revisions.", items(changes, id=id_), lines(changes)
    )


def _before(change: Change) -> list[str]:
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in change.before.items()
    }
    return [f"      {name} was {preview(text)}" for name, text in texts.items()]


def sightings(seen: Sequence[Sighting], call: Call) -> Answer:
    """Render who stored the text of a memory, oldest first."""
    id_, often = call.arguments["id"], "{times_observed} times, last {last_observed}"
    who = "  {created_at}  {agent_id:or unknown}< in session {session_id:raw}>: "
    lines = [fill(who + (often if one.times_observed > 1 else "once"), one) for one in seen]
    return answer(
        f"{id_} was stored by {len(seen)} agents or sessions.", items(seen, id=id_), lines
    )


# --- deleting ---


def _check_lines(proof: Forgotten) -> list[str]:
    """Return what was looked for, what was found in each place before and after, and what is
    left."""
    return filled(_CHECK, proof.check) if proof.check else []


_CHECK = (
    "Looked for {texts:#text} in {places:#place}:",
    each("places", "  {name:<46} {before} before, {after} after"),
    lambda check: [f"Found: {one_line(id_)} in {one_line(place)}" for id_, place in check.found],
    each("unread", "Not read: {}"),
    "<{rows_left:#row} of the user left in the store>",
    "<{shared} left in other memories or searches, which have the same words>",
    "<{too_short} too short to look for>",
    "{clean:Nothing is left.|Something is left.}",
)


def _note_left(place: str) -> str:
    # The root of what was imported ends with a dot.
    by_hand = "/./" in place
    remedy = (
        "edit the file by hand"
        if by_hand
        else "`memory-mesh forget ID --files` removes it, and of a user "
        "`forget --user NAME --files`"
    )
    return f"The note {one_line(place)} is still in its file: {remedy}."


def _is_left(proof: Forgotten) -> bool:
    return bool(proof.check and not (proof.check.clean and proof.bytes_freed))


_ERASED = (
    each("notes", "[MemoryMesh] Removed the note {} from its file"),
    "<[MemoryMesh] Removed {traces:list} from the files of traces>",
    each("notes_left", _note_left),
    "<!bytes_freed?The bytes are still in the store's files: `memory-mesh compact` frees them.>",
    each("damaged", "The chain {} is broken and keeps its queries; see `audit verify`."),
    _check_lines,
)


def forgotten(proof: Forgotten, call: Call) -> Answer:
    """Render the ids of the erased memories, the given one first, or how many a scope had. The
    exit code is 1 if something is left."""
    scope = one_line(call.scope)
    if not (scope or proof.memories or proof.notes):
        raise _unknown(call)
    ids = sorted(proof.memories, key=lambda id_: id_ != call.arguments.get("id"))
    number = "{memories:#memory} erased<; {kept:#} kept: others stored them too>"
    first = (
        [f"Forgot {scope}: {fill(number, proof)}"]
        if scope
        else map("Deleted record {}".format, ids)
    )
    lines = [*(f"{NAME} {line}" for line in first), *filled(_ERASED, proof)]
    code = 1 if proof.damaged or _is_left(proof) else 0
    return Answer(text="\n".join(lines), data=asdict(proof), code=code)


compacted = view(
    "{:No deleted bytes are left in the files|"
    "Other processes are using the store: try again later}",
    data=lambda freed: {"bytes_freed": freed},
    failed=lambda freed: not freed,
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


users = view(
    lambda found: (
        f"{counted(sum(one.memories for one in found), 'memory')} of {counted(len(found), 'user')}"
    ),
    columns={
        "user": lambda one: "without a user" if one.user_id is None else one_line(one.user_id),
        "memories": "{memories}",
    },
)


def _models_title(checks: Sequence[Checked]) -> str:
    failed = sum(not check.ok for check in checks)
    return f"{failed} of the models gave no answer" if failed else "Every model that is set answers"


models = view(
    _models_title,
    rows(
        lambda check: fill("{model:ok|-}", check) if check.ok else "FAILED",
        "{part}",
        lambda check: one_line(fill("<{model:raw} >{detail:raw}<; {remedy:raw}>", check)),
    ),
    data=lambda checks: items(checks, ok=all(check.ok for check in checks)),
    failed=lambda checks: not all(check.ok for check in checks),
)

_RUN = {"job": "{job}", "outcome": "{outcome}", "what it did": "{detail}"}


def _beat_title(beat: Heartbeat) -> str:
    failed = sum(not run.ok for run in beat.runs)
    done = sum(run.outcome == "done" for run in beat.runs)
    return f"Heartbeat: {done} done, {failed} failed, {len(beat.runs) - done - failed} not run"


heartbeat = view(
    _beat_title,
    path="runs",
    columns=_RUN,
    data=lambda beat: items(beat.runs, ok=beat.ok),
    failed=lambda beat: not beat.ok,
)

runs = view("{:#} runs.", rows("{began}", *_RUN.values()))


# --- lessons ---


lesson = view(
    "Lesson {lesson_id} of pattern {pattern_id}, {rule_confidence:.2f} sure: {preventative_rule}"
)


_LESSON = {
    "severity": "{severity}",
    "sure": "{rule_confidence:.2f}",
    "rule": "{preventative_rule}",
    "applies to": "{applicable_scope}",
}
_lessons = view("{:#} lessons.", columns=_LESSON)


def lessons(blocks: Sequence[LessonBlock], call: Call) -> Answer:
    """Render lessons, one on each line; a terminal shows how to find more if there are none."""
    weaker = _weaker(call, "precise") if call.arguments.get("query") else ""
    nothing = paint(f"{NAME} 0 lessons.") + when(weaker, f"\n{weaker}")
    shown = _lessons(blocks, call)
    return shown if blocks else replace(shown, draw=lambda: nothing)


distilled = view(
    lambda done: (
        f"Scanned {done.scanned} blocks: {done.candidates} candidates, "
        f"{len(done.learnt) + done.unseen} learnt, {done.known} known, {len(done.skipped)} skipped"
    ),
    each("learnt", "Learnt: {preventative_rule}"),
    "<Learnt for other agents, visible to them alone: {unseen}>",
    each("skipped", "Skipped: {memory_id}, because {reason}"),
    "<inject?\nTo begin the next session with:>",
    rows(*_LESSON.values(), path="inject"),
)
