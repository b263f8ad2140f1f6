"""The index of traces: every trace and every entry of the experience log is a memory, so that all searches find it.

The files are the truth. What people changed in them, or a crash kept from being indexed, is taken over at the next use: the marks
of the files are compared, and only then are the files read. A trace that was removed by hand is archived; the memory of an entry
stays, because the log is never shortened but by erasing.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from string import hexdigits

from memory_mesh.core.errors import InvalidInput, NotFound, StoreError, StoreReadOnly, shown
from memory_mesh.core.file_ports import TraceFiles
from memory_mesh.core.intake import EXPERIENCE_KEY, TRACE_KEY, NewText, Terms
from memory_mesh.core.model import Compare, In, Key, Kind, Memory, Meta, Row, Status, Where, all_of, equals, iso
from memory_mesh.core.text import shortened
from memory_mesh.core.traces import Experience, Trace, cut_at, digest
from memory_mesh.core.traces.layout import DEFAULT_PROJECT, FOLDER_ID, ID_LENGTH, SYSTEM, SYSTEM_LOG, Project
from memory_mesh.core.traces.learnings import avoid, lesson_metadata
from memory_mesh.flows.archive import archive
from memory_mesh.flows.context import Context, Plan, commit, paged
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.prepare import prepare
from memory_mesh.flows.trace_files import append_entry, entry_values, experiences_of, projects, traces_of
from memory_mesh.flows.write import plan_add, set_columns

TRACE, EXPERIENCE = "trace", "experience"  # categories
_MAX_ITEMS, _MAX_ITEM_CHARS, _MAX_PLAN_CHARS = 50, 200, 2000  # of the metadata of a memory
_CUT = "!"  # ends the mark of a file whose end is to be repaired before something is appended
_log = logging.getLogger("memory_mesh")


def refresh(context: Context) -> None:
    """Index the files that changed. A store that is not there yet, or is only read, is left alone."""
    if not context.options.enable_memory or not context.file.is_prepared():
        return
    files = context.open_traces()
    with _only_logged():
        for project in projects(files):
            with _only_logged():  # so that the other projects are indexed
                if not is_indexed(context, files, project.log):
                    context.file.check_writable()
                    sync_project(context, files, project)
        if files.mark("") and not is_indexed(context, files, SYSTEM_LOG):
            context.file.check_writable()
            sync_log(context, files)


@contextmanager
def _only_logged() -> Iterator[None]:
    try:
        yield
    except StoreReadOnly:
        return
    except (StoreError, InvalidInput) as error:  # what is read needs no index of traces
        _log.warning("the traces are not indexed: %s", error)


def is_indexed(context: Context, files: TraceFiles, name: str, *, clean: bool = False) -> bool:
    """Return whether a file is as it was when it was indexed; with `clean`, also whether it can be appended to."""
    mark, scope = files.mark(name), _scope(context, files, name)
    wanted = (mark,) if clean else (mark, mark + _CUT)
    if context.state.traces_read.get(scope) not in wanted:
        context.state.traces_read[scope] = str(Meta.read(context.store, scope).detail.get("mark", ""))
    return context.state.traces_read[scope] in wanted


def sync_project(context: Context, files: TraceFiles, project: Project) -> None:
    """Bring the memories of the traces of a project up to date with its log."""
    with files.locked(project.short_term):
        mark = _mark(files, project.log)
        traces = {each.trace_id: each for each in traces_of(files, project) if isinstance(each, Trace)}
        live = all_of(equals("project", project.name), equals("status", Status.ACTIVE))
        known = _known(context, of_folder(context, TRACE_KEY, live), "trace_id")
        known |= _known(context, _with_ids(context, TRACE_KEY, traces.keys() - known.keys()), "trace_id")
        new = [trace for id_, trace in traces.items() if id_ not in known]
        entries = _entries_of(context, files, project, new)
        changed = [trace for id_, trace in traces.items() if id_ in known and known[id_].metadata.get("digest") != digest(trace)]
        for id_ in traces.keys() & known.keys():
            _revive(context, known[id_])
        pairs = [(trace, entries.get(trace.trace_id) or str(known[trace.trace_id].metadata.get("experience_id", "")))
                 for trace in (*new, *changed)]  # fmt: skip
        data = files.read(project.log)  # a trace that cannot be read at the moment is still there
        gone = [memory.id for id_, memory in known.items() if id_ not in traces and id_.encode() not in data]
        archive(context, Kind.MEMORY, gone, lambda _: f"the trace was removed from {project.log}")
        index(context, files, project, pairs, marks={project.log: mark})


def sync_log(context: Context, files: TraceFiles) -> None:
    """Bring the memories of the entries up to date with the experience log."""
    with files.locked(SYSTEM):
        mark = _mark(files, SYSTEM_LOG)
        entries = {each.experience_id: each for each in experiences_of(files) if isinstance(each, Experience)}
        known = _known(context, _with_ids(context, EXPERIENCE_KEY, entries), "experience_id")
        changed = [
            entry for id_, entry in entries.items() if id_ not in known or known[id_].metadata.get("digest") != digest(entry)
        ]
        traces = {id_: str(memory.metadata["trace_id"]) for id_, memory in known.items() if "trace_id" in memory.metadata}
        texts = [experience_text(context, entry, traces.get(entry.experience_id)) for entry in changed]
        _store(context, texts, {_scope(context, files, SYSTEM_LOG): mark})


def index(
    context: Context, files: TraceFiles, project: Project, pairs: Sequence[tuple[Trace, Experience | str]], *,
    marks: Mapping[str, str],
) -> list[Memory]:  # fmt: skip
    """Store the memories of traces, each with its entry of the log or the id of one that is indexed, and the marks, at once."""
    texts: list[NewText] = []
    for trace, entry in pairs:
        id_ = entry.experience_id if isinstance(entry, Experience) else entry
        texts.append(trace_text(context, project, trace, id_))
        if isinstance(entry, Experience):
            texts.append(experience_text(context, entry, trace.trace_id))
    return _store(context, texts, {_scope(context, files, name): mark for name, mark in marks.items()})


def index_entry(context: Context, files: TraceFiles, entry: Experience, *, mark: str) -> None:
    """Store the memory of an entry of the log that has no trace, and the mark of the log, at once."""
    _store(context, [experience_text(context, entry)], {_scope(context, files, SYSTEM_LOG): mark})


def _store(context: Context, texts: Sequence[NewText], marks: Mapping[str, str]) -> list[Memory]:
    context = replace(context, reader=replace(context.reader, session_id=None))
    items, vectors = prepare(context, texts), Vectors()

    def decide() -> Plan[list[Memory]]:
        plan = plan_add(context, items, vectors) if items else Plan(list[Memory]())
        return replace(plan, puts=[*plan.puts, *mark_rows(context, marks)])

    stored = commit(context, decide)
    context.state.traces_read.update(marks)
    return stored


def mark_rows(context: Context, marks: Mapping[str, str]) -> list[Row]:
    """Return the rows that record the marks of files, by scope."""
    return [Meta.read(context.store, scope).row({"mark": mark}, at=iso(context.clock())) for scope, mark in marks.items()]


def project_of(context: Context, given: object) -> Project:
    """Return the project that is given, or else that of the reader, or `default`. Its name is masked too."""
    name = context.reader.project or DEFAULT_PROJECT if given is None else given
    if not isinstance(name, str) or not name.strip() or len(name) > 500 or not name.isprintable():
        raise InvalidInput(f"project is {shown(name)}", expected="a name")
    if context.reader.only_project and name != context.reader.project:
        raise InvalidInput(f"the reader is of the project {context.reader.project} only", expected="no other project")
    return Project(context.query_gate().redact(" ".join(name.split())))


def own_projects(context: Context) -> list[Project]:
    """Return the projects that have traces, without those that the reader must not see."""
    only = project_of(context, None).name if context.reader.only_project else None
    return [each for each in projects(context.open_traces()) if only in (None, each.name)]


# --- memories ---


def trace_text(context: Context, project: Project, trace: Trace, experience_id: str) -> NewText:
    """Return the memory of a trace. Its content is the goal alone, so that its vector is that of the goal."""
    metadata: dict[str, object] = {
        "category": TRACE, "project": project.name, "event_time": trace.timestamp, "trace_id": trace.trace_id,
        "status": trace.status, "duration_ms": trace.duration_ms, "tools_used": _items(trace.tools_used),
        "files_created": _items(trace.files_created), "digest": digest(trace), "file": project.log,
    }  # fmt: skip
    more = {"experience_id": experience_id, "plan": shortened(trace.plan, _MAX_PLAN_CHARS), "avoid": _items(avoid(trace))}
    metadata |= {name: value for name, value in more.items() if value}
    return _text(context, trace.goal, metadata, f"{TRACE_KEY}{folder_id(context)}/{trace.trace_id}")


def experience_text(context: Context, entry: Experience, trace_id: str | None = None) -> NewText:
    """Return the memory of an entry of the experience log."""
    content = f"{entry.primary_goal.rstrip('.')}: {entry.final_outcome}. {entry.output_summary}".rstrip()
    metadata: dict[str, object] = {
        "category": EXPERIENCE, "project": entry.project_name, "event_time": entry.timestamp,
        "experience_id": entry.experience_id, "outcome": entry.final_outcome, "digest": digest(entry), "file": SYSTEM_LOG,
        "components_used": _items(entry.components_used),
    }  # fmt: skip
    metadata |= {"trace_id": trace_id} if trace_id else {}
    metadata |= lesson_metadata(entry)
    key = f"{EXPERIENCE_KEY}{folder_id(context)}/{entry.experience_id}"
    return _text(context, f"{content}\n{entry.learnings_or_issues}".rstrip(), metadata, key)


def _text(context: Context, content: str, metadata: dict[str, object], key: str) -> NewText:
    return NewText(shortened(content, context.limits.content_chars), metadata, key=key, terms=Terms(claims="off"))


def _items(texts: Sequence[str]) -> list[str]:
    return [shortened(text, _MAX_ITEM_CHARS) for text in texts[:_MAX_ITEMS]]


def of_user(context: Context, category: str, *others: Where) -> Where:
    """Return the condition that a memory of the reader's user has a category."""
    return all_of(equals("user_id", context.reader.user_id), equals("category", category), *others)


