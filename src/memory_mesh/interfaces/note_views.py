"""Views of notes: what is in the folder, what a task needs, and what was written."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.interfaces.render import NAME, Answer, aligned, counted, one_line
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:  # every command loads the views, and few need notes
    from memory_mesh.core.notes import Appended, Fault, Note, Notes, Relevance, Synced
    from memory_mesh.core.notes.extraction import ExtractionOutput
    from memory_mesh.core.notes.instructions import Imported


def note_added(done: "Appended", call: Call) -> Answer:
    where = f"{done.file}, section {done.section}" if done.section else done.file
    return Answer(text=f"{NAME} Added to {where}{' (a new file)' if done.created else ''}", data=asdict(done))


def note_extracted(found: "ExtractionOutput", call: Call) -> Answer:
    """Render the note and why it is worth one, or why there is none."""
    if not found.should_create_memory:
        return Answer(text=f"{NAME} No note: {one_line(found.reasoning)}", data=asdict(found))
    where = f"Added to {found.saved.file}" if found.saved else "Would add"
    return Answer(text=f"{NAME} {where}: {one_line(found.reasoning)}\n\n{found.content}", data=asdict(found))


def notes_listed(found: "Notes", call: Call) -> Answer:
    """Render the notes by file, and how many faults there are."""
    errors = [fault for fault in found.faults if not fault.warning]
    summary = f"{NAME} {counted(len(found), 'note')}"
    summary += f"; {counted(len(errors), 'fault')}, see memory-mesh notes lint" if errors else ""
    rows = [(_place(note), note.importance, f"{one_line(note.title)}{_validity(note)}") for note in found]
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else summary,
        data={"count": len(found), "notes": [asdict(note) for note in found]},
        rows="notes",
    )


def notes_matched(found: "Sequence[Relevance]", call: Call) -> Answer:
    """Render what matched, with the pattern and the points of each part."""
    lines = [f"{NAME} {counted(len(found), 'note')} matched"]
    for one in found:
        parts = ", ".join(f"{name} {points}" for name, points in _parts(one).items() if points)
        changed = f", feedback × {one.feedback:g}" if one.feedback != 1 else ""
        lines.append(f"{one.rank:g}  {_place(one.note)}: {one_line(one.note.title)}")
        lines.append(f"    by {one_line(one.pattern)!r}; {parts}{changed}")
    data = [{**asdict(one), "score": one.score, "rank": one.rank} for one in found]
    return Answer(text="\n".join(lines), data={"count": len(found), "notes": data}, rows="notes")


def notes_injected(prompt: str, call: Call) -> Answer:
    note = f"A prompt of {counted(len(prompt), 'character')}" if prompt else "No note fits the task"
    return Answer(text=prompt, data={"prompt": prompt}, note=note)


def notes_linted(faults: "Sequence[Fault]", call: Call) -> Answer:
    """Render what is wrong, one line each. The exit code is 1 if a note cannot be used."""
    errors = sum(not fault.warning for fault in faults)
    lines = [f"{NAME} {counted(errors, 'fault')}, {counted(len(faults) - errors, 'warning')}"]
    lines += [one_line(_fault(one)) for one in faults]
    data = {"count": len(faults), "faults": [asdict(one) for one in faults]}
    return Answer(text="\n".join(lines), data=data, rows="faults", code=1 if errors else 0)


def notes_synced(done: "Synced", call: Call) -> Answer:
    files = f" ({one_line(', '.join(done.files))})" if done.files else ""
    errors = sum(not fault.warning for fault in done.faults)
    more = f"; {counted(errors, 'fault')}, see memory-mesh notes lint" if errors else ""
    return Answer(text=f"{NAME} Notes: {_counts(done)}{files}{more}", data=asdict(done))


def notes_imported(done: "Imported", call: Call) -> Answer:
    """Render how many sections and skills were taken over. The exit code is 1 if a file cannot be used."""
    lines = [f"{NAME} Imported {counted(len(done.files), 'file')}: {_counts(done.sections)}", *map(one_line, done.files)]
    for one in done.skills:
        lines.append(
            one_line(f"{one.root}: {counted(one.added, 'skill')} added, {one.updated} updated, {one.unchanged} unchanged")
        )
    if not (done.files or done.skills or done.sections.faults):
        lines.append("There is no CLAUDE.md, AGENTS.md, .cursor/rules or folder of skills here.")
    faults = [_fault(one) for one in done.sections.faults if not one.warning]
    faults += [f"{one.root}/{failed.source}: {failed.reason}" for one in done.skills for failed in one.failed]
    lines += [one_line(_fault(one)) for one in done.sections.faults if one.warning]
    return Answer(text="\n".join(lines), data=asdict(done), code=1 if faults else 0, problems=faults)


def _fault(one: "Fault") -> str:
    return f"{one.file}{f':{one.line}' if one.line else ''}: {'warning: ' if one.warning else ''}{one.what}"


def _counts(done: "Synced") -> str:
    names = ("added", "updated", "moved", "archived", "unchanged")
    return ", ".join(f"{getattr(done, name)} {name}" for name in names)


def _place(note: "Note") -> str:
    return f"{one_line(note.file)}#{note.section}"


def _validity(note: "Note") -> str:
    """Return when a note is used, if not always."""
    times = [f"{word} {at[:10]}" for word, at in (("from", note.valid_from), ("until", note.valid_until)) if at]
    return " (deprecated)" if note.deprecated else f" ({' '.join(times)})" if times else ""


def _parts(one: "Relevance") -> dict[str, int]:
    names = ("importance", "recency", "keyword", "specialty", "discoverer")
    return {name: getattr(one, name) for name in names}
