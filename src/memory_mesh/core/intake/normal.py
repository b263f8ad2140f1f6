"""Compare texts by what they say: without spaces, forms of characters, and the capitals that carry no meaning.

Equal texts are one memory, so what is ignored here is lost. The capital of an ordinary word is ignored (Mondays and mondays),
and so are the capitals of an emphasised word (NEVER) or of a whole text. All other capitals count: units (100 Mb and 100 MB),
flags (-v and -V), acronyms (US and us), code and file names (getItem, README.md), single letters, and names that are also words
(May, Polish). `similar` decides about near-duplicates, and may ignore more.
"""

import unicodedata

from memory_mesh.core.text import LazyRegex

_DISTINCT = LazyRegex("([¹²³¼-¾⅐-⅞⁰-⁹₀-₉ß]+)")
_JOINTS = str.maketrans("-’", "''")  # that join parts of a word, as the apostrophe does
_AROUND = ".,;:!?…\"'’‘“”„«»¿¡()[]{}*"
_CLOSING = "\"'’”»)]}*"
_ENDS_SENTENCE = (".", "!", "?", ":", "…")
_PRONOUN = frozenset({"I", "I'm", "I'd", "I’m", "I’d"})
_HOURS = frozenset({"am", "pm"})
_UNIT_LENGTH = 3
# fmt: off
# Names that are also words, and whose capital is the only difference.
NAMES = frozenset({
    "may", "march", "august", "polish", "turkey", "china", "mark", "bill", "frank", "rose", "will", "word", "teams",
    "slack", "go",
})
# fmt: on
_ACRONYM_LENGTH = 3
_LONG_ACRONYMS = frozenset({"AIDS"})  # that are also words


def folded_text(content: str) -> str:
    """Return a text without differences of case, spaces and forms of characters.

    Raised and lowered digits, fractions and ß stay: 10² is not 102, and Maßen are not Massen.
    """
    return " ".join(_plain(content, fold=True).split())


def normal_text(content: str) -> str:
    """Return a text without the differences that duplicates may have; `folded_text` if it has no case that counts."""
    if content == content.lower():
        return folded_text(content)
    words = _plain(content, fold=False).split()
    shouted = content.isupper() and len(words) > 1
    folded = _plain(" ".join(words), fold=True).split(" ")
    cased = {(word, before) for word, before, low in zip(words, [".", *words], folded, strict=False) if word != low}
    kept = {pair for pair in cased if _has_case(*pair, shouted=shouted)}
    if not kept:
        return " ".join(folded)
    trios = zip(words, [".", *words], folded, strict=False)
    return " ".join(word if word != low and (word, before) in kept else low for word, before, low in trios)


def _has_case(word: str, before: str, *, shouted: bool) -> bool:
    """Return whether the capitals of a word carry meaning. A text that is `shouted` is in capitals as a whole."""
    core = word.strip(_AROUND)
    if core == core.lower() or core in _PRONOUN:
        return False
    starts = before.rstrip(_CLOSING).endswith(_ENDS_SENTENCE)
    parts = core.translate(_JOINTS).split("'")
    if not all(map(str.isalpha, parts)) or _is_unit(core, before):
        return True
    if shouted or (core == "A" and starts):
        return False
    return len(core) == 1 or not all(map(_is_ordinary, parts)) or (core.lower() in NAMES and not starts)


def _is_ordinary(part: str) -> bool:
    """Return whether a word begins with a capital at most, or is emphasised by capitals and too long for an acronym."""
    emphasised = part.isupper() and len(part) > _ACRONYM_LENGTH and part not in _LONG_ACRONYMS
    return emphasised or part[1:] == part[1:].lower()


def _is_unit(core: str, before: str) -> bool:
    """Return whether a word is short and stands behind a number; hours are no units."""
    return before[-1:].isdigit() and len(core) <= _UNIT_LENGTH and core.lower() not in _HOURS


def _plain(text: str, *, fold: bool) -> str:
    """Return a text in one form of characters, and in lower case if `fold` is set."""
    if text.isascii():
        return text.lower() if fold else text
    parts = _DISTINCT.split(unicodedata.normalize("NFC", text))
    plain = [unicodedata.normalize("NFKC", part) for part in parts[::2]]  # every other part has the distinct characters
    parts[::2] = [part.casefold() for part in plain] if fold else plain
    return "".join(parts)