def of_folder(context: Context, key: str, *others: Where) -> Where:
    """Return the condition that a memory is one of the traces, or of the entries of the log, of this folder."""
    category = TRACE if key == TRACE_KEY else EXPERIENCE
    start = f"{key}{folder_id(context)}/"
    # A range of keys, because a pattern takes longer.
    return of_user(context, category, Compare("key", ">=", start), Compare("key", "<", f"{start[:-1]}0"), *others)


def folder_id(context: Context) -> str:
    """Return the id of the folder of traces; one that is there without an id gets one. Raises `InvalidInput` for a damaged id."""
    files = context.open_traces()
    if not files.mark(FOLDER_ID):
        if not files.mark(""):
            return ""
        with files.locked(SYSTEM):
            if not files.mark(FOLDER_ID):
                files.write(FOLDER_ID, context.ids.salt()[:ID_LENGTH].encode())
    known = files.read(FOLDER_ID).decode("ascii", "replace")
    if len(known) != ID_LENGTH or not {*known} <= {*hexdigits}:  # with another id, every trace would be indexed a second time
        expected = f"{ID_LENGTH} hexadecimal digits"
        remedy = "restore it from a backup; without it the traces are indexed again under a new id"
        raise InvalidInput(f"{FOLDER_ID} in {files.root} is damaged", expected=expected, remedy=remedy)
    return known


