"""What memory knows about a goal before an agent plans, and the decisions of a run as memories."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from memory_mesh.core.checks import whole_number
from memory_mesh.core.errors import NotFound, StoreReadOnly, shown
from memory_mesh.core.intake import NewText, Terms
from memory_mesh.core.learning import DerivedScope
from memory_mesh.core.model import Kind, Memory, Value
from memory_mesh.core.safety.fence import MIN_BOUNDARY_DIGITS
from memory_mesh.core.text import shortened
from memory_mesh.core.traces.layout import Project
from memory_mesh.core.traces.planning import FailedRun, KnownLearning, PlanContext, plan_text
from memory_mesh.flows import trace_index, trace_learnings, traces
from memory_mesh.flows.context import Context
from memory_mesh.flows.embed import token_counter
from memory_mesh.flows.search import checked_limit

_CANDIDATES = 50  # similar runs that are read; those of one outcome must not hide the others
_MAX_CONTEXT_CHARS = 2000


def plan_context(
    context: Context, goal: object, *, project: object = None, limit: object = 3, max_tokens: object = None
) -> PlanContext:
    """Return what worked, what failed and what was learnt in runs with a similar goal, each with traces to cite."""
    most = checked_limit(limit)
    tokens = None if max_tokens is None else whole_number("max_tokens", max_tokens)
    best = traces.find_similar(context, goal, limit=max(_CANDIDATES, most))
    own = trace_index.project_of(context, project)
    with suppress(StoreReadOnly):
        trace_learnings.take_over_edits(context, own)
    learnings = trace_learnings.learnings_from(context, [memory.id for memory, _ in best])
    approaches = {source: str(row.metadata.get("recommended_approach")) for row in reversed(learnings) for source in row.sources}
    matches = [traces.match_of(memory, score, approaches.get(memory.id)) for memory, score in best]
    failed = [
        FailedRun(goal=match.goal, similarity=score, trace_id=match.trace_id, avoid=trace_learnings.texts(memory, "avoid"))
        for match, (memory, score) in zip(matches, best, strict=True)
        if not match.success
    ]
    found = PlanContext(
        goal=str(goal),
        worked=tuple([match for match in matches if match.success][:most]),
        failed=tuple(failed[:most]),
        learnings=tuple(_known(learnings, [match.trace_id for match in matches])[:most]),
        project_context=_project_context(context, own),
    )
    boundary = context.ids.salt()[:MIN_BOUNDARY_DIGITS]
    text, left_out = plan_text(found, boundary, max_tokens=tokens, count=token_counter(context))
    return replace(found, text=text, left_out=left_out)


def _project_context(context: Context, project: Project) -> str:
    """Return what people wrote into the context file of a project; nothing if it is as it was created."""
    text = context.open_traces().read(project.context).decode("utf-8", "replace")
    is_empty = text == project.files[project.context]
    return "" if is_empty else shortened(context.query_gate().redact(text.strip()), _MAX_CONTEXT_CHARS)


def _known(learnings: Sequence[Memory], trace_ids: Sequence[str]) -> list[KnownLearning]:
    """Return learnings in the order of the runs that they are drawn from, each with those runs first."""
    order = {id_: at for at, id_ in enumerate(trace_ids)}
    found: list[KnownLearning] = []
    for row in learnings:
        cited = sorted(trace_learnings.texts(row, "trace_ids"), key=lambda id_: order.get(id_, len(order)))
        learning_id = str(row.metadata["learning_id"])
        found.append(KnownLearning(learning=trace_learnings.learning_of(row), learning_id=learning_id, trace_ids=tuple(cited)))
    return sorted(found, key=lambda each: order.get(each.trace_ids[0], len(order)))


def keep_decisions(context: Context, trace_id: object) -> list[Memory]:
    """Store each decision of a trace as a memory of the category `decision`. A second call stores nothing new.

    It is erased with the trace.
    """
    trace = traces.get(context, trace_id)
    if trace is None:
        raise NotFound(f"no trace {shown(trace_id, max_length=80)}", remedy="see memory-mesh trace list")
    rows = context.store.get(Kind.MEMORY, trace_index.ids_of(context, [trace.trace_id])).values()
    sources: list[Value] = [row.id for row in rows]
    project = DerivedScope.of([*map(Memory.of, rows)], project=context.reader.project).project
    texts = [
        NewText(
            decision,
            {"category": "decision", "event_time": trace.timestamp, "trace_id": trace.trace_id, "project": project},
            key=f"decision:{trace.trace_id}:{number}",
            terms=Terms(claims="off"),
        )
        for number, decision in enumerate(trace.decisions, start=1)
    ]
    return trace_learnings.store(context, [(text, sources) for text in texts])
