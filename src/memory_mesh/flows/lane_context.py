"""What the memory of a project knows that matters, for the beginning of a session."""

from dataclasses import replace

from memory_mesh.core import model
from memory_mesh.core.lane import scoring
from memory_mesh.core.model import ANYTHING, Compare, In, IsNull, Kind, Memory, Or, all_of, equals
from memory_mesh.core.text import shortened
from memory_mesh.flows import embed, usage
from memory_mesh.flows.context import Context, intact
from memory_mesh.flows.readable import readable
from memory_mesh.flows.trust import records

_NEWEST = 300  # memories of each group that are compared
_MOST = 40  # memories of one context
_MAX_CHARS = 2000  # of one memory: a long one must not take the place of all others


def session_context(context: Context, max_tokens: int) -> str:
    """Return the memories that matter most as data for a language model. Without memories the text is empty."""
    from memory_mesh.core.safety.fence import fence_memories  # loads many patterns

    every = records(context, most_important(context)[:_MOST])
    offered = [replace(record, content=shortened(record.content, _MAX_CHARS)) for record in every]
    return fence_memories(offered, context.ids.salt(), max_tokens=max_tokens, count=embed.token_counter(context))


def most_important(context: Context) -> list[Memory]:
    """Return memories that are valid now, pinned ones first, then by weight of the type × decay × feedback, then newest first.

    Of a large memory these are compared: the newest, the newest of the heaviest types, and those that are pinned or were helpful.
    Turns of conversations are left out. Reading them here does not count as a use: what is offered in every session must fade.
    """
    ms = context.clock()
    valid = all_of(readable(context), model.in_project(context.reader.project), IsNull("turn"))
    heavy = tuple(type_ for type_, weight in scoring.WEIGHTS.items() if weight == max(scoring.WEIGHTS.values()))
    raised = Or((equals("pinned", True), Compare("feedback_score", ">", 1.0)))  # noqa: FBT003  (a value)
    rows = {
        row.id: row
        for group in (ANYTHING, In("category", heavy), raised)
        for row in context.store.find(Kind.MEMORY, all_of(valid, group), limit=_NEWEST)
    }
    found = usage.with_counts(context, [Memory.of(row) for row in intact(context, rows.values())])
    newest = sorted(found, key=lambda memory: (memory.created_at, memory.id), reverse=True)
    return sorted(newest, key=lambda memory: (not memory.pinned, -_worth(memory, ms)))


def _worth(memory: Memory, ms: int) -> float:
    decay = scoring.decay_factor(ms, created_at=memory.created_at, last_accessed=memory.last_accessed)
    return scoring.weight_of(memory.category) * decay * memory.feedback_score
