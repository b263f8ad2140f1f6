"""Views of skills: what was stored, found, used and archived."""

from collections.abc import Sequence
from dataclasses import asdict

from memory_mesh.core.learning import PruneResult, ReliabilityUpdate, SkillRecord, SkillResult
from memory_mesh.core.model import Ingested
from memory_mesh.interfaces.render import NAME, Answer, aligned, counted, masked, one_line, table
from memory_mesh.interfaces.values import Call


def skill_ingested(skill: SkillRecord, call: Call) -> Answer:
    line = f"{NAME} Ingested skill {skill.id}: {one_line(skill.name)}, revision {skill.revision}"
    return Answer(text=line + masked(skill.redactions), data=asdict(skill))


def skills_found(results: Sequence[SkillResult], call: Call) -> Answer:
    """Render skills for a query, each with its score and the parts of it."""
    lines = [f"{NAME} Found {counted(len(results), 'skill')}."]
    for n, one in enumerate(results, start=1):
        found = ", ".join(f"{name} {part:.2f}" for name, part in one.keyword_fractions.items() if part)
        vector = "none" if one.vector_score is None else f"{one.vector_score:.2f}"
        lines += ["", f"--- SKILL {n}: {one.id} [SCORE: {one.score:.2f}] ---", f"{one_line(one.name)}: {one_line(one.intent)}"]
        lines.append(f"{_use(one)} | Keywords: {one.keyword_score:.2f}{f' ({found})' if found else ''} | Vector: {vector}")
    data = {"count": len(results), "skills": [asdict(one) for one in results]}
    return Answer(text="\n".join(lines), data=data, rows="skills")


def skills_listed(found: Sequence[SkillRecord], call: Call) -> Answer:
    """Render skills, one on each line: id, reliability, uses, name, intent."""
    rows = [(one.id, f"{one.reliability:.2f}", str(one.use_count), one_line(one.name), one_line(one.intent)) for one in found]
    title = counted(len(found), "skill")
    return Answer(
        text=f"{NAME} {title}." + (f"\n{aligned(rows)}" if rows else ""),
        data={"count": len(found), "skills": [asdict(one) for one in found]},
        rows="skills",
        draw=lambda: table(title, ("id", "reliability", "used", "name", "intent"), rows),
    )


def skill_used(update: ReliabilityUpdate, call: Call) -> Answer:
    change = f"reliability {update.previous:.2f} → {update.reliability:.2f}, used {counted(update.use_count, 'time')}"
    return Answer(text=f"{NAME} Skill {update.id}: {change}", data=asdict(update))


def skills_pruned(result: PruneResult, call: Call) -> Answer:
    lines = [f"{NAME} Archived {counted(result.pruned_count, 'skill')}, {result.total_remaining} left"]
    return Answer(text="\n".join([*lines, *result.ids]), data=asdict(result))


def skills_synced(folders: Sequence[Ingested], call: Call) -> Answer:
    """Render what was read from each folder; the exit code is 1 if a file could not be read."""
    lines, problems = list[str](), list[str]()
    for done in folders:
        counts = f"{done.added} added, {done.updated} updated, {done.unchanged} unchanged, {len(done.failed)} failed"
        lines.append(f"{NAME} Read {one_line(done.root)}: {counts}, {len(done.gone)} gone")
        lines += [f"Gone: {one_line(one.source)}; its skill stays until `memory-mesh delete {one.id}`" for one in done.gone]
        problems += [f"{done.root}/{failed.source}: {failed.reason}" for failed in done.failed]
    none = f"{NAME} No folders are set in skill_directories"
    data = {"folders": [asdict(done) for done in folders]}
    return Answer(text="\n".join(lines) or none, data=data, rows="folders", code=1 if problems else 0, problems=problems)


def _use(skill: SkillRecord) -> str:
    last = f", last {skill.last_used}" if skill.last_used else ""
    return f"Reliability: {skill.reliability:.2f} | Used: {skill.use_count}{last}"
