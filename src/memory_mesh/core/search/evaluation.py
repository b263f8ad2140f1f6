"""Evaluation of a user's own store: its questions, its figures and its report."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from math import ceil, sqrt

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.search.lexical import tokens
from memory_mesh.core.text import LazyRegex, ShortRepr, split_sentences

# --- figures and report ---

# Who wrote a question. One by rules consists of words of its memory.
GIVEN, MODEL, RULES = "given", "model", "rules"
# Of an older and a newer statement: a given question names the older one as outdated, a link or a
# supersession says that it is, or the judge of changes finds it possible.
KNOWN, POSSIBLE = "known", "possible"
CUTS = (1, 5, 10)
MAX_IDS = 5  # of a finding
FEW = 30  # with fewer questions a figure is too uncertain to conclude from
_Z = 1.96  # of a 95 % interval
_DRAWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the memories that answer it, by id or text. Without any, the right answer
    is nothing."""

    text: str
    expected: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()  # outdated memories, which must not stand above the expected ones
    kind: str = GIVEN  # the type of the memory that it was made from
    source: str = GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A question, the rank of each expected memory among the results, and how many results a
    precise search has."""

    question: Question
    ranks: tuple[int | None, ...] = ()  # from 1; None: not among the first ten
    precise: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How well questions find the memories that answer them. A figure is None without questions."""

    questions: int
    # By cut: the mean fraction of the expected memories among the first 1, 5 and 10.
    recall: Mapping[int, float | None]
    mrr: float | None  # the mean of 1 ÷ the rank of the first right answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """How many questions about nothing that is stored are answered by nothing, in precise mode.

    `control` is the fraction of the other questions that precise mode answers by something. Without
    a control above 0 an empty answer proves nothing, and the fraction is None.
    """

    questions: int
    fraction: float | None
    control: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An older statement and the newer one that changed it, and whether a question found the
    older one above, or without, the newer one."""

    newer: str
    older: str
    kind: str  # given, known or possible
    question: str
    is_stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The same questions with another setting: the mean difference of the reciprocal ranks, with
    its 95 % interval by a paired bootstrap."""

    setting: str
    questions: int
    difference: float
    interval: tuple[float, float]

    @property
    def is_better(self) -> bool:
        """Return whether the other setting is better by more than chance."""
        return self.questions >= FEW and self.interval[0] > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check of the hygiene of a store: how many of the checked are wrong, and what to do."""

    name: str
    count: int
    of: int  # how many were checked
    ids: tuple[str, ...] = ()  # the first of them
    remedy: str = ""  # if there are any
    fails: bool = False  # makes the evaluation fail
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(ShortRepr):
    """The result of an evaluation."""

    memories: int  # active ones that the reader sees
    made: bool  # the questions were made from the memories
    retrieval: Retrieval  # of given questions, or of those that the language model wrote
    # Of questions by rules, which are the words of their memory: an upper bound, not recall.
    own_words: Retrieval
    by_kind: Mapping[str, Retrieval]  # of `retrieval`
    nothing: Nothing
    median_ms: float | None
    p95_ms: float | None
    pairs: Sequence[Pair]
    compared: Sequence[Comparison]  # other settings, on the questions of `retrieval`
    hygiene: Sequence[Finding]
    answered: Sequence[Answered] = field(default=(), repr=False)
    by_model: int = 0  # questions that a language model wrote
    dropped: int = 0  # others that it wrote, in words of their memory
    note: str = ""  # why it wrote no more

    @property
    def failures(self) -> list[str]:
        """Return what makes the evaluation fail, whatever the thresholds."""
        return [f"{one.name}: {one.count}" for one in self.hygiene if one.fails and one.count]


def retrieval(answered: Sequence[Answered]) -> Retrieval:
    """Return the figures of the questions that expect a memory."""
    asked = [one for one in answered if one.question.expected]
    recall = {cut: _mean([_found(one, cut) for one in asked]) for cut in CUTS}
    mrr = _mean([reciprocal(one.ranks) for one in asked])
    return Retrieval(questions=len(asked), recall=recall, mrr=mrr)


def reciprocal(ranks: Iterable[int | None]) -> float:
    """Return 1 ÷ the best of these ranks, or 0 if there is none."""
    return max((1 / rank for rank in ranks if rank), default=0.0)


