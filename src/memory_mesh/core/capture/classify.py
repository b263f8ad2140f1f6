"""Tell which of the ten types a text is, or that it is none: a linear model over cues, what the text answers, and its vector.

The weights are packaged data, learnt by `python -m bench.capture.train` from labelled pieces of transcripts. They are the same in
every run, so the same transcript gives the same memories. There are two tables: with the vectors of the local model, and without
vectors.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from memory_mesh.core.capture.cues import CUES
from memory_mesh.core.capture.phrases import normalized, phrases
from memory_mesh.core.linear import NONE, Vector, Weights, read_weights
from memory_mesh.core.text import LazyRegex

CLASSES = (NONE, *CUES)
_MAX_STRONG_AND_WEAK = 3
_CONTEXT_LENGTH = 3  # characters at the end of a message that show whether it asks


@dataclass(frozen=True, slots=True)
class Judge:
    """Tells how likely a text is of each type, and of none."""

    weights: Weights
    vector: Vector | None = None

    def __call__(self, text: str, *, role: str, answered: str = "") -> dict[str, float]:
        """Return the chances by class. `answered` is the message of the assistant that a user answers."""
        values = features(text, role=role, answered=answered)
        return self.weights.chances(CLASSES, values, self.vector(text) if self.vector else ())


def judge_without_vectors() -> Judge:
    """Return the judge that needs no embedder."""
    return Judge(_read_weights()[1]["plain"])


def judge_with_vectors(vector: Vector) -> Judge:
    """Return the judge that uses vectors of the model that `model_of_vectors` names."""
    return Judge(_read_weights()[1]["vectors"], vector)


def model_of_vectors() -> str:
    """Return the model whose vectors the weights were learnt with."""
    return _read_weights()[0]


def features(text: str, *, role: str, answered: str = "") -> dict[str, float]:
    """Return the features of a text by name: the points of the cues, its length and form, and what it answers."""
    plain = without_quotes(text)
    found = {"always": 1.0, f"role {role}": 1.0, "length": len(plain.split()) / 30}
    for name, cues in CUES.items():
        points = [own for own, cue in cues if cue.search(plain)]
        if (strong := max(points, default=0)) > 1:  # weak cues count beside a strong one
            found[f"cue {name}"] = (strong + min(points.count(1), 2)) / _MAX_STRONG_AND_WEAK
            found |= {f"cue {name} {own}": 1.0 for own in points if own > 1}
    found |= {f"text {name}": 1.0 for name, sign in _SIGNS.items() if sign.search(plain)}
    if answered and role == "user":
        found |= dict.fromkeys(_answer_features(plain, normalized(answered)), 1.0)
    return found


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


@cache
def _read_weights() -> tuple[str, dict[str, Weights]]:
    return read_weights("memory_mesh.core.capture")


_COMMON = frozenset({
    "with", "that", "this", "have", "will", "from", "your", "they", "what", "when", "then", "than", "it'", "just", "like", "more",
    "some", "into", "should", "would", "could", "which", "also", "only", "same", "very", "here", "there", "please", "about",
})  # fmt: skip
_QUOTED = LazyRegex(
    r"\"[^\"\n]{8,}?\"|“[^”\n]{8,}?”|„[^“\n]{8,}?“|«[^»\n]{8,}?»|(?<!\w)['‘](?=\w)(?:[^'’\n]|['’](?=\w)){8,200}?['’](?!\w)"
)
_INLINE_CODE = LazyRegex(r"`[^`\n]+`")
_SIGNS = {"number": LazyRegex(r"\d"), "question": LazyRegex(r"\?")}
OBJECTS = phrases(
    r"(no|nope|nah|nein|non|wrong|not|actually|hm,? that's not|please undo|stop|don't|do not|never|that's not|thats not|"
    r"this is not)"
    r"(?! (worries|problem|need|rush|idea|thanks|hurry|bad|sure))[ ,.!:;]+\w+ / (still )?too \w+",
    start=True,
)
_ANSWERS = {
    "agrees": phrases(
        r"(right|yes|yep|yeah|good|great|thanks|thank you|thx|ok(ay)?|beautiful|perfect|wow|exactly|nice|cool|awesome|lovely|"
        r"excellent)",
        r"(true|correct|ja|oui|sí|super|sure|works|brilliant)",
        start=True,
    ),
    "objects": OBJECTS,
}
OFFER = phrases(
    r"(\w+ )?or [^?\n]{2,80}\? / (options|candidates|alternatives|choices|approaches|variants|proposal|"
    r"suggestions?)( \w+){0,3}( are|:| is| for)",
    r"(remaining|possible) (options|candidates|choices) / we could / either / (which|what) (one|of|would you|do you prefer)",
    r"shall (i|we) / should (i|we|the|it) / i('d| would)? (suggest|recommend|propose|go for) / my (proposal|suggestion|"
    r"recommendation)",
)
