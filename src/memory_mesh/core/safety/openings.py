"""What the matches of a list of words open with: a text is searched for a list only where one of its openings stands.

An opening is the start of a word, or a letter of another alphabet. It is read from the regular expression of the list: letters,
groups, classes and optional parts. Any other part yields `ANYWHERE`: the whole text is searched.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping

ANYWHERE = ""
_LENGTH = 4  # characters of a word
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_CLASS = r"\[(?:\\.|[^\]\\])*\]"
_ATOM = re.compile(rf"\\.|{_CLASS}|.")
_PLAIN = re.compile(rf"(?:\\.|{_CLASS}|[^()|])+")
_REPEAT = re.compile(r"[?*+]|\{\d+,\d+\}|")
_ESCAPED = re.compile(r"\\(\W)")
_OPERATORS = frozenset(".^$*+?{}()[]|")
_PLAIN_WORD = re.compile(rf"[a-z0-9]{{{_LENGTH}}}(?![?*+{{])")


class Openings:
    """The openings of several lists, by name. An unbounded list may match within a word, so it has no words as openings."""

    def __init__(self, lists: Mapping[str, str], *, unbounded: Collection[str] = ()) -> None:
        found = {name: openings(pattern) for name, pattern in lists.items()}
        found |= {name: frozenset({ANYWHERE}) for name in unbounded if any(map(str.isascii, found[name]))}
        self.anywhere = frozenset(name for name in found if ANYWHERE in found[name])
        self._lists: defaultdict[str, list[str]] = defaultdict(list)  # with each opening
        for name in found.keys() - self.anywhere:
            for opening in found[name]:
                self._lists[opening].append(name)
        others = "".join(sorted(char for char in self._lists if not char.isascii()))
        self._regex = re.compile(rf"([a-z0-9]{{1,{_LENGTH}}})[a-z0-9]*|([{others}0])")

    def places(self, text: str) -> Mapping[str, list[list[int]]]:
        """Return where each list may match in a text: the places of each of its openings, in order."""
        found: dict[str, list[int]] = {}
        for match in self._regex.finditer(text):
            if (opening := match[match.lastindex or 0]) in self._lists:
                found.setdefault(opening, []).append(match.start())
        places: defaultdict[str, list[list[int]]] = defaultdict(list)
        for opening, starts in found.items():
            for name in self._lists[opening]:
                places[name].append(starts)
        return places


def openings(pattern: str) -> frozenset[str]:
    """Return the openings of a regular expression that matches whole words."""
    reader = _Reader(pattern)
    found = reader.read({""}) | reader.found
    return frozenset({ANYWHERE} if ANYWHERE in found else found)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        self.found: set[str] = set()  # openings that are complete

    def read(self, begun: set[str]) -> set[str]:
        """Read branches to the end of their group. Return the words that have begun there or before, and may continue."""
        ended, words = set[str](), begun
        while self._at < len(self._pattern) and not self._take(")"):
            if self._take("|"):
                ended, words = ended | words, begun
            elif words == {""} and (end := self._end_of(_PLAIN_WORD)) > self._at:  # most branches
                self.found.add(self._pattern[self._at : end])
                words, self._at = set(), end
            elif words:
                words = self._read_part(words)
            elif self._take("("):
                self.read(words)
            else:  # every word of this branch is complete
                self._at = self._end_of(_PLAIN)
        return ended | words

    def _read_part(self, begun: set[str]) -> set[str]:
        """Read a group, a class or a character, with its repeat."""
        words = self.read(begun) if self._take("(?:") else self._read_characters(begun)
        sign = self._pattern[self._at : self._end_of(_REPEAT)]
        self._at += len(sign)
        if sign not in ("", "?") and words:  # words may continue with more of the same
            self.found.add(ANYWHERE)
        return words | begun if sign in ("?", "*") or sign.startswith("{0,") else words

    def _read_characters(self, begun: set[str]) -> set[str]:
        atom = self._pattern[self._at : self._end_of(_ATOM)]
        self._at += len(atom)
        characters = _ESCAPED.sub(r"\1", atom[1:-1] if atom.startswith("[") else atom)
        if atom in _OPERATORS or characters.startswith("^") or "\\" in characters or "-" in characters[1:-1]:
            self.found.add(ANYWHERE)
            return set()
        others = {char if char.isalpha() else ANYWHERE for char in characters if char not in _LETTERS}
        self.found |= {word or char for word in begun for char in others}
        words = {word + char for word in begun for char in characters if char in _LETTERS}
        self.found |= {word for word in words if len(word) == _LENGTH}
        return {word for word in words if len(word) < _LENGTH}

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._pattern, self._at)
        return found.end() if found else self._at

    def _take(self, sign: str) -> bool:
        taken = self._pattern.startswith(sign, self._at)
        self._at += len(sign) if taken else 0
        return taken
