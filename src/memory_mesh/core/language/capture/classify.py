"""Tell which of the ten types of memory a text is, or that it is none, and why it is junk.

A linear model decides over cues, what the text answers, and its vector. The weights are packaged
data, learnt by `python -m bench.capture.train` from labelled pieces of transcripts. They are the
same in every run, so the same transcript gives the same memories. There are two tables: with the
vectors of the local model, and without vectors.

Before that, the firewall: `why_not` tells of every sentence of a transcript why it is not worth
keeping. `why_stored_is_junk` is the part of it that `memory-mesh junk` asks about stored memories.
A reason is a plain phrase that completes "not kept: …". The phrases are in `data/classify.toml`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from memory_mesh.core.intake.similar import says_the_same
from memory_mesh.core.language.packaged import (
    NONE,
    Expressions,
    Phrases,
    Vector,
    Weights,
    WordSets,
    read_entries,
    read_weights,
)
from memory_mesh.core.text import LazyRegex, hides_secret

_RE, _WORDS = Expressions(__name__), WordSets(__name__)
_PHRASES, _OPENINGS = Phrases(__name__), Phrases(__name__, start=True)


def normalized(text: str) -> str:
    """Return a text on one line, with plain apostrophes, as phrases expect it."""
    return " ".join(text.split()).replace("’", "'")


def offers(text: str) -> bool:
    """Return whether a message of the assistant asks for a choice."""
    return _PHRASES.offer.search(text) is not None


def objects(text: str) -> bool:
    """Return whether a message begins with an objection."""
    return _OPENINGS.objects.search(text) is not None


# --- the classifier ---


def _read_cues() -> dict[str, list[tuple[int, LazyRegex]]]:
    """Return the cues of each type with their points. Strong cues have two points and more; weak
    ones have one, and count only beside a strong one."""
    cues: dict[str, list[tuple[int, LazyRegex]]] = {}
    for name in read_entries(__name__):
        if cue := re.fullmatch(r"cue_(\w+)_(\d)[a-z]?(_raw)?", name):
            regex = getattr(_RE if cue[3] else _PHRASES, name)
            cues.setdefault(cue[1], []).append((int(cue[2]), regex))
    return cues


def _read_signs() -> dict[str, LazyRegex]:
    """Return what shows which part of life a statement is about, and how it is said."""
    names = (name for name in read_entries(__name__) if name.startswith("sign_"))
    return {name.replace("_", " "): getattr(_PHRASES, name) for name in names}


CUES, SIGNS = _read_cues(), _read_signs()
CLASSES = (NONE, *CUES)
_MAX_STRONG_AND_WEAK = 3
_CONTEXT_LENGTH = 3  # characters at the end of a message that show whether it asks


@dataclass(frozen=True, slots=True)
class Judge:
    """Tells how likely a text is of each type, and of none."""

    weights: Weights
    vector: Vector | None = None

    def __call__(self, text: str, *, role: str, answered: str = "") -> dict[str, float]:
        """Return the chances by class. `answered` is the message of the assistant that a user
        answers."""
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
    """Return the features of a text by name: the points of the cues, its length and form, and
    what it answers."""
    plain = without_quotes(text)
    found = {"always": 1.0, f"role {role}": 1.0, "length": len(plain.split()) / 30}
    for name, cues in CUES.items():
        points = [own for own, cue in cues if cue.search(plain)]
        if (strong := max(points, default=0)) > 1:  # weak cues count beside a strong one
            found[f"cue {name}"] = (strong + min(points.count(1), 2)) / _MAX_STRONG_AND_WEAK
            found |= {f"cue {name} {own}": 1.0 for own in points if own > 1}
    found |= {name: 1.0 for name, sign in SIGNS.items() if sign.search(plain)}
    if _RE.number.search(plain):
        found["text number"] = 1.0
    if _RE.name.search(plain):
        found["text name"] = 1.0
    if "?" in plain:
        found["text question"] = 1.0
    if answered and role == "user":
        found |= dict.fromkeys(_answer_features(plain, normalized(answered)), 1.0)
    return found


def _answer_features(plain: str, answered: str) -> Iterator[str]:
    yield "answers"
    if "?" in answered[-_CONTEXT_LENGTH:]:
        yield "answers a question"
    else:
        yield "answers a statement"
        if _OPENINGS.agrees.search(plain):
            yield "answer agrees"
        if objects(plain):
            yield "answer objects"
        if topics(answered) & topics(plain):
            yield "answer on the same topic"
    if _PHRASES.offer.search(answered):
        yield "answers an offer"


def topics(text: str) -> set[str]:
    """Return the words of a text that carry its topic, cut to their first letters: a plural is
    the same word."""
    return {
        word.strip(".-")[:6].removesuffix("s") for word in re.findall(r"[\w.-]{4,}", text.lower())
    } - _WORDS.common


def without_quotes(text: str) -> str:
    """Return a text on one line without the words of others and without code."""
    return _RE.inline_code.sub("CODE", _RE.quoted.sub("QUOTE", normalized(text)))


@cache
def _read_weights() -> tuple[str, dict[str, Weights]]:
    return read_weights("memory_mesh.core.language.capture")


# --- the firewall ---

MIN_WORDS = 3
SMALL_TALK = "small talk"
RECALLED = "a memory that was recalled"
_MAX_CHARS = 2_000  # a longer sentence is a pasted document
_PASTED_LINES = 0.5  # fraction of lines that look like the output of a program
_MAX_SMALL_TALK = 80  # characters


def why_not(text: str, *, role: str = "user", recalled: Iterable[str] = ()) -> str | None:
    """Return why a text is not worth keeping, or None if nothing speaks against it. `recalled`
    are memories that were shown."""
    plain = normalized(text)
    if role in ("tool", "system"):
        return "the output of a tool" if role == "tool" else "an instruction of the system"
    if is_output(text):
        return "the output of a program or code"
    if len(plain) > _MAX_CHARS:
        return "a pasted document"
    if _RE.recalled_line.search(text) or any(says_the_same(plain, known) for known in recalled):
        return RECALLED
    if _is_small_talk(plain):
        return SMALL_TALK
    return (
        _why_not_by_form(plain, role)
        or why_not_safe(plain)
        or ("a secret" if hides_secret(plain) else None)
    )


def why_stored_is_junk(text: str) -> str | None:
    """Return why a stored text should not be in a memory, or None. Milder than `why_not`: it may
    be stored on purpose."""
    plain = normalized(text)
    if is_output(text):
        return "the output of a program or code"
    if _RE.recalled_line.search(text):
        return RECALLED
    if _is_small_talk(plain):
        return SMALL_TALK
    return "a question" if _RE.question.match(plain) and ". " not in plain else why_not_safe(plain)


def is_output(text: str) -> bool:
    """Return whether a text looks like code, a log, a stack trace, a diff, a table or markup."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = sum(
        bool(_RE.output_line.match(line) or _RE.code_line.fullmatch(line)) for line in lines
    )
    return bool(lines) and found >= len(lines) * _PASTED_LINES


