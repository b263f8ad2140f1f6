"""Number the messages of conversations: read the turns that a session has, and find out which messages are new."""

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from memory_mesh.core import audit
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import ALONE, Draft, Turn, count_known
from memory_mesh.core.model import INT_MAX, Compare, Kind, Memory, Where, all_of, equals
from memory_mesh.flows.context import Context


class Conversation(NamedTuple):
    """The scope of the turns that are numbered together."""

    partition: str
    session_id: str | None
    project: str | None

    def turns(self) -> Where:
        """Return the condition that selects its turns."""
        return all_of(*(equals(name, value) for name, value in self._asdict().items()), Compare("turn", ">=", 0))


@dataclass(frozen=True, slots=True)
class Said:
    """A message that has no turn yet, the list that it came in, and the partition that it is stored in."""

    thread: int
    partition: str
    draft: Draft

    @property
    def conversation(self) -> Conversation:
        session_id, project = (self.draft.columns[name] for name in ("session_id", "project"))
        return Conversation(self.partition, *(None if value is None else str(value) for value in (session_id, project)))


def number_turns(context: Context, messages: Mapping[int, Said], replayed: Container[int]) -> dict[int, int]:
    """Return the number of the turn of each new message; messages that are stored already are left out.

    `replayed` are messages that an earlier call with the same idempotency key stored: the others of their list were known then.
    """
    threads: dict[tuple[int, Conversation], list[int]] = defaultdict(list)
    for at, said in messages.items():
        threads[said.thread, said.conversation].append(at)
    stored: dict[Conversation, dict[int, Turn]] = {}
    numbers: dict[int, int] = {}
    for (thread, conversation), places in threads.items():
        if any(at in replayed for at in places):
            continue
        if conversation not in stored:
            read = _last_turn if thread == ALONE else _stored_turns
            stored[conversation] = read(context, conversation.turns())
        turns, given = stored[conversation], [Turn.of_draft(messages[at].draft) for at in places]
        known = 0 if thread == ALONE else count_known(given, turns)
        first = max(turns, default=0) + 1
        if first + len(places) > INT_MAX:
            remedy = "give that turn a smaller number, or the messages their own"
            raise InvalidInput(f"the last turn has number {first - 1}, and there are no larger ones", remedy=remedy)
        for number, at, turn in zip(count(first), places[known:], given[known:], strict=False):
            numbers[at], turns[number] = number, turn
    return numbers


def _stored_turns(context: Context, turns: Where) -> dict[int, Turn]:
    """Return all turns of a conversation by number, whatever their status."""
    rows = context.store.find(Kind.MEMORY, turns)
    return {int(str(row.value("turn"))): Turn.of_memory(Memory.of(row), altered=audit.is_altered(row)) for row in rows}


def _last_turn(context: Context, turns: Where) -> dict[int, Turn]:
    """Return the last turn by number. It is the newest one, unless the caller numbered some turns."""
    last: dict[int, Turn] = {}
    while rows := context.store.find(Kind.MEMORY, all_of(turns, Compare("turn", ">", max(last, default=-1))), limit=1):
        last = {int(str(rows[0].value("turn"))): Turn.of_memory(Memory.of(rows[0]), altered=False)}
    return last
