"""Compute vectors: for memories that are written, for queries, and for a whole store.

A write never waits for an embedder that fails: the memory is stored as pending and found by
keywords. A store has one model, the one of its first vector. Vectors of two models are never mixed
or compared.
"""

import logging
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from memory_mesh.core.errors import (
    Conflict,
    EmbeddingError,
    MemoryMeshError,
    ModelMismatch,
    SettingsError,
)
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    TOKEN_BYTES,
    In,
    Key,
    Kind,
    Memory,
    Meta,
    Reembedded,
    Row,
    Value,
    Vector,
    batches,
    checked,
    equals,
    iso,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Embedder, Progress, no_progress
from memory_mesh.core.search import Pool, Query, tokens
from memory_mesh.core.search.lexical import function_words
from memory_mesh.core.text import PASSAGE_BREAK, TokenCounter, estimate
from memory_mesh.flows.context import Context, Plan, find_rows, paged, read_once

if TYPE_CHECKING:
    from memory_mesh.core.language.scrubbing import Chunk, ScrubSettings

_META = "embedding"
_WORD = re.compile(r"[^\W\d_]+")
_LAST_LATIN = "\u02ff"
# Per letter, if a model has words for the script, or for the language.
_MIN_TOKENS, _MAX_TOKENS, _MAX_LATIN = 0.15, 0.8, 0.33
_SAMPLED = 20  # candidates that are read for a warning
_EMBEDDED_AT_ONCE = 256  # texts of one write between two reports of progress
_log = logging.getLogger("memory_mesh")


# The fields of a passage besides its vector: its section, its start and end in the text, and the
# hash of its text.
_PLACE = ("section", "text_start", "text_end", "content_hash")


@dataclass(frozen=True, slots=True)
class EmbeddedPassage:
    """The vector of a passage, and its place in the text; a text of a single passage has none."""

    vector: Vector
    place: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Row) -> "EmbeddedPassage | None":
        """Return the passage that a row stores; None if it has no vector."""
        place = {name: row.fields[name] for name in _PLACE if name in row.fields}
        return cls(row.vector, place) if row.vector else None


@dataclass(frozen=True, slots=True)
class Embedded:
    """The passages of one text. The vector of the first one is the memory's own."""

    passages: tuple[EmbeddedPassage, ...] = ()
    pending: bool = False

    @property
    def own(self) -> Vector | None:
        return self.passages[0].vector if self.passages else None


class Vectors(dict[str, Embedded]):
    """The vectors of one write, by text. A retry after a conflict embeds nothing twice."""

    def __init__(
        self, progress: Progress = no_progress, *, batch_size: int = _EMBEDDED_AT_ONCE
    ) -> None:
        self._meta: Meta | None = None  # what the store recorded of its model
        self._progress, self._batch_size = progress, batch_size

    def embed(self, context: Context, texts: Sequence[str], data_version: Hashable = None) -> None:
        """Embed the texts that are new.

        The model of the store is read each time, because it may change between two attempts; with a
        data version, once for it.
        """
        self._meta = (
            _stored_meta(context, data_version)
            if context.models.embedder and (texts or self)
            else None
        )
        model = _model_of(self._meta)
        embedder = embedder_for(context, model)
        if embedder and model and model != embedder.model:
            raise ModelMismatch(
                f"the store has vectors of {model}, and the embedder is {embedder.model}",
                remedy="use the store's model, or run `memory-mesh reembed` to change the store to "
                "the new one",
            )
        if embedder and any(one.own and one.own.model != embedder.model for one in self.values()):
            self.clear()  # the store has another model than at the attempt before
        new = list(dict.fromkeys(text for text in texts if text not in self))
        if embedder is None:
            self.update(dict.fromkeys(new, Embedded()))
            return
        try:
            for start, batch in enumerate(batches(new, self._batch_size)):
                self.update(zip(batch, _embed_passages(context, embedder, batch), strict=True))
                context.state.down.clear()
                self._progress("embedding", start * self._batch_size + len(batch), len(new))
        except EmbeddingError as error:
            _warn_down(
                context,
                "stored without vectors, found by keywords until `memory-mesh reembed`",
                error,
            )
            # The other batches would fail too, each after the same wait.
            self.update({text: Embedded(pending=True) for text in new if text not in self})

    def model_rows(self, context: Context) -> list[Row]:
        """Return the row that records the model, to be written with the first vector of a store;
        later an empty list."""
        first = next((embedded.own for embedded in self.values() if embedded.own), None)
        if first is None or _model_of(self._meta) is not None:
            return []
        # As it was read: another one, which a program wrote meanwhile, must not be replaced.
        read = self._meta or Meta(id=_META)
        return [read.row({"model": first.model}, at=iso(context.clock()))]

    @property
    def assumed_rows(self) -> list[Row]:
        """Return the row by which the model was chosen, if the store has one."""
        return [self._meta.stored] if self._meta and self._meta.revision else []


