"""Compare spellings: the edits between two words, and the stems that a misspelt ending hides."""

from memory_mesh.core.search.lexical import stemmer_of

_MIN_STEM, _MAX_LETTERS = 4, 24
_ENDING = 4  # letters in which one may be missing or wrong
_ENDING_LETTERS = "deginlty"  # of -ing, -ed, -ly and -tion


def edits(one: str, other: str, limit: int) -> int:
    """Return how many letters must be inserted, deleted, replaced or swapped with their neighbour; `limit` + 1 if more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    start = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    longer = max(len(one), len(other))
    if longer <= 1 or (longer == 2 and one == other[::-1]):
        return min(longer, 1)
    return min(_distance(one, other), limit + 1) if limit > 1 else limit + 1


def hidden_stems(word: str, *, language: str = "english") -> set[str]:
    """Return the stems of a word that a typo in its ending keeps from being stemmed: learn of "learnnig"."""
    size = len(word)
    if not (_MIN_STEM + 2 <= size <= _MAX_LETTERS and word.isascii() and word.isalpha()):
        return set()
    respelt = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, size - 1)]
    respelt += [word[:at] + word[at + 1 :] for at in range(1, size)]
    for at in range(size - _ENDING, size):
        before, behind = word[:at], (word[at:], word[at + 1 :])
        respelt += [before + letter + rest for rest in behind for letter in _ENDING_LETTERS]
    return {stem for stem in stemmer_of(language).stemWords(respelt) if _MIN_STEM <= len(stem) <= size - 2}


def _distance(one: str, other: str) -> int:
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for at, left in enumerate(one, start=1):
        earlier, before, row = before, row, [at, *row[1:]]
        for to, right in enumerate(other, start=1):
            row[to] = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (left != right))
            if at > 1 and to > 1 and left == other[to - 2] and one[at - 2] == right:
                row[to] = min(row[to], earlier[to - 2] + 1)
    return row[-1]
