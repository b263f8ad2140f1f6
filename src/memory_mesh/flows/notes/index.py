"""The index of notes: every valid section of a file is a memory, so that all searches find it.

What changed is taken over when it is used: the marks of the files are compared, and only then are
the files read. The memory of a section is found by its file and title; a section that moved keeps
its memory, and so its feedback. Removed, deprecated and expired ones are archived.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from memory_mesh.core.errors import InvalidInput, NotFound, StoreBusy, StoreError, shown
from memory_mesh.core.intake import NOTE_KEY, NewText, Terms
from memory_mesh.core.model import Kind, Memory, Meta, Row, Status, batches, iso
from memory_mesh.core.notes import Fault, Note, Notes, Relevance, Synced
from memory_mesh.core.notes.files import (
    Instruction,
    as_notes,
    digest,
    double_titles,
    is_current,
    keys_of,
    read_file,
    without_section,
)
from memory_mesh.core.ports import NoteFile, NoteFiles
from memory_mesh.flows.context import Context, Plan, commit, forgotten_user
from memory_mesh.flows.lane import lane
from memory_mesh.flows.mirror import mirror
from memory_mesh.flows.write.prepare import Prepared, prepare
from memory_mesh.flows.write.revisions import plan_revision
from memory_mesh.flows.write.write import read_current

CATEGORY = "note"
_AT_ONCE = 64


class _Entry(NamedTuple):
    """A section that is indexed: the digest of its text, its number in the file, and its memory."""

    digest: str
    section: int
    id: str


@dataclass(frozen=True, slots=True)
class _State:
    """What the index of a folder holds: the marks of its files, until when it is up to date, and
    its sections by key."""

    marks: dict[str, str] = field(default_factory=dict)
    until: str | None = None
    sections: dict[str, _Entry] = field(default_factory=dict)
    # The memories of removed sections, which may come back.
    archived: dict[str, str] = field(default_factory=dict)
    # The digests of the sections that the program wrote, and that were not edited since.
    written: tuple[str, ...] = ()
    root: str = ""

    @classmethod
    def of(cls, detail: Mapping[str, Any]) -> "_State":
        return cls(
            marks=detail.get("marks", {}),
            until=detail.get("until"),
            sections={key: _Entry(*values) for key, values in detail.get("sections", {}).items()},
            archived=detail.get("archived", {}),
            written=tuple(detail.get("written", ())),
            root=detail.get("root", ""),
        )

    @property
    def detail(self) -> dict[str, Any]:
        return {
            "marks": {**self.marks}, "until": self.until,
            "sections": {key: [*entry] for key, entry in self.sections.items()},
            "archived": {**self.archived}, "written": [*self.written], "root": self.root,
        }  # fmt: skip

    def without(self, gone: Mapping[str, _Entry], archived: Collection[str]) -> "_State":
        """Return the state without these sections, the marks of their files, and these keys of
        the archived ones."""
        lost, files = {entry.digest for entry in gone.values()}, {_file(key) for key in gone}
        return replace(
            self,
            marks={name: mark for name, mark in self.marks.items() if name not in files},
            sections={key: entry for key, entry in self.sections.items() if key not in gone},
            archived={key: id_ for key, id_ in self.archived.items() if key not in archived},
            written=tuple(text for text in self.written if text not in lost),
        )

    def covers(self, marks: Mapping[str, str], at: str) -> bool:
        """Return whether nothing changed: no file, and no section that begins or ends to be
        valid."""
        return self.marks == marks and (self.until is None or at <= self.until)


# --- bringing it up to date ---


def read_all(context: Context, listed: Sequence[NoteFile]) -> Notes:
    """Return the notes of these files, and what is wrong in them. A file is read once until it
    changes."""
    known, files = context.state.files.note_sections, context.files.open_notes()
    read = {
        file.name: known[file.name]
        if known.get(file.name, ("",))[0] == file.mark != ""
        else _read(files, file)
        for file in listed
    }
    context.state.files.note_sections = read
    notes = as_notes(each for _, sections in read.values() for each in sections)
    notes.faults += double_titles(notes)
    return notes


def _read(files: NoteFiles, file: NoteFile) -> tuple[str, list[Note | Fault]]:
    """Return the mark of a file and what is in it; no mark if the system could not read it, so
    that it is read again."""
    fault, mark = file.fault, file.mark
    if fault is None:
        try:
            return mark, [*read_file(file.name, files.read(file.name))]
        except InvalidInput as error:
            fault, mark = str(error), "" if isinstance(error.__cause__, OSError) else mark
    return mark, [Fault(file.name or files.root, 0, fault)]


def indexed_files(context: Context) -> Collection[str]:
    """Return the names of the files that the index holds."""
    return _stored(context).marks if context.file.is_prepared() else ()


def files_elsewhere(context: Context) -> list[tuple[str, str]]:
    """Return the folder and name of each file that is indexed for the reader's user outside the
    folder of notes."""
    prefix, own = mirror.state_prefix(context, mirror.NOTES), context.files.open_notes
    states = [_State.of(meta.detail) for meta in Meta.with_prefix(context.store, prefix)]
    files = {(state.root, name) for state in states for name in state.marks if name[-1:] != "/"}
    return sorted(file for file in files if file[0] != own().root)


def _stored(context: Context) -> _State:
    return _State.of(Meta.read(context.store, _scope(context)).detail)


def refresh(
    context: Context, notes: Notes | None = None, listed: Sequence[NoteFile] | None = None
) -> Synced | None:
    """Index the folder if a file changed, and return what did. A store that is not there yet, or
    is only read, is left alone."""
    if not mirror.is_ready(context):
        return None
    listed = context.files.open_notes().files() if listed is None else listed
    scope, marks, at = _scope(context), _marks(listed), iso(context.clock())
    state = context.state.files.note_states.get(scope)
    if not isinstance(state, _State) or not state.covers(marks, at):
        state = _stored(context)
        if state.covers(marks, at):
            context.state.files.note_states[scope] = state
        elif marks or state.marks:
            with mirror.only_logged("the notes are not indexed", StoreError):
                return sync(context, notes, listed)
    return None


def sync(
    context: Context,
    notes: Notes | None = None,
    listed: Sequence[NoteFile] | None = None,
    *,
    written: Note | None = None,
) -> Synced:
    """Bring the memories of the sections up to date, and return what changed. `written` is a
    note that the program wrote."""
    context.check_enabled()
    context = mirror.without_session(context)
    files = context.files.open_notes()
    listed = files.files() if listed is None else listed
    notes = read_all(context, listed) if notes is None else notes
    run = _Run(context, notes)
    run.archive()
    run.move()
    run.store()
    own = {*run.old.written, *([digest(written)] if written else [])} & {
        digest(note) for note in notes
    }
    unread = {name: "" for name, (mark, _) in context.state.files.note_sections.items() if not mark}
    # When a note begins or ends to be valid.
    times = [time for note in notes for time in (note.valid_from, note.valid_until) if time]
    state = replace(
        run.new,
        marks=_marks(listed) | unread,
        until=min((time for time in times if time > run.at), default=None),
        written=tuple(sorted(own)),
        root=files.root,
    )
    if state != run.old:
        mirror.store(context, [], {_scope(context): state.detail})
    context.state.files.note_states[_scope(context)] = state
    return Synced(**run.counts, files=tuple(sorted(run.files)), faults=(*notes.faults, *run.faults))


class _Run:
    """One comparison of the files with the index."""

    def __init__(self, context: Context, notes: Notes) -> None:
        self._context, self.at = context, iso(context.clock())
        self._prefix = f"{NOTE_KEY}{mirror.hashed(context.files.open_notes().root)[:8]}/"
        self.old = _stored(context)
        every = dict(zip(keys_of(notes), notes, strict=True))
        forgotten = _forgotten(context)
        self._current = {
            key: note
            for key, note in every.items()
            if is_current(note, self.at) and digest(note) not in forgotten
        }
        self._digests = {key: digest(note) for key, note in self._current.items()}
        self._outdated = every.keys() - self._current.keys()
        self.counts = dict.fromkeys(("added", "updated", "moved", "archived", "unchanged"), 0)
        self.files: set[str] = set()  # those with changes
        self.faults: list[Fault] = []
        # A file that cannot be read is still there, and so are all files of such a folder.
        unreadable = {fault.file for fault in notes.faults if not fault.line}
        root = context.files.open_notes().root
        kept = {
            key: entry
            for key, entry in self.old.sections.items()
            if unreadable and {_file(key), root} & unreadable
        }
        self._gone = {key: entry for key, entry in self.old.sections.items() if key not in kept}
        self.new = _State(sections=kept, archived=dict(self.old.archived))
        self._before = self._matched()  # and what is left in `_gone` is gone

    def _matched(self) -> dict[str, str]:
        """Return the earlier key of each section that was indexed: of one with the same text, or
        else at the same place."""
        texts: dict[str, list[str]] = {}
        for known, entry in self._gone.items():
            texts.setdefault(entry.digest, []).append(known)
        places = {
            (_file(old), entry.section): old
            for old, entry in self._gone.items()
            if old not in self._outdated
        }
        found: dict[str, str] = {}
        for ways in (
            lambda key, note: [key] if key in texts.get(self._digests[key], ()) else [],
            lambda key, note: texts.get(self._digests[key], ()),
            lambda key, note: [key],
            lambda key, note: [places.get((note.file, note.section), "")],
        ):
            for key, note in self._current.items():
                old = next((each for each in ways(key, note) if each in self._gone), None)
                if key not in found and old is not None:
                    found[key] = old
                    self.new.sections[key] = self._gone.pop(old)._replace(section=note.section)
        return found

    def archive(self) -> None:
        """Archive the memories of sections that are gone."""
        for key, entry in self._gone.items():
            why = (
                "the note is deprecated or not valid now"
                if key in self._outdated
                else f"the note was removed from {_file(key)}"
            )
            done = mirror.archive_all(self._context, [entry.id], why)
            self.counts["archived"] += len(done)
            self.files |= {_file(key)} if done else set()
            self.new.archived[key] = entry.id

    def move(self) -> None:
        """Write where sections are now that moved with their text."""
        for key, old in self._before.items():
            note, entry = self._current[key], self.old.sections[old]
            if key != old or entry.section != note.section:
                self._describe(key, entry.id)
            if entry.digest == self._digests[key]:
                self.counts["unchanged" if key == old else "moved"] += 1
                self.files |= {note.file} if key != old else set()

    def store(self) -> None:
        """Store the new and the edited sections."""
        known = self.new.sections
        changed = [
            key
            for key, text in self._digests.items()
            if key not in known or known[key].digest != text
        ]
        for key in changed:
            if key not in known and (id_ := self.new.archived.pop(key, None)):
                mirror.revive(self._context, id_)
        for keys in batches(changed, _AT_ONCE):
            ready = [(key, item) for key in keys for item in self._prepared(key)]
            memories = mirror.store(self._context, [item for _, item in ready])
            for (key, _), memory in zip(ready, memories, strict=True):
                self.counts["updated" if key in known else "added"] += 1
                known[key] = _Entry(self._digests[key], self._current[key].section, memory.id)
                self.files.add(self._current[key].file)

    def _describe(self, key: str, id_: str) -> None:
        """Write where a section is now, whatever the status of its memory."""
        why = f"the note is in {self._current[key].file}"
        for item in self._prepared(key):
            with suppress(NotFound):  # it was erased, and is not stored again until it is edited
                commit(self._context, partial(_plan_place, self._context, id_, item, why))

    def _prepared(self, key: str) -> list[Prepared]:
        note = self._current[key]
        try:
            return prepare(self._context, [_new_text(note, self._prefix + key)])
        except InvalidInput as error:
            self.faults.append(Fault(note.file, note.line, f"it is not found by searches: {error}"))
            return []


def _file(key: str) -> str:
    return key.rpartition("#")[0]


def _plan_place(context: Context, id_: str, item: Prepared, why: str) -> Plan[Memory]:
    memory, seen, current = read_current(context, id_)
    columns = {"key": item.key, "fingerprint": item.fingerprint, "metadata": item.draft.metadata}
    plan = plan_revision(context, memory, current, action="update", why=why, **columns)
    return replace(plan, seen=seen)


def _new_text(note: Note, key: str) -> NewText:
    content = (
        note.content
        if note.title.casefold() in note.content.casefold()
        else f"{note.title}\n\n{note.content}"
    )
    given = {
        "category": CATEGORY, "file": note.file, "section": note.section, "title": note.title,
        "tags": [*note.tags], "importance": note.importance, "event_time": note.discovered_at,
        "discovered_by": note.discovered_by, "discovered_in": note.discovered_in,
        "valid_from": note.valid_from, "valid_until": note.valid_until,
    }  # fmt: skip
    more = note.other if isinstance(note, Instruction) else {}
    metadata = {name: value for name, value in {**given, **more}.items() if value not in (None, "")}
    return NewText(content.strip(), metadata, key=key, terms=Terms(claim=note.claim, claims="off"))


def _scope(context: Context) -> str:
    """Return the name of the state of a folder: each user and project has its own memories of
    it."""
    place = mirror.hashed(context.reader.project, context.files.open_notes().root)
    return mirror.state_prefix(context, mirror.NOTES) + place


def _marks(listed: Iterable[NoteFile]) -> dict[str, str]:
    return {file.name: f"{file.mark}{' !' if file.fault else ''}" for file in listed}


# --- erasing ---


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The sections of erased memories, each as `path#section`, that were taken out or left, and
    the rows to write."""

    taken: tuple[str, ...]
    left: tuple[str, ...]
    rows: tuple[Row, ...]


