"""Notes: read the files of a folder, find those that a task needs, append, import and extract.

The files are the truth. What the index adds is the feedback on a note and its status: a disputed,
superseded or erased one is not injected.
"""

import logging
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from memory_mesh.core import notes as core
from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    EmbeddingError,
    InvalidInput,
    StoreReadOnly,
    listed,
    one_of,
    path,
    shown,
    whole_number,
)
from memory_mesh.core.intake import Limits, read_content, read_metadata
from memory_mesh.core.model import Meta, iso
from memory_mesh.core.notes import (
    IMPORTANCES,
    MAX_BYTES,
    Appended,
    Fault,
    MatchContext,
    Note,
    NoteAgent,
    Notes,
    Relevance,
)
from memory_mesh.core.notes.extraction import (
    ExtractionInput,
    ExtractionOutput,
    distinct,
    is_known,
    note_of,
    nothing,
    origin,
)
from memory_mesh.core.notes.files import (
    Imported,
    InstructionFiles,
    as_notes,
    is_current,
    read_agent_file,
    read_file,
    read_instructions,
    repeats,
)
from memory_mesh.core.notes.relevance import Close, is_plain, never_close
from memory_mesh.core.ports import NoteFile
from memory_mesh.core.text import CHARACTERS_PER_TOKEN
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.graph.links import cosine
from memory_mesh.flows.mirror import mirror
from memory_mesh.flows.mirror.folders import read_folder
from memory_mesh.flows.notes import index as note_index
from memory_mesh.flows.write.embed import embed_texts, token_counter

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0


_TEXTS = ("title", "discovered_by", "discovered_in", "source")
_LISTS = ("when_to_use", "tags", "related_memories")
_log = logging.getLogger("memory_mesh")


@runtime_checkable
class NewNote(Protocol):
    """What an extraction decided: whether to keep a note, and which one. `frontmatter` has the
    keys of a file."""

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
    listed = context.files.open_notes().files()
    found = note_index.read_all(context, listed)
    note_index.refresh(context, found, listed)
    return found


# --- matching ---


def match(context: Context, task: MatchContext, min_importance: object = None) -> list[Relevance]:
    """Return the notes that a task needs, each with the parts of its score, the highest rank
    first."""
    ms, agent, notes = context.clock(), _agent(context, task.agent_name), load(context)
    current = [note for note in notes if is_current(note, iso(ms))]
    found = core.find_relevant(
        current, task, ms=ms, max_notes=None, specialty=agent.specialty,
        close=_close(context, task.task, current),
        min_importance=None if min_importance is None
        else one_of("min_importance", min_importance, IMPORTANCES),
    )  # fmt: skip
    return note_index.ranked(context, notes, found)


def find_relevant(
    context: Context, task: MatchContext, max_memories: object, min_importance: object
) -> list[Note]:
    """Return the notes to inject: as many and as important as given, or else as the agent's
    configuration says."""
    agent = _agent(context, task.agent_name)
    most = (
        agent.max_injected
        if max_memories is None
        else whole_number("max_memories", max_memories, min_=0)
    )
    found = match(context, task, agent.min_importance if min_importance is None else min_importance)
    return [each.note for each in found[:most]]


def format_for_prompt(context: Context, notes: Sequence[Note], max_tokens: object) -> str:
    """Return notes as a part of a prompt, at most so many tokens."""
    budget = None if max_tokens is None else whole_number("max_tokens", max_tokens)
    for note in listed("notes", notes, expected="the notes of find_relevant or load"):
        if not isinstance(note, Note):
            raise InvalidInput(
                f"a note is {shown(note)}", expected="the notes of find_relevant or load"
            )
    return core.format_for_prompt(notes, max_tokens=budget, count=token_counter(context))


def _agent(context: Context, name: str) -> NoteAgent:
    given = (context.options.note_agents or {}).get(name)
    if given is None:
        return NoteAgent()
    if isinstance(given, str):
        return read_agent_file(name, context.files.open_notes().agent(given))
    return core.read_agent(name, given)


