"""Find the passage of each long memory that fits a query best, and the words that do.

Passages are pieces of the content that was read and checked: stored passages only supply positions
and vectors. Positions that do not belong to this content, such as those of an older version, are
ignored, and the content is split again.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

from memory_mesh.core.errors import EmbeddingError
from memory_mesh.core.model import In, Kind, Passage, Row, SearchResult
from memory_mesh.core.search import Query, WordPair
from memory_mesh.core.search.lexical import best_cosines
from memory_mesh.core.search.passages import Piece, best_piece, fitting
from memory_mesh.core.text import CHARACTERS_PER_TOKEN, estimate
from memory_mesh.flows.context import Context
from memory_mesh.flows.write.embed import embed_texts, embedder_for, passage_window, words_of

# Tokens of a passage that is split again; also the window of the smallest usual model.
_WINDOW = 256


def best_passages(context: Context, query: Query, rows: Sequence[Row]) -> dict[str, Passage]:
    """Return the best passage of each memory that has more than one, by id."""
    contents = {row.id: row for row in rows}
    found = (
        (id_, _best(context, query, contents[id_], stored))
        for id_, stored in stored_passages(context, rows).items()
    )
    return {id_: passage for id_, passage in found if passage}


def stored_passages(context: Context, rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of further passages of each memory that is long enough to have some, by
    id."""
    # A text of words has fewer tokens than half its bytes: a shorter one is a single passage, and
    # costs no read.
    max_bytes = 2 * min(passage_window(context, _WINDOW), _WINDOW)
    stored = {row.id: list[Row]() for row in rows if _has_more_bytes(_content(row), max_bytes)}
    for row in context.store.find(Kind.PASSAGE, In("ref", tuple(stored))) if stored else ():
        stored[str(row.value("ref"))].append(row)
    return stored


def within(
    context: Context, results: Sequence[SearchResult], max_chars: int, words: Sequence[str]
) -> list[SearchResult]:
    """Return the first results whose texts have at most so many characters together; a first one
    that is longer is shortened."""
    if kept := fitting(results, max_chars):
        return kept
    return [
        replace(result, passage=_shortened(context, result, max_chars, words))
        for result in results[:1]
    ]


def _shortened(
    context: Context, result: SearchResult, max_chars: int, words: Sequence[str]
) -> Passage:
    """Return the part of a result's text that fits the query best, in at most so many
    characters."""
    from memory_mesh.core.language.scrubbing import is_heading

    begin, text = result.passage.start if result.passage else 0, result.excerpt
    pieces = _pieces(context, text, max_chars // CHARACTERS_PER_TOKEN) or [Piece(0, max_chars)]
    answers = [piece for piece in pieces if not is_heading(text[piece.start : piece.end])]
    best = best_piece(text, answers or pieces, words, language=context.options.stemmer_language)
    return passage_of(result.content, begin + best.start, begin + best.end)


def _best(context: Context, query: Query, memory: Row, stored: Sequence[Row]) -> Passage | None:
    content = _content(memory)
    pieces = _with_headings(
        content, _stored_pieces(query, memory, stored) or _split(context, content)
    )
    if len(pieces) < 2:
        return None
    best = best_piece(content, pieces, query.tokens, language=context.options.stemmer_language)
    return passage_of(content, best.start, best.end)


def passage_of(content: str, start: int, end: int) -> Passage:
    """Return a piece of a content as a passage."""
    from memory_mesh.core.language.scrubbing import section_at  # few memories are that long

    return Passage(
        text=content[start:end], section=section_at(content, end - 1), start=start, end=end
    )


def _stored_pieces(query: Query, memory: Row, stored: Sequence[Row]) -> list[Piece]:
    """Return the pieces that the stored passages name, or an empty list if they do not belong to
    this content."""
    # While a store changes to another model, it has passages of both.
    model = query.vector.model if query.vector else None
    rows = [row for row in stored if row.vector and row.vector.model == model] or stored
    content = _content(memory)
    vectors = {span: row.vector for row in rows if (span := _span(row, content))}
    if len(vectors) < len(rows) or not vectors:
        return []
    head = content[: min(start for start, _ in vectors)]
    if head.strip():  # the first passage has no row of its own: its vector is the memory's
        vectors[len(head) - len(head.lstrip("\n")), len(head.rstrip())] = memory.vector
    cosines: dict[str, float] = {}
    if own := query.vector:
        same = {
            start: each
            for (start, _), each in vectors.items()
            if each and each.dimension == own.dimension
        }
        data = [(str(start), each.data) for start, each in same.items() if each.model == model]
        cosines = dict(best_cosines(own.data, data, len(data)))
    return [Piece(start, end, cosines.get(str(start), 0.0)) for start, end in sorted(vectors)]


def _span(row: Row, content: str) -> tuple[int, int] | None:
    """Return the place of a stored passage; None if it is missing, or if the content has another
    text there."""
    start, end = row.value("text_start"), row.value("text_end")
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(content)):
        return None
    text = content[start:end].encode("utf-8", "replace")
    return (start, end) if sha256(text).hexdigest() == row.value("content_hash") else None


def _split(context: Context, content: str) -> list[Piece]:
    """Split a long content that has no stored passages: without an embedder, or if all of it
    fits a large window."""
    rules = context.gates.query().scrub.chunking
    if estimate(content) <= rules.max_tokens:
        return []
    return _pieces(context, content, min(rules.max_tokens, _WINDOW))


def _pieces(context: Context, text: str, max_tokens: int) -> list[Piece]:
    """Split a text at natural places into pieces of at most so many tokens, as estimated; no
    pieces if there is no room."""
    from memory_mesh.core.language.scrubbing import split_chunks

    rules = context.gates.query().scrub.chunking
    small = replace(rules, min_tokens=1, max_tokens=max_tokens, hard_max_tokens=max_tokens)
    return (
        [Piece(chunk.start, chunk.end) for chunk in split_chunks(text, small, estimate)]
        if max_tokens
        else []
    )


def _with_headings(content: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Join each piece that is only a heading with the one after it: it has the words of a query,
    but no answer."""
    from memory_mesh.core.language.scrubbing import is_heading

    joined: list[Piece] = []
    for piece in pieces:
        before = (
            joined.pop()
            if joined and is_heading(content[joined[-1].start : joined[-1].end])
            else piece
        )
        joined.append(piece._replace(start=before.start))
    return joined


def _has_more_bytes(text: str, count: int) -> bool:
    return len(text) > count or (
        not text.isascii() and len(text.encode("utf-8", "replace")) > count
    )


def _content(memory: Row) -> str:
    return str(memory.fields.get("content"))


def word_pairs(
    context: Context, query: Query, results: Sequence[SearchResult]
) -> Iterator[Sequence[WordPair]]:
    """Yield for each result the words that are nearest to those of the query; nothing if there
    are no token vectors, or the embedder has no words for them or fails."""
    from memory_mesh.core.search.matches import word_pairs

    embedder = embedder_for(context, query.vector.model) if query.vector else None
    if not (query.vector and query.vector.tokens and embedder):
        return
    texts = [result.passage.text if result.passage else result.content for result in results]
    with suppress(EmbeddingError):
        asked, *vectors = embed_texts(embedder, [query.text, *texts])
        words = words_of(embedder, query.text)
        for text, vector in zip(texts, vectors, strict=True):
            yield word_pairs(asked.tokens, words, vector.tokens, words_of(embedder, text))