def interval(value: float | None, count: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a fraction of so many questions, by Wilson's score. A mean of
    values from 0 to 1 varies no more than a fraction does, so it holds for that, too."""
    if value is None or not count:
        return None
    share = _Z * _Z / count
    centre, wide = value + share / 2, _Z * sqrt(value * (1 - value) / count + share / count / 4)
    low, high = (centre - wide) / (1 + share), (centre + wide) / (1 + share)
    return max(0.0, low), min(1.0, high)


def compare(setting: str, differences: Sequence[float]) -> Comparison:
    """Return the mean of paired differences with the interval that resampling them gives."""
    import numpy as np

    values, counts = np.unique(differences, return_counts=True)
    total = len(differences)
    draws = np.random.default_rng(0).multinomial(total, counts / total, _DRAWS) @ values / total
    low, high = np.percentile(draws, [2.5, 97.5]).tolist()
    mean = sum(differences) / total
    return Comparison(setting=setting, questions=total, difference=mean, interval=(low, high))


def stale(pairs: Iterable[Pair], kind: str) -> tuple[int, int]:
    """Return how many pairs of a kind have the older statement above, and how many there are."""
    found = [pair.is_stale for pair in pairs if pair.kind == kind]
    return sum(found), len(found)


def nothing(answered: Sequence[Answered]) -> Nothing:
    """Return the figures of the questions that expect nothing, with those of the others as a
    control."""
    control = _mean([float(one.precise > 0) for one in answered if one.question.expected])
    asked = [one for one in answered if not one.question.expected]
    fraction = _mean([float(one.precise == 0) for one in asked])
    return Nothing(questions=len(asked), fraction=fraction if control else None, control=control)


def latency(answered: Sequence[Answered]) -> tuple[float | None, float | None]:
    """Return the median and the 95th percentile of the times, each the time of a search that was
    made."""
    times = sorted(one.ms for one in answered)
    if not times:
        return None, None
    return times[ceil(len(times) * 0.5) - 1], times[ceil(len(times) * 0.95) - 1]


def _found(one: Answered, cut: int) -> float:
    return sum(rank is not None and rank <= cut for rank in one.ranks) / len(one.question.expected)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# --- questions ---
# They are read from lines of JSON, made from memories, or about things that no memory mentions. A
# made question is one sentence of a memory without the part that it asks for (a time, a name, or
# the last word) and without some of its other words. The same text and the same seed give the same
# question: nothing here is random.

_EXPECTED = '{"question": "…", "expect": ["an id or a text"]} or {"question": "…", "nothing": true}'
_KEYS = frozenset({"question", "expect", "stale", "nothing"})
_MAX_QUESTION, _MAX_SENTENCES, _MAX_CHARS = 2_000, 50, 20_000
_MIN_KEYWORDS = 2  # of a question: one word is in too many memories
_DROPPED = 4  # one word in so many is left out

_WORD = LazyRegex(r"\S+")
_TIME = LazyRegex(
    r"\s*\b(?:(?:on|at|in|by|since|until|from|every|before|after)\s+)?(?:the\s+)?"
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:january|february|march|april|june|july|"
    r"august|september|october|november|december)(?:\s+\d{1,2}(?:st|nd|rd|th)?)?(?:,?\s+(?:19|"
    r"20)\d\d)?|\d{4}-\d\d-\d\d|(?:19|20)\d\d"
    r"|\d{1,2}:\d\d(?:\s?[ap]m)?|\d{1,2}\s?[ap]m|noon|midnight)\b",
    re.IGNORECASE,
)
_NAME = LazyRegex(r"(?:[^\W\d_][^\W\d_'’]*\s)?[^\W\d_]+(?=\s)")
# Invented names, and things that few people write down. Those that a store does mention are left
# out.
_NAMES = (
    "Quillon Vasterbeek",
    "Ysaline Thorsgaard",
    "Bertrandus Okwuosa",
    "Zephyrine Halloway",
    "Ignatz Wolkenrath",
)
_THINGS = ("harpsichord", "bathyscaphe", "astrolabe", "samovar", "falconry glove", "sedan chair")
_FRAMES = (
    "Who tunes the {thing} of {name}?", "When does {name} collect the {thing}?",
    "What did {name} pay for the {thing}?", "Where does {name} keep the {thing}?",
)  # fmt: skip


def read_questions(lines: Iterable[str]) -> list[Question]:
    """Return the questions of lines of JSON. Raise `InvalidInput` with the number of the first
    line that is not one."""
    found = [
        _read(line, number)
        for number, line in enumerate(lines, start=1)
        if not isinstance(line, str) or line.strip()
    ]
    if not found:
        raise InvalidInput("the file has no questions", expected=_EXPECTED)
    return found


def _read(line: object, number: int) -> Question:
    if not isinstance(line, str):
        raise _invalid(number, "is not text")
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise _invalid(number, f"is not valid JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        raise _invalid(number, "has a number that is too long, or too many levels") from None
    if not isinstance(value, dict):
        raise _invalid(number, "is not a JSON object")
    if unknown := sorted(value.keys() - _KEYS):
        raise _invalid(number, f"has the unknown key {shown(unknown[0], max_length=40)}")
    text, nothing = value.get("question"), value.get("nothing", False)
    if not isinstance(text, str) or not text.strip() or len(text) > _MAX_QUESTION:
        raise _invalid(number, f"needs a question, a text of at most {_MAX_QUESTION:,} characters")
    expected, stale = _texts(value.get("expect")), _texts(value.get("stale"))
    if expected is None or not isinstance(nothing, bool) or bool(expected) == nothing:
        raise _invalid(number, "needs either expect, a list of ids or texts, or nothing: true")
    if stale is None or (stale and not expected):
        raise _invalid(number, "needs stale, a list of ids or texts, together with expect")
    return Question(text=text, expected=expected, stale=stale)


def _texts(given: object) -> tuple[str, ...] | None:
    """Return a text or a list of texts without repeats; None for another value."""
    texts = [given] if isinstance(given, str) else given or []
    if not isinstance(texts, list) or not all(
        isinstance(one, str) and one.strip() for one in texts
    ):
        return None
    return tuple(dict.fromkeys(texts))


def _invalid(number: int, what: str) -> InvalidInput:
    return InvalidInput(f"line {number} of the questions {what}", expected=_EXPECTED)


# --- made from memories ---


def order(seed: int, text: str) -> int:
    """Return the place of a text in the order of a seed. It decides what is sampled and dropped."""
    return int.from_bytes(sha256(f"{seed}:{text}".encode("utf-8", "surrogatepass")).digest()[:8])


def make_question(text: str, seed: int) -> str | None:
    """Return a question that one sentence of a text answers, or None if no sentence has enough
    words."""
    sentences = [
        one.strip(" .!?;:")
        for one, _ in zip(split_sentences(text[:_MAX_CHARS]), range(_MAX_SENTENCES), strict=False)
    ]
    for sentence in sorted(sentences, key=lambda one: order(seed, one)):
        word, rest = _without_answer(sentence)
        kept = _dropped(rest, seed)
        if sum(map(_is_keyword, kept)) >= _MIN_KEYWORDS:
            return (
                f"{word} {_lowered(kept[0])}{' '.join(['', *kept[1:]])}"[
                    : _MAX_QUESTION - 1
                ].rstrip(" .,;:!?")
                + "?"
            )
    return None


def _without_answer(sentence: str) -> tuple[str, list[str]]:
    """Return the word to ask with, and the words of a sentence without the part that it asks
    for."""
    if time := _TIME.search(sentence):
        return "When", _words(sentence[: time.start()] + sentence[time.end() :])
    name = _NAME.match(sentence)
    if (
        name
        and len(parts := name.group().split()) == 2
        and all(part.istitle() and _is_keyword(part) for part in parts)
    ):
        return "Who", _words(sentence[name.end() :])
    words = _words(sentence)
    last = max((at for at, word in enumerate(words) if _is_keyword(word)), default=len(words))
    return "What", words[:last]


def _dropped(words: list[str], seed: int) -> list[str]:
    """Return the words without one keyword in four, and without small words at the end."""
    keywords = sorted(
        (at for at, word in enumerate(words) if _is_keyword(word)),
        key=lambda at: order(seed, words[at]),
    )
    dropped = set(keywords[: len(keywords) // _DROPPED])
    kept = [word for at, word in enumerate(words) if at not in dropped]
    while kept and not _is_keyword(kept[-1]):
        kept.pop()
    return kept


def _words(text: str) -> list[str]:
    return [match.group().strip(".,;:!?\"'“”()[]") for match in _WORD.finditer(text)]


def _lowered(word: str) -> str:
    """Return the first word of a sentence as it stands within one: small words are lower case
    there."""
    return word if _is_keyword(word) else word.lower()


def _is_keyword(word: str) -> bool:
    return bool(tokens(word))


# --- about nothing that is stored ---


def subjects() -> frozenset[str]:
    """Return the keywords of all names and things that questions about nothing are made of."""
    return frozenset(token for text in (*_NAMES, *_THINGS) for token in tokens(text))


def absent_questions(known: Collection[str], seed: int, count: int) -> list[Question]:
    """Return questions about names and things of which no keyword is among those that the
    memories contain."""
    made = sorted(_absent(known), key=lambda text: order(seed, text))
    return [Question(text=text, kind="nothing") for text in made[:count]]


def _absent(known: Collection[str]) -> Iterator[str]:
    for frame, name, thing in product(_FRAMES, _NAMES, _THINGS):
        if not any(token in known for token in tokens(f"{name} {thing}")):
            yield frame.format(name=name, thing=thing)
