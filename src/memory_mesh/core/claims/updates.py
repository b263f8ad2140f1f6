"""What changed: newer memories that replace or end what older ones say.

A judge of pairs says how likely that is. What is likely becomes a link from the newer memory to the
older one, of type `updates` or `ends`; a person may undo it, which leaves a link of type
`both_hold`. What is only possible becomes a link of type `may_update`, which nobody is shown: it
decides between two memories that answer a question about equally well. Both memories stay: links
only decide which of them stands first.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from memory_mesh.core.claims.claim import Window
from memory_mesh.core.model import (
    Link,
    Memory,
    MemoryRecord,
    MemoryType,
    Reach,
    SearchResult,
    Status,
    Value,
    reach_of,
)
from memory_mesh.core.ports import Likely
from memory_mesh.core.text import ShortRepr

if TYPE_CHECKING:
    from memory_mesh.core.claims.patterns import Statement

UPDATES, ENDS, BOTH_HOLD, MAY_UPDATE = "updates", "ends", "both_hold", "may_update"
DECIDED = (UPDATES, ENDS, BOTH_HOLD)
# What a new memory is compared with: so many older ones, whose cosines by the local model are not
# lower.
NEAREST, MIN_COSINE = 5, 0.25
# The probabilities from which a change is possible and likely. A possible one counts in a search if
# probability * (score of the right memory / score of the other) ** exponent is as high. A short
# statement has one thing to change, which is then what the question asks for: its exponent is
# lower. bench/tried.md has what was tried on the worlds of `choose` of bench.everyday.
POSSIBLE, LIKELY = 0.45, 0.97
_EXPONENT, _EXPONENT_IF_SHORT, _MAX_SHORT_WORDS = 0.25, 0.1, 12
CONFIRMED = 1.0
_STATED = 0.98  # of two plain statements that cannot both be true
_MIN_WORDS = 3  # of a statement that may change another one
MAX_CHARACTERS = 400  # of a statement; the judge reads 64 tokens of it
ASSISTANT = "assistant"
_ROLES = ("user", ASSISTANT)
_JUDGED_TYPES = frozenset({MemoryType.GLOBAL, MemoryType.SESSION, MemoryType.AGENT})
# Questions about what was, without a date. Each expression takes linear time: a query may be long.
_PAST = re.compile(
    r"\b(?:previous(?:ly)?|former(?:ly)?|before(?=\s*(?:[?.,!]|$|that\b|the move\b))|back then"
    r"|at first|originally|initially|in the past)\b",
    re.IGNORECASE,
)
# "Where did I live before the move?", but not "… told me to take before bed?".
_PAST_IN_ORDER = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:where|what|who|which|how|when)\b", r"\b(?:did|was|were|had)\b",
        r"\b(?:until|till|old|before(?!\s+(?:\d|(?:bed|bedtime|breakfast|lunch|dinner|noon|midnight"
        r"|sleep|sleeping|work|school)\b)))\b",
    )
)  # fmt: skip
_USED_TO, _USE_TO = (re.compile(rf"\b{word} to\b", re.IGNORECASE) for word in ("used", "use"))
# "I am used to early starts" and "What is it used to cut?" are about now.
_BEING = re.compile(
    r"\b(?:am|is|are|was|were|be|been|being|gets?|got|getting)\b|['’](?:m|re|s)\b", re.IGNORECASE
)
_DID = re.compile(r"\bdid(?:n['’]t)?\b", re.IGNORECASE)
_CLAUSE = re.compile(r"[.?!,;:\n]")
_PRESENT = re.compile(
    r"\b(?:now|nowadays|these days|currently|current|still|today|at the moment|anymore|any more"
    r"|latest|newest)\b",
    re.IGNORECASE,
)

# --- what is judged ---


def link_type(likely: Likely) -> str | None:
    """Return the type of the link that says what the judge found; None: no link."""
    if likely.change < LIKELY:
        return MAY_UPDATE if likely.change >= POSSIBLE else None
    return UPDATES if likely.replaces >= likely.ends else ENDS


def stands_above(likely: float, right: float, other: float, text: str) -> bool:
    """Return whether of two memories, of which one may have changed the other, the right one for
    the time of a question is lifted above the other, by their scores and the text of the older one.
    The further behind it is, the more likely the change must be."""
    is_short = len(text.split()) <= _MAX_SHORT_WORDS
    power = _EXPONENT_IF_SHORT if is_short else _EXPONENT
    ratio = right / other if other > right else 1.0
    return right > 0 and likely * ratio**power >= POSSIBLE


def said_at(memory: MemoryRecord) -> str:
    """Return since when a memory holds, as far as we know."""
    return memory.event_time or memory.valid_from or memory.created_at


def is_named(memory: MemoryRecord) -> bool:
    """Return whether the speaker of a memory is a person with a name."""
    return memory.speaker is not None and memory.speaker.lower() not in _ROLES


def statement(memory: MemoryRecord) -> str:
    """Return a memory as the judge reads it: with the name of its speaker, if that is a name."""
    return f"{memory.speaker}: {memory.content}" if is_named(memory) else memory.content


def says_something(memory: Memory) -> bool:
    """Return whether a memory is one statement: more than a question or a few words, which change
    nothing, and no long text."""
    text = memory.content.rstrip()
    return is_short(memory) and not text.endswith("?") and len(text.split()) >= _MIN_WORDS


def is_short(memory: Memory) -> bool:
    """Return whether the judge can read a memory as a whole. A long text says many things; another
    one changes few of them."""
    return len(memory.content) <= MAX_CHARACTERS


def is_judged(memory: Memory) -> bool:
    """Return whether a memory can be part of a change: a current statement, and none that was
    derived from others."""
    return (
        memory.status == Status.ACTIVE
        and memory.memory_type in _JUDGED_TYPES
        and not memory.sources
        and not memory.superseded_by
    )


def can_change(newer: Memory, older: Memory) -> bool:
    """Return whether the older memory may be changed by the newer one: it is current and short, and
    the same readers see both."""
    return (
        newer.id != older.id
        and is_judged(older)
        and is_short(older)
        and same_readers(newer, older)
        and _when(older) < _when(newer)
    )


def stated_changes(newer: Memory, older: Sequence[Memory]) -> dict[str, Likely]:
    """Return by id which older memories are plain statements about the same thing, of which only
    one can be true, such as two homes of a person. They count whatever a judge finds."""
    if not older or (new := _plain(newer)) is None:
        return {}
    olds = {memory.id: _plain(memory) for memory in older}
    return {id_: likely for id_, old in olds.items() if old and (likely := _stated(old, new))}


def _plain(memory: Memory) -> "Statement | None":
    from memory_mesh.core.claims.patterns import find_statement  # compiles many patterns

    if memory.speaker == ASSISTANT:
        return None
    return find_statement(memory.content, speaker=memory.speaker if is_named(memory) else None)


def _stated(old: "Statement", new: "Statement") -> Likely | None:
    if not old.exclusive or old.ended or _about(old) != _about(new):
        return None
    is_same = old.value.casefold() == new.value.casefold()
    if is_same != new.ended:  # said again, or the end of something else
        return None
    return Likely(*(0.0, _STATED) if new.ended else (_STATED, 0.0), 1 - _STATED, 0.0)


def _about(statement: "Statement") -> tuple[str, str]:
    return statement.subject.casefold(), statement.predicate


def _when(memory: Memory) -> tuple[str, str, int]:
    """Return when a memory was said, and, if that is equal, which of several was stored first."""
    return said_at(memory), memory.created_at, memory.number


def same_readers(one: Memory, other: Memory) -> bool:
    """Return whether two memories belong to one project and are visible to the same agents and
    sessions."""
    return _scope(one) == _scope(other)


def same_session(one: Memory, other: Memory) -> bool:
    return one.session_id is not None and one.session_id == other.session_id


def _scope(memory: Memory) -> tuple[object, ...]:
    """Return what two memories must have in common: who sees them, and the project."""
    reach = reach_of(memory.memory_type, memory.reach)
    agent = None if reach is Reach.GLOBAL else memory.agent_id
    session = memory.session_id if reach is Reach.SESSION else None
    return memory.user_id, reach, agent, session, memory.project


# --- links ---


Result = TypeVar("Result", bound=SearchResult)


@dataclass(frozen=True, slots=True)
class Updates:
    """The changes that a reader can see. The newer memory of one may be hidden from the reader, or
    no longer active: callers say which memories they know."""

    newer: Mapping[str, Sequence[Link]] = field(default_factory=dict)  # by the older one
    begins: Mapping[str, str] = field(default_factory=dict)  # since when a newer one holds
    possible: bool = False  # whether there are changes that are only possible, too
    version: Hashable = None  # another one with other changes

    @classmethod
    def of(
        cls, links: Iterable[Link], *, possible: bool = False, version: Hashable = None
    ) -> "Updates":
        """Read links; their `created_at` is the time since when the newer memory holds."""
        made = sorted(
            (link for link in links if link.link_type != BOTH_HOLD),
            key=lambda link: (link.created_at, link.ref),
        )
        newer = defaultdict[str, list[Link]](list)
        for link in made:
            newer[link.target].append(link)
        begins = {link.ref: link.created_at for link in made}
        return cls(newer, begins, possible, version)

    def newer_than(self, ids: Iterable[str]) -> set[str]:
        """Return the memories that changed one of these, or changed one that did."""
        found, wanted = set[str](), set(ids) if self.newer else set[str]()
        while wanted:
            wanted = {link.ref for id_ in wanted for link in self.newer.get(id_, ())} - found
            found |= wanted
        return found

    def newest_than(self, ids: Collection[str], count: int) -> set[str]:
        """Return the memories that changed one of these and are none of them, at most so many, the
        newest."""
        newer = self.newer_than(ids).difference(ids)
        newest = sorted(newer, key=lambda id_: (self.begins[id_], id_), reverse=True)
        return set(newest[:count])

    def changed_by(
        self, id_: str, known: Container[str], at: str, *, every: bool = False
    ) -> list[Link]:
        """Return the links by which known memories have changed one until a time, the first change
        first. A newer memory that is not known counts through those that changed it in turn; with
        `every`, its own link is returned, too."""
        found, seen, wanted = list[Link](), {id_}, [*self.newer.get(id_, ())]
        while wanted:
            link = wanted.pop(0)
            if link.ref in seen or link.created_at > at:
                continue
            seen.add(link.ref)
            is_known = link.ref in known
            if is_known or every:
                found.append(link)
            if not is_known:
                wanted += self.newer.get(link.ref, ())
        return sorted(found, key=lambda link: link.created_at)

    def marked(self, result: Result, known: Container[str], at: str) -> Result:
        """Return a result that says since when a known memory has replaced or ended it."""
        if not (links := self.changed_by(result.id, known, at)):
            return result
        return result.changed(updated_by=links[0].ref, until=links[0].created_at)

    def pairs(
        self, ids: Collection[str], asked: Window | None, at: str, *, past: bool
    ) -> list[tuple[str, str]]:
        """Return two of these memories for each change, the one that is right for the time of a
        question first: it held at the asked time, or, without one, holds now, or does not hold any
        more if the past is asked for. Of two that are equal the newer one is right.

        The last pair has the one that stands above all. What held at an asked time is compared
        with all of its chain, others with their neighbours in it.
        """
        last = max(at, asked.end or at) if asked else at
        known = self.newer.keys() & ids if self.newer else set[str]()

        def newer_of(id_: str, of_chain: Container[str]) -> set[tuple[str, str]]:
            links = self.changed_by(id_, of_chain, last, every=True)
            return {(link.ref, id_) for link in links if link.ref in ids}

        changes = set[tuple[str, str]]().union(*(newer_of(id_, ids) for id_ in known))

        def key(id_: str) -> tuple[bool, str, str]:
            links = self.changed_by(id_, ids, last)
            until = links[0].created_at if links else None
            begins = self.begins.get(id_)
            fits = Window(start=begins, end=until).overlaps(asked) if asked else bool(links) == past
            return fits, begins or "", id_

        keys = {id_: key(id_) for pair in changes for id_ in pair}
        if asked:
            others = (pair for id_ in known for pair in newer_of(id_, ()) if keys.keys() >= {*pair})
            changes.update(pair for pair in others if keys[pair[0]][0] != keys[pair[1]][0])
        pairs = [sorted(pair, key=keys.__getitem__, reverse=True) for pair in changes]
        pairs.sort(key=lambda pair: [keys[id_] for id_ in pair])
        return [(right, other) for right, other in pairs]


NO_UPDATES = Updates()


def lines(links: Iterable[Link]) -> dict[str, int]:
    """Return a number for each memory of these links; those that changes connect have the same."""
    from memory_mesh.core.graph import connected  # most meshes have no changes

    groups = connected(
        (link.ref, link.target, 1.0) for link in links if link.link_type != BOTH_HOLD
    )
    return {id_: number for number, group in enumerate(groups) for id_ in group}


def asks_past(text: str) -> bool:
    """Return whether a question asks for what was, not for what is."""
    if _PRESENT.search(text):
        return False
    at = 0
    for pattern in _PAST_IN_ORDER:
        if (found := pattern.search(text, at)) is None:
            break
        at = found.end()
    else:
        return True
    return (
        _PAST.search(text) is not None
        or any(not _BEING.search(clause) for clause in _clauses_before(_USED_TO, text))
        or any(_DID.search(clause) for clause in _clauses_before(_USE_TO, text))
    )


def _clauses_before(words: re.Pattern[str], text: str) -> list[str]:
    """Return what stands before these words in each clause that has them."""
    found = [(clause, words.search(clause)) for clause in _CLAUSE.split(text)]
    return [clause[: match.start()] for clause, match in found if match]


# --- the answer to people ---


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Update(ShortRepr):
    """A newer memory, and the older one that it replaces or ends; `both_hold` if that was
    undone."""

    newer: MemoryRecord
    older: MemoryRecord
    type: str
    probability: float  # 1: confirmed
    at: str  # since when the newer one holds


def reason(link_type: str, older: str, likely: float, version: str) -> dict[str, Value]:
    """Return what the history of the newer memory says of a link."""
    return {"link": link_type, "target": older, "probability": round(likely, 4), "judge": version}