def _close(context: Context, task: str, notes: Sequence[Note]) -> Close:
    """Return whether a plain-language pattern is close to the task. Nothing is embedded before
    it is asked for."""
    if context.models.embedder is None:
        return never_close
    plain = sorted({pattern for note in notes for pattern in note.when_to_use if is_plain(pattern)})
    cosines = cache(lambda: _cosines(context, task, plain))
    return lambda pattern: cosines().get(pattern, -1.0) >= context.options.note_closeness


def _cosines(context: Context, task: str, patterns: Sequence[str]) -> dict[str, float]:
    """Return the similarity of each pattern to the task; nothing if the embedder fails."""
    assert context.models.embedder is not None  # noqa: S101  (checked by the caller)
    missing, gate = (
        [one for one in patterns if one not in context.state.files.pattern_vectors],
        context.gates.query(),
    )
    texts = [gate.redact(text.encode("utf-8", "replace").decode()) for text in (task, *missing)]
    try:
        asked, *vectors = embed_texts(context.models.embedder, texts)
    except EmbeddingError as error:
        _log.warning("notes are matched by words only: %s", error)
        return {}
    known = {**context.state.files.pattern_vectors, **dict(zip(missing, vectors, strict=True))}
    # Those of removed notes are dropped.
    context.state.files.pattern_vectors = {one: known[one] for one in patterns}
    return {one: cosine(asked, known[one]) for one in patterns}


# --- writing ---


def append(context: Context, values: Mapping[str, object], content: object) -> Appended:
    """Add a note to the file of its title. What is there stays as it is."""
    context.check_enabled()
    values = {"whenToUse": values.get("title"), **values}
    done = _append(context, _checked(context, values, content), once=False)
    assert done is not None  # noqa: S101  (only a repeated note is left out)
    return done


def save(context: Context, output: NewNote) -> Appended | None:
    """Append what an extraction found; None if it is not to be kept, is not valid, or repeats a
    note."""
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
    values = {
        name: value for name, value in (output.frontmatter or {}).items() if value is not None
    }
    return _checked(
        context, {**values, "title": output.memory_title or values.get("title", "")}, output.content
    )


def _append(context: Context, note: Note, *, once: bool) -> Appended | None:
    if once and repeats(note, load(context)):
        return None
    name, done = core.file_name(note.title), list[Appended]()

    def make(existing: bytes | None) -> bytes | None:
        known = list(read_file(name, existing or b""))
        if any(isinstance(each, Fault) and not each.line for each in known):
            raise InvalidInput(
                f"{name} is not UTF-8 text", remedy="convert it, or give the note another title"
            )
        if once and repeats(note, (each for each in known if isinstance(each, Note))):
            return None
        new = existing + (core.SEPARATOR + note.text).encode() if existing else note.text.encode()
        if len(new) > MAX_BYTES:
            expected = f"at most {MAX_BYTES:,}"
            raise InvalidInput(
                f"{name} would have {len(new):,} bytes",
                expected=expected,
                remedy="give it another title",
            )
        *_, last = (each for each in read_file(name, new) if isinstance(each, Note))
        done[:] = [Appended(name, last.section, not existing)]
        return new

    context.files.open_notes().change(name, make)
    # The file is written; a process that may write the store indexes it.
    with suppress(StoreReadOnly):
        note_index.sync(context, written=note if done else None)
    return done[0] if done else None


def _checked(context: Context, values: Mapping[str, object], content: object) -> Note:
    """Return a valid note, masked, that is read again as it is written."""
    own = {"discoveredAt": iso(context.clock()), "discoveredBy": context.reader.agent_id}
    values = {
        name: [*value] if isinstance(value, tuple) else value for name, value in values.items()
    }
    given = read_metadata({"importance": "medium", "tags": [], **own, **values}, context.limits)
    note = _masked(
        context.gates.content(),
        core.read_note(given, read_content(content, context.limits).strip()),
    )
    if not note.when_to_use:
        raise InvalidInput("whenToUse has no pattern", expected='one or more, such as "auth|login"')
    written = [
        each
        for each in core.read_sections("", note.text)
        if not (isinstance(each, Fault) and each.warning)
    ]
    if written and isinstance(written[0], Fault):
        raise InvalidInput(f"the note cannot be read again: {written[0].what}")
    if written != [note]:
        raise InvalidInput(
            "the note cannot be read again as it is",
            expected="one note, without the frontmatter of another",
        )
    return note


