"""Render results of the graph, of reflections, of skills and of upkeep as answers."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.core.learning import ReflectionResult, SkillResult
from memory_mesh.core.model import ClaimConflict, Ingested
from memory_mesh.interfaces.render.memories import gone_lines, ingest_counts
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
    when,
)
from memory_mesh.interfaces.render.templates import each, fill, rows, view
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
    key="results",
    data=lambda results: items("results", results, meta=results.meta),
)

reached = view(
    "{:#memory}", rows("{distance}", "{link_type}", "{id}", "{memory.content:~}"), key="reached"
)

linked = view("Linked {ref} to {target}: {link_type}")

unlinked = view(
    "{:Removed the link|There is no such link}", data=lambda removed: {"removed": removed}
)

links = view(
    "{:#link}",
    key="links",
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
    key="episodes",
    columns={
        "id": "{id}",
        "time": "{start:.16}Z – {end:.16}Z",
        "memories": "{count:,}",
        "session": "{session_id:or –}",
        "who": lambda episode: one_line(", ".join(episode.speakers or episode.agents)),
        "about": "{title}",
    },
    with_heads=True,
)


def context(built: "GraphContext", call: Call) -> Answer:
    """Render a context: the text alone, so that it can be piped into a prompt; with `explain`,
    the decisions too."""
    size = f"{counted(len(built.memories), 'memory')}, {counted(built.tokens, 'token')}"
    lines = [built.text or f"{NAME} {built.note or 'no memory is relevant to the query'}"]
    if call.arguments.get("explain"):
        lines += ["", f"{NAME} {size}", *_decisions(built)]
    names = ("text", "tokens", "note", "left_out", "meta")
    data = {name: getattr(built, name) for name in names}
    data["memories"] = [asdict(memory) for memory in built.memories]
    data["decisions"] = [asdict(decision) for decision in built.decisions]
    text, note = "\n".join(lines), when(built, size)
    return Answer(text=text, data=data, rows="memories", note=note)


def _decisions(built: "GraphContext") -> Iterator[str]:
    heads = ("", "chance", "value", "tokens", "density", "id", "link", "text")
    cells = (
        "{left_out:or shown}", "{relevance:.2f}", "{value:.3f}", "{tokens:,}", "{density:.3g}",
        "{memory.id}", "<linked_to?{link_type} of {linked_to}>", "{memory.content:~}",
    )  # fmt: skip
    if built.decisions:
        shown = [[fill(cell, decision) for cell in cells] for decision in built.decisions]
        yield aligned([heads, *shown])
    if built.left_out:
        reasons = sorted(built.left_out.items())
        yield "Left out: " + ", ".join(f"{count:,} {reason}" for reason, count in reasons)


# --- claims and reviews ---

quarantined = view(
    "{:#memory} quarantined",
    "<?Decide with: memory-mesh review>",
    key="memories",
    columns={
        "id": "{id}",
        "agent": lambda memory: memory.agent_id or "–",
        "stored": "{created_at}",
        "text": "{content:~}",
    },
)


def conflicts(some: Sequence[ClaimConflict], call: Call) -> Answer:
    """Render conflicts, each with both memories and the reason, and how it was resolved."""
    status, lines = call.arguments.get("status", "pending"), []
    for conflict in some:
        reasons = [str(conflict.detail.get(name) or "") for name in ("resolution", "reason")]
        how = one_line(": ".join(filter(None, reasons)))
        lines.append(
            f"{conflict.id}\n  new       {conflict.ref}\n  existing  {conflict.target}\n"
            f"  why       {one_line(conflict.why or 'unknown')}"
        )
        lines.append(when(conflict.status == "resolved", f"  resolved  {how}"))
    decide = "Resolve one with: memory-mesh conflicts --resolve CONFLICT --keep new|existing|both"
    lines.append(when(some and status == "pending", decide))
    title = counted(len(some), f"{status} conflict")
    return answer(title, items("conflicts", some), lines, rows="conflicts")


_DONE = {"activate": "Activated", "reject": "Rejected", "keep_both": "Kept both", "undo": "Undone"}


def reviewed(done: "Reviewed", call: Call) -> Answer:
    """Render a decision: what became of the memory, and what else changed."""
    outcome = one_line(done.note) if done.note else f"is {done.memory.status}"
    changed = each("changed", "Record {id} is {status}: {content:~}")(done)
    resolved = each("conflicts", "Conflict {id} is {status}")(done)
    title = f"{_DONE[done.action]}: record {done.memory.id} {outcome}"
    return answer(title, done, [*changed, *resolved])


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
    window = " ".join(
        filter(None, (fill("<from {start}>", claim.window), fill("<until {end}>", claim.window)))
    )
    scope = "" if claim.session_id is None else f", in session {claim.session_id}"
    value = f"{claim.subject} · {claim.predicate} = {claim.value}"
    shared = when(not claim.exclusive, ", beside other values")
    return [one_line(f"Claim: {value}{when(window, f', valid {window}')}{scope}{shared}")]


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


def _tree(found: "MemoryExplanation") -> Iterator[str]:
    """Yield the newest memory of the chain with what it supersedes below it, and the links below
    the explained memory."""
    own, steps = found.memory.id, found.supersessions
    texts = {own: found.memory.content, **found.contents}
    texts |= {step.older: step.older_content for step in steps if step.older_content}
    texts |= {step.newer: step.newer_content for step in steps if step.newer_content}
    below: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        label = fill("supersedes< since {at:raw}>< ({why})>", step)
        below.setdefault(step.newer, []).append((step.older, label))
    for link in found.links:
        other, arrow = (link.target, "→") if link.ref == own else (link.ref, "←")
        if link.link_type != "supersedes":
            label = fill("{link_type:raw}< {similarity:.2f}>", link)
            below.setdefault(own, []).append((other, f"{label} {arrow}"))
    root, newer = own, {step.older: step.newer for step in reversed(steps)}
    visited = {root}
    while (up := newer.get(root)) and up not in visited:
        root = up
        visited.add(up)

    def node(id_: str) -> str:
        text = f"“{excerpt(texts[id_], 50)}”" if id_ in texts else "(erased, or of another agent)"
        return f"{id_} {text}{when(id_ == own, '  ◀ this one')}"

    def branches(at: str, indent: str) -> Iterator[str]:
        children = below.get(at, [])
        for number, (child, label) in enumerate(children, start=1):
            last = number == len(children)
            yield f"{indent}{'└─' if last else '├─'} {label} {node(child)}"
            if child not in drawn:
                drawn.add(child)
                yield from branches(child, f"{indent}{'   ' if last else '│  '}")

    drawn = {root}
    yield node(root)
    yield from branches(root, "")


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

skill_ingested = view(
    "Ingested skill {id}: {name}, revision {revision}", lambda skill: [masked(skill.redactions)]
)

skills_listed = view(
    "{:#skill}.",
    key="skills",
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


def skills_found(results: Sequence[SkillResult], call: Call) -> Answer:
    """Render skills for a query, each with its score and the parts of it."""
    lines = []
    for n, skill in enumerate(results, start=1):
        fractions = skill.keyword_fractions.items()
        parts = ", ".join(f"{name} {part:.2f}" for name, part in fractions if part)
        keywords = f"{skill.keyword_score:.2f}{when(parts, f' ({parts})')}"
        vector = "none" if skill.vector_score is None else f"{skill.vector_score:.2f}"
        use = fill("Reliability: {reliability:.2f} | Used: {use_count}<, last {last_used}>", skill)
        lines.append(
            f"\n--- SKILL {n}: {skill.id} [SCORE: {skill.score:.2f}] ---\n"
            f"{one_line(skill.name)}: {one_line(skill.intent)}\n"
            f"{use} | Keywords: {keywords} | Vector: {vector}"
        )
    title = f"Found {counted(len(results), 'skill')}."
    return answer(title, items("skills", results), lines, rows="skills")


def skills_synced(folders: Sequence[Ingested], call: Call) -> Answer:
    """Render what was read from each folder; the exit code is 1 if a file could not be read."""
    lines, problems = list[str](), list[str]()
    for done in folders:
        lines += [f"{NAME} Read {ingest_counts(done)}", *gone_lines(done, "skill")]
        problems += [f"{done.root}/{failed.source}: {failed.reason}" for failed in done.failed]
    return Answer(
        text="\n".join(lines) or f"{NAME} No folders are set in skill_directories",
        data={"folders": [asdict(done) for done in folders]},
        rows="folders",
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
    data, lines, total = asdict(done), list[str](), 0
    for name, steps in data.items():
        if name != "dry_run":
            total += len(steps)
            shown = [
                f"  {step['action']} {step['memory_id'] or 'new'}: {one_line(step['why'])}"
                for step in steps
            ]
            lines += [
                f"{name}: {len(steps)}",
                *first_20(shown, "  … and {} more; --json shows all"),
            ]
    lines.append(when(done.dry_run and total, _DRY_RUN))
    would = "Would make" if done.dry_run else "Made"
    return answer(f"{would} {counted(total, 'change')}", data, lines)


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
        items("hooks", queues),
        rows("{name}", "{waiting} waiting", "{dead_letters} dead", _hook_note)(queues),
        rows="hooks",
        failed=left and call.operation.name == "hooks retry",
    )


def _hook_note(hook: "HookStatus") -> str:
    if not hook.configured:
        return "of another program"
    if not hook.failures:
        return "ok"
    after = when(hook.waiting and hook.next_attempt, f", next attempt {hook.next_attempt}")
    return one_line(f"failed {counted(hook.failures, 'time')}{after}: {hook.error}")
