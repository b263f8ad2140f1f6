"""One text, read in several ways: as a person sees it, with look-alike letters as those they look like, decoded, turned round."""

import re
from base64 import b64decode
from binascii import Error as NoBase64
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from unicodedata import normalize

from memory_mesh.core.safety.words import bare
from memory_mesh.core.text import INVISIBLE

Span = tuple[int, int]
Run = tuple[str, Span]  # what a stretch of the text says when it is read in another way


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a text. `places` says where each character comes from; without it, a stretch comes from its run as a whole."""

    text: str
    places: list[int] | None = None
    begins: tuple[int, ...] = ()  # of the runs
    spans: tuple[Span, ...] = ()

    def span(self, start: int, end: int) -> Span:
        """Where a stretch of the reading stands in the text itself."""
        if self.places is None:
            return self.spans[bisect_right(self.begins, start) - 1]
        first, last = self.places[start], self.places[max(start, end - 1)]
        return min(first, last), max(first, last) + 1


def plain(text: str) -> View:
    """As a person sees it: small letters, no accents, one form for each character, nothing invisible."""
    if text.isascii():
        return View(text.lower(), list(range(len(text))))
    gone = {at for found in INVISIBLE.finditer(text) for at in range(*found.span())}
    return _mapped((at, _folded(char)) for at, char in enumerate(text) if at not in gone)


def hidden(text: str, seen: View) -> Iterator[View]:
    """Every other reading that the text gives a reason for."""
    yield from _alike(seen)
    yield from _turned(seen)
    # All runs are one reading: a text may hold a hundred thousand of them, and each reading is searched for every list of words.
    if runs := [*_joined(seen), *_mended(seen), *_decoded(text)]:
        yield _gathered(runs)


def _gathered(runs: list[Run]) -> View:
    """Runs one below the other; no sentence goes on from one to the next."""
    lengths = (len(said) + len(_BETWEEN) for said, _ in runs[:-1])
    return View(
        _BETWEEN.join(said for said, _ in runs),
        begins=tuple(accumulate(lengths, initial=0)),
        spans=tuple(span for _, span in runs),
    )


_BETWEEN = "\n\n"


def _mapped(pieces: Iterable[tuple[int, str]]) -> View:
    places: list[int] = []
    chars: list[str] = []
    for at, piece in pieces:
        chars.append(piece)
        places.extend([at] * len(piece))
    return View("".join(chars), places)


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    return bare(normalize("NFKC", char).casefold())


# --- letters that look like others ---

_TWINS = "аеорсухіјѕԁһӏвкмнтгпьԛԝѵαβγεηικνορτυχωɑɡıոսցհօɩ"
_LATIN = "aeopcyxijsdhlbkmhtrnbqwvabyenikvoptuxwaginughoi"
_ALIKE = str.maketrans(_TWINS, _LATIN)  # a twin above, and what it looks like below it
_DIGITS = str.maketrans("013457@$", "oieastas")
_MIXED = re.compile(r"[a-z]{1,20}[013457@$][a-z013457@$]{1,20}|[013457@$]{1,3}[a-z][a-z013457@$]{1,20}")


def _alike(seen: View) -> Iterator[View]:
    """Cyrillic, Greek and other twins of Latin letters; digits within words for the letters they stand for."""
    if not seen.text.isascii() and (folded := seen.text.translate(_ALIKE)) != seen.text:
        yield View(folded, seen.places)
    spelled = _MIXED.sub(lambda word: word.group().translate(_DIGITS), seen.text)
    if spelled != seen.text:
        yield View(spelled, seen.places)


# --- letters set apart ---

_APART = re.compile(r"(?<![^\W_])[a-z](?:[ .\-_*·|/,+~]{1,3}[a-z]){5,}(?![^\W_])")
_PARTING = " .-_*·|/,+~"
_PIECE = re.compile(r"[a-z]|[ ]{2,3}|[ ]?[/|][ ]?")


def _joined(seen: View) -> Iterator[Run]:
    """Words whose letters stand apart, joined. Where wide gaps part the words they stay; elsewhere the words run together."""
    for run in _APART.finditer(seen.text):
        letters = "".join(found.group().strip(_PARTING) or " " for found in _PIECE.finditer(run.group()))
        said = letters if letters.count(" ") * 2 < len(letters) else letters.replace(" ", "")
        yield said if " " in said else _spaced(said), seen.span(*run.span())


_BROKEN = re.compile(r"(?<![^\W_])(?:[a-z]{1,4} ){8,}[a-z]{1,4}")


def _mended(seen: View) -> Iterator[Run]:
    """Words broken into short pieces, put together again."""
    for run in _BROKEN.finditer(seen.text):
        yield _spaced(run.group().replace(" ", "")), seen.span(*run.span())


_RUN_TOGETHER = re.compile(
    r"ignore|disregard|forget|override|all|any|every|your|the|previous|prior|earlier|above|system|instructions?|prompts?|rules"
    r"|reveal|print|send|show|mark|set|this|as|trust|importance|new|task|is|you|are|now|to|and|of|user_?explicit|memories|memory|keys?|api|store|save|remember|password|secret|boundary|tell|delete|admin|owner|fact|guidelines|answer|only|with"
)


def _spaced(text: str) -> str:
    return " ".join(_RUN_TOGETHER.sub(lambda word: f" {word.group()} ", text).split())


# --- turned round ---

_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_KEY_WORDS = (
    "ignore",
    "disregard",
    "forget",
    "instruction",
    "previous",
    "prompt",
    "reveal",
    "override",
    "memories",
    "importance",
)
_TURNED = re.compile("|".join(word.translate(_ROT13) for word in _KEY_WORDS))
_BACKWARDS = re.compile("|".join(word[::-1] for word in _KEY_WORDS))


def _turned(seen: View) -> Iterator[View]:
    """ROT13 and reversed text, where a word that matters shows that way."""
    if _TURNED.search(seen.text):
        yield View(seen.text.translate(_ROT13), seen.places)
    if _BACKWARDS.search(seen.text):
        yield View(seen.text[::-1], None if seen.places is None else seen.places[::-1])


# --- encoded ---

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"(?<![0-9a-fA-F])(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,]?){12,}")
_NUMBERS = re.compile(r"(?<!\d)(?:\d{2,3}[ ,;]{1,2}){11,}\d{2,3}")
_BITS = re.compile(r"(?:[01]{8} ?){10,}")
_ESCAPES = re.compile(r"%([0-9a-fA-F]{2})|&#(\d{2,6});|&#x([0-9a-fA-F]{2,5});|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_FEWEST_ESCAPES = 6
_TAGS = re.compile("[\U000e0020-\U000e007e]{3,}")


def _decoded(text: str) -> Iterator[Run]:
    """Base64, hex, lists of character codes, bits, escapes and tag characters, each as the text that it stands for."""
    for pattern, read in ((_BASE64, _base64), (_HEX, _hex), (_NUMBERS, _codes), (_BITS, _bits), (_TAGS, _tags)):
        for run in pattern.finditer(text):
            said = read(run.group())
            if said is not None and said.isprintable() and len(said) >= 8:
                yield plain(said).text, run.span()
    if len(_ESCAPES.findall(text)) >= _FEWEST_ESCAPES:
        yield plain(_ESCAPES.sub(_escape, text)).text, (0, len(text))


def _base64(run: str) -> str | None:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _told(b64decode(body + "=" * (-len(body) % 4)))
    except NoBase64:
        return None


def _hex(run: str) -> str | None:
    digits = re.sub(r"0x|\\x|[ :,]", "", run)
    return _told(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _codes(run: str) -> str | None:
    return "".join(chr(int(code)) for code in re.findall(r"\d+", run))


def _bits(run: str) -> str | None:
    return "".join(chr(int(byte, 2)) for byte in re.findall(r"[01]{8}", run))


def _tags(run: str) -> str | None:
    return "".join(chr(ord(char) - 0xE0000) for char in run)


def _told(raw: bytes) -> str | None:
    try:
        return " ".join(raw.decode().split())
    except UnicodeDecodeError:
        return None


def _escape(found: re.Match[str]) -> str:
    percent, decimal, *hexadecimal = found.groups()
    code = int(decimal) if decimal else int(percent or next(filter(None, hexadecimal)), 16)
    return chr(code) if code < 0x110000 else found.group()