def _why_not_by_form(plain: str, role: str) -> str | None:
    """Return why a sentence is not worth keeping for the way it is said."""
    if len(plain.split()) < MIN_WORDS:
        return "too short to mean something on its own"
    checks = (
        (_RE.question.match(plain) or _asks(plain), "a question"),
        (_RE.joke.search(plain), "a joke"),
        (_PHRASES.speculation.search(plain), "speculation"),
        (_PHRASES.hypothetical.search(plain), "a hypothesis"),
        (_PHRASES.transient.search(plain), "true only for the moment"),
        (_PHRASES.slip.search(plain), "a slip that was corrected"),
        (_PHRASES.reported.search(plain), "words of somebody else"),
        (role == "assistant" and _PHRASES.restated.search(plain), RECALLED),
        (role == "assistant" and _OPENINGS.plan.match(plain), "the plan or progress of the agent"),
        (
            role == "user" and _PHRASES.points_at.search(plain),
            "not understandable without what was shown",
        ),
        (
            role == "user"
            and _OPENINGS.one_off.match(plain)
            and not _PHRASES.standing.search(plain),
            "an instruction for once",
        ),
    )
    return next((why for found, why in checks if found), None)


def _is_small_talk(plain: str) -> bool:
    """Return whether a text is nothing but greetings, thanks, wishes, or yes and no: a wish may
    also say to whom and for what, as in "Good luck with the exam, Ana"."""
    marked = unicodedata.normalize("NFKD", plain)
    rest = "".join(char for char in marked if not unicodedata.combining(char))
    said = wished = False
    while rest and len(plain) <= _MAX_SMALL_TALK:
        between = _RE.between.match(rest)
        gap = between[0] if between else ""
        rest = rest[len(gap) :]
        wish, reply = _OPENINGS.wish.match(rest), _OPENINGS.acknowledgement.match(rest)
        match = wish or reply or _OPENINGS.companion.match(rest)
        if wish or reply:
            said, wished = True, wish is not None
        elif said and not match:
            is_name = (wished or "," in gap) and _RE.capital.match(rest)
            is_purpose = wished and _OPENINGS.purpose.match(rest)
            match = _OPENINGS.comment.match(rest) or is_name or is_purpose or None
        if rest and not match:
            return False
        rest = rest[match.end() :] if match else ""
    return said


def _asks(plain: str) -> bool:
    """Return whether a sentence asks without a question mark, as in "should we use Redis"."""
    return plain[-1:] not in ".!" and ". " not in plain and _OPENINGS.asks.search(plain) is not None


def why_not_safe(plain: str) -> str | None:
    """Return why a text must not be kept: it holds a secret, or instructions for a model."""
    # Many patterns, which most texts do not need.
    from memory_mesh.core.language.redaction import masked
    from memory_mesh.core.language.safety.injection import detect

    if _PHRASES.addressed.search(plain) or detect(plain):
        return "instructions for a model"
    return "a secret" if masked(plain) != plain and _PHRASES.secret.search(plain) else None
