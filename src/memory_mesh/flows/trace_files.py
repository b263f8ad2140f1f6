"""The files of traces: the layout of a project, appending to its log and to the experience log, and what a crash left of them.

A document is appended and durable before anything refers to it. If a crash cut the last one, its part is moved aside.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TypeVar

from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.file_ports import TraceFiles
from memory_mesh.core.text import shortened
from memory_mesh.core.traces import Experience, Fault, Trace, checked_experience, cut_at, documents, read_experiences, read_traces
from memory_mesh.core.traces.layout import (
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

Found = TypeVar("Found")
_MOMENT = len("trace-1760000000000")  # how much of an id is its time
MAX_RESULT_CHARS = 20_000  # of a tool result
_MAX_NUMBER = 10**12  # a larger one, which a person wrote, is not counted from
_NUMBER = re.compile(rb"experience_id:[ \t]*exp_([0-9]+)")
_ENTRY = re.compile(rb"(?m)^---[ \t]*\r?\n(?=experience_id[ \t]*:)")


def projects(files: TraceFiles) -> list[Project]:
    """Return the projects that have a folder, by its name."""
    return [_project(files, name) for name in files.names(PROJECTS, folders=True)]


def check_known(files: TraceFiles, project: Project) -> None:
    """Raise `NotFound` if a project has no folder, as for a name that is misspelt."""
    if all(each.name != project.name for each in projects(files)):
        raise NotFound(f"no traces of a project {shown(project.name, max_length=80)}", remedy="see memory-mesh trace list")


def _project(files: TraceFiles, name: str) -> Project:
    if not IS_HASHED.fullmatch(name):
        return Project(name)
    return Project.of_folder(name, files.read(f"{PROJECTS}/{name}/context.md").decode("utf-8", "replace"))


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


def _documents(files: TraceFiles, name: str, read: Callable[[str, str], Iterator[Found]]) -> Iterator[Found | Fault]:
    """Yield the documents of a file; one that cannot be read is a fault, so that the others are."""
    try:
        text = text_of(files, name)
    except InvalidInput as error:
        yield Fault(name, 0, str(error))
    else:
        yield from read(text, name)


def traces_of(files: TraceFiles, project: Project, *, archived: bool = False) -> Iterator[Trace | Fault]:
    """Yield the traces of a project and what is wrong in its files, each trace once."""
    names = [project.log, *(f"{project.archive}/{name}" for name in reversed(files.names(project.archive)) if archived)]
    seen: set[str] = set()
    for name in names:
        for each in _documents(files, name, read_traces):
            if not isinstance(each, Trace) or each.trace_id not in seen:
                yield each
            if isinstance(each, Trace):
                seen.add(each.trace_id)


def archived_traces(files: TraceFiles, project: Project, ids: Collection[str]) -> Iterator[Trace]:
    """Yield the traces with these ids from the archives of a project, until all are found.

    An archive is named after its first trace, and ids are in the order of time unless a clock was set back. So those that should
    have one of them are read first.
    """
    names = files.names(project.archive) if ids else []
    firsts, moments = [name[:_MOMENT] for name in names], {id_[:_MOMENT] for id_ in ids}
    places = (range(max(0, bisect_left(firsts, at) - 1), bisect_right(firsts, at)) for at in moments)
    likely, missing = sorted({names[at] for some in places for at in some}), set(ids)
    for name in (*likely, *(each for each in names if each not in likely)):
        if not missing:
            return
        for each in read_traces(text_of(files, f"{project.archive}/{name}")):
            if isinstance(each, Trace) and each.trace_id in missing:
                missing.remove(each.trace_id)
                yield each


def find_trace(files: TraceFiles, trace_id: str) -> Trace | None:
    """Return a trace by its id, also from an archive. Only documents that hold the id are parsed."""
    for project in projects(files):
        for name in (project.log, *(f"{project.archive}/{each}" for each in reversed(files.names(project.archive)))):
            with suppress(InvalidInput):  # a file that cannot be read
                parts = [part for _, part in documents(text_of(files, name)) if trace_id in part]
                for each in read_traces("".join(parts)):
                    if isinstance(each, Trace) and each.trace_id == trace_id:
                        return each
    return None


def experiences_of(files: TraceFiles, *, archived: bool = False) -> Iterator[Experience | Fault]:
    """Yield the entries of the experience log, the archived ones first, and what is wrong in it, each entry once."""
    archives = [f"{SYSTEM_ARCHIVE}/{name}" for name in files.names(SYSTEM_ARCHIVE)] if archived else []
    found = {name: list(_documents(files, name, read_experiences)) for name in (*archives, SYSTEM_LOG)}
    entries = {each.number: each for every in found.values() for each in every if isinstance(each, Experience)}
    yield from (entries[number] for number in sorted(entries))
    yield from (each for every in found.values() for each in every if isinstance(each, Fault))


def faults_of(found: Iterable[object]) -> list[Fault]:
    """Return what is wrong, of what was read from files."""
    return [each for each in found if isinstance(each, Fault)]


def faults(files: TraceFiles) -> list[Fault]:
    """Return what is wrong in the files of traces and in the experience log, archives included."""
    found = [each for project in projects(files) for each in traces_of(files, project, archived=True)]
    return faults_of([*found, *experiences_of(files, archived=True)])


# --- writing ---


def append_document(files: TraceFiles, name: str, text: str, *, clean: bool = False) -> None:
    """Append a document to a file, whose lock the caller has. `clean` says that the file is known to end with a whole one."""
    end = b"" if clean else _repaired(files, name)
    files.append(name, end + text.encode())


def _repaired(files: TraceFiles, name: str) -> bytes:
    """Move the part of a document that a crash cut to a file beside it, and return the end of line that the file lacks."""
    data = files.read(name)
    at = cut_at(data.decode("latin-1"))
    if at is not None:
        folder, _, own = name.rpartition("/")
        number = 1 + sum(each.startswith(f"{own}.damaged-") for each in files.names(folder))
        files.write(f"{name}.damaged-{number}", data[at:])
        data = data[:at]
        files.write(name, data)
    return b"" if not data or data.endswith(b"\n") else b"\n"


def append_entry(files: TraceFiles, values: dict[str, object], *, clean: bool = False) -> Experience:
    """Append an entry with the next number to the experience log, and return it. The oldest beyond 1000 go to the archive."""
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
        numbers += [each.number for each in experiences_of(files, archived=True) if isinstance(each, Experience)]
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


def write_results(files: TraceFiles, project: Project, trace_id: str, results: list[tuple[str, str]]) -> None:
    """Write what tools returned, each bounded, to the folder of a trace."""
    for number, (tool, text) in enumerate(results, 1):
        safe = re.sub(r"[^\w.-]+", "-", tool, flags=re.ASCII)[:60].strip("-.") or "tool"
        files.write(f"{project.tool_results}/{trace_id}/{number}-{safe}.txt", bounded(text).encode("utf-8", "replace"))


def bounded(text: str, max_chars: int = MAX_RESULT_CHARS) -> str:
    """Return the beginning and the end of a long text, and how much is left out between them."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


def entry_values(project: Project, trace: Trace, *, agents: Sequence[str] = (), recovered: bool = False) -> dict[str, object]:
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
