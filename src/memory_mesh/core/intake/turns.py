"""Conversations: which messages of a list are stored already.

Agents send their history again and again: all of it, its end, or its beginning and its end. Only what follows the stored turns is
new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from memory_mesh.core.intake.drafts import Draft
from memory_mesh.core.intake.normal import normal_text
from memory_mesh.core.model import Row, Value

# Only lists that repeat one message hundreds of times need so many comparisons. Then all are new: storing twice loses nothing.
_MAX_COMPARED = 300_000


@dataclass(frozen=True, slots=True)
class Turn:
    """What is compared of a message and a stored turn."""

    speaker: Value
    text: str
    event_time: Value = None
    tool_call_id: Value = None
    changed: bool = False  # after it was stored, so its text says nothing

    @classmethod
    def of_draft(cls, draft: Draft) -> "Turn":
        columns = draft.columns
        return cls(columns["speaker"], normal_text(draft.content), columns["event_time"], draft.metadata.get("tool_call_id"))

    @classmethod
    def of_row(cls, row: Row, *, altered: bool) -> "Turn":
        metadata = row.value("metadata")
        call = metadata.get("tool_call_id") if isinstance(metadata, dict) else None
        text = normal_text(str(row.value("content")))
        return cls(row.value("speaker"), text, row.value("event_time"), call, altered or row.revision > 1)

    def is_equal(self, stored: "Turn | None") -> bool:
        """Return whether it has the speaker and text of a stored turn, and no other time or tool call."""
        if stored is None or self.text != stored.text or self.speaker != stored.speaker:
            return False
        pairs = ((self.event_time, stored.event_time), (self.tool_call_id, stored.tool_call_id))
        return all(one is None or other is None or one == other for one, other in pairs)

    def may_be(self, stored: "Turn | None") -> bool:
        """Return whether it can be a stored turn: an equal one, a changed one of the same speaker, or an erased one."""
        return stored is None or self.is_equal(stored) or (stored.changed and self.speaker == stored.speaker)


def count_known(given: Sequence[Turn], stored: Mapping[int, Turn]) -> int:
    """Return how many of the given messages, from the first on, are stored already; `stored` maps the numbers of turns to them.

    These are the most messages that repeat the beginning of the stored turns and then their end; either may be missing. A number
    without a turn is one that was erased: it must not come back, nor may it make everything around it look new.
    """
    if not stored:
        return 0
    first, last = 0 if 0 in stored else 1, max(stored)
    length = last - first + 1
    at_start = next((n for n, turn in enumerate(given) if n == length or not turn.may_be(stored.get(first + n))), len(given))
    equal_start = next((n for n in range(at_start) if given[n].is_equal(stored.get(first + n))), at_start)
    if equal_start < at_start == len(given):
        return len(given)
    compared = 0
    for known in range(min(len(given), length), 0, -1):
        # As few as possible from the end: the others repeat the beginning.
        at_end = max(1, known - at_start)
        pairs = ((given[known - n], stored.get(last + 1 - n)) for n in range(1, at_end + 1))
        end = list(takewhile(lambda pair: pair[0].may_be(pair[1]), pairs))
        # Changed and erased turns may be anything, so at least one must be equal: at the end, if some between are left out.
        is_equal = any(turn.is_equal(other) for turn, other in end) or (known == length and equal_start < known - at_end)
        if len(end) == at_end and is_equal:
            return known
        compared += len(end)
        if compared > _MAX_COMPARED:
            break
    return 0