def forget(context: Context, memory_ids: Collection[str], *, files: bool) -> Forgotten:
    """Take the sections of erased memories out of their files: those that the program wrote and,
    with `files`, all.

    The index forgets them too. A section that is left stays known, so that it is not indexed again
    before it is edited.
    """
    taken, left, rows = list[str](), list[str](), list[Row]()
    for meta in Meta.with_prefix(context.store, mirror.state_prefix(context, mirror.NOTES)):
        state, gone = _State.of(meta.detail), dict[str, _Entry]()
        archived = {key: id_ for key, id_ in state.archived.items() if id_ in memory_ids}
        outdated = _outdated(context, state, archived)
        for key, entry in (*state.sections.items(), *outdated.items()):
            if entry.id in memory_ids:
                is_ours = state.root == context.files.open_notes().root and (
                    files or entry.digest in state.written
                )
                done = is_ours and _take_out(context, _file(key), entry)
                (taken if done else left).append(f"{state.root}/{_file(key)}#{entry.section}")
                gone |= {key: entry} if done else {}
        if (
            newer := state.without(gone, archived.keys() - (outdated.keys() - gone.keys()))
        ) != state:
            rows.append(meta.row(newer.detail, at=iso(context.clock())))
    return Forgotten(tuple(taken), tuple(left), tuple(rows))


