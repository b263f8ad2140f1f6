"""Retention of traces: move what is old to compressed archives. Nothing is deleted.

Every step may be killed: an archive is on disk before its text leaves the live file, and the rows
come last. The next run completes what is missing, and a further one changes nothing.
"""

import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Compare, Kind, Memory, Status, Value, all_of, equals, iso
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.traces import learnings as core
from memory_mesh.core.traces.learnings import DECIDED, Consolidation, section_digest
from memory_mesh.core.traces.retention import (
    IDLE_MS,
    Action,
    Move,
    Project,
    ProjectState,
    Retention,
    planned_moves,
)
from memory_mesh.flows.context import Context
from memory_mesh.flows.mirror import mirror
from memory_mesh.flows.traces import index as trace_index
from memory_mesh.flows.traces.learnings import (
    DECISIONS,
    DIGESTS,
    STARTS,
    consolidate,
    learnings_of,
    long_term_text,
    read_state,
    rewrite,
    rows_of,
    traces_of,
    unchanged,
    write_state,
)

_MAX_SESSIONS = 100  # of a project that are remembered, the newest first
_DAY = re.compile(r"- ([0-9]{4}-[0-9]{2}-[0-9]{2}) ")


def retention(context: Context, *, dry_run: bool = False) -> Retention:
    """Move what is old to the archives, or only return what would move and why."""
    context.check_enabled()
    if not dry_run:
        trace_index.refresh(context)
    moves: list[Move] = []
    for project in trace_index.own_projects(context):
        check_cancelled()
        with mirror.only_logged(unchanged(project), InvalidInput):
            for move in planned_moves(_project_state(context, project), context.clock()):
                if not dry_run:
                    _perform(mirror.without_session(context), project, move)
                moves.append(move)
    entries = (
        ()
        if context.reader.only_project
        else trace_index.experiences_of(context.open_traces(), archived=True)
    )
    faults = trace_index.faults_of(entries)
    return Retention(moves=tuple(moves), dry_run=dry_run, faults=tuple(faults))


def archive(context: Context, project: object = None) -> Consolidation:
    """Consolidate a project, and move all its short-term memory to its archive."""
    found = trace_index.project_of(context, project)
    done = consolidate(context, project)
    if context.open_traces().mark(found.log):
        _archive_session(mirror.without_session(context), found, "the project was archived")
    return done


def reopen(context: Context, project: Project) -> None:
    """Archive what an earlier session left in short-term memory, if this one is new to the
    project or after 24 idle hours."""
    ms, is_new = context.clock(), not context.open_traces().mark(project.log)
    if is_new:  # nothing is older than now
        write_state(context, project, {"until": iso(ms)})
    # Sessions that take turns archive each other once: one that is known reopens nothing.
    session = sha256(str(context.reader.session_id).encode()).hexdigest()[:16]
    reopened = context.reader.session_id is not None and session not in _sessions(context, project)
    recent = all_of(rows_of(context, project), Compare("created_at", ">", iso(ms - IDLE_MS)))
    if not is_new and (reopened or not context.store.find(Kind.MEMORY, recent, limit=1)):
        for move in planned_moves(_project_state(context, project), ms, reopened=reopened):
            if move.action is Action.ARCHIVE:
                _perform(mirror.without_session(context), project, move)
    if reopened:
        sessions = [session, *_sessions(context, project)]
        state = read_state(context, project)
        write_state(context, project, {**state, "sessions": sessions[:_MAX_SESSIONS]})


def _sessions(context: Context, project: Project) -> list[Value]:
    known = read_state(context, project).get("sessions")
    return known if isinstance(known, list) else []


def _perform(context: Context, project: Project, move: Move) -> None:
    if move.action is Action.COMPRESS:
        _compress(context, project, move)
        return
    consolidate(context, project.name, regroup=move.action is Action.CONSOLIDATE)
    if move.action is Action.ARCHIVE:
        _archive_session(context, project, move.reason)


