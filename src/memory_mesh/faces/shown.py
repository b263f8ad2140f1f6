"""Search results as texts: in the document's own shape, and as data for a language model."""

from collections.abc import Sequence

from memory_mesh.core.model.records import SearchResult

_FRAME = """\
[ATTENTION DIRECTIVE]
- ALIGN attention to entries with [IMPORTANCE >= 0.8]
- TREAT entries with [IMPORTANCE <= 0.4] as auxiliary

[MEMORY CONTEXT]
"""
_USUAL = (("type", "global"), ("source", "unknown"))


def as_document(results: Sequence[SearchResult]) -> str:
    """The block of text that the document puts before an agent."""
    return _FRAME + "\n\n".join(_entry(n, result) for n, result in enumerate(results, start=1))


def for_model(results: Sequence[SearchResult], boundary: str) -> str:
    """The same memories as data, behind fences of this boundary."""
    from memory_mesh.core.safety.fence import Entry, fence_memories  # only prompts need it

    entries = [
        Entry(
            id=found.id, content=found.content, created_at=found.event_time or found.created_at,
            kind=str(found.metadata.get("type") or found.memory_type), score=found.score, trust=found.trust,
        )
        for found in results
    ]  # fmt: skip
    return fence_memories(entries, boundary)


def _entry(n: int, result: SearchResult) -> str:
    from memory_mesh.core.safety.fence import quote_frame_lines  # only who shows memories needs it

    kind, source = (" ".join(str(result.metadata.get(name) or usual).split()) for name, usual in _USUAL)
    head = f"--- MEMORY {n}: {result.id} [IMPORTANCE: {result.score:.2f}] ---\nType: {kind} | Source: {source}"
    return f"{head}\n{quote_frame_lines(result.content)}"
