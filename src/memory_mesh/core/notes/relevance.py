"""Choose the notes that belong into the prompt of an agent, and write that part of the prompt."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memory_mesh.core.errors import InvalidInput, one_of, shown
from memory_mesh.core.model import millis
from memory_mesh.core.notes.files import IMPORTANCES, Note
from memory_mesh.core.search import tokens
from memory_mesh.core.search.lexical import query_tokens

# --- patterns of `whenToUse` ---
# Alternatives, wildcards and plain language. No pattern can fail or take long.

_WILDCARD = re.compile(r"(?:\.?\*)+")
# Words of plain-language patterns that say nothing about the task.
_FRAME = frozenset(tokens("when task tasks mention mentions implementing"))

Close = Callable[[str], bool]


def never_close(pattern: str) -> bool:
    """Return False: without an embedder no pattern is close to a task."""
    return False


def is_plain(pattern: str) -> bool:
    """Return whether a pattern is plain language: several words, without alternatives and
    wildcards."""
    return "|" not in pattern and "*" not in pattern and len(pattern.split()) > 1


def matching_pattern(patterns: Iterable[str], text: str, close: Close = never_close) -> str | None:
    """Return the first pattern that matches a text, or None."""
    folded, words = text.casefold(), frozenset(tokens(text))
    return next((pattern for pattern in patterns if _matches(pattern, folded, words, close)), None)


def _matches(pattern: str, text: str, words: frozenset[str], close: Close) -> bool:
    plain = pattern.strip().casefold()
    if "|" in plain:
        return any(_occurs(each.strip(), text) for each in plain.split("|"))
    if "*" in plain:
        return _occurs(plain, text)
    return bool(plain) and (
        plain in text or _words_occur(plain, words) or (is_plain(plain) and close(pattern.strip()))
    )


def _occurs(pattern: str, text: str) -> bool:
    """Return whether the literal parts of a pattern occur in a text in this order; `*` and `.*`
    are any text or none."""
    if not pattern:
        return False
    at = 0
    for part in _WILDCARD.split(pattern):
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return True


def _words_occur(pattern: str, words: frozenset[str]) -> bool:
    """Return whether all content words of a pattern occur, in any form; without content words
    nothing matches."""
    content = set(query_tokens(pattern)) - _FRAME
    return bool(content) and content <= words


# --- choosing notes ---

MAX_NOTES = 5
MAX_CHARS = 500  # of a note in a prompt
HEADING = "## Background Knowledge from Previous Runs\n\n"
_IMPORTANCE = dict(zip(IMPORTANCES, (5, 15, 25, 30), strict=True))
_HOUR_MS = 3_600_000
_RECENCY = ((24, 10), (72, 5))  # (below so many hours, points)
_KEYWORD, _MAX_KEYWORDS = 5, 20
_SPECIALTY, _MAX_SPECIALTY = 5, 15
_DISCOVERER = 10
_LONG_WORD = re.compile(r"\w{4,}")
_CUT = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchContext:
    """What an agent is about to do."""

    task: str
    agent_name: str = ""
    current_plan: str | None = None

    @classmethod
    def of(cls, task: object, agent_name: object, current_plan: object) -> "MatchContext":
        """Check the values of a caller."""
        for name, value in (
            ("task", task),
            ("agent_name", agent_name),
            ("current_plan", current_plan or ""),
        ):
            if not isinstance(value, str):
                raise InvalidInput(f"{name} is {shown(value)}", expected="a text")
        return cls(
            task=str(task),
            agent_name=str(agent_name),
            current_plan=None if current_plan is None else str(current_plan),
        )

    @property
    def text(self) -> str:
        """What patterns are matched against."""
        return "\n".join(filter(None, (self.task, self.agent_name, self.current_plan)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Why a note is relevant: the pattern that matched, and the points of each part of its
    score."""

    note: Note
    pattern: str
    importance: int
    recency: int
    keyword: int
    specialty: int
    discoverer: int
    feedback: float = 1.0  # a factor of the rank: what feedback the note got

    @property
    def score(self) -> int:
        """The sum of all points, from 5 to 85."""
        return self.importance + self.recency + self.keyword + self.specialty + self.discoverer

    @property
    def rank(self) -> float:
        """The points as feedback raises or lowers them: the order of what is injected."""
        return round(self.score * self.feedback, 6)


def rate(
    note: Note, context: MatchContext, *, ms: int, specialty: Iterable[str] = (), pattern: str = ""
) -> Relevance:
    """Return the points of a note at a time for an agent with these specialty tags."""
    hours = (ms - millis(note.discovered_at)) / _HOUR_MS
    title, words = note.title.casefold(), set(_LONG_WORD.findall(context.task.casefold()))
    shared = {tag.casefold() for tag in note.tags} & {tag.casefold() for tag in specialty}
    return Relevance(
        note=note, pattern=pattern, importance=_IMPORTANCE[note.importance],
        recency=next((points for limit, points in _RECENCY if hours < limit), 0),
        keyword=min(_MAX_KEYWORDS, _KEYWORD * sum(word in title for word in words)),
        specialty=min(_MAX_SPECIALTY, _SPECIALTY * len(shared)),
        discoverer=_DISCOVERER if note.discovered_by == context.agent_name else 0,
    )  # fmt: skip


def find_relevant(
    notes: Iterable[Note], context: MatchContext, *, ms: int, max_notes: int | None = MAX_NOTES,
    min_importance: str | None = None, specialty: Sequence[str] = (), close: Close = never_close,
) -> list[Relevance]:  # fmt: skip
    """Return the notes whose patterns match, highest score first; equal scores keep the order of
    the notes."""
    least = (
        0
        if min_importance is None
        else IMPORTANCES.index(one_of("min_importance", min_importance, IMPORTANCES))
    )
    found: list[Relevance] = []
    for note in notes:
        if IMPORTANCES.index(note.importance) >= least:
            pattern = matching_pattern(note.when_to_use, context.text, close)
            if pattern is not None:
                found.append(rate(note, context, ms=ms, specialty=specialty, pattern=pattern))
    return sorted(found, key=lambda each: -each.score)[:max_notes]


# --- the prompt ---


def format_for_prompt(
    notes: Sequence[Note], *, max_tokens: int | None = None, count: Callable[[str], int] = len
) -> str:
    """Return the notes as a part of a prompt, empty without notes. With `max_tokens`, the last
    ones are left out first."""
    parts = [
        f"### {note.title}\n*Importance: {note.importance.upper()}*\n"
        f"*Discovered by: {note.discovered_by}*\n\n{truncated(note.content)}\n\n"
        for note in notes
    ]
    while parts:
        text = HEADING + "".join(parts)
        if max_tokens is None or count(text) <= max_tokens:
            return text
        parts.pop()
    return ""


def truncated(content: str, max_chars: int = MAX_CHARS) -> str:
    """Return a content of at most so many characters; a longer one is cut after a paragraph, or
    else after a word."""
    if len(content) <= max_chars:
        return content
    room = content[: max_chars + 1]
    paragraph = room.rfind("\n\n")
    words = [found.start() for found in re.finditer(r"\s", room)]
    cut = paragraph if paragraph >= max_chars / 2 else words[-1] if words else max_chars
    return content[:cut].rstrip() + _CUT