def _with_ids(context: Context, key: str, ids: Collection[str]) -> Where:
    folder = folder_id(context)
    return of_folder(context, key, In("key", tuple(sorted(f"{key}{folder}/{id_}" for id_ in ids))))


def ids_of(context: Context, traces: Collection[str]) -> list[str]:
    """Return the ids of the memories of traces."""
    return context.store.ids(Kind.MEMORY, _with_ids(context, TRACE_KEY, traces))


def _known(context: Context, where: Where, name: str) -> dict[str, Memory]:
    """Return memories by the id of their trace or entry, which is in their metadata."""
    return {str(memory.metadata.get(name)): memory for memory in map(Memory.of, paged(context, Kind.MEMORY, where))}


def _revive(context: Context, memory: Memory) -> None:
    if memory.status == Status.ARCHIVED:
        with suppress(NotFound):  # it was erased
            set_columns(context, memory.id, action="unarchive", status=Status.ACTIVE.value)


def _entries_of(context: Context, files: TraceFiles, project: Project, traces: Sequence[Trace]) -> dict[str, Experience | str]:
    """Return the entry of each trace that is not indexed yet; one that the log lacks is appended."""
    if not traces:
        return {}
    with files.locked(SYSTEM):
        logged = {_identity(each): each for each in experiences_of(files, archived=True) if isinstance(each, Experience)}
        made: dict[str, Experience | str] = {}
        for trace in traces:
            values = entry_values(project, trace)
            identity = (project.name, trace.timestamp, trace.goal, trace.duration_ms)
            made[trace.trace_id] = logged.get(identity) or append_entry(files, values)
        return made


def _identity(entry: Experience) -> tuple[str, str, str, int]:
    return entry.project_name, entry.timestamp, entry.primary_goal, entry.execution_time_ms


def _mark(files: TraceFiles, name: str) -> str:
    """Return the mark of a file, with a sign if something must be repaired before it is appended to."""
    mark, data = files.mark(name), files.read(name)
    whole = cut_at(data.decode("latin-1")) is None and (not data or data.endswith(b"\n"))
    return mark if whole else mark + _CUT


def _scope(context: Context, files: TraceFiles, name: str) -> str:
    """Return the name of the state of a file: each user has its own."""
    return f"{state_prefix(context)}{_hash(files.root, name)}"


def state_prefix(context: Context) -> str:
    """Return how the names of the states of a user begin."""
    return f"traces {_hash(context.reader.user_id)} "


def _hash(*parts: str | None) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


def state_keys(context: Context) -> list[Key]:
    """Return the keys of all that the index of traces holds for the user of a context."""
    return [Key(Kind.META, meta.id) for meta in Meta.with_prefix(context.store, state_prefix(context))]