def _embed_passages(context: Context, embedder: Embedder, texts: Sequence[str]) -> list[Embedded]:
    """Return the vectors of the passages of each text, embedded in one batch."""
    split = [
        split_passages(lambda: context.gates.content().scrub, embedder, text) for text in texts
    ]
    vectors = iter(
        embed_texts(embedder, [text for parts in split for text, _ in parts]) if texts else ()
    )
    embedded = [
        Embedded(tuple(EmbeddedPassage(next(vectors).of_memory, place) for _, place in parts))
        for parts in split
    ]
    # The vectors of a fallback have the name of its model. If it differs, the memory waits for the
    # right model.
    pending = Embedded(pending=True)
    return [
        one if all(passage.vector.model == embedder.model for passage in one.passages) else pending
        for one in embedded
    ]


def embed_query(context: Context, query: str, data_version: Hashable) -> Vector | None:
    """Return the vector of a query, or None if only keywords can be searched. The store's model
    is read once per data version."""
    return embed_queries(context, [query], data_version)[0]


def embed_queries(
    context: Context, queries: Sequence[str], data_version: Hashable
) -> list[Vector | None]:
    """Return what `embed_query` returns for each query, embedded in one batch."""
    model = store_model(context, data_version)
    embedder = embedder_for(context, model)
    if embedder is None or model != embedder.model:
        if embedder and model:
            warn_once(
                context,
                f"the store has vectors of {model}, not of {embedder.model}: searched by "
                "keywords only",
            )
        return [None for _ in queries]
    try:
        vectors = embed_texts(embedder, queries) if queries else []
    except EmbeddingError as error:
        _warn_down(context, "searched by keywords only", error)
        return [None for _ in queries]
    context.state.down.clear()
    return [vector if vector.model == model else None for vector in vectors]


def embedder_for(context: Context, model: str | None) -> Embedder | None:
    """Return the embedder for a store with vectors of a model. A store of an older local model
    goes on with it."""
    own = context.models.embedder
    if own is None or model in (None, own.model):
        return own
    return getattr(own, "of_model", lambda _: None)(model) or own


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """Return one valid vector for each text, or raise `EmbeddingError`, whatever the embedder
    does."""
    with _embedding_errors(embedder):
        # An embedder may return anything.
        vectors = Vector.made(embedder.model, embedder.embed(texts))
        length = len(vectors[0].data) if vectors else 0
        valid = sum(
            length == len(one.data) == one.dimension * 4 > 0
            and one.finite
            and isinstance(one.tokens, bytes)
            and len(one.tokens) % TOKEN_BYTES == 0
            for one in vectors
        )
    if not len(texts) == len(vectors) == valid:
        raise EmbeddingError(
            (
                f"{embedder.model} returned {len(vectors):,} vectors for {len(texts):,} texts, "
                f"{len(vectors) - valid:,} invalid"
            ),
            expected="for each text a Vector, or a list or an array of finite numbers, all of one "
            f"length; tokens of a Vector are bytes, {TOKEN_BYTES} for each",
            remedy="check the embedder",
        )
    return vectors


def words_of(embedder: Embedder, text: str) -> list[str]:
    """Return the word of each token of a text, or raise `EmbeddingError`, whatever the embedder
    does. One that gives none has no attribute `words`."""
    with _embedding_errors(embedder):
        words = [*(getattr(embedder, "words", None) or (lambda _: ()))(text)]
        if all(isinstance(word, str) for word in words):
            return words
    raise EmbeddingError(
        f"{embedder.model} returned no words", expected="a text for each token of a text"
    )


