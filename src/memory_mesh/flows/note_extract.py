"""Decide whether a finished run of an agent is worth a note: with the language model, or by the judge of reports without one."""

from array import array
from collections.abc import Sequence
from dataclasses import replace

from memory_mesh.core.errors import AnswerUnreadable, BudgetSpent, CallError, EmbeddingError, InvalidInput, shown
from memory_mesh.core.model import Meta, iso
from memory_mesh.core.notes import Note
from memory_mesh.core.notes.extraction import (
    ExtractionInput,
    ExtractionOutput,
    distinct,
    is_known,
    note_of,
    nothing,
    origin,
)
from memory_mesh.core.text import CHARACTERS_PER_TOKEN
from memory_mesh.flows import note_index, notes
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.embed import embed_texts

_SHOWN_CHARS = 200  # of an existing note that the model sees
_SHOWN_NOTES = 100


def extract(context: Context, run: ExtractionInput) -> ExtractionOutput:
    """Return the note of a run, or why there is none. Nothing is written, and no answer of a model is an error."""
    if not isinstance(run, ExtractionInput):
        raise InvalidInput(f"run is {shown(run)}", expected="an ExtractionInput")
    if not (run.agent_output.strip() or run.error):
        return nothing("the report is empty")
    existing = notes.load(context) if run.existing_memories is None else list(run.existing_memories)
    redact = context.gate().redact
    run = replace(
        run, agent=redact(run.agent), task=redact(run.task), agent_output=redact(run.agent_output),
        error=run.error and redact(run.error),
    )  # fmt: skip
    found = _judged(context, run, existing) if context.chat is None else _asked(context, run, existing)
    return _checked(context, found, existing) if found.should_create_memory else found


def extract_and_save(context: Context, run: ExtractionInput, *, dry_run: bool) -> ExtractionOutput:
    """Extract a note of a run, unless the setting leaves this run out, and save it. A dry run only extracts."""
    if dry_run:
        return extract(context, run)
    if (every := context.options.note_extraction_every) != 1 and not _is_due(context, run.agent, every):
        return nothing(f"not extracted: note_extraction_every is {every}")
    found = extract(context, run)
    saved = notes.save(context, found)
    if found.should_create_memory and saved is None:
        return nothing("an existing note says it already")
    return replace(found, saved=saved)


def _is_due(context: Context, agent: str, every: int) -> bool:
    """Count a run of an agent, and return whether a note is to be extracted of it."""

    def decide() -> Plan[int]:
        meta = Meta.read(context.store, note_index.runs_name(context, agent))
        count = int(str(meta.detail.get("count", 0))) + 1
        return Plan(count, [meta.row({"count": count}, at=iso(context.clock()))])

    return commit(context, decide) % every == 0


def _checked(context: Context, found: ExtractionOutput, existing: Sequence[Note]) -> ExtractionOutput:
    """Return the output if its note is valid, new and harmless; else why there is none."""
    from memory_mesh.core.safety.injection import detect  # many patterns

    try:
        note = found.note
        notes.new_note(context, found)  # it can be written
    except InvalidInput as error:
        return nothing(f"the proposed note is not valid: {error}")
    if detect(f"{note.title}\n{note.content}"):
        return nothing("the proposed note contains instructions for a model")
    if is_known(note.content, existing):
        return nothing("an existing note says it already")
    return found


# --- without a language model ---


def _judged(context: Context, run: ExtractionInput, existing: Sequence[Note]) -> ExtractionOutput:
    from memory_mesh.core.notes import reports  # many patterns

    given = reports.statements(run.agent_output)
    embedder, judge, vectors = context.embedder, reports.judge_without_vectors(), list[Sequence[float]]()
    if given and embedder and embedder.model == reports.model_of_vectors():
        try:
            vectors = [array("f", vector.data) for vector in embed_texts(embedder, [each.text for each in given])]
            judge = reports.judge_with_vectors()
        except EmbeddingError:  # judged without vectors
            vectors = []
    found = distinct(judge(given, vectors))
    new = [each for each in found if not is_known(each.text, existing)]
    if not new:
        return nothing("an existing note says it already" if found else "nothing in the report is surely worth a note")
    return note_of(run, new, iso(context.clock()))


# --- with a language model ---


def _asked(context: Context, run: ExtractionInput, existing: Sequence[Note]) -> ExtractionOutput:
    from memory_mesh.core.prompts import note as prompt

    assert context.chat is not None  # noqa: S101  (checked by the caller)
    room = CHARACTERS_PER_TOKEN * context.options.llm_input_tokens
    parts = {
        "Agent": run.agent,
        "Task": _ends(run.task, room // 8),
        "Result": run.result,
        "Error": _ends(run.error or "", room // 8),
    }
    parts["Report"] = _ends(run.agent_output, max(room // 2, room - sum(map(len, parts.values()))))
    text = "\n".join(f"{name}: {value}" for name, value in parts.items() if value)
    redact = context.gate().redact
    known = [redact(f"{each.title}: {each.content}"[: 10 * _SHOWN_CHARS])[:_SHOWN_CHARS] for each in existing[:_SHOWN_NOTES]]
    asked = prompt.build_prompt(text, known, context.ids.salt(), max_tokens=context.options.answer_tokens)
    try:
        proposed = prompt.read_reply(context.chat.reply(asked))
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        return nothing(f"the language model gave no usable answer: {error}")
    if not proposed.create:
        return nothing(proposed.reasoning or "the language model found nothing worth a note")
    frontmatter = {
        "whenToUse": [*proposed.when_to_use], "tags": [*proposed.tags], "importance": proposed.importance,
        "discoveredAt": iso(context.clock()), "discoveredBy": run.agent, "discoveredIn": origin(run.task),
    }  # fmt: skip
    return ExtractionOutput(
        should_create_memory=True, memory_title=proposed.title, frontmatter=frontmatter, content=proposed.content,
        reasoning=proposed.reasoning or "the language model found it worth a note",
    )  # fmt: skip


def _ends(text: str, max_chars: int) -> str:
    """Return a text, or if it is longer its beginning and its end, where reports have their conclusions."""
    half = max_chars // 2
    return text if len(text) <= max_chars else f"{text[:half]}\n[…]\n{text[-half:]}"