def forget_user(context: Context, *, files: bool) -> tuple[Forgotten, list[str]]:
    """Take the sections of the reader's user out of their files like `forget`, and return that with
    the digests of those that are left, so that they are not indexed again before they are edited.
    Those that were left by an earlier call are among them."""
    metas = Meta.with_prefix(context.store, mirror.state_prefix(context, mirror.NOTES))
    states = [_State.of(meta.detail) for meta in metas]
    ids = {entry.id for state in states for entry in state.sections.values()}
    ids |= {id_ for state in states for id_ in state.archived.values()}
    done = forget(context, ids, files=files)
    newer = {row.id: Meta.of(row).detail for row in done.rows}
    digests = {*_forgotten(context)}
    taken, left = list(done.taken), list(done.left)
    if digests:
        opened, gone = context.files.open_notes(), set[str]()
        for note in read_all(context, opened.files()):
            entry = _Entry(digest(note), note.section, "")
            if entry.digest in digests:
                is_out = files and _take_out(context, note.file, entry)
                (taken if is_out else left).append(f"{opened.root}/{note.file}#{note.section}")
                gone |= {entry.digest} if is_out else set()
        digests -= gone
    for meta in metas:
        state = _State.of(newer.get(meta.id, meta.detail))
        entries = (*state.sections.values(), *_outdated(context, state, state.archived).values())
        digests |= {entry.digest for entry in entries}
    return replace(done, taken=tuple(taken), left=tuple(left)), sorted(digests)