def _project_state(context: Context, project: Project) -> ProjectState:
    known = [row for row in learnings_of(context, project).values() if row.status == Status.ACTIVE]
    newest = context.store.find(Kind.MEMORY, rows_of(context, project), limit=1)
    # A crash may have left those of archived traces.
    results = context.open_traces().names(project.tool_results, folders=True)
    _, lines = core.split_sections(long_term_text(context, project, DECISIONS), DECIDED)
    return ProjectState(
        project=project.name,
        trace_ids=list(
            dict.fromkeys((*(each.trace_id for each in traces_of(context, project)), *results))
        ),
        last_activity=newest[0].created_at if newest else None,
        learnings={
            str(row.metadata["learning_id"]): row.event_time or row.created_at for row in known
        },
        decisions={section_digest(line): day[1] for line in lines if (day := _DAY.match(line))},
        regrouped_at=str(read_state(context, project).get("regrouped_at", "")),
    )


def _archive_session(context: Context, project: Project, reason: str) -> None:
    """Move short-term memory to the archive. It is archived before it leaves the live files, and
    the rows come last."""
    files = context.open_traces()
    with files.locked(project.short_term):
        if (data := files.read(project.log)).strip():
            first = next(
                (each.trace_id for each in traces_of(context, project)),
                sha256(data).hexdigest()[:16],
            )
            name = f"{project.archive}/{first}.md.gz"
            # Of a crash, or of an archive from which a person took the first trace back.
            old = files.read(name)
            if not old.startswith(data):
                files.write(name, data if data.startswith(old) else data.rstrip() + b"\n\n" + old)
            context.step("traces.archived")
            files.write(project.log, b"")
            context.step("traces.cut")
        for trace_id in files.names(project.tool_results, folders=True):
            live, archived = (
                f"{folder}/{trace_id}"
                for folder in (project.tool_results, f"{project.archive}/tool_results")
            )
            for name in files.names(live):
                files.write(f"{archived}/{name}.gz", files.read(f"{live}/{name}"))
            context.step("traces.archived")
            files.remove(live)
        active = all_of(rows_of(context, project), equals("status", Status.ACTIVE))
        mirror.archive_all(context, context.store.ids(Kind.MEMORY, active), reason)


def _compress(context: Context, project: Project, move: Move) -> None:
    """Move old learnings with their patterns, and old decisions, to archives of long-term
    memory."""
    known, ids = learnings_of(context, project), set(move.ids)
    with context.open_traces().locked(project.short_term):
        for id_ in sorted(ids & known.keys()):
            check_cancelled()
            _compress_learning(context, project, known[id_])
            mirror.archive_all(context, [known[id_].id], move.reason)
        _, lines = core.split_sections(long_term_text(context, project, DECISIONS), DECIDED)
        if old := "".join(line for line in lines if section_digest(line) in ids):
            _write_archive(context, project, f"decisions-{section_digest(old)}", [old])
            rewrite(
                context, project, DECISIONS, lambda text: core.without_sections(text, DECIDED, ids)
            )


def _compress_learning(context: Context, project: Project, row: Memory) -> None:
    # The pattern leaves its file first: a learning that is not in its file counts as removed by a
    # person.
    sections = {
        name: core.find_section(
            long_term_text(context, project, name),
            STARTS[name],
            str(row.metadata.get(digest)),
            str(row.metadata.get("pattern")),
        )
        for name, digest in DIGESTS.items()
    }
    found = {name: section for name, section in sections.items() if section}
    _write_archive(context, project, str(row.metadata["learning_id"]), list(found.values()))
    for name, section in found.items():
        lost = {section_digest(section)}
        rewrite(
            context, project, name, partial(core.without_sections, start=STARTS[name], digests=lost)
        )
        context.step("traces.cut")


def _write_archive(context: Context, project: Project, name: str, sections: Sequence[str]) -> None:
    """Add sections to an archive of long-term memory. After a crash, some may be there already."""
    files, path = context.open_traces(), f"{project.long_term}/archive/{name}.md.gz"
    text = files.read(path).decode()
    new = [section.strip() for section in sections if section.strip() not in text]
    files.write(path, "\n\n".join(filter(None, (text.strip(), *new))).encode() + b"\n")
    context.step("traces.archived")
