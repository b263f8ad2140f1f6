"""Present results: the piece that fits a query, the words to highlight, the order of versions."""

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple

from memory_mesh.core.model import MemoryType, Row, SearchResult
from memory_mesh.core.search.lexical import (
    CAMEL_CASE,
    CJK,
    EMOJI,
    MARKS,
    edits,
    keyword_scores,
    tokens,
)
from memory_mesh.core.text import MASK, LazyRegex

# --- the piece that fits ---

# Of the best BM25 among the pieces, compared with cosines; chosen on half of LoCoMo's
# conversations.
_WORDS_WEIGHT = 0.4


class Piece(NamedTuple):
    """A piece of a text, and the cosine of its vector and that of the query; 0 if one of them
    has none."""

    start: int
    end: int
    cosine: float = 0.0


def best_piece(text: str, pieces: Sequence[Piece], words: Sequence[str], *, language: str) -> Piece:
    """Return the piece that fits best, by the words of the query and by vectors; of equal pieces
    the first."""
    documents = (
        (str(piece.start), tokens(text[piece.start : piece.end], language=language))
        for piece in pieces
    )
    scores = dict(keyword_scores(documents, words))
    highest = max(scores.values(), default=1.0)
    return max(
        pieces,
        key=lambda piece: (
            _WORDS_WEIGHT * scores.get(str(piece.start), 0.0) / highest + piece.cosine
        ),
    )


def fitting(results: Sequence[SearchResult], max_chars: int) -> list[SearchResult]:
    """Return the first results whose texts have at most so many characters together."""
    totals = accumulate(len(result.excerpt) for result in results)
    return [result for result, total in zip(results, totals, strict=True) if total <= max_chars]


# --- highlighted words ---

# A run of CJK characters, a word or an emoji as in `lexical`. Accents may be separate characters:
# there the text is normalised first. Of an emoji, everything that it is joined with is marked.
_LETTERS = rf"(?:(?!{CJK.pattern})[^\W_]|[{MARKS}])+"
_JOINED = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u2640\u2642]"
_WORD = LazyRegex(
    rf"(?P<cjk>{CJK.pattern})|{_LETTERS}(?:['’]{_LETTERS})*(?:\+\+|#(?!\w))?"
    rf"|(?:{EMOJI})(?:{_JOINED}|\u200d(?:{EMOJI}|{_JOINED}))*"
)


def marked(text: str, query: str, *, language: str = "english") -> list[tuple[int, int]]:
    """Return the spans of the text that are words of the query, compared by stem, in order.
    Adjoining spans are one."""
    wanted, spans = set(tokens(query, language=language)), list[tuple[int, int]]()
    for start, end, part in _parts(_without_masks(text)) if wanted else ():
        if wanted.isdisjoint(tokens(part, language=language)):
            continue
        if spans and start <= spans[-1][1]:
            start, end = spans[-1][0], max(end, spans.pop()[1])
        spans.append((start, end))
    return spans


def _parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what may be a keyword, with its place: pairs of CJK characters; else each word, and
    its parts in camel case."""
    for match in _WORD.finditer(text):
        start, end, word = match.start(), match.end(), match[0]
        humps = [start, *(start + hump.start() for hump in CAMEL_CASE.finditer(word)), end]
        if match["cjk"]:
            yield from (
                (at, min(at + 2, end), text[at : at + 2])
                for at in range(start, max(start + 1, end - 1))
            )
        elif len(humps) == 2:
            yield start, end, word
        else:
            yield start, end, word.lower()
            yield from ((left, right, text[left:right]) for left, right in pairwise(humps))


def _without_masks(text: str) -> str:
    """Return the text with its masks blank, except for the digits of pseudonyms; every position
    stays the same."""
    if "[" not in text:
        return text
    return MASK.sub(
        lambda mask: f"{mask[2]}]".rjust(len(mask[0])) if mask[2] else " " * len(mask[0]), text
    )


# --- versions of a statement ---
# Memories that say the same of the same subject except for a value; the newest of them comes first.

_MIN_MISSPELT = 6  # letters; shorter words are often one letter from another word
_MIN_COMMON = 2  # keywords: a subject, and what is said of it


def versions(rows: Sequence[Row], query: Collection[str]) -> list[list[Row]]:
    """Return the groups of at least two versions among memories that contain the same words of a
    query, each newest first.

    Turns of a conversation and lessons are not versions of each other.
    """
    groups: list[list[Row]] = []
    for row in filter(_is_statement, rows):
        group = next(
            (group for group in groups if _same_but_for_a_value(group[0], row, query)), None
        )
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    ordered = map(_newest_first, groups)
    return [
        group for group in ordered if len({str(row.fields.get("content")) for row in group}) > 1
    ]


def _newest_first(group: Sequence[Row]) -> list[Row]:
    """Return the versions without what was derived from the newest one.

    A record that was derived from others of the group, such as a reflection, is as old as the
    newest of them.
    """
    ages = {row.id: _age(row) for row in group}

    def age(row: Row) -> tuple[tuple[str, str, int, str], bool]:
        known = [ages[id_] for id_ in _words(row, "sources") if id_ in ages]
        return max(known, default=ages[row.id]), not known

    newest, *others = sorted(group, key=age, reverse=True)
    return [newest, *(row for row in others if newest.id not in _words(row, "sources"))]


def _is_statement(row: Row) -> bool:
    fields = row.fields
    is_turn = fields.get("speaker") is not None or fields.get("turn") is not None
    return not is_turn and fields.get("memory_type") != MemoryType.LESSON


def _same_but_for_a_value(row: Row, other: Row, query: Collection[str]) -> bool:
    """Return whether two texts begin alike and differ at most in one stretch of words that adds no
    word of the query.

    At least half of the shorter text has to be common, small words included: "Ana is a citizen of
    France" and "Ana is famous for her songs" state different things of one subject.
    """
    if row.fields.get("status") != other.fields.get("status"):
        return False
    one, two = (_words(each, "keywords") for each in (row, other))
    start, end = _common(one, two)
    common, values = (
        {*one[:start], *one[len(one) - end :]},
        {*one[start : len(one) - end], *two[start : len(two) - end]},
    )
    named = {
        word for word in (values - common).intersection(query) if not _is_misspelt(word, common)
    }
    if not start or start + end < _MIN_COMMON or named:
        return False
    one, two = (_words(each, "content") for each in (row, other))
    return 2 * sum(_common(one, two)) >= min(len(one), len(two))


def _is_misspelt(word: str, common: Collection[str]) -> bool:
    """Return whether a word of a value is also in the common part, with a typo there.

    "The univeristy of Ana is Yale University": a question about the university does not ask for
    this value.
    """
    return len(word) >= _MIN_MISSPELT and any(edits(word, other, 1) == 1 for other in common)


def _words(row: Row, field: str) -> list[str]:
    value = row.fields.get(field)
    return (
        value.casefold().split() if isinstance(value, str) else [str(word) for word in value or ()]  # type: ignore[union-attr]
    )


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return how many words are the same at the beginning, and how many of the rest at the end."""
    start = _same(one, other)
    return start, min(_same(one[::-1], other[::-1]), len(one) - start, len(other) - start)


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _age(row: Row) -> tuple[str, str, int, str]:
    """Return what versions are ordered by: the time of the event, else of creation; then as
    memories are listed."""
    return str(row.fields.get("event_time") or row.created_at), row.created_at, row.number, row.id