def _forgotten(context: Context) -> Collection[str]:
    """Return the digests of the sections that were left in their files when the reader's user was
    forgotten."""
    user_id = context.reader.user_id
    notes = forgotten_user(context, user_id).detail.get("notes") if user_id else None
    return [str(one) for one in notes] if isinstance(notes, list) else ()


def _outdated(context: Context, state: _State, archived: Mapping[str, str]) -> dict[str, _Entry]:
    """Return those of these archived sections that are still in a file: deprecated ones, and
    those that are not valid now."""
    files = context.files.open_notes()
    if not archived or state.root != files.root:
        return {}
    notes = read_all(context, files.files())
    found = {
        key: note
        for key, note in zip(keys_of(notes), notes, strict=True)
        if key in archived.keys() - state.sections.keys()
    }
    return {key: _Entry(digest(note), note.section, archived[key]) for key, note in found.items()}


def _take_out(context: Context, file: str, entry: _Entry) -> bool:
    """Remove a section from its file, unless it was edited since it was indexed. Return whether
    it is not there any more."""
    gone = list[bool]()

    def make(data: bytes | None) -> bytes | None:
        found = [
            each
            for each in read_file(file, data or b"")
            if isinstance(each, Note) and digest(each) == entry.digest
        ]
        gone[:] = [data is None or bool(found)]
        return without_section(data, found[0].section) if data and found else None

    with suppress(InvalidInput, StoreBusy):  # it is reported as left
        context.files.open_notes().change(file, make)
    return gone == [True]