def warn_once(context: Context, what: str) -> None:
    """Log, once for each open mesh, that some memories cannot be compared until `reembed` has
    run."""
    if "vectors" not in context.state.warned:
        context.state.warned.add("vectors")
        _log.warning("%s; run memory-mesh reembed", what)


def warn_without_vectors(
    context: Context, query: Query, pool: Pool, data_version: Hashable
) -> None:
    """Log, once, that memories are found by keywords only, because they have no vector of the
    embedder's model."""
    if "vectors" in context.state.warned or not pool.documents:
        return
    if query.vector and pool.without_vector:
        what = (
            f"{pool.without_vector:,} memories have no vector of "
            f"{query.vector.model}{_other_models(context, pool)}"
        )
        warn_once(context, f"{what} and are found by keywords")
    elif (
        context.models.embedder
        and not context.state.down
        and not store_model(context, data_version)
    ):
        # An outage was reported.
        own = context.models.embedder.model
        warn_once(
            context,
            f"no memory has a vector of {own}{_other_models(context, pool)}: searched by "
            "keywords only",
        )


def _other_models(context: Context, pool: Pool) -> str:
    """Return which models the vectors of some candidates have instead."""
    rows = context.store.get(Kind.MEMORY, pool.ids[:_SAMPLED]).values()
    own = context.models.embedder.model if context.models.embedder else None
    others = sorted({row.vector.model for row in rows if row.vector} - {own})
    return f", but one of {' or '.join(others)}" if others else ""


def _warn_down(context: Context, what: str, error: EmbeddingError) -> None:
    """Log what the failure of an embedder leads to, once until it works again."""
    _log.log(
        logging.DEBUG if what in context.state.down else logging.WARNING, "%s: %s", what, error
    )
    context.state.down.add(what)


def split_passages(
    scrub_settings: Callable[[], "ScrubSettings"], embedder: Embedder, text: str
) -> list[tuple[str, dict[str, Value]]]:
    """Split a text into passages that fit the embedder's window, each with its place. Nearly
    every text is a single passage. `PASSAGE_BREAK` ends a passage too."""
    if PASSAGE_BREAK in text:
        starts = accumulate(
            (len(part) + len(PASSAGE_BREAK) for part in text.split(PASSAGE_BREAK)), initial=0
        )
        return [
            (passage, _moved(place, start, part))
            for part, start in zip(text.split(PASSAGE_BREAK), starts, strict=False)
            for passage, place in split_passages(scrub_settings, embedder, part)
        ]
    with _embedding_errors(embedder):
        window = embedder.window
        # A token has at least one byte, and two tokens frame the text, so most texts need no
        # counting.
        if len(text.encode()) <= window - 2 or embedder.count(text) <= window:
            return [(text, {})]
        # Few texts are that long.
        from memory_mesh.core.language.scrubbing import annotate, split_chunks, validate

        settings = scrub_settings()
        max_tokens = min(settings.chunking.max_tokens, window)
        rules = replace(
            settings.chunking, min_tokens=1, max_tokens=max_tokens, hard_max_tokens=max_tokens
        )
        chunks = validate(annotate(split_chunks(text, rules, embedder.count)), settings)
        return [(chunk.text, _place_of(chunk)) for chunk in chunks] or [(text, {})]


def _moved(place: dict[str, Value], start: int, part: str) -> dict[str, Value]:
    """Return the place of a passage of a part in the whole text."""
    digest = sha256(part.encode("utf-8", "replace")).hexdigest()
    moved: dict[str, Any] = place or dict(zip(_PLACE, ([], 0, len(part), digest), strict=True))
    return {**moved, **{name: start + moved[name] for name in ("text_start", "text_end")}}


def _place_of(chunk: "Chunk") -> dict[str, Value]:
    return dict(
        zip(_PLACE, (list(chunk.section), chunk.start, chunk.end, chunk.content_hash), strict=True)
    )


def token_counter(context: Context) -> TokenCounter:
    """Return the counter of all budgets: the embedder's tokenizer; without one, or if it fails,
    an estimate."""
    return (
        estimate
        if getattr(context.models.embedder, "counts_too_many", False)
        else _embedder_counter(context)
    )


def _embedder_counter(context: Context) -> TokenCounter:
    return lambda text: _of_embedder(
        context, lambda embedder: embedder.count(text), otherwise=lambda: estimate(text)
    )


