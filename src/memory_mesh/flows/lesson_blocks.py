"""Receive lessons as text: blocks of RFC-0011 that another store wrote."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from memory_mesh.core import learning
from memory_mesh.core.audit import parse
from memory_mesh.core.audit.blocks import LESSON
from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import NewText
from memory_mesh.core.model import FailedLine, FileImport, Memory, MemoryType, Value
from memory_mesh.core.ports import Progress
from memory_mesh.core.safety import Source
from memory_mesh.flows import lessons
from memory_mesh.flows.context import Context, require_memory
from memory_mesh.flows.skills import redacted_lines

STORED, NOT_LESSON = "stored already", "not a lesson"


def received(context: Context, texts: Sequence[NewText], key: str | None) -> list[Memory]:
    """Return the memory of the lesson if the only text is one whole block of a lesson; else nothing, and nothing is stored."""
    (given,) = texts
    metadata = given.metadata if isinstance(given.metadata, Mapping) else {}
    if given.key is not None or given.thread is not None or metadata.get("type", MemoryType.LESSON) != MemoryType.LESSON:
        return []
    try:
        return [_receive(context, str(given.content).rstrip("\n") + "\n", metadata, key)[0]]
    except InvalidInput:  # an ordinary memory, if it is valid as one
        return []


def import_blocks(
    context: Context, format_: str, blocks: Iterable[tuple[int, str | InvalidInput]], progress: Progress
) -> FileImport:
    """Store the lessons of a file of blocks, each with the number of its first line."""
    new, skipped, failed = 0, Counter[str](), list[FailedLine]()
    for done, (line, text) in enumerate(blocks, start=1):
        check_cancelled()
        try:
            if isinstance(text, InvalidInput):
                raise text
            if parse(text).intent != LESSON:
                skipped[NOT_LESSON] += 1
                continue
            is_new = _receive(context, text, {}, None)[1]
            new += is_new
            skipped[STORED] += not is_new
        except InvalidInput as error:
            failed.append(FailedLine(line, str(error)))
        progress("importing", done, done)
    return FileImport(format=format_, memories=new, skipped=dict(+skipped), failed=tuple(failed))


def _receive(context: Context, text: str, metadata: Mapping[str, object], key: str | None) -> tuple[Memory, bool]:
    """Store the lesson of a block with its text, and return its memory and whether it is new.

    It is trusted as little as a conclusion of a language model: agents follow rules, and anyone may write a block. One that
    contains instructions to a model is refused.
    """
    from memory_mesh.core.safety.injection import detect  # loads many patterns

    wire = redacted_lines(context.gate().redact, text)
    lesson = learning.read_block(wire)
    # Agents read the text of the block too, which has parts that the lesson has not; a semicolon ends a part.
    if detect(lesson.text) or detect(wire.replace(";", "\n")):
        raise InvalidInput("the lesson contains instructions to a model")
    tags = metadata.get("tags")
    own: dict[str, Value] = {
        learning.WIRE: wire,
        "provenance": {"source": Source.INFERENCE.value, "extracted_by": learning.WIRE},
        "tags": [learning.LESSON_TAG, *(str(tag) for tag in (tags if isinstance(tags, list) else ()))],
    }
    fixed = learning.lesson_metadata(lesson).keys()
    more = {**{name: value for name, value in metadata.items() if name not in fixed}, **own}
    block, is_new = lessons.learn(context, lesson, key=key, more=more)  # type: ignore[arg-type]
    return require_memory(context, block.memory_id, any_reader=True), is_new
