"""Tell which of the ten types a text is, or that it is none: a linear model over cues, words and what the text answers.

The weights are packaged data, learnt by `python -m bench.capture.train` from labelled pieces of transcripts. They are the same in
every run, so the same transcript gives the same memories.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import exp, sqrt

from memory_mesh.core.capture.cues import CUES
from memory_mesh.core.capture.phrases import normalized, phrases
from memory_mesh.core.text import LazyRegex

NONE = "none"
CLASSES = (NONE, *CUES)
_MAX_STRONG_AND_WEAK = 3
_CONTEXT_LENGTH = 3  # characters at the end of a message that show whether it asks


def type_chances(
    text: str, *, role: str, answered: str = "", weights: Mapping[str, Sequence[float]] | None = None
) -> dict[str, float]:
    """Return how likely a text is of each type, and of none. `answered` is the message of the assistant that it answers."""
    table = _weights() if weights is None else weights
    sums = [0.0] * len(CLASSES)
    for name, value in features(text, role=role, answered=answered).items():
        for at, weight in enumerate(table.get(name, ())):
            sums[at] += value * weight
    top = max(sums)
    powers = [exp(each - top) for each in sums]
    return dict(zip(CLASSES, (each / sum(powers) for each in powers), strict=True))


def features(text: str, *, role: str, answered: str = "") -> dict[str, float]:
    """Return the features of a text by name: the points of the cues, its words and pairs of words, and what it answers."""
    plain = without_quotes(text)
    found = {"always": 1.0, f"role {role}": 1.0, "length": len(plain.split()) / 30}
    found |= {f"cue {name}": points / _MAX_STRONG_AND_WEAK for name in CUES if (points := _points(name, plain))}
    found |= {f"text {name}": 1.0 for name, sign in _SIGNS.items() if sign.search(plain)}
    if answered and role == "user":
        found |= dict.fromkeys(_answer_features(plain, normalized(answered)), 1.0)
    words = set(_words_and_pairs(plain))
    return found | {f"word {word}": 3 / sqrt(len(words)) for word in words}


def _answer_features(plain: str, answered: str) -> Iterator[str]:
    yield "answers"
    if "?" in answered[-_CONTEXT_LENGTH:]:
        yield "answers a question"
    else:
        yield "answers a statement"
        yield from (f"answer {name}" for name, sign in _ANSWERS.items() if sign.search(plain))
        if topics(answered) & topics(plain):
            yield "answer on the same topic"
    if OFFER.search(answered):
        yield "answers an offer"


def topics(text: str) -> set[str]:
    """Return the words of a text that carry its topic, cut to their first letters: a plural is the same word."""
    return {word.strip(".-")[:6].removesuffix("s") for word in re.findall(r"[\w.-]{4,}", text.lower())} - _COMMON


def without_quotes(text: str) -> str:
    """Return a text on one line without the words of others and without code."""
    return _INLINE_CODE.sub("CODE", _QUOTED.sub("QUOTE", normalized(text)))


def _points(name: str, plain: str) -> int:
    strong = max((points for points, cue in CUES[name] if points > 1 and cue.search(plain)), default=0)
    weak = sum(points for points, cue in CUES[name] if points == 1 and cue.search(plain))
    return strong + min(weak, 2) if strong else 0


def _words_and_pairs(plain: str) -> Iterator[str]:
    text = re.sub(r"\d+(?:[.,:]\d+)*", " 0 ", plain.lower())
    words = ["^", *re.findall(r"[\w']+|[?!,:;.–—]", text), "$"]
    yield from words
    yield from (f"{one} {other}" for one, other in pairwise(words))


@cache
def _weights() -> Mapping[str, Sequence[float]]:
    from importlib.resources import files  # it takes milliseconds to load

    table: dict[str, list[float]] = json.loads((files("memory_mesh.core.capture") / "data" / "weights.json").read_text("utf-8"))
    return table


_COMMON = frozenset(
    {
        "with",
        "that",
        "this",
        "have",
        "will",
        "from",
        "your",
        "they",
        "what",
        "when",
        "then",
        "than",
        "it'",
        "just",
        "like",
        "more",
    }
    | {
        "some",
        "into",
        "should"[:6],
        "would",
        "could",
        "which",
        "also",
        "only",
        "same",
        "very",
        "here",
        "there",
        "please",
        "about",
    }
)
_QUOTED = LazyRegex(
    r"\"[^\"\n]{8,}?\"|“[^”\n]{8,}?”|„[^“\n]{8,}?“|«[^»\n]{8,}?»|(?<!\w)['‘](?=\w)(?:[^'’\n]|['’](?=\w)){8,200}?['’](?!\w)"
)
_INLINE_CODE = LazyRegex(r"`[^`\n]+`")
_SIGNS = {"number": LazyRegex(r"\d"), "question": LazyRegex(r"\?")}
_ANSWERS = {
    "agrees": phrases(
        r"(right|yes|yep|yeah|good|great|thanks|thank you|thx|ok(ay)?|beautiful|perfect|wow|exactly|nice|cool|awesome|lovely|"
        r"excellent)",
        r"(true|correct|ja|oui|sí|super|sure|works|brilliant)",
        start=True,
    ),
    "objects": phrases(
        r"(no|nope|nah|nein|non|wrong|not|actually|hm,? that's not|please undo|stop|don't|do not|never|that's not|thats not|"
        r"this is not)"
        r"(?! (worries|problem|need|rush|idea|thanks|hurry|bad|sure))[ ,.!:;]+\w+ / (still )?too \w+",
        start=True,
    ),
}
OFFER = phrases(
    r"(\w+ )?or [^?\n]{2,80}\? / (options|candidates|alternatives|choices|approaches|variants|proposal|"
    r"suggestions?)( \w+){0,3}( are|:| is| for)",
    r"(remaining|possible) (options|candidates|choices) / we could / either / (which|what) (one|of|would you|do you prefer)",
    r"shall (i|we) / should (i|we|the|it) / i('d| would)? (suggest|recommend|propose|go for) / my (proposal|suggestion|"
    r"recommendation)",
)