def is_spelled(context: Context, text: str) -> bool:
    """Return whether the embedder has no words for the script of a text: it reads it letter by
    letter, or as one unknown word.

    A model that was trained on English does so with Greek or Chinese, and splits most words of
    German or Turkish into pieces. Vectors of such texts compare letters, not meanings.
    """
    in_latin = text.isascii() or max(text) <= _LAST_LATIN
    letters = sum(map(str.isalpha, text)) if not in_latin or function_words(text) else 0
    return letters > 0 and not _MIN_TOKENS <= _embedder_counter(context)(text) / letters <= (
        _MAX_LATIN if in_latin else _MAX_TOKENS
    )


def knows_word(context: Context, text: str, token: str) -> bool:
    """Return whether `token` is the keyword of a word of the text that the embedder's tokenizer has
    as a whole: it splits typos.

    A counter that splits the reversed word as little does not know words: it counts characters.
    """
    language, count = context.options.stemmer_language, _embedder_counter(context)
    words = (word for word in _WORD.findall(text) if tokens(word, language=language) == [token])
    return any(count(word) == 1 < count(word[::-1]) for word in words)


def passage_window(context: Context, otherwise: int) -> int:
    """Return the embedder's window; `otherwise` without one, or if it fails."""
    return _of_embedder(context, lambda embedder: embedder.window, otherwise=lambda: otherwise)


def _of_embedder(
    context: Context, ask: Callable[[Embedder], int], *, otherwise: Callable[[], int]
) -> int:
    if context.models.embedder is None:
        return otherwise()
    try:
        with _embedding_errors(context.models.embedder):
            return int(ask(context.models.embedder))
    except EmbeddingError:
        return otherwise()


def store_model(context: Context, data_version: Hashable = None) -> str | None:
    """Return the model of the store's vectors; None before the first vector. With a data
    version, it is read once for it."""
    return _model_of(_stored_meta(context, data_version))


def _stored_meta(context: Context, data_version: Hashable) -> Meta:
    if data_version is None:
        return Meta.read(context.store, _META)
    meta = read_once(context, data_version, _META, lambda: _stored_meta(context, None))
    if not meta.revision:
        context.state.latest.pop(_META, None)  # no write can check that there is still none
    return meta


def _model_of(meta: Meta | None) -> str | None:
    model = meta.detail.get("model") if meta else None
    return str(model) if model else None


def model_row(context: Context, model: str) -> Row:
    """Return the row that records the model of the store's vectors."""
    return Meta.read(context.store, _META).row({"model": model}, at=iso(context.clock()))


def passage_rows(memory: Memory, embedded: Embedded) -> list[Row]:
    """Return a row for each further passage of a long memory."""
    return [
        passage_row(memory, f"{memory.id}.{n}", passage)
        for n, passage in enumerate(embedded.passages[1:], start=1)
    ]


def passage_row(memory: Memory, id_: str, passage: EmbeddedPassage) -> Row:
    """Return the row of a passage, with the scope, the source and the time of its memory."""
    source = memory.metadata.get("source")
    return checked(
        Row(
            kind=Kind.PASSAGE, id=id_, partition=memory.partition, created_at=memory.updated_at,
            vector=passage.vector,
            fields={"ref": memory.id, "source": source if isinstance(source, str) else None,
                    **memory.scope, **passage.place},
        )
    )  # fmt: skip


def plan_passages(
    context: Context, before: Memory | None, memory: Memory, vectors: Embedded | None
) -> tuple[list[Row], list[Key]]:
    """Return the puts and deletes of a memory's passages: replaced if the text changed, with the
    new scope or source if that changed."""
    if before is None:
        return passage_rows(memory, vectors) if vectors else [], []
    same_source = memory.metadata.get("source") == before.metadata.get("source")
    same_text = memory.content == before.content
    if same_text and same_source and memory.scope == before.scope:
        return [], []
    old = context.store.get(Kind.PASSAGE, context.store.ids(Kind.PASSAGE, equals("ref", memory.id)))
    if vectors and not same_text:
        new = passage_rows(memory, vectors)
    else:
        new = [
            passage_row(memory, id_, passage)
            for id_, row in old.items()
            if (passage := EmbeddedPassage.of(row))
        ]
    return replace_passages(old, new)


