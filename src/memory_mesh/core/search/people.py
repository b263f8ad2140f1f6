"""The people that a text refers to: speakers of a chat, names, nicknames and misspelt names."""

import re
from collections.abc import Collection, Mapping
from functools import cache

from memory_mesh.core.search.lexical import tokens
from memory_mesh.core.search.spelling import edits

_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "ai", "bot", "model"})
_US = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves|you|your|yours)\b", re.IGNORECASE)
_GENERAL = re.compile(
    r"\s*(?:how\s+(?:do|can|should|would)\s+(?:i|you|we)\b|can\s+i\b|is\s+it\b|why\s+(?:do|does|is|are)\b"
    r"|what(?:['’]s|\s+is|\s+are)\s+(?:an?|the)\b|what\s+does\b.*\bmean\b)",
    re.IGNORECASE,
)
_I = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
# Not about what "you" said: requests ("Can you recommend a hotel?", but not "Can you remind me …"), and what "I" told you.
_NOT_YOU = re.compile(
    r"\b(?:(?:can|could|would|will|do|should|may)\s+you\b(?!\s+(?:please\s+)?(?:remind|remember|recall|repeat))"
    r"|(?:thank|tell|told|asked?|gave|give|showed?|sent|send)\s+you\b)",
    re.IGNORECASE,
)
_NAME = re.compile(r"([^\W\d_]+)(?:['’]s?\b)?")
_INNER_WORD = re.compile(r"(?<![.?!:]\s)(?<!^)\b[^\W\d_]{2,}")  # not at the start of a sentence
_POSSESSIVE = re.compile(r"\b([^\W\d_]{2,})['’]s\b")
_BLANKS = re.compile(r"\s+(?=[?.!,;:]|$)|(?<=\s)\s+")
_GREETING = re.compile(
    r"\b(?:hey|hi|hello|thanks|thank you|dear|bye|congrats|congratulations|morning|evening|night),?\s+([^\W\d_]{2,})\b",
    re.IGNORECASE,
)

_ALSO_I = 0.5  # the weight of "I" in a query that refers to "you" too
NICKNAME = 0.9  # the closeness of a name and its nickname
_BEGINNING, _MIN_BEGINNING = 0.8, 3  # Mel, Melanie
_MIN_CLOSENESS = 0.5
_MAX_EDITS = 2
# English given names and their nicknames, except those that are the beginning of the name.
_NICKNAMES = """
abigail abby gail|albert bert|alexander sasha xander|alexandra sandra sasha|amanda mandy|andrew andy drew|anthony tony|
caroline carrie|catherine kate katie kitty kathy|charles charlie chuck|christine tina|christopher kit|cynthia cindy|
deborah debbie|dorothy dot dolly|edward eddie ned ted|eleanor ellie nell nora|elizabeth liz beth betty lizzie libby|
emily millie|eugene gene|evelyn evie|frances fran|francis frank|franklin frank|gabriel gabe|gerald jerry|
harold harry hal|helen nell|henry harry hank|isabella bella izzy|jacob jake|james jim jimmy jamie|jennifer jenny|
joanna jo|john jack johnny|jonathan johnny|joseph joe joey|josephine josie|judith judy|katherine kate katie kathy kitty|
kathleen kathy kate|lawrence larry|lillian lily|louis louie|madeline maddie|margaret maggie meg peggy greta rita|
melissa missy|michael mike mick|michelle shelly|nancy nan|nathaniel nate|nicholas nick nicky|nicole nicky|
patricia patty trish tricia|patrick paddy|peter pete|rebecca becky becca|richard rick dick ricky|robert bob bobby robbie|
ronald ronnie|rosemary rosie|samuel sammy|samantha sammy|sarah sally sadie|stephen steve|steven steve|susan sue susie|
teresa terry tess|theodore ted teddy|thomas tom tommy|victoria vicky tori|vincent vince|virginia ginny|
william bill billy liam|zachary zack
"""


