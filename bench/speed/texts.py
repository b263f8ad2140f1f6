"""Generate conversations: varied sentences, the same in every run.

Words are made of syllables and drawn by Zipf's law, so that a few are in many texts and most are
rare, as in speech.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from random import Random
from typing import Any

SEED = 11
TURNS = 20  # of a session, on average
_WORDS = 6000
_HEAD = 20  # then the most frequent word, function words aside, is in about every twelfth text
_SHORTEST, _LONGEST = 8, 30
_START = datetime(2025, 1, 6, 9, tzinfo=UTC)

# A tokenizer drops most of these, but has to read them first.
_FUNCTION_WORDS = """the of and to a in is that it for was on with as at by this we from or an be
    are but not have had they you which
    she his her one all there would their when who will if about up out them then into some could so
    what were has more can
    """.split()  # noqa: SIM905  (a list of words reads best as words)
_NAMES = """Mara Tobias Ines Piotr Lena Omar Yuki Selma Bruno Nadia Felix Ada Ravi Greta Hugo Mila
    Jonas Zeynep Pablo Freya Anton Leila Mateo Signe Karim Elin Marco Tessa Viktor Amara Oskar Noor
    Dario Hanna Lucien Petra Samir Edda Goran Thea
    """.split()  # noqa: SIM905
_ONSETS = "b c d f g h j l m n p r s t v w br ch cl dr fl gr pl pr sh sl st tr".split()  # noqa: SIM905
_VOWELS = "a e i o u ai ea ee ou".split()  # noqa: SIM905
_CODAS = ["", "", "", "", "", "", "n", "r", "l", "s", "t", "nd", "rk", "m"]
_MARKS = "....?!"


@dataclass(frozen=True, slots=True)
class Item:
    """A turn of a conversation: the text and metadata of a memory."""

    text: str
    metadata: dict[str, Any]


class Conversations:
    """An endless sequence of conversations; the same seed gives the same texts."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = Random(seed)  # noqa: S311  (it must be reproducible)
        self._words = _vocabulary(self._random)
        self._zipf = list(accumulate(1 / (rank + _HEAD) for rank in range(len(self._words))))

    def items(self, count: int) -> list[Item]:
        """Return the first `count` turns."""
        return [*islice(self.turns(), count)]

    def queries(self, items: Sequence[Item], count: int) -> list[str]:
        """Return queries, each with a few less frequent words of one turn in their order."""
        return [self._query(self._random.choice(items).text) for _ in range(count)]

    def turns(self) -> Iterator[Item]:
        """Yield turn after turn."""
        at, session = _START, 0
        while True:
            session += 1
            at += timedelta(minutes=self._random.randint(20, 600))
            speakers = self._random.sample(_NAMES, 2)
            for turn in range(self._random.randint(TURNS - 8, TURNS + 8)):
                at += timedelta(seconds=self._random.randint(5, 90))
                metadata = {
                    "session_id": f"s{session:07}",
                    "speaker": speakers[turn % 2],
                    "turn": turn,
                    "event_time": at.isoformat(),
                }
                yield Item(self._sentence(), metadata)

    def _sentence(self) -> str:
        length = self._random.randint(_SHORTEST, _LONGEST)
        words = [self._word(chance) for chance in (self._random.random() for _ in range(length))]
        return words[0].title() + " " + " ".join(words[1:]) + self._random.choice(_MARKS)

    def _word(self, chance: float) -> str:
        if chance < 0.45:
            return self._random.choice(_FUNCTION_WORDS)
        if chance < 0.49:
            return self._random.choice(_NAMES)
        if chance < 0.52:
            return str(self._random.randint(2, 2000))
        return self._random.choices(self._words, cum_weights=self._zipf)[0]

    def _query(self, text: str) -> str:
        words = [
            word for word in text.rstrip(_MARKS).split() if word.lower() not in _FUNCTION_WORDS
        ]
        places = sorted(
            self._random.sample(range(len(words)), min(len(words), self._random.randint(3, 6)))
        )
        return "what about " + " ".join(words[place] for place in places)


def _vocabulary(random: Random) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        syllables = random.choice((1, 2, 2, 2, 2, 3))
        parts = (
            random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS)
            for _ in range(syllables)
        )
        words["".join(parts)] = None
    return [word for word in words if len(word) > 2]
