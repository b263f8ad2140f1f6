"""The files of traces and their index: append, read, index and erase.

The files are the truth. A document is appended and durable before anything refers to it. If a crash
cut the last one, its part is moved aside.
"""

import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from string import hexdigits
from typing import TypeVar

from memory_mesh.core.errors import InvalidInput, StoreError, shown
from memory_mesh.core.intake import EXPERIENCE_KEY, LEARNING_KEY, TRACE_KEY, NewText, Terms
from memory_mesh.core.model import Compare, In, Kind, Memory, Meta, Status, Where, all_of, equals
from memory_mesh.core.ports import TraceFiles
from memory_mesh.core.text import shortened
from memory_mesh.core.traces import (
    Experience,
    Fault,
    Trace,
    checked_experience,
    cut_at,
    digest,
    documents,
    read_experiences,
    read_traces,
    without_documents,
)
from memory_mesh.core.traces.learnings import (
    DECIDED,
    LEARNING,
    PATTERN,
    avoid,
    lesson_metadata,
    without_sections,
)
from memory_mesh.core.traces.schema import (
    DEFAULT_PROJECT,
    FOLDER_ID,
    ID_LENGTH,
    IS_HASHED,
    LAST_NUMBER,
    MAX_ENTRIES,
    PROJECTS,
    SYSTEM,
    SYSTEM_ARCHIVE,
    SYSTEM_LOG,
    Project,
    archive_of,
)
from memory_mesh.flows.context import Context, paged
from memory_mesh.flows.mirror import mirror
from memory_mesh.flows.write.prepare import prepare

# --- reading ---

Found = TypeVar("Found")
_MOMENT = len("trace-1760000000000")  # how much of an id is its time
MAX_RESULT_CHARS = 20_000  # of a tool result
_MAX_NUMBER = 10**12  # a larger one, which a person wrote, is not counted from
_NUMBER = re.compile(rb"experience_id:[ \t]*exp_([0-9]+)")
_ENTRY = re.compile(rb"(?m)^---[ \t]*\r?\n(?=experience_id[ \t]*:)")


def projects(files: TraceFiles) -> list[Project]:
    """Return the projects that have a folder, by its name."""
    return [
        Project.of_folder(
            name, files.read(f"{PROJECTS}/{name}/context.md").decode("utf-8", "replace")
        )
        if IS_HASHED.fullmatch(name)
        else Project(name)
        for name in files.names(PROJECTS, folders=True)
    ]


def create_project(files: TraceFiles, project: Project) -> None:
    """Create the files of a project that are missing."""
    for name, text in project.files.items():
        if not files.mark(name):
            files.write(name, text.encode())
    files.create_folder(project.tool_results)


def text_of(files: TraceFiles, name: str) -> str:
    """Return the text of a file; of a document that a crash cut, nothing."""
    data = files.read(name)
    at = cut_at(data.decode("latin-1"))  # one character for each byte
    return data[:at].decode("utf-8", "replace")


def _documents(
    files: TraceFiles, name: str, read: Callable[[str, str], Iterator[Found]]
) -> Iterator[Found | Fault]:
    """Yield the documents of a file; one that cannot be read is a fault, so that the others are."""
    try:
        text = text_of(files, name)
    except InvalidInput as error:
        yield Fault(name, 0, str(error))
    else:
        yield from read(text, name)


def traces_of(
    files: TraceFiles, project: Project, *, archived: bool = False
) -> Iterator[Trace | Fault]:
    """Yield the traces of a project and what is wrong in its files, each trace once."""
    seen: set[str] = set()
    for name in _logs(files, project) if archived else (project.log,):
        for each in _documents(files, name, read_traces):
            if not isinstance(each, Trace) or each.trace_id not in seen:
                yield each
            if isinstance(each, Trace):
                seen.add(each.trace_id)


def _logs(files: TraceFiles, project: Project) -> list[str]:
    """Return the names of the log of a project and of its archives, the newest first."""
    return [project.log, *reversed(_inside(files, project.archive))]


