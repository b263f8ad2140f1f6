"""Read what is packaged as data: word lists, regular expressions, and the weights of linear models.

The file `data/<module>.toml` beside a module has its lists and expressions. An entry is `name =
'''text'''`; `{{other}}` in its text stands for the entry `other`. Line breaks in an expression
do not count, nor do the blanks after them. The files are TOML, but importing `tomllib` takes a
quarter of the time of the first redaction, so they are split here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp

from memory_mesh.core.text import LazyRegex

# --- lists and expressions ---

_REFERENCE = LazyRegex(r"\{\{(\w+)\}\}")


def read_data(package: str, name: str) -> str:
    """Return the text of a file in the folder `data` of a package."""
    from pkgutil import get_data  # `importlib.resources` takes 20 ms to load

    return (get_data(package, f"data/{name}") or b"").decode()


@cache
def read_entries(module: str) -> Mapping[str, str]:
    """Return the entries of a module's data file."""
    package, _, name = module.rpartition(".")
    pieces = read_data(package, f"{name}.toml").split("'''")
    names = (before.rpartition("\n")[2].removesuffix(" = ") for before in pieces[::2])
    return dict(zip(names, pieces[1::2], strict=False))


class _Entries:
    """The entries of a module's data file as attributes, each read on first use."""

    def __init__(self, module: str) -> None:
        self._module = module

    def _text(self, name: str) -> str:
        entries = read_entries(self._module)
        if name not in entries:
            raise AttributeError(f"the data file of {self._module} has no entry {name!r}")
        text = entries[name].rstrip("\n")
        return _REFERENCE.sub(lambda part: self._text(part[1]), text) if "{{" in text else text


def _joined(text: str) -> str:
    """Return the lines of a text as one, without their indentation."""
    first, *more = text.split("\n")
    return "".join([first, *(line.lstrip(" ") for line in more)])


class Expressions(_Entries):
    """Regular expressions, each compiled on first use."""

    def __getattr__(self, name: str) -> LazyRegex:
        regex = self.__dict__[name] = LazyRegex(_joined(self._text(name)))
        return regex


class Phrases(_Entries):
    """Expressions for phrases, as `phrases` returns them."""

    def __init__(self, module: str, *, start: bool = False) -> None:
        super().__init__(module)
        self._start = start

    def __getattr__(self, name: str) -> LazyRegex:
        text = _joined(self._text(name).replace(" /\n", " / \n"))
        regex = self.__dict__[name] = phrases(text, start=self._start)
        return regex


def phrases(*alternatives: str, start: bool = False) -> LazyRegex:
    """Return a pattern of the phrases that ` / ` separates, in any case; `start` only finds them
    at the beginning."""
    each = [phrase.strip() for text in alternatives for phrase in text.split(" / ")]
    source = "|".join(filter(None, each)).replace("(", "(?:").replace("(?:?", "(?")
    before = "^" if start else r"(?<![\w-])"
    return LazyRegex(f"(?i){before}(?:{source})(?!\\w)")


class WordSets(_Entries):
    """Lists of words, without order."""

    def __getattr__(self, name: str) -> frozenset[str]:
        words = self.__dict__[name] = frozenset(self._text(name).split())
        return words


class WordLists(_Entries):
    """Lists of words and phrases in their order; an underscore stands for a blank."""

    def __getattr__(self, name: str) -> tuple[str, ...]:
        words = self.__dict__[name] = tuple(
            word.replace("_", " ") for word in self._text(name).split()
        )
        return words


class Tables(_Entries):
    """Tables, with three blanks between the columns of a row. A line that is indented further
    continues its row."""

    def __getattr__(self, name: str) -> list[list[str]]:
        text = self._text(name).replace("\n        ", "   ")
        return [row.strip().split("   ") for row in text.strip().splitlines()]


# --- linear models ---

NONE = "none"
VECTOR_SCALE = 20**0.5  # makes the numbers of a vector as large as the other features

Vector = Callable[[str], Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of each feature and of each number of the vector, by class, and the lowest
    chance to keep a text."""

    features: Mapping[str, Sequence[float]]
    vector: Sequence[Sequence[float]] = ()
    limit: float

    def chances(
        self, classes: Sequence[str], values: Mapping[str, float], vector: Sequence[float] = ()
    ) -> dict[str, float]:
        """Return how likely each class is."""
        sums = [0.0] * len(classes)
        for name, value in values.items():
            for at, weight in enumerate(self.features.get(name, ())):
                sums[at] += value * weight
        for value, row in zip(vector, self.vector, strict=False):
            for at, weight in enumerate(row):
                sums[at] += VECTOR_SCALE * value * weight
        top = max(sums)
        powers = [exp(each - top) for each in sums]
        total = sum(powers)
        return dict(zip(classes, (each / total for each in powers), strict=True))


def read_weights(package: str) -> tuple[str, dict[str, Weights]]:
    """Return the model whose vectors the weights of a package are for, and its tables: with the
    vectors, and `plain`."""
    import json  # redaction needs no weights

    data = json.loads(read_data(package, "weights.json"))
    return data["model"], {name: Weights(**data[name]) for name in ("vectors", "plain")}
