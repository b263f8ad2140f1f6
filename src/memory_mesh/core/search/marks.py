"""Find the words of a query in a text, with their positions: to choose a passage, and to highlight words in it."""

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from memory_mesh.core.masks import MASK
from memory_mesh.core.search.lexical import CAMEL_CASE, CJK, tokens
from memory_mesh.core.text import LazyRegex

# As in `lexical`, but accents written as separate characters belong to the word: there the text is normalised first.
_ACCENTS = r"[\u0300-\u036f]"
_LETTERS = rf"[^\W_]+(?:{_ACCENTS}+[^\W_]*)*"
_WORD = LazyRegex(rf"{_LETTERS}(?:['’]{_LETTERS})*(?:\+\+|#(?!\w))?")


class Occurrence(NamedTuple):
    """A place in a text where a token occurs."""

    start: int
    end: int
    token: str


def marked(text: str, query: str, *, language: str = "english") -> list[tuple[int, int]]:
    """Return the spans of the text that are words of the query, compared by stem, in order. Adjoining spans are one."""
    spans: list[tuple[int, int]] = []
    for start, end, _ in sorted(occurrences(text, frozenset(tokens(query, language=language)), language=language)):
        if spans and start <= spans[-1][1]:
            start, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((start, end))
    return spans


def occurrences(text: str, wanted: Collection[str], *, language: str = "english") -> Iterator[Occurrence]:
    """Yield where these tokens occur in the text. Part of a word counts in camel case and in CJK."""
    known: dict[str, tuple[Occurrence, ...]] = {}
    for match in _WORD.finditer(_without_masks(text)) if wanted else ():
        at, word = match.start(), match.group()
        if (found := known.get(word)) is None:
            found = known[word] = tuple(_within(word, wanted, language))
        for start, end, token in found:
            yield Occurrence(at + start, at + end, token)


def _within(word: str, wanted: Collection[str], language: str) -> Iterator[Occurrence]:
    for start, end, part in _parts(word):
        yield from (Occurrence(start, end, token) for token in tokens(part, language=language) if token in wanted)


def _parts(word: str) -> Iterator[tuple[int, int, str]]:
    """Yield what may be a token, with its place: pairs of CJK characters; else the word, and its parts in camel case."""
    humps = [0, *(hump.start() for hump in CAMEL_CASE.finditer(word)), len(word)]
    if CJK.search(word):
        at = 0
        for run in CJK.split(word):
            length = min(2, len(run)) if CJK.match(run) else len(run)
            yield from ((start, start + length, word[start : start + length]) for start in _starts(at, len(run), length))
            at += len(run)
    elif len(humps) == 2:
        yield 0, len(word), word
    else:
        yield 0, len(word), word.lower()
        yield from ((start, end, word[start:end]) for start, end in pairwise(humps))


def _starts(at: int, length: int, width: int) -> range:
    return range(at, at + length - width + 1) if length else range(0)


def _without_masks(text: str) -> str:
    """Return the text with its masks blank, except for the digits of pseudonyms; every position stays the same."""
    if "[" not in text:
        return text
    return MASK.sub(lambda mask: f"{mask[2]}]".rjust(len(mask[0])) if mask[2] else " " * len(mask[0]), text)
