"""Pools for training, computed by the real index from rows in memory, one world at a time.

Long texts are split into passages by the code that the product uses, so that a long memory has as
many vectors as in a store.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bench.quality.lessons import World
from bench.quality.sets import Question, Said
from memory_mesh.core.language.scrubbing import MESH_OVERRIDES, ScrubSettings
from memory_mesh.core.model import Kind, MemoryType, Reader, Row, Vector, partition_for
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search import Pool, Query, tokens
from memory_mesh.core.search.lexical import query_tokens
from memory_mesh.core.search.mentions import (
    is_general,
    is_personal,
    proper_names,
    speaker_roles,
    time_spans,
    without_speakers,
)
from memory_mesh.flows.write.embed import embed_texts, split_passages
from memory_mesh.index import LocalIndex
from memory_mesh.stores.ram import RamStore

_SIZE = 150
_READER = Reader(None, "learner", None)
_PARTITION = partition_for(None, "learner", MemoryType.GLOBAL, None)
_SCOPE = {"agent_id": _READER.agent_id, "memory_type": MemoryType.GLOBAL}


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with its keywords and the vectors of its passages."""

    keywords: list[str]
    vectors: Sequence[Vector]


class Pools:
    """Candidates for the questions of worlds. Each text is prepared once, and one index serves
    all questions about the same memories that follow each other."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._texts: dict[str, _Text] = {}
        self._memories: Sequence[Said] = ()
        self._index = LocalIndex(RamStore())

    @cached_property
    def _scrub(self) -> ScrubSettings:
        return ScrubSettings().merged(MESH_OVERRIDES)

    def of(self, world: World, means: str) -> Pool:
        """Return the candidates for a world's question, compared by token vectors and vectors,
        only by vectors, or only by keywords."""
        if world.memories is not self._memories:
            self._memories = world.memories
            self._prepare([said.text for said in world.memories])
            store = RamStore()
            store.apply(
                [
                    row
                    for number, said in enumerate(world.memories)
                    for row in self._rows(said, number)
                ]
            )
            self._index = LocalIndex(store)
        return self._ask(world.question, means)

    def _ask(self, question: Question, means: str) -> Pool:
        snapshot, text, at = self._index.snapshot(_READER), question.text, question.at
        query = Query(
            tokens=query_tokens(text),
            vector=None,
            reader=_READER,
            at=at,
            spans=time_spans(text, at),
            roles=speaker_roles(text),
            names=proper_names(text),
            personal=is_personal(text),
            general=is_general(text),
        )
        if means != "keywords":
            [vector] = embed_texts(
                self._embedder, [without_speakers(text, snapshot.speakers(query))]
            )
            if means == "vectors":
                vector = replace(vector, tokens=b"")
            query = replace(query, vector=vector)
        return snapshot.candidates(query, size=_SIZE)

    def _prepare(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._texts]
        split = [
            [part for part, _ in split_passages(lambda: self._scrub, self._embedder, text)]
            for text in new
        ]
        vectors = iter(embed_texts(self._embedder, [part for parts in split for part in parts]))
        for text, parts in zip(new, split, strict=True):
            self._texts[text] = _Text(tokens(text), [next(vectors).of_memory for _ in parts])

    def _rows(self, said: Said, number: int) -> Iterator[Row]:
        text = self._texts[said.text]
        own = {
            "content": said.text,
            "keywords": text.keywords,
            "status": "active",
            "updated_at": said.at,
            **said.metadata,
        }
        yield Row(
            kind=Kind.MEMORY, id=said.id, partition=_PARTITION, created_at=said.at, number=number,
            vector=text.vectors[0], fields={**_SCOPE, **own},
        )  # fmt: skip
        for place, vector in enumerate(text.vectors[1:], start=1):
            yield Row(
                kind=Kind.PASSAGE, id=f"{said.id}.{place}", partition=_PARTITION,
                created_at=said.at, vector=vector, fields={**_SCOPE, "ref": said.id},
            )  # fmt: skip
