"""`memory-mesh review`: show a person each memory that waits, and do what they decide."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from memory_mesh.core.claims.rules import MemoryExplanation
from memory_mesh.core.errors import MemoryMeshError, NotFound
from memory_mesh.core.model import ClaimConflict, Status
from memory_mesh.interfaces.render.graph import claim_lines, explanation_lines, reviewed
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    Form,
    complain,
    counted,
    items,
    one_line,
    paint,
    safe,
    use_colour,
    write,
)
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.api.graph_methods import MemoryGraph

_MAX_WAITING = 1000
_CHOICES = {"a": "activate", "r": "reject", "b": "keep_both", "s": "skip", "u": "undo", "q": "quit"}
_WORDS = {**_CHOICES, **{word: word for word in _CHOICES.values()}, "both": "keep_both"}
_PAST = {"activate": "activated", "reject": "rejected", "keep_both": "kept both"}
_KEEP = {"activate": "new", "reject": "existing", "keep_both": "both"}
_QUESTION = "[a]ctivate  [r]eject  keep [b]oth  [s]kip  [u]ndo  [q]uit  (and a reason): "
_HOW = (
    "Decide with: memory-mesh review --activate ID, --reject ID or --keep-both ID, and "
    "--reason TEXT"
)


@dataclass(frozen=True, slots=True)
class Item:
    """A memory that waits for a review, and its pending conflict if it is not quarantined."""

    memory_id: str
    conflict: ClaimConflict | None = None


def review(call: Call) -> Answer:
    """Ask a person at a terminal about each memory that waits; elsewhere list them."""
    with call.target.mesh() as mesh:
        queue = waiting(mesh.graph)
        if (
            not queue
            or call.form is not Form.TEXT
            or not (sys.stdin.isatty() and sys.stdout.isatty())
        ):
            return listed(mesh.graph, queue)
        return Dialogue(mesh.graph, queue, call).run()


def waiting(graph: "MemoryGraph") -> list[Item]:
    """Return what waits for a review: the quarantined memories, then the conflicts of memories
    that stayed active."""
    quarantined = [Item(memory.id) for memory in graph.list_quarantined(limit=_MAX_WAITING)]
    known = {item.memory_id for item in quarantined}
    return [
        *quarantined,
        *(Item(one.ref, one) for one in graph.conflicts() if one.ref not in known),
    ]


def listed(graph: "MemoryGraph", queue: list[Item]) -> Answer:
    """Render everything that waits, and the commands that decide about it."""
    lines, data = [f"{NAME} {counted(len(queue), 'memory')} to review"], []
    for item in queue:
        found = graph.explain_memory(item.memory_id)
        lines += ["", *described(graph, found)]
        data.append({"memory": asdict(found.memory), "trust": found.trust.value,
                     "excluded_by": list(found.excluded_by),
                     "conflicts": [
                         asdict(one) for one in found.conflicts if one.status == "pending"
                     ]})  # fmt: skip
    text = "\n".join([*lines, *(["", _HOW] if queue else [])])
    return Answer(text=text, data=items(data))


def described(graph: "MemoryGraph", found: MemoryExplanation) -> Iterator[str]:
    """Yield what a decision is about: the memory with its trust, and each memory that it
    excludes with its own."""
    yield from explanation_lines(found)
    pending = [
        one.target
        for one in found.conflicts
        if one.status == "pending" and one.ref == found.memory.id
    ]
    for id_ in dict.fromkeys([*pending, *found.excluded_by]):
        other = graph.explain_memory(id_)
        yield ""
        yield f"Against {id_}, which is {other.status} and trusted {other.trust.value:.2f}:"
        yield f"  {one_line(other.memory.content)}"
        yield from (f"  {line}" for line in claim_lines(other.claim))


@dataclass(slots=True)
class Dialogue:
    """A review at a terminal."""

    graph: "MemoryGraph"
    items: list[Item]
    call: Call
    ask: Callable[[str], str] = field(default_factory=lambda: _ask)
    # The positions of the decided items, with the actions.
    _done: list[tuple[int, str]] = field(default_factory=list)

    def run(self) -> Answer:
        """Ask about each item in turn, until the last one or until the person quits."""
        at: int | None = 0
        while at is not None:
            at = self._end() if at == len(self.items) else self._item(at)
        done = Counter(_PAST[action] for _, action in self._done)
        named = ", ".join(f"{count} {name}" for name, count in sorted(done.items())) or "nothing"
        left = len(waiting(self.graph))
        return Answer(
            text=f"{NAME} Decided: {named}; {counted(left, 'memory')} left to review",
            data={"left": left},
        )

    def _item(self, at: int) -> int | None:
        """Show an item and ask until an answer is understood and done. Return the position to go
        on with; None to end."""
        item, place = self.items[at], f"{NAME} {at + 1} of {len(self.items)}"
        if (found := self._waiting(item)) is None:
            _say(f"\n{place}: {item.memory_id} was decided or erased meanwhile")
            return at + 1
        _say("\n".join(["", place, *described(self.graph, found)]))
        while True:
            word, _, reason = self.ask(_QUESTION).strip().partition(" ")
            action = _WORDS.get(word.lower())
            try:
                if action is None:
                    _say(
                        f"{NAME} {one_line(word)!r} is not one of {', '.join(_CHOICES)}; nothing "
                        "was changed"
                    )
                elif action in ("quit", "skip"):
                    return None if action == "quit" else at + 1
                else:
                    return (
                        self._undo(at)
                        if action == "undo"
                        else self._act(at, action, reason.strip() or None)
                    )
            except MemoryMeshError as error:
                complain(error)

    def _end(self) -> int | None:
        """Ask once more after the last item, so that the last decision can be taken back too."""
        undo = (
            self._done
            and _WORDS.get(self.ask("That was the last one: [u]ndo or [q]uit: ").strip().lower())
            == "undo"
        )
        try:
            return self._undo(len(self.items)) if undo else None
        except MemoryMeshError as error:
            complain(error)
            return len(self.items)

    def _waiting(self, item: Item) -> MemoryExplanation | None:
        """Return the explanation of a memory that still waits for a review; None if it was
        decided or erased."""
        try:
            found = self.graph.explain_memory(item.memory_id)
        except NotFound:
            return None
        pending = {one.id for one in found.conflicts if one.status == "pending"}
        waits = item.conflict.id in pending if item.conflict else found.status == Status.QUARANTINED
        return found if waits else None

    def _act(self, at: int, action: str, reason: str | None) -> int:
        item = self.items[at]
        if item.conflict:
            done = self.graph.resolve_conflict(item.conflict.id, keep=_KEEP[action], reason=reason)
        else:
            done = self.graph.review_quarantine(item.memory_id, action=action, reason=reason)
        _say(reviewed(done, self.call).text)
        self._done.append((at, action))
        return at + 1

    def _undo(self, at: int) -> int:
        if not self._done:
            _say(
                f"{NAME} Nothing was decided yet; memory-mesh review --undo ID takes back an "
                "earlier decision"
            )
            return at
        _say(
            reviewed(
                self.graph.undo_review(self.items[self._done[-1][0]].memory_id), self.call
            ).text
        )
        return self._done.pop()[0]


def _say(text: str) -> None:
    write([(paint(safe(text)) if use_colour(sys.stdout) else safe(text)) + "\n"])


def _ask(question: str) -> str:
    """Ask at the terminal; the end of the input is `quit`."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline() or "quit"
