"""Keywords: the tokenizer of texts and queries, the BM25 of every store, and spellings."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import log
from typing import Protocol

from memory_mesh.core.errors import SettingsError, shown
from memory_mesh.core.model import Hit
from memory_mesh.core.text import without_masks

K1, B = 1.2, 0.75
_SHORTEST_PLAIN_WORD = 3

# A word with its suffix: C++ and C# stay whole, and an apostrophe does not split don't.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*(?:\+\+|#(?!\w))?")
# A flag is two letters. Skin tones, joiners and signs of gender are not part of it: 👩🏽‍💻 is 👩
# and 💻.
EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}|"
    "[\u231a\u231b\u23e9-\u23fa\u2600-\u263f\u2641\u2643-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50"
    "\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
# Signs after a letter that belong to its word: accents, Hebrew and Arabic points, and vowels from
# Devanagari to Khmer.
MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0dff\u0e31\u0e34-"
    "\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u109d\u17b4-\u17d3"
    "\u17dd"
)
_WITH_MARKS = rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*"
_WORD_OR_EMOJI = re.compile(_WORD.pattern.replace(r"[^\W_]+", _WITH_MARKS) + f"|{EMOJI}")
# CamelCase: fooBar → foo Bar, HTTPServer → HTTP Server, v2beta stays whole.
CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Chinese, Japanese and Korean; and Thai, Lao, Burmese and Khmer, which do not separate words
# either.
_SOUTH_EAST = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u109d\u1780-\u17d3"
CJK = re.compile(
    f"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af{_SOUTH_EAST}]+)"
)
_PLAIN = re.compile(r"[a-z]+")
# Letters that Unicode does not decompose, and letters that are also written as two: Müller is
# Muller and Mueller.
_LETTERS = str.maketrans({
    "ø": "o", "œ": "oe", "æ": "ae", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ħ": "h",
    "ŧ": "t", "ŋ": "n", "ə": "e",
})  # fmt: skip
_DIGRAPHS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
_FOLDED = "".join(map(chr, _LETTERS | _DIGRAPHS))
CLOSERS = " \t\r\n\"'”’»)]}*_`"
QUESTION_MARKS = ("?", "？", "؟", "\u037e")
_SPECIAL = re.compile(f"[{_FOLDED}{_FOLDED.upper()}{MARKS}{_SOUTH_EAST}]|{EMOJI}")

STOP_WORDS = frozenset(
    """about above after again against all and any are aren't because been before being below
    between both but can can't cannot could couldn't did didn't does doesn't doing don't down during
    each few for from further had hadn't has hasn't have haven't having her here hers herself him
    himself his how into isn't its itself just let's more most mustn't myself nor not now off once
    only other our ours ourselves out over own same shan't she should shouldn't some such than that
    that's the their theirs them themselves then there these they they're this those through too
    under until upon very was wasn't were weren't what what's when where which while who whom why
    will with won't would wouldn't you your yours yourself
    yourselves""".split()  # noqa: SIM905  (a list of words reads best as words)
)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802  (the library's own name)
    def stemWords(self, words: Sequence[str]) -> list[str]: ...  # noqa: N802


def tokens(text: str, *, language: str = "english") -> list[str]:
    """Return the keywords of a text, in order, with repeats. Masks are not words, but a
    pseudonym stands for one value."""
    stemmer, keywords, text = (
        stemmer_of(language),
        list[str](),
        without_masks(text, keep_pseudonyms=True),
    )
    others: dict[str, list[str]] = {}  # a hostile text repeats such words
    for word in (
        _WORD.findall(text)
        if text.isascii()
        else _WORD_OR_EMOJI.findall(unicodedata.normalize("NFKC", text))
    ):
        # The fast path of most words makes a cache of words unnecessary: a text takes as long as
        # with an empty cache.
        if word.isascii() and word.isalpha() and (word.islower() or word.istitle()):
            low = word.lower()
            if len(low) >= _SHORTEST_PLAIN_WORD and low not in STOP_WORDS:
                keywords.append(stemmer.stemWord(low))
            continue
        if word not in others:
            parts = [part for part in CAMEL_CASE.split(word) if part]
            parts = [word, *parts] if len(parts) > 1 else parts  # `foobar` finds `fooBar` too
            others[word] = [keyword for part in parts for keyword in _word(part, stemmer)]
        keywords += others[word]
    return keywords


def is_question(text: str) -> bool:
    """Return whether a text ends with a question mark, apart from closing signs."""
    return text.rstrip(CLOSERS).endswith(QUESTION_MARKS)


def completed(keywords: list[str], text: str, *, language: str = "english") -> list[str]:
    """Return the stored keywords of a text and those that earlier versions left out: emoji,
    other spellings, words with signs."""
    if text.isascii() or not _SPECIAL.search(text := unicodedata.normalize("NFKC", text)):
        return keywords
    words = _WORD_OR_EMOJI.findall(without_masks(text, keep_pseudonyms=True))
    special = " ".join(word for word in words if _SPECIAL.search(word))
    known = frozenset(keywords)
    return keywords + [word for word in tokens(special, language=language) if word not in known]


def _word(word: str, stemmer: _Stemmer) -> list[str]:
    if word.isascii():
        return _keyword(word.lower(), stemmer, acronym=word.isupper())
    if not word[0].isalnum():  # an emoji
        return [word]
    if CJK.search(word):
        return _cjk(word, stemmer)
    low = word.casefold().replace("’", "'")
    folded = dict.fromkeys(map(_folded, dict.fromkeys((low, low.translate(_DIGRAPHS)))))
    return list(
        dict.fromkeys(
            keyword
            for each in folded
            for keyword in _keyword(each, stemmer, acronym=word.isupper())
        )
    )


def _folded(low: str) -> str:
    """Return a word without accents, in plain letters where it has such."""
    decomposed = unicodedata.normalize("NFKD", low.translate(_LETTERS))
    if decomposed.isalpha():  # no accent is a letter
        return decomposed
    return "".join(char for char in decomposed if not unicodedata.combining(char)) or low


def _keyword(low: str, stemmer: _Stemmer, *, acronym: bool) -> list[str]:
    if low in STOP_WORDS:
        return []
    low = low.removesuffix("'s")
    if not _PLAIN.fullmatch(low):
        return [low]
    if len(low) >= _SHORTEST_PLAIN_WORD:
        return [stemmer.stemWord(low)]
    # A short word in capitals is an acronym (AI, UK); other short words carry no meaning.
    return [low] if acronym and len(low) > 1 else []


def _cjk(word: str, stemmer: _Stemmer) -> list[str]:
    """Return each pair of adjacent characters of a CJK run, and the keywords of what lies
    between the runs."""
    keywords: list[str] = []
    for at, part in enumerate(CJK.split(word)):
        if at % 2:  # a run
            keywords.extend(
                [part] if len(part) == 1 else [part[i : i + 2] for i in range(len(part) - 1)]
            )
        elif part:
            keywords.extend(_word(part, stemmer))
    return keywords


@cache
def stemmer_of(language: str) -> _Stemmer:
    """Return the stemmer of a language, or raise `SettingsError`."""
    import Stemmer  # loaded by the first text that is tokenized

    if language not in (known := Stemmer.algorithms()):
        raise SettingsError(
            f"unknown stemmer_language {shown(language)}",
            expected=f"one of {', '.join(sorted(known))}",
        )
    stemmer: _Stemmer = Stemmer.Stemmer(language, 0)  # 0: it keeps no words
    return stemmer


@dataclass(frozen=True, slots=True)
class Corpus:
    """The number of documents that BM25 scores against, and of all their tokens."""

    documents: int
    length: int

    def __add__(self, other: "Corpus") -> "Corpus":
        return Corpus(self.documents + other.documents, self.length + other.length)


@dataclass(frozen=True, slots=True)
class Posting:
    """A document that contains a token: how often, and the length of the document in tokens."""

    id: str
    times: int
    length: int


def bm25(
    postings: Mapping[str, Sequence[Posting]],
    corpus: Corpus,
    query: Iterable[str],
    frequencies: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Return the score of every document that contains a token of the query; always above zero.

    `frequencies` has the number of documents with each token, if the postings are only of some of
    them.
    """
    scores: dict[str, float] = {}
    average = corpus.length / corpus.documents if corpus.documents else 1.0
    # Sorted, so that float sums are equal on every store.
    for token, weight in sorted(Counter(query).items()):
        token_postings = postings.get(token, ())
        frequency = len(token_postings) if frequencies is None else frequencies.get(token, 0)
        rarity = log(1 + (corpus.documents - frequency + 0.5) / (frequency + 0.5))
        for posting in token_postings:
            dampened = posting.times + K1 * (1 - B + B * posting.length / average)
            part = weight * rarity * posting.times * (K1 + 1) / dampened
            scores[posting.id] = scores.get(posting.id, 0.0) + part
    return scores


