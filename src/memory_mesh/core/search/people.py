"""Who a query is about: speakers by their names, and the two sides of a chat by "I" and "you".

A name says whose memories are asked for, not what about. In an embedded query it pulls towards every text that holds the name;
without it, likeness finds what is asked for.
"""

import re
from collections.abc import Collection

from memory_mesh.core.search.lexical import tokens

_ASKER = frozenset({"user", "human"})
_ASKED = frozenset({"assistant", "ai", "bot", "model"})
_I = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)
_YOU = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_SIDES = _ASKER | _ASKED
_NAME = re.compile(r"([^\W\d_]+)(?:['’]s?\b)?")
_PROPER = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][a-z]+")
_BLANKS = re.compile(r"\s+(?=[?.!,;:]|$)|(?<=\s)\s+")


def roles(query: str) -> frozenset[str]:
    """The speakers of a chat, in lower case, that a query means without naming them."""
    asker = _ASKER if _I.search(query) else frozenset()
    return asker | _ASKED if _YOU.search(query) else asker


def names(query: str, *, language: str = "english") -> frozenset[str]:
    """The keywords of what looks like a name: a capital where no sentence begins."""
    return frozenset(token for found in _PROPER.findall(query) for token in tokens(found, language=language))


def without(query: str, speakers: Collection[str], *, language: str = "english") -> str:
    """The query without the names of speakers; as it is where nothing would be left to look for."""
    words = {part for name in speakers if name.casefold() not in _SIDES for part in _NAME.findall(name.casefold())}
    # By their stems too, which is all that an index knows of a name that nobody speaks under.
    stems = {token for word in words for token in tokens(word, language=language)}
    # Will, Rose and Mark are words as well: where a query has capitals at all, a name has one.
    capitals = query != query.lower()

    def named(word: str) -> bool:
        if capitals and not word[0].isupper():
            return False
        held = tokens(word, language=language)
        return word.casefold() in words or (bool(held) and stems.issuperset(held))

    rest = _NAME.sub(lambda found: "" if named(found.group(1)) else found.group(), query)
    if rest == query:
        return query
    rest = _BLANKS.sub("", rest).strip()
    return rest if tokens(rest, language=language) else query
