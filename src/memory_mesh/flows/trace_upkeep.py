"""Upkeep of traces: draw learnings from groups of runs, and move what is old to compressed archives.

Every step may be killed: files are replaced whole, an archive is on disk before its text leaves the live file, and the rows come
last. The next run completes what is missing, and a further one changes nothing.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256

from memory_mesh.core import learning
from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import InvalidInput, MemoryMeshError
from memory_mesh.core.intake import LEARNING_KEY, TRACE_KEY, NewText, Terms
from memory_mesh.core.model import (
    DAY_MS,
    Compare,
    In,
    Kind,
    Memory,
    Meta,
    Row,
    Status,
    Value,
    Where,
    all_of,
    equals,
    iso,
    partition,
)
from memory_mesh.core.traces import Trace
from memory_mesh.core.traces import learnings as core
from memory_mesh.core.traces.layout import PROJECTS, Project
from memory_mesh.core.traces.learnings import DECIDED, LEARNING, PATTERN, Consolidation, Pattern, section_digest
from memory_mesh.core.traces.retention import COMPRESS_DAYS, IDLE_MS, Action, Move, ProjectState, Retention, planned_moves
from memory_mesh.flows import skills as skill_flow
from memory_mesh.flows import trace_files, trace_index
from memory_mesh.flows.archive import archive as archive_rows
from memory_mesh.flows.context import Context, Plan, commit, intact, paged
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.prepare import prepare
from memory_mesh.flows.write import plan_add, update

CATEGORY = "insight"
DUE_TRACES = 10
_LEARNINGS, _PATTERNS, _DECISIONS = "learnings.md", "patterns.md", "decisions.md"
_STARTS = {_PATTERNS: PATTERN, _LEARNINGS: LEARNING, _DECISIONS: DECIDED}
_DIGESTS = {_PATTERNS: "pattern_digest", _LEARNINGS: "digest"}  # the metadata by which our section is known
_DAY = re.compile(r"- ([0-9]{4}-[0-9]{2}-[0-9]{2}) ")
_log = logging.getLogger("memory_mesh")


# --- consolidation ---


def consolidate(
    context: Context, project: object = None, *, dry_run: bool = False, skills: bool = True, regroup: bool = False
) -> Consolidation:
    """Draw the learnings of a project from its traces: those of short-term memory and those of its learnings.

    With `regroup`, also from the archived traces of the last year that belong to no learning.
    """
    context.check_enabled()
    context, found = _without_session(context), trace_index.project_of(context, project)
    if not dry_run:
        trace_index.refresh(context)
        take_over_edits(context, found)
    run = _Consolidation(context, found, regroup=regroup or bool(_read_state(context, found).get("regroup")))
    done = run.result(dry_run=dry_run)
    if dry_run:
        return done
    run.write_files()
    context.step("traces.consolidated")
    run.write_rows()
    made = run.write_skills() if skills else ()
    run.write_state()
    return replace(done, skills=made)


class _Consolidation:
    """One comparison of the traces of a project with its learnings."""

    def __init__(self, context: Context, project: Project, *, regroup: bool) -> None:
        self._context, self._project, self._regroup = context, project, regroup
        self._at = context.clock()
        self._known = learnings_of(context, project)
        rows = paged(context, Kind.MEMORY, rows_of(context, project))
        self._rows = {str(row.metadata.get("trace_id")): row for row in map(Memory.of, rows)}
        self._state = _read_state(context, project)
        self._traces = self._read()
        vectors = {id_: row.vector for id_, row in self._rows.items() if row.vector}
        groups = core.grouped(self._traces.values(), vectors, context.options.trace_similarity)
        self._patterns = list(self._named(map(core.draw, groups)))
        self._changed = [each for each in self._patterns if not self._is_known(each)]
        ids = {each.learning_id for each in self._patterns}
        self._gone = {id_: row for id_, row in self._known.items() if id_ not in ids and row.status == Status.ACTIVE}

    def result(self, *, dry_run: bool) -> Consolidation:
        return Consolidation(
            project=self._project.name, traces=len(self._traces), patterns=tuple(self._patterns),
            written=tuple(each.learning_id for each in self._changed), merged=tuple(sorted(self._gone)),
            decisions=len(self._decisions()), dry_run=dry_run,
        )  # fmt: skip

    def write_files(self) -> None:
        """Write the sections of learnings and patterns in place of our earlier ones, and append new decisions."""
        for name in (_LEARNINGS, _PATTERNS):
            new = [
                (self._old(each, _DIGESTS[name]), each.text if name == _PATTERNS else each.learning.text)
                for each in self._changed
            ]
            self._rewrite(name, new, {str(row.metadata.get(_DIGESTS[name])) for row in self._gone.values()})
        self._rewrite(_DECISIONS, [(None, line) for line in self._decisions()], set())

    def write_rows(self) -> None:
        """Store the new and changed learnings, and archive those whose runs belong to others now."""
        if self._changed:
            prepared = prepare(self._context, [self._text(each) for each in self._changed])
            items = [
                replace(item, draft=replace(item.draft, columns={**item.draft.columns, "sources": self._sources(each)}))
                for item, each in zip(prepared, self._changed, strict=True)
            ]
            commit(self._context, partial(plan_add, self._context, items, Vectors()))
        gone = [row.id for row in self._gone.values()]
        archive_rows(self._context, Kind.MEMORY, gone, lambda _: "its runs belong to another learning")

    def write_skills(self) -> tuple[str, ...]:
        """Store a skill for each pattern that qualifies. One that was archived stays so until its learning changes."""
        drafts = [self._skill(each) for each in self._patterns if each.makes_skill]
        stored = skill_flow.store(self._context, drafts, revive=False)
        return tuple(each.skill.name for each in stored if each.action)

    def write_state(self) -> None:
        """Record up to which row traces were consolidated, if that changed."""
        last = max(self._rows.values(), key=lambda row: row.number, default=None)
        new: dict[str, Value] = {"number": last.number, "until": last.created_at} if last else {}
        new |= {"regrouped_at": iso(self._at), "regroup": False} if self._regroup else {}
        if {**self._state, **new} != self._state:
            _write_state(self._context, self._project, {**self._state, **new})

    def _read(self) -> dict[str, Trace]:
        """Return the traces to group by id. Without its row, by which it can be erased, a trace is left out."""
        wanted = {id_ for row in self._known.values() if row.status == Status.ACTIVE for id_ in texts(row, "trace_ids")}
        if self._regroup:
            oldest = iso(self._at - COMPRESS_DAYS * DAY_MS)
            wanted |= {id_ for id_, row in self._rows.items() if str(row.event_time) > oldest}
        found = {each.trace_id: each for each in traces_of(self._context, self._project)}
        if wanted - found.keys():  # reading archives takes long
            archived = {each.trace_id: each for each in traces_of(self._context, self._project, archived=True)}
            found = {id_: each for id_, each in archived.items() if id_ in wanted or id_ in found}
        return {id_: each for id_, each in found.items() if id_ in self._rows}

    def _named(self, patterns: Iterable[Pattern]) -> Iterator[Pattern]:
        """Yield the patterns, each with the id of the learning that most of its runs belong to, if there is one."""
        owner = {id_: name for name, row in self._known.items() if row.status == Status.ACTIVE for id_ in texts(row, "trace_ids")}
        taken: set[str] = set()
        for each in patterns:
            counts = Counter(
                owner[id_] for id_ in each.trace_ids if owner.get(id_, each.learning_id) not in taken and id_ in owner
            )
            name = max(sorted(counts), key=counts.__getitem__, default=each.learning_id)
            taken.add(name)
            yield replace(each, learning_id=name)

    def _is_known(self, pattern: Pattern) -> bool:
        """Return whether the learning was stored as it is. What people edit or remove stays so until a run changes it."""
        digests = section_digest(pattern.text), section_digest(pattern.learning.text)
        return tuple(self._old(pattern, name) for name in _DIGESTS.values()) == digests

    def _old(self, pattern: Pattern, name: str) -> str | None:
        row = self._known.get(pattern.learning_id)
        return str(row.metadata.get(name)) if row else None

    def _decisions(self) -> list[str]:
        """Return the new decisions of traces that no earlier consolidation has read."""
        last = _number(self._state)
        new = [each for id_, each in self._traces.items() if self._rows[id_].number > last]
        return core.new_decisions(_long_term(self._context, self._project, _DECISIONS), new)

    def _rewrite(self, name: str, new: Sequence[tuple[str | None, str]], lost: set[str]) -> None:
        def change(text: str) -> str:
            for old, section in new:
                text = core.with_section(text, _STARTS[name], section, replaces=old)
            return core.without_sections(text, _STARTS[name], lost)

        if new or lost:
            _rewrite(self._context, self._project, name, change)

    def _text(self, pattern: Pattern) -> NewText:
        found = pattern.learning
        metadata = {
            "category": CATEGORY, "project": self._project.name, "event_time": pattern.last_run,
            "learning_id": pattern.learning_id, "trace_ids": [*pattern.trace_ids], **_metadata_of(found),
            "digest": section_digest(found.text), "pattern_digest": section_digest(pattern.text),
        }  # fmt: skip
        key = f"{LEARNING_KEY}{self._project.name}:{pattern.learning_id}"
        return NewText(found.text, metadata, key=key, terms=Terms(claims="off"))

    def _sources(self, pattern: Pattern) -> list[Value]:
        """Return the memories of the runs, in the order in which they were recorded."""
        rows = sorted((self._rows[id_] for id_ in pattern.trace_ids), key=lambda row: row.number)
        return [row.id for row in rows]

    def _skill(self, pattern: Pattern) -> skill_flow.SkillDraft:
        draft = skill_flow.prepare(self._context, core.skill_text(pattern), {"learning_id": pattern.learning_id})
        sources = self._sources(pattern)
        columns = {**draft.columns, "sources": sources, "project": self._project.name}
        fingerprint = learning.skill_fingerprint(columns, self._context.reader, "lesson", str(sources[0]))
        return replace(draft, columns=columns, fingerprint=fingerprint)


def consolidate_due(context: Context, project: Project) -> None:
    """Consolidate a project if ten traces were recorded since the last time. A failure is only logged."""
    state = _read_state(context, project)
    since = Compare("created_at", ">=", str(state.get("until", "")))
    new = all_of(rows_of(context, project), since, Compare("number", ">", _number(state)))
    if context.store.count(Kind.MEMORY, new) >= DUE_TRACES:
        try:
            consolidate(context, project.name)
        except MemoryMeshError as error:
            _log.warning("the traces of %s are not consolidated: %s", project.name, error)


def consolidate_all(context: Context) -> list[Consolidation]:
    """Consolidate every project of the user."""
    return [consolidate(context, project.name) for project in trace_files.projects(context.open_traces())]


def has_projects(context: Context) -> bool:
    """Return whether the user has traces; False if there is no folder that can be read."""
    try:
        return bool(context.open_traces().names(PROJECTS, folders=True))
    except InvalidInput:
        return False


def regrouping_rows(context: Context, memories: Iterable[Memory]) -> list[Row]:
    """Return the rows by which the next consolidation draws erased learnings anew, from the traces that are left."""
    names = sorted({str(memory.project) for memory in memories if memory.category == CATEGORY})
    metas = [Meta.read(context.store, _state_id(context, Project(name))) for name in names]
    return [meta.row({**meta.detail, "regroup": True}, at=iso(context.clock())) for meta in metas]


# --- learnings as memories ---


def learnings_of(context: Context, project: Project) -> dict[str, Memory]:
    """Return the learnings of a project by id, archived ones too; the latest row of each."""
    where = trace_index.of_user(context, CATEGORY, equals("project", project.name), Compare("metadata.learning_id", "<>", ""))
    found: dict[str, Memory] = {}
    for memory in map(Memory.of, intact(context, paged(context, Kind.MEMORY, where))):
        known = found.get(str(memory.metadata["learning_id"]))
        if known is None or (known.status != Status.ACTIVE and memory.status == Status.ACTIVE):
            found[str(memory.metadata["learning_id"])] = memory
    return found


def learnings_from(context: Context, trace_rows: Sequence[str]) -> list[Memory]:
    """Return the active learnings that are drawn from these memories of traces."""
    # Without other conditions the store uses its index of sources.
    where = all_of(equals("user_id", context.reader.user_id), In("sources", tuple(trace_rows)))
    found = map(Memory.of, intact(context, context.store.find(Kind.MEMORY, where)) if trace_rows else ())
    return [row for row in found if row.status == Status.ACTIVE and row.category == CATEGORY and "learning_id" in row.metadata]


def take_over_edits(context: Context, project: Project) -> None:
    """Change the memories of learnings that a person edited in learnings.md, and archive those that were removed."""
    files, name = context.open_traces(), f"{project.long_term}/{_LEARNINGS}"
    mark, scope = files.mark(name), f"{files.root} {name}"
    if context.state.traces_read.get(scope) == mark:
        return
    text = _long_term(context, project, _LEARNINGS)
    for row in [row for row in learnings_of(context, project).values() if row.status == Status.ACTIVE]:
        section = core.find_section(text, LEARNING, str(row.metadata.get("digest")), str(row.metadata.get("pattern")))
        if section is None:
            archive_rows(context, Kind.MEMORY, [row.id], lambda _: f"it was removed from {_LEARNINGS}")
        elif section_digest(section) not in (row.metadata.get("digest"), row.metadata.get("edited")):
            read = core.read_learning(section)
            more = {**(_metadata_of(read) if read else {}), "edited": section_digest(section)}
            update(context, row.id, content=section.strip(), metadata={**row.metadata, **more})
    context.state.traces_read[scope] = mark


def _metadata_of(found: core.Learning) -> dict[str, Value]:
    return {
        "pattern": found.name, "count": found.count, "success_rate": found.rate, "tools_used": [*found.tools],
        "insights": [*found.insights], "anti_patterns": [*found.anti_patterns],
        "recommended_approach": found.approach if found.rate else "",
    }  # fmt: skip


def learning_of(row: Memory) -> core.Learning:
    """Return the learning of a memory."""
    number = {name: value if isinstance(value := row.metadata.get(name), int) else 0 for name in ("count", "success_rate")}
    return core.Learning(
        name=str(row.metadata.get("pattern")), count=number["count"], rate=number["success_rate"],
        tools=texts(row, "tools_used"), insights=texts(row, "insights"),
        approach=str(row.metadata.get("recommended_approach") or core.NO_SUCCESS),
        anti_patterns=texts(row, "anti_patterns"),
    )  # fmt: skip


# --- retention ---


def retention(context: Context, *, dry_run: bool = False) -> Retention:
    """Move what is old to the archives, or only return what would move and why."""
    context.check_enabled()
    if not dry_run:
        trace_index.refresh(context)
    moves: list[Move] = []
    for project in trace_files.projects(context.open_traces()):
        check_cancelled()
        due = list(planned_moves(_project_state(context, project), context.clock()))
        for move in () if dry_run else due:
            _perform(_without_session(context), project, move)
        moves += due
    return Retention(moves=tuple(moves), dry_run=dry_run)


def archive(context: Context, project: object = None) -> Consolidation:
    """Consolidate a project, and move all its short-term memory to its archive."""
    found = trace_index.project_of(context, project)
    done = consolidate(context, found.name)
    _archive_session(_without_session(context), found, "the project was archived")
    return done


def reopen(context: Context, project: Project) -> None:
    """Archive what an earlier session left in short-term memory, if nothing happened for 24 hours."""
    if not context.open_traces().mark(project.log):  # it is new, so nothing is older than now
        _write_state(context, project, {"until": iso(context.clock())})
        return
    recent = all_of(rows_of(context, project), Compare("created_at", ">", iso(context.clock() - IDLE_MS)))
    if not context.store.find(Kind.MEMORY, recent, limit=1):
        for move in planned_moves(_project_state(context, project), context.clock()):
            if move.action is Action.ARCHIVE:
                _perform(_without_session(context), project, move)


def _perform(context: Context, project: Project, move: Move) -> None:
    if move.action is Action.COMPRESS:
        _compress(context, project, move)
        return
    consolidate(context, project.name, regroup=move.action is Action.CONSOLIDATE)
    if move.action is Action.ARCHIVE:
        _archive_session(context, project, move.reason)


def _project_state(context: Context, project: Project) -> ProjectState:
    known = [row for row in learnings_of(context, project).values() if row.status == Status.ACTIVE]
    results = context.open_traces().names(project.tool_results, folders=True)  # a crash may have left those of archived traces
    _, lines = core.split_sections(_long_term(context, project, _DECISIONS), DECIDED)
    return ProjectState(
        project=project.name,
        trace_ids=list(dict.fromkeys((*(each.trace_id for each in traces_of(context, project)), *results))),
        last_activity=_last_activity(context, project),
        learnings={str(row.metadata["learning_id"]): row.event_time or row.created_at for row in known},
        decisions={section_digest(line): day[1] for line in lines if (day := _DAY.match(line))},
        regrouped_at=str(_read_state(context, project).get("regrouped_at", "")),
    )


def _last_activity(context: Context, project: Project) -> str | None:
    newest = context.store.find(Kind.MEMORY, rows_of(context, project), limit=1)
    return newest[0].created_at if newest else None


def _archive_session(context: Context, project: Project, reason: str) -> None:
    """Move short-term memory to the archive. It is archived before it leaves the live files, and the rows come last."""
    files = context.open_traces()
    with files.locked(project.short_term):
        if (data := files.read(project.log)).strip():
            first = next((each.trace_id for each in traces_of(context, project)), sha256(data).hexdigest()[:16])
            files.write(f"{project.archive}/{first}.md.gz", data)
            context.step("traces.archived")
            files.write(project.log, b"")
            context.step("traces.cut")
        for trace_id in files.names(project.tool_results, folders=True):
            live, archived = (f"{folder}/{trace_id}" for folder in (project.tool_results, f"{project.archive}/tool_results"))
            for name in files.names(live):
                files.write(f"{archived}/{name}.gz", files.read(f"{live}/{name}"))
            context.step("traces.archived")
            files.remove(live)
        active = all_of(rows_of(context, project), equals("status", Status.ACTIVE))
        archive_rows(context, Kind.MEMORY, context.store.ids(Kind.MEMORY, active), lambda _: reason)


def _compress(context: Context, project: Project, move: Move) -> None:
    """Move old learnings with their patterns, and old decisions, to archives of long-term memory."""
    known, ids = learnings_of(context, project), set(move.ids)
    with context.open_traces().locked(project.short_term):
        for id_ in sorted(ids & known.keys()):
            check_cancelled()
            _compress_learning(context, project, known[id_])
            archive_rows(context, Kind.MEMORY, [known[id_].id], lambda _: move.reason)
        _, lines = core.split_sections(_long_term(context, project, _DECISIONS), DECIDED)
        if old := "".join(line for line in lines if section_digest(line) in ids):
            _write_archive(context, project, f"decisions-{section_digest(old)}", [old])
            _rewrite(context, project, _DECISIONS, lambda text: core.without_sections(text, DECIDED, ids))


def _compress_learning(context: Context, project: Project, row: Memory) -> None:
    # The pattern leaves its file first: a learning that is not in its file counts as removed by a person.
    sections = {
        name: core.find_section(
            _long_term(context, project, name), _STARTS[name], str(row.metadata.get(digest)), str(row.metadata.get("pattern"))
        )
        for name, digest in _DIGESTS.items()
    }
    found = {name: section for name, section in sections.items() if section}
    _write_archive(context, project, str(row.metadata["learning_id"]), list(found.values()))
    for name, section in found.items():
        lost = {section_digest(section)}
        _rewrite(context, project, name, partial(core.without_sections, start=_STARTS[name], digests=lost))
        context.step("traces.cut")


def _write_archive(context: Context, project: Project, name: str, sections: Sequence[str]) -> None:
    """Add sections to an archive of long-term memory. After a crash, some may be there already."""
    files, path = context.open_traces(), f"{project.long_term}/archive/{name}.md.gz"
    text = files.read(path).decode()
    new = [section.strip() for section in sections if section.strip() not in text]
    files.write(path, "\n\n".join(filter(None, (text.strip(), *new))).encode() + b"\n")
    context.step("traces.archived")


# --- reading and writing ---


def rows_of(context: Context, project: Project) -> Where:
    """Return the condition for the memories of the traces of a project."""
    # All are in one partition, whose rows are indexed by age.
    shared = equals("partition", partition(context.reader.user_id, None))
    return trace_index.of_folder(context, TRACE_KEY, shared, equals("project", project.name))


def traces_of(context: Context, project: Project, *, archived: bool = False) -> Iterator[Trace]:
    """Yield the traces of short-term memory and, if asked, of the archives; not what cannot be read."""
    found = trace_files.traces_of(context.open_traces(), project, archived=archived)
    return (each for each in found if isinstance(each, Trace))


def _without_session(context: Context) -> Context:
    return replace(context, reader=replace(context.reader, session_id=None))


def _long_term(context: Context, project: Project, name: str) -> str:
    return context.open_traces().read(f"{project.long_term}/{name}").decode(errors="surrogateescape")


def _rewrite(context: Context, project: Project, name: str, change: Callable[[str], str]) -> None:
    """Replace a file of long-term memory by its changed text, unless that is the same."""
    files = context.open_traces()
    with files.locked(project.short_term):
        text = _long_term(context, project, name)
        if (new := change(text)) != text:
            files.write(f"{project.long_term}/{name}", new.encode(errors="surrogateescape"))


def texts(row: Memory, name: str) -> tuple[str, ...]:
    """Return a list of texts in the metadata of a memory."""
    value = row.metadata.get(name)
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _read_state(context: Context, project: Project) -> dict[str, Value]:
    return dict(Meta.read(context.store, _state_id(context, project)).detail)


def _number(state: dict[str, Value]) -> int:
    """Return the number of the last row that was consolidated."""
    number = state.get("number")
    return number if isinstance(number, int) else 0


def _write_state(context: Context, project: Project, detail: dict[str, Value]) -> None:
    def decide() -> Plan[None]:
        meta = Meta.read(context.store, _state_id(context, project))
        return Plan(None, [meta.row(detail, at=iso(context.clock()))])

    commit(context, decide)


def _state_id(context: Context, project: Project) -> str:
    return f"{trace_index.state_prefix(context)}upkeep {sha256(project.name.encode()).hexdigest()[:16]}"
