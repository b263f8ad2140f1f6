"""Notes: read the files of a folder, find those that a task needs, and append new ones.

The files are the truth. What the index (`note_index`) adds is the feedback on a note and its status: a disputed, superseded or
erased one is not injected.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memory_mesh.core import notes as core
from memory_mesh.core.checks import listed, one_of, whole_number
from memory_mesh.core.errors import EmbeddingError, InvalidInput, StoreReadOnly, shown
from memory_mesh.core.intake import Limits, read_content, read_metadata
from memory_mesh.core.model import iso
from memory_mesh.core.notes import IMPORTANCES, MAX_BYTES, Appended, Fault, MatchContext, Note, NoteAgent, Notes, Relevance
from memory_mesh.core.notes.folder import is_current, read_agent_file, read_file, repeats
from memory_mesh.core.notes.patterns import Close, is_plain, never_close
from memory_mesh.flows import note_index
from memory_mesh.flows.connect import cosine
from memory_mesh.flows.context import Context
from memory_mesh.flows.embed import embed_texts, token_counter

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0

_TEXTS = ("title", "discovered_by", "discovered_in", "source")
_LISTS = ("when_to_use", "tags", "related_memories")
_log = logging.getLogger("memory_mesh")


@runtime_checkable
class NewNote(Protocol):
    """What an extraction decided: whether to keep a note, and which one. `frontmatter` has the keys of a file."""

    @property
    def should_create_memory(self) -> bool: ...
    @property
    def memory_title(self) -> str | None: ...
    @property
    def frontmatter(self) -> Mapping[str, object] | None: ...
    @property
    def content(self) -> str | None: ...


# --- reading ---


def load(context: Context) -> Notes:
    """Return the notes of the folder, and bring the index up to date if a file changed."""
    listed = context.open_notes().files()
    found = note_index.read_all(context, listed)
    note_index.refresh(context, found, listed)
    return found


# --- matching ---


def match(context: Context, task: MatchContext, min_importance: object = None) -> list[Relevance]:
    """Return the notes that a task needs, each with the parts of its score, the highest rank first."""
    ms, agent, notes = context.clock(), _agent(context, task.agent_name), load(context)
    current = [note for note in notes if is_current(note, iso(ms))]
    found = core.find_relevant(
        current, task, ms=ms, max_notes=None, specialty=agent.specialty, close=_close(context, task.task, current),
        min_importance=None if min_importance is None else one_of("min_importance", min_importance, IMPORTANCES),
    )  # fmt: skip
    return note_index.ranked(context, notes, found)


def find_relevant(context: Context, task: MatchContext, max_memories: object, min_importance: object) -> list[Note]:
    """Return the notes to inject: as many and as important as given, or else as the agent's configuration says."""
    agent = _agent(context, task.agent_name)
    most = agent.max_injected if max_memories is None else whole_number("max_memories", max_memories, min_=0)
    found = match(context, task, agent.min_importance if min_importance is None else min_importance)
    return [each.note for each in found[:most]]


def format_for_prompt(context: Context, notes: Sequence[Note], max_tokens: object) -> str:
    """Return notes as a part of a prompt, at most so many tokens."""
    budget = None if max_tokens is None else whole_number("max_tokens", max_tokens)
    for note in listed("notes", notes, expected="the notes of find_relevant or load"):
        if not isinstance(note, Note):
            raise InvalidInput(f"a note is {shown(note)}", expected="the notes of find_relevant or load")
    return core.format_for_prompt(notes, max_tokens=budget, count=token_counter(context))


def _agent(context: Context, name: str) -> NoteAgent:
    given = (context.options.note_agents or {}).get(name)
    if given is None:
        return NoteAgent()
    if isinstance(given, str):
        return read_agent_file(name, context.open_notes().agent(given))
    return core.read_agent(name, given)


def _close(context: Context, task: str, notes: Sequence[Note]) -> Close:
    """Return whether a plain-language pattern is close to the task. Nothing is embedded before it is asked for."""
    if context.embedder is None:
        return never_close
    plain = sorted({pattern for note in notes for pattern in note.when_to_use if is_plain(pattern)})
    cosines = cache(lambda: _cosines(context, task, plain))
    return lambda pattern: cosines().get(pattern, -1.0) >= context.options.note_closeness


def _cosines(context: Context, task: str, patterns: Sequence[str]) -> dict[str, float]:
    """Return the similarity of each pattern to the task; nothing if the embedder fails."""
    assert context.embedder is not None  # noqa: S101  (checked by the caller)
    missing, gate = [one for one in patterns if one not in context.state.patterns], context.query_gate()
    texts = [gate.redact(text.encode("utf-8", "replace").decode()) for text in (task, *missing)]
    try:
        asked, *vectors = embed_texts(context.embedder, texts)
    except EmbeddingError as error:
        _log.warning("notes are matched by words only: %s", error)
        return {}
    known = {**context.state.patterns, **dict(zip(missing, vectors, strict=True))}
    context.state.patterns = {one: known[one] for one in patterns}  # those of removed notes are dropped
    return {one: cosine(asked, known[one]) for one in patterns}


