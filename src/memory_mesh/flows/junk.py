"""Find what a store holds that should not be there, and archive it."""

from dataclasses import replace
from itertools import islice

from memory_mesh.core import model
from memory_mesh.core.capture import JunkFound
from memory_mesh.core.capture.junk import why_stored_is_junk
from memory_mesh.core.checks import whole_number
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake.similar import same_words, says_the_same
from memory_mesh.core.model import Kind, Memory, MemoryType, Status, all_of, equals
from memory_mesh.flows.archive import archive
from memory_mesh.flows.context import Context, intact, paged

REPEATS = "it says the same as"  # the reason begins so; the id of the other memory follows
_ACTION = "junk"
_JUDGED_CHARS = 20_000  # the beginning of a text tells; the patterns take seconds for a text of a megabyte


def junk(context: Context, *, apply: object, limit: object, newest: object = None) -> list[JunkFound]:
    """Return the memories of the reader that are junk, oldest first, and archive them if `apply` is set.

    With `newest`, only so many of the newest memories are read. Turns of conversations, lessons, reflections, pinned memories and
    those with a key are left alone.
    """
    most = whole_number("limit", limit)
    read = None if newest is None else whole_number("newest", newest)
    if not isinstance(apply, bool):
        raise InvalidInput(f"archive is {shown(apply)}", expected="True or False")
    active = all_of(model.visible_to(context.reader), model.in_project(context.reader.project), equals("status", Status.ACTIVE))
    memories = sorted(
        map(Memory.of, intact(context, islice(paged(context, Kind.MEMORY, active), read))),
        key=lambda memory: (memory.created_at, memory.number or 0),
    )
    known: dict[tuple[str, ...], Memory] = {}
    found: list[JunkFound] = []
    for memory in filter(_is_judged, memories):
        text, is_long = memory.content[:_JUDGED_CHARS], len(memory.content) > _JUDGED_CHARS
        first = known.setdefault((memory.category or "", *((memory.content,) if is_long else same_words(text))), memory)
        same = first is not memory and (is_long or says_the_same(first.content, text))
        if why := f"{REPEATS} {first.id}" if same else why_stored_is_junk(text):
            found.append(JunkFound(id=memory.id, content=memory.content, why=why))
        if len(found) == most:
            break
    if not apply:
        return found
    whys = {each.id: each.why for each in found}
    archived = {*archive(context, Kind.MEMORY, list(whys), lambda memory: whys[memory.id], action=_ACTION)}
    return [replace(each, archived=each.id in archived) for each in found]


def _is_judged(memory: Memory) -> bool:
    own = memory.memory_type not in (MemoryType.LESSON, MemoryType.REFLECTION)
    return own and not (memory.speaker or memory.turn is not None or memory.key or memory.pinned)
