"""Corrections of misspelt words and the speakers that a query names, from the memories that the reader can see."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeAlias

from memory_mesh.core.search import Query
from memory_mesh.core.search.people import NICKNAME
from memory_mesh.core.search.spelling import hidden_stems
from memory_mesh.index.table import Table
from memory_mesh.index.view import View

Views: TypeAlias = Sequence[tuple[Table, View]]  # of each partition

MAX_UNKNOWN = 16  # words and names of a query that are looked up: a long text as a query has many
CORRECTED = 0.8  # the weight of a word that is one edit away from the word of the query


class Words(Protocol):
    """The words of all readable memories.

    **near** returns words that are one likely typo away, of which some may be in none of them. **count** returns the number of
    memories that contain a word.
    """

    def near(self, word: str) -> Collection[str]: ...
    def count(self, word: str) -> int: ...
    @property
    def language(self) -> str: ...


class ViewWords:
    """The words of views."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def near(self, word: str) -> set[str]:
        return {other for table, _ in self._views for other in table.vocabulary.near(word)}

    def count(self, word: str) -> int:
        return sum(view.count(word) for _, view in self._views)

    @property
    def language(self) -> str:
        return self._views[0][0].language


def find_corrections(unknown: Iterable[str], known: Words, is_word: Callable[[str], bool]) -> dict[str, str]:
    """Return the most frequent of the readable memories' words that each misspelt word may stand for."""
    corrections: dict[str, str] = {}
    for word in islice(unknown, MAX_UNKNOWN):
        found = _most_frequent(known.near(word), known) or _most_frequent(hidden_stems(word, language=known.language), known)
        if found and not is_word(word):
            corrections[word] = found
    return corrections


def _most_frequent(words: Iterable[str], known: Words) -> str | None:
    """Return the word that most readable memories contain; None if they contain none of the words."""
    count, word = max(((known.count(word), word) for word in words), default=(0, ""))
    return word if count else None


def with_corrections(words: Mapping[str, float], corrections: Mapping[str, str]) -> dict[str, float]:
    """Replace the misspelt words of a query, given with their counts; a correction counts less than a word."""
    right = {corrections[word]: CORRECTED * count for word, count in words.items() if word in corrections}
    return dict(sorted((right | {word: count for word, count in words.items() if word not in corrections}).items()))


@dataclass(frozen=True, slots=True)
class People:
    """The people that a query names."""

    speakers: Sequence[Mapping[int, float]]  # by partition: how surely it names a speaker, by the code of the speaker
    nicknames: frozenset[str]  # tokens of the query that stand for a speaker of another name
    stranger: float  # see `SIGNALS`

    def names(self, views: Views) -> frozenset[str]:
        """Return the names of the speakers as they are stored, and the nicknames."""
        known = (table.names.speakers[code] for (table, _), codes in zip(views, self.speakers, strict=True) for code in codes)
        return self.nicknames.union(known)


def find_people(query: Query, views: Views, known: Words, corrections: Mapping[str, str] | None = None) -> People:
    """Return the people that a query names, among the speakers of readable memories."""
    speakers = [_exact(query.tokens, table, view) for table, view in views]
    if not query.names:
        return People(speakers, frozenset(), 0.0)
    exact = {word for word in query.names for (table, _), codes in zip(views, speakers, strict=True)
             if not codes.keys().isdisjoint(table.speakers_by_word.get(word, ()))}  # fmt: skip
    others = sorted(query.names - exact)[:MAX_UNKNOWN]  # each is compared with all speakers
    nicknames, unknown = set[str](), 0.0
    for name in others:
        is_known, surest = known.count(name) > 0, 0.0
        for (table, view), codes in zip(views, speakers, strict=True):
            close = dict.fromkeys(view.addressed(name), NICKNAME) or ({} if is_known else table.speakers_like(name))
            for code, grade in close.items():
                if view.has_speaker(code):
                    codes[code], surest = max(codes.get(code, 0.0), grade), max(surest, grade)
        if surest:
            nicknames.add(name)
        if not is_known:
            unknown += 1 - max(surest, CORRECTED if name in (corrections or {}) else 0.0)
    return People(speakers, frozenset(nicknames), unknown / (len(exact) + len(others) + 1))


def _exact(words: Iterable[str], table: Table, view: View) -> dict[int, float]:
    codes = (code for word in words for code in table.speakers_by_word.get(word, ()))
    return {code: 1.0 for code in codes if view.has_speaker(code)}