# --- writing ---


def append(context: Context, values: Mapping[str, object], content: object) -> Appended:
    """Add a note to the file of its title. What is there stays as it is."""
    context.check_enabled()
    done = _append(context, _checked(context, values, content), once=False)
    assert done is not None  # noqa: S101  (only a repeated note is left out)
    return done


def save(context: Context, output: NewNote) -> Appended | None:
    """Append what an extraction found; None if it is not to be kept, is not valid, or repeats a note."""
    if not isinstance(output, NewNote):
        raise InvalidInput(f"output is {shown(output)}", expected="what extract returns")
    if not output.should_create_memory:
        return None
    context.check_enabled()
    try:
        note = new_note(context, output)
    except InvalidInput as error:
        _log.warning("the extracted note is not kept: %s", error)
        return None
    return _append(context, note, once=True)


def new_note(context: Context, output: NewNote) -> Note:
    """Return the note of an extraction as it is written, or raise `InvalidInput`."""
    values = {name: value for name, value in (output.frontmatter or {}).items() if value is not None}
    return _checked(context, {**values, "title": output.memory_title or values.get("title", "")}, output.content)


def _append(context: Context, note: Note, *, once: bool) -> Appended | None:
    if once and repeats(note, load(context)):
        return None
    name, done = core.file_name(note.title), list[Appended]()

    def make(existing: bytes | None) -> bytes | None:
        known = list(read_file(name, existing or b""))
        if any(isinstance(each, Fault) and not each.line for each in known):
            raise InvalidInput(f"{name} is not UTF-8 text", remedy="convert it, or give the note another title")
        if once and repeats(note, (each for each in known if isinstance(each, Note))):
            return None
        new = existing + (core.SEPARATOR + note.text).encode() if existing else note.text.encode()
        if len(new) > MAX_BYTES:
            expected = f"at most {MAX_BYTES:,}"
            raise InvalidInput(f"{name} would have {len(new):,} bytes", expected=expected, remedy="give it another title")
        *_, last = (each for each in read_file(name, new) if isinstance(each, Note))
        done[:] = [Appended(name, last.section, not existing)]
        return new

    context.open_notes().change(name, make)
    with suppress(StoreReadOnly):  # the file is written; a process that may write the store indexes it
        note_index.sync(context, written=note if done else None)
    return done[0] if done else None


def _checked(context: Context, values: Mapping[str, object], content: object) -> Note:
    """Return a valid note, masked, that is read again as it is written."""
    own = {"discoveredAt": iso(context.clock()), "discoveredBy": context.reader.agent_id}
    values = {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}
    given = read_metadata({"importance": "medium", "tags": [], **own, **values}, context.limits)
    note = _masked(context.gate(), core.read_note(given, read_content(content, context.limits).strip()))
    if not note.when_to_use:
        raise InvalidInput("whenToUse has no pattern", expected='one or more, such as "auth|login"')
    written = [each for each in core.read_sections("", note.text) if not (isinstance(each, Fault) and each.warning)]
    if written and isinstance(written[0], Fault):
        raise InvalidInput(f"the note cannot be read again: {written[0].what}")
    if written != [note]:
        raise InvalidInput("the note cannot be read again as it is", expected="one note, without the frontmatter of another")
    return note


def _masked(gate: "Layer0", note: Note) -> Note:
    texts: dict[str, Any] = {name: gate.redact(text) for name in _TEXTS if (text := getattr(note, name)) is not None}
    texts |= {name: tuple(map(gate.redact, getattr(note, name))) for name in _LISTS}
    claim = None if note.claim is None else gate.clean_metadata(dict(note.claim))
    other = gate.clean_metadata(read_metadata(note.other, Limits()))
    return replace(note, **texts, claim=claim, content=gate.redact_markup(note.content).strip(), other=other)


# --- prompts ---


def build_agent_prompt(
    context: Context,
    task: MatchContext,
    *,
    system_prompt: object,
    max_memories: object,
    min_importance: object,
    max_tokens: object,
) -> str:
    """Return the prompt of an agent with the notes that its task needs."""
    if not isinstance(system_prompt, str):
        raise InvalidInput(f"system_prompt is {shown(system_prompt)}", expected="a text")
    notes = find_relevant(context, task, max_memories, min_importance)
    block = format_for_prompt(context, notes, max_tokens)
    return f"{system_prompt}\n\n{block}" if system_prompt and block else system_prompt or block
