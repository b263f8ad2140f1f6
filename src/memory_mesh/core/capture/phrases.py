"""Phrases as regular expressions: `phrases("maybe / i (think|guess) / not sure")` finds each of them as whole words."""

import re

from memory_mesh.core.text import LazyRegex


def phrases(*alternatives: str, start: bool = False) -> LazyRegex:
    """Return a pattern of the phrases that ` / ` separates, in any case; `start` only finds them at the beginning."""
    each = [phrase.strip() for text in alternatives for phrase in text.split(" / ") if phrase.strip()]
    source = "|".join(each).replace("(", "(?:").replace("(?:?", "(?")
    before = "^" if start else r"(?<![\w-])"
    return LazyRegex(f"{before}(?:{source})(?!\\w)", re.IGNORECASE)


def normalized(text: str) -> str:
    """Return a text on one line, with plain apostrophes, as phrases expect it."""
    return " ".join(text.split()).replace("’", "'")