def archived_traces(files: TraceFiles, project: Project, ids: Collection[str]) -> Iterator[Trace]:
    """Yield the traces with these ids from the archives of a project, until all are found.

    An archive is named after its first trace, and ids are in the order of time unless a clock was
    set back. So those that should have one of them are read first.
    """
    names = files.names(project.archive) if ids else []
    firsts, moments = [name[:_MOMENT] for name in names], {id_[:_MOMENT] for id_ in ids}
    places = (
        range(max(0, bisect_left(firsts, at) - 1), bisect_right(firsts, at)) for at in moments
    )
    likely, missing = sorted({names[at] for some in places for at in some}), set(ids)
    for name in (*likely, *(each for each in names if each not in likely)):
        if not missing:
            return
        for each in read_traces(text_of(files, f"{project.archive}/{name}")):
            if isinstance(each, Trace) and each.trace_id in missing:
                missing.remove(each.trace_id)
                yield each


def find_trace(files: TraceFiles, trace_id: str) -> Trace | None:
    """Return a trace by its id, also from an archive. Only documents that hold the id are
    parsed."""
    for project in projects(files):
        for name in _logs(files, project):
            with suppress(InvalidInput):  # a file that cannot be read
                parts = [part for _, part in documents(text_of(files, name)) if trace_id in part]
                for each in read_traces("".join(parts)):
                    if isinstance(each, Trace) and each.trace_id == trace_id:
                        return each
    return None


def experiences_of(files: TraceFiles, *, archived: bool = False) -> Iterator[Experience | Fault]:
    """Yield the entries of the experience log, the archived ones first, and what is wrong in it,
    each entry once."""
    names = [*(_inside(files, SYSTEM_ARCHIVE) if archived else ()), SYSTEM_LOG]
    found = [each for name in names for each in _documents(files, name, read_experiences)]
    entries = {each.number: each for each in found if isinstance(each, Experience)}
    yield from (entries[number] for number in sorted(entries))
    yield from faults_of(found)


def faults_of(found: Iterable[object]) -> list[Fault]:
    """Return what is wrong, of what was read from files."""
    return [each for each in found if isinstance(each, Fault)]


def faults(files: TraceFiles) -> list[Fault]:
    """Return what is wrong in the files of traces and in the experience log, archives included."""
    found = [
        each for project in projects(files) for each in traces_of(files, project, archived=True)
    ]
    return faults_of([*found, *experiences_of(files, archived=True)])


# --- writing ---


def append_document(files: TraceFiles, name: str, text: str, *, clean: bool = False) -> None:
    """Append a document to a file, whose lock the caller has. `clean` says that the file is
    known to end with a whole one."""
    end = b"" if clean else _repaired(files, name)
    files.append(name, end + text.encode())


def _repaired(files: TraceFiles, name: str) -> bytes:
    """Move the part of a document that a crash cut to a file beside it, and return the end of
    line that the file lacks."""
    data = files.read(name)
    at = cut_at(data.decode("latin-1"))
    if at is not None:
        folder, _, own = name.rpartition("/")
        number = 1 + sum(each.startswith(f"{own}.damaged-") for each in files.names(folder))
        files.write(f"{name}.damaged-{number}", data[at:])
        data = data[:at]
        files.write(name, data)
    return b"" if not data or data.endswith(b"\n") else b"\n"


def append_entry(
    files: TraceFiles, values: dict[str, object], *, clean: bool = False
) -> Experience:
    """Append an entry with the next number to the experience log, and return it. The oldest
    beyond 1000 go to the archive."""
    with files.locked(SYSTEM):
        entry = checked_experience(**values, experience_id=f"exp_{last_number(files) + 1}")
        append_document(files, SYSTEM_LOG, entry.text, clean=clean)
        files.write(LAST_NUMBER, str(entry.number).encode())
        _move_oldest(files)
    return entry


def last_number(files: TraceFiles) -> int:
    """Return the last number that an entry of the log ever had."""
    known, log = files.read(LAST_NUMBER).strip(), files.read(SYSTEM_LOG)
    last = _NUMBER.match(log, log.rfind(b"\nexperience_id:") + 1)
    numbers = [int(known) if known.isdigit() else 0, int(last[1]) if last else 0]
    if not known or max(numbers) >= _MAX_NUMBER:  # the file is lost, or was never written
        numbers += [
            each.number
            for each in experiences_of(files, archived=True)
            if isinstance(each, Experience)
        ]
    return max((number for number in numbers if number < _MAX_NUMBER), default=0)


