"""`memory-mesh extract` and the accounts of model calls, as people read them."""

from collections.abc import Sequence
from dataclasses import asdict

from memory_mesh.core.learning import Spending
from memory_mesh.core.model.records import Extraction
from memory_mesh.interfaces.render import NAME, Answer, one_line, plain, preview


def answer(done: Extraction) -> Answer:
    """What became of the text."""
    lines = [f"{NAME} {_summary(done)}"]
    if done.stored_whole:
        lines.append(f"{NAME} Stored as it is: {done.stored_whole}")
    if done.flagged:
        lines.append(f"{NAME} The text tries to give instructions ({', '.join(done.flagged)}); they were not followed")
    lines += [
        f"{memory.id}  {_importance(memory.importance)}  {_kind(memory.category)}  {preview(memory.content)}"
        for memory in done.memories
    ]
    data = {**asdict(done), "memories": [plain(memory) for memory in done.memories], "count": len(done.memories)}
    return Answer(text="\n".join(lines), data=data)


def spending_lines(today: Sequence[Spending], in_all: Sequence[Spending]) -> list[str]:
    """A line for each operation and model; none where nothing was called."""
    of_today = {(spent.operation, spent.model): spent.calls for spent in today}
    return [
        f"{NAME} Calls: {spent.operation} by {one_line(spent.model)}, {of_today.get((spent.operation, spent.model), 0)} today, "
        f"{_used(spent)}"
        for spent in in_all
    ]


def _used(spent: Spending) -> str:
    failed = f" ({spent.failed} failed)" if spent.failed else ""
    cost = "" if spent.cost is None else f", ${spent.cost:.4f}"
    return f"{spent.calls} in all{failed}: {spent.sent:,} tokens sent, {spent.received:,} received{cost}"


def _summary(done: Extraction) -> str:
    if done.repeated:
        return f"This call was made before: {len(done.memories)} memories"
    dropped = f"; {done.dropped} of too little importance dropped" if done.dropped else ""
    unusable = f"; {done.unusable} answers of no use" if done.unusable else ""
    return f"Extracted {len(done.memories)} memories{dropped}{unusable}"


def _importance(number: float | None) -> str:
    return "  – " if number is None else f"{number:.2f}"


def _kind(category: str | None) -> str:
    return f"{category or '–':<12}"
