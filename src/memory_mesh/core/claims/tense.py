"""Rewrite a statement to the third person present; tense, negation and words of time become marks.

"I used to work at Acme" becomes "I works at Acme", ended. So each form of a statement is written once.
"""

import re
from dataclasses import dataclass, replace

from memory_mesh.core.claims.phrases import DATE, RELATIVE


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement, and what its tense and adverbs say about its time."""

    text: str
    starts: bool = False
    ended: bool = False
    since: str | None = None


_VERBS = {
    "work": "working", "live": "living", "reside": "residing", "speak": "speaking", "like": "liking", "love": "loving",
    "own": "owning", "enjoy": "enjoying", "prefer": "preferring", "use": "using", "report": "reporting", "hate": "hating",
    "dislike": "disliking", "drink": "drinking", "eat": "eating", "smoke": "smoking", "play": "playing",
}  # fmt: skip
_THIRD = {f"is {participle}": f"{verb}s" for verb, participle in _VERBS.items()}
_PROGRESSIVE = re.compile(rf"(.+?) ({'|'.join(_THIRD)}) (\S.*)")
_PERFECT = {"worked": "works", "lived": "lives", "used": "uses", "owned": "owns", "reported": "reports", "preferred": "prefers"}
_BE = {"am": "is", "are": "is", "have": "has", "do": "does"}
_SHORT = (("'m ", " am "), ("'re ", " are "), ("'ve ", " have "), ("n't ", " not "))
_IS_SHORT = re.compile(
    r"([A-Z]\w+)'s (?=(?:now |no longer |currently )?(?:working|living|based|married|allergic|employed|called)\b)"
)
_FIRST_PERSON = re.compile(
    r"(I|i|We|we) (no longer |just )?(?:(?:really|much|strongly|generally) (?=prefer|like|love|enjoy))?(\w+)\b"
)
_SINCE = re.compile(r"^(?:since|as of|effective) |,? (?:since|as of|effective) ", re.IGNORECASE)
_MOMENT = re.compile(rf"({DATE}|{RELATIVE}|the (?:start|beginning) of the (?:week|month|year)|(?i:now))(?:$|,? (?=\S))")
_NOW = re.compile(
    r"^(?:now|from (?:now|today) on),? (?=\S)|,? (?:now|from (?:now|today) on|effective immediately)$| now (?=\S)", re.IGNORECASE
)
_PRESENT = re.compile(
    r"^(?:currently|at the moment|nowadays|these days),? (?=\S)| (?:currently|still|officially)(?= \S)"
    r"|,? (?:currently|at the moment|at present|nowadays|these days)$", re.IGNORECASE
)  # fmt: skip
_NO_LONGER = re.compile(r"(.+?) no longer (\S.*)")
_NOT_ANY_MORE = re.compile(r"(.+?) (?:does not (\w+)|is not) (.+?) (?:any ?more|any longer)")
_USED_TO = re.compile(r"(.+?) used to (\w+) (\S.*)")
_STOPPED = re.compile(r"(.+?) (?:has )?(?:(?:just |recently )?(started|began)|stopped|quit) (\w+ing) (\S.*)")
_HAS_BEEN = re.compile(rf"(.+?) has (?:been|({'|'.join(_PERFECT)})) (\S.*)")


def rewritten(text: str) -> Clause:
    """Return a statement in the third person present, with its marks."""
    text, clause = f"{text} ", Clause("")
    for short, long in _SHORT:
        text = text.replace(short, long)
    text = _IS_SHORT.sub(r"\1 is ", text.strip(), count=1)
    since = _SINCE.search(text)
    moment = _MOMENT.match(text, since.end()) if since else None
    if since and moment and (since.start() == 0) != (moment.end() == len(text)):  # at the beginning or at the end
        clause = Clause("", starts=True, since=None if moment[1].casefold() in ("now", "today") else moment[1])
        text = text[: since.start()] + text[moment.end() :]
    if at_once := _NOW.search(text):
        clause, text = replace(clause, starts=True), f"{text[: at_once.start()]} {text[at_once.end() :]}".strip()
    text = _PRESENT.sub("", text, count=1)
    if first := _FIRST_PERSON.match(text):
        text = _third_person(first) + text[first.end() :]
    clause = _without_tense(replace(clause, text=text))
    if progressive := _PROGRESSIVE.fullmatch(clause.text):
        return replace(clause, text=f"{progressive[1]} {_THIRD[progressive[2]]} {progressive[3]}")
    return clause


def _third_person(match: re.Match[str]) -> str:
    verb = match[3]
    return f"{match[1].capitalize()} {match[2] or ''}{_BE.get(verb) or (f'{verb}s' if verb in _VERBS else verb)}"


def _without_tense(clause: Clause) -> Clause:
    text = clause.text
    if match := _NO_LONGER.fullmatch(text):
        return replace(clause, text=f"{match[1]} {match[2]}", ended=True)
    if match := _NOT_ANY_MORE.fullmatch(text):
        return replace(clause, text=f"{match[1]} {f'{match[2]}s' if match[2] else 'is'} {match[3]}", ended=True)
    if match := _USED_TO.fullmatch(text):
        return replace(clause, text=f"{match[1]} {'is' if match[2] == 'be' else f'{match[2]}s'} {match[3]}", ended=True)
    if match := _STOPPED.fullmatch(text):
        began = bool(match[2])
        return replace(clause, text=f"{match[1]} is {match[3]} {match[4]}", starts=clause.starts or began, ended=not began)
    if clause.starts and (match := _HAS_BEEN.fullmatch(text)):
        return replace(clause, text=f"{match[1]} {_PERFECT.get(match[2] or '', 'is')} {match[3]}")
    return clause