def _move_oldest(files: TraceFiles) -> None:
    """Move the oldest entries of a log with more than 1000 to their archive, unchanged."""
    data = files.read(SYSTEM_LOG)
    if data.count(b"\nexperience_id") <= MAX_ENTRIES:  # faster than looking for where they begin
        return
    starts = [found.start() for found in _ENTRY.finditer(data)]
    if (extra := len(starts) - MAX_ENTRIES) <= 0:
        return
    for start, end in pairwise(starts[: extra + 1]):
        found = _NUMBER.search(data, start, end)
        files.append(archive_of(int(found[1]) if found else 1), data[start:end])
    files.write(SYSTEM_LOG, data[starts[extra] :])


def write_results(
    files: TraceFiles, project: Project, trace_id: str, results: list[tuple[str, str]]
) -> None:
    """Write what tools returned, each bounded, to the folder of a trace."""
    for number, (tool, text) in enumerate(results, 1):
        safe = re.sub(r"[^\w.-]+", "-", tool, flags=re.ASCII)[:60].strip("-.") or "tool"
        files.write(
            f"{project.tool_results}/{trace_id}/{number}-{safe}.txt",
            bounded(text).encode("utf-8", "replace"),
        )


def bounded(text: str, max_chars: int = MAX_RESULT_CHARS) -> str:
    """Return the beginning and the end of a long text, and how much is left out between them."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def entry_values(
    project: Project, trace: Trace, *, agents: Sequence[str] = (), recovered: bool = False
) -> dict[str, object]:
    """Return what the experience log says about an execution."""
    return {
        "project_name": project.name,
        "primary_goal": trace.goal,
        "final_outcome": "success_with_recovery" if recovered else trace.status,
        "components_used": tuple(dict.fromkeys((*agents, *trace.tools_used))),
        "files_created": len(trace.files_created),
        "output_summary": shortened(" ".join(trace.results.split()), 200),
        "execution_time_ms": trace.duration_ms,
        "learnings_or_issues": bounded("\n".join(trace.learnings)),
        "timestamp": trace.timestamp,
    }


# --- the index ---
# Every trace and every entry of the experience log is a memory, so that all searches find it. What
# people changed in the files, or a crash kept from being indexed, is taken over at the next use:
# the marks of the files are compared, and only then are the files read. A trace that was removed by
# hand is archived; the memory of an entry stays, because the log is never shortened but by erasing.

TRACE, EXPERIENCE = "trace", "experience"  # categories
_MAX_ITEMS, _MAX_ITEM_CHARS, _MAX_PLAN_CHARS = 50, 200, 2000  # of the metadata of a memory
_CUT = "!"  # ends the mark of a file whose end is to be repaired before something is appended
_log = logging.getLogger("memory_mesh")


def refresh(context: Context) -> None:
    """Index the files that changed. A store that is not there yet, or is only read, is left
    alone."""
    if not mirror.is_ready(context):
        return
    files = context.open_traces()
    logged = partial(mirror.only_logged, "the traces are not indexed", StoreError, InvalidInput)
    with logged():
        for project in projects(files):
            with logged():  # so that the other projects are indexed
                if not is_indexed(context, files, project.log):
                    context.file.check_writable()
                    sync_project(context, files, project)
        if files.mark("") and not is_indexed(context, files, SYSTEM_LOG):
            context.file.check_writable()
            sync_log(context, files)


def is_indexed(context: Context, files: TraceFiles, name: str, *, clean: bool = False) -> bool:
    """Return whether a file is as it was when it was indexed; with `clean`, also whether it can
    be appended to."""
    mark, scope = files.mark(name), _scope(context, files, name)
    wanted = (mark,) if clean else (mark, mark + _CUT)
    if context.state.files.trace_marks.get(scope) not in wanted:
        context.state.files.trace_marks[scope] = str(
            Meta.read(context.store, scope).detail.get("mark", "")
        )
    return context.state.files.trace_marks[scope] in wanted


def sync_project(context: Context, files: TraceFiles, project: Project) -> None:
    """Bring the memories of the traces of a project up to date with its log."""
    with files.locked(project.short_term):
        mark = _mark(files, project.log)
        traces = {
            each.trace_id: each for each in traces_of(files, project) if isinstance(each, Trace)
        }
        live = all_of(equals("project", project.name), equals("status", Status.ACTIVE))
        known = _known(context, of_folder(context, TRACE_KEY, live), "trace_id")
        known |= _known(
            context, _with_ids(context, TRACE_KEY, traces.keys() - known.keys()), "trace_id"
        )
        new = [trace for id_, trace in traces.items() if id_ not in known]
        entries = _entries_of(context, files, project, new)
        changed = [
            trace
            for id_, trace in traces.items()
            if id_ in known and known[id_].metadata.get("digest") != digest(trace)
        ]
        for id_ in traces.keys() & known.keys():
            if known[id_].status == Status.ARCHIVED:
                mirror.revive(context, known[id_].id)
        pairs = [(trace,
                  entries.get(trace.trace_id)
                  or str(known[trace.trace_id].metadata.get("experience_id", "")))
                 for trace in (*new, *changed)]  # fmt: skip
        data = files.read(project.log)  # a trace that cannot be read at the moment is still there
        gone = [
            memory.id
            for id_, memory in known.items()
            if id_ not in traces and id_.encode() not in data
        ]
        mirror.archive_all(context, gone, f"the trace was removed from {project.log}")
        index(context, files, project, pairs, marks={project.log: mark})


def sync_log(context: Context, files: TraceFiles) -> None:
    """Bring the memories of the entries up to date with the experience log."""
    with files.locked(SYSTEM):
        mark = _mark(files, SYSTEM_LOG)
        entries = {
            each.experience_id: each
            for each in experiences_of(files)
            if isinstance(each, Experience)
        }
        known = _known(context, _with_ids(context, EXPERIENCE_KEY, entries), "experience_id")
        changed = [
            entry
            for id_, entry in entries.items()
            if id_ not in known or known[id_].metadata.get("digest") != digest(entry)
        ]
        traces = {
            id_: str(memory.metadata["trace_id"])
            for id_, memory in known.items()
            if "trace_id" in memory.metadata
        }
        texts = [
            experience_text(context, entry, traces.get(entry.experience_id)) for entry in changed
        ]
        store(context, files, texts, {SYSTEM_LOG: mark})


def index(
    context: Context, files: TraceFiles, project: Project,
    pairs: Sequence[tuple[Trace, Experience | str]], *, marks: Mapping[str, str],
) -> list[Memory]:  # fmt: skip
    """Store the memories of traces, each with its entry of the log or the id of one that is
    indexed, and the marks, at once."""
    texts: list[NewText] = []
    for trace, entry in pairs:
        id_ = entry.experience_id if isinstance(entry, Experience) else entry
        texts.append(trace_text(context, project, trace, id_))
        if isinstance(entry, Experience):
            texts.append(experience_text(context, entry, trace.trace_id))
    return store(context, files, texts, marks)


def store(
    context: Context, files: TraceFiles, texts: Sequence[NewText], marks: Mapping[str, str]
) -> list[Memory]:
    """Store the memories of traces and entries, and the marks of their files, at once."""
    context = mirror.without_session(context)
    states = {_scope(context, files, name): mark for name, mark in marks.items()}
    stored = mirror.store(
        context, prepare(context, texts), {scope: {"mark": mark} for scope, mark in states.items()}
    )
    context.state.files.trace_marks.update(states)
    return stored


def project_of(context: Context, given: object) -> Project:
    """Return the project that is given, or else that of the reader, or `default`. Its name is
    masked too."""
    name = context.reader.project or DEFAULT_PROJECT if given is None else given
    if not isinstance(name, str) or not name.strip() or len(name) > 500 or not name.isprintable():
        raise InvalidInput(f"project is {shown(name)}", expected="a name")
    if context.reader.only_project and name != context.reader.project:
        raise InvalidInput(
            f"the reader is of the project {context.reader.project} only",
            expected="no other project",
        )
    return Project(context.gates.query().redact(" ".join(name.split())))


def own_projects(context: Context) -> list[Project]:
    """Return the projects that have traces, without those that the reader must not see."""
    only = project_of(context, None).name if context.reader.only_project else None
    return [each for each in projects(context.open_traces()) if only in (None, each.name)]


# --- memories ---


def trace_text(context: Context, project: Project, trace: Trace, experience_id: str) -> NewText:
    """Return the memory of a trace. Its content is the goal alone, so that its vector is that of
    the goal."""
    metadata: dict[str, object] = {
        "category": TRACE, "project": project.name, "event_time": trace.timestamp,
        "trace_id": trace.trace_id, "status": trace.status, "duration_ms": trace.duration_ms,
        "tools_used": _items(trace.tools_used), "files_created": _items(trace.files_created),
        "digest": digest(trace), "file": project.log,
    }  # fmt: skip
    more = {
        "experience_id": experience_id,
        "plan": shortened(trace.plan, _MAX_PLAN_CHARS),
        "avoid": _items(avoid(trace)),
    }
    metadata |= {name: value for name, value in more.items() if value}
    return _text(context, trace.goal, metadata, f"{TRACE_KEY}{folder_id(context)}/{trace.trace_id}")


def experience_text(context: Context, entry: Experience, trace_id: str | None = None) -> NewText:
    """Return the memory of an entry of the experience log."""
    content = (
        f"{entry.primary_goal.rstrip('.')}: {entry.final_outcome}. {entry.output_summary}".rstrip()
    )
    metadata: dict[str, object] = {
        "category": EXPERIENCE, "project": entry.project_name, "event_time": entry.timestamp,
        "experience_id": entry.experience_id, "outcome": entry.final_outcome,
        "digest": digest(entry), "file": SYSTEM_LOG,
        "components_used": _items(entry.components_used),
    }  # fmt: skip
    metadata |= {"trace_id": trace_id} if trace_id else {}
    metadata |= lesson_metadata(entry)
    key = f"{EXPERIENCE_KEY}{folder_id(context)}/{entry.experience_id}"
    return _text(context, f"{content}\n{entry.learnings_or_issues}".rstrip(), metadata, key)


def _text(context: Context, content: str, metadata: dict[str, object], key: str) -> NewText:
    return NewText(
        shortened(content, context.limits.content_chars),
        metadata,
        key=key,
        terms=Terms(claims="off"),
    )


def _items(texts: Sequence[str]) -> list[str]:
    return [shortened(text, _MAX_ITEM_CHARS) for text in texts[:_MAX_ITEMS]]


def of_user(context: Context, category: str, *others: Where) -> Where:
    """Return the condition that a memory of the reader's user has a category."""
    return all_of(equals("user_id", context.reader.user_id), equals("category", category), *others)