# --- what the index knows about a note ---


def ranked(context: Context, notes: Sequence[Note], found: Iterable[Relevance]) -> list[Relevance]:
    """Return what may be injected, in the order of points × feedback: no note whose memory is
    erased or not active."""
    entries = _entries(context, notes)
    rows = (
        context.store.get(Kind.MEMORY, [entry.id for entry in entries.values()]) if entries else {}
    )
    kept: list[Relevance] = []
    forgotten = _forgotten(context) if mirror.is_ready(context) else ()
    for each in found:
        entry = entries.get((each.note.file, each.note.section))
        row = rows.get(entry.id) if entry else None
        if entry is None:
            kept += [each] if digest(each.note) not in forgotten else []
        elif row is not None and row.value("status") == Status.ACTIVE:
            kept.append(replace(each, feedback=Memory.of(row).feedback_score))
    return sorted(kept, key=lambda each: -each.rank)


def feedback(
    context: Context, notes: Sequence[Note], file: object, section: object, signal: object
) -> Memory:
    """Rate a note: the count is kept with its memory, not in the file."""
    entry = _entries(context, notes).get((file, section))
    if entry is None:
        what = f"no indexed note in {shown(file, max_length=200)}, section {shown(section)}"
        raise NotFound(what, remedy="see memory-mesh notes list, and run notes sync")
    return lane.feedback(context, entry.id, signal)


def _entries(context: Context, notes: Sequence[Note]) -> dict[tuple[object, object], _Entry]:
    """Return the entries of notes by file and section; none if the store is not there yet."""
    if not mirror.is_ready(context):
        return {}
    sections = _stored(context).sections
    keys = zip(notes, keys_of(notes), strict=True)
    return {(note.file, note.section): sections[key] for note, key in keys if key in sections}
