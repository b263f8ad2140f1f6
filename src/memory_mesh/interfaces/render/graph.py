"""Render results of the graph, of reflections, of skills and of upkeep as answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.core.learning import (
    PruneResult,
    ReflectionResult,
    ReliabilityUpdate,
    SkillRecord,
    SkillResult,
)
from memory_mesh.core.model import ClaimConflict, Ingested, Link, MemoryRecord, Status
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    aligned,
    counted,
    masked,
    one_line,
    paint,
    preview,
    safe,
    table,
)
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.core.claims import Claim, Trust
    from memory_mesh.core.claims.rules import MemoryExplanation, Reviewed
    from memory_mesh.core.graph import Episode, GraphContext, GraphResults, MemoryLink, Reached
    from memory_mesh.core.upkeep import Compressed, Consolidated, Decayed
    from memory_mesh.core.upkeep.hooks import HookStatus
    from memory_mesh.flows.graph.store import Stored


# --- reflections and heritage ---

_TITLES = {"intentChain": "Intents", "hypotheses": "Hypotheses", "rationales": "Rationales"}


def reflection(done: ReflectionResult, call: Call) -> Answer:
    """Render the statements of a reflection, each with its sources, or say that nothing was
    found."""
    note = [f"{NAME} Note: {one_line(done.note)}"] if done.note else []
    if done.id is None:
        return Answer(text="\n".join(note), data=asdict(done))
    name = "Synthesis" if call.operation.name == "synthesize" else "Reflection"
    lines: list[str] = []
    for each in (done, *done.others):
        about = f" on {one_line(each.topic)}" if each.topic else ""
        about += f" in {one_line(str(each.project))}" if done.others else ""
        how = (
            f"{counted(len(each.sources), 'source')}, confidence {each.confidence:.2f}, "
            f"{each.method}"
        )
        lines += [f"{NAME} {name} {each.id}{about}: {how}", *statement_lines(each)]
    return Answer(text="\n".join([*lines, *note]), data=asdict(done))


def statement_lines(done: ReflectionResult) -> list[str]:
    """Return the statements of a result, each with its sources."""
    return [f"- {one_line(one.text)} [{', '.join(one.sources)}]" for one in done.statements]


def heritage(nothing: None, call: Call) -> Answer:
    id_ = call.arguments["memory_id"]
    return Answer(text=f"{NAME} Heritage of {id_} set", data={"memory_id": id_})


def heritage_lines(memory: MemoryRecord) -> list[str]:
    """Return the heritage of a memory as indented lines."""
    chains = _chains(memory)
    lines = [
        line
        for title, texts in chains.items()
        for line in (f"  {title}", *(f"    {text}" for text in texts))
    ]
    return ["Heritage", *lines] if chains else []


def heritage_tree(memory: MemoryRecord) -> str:
    """Return the heritage of a memory as a tree for a terminal."""
    from rich.console import Console  # 50 ms that only a terminal pays
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text("Heritage", "bold"), guide_style="dim")
    for title, texts in _chains(memory).items():
        branch = tree.add(Text(title, "cyan"))
        for text in texts:
            branch.add(Text(text))
    console = Console(force_terminal=True)
    with console.capture() as captured:
        console.print(tree)
    return captured.get().rstrip("\n")


def with_heritage(
    memory: MemoryRecord, before: list[str], after: list[str], data: Mapping[str, object]
) -> Answer:
    """Return the answer that shows a memory: lines before and after its heritage, which a
    terminal shows as a tree."""

    def draw() -> str:
        head, tail = ("\n".join(lines) for lines in (before, after))
        return "\n".join(
            [paint(safe(head)), *([heritage_tree(memory)] if _chains(memory) else []), safe(tail)]
        )

    return Answer(text="\n".join([*before, *heritage_lines(memory), *after]), data=data, draw=draw)


def _chains(memory: MemoryRecord) -> dict[str, list[str]]:
    """Return the lists of a heritage that are not empty, by title. Another program may have
    written anything there."""
    stored = memory.heritage_chain or {}
    lists = {
        title: value for key, title in _TITLES.items() if isinstance(value := stored.get(key), list)
    }
    return {
        title: [one_line(str(text)) for text in texts] for title, texts in lists.items() if texts
    }


# --- the graph ---

_BAR = 10  # characters of a whole bar
_QUARANTINED_COLUMNS = ("id", "agent", "stored", "text")
_DONE = {"activate": "Activated", "reject": "Rejected", "keep_both": "Kept both", "undo": "Undone"}


def claim_outcome(memory: MemoryRecord) -> str:
    """Return the lines that say what the claim of a stored memory led to; without one, an empty
    text."""
    if memory.status == Status.QUARANTINED:
        return "\nIt is quarantined. Decide with: memory-mesh review"
    return "".join(f"\nIt supersedes {id_}" for id_ in memory.supersedes)


def feedback(memory: MemoryRecord, call: Call) -> Answer:
    counts = (
        f"{counted(memory.reinforcements, 'reinforcement')}, {counted(memory.disputes, 'dispute')}"
    )
    importance = "" if memory.importance is None else f", importance {memory.importance:.2f}"
    return Answer(
        text=f"{NAME} Record {memory.id} is {memory.status}: {counts}{importance}",
        data=asdict(memory),
    )


def graph_stored(done: "Stored", call: Call) -> Answer:
    """Render what became of a memory and its claim."""
    line = f"{NAME} Stored record {done.id}" + ("; it is quarantined" if done.quarantined else "")
    return Answer(text=line, data=asdict(done))


def graph_found(results: "GraphResults", call: Call) -> Answer:
    rows = [(one.id, f"{one.score:.2f}", preview(one_line(one.content))) for one in results]
    data = {"count": len(rows), "results": [asdict(one) for one in results], "meta": results.meta}
    return Answer(text=_titled(counted(len(rows), "result"), rows), data=data, rows="results")


def reached(found: "Sequence[Reached]", call: Call) -> Answer:
    rows = [
        (f"{one.distance}", one.link_type, one.id, preview(one_line(one.memory.content)))
        for one in found
    ]
    data = {"count": len(rows), "reached": [asdict(one) for one in found]}
    return Answer(text=_titled(counted(len(rows), "memory"), rows), data=data, rows="reached")


def linked(link: Link, call: Call) -> Answer:
    return Answer(
        text=f"{NAME} Linked {link.ref} to {link.target}: {link.link_type}", data=asdict(link)
    )


def unlinked(removed: bool, call: Call) -> Answer:  # noqa: FBT001  (the result of the method)
    return Answer(
        text=f"{NAME} {'Removed the link' if removed else 'There is no such link'}",
        data={"removed": removed},
    )


def _titled(title: str, rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([f"{NAME} {title}", *([aligned(rows)] if rows else [])])


def quarantined(memories: Sequence[MemoryRecord], call: Call) -> Answer:
    """Render the memories that wait for a review, and how to decide."""
    rows = [
        (one.id, one.agent_id or "–", one.created_at, preview(one_line(one.content)))
        for one in memories
    ]
    title = f"{counted(len(rows), 'memory')} quarantined"
    how = "Decide with: memory-mesh review" if rows else ""
    return Answer(
        text="\n".join(filter(None, (f"{NAME} {title}", aligned(rows), how))),
        data={"count": len(rows), "memories": [asdict(one) for one in memories]},
        rows="memories",
        draw=lambda: table(title, _QUARANTINED_COLUMNS, rows) + how,
    )


def conflicts(found: Sequence[ClaimConflict], call: Call) -> Answer:
    """Render conflicts, each with both memories and the reason, and how it was resolved."""
    status = call.arguments.get("status", "pending")
    lines = [f"{NAME} {counted(len(found), f'{status} conflict')}"]
    for one in found:
        how = one_line(
            ": ".join(
                str(one.detail[name]) for name in ("resolution", "reason") if one.detail.get(name)
            )
        )
        lines += [
            one.id,
            f"  new       {one.ref}",
            f"  existing  {one.target}",
            f"  why       {one_line(one.why or 'unknown')}",
        ]
        lines += [f"  resolved  {how}"] if one.status == "resolved" else []
    if found and status == "pending":
        lines.append(
            "Resolve one with: memory-mesh conflicts --resolve CONFLICT --keep new|existing|both"
        )
    return Answer(
        text="\n".join(lines),
        data={"count": len(found), "conflicts": [asdict(one) for one in found]},
        rows="conflicts",
    )


def reviewed(done: "Reviewed", call: Call) -> Answer:
    """Render a decision: what became of the memory, and what else changed."""
    outcome = one_line(done.note) if done.note else f"is {done.memory.status}"
    lines = [f"{NAME} {_DONE[done.action]}: record {done.memory.id} {outcome}"]
    lines += [
        f"Record {one.id} is {one.status}: {preview(one_line(one.content))}" for one in done.changed
    ]
    lines += [f"Conflict {one.id} is {one.status}" for one in done.conflicts]
    return Answer(text="\n".join(lines), data=asdict(done))


def explained_memory(found: "MemoryExplanation", call: Call) -> Answer:
    """Render what is known about a memory, with its trust as bars and its supersessions and
    links as a tree."""
    data = asdict(found)
    data["trust"] = {**asdict(found.trust), "value": found.trust.value}
    tree = list(_tree(found))
    return Answer(
        text="\n".join(
            [
                *explanation_lines(found, call.arguments.get("as_of")),
                *(["", *tree] if len(tree) > 1 else []),
            ]
        ),
        data=data,
    )


def explanation_lines(found: "MemoryExplanation", asked: object = None) -> Iterator[str]:
    """Yield the lines of an explanation, without the tree; with a time, also whether the memory
    was valid then."""
    memory = found.memory
    yield f"{NAME} Record {memory.id} is {found.status}{_since(found)}"
    yield one_line(memory.content)
    yield ""
    yield from claim_lines(found.claim)
    if asked:
        yield f"It was {'' if found.valid else 'not '}valid at {one_line(str(asked))}"
    yield from trust_lines(found.trust)
    source = found.provenance.get("source")
    stored = f"Stored by {memory.agent_id or 'unknown'} at {memory.created_at}"
    seen = f", stored by {found.sightings} agents or sessions" if found.sightings > 1 else ""
    yield one_line(f"{stored}, source: {source or 'unknown'}{seen}")
    for one in found.conflicts:
        other = one.target if one.ref == memory.id else one.ref
        resolution = one.detail.get("resolution")
        yield one_line(
            f"Conflict {one.status} with {other}: {one.why or 'unknown'}"
            + (f" ({resolution})" if resolution else "")
        )


def claim_lines(claim: "Claim | None") -> Iterator[str]:
    """Yield the line of a claim with its window; nothing without one."""
    if claim is None:
        return
    window = [f"from {claim.window.start}"] if claim.window.start else []
    window += [f"until {claim.window.end}"] if claim.window.end else []
    scope = "" if claim.session_id is None else f", in session {claim.session_id}"
    shared = "" if claim.exclusive else ", beside other values"
    when = f", valid {' '.join(window)}" if window else ""
    yield one_line(
        f"Claim: {claim.subject} · {claim.predicate} = {claim.value}{when}{scope}{shared}"
    )


def trust_lines(trust: "Trust") -> Iterator[str]:
    """Yield the trust and its parts, each with a bar."""
    yield f"Trust  {_bar(trust.value)}  {trust.value:.2f}"
    parts = {
        "base": trust.base,
        "corroboration": trust.corroboration,
        "feedback": trust.feedback,
        "age": trust.age,
    }
    for name, value in parts.items():
        if name == "base" or abs(value) >= 0.005:
            yield f"  {name:<13}  {value:+.2f}  {_bar(value)}".rstrip()
    if trust.least_source is not None:
        yield (
            f"  {'at most':<13}   {trust.least_source:.2f}  {_bar(trust.least_source)}  the least "
            "trusted source"
        ).rstrip()


def _bar(value: float) -> str:
    return "█" * min(_BAR, round(abs(value) * _BAR))


def _since(found: "MemoryExplanation") -> str:
    if (change := found.status_change) is None:
        return ""
    why = f": {one_line(change.why)}" if change.why else ""
    return f" since {change.created_at}, by {change.action}{why}"


# --- links and contexts ---


def links(found: Sequence["MemoryLink"], call: Call) -> Answer:
    """Render the links of a memory, each with the text at its other end."""
    rows = [
        (
            "→" if one.direction == "outgoing" else "←", one.link_type,
            "" if one.similarity is None else f"{one.similarity:.2f}", one.memory.id,
            preview(one_line(one.memory.content)),
        )
        for one in found
    ]  # fmt: skip
    title = counted(len(rows), "link")
    return Answer(
        text=_titled(title, rows),
        data={"count": len(rows), "links": [asdict(one) for one in found]},
        rows="links",
        draw=lambda: table(title, ("", "type", "similarity", "id", "text"), rows),
    )


def context(found: "GraphContext", call: Call) -> Answer:
    """Render a context: the text alone, so that it can be piped into a prompt; with `explain`,
    the decisions too."""
    lines = (
        [found.text] if found else [f"{NAME} {found.note or 'no memory is relevant to the query'}"]
    )
    if call.arguments.get("explain"):
        lines += [
            "",
            f"{NAME} {counted(len(found.memories), 'memory')}, {counted(found.tokens, 'token')}",
            *_decisions(found),
        ]
    data = {
        "text": found.text, "tokens": found.tokens, "note": found.note, "left_out": found.left_out,
        "meta": found.meta, "memories": [asdict(one) for one in found.memories],
        "decisions": [asdict(one) for one in found.decisions],
    }  # fmt: skip
    size = f"{counted(len(found.memories), 'memory')}, {counted(found.tokens, 'token')}"
    return Answer(text="\n".join(lines), data=data, rows="memories", note=size if found else "")


def _decisions(found: "GraphContext") -> Iterator[str]:
    rows = [
        (
            each.left_out or "shown", f"{each.relevance:.2f}", f"{each.value:.3f}",
            f"{each.tokens:,}", f"{each.density:.3g}", each.memory.id,
            f"{each.link_type} of {each.linked_to}" if each.linked_to else "",
            preview(one_line(each.memory.content)),
        )
        for each in found.decisions
    ]  # fmt: skip
    if rows:
        yield aligned([("", "chance", "value", "tokens", "density", "id", "link", "text"), *rows])
    if found.left_out:
        yield "Left out: " + ", ".join(
            f"{count:,} {reason}" for reason, count in sorted(found.left_out.items())
        )


# --- episodes ---


def episodes(found: "Sequence[Episode]", call: Call) -> Answer:
    """Render episodes, newest first."""
    rows = [
        (
            one.id, f"{one.start[:16]}Z – {one.end[:16]}Z", f"{one.count:,}",
            one_line(one.session_id or "–"), one_line(", ".join(one.speakers or one.agents)),
            one_line(one.title),
        )
        for one in found
    ]  # fmt: skip
    title, heads = (
        counted(len(rows), "episode"),
        ("id", "time", "memories", "session", "who", "about"),
    )
    return Answer(
        text=_titled(title, [heads, *rows] if rows else []),
        data={"count": len(rows), "episodes": [asdict(one) for one in found]},
        rows="episodes",
        draw=lambda: table(title, heads, rows),
    )


def episode_summary(done: "ReflectionResult", call: Call) -> Answer:
    """Render the statements about an episode, each with its sources."""
    lines: list[str] = []
    for each in (done, *done.others):
        stored = f", stored as {each.memory_id}" if each.memory_id else ""
        within = f" in {one_line(str(each.project))}" if done.others else ""
        lines += [
            f"{NAME} {counted(len(each.statements), 'statement')}, {each.method}{stored}{within}",
            *statement_lines(each),
        ]
    lines += [f"{NAME} Note: {one_line(done.note)}"] if done.note else []
    return Answer(text="\n".join(lines), data=asdict(done))


# --- the tree ---


def _tree(found: "MemoryExplanation") -> Iterator[str]:
    """Yield the newest memory of the chain with what it supersedes below it, and the links below
    the explained memory."""
    own = found.memory.id
    steps = found.supersessions
    texts = {own: found.memory.content, **found.contents}
    texts |= {step.older: step.older_content for step in steps if step.older_content}
    texts |= {step.newer: step.newer_content for step in steps if step.newer_content}
    below: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        why = f" ({one_line(step.why)})" if step.why else ""
        below.setdefault(step.newer, []).append(
            (step.older, f"supersedes{f' since {step.at}' if step.at else ''}{why}")
        )
    root, visited = own, {own}
    while (
        up := next((step.newer for step in steps if step.older == root), None)
    ) and up not in visited:
        root = up
        visited.add(up)
    for link in found.links:
        other = link.target if link.ref == own else link.ref
        if link.link_type != "supersedes":
            similarity = "" if link.similarity is None else f" {link.similarity:.2f}"
            below.setdefault(own, []).append(
                (other, f"{link.link_type}{similarity} {'→' if link.ref == own else '←'}")
            )
    yield _node(root, texts, own)
    yield from _branches(root, below, texts, own, {root}, "")


def _branches(
    at: str,
    below: dict[str, list[tuple[str, str]]],
    texts: dict[str, str],
    own: str,
    visited: set[str],
    indent: str,
) -> Iterator[str]:
    children = below.get(at, [])
    for number, (child, label) in enumerate(children, start=1):
        last = number == len(children)
        yield f"{indent}{'└─' if last else '├─'} {label} {_node(child, texts, own)}"
        if child not in visited:
            visited.add(child)
            yield from _branches(
                child, below, texts, own, visited, f"{indent}{'   ' if last else '│  '}"
            )


def _node(id_: str, texts: dict[str, str], own: str) -> str:
    text = (
        f"“{preview(one_line(texts[id_]), 50)}”"
        if id_ in texts
        else "(erased, or of another agent)"
    )
    return f"{id_} {text}{'  ◀ this one' if id_ == own else ''}"


# --- skills ---


def skill_ingested(skill: SkillRecord, call: Call) -> Answer:
    line = f"{NAME} Ingested skill {skill.id}: {one_line(skill.name)}, revision {skill.revision}"
    return Answer(text=line + masked(skill.redactions), data=asdict(skill))


def skills_found(results: Sequence[SkillResult], call: Call) -> Answer:
    """Render skills for a query, each with its score and the parts of it."""
    lines = [f"{NAME} Found {counted(len(results), 'skill')}."]
    for n, one in enumerate(results, start=1):
        found = ", ".join(
            f"{name} {part:.2f}" for name, part in one.keyword_fractions.items() if part
        )
        vector = "none" if one.vector_score is None else f"{one.vector_score:.2f}"
        lines += [
            "",
            f"--- SKILL {n}: {one.id} [SCORE: {one.score:.2f}] ---",
            f"{one_line(one.name)}: {one_line(one.intent)}",
        ]
        lines.append(
            f"{_use(one)} | Keywords: {one.keyword_score:.2f}{f' ({found})' if found else ''} | "
            f"Vector: {vector}"
        )
    data = {"count": len(results), "skills": [asdict(one) for one in results]}
    return Answer(text="\n".join(lines), data=data, rows="skills")


def skills_listed(found: Sequence[SkillRecord], call: Call) -> Answer:
    """Render skills, one on each line: id, reliability, uses, name, intent."""
    rows = [
        (
            one.id,
            f"{one.reliability:.2f}",
            str(one.use_count),
            one_line(one.name),
            one_line(one.intent),
        )
        for one in found
    ]
    title = counted(len(found), "skill")
    return Answer(
        text=f"{NAME} {title}." + (f"\n{aligned(rows)}" if rows else ""),
        data={"count": len(found), "skills": [asdict(one) for one in found]},
        rows="skills",
        draw=lambda: table(title, ("id", "reliability", "used", "name", "intent"), rows),
    )


def skill_used(update: ReliabilityUpdate, call: Call) -> Answer:
    change = (
        f"reliability {update.previous:.2f} → {update.reliability:.2f}, used "
        f"{counted(update.use_count, 'time')}"
    )
    return Answer(text=f"{NAME} Skill {update.id}: {change}", data=asdict(update))


def skills_pruned(result: PruneResult, call: Call) -> Answer:
    lines = [
        f"{NAME} Archived {counted(result.pruned_count, 'skill')}, {result.total_remaining} left"
    ]
    return Answer(text="\n".join([*lines, *result.ids]), data=asdict(result))


def skills_synced(folders: Sequence[Ingested], call: Call) -> Answer:
    """Render what was read from each folder; the exit code is 1 if a file could not be read."""
    lines, problems = list[str](), list[str]()
    for done in folders:
        counts = (
            f"{done.added} added, {done.updated} updated, {done.unchanged} unchanged, "
            f"{len(done.failed)} failed"
        )
        lines.append(f"{NAME} Read {one_line(done.root)}: {counts}, {len(done.gone)} gone")
        lines += [
            f"Gone: {one_line(one.source)}; its skill stays until `memory-mesh delete {one.id}`"
            for one in done.gone
        ]
        problems += [f"{done.root}/{failed.source}: {failed.reason}" for failed in done.failed]
    none = f"{NAME} No folders are set in skill_directories"
    data = {"folders": [asdict(done) for done in folders]}
    return Answer(
        text="\n".join(lines) or none,
        data=data,
        rows="folders",
        code=1 if problems else 0,
        problems=problems,
    )


def _use(skill: SkillRecord) -> str:
    last = f", last {skill.last_used}" if skill.last_used else ""
    return f"Reliability: {skill.reliability:.2f} | Used: {skill.use_count}{last}"


# --- upkeep ---

_MAX_IDS = 20


def decayed(done: "Decayed", call: Call) -> Answer:
    """Render what was archived, erased and cleaned, and how to do it after a dry run."""
    would = "Would archive" if done.dry_run else "Archived"
    erased = f", {'erase' if done.dry_run else 'erased'} {len(done.erased)}" if done.erased else ""
    links = (
        f", {'remove' if done.dry_run else 'removed'} {counted(done.links, 'broken link')}"
        if done.links
        else ""
    )
    lines = [
        f"{NAME} {would} {len(done.archived)} of {counted(done.examined, 'memory')}{erased}{links}"
    ]
    shown = [*done.archived, *(f"{id_} (erased)" for id_ in done.erased)]
    lines += shown[:_MAX_IDS] + (
        [f"… and {len(shown) - _MAX_IDS} more; --json shows all"] if len(shown) > _MAX_IDS else []
    )
    if done.dry_run and (shown or done.links):
        lines.append("Nothing was changed; add --apply to do it")
    return Answer(text="\n".join(lines), data=asdict(done))


def compressed(done: "Compressed", call: Call) -> Answer:
    """Render the digests, and what was archived."""
    archived = f", archived {counted(len(done.archived), 'memory')}" if done.archived else ""
    lines = [f"{NAME} Stored {counted(len(done.digests), 'digest')}{archived}"]
    lines += [
        f"{one.id} of {len(one.sources)}: {preview(one_line(one.content))}" for one in done.digests
    ]
    return Answer(text="\n".join(lines), data=asdict(done))


def consolidated(done: "Consolidated", call: Call) -> Answer:
    """Render the steps of each phase, and how to do them after a dry run."""
    data = asdict(done)
    phases = {name: steps for name, steps in data.items() if name != "dry_run"}
    total = sum(map(len, phases.values()))
    lines = [f"{NAME} {'Would make' if done.dry_run else 'Made'} {counted(total, 'change')}"]
    for name, steps in phases.items():
        lines.append(f"{name}: {len(steps)}")
        lines += [
            f"  {one['action']} {one['memory_id'] or 'new'}: {one_line(one['why'])}"
            for one in steps[:_MAX_IDS]
        ]
        lines += (
            [f"  … and {len(steps) - _MAX_IDS} more; --json shows all"]
            if len(steps) > _MAX_IDS
            else []
        )
    if done.dry_run and total:
        lines.append("Nothing was changed; add --apply to do it")
    return Answer(text="\n".join(lines), data=data)


def unarchived(memory: MemoryRecord, call: Call) -> Answer:
    return Answer(text=f"{NAME} Record {memory.id} is {memory.status}", data=asdict(memory))


def hooks(found: "Sequence[HookStatus]", call: Call) -> Answer:
    """Render what waits for each hook. The exit code of a retry is 1 if something still waits
    for a hook of these settings."""
    waiting, dead = sum(one.waiting for one in found), sum(one.dead_letters for one in found)
    summary = (
        f"{NAME} {counted(len(found), 'hook')}, {counted(waiting, 'event')} waiting, "
        f"{counted(dead, 'dead letter')}"
    )
    rows = [
        (one_line(one.name), f"{one.waiting} waiting", f"{one.dead_letters} dead", _hook_note(one))
        for one in found
    ]
    left = any(one.waiting or one.dead_letters for one in found if one.configured)
    return Answer(
        text=f"{summary}\n{aligned(rows)}"
        if rows
        else f"{summary}; the option writethrough names some",
        data={"count": len(found), "hooks": [asdict(one) for one in found]},
        rows="hooks",
        code=1 if left and call.operation.name == "hooks retry" else 0,
    )


def _hook_note(hook: "HookStatus") -> str:
    if not hook.configured:
        return "of another program"
    if not hook.failures:
        return "ok"
    after = f", next attempt {hook.next_attempt}" if hook.waiting and hook.next_attempt else ""
    return one_line(f"failed {counted(hook.failures, 'time')}{after}: {hook.error}")