def of_folder(context: Context, key: str, *others: Where) -> Where:
    """Return the condition that a memory is one of the traces, or of the entries of the log, of
    this folder."""
    category = TRACE if key == TRACE_KEY else EXPERIENCE
    start = f"{key}{folder_id(context)}/"
    # A range of keys, because a pattern takes longer.
    return of_user(
        context,
        category,
        Compare("key", ">=", start),
        Compare("key", "<", f"{start[:-1]}0"),
        *others,
    )


def folder_id(context: Context) -> str:
    """Return the id of the folder of traces; one that is there without an id gets one. Raises
    `InvalidInput` for a damaged id."""
    files = context.open_traces()
    if not files.mark(FOLDER_ID):
        if not files.mark(""):
            return ""
        with files.locked(SYSTEM):
            if not files.mark(FOLDER_ID):
                files.write(FOLDER_ID, context.ids.salt()[:ID_LENGTH].encode())
    known = files.read(FOLDER_ID).decode("ascii", "replace")
    # With another id, every trace would be indexed a second time.
    if len(known) != ID_LENGTH or not {*known} <= {*hexdigits}:
        expected = f"{ID_LENGTH} hexadecimal digits"
        remedy = "restore it from a backup; without it the traces are indexed again under a new id"
        raise InvalidInput(
            f"{FOLDER_ID} in {files.root} is damaged", expected=expected, remedy=remedy
        )
    return known


