"""The keywords of a table: the slots of each, and the words that a misspelt one may stand for.

A word of letters has a mark: a bit for each of its letters, and one for each pair of neighbours.
One edit changes at most six, so a comparison of marks leaves a few words whose letters are
compared.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from string import ascii_lowercase

import numpy as np

from memory_mesh.core.search.lexical import edits
from memory_mesh.index.arrays import Array, Columns, Flags, GrowingArray, Ints, hash64, places_in

_MAX_COUNT = 65535
MIN_LETTERS = 4  # of a word that may be misspelt
_LONG_WORD = 8  # of so many letters the first one may be wrong too
_MAX_LETTERS = 24
_MAX_BITS = 6
_MAX_SPANS = 5000
_HALF = 32
_BLOCK = 64  # code points, of which an alphabet fills one or a few


class Postings:
    """For each keyword the slots that contain it, ascending, and how often: sorted arrays for
    the base, lists for additions."""

    def __init__(self, base: Columns) -> None:
        self._keys, self._ends = base["word_keys"], base["word_ends"]
        self._slots, self._counts = base["word_slots"], base["word_times"]
        self._later: dict[str, tuple[array[int], array[int]]] = {}
        self._spans: dict[str, slice] = {}
        self.vocabulary = Vocabulary(base)

    def add(self, slots: Iterable[int], texts: Iterable[Sequence[str]]) -> None:
        """Add the words of new slots."""
        added: dict[str, list[int]] = defaultdict(list)  # by word; a slot comes as often as it does
        for slot, words in zip(slots, texts, strict=True):
            for word in words:
                added[word].append(slot)
        for word, places in added.items():
            lists = self._later.get(word)
            if lists is None:
                lists = self._later[word] = (array("i"), array("H"))
                self.vocabulary.add(word)
            counts = Counter(places) if len({*places}) < len(places) else None
            lists[0].extend(counts or places)
            lists[1].extend(
                [min(count, _MAX_COUNT) for count in counts.values()]
                if counts
                else [1] * len(places)
            )

    def of(self, word: str) -> tuple[Ints, Array]:
        """Return the slots that contain a word, dead ones included, and how often each does."""
        span = self._span(word)
        slots, counts = self._slots[span], self._counts[span]
        if (later := self._later.get(word)) is None:
            return slots, counts
        # Copied: an array.array cannot grow while numpy holds a view of it.
        return np.concatenate((slots, np.array(later[0], np.int32))), np.concatenate(
            (counts, np.array(later[1], np.uint16))
        )

    def _span(self, word: str) -> slice:
        """Return where the base has the slots of a word. Names and frequent words come back, so
        some are remembered."""
        if (span := self._spans.get(word)) is None:
            key, span = hash64(word), slice(0)
            # `np.searchsorted` takes twice as long.
            at = int(self._keys.searchsorted(np.uint64(key)))
            if at < len(self._keys) and int(self._keys[at]) == key:
                span = slice(int(self._ends[at - 1]) if at else 0, int(self._ends[at]))
            if len(self._spans) < _MAX_SPANS:
                self._spans[word] = span
        return span

    def packed(self, keep: Flags, new_slots: Array) -> dict[str, Array]:
        """Return all postings as a new base, without dead slots."""
        words = {hash64(word): word for word in self._later}
        later_keys = sorted(words)
        later = [self._later[words[key]] for key in later_keys]
        later_sizes = [len(slots) for slots, _ in later]
        keys = np.concatenate((
            self._keys.repeat(np.diff(self._ends, prepend=0)),
            np.array(later_keys, np.uint64).repeat(np.array(later_sizes, np.int64)),
        ))  # fmt: skip
        slots = np.concatenate(
            (self._slots, *(np.frombuffer(slots, np.int32) for slots, _ in later))
        )
        counts = np.concatenate(
            (self._counts, *(np.frombuffer(counts, np.uint16) for _, counts in later))
        )
        living = keep[slots].nonzero()[0]
        # Two sorted parts, which this sort merges.
        order = living[np.argsort(keys[living], kind="stable")]
        keys = keys[order]
        ends = np.flatnonzero(np.diff(keys, append=~keys[-1:])) + 1
        columns = {
            "word_keys": keys[ends - 1], "word_ends": ends, "word_slots": new_slots[slots[order]],
            "word_times": counts[order],
        }  # fmt: skip
        return columns | self.vocabulary.packed(self._keys, words, keys[ends - 1])


class Vocabulary:
    """The words of letters: those of the base as one text, later ones in a list."""

    def __init__(self, base: Columns) -> None:
        self._letters, self._lengths = (
            base["word_letters"],
            base["word_lengths"],
        )  # in the order of `word_keys`; 0: not of letters
        # Those of the base; None: no word has been looked up yet.
        self._sorted: _Words | None = None
        self._later: list[str] = []
        self._later_marks = GrowingArray(np.zeros(0, np.uint64))

    def add(self, word: str) -> None:
        """Add a word; it may be in the base already."""
        if _is_plain(word):
            self._later.append(word)

    def near(self, word: str) -> set[str]:
        """Return the words that are one edit away, if the edit is a likely typo."""
        if len(word) < MIN_LETTERS or not _is_plain(word):
            return set()
        mark = _mark(word)
        self._sorted = self._sorted or _Words(self._letters, self._lengths)
        near = {*self._sorted.near(mark, len(word)), *self._near_later(mark)}
        return {
            other for other in near if is_likely_typo(word, other) and edits(word, other, 1) == 1
        }

    def packed(self, keys: Array, later: Mapping[int, str], kept: Array) -> dict[str, Array]:
        """Return the words of the kept keys as a new base. `keys` are those of the old one."""
        text, ends = self._letters.tobytes().decode(), np.cumsum(self._lengths, dtype=np.int64)
        starts, places = (ends - self._lengths).tolist(), places_in(keys, kept)
        words = [
            text[starts[at] : ends[at]]
            if at < len(starts)
            else later[key]
            if _is_plain(later[key])
            else ""
            for at, key in zip(places.tolist(), kept.tolist(), strict=True)
        ]
        letters = np.frombuffer("".join(words).encode(), np.uint8)
        return {
            "word_letters": letters,
            "word_lengths": np.array([len(word) for word in words], np.uint8),
        }

    def _near_later(self, mark: np.uint64) -> Iterator[str]:
        if new := self._later[self._later_marks.size :]:
            self._later_marks.extend(_marks("".join(new), np.array([len(word) for word in new])))
        return (self._later[at] for at in _alike(self._later_marks.values, mark))


class _Words:
    """Words sorted by length."""

    def __init__(self, letters: Array, lengths: Array) -> None:
        self._text = letters.tobytes().decode()
        words = lengths.nonzero()[0]
        order = np.argsort(lengths[words], kind="stable")
        self._marks, self._lengths = (
            _marks(self._text, lengths[words])[order],
            lengths[words[order]],
        )
        self._starts = (np.cumsum(lengths, dtype=np.int64) - lengths)[words[order]].astype(np.int32)
        # By length: its first word.
        self._first = np.searchsorted(self._lengths, np.arange(_MAX_LETTERS + 4)).tolist()

    def near(self, mark: np.uint64, length: int) -> Iterator[str]:
        """Yield the words of about this length whose marks differ in a few bits."""
        first, end = self._first[length - 1], self._first[length + 2]
        alike = first + _alike(self._marks[first:end], mark)
        for start, size in zip(
            self._starts[alike].tolist(), self._lengths[alike].tolist(), strict=True
        ):
            yield self._text[start : start + size]


def is_likely_typo(word: str, other: str) -> bool:
    """Return whether one edit may be a typo. In a short word it mostly makes another word:
    mother, other; paint, print."""
    size, difference = len(word), len(other) - len(word)
    if size < _LONG_WORD and word[0] != other[0] and (difference or word[:2] != other[1::-1]):
        return False
    if size == MIN_LETTERS:
        return difference > 0
    return size > MIN_LETTERS + 1 or difference != 0 or sorted(word) == sorted(other)


def one_typo_away(word: str) -> set[str]:
    """Return every word of letters that is one edit away, if the edit is a likely typo; letters
    are those of its script."""
    if len(word) < MIN_LETTERS or not _is_plain(word):
        return set()
    blocks = {ord(letter) // _BLOCK for letter in word if not letter.isascii()}
    script = (chr(code) for block in blocks for code in range(block * _BLOCK, (block + 1) * _BLOCK))
    letters = {
        *ascii_lowercase,
        *(letter for letter in script if letter.isalpha() and letter == letter.casefold()),
    }
    parts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    near = {left + right[1:] for left, right in parts}
    near |= {left + right[1] + right[0] + right[2:] for left, right in parts if len(right) > 1}
    near |= {
        left + letter + rest
        for left, right in parts
        for letter in letters
        for rest in (right, right[1:])
    }
    return {other for other in near - {word} if _is_plain(other) and is_likely_typo(word, other)}


def _is_plain(word: str) -> bool:
    return len(word) <= _MAX_LETTERS and word.isalpha()


def _alike(marks: Array, mark: np.uint64) -> Ints:
    alike: Ints = (np.bitwise_count(marks ^ mark) <= _MAX_BITS).nonzero()[0]
    return alike


def _mark(word: str) -> np.uint64:
    """Return what `_marks` returns for one word, faster."""
    codes, mark = [ord(letter) for letter in word], 0
    for code in codes:
        mark |= 1 << code % _HALF
    for one, other in pairwise(codes):
        mark |= 1 << _HALF + (one * 5 + other) % _HALF
    return np.uint64(mark)


def _marks(text: str, lengths: Array | Sequence[int]) -> Array:
    """Return the mark of each of the words that a text joins."""
    codes = np.array([text]).view(np.uint32).astype(np.uint64)[: len(text)]
    ends = np.cumsum(lengths, dtype=np.int64)
    bits = np.uint64(1) << (codes % _HALF)
    pairs = np.uint64(1) << (_HALF + (codes[:-1] * 5 + codes[1:]) % _HALF)
    pairs[ends[:-1] - 1] = 0  # a pair of two words
    bits[:-1] |= pairs
    marks: Array = np.bitwise_or.reduceat(bits, ends - lengths) if len(ends) else bits
    return marks
