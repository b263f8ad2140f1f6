"""Stage 3, normalisation: headings, list marks, quotes and spaces in one form each. Code keeps its own."""

import re
import unicodedata

from memory_mesh.core.scrubbing.code import outside
from memory_mesh.core.scrubbing.settings import ScrubSettings
from memory_mesh.core.text import CONTROL, REDUNDANT, REORDERING, LazyRegex

# `## Title ##` is a heading; `#123`, `C#7` and `#hashtag` are none, for no space follows.
HEADING = re.compile(r"^(#{1,6})[ \t]++(\S[^\n]*)$", re.MULTILINE)
_UNDERLINED = re.compile(r"(?:(?<=\n\n)|\A)([^\n#>|\-=\s][^\n]{0,200})\n={3,}[ \t]*(?=\n|\Z)")
# `+` marks an added line in a diff as often as a list, so it stays; so does a lone `*` that may be a product.
_BULLET = re.compile(r"^([ \t]*)[•‣◦▪●∙][ \t]*(?=\S)", re.MULTILINE)
_STARRED = re.compile(r"(?:^[ ]{0,3}\*[ ]+\S[^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_STAR = re.compile(r"^([ ]{0,3})\*[ ]+", re.MULTILINE)

_SIGNS = {
    **dict.fromkeys(map(ord, "“”„‟"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛"), "'"),
    **dict.fromkeys(map(ord, "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"), " "),
    0x85: "\n",
    0x2028: "\n",
    0x2029: "\n\n",
}
# Joiners within emoji and scripts stay.
_REMOVED = LazyRegex(rf"[{CONTROL}\x0b\x0c{REDUNDANT}{REORDERING}]")


def normalised(text: str, settings: ScrubSettings) -> str:
    """The text in one form."""
    return outside(text, lambda piece: _normal(piece, settings))


def title(heading: re.Match[str]) -> str:
    """What a heading says, without the marks that may close it."""
    words = heading.group(2).rstrip()
    bare = words.rstrip("#")
    return bare.rstrip() if bare != words and bare.endswith((" ", "\t")) else words


def _normal(piece: str, settings: ScrubSettings) -> str:
    rules = settings.normalisation
    if rules.punctuation and not piece.isascii():
        piece = unicodedata.normalize("NFC", piece)
    if rules.punctuation:
        piece = _REMOVED.sub("", piece.translate(_SIGNS))
    if rules.headings:
        piece = HEADING.sub(lambda found: f"{found.group(1)} {title(found)}", _UNDERLINED.sub(r"# \1", piece))
    if rules.lists:
        piece = _BULLET.sub(r"\1- ", piece)
        piece = _STARRED.sub(lambda block: _STAR.sub(r"\1- ", block.group()), piece)
    return piece