def _masked(gate: "Layer0", note: Note) -> Note:
    texts: dict[str, Any] = {
        name: gate.redact(text) for name in _TEXTS if (text := getattr(note, name)) is not None
    }
    texts |= {name: tuple(map(gate.redact, getattr(note, name))) for name in _LISTS}
    claim = None if note.claim is None else gate.clean_metadata(dict(note.claim))
    other = gate.clean_metadata(read_metadata(note.other, Limits()))
    return replace(
        note, **texts, claim=claim, content=gate.redact_markup(note.content).strip(), other=other
    )


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


# --- importing ---
# Sections of the files that people keep for coding agents become memories, and their skills are
# stored. The index is that of notes, under another root: a second run takes over what was edited,
# and archives what was removed.


def import_files(context: Context, paths: object) -> Imported:
    """Bring the memories of the files up to date: of those at these paths, and of those that
    were imported before."""
    context.check_enabled()
    given = [path("a path", one) for one in listed("paths", paths, expected="a list of paths")]
    files = context.files.open_instructions()
    own = context.with_files(open_notes=lambda: files)
    known = note_index.indexed_files(own)
    found = files.find(given, known)
    notes = as_notes(_read(files, [one for one in found if not one.name.endswith("/")]))
    done = note_index.sync(own, notes, [one for one in found if not one.fault or one.name in known])
    skills = [
        read_folder(context, f"{files.root}/{one.name}") for one in found if one.name.endswith("/")
    ]
    return Imported(
        files=tuple(dict.fromkeys(note.file for note in notes)), sections=done, skills=tuple(skills)
    )


def _read(files: InstructionFiles, found: Sequence[NoteFile]) -> Iterator[Note | Fault]:
    """Yield the sections of all files. A copy of another file, or a link to it, is left out."""
    texts: dict[bytes, str] = {}
    for file in found:
        fault, data = file.fault, b""
        try:
            data = b"" if fault else files.read(file.name)
        except InvalidInput as error:
            fault = str(error)
        if fault:
            yield Fault(file.name, 0, fault)
        elif (first := texts.setdefault(data, file.name)) != file.name:
            yield Fault(
                file.name, 1, f"it has the same text as {first}, and is left out", warning=True
            )
        else:
            yield from read_instructions(file.name, data)


# --- extracting ---
# Whether a finished run is worth a note is decided by the language model, or by the judge of
# reports without one.

_SHOWN_CHARS = 200  # of an existing note that the model sees
_SHOWN_NOTES = 100


def extract(context: Context, run: ExtractionInput) -> ExtractionOutput:
    """Return the note of a run, or why there is none. Nothing is written, and no answer of a
    model is an error."""
    if not isinstance(run, ExtractionInput):
        raise InvalidInput(f"run is {shown(run)}", expected="an ExtractionInput")
    if not (run.agent_output.strip() or run.error):
        return nothing("the report is empty")
    existing = load(context) if run.existing_memories is None else list(run.existing_memories)
    redact = context.gates.content().redact
    run = replace(
        run, agent=redact(run.agent), task=redact(run.task), agent_output=redact(run.agent_output),
        error=run.error and redact(run.error),
    )  # fmt: skip
    found = (
        _judged(context, run, existing)
        if context.models.chat is None
        else _asked(context, run, existing)
    )
    return _checked_output(context, found, existing) if found.should_create_memory else found


def extract_and_save(context: Context, run: ExtractionInput, *, dry_run: bool) -> ExtractionOutput:
    """Extract a note of a run, unless the setting leaves this run out, and save it. A dry run
    only extracts."""
    if dry_run:
        return extract(context, run)
    if (every := context.options.note_extraction_every) != 1 and not _is_due(
        context, run.agent, every
    ):
        return nothing(f"not extracted: note_extraction_every is {every}")
    found = extract(context, run)
    saved = save(context, found)
    if found.should_create_memory and saved is None:
        return nothing("an existing note says it already")
    return replace(found, saved=saved)


