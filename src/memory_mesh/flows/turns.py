"""Number the messages of conversations: read the turns that a session has, and find out which messages are new."""

from collections import defaultdict
from collections.abc import Container, Sequence

from memory_mesh.core import audit
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import SINGLE, Turn, count_known
from memory_mesh.core.model import INT_MAX, Compare, Kind, Or, Where, all_of, equals
from memory_mesh.flows.context import Context
from memory_mesh.flows.prepare import Prepared


def number_turns(context: Context, prepared: Sequence[Prepared], receipts: Container[str | None]) -> list[Prepared]:
    """Give each new message the number of its turn, and leave out the messages that are stored already.

    A message with a receipt was stored by an earlier call with the same idempotency key: the others of its list were known then.
    """
    threads: dict[tuple[int | None, Where], list[int]] = defaultdict(list)
    for at, item in enumerate(prepared):
        if item.needs_turn:
            threads[item.thread, _conversation(item)].append(at)
    stored: dict[Where, dict[int, Turn]] = {}
    known: set[int] = set()
    numbers: dict[int, int] = {}
    for (thread, conversation), places in threads.items():
        if replayed := {at for at in places if prepared[at].receipt_id in receipts}:
            known |= {*places} - replayed
            continue
        size = 0 if thread == SINGLE else len(prepared)
        if conversation not in stored:
            stored[conversation] = _read_turns(context, conversation, size)
        turns, given = stored[conversation], [(at, Turn.of_draft(prepared[at].draft)) for at in places]
        count = count_known([turn for _, turn in given], turns) if size else 0
        known.update(places[:count])
        last = max(turns, default=0)
        if last + len(places) >= INT_MAX:
            remedy = "give that turn a smaller number, or the messages their own"
            raise InvalidInput(f"the last turn has number {last}, and there are no larger ones", remedy=remedy)
        for number, (at, turn) in enumerate(given[count:], start=last + 1):
            numbers[at], turns[number] = number, turn
    every = ((item, numbers.get(at)) for at, item in enumerate(prepared) if at not in known)
    return [item if number is None else item.as_turn(context, number) for item, number in every]


def _conversation(item: Prepared) -> Where:
    """Return the condition that selects the turns of an item's conversation, whatever their status."""
    scope = {name: item.draft.columns[name] for name in ("session_id", "project")}
    same = (equals(name, None if value is None else str(value)) for name, value in scope.items())
    return all_of(equals("partition", item.partition), *same, Compare("turn", ">=", 0))


def _read_turns(context: Context, conversation: Where, size: int) -> dict[int, Turn]:
    """Return the last turn of a conversation and the first and last `size` ones, by number."""
    store = context.store
    # Numbers from 0 or 1 on are distinct, so the highest is at least their count less one, unless the caller used one twice.
    lowest = Compare("turn", ">=", store.count(Kind.MEMORY, conversation) - 1)
    rows = store.find(Kind.MEMORY, all_of(conversation, lowest)) or store.find(Kind.MEMORY, conversation)
    if rows and size:
        last = max(int(str(row.value("turn"))) for row in rows)
        ends = Or((Compare("turn", "<=", size), Compare("turn", ">", last - size)))
        rows = store.find(Kind.MEMORY, all_of(conversation, ends))
    return {int(str(row.value("turn"))): Turn.of_row(row, altered=audit.is_altered(row)) for row in rows}