def _with_ids(context: Context, key: str, ids: Collection[str]) -> Where:
    folder = folder_id(context)
    return of_folder(context, key, In("key", tuple(sorted(f"{key}{folder}/{id_}" for id_ in ids))))


def ids_of(context: Context, traces: Collection[str]) -> list[str]:
    """Return the ids of the memories of traces."""
    return context.store.ids(Kind.MEMORY, _with_ids(context, TRACE_KEY, traces))


def _known(context: Context, where: Where, name: str) -> dict[str, Memory]:
    """Return memories by the id of their trace or entry, which is in their metadata."""
    return {
        str(memory.metadata.get(name)): memory
        for memory in map(Memory.of, paged(context, Kind.MEMORY, where))
    }


def _entries_of(
    context: Context, files: TraceFiles, project: Project, traces: Sequence[Trace]
) -> dict[str, Experience | str]:
    """Return the entry of each trace that is not indexed yet; one that the log lacks is
    appended."""
    if not traces:
        return {}
    with files.locked(SYSTEM):
        logged = {
            (each.project_name, each.timestamp, each.primary_goal, each.execution_time_ms): each
            for each in experiences_of(files, archived=True)
            if isinstance(each, Experience)
        }
        made: dict[str, Experience | str] = {}
        for trace in traces:
            values = entry_values(project, trace)
            identity = (project.name, trace.timestamp, trace.goal, trace.duration_ms)
            made[trace.trace_id] = logged.get(identity) or append_entry(files, values)
        return made


