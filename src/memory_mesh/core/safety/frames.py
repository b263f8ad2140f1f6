"""The document's block of memories has lines of its own. Lines of a memory that pass for them are quoted."""

import re
from unicodedata import normalize

from memory_mesh.core.text import visible

# Whatever any reader takes for the end of a line.
_LINE = re.compile("[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212", "-"))
_FRAME = re.compile(r"-{2,}\s*MEMORY\b|\[\s*(?:ATTENTION\s+DIRECTIVE|MEMORY\s+CONTEXT)\s*\]|Type:.*\|\s*Source:", re.IGNORECASE)
_HINT = re.compile("MEMORY|ATTENTION|Source", re.IGNORECASE)


def unforged(content: str) -> str:
    """A memory's text, with `> ` before each line that looks like one of the frame around it."""
    # Most texts hold none of the words, and need not be taken apart.
    return _LINE.sub(_quoted, content) if _HINT.search(_seen(content)) else content


def _quoted(line: re.Match[str]) -> str:
    said = line.group()
    return f"> {said}" if _FRAME.match(_seen(said).strip()) else said


def _seen(text: str) -> str:
    """As a reader sees it: nothing invisible, one form for each letter and dash."""
    return normalize("NFKC", visible(text)).translate(_DASHES)