def best(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Sort ids by score, best first; equal scores by id, descending."""
    return sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)


# --- function words ---
# A question and a memory that share only function words have nothing in common. They are removed
# from queries, and only from those in that language: many are words of English too (die, war,
# come).

_LATIN_WORD = re.compile(r"[^\W\d_]+")
# Of a language that make a text one of it; one suffices if the text has letters that English does
# not have.
_MIN_WORDS = 2
_ENGLISH = STOP_WORDS | frozenset(
    "a an as at be by do go he i if in is it me my no of on or so to up us we am".split()  # noqa: SIM905
)
_FUNCTION_WORDS = tuple(
    frozenset(words.split())
    for words in (
        # German
        """aber als am an auch auf aus bei bin bis bist da dann das dass dem den denn der des dich
        die dies diese diesem diesen dieser dir doch du durch ein eine einem einen einer eines er es
        euch für gibt habe haben hast hat hatte hier ich ihm ihn ihr ihre im in ist ja kann kein
        keine können man mein meine mich mir mit muss nach nicht noch nur oder ohne schon sein seine
        sich sie sind so soll über um und uns unser unter viel viele vom von vor wann war waren
        warum was welche welchem welchen welcher welches wem wen wenn wer werden wie wieder wird wo
        wurde zu zum zur""",
        # French
        """ai alors au aussi aux avec avez avons c car ce cela ces cet cette combien comme comment d
        dans de des donc du elle elles en est et être eu fait il ils j je l la le les leur leurs lui
        ma mais me mes moi mon n ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand
        que quel quelle quelles quels qui quoi s sa sans se ses si son sont sur ta te tes toi ton tu
        un une vos votre vous y""",
        # Spanish
        """al algo como cómo con cual cuál cuales cuáles cuando cuándo cuanto cuánto cuanta cuánta
        cuantos cuántos cuantas cuántas de del desde donde dónde el él ella ellos en entre era es
        esa ese eso esta está están este esto fue ha hace han hasta hay la las le les lo los más me
        mi mis muy no nos o para pero por porque qué que quien quién se según ser si sí sin sobre
        son su sus también te tiene tu tus un una unas uno unos y ya yo""",
        # Portuguese
        """ao aos as até com como da das de dela dele do dos e é ela ele eles em entre era essa esse
        esta está este eu foi há isso isto já lhe mais mas me meu minha muito na nas não no nos nós
        num numa o onde os ou para pela pelas pelo pelos por porque quais qual quando quanto quantos
        quantas que quem se sem ser seu seus são sua suas também te tem ter um uma umas uns você""",
        # Italian
        """a ad agli ai al alla alle allo anche c che chi ci come con cosa cui d da dagli dai dal
        dalla dalle de degli dei del dell della delle dello di dopo dove e è era fra gli ha hanno ho
        i il in io l la le lei lo loro lui ma mi mia mio ne nei nel nella nelle non o per perché più
        qual quale quali quando quanta quante quanti quanto quello questa queste questi questo se
        sei si sia sono su sua suo sul sulla tra tu tuo un una uno voi""",
        # Dutch
        """aan al als bij dan dat de deze die dit door een en er geen gewoon haar had heb hebben
        heeft het hij hoe hun ik in is je jij kan maar me mee met mijn naar niet nog nu of om onder
        ons ook op over te toen tot uit van veel voor waar waarom wanneer was wat we weet welk welke
        werd wie wil worden wordt zal ze zich zij zijn zo zonder zou""",
        # Turkish
        """ama ben bir biz bu bunu çok da daha de değil diye en gibi hangi hangisi hangisidir hem
        her için ile ise kaç kadar kim mı mi mu mü nasıl ne neden nedir nerede niçin o olan sen siz
        şey şu ve veya ya""",
        # Polish
        """a albo ale bez być był była było ci co czy dla dlaczego do gdzie i ich ile jak jaka jaki
        jakie jako jest jego jej już kiedy kto która które który ma mi mnie można na nad nie niż o
        od on ona po pod przez się są ta tak tam te tego ten to tu ty tylko w we z za ze że""",
    )
)
_IN_ANY = frozenset().union(*_FUNCTION_WORDS)


@lru_cache(maxsize=8)  # a search asks twice
def function_words(text: str) -> frozenset[str]:
    """Return the function words of the language, other than English, that a text is written in;
    empty for English."""
    words = frozenset(word.casefold() for word in _LATIN_WORD.findall(text))
    needed = max(len(words & _ENGLISH) + 1, _MIN_WORDS if text.isascii() else 1)
    if len(words & _IN_ANY) < needed:  # of all languages together
        return frozenset()
    found = max((words & known for known in _FUNCTION_WORDS), key=len)
    return found if len(found) >= needed else frozenset()


def query_tokens(text: str, *, language: str = "english") -> list[str]:
    """Return the keywords of a query: those of a text, without the function words of its
    language."""
    keywords = tokens(text, language=language)
    if not (dropped := function_words(text)):
        return keywords
    small = {token for word in dropped for token in tokens(word, language=language)}
    return [token for token in keywords if token not in small] or keywords


# --- spelling ---

_MIN_STEM, _MAX_LETTERS = 4, 24
_ENDING = 4  # letters in which one may be missing or wrong
_ENDING_LETTERS = "deginlty"  # of -ing, -ed, -ly and -tion


def edits(one: str, other: str, limit: int) -> int:
    """Return how many letters must be inserted, deleted, replaced or swapped with their
    neighbour; `limit` + 1 if more."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    start = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    longer = max(len(one), len(other))
    if longer <= 1 or (longer == 2 and one == other[::-1]):
        return min(longer, 1)
    return min(_distance(one, other), limit + 1) if limit > 1 else limit + 1


def hidden_stems(word: str, *, language: str = "english") -> set[str]:
    """Return the stems of a word that a typo in its ending keeps from being stemmed: learn of
    "learnnig"."""
    size = len(word)
    if not (_MIN_STEM + 2 <= size <= _MAX_LETTERS and word.isascii() and word.isalpha()):
        return set()
    respelt = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, size - 1)]
    respelt += [word[:at] + word[at + 1 :] for at in range(1, size)]
    for at in range(size - _ENDING, size):
        before, behind = word[:at], (word[at:], word[at + 1 :])
        respelt += [before + letter + rest for rest in behind for letter in _ENDING_LETTERS]
    return {
        stem
        for stem in stemmer_of(language).stemWords(respelt)
        if _MIN_STEM <= len(stem) <= size - 2
    }


