"""Pack memories into the context of a language model: choose what fits, and write the text.

The text has one fence, so that a memory costs little more than its words: a notice that what
follows is data, then each category with its memories by day. Only the first line of a memory starts
at the margin, so that no text can imitate another memory, a heading or the end of the fence.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import groupby

from memory_mesh.core.graph.links import Candidate, GraphHit
from memory_mesh.core.language.safety.fence import (
    NOTICE,
    WARNING,
    escape,
    indented,
    short_tag,
)
from memory_mesh.core.language.safety.injection import detect
from memory_mesh.core.text import TokenCounter, day

TAG = "memories"
UNCATEGORISED = "memory"  # the heading of memories without a category
_MAX_HEADING = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds a context, and how its tokens are counted."""

    max_memories: int
    max_tokens: int | None
    count: TokenCounter

    def cost(self, tokens: int) -> float:
        """Return how much of the limits a memory uses: its part of the tokens, and its place
        among the memories."""
        return 1.0 if self.max_tokens is None else tokens / self.max_tokens + 1 / self.max_memories


def pack(
    candidates: Sequence[Candidate],
    limits: Limits,
    page: "Page",
    cost: Callable[[int], float] | None = None,
) -> list[Candidate]:
    """Decide about each candidate, highest value for its cost first. One that does not fit is
    passed over.

    A memory also costs the headings above it that are not in the text yet, so memories of the same
    day become cheaper; not with a `cost` of the caller's own. The whole text is counted before each
    decision, so that it never has more than `max_tokens`.
    """
    waiting = {
        each.memory.id: replace(each, tokens=limits.count(_item(each.memory)))
        for each in candidates
    }
    heads = {id_: () if cost else page.headings(each.memory) for id_, each in waiting.items()}
    sizes = {
        head: limits.count(head[-1])
        for head in {head for above in heads.values() for head in above}
    }

    def weighed(each: Candidate) -> tuple[float, float, str, Candidate]:
        above = sum(sizes.get(head, 0) for head in heads[each.memory.id])
        density = each.value / (cost or limits.cost)(each.tokens + above)
        return -density, -each.value, each.memory.id, replace(each, density=density)

    queue = [weighed(each) for each in waiting.values()]
    heapify(queue)
    chosen, decided, used = list[GraphHit](), list[Candidate](), 0
    while queue:
        *_, id_, each = heappop(queue)
        if waiting.pop(id_, None) is None:
            continue  # decided when it was cheaper
        reason, used = _reason(each, limits, page, chosen, used)
        decided.append(replace(each, left_out=reason))
        if reason is None:
            chosen.append(each.memory)
            new = {head for head in heads[id_] if sizes.pop(head, None)}
            for other in [
                other for other_id, other in waiting.items() if not new.isdisjoint(heads[other_id])
            ]:
                heappush(queue, weighed(other))
    return decided


def _reason(
    each: Candidate, limits: Limits, page: "Page", chosen: Sequence[GraphHit], used: int
) -> tuple[str | None, int]:  # fmt: skip
    """Return why a candidate is left out, or None if it is chosen; and the tokens of the text
    after that."""
    if each.left_out or len(chosen) == limits.max_memories:
        return each.left_out or "max_memories", used
    if limits.max_tokens is None:
        return None, used
    # Most of those that do not fit are found without counting the whole text.
    if used + each.tokens > limits.max_tokens:
        return "budget", used
    total = limits.count(page.text([*chosen, each.memory]))
    return (None, total) if total <= limits.max_tokens else ("budget", used)


class Page:
    """The text of some of these memories: the categories in the order of the memories, in each
    the days in their order."""

    def __init__(
        self, memories: Sequence[GraphHit], boundary: str, *, notice: str = NOTICE
    ) -> None:
        self._notice = notice
        self._headings = {each.id: _heading(each) for each in memories}
        self._items: dict[str, str] = {}
        texts = [*(each.excerpt for each in memories), *self._headings.values()]
        self._tag = short_tag(TAG, boundary, texts)

    def item(self, memory: GraphHit) -> str:
        """Return the text of a memory. If it holds instructions, the first line says so."""
        if memory.id not in self._items:
            # Looking for instructions takes longer than the rest: only what is nearly chosen is
            # examined.
            warning = f"[{WARNING}] " if detect(memory.excerpt) else ""
            self._items[memory.id] = _item(memory, warning)
        return self._items[memory.id]

    def headings(self, memory: GraphHit) -> tuple[tuple[str, ...], ...]:
        """Return the lines above a memory, that of its category and that of its day, each with
        the lines above it."""
        category = f"# {self._headings[memory.id]}"
        return (category,), (category, _time(memory)[:10])

    def text(self, chosen: Iterable[GraphHit]) -> str:
        """Return the whole text; it is empty without memories."""
        sections: dict[str, list[GraphHit]] = {}
        for memory in chosen:
            sections.setdefault(self._headings[memory.id], []).append(memory)
        lines = [self._notice, f"<{self._tag}>"]
        for heading, section in sections.items():
            lines.append(f"# {heading}")
            in_order = sorted(section, key=lambda each: (_time(each), each.id))
            for date, of_day in groupby(in_order, key=lambda each: _time(each)[:10]):
                lines += [date, *map(self.item, of_day)]
        return "\n".join([*lines, f"</{self._tag}>"]) if sections else ""


def _item(memory: GraphHit, warning: str = "") -> str:
    """Return the text of a memory as an item of a list, whose further lines are indented; one that
    does not hold any more says since when."""
    until = f"until {day(memory.until)}: " if memory.until else ""
    return f"- {warning}{until}{indented(memory.excerpt)}"


def _heading(memory: GraphHit) -> str:
    """Return the category, which the caller that stored the memory chose freely, as one harmless
    line."""
    return (
        " ".join(escape(memory.category or UNCATEGORISED)[:_MAX_HEADING].split()) or UNCATEGORISED
    )


def _time(memory: GraphHit) -> str:
    return memory.event_time or memory.created_at


def reasons(decided: Iterable[Candidate], **others: int) -> dict[str, int]:
    """Return how many candidates were left out by reason, and others that are given by reason."""
    counts = dict(others)
    for each in decided:
        if each.left_out:
            counts[each.left_out] = counts.get(each.left_out, 0) + 1
    return counts