def speaker_roles(text: str) -> dict[str, float]:
    """Return the speakers of a chat, in lower case, that a query refers to as "I" or "you", with a weight.

    A query that refers to both rather asks for what "you" said: "I" is in most questions.
    """
    asks_for_you = bool(_YOU.search(text) and _YOU.search(_NOT_YOU.sub(" ", text)))
    user = dict.fromkeys(_USER, _ALSO_I if asks_for_you else 1.0) if _I.search(text) else {}
    return user | dict.fromkeys(_ASSISTANT if asks_for_you else (), 1.0)


def is_personal(text: str) -> bool:
    """Return whether a query is about the one who asks, their people, or the one who is asked."""
    return bool(_US.search(text))


def is_general(text: str) -> bool:
    """Return whether a query has the form of a question that anybody could ask: "How do I …", "What is a …"."""
    return bool(_GENERAL.match(text))


def role_of(speaker: str) -> tuple[bool, bool]:
    """Return whether a speaker is the user of an assistant, and whether it is an assistant."""
    name = speaker.casefold()
    return name in _USER, name in _ASSISTANT


def proper_names(text: str, *, language: str = "english") -> frozenset[str]:
    """Return the tokens of words that look like names: capitalised, within a sentence or in the possessive."""
    if text.islower():
        return frozenset()
    words = {*_INNER_WORD.findall(text), *_POSSESSIVE.findall(text)}
    names = (word for word in words if word[0].isupper() and word[1:].islower())
    return frozenset(token for word in names for token in tokens(word, language=language))


def addressee(text: str, *, language: str = "english") -> str | None:
    """Return the token of the name that a text greets or thanks ("Hey Kate"), if there is one."""
    for match in _GREETING.finditer(text):
        word = match[1]
        if word[0].isupper() and word[1:].islower() and (found := tokens(word, language=language)):
            return found[0]
    return None


def closeness(name: str, other: str, *, language: str = "english") -> float:
    """Return how surely two names mean the same person, 0–1, by their tokens: nicknames, beginnings and typos."""
    if name == other:
        return 1.0
    groups = _nickname_groups(language)
    if groups.get(name, frozenset()) & groups.get(other, frozenset()):
        return NICKNAME
    shorter, longer = sorted((name, other), key=len)
    if len(shorter) >= _MIN_BEGINNING and longer.startswith(shorter):
        return _BEGINNING
    likeness = 1 - 2 * edits(name, other, _MAX_EDITS) / len(longer) if longer else 0.0
    return likeness if likeness >= _MIN_CLOSENESS else 0.0


def without_speakers(text: str, speakers: Collection[str], *, language: str = "english") -> str:
    """Remove the names of speakers from a query; return it unchanged if no keyword would remain.

    A name says whose memories the query is about. In an embedded query it pulls towards every text that contains the name.
    """
    roles = _USER | _ASSISTANT
    words = {part for name in speakers if name.casefold() not in roles for part in _NAME.findall(name.casefold())}
    if not words:
        return text
    # Stems are compared too: of other names an index has only the stem.
    stems = {token for word in words for token in tokens(word, language=language)}
    # Will, Rose and Mark are also words: if the query has capitals at all, a name starts with one.
    has_capitals = text != text.lower()

    def is_speaker(word: str) -> bool:
        if has_capitals and not word[0].isupper():
            return False
        if word.casefold() in words:
            return True
        word_stems = tokens(word, language=language)
        return bool(word_stems) and stems.issuperset(word_stems)

    rest = _NAME.sub(lambda match: "" if is_speaker(match.group(1)) else match.group(), text)
    if rest == text:
        return text
    rest = _BLANKS.sub("", rest).strip()
    return rest if tokens(rest, language=language) else text


@cache
def _nickname_groups(language: str) -> Mapping[str, frozenset[int]]:
    """Return the numbers of the groups that each name belongs to."""
    groups: dict[str, frozenset[int]] = {}
    for number, names in enumerate(_NICKNAMES.split("|")):
        for token in tokens(names.title(), language=language):
            groups[token] = groups.get(token, frozenset()) | {number}
    return groups
