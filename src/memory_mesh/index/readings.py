"""What the words of a query stand for among the memories that a reader sees."""

from collections.abc import Iterable, Mapping, Sequence

from memory_mesh.index.table import Table
from memory_mesh.index.view import View

CORRECTED = 0.8  # the weight of a word that is one edit away from the word of the query


def find_corrections(unknown: Iterable[str], views: Sequence[tuple[Table, View]]) -> dict[str, str]:
    """Return the most frequent of the readable memories' words that each misspelt word may stand for."""
    corrections: dict[str, str] = {}
    for word in unknown:
        near = {other for table, _ in views for other in table.vocabulary.near(word)}
        counts = {other: sum(view.count(other) for _, view in views) for other in near}
        if found := [(count, other) for other, count in counts.items() if count]:
            corrections[word] = max(found)[1]
    return corrections


def with_corrections(words: Mapping[str, float], corrections: Mapping[str, str]) -> dict[str, float]:
    """Replace the misspelt words of a query, given with their counts; a correction counts less than a word."""
    right = {corrections[word]: CORRECTED * count for word, count in words.items() if word in corrections}
    return dict(sorted((right | {word: count for word, count in words.items() if word not in corrections}).items()))
