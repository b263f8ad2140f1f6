"""Stage 4, chunking: pieces of a bounded number of tokens, cut where a reader would cut. No word is lost between them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_mesh.core.scrubbing.code import blocks
from memory_mesh.core.scrubbing.normalise import HEADING, title
from memory_mesh.core.scrubbing.settings import Chunking
from memory_mesh.core.text import TokenCounter

# Where to cut, best place first: between paragraphs, lines, sentences, words.
_CUTS = tuple(re.compile(cut) for cut in (r"\n\n+", r"\n", r"(?<=[.!?。！？])\s+", r"\s+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a text, and where it stands."""

    text: str
    start: int
    end: int
    section: tuple[str, ...]
    tokens: int
    source: str | None = None
    timestamp: str | None = None
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What the scrubber gives."""

    text: str
    chunks: tuple[Chunk, ...]


def chunks(text: str, rules: Chunking, count: TokenCounter) -> tuple[Chunk, ...]:
    """The text in pieces; a section begins a new one."""
    sections = list(_sections(text)) if rules.heading_aware else [(0, len(text), ())]
    return tuple(chunk for start, end, path in sections for chunk in _packed(text, start, end, path, rules, count))


def _sections(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where each section begins and ends, and the headings above it."""
    path: list[tuple[int, str]] = []
    begin = 0
    for at, level, name in _headings(text):
        if text[begin:at].strip():
            yield begin, at, tuple(name for _, name in path)
        path = [*(above for above in path if above[0] < level), (level, name)]
        begin = at
    yield begin, len(text), tuple(name for _, name in path)


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    for block, code in blocks(text):
        if not code:
            yield from ((at + found.start(), len(found.group(1)), title(found)) for found in HEADING.finditer(block))
        at += len(block)


def _packed(text: str, start: int, end: int, path: tuple[str, ...], rules: Chunking, count: TokenCounter) -> list[Chunk]:
    """Neighbouring pieces together, as long as they fit; what is too small to stand alone joins the one before it."""
    spans: list[tuple[int, int, int]] = []
    for begin, stop, tokens in _pieces(text, start, end, rules, count, 0):
        fits = spans and spans[-1][2] + tokens <= rules.max_tokens
        small = spans and tokens < rules.min_tokens and spans[-1][2] + tokens <= rules.hard_max_tokens
        if fits or small:
            first, _, before = spans.pop()
            spans.append((first, stop, before + tokens))
        else:
            spans.append((begin, stop, tokens))
    return [
        Chunk(text=text[first:last], start=first, end=last, section=path, tokens=tokens)
        for first, last, tokens in (_trimmed(text, *span) for span in spans)
        if first < last
    ]


def _pieces(text: str, start: int, end: int, rules: Chunking, count: TokenCounter, depth: int) -> Iterator[tuple[int, int, int]]:
    """The span in pieces of at most `max_tokens`; one that offers no place to cut may reach `hard_max_tokens`."""
    tokens = count(text[start:end])
    if tokens <= rules.max_tokens:
        yield start, end, tokens
    elif depth < len(_CUTS):
        at = start
        for cut in _CUTS[depth].finditer(text, start, end):
            yield from _pieces(text, at, cut.end(), rules, count, depth + 1)
            at = cut.end()
        yield from _pieces(text, at, end, rules, count, depth + 1)
    elif tokens <= rules.hard_max_tokens:
        yield start, end, tokens
    else:
        middle = (start + end) // 2
        yield from _pieces(text, start, middle, rules, count, depth)
        yield from _pieces(text, middle, end, rules, count, depth)


def _trimmed(text: str, start: int, end: int, tokens: int) -> tuple[int, int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip("\n")), end - (len(piece) - len(piece.rstrip())), tokens
