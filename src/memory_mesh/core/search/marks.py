"""Find the words of a query in a text, to highlight them."""

from collections.abc import Iterator
from itertools import pairwise

from memory_mesh.core.masks import MASK
from memory_mesh.core.search.lexical import CAMEL_CASE, CJK, EMOJI, MARKS, tokens
from memory_mesh.core.text import LazyRegex

# A run of CJK characters, a word or an emoji as in `lexical`. Accents may be separate characters: there the text is normalised
# first. Of an emoji, everything that it is joined with is marked.
_LETTERS = rf"(?:(?!{CJK.pattern})[^\W_]|[{MARKS}])+"
_JOINED = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u2640\u2642]"
_WORD = LazyRegex(
    rf"(?P<cjk>{CJK.pattern})|{_LETTERS}(?:['’]{_LETTERS})*(?:\+\+|#(?!\w))?"
    rf"|(?:{EMOJI})(?:{_JOINED}|\u200d(?:{EMOJI}|{_JOINED}))*"
)


def marked(text: str, query: str, *, language: str = "english") -> list[tuple[int, int]]:
    """Return the spans of the text that are words of the query, compared by stem, in order. Adjoining spans are one."""
    wanted, spans = set(tokens(query, language=language)), list[tuple[int, int]]()
    for start, end, part in _parts(_without_masks(text)) if wanted else ():
        if wanted.isdisjoint(tokens(part, language=language)):
            continue
        if spans and start <= spans[-1][1]:
            start, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((start, end))
    return spans


def _parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what may be a keyword, with its place: pairs of CJK characters; else each word, and its parts in camel case."""
    for match in _WORD.finditer(text):
        start, end, word = match.start(), match.end(), match[0]
        humps = [start, *(start + hump.start() for hump in CAMEL_CASE.finditer(word)), end]
        if match["cjk"]:
            yield from ((at, min(at + 2, end), text[at : at + 2]) for at in range(start, max(start + 1, end - 1)))
        elif len(humps) == 2:
            yield start, end, word
        else:
            yield start, end, word.lower()
            yield from ((left, right, text[left:right]) for left, right in pairwise(humps))


def _without_masks(text: str) -> str:
    """Return the text with its masks blank, except for the digits of pseudonyms; every position stays the same."""
    if "[" not in text:
        return text
    return MASK.sub(lambda mask: f"{mask[2]}]".rjust(len(mask[0])) if mask[2] else " " * len(mask[0]), text)