def _distance(one: str, other: str) -> int:
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for at, left in enumerate(one, start=1):
        earlier, before, row = before, row, [at, *row[1:]]
        for to, right in enumerate(other, start=1):
            row[to] = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (left != right))
            if at > 1 and to > 1 and left == other[to - 2] and one[at - 2] == right:
                row[to] = min(row[to], earlier[to - 2] + 1)
    return row[-1]


# --- scores of documents that are read one by one ---
# Numpy is loaded by the first comparison of vectors, not by importing this module.


def keyword_scores(
    documents: Iterable[tuple[str, Sequence[str]]], tokens: Sequence[str]
) -> list[tuple[str, float]]:
    """Return the id and BM25 score of each document that contains one of the tokens, best first.

    It scans all documents; one without keywords does not count as a document.
    """
    query, number, length = set(tokens), 0, 0
    postings: defaultdict[str, list[Posting]] = defaultdict(list)
    for id_, words in documents:
        number, length = number + bool(words), length + len(words)
        for token in query.intersection(words):
            postings[token].append(Posting(id_, words.count(token), len(words)))
    return best(bm25(postings, Corpus(number, length), tokens))


def best_cosines(query: bytes, rows: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
    """Return the ids with the best cosines, best first. An id counts with its best vector; a
    vector of length zero scores 0."""
    if not rows:
        return []
    import numpy as np

    vector = np.frombuffer(query, "<f4").astype(np.float64)
    matrix = (
        np.frombuffer(b"".join(data for _, data in rows), "<f4")
        .reshape(len(rows), -1)
        .astype(np.float64)
    )
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
    # Row by row: the score of a vector must not depend on the other rows of the batch.
    dots = np.einsum("ij,j->i", matrix, vector)
    scores = np.divide(dots, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    by_id: dict[str, float] = {}
    for (id_, _), score in zip(rows, scores.tolist(), strict=True):
        by_id[id_] = max(score, by_id.get(id_, -1.0))
    return [Hit(*found) for found in best(by_id)[:limit]]
