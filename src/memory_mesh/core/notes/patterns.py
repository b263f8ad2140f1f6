"""The patterns of `whenToUse`: alternatives, wildcards and plain language. No pattern can fail or take long."""

import re
from collections.abc import Callable, Iterable

from memory_mesh.core.search import tokens
from memory_mesh.core.search.languages import query_tokens

_WILDCARD = re.compile(r"(?:\.?\*)+")
# Words of plain-language patterns that say nothing about the task.
_FRAME = frozenset(tokens("when task tasks mention mentions implementing"))

Close = Callable[[str], bool]


def never_close(pattern: str) -> bool:
    """Return False: without an embedder no pattern is close to a task."""
    return False


def is_plain(pattern: str) -> bool:
    """Return whether a pattern is plain language: several words, without alternatives and wildcards."""
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
    return bool(plain) and (plain in text or _words_occur(plain, words) or (is_plain(plain) and close(pattern.strip())))


def _occurs(pattern: str, text: str) -> bool:
    """Return whether the literal parts of a pattern occur in a text in this order; `*` and `.*` are any text or none."""
    if not pattern:
        return False
    at = 0
    for part in _WILDCARD.split(pattern):
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return True


def _words_occur(pattern: str, words: frozenset[str]) -> bool:
    """Return whether all content words of a pattern occur, in any form; without content words nothing matches."""
    content = set(query_tokens(pattern)) - _FRAME
    return bool(content) and content <= words
