"""Render results of the graph, of reflections, of skills and of upkeep as answers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.core.claims.updates import BOTH_HOLD, ENDS, UPDATES, Update
from memory_mesh.core.graph import connected
from memory_mesh.core.learning import ReflectionResult, SkillResult
from memory_mesh.core.model import ClaimConflict, Ingested
from memory_mesh.core.text import day
from memory_mesh.interfaces.render.memories import INGESTED, gone_lines
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
    table,
    when,
)
from memory_mesh.interfaces.render.templates import MASKED, each, fill, grid, rows, view
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.claims import Claim, Trust
    from memory_mesh.core.claims.rules import MemoryExplanation, Reviewed
    from memory_mesh.core.graph import GraphContext
    from memory_mesh.core.upkeep import Consolidated, Decayed
    from memory_mesh.core.upkeep.hooks import HookStatus


# --- storing, finding and linking ---

graph_stored = view("Stored record {id}<quarantined?; it is quarantined>")

feedback = view(
    "Record {id} is {status}: {reinforcements:#reinforcement}, {disputes:#dispute}"
    "<, importance {importance:.2f}>"
)

unarchived = view("Record {id} is {status}")

graph_found = view(
    "{:#result}",
    rows("{id}", "{score:.2f}", "{content:~}"),
    data=lambda results: items(results, meta=results.meta),
)

reached = view("{:#memory}", rows("{distance}", "{link_type}", "{id}", "{memory.content:~}"))

linked = view("Linked {ref} to {target}: {link_type}")

unlinked = view(
    "{:Removed the link|There is no such link}", data=lambda removed: {"removed": removed}
)

links = view(
    "{:#link}",
    columns={
        "": lambda link: "→" if link.direction == "outgoing" else "←",
        "type": "{link_type}",
        "similarity": "<{similarity:.2f}>",
        "id": "{memory.id}",
        "text": "{memory.content:~}",
    },
)

episodes = view(
    "{:#episode}",
    columns={
        "id": "{id}",
        "time": "{start:.16}Z – {end:.16}Z",
        "memories": "{count:,}",
        "session": "<{session_id}><!session_id?–>",
        "who": lambda episode: one_line(", ".join(episode.speakers or episode.agents)),
        "about": "{title}",
    },
    with_heads=True,
)


_DECISIONS = {
    "": "{left_out:or shown}",
    "chance": "{relevance:.2f}",
    "value": "{value:.3f}",
    "tokens": "{tokens:,}",
    "density": "{density:.3g}",
    "id": "{memory.id}",
    "link": "<linked_to?{link_type} of {linked_to}>",
    "text": "{memory.content:~}",
}


def context(built: "GraphContext", call: Call) -> Answer:
    """Render a context: the text alone, so that it can be piped into a prompt; with `explain`,
    the decisions too."""
    size, names = fill("{memories:#memory}, {tokens:#token}", built), ("memories", "decisions")
    lines = [built.text or f"{NAME} {built.note or 'no memory is relevant to the query'}"]
    if call.arguments.get("explain"):
        reasons = [f"{count:,} {reason}" for reason, count in sorted(built.left_out.items())]
        table = grid(_DECISIONS.values(), built.decisions)
        lines += ["", f"{NAME} {size}", *([aligned([[*_DECISIONS], *table])] if table else [])]
        lines += [f"Left out: {', '.join(reasons)}"] if reasons else []
    data = {name: getattr(built, name) for name in ("text", "tokens", "note", "left_out", "meta")}
    data |= {name: [asdict(one) for one in getattr(built, name)] for name in names}
    return Answer(text="\n".join(lines), data=data, rows="memories", note=when(built, size))


# --- claims and reviews ---

quarantined = view(
    "{:#memory} quarantined",
    "<?Decide with: memory-mesh review>",
    columns={
        "id": "{id}",
        "agent": "{agent_id:or –}",
        "stored": "{created_at}",
        "text": "{content:~}",
    },
)


def conflicts(some: Sequence[ClaimConflict], call: Call) -> Answer:
    """Render conflicts, each with both memories and the reason, and how it was resolved."""
    status = call.arguments.get("status", "pending")
    lines = each(
        "",
        "{id}\n  new       {ref}\n  existing  {target}",
        lambda conflict: f"  why       {one_line(conflict.why or 'unknown')}",
        lambda conflict: [f"  resolved  {_how(conflict)}"] if conflict.status == "resolved" else [],
    )
    decide = "Resolve one with: memory-mesh conflicts --resolve CONFLICT --keep new|existing|both"
    return answer(
        counted(len(some), f"{status} conflict"),
        items(some),
        [*lines(some), when(some and status == "pending", decide)],
    )


def _how(conflict: ClaimConflict) -> str:
    parts = [conflict.detail.get(name) for name in ("resolution", "reason")]
    return one_line(": ".join(str(part) for part in parts if part))


_DONE = {"activate": "Activated", "reject": "Rejected", "keep_both": "Kept both", "undo": "Undone"}


def reviewed(done: "Reviewed", call: Call) -> Answer:
    """Render a decision: what became of the memory, and what else changed."""
    outcome = one_line(done.note) if done.note else f"is {done.memory.status}"
    changed = each("changed", "Record {id} is {status}: {content:~}")
    resolved = each("conflicts", "Conflict {id} is {status}")
    title = f"{_DONE[done.action]}: record {done.memory.id} {outcome}"
    return answer(title, done, [*changed(done), *resolved(done)])


def changes(found: Sequence[Update], call: Call) -> Answer:
    """Render what changed: each line of statements, the newest first."""
    title = counted(len(found), "change")
    cells = [row for line in _lines(found) for row in _statements_through_time(line)]

    def draw() -> str:
        heads = ("since", "statement", "id", "")
        return table(title, heads, cells) if cells else paint(f"{NAME} {title}")

    return answer(title, items(found), [aligned(cells)], draw=draw)


def _lines(found: Sequence[Update]) -> Iterable[list[Update]]:
    """Return the changes in groups that memories connect. One that was undone connects nothing."""
    made = [change for change in found if change.type != BOTH_HOLD]
    groups = connected((change.newer.id, change.older.id, 1.0) for change in made)
    line = {id_: group[0] for group in groups for id_ in group}
    by_line = defaultdict[str, list[Update]](list)
    for change in found:
        undone = f"{change.newer.id} {change.older.id}" if change.type == BOTH_HOLD else ""
        by_line[undone or line[change.newer.id]].append(change)
    return by_line.values()


def _statements_through_time(line: Sequence[Update]) -> list[list[str]]:
    """Return a row for each memory of a line: since when, the text and until when it held, the id,
    and what it did to older ones."""
    memories = {one.id: one for change in line for one in (change.newer, change.older)}
    since = {change.newer.id: change.at for change in line}
    until = {change.older.id: change.at for change in line if change.type != BOTH_HOLD}
    done = defaultdict[str, list[str]](list)
    for change in line:
        done[change.newer.id].append(f"{_DONE_TO_OLDER[change.type]} ({_how_sure(change)})")
    rows = []
    for id_ in sorted(memories, key=lambda id_: (since.get(id_, ""), id_), reverse=True):
        ended = f"until {day(until[id_])}: " if id_ in until else ""
        text = f"{ended}{excerpt(memories[id_].content)}"
        rows.append([since.get(id_, "")[:10], text, id_, ", ".join(done[id_])])
    return rows


def _how_sure(change: Update) -> str:
    decided = "undone" if change.type == BOTH_HOLD else "confirmed"
    return decided if change.probability == 1 else f"{change.probability:.2f}"


_DONE_TO_OLDER = {UPDATES: "replaces", ENDS: "ends", BOTH_HOLD: "both hold"}


def change_decided(change: Update, call: Call) -> Answer:
    """Render what a person decided about two memories."""
    how = (
        "Undone: {newer.id} and {older.id} both hold"
        if change.type == BOTH_HOLD
        else f"Confirmed: {{newer.id}} {_DONE_TO_OLDER[change.type]} {{older.id}}"
    )
    return answer(fill(how, change), change)


def explained_memory(found: "MemoryExplanation", call: Call) -> Answer:
    """Render what is known about a memory, with its trust as bars and its supersessions and
    links as a tree."""
    data = asdict(found)
    data["trust"] = {**asdict(found.trust), "value": found.trust.value}
    title, *lines = explanation_lines(found, call.arguments.get("as_of"))
    tree = "\n".join(_tree(found))
    return answer(title, data, [*lines, when("\n" in tree, f"\n{tree}")])


def explanation_lines(found: "MemoryExplanation", asked: object = None) -> Iterator[str]:
    """Yield the lines of an explanation, without the tree; with a time, also whether the memory
    was valid then."""
    memory, since = found.memory, ""
    if found.status_change:
        since = fill(" since {created_at:raw}, by {action:raw}<: {why}>", found.status_change)
    yield f"Record {memory.id} is {found.status}{since}"
    yield f"{one_line(memory.content)}\n"
    yield from claim_lines(found.claim)
    if asked:
        yield f"It was {when(not found.valid, 'not ')}valid at {one_line(str(asked))}"
    yield from _trust_lines(found.trust)
    seen = when(found.sightings > 1, f", stored by {found.sightings} agents or sessions")
    stored = f"Stored by {memory.agent_id or 'unknown'} at {memory.created_at}"
    yield one_line(f"{stored}, source: {found.provenance.get('source') or 'unknown'}{seen}")
    for conflict in found.conflicts:
        other = conflict.target if conflict.ref == memory.id else conflict.ref
        how = conflict.detail.get("resolution")
        line = f"Conflict {conflict.status} with {other}: {conflict.why or 'unknown'}"
        yield one_line(line + when(how, f" ({how})"))


def claim_lines(claim: "Claim | None") -> list[str]:
    """Return the line of a claim with its window; nothing without one."""
    if claim is None:
        return []
    window = fill("< from {window.start:raw}>< until {window.end:raw}>", claim)
    scope = "" if claim.session_id is None else f", in session {claim.session_id}"
    shared = when(not claim.exclusive, ", beside other values")
    value = f"{claim.subject} · {claim.predicate} = {claim.value}"
    return [one_line(f"Claim: {value}{when(window, f', valid{window}')}{scope}{shared}")]


def _trust_lines(trust: "Trust") -> Iterator[str]:
    """Yield the trust and its parts, each with a bar."""
    yield f"Trust  {_bar(trust.value)}  {trust.value:.2f}"
    for name in ("base", "corroboration", "feedback", "age"):
        value = getattr(trust, name)
        if name == "base" or abs(value) >= 0.005:
            yield f"  {name:<13}  {value:+.2f}  {_bar(value)}".rstrip()
    if (least := trust.least_source) is not None:
        yield f"  {'at most':<13}   {least:.2f}  {_bar(least)}  the least trusted source"


def _bar(value: float) -> str:
    return "█" * min(10, round(abs(value) * 10))


def _tree(found: "MemoryExplanation") -> list[str]:
    """Return the newest memory of the chain with what it supersedes below it, and the links below
    the explained memory."""
    own, steps = found.memory.id, found.supersessions
    texts = {own: found.memory.content, **found.contents}
    texts |= {step.older: step.older_content for step in steps if step.older_content}
    texts |= {step.newer: step.newer_content for step in steps if step.newer_content}
    below = defaultdict[str, list[tuple[str, str]]](list)
    for step in steps:
        label = fill("supersedes< since {at:raw}>< ({why})>", step)
        below[step.newer].append((label, step.older))
    for link in found.links:
        if link.link_type != "supersedes":
            label = fill("{link_type:raw}< {similarity:.2f}>", link)
            outgoing = link.ref == own
            end = (f"{label} →", link.target) if outgoing else (f"{label} ←", link.ref)
            below[own].append(end)
    newer = {step.older: step.newer for step in reversed(steps)}
    chain = [own]
    while (up := newer.get(chain[-1])) and up not in chain:
        chain.append(up)
    lines, visited = list[str](), set[str]()

    def draw(id_: str, label: str, indent: str) -> None:
        text = f"“{excerpt(texts[id_], 50)}”" if id_ in texts else "(erased, or of another agent)"
        lines.append(f"{label}{id_} {text}{when(id_ == own, '  ◀ this one')}")
        children = [] if id_ in visited else below[id_]
        visited.add(id_)
        for number, (how, child) in enumerate(children, start=1):
            mark, bar = ("├─", "│  ") if number < len(children) else ("└─", "   ")
            draw(child, f"{indent}{mark} {how} ", indent + bar)

    draw(chain[-1], "", "")
    return lines


# --- reflections ---


def heritage(nothing: None, call: Call) -> Answer:
    id_ = call.arguments["memory_id"]
    return answer(f"Heritage of {id_} set", {"memory_id": id_})


def reflection(done: ReflectionResult, call: Call) -> Answer:
    """Render the statements of a reflection, each with its sources, or say that nothing was
    found."""
    name = "Synthesis" if call.operation.name == "synthesize" else "Reflection"
    how = ": {sources:#source}, confidence {confidence:.2f}, {method}"
    parts = [] if done.id is None else [done, *done.others]
    return _statements(done, parts, name + " {id}< on {topic}>", how)


def episode_summary(done: ReflectionResult, call: Call) -> Answer:
    """Render the statements about an episode, each with its sources."""
    title = "{statements:#statement}, {method}<, stored as {memory_id}>"
    return _statements(done, [done, *done.others], title)


def _statements(
    done: ReflectionResult, parts: Sequence[ReflectionResult], title: str, how: str = ""
) -> Answer:
    lines = []
    for part in parts:
        within = when(done.others, f" in {one_line(str(part.project))}")
        lines.append(f"{NAME} {fill(title, part)}{within}{fill(how, part)}")
        lines += [fill("- {text} [{sources:list}]", statement) for statement in part.statements]
    lines += [f"{NAME} Note: {one_line(done.note)}"] if done.note else []
    return Answer(text="\n".join(lines), data=asdict(done))


# --- skills ---

skill_ingested = view("Ingested skill {id}: {name}, revision {revision}", MASKED)

skills_listed = view(
    "{:#skill}.",
    columns={
        "id": "{id}",
        "reliability": "{reliability:.2f}",
        "used": "{use_count}",
        "name": "{name}",
        "intent": "{intent}",
    },
)

skill_used = view(
    "Skill {id}: reliability {previous:.2f} → {reliability:.2f}, used {use_count:#time}"
)

skills_pruned = view("Archived {pruned_count:#skill}, {total_remaining} left", each("ids", "{}"))


def _skill_signals(skill: SkillResult) -> str:
    """Return how often a skill was used, and the parts of its score."""
    use = "Reliability: {reliability:.2f} | Used: {use_count}<, last {last_used}>"
    keywords = fill(use + " | Keywords: {keyword_score:.2f}", skill)
    parts = [f"{name} {part:.2f}" for name, part in skill.keyword_fractions.items() if part]
    vector = fill(" | Vector: <{vector_score:.2f}><!vector_score?none>", skill)
    return keywords + when(parts, f" ({', '.join(parts)})") + vector


skills_found = view(
    "Found {:#skill}.",
    each(
        "",
        "\n--- SKILL {n}: {id} [SCORE: {score:.2f}] ---",
        "{name}: {intent}",
        _skill_signals,
    ),
)


def skills_synced(folders: Sequence[Ingested], call: Call) -> Answer:
    """Render what was read from each folder; the exit code is 1 if a file could not be read."""
    lines, problems = list[str](), list[str]()
    for done in folders:
        lines += [f"{NAME} Read {fill(INGESTED, done)}", *gone_lines(done, "skill")]
        problems += [f"{done.root}/{failed.source}: {failed.reason}" for failed in done.failed]
    return Answer(
        text="\n".join(lines) or f"{NAME} No folders are set in skill_directories",
        data=items(folders),
        code=1 if problems else 0,
        problems=problems,
    )


# --- upkeep ---

_DRY_RUN = "Nothing was changed; add --apply to do it"


def decayed(done: "Decayed", call: Call) -> Answer:
    """Render what was archived, erased and cleaned, and how to do it after a dry run."""
    ids = [*done.archived, *(f"{id_} (erased)" for id_ in done.erased)]
    title = fill(
        "{dry_run:Would archive|Archived} {archived:#} of {examined:#memory}"
        "<erased?, {dry_run:erase|erased} {erased:#}>"
        "<links?, {dry_run:remove|removed} {links:#broken link}>",
        done,
    )
    return answer(
        title, done, [*first_20(ids), when(done.dry_run and (ids or done.links), _DRY_RUN)]
    )


compressed = view(
    "Stored {digests:#digest}<, archived {archived:#memory}>",
    each("digests", "{id} of {sources:#}: {content:~}"),
)


def consolidated(done: "Consolidated", call: Call) -> Answer:
    """Render the steps of each phase, and how to do them after a dry run."""
    data, lines = asdict(done), list[str]()
    phases = {name: steps for name, steps in data.items() if name != "dry_run"}
    for name, steps in phases.items():
        shown = each("", "  {action:raw} {memory_id:or new}: {why}")(steps)
        lines += [f"{name}: {len(steps)}", *first_20(shown, "  … and {} more; --json shows all")]
    total = sum(map(len, phases.values()))
    would = "Would make" if done.dry_run else "Made"
    title = f"{would} {counted(total, 'change')}"
    return answer(title, data, [*lines, when(done.dry_run and total, _DRY_RUN)])


def hooks(queues: "Sequence[HookStatus]", call: Call) -> Answer:
    """Render what waits for each hook. The exit code of a retry is 1 if something still waits
    for a hook of these settings."""
    waiting, dead = sum(one.waiting for one in queues), sum(one.dead_letters for one in queues)
    title = (
        f"{counted(len(queues), 'hook')}, {counted(waiting, 'event')} waiting, "
        f"{counted(dead, 'dead letter')}"
        f"{when(not queues, '; the option writethrough names some')}"
    )
    left = any(one.waiting or one.dead_letters for one in queues if one.configured)
    return answer(
        title,
        items(queues),
        rows("{name}", "{waiting} waiting", "{dead_letters} dead", _hook_note)(queues),
        failed=left and call.operation.name == "hooks retry",
    )


def _hook_note(hook: "HookStatus") -> str:
    if not hook.configured:
        return "of another program"
    if not hook.failures:
        return "ok"
    after = when(hook.waiting and hook.next_attempt, f", next attempt {hook.next_attempt}")
    return one_line(f"failed {counted(hook.failures, 'time')}{after}: {hook.error}")
