"""The methods of `MemoryTraces`: what was executed and how it went, as files and as memories.

The docstrings are the reference of the public API.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from memory_mesh.api.handle import Handle
from memory_mesh.core.model import GivenTime, MemoryRecord
from memory_mesh.core.traces import Experience, PatternMatch, Trace
from memory_mesh.core.traces.learnings import Consolidation, PlanContext
from memory_mesh.core.traces.schema import Retention
from memory_mesh.flows.context import Context
from memory_mesh.flows.search import readable
from memory_mesh.flows.traces import index as trace_index
from memory_mesh.flows.traces import learnings as trace_learnings
from memory_mesh.flows.traces import traces as flow
from memory_mesh.flows.traces.traces import Experiences, Run, TimeWindow, Traces


class MemoryTraces(Handle):
    """Execution traces and the experience log: Markdown files below `traces_dir`, which people may
    read and edit.

    By default each store has its own: `traces` in the home folder for the default store, and a
    folder beside any other one, such as `memory.db-traces`. Each user has one of its own in it.
    Every trace and every entry of the log is a memory too, so that `search` and the other parts of
    the mesh find it. Secrets and personal data are masked before it is written.
    """

    # --- writing ---

    def record(
        self, goal: str, *, status: str = "success", duration_ms: int = 0, plan: str = "",
        steps: Sequence[str | tuple[str, str]] = (), results: str = "",
        learnings: Sequence[str] = (), decisions: Sequence[str] = (),
        tools_used: Sequence[str] = (), files_created: Sequence[str] = (),
        agents: Sequence[str] = (), project: str | None = None, recovered: bool = False,
        tool_results: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        timestamp: GivenTime | None = None,
    ) -> Trace:  # fmt: skip
        """Write one trace of an execution and one entry of the experience log, and return the trace
        as it is kept.

        `status` is `success` or `failure`; `recovered` says that a success came after a failure. Of
        the goal the first sentence is kept, at most 200 characters. A step is a text, or a text and
        how it ended. `tool_results` are kept as files, at most 20,000 characters each. Without a
        project the trace belongs to that of the mesh, or to `default`. Raises `InvalidInput` for an
        invalid value; nothing is written then.
        """
        return flow.record(
            self._context(), goal, status=status, duration_ms=duration_ms, plan=plan, steps=steps,
            results=results, learnings=learnings, decisions=decisions, tools_used=tools_used,
            files_created=files_created, agents=agents, project=project, recovered=recovered,
            tool_results=tool_results, timestamp=timestamp,
        )  # fmt: skip

    def run(
        self, goal: str, *, plan: str = "", agents: Sequence[str] = (), project: str | None = None
    ) -> AbstractContextManager[Run]:
        """Time an execution and record its trace at the end, as a context manager.

        It yields an object to add steps, tools, files, learnings and decisions to. An exception is
        recorded as a failure, with its type and its message as a learning, and raised again.
        """
        return flow.run(self._context(), goal, {"plan": plan, "agents": agents, "project": project})

    def log_experience(
        self, primary_goal: str, *, final_outcome: str = "success", project: str | None = None,
        components_used: Sequence[str] = (), files_created: int = 0, output_summary: str = "",
        execution_time_ms: int = 0, learnings_or_issues: str = "",
        timestamp: GivenTime | None = None,
    ) -> Experience:  # fmt: skip
        """Append one entry to the experience log, without a trace, and return it. Its number is
        never given again.

        `final_outcome` is `success`, `failure` or `success_with_recovery`.
        """
        return flow.log_experience(
            self._context(), primary_goal, final_outcome=final_outcome, project=project,
            components_used=components_used, files_created=files_created,
            output_summary=output_summary, execution_time_ms=execution_time_ms,
            learnings_or_issues=learnings_or_issues, timestamp=timestamp,
        )  # fmt: skip

    # --- reading ---

    def get_all(
        self, *, project: str | None = None, limit: int = 20, archived: bool = False
    ) -> Traces:
        """Return traces of a project, or else of that of the mesh, or else of all, the newest
        first.

        With `archived` those of the archives are among them. `faults` of the result is what is
        wrong in the files; the others are returned.
        """
        return flow.traces(self._fresh(), project=project, limit=limit, archived=archived)

    def get(self, trace_id: str) -> Trace | None:
        """Return a trace by its id, also from an archive; None if there is none."""
        return flow.get(self._fresh(), trace_id)

    def experiences(self, *, limit: int = 20, archived: bool = True) -> Experiences:
        """Return the entries of the experience log, the newest first; with `archived` also those
        that left the live log.

        `faults` of the result is what is wrong in the log, with file, line and reason; the other
        entries are returned.
        """
        return flow.experiences(self._fresh(), limit=limit, archived=archived)

    def similar(
        self, goal: str, limit: int = 3, min_similarity: float = 0.3,
        time_window: TimeWindow | None = None, *, project: str | None = None, archived: bool = True,
    ) -> list[PatternMatch]:  # fmt: skip
        """Return earlier executions of the user with a similar goal, the most similar first, of all
        projects or of one.

        The similarity is the cosine of the goals, from 0 to 1; without an embedder the fraction of
        the words of `goal` that the other goal contains. `time_window` is a pair of times, both
        included; None leaves an end open.
        """
        return flow.similar(
            self._fresh(), goal, limit=limit, min_similarity=min_similarity,
            time_window=time_window, project=project, archived=archived,
        )  # fmt: skip

    def plan_context(
        self, goal: str, *, project: str | None = None, limit: int = 3,
        max_tokens: int | None = None
    ) -> PlanContext:  # fmt: skip
        """Return what memory knows about a goal, to be read before planning: what worked, what
        failed, and what was learnt.

        Each part names the traces to cite, at most `limit` of each kind. `text`, which is also
        `str()` of the result, is the same for a prompt, at most `max_tokens` long; it marks what is
        recalled as data.
        """
        return flow.plan_context(
            self._fresh(), goal, project=project, limit=limit, max_tokens=max_tokens
        )

    # --- learning and retention ---

    def consolidate(
        self, project: str | None = None, *, dry_run: bool = False, skills: bool = True
    ) -> Consolidation:
        """Draw learnings from the runs of a project with similar goals, and write them to its
        long-term memory.

        A group of at least 3 runs, of which 70 % succeeded, also becomes a skill, unless `skills`
        is False. With `dry_run` nothing is written. This also happens by itself: after 10 new
        traces, weekly by `heartbeat`, and before archiving.
        """
        return trace_learnings.consolidate(self._context(), project, dry_run=dry_run, skills=skills)

    def retention(self, *, dry_run: bool = False) -> Retention:
        """Move what is old to compressed archives, and return what moved and why; with `dry_run`,
        what would move.

        Short-term memory moves after 24 hours without activity. Long-term memory is consolidated
        again after 180 days and moves after 365. Nothing is deleted, and `similar` still finds it.
        `heartbeat` does this daily.
        """
        return trace_learnings.retention(self._context(), dry_run=dry_run)

    def archive(self, project: str | None = None) -> Consolidation:
        """Consolidate a project, and move all its short-term memory to its archive."""
        return trace_learnings.archive(self._context(), project)

    def keep_decisions(self, trace_id: str) -> list[MemoryRecord]:
        """Store the decisions of a trace as memories of the category `decision`, and return them.

        A second call stores nothing new. Raises `NotFound` for an unknown trace.
        """
        return readable.records(context := self._context(), flow.keep_decisions(context, trace_id))

    # --- internals ---

    def _fresh(self) -> Context:
        """Return the context after what changed in the files is indexed."""
        context = self._context()
        trace_index.refresh(context)
        return context
