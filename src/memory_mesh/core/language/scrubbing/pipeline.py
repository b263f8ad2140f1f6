"""Layer 0, the scrubber: six stages that clean a text before it is stored.

1 structural cleaning → 2 semantic filtering → 3 normalisation → 4 chunking → 5 annotation → 6
validation.

A memory is mostly plain text, and damaging it is worse than leaving a stray asterisk. So tags are
removed only from a markup document (`List<int>`, `a < b` and `use <b>` are none), Markdown is
changed only where its marks are unambiguous, and code, fenced or in backticks, loses only the
escape sequences of terminals. The first three stages repeat until nothing changes, so scrubbing is
idempotent. A stage that would leave nothing is skipped.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.language.scrubbing import cleaning
from memory_mesh.core.language.scrubbing.cleaning import (
    HEADING,
    Chunking,
    ScrubSettings,
    Validation,
    blocks,
    title,
)
from memory_mesh.core.text import TokenCounter, estimate, is_blank

_STAGES = (cleaning.clean_structure, cleaning.filter_noise, cleaning.normalise)
# A text without any of these, and without spaces side by side or at its ends, needs no cleaning.
_SPECIAL = re.compile(r"""[^ !"$%'()+,\-./0-9:;=?@A-Z\\^a-z{}]""")
# Each round removes one layer of markup. Only a text built for it needs more rounds.
_MAX_ROUNDS = 40
# Where to cut, best place first: between paragraphs, lines, sentences, words.
_CUTS = tuple(
    re.compile(cut) for cut in (r"\n\n+", r"\n", r"(?<=[.!?。！？])\s+|(?<=[。！？])", r"\s+")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a text and its position."""

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
    """The result of the scrubber."""

    text: str
    chunks: tuple[Chunk, ...]


def scrub(
    text: str,
    settings: ScrubSettings,
    *,
    source: str | None = None,
    at: str | None = None,
    count: TokenCounter = estimate,
) -> Scrubbed:
    """Return the clean text and its chunks."""
    clean = cleaned(text, settings)
    chunks = annotate(split_chunks(clean, settings.chunking, count), source, at)
    return Scrubbed(clean, validate(chunks, settings) if settings.enabled else chunks)


def annotate(
    chunks: tuple[Chunk, ...], source: str | None = None, at: str | None = None
) -> tuple[Chunk, ...]:
    """Stage 5: add source, timestamp and content hash to each chunk."""
    return tuple(
        replace(
            chunk,
            source=source,
            timestamp=at,
            content_hash=sha256(chunk.text.encode("utf-8", "replace")).hexdigest(),
        )
        for chunk in chunks
    )


def validate(chunks: tuple[Chunk, ...], settings: ScrubSettings) -> tuple[Chunk, ...]:
    """Stage 6: reject chunks that are empty or too long, or too short if a minimum is enforced."""
    return tuple(chunk for chunk in chunks if _is_valid_chunk(chunk.text, settings.validation))


def _is_valid_chunk(chunk: str, rules: Validation) -> bool:
    shortest = rules.min_length if rules.enforce_min_length else 0
    return shortest <= len(chunk) <= rules.max_length and bool(
        chunk.strip() or not rules.reject_empty
    )


def has_valid_chunk(clean: str, settings: ScrubSettings) -> bool:
    """Return whether a clean text that is not blank has a valid chunk."""
    if not settings.enabled:
        return True
    if "#" in clean or estimate(clean) > settings.chunking.max_tokens:
        return any(
            _is_valid_chunk(chunk.text, settings.validation)
            for chunk in _chunks(clean, settings.chunking, estimate)
        )
    # One chunk: it is short and has no heading.
    return _is_valid_chunk(clean.lstrip("\n").rstrip(), settings.validation)


def cleaned(text: str, settings: ScrubSettings) -> str:
    """Return the clean text: stages 1 to 3."""
    if not settings.enabled:
        return text
    for _ in range(_MAX_ROUNDS):
        before = text
        for stage in _STAGES if _needs_work(text) else ():
            cleaner = stage(text, settings)
            text = text if is_blank(cleaner) else cleaner
        if text == before:
            return text
    raise InvalidInput("the text has too many layers of markup", expected=f"at most {_MAX_ROUNDS}")


def _needs_work(text: str) -> bool:
    """Return whether a text has special characters, or spaces side by side or at its ends; one
    pattern for all is slower."""
    return (
        "  " in text
        or text.startswith(" ")
        or text.endswith(" ")
        or _SPECIAL.search(text) is not None
    )


def split_chunks(text: str, rules: Chunking, count: TokenCounter) -> tuple[Chunk, ...]:
    """Stage 4: split a text into chunks of a bounded number of tokens, at natural places. Each
    section starts a new chunk."""
    return tuple(_chunks(text, rules, count))


def _chunks(text: str, rules: Chunking, count: TokenCounter) -> Iterator[Chunk]:
    for start, end, path in heading_sections(text) if rules.heading_aware else [(0, len(text), ())]:
        for begin, stop, tokens in _packed(text, start, end, rules, count):
            lines = text[begin:stop].lstrip("\n")
            first, words = stop - len(lines), lines.rstrip()
            if words:
                yield Chunk(
                    text=words, start=first, end=first + len(words), section=path, tokens=tokens
                )


def heading_sections(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start and end of each section, and the headings above it."""
    path: list[tuple[int, str]] = []
    begin = 0
    for at, level, name in _headings(text):
        if text[begin:at].strip():
            yield begin, at, tuple(name for _, name in path)
        path = [*(above for above in path if above[0] < level), (level, name)]
        begin = at
    yield begin, len(text), tuple(name for _, name in path)


def section_at(text: str, at: int) -> tuple[str, ...]:
    """Return the headings above a position, outermost first; a heading at the position is one of
    them."""
    return next((path for start, end, path in heading_sections(text) if start <= at < end), ())


def is_heading(text: str) -> bool:
    """Return whether a text consists of headings."""
    return not HEADING.sub("", text).strip()


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    for block, code in blocks(text):
        if not code:
            yield from (
                (at + found.start(), len(found.group(1)), title(found))
                for found in HEADING.finditer(block)
            )
        at += len(block)


def _packed(
    text: str, start: int, end: int, rules: Chunking, count: TokenCounter
) -> Iterator[tuple[int, int, int]]:
    """Join neighbouring pieces as long as they fit. A piece that is too small joins the one
    before it."""
    begin, size = start, 0
    for at, _, tokens in _pieces(text, start, end, count(text[start:end]), rules, count, 0):
        joined = size + tokens
        if (
            at > begin
            and joined > rules.max_tokens
            and (tokens >= rules.min_tokens or joined > rules.hard_max_tokens)
        ):
            yield begin, at, size
            begin, joined = at, tokens
        size = joined
    yield begin, end, size


def _pieces(
    text: str, start: int, end: int, tokens: int, rules: Chunking, count: TokenCounter, depth: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the span in pieces of at most `max_tokens`; a piece without a place to cut may reach
    `hard_max_tokens`."""
    if tokens <= rules.max_tokens or (depth == len(_CUTS) and tokens <= rules.hard_max_tokens):
        yield start, end, tokens
        return
    at, deeper = start, min(depth + 1, len(_CUTS))
    cuts = (
        (cut.end() for cut in _CUTS[depth].finditer(text, start, end))
        if depth < deeper
        else ((start + end) // 2,)
    )
    for stop in chain(cuts, [end]):
        tokens = count(text[at:stop])
        if tokens <= rules.max_tokens:  # most pieces: they need no generator of their own
            yield at, stop, tokens
        else:
            yield from _pieces(text, at, stop, tokens, rules, count, deeper)
        at = stop
