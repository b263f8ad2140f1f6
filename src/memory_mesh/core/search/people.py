"""The people that a query refers to."""

import re
from collections.abc import Collection

from memory_mesh.core.search.lexical import tokens

_USER = frozenset({"user", "human"})
_ASSISTANT = frozenset({"assistant", "ai", "bot", "model"})
_I = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_NAME = re.compile(r"([^\W\d_]+)(?:['’]s?\b)?")
_PROPER_NAME = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][a-z]+")
_BLANKS = re.compile(r"\s+(?=[?.!,;:]|$)|(?<=\s)\s+")


def speaker_roles(text: str) -> frozenset[str]:
    """Return the speakers of a chat, in lower case, that a query refers to as "I" or "you"."""
    user = _USER if _I.search(text) else frozenset()
    return user | _ASSISTANT if _YOU.search(text) else user


def proper_names(text: str, *, language: str = "english") -> frozenset[str]:
    """Return the tokens of words that look like names: capitalised, and not at the start of a sentence."""
    return frozenset(token for word in _PROPER_NAME.findall(text) for token in tokens(word, language=language))


def without_speakers(text: str, speakers: Collection[str], *, language: str = "english") -> str:
    """Remove the names of speakers from a query; return it unchanged if no keyword would remain.

    A name says whose memories the query is about. In an embedded query it pulls towards every text that contains the name.
    """
    roles = _USER | _ASSISTANT
    words = {part for name in speakers if name.casefold() not in roles for part in _NAME.findall(name.casefold())}
    # Stems are compared too: of other names an index has only the stem.
    stems = {token for word in words for token in tokens(word, language=language)}
    # Will, Rose and Mark are also words: if the query has capitals at all, a name starts with one.
    has_capitals = text != text.lower()

    def is_speaker(word: str) -> bool:
        if has_capitals and not word[0].isupper():
            return False
        word_stems = tokens(word, language=language)
        return word.casefold() in words or (bool(word_stems) and stems.issuperset(word_stems))

    rest = _NAME.sub(lambda match: "" if is_speaker(match.group(1)) else match.group(), text)
    if rest == text:
        return text
    rest = _BLANKS.sub("", rest).strip()
    return rest if tokens(rest, language=language) else text
