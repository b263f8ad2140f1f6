"""Passwords that stand before their name: `use hunter2 as the password`, `hunter2 is my password`."""

from memory_mesh.core.redaction.names import Name
from memory_mesh.core.redaction.pattern import Span
from memory_mesh.core.redaction.values import looks_secret, plain_word
from memory_mesh.core.text import LazyRegex

_AS = LazyRegex(
    r"(?i)(?:with|using|use|enter|type(?:\sin)?|try|via|to|mit|nimm|avec|con|usa)\s{1,3}([\"'“][^\"'”\n]{1,64}[\"'”]|\S{1,64})\s{1,3}"
    r"(?:as|als|comme|como|come)\s{1,3}(?:the|my|your|our|his|her|its|a|das|mein|le|la|mon|el|mi|il)?\s{0,3}(?:[\w-]{1,20}\s)?$"
)
_IS = LazyRegex(
    r"(?i)(?:^|[\s(])([^\s(]{5,64})\s{1,3}(?:is|ist|est|es)\s{1,3}(?:the|my|our|your|his|her|das|mein|le|mon|mi|la)\s{1,3}"
    r"(?:[\w-]{1,20}\s){0,2}$"
)
_KEYED = LazyRegex(r"[\"']([^\"'\n]{3,128})[\"'],\s?(?:for|with)[kK]ey\s?[:=]\s?[\"'][\w.-]{0,40}$")
_COMPARED = LazyRegex(r"[\"']([^\"'\n]{3,128})[\"']\s{0,3}[=!]={1,2}\s{0,3}[\w.$]{0,40}$")
# Each form with words of which one must stand near.
_BEFORE = (
    (_AS, (" as ", " als ", " comme ", " como ", " come ")),
    (_IS, (" is ", " ist ", " est ", " es ")),
    (_COMPARED, ("==", "!=")),
    (_KEYED, ("forKey", "withKey")),
)
_BEFORE_CUE = LazyRegex("[=!]=|Key| (?:als|as|com[eo]|comme|is|ist|est|es) ")


def before(text: str, name: Name) -> Span | None:
    """Match a value before its name: `use hunter2 as the password`, `hunter2 is my password`, `"hunter2" == password`."""
    near = text[max(0, name.start - 48) : name.start]
    for form, cues in _BEFORE if _BEFORE_CUE.search(near) else ():
        if any(cue in near for cue in cues) and (found := form.search(text, max(0, name.start - 120), name.start)):
            start, end = found.span(1)
            start, end = (start + 1, end - 1) if text[start] in "\"'“" and end - start > 2 else (start, end)
            sure = form is not _IS and text[start - 1] in "\"'“" and not plain_word(text[start:end])
            return (start, end) if sure or looks_secret(text[start:end]) else None
    return None
