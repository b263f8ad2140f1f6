"""Record executions as files and as memories, find those with a similar goal, and prepare plans.

A recorded trace is appended to the log of its project, then the experience log gets an entry, then
both are indexed in one write. After a crash in between, the next use completes what is missing
(`index.refresh`).
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from memory_mesh.core.errors import (
    InvalidInput,
    MemoryMeshError,
    NotFound,
    StoreReadOnly,
    fraction,
    iterable,
    shown,
    whole_number,
)
from memory_mesh.core.intake import NewText, Terms
from memory_mesh.core.language.safety.fence import MIN_BOUNDARY_DIGITS
from memory_mesh.core.learning import DerivedScope
from memory_mesh.core.model import (
    Compare,
    GivenTime,
    Kind,
    Memory,
    Status,
    Value,
    Vector,
    Where,
    all_of,
    equals,
    iso,
    parse_time,
    valid_in,
)
from memory_mesh.core.notes.files import Documents
from memory_mesh.core.ports import TraceFiles
from memory_mesh.core.search import Query
from memory_mesh.core.text import shortened
from memory_mesh.core.traces import (
    DECISION,
    DONE,
    Experience,
    PatternMatch,
    Trace,
    checked_experience,
    checked_trace,
    normalised,
    summarised_goal,
    with_texts,
    word_similarity,
)
from memory_mesh.core.traces.learnings import FailedRun, KnownLearning, PlanContext, plan_text
from memory_mesh.core.traces.schema import SYSTEM, SYSTEM_LOG, Project
from memory_mesh.flows.context import Context, intact, paged
from memory_mesh.flows.graph.links import cosine
from memory_mesh.flows.search.readable import about, is_readable, readable
from memory_mesh.flows.search.reads import MAX_LIMIT, checked_limit
from memory_mesh.flows.traces import index as trace_index
from memory_mesh.flows.traces import learnings as trace_learnings
from memory_mesh.flows.traces.index import TRACE, project_of
from memory_mesh.flows.write.embed import embed_query, token_counter

MAX_TOOL_RESULTS = 1000
_CANDIDATES = 50  # of the index, whose cosines are approximate
_STATUSES = (Status.ACTIVE.value, Status.ARCHIVED.value)
TimeWindow = tuple[GivenTime | None, GivenTime | None]
_log = logging.getLogger("memory_mesh")


class Traces(Documents[Trace]):
    """Traces, the newest first."""


class Experiences(Documents[Experience]):
    """Entries of the experience log, the newest first."""


# --- writing ---


def record(
    context: Context, goal: object, *, learnings: object = (), decisions: object = (),
    agents: object = (), project: object = None, recovered: object = False,
    tool_results: object = None, timestamp: object = None, **values: Any,
) -> Trace:  # fmt: skip
    """Write the trace of an execution and its entry of the experience log, masked, and index
    both."""
    context.check_enabled()
    context.file.check_writable()
    ms = context.clock()
    values["timestamp"] = iso(ms) if timestamp is None else timestamp
    values["learnings"] = (
        *_list("learnings", learnings),
        *(f"{DECISION}{each}" for each in _list("decisions", decisions)),
    )
    trace_id = context.ids.new("trace", ms).replace("_", "-")
    trace = with_texts(checked_trace(trace_id=trace_id, goal=goal, **values), _mask(context))
    trace = replace(trace, goal=summarised_goal(trace.goal))
    if not isinstance(recovered, bool) or (recovered and trace.status != "success"):
        raise InvalidInput(
            f"recovered is {shown(recovered)} and status {trace.status}",
            expected="a success for recovered=True",
        )
    results, place = _masked_results(context, tool_results), project_of(context, project)
    entry = trace_index.entry_values(
        place, trace, agents=[*map(_mask(context), _list("agents", agents))], recovered=recovered
    )
    checked_experience(**entry)
    trace_learnings.reopen(context, place)
    _write(context, place, trace, entry, results)
    trace_learnings.consolidate_due(context, place)
    return trace


def _write(
    context: Context,
    project: Project,
    trace: Trace,
    entry: dict[str, object],
    results: list[tuple[str, str]],
) -> None:
    files = context.open_traces()
    with files.locked(project.short_term):
        trace_index.create_project(files, project)
        clean = trace_index.is_indexed(context, files, project.log, clean=True)
        if not clean:
            trace_index.sync_project(context, files, project)
        trace_index.append_document(files, project.log, trace.text, clean=clean)
        context.step("traces.appended")
        trace_index.write_results(files, project, trace.trace_id, results)
        with files.locked(SYSTEM):
            logged = append_logged(context, files, entry)
            context.step("traces.logged")
            marks = {name: files.mark(name) for name in (project.log, SYSTEM_LOG)}
            trace_index.index(context, files, project, [(trace, logged)], marks=marks)


def append_logged(context: Context, files: TraceFiles, values: dict[str, object]) -> Experience:
    """Append an entry to the experience log, whose lock the caller has, after what others
    changed in it is indexed."""
    clean = trace_index.is_indexed(context, files, SYSTEM_LOG, clean=True)
    if not clean and files.mark(SYSTEM_LOG):
        trace_index.sync_log(context, files)
    return trace_index.append_entry(files, values, clean=clean)


def log_experience(
    context: Context, primary_goal: object, *, project: object, timestamp: object, **values: Any
) -> Experience:
    """Append one entry to the experience log, masked, and index it."""
    context.check_enabled()
    context.file.check_writable()
    values |= {
        "timestamp": iso(context.clock()) if timestamp is None else timestamp,
        "primary_goal": primary_goal,
    }
    masked = with_texts(
        checked_experience(**values, project_name=project_of(context, project).name), _mask(context)
    )
    masked = replace(masked, primary_goal=summarised_goal(masked.primary_goal))
    entry = {name: getattr(masked, name) for name in (*values, "project_name")}
    files = context.open_traces()
    with files.locked(SYSTEM):
        logged = append_logged(context, files, entry)
        texts = [trace_index.experience_text(context, logged)]
        trace_index.store(context, files, texts, {SYSTEM_LOG: files.mark(SYSTEM_LOG)})
    return logged


class Run:
    """An execution that is under way: what is known of it so far, until its trace is recorded at
    its end."""

    def __init__(self, goal: object, values: dict[str, Any], show: Callable[["Run"], None]) -> None:
        self.goal, self._values, self._show = goal, values, show
        self._plan = str(values.pop("plan", "") or "")
        self.status = "success"
        self.results = ""
        self.steps: list[tuple[str, str]] = []
        self.tools_used: list[str] = []
        self.tool_results: list[tuple[str, str]] = []
        self.files_created: list[str] = []
        self.learnings: list[str] = []
        self.decisions: list[str] = []
        self.trace: Trace | None = None  # after the end

    @property
    def plan(self) -> str:
        return self._plan

    @plan.setter
    def plan(self, text: str) -> None:
        self._plan = text
        self._show(self)

    def step(self, text: str, status: str = DONE) -> None:
        """Add a step that was executed, and how it ended."""
        checked_trace(goal=DONE, steps=[(text, status)])  # while the caller can still correct it
        self.steps.append((text, status))

    def tool(self, name: str, result: str | None = None) -> None:
        """Add a tool that was used, and what it returned."""
        checked_trace(goal=DONE, tools_used=[name], results="" if result is None else result)
        self.tools_used += [name] if name not in self.tools_used else []
        self.tool_results += [] if result is None else [(name, result)]

    def created(self, path: str) -> None:
        """Add a file that was created."""
        checked_trace(goal=DONE, files_created=[str(path)])
        self.files_created.append(str(path))

    def learn(self, text: str) -> None:
        """Add what was learnt."""
        checked_trace(goal=DONE, learnings=[text])
        self.learnings.append(text)

    def decide(self, text: str) -> None:
        """Add a decision, and why it was made."""
        checked_trace(goal=DONE, learnings=[text])
        self.decisions.append(text)

    def values(self, ms: int) -> dict[str, Any]:
        """Return what is recorded of it after so many milliseconds."""
        names = (
            "status",
            "results",
            "plan",
            "steps",
            "tools_used",
            "tool_results",
            "files_created",
            "learnings",
            "decisions",
        )
        return {**self._values, **{name: getattr(self, name) for name in names}, "duration_ms": ms}


@contextmanager
def run(context: Context, goal: object, values: dict[str, Any]) -> Iterator[Run]:
    """Time an execution and record it: a success, or a failure with the exception, which is
    raised again."""
    context.check_enabled()
    context.file.check_writable()
    checked_trace(goal=goal)
    start, project = context.clock(), project_of(context, values.get("project"))
    current = Run(goal, values, lambda each: _show(context, project, each, start))
    _show(context, project, current, start)
    try:
        yield current
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code:  # sys.exit(0) is not a failure
            current.status = "failure"
            current.learnings.append(_described(error))
        try:
            current.trace = record(context, goal, **current.values(max(0, context.clock() - start)))
        except MemoryMeshError as second:  # the caller needs the first error
            _log.warning("the failed execution is not recorded: %s", second)
        raise
    else:
        current.trace = record(context, goal, **current.values(max(0, context.clock() - start)))
    finally:
        with suppress(MemoryMeshError):
            context.open_traces().write(project.cache, b"")


def _described(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}".strip().removesuffix(":")
    except Exception:  # noqa: BLE001  (the message of an exception may raise another one)
        return type(error).__name__


def _show(context: Context, project: Project, current: Run, start: int) -> None:
    """Write to the context cache what is under way."""
    mask = _mask(context)
    goal, plan = summarised_goal(mask(str(current.goal))), mask(current.plan)
    files = context.open_traces()
    with files.locked(project.short_term):
        trace_index.create_project(files, project)
        files.write(
            project.cache,
            f"# {goal}\n\nStarted: {iso(start)}\n\n## Plan\n{plan}\n".encode("utf-8", "replace"),
        )


def _mask(context: Context) -> Callable[[str], str]:
    return context.gates.content().redact_markup


def _masked_results(context: Context, given: object) -> list[tuple[str, str]]:
    items = given.items() if isinstance(given, Mapping) else given or ()
    pairs = [tuple(each) for each in iterable("tool_results", items, expected="texts by tool")]
    if len(pairs) > MAX_TOOL_RESULTS or not all(
        len(pair) == 2 and all(isinstance(one, str) for one in pair) for pair in pairs
    ):
        raise InvalidInput(
            f"tool_results is {shown(given)}",
            expected=f"at most {MAX_TOOL_RESULTS:,} texts by tool",
        )
    mask = context.gates.content().redact
    return [(mask(tool), mask(text)) for tool, text in pairs]


def _list(name: str, value: object) -> list[Any]:
    found = list(iterable(name, value, expected="a list of texts"))
    if not all(isinstance(each, str) and each.strip() for each in found):
        raise InvalidInput(f"{name} is {shown(value)}", expected="a list of texts")
    return found


# --- reading ---


def traces(context: Context, *, project: object, limit: object, archived: object) -> Traces:
    """Return the traces in the files, the newest first."""
    most, files = whole_number("limit", limit, max_=MAX_LIMIT), context.open_traces()
    named = project is not None or context.reader.project is not None
    places = [project_of(context, project)] if named else trace_index.projects(files)
    found = [
        each
        for place in places
        for each in trace_index.traces_of(files, place, archived=bool(archived))
    ]
    every = sorted(
        (each for each in found if isinstance(each, Trace)), key=lambda each: each.timestamp
    )
    return Traces(every[::-1][:most], trace_index.faults_of(found))


def get(context: Context, trace_id: object) -> Trace | None:
    """Return a trace by its id, also from an archive; None if there is none."""
    if not isinstance(trace_id, str):
        raise InvalidInput(
            f"trace_id is {shown(trace_id)}", expected="a text such as trace-1760000000000-3fa9c2"
        )
    if context.reader.only_project:
        own = trace_index.traces_of(context.open_traces(), project_of(context, None), archived=True)
        return next(
            (each for each in own if isinstance(each, Trace) and each.trace_id == trace_id), None
        )
    return trace_index.find_trace(context.open_traces(), trace_id)


def experiences(context: Context, *, limit: object, archived: object) -> Experiences:
    """Return the entries of the experience log, the newest first."""
    most = whole_number("limit", limit, max_=MAX_LIMIT)
    found = list(trace_index.experiences_of(context.open_traces(), archived=bool(archived)))
    own = {project_of(context, None).name} if context.reader.only_project else None
    every = [
        each
        for each in found
        if isinstance(each, Experience) and (own is None or each.project_name in own)
    ]
    # Of which project an unreadable entry is cannot be told, so a reader of one project gets none.
    return Experiences(every[::-1][:most], trace_index.faults_of(found) if own is None else [])


def similar(
    context: Context, goal: object, *, limit: object = 3, min_similarity: object = 0.3,
    time_window: object = None, project: object = None, archived: object = True,
) -> list[PatternMatch]:  # fmt: skip
    """Return executions of the user with a similar goal, the most similar first."""
    best = find_similar(
        context,
        goal,
        limit=limit,
        min_similarity=min_similarity,
        time_window=time_window,
        project=project,
        archived=archived,
    )
    learnings = trace_learnings.learnings_from(context, [memory.id for memory, _ in best])
    return _matches(best, learnings)


def find_similar(
    context: Context, goal: object, *, limit: object, min_similarity: object = 0.3,
    time_window: object = None, project: object = None, archived: object = True,
) -> list[tuple[Memory, float]]:  # fmt: skip
    """Return the memories of executions with a similar goal, and how similar it is, the most
    similar first."""
    most, least = (
        whole_number("limit", limit, max_=MAX_LIMIT),
        fraction("min_similarity", min_similarity),
    )
    if not isinstance(goal, str):
        raise InvalidInput(f"goal is {shown(goal)}", expected="a text")
    query = normalised(context.gates.query().redact(goal.encode("utf-8", "replace").decode()))
    where = all_of(equals("category", TRACE), *_within(time_window))
    if project is not None:
        where = all_of(where, equals("project", project_of(context, project).name))
    statuses = _STATUSES if archived else _STATUSES[:1]
    if not query or not context.options.enable_memory:
        return []
    vector = embed_query(context, query, context.store.data_version())
    if vector is None:
        valid = valid_in(about(iso(context.clock()), ()))
        rows = paged(context, Kind.MEMORY, all_of(readable(context, statuses), valid, where))
        scored = [
            (memory, word_similarity(query, memory.content))
            for memory in map(Memory.of, intact(context, rows))
        ]
    else:
        scored = _nearest(context, vector, where, statuses, size=most + _CANDIDATES)
    best = [(memory, min(1.0, max(0.0, score))) for memory, score in scored]
    return sorted(
        (pair for pair in best if pair[1] >= least), key=lambda pair: (-pair[1], pair[0].id)
    )[:most]


def _nearest(
    context: Context, vector: Vector, where: Where, statuses: Sequence[str], *, size: int
) -> list[tuple[Memory, float]]:
    """Return memories with their cosine to a vector. The index only proposes: the cosines are
    those of the rows."""
    valid = about(at := iso(context.clock()), ())
    query = Query(
        tokens=[],
        vector=vector,
        reader=context.reader,
        at=at,
        statuses=statuses,
        where=where,
        periods=valid,
    )
    pool = context.index.snapshot(context.reader).candidates(query, size=size)
    rough = sorted(zip(pool.signals["vectors"], pool.ids, strict=True), key=lambda pair: -pair[0])[
        :size
    ]
    is_allowed = is_readable(context, statuses, where, valid=valid)
    rows = [
        row
        for row in context.store.get(Kind.MEMORY, [id_ for _, id_ in rough]).values()
        if is_allowed(row)
    ]
    return [(Memory.of(row), cosine(vector, row.vector)) for row in intact(context, rows)]


def _within(window: object) -> list[Where]:
    """Return the conditions of a range of times, both ends included; a day as its end is
    included as a whole."""
    if window is None:
        return []
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise InvalidInput(
            f"time_window is {shown(window)}", expected="(start, end), each a time or None"
        )
    start, end = (None if each is None else parse_time(each, "time_window") for each in window)
    if end is not None and ":" not in str(window[1]):
        end = f"{end[:10]}T23:59:59.999Z"
    return [
        *([] if start is None else [Compare("event_time", ">=", start)]),
        *([] if end is None else [Compare("event_time", "<=", end)]),
    ]  # fmt: skip


def _matches(
    best: Sequence[tuple[Memory, float]], learnings: Sequence[Memory]
) -> list[PatternMatch]:
    """Return matches as callers see them, each with what the newest of its learnings recommends."""
    approaches = {
        source: str(approach)
        for learning in reversed(learnings)
        if (approach := learning.metadata.get("recommended_approach"))
        for source in learning.sources
    }
    matches: list[PatternMatch] = []
    for memory, similarity in best:
        metadata = memory.metadata
        success = metadata.get("status") == "success"
        plan = str(metadata.get("plan") or "") if success else ""
        matches.append(PatternMatch(
            goal=memory.content, similarity=similarity, success=success,
            suggested_approach=approaches.get(memory.id) or plan or None,
            tools_used=trace_learnings.texts(memory, "tools_used"),
            trace_id=str(metadata.get("trace_id")),
        ))  # fmt: skip
    return matches


# --- planning ---

_PLAN_CANDIDATES = 50  # similar runs that are read; those of one outcome must not hide the others
_MAX_CONTEXT_CHARS = 2000


def plan_context(
    context: Context,
    goal: object,
    *,
    project: object = None,
    limit: object = 3,
    max_tokens: object = None,
) -> PlanContext:
    """Return what worked, what failed and what was learnt in runs with a similar goal, each with
    traces to cite."""
    most = checked_limit(limit)
    tokens = None if max_tokens is None else whole_number("max_tokens", max_tokens)
    best = find_similar(context, goal, limit=max(_PLAN_CANDIDATES, most))
    own = trace_index.project_of(context, project)
    with suppress(StoreReadOnly):
        trace_learnings.take_over_edits(context, own)
    learnings = trace_learnings.learnings_from(context, [memory.id for memory, _ in best])
    matches = _matches(best, learnings)
    failed = [
        FailedRun(
            goal=match.goal,
            similarity=score,
            trace_id=match.trace_id,
            avoid=trace_learnings.texts(memory, "avoid"),
        )
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
    """Return what people wrote into the context file of a project; nothing if it is as it was
    created."""
    text = context.open_traces().read(project.context).decode("utf-8", "replace")
    if text == project.files[project.context]:
        return ""
    return shortened(context.gates.query().redact(text.strip()), _MAX_CONTEXT_CHARS)


def _known(learnings: Sequence[Memory], trace_ids: Sequence[str]) -> list[KnownLearning]:
    """Return learnings in the order of the runs that they are drawn from, each with those runs
    first."""
    order = {id_: at for at, id_ in enumerate(trace_ids)}
    found: list[KnownLearning] = []
    for row in learnings:
        cited = sorted(
            trace_learnings.texts(row, "trace_ids"), key=lambda id_: order.get(id_, len(order))
        )
        found.append(
            KnownLearning(
                learning=trace_learnings.learning_of(row),
                learning_id=str(row.metadata["learning_id"]),
                trace_ids=tuple(cited),
            )
        )
    return sorted(found, key=lambda each: order.get(each.trace_ids[0], len(order)))


def keep_decisions(context: Context, trace_id: object) -> list[Memory]:
    """Store each decision of a trace as a memory of the category `decision`. A second call stores
    nothing new.

    It is erased with the trace.
    """
    trace = get(context, trace_id)
    if trace is None:
        raise NotFound(
            f"no trace {shown(trace_id, max_length=80)}", remedy="see memory-mesh trace list"
        )
    rows = context.store.get(Kind.MEMORY, trace_index.ids_of(context, [trace.trace_id])).values()
    sources: list[Value] = [row.id for row in rows]
    project = DerivedScope.of([*map(Memory.of, rows)], project=context.reader.project).project
    texts = [
        NewText(
            decision,
            {
                "category": "decision",
                "event_time": trace.timestamp,
                "trace_id": trace.trace_id,
                "project": project,
            },
            key=f"decision:{trace.trace_id}:{number}",
            terms=Terms(claims="off"),
        )
        for number, decision in enumerate(trace.decisions, start=1)
    ]
    return trace_learnings.store(context, [(text, sources) for text in texts])
