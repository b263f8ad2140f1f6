"""Views of traces: what was executed, and what was done for similar goals."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from memory_mesh.core.errors import NotFound, shown
from memory_mesh.core.model import MemoryRecord
from memory_mesh.interfaces.render import NAME, Answer, aligned, counted, one_line
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:  # every command loads the views, and few need traces
    from memory_mesh.core.traces import Fault, PatternMatch, Trace
    from memory_mesh.core.traces.learnings import Consolidation
    from memory_mesh.core.traces.planning import PlanContext
    from memory_mesh.core.traces.retention import Retention
    from memory_mesh.flows.traces import Traces


def traces_listed(found: "Traces", call: Call) -> Answer:
    """Render traces, one line each, and what is wrong in the files."""
    rows = [(each.trace_id, each.timestamp[:19], each.status, f"{each.duration_ms:,} ms", one_line(each.goal)) for each in found]
    summary = f"{NAME} {counted(len(found), 'trace')}"
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={
            "count": len(found), "traces": [asdict(each) for each in found], "faults": [asdict(each) for each in found.faults],
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
        lines.append(f"{each.similarity:.2f}  {each.trace_id}  {'success' if each.success else 'failure'}  {one_line(each.goal)}")
        lines += [f"      tools: {one_line(', '.join(each.tools_used))}"] if each.tools_used else []
        lines += [f"      approach: {one_line(each.suggested_approach)}"] if each.suggested_approach else []
    data = {"count": len(found), "matches": [asdict(each) for each in found]}
    return Answer(text="\n".join(lines), data=data, rows="matches")


def trace_planned(found: "PlanContext", call: Call) -> Answer:
    note = f"A plan of {counted(len(found.text), 'character')}" if found.text else "No trace is similar to the goal"
    return Answer(text=found.text, data=asdict(found), note=note)


def traces_consolidated(done: "Consolidation", call: Call) -> Answer:
    """Render the learnings of a project, with the new and changed ones marked."""
    would = "Would write" if done.dry_run else "Wrote"
    skills = f", {counted(len(done.skills), 'skill')}" if done.skills else ""
    more = f"{counted(len(done.written), 'learning')}, {counted(done.decisions, 'decision')}{skills}"
    lines = [f"{NAME} {would} {more} from {counted(done.traces, 'trace')} of {one_line(done.project)}"]
    for each in done.patterns:
        new = "*" if each.learning_id in done.written else " "
        rate = f"{each.learning.rate}% of {each.learning.count}"
        lines.append(f"{new} {each.learning_id}  {rate:>12}  {one_line(each.learning.name)}")
    return Answer(text="\n".join(lines), data=asdict(done))


def traces_archived(done: "Consolidation", call: Call) -> Answer:
    """Render that the short-term memory of a project moved, and what was drawn from it."""
    answer = traces_consolidated(done, call)
    return replace(answer, text=f"{answer.text}\nThe short-term memory of {one_line(done.project)} is archived.")


def traces_retained(done: "Retention", call: Call) -> Answer:
    """Render what moved, or would move, and why."""
    lines = [f"{NAME} {counted(len(done.moves), 'move')} {'planned; nothing was changed' if done.dry_run else 'done'}"]
    lines += [f"{each.action} {each.count} of {one_line(each.project)}: {each.reason}" for each in done.moves]
    return Answer(text="\n".join(lines), data=asdict(done), rows="moves", problems=fault_lines(done.faults))


def fault_lines(faults: "Sequence[Fault]") -> list[str]:
    return [one_line(f"{each.file}:{each.line}: {each.what}") for each in faults]


def decisions_kept(kept: Sequence[MemoryRecord], call: Call) -> Answer:
    lines = [f"{NAME} {counted(len(kept), 'decision')}", *(f"{each.id}: {one_line(each.content)}" for each in kept)]
    data = {"count": len(kept), "memories": [asdict(each) for each in kept]}
    return Answer(text="\n".join(lines), data=data, rows="memories")
