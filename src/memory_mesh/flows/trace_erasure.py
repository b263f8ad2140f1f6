"""Take erased traces, entries of the experience log and learnings out of their files, compressed archives included."""

import logging
from collections.abc import Iterable

from memory_mesh.core.file_ports import TraceFiles
from memory_mesh.core.intake import EXPERIENCE_KEY, LEARNING_KEY, TRACE_KEY
from memory_mesh.core.model import Memory
from memory_mesh.core.traces import without_documents
from memory_mesh.core.traces.layout import LAST_NUMBER, SYSTEM, SYSTEM_ARCHIVE, SYSTEM_LOG, Project
from memory_mesh.core.traces.learnings import DECIDED, LEARNING, PATTERN, without_sections
from memory_mesh.flows.context import Context
from memory_mesh.flows.trace_files import last_number
from memory_mesh.flows.trace_index import folder_id

_log = logging.getLogger("memory_mesh")
_DIGESTS = ("digest", "edited", "pattern_digest")  # the metadata by which the sections of a learning are known


def take_out(context: Context, memories: Iterable[Memory]) -> list[str]:
    """Remove what the files say of these memories, and return the ids of the traces, entries and learnings."""
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
        digests |= {str(memory.metadata[name]) for name in _DIGESTS if name in memory.metadata} if kind == "learning" else set()
    files, traces, entries = context.open_traces(), set(ids[TRACE_KEY]), set(ids[EXPERIENCE_KEY])
    for name in sorted(projects) if traces or digests else ():
        _from_project(files, Project(name), traces, digests)
    if entries:
        _from_log(files, entries)
    return [id_ for every in ids.values() for id_ in every]


def _from_project(files: TraceFiles, project: Project, traces: set[str], digests: set[str]) -> None:
    if not files.mark(project.folder):
        return
    with files.locked(project.short_term):
        for name in (project.log, *_inside(files, project.archive)):
            _rewrite(files, name, without_documents(files.read(name), traces))
        for folder in (project.tool_results, f"{project.archive}/tool_results"):
            for trace_id in traces.intersection(files.names(folder, folders=True)):
                files.remove(f"{folder}/{trace_id}")
        for name in (*_inside(files, project.long_term), *_inside(files, f"{project.long_term}/archive")):
            _rewrite(files, name, _without_learnings(files.read(name).decode("utf-8", "replace"), traces, digests).encode())
        _remove_damaged(files, project.short_term, traces)


def _from_log(files: TraceFiles, entries: set[str]) -> None:
    with files.locked(SYSTEM):
        files.write(LAST_NUMBER, str(last_number(files)).encode())  # a number is not given again
        for name in (SYSTEM_LOG, *_inside(files, SYSTEM_ARCHIVE)):
            _rewrite(files, name, without_documents(files.read(name), entries))
        _remove_damaged(files, SYSTEM, entries)


def _without_learnings(text: str, traces: set[str], digests: set[str]) -> str:
    for start in (LEARNING, PATTERN):
        text = without_sections(text, start, digests)
    ends = tuple(f"[{trace_id}]" for trace_id in traces)
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not (line.startswith(DECIDED) and line.rstrip().endswith(ends)))


def _inside(files: TraceFiles, folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in files.names(folder)]


def _rewrite(files: TraceFiles, name: str, data: bytes) -> None:
    if data != files.read(name):
        files.write(name, data)


def _remove_damaged(files: TraceFiles, folder: str, ids: set[str]) -> None:
    for name in _inside(files, folder):
        if ".damaged-" in name and any(id_.encode() in files.read(name) for id_ in ids):
            files.remove(name)