def _mark(files: TraceFiles, name: str) -> str:
    """Return the mark of a file, with a sign if something must be repaired before it is appended
    to."""
    mark, data = files.mark(name), files.read(name)
    whole = cut_at(data.decode("latin-1")) is None and (not data or data.endswith(b"\n"))
    return mark if whole else mark + _CUT


def _scope(context: Context, files: TraceFiles, name: str) -> str:
    """Return the name of the state of a file: each user has its own."""
    return mirror.state_prefix(context, mirror.TRACES) + mirror.hashed(files.root, name)


# --- erasing ---
# Compressed archives are searched too.

# The metadata by which the sections of a learning are known.
_DIGESTS = ("digest", "edited", "pattern_digest")


def take_out(context: Context, memories: Iterable[Memory]) -> list[str]:
    """Remove what the files say of these memories, and return the ids of the traces, entries and
    learnings."""
    ids: dict[str, list[str]] = {TRACE_KEY: [], EXPERIENCE_KEY: [], LEARNING_KEY: []}
    digests: set[str] = set()
    projects: set[str] = set()
    for memory in memories:
        kind, _, place = (memory.key or "").partition(":")
        folder, _, id_ = place.rpartition("/")
        if kind != "learning" and folder != folder_id(context):
            _log.warning("%s is in another folder of traces, where its file keeps it", id_)
            continue
        ids[f"{kind}:"].append(id_)
        projects.add(str(memory.project))
        digests |= (
            {str(memory.metadata[name]) for name in _DIGESTS if name in memory.metadata}
            if kind == "learning"
            else set()
        )
    files, traces, entries = context.open_traces(), set(ids[TRACE_KEY]), set(ids[EXPERIENCE_KEY])
    for name in sorted(projects) if traces or digests else ():
        _from_project(files, Project(name), traces, digests)
    if entries:
        with files.locked(SYSTEM):
            # A number is not given again.
            files.write(LAST_NUMBER, str(last_number(files)).encode())
            _remove(files, [SYSTEM_LOG, *_inside(files, SYSTEM_ARCHIVE)], SYSTEM, entries)
    return [id_ for every in ids.values() for id_ in every]


def _from_project(files: TraceFiles, project: Project, traces: set[str], digests: set[str]) -> None:
    if not files.mark(project.folder):
        return
    with files.locked(project.short_term):
        logs = [project.log, *_inside(files, project.archive)]
        _remove(files, logs, project.short_term, traces)
        for folder in (project.tool_results, f"{project.archive}/tool_results"):
            for trace_id in traces.intersection(files.names(folder, folders=True)):
                files.remove(f"{folder}/{trace_id}")
        for name in (
            *_inside(files, project.long_term),
            *_inside(files, f"{project.long_term}/archive"),
        ):
            text = files.read(name).decode("utf-8", "replace")
            _rewrite(files, name, _without_learnings(text, traces, digests).encode())


def _remove(files: TraceFiles, names: Sequence[str], folder: str, ids: set[str]) -> None:
    """Remove documents from files, and the damaged parts of files in a folder that have an id."""
    for name in names:
        _rewrite(files, name, without_documents(files.read(name), ids))
    for name in _inside(files, folder):
        if ".damaged-" in name and any(id_.encode() in files.read(name) for id_ in ids):
            files.remove(name)


def _without_learnings(text: str, traces: set[str], digests: set[str]) -> str:
    for start in (LEARNING, PATTERN):
        text = without_sections(text, start, digests)
    ends = tuple(f"[{trace_id}]" for trace_id in traces)
    lines = text.splitlines(keepends=True)
    return "".join(
        line for line in lines if not (line.startswith(DECIDED) and line.rstrip().endswith(ends))
    )


def _inside(files: TraceFiles, folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in files.names(folder)]


def _rewrite(files: TraceFiles, name: str, data: bytes) -> None:
    if data != files.read(name):
        files.write(name, data)
