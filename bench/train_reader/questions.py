"""More questions for the reader, written by rules from what people state about themselves in the
chats of the training data.

"Musa: I bought a red bike" answers "What did Musa buy?", "When did Musa buy a bike?" and "Which
things does Musa own?". The rules cover what the other sources have little of: times, plans,
possessions, preferences, and requests such as "Suggest a gift for Musa". A general question has
every statement of the person that its rule matches as an answer.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_IRREGULAR = {
    "went": "go", "got": "get", "bought": "buy", "saw": "see", "met": "meet", "made": "make",
    "took": "take", "had": "have", "found": "find", "began": "begin", "wrote": "write",
    "read": "read", "won": "win", "lost": "lose", "ran": "run", "left": "leave", "gave": "give",
    "came": "come", "grew": "grow", "broke": "break", "taught": "teach", "thought": "think",
    "built": "build", "sold": "sell", "spent": "spend", "told": "tell", "heard": "hear",
    "ate": "eat", "drove": "drive", "flew": "fly", "sang": "sing", "fell": "fall", "felt": "feel",
    "kept": "keep", "knew": "know", "paid": "pay", "sent": "send", "slept": "sleep", "rode": "ride",
    "caught": "catch", "brought": "bring", "chose": "choose", "drew": "draw", "hurt": "hurt",
    "quit": "quit", "put": "put", "set": "set", "swam": "swim", "threw": "throw", "wore": "wear",
    "woke": "wake", "did": "do", "became": "become", "led": "lead",
}  # fmt: skip
_DROPS_E = re.compile(r"(?:[^aeiou]l|[aeiou][vszc]|[^aeiou]g|at|ir|in|uc|ur|ak|ok|ik|op|ud|id)$")
_NOT_VERBS = {
    "need",
    "feed",
    "speed",
    "bed",
    "red",
    "indeed",
    "used",
    "excited",
    "tired",
    "married",
    "supposed",
    "interested",
}
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_OPENING = re.compile(
    r"^(?:well|yes|yeah|yep|no|oh|so|and|but|actually|thanks|sure|ok|okay|also|wow|hi|hey|hello|"
    r"nice)\b[,!. ]*",
    re.I,
)
_END = re.compile(r"[.!?]+$|\s+(?:because|but|so|and then|since|though|too|as well)\b.*$", re.I)
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|recently|last \w+|this \w+|\w+ ago|in \d{4}|next \w+|tomorrow|"
    r"on \w+day)\b.*$",
    re.I,
)
_WORD = r"([A-Za-z']+)"
_REQUESTS = (
    "Suggest a gift for {s}.",
    "Can you recommend something for {s} to do this weekend?",
    "Plan a day out for {s}.",
)

Fill = Callable[[str, re.Match[str], random.Random], Sequence[str]]


_PERSONS = {
    r"\bmy\b": "their", r"\bme\b": "them", r"\bI'm\b": "they are", r"\bI\b": "they",
    r"\bour\b": "their", r"\bmyself\b": "themselves", r"\bwe\b": "they",
}  # fmt: skip


def _owned(text: str) -> str:
    """Turn the first person into the third."""
    for old, new in _PERSONS.items():
        text = re.sub(old, new, text)
    return text


def _base(verb: str) -> str | None:
    """Return the base form of a verb in the past, or None if it does not look like one."""
    verb = verb.lower()
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if not verb.endswith("ed") or len(verb) < 5 or verb in _NOT_VERBS:
        return None
    if verb.endswith("ied"):
        return f"{verb[:-3]}y"
    stem = verb[:-2]
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "lsz":
        return stem[:-1]
    return (
        f"{stem}e"
        if re.search(
            r"(?:[^aeiou]l|[aeiou][vszc]|[^aeiou]g|at|ir|in|uc|av|iv|ov|ir|ur|ak|ok|ik|op|ud|id|"
            r"us)$",
            stem,
        )
        else stem
    )


def _past(s: str, found: re.Match[str], rng: random.Random) -> Sequence[str]:
    base = _base(found[1])
    if base is None:
        return ()
    rest = _owned(_TIME.sub("", found[2])).strip()
    short = " ".join(rest.split()[: rng.randint(2, 6)])
    return (f"When did {s} {base} {short}?", f"What did {s} {base}?", f"Did {s} {base} {rest}?",
            f"Where did {s} {base} {short}?", f"How many times did {s} {base} {short}?",
            f"What has {s} done recently?")  # fmt: skip


def _doing(s: str, found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    rest = _owned(found[2])
    return (
        f"What is {s} {found[1]}?",
        f"Is {s} {found[1]} {rest}?",
        f"What is {s} busy with?",
        f"When is {s} {found[1]} {rest}?",
    )


def _done(s: str, found: re.Match[str], rng: random.Random) -> Sequence[str]:
    rest = _owned(found[2])
    short = " ".join(rest.split()[: rng.randint(1, 5)])
    return (
        f"What has {s} {found[1]}?",
        f"How long has {s} {found[1]} {short}?",
        f"Has {s} {found[1]} {rest}?",
    )


def _liked(s: str, found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    verb, rest = found[1].lower(), _owned(found[2])
    hobby = bool(re.match(r"to \w+|\w+ing\b", rest))
    general = (f"What are {s}'s hobbies?", f"What does {s} do to relax?",
               f"What activities does {s} enjoy?") if hobby else (
                   f"What does {s} {verb}?", f"What are some of {s}'s favorites?")  # fmt: skip
    thing = re.sub(r"^to ", "", rest)
    return (*general, f"Would {s} enjoy {thing}?", f"What does {s} think about {thing}?",
            f"Why does {s} {verb} {rest}?", *(one.format(s=s) for one in _REQUESTS))  # fmt: skip


def _disliked(s: str, found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    return (
        f"What does {s} dislike?",
        f"Would {s} enjoy {_owned(found[2])}?",
        f"What should I avoid when planning something for {s}?",
    )


def _had(s: str, found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    noun = " ".join(_owned(found[2]).split()[:3]).rstrip(",")
    return (
        f"What does {s} have?",
        f"How many {noun} does {s} have?",
        f"Does {s} have {found[1]} {noun}?",
        f"Which things does {s} own?",
    )


def _planned(s: str, found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    rest = _owned(found[1])
    return (f"What are {s}'s plans?", f"What are {s}'s goals?", f"What does {s} want to do?",
            f"Is {s} going to {rest}?", f"When is {s} planning to {rest}?")  # fmt: skip


def _worked(s: str, _found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    return (
        f"What is {s}'s job?",
        f"What does {s} do for a living?",
        f"Where does {s} work?",
        f"What might {s}'s career be?",
    )


def _lived(s: str, _found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    return f"Where does {s} live?", f"Where is {s} from?", f"What city or country is {s} in?"


def _of_mine(s: str, found: re.Match[str], _rng: random.Random) -> Sequence[str]:
    noun, rest = found[1], found[3]
    who = (
        "Who"
        if re.search(
            r"mother|father|mom|dad|wife|husband|son|daughter|brother|sister|friend|boss", noun
        )
        else "What"
    )
    return (
        f"{who} is {s}'s {noun}?",
        f"Tell me about {s}'s {noun}.",
        f"Is {s}'s {noun} {_owned(rest)}?",
    )


def _asked_for(_s: str, found: re.Match[str], rng: random.Random) -> Sequence[str]:
    """A user's topic comes back in a later request to the assistant."""
    topic = re.sub(r"\bmy\b", "my", found[1])
    words = topic.split()
    short = " ".join(words[: rng.randint(2, 6)])
    return (f"Can you give me tips for {short}?", f"What should I know about {short}?",
            f"Any recommendations for {short}?", f"Can you suggest some resources about {short}?",
            f"I need some ideas for {short}.")  # fmt: skip


