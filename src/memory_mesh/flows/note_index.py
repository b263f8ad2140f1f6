"""The index of notes: every valid section of a file is a memory, so that the searches of all faces find it.

What changed is taken over when it is used: the marks of the files are compared, and only then are the files read. The memory of a
section is found by its file and title; a section that moved keeps its memory, and so its feedback. Removed, deprecated and
expired ones are archived.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

from memory_mesh.core.errors import InvalidInput, NotFound, StoreBusy, StoreReadOnly, shown
from memory_mesh.core.intake import NOTE_KEY, NewText, Terms
from memory_mesh.core.model import Kind, Memory, Meta, Status, Value, batches, iso
from memory_mesh.core.notes import Fault, Note, Notes, Relevance, Synced
from memory_mesh.core.notes.folder import digest, double_titles, is_current, keys_of, read_file
from memory_mesh.core.ports import NoteFile, NoteFiles
from memory_mesh.flows import lane
from memory_mesh.flows.archive import archive
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.prepare import Prepared, prepare
from memory_mesh.flows.revisions import plan_revision
from memory_mesh.flows.write import plan_add, read_current, set_columns

CATEGORY = "note"
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class _Entry:
    """A section that is indexed: the digest of its text, its number in the file, and its memory."""

    digest: str
    section: int
    id: str


@dataclass(frozen=True, slots=True)
class _State:
    """What the index of a folder holds: the marks of its files, until when it is up to date, and its sections by key."""

    marks: dict[str, str] = field(default_factory=dict)
    until: str | None = None
    sections: dict[str, _Entry] = field(default_factory=dict)
    archived: dict[str, str] = field(default_factory=dict)  # the memories of removed sections, which may come back

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> "_State":
        sections = {key: _Entry(*values) for key, values in detail.get("sections", {}).items()}
        return cls(detail.get("marks", {}), detail.get("until"), sections, detail.get("archived", {}))

    @property
    def detail(self) -> dict[str, Value]:
        sections: dict[str, Value] = {key: [one.digest, one.section, one.id] for key, one in self.sections.items()}
        return {"marks": {**self.marks}, "until": self.until, "sections": sections, "archived": {**self.archived}}

    def covers(self, marks: Mapping[str, str], at: str) -> bool:
        """Return whether nothing changed: no file, and no section that begins or ends to be valid."""
        return self.marks == marks and (self.until is None or at <= self.until)


# --- bringing it up to date ---


def read_all(files: NoteFiles, listed: Sequence[NoteFile]) -> Notes:
    """Return the notes of these files, and what is wrong in them."""
    notes, faults = list[Note](), list[Fault]()
    for file in listed:
        for each in _read(files, file):
            notes.append(each) if isinstance(each, Note) else faults.append(each)
    return Notes(notes, [*faults, *double_titles(notes)])


def _read(files: NoteFiles, file: NoteFile) -> Iterator[Note | Fault]:
    fault = file.fault
    if fault is None:
        try:
            yield from read_file(file.name, files.read(file.name))
        except InvalidInput as error:
            fault = str(error)
    if fault is not None:
        yield Fault(file.name or files.root, 0, fault)


def refresh(context: Context, notes: Notes | None = None, listed: Sequence[NoteFile] | None = None) -> None:
    """Index the folder if a file changed. A store that is not there yet, or is only read, is left alone."""
    if not context.options.enable_memory or not context.file.is_prepared():
        return
    listed = context.open_notes().files() if listed is None else listed
    scope, marks, at = _scope(context), _marks(listed), iso(context.clock())
    known = context.state.notes_read.get(scope)
    if not isinstance(known, _State) or not known.covers(marks, at):
        known = _State.of(Meta.read(context.store, scope).detail)
        if known.covers(marks, at):
            context.state.notes_read[scope] = known
        elif marks or known.marks:
            with suppress(StoreReadOnly, StoreBusy):
                sync(context, notes, listed)


def sync(context: Context, notes: Notes | None = None, listed: Sequence[NoteFile] | None = None) -> Synced:
    """Bring the memories of the sections up to date, and return what changed."""
    context.check_enabled()
    context = replace(context, reader=replace(context.reader, session_id=None))
    files = context.open_notes()
    listed = files.files() if listed is None else listed
    notes = read_all(files, listed) if notes is None else notes
    run = _Run(context, notes)
    run.move()
    run.store()
    run.archive()
    state = replace(run.new, marks=_marks(listed), until=_until(notes, run.at))
    if state != run.old:
        _write(context, state)
    context.state.notes_read[_scope(context)] = state
    return Synced(**run.counts, faults=(*notes.faults, *run.faults))


class _Run:
    """One comparison of the files with the index."""

    def __init__(self, context: Context, notes: Notes) -> None:
        self._context, self.at = context, iso(context.clock())
        self._prefix = f"{NOTE_KEY}{sha256(context.open_notes().root.encode()).hexdigest()[:8]}/"
        self.old = _State.of(Meta.read(context.store, _scope(context)).detail)
        every = dict(zip(keys_of(notes), notes, strict=True))
        self._current = {key: note for key, note in every.items() if is_current(note, self.at)}
        self._outdated = every.keys() - self._current.keys()
        # A file that cannot be read is still there, and so are all files of such a folder.
        unreadable = {fault.file for fault in notes.faults if not fault.line}
        root_fails = context.open_notes().root in unreadable
        self._gone = {
            key: entry for key, entry in self.old.sections.items()
            if key not in self._current and not (root_fails or key.partition("#")[0] in unreadable)
        }  # fmt: skip
        self._changed: list[str] = []
        self.new = _State(archived=dict(self.old.archived))
        self.counts = dict.fromkeys(("added", "updated", "moved", "archived", "unchanged"), 0)
        self.faults: list[Fault] = []
        kept = self.old.sections.keys() - self._gone.keys() - self._current.keys()
        self.new.sections.update({key: self.old.sections[key] for key in kept})

    def move(self) -> None:
        """Find the memory of each section; one that moved keeps its memory."""
        for key, note in self._current.items():
            known = self.old.sections.get(key)
            moved = None if known else self._moved(key, note)
            entry = known or (self._gone.pop(moved) if moved else None)
            if entry is None:
                self._revive(key)
                self._changed.append(key)
                continue
            self.new.sections[key] = replace(entry, section=note.section)
            is_edited = entry.digest != digest(note)
            if moved or (not is_edited and entry.section != note.section):
                self._describe(key, note, entry.id)
            if is_edited:
                self._changed.append(key)
            else:
                self.counts["moved" if moved else "unchanged"] += 1

    def store(self) -> None:
        """Store the new and the edited sections."""
        vectors = Vectors()
        for keys in batches(self._changed, _AT_ONCE):
            ready = [(key, item) for key in keys for item in self._prepared(key)]
            items = [item for _, item in ready]
            memories = commit(self._context, partial(plan_add, self._context, items, vectors)) if items else []
            for (key, _), memory in zip(ready, memories, strict=True):
                self.counts["updated" if key in self.new.sections else "added"] += 1
                note = self._current[key]
                self.new.sections[key] = _Entry(digest(note), note.section, memory.id)

    def archive(self) -> None:
        """Archive the memories of sections that are gone."""
        for key, entry in self._gone.items():
            file = key.partition("#")[0]
            why = "the note is deprecated or not valid now" if key in self._outdated else f"the note was removed from {file}"
            done = archive(self._context, Kind.MEMORY, [entry.id], partial(_because, why))
            self.counts["archived"] += len(done)
            self.new.archived[key] = entry.id

    def _moved(self, key: str, note: Note) -> str | None:
        """Return the earlier key of a section: one with the same text, or at the same place of the file."""
        same = (old for old, entry in self._gone.items() if entry.digest == digest(note))
        place = (note.file, note.section)
        here = (old for old, entry in self._gone.items() if (old.partition("#")[0], entry.section) == place)
        return next(same, None) or next((old for old in here if old not in self._outdated), None)

    def _revive(self, key: str) -> None:
        if id_ := self.new.archived.pop(key, None):
            with suppress(NotFound):  # it was erased
                set_columns(self._context, id_, action="unarchive", status=Status.ACTIVE.value)

    def _describe(self, key: str, note: Note, id_: str) -> None:
        """Write where a section is now, whatever the status of its memory."""
        for item in self._prepared(key):
            with suppress(NotFound):  # it was erased, and is not stored again until it is edited
                commit(self._context, partial(_plan_place, self._context, id_, item, f"the note is in {note.file}"))

    def _prepared(self, key: str) -> list[Prepared]:
        note = self._current[key]
        try:
            return prepare(self._context, [_new_text(note, self._prefix + key)])
        except InvalidInput as error:
            self.faults.append(Fault(note.file, note.line, f"it is not found by searches: {error}"))
            return []


def _plan_place(context: Context, id_: str, item: Prepared, why: str) -> Plan[Memory]:
    memory, seen, current = read_current(context, id_)
    columns = {"key": item.key, "fingerprint": item.fingerprint, "metadata": item.draft.metadata}
    return replace(plan_revision(context, memory, current, action="update", why=why, **columns), seen=seen)


def _because(why: str, memory: Memory) -> str:
    return why


def _new_text(note: Note, key: str) -> NewText:
    content = note.content if note.title.casefold() in note.content.casefold() else f"{note.title}\n\n{note.content}"
    given = {
        "category": CATEGORY, "file": note.file, "section": note.section, "title": note.title, "tags": [*note.tags],
        "importance": note.importance, "event_time": note.discovered_at, "discovered_by": note.discovered_by,
        "discovered_in": note.discovered_in, "valid_from": note.valid_from, "valid_until": note.valid_until,
    }  # fmt: skip
    metadata = {name: value for name, value in given.items() if value is not None}
    return NewText(content.strip(), metadata, key=key, terms=Terms(claim=note.claim, claims="off"))


def _write(context: Context, state: _State) -> None:
    def decide() -> Plan[None]:
        meta = Meta.read(context.store, _scope(context))
        return Plan(None, [meta.row(state.detail, at=iso(context.clock()))])

    commit(context, decide)


def _scope(context: Context) -> str:
    """Return the name of the state of a folder: each user and project has its own memories of it."""
    parts = (context.reader.user_id, context.reader.project, context.open_notes().root)
    return f"notes {sha256(repr(parts).encode()).hexdigest()[:32]}"


def _marks(listed: Iterable[NoteFile]) -> dict[str, str]:
    return {file.name: f"{file.mark}{' !' if file.fault else ''}" for file in listed}


def _until(notes: Iterable[Note], at: str) -> str | None:
    """Return the next time at which a note begins or ends to be valid."""
    times = [time for note in notes for time in (note.valid_from, note.valid_until) if time and time > at]
    return min(times, default=None)


# --- what the index knows about a note ---


def ranked(context: Context, notes: Sequence[Note], found: Iterable[Relevance]) -> list[Relevance]:
    """Return what may be injected, in the order of points × feedback: no note whose memory is erased or not active."""
    entries = _entries(context, notes)
    rows = context.store.get(Kind.MEMORY, [entry.id for entry in entries.values()]) if entries else {}
    kept: list[Relevance] = []
    for each in found:
        entry = entries.get((each.note.file, each.note.section))
        row = rows.get(entry.id) if entry else None
        if entry is None:
            kept.append(each)
        elif row is not None and row.value("status") == Status.ACTIVE:
            kept.append(replace(each, feedback=Memory.of(row).feedback_score))
    return sorted(kept, key=lambda each: -each.rank)


def feedback(context: Context, notes: Sequence[Note], file: object, section: object, signal: object) -> Memory:
    """Rate a note: the count is kept with its memory, not in the file."""
    entry = _entries(context, notes).get((file, section))
    if entry is None:
        what = f"no indexed note in {shown(file, max_length=200)}, section {shown(section)}"
        raise NotFound(what, remedy="see memory-mesh notes list, and run notes sync")
    return lane.feedback(context, entry.id, signal)


def _entries(context: Context, notes: Sequence[Note]) -> dict[tuple[object, object], _Entry]:
    """Return the entries of notes by file and section; none if the store is not there yet."""
    if not context.options.enable_memory or not context.file.is_prepared():
        return {}
    sections = _State.of(Meta.read(context.store, _scope(context)).detail).sections
    keys = zip(notes, keys_of(notes), strict=True)
    return {(note.file, note.section): sections[key] for note, key in keys if key in sections}