def replace_passages(old: Mapping[str, Row], new: Sequence[Row]) -> tuple[list[Row], list[Key]]:
    """Return the puts and deletes that turn the old passages of a memory, by id, into the new ones.

    Rows are replaced where possible: a delete makes the store free bytes, and the history keeps the
    old text anyway.
    """
    revisions = {row.id: old[row.id].revision if row.id in old else 0 for row in new}
    puts = [replace(row, revision=revisions[row.id] + 1, replaces=revisions[row.id]) for row in new]
    return puts, [row.key for id_, row in old.items() if id_ not in revisions]


@contextmanager
def _embedding_errors(embedder: Embedder) -> Iterator[None]:
    """Raise any error of an embedder as `EmbeddingError`, so that no memory is lost by it."""
    try:
        yield
    except MemoryMeshError:
        raise
    except Exception as error:
        # Only the type: the message may quote the text, and this is logged.
        raise EmbeddingError(
            f"{embedder.model} failed: {type(error).__name__}", remedy="check the embedder"
        ) from error


# --- reembed ---
#
# Memories of the same model that are pending get their vector in place. A change of model is
# staged: the new vectors are written as passages, which no search compares with vectors of the old
# model. When every memory has one, a single row changes the model of the store, and from then on
# searches use the new vectors. Then they are moved into their memories. A run that was stopped
# continues where it was. Memories that another process adds meanwhile are found by the next round.

_STAGED_AT_ONCE = 64  # memories in one batch: the most that a stopped run loses
_MOVED_AT_ONCE = 500  # more: nothing is embedded, so a stopped run loses little
_MAX_ROUNDS = 100  # each round finds only what others wrote during the one before


def lacks_vector(row: Row, model: str, *, tokens: bool = False) -> bool:
    """Return whether a memory or skill has no vector of a model, or none with tokens."""
    vector = row.vector
    return vector is None or vector.model != model or (tokens and not vector.tokens)


def reembed(context: Context, progress: Progress) -> Reembedded:
    """Give every memory of the store a vector of the embedder's model."""
    context.check_enabled()
    if context.models.embedder is None:
        raise SettingsError(
            "no embedder is set",
            expected="embedder = local",
            remedy="set one, then run reembed again",
        )
    before, model = store_model(context), context.models.embedder.model
    run = _Reembedding(context, context.models.embedder, progress)
    if before not in (None, model):
        run.stage()
        context.store.apply([model_row(context, model)])
        context.step("reembed.switched")
    return Reembedded(model, run.fill(), before if before != model else None)


_Decide = Callable[[Sequence[str]], Plan[None]]