_RULES: Sequence[tuple[re.Pattern[str], Fill]] = [
    (re.compile(pattern, re.I), fill)
    for pattern, fill in (
        (rf"^(?:I|we) (?:just |also |recently |finally |once )?{_WORD} (\S+ .+|\S{{4,}})$", _past),
        (r"^(?:I'm|I am|we're|we are) (?:also |currently |just |still )?(\w+ing) (\S+.*)$", _doing),
        (
            r"^(?:I've|I have|we've|we have) (?:also |just |recently |always |already )?"
            r"(been|\w+ed|seen|read|gone|done|had|won|written|taken|met) (\S+.*)$",
            _done,
        ),
        (r"^I (?:also |really |just )*(love|like|enjoy|prefer|adore) (.+)$", _liked),
        ((r"^I (?:also |really |just )*(hate|dislike|don't like|can't stand|am afraid of|am "
          r"allergic to) (.+)$"),
         _disliked),
        (r"^I (?:also )?(?:have|own|got) (an?|one|two|three|four|five|some|\d+) (.+)$", _had),
        ((r"^I(?:'m| am)? (?:also |really )?(?:want|hope|plan|planning|hoping|going|would like|"
          r"can't wait) to (.+)$"),
         _planned),
        ((r"^I(?:'m| am)? (?:also )?(?:work(?:ing)? (?:as|at|in|for) |an? \w+(?:er|or|ist|ian|"
          r"nurse|student)\b)(.*)$"),
         _worked),
        (r"^I (?:live|grew up|was born|moved|am from|come from)|^I'm from", _lived),
        (r"^My ([a-z]+(?: [a-z]+)?) (is|are|was) (.+)$", _of_mine),
    )
]  # fmt: skip
_USER_RULES: Sequence[tuple[re.Pattern[str], Fill]] = [
    (re.compile(pattern, re.I), _asked_for)
    for pattern in (
        (
            r"\bI(?:'m| am) (?:trying|looking|planning|hoping|thinking) (?:to|of|for|about) "
            r"([^.,?!]{12,80})"
        ),
        (
            r"\bI(?:'ve| have) been (?:trying|working on|using|learning|getting into|thinking "
            r"about) ([^.,?!]{8,80})"
        ),
        r"\bI (?:just|recently) (?:got|bought|started|finished|tried) ([^.,?!]{8,80})",
    )
]


