"""Decide whether two texts say the same, so that one of them is enough.

The similarity of vectors cannot decide it: "port 5432" and "port 5433" have a cosine of .996. So
the words decide: two texts are near-duplicates only if they differ in nothing but case,
punctuation, articles, contractions, polite words, and a phrase of time or place that stands at the
beginning of a sentence in one text and at its end in the other. Every other difference counts: a
number, a name, a unit, a negation, a sign, any word.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain

from memory_mesh.core.intake.prints import NAMES
from memory_mesh.core.model import MemoryRecord, MemoryType
from memory_mesh.core.text import split_sentences


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A number, date or time; a word, address or file name; a comma, which a negation may depend on; the
# signs of numbers (-5, .5), flags (-v), code (!ready, .env, a[0]), differences (5 - 3), feet and
# inches; every other sign that is not punctuation.
_TOKEN = re.compile(
    r"\d+(?:[.,:/-]\d+)*|[^\W\d_][^\W_]*(?:['._@/\\:]+[^\W_]+)*|[,;:]"
    r"|(?<![^\s(])(?:--?|\.)(?=[\w/.])|!(?=[\w(=])|(?<=\d )-(?= \d)|(?<=\d)['\"]|"
    r"(?<=\w)[\[({](?=\w)"
    r"|[^\s\w.!?¡¿\"'()\[\]{}…。！？、，；：「」『』（）-]|_"
)
# Perhaps after a label.
_HEADLINE = re.compile(r"(?:[^\W\d_]+: )?[^\W\d_]+(?: [^\W\d_]+){3,}[.!?]*")
_QUOTES = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "„": '"',
        "«": '"',
        "»": '"',
        "−": "-",
        "–": "-",
        "—": "-",
    }
)

_POLITE = re.compile(
    r"(?:^|(?<=[.!?:]\s))(?:(?:hi|hello|hey|hallo)(?: there)?[,!]\s+|(?:please|kindly|bitte|por "
    r"favor)\b,?\s+)+(?=\w)|(?:(?<=can you)|(?<=ill you)|(?<=ould you))\s+please\b"
    r"|,?\s+(?<!\bto )(?<!\byou )(?:please|bitte|por favor)(?=[\s.!?]*$)"
    r"|[,;.!-]\s*(?:many thanks|thanks(?: a lot| so much)?|thank you(?: very much| so much)?|"
    r"danke(?: schön)?|gracias|merci)(?=[\s.!]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_NOT = re.compile(
    r"(do|does|did|is|was|are|were|have|has|had|could|would|should|must|need|might)n'?t"
)
_ENDINGS = {"'re": "are", "'ve": "have", "'ll": "will", "'m": "am"}
_WHOLE = {
    "can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not",
    "let's": "let us", "i'm": "i am",
}  # fmt: skip
_BEFORE_IS = _words("he's she's it's that's what's there's who's where's here's how's when's")
_AFTER_HAS = _words("been got had become")
_AFTER_WOULD = _words("like love prefer rather appreciate want be")

# Words of other languages: a text with one of them is not English, and its `a` is not an article.
_NOT_ENGLISH = _words(
    "el los las del al que le les il lo un une una der das ein eine di gli em um uma och"
)
# Few is the opposite of a few, and a third is not the third.
_COUNTED = _words(
    "few little number second third fourth fifth sixth seventh eighth ninth tenth quarter"
)
_ACRONYMS = _words("us it who aids")  # also words
_NEGATIONS = _words(
    "no not never none nobody nothing neither nor without nicht kein keine nie pas ne non nunca sin"
)
_ASKING = _words(
    "what when where who why how which whose whom is are was were do does did can could will would "
    "should has have may shall am wer wann wo warum wie"
)
# What begins a phrase that may stand at either end of a sentence, and what may bind such a phrase
# to a part of it only.
_MOVABLE = _words(
    "on in at by every during since until before after for when if while unless today tomorrow "
    "yesterday tonight usually normally currently"
)
_BINDING = _words(
    "say says said tell tells told think thinks thought believe believes know knows knew hope "
    "hopes want wants wanted plan plans planned promise promised agreed decided ask asked claims "
    "that which who whose whom and but or because only not never before after when if while until "
    "unless since"
)
_UNIT_LENGTH = 3
_MAX_MOVED = 60  # words of a sentence in which a phrase may move


def is_near_duplicate(
    one: MemoryRecord, other: MemoryRecord, *, cosine: float | None, min_cosine: float
) -> bool:
    """Return whether two memories of one scope say the same. `cosine` is that of their vectors, or
    None if one has none.

    Turns of a conversation, lessons, memories with a key and memories of different times are never
    near-duplicates.
    """
    if any(
        each.speaker or each.turn is not None or each.key or each.memory_type == MemoryType.LESSON
        for each in (one, other)
    ):
        return False
    if one.event_time != other.event_time or (cosine is not None and cosine < min_cosine):
        return False
    return says_the_same(one.content, other.content)


def says_the_same(one: str, other: str) -> bool:
    """Return whether two texts differ only in what carries no meaning."""
    first, second = list(_sentences(one)), list(_sentences(other))
    if not first or not second:
        return one.split() == other.split()
    if list(chain(*first)) == list(chain(*second)):
        return True
    return len(first) == len(second) and all(map(_is_same_sentence, first, second))


def same_words(text: str) -> tuple[str, ...]:
    """Return the words of a text that carry meaning, sorted. Texts that say the same have the
    same words."""
    return tuple(sorted(chain(*_sentences(text)))) or tuple(text.split())


def _is_same_sentence(one: Sequence[str], other: Sequence[str]) -> bool:
    short = len(one) == len(other) <= _MAX_MOVED
    return one == other or (short and any(_is_moved(one, other, at) for at in range(1, len(one))))


def _is_moved(one: Sequence[str], other: Sequence[str], at: int) -> bool:
    """Return whether the part of a sentence from `at` on stands at the beginning of the other
    one."""
    front, back = one[:at], one[at:]
    phrase, clause = (front, back) if front[0] in _MOVABLE else (back, front)
    return [*back, *front] == other and phrase[0] in _MOVABLE and not _BINDING & {*clause}


def _sentences(text: str) -> Iterator[list[str]]:
    """Yield the words of each sentence that carry meaning."""
    lines = (
        " ".join(line.split())
        for line in unicodedata.normalize("NFC", text).translate(_QUOTES).splitlines()
    )
    plain = _POLITE.sub("", "\n".join(filter(None, lines)))
    capitals = plain.isupper()
    read: dict[str, list[str]] = {}  # a hostile text repeats its sentences
    for sentence in split_sentences(plain):
        if sentence not in read:
            read[sentence] = _words_of(sentence, capitals=capitals)
        if read[sentence]:
            yield read[sentence]


def _words_of(sentence: str, *, capitals: bool) -> list[str]:
    headline = sentence.istitle() and _HEADLINE.fullmatch(sentence)
    found = _TOKEN.findall(sentence.lower() if capitals or headline else sentence)
    words = list(_with_long_forms(_without_articles(found)))
    kept = words if _NEGATIONS & {*words} else [word for word in words if word not in ",;:"]
    while kept and kept[-1] in ",;:":
        kept.pop()
    first = words[2:3] if words[1:2] == [":"] else words[:1]  # a label may stand before it
    if sentence.rstrip().endswith("?") and kept and not _ASKING & {*first}:
        kept.append("?")  # a statement turned into a question
    return kept


def _without_articles(words: Sequence[str]) -> Iterator[str]:
    """Yield words in lower case without English articles. A capital inside a sentence makes an
    article a name: Ask An."""
    lower = [word.lower() for word in words]
    english = not _NOT_ENGLISH & {*lower}
    for at, (word, low) in enumerate(zip(words, lower, strict=True)):
        before, behind = words[at - 1] if at else ":", lower[at + 1] if at + 1 < len(words) else ""
        if low in ("a", "an", "the") and english and behind[:1].isalnum():
            name = word.istitle() and (before != ":" or (word == "A" and at > 0))
            if name or (low != "the" and (before[-1].isdigit() or behind in _COUNTED)):
                yield low
        else:
            yield low if word == low or not _has_case(word, before) else word


def _has_case(word: str, before: str) -> bool:
    """Return whether the case of a word carries meaning: of a unit (5 Mb), a flag (-V), code
    (getItem), US, and May."""
    low = word.lower()
    unit = before[-1].isdigit() and len(word) <= _UNIT_LENGTH and low not in ("am", "pm")
    code = before in ("-", "--") or (word[1:] != low[1:] and not word.isupper())
    return (
        unit
        or code
        or (word.isupper() and low in _ACRONYMS)
        or (word.istitle() and before != ":" and low in NAMES)
    )


def _with_long_forms(words: Iterator[str]) -> Iterator[str]:
    """Yield words with contractions written out."""
    every = list(words)
    for word, behind in zip(every, [*every[1:], ""], strict=False):
        ending = word[word.find("'") :] if "'" in word else ""
        if word in _WHOLE:
            yield from _WHOLE[word].split()
        elif word.endswith("t") and (match := _NOT.fullmatch(word)):
            yield from (match[1], "not")
        elif word in _BEFORE_IS:
            yield from (word[:-2], "has" if behind in _AFTER_HAS else "is")
        elif ending in _ENDINGS:
            yield from (word.removesuffix(ending), _ENDINGS[ending])
        elif ending == "'d" and behind in _AFTER_WOULD:
            yield from (word[:-2], "would")
        else:
            yield word