class _Reembedding:
    """One run of `reembed`."""

    def __init__(self, context: Context, embedder: Embedder, progress: Progress) -> None:
        self._context, self._embedder, self._progress = context, embedder, progress
        self._stage_name = sha256(embedder.model.encode()).hexdigest()[:12]
        # Texts without any token that is kept have none, so each is looked at once.
        self._filled: set[str] = set()

    def stage(self) -> None:
        """Write a staged passage for every memory without one."""
        self._rounds("embedding", _STAGED_AT_ONCE, self._unstaged, self._plan_staging)

    def fill(self) -> int:
        """Set the vector of every memory that has none of this model: from its staged passages,
        or embedded now."""
        return self._rounds("storing", _MOVED_AT_ONCE, self._outdated, self._plan_filling)

    def _rounds(
        self, what: str, at_once: int, find: Callable[[], list[str]], decide: _Decide
    ) -> int:
        """Write what is decided for the memories that `find` returns, until a round finds none.
        Return how many were written."""
        written = 0
        for _ in range(_MAX_ROUNDS):
            ids = find()
            for start, batch in zip(
                range(0, len(ids), at_once), batches(ids, at_once), strict=True
            ):
                check_cancelled()
                written += self._write(batch, decide)
                self._progress(what, start + len(batch), len(ids))
                self._context.step(f"reembed.{what}")
            if not ids:
                break
        return written

    def _write(self, ids: Sequence[str], decide: _Decide) -> int:
        """Write what is decided for some memories, and return how many were written.

        After a conflict they are written one by one, so that one contended memory does not hold up
        the others. The next round finds those that still could not be written.
        """
        try:
            plan = decide(ids)
            self._context.store.apply(plan.puts, plan.deletes, seen=plan.seen)
            self._filled.update(ids if decide == self._plan_filling else ())
        except Conflict:
            return sum(self._write([id_], decide) for id_ in ids) if len(ids) > 1 else 0
        return len(ids)

    def _plan_staging(self, ids: Sequence[str]) -> Plan[None]:
        memories, seen = self._read(ids)
        puts = [
            passage_row(memory, self._stage_id(memory.id, n), passage)
            for memory, embedded in zip(memories, self._embed(memories), strict=True)
            for n, passage in enumerate(embedded.passages)
        ]
        return Plan(None, puts, seen=seen)

    def _plan_filling(self, ids: Sequence[str]) -> Plan[None]:
        memories, seen = self._read(ids)
        passages: dict[str, dict[str, Row]] = {id_: {} for id_ in ids}
        for row in self._context.store.find(Kind.PASSAGE, In("ref", tuple(ids))):
            passages[str(row.value("ref"))][row.id] = row
        vectors: dict[str, Embedded] = {}
        for memory in memories:
            staged = [
                passages[memory.id].get(self._stage_id(memory.id, n))
                for n in range(len(passages[memory.id]))
            ]
            vectors[memory.id] = Embedded(
                tuple(passage for row in staged if row and (passage := EmbeddedPassage.of(row)))
            )
        unstaged = [memory for memory in memories if not vectors[memory.id].own]
        vectors |= zip((memory.id for memory in unstaged), self._embed(unstaged), strict=True)
        current, model = store_model(self._context), self._embedder.model
        if current not in (None, model):
            raise ModelMismatch(
                f"another run changed the store to {current}, while this one changed it to {model}",
                remedy="run reembed again with the model that the store should have",
            )
        puts = [] if current else [model_row(self._context, model)]
        deletes: list[Key] = []
        for memory in memories:
            # No new revision: the vector is derived from the content, which stays the same.
            newer = replace(memory, vector=vectors[memory.id].own, pending=False)
            new, dropped = replace_passages(
                passages[memory.id], passage_rows(newer, vectors[memory.id])
            )
            puts += [newer.row(replaces=memory.revision), *new]
            deletes += dropped
        return Plan(None, puts, deletes, seen)

    def _read(self, ids: Sequence[str]) -> tuple[list[Memory], dict[str, int]]:
        """Return memories and the versions of their partitions: no vector of a memory erased
        meanwhile may be written."""
        names = {row.partition for row in find_rows(self._context, ids).values()}
        seen = {name: self._context.store.version(name) for name in names}
        rows = find_rows(self._context, ids).values()
        return [Memory.of(row) for row in rows if row.partition in seen], seen

    def _embed(self, memories: Sequence[Memory]) -> list[Embedded]:
        embedded = _embed_passages(
            self._context, self._embedder, [memory.embedded_text for memory in memories]
        )
        if any(one.pending for one in embedded):
            raise EmbeddingError(
                f"{self._embedder.model} is down, and its fallback is another model",
                remedy="run reembed again later: it continues where it was",
            )
        # An intent is short; a skill has a single vector.
        skills = [memory.kind is Kind.SKILL for memory in memories]
        return [
            replace(one, passages=one.passages[:1]) if skill else one
            for skill, one in zip(skills, embedded, strict=True)
        ]

    def _stage_id(self, memory_id: str, n: int) -> str:
        return f"{memory_id}.{self._stage_name}.{n}"

    def _unstaged(self) -> list[str]:
        staged = set(self._context.store.ids(Kind.PASSAGE))
        return [id_ for id_ in self._outdated() if self._stage_id(id_, 0) not in staged]

    def _outdated(self) -> list[str]:
        """Return the ids of all memories and skills of the store, of every user, that have no
        vector of this model."""
        rows = (row for kind in CONTENTS for row in paged(self._context, kind, ANYTHING))
        return [
            row.id
            for row in rows
            if lacks_vector(
                row, self._embedder.model, tokens=self._gives_tokens and row.id not in self._filled
            )
        ]

    @cached_property
    def _gives_tokens(self) -> bool:
        """Whether the embedder gives tokens; only one that has words does."""
        has_words = getattr(self._embedder, "words", None) is not None
        return has_words and bool(embed_texts(self._embedder, ["tokens"])[0].tokens)