def made_questions(
    documents: Sequence[dict[str, Any]], *, seed: int, per_passage: int = 2
) -> Iterator[dict[str, Any]]:
    """Yield questions in the form of the training data, at most `per_passage` new ones for each
    statement."""
    rng = random.Random(seed)  # noqa: S311
    for at, document in enumerate(documents):
        if not {"persona_chat", "longmemeval_oracle", "schema_guided_dialogue"} & set(
            document["sources"]
        ):
            continue
        answers: dict[str, set[int]] = defaultdict(set)  # every statement that a question matches
        chosen: dict[str, None] = {}
        for place, passage in enumerate(document["passages"]):
            speaker = passage.get("speaker")
            if not speaker or speaker.lower() == "assistant":
                continue
            text = passage["text"].removeprefix(f"{speaker}: ")
            found = list(dict.fromkeys(_questions(speaker, text, rng)))
            for question in found:
                answers[question].add(place)
            for question in rng.sample(found, min(per_passage, len(found))):
                chosen[question] = None
        for question in chosen:
            yield {
                "source": "made",
                "question": _nicknamed(question, rng),
                "document": at,
                "answers": sorted(answers[question]),
            }


def _questions(speaker: str, text: str, rng: random.Random) -> Iterator[str]:
    rules = _USER_RULES if speaker.lower() == "user" else _RULES
    for sentence in _SENTENCE.split(text):
        if sentence.rstrip().endswith("?"):
            continue
        plain = (
            sentence
            if rules is _USER_RULES
            else _END.sub("", _END.sub("", _OPENING.sub("", sentence.strip())))
        )
        for pattern, fill in rules:
            if (found := pattern.search(plain)) is not None and 2 <= len(plain.split()) <= 40:
                yield from (re.sub(r"\s+([?.])", r"\1", one) for one in fill(speaker, found, rng))


def _nicknamed(question: str, rng: random.Random) -> str:
    """Shorten the name in a few questions, as friends do."""
    name = re.search(r"\b[A-Z][a-z]{5,}\b(?=('s)? )", question[5:])
    return (
        question.replace(name[0], name[0][: rng.choice((3, 4))], 1)
        if name and rng.random() < 0.05
        else question
    )