def _is_due(context: Context, agent: str, every: int) -> bool:
    """Count a run of an agent, and return whether a note is to be extracted of it."""

    def decide() -> Plan[int]:
        name = mirror.state_prefix(context, mirror.NOTE_RUNS) + mirror.hashed(agent)
        meta = Meta.read(context.store, name)
        count = int(str(meta.detail.get("count", 0))) + 1
        return Plan(count, [meta.row({"count": count}, at=iso(context.clock()))])

    return commit(context, decide) % every == 0


def _checked_output(
    context: Context, found: ExtractionOutput, existing: Sequence[Note]
) -> ExtractionOutput:
    """Return the output if its note is valid, new and harmless; else why there is none."""
    from memory_mesh.core.language.safety.injection import detect  # many patterns

    try:
        note = found.note
        new_note(context, found)  # it can be written
    except InvalidInput as error:
        return nothing(f"the proposed note is not valid: {error}")
    if detect(f"{note.title}\n{note.content}"):
        return nothing("the proposed note contains instructions for a model")
    if is_known(note.content, existing):
        return nothing("an existing note says it already")
    return found


# --- without a language model ---


def _judged(context: Context, run: ExtractionInput, existing: Sequence[Note]) -> ExtractionOutput:
    from memory_mesh.core.notes import extraction  # many patterns

    given, embedder = extraction.statements(run.agent_output), context.models.embedder
    model, with_vectors, judge = extraction.judges()
    vectors: list[Sequence[float]] = []
    if given and embedder and embedder.model == model:
        with suppress(EmbeddingError):  # judged without vectors
            embedded = embed_texts(embedder, [each.text for each in given])
            vectors, judge = [array("f", vector.data) for vector in embedded], with_vectors
    found = distinct(judge(given, vectors))
    new = [each for each in found if not is_known(each.text, existing)]
    if not new:
        return nothing(
            "an existing note says it already"
            if found
            else "nothing in the report is surely worth a note"
        )
    return note_of(run, new, iso(context.clock()))


# --- with a language model ---


def _asked(context: Context, run: ExtractionInput, existing: Sequence[Note]) -> ExtractionOutput:
    from memory_mesh.core.language.prompts import note as prompt

    assert context.models.chat is not None  # noqa: S101  (checked by the caller)
    room = CHARACTERS_PER_TOKEN * context.options.llm_input_tokens
    parts = {
        "Agent": run.agent,
        "Task": _ends(run.task, room // 8),
        "Result": run.result,
        "Error": _ends(run.error or "", room // 8),
    }
    parts["Report"] = _ends(run.agent_output, max(room // 2, room - sum(map(len, parts.values()))))
    text = "\n".join(f"{name}: {value}" for name, value in parts.items() if value)
    redact = context.gates.content().redact
    known = [
        redact(f"{each.title}: {each.content}"[: 10 * _SHOWN_CHARS])[:_SHOWN_CHARS]
        for each in existing[:_SHOWN_NOTES]
    ]
    asked = prompt.build_prompt(
        text, known, context.ids.salt(), max_tokens=context.options.answer_tokens
    )
    try:
        proposed = prompt.read_reply(context.models.chat.reply(asked))
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        return nothing(f"the language model gave no usable answer: {error}")
    if not proposed.create:
        return nothing(proposed.reasoning or "the language model found nothing worth a note")
    frontmatter = {
        "whenToUse": [*proposed.when_to_use], "tags": [*proposed.tags],
        "importance": proposed.importance, "discoveredAt": iso(context.clock()),
        "discoveredBy": run.agent, "discoveredIn": origin(run.task),
    }  # fmt: skip
    return ExtractionOutput(
        should_create_memory=True, memory_title=proposed.title, frontmatter=frontmatter,
        content=proposed.content,
        reasoning=proposed.reasoning or "the language model found it worth a note",
    )  # fmt: skip


def _ends(text: str, max_chars: int) -> str:
    """Return a text, or if it is longer its beginning and its end, where reports have their
    conclusions."""
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}\n[…]\n{text[-half:]}"
