"""Layer 0, the scrubber: six stages that turn what was pasted into what is worth keeping.

1 structural cleaning → 2 semantic filtering → 3 normalisation → 4 chunking → 5 annotation → 6 validation.

A memory is mostly plain text, and harming it is worse than leaving a stray asterisk. So HTML is what has known tags that
open and close (`List<int>` and `a < b` are none), Markdown is touched only where its marks cannot mean anything else, and
code, fenced or in backticks, keeps every byte. The first three stages run until nothing changes any more, so scrubbing
scrubbed text changes nothing. They never remove everything: what would leave nothing stays as it was.
"""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from re import compile as pattern

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.scrubbing import noise as scrub_noise
from memory_mesh.core.scrubbing import normalise as scrub_normal
from memory_mesh.core.scrubbing import structure as scrub_structure
from memory_mesh.core.scrubbing.chunks import Chunk, Scrubbed, chunks
from memory_mesh.core.scrubbing.settings import MESH_OVERRIDES, ScrubSettings
from memory_mesh.core.text import TokenCounter, estimate

__all__ = ["MESH_OVERRIDES", "Chunk", "ScrubSettings", "Scrubbed", "scrub"]

# A text that holds none of these is already as clean as it gets.
_NEEDS_WORK = pattern(r"[^ -~]|[<>&*_#`~|\[\]]|  |^ | $")
# Each round takes off one layer of markup; what is still unwrapping after so many was made to.
_ROUNDS = 40


def scrub(
    text: str, settings: ScrubSettings, *, source: str | None = None, at: str | None = None, count: TokenCounter = estimate
) -> Scrubbed:
    """The clean text and its chunks."""
    if not settings.enabled:
        return Scrubbed(text, annotate(chunks(text, settings.chunking, count), source, at))
    clean = _settled(text, settings)
    return Scrubbed(clean, validate(annotate(chunks(clean, settings.chunking, count), source, at), settings))


def annotate(found: tuple[Chunk, ...], source: str | None, at: str | None) -> tuple[Chunk, ...]:
    """Stage 5: where each chunk comes from, and what it is."""
    return tuple(
        replace(chunk, source=source, timestamp=at, content_hash=sha256(chunk.text.encode("utf-8", "replace")).hexdigest())
        for chunk in found
    )


def validate(found: tuple[Chunk, ...], settings: ScrubSettings) -> tuple[Chunk, ...]:
    """Stage 6: chunks that are empty, or too short or too long where that is enforced, are rejected."""
    rules = settings.validation
    kept = [chunk for chunk in found if chunk.text.strip() or not rules.reject_empty]
    if rules.enforce_min_length:
        kept = [chunk for chunk in kept if len(chunk.text) >= rules.min_length]
    return tuple(chunk for chunk in kept if len(chunk.text) <= rules.max_length)


def _settled(text: str, settings: ScrubSettings) -> str:
    for _ in range(_ROUNDS):
        if not _NEEDS_WORK.search(text):
            return text
        cleaner = _round(text, settings)
        if cleaner == text:
            return text
        text = cleaner
    raise InvalidInput("the text is wrapped in too many layers of markup", expected=f"at most {_ROUNDS}")


def _round(text: str, settings: ScrubSettings) -> str:
    for stage in _STAGES:
        cleaner = stage(text, settings)
        text = cleaner if cleaner.strip() else text
    return text


_STAGES: tuple[Callable[[str, ScrubSettings], str], ...] = (
    scrub_structure.clean,
    scrub_noise.filtered,
    scrub_normal.normalised,
)
