"""Consolidate traces: draw learnings from groups of runs, and store them as files and memories.
Move what is old to archives.

Every step may be killed: files are replaced whole, and the rows come last. The next run completes
what is missing, and a further one changes nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from itertools import chain

from memory_mesh.core import learning
from memory_mesh.core.errors import InvalidInput, MemoryMeshError, NotFound, shown
from memory_mesh.core.intake import LEARNING_KEY, TRACE_KEY, NewText, Terms
from memory_mesh.core.language.safety.injection import detect
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
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.traces import Trace, read_traces
from memory_mesh.core.traces import learnings as core
from memory_mesh.core.traces.learnings import (
    DECIDED,
    LEARNING,
    PATTERN,
    Consolidation,
    Pattern,
    section_digest,
)
from memory_mesh.core.traces.schema import (
    COMPRESS_DAYS,
    IDLE_MS,
    PROJECTS,
    Action,
    Move,
    Project,
    ProjectState,
    Retention,
    planned_moves,
)
from memory_mesh.flows.context import Context, intact, paged
from memory_mesh.flows.learning import skills as skill_flow
from memory_mesh.flows.mirror import mirror
from memory_mesh.flows.traces import index as trace_index
from memory_mesh.flows.write.prepare import prepare
from memory_mesh.flows.write.write import update

CATEGORY = "insight"
DUE_TRACES = 10
_LEARNINGS, _PATTERNS, DECISIONS = "learnings.md", "patterns.md", "decisions.md"
STARTS = {_PATTERNS: PATTERN, _LEARNINGS: LEARNING, DECISIONS: DECIDED}
# The metadata by which our section is known.
DIGESTS = {_PATTERNS: "pattern_digest", _LEARNINGS: "digest"}


# --- consolidation ---


def consolidate(
    context: Context,
    project: object = None,
    *,
    dry_run: bool = False,
    skills: bool = True,
    regroup: bool = False,
) -> Consolidation:
    """Draw the learnings of a project from its traces: those of short-term memory and those of its
    learnings.

    With `regroup`, also from the archived traces of the last year that belong to no learning.
    """
    context.check_enabled()
    context, found = mirror.without_session(context), trace_index.project_of(context, project)
    files = context.open_traces()
    if not files.mark(found.log):
        names = [each.name for each in trace_index.projects(files)]
        if project is not None and found.name not in names:  # such as one that is misspelt
            raise NotFound(
                f"no traces of a project {shown(found.name, max_length=80)}",
                remedy="see memory-mesh trace list",
            )
        return Consolidation(project=found.name, traces=0, patterns=(), dry_run=dry_run)
    if dry_run:
        return _Consolidation(context, found, regroup=regroup).result(dry_run=True)
    with files.locked(found.short_term):  # of two processes, the second sees what the first wrote
        trace_index.refresh(context)
        take_over_edits(context, found)
        run = _Consolidation(context, found, regroup=regroup)
        run.announce()
        run.write_files()
        context.step("traces.consolidated")
        run.write_rows()
        made = run.write_skills() if skills else ()
        run.write_state()
    return replace(run.result(dry_run=False), skills=made)


class _Consolidation:
    """One comparison of the traces of a project with its learnings."""

    def __init__(self, context: Context, project: Project, *, regroup: bool) -> None:
        self._context, self._project = context, project
        self._at = context.clock()
        self._known = learnings_of(context, project)
        self._state = read_state(context, project)
        self._regroup = regroup or bool(self._state.get("regroup"))
        self._rows = {
            str(row.metadata.get("trace_id")): row for row in map(Memory.of, self._read_rows())
        }
        self._traces = self._read()
        vectors = {id_: row.vector for id_, row in self._rows.items() if row.vector}
        groups = core.grouped(self._traces.values(), vectors, context.options.trace_similarity)
        self._mask = cache(context.gates.content().redact_markup)
        self._patterns = [
            core.with_texts(each, self._mask) for each in self._named(map(core.draw, groups))
        ]
        self._changed = [each for each in self._patterns if not self._is_known(each)]
        ids = {each.learning_id for each in self._patterns}
        self._gone = {
            id_: row
            for id_, row in self._known.items()
            if id_ not in ids and row.status == Status.ACTIVE
        }
        self._decisions = self._new_decisions()

    def result(self, *, dry_run: bool) -> Consolidation:
        return Consolidation(
            project=self._project.name, traces=len(self._traces), patterns=tuple(self._patterns),
            written=tuple(each.learning_id for each in self._changed),
            merged=tuple(sorted(self._gone)), decisions=len(self._decisions), dry_run=dry_run,
        )  # fmt: skip

    def announce(self) -> None:
        """Record which sections will be written, so that they are known as ours if the rows are
        not written after them."""
        if self._changed:
            digests: list[Value] = [
                section_digest(text)
                for each in self._changed
                for text in (each.text, each.learning.text)
            ]
            write_state(self._context, self._project, {**self._state, "announced": digests})

    def write_files(self) -> None:
        """Write the sections of learnings and patterns in place of our earlier ones, and append
        new decisions."""
        announced = self._state.get("announced")
        # By a run that was killed.
        left = {str(digest) for digest in (announced if isinstance(announced, list) else ())}
        for name in (_LEARNINGS, _PATTERNS):
            new = [
                (
                    self._old(each, DIGESTS[name]),
                    each.text if name == _PATTERNS else each.learning.text,
                )
                for each in self._changed
            ]
            kept = {section_digest(text) for _, text in new} | {
                str(row.metadata.get(DIGESTS[name])) for row in self._active()
            }
            lost = {str(row.metadata.get(DIGESTS[name])) for row in self._gone.values()}
            self._rewrite(name, new, lost | (left - kept))
        self._rewrite(DECISIONS, [(None, line) for line in self._decisions], set())

    def write_rows(self) -> None:
        """Store the new and changed learnings, and archive those whose runs belong to others
        now."""
        if self._changed:
            store(
                self._context, [(self._text(each), self._sources(each)) for each in self._changed]
            )
        gone = [row.id for row in self._gone.values()]
        mirror.archive_all(self._context, gone, "its runs belong to another learning")

    def write_skills(self) -> tuple[str, ...]:
        """Store a skill for each pattern that qualifies. One that was archived stays so until
        its learning changes."""
        # A skill is followed as an instruction, so one that tool output or a request may have
        # dictated is left out.
        drafts = [
            self._skill(each)
            for each in self._patterns
            if each.makes_skill and not detect(each.learning.text)
        ]
        stored = skill_flow.store(self._context, drafts, revive=False)
        return tuple(each.skill.name for each in stored if each.action)

    def write_state(self) -> None:
        """Record up to which row traces were consolidated, if that changed."""
        last = max(self._rows.values(), key=lambda row: row.number, default=None)
        is_later = last is not None and last.number > _number(self._state)
        new: dict[str, Value] = (
            {"number": last.number, "until": last.created_at} if last and is_later else {}
        )
        new |= {"read": len(self._traces)} if is_later else {}
        new |= {"regrouped_at": iso(self._at), "regroup": False} if self._regroup else {}
        new |= {"announced": []} if self._changed or self._state.get("announced") else {}
        if self._changed or {**self._state, **new} != self._state:
            write_state(self._context, self._project, {**self._state, **new})

    def _read_rows(self) -> Iterator[Row]:
        """Yield the memories of the traces of short-term memory and of learnings, or of all."""
        where = rows_of(self._context, self._project)
        if self._regroup:
            return paged(self._context, Kind.MEMORY, where)
        live = paged(self._context, Kind.MEMORY, all_of(where, equals("status", Status.ACTIVE)))
        sources = self._context.store.get(
            Kind.MEMORY, sorted({id_ for row in self._active() for id_ in row.sources})
        )
        return chain(sources.values(), live)

    def _read(self) -> dict[str, Trace]:
        """Return the traces to group by id. Without its row, by which it can be erased, a trace
        is left out."""
        wanted = {id_ for row in self._active() for id_ in texts(row, "trace_ids")}
        if self._regroup:
            oldest = iso(self._at - COMPRESS_DAYS * DAY_MS)
            wanted |= {id_ for id_, row in self._rows.items() if str(row.event_time) > oldest}
        found = {each.trace_id: each for each in traces_of(self._context, self._project)}
        archived = trace_index.archived_traces(
            self._context.open_traces(), self._project, wanted - found.keys()
        )
        found |= {each.trace_id: each for each in archived}
        return {id_: each for id_, each in found.items() if id_ in self._rows}

    def _named(self, patterns: Iterable[Pattern]) -> Iterator[Pattern]:
        """Yield the patterns, each with the id of the learning that most of its runs belong to,
        if there is one."""
        owner = {
            id_: name
            for name, row in self._known.items()
            if row.status == Status.ACTIVE
            for id_ in texts(row, "trace_ids")
        }
        taken: set[str] = set()
        for each in patterns:
            counts = Counter(
                owner[id_]
                for id_ in each.trace_ids
                if owner.get(id_, each.learning_id) not in taken and id_ in owner
            )
            name = max(sorted(counts), key=counts.__getitem__, default=each.learning_id)
            taken.add(name)
            yield replace(each, learning_id=name)

    def _active(self) -> list[Memory]:
        return [row for row in self._known.values() if row.status == Status.ACTIVE]

    def _is_known(self, pattern: Pattern) -> bool:
        """Return whether the learning was stored as it is. What people edit or remove stays so
        until a run changes it."""
        digests = section_digest(pattern.text), section_digest(pattern.learning.text)
        return tuple(self._old(pattern, name) for name in DIGESTS.values()) == digests

    def _old(self, pattern: Pattern, name: str) -> str | None:
        row = self._known.get(pattern.learning_id)
        return str(row.metadata.get(name)) if row else None

    def _new_decisions(self) -> list[str]:
        """Return the new decisions of traces that no earlier consolidation has read."""
        last = _number(self._state)
        recent = [each for id_, each in self._traces.items() if self._rows[id_].number > last]
        new = [
            replace(each, learnings=tuple(map(self._mask, each.learnings)))
            for each in recent
            if each.decisions
        ]
        return core.new_decisions(long_term_text(self._context, self._project, DECISIONS), new)

    def _rewrite(self, name: str, new: Sequence[tuple[str | None, str]], lost: set[str]) -> None:
        def change(text: str) -> str:
            for old, section in new:
                text = core.with_section(text, STARTS[name], section, replaces=old)
            return core.without_sections(text, STARTS[name], lost)

        if new or lost:
            rewrite(self._context, self._project, name, change)

    def _text(self, pattern: Pattern) -> NewText:
        found = pattern.learning
        metadata = {
            "category": CATEGORY, "project": self._project.name, "event_time": pattern.last_run,
            "learning_id": pattern.learning_id, "trace_ids": [*pattern.trace_ids],
            **_metadata_of(found), "digest": section_digest(found.text),
            "pattern_digest": section_digest(pattern.text),
        }  # fmt: skip
        key = f"{LEARNING_KEY}{self._project.name}:{pattern.learning_id}"
        return NewText(found.text, metadata, key=key, terms=Terms(claims="off"))

    def _sources(self, pattern: Pattern) -> list[Value]:
        """Return the memories of the runs, in the order in which they were recorded."""
        rows = sorted((self._rows[id_] for id_ in pattern.trace_ids), key=lambda row: row.number)
        return [row.id for row in rows]

    def _skill(self, pattern: Pattern) -> skill_flow.SkillDraft:
        draft = skill_flow.prepare(
            self._context, core.skill_text(pattern), {"learning_id": pattern.learning_id}
        )
        sources = self._sources(pattern)
        columns = {**draft.columns, "sources": sources, "project": self._project.name}
        fingerprint = learning.skill_fingerprint(
            columns, self._context.reader, "lesson", str(sources[0])
        )
        return replace(draft, columns=columns, fingerprint=fingerprint)


def consolidate_due(context: Context, project: Project) -> None:
    """Consolidate a project if ten traces were recorded since the last time. A failure is only
    logged.

    That reads all traces of the project, so with more than a hundred it waits for a tenth of them.
    """
    state = read_state(context, project)
    since = Compare("created_at", ">=", str(state.get("until", "")))
    new = all_of(rows_of(context, project), since, Compare("number", ">", _number(state)))
    if context.store.count(Kind.MEMORY, new) >= max(DUE_TRACES, _number(state, "read") // 10):
        with mirror.only_logged(unchanged(project), MemoryMeshError):
            consolidate(context, project.name)


def consolidate_all(context: Context) -> list[Consolidation]:
    """Consolidate every project of the user. One whose files cannot be read is only logged."""
    done: list[Consolidation] = []
    for project in trace_index.own_projects(context):
        with mirror.only_logged(unchanged(project), InvalidInput):
            done.append(consolidate(context, project.name))
    return done


def unchanged(project: Project) -> str:
    """Return what is logged with an error about the traces of a project."""
    return f"the traces of {project.name} stay as they are"


def has_projects(context: Context) -> bool:
    """Return whether the user has traces; False if there is no folder that can be read."""
    try:
        return bool(context.open_traces().names(PROJECTS, folders=True))
    except InvalidInput:
        return False


def regrouping_rows(context: Context, memories: Iterable[Memory]) -> list[Row]:
    """Return the rows by which the next consolidation draws erased learnings anew, from the
    traces that are left."""
    names = sorted({str(memory.project) for memory in memories if memory.category == CATEGORY})
    metas = [Meta.read(context.store, _state_id(context, Project(name))) for name in names]
    return [meta.row({**meta.detail, "regroup": True}, at=iso(context.clock())) for meta in metas]


# --- learnings as memories ---


def learnings_of(context: Context, project: Project) -> dict[str, Memory]:
    """Return the learnings of a project by id, archived ones too; the latest row of each."""
    where = trace_index.of_user(
        context,
        CATEGORY,
        equals("project", project.name),
        Compare("metadata.learning_id", "<>", ""),
    )
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
    found = map(
        Memory.of, intact(context, context.store.find(Kind.MEMORY, where)) if trace_rows else ()
    )
    return [
        row
        for row in found
        if row.status == Status.ACTIVE
        and row.category == CATEGORY
        and "learning_id" in row.metadata
    ]


def take_over_edits(context: Context, project: Project) -> None:
    """Change the memories of learnings that a person edited in learnings.md, and archive those
    that were removed."""
    files, name = context.open_traces(), f"{project.long_term}/{_LEARNINGS}"
    mark, scope = files.mark(name), f"{files.root} {name}"
    # Without a file it is not known what was removed.
    if not mark or context.state.files.trace_marks.get(scope) == mark:
        return
    text = long_term_text(context, project, _LEARNINGS)
    for row in [
        row for row in learnings_of(context, project).values() if row.status == Status.ACTIVE
    ]:
        section = core.find_section(
            text, LEARNING, str(row.metadata.get("digest")), str(row.metadata.get("pattern"))
        )
        if section is None:
            mirror.archive_all(context, [row.id], f"it was removed from {_LEARNINGS}")
        elif section_digest(section) not in (
            row.metadata.get("digest"),
            row.metadata.get("edited"),
        ):
            read = core.read_learning(section)
            more = {**(_metadata_of(read) if read else {}), "edited": section_digest(section)}
            update(context, row.id, content=section.strip(), metadata={**row.metadata, **more})
    context.state.files.trace_marks[scope] = mark


def _metadata_of(found: core.Learning) -> dict[str, Value]:
    return {
        "pattern": found.name, "count": found.count, "success_rate": found.rate,
        "tools_used": [*found.tools], "insights": [*found.insights],
        "anti_patterns": [*found.anti_patterns],
        "recommended_approach": found.approach if found.rate else "",
    }  # fmt: skip


def learning_of(row: Memory) -> core.Learning:
    """Return the learning of a memory."""
    number = {
        name: value if isinstance(value := row.metadata.get(name), int) else 0
        for name in ("count", "success_rate")
    }
    return core.Learning(
        name=str(row.metadata.get("pattern")), count=number["count"], rate=number["success_rate"],
        tools=texts(row, "tools_used"), insights=texts(row, "insights"),
        approach=str(row.metadata.get("recommended_approach") or core.NO_SUCCESS),
        anti_patterns=texts(row, "anti_patterns"),
    )  # fmt: skip


# --- reading and writing ---


def store(context: Context, texts: Sequence[tuple[NewText, list[Value]]]) -> list[Memory]:
    """Store texts, each with the memories that it is drawn from, with which it is erased."""
    prepared = prepare(context, [text for text, _ in texts])
    items = [
        replace(item, draft=replace(item.draft, columns={**item.draft.columns, "sources": sources}))
        for item, (_, sources) in zip(prepared, texts, strict=True)
    ]
    return mirror.store(context, items)


def rows_of(context: Context, project: Project) -> Where:
    """Return the condition for the memories of the traces of a project."""
    # All are in one partition, whose rows are indexed by age.
    shared = equals("partition", partition(context.reader.user_id, None))
    return trace_index.of_folder(context, TRACE_KEY, shared, equals("project", project.name))


def traces_of(context: Context, project: Project) -> Iterator[Trace]:
    """Yield the traces of short-term memory; not what is invalid. Raises `InvalidInput` if the
    file cannot be read."""
    text = trace_index.text_of(context.open_traces(), project.log)
    return (each for each in read_traces(text, project.log) if isinstance(each, Trace))


def long_term_text(context: Context, project: Project, name: str) -> str:
    """Return the text of a file of long-term memory."""
    return (
        context.open_traces().read(f"{project.long_term}/{name}").decode(errors="surrogateescape")
    )


def rewrite(context: Context, project: Project, name: str, change: Callable[[str], str]) -> None:
    """Replace a file of long-term memory by its changed text, unless that is the same."""
    files = context.open_traces()
    with files.locked(project.short_term):
        text = long_term_text(context, project, name)
        if (new := change(text)) != text:
            files.write(f"{project.long_term}/{name}", new.encode(errors="surrogateescape"))


def texts(row: Memory, name: str) -> tuple[str, ...]:
    """Return a list of texts in the metadata of a memory."""
    value = row.metadata.get(name)
    return tuple(map(str, value)) if isinstance(value, list) else ()


def read_state(context: Context, project: Project) -> dict[str, Value]:
    """Return what is known about the last consolidation of a project."""
    return dict(Meta.read(context.store, _state_id(context, project)).detail)


def _number(state: dict[str, Value], name: str = "number") -> int:
    """Return a number of the state: that of the last row that was consolidated, or how many
    traces were `read`."""
    number = state.get(name)
    return number if isinstance(number, int) else 0


def write_state(context: Context, project: Project, detail: dict[str, Value]) -> None:
    """Record what is known about the last consolidation of a project."""
    mirror.store(context, [], {_state_id(context, project): detail})


def _state_id(context: Context, project: Project) -> str:
    name = sha256(project.name.encode()).hexdigest()[:16]
    return f"{mirror.state_prefix(context, mirror.TRACES)}upkeep {name}"


# --- retention ---
# What is old moves to compressed archives, and nothing is deleted. An archive is on disk before its
# text leaves the live file, and the rows come last.

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
        for row in (known[id_] for id_ in sorted(ids & known.keys())):
            check_cancelled()
            _compress_learning(context, project, row)
            mirror.archive_all(context, [row.id], move.reason)
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
