"""Versions of a statement: memories that say the same of the same subject except for a value. The newest of them comes first."""

from collections.abc import Collection, Sequence
from itertools import takewhile

from memory_mesh.core.model import MemoryType, Row
from memory_mesh.core.search.spelling import edits

_MIN_MISSPELT = 6  # letters; shorter words are often one letter from another word
_MIN_COMMON = 2  # keywords: a subject, and what is said of it


def versions(rows: Sequence[Row], query: Collection[str]) -> list[list[Row]]:
    """Return the groups of at least two versions among memories that contain the same words of a query, each newest first.

    Turns of a conversation and lessons are not versions of each other.
    """
    groups: list[list[Row]] = []
    for row in filter(_is_statement, rows):
        group = next((group for group in groups if _same_but_for_a_value(group[0], row, query)), None)
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    ordered = map(_newest_first, groups)
    return [group for group in ordered if len({str(row.fields.get("content")) for row in group}) > 1]


def _newest_first(group: Sequence[Row]) -> list[Row]:
    """Return the versions without what was derived from the newest one.

    A record that was derived from others of the group, such as a reflection, is as old as the newest of them.
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
    """Return whether two texts begin alike and differ at most in one stretch of words that adds no word of the query.

    At least half of the shorter text has to be common, small words included: "Ana is a citizen of France" and "Ana is famous for
    her songs" state different things of one subject.
    """
    if row.fields.get("status") != other.fields.get("status"):
        return False
    one, two = (_words(each, "keywords") for each in (row, other))
    start, end = _common(one, two)
    common, values = {*one[:start], *one[len(one) - end :]}, {*one[start : len(one) - end], *two[start : len(two) - end]}
    named = {word for word in (values - common).intersection(query) if not _is_misspelt(word, common)}
    if not start or start + end < _MIN_COMMON or named:
        return False
    one, two = (_words(each, "content") for each in (row, other))
    return 2 * sum(_common(one, two)) >= min(len(one), len(two))


def _is_misspelt(word: str, common: Collection[str]) -> bool:
    """Return whether a word of a value is also in the common part, with a typo there.

    "The univeristy of Ana is Yale University": a question about the university does not ask for this value.
    """
    return len(word) >= _MIN_MISSPELT and any(edits(word, other, 1) == 1 for other in common)


def _words(row: Row, field: str) -> list[str]:
    value = row.fields.get(field)
    return value.casefold().split() if isinstance(value, str) else [str(word) for word in value or ()]  # type: ignore[union-attr]


def _common(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return how many words are the same at the beginning, and how many of the rest at the end."""
    start = _same(one, other)
    return start, min(_same(one[::-1], other[::-1]), len(one) - start, len(other) - start)


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _age(row: Row) -> tuple[str, str, int, str]:
    """Return what versions are ordered by: the time of the event, else of creation; then as memories are listed."""
    return str(row.fields.get("event_time") or row.created_at), row.created_at, row.number, row.id
